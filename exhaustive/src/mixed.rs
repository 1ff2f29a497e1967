//! Mixed precision add, sub and fma: one value of a with all values of b and an addend that is hard for the pair, or
//! with as many addends.

use super::addend::{KINDS, hard, mix};
use super::exact::{ROUNDINGS, decode_f32, product, saturate, sum};
use super::half::{Half, Meaning};
use super::{ROW, Sweep, Tally, handler};
use lanes::{Handler, HostPath, LaneWidth, Operand};

/// Lanes of one handler call.
const LANES: usize = 2048;

/// An operation with a binary32 result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// a + c
    Add,
    /// a - c
    Sub,
    /// a * b + c
    Fma,
}

/// Both forms of each rounding: plain and `.sat`.
const FORMS: usize = 2 * ROUNDINGS.len();

/// An operation on halves in all roundings, with `.sat` and without.
pub struct Mixed {
    pub(super) operation: Operation,
    half: Half,
    mnemonics: [String; FORMS],
    /// The handlers of each form, by host path.
    handlers: Vec<Vec<Handler>>,
}

impl Mixed {
    /// The operation on these host paths.
    pub fn new(operation: Operation, half: &Half, paths: &[HostPath]) -> Result<Mixed, String> {
        let (opcode, sources) = match operation {
            Operation::Add => ("add", 2),
            Operation::Sub => ("sub", 2),
            Operation::Fma => ("fma", 3),
        };
        let mnemonics = std::array::from_fn(|form| {
            let sat = if form >= ROUNDINGS.len() { ".sat" } else { "" };
            format!("{opcode}.{}{sat}.f32.{}", ROUNDINGS[form % ROUNDINGS.len()], half.name)
        });
        let of_form =
            |mnemonic: &String| paths.iter().map(|&path| handler(mnemonic, sources, path)).collect();
        let handlers = mnemonics.iter().map(of_form).collect::<Result<_, _>>()?;
        Ok(Mixed { operation, half: *half, mnemonics, handlers })
    }

    /// The number that c is added to at index `n` of a row, and c.
    fn terms(&self, a: u16, n: u16) -> (Meaning, u32) {
        let x = self.half.decode(a);
        let noise = mix(u64::from(a) << 16 | u64::from(n));
        let kind = usize::from(a.wrapping_add(n)) % KINDS;
        match self.operation {
            Operation::Fma => {
                let x = product(x, self.half.decode(n));
                (x, hard(x, kind, noise))
            }
            _ if n < STRUCTURED => (x, structured(n)),
            Operation::Add => (x, hard(x, kind, noise)),
            Operation::Sub => (x, hard(x, kind, noise) ^ 1 << 31),
        }
    }

    /// The expected result of every form.
    fn expected(&self, x: Meaning, c: u32) -> [u32; FORMS] {
        let c = if self.operation == Operation::Sub { c ^ 1 << 31 } else { c };
        let plain = sum(x, decode_f32(c));
        std::array::from_fn(|form| match form.checked_sub(ROUNDINGS.len()) {
            None => plain[form],
            Some(rounding) => saturate(plain[rounding]),
        })
    }
}

/// Half of the addends of add and sub do not depend on a.
const STRUCTURED: u16 = 1 << 15;

/// Every sign and exponent of binary32 with 64 fractions: no bit set, one bit set, or all bits below or from one bit
/// on.
fn structured(n: u16) -> u32 {
    let n = u32::from(n);
    let (high, kind) = (n >> 6, n & 63);
    let fraction = match kind {
        0..23 => 1 << kind,
        23..46 => (1 << (kind - 22)) - 1,
        46..63 => 0x7f_ffff << (kind - 45),
        _ => 0,
    };
    high << 23 | fraction & 0x7f_ffff
}

impl Sweep for Mixed {
    fn instructions(&self) -> usize {
        FORMS
    }

    fn row(&self, a: u16, tallies: &mut [Tally]) {
        let halves = Operand::new(LaneWidth::B2, LANES);
        let words = Operand::new(LaneWidth::B4, LANES);
        let (mut x, mut y, mut c, mut result) = (halves.clone(), halves, words.clone(), words);
        let mut expected = vec![[0; LANES]; FORMS];
        x.bits_mut().fill(a);
        for first in (0..ROW).step_by(LANES) {
            for lane in 0..LANES {
                let n = (first + lane) as u16;
                let (term, addend) = self.terms(a, n);
                y.bits_mut()[lane] = n;
                c.bits_mut()[lane] = addend;
                for (expected, bits) in expected.iter_mut().zip(self.expected(term, addend)) {
                    expected[lane] = bits;
                }
            }
            let sources: &[&Operand] =
                if self.operation == Operation::Fma { &[&x, &y, &c] } else { &[&x, &c] };
            for ((handlers, want), mnemonic) in self.handlers.iter().zip(&expected).zip(&self.mnemonics) {
                for (handler, tally) in handlers.iter().zip(&mut *tallies) {
                    handler.run(&mut result, None, sources);
                    let got: &[u32] = result.bits();
                    let differ = |&lane: &usize| got[lane] != want[lane];
                    let differences = if got == want { 0 } else { (0..LANES).filter(differ).count() };
                    tally.count(LANES, differences as u64, || {
                        let lane = (0..LANES).find(differ).unwrap_or(0);
                        let operands = match self.operation {
                            Operation::Fma => format!("{a:#06x}, {:#06x}", first + lane),
                            _ => format!("{a:#06x}"),
                        };
                        let (c, got, want) = (c.bits::<u32>()[lane], got[lane], want[lane]);
                        format!("{mnemonic} of {operands}, {c:#010x}: {got:#010x}, not {want:#010x}")
                    });
                }
            }
        }
    }
}
