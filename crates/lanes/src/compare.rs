//! setp and set: comparisons that produce mask bits, and their combination.

use super::drive::{Byte, apply2, bytes2, in_pairs, load, load_mask, store, store_mask};
use super::path::{BLOCK, Block, Kernel, Parametric, Path, version, version_with};
use super::select::Select;
use super::{HostPath, LaneArgs, LaneFn, Parameters, RawFn};
use isa::{BoolOp, CmpOp, Mod, Opcode, Picks, Type};
use sem::format::Format;
use std::marker::PhantomData;

/// The possible outcomes of a comparison, as bits of a set. A comparison holds for the outcomes in its set.
pub(super) const LESS: u8 = 1;
pub(super) const EQUAL: u8 = 2;
pub(super) const GREATER: u8 = 4;
const UNORDERED: u8 = 8;

/// The outcomes for which an operator holds.
pub(super) fn outcomes(op: CmpOp) -> u8 {
    match op {
        CmpOp::Eq => EQUAL,
        CmpOp::Ne => LESS | GREATER,
        CmpOp::Lt | CmpOp::Lo => LESS,
        CmpOp::Le | CmpOp::Ls => LESS | EQUAL,
        CmpOp::Gt | CmpOp::Hi => GREATER,
        CmpOp::Ge | CmpOp::Hs => GREATER | EQUAL,
        CmpOp::Equ => EQUAL | UNORDERED,
        CmpOp::Neu => LESS | GREATER | UNORDERED,
        CmpOp::Ltu => LESS | UNORDERED,
        CmpOp::Leu => LESS | EQUAL | UNORDERED,
        CmpOp::Gtu => GREATER | UNORDERED,
        CmpOp::Geu => GREATER | EQUAL | UNORDERED,
        CmpOp::Num => LESS | EQUAL | GREATER,
        CmpOp::Nan => UNORDERED,
    }
}

const LESS_EQUAL: u8 = LESS | EQUAL;
const GREATER_EQUAL: u8 = GREATER | EQUAL;
const LESS_GREATER: u8 = LESS | GREATER;
const ORDERED: u8 = LESS | EQUAL | GREATER;

/// Whether the outcome of a comparison of totally ordered values is in the set.
#[inline(always)]
fn ordered<T: PartialOrd, const HOLDS: u8>(a: T, b: T) -> bool {
    match HOLDS & ORDERED {
        LESS => a < b,
        EQUAL => a == b,
        GREATER => a > b,
        LESS_EQUAL => a <= b,
        GREATER_EQUAL => a >= b,
        LESS_GREATER => a != b,
        other => other != 0,
    }
}

/// Whether the outcome of a comparison of floating-point numbers is in the set.
#[inline(always)]
fn float<T: PartialOrd, const HOLDS: u8>(a: T, b: T) -> bool {
    // As in hardware: a set with the unordered outcome is the complement of a set without it.
    let unordered = HOLDS & UNORDERED != 0;
    let without = if unordered { HOLDS ^ (ORDERED | UNORDERED) } else { HOLDS };
    let holds = match without {
        LESS => a < b,
        EQUAL => a == b,
        GREATER => a > b,
        LESS_EQUAL => a <= b,
        GREATER_EQUAL => a >= b,
        LESS_GREATER => (a < b) | (a > b),
        ORDERED => (a <= b) | (a > b),
        _ => false,
    };
    holds != unordered
}

/// Values that compare.
trait Compare: 'static {
    /// Whether there is an unordered outcome (not for integers).
    const FLOAT: bool;

    /// The results for one block, for p and for q. For scalars, q is the complement of p. For packed halves, p is the
    /// result of the low halves and q that of the high halves.
    ///
    /// # Safety
    /// Sources 0 and 1 must have that block.
    unsafe fn block<P: Path, const HOLDS: u8>(path: P, args: &LaneArgs, i: usize) -> [u16; 2];
}

/// All ones or zero.
macro_rules! all_ones {
    ($T:ident, $test:expr) => {
        (0 as $T).wrapping_sub($test as $T)
    };
}

