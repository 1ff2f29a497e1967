//! Matches the operands of an instruction with the places of a form.

use diag::{Code, Diagnostic, Span};
use isa::{
    Access, Effect, Elements, Opcode, OperandKind, OperandSpec, Property, Space, Type, literal_allowed,
    register_allowed,
};
use smallvec::SmallVec;

use crate::address::{address_of_parameter, fit_fabric};
use crate::body::BodyChecker;
use crate::destination::{fit_destination, fit_pair, result_required};
use crate::instruction::Context;
use crate::literal::Const;
use crate::module::{Operand, Symbol};
use crate::near_fit::{
    address_fits, holds_integers, special_vector_fits, special_width_fits, sum_fits, symbol_fits,
    takes_address, vector_fits,
};
use crate::operand::{Lowered, SymbolValue, Value};
use crate::order::Stage;
use crate::texture::{fit_geometry, is_texel_access};
use crate::vector::{first_element, fit_pack, fit_vector};

/// The result of matching an operand with its place.
pub(crate) enum Verdict {
    /// It fits, or the complaints report why not.
    Fits(Operand),
    /// Its type is wrong: ptxas reports that for the instruction as a whole, and reports nothing after it.
    Mismatch,
}

/// Errors in operands that ptxas reports once all types fit, each with its stage.
pub(crate) type Complaints = SmallVec<[(Stage, Diagnostic); 2]>;

pub(crate) fn complain(
    complaints: &mut Complaints,
    code: Code,
    span: Span,
    message: String,
    help: Option<&str>,
) {
    let diagnostic = Diagnostic::error(code, span, message);
    complaints.push((Stage::of_operand(code), help.into_iter().fold(diagnostic, Diagnostic::help)));
}

/// The place of an operand in an instruction.
pub(crate) struct Place<'s> {
    pub(crate) index: usize,
    pub(crate) spec: &'s OperandSpec,
    pub(crate) context: &'s Context<'s>,
    /// Instruction type of the operand.
    pub(crate) ty: Option<Type>,
    /// The operand as written.
    pub(crate) text: &'s str,
    /// Size of addresses in bits.
    pub(crate) address_bits: u32,
}

impl Place<'_> {
    /// Must this operand be an integer because the form itself requires it, not a modifier? ptxas is strict about
    /// these operands, unless the table says that they are open.
    fn is_plain_integer(&self) -> bool {
        let ty = match (self.spec.ty, self.ty) {
            (isa::OperandType::Fixed(ty), _) if !self.spec.open => ty,
            (_, Some(ty)) if self.context.has(Property::OnlyIntegers) => ty,
            _ => return false,
        };
        let is_scalar = matches!(self.spec.kind, OperandKind::Register | OperandKind::Source)
            && matches!(self.spec.elements, Elements::One | Elements::Selected(_) | Elements::Braced);
        is_scalar && !ty.is_float() && (8..=64).contains(&ty.bits())
    }

    /// Must a register in the place of these bits be declared as bits?
    pub(crate) fn takes_only_bits(&self, ty: Type) -> bool {
        self.context.has(Property::OnlyBits) && is_bits(Some(ty))
    }

    /// The state space of an address. An instruction with several addresses has one space for each.
    pub(crate) fn address_space(&self) -> Space {
        let Context { form, picks, .. } = self.context;
        let before = form.operands_with(picks).take(self.index);
        picks.space_of(before.filter(|spec| spec.kind == OperandKind::Address).count())
    }

    /// Is this an operand of a comparison of bf16 values?
    fn compares_bf16(&self) -> bool {
        self.context.form.slots.iter().any(|slot| slot.name == "CmpOp")
            && self.context.picks.types().iter().any(|ty| matches!(ty, Type::Bf16 | Type::Bf16x2))
    }
}

