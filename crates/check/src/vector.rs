//! Vectors as operands: `{a, b}` of memory instructions, and packing and unpacking by `mov`
//! (PTX ISA, "Vectors as Operands").

use diag::{Code, Diagnostic};
use isa::{
    Access, Action, Effect, Opcode, OperandKind, OperandSpec, Property, Second, Type, register_allowed,
};

use crate::context::Context;
use crate::destination::fit_destination;
use crate::literal::Const;
use crate::module::Operand;
use crate::near_fit::{result_required, special_not_allowed, special_width_fits};
use crate::order::Stage;
use crate::place::{Complaints, Place, Verdict, complain};
use crate::product::{is_sparse, product_name};
use crate::source::fit_source;
use crate::value::{Base, Lowered, Value, unlike_elements, unlike_message};

/// `{a, b}` of `ld`, `st`, `atom`: the instruction determines the number of elements. One match says what ptxas makes of
/// each kind of operand there.
pub(crate) fn fit_vector(
    lowered: &Lowered,
    place: &Place,
    count: usize,
    complaints: &mut Complaints,
) -> Verdict {
    let writes = place.spec.access == Access::Write;
    let of_tensor = place.context.picks.has(isa::Mod::Tensor);
    let of_matrix = place.context.has(Property::Fragments);
    let of_offsets = of_tensor && place.spec.kind != isa::OperandKind::Address;
    if of_offsets && !matches!(lowered.value, Value::Vector(..) | Value::VectorRegister(..)) {
        return fit_no_offsets(lowered, place, count, complaints);
    }
    let moves = place.context.form.action == Action::Effect(Effect::Mov) && !writes;
    let is_vector = matches!(lowered.value, Value::Vector(..) | Value::VectorRegister(..) | Value::Sink);
    if (of_matrix || place.context.has(Property::SizedVectors)) && !is_vector {
        return fit_no_fragment(lowered, place, count, complaints);
    }
    match &lowered.value {
        Value::Special(register) if !moves => {
            let (Some(_), true) = (place.ty, special_width_fits(*register, place)) else {
                return Verdict::Mismatch;
            };
            special_not_allowed(lowered.span, place, complaints)
        }
        // `mov` with vector destinations: the source is a scalar to unpack.
        Value::Register(..) | Value::Special(_) | Value::Const(_) if moves => {
            let is_small = place.ty.is_some_and(|ty| ty.bits() / (count as u32) < 8);
            match place.ty {
                Some(ty) if !is_small => fit_source(lowered, ty, place, complaints),
                _ => Verdict::Mismatch,
            }
        }
        Value::SpecialVector(elements)
            if moves && place.ty.is_some_and(|ty| elements[0].readable_as(Type::of_bits(ty.bits()))) =>
        {
            if place.ty.is_some_and(Type::is_float) {
                special_not_allowed(lowered.span, place, complaints);
            }
            if elements.len() != count {
                return size_mismatch(lowered, place, count, complaints);
            }
            Verdict::Fits(Operand::Vector(elements.iter().map(|&e| Operand::Special(e)).collect()))
        }
        Value::Vector(elements, ty) => match fit_elements(elements, *ty, place, count, complaints) {
            Verdict::Fits(Operand::Vector(operands)) if operands.len() != count => {
                size_mismatch(lowered, place, count, complaints)
            }
            verdict => verdict,
        },
        Value::VectorRegister(ids, register) => {
            let fits = place.ty.is_some_and(|ty| register_allowed(ty, *register, place.spec.wider));
            if !fits {
                return Verdict::Mismatch;
            }
            if ids.len() != count {
                return size_mismatch(lowered, place, count, complaints);
            }
            Verdict::Fits(Operand::Vector(ids.iter().map(|&id| Operand::Reg(id)).collect()))
        }
        Value::Sink if place.spec.sink => Verdict::Fits(Operand::Sink),
        Value::Register(..) if of_tensor => {
            let message = format!("Vector expected for argument {}", place.index + 1);
            complain(complaints, Code::VectorExpected, lowered.span, message, None);
            Verdict::Fits(Operand::Sink)
        }
        Value::Register(_, register)
            if place.ty.is_some_and(|ty| !register_allowed(ty, *register, place.spec.wider)) =>
        {
            Verdict::Mismatch
        }
        Value::Const(value)
            if !writes && place.ty.is_some_and(|ty| isa::literal_allowed(ty, value.form())) =>
        {
            size_mismatch(lowered, place, count, complaints)
        }
        Value::Register(..) => {
            if writes {
                let message = "Result vector expected".to_owned();
                let help = format!("write {count} registers in braces");
                complain(complaints, Code::VectorExpected, lowered.span, message, Some(&help));
            }
            size_mismatch(lowered, place, count, complaints)
        }
        _ if writes && !of_matrix => fit_no_result(lowered, place, complaints),
        _ => Verdict::Mismatch,
    }
}

