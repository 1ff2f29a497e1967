//! Tensor maps: what the manual asks of them.

mod driver;

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

use driver::*;

#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Map([u64; 16]);

const NO_MAP: Map = Map([0; 16]);

/// Types, by number.
const U8: u32 = 0;
const S32: u32 = 3;
const F16: u32 = 6;
const F32: u32 = 7;
const U4_ALIGN_8: u32 = 13;
const U4_ALIGN_16: u32 = 14;
const U6_ALIGN_16: u32 = 15;

/// What a test asks for.
#[derive(Clone, Copy)]
struct Tensor {
    element: u32,
    rank: u32,
    address: usize,
    extents: [u64; 5],
    strides: [u64; 4],
    taken: [u32; 5],
    steps: [u32; 5],
    interleave: u32,
    swizzle: u32,
    promotion: u32,
    fill: u32,
}

/// A tensor of three dimensions that every requirement allows.
const GOOD: Tensor = Tensor {
    element: F16,
    rank: 3,
    address: 0x0001_0000_0000_0000,
    extents: [128, 100, 3, 0, 0],
    strides: [256, 25600, 0, 0],
    taken: [64, 16, 1, 0, 0],
    steps: [1, 1, 1, 0, 0],
    interleave: 0,
    swizzle: 3,
    promotion: 2,
    fill: 0,
};

impl Tensor {
    fn pointer(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.address)
    }

    fn tiled(&self) -> (u32, Map) {
        start();
        let mut map = NO_MAP;
        // SAFETY: every array has as many elements as the largest rank that is passed, and the map has its size.
        let status = unsafe {
            cuTensorMapEncodeTiled(
                (&raw mut map).cast(),
                self.element,
                self.rank,
                self.pointer(),
                self.extents.as_ptr(),
                self.strides.as_ptr(),
                self.taken.as_ptr(),
                self.steps.as_ptr(),
                self.interleave,
                self.swizzle,
                self.promotion,
                self.fill,
            )
        };
        (status, map)
    }

    fn columns(&self, corners: [[c_int; 3]; 2], channels: u32, pixels: u32) -> u32 {
        start();
        let mut map = NO_MAP;
        // SAFETY: as above.
        unsafe {
            cuTensorMapEncodeIm2col(
                (&raw mut map).cast(),
                self.element,
                self.rank,
                self.pointer(),
                self.extents.as_ptr(),
                self.strides.as_ptr(),
                corners[0].as_ptr(),
                corners[1].as_ptr(),
                channels,
                pixels,
                self.steps.as_ptr(),
                self.interleave,
                self.swizzle,
                self.promotion,
                self.fill,
            )
        }
    }
}

#[test]
fn a_good_tensor_becomes_a_map_and_may_move() {
    let (status, map) = GOOD.tiled();
    assert_eq!(status, 0);
    assert_ne!(map, NO_MAP);
    let moved = Tensor { address: GOOD.address + 0x1000, ..GOOD };
    let mut replaced = map;
    // SAFETY: it is a map.
    unsafe {
        assert_eq!(cuTensorMapReplaceAddress((&raw mut replaced).cast(), moved.pointer()), 0);
        assert_eq!(replaced, moved.tiled().1);
        let bad = std::ptr::without_provenance_mut(8);
        assert_eq!(cuTensorMapReplaceAddress((&raw mut replaced).cast(), bad), INVALID_VALUE);
        assert_eq!(cuTensorMapReplaceAddress(null_mut(), moved.pointer()), INVALID_VALUE);
        let mut other = NO_MAP;
        assert_eq!(cuTensorMapReplaceAddress((&raw mut other).cast(), moved.pointer()), INVALID_VALUE);
        let mut class = 7;
        assert_eq!(cuTensorMapSetAllocationClass((&raw mut replaced).cast(), 2, &raw mut class), 0);
        assert_eq!(class, 1);
        assert_eq!(cuTensorMapSetAllocationClass((&raw mut replaced).cast(), 3, null_mut()), INVALID_VALUE);
    }
}

/// What is changed of a good tensor, in words, and how.
type Case = (&'static str, &'static dyn Fn(&mut Tensor));

