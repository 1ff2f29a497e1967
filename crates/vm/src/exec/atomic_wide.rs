//! `atom` on 128 bits.

use std::sync::atomic::Ordering;

use diag::Span;
use ir::AtomicWide;
use machine::mask::GANG_LANES;
use portable_atomic::AtomicU128;

use super::request::{Request, Resolved};
use super::{Active, Execute, Gang, Step};
use crate::code::Address;
use crate::registers::SlotRef;
use crate::shared::Shared;

/// `atom.exch.b128`, `atom.cas.b128`.
impl Execute for AtomicWide<SlotRef, Address> {
    #[inline(never)]
    fn execute(&self, gang: &mut Gang, active: &Active, shared: &mut Shared, span: Span) -> Step {
        let request = Request { space: self.address.space, bytes: 16, write: true, span };
        let addresses = gang.addresses(&self.address, active);
        let own = |at: *const u8| shared.has(at);
        let mut old_values = [0u128; GANG_LANES];
        gang.each_place(shared, &request, &addresses, active.mask, |gang, lane, place| {
            let value = |halves: [SlotRef; 2]| {
                let [low, high] = halves.map(|half| gang.registers.get(active.window, half, lane));
                u128::from(low) | u128::from(high) << 64
            };
            let (compare, new) = (self.compare.map(value), value(self.new));
            let update = |old: u128| if compare.is_none_or(|compare| compare == old) { new } else { old };
            old_values[lane] = match place {
                Resolved::Host(at) if !own(at) => {
                    // SAFETY: the place holds 16 aligned bytes; kernel memory is only reached through raw pointers
                    // and atomics.
                    let cell = unsafe { AtomicU128::from_ptr(at.cast()) };
                    let updated =
                        cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(update(old)));
                    match updated {
                        Ok(old) | Err(old) => old,
                    }
                }
                // SAFETY: the place holds 16 bytes; only this host thread accesses shared memory.
                Resolved::Host(at) => unsafe {
                    let old = at.cast::<u128>().read_unaligned();
                    at.cast::<u128>().write_unaligned(update(old));
                    old
                },
                Resolved::Local(at) => {
                    let half = |offset: u64| u128::from(gang.local.read(lane, at + offset, 8));
                    let old = half(0) | half(8) << 64;
                    let new = update(old);
                    gang.local.write(lane, at, 8, new as u64);
                    gang.local.write(lane, at + 8, 8, (new >> 64) as u64);
                    old
                }
            };
        })?;
        for (half, dst) in self.dst.into_iter().enumerate() {
            if let Some(dst) = dst {
                gang.write_lanes(dst, active, |_, lane| (old_values[lane] >> (64 * half)) as u64);
            }
        }
        Ok(())
    }
}
