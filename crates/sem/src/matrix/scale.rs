//! Block-scaled products (`mma.block_scale`): factors for parts of the rows of A and of the columns of B.
//!
//! PTX ISA, "Block Scaling for mma.sync".

use isa::matrix::{Matrix, scale_vector};
use isa::{Mod, Picks, Type};

use crate::format::{E4M3, F64};
use crate::round::{Exact, Mode, Value, pack, unpack};

/// The scales of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockScale {
    /// Scales of a row of A, and of a column of B: 1, 2 or 4.
    pub count: usize,
    /// `.ue8m0` or `.ue4m3`.
    pub ty: Type,
}

impl BlockScale {
    /// What the picks say of scales; `None` without `.block_scale`.
    pub fn of(picks: &Picks) -> Option<BlockScale> {
        let &[.., ty] = picks.types() else { return None };
        picks.has(Mod::BlockScale).then(|| BlockScale { count: scale_vector(picks), ty })
    }

    /// Bits of scale `index` of a row of A or a column of B. `data` holds the lanes' words of scales; the thread chooses
    /// lanes of each four (a pair for A, the lower of which holds row r, the upper one row r + 8), the byte where
    /// scales begin. Selectors out of range (their behaviour is undefined) count by their low bits.
    pub fn bits(
        self,
        matrix: Matrix,
        data: &[u64],
        byte: usize,
        thread: usize,
        line: usize,
        index: usize,
    ) -> u64 {
        let thread = if matrix == Matrix::A { thread % 2 * 2 + line / 8 } else { thread % 4 };
        let first = byte % 4 / self.count * self.count;
        data[line % 8 * 4 + thread] >> ((first + index) * 8) & 0xff
    }

    /// The value of a scale: `.ue8m0` is 2^(bits - 127), 0xff NaN; `.ue4m3` is `.e4m3` whose sign is ignored.
    pub(super) fn value(self, bits: u64) -> Value {
        match (self.ty, bits) {
            (Type::Ue8m0, 0xff) => crate::round::INVALID,
            (Type::Ue8m0, _) => {
                Value::Finite(Exact { negative: false, significand: 1, exponent: bits as i32 - 127 })
            }
            _ => unpack(&E4M3, false, bits & 0x7f),
        }
    }

    /// The same in binary64, which holds every scale exactly.
    pub fn to_f64(self, bits: u64) -> f64 {
        f64::from_bits(pack(&F64, Mode::NEAREST, self.value(bits)))
    }
}
