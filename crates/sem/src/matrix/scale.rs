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
    /// The scales that the picks describe; `None` without `.block_scale`.
    pub fn of(picks: &Picks) -> Option<BlockScale> {
        let &[.., ty] = picks.types() else { return None };
        picks.has(Mod::BlockScale).then(|| BlockScale { count: scale_vector(picks), ty })
    }

    /// Bits of scale `index` of a row of A or a column of B. `data` has one word of scales for each lane. The thread
    /// selector picks lanes of each group of four: one for B; for A a pair, whose lower lane has row r and upper lane
    /// row r + 8. The byte selector picks the first byte. Only the low bits of selectors that are out of range count
    /// (their behaviour is undefined).
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

    /// The value of a scale: `.ue8m0` is 2^(bits - 127), and NaN for 0xff; `.ue4m3` is `.e4m3` with its sign ignored.
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
