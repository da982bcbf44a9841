//! Tests of the parser on a text with every construct that LLVM prints.

use super::*;

const TEXT: &str = r#"
.version 7.8
.target sm_90
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0,
	.param .b64 vprintf_param_1
)
;
.func helper()
{
	ret;
}
.func  (.param .b32 func_retval0) far(
	.param .b64 far_param_0
)
{
	ret;
}
	// .globl	k
.visible .entry k(
	.param .align 8 .b8 k_param_0[24],
	.param .u64 .ptr .align 1 k_param_1,
	.param .u8 k_param_2
)
.maxntid 128, 1, 1
{
	.local .align 4 .b8 	__local_depot2[8];
	.reg .b32 	%r<17>;
$L__func_begin2:
	.loc	1 29 0

	ld.param.b8 	%rs1, [k_param_2];
$L__tmp6: mov.u32 %r1, %tid.x;
	.loc	2 30 2
	{ // callseq 0, 0
	call.uni helper, ();
	} // callseq 0
	@%p1 bra 	$L__BB2_2;
	@!%p1 bra.uni 	$L__BB2_1;
$L__BB2_2:
	ld.global.v2.b64 	{%rd12, %rd13}, [%rd1+32];
	// begin inline asm
	{ .reg .b32 x; mov.b32 x, 1; } bar.sync 0;
	// end inline asm
	ret;

}
	.section	.debug_macinfo	{	}
	.file	1 "/tmp/k/src/lib.rs"
	.file	2 "//server/core.rs"
"#;

#[test]
fn headers() {
    let module = Module::parse(TEXT);
    let names: Vec<_> = module.functions.iter().map(|f| (f.name, f.is_entry, f.is_declaration)).collect();
    assert_eq!(
        names,
        [("vprintf", false, true), ("helper", false, false), ("far", false, false), ("k", true, false)]
    );
    let scalar = |bytes| Param { bytes, aggregate: false };
    assert_eq!(module.functions[0].params, [scalar(8), scalar(8)]);
    assert_eq!(module.functions[1].params, []);
    assert_eq!(module.functions[2].params, [scalar(8)]);
    assert_eq!(module.functions[3].params, [Param { bytes: 24, aggregate: true }, scalar(8), scalar(1)]);
    assert_eq!(module.functions[3].local, Some(28));
}

#[test]
fn instructions() {
    let module = Module::parse(TEXT);
    let kernel = &module.functions[3];
    let opcodes: Vec<_> = kernel.instructions.iter().map(|i| i.opcode).collect();
    assert_eq!(
        opcodes,
        [
            "ld.param.b8",
            "mov.u32",
            "call.uni",
            "bra",
            "bra.uni",
            "ld.global.v2.b64",
            "mov.b32",
            "bar.sync",
            "ret"
        ]
    );
    assert_eq!(kernel.instructions[2].operands, "helper, ()");
    assert_eq!(kernel.instructions[0].loc, Some(Loc { file: 1, line: 29, column: 0 }));
    assert_eq!(kernel.instructions[4].loc, Some(Loc { file: 2, line: 30, column: 2 }));
    assert!(kernel.instructions[7].inline_asm && !kernel.instructions[8].inline_asm);
    assert!(kernel.instructions[5].has("global") && !kernel.instructions[5].has("local"));
}

#[test]
fn files() {
    let module = Module::parse(TEXT);
    assert_eq!(module.file(1), Some("/tmp/k/src/lib.rs"));
    assert_eq!(module.file(2), Some("//server/core.rs"));
    assert_eq!(module.file(3), None);
}

#[test]
fn declarations_with_attributes_end() {
    let module =
        Module::parse(".func stop\n(\n\t.param .b64 a\n)\n.noreturn;\n.visible .entry k()\n{\n\tret;\n}\n");
    assert_eq!(module.functions.len(), 2);
    assert!(module.functions[0].is_declaration && module.functions[1].is_entry);
    assert_eq!(module.functions[1].instructions.len(), 1);
}
