//! `tex` and `tld4`: the values that a lookup returns.

use super::cube::{beyond, derivative, project};
use super::format::{Decode, TEXEL_BYTES};
use super::image::{Image, Level};
use super::sampler::{Filter, Position, Sampler, WEIGHT_ONE, position};
use super::{Mismatch, fits};
use crate::convert::convert_float;
use crate::format::{F16, F32};
use crate::round::Mode;
use isa::texture::{Geometry, elements};
use isa::{Access, Form, Mod, Opcode, Picks, Type};

/// Maximum sources of a lookup: an index and a direction, two gradients and a reference.
pub const MOST_SOURCES: usize = 14;

/// How a lookup selects the mipmap level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LevelOfDetail {
    /// The largest level.
    Base,
    /// An operand gives the level.
    Explicit,
    /// The gradients of the coordinates determine the level.
    Gradients,
}

/// A lookup instruction, independent of the texture.
///
/// Its sources are the used elements of its operands ([`elements`]) in order, as 32 bits each. The coordinates come
/// first (PTX ISA, "tex"): for `.2dms` the sample precedes them, for arrays the index, for `.a2dms` the sample and
/// then the index. The manual has both orders for `.a2dms`; ptxas takes the second element as the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    geometry: Geometry,
    level: LevelOfDetail,
    /// Coordinates are texel indices, `.s32`.
    integer: bool,
    /// The instruction has operand e, an offset.
    offset: bool,
    /// The instruction has operand f, a reference for comparison.
    compare: bool,
    /// The channel that `tld4` gathers.
    gather: Option<usize>,
    result: Type,
}

impl Lookup {
    /// The lookup that an instruction with this form and these picks does; `None` for other instructions.
    pub fn of(form: &Form, picks: &Picks) -> Option<Lookup> {
        if !matches!(form.opcode, Opcode::Tex | Opcode::Tld4) {
            return None;
        }
        let named = |name: &str| form.operands.iter().any(|spec| spec.name == name);
        let level = match picks.mods() {
            mods if mods.contains(&Mod::Level) => LevelOfDetail::Explicit,
            mods if mods.contains(&Mod::Grad) => LevelOfDetail::Gradients,
            _ => LevelOfDetail::Base,
        };
        let channel = [Mod::R, Mod::G, Mod::B, Mod::A].into_iter().position(|channel| picks.has(channel));
        Some(Lookup {
            geometry: Geometry::of(picks)?,
            level,
            integer: picks.types().last() == Some(&Type::S32),
            offset: named("e"),
            compare: named("f"),
            gather: if form.opcode == Opcode::Tld4 { channel } else { None },
            result: picks.ty(0),
        })
    }

    /// The geometry that the instruction names.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Number of its sources.
    pub fn sources(&self, form: &Form, picks: &Picks) -> usize {
        let read = form.operands.iter().filter(|spec| spec.access == Access::Read);
        read.skip(1).map(|spec| elements(spec, self.geometry, picks)).sum::<usize>()
            + self.geometry.coordinates()
    }

    /// The result registers for four channels: two pairs of halves, or one register for each channel.
    fn registers(&self, texel: [u32; 4], is_float: bool) -> [u32; 4] {
        let half = |value: u32| match is_float {
            true => convert_float(&F32, &F16, Mode::NEAREST, value.into()) as u32,
            // *Unverified*: integers are truncated.
            false => value & 0xffff,
        };
        match self.result {
            Type::F16 => texel.map(half),
            Type::F16x2 => {
                let [r, g, b, a] = texel.map(half);
                [r | g << 16, b | a << 16, 0, 0]
            }
            _ => texel,
        }
    }
}

/// A lookup in a texture.
pub struct Fetch<'t> {
    lookup: Lookup,
    image: &'t Image,
    sampler: Sampler,
    decode: Decode,
    /// Decoded texels are `.f32`.
    is_float: bool,
}

/// The layer, face and sample that a lookup reads.
#[derive(Clone, Copy)]
struct Layer {
    /// The layer, or the first face of the cube in a layered image.
    first: u32,
    /// The face, for a cube.
    face: Option<u32>,
    sample: u32,
}

/// The one or two mipmap levels that a lookup reads, and their weights.
type Levels = [(usize, u32); 2];

