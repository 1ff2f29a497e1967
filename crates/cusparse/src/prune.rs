//! Leaving out small elements (`prune...`), for dense matrices and for those by compressed rows.

use std::ffi::c_int;

use linalg::{Kind, Operation, Scalar};
use mathlib::{Error, Handles, api};

use crate::call::{Call, Coefficient, Width, sizes};
use crate::declare::function;
use crate::dense::{Block, DnMat};
use crate::descriptor::{Description, counted, csr};
use crate::handle::{Place, Ptr};
use crate::pattern::{Matrix, Pattern, Source};
use crate::status::Status;

/// `pruneInfo_t`. Nothing needs to be remembered.
static INFOS: Handles<()> = Handles::new();

/// From where the elements are.
#[derive(Clone, Copy)]
enum From {
    Dense(Block),
    Rows(Source),
}

/// Which elements stay: those whose magnitude is above a bound.
#[derive(Clone, Copy)]
enum Bound<T> {
    Value(Coefficient<T>),
    /// The magnitude below which so many of a hundred elements are.
    Percentage(f32),
}

impl From {
    /// A dense matrix by columns.
    fn dense(call: Call, [m, n, lda]: [c_int; 3], a: Ptr, kind: Kind) -> Result<From, Status> {
        Ok(From::Dense(DnMat::by_columns(sizes([m, n])?, lda, a, kind)?.block(call, "A", 0)?))
    }

    /// A matrix by compressed rows.
    fn rows(
        call: Call,
        [m, n, nnz]: [c_int; 3],
        of: Ptr,
        arrays: [Ptr; 3],
        kind: Kind,
    ) -> Result<From, Status> {
        let ([m, n, nnz], base) = (sizes([m, n, nnz])?, Description::of(of)?.base);
        Ok(From::Rows(Source::whole(call, "A", csr([m, n], nnz, base, kind, arrays))?))
    }

    /// The elements that stay, by rows.
    fn kept<T: Scalar>(self, call: Call, [m, n]: [usize; 2], bound: Bound<T>) -> Result<Matrix<T>, Error> {
        let all = match self {
            From::Rows(source) => source.matrix::<T>(call, Operation::NONE)?,
            From::Dense(block) => {
                let pattern = Pattern {
                    size: [m, n],
                    offsets: (0..=m).map(|row| row * n).collect(),
                    columns: (0..m * n).map(|at| at % n).collect(),
                    places: Vec::new(),
                };
                Matrix { pattern, values: block.load::<T>(call, Operation::NONE)? }
            }
        };
        let least: f64 = match bound {
            Bound::Value(value) => value.get(call)?.re().into(),
            Bound::Percentage(percentage) => {
                let mut magnitudes: Vec<f64> =
                    all.values.iter().map(|value| value.magnitude().into()).collect();
                magnitudes.sort_by(f64::total_cmp);
                let place = (magnitudes.len() as f64 * f64::from(percentage) / 100.0).ceil() - 1.0;
                let last = magnitudes.len().saturating_sub(1);
                magnitudes.get((place.max(0.0) as usize).min(last)).copied().unwrap_or_default()
            }
        };
        let mut kept = Matrix { pattern: Pattern::of_size([m, n]), values: Vec::new() };
        for row in 0..m {
            for (column, value) in all.row(row).filter(|(_, value)| value.magnitude().into() > least) {
                kept.pattern.columns.push(column);
                kept.values.push(value);
            }
            kept.pattern.offsets.push(kept.values.len());
        }
        Ok(kept)
    }
}

/// Writes the offsets of what stays, and counts it.
fn count<T: Scalar>(
    call: Call,
    from: From,
    size: [c_int; 2],
    bound: Bound<T>,
    of: Ptr,
    offsets: Ptr,
    total: Ptr,
) -> Result<(), Status> {
    let (size, base) = (sizes(size)?, Description::of(of)?.base);
    let offsets = call.indices("the offsets of C", offsets, Width::Int, size[0] + 1)?;
    call.deliver::<f64>(total, Kind::I32, move || {
        let kept = from.kept(call, size, bound)?;
        offsets.store(call, kept.pattern.offsets.iter().map(|&offset| offset as i64 + base))?;
        Ok(kept.values.len() as f64)
    })
}

