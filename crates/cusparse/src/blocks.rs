//! Matrices of blocks: products, triangular systems, and conversions (`bsr...`, `gebsr...`).

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use linalg::{Kind, Operation, Scalar};
use mathlib::{Error, api};

use crate::call::{Array, Call, Width, either, operation, size, sizes};
use crate::declare::families;
use crate::dense::DnMat;
use crate::descriptor::{Description, counted, csr, gone};
use crate::factor::{Info, blocks};
use crate::handle::{Place, Ptr};
use crate::multiply::combine;
use crate::pattern::{Pattern, Source};
use crate::solve::System;
use crate::sparse::SpMat;
use crate::status::Status;

/// The blocks of a shape that elements lie in, by rows of blocks and in the order of columns.
fn grouped(elements: &Pattern, [down, across]: [usize; 2]) -> Pattern {
    let [rows, columns] = elements.size;
    let mut blocks = Pattern::of_size([rows.div_ceil(down), columns.div_ceil(across)]);
    for line in 0..blocks.size[0] {
        let of = elements.offsets[line * down]..elements.offsets[((line + 1) * down).min(rows)];
        let mut columns: Vec<usize> = elements.columns[of].iter().map(|column| column / across).collect();
        columns.sort_unstable();
        columns.dedup();
        blocks.columns.extend(columns);
        blocks.offsets.push(blocks.columns.len());
    }
    blocks.places = (0..blocks.columns.len()).collect();
    blocks
}

/// Writes the elements of A as C, a matrix of blocks whose offsets are known.
fn to_blocks<T: Scalar>(call: Call, a: SpMat, c: SpMat) -> Result<(), Status> {
    call.submit(move || {
        let a = counted(call, "A", a)?.matrix::<T>(call, Operation::NONE)?;
        let blocks = grouped(&a.pattern, c.shape);
        let to = counted(call, "C", c)?;
        let [down, across] = c.shape;
        if to.values.count != blocks.count() * down * across {
            return Err(
                call.fault(&format!("C has other blocks by its offsets than the {} of A", blocks.count()))
            );
        }
        to.write_pattern(call, &blocks)?;
        let mut values = vec![T::default(); to.values.count];
        for row in 0..a.pattern.size[0] {
            let line = blocks.row(row / down);
            for (column, value) in a.row(row) {
                let found = blocks.columns[line.clone()].binary_search(&(column / across));
                let block = line.start + found.map_err(|_| Error::INVALID_VALUE)?;
                let (r, s) = (row % down, column % across);
                let within = if c.by_rows { r * across + s } else { s * down + r };
                let place = &mut values[block * down * across + within];
                *place = *place + value;
            }
        }
        to.values.store(call, 0, &values)
    })
}

/// Counts the blocks of C that the elements of A lie in, and writes its offsets.
fn count_blocks(call: Call, a: SpMat, c: SpMat, total: Ptr) -> Result<(), Status> {
    let lines = a.size[0].div_ceil(c.shape[0]);
    let offsets = call.indices("the offsets of C", c.pointers[0].pointer(), Width::Int, lines + 1)?;
    call.deliver::<f64>(total, Kind::I32, move || {
        let blocks = grouped(&pattern_of(call, a)?, c.shape);
        offsets.store(call, blocks.offsets.iter().map(|&offset| offset as i64 + c.base))?;
        Ok(blocks.count() as f64)
    })
}

/// The elements of a matrix, whose values need not be there.
fn pattern_of(call: Call, a: SpMat) -> Result<Pattern, Error> {
    let lines = a.size[0] / a.shape[0];
    let offsets =
        call.indices("the offsets of A", a.pointers[0].pointer(), Width::Int, lines + 1).map_err(gone)?;
    let nnz = usize::try_from(offsets.load(call)?[lines] - a.base).unwrap_or(usize::MAX);
    Source::of_pattern(call, "A", SpMat { nnz, ..a }).map_err(gone)?.pattern(call)
}

