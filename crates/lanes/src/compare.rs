//! setp of every type, and set of 32-bit results: comparisons to mask bits.

use super::drive::{Lane, load, load_mask, store, store_mask};
use super::path::{BLOCK, Block, Kernel, Path, version};
use super::{HostPath, LaneArgs, LaneFn};
use isa::{BoolOp, CmpOp, Mod, Opcode, Picks, Type};
use std::marker::PhantomData;

/// A set of outcomes of a comparison: those for which it holds.
const LESS: u8 = 1;
const EQUAL: u8 = 2;
const GREATER: u8 = 4;
const UNORDERED: u8 = 8;

/// The outcomes for which an operator holds.
fn outcomes(op: CmpOp) -> u8 {
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
    // As the hardware has them: a set with the unordered outcome is the complement of one without.
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
    /// Which sets of outcomes there are: without the unordered ones for integers.
    const FLOAT: bool;

    /// The results for one block: p's and q's comparison. Of scalars the second is the complement, of packed halves
    /// the results of the low and of the high halves.
    ///
    /// # Safety
    /// Sources 0 and 1 must have that block; `P` must be a path of the host.
    unsafe fn block<P: Path, const HOLDS: u8>(args: &LaneArgs, i: usize) -> [u16; 2];
}

/// All ones or zero.
macro_rules! all_ones {
    ($T:ident, $test:expr) => {
        (0 as $T).wrapping_sub($test as $T)
    };
}

