//! Which sequences and orderings there are, by the numbers of the C interface.

use crate::poisson::Way;
use crate::status::Status;

/// A sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `CURAND_RNG_PSEUDO_XORWOW` and `CURAND_RNG_PSEUDO_DEFAULT`.
    Xorwow,
    /// `CURAND_RNG_PSEUDO_MRG32K3A`.
    Mrg32k3a,
    /// `CURAND_RNG_PSEUDO_MTGP32`.
    Mtgp32,
    /// `CURAND_RNG_PSEUDO_MT19937`.
    Mt19937,
    /// `CURAND_RNG_PSEUDO_PHILOX4_32_10`.
    Philox,
    /// `CURAND_RNG_QUASI_SOBOL32` and `CURAND_RNG_QUASI_DEFAULT`.
    Sobol32,
    /// `CURAND_RNG_QUASI_SOBOL64`.
    Sobol64,
}

impl Kind {
    /// The sequence with a number of `curandRngType`.
    ///
    /// # Errors
    /// If there is none. The scrambled Sobol sequences are refused, and stderr says so.
    pub fn of(number: u32) -> Result<Kind, Status> {
        Ok(match number {
            100 | 101 => Kind::Xorwow,
            121 => Kind::Mrg32k3a,
            141 => Kind::Mtgp32,
            142 => Kind::Mt19937,
            161 => Kind::Philox,
            200 | 201 => Kind::Sobol32,
            203 => Kind::Sobol64,
            202 | 204 => {
                let name = if number == 202 { "SOBOL32" } else { "SOBOL64" };
                return Err(crate::status::refuse_scrambled(&format!("CURAND_RNG_QUASI_SCRAMBLED_{name}")));
            }
            _ => return Err(Status::TYPE_ERROR),
        })
    }

    /// Whether it is quasi-random.
    pub fn is_quasi(self) -> bool {
        matches!(self, Kind::Sobol32 | Kind::Sobol64)
    }

    /// Whether normal numbers must be even in number, since they come in pairs.
    pub fn has_pairs(self) -> bool {
        matches!(self, Kind::Xorwow | Kind::Mrg32k3a)
    }

    /// How it becomes values of Poisson's distribution.
    pub fn way(self) -> Way {
        match self {
            Kind::Xorwow | Kind::Mrg32k3a | Kind::Philox => Way::Aliases,
            Kind::Mt19937 => Way::Single,
            Kind::Mtgp32 => Way::Inverse(32),
            Kind::Sobol32 => Way::Inverse(10),
            Kind::Sobol64 => Way::Inverse64,
        }
    }
}

/// How a sequence lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// `CURAND_ORDERING_PSEUDO_DEFAULT`, `CURAND_ORDERING_PSEUDO_BEST`, `CURAND_ORDERING_QUASI_DEFAULT`.
    Default,
    /// `CURAND_ORDERING_PSEUDO_SEEDED`.
    Seeded,
    /// `CURAND_ORDERING_PSEUDO_LEGACY`.
    Legacy,
}

impl Ordering {
    /// The ordering with a number of `curandOrdering`, for a sequence.
    ///
    /// # Errors
    /// If the sequence has no such ordering. `CURAND_ORDERING_PSEUDO_DYNAMIC` depends on the chip, so no sequence has it here, as none of
    /// NVIDIA's host generators has it.
    pub fn of(number: u32, kind: Kind) -> Result<Ordering, Status> {
        match number {
            201 if kind.is_quasi() => Ok(Ordering::Default),
            _ if kind.is_quasi() => Err(Status::OUT_OF_RANGE),
            100 if kind == Kind::Mt19937 => Err(Status::OUT_OF_RANGE),
            100 | 101 => Ok(Ordering::Default),
            102 if kind == Kind::Xorwow => Ok(Ordering::Seeded),
            103 => Ok(Ordering::Legacy),
            _ => Err(Status::OUT_OF_RANGE),
        }
    }
}
