//! Pictures of a terrain and its quadtree.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

use super::land::{Cell, Land, Place};
use super::raster::Raster;
use crate::Result;
use crate::picture::{self, Area, Canvas, Drawn};
use crate::text::thousands;
use kauri::lidar::LidarClass;
use kauri::quadtree::Node;

/// The side of a map in pixels. The picture of the tree has two maps, the picture of the density one.
const TREE_MAP: u32 = 620;
const DENSITY_MAP: u32 = 1200;
/// Pixels left of a map for axis labels, of a line of text above or below it, and of the outer margin.
const LABELS: u32 = 112;
const LINE: u32 = 34;
const MARGIN: u32 = 16;
/// Pixels to the right of a map, for half an axis label.
const RIGHT: u32 = 48;
/// The width of the color scale of the densities and of its labels, in pixels.
const SCALE: u32 = 30;
const SCALE_LABELS: u32 = 64;
/// The least side of a cell, in pixels, in the map of all land at average density.
const CELL: f64 = 20.0;

const BACKGROUND: RGBColor = RGBColor(9, 14, 26);
const INK: RGBColor = RGBColor(205, 212, 224);
const BORDER: RGBColor = RGBColor(70, 84, 112);
const PLACE: RGBColor = RGBColor(255, 255, 255);
const AROUND: RGBColor = RGBColor(255, 196, 60);

/// The classes of points, with their names and colors.
const CLASSES: [(LidarClass, &str, RGBColor); 6] = [
    (LidarClass::Ground, "ground", RGBColor(204, 178, 134)),
    (LidarClass::LowVegetation, "low vegetation", RGBColor(188, 196, 110)),
    (LidarClass::MediumVegetation, "medium", RGBColor(140, 186, 84)),
    (LidarClass::HighVegetation, "high", RGBColor(56, 146, 72)),
    (LidarClass::Building, "buildings", RGBColor(226, 92, 70)),
    (LidarClass::Water, "water", RGBColor(64, 134, 214)),
];

fn color_of(class: LidarClass) -> RGBColor {
    CLASSES.iter().find(|(of, ..)| *of == class).map_or(INK, |&(.., color)| color)
}

/// A map with the coordinates x and y in meters.
type Map<'a> = DrawingArea<Canvas<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Draws the terrain with cells of the tree, and a window with all its leaves and points.
pub(super) fn draw_tree(path: &Path, land: &Land<'_>) -> Result<()> {
    let raster = Raster::of(land, TREE_MAP)?;
    let returns = raster.nearest(land)?;
    let lights = raster.lights(&returns);
    let colors = returns.iter().zip(lights).map(|(back, light)| {
        let back = back.as_ref()?;
        Some(shaded(color_of(back.class), light))
    });
    let colors: Vec<_> = colors.map(|color| color.unwrap_or(BACKGROUND)).collect();
    let [width, height] = map_size(TREE_MAP);
    Ok(picture::write(path, [2 * width, height + LINE + MARGIN], |area| {
        area.fill(&BACKGROUND)?;
        let (maps, legend) = area.split_vertically(height);
        let (left, right) = maps.split_horizontally(width);
        draw_all(&left, land, &colors)?;
        draw_window(&right, land)?;
        draw_legend(&legend)
    })?)
}

/// Draws the point density of the leaves.
pub(super) fn draw_density(path: &Path, land: &Land<'_>) -> Result<()> {
    let raster = Raster::of(land, DENSITY_MAP)?;
    let of_nodes = land.densities();
    // Pixels outside of all leaves have the density 0.
    let of_leaf = |&leaf: &u32| of_nodes.get(leaf as usize).copied().unwrap_or(0.0);
    let densities: Vec<f64> = raster.leaves.iter().map(of_leaf).collect();
    let [least, most] = usual(&densities);
    let color = |density: f64| {
        let share = (density / least).ln() / (most / least).ln();
        ViridisRGB.get_color_normalized(share.clamp(0.0, 1.0), 0.0, 1.0)
    };
    let colors: Vec<_> =
        densities.iter().map(|&density| if density > 0.0 { color(density) } else { BACKGROUND }).collect();
    let [width, height] = map_size(DENSITY_MAP);
    let scale = MARGIN + SCALE + SCALE_LABELS;
    Ok(picture::write(path, [width + scale, height + MARGIN], |area| {
        area.fill(&BACKGROUND)?;
        let (above, _) = area.split_vertically(height);
        let (map, scale) = above.split_horizontally(width);
        let map = draw_map(&map, "Points a square meter of each leaf", land.bounds)?;
        fill(&map, DENSITY_MAP, &colors)?;
        draw_scale(&scale, [least, most], color)
    })?)
}

