//! Operands that are addresses, with and without brackets (PTX ISA, "Addresses as Operands").

use diag::{Code, Span};
use isa::{Effect, Opcode, Property, Space, Type, register_allowed};

use crate::body::BodyChecker;
use crate::context::Context;
use crate::literal::Const;
use crate::module::{AddressBase, Operand, Symbol, Tensor};
use crate::near_fit::{
    address_of_parameter, must_be_register, result_discarded, special_not_allowed, special_vector,
    vector_not_allowed,
};
use crate::place::{Complaints, Place, Verdict, complain};
use crate::scalar::fit_scalar;
use crate::value::{Base, Lowered, SymbolValue, Value};
use crate::vector::fit_vector;

impl BodyChecker<'_, '_> {
    /// The base and the offset of the address of a variable or of one of its elements.
    fn base_of(&self, symbol: SymbolValue) -> (Base, i64) {
        match symbol.element {
            Some(id) => (Base::Register(id, self.body.registers[id.index()].ty), 0),
            None => (Base::Symbol(symbol), symbol.offset),
        }
    }

    pub(crate) fn fit_address(
        &self,
        lowered: &Lowered,
        place: &Place,
        complaints: &mut Complaints,
    ) -> Verdict {
        let action = place.context.form.action;
        let address = match lowered.value {
            Value::Address(base, offset) => (base, offset),
            Value::Indexed(symbol) if matches!(action, isa::Action::Effect(Effect::Ld | Effect::St)) => {
                self.base_of(symbol)
            }
            _ if action == isa::Action::Effect(Effect::CopyTensor) => {
                match self.without_brackets(lowered, place, complaints) {
                    Ok(address) => address,
                    Err(verdict) => return verdict,
                }
            }
            _ => return fit_barrier(lowered, place),
        };
        if action == isa::Action::Effect(Effect::TensorMma) && !matches!(address.0, Base::Register(..)) {
            return Verdict::Mismatch;
        }
        self.fit_base(address, lowered.span, place, complaints)
    }

    /// An address without brackets, which tensor copies take. The error is what else they make of an operand.
    fn without_brackets(
        &self,
        lowered: &Lowered,
        place: &Place,
        complaints: &mut Complaints,
    ) -> Result<(Base, i64), Verdict> {
        let span = lowered.span;
        let could_hold = |ty: Type| (2..=128).contains(&ty.bits());
        let of_register = |id, offset| Verdict::Fits(Operand::Address(AddressBase::Reg(id), offset));
        Err(match lowered.value {
            Value::Register(id, ty) if could_hold(ty) => of_register(id, 0),
            Value::RegisterPlus(id, ty, offset) if could_hold(ty) && !ty.is_float() => {
                of_register(id, offset)
            }
            Value::Symbol(symbol) | Value::Indexed(symbol) => return Ok(self.base_of(symbol)),
            Value::Const(Const::Int { value, .. }) => return Ok((Base::Absolute(value), 0)),
            Value::Function(..) | Value::Label(..) | Value::Unknown | Value::UnknownSum => {
                return Ok((Base::Unknown, 0));
            }
            Value::Special(_) => special_not_allowed(span, place, complaints),
            Value::SpecialVector(_) => special_vector(span, place, complaints),
            Value::Vector(..) | Value::VectorRegister(..) => vector_not_allowed(span, place, complaints),
            Value::Part(id, _, selector) if place.index == 0 => {
                crate::video::destination(id, selector, span, place, complaints)
            }
            Value::Part(id, _, selector) => crate::video::source(id, selector, span, place, complaints),
            Value::Sink if place.index == 0 => result_discarded(span, place, complaints),
            _ => Verdict::Mismatch,
        })
    }

