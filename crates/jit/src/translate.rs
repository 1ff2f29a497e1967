//! How lowered operations become operations of native code.

use ir::{
    Atomic, AtomicOp, Base, MatrixKind, MatrixOp, MemoryOp, OpKind, ShufflePattern, SimpleOp, Slot, WarpOp,
    Width,
};
use isa::matrix::is_sparse;
use isa::{Addition, BoolOp, Form, Mod, Picks, Rounding, Space, Type};
use sem::matrix::{BlockScale, Product};

use crate::MOST_OPERANDS;
use crate::operation::{Access, Bits, Change, Conversion, Float, Half, Operation, Ordering};

impl Operation {
    /// The operation for a lowered one, if there is one. `width`: of a slot. `index` and `calls`: of the next access and
    /// call.
    pub fn of(op: &ir::Op, width: impl Fn(Slot) -> Width, index: usize, calls: usize) -> Option<Operation> {
        if op.guard.is_some() { None } else { Operation::of_kind(&op.kind, width, index, calls) }
    }

    /// [`Operation::of`] without a guard, whether the instruction has one or not.
    pub fn of_kind(
        kind: &OpKind,
        width: impl Fn(Slot) -> Width,
        index: usize,
        calls: usize,
    ) -> Option<Operation> {
        let made = match kind {
            OpKind::Pure { form, picks, function, dst, src } => {
                let native = pure(form, picks, function, *dst, src, &width);
                native.or_else(|| call(form, *dst, src, &width, calls))?
            }
            &OpKind::SelectPair { dst, pairs, preds } => Operation::SelectHalves { dst, src: pairs, preds },
            OpKind::Cvta { dst, src, space: Space::Global, .. } if width(*src) == width(*dst) => {
                Operation::copy(*dst, *src, width(*dst))
            }
            OpKind::Simple(SimpleOp::Copy { dst, src }) => Operation::copy(*dst, *src, width(*dst)),
            OpKind::Simple(SimpleOp::Not { dst, src }) => {
                Operation::Pass { dst: *dst, src: *src, negated: true }
            }
            OpKind::Simple(SimpleOp::Offset { dst, src, addend }) => {
                let wide = width(*dst) == Width::W64;
                Operation::Offset { wide, dst: *dst, src: *src, addend: *addend }
            }
            &OpKind::Simple(SimpleOp::Resize { dst, src, bits, signed }) => {
                Operation::resize(bits, signed, dst, src, &width)?
            }
            &OpKind::Simple(SimpleOp::Pack { dst, ref src, bits: bits @ (16 | 32) }) => {
                let &[low, high] = &src[..] else { return None };
                let fits = [low, high].iter().all(|&slot| width(slot).bits() == bits);
                (fits && width(dst).bits() == 2 * bits).then_some(Operation::Pack {
                    bits,
                    dst,
                    src: [low, high],
                })?
            }
            &OpKind::Simple(SimpleOp::Unpack { ref dst, src, bits: bits @ (16 | 32) }) => {
                let &[low, high] = &dst[..] else { return None };
                let fits = dst.iter().flatten().all(|&slot| width(slot).bits() == bits);
                (fits && width(src).bits() == 2 * bits).then_some(Operation::Unpack {
                    bits,
                    dst: [low, high],
                    src,
                })?
            }
            OpKind::Load(load) if !load.semantics.is_strong() => {
                let access = access(&load.address, load.bytes, load.dst.len(), index, &width)?;
                let fits = |slot: &Slot| width(*slot).bytes() >= load.bytes as usize;
                load.dst.iter().flatten().all(fits).then_some(())?;
                Operation::Load { access, signed: load.signed, dst: load.dst.to_vec(), guard: None }
            }
            OpKind::Store(store) if !store.semantics.is_strong() => {
                let access = access(&store.address, store.bytes, store.src.len(), index, &width)?;
                let fits = |slot: &Slot| width(*slot).bytes() >= store.bytes as usize;
                store.src.iter().all(fits).then_some(())?;
                Operation::Store { access, src: store.src.to_vec(), guard: None }
            }
            OpKind::Memory(op) if let MemoryOp::Atomic(atomic) = &**op => {
                Operation::atomic(atomic, access(&atomic.address, atomic.ty.bytes(), 1, index, &width)?)?
            }
            _ => return None,
        };
        Some(made)
    }

