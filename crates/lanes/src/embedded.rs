//! binary32 and binary64 rounded toward zero, down and up by AVX-512 instructions with embedded rounding.

use std::arch::x86_64::*;
use std::marker::PhantomData;
use std::mem::transmute;

use isa::{Mod, Opcode, Picks, Rounding, Type};

use super::directed64::{ADD, DIV, FMA, MUL, RCP, SQRT, SUB};
use super::drive::{Bf16, F16, Half, Lane, in_pairs, load, store};
use super::float::{NAN32, finish64};
use super::path::{BLOCK, Block, Path};
use super::x86::Avx512;
use super::{HostPath, LaneArgs, LaneFn, Parameters, only};

/// Roundings, encoded for the instructions; exceptions are suppressed.
const ZERO: i32 = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
const UP: i32 = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;

/// Modifiers besides the rounding.
#[derive(Clone, Copy)]
struct Modifiers {
    ftz: bool,
    sat: bool,
}

/// The element type of an operation, and how its sources are read.
trait Elements: 'static {
    /// An element of the result.
    type Number: Lane;

    /// Block `i` of source `n`. `is_last` marks the last of several sources.
    unsafe fn load(path: Avx512, args: &LaneArgs, n: usize, i: usize, is_last: bool) -> Block<Self::Number>;

    /// Applies the operation to its operands, and then all modifiers.
    fn compute<const OPERATION: u8, const ROUNDING: i32>(
        path: Avx512,
        operands: [Block<Self::Number>; 3],
        modifiers: Modifiers,
    ) -> Block<Self::Number>;
}

macro_rules! operation {
    ($operation:ident, $rounding:ident, $x:ident, $y:ident, $z:ident, $add:ident, $sub:ident, $mul:ident, $fma:ident, $div:ident, $sqrt:ident) => {
        match $operation {
            ADD => $add::<$rounding>($x, $y),
            SUB => $sub::<$rounding>($x, $y),
            MUL => $mul::<$rounding>($x, $y),
            FMA => $fma::<$rounding>($x, $y, $z),
            DIV | RCP => $div::<$rounding>($x, $y),
            _ => $sqrt::<$rounding>($x),
        }
    };
}

#[inline(always)]
fn singles<const OPERATION: u8, const ROUNDING: i32>(_: Avx512, [x, y, z]: [__m512; 3]) -> __m512 {
    // SAFETY: the first argument proves that the host has AVX-512.
    unsafe {
        operation!(
            OPERATION,
            ROUNDING,
            x,
            y,
            z,
            _mm512_add_round_ps,
            _mm512_sub_round_ps,
            _mm512_mul_round_ps,
            _mm512_fmadd_round_ps,
            _mm512_div_round_ps,
            _mm512_sqrt_round_ps
        )
    }
}

/// Flushes subnormal numbers to zeros of the same sign.
#[inline(always)]
fn flush(_: Avx512, x: __m512) -> __m512 {
    // SAFETY: the first argument proves that the host has AVX-512.
    unsafe {
        let small = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(_mm512_abs_ps(x), _mm512_set1_ps(f32::MIN_POSITIVE));
        _mm512_mask_and_ps(x, small, x, _mm512_set1_ps(-0.0))
    }
}

/// binary32 results, from sources that `S` reads.
struct Singles<S>(PhantomData<S>);

/// How sources of [`Singles`] are read.
trait Source: 'static {
    unsafe fn load(path: Avx512, args: &LaneArgs, n: usize, i: usize, is_last: bool) -> Block<f32>;
}

/// All sources are binary32.
struct NoHalf;

impl Source for NoHalf {
    #[inline(always)]
    unsafe fn load(_: Avx512, args: &LaneArgs, n: usize, i: usize, _: bool) -> Block<f32> {
        // SAFETY: the caller's promise.
        unsafe { load(args, n, i) }
    }
}

