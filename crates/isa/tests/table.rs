//! The table holds together, and `select` finds in it what ptxas finds.

use isa::enumerate::spellings;
use isa::{
    Action, FORMS, FormId, LENIENT, Picks, SelectError, Stage, Target, Token, Version, forms, select,
    select_lenient,
};

/// `add.rn.f32` with a number of operands.
fn find(mnemonic: &str, operands: usize) -> Result<isa::Selected, Vec<SelectError>> {
    let mut words = mnemonic.split('.');
    let opcode = words.next().unwrap_or_default();
    select(opcode, &words.collect::<Vec<_>>(), operands)
}

fn messages(mnemonic: &str, operands: usize) -> Vec<String> {
    let mut words = mnemonic.split('.');
    let opcode = words.next().unwrap_or_default();
    let modifiers: Vec<&str> = words.collect();
    match select(opcode, &modifiers, operands) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(|error| error.message(opcode, &modifiers)).collect(),
    }
}

#[test]
fn every_row_can_be_reached() {
    for (index, form) in FORMS.iter().enumerate() {
        let id = FormId(index as u16);
        let reached = spellings(id).filter(|s| s.is_legal()).any(|spelling| {
            let operands = form.operands_with(&spelling.picks).count();
            let mut found = select(form.opcode.name(), &spelling.modifiers, operands).ok();
            // Rows that differ in the types of their operands only stand one behind the other.
            while let Some(other) = found
                && other.id != id
            {
                found = isa::overload(other.id, &spelling.modifiers, operands);
            }
            found.is_some()
        });
        assert!(reached, "`{}` is hidden by earlier rows", form.syntax);
    }
}

#[test]
fn every_legal_spelling_selects_a_row_with_the_same_types() {
    for (index, form) in FORMS.iter().enumerate() {
        let id = FormId(index as u16);
        let step = spellings(id).count().div_ceil(500).max(1);
        for spelling in spellings(id).step_by(step).filter(|s| s.is_legal()) {
            let operands = form.operands_with(&spelling.picks).count();
            let selected = select(form.opcode.name(), &spelling.modifiers, operands);
            let Ok(selected) = selected else { panic!("{}: {selected:?}", spelling.mnemonic()) };
            assert_eq!(selected.picks.types(), spelling.picks.types(), "{}", spelling.mnemonic());
        }
    }
}

#[test]
fn rows_are_sorted_and_fit_into_picks() {
    assert!(FORMS.is_sorted_by_key(|form| form.opcode));
    for form in FORMS {
        assert!(form.type_slots().count() <= Picks::MAX_TYPES, "{}", form.syntax);
        let mods = form.slots.iter().filter(|slot| !slot.is_type()).count();
        assert!(mods + 2 <= Picks::MAX_MODS, "{}", form.syntax);
        assert!(form.slots.iter().all(|slot| !slot.choices.is_empty()), "{}", form.syntax);
        assert!(form.section.starts_with("9.7."), "{}", form.section);
        if let Action::Pure(name) = form.action {
            assert!(name.contains("::"), "{name}");
        }
    }
}

#[test]
fn every_operand_of_a_computation_has_a_type() {
    for (index, form) in FORMS.iter().enumerate() {
        let Some(spelling) = spellings(FormId(index as u16)).find(|s| s.is_legal()) else {
            panic!("{}", form.syntax)
        };
        if matches!(form.action, Action::Pure(_)) {
            for operand in form.operands {
                assert!(operand.resolve(&spelling.picks).is_some(), "{} {}", form.syntax, operand.name);
            }
        }
    }
}

#[test]
fn only_results_are_written() {
    for form in FORMS {
        for (index, operand) in form.operands.iter().enumerate() {
            let written = operand.access != isa::Access::Read;
            let first = index == 0 && matches!(operand.name, "d" | "p");
            assert_eq!(
                written,
                first || matches!(operand.name, "redval" | "report") || operand.name.starts_with("out-"),
                "{}",
                form.syntax
            );
        }
        let writes = form.operands.iter().any(|operand| operand.access == isa::Access::Write);
        assert!(writes || !matches!(form.action, Action::Pure(_)), "{}", form.syntax);
    }
}

