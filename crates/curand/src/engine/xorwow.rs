//! XORWOW: G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8(14), 2003, page 5. How seeds become states is NVIDIA's, as its
//! device functions have it.

use std::sync::OnceLock;

/// The step of the Weyl sequence.
const WEYL: u32 = 362_437;

/// The state: five words of xorshift, and a Weyl sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xorwow {
    v: [u32; 5],
    d: u32,
}

/// A linear map of the five words: what each of their 160 bits becomes.
type Matrix = Vec<[u32; 5]>;

impl Xorwow {
    /// The first state of a seed.
    pub fn new(seed: u64) -> Xorwow {
        let t0 = 1_099_087_573u32.wrapping_mul(seed as u32 ^ 0xaad2_6b49);
        let t1 = 2_591_861_531u32.wrapping_mul((seed >> 32) as u32 ^ 0xf7dc_efdd);
        let v = [
            123_456_789u32.wrapping_add(t0),
            362_436_069 ^ t0,
            521_288_629u32.wrapping_add(t1),
            88_675_123 ^ t1,
            5_783_321u32.wrapping_add(t0),
        ];
        Xorwow { v, d: 6_615_241u32.wrapping_add(t1).wrapping_add(t0) }
    }

    /// The generators of a seed: subsequences of its sequence, or (`seeded`) sequences of seeds 3133713 apart.
    pub fn columns(seed: u64, count: usize, seeded: bool) -> Vec<Xorwow> {
        if seeded {
            return (0..count as u64).map(|i| Xorwow::new(seed.wrapping_add(i * 3_133_713))).collect();
        }
        let next = |state: &Xorwow| {
            let mut state = *state;
            state.skip_subsequence();
            Some(state)
        };
        std::iter::successors(Some(Xorwow::new(seed)), next).take(count).collect()
    }

    /// The next number.
    #[inline]
    pub fn next(&mut self) -> u32 {
        let t = self.v[0] ^ (self.v[0] >> 2);
        let last = self.v[4];
        let new = (last ^ (last << 4)) ^ (t ^ (t << 1));
        self.v = [self.v[1], self.v[2], self.v[3], last, new];
        self.d = self.d.wrapping_add(WEYL);
        new.wrapping_add(self.d)
    }

    /// Leaves out `count` numbers.
    pub fn skip(&mut self, count: u64) {
        for (bit, matrix) in powers().iter().enumerate().take(64) {
            if count >> bit & 1 == 1 {
                self.v = apply(matrix, self.v);
            }
        }
        self.d = self.d.wrapping_add(WEYL.wrapping_mul(count as u32));
    }

    /// Leaves out 2^67 numbers: the next subsequence. The Weyl sequence is the same then.
    pub fn skip_subsequence(&mut self) {
        self.v = apply(&powers()[67], self.v);
    }
}

/// The maps of 2^0 to 2^67 steps.
fn powers() -> &'static [Matrix] {
    static POWERS: OnceLock<Vec<Matrix>> = OnceLock::new();
    POWERS.get_or_init(|| {
        let bit = |i: usize| std::array::from_fn(|word| if word == i / 32 { 1 << (i % 32) } else { 0 });
        let step = |v| {
            let mut state = Xorwow { v, d: 0 };
            state.next();
            state.v
        };
        let mut powers = vec![(0..160).map(|i| step(bit(i))).collect::<Matrix>()];
        for _ in 0..67 {
            let last = &powers[powers.len() - 1];
            powers.push(last.iter().map(|&row| apply(last, row)).collect());
        }
        powers
    })
}

/// What a map makes of five words.
fn apply(matrix: &Matrix, v: [u32; 5]) -> [u32; 5] {
    let mut result = [0; 5];
    for (i, row) in matrix.iter().enumerate() {
        if v[i / 32] >> (i % 32) & 1 == 1 {
            result = std::array::from_fn(|word| result[word] ^ row[word]);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipping_is_stepping() {
        let (mut skipped, mut stepped) = (Xorwow::new(7), Xorwow::new(7));
        skipped.skip(12_345);
        (0..12_345).for_each(|_| _ = stepped.next());
        assert_eq!(skipped, stepped);
    }
}
