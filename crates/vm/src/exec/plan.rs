//! What an operation found out when it ran last, so that it need not again: most run in the same way every time.

use ir::Width;
use lanes::LaneArgs;

use super::transfer::{Even, Region};
use super::{Active, Chunk};
use crate::code::{Address, Base, Load, Pure};
use crate::mask::GROUP_LANES;
use crate::memory::HEAP_BASE;
use crate::registers::{SlotRef, Source, Window, is_memory, lane_width, without_pattern};

/// An access of all lanes of a chunk at evenly stepping addresses: which steps, which memory.
pub(super) struct AccessPlan {
    step: u64,
    pitch: u64,
    /// Bits that an address has.
    bits: u64,
    /// Bits that must be zero in a base.
    align: u64,
    /// The least base for which all accesses lie in the memory, and how much greater others may be.
    least: u64,
    room: u64,
    /// Where the first lane's element stands for the least base; null if there is no plan.
    first: *mut u8,
    rows: lanes::Rows,
    broadcast: bool,
    /// All lanes' elements stand one after the other.
    consecutive: bool,
}

impl AccessPlan {
    pub const NONE: AccessPlan = AccessPlan {
        step: 0,
        pitch: 0,
        bits: 0,
        align: u64::MAX,
        least: u64::MAX,
        room: 0,
        first: std::ptr::null_mut(),
        rows: lanes::Rows { count: 0, groups: 0, pitch: 0 },
        broadcast: false,
        consecutive: false,
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
        let (start, end) = (even.bounds.0, even.bounds.1 + bytes);
        region.holding(start, end)?;
        let groups = rows.width() / GROUP_LANES;
        let consecutive = even.consecutive(bytes);
        let rows = if consecutive {
            lanes::Rows { count: rows.lanes / GROUP_LANES, groups: 1, pitch: bytes as usize * GROUP_LANES }
        } else {
            lanes::Rows { count: rows.count(), groups, pitch: scalar.pitch as usize }
        };
        let least = scalar.base - (start - region.base);
        Some(AccessPlan {
            step: slot.width.truncate(scalar.step),
            pitch: slot.width.truncate(scalar.pitch),
            bits: if slot.width == Width::W64 { u64::MAX } else { u32::MAX.into() },
            align: bytes - 1,
            least,
            room: region.end - end + (start - region.base),
            // The first lane's element is that of the base.
            first: region.storage.wrapping_add(least.wrapping_sub(region.base) as usize),
            rows,
            broadcast,
            consecutive,
        })
    }

    /// All lanes' elements stand one after the other.
    pub fn is_consecutive(&self) -> bool {
        self.consecutive
    }
}

/// A pure operation on registers in certain forms.
pub(super) struct PurePlan {
    pub args: LaneArgs,
    window: Window,
    groups: (usize, usize),
    /// The sources, the first one again where there are fewer than four, and the forms that they had
    /// ([`without_pattern`]).
    src: [SlotRef; 4],
    forms: [u8; 4],
    /// Some stand in memory, which is elsewhere every time.
    memory: bool,
}

impl PurePlan {
    pub const NONE: PurePlan = PurePlan {
        args: LaneArgs { dst: [std::ptr::null_mut(); 2], src: [std::ptr::null(); 4], step: [0; 4], lanes: 0 },
        window: Window { index: u32::MAX, offset: 0 },
        groups: (0, 0),
        src: [SlotRef { index: 0, offset: 0, group_bytes: 0, width: Width::Pred }; 4],
        forms: [0; 4],
        memory: false,
    };
}

