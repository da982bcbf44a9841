//! Checks that files of one folder do not import each other in a circle.
//!
//! A file imports another if it names a path in it that starts with `crate::` or `super::`. A module and its submodules
//! count as one: a submodule may use the types of the module that declares it.

use super::{File, Finding};
use std::collections::{BTreeMap, BTreeSet};

/// Imports that close a circle, and why they stay.
const ALLOWED: [(&str, &str); 7] = [
    ("query/options: query/backend", "options and queries check each other's dimensions"),
    ("query/on_device: query/gpu/device_options", "queries on a device make the view for kernels"),
    ("query/gpu/order: query/gpu/device_options", "the order is computed from a view that then includes it"),
    ("query/neighbors: query/batches", "a result of neighbors is filled batch by batch"),
    ("query/batches: query/backend", "the backend visits batches, and batches call the backend"),
    ("query/cpu/traversal: query/cpu/within", "the traversal and what it calls at a node are one algorithm"),
    ("query/traversal: query/buckets", "groups of the traversal have the size of a bucket"),
];

/// The modules that a module imports, with the line of the first import.
type Imports<'a> = BTreeMap<&'a str, usize>;

/// Returns the imports that lead back to the importing file, and exceptions that no import needs.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let (mut findings, stale) = circles(files, &ALLOWED);
    let finding = |pair| Finding {
        file: "xtask/src/tidy/cycles.rs".to_owned(),
        line: 1,
        what: format!("the exception `{pair}` is stale: this import closes no circle"),
    };
    findings.extend(stale.into_iter().map(finding));
    findings
}

/// Returns the imports that close circles and are no exceptions, and the exceptions that close no circle.
fn circles<'e>(files: &[File], exceptions: &[(&'e str, &str)]) -> (Vec<Finding>, Vec<&'e str>) {
    let modules: BTreeMap<&str, &File> = files.iter().filter_map(|f| Some((module(&f.path)?, f))).collect();
    let all: BTreeMap<_, _> =
        modules.iter().map(|(module, file)| (*module, imports(module, file, &modules))).collect();
    let mut stale: BTreeSet<&str> = exceptions.iter().map(|(pair, _)| *pair).collect();
    let mut imports = all.clone();
    for (module, imports) in &mut imports {
        imports.retain(|import, _| {
            let pair = format!("{}: {}", below_src(module), below_src(import));
            let is_exception = exceptions.iter().any(|(exception, _)| *exception == pair);
            if is_exception && reaches(import, module, &all) {
                stale.remove(pair.as_str());
            }
            !is_exception
        });
    }
    let of_module = |(module, file): (&&str, &&File)| -> Vec<Finding> {
        let circular = imports[module].iter().filter(|(import, _)| reaches(import, module, &imports));
        let what = |import| format!("`{import}` imports this file, directly or through other files");
        circular
            .map(|(import, line)| Finding { file: file.path.clone(), line: *line, what: what(import) })
            .collect()
    };
    (modules.iter().flat_map(of_module).collect(), stale.into_iter().collect())
}

/// Returns the path of a module below its crate's `src`.
fn below_src(module: &str) -> &str {
    module.split_once("/src/").map_or(module, |(_, path)| path)
}

/// Returns the path of a module: `host/src/kdtree/gpu` for `gpu.rs` and for `gpu/mod.rs`.
fn module(path: &str) -> Option<&str> {
    let module = path.strip_suffix(".rs")?;
    let is_checked = ["host/src/", "kernels/src/"].iter().any(|root| path.starts_with(root));
    is_checked.then_some(module.strip_suffix("/mod").unwrap_or(module))
}

/// Returns the imports of other units in the module's top folder.
fn imports<'a>(module: &str, file: &File, modules: &BTreeMap<&'a str, &File>) -> Imports<'a> {
    let mut imports = Imports::new();
    let Some((root, _)) = module.split_once("/src/") else { return imports };
    let code = file.code();
    for (at, keyword) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        let (mut base, mut rest) =
            (if keyword == "crate::" { &module[..root.len() + 4] } else { parent(module) }, &code[at + 7..]);
        while let Some(outer) = rest.strip_prefix("super::") {
            (base, rest) = (parent(base), outer);
        }
        let mut paths = Vec::new();
        read_tree(rest, base, &mut paths);
        for path in paths.iter().filter(|_| !code[..at].ends_with("::")) {
            let Some((import, _)) = ancestors(path).find_map(|path| modules.get_key_value(path)) else {
                continue;
            };
            let is_elsewhere = import.split('/').nth(2) != module.split('/').nth(2);
            let is_same_unit =
                ancestors(import).any(|a| a == module) || ancestors(module).any(|a| a == *import);
            if !is_elsewhere && !is_same_unit {
                imports.entry(*import).or_insert(code[..at].matches('\n').count() + 1);
            }
        }
    }
    imports
}

