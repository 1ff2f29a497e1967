//! Passes can be left out, and registers and instructions of the source are found again in what they became.

use check::module::RegId;
use ir::{BlockId, Function, OpKind, Options, SimpleOp, SlotKind};

const TEXT: &str = ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry test(.param .u64 out) {\n\
    .reg .u64 %a; .reg .u32 %t, %u, %v, %w, %c; .reg .b128 %q; .reg .pred %p;\n\
    ld.param.u64 %a, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %u, %t;\nadd.u32 %v, %u, 5;\nmov.u32 %c, %ctaid.x;\nmul.lo.u32 %w, %v, %c;\n\
    setp.lt.u32 %p, %w, 3;\nmov.b128 %q, {%a, %a};\n@%p bra next;\nadd.u32 %w, %w, 1;\nnext:\n\
    st.global.u32 [%a], %w;\nst.global.b128 [%a], %q;\nret;\n}\n";

fn lower(options: &Options) -> (Vec<String>, Function) {
    lower_text(TEXT, options)
}

fn lower_text(text: &str, options: &Options) -> (Vec<String>, Function) {
    let source = diag::SourceFile::new("test.ptx", text);
    let (tree, parsed) = syntax::parse(&source);
    let (module, diagnostics) = check::check(&source, &tree, parsed, &check::Options::default());
    let program = ir::lower(module.unwrap_or_else(|| panic!("{diagnostics:?}")), options);
    let body = program.module.functions[0].body.as_ref().expect("a body");
    let names = body.registers.iter().map(|register| register.name.to_string()).collect();
    (names, program.functions[0].clone().expect("code"))
}

fn register(names: &[String], name: &str) -> RegId {
    let found = names.iter().position(|other| other.trim_start_matches('%') == name);
    RegId(found.unwrap_or_else(|| panic!("no {name} in {names:?}")) as u32)
}

fn count(function: &Function, what: impl Fn(&OpKind) -> bool) -> usize {
    function.prologue.iter().chain(&function.ops).filter(|op| what(&op.kind)).count()
}

#[test]
fn every_pass_can_be_left_out() {
    let is_copy = |kind: &OpKind| matches!(kind, OpKind::Simple(SimpleOp::Copy { .. }));
    let (_, all) = lower(&Options::ALL);
    assert!(!all.prologue.is_empty());
    let (_, without) = lower(&Options::without("copies").unwrap());
    assert!(count(&without, is_copy) > count(&all, is_copy));
    let (_, without) = lower(&Options::without("prologue").unwrap());
    assert!(without.prologue.is_empty());
    let (_, without) = lower(&Options::without("shared_slots").unwrap());
    assert!(without.slots.len() > all.slots.len());
    for pass in Options::PASSES {
        assert_ne!(Options::without(pass), Some(Options::ALL), "{pass}");
    }
    assert_eq!(Options::without("liveness"), None);
    assert_eq!(Options::default(), Options::ALL);
}

#[test]
fn the_prologue_computes_alike_values_once() {
    let text = ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry test(.param .u64 out) {\n\
        .reg .u64 %a, %b; .reg .u32 %t, %u, %v; .shared .u32 s[4];\n\
        mov.u64 %a, s;\nmov.u64 %b, s;\nmov.u32 %t, %tid.x;\nadd.u32 %u, %t, 5;\nadd.u32 %v, %t, 6;\n\
        st.shared.u32 [%a], %u;\nst.shared.u32 [%b], %v;\nret;\n}\n";
    let function = lower_text(text, &Options::ALL).1;
    let is_address = |op: &&ir::Op| matches!(op.kind, OpKind::AddressOf { .. });
    assert_eq!(function.prologue.iter().filter(is_address).count(), 1);
    let is_sum = |op: &&ir::Op| matches!(op.kind, OpKind::Pure { .. });
    assert_eq!(function.prologue.iter().filter(is_sum).count(), 2, "of different numbers");
}

#[test]
fn without_passes_every_register_has_one_slot() {
    let (names, function) = lower(&Options::NONE);
    for (name, half) in [("a", 0), ("t", 0), ("u", 0), ("v", 0), ("w", 0), ("p", 0), ("q", 0), ("q", 1)] {
        let register = register(&names, name);
        for block in 0..function.blocks.len() {
            let slot = function.place_of(register, half, BlockId(block as u32));
            let kind = slot.map(|slot| function.slots[slot.index()].kind);
            let wanted =
                if name == "q" { SlotKind::Half(register, half) } else { SlotKind::Register(register) };
            assert_eq!(kind, Some(wanted), "{name}, block {block}");
        }
    }
}

#[test]
fn passes_keep_track_of_registers() {
    let (names, function) = lower(&Options::ALL);
    let place = |name: &str, block: u32| function.place_of(register(&names, name), 0, BlockId(block));
    // It lives on in the next blocks.
    assert!(place("w", 0).is_some());
    assert_eq!(place("w", 0), place("w", 2));
    // Copies of it read the special register itself.
    assert_eq!(place("t", 0), place("u", 0));
    let kind = function.slots[place("u", 0).expect("a slot").index()].kind;
    assert!(matches!(kind, SlotKind::Special(special) if special.name() == "%tid.x"), "{kind:?}");
    // It lives in the first block only.
    assert!(place("p", 0).is_some() && place("p", 2).is_none());
}

#[test]
fn instructions_are_found_again() {
    let (_, function) = lower(&Options::ALL);
    let span = |text: &str| {
        let start = TEXT.find(text).expect("an instruction");
        let inside = |op: &&ir::Op| (op.span.start as usize) == start;
        function.ops.iter().find(inside).map(|op| op.span)
    };
    let store = span("st.global.u32").expect("operations");
    let found: Vec<(BlockId, usize)> = function.operations_of(store).collect();
    assert_eq!(found.len(), 1);
    let (block, index) = found[0];
    assert!(function.blocks[block.index()].ops.contains(&(index as u32)));
    assert!(matches!(function.ops[index].kind, OpKind::Store(_)));
}
