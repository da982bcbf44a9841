//! Options of a [`DynamicKdTree`](super::DynamicKdTree).

use crate::kdtree::SplitRule;

/// Options of a [`DynamicKdTree`](super::DynamicKdTree): the split rule.
///
/// ```
/// use kauri::dynamic::DynamicOptions;
/// use kauri::kdtree::SplitRule;
/// use kauri::{Device, DynamicKdTree};
/// let options = DynamicOptions::default().split(SplitRule::Widest);
/// let tree = DynamicKdTree::<[f64; 2]>::new(&Device::cpu(), &options)?;
/// assert!(tree.is_empty());
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DynamicOptions {
    /// The rule that chooses the split axis of each node.
    pub split: SplitRule,
}

impl DynamicOptions {
    setters! {
        /// Sets the split rule.
        split: SplitRule;
    }
}
