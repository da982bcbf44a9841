//! Quadtrees and octrees: queries, and the cells, whose bounds the tree returns.

use super::indexes::IndexCheck;
use super::{Run, attack_everywhere, with_case};
use kauri::quadtree::{CartesianPoint, CellTree, NO_NODE, OutOfCore, QuadtreeOptions};
use kauri::research::quadtree::BuildAlgorithm;
use kauri_tests::naive::Number;
use kauri_tests::nasty::{Case, Choice, Draw, Nasty, Outcome};
use proptest::prelude::*;

const FORMS: [(BuildAlgorithm, OutOfCore); 4] = [
    (BuildAlgorithm::Codes, OutOfCore::WhereNeeded),
    (BuildAlgorithm::LEVELS, OutOfCore::WhereNeeded),
    (BuildAlgorithm::Codes, OutOfCore::Streamed),
    (BuildAlgorithm::Codes, OutOfCore::CpuTop),
];

fn trees<S: Nasty, const D: usize>(run: &Run, draw: &Draw) -> Outcome
where
    [S; D]: CartesianPoint<D>,
{
    let case = Case::<S, D>::of(draw, draw.choose(Choice::IsPeriodic, &[true, false, false]));
    with_case(trees_of(run, draw, &case), &case)
}

fn trees_of<S: Nasty, const D: usize>(run: &Run, draw: &Draw, case: &Case<S, D>) -> Outcome
where
    [S; D]: CartesianPoint<D>,
{
    let (leaf_points, max_depth) =
        (draw.choose(Choice::Leaf, &[1, 2, 20, 5]), draw.choose(Choice::Depth, &[32, 32, 3, 0]));
    let options = QuadtreeOptions::default().leaf_points(leaf_points).max_depth(max_depth);
    for device in &run.devices {
        // The CPU ignores `OutOfCore`.
        let forms = if device.is_cpu() { &FORMS[..2] } else { &FORMS[..] };
        for (algorithm, out_of_core) in run.some(draw, Choice::Builder, forms) {
            let options = options.clone().algorithm(algorithm).out_of_core(out_of_core);
            let tree = CellTree::build(device, &case.points, &options)?;
            tree.verify()?;
            let what = format!("Quadtree, {leaf_points} a leaf, {algorithm:?}, {out_of_core:?} on {device}");
            check_cells(&tree, case, &what)?;
            IndexCheck::new(run, (case, draw), vec![true; case.points.len()], &what)?.check(&tree)?;
        }
    }
    Ok(())
}

/// The low corner of a cell, and the high corner, which does not belong to it.
type Cell<const D: usize> = [[f64; D]; 2];

fn is_in<const D: usize>(place: &[f64; D], [low, high]: &Cell<D>) -> bool {
    (0..D).all(|axis| low[axis] <= place[axis] && place[axis] < high[axis])
}

/// Checks that children halve the cell of their parent, that cells contain their points, and that a node splits if and only if it has more
/// points than a leaf may have and is above the last level.
fn check_cells<S: Nasty, const D: usize>(tree: &CellTree<[S; D], D>, case: &Case<S, D>, what: &str) -> Outcome
where
    [S; D]: CartesianPoint<D>,
{
    let (nodes, ids) = (tree.nodes()?, tree.ids()?);
    let cells = (0..nodes.len() as u32).map(|node| tree.bounds(node)).collect::<Result<Vec<Cell<D>>, _>>()?;
    let places: Vec<[f64; D]> = case.point_numbers().iter().map(|point| point.map(Number::wide)).collect();
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    prop_assert!(sorted.into_iter().eq(0..places.len() as u32), "{}, ids", what);
    prop_assert_eq!((nodes[0].start, nodes[0].end), (0, places.len() as u32), "{}", what);

    // The least side of a cell: two numbers of the largest magnitude could not be in different cells of a smaller side.
    let largest = places.as_flattened().iter().fold(0.0, |most, x| f64::max(most, x.abs()));
    let grain = f64::max(largest.next_up() - largest, f64::MIN_POSITIVE * 2.0);
    for (number, (node, cell)) in nodes.iter().zip(&cells).enumerate() {
        let of_node = &ids[node.start as usize..node.end as usize];
        if let Some(id) = of_node.iter().find(|&&id| !is_in(&places[id as usize], cell)) {
            return Err(TestCaseError::fail(format!("{what}: point {id} beside cell {number} {cell:?}")));
        }
        let options = tree.options();
        let is_small = node.len() <= options.leaf_points;
        if node.is_leaf() {
            let is_last = node.level == options.max_depth || cell[1][0] - cell[0][0] <= grain;
            prop_assert!(is_small || is_last, "{}: leaf {} {:?}", what, number, node);
            prop_assert!(of_node.is_sorted(), "{}: leaf {} in order", what, number);
            continue;
        }
        prop_assert!(!is_small && node.level < options.max_depth, "{}: node {} {:?}", what, number, node);
        let mut start = node.start;
        for child in 0..1 << D {
            let at = node.first_child as usize + child;
            prop_assert_eq!((nodes[at].start, nodes[at].level), (start, node.level + 1), "{}", what);
            start = nodes[at].end;
            for axis in 0..D {
                let [[low, high], [own_low, own_high]] = [&cells[at], cell].map(|c| [c[0][axis], c[1][axis]]);
                let middle = own_low + (own_high - own_low) / 2.0;
                // Edges are rounded from the frame, not from the parent: the center may be off by one number.
                let is_middle = |edge: f64| (edge - middle).abs() <= grain;
                let is_half = (low == own_low && is_middle(high)) || (is_middle(low) && high == own_high);
                prop_assert!(is_half, "{}: cell {} of {}", what, at, number);
            }
        }
        prop_assert_eq!(start, node.end, "{}: children of {}", what, number);
    }
    let leaves: Vec<u32> = (0..nodes.len() as u32).filter(|&node| nodes[node as usize].is_leaf()).collect();
    check_leaves(tree, case, &cells, &leaves, what)?;
    check_detail(tree, what)
}

