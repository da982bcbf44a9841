//! The mutants: one small mistake each in a kernel of the project, of the kind that people make.

/// A mutant: a text of a kernel, and its replacement.
pub(super) struct Mutant {
    /// Description of the mistake.
    pub(super) what: &'static str,
    /// The source file.
    pub(super) kernel: Kernel,
    /// Text that the file has exactly once …
    pub(super) from: &'static str,
    /// … and its replacement.
    pub(super) to: &'static str,
}

/// A source file of the kernels.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    pub(super) file: &'static str,
    /// The suite's tests of this file, which run first.
    pub(super) tests: &'static [&'static str],
}

const GROUND: Kernel = Kernel { file: "kernels/src/terrain/ground.rs", tests: &["ground::"] };
const SPLINE_SOLVE: Kernel = Kernel { file: "kernels/src/terrain/spline/solve.rs", tests: &["spline::"] };
const SPLINE_EVALUATE: Kernel =
    Kernel { file: "kernels/src/terrain/spline/evaluate.rs", tests: &["spline::"] };
const HISTOGRAM: Kernel =
    Kernel { file: "kernels/src/primitives/radix_sort/histogram.rs", tests: &["radix_sort::"] };
const ONESWEEP: Kernel =
    Kernel { file: "kernels/src/primitives/radix_sort/onesweep.rs", tests: &["radix_sort::"] };
const LOOK_BACK: Kernel =
    Kernel { file: "kernels/src/block/look_back.rs", tests: &["scan::", "radix_sort::", "select::"] };
const WARP_LOOK_BACK: Kernel =
    Kernel { file: "kernels/src/warp/look_back.rs", tests: &["scan::", "select::"] };
const RANK: Kernel =
    Kernel { file: "kernels/src/block/radix_rank.rs", tests: &["radix_sort::", "segmented_sort::"] };
const KEY: Kernel = Kernel {
    file: "kernels/src/thread/radix_key.rs",
    tests: &["radix_sort::", "segmented_sort::", "merge::"],
};
const SEGMENTED_REDUCE: Kernel =
    Kernel { file: "kernels/src/primitives/segmented/reduce.rs", tests: &["segmented::"] };
const SEGMENTED_SCAN: Kernel =
    Kernel { file: "kernels/src/primitives/segmented/scan.rs", tests: &["segmented::"] };
const SEGMENT_WARPS: Kernel =
    Kernel { file: "kernels/src/primitives/segmented_sort/warps.rs", tests: &["segmented_sort::"] };
const SEGMENT_BLOCKS: Kernel =
    Kernel { file: "kernels/src/primitives/segmented_sort/blocks.rs", tests: &["segmented_sort::"] };
const SCAN: Kernel = Kernel { file: "kernels/src/block/scan.rs", tests: &["building_blocks::", "scan::"] };
const WARP_RANK: Kernel =
    Kernel { file: "kernels/src/warp/rank.rs", tests: &["radix_sort::", "segmented_sort::"] };
const WARP_SCAN: Kernel =
    Kernel { file: "kernels/src/warp/scan.rs", tests: &["building_blocks::", "scan::"] };
const TAGS: Kernel = Kernel { file: "kernels/src/kdtree/tags.rs", tests: &["kdtree::"] };
const STACK_FREE: Kernel = Kernel { file: "kernels/src/query/by_nodes.rs", tests: &["kdtree::"] };
const SWAPS: Kernel = Kernel { file: "kernels/src/kdtree/swaps.rs", tests: &["kdtree::"] };
const AXES: Kernel = Kernel { file: "kernels/src/kdtree/axes.rs", tests: &["kdtree::"] };
const IN_PLACE: Kernel = Kernel { file: "kernels/src/kdtree/selection/in_place.rs", tests: &["kdtree::"] };
const GRID: Kernel = Kernel { file: "kernels/src/query/grid.rs", tests: &["rtree::"] };
const RTREE_INSERT: Kernel = Kernel { file: "kernels/src/rtree/insert.rs", tests: &["rtree::"] };
const RTREE_REMOVE: Kernel = Kernel { file: "kernels/src/rtree/remove.rs", tests: &["rtree::"] };
const QUERY_SUMS: Kernel = Kernel { file: "kernels/src/query/sums.rs", tests: &["rtree::"] };
const DISTINCT: Kernel = Kernel { file: "kernels/src/balanced/distinct.rs", tests: &["balanced::"] };
const BALANCED_PARTITION: Kernel =
    Kernel { file: "kernels/src/balanced/robinson/partition.rs", tests: &["balanced::"] };
const COALESCING: Kernel = Kernel { file: "kernels/src/warp/coalescing_buffer.rs", tests: &["balanced::"] };
const PATHS: Kernel = Kernel { file: "kernels/src/balanced/paths.rs", tests: &["balanced::"] };
const BALANCED_SUBTREES: Kernel = Kernel { file: "kernels/src/balanced/subtrees.rs", tests: &["balanced::"] };
const MULTI_GPU: Kernel =
    Kernel { file: "kernels/src/balanced/multi_gpu.rs", tests: &["balanced_multi_gpu::"] };
const CUT: Kernel =
    Kernel { file: "kernels/src/balanced/multi_gpu/cut.rs", tests: &["balanced_multi_gpu::"] };
const TIES: Kernel = Kernel { file: "kernels/src/balanced/coordinate_sort.rs", tests: &["balanced::"] };
const IN_ORDER: Kernel = Kernel { file: "kernels/src/balanced/in_order.rs", tests: &["balanced"] };
const WIDEN: Kernel = Kernel { file: "kernels/src/balanced/widen.rs", tests: &["balanced::"] };
const VERIFY_BALANCED: Kernel = Kernel { file: "kernels/src/balanced/verify.rs", tests: &["balanced::"] };
const TRAVERSAL: Kernel = Kernel { file: "kernels/src/query/traversal.rs", tests: &["query::"] };
const TOGETHER: Kernel = Kernel { file: "kernels/src/query/traversal/together.rs", tests: &["query::"] };
const LIST: Kernel = Kernel { file: "kernels/src/query/nearest/list.rs", tests: &["query::"] };
const QUEUE: Kernel = Kernel { file: "kernels/src/query/nearest/queue.rs", tests: &["query::"] };
const BUCKETS: Kernel = Kernel { file: "kernels/src/query/buckets.rs", tests: &["query::"] };
const WITHIN: Kernel = Kernel { file: "kernels/src/query/within.rs", tests: &["query::"] };
const BEST_K: Kernel = Kernel { file: "kernels/src/thread/best_k.rs", tests: &["kdtree::"] };
const VERIFY: Kernel = Kernel { file: "kernels/src/kdtree/verify.rs", tests: &["kdtree::"] };
const SPLIT: Kernel = Kernel { file: "kernels/src/kdtree/selection/split.rs", tests: &["kdtree::"] };
const SUBTREES: Kernel = Kernel { file: "kernels/src/kdtree/selection/subtrees.rs", tests: &["kdtree::"] };
const SELECTION: Kernel = Kernel { file: "kernels/src/kdtree/selection.rs", tests: &["kdtree::"] };
const FLAT_GRID: Kernel = Kernel { file: "kernels/src/join/boxes/flat_grid.rs", tests: &["boxes::"] };
const MULTI_LAYER: Kernel = Kernel { file: "kernels/src/join/boxes/multi_layer.rs", tests: &["boxes::"] };
const SORT_BASED: Kernel = Kernel { file: "kernels/src/join/boxes/sort_based.rs", tests: &["boxes::"] };
const JOIN_GRID: Kernel = Kernel { file: "kernels/src/join/grid.rs", tests: &["join::"] };
const JOIN_NEIGHBOR_CELLS: Kernel = Kernel { file: "kernels/src/join/neighbor_cells.rs", tests: &["join::"] };
const JOIN_BEST: Kernel = Kernel { file: "kernels/src/join/best.rs", tests: &["join::"] };
const JOIN_THRESHOLD: Kernel = Kernel { file: "kernels/src/join/threshold.rs", tests: &["join::"] };
const JOIN_NESTED: Kernel = Kernel { file: "kernels/src/join/nested.rs", tests: &["join::"] };
const BOXES_BEST: Kernel = Kernel { file: "kernels/src/join/boxes/best.rs", tests: &["boxes_top_k::"] };
const BOXES_LEVELS: Kernel = Kernel { file: "kernels/src/join/boxes/levels.rs", tests: &["boxes::"] };
const BOXES_NESTED: Kernel = Kernel { file: "kernels/src/join/boxes/nested.rs", tests: &["boxes::"] };
const BOXES_RISING: Kernel =
    Kernel { file: "kernels/src/join/boxes/threshold.rs", tests: &["boxes_top_k::"] };
