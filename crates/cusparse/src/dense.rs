//! Descriptors of dense vectors and matrices, and their numbers when work runs.

use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, PoisonError};

use linalg::{Kind, Operation, Scalar};
use mathlib::{Error, Handles, api};

use crate::call::{Array, Call, Done, size};
use crate::handle::{Place, Ptr};

use crate::multiply::combine;
use crate::sparse::{Address, kind_of, number_of};
use crate::status::Status;

/// A dense matrix (`cusparseDnMatDescr_t`).
#[derive(Clone, Copy, Debug)]
pub struct DnMat {
    /// Its rows and columns.
    pub size: [usize; 2],
    /// From one column (or row) to the next, in elements.
    pub ld: usize,
    /// Where it is.
    pub values: Address,
    /// The type of its elements.
    pub kind: Kind,
    /// Whether it lies by rows.
    pub by_rows: bool,
    /// How many matrices there are.
    pub count: i32,
    /// From one to the next, in elements.
    pub stride: i64,
}

/// A dense vector (`cusparseDnVecDescr_t`).
#[derive(Clone, Copy, Debug)]
pub struct DnVec {
    /// Its length.
    pub size: usize,
    /// Where it is.
    pub values: Address,
    /// The type of its elements.
    pub kind: Kind,
}

static MATRICES: Handles<Mutex<DnMat>> = Handles::new();
static VECTORS: Handles<Mutex<DnVec>> = Handles::new();

/// The object behind a descriptor.
fn object<T>(table: &Handles<Mutex<T>>, descriptor: Ptr) -> Result<Arc<Mutex<T>>, Status> {
    table.get(descriptor).ok_or(Status::INVALID_VALUE)
}

