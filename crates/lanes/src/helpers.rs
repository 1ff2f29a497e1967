//! Vector functions of the interpreter that are not handlers: a table of functions for every path.

use super::HostPath;
use super::chain::{Factor, Shape, fma_chain};
use super::equal_lanes::{lanes_with, match_warps};
use super::gather::{
    copy_rows, deinterleave, gather, interleave, load_strided, load_tiles, narrow_bytes, scatter,
    split_bytes, store_strided, widen_bytes,
};
use super::macros::multiversion;
use super::mask_ops::{compress, expand, extend, fill, merge, permute_warps, ramp, truncate};
use super::memory::copy;
use super::spread::{Spread, spread};
use std::ops::Range;
use std::sync::LazyLock;

/// Width of a register's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaneWidth {
    /// One bit per lane: predicates.
    Bit,
    /// 2 bytes: types of 8 and 16 bits.
    B2,
    /// 4 bytes.
    B4,
    /// 8 bytes.
    B8,
}

impl LaneWidth {
    /// Bytes of `lanes` lanes; `lanes` is a multiple of 16.
    pub const fn bytes(self, lanes: usize) -> usize {
        match self {
            LaneWidth::Bit => lanes / 8,
            LaneWidth::B2 => 2 * lanes,
            LaneWidth::B4 => 4 * lanes,
            LaneWidth::B8 => 8 * lanes,
        }
    }
}

/// The type of a value narrower than its register, and how it is extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Extend {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
}