/// Fits the elements of a vector whose registers have this type. `count`: how many elements the instruction wants.
fn fit_elements(
    elements: &[Box<Lowered>],
    ty: Option<Type>,
    place: &Place,
    count: usize,
    complaints: &mut Complaints,
) -> Verdict {
    let writes = place.spec.access == Access::Write;
    let of_texels = place.context.form.accesses_texels();
    let Some(wanted) = place.ty else { return Verdict::Mismatch };
    let scalar = Place { spec: &OperandSpec { second: Second::None, ..*place.spec }, ..*place };
    let typed = match ty {
        Some(ty) if ty.bits() == wanted.bits() && is_untyped_factor(place) => true,
        Some(ty) if !register_allowed(wanted, ty, place.spec.wider) => return Verdict::Mismatch,
        found => found.is_some(),
    };
    if of_texels {
        check_alike(elements, place, complaints);
    }
    let of_call = place.context.has(Property::Calls);
    // Stores of 32 bytes can leave elements out. The manual does not say so; ptxas 12.9 and 13.5 accept it.
    let stores_some =
        place.context.form.action == Action::Effect(Effect::St) && wanted.bits() * count as u32 == 256;
    let mut operands = Vec::with_capacity(elements.len());
    for element in elements {
        let verdict = match element.value {
            Value::Sink if writes || stores_some => Verdict::Fits(Operand::Sink),
            // ptxas names the first only.
            Value::Sink if operands.contains(&Operand::Sink) => Verdict::Fits(Operand::Sink),
            Value::Sink => {
                let message = "Sink '_' not allowed as a source operand".to_owned();
                let help = "write a register or a constant";
                complain(complaints, Code::Sink, element.span, message, Some(help));
                Verdict::Fits(Operand::Sink)
            }
            Value::Unknown => Verdict::Fits(Operand::Sink),
            // ptxas checks only the type of the first register; the others have the same size.
            Value::Register(id, _) if typed => Verdict::Fits(Operand::Reg(id)),
            // Among registers of another type, all constants are bits, but floats accept no integers.
            Value::Const(value) if typed && !writes => {
                // Of a decimal among bits, the low bits of a double remain. Here, that holds for `.b32` too.
                let ty = if wanted == Type::B32 { Type::U32 } else { wanted };
                Verdict::Fits(Operand::Imm(value.bits(ty)))
            }
            Value::Special(register) if of_call && special_width_fits(register, place) => {
                let message = format!("Call argument '{}' has illegal state space", register.name());
                let help = "move the special register into a register first";
                complain(complaints, Code::SpecialRegister, element.span, message, Some(help));
                Verdict::Fits(Operand::Sink)
            }
            // ptxas accepts even these and generates no code for them.
            Value::Special(_) if of_texels && writes => Verdict::Fits(Operand::Sink),
            Value::Const(_) if writes => return result_required(element.span, place, complaints),
            _ if writes => fit_destination(element, wanted, &scalar, complaints),
            _ => fit_source(element, wanted, &scalar, complaints),
        };
        match verdict {
            Verdict::Fits(operand) => operands.push(operand),
            Verdict::Mismatch => return Verdict::Mismatch,
        }
    }
    Verdict::Fits(Operand::Vector(operands))
}

