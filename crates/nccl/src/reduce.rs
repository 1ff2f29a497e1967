//! Reductions, in the order of the ranks: `((x0 + x1) + x2) + ...`, in the element's wide type, rounded once at the end.

use half::{bf16, f16};

use crate::element::{DataType, E4m3, E5m2, Element, Wide};

/// What an operation does with the numbers of all ranks (`ncclRedOp_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the manual's names")]
pub enum Reduction {
    Sum,
    Prod,
    Max,
    Min,
    Avg,
}

impl Reduction {
    /// The reduction with this number.
    pub fn of(number: u32) -> Option<Reduction> {
        [Reduction::Sum, Reduction::Prod, Reduction::Max, Reduction::Min, Reduction::Avg]
            .get(number as usize)
            .copied()
    }
}

/// Calls a generic function for a type.
macro_rules! for_type {
    ($ty:expr, $function:ident($($argument:expr),*)) => {
        match $ty {
            DataType::Int8 => $function::<i8>($($argument),*),
            DataType::Uint8 => $function::<u8>($($argument),*),
            DataType::Int32 => $function::<i32>($($argument),*),
            DataType::Uint32 => $function::<u32>($($argument),*),
            DataType::Int64 => $function::<i64>($($argument),*),
            DataType::Uint64 => $function::<u64>($($argument),*),
            DataType::Float16 => $function::<f16>($($argument),*),
            DataType::Float32 => $function::<f32>($($argument),*),
            DataType::Float64 => $function::<f64>($($argument),*),
            DataType::Bfloat16 => $function::<bf16>($($argument),*),
            DataType::Float8e4m3 => $function::<E4m3>($($argument),*),
            DataType::Float8e5m2 => $function::<E5m2>($($argument),*),
        }
    };
}

/// Reduces the numbers of all ranks, which have equally many, in the order of the ranks.
pub fn reduce(ty: DataType, reduction: Reduction, ranks: &[&[u8]], result: &mut [u8]) {
    for_type!(ty, reduce_as(reduction, ranks, result));
}

fn reduce_as<T: Element>(reduction: Reduction, ranks: &[&[u8]], result: &mut [u8]) {
    let Some((first, others)) = ranks.split_first() else { return };
    for (i, place) in result.chunks_exact_mut(T::BYTES).enumerate() {
        let number = |rank: &[u8]| T::read(&rank[i * T::BYTES..]).widen();
        let all = others.iter().map(|rank| number(rank)).fold(number(first), |all, next| match reduction {
            Reduction::Sum | Reduction::Avg => all.add(next),
            Reduction::Prod => all.multiply(next),
            Reduction::Max => all.larger(next),
            Reduction::Min => all.smaller(next),
        });
        let all = if reduction == Reduction::Avg { all.share(ranks.len()) } else { all };
        T::narrow(all).write(place);
    }
}

/// Multiplies numbers by one number of their type; each product is rounded to the type.
pub fn scale(ty: DataType, scalar: &[u8], numbers: &mut [u8]) {
    for_type!(ty, scale_as(scalar, numbers));
}

fn scale_as<T: Element>(scalar: &[u8], numbers: &mut [u8]) {
    let by = T::read(scalar).widen();
    for number in numbers.chunks_exact_mut(T::BYTES) {
        T::narrow(T::read(number).widen().multiply(by)).write(number);
    }
}
