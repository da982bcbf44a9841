//! GPU architectures as PTX targets.

use std::fmt;
use std::str::FromStr;

use crate::CudaBuilderError;

/// A PTX target such as `sm_90`.
///
/// PTX of a plain architecture runs on every newer GPU (the driver compiles it further). The variants `a` and `f`
/// (`sm_90a`, `sm_100f`) use instructions of one generation and do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arch {
    /// Ten times the compute capability: 90 for 9.0.
    number: u16,
    variant: Option<Variant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Variant {
    Family,
    Specific,
}

impl Arch {
    /// Volta, the oldest that rustc's target supports.
    pub const SM_70: Arch = Arch::plain(70);
    /// Turing, the oldest that CUDA 13 supports.
    pub const SM_75: Arch = Arch::plain(75);
    /// Ampere for data centers (A100).
    pub const SM_80: Arch = Arch::plain(80);
    /// Ampere for desktops.
    pub const SM_86: Arch = Arch::plain(86);
    /// Ada.
    pub const SM_89: Arch = Arch::plain(89);
    /// Hopper (H100, H200).
    pub const SM_90: Arch = Arch::plain(90);
    /// Blackwell for data centers.
    pub const SM_100: Arch = Arch::plain(100);
    /// Blackwell for desktops.
    pub const SM_120: Arch = Arch::plain(120);

    /// The default architectures of [`crate::CudaBuilder`].
    pub const DEFAULT: [Arch; 3] = [Arch::SM_75, Arch::SM_80, Arch::SM_90];

    const fn plain(number: u16) -> Arch {
        Arch { number, variant: None }
    }

    /// The compute capability as (major, minor): (9, 0) for `sm_90a`.
    pub fn compute_capability(self) -> (u16, u16) {
        (self.number / 10, self.number % 10)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variant = match self.variant {
            None => "",
            Some(Variant::Family) => "f",
            Some(Variant::Specific) => "a",
        };
        write!(f, "sm_{}{variant}", self.number)
    }
}

impl FromStr for Arch {
    type Err = CudaBuilderError;

    /// Parses `sm_90`, `compute_90`, `90` and their variants `…a` and `…f`.
    fn from_str(text: &str) -> Result<Arch, CudaBuilderError> {
        let bad = |reason| CudaBuilderError::BadArch { text: text.to_owned(), reason };
        let name = text.trim();
        let name = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_")).unwrap_or(name);
        let (digits, variant) = match name.as_bytes().last() {
            Some(b'a') => (&name[..name.len() - 1], Some(Variant::Specific)),
            Some(b'f') => (&name[..name.len() - 1], Some(Variant::Family)),
            _ => (name, None),
        };
        let number: u16 = digits.parse().map_err(|_| bad("not of the form sm_90"))?;
        match number {
            0..70 => Err(bad("rustc's target begins at sm_70")),
            70..1000 => Ok(Arch { number, variant }),
            _ => Err(bad("no such architecture")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for text in ["sm_70", "sm_90", "sm_90a", "sm_100f", "sm_121"] {
            assert_eq!(text.parse::<Arch>().unwrap().to_string(), text);
        }
        assert_eq!("compute_89".parse::<Arch>().unwrap(), Arch::SM_89);
        assert_eq!("80".parse::<Arch>().unwrap(), Arch::SM_80);
        assert_eq!(Arch::SM_120.compute_capability(), (12, 0));
    }

    #[test]
    fn refuses_what_rustc_cannot_target() {
        for text in ["sm_61", "sm_", "", "90b", "sm_9000", "a"] {
            assert!(text.parse::<Arch>().is_err(), "{text}");
        }
    }
}
