//! A small parser of PTX text: functions, their parameters, and instructions with their source lines; and [`split`], which cuts a
//! text into its entries.
//!
//! It supports the subset of PTX that LLVM prints, as far as the lint and the cut need it.

mod split;

pub use split::{Entry, SourceLines, split};

/// The functions and variables of a PTX text, and the source files of its line directives.
#[derive(Debug, Default)]
pub struct Module<'a> {
    /// Functions in the order of the text, declarations included.
    pub functions: Vec<Function<'a>>,
    /// Variables outside of functions, in the order of the text.
    pub variables: Vec<Variable<'a>>,
    /// Source files by the number that [`Loc::file`] gives.
    pub files: Vec<(u32, &'a str)>,
}

/// An entry (`.entry`) or a device function (`.func`).
#[derive(Debug)]
pub struct Function<'a> {
    /// Its name in the text.
    pub name: &'a str,
    /// First line of the header, from 1.
    pub line: usize,
    /// Last line of the body or of the declaration.
    pub end: usize,
    /// Whether the host can launch it.
    pub is_entry: bool,
    /// True for a declaration without a body.
    pub is_declaration: bool,
    /// Its parameters in order.
    pub params: Vec<Param>,
    /// The line of the first `.local` variable: an array that did not fit in registers.
    pub local: Option<usize>,
    /// Its instructions in order.
    pub instructions: Vec<Instruction<'a>>,
}

/// A variable of the module: global, constant or shared memory.
#[derive(Debug, PartialEq, Eq)]
pub struct Variable<'a> {
    /// Its name in the text.
    pub name: &'a str,
    /// First line, from 1.
    pub line: usize,
    /// Last line.
    pub end: usize,
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its size in bytes.
    pub bytes: u32,
    /// Whether it is an array of bytes, which is how a struct or slice is passed.
    pub aggregate: bool,
}

/// One instruction.
#[derive(Debug)]
pub struct Instruction<'a> {
    /// Line number.
    pub line: usize,
    /// Source location, if the text has one.
    pub loc: Option<Loc>,
    /// The operation with all its suffixes: `ld.global.nc.b32`.
    pub opcode: &'a str,
    /// The operands as text.
    pub operands: &'a str,
    /// True for inline assembly (`asm!`).
    pub inline_asm: bool,
}

/// A source location. For inlined code, LLVM gives the location in the inlined function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loc {
    /// File number, see [`Module::files`].
    pub file: u32,
    /// The line, 0 if the instruction has no single line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl Instruction<'_> {
    /// True if the opcode has this part: `global` of `ld.global.b32`.
    pub fn has(&self, part: &str) -> bool {
        self.opcode.split('.').any(|other| other == part)
    }
}

impl<'a> Module<'a> {
    /// Parses a text. Unknown lines are skipped.
    pub fn parse(text: &'a str) -> Module<'a> {
        let mut reader = Reader::default();
        for (index, line) in text.lines().enumerate() {
            reader.line(index + 1, line);
        }
        reader.module
    }

    /// Returns the source location of the instruction on a line: `FILE:LINE:COLUMN`.
    pub fn source_of(&self, line: usize) -> Option<String> {
        let function =
            self.functions.iter().find(|function| (function.line..=function.end).contains(&line))?;
        let loc = function.instructions.iter().find(|instruction| instruction.line == line)?.loc?;
        let file = self.file(loc.file).filter(|_| loc.line > 0)?;
        Some(format!("{file}:{}:{}", loc.line, loc.column))
    }

    /// The source file with this number.
    pub fn file(&self, number: u32) -> Option<&'a str> {
        self.files.iter().find(|(other, _)| *other == number).map(|(_, name)| *name)
    }
}

#[derive(Default)]
struct Reader<'a> {
    module: Module<'a>,
    /// Open braces of the body being read; none outside of bodies.
    depth: usize,
    /// Whether a function's header has begun and its body has not.
    in_header: bool,
    /// Whether a variable has begun and its last line has not come.
    in_variable: bool,
    loc: Option<Loc>,
    inline_asm: bool,
}

impl<'a> Reader<'a> {
    fn line(&mut self, number: usize, line: &'a str) {
        let line = line.trim();
        match line {
            "// begin inline asm" => self.inline_asm = true,
            "// end inline asm" => self.inline_asm = false,
            _ => {}
        }
        let code = line.split("//").next().unwrap_or_default().trim();
        if self.depth > 0 {
            self.body(number, code);
        } else if self.in_header {
            self.header(number, code);
        } else if self.in_variable {
            self.variable(number, code);
        } else if let Some(function) = begin_function(number, code) {
            self.module.functions.push(function);
            self.in_header = true;
            self.loc = None;
            // The rest of the line may hold parameters, and with none of them the header's end.
            self.header(number, code.split_once('(').map_or("", |(_, rest)| rest));
        } else if let Some(name) = begin_variable(code) {
            self.module.variables.push(Variable { name, line: number, end: number });
            self.in_variable = true;
            self.variable(number, code);
        } else if code.starts_with(".file") {
            // A path may contain `//`, so comments are not removed here.
            self.module.files.extend(file(line));
        }
    }

