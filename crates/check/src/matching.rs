//! Matches the operands of an instruction with the places of a form.

use isa::{Elements, OperandKind, OperandSpec, Property, Type};

use crate::address::fit_fabric;
use crate::body::BodyChecker;
use crate::context::Context;
use crate::module::Operand;
use crate::place::{Complaints, Place, Verdict, fit_const, is_bits};
use crate::product::is_sparse;
use crate::scalar::{fit_label, fit_mask, fit_scalar};
use crate::texture::fit_geometry;
use crate::value::{Lowered, Value};
use crate::vector::{first_element, fit_pack, fit_vector};

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
        if matches!(lowered.value, Value::Reported) {
            return Verdict::Fits(Operand::Sink);
        }
        let exact = context.has(Property::ExactBf16) && context.picks.types().contains(&Type::Bf16);
        let spec = &OperandSpec { wider: spec.wider && !exact, ..*spec };
        let text = self.module.source.slice(lowered.span);
        let address_bits = self.module.address_size;
        let place = Place { index, spec, context, ty: self.type_of_place(spec, context), text, address_bits };
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
            _ => self.fit_values(lowered, &place, complaints),
        }
    }

    /// The instruction type of an operand.
    fn type_of_place(&self, spec: &OperandSpec, context: &Context) -> Option<Type> {
        match spec.ty {
            isa::OperandType::Address if self.module.address_size == 64 => Some(Type::U64),
            isa::OperandType::Address => Some(Type::U32),
            // Sparse products of tf32 accept any 32 bits; dense ones accept no floats.
            _ if spec.element(context.picks) == Some(Type::Tf32) && is_sparse(context) => Some(Type::B32),
            _ => spec.resolve(context.picks),
        }
    }

    /// Does a value, or a vector of values, fit its place?
    fn fit_values(&self, lowered: &Lowered, place: &Place, complaints: &mut Complaints) -> Verdict {
        let Place { spec, context, .. } = *place;
        match spec.count(context.form, context.picks) {
            (count, braces)
                if context.form.accesses_texels() && (braces || spec.elements == Elements::Vector) =>
            {
                self.fit_texel_values(lowered, place, count, complaints)
            }
            _ if spec.name == "mask" && context.has(Property::CtaMask) => {
                fit_mask(lowered, place, complaints)
            }
            _ if spec.elements == Elements::Geometry => fit_geometry(lowered, place, complaints),
            _ if spec.elements == Elements::Braced && is_vector(lowered) => {
                match first_element(lowered, place) {
                    Some(first) => fit_scalar(&first, place, complaints),
                    None => fit_vector(lowered, place, 1, complaints),
                }
            }
            (_, false) => fit_scalar(lowered, place, complaints),
            (count, true) => fit_vector(lowered, place, count, complaints),
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
