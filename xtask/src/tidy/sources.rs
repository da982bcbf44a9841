//! Checks of single files.

use super::{File, Finding};

/// Files that may be larger than `LARGE_BYTES`.
const LARGE: [&str; 1] = ["data/cities.csv"];
const LARGE_BYTES: usize = 1 << 20;

/// The only folder with target-dependent code; all other code compiles for GPU and CPU alike.
const TARGET_FOLDER: &str = "rust-cuda/";
// The words are concatenated, so that this file does not contain them.
const TARGET_WORDS: [&str; 3] =
    [concat!("target", "_arch"), concat!("target", "_feature"), concat!("target", "_os = \"cuda\"")];

/// Raw features that kernels must reach through `cuda_std`.
const RAW_IN_KERNELS: [(&str, &str); 6] = [
    (concat!("core::", "arch"), "intrinsics belong into cuda_std"),
    (concat!("static", " mut"), "shared memory is a typed view, and kernels have no other state"),
    (concat!("link_", "section"), "shared memory is a typed view"),
    (concat!("extern .", "shared"), "shared memory is a typed view"),
    (concat!("asm", "!"), "assembly belongs into cuda_std"),
    (concat!("no_", "mangle"), "`#[kernel]` names entries"),
];

const UNFINISHED: [&str; 3] = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!(")];

/// Prefixes of paths that exist only on one machine.
const MACHINE_PATHS: [&str; 5] = [
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
    concat!("local", "host"),
];

/// Checks one file.
pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut checker = Checker { path: &file.path, findings: Vec::new() };
    if file.bytes.len() > LARGE_BYTES && !LARGE.contains(&file.path.as_str()) {
        checker.add(1, format!("takes {} KiB, more than a repository should", file.bytes.len() >> 10));
    }
    // Data files are unchanged copies, and binary files have no lines.
    if let Ok(text) = std::str::from_utf8(&file.bytes)
        && !file.path.starts_with("data/")
    {
        checker.text(text);
        if file.path.ends_with(".rs") {
            checker.rust(text);
        }
        if file.path.strip_prefix("host/examples/").is_some_and(|rest| !rest.contains('/')) {
            checker.example(text);
        }
        if file.path.starts_with("kernels/src/") {
            checker.kernels(text);
        }
    }
    checker.findings
}

struct Checker<'a> {
    path: &'a str,
    findings: Vec<Finding>,
}

impl Checker<'_> {
    fn add(&mut self, line: usize, what: impl Into<String>) {
        self.findings.push(Finding { file: self.path.to_owned(), line, what: what.into() });
    }

    /// Checks that an example uses `arguments`, which rejects unknown arguments.
    fn example(&mut self, text: &str) {
        if !text.contains("arguments(") || text.contains("env::args") {
            self.add(1, "an example takes its arguments, or none, from `arguments`");
        }
    }

    /// Checks that apply to every text file.
    fn text(&mut self, text: &str) {
        for (number, line) in lines(text) {
            if line.ends_with([' ', '\t', '\r']) {
                self.add(number, "white space at the end of the line");
            }
            if let Some(path) = MACHINE_PATHS.iter().find(|path| line.contains(**path)) {
                self.add(number, format!("`{path}` is of one machine"));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            self.add(text.lines().count(), "the last line has no end");
        }
    }

    fn rust(&mut self, text: &str) {
        // A crate may use the README as its documentation.
        if !text.starts_with("//!") && !text.starts_with("#![doc = include_str!") {
            self.add(1, "a file begins with a `//!` that says what lives in it");
        }
        for (number, line) in lines(text) {
            let code = code(line);
            if let Some(word) = UNFINISHED.iter().find(|word| code.contains(**word)) {
                self.add(number, format!("`{word}` is for work that is not done"));
            }
            if !self.path.starts_with(TARGET_FOLDER)
                && let Some(word) = TARGET_WORDS.iter().find(|word| code.contains(**word))
            {
                self.add(number, format!("`{word}`: only {TARGET_FOLDER} knows of the target"));
            }
        }
    }

    fn kernels(&mut self, text: &str) {
        for (number, line) in lines(text) {
            if let Some((word, why)) = RAW_IN_KERNELS.iter().find(|(word, _)| code(line).contains(word)) {
                self.add(number, format!("`{word}` in a kernel: {why}"));
            }
        }
        // A family has the name of its folder. A large folder has several families `<folder>-<part>`, so that a program
        // compiles only the parts that it uses. Kernels of paper variants are in `research-<folder>`.
        let family = self.path.split('/').nth(2).unwrap_or_default().trim_end_matches(".rs").to_owned();
        for entry in entries(text) {
            let name = entry.family.unwrap_or_default();
            let rest = name.strip_prefix("research-").unwrap_or(name).strip_prefix(family.as_str());
            if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) {
                self.add(
                    entry.line,
                    format!("this entry lies in {family}: #[kernel(family = \"{family}\")]"),
                );
            }
            if !entry.name.starts_with(&format!("{family}_")) {
                self.add(entry.line, format!("the entry `{}` needs the prefix `{family}_`", entry.name));
            }
            if entry.parameters.contains('&') {
                self.add(
                    entry.line,
                    format!("`{}` takes a reference; device memory is a Slice or SliceMut", entry.name),
                );
            }
        }
    }
}

