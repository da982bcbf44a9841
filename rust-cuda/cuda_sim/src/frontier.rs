//! Knowledge of the accesses of whole blocks: the part of a clock that threads pass from block to block.

use std::rc::Rc;

/// Number of an access in its thread, from 1.
pub(crate) type Time = u32;

/// Known accesses of one block: all before its barrier number `barriers`, and later ones of some threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockKnowledge {
    pub(crate) barriers: u32,
    /// Known time of single threads after that barrier, sorted by thread.
    pub(crate) beyond: Vec<(u32, Time)>,
}

impl BlockKnowledge {
    /// True if the access is known.
    #[inline]
    pub(crate) fn has(&self, thread: u32, barriers: u32, time: Time) -> bool {
        barriers < self.barriers || find(&self.beyond, thread) >= time
    }

    fn includes(&self, other: &Self) -> bool {
        self.barriers > other.barriers
            || self.barriers == other.barriers
                && other.beyond.iter().all(|&(thread, time)| find(&self.beyond, thread) >= time)
    }

    fn join(&self, other: &Self) -> Self {
        match self.barriers.cmp(&other.barriers) {
            // Accesses between the two barriers are before the later one.
            std::cmp::Ordering::Less => other.clone(),
            std::cmp::Ordering::Greater => self.clone(),
            std::cmp::Ordering::Equal => {
                Self { barriers: self.barriers, beyond: merge(&self.beyond, &other.beyond, |a, b| *a.max(b)) }
            }
        }
    }
}

/// Returns the time for a key, 0 if there is none.
pub(crate) fn find(times: &[(u32, Time)], key: u32) -> Time {
    times.binary_search_by_key(&key, |&(k, _)| k).map_or(0, |i| times[i].1)
}

/// Returns the union of two lists sorted by key.
pub(crate) fn merge<V: Clone>(a: &[(u32, V)], b: &[(u32, V)], both: impl Fn(&V, &V) -> V) -> Vec<(u32, V)> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some((key_a, value_a)), Some((key_b, value_b))) = (a.peek(), b.peek()) {
        match key_a.cmp(key_b) {
            std::cmp::Ordering::Less => out.extend(a.next().cloned()),
            std::cmp::Ordering::Greater => out.extend(b.next().cloned()),
            std::cmp::Ordering::Equal => {
                out.push((*key_a, both(value_a, value_b)));
                a.next();
                b.next();
            }
        }
    }
    out.extend(a.cloned());
    out.extend(b.cloned());
    out
}

/// Known accesses of several blocks, sorted by block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frontier(Vec<(u32, Rc<BlockKnowledge>)>);

/// A shared frontier, or no knowledge.
pub(crate) type Known = Option<Rc<Frontier>>;

impl Frontier {
    pub(crate) fn of(&self, block: u32) -> Option<&Rc<BlockKnowledge>> {
        self.0.binary_search_by_key(&block, |&(b, _)| b).ok().map(|i| &self.0[i].1)
    }

    fn includes(&self, other: &Self) -> bool {
        other.0.iter().all(|(block, theirs)| {
            self.of(*block).is_some_and(|ours| Rc::ptr_eq(ours, theirs) || ours.includes(theirs))
        })
    }

    fn join(&self, other: &Self) -> Self {
        Self(merge(&self.0, &other.0, |a, b| {
            if Rc::ptr_eq(a, b) || a.includes(b) {
                a.clone()
            } else if b.includes(a) {
                b.clone()
            } else {
                Rc::new(a.join(b))
            }
        }))
    }

    /// True if the frontier has an entry of another block.
    pub(crate) fn goes_beyond(&self, block: u32) -> bool {
        self.0.iter().any(|&(b, _)| b != block)
    }

    /// Returns a copy in which `knowledge` replaces that of one block.
    pub(crate) fn with(&self, block: u32, knowledge: BlockKnowledge) -> Self {
        let mut entries = self.0.clone();
        let knowledge = Rc::new(knowledge);
        match entries.binary_search_by_key(&block, |&(b, _)| b) {
            Ok(i) => entries[i].1 = knowledge,
            Err(i) => entries.insert(i, (block, knowledge)),
        }
        Self(entries)
    }
}

/// Adds `more` to `known`.
pub(crate) fn join(known: &mut Known, more: &Known) {
    let Some(more) = more else { return };
    match known {
        None => *known = Some(more.clone()),
        Some(ours) if Rc::ptr_eq(ours, more) || ours.includes(more) => {}
        Some(ours) if more.includes(ours) => *known = Some(more.clone()),
        Some(ours) => *known = Some(Rc::new(ours.join(more))),
    }
}
