//! Operands that handlers are tried on: edge values of every type in all combinations, and random ones.

use isa::{Kind, Type};
use sem::format::Format;

/// xorshift64*, enough for test data and the same everywhere.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }
}

/// How often a test repeats itself with other numbers: under Miri, which is slow, seldom.
pub(super) fn turns(many: usize) -> usize {
    if cfg!(miri) { many.div_ceil(100) } else { many }
}

/// The low bits that make a value of the type.
pub(super) fn low_bits(ty: Type, value: u64) -> u64 {
    if ty.bits() >= 64 { value } else { value & ((1 << ty.bits()) - 1) }
}

/// Edge values of one element of a floating-point format.
fn float_edges(f: &Format) -> Vec<u64> {
    let (one, least, infinity) = (f.one(), f.min_normal(), f.infinity());
    let ulp = 1 << f.padding;
    let half_ulp_step = f.fraction_bits + f.padding;
    let magnitudes = [
        0,
        ulp,
        least / 2,
        least - ulp,
        least,
        least + ulp,
        one - ulp,
        one,
        one + ulp,
        one + (1 << (half_ulp_step - 1)),
        // 2.5, powers of two about the limits of integer types, the precision and its half
        one + (1 << half_ulp_step) + (1 << half_ulp_step.saturating_sub(2)),
        one - (1 << half_ulp_step),
        infinity - ulp,
        infinity,
        infinity + ulp,
        infinity | 1 << (half_ulp_step - 1),
        f.magnitude_mask(),
    ];
    let powers = [7, 8, 15, 16, 24, 31, 32, 53, 63, 64].into_iter().map(|e| one + (e << half_ulp_step));
    let powers = powers.filter(|&x| x < infinity).flat_map(|x| [x - ulp, x, x + ulp]);
    let all: Vec<u64> = magnitudes.into_iter().chain(powers).collect();
    all.iter().flat_map(|&x| [x, x | f.sign()]).collect()
}

fn integer_edges(bits: u32) -> Vec<u64> {
    let top = 1u64 << (bits - 1);
    let mut edges =
        vec![0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 127, 128, 255, 0x5555_5555_5555_5555, top, top - 1];
    edges.extend([
        top + 1,
        top / 2,
        1 << 24,
        (1 << 24) + 1,
        0xffff_ff80,
        0xffff_ff7f,
        1 << 53,
        (1 << 53) + 1,
    ]);
    edges.extend([
        u64::MAX,
        u64::MAX - 1,
        0x8000,
        0x7fff,
        0x1_0000,
        0x8000_0000,
        0x7fff_ffff,
        0x0123_4567_89ab_cdef,
    ]);
    edges
}

/// Edge values of a type; of packed types, pairs of edges.
fn edges(ty: Type, random: &mut Random) -> Vec<u64> {
    let element = ty.element();
    let mut edges = match (Format::of(element), element.kind()) {
        (_, Kind::Predicate) => return vec![0, 1],
        (Some(format), _) => float_edges(format),
        (None, _) => integer_edges(element.bits()),
    };
    for edge in &mut edges {
        *edge = low_bits(element, *edge);
    }
    edges.sort_unstable();
    edges.dedup();
    if ty.lanes() > 1 {
        let single = edges.clone();
        for edge in &mut edges {
            for lane in 1..ty.lanes() {
                *edge |= single[random.below(single.len())] << (lane * (ty.bits() / ty.lanes()));
            }
        }
    }
    edges
}

/// Half of the edges; of floating point, the special values and those next to them before others.
fn thin(edges: &mut Vec<u64>, ty: Type) {
    let mut kept = 0;
    let special = |value: u64| match Format::of(ty) {
        Some(f) => {
            let magnitude = value & f.magnitude_mask();
            let around = |x: u64| magnitude.abs_diff(x) <= 1 << f.padding;
            around(0) || around(f.infinity()) || magnitude == f.magnitude_mask() || magnitude == f.one()
        }
        None => false,
    };
    let length = edges.len();
    edges.retain(|&value| {
        kept += 1;
        special(value) || kept % 2 == 0
    });
    if edges.len() == length {
        edges.truncate(length - 1);
    }
}

