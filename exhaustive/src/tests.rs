//! The oracle against rustc_apfloat, a sample of every sweep, and tests that a difference is found.

use super::addend::{KINDS, hard, mix};
use super::exact::{ROUNDINGS, decode_f32, product, sum};
use super::half::{BF16, F16, Half, Meaning, NAN_RANK};
use super::mixed::{Mixed, Operation};
use super::report::{Line, merged};
use super::*;
use rustc_apfloat::ieee::{BFloat, Half as Binary16, Single};
use rustc_apfloat::{Float, FloatConvert, Round};
use std::cmp::Ordering;
use std::time::Duration;

const APFLOAT: [Round; 4] =
    [Round::NearestTiesToEven, Round::TowardZero, Round::TowardNegative, Round::TowardPositive];

fn single(bits: u32) -> Single {
    Single::from_bits(u128::from(bits))
}

fn widened<T: Float + FloatConvert<Single>>(bits: u16) -> Single {
    T::from_bits(u128::from(bits)).convert(&mut false).value
}

/// Zeros, the smallest numbers, some near one, the largest, infinities and NaNs of both formats, and odd bits.
const VALUES: [u16; 20] = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x03ff, 0x0400, 0x3bff, 0x3c00, 0x3f80, 0xbf81, 0x5555,
    0x7bff, 0x7c00, 0xfc01, 0x7f7f, 0x7f80, 0xff81, 0xffff,
];

fn orders_as<T: Float + FloatConvert<Single>>(half: &Half) {
    let ranks = half.ranks(false);
    for (i, &a) in VALUES.iter().enumerate() {
        for j in 0..3000 {
            let b = VALUES.get(j).copied().unwrap_or(mix((i * 3000 + j) as u64) as u16);
            let (x, y) = (T::from_bits(a.into()), T::from_bits(b.into()));
            let [r, s] = [a, b].map(|bits| ranks[usize::from(bits)]);
            let order = if r == NAN_RANK || s == NAN_RANK { None } else { Some(r.cmp(&s)) };
            assert_eq!(order, x.partial_cmp(&y), "{a:#x} {b:#x} of {}", half.name);
        }
    }
}

#[test]
fn halves_are_ordered_as_apfloat_orders_them() {
    orders_as::<Binary16>(&F16);
    orders_as::<BFloat>(&BF16);
}

#[test]
fn subnormal_numbers_are_equal_where_they_are_flushed() {
    let (plain, flushed) = (F16.ranks(false), F16.ranks(true));
    let zero = flushed[0];
    for bits in 0..=u16::MAX {
        let magnitude = bits & 0x7fff;
        let (plain, flushed) = (plain[usize::from(bits)], flushed[usize::from(bits)]);
        let expected = match magnitude {
            0..0x0400 => Ordering::Equal,
            0x0400..=0x7c00 if bits < 0x8000 => Ordering::Greater,
            0x0400..=0x7c00 => Ordering::Less,
            _ => {
                assert_eq!((plain, flushed), (NAN_RANK, NAN_RANK));
                continue;
            }
        };
        assert_eq!(flushed.cmp(&zero), expected, "{bits:#x}");
    }
}

fn sums_are_those_of<T: Float + FloatConvert<Single>>(half: &Half) {
    let mut kinds_of_results = [0; 4];
    for n in 0..40_000u64 {
        let noise = mix(n);
        let a = if n % 4 == 0 { VALUES[noise as usize % VALUES.len()] } else { noise as u16 };
        let b = if n % 8 < 2 { VALUES[(noise >> 8) as usize % VALUES.len()] } else { (noise >> 16) as u16 };
        let x = product(half.decode(a), half.decode(b));
        let c = hard(x, n as usize % KINDS, noise);
        let got = sum(x, decode_f32(c));
        for (rounding, round) in APFLOAT.into_iter().enumerate() {
            let want = widened::<T>(a).mul_add_r(widened::<T>(b), single(c), round).value;
            let bits = if want.is_nan() { super::exact::NAN } else { want.to_bits() as u32 };
            let name = ROUNDINGS[rounding];
            assert_eq!(got[rounding], bits, "{a:#06x} * {b:#06x} + {c:#010x} of {}, {name}", half.name);
            let kind = [want.is_nan(), want.is_zero(), want.is_denormal(), want.is_infinite()];
            kinds_of_results.iter_mut().zip(kind).for_each(|(count, is)| *count += u64::from(is));
        }
    }
    assert!(kinds_of_results.iter().all(|&count| count > 100), "{kinds_of_results:?}");
}

#[test]
fn exact_sums_are_those_of_apfloat() {
    sums_are_those_of::<Binary16>(&F16);
    sums_are_those_of::<BFloat>(&BF16);
}

