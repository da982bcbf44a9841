//! The rules on small texts. Those about convergence are what rustc 1.97 made of
//! `if i < n { …; ok = true } barrier(); if ok { … }`, shortened: wrong with `asm!`, right with the intrinsic.

use super::*;

fn rules(findings: &[Finding]) -> Vec<Rule> {
    findings.iter().map(|finding| finding.rule).collect()
}

/// A kernel with a marker and this body.
fn kernel(hot: u8, body: &str) -> String {
    format!(
        "// kauri.kernel name=k block=128 min_blocks=0 max_regs=0 shared=0 hot={hot} params=8,4\n\
         .visible .entry k(\n\t.param .u64 .ptr .align 1 k_param_0,\n\t.param .u32 k_param_1\n)\n{{\n{body}\n}}\n"
    )
}

#[test]
fn a_good_kernel_has_no_findings() {
    let body = ".loc 1 2 3\n\tld.param.b64 %rd1, [k_param_0];\n\tld.global.nc.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];\n\
        \tst.shared::cta.b32 [%r5], %r1;\n\tatom.global.add.u32 %r1, [%rd1], 1;\n\tbar.sync 0;\n\tret;";
    assert_eq!(check(&kernel(1, body)).unwrap(), []);
}

#[test]
fn local_memory() {
    let findings =
        check(&kernel(0, "\t.local .align 4 .b8 \t__local_depot2[12];\n\tst.local.b32 [%rd1], 1;")).unwrap();
    assert_eq!(rules(&findings), [Rule::LocalMemory]);
    assert_eq!(findings[0].line, 8);
    assert_eq!(rules(&check(&kernel(0, "\tld.local.b32 %r1, [%rd1];")).unwrap()), [Rule::LocalMemory]);
    let print = "\tst.local.b64 [%rd1], 1;\n\tcall.uni (retval0), vprintf, (param0, param1);";
    assert_eq!(check(&kernel(0, print)).unwrap(), []);
}

#[test]
fn generic_accesses_count_in_hot_kernels_and_what_they_call() {
    let body = ".loc 1 7 9\n\t@%p1 ld.v2.b32 {%r1, %r2}, [%rd1];\n\tcall.uni helper, ();\n\tret;";
    let helper = ".func helper()\n{\n\tst.relaxed.sys.b32 [%rd1], %r1;\n\tret;\n}\n.file 1 \"src/scan.rs\"\n";
    let findings = check(&format!("{}{helper}", kernel(1, body))).unwrap();
    assert_eq!(rules(&findings), [Rule::GenericAccess, Rule::GenericAccess]);
    assert_eq!(
        findings[0].to_string(),
        "k, src/scan.rs:7:9, line 8 of the PTX: `ld.v2.b32` does not know its address space [generic-access]"
    );
    assert_eq!(findings[1].kernel, "helper");
    assert_eq!(check(&format!("{}{helper}", kernel(0, body))).unwrap(), []);
}

#[test]
fn panics_and_what_is_undefined() {
    let text = ".extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 a\n)\n;\n\
        .extern .func memcmp\n(\n\t.param .b64 a\n)\n;\n\
        .func _RNvNtCs7X_4core9panicking5panic()\n{\n\ttrap;\n}\n";
    let findings =
        check(&format!("{text}{}", kernel(0, "\tcall.uni _RNvNtCs7X_4core9panicking5panic, ();"))).unwrap();
    assert_eq!(rules(&findings), [Rule::Unresolved, Rule::Panic, Rule::Panic]);
    assert_eq!((findings[0].kernel.as_str(), findings[0].line), ("memcmp", 6));
}

#[test]
fn markers_and_entries_belong_together() {
    let text = kernel(0, "\tret;");
    assert_eq!(
        rules(&check(&text.replace(".entry k(", ".entry other(")).unwrap()),
        [Rule::Marker, Rule::Marker]
    );
    assert_eq!(rules(&check(&text.replace("params=8,4", "params=8,8")).unwrap()), [Rule::Parameters]);
    assert_eq!(rules(&check(&text.replace("params=8,4", "params=")).unwrap()), [Rule::Parameters]);
    let slice = text.replace(".param .u64 .ptr .align 1 k_param_0", ".param .align 8 .b8 k_param_0[16]");
    assert_eq!(rules(&check(&slice.replace("params=8,4", "params=16,4")).unwrap()), [Rule::Parameters]);
}

#[test]
fn collectives_in_asm() {
    let body = "\t// begin inline asm\n\tshfl.sync.idx.b32 %r1, %r2, 0, 31, -1;\n\t// end inline asm\n\tbar.sync 0;\n\
        \t// begin inline asm\n\tld.acquire.gpu.global.b32 %r1, [%rd1];\n\t// end inline asm";
    let findings = check(&kernel(1, body)).unwrap();
    assert_eq!(rules(&findings), [Rule::AsmCollective]);
    assert_eq!(findings[0].line, 8);
}

