//! Executes the HSETP2 that a `setp` is lowered to, and compares it with the executed `setp`: one value of a with all
//! values of b.

use super::half::{F16, Meaning};
use super::{ROW, Sweep, Tally, handler};
use lanes::{Handler, HostPath, LaneWidth, Operand};
use sass::{Arch, Executable, Operands, Origin, Outcome, Source, Thread};

/// A target and a `setp` in the syntax of `ptxvm sass lower`: at least one of each class, and of each encoding. The
/// source other than `a` is a register, `0x` (every literal), `[v]` (a parameter), or `cvt.rz(..)` (an FP32 that
/// HSETP2 converts).
const CLASSES: [(&str, &str); 22] = [
    ("sm_53", "setp.lt.f16 p, a, b"),
    ("sm_53", "setp.gt.f16x2 p|q, a, b"),
    ("sm_60", "setp.le.ftz.f16 p, a, b"),
    ("sm_60", "setp.eq.or.ftz.f16x2 p|q, a, b, !c"),
    ("sm_60", "setp.ge.f16 p, a, cvt.rz([w])"),
    ("sm_60", "setp.ltu.f16 p, a, 0x"),
    ("sm_70", "setp.geu.f16 p, a, b"),
    ("sm_70", "setp.nan.f16x2 p|q, a, b"),
    ("sm_70", "setp.ne.and.f16 p, a, b, !c"),
    ("sm_70", "setp.ltu.f16 p, a, cvt.rz(b)"),
    ("sm_75", "setp.num.f16 p, a, b"),
    ("sm_75", "setp.lt.xor.f16x2 p|q, a, b, !c"),
    ("sm_75", "setp.gt.f16 p, cvt.rz([w]), a"),
    ("sm_75", "setp.lt.f16 p, 0x, a"),
    ("sm_80", "setp.equ.f16 p, a, [v]"),
    ("sm_90", "setp.lt.bf16 p, a, b"),
    ("sm_90", "setp.neu.bf16x2 p|q, a, b"),
    ("sm_90", "setp.gt.or.bf16 p, a, b, !c"),
    ("sm_90", "setp.le.bf16 p, a, 0x"),
    ("sm_100", "setp.ge.ftz.f16x2 p|q, a, b"),
    ("sm_100", "setp.leu.bf16 p, a, [v]"),
    ("sm_100", "setp.num.bf16x2 p|q, a, b"),
];

/// Lanes of one handler call.
const LANES: usize = 4096;

/// An instruction, and the constant that it reads; `None` if ptxas emits no instruction.
type Lowered = Option<(Executable, u32)>;

/// One comparison on one target.
struct Class {
    name: String,
    /// Whether a is the first source.
    a_first: bool,
    pair: bool,
    /// Whether the operand of the Boolean operator is `!c`; `None` without an operator.
    c: Option<bool>,
    /// Whether HSETP2 reads b as FP32.
    converted: bool,
    inverted: bool,
    /// One instruction for all values of b, or one for each.
    lowered: Vec<Lowered>,
    /// The handlers, by host path.
    handlers: Vec<Handler>,
}

/// The state that the instruction reads: a is in R0, b everywhere else.
struct Inputs {
    a: u32,
    b: u32,
    constant: u32,
    c: bool,
}

impl Thread for Inputs {
    fn register(&self, n: u8) -> u32 {
        if n == 0 { self.a } else { self.b }
    }

    fn uniform(&self, _: u8) -> u32 {
        self.b
    }

    fn predicate(&self, _: u8) -> bool {
        self.c
    }

    fn constant(&self, _: u16, _: u16) -> u32 {
        self.constant
    }

    fn bound_constant(&self, _: u8, _: u16) -> u32 {
        self.constant
    }
}

