//! The slots whose values step evenly from lane to lane.
//!
//! One number stands for the values of all lanes: that of the first lane. The steps are known when a loop is compiled.
//! Such values are computed once, by scalar instructions, and accesses at such addresses need one check for all lanes.
//!
//! A slot that the loop writes is one of them if all its definitions make the same steps, and no lane elsewhere needs the
//! slot while others write it.

use std::collections::BTreeMap;

use ir::Slot;

use crate::loops::{Loop, operations};
use crate::operation::{Access, Bits, Operation};

/// How the values of a slot step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// From one lane of a group of 16 to the next.
    pub step: i64,
    /// From the first lane of the first group of a call to the first lane of the second one.
    pub span: i64,
}

impl Form {
    /// The same in all lanes.
    pub const UNIFORM: Form = Form { step: 0, span: 0 };

    fn map(self, other: Form, f: impl Fn(i64, i64) -> i64) -> Form {
        Form { step: f(self.step, other.step), span: f(self.span, other.span) }
    }

    /// Of values of 32 bits, if they are not wide.
    fn of_width(self, wide: bool) -> Form {
        if wide { self } else { Form { step: self.step as i32 as i64, span: self.span as i32 as i64 } }
    }

    /// The value of a lane, from that of the first one.
    pub fn offset(self, part: usize, lane: usize) -> i64 {
        self.span.wrapping_mul(part as i64).wrapping_add(self.step.wrapping_mul(lane as i64))
    }

    /// Those elements of all lanes with one number follow each other in memory.
    pub(crate) fn is_contiguous(self, access: &Access) -> bool {
        self.step == i64::from(access.bytes)
    }

    /// So do those of an access with several elements for each lane.
    pub(crate) fn is_interleaved(self, access: &Access) -> bool {
        let step = 4 * i64::from(access.count);
        access.bytes == 4 && matches!(access.count, 2 | 4) && self == Form { step, span: 16 * step }
    }

    /// The least and the greatest offset of the lanes of `parts` groups. `None` if a step is large.
    pub fn bounds(self, parts: usize) -> Option<(i64, i64)> {
        const LARGE: u64 = 1 << 24;
        if self.step.unsigned_abs() >= LARGE || self.span.unsigned_abs() >= LARGE {
            return None;
        }
        let ends = (0..parts).flat_map(|part| [self.offset(part, 0), self.offset(part, 15)]);
        Some(ends.fold((0, 0), |(least, greatest), end| (least.min(end), greatest.max(end))))
    }
}

/// After so many rounds over the operations only literals count as even.
const MOST_ROUNDS: u32 = 32;

/// What is known of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Even(Form),
    Varies,
}

/// How a slot steps at the start.
fn form_at_entry(source: &Loop, slot: Slot, entry: impl Fn(Slot) -> Option<Form>) -> Option<Form> {
    if source.literals.contains_key(&slot) {
        return Some(Form::UNIFORM);
    }
    let is_predicate = source.predicates.iter().any(|value| value.slot == slot);
    // What is the same in all lanes has no bits that extend it.
    let is_form = |form: &Form| !source.short.contains(&slot) || *form == Form::UNIFORM;
    entry(slot).filter(|form| !is_predicate && is_form(form))
}

/// The slots that step evenly at the start and that nothing writes.
pub(crate) fn at_entry(source: &Loop, entry: impl Fn(Slot) -> Option<Form>) -> BTreeMap<Slot, Form> {
    let defined: Vec<Slot> = operations(&source.bodies).flat_map(Operation::defs).collect();
    let uses = operations(&source.bodies).flat_map(Operation::uses).filter(|slot| !defined.contains(slot));
    uses.filter_map(|slot| Some((slot, form_at_entry(source, slot, &entry)?))).collect()
}