/// All sources except the last are halves.
impl<H: Half> Source for H {
    #[inline(always)]
    unsafe fn load(path: Avx512, args: &LaneArgs, n: usize, i: usize, is_last: bool) -> Block<f32> {
        // SAFETY: the caller's promise.
        unsafe { if is_last { load(args, n, i) } else { H::widen(path, load(args, n, i)) } }
    }
}

impl<S: Source> Elements for Singles<S> {
    type Number = f32;

    #[inline(always)]
    unsafe fn load(path: Avx512, args: &LaneArgs, n: usize, i: usize, is_last: bool) -> Block<f32> {
        // SAFETY: the caller's promise.
        unsafe { S::load(path, args, n, i, is_last) }
    }

    #[inline(always)]
    fn compute<const OPERATION: u8, const ROUNDING: i32>(
        path: Avx512,
        operands: [Block<f32>; 3],
        Modifiers { ftz, sat }: Modifiers,
    ) -> Block<f32> {
        /// The scale of the repeated computation near the least normal number.
        const SCALE: f32 = (1u64 << 32) as f32;
        // SAFETY: `path` proves that the host has AVX-512; arrays and vectors of the same bytes.
        unsafe {
            let mut operands: [__m512; 3] = transmute(operands);
            if ftz {
                operands = [flush(path, operands[0]), flush(path, operands[1]), flush(path, operands[2])];
            }
            let mut out = singles::<OPERATION, ROUNDING>(path, operands);
            if ftz {
                // `.ftz` rounds a number with an unbounded exponent before it flushes. So a result that the host
                // rounds up to the least normal number may be less than that. The scaled computation has all the
                // digits and shows this. (Sums below the least normal number are exact, and no root is that small.)
                let least = _mm512_set1_ps(f32::MIN_POSITIVE);
                let doubtful = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(_mm512_abs_ps(out), least);
                if matches!(OPERATION, MUL | FMA | DIV | RCP) && doubtful != 0 {
                    let scale = _mm512_set1_ps(SCALE);
                    let [x, y, z] = operands;
                    let great = [_mm512_mul_ps(x, scale), y, _mm512_mul_ps(z, scale)];
                    let great = _mm512_abs_ps(singles::<OPERATION, ROUNDING>(path, great));
                    let falls_short = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(great, _mm512_mul_ps(least, scale));
                    out = _mm512_mask_and_ps(out, doubtful & falls_short, out, _mm512_set1_ps(-0.0));
                }
                out = flush(path, out);
            }
            if sat {
                // If an operand is a NaN, or both are zeros, these instructions return the second one.
                out = _mm512_min_ps(_mm512_max_ps(out, _mm512_setzero_ps()), _mm512_set1_ps(1.0));
            } else {
                let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(out, out);
                out = _mm512_mask_mov_ps(out, nan, _mm512_set1_ps(NAN32));
            }
            transmute(out)
        }
    }
}

/// binary64.
struct Doubles;

impl Elements for Doubles {
    type Number = f64;

    #[inline(always)]
    unsafe fn load(_: Avx512, args: &LaneArgs, n: usize, i: usize, _: bool) -> Block<f64> {
        // SAFETY: the caller's promise.
        unsafe { load(args, n, i) }
    }

    /// Modifiers have no effect.
    #[inline(always)]
    fn compute<const OPERATION: u8, const ROUNDING: i32>(
        _: Avx512,
        operands: [Block<f64>; 3],
        _: Modifiers,
    ) -> Block<f64> {
        let mut out = [0.0; BLOCK];
        // SAFETY: `path` proves that the host has AVX-512; arrays and vectors of the same 128 bytes.
        unsafe {
            let [x, y, z]: [[__m512d; 2]; 3] = transmute(operands);
            let mut halves = x;
            for half in 0..2 {
                let (x, y, z) = (x[half], y[half], z[half]);
                halves[half] = operation!(
                    OPERATION,
                    ROUNDING,
                    x,
                    y,
                    z,
                    _mm512_add_round_pd,
                    _mm512_sub_round_pd,
                    _mm512_mul_round_pd,
                    _mm512_fmadd_round_pd,
                    _mm512_div_round_pd,
                    _mm512_sqrt_round_pd
                );
            }
            let results: Block<f64> = transmute(halves);
            let [x, y, z] = operands;
            for k in 0..BLOCK {
                out[k] = match OPERATION {
                    FMA => finish64([y[k], z[k], x[k]], results[k]),
                    SQRT => finish64([x[k]], results[k]),
                    DIV => finish64([x[k], y[k]], results[k]),
                    _ => finish64([y[k], x[k]], results[k]),
                };
            }
        }
        out
    }
}