/// Vector functions of the interpreter that are not handlers.
///
/// # Safety
/// For all functions: the host must have the path's instructions. Arrays must be valid for `lanes` lanes of their
/// width (a multiple of 16), predicates and masks for 16 bits per group of 16 lanes. Arrays must not overlap unless
/// the function allows it.
pub struct Helpers {
    /// The path that they are compiled for.
    pub path: HostPath,
    /// `fill(dst, width, value, lanes)`: sets every lane to `value` (a predicate to its lowest bit).
    pub fill: unsafe fn(*mut u8, LaneWidth, u64, usize),
    /// `ramp(dst, width, base, stride, lanes)`: sets lane i to base + i * stride, wrapping. No predicates.
    pub ramp: unsafe fn(*mut u8, LaneWidth, u64, u64, usize),
    /// `merge(dst, src, width, mask, groups)`: copies lanes of the groups from `src` where the mask is set.
    pub merge: unsafe fn(*mut u8, *const u8, LaneWidth, &[u64], Range<usize>),
    /// `compress(dst, src, width, mask)`: packs the lanes whose mask bit is set. May overwrite up to 15 further lanes
    /// of `dst`. No predicates.
    pub compress: unsafe fn(*mut u8, *const u8, LaneWidth, &[u64]),
    /// `expand(dst, src, width, mask)`: the inverse: fills the lanes whose mask bit is set with consecutive lanes of
    /// `src`. May read up to 15 further lanes of `src`. No predicates.
    pub expand: unsafe fn(*mut u8, *const u8, LaneWidth, &[u64]),
    /// `extend(dst, width, src, from, lanes)`: the low 8, 16 or 32 bits of lanes of 2, 2 or 4 bytes, extended to
    /// `width`. `dst` may be `src` if the widths are the same.
    pub extend: unsafe fn(*mut u8, LaneWidth, *const u8, Extend, usize),
    /// `truncate(dst, width, src, from, lanes)`: the low bits of lanes of width `from`, which is wider.
    pub truncate: unsafe fn(*mut u8, LaneWidth, *const u8, LaneWidth, usize),
    /// `gather(dst, element, base, offsets, width, mask)`: loads the masked lanes from memory at `base + offset`
    /// (wrapping, so `base` may belong to another address space); see [`gather`](super::gather).
    pub gather: unsafe fn(*mut u8, Element, *const u8, *const u8, LaneWidth, &[u64]),
    /// `scatter(src, element, base, offsets, width, mask)`: stores the masked lanes to memory at `base + offset`, in
    /// ascending order of lanes.
    pub scatter: unsafe fn(*const u8, Element, *mut u8, *const u8, LaneWidth, &[u64]),
    /// `widen_bytes(dst, src, signed, lanes)`: loads consecutive bytes of memory into lanes of 2 bytes.
    pub widen_bytes: unsafe fn(*mut u8, *const u8, bool, usize),
    /// `narrow_bytes(dst, src, lanes)`: stores the low bytes of lanes of 2 bytes to consecutive bytes of memory.
    pub narrow_bytes: unsafe fn(*mut u8, *const u8, usize),
    /// `deinterleave(dst, src, step, width, lanes)`: loads two or four registers from vectors in memory. Lane i's
    /// vector is at `src + i * step` (wrapping, so the step may be negative).
    pub deinterleave: unsafe fn(&[*mut u8], *const u8, usize, LaneWidth, usize),
    /// `split_bytes(dst, src, signed, lanes)`: loads two or four registers of 2 bytes per lane from consecutive
    /// vectors of bytes.
    pub split_bytes: unsafe fn(&[*mut u8], *const u8, bool, usize),
    /// `interleave(dst, src, width, lanes)`: stores two or four registers to consecutive vectors in memory.
    pub interleave: unsafe fn(*mut u8, &[*const u8], LaneWidth, usize),
    /// `copy(dst, src, bytes)`: copies memory that other threads may use. The areas may overlap.
    pub copy: unsafe fn(*mut u8, *const u8, usize),
    /// `copy_rows(dst, width, src, rows, broadcast)`: loads lanes from rows of memory.
    pub copy_rows: unsafe fn(*mut u8, LaneWidth, *const u8, MemoryRows, bool),
    /// `load_strided(dst, width, src, step, lanes)`: loads lane i from the element at `src + i * step` (wrapping, so
    /// the step may be negative). May read the memory between elements.
    pub load_strided: unsafe fn(*mut u8, LaneWidth, *const u8, usize, usize),
    /// `store_strided(src, width, dst, step, lanes)`: stores lane i to the element at `dst + i * step`. Elements must
    /// not overlap.
    pub store_strided: unsafe fn(*const u8, LaneWidth, *mut u8, usize, usize),
    /// `load_tiles(dst, base, addresses, warps, transposed)`: for each of these warps, loads registers of 4 bytes per
    /// lane, one for each 8 of its lanes in order. The addresses of these 8 lanes (`base + address`, wrapping) give
    /// the rows of a matrix of 8 x 8 halves. The register receives the matrix by rows, or by columns if `transposed`.
    pub load_tiles: unsafe fn(&[*mut u8], *const u8, &[u64], u32, bool),
    /// `lanes_with(mask, src, width, value, groups)`: sets the mask to the lanes that hold a value, in all words that
    /// contain any of the groups, up to the last group. The first group must start a word. No predicates.
    pub lanes_with: unsafe fn(&mut [u64], *const u8, LaneWidth, u64, Range<usize>),
    /// `match_warps(dst, src, width, members, all, lanes)`: gives each lane a mask of 32 bits: the members of its
    /// warp that hold the same value of `src` as the lane. With `all`, the mask is zero unless all members hold the
    /// same value. No predicates.
    pub match_warps: unsafe fn(*mut u8, *const u8, LaneWidth, &[u32], bool, usize),
    /// `fma_chain(dst, first, products, shape)`: binary32 lanes: adds each product to `first`, by `fma.rn.f32`. `dst`
    /// may be the array of a factor that is not splat and has the same steps as `dst`.
    pub fma_chain: unsafe fn(*mut u8, Factor, &[[Factor; 2]], Shape),
    /// `permute_warps(dst, src, from, lanes)`: sets each lane of 4 bytes to lane `from[lane % 32]` of its warp. `dst`
    /// may be `src`.
    pub permute_warps: unsafe fn(*mut u8, *const u8, &[u32; 32], usize),
    /// `spread(src, width, mask, groups)`: what the masked lanes (of 4 or 8 bytes) in these groups have in common.
    /// The mask must have a lane in them.
    pub spread: unsafe fn(*const u8, LaneWidth, &[u64], Range<usize>) -> Spread,
}

/// Rows of elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRows {
    /// The number of rows.
    pub count: usize,
    /// Groups of 16 lanes per row. A row fills them with its elements, or with its first element if that is
    /// broadcast.
    pub groups: usize,
    /// Bytes between rows, modulo 2^64.
    pub pitch: usize,
}

