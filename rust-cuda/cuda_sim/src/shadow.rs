//! Shadow memory: the last accesses of each word, to find two accesses that nothing orders.
//!
//! For each four bytes the shadow keeps the last writes and the reads since, as FastTrack (Flanagan, Freund, PLDI 2009),
//! with the block-wide times of HiRace (Jacobson, Burtscher, Gopalakrishnan, 2024) in place of full vector clocks. Of many
//! unordered reads or atomics of a word it keeps a random sample: a race can then be missed, none is invented.

use crate::frontier::Time;
use crate::random::Random;

/// Accesses kept for one granule beyond the two that are stored in it.
const SAMPLE: usize = 64;
/// Bytes of a granule.
const GRANULE: usize = 4;

/// Atomicity of an access, which decides its conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Plain,
    ReadOnly,
    /// Atomic among the threads of a block.
    Narrow,
    /// Atomic among all threads.
    Wide,
}

/// One access: thread, time, class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) block: u32,
    pub(crate) barriers: u32,
    pub(crate) time: Time,
    pub(crate) thread: u16,
    pub(crate) class: Class,
    pub(crate) writes: bool,
    /// Bytes of the granule; 0 for no access.
    bytes: u8,
}

/// Reason for which two accesses conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    Unordered,
    NarrowScope,
    ReadOnly,
}

impl Stamp {
    const NONE: Self =
        Self { block: 0, barriers: 0, time: 0, thread: 0, class: Class::Plain, writes: false, bytes: 0 };

    pub(crate) fn new(at: crate::clock::Here, class: Class, writes: bool) -> Self {
        let thread = at.thread as u16;
        Self { block: at.block, barriers: at.barriers, time: at.time, thread, class, writes, bytes: 0 }
    }

    #[inline]
    fn same_thread(&self, other: &Self) -> bool {
        self.block == other.block && self.thread == other.thread
    }

    fn is_atomic(&self) -> bool {
        matches!(self.class, Class::Narrow | Class::Wide)
    }

    /// True if this access can replace the earlier access `kept`, provided that `kept` is ordered before it: every later
    /// access that conflicts with `kept`, and is not ordered after this one, then conflicts with this one too.
    #[inline]
    fn stands_for(&self, kept: &Self) -> bool {
        match (self.class, kept.class) {
            (Class::ReadOnly, _) | (_, Class::ReadOnly) => self.class == kept.class,
            (Class::Plain, _) => true,
            (_, Class::Plain) => false,
            (Class::Narrow, Class::Narrow) => self.block == kept.block,
            (Class::Narrow, _) | (_, Class::Wide) => true,
            (Class::Wide, Class::Narrow) => false,
        }
    }

    /// True if this later access makes `kept` redundant.
    #[inline]
    fn replaces(&self, kept: &Self, knows: &impl Fn(&Self) -> bool) -> bool {
        self.stands_for(kept) && (self.same_thread(kept) || knows(kept))
    }

    /// Returns the conflict between this earlier access and `later`; `knows` says whether an access is ordered before `later`.
    #[inline]
    fn conflict(&self, later: &Self, knows: &impl Fn(&Self) -> bool) -> Option<Conflict> {
        if self.bytes & later.bytes == 0 || !(self.writes || later.writes) {
            return None;
        }
        if self.class == Class::ReadOnly || later.class == Class::ReadOnly {
            return Some(Conflict::ReadOnly);
        }
        if self.same_thread(later) {
            return None;
        }
        if self.is_atomic() && later.is_atomic() {
            let among_them =
                self.block == later.block || self.class == Class::Wide && later.class == Class::Wide;
            return (!among_them && !knows(self)).then_some(Conflict::NarrowScope);
        }
        (!knows(self)).then_some(Conflict::Unordered)
    }
}

/// The shadow of four bytes.
#[derive(Clone, Copy)]
struct Granule {
    /// Tag of the launch or resident block that the other fields belong to.
    tag: u32,
    /// Index of more accesses in [`Samples`], 0 for none.
    more: u32,
    write: Stamp,
    read: Stamp,
}

impl Granule {
    const EMPTY: Self = Self { tag: 0, more: 0, write: Stamp::NONE, read: Stamp::NONE };
}

/// Granules of a page; most of a large buffer is often not touched.
const PAGE: usize = 256;

