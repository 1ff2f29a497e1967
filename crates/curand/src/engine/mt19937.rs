//! MT19937: M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998. 8192 generators, each 2^1000 numbers behind the one
//! before: H. Haramoto et al., "Efficient jump ahead for F2-linear random number generators", INFORMS JoC 20(3), 2008.
//!
//! The first generator is NVIDIA's. NVIDIA's library has others for the rest: they are no power of 2 up to 2^1199 behind the first, and how
//! far is not published. So of 65,536 numbers the first eight are NVIDIA's, and the others are those of a sound sequence.

use std::sync::OnceLock;

use rayon::prelude::*;

/// How many words a state has.
const N: usize = 624;
const M: usize = 397;
/// How many bits of a state count.
const BITS: usize = 19_937;
/// How many generators there are.
pub const GENERATORS: usize = 8192;

/// Polynomials over the field of two elements, of degree below [`BITS`].
type Polynomial = Vec<u64>;
const WORDS: usize = BITS.div_ceil(64);

/// One generator.
#[derive(Clone)]
struct Generator {
    /// The next [`N`] numbers, not tempered.
    words: Vec<u32>,
    /// How many times all of them have been replaced.
    rounds: u64,
}

/// The word that follows three others.
#[inline]
fn follow(first: u32, second: u32, middle: u32) -> u32 {
    let y = (first & 0x8000_0000) | (second & 0x7fff_ffff);
    middle ^ (y >> 1) ^ if y & 1 == 1 { 0x9908_b0df } else { 0 }
}

impl Generator {
    fn new(seed: u32) -> Generator {
        let mut words = vec![seed; N];
        for i in 1..N {
            let last = words[i - 1];
            words[i] = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Generator { words, rounds: 0 }
    }

    /// Replaces all words by the next.
    fn turn(&mut self) {
        let words = &mut self.words;
        for i in 0..N {
            words[i] = follow(words[i], words[(i + 1) % N], words[(i + M) % N]);
        }
        self.rounds += 1;
    }

    /// The generator as many numbers later as a polynomial says.
    fn jump(&self, by: &Polynomial) -> Generator {
        let mut sequence = self.words.clone();
        for i in 0..BITS {
            sequence.push(follow(sequence[i], sequence[i + 1], sequence[i + M]));
        }
        let set: Vec<usize> = (0..BITS).filter(|&i| by[i / 64] >> (i % 64) & 1 == 1).collect();
        let mut words = vec![0u32; N];
        let (fours, rest) = set.as_chunks::<4>();
        for &[a, b, c, d] in fours {
            let window = |i: usize| &sequence[i..i + N];
            let (a, b, c, d) = (window(a), window(b), window(c), window(d));
            for (k, word) in words.iter_mut().enumerate() {
                *word ^= a[k] ^ b[k] ^ c[k] ^ d[k];
            }
        }
        for &i in rest {
            words.iter_mut().zip(&sequence[i..i + N]).for_each(|(word, other)| *word ^= other);
        }
        Generator { words, rounds: self.rounds }
    }
}

/// The sequence: number `n` is from thread `n mod 65536`, where eight threads share a generator, and each has 78 of its 624 words.
pub struct Mt19937 {
    generators: Vec<Generator>,
}

/// How many numbers there are in a row: one of each thread.
pub const ROW: u64 = 8 * GENERATORS as u64;

/// Which of the 624 words a thread has at a place from 0 to 77.
fn word_of(thread: usize, place: usize) -> usize {
    const FIRST: [usize; 8] = [0, 113, 170, 283, 340, 397, 510, 567];
    const RUNS: [usize; 11] = [1, 57, 114, 171, 227, 284, 341, 398, 454, 511, 568];
    match place.checked_sub(1) {
        None => FIRST[thread],
        Some(place) => RUNS[place / 7] + 7 * thread + place % 7,
    }
}

impl Mt19937 {
    /// The sequence of a seed, of which the lower half counts.
    pub fn new(seed: u64) -> Mt19937 {
        Mt19937 { generators: vec![Generator::new(seed as u32)] }
    }

    /// Makes the generators up to one: those from 2^k on are the ones from 0 on, 2^k jumps later.
    fn make(&mut self, upto: usize) {
        while self.generators.len() <= upto {
            let have = self.generators.len();
            let level = have.ilog2();
            let base = have - (1 << level);
            let wanted = (upto + 1).min(2 << level) - have;
            let jump = &jumps()[level as usize];
            let fresh = &self.generators[base..base + wanted];
            let made: Vec<_> = fresh.par_iter().map(|generator| generator.jump(jump)).collect();
            self.generators.extend(made);
        }
    }

