//! Random maps and coordinates against the model.

use ptxvm::tensor_map::{Element, Fill, Im2col, Mode, Swizzle, TensorMap};
use ptxvm::{Device, Module};

use super::model::{SHARED, elements, size};
use super::{Copy, Direction, ENGINES, Pattern, WIDE, kernel, launch, untouched};

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as u32 % n
    }

    fn of<T: std::marker::Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count / 4).flat_map(|_| (self.below(u32::MAX) << 1 ^ self.below(3)).to_le_bytes()).collect()
    }

    /// A coordinate in the tensor or somewhat outside of it, seldom far away.
    fn coordinate(&mut self, extent: u64, taken: u32) -> i32 {
        match self.below(16) {
            0 => self.of(&[i32::MIN, i32::MAX, -100_000]),
            1..=7 => self.below(extent as u32) as i32,
            _ => self.below(extent as u32 + 2 * taken) as i32 - taken as i32,
        }
    }
}

const ELEMENTS: [Element; 13] = [
    Element::U8,
    Element::U16,
    Element::U32,
    Element::S32,
    Element::U64,
    Element::S64,
    Element::F16,
    Element::F32,
    Element::F64,
    Element::Bf16,
    Element::F32Ftz,
    Element::Tf32,
    Element::Tf32Ftz,
];

/// Bytes of the tensor's memory.
const MEMORY: usize = 1 << 17;
/// Where tensors begin in it.
const ORIGIN: u64 = 1024;

/// Strides with gaps; the extents become smaller if there is no room for the tensor.
fn lay_out(map: &mut TensorMap, random: &mut Random) {
    let mut bytes = map.extents[0] * u64::from(map.element.bits()) / 8;
    for d in 1..map.rank {
        bytes = bytes.next_multiple_of(16) + 16 * u64::from(random.below(3));
        map.strides[d - 1] = bytes;
        map.extents[d] = map.extents[d].min((MEMORY as u64 - ORIGIN) / bytes / 2).max(1);
        bytes *= map.extents[d];
    }
}

fn span(swizzle: Swizzle) -> u32 {
    match swizzle {
        Swizzle::None => 256,
        Swizzle::Bytes32 => 32,
        Swizzle::Bytes64 => 64,
        _ => 128,
    }
}

fn random_tile(random: &mut Random, elements: &[Element]) -> Copy {
    let (rank, element, swizzle) =
        (1 + random.below(5) as usize, random.of(elements), random.of(Swizzle::ALL));
    let size = element.bits() / 8;
    let mut taken = [1; 5];
    taken[0] = (1 + random.below(span(swizzle).min(256 * size) / 16)) * 16 / size;
    let (mut extents, mut steps, mut left) = ([1; 5], [1; 5], 16);
    extents[0] = u64::from(1 + random.below(60));
    for d in 1..rank {
        extents[d] = u64::from(1 + random.below(6));
        steps[d] = if random.below(3) == 0 { 1 + random.below(8) } else { 1 };
        let count = 1 + random.below(left);
        left /= count;
        taken[d] = (count - 1) * steps[d] + 1 + random.below(steps[d]);
    }
    let mut map = TensorMap::tiled(element, ORIGIN, &extents[..rank], &taken[..rank]);
    (map.steps, map.swizzle) = (steps, swizzle);
    map.fill = if element.is_float() { random.of(Fill::ALL) } else { Fill::Zero };
    lay_out(&mut map, random);
    let mut at = std::array::from_fn(|d| random.coordinate(map.extents[d], taken[d]));
    at[0] = aligned(at[0], element);
    Copy { map, at, offsets: [0; 3], place: 128 * random.below(8), bytes: 0 }
}

/// The coordinate of the first element of its 16 bytes.
fn aligned(at: i32, element: Element) -> i32 {
    at & !(128 / element.bits() as i32 - 1)
}

/// Channels that fill so many times 16 bytes.
fn channels(element: Element, units: u32) -> u32 {
    units * 128 / element.bits()
}

