//! Matrices as cuBLASLt describes them: in several orders, alone, at strides, or by pointers.

use linalg::{Dense, Factor, Held, Kind, Matrix, Operation, Reached, Scalar};
use mathlib::{Error, Range};

use super::descriptor::{self, Layout};
use crate::call::{Call, matrix_of, refuse, size};
use crate::declare::Ptr;
use crate::gemm::pointers;
use crate::operand::kind;
use crate::status::Status;

/// `cublasLtOrder_t`: where elements lie. The last three are made of tiles of 32 columns, for Turing's and Ampere's tensor cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By columns.
    Column,
    /// By rows.
    Row,
    /// Tiles of 1 row.
    Column32,
    /// Tiles of 8 rows, of which 4 even ones lie before 4 odd ones, in groups of 4 columns.
    Column4Rows4,
    /// Tiles of 32 rows.
    Column32Rows32,
}

/// How a matrix lies in memory, and how many there are.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The type of its elements.
    pub kind: Kind,
    /// The order of its elements.
    pub order: Order,
    /// Its rows.
    pub rows: usize,
    /// Its columns.
    pub columns: usize,
    /// How many there are.
    pub count: usize,
    ld: usize,
    stride: i64,
    by_pointers: bool,
}

impl Place {
    /// The matrix that an object describes.
    ///
    /// # Errors
    /// If there is no such type or order, or the leading dimension is too small, or it is a planar or grouped one.
    pub fn read(object: Ptr) -> Result<Place, Status> {
        let layout: Layout = descriptor::read(object)?;
        let order = match layout.order {
            0 => Order::Column,
            1 => Order::Row,
            2 => Order::Column32,
            3 => Order::Column4Rows4,
            4 => Order::Column32Rows32,
            _ => return Err(Status::INVALID_VALUE),
        };
        if layout.plane_offset != 0 || layout.batch_mode > 1 {
            return Err(Status::NOT_SUPPORTED);
        }
        let whole = |number: u64| usize::try_from(number).map_err(|_| Status::INVALID_VALUE);
        let place = Place {
            kind: kind(layout.kind.into())?,
            order,
            rows: whole(layout.rows)?,
            columns: whole(layout.columns)?,
            count: size(layout.batch_count.into())?,
            ld: size(layout.ld)?,
            stride: layout.batch_stride,
            by_pointers: layout.batch_mode == 1,
        };
        if place.ld < place.stored()[0].max(1) { Err(Status::INVALID_VALUE) } else { Ok(place) }
    }

    /// The rows and columns of the matrix by columns that is in memory: a column of it is a row, or all tiles of 32 columns.
    fn stored(&self) -> [usize; 2] {
        let (rows, groups) = (self.rows, self.columns.div_ceil(32));
        let tiles = |of: usize| [rows.div_ceil(of).saturating_mul(of).saturating_mul(32), groups];
        match self.order {
            Order::Column => [rows, self.columns],
            Order::Row => [self.columns, rows],
            Order::Column32 => tiles(1),
            Order::Column4Rows4 => tiles(8),
            Order::Column32Rows32 => tiles(32),
        }
    }

    /// Where an element is in that matrix.
    fn element(&self, i: usize, j: usize) -> [usize; 2] {
        let (group, column) = (j / 32, j % 32);
        match self.order {
            Order::Column => [i, j],
            Order::Row => [j, i],
            Order::Column32 => [i * 32 + column, group],
            Order::Column4Rows4 => {
                let block = i / 8 * 8 + i % 2 * 4 + column / 8;
                let within = column % 8 / 4 * 4 + i % 8 / 2;
                [block * 32 + within * 4 + column % 4, group]
            }
            Order::Column32Rows32 => {
                let row = i % 32;
                let within = (row % 8 / 2 * 4 + row / 8) * 2 + row % 2;
                [(i / 32 * 32 + within) * 32 + column, group]
            }
        }
    }

