//! `tcgen05.mma`: gathers the factors from shared and tensor memory, multiplies them in [`lanes::MatrixHelpers`], and
//! writes D.

use isa::Type;
use isa::matrix::Matrix;
use machine::memory::shared_base;
use sem::tensor_memory::{Cell, Factor, Multiplication, Part};

use super::product::small_floats;
use super::tensor_memory::Issue;
use crate::code::{TensorFactor, TensorMultiply};
use crate::exec::{Gang, Step};
use crate::registers::{SlotRef, Window};
use crate::tensor_memory::TensorMemory;

/// Addresses of a matrix in shared memory: one for each unit, which holds several elements.
struct Places {
    addresses: Vec<u64>,
    /// Number of lines, and of elements in each.
    lines: usize,
    count: usize,
    factor: Factor,
}

impl Places {
    /// The addresses of `lines` lines of `count` elements each, behind a descriptor.
    fn new(factor: Factor, descriptor: sem::matrix::Descriptor, lines: usize, count: usize) -> Places {
        let in_unit = factor.in_unit();
        let addresses = match factor.transposed {
            true => (0..lines.div_ceil(in_unit))
                .flat_map(|unit| (0..count).map(move |k| factor.place(descriptor, unit * in_unit, k).0))
                .collect(),
            false => (0..lines)
                .flat_map(|line| {
                    (0..count / in_unit).map(move |unit| factor.place(descriptor, line, unit * in_unit).0)
                })
                .collect(),
        };
        Places { addresses, lines, count, factor }
    }

    /// Calls `f` with line, k and bits of every element of the units read from the addresses.
    fn each(&self, units: &[u128], mut f: impl FnMut(usize, usize, u64)) {
        let in_unit = self.factor.in_unit();
        for (at, &unit) in units.iter().enumerate() {
            for i in 0..in_unit {
                let (line, k) = match self.factor.transposed {
                    true => (at / self.count * in_unit + i, at % self.count),
                    false => {
                        let across = self.count / in_unit;
                        (at / across, at % across * in_unit + i)
                    }
                };
                if line < self.lines {
                    f(line, k, self.factor.element(unit, i));
                }
            }
        }
    }
}

/// The value of an element. Small integers are exact in binary32, too.
fn value(ty: Type, bits: u64) -> f32 {
    match ty {
        Type::Bf16 => f32::from_bits((bits as u32) << 16),
        Type::Tf32 => f32::from_bits(bits as u32 & !0x1fff),
        Type::U8 => f32::from(bits as u8),
        Type::S8 => f32::from(bits as u8 as i8),
        // The tables expect `.e2m1` in the middle of a byte.
        Type::E2m1 => small_floats(ty)[usize::from((bits << 2) as u8)],
        ty => small_floats(ty)[usize::from(bits as u8)],
    }
}

/// A matrix that is converted to binary32. F16 elements are collected and widened together.
struct Elements {
    ty: Type,
    halves: Vec<u16>,
    values: Vec<f32>,
}

impl Elements {
    fn new(ty: Type, count: usize) -> Elements {
        let halves = if ty == Type::F16 { vec![0; count] } else { Vec::new() };
        Elements { ty, halves, values: vec![0.0; count] }
    }

    fn set(&mut self, place: usize, bits: u64) {
        match self.ty {
            Type::F16 => self.halves[place] = bits as u16,
            ty => self.values[place] = value(ty, bits),
        }
    }

    fn finish(mut self, op: &TensorMultiply) -> Vec<f32> {
        if self.ty == Type::F16 {
            // SAFETY: the host has the instructions of the path; matrices have a multiple of 16 elements.
            unsafe { (op.helpers.widen)(&self.halves, &mut self.values) }
        }
        self.values
    }
}

/// The cells of a CTA's tensor memory that hold the operands outside shared memory.
struct Cells {
    d: Cell,
    a: Option<Cell>,
    metadata: Option<Cell>,
    scales: Option<[Cell; 2]>,
}