fn random_columns(random: &mut Random, elements: &[Element]) -> Copy {
    let (rank, element) = (3 + random.below(3) as usize, random.of(elements));
    let mut map = TensorMap::tiled(element, ORIGIN, &[1; 5][..rank], &[1; 5][..rank]);
    let mut columns = Im2col {
        channels: channels(element, 1 + random.below(4)),
        pixels: 1 + random.below(40),
        ..Im2col::default()
    };
    map.swizzle = random.of(&[Swizzle::None, Swizzle::Bytes128, Swizzle::Bytes128By32]);
    map.fill = if element.is_float() { random.of(Fill::ALL) } else { Fill::Zero };
    map.extents[0] = u64::from(1 + random.below(24));
    let (mut at, mut offsets) = ([0; 5], [0; 3]);
    at[0] = aligned(random.coordinate(map.extents[0], columns.channels), element);
    for d in 1..rank - 1 {
        map.extents[d] = u64::from(1 + random.below(5));
        let (lower, upper) = (random.below(5) as i32 - 2, random.below(5) as i32 - 2);
        // There is at least a pixel.
        let upper = upper.max(lower + 1 - map.extents[d] as i32);
        (columns.lower[d - 1], columns.upper[d - 1]) = (lower, upper);
        map.steps[d] = if random.below(3) == 0 { 1 + random.below(3) } else { 1 };
        let width = (map.extents[d] as i32 + upper - lower) as u32;
        at[d] = lower + (random.below(width.div_ceil(map.steps[d])) * map.steps[d]) as i32;
        offsets[d - 1] = random.below(4) as u16;
    }
    map.extents[rank - 1] = u64::from(1 + random.below(3));
    at[rank - 1] = random.below(map.extents[rank - 1] as u32 + 2) as i32 - 1;
    map.mode = Mode::Im2col(columns);
    lay_out(&mut map, random);
    Copy { map, at, offsets, place: 128 * random.below(4), bytes: 0 }
}

/// Columns along the width, of the row of images that the other coordinates say.
fn random_wide(random: &mut Random, elements: &[Element], w128: bool) -> Copy {
    let (rank, element) = (3 + random.below(3) as usize, random.of(elements));
    let mut map = TensorMap::tiled(element, ORIGIN, &[1; 5][..rank], &[1; 5][..rank]);
    map.swizzle = random.of(&[Swizzle::Bytes64, Swizzle::Bytes128, Swizzle::Bytes128By32]);
    map.fill = if element.is_float() { random.of(Fill::ALL) } else { Fill::Zero };
    map.extents = std::array::from_fn(|d| if d < rank { u64::from(1 + random.below(4)) } else { 1 });
    map.extents[0] = u64::from(1 + random.below(24));
    map.extents[1] = u64::from(1 + random.below(20));
    map.steps = std::array::from_fn(|_| if random.below(3) == 0 { 1 + random.below(8) } else { 1 });
    let pixels = if w128 { 0 } else { 1 + random.below(100) };
    let mut columns =
        Im2col { channels: channels(element, 1 + random.below(4)), pixels, ..Im2col::default() };
    let (lower, upper) = (random.below(7) as i32 - 3, random.below(7) as i32 - 3);
    let upper = upper.max(lower + 1 - map.extents[1] as i32);
    (columns.lower[0], columns.upper[0]) = (lower, upper);
    map.mode = Mode::Im2colWide { columns, w128 };
    lay_out(&mut map, random);
    let mut at = std::array::from_fn(|d| random.coordinate(map.extents[d], 1));
    at[0] = random.coordinate(map.extents[0], columns.channels);
    // In the box, or somewhat to the left of it.
    at[1] = map.extents[1] as i32 - 1 + upper - random.below(30) as i32;
    at[rank - 1] = random.below(map.extents[rank - 1] as u32 + 2) as i32 - 2;
    let halo = random.below(if w128 { 8 } else { 60 }) as u16;
    let offsets = [if random.below(3) == 0 { 0 } else { halo }, random.below(32) as u16 / 4, 0];
    Copy { map, at, offsets, place: 128 * random.below(4), bytes: 0 }
}

/// Four rows of a matrix, some of them outside of it.
fn random_rows(random: &mut Random, elements: &[Element]) -> Copy {
    let mut copy = random_tile(random, elements);
    let Mode::Tiled(taken) = copy.map.mode else { panic!("a tile") };
    let extents = [copy.map.extents[0], u64::from(1 + random.below(12))];
    let map = TensorMap::tiled(copy.map.element, ORIGIN, &extents, &[taken[0], 1]);
    copy.map = TensorMap { swizzle: copy.map.swizzle, fill: copy.map.fill, ..map };
    lay_out(&mut copy.map, random);
    copy.at =
        std::array::from_fn(|i| random.coordinate(extents[i.min(1)], if i == 0 { taken[0] } else { 1 }));
    copy
}

