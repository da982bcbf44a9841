//! `new-kernel`: writes a kernel that compiles and passes its tests, from the files in `xtask/template`: into this workspace, or as a
//! project of its own. Everything is checked and computed before a file is written.

use crate::cargo::{self, cargo};
use crate::tidy::{self, File};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail, ensure};
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// Write a new kernel with its host function, tests and benchmark, into this workspace or as a project of its own
#[derive(clap::Args)]
pub(crate) struct NewKernel {
    /// Name of the kernel, such as `prefix_min`
    name: String,
    /// Write a project of its own into this new folder; it depends on this clone by relative paths
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,
}

/// The name in the template.
const PLACEHOLDER: &str = "example_op";

/// Names of the template's crates, as Rust names.
const KERNEL_CRATE: &str = "example_op_kernels";
const HOST_CRATE: &str = "example_op_project";

/// Ends a line that only the form for projects has.
const PROJECT_LINE: &str = " // project";

/// Names that every crate or module of tests has.
const TAKEN: [&str; 7] = ["alloc", "core", "main", "proc_macro", "std", "test", "tests"];

/// Longest name, so that lines and names of kernels stay readable.
const MAX_NAME: usize = 40;

/// Files of a project. The first is written under the name `.gitignore`.
const PROJECT_FILES: [&str; 12] = [
    "gitignore",
    "Cargo.toml",
    "README.md",
    "build.rs",
    "kernels/Cargo.toml",
    "kernels/src/lib.rs",
    "kernels/src/example_op.rs",
    "src/lib.rs",
    "src/example_op.rs",
    "tests/conformance.rs",
    "tests/sim.rs",
    "benches/example_op.rs",
];

/// Files of the form in this workspace: from the template, to the workspace.
const WORKSPACE_FILES: [(&str, &str); 5] = [
    ("kernels/src/example_op.rs", "kernels/src/example_op.rs"),
    ("src/example_op.rs", "host/src/example_op.rs"),
    ("tests/conformance.rs", "tests/tests/conformance/example_op.rs"),
    ("tests/sim.rs", "tests/tests/sim/example_op.rs"),
    ("workspace/suite.rs", "benches/src/suites/example_op.rs"),
];

/// Lines that name the new module: the file, the text before the line, the line.
const REGISTRATIONS: [(&str, &str, &str); 9] = [
    ("kernels/Cargo.toml", "entries-join = []\n", "entries-example_op = []\n"),
    ("kernels/src/lib.rs", "pub mod block;\n", "pub mod example_op;\n"),
    ("host/src/lib.rs", "pub mod device;\n", "pub mod example_op;\n"),
    ("host/src/device/family.rs", "Self::Primitives => &[\n                &[\n", "\"example_op\",\n"),
    ("xtask/src/tidy/order.rs", "    \"primitives\",\n", "    \"example_op\",\n"),
    ("tests/tests/conformance/main.rs", "mod degenerate;\n", "mod example_op;\n"),
    ("tests/tests/sim/main.rs", "mod demo;\n", "mod example_op;\n"),
    ("benches/src/suites/mod.rs", "pub mod first_call;\n", "pub mod example_op;\n"),
    ("benches/src/suites/mod.rs", ".chain(first_call::SUITES)", ".chain(example_op::SUITES)"),
];

/// A file to write: its path below the root, and its text.
pub(crate) type Output = (String, String);

impl NewKernel {
    pub(crate) fn run(self) -> Result<()> {
        let root = Workspace::find()?.root;
        check_root(&root)?;
        check_name(&self.name)?;
        match &self.project {
            None => {
                check_free(&root, &self.name)?;
                check_clean(&root)?;
                write_all(&root, &in_workspace(&root, &self.name)?)?;
                print!("{}", NEXT.replace(PLACEHOLDER, &self.name));
            }
            Some(folder) => {
                // Cargo runs this task in the caller's folder.
                let folder = check_folder(&root, folder)?;
                check_crate_name(&root, &self.name)?;
                write_all(&folder, &project(&root, &folder, &self.name)?)?;
                println!(
                    "wrote {}: run `cargo test` there; README.md has the other commands",
                    folder.display()
                );
            }
        }
        Ok(())
    }
}

