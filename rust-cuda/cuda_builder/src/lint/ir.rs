//! A small parser of LLVM IR text: control flow, calls, and each call's complete inlining chain.
//!
//! The lint reads IR because of this chain: PTX names only the innermost source location of an instruction, which is one
//! line of a library function for every barrier of a program.

use std::collections::HashMap;

/// The functions defined in an IR text, and its debug locations.
#[derive(Debug, Default)]
pub(super) struct Module<'a> {
    pub(super) functions: Vec<Function<'a>>,
    /// `!12 = …` of locations, scopes and files, by number.
    metadata: HashMap<u32, &'a str>,
}

#[derive(Debug)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    /// Basic blocks; the first is the entry.
    pub(super) blocks: Vec<Block<'a>>,
}

#[derive(Debug, Default)]
pub(super) struct Block<'a> {
    pub(super) calls: Vec<Call<'a>>,
    /// Indices of the blocks that may follow.
    pub(super) successors: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Call<'a> {
    /// Line number, from 1.
    pub(super) line: usize,
    pub(super) callee: Callee<'a>,
    /// The number of its debug location.
    debug: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Callee<'a> {
    Function(&'a str),
    Asm(&'a str),
}

impl<'a> Module<'a> {
    pub(super) fn parse(text: &'a str) -> Module<'a> {
        let mut module = Module::default();
        let mut body: Option<Body<'a>> = None;
        for (index, line) in text.lines().enumerate() {
            if let Some(open) = &mut body {
                if line == "}" {
                    module.functions.extend(body.take().map(Body::finish));
                } else {
                    open.line(index + 1, line);
                }
            } else if line.starts_with("define ") {
                body = global_name(line).map(|name| Body { name, ..Body::default() });
            } else if let Some((number, value)) = metadata(line) {
                module.metadata.insert(number, value);
            }
        }
        module
    }

    /// Returns the identity of the source call: each location of its inlining chain, with the scope. Two copies of one
    /// call have equal sites; one function inlined twice has two sites.
    pub(super) fn site(&self, call: &Call<'_>) -> Option<Vec<(u32, u32, u32)>> {
        let mut site = Vec::new();
        let mut next = call.debug;
        while let Some(number) = next {
            let location = *self.metadata.get(&number)?;
            site.push((
                number_in(location, "line: ").unwrap_or(0),
                number_in(location, "column: ").unwrap_or(0),
                number_in(location, "scope: !")?,
            ));
            next = number_in(location, "inlinedAt: !");
        }
        (!site.is_empty()).then_some(site)
    }

    /// Returns a site as text, innermost location first.
    pub(super) fn describe(&self, site: &[(u32, u32, u32)]) -> String {
        let places = site.iter().map(|(line, column, scope)| {
            let file = self.file_of(*scope).unwrap_or("?");
            format!("{file}:{line}:{column}")
        });
        places.collect::<Vec<_>>().join(" in ")
    }

    fn file_of(&self, scope: u32) -> Option<&'a str> {
        let scope = self.metadata.get(&scope)?;
        let file = self.metadata.get(&number_in(scope, "file: !")?)?;
        file.split_once("filename: \"")?.1.split('"').next()
    }
}

/// A function during parsing. Most blocks are defined after the first jump to them.
#[derive(Default)]
struct Body<'a> {
    name: &'a str,
    blocks: Vec<(&'a str, Block<'a>, Vec<&'a str>)>,
}

impl<'a> Body<'a> {
    fn line(&mut self, number: usize, line: &'a str) {
        // Only labels and comments begin in the first column.
        if !line.starts_with([' ', '\t']) {
            if let Some(label) = label(line) {
                self.blocks.push((label, Block::default(), Vec::new()));
            }
            return;
        }
        if self.blocks.is_empty() {
            self.blocks.push(("", Block::default(), Vec::new()));
        }
        let Some((_, block, targets)) = self.blocks.last_mut() else { return };
        if let Some(callee) = callee(line) {
            block.calls.push(Call { line: number, callee, debug: number_in(line, "!dbg !") });
        } else {
            // Only the last instruction of a block names labels; a switch does so over several lines.
            targets.extend(line.split("label %").skip(1).map(name));
        }
    }

    fn finish(self) -> Function<'a> {
        let index: HashMap<&str, usize> =
            self.blocks.iter().enumerate().map(|(index, (label, ..))| (*label, index)).collect();
        let blocks = self.blocks.into_iter().map(|(_, mut block, targets)| {
            block.successors = targets.iter().filter_map(|target| index.get(target).copied()).collect();
            block
        });
        Function { name: self.name, blocks: blocks.collect() }
    }
}