/// Implements comparison of blocks of scalars: element type, unsigned integer of its width, and the test.
macro_rules! compare {
    ($($name:ident: $T:ident as $Bits:ident by $top_bits:ident, float $float:literal,
        |$a:ident, $b:ident| $test:expr;)*) => {
        $(struct $name;
        impl Compare for $name {
            const FLOAT: bool = $float;

            #[inline(always)]
            unsafe fn block<P: Path, const HOLDS: u8>(path: P, args: &LaneArgs, i: usize) -> [u16; 2] {
                // SAFETY: the caller's promise.
                unsafe {
                    let (x, y): (Block<$T>, Block<$T>) = (load(args, 0, i), load(args, 1, i));
                    let mut bits = [0; BLOCK];
                    for k in 0..BLOCK {
                        let ($a, $b) = (x[k], y[k]);
                        bits[k] = all_ones!($Bits, $test);
                    }
                    let t = path.$top_bits(bits);
                    [t, !t]
                }
            }
        })*
    };
}
compare! {
    U16: u16 as u16 by top_bits16, float false, |a, b| ordered::<_, HOLDS>(a, b);
    S16: i16 as u16 by top_bits16, float false, |a, b| ordered::<_, HOLDS>(a, b);
    U32: u32 as u32 by top_bits32, float false, |a, b| ordered::<_, HOLDS>(a, b);
    S32: i32 as u32 by top_bits32, float false, |a, b| ordered::<_, HOLDS>(a, b);
    U64: u64 as u64 by top_bits64, float false, |a, b| ordered::<_, HOLDS>(a, b);
    S64: i64 as u64 by top_bits64, float false, |a, b| ordered::<_, HOLDS>(a, b);
    F32: f32 as u32 by top_bits32, float true, |a, b| float::<_, HOLDS>(a, b);
    F32Ftz: f32 as u32 by top_bits32, float true, |a, b| float::<_, HOLDS>(flush(a), flush(b));
    F64: f64 as u64 by top_bits64, float true, |a, b| float::<_, HOLDS>(a, b);
    F16: u16 as u16 by top_bits16, float true, |a, b| half::<0x7c00, 0, HOLDS>(a, b);
    F16Ftz: u16 as u16 by top_bits16, float true, |a, b| half::<0x7c00, 0x0400, HOLDS>(a, b);
    Bf16: u16 as u16 by top_bits16, float true, |a, b| half::<0x7f80, 0, HOLDS>(a, b);
}

#[inline(always)]
fn flush(x: f32) -> f32 {
    super::float::flush::<true>(x)
}

/// Compares halves as integers. Magnitudes above `INFINITY` are NaNs; those below `NORMAL` count as zero.
#[inline(always)]
fn half<const INFINITY: i16, const NORMAL: i16, const HOLDS: u8>(a: u16, b: u16) -> bool {
    let magnitude = |x: u16| (x & 0x7fff) as i16;
    let key = |x: u16| {
        let sign = x as i16 >> 15;
        let m = if magnitude(x) < NORMAL { 0 } else { magnitude(x) };
        (m ^ sign).wrapping_sub(sign)
    };
    let nan = magnitude(a).max(magnitude(b)) > INFINITY;
    let holds = ordered::<_, HOLDS>(key(a), key(b));
    if HOLDS & UNORDERED != 0 { holds | nan } else { holds & !nan }
}

/// Compares two halves per lane, with `INFINITY` and `NORMAL` as for [`half`].
struct Pair<const INFINITY: i16, const NORMAL: i16>;

impl<const INFINITY: i16, const NORMAL: i16> Compare for Pair<INFINITY, NORMAL> {
    const FLOAT: bool = true;

    #[inline(always)]
    unsafe fn block<P: Path, const HOLDS: u8>(path: P, args: &LaneArgs, i: usize) -> [u16; 2] {
        // SAFETY: the caller's promise: 32 halves a block.
        unsafe {
            let halves = |n: usize| -> [u16; 2 * BLOCK] {
                args.src[n].add(i * args.step[n]).cast::<[u16; 2 * BLOCK]>().read_unaligned()
            };
            let (x, y) = (halves(0), halves(1));
            let mut bits = [0u16; 2 * BLOCK];
            for k in 0..2 * BLOCK {
                bits[k] = all_ones!(u16, half::<INFINITY, NORMAL, HOLDS>(x[k], y[k]));
            }
            // Lanes are little-endian, so the low half comes first.
            let high: Block<u32> = std::mem::transmute::<[u16; 2 * BLOCK], Block<u32>>(bits);
            let mut low = high;
            for x in &mut low {
                *x <<= 16;
            }
            [path.top_bits32(low), path.top_bits32(high)]
        }
    }
}

/// Writes p and q of a comparison without c.
struct Setp<C, const HOLDS: u8>(PhantomData<C>);

impl<C: Compare, const HOLDS: u8> Kernel for Setp<C, HOLDS> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources have `lanes` elements, the destinations are predicates, or null.
            unsafe {
                let [p, q] = C::block::<_, HOLDS>(path, args, i);
                store_mask(args, 0, i, p);
                store_mask(args, 1, i, q);
            }
        }
    }
}

