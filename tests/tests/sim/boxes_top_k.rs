//! Top-k joins of boxes in device buffers return the result of the CPU, with every strategy: the kernels of `best`, `threshold` and
//! `filter` of boxes.

use crate::boxes::boxes;
use crate::{on_each_schedule_in_turn, upload};
use kauri::device::{Stream, Workspace};
use kauri::join::{DeviceScored, Norm, Score, ScoreFunction, Scored, Strategy};
use kauri::{Cartesian, Device, TopKBoxJoin};
use kauri_tests::generate::{Random, Scalar, Shape};

const STRATEGIES: [Strategy; 4] =
    [Strategy::NestedLoop, Strategy::Threshold, Strategy::Cells, Strategy::Filter];

/// Two sets with scores.
struct Sets<C, S, const D: usize> {
    boxes: [Vec<[[C; D]; 2]>; 2],
    scores: [Vec<S>; 2],
}

impl<C: Scalar, S: Score, const D: usize> Sets<C, S, D>
where
    [C; D]: Cartesian<Coord = C>,
{
    fn new(shape: Shape, lens: [usize; 2], score: impl Fn(u64) -> S) -> Self {
        let mut random = Random::new(3);
        let mut scores = |len| (0..len).map(|_| score(random.bits())).collect();
        let mut boxes = [0, 1].map(|i| boxes::<C, D>(shape, lens[i], i as u64));
        // Inverted boxes have no pairs.
        boxes.iter_mut().for_each(|set| set.iter_mut().step_by(9).for_each(|of| of.reverse()));
        Self { boxes, scores: [scores(lens[0]), scores(lens[1])] }
    }

    fn sets(&self) -> [Scored<'_, [[C; D]; 2], S>; 2] {
        [0, 1].map(|i| Scored::new(&self.boxes[i], &self.scores[i]).unwrap())
    }

    /// Compares the result of a strategy with the result of the CPU.
    fn check(&self, stream: &Stream, join: &TopKBoxJoin<C>, strategy: Strategy) {
        let [left, right] = self.sets();
        let expected = join.run(&Device::cpu(), left, right).unwrap().into_pairs();
        assert!(!expected.is_empty());
        let coords = self.boxes.each_ref().map(|set| upload(stream, set.as_flattened().as_flattened()));
        let scores = self.scores.each_ref().map(|scores| upload(stream, scores));
        let [left, right] = [0, 1].map(|i| DeviceScored { coords: &coords[i], scores: &scores[i] });
        let join = join.clone().strategy(strategy);
        let found = join.run_on::<[C; D], S>(stream, &mut Workspace::new(stream.gpu()), left, right);
        let found = found.unwrap_or_else(|error| panic!("{strategy:?}: {error}"));
        assert!(found == expected, "{join:?}: {} pairs, not {}", found.len(), expected.len());
    }
}

#[test]
fn best_pairs() {
    on_each_schedule_in_turn(20, |_, stream, turn| {
        let strategy = STRATEGIES[turn % 4];
        match turn % 5 {
            0 => {
                let sets = Sets::<f32, u32, 2>::new(Shape::Uniform, [70, 135], |bits| (bits >> 40) as u32);
                sets.check(stream, &TopKBoxJoin::intersects(20).best_boxes(40), strategy);
            }
            1 => {
                // Few distinct scores, and many boxes in few cells.
                let sets = Sets::<f64, i64, 3>::new(Shape::Lattice, [60, 140], |bits| (bits % 5) as i64 - 2);
                let join = TopKBoxJoin::within(1.0, 15).score(ScoreFunction::Product);
                sets.check(stream, &join.best_boxes(30), strategy);
            }
            2 => {
                let sets = Sets::<f32, f32, 3>::new(Shape::Flat, [140, 60], |bits| (bits >> 40) as f32);
                let join = TopKBoxJoin::within(0.1, 40).norm(Norm::Manhattan).score(ScoreFunction::Min);
                sets.check(stream, &join.best_boxes(30), strategy);
            }
            3 => {
                let sets = Sets::<f32, f64, 4>::new(Shape::Uniform, [60, 60], |bits| bits as f64);
                let join = TopKBoxJoin::within(0.3, 64).weighted(-1.0, 2.0).best_boxes(20);
                sets.check(stream, &join, strategy);
            }
            _ => {
                let sets = Sets::<f64, u32, 2>::new(Shape::AllEqual, [40, 129], |bits| bits as u32);
                let join = TopKBoxJoin::contains(10).score(ScoreFunction::Max).best_boxes(20);
                sets.check(stream, &join, strategy);
            }
        }
    });
}

#[test]
fn more_pairs_than_the_candidate_list_holds() {
    on_each_schedule_in_turn(20, |_, stream, turn| {
        let sets = Sets::<f32, u32, 2>::new(Shape::Uniform, [260, 250], |bits| bits as u32);
        // Few pairs are selected by counting, many by a sort.
        match turn {
            0 | 1 => {
                let join = TopKBoxJoin::within(f32::INFINITY, 7);
                sets.check(stream, &join, [Strategy::Cells, Strategy::Filter][turn]);
            }
            2..5 => sets.check(stream, &TopKBoxJoin::within(0.2, 1500), STRATEGIES[turn - 1]),
            5 => sets.check(stream, &TopKBoxJoin::within(0.2, usize::MAX), Strategy::Filter),
            _ => {}
        }
    });
}

#[test]
fn sets_larger_than_device_memory() {
    on_each_schedule_in_turn(4, |gpu, _, turn| {
        let device = Device::from_gpu(gpu.clone());
        let shape = [Shape::Uniform, Shape::Lattice][turn % 2];
        let sets = Sets::<f32, i64, 2>::new(shape, [700, 600], |bits| (bits % 50) as i64 - 20);
        let [left, right] = sets.sets();
        let join = [TopKBoxJoin::intersects(30), TopKBoxJoin::within(1.0, 30)][turn % 2].clone();
        let join = join.score([ScoreFunction::Product, ScoreFunction::Min][turn / 2]).best_boxes(20);
        let expected = join.run(&Device::cpu(), left, right).unwrap();
        let strategy = [Strategy::Cells, Strategy::Filter, Strategy::Threshold, Strategy::Threshold][turn];
        let found = join.strategy(strategy).device_bytes(0).run(&device, left, right).unwrap();
        assert!(found.pairs() == expected.pairs(), "{strategy:?}");
    });
}
