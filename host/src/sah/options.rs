//! Options of builds.

use crate::error::{Error, Result};

/// Options of a build of [`SahTree`](super::SahTree).
///
/// ```
/// use kauri::mesh::shapes;
/// use kauri::rays::RayIndex;
/// use kauri::sah::{Quality, SahOptions, SahTree};
/// use kauri::Device;
/// let knot = shapes::torus_knot([2, 3], 60, 8)?;
/// let build = |options: &SahOptions| SahTree::build(&Device::cpu(), &knot, options);
/// let fast = build(&SahOptions::default())?;
/// let best = build(&SahOptions::default().quality(Quality::Exact).clip(true))?;
/// println!("a ray costs {} or {} intersection tests", fast.cost()?, best.cost()?);
/// best.verify()?;
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SahOptions {
    /// Quality of the tree, against build time.
    pub quality: Quality,
    /// Cost of a traversal step, in intersection tests: Zhou's C_ts. Not negative; 1 by default.
    pub step_cost: f32,
    /// Empty space at a side of a large node is cut off if it is more than this fraction of the node's extent. 0.25 by
    /// default; from 1 on nothing is cut off.
    pub empty_space: f32,
    /// Whether triangles are clipped at split planes, so that fewer leaves refer to them. The tree is better, and the build
    /// takes longer. False by default.
    pub clip: bool,
    /// Variants of a GPU's stages.
    #[cfg(feature = "research")]
    pub(crate) stages: super::variants::StagesOptions,
}

/// Quality of a tree, against build time. The [module](super) compares costs.
///
/// ```
/// use kauri::sah::{Quality, SahOptions};
/// let options = SahOptions::default().quality(Quality::Exact);
/// assert_ne!(options.quality, Quality::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quality {
    /// Large nodes split in the middle, small nodes at the cheapest plane: for trees that are rebuilt for every frame.
    #[default]
    Fast,
    /// Every node splits at the cheapest plane.
    Exact,
}

impl Default for SahOptions {
    fn default() -> Self {
        Self {
            quality: Quality::default(),
            step_cost: 1.0,
            empty_space: 0.25,
            clip: false,
            #[cfg(feature = "research")]
            stages: super::variants::StagesOptions::default(),
        }
    }
}

impl SahOptions {
    setters! {
        /// Sets the quality.
        quality: Quality;

        /// Sets the cost of a step.
        step_cost: f32;

        /// Sets the fraction of empty space that is cut off.
        empty_space: f32;

        /// Sets whether triangles are clipped.
        clip: bool;

        /// Sets the variants of a GPU's stages. The tree does not depend on them.
        #[cfg(feature = "research")]
        stages: super::variants::StagesOptions;
    }

    pub(super) fn check(&self) -> Result<()> {
        let lengths = [("cost of a step", self.step_cost), ("fraction of empty space", self.empty_space)];
        match lengths.into_iter().find(|(_, value)| !(*value >= 0.0 && value.is_finite())) {
            Some((what, value)) => Err(Error::InvalidLength { what, value: value.into() }),
            None => Ok(()),
        }
    }
}
