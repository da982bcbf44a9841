//! Parses the report of `ptxas -v` for each function.

/// Resources of a kernel on a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelResources {
    /// Name of the kernel, or of a function that was not inlined.
    pub name: String,
    /// True for a kernel. For other functions only stack and spills are known.
    pub is_entry: bool,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes written to local memory because registers ran out.
    pub spill_stores: u32,
    /// Bytes read back from local memory.
    pub spill_loads: u32,
    /// Bytes of local memory per thread: arrays and spills.
    pub stack: u32,
    /// Bytes of static shared memory per block.
    pub shared: u32,
    /// Named barriers.
    pub barriers: u32,
}

pub(super) fn parse(text: &str) -> Vec<KernelResources> {
    let mut functions: Vec<KernelResources> = Vec::new();
    // The report of an entry has several lines; lines of called functions may come between them.
    let mut entry = None;
    let mut speaking_of = None;
    for line in text.lines() {
        if let Some((_, name)) = line.split_once("Compiling entry function '") {
            let name = name.split('\'').next().unwrap_or_default();
            entry = Some(find_or_add(&mut functions, name));
            speaking_of = entry;
            functions[entry.unwrap_or_default()].is_entry = true;
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            speaking_of = Some(find_or_add(&mut functions, name.trim().trim_matches('\'')));
        } else if line.contains("bytes stack frame") {
            if let Some(function) = speaking_of.map(|index| &mut functions[index]) {
                function.stack = before(line, " bytes stack frame");
                function.spill_stores = before(line, " bytes spill stores");
                function.spill_loads = before(line, " bytes spill loads");
            }
        } else if line.contains("Used ")
            && let Some(function) = entry.map(|index| &mut functions[index])
        {
            function.registers = before(line, " registers");
            function.barriers = before(line, " barriers");
            function.shared = before(line, " bytes smem");
        }
    }
    functions
}

fn find_or_add(functions: &mut Vec<KernelResources>, name: &str) -> usize {
    if let Some(index) = functions.iter().position(|function| function.name == name) {
        return index;
    }
    functions.push(KernelResources { name: name.to_owned(), ..KernelResources::default() });
    functions.len() - 1
}

/// Returns the number before these words; 0 if they are missing, because the report omits zeros.
fn before(line: &str, words: &str) -> u32 {
    let number = line.split_once(words).and_then(|(before, _)| before.rsplit([' ', ',']).next());
    number.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report() {
        let text = "ptxas info    : 0 bytes gmem\n\
            ptxas info    : Compiling entry function 'two' for 'sm_90'\n\
            ptxas info    : Function properties for helper\n\
            \x20   16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n\
            ptxas info    : Function properties for two\n\
            \x20   384 bytes stack frame, 96 bytes spill stores, 92 bytes spill loads\n\
            ptxas info    : Used 128 registers, used 1 barriers, 384 bytes cumulative stack size, 3072 bytes smem\n\
            ptxas info    : Compile time = 3.895 ms\n\
            ptxas info    : Compiling entry function 'one' for 'sm_90'\n\
            ptxas info    : Function properties for one\n\
            \x20   0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 10 registers, used 0 barriers, 352 bytes cmem[0]\n";
        let functions = parse(text);
        assert_eq!(
            functions[0],
            KernelResources {
                name: "two".to_owned(),
                is_entry: true,
                registers: 128,
                spill_stores: 96,
                spill_loads: 92,
                stack: 384,
                shared: 3072,
                barriers: 1,
            }
        );
        assert_eq!((functions[1].name.as_str(), functions[1].is_entry), ("helper", false));
        assert_eq!((functions[1].spill_stores, functions[1].registers), (8, 0));
        assert_eq!((functions[2].name.as_str(), functions[2].registers, functions[2].shared), ("one", 10, 0));
    }
}
