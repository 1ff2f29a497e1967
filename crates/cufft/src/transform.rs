//! The arithmetic: a batch of transforms of one to three dimensions. Dimensions but the innermost are transposed first, so that the crates'
//! one-dimensional transforms find their numbers one behind the other.

use std::sync::{Arc, OnceLock};

use half::{bf16, f16};
use mathlib::{Memory, Value};
use rayon::prelude::*;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};

use crate::layout::{Kind, Layout, Precision, Side};

/// A batch of transforms, and what is needed to compute it again and again.
pub struct Transform {
    /// What it transforms.
    pub layout: Layout,
    /// Tables of the crates, forward and backward, made when they are first needed: a plan alone costs no memory.
    single: [OnceLock<Engine<f32>>; 2],
    double: [OnceLock<Engine<f64>>; 2],
}

impl Transform {
    /// A batch with this layout.
    pub fn new(layout: Layout) -> Transform {
        Transform { layout, single: Default::default(), double: Default::default() }
    }

    /// Computes it, and tells the driver what it has written. `sides` say where the numbers lie.
    pub fn run(&self, direction: FftDirection, memory: [&Memory; 2], sides: &[Side; 2]) {
        let at = usize::from(direction == FftDirection::Inverse);
        let single = || self.single[at].get_or_init(|| Engine::new(&self.layout, direction));
        match self.layout.precision {
            Precision::Half => single().run::<f16>(memory, sides),
            Precision::Bfloat16 => single().run::<bf16>(memory, sides),
            Precision::Single => single().run::<f32>(memory, sides),
            Precision::Double => {
                self.double[at]
                    .get_or_init(|| Engine::new(&self.layout, direction))
                    .run::<f64>(memory, sides);
            }
        }
    }
}

/// How a number is stored, and the type that it has while it is transformed.
trait Stored {
    type Bits: Value;
    type Number: FftNum;
    fn widen(bits: Self::Bits) -> Self::Number;
    fn narrow(number: Self::Number) -> Self::Bits;
}

macro_rules! stored {
    ($($ty:ty: $bits:ty, $number:ty, $widen:expr, $narrow:expr;)*) => { $(
        impl Stored for $ty {
            type Bits = $bits;
            type Number = $number;
            fn widen(bits: $bits) -> $number {
                $widen(bits)
            }
            fn narrow(number: $number) -> $bits {
                $narrow(number)
            }
        }
    )* };
}
stored! {
    f16: u16, f32, |bits| f16::from_bits(bits).to_f32(), |number| f16::from_f32(number).to_bits();
    bf16: u16, f32, |bits| bf16::from_bits(bits).to_f32(), |number| bf16::from_f32(number).to_bits();
    f32: f32, f32, std::convert::identity, std::convert::identity;
    f64: f64, f64, std::convert::identity, std::convert::identity;
}

/// Transforms of the innermost dimension.
enum Inner<T> {
    Complex(Arc<dyn Fft<T>>),
    Forward(Arc<dyn RealToComplex<T>>),
    Backward(Arc<dyn ComplexToReal<T>>),
}

/// The one-dimensional transforms of which one of the batch consists.
struct Engine<T> {
    /// Of the outer dimensions, the outermost first.
    outer: Vec<Arc<dyn Fft<T>>>,
    inner: Inner<T>,
}

/// How many numbers a thread takes at least.
const GRAIN: usize = 4096;

impl<T: FftNum> Engine<T> {
    fn new(layout: &Layout, direction: FftDirection) -> Engine<T> {
        let mut planner = FftPlanner::new();
        let (&last, outer) = layout.sizes.split_last().expect("a transform has a dimension");
        Engine {
            outer: outer.iter().map(|&size| planner.plan_fft(size, direction)).collect(),
            inner: match layout.kind {
                Kind::ComplexToComplex => Inner::Complex(planner.plan_fft(last, direction)),
                Kind::RealToComplex => Inner::Forward(RealFftPlanner::new().plan_fft_forward(last)),
                Kind::ComplexToReal => Inner::Backward(RealFftPlanner::new().plan_fft_inverse(last)),
            },
        }
    }

    fn run<S: Stored<Number = T>>(&self, [input, output]: [&Memory; 2], [from, to]: &[Side; 2]) {
        let transforms = (0..from.batch).into_par_iter().with_min_len((GRAIN / from.count()).max(1));
        transforms.for_each_init(
            || (Vec::new(), Vec::new(), Vec::new()),
            |(complex, other, real), of_batch| match &self.inner {
                Inner::Complex(fft) => {
                    load_complex::<S>(input, from, of_batch, complex);
                    rows(fft, complex);
                    self.outer(complex, other, to);
                    store_complex::<S>(output, to, of_batch, complex);
                }
                Inner::Forward(fft) => {
                    load_real::<S>(input, from, of_batch, real);
                    complex.clear();
                    complex.resize(to.count(), zero());
                    let pairs =
                        real.par_chunks_exact_mut(from.row()).zip(complex.par_chunks_exact_mut(to.row()));
                    pairs.with_min_len((GRAIN / from.row()).max(1)).for_each_init(
                        || fft.make_scratch_vec(),
                        |scratch, (real, complex)| {
                            fft.process_with_scratch(real, complex, scratch)
                                .expect("rows have the right lengths");
                        },
                    );
                    self.outer(complex, other, to);
                    store_complex::<S>(output, to, of_batch, complex);
                }
                Inner::Backward(fft) => {
                    load_complex::<S>(input, from, of_batch, complex);
                    self.outer(complex, other, from);
                    real.clear();
                    real.resize(to.count(), T::zero());
                    let pairs =
                        complex.par_chunks_exact_mut(from.row()).zip(real.par_chunks_exact_mut(to.row()));
                    pairs.with_min_len((GRAIN / to.row()).max(1)).for_each_init(
                        || fft.make_scratch_vec(),
                        |scratch, (complex, real)| {
                            // For a real result these are real. What else is there is ignored.
                            complex[0].im = T::zero();
                            if real.len().is_multiple_of(2) {
                                complex[real.len() / 2].im = T::zero();
                            }
                            fft.process_with_scratch(complex, real, scratch)
                                .expect("rows have the right lengths");
                        },
                    );
                    store_real::<S>(output, to, of_batch, real);
                }
            },
        );
        told::<S>(output, to);
    }

