//! Operations of a whole warp on matrices.

use check::module::{Instruction, Operand};
use isa::{Access, Opcode, OperandKind, Type};
use smallvec::SmallVec;

use super::Lowering;
use crate::op::{MatrixKind, MatrixOp, Slot, Width};
use crate::warp::WarpOp;

impl Lowering<'_> {
    pub(super) fn matrix(&mut self, i: &Instruction, kind: MatrixKind) {
        let guard = self.guard(i);
        let mut op = MatrixOp {
            kind,
            form: i.form,
            picks: i.picks,
            dst: SmallVec::new(),
            src: SmallVec::new(),
            address: None,
            stride: None,
        };
        for (spec, operand) in i.form.operands_with(&i.picks).zip(&i.operands) {
            let parts = match operand {
                Operand::Vector(parts) => &parts[..],
                one => std::slice::from_ref(one),
            };
            let ty = spec.resolve(&i.picks).unwrap_or(Type::B32);
            match spec.kind {
                OperandKind::Address => op.address = Some(self.address(operand, i.picks.space())),
                _ if spec.name == "stride" => op.stride = Some(self.source(operand, Type::U32)),
                _ if spec.access == Access::Write => {
                    op.dst.extend(parts.iter().map(|part| self.part(part)));
                    // `wgmma` also reads its accumulator.
                    if i.form.opcode == Opcode::Wgmma {
                        op.src.extend(parts.iter().map(|part| self.source(part, ty)));
                    }
                }
                _ => op.src.extend(parts.iter().map(|part| self.source(part, ty))),
            }
        }
        // Every live lane of the warp takes part.
        let members = Some(self.constant(Width::W32, u32::MAX.into()));
        self.warp_operation(guard, WarpOp::Matrix(Box::new(op)), members);
    }

    /// One destination register.
    pub(super) fn part(&mut self, part: &Operand) -> Option<Slot> {
        match part {
            Operand::Reg(register) => Some(self.register(*register)),
            _ => None,
        }
    }
}
