//! The points of an elevation model: which belong to it, and how they are read.

use clap::ValueEnum;

use crate::CliError;
use crate::text::thousands;
use kauri::io::{Attributes, CloudChunk, CloudFiles, CloudFilter};
use kauri::terrain::RasterGrid;
use kauri::{Lattice, PointChunk, PointSource, VisitPoints};

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
pub(super) struct Layer {
    name: &'static str,
    classes: [bool; NUM_CLASSES],
    only_first_returns: bool,
}

impl Layer {
    /// Returns the layer of a model with this name. `classes`, if there are any, replace the classes of the model; in a CHM they replace the
    /// classes of its DTM. A ground filter chooses from points of all classes.
    pub(super) fn new(name: &'static str, model: Model, classes: &[u8], is_filtered: bool) -> Self {
        let is_ground = name == "DTM";
        let is_chosen = !classes.is_empty() && (is_ground || model != Model::Chm);
        let keeps = |class: u8| match (is_chosen, is_ground) {
            (true, _) => classes.contains(&class),
            (false, true) if !is_filtered => class == GROUND,
            (false, _) => !NOISE.contains(&class),
        };
        Self {
            name,
            classes: std::array::from_fn(|class| keeps(class as u8)),
            only_first_returns: name == "DSM",
        }
    }

    pub(super) fn is_ground(&self) -> bool {
        self.name == "DTM"
    }

    /// Returns true for a point that belongs to the raster.
    fn keeps(&self, class: u8, return_number: u8) -> bool {
        self.classes[usize::from(class)] && (return_number <= 1 || !self.only_first_returns)
    }

    /// Returns the error of a layer without points.
    pub(super) fn without_points(&self, read: &PointsRead) -> CliError {
        let kept: Vec<String> =
            (0..NUM_CLASSES).filter(|&class| self.classes[class]).map(|class| class.to_string()).collect();
        let classes = if kept.len() > MOST_SHOWN { "that are no noise".into() } else { kept.join(", ") };
        let word = if kept.len() == 1 { "class" } else { "classes" };
        let kind = if self.only_first_returns { "first returns" } else { "points" };
        let found = read.classes();
        let advice = if found.is_empty() {
            "there are no points in this area: check --bounds (kauri info prints the bounds of a file)"
                .to_owned()
        } else {
            format!("the points have classes {found}; choose with --class")
        };
        CliError::Points(format!("no {kind} of {word} {classes} for the {}: {advice}", self.name))
    }
}

/// Numbers of points of files that were read.
pub(super) struct PointsRead {
    pub(super) num_points: u64,
    /// Points that the filter of the files accepts, by class.
    of_class: [u64; NUM_CLASSES],
}

impl PointsRead {
    pub(super) fn new() -> Self {
        Self { num_points: 0, of_class: [0; NUM_CLASSES] }
    }

    /// Returns the classes with their numbers of points, as text.
    fn classes(&self) -> String {
        let present = self.of_class.iter().enumerate().filter(|(_, count)| **count > 0);
        let text = |(class, &count): (usize, &u64)| {
            let name = CLASS_NAMES.iter().find(|(number, _)| *number == class);
            let name = name.map_or(String::new(), |(_, name)| format!("{name}, "));
            format!("{class} ({name}{} points)", thousands(count as usize))
        };
        present.map(text).collect::<Vec<_>>().join(", ")
    }
}

/// The points of a layer, as they are read from files.
pub(super) struct LayerPoints<'a> {
    pub(super) files: &'a CloudFiles,
    pub(super) layer: &'a Layer,
    pub(super) read: &'a mut PointsRead,
}

impl PointSource for LayerPoints<'_> {
    type Point = [i32; 3];

    fn num_points(&self) -> Option<u64> {
        Some(self.files.num_points())
    }

    fn for_each_chunk(&mut self, visit: &mut VisitPoints<'_, [i32; 3]>) -> kauri::Result<()> {
        let attributes = Attributes { class: true, return_number: true, ..Attributes::default() };
        self.files.for_each_chunk(&attributes, |chunk| {
            let CloudChunk { mut points, attributes, num_read, bytes, .. } = chunk;
            self.read.num_points += num_read;
            let mut marks = attributes.class.iter().zip(&attributes.return_number);
            points.retain(|_| {
                let Some((&class, &number)) = marks.next() else { return false };
                self.read.of_class[usize::from(class)] += 1;
                self.layer.keeps(class, number)
            });
            visit(PointChunk { points: &points, num_read, bytes })
        })
    }
}

