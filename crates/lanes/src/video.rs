//! Video instructions: arithmetic on bytes, halves and words that selectors extract from 32-bit operands.
//!
//! One handler serves all scalar forms and one all packed forms; parameters, which are the same for all lanes,
//! distinguish the forms.

use super::compare::{EQUAL, GREATER, LESS, outcomes};
use super::drive::{apply1, apply2, load, store};
use super::path::{BLOCK, Block, Parametric, Path, version_with};
use super::{HostPath, LaneArgs, LaneFn};
use isa::{Mod, Opcode, Picks, Selector, Type, Unit};

/// The operation on two numbers.
#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Add,
    Sub,
    AbsDiff,
    Min,
    Max,
    Average,
    /// 1 if the comparison has one of these outcomes, else 0.
    Set(u8),
    Shl {
        clamp: bool,
    },
    Shr {
        clamp: bool,
    },
    Mad,
}

/// A bit field of an operand and its signedness.
#[derive(Clone, Copy)]
struct Part {
    low: u8,
    width: u8,
    signed: bool,
}

impl Part {
    /// The field that a scalar selector extracts.
    fn new(selector: Option<Selector>, ty: Type) -> Part {
        let signed = ty.is_signed();
        let Some(selector) = selector else { return Part { low: 0, width: 32, signed } };
        let width = width(selector.unit);
        Part { low: width * selector.digits().first().copied().unwrap_or(0), width, signed }
    }

    #[inline(always)]
    fn number(self, x: u32) -> i64 {
        let unused = (64 - u32::from(self.width)) & 63;
        let bits = u64::from(x) >> (self.low & 31) << unused;
        if self.signed { bits as i64 >> unused } else { (bits >> unused) as i64 }
    }
}

fn width(unit: Unit) -> u8 {
    match unit {
        Unit::Byte => 8,
        Unit::Half => 16,
    }
}

/// The least and the greatest number of `width` bits.
#[inline(always)]
fn limits(width: u8, signed: bool) -> (i64, i64) {
    let width = width & 63;
    if signed { (-1 << (width - 1), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) }
}

/// The second operation, after saturation.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// Inserts the result into a part of c.
    Merge,
    Add,
    Min,
    Max,
}

/// How a scalar instruction saturates (`sem::video::saturated`).
#[derive(Clone, Copy, PartialEq)]
enum Saturation {
    None,
    /// Clamps to 0 or more.
    Positive,
    /// Clamps to 32 bits a number with this many bits.
    Word(u8),
    /// Replaces a number outside of 32 bits by the greatest number of the part.
    Part,
}

/// A scalar instruction.
struct Scalar;

#[derive(Clone, Copy)]
struct ScalarWith {
    operation: Operation,
    a: Part,
    b: Part,
    /// The part of d that receives the result, a number of `.dtype`.
    d: Part,
    has_c: bool,
    saturation: Saturation,
    /// The result is sign-extended from 32 bits before the second operation.
    extended: bool,
    then: Then,
    negated_product: bool,
    negated_addend: bool,
    plus_one: bool,
    scale: u8,
}

impl ScalarWith {
    /// `vmad` (`sem::video::mad`).
    #[inline(always)]
    fn mad(&self, a: u32, b: u32, c: u32) -> u64 {
        let factor = |part: Part, x: u32| i64::from(part.number(x) as i32);
        let product = factor(self.a, a).wrapping_mul(factor(self.b, b));
        let negated_if = |negated: bool, x: i64| if negated { x.wrapping_neg() } else { x };
        let product = negated_if(self.negated_product, product);
        let addend = negated_if(self.negated_addend, i64::from(c as i32));
        let sum = product.wrapping_add(addend).wrapping_add(i64::from(self.plus_one));
        let scale = self.scale & 63;
        let scaled = if self.d.signed { sum >> scale } else { (sum as u64 >> scale) as i64 };
        let (least, most) = limits(32, self.d.signed);
        (if self.saturation == Saturation::None { scaled } else { scaled.max(least).min(most) }) as u64
    }

