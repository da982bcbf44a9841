//! A tree whose subtrees are on several devices.

use kauri_kernels::balanced::several::balanced_verify_sides;
use kauri_kernels::balanced::{NONE, Run, medians_len};
use kauri_kernels::query::left_balanced::full_tree;
use kauri_kernels::thread::coord::Coord;

use crate::balanced::BalancedTree;
use crate::balanced::cpu::index::of_point;
use crate::balanced::gpu::index::{Balanced, bucket_index};
use crate::balanced::gpu::several::{Subtree, Top, compare};
use crate::device::{Buffer, Stream};
use crate::error::{Error, Result};
use crate::memory;
use crate::once::Once;
use crate::query::backend::QueryBackend;
use crate::query::gpu::BucketIndex;
use crate::query::ids;
use crate::query::union::UnionIndex;
use crate::threads::each;
use std::sync::Arc;

/// A tree of which the first nodes are in host memory, and the subtrees below on devices.
pub(crate) struct MultiGpuTree<C> {
    parts: Arc<Parts<C>>,
    /// What answers queries, which the first one makes.
    index: Once<UnionIndex<C>>,
}

/// Its nodes.
pub(crate) struct Parts<C> {
    pub(crate) dims: usize,
    pub(crate) num_points: usize,
    pub(crate) num_nodes: usize,
    pub(crate) tops: Vec<Top<C>>,
    pub(crate) subtrees: Vec<Subtree<C>>,
    /// Of each point the one that stays for it; empty if all do.
    pub(crate) stays: Vec<u32>,
}

/// The place of an address of a level, among those of the whole tree.
fn place(level: u32, address: u32) -> usize {
    (full_tree(level) + address) as usize
}

impl<C> From<Parts<C>> for MultiGpuTree<C> {
    fn from(parts: Parts<C>) -> Self {
        Self { parts: parts.into(), index: Once::new() }
    }
}

impl<C: Coord> Subtree<C> {
    /// What answers queries, with the ids of the whole tree.
    fn index(&self, dims: usize) -> Result<BucketIndex<C>> {
        let tree = Balanced {
            dims,
            coords: self.tree.coords.slice(),
            first_axis: self.level as usize % dims,
            names: self.names.slice(),
            medians: self.tree.medians.slice(),
            num_nodes: self.tree.num_nodes,
        };
        bucket_index(self.names.gpu(), &tree, None)
    }

    /// The place in the whole tree of one in this.
    fn place(&self, own: u32) -> usize {
        let depth = kauri_kernels::query::left_balanced::level(own);
        place(self.level + depth, (self.address << depth) + (own - full_tree(depth)))
    }

    /// The medians, by the ids of the whole tree.
    fn medians(&self) -> Result<Vec<u32>> {
        let mut medians = self.tree.medians()?;
        let names = self.names.to_vec(&Stream::new(self.names.gpu())?)?;
        for median in medians.iter_mut().filter(|median| **median != NONE) {
            *median = names[*median as usize];
        }
        Ok(medians)
    }

    /// Checks the tree itself, which is to have so many nodes.
    fn verify(&self, num_nodes: u32) -> Result<()> {
        let found = self.tree.num_nodes;
        if found != num_nodes as usize || self.names.len() != found {
            let what = format!("its subtree has {found} nodes instead of {num_nodes}");
            return Err(Error::Corrupt { node: self.place(0) as u64, what });
        }
        self.tree.verify().map_err(|error| match error {
            Error::Corrupt { node, what } => Error::Corrupt { node: self.place(node as u32) as u64, what },
            other => other,
        })
    }

    /// Checks that all points are on their side of the nodes above.
    fn verify_sides(&self, tops: &[Top<C>], dims: usize) -> Result<()> {
        let mut ancestors = Vec::new();
        for level in 0..self.level {
            let address = self.address >> (self.level - level);
            let is_it = |top: &&Top<C>| top.level == level && top.address == address;
            let Some(top) = tops.iter().find(is_it) else {
                // Where there is no node there is nothing below it.
                return self.verify(0);
            };
            let mut coords = top.coords.clone();
            coords.rotate_left(self.level as usize % dims);
            ancestors.extend(coords);
        }
        let stream = Stream::new(self.names.gpu())?;
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
                let own = medians.iter().position(|&median| u64::from(median) == id).unwrap_or(0);
                let what = "its point is on the wrong side of an ancestor, or equal to it".into();
                Err(Error::Corrupt { node: self.place(own as u32) as u64, what })
            }
        }
    }
}

impl<C: Coord> Parts<C> {
    /// Checks the nodes above the subtrees against each other.
    fn verify_tops(&self) -> Result<()> {
        for top in &self.tops {
            for above in self.tops.iter().filter(|above| above.level < top.level) {
                let way = top.address >> (top.level - above.level - 1);
                if way / 2 != above.address {
                    continue;
                }
                let order = compare(&top.coords, &above.coords, above.level as usize % self.dims);
                if (way & 1 == 1 && !order.is_gt()) || (way & 1 == 0 && !order.is_lt()) {
                    let what = "its point is on the wrong side of an ancestor, or equal to it".into();
                    return Err(Error::Corrupt { node: place(top.level, top.address) as u64, what });
                }
            }
        }
        Ok(())
    }

