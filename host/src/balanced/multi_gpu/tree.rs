//! A balanced tree whose subtrees are on several GPUs.

use kauri_kernels::balanced::multi_gpu::balanced_verify_sides;
use kauri_kernels::balanced::{NONE, Run, medians_len};
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::thread::coord::Float;

use crate::balanced::backend::Backend;
#[cfg(feature = "io")]
use crate::balanced::backend::Sections;
use crate::balanced::cpu::index::of_point;
use crate::balanced::gpu::GpuTree;
use crate::balanced::gpu::in_order::bucket_index;
use crate::balanced::multi_gpu::part::MAX_PARTS;
use crate::balanced::multi_gpu::representatives::Representatives;
use crate::balanced::super_key::{WRONG_SIDE, compare};
use crate::device::{Buffer, Stream};
use crate::error::{Error, Result};
use crate::memory;
use crate::once::Once;
use crate::query::backend::QueryBackend;
use crate::query::gpu::BucketIndex;
use crate::query::ids;
use crate::query::union::{MAX_INDEXES, UnionIndex};
use crate::threads::each;
use std::sync::Arc;

// The union of the subtrees and of the nodes above them answers queries.
const _: () = assert!(2 * MAX_PARTS - 1 <= MAX_INDEXES);

/// A tree with its top nodes in host memory, and its subtrees on GPUs.
pub(crate) struct MultiGpuTree<C> {
    nodes: Arc<Nodes<C>>,
    /// The index that answers queries. The first query builds it.
    index: Once<UnionIndex<C>>,
}

/// A node above the subtrees.
pub(crate) struct TopNode<C> {
    pub(crate) level: u32,
    pub(crate) address: u32,
    pub(crate) id: u32,
    pub(crate) coords: Vec<C>,
}

/// A subtree that is a tree of its own, on one GPU.
pub(crate) struct Subtree<C> {
    /// The level and the address of its root in the whole tree.
    pub(crate) level: u32,
    pub(crate) address: u32,
    /// The tree over local ids, the positions in `ids`.
    pub(crate) tree: GpuTree<C>,
    /// The ids of its points.
    pub(crate) ids: Buffer<u32>,
}

/// The nodes of a tree.
pub(crate) struct Nodes<C> {
    pub(crate) dims: usize,
    pub(crate) num_points: usize,
    pub(crate) num_nodes: usize,
    pub(crate) top_nodes: Vec<TopNode<C>>,
    pub(crate) subtrees: Vec<Subtree<C>>,
    pub(crate) representatives: Representatives,
}

/// Returns the index of an address of a level in the medians of the whole tree.
fn slot_of(level: u32, address: u32) -> usize {
    (full_tree(level) + address) as usize
}

impl<C> From<Nodes<C>> for MultiGpuTree<C> {
    fn from(nodes: Nodes<C>) -> Self {
        Self { nodes: nodes.into(), index: Once::new() }
    }
}

impl<C: Float> Subtree<C> {
    /// Builds the index that answers queries, with the ids of the whole tree.
    fn index(&self, dims: usize) -> Result<BucketIndex<C>> {
        let first_axis = self.level as usize % dims;
        bucket_index(&Stream::new(self.ids.gpu())?, self.tree.view(), first_axis, self.ids.slice(), None)
    }

    /// Returns the index in the medians of the whole tree of an index in the medians of this subtree.
    fn slot_in_tree(&self, slot: u32) -> usize {
        let depth = kauri_kernels::query::left_balanced::level(slot);
        slot_of(self.level + depth, (self.address << depth) + (slot - full_tree(depth)))
    }

    /// Returns the medians, with the ids of the whole tree.
    fn medians(&self) -> Result<Vec<u32>> {
        let mut medians = self.tree.medians()?;
        let ids = self.ids.to_vec(&Stream::new(self.ids.gpu())?)?;
        for median in medians.iter_mut().filter(|median| **median != NONE) {
            *median = ids[*median as usize];
        }
        Ok(medians)
    }

