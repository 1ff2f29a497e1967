//! What an operation found out when it ran last, so that it need not again: most run in the same way every time.

use ir::Width;
use lanes::LaneArgs;

use super::transfer::{Even, Region};
use super::{Active, Chunk};
use crate::code::{Address, Base, Load, Pure};
use crate::mask::GROUP_LANES;
use crate::memory::HEAP_BASE;
use crate::registers::{SlotRef, Source, Window, is_scalar, lane_width, vector_form};

/// An access of all lanes of a chunk at evenly stepping addresses: which steps, which memory.
#[derive(Clone, Copy)]
pub(super) struct AccessPlan {
    step: u64,
    pitch: u64,
    /// The first and the last byte's distance from the base, the latter exclusive.
    span: (u64, u64),
    /// Addresses that the memory holds; none if there is no plan.
    low: u64,
    high: u64,
    /// The memory, from `low` on.
    storage: *mut u8,
    /// Bits that must be zero in a base.
    align: u64,
    /// Bits that an address has.
    bits: u64,
    rows: lanes::Rows,
    broadcast: bool,
}

impl AccessPlan {
    pub const NONE: AccessPlan = AccessPlan {
        step: 0,
        pitch: 0,
        span: (0, 0),
        low: u64::MAX,
        high: 0,
        storage: std::ptr::null_mut(),
        align: 0,
        bits: 0,
        rows: lanes::Rows { count: 0, groups: 0, pitch: 0 },
        broadcast: false,
    };

    /// The plan of an access of `bytes` bytes that has been checked: if all lanes are active, and each row has its
    /// elements one after the other, or the same.
    pub fn new(
        even: &Even,
        region: Region,
        bytes: u64,
        address: &Address,
        active: &Active,
    ) -> Option<AccessPlan> {
        let Base::Slot(slot) = address.base else { return None };
        let (scalar, rows) = (even.scalar, even.rows);
        let broadcast = scalar.step == 0;
        if !active.all_lanes || !(broadcast || scalar.step == bytes) {
            return None;
        }
        // The device heap gives memory back while a kernel runs: look it up each time.
        if region.base >= HEAP_BASE {
            return None;
        }
        region.holding(even.bounds.0, even.bounds.1 + bytes)?;
        let groups = rows.width() / GROUP_LANES;
        let rows = if even.consecutive(bytes) {
            lanes::Rows { count: rows.lanes / GROUP_LANES, groups: 1, pitch: bytes as usize * GROUP_LANES }
        } else {
            lanes::Rows { count: rows.count(), groups, pitch: scalar.pitch as usize }
        };
        Some(AccessPlan {
            step: slot.width.truncate(scalar.step),
            pitch: slot.width.truncate(scalar.pitch),
            span: (
                even.bounds.0.wrapping_sub(scalar.base),
                (even.bounds.1 + bytes).wrapping_sub(scalar.base),
            ),
            low: region.base,
            high: region.end,
            storage: region.storage,
            align: bytes - 1,
            bits: if slot.width == Width::W64 { u64::MAX } else { u32::MAX.into() },
            rows,
            broadcast,
        })
    }

    /// All lanes' elements of `bytes` bytes stand one after the other.
    pub fn is_consecutive(&self, bytes: u32) -> bool {
        !self.broadcast && self.rows.groups == 1 && self.rows.pitch == bytes as usize * GROUP_LANES
    }

    /// Where the first lane's element stands.
    #[inline]
    pub fn host(&self, base: u64) -> *mut u8 {
        self.storage.wrapping_add(base.wrapping_sub(self.low) as usize)
    }
}

/// A pure operation on registers in certain forms.
pub(super) struct PurePlan {
    pub args: LaneArgs,
    window: Window,
    groups: (usize, usize),
    /// The forms that the sources had ([`vector_form`]).
    forms: [u8; 4],
}

impl PurePlan {
    pub const NONE: PurePlan = PurePlan {
        args: LaneArgs { dst: [std::ptr::null_mut(); 2], src: [std::ptr::null(); 4], step: [0; 4], lanes: 0 },
        window: Window { index: u32::MAX, offset: 0 },
        groups: (0, 0),
        forms: [0; 4],
    };
}

