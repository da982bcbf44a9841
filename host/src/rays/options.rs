//! Options of ray queries.

/// Options of ray queries. Hits do not depend on them.
///
/// ```
/// use kauri::mesh::shapes;
/// use kauri::rays::{Ray, RayIndex, RayOptions};
/// use kauri::{Device, SahOptions, SahTree};
/// let tree = SahTree::build(&Device::cpu(), &shapes::grid(2, [4, 4])?, &SahOptions::default())?;
/// let rays = [Ray::new([1.5, 2.5, 3.0], [0.0, 0.0, -1.0])];
/// let sorted = RayOptions::default().sorted(true);
/// assert_eq!(tree.closest_hits_with(&rays, &sorted)?, tree.closest_hits(&rays)?);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RayOptions {
    /// Whether a GPU sorts rays by origin and direction before it traces them. Sorting is faster for incoherent rays that go
    /// deep into a tree, and for shadow rays. It is slower for rays whose neighbors take similar paths already: the rays of a
    /// picture, and short rays from neighboring points. It takes 16 bytes of scratch memory per ray. False by default; the
    /// CPU does not sort.
    pub sorted: bool,
    pub(crate) traversal: RayTraversal,
}

impl RayOptions {
    setters! {
        /// Sets whether rays are sorted.
        sorted: bool;

        /// Sets how a ray in a [`SahTree`](crate::SahTree) finds the subtrees that it has deferred.
        #[cfg(feature = "research")]
        traversal: RayTraversal;
    }
}

/// How a ray in a [`SahTree`](crate::SahTree) finds the subtrees that it has deferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "research"), expect(unreachable_pub))]
pub enum RayTraversal {
    /// They are on a stack.
    #[default]
    Stack,
    /// Traversal restarts from the root for each.
    #[cfg(feature = "research")]
    Restart,
}
