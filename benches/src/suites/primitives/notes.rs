//! Notes on the rows that miss a goal: what bounds them (by Nsight Compute on an H200 with 134M items), what was tried,
//! and what is next. The goals: the rival's time everywhere, and 0.9 of the copy bandwidth from 128M items on.

use crate::report::Note;

const LOOK_BACK: &str = "0.7 to 0.8 of the copy bandwidth: bytes on their way. 3.0 TB/s, 16 % of the issue slots, most of a warp's time is the \
    barrier behind the look-back; 128 registers and so 2 blocks a multiprocessor. Tried: 7 to 24 rows by 2 to 4 blocks, look-back \
    by 1 to 8 words a lane. Next: a persistent grid that loads its next tile while it looks back";

const SELECT: &str = "0.65 to 0.8 of the copy bandwidth: bytes on their way while tiles look back. 2.5 to 3.2 TB/s, 42 to 61 % of the issue \
    slots, 55 registers and so 4 blocks a multiprocessor; most of a warp's time is the barrier behind the look-back. Tried: 4 to 8 \
    rows by 4 to 6 blocks. Next: masks of 64 bits, which allow more rows";

const PARTITION: &str = "instructions: 88 for an item of one long segment, 271 where they are of 1000 and 420 where they are of 8, 61 to 66 % of the \
    issue slots at 64 registers and 4 blocks; the marks before them take 0.26 ms at 0.85 TB/s, of which most is the barrier of \
    the look-back. Next: a search for a warp's first segment, and a walk from there";

const MERGE_SORT: &str = "passes: each of the 15 over all keys reaches 3.1 TB/s (of pairs 3.4) with 57 % (50 %) of the issue slots, and 45 % of \
    the accesses to shared memory meet others. Next: more than two runs in a pass";

const SUPER_KEY: &str = "registers: 123 and so 2 blocks a multiprocessor, for the points that equal coordinates look up; 1.5 to 2.0 TB/s, 26 to 36 % \
    of the issue slots. Next: a merge of keys alone that leaves equal ones to a second kernel";

const BOUNDS: &str = "loads on their way: 2.7 TB/s, 47 % of the issue slots, most of a warp's time is waiting for memory. Next: 16 bytes a load, and \
    more of them";

const SEGMENTED_SCAN: &str = "latency: 103 to 110 registers and so 2 blocks of 8 warps, 28 to 34 % of the issue slots and of the memory's rate on \
    an H200; warps wait for the barrier behind the look-back. 100M items in segments of 8 take 0.51 ms; with a byte for each item that marks heads they \
    took 0.56, and 0.68 when each warp searched for its starts. Tried with marks: 6, 7 and 8 rows (0.70, 0.64, 0.60 ms for 134M; of 8 two kernels \
    spill), 3 blocks. Next: bits of heads in shared memory in place of registers, for more rows";

const SEGMENTED_REDUCE: &str = "of 100M items on an H200: segments of 1000 take 61 to 64 % of the memory's rate, one segment 74 %, segments of 8 \
    42 % and as much of the issue slots, with 58 to 61 registers and 4 blocks. The rival is 1.4 to 1.9 x as fast for up to 10M items in segments \
    of 1000, and 6 to 130 x slower for those of 8 and for one long one. Next: shorter shares of few items";

const SEGMENTED_SORT_SHORT: &str =
    "instructions: 79 % of the issue slots. Next: fewer of them for an exchange";

const SEGMENTED_SORT_LONG: &str = "of 1M items: not profiled since a block sorts a segment of up to 5120 items in shared memory; from 10M items on \
    kauri is ahead";

const MERGE: &str = "instructions: 56 % of the issue slots, 34 % of the accesses to shared memory meet others, 3.0 TB/s; with 8 lanes the \
    splits took 50 us more. Tried: 17 and 23 items a thread, 512 threads, splits by 8, 4 and 2 lanes (0.366, 0.354, 0.346 ms). \
    Next: splits of neighboring tiles from each other";

const EQUAL_KEYS: &str =
    "random reads: each comparison of equal keys looks up both points. Next: bring the next coordinate along";