/// Counts for each kind of addend how many sums are halfway cases, and how many are exactly zero.
#[test]
fn addends_are_hard() {
    let (mut ties, mut zeros, mut inexact) = ([0; KINDS], [0; KINDS], [0; KINDS]);
    for n in 0..16_000u64 {
        let (noise, kind) = (mix(n), n as usize % KINDS);
        let bits = |shift: u64| 0x3000 | (noise >> shift) as u16 & 0x1fff;
        let x = product(F16.decode(bits(0)), F16.decode(bits(16)));
        let c = hard(x, kind, mix(noise));
        let (Meaning::Number { significand, exponent, negative }, Meaning::Number { .. }) =
            (x, decode_f32(c))
        else {
            continue;
        };
        let results = sum(x, decode_f32(c));
        // After subtracting the midpoint of the two neighbours, a tie leaves nothing.
        let sign = if negative { -1.0 } else { 1.0 };
        let exact = sign * f64::from(significand) * 2f64.powi(exponent) + f64::from(f32::from_bits(c));
        let [down, up] = [f32::from_bits(results[2]), f32::from_bits(results[3])].map(f64::from);
        inexact[kind] += u32::from(down != up);
        ties[kind] += u32::from(down != up && exact == (down + up) / 2.0);
        zeros[kind] += u32::from(results[0] & 0x7fff_ffff == 0);
    }
    // Of 1,000 each.
    assert!([0, 4, 8].iter().all(|&kind| ties[kind] > 900), "{ties:?}");
    assert!([1, 2, 3, 7].iter().all(|&kind| inexact[kind] > 900 && ties[kind] < 50), "{inexact:?} {ties:?}");
    assert!(zeros[10] > 990 && zeros[11] > 50 && zeros[11] < 300, "{zeros:?}");
}

fn sample(sweep: &dyn Sweep) {
    let paths = available_paths();
    // Some of the sweeps cover whole tables.
    let step = if sweep.instructions() > 60 { 13 } else { 3 };
    let values: Vec<u16> = VALUES.into_iter().step_by(step).collect();
    for (path, tally) in paths.iter().zip(run_sweep(sweep, &values, paths.len(), || ())) {
        assert_eq!(tally.differences, 0, "on {}: {:#?}", path.name(), tally.examples);
        let rows = (values.len() * ROW) as u64;
        assert!(tally.results >= rows * sweep.instructions() as u64);
    }
}

#[test]
fn samples_of_the_sweeps_agree() {
    for which in Which::value_variants() {
        sample(&*which.sweep("", &available_paths()).expect("handlers"));
    }
}

/// A sweep with the oracle of another instruction finds the differences and reports their places.
#[test]
fn differences_are_found() {
    let path = [HostPath::Portable];
    let mut sweep = Mixed::new(Operation::Add, &F16, &path).expect("handlers");
    sweep.operation = Operation::Sub;
    let [tally] = &run_sweep(&sweep, &[0x3c00], 1, || ())[..] else { panic!("one path") };
    assert!(tally.differences > 100_000, "{}", tally.differences);
    assert_eq!(tally.examples.len(), EXAMPLES);
    assert_eq!(tally.examples[0], "add.rz.f32.f16 of 0x3c00, 0x00000001: 0x3f800000, not 0x3f7fffff");

    let sweep = Compare::with_wrong_operator(&path);
    let [tally] = &run_sweep(&sweep, &[0x8000], 1, || ())[..] else { panic!("one path") };
    // -0 equals two values, for which `le` holds and `lt` does not.
    assert_eq!(tally.differences, 2);
    assert_eq!(
        tally.examples,
        ["setp.lt.f16 of 0x8000, 0x0000: p should be 1", "setp.lt.f16 of 0x8000, 0x8000: p should be 1"]
    );

    let sweep = Hsetp2::with_wrong_sense(&path);
    let [tally] = &run_sweep(&sweep, &[0x3c00], 1, || ())[..] else { panic!("one path") };
    assert_eq!(tally.differences, ROW as u64);
    assert_eq!(tally.examples[0], "sm_53 setp.lt.f16 p, a, b of 0x3c00, 0x0000: p should be 0");
}

#[test]
fn reports_are_merged() {
    let line = |which: Which, path, share: &str, results| {
        let sweep = which.sweep("", &[]).expect("no handlers needed");
        let tally = Tally { results, ..Tally::default() };
        let share = Share::parse(share).expect("a share");
        Line::new(
            (&name_of(which, ""), &*sweep),
            path,
            &tally,
            share,
            Time { wall: Duration::from_secs(60), cpu: Duration::from_secs(90) },
            2,
        )
    };
    let first = merged("", vec![line(Which::SetpF16, HostPath::Avx2, "1/1", 1_234_567)]);
    let second = merged(&first, vec![line(Which::SetpF16, HostPath::Portable, "2/4", 5)]);
    let third = merged(&second, vec![line(Which::SetpF16, HostPath::Avx2, "1/1", 890)]);
    let rows: Vec<&str> = third.lines().filter(|row| row.starts_with("| setp")).collect();
    assert!(first.contains("| 1,234,567 | 0 | 90 s | 60 s |"), "{first}");
    assert_eq!(rows.len(), 2, "{third}");
    assert!(rows[0].starts_with("| setp-f16 | portable | 2/4 | 56 | 5 |"), "{third}");
    assert!(rows[1].starts_with("| setp-f16 | avx2 | all | 56 | 890 |"), "{third}");
}

#[test]
fn shares_are_parts_of_the_whole() {
    let mut all: Vec<u16> = (1..=3).flat_map(|k| Share::parse(&format!("{k}/3")).unwrap().values()).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..=u16::MAX));
    for wrong in ["", "1", "0/2", "3/2", "1/0", "a/b"] {
        assert!(Share::parse(wrong).is_err(), "{wrong}");
    }
}
