//! Where the numbers of a transform lie (cuFFT manual, "Data Layout" and "Advanced Data Layout").

use crate::status::Status;

/// How a number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `__half`, binary16.
    Half,
    /// `__nv_bfloat16`.
    Bfloat16,
    /// `float`.
    Single,
    /// `double`.
    Double,
}

/// What is real, and what complex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Both sides are complex.
    ComplexToComplex,
    /// Forward, of real numbers: the result has the half of the numbers from which the others follow.
    RealToComplex,
    /// Backward, to real numbers, from such a half.
    ComplexToReal,
}

/// How the numbers of one side, the input or the output, lie apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// How many there are along each dimension, the innermost last.
    pub counts: Vec<usize>,
    /// From a number to the next one along each dimension, in numbers of this side (complex or real).
    pub strides: Vec<usize>,
    /// From a transform of the batch to the next one.
    pub distance: usize,
    /// How many transforms the batch has.
    pub batch: usize,
    /// Whether a number is a pair: real and imaginary part.
    pub is_complex: bool,
}

impl Side {
    /// A side whose storage has these extents; the first one does not matter.
    fn new(
        counts: &[usize],
        extents: &[usize],
        [stride, distance, batch]: [usize; 3],
        is_complex: bool,
    ) -> Option<Side> {
        let mut strides = vec![stride; counts.len()];
        for at in (1..counts.len()).rev() {
            strides[at - 1] = strides[at].checked_mul(extents[at])?;
        }
        let side = Side { counts: counts.to_vec(), strides, distance, batch, is_complex };
        side.checked_span().map(|_| side)
    }

    /// How many numbers lie between the first one and the last one, both included. `None` beyond all addresses.
    fn checked_span(&self) -> Option<usize> {
        let last =
            self.counts.iter().zip(&self.strides).try_fold(0usize, |sum, (&count, &stride)| {
                sum.checked_add((count - 1).checked_mul(stride)?)
            })?;
        let last = last.checked_add((self.batch - 1).checked_mul(self.distance)?)?;
        // Room for the bytes of pairs of doubles.
        last.checked_add(1).filter(|&span| span < usize::MAX / 32)
    }

    /// How many numbers lie between the first one and the last one, both included.
    pub fn span(&self) -> usize {
        self.checked_span().expect("`new` has checked it")
    }

    /// How many numbers a transform of the batch has.
    pub fn count(&self) -> usize {
        self.counts.iter().product()
    }

    /// The places where rows along the innermost dimension begin, in a transform of the batch, in ascending order of their indices.
    pub fn rows(&self, of_batch: usize) -> impl Iterator<Item = usize> + '_ {
        let outer = &self.counts[..self.counts.len() - 1];
        (0..outer.iter().product()).map(move |mut row: usize| {
            let mut place = of_batch * self.distance;
            for (&count, &stride) in outer.iter().zip(&self.strides).rev() {
                place += row % count * stride;
                row /= count;
            }
            place
        })
    }

    /// From a number of a row to the next one.
    pub fn stride(&self) -> usize {
        self.strides[self.strides.len() - 1]
    }

    /// The length of a row.
    pub fn row(&self) -> usize {
        self.counts[self.counts.len() - 1]
    }
}

/// What a plan transforms: all but where the memory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What is real.
    pub kind: Kind,
    /// How input and output are stored.
    pub precision: Precision,
    /// The size of the transform along each dimension, the innermost last.
    pub sizes: Vec<usize>,
    batch: usize,
    /// Input and output, where the program has chosen their layout.
    chosen: Option<[Side; 2]>,
}

/// The layout of one side as the program passes it: extents of its storage, stride and distance.
pub type Advanced<'a> = (&'a [i64], i64, i64);

