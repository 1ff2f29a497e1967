//! Incomplete factors without fill-in: `csrilu02`, `csric02` and their forms for blocks. The elements of blocks are eliminated one after
//! the other, which gives the factors of the blocks.

use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, PoisonError};

use linalg::{C64, Kind, Operation, Scalar};
use mathlib::{Handles, api};

use crate::call::{Call, Coefficient, either, size};
use crate::declare::families;
use crate::descriptor::{Description, csr};
use crate::handle::{Place, Ptr};
use crate::pattern::{Matrix, Source};
use crate::sparse::{Format, SpMat};
use crate::status::Status;

/// What replaces a small pivot: where the bound is, and the pivot.
type Boost = Option<(Coefficient<f64>, Coefficient<C64>)>;

/// What a factorization remembers (`csrilu02Info_t` and its kin): the first pivot that was zero, and what replaces small ones.
#[derive(Default)]
pub struct Info {
    zero: Arc<Mutex<Option<usize>>>,
    boost: Mutex<Boost>,
}

static INFOS: Handles<Info> = Handles::new();

/// The matrix of a factorization, in place.
pub struct Square {
    of: SpMat,
    info: Arc<Info>,
}

impl Info {
    /// Makes one for the program.
    ///
    /// # Errors
    /// If the place is null.
    pub fn create(place: Place<'_, Ptr>) -> Result<(), Status> {
        if place.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        place.write(INFOS.insert(Info::default()))
    }

    /// Gives it back.
    ///
    /// # Errors
    /// If there is none.
    pub fn destroy(info: Ptr) -> Result<(), Status> {
        INFOS.remove(info).map(drop).ok_or(Status::INVALID_VALUE)
    }

    /// The object of the program's.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(info: Ptr) -> Result<Arc<Info>, Status> {
        INFOS.get(info).ok_or(Status::INVALID_VALUE)
    }

    /// Notes the first pivot that is zero.
    pub fn note(&self, zero: Option<usize>) {
        *self.zero.lock().unwrap_or_else(PoisonError::into_inner) = zero;
    }

    /// Says where the first pivot is that is zero or missing, or -1. It waits for the stream.
    ///
    /// # Errors
    /// [`Status::ZERO_PIVOT`] if there is one.
    pub fn tell(call: Call, info: Ptr, position: Ptr) -> Result<(), Status> {
        let info = Info::of(info)?;
        let zero = Arc::clone(&info.zero);
        call.deliver::<f64>(position, Kind::I32, move || {
            Ok(zero.lock().unwrap_or_else(PoisonError::into_inner).map_or(-1.0, |at| at as f64))
        })?;
        mathlib::synchronize(call.stream)?;
        match *info.zero.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(_) => Err(Status::ZERO_PIVOT),
            None => Ok(()),
        }
    }

    /// Chooses what replaces small pivots.
    fn boost<T: Scalar>(call: Call, info: Ptr, enable: c_int, bound: Ptr, pivot: Ptr) -> Result<(), Status> {
        let info = Info::of(info)?;
        let boost = match enable {
            0 => None,
            _ => Some((
                call.scalar::<f64>("tol", bound, Kind::R64)?,
                call.scalar::<C64>("boost_val", pivot, T::KIND)?,
            )),
        };
        *info.boost.lock().unwrap_or_else(PoisonError::into_inner) = boost;
        Ok(())
    }
}

impl Square {
    /// A matrix by compressed rows.
    fn of_rows(
        m: c_int,
        nnz: c_int,
        of: Ptr,
        arrays: [Ptr; 3],
        info: Ptr,
        kind: Kind,
    ) -> Result<Square, Status> {
        let (m, base) = (size(m)?, Description::of(of)?.base);
        Ok(Square { of: csr([m, m], size(nnz)?, base, kind, arrays), info: Info::of(info)? })
    }

    /// A matrix of square blocks by compressed rows.
    fn of_blocks(
        by_columns: c_uint,
        [mb, nnzb, block]: [c_int; 3],
        of: Ptr,
        arrays: [Ptr; 3],
        info: Ptr,
        kind: Kind,
    ) -> Result<Square, Status> {
        let of = blocks(by_columns, [mb, mb], nnzb, [block, block], Description::of(of)?.base, kind, arrays)?;
        Ok(Square { of, info: Info::of(info)? })
    }

