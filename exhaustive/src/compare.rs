//! setp and set of 16-bit operands: one value of a against all values of b.

use super::half::{F16, Half, NAN_RANK};
use super::{ROW, Sweep, Tally, handler};
use lanes::{Handler, HostPath, LaneWidth, Operand};

/// Operators, and the outcomes of a comparison for which they hold: less, equal, greater, unordered (IEEE 754, 5.11).
const OPERATORS: [(&str, &str); 18] = [
    ("eq", "="),
    ("ne", "<>"),
    ("lt", "<"),
    ("le", "<="),
    ("gt", ">"),
    ("ge", ">="),
    ("equ", "=?"),
    ("neu", "<>?"),
    ("ltu", "<?"),
    ("leu", "<=?"),
    ("gtu", ">?"),
    ("geu", ">=?"),
    ("num", "<=>"),
    ("nan", "?"),
    ("lo", "<"),
    ("ls", "<="),
    ("hi", ">"),
    ("hs", ">="),
];

/// Lanes of one handler call, and their predicate words.
const LANES: usize = 4096;
const WORDS: usize = LANES / 16;

/// For each outcome, one bit for each lane: a is less, equal, greater, unordered.
type Outcomes = [[u16; WORDS]; 4];

/// The lanes with one of the outcomes in `holds`.
fn union(outcomes: &Outcomes, holds: &str) -> [u16; WORDS] {
    let mut union = [0; WORDS];
    for outcome in holds.chars() {
        let index = "<=>?".find(outcome).expect("an outcome");
        for (all, one) in union.iter_mut().zip(&outcomes[index]) {
            *all |= one;
        }
    }
    union
}

/// The order of a type's values.
struct Order {
    /// The rank of every encoding, as wide as all types need.
    ranks: Vec<i32>,
    /// The rank that is unordered with all values.
    unordered: i32,
}

impl Order {
    fn of_half(half: &Half, ftz: bool) -> Order {
        let ranks = half.ranks(ftz).into_iter().map(i32::from).collect();
        Order { ranks, unordered: i32::from(NAN_RANK) }
    }

    fn of_integers(signed: bool) -> Order {
        let value = |bits: u16| if signed { i32::from(bits as i16) } else { i32::from(bits) };
        Order { ranks: (0..=u16::MAX).map(value).collect(), unordered: i32::MIN }
    }

    /// The outcomes of comparing a with `LANES` values of b from `first` on.
    fn outcomes(&self, a: u16, first: usize) -> Outcomes {
        let a = self.ranks[usize::from(a)];
        let mut outcomes = [[0; WORDS]; 4];
        for (word, b) in self.ranks[first..first + LANES].chunks(16).enumerate() {
            let mut bits = [0u16; 4];
            for (lane, &b) in b.iter().enumerate() {
                let unordered = a == self.unordered || b == self.unordered;
                let outcome = [a < b, a == b, a > b].map(|holds| holds && !unordered);
                for (bits, holds) in bits.iter_mut().zip([outcome[0], outcome[1], outcome[2], unordered]) {
                    *bits |= u16::from(holds) << lane;
                }
            }
            for (outcome, bits) in outcomes.iter_mut().zip(bits) {
                outcome[word] = bits;
            }
        }
        outcomes
    }
}

/// How an instruction uses the outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// `setp` with p alone.
    P,
    /// `setp` with p and its complement q.
    Complement,
    /// `setp` of pairs, (a, b) in the low and (b, a) in the high half: p and q.
    Pairs,
}

/// One instruction to be swept.
struct Instruction {
    mnemonic: String,
    holds: &'static str,
    /// Index of the order in the sweep.
    order: usize,
    shape: Shape,
    /// The handlers, by host path.
    handlers: Vec<Handler>,
}

/// Comparisons of one operand type.
pub struct Compare {
    orders: Vec<Order>,
    instructions: Vec<Instruction>,
}

impl Compare {
    /// Comparisons of halves on these host paths.
    pub fn halves(half: &Half, paths: &[HostPath]) -> Result<Compare, String> {
        let mut sweep = Compare::new(vec![Order::of_half(half, false)]);
        for (operator, holds) in &OPERATORS[..14] {
            sweep.add_halves(half, operator, "", holds, 0, paths)?;
        }
        if half.name == F16.name {
            sweep.orders.push(Order::of_half(half, true));
            for (operator, holds) in &OPERATORS[..14] {
                sweep.add_halves(half, operator, ".ftz", holds, 1, paths)?;
            }
        }
        Ok(sweep)
    }

    fn add_halves(
        &mut self,
        half: &Half,
        operator: &str,
        ftz: &str,
        holds: &'static str,
        order: usize,
        paths: &[HostPath],
    ) -> Result<(), String> {
        let ty = half.name;
        self.add(format!("setp.{operator}{ftz}.{ty}"), holds, order, Shape::P, paths)?;
        self.add(format!("setp.{operator}{ftz}.{ty}x2"), holds, order, Shape::Pairs, paths)
    }

