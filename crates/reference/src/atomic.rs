//! `atom` and `red` (PTX ISA, "atom", "red"). One thread runs at a time, so every access is atomic.

use check::module::{Instruction, Operand};
use isa::{Addition, Mod, Opcode, Picks, Space, Type};
use machine::FaultKind;

use crate::Step;
use crate::memory::Address;
use crate::thread::Cpu;

/// The new value in memory after an operation on `old` with the operands `a` and `b`.
pub(crate) fn combine(operation: Mod, ty: Type, addition: Addition, old: u128, a: u128, b: u128) -> u128 {
    let mask = if ty.bits() >= 128 { u128::MAX } else { (1 << ty.bits()) - 1 };
    // Sign extension; only for types of at most 64 bits.
    let signed = |value: u128| {
        let shift = 128 - ty.bits();
        if ty.is_signed() { (value << shift) as i128 >> shift } else { value as i128 }
    };
    if ty.is_float() && matches!(operation, Mod::Add | Mod::Min | Mod::Max) {
        let (picks, operands) = (Picks::new(&[ty], &[]), [old as u64, a as u64]);
        let new = match operation {
            Mod::Add => sem::float::add_to_memory(addition, ty, old as u64, a as u64),
            Mod::Min => sem::float::min(&picks, &operands)[0],
            _ => sem::float::max(&picks, &operands)[0],
        };
        return new.into();
    }
    let new = match operation {
        Mod::And => old & a,
        Mod::Or => old | a,
        Mod::Xor => old ^ a,
        Mod::Exch => a,
        Mod::Cas => {
            if old == a {
                b
            } else {
                old
            }
        }
        Mod::Add => old.wrapping_add(a),
        Mod::Inc => {
            if old >= a {
                0
            } else {
                old + 1
            }
        }
        Mod::Dec => {
            if old == 0 || old > a {
                a
            } else {
                old - 1
            }
        }
        Mod::Min => {
            if signed(old) <= signed(a) {
                old
            } else {
                a
            }
        }
        Mod::Max => {
            if signed(old) >= signed(a) {
                old
            } else {
                a
            }
        }
        _ => old,
    };
    new & mask
}

/// The operation among the picks.
pub(crate) fn operation(picks: &Picks) -> Option<Mod> {
    let is_operation = |m: &Mod| {
        matches!(
            m,
            Mod::And
                | Mod::Or
                | Mod::Xor
                | Mod::Exch
                | Mod::Cas
                | Mod::Add
                | Mod::Inc
                | Mod::Dec
                | Mod::Min
                | Mod::Max
        )
    };
    picks.mods().iter().copied().find(is_operation)
}

impl Cpu<'_, '_> {
    /// How an addition there adds that would be `global` in global memory.
    pub fn addition(address: Address, global: Addition) -> Addition {
        if Self::resolve(address).0 == Space::Shared { Addition::Shared } else { global }
    }

    pub fn atomic(&mut self, i: &Instruction) -> Step {
        let ty = i.picks.ty(0);
        let (dst, rest) = match &i.operands[..] {
            [dst, rest @ ..] if i.form.opcode == Opcode::Atom => (Some(dst), rest),
            rest => (None, rest),
        };
        let ([address, a, more @ ..], Some(operation)) = (rest, operation(&i.picks)) else { return Ok(()) };
        let address = self.address(address, i.picks.space());
        let parts = |operand: &Operand| match operand {
            Operand::Vector(parts) => parts.clone(),
            one => vec![one.clone()],
        };
        // All sources are read before the first destination is written. Each element is a separate atomic access.
        let sources: Vec<u128> = parts(a).iter().map(|part| self.value(part, ty)).collect();
        let b = match more.first() {
            Some(b) if operation == Mod::Cas => self.value(b, ty),
            _ => 0,
        };
        let bytes = u64::from(ty.bytes());
        if let Operand::Vector(parts) = a {
            // A vector is aligned as a whole and lies in global memory.
            let all = bytes * parts.len() as u64;
            if Self::resolve(address).0 != Space::Global {
                return Err(self.access_fault(FaultKind::AddressSpace, address, all, true));
            }
            if !address.at.is_multiple_of(all) {
                return Err(self.access_fault(FaultKind::Misaligned, address, all, true));
            }
        }
        let mut results = Vec::new();
        for (index, a) in sources.into_iter().enumerate() {
            let address = address.offset(index as u64 * bytes);
            let old = self.load(address, bytes)?;
            let new = combine(operation, ty, Self::addition(address, Addition::Global), old, a, b);
            self.store(address, bytes, new)?;
            results.push(old);
        }
        if let Some(dst) = dst {
            for (part, old) in parts(dst).iter().zip(results) {
                self.set_operand(Some(part), old, ty);
            }
        }
        Ok(())
    }
}
