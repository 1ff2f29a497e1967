//! The approximate functions of binary64 on operands that are hard for them, against `sem`.

use super::values::{Random, turns};
use isa::enumerate::spellings;
use isa::{FormId, LENIENT, Mod, Opcode, Type};
use lanes::{Handler, LaneWidth, Operand, available_paths};
use sem::format::{F64, Format};
use sem::round::Mode;

/// Of numbers one after the other every so manyth is tried.
const STEP: usize = if cfg!(miri) { 500 } else { 1 };

/// Lanes of a call.
const LANES: usize = 1 << 10;

/// A function on all paths and in `sem`.
struct Function {
    handlers: Vec<Handler>,
    sem: fn(&Format, Mode, u64) -> u64,
}

impl Function {
    fn new(opcode: Opcode) -> Function {
        let sem = match opcode {
            Opcode::Ex2 => sem::approx::ex2,
            Opcode::Lg2 => sem::approx::lg2,
            Opcode::Sin => sem::approx::sin,
            _ => sem::approx::cos,
        };
        let spelling = (0..LENIENT.len())
            .map(|id| FormId((isa::FORMS.len() + id) as u16))
            .filter(|id| id.form().opcode == opcode)
            .flat_map(spellings)
            .find(|spelling| spelling.picks.types() == [Type::F64] && spelling.picks.mods() == [Mod::Approx])
            .expect("a lenient form");
        let handler =
            |path| Handler::new(spelling.form.form(), &spelling.picks, path).expect("it has a handler");
        Function { handlers: available_paths().into_iter().map(handler).collect(), sem }
    }

    /// Compares the results of many operands.
    fn check(&self, operands: &[f64]) {
        self.check_by(LANES, operands);
    }

    /// The same, so many at a time.
    fn check_by(&self, lanes: usize, operands: &[f64]) {
        let (mut source, mut result) =
            (Operand::new(LaneWidth::B8, lanes), Operand::new(LaneWidth::B8, lanes));
        for chunk in operands.chunks(lanes) {
            for lane in 0..lanes {
                source.set(lane, chunk[lane % chunk.len()].to_bits());
            }
            let want: Vec<u64> = chunk.iter().map(|x| (self.sem)(&F64, Mode::NEAREST, x.to_bits())).collect();
            for handler in &self.handlers {
                handler.run(&mut result, None, &[&source]);
                for (lane, (x, &want)) in chunk.iter().zip(&want).enumerate() {
                    let got = result.get(lane);
                    assert_eq!(got, want, "{x:e} ({:#x}): {got:#x}, not {want:#x}", x.to_bits());
                }
            }
        }
    }
}

/// A number and so many next to it on both sides.
fn around(x: f64, steps: u64) -> impl Iterator<Item = f64> {
    (0..=2 * steps).map(move |i| f64::from_bits(x.to_bits().wrapping_add(i).wrapping_sub(steps)))
}

/// A number of random sign and fraction, with an exponent from `least` to `most`.
fn random_number(random: &mut Random, least: i64, most: i64) -> f64 {
    let exponent = least + random.below((most - least + 1) as usize) as i64;
    let fraction = random.next() >> 12;
    // Some with few bits, some with a carry to come.
    let fraction = match random.below(4) {
        0 => fraction & !0 << random.below(52),
        1 => (1 << 52) - 1 - (fraction >> random.below(52)),
        _ => fraction,
    };
    f64::from_bits((random.next() & 1 << 63) | ((exponent + 1023) as u64) << 52 | fraction)
}

/// As many random numbers as the test has turns; `PTXVM_TEST_RANDOM` says how many.
fn many(random: &mut Random, least: i64, most: i64) -> Vec<f64> {
    let count = std::env::var("PTXVM_TEST_RANDOM").ok().and_then(|s| s.parse().ok()).unwrap_or(turns(40_000));
    (0..count).map(|_| random_number(random, least, most)).collect()
}

#[test]
fn powers_of_two_in_binary64() {
    let ex2 = Function::new(Opcode::Ex2);
    let mut random = Random::new(64);
    ex2.check(&many(&mut random, -60, 10));
    ex2.check(&many(&mut random, -4, 9));
    ex2.check(&many(&mut random, -1022, 1023));
    // Exact results, and those of the table.
    let sixteenths = (-1100 * 16..1030 * 16).step_by(STEP);
    ex2.check(&sixteenths.flat_map(|n| around(f64::from(n) / 16.0, 1)).collect::<Vec<_>>());
    // Halfway between two of the numerators of a table.
    let halfway = (-1100 * 16..1030 * 16).step_by(7 * STEP);
    ex2.check(&halfway.flat_map(|n| around((f64::from(n) + 0.5) / 16.0, 1)).collect::<Vec<_>>());
    // Next to 1, subnormal, next to zero and to infinity.
    let edges =
        [0.0, 1e-17, 1.6e-16, 3.2e-16, -1e-17, -8e-17, -1.6e-16, 1024.0, -1022.0, -1074.0, -1075.0, -1100.0];
    ex2.check(&edges.into_iter().flat_map(|x| around(x, 40)).collect::<Vec<_>>());
    ex2.check(&(0..2000).step_by(STEP).map(|i| -1076.0 + f64::from(i) / 37.0).collect::<Vec<_>>());
}