    /// Checks the subtree, which must have `num_nodes` nodes.
    fn verify(&self, num_nodes: u32) -> Result<()> {
        let found = self.tree.num_nodes;
        if found != num_nodes as usize || self.ids.len() != found {
            let what = format!("its subtree has {found} nodes instead of {num_nodes}");
            return Err(Error::corrupt(self.slot_in_tree(0), what));
        }
        self.tree.verify().map_err(|error| match error {
            Error::Corrupt { node, what } => Error::corrupt(self.slot_in_tree(node as u32), what),
            other => other,
        })
    }

    /// Checks that all points are on the correct side of the top nodes above them.
    fn verify_sides(&self, top_nodes: &[TopNode<C>], dims: usize) -> Result<()> {
        let mut ancestors = Vec::new();
        for level in 0..self.level {
            let address = self.address >> (self.level - level);
            let is_ancestor = |top: &&TopNode<C>| top.level == level && top.address == address;
            let Some(top) = top_nodes.iter().find(is_ancestor) else {
                // Without an ancestor the subtree must be empty.
                return self.verify(0);
            };
            let mut coords = top.coords.clone();
            coords.rotate_left(self.level as usize % dims);
            ancestors.extend(coords);
        }
        let stream = Stream::new(self.ids.gpu())?;
        let ancestors = Buffer::from_slice(&stream, &ancestors, "nodes above a subtree")?;
        let mut finding = Buffer::from_slice(&stream, &[u64::MAX], "a finding")?;
        let coords = self.tree.coords.slice();
        let args = (coords, dims as u32, ancestors.slice(), self.level, self.address, finding.slice_mut());
        // SAFETY: the buffers live until the finding has been copied.
        unsafe { stream.launch_items::<balanced_verify_sides<C>>((coords.len() / dims) as u64, args)? };
        match finding.to_vec(&stream)?[0] {
            u64::MAX => Ok(()),
            id => {
                let medians = self.tree.medians()?;
                let slot = medians.iter().position(|&median| u64::from(median) == id).unwrap_or(0);
                Err(Error::corrupt(self.slot_in_tree(slot as u32), WRONG_SIDE))
            }
        }
    }
}

impl<C: Float> Nodes<C> {
    /// Checks the top nodes against each other.
    fn verify_top_nodes(&self) -> Result<()> {
        for top in &self.top_nodes {
            for above in self.top_nodes.iter().filter(|above| above.level < top.level) {
                let child = top.address >> (top.level - above.level - 1);
                if child / 2 != above.address {
                    continue;
                }
                let order = compare(&top.coords, &above.coords, above.level as usize % self.dims);
                if (child & 1 == 1 && !order.is_gt()) || (child & 1 == 0 && !order.is_lt()) {
                    return Err(Error::corrupt(slot_of(top.level, top.address), WRONG_SIDE));
                }
            }
        }
        Ok(())
    }

    /// Checks the number of nodes, and that each node has a different kept point.
    fn verify_ids(&self) -> Result<()> {
        let medians = self.medians()?;
        let num_nodes = medians.iter().filter(|&&id| id != NONE).count();
        if num_nodes != self.num_nodes {
            return Err(Error::corrupt(0, format!("{num_nodes} nodes instead of {}", self.num_nodes)));
        }
        let representatives = self.representatives.by_point()?;
        let is_kept = |id: u32| representatives.get(id as usize).is_none_or(|&kept| kept == id);
        let is_wrong = |&id: &u32| id != NONE && (id as usize >= self.num_points || !is_kept(id));
        if let Some(slot) = medians.iter().position(is_wrong) {
            let what = format!("id {} is not the id of a point that was kept", medians[slot]);
            return Err(Error::corrupt(slot, what));
        }
        match ids::first_duplicate(&medians, self.num_points)? {
            Some(slot) => Err(Error::corrupt(slot, "another node has the same id")),
            None => Ok(()),
        }
    }

    /// Returns the medians of the whole tree.
    fn medians(&self) -> Result<Vec<u32>> {
        let len = medians_len(self.num_nodes as u32);
        let mut medians = memory::filled(len, NONE, "medians of the tree")?;
        for top in &self.top_nodes {
            medians[slot_of(top.level, top.address)] = top.id;
        }
        for (subtree, subtree_medians) in self.subtrees.iter().zip(each(&self.subtrees, Subtree::medians)?) {
            let (mut depth, mut rest) = (0, &subtree_medians[..]);
            while !rest.is_empty() {
                let (level, below) = rest.split_at(1 << depth);
                let begin = slot_of(subtree.level + depth, subtree.address << depth);
                medians[begin..begin + level.len()].copy_from_slice(level);
                (depth, rest) = (depth + 1, below);
            }
        }
        Ok(medians)
    }