/// The slots of a loop that step evenly wherever it reads them. `entry`: how a slot steps at the start of the loop.
pub(crate) fn forms(source: &Loop, entry: impl Fn(Slot) -> Option<Form>) -> BTreeMap<Slot, Form> {
    let mut known: BTreeMap<Slot, Known> = BTreeMap::new();
    let defined: Vec<Slot> = operations(&source.bodies).flat_map(Operation::defs).collect();
    let at_entry = |slot: Slot| form_at_entry(source, slot, &entry).map_or(Known::Varies, Known::Even);
    for slot in operations(&source.bodies).flat_map(Operation::uses) {
        if !defined.contains(&slot) || source.live_in.contains(&slot) {
            known.insert(slot, at_entry(slot));
        }
    }
    for body in &source.bodies {
        for slot in body.operations.iter().flat_map(Operation::defs) {
            if body.needed.contains(&slot) {
                known.insert(slot, Known::Varies);
            }
        }
    }
    // What is known of a slot changes twice at the most. Chains against the order of the operations take one round for each
    // link.
    for round in 0.. {
        if round == MOST_ROUNDS {
            return source.literals.keys().map(|&slot| (slot, Form::UNIFORM)).collect();
        }
        let mut changed = false;
        for operation in operations(&source.bodies) {
            let result = result(source, operation, |slot| known.get(&slot).copied());
            for slot in operation.defs() {
                let result = if source.short.contains(&slot) { Some(Known::Varies) } else { result };
                let joined = match (known.get(&slot), result) {
                    (_, None) => continue,
                    (None, Some(result)) => result,
                    (Some(&old), Some(result)) if old == result => continue,
                    (Some(Known::Varies), _) => continue,
                    _ => Known::Varies,
                };
                known.insert(slot, joined);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let even = |(slot, known)| match known {
        Known::Even(form) => Some((slot, form)),
        Known::Varies => None,
    };
    known.into_iter().filter_map(even).collect()
}

/// How the results of an operation step. `None`: nothing is known of a source yet.
fn result(source: &Loop, operation: &Operation, known: impl Fn(Slot) -> Option<Known>) -> Option<Known> {
    let mut forms = Vec::new();
    for slot in operation.uses() {
        match known(slot)? {
            Known::Even(form) => forms.push(form),
            Known::Varies => return Some(Known::Varies),
        }
    }
    let literal = |slot: Slot| source.literals.get(&slot).map(|&value| value as i64);
    let all_uniform = forms.iter().all(|form| *form == Form::UNIFORM);
    // A product steps evenly if one factor is a literal.
    let product = |[a, b]: [Slot; 2], extend: fn(i64) -> i64| match (literal(a), literal(b)) {
        _ if forms[..2] == [Form::UNIFORM; 2] => Some(Form::UNIFORM),
        (_, Some(factor)) => Some(forms[0].map(forms[0], |step, _| step.wrapping_mul(extend(factor)))),
        (Some(factor), _) => Some(forms[1].map(forms[1], |step, _| step.wrapping_mul(extend(factor)))),
        _ => None,
    };
    let form = match operation {
        // All lanes load the same elements, and compute the same numbers.
        Operation::Load { access, .. } if all_uniform && !source.is_local(access) => Some(Form::UNIFORM),
        Operation::Float { op, wide, .. } if all_uniform && op.is_scalar(*wide) => Some(Form::UNIFORM),
        Operation::Offset { wide, .. } => Some(forms[0].of_width(*wide)),
        Operation::Widen { .. } => Some(forms[0]),
        Operation::Narrow { .. } => Some(forms[0].of_width(false)),
        Operation::MulWide { signed, src, addend, .. } => {
            let extend = if *signed { |factor| factor as i32 as i64 } else { |factor| factor as u32 as i64 };
            let addend = addend.map_or(Form::UNIFORM, |_| forms[2]);
            product(*src, extend).map(|product| product.map(addend, i64::wrapping_add))
        }
        Operation::Bits { op, wide, src, .. } => match op {
            Bits::Copy => Some(forms[0]),
            Bits::Add => Some(forms[0].map(forms[1], i64::wrapping_add)),
            Bits::Sub => Some(forms[0].map(forms[1], i64::wrapping_sub)),
            Bits::Neg => Some(Form::UNIFORM.map(forms[0], i64::wrapping_sub)),
            Bits::Mul => product([src[0], src[1]], |factor| factor),
            Bits::Mad => product([src[0], src[1]], |factor| factor)
                .map(|product| product.map(forms[2], i64::wrapping_add)),
            Bits::Shl if let Some(distance) = literal(src[1]) => {
                let bits = if *wide { 64 } else { 32 };
                (distance < bits).then(|| forms[0].map(Form::UNIFORM, |step, _| step << distance))
            }
            Bits::Shl
            | Bits::ShrSigned
            | Bits::ShrUnsigned
            | Bits::And
            | Bits::Or
            | Bits::Xor
            | Bits::Not
                if all_uniform =>
            {
                Some(Form::UNIFORM)
            }
            _ => None,
        }
        .map(|form| form.of_width(*wide)),
        _ => None,
    };
    Some(form.map_or(Known::Varies, Known::Even))
}

#[cfg(test)]
mod tests {
    use super::Form;

    #[test]
    fn steps_that_would_overflow_have_no_bounds() {
        let bounds = |step, span| Form { step, span }.bounds(2);
        assert_eq!(bounds(-4, 64), Some((-60, 64)));
        assert_eq!(bounds(4, 64), Some((0, 124)));
        assert_eq!(bounds(i64::MIN, 0), None);
        assert_eq!(bounds(0, 1 << 24), None);
    }
}
