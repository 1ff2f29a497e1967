//! Instructions that the checker adds. They move vectors that functions receive or return, which are passed as one
//! register; special registers, where engines accept only registers; and addresses of elements.

use diag::Span;
use isa::{OperandKind, Picks, SpecialRegister, Type};
use smallvec::SmallVec;
use syntax::tree::Parameter;

use crate::body::{BodyChecker, COMPONENTS, Packed};
use crate::function::whole_type;
use crate::module::{Instruction, Node, Operand, RegId, Register};
use crate::scope::Entity;

fn vector(elements: &[RegId]) -> Operand {
    Operand::Vector(elements.iter().map(|&id| Operand::Reg(id)).collect())
}

impl<'a> BodyChecker<'_, 'a> {
    pub(crate) fn new_register(&mut self, name: String, ty: Type) -> RegId {
        self.body.registers.push(Register { name, ty });
        RegId(self.body.registers.len() as u32 - 1)
    }

    /// Adds an instruction, and returns the new register that holds its result.
    pub(crate) fn compute(
        &mut self,
        opcode: &str,
        modifiers: &[&str],
        ty: Type,
        sources: Vec<Operand>,
        span: Span,
    ) -> RegId {
        let name = self.module.source.slice(span).to_owned();
        let result = self.new_register(name, ty);
        let operands: Vec<_> = std::iter::once(Operand::Reg(result)).chain(sources).collect();
        if let Ok(selected) = isa::select(opcode, modifiers, operands.len()) {
            let (form, picks) = (selected.form(), selected.picks);
            let instruction = Instruction { form, picks, guard: None, operands, span };
            self.body.code.push(Node::Instruction(instruction));
        }
        result
    }

    fn push_move(&mut self, ty: Type, operands: Vec<Operand>, span: Span) {
        let is_scalar = |form: &&isa::Form| form.operands[0].kind == OperandKind::MovDestination;
        let Some(form) = isa::forms("mov").iter().find(is_scalar) else { return };
        let picks = Picks::new(&[ty], &[]);
        self.body.code.push(Node::Instruction(Instruction { form, picks, guard: None, operands, span }));
    }

    /// `whole = {elements}`
    pub(crate) fn pack(&mut self, packed: &Packed, span: Span) {
        let ty = self.body.registers[packed.whole.index()].ty;
        self.push_move(ty, vec![Operand::Reg(packed.whole), vector(&packed.elements)], span);
    }

    /// `{elements} = whole`
    pub(crate) fn unpack(&mut self, packed: &Packed, span: Span) {
        let ty = self.body.registers[packed.whole.index()].ty;
        self.push_move(ty, vec![vector(&packed.elements), Operand::Reg(packed.whole)], span);
    }

    /// Packs a vector register that an instruction passes as one register.
    pub(crate) fn packed(&mut self, elements: SmallVec<[RegId; 4]>, element: Type) -> Packed {
        let first = elements.first().map_or("", |id| &self.body.registers[id.index()].name);
        let name = first.strip_suffix(".x").unwrap_or(first).to_owned();
        let whole = self.new_register(name, whole_type(element, elements.len()));
        Packed { whole, elements }
    }

    /// The elements of a parameter that is declared as a vector register, and the meaning of its name.
    pub(crate) fn vector_parameter(
        &mut self,
        tree: &Parameter<'a>,
        whole: RegId,
    ) -> Option<(Entity, Packed)> {
        let lanes: u8 = match tree.qualifiers.vector?.text {
            "v2" => 2,
            "v4" => 4,
            _ => return None,
        };
        let element = Type::from_name(tree.qualifiers.ty.text)?;
        let (mut ids, mut elements) = ([None; 4], SmallVec::new());
        for (id, component) in ids.iter_mut().zip(COMPONENTS).take(usize::from(lanes)) {
            let register = self.new_register(format!("{}.{component}", tree.name.text), element);
            *id = Some(register);
            elements.push(register);
        }
        Some((Entity::VectorRegister(element, lanes, ids), Packed { whole, elements }))
    }

    /// A new register that holds the value of a special register before the current instruction.
    pub(crate) fn in_register(&mut self, special: SpecialRegister, span: Span) -> (RegId, Type) {
        let ty = special.ty();
        let register = self.new_register(special.name().to_owned(), ty);
        self.push_move(ty, vec![Operand::Reg(register), Operand::Special(special)], span);
        (register, ty)
    }
}
