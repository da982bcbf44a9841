//! Checks the order of the library's modules: each depends only on modules before it.

use super::{File, Finding};

/// The modules of `host/src`, foundations first. A module may use the ones before it.
const MODULES: &[&str] = &[
    "error",
    "progress",
    "once",
    "threads",
    "memory",
    "parallel",
    "rows",
    "point",
    "wkb",
    "device",
    "stats",
    "stored",
    "primitives",
    "host_coords",
    "random",
    "noise",
    "batches",
    "query",
    "kdtree",
    "balanced",
    "rtree",
    "quadtree",
    "join",
    "arrow",
    "mesh",
    "rays",
    "bvh",
    "sah",
    "render",
    "lidar",
    "terrain",
    "research",
    "io",
];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    files.iter().flat_map(of_file).collect()
}

fn of_file(file: &File) -> Vec<Finding> {
    let Some(module) = file.path.strip_prefix("host/src/").and_then(top) else { return Vec::new() };
    let finding = |line: usize, what| Finding { file: file.path.clone(), line, what };
    let Some(own) = rank(module) else {
        return vec![finding(1, format!("the order of modules in xtask/src/tidy/order.rs lacks `{module}`"))];
    };
    let code = file.code();
    let uses = code.lines().enumerate().flat_map(|(i, line)| used(line).map(move |used| (i + 1, used)));
    uses.filter(|(_, used)| rank(used).is_some_and(|used| used > own))
        .map(|(line, used)| finding(line, format!("`{module}` uses `{used}`, which comes after it")))
        .collect()
}

/// Returns the module of a file in `host/src`; `None` for the root.
fn top(path: &str) -> Option<&str> {
    let first = path.split('/').next()?;
    let module = first.strip_suffix(".rs").unwrap_or(first);
    (module != "lib").then_some(module)
}

fn rank(module: &str) -> Option<usize> {
    MODULES.iter().position(|&name| name == module)
}

/// Returns the modules of the crate that a line of code names.
fn used(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        (!rest[..end].is_empty()).then(|| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        let file = File { path: path.to_owned(), bytes: text.as_bytes().to_vec() };
        check(&[file]).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn modules_use_the_ones_before_them() {
        let text = "//! A.\n\nuse crate::point::Point;\nuse crate::quadtree::Quadtree; // crate::join\n";
        assert_eq!(found("host/src/kdtree/mod.rs", text), [4]);
        assert!(found("host/src/quadtree/a.rs", text).is_empty());
        assert_eq!(found("host/src/error.rs", text), [3, 4]);
        assert!(found("host/src/lib.rs", text).is_empty());
        assert!(found("kernels/src/kdtree/a.rs", text).is_empty());
        let tests = format!("{text}\n#[cfg(test)]\nmod tests {{\n    use crate::io::Table;\n}}\n");
        assert!(found("host/src/quadtree/a.rs", &tests).is_empty());
        assert_eq!(found("host/src/elsewhere/a.rs", text), [1]);
    }
}
