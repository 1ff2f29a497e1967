//! Logic, shifts and moves: and, or, xor, not, cnot, shl, shr, shf, lop3, prmt, mov, also of predicates.

use super::drive::{apply3, load, load_mask, map1, map2, map3, store, store_mask};
use super::integer::{integer, unsigned};
use super::path::{BLOCK, Kernel, Parametric, Path, version, version_with};
use super::{HostPath, LaneArgs, LaneFn, only};
use isa::{BoolOp, Mod, Opcode, Picks, Type};
use std::marker::PhantomData;

/// A logical operation on words of any kind.
trait Logic: 'static {
    fn apply(a: u16, b: u16) -> u16;
}

macro_rules! logic {
    ($($(#[$doc:meta])* $name:ident($a:ident, $b:ident) $body:expr;)*) => {
        $($(#[$doc])* struct $name;
        impl Logic for $name {
            #[inline(always)]
            fn apply($a: u16, $b: u16) -> u16 {
                $body
            }
        })*
    };
}
logic! {
    And(a, b) a & b;
    Or(a, b) a | b;
    Xor(a, b) a ^ b;
    Not(a, _b) !a;
    Copy1(a, _b) a;
}

/// `L` on predicates; `SOURCES` is 1 or 2.
struct Predicates<L, const SOURCES: usize>(PhantomData<L>);

impl<L: Logic, const SOURCES: usize> Kernel for Predicates<L, SOURCES> {
    #[inline(always)]
    unsafe fn run<P: Path>(_: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination are predicates of `lanes` bits.
            unsafe {
                let a = load_mask(args, 0, i);
                let b = if SOURCES == 2 { load_mask(args, 1, i) } else { 0 };
                store_mask(args, 0, i, L::apply(a, b));
            }
        }
    }
}

fn predicates(opcode: Opcode, sources: usize, path: HostPath) -> Option<LaneFn> {
    Some(match (opcode, sources) {
        (Opcode::And, 2) => version::<Predicates<And, 2>>(path),
        (Opcode::Or, 2) => version::<Predicates<Or, 2>>(path),
        (Opcode::Xor, 2) => version::<Predicates<Xor, 2>>(path),
        (Opcode::Not, 1) => version::<Predicates<Not, 1>>(path),
        (Opcode::Mov, 1) => version::<Predicates<Copy1, 1>>(path),
        _ => return None,
    })
}

/// The truth table of `lop3`, evaluated for all bits of the operands at once.
#[inline(always)]
fn lop3_lane(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let row = |i: u32| 0u32.wrapping_sub(table >> i & 1);
    let choose = |s: u32, yes: u32, no: u32| no ^ s & (yes ^ no);
    let pair = |i: u32| choose(c, row(i + 1), row(i));
    choose(a, choose(b, pair(6), pair(4)), choose(b, pair(2), pair(0)))
}

/// `lop3` without a predicate.
struct Lop3;

impl Kernel for Lop3 {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` words.
            unsafe {
                let (a, b) = (load(args, 0, i), load(args, 1, i));
                let (c, table) = (load(args, 2, i), load(args, 3, i));
                let mut out = [0; BLOCK];
                for k in 0..BLOCK {
                    out[k] = lop3_lane(a[k], b[k], c[k], table[k]);
                }
                store(path, args, 0, i, out);
            }
        }
    }
}

/// `lop3` with a predicate: whether any bit of the result is set, combined with q.
struct Lop3With;

impl Parametric for Lop3With {
    type With = BoolOp;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, &op: &BoolOp) {
        for i in 0..args.lanes / BLOCK {
            // SAFETY: four sources of `lanes` words and a predicate; the destinations, either of which may be null.
            unsafe {
                let (a, b) = (load(args, 0, i), load(args, 1, i));
                let (c, table) = (load(args, 2, i), load(args, 3, i));
                let (mut out, mut any) = ([0; BLOCK], [0u32; BLOCK]);
                for k in 0..BLOCK {
                    out[k] = lop3_lane(a[k], b[k], c[k], table[k]);
                    any[k] = u32::from(out[k] != 0).wrapping_neg();
                }
                let (any, q) = (path.top_bits32(any), load_mask(args, 4, i));
                if !args.dst[0].is_null() {
                    store(path, args, 0, i, out);
                }
                let p = match op {
                    BoolOp::And => any & q,
                    BoolOp::Or => any | q,
                    BoolOp::Xor => any ^ q,
                };
                store_mask(args, 1, i, p);
            }
        }
    }
}

/// The default mode of `prmt`.
#[inline(always)]
fn prmt(a: u32, b: u32, control: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    let byte = |i: u32| {
        let nibble = control >> (4 * i) & 0xf;
        let byte = (bytes >> (8 * (nibble & 7))) as u8;
        let sign = ((byte as i8) >> 7) as u8;
        u32::from(if nibble & 8 == 0 { byte } else { sign }) << (8 * i)
    };
    byte(0) | byte(1) | byte(2) | byte(3)
}

/// A mode of `prmt`: the low two bits of c select one of four controls.
struct PrmtMode;

impl Parametric for PrmtMode {
    type With = [u32; 4];

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, controls: &[u32; 4]) {
        let [first, second, third, fourth] = *controls;
        let permute = |a: u32, b: u32, c: u32| {
            let (low, high) = if c & 1 == 0 { (first, third) } else { (second, fourth) };
            prmt(a, b, if c & 2 == 0 { low } else { high })
        };
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` words.
            unsafe {
                store(path, args, 0, i, apply3(permute, load(args, 0, i), load(args, 1, i), load(args, 2, i)))
            }
        }
    }
}

