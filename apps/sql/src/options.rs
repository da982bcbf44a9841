//! The session options `kauri.*`.

use datafusion::common::config::ConfigExtension;
use datafusion::common::{DataFusionError, config_field, extensions_options};
use datafusion::config::ConfigOptions;
use std::fmt;
use std::str::FromStr;

/// Defines an option that has one of a few names.
macro_rules! named_option {
    ($(#[$docs:meta])* $Type:ident { $($(#[$variant_docs:meta])* $Variant:ident = $name:literal,)* }) => {
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $Type {
            $($(#[$variant_docs])* $Variant,)*
        }

        impl FromStr for $Type {
            type Err = DataFusionError;

            fn from_str(name: &str) -> Result<Self, DataFusionError> {
                match name.to_ascii_lowercase().as_str() {
                    $($name => Ok(Self::$Variant),)*
                    _ => {
                        let names = [$($name),*].join(", ");
                        Err(DataFusionError::Configuration(format!("'{name}' is not one of: {names}")))
                    }
                }
            }
        }

        impl fmt::Display for $Type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$Variant => $name,)* })
            }
        }

        config_field!($Type);
    };
}

named_option! {
    /// The option `kauri.crs`: how distances are measured.
    CrsOption {
        /// As the metadata of the columns say; in the plane without metadata.
        #[default]
        Auto = "auto",
        /// In the plane, in the unit of the coordinates.
        Planar = "planar",
        /// In meters on the sphere; coordinates are longitudes and latitudes in degrees.
        LonLat = "lonlat",
    }
}

named_option! {
    /// The option `kauri.nulls`: what a join does with rows without a geometry.
    NullsOption {
        /// The rows have no partner.
        #[default]
        Skip = "skip",
        /// The first such row is an error.
        Error = "error",
    }
}

extensions_options! {
    /// The options `kauri.*` of a session, which `SET kauri.device = 'cpu'` changes.
    pub struct KauriOptions {
        /// The device that joins: best, cpu, cuda:N or sim; of several with commas between them, the one that fewest joins use.
        pub device: String, default = "best".to_string()
        /// How distances are measured: auto, planar or lonlat.
        pub crs: CrsOption, default = CrsOption::Auto
        /// The use of rows without a geometry in a join: skip or error.
        pub nulls: NullsOption, default = NullsOption::Skip
        /// True if a kNN join returns all right rows at the k-th distance.
        pub include_ties: bool, default = false
        /// The left rows that are joined at a time.
        pub probe_rows: usize, default = 1 << 20
        /// The most right rows that each partition of a join gets all of; larger right sides are cut into parts. Unlimited by default.
        pub shared_rows: Option<usize>, default = None
        /// The right rows that are sampled to cut a right side into parts.
        pub sample_rows: usize, default = 1 << 17
        /// False if conditions such as ST_DWithin are evaluated for each pair of rows.
        pub enabled: bool, default = true
    }
}

impl ConfigExtension for KauriOptions {
    const PREFIX: &'static str = "kauri";
}

impl KauriOptions {
    /// Returns the options of a session, or the defaults if the session does not have them.
    pub fn of(config: &ConfigOptions) -> Self {
        config.extensions.get::<Self>().cloned().unwrap_or_default()
    }
}
