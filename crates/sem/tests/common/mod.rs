//! Inputs for the tests.
#![allow(dead_code)]

use sem::format::Format;

/// A small generator of random bits (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// An encoding: mostly any bits, sometimes near the edges, sometimes with an exponent near that of `near`,
    /// so that sums cancel and products stay in range.
    pub fn encoding(&mut self, f: &Format, near: u64) -> u64 {
        let bits = self.next() & (f.sign() | f.magnitude_mask());
        match self.next() % 4 {
            0 => bits,
            1 => {
                let e = edges(f);
                e[self.next() as usize % e.len()]
            }
            2 => {
                let offset = (self.next() % 5) as i64 - 2;
                near.wrapping_add((offset << f.fraction_bits) as u64).wrapping_add(bits & 0xf)
                    & (f.sign() | f.magnitude_mask())
            }
            _ => {
                // An exponent near one and few fraction bits: exact and halfway cases.
                let exponent = (f.one() >> f.fraction_bits).wrapping_add(self.next() % 17).wrapping_sub(8);
                let keep = self.next() % f.fraction_bits as u64;
                let fraction = bits & ((1 << f.fraction_bits) - 1) & !((1u64 << keep) - 1);
                (bits & f.sign()) | (exponent << f.fraction_bits | fraction) & f.magnitude_mask()
            }
        }
    }
}

/// Zero, the subnormal and normal limits, one and its neighbours, halves, the overflow limits, infinity, NaNs.
pub fn edges(f: &Format) -> Vec<u64> {
    let unit = 1u64 << f.fraction_bits;
    let mut edges = vec![];
    for x in [0, 1, 2, 3, unit / 2, unit - 1, unit, unit + 1, 2 * unit, 2 * unit - 1] {
        edges.push(x);
    }
    for x in [
        f.one() - unit,
        f.one() - 1,
        f.one(),
        f.one() + 1,
        f.one() + unit / 2,
        f.one() + unit,
        f.one() + unit + unit / 2,
    ] {
        edges.push(x);
    }
    for x in [
        f.max_finite() - unit,
        f.max_finite() - 1,
        f.max_finite(),
        f.infinity(),
        f.infinity() + 1,
        f.nan & f.magnitude_mask(),
    ] {
        edges.push(x);
    }
    edges.push(f.one() + (f.fraction_bits as u64) * unit);
    edges.push(f.one() - (f.fraction_bits as u64 + 1).min((f.one() >> f.fraction_bits) - 1) * unit);
    let negative: Vec<u64> = edges.iter().map(|x| x | f.sign()).collect();
    edges.extend(negative);
    edges
}

/// How many random inputs each test tries for each case.
pub fn random_count() -> u64 {
    std::env::var("SEM_TEST_RANDOM").ok().and_then(|s| s.parse().ok()).unwrap_or(1_000_000)
}
