//! Collective instructions, which several threads execute together, by their names in PTX and in LLVM IR.

use std::fmt;

/// A kind of collective instruction: all participating threads must reach it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Collective {
    Barrier,
    WarpBarrier,
    Shuffle,
    Vote,
    Match,
    Reduce,
    ActiveMask,
    Elect,
    Matrix,
}

impl Collective {
    /// Classifies a PTX opcode such as `bar.warp.sync`.
    pub(super) fn of_opcode(opcode: &str) -> Option<Collective> {
        let (first, rest) = opcode.split_once('.').unwrap_or((opcode, ""));
        match first {
            "bar" if rest.starts_with("warp") => Some(Collective::WarpBarrier),
            "bar" | "barrier" => Some(Collective::Barrier),
            "shfl" => Some(Collective::Shuffle),
            "vote" => Some(Collective::Vote),
            "match" => Some(Collective::Match),
            "redux" => Some(Collective::Reduce),
            "activemask" => Some(Collective::ActiveMask),
            "elect" => Some(Collective::Elect),
            "mma" | "wmma" | "wgmma" | "ldmatrix" | "stmatrix" => Some(Collective::Matrix),
            _ => None,
        }
    }

    /// Classifies an LLVM function such as `llvm.nvvm.barrier.cta.sync.aligned.all`. The names resemble the opcodes.
    pub(super) fn of_intrinsic(name: &str) -> Option<Collective> {
        let name = name.strip_prefix("llvm.nvvm.")?;
        if name.starts_with("barrier") { Some(Collective::Barrier) } else { Collective::of_opcode(name) }
    }

    /// Returns the collectives in inline assembly, a string in the syntax of LLVM IR.
    pub(super) fn in_asm(asm: &str) -> Vec<Collective> {
        let text = asm.replace("\\0A", "\n").replace("\\09", "\t");
        let words = text.split(|c: char| c.is_whitespace() || ";{}".contains(c));
        words.filter_map(Collective::of_opcode).collect()
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Collective::Barrier => "barrier",
            Collective::WarpBarrier => "warp barrier",
            Collective::Shuffle => "shuffle",
            Collective::Vote => "vote",
            Collective::Match => "match",
            Collective::Reduce => "warp reduction",
            Collective::ActiveMask => "activemask",
            Collective::Elect => "elect",
            Collective::Matrix => "matrix operation",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_of_a_collective() {
        for (opcode, intrinsic, kind) in [
            ("bar.sync", "llvm.nvvm.barrier.cta.sync.aligned.all", Collective::Barrier),
            ("bar.red.popc.u32", "llvm.nvvm.barrier0.popc", Collective::Barrier),
            ("barrier.sync", "llvm.nvvm.barrier.cta.sync.all", Collective::Barrier),
            ("bar.warp.sync", "llvm.nvvm.bar.warp.sync", Collective::WarpBarrier),
            ("shfl.sync.idx.b32", "llvm.nvvm.shfl.sync.idx.i32", Collective::Shuffle),
            ("vote.sync.ballot.b32", "llvm.nvvm.vote.ballot.sync", Collective::Vote),
            ("redux.sync.min.u32", "llvm.nvvm.redux.sync.umin", Collective::Reduce),
            ("activemask.b32", "llvm.nvvm.activemask", Collective::ActiveMask),
        ] {
            assert_eq!(Collective::of_opcode(opcode), Some(kind));
            assert_eq!(Collective::of_intrinsic(intrinsic), Some(kind));
        }
    }

    #[test]
    fn what_one_thread_does_alone() {
        for opcode in
            ["ld.global.b32", "mbarrier.init", "membar.gl", "cp.async.wait_all", "fence.sc.gpu", "bra"]
        {
            assert_eq!(Collective::of_opcode(opcode), None, "{opcode}");
        }
        assert_eq!(Collective::of_intrinsic("llvm.nvvm.read.ptx.sreg.tid.x"), None);
        assert_eq!(Collective::of_intrinsic("bar"), None);
        assert_eq!(Collective::in_asm("{ .reg .b32 x;\\0A\\09bar.sync 0;}"), [Collective::Barrier]);
    }
}
