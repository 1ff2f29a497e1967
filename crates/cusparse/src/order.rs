//! Rows in the order of columns and back (`csru2csr`), and colours of rows (`csrcolor`).

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use linalg::{Kind, Operation, Scalar};
use mathlib::{Handles, api};

use crate::call::{Call, Width, sizes};
use crate::declare::families;
use crate::descriptor::{Description, csr};
use crate::handle::{Place, Ptr};
use crate::pattern::{Pattern, Source};
use crate::status::Status;

/// `csru2csrInfo_t`: where each entry of the sorted rows was before, once that work has run. `cusparseColorInfo_t` has none.
type Order = Arc<Mutex<Vec<usize>>>;

static ORDERS: Handles<Order> = Handles::new();

/// The arguments of both directions, checked.
fn given(
    call: Call,
    sizes_of: [c_int; 3],
    of: Ptr,
    arrays: [Ptr; 3],
    kind: Kind,
    info: Ptr,
) -> Result<(Source, Order), Status> {
    let ([m, n, nnz], base) = (sizes(sizes_of)?, Description::of(of)?.base);
    let order = ORDERS.get(info).ok_or(Status::INVALID_VALUE)?;
    Ok((Source::whole(call, "A", csr([m, n], nnz, base, kind, arrays))?, Arc::clone(&order)))
}

/// Gives each row's neighbours another colour than its own, the first that is free, for as many rows as wanted. The others have a colour each.
fn colours(pattern: &Pattern, wanted: usize) -> (Vec<usize>, usize) {
    let (count, turned) = (pattern.size[0], pattern.transposed());
    let mut colours: Vec<usize> = Vec::with_capacity(count);
    let mut used = 0;
    // The last row that found a colour taken.
    let mut taken = vec![usize::MAX; count + 1];
    for row in 0..count {
        let own = |pattern: &Pattern| pattern.columns[pattern.row(row)].to_vec();
        for neighbour in own(pattern).into_iter().chain(own(&turned)).filter(|&neighbour| neighbour < row) {
            taken[colours[neighbour]] = row;
        }
        let free = (0..used).find(|&colour| taken[colour] != row).filter(|_| row < wanted);
        let colour = free.unwrap_or(used);
        used = used.max(colour + 1);
        colours.push(colour);
    }
    (colours, used)
}

families! { FAMILIES:
    /// The device memory that `csru2csr` and `csr2csru` need: none.
    "csru2csr_bufferSizeExt" (m: c_int, n: c_int, nnz: c_int, _values: Ptr, _offsets: Ptr, _columns: Ptr, info: Ptr, bytes: Place<'_, usize>) |call| {
        sizes([m, n, nnz])?;
        ORDERS.get(info).ok_or(Status::INVALID_VALUE)?;
        bytes.write(0)
    }
    /// Brings the entries of each row into the order of columns, and remembers how they were.
    "csru2csr" (m: c_int, n: c_int, nnz: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, info: Ptr, _buffer: Ptr) |call| {
        let (source, order) = given(call, [m, n, nnz], of, [values, offsets, columns], T::KIND, info)?;
        call.submit(move || {
            let matrix = source.matrix::<T>(call, Operation::NONE)?;
            let mut pattern = matrix.pattern.clone();
            let mut places: Vec<usize> = (0..pattern.count()).collect();
            for row in 0..pattern.size[0] {
                places[pattern.row(row)].sort_by_key(|&at| matrix.pattern.columns[at]);
            }
            pattern.columns = places.iter().map(|&at| matrix.pattern.columns[at]).collect();
            let sorted: Vec<T> = places.iter().map(|&at| matrix.values[at]).collect();
            *order.lock().unwrap_or_else(PoisonError::into_inner) = places;
            source.write_columns(call, &pattern)?;
            source.values.store(call, 0, &sorted)
        })
    }
    /// Brings the entries of each row into the order that they had before `csru2csr`.
    "csr2csru" (m: c_int, n: c_int, nnz: c_int, of: Ptr, values: Ptr, offsets: Ptr, columns: Ptr, info: Ptr, _buffer: Ptr) |call| {
        let (source, order) = given(call, [m, n, nnz], of, [values, offsets, columns], T::KIND, info)?;
        call.submit(move || {
            let matrix = source.matrix::<T>(call, Operation::NONE)?;
            let places = order.lock().unwrap_or_else(PoisonError::into_inner);
            if places.len() != matrix.values.len() {
                return Err(call.fault("the rows were not sorted with this info, or had another number of entries"));
            }
            let (mut pattern, mut old) = (matrix.pattern.clone(), matrix.values.clone());
            for (at, &place) in places.iter().enumerate() {
                (pattern.columns[place], old[place]) = (matrix.pattern.columns[at], matrix.values[at]);
            }
            source.write_columns(call, &pattern)?;
            source.values.store(call, 0, &old)
        })
    }
    /// Gives rows that have an entry for each other different colours. Rows of a colour are named one behind the other, if wanted.
    "csrcolor" (
        m: c_int, nnz: c_int, of: Ptr, _values: Ptr, offsets: Ptr, columns: Ptr, fraction: Ptr, used: Ptr, colouring: Ptr,
        reordering: Ptr, info: Ptr,
    ) |call| {
        let ([m, nnz], base) = (sizes([m, nnz])?, Description::of(of)?.base);
        ORDERS.get(info).ok_or(Status::INVALID_VALUE)?;
        let none = std::ptr::null_mut();
        let source = Source::of_pattern(call, "A", csr([m, m], nnz, base, T::KIND, [none, offsets, columns]))?;
        let fraction = call.scalar::<f32>("fractionToColor", fraction, Kind::R32)?;
        let colouring = call.indices("the colouring", colouring, Width::Int, m)?;
        let reordering = match reordering.is_null() {
            true => None,
            false => Some(call.indices("the reordering", reordering, Width::Int, m)?),
        };
        call.deliver::<f64>(used, Kind::I32, move || {
            let wanted = (f64::from(fraction.get(call)?) * m as f64).ceil().max(0.0) as usize;
            let (colours, used) = colours(&source.pattern(call)?, wanted);
            colouring.store(call, colours.iter().map(|&colour| colour as i64))?;
            if let Some(reordering) = reordering {
                let mut order: Vec<usize> = (0..m).collect();
                order.sort_by_key(|&row| colours[row]);
                let mut places = vec![0; m];
                order.iter().enumerate().for_each(|(at, &row)| places[row] = at as i64);
                reordering.store(call, places.into_iter())?;
            }
            Ok(used as f64)
        })
    }
}

api! { API: Status, name;
    /// Makes what `csru2csr` remembers, or what `csrcolor` does not.
    cusparseCreateCsru2csrInfo cusparseCreateColorInfo(info: Place<'_, Ptr>) {
        if info.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        info.write(ORDERS.insert(Order::default()))
    }

    /// Gives it back.
    cusparseDestroyCsru2csrInfo cusparseDestroyColorInfo(info: Ptr) {
        ORDERS.remove(info).map(drop).ok_or(Status::INVALID_VALUE)
    }
}