    /// The numbers from `start` on. No call may go back by more than a row, as none does that goes on where the last ended.
    pub fn fill(&mut self, start: u64, out: &mut [u32]) {
        if out.is_empty() {
            return;
        }
        let end = start + out.len() as u64;
        let last = if end >= ROW { GENERATORS - 1 } else { (end - 1) as usize / 8 };
        self.make(last);
        let first_row = start / ROW;
        let rows = (end - 1) / ROW - first_row + 1;
        // Each generator writes its eight numbers of each row; rows are put together then.
        let numbers = |(index, generator): (usize, &mut Generator)| {
            let mut numbers = Vec::with_capacity(8 * rows as usize);
            for row in first_row..first_row + rows {
                for thread in 0..8 {
                    let at = row * ROW + (8 * index + thread) as u64;
                    if at < start || at >= end {
                        numbers.push(0);
                        continue;
                    }
                    while generator.rounds <= row / 78 {
                        generator.turn();
                    }
                    numbers.push(temper(generator.words[word_of(thread, (row % 78) as usize)]));
                }
            }
            numbers
        };
        let all: Vec<Vec<u32>> = self.generators.par_iter_mut().enumerate().map(numbers).collect();
        out.par_chunks_mut(4096).enumerate().for_each(|(chunk, out)| {
            for (i, out) in out.iter_mut().enumerate() {
                let at = start + (4096 * chunk + i) as u64;
                let (row, column) = ((at / ROW - first_row) as usize, (at % ROW) as usize);
                *out = all[column / 8][8 * row + column % 8];
            }
        });
    }
}

/// What a word becomes before it is given out.
fn temper(word: u32) -> u32 {
    let y = word ^ (word >> 11);
    let y = y ^ ((y << 7) & 0x9d2c_5680);
    let y = y ^ ((y << 15) & 0xefc6_0000);
    y ^ (y >> 18)
}

/// The polynomials of 2^1000 to 2^1012 steps.
fn jumps() -> &'static [Polynomial] {
    static JUMPS: OnceLock<Vec<Polynomial>> = OnceLock::new();
    JUMPS.get_or_init(|| {
        let terms = characteristic();
        let mut power = vec![0; WORDS];
        power[0] = 2;
        for _ in 0..1000 {
            power = square(&power, &terms);
        }
        std::iter::successors(Some(power), |power| Some(square(power, &terms))).take(13).collect()
    })
}

/// The square of a polynomial, modulo the characteristic one.
fn square(polynomial: &Polynomial, terms: &[usize]) -> Polynomial {
    let spread = |half: u32| (0..32).fold(0u64, |sum, bit| sum | u64::from(half >> bit & 1) << (2 * bit));
    let mut long: Vec<u64> =
        polynomial.iter().flat_map(|&word| [spread(word as u32), spread((word >> 32) as u32)]).collect();
    let (boundary, within) = (BITS / 64, BITS % 64);
    for at in (boundary..long.len()).rev() {
        let mask = if at == boundary { !0 << within } else { !0 };
        let word = long[at] & mask;
        long[at] &= !mask;
        if word == 0 {
            continue;
        }
        for &term in terms {
            // The lowest bits of the boundary's word are not set.
            let to = (64 * at + term) as i64 - BITS as i64;
            if to < 0 {
                long[0] ^= word >> -to;
                continue;
            }
            let (to, shift) = (to as usize / 64, to as usize % 64);
            long[to] ^= word << shift;
            if shift > 0 {
                long[to + 1] ^= word >> (64 - shift);
            }
        }
    }
    long.truncate(WORDS);
    long
}

/// The exponents below [`BITS`] of the characteristic polynomial, by the algorithm of Berlekamp and Massey from a sequence of bits.
fn characteristic() -> Vec<usize> {
    let mut generator = Generator::new(5489);
    let mut words = Vec::with_capacity(2 * BITS + N);
    while words.len() < 2 * BITS {
        generator.turn();
        words.extend_from_slice(&generator.words);
    }
    const LONG: usize = 2 * WORDS;
    let (mut connection, mut other, mut window) = (vec![0u64; LONG], vec![0u64; LONG], vec![0u64; LONG]);
    (connection[0], other[0]) = (1, 1);
    let (mut length, mut since) = (0, 1);
    for (n, word) in words.iter().take(2 * BITS).enumerate() {
        // The window has the bit of the last number at 0, that of the one before at 1, and so on.
        for i in (1..LONG).rev() {
            window[i] = window[i] << 1 | window[i - 1] >> 63;
        }
        window[0] = window[0] << 1 | u64::from(word & 1);
        let used = length / 64 + 1;
        let sum = connection[..used].iter().zip(&window).fold(0, |sum, (a, b)| sum ^ (a & b));
        if sum.count_ones() % 2 == 0 {
            since += 1;
            continue;
        }
        let before = (2 * length <= n).then(|| connection.clone());
        let (words, bits) = (since / 64, since % 64);
        for i in (words..LONG).rev() {
            let low = other[i - words] << bits;
            let high = if bits > 0 && i > words { other[i - words - 1] >> (64 - bits) } else { 0 };
            connection[i] ^= low | high;
        }
        match before {
            Some(before) => (other, length, since) = (before, n + 1 - length, 1),
            None => since += 1,
        }
    }
    assert_eq!(length, BITS, "the period is 2^19937 - 1");
    let mut terms: Vec<usize> =
        (1..=BITS).filter(|i| connection[i / 64] >> (i % 64) & 1 == 1).map(|i| BITS - i).collect();
    terms.sort_unstable();
    assert!(
        terms.last().is_some_and(|&last| last + 64 <= BITS),
        "its second exponent is far below the first"
    );
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The authors' example with seed 5489, whose 10,000th number C++ demands to be 4123659995.
    #[test]
    fn the_numbers_are_published() {
        let mut generator = Generator::new(5489);
        (0..=9999 / N).for_each(|_| generator.turn());
        assert_eq!(temper(generator.words[9999 % N]), 4_123_659_995);
    }

    #[test]
    fn jumping_is_stepping() {
        let terms = characteristic();
        let mut power = vec![0; WORDS];
        power[0] = 2;
        (0..13).for_each(|_| power = square(&power, &terms));
        let mut jumped = Generator::new(1).jump(&power);
        let mut stepped = Generator::new(1);
        let mut sequence = Vec::new();
        for _ in 0..20 {
            stepped.turn();
            sequence.extend_from_slice(&stepped.words);
        }
        jumped.turn();
        assert_eq!(jumped.words, sequence[1 << 13..][..N]);
    }

    #[test]
    fn every_word_has_a_thread() {
        let mut words: Vec<_> = (0..N).map(|i| word_of(i / 78, i % 78)).collect();
        words.sort_unstable();
        assert!(words.into_iter().eq(0..N));
    }
}