/// Printed after the files of the workspace are written.
const NEXT: &str = "\
wrote the kernel example_op:
  kernels/src/example_op.rs                   the kernels
  host/src/example_op.rs                      the function that launches them, its memory plan, its CPU twin
  tests/tests/conformance/example_op.rs       the CPU twin and the GPU against an oracle
  tests/tests/sim/example_op.rs               every schedule of the simulator
  benches/src/suites/example_op.rs            the suite of benchmarks
next:
  cargo test --all-features -p kauri-tests --test sim example_op::
  cargo test --all-features -p kauri-tests --test conformance example_op::
  cargo xtask ptx --family example_op --cubin 90
                                              prints registers, spills and static shared memory
  cargo xtask test --bless                    runs every test; adds the registers of the kernels to kernels/budget.txt
  cargo xtask bench --suite example_op        on a GPU
  cargo xtask bench --suite example_op --device sim --n 1e4
                                              a dry run without a GPU
";

/// Checks that a folder is kauri's workspace.
fn check_root(root: &Path) -> Result<()> {
    for file in ["kernels/src/lib.rs", "host/src/lib.rs", "xtask/template/Cargo.toml"] {
        ensure!(
            root.join(file).is_file(),
            "{} is no clone of kauri: it has no {file}; run `cargo xtask new-kernel` in a clone",
            root.display()
        );
    }
    Ok(())
}

/// Checks that a name is an identifier in snake case and no reserved word.
fn check_name(name: &str) -> Result<()> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    ensure!(
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(is_word)
            && !name.ends_with('_')
            && !name.contains("__")
            && name.len() <= MAX_NAME,
        "`{name}` is no name of a kernel: write at most {MAX_NAME} lower-case letters, digits and single `_`, first a letter, as in `prefix_min`"
    );
    let is_free =
        !TAKEN.contains(&name) && rustfmt(&env::temp_dir(), &format!("fn {name}() {{}}"))?.is_some();
    ensure!(is_free, "`{name}` is a reserved word: choose another name, such as `{name}_items`");
    Ok(())
}

/// Checks that no crate has the name: a module of that name would hide it.
fn check_crate_name(root: &Path, name: &str) -> Result<()> {
    let lock = read(&root.join("Cargo.lock"))?;
    let crates = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let renamed = ["cuda_std", "cuda_sim", "cuda_builder", "cuda_pack", "cuda_lazy", "cuda_trampolines"];
    let mut taken = crates.map(|krate| krate.replace('-', "_")).chain(renamed.map(str::to_owned));
    ensure!(!taken.any(|krate| krate == name), "`{name}` is the name of a crate: choose another name");
    Ok(())
}

/// Checks that the workspace has no module or file of this name.
fn check_free(root: &Path, name: &str) -> Result<()> {
    check_crate_name(root, name)?;
    for (_, to) in WORKSPACE_FILES {
        let file = root.join(to.replace(PLACEHOLDER, name));
        for taken in [file.clone(), file.with_extension("")] {
            let shown = taken.strip_prefix(root).unwrap_or(&taken).display();
            ensure!(!taken.exists(), "the name `{name}` is taken by {shown}: choose another name");
        }
    }
    let lines =
        [("kernels/src/lib.rs", "mod"), ("host/src/lib.rs", "mod"), ("benches/src/suites/mod.rs", "mod")];
    for (file, keyword) in lines {
        let is_taken = read(&root.join(file))?.contains(&format!("{keyword} {name};"));
        ensure!(!is_taken, "the name `{name}` is taken by a module of {file}: choose another name");
    }
    Ok(())
}

/// Checks that all changes are committed, so that `git diff` shows the new kernel and `git checkout` removes it.
fn check_clean(root: &Path) -> Result<()> {
    let output = Command::new("git").args(["status", "--porcelain"]).current_dir(root).output();
    let output = output.context("cannot run git, which tells whether all changes are committed")?;
    ensure!(
        output.status.success(),
        "{} is not in a git repository: run `git init`, and commit the files",
        root.display()
    );
    if let Some(line) = String::from_utf8_lossy(&output.stdout).lines().next() {
        bail!("the tree has changes ({}): commit or stash them first", line.trim());
    }
    Ok(())
}