    /// Comparisons of 16-bit integers on these host paths.
    pub fn integers(paths: &[HostPath]) -> Result<Compare, String> {
        let mut sweep = Compare::new(vec![Order::of_integers(false), Order::of_integers(true)]);
        for (ty, order, operators) in [
            ("b16", 0, &OPERATORS[..2]),
            ("s16", 1, &OPERATORS[..6]),
            ("u16", 0, &OPERATORS[..6]),
            ("u16", 0, &OPERATORS[14..]),
        ] {
            for (operator, holds) in operators {
                sweep.add(format!("setp.{operator}.{ty}"), holds, order, Shape::Complement, paths)?;
            }
        }
        Ok(sweep)
    }

    /// `setp.lt.f16` compared with the oracle of `le`.
    #[cfg(test)]
    pub fn with_wrong_operator(paths: &[HostPath]) -> Compare {
        let mut sweep = Compare::new(vec![Order::of_half(&F16, false)]);
        sweep.add("setp.lt.f16".into(), "<=", 0, Shape::P, paths).expect("a handler");
        sweep
    }

    fn new(orders: Vec<Order>) -> Compare {
        Compare { orders, instructions: Vec::new() }
    }

    fn add(
        &mut self,
        mnemonic: String,
        holds: &'static str,
        order: usize,
        shape: Shape,
        paths: &[HostPath],
    ) -> Result<(), String> {
        let handlers = paths.iter().map(|&path| handler(&mnemonic, 2, path)).collect::<Result<_, _>>()?;
        self.instructions.push(Instruction { mnemonic, holds, order, shape, handlers });
        Ok(())
    }
}

impl Sweep for Compare {
    fn instructions(&self) -> usize {
        self.instructions.len()
    }

    fn row(&self, a: u16, tallies: &mut [Tally]) {
        let single = Operand::new(LaneWidth::B2, LANES);
        let pair = Operand::new(LaneWidth::B4, LANES);
        let mut singles = [single.clone(), single];
        let mut pairs = [pair.clone(), pair];
        let mut results = [Operand::new(LaneWidth::Bit, LANES), Operand::new(LaneWidth::Bit, LANES)];
        singles[0].bits_mut().fill(a);
        for first in (0..ROW).step_by(LANES) {
            let b = |lane: usize| (first + lane) as u16;
            for (lane, out) in singles[1].bits_mut::<u16>().iter_mut().enumerate() {
                *out = b(lane);
            }
            for (lane, out) in pairs[0].bits_mut::<u32>().iter_mut().enumerate() {
                *out = u32::from(a) | u32::from(b(lane)) << 16;
            }
            for (lane, out) in pairs[1].bits_mut::<u32>().iter_mut().enumerate() {
                *out = u32::from(b(lane)) | u32::from(a) << 16;
            }
            let outcomes: Vec<Outcomes> = self.orders.iter().map(|order| order.outcomes(a, first)).collect();
            for instruction in &self.instructions {
                let outcomes = &outcomes[instruction.order];
                let p = union(outcomes, instruction.holds);
                let q = match instruction.shape {
                    Shape::P => None,
                    Shape::Complement => Some(p.map(|p| !p)),
                    // With operands swapped, less is greater.
                    Shape::Pairs => {
                        let [less, equal, greater, unordered] = *outcomes;
                        Some(union(&[greater, equal, less, unordered], instruction.holds))
                    }
                };
                let [x, y] = if instruction.shape == Shape::Pairs { &pairs } else { &singles };
                for (handler, tally) in instruction.handlers.iter().zip(&mut *tallies) {
                    let [got_p, got_q] = &mut results;
                    handler.run(got_p, q.is_some().then_some(&mut *got_q), &[x, y]);
                    for (name, want, got) in [("p", Some(&p), got_p), ("q", q.as_ref(), got_q)] {
                        let Some(want) = want else { continue };
                        let differ = |word: usize| got.bits::<u16>()[word] ^ want[word];
                        tally.count(
                            LANES,
                            (0..WORDS).map(|word| u64::from(differ(word).count_ones())).sum(),
                            || {
                                let word = (0..WORDS).find(|&word| differ(word) != 0).unwrap_or(0);
                                let lane = 16 * word + differ(word).trailing_zeros() as usize;
                                let (mnemonic, b) = (&instruction.mnemonic, b(lane));
                                format!(
                                    "{mnemonic} of {a:#06x}, {b:#06x}: {name} should be {}",
                                    want[word] >> (lane % 16) & 1
                                )
                            },
                        );
                    }
                }
            }
        }
    }
}
