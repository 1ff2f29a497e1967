//! Has the compiler make the large functions here, once for each type of numbers: crates that use them then need not, in builds that share
//! generics among crates, as those of tests do.

use crate::general::General;
use crate::number::{C32, C64, Scalar};
use crate::operand::Dense;
use crate::reflections::Reflections;
use crate::singular::{Bidiagonal, Singular, Vectors};
use crate::spectrum::{Spectrum, Tridiagonal};
use crate::triangle::Triangle;

/// The functions.
#[allow(dead_code, clippy::type_complexity, reason = "they are made, not called")]
struct Instances<T: Scalar>(
    fn(&mut Dense<T>, usize) -> usize,
    fn(&mut Dense<T>, usize, bool) -> (Vec<usize>, usize),
    fn(&mut Dense<T>, usize) -> Vec<T>,
    fn(&Reflections<T>, bool, &mut Dense<T>, usize, usize),
    fn(&Reflections<T>, usize) -> Dense<T>,
    fn(&mut Dense<T>, usize) -> Tridiagonal<T>,
    fn(&mut Dense<T>, usize, bool) -> Spectrum<T>,
    fn(&mut Dense<T>, usize) -> Bidiagonal<T>,
    fn(Dense<T>, usize, Vectors, Vectors) -> Singular<T>,
    fn(&Triangle<T>, &mut Dense<T>, usize),
    fn(&Triangle<T>, &Dense<T>, usize) -> Dense<T>,
    fn(&Dense<T>, usize) -> Dense<T>,
    fn(&Dense<T>, usize, bool) -> General,
);

macro_rules! instances {
    ($($name:ident: $ty:ty)*) => { $(
        #[used]
        static $name: Instances<$ty> = Instances(
            crate::cholesky::<$ty>,
            crate::eliminate::<$ty>,
            crate::orthogonalize::<$ty>,
            Reflections::<$ty>::apply,
            Reflections::<$ty>::form,
            crate::tridiagonalize::<$ty>,
            crate::eigen::<$ty>,
            crate::bidiagonalize::<$ty>,
            crate::singular_values::<$ty>,
            Triangle::<$ty>::solve,
            Triangle::<$ty>::times,
            crate::adjoint::<$ty>,
            crate::general::<$ty>,
        );
    )* };
}
instances!(S: f32 D: f64 C: C32 Z: C64);
