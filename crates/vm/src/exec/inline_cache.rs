//! Inline caches: what an operation found out when it last ran. Most operations run in the same way every time.
//!
//! An access caches its memory region and the steps of its addresses ([`AccessCache`]); a pure operation caches the
//! arrays of its operands ([`PureCache`]). A cache hit requires that the registers still have the same forms, which
//! takes a few comparisons. Memory that may be gone the next time is never cached: the device heap, and shared memory
//! of another CTA of the cluster.
//!
//! Narrowest tests (`tests/run`): `fault_in_loop`, `device_heap`, `teams_with_strides`.

use ir::Width;
use lanes::{Factor, LaneArgs, LaneFn};
use machine::mask::GROUP_LANES;
use machine::memory::HEAP_BASE;

use super::addresses::{Even, Region};
use super::chain::Chain;
use super::native::KnownRegion;
use super::{Active, Gang};
use crate::code::{Address, Base, Code, Load, Pure, Store};
use crate::registers::{Groups, SlotRef, is_memory, lane_width, without_pattern};

/// Inline cache of an access by all lanes of a gang whose addresses have an affine form: the steps and the memory.
pub(super) struct AccessCache {
    step: u64,
    pitch: u64,
    block_stride: u64,
    /// Mask of the address's width, 32 or 64 bits.
    bits: u64,
    /// Bits that must be zero in the base address.
    align: u64,
    /// The least base address for which all accesses lie in the region, and by how much a base may exceed it.
    least: u64,
    max_distance: u64,
    /// Host address of the first lane's element for the least base; null if the cache is empty.
    first: *mut u8,
    /// The rows of one CTA, or of all CTAs if the addresses continue from CTA to CTA.
    rows: lanes::MemoryRows,
    blocks: usize,
    /// Bytes from one CTA to the next: in memory, modulo 2^64, and in a register's array.
    between_blocks: (usize, usize),
    broadcast: bool,
    /// The elements of each CTA are contiguous.
    joined: bool,
    /// The elements of all lanes are contiguous.
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

    /// The inline cache for an access of `bytes` bytes that has been checked. `None` unless all lanes are active and
    /// the elements of each row are contiguous or at one address.
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
        // Memory of the device heap may be freed while a kernel runs: it is looked up each time.
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
            // The base is the address of the first lane's element.
            first: region.storage.wrapping_add(least.wrapping_sub(region.base) as usize),
            rows,
            blocks,
            between_blocks,
            broadcast,
            joined,
            consecutive,
        })
    }

    /// Whether the elements of all lanes are contiguous.
    pub fn is_consecutive(&self) -> bool {
        self.consecutive
    }
}

/// The contiguous elements of `lanes` lanes, as rows of one group.
fn joined_rows(lanes: usize, bytes: u64) -> lanes::MemoryRows {
    lanes::MemoryRows { count: lanes / GROUP_LANES, groups: 1, pitch: bytes as usize * GROUP_LANES }
}

/// Groups whose results are computed before they are stored, if the handler cannot write to the target itself.
const PART_GROUPS: usize = 16;

/// Bytes of 16 lanes of the widest operand registers.
const MOST_GROUP_BYTES: usize = 8 * GROUP_LANES;

/// Inline cache of a pure operation: the handler's arguments, and the forms of the registers for which they hold.
pub(super) struct PureCache {
    args: LaneArgs,
    handler: LaneFn,
    /// The window and the groups.
    place: [u32; 4],
    /// The forms of the sources when the cache was filled ([`without_pattern`]).
    forms: [u8; 4],
    /// Indices of the sources in the register file. If there are fewer than four, the first one is repeated.
    src: [u32; 4],
    /// Indices of the destinations. A single one is repeated.
    dst: [u32; 2],
    /// Some sources are still in memory, at a different address each time.
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
        // No window has this index: the cache never hits.
        place: [u32::MAX; 4],
        forms: [0; 4],
        src: [0; 4],
        dst: [0; 2],
        memory: false,
    };
}

/// The inline caches of a gang: how each operation ran last. They never change what an operation computes.
pub(super) struct Caches {
    /// Indexed by [`crate::code::Address::place`].
    pub access: Vec<AccessCache>,
    /// Indexed by [`crate::code::Pure::cached`].
    pub pure: Vec<PureCache>,
    /// The sums in progress, by the number of their chain in the code.
    pub chains: Vec<Chain>,
    /// The memory that each access of native code has used.
    pub regions: Vec<Option<KnownRegion>>,
}