/// Draws the color scale of the densities.
fn draw_scale(area: &Area<'_>, [least, most]: [f64; 2], color: impl Fn(f64) -> RGBColor) -> Drawn {
    let (left, top) = (MARGIN as i32, (MARGIN + LINE) as i32);
    let right = left + SCALE as i32;
    for row in 0..=DENSITY_MAP as i32 {
        let share = 1.0 - f64::from(row) / f64::from(DENSITY_MAP);
        let color = color(least * (most / least).powf(share));
        area.draw(&PathElement::new([(left, top + row), (right, top + row)], color))?;
    }
    let text = TextStyle::from(("", LINE)).color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    let decades = least.log10().floor() as i32..=most.log10().floor() as i32;
    let labels = decades.flat_map(|decade| [1.0, 2.0, 3.0, 5.0].map(|times| times * 10.0_f64.powi(decade)));
    for density in labels.filter(|density| (least..=most).contains(density)) {
        let share = 1.0 - (density / least).ln() / (most / least).ln();
        let row = top + (share * f64::from(DENSITY_MAP)) as i32;
        area.draw(&PathElement::new([(right, row), (right + 5, row)], INK))?;
        let label = format!("{}", (density * 1e6).round() / 1e6);
        area.draw(&Text::new(label, (right + 10, row), text.clone()))?;
    }
    Ok(())
}

/// Draws the terrain and the leaf cells of a coarser tree. Its leaves hold more points, and each of its nodes is also a node of this tree.
fn draw_all(area: &Area<'_>, land: &Land<'_>, colors: &[RGBColor]) -> Drawn {
    let meters = CELL / f64::from(TREE_MAP) * (land.bounds[1][0] - land.bounds[0][0]);
    let wide = land.cells.iter().rev().find(|cell| cell.side >= meters).unwrap_or(&land.cells[0]);
    // The average number of points in cells of this width, so that about half of them split.
    let share = (wide.side / (land.bounds[1][0] - land.bounds[0][0])).powi(2);
    let most = land.leaf_points.max((land.points.len() as f64 * share) as u32);
    let title = format!("Cells of up to {} points", thousands(most as usize));
    let map = draw_map(area, &title, land.bounds)?;
    fill(&map, TREE_MAP, colors)?;
    // Cells that do not exceed this number while their parents do.
    let split = |node: &Node| !node.is_leaf() && node.len() > most;
    for node in land.nodes.iter().filter(|node| split(node)) {
        for child in node.first_child..node.first_child + 4 {
            if !split(&land.nodes[child as usize]) {
                draw_cell(&map, land.bounds, &land.cells[child as usize], BLACK.mix(0.5))?;
            }
        }
    }
    draw_box(&map, land.bounds, land.window, PLACE.stroke_width(3))
}

/// Draws all leaves and points of the window, and the queried position.
fn draw_window(area: &Area<'_>, land: &Land<'_>) -> Drawn {
    let title = format!("Leaves of up to {} points", thousands(land.leaf_points as usize));
    let window = land.window;
    let map = draw_map(area, &title, window)?;
    let leaves = || land.leaves_in(window);
    for leaf in leaves() {
        draw_cell(&map, window, &land.cells[leaf as usize], BORDER)?;
    }
    for (at, back) in leaves().flat_map(|leaf| land.points_of(leaf)) {
        if (0..2).all(|axis| window[0][axis] <= at[axis] && at[axis] < window[1][axis]) {
            map.draw(&Circle::new(at.into(), 2, color_of(back.class).filled()))?;
        }
    }
    if let Some(Place { leaf, around, .. }) = &land.place {
        for &leaf in around {
            draw_cell(&map, window, &land.cells[leaf as usize], AROUND.stroke_width(2))?;
        }
        draw_cell(&map, window, &land.cells[*leaf as usize], PLACE.stroke_width(3))?;
    }
    Ok(())
}