impl DnVec {
    /// What a descriptor says.
    ///
    /// # Errors
    /// If there is no such descriptor.
    pub fn of(descriptor: Ptr) -> Result<DnVec, Status> {
        Ok(*object(&VECTORS, descriptor)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Its elements.
    ///
    /// # Errors
    /// If they are not allocated.
    pub fn array(&self, call: Call, what: &str) -> Result<Array, Status> {
        let size = self.size;
        call.array(what, self.values.pointer(), self.kind, size, || format!("{size} elements"))
    }
}

/// A dense matrix whose elements are allocated.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    array: Array,
    size: [usize; 2],
    steps: [usize; 2],
    by_rows: bool,
}

impl DnMat {
    /// What a descriptor says.
    ///
    /// # Errors
    /// If there is no such descriptor.
    pub fn of(descriptor: Ptr) -> Result<DnMat, Status> {
        Ok(*object(&MATRICES, descriptor)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A matrix by columns, as functions without descriptors name it.
    ///
    /// # Errors
    /// If its columns overlap.
    pub fn by_columns(
        [rows, columns]: [usize; 2],
        ld: c_int,
        values: Ptr,
        kind: Kind,
    ) -> Result<DnMat, Status> {
        let ld = size(ld)?;
        if ld < rows.max(1) {
            return Err(Status::INVALID_VALUE);
        }
        let values = Address::of(values);
        Ok(DnMat { size: [rows, columns], ld, values, kind, by_rows: false, count: 1, stride: 0 })
    }

    /// Whether the matrices of a batch lie over each other, so that none can be written.
    pub fn overlaps(&self) -> bool {
        self.count > 1 && self.stride == 0 && !self.size.contains(&0)
    }

    /// The matrix of a batch.
    ///
    /// # Errors
    /// If it is not allocated.
    pub fn block(&self, call: Call, what: &str, of_batch: usize) -> Result<Block, Status> {
        let [rows, columns] = self.size;
        let steps = if self.by_rows { [self.ld, 1] } else { [1, self.ld] };
        let span = match rows.min(columns) {
            0 => 0,
            _ => {
                let last = (columns - 1).saturating_mul(steps[1]).saturating_add(1);
                (rows - 1).saturating_mul(steps[0]).saturating_add(last)
            }
        };
        let bytes =
            (self.stride.wrapping_mul(of_batch as i64) as isize).wrapping_mul(self.kind.bytes() as isize);
        let order = if self.by_rows { "by rows" } else { "by columns" };
        let shape = || format!("{rows} x {columns} {order}, ld {}", self.ld);
        let pointer = self.values.pointer().wrapping_byte_offset(bytes);
        Ok(Block {
            array: call.array(what, pointer, self.kind, span, shape)?,
            size: self.size,
            steps,
            by_rows: self.by_rows,
        })
    }
}

impl Block {
    /// Its elements by rows without gaps, after an operation.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn load<T: Scalar>(&self, call: Call, op: Operation) -> Result<Vec<T>, Error> {
        let reached = self.array.reach(call)?;
        let [rows, columns] = op.stored(self.size);
        let [down, across] = op.stored(self.steps);
        let mut values = Vec::with_capacity(rows * columns);
        for i in 0..rows {
            values.extend((0..columns).map(|j| op.element(reached.get::<T>(i * down + j * across))));
        }
        Ok(values)
    }

    /// How many columns it has.
    pub fn columns(&self) -> usize {
        self.size[1]
    }

    /// How many elements it has.
    pub fn count(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// Writes elements, given by rows without gaps.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn store<T: Scalar>(&self, call: Call, values: &[T]) -> Done {
        self.update(call, [T::ONE, T::default()], values)
    }

    /// Makes it `alpha sums + beta` times what it was; the sums lie by rows without gaps.
    ///
    /// # Errors
    /// If the memory has gone.
    pub fn update<T: Scalar>(&self, call: Call, [alpha, beta]: [T; 2], sums: &[T]) -> Done {
        let reached = self.array.reach(call)?;
        let ([rows, columns], [down, across]) = (self.size, self.steps);
        assert_eq!(sums.len(), rows * columns, "all elements");
        for (at, &sum) in sums.iter().enumerate() {
            let place = at / columns * down + at % columns * across;
            reached.put(place, combine([alpha, beta], sum, || reached.get(place)));
        }
        let (lines, length, ld) = if self.by_rows { (rows, columns, down) } else { (columns, rows, across) };
        if length == ld {
            reached.wrote(0, lines * length);
        } else {
            (0..lines).for_each(|line| reached.wrote(line * ld, length));
        }
        Ok(())
    }
}

api! { API: Status, name;
    /// Describes a dense vector.
    cusparseCreateDnVec cusparseCreateConstDnVec(vector: Place<'_, Ptr>, length: i64, values: Ptr, kind: c_uint) {
        if vector.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        let (size, kind) = (size(length)?, kind_of(kind)?);
        vector.write(VECTORS.insert(Mutex::new(DnVec { size, values: Address::of(values), kind })))
    }

    /// Gives the descriptor of a dense vector back.
    cusparseDestroyDnVec(vector: Ptr) { VECTORS.remove(vector).map(drop).ok_or(Status::INVALID_VALUE) }

    /// What the descriptor of a dense vector says.
    cusparseDnVecGet cusparseConstDnVecGet(
        vector: Ptr, length: Place<'_, i64>, values: Place<'_, Ptr>, kind: Place<'_, c_uint>,
    ) {
        let vector = DnVec::of(vector)?;
        length.write(vector.size as i64)?;
        values.write(vector.values.pointer())?;
        kind.write(number_of(vector.kind))
    }

    /// Where the elements of a dense vector are.
    cusparseDnVecGetValues cusparseConstDnVecGetValues(vector: Ptr, values: Place<'_, Ptr>) {
        values.write(DnVec::of(vector)?.values.pointer())
    }

    /// Chooses where the elements of a dense vector are.
    cusparseDnVecSetValues(vector: Ptr, values: Ptr) {
        object(&VECTORS, vector)?.lock().unwrap_or_else(PoisonError::into_inner).values = Address::of(values);
        Ok(())
    }

    /// Describes a dense matrix, by columns (1) or by rows (2).
    cusparseCreateDnMat cusparseCreateConstDnMat(
        matrix: Place<'_, Ptr>, rows: i64, columns: i64, ld: i64, values: Ptr, kind: c_uint, order: c_uint,
    ) {
        let (dimensions, ld) = ([size(rows)?, size(columns)?], size(ld)?);
        let by_rows = match order {
            1 | 2 => order == 2,
            _ => return Err(Status::INVALID_VALUE),
        };
        if matrix.is_null() || ld < dimensions[usize::from(by_rows)] {
            return Err(Status::INVALID_VALUE);
        }
        matrix.write(MATRICES.insert(Mutex::new(DnMat {
            size: dimensions,
            ld,
            values: Address::of(values),
            kind: kind_of(kind)?,
            by_rows,
            count: 1,
            stride: 0,
        })))
    }

    /// Gives the descriptor of a dense matrix back.
    cusparseDestroyDnMat(matrix: Ptr) { MATRICES.remove(matrix).map(drop).ok_or(Status::INVALID_VALUE) }

    /// What the descriptor of a dense matrix says.
    cusparseDnMatGet cusparseConstDnMatGet(
        matrix: Ptr, rows: Place<'_, i64>, columns: Place<'_, i64>, ld: Place<'_, i64>, values: Place<'_, Ptr>,
        kind: Place<'_, c_uint>, order: Place<'_, c_uint>,
    ) {
        let matrix = DnMat::of(matrix)?;
        rows.write(matrix.size[0] as i64)?;
        columns.write(matrix.size[1] as i64)?;
        ld.write(matrix.ld as i64)?;
        values.write(matrix.values.pointer())?;
        kind.write(number_of(matrix.kind))?;
        order.write(if matrix.by_rows { 2 } else { 1 })
    }

    /// Where the elements of a dense matrix are.
    cusparseDnMatGetValues cusparseConstDnMatGetValues(matrix: Ptr, values: Place<'_, Ptr>) {
        values.write(DnMat::of(matrix)?.values.pointer())
    }

    /// Chooses where the elements of a dense matrix are.
    cusparseDnMatSetValues(matrix: Ptr, values: Ptr) {
        object(&MATRICES, matrix)?.lock().unwrap_or_else(PoisonError::into_inner).values = Address::of(values);
        Ok(())
    }

    /// Says that there are several dense matrices, and how far they are apart.
    cusparseDnMatSetStridedBatch(matrix: Ptr, count: c_int, stride: i64) {
        if count < 1 || stride < 0 {
            return Err(Status::INVALID_VALUE);
        }
        let matrix = object(&MATRICES, matrix)?;
        let mut matrix = matrix.lock().unwrap_or_else(PoisonError::into_inner);
        (matrix.count, matrix.stride) = (count, stride);
        Ok(())
    }

    /// How many dense matrices a descriptor is for, and how far they are apart.
    cusparseDnMatGetStridedBatch(matrix: Ptr, count: Place<'_, c_int>, stride: Place<'_, i64>) {
        let matrix = DnMat::of(matrix)?;
        count.write(matrix.count)?;
        stride.write(matrix.stride)
    }
}