/// Checks the leaf of each query, and the adjacent leaves of leaves.
fn check_leaves<S: Nasty, const D: usize>(
    tree: &CellTree<[S; D], D>,
    case: &Case<S, D>,
    cells: &[Cell<D>],
    leaves: &[u32],
    what: &str,
) -> Outcome
where
    [S; D]: CartesianPoint<D>,
{
    for (query, leaf) in case.other_numbers().iter().zip(tree.leaf_of(&case.others)?) {
        let place = query.map(Number::wide);
        let expected = leaves.iter().copied().find(|&leaf| is_in(&place, &cells[leaf as usize]));
        prop_assert_eq!(leaf, expected.unwrap_or(NO_NODE), "{}: the leaf of {:?}", what, query);
    }
    let some = &leaves[..leaves.len().min(40)];
    let adjacent = tree.adjacent_leaves(some)?;
    for (row, &leaf) in some.iter().enumerate() {
        let [low, high] = &cells[leaf as usize];
        let touches = |other: u32| {
            let [other_low, other_high] = &cells[other as usize];
            other != leaf && (0..D).all(|axis| other_low[axis] <= high[axis] && low[axis] <= other_high[axis])
        };
        let mut found = adjacent.row(row).to_vec();
        found.sort_unstable();
        let expected: Vec<u32> = leaves.iter().copied().filter(|&other| touches(other)).collect();
        prop_assert_eq!(found, expected, "{}: leaves adjacent to {}", what, leaf);
    }
    Ok(())
}

/// Checks that every node of a level that has points has one sample, and every leaf above the level. The samples of a level are among the
/// samples of the next level.
fn check_detail<S: Nasty, const D: usize>(tree: &CellTree<[S; D], D>, what: &str) -> Outcome
where
    [S; D]: CartesianPoint<D>,
{
    let (nodes, ids) = (tree.nodes()?, tree.ids()?);
    let mut before: Vec<u32> = Vec::new();
    for level in 0..=tree.depth() {
        let samples = tree.level_of_detail(level)?;
        let is_represented = |node: &&kauri::quadtree::Node| {
            !node.is_empty() && (node.level == level || node.is_leaf() && node.level < level)
        };
        let mut expected = 0;
        for node in nodes.iter().filter(is_represented) {
            let of_node = &ids[node.start as usize..node.end as usize];
            let num = samples.iter().filter(|id| of_node.contains(id)).count();
            prop_assert_eq!(num, 1, "{}: samples of {:?} at level {}", what, node, level);
            expected += 1;
        }
        prop_assert_eq!(samples.len(), expected, "{}: samples of level {}", what, level);
        prop_assert!(before.iter().all(|id| samples.contains(id)), "{}: level {}", what, level);
        before = samples;
    }
    Ok(())
}

#[test]
fn quadtrees() {
    attack_everywhere("quadtrees", 40, &|run, draw| match draw.choose(Choice::Type, &[0, 1, 2, 3]) {
        0 => trees::<f64, 2>(run, draw),
        1 => trees::<f32, 2>(run, draw),
        2 => trees::<i32, 2>(run, draw),
        _ => trees::<i64, 2>(run, draw),
    });
}

#[test]
fn octrees() {
    attack_everywhere("octrees", 40, &|run, draw| match draw.choose(Choice::Type, &[0, 1, 2, 3]) {
        0 => trees::<f64, 3>(run, draw),
        1 => trees::<f32, 3>(run, draw),
        2 => trees::<i32, 3>(run, draw),
        _ => trees::<i64, 3>(run, draw),
    });
}
