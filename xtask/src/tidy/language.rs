//! Plain English: banned openings of doc comments, banned phrases in prose, banned identifiers in code.

use super::{File, Finding};

/// Openings of doc comments that do not name the item's purpose, and a better first sentence.
const OPENINGS: [(&str, &str); 11] = [
    ("The same", "name the thing that is alike"),
    ("Those", "name the things"),
    ("That of", "name the thing"),
    ("What", "start with the item: a noun, or a verb in the third person"),
    ("So many", "`Number of …`"),
    ("As many", "`Number of …`"),
    ("Of a", "start with the subject"),
    ("Of the", "start with the subject"),
    ("Of two", "start with the subject"),
    ("Looks at", "say what is computed"),
    ("Room for", "`Allocates …`, or the name of the buffer"),
];

/// Phrases of comments and documents, and what to write. Matched as whole words, in any case.
const PHRASES: [(&str, &str); 22] = [
    ("numbered anew", "renumbered"),
    ("made anew", "rebuilt, or repeated"),
    ("ids of what is left", "remaining ids"),
    ("what others left", "residual work"),
    ("what is looked in", "build side"),
    ("a word for the host", "host notification, device counter"),
    ("words for the host", "host notifications, device counters"),
    ("with so many places", "with this capacity"),
    ("as many places", "name the capacity"),
    ("a point's place", "the point's address, index or position"),
    ("lane's row", "output row"),
    ("a limit that rises", "running threshold"),
    ("rising limit", "running threshold"),
    ("finds no place", "overflows"),
    ("with 0 everything", "say what 0 selects"),
    ("only most often", "say when it does not hold"),
    ("is a matter of timing", "is nondeterministic"),
    ("more than one would think", "give the number or drop it"),
    ("goes its way", "name the traversal"),
    ("metres", "meters"),
    ("neighbour", "neighbor"),
    ("neighbours", "neighbors"),
];

/// Identifiers of a private vocabulary, and the term of the field.
const IDENTIFIERS: [(&str, &str); 22] = [
    ("Asked", "PreparedQuery, DeviceQuery"),
    ("Wanted", "PreparedQuery, ValidatedOptions"),
    ("Sought", "RangeQuery"),
    ("Answers", "QueryBackend"),
    ("queried", "backend"),
    ("Going", "QueryOrderPlan"),
    ("Through", "QueryOrder"),
    ("FoundMut", "RangeResultMut"),
    ("ShowFound", "a callback named visit_…"),
    ("ShowNearest", "a callback named visit_…"),
    ("Room", "ScratchBuffer"),
    ("room_for", "allocate, reserve"),
    ("Lefts", "probe targets"),
    ("Around", "neighbor cells"),
    ("uppers", "top nodes"),
    ("Deep", "overflow nodes"),
    ("Turned", "Swapped"),
    ("crowded_leaves", "overfull_leaves"),
    ("leaves_around", "adjacent_leaves"),
    ("leaves_of", "leaf_of"),
    ("metres", "meters"),
    ("neighbours", "neighbors"),
];

/// Good uses: a file, words of the line, and why.
const ALLOWED: [(&str, &str, &str); 0] = [];

/// Folders and files that are not clean yet. Everything else is checked; this list only gets shorter.
const NOT_YET: [&str; 0] = [];

/// Not prose of this project: this list of words, quotations of kernels, data.
const NOT_CHECKED: [&str; 3] = ["xtask/src/tidy/language.rs", "xtask/src/mutants/list.rs", "data/"];

pub(super) fn check(file: &File) -> Vec<Finding> {
    let path = file.path.as_str();
    let skipped = |prefix: &&str| path.starts_with(*prefix);
    if NOT_YET.iter().any(skipped) || NOT_CHECKED.iter().any(skipped) || is_table(path) {
        return Vec::new();
    }
    let Ok(text) = std::str::from_utf8(&file.bytes) else { return Vec::new() };
    if path.ends_with(".rs") {
        rust(path, text)
    } else if path.ends_with(".md") {
        let lines = text.lines().enumerate();
        lines.flat_map(|(i, line)| words(&PHRASES, path, i + 1, line, line, same_in_any_case)).collect()
    } else {
        Vec::new()
    }
}

