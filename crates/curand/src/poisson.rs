//! Poisson's distribution, one number from one number of the sequence.
//!
//! What NVIDIA's library does is not published, except for the functions that read its tables. The rest follows from what it returns
//! (`conformance/curand.txt`): up to a mean, a table of aliases (A. J. Walker, "An efficient method for generating discrete random variables
//! with general distributions", ACM TOMS 3(3), 1977) over all values whose probability is not zero as `f64`; then, for some sequences, the
//! inverse of the distribution function; then a rounded normal number.

use crate::distribution::uniform_double;

/// The largest mean.
pub const MOST: f64 = 400_000.0;

/// Means from which a normal number stands for a value: of sequences of 32 bits that are inverted, and of all others.
const NORMAL_INVERTED: f64 = 8000.0;
const NORMAL: f64 = 2000.0;

/// How a sequence becomes values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Aliases, then normal numbers.
    Aliases,
    /// Aliases, then normal numbers in arithmetic of `f32`, as MT19937's.
    Single,
    /// Aliases up to a mean, then the inverse, then normal numbers: MTGP32 (32) and Sobol sequences of 32 bits (10).
    Inverse(u32),
    /// The inverse, then normal numbers: Sobol sequences of 64 bits.
    Inverse64,
}

/// A distribution.
#[derive(Debug)]
pub struct Poisson {
    mean: f64,
    root: f64,
    way: Way,
    /// The first value that the table has.
    shift: u32,
    table: Table,
}

/// What gives the values.
#[derive(Debug)]
enum Table {
    /// The values that a normal number rounds to.
    Normal,
    /// The probability that a value of the table or a lower one is wanted.
    Sums(Vec<f64>),
    /// Of each part of the interval from 0 to 1, where its own value ends, and which comes then.
    Aliases(Vec<(f64, u32)>),
}

impl Poisson {
    /// The distribution with a mean above 0, at most [`MOST`].
    pub fn new(mean: f64, way: Way) -> Poisson {
        let normal = match way {
            Way::Inverse(_) => mean > NORMAL_INVERTED,
            _ => mean >= NORMAL,
        };
        let inverse = match way {
            Way::Inverse(from) => mean >= f64::from(from),
            way => way == Way::Inverse64,
        };
        let root = libm::sqrt(mean);
        if normal || !mean.is_finite() {
            return Poisson { mean, root, way, shift: 0, table: Table::Normal };
        }
        let (shift, probabilities) = probabilities(mean);
        let table = if inverse {
            let sum = |sum: &mut f64, p: f64| {
                *sum += p;
                Some(*sum)
            };
            Table::Sums(probabilities.into_iter().scan(0.0, sum).collect())
        } else {
            Table::Aliases(aliases(&probabilities))
        };
        Poisson { mean, root, way, shift, table }
    }

    /// Whether its values come from normal numbers.
    pub fn is_normal(&self) -> bool {
        matches!(self.table, Table::Normal)
    }

    /// The value of 32 bits, if they do not come from normal numbers.
    pub fn value(&self, x: u32) -> u32 {
        self.at(uniform_double(x))
    }

    /// The value of a uniform number above 0, at most 1, if they do not come from normal numbers.
    pub fn at(&self, u: f64) -> u32 {
        match &self.table {
            Table::Normal => 0,
            Table::Sums(sums) => self.shift + sums.partition_point(|&sum| sum < u).min(sums.len() - 1) as u32,
            Table::Aliases(parts) => {
                let part = ((u * parts.len() as f64) as usize).min(parts.len() - 1);
                let (end, alias) = parts[part];
                self.shift + if u < end { part as u32 } else { alias }
            }
        }
    }

    /// The value of a standard normal number.
    pub fn round(&self, normal: f32) -> u32 {
        if self.way == Way::Single {
            return (self.root as f32 * normal + self.mean as f32 + 0.5) as u32;
        }
        (self.root * f64::from(normal) + self.mean + 0.5) as u32
    }
}

/// The probabilities of all values that have one as `f64`, and the first of these values.
fn probabilities(mean: f64) -> (u32, Vec<f64>) {
    let mode = mean as u32;
    let top = libm::exp(f64::from(mode) * libm::log(mean) - mean - libm::lgamma(f64::from(mode) + 1.0));
    let positive = |p: &(u32, f64)| p.1 > 0.0;
    let below = std::iter::successors(Some((mode, top)), |&(k, p)| {
        k.checked_sub(1).map(|less| (less, p * f64::from(k) / mean)).filter(positive)
    });
    let above = std::iter::successors(Some((mode, top)), |&(k, p)| {
        Some((k + 1, p * mean / f64::from(k + 1))).filter(positive)
    });
    let mut all: Vec<_> = below.collect();
    all.reverse();
    let first = all[0].0;
    (first, all.into_iter().chain(above.skip(1)).map(|(_, p)| p).collect())
}

/// A table of aliases. In rounds from the first part to the last, each part that is not full is filled up from the last that has too much.
fn aliases(probabilities: &[f64]) -> Vec<(f64, u32)> {
    let count = probabilities.len();
    let mut shares: Vec<f64> = probabilities.iter().map(|p| p * count as f64).collect();
    let mut parts: Vec<(f64, u32)> = (0..count).map(|i| ((i + 1) as f64 / count as f64, i as u32)).collect();
    let mut open: Vec<usize> = (0..count).collect();
    let mut giver = count;
    loop {
        let before = open.len();
        let mut left = Vec::new();
        for &part in &open {
            if shares[part] >= 1.0 {
                left.push(part);
                continue;
            }
            while giver > 0 && shares[giver - 1] <= 1.0 {
                giver -= 1;
            }
            if giver == 0 {
                return parts;
            }
            parts[part] = ((part as f64 + shares[part]) / count as f64, (giver - 1) as u32);
            shares[giver - 1] -= 1.0 - shares[part];
            // It has its own share and that of its alias.
            shares[part] = 1.0;
        }
        if left.len() == before {
            return parts;
        }
        open = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts give each value its probability.
    #[test]
    fn tables_have_the_probabilities() {
        for mean in [1e-9, 0.5, 3.0, 7.3, 100.0, 1999.9] {
            let (_, wanted) = probabilities(mean);
            assert!((wanted.iter().sum::<f64>() - 1.0).abs() < 1e-10, "{mean}");
            let parts = aliases(&wanted);
            let mut given = vec![0.0; wanted.len()];
            for (i, &(end, alias)) in parts.iter().enumerate() {
                let (from, to) = (i as f64 / parts.len() as f64, (i + 1) as f64 / parts.len() as f64);
                given[i] += end - from;
                given[alias as usize] += to - end;
            }
            for (given, wanted) in given.iter().zip(&wanted) {
                assert!((given - wanted).abs() < 1e-10, "{mean}: {given} {wanted}");
            }
        }
    }
}
