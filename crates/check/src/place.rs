//! Places of operands in an instruction, and what can be said of an operand there.

use diag::{Code, Diagnostic, Span};
use isa::{Effect, Elements, OperandKind, OperandSpec, Property, Space, Type, literal_allowed};
use smallvec::SmallVec;

use crate::context::Context;
use crate::literal::Const;
use crate::module::Operand;
use crate::order::Stage;

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
    pub(crate) fn is_plain_integer(&self) -> bool {
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
    pub(crate) fn compares_bf16(&self) -> bool {
        self.context.form.slots.iter().any(|slot| slot.name == "CmpOp")
            && self.context.picks.types().iter().any(|ty| matches!(ty, Type::Bf16 | Type::Bf16x2))
    }
}

pub(crate) fn is_bits(ty: Option<Type>) -> bool {
    ty.is_some_and(|ty| ty.kind() == isa::Kind::Bits)
}

/// Does the instruction have forms with vectors?
pub(crate) fn takes_vectors(place: &Place) -> bool {
    matches!(place.context.form.action, isa::Action::Effect(Effect::Ld | Effect::St | Effect::Mov))
}

pub(crate) fn fit_const(value: Const, ty: Type) -> Verdict {
    let fits = match ty {
        Type::Pred => matches!(value, Const::Int { .. }),
        _ => literal_allowed(ty, value.form()),
    };
    if fits { Verdict::Fits(Operand::Imm(value.bits(ty))) } else { Verdict::Mismatch }
}
