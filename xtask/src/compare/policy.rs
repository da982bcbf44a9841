//! Values of `kernels/src/policy.rs`: finds, replaces and documents a constant, a field of a constant, or an arm of a function's `match`.
//!
//! | path | names |
//! |---|---|
//! | `JOIN_THREADS` | a constant |
//! | `QUERIES.threads` | a field of a constant |
//! | `radix_sort[(8, 0 \| 4)]` | the arm of this pattern, with its condition if it has one |

use anyhow::{Context, Result, bail};
use std::ops::Range;

/// The file, from the root of the sources.
pub(crate) const FILE: &str = "kernels/src/policy.rs";

/// Maximum length of a line of documentation.
const LINE: usize = 119;

/// A value of the policy that replaces the present one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) path: String,
    pub(super) value: String,
}

/// Returns `PATH=VALUE,PATH=VALUE`.
pub(super) fn shown(settings: &[Setting]) -> String {
    settings.iter().map(|set| format!("{}={}", set.path, set.value)).collect::<Vec<_>>().join(",")
}

/// Parses `PATH=VALUE[,PATH=VALUE]`.
pub(super) fn settings(text: &str) -> Result<Vec<Setting>> {
    let part = |part: &str| {
        let (path, values) = sweep(part)?;
        let [value] = &values[..] else { bail!("`{part}` has several values; `--sweep` takes them") };
        Ok(Setting { path, value: value.clone() })
    };
    split(text, ',').iter().map(|text| part(text)).collect()
}

/// Parses `PATH=VALUE,VALUE`.
pub(super) fn sweep(text: &str) -> Result<(String, Vec<String>)> {
    let parts = split(text, '=');
    let [path, values] = &parts[..] else {
        bail!("`{text}` is not of the form NAME=VALUE, such as JOIN_THREADS=256");
    };
    let path = path.trim().to_owned();
    let values: Vec<String> = split(values, ',').iter().map(|value| value.trim().to_owned()).collect();
    for value in &values {
        let is_value = |c: char| c.is_ascii_alphanumeric() || "_ (),.<>+-*/[]".contains(c);
        let depth = value
            .chars()
            .fold(0, |depth, c| depth + i32::from("([".contains(c)) - i32::from(")]".contains(c)));
        if value.is_empty() || depth != 0 || !value.chars().all(is_value) {
            bail!("`{value}` is no value of {path}: a number, a tuple or an array is");
        }
    }
    Ok((path, values))
}

/// Splits a text at a character outside of brackets.
fn split(text: &str, at: char) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        depth += i32::from("([".contains(c)) - i32::from(")]".contains(c));
        match parts.last_mut() {
            Some(last) if c != at || depth > 0 => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts
}

/// Returns the place of a value in the text of the file.
fn find(text: &str, path: &str) -> Result<Range<usize>> {
    if let Some((function, pattern)) = path.strip_suffix(']').and_then(|path| path.split_once('[')) {
        let item = item(text, &format!("pub const fn {function}("))?
            .with_context(|| format!("{FILE} has no function `{function}`"))?;
        return arm(text, item, function, pattern.trim());
    }
    let (name, field) = path.split_once('.').map_or((path, None), |(name, field)| (name, Some(field)));
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_word(name) || !field.is_none_or(is_word) {
        bail!("`{path}` names no value: write NAME, NAME.field or function[pattern]");
    }
    let head = format!("pub const {name}: ");
    let item = item(text, &head)?.with_context(|| format!("{FILE} has no constant `{name}`"))?;
    // A long value is on the next line.
    let (head, value) =
        text[item.clone()].split_once(" =").with_context(|| format!("`{name}` in {FILE} has no value"))?;
    let spaces = value.len() - value.trim_start().len();
    let value = item.start + head.len() + 2 + spaces..item.end - 1;
    let Some(field) = field else {
        if text[value.clone()].contains('{') {
            bail!("`{name}` has fields: name one, as {name}.field");
        }
        return Ok(value);
    };
    // The first field of a line, or another one.
    let at = one(text, value, &format!(" {field}: "), || format!("`{name}` has no field `{field}`"))?;
    Ok(at.end..end_of_value(text, at.end))
}

/// Returns the place of an item that begins with `head` at the start of a line, up to its end.
fn item(text: &str, head: &str) -> Result<Option<Range<usize>>> {
    let starts: Vec<usize> = text
        .match_indices(head)
        .map(|(at, _)| at)
        .filter(|at| *at == 0 || text[..*at].ends_with('\n'))
        .collect();
    match starts[..] {
        [] => Ok(None),
        [start] => {
            // A constant ends with a semicolon outside of brackets, a function with its last brace.
            let mut depth = 0;
            for (at, c) in text[start..].char_indices() {
                depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
                if depth == 0 && (c == ';' || (c == '}' && head.contains(" fn "))) {
                    return Ok(Some(start..start + at + 1));
                }
            }
            bail!("`{head}` in {FILE} has no end")
        }
        _ => bail!("{FILE} has `{head}` {} times", starts.len()),
    }
}