impl<'a> BodyChecker<'_, 'a> {
    /// Does an operand fit its place?
    pub(crate) fn fit(
        &self,
        lowered: &Lowered,
        index: usize,
        spec: &OperandSpec,
        context: &Context,
        complaints: &mut Complaints,
    ) -> Verdict {
        let ty = match spec.ty {
            isa::OperandType::Address if self.module.address_size == 64 => Some(Type::U64),
            isa::OperandType::Address => Some(Type::U32),
            // Sparse products of tf32 accept any 32 bits; dense ones accept no floats.
            _ if spec.element(context.picks) == Some(Type::Tf32) && is_sparse(context) => Some(Type::B32),
            _ => spec.resolve(context.picks),
        };
        let exact = context.has(Property::ExactBf16) && context.picks.types().contains(&Type::Bf16);
        let spec = &OperandSpec { wider: spec.wider && !exact, ..*spec };
        let text = self.module.source.slice(lowered.span);
        let address_bits = self.module.address_size;
        let place = Place { index, spec, context, ty, text, address_bits };
        if matches!(lowered.value, Value::Reported) {
            return Verdict::Fits(Operand::Sink);
        }
        match spec.kind {
            OperandKind::Address if spec.name == "fabric" => fit_fabric(lowered, &place),
            OperandKind::Address if spec.name == "tensor" => self.fit_tensor(lowered, &place, complaints),
            OperandKind::Address => self.fit_address(lowered, &place, complaints),
            OperandKind::Texels => self.fit_texels(lowered, &place, complaints),
            OperandKind::Handle => self.fit_handle(lowered, &place, complaints),
            OperandKind::Label => fit_label(lowered, &place, complaints),
            OperandKind::BranchTargets => match lowered.value {
                Value::BranchTargets(id) => Verdict::Fits(Operand::BranchTargets(id)),
                _ => Verdict::Mismatch,
            },
            OperandKind::Immediate => match lowered.value {
                Value::Const(value) => fit_const(value, place.ty.unwrap_or(Type::U32)),
                _ => Verdict::Mismatch,
            },
            OperandKind::AddressValue => self.fit_address_value(lowered, &place, complaints),
            OperandKind::MovDestination | OperandKind::MovSource
                if matches!(&lowered.value, Value::Vector(elements, _) if elements.len() > 1 || !is_bits(place.ty))
                    || matches!(lowered.value, Value::VectorRegister(..)) =>
            {
                fit_pack(lowered, &place, complaints)
            }
            // `call` is checked separately.
            OperandKind::Call => Verdict::Mismatch,
            _ => match spec.count(context.form, context.picks) {
                (count, braces)
                    if is_texel_access(context.form) && (braces || spec.elements == Elements::Vector) =>
                {
                    self.fit_texel_values(lowered, &place, count, complaints)
                }
                _ if spec.name == "mask" && context.has(Property::CtaMask) => {
                    fit_mask(lowered, &place, complaints)
                }
                _ if spec.elements == Elements::Geometry => fit_geometry(lowered, &place, complaints),
                _ if spec.elements == Elements::Braced && is_vector(lowered) => {
                    match first_element(lowered, &place) {
                        Some(first) => fit_scalar(&first, &place, complaints),
                        None => fit_vector(lowered, &place, 1, complaints),
                    }
                }
                (_, false) => fit_scalar(lowered, &place, complaints),
                (count, true) => fit_vector(lowered, &place, count, complaints),
            },
        }
    }

    /// The help for an operand whose type is wrong.
    pub(crate) fn mismatch_help(
        &self,
        lowered: &Lowered,
        spec: &OperandSpec,
        context: &Context,
    ) -> Option<String> {
        let ty = spec.resolve(context.picks)?;
        let form = context.form.syntax;
        Some(match &lowered.value {
            Value::Register(id, register) => {
                let name = &self.body.registers[id.index()].name;
                format!("'{name}' is declared {register}, operand `{}` of `{form}` is {ty}", spec.name)
            }
            Value::Const(_) if ty.is_float() && ty.bits() >= 32 => {
                format!("operand `{}` is {ty}: write a floating-point constant such as 1.0", spec.name)
            }
            Value::Const(_) if ty.is_float() => {
                format!(
                    "operand `{}` is {ty}, for which there are no constants: move the bits into a register",
                    spec.name
                )
            }
            Value::Const(_) => format!("operand `{}` is {ty}: write an integer", spec.name),
            _ => format!("operand `{}` of `{form}` is {ty}", spec.name),
        })
    }
}

fn is_vector(lowered: &Lowered) -> bool {
    matches!(lowered.value, Value::Vector(..) | Value::VectorRegister(..))
}

fn is_bits(ty: Option<Type>) -> bool {
    ty.is_some_and(|ty| ty.kind() == isa::Kind::Bits)
}

