//! The points of an elevation model: which are kept, and how they are read.

use clap::ValueEnum;
use std::mem::take;
use std::ops::ControlFlow;

use crate::memory::reserve;
use crate::progress::Steps;
use crate::text::thousands;
use crate::{CliError, Result};
use kauri::Lattice;
use kauri::io::{Attributes, CloudChunk, CloudFiles, CloudFilter};
use kauri::terrain::RasterGrid;

/// The class of ground (LAS 1.4, table 17).
const GROUND: u8 = 2;
/// The classes of noise: low points and high ones.
const NOISE: [u8; 2] = [7, 18];
const NUM_CLASSES: usize = 256;
/// Classes that a message lists.
const MOST_SHOWN: usize = 8;
/// Names of classes in messages.
const CLASS_NAMES: [(usize, &str); 9] = [
    (0, "never classified"),
    (1, "unassigned"),
    (2, "ground"),
    (3, "low vegetation"),
    (4, "medium vegetation"),
    (5, "high vegetation"),
    (6, "buildings"),
    (7, "noise"),
    (9, "water"),
];

/// The surface that a raster describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Model {
    /// Digital terrain model: the bare ground (points of class 2)
    Dtm,
    /// Digital surface model: the tops of trees and buildings (first returns, without noise)
    Dsm,
    /// Canopy height model: the DSM minus a DTM by tin
    Chm,
    /// All points but noise, for example to count them
    All,
}

impl Model {
    /// Returns the names of the rasters, from which that of the model is computed.
    pub(super) fn layers(self) -> &'static [&'static str] {
        match self {
            Self::Dtm => &["DTM"],
            Self::Dsm => &["DSM"],
            Self::Chm => &["DSM", "DTM"],
            Self::All => &["points"],
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Chm => "CHM",
            _ => self.layers()[0],
        }
    }
}

/// The points of one raster.
struct Layer {
    name: &'static str,
    classes: [bool; NUM_CLASSES],
    only_first_returns: bool,
    points: Vec<[i32; 3]>,
}

impl Layer {
    /// Returns true for a point that belongs to the raster.
    fn keeps(&self, class: u8, return_number: u8) -> bool {
        self.classes[usize::from(class)] && (return_number <= 1 || !self.only_first_returns)
    }
}

/// The points of all rasters of a model.
pub(super) struct Layers {
    layers: Vec<Layer>,
    num_read: u64,
    /// Numbers of points that were read, of each class.
    of_class: [u64; NUM_CLASSES],
    /// The least and the greatest x and y that are kept.
    low: [i32; 2],
    high: [i32; 2],
}