#[test]
fn everything_is_allowed_somewhere() {
    let newest: Vec<Target> = Target::all().collect();
    for (index, form) in FORMS.iter().enumerate() {
        let id = FormId(index as u16);
        for spelling in spellings(id).filter(|s| s.is_legal()).take(200) {
            let gates = form.gates(&spelling.picks);
            assert!(gates.is_sorted_by_key(|gate| gate.stage));
            let somewhere = newest.iter().any(|&target| {
                Version::all().any(|version| gates.iter().all(|gate| gate.permits(version, target)))
            });
            assert!(somewhere, "{}", spelling.mnemonic());
        }
    }
}

#[test]
fn lenient_rows_are_found_only_when_they_are_asked_for() {
    for index in FORMS.len()..FORMS.len() + LENIENT.len() {
        let id = FormId(index as u16);
        let form = id.form();
        for spelling in spellings(id) {
            let operands = form.operands_with(&spelling.picks).count();
            let modifiers = &spelling.modifiers;
            assert!(select(form.opcode.name(), modifiers, operands).is_err(), "{}", spelling.mnemonic());
            let lenient = select_lenient(form.opcode.name(), modifiers, operands);
            assert!(lenient.is_some_and(|s| s.id == id), "{}", spelling.mnemonic());
            assert_eq!(select_lenient(form.opcode.name(), modifiers, operands + 1), None);
        }
    }
    assert!(!LENIENT.is_empty());
}

#[test]
fn order_matters_among_types_only() {
    let one = find("setp.lt.and.ftz.f32", 4).unwrap();
    let other = find("setp.ftz.f32.and.lt", 4).unwrap();
    assert_eq!(one, other);
    assert_ne!(find("cvt.rn.f32.f64", 2).unwrap().picks, find("cvt.f64.f32", 2).unwrap().picks);
    assert!(find("cvt.f32.f64", 2).is_err());
    assert_eq!(find("add.rz.f32.bf16.sat", 3).unwrap().form().section, "9.7.5.1");
}

#[test]
fn operands_choose_among_rows() {
    assert_eq!(find("min.f32", 3).unwrap().form().operands.len(), 3);
    assert_eq!(find("min.f32", 4).unwrap().form().operands.len(), 4);
    assert_eq!(find("bar.red.popc.u32", 3).unwrap().form().operands.len(), 3);
    assert_eq!(find("bar.red.popc.u32", 4).unwrap().form().operands.len(), 4);
    assert!(
        find("ld.global.L2::cache_hint.u32", 3).is_ok() && find("ld.global.L2::cache_hint.u32", 2).is_err()
    );
}

#[test]
fn ignored_predicate_types() {
    for mnemonic in ["setp.lt.pred.s32", "setp.lt.s32.pred", "setp.pred.lt.pred.s32"] {
        assert_eq!(find(mnemonic, 3), find("setp.lt.s32", 3));
    }
    assert_eq!(find("set.lt.u32.pred.s32", 3), find("set.lt.u32.s32", 3));
    assert!(find("selp.pred.b32", 4).is_err());
}

#[test]
fn says_what_ptxas_says() {
    let cases: &[(&str, usize, &[&str])] = &[
        ("foo.u32", 2, &["Not a name of any known instruction: 'foo'"]),
        ("setp.lt.and.s32", 3, &["Arguments mismatch for instruction 'setp'"]),
        ("setp.lt.s32", 4, &["Boolean operation is required for instruction 'setp'"]),
        ("setp.lt.lt.s32", 3, &["Multiple comparisons set"]),
        (
            "setp.foo.s32",
            3,
            &["Unknown modifier '.foo'", "Comparison modifier required for instruction 'setp'"],
        ),
        ("setp.lt.v4.s32", 3, &["Vector qualifier is not allowed for instruction 'setp'"]),
        ("add.ftz.ftz.f32", 3, &["Duplicate .ftz modifier"]),
        ("add.f99", 3, &["Unknown modifier '.f99'", "Unexpected instruction types specified for 'add'"]),
        ("setp.s32", 3, &["Comparison modifier required for instruction 'setp'"]),
        ("fma.f32", 4, &["Rounding modifier required for instruction 'fma'"]),
        ("fma.rn.rz.f32", 4, &["Multiple rounding modifiers specified"]),
        ("set.lo.u32.f32", 3, &["Mismatch between instruction type and comparison qualifier"]),
        ("set.hi.u16.f16", 3, &["Mismatch between instruction type and comparison qualifier"]),
        ("setp.lt.b32", 3, &["Mismatch between instruction type and comparison qualifier"]),
        ("mul.s32", 3, &["Unexpected instruction types specified for 'mul'"]),
        ("selp.f16", 4, &["Unexpected instruction types specified for 'selp'"]),
        ("add.noftz.f32", 3, &["Illegal modifier '.noftz' for instruction 'add'"]),
        ("slct.ftz.f32.s32", 4, &["Illegal modifier '.ftz' for instruction 'slct'"]),
        ("setp.eq.ftz.f64", 3, &["Illegal modifier '.ftz' for instruction 'setp'"]),
        ("cvt.f16.f32", 2, &["Rounding modifier required for instruction 'cvt'"]),
        ("selp.rn.b32", 4, &["Illegal rounding modifier for instruction 'selp'"]),
        ("add.sat.sat.s32", 3, &[]),
    ];
    for (mnemonic, operands, expected) in cases {
        assert_eq!(messages(mnemonic, *operands), *expected, "{mnemonic}");
    }
}

