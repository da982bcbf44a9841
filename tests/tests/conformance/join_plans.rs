//! Plans of joins match what the joins take.

use kauri::device::{Buffer, Stream, Workspace};
use kauri::join::{JoinMethod, KnnJoin, Scored, Strategy};
use kauri::{Device, DistanceJoin, TopKDistanceJoin};
use kauri_tests::device_names;

/// Returns the devices of this machine, and the simulator unless it is disabled everywhere.
fn names() -> impl Iterator<Item = &'static str> {
    let is_left_out = std::env::var("KAURI_SIM_ORDERS").is_ok_and(|orders| orders == "0");
    device_names().iter().copied().chain((!is_left_out).then_some("sim"))
}

/// Returns points along a spiral, and their scores.
fn set(len: usize, from: f32) -> (Vec<[f32; 2]>, Vec<u32>) {
    let point = |i: usize| {
        let t = i as f32 * 0.37 + from;
        [t.cos() * t * 0.01, t.sin() * t * 0.01]
    };
    ((0..len).map(point).collect(), (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 12).collect())
}

#[test]
fn best_pairs_take_what_was_planned() {
    let ((left, a), (right, b)) = (set(900, 0.0), set(700, 0.1));
    let sets = [Scored::new(&left, &a).unwrap(), Scored::new(&right, &b).unwrap()];
    for name in names() {
        let device = Device::from_name(name).unwrap();
        for strategy in [
            Strategy::Auto,
            Strategy::NestedLoop,
            Strategy::Threshold,
            Strategy::Cells,
            Strategy::RegisterHeap,
            Strategy::SharedHeap,
            Strategy::AppendSort,
            Strategy::Filter,
        ] {
            let join = TopKDistanceJoin::new(0.05, 5).strategy(strategy).best_points(20);
            let plan = join.plan(&device, sets[0], sets[1]).unwrap();
            let temp = join.run(&device, sets[0], sets[1]).unwrap().stats().temp_bytes;
            let what = format!("{strategy:?} on {name}: {temp} bytes\n{plan}");
            assert_eq!(plan.num_points, [900, 700]);
            if device.is_cpu() {
                assert!(plan.method == JoinMethod::Cells && plan.temp_bytes > 20 * 1600, "{what}");
                continue;
            }
            assert_eq!(plan.input_bytes, 12 * 1600, "{what}");
            assert!(strategy == Strategy::Auto || plan.method == JoinMethod::Best(strategy), "{what}");
            match plan.method {
                JoinMethod::Best(Strategy::Threshold) => assert!(temp <= plan.temp_bytes, "{what}"),
                JoinMethod::Best(Strategy::Filter | Strategy::AppendSort) => {
                    let all = DistanceJoin::new(0.05_f32).count(&device, &left, &right).unwrap();
                    assert!(temp <= plan.temp_bytes + all * plan.pair_bytes, "{what}");
                }
                _ => assert_eq!(temp, plan.temp_bytes, "{what}"),
            }
        }
    }
}

#[test]
fn all_pairs_and_nearest_take_what_was_planned() {
    let ((left, _), (right, _)) = (set(900, 0.0), set(700, 0.1));
    let join = DistanceJoin::new(0.05_f32);
    for name in names() {
        let device = Device::from_name(name).unwrap();
        let plan = join.plan(&device, &left, Some(&right)).unwrap();
        assert_eq!((plan.num_points, plan.method), ([900, 700], JoinMethod::Cells));
        assert!(plan.grid.is_some_and(|(cells, bits)| cells > 1.0 && bits > 1), "{plan}");
        let nearest = |join: KnnJoin<f32>| join.plan(&device, &left, &right).unwrap();
        assert_eq!(nearest(KnnJoin::new(3)).method, JoinMethod::Tree);
        let by_cells = if device.is_cpu() { JoinMethod::Tree } else { JoinMethod::Cells };
        assert_eq!(nearest(KnnJoin::new(3).within(0.01)).method, by_cells);
        let Some(gpu) = device.gpu() else { continue };
        let stream = Stream::new(gpu).unwrap();
        let buffer =
            |points: &[[f32; 2]]| Buffer::from_slice(&stream, points.as_flattened(), "points").unwrap();
        let (on, other) = (buffer(&left), buffer(&right));
        for other in [Some(&other), None] {
            let mut workspace = Workspace::new(gpu);
            join.rows_on::<[f32; 2]>(&stream, &mut workspace, &on, other).unwrap();
            let plan = join.plan(&device, &left, other.map(|_| &right[..])).unwrap();
            // Here offsets belong to the result, and memory is allocated in blocks of 256 bytes.
            let temp = workspace.bytes() + 8 * 901;
            assert!((temp..temp + 256).contains(&plan.temp_bytes), "{temp} bytes on {name}\n{plan}");
        }
    }
}

#[test]
fn sets_without_a_grid() {
    let device = Device::cpu();
    let far = vec![[1e6_f32, 0.0]; 3];
    let plan = DistanceJoin::new(1.0_f32).plan(&device, &set(5, 0.0).0, Some(&far)).unwrap();
    assert_eq!((plan.grid, plan.num_points), (None, [5, 3]));
    assert!(plan.to_string().contains("grid      none"), "{plan}");
    let none: [[f32; 2]; 0] = [];
    assert_eq!(DistanceJoin::new(1.0_f32).plan(&device, &none, None).unwrap().num_points, [0, 0]);
    assert!(DistanceJoin::new(-1.0_f32).plan(&device, &none, None).is_err());
}