/// Checks that a project can be written to a folder, and returns its absolute path.
fn check_folder(root: &Path, folder: &Path) -> Result<PathBuf> {
    let folder = env::current_dir().context("there is no current folder")?.join(folder);
    let parent = folder.parent().context("the project needs a folder of its own")?;
    let parent = parent.canonicalize();
    let parent = parent.with_context(|| format!("there is no folder to put {} in", folder.display()))?;
    let name = folder.file_name().context("the project's folder needs a name, not `..`")?;
    let folder = parent.join(name);
    let is_new = match fs::read_dir(&folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => !folder.exists(),
    };
    ensure!(is_new, "{} exists and is not an empty folder: name a new one", folder.display());
    let inside = folder.starts_with(root.canonicalize().context("the clone has a path")?);
    ensure!(
        !inside,
        "{} is inside the clone: name a folder outside, or leave out --project",
        folder.display()
    );
    Ok(folder)
}

/// Returns the files of the form in this workspace, new and changed.
pub(crate) fn in_workspace(root: &Path, name: &str) -> Result<Vec<Output>> {
    let mut outputs = Vec::new();
    for (from, to) in WORKSPACE_FILES {
        let text = read(&root.join("xtask/template").join(from))?;
        outputs.push((to.replace(PLACEHOLDER, name), renamed(&without_project(from, &text), name)));
    }
    for (file, anchor, line) in REGISTRATIONS {
        let text = match outputs.iter().position(|(path, _)| path == file) {
            Some(i) => outputs.swap_remove(i).1,
            None => read(&root.join(file))?,
        };
        let found = text.matches(anchor).count();
        ensure!(
            found == 1,
            "{file} has {found} places with {anchor:?}, not one: update xtask/src/new_kernel.rs"
        );
        let line = line.replace(PLACEHOLDER, name);
        outputs.push((file.to_owned(), text.replace(anchor, &format!("{anchor}{line}"))));
    }
    outputs.into_iter().map(|(path, text)| Ok((path.clone(), formatted(root, &path, text)?))).collect()
}

/// Replaces what projects have by what this workspace has: crates, and the family of the kernels.
fn without_project(file: &str, text: &str) -> String {
    let lines = text.lines().filter(|line| !line.ends_with(PROJECT_LINE));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    match file {
        "kernels/src/example_op.rs" => text
            .replace("kauri_kernels::", "crate::")
            .replace("#[kernel(", "#[kernel(family = \"example_op\", "),
        "src/example_op.rs" => {
            text.replace("kauri::", "crate::").replace(&format!("{KERNEL_CRATE}::"), "kauri_kernels::")
        }
        _ => text
            .replace(&format!("{KERNEL_CRATE}::"), "kauri_kernels::")
            .replace(&format!("{HOST_CRATE}::"), "kauri::"),
    }
}

/// Returns the files of a project in a folder.
fn project(root: &Path, folder: &Path, name: &str) -> Result<Vec<Output>> {
    let clone = relative(folder, &root.canonicalize().context("the clone has a path")?);
    let clone = clone.to_str().context("the path from the project to the clone is no UTF-8")?;
    let mut outputs = vec![("Cargo.lock".to_owned(), read(&root.join("Cargo.lock"))?)];
    for from in PROJECT_FILES {
        let text = read(&root.join("xtask/template").join(from))?;
        let lines = text.lines().map(|line| line.strip_suffix(PROJECT_LINE).unwrap_or(line));
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        let text = match from {
            "Cargo.toml" => text.replace("\"../../", &format!("\"{clone}/")),
            "kernels/Cargo.toml" => text.replace("\"../../../", &format!("\"../{clone}/")),
            _ => text,
        };
        let to = if from == "gitignore" { ".gitignore".to_owned() } else { from.replace(PLACEHOLDER, name) };
        outputs.push((to, renamed(&text, name)));
    }
    let folder = env::temp_dir();
    outputs.into_iter().map(|(path, text)| Ok((path.clone(), formatted(&folder, &path, text)?))).collect()
}

/// Replaces the placeholder, in snake case, in kebab case and in camel case.
fn renamed(text: &str, name: &str) -> String {
    let upper = |word: &str| word[..1].to_uppercase() + &word[1..];
    let camel: String = name.split('_').map(upper).collect();
    text.replace("example_op", name)
        .replace("example-op", &name.replace('_', "-"))
        .replace("ExampleOp", &camel)
}

