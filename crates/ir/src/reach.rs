//! The functions and unsupported instructions that a kernel can reach.

use check::module::{FuncId, Symbol};
use diag::Span;
use isa::{Form, Picks};

use crate::function::{Callee, Terminator};
use crate::op::{Base, OpKind};
use crate::{Function, Program};

/// An instruction that no engine executes.
#[derive(Clone, Copy, Debug)]
pub struct Unsupported {
    /// The function that contains it.
    pub function: FuncId,
    /// Its form.
    pub form: &'static Form,
    /// Its modifiers.
    pub picks: Picks,
    /// Its location.
    pub span: Span,
}

impl Program {
    /// Which functions a kernel can call, itself included, by [`FuncId`]. An indirect call can reach every function
    /// whose address the module takes.
    pub fn reachable(&self, kernel: FuncId) -> Vec<bool> {
        let mut seen = vec![false; self.functions.len()];
        let mut work = vec![kernel];
        let mut indirect = false;
        while let Some(id) = work.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            let blocks = self.functions[id.index()].iter().flat_map(|function| &function.blocks);
            for block in blocks {
                let Terminator::Call(call) = &block.terminator else { continue };
                match call.callee {
                    Callee::Direct(callee) => work.push(callee),
                    Callee::Indirect(..) if !std::mem::replace(&mut indirect, true) => {
                        work.extend(self.addressed());
                    }
                    Callee::Indirect(..) => {}
                }
            }
        }
        seen
    }

    /// The functions whose addresses the module takes, in code or in a variable's initializer.
    fn addressed(&self) -> impl Iterator<Item = FuncId> {
        let in_code = self.functions.iter().flatten().flat_map(all_ops).filter_map(|op| match op.kind {
            OpKind::AddressOf { base: Base::Function(id), .. } => Some(id),
            _ => None,
        });
        let relocations = self.module.variables.iter().flat_map(|variable| &variable.relocations);
        let in_variables = relocations.filter_map(|relocation| match relocation.symbol {
            Symbol::Function(id) => Some(id),
            _ => None,
        });
        in_code.chain(in_variables)
    }

    /// The first instruction in source order that no engine executes, among the functions that [`Program::reachable`]
    /// found.
    pub fn unsupported(&self, reached: &[bool]) -> Option<Unsupported> {
        let reached = reached.iter().zip(&self.functions).enumerate();
        let ops = reached.filter(|(_, (reached, _))| **reached).flat_map(|(index, (_, function))| {
            function.iter().flat_map(all_ops).map(move |op| (FuncId(index as u32), op))
        });
        let found = ops.filter_map(|(function, op)| match op.kind {
            OpKind::Unsupported { form, picks } => Some(Unsupported { function, form, picks, span: op.span }),
            _ => None,
        });
        found.min_by_key(|unsupported| unsupported.span.start)
    }
}

fn all_ops(function: &Function) -> impl Iterator<Item = &crate::Op> {
    function.prologue.iter().chain(&function.ops)
}
