//! Matrices that a warp holds together: products, loads, stores, transposition. All lanes of a warp are active.

use std::sync::LazyLock;

use diag::Span;
use isa::{Picks, Rounding, Type};
use sem::matrix::{extended, kept_bits};

use super::access::{Place, Request};
use super::transfer::{Region, address_of, read, write};
use super::{Active, Chunk, Step};
use crate::code::{Address, Fragment, MatrixOp, MatrixRows, Multiply, RowFormat, Strided};
use crate::cta::Shared;
use crate::fault::FaultKind;
use crate::mask::{CHUNK_LANES, WARP_LANES};
use crate::registers::{SlotRef, Window, load, store};

/// The words of one register in a warp; of lanes that do not exist, zero.
type Words = [u64; WARP_LANES];
/// Bytes of a row that one lane's address stands for.
const ROW_BYTES: usize = 16;
type RowBytes = [u8; ROW_BYTES];

impl Chunk<'_> {
    #[inline(never)]
    pub(super) fn matrix(&mut self, op: &MatrixOp, active: &Active, shared: &mut Shared, span: Span) -> Step {
        match op {
            MatrixOp::Multiply(multiply) => {
                let results =
                    self.for_each_warp(active, multiply.d.registers.len(), |chunk, warp, out| {
                        chunk.multiply(multiply, active.window, warp, out);
                        Ok(())
                    })?;
                self.write_registers(&multiply.d.registers, active, &results);
            }
            MatrixOp::LoadRows(rows) => {
                let results = self.for_each_warp(active, rows.registers.len(), |chunk, warp, out| {
                    let bytes = chunk.load_rows(rows, active, warp, shared, span)?;
                    for (register, words) in out.iter_mut().enumerate() {
                        for (lane, word) in words.iter_mut().enumerate() {
                            *word = rows.word(&bytes, register, lane);
                        }
                    }
                    Ok(())
                })?;
                self.write_registers(&rows.registers, active, &results);
            }
            MatrixOp::StoreRows(rows) => {
                self.for_each_warp(active, 0, |chunk, warp, _| {
                    chunk.store_rows(rows, active, warp, shared, span)
                })?;
            }
            MatrixOp::Transpose { dst, src } => {
                let results = self.for_each_warp(active, 1, |chunk, warp, out| {
                    let words = chunk.words(active.window, *src, warp);
                    out[0] = std::array::from_fn(|lane| {
                        // The halves of two rows of the lane's column.
                        let half = |row: usize| words[row * 4 + lane / 8] >> (lane / 4 % 2 * 16) & 0xffff;
                        half(lane % 4 * 2) | half(lane % 4 * 2 + 1) << 16
                    });
                    Ok(())
                })?;
                self.write_registers(&[*dst], active, &results);
            }
            MatrixOp::Load(strided) => {
                let fragment = &strided.fragment;
                let results = self.for_each_warp(active, fragment.registers.len(), |chunk, warp, out| {
                    let area = chunk.area(strided, active, warp, shared, span, false)?;
                    fragment.spread(out, |place| area.read(place));
                    Ok(())
                })?;
                self.write_registers(&fragment.registers, active, &results);
            }
            MatrixOp::Store(strided) => {
                self.for_each_warp(active, 0, |chunk, warp, _| {
                    let area = chunk.area(strided, active, warp, shared, span, true)?;
                    chunk.each_element(&strided.fragment, active.window, warp, |place, bits| {
                        area.write(place, bits);
                    });
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Calls `f` for every warp that is active, to fill the words of `registers` registers; returns them for all warps,
    /// register by register.
    fn for_each_warp(
        &mut self,
        active: &Active,
        registers: usize,
        mut f: impl FnMut(&mut Self, usize, &mut [Words]) -> Step,
    ) -> Step<Vec<Vec<Words>>> {
        let warps = self.lanes.div_ceil(WARP_LANES);
        let mut results = Vec::with_capacity(warps);
        for warp in 0..warps {
            let mut out = vec![[0; WARP_LANES]; registers];
            if active.mask.warp(warp) != 0 {
                f(self, warp, &mut out)?;
            }
            results.push(out);
        }
        Ok(results)
    }

    /// Writes what [`Chunk::for_each_warp`] computed.
    fn write_registers(&mut self, registers: &[Option<SlotRef>], active: &Active, results: &[Vec<Words>]) {
        for (index, slot) in registers.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            self.produce(slot, active, |_, target| {
                for lane in active.mask {
                    let word = results[lane / WARP_LANES][index][lane % WARP_LANES];
                    // SAFETY: the array has an element for every lane.
                    unsafe { store(target, slot.width, lane, word) }
                }
            });
        }
    }

    /// The words of a register in a warp.
    fn words(&mut self, window: Window, slot: SlotRef, warp: usize) -> Words {
        let array = self.registers.read(window, slot);
        let first = warp * WARP_LANES;
        let mut words = [0; WARP_LANES];
        for (lane, word) in words.iter_mut().enumerate().take(self.lanes - first) {
            // SAFETY: the array has an element for every lane.
            *word = unsafe { load(array, slot.width, first + lane) };
        }
        words
    }

    /// Calls `f` with the place and the bits of every element of a matrix.
    #[inline]
    fn each_element(
        &mut self,
        fragment: &Fragment,
        window: Window,
        warp: usize,
        mut f: impl FnMut(usize, u64),
    ) {
        let mask = u64::MAX >> (64 - fragment.bits);
        let places = fragment.places.chunks_exact(WARP_LANES * fragment.in_register);
        for (register, places) in fragment.registers.iter().zip(places) {
            let Some(slot) = *register else { continue };
            let words = self.words(window, slot, warp);
            for (word, places) in words.iter().zip(places.chunks_exact(fragment.in_register)) {
                for (part, &place) in places.iter().enumerate() {
                    f(place.into(), word >> (part as u32 * fragment.bits) & mask);
                }
            }
        }
    }

    // Products.

    fn multiply(&mut self, op: &Multiply, window: Window, warp: usize, out: &mut [Words]) {
        match op.product.d {
            Type::S32 => self.multiply_integers(op, window, warp, out),
            Type::F64 => self.multiply_doubles(op, window, warp, out),
            _ => self.multiply_floats(op, window, warp, out),
        }
    }

    fn multiply_floats(&mut self, op: &Multiply, window: Window, warp: usize, out: &mut [Words]) {
        let (a_size, b_size) = (op.a.rows * op.a.columns, op.b.rows * op.b.columns);
        let mut a = self.floats(op, &op.a, op.product.a, window, warp);
        let b = self.floats(op, &op.b, op.product.b, window, warp);
        let mut d = self.floats(op, &op.c, op.product.c, window, warp);
        let (m, n, k) = (op.a.rows, op.b.columns, op.a.columns);
        for product in 0..op.products {
            let (a, b) = (&mut a[product * a_size..][..a_size], &b[product * b_size..][..b_size]);
            // SAFETY: the path is one that the machine has.
            unsafe { (op.helpers.multiply)(m, n, k, a, b, &mut d[product * m * n..][..m * n]) }
        }
        for sum in &mut d {
            if sum.is_nan() {
                *sum = f32::from_bits(0x7fff_ffff);
            }
        }
        if op.product.d == Type::F16 {
            let mut halves = vec![0; d.len()];
            // SAFETY: as above.
            unsafe { (op.helpers.narrow)(&d, &mut halves) }
            op.d.spread(out, |place| halves[place].into());
        } else {
            op.d.spread(out, |place| d[place].to_bits().into());
        }
    }

    /// The elements of a matrix, exactly.
    fn floats(
        &mut self,
        op: &Multiply,
        fragment: &Fragment,
        ty: Type,
        window: Window,
        warp: usize,
    ) -> Vec<f32> {
        let mut values = vec![0.0; op.products * fragment.rows * fragment.columns];
        match ty {
            Type::F16 => {
                let mut halves = vec![0; values.len()];
                self.each_element(fragment, window, warp, |place, bits| halves[place] = bits as u16);
                // SAFETY: the path is one that the machine has.
                unsafe { (op.helpers.widen)(&halves, &mut values) }
            }
            Type::Bf16 => self.each_element(fragment, window, warp, |place, bits| {
                values[place] = f32::from_bits((bits as u32) << 16);
            }),
            Type::F32 | Type::Tf32 => self.each_element(fragment, window, warp, |place, bits| {
                values[place] = f32::from_bits(kept_bits(ty, bits) as u32);
            }),
            _ => {
                let table = small_floats(ty);
                self.each_element(fragment, window, warp, |place, bits| {
                    values[place] = table[usize::from(bits as u8)];
                });
            }
        }
        values
    }

    fn multiply_integers(&mut self, op: &Multiply, window: Window, warp: usize, out: &mut [Words]) {
        let (m, n, k) = (op.a.rows, op.b.columns, op.a.columns);
        let single_bits = op.product.a == Type::B1;
        // Rows of A, and columns of B, one after the other.
        let (mut a, mut b, mut c) = (vec![0i32; m * k], vec![0i32; n * k], vec![0; m * n]);
        let value = |ty: Type, bits: u64| if single_bits { bits as i32 } else { extended(ty, bits) as i32 };
        self.each_element(&op.a, window, warp, |place, bits| a[place] = value(op.product.a, bits));
        self.each_element(&op.b, window, warp, |place, bits| {
            b[place % n * k + place / n] = value(op.product.b, bits);
        });
        self.each_element(&op.c, window, warp, |place, bits| c[place] = bits);
        for (place, c) in c.iter_mut().enumerate() {
            let (row, column) = (&a[place / n * k..][..k], &b[place % n * k..][..k]);
            let pairs = row.iter().zip(column);
            // No sum of 256 products of 8 bits leaves 32 bits.
            let sum: i32 = match (single_bits, op.product.and) {
                (true, true) => pairs.map(|(a, b)| a & b).sum(),
                (true, false) => pairs.map(|(a, b)| a ^ b).sum(),
                (false, _) => pairs.map(|(a, b)| a * b).sum(),
            };
            let c_value = *c as u32 as i32;
            let result =
                if op.product.saturate { c_value.saturating_add(sum) } else { c_value.wrapping_add(sum) };
            *c = u64::from(result as u32);
        }
        op.d.spread(out, |place| c[place]);
    }

    fn multiply_doubles(&mut self, op: &Multiply, window: Window, warp: usize, out: &mut [Words]) {
        let (m, n, k) = (op.a.rows, op.b.columns, op.a.columns);
        let (mut a, mut b, mut c) = (vec![0; m * k], vec![0; n * k], vec![0; m * n]);
        self.each_element(&op.a, window, warp, |place, bits| a[place] = bits);
        self.each_element(&op.b, window, warp, |place, bits| b[place % n * k + place / n] = bits);
        self.each_element(&op.c, window, warp, |place, bits| c[place] = bits);
        for (place, c) in c.iter_mut().enumerate() {
            let (row, column) = (&a[place / n * k..][..k], &b[place % n * k..][..k]);
            let pairs = row.iter().zip(column);
            let sum = pairs
                .fold(f64::from_bits(*c), |sum, (&a, &b)| f64::from_bits(a).mul_add(f64::from_bits(b), sum));
            // The host rounds to nearest, and makes NaNs of its own.
            let exact = op.product.rounding == Rounding::NearestEven && !sum.is_nan();
            *c = if exact { sum.to_bits() } else { op.product.element(row, column, *c) };
        }
        op.d.spread(out, |place| c[place]);
    }

    // Rows whose addresses the lanes give.

    /// Where the rows of a warp's matrices lie, and the lanes that name them.
    fn row_places(
        &mut self,
        rows: &MatrixRows,
        active: &Active,
        warp: usize,
        shared: &Shared,
        request: &Request,
    ) -> Step<Vec<*mut u8>> {
        let addresses = self.addresses(&rows.address, active);
        let first = warp * WARP_LANES;
        let mut places = Vec::with_capacity(WARP_LANES);
        for lane in first..first + rows.count() {
            let address = address_of(&addresses, lane.min(self.lanes - 1));
            match self.place(shared, request, address) {
                Ok(Place::Host(at)) => places.push(at),
                Ok(Place::Local(_)) => {
                    return Err(self.access_fault(FaultKind::OutOfBounds, request, lane, address));
                }
                Err(kind) => return Err(self.access_fault(kind, request, lane, address)),
            }
        }
        Ok(places)
    }

    fn load_rows(
        &mut self,
        rows: &MatrixRows,
        active: &Active,
        warp: usize,
        shared: &Shared,
        span: Span,
    ) -> Step<[RowBytes; CHUNK_LANES / 8]> {
        let request = Request { space: rows.address.space, bytes: ROW_BYTES as u64, write: false, span };
        let places = self.row_places(rows, active, warp, shared, &request)?;
        let mut bytes = [[0; ROW_BYTES]; CHUNK_LANES / 8];
        for (row, at) in bytes.iter_mut().zip(places) {
            // SAFETY: the place holds the bytes of a row.
            *row = unsafe { at.cast::<RowBytes>().read_unaligned() };
        }
        Ok(bytes)
    }

    fn store_rows(
        &mut self,
        rows: &MatrixRows,
        active: &Active,
        warp: usize,
        shared: &Shared,
        span: Span,
    ) -> Step {
        let request = Request { space: rows.address.space, bytes: ROW_BYTES as u64, write: true, span };
        let places = self.row_places(rows, active, warp, shared, &request)?;
        let registers: Vec<Words> =
            rows.registers.iter().flatten().map(|&slot| self.words(active.window, slot, warp)).collect();
        for (row, at) in places.into_iter().enumerate() {
            let (words, row) = (&registers[row / 8], row % 8);
            let bytes: [[u8; 2]; ROW_BYTES / 2] = std::array::from_fn(|column| {
                let (row, column) = if rows.transposed { (column, row) } else { (row, column) };
                let half = words[row * 4 + column / 2] >> (column % 2 * 16);
                (half as u16).to_le_bytes()
            });
            // SAFETY: the place holds the bytes of a row.
            unsafe { at.cast::<[[u8; 2]; ROW_BYTES / 2]>().write_unaligned(bytes) }
        }
        Ok(())
    }

    // Matrices with a stride.

    /// The memory of a warp's matrix, all of it checked. The lowest lane's address and stride count: they must be the
    /// same in all.
    fn area(
        &mut self,
        op: &Strided,
        active: &Active,
        warp: usize,
        shared: &Shared,
        span: Span,
        write: bool,
    ) -> Step<Area> {
        let lane = warp * WARP_LANES + active.mask.warp(warp).trailing_zeros() as usize;
        let Address { space, .. } = op.address;
        let base = address_of(&self.addresses(&op.address, active), lane);
        let Fragment { rows, columns, bits, .. } = op.fragment;
        let stride = match op.stride {
            Some(slot) => self.registers.get(active.window, slot, lane),
            None => (if op.by_column { rows } else { columns }) as u64,
        };
        let request = Request { space, bytes: u64::from(bits.div_ceil(8)), write, span };
        let mut area = Area {
            region: Region { storage: std::ptr::null_mut(), base: 0, end: 0, stride: 0 },
            base,
            stride,
            columns,
            bits,
            by_column: op.by_column,
        };
        let last = area.address(rows * columns - 1);
        if base.is_multiple_of(request.bytes)
            && base <= last
            && let Some(region) = self.region(shared, &request, base, last)
        {
            area.region = region;
            return Ok(area);
        }
        // Who is at fault?
        for place in 0..rows * columns {
            let address = area.address(place);
            if let Err(kind) = self.place(shared, &request, address) {
                return Err(self.access_fault(kind, &request, lane, address));
            }
        }
        Err(self.access_fault(FaultKind::OutOfBounds, &request, lane, base))
    }
}

/// A matrix in memory.
struct Area {
    region: Region,
    base: u64,
    /// Elements from one row (column) to the next.
    stride: u64,
    columns: usize,
    bits: u32,
    by_column: bool,
}

impl Area {
    /// Offset of an element in bits.
    fn offset(&self, place: usize) -> u64 {
        let (row, column) = (place as u64 / self.columns as u64, place as u64 % self.columns as u64);
        let (line, within) = if self.by_column { (column, row) } else { (row, column) };
        line.wrapping_mul(self.stride).wrapping_add(within).wrapping_mul(self.bits.into())
    }

    fn address(&self, place: usize) -> u64 {
        self.base.wrapping_add(self.offset(place) / 8)
    }

    fn read(&self, place: usize) -> u64 {
        // SAFETY: the region holds every element of the matrix.
        let value = unsafe { read(self.region.at(self.address(place)), self.bits.div_ceil(8), false) };
        match self.bits {
            1 | 4 => value >> (self.offset(place) % 8) & ((1 << self.bits) - 1),
            _ => value,
        }
    }

    /// Elements that are stored fill bytes.
    fn write(&self, place: usize, bits: u64) {
        // SAFETY: the region holds every element of the matrix.
        unsafe { write(self.region.at(self.address(place)), self.bits.div_ceil(8), bits) }
    }
}

impl Fragment {
    /// Puts the elements of a matrix into words of registers.
    fn spread(&self, out: &mut [Words], element: impl Fn(usize) -> u64) {
        let places = self.places.chunks_exact(WARP_LANES * self.in_register);
        for (words, places) in out.iter_mut().zip(places) {
            for (word, places) in words.iter_mut().zip(places.chunks_exact(self.in_register)) {
                *word = places.iter().enumerate().fold(0, |word, (part, &place)| {
                    word | element(place.into()) << (part as u32 * self.bits)
                });
            }
        }
    }
}

impl MatrixRows {
    /// Lanes whose addresses count.
    fn count(&self) -> usize {
        match self.format {
            RowFormat::Packed { rows: 16, .. } => self.registers.len() * 8,
            _ => self.registers.len() * 8,
        }
    }

    /// What a lane's register holds of the rows (PTX ISA, "ldmatrix").
    fn word(&self, rows: &[RowBytes], register: usize, lane: usize) -> u64 {
        let (group, within) = (lane / 4, lane % 4);
        match self.format {
            RowFormat::Halves if self.transposed => {
                let half = |row: usize| {
                    let row = &rows[register * 8 + within * 2 + row];
                    u64::from(u16::from_le_bytes([row[group * 2], row[group * 2 + 1]]))
                };
                half(0) | half(1) << 16
            }
            RowFormat::Halves => {
                let row = &rows[register * 8 + group];
                u64::from(u32::from_le_bytes(std::array::from_fn(|i| row[within * 4 + i])))
            }
            RowFormat::Packed { bits, rows: 16 } => {
                // Two registers a matrix; transposed, so that memory holds its columns.
                let (matrix, row) = (register / 2, group + register % 2 * 8);
                let bytes = std::array::from_fn(|i| unpacked(&rows[matrix * 16 + within * 4 + i], bits, row));
                u64::from(u32::from_le_bytes(bytes))
            }
            RowFormat::Packed { bits, .. } => {
                let row = &rows[register * 8 + group];
                u64::from(u32::from_le_bytes(std::array::from_fn(|i| unpacked(row, bits, within * 4 + i))))
            }
        }
    }
}

/// An element of 4, 6 or 8 bits as a byte: 4 bits stand in the middle, 6 at the bottom.
fn unpacked(row: &RowBytes, bits: u32, index: usize) -> u8 {
    let all = u128::from_le_bytes(*row);
    let element = (all >> (index as u32 * bits)) as u8;
    match bits {
        4 => (element & 0xf) << 2,
        6 => element & 0x3f,
        _ => element,
    }
}

/// The values of all bytes that hold an element of a small format.
fn small_floats(ty: Type) -> &'static [f32; 256] {
    type Table = (Type, [f32; 256]);
    static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
        [Type::E4m3, Type::E5m2, Type::E2m3, Type::E3m2, Type::E2m1]
            .into_iter()
            .map(|ty| (ty, std::array::from_fn(|bits| sem_value(ty, bits as u64))))
            .collect()
    });
    &TABLES.iter().find(|(known, _)| *known == ty).unwrap_or(&TABLES[0]).1
}

fn sem_value(ty: Type, bits: u64) -> f32 {
    // One times the element, with nothing added.
    let picks = Picks::new(&[Type::F32, ty, Type::F16, Type::F32], &[]);
    let one = 0x3c00;
    f32::from_bits(sem::matrix::Product::of(&picks).element(&[bits], &[one], 0x8000_0000) as u32)
}