    /// Looks for elements of the diagonal that are missing.
    fn analyse(&self, call: Call) -> Result<(), Status> {
        let source = Source::of_pattern(call, "A", self.of)?;
        let (info, base) = (Arc::clone(&self.info), self.of.base as usize);
        let block = self.of.shape[0];
        call.submit(move || {
            let pattern = source.pattern(call)?;
            let missing = (0..pattern.size[0])
                .find(|&row| !pattern.row(row).any(|entry| pattern.columns[entry] == row));
            info.note(missing.map(|row| row / block + base));
            Ok(())
        })
    }

    /// Factors the matrix in place.
    fn factor<T: Scalar>(
        self,
        call: Call,
        method: impl Fn(&mut Rows<T>, Pivot<T>) -> Option<usize> + Send + Sync + 'static,
    ) -> Result<(), Status> {
        let source = Source::whole(call, "A", self.of)?;
        let (base, block) = (self.of.base as usize, self.of.shape[0]);
        let boost = *self.info.boost.lock().unwrap_or_else(PoisonError::into_inner);
        let info = self.info;
        call.submit(move || {
            let matrix = source.matrix::<T>(call, Operation::NONE)?;
            let places = matrix.pattern.places.clone();
            let pivot = match boost {
                None => None,
                Some((bound, pivot)) => {
                    let pivot = pivot.get(call)?;
                    Some((bound.get(call)?, T::of(pivot.re, pivot.im)))
                }
            };
            let mut rows = Rows::new(matrix);
            let zero = method(&mut rows, pivot);
            info.note(zero.map(|row| row / block + base));
            source.values.scatter(call, places.into_iter().zip(rows.matrix.values))
        })
    }
}

/// What replaces pivots, and up to which magnitude.
type Pivot<T> = Option<(f64, T)>;

/// A matrix whose rows are visited in the order of columns.
struct Rows<T> {
    matrix: Matrix<T>,
    /// The entries of each row in the order of columns.
    order: Vec<usize>,
    /// The entry of the diagonal in each row, if there is one.
    diagonal: Vec<Option<usize>>,
    /// The entry of the present row in each column, or none.
    at: Vec<usize>,
}

/// No entry.
const NONE: usize = usize::MAX;

impl<T: Scalar> Rows<T> {
    fn new(matrix: Matrix<T>) -> Rows<T> {
        let pattern = &matrix.pattern;
        let mut order: Vec<usize> = (0..pattern.count()).collect();
        let mut diagonal = vec![None; pattern.size[0]];
        for row in 0..pattern.size[0] {
            order[pattern.row(row)].sort_by_key(|&entry| pattern.columns[entry]);
            diagonal[row] = pattern.row(row).find(|&entry| pattern.columns[entry] == row);
        }
        let at = vec![NONE; pattern.size[1]];
        Rows { order, diagonal, at, matrix }
    }

    /// The entries of a row, in the order of columns.
    fn row(&self, row: usize) -> Vec<usize> {
        self.order[self.matrix.pattern.row(row)].to_vec()
    }

    /// L and U in place of the matrix, row by row. L has ones on its diagonal.
    fn lu(&mut self, pivot: Pivot<T>) -> Option<usize> {
        let mut zero = None;
        for row in 0..self.diagonal.len() {
            let entries = self.row(row);
            entries.iter().for_each(|&entry| self.at[self.matrix.pattern.columns[entry]] = entry);
            for &entry in &entries {
                let column = self.matrix.pattern.columns[entry];
                if column >= row {
                    break;
                }
                let Some(diagonal) = self.diagonal[column] else { continue };
                let factor = self.matrix.values[entry] / self.matrix.values[diagonal];
                self.matrix.values[entry] = factor;
                for &above in &self.order[self.matrix.pattern.row(column)] {
                    let (of, target) =
                        (self.matrix.pattern.columns[above], self.at[self.matrix.pattern.columns[above]]);
                    if of > column && target != NONE {
                        let value = self.matrix.values[target] - factor * self.matrix.values[above];
                        self.matrix.values[target] = value;
                    }
                }
            }
            match (self.diagonal[row], pivot) {
                (Some(entry), Some((bound, value)))
                    if self.matrix.values[entry].magnitude().into() <= bound =>
                {
                    self.matrix.values[entry] = value;
                }
                (Some(entry), _) if !self.matrix.values[entry].is_zero() => {}
                _ => zero = zero.or(Some(row)),
            }
            entries.iter().for_each(|&entry| self.at[self.matrix.pattern.columns[entry]] = NONE);
        }
        zero
    }

