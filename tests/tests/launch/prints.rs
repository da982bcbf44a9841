//! Texts that kernels print. A GPU's driver writes them past the capture of the tests, so a second process prints them.

use crate::on_each_gpu;
use kauri::device::Buffer;
use kauri_test_kernels::prints::test_prints;
use std::env;
use std::process::Command;

const CHILD: &str = "KAURI_TEST_PRINTS";

#[test]
fn prints_of_a_kernel_reach_standard_output() {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "prints::child_prints", "--nocapture"]).env(CHILD, "1");
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    // The simulator writes the place of the thread before each text.
    let found = text.lines().filter(|line| line.contains("item ")).collect::<Vec<_>>();
    let ends = ["item 3: 1.5 has bits 3fc00000, -47 of 100%", "item 40: 2.25 has bits 40100000, -10 of 100%"];
    assert!(!found.is_empty() && found.len().is_multiple_of(ends.len()), "{text}");
    assert!(found.iter().all(|line| ends.iter().any(|end| line.ends_with(end))), "{text}");
}

#[test]
fn child_prints() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    on_each_gpu(|_, stream| {
        let mut items = [0.0f32; 64];
        (items[3], items[40]) = (1.5, 2.25);
        let items = Buffer::from_slice(stream, &items, "items").unwrap();
        // SAFETY: an item for each thread.
        unsafe { stream.launch::<test_prints>(2, (items.slice(), 1.0)) }.unwrap();
        stream.synchronize().unwrap();
    });
}