/// Number of lanes compared at a time if the results are processed further.
const PART: usize = 256;

/// The results of a comparison of up to [`PART`] lanes: p and q for each group.
type Results = [[u16; PART / BLOCK]; 2];

/// Compares lanes from `start` on, and combines p and q with source 2 if there is an operator.
///
/// # Safety
/// As for `compare`; with an operator, source 2 is a predicate.
unsafe fn compare_part(
    args: &LaneArgs,
    start: usize,
    compare: RawFn,
    op: Option<BoolOp>,
) -> (Results, usize) {
    let mut results = [[0u16; PART / BLOCK]; 2];
    let lanes = (args.lanes - start).min(PART);
    let mut part =
        LaneArgs { lanes, dst: results.each_mut().map(|result| result.as_mut_ptr().cast()), ..*args };
    for (source, step) in part.src.iter_mut().zip(part.step).take(2) {
        *source = source.wrapping_add(start / BLOCK * step);
    }
    // SAFETY: the caller's promise; `part` lies within the operands, and there is a bit for each of its lanes.
    unsafe {
        compare(&part, &LaneFn::NOTHING);
        if let Some(op) = op {
            let [p, q] = &mut results;
            for (i, (p, q)) in p.iter_mut().zip(q).enumerate().take(lanes / BLOCK) {
                let c = load_mask(args, 2, start / BLOCK + i);
                let with_c = |t: u16| match op {
                    BoolOp::And => t & c,
                    BoolOp::Or => t | c,
                    BoolOp::Xor => t ^ c,
                };
                (*p, *q) = (with_c(*p), with_c(*q));
            }
        }
    }
    (results, lanes / BLOCK)
}

/// Combines p and q of a comparison with c. A destination may be c.
///
/// # Safety
/// As for [`LaneFn::call`].
unsafe fn combine(args: &LaneArgs, lane_fn: &LaneFn) {
    for start in (0..args.lanes).step_by(PART) {
        // SAFETY: the caller's promise; the parameters are those of `setp`.
        unsafe {
            let op = *lane_fn.parameters.get::<BoolOp>();
            let ([p, q], groups) = compare_part(args, start, lane_fn.inner, Some(op));
            for (i, (p, q)) in p.into_iter().zip(q).enumerate().take(groups) {
                store_mask(args, 0, start / BLOCK + i, p);
                store_mask(args, 1, start / BLOCK + i, q);
            }
        }
    }
}

/// `set`: its comparison, and the values that it writes where p and where q hold. For scalars, q has no effect.
struct Set<T>(PhantomData<T>);

#[derive(Clone, Copy)]
struct SetWith<T> {
    compare: RawFn,
    op: Option<BoolOp>,
    yes: [T; 2],
}

impl<T: Select + std::ops::BitOr<Output = T>> Parametric for Set<T> {
    type With = SetWith<T>;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &SetWith<T>) {
        for start in (0..args.lanes).step_by(PART) {
            // SAFETY: the sources and the destination have `lanes` elements.
            unsafe {
                let ([p, q], groups) = compare_part(args, start, with.compare, with.op);
                for i in 0..groups {
                    let low = T::select(path, p[i], [with.yes[0]; BLOCK], [T::default(); BLOCK]);
                    let high = T::select(path, q[i], [with.yes[1]; BLOCK], [T::default(); BLOCK]);
                    store(path, args, 0, start / BLOCK + i, apply2(|low, high| low | high, low, high));
                }
            }
        }
    }
}

/// `version::<$kernel<.., HOLDS>>(path)` for a set of outcomes known at run time.
macro_rules! with_outcomes {
    ($path:expr, $C:ident, $holds:expr, $kernel:ident<$($t:ident),+>) => {
        match $holds {
            1 => version::<$kernel<$($t,)+ 1>>($path),
            2 => version::<$kernel<$($t,)+ 2>>($path),
            3 => version::<$kernel<$($t,)+ 3>>($path),
            4 => version::<$kernel<$($t,)+ 4>>($path),
            5 => version::<$kernel<$($t,)+ 5>>($path),
            6 => version::<$kernel<$($t,)+ 6>>($path),
            holds if const { $C::FLOAT } => match holds {
                7 => version::<$kernel<$($t,)+ 7>>($path),
                8 => version::<$kernel<$($t,)+ 8>>($path),
                9 => version::<$kernel<$($t,)+ 9>>($path),
                10 => version::<$kernel<$($t,)+ 10>>($path),
                11 => version::<$kernel<$($t,)+ 11>>($path),
                12 => version::<$kernel<$($t,)+ 12>>($path),
                13 => version::<$kernel<$($t,)+ 13>>($path),
                14 => version::<$kernel<$($t,)+ 14>>($path),
                _ => return None,
            },
            _ => return None,
        }
    };
}