/// Reads the paths of a tree such as `a::{b, c::D}` below `base`, and returns the text behind the tree.
fn read_tree<'t>(text: &'t str, base: &str, paths: &mut Vec<String>) -> &'t str {
    if let Some(mut list) = text.strip_prefix('{') {
        loop {
            list = list.trim_start_matches([',', ' ', '\n']);
            if list.is_empty() || list.starts_with('}') {
                return list.strip_prefix('}').unwrap_or(list);
            }
            list = read_tree(list, base, paths);
            list = &list[list.find([',', '}']).unwrap_or(list.len())..];
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let path = format!("{base}/{}", &text[..end]).trim_start_matches('/').to_owned();
    match text[end..].strip_prefix("::") {
        Some(rest) => read_tree(rest, &path, paths),
        None => {
            paths.push(path);
            &text[end..]
        }
    }
}

/// Returns a path, its parent, and so on.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(parent, _)| parent))
}

fn parent(module: &str) -> &str {
    ancestors(module).nth(1).unwrap_or_default()
}

/// Returns true if `to` is imported by `from`, directly or through other modules.
fn reaches(from: &str, to: &str, imports: &BTreeMap<&str, Imports<'_>>) -> bool {
    let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
    while let Some(module) = open.pop() {
        open.extend(imports[module].keys().copied().filter(|import| seen.insert(import)));
    }
    seen.contains(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> Vec<File> {
        let file = |(path, text): &(&str, &str)| File { path: (*path).into(), bytes: (*text).into() };
        files.iter().map(file).collect()
    }

    fn found(sources: &[(&str, &str)]) -> Vec<(String, usize)> {
        let (findings, _) = circles(&files(sources), &[]);
        findings.into_iter().map(|finding| (finding.file, finding.line)).collect()
    }

    #[test]
    fn circles_are_found() {
        let a = ("host/src/x/a.rs", "//! A.\nuse crate::x::{y::Z, b::{self, B}};\n");
        let b = ("host/src/x/b.rs", "//! B.\nuse std::fmt;\nuse super::c::C;\n");
        let c = ("host/src/x/c/mod.rs", "//! C.\nfn f() -> crate::x::a::A {}\n");
        let expected = [(a.0.to_owned(), 2), (b.0.to_owned(), 3), (c.0.to_owned(), 2)];
        assert_eq!(found(&[a, b, c]), expected);
        assert!(found(&[a, b]).is_empty());
    }

    #[test]
    fn submodules_tests_and_other_folders_are_no_circles() {
        let module = ("host/src/x/mod.rs", "//! X.\nuse crate::x::a::A;\n");
        let a = (
            "host/src/x/a.rs",
            "use super::X;\n// use super::b::B;\n#[cfg(test)]\nmod tests {\n    use super::b::B;\n}\n",
        );
        let b = ("host/src/x/b.rs", "use super::a::A;\nuse crate::y::Y;\n");
        let y = ("host/src/y.rs", "use crate::x::b::B;\n");
        assert!(found(&[module, a, b, y]).is_empty());
    }

    #[test]
    fn exceptions_close_circles() {
        let a = ("host/src/x/a.rs", "use super::b::B;\n");
        let b = ("host/src/x/b.rs", "use super::a::A;\nuse super::c::C;\n");
        let sources = files(&[a, b, ("host/src/x/c.rs", "")]);
        let (findings, stale) =
            circles(&sources, &[("x/a: x/b", "why"), ("x/b: x/c", "why"), ("x/c: x/a", "why")]);
        assert!(findings.is_empty());
        assert_eq!(stale, ["x/b: x/c", "x/c: x/a"]);
    }

    #[test]
    fn exceptions_have_reasons() {
        assert!(ALLOWED.iter().all(|(_, why)| !why.is_empty()));
    }
}
