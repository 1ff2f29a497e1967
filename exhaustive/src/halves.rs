//! Every form of one source of two 16-bit numbers, against `sem`'s results for each half.
//!
//! These forms compute each half by itself. So two tables of 65,536 results of `sem` give all 2^32 of them, which takes
//! much less time. One in 256 is computed by `sem` as a whole, too. If the halves were not independent, the handlers
//! would differ from the tables or there.

use super::table::{Instruction, Sources, Table, in_register};
use super::{ROW, Sweep, Tally};
use lanes::{HostPath, LaneWidth, Operand};

/// Lanes of one handler call.
const LANES: usize = 4096;
/// One of this many values is computed by `sem` as a whole.
const WHOLE: usize = 256;

/// The instructions, each with what `sem` computes of each value of the low and of the high half, the other being zero.
pub struct Halves {
    instructions: Vec<(Instruction, [Vec<u32>; 2])>,
}

impl Halves {
    /// The sweep of all instructions whose names contain `only`, on these host paths.
    pub fn new(only: &str, paths: &[HostPath]) -> Result<Halves, String> {
        let instructions = Table::instructions(Sources::Halves, only, paths)?;
        let with_tables = |instruction: Instruction| {
            let half = instruction.signature.destination.bits() / 2;
            let mask = (1 << half) - 1;
            let table = |shift: u32, mask: u32| {
                (0..ROW as u32).map(|value| instruction.expected(value << shift) & mask).collect()
            };
            let tables = [table(0, mask), table(16, mask << half)];
            (instruction, tables)
        };
        Ok(Halves { instructions: instructions.into_iter().map(with_tables).collect() })
    }
}

impl Instruction {
    /// What `sem` computes of one operand of 32 bits.
    fn expected(&self, value: u32) -> u32 {
        let [d, _] = (self.sem)(&self.spelling.picks, &[value.into()]);
        in_register(self.signature.destination, d) as u32
    }
}

impl Sweep for Halves {
    fn instructions(&self) -> usize {
        self.instructions.len()
    }

    fn row(&self, a: u16, tallies: &mut [Tally]) {
        let mut source = Operand::new(LaneWidth::B4, LANES);
        let mut expected = vec![0; LANES];
        for first in (0..ROW).step_by(LANES) {
            let word = |lane: usize| u32::from(a) << 16 | (first + lane) as u32;
            for (lane, source) in source.bits_mut::<u32>().iter_mut().enumerate() {
                *source = word(lane);
            }
            for (instruction, [low, high]) in &self.instructions {
                for (expected, low) in expected.iter_mut().zip(&low[first..]) {
                    *expected = high[usize::from(a)] | low;
                }
                for lane in (usize::from(a) * WHOLE / ROW..LANES).step_by(WHOLE) {
                    expected[lane] = instruction.expected(word(lane));
                }
                let width = LaneWidth::of(instruction.signature.destination).unwrap_or(LaneWidth::B4);
                let mut result = Operand::new(width, LANES);
                for (handler, tally) in instruction.handlers.iter().zip(&mut *tallies) {
                    handler.run(&mut result, None, &[&source]);
                    let differences = match width {
                        LaneWidth::B2 => differences(result.bits::<u16>(), &expected),
                        _ => differences(result.bits::<u32>(), &expected),
                    };
                    tally.count(LANES, differences as u64, || {
                        let differs = |lane: &usize| result.get(*lane) != u64::from(expected[*lane]);
                        let lane = (0..LANES).find(differs).unwrap_or(0);
                        let (name, x) = (instruction.spelling.mnemonic(), word(lane));
                        format!("{name} of {x:#010x}: {:#x}, not {:#x}", result.get(lane), expected[lane])
                    });
                }
            }
        }
    }
}

fn differences<T: Copy + Into<u32>>(results: &[T], expected: &[u32]) -> usize {
    results.iter().zip(expected).filter(|&(&result, &expected)| result.into() != expected).count()
}