/// Writes the elements of all blocks of A as compressed rows.
fn to_rows<T: Scalar>(call: Call, a: SpMat, c: SpMat) -> Result<(), Status> {
    let offsets = call.indices("the offsets of C", c.pointers[0].pointer(), Width::Int, c.size[0] + 1)?;
    call.submit(move || {
        let a = counted(call, "A", a)?.matrix::<T>(call, Operation::NONE)?;
        offsets.store(call, a.pattern.offsets.iter().map(|&offset| offset as i64 + c.base))?;
        let c = counted(call, "C", c)?;
        c.write_pattern(call, &a.pattern)?;
        c.values.store(call, 0, &a.values)
    })
}

/// A matrix of blocks for elements of so many rows and columns, which blocks need not divide.
fn rounded(
    direction: c_uint,
    [m, n]: [usize; 2],
    shape: [c_int; 2],
    of: Ptr,
    kind: Kind,
    arrays: [Ptr; 3],
) -> Result<SpMat, Status> {
    let to = |count: usize, by: c_int| match usize::try_from(by) {
        Ok(by) if by > 0 => c_int::try_from(count.div_ceil(by)).map_err(|_| Status::INVALID_VALUE),
        _ => Err(Status::INVALID_VALUE),
    };
    let lines = [to(m, shape[0])?, to(n, shape[1])?];
    blocks(direction, lines, 0, shape, Description::of(of)?.base, kind, arrays)
}

/// A matrix by compressed rows whose entries its offsets count.
fn rows(m: c_int, n: c_int, of: Ptr, kind: Kind, arrays: [Ptr; 3]) -> Result<SpMat, Status> {
    Ok(csr(sizes([m, n])?, 0, Description::of(of)?.base, kind, arrays))
}

/// y = alpha A x + beta y, where only some rows of blocks are computed.
fn masked<T: Scalar>(
    call: Call,
    a: SpMat,
    [mask, ends]: [Ptr; 2],
    count: usize,
    scalars: [Ptr; 2],
    [x, y]: [Ptr; 2],
) -> Result<(), Status> {
    let lines = a.size[0] / a.shape[0];
    let ints = |what: &str, pointer: Ptr, count: usize| call.indices(what, pointer, Width::Int, count);
    let mask = ints("the mask", mask, count)?;
    let starts = ints("the offsets of A", a.pointers[0].pointer(), lines)?;
    let (ends, columns) =
        (ints("the ends of A", ends, lines)?, ints("the columns of A", a.pointers[1].pointer(), a.nnz)?);
    let array = |what: &str, pointer: Ptr, count: usize| {
        call.array(what, pointer, T::KIND, count, || format!("{count} elements"))
    };
    let values = array("the values of A", a.pointers[2].pointer(), a.stored())?;
    let (x, y) = (array("x", x, a.size[1])?, array("y", y, a.size[0])?);
    let (alpha, beta) =
        (call.scalar::<T>("alpha", scalars[0], T::KIND)?, call.scalar::<T>("beta", scalars[1], T::KIND)?);
    call.submit(move || {
        let scalars = [alpha.get(call)?, beta.get(call)?];
        let (starts, ends, columns) = (starts.load(call)?, ends.load(call)?, columns.load(call)?);
        let (values, x, old) = (values.load::<T>(call)?, x.load::<T>(call)?, y.reach(call)?);
        let [down, across] = a.shape;
        let below = |raw: i64, limit: usize, what: &str| {
            let index = usize::try_from(raw - a.base).ok().filter(|&index| index < limit);
            index.ok_or_else(|| call.fault(&format!("{what} {raw} is not below {limit} from {} on", a.base)))
        };
        for line in mask.load(call)? {
            let line = below(line, lines, "the row of the mask")?;
            let [begin, end] = [starts[line], ends[line]].map(|offset| offset - a.base);
            if begin < 0 || end < begin || end > a.nnz as i64 {
                return Err(
                    call.fault(&format!("row {line} of A begins at {begin} and ends at {end} of {}", a.nnz))
                );
            }
            for r in 0..down {
                let mut sum = T::default();
                for block in (begin as usize..end as usize).filter(|_| !scalars[0].is_zero()) {
                    let column = below(columns[block], a.size[1] / across, "the column")? * across;
                    for s in 0..across {
                        let within = if a.by_rows { r * across + s } else { s * down + r };
                        sum = sum + values[block * down * across + within] * x[column + s];
                    }
                }
                let at = line * down + r;
                old.put(at, combine(scalars, sum, || old.get(at)));
                old.wrote(at, 1);
            }
        }
        Ok(())
    })
}

