//! MRG32k3a: P. L'Ecuyer, "Good parameters and implementations for combined multiple recursive random number generators", Operations
//! Research 47(1), 1999. How seeds become states is NVIDIA's, as its device functions have it.

use std::sync::OnceLock;

const M1: u64 = 4_294_967_087;
const M2: u64 = 4_294_944_443;

/// A map of three numbers modulo one of the moduli.
type Matrix = [[u64; 3]; 3];

const STEP1: Matrix = [[0, 1, 0], [0, 0, 1], [M1 - 810_728, 1_403_580, 0]];
const STEP2: Matrix = [[0, 1, 0], [0, 0, 1], [M2 - 1_370_589, 0, 527_612]];

/// The state: the last three numbers of both recurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mrg32k3a {
    first: [u64; 3],
    second: [u64; 3],
}

impl Mrg32k3a {
    /// The first state of a seed.
    pub fn new(seed: u64) -> Mrg32k3a {
        let mut state = Mrg32k3a { first: [12_345; 3], second: [12_345; 3] };
        if seed != 0 {
            let (x, y) = (u64::from(seed as u32 ^ 0x5555_5555), (seed >> 32) ^ 0xaaaa_aaaa);
            let times = |v: u64, by: u64, m: u64| v * (by % m) % m;
            state.first = [times(12_345, x, M1), times(12_345, y, M1), times(12_345, x, M1)];
            state.second = [times(12_345, y, M2), times(12_345, x, M2), times(12_345, y, M2)];
        }
        state
    }

    /// The subsequences of a seed.
    pub fn columns(seed: u64, count: usize) -> Vec<Mrg32k3a> {
        let next = |state: &Mrg32k3a| {
            let mut state = *state;
            state.skip_subsequence();
            Some(state)
        };
        std::iter::successors(Some(Mrg32k3a::new(seed)), next).take(count).collect()
    }

    /// The next number, from 1 to 4294967087.
    #[inline]
    pub fn next(&mut self) -> u32 {
        let first = (1_403_580 * self.first[1] + 810_728 * (M1 - self.first[0])) % M1;
        self.first = [self.first[1], self.first[2], first];
        let second = (527_612 * self.second[2] + 1_370_589 * (M2 - self.second[0])) % M2;
        self.second = [self.second[1], self.second[2], second];
        (if first > second { first - second } else { first + M1 - second }) as u32
    }

    /// Leaves out `count` numbers.
    pub fn skip(&mut self, count: u64) {
        for (bit, (one, two)) in powers().iter().enumerate().take(64) {
            if count >> bit & 1 == 1 {
                self.first = apply(one, self.first, M1);
                self.second = apply(two, self.second, M2);
            }
        }
    }

    /// Leaves out 2^76 numbers: the next subsequence.
    pub fn skip_subsequence(&mut self) {
        let (one, two) = &powers()[76];
        self.first = apply(one, self.first, M1);
        self.second = apply(two, self.second, M2);
    }
}

/// The maps of 2^0 to 2^76 steps of both recurrences.
fn powers() -> &'static [(Matrix, Matrix)] {
    static POWERS: OnceLock<Vec<(Matrix, Matrix)>> = OnceLock::new();
    POWERS.get_or_init(|| {
        let square = |a: &Matrix, m| {
            let column = |j: usize| apply(a, [a[0][j], a[1][j], a[2][j]], m);
            let columns = [column(0), column(1), column(2)];
            std::array::from_fn(|i| std::array::from_fn(|j| columns[j][i]))
        };
        let next = |(one, two): &(Matrix, Matrix)| Some((square(one, M1), square(two, M2)));
        std::iter::successors(Some((STEP1, STEP2)), next).take(77).collect()
    })
}

/// What a map makes of three numbers below `m`.
fn apply(matrix: &Matrix, v: [u64; 3], m: u64) -> [u64; 3] {
    matrix.map(|row| (0..3).map(|i| row[i] * v[i] % m).sum::<u64>() % m)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RngStreams: with all seeds 12345, the first number divided by 4294967088 is 0.127011122046577.
    #[test]
    fn its_first_number_is_published() {
        let first = f64::from(Mrg32k3a::new(0).next()) / 4_294_967_088.0;
        assert!((first - 0.127_011_122_046_577).abs() < 1e-15);
    }

    #[test]
    fn skipping_is_stepping() {
        let (mut skipped, mut stepped) = (Mrg32k3a::new(7), Mrg32k3a::new(7));
        skipped.skip(12_345);
        (0..12_345).for_each(|_| _ = stepped.next());
        assert_eq!(skipped, stepped);
    }
}
