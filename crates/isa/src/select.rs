//! Selects the form that an instruction's modifiers mean, as ptxas does: the modifiers are a multiset, and only the
//! order of the types among themselves matters.

use crate::form::{Consequence, Elements, Fault, OperandSpec};
use crate::placement::{Placed, place, repeats};
use crate::spelling::Written;
use crate::{Action, Condition, Effect, Form, FormId, Mod, Opcode, Picks, Slot, Token, Type};

/// The form of an instruction and the picks of its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Selected {
    /// The row.
    pub id: FormId,
    /// The picks.
    pub picks: Picks,
}

impl Selected {
    /// The row.
    pub fn form(&self) -> &'static Form {
        self.id.form()
    }
}

/// Why an instruction's modifiers mean no form. `index` is an index into the written modifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectError {
    /// No row has this opcode.
    UnknownInstruction,
    /// No row of any opcode has this modifier.
    UnknownModifier {
        /// Which modifier.
        index: usize,
    },
    /// Another modifier already fills the slot of this one.
    Repeated {
        /// Which modifier.
        index: usize,
    },
    /// No row of the opcode has these types.
    Types,
    /// A row fits except for types that ptxas checks last: `.bf16`, or the `.u32` of `slct`, whose selector must be
    /// signed.
    Alternate {
        /// The row.
        form: FormId,
    },
    /// The row of a matrix product has the types by which ptxas finds the row, but not the types that ptxas checks
    /// later.
    Mixture {
        /// The row.
        form: FormId,
    },
    /// The row with these types and modifiers takes another number of operands.
    Arguments {
        /// The row.
        form: FormId,
    },
    /// The row has no slot for this modifier, or the modifier does not fit the rest.
    Illegal {
        /// Which modifier.
        index: usize,
        /// The row.
        form: FormId,
    },
    /// A modifier does not fit the rest, and the table has what ptxas says then.
    Says {
        /// Which modifier.
        index: usize,
        /// The message; `{op}` stands for the instruction's name.
        text: &'static str,
        /// The row.
        form: FormId,
    },
    /// This many elements of this type are too large for one access.
    Vector {
        /// The row.
        form: FormId,
    },
    /// The length of a fragment differs from the written vector length.
    Fragment {
        /// The row.
        form: FormId,
    },
    /// A number of dimensions and another geometry are both written.
    Geometries {
        /// The second of them.
        index: usize,
        /// The row.
        form: FormId,
    },
    /// The instruction has this operation, but not for this type.
    Operation {
        /// Which modifier.
        index: usize,
        /// The row.
        form: FormId,
    },
    /// The comparison operator does not fit the type.
    Comparison {
        /// Which modifier.
        index: usize,
        /// The row.
        form: FormId,
    },
    /// A modifier of this slot is required.
    Missing {
        /// The slot's name.
        slot: &'static str,
        /// The row.
        form: FormId,
    },
}

/// How well a row fits.
struct Fit {
    picks: Picks,
    errors: Vec<SelectError>,
    /// Counts of errors, the most important first; smaller is better: types, modifiers without a slot, operands, and
    /// the rest. For `max` and `min`, operands come before modifiers.
    rank: [usize; 4],
}

/// The form that `opcode` with these modifiers (without their dots, in written order) and this number of operands
/// means. Errors are in ptxas's order; wrong types and a wrong number of operands hide the errors after them.
pub fn select(opcode: &str, modifiers: &[&str], operands: usize) -> Result<Selected, Vec<SelectError>> {
    let written: Vec<Written> = Written::read_all(opcode, modifiers);
    let mut errors: Vec<SelectError> = written
        .iter()
        .enumerate()
        .filter(|(_, written)| matches!(written, Written::Unknown))
        .map(|(index, _)| SelectError::UnknownModifier { index })
        .collect();
    let is_no_barrier = opcode == "barrier"
        && modifiers.first() == Some(&"cluster")
        && !matches!(modifiers.get(1), Some(&("arrive" | "wait")));
    let known = Opcode::from_name(opcode).filter(|_| !is_no_barrier);
    let (start, end) = known.map_or((0, 0), crate::form_range);
    let fits = (start..end).map(|id| fit(FormId(id as u16), &written, operands));
    let mut best: Option<(FormId, Fit)> = None;
    for (id, fit) in (start..end).map(|id| FormId(id as u16)).zip(fits) {
        if fit.errors.is_empty() && errors.is_empty() {
            return Ok(Selected { id, picks: fit.picks });
        }
        if best.as_ref().is_none_or(|(_, so_far)| fit.rank < so_far.rank) {
            best = Some((id, fit));
        }
    }
    match best {
        Some((_, fit)) if fit.errors != [SelectError::UnknownInstruction] => errors.extend(fit.errors),
        // ptxas still checks the modifiers after an unknown name for repetitions.
        _ => {
            let again = |&index: &usize| {
                written[index].modifier().is_some_and(|m| !m.is_operation() && repeats(&written[..index], m))
            };
            errors.extend((0..written.len()).filter(again).map(|index| SelectError::Repeated { index }));
            errors.push(SelectError::UnknownInstruction);
        }
    }
    Err(errors)
}