impl Chunk<'_> {
    /// The plan of an access and where its first lane's element stands, if it holds for what the registers contain.
    #[inline(always)]
    pub(super) fn planned(&self, address: &Address, active: &Active) -> Option<(&AccessPlan, *mut u8)> {
        let Base::Slot(slot) = address.base else { return None };
        if !active.all_lanes {
            return None;
        }
        let plan = &self.access_plans[address.place];
        let scalar = self.registers.scalar_if_known(active.window, slot)?;
        let base = scalar.base.wrapping_add(address.offset) & plan.bits;
        let distance = base.wrapping_sub(plan.least);
        let fits = scalar.step == plan.step
            && scalar.pitch == plan.pitch
            && base & plan.align == 0
            && distance <= plan.room;
        fits.then(|| (plan, plan.first.wrapping_add(distance as usize)))
    }

    /// Loads one element a lane as planned; false if the plan does not hold, the register does not hold the element as
    /// it is, or other paths need it.
    #[inline(always)]
    pub(super) fn load_planned(&mut self, op: &Load, active: &Active) -> bool {
        let [Some(slot)] = op.dst[..] else { return false };
        let Some((plan, start)) = self.planned(&op.address, active) else { return false };
        let start = start.cast_const();
        if !active.alone && !self.whole(active, slot) {
            return false;
        }
        let is_bytes = op.bytes == 1 && slot.width == Width::W16 && plan.consecutive;
        if slot.width.bytes() != op.bytes as usize && !is_bytes {
            return false;
        }
        let (rows, broadcast) = (plan.rows, plan.broadcast);
        if op.once && rows.groups == 1 && !broadcast {
            self.registers.set_memory(active.window, slot, Source { array: start, step: rows.pitch });
            return true;
        }
        let array = self.registers.overwrite(active.window, slot);
        let helpers = self.registers.helpers();
        // SAFETY: the rows are all lanes of the chunk, and their addresses were found within the plan's memory.
        unsafe {
            match is_bytes {
                true => (helpers.widen_bytes)(array, start, op.signed, self.lanes),
                false => (helpers.copy_rows)(array, lane_width(slot.width), start, rows, broadcast),
            }
        }
        true
    }

    /// Runs a pure operation as it ran last, if its registers are as they were.
    #[inline(never)]
    pub(super) fn pure_planned(&mut self, op: &Pure, active: &Active) -> bool {
        if !self.plan_fits(op, active) {
            return false;
        }
        let [first, second] = op.dst;
        if !active.alone && !(self.may_write(active, first) && self.may_write(active, second)) {
            return false;
        }
        let Some(handler) = op.lanes else { return false };
        let args = self.planned_args(op, active);
        // SAFETY: as when the plan was made: the arrays are the same, and hold what they did.
        unsafe { handler(args) }
        for slot in op.dst.iter().flatten() {
            self.registers.overwrite(active.window, *slot);
        }
        true
    }

    /// The operation has a plan, and its sources have the forms that they had then.
    #[inline(always)]
    pub(super) fn plan_fits(&self, op: &Pure, active: &Active) -> bool {
        let plan = &self.pure_plans[op.plan];
        if plan.window != active.window || plan.groups != active.groups {
            return false;
        }
        let mut differs = 0;
        for (&slot, form) in plan.src.iter().zip(plan.forms) {
            differs |= self.registers.forms(active.window, slot) ^ form;
        }
        without_pattern(differs) == 0
    }

    /// The arguments of a plan that fits.
    #[inline(always)]
    pub(super) fn planned_args(&mut self, op: &Pure, active: &Active) -> &LaneArgs {
        let plan = &mut self.pure_plans[op.plan];
        if plan.memory {
            for (i, &slot) in plan.src.iter().enumerate().take(op.sources) {
                if is_memory(plan.forms[i]) {
                    let memory = self.registers.memory(active.window, slot);
                    plan.args.src[i] = memory.at_group(active.groups.0);
                    plan.args.step[i] = memory.step;
                }
            }
        }
        &plan.args
    }

    fn may_write(&self, active: &Active, slot: Option<SlotRef>) -> bool {
        slot.is_none_or(|slot| self.whole(active, slot))
    }

    /// The sources for [`Chunk::plan_pure`] and their forms. A destination may be a source: it has another form
    /// afterwards.
    pub(super) fn forms(&self, op: &Pure, active: &Active) -> ([SlotRef; 4], [u8; 4]) {
        let src = std::array::from_fn(|i| op.src[if i < op.sources { i } else { 0 }]);
        (src, src.map(|slot| without_pattern(self.registers.forms(active.window, slot))))
    }

    /// Notes how an operation ran, which has a source and four at most.
    pub(super) fn plan_pure(
        &mut self,
        op: &Pure,
        active: &Active,
        args: LaneArgs,
        (src, forms): ([SlotRef; 4], [u8; 4]),
    ) {
        let memory = forms.iter().any(|&form| is_memory(form));
        self.pure_plans[op.plan] =
            PurePlan { args, window: active.window, groups: active.groups, src, forms, memory };
    }
}
