//! Lights, and the encoding of light as bytes.

use libm::pow;

use super::vector::{V3, dot, sum};

/// Color of the sun on a surface that faces it, and of the sky from straight above and below.
pub(super) const SUN: V3 = [0.86, 0.77, 0.62];
pub(super) const ZENITH: V3 = [0.30, 0.38, 0.52];
pub(super) const GROUND: V3 = [0.13, 0.12, 0.12];

/// Albedo of a mesh without colors.
pub(super) const ALBEDO: [f32; 3] = [0.80, 0.68, 0.54];

/// Returns the light of the sky from a direction. It is brightest from `up`.
pub(super) fn sky(up: V3, direction: V3) -> V3 {
    let height = 0.5 + 0.5 * dot(up, direction);
    sum([(height, ZENITH), (1.0 - height, GROUND)])
}

/// Encodes light from 0 to 1 as an sRGB byte (IEC 61966-2-1). Brighter light is white.
///
/// A value between two bytes is rounded up if it is at least `1 - dither` above the lower. With a dither value from 0 to
/// below 1 per pixel, smooth light has no visible steps.
pub(super) fn byte(light: f64, dither: f64) -> u8 {
    let light = light.clamp(0.0, 1.0);
    let root = pow(light, 1.0 / 2.4);
    // 1.055 root - 0.055, exact for white.
    let encoded = if light <= 0.003_130_8 { 12.92 * light } else { root + 0.055 * (root - 1.0) };
    (255.0 * encoded + dither) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn light_as_bytes() {
        assert_eq!([-1.0, 0.0, 0.214, 1.0, 7.0].map(|light| byte(light, 0.5)), [0, 0, 127, 255, 255]);
        assert_eq!([0.0, 0.999].map(|dither| (byte(0.0, dither), byte(1.0, dither))), [(0, 255); 2]);
        assert!((0..1000).all(|i| byte(f64::from(i) / 1e3, 0.5) <= byte(f64::from(i + 1) / 1e3, 0.5)));
    }

    #[test]
    fn the_sky_is_brightest_above() {
        let up = [0.0, 1.0, 0.0];
        assert_eq!(sky(up, up), ZENITH);
        assert_eq!(sky(up, [0.0, -1.0, 0.0]), GROUND);
    }
}
