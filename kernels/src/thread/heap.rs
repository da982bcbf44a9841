//! Binary heaps of one thread, in any memory.

/// A heap whose root is the last of its items.
pub trait MaxHeap {
    /// The type of the items.
    type Item: Copy;

    /// Loads item `i`.
    ///
    /// # Safety
    /// The heap has capacity for the item, and no other thread accesses it.
    unsafe fn load(&self, i: usize) -> Self::Item;
    /// Stores item `i`.
    ///
    /// # Safety
    /// As [`load`](Self::load).
    unsafe fn store(&self, i: usize, item: Self::Item);
    /// Returns true if `a` comes before `b`.
    fn is_before(a: Self::Item, b: Self::Item) -> bool;

    /// Moves `hole` up until an item fits, and stores the item there.
    ///
    /// # Safety
    /// As [`load`](Self::load), up to the hole.
    #[inline(always)]
    unsafe fn sift_up(&self, mut hole: usize, item: Self::Item) {
        while hole > 0 {
            let parent = (hole - 1) / 2;
            let above = self.load(parent);
            if !Self::is_before(above, item) {
                break;
            }
            self.store(hole, above);
            hole = parent;
        }
        self.store(hole, item);
    }

    /// Moves a hole down from the root of a heap of `end` items until an item fits, and stores the item there.
    ///
    /// # Safety
    /// As [`load`](Self::load), up to the end.
    #[inline(always)]
    unsafe fn sift_down(&self, end: usize, item: Self::Item) {
        let mut hole = 0;
        loop {
            let mut child = 2 * hole + 1;
            if child >= end {
                break;
            }
            let mut below = self.load(child);
            if child + 1 < end {
                let right = self.load(child + 1);
                if Self::is_before(below, right) {
                    (child, below) = (child + 1, right);
                }
            }
            if !Self::is_before(item, below) {
                break;
            }
            self.store(hole, below);
            hole = child;
        }
        self.store(hole, item);
    }
}