/// An operand that is no vector, in the place of a fragment or of a vector whose size ptxas names: it asks for the vector
/// if the operand would fit as one.
fn fit_no_fragment(lowered: &Lowered, place: &Place, count: usize, complaints: &mut Complaints) -> Verdict {
    let Some(ty) = place.ty else { return Verdict::Mismatch };
    let fits = could_be_fragment(lowered, place).unwrap_or_else(|| {
        let mut unsaid = Complaints::new();
        let verdict = match place.spec.access {
            Access::Write => fit_destination(lowered, ty, place, &mut unsaid),
            _ => fit_source(lowered, ty, place, &mut unsaid),
        };
        matches!(verdict, Verdict::Fits(_))
    });
    if fits { vector_expected(lowered, place, count, complaints) } else { Verdict::Mismatch }
}

fn vector_expected(lowered: &Lowered, place: &Place, count: usize, complaints: &mut Complaints) -> Verdict {
    let (index, name) = (place.index, place.context.name);
    let message = match place.context.has(Property::SizedVectors) {
        true => format!("Vector of size {count} is expected for argument {index} of instruction '{name}'"),
        false => format!("Vector expected for argument {index}"),
    };
    let help = format!("write {count} registers in braces");
    complain(complaints, Code::VectorExpected, lowered.span, message, Some(&help));
    Verdict::Fits(Operand::Sink)
}

/// A vector of another size.
fn size_mismatch(lowered: &Lowered, place: &Place, count: usize, complaints: &mut Complaints) -> Verdict {
    let Context { form, picks, name } = *place.context;
    if place.context.has(Property::SizedVectors) {
        return vector_expected(lowered, place, count, complaints);
    }
    let writes = place.spec.access == Access::Write;
    let argument = match form.action {
        // ptxas counts the coordinates of a tensor as an operand.
        _ if picks.has(isa::Mod::Tensor) => Some(place.index + 1),
        Action::Effect(Effect::TensorLd | Effect::SparseData) => Some(place.index),
        Action::Effect(Effect::TensorSt) if !writes => Some(place.index),
        _ => None,
    };
    let message = match argument {
        Some(argument) => {
            format!("Argument {argument} of instruction '{name}': Argument vector size mismatch")
        }
        None => {
            let name = product_name(place.context).unwrap_or(name);
            format!("Argument vector size mismatch for instruction '{name}'")
        }
    };
    let is_twice = argument.is_none() && writes && !form.accesses_texels();
    let help = format!("write {count} elements");
    for _ in 0..1 + usize::from(is_twice) {
        complain(complaints, Code::VectorSize, lowered.span, message.clone(), Some(&help));
    }
    Verdict::Fits(Operand::Sink)
}

/// An operand that is neither a vector nor a register, where a vector is written.
fn fit_no_result(lowered: &Lowered, place: &Place, complaints: &mut Complaints) -> Verdict {
    let Some(ty) = place.ty else { return Verdict::Mismatch };
    let mut others = Complaints::new();
    let scalar = Place { spec: &OperandSpec { second: Second::None, ..*place.spec }, ..*place };
    if matches!(fit_destination(lowered, ty, &scalar, &mut others), Verdict::Mismatch) {
        return Verdict::Mismatch;
    }
    let names_result = |(_, said): &(Stage, Diagnostic)| {
        matches!(said.code, Code::ResultRegister | Code::DiscardedResult | Code::SpecialRegister)
    };
    if !others.iter().any(names_result) {
        let help = "write registers in braces";
        complain(
            complaints,
            Code::VectorExpected,
            lowered.span,
            "Result vector expected".to_owned(),
            Some(help),
        );
    }
    complaints.append(&mut others);
    Verdict::Fits(Operand::Sink)
}

