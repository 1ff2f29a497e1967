//! The instructions that the assembler is asked about: what the table accepts, and what is near it.

use isa::enumerate::{Spelling, instruction, spelling, spellings};
use isa::{FormId, Presence, Slot, Token, Type};
use std::collections::BTreeSet;

/// One instruction.
pub struct Line {
    pub modifiers: Vec<String>,
    pub operands: usize,
    pub text: String,
}

/// Modifiers of other instructions that are tried on every one.
const STRANGERS: &[&str] = &[
    "sat",
    "ftz",
    "rn",
    "rz",
    "rm",
    "rp",
    "rni",
    "rzi",
    "approx",
    "full",
    "NaN",
    "relu",
    "cc",
    "hi",
    "lo",
    "wide",
    "lt",
    "hs",
    "and",
    "v2",
    "v4",
    "global",
    "shared",
    "noftz",
    "satfinite",
    "uni",
    "sync",
    "abs",
    "xorsign",
    "volatile",
    "to",
];

/// Instructions with this opcode, without repeats.
pub fn of(opcode: &str, limit: usize, legal: bool) -> Vec<Line> {
    let mut seen = BTreeSet::new();
    let mut lines = Vec::new();
    let mut add = |spelling: &Spelling, left_out: usize| {
        let operands = spelling.form.form().operands_with(&spelling.picks).count() - left_out;
        // Another row may be meant after a mutation: then its operands are the right ones.
        let text = match isa::select(opcode, &spelling.modifiers, operands) {
            Ok(selected) if selected.id != spelling.form => {
                let meant = Spelling { form: selected.id, picks: selected.picks, ..spelling.clone() };
                let left_out =
                    selected.form().operands_with(&selected.picks).count().saturating_sub(operands);
                instruction(&meant, left_out)
            }
            _ => instruction(spelling, left_out),
        };
        if seen.insert(text.clone()) {
            let modifiers = spelling.modifiers.iter().map(|m| m.to_string()).collect();
            lines.push(Line { modifiers, operands, text });
        }
    };
    for (index, form) in isa::FORMS.iter().enumerate().filter(|(_, form)| form.opcode.name() == opcode) {
        let id = FormId(index as u16);
        let optional = form.operands.iter().filter(|operand| operand.presence == Presence::Optional).count();
        let total = spellings(id).count();
        for (number, spelling) in spellings(id).step_by(total.div_ceil(limit).max(1)).enumerate() {
            if legal && !spelling.is_legal() {
                continue;
            }
            add(&spelling, optional);
            for left_out in 0..optional {
                if number < 200 {
                    add(&spelling, left_out);
                }
            }
        }
        if !legal {
            for mutated in mutations(id) {
                add(&mutated, optional);
            }
        }
    }
    lines
}

/// The row's plainest spellings with one thing changed: another type, a modifier more, a modifier less.
fn mutations(id: FormId) -> Vec<Spelling> {
    let form = id.form();
    let required: Vec<&Slot> = form.slots.iter().filter(|slot| !slot.optional).collect();
    let plain: Vec<Token> = required.iter().map(|slot| slot.choices[0].token).collect();
    let mut all = Vec::new();
    let strangers = STRANGERS.iter().filter_map(|name| Token::from_name(name));
    let relatives = isa::forms(form.opcode.name())
        .iter()
        .flat_map(|f| f.slots)
        .flat_map(|slot| slot.choices)
        .map(|c| c.token);
    let extra: BTreeSet<&str> = strangers.chain(relatives).map(Token::name).collect();
    for (place, slot) in required.iter().enumerate() {
        // Each choice of this slot, with the first of all others.
        for choice in slot.choices {
            let mut tokens = plain.clone();
            tokens[place] = choice.token;
            for &name in &extra {
                if let Some(token @ Token::Mod(_)) = Token::from_name(name) {
                    let mut more = tokens.clone();
                    more.insert(0, token);
                    all.push(spelling(id, &more));
                }
            }
        }
        let mut less = plain.clone();
        less.remove(place);
        all.push(spelling(id, &less));
        if slot.is_type() {
            for &ty in Type::ALL {
                let mut tokens = plain.clone();
                tokens[place] = Token::Type(ty);
                all.push(spelling(id, &tokens));
                // With every other type slot changed along.
                for (other, _) in required.iter().enumerate().filter(|&(o, s)| o != place && s.is_type()) {
                    for &second in Type::ALL {
                        tokens[other] = Token::Type(second);
                        all.push(spelling(id, &tokens));
                    }
                }
            }
        }
    }
    all
}
