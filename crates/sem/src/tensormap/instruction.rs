//! The requirements of an instruction's modifiers on a map.

use isa::{Addition, Mod, Picks, Type, tensor_dimensions};

use super::columns::Wide;
use super::layout::Field;
use super::misfit::Misfit;
use super::tile::Place;
use super::{Element, MOST_DIMENSIONS, TensorMap};

impl Place {
    /// The place that an instruction's coordinates and offsets give.
    pub fn of(picks: &Picks, coordinates: &[u64], offsets: &[u64]) -> Place {
        let at = std::array::from_fn(|i| coordinates.get(i).map_or(0, |&coordinate| coordinate as i32));
        let offset = |i: usize| offsets.get(i).map_or(0, |&offset| offset as u16);
        let place = |m: &Mod| match m {
            Mod::Im2col | Mod::Im2colNoOffs => Some(Place::Columns(at, std::array::from_fn(offset))),
            Mod::Im2colW | Mod::Im2colW128 => Some(Place::Wide(Wide {
                at,
                halo: offset(0),
                offset: offset(1),
                of_128: *m == Mod::Im2colW128,
            })),
            Mod::TileGather4 | Mod::TileScatter4 => Some(Place::Rows(at)),
            _ => None,
        };
        picks.mods().iter().find_map(place).unwrap_or(Place::Tile(at))
    }
}

/// How a reduction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements {
    /// The element type.
    pub ty: Type,
    /// The `.ftz` types flush subnormals, unlike `.f32`.
    pub addition: Addition,
}

impl TensorMap {
    /// Checks that the map fits a copy. Returns how a reduction computes, `None` for a plain copy. The types are those
    /// of the manual's table (9.7.9.25.5.3) and those that an H100 adds: it takes additions of `.f64` and of `.ftz`
    /// types, and no bitwise operations on `.s64`.
    ///
    /// # Errors
    /// If the map does not fit, why.
    pub fn fits_instruction(&self, picks: &Picks, place: &Place) -> Result<Option<Elements>, Misfit> {
        use Element::{Bf16, F16, F32, F32Ftz, F64, S32, S64, Tf32Ftz, U32, U64};
        self.fits(tensor_dimensions(picks).unwrap_or(MOST_DIMENSIONS), place)?;
        let has = |m: Mod| picks.has(m);
        if let (true, Place::Tile(at) | Place::Columns(at, _)) = (has(Mod::BulkGroup), place)
            && let Some(dimension) = at[..self.rank].iter().position(|&coordinate| coordinate < 0)
        {
            return Err(Misfit::Negative(dimension));
        }
        let ty = match self.element {
            U32 | S32 if has(Mod::And) || has(Mod::Or) || has(Mod::Xor) => Type::B32,
            U64 if has(Mod::And) || has(Mod::Or) || has(Mod::Xor) => Type::B64,
            U32 if has(Mod::Inc) || has(Mod::Dec) => Type::U32,
            U32 if has(Mod::Add) || has(Mod::Min) || has(Mod::Max) => Type::U32,
            S32 if has(Mod::Add) || has(Mod::Min) || has(Mod::Max) => Type::S32,
            U64 if has(Mod::Add) || has(Mod::Min) || has(Mod::Max) => Type::U64,
            S64 if has(Mod::Min) || has(Mod::Max) => Type::S64,
            F16 if has(Mod::Add) || has(Mod::Min) || has(Mod::Max) => Type::F16,
            Bf16 if has(Mod::Add) || has(Mod::Min) || has(Mod::Max) => Type::Bf16,
            F32 | F32Ftz | Tf32Ftz if has(Mod::Add) => Type::F32,
            F64 if has(Mod::Add) => Type::F64,
            _ => {
                let operations =
                    [Mod::Add, Mod::Min, Mod::Max, Mod::Inc, Mod::Dec, Mod::And, Mod::Or, Mod::Xor];
                return match operations.into_iter().find(|&m| has(m)) {
                    Some(operation) => Err(Misfit::Reduction(operation)),
                    None => Ok(None),
                };
            }
        };
        let flushes = matches!(self.element, F32Ftz | Tf32Ftz);
        Ok(Some(Elements { ty, addition: if flushes { Addition::Global } else { Addition::Bulk } }))
    }
}

impl Field {
    /// The field that `tensormap.replace` names; `ordinal` is the dimension, for fields that have one.
    pub fn of(picks: &Picks, ordinal: u64) -> Option<Field> {
        let ordinal = u8::try_from(ordinal).ok().filter(|&ordinal| usize::from(ordinal) < MOST_DIMENSIONS)?;
        picks.mods().iter().find_map(|m| {
            Some(match m {
                Mod::GlobalAddress => Field::Address,
                Mod::Rank => Field::Rank,
                Mod::BoxDim => Field::Box(ordinal),
                Mod::GlobalDim => Field::Extent(ordinal),
                Mod::GlobalStride => Field::Stride(ordinal),
                Mod::ElementStride => Field::Step(ordinal),
                Mod::Elemtype => Field::Element,
                Mod::InterleaveLayout => Field::Interleave,
                Mod::SwizzleMode => Field::Swizzle,
                Mod::SwizzleAtomicity => Field::Atomicity,
                Mod::FillMode => Field::Fill,
                _ => return None,
            })
        })
    }
}
