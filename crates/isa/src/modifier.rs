//! [`Mod`]: conversions to the closed sets that semantics are written in.

use crate::field::Field;
use crate::{BoolOp, CmpOp, Mod, Rounding, Space};

impl Mod {
    /// The rounding direction, of `.rn` and `.rni` alike.
    pub const fn rounding(self) -> Option<Rounding> {
        Some(match self {
            Mod::Rn | Mod::Rni => Rounding::NearestEven,
            Mod::Rna => Rounding::NearestAway,
            Mod::Rz | Mod::Rzi => Rounding::TowardZero,
            Mod::Rm | Mod::Rmi => Rounding::TowardNegative,
            Mod::Rp | Mod::Rpi => Rounding::TowardPositive,
            _ => return None,
        })
    }

    /// The number of elements of `.v2`, `.v4` or `.v8`.
    pub const fn vector_length(self) -> Option<usize> {
        Some(match self {
            Mod::V2 => 2,
            Mod::V4 => 4,
            Mod::V8 => 8,
            _ => return None,
        })
    }

    /// The comparison operator.
    pub const fn cmp(self) -> Option<CmpOp> {
        Some(match self {
            Mod::Eq => CmpOp::Eq,
            Mod::Ne => CmpOp::Ne,
            Mod::Lt => CmpOp::Lt,
            Mod::Le => CmpOp::Le,
            Mod::Gt => CmpOp::Gt,
            Mod::Ge => CmpOp::Ge,
            Mod::Lo => CmpOp::Lo,
            Mod::Ls => CmpOp::Ls,
            Mod::Hi => CmpOp::Hi,
            Mod::Hs => CmpOp::Hs,
            Mod::Equ => CmpOp::Equ,
            Mod::Neu => CmpOp::Neu,
            Mod::Ltu => CmpOp::Ltu,
            Mod::Leu => CmpOp::Leu,
            Mod::Gtu => CmpOp::Gtu,
            Mod::Geu => CmpOp::Geu,
            Mod::Num => CmpOp::Num,
            Mod::Nan => CmpOp::Nan,
            _ => return None,
        })
    }

    /// The Boolean operator.
    pub const fn bool_op(self) -> Option<BoolOp> {
        Some(match self {
            Mod::And => BoolOp::And,
            Mod::Or => BoolOp::Or,
            Mod::Xor => BoolOp::Xor,
            _ => return None,
        })
    }

    /// The state space, without sub-qualifiers (`.shared::cluster`).
    pub const fn space(self) -> Option<Space> {
        Some(match self {
            Mod::Global => Space::Global,
            Mod::Shared | Mod::SharedCta | Mod::SharedCluster => Space::Shared,
            Mod::Local => Space::Local,
            Mod::Const => Space::Const,
            Mod::Param | Mod::ParamEntry | Mod::ParamFunc => Space::Param,
            _ => return None,
        })
    }

    /// Does it round? `.rs` does so at random.
    pub(crate) fn rounds(self) -> bool {
        self.rounding().is_some() || self == Mod::Rs
    }

    /// Does it name the operation of a reduction or combination? ptxas keeps one for each instruction.
    pub(crate) fn is_operation(self) -> bool {
        self.bool_op().is_some()
            || matches!(
                self,
                Mod::Inc | Mod::Dec | Mod::Exch | Mod::Add | Mod::Cas | Mod::Max | Mod::Min | Mod::Popc
            )
    }

    /// Is it the format of a matrix conversion? ptxas counts them.
    pub(crate) fn is_format(self) -> bool {
        matches!(self, Mod::B8x16 | Mod::B4x16P64 | Mod::B6x16P32)
    }

    /// Does ptxas store both modifiers in the same field, so that they exclude each other on any instruction?
    pub fn fills_field_of(self, other: Mod) -> bool {
        self == other || Field::of(self).is_some_and(|field| Field::of(other) == Some(field))
    }

    /// On an instruction that does not take it, does ptxas reject it before it checks the types?
    pub const fn is_refused_early(self) -> bool {
        matches!(
            self,
            Mod::L132B
                | Mod::L264B
                | Mod::L2128B
                | Mod::L2256B
                | Mod::L2CacheHint
                | Mod::Add
                | Mod::And
                | Mod::Cas
                | Mod::CountedBytes
                | Mod::CpMask
                | Mod::CtaGroup1
                | Mod::CtaGroup2
                | Mod::Im2col
                | Mod::Im2colNoOffs
                | Mod::Im2colW
                | Mod::Im2colW128
                | Mod::Max
                | Mod::Min
                | Mod::MulticastCluster
                | Mod::MulticastCluster16b
                | Mod::MulticastCluster32b
                | Mod::MulticastClusterAll
                | Mod::NoComplete
                | Mod::Or
                | Mod::Popc
                | Mod::Pzo
                | Mod::Relu
                | Mod::Satfinite
                | Mod::Sync
                | Mod::Tile
                | Mod::TileGather4
                | Mod::TileScatter4
                | Mod::Xor
        )
    }
}