impl Gang<'_> {
    pub(super) fn tensor_multiply(&self, op: &TensorMultiply, issue: &Issue) -> Step {
        let number = |slot: SlotRef| self.registers.get(issue.window, slot, issue.lane);
        let fault = |misuse| self.misuse(misuse, issue.span, issue.lane);
        let m = Multiplication::of(&op.picks, number(op.instruction)).map_err(fault)?;
        let cells = Cells {
            d: Cell::at(number(op.d)),
            a: match op.a {
                TensorFactor::Tensor(slot) => Some(Cell::at(number(slot))),
                TensorFactor::Shared(_) => None,
            },
            metadata: op.metadata.map(|slot| Cell::at(number(slot))),
            scales: op.scales.map(|slots| slots.map(|slot| Cell::at(number(slot)))),
        };
        m.check(cells.d).map_err(fault)?;
        let blocks = self.blocks_of(m.pair, issue)?;
        // Each CTA of a pair holds half of the columns of B.
        let descriptor = m.b.descriptor(number(op.b)).map_err(fault)?;
        let columns = m.n / blocks.len();
        let mask = op.zero_mask.map(|mask| m.column_mask(number(mask))).transpose().map_err(fault)?;
        let shift = mask.as_ref().map_or(0, |mask| mask.shift);
        let places = Places::new(m.b, descriptor, columns + shift, m.k);
        let mut b = Elements::new(m.product.b, m.k * m.n);
        for (block, (rank, _)) in blocks.iter().enumerate() {
            let units = self.shared_units(&based(&places.addresses, *rank), issue)?;
            places.each(&units, |line, k, bits| {
                if let Some(column) = line.checked_sub(shift) {
                    b.set(k * m.n + block * columns + column, bits);
                }
            });
        }
        let mut b = b.finish(op);
        if let Some(mask) = mask {
            let masked = b.iter_mut().zip(mask.zero.iter().cycle()).filter(|(_, zero)| **zero);
            masked.for_each(|(element, _)| *element = 0.0);
        }
        let a_descriptor = match op.a {
            TensorFactor::Shared(slot) => Some(m.a.descriptor(number(slot)).map_err(fault)?),
            TensorFactor::Tensor(_) if m.a.transposed => {
                return Err(fault(sem::tensor_memory::Misuse::Modifiers));
            }
            TensorFactor::Tensor(_) => None,
        };
        let disabled: Vec<u32> = op.disabled.iter().map(|&slot| number(slot) as u32).collect();
        let accumulates = number(op.accumulate) != 0;
        let input_scale = op.input_scale.map_or(0, number);
        for (block, (rank, memory)) in blocks.iter().enumerate() {
            let mut memory = memory.borrow_mut();
            self.check_cells(&m, &cells, &memory, issue)?;
            // A in shared memory: this CTA's rows.
            let of_block = match a_descriptor {
                None => None,
                Some(descriptor) => {
                    let places = Places::new(m.a, descriptor, m.rows, m.stored());
                    let units = self.shared_units(&based(&places.addresses, *rank), issue)?;
                    let mut a = Elements::new(m.product.a, m.rows * m.stored());
                    places.each(&units, |line, k, bits| a.set(line * m.stored() + k, bits));
                    Some(a.finish(op))
                }
            };
            for part in m.parts() {
                let mut a = match (&of_block, cells.a) {
                    (None, Some(at)) => in_tensor_memory(op, &m, &part, at, &memory),
                    (of_block, _) => of_block.clone().unwrap_or_default(),
                };
                if m.is_negated() {
                    a.iter_mut().for_each(|x| *x = -*x);
                }
                let mut d = match accumulates {
                    true => self.addend(op, &m, &part, cells.d, input_scale, &memory),
                    false => vec![0.0; part.lanes.len() * part.columns.len()],
                };
                let b = columns_of(&b, &m, &part);
                multiply(op, &m, &part, &cells, &memory, a, &b, &mut d);
                for (row, &lane) in part.lanes.iter().enumerate() {
                    let lane = lane + cells.d.lane;
                    // Each word covers 32 lanes, and the second CTA has its own four words.
                    let word = disabled.get(block * 4 + lane / 32).copied().unwrap_or(0);
                    if word >> (lane % 32) & 1 != 0 {
                        continue;
                    }
                    let n = part.columns.len();
                    let to = memory.row_mut(Cell { lane, ..cells.d });
                    store(op, &m, &d[row * n..][..n], &mut to[..n]);
                }
            }
        }
        Ok(())
    }

    /// Checks that all cells that an instruction uses are allocated.
    fn check_cells(&self, m: &Multiplication, cells: &Cells, memory: &TensorMemory, issue: &Issue) -> Step {
        let check = || {
            for part in m.parts() {
                let lanes = part.lanes.last().map_or(0, |lane| lane + 1);
                memory.check(cells.d, lanes, part.columns.len())?;
                if let Some(a) = cells.a {
                    memory.check(a, lanes, m.a.columns(m.stored()))?;
                }
                if let Some([a, b]) = cells.scales {
                    memory.check(a, 32, Multiplication::scale_columns(m.rows))?;
                    memory.check(b, part.lanes[0] + 32, Multiplication::scale_columns(part.columns.len()))?;
                }
            }
            cells
                .metadata
                .map_or(Ok(()), |at| memory.check(at, sem::tensor_memory::LANES, m.metadata_columns()))
        };
        check().map_err(|misuse| self.misuse(misuse, issue.span, issue.lane))
    }

    /// The old values of D: floats scaled by a power of two, or integers as their bits.
    fn addend(
        &self,
        op: &TensorMultiply,
        m: &Multiplication,
        part: &Part,
        at: Cell,
        scale: u64,
        memory: &TensorMemory,
    ) -> Vec<f32> {
        let n = part.columns.len();
        let mut c = Elements::new(m.product.d, part.lanes.len() * n);
        for (row, &lane) in part.lanes.iter().enumerate() {
            let cells = memory.row(Cell { lane: at.lane + lane, ..at });
            for (column, &cell) in cells[..n].iter().enumerate() {
                match m.product.d {
                    Type::F16 => c.set(row * n + column, u64::from(cell) & 0xffff),
                    _ => c.values[row * n + column] = f32::from_bits(cell),
                }
            }
        }
        let mut c = c.finish(op);
        // Integers have no scale.
        if scale > 0 && m.product.d != Type::S32 {
            let factor = f32::from_bits((127 - scale as u32) << 23);
            c.iter_mut().for_each(|c| *c *= factor);
        }
        c
    }

    /// The addresses, in a CTA's shared memory, of the factor behind the descriptor in a slot; and whether a pair of
    /// CTAs holds it.
    pub(super) fn factor_addresses(
        &self,
        op: &TensorMultiply,
        slot: SlotRef,
        window: Window,
        lane: usize,
    ) -> (Vec<u64>, bool) {
        let number = |slot| self.registers.get(window, slot, lane);
        let Ok(m) = Multiplication::of(&op.picks, number(op.instruction)) else { return (Vec::new(), false) };
        let blocks = if m.pair { 2 } else { 1 };
        let mut all = Vec::new();
        let mut add = |factor: Factor, slot, lines, count| {
            if let Ok(descriptor) = factor.descriptor(number(slot)) {
                all.extend(Places::new(factor, descriptor, lines, count).addresses);
            }
        };
        if slot == op.b {
            add(m.b, op.b, m.n / blocks, m.k);
        }
        match op.a {
            TensorFactor::Shared(a) if a == slot && a != op.b => add(m.a, a, m.rows, m.stored()),
            _ => {}
        }
        (all, m.pair)
    }
}

