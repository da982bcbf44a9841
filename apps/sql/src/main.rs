//! The program `kauri-sql`.

fn main() {}
