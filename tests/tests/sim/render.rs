//! Frames against the host's pictures.

use crate::on_each_schedule_in_turn;
use kauri::mesh::shapes;
use kauri_tests::frames::check;

#[test]
fn frames_are_nearly_pictures() {
    let meshes = [shapes::torus_knot([2, 3], 16, 4), shapes::soup(0, 0.1, 1)].map(Result::unwrap);
    on_each_schedule_in_turn(2, |gpu, _, turn| {
        let darker = check(gpu, &meshes[turn], [24, 17]);
        assert!(darker > 0 || turn == 1, "no shadows");
    });
}