/// The controls of a mode, indexed by the low two bits of c (PTX ISA, "prmt").
fn controls(picks: &Picks) -> Option<[u32; 4]> {
    let &[mode] = picks.mods() else { return None };
    Some(match mode {
        Mod::F4e => [0x3210, 0x4321, 0x5432, 0x6543],
        Mod::B4e => [0x5670, 0x6701, 0x7012, 0x0123],
        Mod::Rc8 => [0x0000, 0x1111, 0x2222, 0x3333],
        Mod::Ecl => [0x3210, 0x3211, 0x3222, 0x3333],
        Mod::Ecr => [0x0000, 0x1110, 0x2210, 0x3210],
        Mod::Rc16 => [0x1010, 0x3232, 0x1010, 0x3232],
        _ => return None,
    })
}

#[inline(always)]
fn funnel<const LEFT: bool, const CLAMP: bool>(a: u32, b: u32, c: u32) -> u32 {
    let pair = u64::from(b) << 32 | u64::from(a);
    let n = if CLAMP { c.min(32) } else { c & 31 };
    if LEFT { (pair << n >> 32) as u32 } else { (pair >> n) as u32 }
}

fn shf(picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let has = |m: Mod| picks.has(m);
    if !only(picks, &[Mod::L, Mod::R, Mod::Clamp, Mod::Wrap]) || picks.types() != [Type::B32] {
        return None;
    }
    Some(match (has(Mod::L), has(Mod::Clamp)) {
        (false, false) => map3(path, |a: u32, b: u32, c: u32| funnel::<false, false>(a, b, c)),
        (false, true) => map3(path, |a: u32, b: u32, c: u32| funnel::<false, true>(a, b, c)),
        (true, false) => map3(path, |a: u32, b: u32, c: u32| funnel::<true, false>(a, b, c)),
        (true, true) => map3(path, |a: u32, b: u32, c: u32| funnel::<true, true>(a, b, c)),
    })
}

/// The handler of a form on bits.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    match (opcode, sources) {
        (Opcode::Shf, 3) => return shf(picks, path),
        (Opcode::Lop3, 5) => return Some(version_with::<Lop3With>(path, picks.bool_op()?)),
        (Opcode::Prmt, 3) if !picks.mods().is_empty() => {
            return Some(version_with::<PrmtMode>(path, controls(picks)?));
        }
        _ => {}
    }
    let &[ty] = picks.types() else { return None };
    if !only(picks, &[]) {
        return None;
    }
    if ty == Type::Pred {
        return predicates(opcode, sources, path);
    }
    Some(match (opcode, sources) {
        (Opcode::And, 2) => unsigned!(ty, T => map2(path, |a: T, b: T| a & b)),
        (Opcode::Or, 2) => unsigned!(ty, T => map2(path, |a: T, b: T| a | b)),
        (Opcode::Xor, 2) => unsigned!(ty, T => map2(path, |a: T, b: T| a ^ b)),
        (Opcode::Not, 1) => unsigned!(ty, T => map1(path, |a: T| !a)),
        (Opcode::Cnot, 1) => unsigned!(ty, T => map1(path, |a: T| T::from(a == 0))),
        (Opcode::Shl, 2) => unsigned!(ty, T => map2(path, |a: T, b: u32| {
            if b >= T::BITS { 0 } else { a << (b & (T::BITS - 1)) }
        })),
        // A signed number shifted by its width or more becomes copies of its sign bit.
        (Opcode::Shr, 2) if ty.is_signed() => {
            integer!(ty, T => map2(path, |a: T, b: u32| a >> b.min(T::BITS - 1)))
        }
        (Opcode::Shr, 2) => unsigned!(ty, T => map2(path, |a: T, b: u32| {
            if b >= T::BITS { 0 } else { a >> (b & (T::BITS - 1)) }
        })),
        (Opcode::Lop3, 4) if ty == Type::B32 => version::<Lop3>(path),
        (Opcode::Prmt, 3) if ty == Type::B32 => map3(path, |a: u32, b: u32, c: u32| prmt(a, b, c)),
        (Opcode::Mov, 1) => match ty.bits() {
            16 => map1(path, |a: u16| a),
            32 => map1(path, |a: u32| a),
            64 => map1(path, |a: u64| a),
            _ => return None,
        },
        _ => return None,
    })
}