/// An operand that is not a vector in the place of the offsets of a tensor's box. ptxas may take it for a mask or a
/// cache policy, because other forms have these in the same place.
fn fit_no_offsets(lowered: &Lowered, place: &Place, count: usize, complaints: &mut Complaints) -> Verdict {
    let with_mask = place.context.form.action == Action::Effect(Effect::CopyTensor);
    let types = [Some(Type::U16), with_mask.then_some(Type::U32), Some(Type::U64)];
    let others = types.into_iter().flatten().find_map(|ty| {
        let mut others = Complaints::new();
        let spec = &OperandSpec { wider: false, ..*place.spec };
        let scalar = Place { spec, ty: Some(ty), ..*place };
        let is_value = match lowered.value {
            Value::Address(Base::Register(_, ty), _) => ty.bits() == 16,
            Value::Register(_, Type::F16) => false,
            Value::Sink | Value::Pair(..) | Value::Address(..) => false,
            Value::Function(..) | Value::UnknownSum | Value::SpecialVector(_) => false,
            _ => true,
        };
        let fits = is_value && matches!(fit_source(lowered, ty, &scalar, &mut others), Verdict::Fits(_));
        fits.then_some(others)
    });
    let Some(others) = others else { return Verdict::Mismatch };
    let argument = place.index + 1;
    let name = place.context.name;
    let size = format!("Argument {argument} of instruction '{name}': Argument vector size mismatch");
    let expected = format!("Vector expected for argument {}", place.index + 1);
    complaints.push((Stage::OpcodeRules, Diagnostic::error(Code::VectorExpected, lowered.span, expected)));
    let size = Diagnostic::error(Code::VectorSize, lowered.span, size);
    complaints.push((Stage::OpcodeRules, size.help(format!("write {count} elements"))));
    complaints.extend(others);
    Verdict::Fits(Operand::Sink)
}

/// Does ptxas accept the type of this operand, which is not a vector, for a fragment? `None` where ptxas checks it
/// like any other operand.
fn could_be_fragment(lowered: &Lowered, place: &Place) -> Option<bool> {
    let Context { form, picks, .. } = place.context;
    // ptxas has no type for these factors: any 32-bit operand fits.
    let of_products = matches!(form.opcode, Opcode::Mma | Opcode::Wmma);
    let is_untyped = of_products && picks.types().iter().any(|ty| matches!(ty, Type::Bf16 | Type::Tf32));
    let of_bits = matches!(form.opcode, Opcode::Ldmatrix | Opcode::Stmatrix);
    match &lowered.value {
        Value::Symbol(_) | Value::Function(..) | Value::UnknownSum | Value::Indexed(_) => Some(false),
        Value::Const(_) if of_bits || form.opcode == Opcode::Tcgen05 => Some(false),
        Value::Register(_, Type::Pred) | Value::NotRegister(_) => {
            (of_bits || is_untyped || form.opcode == Opcode::Mma && is_factor_of_integers(place))
                .then_some(true)
        }
        Value::Register(_, ty) => (is_untyped && ty.bits() == 32).then_some(true),
        Value::Address(Base::Symbol(_), _) => is_untyped.then_some(true),
        Value::Const(Const::Int { .. }) if place.context.has(Property::Calls) => {
            (is_factor_of_integers(place) || is_untyped && form.action == Action::Effect(Effect::WmmaLoad))
                .then_some(true)
        }
        Value::Const(Const::F32(_)) => is_untyped.then_some(true),
        _ => None,
    }
}

/// Is this a factor of a sparse product of bf16? ptxas accepts any 32-bit register there.
fn is_untyped_factor(place: &Place) -> bool {
    matches!(place.spec.name, "a" | "b")
        && place.context.picks.types().contains(&Type::Bf16)
        && is_sparse(place.context)
}