impl Pattern {
    fn random(self, random: &mut Random, elements: &[Element]) -> Copy {
        match self {
            Pattern::Tile => random_tile(random, elements),
            Pattern::Columns => random_columns(random, elements),
            Pattern::Wide { of_128 } => random_wide(random, elements, of_128),
            Pattern::Rows => random_rows(random, elements),
        }
    }

    /// A kernel for each number of dimensions that there can be.
    fn kernels(self, direction: Direction) -> Vec<Option<Module>> {
        let ranks = match self {
            Pattern::Tile => 1..=5,
            Pattern::Columns | Pattern::Wide { .. } => 3..=5,
            Pattern::Rows => 2..=2,
        };
        (0..=5).map(|rank| ranks.contains(&rank).then(|| kernel(direction, rank, self))).collect()
    }
}

/// Rounds a number if the map says so: to the nearer one of those that end in 13 zeros.
fn arrives(map: &TensorMap, bytes: &mut [u8]) {
    if !matches!(map.element, Element::Tf32 | Element::Tf32Ftz) {
        return;
    }
    let number = f32::from_le_bytes(bytes.try_into().unwrap());
    let below = number.to_bits() >> 13 << 13;
    let nearer = if number.to_bits() - below < 0x1000 { below } else { below + 0x2000 };
    let rounded = if number.is_nan() { 0x7fff_e000 } else { nearer };
    bytes.copy_from_slice(&rounded.to_le_bytes());
}

fn check_loads(count: usize, pattern: Pattern) {
    let mut random = Random(7);
    let modules = pattern.kernels(Direction::Load);
    let mut outside = 0;
    for _ in 0..count {
        let mut copy = pattern.random(&mut random, &ELEMENTS);
        let map = copy.map;
        assert_eq!(map.check(), Ok(()), "{map:?}");
        let mut memory = random.bytes(MEMORY);
        // Some numbers without an exponent.
        memory.chunks_mut(16).for_each(|chunk| (chunk[2], chunk[3]) = (chunk[2] & 0x7f, chunk[3] & 0x80));
        let all = elements(&map, ORIGIN as usize, pattern, &copy.at, &copy.offsets, copy.place as usize);
        copy.bytes = (all.len() * size(&map)) as u32;
        let mut expected = untouched();
        for element in &all {
            let to = &mut expected[element.shared..element.shared + size(&map)];
            match element.global {
                Some(from) => {
                    to.copy_from_slice(&memory[from..from + size(&map)]);
                    arrives(&map, to);
                }
                None => {
                    let fill = if map.fill == Fill::Nan { [0xf7, 0x7f] } else { [0; 2] };
                    to.iter_mut().zip(fill.iter().cycle()).for_each(|(to, fill)| *to = *fill);
                    outside += 1;
                }
            }
        }
        for engine in ENGINES {
            let (mut before, mut shared) = (memory.clone(), untouched());
            let module = modules[map.rank].as_ref().unwrap();
            launch(&Device::new(), module, engine, &copy, &mut before, &mut shared)
                .unwrap_or_else(|error| panic!("{engine:?} {copy:?}: {error}"));
            assert!(before == memory, "{engine:?} {copy:?}");
            let different = (0..SHARED).find(|&at| shared[at] != expected[at]);
            assert_eq!(different, None, "{engine:?} {copy:?}");
        }
    }
    assert!(outside > count, "{outside} elements were not in their tensor");
}

#[test]
fn boxes_are_loaded() {
    check_loads(200, Pattern::Tile);
}

#[test]
fn columns_are_loaded() {
    check_loads(200, Pattern::Columns);
}

#[test]
fn columns_along_the_width_are_loaded() {
    for pattern in WIDE {
        check_loads(200, pattern);
    }
}

#[test]
fn rows_are_gathered() {
    check_loads(200, Pattern::Rows);
}