/// Returns the files with the points within an area, if there is one, and without withheld points.
pub(super) fn filtered(files: CloudFiles, area: Option<[[f64; 2]; 2]>) -> CloudFiles {
    let mut filter = CloudFilter::default().without_withheld();
    if let Some([low, high]) = area {
        filter = filter.bounds([[low[0], low[1], f64::MIN], [high[0], high[1], f64::MAX]]);
    }
    files.filter(filter)
}

/// Returns the smallest area that covers two.
pub(super) fn union(a: [[f64; 2]; 2], b: [[f64; 2]; 2]) -> [[f64; 2]; 2] {
    [[0, 1].map(|axis| a[0][axis].min(b[0][axis])), [0, 1].map(|axis| a[1][axis].max(b[1][axis]))]
}

/// True if two areas have a common point.
pub(super) fn touch(a: [[f64; 2]; 2], b: [[f64; 2]; 2]) -> bool {
    (0..2).all(|axis| a[0][axis] <= b[1][axis] && b[0][axis] <= a[1][axis])
}

/// Returns the cells that cover an area of points on a lattice. Half a step less at each border does not leave out points, and rounded
/// positions do not add cells.
pub(super) fn covering(area: [[f64; 2]; 2], lattice: &Lattice, resolution: f64) -> kauri::Result<RasterGrid> {
    let moved = |corner: [f64; 2], steps: f64| [0, 1].map(|axis| corner[axis] + steps * lattice.scale[axis]);
    RasterGrid::covering([moved(area[0], 0.5), moved(area[1], -0.5)], resolution)
}

/// Returns the area that the headers of files with points declare.
pub(super) fn declared_area(files: &CloudFiles) -> [[f64; 2]; 2] {
    let files = files.files().iter().filter(|file| file.num_points() > 0);
    files.map(|file| file.declared_bounds().map(|[x, y, _]| [x, y])).reduce(union).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_positions_do_not_add_cells() {
        let lattice = Lattice { scale: [0.01; 3], offset: [0.0; 3] };
        let grid =
            |high: f64| covering([[0.2 + 1e-12, 0.6 - 1e-12], [0.6 + 1e-12, high]], &lattice, 0.2).unwrap();
        assert_eq!((grid(1.0).columns(), grid(1.0).rows()), (2, 2));
        assert_eq!((grid(1.0 + 1e-12).rows(), grid(1.01).rows()), (2, 3));
        // A point.
        assert_eq!(covering([[0.4; 2]; 2], &lattice, 0.2).unwrap().len(), 1);
    }

    #[test]
    fn points_of_models() {
        let kept = |name: &'static str, model: Model, classes: &[u8]| {
            let layer = Layer::new(name, model, classes, false);
            let all = [(2, 1), (2, 2), (5, 1), (5, 2), (7, 1), (18, 1), (9, 0)];
            all.map(|(class, number)| layer.keeps(class, number))
        };
        assert_eq!(kept("DTM", Model::Dtm, &[]), [true, true, false, false, false, false, false]);
        assert_eq!(kept("DTM", Model::Dtm, &[2, 9]), [true, true, false, false, false, false, true]);
        assert_eq!(kept("DSM", Model::Dsm, &[]), [true, false, true, false, false, false, true]);
        assert_eq!(kept("DSM", Model::Dsm, &[5, 7]), [false, false, true, false, true, false, false]);
        assert_eq!(kept("DSM", Model::Chm, &[9]), kept("DSM", Model::Dsm, &[]));
        assert_eq!(kept("DTM", Model::Chm, &[9]), kept("DTM", Model::Dtm, &[9]));
        assert_eq!(kept("points", Model::All, &[]), [true, true, true, true, false, false, true]);
    }
}