    /// The lower factor of Cholesky in place of the lower triangle, row by row.
    fn cholesky(&mut self, _: Pivot<T>) -> Option<usize> {
        let mut zero = None;
        for row in 0..self.diagonal.len() {
            let entries = self.row(row);
            entries.iter().for_each(|&entry| self.at[self.matrix.pattern.columns[entry]] = entry);
            for &entry in &entries {
                let column = self.matrix.pattern.columns[entry];
                if column > row {
                    break;
                }
                let mut rest = self.matrix.values[entry];
                for &left in &self.order[self.matrix.pattern.row(column)] {
                    let (of, own) =
                        (self.matrix.pattern.columns[left], self.at[self.matrix.pattern.columns[left]]);
                    if of < column && own != NONE {
                        rest = rest - self.matrix.values[own] * self.matrix.values[left].conjugate();
                    }
                }
                self.matrix.values[entry] = match self.diagonal[column] {
                    Some(_) if column == row => {
                        let root: f64 = rest.re().into();
                        T::of(root.sqrt(), 0.0)
                    }
                    Some(diagonal) => rest / self.matrix.values[diagonal],
                    None => rest,
                };
            }
            let root: f64 = self.diagonal[row].map_or(0.0, |entry| self.matrix.values[entry].re().into());
            if root.is_nan() || root <= 0.0 {
                zero = zero.or(Some(row));
            }
            entries.iter().for_each(|&entry| self.at[self.matrix.pattern.columns[entry]] = NONE);
        }
        zero
    }
}

/// A matrix of blocks by compressed rows, as functions without generic descriptors name it: sizes in blocks, and the shape of a block.
///
/// # Errors
/// If a size has no meaning.
pub fn blocks(
    direction: c_uint,
    [mb, nb]: [c_int; 2],
    nnzb: c_int,
    [down, across]: [c_int; 2],
    base: i64,
    kind: Kind,
    arrays: [Ptr; 3],
) -> Result<SpMat, Status> {
    let (shape, by_columns) = ([size(down)?, size(across)?], either(direction)?);
    if shape.contains(&0) {
        return Err(Status::INVALID_VALUE);
    }
    let whole = [size(mb)? * shape[0], size(nb)? * shape[1]];
    let common = csr(whole, size(nnzb)?, base, kind, arrays);
    Ok(SpMat { format: Format::Bsr, shape, by_rows: !by_columns, ..common })
}

