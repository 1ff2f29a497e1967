//! The syntax of the SPA 5.3 text, form by form, and control information between text and files.

use sass::binary::{self, Content, Pair};
use sass::{Arch, Field, Instruction, Style, parse};

fn sm_53() -> Arch {
    Arch::parse("sm_53").unwrap()
}

/// Each form of the SPA 5.3 text, without and with `.bop`, in its own spelling, and in nvdisasm's.
const FORMS: &[(&str, &str)] = &[
    ("HSETP2.GT P0, P1, -R0.H1_H0, R1.F32;", "HSETP2.GT.AND P0, P1, -R0, R1.F32, PT;"),
    ("HSETP2.LE P3, P1, -R0.F32, R1.H0_H0;", "HSETP2.LE.AND P3, P1, -R0.F32, R1.H0_H0, PT;"),
    ("HSETP2.GT.H_AND.AND P0, PT, -R0.H1_H0, R1.F32, P2;", "HSETP2.GT.H_AND.AND P0, PT, -R0, R1.F32, P2;"),
    (
        "@!P3 HSETP2.NUM.FTZ PT, PT, |R1|, -|RZ.H1_H1|",
        "@!P3 HSETP2.NUM.FTZ.AND PT, PT, |R1|, -|RZ.H1_H1|, PT;",
    ),
    ("@P0 HSETP2.NE P0, PT, R1, -c[0x2][0x14]", "@P0 HSETP2.NE.AND P0, PT, R1, -c[0x2][0x14], PT;"),
    (
        "HSETP2.F.H_AND.XOR P0, P1, R1.F32, |c[2][20]|, !P6",
        "HSETP2.F.H_AND.XOR P0, P1, R1.F32, |c[0x2][0x14]|, !P6;",
    ),
    // The immediates follow Ra, the high half first. 19.5 needs a bit more than the half has.
    ("HSETP2.T P0, P1, R1.H1_H1, {-1.0}, {|-19.5|}", "HSETP2.T.AND P0, P1, R1.H1_H1, -1, 20, PT;"),
    ("HSETP2.LTU.OR P0, P1, R1, {-|2|}, {0}, !P2", "HSETP2.LTU.OR P0, P1, R1, -2, 0, !P2;"),
    ("hsetp2.equ.or p0, p1, r1, 1.5, -1.5, p2", "HSETP2.EQU.OR P0, P1, R1, 1.5, -1.5, P2;"),
    ("HSETP2.LT /* a */ P0, P1, R1, R2 // b", "HSETP2.LT.AND P0, P1, R1, R2, PT;"),
];