/// What both kinds of triangular systems take of a matrix of blocks.
#[derive(Clone)]
struct Triangle {
    a: SpMat,
    op: Operation,
    of: Description,
    info: Arc<Info>,
}

impl Triangle {
    /// # Errors
    /// If an argument has no meaning.
    fn of(
        direction: c_uint,
        op: c_uint,
        [mb, nnzb, block]: [c_int; 3],
        of: Ptr,
        arrays: [Ptr; 3],
        info: Ptr,
        kind: Kind,
    ) -> Result<Triangle, Status> {
        let description = Description::of(of)?;
        let a = blocks(direction, [mb, mb], nnzb, [block, block], description.base, kind, arrays)?;
        Ok(Triangle { a, op: operation(op)?, of: description, info: Info::of(info)? })
    }

    /// Looks for blocks of the diagonal that are missing.
    fn analyse(self, call: Call) -> Result<(), Status> {
        let source = Source::of_pattern(call, "A", self.a)?;
        let (block, base) = (self.a.shape[0], self.a.base as usize);
        call.submit(move || {
            let pattern = source.pattern(call)?;
            let is_there = |row: usize| pattern.row(row).any(|entry| pattern.columns[entry] == row);
            let missing = (0..pattern.size[0]).find(|&row| !is_there(row));
            self.info.note(missing.filter(|_| !self.of.unit).map(|row| row / block + base));
            Ok(())
        })
    }

    /// The system, when the work runs; notes a zero on its diagonal.
    fn system<T: Scalar>(&self, call: Call, source: &Source) -> Result<System<T>, Error> {
        let matrix = source.matrix::<T>(call, self.op)?;
        let zero = |&row: &usize| !matrix.row(row).any(|(column, value)| column == row && !value.is_zero());
        let zero = (0..matrix.pattern.size[0]).find(zero);
        self.info
            .note(zero.filter(|_| !self.of.unit).map(|row| row / self.a.shape[0] + self.a.base as usize));
        Ok(System { matrix, upper: self.of.upper != self.op.transposed, unit: self.of.unit })
    }

    /// op(A) x = alpha f.
    fn solve_vector<T: Scalar>(self, call: Call, alpha: Ptr, f: Ptr, x: Ptr) -> Result<(), Status> {
        let (source, m) = (Source::whole(call, "A", self.a)?, self.a.size[0]);
        let array =
            |what: &str, pointer: Ptr| call.array(what, pointer, T::KIND, m, || format!("{m} elements"));
        let (f, x): (Array, Array) = (array("f", f)?, array("x", x)?);
        let alpha = call.scalar::<T>("alpha", alpha, T::KIND)?;
        call.submit(move || {
            let alpha = alpha.get(call)?;
            let mut values: Vec<T> = f.load::<T>(call)?.into_iter().map(|value| alpha * value).collect();
            self.system::<T>(call, &source)?.solve(&mut values);
            x.store(call, 0, &values)
        })
    }

    /// op(A) op(X) = alpha op(B), where the second operation is transposition or nothing.
    fn solve_matrix<T: Scalar>(
        self,
        call: Call,
        op: c_uint,
        n: c_int,
        alpha: Ptr,
        [b, x]: [(Ptr, c_int); 2],
    ) -> Result<(), Status> {
        let source = Source::whole(call, "A", self.a)?;
        let (of_x, n) = (operation(op)?, size(n)?);
        let stored = of_x.stored([self.a.size[0], n]);
        let block = |what: &str, (pointer, ld): (Ptr, c_int)| {
            DnMat::by_columns(stored, ld, pointer, T::KIND)?.block(call, what, 0)
        };
        let (b, x) = (block("B", b)?, block("X", x)?);
        let alpha = call.scalar::<T>("alpha", alpha, T::KIND)?;
        call.submit(move || {
            let alpha = alpha.get(call)?;
            let sides: Vec<T> = b.load::<T>(call, of_x)?.into_iter().map(|value| alpha * value).collect();
            let solved = self.system::<T>(call, &source)?.solve_all(&sides, n);
            let [rows, columns] = stored;
            let back = (0..rows * columns).map(|at| match of_x.transposed {
                true => of_x.element(solved[at % columns * n + at / columns]),
                false => solved[at],
            });
            x.store(call, &back.collect::<Vec<T>>())
        })
    }
}

