//! Video instructions with selectors and signs, which spellings do not have.

use super::values::Random;
use super::{all_spellings, check_spelling};
use isa::enumerate::Spelling;
use isa::{Elements, Opcode, Selectable, Selector};
use lanes::Signature;

/// A selector of an operand, or none.
fn selector(selectable: Selectable, random: &mut Random) -> Option<Selector> {
    let texts =
        ["h0", "h1", "b0", "b1", "b2", "b3", "h10", "h23", "h31", "b3210", "b7250", "b0041", "b20", "b321"];
    let allowed: Vec<Selector> =
        texts.iter().filter_map(|text| Selector::parse(text)).filter(|&s| selectable.allows(s)).collect();
    allowed.get(random.below(allowed.len() + 1)).copied()
}

#[test]
fn parts_of_operands() {
    let mut random = Random::new(5);
    let video: Vec<Spelling> = all_spellings()
        .filter(|spelling| {
            spelling.form.form().operands.iter().any(|spec| matches!(spec.elements, Elements::Selected(_)))
        })
        .collect();
    assert!(video.len() > 1000, "{}", video.len());
    let mut failures = Vec::new();
    for spelling in video.iter().step_by(3) {
        let form = spelling.form.form();
        let mut spelling = spelling.clone();
        for (i, spec) in form.operands.iter().enumerate().take(4) {
            if let Elements::Selected(selectable) = spec.elements {
                spelling.picks.parts.selectors[i] = selector(selectable, &mut random);
            }
        }
        if form.opcode == Opcode::Vmad && !spelling.modifiers.contains(&"po") {
            spelling.picks.parts.negated_product = random.below(2) == 0;
            spelling.picks.parts.negated_addend = random.below(2) == 0;
        }
        let signature = Signature::new(form, &spelling.picks).expect("words");
        let parts = spelling.picks.parts;
        failures
            .extend(check_spelling(&spelling, &signature).err().map(|error| format!("{error} {parts:?}")));
    }
    assert!(failures.is_empty(), "{} differ:\n{failures:#?}", failures.len());
}
