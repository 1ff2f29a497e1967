//! Sobol sequences with the direction numbers of S. Joe and F. Y. Kuo (`src/data/NOTICE`), in the order of Gray codes: I. A. Antonov and
//! V. M. Saleev, "An economic method of computing LPτ-sequences", 1979.

use std::sync::OnceLock;

/// How many dimensions there are.
pub const DIMENSIONS: usize = 20_000;

static DATA: &[u8] = include_bytes!("../data/joe-kuo-6.bin");

/// The direction vectors of all dimensions with 64 bits. Their upper halves are the first 32 with 32 bits.
pub fn directions() -> &'static [[u64; 64]] {
    static DIRECTIONS: OnceLock<Vec<[u64; 64]>> = OnceLock::new();
    DIRECTIONS.get_or_init(|| {
        let (polynomials, numbers) = DATA.split_at(4 * (DIMENSIONS - 1));
        let mut at = 0;
        let mut bits = |count: usize| {
            let value =
                (0..count).map(|i| u64::from(numbers[(at + i) / 8] >> ((at + i) % 8) & 1) << i).sum::<u64>();
            at += count;
            value
        };
        let mut all = vec![std::array::from_fn(|i| 1 << (63 - i))];
        for polynomial in polynomials.chunks_exact(4) {
            let polynomial = u32::from_le_bytes([polynomial[0], polynomial[1], polynomial[2], polynomial[3]]);
            let degree = polynomial.ilog2() as usize;
            let mut m = [0u64; 64];
            for (i, m) in m.iter_mut().enumerate().take(degree) {
                *m = 2 * bits(i) + 1;
            }
            for i in degree..64 {
                m[i] = m[i - degree] ^ (m[i - degree] << degree);
                for k in 1..degree {
                    if polynomial >> (degree - k) & 1 == 1 {
                        m[i] ^= m[i - k] << k;
                    }
                }
            }
            all.push(std::array::from_fn(|i| m[i] << (63 - i)));
        }
        all
    })
}

/// The direction vectors of all dimensions with 32 bits, one dimension behind the other.
pub fn directions32() -> &'static [[u32; 32]] {
    static DIRECTIONS: OnceLock<Vec<[u32; 32]>> = OnceLock::new();
    DIRECTIONS.get_or_init(|| {
        directions().iter().map(|all| std::array::from_fn(|i| (all[i] >> 32) as u32)).collect()
    })
}

/// A point of a dimension, by its number, with 64 bits.
pub fn point(dimension: usize, number: u64) -> u64 {
    let gray = number ^ (number >> 1);
    let directions = &directions()[dimension];
    (0..64).filter(|bit| gray >> bit & 1 == 1).fold(0, |point, bit| point ^ directions[bit])
}
