//! Samplers: the texels that a coordinate selects, and their weights.
//!
//! CUDA C++ Programming Guide, "Texture Fetching" (nearest-point sampling, linear filtering) and "Texture Memory" (addressing
//! modes, normalised coordinates). CUDA Driver API, `CUDA_TEXTURE_DESC`.

/// The weight 1: weights of linear filtering have 8 fractional bits.
pub(super) const WEIGHT_ONE: u32 = 256;

/// The treatment of a coordinate out of range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AddressMode {
    /// Only the fraction counts. With unnormalised coordinates it means [`AddressMode::Clamp`].
    Wrap,
    /// The image is mirrored at its edges. With unnormalised coordinates it means [`AddressMode::Clamp`].
    Mirror,
    /// The nearest texel in range.
    #[default]
    Clamp,
    /// The value [`Sampler::border`].
    Border,
}

impl AddressMode {
    /// The number that `txq.addr_mode_*` returns: the index in the manual's list. *Unverified*.
    pub const fn number(self) -> u32 {
        match self {
            AddressMode::Wrap => 0,
            AddressMode::Mirror => 1,
            AddressMode::Clamp => 3,
            AddressMode::Border => 4,
        }
    }

    /// The texel that index `i` of `n` selects; `None` for the border.
    #[inline]
    pub(super) fn texel(self, i: i64, n: u32) -> Option<u32> {
        let length = i64::from(n);
        let found = match self {
            _ if (0..length).contains(&i) => i,
            AddressMode::Border => return None,
            AddressMode::Clamp => i.clamp(0, length - 1),
            AddressMode::Wrap => i.rem_euclid(length),
            AddressMode::Mirror => {
                let place = i.rem_euclid(2 * length);
                place.min(2 * length - 1 - place)
            }
        };
        Some(found as u32)
    }
}

/// How a value is made of texels, or of levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Filter {
    /// The nearest one only.
    #[default]
    Point,
    /// The neighbours, weighted by distance.
    Linear,
}

/// How a texture is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// The address mode of each dimension.
    pub address: [AddressMode; 3],
    /// The filter within a level. Integers are never filtered.
    pub filter: Filter,
    /// The filter between levels.
    pub mip_filter: Filter,
    /// Coordinates go from 0 to 1, instead of counting texels.
    pub normalized: bool,
    /// Integers of 8 and 16 bits are read as numbers from 0 to 1, or -1 to 1 (`cudaReadModeNormalizedFloat`).
    pub normalized_float: bool,
    /// Normalised 8-bit integers are sRGB, and are converted to linear light.
    pub srgb: bool,
    /// The value out of range: bits of `.f32`, or of integers.
    pub border: [u32; 4],
    /// Added to the level of detail that an instruction asks for.
    pub lod_bias: f32,
    /// The minimum level of detail after the bias.
    pub lod_min: f32,
    /// The maximum level of detail.
    pub lod_max: f32,
    /// Filtering at the edge of a cube's face uses both faces.
    pub seamless: bool,
}

impl Default for Sampler {
    /// Unnormalised coordinates, nearest filter, clamped.
    fn default() -> Sampler {
        Sampler {
            address: [AddressMode::Clamp; 3],
            filter: Filter::Point,
            mip_filter: Filter::Point,
            normalized: false,
            normalized_float: false,
            srgb: false,
            border: [0; 4],
            lod_bias: 0.0,
            lod_min: 0.0,
            lod_max: f32::MAX,
            seamless: false,
        }
    }
}

impl Sampler {
    /// The effective address mode of a dimension: `cudaAddressModeWrap` and `Mirror` require normalised coordinates
    /// (CUDA Runtime API, `cudaCreateTextureObject`).
    pub(super) fn address(&self, dimension: usize) -> AddressMode {
        match self.address[dimension] {
            AddressMode::Wrap | AddressMode::Mirror if !self.normalized => AddressMode::Clamp,
            mode => mode,
        }
    }

    /// This sampler applied to a texture of another sampler, in independent mode: the texture determines how its
    /// texels are read.
    pub fn for_texture_of(&self, texture: &Sampler) -> Sampler {
        Sampler { normalized_float: texture.normalized_float, srgb: texture.srgb, ..*self }
    }
}

