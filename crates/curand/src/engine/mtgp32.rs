//! MTGP32 with period 2^11213 - 1: M. Saito and M. Matsumoto, "Variants of Mersenne Twister suitable for graphic processors", ACM TOMS 39(2),
//! 2013. Its parameters are theirs (`src/data/NOTICE`).

use rayon::prelude::*;

/// How many words the recurrence has.
const N: usize = 351;

static DATA: &[u8] = include_bytes!("../data/mtgp32-11213.bin");

/// One generator, with one of the sets.
#[derive(Clone)]
pub struct Mtgp32 {
    position: usize,
    shifts: [u32; 2],
    recursion: [u32; 16],
    tempering: [u32; 16],
    state: [u32; N],
    at: usize,
}

impl Mtgp32 {
    /// A generator with a set of parameters, seeded as the authors' `mtgp32_init` does it.
    ///
    /// # Panics
    /// If there is no such set.
    pub fn new(set: usize, seed: u32) -> Mtgp32 {
        let words: Vec<u32> = DATA[set * 44..][..44]
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        let table = |basis: &[u32]| -> [u32; 16] {
            std::array::from_fn(|i| {
                (0..4).filter(|bit| i >> bit & 1 == 1).fold(0, |sum, bit| sum ^ basis[bit])
            })
        };
        let (recursion, tempering) = (table(&words[3..7]), table(&words[7..11]));
        let hidden = recursion[4] ^ (recursion[8] << 16);
        let mix = hidden.wrapping_add(hidden >> 16);
        let mix = mix.wrapping_add(mix >> 8) & 0xff;
        let mut state = [mix * 0x0101_0101; N];
        (state[0], state[1]) = (seed, hidden);
        for i in 1..N {
            let last = state[i - 1];
            state[i] ^= 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        let (position, shifts) = (words[0] as usize, [words[1], words[2]]);
        Mtgp32 { position, shifts, recursion, tempering, state, at: 0 }
    }

    /// The next number.
    #[inline]
    pub fn next(&mut self) -> u32 {
        let wrap = |i: usize| if i < N { i } else { i - N };
        let at = self.at;
        let x = (self.state[at] & 0xfff8_0000) ^ self.state[wrap(at + 1)];
        let x = x ^ (x << self.shifts[0]);
        let y = x ^ (self.state[wrap(at + self.position)] >> self.shifts[1]);
        let new = y ^ self.recursion[(y & 15) as usize];
        let t = self.state[wrap(at + self.position - 1)];
        let t = t ^ (t >> 16);
        let t = t ^ (t >> 8);
        self.state[at] = new;
        self.at = wrap(at + 1);
        new ^ self.tempering[(t & 15) as usize]
    }
}

/// How many numbers a generator gives in turn.
const TURN: u64 = 256;

/// The next numbers of generators that take turns. No call goes back.
pub fn fill(generators: &mut [Mtgp32], start: u64, count: usize) -> Vec<u32> {
    let (end, turns) = (start + count as u64, generators.len() as u64);
    let own = |(index, generator): (usize, &mut Mtgp32)| {
        let mut own = Vec::new();
        let mut turn = start / TURN / turns * turns + index as u64;
        while turn * TURN < end {
            let (from, to) = ((turn * TURN).max(start), ((turn + 1) * TURN).min(end));
            own.extend((from..to).map(|_| generator.next()));
            turn += turns;
        }
        own
    };
    let own: Vec<Vec<u32>> = generators.par_iter_mut().enumerate().map(own).collect();
    let mut used = vec![0; own.len()];
    let mut all = Vec::with_capacity(count);
    let mut at = start;
    while at < end {
        let (index, stop) = ((at / TURN % turns) as usize, (at / TURN + 1).saturating_mul(TURN).min(end));
        let length = (stop - at) as usize;
        all.extend_from_slice(&own[index][used[index]..][..length]);
        used[index] += length;
        at = stop;
    }
    all
}