/// A memory element that a lane is loaded from or stored to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// A byte, zero-extended to 2 bytes.
    U8,
    /// A byte, sign-extended to 2 bytes.
    S8,
    /// 2 bytes.
    B2,
    /// 4 bytes.
    B4,
    /// 8 bytes.
    B8,
}

fn build(path: HostPath) -> Helpers {
    macro_rules! version {
        ($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?) => {
            multiversion!(path, [] ($($arg: $ty),*) $(-> $ret)?, p => {
                // SAFETY: the callers keep the contract of `Helpers`.
                unsafe { $name(p, $($arg),*) }
            })
        };
    }
    Helpers {
        path,
        fill: version!(fill(dst: *mut u8, width: LaneWidth, value: u64, lanes: usize)),
        ramp: version!(ramp(dst: *mut u8, width: LaneWidth, base: u64, stride: u64, lanes: usize)),
        merge: version!(merge(dst: *mut u8, src: *const u8, width: LaneWidth, mask: &[u64], groups: Range<usize>)),
        compress: version!(compress(dst: *mut u8, src: *const u8, width: LaneWidth, mask: &[u64])),
        expand: version!(expand(dst: *mut u8, src: *const u8, width: LaneWidth, mask: &[u64])),
        extend: version!(extend(dst: *mut u8, width: LaneWidth, src: *const u8, from: Extend, lanes: usize)),
        truncate: version!(truncate(dst: *mut u8, width: LaneWidth, src: *const u8, from: LaneWidth, lanes: usize)),
        gather: version!(gather(
            dst: *mut u8, element: Element, base: *const u8, offsets: *const u8, width: LaneWidth, mask: &[u64]
        )),
        scatter: version!(scatter(
            src: *const u8, element: Element, base: *mut u8, offsets: *const u8, width: LaneWidth, mask: &[u64]
        )),
        widen_bytes: version!(widen_bytes(dst: *mut u8, src: *const u8, signed: bool, lanes: usize)),
        narrow_bytes: version!(narrow_bytes(dst: *mut u8, src: *const u8, lanes: usize)),
        deinterleave: version!(deinterleave(dst: &[*mut u8], src: *const u8, step: usize, width: LaneWidth, lanes: usize)),
        split_bytes: version!(split_bytes(dst: &[*mut u8], src: *const u8, signed: bool, lanes: usize)),
        load_strided: version!(load_strided(dst: *mut u8, width: LaneWidth, src: *const u8, step: usize, lanes: usize)),
        store_strided: version!(store_strided(src: *const u8, width: LaneWidth, dst: *mut u8, step: usize, lanes: usize)),
        load_tiles: version!(load_tiles(
            dst: &[*mut u8], base: *const u8, addresses: &[u64], warps: u32, transposed: bool
        )),
        lanes_with: version!(lanes_with(
            mask: &mut [u64], src: *const u8, width: LaneWidth, value: u64, groups: Range<usize>
        )),
        match_warps: version!(match_warps(
            dst: *mut u8, src: *const u8, width: LaneWidth, members: &[u32], all: bool, lanes: usize
        )),
        interleave: version!(interleave(dst: *mut u8, src: &[*const u8], width: LaneWidth, lanes: usize)),
        copy: version!(copy(dst: *mut u8, src: *const u8, bytes: usize)),
        copy_rows: version!(copy_rows(dst: *mut u8, width: LaneWidth, src: *const u8, rows: MemoryRows, broadcast: bool)),
        spread: version!(spread(src: *const u8, width: LaneWidth, mask: &[u64], groups: Range<usize>) -> Spread),
        fma_chain: version!(fma_chain(dst: *mut u8, first: Factor, products: &[[Factor; 2]], shape: Shape)),
        permute_warps: version!(permute_warps(dst: *mut u8, src: *const u8, from: &[u32; 32], lanes: usize)),
    }
}

/// The functions for a path. The machine must have the path.
pub fn helpers(path: HostPath) -> &'static Helpers {
    static TABLES: LazyLock<[Helpers; 3]> = LazyLock::new(|| HostPath::ALL.map(build));
    &TABLES[path as usize]
}
