//! What an operation found out when it ran last, so that it need not again: most run in the same way every time.
//!
//! An access notes which memory it used, a pure operation which arrays, and both run so again if the forms of their registers are the same:
//! a few comparisons find that out. No inline cache is made of memory that may be gone the next time: the device heap, and shared memory of another
//! block of the cluster.
//!
//! Narrowest tests (`tests/run`): `fault_in_loop`, `device_heap`, `teams_with_strides`.

use ir::Width;
use lanes::{Factor, LaneArgs, LaneFn};

use super::addresses::{Even, Region};
use super::{Active, Gang};
use crate::code::{Address, Base, Load, Pure, Store};
use crate::mask::GROUP_LANES;
use crate::memory::HEAP_BASE;
use crate::registers::{Groups, SlotRef, is_memory, lane_width, without_pattern};

/// An access of all lanes of a gang at evenly stepping addresses: which steps, which memory.
pub(super) struct AccessCache {
    step: u64,
    pitch: u64,
    block_stride: u64,
    /// Bits that an address has.
    bits: u64,
    /// Bits that must be zero in a base.
    align: u64,
    /// The least base for which all accesses lie in the memory, and how much greater others may be.
    least: u64,
    max_distance: u64,
    /// Where the first lane's element stands for the least base; null if there is no inline cache.
    first: *mut u8,
    /// The rows of one block, or of all if these go on from block to block.
    rows: lanes::MemoryRows,
    blocks: usize,
    /// Bytes from block to block: in memory, modulo 2^64, and in an array.
    between_blocks: (usize, usize),
    broadcast: bool,
    /// The elements of a block's lanes stand one after the other.
    joined: bool,
    /// All lanes' elements do.
    consecutive: bool,
}

impl AccessCache {
    pub const NONE: AccessCache = AccessCache {
        step: 0,
        pitch: 0,
        block_stride: 0,
        bits: 0,
        align: u64::MAX,
        least: u64::MAX,
        max_distance: 0,
        first: std::ptr::null_mut(),
        rows: lanes::MemoryRows { count: 0, groups: 0, pitch: 0 },
        blocks: 0,
        between_blocks: (0, 0),
        broadcast: false,
        joined: false,
        consecutive: false,
    };

    /// The inline cache of an access of `bytes` bytes that has been checked: if all lanes are active, and each row has its
    /// elements one after the other, or the same.
    pub fn new(
        even: &Even,
        region: Region,
        bytes: u64,
        address: &Address,
        active: &Active,
    ) -> Option<AccessCache> {
        let Base::Slot(slot) = address.base else { return None };
        let (affine, rows) = (even.affine, even.rows);
        let broadcast = affine.step == 0;
        if !active.all_lanes || !(broadcast || affine.step == bytes) {
            return None;
        }
        // The device heap gives memory back while a kernel runs: look it up each time.
        if region.base >= HEAP_BASE || region.passing {
            return None;
        }
        let (start, end) = (even.bounds.0, even.bounds.1 + bytes);
        region.holding(start, end)?;
        let consecutive = even.consecutive(bytes);
        if !consecutive && !rows.has_whole_groups() {
            return None;
        }
        let groups = rows.width() / GROUP_LANES;
        let between_blocks = (affine.block_stride as usize, rows.block_lanes() * bytes as usize);
        let joined = even.consecutive_in_block(bytes);
        let (rows, blocks) = match () {
            _ if consecutive => (joined_rows(rows.lanes, bytes), 1),
            _ if joined => (joined_rows(rows.block_lanes(), bytes), rows.blocks()),
            _ => {
                let pitch = affine.pitch as usize;
                (lanes::MemoryRows { count: rows.in_block(), groups, pitch }, rows.blocks())
            }
        };
        let least = affine.base - (start - region.base);
        Some(AccessCache {
            step: slot.width.truncate(affine.step),
            pitch: slot.width.truncate(affine.pitch),
            block_stride: slot.width.truncate(affine.block_stride.wrapping_sub(region.stride as u64)),
            bits: if slot.width == Width::W64 { u64::MAX } else { u32::MAX.into() },
            align: bytes - 1,
            least,
            max_distance: region.end - end + (start - region.base),
            // The first lane's element is that of the base.
            first: region.storage.wrapping_add(least.wrapping_sub(region.base) as usize),
            rows,
            blocks,
            between_blocks,
            broadcast,
            joined,
            consecutive,
        })
    }

