//! Products of matrices.

use std::sync::LazyLock;

use isa::matrix::Matrix;
use isa::{Picks, Type};
use machine::mask::WARP_LANES;
use sem::matrix::{BlockScale, extended};

use super::{Warp, Words};
use crate::code::{MatrixFactor, Multiply, ScaleData};
use crate::exec::{Gang, Step};
use crate::registers::SlotRef;

impl Gang<'_> {
    pub(super) fn multiply(&mut self, op: &Multiply, warp: &Warp, out: &mut [Words]) -> Step {
        match op.product.d {
            Type::S32 => self.multiply_integers(op, warp, out),
            Type::F64 => self.multiply_doubles(op, warp, out),
            _ => self.multiply_floats(op, warp, out),
        }
    }

    /// The value of the warp's lowest lane.
    pub(super) fn number(&self, slot: SlotRef, warp: &Warp) -> u64 {
        self.registers.get(warp.window, slot, warp.index * WARP_LANES)
    }

    /// Whether the product adds C.
    pub(super) fn accumulates(&self, op: &Multiply, warp: &Warp) -> bool {
        op.accumulate.is_none_or(|slot| self.number(slot, warp) != 0)
    }

    fn multiply_floats(&mut self, op: &Multiply, warp: &Warp, out: &mut [Words]) -> Step {
        let (a_size, b_size) = (op.a.rows * op.a.columns, op.b.rows * op.b.columns);
        let mut a = self.floats(op, &op.a, op.product.a, warp)?;
        let b = self.floats(op, &op.b, op.product.b, warp)?;
        let mut d = match self.accumulates(op, warp) {
            true => self.floats(op, &op.c, op.product.c, warp)?,
            false => vec![0.0; op.products * op.c.rows * op.c.columns],
        };
        // The product is negated if exactly one factor is.
        if op.signs.is_some_and(|[a, b]| self.number(a, warp) != self.number(b, warp)) {
            a.iter_mut().for_each(|x| *x = -*x);
        }
        let (m, n, k) = (op.a.rows, op.b.columns, op.a.columns);
        let columns = self.columns(op, warp);
        match (&op.scales, columns) {
            (Some(scales), columns) => {
                let columns = columns.unwrap_or_else(|| (0..k as u16).cycle().take(m * k).collect());
                let a_scales = self.factors(scales.scale, Matrix::A, m, &scales.a, warp);
                let b_scales = self.factors(scales.scale, Matrix::B, n, &scales.b, warp);
                let count = scales.scale.count;
                let (a_part, b_part) = (k / count, op.b.rows / count);
                let scaled = |values: &[f32], factor: &dyn Fn(usize) -> f64| -> Vec<f64> {
                    values.iter().enumerate().map(|(i, &x)| f64::from(x) * factor(i)).collect()
                };
                let a = scaled(&a, &|i| a_scales[i / k * count + i % k / a_part]);
                let b = scaled(&b, &|i| b_scales[i % n * count + i / n / b_part]);
                // SAFETY: the host has the instructions of the path.
                unsafe { (op.helpers.multiply_scaled)(n, k, &a, &columns, &b, &mut d) }
            }
            // SAFETY: as above.
            (None, Some(columns)) => unsafe { (op.helpers.multiply_sparse)(n, k, &a, &columns, &b, &mut d) },
            (None, None) => {
                for product in 0..op.products {
                    let (a, b) = (&a[product * a_size..][..a_size], &b[product * b_size..][..b_size]);
                    // SAFETY: as above.
                    unsafe { (op.helpers.multiply)(m, n, k, a, b, &mut d[product * m * n..][..m * n]) }
                }
            }
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
        Ok(())
    }

    /// For a sparse product, the column of A for each stored element, row by row.
    fn columns(&mut self, op: &Multiply, warp: &Warp) -> Option<Vec<u16>> {
        let sparse = op.sparse.as_ref()?;
        let metadata = self.words(warp.window, sparse.metadata, warp.index);
        let selector = self.number(sparse.selector, warp) as usize;
        let (rows, stored) = (op.a.rows, op.a.columns);
        let column = |i: usize| sparse.sparsity.column(&metadata, selector, i / stored, i % stored) as u16;
        Some((0..rows * stored).map(column).collect())
    }

    /// The scales of the rows of A or of the columns of B, line by line. The selectors of the lowest lane apply; they
    /// must be the same in all lanes.
    fn factors(
        &mut self,
        scale: BlockScale,
        matrix: Matrix,
        lines: usize,
        from: &ScaleData,
        warp: &Warp,
    ) -> Vec<f64> {
        let data = self.words(warp.window, from.data, warp.index);
        let [byte, thread] = [from.byte, from.thread].map(|slot| self.number(slot, warp) as usize);
        let lines = (0..lines).flat_map(|line| (0..scale.count).map(move |index| (line, index)));
        lines
            .map(|(line, index)| scale.to_f64(scale.bits(matrix, &data, byte, thread, line, index)))
            .collect()
    }

    /// The elements of a matrix, converted exactly.
    fn floats(&mut self, op: &Multiply, factor: &MatrixFactor, ty: Type, warp: &Warp) -> Step<Vec<f32>> {
        let mut values = vec![0.0; op.products * factor.rows * factor.columns];
        match ty {
            Type::F16 => {
                let mut halves = vec![0; values.len()];
                self.each_of_factor(factor, warp, |place, bits| halves[place] = bits as u16)?;
                // SAFETY: the host has the instructions of the path.
                unsafe { (op.helpers.widen)(&halves, &mut values) }
            }
            Type::Bf16 => self.each_of_factor(factor, warp, |place, bits| {
                values[place] = f32::from_bits((bits as u32) << 16);
            })?,
            Type::F32 | Type::Tf32 => self.each_of_factor(factor, warp, |place, bits| {
                values[place] = f32::from_bits(op.product.kept_bits(ty, bits) as u32);
            })?,
            _ => {
                let table = small_floats(ty);
                // The tables expect `.e2m1` in the middle of a byte.
                let shift = if op.product.packed { 2 } else { 0 };
                self.each_of_factor(factor, warp, |place, bits| {
                    values[place] = table[usize::from((bits << shift) as u8)];
                })?;
            }
        }
        Ok(values)
    }

    fn multiply_integers(&mut self, op: &Multiply, warp: &Warp, out: &mut [Words]) -> Step {
        let (m, n, k) = (op.a.rows, op.b.columns, op.b.rows);
        let columns = self.columns(op, warp);
        let single_bits = op.product.a == Type::B1;
        // Rows of A, and columns of B, are contiguous.
        let (mut a, mut b, mut c) = (vec![0i32; m * k], vec![0i32; n * k], vec![0; m * n]);
        let value = |ty: Type, bits: u64| if single_bits { bits as i32 } else { extended(ty, bits) as i32 };
        let stored = op.a.columns;
        self.each_of_factor(&op.a, warp, |place, bits| {
            let column = columns.as_ref().map_or(place % stored, |columns| columns[place].into());
            // Two stored elements with one index are added.
            a[place / stored * k + column] += value(op.product.a, bits);
        })?;
        self.each_of_factor(&op.b, warp, |place, bits| {
            b[place % n * k + place / n] = value(op.product.b, bits);
        })?;
        if self.accumulates(op, warp) {
            self.each_of_factor(&op.c, warp, |place, bits| c[place] = bits)?;
        }
        for (place, c) in c.iter_mut().enumerate() {
            let (row, column) = (&a[place / n * k..][..k], &b[place % n * k..][..k]);
            let pairs = row.iter().zip(column);
            // A sum of 256 products of 8-bit integers fits 32 bits.
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
        Ok(())
    }

    fn multiply_doubles(&mut self, op: &Multiply, warp: &Warp, out: &mut [Words]) -> Step {
        let (m, n, k) = (op.a.rows, op.b.columns, op.a.columns);
        let (mut a, mut b, mut c) = (vec![0.0; m * k], vec![0.0; n * k], vec![0.0; m * n]);
        for (factor, values) in [(&op.a, &mut a), (&op.b, &mut b), (&op.c, &mut c)] {
            self.each_of_factor(factor, warp, |place, bits| values[place] = f64::from_bits(bits))?;
        }
        op.d.spread(out, |place| {
            let row: Vec<u64> = a[place / n * k..][..k].iter().map(|x: &f64| x.to_bits()).collect();
            let column: Vec<u64> = (0..k).map(|step| b[step * n + place % n].to_bits()).collect();
            op.product.element(&row, &column, c[place].to_bits())
        });
        Ok(())
    }
}

/// For an 8-bit or smaller format, the value of each byte that holds an element.
pub(super) fn small_floats(ty: Type) -> &'static [f32; 256] {
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
    // The element times one, with -0 added.
    let picks = Picks::new(&[Type::F32, ty, Type::F16, Type::F32], &[]);
    let one = 0x3c00;
    f32::from_bits(sem::matrix::Product::of(&picks).element(&[bits], &[one], 0x8000_0000) as u32)
}