/// The shadow of a region.
#[derive(Default)]
pub(crate) struct Shadow {
    pages: Vec<Option<Box<[Granule; PAGE]>>>,
    /// True if all tags are of one launch, so that lists of older tags can be reused.
    pub(crate) of_one_launch: bool,
}

/// Overflow lists: accesses beyond the two stored in a granule.
pub(crate) struct Samples {
    lists: Vec<Vec<Stamp>>,
    free: Vec<u32>,
    random: Random,
}

impl Samples {
    pub(crate) fn new(seed: u64) -> Self {
        Self { lists: vec![vec![]], free: vec![], random: Random::new(seed) }
    }

    fn list(&mut self, index: &mut u32) -> &mut Vec<Stamp> {
        if *index == 0 {
            *index = self.free.pop().unwrap_or_else(|| {
                self.lists.push(vec![]);
                self.lists.len() as u32 - 1
            });
        }
        &mut self.lists[*index as usize]
    }

    /// Frees the list of a granule.
    fn release(&mut self, index: u32) {
        if index != 0 {
            self.lists[index as usize].clear();
            self.free.push(index);
        }
    }

    fn insert_sample(&mut self, index: &mut u32, stamp: Stamp, knows: &impl Fn(&Stamp) -> bool) {
        let slot = self.random.below(SAMPLE);
        let list = self.list(index);
        // Not each time, because memory that all threads read is common.
        if list.len() >= SAMPLE && slot < SAMPLE / 16 {
            list.retain(|kept| {
                kept.bytes & !stamp.bytes != 0 || kept.writes && !stamp.writes || !stamp.replaces(kept, knows)
            });
        }
        if list.len() < SAMPLE {
            list.push(stamp);
        } else {
            list[slot] = stamp;
        }
    }
}

impl Shadow {
    /// Frees the memory.
    pub(crate) fn forget(&mut self) {
        self.pages = vec![];
    }

    /// Records an access to a range; returns an earlier access that it conflicts with. `knows` says whether an earlier
    /// access is ordered before this one. Accesses recorded with another tag are ignored.
    #[inline]
    pub(crate) fn access(
        &mut self,
        (offset, len): (usize, usize),
        tag: u32,
        mut stamp: Stamp,
        samples: &mut Samples,
        knows: impl Fn(&Stamp) -> bool,
    ) -> Option<(Stamp, Conflict)> {
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let first = at % GRANULE;
            let count = (GRANULE - first).min(end - at);
            stamp.bytes = ((1 << count) - 1) << first;
            let of_one_launch = self.of_one_launch;
            let granule = self.granule(at / GRANULE);
            if granule.tag != tag {
                if of_one_launch {
                    samples.release(granule.more);
                }
                *granule = Granule { tag, ..Granule::EMPTY };
            }
            let conflict = if stamp.writes {
                granule.write(stamp, samples, &knows)
            } else {
                granule.read(stamp, samples, &knows)
            };
            if conflict.is_some() {
                return conflict;
            }
            at += count;
        }
        None
    }
}

impl Shadow {
    #[inline]
    fn granule(&mut self, index: usize) -> &mut Granule {
        let page = index / PAGE;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        &mut self.pages[page].get_or_insert_with(|| Box::new([Granule::EMPTY; PAGE]))[index % PAGE]
    }
}

impl Granule {
    fn conflict(
        &self,
        stamp: &Stamp,
        samples: &Samples,
        knows: &impl Fn(&Stamp) -> bool,
    ) -> Option<(Stamp, Conflict)> {
        let with = |kept: &Stamp| kept.conflict(stamp, knows).map(|c| (*kept, c));
        with(&self.write).or_else(|| with(&self.read)).or_else(|| match self.more {
            0 => None,
            list => samples.lists[list as usize].iter().find_map(with),
        })
    }

    #[inline]
    fn read(
        &mut self,
        stamp: Stamp,
        samples: &mut Samples,
        knows: &impl Fn(&Stamp) -> bool,
    ) -> Option<(Stamp, Conflict)> {
        let conflict = self.conflict(&stamp, samples, knows);
        if conflict.is_some() {
            return conflict;
        }
        let kept = &mut self.read;
        if kept.bytes == 0 || kept.bytes & !stamp.bytes == 0 && stamp.replaces(kept, knows) {
            *kept = stamp;
        } else {
            samples.insert_sample(&mut self.more, stamp, knows);
        }
        None
    }