/// `combine` makes of what is there and what comes what is left.
fn check_stores(
    count: usize,
    direction: Direction,
    pattern: Pattern,
    elements_of: &[Element],
    combine: fn(&TensorMap, &mut [u8], &[u8]),
) {
    let mut random = Random(9);
    let modules = pattern.kernels(direction);
    for _ in 0..count {
        let mut copy = pattern.random(&mut random, elements_of);
        while pattern != Pattern::Rows && copy.at.iter().any(|&at| at < 0) {
            // A store begins nowhere else.
            copy = pattern.random(&mut random, elements_of);
        }
        copy.offsets = [0; 3];
        let map = copy.map;
        let (memory, shared) = (random.bytes(MEMORY), random.bytes(SHARED));
        let mut expected = memory.clone();
        for element in elements(&map, ORIGIN as usize, pattern, &copy.at, &copy.offsets, copy.place as usize)
        {
            if let Some(to) = element.global.or(element.behind) {
                let size = size(&map);
                combine(&map, &mut expected[to..to + size], &shared[element.shared..element.shared + size]);
            }
        }
        for engine in ENGINES {
            let (mut after, mut tile) = (memory.clone(), shared.clone());
            let module = modules[map.rank].as_ref().unwrap();
            launch(&Device::new(), module, engine, &copy, &mut after, &mut tile)
                .unwrap_or_else(|error| panic!("{engine:?} {copy:?}: {error}"));
            assert!(tile == shared, "{engine:?} {copy:?}");
            let different = (0..MEMORY).find(|&at| after[at] != expected[at]);
            assert_eq!(different, None, "{engine:?} {copy:?}");
        }
    }
}

#[test]
fn all_patterns_are_stored() {
    for pattern in [Pattern::Tile, Pattern::Columns, Pattern::Rows] {
        check_stores(100, Direction::Store, pattern, &ELEMENTS, |_, to, from| to.copy_from_slice(from));
    }
}

#[test]
fn integers_are_reduced() {
    fn add(map: &TensorMap, to: &mut [u8], from: &[u8]) {
        if map.element == Element::U64 {
            let sum = u64::from_le_bytes((&*to).try_into().unwrap())
                .wrapping_add(u64::from_le_bytes(from.try_into().unwrap()));
            return to.copy_from_slice(&sum.to_le_bytes());
        }
        let sum = u32::from_le_bytes((&*to).try_into().unwrap())
            .wrapping_add(u32::from_le_bytes(from.try_into().unwrap()));
        to.copy_from_slice(&sum.to_le_bytes());
    }
    fn max(map: &TensorMap, to: &mut [u8], from: &[u8]) {
        let signed = map.element == Element::S32;
        let number = |bytes: &[u8]| {
            let bits = u32::from_le_bytes(bytes.try_into().unwrap());
            if signed { i64::from(bits as i32) } else { i64::from(bits) }
        };
        if number(from) > number(to) {
            to.copy_from_slice(from);
        }
    }
    let bits = |_: &TensorMap, to: &mut [u8], from: &[u8]| {
        to.iter_mut().zip(from).for_each(|(to, from)| *to ^= from);
    };
    let words = [Element::U32, Element::S32];
    check_stores(
        40,
        Direction::Reduce("add"),
        Pattern::Tile,
        &[Element::U32, Element::S32, Element::U64],
        add,
    );
    check_stores(20, Direction::Reduce("add"), Pattern::Columns, &words, add);
    check_stores(40, Direction::Reduce("max"), Pattern::Tile, &words, max);
    check_stores(40, Direction::Reduce("add"), Pattern::Rows, &words, add);
    check_stores(40, Direction::Reduce("xor"), Pattern::Tile, &[Element::U32, Element::U64], bits);
}

#[test]
fn floating_point_numbers_are_reduced() {
    // Random bits are seldom NaNs in binary32, whose sums are the host's but for subnormals.
    fn add(map: &TensorMap, to: &mut [u8], from: &[u8]) {
        let flushed = |number: f32| match number.is_subnormal() && map.element != Element::F32 {
            true => 0f32.copysign(number),
            false => number,
        };
        let number = |bytes: &[u8]| flushed(f32::from_le_bytes(bytes.try_into().unwrap()));
        let sum = flushed(number(to) + number(from));
        let bits = if sum.is_nan() { 0x7fff_ffff } else { sum.to_bits() };
        to.copy_from_slice(&bits.to_le_bytes());
    }
    let all = [Element::F32, Element::F32Ftz, Element::Tf32Ftz];
    check_stores(60, Direction::Reduce("add"), Pattern::Tile, &all, add);
}