    /// `[map, {x, y}]`: a tensor map, and as many coordinates as the instruction requires.
    pub(crate) fn fit_tensor(
        &self,
        lowered: &Lowered,
        place: &Place,
        complaints: &mut Complaints,
    ) -> Verdict {
        let Value::Tensor(base, offset, inner) = &lowered.value else { return Verdict::Mismatch };
        let [coordinates] = &inner[..] else { return Verdict::Mismatch };
        let count = isa::tensor_coordinates(place.context.picks).unwrap_or(0);
        let spec = &isa::OperandSpec { wider: false, ..*place.spec };
        let numbers = Place { spec, ty: Some(Type::S32), ..*place };
        let coordinates = match fit_vector(coordinates, &numbers, count, complaints) {
            Verdict::Fits(Operand::Vector(coordinates)) => coordinates,
            other => return other,
        };
        match self.fit_base((*base, *offset), lowered.span, place, complaints) {
            Verdict::Fits(map @ Operand::Address(..)) => {
                Verdict::Fits(Operand::Tensor(Box::new(Tensor { map, coordinates })))
            }
            other => other,
        }
    }

    /// Fits the base of an address in brackets: one match over all that a base can be.
    fn fit_base(
        &self,
        (base, offset): (Base, i64),
        span: Span,
        place: &Place,
        complaints: &mut Complaints,
    ) -> Verdict {
        let name = place.context.name;
        let space = place.address_space();
        let illegal = |complaints: &mut Complaints, help: Option<&str>| {
            let message = format!("Illegal operand type to instruction '{name}'");
            complain(complaints, Code::IllegalOperand, span, message, help);
        };
        let unusable = |complaints: &mut Complaints, symbol: &str, ty: &str| {
            let message = format!(
                "Illegal to use symbol '{symbol}' of type {ty} as address operand. Use integer or bit only."
            );
            complain(
                complaints,
                Code::IllegalAddress,
                span,
                message,
                Some("an address is in a .u64 or .b64 register"),
            );
        };
        let base = match base {
            Base::Register(_, ty) if ty.bits() > 64 => {
                let message = "Illegal operand type for address/array-index".to_owned();
                complain(
                    complaints,
                    Code::IllegalAddress,
                    span,
                    message,
                    Some("an address is in a .u64 or .b64 register"),
                );
                return Verdict::Fits(Operand::Sink);
            }
            Base::Register(id, ty) => {
                let is_added_to = matches!(
                    place.context.form.action,
                    isa::Action::Effect(Effect::TensorCp | Effect::TensorShift)
                );
                if ty.bits() != 32 && place.spec.name == "taddr" && !is_added_to {
                    let register = &self.body.registers[id.index()].name;
                    let message = format!(
                        "Illegal to use symbol '{register}' of type {ty} as address operand. Use a 32-bit integer or bit register only."
                    );
                    complain(complaints, Code::IllegalAddress, span, message, None);
                }
                if ty == Type::Pred || ty.is_float() {
                    unusable(complaints, &self.body.registers[id.index()].name, &ty.to_string());
                }
                if ty == Type::Pred {
                    illegal(complaints, None);
                }
                if place.context.picks.has(isa::Mod::ParamFunc) {
                    let message =
                        format!("Illegal state space for address operand '::func' with instruction '{name}'");
                    let help = "parameters of a call are named: `[out]`";
                    complain(complaints, Code::SpaceMismatch, span, message, Some(help));
                }
                AddressBase::Reg(id)
            }
            Base::Symbol(symbol) => {
                let opcode = place.context.form.opcode;
                if symbol.opaque.is_some() && place.context.has(Property::NoHandles) {
                    illegal(
                        complaints,
                        Some("a handle is read by the instructions on textures and surfaces"),
                    );
                }
                if opcode == Opcode::Prefetchu && matches!(symbol.space, Space::Local | Space::Shared) {
                    let message = "Non-generic address is not supported as operand for prefetchu instruction";
                    complain(complaints, Code::SpaceMismatch, span, message.to_owned(), None);
                }
                if opcode == Opcode::Mbarrier && space == Space::Generic && symbol.space != Space::Shared {
                    let text = self.module.source.slice(span);
                    let text = text.trim_matches(|c| matches!(c, '[' | ']' | ' '));
                    let message =
                        format!("Illegal state space for address operand '{text}' with instruction '{name}'");
                    complain(
                        complaints,
                        Code::SpaceMismatch,
                        span,
                        message,
                        Some("mbarrier objects are in .shared"),
                    );
                }
                self.check_space(symbol, space, span, place, complaints);
                return Verdict::Fits(Operand::Address(AddressBase::Symbol(symbol.symbol), offset));
            }
            Base::Absolute(address) => {
                if space != Space::Local {
                    let message = "Immediate addresses allowed only for .local state space".to_owned();
                    let help = "put the address into a register first";
                    complain(complaints, Code::ImmediateAddress, span, message, Some(help));
                }
                AddressBase::Absolute(address)
            }
            Base::Code => {
                let symbol = self.module.source.slice(span).trim_matches(['[', ']', ' ']);
                unusable(complaints, symbol, "unexpected");
                illegal(complaints, None);
                illegal(complaints, None);
                return Verdict::Fits(Operand::Sink);
            }
            Base::Reported => return Verdict::Fits(Operand::Sink),
            Base::Unknown => {
                illegal(complaints, None);
                return Verdict::Fits(Operand::Sink);
            }
        };
        Verdict::Fits(Operand::Address(base, offset))
    }