    /// An atomic operation on elements of 4 or 8 bytes.
    fn atomic(atomic: &Atomic, access: Access) -> Option<Operation> {
        let own = atomic.address.space == Space::Shared;
        let op = match (atomic.op, atomic.ty) {
            (AtomicOp::Add, Type::F32) if own => Change::AddFloat,
            (AtomicOp::Add, Type::F32) => {
                let is_global = atomic.address.space == Space::Global && atomic.addition == Addition::Global;
                is_global.then_some(Change::AddFlushed)?
            }
            (_, ty) if ty.is_float() || ty.lanes() > 1 => return None,
            (AtomicOp::Add, _) => Change::Add,
            (AtomicOp::And, _) => Change::And,
            (AtomicOp::Or, _) => Change::Or,
            (AtomicOp::Xor, _) => Change::Xor,
            _ => return None,
        };
        let (dst, src) = (atomic.dst, atomic.a);
        let suits = matches!(access.bytes, 4 | 8)
            && atomic.vector == 0
            && atomic.address.space != Space::Local
            && (dst.is_none() || matches!(op, Change::Add | Change::AddFloat | Change::AddFlushed));
        suits.then_some(Operation::Atomic { op, access, locked: !own, dst, src, guard: None })
    }

    /// The low `bits` bits of a slot, extended or cut off to the width of another.
    fn resize(
        bits: u32,
        signed: bool,
        dst: Slot,
        src: Slot,
        width: impl Fn(Slot) -> Width,
    ) -> Option<Operation> {
        let (from, to) = (width(src), width(dst));
        let bits = bits.min(to.bits());
        Some(match (from, to, bits) {
            (Width::Pred, ..) | (_, Width::Pred, _) => return None,
            (Width::W32, Width::W64, 32) => Operation::Widen { signed, dst, src },
            (Width::W64, Width::W32, 32) => Operation::Narrow { dst, src },
            _ if from == to && bits == to.bits() => Operation::copy(dst, src, to),
            (_, _, 8 | 16 | 32) if bits <= from.bits() => Operation::Resize { bits, signed, dst, src },
            _ => return None,
        })
    }

    /// A funnel shift by a literal, or a bit field at a literal place.
    pub fn of_shifts(kind: &OpKind, literal: impl Fn(Slot) -> Option<u64>) -> Option<Operation> {
        let OpKind::Pure { function, picks, dst: [Some(dst), None], src, .. } = kind else { return None };
        let (&[low, high, distance], dst) = (&src[..], *dst) else { return None };
        let distance = literal(distance)? as u32;
        if *function == "integer::bfe" && picks.ty(0).bits() == 32 {
            // Only the low 8 bits of the first bit's number and of the length count.
            let (first, bits) = (literal(high)? as u32 & 0xff, distance & 0xff);
            let (down, signed) = (32u32.checked_sub(bits).filter(|_| bits > 0)?, picks.ty(0).is_signed());
            return Some(Operation::Field { up: down.checked_sub(first)?, down, signed, dst, src: low });
        }
        if *function != "logic::shf" {
            return None;
        }
        let distance = if picks.has(Mod::Wrap) { distance % 32 } else { distance.min(32) };
        let up = if picks.has(Mod::L) { distance } else { 32 - distance };
        Some(match up {
            0 => Operation::copy(dst, high, Width::W32),
            32 => Operation::copy(dst, low, Width::W32),
            _ => Operation::Funnel { up, dst, high, low },
        })
    }

