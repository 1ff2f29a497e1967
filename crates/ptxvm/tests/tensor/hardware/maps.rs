//! Maps that the record describes, and NVIDIA's layout of them as far as its bytes show it.

use ptxvm::tensor_map::{
    BYTES, Element, Fill, Im2col, Interleave, MOST_DIMENSIONS, Mode, Swizzle, TensorMap,
};
use ptxvm::{Device, Module};

use super::super::ENGINES;
use super::case::Case;

/// The map of a case, whose address counts from the beginning of the tensor's memory; nothing if a kind does not exist.
pub fn described(case: &Case) -> Option<TensorMap> {
    fn padded<T: Copy + TryFrom<i128>, const N: usize>(values: &[i128], absent: T) -> [T; N] {
        std::array::from_fn(|i| values.get(i).map_or(absent, |&value| T::try_from(value).ok().unwrap()))
    }
    let kind = |name: &str| case.number(name) as u32;
    let mode = match case.is_im2col() {
        true => Mode::Im2col(Im2col {
            lower: padded(&case.numbers("lower"), 0),
            upper: padded(&case.numbers("upper"), 0),
            channels: kind("channels"),
            pixels: kind("pixels"),
        }),
        false => Mode::Tiled(padded(&case.numbers("box"), 1)),
    };
    let map = TensorMap {
        mode,
        element: Element::of(kind("elem"))?,
        rank: case.rank,
        address: case.address,
        extents: padded(&case.numbers("extents"), 1),
        strides: padded(&case.numbers("strides"), 0),
        steps: padded(&case.numbers("steps"), 1),
        interleave: Interleave::of(kind("interleave"))?,
        swizzle: Swizzle::of(kind("swizzle"))?,
        fill: Fill::of(kind("fill"))?,
    };
    (kind("promotion") <= 3).then_some(map)
}

/// What the bytes of a map say.
#[derive(PartialEq, Eq, Debug)]
struct Fields {
    address: u64,
    rank: u64,
    element: Option<Element>,
    interleave: u64,
    swizzle: u64,
    fill: u64,
    extents: Vec<u64>,
    strides: Vec<u64>,
    steps: Vec<u64>,
    taken: Vec<u64>,
}

fn number(bytes: &[u8], at: usize, count: usize) -> u64 {
    bytes[at..at + count].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// In NVIDIA's layout, where numbers are one less than they mean.
fn theirs(bytes: &[u8]) -> Fields {
    use Element::{Bf16, F16, F32, F32Ftz, F64, S32, S64, Tf32, Tf32Ftz, U8, U16, U32, U64};
    let kinds = number(bytes, 8, 4);
    let element = match (kinds >> 7 & 15, kinds >> 16 & 1) {
        (7, 1) => Some(Tf32),
        (8, 1) => Some(Tf32Ftz),
        (n, 0) => [U8, U16, U32, S32, U64, S64, F16, F32, F32Ftz, F64, Bf16].get(n as usize).copied(),
        _ => None,
    };
    let each = |value: &dyn Fn(usize) -> u64| (0..MOST_DIMENSIONS).map(value).collect::<Vec<_>>();
    Fields {
        address: number(bytes, 0, 8),
        rank: (kinds >> 4 & 7) + 1,
        element,
        interleave: kinds >> 11 & 3,
        swizzle: kinds >> 13 & 3,
        fill: kinds >> 15 & 1,
        extents: each(&|i| number(bytes, 32 + 4 * i, 4) + 1),
        strides: (0..4)
            .map(|i| (number(bytes, 12 + 4 * i, 4) | (number(bytes, 28, 2) >> (4 * i) & 15) << 32) << 4)
            .collect(),
        steps: each(&|i| (number(bytes, 52, 2) >> (3 * i) & 7) + 1),
        taken: each(&|i| number(bytes, 55 + i, 1) + 1),
    }
}

/// In ptxvm's layout.
fn ours(bytes: &[u8]) -> Fields {
    let each = |value: &dyn Fn(usize) -> u64| (0..MOST_DIMENSIONS).map(value).collect::<Vec<_>>();
    Fields {
        address: number(bytes, 8, 8),
        rank: number(bytes, 88, 1),
        element: Element::of(bytes[89].into()),
        interleave: number(bytes, 90, 1),
        swizzle: number(bytes, 91, 1),
        fill: number(bytes, 92, 1),
        extents: each(&|i| number(bytes, 48 + 8 * i, 8)),
        strides: (0..4).map(|i| number(bytes, 16 + 8 * i, 8)).collect(),
        steps: each(&|i| number(bytes, 94 + i, 1)),
        taken: each(&|i| number(bytes, 100 + 2 * i, 2)),
    }
}

/// The bytes of a map after both engines replaced a field of it.
fn replaced(case: &Case, map: &TensorMap) -> [u8; BYTES] {
    let (field, value) = (case.text("field"), case.text("value"));
    let ordinal = match field {
        "box_dim" | "global_dim" | "global_stride" | "element_stride" => {
            format!("{}, ", case.text("ordinal"))
        }
        _ => String::new(),
    };
    let ty = if field == "global_address" || field == "global_stride" { "b64" } else { "b32" };
    let is_immediate = matches!(field, "elemtype" | "interleave_layout" | "swizzle_mode" | "fill_mode");
    let new = if is_immediate { value } else { "%value" };
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry test(.param .u64 map)\n{{\n\
         .reg .b64 %map;\n.reg .{ty} %value;\nld.param.u64 %map, [map];\nmov.{ty} %value, {value};\n\
         tensormap.replace.tile.{field}.global.b1024.{ty} [%map], {ordinal}{new};\nret;\n}}\n"
    );
    let module = Module::from_ptx(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let [one, other] = ENGINES.map(|engine| {
        let device = Device::new();
        let place = device.array(&map.to_bytes()).unwrap();
        device.load(&module).unwrap().launch("test").engine(engine).arg(&place).run().unwrap();
        <[u8; BYTES]>::try_from(place.read().unwrap()).unwrap()
    });
    assert_eq!(one, other);
    one
}

/// Whether a field is replaced as on the GPU; else by what.
pub fn compare(case: &Case, map: &TensorMap) -> Result<(), String> {
    let bytes = |name: &str| -> Vec<u8> {
        let digits = case.text(name);
        (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap()).collect()
    };
    let (before, after) = (theirs(&bytes("map")), theirs(&bytes("data")));
    // The process had its tensor anywhere.
    let map = TensorMap { address: before.address, ..*map };
    assert_eq!(before, ours(&map.to_bytes()));
    let found = ours(&replaced(case, &map));
    if found == after { Ok(()) } else { Err(format!("{found:?} instead of {after:?}")) }
}