    /// Checks that the variable is in the instruction's state space, and that the instruction may access it.
    fn check_space(
        &self,
        symbol: SymbolValue,
        space: Space,
        span: Span,
        place: &Place,
        complaints: &mut Complaints,
    ) {
        let name = place.context.name;
        if !space_allows(space, symbol.space) {
            let message =
                format!("State space mismatch between instruction and address in instruction '{name}'");
            let help = format!("the variable is in .{} space", space_name(symbol.space));
            complain(complaints, Code::SpaceMismatch, span, message, Some(&help));
            return;
        }
        let writes = matches!(place.context.form.action, isa::Action::Effect(Effect::St));
        match symbol.symbol {
            Symbol::Param(i) if writes => {
                let param = self.params.get(i as usize).map_or("", |p| &p.name);
                let message = format!("Illegal to write to function input parameter '{param}'");
                complain(complaints, Code::ParameterAccess, span, message, None);
            }
            Symbol::Return(i) if !writes => {
                let param = self.returns.get(i as usize).map_or("", |p| &p.name);
                let message = format!("Illegal to read function return parameter '{param}'");
                complain(complaints, Code::ParameterAccess, span, message, None);
            }
            _ => {}
        }
    }

    /// An address without brackets: `cvta`, `isspacep`, `istypep`, `mapa`, `getctarank`.
    pub(crate) fn fit_address_value(
        &self,
        lowered: &Lowered,
        place: &Place,
        complaints: &mut Complaints,
    ) -> Verdict {
        let ty = place.ty.unwrap_or(Type::U64);
        let action = place.context.form.action;
        match lowered.value {
            Value::Register(id, register) if action == isa::Action::Effect(Effect::IsSpaceP) => {
                let fits = [Type::U32, Type::U64].into_iter().any(|ty| register_allowed(ty, register, false));
                if fits && register != Type::F16x2 {
                    Verdict::Fits(Operand::Reg(id))
                } else {
                    Verdict::Mismatch
                }
            }
            Value::Indexed(_) if place.context.picks.has(isa::Mod::To) => Verdict::Mismatch,
            Value::Symbol(symbol) | Value::Indexed(symbol) if matches!(action, isa::Action::Effect(_)) => {
                self.fit_symbol_value(symbol, lowered.span, place, complaints)
            }
            Value::Function(id, offset)
                if matches!(action, isa::Action::Effect(Effect::Mapa | Effect::GetCtaRank)) =>
            {
                Verdict::Fits(Operand::Symbol(Symbol::Function(id), offset))
            }
            Value::Function(..) if action == isa::Action::Effect(Effect::Cvta) => {
                let name = place.context.name;
                let message =
                    format!("State space mismatch between instruction and address in instruction '{name}'");
                complain(complaints, Code::SpaceMismatch, lowered.span, message, None);
                Verdict::Fits(Operand::Sink)
            }
            Value::Function(..) => Verdict::Mismatch,
            Value::Symbol(SymbolValue { sum, opaque, ty: declared, .. })
                if sum || opaque.is_some() || !register_allowed(ty, declared, false) =>
            {
                Verdict::Mismatch
            }
            _ => fit_scalar(lowered, &Place { ty: Some(ty), ..*place }, complaints),
        }
    }