impl Class {
    fn new((target, ptx): (&str, &str), paths: &[HostPath]) -> Result<Class, String> {
        let name = format!("{target} {ptx}");
        let wrong = || format!("{name}: cannot be lowered");
        let arch = Arch::parse(target).ok_or_else(wrong)?;
        let (mnemonic, operands) = ptx.split_once(' ').ok_or_else(wrong)?;
        let operands: Vec<&str> = operands.split(", ").collect();
        let modifiers: Vec<&str> = mnemonic.split('.').skip(1).collect();
        let picks = isa::select("setp", &modifiers, operands.len()).map_err(|_| wrong())?.picks;
        let c = operands.get(3).map(|c| c.starts_with('!'));
        let a_first = operands[1] == "a";
        let written = operands[if a_first { 2 } else { 1 }];
        let lower = |bits: u16| {
            let origin = match written {
                "0x" => Origin::Literal(bits.into()),
                _ if written.contains('[') => Origin::Parameter { bank: 0, address: 0x174 },
                _ => Origin::Register,
            };
            let a = Source::register(0);
            let b = Source { origin, register: 1, converted: written.starts_with("cvt.rz") };
            let registers = Operands {
                destinations: (0, operands[0].contains('|').then_some(1)),
                sources: if a_first { (a, b) } else { (b, a) },
                c: c.map(|not| (2, not)),
            };
            sass::lower(arch, &picks, &registers).ok()
        };
        let values = if written == "0x" { 0..=u16::MAX } else { 0..=0 };
        let lowered: Vec<_> = values.map(lower).collect();
        let inverted = lowered.iter().flatten().next().ok_or_else(wrong)?.inverted;
        let lowered = lowered
            .into_iter()
            .zip(0..=u16::MAX)
            .map(|(lowered, b)| {
                let lowered = lowered?;
                let executable = Executable::new(&lowered.instruction).ok()?;
                Some((executable, lowered.constant.unwrap_or(b.into())))
            })
            .collect();
        let sources = operands.len() - 1;
        let handlers =
            paths.iter().map(|&path| handler(mnemonic, sources, path)).collect::<Result<_, _>>()?;
        Ok(Class {
            a_first,
            pair: operands[0].contains('|'),
            c,
            converted: written.starts_with("cvt.rz"),
            inverted,
            lowered,
            handlers,
            name,
        })
    }

    /// Executes HSETP2 for a, values of b from `first` on, and the predicate c. Returns p, q, and the lanes that have
    /// a result.
    fn execute(&self, singles: &[u32], a: u16, first: usize, c: bool) -> [Vec<u16>; 3] {
        let low = u32::from(a);
        match &self.lowered[..] {
            [Some((executable, _))] if self.pair => self.lanes(first, |b| {
                let (a, b) = (low | u32::from(b) << 16, u32::from(b) | low << 16);
                executable.run(&Inputs { a, b, constant: b, c })
            }),
            [Some((executable, _))] if self.converted => self.lanes(first, |b| {
                let b = singles[usize::from(b)];
                executable.run(&Inputs { a: low, b, constant: b, c })
            }),
            [Some((executable, _))] => self.lanes(first, |b| {
                // Unused halves have arbitrary bits, because they must not matter.
                let (a, b) = (low | 0x5555_0000, u32::from(b) | 0xaaaa_0000);
                executable.run(&Inputs { a, b, constant: b, c })
            }),
            all => self.lanes(first, |b| {
                let (executable, constant) = all.get(usize::from(b))?.as_ref()?;
                executable.run(&Inputs { a: low, b: b.into(), constant: *constant, c })
            }),
        }
    }

    /// The outcomes for `LANES` values of b.
    fn lanes(&self, first: usize, run: impl Fn(u16) -> Option<Outcome>) -> [Vec<u16>; 3] {
        let mut results = [0; 3].map(|_| vec![0; LANES / 16]);
        for word in 0..LANES / 16 {
            let mut bits = [0; 3];
            for lane in 0..16 {
                let Some(outcome) = run((first + 16 * word + lane) as u16) else { continue };
                let p = outcome.pu != self.inverted;
                for (bits, value) in bits.iter_mut().zip([p, outcome.pv, true]) {
                    *bits |= u16::from(value) << lane;
                }
            }
            for (result, bits) in results.iter_mut().zip(bits) {
                result[word] = bits;
            }
        }
        results
    }
}

