//! Extended-precision arithmetic: add.cc, addc, sub.cc, subc, mad.cc, madc, which read and write the carry flag.

use super::drive::{load, load_mask, store, store_mask};
use super::integer::MulHigh;
use super::path::{BLOCK, Block, Parametric, Path, version_with};
use super::select::Select;
use super::{HostPath, LaneArgs, LaneFn};
use isa::{Form, Mod, Opcode, Picks, Type};
use std::marker::PhantomData;

/// Words that can carry.
trait Word: Select {
    const ONE: Self;
    fn add(self, other: Self) -> Self;
    fn not(self) -> Self;
    fn mul_low(self, other: Self) -> Self;
    fn mul_high(self, other: Self) -> Self;
    fn mul_high_signed(self, other: Self) -> Self;
    /// All ones where a < b.
    fn below(a: Self, b: Self) -> Self;
    fn top_bits<P: Path>(path: P, x: Block<Self>) -> u16;
}

macro_rules! word {
    ($($T:ident $S:ident $top_bits:ident)*) => {
        $(impl Word for $T {
            const ONE: $T = 1;
            #[inline(always)]
            fn add(self, other: $T) -> $T {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn not(self) -> $T {
                !self
            }
            #[inline(always)]
            fn mul_low(self, other: $T) -> $T {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn mul_high(self, other: $T) -> $T {
                MulHigh::mul_high(self, other)
            }
            #[inline(always)]
            fn mul_high_signed(self, other: $T) -> $T {
                MulHigh::mul_high(self as $S, other as $S) as $T
            }
            #[inline(always)]
            fn below(a: $T, b: $T) -> $T {
                $T::from(a < b).wrapping_neg()
            }
            #[inline(always)]
            fn top_bits<P: Path>(path: P, x: Block<$T>) -> u16 {
                path.$top_bits(x)
            }
        })*
    };
}
word!(u32 i32 top_bits32 u64 i64 top_bits64);

/// The operations, as const generics take them: a + b, a + ~b, or a half of a * b plus c.
const ADD: u8 = 0;
const SUB: u8 = 1;
const LOW: u8 = 2;
const HIGH: u8 = 3;
const HIGH_SIGNED: u8 = 4;

struct Carry<T, const OPERATION: u8>(PhantomData<T>);

impl<T: Word, const OPERATION: u8> Parametric for Carry<T, OPERATION> {
    /// Whether the handler reads the carry, which follows the other sources. Otherwise the carry-in is 1 for
    /// subtractions and 0 for all other operations.
    type With = bool;

    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs, &reads: &bool) {
        let last = if OPERATION < LOW { 1 } else { 2 };
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destinations have `lanes` elements.
            unsafe {
                let carry = match (reads, OPERATION) {
                    (true, _) => load_mask(args, last + 1, i),
                    (false, SUB) => !0,
                    (false, _) => 0,
                };
                let carry = T::select(path, carry, [T::ONE; BLOCK], [T::default(); BLOCK]);
                let (a, b): (Block<T>, Block<T>) = (load(args, 0, i), load(args, 1, i));
                let c: Block<T> = load(args, last, i);
                let (mut out, mut carries) = ([T::default(); BLOCK], [T::default(); BLOCK]);
                for k in 0..BLOCK {
                    let (x, y) = match OPERATION {
                        ADD => (a[k], b[k]),
                        SUB => (a[k], b[k].not()),
                        LOW => (a[k].mul_low(b[k]), c[k]),
                        HIGH => (a[k].mul_high(b[k]), c[k]),
                        _ => (a[k].mul_high_signed(b[k]), c[k]),
                    };
                    // At most one of the two additions carries.
                    let sum = x.add(y);
                    let result = sum.add(carry[k]);
                    let (first, second) = (T::below(sum, x), T::below(result, sum));
                    out[k] = result;
                    carries[k] = first.add(second);
                }
                let carry = T::top_bits(path, carries);
                if !args.dst[0].is_null() {
                    store(path, args, 0, i, out);
                }
                store_mask(args, 1, i, carry);
            }
        }
    }
}

/// The handler of a form that reads or writes CC.CF.
pub(super) fn find(form: &'static Form, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    fn of<T: Word>(operation: u8, reads: bool, path: HostPath) -> LaneFn {
        match operation {
            ADD => version_with::<Carry<T, ADD>>(path, reads),
            SUB => version_with::<Carry<T, SUB>>(path, reads),
            LOW => version_with::<Carry<T, LOW>>(path, reads),
            HIGH => version_with::<Carry<T, HIGH>>(path, reads),
            _ => version_with::<Carry<T, HIGH_SIGNED>>(path, reads),
        }
    }
    let ty = picks.ty(0);
    let operation = match form.opcode {
        Opcode::Add | Opcode::Addc => ADD,
        Opcode::Sub | Opcode::Subc => SUB,
        Opcode::Mad | Opcode::Madc => match (picks.has(Mod::Hi), ty.is_signed()) {
            (false, _) => LOW,
            (true, false) => HIGH,
            (true, true) => HIGH_SIGNED,
        },
        _ => return None,
    };
    match ty {
        Type::U32 | Type::S32 => Some(of::<u32>(operation, form.carry.reads, path)),
        Type::U64 | Type::S64 => Some(of::<u64>(operation, form.carry.reads, path)),
        _ => None,
    }
}