families! { FAMILIES:
    /// y = alpha A x + beta y, for a matrix of square blocks.
    "bsrmv" (
        direction: c_uint, op: c_uint, mb: c_int, nb: c_int, nnzb: c_int, alpha: Ptr, of: Ptr, values: Ptr, offsets: Ptr,
        columns: Ptr, block: c_int, x: Ptr, beta: Ptr, y: Ptr,
    ) |call| {
        let base = Description::of(of)?.base;
        let a = blocks(direction, [mb, nb], nnzb, [block, block], base, T::KIND, [values, offsets, columns])?;
        if operation(op)? != Operation::NONE {
            return Err(Status::NOT_SUPPORTED);
        }
        let source = Source::whole(call, "A", a)?;
        let array = |what: &str, pointer: Ptr, count: usize| call.array(what, pointer, T::KIND, count, || format!("{count} elements"));
        let (x, y) = (array("x", x, a.size[1])?, array("y", y, a.size[0])?);
        let (alpha, beta) = (call.scalar::<T>("alpha", alpha, T::KIND)?, call.scalar::<T>("beta", beta, T::KIND)?);
        call.submit(move || {
            let scalars = [alpha.get(call)?, beta.get(call)?];
            let sums = match scalars[0].is_zero() {
                true => vec![T::default(); y.count],
                false => source.matrix::<T>(call, Operation::NONE)?.times(&x.load(call)?, 1),
            };
            let old = y.reach(call)?;
            sums.into_iter().enumerate().for_each(|(at, sum)| old.put(at, combine(scalars, sum, || old.get(at))));
            old.wrote(0, y.count);
            Ok(())
        })
    }

    /// y = alpha A x + beta y at the rows of blocks that a mask names; others stay as they are.
    "bsrxmv" (
        direction: c_uint, op: c_uint, count: c_int, mb: c_int, nb: c_int, nnzb: c_int, alpha: Ptr, of: Ptr, values: Ptr,
        mask: Ptr, offsets: Ptr, ends: Ptr, columns: Ptr, block: c_int, x: Ptr, beta: Ptr, y: Ptr,
    ) |call| {
        let base = Description::of(of)?.base;
        let a = blocks(direction, [mb, nb], nnzb, [block, block], base, T::KIND, [values, offsets, columns])?;
        if operation(op)? != Operation::NONE {
            return Err(Status::NOT_SUPPORTED);
        }
        masked::<T>(call, a, [mask, ends], size(count)?, [alpha, beta], [x, y])
    }

    /// C = alpha A op(B) + beta C, for a matrix of square blocks and dense ones by columns.
    "bsrmm" (
        direction: c_uint, op_a: c_uint, op_b: c_uint, mb: c_int, n: c_int, kb: c_int, nnzb: c_int, alpha: Ptr, of: Ptr,
        values: Ptr, offsets: Ptr, columns: Ptr, block: c_int, b: Ptr, ldb: c_int, beta: Ptr, c: Ptr, ldc: c_int,
    ) |call| {
        let base = Description::of(of)?.base;
        let a = blocks(direction, [mb, kb], nnzb, [block, block], base, T::KIND, [values, offsets, columns])?;
        let (of_b, n) = (operation(op_b)?, size(n)?);
        if operation(op_a)? != Operation::NONE || of_b.conjugated {
            return Err(Status::NOT_SUPPORTED);
        }
        let source = Source::whole(call, "A", a)?;
        let b = DnMat::by_columns(of_b.stored([a.size[1], n]), ldb, b, T::KIND)?.block(call, "B", 0)?;
        let c = DnMat::by_columns([a.size[0], n], ldc, c, T::KIND)?.block(call, "C", 0)?;
        let (alpha, beta) = (call.scalar::<T>("alpha", alpha, T::KIND)?, call.scalar::<T>("beta", beta, T::KIND)?);
        if c.count() == 0 {
            return Ok(());
        }
        call.submit(move || {
            let scalars = [alpha.get(call)?, beta.get(call)?];
            let sums = match scalars[0].is_zero() {
                true => vec![T::default(); c.count()],
                false => source.matrix::<T>(call, Operation::NONE)?.times(&b.load(call, of_b)?, n),
            };
            c.update(call, scalars, &sums)
        })
    }

    /// The device memory that `bsrsv2` needs: none.
    "bsrsv2_bufferSize" (
        direction: c_uint, op: c_uint, mb: c_int, nnzb: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr,
        block: c_int, info: Ptr, bytes: Place<'_, c_int>,
    ) |call| {
        Triangle::of(direction, op, [mb, nnzb, block], of, [values, offsets, columns], info, T::KIND)?;
        bytes.write(0)
    }

    /// Looks for blocks of the diagonal that are missing.
    "bsrsv2_analysis" (
        direction: c_uint, op: c_uint, mb: c_int, nnzb: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr,
        block: c_int, info: Ptr, _policy: c_uint, _buffer: Ptr,
    ) |call| {
        Triangle::of(direction, op, [mb, nnzb, block], of, [values, offsets, columns], info, T::KIND)?.analyse(call)
    }

    /// Solves op(A) x = alpha f with a triangle of a matrix of square blocks.
    "bsrsv2_solve" (
        direction: c_uint, op: c_uint, mb: c_int, nnzb: c_int, alpha: Ptr, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr,
        block: c_int, info: Ptr, f: Ptr, x: Ptr, _policy: c_uint, _buffer: Ptr,
    ) |call| {
        let given = Triangle::of(direction, op, [mb, nnzb, block], of, [values, offsets, columns], info, T::KIND)?;
        given.solve_vector::<T>(call, alpha, f, x)
    }

    /// The device memory that `bsrsm2` needs: none.
    "bsrsm2_bufferSize" (
        direction: c_uint, op: c_uint, op_x: c_uint, mb: c_int, _n: c_int, nnzb: c_int, of: Ptr, values: Ptr, offsets: Ptr,
        columns: Ptr, block: c_int, info: Ptr, bytes: Place<'_, c_int>,
    ) |call| {
        operation(op_x)?;
        Triangle::of(direction, op, [mb, nnzb, block], of, [values, offsets, columns], info, T::KIND)?;
        bytes.write(0)
    }

    /// Looks for blocks of the diagonal that are missing.
    "bsrsm2_analysis" (
        direction: c_uint, op: c_uint, op_x: c_uint, mb: c_int, _n: c_int, nnzb: c_int, of: Ptr, values: Ptr, offsets: Ptr,
        columns: Ptr, block: c_int, info: Ptr, _policy: c_uint, _buffer: Ptr,
    ) |call| {
        operation(op_x)?;
        Triangle::of(direction, op, [mb, nnzb, block], of, [values, offsets, columns], info, T::KIND)?.analyse(call)
    }

    /// Solves op(A) op(X) = alpha op(B) with a triangle of a matrix of square blocks.
    "bsrsm2_solve" (
        direction: c_uint, op: c_uint, op_x: c_uint, mb: c_int, n: c_int, nnzb: c_int, alpha: Ptr, of: Ptr, values: Ptr,
        offsets: Ptr, columns: Ptr, block: c_int, info: Ptr, b: Ptr, ldb: c_int, x: Ptr, ldx: c_int, _policy: c_uint,
        _buffer: Ptr,
    ) |call| {
        let given = Triangle::of(direction, op, [mb, nnzb, block], of, [values, offsets, columns], info, T::KIND)?;
        given.solve_matrix::<T>(call, op_x, n, alpha, [(b, ldb), (x, ldx)])
    }

    /// Square blocks from compressed rows, where `cusparseXcsr2bsrNnz` has written the offsets.
    "csr2bsr" (
        direction: c_uint, m: c_int, n: c_int, of_a: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, block: c_int, of_c: Ptr,
        to_values: Ptr, to_offsets: Ptr, to_columns: Ptr,
    ) |call| {
        let a = rows(m, n, of_a, T::KIND, [values, offsets, columns])?;
        let to = [to_values, to_offsets, to_columns];
        to_blocks::<T>(call, a, rounded(direction, a.size, [block, block], of_c, T::KIND, to)?)
    }

    /// The device memory that `csr2gebsr` needs: none.
    "csr2gebsr_bufferSize" (
        direction: c_uint, m: c_int, n: c_int, of: Ptr, _values: Ptr, _offsets: Ptr, _columns: Ptr, down: c_int,
        across: c_int, bytes: Place<'_, c_int>,
    ) |call| {
        either(direction)?;
        Description::of(of)?;
        sizes([m, n, down, across])?;
        bytes.write(0)
    }

    /// Blocks from compressed rows, where `cusparseXcsr2gebsrNnz` has written the offsets.
    "csr2gebsr" (
        direction: c_uint, m: c_int, n: c_int, of_a: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, of_c: Ptr,
        to_values: Ptr, to_offsets: Ptr, to_columns: Ptr, down: c_int, across: c_int, _buffer: Ptr,
    ) |call| {
        let a = rows(m, n, of_a, T::KIND, [values, offsets, columns])?;
        let to = [to_values, to_offsets, to_columns];
        to_blocks::<T>(call, a, rounded(direction, a.size, [down, across], of_c, T::KIND, to)?)
    }

    /// Compressed rows of all elements of square blocks.
    "bsr2csr" (
        direction: c_uint, mb: c_int, nb: c_int, of_a: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, block: c_int, of_c: Ptr,
        to_values: Ptr, to_offsets: Ptr, to_columns: Ptr,
    ) |call| {
        let base = Description::of(of_a)?.base;
        let a = blocks(direction, [mb, nb], 0, [block, block], base, T::KIND, [values, offsets, columns])?;
        let base = Description::of(of_c)?.base;
        to_rows::<T>(call, a, csr(a.size, 0, base, T::KIND, [to_values, to_offsets, to_columns]))
    }

    /// Compressed rows of all elements of blocks.
    "gebsr2csr" (
        direction: c_uint, mb: c_int, nb: c_int, of_a: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, down: c_int,
        across: c_int, of_c: Ptr, to_values: Ptr, to_offsets: Ptr, to_columns: Ptr,
    ) |call| {
        let base = Description::of(of_a)?.base;
        let a = blocks(direction, [mb, nb], 0, [down, across], base, T::KIND, [values, offsets, columns])?;
        let base = Description::of(of_c)?.base;
        to_rows::<T>(call, a, csr(a.size, 0, base, T::KIND, [to_values, to_offsets, to_columns]))
    }

    /// The device memory that `gebsr2gebsc` needs: none.
    "gebsr2gebsc_bufferSize" (
        mb: c_int, nb: c_int, nnzb: c_int, _values: Ptr, _offsets: Ptr, _columns: Ptr, down: c_int, across: c_int,
        bytes: Place<'_, c_int>,
    ) |call| {
        sizes([mb, nb, nnzb, down, across])?;
        bytes.write(0)
    }

    /// Compressed columns of blocks from compressed rows of blocks. The elements of each block stay where they are in it.
    "gebsr2gebsc" (
        mb: c_int, nb: c_int, nnzb: c_int, values: Ptr, offsets: Ptr, columns: Ptr, down: c_int, across: c_int,
        to_values: Ptr, to_rows: Ptr, to_offsets: Ptr, action: c_uint, base: c_uint, _buffer: Ptr,
    ) |call| {
        let ([mb, nb, nnzb, down, across], base) = (sizes([mb, nb, nnzb, down, across])?, i64::from(either(base)?));
        let (area, with_values) = (down * across, either(action)?);
        let none = std::ptr::null_mut();
        let from = Source::of_pattern(call, "A", csr([mb, nb], nnzb, base, T::KIND, [none, offsets, columns]))?;
        let to = Source::of_pattern(call, "C", csr([nb, mb], nnzb, base, T::KIND, [none, to_offsets, to_rows]))?;
        let array = |what: &str, pointer: Ptr| {
            let count = if with_values { nnzb.saturating_mul(area) } else { 0 };
            call.array(what, pointer, T::KIND, count, || format!("{nnzb} blocks of {area} elements"))
        };
        let (values, to_values) = (array("the values of A", values)?, array("the values of C", to_values)?);
        call.submit(move || {
            let pattern = from.pattern(call)?.transposed();
            to.write_pattern(call, &pattern)?;
            if with_values {
                let old = values.load::<T>(call)?;
                let new: Vec<T> = pattern.places.iter().flat_map(|&block| old[block * area..][..area].iter().copied()).collect();
                to_values.store(call, 0, &new)?;
            }
            Ok(())
        })
    }

    /// The device memory that `gebsr2gebsr` needs: none.
    "gebsr2gebsr_bufferSize" (
        direction: c_uint, mb: c_int, nb: c_int, nnzb: c_int, of: Ptr, _values: Ptr, _offsets: Ptr, _columns: Ptr,
        down: c_int, across: c_int, to_down: c_int, to_across: c_int, bytes: Place<'_, c_int>,
    ) |call| {
        either(direction)?;
        Description::of(of)?;
        sizes([mb, nb, nnzb, down, across, to_down, to_across])?;
        bytes.write(0)
    }

    /// Blocks of another shape, where `cusparseXgebsr2gebsrNnz` has written the offsets.
    "gebsr2gebsr" (
        direction: c_uint, mb: c_int, nb: c_int, nnzb: c_int, of_a: Ptr, values: Ptr, offsets: Ptr, columns: Ptr,
        down: c_int, across: c_int, of_c: Ptr, to_values: Ptr, to_offsets: Ptr, to_columns: Ptr, to_down: c_int,
        to_across: c_int, _buffer: Ptr,
    ) |call| {
        let base = Description::of(of_a)?.base;
        let a = blocks(direction, [mb, nb], nnzb, [down, across], base, T::KIND, [values, offsets, columns])?;
        let to = [to_values, to_offsets, to_columns];
        to_blocks::<T>(call, a, rounded(direction, a.size, [to_down, to_across], of_c, T::KIND, to)?)
    }
}