#[test]
fn the_forms_of_the_spa_text_are_read() {
    for (text, printed) in FORMS {
        let parsed = parse(sm_53(), text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!(parsed.instruction.to_string(), *printed, "{text}");
        // The full style says the same.
        let full = parsed.instruction.text(Style::Full);
        assert_eq!(parse(sm_53(), &full).unwrap().instruction, parsed.instruction, "{full}");
    }
}

#[test]
fn control_fields_go_through_a_group_and_back() {
    let texts = [
        "HSETP2.LT.AND P0, P1, R1.reuse, R2, PT &req={5,0} &rd=0x1 &wr=0x2 ?trans4;",
        "HSETP2.GE.AND P2, PT, R3, {-1.0}, {|-19.5|}, PT &req={3} ?WAIT12_END_GROUP;",
        "HSETP2.NE.OR P2, PT, R3, -c[0x2][0x14], !P0 &rd3 &wr0;",
        "HSETP2.T.XOR PT, P4, R3, R4.reuse.H1_H1, P0 ?WAIT1_END_GROUP;",
        "HSETP2.F.AND P2, P2, R2, R0, PT ?sched0;",
    ];
    for arch in Arch::ALL {
        let texts: Vec<&str> =
            texts.into_iter().filter(|text| arch.number() < 100 || !text.contains("c[")).collect();
        let trans = |text: &str| {
            // From Volta on operands are reused only where the stall does not end a group.
            let text = if arch.word_bits() == 128 {
                text.replace("?WAIT1_END_GROUP", "?trans1")
            } else {
                text.into()
            };
            parse(arch, &text).unwrap_or_else(|error| panic!("{arch} {text}: {error:?}")).instruction
        };
        let instructions: Vec<Instruction> = texts.iter().map(|text| trans(text)).collect();
        let bytes = binary::assemble(arch, &instructions).unwrap();
        let groups = if arch.word_bits() == 64 { texts.len().div_ceil(3) * 32 } else { texts.len() * 16 };
        assert_eq!(bytes.len(), groups, "{arch}");
        let back: Vec<Instruction> = binary::raw(arch, &bytes)
            .into_iter()
            .filter_map(|line| {
                if let Content::Hsetp2(instruction) = line.content { Some(instruction) } else { None }
            })
            .collect();
        assert_eq!(back, instructions, "{arch}");
        // And through the text that shows them.
        for instruction in back {
            let full = instruction.text(Style::Full);
            assert_eq!(parse(arch, &full).unwrap().instruction, instruction, "{arch} {full}");
        }
    }
}

#[test]
fn the_control_word_of_maxwell_is_nvdisasms() {
    // nvdisasm 12.8 lists these words as below; the first control word pairs its first two instructions.
    let words: [u64; 8] = [
        0x001f_8400_fc00_07f0,
        0x5d20_0000_0007_0001,
        0x5d20_0000_0007_0106,
        0x5d20_0000_0007_020b,
        0x001f_8000_fc06_07e0,
        0x5d20_0000_0007_0001,
        0x50b0_0000_0007_0f00,
        0x5d20_0000_0007_020b,
    ];
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    let lines = binary::raw(sm_53(), &bytes);
    let texts: Vec<Option<String>> = lines
        .iter()
        .map(|line| {
            if let Content::Hsetp2(instruction) = line.content { Some(instruction.to_string()) } else { None }
        })
        .collect();
    assert_eq!(lines[0].content, Content::Control);
    assert_eq!((lines[1].pair, lines[2].pair, lines[3].pair), (Pair::First, Pair::Second, Pair::None));
    assert_eq!(texts[1].as_deref(), Some("HSETP2.F.AND P0, P1, R0, R0, P0 ;"));
    assert_eq!(texts[2].as_deref(), Some("HSETP2.F.AND P0, P6, R1, R0, P0;"));
    assert_eq!(texts[3].as_deref(), Some("HSETP2.F.AND P1, P3, R2, R0, P0 ;"));
    // Reuse of both operands.
    assert_eq!(texts[5].as_deref(), Some("HSETP2.F.AND P0, P1, R0.reuse, R0.reuse, P0;"));
    assert_eq!(texts[6], None);
}

#[test]
fn bits_without_meaning_are_reported_and_change_nothing() {
    let (plain, set) = (0x5d23_b180_0027_0107, 0x5d27_b187_0027_0187);
    let [plain, set] = [plain, set].map(|word| Instruction::decode(sm_53(), word).unwrap());
    assert_eq!(plain, set);
    assert_eq!(plain.ignored_bits(), 1 << 7 | 7 << 32 | 1 << 50);
    assert_eq!(set.encode(), Ok(0x5d23_b180_0027_0107));
}

#[test]
fn slips_get_help_and_oddities_a_warning() {
    for (text, help) in [
        ("HSETP2.LTE P0, P1, R0, R1", "did you mean .LE?"),
        ("HSETP2.GTE P0, P1, R0, R1", "did you mean .GE?"),
        ("HSETP2.LT.FTX P0, P1, R0, R1", "did you mean .FTZ?"),
        ("HSETP2.NMU P0, P1, R0, R1", "did you mean .NUM?"),
        ("HSETP2.LT.HAND P0, P1, R0, R1", "did you mean .H_AND?"),
    ] {
        assert_eq!(parse(sm_53(), text).unwrap_err().help.as_deref(), Some(help), "{text}");
    }
    let warnings = |text: &str| parse(sm_53(), text).unwrap().warnings;
    assert!(warnings("HSETP2.LT P1, P1, R0, R1")[0].message.contains("same predicate"));
    assert!(warnings("HSETP2.LT PT, PT, R0, R1").is_empty());
    for rounded in ["1.0001, 1", "1e9999, 1", "1, -1e-9999", "{|-19.5|}, 0.0"] {
        let warnings = warnings(&format!("HSETP2.LT P0, P1, R0, {rounded}"));
        assert!(warnings.len() == 1 && warnings[0].message.contains("rounded"), "{rounded}: {warnings:?}");
    }
    assert!(warnings("HSETP2.LT P0, P1, R0, 0e9, -INF").is_empty());
}

#[test]
fn groups_that_hsetp2_cannot_have_are_refused() {
    let mut instruction = parse(sm_53(), "HSETP2.LT P0, P1, R0, R1").unwrap().instruction;
    assert!(instruction.set_slot(0x7e0 | 8 << 17, 0).is_err(), "reuse bit 3");
    instruction.set(Field::Reuse, 0);
    assert!(instruction.encode().is_ok());
}