/// Formats a Rust file by the settings of a folder: names have other lengths than the placeholder.
fn formatted(folder: &Path, path: &str, text: String) -> Result<String> {
    if !path.ends_with(".rs") {
        return Ok(text);
    }
    rustfmt(folder, &text)?.with_context(|| format!("rustfmt cannot format {path}"))
}

/// Formats Rust; `None` if it has a mistake.
fn rustfmt(folder: &Path, text: &str) -> Result<Option<String>> {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024"]).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child =
        rustfmt.spawn().context("cannot run rustfmt; `rustup component add rustfmt` installs it")?;
    child.stdin.take().context("the input is a pipe")?.write_all(text.as_bytes())?;
    let output = child.wait_with_output().context("rustfmt gave no result")?;
    let text = String::from_utf8(output.stdout).context("rustfmt wrote no text")?;
    Ok(Some(text).filter(|_| output.status.success()))
}

/// Returns the path from one absolute folder to another.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let (from, to): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    from[common..].iter().map(|_| Component::ParentDir).chain(to[common..].iter().copied()).collect()
}

fn write_all(root: &Path, outputs: &[Output]) -> Result<()> {
    for (path, text) in outputs {
        let path = root.join(path);
        // An unchanged file keeps its date, so that cargo compiles nothing again.
        if fs::read_to_string(&path).is_ok_and(|old| old == *text) {
            continue;
        }
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A part of `test`: generates both forms, this workspace's in a copy of the sources, and runs the tests of both in the project, which
/// depends on the copy. The project has this workspace's target folder, so that only path dependencies compile again.
pub(crate) fn check(workspace: &Workspace) -> Result<String> {
    let folder = workspace.target.join("new-kernel");
    let (clone, project_folder) = (folder.join("clone"), folder.join("project"));
    let inside = in_workspace(&workspace.root, "check_inside")?;
    let files = with_files(tidy::files(&workspace.root)?, &inside);
    tidy::write_tree(&clone, &files)?;
    keep_dates(&workspace.root, &clone, &files)?;
    fs::create_dir_all(&project_folder)
        .with_context(|| format!("cannot make {}", project_folder.display()))?;
    let mut outputs = project(&clone, &project_folder.canonicalize()?, "check_outside")?;
    for (path, text) in inside {
        if let Some(suite) =
            path.strip_prefix("tests/tests/").and_then(|path| path.strip_suffix("/check_inside.rs"))
        {
            outputs.push((format!("tests/inside_{suite}.rs"), text));
        }
    }
    tidy::write_tree(&project_folder, &with_files(Vec::new(), &outputs))?;
    cargo::run(command("test", &project_folder, workspace).arg("--quiet"))?;
    cargo::run(command("check", &clone, workspace).args(["--quiet", "--package", "kauri-benches"]))?;
    Ok("a kernel in a copy of this workspace, and one in a project".to_owned())
}

/// Gives unchanged files of a copy the dates of the originals. Cargo compiles the macros and build scripts of both to the same files,
/// and would take those of the copy for newer ones, and compile this workspace again.
fn keep_dates(root: &Path, copy: &Path, files: &[File]) -> Result<()> {
    for file in files {
        let original = root.join(&file.path);
        if fs::read(&original).is_ok_and(|bytes| bytes == file.bytes) {
            let date = fs::metadata(&original)?.modified()?;
            fs::File::options().append(true).open(copy.join(&file.path))?.set_modified(date)?;
        }
    }
    Ok(())
}

fn command(subcommand: &str, folder: &Path, workspace: &Workspace) -> Command {
    let mut command = cargo();
    command.args([subcommand, "--offline"]).current_dir(folder);
    // The host's library is most of the work, and these tests hardly run it.
    for setting in ["opt-level=0", "debug=false"] {
        command.arg("--config").arg(format!("profile.dev.package.kauri.{setting}"));
    }
    // Not `KAURI_EMBED_PTX=0`: build scripts of the copy and of this workspace are one for cargo, and would run again for each change of it.
    command.env("CARGO_TARGET_DIR", &workspace.target);
    command
}

/// Returns files with others in place of those of the same path. Results of benchmarks, which nothing reads, are left out.
fn with_files(mut files: Vec<File>, instead: &[Output]) -> Vec<File> {
    files.retain(|file| {
        !file.path.starts_with("benches/results/") && instead.iter().all(|(path, _)| *path != file.path)
    });
    files.extend(instead.iter().map(|(path, text)| File::new(path, text.as_bytes())));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Workspace::find().unwrap().root
    }

    #[test]
    fn names_that_are_no_identifiers_are_refused() {
        for name in
            ["", "2d", "_min", "min_", "a__b", "prefixMin", "prefix-min", "a/b", "größe", &"a".repeat(41)]
        {
            let error = check_name(name).unwrap_err().to_string();
            assert!(error.contains("is no name of a kernel"), "{error}");
        }
        for name in ["fn", "match", "async", "gen", "self", "test", "core"] {
            let error = check_name(name).unwrap_err().to_string();
            assert!(error.contains("reserved"), "{error}");
        }
        check_name("prefix_min2").unwrap();
    }

    #[test]
    fn names_that_are_taken_are_refused() {
        for name in ["primitives", "kdtree", "policy", "rows", "scan", "rayon", "kauri_test", "cuda_std"] {
            let error = check_free(&root(), name).unwrap_err().to_string();
            assert!(error.contains("choose another name"), "{error}");
        }
        check_free(&root(), "prefix_min").unwrap();
    }

    #[test]
    fn a_folder_that_is_no_clone_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = check_root(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is no clone of kauri"), "{error}");
        check_root(&root()).unwrap();
    }

    #[test]
    fn a_tree_with_changes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = check_clean(folder.path()).unwrap_err().to_string();
        assert!(error.contains("git init"), "{error}");
        cargo::run(Command::new("git").args(["init", "--quiet"]).current_dir(folder.path())).unwrap();
        check_clean(folder.path()).unwrap();
        fs::write(folder.path().join("new.rs"), "").unwrap();
        let error = check_clean(folder.path()).unwrap_err().to_string();
        assert!(error.contains("(?? new.rs): commit"), "{error}");
    }

    #[test]
    fn folders_that_cannot_hold_a_project_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: &Path| check_folder(&root(), path).unwrap_err().to_string();
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(message(folder.path()).contains("not an empty folder"));
        assert!(message(&folder.path().join("file")).contains("not an empty folder"));
        assert!(message(&folder.path().join("none/project")).contains("there is no folder"));
        assert!(message(&root().join("project")).contains("inside the clone"));
        assert!(check_folder(&root(), &folder.path().join("project")).unwrap().ends_with("project"));
    }

    #[test]
    #[ignore = "a part of `cargo xtask test`; takes a minute"]
    fn both_forms_compile_and_pass() {
        check(&Workspace::find().unwrap()).unwrap();
    }

    #[test]
    fn names_replace_the_placeholder() {
        assert_eq!(
            renamed("example_op_tiles ExampleOp example-op-kernels", "top_k2"),
            "top_k2_tiles TopK2 top-k2-kernels"
        );
        assert_eq!(relative(Path::new("/a/b/c"), Path::new("/a/d")), Path::new("../../d"));
    }

    #[test]
    fn the_template_is_formatted() {
        let root = root();
        for file in PROJECT_FILES.into_iter().chain(["workspace/suite.rs"]) {
            let text = read(&root.join("xtask/template").join(file)).unwrap();
            assert_eq!(formatted(&root, file, text.clone()).unwrap(), text, "{file}: run rustfmt on it");
        }
    }

    #[test]
    fn no_placeholder_is_left() {
        let root = root();
        let inside = in_workspace(&root, "prefix_min").unwrap();
        let outside = project(&root, &env::temp_dir().join("project"), "prefix_min").unwrap();
        for (path, text) in inside.iter().chain(&outside) {
            let is_own = path != "xtask/src/new_kernel.rs";
            let left = ["example_op", "example-op", "ExampleOp", "// project"]
                .iter()
                .find(|word| text.contains(**word));
            assert!(!is_own || left.is_none(), "{path}: {left:?}");
        }
    }
}
