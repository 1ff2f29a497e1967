//! Systems with three or five diagonals: `gtsv2` and its forms, `gpsvInterleavedBatch`. Gaussian elimination with exchanges of rows,
//! as LAPACK's for bands; without exchanges where the name says so.

use std::collections::VecDeque;
use std::ffi::c_int;

use linalg::{Operation, Scalar};

use crate::call::{Array, Call, Done, size, sizes};
use crate::declare::families;
use crate::dense::DnMat;
use crate::handle::{Place, Ptr};
use crate::pattern::list;
use crate::status::Status;

/// Solves a system in place. A row begins at its first element that may be other than zero, at most `below` columns left of the diagonal.
fn solve<T: Scalar>(below: usize, rows: &mut [VecDeque<T>], sides: &mut [Vec<T>], exchanges: bool) {
    let count = rows.len();
    for column in 0..count {
        // All rows that have an element in this column begin with it.
        let last = (column + below).min(count - 1);
        if exchanges {
            let size = |row: usize| rows[row].front().map(|value| value.taxi());
            let best =
                (column + 1..=last).fold(column, |best, row| if size(row) > size(best) { row } else { best });
            rows.swap(best, column);
            sides.swap(best, column);
        }
        let (done, rest) = rows.split_at_mut(column + 1);
        let (known, open) = sides.split_at_mut(column + 1);
        let (pivot, known) = (&done[column], &known[column]);
        for (row, side) in rest.iter_mut().zip(open).take(last - column) {
            let value = row.pop_front().unwrap_or_default();
            if value.is_zero() {
                continue;
            }
            let factor = value / pivot[0];
            row.resize(row.len().max(pivot.len() - 1), T::default());
            row.iter_mut().zip(pivot.iter().skip(1)).for_each(|(x, &above)| *x = *x - factor * above);
            side.iter_mut().zip(known).for_each(|(x, &above)| *x = *x - factor * above);
        }
    }
    for row in (0..count).rev() {
        let (open, known) = sides.split_at_mut(row + 1);
        for (at, x) in open[row].iter_mut().enumerate() {
            let rest = rows[row]
                .iter()
                .skip(1)
                .zip(&*known)
                .fold(*x, |rest, (&factor, side)| rest - factor * side[at]);
            *x = rest / rows[row][0];
        }
    }
}

/// The rows of a system, from its diagonals; what a diagonal has outside the matrix does not count.
fn rows_of<T: Scalar>(diagonals: &[impl Fn(usize) -> T], count: usize) -> Vec<VecDeque<T>> {
    let below = diagonals.len() / 2;
    let row = |row: usize| {
        let inside = (0..diagonals.len()).filter(|at| (below..count + below).contains(&(row + at)));
        inside.map(|at| diagonals[at](row)).collect()
    };
    (0..count).map(row).collect()
}

/// Three diagonals and right-hand sides by columns.
fn with_sides<T: Scalar>(
    call: Call,
    [m, n]: [c_int; 2],
    diagonals: [Ptr; 3],
    b: Ptr,
    ldb: c_int,
    exchanges: bool,
) -> Result<(), Status> {
    let [m, n] = sizes([m, n])?;
    let array =
        |(name, pointer): (&str, Ptr)| call.array(name, pointer, T::KIND, m, || format!("{m} elements"));
    let [dl, d, du] = diagonals;
    let arrays = [array(("dl", dl))?, array(("d", d))?, array(("du", du))?];
    let b = DnMat::by_columns([m, n], ldb, b, T::KIND)?.block(call, "B", 0)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    call.submit(move || {
        let diagonals = [arrays[0].load::<T>(call)?, arrays[1].load(call)?, arrays[2].load(call)?];
        let diagonals = [0, 1, 2].map(|which: usize| {
            let diagonals = &diagonals;
            move |row: usize| diagonals[which][row]
        });
        let mut sides: Vec<Vec<T>> =
            b.load::<T>(call, Operation::NONE)?.chunks_exact(n).map(<[T]>::to_vec).collect();
        solve(1, &mut rows_of(&diagonals, m), &mut sides, exchanges);
        b.store(call, &sides.concat())
    })
}

/// Systems of a batch: the element of a row of one of them is at `row * step + system * distance`.
fn batch<T: Scalar>(
    call: Call,
    m: usize,
    count: usize,
    [step, distance]: [usize; 2],
    pointers: &[Ptr],
) -> Result<(), Status> {
    if m == 0 || count == 0 {
        return Ok(());
    }
    let span =
        (m - 1).saturating_mul(step).saturating_add((count - 1).saturating_mul(distance)).saturating_add(1);
    let shape = || format!("{count} systems of {m} rows, {step} elements apart");
    let array = |(at, &pointer): (usize, &Ptr)| {
        let what = if at + 1 == pointers.len() { "x".to_owned() } else { format!("diagonal {at}") };
        call.array(&what, pointer, T::KIND, span, shape)
    };
    let arrays: Vec<Array> = pointers.iter().enumerate().map(array).collect::<Result<_, Status>>()?;
    call.submit(move || {
        let loaded = arrays.iter().map(|array| array.load::<T>(call)).collect::<Result<Vec<_>, _>>()?;
        let (x, diagonals) = loaded.split_last().unwrap_or((&loaded[0], &[]));
        let solved = list(count, m * count * 8, |system| {
            let at = |row: usize| row * step + system * distance;
            let diagonals: Vec<_> =
                diagonals.iter().map(|diagonal| move |row: usize| diagonal[at(row)]).collect();
            let mut sides: Vec<Vec<T>> = (0..m).map(|row| vec![x[at(row)]]).collect();
            solve(diagonals.len() / 2, &mut rows_of(&diagonals, m), &mut sides, true);
            sides.concat()
        });
        write(call, arrays[arrays.len() - 1], &solved, [step, distance])
    })
}