/// Is this a product with a sparse matrix?
pub(crate) fn is_sparse(context: &Context) -> bool {
    context.form.action == isa::Action::Effect(Effect::Mma)
        && context.form.operands.iter().any(|spec| spec.name == "e")
}

pub(crate) fn must_be_register(span: Span, place: &Place, complaints: &mut Complaints) -> Verdict {
    // Those of a tensor do not count here.
    let counts = place.context.has(Property::CountedCoordinates) && is_texel_access(place.context.form);
    let coordinates = usize::from(counts && place.index > 1);
    let index = place.index + coordinates;
    let message = format!("Argument {index} of instruction '{}': must be register", place.context.name);
    let help = "move the address into a register first";
    complain(complaints, Code::RegisterExpected, span, message, Some(help));
    Verdict::Fits(Operand::Sink)
}

pub(crate) fn fit_const(value: Const, ty: Type) -> Verdict {
    let fits = match ty {
        Type::Pred => matches!(value, Const::Int { .. }),
        _ => literal_allowed(ty, value.form()),
    };
    if fits { Verdict::Fits(Operand::Imm(value.bits(ty))) } else { Verdict::Mismatch }
}

fn fit_label(lowered: &Lowered, place: &Place, complaints: &mut Complaints) -> Verdict {
    let name = place.context.name;
    let label_expected = |complaints: &mut Complaints| {
        let message = format!("Label expected for argument {} of instruction '{name}'", place.index);
        complain(complaints, Code::LabelExpected, lowered.span, message, None);
        Verdict::Fits(Operand::Sink)
    };
    match lowered.value {
        // `label|_` means the same as `label`.
        Value::Pair(ref first, ref second) if matches!(second.value, Value::Sink) => {
            fit_label(first, place, complaints)
        }
        Value::Label(id, 0) => Verdict::Fits(Operand::Label(id)),
        // The unknown symbol was reported.
        Value::Unknown => Verdict::Fits(Operand::Sink),
        Value::NotRegister(_) | Value::Register(_, Type::Pred) => Verdict::Mismatch,
        Value::Symbol(symbol) if symbol.array => Verdict::Mismatch,
        Value::Symbol(_) | Value::Address(..) => {
            label_expected(complaints);
            must_be_register(lowered.span, place, complaints)
        }
        Value::Vector(..) => Verdict::Mismatch,
        Value::Special(_) => {
            special_not_allowed(lowered.span, place, complaints);
            label_expected(complaints)
        }
        _ => label_expected(complaints),
    }
}

pub(crate) fn special_not_allowed(span: Span, place: &Place, complaints: &mut Complaints) -> Verdict {
    let message = format!("Special register argument not allowed for instruction '{}'", place.context.name);
    let help = "move the special register into a register first";
    complain(complaints, Code::SpecialRegister, span, message, Some(help));
    Verdict::Fits(Operand::Sink)
}

pub(crate) fn fit_scalar(lowered: &Lowered, place: &Place, complaints: &mut Complaints) -> Verdict {
    let Some(ty) = place.ty else { return Verdict::Mismatch };
    if place.is_plain_integer() && !is_plain_integer(lowered, ty, place) {
        return Verdict::Mismatch;
    }
    // `ld.b32 {%r1}`: braces around a single element have no effect.
    let lowered = match &lowered.value {
        Value::Vector(elements, _) if elements.len() == 1 && takes_braces(place) => &elements[0],
        _ => lowered,
    };
    if place.spec.access == Access::Write {
        fit_destination(lowered, ty, place, complaints)
    } else {
        fit_source(lowered, ty, place, complaints)
    }
}

/// The CTA mask of a multicast copy or commit, which has 16 bits. ptxas accepts 32-bit operands at first and then
/// reports the size.
fn fit_mask(lowered: &Lowered, place: &Place, complaints: &mut Complaints) -> Verdict {
    if let fits @ Verdict::Fits(_) = fit_scalar(lowered, place, complaints) {
        return fits;
    }
    let could_be_wide = match &lowered.value {
        Value::Register(_, ty) => !ty.is_float(),
        Value::Vector(_, ty) => ty.is_none(),
        Value::VectorRegister(..) => false,
        _ => place.context.picks.has(isa::Mod::MulticastCluster),
    };
    if !could_be_wide || place.context.picks.has(isa::Mod::CpMask) {
        return Verdict::Mismatch;
    }
    let wide = Place { ty: Some(Type::U32), ..*place };
    let mut others = Complaints::new();
    let Verdict::Fits(_) = fit_source(lowered, Type::U32, &wide, &mut others) else {
        return Verdict::Mismatch;
    };
    if matches!(lowered.value, Value::Address(..)) {
        complaints.append(&mut others);
        return Verdict::Fits(Operand::Sink);
    }
    let name = place.context.name;
    let size = format!("Argument {} of instruction '{name}': must be 16-bit size", place.index);
    for message in [size, format!("Arguments mismatch for instruction '{name}'")] {
        complaints
            .push((Stage::OpcodeRules, Diagnostic::error(Code::ArgumentsMismatch, lowered.span, message)));
    }
    complaints.append(&mut others);
    Verdict::Fits(Operand::Sink)
}

