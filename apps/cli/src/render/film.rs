//! Frames of a picture: one of a mesh at rest, or several of a moving mesh.

use clap::ValueEnum;

use crate::Result;
use crate::memory::vec_with_capacity;
use crate::progress::Steps;
use crate::step::Step;
use kauri::mesh::{Mesh, Motion};
use kauri::rays::RayIndex;
use kauri::render::{self, Camera, RenderOptions};
use kauri::sah::{Quality, SahOptions, SahTree};
use kauri::{Bvh, Device};

/// The number of times at which a motion is sampled for its bounding box.
const PHASES: u32 = 16;

/// [`Motion`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Animation {
    /// Waves run along the longest side of the mesh
    Waves,
    /// The ends of the mesh twist in opposite directions, back and forth
    Twist,
}

impl Animation {
    pub(super) fn motion(self) -> Motion {
        match self {
            Self::Waves => Motion::Waves,
            Self::Twist => Motion::Twist,
        }
    }
}

/// The index of triangles, on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum IndexKind {
    /// A bounding volume hierarchy: the fastest to build, and for rays
    Bvh,
    /// A SAH k-d tree that splits large nodes in the middle and small nodes at the cheapest plane
    Sah,
    /// A SAH k-d tree that splits every node at the cheapest plane; the CPU builds it
    SahExact,
}

/// An index of triangles.
enum Index {
    Bvh(Bvh),
    Sah(SahTree),
}

impl Index {
    fn build(kind: IndexKind, device: &Device, mesh: &Mesh) -> kauri::Result<Self> {
        let sah =
            |quality| SahTree::build(device, mesh, &SahOptions::default().quality(quality)).map(Self::Sah);
        match kind {
            IndexKind::Bvh => Bvh::build(device, mesh).map(Self::Bvh),
            IndexKind::Sah => sah(Quality::Fast),
            IndexKind::SahExact => sah(Quality::Exact),
        }
    }

    fn rebuild(&mut self, mesh: &Mesh) -> kauri::Result<()> {
        match self {
            Self::Bvh(bvh) => bvh.rebuild(mesh),
            Self::Sah(tree) => tree.rebuild(mesh),
        }
    }

    fn get(&self) -> &dyn RayIndex {
        match self {
            Self::Bvh(bvh) => bvh,
            Self::Sah(tree) => tree,
        }
    }
}

/// A mesh in motion, and the times of its frames so far.
pub(super) struct Film<'a> {
    device: &'a Device,
    at_rest: &'a Mesh,
    mesh: Mesh,
    motion: Option<Motion>,
    count: u32,
    /// The index of the last frame. The next build reuses its memory.
    index: Option<Index>,
    pub(super) build: Step,
    pub(super) trace: Step,
}

impl<'a> Film<'a> {
    pub(super) fn new(device: &'a Device, at_rest: &'a Mesh, motion: Option<Motion>, count: u32) -> Self {
        let (build, trace) = (Step::of("build", "triangles"), Step::of("trace", "rays"));
        Self { device, at_rest, mesh: at_rest.clone(), motion, count, index: None, build, trace }
    }

    /// Returns vertex positions during the motion, for the camera.
    pub(super) fn vertex_positions(&mut self) -> Result<Vec<[f32; 3]>> {
        let phases = if self.motion.is_some() { PHASES } else { 1 };
        let num_places = phases as usize * self.mesh.vertices().len();
        let mut places = vec_with_capacity(num_places, "places of vertices")?;
        for phase in 0..phases {
            self.move_to(f64::from(phase) / f64::from(phases))?;
            places.extend_from_slice(self.mesh.vertices());
        }
        Ok(places)
    }

    /// Renders a frame; returns its bytes.
    pub(super) fn frame(
        &mut self,
        i: u32,
        kind: IndexKind,
        camera: &Camera,
        options: &RenderOptions,
        steps: Steps,
    ) -> Result<Vec<u8>> {
        self.move_to(f64::from(i) / f64::from(self.count))?;
        let (mesh, last) = (&self.mesh, self.index.take());
        let index = self.build.time(|| match last {
            Some(mut index) => index.rebuild(mesh).map(|()| index),
            None => Index::build(kind, self.device, mesh),
        })?;
        let name = format!("frame {} of {}", i + 1, self.count);
        let draw = || Ok(render::image(index.get(), &self.mesh, camera, options)?);
        let image = self.trace.time(|| steps.step(&name, "rays", draw, |image| image.num_rays as usize))?;
        self.build.count += mesh.len();
        self.trace.count += image.num_rays as usize;
        self.index = Some(index);
        Ok(image.pixels)
    }

    /// Moves the mesh to its position at a time from 0 to 1.
    fn move_to(&mut self, time: f64) -> Result<()> {
        let Some(motion) = self.motion else { return Ok(()) };
        Ok(motion.apply(self.at_rest, time, &mut self.mesh)?)
    }
}
