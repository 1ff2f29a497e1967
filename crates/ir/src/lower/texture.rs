//! Instructions on textures and surfaces.

use check::module::{AddressBase, Instruction, Operand};
use isa::texture::{Geometry, elements};
use isa::{Access, Effect, OperandKind, OperandSpec, Type};
use smallvec::SmallVec;

use super::Lowering;

use crate::memory::atomic_op;
use crate::op::{OpKind, Slot, TexelKind, TexelOp, Width};
use crate::simple::SimpleOp;

impl Lowering<'_> {
    pub(super) fn texel(&mut self, i: &Instruction, effect: Effect) {
        let guard = self.guard(i);
        let kind = match (effect, atomic_op(i)) {
            (Effect::Tex, _) => TexelKind::Fetch,
            (Effect::Suld, _) => TexelKind::Load,
            (Effect::Sust, _) => TexelKind::Store,
            (Effect::Sured, Some(op)) => TexelKind::Reduce(op),
            _ => TexelKind::Query,
        };
        // A loop around this operation may wait for another thread.
        self.block().may_spin |= matches!(kind, TexelKind::Reduce(_));
        let handle = self.constant(Width::W64, 0);
        let (dst, src) = (SmallVec::new(), SmallVec::new());
        let mut op = TexelOp { kind, form: i.form, picks: i.picks, handle, sampler: None, dst, src };
        let mut resident = None;
        for (spec, operand) in i.form.operands_with(&i.picks).zip(&i.operands) {
            match (spec.kind, operand) {
                (OperandKind::Texels, Operand::Texels(texels)) => {
                    op.handle = self.handle(texels.handle);
                    op.sampler = texels.sampler.map(|sampler| self.handle(sampler));
                    let count = Geometry::of(&i.picks).map_or(0, Geometry::coordinates);
                    self.elements(&mut op.src, &texels.coordinates, count, Type::B32);
                }
                (OperandKind::Handle, Operand::Address(base, _)) => op.handle = self.handle(*base),
                _ if spec.access == Access::Write => {
                    let parts = match operand {
                        Operand::Vector(parts) => &parts[..],
                        Operand::Resident(parts, predicate) => {
                            resident = Some(*predicate);
                            &parts[..]
                        }
                        one => std::slice::from_ref(one),
                    };
                    op.dst.extend(parts.iter().map(|part| self.part(part)));
                }
                _ => self.read_elements(&mut op.src, i, spec, operand),
            }
        }
        self.push(guard, OpKind::Texel(Box::new(op)));
        if let Some(predicate) = resident {
            // All memory is resident.
            let (dst, src) = (self.register(predicate), self.constant(Width::Pred, 1));
            self.push(guard, SimpleOp::Copy { dst, src });
        }
    }

    /// The elements of an operand after the coordinates.
    fn read_elements(
        &mut self,
        src: &mut SmallVec<[Slot; 4]>,
        i: &Instruction,
        spec: &OperandSpec,
        operand: &Operand,
    ) {
        let count = Geometry::of(&i.picks).map_or(1, |geometry| elements(spec, geometry, &i.picks));
        let parts = match operand {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        self.elements(src, parts, count, spec.resolve(&i.picks).unwrap_or(Type::B32));
    }

    /// The first elements of a vector. Elements in wider registers are truncated where they are used.
    fn elements(&mut self, src: &mut SmallVec<[Slot; 4]>, parts: &[Operand], count: usize, ty: Type) {
        for index in 0..count {
            let slot = match parts.get(index) {
                Some(Operand::Sink) | None => self.constant(Width::of(ty), 0),
                Some(part) => self.stored(part, ty),
            };
            src.push(slot);
        }
    }

    /// A handle: the register's contents, or the kind mark and the address of the bound object.
    fn handle(&mut self, base: AddressBase) -> Slot {
        match base {
            AddressBase::Reg(register) => self.register(register),
            AddressBase::Symbol(symbol) => self.address_of(symbol, 0),
            AddressBase::Absolute(handle) => self.constant(Width::W64, handle),
        }
    }
}