/// Does this fit a place that accepts only integer registers and integer constants?
fn is_plain_integer(lowered: &Lowered, ty: Type, place: &Place) -> bool {
    match &lowered.value {
        Value::Register(_, register) | Value::RegisterPlus(_, register, _) => {
            let is_integer = match place.takes_only_bits(ty) {
                true => is_bits(Some(*register)),
                false => !register.is_float() && *register != Type::Pred,
            };
            is_integer && register_allowed(ty, *register, place.spec.wider)
        }
        Value::Const(value) => matches!(value, Const::Int { .. }),
        Value::Pair(first, _) => is_plain_integer(first, ty, place),
        // ptxas treats `sym+4` as a value.
        Value::Symbol(symbol) => symbol.sum && ty.bits() >= 32 && !place.context.has(Property::NoSums),
        Value::Indexed(_)
        | Value::Function(..)
        | Value::Address(..)
        | Value::Vector(..)
        | Value::VectorRegister(..)
        | Value::SpecialVector(_)
        | Value::UnknownSum => false,
        _ => true,
    }
}

/// Does the place accept braces around a scalar?
fn takes_braces(place: &Place) -> bool {
    takes_vectors(place) || place.context.has(Property::BracedScalars)
}

/// Does the instruction have forms with vectors?
pub(crate) fn takes_vectors(place: &Place) -> bool {
    matches!(place.context.form.action, isa::Action::Effect(Effect::Ld | Effect::St | Effect::Mov))
}

pub(crate) fn vector_not_allowed(span: Span, place: &Place, complaints: &mut Complaints) -> Verdict {
    let name = place.context.name;
    if takes_vectors(place) {
        let message = format!("Argument vector size mismatch for instruction '{name}'");
        let help = "say `.v2` or `.v4`, or use one register";
        complain(complaints, Code::VectorSize, span, message, Some(help));
    } else if matches!(place.context.form.action, isa::Action::Effect(Effect::Atom | Effect::Red))
        && !place.context.picks.has(isa::Mod::Async)
    {
        // Other forms of these instructions take vectors.
        let message = format!("Vector is not expected for argument {} of instruction '{name}'", place.index);
        complain(complaints, Code::VectorSize, span, message, None);
    } else {
        let message = format!("Vector operand is not allowed for instruction '{name}'");
        complain(complaints, Code::VectorOperand, span, message, None);
    }
    Verdict::Fits(Operand::Sink)
}