const DEBUG: &str = r#"
!8 = distinct !DISubprogram(name: "k", scope: !10, file: !9, line: 8, unit: !4)
!9 = !DIFile(filename: "src/lib.rs", directory: "/k")
!29 = !DILocation(line: 57, column: 5, scope: !30, inlinedAt: !31)
!30 = distinct !DISubprogram(name: "sync_threads", scope: !10, file: !9, line: 56, unit: !4)
!31 = !DILocation(line: 12, column: 2, scope: !8)
!39 = !DILocation(line: 57, column: 5, scope: !30, inlinedAt: !41)
!41 = !DILocation(line: 13, column: 2, scope: !8)
"#;

/// The kernel `k`, whose first branch leads to two blocks with these lines, which meet again.
fn two_arms(one: &str, other: &str, after: &str) -> String {
    format!(
        "define ptx_kernel void @k(ptr %x, ptr %y, i32 %n) unnamed_addr #0 !dbg !8 {{\n\
         start:\n  br i1 %_10, label %bb1, label %bb2, !dbg !26\n\n\
         bb2:                                              ; preds = %start\n{one}\n  br label %bb4, !dbg !33\n\n\
         bb1:                                              ; preds = %start\n{other}\n  br label %bb4, !dbg !56\n\n\
         bb4:                                              ; preds = %bb2, %bb1\n{after}\n  ret void, !dbg !57\n}}\n{DEBUG}"
    )
}

const ASM: &str =
    r#"  tail call void asm sideeffect alignstack "bar.sync 0;", "~{memory}"() #7, !dbg !29, !srcloc !32"#;
const BARRIER: &str = "  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0), !dbg !29";

#[test]
fn a_barrier_copied_into_both_arms() {
    for barrier in [ASM, BARRIER] {
        let findings = check_convergence("", &two_arms(barrier, barrier, ""), "k.ll");
        assert_eq!(rules(&findings), [Rule::DuplicatedCollective]);
        assert_eq!(
            findings[0].message,
            "k.ll: one barrier of the source is in two branches (lines 6 and 10): src/lib.rs:57:5 in src/lib.rs:12:2"
        );
        // The single one after the arms meet, as rustc compiles the intrinsic.
        assert_eq!(check_convergence("", &two_arms("", "", barrier), "k.ll"), []);
    }
}

#[test]
fn two_barriers_of_the_source_may_stand_in_two_arms() {
    // The same line of the library, inlined into two places.
    let other = BARRIER.replace("!dbg !29", "!dbg !39");
    assert_eq!(check_convergence("", &two_arms(BARRIER, &other, ""), "k.ll"), []);
}

#[test]
fn copies_of_an_unrolled_loop_follow_one_another() {
    let three = [BARRIER; 3].join("\n");
    assert_eq!(check_convergence("", &two_arms("", "", &three), "k.ll"), []);
    assert_eq!(check_convergence("", &two_arms(&three, "", ""), "k.ll"), []);
    // One is before the branch: it dominates. Between themselves the arms' copies are still apart.
    assert_eq!(
        rules(&check_convergence("", &two_arms(&three, BARRIER, ""), "k.ll")),
        [Rule::DuplicatedCollective]
    );
}

#[test]
fn calls_of_functions_with_a_collective_count_as_one() {
    let call = "  tail call void @wait() #2, !dbg !29";
    let wait = format!("define internal void @wait() {{\n{}\n  ret void\n}}\n", BARRIER.replace("29", "31"));
    let findings = check_convergence("", &format!("{wait}{}", two_arms(call, call, "")), "k.ll");
    assert_eq!(rules(&findings), [Rule::DuplicatedCollective]);
    assert_eq!(check_convergence("", &two_arms(call, call, ""), "k.ll"), []);
}

#[test]
fn collectives_that_the_last_step_adds() {
    let ir = two_arms("", "", BARRIER);
    assert_eq!(check_convergence(&kernel(1, "\tbar.sync 0;\n\tret;"), &ir, "k.ll"), []);
    let findings = check_convergence(&kernel(1, "\tbar.sync 0;\n\tbar.sync 0;\n\tret;"), &ir, "k.ll");
    assert_eq!(rules(&findings), [Rule::DuplicatedCollective]);
    assert_eq!((findings[0].kernel.as_str(), findings[0].line), ("k", 2));
}

#[test]
fn without_lines_copies_cannot_be_told() {
    let bare = BARRIER.replace(", !dbg !29", "");
    let findings = check_convergence("", &two_arms(&bare, "", ""), "k.ll");
    assert_eq!(rules(&findings), [Rule::NoLines]);
}
