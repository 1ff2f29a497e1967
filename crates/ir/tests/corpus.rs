//! Every file of the corpus that the checker accepts is lowered, and the lowered code keeps its invariants.
//!
//! The corpus is not in the repository: without it the test says how to make it, and passes.

use std::collections::BTreeSet;

use ir::{Function, OpKind, Program, SlotKind, Touch};
use test_utils::corpus;

/// The lowered program of a text that checks, and what the checker says otherwise.
fn compile(text: &str) -> (Option<Program>, Vec<diag::Diagnostic>) {
    let source = diag::SourceFile::new("test.ptx", text);
    let (tree, parsed) = syntax::parse(&source);
    let (module, diagnostics) = check::check(&source, &tree, parsed, &check::Options::default());
    (module.map(|module| ir::lower(module, &ir::Options::ALL)), diagnostics)
}

fn lower(text: &str) -> Option<Program> {
    compile(text).0
}

/// What every engine relies on.
fn verify(function: &Function, name: &str) {
    let fixed = |kind| matches!(kind, SlotKind::Constant(_) | SlotKind::Special(_) | SlotKind::Invariant);
    let mut written: Vec<bool> = function.slots.iter().map(|s| fixed(s.kind)).collect();
    for op in &mut function.clone().prologue {
        op.visit(&mut |slot, touch| {
            let kind = function.slots[slot.index()].kind;
            assert!(fixed(kind), "{name}: the prologue touches {slot}, which is {kind:?}");
            assert!(touch == Touch::Use || kind == SlotKind::Invariant, "{name}: the prologue writes {slot}");
        });
    }
    for block in 0..function.blocks.len() {
        let mut copy = function.clone();
        let b = &function.blocks[block];
        for next in b.terminator.successors() {
            assert!(next.index() < function.blocks.len(), "{name}: b{block} goes to {next:?}");
        }
        assert!(b.live_in.is_sorted(), "{name}: live_in of b{block}");
        for slot in &b.live_in {
            let kind = function.slots[slot.index()].kind;
            assert!(!fixed(kind), "{name}: {slot} is live into b{block} and is {kind:?}");
        }
        // A temporary is written before it is read, and constants are never written.
        written.iter_mut().zip(&function.slots).for_each(|(w, s)| *w &= s.kind != SlotKind::Temporary);
        for slot in &b.live_in {
            written[slot.index()] = true;
        }
        for (i, op) in copy.ops[b.ops.start as usize..b.ops.end as usize].iter_mut().enumerate() {
            assert!(
                i == 0 || !matches!(op.kind, OpKind::Warp { .. }),
                "{name}: a warp operation inside b{block}"
            );
            op.visit(&mut |slot, touch| {
                let info = function.slots[slot.index()];
                match touch {
                    Touch::Use => assert!(
                        info.kind != SlotKind::Temporary || written[slot.index()],
                        "{name}: b{block} reads {slot} before it is written"
                    ),
                    Touch::Def => {
                        assert!(
                            !fixed(info.kind),
                            "{name}: b{block} writes {slot}, which is {:?}",
                            info.kind
                        );
                        written[slot.index()] = true;
                    }
                }
            });
        }
    }
}

#[test]
fn the_corpus_is_lowered() {
    let all = corpus::ptx_files(&corpus::path());
    if all.is_empty() {
        eprintln!("skipped: 1 test, corpus::the_corpus_is_lowered, because {}", corpus::MISSING);
        return;
    }
    let (mut files, mut accepted, mut functions, mut unsupported) = (0, 0, 0, 0);
    let mut missing = BTreeSet::new();
    for path in all {
        files += 1;
        let text = std::fs::read_to_string(&path).expect("a text file");
        let (program, diagnostics) = compile(&text);
        let unknown = diagnostics.iter().filter(|d| d.code == "unsupported-instruction");
        missing.extend(unknown.filter_map(|d| d.message.split('\'').nth(1).map(str::to_owned)));
        let Some(program) = program else { continue };
        accepted += 1;
        for (checked, function) in program.module.functions.iter().zip(&program.functions) {
            assert_eq!(checked.body.is_some(), function.is_some(), "{}: {}", path.display(), checked.name);
            if let Some(function) = function {
                functions += 1;
                verify(function, &format!("{}: {}", path.display(), checked.name));
                unsupported +=
                    function.ops.iter().filter(|op| matches!(op.kind, OpKind::Unsupported { .. })).count();
            }
        }
        // The print does not depend on the run.
        assert_eq!(program.to_string(), lower(&text).expect("the same again").to_string());
    }
    eprintln!(
        "{files} files, {accepted} accepted and lowered: {functions} functions, {unsupported} operations unsupported"
    );
    eprintln!("opcodes that are not in the table: {missing:?}");
    assert!(accepted * 100 >= files * 95, "{accepted} of {files} files are lowered");
}

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

fn emit(body: &str) -> String {
    let text = format!("{HEAD}.visible .entry k(.param .u64 out) {{\n{body}\n}}\n");
    lower(&text).expect("a kernel that checks").to_string()
}

#[test]
fn an_if_reconverges_before_what_follows() {
    let text = emit(
        ".reg .pred %p; .reg .b32 %r<4>;
         mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 7;
         @%p bra THEN;
         mov.u32 %r2, 1; bra JOIN;
         THEN: mov.u32 %r2, 2;
         JOIN: add.u32 %r3, %r2, %r1; ret;",
    );
    let blocks: Vec<&str> = text.lines().filter(|l| l.starts_with('b')).collect();
    assert_eq!(blocks.len(), 4, "{text}");
    // Both arms jump forward to the block that stands last.
    assert_eq!(text.matches("jump b3").count(), 2, "{text}");
}

#[test]
fn a_guarded_barrier_becomes_a_branch_around_it() {
    let text = emit(".reg .pred %p; setp.eq.u32 %p, 1, 1; @%p bar.sync 0; ret;");
    assert!(text.contains("branch"), "{text}");
    assert!(text.contains("Barrier"), "{text}");
}

#[test]
fn narrow_values_in_wide_registers_are_cut_out() {
    let text = emit(".reg .b32 %r<3>; cvt.u32.u8 %r1, %r2; ret;");
    assert!(text.contains("Resize") && text.contains("bits: 8"), "{text}");
}

#[test]
fn a_sink_that_nobody_reads_costs_nothing() {
    let text = emit(".reg .b32 %r<3>; setp.lt.u32 _, %r1, %r2; ret;");
    assert!(!text.contains("setp"), "{text}");
}
