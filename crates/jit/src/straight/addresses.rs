//! Addresses of variables, in slots of their own.

use std::borrow::Cow;

use ir::{Base, Function, MemoryOp, Op, OpKind, Slot, Width};
use isa::Space;

/// Slots for the addresses of variables that operations access without a register. They are temporaries of the code, which nothing
/// else uses.
#[derive(Default)]
pub(crate) struct Addresses(Vec<(Base, Slot)>);

impl Addresses {
    /// Those of a function.
    pub fn of(function: &Function, temporaries: &mut Vec<Width>) -> Addresses {
        let mut addresses = Addresses::default();
        for op in &function.ops {
            let Some(address) = address(&op.kind) else { continue };
            let width = match address.space {
                Space::Shared => Width::W32,
                Space::Global | Space::Const => Width::W64,
                _ => continue,
            };
            if matches!(address.base, Base::Variable(_)) && addresses.slot(address.base).is_none() {
                let index = function.slots.len() + temporaries.len();
                addresses.0.push((address.base, Slot(index as u32)));
                temporaries.push(width);
            }
        }
        addresses
    }

    fn slot(&self, base: Base) -> Option<Slot> {
        self.0.iter().find(|(of, _)| *of == base).map(|(_, slot)| *slot)
    }

    /// The operation that accesses memory at the slot instead of the variable.
    pub fn resolved<'o>(&self, kind: &'o OpKind) -> Cow<'o, OpKind> {
        let slot = address(kind).and_then(|address| self.slot(address.base));
        let Some(slot) = slot else { return Cow::Borrowed(kind) };
        let mut kind = kind.clone();
        match &mut kind {
            OpKind::Load(load) => load.address.base = Base::Slot(slot),
            OpKind::Store(store) => store.address.base = Base::Slot(slot),
            OpKind::Memory(op) => {
                if let MemoryOp::Atomic(atomic) = &mut **op {
                    atomic.address.base = Base::Slot(slot);
                }
            }
            _ => {}
        }
        Cow::Owned(kind)
    }

    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.0.iter().map(|(_, slot)| *slot)
    }

    /// Gives the slot its address, before an operation that accesses memory there.
    pub fn operation(&self, slot: Slot, op: &Op) -> Option<Op> {
        let (base, dst) = *self.0.iter().find(|(_, of)| *of == slot)?;
        Some(Op { guard: None, span: op.span, kind: OpKind::AddressOf { dst, base, offset: 0 } })
    }
}

/// Where an operation accesses memory.
fn address(kind: &OpKind) -> Option<&ir::Address> {
    match kind {
        OpKind::Load(load) => Some(&load.address),
        OpKind::Store(store) => Some(&store.address),
        OpKind::Memory(op) => match &**op {
            MemoryOp::Atomic(atomic) => Some(&atomic.address),
            _ => None,
        },
        _ => None,
    }
}
