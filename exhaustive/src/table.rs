//! Every form of the table with at most 2^32 operand values, against `sem`: those with one 32-bit source, and those
//! with two sources of 16 bits or fewer.
//!
//! Packed forms of two sources have 2^32 operand values a lane.

use super::{ROW, Sweep, Tally};
use isa::enumerate::{Spelling, spellings};
use isa::{Action, FORMS, FormId, LENIENT, Type};
use lanes::{Handler, HostPath, LaneWidth, Operand, Signature};
use sem::PureFn;

/// Lanes of one handler call.
const LANES: usize = 4096;

/// How operand values are enumerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sources {
    /// One 32-bit source: by its upper half, then its lower half.
    Word,
    /// Two sources of 16 bits or fewer.
    Shorts,
    /// One source of two 16-bit numbers.
    Halves,
    /// Two packed 32-bit sources. Their low halves are all pairs of values; their high halves are the same pairs, but
    /// exchanged.
    Packed,
}

impl Sources {
    /// Whether it enumerates an instruction with sources of these types.
    fn fit(self, types: &[Type]) -> bool {
        let is_packed = |ty: &Type| ty.bits() == 32 && ty.element() != *ty;
        match (self, types) {
            (Sources::Word, [ty]) => ty.bits() == 32,
            (Sources::Shorts, [a, b]) => [a, b].iter().all(|ty| (2..=16).contains(&ty.bits())),
            (Sources::Halves, [ty]) => is_packed(ty) && ty.element().bits() == 16,
            (Sources::Packed, [a, b]) => is_packed(a) && is_packed(b),
            _ => false,
        }
    }

    /// The operands in registers, for a value of the first operand and one of the second.
    fn operands(self, a: u16, b: u16) -> [u64; 2] {
        let joined = |high: u16, low: u16| u64::from(high) << 16 | u64::from(low);
        match self {
            Sources::Word | Sources::Halves => [joined(a, b), 0],
            Sources::Shorts => [a.into(), b.into()],
            Sources::Packed => [joined(b, a), joined(a, b)],
        }
    }
}

/// An instruction with its handlers, by host path.
pub struct Instruction {
    pub spelling: Spelling,
    pub signature: Signature,
    pub sem: PureFn,
    pub handlers: Vec<Handler>,
}

/// All instructions with such sources.
pub struct Table {
    sources: Sources,
    instructions: Vec<Instruction>,
}

/// A value as registers hold it: 8 bits are extended to 16.
pub fn in_register(ty: Type, bits: u64) -> u64 {
    match (ty.bits(), ty.is_signed()) {
        (8, true) => u64::from(bits as i8 as u16),
        (64, _) => bits,
        (width, _) => bits & ((1 << width) - 1),
    }
}

impl Table {
    /// The sweep of all instructions whose names contain `only`, on these host paths.
    pub fn new(sources: Sources, only: &str, paths: &[HostPath]) -> Result<Table, String> {
        Ok(Table { sources, instructions: Table::instructions(sources, only, paths)? })
    }

    /// These instructions.
    pub fn instructions(
        sources: Sources,
        only: &str,
        paths: &[HostPath],
    ) -> Result<Vec<Instruction>, String> {
        let mut instructions = Vec::new();
        for id in (0..FORMS.len() + LENIENT.len()).map(|id| FormId(id as u16)) {
            let Action::Pure(name) = id.form().action else { continue };
            let sem = sem::lookup(name).ok_or_else(|| format!("sem has no {name}"))?;
            for spelling in spellings(id).filter(Spelling::is_legal) {
                let Some(signature) = Signature::new(id.form(), &spelling.picks) else { continue };
                if !sources.fit(&signature.sources) || !spelling.mnemonic().contains(only) {
                    continue;
                }
                let handler = |&path| {
                    let handler = Handler::new(id.form(), &spelling.picks, path);
                    handler.ok_or_else(|| format!("{} has no vector handler", spelling.mnemonic()))
                };
                let handlers = paths.iter().map(handler).collect::<Result<_, _>>()?;
                instructions.push(Instruction { spelling, signature, sem, handlers });
            }
        }
        Ok(instructions)
    }
}

impl Sweep for Table {
    fn instructions(&self) -> usize {
        self.instructions.len()
    }

    fn row(&self, a: u16, tallies: &mut [Tally]) {
        for Instruction { spelling, signature, sem, handlers } in &self.instructions {
            let width = |ty| LaneWidth::of(ty).unwrap_or(LaneWidth::B8);
            let mut sources: Vec<Operand> =
                signature.sources.iter().map(|&ty| Operand::new(width(ty), LANES)).collect();
            let mut result = Operand::new(width(signature.destination), LANES);
            let mut second = Operand::new(LaneWidth::Bit, LANES);
            let mut expected = vec![[0; 2]; LANES];
            for first in (0..ROW).step_by(LANES) {
                for (lane, expected) in expected.iter_mut().enumerate() {
                    let b = (first + lane) as u16;
                    let mut numbers = self.sources.operands(a, b);
                    let numbers = &mut numbers[..sources.len()];
                    let operands = numbers.iter_mut().zip(&signature.sources).zip(&mut sources);
                    for ((number, &ty), source) in operands {
                        source.set(lane, in_register(ty, *number));
                        *number &= u64::MAX >> (64 - ty.bits());
                    }
                    let [d, q] = sem(&spelling.picks, numbers);
                    *expected = [in_register(signature.destination, d), q & 1];
                }
                let operands: Vec<&Operand> = sources.iter().collect();
                for (handler, tally) in handlers.iter().zip(&mut *tallies) {
                    handler.run(&mut result, handler.has_second().then_some(&mut second), &operands);
                    let differs = |&lane: &usize| {
                        let [d, q] = expected[lane];
                        result.get(lane) != d || handler.has_second() && second.get(lane) != q
                    };
                    let differences = (0..LANES).filter(differs).count();
                    tally.count(LANES, differences as u64, || {
                        let lane = (0..LANES).find(differs).unwrap_or(0);
                        let (name, b, got) = (spelling.mnemonic(), first + lane, result.get(lane));
                        format!("{name} of {a:#06x}, {b:#06x}: {got:#x}, not {:#x}", expected[lane][0])
                    });
                }
            }
        }
    }
}
