//! A folder of input files for the program, which runs in this process.

use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) struct Case {
    pub(crate) folder: TempDir,
}

impl Case {
    /// Writes files, each given by its name and its text.
    pub(crate) fn new(files: [(&str, &str); 2]) -> Self {
        let case = Self { folder: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(name, text)| case.write(name, text));
        case
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Runs the program. `@` in an argument is the folder. Returns the exit code, standard output and standard error.
    pub(crate) fn run(&self, arguments: &str) -> (u8, String, String) {
        let at = self.folder.path().display().to_string();
        let arguments = format!("kauri {arguments}");
        let arguments = arguments.split_whitespace().map(|argument| argument.replace('@', &at));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = kauri_cli::main_with(arguments, &mut out, &mut err);
        let text = |bytes| String::from_utf8(bytes).unwrap().replace(&at, "@");
        (code, text(out), text(err))
    }

    /// Returns the standard output of a run without errors and warnings.
    pub(crate) fn answer(&self, arguments: &str) -> String {
        let (code, out, err) = self.run(arguments);
        assert_eq!((code, err.as_str()), (0, ""), "{arguments}");
        out
    }

    /// Returns the standard error of a run that is refused.
    pub(crate) fn refused(&self, arguments: &str) -> String {
        let (code, out, err) = self.run(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments}: {err}");
        err
    }
}