    /// What a warp computes, all of whose lanes must take part: a shuffle whose distance and segments are literals, or a product of
    /// matrices. `calls`: as for [`Operation::of`].
    pub fn of_warp(op: &ir::Op, literal: impl Fn(Slot) -> Option<u64>, calls: usize) -> Option<Operation> {
        let OpKind::Warp { op: of_warp, members } = &op.kind else { return None };
        if op.guard.is_some() || members.is_some_and(|members| literal(members) != Some(u32::MAX.into())) {
            return None;
        }
        match *of_warp {
            // Its operands have 32 bits: the checker accepts no others.
            WarpOp::Shuffle { mode, dst, pred, a: src, b, c } => {
                let pattern = Box::new(ShufflePattern::new(mode, literal(b)? as u32, literal(c)? as u32));
                Some(Operation::Shuffle { dst, pred, src, pattern })
            }
            WarpOp::Matrix(ref product) => Operation::product(product, calls),
            _ => None,
        }
    }

    /// A product of dense matrices without scales. Sums of f64 are not native: their NaNs are not all alike.
    fn product(op: &MatrixOp, index: usize) -> Option<Operation> {
        let product = Product::of(&op.picks);
        let suits = op.kind == MatrixKind::Multiply
            && matches!(product.d, Type::F16 | Type::F32 | Type::S32)
            && !is_sparse(&op.picks)
            && BlockScale::of(&op.picks).is_none();
        let dst = op.dst.iter().copied().collect::<Option<Vec<Slot>>>()?;
        if !suits || dst.len() + op.src.len() > MOST_OPERANDS {
            return None;
        }
        let of_singles = [product.c, product.d] == [Type::F32; 2] && product.a == product.b;
        let tiles = op.picks.has(Mod::M16n8k8) || op.picks.has(Mod::M16n8k16);
        let format = if of_singles && tiles { half_format(product.a) } else { None };
        Some(Operation::Product { index, format, dst, src: op.src.to_vec() })
    }

    fn copy(dst: Slot, src: Slot, width: Width) -> Operation {
        match width {
            Width::Pred => Operation::Pass { dst, src, negated: false },
            width => Operation::Bits { op: Bits::Copy, wide: width == Width::W64, dst, src: [src; 3] },
        }
    }
}

/// The most sources of an operation that a vector handler computes.
const MOST_SOURCES: usize = 4;

/// Operations that take so long that a call hardly matters.
const HEAVY: [&str; 14] = [
    "float::cos_approx",
    "float::cos_cycles",
    "float::div_approx",
    "float::ex2_approx",
    "float::lg2_approx",
    "float::rcp_approx",
    "float::rsqrt_approx",
    "float::sin_approx",
    "float::sin_cycles",
    "float::tanh_approx",
    "half::fma",
    "half_compare::set",
    "integer::div",
    "integer::rem",
];

/// Operations whose calls are no loss in straight-line code, where the interpreter would take all lanes through them.
pub(crate) fn is_heavy(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Pure { function, .. } if HEAVY.contains(function))
}

/// A call of the vector handler of a pure operation.
fn call(
    form: &Form,
    dst: [Option<Slot>; 2],
    src: &[Slot],
    width: impl Fn(Slot) -> Width,
    index: usize,
) -> Option<Operation> {
    let [Some(dst), None] = dst else { return None };
    let fits = |slot: &Slot| width(*slot) != Width::Pred;
    let suits = !form.carry.reads && !form.carry.writes;
    (suits && src.len() <= MOST_SOURCES && src.iter().chain([&dst]).all(fits)).then(|| Operation::Call {
        index,
        dst,
        src: src.to_vec(),
    })
}

fn access(
    address: &ir::Address,
    bytes: u32,
    count: usize,
    index: usize,
    width: impl Fn(Slot) -> Width,
) -> Option<Access> {
    let Base::Slot(base) = address.base else { return None };
    let wide = width(base) == Width::W64;
    let suits = match address.space {
        Space::Global | Space::Generic | Space::Const => wide,
        Space::Shared => true,
        // A row of it has one word of each lane.
        Space::Local => bytes == 4 && count == 1,
        _ => false,
    };
    let offset = i32::try_from(address.offset).ok()?;
    (suits && matches!(bytes, 1 | 2 | 4 | 8)).then_some(Access {
        index,
        base,
        offset: offset.into(),
        bytes,
        count: count as u32,
        align: bytes * count as u32,
        within: None,
        checked: false,
    })
}

