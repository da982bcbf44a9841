//! Boxes and partition of large nodes in the variants of [`StagesOptions`].

use super::build_input::BuildInput;
use super::large_levels::Level;
use super::variant_layout::VariantLayout;
use crate::error::Result;
use crate::primitives::scan::ScanKind;
use crate::primitives::segmented::Segments;
use crate::sah::variants::StagesOptions;
use cuda_std::kernel::Kernel;
use kauri_kernels::rays::aabb::BOX_WORDS;
use kauri_kernels::sah::large_variants::{
    sah_boxes_shared, sah_chunk_boxes, sah_chunk_heads, sah_count, sah_node_counts, sah_scatter,
    sah_sort_shared,
};
use kauri_kernels::sah::partition::{sah_boxes, sah_sort};
use kauri_kernels::thread::operator::{Min, Sum};
use std::time::Instant;

impl Level<'_> {
    /// Launches a kernel with a block per chunk: `Shared` exchanges values through shared memory, `Shuffle` by shuffles.
    ///
    /// # Safety
    /// The kernels' conditions.
    unsafe fn launch_chunks<'a, Shared, Shuffle>(
        &self,
        stages: StagesOptions,
        args: Shared::Args<'a>,
    ) -> Result<()>
    where
        Shared: Kernel,
        Shuffle: Kernel<Args<'a> = Shared::Args<'a>>,
    {
        // SAFETY: passed on to the caller.
        unsafe {
            if stages.by_shared_memory {
                self.input.stream.launch::<Shared>(self.num_chunks(), args)
            } else {
                self.input.stream.launch::<Shuffle>(self.num_chunks(), args)
            }
        }
    }

    /// [`partition`](Self::partition) in a variant.
    ///
    /// # Safety
    /// As [`partition`](Self::partition).
    pub(super) unsafe fn partition_by(&self, variant: &VariantLayout) -> Result<()> {
        let (stages, num_chunks) = (variant.stages, self.num_chunks());
        let (keys, counts) = (self.view(self.layout.keys), self.view(self.layout.counts));
        // SAFETY: passed on to the caller.
        unsafe {
            if stages.sort_by_scans || stages.boxes_by_reductions {
                let chunk_nodes = self.view(self.layout.chunk_nodes).read_only();
                let args = (self.nodes, chunk_nodes, self.view(variant.heads), self.view(variant.offsets));
                self.input.stream.launch_items::<sah_chunk_heads>(num_chunks, args)?;
            }
            self.timed(0, || {
                if stages.boxes_by_reductions {
                    self.reduce_boxes(variant)
                } else {
                    self.launch_chunks::<sah_boxes_shared, sah_boxes>(stages, (self.references(), keys))
                }
            })?;
            self.timed(1, || {
                if stages.sort_by_scans {
                    self.sort_by_scans(variant)
                } else {
                    let args = (self.splits(), counts, self.next);
                    self.launch_chunks::<sah_sort_shared, sah_sort>(stages, args)
                }
            })
        }
    }

    /// Does a step of the partition, and adds its time if the options ask for it.
    fn timed(&self, step: usize, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let BuildInput { stream, options, step_times, .. } = self.input;
        if !options.stages.time_steps {
            return work();
        }
        stream.synchronize()?;
        let start = Instant::now();
        work()?;
        stream.synchronize()?;
        let mut times = step_times.get();
        times[step] += start.elapsed();
        step_times.set(times);
        Ok(())
    }

    /// Computes the boxes of chunks, and reduces them to those of nodes: a segmented reduction for each key.
    ///
    /// # Safety
    /// As [`partition`](Self::partition); the offsets are known.
    unsafe fn reduce_boxes(&self, variant: &VariantLayout) -> Result<()> {
        let (num_nodes, num_chunks) = (self.nodes.len(), self.num_chunks() as usize);
        let (chunk_keys, keys) = (self.view(variant.chunk_keys), self.view(self.layout.keys));
        let offsets = self.view(variant.offsets).read_only();
        // SAFETY: the rows have an element per chunk and per node, and there is an offset for each node.
        unsafe {
            let args = (self.references(), chunk_keys);
            self.launch_chunks::<sah_chunk_boxes<1>, sah_chunk_boxes<32>>(variant.stages, args)?;
            (0..BOX_WORDS).try_for_each(|i| {
                let from = chunk_keys.part(i * num_chunks, num_chunks).read_only();
                let to = keys.part(i * num_nodes, num_nodes);
                variant.min_keys.reduce::<u32, Min>(self.temp, from, offsets, to)
            })
        }
    }

    /// Partitions references by segmented scans of the chunks' counts.
    ///
    /// # Safety
    /// As [`partition`](Self::partition); the heads and the boxes are known.
    unsafe fn sort_by_scans(&self, variant: &VariantLayout) -> Result<()> {
        let (stages, num_chunks) = (variant.stages, self.num_chunks() as usize);
        let heads = self.view(variant.heads).read_only();
        let (counts, before) = (self.view(variant.chunk_counts), self.view(variant.before_chunks));
        // SAFETY: passed on to the caller.
        unsafe {
            self.launch_chunks::<sah_count<1>, sah_count<32>>(stages, (self.splits(), counts))?;
            let counts = counts.read_only();
            for side in 0..2 {
                let from = counts.part(side * num_chunks, num_chunks);
                let to = before.part(side * num_chunks, num_chunks);
                let sums = &variant.count_sums;
                sums.scan::<u32, Sum>(self.temp, from, Segments::Heads(heads), to, ScanKind::Exclusive)?;
            }
            let before = before.read_only();
            let args = (self.splits(), before, self.next);
            self.launch_chunks::<sah_scatter<1>, sah_scatter<32>>(stages, args)?;
            let args = (self.nodes, counts, before, self.view(self.layout.counts));
            self.input.stream.launch_items::<sah_node_counts>(self.nodes.len() as u64, args)
        }
    }
}