/// Converts addresses in a CTA's shared memory to `.shared::cluster` addresses of the CTA with this rank.
fn based(addresses: &[u64], rank: u32) -> Vec<u64> {
    addresses.iter().map(|inner| shared_base(rank) + inner).collect()
}

/// The rows of A for the lanes of a part of D, from tensor memory.
fn in_tensor_memory(
    op: &TensorMultiply,
    m: &Multiplication,
    part: &Part,
    at: Cell,
    memory: &TensorMemory,
) -> Vec<f32> {
    let stored = m.stored();
    let mut a = Elements::new(m.product.a, part.lanes.len() * stored);
    for (row, &lane) in part.lanes.iter().enumerate() {
        let cells = memory.row(Cell { lane: at.lane + m.lane_of_a(lane), ..at });
        for k in 0..stored {
            let (column, bit) = m.a.in_cell(k);
            a.set(row * stored + k, m.a.from_cell(cells[column], bit));
        }
    }
    a.finish(op)
}

/// The columns of B for a part of D.
fn columns_of<'b>(b: &'b [f32], m: &Multiplication, part: &Part) -> std::borrow::Cow<'b, [f32]> {
    if part.columns.len() == m.n {
        return b.into();
    }
    b.chunks_exact(m.n).flat_map(|row| &row[part.columns.clone()]).copied().collect()
}

