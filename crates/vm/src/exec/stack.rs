//! `alloca`, `stacksave`, `stackrestore` (PTX ISA, "Stack Manipulation Instructions").
//!
//! A thread's allocations have their own part of its local memory, after all frames; each lane has its own end. A
//! function frees its allocations on return: it is lowered to a save on entry and a restore before each return.

use diag::Span;
use ir::StackOp;
use machine::mask::{GANG_LANES, Mask};
use machine::{FaultKind, STACK_BASE};

use super::frame::LOCAL_LIMIT;
use super::{Active, Gang, Step};
use crate::registers::SlotRef;

impl Gang<'_> {
    #[inline(never)]
    pub(super) fn stack(
        &mut self,
        op: StackOp,
        dst: Option<SlotRef>,
        value: Option<SlotRef>,
        active: &Active,
        span: Span,
    ) -> Step {
        let mut results = [0; GANG_LANES];
        self.stacks.resize(self.threads.lanes, 0);
        for lane in active.mask {
            let value = value.map_or(0, |slot| self.registers.get(active.window, slot, lane));
            let end = u64::from(self.stacks[lane]);
            let (result, end) = match op {
                StackOp::Allocate { align } => {
                    let start = end.next_multiple_of(align.into());
                    (start, start.saturating_add(value))
                }
                StackOp::Save => (end, end),
                // An address below the stack wraps around to a value far beyond the limit.
                StackOp::Restore => (0, value.wrapping_sub(STACK_BASE)),
            };
            if end > LOCAL_LIMIT {
                let note = match op {
                    StackOp::Restore => format!("{value:#x} is nothing that stacksave returned"),
                    _ => format!("a thread's stack is {LOCAL_LIMIT} bytes, {end} are needed"),
                };
                return Err(self.fault(FaultKind::StackOverflow, span, Mask::single(lane), None, &note));
            }
            self.local.grow_stack(end);
            self.stacks[lane] = end as u32;
            results[lane] = STACK_BASE + result;
        }
        if let Some(dst) = dst {
            self.write_lanes(dst, active, |_, lane| results[lane]);
        }
        Ok(())
    }
}