#[test]
fn logarithms_in_binary64() {
    let lg2 = Function::new(Opcode::Lg2);
    let mut random = Random::new(65);
    lg2.check(&many(&mut random, -1022, 1023));
    lg2.check(&many(&mut random, -2, 1));
    // Next to 1, at all distances; where the table changes from one entry to the next; powers of two; subnormal numbers.
    let near = (0..turns(20_000)).map(|_| 1.0 + random_number(&mut random, -54, -4));
    lg2.check(&near.collect::<Vec<_>>());
    let thirty_seconds = (32..=64).flat_map(|n| [0.5, 1.0, 2.0, 1e300].map(|x| x * f64::from(n) / 32.0));
    lg2.check(&thirty_seconds.flat_map(|x| around(x, 20)).collect::<Vec<_>>());
    let powers = (1..0x7ff).step_by(STEP).map(|exponent| f64::from_bits(exponent << 52));
    lg2.check(&powers.flat_map(|x| around(x, 1)).collect::<Vec<_>>());
    let subnormal = (0..turns(2000)).map(|i| f64::from_bits(random.next() >> (12 + i % 52)));
    lg2.check(&subnormal.collect::<Vec<_>>());
}

/// Numbers next to multiples of pi/2: the nearest ones of random multiples, of all sizes.
fn near_quarter_turns(random: &mut Random, count: usize) -> Vec<f64> {
    let quarters = |random: &mut Random| {
        let n = random_number(random, 0, 51).abs().trunc();
        n * std::f64::consts::FRAC_PI_2
    };
    (0..count).flat_map(|_| around(quarters(random), 2).collect::<Vec<_>>()).collect()
}

fn check_circular(function: &Function, seed: u64) {
    let mut random = Random::new(seed);
    function.check(&many(&mut random, -60, 30));
    function.check(&many(&mut random, -4, 3));
    function.check(&many(&mut random, 20, 1023));
    function.check(&many(&mut random, -1022, 1023));
    function.check(&near_quarter_turns(&mut random, turns(10_000)));
    // Multiples that programs have, and where a table changes from one entry to the next.
    let multiples = |step: f64| (0..turns(4000)).flat_map(move |n| around(n as f64 * step, 1));
    for step in [std::f64::consts::PI, std::f64::consts::FRAC_PI_4, 1.0 / 32.0, 1.0] {
        function.check(&multiples(step).collect::<Vec<_>>());
    }
    let eighths = (0..256).map(|n| (f64::from(n) + 0.5) * std::f64::consts::FRAC_PI_2);
    function.check(&eighths.flat_map(|x| around(x, 4)).collect::<Vec<_>>());
    // Every exponent, from where angles are reduced otherwise on, too; and what lies nearest to a multiple of pi/2.
    let exponents =
        (0..0x7ff).step_by(STEP).map(|exponent| f64::from_bits(exponent << 52 | random.next() >> 12));
    function.check(&exponents.flat_map(|x| around(x, 1)).collect::<Vec<_>>());
    let large = (1..0x7ff).step_by(STEP).map(|exponent| f64::from_bits(exponent << 52));
    function.check(&large.flat_map(|x| around(x, 2)).collect::<Vec<_>>());
    let hard = [6381956970095103.0 * 2f64.powi(797), 5261692873635770.0 * 2f64.powi(499), 1.0e22, f64::MAX];
    // Near a point of rounding: the second part of a table's entry matters times half the square.
    let halfway = [0xe67f_ec1a_63d7_2fc1, 0x640f_ffff_ffff_3ef0].map(f64::from_bits);
    let hard = hard.into_iter().chain(halfway).flat_map(|x| [x, -x]);
    function.check(&hard.flat_map(|x| around(x, 4)).collect::<Vec<_>>());
}

#[test]
fn sines_in_binary64() {
    check_circular(&Function::new(Opcode::Sin), 66);
}

#[test]
fn cosines_in_binary64() {
    check_circular(&Function::new(Opcode::Cos), 67);
}

/// Operands that are computed stand among others in all ways: few, many, in whole blocks, up to the end.
#[test]
fn others_among_operands_in_binary64() {
    let mut random = Random::new(68);
    let others = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-300, 5e-324, 1e300, -1e300, -7.5];
    for opcode in [Opcode::Ex2, Opcode::Lg2, Opcode::Sin, Opcode::Cos] {
        let function = Function::new(opcode);
        for lanes in [16, 48, 240, 256, 272, 1024] {
            for part in [1, 2, 8, 15, 16] {
                let operands: Vec<f64> = (0..turns(2048))
                    .map(|_| match random.below(16) < part {
                        true => others[random.below(others.len())],
                        false => random_number(&mut random, -4, 4).abs(),
                    })
                    .collect();
                function.check_by(lanes, &operands);
            }
        }
        let halves: Vec<f64> =
            (0..2048).map(|i| if i / 128 % 2 == 0 { 1.0 + f64::from(i) } else { -0.0 }).collect();
        function.check(&halves);
    }
}