    fn variable(&mut self, number: usize, code: &str) {
        if let Some(variable) = self.module.variables.last_mut() {
            variable.end = number;
        }
        self.in_variable = !code.ends_with(';');
    }

    fn header(&mut self, number: usize, code: &'a str) {
        let Some(function) = self.module.functions.last_mut() else { return };
        // On the first line of a `.func` the returned value comes before the name; it is no parameter.
        let code = code.rsplit_once(") ").map_or(code, |(_, after)| after);
        function.params.extend(code.split(',').filter_map(param));
        // An attribute may follow on the same line: `.noreturn;`.
        if code.ends_with('{') {
            self.in_header = false;
            self.depth = 1;
        } else if code.ends_with(';') {
            self.in_header = false;
            function.is_declaration = true;
            function.end = number;
        }
    }

    fn body(&mut self, number: usize, code: &'a str) {
        let mut rest = code;
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('{') {
                self.depth += 1;
                rest = after;
            } else if let Some(after) = rest.strip_prefix('}') {
                self.depth -= 1;
                if self.depth == 0 {
                    if let Some(function) = self.module.functions.last_mut() {
                        function.end = number;
                    }
                    return;
                }
                rest = after;
            } else if let Some(after) = skip_label(rest) {
                rest = after;
            } else if rest.is_empty() {
                return;
            } else {
                let (statement, after) = rest.split_once(';').unwrap_or((rest, ""));
                self.statement(number, statement.trim());
                rest = after;
            }
        }
    }

    fn statement(&mut self, number: usize, statement: &'a str) {
        if let Some(loc) = loc(statement) {
            self.loc = Some(loc);
            return;
        }
        let (loc, inline_asm) = (self.loc, self.inline_asm);
        let Some(function) = self.module.functions.last_mut() else { return };
        if statement.starts_with(".local") {
            function.local.get_or_insert(number);
        }
        // Skips a predicate: `@%p1` or `@!%p1`.
        let code = match statement.strip_prefix('@') {
            Some(predicated) => {
                predicated.split_once(char::is_whitespace).map_or("", |(_, code)| code.trim_start())
            }
            None => statement,
        };
        if code.starts_with(|c: char| c.is_ascii_lowercase()) {
            let (opcode, operands) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
            let operands = operands.trim();
            function.instructions.push(Instruction { line: number, loc, opcode, operands, inline_asm });
        }
    }
}

fn begin_function(line: usize, code: &str) -> Option<Function<'_>> {
    let is_entry = code.contains(".entry ");
    let after = code.split_once(if is_entry { ".entry " } else { ".func " })?.1.trim_start();
    // `.func (.param .b32 func_retval0) name(`
    let after = if after.starts_with('(') { after.split_once(')')?.1.trim_start() } else { after };
    let name = after.split(['(', ' ', ';']).next()?;
    Some(Function {
        name,
        line,
        end: line,
        is_entry,
        is_declaration: false,
        params: Vec::new(),
        local: None,
        instructions: Vec::new(),
    })
}

/// `.visible .global .align 4 .b8 name[28] = {` begins a variable.
fn begin_variable(code: &str) -> Option<&str> {
    let is_space = |word: &str| [".global", ".const", ".shared"].contains(&word);
    let head = code.split(['[', '=', ';']).next()?;
    head.split_whitespace().any(is_space).then(|| head.split_whitespace().last()).flatten()
}

/// `.param .u64 .ptr .align 1 name` is 8 bytes, `.param .align 8 .b8 name[24]` an aggregate of 24.
fn param(text: &str) -> Option<Param> {
    let text = text.trim().strip_prefix(".param")?;
    let element =
        text.split_whitespace().find_map(|word| word.strip_prefix(".")?.get(1..)?.parse::<u32>().ok())? / 8;
    match text.split_once('[') {
        None => Some(Param { bytes: element, aggregate: false }),
        Some((_, count)) => {
            let count: u32 = count.split(']').next()?.parse().ok()?;
            Some(Param { bytes: count * element, aggregate: true })
        }
    }
}

/// `.loc 1 20 5`; more may follow.
fn loc(statement: &str) -> Option<Loc> {
    let mut words = statement.split_whitespace();
    words.next().filter(|first| *first == ".loc")?;
    let mut next = || words.next()?.parse().ok();
    Some(Loc { file: next()?, line: next()?, column: next()? })
}

/// `.file 1 "path"`
fn file(line: &str) -> Option<(u32, &str)> {
    let (number, name) = line.strip_prefix(".file")?.trim_start().split_once(char::is_whitespace)?;
    Some((number.parse().ok()?, name.trim().split('"').nth(1)?))
}

/// The text after `$L__BB0_2:`, if it begins with a label.
fn skip_label(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$' || c == '%'))?;
    if end == 0 { None } else { text[end..].strip_prefix(':') }
}

#[cfg(test)]
mod tests;