    /// Fits a variable for [`Self::fit_address_value`].
    fn fit_symbol_value(
        &self,
        symbol: SymbolValue,
        span: Span,
        place: &Place,
        complaints: &mut Complaints,
    ) -> Verdict {
        let address = Operand::Symbol(symbol.symbol, symbol.offset);
        let fits = Verdict::Fits(symbol.element.map_or(address, Operand::Reg));
        let space = match place.context.form.action {
            // With an offset it is an expression, which `isspacep` accepts.
            isa::Action::Effect(Effect::IsSpaceP) if symbol.sum => return fits,
            isa::Action::Effect(Effect::IsSpaceP) => return must_be_register(span, place, complaints),
            isa::Action::Effect(Effect::Cvta) => place.context.picks.space(),
            _ => Space::Shared,
        };
        if place.context.picks.has(isa::Mod::To) {
            return must_be_register(span, place, complaints);
        }
        if matches!(symbol, SymbolValue { symbol: Symbol::Variable(_), space: Space::Param, .. }) {
            address_of_parameter(span, place, complaints);
            if space == Space::Param {
                return Verdict::Fits(Operand::Sink);
            }
        }
        if space != symbol.space {
            self.check_space(symbol, space, span, place, complaints);
        }
        fits
    }
}

/// The mbarrier object of a bulk copy, which may stand there without brackets.
fn fit_barrier(lowered: &Lowered, place: &Place) -> Verdict {
    let Context { form, picks, .. } = place.context;
    if form.action != isa::Action::Effect(Effect::CpAsyncBulk) || place.spec.name != "mbar" {
        return Verdict::Mismatch;
    }
    let is_multicast = picks.mods().iter().any(|m| m.name().starts_with("multicast::"));
    let base = match lowered.value {
        Value::Register(id, ty)
            if [Type::U16, Type::U64].into_iter().any(|wanted| register_allowed(wanted, ty, false)) =>
        {
            AddressBase::Reg(id)
        }
        Value::Const(Const::Int { value, .. }) if !is_multicast => AddressBase::Absolute(value),
        _ => return Verdict::Mismatch,
    };
    Verdict::Fits(Operand::Address(base, 0))
}

fn space_name(space: Space) -> &'static str {
    match space {
        Space::Generic => "generic",
        Space::Global => "global",
        Space::Shared => "shared",
        Space::Local => "local",
        Space::Const => "const",
        Space::Param => "param",
        Space::Reg => "reg",
        Space::SpecialRegister => "sreg",
        Space::Tex => "tex",
    }
}

/// `[endpoint, offset]`: registers of 32 and 64 bits. With `.counted::bytes`, also the offset of a counter.
pub(crate) fn fit_fabric(lowered: &Lowered, place: &Place) -> Verdict {
    let Value::Tensor(Base::Register(endpoint, ty), 0, offsets) = &lowered.value else {
        return Verdict::Mismatch;
    };
    let count = if place.context.picks.has(isa::Mod::CountedBytes) { 2 } else { 1 };
    let offset = |offset: &Lowered| match offset.value {
        Value::Register(id, ty) if isa::register_allowed(Type::U64, ty, false) => Some(Operand::Reg(id)),
        _ => None,
    };
    let coordinates: Option<Vec<_>> = offsets.iter().map(|part| offset(part)).collect();
    match coordinates.filter(|coordinates| coordinates.len() == count) {
        Some(coordinates) if isa::register_allowed(Type::U32, *ty, false) => {
            Verdict::Fits(Operand::Tensor(Box::new(Tensor { map: Operand::Reg(*endpoint), coordinates })))
        }
        _ => Verdict::Mismatch,
    }
}

/// May an instruction on state space `space` use an address in state space `symbol`?
fn space_allows(space: Space, symbol: Space) -> bool {
    match space {
        Space::Generic => matches!(symbol, Space::Global | Space::Shared | Space::Local | Space::Generic),
        _ => space == symbol,
    }
}