families! { FAMILIES:
    /// The device memory that `csrilu02` needs: none.
    "csrilu02_bufferSize" (m: c_int, nnz: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, info: Ptr, bytes: Place<'_, c_int>) |call| {
        Square::of_rows(m, nnz, of, [values, offsets, columns], info, T::KIND)?;
        bytes.write(0)
    }
    /// Looks for elements of the diagonal that are missing.
    "csrilu02_analysis" (m: c_int, nnz: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, info: Ptr, _policy: c_uint, _buffer: Ptr) |call| {
        Square::of_rows(m, nnz, of, [values, offsets, columns], info, T::KIND)?.analyse(call)
    }
    /// The incomplete factors L and U of a matrix, without fill-in, in its place.
    "csrilu02" (m: c_int, nnz: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, info: Ptr, _policy: c_uint, _buffer: Ptr) |call| {
        Square::of_rows(m, nnz, of, [values, offsets, columns], info, T::KIND)?.factor::<T>(call, Rows::lu)
    }
    /// Chooses a pivot for those whose magnitude is not above a bound.
    "csrilu02_numericBoost" (info: Ptr, enable: c_int, bound: Ptr, pivot: Ptr) |call| {
        Info::boost::<T>(call, info, enable, bound, pivot)
    }
    /// The device memory that `csric02` needs: none.
    "csric02_bufferSize" (m: c_int, nnz: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, info: Ptr, bytes: Place<'_, c_int>) |call| {
        Square::of_rows(m, nnz, of, [values, offsets, columns], info, T::KIND)?;
        bytes.write(0)
    }
    /// Looks for elements of the diagonal that are missing.
    "csric02_analysis" (m: c_int, nnz: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, info: Ptr, _policy: c_uint, _buffer: Ptr) |call| {
        Square::of_rows(m, nnz, of, [values, offsets, columns], info, T::KIND)?.analyse(call)
    }
    /// The incomplete factor of Cholesky of a matrix, without fill-in, in place of its lower triangle.
    "csric02" (m: c_int, nnz: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, info: Ptr, _policy: c_uint, _buffer: Ptr) |call| {
        Square::of_rows(m, nnz, of, [values, offsets, columns], info, T::KIND)?.factor::<T>(call, Rows::cholesky)
    }
    /// The device memory that `bsrilu02` needs: none.
    "bsrilu02_bufferSize" (direction: c_uint, mb: c_int, nnzb: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, block: c_int, info: Ptr, bytes: Place<'_, c_int>) |call| {
        Square::of_blocks(direction, [mb, nnzb, block], of, [values, offsets, columns], info, T::KIND)?;
        bytes.write(0)
    }
    /// Looks for blocks of the diagonal that are missing.
    "bsrilu02_analysis" (direction: c_uint, mb: c_int, nnzb: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, block: c_int, info: Ptr, _policy: c_uint, _buffer: Ptr) |call| {
        Square::of_blocks(direction, [mb, nnzb, block], of, [values, offsets, columns], info, T::KIND)?.analyse(call)
    }
    /// The incomplete factors L and U of a matrix of blocks, without new blocks, in its place.
    "bsrilu02" (direction: c_uint, mb: c_int, nnzb: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, block: c_int, info: Ptr, _policy: c_uint, _buffer: Ptr) |call| {
        Square::of_blocks(direction, [mb, nnzb, block], of, [values, offsets, columns], info, T::KIND)?.factor::<T>(call, Rows::lu)
    }
    /// Chooses a pivot for those whose magnitude is not above a bound.
    "bsrilu02_numericBoost" (info: Ptr, enable: c_int, bound: Ptr, pivot: Ptr) |call| {
        Info::boost::<T>(call, info, enable, bound, pivot)
    }
    /// The device memory that `bsric02` needs: none.
    "bsric02_bufferSize" (direction: c_uint, mb: c_int, nnzb: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, block: c_int, info: Ptr, bytes: Place<'_, c_int>) |call| {
        Square::of_blocks(direction, [mb, nnzb, block], of, [values, offsets, columns], info, T::KIND)?;
        bytes.write(0)
    }
    /// Looks for blocks of the diagonal that are missing.
    "bsric02_analysis" (direction: c_uint, mb: c_int, nnzb: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, block: c_int, info: Ptr, _policy: c_uint, _buffer: Ptr) |call| {
        Square::of_blocks(direction, [mb, nnzb, block], of, [values, offsets, columns], info, T::KIND)?.analyse(call)
    }
    /// The incomplete factor of Cholesky of a matrix of blocks, without new blocks, in place of its lower triangle.
    "bsric02" (direction: c_uint, mb: c_int, nnzb: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, block: c_int, info: Ptr, _policy: c_uint, _buffer: Ptr) |call| {
        Square::of_blocks(direction, [mb, nnzb, block], of, [values, offsets, columns], info, T::KIND)?.factor::<T>(call, Rows::cholesky)
    }
}

api! { API: Status, name;
    /// Makes what a factorization, or a system of blocks, remembers.
    cusparseCreateCsrilu02Info cusparseCreateCsric02Info cusparseCreateBsrilu02Info cusparseCreateBsric02Info
    cusparseCreateBsrsv2Info cusparseCreateBsrsm2Info(info: Place<'_, Ptr>) { Info::create(info) }

    /// Gives it back.
    cusparseDestroyCsrilu02Info cusparseDestroyCsric02Info cusparseDestroyBsrilu02Info cusparseDestroyBsric02Info
    cusparseDestroyBsrsv2Info cusparseDestroyBsrsm2Info(info: Ptr) { Info::destroy(info) }

    /// Where the first pivot is that is missing or zero, or -1: an element, or a block. It waits for the stream.
    cusparseXcsrilu02_zeroPivot cusparseXcsric02_zeroPivot cusparseXbsrilu02_zeroPivot cusparseXbsric02_zeroPivot
    cusparseXbsrsv2_zeroPivot cusparseXbsrsm2_zeroPivot(handle: Ptr, info: Ptr, position: Ptr) {
        Info::tell(Call::begin(name, handle)?, info, position)
    }
}