/// Candidate forms for an instruction that [`select`] rejects, nearest first, each with its errors. They have the
/// instruction's name and types, and a slot for as many of its modifiers as any other form has. The operands may
/// decide between them.
pub fn candidates(opcode: &str, modifiers: &[&str], operands: usize) -> Vec<(FormId, Vec<SelectError>)> {
    let written: Vec<Written> = Written::read_all(opcode, modifiers);
    let unknown = |index: &usize| written[*index] == Written::Unknown;
    let unknown = (0..written.len()).filter(unknown).map(|index| SelectError::UnknownModifier { index });
    let (start, end) = Opcode::from_name(opcode).map_or((0, 0), crate::form_range);
    let ids = (start..end).map(|id| FormId(id as u16));
    let mut fits: Vec<_> = ids.map(|id| (id, fit(id, &written, operands))).collect();
    fits.sort_by_key(|(_, fit)| fit.rank);
    let least = fits.first().map(|(_, fit)| fit.rank[1]);
    fits.retain(|(_, fit)| fit.rank[0] == 0 && Some(fit.rank[1]) == least);
    let errors = |fit: Fit| unknown.clone().chain(fit.errors).collect();
    fits.into_iter().map(|(id, fit)| (id, errors(fit))).collect()
}

/// The form of an instruction that [`select`] rejects, among the forms that only lenient checking accepts.
pub fn select_lenient(opcode: &str, modifiers: &[&str], operands: usize) -> Option<Selected> {
    let written: Vec<Written> = Written::read_all(opcode, modifiers);
    if written.contains(&Written::Unknown) {
        return None;
    }
    let first = crate::FORMS.len();
    let ids = (first..first + crate::LENIENT.len()).map(|id| FormId(id as u16));
    ids.filter(|id| id.form().opcode.name() == opcode).find_map(|id| {
        let fit = fit(id, &written, operands);
        fit.errors.is_empty().then_some(Selected { id, picks: fit.picks })
    })
}

/// Another form after `after` with the same modifiers and number of operands, for operands of other types (`cp.async`
/// with a size and with a predicate).
pub fn overload(after: FormId, modifiers: &[&str], operands: usize) -> Option<Selected> {
    let opcode = after.form().opcode;
    let written: Vec<Written> = Written::read_all(opcode.name(), modifiers);
    let (_, end) = crate::form_range(opcode);
    (usize::from(after.0) + 1..end).find_map(|id| {
        let id = FormId(id as u16);
        let fit = fit(id, &written, operands);
        fit.errors.is_empty().then_some(Selected { id, picks: fit.picks })
    })
}

/// Do only products of other types take this modifier, so that ptxas reports the types? Products of `.b1` take an
/// operation themselves. For `wmma` with alternate types, ptxas checks the operation later.
fn is_of_other_products(form: &Form, types: &[Type], modifier: Mod) -> bool {
    match form.opcode {
        Opcode::Wmma => modifier.is_operation() && !types.iter().any(|&ty| is_alternate(ty)),
        _ if types.contains(&Type::B1) => false,
        Opcode::Mma => modifier.is_operation() || modifier == Mod::Satfinite,
        _ => modifier.is_operation(),
    }
}

/// The first modifier that names an operation which the instruction's name has, if ptxas reports that the operation
/// does not fit the type.
fn typed_operation(form: &Form, written: &[Written]) -> Option<usize> {
    let is_typed = match form.opcode {
        Opcode::Cp | Opcode::Fabric | Opcode::Multimem | Opcode::Redux => true,
        // `red.async`
        Opcode::Red => form.head > 0,
        _ => false,
    };
    if !is_typed || form.type_slots().next().is_none() {
        return None;
    }
    let takes = |token: Token| {
        rows_of_name(form).any(|row| row.slots.iter().any(|slot| slot.choice(token).is_some()))
    };
    let is_foreign = |w: &Written| matches!(*w, Written::Token(token @ Token::Type(_)) if !takes(token));
    if form.opcode == Opcode::Multimem && written.iter().any(is_foreign) {
        return None;
    }
    written.iter().position(|w| w.modifier().is_some_and(|m| m.is_operation() && takes(Token::Mod(m))))
}

