//! `kauri demo`: real data, end to end.

mod join;
mod nearest;

use clap::{Args, Subcommand};
use std::io::Write;

use super::Result;

/// Without a name, the demo is `nearest`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Demo {
    #[command(subcommand)]
    which: Option<Which>,
    #[command(flatten)]
    nearest: nearest::Nearest,
}

#[derive(Subcommand)]
enum Which {
    /// The cities nearest to every airport of the world
    Nearest(nearest::Nearest),
    /// The best pairs of a city and an airport: many people, and not far up
    Join(join::Join),
}

impl Demo {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<()> {
        match self.which {
            Some(Which::Nearest(nearest)) => nearest.run(out),
            Some(Which::Join(join)) => join.run(out),
            None => self.nearest.run(out),
        }
    }
}