/// Writes what stays, where the offsets are known.
fn convert<T: Scalar>(
    call: Call,
    from: From,
    size: [c_int; 2],
    bound: Bound<T>,
    of: Ptr,
    kind: Kind,
    c: [Ptr; 3],
) -> Result<(), Status> {
    let size = sizes(size)?;
    let c = csr(size, 0, Description::of(of)?.base, kind, c);
    call.submit(move || {
        let c = counted(call, "C", c)?;
        let kept = from.kept(call, size, bound)?;
        if c.values.count != kept.values.len() {
            let message =
                format!("C has {} entries by its offsets, and {} stay", c.values.count, kept.values.len());
            return Err(call.fault(&message));
        }
        c.write_pattern(call, &kept.pattern)?;
        c.values.store(call, 0, &kept.values)
    })
}

/// A bound by a percentage.
fn percent<T>(percentage: f32) -> Result<Bound<T>, Status> {
    if (0.0..=100.0).contains(&percentage) {
        Ok(Bound::Percentage(percentage))
    } else {
        Err(Status::INVALID_VALUE)
    }
}

/// Declares the functions of three types of numbers; `KIND` is how they lie in memory.
macro_rules! prunes {
    ($table:ident: $(
        #[doc = $summary:literal]
        $rest:literal $args:tt |$call:ident, $kind:ident| $body:block
    )*) => {
        /// The functions of this file that exist for several types of numbers.
        pub(crate) static $table: &[&[mathlib::Function]] = &[$(
            &[
                function!($summary, "H", $rest, f32, $args, $call, { let $kind = Kind::R16; let _ = $kind; $body }),
                function!($summary, "S", $rest, f32, $args, $call, { let $kind = Kind::R32; let _ = $kind; $body }),
                function!($summary, "D", $rest, f64, $args, $call, { let $kind = Kind::R64; let _ = $kind; $body }),
            ],
        )*];
    };
}