    /// The results after saturation.
    #[inline(always)]
    fn saturate(&self, x: Block<i64>) -> Block<i64> {
        match self.saturation {
            Saturation::None => x,
            Saturation::Positive => apply1(|x: i64| x.max(0), x),
            Saturation::Word(bits) => {
                let unused = (64 - bits) & 63;
                let (least, most) = limits(32, self.d.signed);
                apply1(|x: i64| (x << unused >> unused).max(least).min(most), x)
            }
            Saturation::Part => {
                let (least, most) = limits(self.d.width, self.d.signed);
                let clamp = |x: i64| {
                    let inside = (0..1 << 32).contains(&x);
                    if inside { x.max(least).min(most) } else { most }
                };
                apply1(clamp, x)
            }
        }
    }

    /// Saturation, then the second operation.
    #[inline(always)]
    fn finish(&self, result: Block<i64>, c: Block<u32>) -> Block<u32> {
        let result = self.saturate(result);
        if self.then == Then::Merge {
            let (low, mask) = (self.d.low & 31, (limits(self.d.width, false).1 as u32) << (self.d.low & 31));
            return apply2(|x: i64, c: u32| (x as u32) << low & mask | c & !mask, result, c);
        }
        let word = if self.extended { apply1(|x: i64| i64::from(x as i32), result) } else { result };
        let addend = match self.d.signed {
            true => apply1(|c: u32| i64::from(c as i32), c),
            false => apply1(|c: u32| i64::from(c), c),
        };
        // Unsigned numbers compare like signed ones with the top bit flipped.
        let flip = if self.d.signed { 0 } else { i64::MIN };
        let less = |x: i64, c: i64| (x ^ flip) < (c ^ flip);
        match self.then {
            Then::Min => apply2(|x: i64, c: i64| if less(x, c) { x as u32 } else { c as u32 }, word, addend),
            Then::Max => apply2(|x: i64, c: i64| if less(x, c) { c as u32 } else { x as u32 }, word, addend),
            _ => apply2(|x: i64, c: i64| x.wrapping_add(c) as u32, word, addend),
        }
    }
}