/// Types that ptxas checks apart from the others: if no row of the opcode takes any of them, it rejects them last.
pub fn is_alternate(ty: Type) -> bool {
    matches!(ty, Type::Bf16 | Type::Bf16x2 | Type::Tf32)
        || matches!(ty, Type::B1 | Type::B2 | Type::B4 | Type::S4 | Type::U4 | Type::S2 | Type::U2)
}

/// All rows with the name of `form`.
fn rows_of_name(form: &Form) -> impl Iterator<Item = &'static Form> {
    let (start, end) = crate::form_range(form.opcode);
    crate::FORMS[start..end].iter().filter(move |other| {
        let names = form.slots[..form.head].iter().zip(&other.slots[..other.head]);
        other.head == form.head && names.into_iter().all(|(slot, other)| slot.choices == other.choices)
    })
}

/// Does ptxas look for a row of the name with alternate types? It does if there is one, and always for some opcodes.
fn takes_alternates(form: &Form) -> bool {
    let asks =
        [Opcode::Cos, Opcode::Ldmatrix, Opcode::Lg2, Opcode::Rcp, Opcode::Rsqrt, Opcode::Sin, Opcode::Sqrt];
    let mut choices = rows_of_name(form).flat_map(Form::type_slots).flat_map(|slot| slot.choices);
    asks.contains(&form.opcode)
        || choices.any(|choice| matches!(choice.token, Token::Type(ty) if is_alternate(ty)))
}

/// The row has no slot for this modifier: does ptxas reject it before it checks the types? It does not if another row
/// of the name takes it.
pub(crate) fn is_refused_early(form: &Form, modifier: Mod) -> bool {
    let takes = |row: &Form| row.slots.iter().any(|slot| slot.choice(Token::Mod(modifier)).is_some());
    // Barriers that reduce have another name.
    let reduces = |row: &Form| row.slots.iter().any(|slot| slot.name == "red");
    let is_barrier = matches!(form.opcode, Opcode::Bar | Opcode::Barrier);
    let mut rows = rows_of_name(form).filter(|row| !is_barrier || reduces(row) == reduces(form));
    modifier.is_refused_early() && !rows.any(takes)
}

/// The types of the matrix product `form`, if the written types fit except for alternate types. ptxas finds the
/// product by the other types, and checks the alternate ones once the operands fit.
pub fn mixture(form: &Form, types: &[Type]) -> Option<Vec<Type>> {
    let is_apart = |slot: &Slot| {
        slot.choices.iter().all(|choice| matches!(choice.token, Token::Type(ty) if is_alternate(ty)))
    };
    let mut others = types.iter().copied().filter(|&ty| !is_alternate(ty));
    let has_apart = types.iter().any(|&ty| is_alternate(ty)) || form.type_slots().any(is_apart);
    let is_wmma_product = form.opcode == Opcode::Wmma && form.action == Action::Effect(Effect::Mma);
    if !has_apart || is_wmma_product || !matches!(form.opcode, Opcode::Mma | Opcode::Wmma) {
        return None;
    }
    let mut found = Vec::new();
    for slot in form.type_slots() {
        let takes = |&ty: &Type| slot.choice(Token::Type(ty)).is_some();
        let ty = match is_apart(slot) {
            true => types.iter().copied().find(takes).or(match slot.choices.first()?.token {
                Token::Type(ty) => Some(ty),
                Token::Mod(_) => None,
            })?,
            false => others.next().filter(takes)?,
        };
        found.push(ty);
    }
    others.next().is_none().then_some(found)
}

/// Errors in the length of a vector that a form otherwise ignores: fragments must still have that length.
fn misfits_of_fragments(id: FormId, picks: &Picks, length: usize) -> impl Iterator<Item = SelectError> {
    let form = id.form();
    let is_vector = |spec: &&OperandSpec| matches!(spec.elements, Elements::Fragment | Elements::Fixed(_));
    let mut vectors = form.operands_with(picks).filter(is_vector);
    let is_too_large = picks.ty(0).bits() as usize * length > 128;
    let misfits = vectors.any(|spec| spec.count(form, picks).0 != length);
    let errors = [
        is_too_large.then_some(SelectError::Vector { form: id }),
        misfits.then_some(SelectError::Fragment { form: id }),
    ];
    errors.into_iter().flatten()
}