/// A random value of a type: any bits, an edge, or near one.
fn random_value(ty: Type, edges: &[u64], random: &mut Random) -> u64 {
    let edge = edges[random.below(edges.len())];
    let value = match random.below(4) {
        0 | 1 => random.next(),
        2 => edge,
        _ => edge.wrapping_add(random.next() % 7).wrapping_sub(3),
    };
    low_bits(ty, value)
}

/// Elements whose product is about the smallest normal number, and a third close to that product: where flushing,
/// underflow and cancellation are decided.
fn balanced(ty: Type, f: &Format, random: &mut Random) -> [u64; 3] {
    let mut packed = [0; 3];
    for lane in 0..ty.lanes() {
        let (bits, fraction) = (f.bits(), f.fraction_bits);
        let largest = (1i64 << f.exponent_bits) - 2;
        let bias = largest / 2;
        let a = 1 + random.below(largest as usize) as i64;
        let near = random.below(5) as i64 - 2;
        let target = match random.below(3) {
            0 => 1,
            1 => largest,
            _ => 1 + random.below(largest as usize) as i64,
        };
        let b = (target + near + bias - a).clamp(0, largest);
        let c = (target + near + random.below(fraction as usize + 4) as i64 - 1).clamp(0, largest);
        for (value, exponent) in packed.iter_mut().zip([a, b, c]) {
            let noise = random.next() & ((1 << fraction) - 1);
            // Fractions of few bits make exact products and ties.
            let noise =
                if random.below(3) == 0 { noise & !0 << random.below(fraction as usize + 1) } else { noise };
            let noise =
                if random.below(8) == 0 { (1 << fraction) - 1 } else { noise & ((1 << fraction) - 1) };
            let sign = (random.next() >> 63) << (bits - 1);
            *value |= (sign | (exponent as u64) << fraction | noise) << (lane * bits);
        }
    }
    packed
}

/// Sets of operands of these types: all combinations of edges if they are few, and random sets.
pub(super) fn operand_sets(types: &[Type], random: &mut Random) -> Vec<Vec<u64>> {
    let edges: Vec<Vec<u64>> = types.iter().map(|&ty| edges(ty, random)).collect();
    let count = |edges: &[Vec<u64>]| edges.iter().map(Vec::len).product::<usize>();
    let mut sets = Vec::new();
    if count(&edges) > 8192 {
        sets.extend((0..4096).map(|_| edges.iter().map(|edges| edges[random.below(edges.len())]).collect()));
    }
    // All combinations, of fewer edges where they would be too many.
    let mut few = edges.clone();
    while count(&few) > 8192 {
        for (edges, ty) in few.iter_mut().zip(types) {
            thin(edges, *ty);
        }
    }
    for mut number in 0..count(&few) {
        let mut set = Vec::new();
        for edges in &few {
            set.push(edges[number % edges.len()]);
            number /= edges.len();
        }
        sets.push(set);
    }
    if let [Type::F32, Type::F32, others @ ..] = types {
        // Their product is halfway between the smallest normal number and the one below it, of unbounded exponent.
        let factors = [18_631.0 * 2f32.powi(-63), 1_801.0 * 2f32.powi(-88)].map(|x| u64::from(x.to_bits()));
        sets.push(factors.into_iter().chain(others.iter().map(|_| 0)).collect());
    }
    if let [Type::F64] = types {
        // In `.f32` the same halfway.
        sets.push(vec![0x380f_ffff_f000_0000]);
    }
    for _ in 0..3000 {
        sets.push(types.iter().zip(&edges).map(|(&ty, edges)| random_value(ty, edges, random)).collect());
    }
    if let Some(format) = types.first().and_then(|ty| Format::of(ty.element())) {
        for _ in 0..5000 {
            let values = balanced(types[0], format, random);
            let set = types.iter().enumerate().map(|(i, &ty)| match Format::of(ty.element()) {
                Some(same) if same == format && i < 3 => values[i],
                _ => random_value(ty, &edges[i], random),
            });
            sets.push(set.collect());
        }
    }
    sets
}
