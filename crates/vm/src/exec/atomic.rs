//! `atom` and `red`.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use diag::Span;
use ir::AtomicOp;
use isa::{Mod, Picks, Type};

use super::access::{Place, Request};
use super::transfer::{read, write};
use super::{Active, Chunk, Step};
use crate::code::Atomic;
use crate::cta::Shared;
use crate::registers::store;

impl Chunk<'_> {
    #[inline(never)]
    pub(super) fn atomic(&mut self, op: &Atomic, active: &Active, shared: &mut Shared, span: Span) -> Step {
        let bytes = op.ty.bytes();
        let request = Request { space: op.address.space, bytes: bytes.into(), write: true, span };
        let addresses = self.addresses(&op.address, active);
        let update = Update::new(op);
        // Old values go to the destination after all lanes are done: it may be one of the sources.
        let old_values = self.registers.scratch(1);
        // Shared memory is touched by this host thread alone.
        let start = shared.memory.as_ptr() as usize;
        let own = start..start + shared.memory.len();
        self.each_place(shared, &request, &addresses, active.mask, |chunk, lane, place| {
            let a = chunk.registers.get(active.window, op.a, lane);
            let b = op.b.map_or(0, |slot| chunk.registers.get(active.window, slot, lane));
            let old = match place {
                Place::Host(at) if !own.contains(&(at as usize)) => {
                    // SAFETY: the place holds `bytes` aligned bytes.
                    unsafe { update_atomically(at, bytes, |old| update.apply(old, a, b)) }
                }
                // SAFETY: the place holds `bytes` bytes.
                Place::Host(at) => unsafe {
                    let old = read(at, bytes, false);
                    write(at, bytes, update.apply(old, a, b));
                    old
                },
                Place::Local(at) => {
                    let old = chunk.local.read(lane, at, bytes);
                    chunk.local.write(lane, at, bytes, update.apply(old, a, b));
                    old
                }
            };
            if let Some(dst) = op.dst {
                // SAFETY: scratch arrays have an element of any width for every lane.
                unsafe { store(old_values, dst.width, lane, old) }
            }
        })?;
        if let Some(dst) = op.dst {
            self.registers.merge(active.window, dst, 1, active.mask);
        }
        Ok(())
    }
}

/// Replaces a value by what `f` makes of it, as one step for all host threads; returns the old one.
///
/// # Safety
/// `at` must be valid for `bytes` bytes and aligned to them.
unsafe fn update_atomically(at: *mut u8, bytes: u32, f: impl Fn(u64) -> u64) -> u64 {
    macro_rules! update {
        ($atomic:ty, $int:ty) => {{
            // SAFETY: the caller's promise; kernel memory is only reached through raw pointers and atomics.
            let cell = unsafe { <$atomic>::from_ptr(at.cast()) };
            let update = |old: $int| Some(f(old.into()) as $int);
            match cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, update) {
                Ok(old) | Err(old) => old.into(),
            }
        }};
    }
    match bytes {
        2 => update!(AtomicU16, u16),
        4 => update!(AtomicU32, u32),
        _ => update!(AtomicU64, u64),
    }
}

/// What an atomic operation makes of the old value (PTX ISA, "atom").
struct Update {
    op: AtomicOp,
    ty: Type,
    /// Modifiers of the floating-point addition, minimum or maximum that it stands for.
    picks: Picks,
}

impl Update {
    fn new(op: &Atomic) -> Update {
        let mods: &[Mod] = match op.op {
            AtomicOp::Add if op.flush => &[Mod::Rn, Mod::Ftz],
            AtomicOp::Add => &[Mod::Rn],
            _ => &[],
        };
        Update { op: op.op, ty: op.ty, picks: Picks::new(&[op.ty], mods) }
    }

    fn apply(&self, old: u64, a: u64, b: u64) -> u64 {
        if self.ty.is_float() {
            match self.op {
                AtomicOp::Add => return sem::float::add(&self.picks, &[old, a])[0],
                AtomicOp::Min => return sem::float::min(&self.picks, &[old, a])[0],
                AtomicOp::Max => return sem::float::max(&self.picks, &[old, a])[0],
                _ => {}
            }
        }
        let shift = 64 - self.ty.bits();
        let less = if self.ty.is_signed() {
            ((old << shift) as i64) < (a << shift) as i64
        } else {
            old << shift < a << shift
        };
        match self.op {
            AtomicOp::And => old & a,
            AtomicOp::Or => old | a,
            AtomicOp::Xor => old ^ a,
            AtomicOp::Exchange => a,
            AtomicOp::CompareAndSwap if old == a => b,
            AtomicOp::CompareAndSwap => old,
            AtomicOp::Add => old.wrapping_add(a),
            AtomicOp::Inc if old >= a => 0,
            AtomicOp::Inc => old.wrapping_add(1),
            AtomicOp::Dec if old == 0 || old > a => a,
            AtomicOp::Dec => old - 1,
            AtomicOp::Min => {
                if less {
                    old
                } else {
                    a
                }
            }
            AtomicOp::Max => {
                if less {
                    a
                } else {
                    old
                }
            }
        }
    }
}
