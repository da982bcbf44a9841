//! What must hold for any bytes that are loaded: an error, or a tree that can be asked anything and saved to the same bytes. The fuzz
//! target and its twin in the conformance suite share it.

use kauri::balanced::BalancedKdTree;
use kauri::quadtree::{CartesianPoint, CellTree, NO_NODE};
use kauri::query::{Queries, QueryOptions};
use kauri::{Device, KdTree, LonLat, Point, SpatialIndex};
use xxhash_rust::xxh3::xxh3_64;

/// Loads the bytes as many indexes; true if one of them was in there.
///
/// # Panics
/// If a tree that was loaded does not hold what it should.
pub fn load_any(bytes: &[u8]) -> bool {
    let device = Device::cpu();
    // Which type it is stands in the header: to try a few does not make random bytes any righter.
    let found = [
        kdtree::<[f32; 1]>(&device, bytes, &[[0.0], [1e3]], f32::INFINITY),
        kdtree::<[f32; 2]>(&device, bytes, &[[0.0, -1.0], [1e3, 5.0]], f32::INFINITY),
        kdtree::<[f32; 3]>(&device, bytes, &[[0.0; 3], [1e3, 5.0, 2.0]], f32::INFINITY),
        kdtree::<[f64; 2]>(&device, bytes, &[[0.0; 2], [-1e3, 5.0]], f64::INFINITY),
        kdtree::<[i64; 2]>(&device, bytes, &[[0; 2], [1 << 40, -5]], f64::INFINITY),
        kdtree::<LonLat>(
            &device,
            bytes,
            &[LonLat::new(10.0, 20.0), LonLat::new(-170.0, -80.0)],
            f64::INFINITY,
        ),
        balanced::<[f32; 2]>(&device, bytes),
        balanced::<[f32; 3]>(&device, bytes),
        balanced::<[f64; 2]>(&device, bytes),
        quadtree::<[f32; 2], 2>(&device, bytes, &[[0.0, -1.0], [1e3, 5.0]]),
        quadtree::<[f64; 3], 3>(&device, bytes, &[[0.0; 3], [-1e150, 5.0, 1e150]]),
    ];
    found.contains(&true)
}

/// Makes all checksums right again, of what is there: so that changes reach what lies behind them.
pub fn reseal(bytes: &mut [u8]) {
    const HEADER: usize = 128;
    let number = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    if bytes.len() < HEADER {
        return;
    }
    let num_sections = number(bytes, 8) >> 32;
    let table_end = HEADER as u64 + 32 * num_sections;
    if table_end > bytes.len() as u64 {
        return;
    }
    let table_end = table_end as usize;
    for entry in (HEADER..table_end).step_by(32) {
        let (offset, len) = (number(bytes, entry + 8), number(bytes, entry + 16));
        let end = offset.checked_add(len).filter(|&end| end <= bytes.len() as u64);
        if let Some(end) = end {
            let pieces = bytes[offset as usize..end as usize].chunks(1 << 20);
            let hashes: Vec<u8> = pieces.flat_map(|piece| xxh3_64(piece).to_le_bytes()).collect();
            bytes[entry + 24..entry + 32].copy_from_slice(&xxh3_64(&hashes).to_le_bytes());
        }
    }
    let covered = [&bytes[..120], &bytes[HEADER..table_end]].concat();
    bytes[120..HEADER].copy_from_slice(&xxh3_64(&covered).to_le_bytes());
}

fn kdtree<P: Point>(device: &Device, bytes: &[u8], queries: &[P], everywhere: P::Coord) -> bool {
    let Ok(tree) = KdTree::<P>::read_from(device, bytes) else { return false };
    let n = tree.len();
    let options = QueryOptions::default();
    for k in [1, 2, 40] {
        let near = tree.nearest(queries, k).expect("queries are answered");
        assert_eq!(near.ids().len(), queries.len() * k);
        assert!(near.ids().iter().all(|&id| id == u32::MAX || (id as usize) < n));
    }
    let own = tree.nearest_with(Queries::Own { itself: false }, 1, &options).expect("its points are usable");
    assert_eq!(own.ids().len(), n);
    let all = tree.within(queries, everywhere, &options).expect("queries are answered");
    assert!((0..queries.len()).all(|row| all.row(row).len() == n), "a walk does not come to every node");
    let payloads: Vec<usize> = (0..n).collect();
    assert_eq!(tree.payloads_by_node(&payloads).expect("one a point").len(), n);
    // The order of points may be another: that is what this is for.
    let _ = tree.verify();
    let mut saved = Vec::new();
    tree.write_to(&mut saved).expect("memory takes any bytes");
    assert!(bytes.starts_with(&saved), "other bytes are saved than were loaded");
    true
}

fn balanced<P: Point>(device: &Device, bytes: &[u8]) -> bool {
    let Ok(tree) = BalancedKdTree::<P>::read_from(device, bytes) else { return false };
    assert_eq!(tree.nodes().expect("there is memory for them").len(), tree.len());
    let removed = tree.removed().expect("there is memory for them");
    assert_eq!(removed.len(), tree.num_points() - tree.len());
    let _ = tree.verify();
    let mut saved = Vec::new();
    tree.write_to(&mut saved).expect("memory takes any bytes");
    assert!(bytes.starts_with(&saved), "other bytes are saved than were loaded");
    true
}

fn quadtree<P: CartesianPoint<D>, const D: usize>(device: &Device, bytes: &[u8], queries: &[P]) -> bool {
    let Ok(tree) = CellTree::<P, D>::read_from(device, bytes) else { return false };
    tree.verify().expect("all that it checks has been checked");
    let num_nodes = tree.num_nodes() as u32;
    let leaves = tree.leaf_of(queries).expect("queries are answered");
    assert!(leaves.iter().all(|&leaf| leaf == NO_NODE || leaf < num_nodes));
    let all: Vec<u32> = (0..num_nodes).collect();
    let around = tree.adjacent_leaves(&all).expect("there is memory for them");
    assert!(around.leaves().iter().all(|&leaf| leaf < num_nodes));
    for level in 0..=tree.depth() {
        assert!(tree.level_of_detail(level).expect("there is memory for them").len() <= tree.len());
    }
    let mut saved = Vec::new();
    tree.write_to(&mut saved).expect("memory takes any bytes");
    assert!(bytes.starts_with(&saved), "other bytes are saved than were loaded");
    true
}