/// The comparison of a type, without c.
fn comparison(ty: Type, ftz: bool, holds: u8, path: HostPath) -> Option<LaneFn> {
    fn of<C: Compare>(holds: u8, path: HostPath) -> Option<LaneFn> {
        Some(with_outcomes!(path, C, holds, Setp<C>))
    }
    match ty {
        Type::B16 | Type::U16 => of::<U16>(holds, path),
        Type::S16 => of::<S16>(holds, path),
        Type::B32 | Type::U32 => of::<U32>(holds, path),
        Type::S32 => of::<S32>(holds, path),
        Type::B64 | Type::U64 => of::<U64>(holds, path),
        Type::S64 => of::<S64>(holds, path),
        Type::F32 if ftz => of::<F32Ftz>(holds, path),
        Type::F32 => of::<F32>(holds, path),
        Type::F64 => of::<F64>(holds, path),
        Type::F16 if ftz => of::<F16Ftz>(holds, path),
        Type::F16 => of::<F16>(holds, path),
        Type::Bf16 => of::<Bf16>(holds, path),
        Type::F16x2 if ftz => of::<Pair<0x7c00, 0x0400>>(holds, path),
        Type::F16x2 => of::<Pair<0x7c00, 0>>(holds, path),
        Type::Bf16x2 => of::<Pair<0x7f80, 0>>(holds, path),
        _ => None,
    }
}

/// `set` to elements of `.dtype`, which has as many elements as `.stype`.
fn set(dtype: Type, stype: Type, op: Option<BoolOp>, compare: RawFn, path: HostPath) -> LaneFn {
    let width = dtype.bits() / stype.lanes();
    let yes = Format::of(dtype).map_or(u64::MAX >> (64 - width), Format::one);
    if dtype.bits() == 16 {
        return version_with::<Set<u16>>(path, SetWith { compare, op, yes: [yes as u16, 0] });
    }
    let high = if stype.lanes() == 2 { yes << width } else { 0 };
    version_with::<Set<u32>>(path, SetWith { compare, op, yes: [yes as u32, high as u32] })
}

/// `set` of packed integers.
fn set_packed(ty: Type, holds: u8, path: HostPath) -> Option<LaneFn> {
    fn set_bytes<T: Byte + PartialOrd, const HOLDS: u8>(path: HostPath) -> LaneFn {
        bytes2(path, |a: T, b: T| all_ones!(u8, ordered::<_, HOLDS>(a, b)))
    }
    fn bytes<T: Byte + PartialOrd>(holds: u8, path: HostPath) -> Option<LaneFn> {
        Some(match holds {
            LESS => set_bytes::<T, LESS>(path),
            EQUAL => set_bytes::<T, EQUAL>(path),
            GREATER => set_bytes::<T, GREATER>(path),
            LESS_EQUAL => set_bytes::<T, LESS_EQUAL>(path),
            GREATER_EQUAL => set_bytes::<T, GREATER_EQUAL>(path),
            LESS_GREATER => set_bytes::<T, LESS_GREATER>(path),
            _ => return None,
        })
    }
    match ty {
        Type::U8x4 => bytes::<u8>(holds, path),
        Type::S8x4 => bytes::<i8>(holds, path),
        Type::U16x2 | Type::S16x2 => {
            let element = ty.element();
            let compare = comparison(element, false, holds, path)?;
            Some(in_pairs(2, set(element, element, None, compare.function, path)))
        }
        _ => None,
    }
}

/// The handler of a form of `setp` or `set`.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let (holds, op, ftz) = (outcomes(picks.cmp()?), picks.bool_op(), picks.has(Mod::Ftz));
    if sources != 2 + usize::from(op.is_some()) {
        return None;
    }
    let (stype, dtype) = match (opcode, picks.types()) {
        (Opcode::Setp, &[ty]) => (ty, None),
        (Opcode::Set, &[dtype, stype]) => (stype, Some(dtype)),
        (Opcode::Set, &[ty]) if op.is_none() => return set_packed(ty, holds, path),
        _ => return None,
    };
    let compare = comparison(stype, ftz, holds, path)?;
    Some(match (dtype, op) {
        (Some(dtype), _) => set(dtype, stype, op, compare.function, path),
        (None, None) => compare,
        (None, Some(op)) => {
            LaneFn { function: combine, inner: compare.function, parameters: Parameters::new(op) }
        }
    })
}
