//! Loads arbitrary bytes as index files: each load returns an error, or an index whose queries work and that saves to the
//! same bytes. The fuzz target and its test in the conformance suite share this module.

use kauri::balanced::BalancedKdTree;
use kauri::quadtree::{CartesianPoint, CellTree, NO_NODE};
use kauri::query::{Queries, QueryOptions};
use kauri::{Coordinate, Device, Error, KdTree, LonLat, Point, RTree, SpatialIndex};
use xxhash_rust::xxh3::xxh3_64;

/// Loads the bytes as indexes of several types. Returns true if they are an index of one of these types.
///
/// # Panics
/// If a loaded index violates an invariant.
pub fn load_any(bytes: &[u8]) -> bool {
    let device = Device::cpu();
    // The header names the type, so only one of these loads can succeed.
    let found = [
        kdtree::<[f32; 1], _>(&device, bytes, &[[0.0], [1e3]], f32::INFINITY),
        kdtree::<[f32; 2], _>(&device, bytes, &[[0.0, -1.0], [1e3, 5.0]], f32::INFINITY),
        kdtree::<[f32; 3], _>(&device, bytes, &[[0.0; 3], [1e3, 5.0, 2.0]], f32::INFINITY),
        kdtree::<[f64; 2], _>(&device, bytes, &[[0.0; 2], [-1e3, 5.0]], f64::INFINITY),
        kdtree::<[i32; 2], _>(&device, bytes, &[[0; 2], [i32::MAX, -5]], f64::INFINITY),
        kdtree::<[i64; 2], _>(&device, bytes, &[[0; 2], [1 << 40, -5]], f64::INFINITY),
        kdtree::<LonLat, _>(
            &device,
            bytes,
            &[LonLat::new(10.0, 20.0), LonLat::new(-170.0, -80.0)],
            f64::INFINITY,
        ),
        rtree::<[f32; 2], _>(&device, bytes, &[[0.0, -1.0], [1e3, 5.0]], f32::INFINITY),
        rtree::<[f64; 3], _>(&device, bytes, &[[0.0; 3], [-1e150, 5.0, 1e150]], f64::INFINITY),
        rtree::<[i32; 1], _>(&device, bytes, &[[0], [i32::MIN]], f64::INFINITY),
        balanced::<[f32; 2]>(&device, bytes),
        balanced::<[f32; 3]>(&device, bytes),
        balanced::<[f64; 2]>(&device, bytes),
        quadtree::<[f32; 2], 2>(&device, bytes, &[[0.0, -1.0], [1e3, 5.0]]),
        quadtree::<[f64; 3], 3>(&device, bytes, &[[0.0; 3], [-1e150, 5.0, 1e150]]),
    ];
    found.contains(&true)
}

/// Recomputes the checksums of all sections that lie within the bytes, so that changes pass the checksum tests and reach
/// the later checks.
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

/// Checks that queries to a tree of `n` points find points that are there, and all of them `everywhere`.
fn check_queries<P: Point<Coord = C>, C: Coordinate>(
    tree: &impl SpatialIndex<Point = P>,
    n: usize,
    queries: &[P],
    everywhere: C::Distance,
    is_there: impl Fn(u32) -> bool,
) {
    let options = QueryOptions::default();
    for k in [1, 2, 40] {
        let near = tree.nearest(queries, k).expect("queries succeed");
        assert_eq!(near.ids().len(), queries.len() * k);
        assert!(near.ids().iter().all(|&id| id == u32::MAX || is_there(id)));
    }
    let own = tree
        .nearest_with(Queries::SelfQuery { include_self: false }, 1, &options)
        .expect("the tree's own points are valid queries");
    assert_eq!(own.ids().len(), n);
    let all = tree.within(queries, everywhere, &options).expect("queries succeed");
    assert!(
        (0..queries.len()).all(|row| all.row(row).len() == n),
        "a query with an infinite radius does not find every point"
    );
}

fn kdtree<P: Point<Coord = C>, C: Coordinate>(
    device: &Device,
    bytes: &[u8],
    queries: &[P],
    everywhere: C::Distance,
) -> bool {
    let Ok(tree) = KdTree::<P>::read_from(device, bytes) else { return false };
    let n = tree.len();
    check_queries(&tree, n, queries, everywhere, |id| (id as usize) < n);
    let payloads: Vec<usize> = (0..n).collect();
    assert_eq!(tree.payloads_by_node(&payloads).expect("one payload for each point").len(), n);
    // Loading does not check the order of the points, so `verify` may fail here. It must not panic.
    let _ = tree.verify();
    let mut saved = Vec::new();
    tree.write_to(&mut saved).expect("writing to memory succeeds");
    assert!(bytes.starts_with(&saved), "the saved bytes differ from the loaded bytes");
    true
}

fn rtree<P: Point<Coord = C>, C: Coordinate>(
    device: &Device,
    bytes: &[u8],
    queries: &[P],
    everywhere: C::Distance,
) -> bool {
    let Ok(mut tree) = RTree::<P>::read_from(device, bytes) else { return false };
    let (n, ids) = (tree.len(), tree.ids().expect("the memory suffices"));
    assert!(ids.len() == n && ids.iter().all(|&id| tree.contains(id).expect("the CPU has no errors")));
    check_queries(&tree, n, queries, everywhere, |id| ids.binary_search(&id).is_ok());
    let mut saved = Vec::new();
    tree.write_to(&mut saved).expect("writing to memory succeeds");
    assert!(bytes.starts_with(&saved), "the saved bytes differ from the loaded bytes");
    match tree.insert(queries) {
        Ok(new) => {
            tree.remove(&ids).expect("these points are there");
            assert!(tree.ids().expect("the memory suffices").into_iter().eq(new));
        }
        Err(error) => assert!(matches!(error, Error::TooManyItems { .. }), "{error}"),
    }
    true
}

fn balanced<P: Point>(device: &Device, bytes: &[u8]) -> bool {
    let Ok(tree) = BalancedKdTree::<P>::read_from(device, bytes) else { return false };
    assert_eq!(tree.nodes().expect("the memory suffices").len(), tree.len());
    let removed = tree.removed().expect("the memory suffices");
    assert_eq!(removed.len(), tree.num_points() - tree.len());
    let _ = tree.verify();
    let mut saved = Vec::new();
    tree.write_to(&mut saved).expect("writing to memory succeeds");
    assert!(bytes.starts_with(&saved), "the saved bytes differ from the loaded bytes");
    true
}

fn quadtree<P: CartesianPoint<D>, const D: usize>(device: &Device, bytes: &[u8], queries: &[P]) -> bool {
    let Ok(tree) = CellTree::<P, D>::read_from(device, bytes) else { return false };
    tree.verify().expect("loading has made the same checks");
    let num_nodes = tree.num_nodes() as u32;
    let leaves = tree.leaf_of(queries).expect("queries succeed");
    assert!(leaves.iter().all(|&leaf| leaf == NO_NODE || leaf < num_nodes));
    let all: Vec<u32> = (0..num_nodes).collect();
    let around = tree.adjacent_leaves(&all).expect("the memory suffices");
    assert!(around.values().iter().all(|&leaf| leaf < num_nodes));
    for level in 0..=tree.depth() {
        assert!(tree.level_of_detail(level).expect("the memory suffices").len() <= tree.len());
    }
    let mut saved = Vec::new();
    tree.write_to(&mut saved).expect("writing to memory succeeds");
    assert!(bytes.starts_with(&saved), "the saved bytes differ from the loaded bytes");
    true
}