    /// Transforms the outer dimensions of numbers that lie one behind the other.
    fn outer(&self, data: &mut [Complex<T>], other: &mut Vec<Complex<T>>, side: &Side) {
        let mut inner = data.len();
        for (fft, &count) in self.outer.iter().zip(&side.counts) {
            inner /= count;
            other.clear();
            other.resize(data.len(), zero());
            let min = (GRAIN / count).max(1);
            other.par_chunks_exact_mut(count).with_min_len(min).enumerate().for_each_init(
                || vec![zero(); fft.get_inplace_scratch_len()],
                |scratch, (column, row)| {
                    let start = column / inner * count * inner + column % inner;
                    row.iter_mut().enumerate().for_each(|(at, value)| *value = data[start + at * inner]);
                    fft.process_with_scratch(row, scratch);
                },
            );
            let min = (GRAIN / inner).max(1);
            data.par_chunks_exact_mut(inner).with_min_len(min).enumerate().for_each(|(row, values)| {
                let (block, at) = (row / count, row % count);
                for (column, value) in values.iter_mut().enumerate() {
                    *value = other[(block * inner + column) * count + at];
                }
            });
        }
    }
}

fn zero<T: FftNum>() -> Complex<T> {
    Complex::new(T::zero(), T::zero())
}

/// Transforms rows that lie one behind the other.
fn rows<T: FftNum>(fft: &Arc<dyn Fft<T>>, data: &mut [Complex<T>]) {
    let min = (GRAIN / fft.len()).max(1);
    data.par_chunks_exact_mut(fft.len()).with_min_len(min).for_each_init(
        || vec![zero(); fft.get_inplace_scratch_len()],
        |scratch, row| fft.process_with_scratch(row, scratch),
    );
}

/// The places of all numbers of a transform of the batch.
fn places(side: &Side, of_batch: usize) -> impl Iterator<Item = usize> + '_ {
    side.rows(of_batch).flat_map(move |start| (0..side.row()).map(move |at| start + at * side.stride()))
}

/// A scalar of the memory.
fn read<S: Stored>(memory: &Memory, at: usize) -> S::Number {
    debug_assert!(at < memory.count::<S::Bits>());
    // SAFETY: the memory has been checked to have all numbers of its side. The program says how they are aligned.
    S::widen(unsafe { memory.pointer::<S::Bits>().add(at).read_unaligned() })
}

fn write<S: Stored>(memory: &Memory, at: usize, number: S::Number) {
    debug_assert!(at < memory.count::<S::Bits>());
    // SAFETY: as for `read`.
    unsafe { memory.pointer::<S::Bits>().add(at).write_unaligned(S::narrow(number)) }
}

fn load_complex<S: Stored>(memory: &Memory, side: &Side, of_batch: usize, to: &mut Vec<Complex<S::Number>>) {
    to.clear();
    to.extend(
        places(side, of_batch)
            .map(|at| Complex::new(read::<S>(memory, 2 * at), read::<S>(memory, 2 * at + 1))),
    );
}

fn load_real<S: Stored>(memory: &Memory, side: &Side, of_batch: usize, to: &mut Vec<S::Number>) {
    to.clear();
    to.extend(places(side, of_batch).map(|at| read::<S>(memory, at)));
}

fn store_complex<S: Stored>(memory: &Memory, side: &Side, of_batch: usize, from: &[Complex<S::Number>]) {
    for (at, value) in places(side, of_batch).zip(from) {
        write::<S>(memory, 2 * at, value.re);
        write::<S>(memory, 2 * at + 1, value.im);
    }
}

fn store_real<S: Stored>(memory: &Memory, side: &Side, of_batch: usize, from: &[S::Number]) {
    for (at, &value) in places(side, of_batch).zip(from) {
        write::<S>(memory, at, value);
    }
}

/// Tells the driver what has been written: not what lies between.
fn told<S: Stored>(memory: &Memory, side: &Side) {
    let width = if side.is_complex { 2 } else { 1 };
    let mut run = 0..0;
    for of_batch in 0..side.batch {
        let pieces = if side.stride() == 1 { 1 } else { side.row() };
        let length = side.row() / pieces;
        for start in side.rows(of_batch).flat_map(|row| (0..pieces).map(move |at| row + at * side.stride())) {
            if start != run.end {
                memory.wrote::<S::Bits>(run.start * width, run.len() * width);
                run = start..start;
            }
            run.end += length;
        }
    }
    memory.wrote::<S::Bits>(run.start * width, run.len() * width);
}
