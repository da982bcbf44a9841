//! The merge sort of points by super key: the kernels of [`merge_sort`](super::merge_sort) in a family of their own.

use super::merge::{THREADS, merge_min_blocks};
use super::merge_sort::{SortedRuns, TileSort, sort_min_blocks};
use crate::block::merge::TileSmem;
use crate::policy::{MERGE, PER_ITEM_THREADS};
use crate::thread::carried::Pairs;
use crate::thread::coord::Float;
use crate::thread::order::SuperKey;
use crate::thread::radix_key::Fold;
use cuda_std::prelude::*;

/// Sorts each tile, like `primitives_sort_tiles`.
#[kernel(
    family = "research-primitives", block = THREADS, min_blocks = sort_min_blocks::<C, u32, SuperKey>(),
    shared = TileSmem<C, u32, THREADS, ITEMS>, hot
)]
#[instance(f32, 23)]
#[instance(f64, 13)]
pub unsafe fn primitives_sort_points_tiles<C: Float, const ITEMS: usize>(sort: TileSort<'_, C, u32>) {
    sort.run::<SuperKey, ITEMS>()
}

/// Splits pairs of runs into tiles, like `primitives_merge_runs_partition`.
#[kernel(family = "research-primitives", block = PER_ITEM_THREADS, min_blocks = MERGE.split_min_blocks, hot)]
#[instances(C = [f32, f64])]
pub unsafe fn primitives_sort_points_partition<C: Float>(
    runs: SortedRuns<'_, C, u32>,
    splits: SliceMut<u64>,
    tile_items: u64,
) {
    runs.partition::<SuperKey>(splits, tile_items as usize)
}

/// Merges pairs of runs, like `primitives_merge_runs`.
#[kernel(
    family = "research-primitives", block = THREADS, min_blocks = merge_min_blocks::<C, u32, SuperKey>(),
    shared = TileSmem<C, u32, THREADS, ITEMS>, hot
)]
#[instance(f32, 23)]
#[instance(f64, 13)]
pub unsafe fn primitives_sort_points_merge<C: Float, const ITEMS: usize>(
    runs: SortedRuns<'_, C, u32>,
    output: Pairs<'_, C, u32>,
    splits: Slice<u64>,
    fold_out: Fold,
) {
    runs.merge::<SuperKey, ITEMS>(output, splits, fold_out)
}