    /// The matrices at a pointer of the program. Those that are not read need not be there.
    ///
    /// # Errors
    /// If they are not allocated.
    pub fn at(self, call: &Call, what: &'static str, pointer: Ptr, is_used: bool) -> Result<Operand, Status> {
        let [rows, columns] = if is_used { self.stored() } else { [0; 2] };
        if self.by_pointers && is_used {
            let list = pointers(*call, what, pointer, self.count)?;
            return Ok(Operand { place: self, what, known: Vec::new(), list: Some(list) });
        }
        let matrix = |i: usize| {
            let bytes = (i as i64).wrapping_mul(self.stride).wrapping_mul(self.kind.bytes() as i64);
            let pointer = pointer.wrapping_byte_offset(bytes as isize);
            let name = if self.count == 1 { what.to_owned() } else { format!("{what} of product {i}") };
            Matrix::at(&name, self.kind, pointer, [rows, columns], self.ld)
                .map_err(|error| refuse(call.name, &error))
        };
        let known = (0..self.count).map(matrix).collect::<Result<_, _>>()?;
        Ok(Operand { place: self, what, known, list: None })
    }

    /// Whether all matrices of a batch are the same one.
    pub fn is_repeated(&self) -> bool {
        self.count > 1 && self.stride == 0 && !self.by_pointers && self.rows.min(self.columns) > 0
    }
}

/// Matrices of the program, checked as far as they can be when it calls.
pub struct Operand {
    /// How each lies in memory.
    pub place: Place,
    what: &'static str,
    known: Vec<Matrix>,
    list: Option<Range>,
}

impl Operand {
    /// The matrices, when the work runs.
    ///
    /// # Errors
    /// If memory of theirs is not allocated.
    pub fn matrices(&self, call: Call) -> Result<Vec<Matrix>, Error> {
        let Some(list) = self.list else { return Ok(self.known.clone()) };
        let addresses: Vec<u64> = list.reach(call.name)?.read();
        let matrix = |(i, address): (usize, u64)| {
            let pointer = std::ptr::with_exposed_provenance_mut(address as usize);
            let what = format!("{} of product {i}", self.what);
            matrix_of(call, &what, self.place.kind, pointer, self.place.stored(), self.place.ld)
        };
        addresses.into_iter().enumerate().map(matrix).collect()
    }
}

/// A matrix that the host can reach.
pub struct Seen {
    place: Place,
    reached: Reached,
}

impl Seen {
    /// One of an operand's matrices.
    ///
    /// # Errors
    /// If its memory has gone.
    pub fn new(call: Call, place: Place, matrix: Matrix) -> Result<Seen, Error> {
        Ok(Seen { place, reached: matrix.reach(call.name)? })
    }

    /// An element.
    pub fn read<T: Scalar>(&self, i: usize, j: usize) -> T {
        let [row, column] = self.place.element(i, j);
        self.reached.read(row, column)
    }

    /// Writes all elements. What is not whole is rounded for integers, to nearest even, and what is too large for 8 bits saturates.
    pub fn write<T: Scalar>(&self, values: &Dense<T>) {
        let Place { rows, columns, kind, .. } = self.place;
        linalg::each(columns, rows * columns, |j| {
            for i in 0..rows {
                let [row, column] = self.place.element(i, j);
                let value = values.at(i, j);
                let value = match kind {
                    Kind::I8 => T::of(value.wide()[0].round_ties_even().clamp(-128.0, 127.0), 0.0),
                    _ => value,
                };
                self.reached.write(row, column, value);
            }
        });
        self.reached.wrote();
    }
}

/// A factor of a product: in place where its order allows it, or a copy.
pub enum Loaded<T> {
    /// A matrix by columns, or one by rows, which is the transposed one.
    Held(Held<T>, bool),
    /// A copy of one of tiles.
    Copied(Dense<T>),
}

impl<T: Scalar> Loaded<T> {
    /// The factor, when the work runs; with `tf32`, rounded as tensor cores do.
    ///
    /// # Errors
    /// If its memory has gone.
    pub fn new(call: Call, place: Place, matrix: Matrix, tf32: bool) -> Result<Loaded<T>, Error> {
        Ok(match place.order {
            Order::Column | Order::Row => {
                Loaded::Held(Held::new(call.name, matrix, tf32)?, place.order == Order::Row)
            }
            _ => {
                let seen = Seen::new(call, place, matrix)?;
                Loaded::Copied(Dense::new(place.rows, place.columns, |i, j| seen.read(i, j)))
            }
        })
    }

    /// It as a factor.
    pub fn factor(&self, operation: Operation) -> Factor<'_, T::Real> {
        match self {
            Loaded::Held(held, is_row) => {
                held.factor(Operation { transposed: operation.transposed != *is_row, ..operation })
            }
            Loaded::Copied(values) => values.part(0, 0, operation),
        }
    }
}
