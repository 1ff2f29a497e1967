//! Operations that move values: copies, resizing, packing and unpacking; addresses as values; special registers.

use ir::Width;
use isa::{Space, SpecialRegister};
use machine::mask::{GROUP_LANES, Mask};
use machine::memory::{
    map_shared, rank_of_address, resolve_generic, shared_base, shared_object, shared_rank,
};
use machine::{MAX_SLEEP, Special};
use smallvec::SmallVec;

use super::{Active, Gang};
use crate::affine::Affine;
use crate::code::{Base, affine};
use crate::registers::{Groups, Registers, SlotRef, Window, lane_width};
use crate::run::Run;

impl Gang<'_> {
    #[inline(never)]
    pub(super) fn copy(&mut self, dst: SlotRef, src: SlotRef, active: &Active) {
        let whole = self.whole(active, dst);
        let moves = !whole || !self.registers.has_affine(active.window, src);
        if active.compacts && moves && dst.width != Width::Pred {
            let bytes = usize::from(dst.group_bytes);
            return self.produce_compacted(dst, src, active, |_, target, source, lanes| {
                for group in 0..lanes / GROUP_LANES {
                    // SAFETY: both have `lanes / GROUP_LANES` groups, or the source has one group that stands for
                    // all; they are identical or do not overlap.
                    unsafe { std::ptr::copy(source.at_group(group), target.add(group * bytes), bytes) }
                }
            });
        }
        self.move_between(dst, active.window, src, active.window, active.mask, whole);
    }

    /// Copies a slot of one window to a slot of the same width in another window. `whole`: lanes outside `mask` may
    /// change, too.
    pub(super) fn move_between(
        &mut self,
        dst: SlotRef,
        to: Window,
        src: SlotRef,
        from: Window,
        mask: Mask,
        whole: bool,
    ) {
        match self.registers.affine(from, src) {
            Some(affine) if whole => return self.registers.set_affine(to, dst, affine),
            Some(affine) if affine.is_uniform() => {
                return self.registers.set_all(to, dst, affine.base, mask, false);
            }
            _ => {}
        }
        if dst.width == Width::Pred {
            let value = self.registers.predicate(from, src);
            let mask = if whole { Mask::ALL } else { mask };
            return self.registers.set_predicate(to, dst, value, mask);
        }
        let source = self.registers.read(from, src);
        let target = if whole { self.registers.overwrite(to, dst) } else { self.registers.scratch(0) };
        // SAFETY: both arrays have `lanes` elements of this width; they are the same or do not overlap.
        unsafe { std::ptr::copy(source, target, dst.width.bytes() * self.threads.lanes) }
        if !whole {
            self.registers.merge(to, dst, 0, mask);
        }
    }

    #[inline(never)]
    pub(super) fn not(&mut self, dst: SlotRef, src: SlotRef, active: &Active) {
        let value = !self.registers.predicate(active.window, src);
        if let Some(uniform) = self.registers.uniform(active.window, src)
            && self.whole(active, dst)
        {
            return self.registers.set_affine(active.window, dst, Affine::uniform(uniform ^ 1));
        }
        let mask = if self.whole(active, dst) { Mask::ALL } else { active.mask };
        self.registers.set_predicate(active.window, dst, value, mask);
    }

    #[inline(never)]
    pub(super) fn resize(&mut self, dst: SlotRef, src: SlotRef, bits: u32, signed: bool, active: &Active) {
        let extend = |value: u64| {
            let shift = 64 - bits;
            if signed { ((value << shift) as i64 >> shift) as u64 } else { value << shift >> shift }
        };
        if let Some(value) = self.registers.uniform(active.window, src) {
            let whole = self.whole(active, dst);
            return self.registers.set_all(active.window, dst, extend(value), active.mask, whole);
        }
        if active.compacts {
            return self.produce_compacted(dst, src, active, |registers, target, source, lanes| {
                // SAFETY: source and target have `lanes` elements of their widths, and scratch arrays have at least
                // as many.
                unsafe {
                    registers.resize((target, dst.width), (source.array, src.width), bits, signed, lanes)
                }
            });
        }
        let (lanes, source) = (self.threads.lanes, self.registers.read(active.window, src));
        self.produce(dst, active, |registers, target| {
            // SAFETY: source, target and scratch have `lanes` elements of their widths.
            unsafe { registers.resize((target, dst.width), (source, src.width), bits, signed, lanes) }
        });
    }

    #[inline(never)]
    pub(super) fn offset(&mut self, dst: SlotRef, src: SlotRef, addend: u64, active: &Active) {
        if let Some(affine) = self.registers.affine(active.window, src)
            && self.whole(active, dst)
        {
            let base = affine.base.wrapping_add(addend);
            return self.registers.set_affine(active.window, dst, Affine { base, ..affine });
        }
        // SAFETY: both arrays have `lanes` elements of this width, and are the same or do not overlap.
        let add = |source: *const u8, target: *mut u8, lanes: usize| unsafe {
            match dst.width {
                Width::W64 => map(source, target, lanes, |v: u64| v.wrapping_add(addend)),
                _ => map(source, target, lanes, |v: u32| v.wrapping_add(addend as u32)),
            }
        };
        if active.compacts && self.registers.uniform(active.window, src).is_none() {
            return self.produce_compacted(dst, src, active, |_, target, source, lanes| {
                add(source.array, target, lanes);
            });
        }
        let (lanes, source) = (self.threads.lanes, self.registers.read(active.window, src));
        self.produce(dst, active, |_, target| add(source, target, lanes));
    }

    #[inline(never)]
    pub(super) fn pack(&mut self, dst: SlotRef, src: &[SlotRef], bits: u32, active: &Active) {
        let mask = if bits == 64 { !0 } else { (1 << bits) - 1 };
        let uniform = src.iter().zip(0..).try_fold(0, |all, (&part, i)| {
            let part = self.registers.uniform(active.window, part)?;
            Some(all | (part & mask) << (i * bits))
        });
        if let Some(value) = uniform {
            let whole = self.whole(active, dst);
            return self.registers.set_all(active.window, dst, value, active.mask, whole);
        }
        let lanes = self.threads.lanes;
        let mut arrays: SmallVec<[*const u8; 8]> = SmallVec::new();
        for &part in src {
            arrays.push(self.registers.read(active.window, part));
        }
        if src.iter().all(|part| part.width.bits() == bits && part.width == src[0].width) && src.len() <= 4 {
            let interleave = self.registers.helpers().interleave;
            // SAFETY: arrays have `lanes` elements of their widths, and those of different widths do not overlap.
            return self.produce(dst, active, |_, target| unsafe {
                interleave(target, &arrays, lane_width(src[0].width), lanes);
            });
        }
        self.produce(dst, active, |_, target| {
            for (i, &array) in arrays.iter().enumerate() {
                let (shift, first) = (i as u32 * bits, i == 0);
                // SAFETY: arrays have `lanes` elements of their widths, and those of different widths do not overlap.
                unsafe {
                    match (dst.width, src[i].width) {
                        (Width::W32, Width::W16) if bits == 8 => {
                            insert(array, target, lanes, first, |v: u16| u32::from(v as u8) << shift);
                        }
                        (Width::W32, Width::W16) => {
                            insert(array, target, lanes, first, |v: u16| u32::from(v) << shift);
                        }
                        (Width::W64, Width::W16) => {
                            insert(array, target, lanes, first, |v: u16| u64::from(v) << shift);
                        }
                        (Width::W64, Width::W32) => {
                            insert(array, target, lanes, first, |v: u32| u64::from(v) << shift);
                        }
                        // Two bytes into a 16-bit register.
                        _ => insert(array, target, lanes, first, |v: u16| u16::from(v as u8) << shift),
                    }
                }
            }
        });
    }

    #[inline(never)]
    pub(super) fn unpack(&mut self, dst: &[Option<SlotRef>], src: SlotRef, bits: u32, active: &Active) {
        let uniform = self.registers.uniform(active.window, src);
        let lanes = self.threads.lanes;
        let fills = |part: &Option<SlotRef>| {
            part.is_some_and(|part| part.width.bits() == bits && self.whole(active, part))
        };
        if uniform.is_none() && dst.len() <= 4 && dst.iter().all(fills) {
            let source = self.registers.source(active.window, src);
            let source = match source.step == usize::from(src.group_bytes) {
                true => source.array,
                false => self.registers.read(active.window, src),
            };
            let mut arrays: SmallVec<[*mut u8; 4]> = SmallVec::new();
            let mut width = lanes::LaneWidth::B2;
            for &part in dst.iter().flatten() {
                arrays.push(self.registers.overwrite(active.window, part));
                width = lane_width(part.width);
            }
            let step = width.bytes(arrays.len());
            // SAFETY: as in `pack`; the parts are different slots.
            return unsafe { (self.registers.helpers().deinterleave)(&arrays, source, step, width, lanes) };
        }
        for (i, slot) in dst.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            let shift = i as u32 * bits;
            if let Some(value) = uniform {
                let value = if bits == 64 { value } else { value >> shift & ((1 << bits) - 1) };
                let whole = self.whole(active, slot);
                self.registers.set_all(active.window, slot, value, active.mask, whole);
                continue;
            }
            let source = self.registers.read(active.window, src);
            self.produce(slot, active, |_, target| {
                // SAFETY: as in `pack`.
                unsafe {
                    match (src.width, slot.width) {
                        (Width::W32, Width::W16) if bits == 8 => {
                            map(source, target, lanes, |v: u32| u16::from((v >> shift) as u8));
                        }
                        (Width::W32, Width::W16) => map(source, target, lanes, |v: u32| (v >> shift) as u16),
                        (Width::W64, Width::W16) => map(source, target, lanes, |v: u64| (v >> shift) as u16),
                        (Width::W64, Width::W32) => map(source, target, lanes, |v: u64| (v >> shift) as u32),
                        _ => map(source, target, lanes, |v: u16| u16::from((v >> shift) as u8)),
                    }
                }
            });
        }
    }

    /// Lets `f` fill the array of a slot. If inactive lanes must keep their values, `f` fills a scratch array, and
    /// its active lanes are then merged into the slot.
    pub(super) fn produce(&mut self, dst: SlotRef, active: &Active, f: impl FnOnce(&Registers, *mut u8)) {
        let merge = !self.whole(active, dst);
        let target =
            if merge { self.registers.scratch(0) } else { self.registers.overwrite(active.window, dst) };
        f(&self.registers, target);
        if merge {
            self.registers.merge(active.window, dst, 0, active.mask);
        }
    }

    /// Lets `f` compute a slot from another one in the compacted lanes, whose number is its last argument.
    fn produce_compacted(
        &mut self,
        dst: SlotRef,
        src: SlotRef,
        active: &Active,
        f: impl FnOnce(&Registers, *mut u8, Groups, usize),
    ) {
        let whole = self.whole(active, dst);
        let lanes = self.registers.compact(active.window, &active.mask) * GROUP_LANES;
        let source = self.registers.compacted_source(active.window, src);
        f(&self.registers, self.registers.compacted_target(dst), source, lanes);
        self.registers.set_compacted(active.window, dst, whole);
    }

    /// The base of an address whose base is not a slot.
    pub(super) fn fixed_base(&self, base: Base, frame: u32) -> u64 {
        let frame = &self.frames[frame];
        match base {
            Base::Slot(_) | Base::Zero => 0,
            Base::Shared => self.threads.shared_base,
            Base::Frame => frame.local_base.into(),
            Base::FrameParam(i) => frame.params.get(i as usize).copied().unwrap_or(0).into(),
            Base::FrameReturn(i) => frame.returns.get(i as usize).copied().unwrap_or(0).into(),
        }
    }

    #[inline(never)]
    pub(super) fn is_space(&mut self, dst: SlotRef, src: SlotRef, space: Space, own: bool, active: &Active) {
        self.write_lanes(dst, active, |gang, lane| {
            let (at, inner) = resolve_generic(gang.registers.get(active.window, src, lane));
            u64::from(at == space && (!own || shared_base(shared_rank(inner).0) == gang.threads.shared_base))
        });
    }

    /// `mapa`
    #[inline(never)]
    pub(super) fn map_shared(
        &mut self,
        dst: SlotRef,
        src: SlotRef,
        rank: SlotRef,
        generic: bool,
        active: &Active,
    ) {
        let number = |registers: &Registers, slot, lane| registers.get(active.window, slot, lane);
        let (address, to) =
            (self.registers.uniform(active.window, src), self.registers.uniform(active.window, rank));
        if let (Some(address), Some(to)) = (address, to) {
            let whole = self.whole(active, dst);
            let value = map_shared(address, to as u32, generic);
            return self.registers.set_all(active.window, dst, value, active.mask, whole);
        }
        self.write_lanes(dst, active, |gang, lane| {
            let (address, to) = (number(&gang.registers, src, lane), number(&gang.registers, rank, lane));
            map_shared(address, to as u32, generic)
        });
    }

    /// The address of the mbarrier object of `tcgen05.commit`.
    #[inline(never)]
    pub(super) fn shared_object(&mut self, dst: SlotRef, src: SlotRef, active: &Active) {
        self.write_lanes(dst, active, |gang, lane| {
            shared_object(gang.registers.get(active.window, src, lane))
        });
    }

    /// `getctarank`
    #[inline(never)]
    pub(super) fn rank_of(&mut self, dst: SlotRef, src: SlotRef, generic: bool, active: &Active) {
        self.write_lanes(dst, active, |gang, lane| {
            rank_of_address(gang.registers.get(active.window, src, lane), generic).into()
        });
    }

    #[inline(never)]
    pub(super) fn read_clock(&mut self, dst: SlotRef, register: SpecialRegister, active: &Active) {
        let cycles = self.steps.instructions + self.steps.slept;
        let value = self.special(Special::of(register), active.mask.lowest().unwrap_or(0), cycles);
        let whole = self.whole(active, dst);
        self.registers.set_all(active.window, dst, value, active.mask, whole);
    }

    /// `nanosleep`: the gang's warps sleep at the same time, so the longest duration counts.
    #[inline(never)]
    pub(super) fn sleep(&mut self, duration: SlotRef, active: &Active) {
        let durations = active.mask.into_iter().map(|lane| self.registers.get(active.window, duration, lane));
        self.steps.slept += durations.max().unwrap_or(0).min(MAX_SLEEP);
    }

    #[inline(never)]
    pub(super) fn active_mask(&mut self, dst: SlotRef, active: &Active) {
        self.write_warps(dst, None, active, |_, lanes| lanes.into());
    }

    /// Sets the slot of a special register.
    pub(super) fn set_special(&mut self, window: Window, slot: SlotRef, special: Special) {
        let (ctaids, rows) = (self.threads.ctaids, self.registers.rows());
        match affine(special, self.launch, (ctaids, self.threads.along), self.threads.first_thread, rows) {
            Some(affine) => self.registers.set_affine(window, slot, affine),
            None if special.depends_on_block() => {
                for block in 0..rows.blocks() {
                    let first = block * rows.block_lanes();
                    let value = self.special(special, first, 0);
                    for lane in first..(first + rows.block_lanes()).min(self.threads.lanes) {
                        self.registers.set(window, slot, lane, value);
                    }
                }
            }
            None => {
                for lane in 0..self.threads.lanes {
                    self.registers.set(window, slot, lane, self.special(special, lane, 0));
                }
            }
        }
    }

    /// The value of a special register in a lane whose thread has counted this many cycles.
    fn special(&self, special: Special, lane: usize, cycles: u64) -> u64 {
        special.value(self.launch, self.block_of(lane), self.thread_of(lane) as u32, cycles)
    }
}