#[test]
fn every_requirement_of_the_manual_is_checked() {
    let with = |change: &dyn Fn(&mut Tensor)| {
        let mut tensor = GOOD;
        change(&mut tensor);
        tensor.tiled().0
    };
    let good: &[Case] = &[
        ("one dimension", &|t| t.rank = 1),
        ("five dimensions", &|t| {
            (t.rank, t.extents[3], t.extents[4]) = (5, 2, 1 << 31);
            (t.strides[2], t.strides[3]) = (76800, (1 << 40) - 16);
            (t.taken[3], t.taken[4], t.steps[3], t.steps[4]) = (1, 256, 8, 1);
        }),
        ("the first step is not looked at", &|t| t.steps[0] = 9),
        ("NaNs for floats", &|t| t.fill = 1),
        ("groups of 32 bytes", &|t| (t.interleave, t.swizzle, t.taken[0]) = (2, 1, 16)),
        ("rows of eight in groups", &|t| (t.interleave, t.swizzle, t.taken[0]) = (1, 0, 8)),
        ("extent above 2^31", &|t| t.extents[2] = (1 << 32) - 1),
        ("226 KiB", &|t| (t.taken[1], t.taken[2]) = (226, 8)),
        ("steps leave 224 KiB", &|t| (t.taken[1], t.taken[2], t.steps[2]) = (128, 29, 2)),
    ];
    for (what, change) in good {
        assert_eq!(with(change), 0, "{what}");
    }
    let bad: &[Case] = &[
        ("no dimension", &|t| t.rank = 0),
        ("six dimensions", &|t| t.rank = 6),
        ("type", &|t| t.element = 16),
        ("interleave", &|t| t.interleave = 3),
        ("swizzle", &|t| t.swizzle = 7),
        ("promotion", &|t| t.promotion = 4),
        ("fill", &|t| t.fill = 2),
        ("address", &|t| t.address += 8),
        ("address of groups of 32 bytes", &|t| {
            (t.interleave, t.swizzle, t.taken[0]) = (2, 1, 16);
            t.address += 16;
        }),
        ("address of 6 bits", &|t| {
            (t.element, t.taken[0]) = (U6_ALIGN_16, 128);
            t.address += 16;
        }),
        ("extent of zero", &|t| t.extents[1] = 0),
        ("extent above 2^32", &|t| t.extents[2] = (1 << 32) + 1),
        ("228 KiB", &|t| (t.taken[1], t.taken[2]) = (228, 8)),
        ("rows of three in groups", &|t| (t.interleave, t.swizzle, t.taken[0]) = (1, 0, 3)),
        // This device is an sm_90.
        ("4 bits", &|t| (t.element, t.taken[0]) = (U4_ALIGN_8, 256)),
        ("4 bits in 16 bytes", &|t| (t.element, t.taken[0]) = (U4_ALIGN_16, 128)),
        ("6 bits in 16 bytes", &|t| (t.element, t.taken[0]) = (U6_ALIGN_16, 128)),
        ("swizzle of 32 bytes in 128", &|t| t.swizzle = 4),
        ("extent of 4 bits", &|t| (t.element, t.taken[0], t.extents[0]) = (U4_ALIGN_8, 256, 127)),
        ("extent of 6 bits", &|t| (t.element, t.taken[0], t.extents[0]) = (U6_ALIGN_16, 128, 192)),
        ("stride", &|t| t.strides[0] = 264),
        ("stride of 2^40", &|t| t.strides[1] = 1 << 40),
        ("stride of groups of 32 bytes", &|t| {
            (t.interleave, t.swizzle, t.taken[0]) = (2, 1, 16);
            t.strides[0] = 272;
        }),
        ("box of zero", &|t| t.taken[2] = 0),
        ("box above 256", &|t| t.taken[1] = 257),
        ("row of 6 bytes", &|t| t.taken[0] = 3),
        ("row of 6 bits", &|t| (t.element, t.taken[0]) = (U6_ALIGN_16, 64)),
        ("row above the swizzle", &|t| t.taken[0] = 72),
        ("row above a smaller swizzle", &|t| (t.swizzle, t.taken[0]) = (2, 40)),
        ("step of zero", &|t| t.steps[1] = 0),
        ("step of nine", &|t| t.steps[2] = 9),
        ("first step of groups", &|t| (t.interleave, t.steps[0]) = (1, 0)),
        ("groups of a matrix", &|t| (t.interleave, t.rank) = (1, 2)),
        ("swizzle of groups of 32 bytes", &|t| t.interleave = 2),
        ("groups of 6 bits", &|t| (t.element, t.taken[0], t.interleave) = (U6_ALIGN_16, 128, 1)),
        ("swizzle of 6 bits", &|t| (t.element, t.taken[0], t.swizzle) = (U6_ALIGN_16, 128, 2)),
        ("swizzle of 4 bits", &|t| (t.element, t.taken[0], t.swizzle) = (U4_ALIGN_16, 128, 6)),
        ("NaNs for integers", &|t| (t.element, t.taken[0], t.fill) = (S32, 32, 1)),
        ("NaNs for bytes", &|t| (t.element, t.fill) = (U8, 1)),
    ];
    for (what, change) in bad {
        assert_eq!(with(change), INVALID_VALUE, "{what}");
    }
}