/// Fits a source: one match over all that can be written in its place.
pub(crate) fn fit_source(lowered: &Lowered, ty: Type, place: &Place, complaints: &mut Complaints) -> Verdict {
    let span = lowered.span;
    let fits = |register: Type| register_allowed(ty, register, place.spec.wider);
    let mov = place.context.form.action == isa::Action::Effect(Effect::Mov);
    match &lowered.value {
        Value::Register(id, register) if fits(*register) => {
            // `v.x`, an element of a vector, already has a selector.
            if place.text.contains('.') {
                crate::video::unselected(span, place, complaints);
            }
            Verdict::Fits(Operand::Reg(*id))
        }
        Value::Const(_) | Value::RegisterPlus(..) | Value::Function(..)
            if place.context.form.opcode == Opcode::Stackrestore =>
        {
            result_required(span, place, complaints)
        }
        Value::RegisterPlus(id, register, offset) if sum_fits(*register, ty) => {
            crate::video::unselected(span, place, complaints);
            Verdict::Fits(Operand::RegPlus(*id, *offset))
        }
        // To the grammar of ptxas, the first operand is a destination.
        Value::Pair(first, second) if place.index == 0 => {
            fit_pair(first, second, lowered, ty, place, complaints)
        }
        // The unknown symbol was reported.
        Value::UnknownSum if ty != Type::Pred => Verdict::Fits(Operand::Sink),
        Value::NotRegister(id) if ty == Type::Pred => Verdict::Fits(Operand::NotReg(*id)),
        Value::Part(id, register, selector) if fits(*register) => {
            crate::video::source(*id, *selector, span, place, complaints)
        }
        // ptxas rejects a constant as the predicate of a bf16 comparison, but only after it has checked the
        // comparison's gates.
        Value::Const(_) if ty == Type::Pred && place.compares_bf16() => {
            let message = format!("Arguments mismatch for instruction '{}'", place.context.name);
            complaints.push((Stage::OpcodeRules, Diagnostic::error(Code::ArgumentsMismatch, span, message)));
            Verdict::Fits(Operand::Sink)
        }
        Value::Const(value) if place.spec.kind != OperandKind::Register => {
            crate::video::unselected(span, place, complaints);
            fit_const(*value, ty)
        }
        Value::Special(register) => {
            if !special_width_fits(*register, place) {
                return Verdict::Mismatch;
            }
            if ty.is_float() {
                return special_not_allowed(span, place, complaints);
            }
            if mov || crate::special::anywhere(place.context) {
                return Verdict::Fits(Operand::Special(*register));
            }
            special_not_allowed(span, place, complaints)
        }
        Value::SpecialVector(_) if mov && special_vector_fits(ty) => {
            vector_not_allowed(span, place, complaints)
        }
        Value::SpecialVector(_) if mov => Verdict::Mismatch,
        Value::SpecialVector(_) if special_vector_fits(ty) => special_vector(span, place, complaints),
        Value::Symbol(SymbolValue { symbol: Symbol::Variable(_), space: Space::Param, .. })
            if mov && takes_address(ty) =>
        {
            address_of_parameter(span, place, complaints)
        }
        Value::Symbol(symbol) | Value::Indexed(symbol) if mov && takes_address(ty) => {
            let address = Operand::Symbol(symbol.symbol, symbol.offset);
            Verdict::Fits(symbol.element.map_or(address, Operand::Reg))
        }
        // ptxas treats `sym+4` and functions as values, but not the bare name of a variable.
        Value::Symbol(symbol) if symbol.sum && takes_address(ty) => {
            crate::video::unselected(span, place, complaints);
            Verdict::Fits(Operand::Symbol(symbol.symbol, symbol.offset))
        }
        Value::Function(..) if mov && !matches!(ty.bits(), 32 | 64) && takes_address(ty) => {
            let name = place.context.name;
            let message = format!(
                "Unexpected instruction types specified for '{name} instruction with function address operand'"
            );
            complain(complaints, Code::InstructionTypes, span, message, Some("write `mov.u64`"));
            Verdict::Fits(Operand::Sink)
        }
        Value::Function(id, offset) if ty != Type::Pred => {
            crate::video::unselected(span, place, complaints);
            Verdict::Fits(Operand::Symbol(Symbol::Function(*id), *offset))
        }
        // `check_inside` reports this, because ptxas rejects it only when it generates code.
        Value::Label(_, offset) if *offset != 0 && ty != Type::Pred => Verdict::Fits(Operand::Sink),
        Value::Indexed(symbol) if !mov && fits(symbol.ty) => must_be_register(span, place, complaints),
        Value::Symbol(symbol) if !mov && symbol_fits(symbol, ty) => must_be_register(span, place, complaints),
        Value::Address(base, _) if address_fits(*base, ty, place, &fits) => {
            must_be_register(span, place, complaints)
        }
        Value::Vector(elements, element)
            if element.map_or(holds_integers(ty), |e| vector_fits(e, elements.len(), ty, place)) =>
        {
            vector_not_allowed(span, place, complaints)
        }
        Value::VectorRegister(ids, element) if vector_fits(*element, ids.len(), ty, place) => {
            vector_not_allowed(span, place, complaints)
        }
        _ => Verdict::Mismatch,
    }
}

/// `%tid` where a scalar is required.
pub(crate) fn special_vector(span: Span, place: &Place, complaints: &mut Complaints) -> Verdict {
    special_not_allowed(span, place, complaints);
    vector_not_allowed(span, place, complaints)
}