/// # Safety
/// As for [`LaneFn::call`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn run<E: Elements, const OPERATION: u8, const ROUNDING: i32>(args: &LaneArgs, lane_fn: &LaneFn)
where
    E::Number: From<u8>,
{
    let path = Avx512::new();
    // SAFETY: `of_elements` made the parameters.
    let &modifiers: &Modifiers = unsafe { lane_fn.parameters.get() };
    for i in 0..args.lanes / BLOCK {
        // SAFETY: the sources and the destination have `lanes` elements.
        unsafe {
            let none = [E::Number::default(); BLOCK];
            let x = E::load(path, args, 0, i, false);
            let operands = match OPERATION {
                SQRT => [x, none, none],
                RCP => [[E::Number::from(1); BLOCK], x, none],
                FMA => [x, E::load(path, args, 1, i, false), E::load(path, args, 2, i, true)],
                _ => [x, E::load(path, args, 1, i, true), none],
            };
            store(path, args, 0, i, E::compute::<OPERATION, ROUNDING>(path, operands, modifiers));
        }
    }
}

fn of_elements<E: Elements>(
    opcode: Opcode,
    sources: usize,
    rounding: Rounding,
    modifiers: Modifiers,
) -> Option<LaneFn>
where
    E::Number: From<u8>,
{
    macro_rules! of_operation {
        ($operation:ident) => {
            match rounding {
                Rounding::TowardZero => run::<E, $operation, ZERO>,
                Rounding::TowardNegative => run::<E, $operation, DOWN>,
                Rounding::TowardPositive => run::<E, $operation, UP>,
                _ => return None,
            }
        };
    }
    let function: unsafe fn(&LaneArgs, &LaneFn) = match (opcode, sources) {
        (Opcode::Add, 2) => of_operation!(ADD),
        (Opcode::Sub, 2) => of_operation!(SUB),
        (Opcode::Mul, 2) => of_operation!(MUL),
        (Opcode::Fma | Opcode::Mad, 3) => of_operation!(FMA),
        (Opcode::Div, 2) => of_operation!(DIV),
        (Opcode::Rcp, 1) => of_operation!(RCP),
        (Opcode::Sqrt, 1) => of_operation!(SQRT),
        _ => return None,
    };
    Some(LaneFn { function, inner: function, parameters: Parameters::new(modifiers) })
}

/// The handler of a form with a directed rounding.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    if path != Avx512::PATH || !only(picks, &[Mod::Rz, Mod::Rm, Mod::Rp, Mod::Ftz, Mod::Sat]) {
        return None;
    }
    let (rounding, modifiers) =
        (picks.rounding()?, Modifiers { ftz: picks.has(Mod::Ftz), sat: picks.has(Mod::Sat) });
    let is_mixed = matches!(opcode, Opcode::Add | Opcode::Sub | Opcode::Fma);
    match picks.types() {
        [Type::F32] => of_elements::<Singles<NoHalf>>(opcode, sources, rounding, modifiers),
        [Type::F32x2] => {
            Some(in_pairs(4, of_elements::<Singles<NoHalf>>(opcode, sources, rounding, modifiers)?))
        }
        [Type::F32, Type::F16] if is_mixed => {
            of_elements::<Singles<F16>>(opcode, sources, rounding, modifiers)
        }
        [Type::F32, Type::Bf16] if is_mixed => {
            of_elements::<Singles<Bf16>>(opcode, sources, rounding, modifiers)
        }
        [Type::F64] => of_elements::<Doubles>(opcode, sources, rounding, modifiers),
        _ => None,
    }
}