api! { API: Status, name;
    /// The offsets of square blocks, from compressed rows, and how many blocks there are.
    cusparseXcsr2bsrNnz(
        handle: Ptr, direction: c_uint, m: c_int, n: c_int, of_a: Ptr, offsets: Ptr, columns: Ptr, block: c_int, of_c: Ptr,
        to_offsets: Ptr, total: Ptr,
    ) {
        let (call, none) = (Call::begin(name, handle)?, std::ptr::null_mut());
        let a = rows(m, n, of_a, Kind::R32, [none, offsets, columns])?;
        let c = rounded(direction, a.size, [block, block], of_c, Kind::R32, [none, to_offsets, none])?;
        count_blocks(call, a, c, total)
    }

    /// The offsets of blocks, from compressed rows, and how many blocks there are.
    cusparseXcsr2gebsrNnz(
        handle: Ptr, direction: c_uint, m: c_int, n: c_int, of_a: Ptr, offsets: Ptr, columns: Ptr, of_c: Ptr,
        to_offsets: Ptr, down: c_int, across: c_int, total: Ptr, _buffer: Ptr,
    ) {
        let (call, none) = (Call::begin(name, handle)?, std::ptr::null_mut());
        let a = rows(m, n, of_a, Kind::R32, [none, offsets, columns])?;
        let c = rounded(direction, a.size, [down, across], of_c, Kind::R32, [none, to_offsets, none])?;
        count_blocks(call, a, c, total)
    }

    /// The offsets of blocks of another shape, and how many there are.
    cusparseXgebsr2gebsrNnz(
        handle: Ptr, direction: c_uint, mb: c_int, nb: c_int, nnzb: c_int, of_a: Ptr, offsets: Ptr, columns: Ptr, down: c_int,
        across: c_int, of_c: Ptr, to_offsets: Ptr, to_down: c_int, to_across: c_int, total: Ptr, _buffer: Ptr,
    ) {
        let (call, none) = (Call::begin(name, handle)?, std::ptr::null_mut());
        let base = Description::of(of_a)?.base;
        let a = blocks(direction, [mb, nb], nnzb, [down, across], base, Kind::R32, [none, offsets, columns])?;
        let c = rounded(direction, a.size, [to_down, to_across], of_c, Kind::R32, [none, to_offsets, none])?;
        count_blocks(call, a, c, total)
    }
}