/// Returns the only place of `what` within a part of the text.
fn one(text: &str, within: Range<usize>, what: &str, missing: impl Fn() -> String) -> Result<Range<usize>> {
    let found: Vec<usize> =
        text[within.clone()].match_indices(what).map(|(at, _)| within.start + at).collect();
    match found[..] {
        [at] => Ok(at..at + what.len()),
        [] => bail!("{}", missing()),
        _ => bail!("`{}` is there {} times", what.trim(), found.len()),
    }
}

/// Returns the place of the value of a `match` arm.
fn arm(text: &str, item: Range<usize>, function: &str, pattern: &str) -> Result<Range<usize>> {
    let lines = || text[item.clone()].lines().filter_map(|line| Some(line.split_once(" => ")?.0.trim()));
    let missing = || {
        let arms: Vec<String> = lines().map(|arm| format!("`{arm}`")).collect();
        format!("`{function}` has no arm `{pattern}`, only {}", arms.join(", "))
    };
    if lines().filter(|arm| *arm == pattern).count() == 0 {
        bail!("{}", missing());
    }
    let at = one(text, item.clone(), &format!("\n        {pattern} => "), missing)?;
    Ok(at.end..end_of_value(text, at.end))
}

/// Returns the end of a value: the comma outside of brackets, or the last bracket.
fn end_of_value(text: &str, start: usize) -> usize {
    let mut depth = 0;
    let end = text[start..].char_indices().find(|(_, c)| {
        depth += i32::from("([{".contains(*c)) - i32::from(")]}".contains(*c));
        depth < 0 || (depth == 0 && (*c == ',' || *c == '\n'))
    });
    let end = end.map_or(text.len(), |(at, _)| start + at);
    start + text[start..end].trim_end().len()
}

/// Returns the present value of a path.
pub(super) fn value<'a>(text: &'a str, path: &str) -> Result<&'a str> {
    Ok(text[find(text, path)?].trim())
}

/// Returns the text with other values.
pub(super) fn with(text: &str, settings: &[Setting]) -> Result<String> {
    let mut text = text.to_owned();
    for Setting { path, value } in settings {
        let place = find(&text, path)?;
        text.replace_range(place, value);
    }
    Ok(text)
}

