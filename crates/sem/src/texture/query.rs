//! `txq` and `suq`: attributes of textures, samplers and surfaces.

use super::image::Image;
use super::sampler::{Filter, Sampler};
use isa::texture::Geometry;
use isa::{Mod, Opcode, Picks};

/// Whether the query is for an attribute of a sampler (PTX ISA, "txq": `.squery`).
pub fn asks_sampler(picks: &Picks) -> bool {
    picks.mods().iter().any(|m| {
        matches!(
            m,
            Mod::ForceUnnormalizedCoords | Mod::FilterMode | Mod::AddrMode0 | Mod::AddrMode1 | Mod::AddrMode2
        )
    })
}

/// An attribute of a sampler: 1 is yes; for filters, 0 is nearest and 1 linear.
pub fn sampler_attribute(picks: &Picks, sampler: &Sampler) -> u32 {
    let attribute = |m: &Mod| {
        Some(match m {
            Mod::NormalizedCoords => sampler.normalized.into(),
            // Only the sampler can force them.
            Mod::ForceUnnormalizedCoords => (!sampler.normalized).into(),
            Mod::FilterMode => (sampler.filter == Filter::Linear).into(),
            Mod::AddrMode0 => sampler.address[0].number(),
            Mod::AddrMode1 => sampler.address[1].number(),
            Mod::AddrMode2 => sampler.address[2].number(),
            _ => return None,
        })
    };
    picks.mods().iter().find_map(attribute).unwrap_or(0)
}

/// An attribute of an image, or of one of its levels. *Unverified*: a dimension that the image lacks is 0, and so are
/// the extents of a level that does not exist; the layers of an array of cubes are counted in cubes; `.memory_layout`
/// is 1 for memory whose layout the program knows (the manual names the attribute without explaining it).
pub fn image_attribute(opcode: Opcode, picks: &Picks, image: &Image, level: u32) -> u32 {
    let descriptor = image.descriptor();
    let geometry = descriptor.geometry;
    let extent = |dimension: usize| match image.levels().get(level as usize) {
        Some(level) if dimension < geometry.dimensions() => level.extent[dimension],
        _ => 0,
    };
    let attribute = |m: &Mod| {
        Some(match m {
            Mod::Width => extent(0),
            Mod::Height => extent(1),
            Mod::Depth => extent(2),
            Mod::ChannelDataType => descriptor.format.channel().data_type(),
            Mod::ChannelOrder => descriptor.format.channel_order(),
            Mod::ArraySize if geometry == Geometry::CubeArray && opcode == Opcode::Txq => {
                descriptor.layers / 6
            }
            Mod::ArraySize if geometry.is_array() => descriptor.layers,
            Mod::NumMipmapLevels => descriptor.levels,
            Mod::NumSamples => descriptor.samples,
            Mod::MemoryLayout => (descriptor.linear || descriptor.row_pitch.is_some()).into(),
            _ => return None,
        })
    };
    picks.mods().iter().find_map(attribute).unwrap_or(0)
}
