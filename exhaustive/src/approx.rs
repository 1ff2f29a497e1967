//! ex2, lg2, sin, cos and tanh `.approx`: all operands, one upper half after the other.
//!
//! The oracle is `sem`: the exact value in 128-bit fixed point, rounded once.

use super::{ROW, Sweep, Tally, handler};
use lanes::{Handler, HostPath, LaneWidth, Operand};
use sem::format::{F32, Format};
use sem::round::Mode;

/// Lanes that one call of a handler computes.
const LANES: usize = 4096;

/// An instruction without `.ftz` and, if it exists, with `.ftz`.
pub struct Approx {
    mnemonics: Vec<&'static str>,
    function: fn(&Format, Mode, u64) -> u64,
    /// The handlers of each, by host path.
    handlers: Vec<Vec<Handler>>,
}

impl Approx {
    /// The sweep of instructions for which `function` of `sem` is the oracle.
    pub fn new(
        mnemonics: &[&'static str],
        function: fn(&Format, Mode, u64) -> u64,
        paths: &[HostPath],
    ) -> Result<Approx, String> {
        let handlers = |mnemonic: &&str| paths.iter().map(|&path| handler(mnemonic, 1, path)).collect();
        let handlers = mnemonics.iter().map(handlers).collect::<Result<_, _>>()?;
        Ok(Approx { mnemonics: mnemonics.to_vec(), function, handlers })
    }

    /// The results without and with `.ftz`.
    fn expected(&self, x: u32) -> [u32; 2] {
        let plain = (self.function)(&F32, Mode::NEAREST, x.into()) as u32;
        // No subnormal number is near numbers beyond two units above the smallest normal one.
        let is_large = |bits: u32| bits & 0x7fff_ffff > 0x0080_0002;
        let flushed = match is_large(x) && is_large(plain) {
            true => plain,
            false => (self.function)(&F32, Mode { ftz: true, ..Mode::NEAREST }, x.into()) as u32,
        };
        [plain, flushed]
    }
}

impl Sweep for Approx {
    fn instructions(&self) -> usize {
        self.mnemonics.len()
    }

    fn row(&self, high: u16, tallies: &mut [Tally]) {
        let words = Operand::new(LaneWidth::B4, LANES);
        let (mut x, mut result) = (words.clone(), words);
        let mut expected = [[0; LANES]; 2];
        for first in (0..ROW).step_by(LANES) {
            for (lane, x) in x.bits_mut::<u32>().iter_mut().enumerate() {
                *x = u32::from(high) << 16 | (first + lane) as u32;
                [expected[0][lane], expected[1][lane]] = self.expected(*x);
            }
            for ((handlers, want), mnemonic) in self.handlers.iter().zip(&expected).zip(&self.mnemonics) {
                for (handler, tally) in handlers.iter().zip(&mut *tallies) {
                    handler.run(&mut result, None, &[&x]);
                    let got: &[u32] = result.bits();
                    let differ = |&lane: &usize| got[lane] != want[lane];
                    let differences = if got == want { 0 } else { (0..LANES).filter(differ).count() };
                    tally.count(LANES, differences as u64, || {
                        let lane = (0..LANES).find(differ).unwrap_or(0);
                        let (x, got, want) = (x.bits::<u32>()[lane], got[lane], want[lane]);
                        format!("{mnemonic} of {x:#010x}: {got:#010x}, not {want:#010x}")
                    });
                }
            }
        }
    }
}