/// Tables that the benchmarks write.
fn is_table(path: &str) -> bool {
    path.strip_prefix("benches/results/").is_some_and(|rest| !rest.contains('/') && rest != "README.md")
}

fn rust(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut after_doc = false;
    for (i, line) in text.lines().enumerate() {
        let number = i + 1;
        let doc = doc(line);
        if let Some(doc) = doc.filter(|_| !after_doc)
            && let Some((opening, instead)) = OPENINGS.iter().find(|(opening, _)| opens_with(doc, opening))
            && !is_allowed(path, line)
        {
            let what = format!("a doc comment opens with `{opening}`: {instead}");
            findings.push(Finding { file: path.to_owned(), line: number, what });
        }
        after_doc = doc.is_some();
        let (code, comment) = line.split_at(line.find("//").unwrap_or(line.len()));
        findings.extend(words(&PHRASES, path, number, line, comment, same_in_any_case));
        findings.extend(words(&IDENTIFIERS, path, number, line, code, |a, b| a == b));
    }
    findings
}

/// The text of a line of a doc comment.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    Some(text.trim_start())
}

fn opens_with(text: &str, opening: &str) -> bool {
    text.strip_prefix(opening).is_some_and(|rest| !rest.starts_with(is_word))
}

fn words(
    table: &[(&str, &str)],
    path: &str,
    line_number: usize,
    line: &str,
    text: &str,
    is_equal: fn(&str, &str) -> bool,
) -> Vec<Finding> {
    let found = table.iter().filter(|(words, _)| has_words(text, words, is_equal));
    let found = found.filter(|_| !is_allowed(path, line));
    let finding = |(words, instead): &(&str, &str)| Finding {
        file: path.to_owned(),
        line: line_number,
        what: format!("`{words}`: write {instead}"),
    };
    found.map(finding).collect()
}

fn has_words(text: &str, words: &str, is_equal: fn(&str, &str) -> bool) -> bool {
    text.char_indices().any(|(at, _)| {
        let end = at + words.len();
        text.get(at..end).is_some_and(|part| is_equal(part, words))
            && !text[..at].ends_with(is_word)
            && !text[end..].starts_with(is_word)
    })
}

/// Equality of ASCII text without case.
fn same_in_any_case(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_allowed(path: &str, line: &str) -> bool {
    ALLOWED.iter().any(|(file, words, _)| *file == path && line.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        let file = File { path: path.to_owned(), bytes: text.as_bytes().to_vec() };
        check(&file).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn openings_of_doc_comments() {
        assert_eq!(found("a.rs", "/// What a tree does.\nfn f() {}\n"), [1]);
        assert_eq!(found("a.rs", "//! The same for rows.\n\n    /// So many rows.\n"), [1, 3]);
        // Only the first line of a comment, only whole words, and no comments that are not documentation.
        assert!(found("a.rs", "/// Marks a row.\n/// What follows is a list.\n").is_empty());
        assert!(found("a.rs", "/// Whatever.\n\n// What follows is a list.\n").is_empty());
    }

    #[test]
    fn phrases_of_comments_and_documents() {
        assert_eq!(found("a.rs", "// Ids are Numbered anew.\n"), [1]);
        assert_eq!(found("docs/a.md", "One.\nTwo metres.\n"), [2]);
        assert!(found("a.rs", "let text = \"numbered anew\";\n").is_empty());
        assert!(found("docs/a.md", "kilometres_of\n").is_empty());
        assert!(found("benches/results/join-gpu.md", "metres\n").is_empty());
        assert_eq!(found("benches/results/pages/join.md", "metres\n"), [1]);
    }

    #[test]
    fn identifiers_in_code() {
        assert_eq!(found("a.rs", "struct Asked;\n"), [1]);
        assert!(found("a.rs", "struct AskedFor; // Asked\n").is_empty());
        assert!(found("xtask/src/tidy/language.rs", "struct Asked;\n").is_empty());
    }

    #[test]
    fn lists_are_in_use() {
        assert!(ALLOWED.iter().all(|(_, _, why)| !why.is_empty()));
    }
}