/// Returns the text with a measurement at the end of the documentation of the constant or function of a path. A constant's "Untuned."
/// is removed; with a field or an arm it stays, because other fields or arms may be untuned.
pub(super) fn document(text: &str, path: &str, measurement: &str) -> Result<String> {
    let name = path.split(['.', '[']).next().unwrap_or(path);
    let head =
        if path.contains('[') { format!("pub const fn {name}(") } else { format!("pub const {name}: ") };
    let item = item(text, &head)?.with_context(|| format!("{FILE} has no `{name}`"))?;
    let (before, after) = text.split_at(item.start);
    let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
    let first = lines.iter().rposition(|line| !line.starts_with("///")).map_or(0, |last| last + 1);
    let mut docs = lines.split_off(first);
    if name == path {
        docs.retain(|line| line != "/// Untuned.");
        for line in &mut docs {
            *line = line.replace("Untuned. ", "").trim_end_matches(" Untuned.").to_owned();
        }
    }
    // A table ends a paragraph.
    if docs.last().is_some_and(|line| line.starts_with("/// |")) {
        docs.push("///".to_owned());
    }
    let mut line = docs.pop_if(|last| *last != "///").unwrap_or("///".to_owned());
    for word in measurement.split(' ') {
        if line.len() + 1 + word.len() > LINE {
            docs.push(std::mem::replace(&mut line, "///".to_owned()));
        }
        line = line + " " + word;
    }
    docs.push(line);
    lines.extend(docs);
    Ok(lines.join("\n") + "\n" + after)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
//! Tuning.

/// The threads of a block. Untuned.
pub const THREADS: usize = 128;

/// Reads [`THREADS`].
/// Untuned.
pub const ITEMS: u64 = 1 << 22;

/// Tuning of queries. Untuned.
pub const QUERIES: Policy = Policy {
    threads: 128,
    min_blocks: [8, 6, 4],
};

/// The limits of joins.
pub const JOINS: Limits =
    Limits { best: 16, rest: [1, 2] };

/// Returns a shape:
///
/// | a | b |
pub const fn sort(key_bytes: usize, n: usize) -> (usize, usize) {
    match (key_bytes, n) {
        (4, 0 | 4) if n > 9 => (12, 20),
        (4, 0 | 4) => (12, 16),
        _ => (8, 8),
    }
}
";

    fn changed(setting: &str) -> Result<String> {
        with(TEXT, &settings(setting)?)
    }

    #[test]
    fn values_are_replaced() {
        for (setting, expected) in [
            ("THREADS=256", "pub const THREADS: usize = 256;"),
            ("ITEMS=1 << 20", "pub const ITEMS: u64 = 1 << 20;"),
            ("QUERIES.threads=64", "    threads: 64,\n    min_blocks: [8, 6, 4],"),
            ("QUERIES.min_blocks=[8, 8, 4]", "    min_blocks: [8, 8, 4],"),
            ("JOINS.best=8", "\n    Limits { best: 8, rest: [1, 2] };"),
            ("JOINS.rest=[3]", "\n    Limits { best: 16, rest: [3] };"),
            ("sort[(4, 0 | 4)]=(12, 18)", "        (4, 0 | 4) => (12, 18),\n"),
            (
                "sort[(4, 0 | 4) if n > 9]=(12, 18)",
                "(4, 0 | 4) if n > 9 => (12, 18),\n        (4, 0 | 4) => (12, 16),",
            ),
            ("sort[_]=(4, 4)", "        _ => (4, 4),\n"),
        ] {
            let text = changed(setting).unwrap();
            assert!(text.contains(expected), "{setting}: {text}");
            assert_eq!(text.lines().count(), TEXT.lines().count());
        }
        let both = changed("THREADS=256,QUERIES.min_blocks=[1, 2, 3]").unwrap();
        assert!(both.contains("= 256;") && both.contains("[1, 2, 3]"));
        assert_eq!(value(TEXT, "sort[_]").unwrap(), "(8, 8)");
        assert_eq!(value(TEXT, "THREADS").unwrap(), "128");
    }

    #[test]
    fn values_that_do_not_exist_are_named() {
        for (setting, part) in [
            ("BLOCKS=1", "no constant `BLOCKS`"),
            ("THREADS", "NAME=VALUE"),
            ("THREADS=", "no value"),
            ("THREADS=1; evil", "no value"),
            ("THREADS=(1", "no value"),
            ("THREADS=1=2", "NAME=VALUE"),
            ("QUERIES=1", "name one"),
            ("JOINS=1", "name one"),
            ("QUERIES.blocks=1", "no field `blocks`"),
            ("sort[(5, 0)]=1", "no arm `(5, 0)`, only `(4, 0 | 4) if n > 9`"),
            ("other[_]=1", "no function `other`"),
            ("a b=1", "names no value"),
        ] {
            let error = changed(setting).unwrap_err().to_string();
            assert!(error.contains(part), "{setting}: {error}");
        }
        let twice = TEXT.replace("pub const ITEMS", "pub const THREADS");
        assert!(with(&twice, &settings("THREADS=1").unwrap()).unwrap_err().to_string().contains("2 times"));
    }

    #[test]
    fn sweeps_have_values() {
        let (path, values) = sweep("sort[(4, 0 | 4)]=(12, 18), (12, 16)").unwrap();
        assert_eq!(
            (path.as_str(), values),
            ("sort[(4, 0 | 4)]", vec!["(12, 18)".to_owned(), "(12, 16)".to_owned()])
        );
        assert!(settings("THREADS=1,2").is_err());
    }

    #[test]
    fn measurements_are_documented() {
        let text = document(TEXT, "THREADS", "Join: 128: 1.82 ms, 256: 1.75 ms.").unwrap();
        assert!(
            text.contains(
                "\n/// The threads of a block. Join: 128: 1.82 ms, 256: 1.75 ms.\npub const THREADS"
            ),
            "{text}"
        );
        let text = document(TEXT, "ITEMS", "a b").unwrap();
        assert!(text.contains("\n/// Reads [`THREADS`]. a b\npub const ITEMS"), "{text}");
        let text = document(TEXT, "QUERIES.threads", "a b").unwrap();
        assert!(text.contains("\n/// Tuning of queries. Untuned. a b\npub const QUERIES"), "{text}");
        let text = document(TEXT, "sort[_]", &"word ".repeat(40)).unwrap();
        assert!(
            text.contains("/// | a | b |\n///\n/// word word") && text.lines().all(|line| line.len() <= LINE),
            "{text}"
        );
    }

    #[test]
    fn the_policy_of_the_kernels() {
        let root = crate::workspace::Workspace::find().unwrap().root;
        let text = std::fs::read_to_string(root.join(FILE)).unwrap();
        for path in [
            "JOIN_THREADS",
            "QUERIES.min_blocks",
            "JOIN.best_points",
            "BOXES.larger_set",
            "radix_sort[(8, 0 | 4)]",
        ] {
            let value = value(&text, path).unwrap().to_owned();
            assert_eq!(with(&text, &[Setting { path: path.to_owned(), value }]).unwrap(), text);
        }
    }
}