impl Parametric for Scalar {
    type With = ScalarWith;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &ScalarWith) {
        let with = *with;
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` words.
            unsafe {
                let (a, b): (Block<u32>, Block<u32>) = (load(args, 0, i), load(args, 1, i));
                let c: Block<u32> = if with.has_c { load(args, 2, i) } else { [0; BLOCK] };
                if with.operation == Operation::Mad {
                    let mut out = [0; BLOCK];
                    for k in 0..BLOCK {
                        out[k] = with.mad(a[k], b[k], c[k]) as u32;
                    }
                    store(path, args, 0, i, out);
                    continue;
                }
                let x = apply1(|x: u32| with.a.number(x), a);
                let y = apply1(|x: u32| with.b.number(x), b);
                let amount = |y: i64, clamp: bool| if clamp { y.min(32) } else { y & 31 };
                let result: Block<i64> = match with.operation {
                    Operation::Add => apply2(|x: i64, y: i64| x + y, x, y),
                    Operation::Sub => apply2(|x: i64, y: i64| x - y, x, y),
                    Operation::AbsDiff => apply2(|x: i64, y: i64| (x - y).abs(), x, y),
                    Operation::Min => apply2(|x: i64, y: i64| x.min(y), x, y),
                    Operation::Max => apply2(|x: i64, y: i64| x.max(y), x, y),
                    Operation::Set(holds) => apply2(|x: i64, y: i64| compare(holds, x, y), x, y),
                    Operation::Shl { clamp } => apply2(|x: i64, y| x << (amount(y, clamp) & 63), x, y),
                    Operation::Shr { clamp } => apply2(|x: i64, y| x >> (amount(y, clamp) & 63), x, y),
                    Operation::Average | Operation::Mad => x,
                };
                store(path, args, 0, i, with.finish(result, c));
            }
        }
    }
}

/// 1 if the comparison has one of the outcomes, otherwise 0.
#[inline(always)]
fn compare(holds: u8, x: i64, y: i64) -> i64 {
    let has = |outcome: u8| holds & outcome != 0;
    i64::from((x < y) & has(LESS) | (x == y) & has(EQUAL) | (x > y) & has(GREATER))
}

/// An instruction on two halves or four bytes.
struct Packed;

#[derive(Clone, Copy)]
struct PackedWith {
    operation: Operation,
    width: u8,
    /// For each source, the elements that it takes from a and b together, the lowest first.
    elements: [[u8; 4]; 2],
    signed: [bool; 2],
    /// The elements of d that receive a result.
    mask: [bool; 4],
    /// The limits that results are clamped to.
    limits: Option<(i32, i32)>,
    /// The results are added to c instead of replacing its elements.
    accumulates: bool,
}

impl PackedWith {
    /// The values of a source for an element.
    #[inline(always)]
    fn numbers(&self, sources: [Block<u32>; 2], source: usize, element: usize) -> Block<i32> {
        let width = u32::from(self.width) & 31;
        let low = u32::from(self.elements[source][element]) * width;
        let (left, unused) = ((32 - width - (low & 31)) & 31, (32 - width) & 31);
        let word = sources[(low >= 32) as usize];
        match self.signed[source] {
            true => apply1(|x: u32| (x << left) as i32 >> unused, word),
            false => apply1(|x: u32| (x << left >> unused) as i32, word),
        }
    }
}

impl Parametric for Packed {
    type With = PackedWith;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, with: &PackedWith) {
        let with = *with;
        let width = u32::from(with.width) & 31;
        let unused = (32 - width) & 31;
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` words.
            unsafe {
                let sources: [Block<u32>; 2] = [load(args, 0, i), load(args, 1, i)];
                let mut out: Block<u32> = load(args, 2, i);
                for element in (0..32 / width as usize).filter(|&element| with.mask[element]) {
                    let x = with.numbers(sources, 0, element);
                    let y = with.numbers(sources, 1, element);
                    let mut result = match with.operation {
                        Operation::Add => apply2(|x: i32, y: i32| x + y, x, y),
                        Operation::Sub => apply2(|x: i32, y: i32| x - y, x, y),
                        Operation::AbsDiff => apply2(|x: i32, y: i32| (x - y).abs(), x, y),
                        Operation::Min => apply2(|x: i32, y: i32| x.min(y), x, y),
                        Operation::Max => apply2(|x: i32, y: i32| x.max(y), x, y),
                        // Halves are rounded away from zero.
                        Operation::Average => {
                            apply2(|x: i32, y: i32| (x + y + i32::from(x + y >= 0)) >> 1, x, y)
                        }
                        Operation::Set(holds) => {
                            apply2(|x: i32, y: i32| compare(holds, x.into(), y.into()) as i32, x, y)
                        }
                        _ => x,
                    };
                    if let Some((least, most)) = with.limits {
                        result = apply1(|x: i32| x.max(least).min(most), result);
                    }
                    let place = (element as u32 * width) & 31;
                    let mask = (!0u32 >> unused) << place;
                    out = match with.accumulates {
                        true => apply2(|d: u32, x: i32| d.wrapping_add(x as u32), out, result),
                        false => apply2(|d: u32, x: i32| (x as u32) << place & mask | d & !mask, out, result),
                    };
                }
                store(path, args, 0, i, out);
            }
        }
    }
}

/// The operation of an opcode, and the element type of packed opcodes.
fn operation(opcode: Opcode, picks: &Picks) -> Option<(Operation, Option<Unit>)> {
    use Unit::{Byte, Half};
    let clamp = picks.has(Mod::Clamp);
    let set = || Some(Operation::Set(outcomes(picks.cmp()?)));
    Some(match opcode {
        Opcode::Vadd => (Operation::Add, None),
        Opcode::Vsub => (Operation::Sub, None),
        Opcode::Vabsdiff => (Operation::AbsDiff, None),
        Opcode::Vmin => (Operation::Min, None),
        Opcode::Vmax => (Operation::Max, None),
        Opcode::Vset => (set()?, None),
        Opcode::Vshl => (Operation::Shl { clamp }, None),
        Opcode::Vshr => (Operation::Shr { clamp }, None),
        Opcode::Vmad => (Operation::Mad, None),
        Opcode::Vadd2 => (Operation::Add, Some(Half)),
        Opcode::Vsub2 => (Operation::Sub, Some(Half)),
        Opcode::Vabsdiff2 => (Operation::AbsDiff, Some(Half)),
        Opcode::Vmin2 => (Operation::Min, Some(Half)),
        Opcode::Vmax2 => (Operation::Max, Some(Half)),
        Opcode::Vavrg2 => (Operation::Average, Some(Half)),
        Opcode::Vset2 => (set()?, Some(Half)),
        Opcode::Vadd4 => (Operation::Add, Some(Byte)),
        Opcode::Vsub4 => (Operation::Sub, Some(Byte)),
        Opcode::Vabsdiff4 => (Operation::AbsDiff, Some(Byte)),
        Opcode::Vmin4 => (Operation::Min, Some(Byte)),
        Opcode::Vmax4 => (Operation::Max, Some(Byte)),
        Opcode::Vavrg4 => (Operation::Average, Some(Byte)),
        Opcode::Vset4 => (set()?, Some(Byte)),
        _ => return None,
    })
}

