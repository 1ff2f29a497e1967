//! The modifiers that may follow those of an unfinished instruction, for editors.

use crate::placement::{Placed, place};
use crate::spelling::Written;
use crate::{Condition, Consequence, Form, FormId, Gate, Picks, Slot, Target, Token, Version};

/// A modifier that may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// The modifier.
    pub token: Token,
    /// The first row that takes it.
    pub form: FormId,
    /// Its place among that row's slots, which is the order in which the manual writes them.
    pub slot: usize,
    /// Whether every row that takes it needs it, or another one in its place.
    pub is_required: bool,
}

/// The modifiers that may follow `modifiers` of `opcode` in a module of this version and target, in the order of the
/// slots that they fill. Each leads to an instruction as far as slots, rules and gates show; a rule on modifiers that are
/// not written yet forbids nothing.
pub fn next_modifiers(opcode: &str, modifiers: &[&str], version: Version, target: Target) -> Vec<Next> {
    let mut found: Vec<Next> = Vec::new();
    let forms = crate::forms(opcode);
    for form in forms {
        let Some(id) = crate::form_id(form) else { continue };
        let Some(placed) = fitting(id, opcode, modifiers) else { continue };
        for (index, slot) in open_slots(form, &placed, modifiers.len()) {
            for choice in slot.choices {
                let picks = with(&placed, choice.token);
                let rest = |other: usize| other != index && is_open(form, &placed, other);
                let permits = |gates: &[Gate]| gates.iter().all(|gate| gate.permits(version, target));
                if !permits(form.gates) || !permits(choice.gates) || !obeys(form, &picks, &rest, &permits) {
                    continue;
                }
                let is_required = !slot.optional;
                match found.iter_mut().find(|next| next.token == choice.token) {
                    Some(next) => next.is_required &= is_required,
                    None => found.push(Next { token: choice.token, form: id, slot: index, is_required }),
                }
            }
        }
    }
    found.sort_by_key(|next| next.slot);
    found
}

/// The modifiers in the slots of a row, if the row takes all of them.
fn fitting(id: FormId, opcode: &str, modifiers: &[&str]) -> Option<Placed> {
    let form = id.form();
    // A name is read as one only when it is complete.
    let head = form.head.min(modifiers.len());
    let is_choice = |slot: &Slot, word: &str| slot.choices.iter().any(|choice| choice.token.name() == word);
    if !form.slots[..head].iter().zip(modifiers).all(|(slot, word)| is_choice(slot, word)) {
        return None;
    }
    let written: Vec<Written> = match head < form.head {
        true => modifiers.iter().filter_map(|word| Token::from_name(word)).map(Written::Token).collect(),
        false => Written::read_all(opcode, modifiers),
    };
    if written.len() < modifiers.len() || written.contains(&Written::Unknown) {
        return None;
    }
    if written.is_empty() {
        return Some(Placed { slots: vec![None; form.slots.len()], ..Placed::default() });
    }
    let placed = place(id, &written);
    let types_fit = placed.types.len() <= form.type_slots().count()
        && form.type_slots().zip(&placed.types).all(|(slot, &ty)| slot.choice(Token::Type(ty)).is_some());
    (placed.repeated.is_empty() && placed.illegal.is_empty() && types_fit).then_some(placed)
}

/// Is this slot still to be filled? Of slots for types, only the next one is.
fn is_open(form: &Form, placed: &Placed, index: usize) -> bool {
    let slot = &form.slots[index];
    if slot.is_type() {
        let before = form.slots[..index].iter().filter(|slot| slot.is_type()).count();
        return before >= placed.types.len();
    }
    placed.slots[index].is_none()
}