impl Layout {
    /// Checks what the program passes. Without `advanced`, numbers lie one behind the other.
    ///
    /// # Errors
    /// If a size, a number of transforms or a distance makes no sense.
    pub fn new(
        kind: Kind,
        precision: Precision,
        sizes: &[i64],
        batch: i64,
        advanced: Option<[Advanced<'_>; 2]>,
    ) -> Result<Layout, Status> {
        let positive =
            |&size: &i64| usize::try_from(size).ok().filter(|&size| size > 0).ok_or(Status::INVALID_SIZE);
        let sizes = sizes.iter().map(positive).collect::<Result<Vec<_>, _>>()?;
        let mut layout = Layout { kind, precision, sizes, batch: positive(&batch)?, chosen: None };
        // Whether the numbers have addresses at all.
        layout.checked_sides(true).and(layout.checked_sides(false)).ok_or(Status::INVALID_SIZE)?;
        if let Some(advanced) = advanced {
            let mut sides = Vec::new();
            for ((extents, stride, distance), is_input) in advanced.into_iter().zip([true, false]) {
                // The first extent does not matter.
                let inner = extents.iter().skip(1).map(positive).collect::<Result<Vec<_>, _>>()?;
                let extents: Vec<usize> = [1].into_iter().chain(inner).collect();
                let distance = usize::try_from(distance).map_err(|_| Status::INVALID_SIZE)?;
                let numbers = [positive(&stride)?, distance, layout.batch];
                let side =
                    Side::new(&layout.counts(is_input), &extents, numbers, layout.is_complex(is_input));
                sides.push(side.ok_or(Status::INVALID_SIZE)?);
            }
            layout.chosen = sides.try_into().ok();
        }
        Ok(layout)
    }

    fn is_complex(&self, is_input: bool) -> bool {
        !matches!((self.kind, is_input), (Kind::RealToComplex, true) | (Kind::ComplexToReal, false))
    }

    /// How many numbers a side has along each dimension: of complex numbers that belong to real ones only a half.
    fn counts(&self, is_input: bool) -> Vec<usize> {
        let mut counts = self.sizes.clone();
        if self.kind != Kind::ComplexToComplex && self.is_complex(is_input) {
            let last = counts.len() - 1;
            counts[last] = counts[last] / 2 + 1;
        }
        counts
    }

    /// Input and output. In place, the rows of real numbers are as long as those of the complex ones that replace them.
    pub fn sides(&self, in_place: bool) -> [Side; 2] {
        self.checked_sides(in_place).expect("`new` has checked it")
    }

    fn checked_sides(&self, in_place: bool) -> Option<[Side; 2]> {
        if let Some(sides) = &self.chosen {
            return Some(sides.clone());
        }
        let side = |is_input| {
            let counts = self.counts(is_input);
            let mut extents = counts.clone();
            if in_place && !self.is_complex(is_input) {
                let last = extents.len() - 1;
                extents[last] = 2 * (extents[last] / 2 + 1);
            }
            let distance = extents.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent))?;
            Side::new(&counts, &extents, [1, distance, self.batch], self.is_complex(is_input))
        };
        Some([side(true)?, side(false)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_as_the_manual_has_them() {
        let of =
            |kind, sizes: &[i64]| Layout::new(kind, Precision::Single, sizes, 3, None).expect("a layout");
        // Basic layout: out of place, and padded in place.
        let real = of(Kind::RealToComplex, &[4, 5]);
        let [input, output] = real.sides(false);
        assert_eq!((input.strides, input.distance), (vec![5, 1], 20));
        assert_eq!((output.counts, output.strides, output.distance), (vec![4, 3], vec![3, 1], 12));
        let [input, output] = real.sides(true);
        assert_eq!((input.counts, input.strides, input.distance), (vec![4, 5], vec![6, 1], 24));
        assert_eq!(output.distance, 12);
        let [input, output] = of(Kind::ComplexToReal, &[6]).sides(true);
        assert_eq!((input.counts, input.distance, output.distance), (vec![4], 4, 8));
        // input[b * idist + (x * inembed[1] + y) * istride].
        let advanced: [Advanced<'_>; 2] = [(&[0, 7], 2, 100), (&[9, 8], 1, 1)];
        let many = Layout::new(Kind::ComplexToComplex, Precision::Double, &[2, 3], 2, Some(advanced))
            .expect("a layout");
        let [input, output] = many.sides(true);
        assert_eq!((input.strides.clone(), input.span()), (vec![14, 2], 100 + 14 + 4 + 1));
        assert_eq!(input.rows(1).collect::<Vec<_>>(), [100, 114]);
        assert_eq!((output.strides, output.distance), (vec![8, 1], 1));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let of = |sizes: &[i64], batch, advanced| {
            Layout::new(Kind::ComplexToReal, Precision::Single, sizes, batch, advanced).map(|_| ())
        };
        for (sizes, batch) in
            [(&[0][..], 1), (&[4, -1], 1), (&[4], 0), (&[i64::MAX], 1), (&[1 << 40, 1 << 40], 1)]
        {
            assert_eq!(of(sizes, batch, None), Err(Status::INVALID_SIZE), "{sizes:?} {batch}");
        }
        assert_eq!(of(&[4, 4], 1, Some([(&[4, 0], 1, 1), (&[4, 4], 1, 1)])), Err(Status::INVALID_SIZE));
        assert_eq!(of(&[4, 4], 1, Some([(&[4, 4], 0, 1), (&[4, 4], 1, 1)])), Err(Status::INVALID_SIZE));
        assert_eq!(
            of(&[4, 4], 2, Some([(&[4, 4], 1, i64::MAX), (&[4, 4], 1, 1)])),
            Err(Status::INVALID_SIZE)
        );
    }
}
