//! Distances on the command line: `50km`.

use std::str::FromStr;

/// Units and their lengths in meters. Longer names come first, because other units end in `m`, too.
const UNITS: [(&str, f64); 5] =
    [("nmi", 1852.0), ("km", 1000.0), ("mi", 1609.344), ("ft", 0.3048), ("m", 1.0)];

/// Returns a distance of planar points or of boxes, which has no unit.
pub(super) fn without_unit(text: &str) -> Result<f64, &'static str> {
    if text.trim().parse::<Meters>().is_ok() {
        return Err(
            "planar coordinates have no unit of length; expected a number in the units of the tables' coordinates, such as 0.5",
        );
    }
    match text.trim().parse::<f64>() {
        Ok(distance) if distance >= 0.0 && distance.is_finite() => Ok(distance),
        _ => Err("expected a number in the units of the tables' coordinates, such as 0.5"),
    }
}

/// A distance in meters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Meters(pub(super) f64);

impl FromStr for Meters {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let with_unit = UNITS.iter().find_map(|(unit, meters)| Some((text.strip_suffix(unit)?, meters)));
        let value = with_unit.and_then(|(number, meters)| Some(number.trim().parse::<f64>().ok()? * meters));
        match value {
            Some(meters) if meters >= 0.0 && meters.is_finite() => Ok(Self(meters)),
            _ => Err("expected a distance with its unit, such as 50km, 800m, 3mi, 10nmi or 500ft"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_read() {
        let meters = |text: &str| text.parse::<Meters>().map(|Meters(meters)| meters);
        assert_eq!(meters("50km"), Ok(50_000.0));
        assert_eq!(meters(" 1.5 mi "), Ok(1.5 * 1609.344));
        assert_eq!(meters("10nmi"), Ok(18_520.0));
        assert_eq!(meters("800m"), Ok(800.0));
        assert_eq!(meters("1e2ft"), Ok(100.0 * 0.3048));
        for text in ["", "50", "km", "-1km", "infkm", "nanm", "5 parsecs"] {
            assert!(meters(text).is_err(), "{text}");
        }
        assert_eq!([without_unit("0"), without_unit(" 1.5e3 ")], [Ok(0.0), Ok(1500.0)]);
        for (text, reason) in
            [("50km", "no unit of length"), ("-1", "a number"), ("nan", "a number"), ("", "a number")]
        {
            assert!(without_unit(text).unwrap_err().contains(reason), "{text}");
        }
    }
}