/// Pixels of a map with its axes and its title.
fn map_size(side: u32) -> [u32; 2] {
    [MARGIN + LABELS + side + RIGHT, MARGIN + LINE + side + LINE]
}

/// Draws the axes and the title of a map.
fn draw_map<'a>(area: &Area<'a>, title: &str, [low, high]: [[f64; 2]; 2]) -> Drawn<Map<'a>> {
    let text = TextStyle::from(("", LINE)).color(&INK);
    let at = (MARGIN + LABELS) as i32;
    area.draw(&Text::new(title.to_owned(), (at, MARGIN as i32), text.clone()))?;
    let mut chart = ChartBuilder::on(area)
        .margin_top(MARGIN + LINE)
        .margin_left(MARGIN)
        .margin_right(RIGHT)
        .x_label_area_size(LINE)
        .y_label_area_size(LABELS)
        .build_cartesian_2d(low[0]..high[0], low[1]..high[1])?;
    let meters = |value: &f64| thousands(value.round().max(0.0) as usize);
    chart
        .configure_mesh()
        .disable_mesh()
        .axis_style(INK)
        .label_style(text)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&meters)
        .y_label_formatter(&meters)
        .draw()?;
    Ok(chart.plotting_area().clone())
}

/// Draws the pixels of a map, by rows of `side`.
fn fill(map: &Map<'_>, side: u32, colors: &[RGBColor]) -> Drawn {
    let pixels = map.strip_coord_spec();
    let (width, height) = pixels.dim_in_pixel();
    for (row, colors) in (0..height as i32).zip(colors.chunks(side as usize)) {
        for (column, color) in (0..width as i32).zip(colors) {
            pixels.draw_pixel((column, row), color)?;
        }
    }
    Ok(())
}

fn draw_cell(map: &Map<'_>, bounds: [[f64; 2]; 2], cell: &Cell, style: impl Into<ShapeStyle>) -> Drawn {
    draw_box(map, bounds, [cell.low, cell.low.map(|at| at + cell.side)], style)
}

/// Draws the part of a box that is within bounds.
fn draw_box(map: &Map<'_>, bounds: [[f64; 2]; 2], of: [[f64; 2]; 2], style: impl Into<ShapeStyle>) -> Drawn {
    let [low, high] = of.map(|corner| {
        let axis = |axis: usize| corner[axis].clamp(bounds[0][axis], bounds[1][axis]);
        (axis(0), axis(1))
    });
    if low.0 < high.0 && low.1 < high.1 {
        map.draw(&Rectangle::new([low, high], style))?;
    }
    Ok(())
}

fn draw_legend(area: &Area<'_>) -> Drawn {
    let text = TextStyle::from(("", LINE)).color(&INK);
    let marks = [("leaf of a place", PLACE), ("leaves around it", AROUND)];
    let classes = CLASSES.map(|(_, name, color)| (name, color, true));
    let marks = marks.map(|(name, color)| (name, color, false));
    let mut x = (MARGIN + LABELS) as i32;
    for (name, color, is_filled) in classes.into_iter().chain(marks) {
        let style = ShapeStyle { color: color.to_rgba(), filled: is_filled, stroke_width: 2 };
        area.draw(&Rectangle::new([(x, 4), (x + 14, 18)], style))?;
        area.draw(&Text::new(name, (x + 22, 2), text.clone()))?;
        let (width, _) = area.estimate_text_size(name, &text)?;
        x += width as i32 + 22 + 2 * MARGIN as i32;
    }
    Ok(())
}

/// Returns the range of densities without the lowest and the highest percent.
fn usual(densities: &[f64]) -> [f64; 2] {
    let mut some: Vec<f64> = densities.iter().copied().filter(|&density| density > 0.0).collect();
    some.sort_unstable_by(f64::total_cmp);
    match some.len() {
        0 => [1.0, 10.0],
        len => {
            let (least, most) = (some[len / 100], some[len - 1 - len / 100]);
            [least, most.max(2.0 * least)]
        }
    }
}

fn shaded(color: RGBColor, light: f64) -> RGBColor {
    let [r, g, b] = [color.0, color.1, color.2].map(|channel| (f64::from(channel) * light).min(255.0) as u8);
    RGBColor(r, g, b)
}