/// The position of a coordinate among the texels of a dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Position {
    /// The texel, or the lower of two.
    pub texel: i64,
    /// Weight of the next texel, in units of 1 / [`WEIGHT_ONE`]; 0 if only one texel counts.
    pub weight: u32,
}

/// The position of coordinate `u`, in texels, in a dimension of `n`. NaN is 0 (*unverified*).
#[inline]
pub(super) fn position(u: f64, n: u32, filter: Filter) -> Position {
    let u = if u.is_nan() { 0.0 } else { u };
    let at = match filter {
        Filter::Point => u,
        Filter::Linear => u - 0.5,
    };
    let floor = at.floor();
    // *Unverified*: the fraction is rounded to the nearest weight, halfway cases up. Infinity has no fraction.
    let weight = match filter {
        Filter::Linear if at.is_finite() => ((at - floor) * f64::from(WEIGHT_ONE) + 0.5) as u32,
        _ => 0,
    };
    // Numbers beyond i64 keep their position within the repetitions, whose period is two rows of texels: the
    // remainder is exact. That of infinity is NaN, which converts to 0: *unverified* for modes that repeat.
    let texel = match floor.abs() > f64::from(u32::MAX) {
        true if floor.is_finite() => (floor % (2.0 * f64::from(n))) as i64 + far(floor, n),
        true => far(floor, n),
        false => floor as i64,
    };
    Position { texel, weight }
}

/// A multiple of the period that is far out of range, with the sign of `floor`.
fn far(floor: f64, n: u32) -> i64 {
    let period = 2 * i64::from(n);
    let periods = (i64::from(u32::MAX) / period + 1) * period;
    if floor < 0.0 { -periods } else { periods }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texels_out_of_range() {
        let all = |mode: AddressMode| (-5..8).map(|i| mode.texel(i, 3)).collect::<Vec<_>>();
        let some = |list: [u32; 13]| list.map(Some).to_vec();
        assert_eq!(all(AddressMode::Clamp), some([0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2]));
        assert_eq!(all(AddressMode::Wrap), some([1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1]));
        assert_eq!(all(AddressMode::Mirror), some([1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1]));
        assert_eq!(all(AddressMode::Border)[4..9], [None, Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn weights_have_eight_fractional_bits() {
        let linear = |u| position(u, 10, Filter::Linear);
        assert_eq!(linear(0.5), Position { texel: 0, weight: 0 });
        assert_eq!(linear(0.0), Position { texel: -1, weight: 128 });
        assert_eq!(linear(1.75), Position { texel: 1, weight: 64 });
        // Between 1/256 and 2/256, and almost the next texel.
        assert_eq!(linear(2.5 + 1.25 / 256.0), Position { texel: 2, weight: 1 });
        assert_eq!(linear(2.5 + 1.5 / 256.0), Position { texel: 2, weight: 2 });
        assert_eq!(linear(3.5 - 0.25 / 256.0), Position { texel: 2, weight: 256 });
        assert_eq!(position(1.75, 10, Filter::Point), Position { texel: 1, weight: 0 });
        assert_eq!(position(-0.25, 10, Filter::Point), Position { texel: -1, weight: 0 });
    }

    #[test]
    fn great_coordinates_keep_their_place() {
        let u = 3e30f32;
        let exact = u as u128;
        for n in [1, 2, 3, 7, 640] {
            let at = |u: f64, mode: AddressMode| mode.texel(position(u, n, Filter::Point).texel, n).unwrap();
            assert_eq!(u128::from(at(u.into(), AddressMode::Wrap)), exact % u128::from(n));
            assert_eq!(at(u.into(), AddressMode::Clamp), n - 1);
            assert_eq!(at(-f64::from(u), AddressMode::Clamp), 0);
            assert_eq!(at(f64::INFINITY, AddressMode::Clamp), n - 1);
            assert_eq!(at(f64::NEG_INFINITY, AddressMode::Clamp), 0);
            assert_eq!(at(f64::NAN, AddressMode::Clamp), 0);
            assert_eq!(AddressMode::Border.texel(position(u.into(), n, Filter::Linear).texel, n), None);
        }
    }
}
