//! Quadtrees of more than 2^31 points. Needs a GPU with 120 GB of free memory, and 110 GB on the host.

use kauri::quadtree::{OutOfCore, Quadtree, QuadtreeOptions};
use kauri::research::quadtree::BuildAlgorithm;
use kauri::{Device, Result};
use kauri_tests::generate::Random;
use rayon::prelude::*;

#[test]
#[ignore = "for a GPU with 120 GB of memory that are free"]
fn more_than_31_bits_of_points_in_a_quadtree() -> Result<()> {
    let Ok(device) = Device::from_name("cuda") else { return Ok(()) };
    let point = |i| {
        let mut random = Random::new(i);
        [random.unit() as f32, random.unit() as f32]
    };
    let points: Vec<[f32; 2]> = (0..(1_u64 << 31) + 7).into_par_iter().map(point).collect();
    let options = QuadtreeOptions::default();
    let tree = Quadtree::build(&device, &points, &options)?;
    tree.verify()?;
    let (nodes, ids) = (tree.nodes()?.into_owned(), tree.ids()?.into_owned());
    drop(tree);
    let tree = Quadtree::build(&device, &points, &options.clone().algorithm(BuildAlgorithm::LEVELS))?;
    assert!(*tree.nodes()? == nodes && *tree.ids()? == ids);
    drop(tree);
    // Neither points nor nodes fit.
    let gpu = device.gpu().expect("a GPU").with_memory_limit(4 << 30);
    let options = options.out_of_core(OutOfCore::Streamed);
    let tree = Quadtree::build(&Device::from_gpu(gpu.clone()), &points, &options)?;
    println!("{:?}", tree.stats());
    assert!(*tree.nodes()? == nodes && *tree.ids()? == ids);
    assert!(gpu.memory_use().peak_bytes <= 4 << 30);
    Ok(())
}
