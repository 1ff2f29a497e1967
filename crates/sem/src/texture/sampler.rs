//! Samplers: which texels a coordinate means, and with which weights.
//!
//! CUDA C++ Programming Guide, "Texture Fetching" (nearest-point sampling, linear filtering) and "Texture Memory" (addressing
//! modes, normalised coordinates). CUDA Driver API, `CUDA_TEXTURE_DESC`.

/// Weights of linear filtering have 8 fractional bits: this is 1.
pub(super) const WEIGHT_ONE: u32 = 256;

/// What becomes of a coordinate out of range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AddressMode {
    /// Only the fraction counts. With coordinates that are not normalised it is [`AddressMode::Clamp`].
    Wrap,
    /// To and fro. With coordinates that are not normalised it is [`AddressMode::Clamp`].
    Mirror,
    /// The nearest texel within.
    #[default]
    Clamp,
    /// [`Sampler::border`]
    Border,
}

impl AddressMode {
    /// The number that `txq.addr_mode_*` returns: the place in the manual's list. *Unverified*.
    pub const fn number(self) -> u32 {
        match self {
            AddressMode::Wrap => 0,
            AddressMode::Mirror => 1,
            AddressMode::Clamp => 3,
            AddressMode::Border => 4,
        }
    }

    /// The texel that the `i`-th of `n` is; `None` of the border.
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

/// Which texels, or levels, a value is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Filter {
    /// The nearest one.
    #[default]
    Point,
    /// Those around, by distance.
    Linear,
}

/// How a texture is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// By dimension.
    pub address: [AddressMode; 3],
    /// Within a level. Integers are never filtered.
    pub filter: Filter,
    /// Between levels.
    pub mip_filter: Filter,
    /// Coordinates from 0 to 1, instead of numbers of texels.
    pub normalized: bool,
    /// Integers of 8 and 16 bits are read as numbers from 0 to 1, or -1 to 1 (`cudaReadModeNormalizedFloat`).
    pub normalized_float: bool,
    /// Normalised integers of 8 bits are sRGB, of which linear light is made.
    pub srgb: bool,
    /// What is read out of range: bits of `.f32`, or of integers.
    pub border: [u32; 4],
    /// Added to the level of detail that an instruction asks for.
    pub lod_bias: f32,
    /// The least level of detail after that.
    pub lod_min: f32,
    /// The greatest.
    pub lod_max: f32,
    /// What is filtered at the edge of a cube's face lies on both faces.
    pub seamless: bool,
}

impl Default for Sampler {
    /// Numbers of texels, the nearest one, clamped.
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
    /// What is done in a dimension: `cudaAddressModeWrap` and `Mirror` are for normalised coordinates (CUDA Runtime API,
    /// `cudaCreateTextureObject`).
    pub(super) fn address(&self, dimension: usize) -> AddressMode {
        match self.address[dimension] {
            AddressMode::Wrap | AddressMode::Mirror if !self.normalized => AddressMode::Clamp,
            mode => mode,
        }
    }

    /// This sampler for a texture of another one, in independent mode: what the texels mean is the texture's.
    pub fn for_texture_of(&self, texture: &Sampler) -> Sampler {
        Sampler { normalized_float: texture.normalized_float, srgb: texture.srgb, ..*self }
    }
}

/// Where a coordinate lies among the texels of a dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Position {
    /// The texel, or the lower one of two.
    pub texel: i64,
    /// Weight of the next one, of [`WEIGHT_ONE`]; 0 if only one counts.
    pub weight: u32,
}

/// The place of `u` texels in a dimension of `n`. NaN is 0 (*unverified*).
#[inline]
pub(super) fn position(u: f64, n: u32, filter: Filter) -> Position {
    let u = if u.is_nan() { 0.0 } else { u };
    let at = match filter {
        Filter::Point => u,
        Filter::Linear => u - 0.5,
    };
    let floor = at.floor();
    // *Unverified*: that the fraction is rounded to the nearest weight, and halves up. Infinity has no fraction.
    let weight = match filter {
        Filter::Linear if at.is_finite() => ((at - floor) * f64::from(WEIGHT_ONE) + 0.5) as u32,
        _ => 0,
    };
    // Numbers that no i64 holds keep their place among the repetitions, of which two texel rows are a period: the remainder is
    // exact. That of infinity is NaN, which is cut to 0: *unverified* for those that repeat.
    let texel = match floor.abs() > f64::from(u32::MAX) {
        true if floor.is_finite() => (floor % (2.0 * f64::from(n))) as i64 + far(floor, n),
        true => far(floor, n),
        false => floor as i64,
    };
    Position { texel, weight }
}

/// A number of periods that is far out of range, on the side where `floor` is.
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
        // Between 1/256 and 2/256, and all but the next texel.
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
