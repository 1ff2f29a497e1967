//! Lane mappings of `shfl`.

use crate::op::ShuffleMode;

/// Lanes of a warp.
const WARP_LANES: usize = 32;

/// Which lane each lane of a warp reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShufflePattern {
    /// By lane: the lane that it reads.
    pub from: [u32; WARP_LANES],
    /// Lanes whose source is in their segment.
    pub in_range: u32,
}

impl ShufflePattern {
    /// The pattern of a warp with uniform `b` and `c`.
    pub fn new(mode: ShuffleMode, b: u32, c: u32) -> ShufflePattern {
        let mut pattern = ShufflePattern { from: [0; WARP_LANES], in_range: 0 };
        for (lane, from) in pattern.from.iter_mut().enumerate() {
            let (source, within) = shuffle_source(mode, lane as u32, b, c);
            *from = source;
            pattern.in_range |= u32::from(within) << lane;
        }
        pattern
    }
}

/// The lane that `shfl` reads for lane `own`, and whether it is in the lane's segment. If not, the lane reads itself
/// (PTX ISA, "shfl.sync", its pseudo-code).
#[inline(always)]
pub fn shuffle_source(mode: ShuffleMode, own: u32, b: u32, c: u32) -> (u32, bool) {
    let (distance, bound, segment) = (b & 0x1f, c & 0x1f, c >> 8 & 0x1f);
    let max_lane = own & segment | bound & !segment;
    let min_lane = own & segment;
    let (from, within) = match mode {
        ShuffleMode::Up => {
            let from = own as i32 - distance as i32;
            (from as u32, from >= max_lane as i32)
        }
        ShuffleMode::Down => (own + distance, own + distance <= max_lane),
        ShuffleMode::Butterfly => (own ^ distance, own ^ distance <= max_lane),
        ShuffleMode::Index => {
            let from = min_lane | distance & !segment;
            (from, from <= max_lane)
        }
    };
    (if within { from } else { own }, within)
}