impl Layers {
    /// Returns the layers of a model, without points yet. If there are `classes`, they replace those of the model; in a CHM, those of its DTM.
    pub(super) fn new(model: Model, classes: &[u8]) -> Self {
        let layer = |&name: &&'static str| {
            let is_ground = name == "DTM";
            let is_chosen = !classes.is_empty() && (is_ground || model != Model::Chm);
            let keeps = |class: u8| match (is_chosen, is_ground) {
                (true, _) => classes.contains(&class),
                (false, true) => class == GROUND,
                (false, false) => !NOISE.contains(&class),
            };
            let classes = std::array::from_fn(|class| keeps(class as u8));
            Layer { name, classes, only_first_returns: name == "DSM", points: Vec::new() }
        };
        let layers = model.layers().iter().map(layer).collect();
        Self { layers, num_read: 0, of_class: [0; NUM_CLASSES], low: [i32::MAX; 2], high: [i32::MIN; 2] }
    }

    /// Reads the points, or those within an area, except for withheld points.
    pub(super) fn read(
        &mut self,
        files: &CloudFiles,
        area: Option<[[f64; 2]; 2]>,
        steps: Steps,
    ) -> Result<()> {
        let mut filter = CloudFilter::default().without_withheld();
        if let Some([low, high]) = area {
            filter = filter.bounds([[low[0], low[1], f64::MIN], [high[0], high[1], f64::MAX]]);
        }
        let (files, total) = (files.clone().filter(filter), files.num_points() as usize);
        let attributes = Attributes { class: true, return_number: true, ..Attributes::default() };
        steps.advancing("read", "points", total, |advance| {
            Ok(files.for_each_chunk(&attributes, |chunk| {
                self.add(&chunk)?;
                advance(chunk.num_read as usize);
                Ok(ControlFlow::Continue(()))
            })?)
        })
    }

    fn add(&mut self, chunk: &CloudChunk) -> kauri::Result<()> {
        let (classes, returns) = (&chunk.attributes.class, &chunk.attributes.return_number);
        self.num_read += chunk.num_read;
        classes.iter().for_each(|&class| self.of_class[usize::from(class)] += 1);
        for layer in &mut self.layers {
            let begin = layer.points.len();
            reserve(&mut layer.points, chunk.points.len(), "points of a cloud")?;
            for ((point, &class), &number) in chunk.points.iter().zip(classes).zip(returns) {
                if layer.keeps(class, number) {
                    layer.points.push(*point);
                }
            }
            for point in &layer.points[begin..] {
                self.low = [0, 1].map(|axis| self.low[axis].min(point[axis]));
                self.high = [0, 1].map(|axis| self.high[axis].max(point[axis]));
            }
        }
        Ok(())
    }

    /// Returns the number of points that were read.
    pub(super) fn num_read(&self) -> usize {
        self.num_read as usize
    }

    /// Returns the points of a layer, at least one.
    pub(super) fn take_points(&mut self, layer: usize) -> Result<Vec<[i32; 3]>> {
        let Layer { name, classes, only_first_returns, points } = &mut self.layers[layer];
        if !points.is_empty() {
            return Ok(take(points));
        }
        let kept: Vec<String> =
            (0..NUM_CLASSES).filter(|&class| classes[class]).map(|class| class.to_string()).collect();
        let classes = if kept.len() > MOST_SHOWN { "that are not noise".into() } else { kept.join(", ") };
        let kind = if *only_first_returns { "first returns" } else { "points" };
        let found = shown(&self.of_class);
        let advice = if found.is_empty() {
            "there are no points in this area: check --bounds (kauri info prints the bounds of a file)"
                .to_owned()
        } else {
            format!("the points have classes {found}; choose with --class")
        };
        Err(CliError::Points(format!("no {kind} of classes {classes} for the {name}: {advice}")))
    }

    /// Returns the area of the points that are kept if a raster does not cover it.
    pub(super) fn area_beyond(&self, lattice: &Lattice, grid: &RasterGrid) -> Option<[[f64; 2]; 2]> {
        if self.low[0] > self.high[0] {
            return None;
        }
        let [low, high] = [self.low, self.high].map(|corner| lattice.position(corner));
        let [west, north] = grid.corner();
        let [width, height] = [grid.columns(), grid.rows()].map(|cells| f64::from(cells) * grid.resolution());
        let is_covered =
            west <= low[0] && high[0] <= west + width && north - height <= low[1] && high[1] <= north;
        (!is_covered).then_some([low, high])
    }
}

/// Returns the area that the headers of files with points declare.
pub(super) fn declared_area(files: &CloudFiles) -> [[f64; 2]; 2] {
    let mut area: Option<[[f64; 2]; 2]> = None;
    for file in files.files().iter().filter(|file| file.num_points() > 0) {
        let [low, high] = file.declared_bounds().map(|[x, y, _]| [x, y]);
        let [least, greatest] = area.get_or_insert([low, high]);
        for axis in 0..2 {
            least[axis] = least[axis].min(low[axis]);
            greatest[axis] = greatest[axis].max(high[axis]);
        }
    }
    area.unwrap_or_default()
}

/// Returns the classes with their numbers of points, as text.
fn shown(of_class: &[u64; NUM_CLASSES]) -> String {
    let present = of_class.iter().enumerate().filter(|(_, count)| **count > 0);
    let text = |(class, &count): (usize, &u64)| {
        let name = CLASS_NAMES.iter().find(|(number, _)| *number == class);
        let name = name.map_or(String::new(), |(_, name)| format!("{name}, "));
        format!("{class} ({name}{} points)", thousands(count as usize))
    };
    present.map(text).collect::<Vec<_>>().join(", ")
}