fn types_fit(form: &Form, types: &[Type]) -> bool {
    types.len() == form.type_slots().count()
        && form.type_slots().zip(types).all(|(slot, &ty)| slot.choice(Token::Type(ty)).is_some())
}

fn fit(id: FormId, written: &[Written], operands: usize) -> Fit {
    let form = id.form();
    let Placed { slots, mut types, repeated, mut illegal, opaque, formats, geometries } = place(id, written);
    let mut types_good = types_fit(form, &types);
    let (mut late, mut missing) = (Vec::new(), Vec::new());
    // The parser of modifiers rejects more than two.
    let is_format_here = |w: &&Written| w.modifier().is_some_and(Mod::is_format);
    if formats && written.iter().filter(is_format_here).count() == 2 {
        late.push(SelectError::Missing { slot: "padded", form: id });
    }
    if let Some(index) = geometries {
        late.push(SelectError::Geometries { index, form: id });
    }
    // ptxas checks later which of these types a shape has.
    let least = match form.opcode {
        Opcode::Ldmatrix => Some(0),
        Opcode::Stmatrix => Some(1),
        _ => None,
    };
    if least.is_some_and(|least| (least..2).contains(&types.len())) {
        types_good = types.iter().all(|ty| matches!(ty, Type::B8 | Type::B16));
    }
    if !types_good && types.iter().any(|&ty| is_alternate(ty)) && !takes_alternates(form) {
        types.retain(|&ty| !is_alternate(ty));
        types_good = types_fit(form, &types);
        late.push(SelectError::Alternate { form: id });
    }
    if !types_good && let Some(found) = mixture(form, &types) {
        (types, types_good) = (found, true);
        late.push(SelectError::Mixture { form: id });
    }
    if !types_good
        && form.opcode == Opcode::Tex
        && let &[dtype, Type::U32] = &types[..]
        && types_fit(form, &[dtype, Type::S32])
    {
        (types, types_good) = (vec![dtype, Type::S32], true);
        late.push(SelectError::Alternate { form: id });
    }
    // ptxas accepts `.u32` for `.s32` before it checks the sign.
    if !types_good
        && form.opcode == Opcode::Slct
        && let &[dtype, Type::U32] = &types[..]
        && types_fit(form, &[dtype, Type::S32])
    {
        (types, types_good) = (vec![dtype, Type::S32], true);
        late.push(SelectError::Alternate { form: id });
    }
    let mods: Vec<Mod> = slots.iter().copied().flatten().collect();
    let picks = Picks::new(&types, &mods);
    types_good &= !opaque;
    let length = written.iter().rev().find_map(|w| w.modifier()?.vector_length());
    if let Some(length) = length.filter(|_| types_good && form.ignores_vector_length()) {
        late.extend(misfits_of_fragments(id, &picks, length));
    }
    let mut types_bad = usize::from(!types_good);
    // Conversions and products that take these modifiers have other types, so the error is one of types.
    let before = illegal.len();
    illegal.retain(|error| match (form.opcode, error) {
        (Opcode::Cvt, &SelectError::Illegal { index, .. }) => {
            !matches!(written[index].modifier(), Some(Mod::Relu | Mod::Satfinite))
        }
        (Opcode::Mma | Opcode::Wgmma | Opcode::Wmma, &SelectError::Illegal { index, .. }) => {
            !written[index].modifier().is_some_and(|m| is_of_other_products(form, &types, m))
        }
        _ => true,
    });
    types_bad += before - illegal.len();
    for (slot, filled) in form.slots.iter().zip(&slots) {
        if !slot.optional && !slot.is_type() && filled.is_none() {
            missing.push(SelectError::Missing { slot: slot.name, form: id });
        }
    }
    if types_good {
        for rule in form.rules.iter().filter(|rule| rule.applies(&picks)) {
            if let Consequence::Needs(needs, fault) = rule.then
                && !needs.iter().all(|condition: &Condition| condition.holds(&picks))
            {
                let find = |wanted: &dyn Fn(Mod) -> bool| {
                    written.iter().position(|w| w.modifier().is_some_and(wanted)).unwrap_or(0)
                };
                match fault {
                    Fault::Types if let Some(index) = typed_operation(form, written) => {
                        late.push(SelectError::Operation { index, form: id });
                    }
                    Fault::Types => types_bad += 1,
                    Fault::Illegal(mods) => {
                        let index = find(&|m| mods.contains(&m));
                        illegal.push(SelectError::Illegal { index, form: id });
                    }
                    Fault::Says(modifier, text) => {
                        let index = find(&|m| m == modifier);
                        illegal.push(SelectError::Says { index, text, form: id });
                    }
                    Fault::Vector => late.push(SelectError::Vector { form: id }),
                    Fault::Comparison => {
                        let index = find(&|m| m.cmp().is_some());
                        late.push(SelectError::Comparison { index, form: id });
                    }
                    Fault::Missing(slot) => missing.push(SelectError::Missing { slot, form: id }),
                }
            }
        }
    }
    // Another row has the operation, for other types.
    if let Some(index) = typed_operation(form, written)
        && illegal.contains(&SelectError::Illegal { index, form: id })
    {
        for error in illegal.iter_mut().filter(|error| **error == SelectError::Illegal { index, form: id }) {
            *error = SelectError::Operation { index, form: id };
        }
    }
    // The source format is written after the destination format.
    let at_mod =
        |wanted: &[Mod]| written.iter().position(|w| w.modifier().is_some_and(|m| wanted.contains(&m)));
    if let (Some(to), Some(from)) = (at_mod(&[Mod::B8x16]), at_mod(&[Mod::B4x16P64, Mod::B6x16P32]))
        && from < to
        && slots.contains(&Some(Mod::B8x16))
    {
        illegal.push(SelectError::Illegal { index: from, form: id });
    }
    // `.cta` belongs to the name of a barrier.
    if matches!(form.opcode, Opcode::Bar | Opcode::Barrier) {
        let is_cta = |written: &Written| written.modifier() == Some(Mod::Cta);
        if let Some(index) = written.iter().position(is_cta).filter(|&index| index > 0)
            && slots.contains(&Some(Mod::Cta))
        {
            illegal
                .extend([SelectError::Illegal { index, form: id }, SelectError::Illegal { index, form: id }]);
        }
    }
    let operands_fit = form.accepts_operands(operands, &picks);
    let head_fits = form.slots[..form.head].iter().enumerate().all(|(i, slot)| match written.get(i) {
        Some(Written::Token(token)) => slot.choice(*token).is_some(),
        _ => false,
    });
    if !head_fits {
        return Fit { picks, errors: vec![SelectError::UnknownInstruction], rank: [usize::MAX; 4] };
    }
    // A fence without its proxies is another, unknown instruction.
    let lacks_proxy = form.opcode == Opcode::Fence
        && missing.iter().any(|error| matches!(error, SelectError::Missing { slot: "proxy", .. }));
    if lacks_proxy {
        return Fit { picks, errors: vec![SelectError::UnknownInstruction], rank: [usize::MAX; 4] };
    }
    let rest = missing.len() + late.len();
    let rank = match form.opcode {
        // ptxas checks later which modifiers do not fit three sources.
        Opcode::Max | Opcode::Min => [types_bad, usize::from(!operands_fit), illegal.len(), rest],
        _ => [types_bad, illegal.len(), usize::from(!operands_fit), rest],
    };
    let at = |error: &SelectError| match *error {
        SelectError::Repeated { index } | SelectError::Illegal { index, .. } => written[index].modifier(),
        _ => None,
    };
    let (operations, mut errors): (Vec<_>, Vec<_>) =
        repeated.into_iter().partition(|error| at(error).is_some_and(Mod::is_operation));
    let (early, illegal): (Vec<_>, Vec<_>) =
        illegal.into_iter().partition(|error| at(error).is_some_and(|m| is_refused_early(form, m)));
    let alone = illegal.is_empty() && early.is_empty();
    errors.extend(early);
    // ptxas treats the kind that `istypep` tests as a type.
    let lacks_kind = form.opcode == Opcode::Istypep && !missing.is_empty();
    if types_bad != 0 || lacks_kind {
        errors.push(SelectError::Types);
    } else if !operands_fit && alone {
        errors.push(SelectError::Arguments { form: id });
    } else {
        errors.extend(operations);
        errors.extend(illegal);
        errors.extend(late);
        errors.extend(missing);
    }
    Fit { picks, errors, rank }
}
