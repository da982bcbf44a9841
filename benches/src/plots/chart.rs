//! Parts that all plots share: sizes, colors, helpers.

use plotters::prelude::*;

/// Size of a panel in pixels.
pub(super) const PANEL: (u32, u32) = (460, 320);
/// Panels side by side.
pub(super) const COLUMNS: usize = 2;
/// Color of kauri's lines.
pub(super) const KAURI: RGBColor = RGBColor(26, 127, 90);
/// Color of the copy bandwidth.
pub(super) const COPY: RGBColor = RGBColor(130, 130, 130);

/// Result of drawing.
pub(super) type Drawn<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Returns the legend entry of a line.
pub(super) fn swatch((x, y): (i32, i32), color: RGBColor) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2))
}

/// Returns the distinct values in the order of their first appearance.
pub(super) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    values.for_each(|value| {
        if !found.contains(&value) {
            found.push(value);
        }
    });
    found
}