/// A function with `#[kernel]`.
struct Entry<'a> {
    line: usize,
    name: &'a str,
    family: Option<&'a str>,
    /// Text from the name to the body.
    parameters: &'a str,
}

fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    for (start, _) in text.match_indices("\n#[kernel") {
        let rest = &text[start + 1..];
        let Some((header, _)) = rest.split_once('{') else { continue };
        let Some((attributes, signature)) = header.split_once("fn ") else { continue };
        let end = signature.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(signature.len());
        let family = attributes.split_once("family = \"").and_then(|(_, rest)| rest.split('"').next());
        let line = text[..start + 1].lines().count() + 1;
        entries.push(Entry { line, name: &signature[..end], family, parameters: &signature[end..] });
    }
    entries
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // Not `lines()`, which would hide a carriage return.
    text.split('\n').enumerate().map(|(index, line)| (index + 1, line))
}

/// Returns a line without its comment. A `//` in a string counts as a comment, which hides at most the rest of the line.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let file = File { path: path.into(), bytes: text.into() };
        check(&file).into_iter().map(|finding| (finding.line, finding.what)).collect()
    }

    fn one(path: &str, text: &str, line: usize, what: &str) {
        let found = found(path, text);
        assert!(found.len() == 1 && found[0].0 == line && found[0].1.contains(what), "{found:?}");
    }

    #[test]
    fn examples() {
        let file = "host/examples/09_new.rs";
        one(file, "//! What it shows.\nfn main() {}\n", 1, "`arguments`");
        one(
            file,
            "//! What it shows.\nfn main() { arguments(\"\", 0, f); std::env::args(); }\n",
            1,
            "`arguments`",
        );
        assert!(found(file, "//! What it shows.\nfn main() { arguments(\"\", 0, f); }\n").is_empty());
    }

    #[test]
    fn form() {
        assert!(found("host/src/a.rs", "//! Good.\nfn f() {}\n").is_empty());
        one("host/src/a.rs", "fn f() {}\n", 1, "begins with");
        one("a.md", "one \ntwo\n", 1, "white space");
        one("a.md", "one\r\n", 1, "white space");
        one("a.md", "one\ntwo", 2, "no end");
        one("a.md", &format!("see\n{}x\n", MACHINE_PATHS[0]), 2, "one machine");
        one("a.rs", &format!("//! A.\n{})\n", UNFINISHED[0]), 2, "not done");
        assert!(found("a.rs", &format!("//! A.\n// {}x\n", UNFINISHED[0])).is_empty());
        one("a.bin", &"\u{7f}\n".repeat(LARGE_BYTES), 1, "KiB");
        assert!(found("data/x.csv", "1 \r\n2").is_empty());
    }

    #[test]
    fn only_rust_cuda_knows_the_target() {
        let text = format!("//! A.\n#[cfg({} = \"nvptx64\")]\n", TARGET_WORDS[0]);
        one("kernels/src/thread/a.rs", &text, 2, "only rust-cuda/");
        assert!(found("rust-cuda/cuda_std/src/a.rs", &text).is_empty());
    }

    #[test]
    fn kernels_are_plain_and_entries_well_named() {
        let path = "kernels/src/join/a.rs";
        let entry = |attribute: &str, signature: &str| {
            format!("//! A.\n\n#[kernel({attribute})]\n#[instance(f32)]\npub unsafe fn {signature} {{}}\n")
        };
        assert!(found(path, &entry("family = \"join\", block = 2", "join_a<T>(x: Slice<T>)")).is_empty());
        one(path, &entry("family = \"join\"", "cross(x: Slice<f32>)"), 3, "prefix `join_`");
        one(path, &entry("family = \"kdtree\"", "join_a()"), 3, "lies in join");
        one(path, &entry("block = 2", "join_a()"), 3, "lies in join");
        let deeper = "kernels/src/join/grid/a.rs";
        assert!(found(deeper, &entry("family = \"join-grid\"", "join_a()")).is_empty());
        assert!(found(deeper, &entry("family = \"research-join\"", "join_a()")).is_empty());
        one(deeper, &entry("family = \"research-sah\"", "join_a()"), 3, "lies in join");
        assert!(found(deeper, &entry("family = \"join\"", "join_a()")).is_empty());
        one(deeper, &entry("family = \"a\"", "join_a()"), 3, "lies in join");
        one(path, &entry("family = \"join\"", "join_a(x: &mut u32)"), 3, "reference");
        one(path, &format!("//! A.\n{} X: u32 = 1;\n", RAW_IN_KERNELS[1].0), 2, "typed view");
    }
}
