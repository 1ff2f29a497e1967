//! Matrices in other orders and types: C = alpha op(A) + beta op(B).

use linalg::{C32, C64, Dense, Kind, Scalar};
use mathlib::{Error, api};

use super::descriptor::{self, TransformDesc};
use super::operand::{Operand, Place, Seen};
use crate::call::{Call, Coefficient};
use crate::declare::Ptr;
use crate::gemm::with_type;
use crate::operand::{kind, operation};
use crate::status::Status;

/// One of the matrices that are added.
struct Term<T> {
    factor: Coefficient<T>,
    operand: Operand,
    operation: linalg::Operation,
}

impl<T: Scalar> Term<T> {
    /// A term, or none if its factor is known to be zero.
    fn new(
        call: &Call,
        scale: Kind,
        [what, factor_name]: [&'static str; 2],
        [factor, pointer, layout]: [Ptr; 3],
        transpose: u8,
    ) -> Result<Option<Term<T>>, Status> {
        if factor.is_null() && layout.is_null() {
            return Ok(None);
        }
        let factor: Coefficient<T> = call.scalar_of(factor_name, factor, scale)?;
        if matches!(factor, Coefficient::Known(value) if value.is_zero()) {
            return Ok(None);
        }
        let operand = Place::read(layout)?.at(call, what, pointer, true)?;
        Ok(Some(Term { factor, operand, operation: operation(transpose.into())? }))
    }

    fn fits(&self, of: &Place) -> bool {
        let place = &self.operand.place;
        self.operation.stored([place.rows, place.columns]) == [of.rows, of.columns] && place.count == of.count
    }
}

/// C = alpha op(A) + beta op(B), when the work runs.
fn run<T: Scalar>(call: Call, terms: &[Term<T>], into: &Operand) -> Result<(), Error> {
    let Place { rows, columns, count, .. } = into.place;
    let matrices: Vec<_> = terms.iter().map(|term| term.operand.matrices(call)).collect::<Result<_, _>>()?;
    let results = into.matrices(call)?;
    for index in 0..count {
        let mut seen = Vec::new();
        for (term, matrices) in terms.iter().zip(&matrices) {
            let from = Seen::new(call, term.operand.place, matrices[index])?;
            seen.push((term.factor.get(call)?, term.operation, from));
        }
        let value = |i, j| {
            let terms = seen.iter().map(|(factor, operation, from)| {
                let (row, column) = if operation.transposed { (j, i) } else { (i, j) };
                *factor * operation.element(from.read::<T>(row, column))
            });
            terms.reduce(|sum, term| sum + term).unwrap_or_default()
        };
        let values = Dense::new(rows, columns, value);
        Seen::new(call, into.place, results[index])?.write(&values);
    }
    Ok(())
}

api! { API: Status, name;
    /// C = alpha op(A) + beta op(B), each in its order and type.
    cublasLtMatrixTransform (handle: Ptr, transformation: Ptr, alpha: Ptr, a: Ptr, a_layout: Ptr, beta: Ptr, b: Ptr, b_layout: Ptr, c: Ptr, c_layout: Ptr, stream: Ptr) {
        let desc: TransformDesc = descriptor::read(transformation)?;
        let call = Call::light(name, handle, stream, desc.pointer_mode == 1)?;
        let into = Place::read(c_layout)?;
        let scale = kind(desc.scale.into())?;
        if desc.pointer_mode > 1 || into.is_repeated() {
            return Err(Status::NOT_SUPPORTED);
        }
        // Integers of 32 bits and factors for them are exact in doubles.
        let works = match (into.kind, scale) {
            (Kind::I32 | Kind::I8, _) | (_, Kind::I32 | Kind::R64) => Kind::R64,
            (_, scale) => scale,
        };
        with_type!(works, W => {
            let names = [["A", "alpha"], ["B", "beta"]];
            let first = Term::<W>::new(&call, scale, names[0], [alpha, a, a_layout], desc.transa)?;
            let second = Term::<W>::new(&call, scale, names[1], [beta, b, b_layout], desc.transb)?;
            let terms: Vec<_> = first.into_iter().chain(second).collect();
            let is_complex = |kind| matches!(kind, Kind::C32 | Kind::C64);
            if terms.iter().any(|term| !term.fits(&into)) {
                return Err(Status::INVALID_VALUE);
            }
            if terms.iter().any(|term| is_complex(term.operand.place.kind) != is_complex(into.kind)) {
                return Err(Status::NOT_SUPPORTED);
            }
            let into = into.at(&call, "C", c, true)?;
            call.submit(move || run(call, &terms, &into))
        })
    }
}