#[test]
fn gates_come_in_ptxas_order() {
    let gates = |mnemonic: &str, operands, version: &str, target: &str| -> Vec<String> {
        let selected = find(mnemonic, operands).unwrap();
        let (version, target) = (Version::parse(version).unwrap(), Target::parse(target).unwrap());
        let gates = selected.form().gates(&selected.picks);
        gates.iter().filter(|g| !g.permits(version, target)).map(|g| g.message(version, target)).collect()
    };
    assert_eq!(
        gates("fma.rn.f32.bf16", 4, "8.5", "sm_90"),
        [
            "Feature 'fma.f32.bf16' requires .target sm_100 or higher",
            "Feature 'fma.f32.bf16' requires PTX ISA .version 8.6 or later",
        ]
    );
    assert_eq!(
        gates("setp.lt.f16", 3, "4.1", "sm_50"),
        [
            "Feature 'f16 arithemetic and compare instructions' requires .target sm_53 or higher",
            "Feature 'f16 arithemetic and compare instructions' requires PTX ISA .version 4.2 or later",
        ]
    );
    assert_eq!(
        gates("set.eq.u32.f16x2", 3, "6.4", "sm_53"),
        [
            "Feature 'half precision floating point set instruction with integer result' requires PTX ISA .version 6.5 or later"
        ]
    );
    assert!(gates("set.eq.f16x2.f16x2", 3, "4.2", "sm_53").is_empty());
    assert_eq!(
        gates("redux.sync.min.f32", 3, "9.5", "sm_121"),
        ["Instruction 'redux.f32' not supported on .target 'sm_121'"]
    );
    assert!(gates("redux.sync.min.f32", 3, "8.6", "sm_103a").is_empty());
    assert!(
        !gates("shfl.up.b32", 4, "6.4", "sm_70").is_empty()
            && gates("shfl.up.b32", 4, "6.3", "sm_70").is_empty()
    );
}

#[test]
fn targets() {
    let target = |name| Target::parse(name).unwrap();
    assert!(target("sm_103a").has(target("sm_100f")) && target("sm_103f").has(target("sm_100f")));
    assert!(!target("sm_103").has(target("sm_100f")) && !target("sm_103a").has(target("sm_100a")));
    assert!(!target("sm_120a").has(target("sm_100f")) && !target("sm_90a").has(target("sm_100f")));
    assert!(target("sm_90a").has(target("sm_80")) && !target("sm_80").has(target("sm_90")));
    for wrong in ["sm_73", "sm_80a", "sm_", "90", "sm_090", "sm_+90"] {
        assert_eq!(Target::parse(wrong), None, "{wrong}");
    }
    for target in Target::all() {
        assert_eq!(Target::parse(&target.to_string()), Some(target));
    }
    assert_eq!(Version::all().last(), Some(Version::MAX));
}

#[test]
fn names_of_tokens_are_unambiguous() {
    for form in FORMS {
        for choice in form.slots.iter().flat_map(|slot| slot.choices) {
            assert_eq!(Token::from_name(choice.token.name()), Some(choice.token));
            assert!(choice.gates.iter().all(|gate| gate.stage <= Stage::Late));
        }
    }
    assert!(forms("").is_empty() && forms("nope").is_empty() && !forms("add").is_empty());
}