fn scalar(
    operation: Operation,
    sources: usize,
    picks: &Picks,
    [dtype, atype, btype]: [Type; 3],
) -> ScalarWith {
    let parts = picks.parts;
    let shift = matches!(operation, Operation::Shl { .. } | Operation::Shr { .. });
    let (is_mad, is_set) = (operation == Operation::Mad, matches!(operation, Operation::Set(_)));
    let signed = match () {
        () if is_mad => {
            atype.is_signed() || btype.is_signed() || parts.negated_product || parts.negated_addend
        }
        () if is_set => atype.is_signed(),
        () => dtype.is_signed(),
    };
    let sat = picks.has(Mod::Sat);
    let saturation = match picks.selector(0) {
        _ if !sat => Saturation::None,
        _ if shift => Saturation::Word(34),
        Some(_) => Saturation::Part,
        None if signed => Saturation::Word(64),
        None => Saturation::Positive,
    };
    let then = match picks.mods() {
        mods if mods.contains(&Mod::Add) => Then::Add,
        mods if mods.contains(&Mod::Min) => Then::Min,
        mods if mods.contains(&Mod::Max) => Then::Max,
        _ => Then::Merge,
    };
    // Shift amounts are unsigned.
    let b = Part { signed: btype.is_signed() && !shift, ..Part::new(picks.selector(2), btype) };
    ScalarWith {
        operation,
        a: Part::new(picks.selector(1), atype),
        b,
        d: Part { signed, ..Part::new(picks.selector(0), dtype) },
        has_c: sources > 2,
        saturation,
        extended: matches!(operation, Operation::Add | Operation::Sub) || shift && sat,
        then,
        negated_product: parts.negated_product,
        negated_addend: parts.negated_addend,
        plus_one: picks.has(Mod::Po),
        scale: match (picks.has(Mod::Shr7), picks.has(Mod::Shr15)) {
            (true, _) => 7,
            (_, true) => 15,
            _ => 0,
        },
    }
}

fn packed(operation: Operation, unit: Unit, picks: &Picks, [dtype, atype, btype]: [Type; 3]) -> PackedWith {
    let width = width(unit);
    let elements = |operand: usize, first: u8| match picks.selector(operand) {
        None => [first, first + 1, first + 2, first + 3],
        Some(selector) => {
            let mut elements = [0; 4];
            // The first digit of a selector is the highest element.
            for (element, &digit) in elements.iter_mut().zip(selector.digits().iter().rev()) {
                *element = digit;
            }
            elements
        }
    };
    let limits = picks.has(Mod::Sat).then(|| limits(width, dtype.is_signed()));
    PackedWith {
        operation,
        width,
        elements: [elements(1, 0), elements(2, 32 / width)],
        signed: [atype.is_signed(), btype.is_signed()],
        mask: [0, 1, 2, 3].map(|i| picks.selector(0).is_none_or(|selector| selector.digits().contains(&i))),
        limits: limits.map(|(least, most)| (least as i32, most as i32)),
        accumulates: picks.has(Mod::Add),
    }
}

/// The handler of a video instruction.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let (operation, unit) = operation(opcode, picks)?;
    let types = match *picks.types() {
        [dtype, atype, btype] => [dtype, atype, btype],
        [atype, btype] => [Type::U32, atype, btype],
        _ => return None,
    };
    Some(match unit {
        None => version_with::<Scalar>(path, scalar(operation, sources, picks, types)),
        Some(unit) => version_with::<Packed>(path, packed(operation, unit, picks, types)),
    })
}
