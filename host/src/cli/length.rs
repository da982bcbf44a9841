//! Distances on the command line: `50km`.

use std::str::FromStr;

/// Units and their metres. Longer names first, as `m` ends more than one.
const UNITS: [(&str, f64); 5] =
    [("nmi", 1852.0), ("km", 1000.0), ("mi", 1609.344), ("ft", 0.3048), ("m", 1.0)];

/// A distance in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Metres(pub(super) f64);

impl FromStr for Metres {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let with_unit = UNITS.iter().find_map(|(unit, metres)| Some((text.strip_suffix(unit)?, metres)));
        let value = with_unit.and_then(|(number, metres)| Some(number.trim().parse::<f64>().ok()? * metres));
        match value {
            Some(metres) if metres >= 0.0 && metres.is_finite() => Ok(Self(metres)),
            _ => Err("expected a distance with its unit, such as 50km, 800m, 3mi, 10nmi or 500ft".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_read() {
        let metres = |text: &str| text.parse::<Metres>().map(|Metres(metres)| metres);
        assert_eq!(metres("50km"), Ok(50_000.0));
        assert_eq!(metres(" 1.5 mi "), Ok(1.5 * 1609.344));
        assert_eq!(metres("10nmi"), Ok(18_520.0));
        assert_eq!(metres("800m"), Ok(800.0));
        assert_eq!(metres("1e2ft"), Ok(100.0 * 0.3048));
        for text in ["", "50", "km", "-1km", "infkm", "nanm", "5 parsecs"] {
            assert!(metres(text).is_err(), "{text}");
        }
    }
}