impl<'t> Fetch<'t> {
    /// A lookup in a texture: an image and its sampler.
    ///
    /// # Errors
    /// When the geometry is not that of the image.
    pub fn new(lookup: Lookup, image: &'t Image, sampler: &Sampler) -> Result<Fetch<'t>, Mismatch> {
        fits(lookup.geometry, image)?;
        let descriptor = image.descriptor();
        let (format, channel) = (descriptor.format, descriptor.format.channel());
        let channel = if sampler.normalized_float { channel.normalized() } else { channel };
        let mut sampler = *sampler;
        if descriptor.linear {
            sampler.address = [super::AddressMode::Border; 3];
            sampler.border = [0; 4];
            sampler.filter = Filter::Point;
        }
        // Only numbers can be filtered, not integers.
        if !channel.is_float() || lookup.integer {
            (sampler.filter, sampler.mip_filter) = (Filter::Point, Filter::Point);
        }
        let decode = format.decode(sampler.normalized_float, sampler.srgb);
        Ok(Fetch { lookup, image, sampler, decode, is_float: channel.is_float() })
    }

    /// The result registers of one thread. `read` returns the bytes of a texel at a byte offset of the image; the
    /// offset is always within the image, and bytes beyond the texel are ignored.
    pub fn lane(&self, sources: &[u32], mut read: impl FnMut(u64) -> [u8; TEXEL_BYTES]) -> [u32; 4] {
        let (geometry, mut sources) = (self.lookup.geometry, Sources(sources));
        let sample = if geometry.is_multisample() { sources.take::<1>(1)[0] } else { 0 };
        let index = if geometry.is_array() { sources.take::<1>(1)[0] } else { 0 };
        let coordinates = sources.take::<3>(geometry.position());
        let mut layer = self.layer(index, sample);
        let base = self.extent(0);
        let [s, t, r] = coordinates.map(|bits| if self.lookup.integer { 0.0 } else { f32::from_bits(bits) });
        // The position in each dimension of the image, as a fraction or in texels.
        let mut place = [s, t, r].map(f64::from);
        if geometry.is_cube() {
            let face = project([s, t, r]);
            layer.face = Some(face.number);
            place = [face.s, face.t, 0.0];
        }
        let levels = self.levels(&mut sources, coordinates, base);
        let offset = if self.lookup.offset { sources.take::<3>(geometry.dimensions()) } else { [0; 3] };
        let offset = offset.map(|e| i64::from(e as i32));
        let reference = if self.lookup.compare { Some(sources.take::<1>(1)[0]) } else { None };
        let mut texel = |level: usize, at: [i64; 3]| {
            let at = std::array::from_fn(|i| at[i] + offset[i]);
            let value = self.texel(&self.image.levels()[level], layer, at, &mut read);
            match reference {
                None => value,
                Some(reference) => self.compared(value, reference),
            }
        };
        if let Some(channel) = self.lookup.gather {
            let [x, y, _] = self.positions(0, place, Filter::Linear).map(|position| position.texel);
            // Counter-clockwise from the lower left; rows go down.
            let around = [[x, y + 1], [x + 1, y + 1], [x + 1, y], [x, y]];
            return around.map(|[x, y]| texel(0, [x, y, 0])[channel]);
        }
        if self.lookup.integer {
            let at = coordinates.map(|bits| i64::from(bits as i32));
            return self.finish(texel(levels[0].0, at));
        }
        let filter = self.sampler.filter;
        if filter == Filter::Point && levels[1].1 == 0 {
            let at = self.positions(levels[0].0, place, filter).map(|position| position.texel);
            return self.finish(texel(levels[0].0, at));
        }
        let mut sum = [-0.0; 4];
        for (level, level_weight) in levels.into_iter().filter(|(_, weight)| *weight > 0) {
            let positions = self.positions(level, place, filter);
            // For each dimension the lower texel, then the next one; the first dimension changes fastest.
            for corner in 0..1usize << geometry.dimensions() {
                let next = |i: usize| corner >> i & 1;
                let weight = |i: usize| match (next(i), positions[i].weight) {
                    (0, weight) => WEIGHT_ONE - weight,
                    (_, weight) => weight,
                };
                let weight = (0..3).map(|i| u64::from(weight(i))).product::<u64>() * u64::from(level_weight);
                if weight > 0 {
                    let value = texel(level, std::array::from_fn(|i| positions[i].texel + next(i) as i64));
                    for (sum, value) in sum.iter_mut().zip(value) {
                        *sum += weight as f64 * f64::from(f32::from_bits(value));
                    }
                }
            }
        }
        // Four weights with 8 fractional bits each.
        self.finish(sum.map(|sum| rounded(sum / 4_294_967_296.0)))
    }

    fn finish(&self, texel: [u32; 4]) -> [u32; 4] {
        self.lookup.registers(texel, self.is_float || self.lookup.compare)
    }

    fn extent(&self, level: usize) -> [u32; 3] {
        self.image.levels()[level].extent
    }

    /// An index beyond the last selects the last: *unverified*.
    fn layer(&self, index: u32, sample: u32) -> Layer {
        let descriptor = self.image.descriptor();
        let faces = if self.lookup.geometry.is_cube() { 6 } else { 1 };
        let first = index.min(descriptor.layers / faces - 1) * faces;
        Layer { first, face: None, sample: sample.min(descriptor.samples - 1) }
    }

    /// The position in each dimension of a level; texel 0 in dimensions that the geometry lacks.
    fn positions(&self, level: usize, place: [f64; 3], filter: Filter) -> [Position; 3] {
        let (extent, base, dimensions) =
            (self.extent(level), self.extent(0), self.lookup.geometry.dimensions());
        let is_fraction = self.sampler.normalized || self.lookup.geometry.is_cube();
        std::array::from_fn(|i| match extent[i] {
            _ if i >= dimensions => Position { texel: 0, weight: 0 },
            n if is_fraction => position(place[i] * f64::from(n), n, filter),
            // Unnormalised coordinates count texels of the largest level.
            n if level > 0 => position(place[i] * f64::from(n) / f64::from(base[i]), n, filter),
            n => position(place[i], n, filter),
        })
    }

    /// The levels that the operands select, and their weights.
    fn levels(&self, sources: &mut Sources, coordinates: [u32; 3], base: [u32; 3]) -> Levels {
        let lod = match self.lookup.level {
            LevelOfDetail::Base => return [(0, WEIGHT_ONE), (0, 0)],
            LevelOfDetail::Explicit => match sources.take::<1>(1)[0] {
                lod if self.lookup.integer => f64::from(lod as i32),
                lod => f64::from(f32::from_bits(lod)),
            },
            LevelOfDetail::Gradients => {
                let count = self.lookup.geometry.position();
                let [dx, dy] = [(); 2].map(|()| sources.take::<3>(count).map(f32::from_bits));
                lod_of_gradients([dx, dy].map(|change| self.change_in_texels(coordinates, change, base)))
            }
        };
        let lod = if lod.is_nan() { 0.0 } else { lod };
        let sampler = &self.sampler;
        let biased = lod + f64::from(sampler.lod_bias);
        let last = self.image.levels().len() - 1;
        let lod = biased.max(sampler.lod_min.into()).min(sampler.lod_max.into()).max(0.0).min(last as f64);
        match sampler.mip_filter {
            // OpenGL 4.6, 8.14.3: halfway cases select the larger level. *Unverified*.
            Filter::Point => [((lod + 0.5).ceil() as usize - 1, WEIGHT_ONE), (0, 0)],
            Filter::Linear => {
                let level = lod.floor();
                let weight = ((lod - level) * f64::from(WEIGHT_ONE) + 0.5) as u32;
                let level = level as usize;
                [(level, WEIGHT_ONE - weight), ((level + 1).min(last), weight)]
            }
        }
    }

    /// A gradient of the coordinates, in texels of the largest level.
    fn change_in_texels(&self, coordinates: [u32; 3], change: [f32; 3], base: [u32; 3]) -> [f64; 3] {
        let change = match self.lookup.geometry.is_cube() {
            true => {
                let [s, t] = derivative(coordinates.map(f32::from_bits), change);
                [s, t, 0.0]
            }
            false if self.sampler.normalized => change.map(f64::from),
            false => return change.map(f64::from),
        };
        std::array::from_fn(|i| change[i] * f64::from(base[i]))
    }

    /// The value of a texel of a level; the position may be out of range.
    fn texel(
        &self,
        level: &Level,
        layer: Layer,
        at: [i64; 3],
        read: &mut impl FnMut(u64) -> [u8; TEXEL_BYTES],
    ) -> [u32; 4] {
        let extent = level.extent;
        let mut value = |face: u32, at: [u32; 3]| {
            let offset = self.image.offset(level, layer.first + face, at, layer.sample);
            (self.decode)(&read(offset), self.image.descriptor().format.channels())
        };
        if let Some(face) = layer.face
            && self.sampler.seamless
        {
            let (x, y) = (self.clamped(at[0], extent[0]), self.clamped(at[1], extent[1]));
            let outside = |i: usize| !(0..i64::from(extent[i])).contains(&at[i]);
            let mut neighbour = |at: [i64; 2]| {
                let (face, [x, y]) = beyond(face, at, extent[0]);
                value(face, [x, y, 0])
            };
            return match (outside(0), outside(1)) {
                (false, false) => value(face, [x, y, 0]),
                (true, false) => neighbour([at[0].clamp(-1, extent[0].into()), y.into()]),
                (false, true) => neighbour([x.into(), at[1].clamp(-1, extent[1].into())]),
                // Three faces meet at a corner: the fourth texel is their mean (OpenGL 4.6, 8.14). *Unverified*.
                (true, true) if self.is_float => {
                    let across = neighbour([at[0].clamp(-1, extent[0].into()), y.into()]);
                    let along = neighbour([x.into(), at[1].clamp(-1, extent[1].into())]);
                    let own = value(face, [x, y, 0]);
                    let number = |bits: u32| f64::from(f32::from_bits(bits));
                    std::array::from_fn(|i| {
                        rounded((number(own[i]) + number(across[i]) + number(along[i])) / 3.0)
                    })
                }
                (true, true) => value(face, [x, y, 0]),
            };
        }
        let mut inside = [0; 3];
        for dimension in 0..self.lookup.geometry.dimensions() {
            match self.sampler.address(dimension).texel(at[dimension], extent[dimension]) {
                Some(texel) => inside[dimension] = texel,
                None => return self.sampler.border,
            }
        }
        value(layer.face.unwrap_or(0), inside)
    }

    fn clamped(&self, at: i64, n: u32) -> u32 {
        at.clamp(0, i64::from(n) - 1) as u32
    }

    /// 1.0 in each channel where the reference is at most the texel, otherwise 0.0. *Unverified*: the manual does not
    /// say how they are compared; this is OpenGL's default (`GL_LEQUAL`).
    fn compared(&self, texel: [u32; 4], reference: u32) -> [u32; 4] {
        texel.map(|value| {
            let value = if self.is_float { f32::from_bits(value) } else { value as f32 };
            u32::from(f32::from_bits(reference) <= value) * 1.0f32.to_bits()
        })
    }
}

/// The elements of the operands.
struct Sources<'s>(&'s [u32]);