/// A value from the kernel's parameters. The compiled code has checked that it lies within them.
#[inline]
pub(super) fn param(launch: &Run, offset: u32, bytes: u32, signed: bool) -> u64 {
    let (start, bytes) = (offset as usize, bytes as usize);
    let mut value = [0; 8];
    value[..bytes].copy_from_slice(&launch.params()[start..start + bytes]);
    let value = u64::from_le_bytes(value);
    let unused = 64 - 8 * bytes as u32;
    if signed { ((value << unused) as i64 >> unused) as u64 } else { value }
}

/// `target[i] = f(source[i])` for all lanes.
///
/// # Safety
/// Both arrays must have `lanes` elements, and be the same or not overlap.
unsafe fn map<S: Copy, T>(source: *const u8, target: *mut u8, lanes: usize, f: impl Fn(S) -> T) {
    let (source, target) = (source.cast::<S>(), target.cast::<T>());
    for i in 0..lanes {
        // SAFETY: the caller's promise.
        unsafe { *target.add(i) = f(*source.add(i)) }
    }
}

/// `target[i] |= f(source[i])` for all lanes; `=` for the first part.
///
/// # Safety
/// Both arrays must have `lanes` elements and not overlap.
unsafe fn insert<S: Copy, T: Copy + std::ops::BitOr<Output = T>>(
    source: *const u8,
    target: *mut u8,
    lanes: usize,
    first: bool,
    f: impl Fn(S) -> T,
) {
    let (source, target) = (source.cast::<S>(), target.cast::<T>());
    for i in 0..lanes {
        // SAFETY: the caller's promise.
        unsafe {
            let part = f(*source.add(i));
            *target.add(i) = if first { part } else { *target.add(i) | part };
        }
    }
}