    /// All lanes' elements stand one after the other.
    pub fn is_consecutive(&self) -> bool {
        self.consecutive
    }
}

/// So many lanes' elements one after the other, as rows of one group.
fn joined_rows(lanes: usize, bytes: u64) -> lanes::MemoryRows {
    lanes::MemoryRows { count: lanes / GROUP_LANES, groups: 1, pitch: bytes as usize * GROUP_LANES }
}

/// Groups whose results are computed before they are stored, where handlers cannot store them themselves.
const PART_GROUPS: usize = 16;

/// Bytes of 16 lanes of the widest registers that are operands.
const MOST_GROUP_BYTES: usize = 8 * GROUP_LANES;

/// A pure operation on registers in certain forms.
pub(super) struct PureCache {
    args: LaneArgs,
    handler: LaneFn,
    /// The window and the groups.
    place: [u32; 4],
    /// The forms that the sources had ([`without_pattern`]).
    forms: [u8; 4],
    /// The sources, the first one again where there are fewer than four: their places in the register file.
    src: [u32; 4],
    /// The destinations, one of them twice if there is but one.
    dst: [u32; 2],
    /// Some sources stand in memory, which is elsewhere every time.
    memory: bool,
}

impl PureCache {
    pub const NONE: PureCache = PureCache {
        args: LaneArgs {
            dst: [std::ptr::null_mut(); 2],
            src: [std::ptr::null(); LaneArgs::SOURCES],
            step: [0; LaneArgs::SOURCES],
            lanes: 0,
        },
        handler: LaneFn::NOTHING,
        // No window lies there.
        place: [u32::MAX; 4],
        forms: [0; 4],
        src: [0; 4],
        dst: [0; 2],
        memory: false,
    };
}

