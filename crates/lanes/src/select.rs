//! selp, slct and copysign: select lanes from two sources.

use super::drive::{Lane, apply2, load, load_mask, map2, map3, store};
use super::macros::flags;
use super::path::{BLOCK, Block, Kernel, Path, version};
use super::{HostPath, LaneArgs, LaneFn, only};
use isa::{Mod, Opcode, Picks, Type};
use std::marker::PhantomData;

/// Unsigned integers that predicates can select.
pub(super) trait Select: Lane {
    /// `a` where the mask is set, else `b`.
    fn select<P: Path>(path: P, mask: u16, a: Block<Self>, b: Block<Self>) -> Block<Self>;
}

macro_rules! select {
    ($($T:ident $select:ident)*) => {
        $(impl Select for $T {
            #[inline(always)]
            fn select<P: Path>(path: P, mask: u16, a: Block<$T>, b: Block<$T>) -> Block<$T> {
                path.$select(mask, a, b)
            }
        })*
    };
}
select!(u16 select16 u32 select32 u64 select64);

struct Selp<T>(PhantomData<T>);

impl<T: Select> Kernel for Selp<T> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: two sources and the destination of `lanes` elements, and a predicate.
            unsafe {
                let (a, b): (Block<T>, Block<T>) = (load(args, 0, i), load(args, 1, i));
                store(path, args, 0, i, T::select(path, load_mask(args, 2, i), a, b));
            }
        }
    }
}

/// Pairs of halves: each half comes from a where its predicate holds (c for the low half, d for the high half), else
/// from b.
struct SelectPair;

impl Kernel for SelectPair {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: two sources and the destination of `lanes` elements, and two predicates.
            unsafe {
                let (a, b): (Block<u32>, Block<u32>) = (load(args, 0, i), load(args, 1, i));
                let low = u32::select(path, load_mask(args, 2, i), a, b);
                let high = u32::select(path, load_mask(args, 3, i), a, b);
                store(
                    path,
                    args,
                    0,
                    i,
                    apply2(|low: u32, high: u32| low & 0xffff | high & !0xffff, low, high),
                );
            }
        }
    }
}

/// The handler that selects the halves of pairs from sources a and b of 4 bytes, by separate predicates for low and
/// high halves.
pub fn select_pair(path: HostPath) -> LaneFn {
    version::<SelectPair>(path)
}

/// a if c >= 0, else b; NaN selects b. With `FTZ`, negative subnormal numbers count as zeros. The comparison avoids
/// flushing, because LLVM turns flushing and comparing into a test of floating-point classes, which it cannot
/// vectorize.
fn slct_f32<T: Lane, const FTZ: bool>(path: HostPath) -> LaneFn {
    map3(path, |a: T, b: T, c: f32| {
        let first = if FTZ { c > -f32::MIN_POSITIVE } else { c >= 0.0 };
        if first { a } else { b }
    })
}

fn slct_s32<T: Lane>(path: HostPath) -> LaneFn {
    map3(path, |a: T, b: T, c: i32| if c >= 0 { a } else { b })
}

/// The handler of a form that selects.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let ftz = picks.has(Mod::Ftz);
    match (opcode, sources, picks.types()) {
        (Opcode::Selp, 3, [ty]) if only(picks, &[]) => match ty.bits() {
            16 => Some(version::<Selp<u16>>(path)),
            32 => Some(version::<Selp<u32>>(path)),
            64 => Some(version::<Selp<u64>>(path)),
            _ => None,
        },
        (Opcode::Slct, 3, [ty, Type::S32]) if only(picks, &[]) => match ty.bits() {
            16 => Some(slct_s32::<u16>(path)),
            32 => Some(slct_s32::<u32>(path)),
            64 => Some(slct_s32::<u64>(path)),
            _ => None,
        },
        (Opcode::Slct, 3, [ty, Type::F32]) if only(picks, &[Mod::Ftz]) => match ty.bits() {
            16 => Some(flags!(slct_f32 [u16] (path); ftz)),
            32 => Some(flags!(slct_f32 [u32] (path); ftz)),
            64 => Some(flags!(slct_f32 [u64] (path); ftz)),
            _ => None,
        },
        (Opcode::Copysign, 2, [Type::F32]) if only(picks, &[]) => {
            Some(map2(path, |a: u32, b: u32| a & 0x8000_0000 | b & 0x7fff_ffff))
        }
        (Opcode::Copysign, 2, [Type::F64]) if only(picks, &[]) => {
            Some(map2(path, |a: u64, b: u64| a & 1 << 63 | b & !(1 << 63)))
        }
        _ => None,
    }
}