const TOP_K: &str = "beside one read of the input: the sample, 36 us of 32-bit and 42 of 64-bit keys by 16 samples a lane, which waits for \
    its loads, places of the candidates, 4 to 17 us and to 38 of 64-bit keys, and five launches. Tried: 4, 8 and 16 samples a \
    lane. Next: more samples on their way at once, candidates ranked within buckets";

const RANDOM: &str = "sectors: 2.9 TB/s of random 64-byte pieces, for both systems. Tried: 2, 4 and 8 items of a thread at once";

const SORT: &str = "shared memory: 58 to 62 % of its cycles, half of the accesses meet others, 33 to 47 % of the issue slots; 80 registers \
    and so 2 blocks a multiprocessor. Tried: eight shapes of tiles. Next: ranks by warps in registers";

const SEGMENTED_SORT_MIDDLE: &str = "instructions: 59 % of the issue slots, 62 % of the cycles of shared memory; every segment goes \
    through all digits. Next: tiles of several segments";

const HISTOGRAM: &str =
    "instructions: 75 % of the issue slots, and 70 % of the accesses to shared memory meet others";

const DIGITS: &str = "shared memory: 92 % of its cycles; a count a digit and key";

const EXPAND: &str = "instructions: 69 to 88 % of the issue slots; a search and a walk for each output";

const OFFSETS: &str = "bytes: counts are written and read once more, at 3.2 TB/s, then scanned";

const SEGMENTED_TOP_K: &str = "instructions: 63 to 71 % of the issue slots in sorting networks and tiles. Next: a threshold from \
    the first items of a segment";

const AT_THE_COPY: &str = "0.94 to 1.07 of the copy bandwidth: what is left to gain is a few percent";

const SMALL: &str = "launches and latency: two kernels";

const SEARCH: &str = "latency of dependent reads: of random queries 7 % of the issue slots with all the warps there are, of those in order, \
    and of ranges, 66 to 69 %";

/// The first matching note applies to a row.
pub const NOTES: &[Note] = &[
    Note::new("segmented scan*", "", 0, SEGMENTED_SCAN),
    Note::new("segmented reduce*", "", 0, SEGMENTED_REDUCE),
    Note::new("segmented sort*", "u32/u32, segments of 16", 0, SEGMENTED_SORT_SHORT),
    Note::new("segmented sort*", "u32/u32, segments of 5000", 0, SEGMENTED_SORT_LONG),
    Note::new("segmented sort*", "", 0, SEGMENTED_SORT_MIDDLE),
    Note::new("segmented top-k*", "", 0, SEGMENTED_TOP_K),
    Note::new("radix sort*", "", 0, SORT),
    Note::new("histogram", "", 0, HISTOGRAM),
    Note::new("digit histogram", "", 0, DIGITS),
    Note::new("expand", "", 0, EXPAND),
    Note::new("offsets of counts", "", 0, OFFSETS),
    Note::new("scan*", "", 10_000_000, LOOK_BACK),
    Note::new("select*", "", 10_000_000, SELECT),
    Note::new("partition below", "", 10_000_000, SELECT),
    Note::new("unique", "", 10_000_000, SELECT),
    Note::new("partition by class", "", 0, PARTITION),
    Note::new("bounds", "", 0, BOUNDS),
    Note::new("merge", "u32", 10_000_000, MERGE),
    Note::new("merge sort", "", 0, MERGE_SORT),
    Note::new("super key sort", "f32 x 4, 256 distinct", 0, EQUAL_KEYS),
    Note::new("super key sort", "", 0, SUPER_KEY),
    Note::new("top-k k=*", "", 100_000_000, TOP_K),
    Note::new("gather", "12 bytes, in order", 10_000_000, AT_THE_COPY),
    Note::new("gather", "16 bytes, in order", 10_000_000, AT_THE_COPY),
    Note::new("scatter", "12 bytes, in order", 10_000_000, AT_THE_COPY),
    Note::new("gather", "", 0, RANDOM),
    Note::new("scatter", "", 0, RANDOM),
    Note::new("lower bound", "", 0, SEARCH),
    Note::new("equal range", "", 0, SEARCH),
    Note::new("reduce*", "", 100_000_000, AT_THE_COPY),
    Note::new("reduce*", "", 0, SMALL),
    Note::new("merge", "", 0, SMALL),
];