    #[inline]
    fn write(
        &mut self,
        stamp: Stamp,
        samples: &mut Samples,
        knows: &impl Fn(&Stamp) -> bool,
    ) -> Option<(Stamp, Conflict)> {
        let conflict = self.conflict(&stamp, samples, knows);
        if conflict.is_some() {
            return conflict;
        }
        let clear = |kept: &mut Stamp| {
            if kept.bytes & stamp.bytes != 0 && stamp.replaces(kept, knows) {
                kept.bytes &= !stamp.bytes;
            }
        };
        clear(&mut self.read);
        clear(&mut self.write);
        // A plain write replaces all accesses, since all are ordered before it. Full lists of atomics are thinned out.
        if self.more != 0 && stamp.class == Class::Plain {
            let list = &mut samples.lists[self.more as usize];
            list.iter_mut().for_each(clear);
            list.retain(|kept| kept.bytes != 0);
        }
        if self.write.bytes == 0 {
            self.write = stamp;
        } else {
            samples.insert_sample(&mut self.more, stamp, knows);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Here;

    fn stamp(thread: u32, class: Class, writes: bool) -> Stamp {
        Stamp::new(Here { block: thread / 32, thread: thread % 32, barriers: 0, time: 1 }, class, writes)
    }

    /// Returns the conflict of a sequence of accesses to one word by unordered threads.
    fn unordered(accesses: &[(u32, Class, bool)]) -> Option<Conflict> {
        let (mut shadow, mut samples) = (Shadow::default(), Samples::new(1));
        accesses.iter().find_map(|&(thread, class, writes)| {
            let stamp = stamp(thread, class, writes);
            shadow.access((4, 4), 1, stamp, &mut samples, |_| false).map(|(_, conflict)| conflict)
        })
    }

    #[test]
    fn conflicts_of_unordered_accesses() {
        use Class::{Narrow, Plain, ReadOnly, Wide};
        assert_eq!(unordered(&[(0, Plain, false), (1, Plain, false), (2, ReadOnly, false)]), None);
        assert_eq!(unordered(&[(0, Plain, true), (0, Plain, false), (0, Plain, true)]), None);
        assert_eq!(unordered(&[(0, Plain, true), (1, Plain, false)]), Some(Conflict::Unordered));
        assert_eq!(
            unordered(&[(0, Plain, false), (1, Plain, false), (0, Plain, true)]),
            Some(Conflict::Unordered)
        );
        assert_eq!(unordered(&[(0, Wide, true), (40, Wide, true), (3, Wide, false)]), None);
        assert_eq!(unordered(&[(0, Narrow, true), (1, Narrow, true)]), None);
        assert_eq!(unordered(&[(0, Narrow, true), (40, Wide, true)]), Some(Conflict::NarrowScope));
        assert_eq!(unordered(&[(0, Wide, true), (1, Plain, false)]), Some(Conflict::Unordered));
        assert_eq!(
            unordered(&[(0, Plain, true), (0, Wide, true), (1, Wide, true)]),
            Some(Conflict::Unordered)
        );
        assert_eq!(unordered(&[(0, Plain, true), (0, ReadOnly, false)]), Some(Conflict::ReadOnly));
        assert_eq!(unordered(&[(0, ReadOnly, false), (0, Plain, true)]), Some(Conflict::ReadOnly));
        let many: Vec<_> = (0..500).map(|t| (t, Plain, false)).chain([(1000, Plain, true)]).collect();
        assert_eq!(unordered(&many), Some(Conflict::Unordered));
    }

    #[test]
    fn bytes_of_a_word_are_apart_and_tags_begin_anew() {
        let (mut shadow, mut samples) = (Shadow::default(), Samples::new(1));
        let mut access = |thread, at, len, tag| {
            shadow
                .access((at, len), tag, stamp(thread, Class::Plain, true), &mut samples, |_| false)
                .is_some()
        };
        assert!((0..4).all(|t| !access(t, t as usize, 1, 1)));
        assert!(access(9, 2, 1, 1));
        assert!(!access(9, 0, 4, 2));
        assert!(access(8, 3, 1, 2));
    }
}