const BOXES_SCORED: Kernel = Kernel { file: "kernels/src/join/boxes/filter.rs", tests: &["boxes_top_k::"] };
const JOIN_APPEND: Kernel = Kernel { file: "kernels/src/join/append.rs", tests: &["join::"] };
const JOIN_HEAPS: Kernel = Kernel { file: "kernels/src/join/heaps.rs", tests: &["join::"] };
const QUADTREE_CODES: Kernel = Kernel { file: "kernels/src/quadtree/codes.rs", tests: &["quadtree::"] };
const QUADTREE_SPLITS: Kernel =
    Kernel { file: "kernels/src/quadtree/codes/splits.rs", tests: &["quadtree::"] };
const QUADTREE_CHILDREN: Kernel =
    Kernel { file: "kernels/src/quadtree/codes/children.rs", tests: &["quadtree::"] };
const QUADTREE_LEVELS: Kernel =
    Kernel { file: "kernels/src/quadtree/levels/chunk.rs", tests: &["quadtree::"] };
const QUADTREE_ORDER: Kernel = Kernel { file: "kernels/src/quadtree/codes/order.rs", tests: &["quadtree::"] };
const QUADTREE_STREAMED: Kernel = Kernel { file: "kernels/src/quadtree/streamed.rs", tests: &["quadtree::"] };
const QUADTREE_VERIFY: Kernel = Kernel { file: "kernels/src/quadtree/verify.rs", tests: &["quadtree::"] };
const SAH_PARTITION: Kernel = Kernel { file: "kernels/src/sah/partition.rs", tests: &["sah::"] };
const SAH_LARGE_VARIANTS: Kernel = Kernel { file: "kernels/src/sah/large_variants.rs", tests: &["sah::"] };
const SAH_LARGE_LEVELS: Kernel = Kernel { file: "kernels/src/sah/large_levels.rs", tests: &["sah::"] };
const SAH_SMALL_LEVELS: Kernel = Kernel { file: "kernels/src/sah/small_levels.rs", tests: &["sah::"] };
const SAH_SMALL_WARPS: Kernel = Kernel { file: "kernels/src/sah/small_warps.rs", tests: &["sah::"] };
const SAH_PREORDER: Kernel = Kernel { file: "kernels/src/sah/preorder.rs", tests: &["sah::"] };
const SAH_TRAVERSAL: Kernel = Kernel { file: "kernels/src/sah/traversal.rs", tests: &["sah::"] };
const SAH_PLANE_RAY: Kernel = Kernel { file: "kernels/src/sah/plane_ray.rs", tests: &["sah::"] };
const RAYS_ALL_HITS: Kernel = Kernel { file: "kernels/src/rays/all_hits.rs", tests: &["sah::"] };
const BVH_CLUSTERS: Kernel = Kernel { file: "kernels/src/bvh/clusters.rs", tests: &["bvh::"] };
const BVH_NODES: Kernel = Kernel { file: "kernels/src/bvh/nodes.rs", tests: &["bvh::"] };
const BVH_REFIT: Kernel = Kernel { file: "kernels/src/bvh/refit.rs", tests: &["bvh::"] };
const BVH_SLABS: Kernel = Kernel { file: "kernels/src/bvh/slabs.rs", tests: &["bvh::"] };
const BVH_STACK: Kernel = Kernel { file: "kernels/src/bvh/stack.rs", tests: &["bvh::"] };
const BVH_DISTANCE: Kernel = Kernel { file: "kernels/src/bvh/distance.rs", tests: &["bvh::searches"] };
const BVH_NEAREST: Kernel = Kernel { file: "kernels/src/bvh/nearest.rs", tests: &["bvh::searches"] };
const BVH_OVERLAP: Kernel = Kernel { file: "kernels/src/bvh/overlap.rs", tests: &["bvh::searches"] };
const BVH_INSIDE: Kernel = Kernel { file: "kernels/src/bvh/inside.rs", tests: &["bvh::insides"] };
const RAY_STACK: Kernel = Kernel { file: "kernels/src/rays/stack.rs", tests: &["bvh::"] };
const RAY_TRACING: Kernel = Kernel { file: "kernels/src/rays/tracing.rs", tests: &["bvh::"] };
const SHADING: Kernel = Kernel { file: "kernels/src/render/shading.rs", tests: &["render::"] };
const OCCLUSION: Kernel = Kernel { file: "kernels/src/render/occlusion.rs", tests: &["render::"] };
const FRAME: Kernel = Kernel { file: "kernels/src/render/frame.rs", tests: &["render::"] };
const BLOCK_BITONIC: Kernel = Kernel { file: "kernels/src/block/bitonic.rs", tests: &["kdtree::"] };
const SELECT_K: Kernel = Kernel { file: "kernels/src/primitives/top_k/select.rs", tests: &["top_k::"] };
const NTH: Kernel = Kernel { file: "kernels/src/block/nth.rs", tests: &["top_k::"] };
const TOP_K: Kernel = Kernel { file: "kernels/src/primitives/top_k/mod.rs", tests: &["top_k::"] };
const FILTER: Kernel = Kernel { file: "kernels/src/primitives/top_k/filter.rs", tests: &["top_k::"] };
const SEGMENTS: Kernel = Kernel { file: "kernels/src/primitives/top_k/segments.rs", tests: &["top_k::"] };
const BITONIC: Kernel = Kernel { file: "kernels/src/warp/bitonic.rs", tests: &["top_k::"] };
const EXPAND: Kernel = Kernel { file: "kernels/src/primitives/expand.rs", tests: &["search::"] };
const MERGE: Kernel = Kernel { file: "kernels/src/primitives/merge.rs", tests: &["merge::"] };
const MERGE_SORT: Kernel = Kernel { file: "kernels/src/primitives/merge_sort.rs", tests: &["merge::"] };
const BLOCK_MERGE: Kernel = Kernel { file: "kernels/src/block/merge.rs", tests: &["merge::"] };

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "histogram: no barrier after clearing the counts",
        kernel: HISTOGRAM,
        from: "            counts.store(i, 0);\n        }\n        thread::sync_threads();",
        to: "            counts.store(i, 0);\n        }",
    },
    Mutant {
        what: "histogram: no barrier after counting",
        kernel: HISTOGRAM,
        from: "        thread::sync_threads();\n\n        for i in strided(t, num_counts, ",
        to: "        for i in strided(t, num_counts, ",
    },
    Mutant {
        what: "histogram: the counter of finished blocks does not wait for the block's additions",
        kernel: HISTOGRAM,
        from: "        thread::sync_threads();\n\n        // The last block to finish",
        to: "        // The last block to finish",
    },
    Mutant {
        what: "histogram: a counter without acquire and release",
        kernel: HISTOGRAM,
        from: "atomic_add(0, 1, Ordering::AcqRel, Scope::Device) + 1",
        to: "atomic_add(0, 1, Ordering::Relaxed, Scope::Device) + 1",
    },
    Mutant {
        what: "histogram: counts by plain addition",
        kernel: HISTOGRAM,
        from: "counts.atomic_add(count, 1, Ordering::Relaxed, Scope::Block);",
        to: "counts.store(count, counts.load(count) + 1);",
    },
    Mutant {
        what: "histogram: one key too many",
        kernel: HISTOGRAM,
        from: "strided(first, self.keys.len(), ",
        to: "strided(first, self.keys.len() + 1, ",
    },
    Mutant {
        what: "histogram: forgets a copy of the counters",
        kernel: HISTOGRAM,
        from: "for copy in 0..HISTOGRAM_COPIES",
        to: "for copy in 1..HISTOGRAM_COPIES",
    },
    Mutant {
        what: "look-back: takes a partial sum for an inclusive one",
        kernel: LOOK_BACK,
        from: "done = words[i].state() == INCLUSIVE;",
        to: "done = words[i].state() != INVALID;",
    },
    Mutant {
        what: "look-back: continues beyond an unpublished word",
        kernel: LOOK_BACK,
        from: "known = known && !done && words[i].state() != INVALID;",
        to: "known = !done && words[i].state() != INVALID;",
    },
    Mutant {
        what: "look-back: publishes without its own sum",
        kernel: LOOK_BACK,
        from: "self.publish(tile, INCLUSIVE, sum.plus(own));",
        to: "self.publish(tile, INCLUSIVE, sum);",
    },
    Mutant {
        what: "look-back: the first tile publishes a partial sum",
        kernel: LOOK_BACK,
        from: "if tile == 0 { INCLUSIVE } else { PARTIAL }",
        to: "PARTIAL",
    },
    Mutant {
        what: "onesweep: tiles by block index instead of tickets",
        kernel: ONESWEEP,
        from: "let tile = self.pass.ticket.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);",
        to: "let tile = thread::block_idx_x();",
    },
    Mutant {
        what: "onesweep: does not clear the words of the next pass",
        kernel: ONESWEEP,
        from: "self.pass.next_words.store(word, N::ZERO);",
        to: "let _ = word;",
    },
    Mutant {
        what: "onesweep: padding that sorts first",
        kernel: ONESWEEP,
        from: "self.load(self.pass.source.keys, tile, len, self.reader.padding())",
        to: "self.load(self.pass.source.keys, tile, len, K::ZERO)",
    },
    Mutant {
        what: "onesweep: no barrier before the counts are summed",
        kernel: ONESWEEP,
        from: "        thread::sync_threads();\n        let (count, before) = rank.sum",
        to: "        let (count, before) = rank.sum",
    },
    Mutant {
        what: "look-back by windows: adds sums before the last inclusive one",
        kernel: WARP_LOOK_BACK,
        from: "if !is_done && lane >= first as usize {",
        to: "if lane >= first as usize {",
    },
    Mutant {
        what: "short segments: one item more than there are lanes",
        kernel: SEGMENT_WARPS,
        from: "end <= items_done + 32)",
        to: "end <= items_done + 33)",
    },
    Mutant {
        what: "onesweep: no barrier before the items are written",
        kernel: ONESWEEP,
        from: "        thread::sync_threads();\n        if len == Self::TILE as u32 {\n            self.write_items",
        to: "        if len == Self::TILE as u32 {\n            self.write_items",
    },
    Mutant {
        what: "onesweep: no barrier before keys take the counters' place",
        kernel: ONESWEEP,
        from: "        thread::sync_threads();\n        scatter(shared_field!(self.smem, phases.keys)",
        to: "        scatter(shared_field!(self.smem, phases.keys)",
    },
    Mutant {
        what: "onesweep: one item too many",
        kernel: ONESWEEP,
        from: "if FULL || rank < len {",
        to: "if FULL || rank <= len {",
    },
    Mutant {
        what: "radix rank: no warp barrier between two leaders",
        kernel: RANK,
        from: "        warp::sync_warp(warp::FULL_MASK);\n        rank\n",
        to: "        rank\n",
    },
    Mutant {
        what: "radix rank: counts the lane itself as below it",
        kernel: RANK,
        from: "(lanes & warp::lane_mask_lt()).count_ones()",
        to: "(lanes & warp::lane_mask_le()).count_ones()",
    },
    Mutant {
        what: "radix rank: no barrier before ranks within the tile",
        kernel: RANK,
        from: "        thread::sync_threads();\n        (count, before)\n",
        to: "        (count, before)\n",
    },
    Mutant {
        what: "keys: negative floats the wrong way round",
        kernel: KEY,
        from: "if order.has(KeyOrder::FLOAT) { all ^ sign } else { 0 }",
        to: "0",
    },
    Mutant {
        what: "keys: forgets that zeros are equal in a digit",
        kernel: KEY,
        from: "digit ^ self.zero_flip & mask } else { digit }",
        to: "digit } else { digit }",
    },
    Mutant {
        what: "keys: forgets that zeros are equal as a whole",
        kernel: KEY,
        from: "key ^ K::MAX } else { key }",
        to: "key } else { key }",
    },
    Mutant {
        what: "segments: ties go to the later item",
        kernel: SEGMENT_WARPS,
        from: "(before == compared && other < lane)",
        to: "(before == compared && other > lane)",
    },
    Mutant {
        what: "segmented reduce: no barrier before the chunk is read",
        kernel: SEGMENTED_REDUCE,
        from: "        warp::sync_warp(warp::FULL_MASK);\n        let len",
        to: "        let len",
    },
    Mutant {
        what: "segmented reduce: the first segment lacks its part before the share",
        kernel: SEGMENTED_REDUCE,
        from: "O::combine(before, first)",
        to: "first",
    },
    Mutant {
        what: "segmented reduce: an end comes after the item at its index",
        kernel: SEGMENTED_REDUCE,
        from: "starts.load(end) <= item as u64",
        to: "starts.load(end) < item as u64",
    },
    Mutant {
        what: "segmented scan: a tile misses the head at its first item",
        kernel: SEGMENTED_SCAN,
        from: "starts.load(s) < begin",
        to: "starts.load(s) <= begin",
    },
    Mutant {
        what: "segments: tickets without a barrier",
        kernel: SEGMENT_BLOCKS,
        from: "            thread::sync_threads();\n            let entry",
        to: "            let entry",
    },
    Mutant {
        what: "segments: begins of digits are not carried to the next tile",
        kernel: SEGMENT_BLOCKS,
        from: "digit_begins.store(t, next + u64::from(count));",
        to: "digit_begins.store(t, next);",
    },
    Mutant {
        what: "segments: no barrier between two digits",
        kernel: SEGMENT_BLOCKS,
        from: "V::ANY, num_items);\n            }\n            thread::sync_threads();\n",
        to: "V::ANY, num_items);\n            }\n",
    },
    Mutant {
        what: "block scan: no barrier before the partial sums are read",
        kernel: SCAN,
        from: "    thread::sync_threads();\n    // Every warp scans the partial",
        to: "    // Every warp scans the partial",
    },
    Mutant {
        what: "block scan: no barrier before the memory is reused",
        kernel: SCAN,
        from: "    thread::sync_threads();\n    (inclusive",
        to: "    (inclusive",
    },
    Mutant {
        what: "block scan: reads the sum of a warp that does not exist",
        kernel: SCAN,
        from: "lane < num_warps",
        to: "lane <= num_warps",
    },
    Mutant {
        what: "warp scan: one lane too few",
        kernel: WARP_SCAN,
        from: "lane_id() >= delta",
        to: "lane_id() > delta",
    },
    Mutant {
        what: "digit match: forgets a bit",
        kernel: WARP_RANK,
        from: "for bit in 0..RADIX_BITS",
        to: "for bit in 0..RADIX_BITS - 1",
    },
    Mutant {
        what: "tags: skips the first point of the level",
        kernel: TAGS,
        from: "if i < full_tree(level) as usize",
        to: "if i <= full_tree(level) as usize",
    },
    Mutant {
        what: "tags: the pivot moves to the left child",
        kernel: TAGS,
        from: "    if i < pivot {",
        to: "    if i <= pivot {",
    },
    Mutant {
        what: "place: one point too many",
        kernel: TAGS,
        from: "own_item(ids.len()) else { return };\n    let rank",
        to: "own_item(ids.len() + 1) else { return };\n    let rank",
    },
    Mutant {
        what: "stack-free: does not look for ties on the far side",
        kernel: STACK_FREE,
        from: "offset * offset <= self.best.bound()",
        to: "offset * offset < self.best.bound()",
    },
    Mutant {
        what: "stack-free: one query too many",
        kernel: STACK_FREE,
        from: "if i * nodes.dims() >= coords.len()",
        to: "if i * nodes.dims() > coords.len()",
    },
    Mutant {
        what: "traversal: a child at the distance of the bound is skipped",
        kernel: TRAVERSAL,
        from: "(left <= visitor.bound(), right <= visitor.bound())",
        to: "(left < visitor.bound(), right < visitor.bound())",
    },
    Mutant {
        what: "traversal: siblings of the start bucket's path are skipped",
        kernel: TRAVERSAL,
        from: "            if distance <= bound {\n                self.pending_distances()",
        to: "            if distance < C::ZERO {\n                self.pending_distances()",
    },
    Mutant {
        what: "traversal: backtracks to the child that was entered",
        kernel: TRAVERSAL,
        from: "(position.code >> (position.level - level - 1)) ^ 1",
        to: "position.code >> (position.level - level - 1)",
    },
    Mutant {
        what: "traversal: points before the bucket are taken too",
        kernel: TRAVERSAL,
        from: "(first + i as u32).wrapping_sub(before) < len",
        to: "first + (i as u32) < before + len",
    },
    Mutant {
        what: "traversal: the filter is not applied",
        kernel: TRAVERSAL,
        from: "visitor.offer(is_near && self.filter.accepts(id), distances[i], id);",
        to: "visitor.offer(is_near, distances[i], id);",
    },
    Mutant {
        what: "together: what is collected last is lost",
        kernel: TOGETHER,
        from: "if is_start || is_end {\n                keep.settle",
        to: "if is_start {\n                keep.settle",
    },
    Mutant {
        what: "together: a node at the distance of the bound is skipped",
        kernel: TOGETHER,
        from: "distance < bound || (distance == bound && self",
        to: "distance < bound || (distance < bound && self",
    },
    Mutant {
        what: "together: points before the bucket are taken too",
        kernel: TOGETHER,
        from: "(first + i as u32).wrapping_sub(before) < len",
        to: "first + (i as u32) < before + len",
    },
    Mutant {
        what: "together: the excluded point is taken",
        kernel: TOGETHER,
        from: "if ids[i] == NO_POINT || ids[i] == excluded {",
        to: "if ids[i] == NO_POINT {",
    },
    Mutant {
        what: "together: no barrier before work is pushed again",
        kernel: TOGETHER,
        from: "        // Before work is pushed again.\n        warp::sync_warp(warp::FULL_MASK);\n",
        to: "",
    },
    Mutant {
        what: "list: a point without room is lost",
        kernel: LIST,
        from: "                        is_full = true;",
        to: "                        distances[i] = C::NAN;",
    },
    Mutant {
        what: "queue: the bound is that of the first",
        kernel: QUEUE,
        from: "C::from_key(shuffle_idx(self.best[T - 1], 31)",
        to: "C::from_key(shuffle_idx(self.best[0], 0)",
    },
    Mutant {
        what: "boxes: a level is made of boxes that are not there yet",
        kernel: BUCKETS,
        from: "            }\n        }\n        thread::sync_threads();",
        to: "            }\n        }",
    },
    Mutant {
        what: "boxes: the least of the left child alone",
        kernel: BUCKETS,
        from: "from.load(axis).min(from.load(2 * dims + axis))",
        to: "from.load(axis)",
    },
    Mutant {
        what: "within: one beyond the row",
        kernel: WITHIN,
        from: "            self.next += 1;",
        to: "            self.next += 2;",
    },
    Mutant {
        what: "k best: ties to the larger id",
        kernel: BEST_K,
        from: "(a.0 == b.0 && a.1 < b.1)",
        to: "(a.0 == b.0 && a.1 > b.1)",
    },
    Mutant {
        what: "k best: pads one entry too few",
        kernel: BEST_K,
        from: "for i in self.len..",
        to: "for i in self.len + 1..",
    },
    Mutant {
        what: "verify: takes the right side for the left",
        kernel: VERIFY,
        from: "child == 2 * ancestor + 1",
        to: "child == 2 * ancestor + 2",
    },
    Mutant {
        what: "top-k: takes any number of candidates for good",
        kernel: SELECT_K,
        from: "        if !is_usable {\n",
        to: "        if !is_usable && found == 0 {\n",
    },
    Mutant {
        what: "n-th: no barrier before the counts are cleared again",
        kernel: NTH,
        from: "        let (digit, before) = find_digit(|digit| counts.load(digit).into(), n);\n        thread::sync_threads();\n",
        to: "        let (digit, before) = find_digit(|digit| counts.load(digit).into(), n);\n",
    },
    Mutant {
        what: "top-k: arrives without order",
        kernel: TOP_K,
        from: "self.words.atomic_add(counter, 1, Ordering::AcqRel, Scope::Device)",
        to: "self.words.atomic_add(counter, 1, Ordering::Relaxed, Scope::Device)",
    },
    Mutant {
        what: "top-k: no barrier before the candidates are written",
        kernel: FILTER,
        from: "        let thread = thread::thread_idx_x() as usize;\n        thread::sync_threads();\n",
        to: "        let thread = thread::thread_idx_x() as usize;\n",
    },
    Mutant {
        what: "top-k of segments: no barrier before the tile is added to",
        kernel: SEGMENTS,
        from: "            let len = tile_len.load(0) as usize;\n            thread::sync_threads();\n",
        to: "            let len = tile_len.load(0) as usize;\n",
    },
    Mutant {
        what: "bitonic sort: the wrong way round",
        kernel: BITONIC,
        from: "(lane & stride == 0) != (lane & size == 0)",
        to: "(lane & stride == 0) == (lane & size == 0)",
    },
    Mutant {
        what: "expand: a segment begins behind its first output",
        kernel: EXPAND,
        from: "begins.load(segment) as usize <= output",
        to: "(begins.load(segment) as usize) < output",
    },
    Mutant {
        what: "selection: ties go to the smaller position instead of the smaller id",
        kernel: SELECTION,
        from: "Ranked::new(self.coord(i, axis).key(), self.id(i))",
        to: "Ranked::new(self.coord(i, axis).key(), i as u32)",
    },
    Mutant {
        what: "selection: target positions are read before they are written",
        kernel: SPLIT,
        from: "        thread::sync_threads();\n        if !self.to.coords.is_empty() {",
        to: "        if !self.to.coords.is_empty() {",
    },
    Mutant {
        what: "selection: keys are read before all are there",
        kernel: SUBTREES,
        from: "            thread::sync_threads();\n            if !by_id && has_equal",
        to: "            if !by_id && has_equal",
    },
    Mutant {
        what: "selection: equal coordinates beside a pivot are not noticed",
        kernel: SUBTREES,
        from: "is_equal |= is_beside && items[i].rank() == before.rank();",
        to: "is_equal |= is_beside && i > ITEMS;",
    },
    Mutant {
        what: "selection: a pivot stays among the points of its left subtree",
        kernel: SUBTREES,
        from: "                items[i] = C::Ranked::LAST;\n            }",
        to: "            }",
    },
    Mutant {
        what: "selection in place: every word is the first",
        kernel: IN_PLACE,
        from: "ids.load(i) as usize * num_words as usize + word as usize",
        to: "ids.load(i) as usize * num_words as usize",
    },
    Mutant {
        what: "swaps: the first step of a merge is not mirrored",
        kernel: SWAPS,
        from: "if mirrors { 2 * stride - 1 - offset } else { stride + offset }",
        to: "stride + offset",
    },
    Mutant {
        what: "swaps: points of a tile are written before all are read",
        kernel: SWAPS,
        from: "                }\n            }\n            thread::sync_threads();",
        to: "                }\n            }",
    },
    Mutant {
        what: "axes in turn: only the last axis on which points differ",
        kernel: AXES,
        from: "found |= u32::from(",
        to: "found = u32::from(",
    },
    Mutant {
        what: "widest axes: a tie goes to the higher axis",
        kernel: AXES,
        from: "axis < dims && other > width",
        to: "axis < dims && other >= width",
    },
    Mutant {
        what: "stack: children at the distance of the k-th best are left out",
        kernel: STACK_FREE,
        from: "if distance <= self.best.bound() {\n                        stack",
        to: "if distance < self.best.bound() {\n                        stack",
    },
    Mutant {
        what: "closest corner: cells that are left still count",
        kernel: STACK_FREE,
        from: "while by_cells && entered >> last > 1 {",
        to: "while false && entered >> last > 1 {",
    },
    Mutant {
        what: "distinct: lane 0 has an old neighbor",
        kernel: DISTINCT,
        from: "if lane == 31 {",
        to: "if lane == 30 {",
    },
    Mutant {
        what: "partition: ranks of small runs count other runs' points",
        kernel: BALANCED_PARTITION,
        from: "let below = mask & warp::lane_mask_lt();",
        to: "let below = warp::lane_mask_lt();",
    },
    Mutant {
        what: "partition: small runs are written before all is read",
        kernel: BALANCED_PARTITION,
        from: "        // All lanes have loaded their points before any lane stores.\n        warp::sync_warp(warp::FULL_MASK);\n",
        to: "",
    },
    Mutant {
        what: "partition: both passes over a run keep the less points",
        kernel: BALANCED_PARTITION,
        from: "level.sides(id, median).1",
        to: "level.sides(id, median).0",
    },
    Mutant {
        what: "coalescing: an item that is stored directly does not count the items before it",
        kernel: COALESCING,
        from: "self.output.store(index, item);",
        to: "self.output.store(index - self.len, item);",
    },
    Mutant {
        what: "paths: a warp does not count the warps before it",
        kernel: PATHS,
        from: "counts.store(warp * CLASSES + thread, total);",
        to: "counts.store(warp * CLASSES + thread, 0);",
    },
    Mutant {
        what: "paths: an array is pending by one level less",
        kernel: PATHS,
        from: "if behind == 0 { 0 } else { (behind - 1) % MAX_PENDING + 1 }",
        to: "if behind == 0 { 0 } else { (behind - 1) % MAX_PENDING }",
    },
    Mutant {
        what: "subtrees: bits are counted before all are there",
        kernel: BALANCED_SUBTREES,
        from: "        thread::sync_threads();\n        // One warp per class",
        to: "        // One warp per class",
    },
    Mutant {
        what: "subtrees: numbers are read before all are there",
        kernel: BALANCED_SUBTREES,
        from: "            // All threads read the numbers that the first axis stores.\n            thread::sync_threads();\n",
        to: "",
    },
    Mutant {
        what: "multi-GPU: ids are not permuted",
        kernel: MULTI_GPU,
        from: "new_ids.store(position, ids.load(id));",
        to: "new_ids.store(position, ids.load(position));",
    },
    Mutant {
        what: "multi-GPU: columns are not rotated all the way around",
        kernel: MULTI_GPU,
        from: "if column + rotation < dims { column + rotation } else { column + rotation - dims }",
        to: "if column + rotation < dims { column + rotation } else { column }",
    },
    Mutant {
        what: "multi-GPU: a point equal to a node above is on its side",
        kernel: MULTI_GPU,
        from: "        beyond += 1;\n    }\n    0",
        to: "        beyond += 1;\n    }\n    -1",
    },
    Mutant {
        what: "multi-GPU: sides are those of the level of the part",
        kernel: MULTI_GPU,
        from: "address >> (level - 1 - above) & 1",
        to: "address & 1",
    },
    Mutant {
        what: "cut: points of other prefixes count",
        kernel: CUT,
        from: "if end == C::Key::BITS || (key ^ C::Key::low(prefix)).bits(end, C::Key::BITS) == C::Key::ZERO {",
        to: "if end > 0 || (key ^ C::Key::low(prefix)).bits(end, C::Key::BITS) == C::Key::ZERO {",
    },
    Mutant {
        what: "cut: places of a warp's row begin again",
        kernel: CUT,
        from: "places[row].1 = before + (members & warp::lane_mask_lt()).count_ones();",
        to: "places[row].1 = (members & warp::lane_mask_lt()).count_ones();",
    },
    Mutant {
        what: "cut: no barrier before a block's counts are reserved",
        kernel: CUT,
        from: "    thread::sync_threads();\n    if thread < CLASSES {\n        begins",
        to: "    if thread < CLASSES {\n        begins",
    },
    Mutant {
        what: "cut: candidates without their last coordinate",
        kernel: CUT,
        from: "for axis in 0..dims {",
        to: "for axis in 0..dims - 1 {",
    },
    Mutant {
        what: "ties: only neighbors are put in order",
        kernel: TIES,
        from: "while to > position {",
        to: "if to > position {",
    },
    Mutant {
        what: "ties: equal points are not noticed",
        kernel: TIES,
        from: "has_equal |= order == 0;",
        to: "",
    },
    Mutant {
        what: "balanced in order: the point that follows a bucket is left out",
        kernel: IN_ORDER,
        from: "offset == bucket_len - 1",
        to: "offset == bucket_len",
    },
    Mutant {
        what: "balanced widen: signs are lost",
        kernel: WIDEN,
        from: "integers.load(i).to_f64()",
        to: "integers.load(i).to_f64().abs()",
    },
    Mutant {
        what: "balanced in order: axes are not rotated back",
        kernel: IN_ORDER,
        from: "to.store(i as usize * dims as usize + to_axis as usize, coord);",
        to: "to.store(i as usize * dims as usize + axis as usize, coord);",
    },
    Mutant {
        what: "traversal: slots without a point are taken",
        kernel: TRAVERSAL,
        from: "        id != NO_POINT\n            && (self.mask",
        to: "        (self.mask",
    },
    Mutant {
        what: "balanced verify: points are fetched before their ids are there",
        kernel: VERIFY_BALANCED,
        from: "    thread::sync_threads();\n    subtree.fetch_points();",
        to: "    subtree.fetch_points();",
    },
    Mutant {
        what: "balanced verify: ancestors above a block's subtree are ignored",
        kernel: VERIFY_BALANCED,
        from: "(THREADS as u32 + above) as usize",
        to: "(node >> 1) as usize",
    },
    Mutant {
        what: "selection: samples are not sorted to the end",
        kernel: BLOCK_BITONIC,
        from: "        while stride >= 32 {",
        to: "        while stride > 32 {",
    },
    Mutant {
        what: "merge: the second run goes first at the edges of tiles",
        kernel: MERGE,
        from: "!O::is_before(&self.lookup, b, a)",
        to: "O::is_before(&self.lookup, a, b)",
    },
    Mutant { what: "merge: keys are not unfolded", kernel: MERGE, from: "O::stored(fold, key)", to: "key" },
    Mutant {
        what: "merge: no barrier before items are replaced",
        kernel: MERGE,
        from: "        // All threads have read their items before the tile is overwritten.\n        thread::sync_threads();\n",
        to: "",
    },
    Mutant {
        what: "merge: a tile that finds its own splits ends where it begins in the first run",
        kernel: MERGE,
        from: "self.split::<O, 32>(diagonal + len)",
        to: "self.split::<O, 32>(diagonal)",
    },
    Mutant {
        what: "merge sort: the last tile of a pair ends where the next pair begins",
        kernel: MERGE,
        from: "let is_last = diagonal + len == self.len();",
        to: "let is_last = false;",
    },
    Mutant {
        what: "merge sort: tiles are written before the warp has set them",
        kernel: MERGE_SORT,
        from: "        tile.sort(len);\n        warp::sync_warp(warp::FULL_MASK);\n",
        to: "        tile.sort(len);\n",
    },
    Mutant {
        what: "block merge: no barrier before items are replaced",
        kernel: BLOCK_MERGE,
        from: "            sync_group(2 * width);\n            self.set_own(&merged);\n",
        to: "            self.set_own(&merged);\n",
    },
    Mutant {
        what: "block merge: the end of a run is not looked for",
        kernel: BLOCK_MERGE,
        from: "let is_inside = path.a + (ITEMS as u32) < middle && path.b + (ITEMS as u32) < path.end;",
        to: "let is_inside = path.a + (ITEMS as u32) < middle;",
    },
    Mutant {
        what: "joins: the last cell of a run is skipped",
        kernel: JOIN_GRID,
        from: "if cell[0] < self.last() { cell[0] + 1 } else { cell[0] }",
        to: "cell[0]",
    },
    Mutant {
        what: "joins: points after a run of cells are visited",
        kernel: JOIN_NEIGHBOR_CELLS,
        from: "hits &= if remaining < GROUP { (1 << remaining) - 1 } else { (1 << GROUP) - 1 };",
        to: "hits &= (1 << GROUP) - 1;",
    },
    Mutant {
        what: "joins: pairs of swapped sets are not swapped back",
        kernel: JOIN_NEIGHBOR_CELLS,
        from: "if self.pairing == Pairing::Swapped {",
        to: "if false {",
    },
    Mutant {
        what: "joins: the deferred segments of a warp begin with the first one",
        kernel: JOIN_THRESHOLD,
        from: "let segment = 1 + (task << shift);",
        to: "let segment = task << shift;",
    },
    Mutant {
        what: "joins: a pair equal to the threshold is dropped",
        kernel: JOIN_BEST,
        from: "if !self.threshold.is_before(pair) {",
        to: "if pair.is_before(self.threshold) {",
    },
    Mutant {
        what: "joins: an overflow is forgotten",
        kernel: JOIN_BEST,
        from: "state.load(state::OVERFLOWED) | u64::from(all > count)",
        to: "0",
    },
    Mutant {
        what: "joins: nested loop: pairs of the previous launch are offered again",
        kernel: JOIN_NESTED,
        from: "let skipped = if i < num_done { num_done.saturating_sub(begin) } else { 0 };",
        to: "let skipped = 0;",
    },
    Mutant {
        what: "joins: nested loop: excluded right points are ignored",
        kernel: JOIN_NESTED,
        from: "        if right_are_all == 0 {",
        to: "        if false {",
    },
    Mutant {
        what: "joins of boxes: nested loop: inverted left boxes have pairs",
        kernel: BOXES_BEST,
        from: "if of.is_valid(self.test.dims) { Some(of) } else { None }",
        to: "Some(of)",
    },
    Mutant {
        what: "joins of boxes: levels far above a box are not searched",
        kernel: BOXES_LEVELS,
        from: " | from(level + below + 1)",
        to: "",
    },
    Mutant {
        what: "joins of boxes: nested loop: boxes that fill the last group have pairs",
        kernel: BOXES_NESTED,
        from: " & !bits_from(len - begin)",
        to: "",
    },
    Mutant {
        what: "joins of boxes: both passes find the pairs of one level",
        kernel: BOXES_RISING,
        from: "finds_equal: !right_pass.finds_equal",
        to: "finds_equal: true",
    },
    Mutant {
        what: "joins of boxes: the weights of a pass that probes the left boxes are not swapped",
        kernel: BOXES_RISING,
        from: "scoring.swapped())",
        to: "scoring)",
    },
    Mutant {
        what: "joins of boxes: the scores of the sets are swapped",
        kernel: BOXES_SCORED,
        from: "let [left_scores, right_scores]",
        to: "let [right_scores, left_scores]",
    },
    Mutant {
        what: "joins: one pair too many is appended",
        kernel: JOIN_APPEND,
        from: "is_full = index >= list.keys.len();",
        to: "is_full = index > list.keys.len();",
    },
    Mutant {
        what: "joins: the ids of heaps overlap their keys",
        kernel: JOIN_HEAPS,
        from: "words.part(2 * len, len)",
        to: "words.part(len, len)",
    },
    Mutant {
        what: "joins: a heap moves the better child up",
        kernel: JOIN_HEAPS,
        from: "if is_before(below, other) {",
        to: "if is_before(other, below) {",
    },
    Mutant {
        what: "quadtree: the point behind the last is looked at",
        kernel: QUADTREE_SPLITS,
        from: "len - i <= leaf_points {",
        to: "len - i < leaf_points {",
    },
    Mutant {
        what: "quadtree: a parent that begins before its child is not found",
        kernel: QUADTREE_CHILDREN,
        from: "self.num_before(level - 1, begin + 1) - 1",
        to: "self.num_before(level - 1, begin)",
    },
    Mutant {
        what: "quadtree: a child with as many points as a leaf may have splits",
        kernel: QUADTREE_CHILDREN,
        from: "if (end - begin) as u32 > self.keys.leaf_points && level",
        to: "if (end - begin) as u32 >= self.keys.leaf_points && level",
    },
    Mutant {
        what: "quadtree: roots that begin within a warp are not found",
        kernel: QUADTREE_CODES,
        from: "partition_point(first, end, begins_by(i)) - 1",
        to: "first - 1",
    },
    Mutant {
        what: "quadtree: ids in leaves are counted with themselves",
        kernel: QUADTREE_ORDER,
        from: "points.load(other) < id",
        to: "points.load(other) <= id",
    },
    Mutant {
        what: "quadtree: points in one cell are counted once",
        kernel: QUADTREE_STREAMED,
        from: "same_cell.count_ones() } else { 1 };",
        to: "1 } else { 1 };",
    },
    Mutant {
        what: "quadtree: level by level, no barrier before sorted points are stored",
        kernel: QUADTREE_LEVELS,
        from: "                ranks.add(child);\n            }\n        }\n        thread::sync_threads();",
        to: "                ranks.add(child);\n            }\n        }",
    },
    Mutant {
        what: "quadtree: level by level, the threads before have no points",
        kernel: QUADTREE_LEVELS,
        from: "self.before.plus(self.total.begins())",
        to: "self.total.begins()",
    },
    Mutant {
        what: "quadtree: level by level, no barrier before points are with their threads",
        kernel: QUADTREE_LEVELS,
        from: "        thread::sync_threads();\n        let (first, mut counts) =",
        to: "        let (first, mut counts) =",
    },
    Mutant {
        what: "quadtree verify: points of a leaf in any order are right",
        kernel: QUADTREE_VERIFY,
        from: "self.ids.load(point as usize - 1) < id",
        to: "self.ids.load(point as usize - 1) != id",
    },
    Mutant {
        what: "quadtree verify: cells of children are not compared",
        kernel: QUADTREE_VERIFY,
        from: "are_right &= self.cells.load((first + k) * D + axis) == expected;",
        to: "are_right &= expected < u32::MAX;",
    },
    Mutant {
        what: "SAH: references above a plane overwrite those below",
        kernel: SAH_PARTITION,
        from: "large.child_chunk(child) as usize",
        to: "large.child_chunk(Side::Below) as usize",
    },
    Mutant {
        what: "SAH: no barrier before the block's output slots are known",
        kernel: SAH_PARTITION,
        from: "    thread::sync_threads();\n    next.store_sides(split, [bases",
        to: "    next.store_sides(split, [bases",
    },
    Mutant {
        what: "SAH: sums by shared memory, no barrier before they are stored",
        kernel: SAH_LARGE_VARIANTS,
        from: "        thread::sync_threads();\n        sum += below;",
        to: "        sum += below;",
    },
    Mutant {
        what: "SAH: references of a retried node are copied to the slots of the child above",
        kernel: SAH_PARTITION,
        from: "reference.large.first_chunk + reference.large.child_chunk(Side::Below);",
        to: "reference.large.first_chunk + reference.large.child_chunk(Side::Above);",
    },
    Mutant {
        what: "SAH: references of leaves are copied from the next level",
        kernel: SAH_LARGE_LEVELS,
        from: "let from_current_level = outcome == Outcome::Leaf;",
        to: "let from_current_level = false;",
    },
    Mutant {
        what: "SAH: small roots of one level have the same references",
        kernel: SAH_LARGE_LEVELS,
        from: "            small_number += 1;\n            small_references += len;\n",
        to: "            small_number += 1;\n",
    },
    Mutant {
        what: "SAH: the child above is placed by the wrong subtree size",
        kernel: SAH_SMALL_LEVELS,
        from: "let above = below.plus(sizes.load(children));",
        to: "let above = below.plus(sizes.load(children + 1));",
    },
    Mutant {
        what: "SAH: every batch of small roots uses the candidates of the first",
        kernel: SAH_SMALL_LEVELS,
        from: "let root = small.roots.load((first_root + block) as usize);",
        to: "let root = small.roots.load(block as usize);",
    },
    Mutant {
        what: "SAH: a cut above is written as wide as a cut below",
        kernel: SAH_PREORDER,
        from: "                    position.nodes += 1;",
        to: "                    position.nodes += 2;",
    },
    Mutant {
        what: "SAH: a root's subtree, no barrier before the triangles of a node are known",
        kernel: SAH_SMALL_WARPS,
        from: "        warp::sync_warp(warp::FULL_MASK);\n        let (model, mut best)",
        to: "        let (model, mut best)",
    },
    Mutant {
        what: "SAH: a root's subtree, no barrier before a node is taken from the stack",
        kernel: SAH_SMALL_WARPS,
        from: "            put(9, word);\n        }\n        warp::sync_warp(warp::FULL_MASK);",
        to: "            put(9, word);\n        }",
    },
    Mutant {
        what: "SAH: a root's subtree, unrecorded decisions are not computed again",
        kernel: SAH_SMALL_WARPS,
        from: "if sizes.load(number).nodes as usize > DECISIONS {",
        to: "if false {",
    },
    Mutant {
        what: "SAH: a root's subtree, references of a leaf are in reverse order",
        kernel: SAH_SMALL_WARPS,
        from: "let rank = (mask & ((1 << triangle) - 1)).count_ones();",
        to: "let rank = (mask >> triangle).count_ones() - 1;",
    },
    Mutant {
        what: "rays: deferred subtrees begin behind the overlap of planes",
        kernel: SAH_TRAVERSAL,
        from: "- self.overlap;\n            let Some",
        to: "+ self.overlap;\n            let Some",
    },
    Mutant {
        what: "rays: planes are not widened by rounding errors",
        kernel: SAH_PLANE_RAY,
        from: "let slack = error * inverse.abs();",
        to: "let slack = 0.0 * inverse.abs();",
    },
    Mutant {
        what: "rays: duplicates of hits from several leaves are kept",
        kernel: RAYS_ALL_HITS,
        from: "if key != last {",
        to: "if key != u64::MAX {",
    },
    Mutant {
        what: "rays: hits are sorted by triangle id",
        kernel: RAYS_ALL_HITS,
        from: "join([hit.triangle, f32_to_key(hit.t), 0, 0])",
        to: "join([f32_to_key(hit.t), hit.triangle, 0, 0])",
    },
    Mutant {
        what: "hierarchies: clusters are merged before the warp sees those of other warps",
        kernel: BVH_CLUSTERS,
        from: "end, Ordering::AcqRel, Scope::Device)",
        to: "end, Ordering::Relaxed, Scope::Device)",
    },
    Mutant {
        what: "hierarchies: a few triangles do not wait for the clusters beside them",
        kernel: BVH_CLUSTERS,
        from: "if num_others > MAX_CLUSTERS {",
        to: "if num_others == 0 {",
    },
    Mutant {
        what: "hierarchies: a child that does not fit becomes a part of its parent",
        kernel: BVH_CLUSTERS,
        from: "} else if fits(larger) {",
        to: "} else if fits([false; 2]) {",
    },
    Mutant {
        what: "hierarchies: the triangles of leaves overlap",
        kernel: BVH_NODES,
        from: "(Subtree::few(first, few), first + few)",
        to: "(Subtree::few(first, few), first + 1)",
    },
    Mutant {
        what: "hierarchies: the first of two threads fits a node",
        kernel: BVH_REFIT,
        from: "- (before + 1);",
        to: "- num_inner(old.load(node).children);",
    },
    Mutant {
        what: "hierarchies: a search ends at the first subtree that is too far away",
        kernel: BVH_STACK,
        from: "if !is_beyond {",
        to: "if is_beyond { return Subtree::ENDED } else {",
    },
    Mutant {
        what: "hierarchies: the last bits of a number, which are a child, count",
        kernel: BVH_STACK,
        from: "f32::from_bits(at.to_bits() & !CHILD) > limit",
        to: "at > limit",
    },
    Mutant {
        what: "hierarchies: the foot of a perpendicular beyond the third side of a triangle counts",
        kernel: BVH_DISTANCE,
        from: "v > 0.0 && w > 0.0 && v + w < all",
        to: "v > 0.0 && w > 0.0",
    },
    Mutant {
        what: "hierarchies: the nearest items of a point are those within the bound in any order",
        kernel: BVH_NEAREST,
        from: "self.visit.point(dist2, item.id());",
        to: "self.visit.point(dist2 * 0.0, item.id());",
    },
    Mutant {
        what: "hierarchies: boxes find items whose boxes do not intersect them",
        kernel: BVH_OVERLAP,
        from: "if self.bounds.intersects(item.bounds()) {",
        to: "if !item.bounds().is_empty() {",
    },
    Mutant {
        what: "hierarchies: a ray through a corner crosses the triangles on both of its sides",
        kernel: BVH_INSIDE,
        from: "(az > pz) == (bz > pz)",
        to: "(az > pz) == (bz >= pz)",
    },
    Mutant {
        what: "hierarchies: boxes are not widened by rounding errors",
        kernel: BVH_SLABS,
        from: "multiply_add(error, inverse[i].abs(), error_at_begin)",
        to: "error_at_begin",
    },
    Mutant {
        what: "hierarchies: rays begin at their origin",
        kernel: BVH_SLABS,
        from: ".max(-2.0 * most)",
        to: ".max(0.0)",
    },
    Mutant {
        what: "hierarchies: rays forget the second child",
        kernel: RAY_STACK,
        from: "            self.push_inside(c);\n",
        to: "",
    },
    Mutant {
        what: "hierarchies: two lanes take one ray",
        kernel: RAY_TRACING,
        from: "first + (done & warp::lane_mask_lt()).count_ones()",
        to: "first + (done & warp::lane_mask_lt()).count_ones() / 2",
    },
    Mutant {
        what: "frames: rays to the sun begin where triangles do",
        kernel: SHADING,
        from: "let position = plus(plus(a, hit.u, to_b), hit.v, to_c);",
        to: "let position = a;",
    },
    Mutant {
        what: "frames: the sky shines through triangles",
        kernel: OCCLUSION,
        from: "if are_occluded.load(i) == 0 {",
        to: "if are_occluded.load(i) < 2 {",
    },
    Mutant {
        what: "frames: what is hidden is lit",
        kernel: FRAME,
        from: "are_occluded.load(i) != 0",
        to: "are_occluded.load(i) > 1",
    },
    Mutant {
        what: "grid with layers: a large box gets the bits of one lane",
        kernel: FLAT_GRID,
        from: "warp_or(if own < num { visit(item, self.cell(&shared, own)) } else { 0 })",
        to: "if own < num { visit(item, self.cell(&shared, own)) } else { 0 }",
    },
    Mutant {
        what: "grid with layers: a stream has gaps",
        kernel: MULTI_LAYER,
        from: "begin + (lanes & warp::lane_mask_lt()).count_ones()",
        to: "begin + warp::lane_id()",
    },
    Mutant {
        what: "sort-based filter: high ends are visited too",
        kernel: SORT_BASED,
        from: "end & 1 != 0 || (j < num_left) == is_left",
        to: "(j < num_left) == is_left",
    },
    Mutant {
        what: "ground filter: windows are widened by cells of the next row",
        kernel: GROUND,
        from: "let after = if step < len - at { step } else { len - 1 - at };",
        to: "let after = step.min(self.len() as u32 - 1 - i as u32);",
    },
    Mutant {
        what: "ground filter: a cell without a height is the greatest of a window",
        kernel: GROUND,
        from: "if a == NO_HEIGHT || (b != NO_HEIGHT && b > a) { b } else { a }",
        to: "a.max(b)",
    },
    Mutant {
        what: "ground filter: the last point of a cell gives its height",
        kernel: GROUND,
        from: "heights.atomic_min(cell, height, Ordering::Relaxed, Scope::Device);",
        to: "heights.atomic_exchange(cell, height, Ordering::Relaxed, Scope::Device);",
    },
    Mutant {
        what: "splines: no barrier between the columns of a panel",
        kernel: SPLINE_SOLVE,
        from: "                self.factor_column(num_points, first, column, least_pivot);\n                thread::sync_threads();",
        to: "                self.factor_column(num_points, first, column, least_pivot);",
    },
    Mutant {
        what: "splines: no barrier between the steps of the back substitution",
        kernel: SPLINE_SOLVE,
        from: "            row -= 1;\n            thread::sync_threads();",
        to: "            row -= 1;",
    },
    Mutant {
        what: "splines: of too many points, those of the first leaves are kept",
        kernel: SPLINE_SOLVE,
        from: "u64::new(distance_from_cell(&frame, self.position(point), first, side), index)",
        to: "u64::new(distance_from_cell(&frame, self.position(point), first, side) & 0, index)",
    },
    Mutant {
        what: "splines: the first cell of a leaf is evaluated by the spline of the leaf before",
        kernel: SPLINE_EVALUATE,
        from: "offsets.load(leaf) <= number",
        to: "offsets.load(leaf) < number",
    },
    Mutant {
        what: "the code of a bucket is that of its last point",
        kernel: GRID,
        from: "layout.begin(i as u32, layout.levels) } else",
        to: "layout.begin(i as u32 + 1, layout.levels) - 1 } else",
    },
    Mutant {
        what: "new points go before points with the same code",
        kernel: RTREE_INSERT,
        from: "tree.code(&grid, slot) <= code)",
        to: "tree.code(&grid, slot) < code)",
    },
    Mutant {
        what: "the slots of new points do not count the new points before",
        kernel: RTREE_INSERT,
        from: "let slot = before + i;",
        to: "let slot = before;",
    },
    Mutant {
        what: "new points are numbered from 0",
        kernel: RTREE_INSERT,
        from: "(new.coords, first_id + number, number as usize)",
        to: "(new.coords, number, number as usize)",
    },
    Mutant {
        what: "repeated ids are not found",
        kernel: RTREE_REMOVE,
        from: "Scope::Device) & bit == 0 {",
        to: "Scope::Device) & bit == 0 && !is_point {",
    },
    Mutant {
        what: "the bit of an id is a plain store",
        kernel: RTREE_REMOVE,
        from: "stays.atomic_and(word, !bit, Ordering::Relaxed, Scope::Device) & bit == 0 {",
        to: "{ let old = stays.load(word); stays.store(word, old & !bit); old } & bit == 0 {",
    },
    Mutant {
        what: "the sum before a bit has the bit",
        kernel: QUERY_SUMS,
        from: "(word & ((1 << bit) - 1)).count_ones()",
        to: "(word & ((2 << bit) - 1)).count_ones()",
    },
];