/// `bb2:   ; preds = …`
fn label(line: &str) -> Option<&str> {
    let name = name(line);
    let after = line.trim_start_matches('"').get(name.len()..)?.trim_start_matches('"');
    (!name.is_empty() && after.starts_with(':')).then_some(name)
}

/// The name at the beginning of a text, quoted or not.
fn name(text: &str) -> &str {
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted.split('"').next().unwrap_or_default();
    }
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.$".contains(c)));
    &text[..end.unwrap_or(text.len())]
}

/// The first `@name` of a line.
fn global_name(line: &str) -> Option<&str> {
    line.split_once('@').map(|(_, after)| name(after))
}

/// Returns the callee of a call instruction; `None` for calls through a pointer.
fn callee(line: &str) -> Option<Callee<'_>> {
    let (_, call) = line.split_once("call ")?;
    if let Some((_, asm)) = call.split_once(" asm ") {
        return Some(Callee::Asm(asm.split('"').nth(1)?));
    }
    global_name(call).map(Callee::Function)
}

/// Parses `!12 = distinct !DILocation(…)`; returns only what locations and scopes need.
fn metadata(line: &str) -> Option<(u32, &str)> {
    let (number, value) = line.strip_prefix('!')?.split_once(" = ")?;
    let kept = ["!DILocation(", "!DISubprogram(", "!DILexicalBlock", "!DIFile("];
    let value = value.strip_prefix("distinct ").unwrap_or(value);
    kept.iter().any(|kind| value.starts_with(kind)).then_some((number.parse().ok()?, value))
}

/// Returns the number after the first occurrence of `field`.
fn number_in(text: &str, field: &str) -> Option<u32> {
    let digits = text.split_once(field)?.1;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
define ptx_kernel void @"k$1"(ptr %x, i32 %n) unnamed_addr #0 !dbg !8 {
start:
  %c = icmp eq i32 %n, 7, !dbg !19
  switch i32 %n, label %bb12 [
    i32 10, label %"bb 16"
    i32 11, label %bb12
  ], !dbg !19

"bb 16":                                          ; preds = %start
  tail call void asm sideeffect alignstack "bar.sync 0;", "~{memory}"() #7, !dbg !29, !srcloc !32
  br label %bb12, !dbg !33

bb12:                                             ; preds = %start
  %y = tail call noundef i32 @llvm.nvvm.activemask(), !dbg !19
  ret void, !dbg !57
}

declare void @llvm.trap() #3
!9 = !DIFile(filename: "src/lib.rs", directory: "/k")
!19 = !DILocation(line: 9, column: 10, scope: !8)
!8 = distinct !DISubprogram(name: "k", scope: !10, file: !9, line: 8, unit: !4)
!29 = distinct !DILocation(line: 4, column: 38, scope: !8, inlinedAt: !31)
!31 = !DILocation(line: 12, scope: !8)
"#;

    #[test]
    fn blocks_and_calls() {
        let module = Module::parse(TEXT);
        assert_eq!(module.functions.len(), 1);
        let function = &module.functions[0];
        assert_eq!(function.name, "k$1");
        let flow: Vec<_> = function.blocks.iter().map(|block| block.successors.clone()).collect();
        assert_eq!(flow, [vec![2, 1, 2], vec![2], vec![]]);
        assert_eq!(function.blocks[1].calls[0].callee, Callee::Asm("bar.sync 0;"));
        assert_eq!(function.blocks[2].calls[0].callee, Callee::Function("llvm.nvvm.activemask"));
        assert_eq!(function.blocks[2].calls[0].line, 15);
    }

    #[test]
    fn sites_are_chains() {
        let module = Module::parse(TEXT);
        let blocks = &module.functions[0].blocks;
        let site = module.site(&blocks[1].calls[0]).unwrap();
        assert_eq!(site, [(4, 38, 8), (12, 0, 8)]);
        assert_eq!(module.describe(&site), "src/lib.rs:4:38 in src/lib.rs:12:0");
        assert_eq!(module.site(&blocks[2].calls[0]).unwrap(), [(9, 10, 8)]);
    }
}
