//! A tree that one program builds and saves, and later programs use without a build: loaded to a GPU, mapped on the CPU.
//!
//! `cargo run --release --features io --example 04_save_and_load -- [FILE]`; without a file it takes one in the temporary folder.

mod arguments;

use arguments::arguments;
use kauri::{Device, Error, KdTree, KdTreeOptions, LonLat, Result, SpatialIndex};
use std::path::PathBuf;
use std::time::Instant;

type Tree = KdTree<[f32; 3]>;

fn main() -> Result<()> {
    let named = arguments("04_save_and_load [FILE]", 1, str::parse::<PathBuf>).pop();
    let is_temporary = named.is_none();
    let path = named
        .unwrap_or_else(|| std::env::temp_dir().join(format!("kauri-example-{}.kauri", std::process::id())));
    let device = Device::best()?;
    let points: Vec<[f32; 3]> = (0..1_000_000).map(point).collect();
    let queries: Vec<[f32; 3]> = (0..1000).map(|i| point(7919 * i + 3)).collect();

    let tree =
        timed(&format!("built on {device}"), || Tree::build(&device, &points, &KdTreeOptions::default()))?;
    timed("saved", || tree.save(&path))?;
    let near = tree.nearest(&queries, 8)?;

    // Another program on another machine could load the file too.
    let loaded = timed("loaded", || Tree::load(&device, &path))?;
    assert!(loaded.nearest(&queries, 8)?.ids() == near.ids());

    // The bytes of a mapped file are in memory only while the tree is made, whichever device it was saved from.
    // SAFETY: nobody changes the file while the tree is there; `save` would put another in its place.
    let mapped = timed("mapped", || unsafe { Tree::map(&Device::cpu(), &path) })?;
    assert!(mapped.nearest(&queries, 8)?.dist2() == near.dist2());

    // The file is checked: another type of points is an error, and so is every flipped bit.
    match KdTree::<LonLat>::load(&device, &path) {
        Err(error @ Error::WrongFile { .. }) => println!("as places on the Earth: {error}"),
        other => panic!("{other:?}"),
    }
    drop(mapped);
    if is_temporary {
        std::fs::remove_file(&path).map_err(|source| Error::Io { path, source })?;
    }
    Ok(())
}

/// Point `i` of a sequence that fills the unit cube evenly (Roberts 2018).
fn point(i: u32) -> [f32; 3] {
    [0.819_172_5, 0.671_043_6, 0.549_700_5].map(|step: f64| (f64::from(i) * step).fract() as f32)
}

fn timed<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let result = work()?;
    println!("{what} in {:.1} ms", 1e3 * start.elapsed().as_secs_f64());
    Ok(result)
}
