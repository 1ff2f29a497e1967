//! Descriptors of sparse matrices and vectors: where their arrays are, and what is in them. The arrays are checked when a function
//! uses them.

use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, PoisonError};

use linalg::Kind;
use mathlib::{Handles, api};

use crate::call::{Width, either, size};
use crate::handle::{Place, Ptr};
use crate::status::Status;

/// An address of the program's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address(usize);

impl Address {
    /// The address of a pointer.
    pub fn of(pointer: Ptr) -> Address {
        Address(pointer.expose_provenance())
    }

    /// The pointer.
    pub fn pointer(self) -> Ptr {
        std::ptr::with_exposed_provenance_mut(self.0)
    }

    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// How a matrix is stored (`cusparseFormat_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the manual's names")]
pub enum Format {
    Csr = 1,
    Csc = 2,
    Coo = 3,
    BlockedEll = 5,
    Bsr = 6,
    SlicedEll = 7,
}

/// A sparse matrix (`cusparseSpMatDescr_t`).
#[derive(Clone, Copy, Debug)]
pub struct SpMat {
    /// How it is stored.
    pub format: Format,
    /// Its rows and columns.
    pub size: [usize; 2],
    /// Its entries; blocks for [`Format::Bsr`].
    pub nnz: usize,
    /// Offsets or rows (null for [`Format::BlockedEll`]), the other indices, and values.
    pub pointers: [Address; 3],
    /// How wide the indices of the two arrays are.
    pub widths: [Width; 2],
    /// The first index, 0 or 1.
    pub base: i64,
    /// The type of the values.
    pub kind: Kind,
    /// Rows and columns of a block ([`Format::Bsr`]); its size and the columns that are stored ([`Format::BlockedEll`]); the rows of a
    /// slice and the values that are stored ([`Format::SlicedEll`]).
    pub shape: [usize; 2],
    /// Whether the values of a block lie by rows ([`Format::Bsr`]).
    pub by_rows: bool,
    /// How many matrices there are.
    pub count: i32,
    /// From one to the next: in offsets, in indices, in values.
    pub strides: [i64; 3],
    /// Whether triangular systems use its upper triangle.
    pub upper: bool,
    /// Whether triangular systems take its diagonal for ones.
    pub unit: bool,
}

/// A sparse vector (`cusparseSpVecDescr_t`).
#[derive(Clone, Copy, Debug)]
pub struct SpVec {
    /// Its length.
    pub size: usize,
    /// Its entries.
    pub nnz: usize,
    /// Indices and values.
    pub pointers: [Address; 2],
    /// How wide the indices are.
    pub width: Width,
    /// The first index, 0 or 1.
    pub base: i64,
    /// The type of the values.
    pub kind: Kind,
}

static MATRICES: Handles<Mutex<SpMat>> = Handles::new();
static VECTORS: Handles<Mutex<SpVec>> = Handles::new();

/// The object behind a descriptor.
fn object<T>(table: &Handles<Mutex<T>>, descriptor: Ptr) -> Result<Arc<Mutex<T>>, Status> {
    table.get(descriptor).ok_or(Status::INVALID_VALUE)
}

impl SpMat {
    /// What a descriptor says.
    ///
    /// # Errors
    /// If there is no such descriptor.
    pub fn of(descriptor: Ptr) -> Result<SpMat, Status> {
        Ok(*object(&MATRICES, descriptor)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes a descriptor.
    ///
    /// # Errors
    /// If there is no such descriptor, or as the change.
    pub fn change(
        descriptor: Ptr,
        change: impl FnOnce(&mut SpMat) -> Result<(), Status>,
    ) -> Result<(), Status> {
        change(&mut object(&MATRICES, descriptor)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A matrix of one of the formats, without its particulars.
    fn new(
        format: Format,
        sizes: [i64; 3],
        pointers: [Ptr; 3],
        widths: [c_uint; 2],
        base: c_uint,
        kind: c_uint,
    ) -> Result<SpMat, Status> {
        let [rows, columns, nnz] = sizes;
        Ok(SpMat {
            format,
            size: [size(rows)?, size(columns)?],
            nnz: size(nnz)?,
            pointers: pointers.map(Address::of),
            widths: [Width::of(widths[0])?, Width::of(widths[1])?],
            base: i64::from(either(base)?),
            kind: kind_of(kind)?,
            shape: [1, 1],
            by_rows: true,
            count: 1,
            strides: [0; 3],
            upper: false,
            unit: false,
        })
    }

    /// Gives the program a descriptor.
    fn give(self, place: Place<'_, Ptr>) -> Result<(), Status> {
        if place.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        place.write(MATRICES.insert(Mutex::new(self)))
    }

    /// The same, if it is of this format.
    fn expect(self, format: Format) -> Result<SpMat, Status> {
        if self.format == format { Ok(self) } else { Err(Status::INVALID_VALUE) }
    }

    /// How many values are stored.
    pub fn stored(&self) -> usize {
        match self.format {
            Format::Csr | Format::Csc | Format::Coo => self.nnz,
            Format::Bsr => self.nnz.saturating_mul(self.shape[0]).saturating_mul(self.shape[1]),
            Format::BlockedEll => self.size[0].saturating_mul(self.shape[1]),
            Format::SlicedEll => self.shape[1],
        }
    }
}

/// A type of numbers in memory.
///
/// # Errors
/// If the library does not have it.
pub fn kind_of(number: c_uint) -> Result<Kind, Status> {
    Kind::of(number).ok_or(if number <= 15 { Status::NOT_SUPPORTED } else { Status::INVALID_VALUE })
}

/// The number of a type of numbers (`cudaDataType`).
pub fn number_of(kind: Kind) -> c_uint {
    (0..16).find(|&number| Kind::of(number) == Some(kind)).unwrap_or_default()
}

impl SpVec {
    /// What a descriptor says.
    ///
    /// # Errors
    /// If there is no such descriptor.
    pub fn of(descriptor: Ptr) -> Result<SpVec, Status> {
        Ok(*object(&VECTORS, descriptor)?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Places for results, the ones of them that the program wants.
type Sizes<'a> = [Place<'a, i64>; 3];

/// Writes what all formats have.
fn tell(
    matrix: &SpMat,
    [rows, columns, nnz]: Sizes<'_>,
    pointers: [Place<'_, Ptr>; 3],
    base: Place<'_, c_uint>,
    kind: Place<'_, c_uint>,
) -> Result<(), Status> {
    rows.write(matrix.size[0] as i64)?;
    columns.write(matrix.size[1] as i64)?;
    nnz.write(matrix.nnz as i64)?;
    for (place, address) in pointers.into_iter().zip(matrix.pointers) {
        place.write(address.pointer())?;
    }
    base.write(matrix.base as c_uint)?;
    kind.write(number_of(matrix.kind))
}

/// Chooses the arrays of a matrix.
fn set_pointers(descriptor: Ptr, format: Format, pointers: [Ptr; 3]) -> Result<(), Status> {
    SpMat::change(descriptor, |matrix| {
        matrix.expect(format)?;
        matrix.pointers = pointers.map(Address::of);
        Ok(())
    })
}

/// Says how many matrices there are, and how they lie.
fn set_batch(descriptor: Ptr, format: Format, count: c_int, strides: [i64; 3]) -> Result<(), Status> {
    if count < 1 || strides.iter().any(|&stride| stride < 0) {
        return Err(Status::INVALID_VALUE);
    }
    SpMat::change(descriptor, |matrix| {
        matrix.expect(format)?;
        (matrix.count, matrix.strides) = (count, strides);
        Ok(())
    })
}

api! { API: Status, name;
    /// Describes a matrix by compressed rows (CSR): offsets of rows, indices of columns, values.
    cusparseCreateCsr cusparseCreateConstCsr(
        matrix: Place<'_, Ptr>, rows: i64, columns: i64, nnz: i64, offsets: Ptr, indices: Ptr, values: Ptr,
        offset_type: c_uint, index_type: c_uint, base: c_uint, kind: c_uint,
    ) {
        let widths = [offset_type, index_type];
        SpMat::new(Format::Csr, [rows, columns, nnz], [offsets, indices, values], widths, base, kind)?.give(matrix)
    }

    /// Describes a matrix by compressed columns (CSC): offsets of columns, indices of rows, values.
    cusparseCreateCsc cusparseCreateConstCsc(
        matrix: Place<'_, Ptr>, rows: i64, columns: i64, nnz: i64, offsets: Ptr, indices: Ptr, values: Ptr,
        offset_type: c_uint, index_type: c_uint, base: c_uint, kind: c_uint,
    ) {
        let widths = [offset_type, index_type];
        SpMat::new(Format::Csc, [rows, columns, nnz], [offsets, indices, values], widths, base, kind)?.give(matrix)
    }

    /// Describes a matrix by the row, column and value of each entry (COO).
    cusparseCreateCoo cusparseCreateConstCoo(
        matrix: Place<'_, Ptr>, rows: i64, columns: i64, nnz: i64, row_indices: Ptr, column_indices: Ptr, values: Ptr,
        index_type: c_uint, base: c_uint, kind: c_uint,
    ) {
        let pointers = [row_indices, column_indices, values];
        SpMat::new(Format::Coo, [rows, columns, nnz], pointers, [index_type; 2], base, kind)?.give(matrix)
    }

    /// Describes a matrix by compressed rows of dense blocks (BSR). Sizes are those in blocks.
    cusparseCreateBsr cusparseCreateConstBsr(
        matrix: Place<'_, Ptr>, rows: i64, columns: i64, nnz: i64, block_rows: i64, block_columns: i64,
        offsets: Ptr, indices: Ptr, values: Ptr, offset_type: c_uint, index_type: c_uint, base: c_uint, kind: c_uint,
        order: c_uint,
    ) {
        let shape = [size(block_rows)?, size(block_columns)?];
        if shape.contains(&0) || !matches!(order, 1 | 2) {
            return Err(Status::INVALID_VALUE);
        }
        let all = |count: i64, of: i64| count.checked_mul(of).ok_or(Status::INVALID_VALUE);
        let sizes = [all(rows, block_rows)?, all(columns, block_columns)?, nnz];
        let widths = [offset_type, index_type];
        let common = SpMat::new(Format::Bsr, sizes, [offsets, indices, values], widths, base, kind)?;
        SpMat { shape, by_rows: order == 2, ..common }.give(matrix)
    }

    /// Describes a matrix with as many square blocks in each row of blocks (Blocked-ELL). `columns_stored` counts single columns.
    cusparseCreateBlockedEll cusparseCreateConstBlockedEll(
        matrix: Place<'_, Ptr>, rows: i64, columns: i64, block: i64, columns_stored: i64, indices: Ptr, values: Ptr,
        index_type: c_uint, base: c_uint, kind: c_uint,
    ) {
        let shape = [size(block)?, size(columns_stored)?];
        let sizes = [size(rows)?, size(columns)?, shape[1]];
        if shape[0] == 0 || sizes.iter().any(|size| !size.is_multiple_of(shape[0])) || shape[1] > sizes[1] {
            return Err(Status::INVALID_VALUE);
        }
        let nnz = rows.checked_mul(columns_stored).ok_or(Status::INVALID_VALUE)?;
        let pointers = [std::ptr::null_mut(), indices, values];
        let sizes = [rows, columns, nnz];
        let common = SpMat::new(Format::BlockedEll, sizes, pointers, [index_type; 2], base, kind)?;
        SpMat { shape, ..common }.give(matrix)
    }

    /// Describes a matrix by slices of rows, whose rows have as many entries each (Sliced-ELL).
    cusparseCreateSlicedEll cusparseCreateConstSlicedEll(
        matrix: Place<'_, Ptr>, rows: i64, columns: i64, nnz: i64, stored: i64, slice: i64, offsets: Ptr, indices: Ptr,
        values: Ptr, offset_type: c_uint, index_type: c_uint, base: c_uint, kind: c_uint,
    ) {
        let shape = [size(slice)?, size(stored)?];
        if shape[0] == 0 || nnz > stored {
            return Err(Status::INVALID_VALUE);
        }
        let widths = [offset_type, index_type];
        let pointers = [offsets, indices, values];
        let common = SpMat::new(Format::SlicedEll, [rows, columns, nnz], pointers, widths, base, kind)?;
        SpMat { shape, ..common }.give(matrix)
    }

    /// Gives the descriptor of a sparse matrix back.
    cusparseDestroySpMat(matrix: Ptr) {
        MATRICES.remove(matrix).map(drop).ok_or(Status::INVALID_VALUE)
    }

    /// What the descriptor of a matrix by compressed rows says.
    cusparseCsrGet cusparseConstCsrGet(
        matrix: Ptr, rows: Place<'_, i64>, columns: Place<'_, i64>, nnz: Place<'_, i64>, offsets: Place<'_, Ptr>,
        indices: Place<'_, Ptr>, values: Place<'_, Ptr>, offset_type: Place<'_, c_uint>,
        index_type: Place<'_, c_uint>, base: Place<'_, c_uint>, kind: Place<'_, c_uint>,
    ) {
        let matrix = SpMat::of(matrix)?.expect(Format::Csr)?;
        offset_type.write(matrix.widths[0].number())?;
        index_type.write(matrix.widths[1].number())?;
        tell(&matrix, [rows, columns, nnz], [offsets, indices, values], base, kind)
    }

    /// What the descriptor of a matrix by compressed columns says.
    cusparseCscGet cusparseConstCscGet(
        matrix: Ptr, rows: Place<'_, i64>, columns: Place<'_, i64>, nnz: Place<'_, i64>, offsets: Place<'_, Ptr>,
        indices: Place<'_, Ptr>, values: Place<'_, Ptr>, offset_type: Place<'_, c_uint>,
        index_type: Place<'_, c_uint>, base: Place<'_, c_uint>, kind: Place<'_, c_uint>,
    ) {
        let matrix = SpMat::of(matrix)?.expect(Format::Csc)?;
        offset_type.write(matrix.widths[0].number())?;
        index_type.write(matrix.widths[1].number())?;
        tell(&matrix, [rows, columns, nnz], [offsets, indices, values], base, kind)
    }

    /// What the descriptor of a matrix by entries says.
    cusparseCooGet cusparseConstCooGet(
        matrix: Ptr, rows: Place<'_, i64>, columns: Place<'_, i64>, nnz: Place<'_, i64>, row_indices: Place<'_, Ptr>,
        column_indices: Place<'_, Ptr>, values: Place<'_, Ptr>, index_type: Place<'_, c_uint>,
        base: Place<'_, c_uint>, kind: Place<'_, c_uint>,
    ) {
        let matrix = SpMat::of(matrix)?.expect(Format::Coo)?;
        index_type.write(matrix.widths[0].number())?;
        tell(&matrix, [rows, columns, nnz], [row_indices, column_indices, values], base, kind)
    }

    /// What the descriptor of a matrix in Blocked-ELL says.
    cusparseBlockedEllGet cusparseConstBlockedEllGet(
        matrix: Ptr, rows: Place<'_, i64>, columns: Place<'_, i64>, block: Place<'_, i64>,
        columns_stored: Place<'_, i64>, indices: Place<'_, Ptr>, values: Place<'_, Ptr>,
        index_type: Place<'_, c_uint>, base: Place<'_, c_uint>, kind: Place<'_, c_uint>,
    ) {
        let matrix = SpMat::of(matrix)?.expect(Format::BlockedEll)?;
        rows.write(matrix.size[0] as i64)?;
        columns.write(matrix.size[1] as i64)?;
        block.write(matrix.shape[0] as i64)?;
        columns_stored.write(matrix.shape[1] as i64)?;
        indices.write(matrix.pointers[1].pointer())?;
        values.write(matrix.pointers[2].pointer())?;
        index_type.write(matrix.widths[1].number())?;
        base.write(matrix.base as c_uint)?;
        kind.write(number_of(matrix.kind))
    }

    /// Chooses the arrays of a matrix by compressed rows.
    cusparseCsrSetPointers(matrix: Ptr, offsets: Ptr, indices: Ptr, values: Ptr) {
        set_pointers(matrix, Format::Csr, [offsets, indices, values])
    }

    /// Chooses the arrays of a matrix by compressed columns.
    cusparseCscSetPointers(matrix: Ptr, offsets: Ptr, indices: Ptr, values: Ptr) {
        set_pointers(matrix, Format::Csc, [offsets, indices, values])
    }

    /// Chooses the arrays of a matrix by entries.
    cusparseCooSetPointers(matrix: Ptr, row_indices: Ptr, column_indices: Ptr, values: Ptr) {
        set_pointers(matrix, Format::Coo, [row_indices, column_indices, values])
    }

    /// The rows, columns and entries of a sparse matrix.
    cusparseSpMatGetSize(matrix: Ptr, rows: Place<'_, i64>, columns: Place<'_, i64>, nnz: Place<'_, i64>) {
        let matrix = SpMat::of(matrix)?;
        rows.write(matrix.size[0] as i64)?;
        columns.write(matrix.size[1] as i64)?;
        nnz.write(matrix.nnz as i64)
    }

    /// How a sparse matrix is stored.
    cusparseSpMatGetFormat(matrix: Ptr, format: Place<'_, c_uint>) { format.write(SpMat::of(matrix)?.format as c_uint) }

    /// The first index of a sparse matrix, 0 or 1.
    cusparseSpMatGetIndexBase(matrix: Ptr, base: Place<'_, c_uint>) { base.write(SpMat::of(matrix)?.base as c_uint) }

    /// Where the values of a sparse matrix are.
    cusparseSpMatGetValues cusparseConstSpMatGetValues(matrix: Ptr, values: Place<'_, Ptr>) {
        values.write(SpMat::of(matrix)?.pointers[2].pointer())
    }

    /// Chooses where the values of a sparse matrix are.
    cusparseSpMatSetValues(matrix: Ptr, values: Ptr) {
        SpMat::change(matrix, |matrix| {
            matrix.pointers[2] = Address::of(values);
            Ok(())
        })
    }

    /// Says that there are several matrices by compressed rows: how far their offsets, and their indices and values, are apart.
    cusparseCsrSetStridedBatch(matrix: Ptr, count: c_int, offsets: i64, others: i64) {
        set_batch(matrix, Format::Csr, count, [offsets, others, others])
    }

    /// Says that there are several matrices by entries, and how far they are apart.
    cusparseCooSetStridedBatch(matrix: Ptr, count: c_int, stride: i64) {
        set_batch(matrix, Format::Coo, count, [stride; 3])
    }

    /// Says that there are several matrices of blocks: how far their offsets, indices and values are apart.
    cusparseBsrSetStridedBatch(matrix: Ptr, count: c_int, offsets: i64, indices: i64, values: i64) {
        set_batch(matrix, Format::Bsr, count, [offsets, indices, values])
    }

    /// How many matrices a descriptor is for.
    cusparseSpMatGetStridedBatch(matrix: Ptr, count: Place<'_, c_int>) { count.write(SpMat::of(matrix)?.count) }

    /// What triangular systems take of a matrix: its fill mode (0) or the type of its diagonal (1).
    cusparseSpMatGetAttribute(matrix: Ptr, attribute: c_uint, data: Place<'_, c_uint>, bytes: usize) {
        let matrix = SpMat::of(matrix)?;
        let value = if either(attribute)? { matrix.unit } else { matrix.upper };
        if bytes == 4 { data.write(value.into()) } else { Err(Status::INVALID_VALUE) }
    }

    /// Chooses what triangular systems take of a matrix: its fill mode (0) or the type of its diagonal (1).
    cusparseSpMatSetAttribute(matrix: Ptr, attribute: c_uint, data: Place<'_, c_uint>, bytes: usize) {
        if bytes != 4 {
            return Err(Status::INVALID_VALUE);
        }
        let value = either(data.read()?)?;
        let is_diagonal = either(attribute)?;
        SpMat::change(matrix, |matrix| {
            *(if is_diagonal { &mut matrix.unit } else { &mut matrix.upper }) = value;
            Ok(())
        })
    }

    /// Describes a sparse vector: indices and values.
    cusparseCreateSpVec cusparseCreateConstSpVec(
        vector: Place<'_, Ptr>, length: i64, nnz: i64, indices: Ptr, values: Ptr, index_type: c_uint, base: c_uint,
        kind: c_uint,
    ) {
        let (length, nnz) = (size(length)?, size(nnz)?);
        if vector.is_null() || nnz > length {
            return Err(Status::INVALID_VALUE);
        }
        vector.write(VECTORS.insert(Mutex::new(SpVec {
            size: length,
            nnz,
            pointers: [indices, values].map(Address::of),
            width: Width::of(index_type)?,
            base: i64::from(either(base)?),
            kind: kind_of(kind)?,
        })))
    }

    /// Gives the descriptor of a sparse vector back.
    cusparseDestroySpVec(vector: Ptr) { VECTORS.remove(vector).map(drop).ok_or(Status::INVALID_VALUE) }

    /// What the descriptor of a sparse vector says.
    cusparseSpVecGet cusparseConstSpVecGet(
        vector: Ptr, length: Place<'_, i64>, nnz: Place<'_, i64>, indices: Place<'_, Ptr>, values: Place<'_, Ptr>,
        index_type: Place<'_, c_uint>, base: Place<'_, c_uint>, kind: Place<'_, c_uint>,
    ) {
        let vector = SpVec::of(vector)?;
        length.write(vector.size as i64)?;
        nnz.write(vector.nnz as i64)?;
        indices.write(vector.pointers[0].pointer())?;
        values.write(vector.pointers[1].pointer())?;
        index_type.write(vector.width.number())?;
        base.write(vector.base as c_uint)?;
        kind.write(number_of(vector.kind))
    }

    /// The first index of a sparse vector, 0 or 1.
    cusparseSpVecGetIndexBase(vector: Ptr, base: Place<'_, c_uint>) { base.write(SpVec::of(vector)?.base as c_uint) }

    /// Where the values of a sparse vector are.
    cusparseSpVecGetValues cusparseConstSpVecGetValues(vector: Ptr, values: Place<'_, Ptr>) {
        values.write(SpVec::of(vector)?.pointers[1].pointer())
    }

    /// Chooses where the values of a sparse vector are.
    cusparseSpVecSetValues(vector: Ptr, values: Ptr) {
        let vector = object(&VECTORS, vector)?;
        vector.lock().unwrap_or_else(PoisonError::into_inner).pointers[1] = Address::of(values);
        Ok(())
    }
}