/// `function`: of `sem`, as the row of the table names it.
fn pure(
    form: &Form,
    picks: &Picks,
    function: &str,
    dst: [Option<Slot>; 2],
    src: &[Slot],
    width: impl Fn(Slot) -> Width,
) -> Option<Operation> {
    // What a modifier changes is not native yet, unless its operation below looks at it.
    let known = |&m: &Mod| {
        m.rounding().is_some()
            || m.cmp().is_some()
            || m.bool_op().is_some()
            || matches!(m, Mod::Lo | Mod::Hi | Mod::Wide)
            || m == Mod::Approx && function == "float::sqrt_approx"
            || m == Mod::Ftz
                && picks.types() == [Type::F32]
                && !matches!(function, "float::min" | "float::max")
    };
    if form.carry.reads || form.carry.writes || !picks.mods().iter().all(known) {
        return None;
    }
    let ty = picks.ty(0);
    let at = |i: usize| src.get(i).or(src.last()).copied();
    let all = [at(0)?, at(1)?, at(2)?];
    let is_of_type = |slot: Slot| width(slot).bits() == ty.bits();
    let flushes = picks.has(Mod::Ftz);
    if matches!(function, "compare::setp" | "half_compare::setp") && ty.lanes() == 1 {
        let ordering = if flushes { Ordering::Flushed } else { ordering(ty)? };
        src[..2].iter().all(|&slot| is_of_type(slot)).then_some(())?;
        let wide = ty.bits() == 64;
        let with = match (picks.bool_op(), src.len()) {
            (None, 2) => None,
            (Some(op), 3) => Some((op, src[2])),
            _ => return None,
        };
        return Some(Operation::Compare {
            op: picks.cmp()?,
            wide,
            ordering,
            dst,
            src: [src[0], src[1]],
            with,
        });
    }
    if let ("half_compare::setp", &[a, b]) = (function, src) {
        let format = match ty {
            Type::F16x2 => Half::F16,
            Type::Bf16x2 => Half::Bf16,
            _ => return None,
        };
        let op = picks.cmp()?;
        return picks.bool_op().is_none().then_some(Operation::CompareHalves {
            op,
            format,
            dst,
            src: [a, b],
        });
    }
    let [Some(dst), None] = dst else { return None };
    if ty == Type::Pred {
        let op = match function {
            "logic::and" => BoolOp::And,
            "logic::or" => BoolOp::Or,
            "logic::xor" => BoolOp::Xor,
            "logic::not" => return Some(Operation::Pass { dst, src: src[0], negated: true }),
            _ => return None,
        };
        return Some(Operation::Logic { op, dst, src: [all[0], all[1]] });
    }
    if let Some(operation) = half(function, picks, dst, src, &width) {
        return Some(operation);
    }
    if function == "convert::int_to_int" && !picks.has(Mod::Sat) {
        let (from, bits) = (picks.ty(1), picks.ty(1).bits());
        let signed = from.is_signed() && bits < ty.bits();
        return is_of_type(dst).then(|| Operation::resize(bits, signed, dst, src[0], &width))?;
    }
    // The product of two values that are not extended by their signs has no other bits.
    if let ("integer::mul_wide" | "integer::mad_wide", Type::U16) = (function, ty) {
        let op = if function == "integer::mul_wide" { Bits::Mul } else { Bits::Mad };
        return Some(Operation::Bits { op, wide: false, dst, src: all });
    }
    let fits = ty.bits() != 16 || is_of_type(dst) && is_of_type(src[0]);
    if !matches!(ty.bits(), 16 | 32 | 64) || ty.lanes() != 1 || !fits {
        return None;
    }
    let wide = ty.bits() == 64;
    if function == "compare::selp" {
        return Some(Operation::Select { wide, dst, src: [all[0], all[1]], pred: all[2] });
    }
    if let Some(conversion) = conversion(function, ty, picks) {
        let rounding = picks.rounding().unwrap_or(Rounding::NearestEven);
        return Some(Operation::Convert { conversion, rounding, dst, src: src[0] });
    }
    if matches!(ty, Type::F32 | Type::F64) {
        let op = match function {
            "float::add" => Float::Add,
            "float::sub" => Float::Sub,
            "float::mul" => Float::Mul,
            "float::fma" => Float::Fma,
            "float::div" => Float::Div,
            "float::rcp" => Float::Rcp,
            // Both round: the approximation is the nearest number here.
            "float::sqrt" => Float::Sqrt,
            "float::sqrt_approx" if !wide => Float::Sqrt,
            "float::min" => Float::Min,
            "float::max" => Float::Max,
            "convert::float_to_float" if picks.types() == [Type::F32; 2] && picks.rounds_to_integer() => {
                return Some(Operation::Integral { rounding: picks.rounding()?, dst, src: src[0] });
            }
            _ => {
                let op = match function {
                    "float::abs" if flushes => Bits::AbsFlushed,
                    "float::neg" if flushes => Bits::NegFlushed,
                    "float::abs" => Bits::AbsFloat,
                    "float::neg" => Bits::NegFloat,
                    "convert::int_to_float" if wide || !rounds_to_nearest(picks) => return None,
                    "convert::int_to_float" if picks.ty(1) == Type::S32 => Bits::FromSigned,
                    "convert::int_to_float" if picks.ty(1) == Type::U32 => Bits::FromUnsigned,
                    _ => return None,
                };
                return Some(Operation::Bits { op, wide, dst, src: all });
            }
        };
        let rounding = picks.rounding().unwrap_or(Rounding::NearestEven);
        // `add.f32.f16` has a second type.
        let plain = picks.types().len() == 1 && rounding != Rounding::NearestAway;
        return plain.then_some(Operation::Float { op, wide, rounding, flushes, dst, src: all });
    }
    if function == "convert::float_to_int" && picks.ty(1) == Type::F32 && ty.bits() == 32 {
        let rounding = picks.rounding()?;
        return Some(Operation::ToInteger { signed: ty.is_signed(), rounding, dst, src: src[0] });
    }
    if picks.types().len() != 1 || ty.is_float() {
        return None;
    }
    let signed = ty.is_signed();
    let low = picks.has(Mod::Lo);
    if matches!(function, "integer::mul_wide" | "integer::mad_wide") {
        let addend = (function == "integer::mad_wide").then_some(all[2]);
        let suits = ty.bits() == 32;
        return suits.then_some(Operation::MulWide { signed, dst, src: [all[0], all[1]], addend });
    }
    let op = match function {
        "integer::add" => Bits::Add,
        "integer::sub" => Bits::Sub,
        "integer::mul" if low => Bits::Mul,
        "integer::mad" if low => Bits::Mad,
        "integer::mul" if picks.has(Mod::Hi) && ty.bits() != 32 => return None,
        "integer::mul" if picks.has(Mod::Hi) && signed => Bits::MulHighSigned,
        "integer::mul" if picks.has(Mod::Hi) => Bits::MulHighUnsigned,
        "integer::min" if signed => Bits::MinSigned,
        "integer::min" => Bits::MinUnsigned,
        "integer::max" if signed => Bits::MaxSigned,
        "integer::max" => Bits::MaxUnsigned,
        "integer::neg" => Bits::Neg,
        "integer::abs" => Bits::AbsSigned,
        "logic::and" => Bits::And,
        "logic::or" => Bits::Or,
        "logic::xor" => Bits::Xor,
        "logic::not" => Bits::Not,
        "logic::shl" => Bits::Shl,
        "logic::shr" if signed => Bits::ShrSigned,
        "logic::shr" => Bits::ShrUnsigned,
        _ => return None,
    };
    Some(Operation::Bits { op, wide, dst, src: all })
}

