//! Does nothing. Cargo asks for a build script in a package with the key `links`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
