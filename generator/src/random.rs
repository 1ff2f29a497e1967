//! The source of random choices: a seed, or the bytes of a fuzzer.

/// A source of choices.
pub struct Random<'b> {
    rng: fastrand::Rng,
    /// Bytes of a fuzzer, used first.
    bytes: Option<&'b [u8]>,
}

impl<'b> Random<'b> {
    /// Choices from a seed: the same on every machine.
    pub fn seeded(seed: u64) -> Random<'static> {
        Random { rng: fastrand::Rng::with_seed(seed), bytes: None }
    }

    /// Choices from bytes. After the last byte, it always chooses the first possibility.
    pub fn from_bytes(bytes: &'b [u8]) -> Random<'b> {
        Random { rng: fastrand::Rng::with_seed(0), bytes: Some(bytes) }
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let Some(bytes) = &mut self.bytes else { return self.rng.usize(..bound) };
        let width = if bound <= 1 << 8 { 1 } else { 4 };
        let mut value = 0;
        for _ in 0..width {
            let Some((&first, rest)) = bytes.split_first() else { break };
            (value, *bytes) = (value << 8 | usize::from(first), rest);
        }
        value % bound
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        match self.bytes {
            None => self.rng.u64(..),
            Some(_) => (0..8).fold(0, |bits, _| bits << 8 | self.below(256) as u64),
        }
    }

    /// True in `of` out of 100 cases.
    pub fn percent(&mut self, of: usize) -> bool {
        self.below(100) < of
    }

    /// A random element.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