impl Caches {
    pub fn new(code: &Code) -> Caches {
        Caches {
            access: (0..code.accesses).map(|_| AccessCache::NONE).collect(),
            pure: (0..code.pure_operations).map(|_| PureCache::NONE).collect(),
            chains: (0..code.chains).map(|_| Chain::default()).collect(),
            regions: vec![None; code.native_accesses],
        }
    }
}

impl Gang<'_> {
    /// On a cache hit, the inline cache of an access and the host address of the first lane's element.
    #[inline(always)]
    pub(super) fn cached(&self, address: &Address, active: &Active) -> Option<(&AccessCache, *mut u8)> {
        let Base::Slot(slot) = address.base else { return None };
        if !active.all_lanes {
            return None;
        }
        let cached = &self.caches.access[address.place];
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

    /// Loads one element for each lane through the inline cache. Returns false if the cache misses, if the register's
    /// width differs from the element's (except bytes in 16-bit registers), or if another path needs the register's
    /// inactive lanes.
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
            self.caches.chains[link.chain].note(link.link, factor, memory);
            self.registers.set_rows(active.window, slot, memory);
            return true;
        }
        if op.once && rows.groups == 1 && blocks == 1 && !broadcast {
            self.registers.set_memory(active.window, slot, Groups { array: start, step: rows.pitch });
            return true;
        }
        let array = self.registers.overwrite(active.window, slot);
        let helpers = self.registers.helpers();
        // SAFETY: the rows are all lanes of the gang, and `cached` checked that their addresses lie within the cached
        // region. The region lives as long as the gang, because memory of the device heap is not cached. Other host
        // threads may write there meanwhile, as kernels race.
        unsafe {
            match is_bytes {
                true => {
                    let lanes = self.threads.lanes / blocks;
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

    /// Stores one element for each lane through the inline cache. Returns false if the cache misses, or if the
    /// register's width differs from the element's.
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
            let bytes = self.threads.lanes / blocks * slot.width.bytes();
            for block in 0..blocks {
                let to = start.wrapping_add(block.wrapping_mul(between.0));
                // SAFETY: the elements of a CTA's lanes are contiguous and lie within the cached region.
                unsafe { copy(to, array.add(block * bytes), bytes) }
            }
            return true;
        }
        let bytes = rows.groups * usize::from(slot.group_bytes);
        for block in 0..blocks {
            for row in 0..rows.count {
                let offset = block.wrapping_mul(between.0).wrapping_add(row.wrapping_mul(rows.pitch));
                // SAFETY: the rows are all lanes of the gang, and `cached` checked that their addresses lie within
                // the cached region.
                unsafe {
                    let from = array.add(block * between.1 + row * bytes);
                    copy(start.wrapping_add(offset), from, bytes);
                }
            }
        }
        true
    }

    /// Runs a pure operation through its inline cache. Returns false if the cache misses, or if another path needs a
    /// destination's inactive lanes.
    #[inline(never)]
    pub(super) fn pure_planned(&mut self, op: &Pure, active: &Active) -> bool {
        if !self.plan_fits(op, active) {
            return false;
        }
        if !active.alone && !op.dst.iter().all(|&slot| self.may_write(active, slot)) {
            return false;
        }
        if self.caches.pure[op.cached].memory {
            self.find_memory(op, active);
        }
        let cached = &self.caches.pure[op.cached];
        let [first, second] = cached.dst;
        // SAFETY: as when the inline cache was filled: the forms and places of the operands are the same, the
        // register file has not moved since (moving it clears all inline caches), and `find_memory` updated the
        // sources that are in memory. The destinations are slots of the window.
        unsafe {
            cached.handler.call(&cached.args);
            self.registers.set_array(first);
            self.registers.set_array(second);
        }
        true
    }

    /// Whether the inline cache of the operation hits: its sources have the forms for which the cache was filled.
    #[inline(always)]
    pub(super) fn plan_fits(&self, op: &Pure, active: &Active) -> bool {
        let cached = &self.caches.pure[op.cached];
        if cached.place != active.place {
            return false;
        }
        let mut differs = 0;
        for i in 0..4 {
            // SAFETY: the sources were slots of this window when the inline cache was filled, and the file never shrinks.
            differs |= unsafe { self.registers.forms_at(cached.src[i]) } ^ cached.forms[i];
        }
        without_pattern(differs) == 0
    }

    /// Updates the cached pointers of the sources that are still in memory.
    #[inline(never)]
    fn find_memory(&mut self, op: &Pure, active: &Active) {
        let cached = &mut self.caches.pure[op.cached];
        for (i, &slot) in op.src().iter().enumerate().take(4) {
            if is_memory(cached.forms[i]) {
                let memory = self.registers.memory(active.window, slot);
                cached.args.src[i] = memory.at_group(active.groups.0);
                cached.args.step[i] = memory.step;
            }
        }
    }

    /// Runs a pure operation whose inline cache hits, and stores its results contiguously in memory that other host
    /// threads may read ([`lanes::memory`]).
    ///
    /// # Safety
    /// `target` must have space for the active lanes, `group_bytes` for each group of 16. The active lanes must be
    /// one range that starts at a group's first lane.
    pub(super) unsafe fn pure_planned_store(
        &mut self,
        op: &Pure,
        active: &Active,
        target: *mut u8,
        group_bytes: usize,
    ) {
        if self.caches.pure[op.cached].memory {
            self.find_memory(op, active);
        }
        let PureCache { args, handler, memory, .. } = &self.caches.pure[op.cached];
        let groups = args.lanes / GROUP_LANES;
        let all = (active.range.1 - active.range.0) * (group_bytes / GROUP_LANES);
        // A source may be in memory that overlaps the target. Handlers read 16 lanes before they write the results of
        // these lanes. So a result may overwrite its own lane's source at once. If sources and target overlap in any
        // other way, all sources must be read first.
        let overlaps = |i: usize| {
            let (src, step) = (args.src[i], args.step[i]);
            let ahead = target.addr().wrapping_sub(src.addr());
            let behind = src.addr().wrapping_sub(target.addr());
            let in_place = ahead == 0 && step == group_bytes;
            !in_place && (ahead < groups * step.max(MOST_GROUP_BYTES) || behind < groups * group_bytes)
        };
        let overlaps = *memory && (0..op.sources.min(4)).any(overlaps);
        let helpers = self.registers.helpers();
        // If only some lanes of a group are active, the memory of the other lanes does not belong to the target.
        if helpers.path.shares_results() && !overlaps && all == groups * group_bytes {
            let args = LaneArgs { dst: [target, args.dst[1]], ..*args };
            // SAFETY: as above; the caller's promise.
            return unsafe { handler.call(&args) };
        }
        // Working in parts overlaps computation with stores of earlier results.
        let part = if overlaps { groups } else { PART_GROUPS };
        let results = self.registers.scratch(0);
        let mut first = 0;
        while first < groups {
            let count = part.min(groups - first);
            let src = std::array::from_fn(|i| args.src[i].wrapping_add(first * args.step[i]));
            let part =
                LaneArgs { dst: [results, args.dst[1]], src, step: args.step, lanes: count * GROUP_LANES };
            // SAFETY: as above, for some of the groups; the caller's promise; scratch arrays have room for all lanes.
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

    /// The forms of the sources for [`Gang::plan_pure`]. They must be read before the operation runs, because a
    /// destination may also be a source and its form changes.
    pub(super) fn forms(&self, op: &Pure, active: &Active) -> [u8; 4] {
        let form = |slot: &SlotRef| without_pattern(self.registers.forms(active.window, *slot));
        let mut forms = [op.src().first().map_or(0, form); 4];
        forms.iter_mut().zip(op.src()).for_each(|(place, slot)| *place = form(slot));
        forms
    }

    /// Fills the inline cache of an operation that ran by a handler. Returns false if it cannot be cached: it has
    /// more sources than the cache has room for, or no destination.
    pub(super) fn plan_pure(&mut self, op: &Pure, active: &Active, args: LaneArgs, forms: [u8; 4]) -> bool {
        let (Some(handler), [dst @ Some(_), other] | [other, dst]) = (op.lanes, op.dst) else { return false };
        let Some(dst) = dst.filter(|_| op.sources <= forms.len()) else { return false };
        let place = |slot: SlotRef| active.window.index + slot.index;
        let src = std::array::from_fn(|i| place(op.src[if i < op.sources { i } else { 0 }]));
        self.caches.pure[op.cached] = PureCache {
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