/// Writes the solutions of a batch.
fn write<T: Scalar>(call: Call, x: Array, solved: &[Vec<T>], [step, distance]: [usize; 2]) -> Done {
    let all = solved.iter().enumerate().flat_map(|(system, values)| {
        values.iter().enumerate().map(move |(row, &value)| (row * step + system * distance, value))
    });
    x.scatter(call, all)
}

/// The sizes of interleaved systems, and which of the algorithms was chosen.
fn interleaved(algorithm: c_int, algorithms: c_int, m: c_int, count: c_int) -> Result<[usize; 2], Status> {
    if (0..algorithms).contains(&algorithm) {
        Ok([size(m)?, size(count)?])
    } else {
        Err(Status::INVALID_VALUE)
    }
}

families! { FAMILIES:
    /// The device memory that `gtsv2` needs: none.
    "gtsv2_bufferSizeExt" (m: c_int, n: c_int, _dl: Ptr, _d: Ptr, _du: Ptr, _b: Ptr, _ldb: c_int, bytes: Place<'_, usize>) |call| {
        sizes([m, n])?;
        bytes.write(0)
    }
    /// Solves systems with the same three diagonals for the columns of B, in place, with exchanges of rows.
    "gtsv2" (m: c_int, n: c_int, dl: Ptr, d: Ptr, du: Ptr, b: Ptr, ldb: c_int, _buffer: Ptr) |call| {
        with_sides::<T>(call, [m, n], [dl, d, du], b, ldb, true)
    }
    /// The device memory that `gtsv2_nopivot` needs: none.
    "gtsv2_nopivot_bufferSizeExt" (m: c_int, n: c_int, _dl: Ptr, _d: Ptr, _du: Ptr, _b: Ptr, _ldb: c_int, bytes: Place<'_, usize>) |call| {
        sizes([m, n])?;
        bytes.write(0)
    }
    /// Solves systems with the same three diagonals for the columns of B, in place, without exchanges of rows.
    "gtsv2_nopivot" (m: c_int, n: c_int, dl: Ptr, d: Ptr, du: Ptr, b: Ptr, ldb: c_int, _buffer: Ptr) |call| {
        with_sides::<T>(call, [m, n], [dl, d, du], b, ldb, false)
    }
    /// The device memory that `gtsv2StridedBatch` needs: none.
    "gtsv2StridedBatch_bufferSizeExt" (m: c_int, _dl: Ptr, _d: Ptr, _du: Ptr, _x: Ptr, count: c_int, _stride: c_int, bytes: Place<'_, usize>) |call| {
        sizes([m, count])?;
        bytes.write(0)
    }
    /// Solves systems with three diagonals that lie one behind the other, in place.
    "gtsv2StridedBatch" (m: c_int, dl: Ptr, d: Ptr, du: Ptr, x: Ptr, count: c_int, stride: c_int, _buffer: Ptr) |call| {
        let (m, count, stride) = (size(m)?, size(count)?, size(stride)?);
        if stride < m {
            return Err(Status::INVALID_VALUE);
        }
        batch::<T>(call, m, count, [1, stride], &[dl, d, du, x])
    }
    /// The device memory that `gtsvInterleavedBatch` needs: none.
    "gtsvInterleavedBatch_bufferSizeExt" (algorithm: c_int, m: c_int, _dl: Ptr, _d: Ptr, _du: Ptr, _x: Ptr, count: c_int, bytes: Place<'_, usize>) |call| {
        interleaved(algorithm, 3, m, count)?;
        bytes.write(0)
    }
    /// Solves systems with three diagonals that lie interleaved, in place. The diagonals stay as they are.
    "gtsvInterleavedBatch" (algorithm: c_int, m: c_int, dl: Ptr, d: Ptr, du: Ptr, x: Ptr, count: c_int, _buffer: Ptr) |call| {
        let [m, count] = interleaved(algorithm, 3, m, count)?;
        batch::<T>(call, m, count, [count, 1], &[dl, d, du, x])
    }
    /// The device memory that `gpsvInterleavedBatch` needs: none.
    "gpsvInterleavedBatch_bufferSizeExt" (algorithm: c_int, m: c_int, _ds: Ptr, _dl: Ptr, _d: Ptr, _du: Ptr, _dw: Ptr, _x: Ptr, count: c_int, bytes: Place<'_, usize>) |call| {
        interleaved(algorithm, 1, m, count)?;
        bytes.write(0)
    }
    /// Solves systems with five diagonals that lie interleaved, in place. The diagonals stay as they are.
    "gpsvInterleavedBatch" (algorithm: c_int, m: c_int, ds: Ptr, dl: Ptr, d: Ptr, du: Ptr, dw: Ptr, x: Ptr, count: c_int, _buffer: Ptr) |call| {
        let [m, count] = interleaved(algorithm, 1, m, count)?;
        batch::<T>(call, m, count, [count, 1], &[ds, dl, d, du, dw, x])
    }
}