    /// Checks that there are as many nodes as there are to be, each another of the points that stay.
    fn verify_ids(&self) -> Result<()> {
        let medians = self.medians()?;
        let corrupt = |place: usize, what: String| Err(Error::Corrupt { node: place as u64, what });
        let num_nodes = medians.iter().filter(|&&id| id != NONE).count();
        if num_nodes != self.num_nodes {
            return corrupt(0, format!("{num_nodes} nodes instead of {}", self.num_nodes));
        }
        let stays = |id: u32| self.stays.get(id as usize).is_none_or(|&stays| stays == id);
        let is_wrong = |&id: &u32| id != NONE && (id as usize >= self.num_points || !stays(id));
        if let Some(place) = medians.iter().position(is_wrong) {
            return corrupt(place, format!("id {} is not that of a point that stays", medians[place]));
        }
        match ids::first_twice(&medians, self.num_points)? {
            Some(place) => corrupt(place, "another node has the same id".into()),
            None => Ok(()),
        }
    }
}

impl<C: Coord> Parts<C> {
    /// The medians of the whole tree.
    fn medians(&self) -> Result<Vec<u32>> {
        let len = medians_len(self.num_nodes as u32);
        let mut medians = memory::vec_with_capacity(len, "medians of the tree")?;
        medians.resize(len, NONE);
        for top in &self.tops {
            medians[place(top.level, top.address)] = top.id;
        }
        for (subtree, own) in self.subtrees.iter().zip(each(&self.subtrees, Subtree::medians)?) {
            let (mut depth, mut rest) = (0, &own[..]);
            while !rest.is_empty() {
                let (level, below) = rest.split_at(1 << depth);
                let begin = place(subtree.level + depth, subtree.address << depth);
                medians[begin..begin + level.len()].copy_from_slice(level);
                (depth, rest) = (depth + 1, below);
            }
        }
        Ok(medians)
    }

    /// The coordinates of all points that were given, in the order of their ids.
    fn coords_by_id(&self) -> Result<Vec<C>> {
        let (dims, len) = (self.dims, self.num_points * self.dims);
        let mut coords = memory::vec_with_capacity(len, "coordinates of the points")?;
        coords.resize(len, C::ZERO);
        for top in &self.tops {
            coords[top.id as usize * dims..][..dims].copy_from_slice(&top.coords);
        }
        for Subtree { level, tree, names, .. } in &self.subtrees {
            let stream = Stream::new(names.gpu())?;
            let (own, names) = (tree.coords.to_vec(&stream)?, names.to_vec(&stream)?);
            for (point, id) in own.chunks_exact(dims).zip(names) {
                let to = &mut coords[id as usize * dims..][..dims];
                to.copy_from_slice(point);
                to.rotate_right(*level as usize % dims);
            }
        }
        // Of points that were removed the tree has those that stay, which are equal to them.
        for (id, &stays) in self.stays.iter().enumerate().filter(|&(id, &stays)| id != stays as usize) {
            let from = stays as usize * dims;
            coords.copy_within(from..from + dims, id * dims);
        }
        Ok(coords)
    }

    /// Nodes and subtrees, as walks see them, in order.
    fn sets(&self) -> Result<Vec<Box<dyn QueryBackend<C>>>> {
        // By where they are in a walk in order, in parts of the whole.
        let middle = |level: u32, address: u32| (2 * u64::from(address) + 1) << (u32::BITS - level);
        let tops = self.tops.iter().map(|top| {
            let set: Box<dyn QueryBackend<C>> = Box::new(of_point(&top.coords, top.id));
            Ok((middle(top.level, top.address), set))
        });
        let subtrees = each(&self.subtrees, |subtree| {
            let set: Box<dyn QueryBackend<C>> = Box::new(subtree.index(self.dims)?);
            Ok((middle(subtree.level, subtree.address), set))
        })?;
        let mut sets = tops.chain(subtrees.into_iter().map(Ok)).collect::<Result<Vec<_>>>()?;
        sets.sort_by_key(|(middle, _)| *middle);
        Ok(sets.into_iter().map(|(_, set)| set).collect())
    }
}

impl<C: Coord> BalancedTree<C> for MultiGpuTree<C> {
    fn num_nodes(&self) -> usize {
        self.parts.num_nodes
    }

    fn verify(&self) -> Result<()> {
        let Parts { dims, num_nodes, tops, subtrees, .. } = &*self.parts;
        self.parts.verify_tops()?;
        each(subtrees, |subtree| {
            subtree.verify(Run::len_of(subtree.address, subtree.level, *num_nodes as u32))?;
            subtree.verify_sides(tops, *dims)
        })?;
        self.parts.verify_ids()
    }

    fn medians(&self) -> Result<Vec<u32>> {
        self.parts.medians()
    }

    fn stays(&self) -> Result<Vec<u32>> {
        let mut stays = memory::vec_with_capacity(self.parts.stays.len(), "points that stay")?;
        stays.extend_from_slice(&self.parts.stays);
        Ok(stays)
    }

    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        let index = self.index.get_or_try_init(|| {
            let (sets, dims, parts) = (self.parts.sets()?, self.parts.dims, self.parts.clone());
            Ok(UnionIndex { sets, dims, own: Box::new(move || parts.coords_by_id()) })
        })?;
        Ok(index)
    }

    #[cfg(feature = "io")]
    fn stored(&self) -> Result<crate::balanced::stored::Sections<'_, C>> {
        Ok(crate::balanced::stored::Sections {
            coords: self.parts.coords_by_id()?.into(),
            medians: self.medians()?.into(),
            stays: (&self.parts.stays[..]).into(),
        })
    }
}