/// Arithmetic on numbers of 16 bits, and their conversions.
fn half(
    function: &str,
    picks: &Picks,
    dst: Slot,
    src: &[Slot],
    width: impl Fn(Slot) -> Width,
) -> Option<Operation> {
    let (to, from) = (picks.ty(0), picks.types().get(1).copied());
    let mixed = match function {
        "mixed::add" => Some(Float::Add),
        "mixed::sub" => Some(Float::Sub),
        "mixed::fma" => Some(Float::Fma),
        _ => None,
    };
    if let (Some(op), Type::F32, Some(from), Some((&last, halves))) = (mixed, to, from, src.split_last()) {
        let rounding = picks.rounding().unwrap_or(Rounding::NearestEven);
        let format = half_format(from).filter(|_| rounding != Rounding::NearestAway)?;
        let fits = halves.iter().all(|&slot| width(slot) == Width::W16) && width(last) == Width::W32;
        let src = [src[0], src[1], last];
        return fits.then_some(Operation::Mixed { op, format, rounding, dst, src });
    }
    match (function, from) {
        ("convert::float_to_float", Some(from)) if to == Type::F32 => {
            let format =
                half_format(from).filter(|_| width(src[0]) == Width::W16 && width(dst) == Width::W32)?;
            return Some(Operation::FromHalf { format, dst, src: src[0] });
        }
        ("convert::float_to_float" | "convert::narrow" | "convert::pack", Some(Type::F32)) => {
            let (format, rounding) = (half_format(to)?, picks.rounding()?);
            let rounds = match format {
                Half::F16 => rounding != Rounding::NearestAway,
                Half::Bf16 => matches!(rounding, Rounding::NearestEven | Rounding::TowardZero),
            };
            let low = (to.lanes() == 2).then(|| src.get(1).copied());
            let fits = rounds && width(dst).bits() == to.bits() && src.len() == to.lanes() as usize;
            let low = low.flatten();
            return fits.then_some(Operation::ToHalf { format, rounding, dst, src: src[0], low });
        }
        (_, None) => {}
        _ => return None,
    }
    let format = half_format(to)?;
    let op = match function {
        "half::add" => Float::Add,
        "half::sub" => Float::Sub,
        "half::mul" => Float::Mul,
        "half::min" => Float::Min,
        "half::max" => Float::Max,
        _ => return None,
    };
    let fits = picks.rounding().is_none_or(|rounding| rounding == Rounding::NearestEven)
        && src.len() == 2
        && src.iter().chain([&dst]).all(|&slot| width(slot).bits() == to.bits());
    let packed = to.lanes() == 2;
    fits.then_some(Operation::Half { op, format, packed, dst, src: [src[0], src[1]] })
}