impl Gang<'_> {
    /// The inline cache of an access and where its first lane's element stands, if it holds for what the registers contain.
    #[inline(always)]
    pub(super) fn cached(&self, address: &Address, active: &Active) -> Option<(&AccessCache, *mut u8)> {
        let Base::Slot(slot) = address.base else { return None };
        if !active.all_lanes {
            return None;
        }
        let cached = &self.access_caches[address.place];
        let affine = self.registers.affine_if_known(active.window, slot)?;
        let base = affine.base.wrapping_add(address.offset) & cached.bits;
        let distance = base.wrapping_sub(cached.least);
        let fits = affine.step == cached.step
            && affine.pitch == cached.pitch
            && affine.block_stride == cached.block_stride
            && base & cached.align == 0
            && distance <= cached.max_distance;
        fits.then(|| (cached, cached.first.wrapping_add(distance as usize)))
    }

    /// Loads one element a lane as cached; false if the inline cache does not hold, the register does not hold the element as
    /// it is, or other paths need it.
    #[inline(always)]
    pub(super) fn load_cached(&mut self, op: &Load, active: &Active) -> bool {
        let [Some(slot)] = op.dst[..] else { return false };
        let Some((cached, start)) = self.cached(&op.address, active) else { return false };
        let start = start.cast_const();
        if !active.alone && !self.whole(active, slot) {
            return false;
        }
        let is_bytes = op.bytes == 1 && slot.width == Width::W16 && cached.joined;
        if slot.width.bytes() != op.bytes as usize && !is_bytes {
            return false;
        }
        let (rows, broadcast, blocks, between) =
            (cached.rows, cached.broadcast, cached.blocks, cached.between_blocks);
        if let Some((link, factor)) = op.chained {
            let group = GROUP_LANES * slot.width.bytes();
            let memory = if cached.consecutive {
                self.registers.consecutive(start)
            } else if cached.joined {
                Factor { block_stride: between.0, ..self.registers.consecutive(start) }
            } else {
                let step = if broadcast { 0 } else { group };
                Factor { array: start, step, pitch: rows.pitch, block_stride: between.0, splat: broadcast }
            };
            self.chains[link.chain].note(link.link, factor, memory);
            self.registers.set_rows(active.window, slot, memory);
            return true;
        }
        if op.once && rows.groups == 1 && blocks == 1 && !broadcast {
            self.registers.set_memory(active.window, slot, Groups { array: start, step: rows.pitch });
            return true;
        }
        let array = self.registers.overwrite(active.window, slot);
        let helpers = self.registers.helpers();
        // SAFETY: the rows are all lanes of the gang, and their addresses were found within the inline cache's memory, which lives as long
        // as the gang (no inline cache is made of the device heap). Other host threads may write there meanwhile, as kernels race.
        unsafe {
            match is_bytes {
                true => {
                    let lanes = self.lanes / blocks;
                    for block in 0..blocks {
                        let from = start.wrapping_add(block.wrapping_mul(between.0));
                        (helpers.widen_bytes)(array.add(2 * block * lanes), from, op.signed, lanes);
                    }
                }
                false => {
                    for block in 0..blocks {
                        let from = start.wrapping_add(block.wrapping_mul(between.0));
                        let to = array.add(block * between.1);
                        (helpers.copy_rows)(to, lane_width(slot.width), from, rows, broadcast);
                    }
                }
            }
        }
        true
    }

    /// Stores one element a lane as cached; false if the inline cache does not hold, or the register does not hold the element as
    /// it is.
    #[inline(always)]
    pub(super) fn store_cached(&mut self, op: &Store, active: &Active) -> bool {
        let [slot] = op.src[..] else { return false };
        let Some((cached, start)) = self.cached(&op.address, active) else { return false };
        if cached.broadcast || slot.width.bytes() != op.bytes as usize {
            return false;
        }
        let (rows, blocks, between, joined) =
            (cached.rows, cached.blocks, cached.between_blocks, cached.joined);
        let array = self.registers.read(active.window, slot);
        let copy = self.registers.helpers().copy;
        if joined {
            let bytes = self.lanes / blocks * slot.width.bytes();
            for block in 0..blocks {
                let to = start.wrapping_add(block.wrapping_mul(between.0));
                // SAFETY: the lanes' elements lie within the inline cache's memory, one after the other.
                unsafe { copy(to, array.add(block * bytes), bytes) }
            }
            return true;
        }
        let bytes = rows.groups * usize::from(slot.group_bytes);
        for block in 0..blocks {
            for row in 0..rows.count {
                let offset = block.wrapping_mul(between.0).wrapping_add(row.wrapping_mul(rows.pitch));
                // SAFETY: the rows are all lanes of the gang, and their addresses were found within the inline cache's memory.
                unsafe {
                    let from = array.add(block * between.1 + row * bytes);
                    copy(start.wrapping_add(offset), from, bytes);
                }
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
        if !active.alone && !op.dst.iter().all(|&slot| self.may_write(active, slot)) {
            return false;
        }
        if self.pure_caches[op.cached].memory {
            self.find_memory(op, active);
        }
        let cached = &self.pure_caches[op.cached];
        // SAFETY: as when the inline cache was made: the forms and places of the operands are the same, the register file has not moved
        // since (all inline caches are forgotten when it does), and what stands in memory was found anew.
        unsafe { cached.handler.call(&cached.args) }
        let [first, second] = cached.dst;
        self.registers.set_array(first);
        self.registers.set_array(second);
        true
    }

    /// The operation has a inline cache, and its sources have the forms that they had then.
    #[inline(always)]
    pub(super) fn plan_fits(&self, op: &Pure, active: &Active) -> bool {
        let cached = &self.pure_caches[op.cached];
        if cached.place != active.place {
            return false;
        }
        let mut differs = 0;
        for i in 0..4 {
            differs |= self.registers.forms_at(cached.src[i]) ^ cached.forms[i];
        }
        without_pattern(differs) == 0
    }

    /// Finds the sources of a inline cache that stand in memory.
    #[inline(never)]
    fn find_memory(&mut self, op: &Pure, active: &Active) {
        let cached = &mut self.pure_caches[op.cached];
        for (i, &slot) in op.src().iter().enumerate().take(4) {
            if is_memory(cached.forms[i]) {
                let memory = self.registers.memory(active.window, slot);
                cached.args.src[i] = memory.at_group(active.groups.0);
                cached.args.step[i] = memory.step;
            }
        }
    }

    /// Runs a pure operation whose inline cache fits, and stores its results one after the other in memory that others may read
    /// ([`lanes::memory`]).
    ///
    /// # Safety
    /// The target must have room for the active lanes, which are one range from a group's first on, of `group_bytes` for 16.
    pub(super) unsafe fn pure_planned_store(
        &mut self,
        op: &Pure,
        active: &Active,
        target: *mut u8,
        group_bytes: usize,
    ) {
        if self.pure_caches[op.cached].memory {
            self.find_memory(op, active);
        }
        let PureCache { args, handler, memory, .. } = &self.pure_caches[op.cached];
        let groups = args.lanes / GROUP_LANES;
        let all = (active.range.1 - active.range.0) * (group_bytes / GROUP_LANES);
        // Sources may stand in memory where the target is. Handlers read 16 lanes before they write their results, so each lane's own
        // place may be written at once, others not before all are read.
        let overlaps = |i: usize| {
            let (src, step) = (args.src[i], args.step[i]);
            let ahead = target.addr().wrapping_sub(src.addr());
            let behind = src.addr().wrapping_sub(target.addr());
            let in_place = ahead == 0 && step == group_bytes;
            !in_place && (ahead < groups * step.max(MOST_GROUP_BYTES) || behind < groups * group_bytes)
        };
        let overlaps = *memory && (0..op.sources.min(4)).any(overlaps);
        let helpers = self.registers.helpers();
        // Of a group of which only some lanes are active, the others' places are not the target's.
        if helpers.path.shares_results() && !overlaps && all == groups * group_bytes {
            let args = LaneArgs { dst: [target, args.dst[1]], ..*args };
            // SAFETY: as above; the caller's promise.
            return unsafe { handler.call(&args) };
        }
        // Some are computed while others are on their way to memory.
        let part = if overlaps { groups } else { PART_GROUPS };
        let results = self.registers.scratch(0);
        let mut first = 0;
        while first < groups {
            let count = part.min(groups - first);
            let src = std::array::from_fn(|i| args.src[i].wrapping_add(first * args.step[i]));
            let part =
                LaneArgs { dst: [results, args.dst[1]], src, step: args.step, lanes: count * GROUP_LANES };
            // SAFETY: as above, of some of the groups; the caller's promise; scratch arrays have room for all lanes.
            unsafe {
                handler.call(&part);
                let done = first * group_bytes;
                (helpers.copy)(target.add(done), results, (count * group_bytes).min(all - done));
            }
            first += count;
        }
    }

    fn may_write(&self, active: &Active, slot: Option<SlotRef>) -> bool {
        slot.is_none_or(|slot| self.whole(active, slot))
    }

    /// The forms of the sources for [`Gang::plan_pure`]. A destination may be a source: it has another one afterwards.
    pub(super) fn forms(&self, op: &Pure, active: &Active) -> [u8; 4] {
        let form = |slot: &SlotRef| without_pattern(self.registers.forms(active.window, *slot));
        let mut forms = [op.src().first().map_or(0, form); 4];
        forms.iter_mut().zip(op.src()).for_each(|(place, slot)| *place = form(slot));
        forms
    }

    /// Notes how an operation ran that has a handler. False if there is no inline cache of it: it has more sources than a inline cache has room for, or no
    /// destination.
    pub(super) fn plan_pure(&mut self, op: &Pure, active: &Active, args: LaneArgs, forms: [u8; 4]) -> bool {
        let (Some(handler), [dst @ Some(_), other] | [other, dst]) = (op.lanes, op.dst) else { return false };
        let Some(dst) = dst.filter(|_| op.sources <= forms.len()) else { return false };
        let place = |slot: SlotRef| active.window.index + slot.index;
        let src = std::array::from_fn(|i| place(op.src[if i < op.sources { i } else { 0 }]));
        self.pure_caches[op.cached] = PureCache {
            args,
            handler,
            place: active.place,
            forms,
            src,
            dst: [dst, other.unwrap_or(dst)].map(place),
            memory: forms.iter().any(|&form| is_memory(form)),
        };
        true
    }
}