#[test]
fn null_and_crooked_pointers_are_refused() {
    start();
    let mut maps = [NO_MAP; 2];
    let crooked = (&raw mut maps).wrapping_byte_add(32).cast();
    let one = [16u64; 5];
    let (ones, address) = ([1u32, 1, 1, 1, 1], GOOD.pointer());
    let taken = [16u32, 1, 1, 1, 1];
    let encode = |map, extents, strides, taken, steps| {
        // SAFETY: what is not null has enough elements.
        unsafe { cuTensorMapEncodeTiled(map, F32, 2, address, extents, strides, taken, steps, 0, 0, 0, 0) }
    };
    let (extents, strides, taken, steps) = (one.as_ptr(), one.as_ptr(), taken.as_ptr(), ones.as_ptr());
    let map = (&raw mut maps[0]).cast();
    assert_eq!(encode(map, extents, strides, taken, steps), 0);
    for status in [
        encode(null_mut(), extents, strides, taken, steps),
        encode(crooked, extents, strides, taken, steps),
        encode(map, null(), strides, taken, steps),
        encode(map, extents, null(), taken, steps),
        encode(map, extents, strides, null(), steps),
        encode(map, extents, strides, taken, null()),
    ] {
        assert_eq!(status, INVALID_VALUE);
    }
}

#[test]
fn columns_have_requirements_of_their_own() {
    let image = Tensor {
        rank: 4,
        extents: [64, 32, 32, 2, 0],
        strides: [128, 4096, 131_072, 0],
        steps: [1; 5],
        ..GOOD
    };
    let corners = [[-1, -1, 0], [1, 1, 0]];
    assert_eq!(image.columns(corners, 64, 1024), 0);
    assert_eq!(image.columns(corners, 257, 16), INVALID_VALUE);
    assert_eq!(image.columns(corners, 72, 16), INVALID_VALUE);
    assert_eq!(image.columns(corners, 64, 1025), INVALID_VALUE);
    assert_eq!(image.columns(corners, 64, 0), INVALID_VALUE);
    assert_eq!(image.columns(corners, 12, 16), INVALID_VALUE);
    let mut wide = image;
    wide.extents[1] = 1 << 31;
    assert_eq!(wide.columns(corners, 64, 16), INVALID_VALUE);
    assert_eq!(image.columns([[-129, 0, 0], [0; 3]], 64, 16), INVALID_VALUE);
    assert_eq!(image.columns([[0; 3], [0, 128, 0]], 64, 16), INVALID_VALUE);
    // From 20 on, to 12 before the end: nothing is left.
    assert_eq!(image.columns([[20, 0, 0], [-12, 0, 0]], 64, 16), INVALID_VALUE);
    assert_eq!(Tensor { rank: 2, ..image }.columns(corners, 64, 16), INVALID_VALUE);
    let line = Tensor { rank: 3, ..image };
    assert_eq!(line.columns([[-32768, 0, 0], [32767, 0, 0]], 64, 16), 0);
    let volume =
        Tensor { rank: 5, extents: [64, 32, 32, 4, 2], strides: [128, 4096, 131_072, 524_288], ..image };
    assert_eq!(volume.columns([[-16; 3], [15; 3]], 64, 16), 0);
    assert_eq!(volume.columns([[-17; 3], [15; 3]], 64, 16), INVALID_VALUE);
}

#[test]
fn wide_columns_need_a_newer_device() {
    start();
    let (mut map, tensor) = (NO_MAP, Tensor { steps: [1; 5], ..GOOD });
    let (extents, strides, steps) = (tensor.extents.as_ptr(), tensor.strides.as_ptr(), tensor.steps.as_ptr());
    // SAFETY: every array has three elements.
    let status = unsafe {
        cuTensorMapEncodeIm2colWide(
            (&raw mut map).cast(),
            F16,
            3,
            tensor.pointer(),
            extents,
            strides,
            0,
            0,
            64,
            16,
            steps,
            0,
            0,
            3,
            0,
            0,
        )
    };
    assert_eq!(status, NOT_SUPPORTED);
}
