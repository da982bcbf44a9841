//! Texts that kernels print.

use crate::harness::under_all;
use crate::kernels::prints::print_values;
use crate::ptx::ptx;

#[test]
fn texts_come_with_their_threads() {
    under_all(|d| {
        let mut x = [0.0f32; 64];
        (x[3], x[40]) = (1.1, 2.5);
        d.run::<print_values>(2, (d.array(&x).slice(),));
        let mut printed = d.machine.printed();
        printed.sort_by_key(|printed| printed.thread);
        let printed: Vec<(String, String)> =
            printed.into_iter().map(|printed| (printed.thread.to_string(), printed.text)).collect();
        let third = f64::from(1.1f32) / 3.0;
        assert_eq!(
            printed.iter().map(|(thread, text)| (thread.as_str(), text.as_str())).collect::<Vec<_>>(),
            [
                ("block 0, thread 3", format!("100% {{3}} ffffffffffffffff -7 1.1 {third}\n").as_str()),
                ("block 0, thread 3", "done\n"),
                (
                    "block 1, thread 8",
                    format!("100% {{40}} ffffffffffffffff -7 2.5 {}\n", 2.5 / 3.0).as_str()
                ),
                ("block 1, thread 8", "done\n"),
            ]
        );
        // Texts belong to the last launch.
        d.run::<print_values>(1, (d.array(&[0.0f32; 32]).slice(),));
        assert!(d.machine.printed().is_empty());
    });
}

#[test]
fn a_print_calls_the_driver() {
    let Some(ptx) = ptx() else { return };
    assert_eq!(ptx.opcodes("print_values", &["call"]).len(), 2);
    assert!(ptx.findings_in("print_values").is_empty(), "{:?}", ptx.findings);
}
