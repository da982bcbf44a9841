//! The merge sort of points by super key: the kernels of [`merge_sort`](super::merge_sort) in a family of their own.

use super::merge::{THREADS, merge_min_blocks};
use super::merge_sort::{
    primitives_merge_runs, primitives_merge_runs_partition, primitives_sort_tiles, sort_min_blocks,
};
use crate::block::merge::TileSmem;
use crate::policy::{MERGE, PER_ITEM_THREADS};
use crate::thread::carried::{Pairs, Source};
use crate::thread::coord::Coord;
use crate::thread::order::{Lookup, SuperKey};
use crate::thread::radix_key::Fold;
use cuda_std::prelude::*;

/// Sorts each tile, like `primitives_sort_tiles`.
#[kernel(
    family = "research-primitives", block = THREADS, min_blocks = sort_min_blocks::<C, u32, SuperKey>(),
    shared = TileSmem<C, u32, THREADS, ITEMS>, hot
)]
#[instance(f32, 23)]
#[instance(f64, 13)]
pub unsafe fn primitives_sort_points_tiles<C: Coord, const ITEMS: usize>(
    input: Source<'_, C, u32>,
    output: Pairs<'_, C, u32>,
    count: Slice<u64>,
    fold: Fold,
    fold_out: Fold,
    lookup: Lookup<'_, C>,
) {
    primitives_sort_tiles::<C, u32, SuperKey, ITEMS>(input, output, count, fold, fold_out, lookup)
}

/// Splits pairs of runs into tiles, like `primitives_merge_runs_partition`.
#[kernel(family = "research-primitives", block = PER_ITEM_THREADS, min_blocks = MERGE.split_min_blocks, hot)]
#[instances(C = [f32, f64])]
pub unsafe fn primitives_sort_points_partition<C: Coord>(
    input: Source<'_, C, u32>,
    count: Slice<u64>,
    width: u64,
    splits: SliceMut<u64>,
    tile_items: u64,
    lookup: Lookup<'_, C>,
) {
    primitives_merge_runs_partition::<C, u32, SuperKey>(input, count, width, splits, tile_items, lookup)
}

/// Merges pairs of runs, like `primitives_merge_runs`.
#[kernel(
    family = "research-primitives", block = THREADS, min_blocks = merge_min_blocks::<C, u32, SuperKey>(),
    shared = TileSmem<C, u32, THREADS, ITEMS>, hot
)]
#[instance(f32, 23)]
#[instance(f64, 13)]
pub unsafe fn primitives_sort_points_merge<C: Coord, const ITEMS: usize>(
    input: Source<'_, C, u32>,
    output: Pairs<'_, C, u32>,
    count: Slice<u64>,
    width: u64,
    splits: Slice<u64>,
    fold_out: Fold,
    lookup: Lookup<'_, C>,
) {
    primitives_merge_runs::<C, u32, SuperKey, ITEMS>(input, output, count, width, splits, fold_out, lookup)
}
