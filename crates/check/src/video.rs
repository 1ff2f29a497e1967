//! Selectors and signs on the operands of video instructions (PTX ISA, "Video Instructions").

use diag::{Code, Span};
use isa::{Elements, Mod, Parts, Selectable, Selector};

use crate::module::{Operand, RegId};
use crate::order::Stage;
use crate::place::{Complaints, Place, Verdict, complain};
use crate::value::{Lowered, Value};

/// The operand after the sources that may have selectors.
const SOURCE_C: usize = 3;

/// The selectors and signs of the operands of an instruction.
pub(crate) fn parts(operands: &[Lowered]) -> Parts {
    let negated = |index: usize| operands.get(index).is_some_and(|operand| operand.negated);
    let selector = |index: usize| match operands.get(index).map(|operand| &operand.value) {
        Some(Value::Part(_, _, selector)) => selector.filter(|selector| !selector.is_ignored()),
        _ => None,
    };
    Parts {
        selectors: [0, 1, 2, SOURCE_C].map(selector),
        negated_product: negated(1) != negated(2),
        negated_addend: negated(SOURCE_C),
    }
}

fn selectable(place: &Place) -> Option<Selectable> {
    match place.spec.elements {
        Elements::Selected(selectable) => Some(selectable),
        _ => None,
    }
}

/// The selectors that the sources of the instruction take.
fn of_instruction(place: &Place) -> Option<Selectable> {
    place.context.form.operands.iter().find_map(|spec| match spec.elements {
        Elements::Selected(selectable @ (Selectable::Part | Selectable::Halves | Selectable::Bytes)) => {
            Some(selectable)
        }
        _ => None,
    })
}

/// Does the instruction take one part of each source? If not, its values are packed.
pub(crate) fn takes_one_part(form: &isa::Form) -> bool {
    form.operands.iter().any(|spec| spec.elements == Elements::Selected(Selectable::Part))
}

/// Reports a selector that the instruction does not have on any operand.
fn known(
    selector: Option<Selector>,
    selectable: Option<Selectable>,
    span: Span,
    place: &Place,
    complaints: &mut Complaints,
) {
    let Some(selectable) = selectable else { return };
    if !selector.is_some_and(|selector| selectable.allows(selector)) {
        let message = format!("Incorrect video selector for operand {}", place.index);
        let help = format!("selectors of this operand: {}", selectable.describe());
        complain(complaints, Code::VideoSelector, span, message, Some(&help));
    }
}

/// Is this a selector that ptxas accepts and ignores?
fn is_ignored(selector: Option<Selector>, place: &Place) -> bool {
    of_instruction(place) == Some(Selectable::Part) && selector.is_some_and(Selector::is_ignored)
}

/// `r.h0` as a destination.
pub(crate) fn destination(
    register: RegId,
    selector: Option<Selector>,
    span: Span,
    place: &Place,
    complaints: &mut Complaints,
) -> Verdict {
    let name = place.context.name;
    let own = selectable(place);
    if is_ignored(selector, place) {
        return Verdict::Fits(Operand::Reg(register));
    }
    known(selector, own.or(of_instruction(place)), span, place, complaints);
    let merges = own != Some(Selectable::Part)
        || ![Mod::Add, Mod::Min, Mod::Max].iter().any(|&operation| place.context.picks.has(operation));
    if own.is_none() {
        let message = format!("Video selector is not allowed on destination for instruction '{name}'");
        let help =
            of_instruction(place).map(|_| "to merge the result into an operand, write that as the last one");
        complain(complaints, Code::VideoSelector, span, message, help);
    } else if !merges {
        let message = "Video instruction cannot have destination selector and secondary operation";
        complain(complaints, Code::VideoSelector, span, message.to_owned(), None);
    }
    Verdict::Fits(Operand::Reg(register))
}

/// `r.h0` as a source.
pub(crate) fn source(
    register: RegId,
    selector: Option<Selector>,
    span: Span,
    place: &Place,
    complaints: &mut Complaints,
) -> Verdict {
    let own = selectable(place);
    let is_addend = own.is_none() && place.index == SOURCE_C;
    if is_addend && is_ignored(selector, place) {
        return Verdict::Fits(Operand::Reg(register));
    }
    known(selector, own.or(of_instruction(place)), span, place, complaints);
    if own.is_none() {
        let message = match of_instruction(place) {
            Some(_) if is_addend => "Video selector is not allowed on 'source C' operand".to_owned(),
            _ => {
                let name = place.context.name;
                format!("Video selector is not allowed on source operand for instruction '{name}'")
            }
        };
        complain(complaints, Code::VideoSelector, span, message, None);
    }
    Verdict::Fits(Operand::Reg(register))
}

/// Reports an operand that cannot have the selector that a packed instruction requires: a constant, a function, an
/// element of a vector.
pub(crate) fn unselected(span: Span, place: &Place, complaints: &mut Complaints) {
    if let Some(packed @ (Selectable::Halves | Selectable::Bytes)) = of_instruction(place) {
        let mut said = Complaints::new();
        known(None, Some(packed), span, place, &mut said);
        let first = |stage| if place.index == 0 { Stage::Result } else { stage };
        complaints.extend(said.into_iter().map(|(stage, said)| (first(stage), said)));
    }
}