prunes! { FAMILIES:
    /// The device memory that `pruneDense2csr` needs: none.
    "pruneDense2csr_bufferSizeExt" (
        m: c_int, n: c_int, _a: Ptr, _lda: c_int, _bound: Ptr, of: Ptr, _values: Ptr, _offsets: Ptr, _columns: Ptr,
        bytes: Place<'_, usize>,
    ) |call, kind| {
        sizes([m, n])?;
        Description::of(of)?;
        bytes.write(0)
    }
    /// The offsets of the elements of a dense matrix whose magnitude is above a bound, and how many there are.
    "pruneDense2csrNnz" (m: c_int, n: c_int, a: Ptr, lda: c_int, bound: Ptr, of: Ptr, offsets: Ptr, total: Ptr, _buffer: Ptr) |call, kind| {
        let bound = Bound::Value(call.scalar::<T>("the threshold", bound, kind)?);
        count(call, From::dense(call, [m, n, lda], a, kind)?, [m, n], bound, of, offsets, total)
    }
    /// The elements of a dense matrix whose magnitude is above a bound, where the offsets are known.
    "pruneDense2csr" (
        m: c_int, n: c_int, a: Ptr, lda: c_int, bound: Ptr, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, _buffer: Ptr,
    ) |call, kind| {
        let bound = Bound::Value(call.scalar::<T>("the threshold", bound, kind)?);
        convert(call, From::dense(call, [m, n, lda], a, kind)?, [m, n], bound, of, kind, [values, offsets, columns])
    }
    /// The device memory that `pruneCsr2csr` needs: none.
    "pruneCsr2csr_bufferSizeExt" (
        m: c_int, n: c_int, nnz: c_int, of_a: Ptr, _values_a: Ptr, _offsets_a: Ptr, _columns_a: Ptr, _bound: Ptr, of: Ptr,
        _values: Ptr, _offsets: Ptr, _columns: Ptr, bytes: Place<'_, usize>,
    ) |call, kind| {
        sizes([m, n, nnz])?;
        Description::of(of_a)?;
        Description::of(of)?;
        bytes.write(0)
    }
    /// The offsets of the entries whose magnitude is above a bound, and how many there are.
    "pruneCsr2csrNnz" (
        m: c_int, n: c_int, nnz: c_int, of_a: Ptr, values_a: Ptr, offsets_a: Ptr, columns_a: Ptr, bound: Ptr, of: Ptr,
        offsets: Ptr, total: Ptr, _buffer: Ptr,
    ) |call, kind| {
        let bound = Bound::Value(call.scalar::<T>("the threshold", bound, kind)?);
        let from = From::rows(call, [m, n, nnz], of_a, [values_a, offsets_a, columns_a], kind)?;
        count(call, from, [m, n], bound, of, offsets, total)
    }
    /// The entries whose magnitude is above a bound, where the offsets are known.
    "pruneCsr2csr" (
        m: c_int, n: c_int, nnz: c_int, of_a: Ptr, values_a: Ptr, offsets_a: Ptr, columns_a: Ptr, bound: Ptr, of: Ptr,
        values: Ptr, offsets: Ptr, columns: Ptr, _buffer: Ptr,
    ) |call, kind| {
        let bound = Bound::Value(call.scalar::<T>("the threshold", bound, kind)?);
        let from = From::rows(call, [m, n, nnz], of_a, [values_a, offsets_a, columns_a], kind)?;
        convert(call, from, [m, n], bound, of, kind, [values, offsets, columns])
    }
    /// The device memory that `pruneDense2csrByPercentage` needs: none.
    "pruneDense2csrByPercentage_bufferSizeExt" (
        m: c_int, n: c_int, _a: Ptr, _lda: c_int, percentage: f32, of: Ptr, _values: Ptr, _offsets: Ptr, _columns: Ptr,
        _info: Ptr, bytes: Place<'_, usize>,
    ) |call, kind| {
        sizes([m, n])?;
        percent::<T>(percentage)?;
        Description::of(of)?;
        bytes.write(0)
    }
    /// The offsets of what stays when so many of a hundred elements of a dense matrix are left out, and how many that is.
    "pruneDense2csrNnzByPercentage" (
        m: c_int, n: c_int, a: Ptr, lda: c_int, percentage: f32, of: Ptr, offsets: Ptr, total: Ptr, _info: Ptr,
        _buffer: Ptr,
    ) |call, kind| {
        let from = From::dense(call, [m, n, lda], a, kind)?;
        count::<T>(call, from, [m, n], percent(percentage)?, of, offsets, total)
    }
    /// What stays when so many of a hundred elements of a dense matrix are left out, where the offsets are known.
    "pruneDense2csrByPercentage" (
        m: c_int, n: c_int, a: Ptr, lda: c_int, percentage: f32, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr,
        _info: Ptr, _buffer: Ptr,
    ) |call, kind| {
        let from = From::dense(call, [m, n, lda], a, kind)?;
        convert::<T>(call, from, [m, n], percent(percentage)?, of, kind, [values, offsets, columns])
    }
    /// The device memory that `pruneCsr2csrByPercentage` needs: none.
    "pruneCsr2csrByPercentage_bufferSizeExt" (
        m: c_int, n: c_int, nnz: c_int, of_a: Ptr, _values_a: Ptr, _offsets_a: Ptr, _columns_a: Ptr, percentage: f32,
        of: Ptr, _values: Ptr, _offsets: Ptr, _columns: Ptr, _info: Ptr, bytes: Place<'_, usize>,
    ) |call, kind| {
        sizes([m, n, nnz])?;
        percent::<T>(percentage)?;
        Description::of(of_a)?;
        Description::of(of)?;
        bytes.write(0)
    }
    /// The offsets of what stays when so many of a hundred entries are left out, and how many that is.
    "pruneCsr2csrNnzByPercentage" (
        m: c_int, n: c_int, nnz: c_int, of_a: Ptr, values_a: Ptr, offsets_a: Ptr, columns_a: Ptr, percentage: f32, of: Ptr,
        offsets: Ptr, total: Ptr, _info: Ptr, _buffer: Ptr,
    ) |call, kind| {
        let from = From::rows(call, [m, n, nnz], of_a, [values_a, offsets_a, columns_a], kind)?;
        count::<T>(call, from, [m, n], percent(percentage)?, of, offsets, total)
    }
    /// What stays when so many of a hundred entries are left out, where the offsets are known.
    "pruneCsr2csrByPercentage" (
        m: c_int, n: c_int, nnz: c_int, of_a: Ptr, values_a: Ptr, offsets_a: Ptr, columns_a: Ptr, percentage: f32, of: Ptr,
        values: Ptr, offsets: Ptr, columns: Ptr, _info: Ptr, _buffer: Ptr,
    ) |call, kind| {
        let from = From::rows(call, [m, n, nnz], of_a, [values_a, offsets_a, columns_a], kind)?;
        convert::<T>(call, from, [m, n], percent(percentage)?, of, kind, [values, offsets, columns])
    }
}

api! { API: Status, name;
    /// Makes what leaving out by percentage remembers: nothing.
    cusparseCreatePruneInfo(info: Place<'_, Ptr>) {
        if info.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        info.write(INFOS.insert(()))
    }

    /// Gives it back.
    cusparseDestroyPruneInfo(info: Ptr) { INFOS.remove(info).map(drop).ok_or(Status::INVALID_VALUE) }
}
