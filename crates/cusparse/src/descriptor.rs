//! `cusparseMatDescr_t`: what functions without generic descriptors are told of a matrix.

use std::ffi::c_uint;
use std::sync::{Mutex, PoisonError};

use linalg::Kind;
use mathlib::{Error, Function, Handles, api};

use crate::call::{Call, Width};
use crate::handle::{Place, Ptr};
use crate::pattern::Source;
use crate::sparse::{Address, Format, SpMat};
use crate::status::Status;

/// What a program says of a matrix.
#[derive(Clone, Copy, Debug, Default)]
pub struct Description {
    /// `cusparseMatrixType_t`: 0 for a general one.
    kind: c_uint,
    /// Whether triangular systems use the upper triangle.
    pub upper: bool,
    /// Whether triangular systems take the diagonal for ones.
    pub unit: bool,
    /// The first index, 0 or 1.
    pub base: i64,
}

static DESCRIPTIONS: Handles<Mutex<Description>> = Handles::new();

impl Description {
    /// What the descriptor of a general matrix says.
    ///
    /// # Errors
    /// If there is no such descriptor, or it is of another type.
    pub fn of(descriptor: Ptr) -> Result<Description, Status> {
        let found = DESCRIPTIONS.get(descriptor).ok_or(Status::INVALID_VALUE)?;
        let found = *found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.kind == 0 { Ok(found) } else { Err(Status::MATRIX_TYPE_NOT_SUPPORTED) }
    }

    /// Changes a description.
    fn change(descriptor: Ptr, change: impl FnOnce(&mut Description)) -> Result<(), Status> {
        let found = DESCRIPTIONS.get(descriptor).ok_or(Status::INVALID_VALUE)?;
        change(&mut found.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    /// What a descriptor says, or nothing in particular.
    fn peek(descriptor: Ptr) -> Description {
        let found = DESCRIPTIONS.get(descriptor);
        found.map_or_else(Description::default, |found| *found.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A matrix by compressed rows, with indices of 32 bits: values, offsets and columns.
pub fn csr(
    size: [usize; 2],
    nnz: usize,
    base: i64,
    kind: Kind,
    [values, offsets, columns]: [Ptr; 3],
) -> SpMat {
    SpMat {
        format: Format::Csr,
        size,
        nnz,
        pointers: [offsets, columns, values].map(Address::of),
        widths: [Width::Int; 2],
        base,
        kind,
        shape: [1, 1],
        by_rows: true,
        count: 1,
        strides: [0; 3],
        upper: false,
        unit: false,
    }
}

/// The matrix when the work runs, if only its offsets say how many entries it has.
///
/// # Errors
/// If its arrays are not allocated.
pub fn counted(call: Call, what: &'static str, of: SpMat) -> Result<Source, Error> {
    let lines = of.size[0] / of.shape[0];
    let offsets =
        call.indices(&format!("the offsets of {what}"), of.pointers[0].pointer(), of.widths[0], lines + 1);
    let last = offsets.map_err(gone)?.load(call)?[lines];
    let nnz = usize::try_from(last - of.base)
        .map_err(|_| call.fault(&format!("{what}: the last offset is {last}, below {}", of.base)))?;
    Source::new(call, what, SpMat { nnz, ..of }, 0).map_err(gone)
}

/// The error of work for memory that is not there. It has been reported.
pub fn gone(_: Status) -> Error {
    Error::ILLEGAL_ADDRESS
}

/// Checks an enumeration and gives it to a change.
fn set(
    descriptor: Ptr,
    value: c_uint,
    values: c_uint,
    change: impl FnOnce(&mut Description),
) -> Result<(), Status> {
    if value < values { Description::change(descriptor, change) } else { Err(Status::INVALID_VALUE) }
}

macro_rules! getters {
    ($($symbol:ident |$found:ident| $value:expr, $summary:literal;)*) => {
        $(
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            extern "C" fn $symbol(descriptor: Ptr) -> c_uint {
                let $found = Description::peek(descriptor);
                $value
            }
        )*
        /// These return what is asked for, and no status.
        pub(crate) static GETTERS: &[&[Function]] =
            &[$(&[Function { symbol: stringify!($symbol), supported: true, summary: $summary }]),*];
    };
}

getters! {
    cusparseGetMatType |found| found.kind, " The type of a matrix.";
    cusparseGetMatFillMode |found| found.upper.into(), " Which triangle of a matrix counts: the lower (0) or the upper (1).";
    cusparseGetMatDiagType |found| found.unit.into(), " Whether the diagonal of a matrix is taken for ones (1).";
    cusparseGetMatIndexBase |found| found.base as c_uint, " The first index of a matrix.";
}

api! { API: Status, name;
    /// Makes a descriptor of a general matrix whose indices begin at 0.
    cusparseCreateMatDescr(descriptor: Place<'_, Ptr>) {
        if descriptor.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        descriptor.write(DESCRIPTIONS.insert(Mutex::default()))
    }

    /// Gives it back.
    cusparseDestroyMatDescr(descriptor: Ptr) { DESCRIPTIONS.remove(descriptor).map(drop).ok_or(Status::INVALID_VALUE) }

    /// Says of which type a matrix is. Functions take general ones (0).
    cusparseSetMatType(descriptor: Ptr, kind: c_uint) { set(descriptor, kind, 4, |found| found.kind = kind) }

    /// Says which triangle of a matrix counts: the lower (0) or the upper (1).
    cusparseSetMatFillMode(descriptor: Ptr, fill: c_uint) { set(descriptor, fill, 2, |found| found.upper = fill == 1) }

    /// Says whether the diagonal of a matrix is taken for ones (1).
    cusparseSetMatDiagType(descriptor: Ptr, diagonal: c_uint) {
        set(descriptor, diagonal, 2, |found| found.unit = diagonal == 1)
    }

    /// Says at which number the indices of a matrix begin.
    cusparseSetMatIndexBase(descriptor: Ptr, base: c_uint) { set(descriptor, base, 2, |found| found.base = base.into()) }
}