/// Compares blocks of scalars: element type, type of the bits of its width, and how.
macro_rules! compare {
    ($($name:ident: $T:ident as $Bits:ident by $top_bits:ident, float $float:literal,
        |$a:ident, $b:ident| $test:expr;)*) => {
        $(struct $name;
        impl Compare for $name {
            const FLOAT: bool = $float;

            #[inline(always)]
            unsafe fn block<P: Path, const HOLDS: u8>(args: &LaneArgs, i: usize) -> [u16; 2] {
                // SAFETY: the caller's promise.
                unsafe {
                    let (x, y): (Block<$T>, Block<$T>) = (load(args, 0, i), load(args, 1, i));
                    let mut bits = [0; BLOCK];
                    for k in 0..BLOCK {
                        let ($a, $b) = (x[k], y[k]);
                        bits[k] = all_ones!($Bits, $test);
                    }
                    let t = P::$top_bits(bits);
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

/// Compares halves as integers: magnitudes above `INFINITY` are NaNs, those below `NORMAL` count as zero.
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

/// Two halves a lane, compared by `INFINITY` and `NORMAL` as above.
struct Pair<const INFINITY: i16, const NORMAL: i16>;

impl<const INFINITY: i16, const NORMAL: i16> Compare for Pair<INFINITY, NORMAL> {
    const FLOAT: bool = true;

    #[inline(always)]
    unsafe fn block<P: Path, const HOLDS: u8>(args: &LaneArgs, i: usize) -> [u16; 2] {
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
            // Little-endian as everything here: the low half of a lane comes first.
            let high: Block<u32> = std::mem::transmute::<[u16; 2 * BLOCK], Block<u32>>(bits);
            let mut low = high;
            for x in &mut low {
                *x <<= 16;
            }
            [P::top_bits32(low), P::top_bits32(high)]
        }
    }
}

/// p and q of a comparison without c.
struct Setp<C, const HOLDS: u8>(PhantomData<C>);

impl<C: Compare, const HOLDS: u8> Kernel for Setp<C, HOLDS> {
    #[inline(always)]
    unsafe fn run<P: Path>(args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources have `lanes` elements, the destinations are predicates, or null.
            unsafe {
                let [p, q] = C::block::<P, HOLDS>(args, i);
                store_mask(args, 0, i, p);
                store_mask(args, 1, i, q);
            }
        }
    }
}

/// How a comparison is combined with c.
const AND: u8 = 0;
const OR: u8 = 1;
const XOR: u8 = 2;

/// p and q of a comparison combined with c.
struct SetpWith<C, const OP: u8, const HOLDS: u8>(PhantomData<C>);

impl<C: Compare, const OP: u8, const HOLDS: u8> Kernel for SetpWith<C, OP, HOLDS> {
    #[inline(always)]
    unsafe fn run<P: Path>(args: &LaneArgs) {
        // SAFETY: the caller's promise.
        unsafe { combine::<OP>(args, version::<Setp<C, HOLDS>>(P::PATH)) }
    }
}

/// Runs a comparison and combines its results with c. Not inlined: one copy does for all
/// comparisons.
///
/// # Safety
/// As for `compare`; source 2 is a predicate, which may be a destination.
#[inline(never)]
unsafe fn combine<const OP: u8>(args: &LaneArgs, compare: LaneFn) {
    /// Lanes compared at a time: a whole chunk.
    const LANES: usize = 256;
    for start in (0..args.lanes).step_by(LANES) {
        let mut results = [[0u16; LANES / BLOCK]; 2];
        let mut part = LaneArgs { lanes: (args.lanes - start).min(LANES), ..*args };
        for (to, result) in part.dst.iter_mut().zip(&mut results) {
            *to = if to.is_null() { *to } else { result.as_mut_ptr().cast() };
        }
        for (source, step) in part.src.iter_mut().zip(part.step).take(2) {
            *source = source.wrapping_add(start / BLOCK * step);
        }
        // SAFETY: the caller's promise; `part` lies within the operands, and there is a bit for each of its lanes.
        unsafe {
            compare(&part);
            for (i, (p, q)) in results[0].iter().zip(&results[1]).enumerate().take(part.lanes / BLOCK) {
                let group = start / BLOCK + i;
                let c = load_mask(args, 2, group);
                let with_c = |t: u16| match OP {
                    AND => t & c,
                    OR => t | c,
                    _ => t ^ c,
                };
                store_mask(args, 0, group, with_c(*p));
                store_mask(args, 1, group, with_c(*q));
            }
        }
    }
}

/// What `set` writes where the comparison holds.
trait Truth: 'static {
    type Bits: Lane;
    const YES: Self::Bits;
    unsafe fn spread<P: Path>(mask: u16) -> Block<Self::Bits>;
}

macro_rules! truth {
    ($($name:ident $Bits:ident $yes:literal $select:ident;)*) => {
        $(struct $name;
        impl Truth for $name {
            type Bits = $Bits;
            const YES: $Bits = $yes;

            #[inline(always)]
            unsafe fn spread<P: Path>(mask: u16) -> Block<$Bits> {
                // SAFETY: the caller promises that `P` is a path of the host.
                unsafe { P::$select(mask, [Self::YES; BLOCK], [0; BLOCK]) }
            }
        })*
    };
}
truth! {
    Ones32 u32 0xffff_ffff select32;
    OneF32 u32 0x3f80_0000 select32;
    OneF16 u16 0x3c00 select16;
}

struct Set<C, T, const HOLDS: u8>(PhantomData<(C, T)>);

impl<C: Compare, T: Truth, const HOLDS: u8> Kernel for Set<C, T, HOLDS> {
    #[inline(always)]
    unsafe fn run<P: Path>(args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` elements.
            unsafe { store(args, 0, i, T::spread::<P>(C::block::<P, HOLDS>(args, i)[0])) }
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

fn setp<C: Compare>(holds: u8, op: Option<BoolOp>, path: HostPath) -> Option<LaneFn> {
    Some(match op {
        None => with_outcomes!(path, C, holds, Setp<C>),
        Some(BoolOp::And) => with_outcomes!(path, C, holds, SetpWith<C, AND>),
        Some(BoolOp::Or) => with_outcomes!(path, C, holds, SetpWith<C, OR>),
        Some(BoolOp::Xor) => with_outcomes!(path, C, holds, SetpWith<C, XOR>),
    })
}

fn set<C: Compare, T: Truth>(holds: u8, path: HostPath) -> Option<LaneFn> {
    Some(with_outcomes!(path, C, holds, Set<C, T>))
}

/// The handler of a form of `setp` or `set`.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let holds = outcomes(picks.cmp()?);
    let op = picks.bool_op();
    let ftz = picks.has(Mod::Ftz);
    if sources != 2 + usize::from(op.is_some()) {
        return None;
    }
    if !picks.mods().iter().all(|m| Mod::cmp(*m).is_some() || m.bool_op().is_some() || *m == Mod::Ftz) {
        return None;
    }
    match (opcode, picks.types()) {
        (Opcode::Setp, &[ty]) => match ty {
            Type::B16 | Type::U16 => setp::<U16>(holds, op, path),
            Type::S16 => setp::<S16>(holds, op, path),
            Type::B32 | Type::U32 => setp::<U32>(holds, op, path),
            Type::S32 => setp::<S32>(holds, op, path),
            Type::B64 | Type::U64 => setp::<U64>(holds, op, path),
            Type::S64 => setp::<S64>(holds, op, path),
            Type::F32 if ftz => setp::<F32Ftz>(holds, op, path),
            Type::F32 => setp::<F32>(holds, op, path),
            Type::F64 => setp::<F64>(holds, op, path),
            Type::F16 if ftz => setp::<F16Ftz>(holds, op, path),
            Type::F16 => setp::<F16>(holds, op, path),
            Type::Bf16 => setp::<Bf16>(holds, op, path),
            Type::F16x2 if ftz => setp::<Pair<0x7c00, 0x0400>>(holds, op, path),
            Type::F16x2 => setp::<Pair<0x7c00, 0>>(holds, op, path),
            Type::Bf16x2 => setp::<Pair<0x7f80, 0>>(holds, op, path),
            _ => None,
        },
        (Opcode::Set, &[dtype, stype]) if op.is_none() && !ftz => match (dtype, stype) {
            (Type::U32 | Type::S32, Type::F32) => set::<F32, Ones32>(holds, path),
            (Type::U32 | Type::S32, Type::S32) => set::<S32, Ones32>(holds, path),
            (Type::U32 | Type::S32, Type::U32 | Type::B32) => set::<U32, Ones32>(holds, path),
            (Type::F32, Type::F32) => set::<F32, OneF32>(holds, path),
            (Type::F16, Type::F16) => set::<F16, OneF16>(holds, path),
            _ => None,
        },
        _ => None,
    }
}
