//! Launches and kernels that must not compile. The cases are compiled in a target folder of their own with all dependencies of this
//! package, which are few.

#[test]
fn wrong_arguments_do_not_compile() {
    // Cargo compiles the cases from the source tree. Outside of it there are none.
    let here = std::path::Path::new("tests/compile_fail");
    if std::env::var_os("CARGO").is_none() || !here.is_dir() {
        eprintln!("skipped: no cargo or no source tree");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