fn open_slots<'f>(
    form: &'f Form,
    placed: &'f Placed,
    written: usize,
) -> impl Iterator<Item = (usize, &'static Slot)> + 'f {
    let is_next_type =
        |index: usize| form.slots[..index].iter().filter(|slot| slot.is_type()).count() == placed.types.len();
    form.slots.iter().enumerate().filter(move |&(index, slot)| {
        let in_order = written >= form.head || index == written;
        in_order && is_open(form, placed, index) && (!slot.is_type() || is_next_type(index))
    })
}

/// What is written, and one modifier more.
fn with(placed: &Placed, token: Token) -> Picks {
    let mut types = placed.types.clone();
    let mut mods: Vec<_> = placed.slots.iter().flatten().copied().collect();
    match token {
        Token::Type(ty) => types.push(ty),
        Token::Mod(modifier) => mods.push(modifier),
    }
    Picks::new(&types, &mods)
}

/// Can what is still to be written obey the rules of the row?
fn obeys(
    form: &Form,
    picks: &Picks,
    is_open: &dyn Fn(usize) -> bool,
    permits: &dyn Fn(&[Gate]) -> bool,
) -> bool {
    let may_come = |modifier| {
        let mut slots = form.slots.iter().enumerate().filter(|(index, _)| is_open(*index));
        slots.any(|(_, slot)| slot.choice(Token::Mod(modifier)).is_some())
    };
    // Whether a condition holds; nothing as long as that is not decided.
    let decided = |condition: &Condition| match *condition {
        Condition::TypeIn(i, _) if usize::from(i) >= picks.types().len() => None,
        Condition::Has(mods) | Condition::HasNot(mods)
            if !mods.iter().any(|&m| picks.has(m)) && mods.iter().any(|&m| may_come(m)) =>
        {
            None
        }
        _ => Some(condition.holds(picks)),
    };
    form.rules.iter().all(|rule| {
        let applies = rule.when.iter().all(|condition| decided(condition) == Some(true));
        match rule.then {
            Consequence::Needs(needs, _) => {
                !(applies && needs.iter().any(|condition| decided(condition) == Some(false)))
            }
            Consequence::Gates(gates) => !applies || permits(gates),
            Consequence::Default(..) => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enumerate::{Spelling, spellings};

    const NEWEST: Version = Version::MAX;

    fn next(opcode: &str, modifiers: &[&str], target: &str) -> Vec<&'static str> {
        let target = Target::parse(target).expect("a target");
        next_modifiers(opcode, modifiers, NEWEST, target).iter().map(|next| next.token.name()).collect()
    }

    #[test]
    fn every_modifier_of_a_legal_instruction_is_offered() {
        for (index, form) in crate::FORMS.iter().enumerate() {
            let all: Vec<Spelling> =
                spellings(FormId(index as u16)).filter(Spelling::is_legal).take(2000).collect();
            for spelling in all.iter().step_by(all.len() / 8 + 1) {
                let gates = form.gates(&spelling.picks);
                let Some((version, target)) = crate::since(&gates) else { continue };
                for written in 0..spelling.modifiers.len() {
                    let (before, word) = (&spelling.modifiers[..written], spelling.modifiers[written]);
                    let offered = next_modifiers(form.opcode.name(), before, version, target);
                    assert!(
                        offered.iter().any(|next| next.token.name() == word),
                        "{}: no .{word} after {before:?}",
                        spelling.mnemonic()
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_illegal_is_not_offered() {
        assert_eq!(next("bra", &["uni"], "sm_90"), Vec::<&str>::new());
        let add = next("add", &["rn", "ftz"], "sm_90");
        assert!(
            add.contains(&"f32") && !add.contains(&"u32") && !add.contains(&"rz") && !add.contains(&"rn")
        );
        assert_eq!(next("mul", &["lo", "u32"], "sm_90"), Vec::<&str>::new());
        assert!(next("add", &[], "sm_100").contains(&"f32x2"));
        assert!(!next("add", &[], "sm_90").contains(&"f32x2"));
        assert_eq!(next("frobnicate", &[], "sm_90"), Vec::<&str>::new());
        assert_eq!(next("add", &["frobnicate"], "sm_90"), Vec::<&str>::new());
    }
}