/// A half as binary32.
fn single(bits: u16) -> u32 {
    let magnitude = match F16.decode(bits & 0x7fff) {
        Meaning::Nan => 0x7fc0_0000,
        Meaning::Infinity { .. } => 0x7f80_0000,
        Meaning::Number { significand: 0, .. } => 0,
        Meaning::Number { significand, exponent, .. } => {
            let top = significand.ilog2();
            ((top as i32 + exponent + 127) as u32) << 23 | (significand << (23 - top)) & 0x7f_ffff
        }
    };
    u32::from(bits & 0x8000) << 16 | magnitude
}

/// The lowered comparisons.
pub struct Hsetp2 {
    classes: Vec<Class>,
    /// All halves as binary32.
    singles: Vec<u32>,
}

impl Hsetp2 {
    /// All classes on these host paths.
    pub fn new(paths: &[HostPath]) -> Result<Hsetp2, String> {
        let classes = CLASSES.into_iter().map(|class| Class::new(class, paths)).collect::<Result<_, _>>()?;
        Ok(Hsetp2 { classes, singles: (0..=u16::MAX).map(single).collect() })
    }

    /// The first class, with its result inverted.
    #[cfg(test)]
    pub fn with_wrong_sense(paths: &[HostPath]) -> Hsetp2 {
        let mut sweep = Hsetp2::new(paths).expect("handlers");
        sweep.classes.truncate(1);
        sweep.classes[0].inverted ^= true;
        sweep
    }
}

impl Sweep for Hsetp2 {
    fn instructions(&self) -> usize {
        self.classes.len()
    }

    fn row(&self, a: u16, tallies: &mut [Tally]) {
        let [mut half, mut other] = [0; 2].map(|_| Operand::new(LaneWidth::B2, LANES));
        let [mut pair, mut turned] = [0; 2].map(|_| Operand::new(LaneWidth::B4, LANES));
        let [mut got_p, mut got_q, mut c] = [0; 3].map(|_| Operand::new(LaneWidth::Bit, LANES));
        half.bits_mut().fill(a);
        for first in (0..ROW).step_by(LANES) {
            for lane in 0..LANES {
                let b = (first + lane) as u16;
                other.bits_mut::<u16>()[lane] = b;
                pair.bits_mut::<u32>()[lane] = u32::from(a) | u32::from(b) << 16;
                turned.bits_mut::<u32>()[lane] = u32::from(b) | u32::from(a) << 16;
            }
            for class in &self.classes {
                let (x, y) = if class.pair { (&pair, &turned) } else { (&half, &other) };
                let (x, y) = if class.a_first { (x, y) } else { (y, x) };
                // Both values of c, if the instruction has one.
                for value in [false, true].into_iter().take(1 + usize::from(class.c.is_some())) {
                    let [p, q, known] = class.execute(&self.singles, a, first, value);
                    let mut sources = vec![x, y];
                    if let Some(not) = class.c {
                        // The handler's operand is c after `!`.
                        c.bits_mut::<u16>().fill(if value != not { u16::MAX } else { 0 });
                        sources.push(&c);
                    }
                    for (handler, tally) in class.handlers.iter().zip(&mut *tallies) {
                        handler.run(&mut got_p, class.pair.then_some(&mut got_q), &sources);
                        let results = [("p", &p, Some(&got_p)), ("q", &q, class.pair.then_some(&got_q))];
                        for (name, ours, ptx) in results {
                            let Some(ptx) = ptx.map(|ptx| ptx.bits::<u16>()) else { continue };
                            let differ = |word: usize| (ours[word] ^ ptx[word]) & known[word];
                            let ones = |words: &dyn Fn(usize) -> u16| {
                                (0..known.len()).map(|word| words(word).count_ones()).sum::<u32>()
                            };
                            tally.count(ones(&|word| known[word]) as usize, ones(&differ).into(), || {
                                let word = (0..known.len()).find(|&word| differ(word) != 0).unwrap_or(0);
                                let lane = 16 * word + differ(word).trailing_zeros() as usize;
                                let (class, b, want) =
                                    (&class.name, first + lane, ptx[word] >> (lane % 16) & 1);
                                format!("{class} of {a:#06x}, {b:#06x}: {name} should be {want}")
                            });
                        }
                    }
                }
            }
        }
    }
}