/// Adds the products for a part of D to `d`. Integers in `d` are stored as their bits.
#[expect(clippy::too_many_arguments, reason = "all matrices of a product")]
fn multiply(
    op: &TensorMultiply,
    m: &Multiplication,
    part: &Part,
    cells: &Cells,
    memory: &TensorMemory,
    a: Vec<f32>,
    b: &[f32],
    d: &mut Vec<f32>,
) {
    let (rows, n, stored) = (part.lanes.len(), part.columns.len(), m.stored());
    let row_of_b = |lane: usize, index: usize| match cells.metadata {
        None => index as u16,
        Some(at) => {
            let (cell, bit) = m.metadata_cell(lane, index);
            m.row_of_b(index, memory.row(at.plus(cell))[0] >> bit) as u16
        }
    };
    let columns: Vec<u16> = match cells.metadata.is_some() || m.scale.is_some() {
        true => part
            .lanes
            .iter()
            .flat_map(|&lane| (0..stored).map(move |i| (lane, i)))
            .map(|(l, i)| row_of_b(l, i))
            .collect(),
        false => Vec::new(),
    };
    if let (Some(scale), Some([of_a, of_b])) = (m.scale, cells.scales) {
        let factor = |matrix, at: Cell, line, index| {
            let cell = memory.row(at.plus(m.scale_cell(matrix, part, line)))[0];
            scale.to_f64(m.scale_bits(matrix, cell, index))
        };
        let (a_part, b_part) = (stored / scale.count, m.k / scale.count);
        let scaled = |(i, &x): (usize, &f32), line: usize, matrix, at, part: usize| {
            f64::from(x) * factor(matrix, at, line, i / part)
        };
        let a: Vec<f64> = a
            .chunks_exact(stored)
            .enumerate()
            .flat_map(|(row, of_row)| {
                of_row.iter().enumerate().map(move |element| scaled(element, row, Matrix::A, of_a, a_part))
            })
            .collect();
        let b: Vec<f64> = b
            .chunks_exact(n)
            .enumerate()
            .flat_map(|(k, of_k)| {
                let start = part.columns.start;
                of_k.iter()
                    .enumerate()
                    .map(move |(column, x)| scaled((k, x), start + column, Matrix::B, of_b, b_part))
            })
            .collect();
        // SAFETY: the host has the instructions of the path.
        return unsafe { (op.helpers.multiply_scaled)(n, stored, &a, &columns, &b, d) };
    }
    // Integer products and their sums are exact in binary32. C may be larger and is added afterwards.
    let integers = m.product.d == Type::S32;
    let addends = if integers { std::mem::replace(d, vec![0.0; rows * n]) } else { Vec::new() };
    // SAFETY: as above.
    unsafe {
        match columns.is_empty() {
            true => (op.helpers.multiply)(rows, n, stored, &a, b, d),
            false => (op.helpers.multiply_sparse)(n, stored, &a, &columns, b, d),
        }
    }
    if integers {
        add_integers(d, &addends, m.product.saturate);
    }
}

/// Adds the integers in the bits of `addends` to the integer values of `sums`. Leaves the bits of the results in
/// `sums`.
fn add_integers(sums: &mut [f32], addends: &[f32], saturate: bool) {
    for (sum, addend) in sums.iter_mut().zip(addends) {
        let (products, addend) = (*sum as i32, addend.to_bits() as i32);
        let result = if saturate { addend.saturating_add(products) } else { addend.wrapping_add(products) };
        *sum = f32::from_bits(result as u32);
    }
}

/// Writes a row of D.
fn store(op: &TensorMultiply, m: &Multiplication, from: &[f32], to: &mut [u32]) {
    match m.product.d {
        Type::S32 => to.iter_mut().zip(from).for_each(|(to, x)| *to = x.to_bits()),
        ty => {
            let canonical = |x: f32| if x.is_nan() { f32::from_bits(0x7fff_ffff) } else { x };
            if ty == Type::F16 {
                // `narrow` works on whole vectors.
                let mut wide: Vec<f32> = from.iter().map(|&x| canonical(x)).collect();
                wide.resize(from.len().next_multiple_of(16), 0.0);
                let mut halves = vec![0; wide.len()];
                // SAFETY: the host has the instructions of the path.
                unsafe { (op.helpers.narrow)(&wide, &mut halves) }
                to.iter_mut().zip(halves).for_each(|(to, half)| *to = half.into());
            } else {
                to.iter_mut().zip(from).for_each(|(to, &x)| *to = canonical(x).to_bits());
            }
        }
    }
}