    /// Returns the coordinates of all input points, in the order of their ids. Removed points have the coordinates of their
    /// representatives.
    fn coords_by_id(&self) -> Result<Vec<C>> {
        let (dims, len) = (self.dims, self.num_points * self.dims);
        let mut coords = memory::filled(len, C::ZERO, "coordinates of the points")?;
        for top in &self.top_nodes {
            coords[top.id as usize * dims..][..dims].copy_from_slice(&top.coords);
        }
        for Subtree { level, tree, ids, .. } in &self.subtrees {
            let stream = Stream::new(ids.gpu())?;
            let (rotated, ids) = (tree.coords.to_vec(&stream)?, ids.to_vec(&stream)?);
            for (point, id) in rotated.chunks_exact(dims).zip(ids) {
                let to = &mut coords[id as usize * dims..][..dims];
                to.copy_from_slice(point);
                to.rotate_right(*level as usize % dims);
            }
        }
        let pairs = self.representatives.by_point()?.iter().enumerate();
        for (id, &kept) in pairs.filter(|&(id, &kept)| id != kept as usize) {
            let from = kept as usize * dims;
            coords.copy_within(from..from + dims, id * dims);
        }
        Ok(coords)
    }

    /// Returns the query backends of the top nodes and subtrees, in in-order sequence.
    fn sets(&self) -> Result<Vec<Box<dyn QueryBackend<C>>>> {
        // The in-order position of a node, as a fixed-point fraction of the whole tree.
        let position = |level: u32, address: u32| (2 * u64::from(address) + 1) << (u32::BITS - level);
        let top_nodes = self.top_nodes.iter().map(|top| {
            let set: Box<dyn QueryBackend<C>> = Box::new(of_point(&top.coords, top.id)?);
            Ok((position(top.level, top.address), set))
        });
        let subtrees = each(&self.subtrees, |subtree| {
            let set: Box<dyn QueryBackend<C>> = Box::new(subtree.index(self.dims)?);
            Ok((position(subtree.level, subtree.address), set))
        })?;
        let mut sets = top_nodes.chain(subtrees.into_iter().map(Ok)).collect::<Result<Vec<_>>>()?;
        sets.sort_by_key(|(position, _)| *position);
        Ok(sets.into_iter().map(|(_, set)| set).collect())
    }
}

impl<C: Float> Backend<C> for MultiGpuTree<C> {
    fn num_nodes(&self) -> usize {
        self.nodes.num_nodes
    }

    fn verify(&self) -> Result<()> {
        let Nodes { dims, num_nodes, top_nodes, subtrees, .. } = &*self.nodes;
        self.nodes.verify_top_nodes()?;
        each(subtrees, |subtree| {
            subtree.verify(Run::len_of(subtree.address, subtree.level, *num_nodes as u32))?;
            subtree.verify_sides(top_nodes, *dims)
        })?;
        self.nodes.verify_ids()
    }

    fn medians(&self) -> Result<Vec<u32>> {
        self.nodes.medians()
    }

    fn representatives(&self) -> Result<Vec<u32>> {
        memory::copy(self.nodes.representatives.by_point()?, "representatives of the points")
    }

    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        let index = self.index.get_or_try_init(|| {
            let (indexes, nodes) = (self.nodes.sets()?, self.nodes.clone());
            Ok(UnionIndex { rounds: Box::new(indexes), coords_by_id: Box::new(move || nodes.coords_by_id()) })
        })?;
        Ok(index)
    }

    #[cfg(feature = "io")]
    fn sections(&self) -> Result<Sections<'_, C>> {
        Ok(Sections {
            coords: self.nodes.coords_by_id()?.into(),
            medians: self.medians()?.into(),
            representatives: self.nodes.representatives.by_point()?.into(),
        })
    }
}