/// The first element of a vector in the place of a scalar, however many follow: the others mean nothing.
pub(crate) fn first_element(lowered: &Lowered, place: &Place) -> Option<Lowered> {
    let fits = |ty: Type| place.ty.is_some_and(|expected| expected.bits() == ty.bits());
    match &lowered.value {
        Value::VectorRegister(ids, ty) if fits(*ty) => {
            Some(Lowered { value: Value::Register(*ids.first()?, *ty), ..lowered.clone() })
        }
        // Constants alone have no type: ptxas takes them for a number.
        Value::Vector(elements, None) if place.spec.kind == OperandKind::Source => {
            elements.first().map(|first| (**first).clone())
        }
        Value::Vector(elements, Some(ty)) if fits(*ty) => elements.first().map(|first| (**first).clone()),
        _ => None,
    }
}

/// Is this a factor of a product of integers?
fn is_factor_of_integers(place: &Place) -> bool {
    let element = place.spec.element(place.context.picks);
    matches!(place.spec.name, "a" | "b")
        && element.is_some_and(|ty| ty.element().bits() <= 8 && !ty.is_float())
}

/// `mov.b64 d, {a, b}` and `mov.b64 {d, e}, a`.
pub(crate) fn fit_pack(lowered: &Lowered, place: &Place, complaints: &mut Complaints) -> Verdict {
    let writes = place.spec.access == Access::Write;
    let Some(whole) = place.ty else { return Verdict::Mismatch };
    if whole.kind() != isa::Kind::Bits {
        return fit_single(lowered, whole, place, complaints);
    }
    let (count, element) = match &lowered.value {
        Value::Vector(elements, ty) => (elements.len(), *ty),
        Value::VectorRegister(ids, ty) => (ids.len(), Some(*ty)),
        _ => return Verdict::Mismatch,
    };
    if count < 2 {
        return Verdict::Mismatch;
    }
    let bits = whole.bits() / count as u32;
    if element.is_some_and(|ty| ty.bits() != bits) {
        return Verdict::Mismatch;
    }
    let ty = Type::of_bits(bits);
    match &lowered.value {
        Value::VectorRegister(ids, _) => {
            Verdict::Fits(Operand::Vector(ids.iter().map(|&id| Operand::Reg(id)).collect()))
        }
        Value::Vector(elements, _) => {
            let mut operands = Vec::with_capacity(count);
            for element in elements {
                let operand = match &element.value {
                    Value::Register(id, _) => Operand::Reg(*id),
                    Value::Sink if writes => Operand::Sink,
                    Value::Const(_) if writes => {
                        return result_required(element.span, place, complaints);
                    }
                    Value::Const(value) => Operand::Imm(value.bits(ty)),
                    Value::Unknown | Value::Sink => Operand::Sink,
                    _ => return Verdict::Mismatch,
                };
                operands.push(operand);
            }
            Verdict::Fits(Operand::Vector(operands))
        }
        _ => Verdict::Mismatch,
    }
}

/// `mov.u32 {d}, a`: only types of bits take braces, even around one element.
fn fit_single(lowered: &Lowered, ty: Type, place: &Place, complaints: &mut Complaints) -> Verdict {
    match &lowered.value {
        Value::Vector(elements, Some(found))
            if elements.len() == 1 && register_allowed(ty, *found, false) => {}
        _ => return Verdict::Mismatch,
    }
    let name = place.context.name;
    if ty == Type::Pred {
        let message = format!("Vector operand is not allowed for instruction '{name}'");
        complain(complaints, Code::VectorOperand, lowered.span, message, None);
    }
    let message = format!("Argument vector size mismatch for instruction '{name}'");
    complain(complaints, Code::VectorSize, lowered.span, message, Some("leave the braces out"));
    Verdict::Fits(Operand::Sink)
}

/// Reports elements whose types differ from the element before them.
pub(crate) fn check_alike(elements: &[Box<Lowered>], place: &Place, complaints: &mut Complaints) {
    for span in unlike_elements(elements) {
        complain(complaints, Code::UnlikeElements, span, unlike_message(place.context.name), None);
    }
}