fn half_format(ty: Type) -> Option<Half> {
    match ty {
        Type::F16 | Type::F16x2 => Some(Half::F16),
        Type::Bf16 | Type::Bf16x2 => Some(Half::Bf16),
        _ => None,
    }
}

/// `to`: the result's type.
fn conversion(function: &str, to: Type, picks: &Picks) -> Option<Conversion> {
    let from = *picks.types().get(1)?;
    Some(match (function, from, to) {
        ("convert::int_to_float", Type::S32, Type::F64) => Conversion::FromSigned,
        ("convert::int_to_float", Type::U32, Type::F64) => Conversion::FromUnsigned,
        ("convert::int_to_float", Type::S64, Type::F64) => Conversion::FromSigned64,
        ("convert::int_to_float", Type::U64, Type::F64) => Conversion::FromUnsigned64,
        ("convert::float_to_float", Type::F32, Type::F64) => Conversion::FromSingle,
        ("convert::float_to_float", Type::F64, Type::F32) => Conversion::ToSingle,
        ("convert::float_to_int", Type::F64, Type::S32) => Conversion::ToSigned,
        _ => return None,
    })
}

fn rounds_to_nearest(picks: &Picks) -> bool {
    picks.rounding() == Some(Rounding::NearestEven)
}

fn ordering(ty: Type) -> Option<Ordering> {
    match ty {
        _ if !matches!(ty.bits(), 16 | 32 | 64) || ty.lanes() != 1 => None,
        Type::F32 | Type::F64 => Some(Ordering::Float),
        Type::F16 => Some(Ordering::Half(Half::F16)),
        Type::Bf16 => Some(Ordering::Half(Half::Bf16)),
        Type::S16 => Some(Ordering::Short),
        _ if ty.is_float() => None,
        _ if ty.is_signed() => Some(Ordering::Signed),
        _ => Some(Ordering::Unsigned),
    }
}