impl Sources<'_> {
    /// The next `count` elements; the remaining ones of the array are 0.
    fn take<const N: usize>(&mut self, count: usize) -> [u32; N] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        std::array::from_fn(|i| taken.get(i).copied().unwrap_or(0))
    }
}

/// A number as `.f32`, rounded to nearest even; NaN becomes the canonical NaN.
fn rounded(value: f64) -> u32 {
    if value.is_nan() { F32.nan as u32 } else { (value as f32).to_bits() }
}

/// The level of detail for gradients in texels: the binary logarithm of the longer one's length (OpenGL 4.6, 8.14.1),
/// truncated to a multiple of 2^-17. *Unverified*: GPUs approximate it. Anisotropic filtering is not implemented.
fn lod_of_gradients(changes: [[f64; 3]; 2]) -> f64 {
    let [x, y] = changes.map(|[s, t, r]| s * s + t * t + r * r);
    // If one is NaN, `max` returns the other.
    let square = x.max(y);
    if !(square > 0.0 && square.is_finite()) {
        return if square == 0.0 { f64::NEG_INFINITY } else { square };
    }
    // The fraction of the logarithm of 2^e m is log2 m; squaring m yields its bits.
    let bits = square.to_bits();
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 0x3ff << 52);
    let mut logarithm = (bits >> 52) as f64 - 1023.0;
    for i in 1..=16 {
        mantissa *= mantissa;
        if mantissa >= 2.0 {
            mantissa /= 2.0;
            logarithm += 1.0 / f64::from(1 << i);
        }
    }
    logarithm / 2.0
}