impl Chunk<'_> {
    /// The address of the first lane, if the plan holds for what the registers contain.
    #[inline]
    pub(super) fn planned(&self, plan: &AccessPlan, address: &Address, active: &Active) -> Option<u64> {
        let Base::Slot(slot) = address.base else { return None };
        if !active.all_lanes || !self.registers.has_scalar(active.window, slot) {
            return None;
        }
        let scalar = self.registers.known_scalar(active.window, slot);
        let base = scalar.base.wrapping_add(address.offset) & plan.bits;
        let (start, end) = (base.wrapping_add(plan.span.0), base.wrapping_add(plan.span.1));
        let fits = scalar.step == plan.step
            && scalar.pitch == plan.pitch
            && base & plan.align == 0
            && plan.low <= start
            && start < end
            && end <= plan.high;
        fits.then_some(base)
    }

    /// Loads one element a lane as planned; false if the register does not hold it as it is, or other paths need it.
    #[inline]
    pub(super) fn load_planned(&mut self, op: &Load, active: &Active, plan: &AccessPlan, base: u64) -> bool {
        let [Some(slot)] = op.dst[..] else { return false };
        if slot.width.bytes() != op.bytes as usize || !self.whole(active, slot) {
            return false;
        }
        let start = plan.host(base).cast_const();
        if op.once && plan.rows.groups == 1 && !plan.broadcast {
            self.registers.set_memory(active.window, slot, Source { array: start, step: plan.rows.pitch });
            return true;
        }
        let array = self.registers.overwrite(active.window, slot);
        // SAFETY: the rows are all lanes of the chunk, and their addresses were found within the plan's memory.
        unsafe {
            let copy = self.registers.helpers().copy_rows;
            copy(array, lane_width(slot.width), start, plan.rows, plan.broadcast);
        }
        true
    }

    /// Runs a pure operation as it ran last, if its registers are as they were.
    #[inline(never)]
    pub(super) fn pure_planned(&mut self, op: &Pure, active: &Active) -> bool {
        let plan = &self.pure_plans[op.plan];
        if plan.window != active.window || plan.groups != active.groups {
            return false;
        }
        let (mut common, mut differs) = (u8::MAX, 0);
        for (&slot, form) in op.src().iter().zip(plan.forms) {
            let forms = self.registers.forms(active.window, slot);
            common &= forms;
            differs |= vector_form(forms) ^ form;
        }
        if differs != 0 || is_scalar(common) {
            return false;
        }
        let [first, second] = op.dst;
        if !(self.may_write(active, first) && self.may_write(active, second)) {
            return false;
        }
        let Some(handler) = op.lanes else { return false };
        if let Some(slot) = first {
            self.registers.overwrite(active.window, slot);
        }
        if let Some(slot) = second {
            self.registers.overwrite(active.window, slot);
        }
        // SAFETY: as when the plan was made: the arrays are the same, and hold what they did.
        unsafe { handler(&self.pure_plans[op.plan].args) }
        true
    }

    fn may_write(&self, active: &Active, slot: Option<SlotRef>) -> bool {
        slot.is_none_or(|slot| self.whole(active, slot))
    }

    /// The forms of the sources for [`Chunk::plan_pure`]. A destination may be a source: it has another one afterwards.
    pub(super) fn forms(&self, op: &Pure, active: &Active) -> [u8; 4] {
        let mut forms = [0; 4];
        for (form, &slot) in forms.iter_mut().zip(op.src()) {
            *form = vector_form(self.registers.forms(active.window, slot));
        }
        forms
    }

    /// Notes how an operation ran that wrote its results to its registers.
    pub(super) fn plan_pure(&mut self, op: &Pure, active: &Active, args: LaneArgs, forms: [u8; 4]) {
        // Memory is elsewhere every time.
        if forms[..op.sources.min(4)].iter().all(|&form| form != 0) {
            self.pure_plans[op.plan] = PurePlan { args, window: active.window, groups: active.groups, forms };
        }
    }
}
