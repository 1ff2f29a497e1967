//! What atomic operations do to one element: by instructions of the host, or by compare-exchange loops.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use ir::AtomicOp;
use isa::{Addition, Picks, Type};
use machine::mask::{GANG_LANES, WARP_LANES};
use sem::float::add_to_memory;

use super::Active;
use super::warp::ones;
use crate::code::Address;
use crate::registers::SlotRef;

/// Atomically replaces a value by `f` of it; returns the old value.
///
/// # Safety
/// `at` must be valid for `bytes` bytes and aligned to them.
pub(super) unsafe fn update_atomically(at: *mut u8, bytes: u32, mut f: impl FnMut(u64) -> u64) -> u64 {
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

pub(super) type Atomic = ir::Atomic<SlotRef, Address>;

/// The operands of an atomic operation, one for each lane.
pub(super) struct Operands {
    /// Byte offset of the lane's element from a common base.
    pub(super) offsets: [u64; GANG_LANES],
    pub(super) a: [u64; GANG_LANES],
    pub(super) b: [u64; GANG_LANES],
    /// The element before the operation.
    pub(super) old: [u64; GANG_LANES],
}

impl Operands {
    pub fn new() -> Box<Operands> {
        let none = [0; GANG_LANES];
        Box::new(Operands { offsets: none, a: none, b: none, old: none })
    }
}

/// An element that atomic operations work on.
pub(super) trait Cell: Copy + Into<u64> {
    fn cut(value: u64) -> Self;

    /// The current value of the element.
    ///
    /// # Safety
    /// `at` must be valid for an aligned element.
    unsafe fn now(at: *mut Self) -> u64;

    /// An operation on integers for which the host has an instruction; returns the old value. `None`: it has none.
    ///
    /// # Safety
    /// `at` must be valid for an aligned element.
    unsafe fn update_as(op: AtomicOp, at: *mut Self, a: u64) -> Option<u64>;

    /// Atomically replaces a value by `f` of it; returns the old value. The value is probably still `seen`.
    ///
    /// # Safety
    /// `at` must be valid for an aligned element.
    unsafe fn replace(at: *mut Self, seen: u64, f: impl FnMut(u64) -> u64) -> u64;
}

macro_rules! cell {
    ($($T:ty, $Atomic:ty;)*) => { $(impl Cell for $T {
        fn cut(value: u64) -> $T {
            value as $T
        }

        #[inline(always)]
        unsafe fn now(at: *mut $T) -> u64 {
            // SAFETY: as below.
            unsafe { <$Atomic>::from_ptr(at) }.load(Ordering::Relaxed).into()
        }

        #[inline(always)]
        unsafe fn update_as(op: AtomicOp, at: *mut $T, a: u64) -> Option<u64> {
            // SAFETY: as below.
            let cell = unsafe { <$Atomic>::from_ptr(at) };
            let a = a as $T;
            let old = match op {
                AtomicOp::Add => cell.fetch_add(a, Ordering::SeqCst),
                AtomicOp::And => cell.fetch_and(a, Ordering::SeqCst),
                AtomicOp::Or => cell.fetch_or(a, Ordering::SeqCst),
                AtomicOp::Xor => cell.fetch_xor(a, Ordering::SeqCst),
                AtomicOp::Exchange => cell.swap(a, Ordering::SeqCst),
                _ => return None,
            };
            Some(old.into())
        }

        #[inline(always)]
        unsafe fn replace(at: *mut $T, seen: u64, mut f: impl FnMut(u64) -> u64) -> u64 {
            // SAFETY: the caller's promise; kernel memory is only reached through raw pointers and atomics.
            let cell = unsafe { <$Atomic>::from_ptr(at) };
            let mut seen = seen as $T;
            loop {
                let new = f(seen.into()) as $T;
                match cell.compare_exchange(seen, new, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(old) => return old.into(),
                    Err(now) => seen = now,
                }
            }
        }
    })* };
}
cell!(u32, AtomicU32; u64, AtomicU64;);

/// Expands `$each`, a loop over the lanes, separately for each operation of an [`Update`], so that each loop is
/// compiled for one operation.
macro_rules! by_operation {
    ($update:ident, $each:ident) => { by_operation!($update, $each, And Or Xor Exchange CompareAndSwap Add Inc Dec Min Max) };
    ($update:ident, $each:ident, $($op:ident)*) => {
        match $update.op {
            AtomicOp::Add if $update.flushes() => {
                $each!(|old, a, _| $update.add_f32::<true>(old, a))
            }
            AtomicOp::Add if $update.ty == Type::F32 => $each!(|old, a, _| $update.add_f32::<false>(old, a)),
            AtomicOp::Add if $update.ty == Type::F64 => $each!(|old, a, _| $update.add_f64(old, a)),
            _ if $update.ty.is_float() => $each!(|old, a, b| $update.apply(old, a, b)),
            $(AtomicOp::$op => $each!(|old, a, b| integer(AtomicOp::$op, $update.ty, old, a, b)),)*
        }
    };
}

/// How an atomic operation computes the new value from the old one (PTX ISA, "atom").
pub(super) struct Update {
    op: AtomicOp,
    ty: Type,
    /// Type and modifiers of the floating-point minimum or maximum that the operation performs.
    picks: Picks,
    addition: Addition,
}

impl Update {
    pub fn new(op: AtomicOp, ty: Type, addition: Addition) -> Update {
        Update { op, ty, picks: Picks::new(&[ty], &[]), addition }
    }

    /// That of an atomic operation; `own`: on the shared memory of the block.
    pub fn of(atomic: &Atomic, own: bool) -> Update {
        Update::new(atomic.op, atomic.ty, if own { Addition::Shared } else { atomic.addition })
    }

    /// Applies the operation of each active lane, in ascending order.
    ///
    /// # Safety
    /// `base` plus a lane's offset must be valid for an aligned element. If `own` is set, no other host thread may
    /// access the memory.
    pub unsafe fn lanes<T: Cell>(&self, operands: &mut Operands, active: &Active, base: *mut u8, own: bool) {
        // The host has atomic instructions for integers only.
        use AtomicOp::{Add, And, Exchange, Or, Xor};
        let attempts = self.ty.is_float() || !matches!(self.op, Add | And | Or | Xor | Exchange);
        let at = |offset: u64| base.wrapping_add(offset as usize).cast::<T>();
        // Read all elements of a warp first: their cache misses overlap, whereas each atomic instruction must finish
        // before the next one starts.
        let look = |operands: &mut Operands, first: usize, lanes: u32| {
            ones(lanes).for_each(|lane| {
                // SAFETY: the caller's promise.
                operands.old[first + lane] = unsafe { T::now(at(operands.offsets[first + lane])) };
            });
        };
        macro_rules! each {
            ($apply:expr) => {
                if own {
                    active.mask.for_each(|lane| {
                        let (a, b, at) = (operands.a[lane], operands.b[lane], at(operands.offsets[lane]));
                        // SAFETY: the caller's promise.
                        unsafe {
                            let old = at.read().into();
                            at.write(T::cut($apply(old, a, b)));
                            operands.old[lane] = old;
                        }
                    })
                } else {
                    for (warp, lanes) in active.mask.warps() {
                        let first = warp * WARP_LANES;
                        if attempts {
                            look(operands, first, lanes);
                        }
                        let mut left = lanes;
                        while left != 0 {
                            let run = first_run(left, &operands.offsets[first..]);
                            left &= !run;
                            let lane = first + run.trailing_zeros() as usize;
                            let at = at(operands.offsets[lane]);
                            if run.is_power_of_two()
                                && !attempts
                                // SAFETY: the caller's promise.
                                && let Some(old) = unsafe { T::update_as(self.op, at, operands.a[lane]) }
                            {
                                operands.old[lane] = old;
                                continue;
                            }
                            // SAFETY: the caller's promise.
                            let seen = if attempts { operands.old[lane] } else { unsafe { T::now(at) } };
                            let all = |mut value: u64| {
                                ones(run).map(|lane| first + lane).for_each(|lane| {
                                    operands.old[lane] = value;
                                    value = T::cut($apply(value, operands.a[lane], operands.b[lane])).into();
                                });
                                value
                            };
                            // SAFETY: the caller's promise.
                            unsafe { T::replace(at, seen, all) };
                        }
                    }
                }
            };
        }
        by_operation!(self, each);
    }

    /// Applies the operations of all active lanes, in ascending order, to one element. Other host threads see a
    /// single update.
    ///
    /// # Safety
    /// `at` must be valid for an aligned element.
    pub unsafe fn one_element(&self, operands: &mut Operands, active: &Active, at: *mut u8) {
        let bytes = self.ty.bytes();
        let all = |old: u64| match bytes {
            4 => self.in_turn::<u32>(operands, active, old),
            _ => self.in_turn::<u64>(operands, active, old),
        };
        // SAFETY: the caller's promise.
        unsafe { update_atomically(at, bytes, all) };
    }

    /// Applies the operations of all active lanes, in ascending order, to a value that stays in a host register
    /// meanwhile.
    fn in_turn<T: Cell>(&self, operands: &mut Operands, active: &Active, value: u64) -> u64 {
        let mut value = T::cut(value);
        macro_rules! each {
            ($apply:expr) => {
                active.mask.for_each(|lane| {
                    let old = value.into();
                    value = T::cut($apply(old, operands.a[lane], operands.b[lane]));
                    operands.old[lane] = old;
                })
            };
        }
        by_operation!(self, each);
        value.into()
    }

    pub fn apply(&self, old: u64, a: u64, b: u64) -> u64 {
        if self.ty.is_float() {
            match self.op {
                AtomicOp::Add if self.flushes() => return self.add_f32::<true>(old, a),
                AtomicOp::Add if self.ty == Type::F32 => return self.add_f32::<false>(old, a),
                AtomicOp::Add if self.ty == Type::F64 => return self.add_f64(old, a),
                AtomicOp::Add => return add_to_memory(self.addition, self.ty, old, a),
                AtomicOp::Min => return sem::float::min(&self.picks, &[old, a])[0],
                AtomicOp::Max => return sem::float::max(&self.picks, &[old, a])[0],
                _ => {}
            }
        }
        integer(self.op, self.ty, old, a, b)
    }
}

impl Update {
    /// Whether an addition flushes subnormals.
    fn flushes(&self) -> bool {
        self.ty == Type::F32 && self.addition == Addition::Global
    }

    /// `add.rn.f32`, with `.ftz` if `FLUSH`. NaN results, and subnormal numbers that must be flushed, are left to
    /// `sem`.
    #[inline(always)]
    fn add_f32<const FLUSH: bool>(&self, x: u64, y: u64) -> u64 {
        let (x, y) = (x as u32, y as u32);
        let sum = f32::from_bits(x) + f32::from_bits(y);
        let is_subnormal = |bits: u32| (bits << 1).wrapping_sub(1) < 0xff_ffff;
        // Rare. A branch, unlike a select, does not delay the next sum.
        if sum.is_nan() || FLUSH && (is_subnormal(x) || is_subnormal(y) || is_subnormal(sum.to_bits())) {
            return self.add_by_sem(x, y);
        }
        sum.to_bits().into()
    }

    #[cold]
    #[inline(never)]
    fn add_by_sem(&self, x: u32, y: u32) -> u64 {
        add_to_memory(self.addition, self.ty, x.into(), y.into())
    }

    /// `add.rn.f64`. NaN results are left to `sem`.
    #[inline(always)]
    fn add_f64(&self, x: u64, y: u64) -> u64 {
        let sum = f64::from_bits(x) + f64::from_bits(y);
        if sum.is_nan() {
            return add_to_memory(self.addition, self.ty, x, y);
        }
        sum.to_bits()
    }
}

/// The lowest of these lanes of a warp, and those behind it up to one that is at another element. One update of the host does what all of
/// them do; as many would wait for each other.
#[inline(always)]
fn first_run(lanes: u32, offsets: &[u64]) -> u32 {
    let mut run = lanes & lanes.wrapping_neg();
    let offset = offsets[run.trailing_zeros() as usize];
    ones(lanes ^ run).take_while(|&lane| offsets[lane] == offset).for_each(|lane| run |= 1 << lane);
    run
}

/// The operation on integers, and on the bits of other types if it only moves bits.
#[inline(always)]
pub(super) fn integer(op: AtomicOp, ty: Type, old: u64, a: u64, b: u64) -> u64 {
    let less = || {
        let shift = 64 - ty.bits();
        match ty.is_signed() {
            true => ((old << shift) as i64) < (a << shift) as i64,
            false => old << shift < a << shift,
        }
    };
    match op {
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
        AtomicOp::Min if less() => old,
        AtomicOp::Max if !less() => old,
        AtomicOp::Min | AtomicOp::Max => a,
    }
}
