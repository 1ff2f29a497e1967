//! Products whose fragments are tiles: whole registers of whole warps are brought into the order of the matrices by vector
//! instructions ([`lanes::Tiles`]). Everything else is moved element by element.

use isa::Type;
use isa::matrix::Matrix;
use lanes::MatrixElement;
use smallvec::SmallVec;

use super::Warp;
use super::product::small_floats;
use super::shared::UNIT_BYTES;
use crate::code::{Fragment, MatrixFactor, MatrixSource, Multiply};
use crate::cta::Shared;
use crate::exec::{Active, Chunk, Step};
use crate::mask::WARP_LANES;
use crate::registers::SlotRef;
use diag::Span;

/// The matrices of a warp's product, whose memory is kept from one to the next.
#[derive(Default)]
pub(in crate::exec) struct Matrices {
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
    d: Vec<f32>,
    /// What stood in shared memory, unit by unit.
    units: Vec<u8>,
    numbers: Vec<f32>,
    /// The descriptor of B, and whether it is transposed, if it was taken from shared memory for a warp before.
    shared_b: Option<(u64, u64)>,
}

/// The arrays of the registers of a fragment.
type Arrays<T> = SmallVec<[T; 8]>;

/// How a factor is found.
enum Source<'a> {
    Registers(&'a Fragment, Arrays<*const u32>),
    Shared(&'a MatrixFactor),
}

/// All registers of a fragment, if it is one of tiles.
fn tile_slots(fragment: &Fragment) -> Option<Arrays<SlotRef>> {
    fragment.tiles.as_ref()?;
    fragment.registers.iter().copied().collect()
}

/// How elements of a type become binary32, which must hold them exactly.
fn element(op: &Multiply, ty: Type) -> Option<MatrixElement> {
    Some(match ty {
        Type::F16 => MatrixElement::F16,
        Type::Bf16 => MatrixElement::Bf16,
        Type::F32 | Type::S32 => MatrixElement::Word(u32::MAX),
        Type::Tf32 => MatrixElement::Word(op.product.kept_bits(ty, u32::MAX.into()) as u32),
        Type::U8 => MatrixElement::U8,
        Type::S8 => MatrixElement::S8,
        Type::E4m3 | Type::E5m2 | Type::E2m3 | Type::E3m2 | Type::E2m1 => {
            MatrixElement::Byte(small_floats(ty))
        }
        _ => return None,
    })
}

impl Chunk<'_> {
    /// A product for all warps; false if it is not one of tiles, or not of whole warps.
    pub(super) fn multiply_tiles(
        &mut self,
        op: &Multiply,
        active: &Active,
        shared: &Shared,
        span: Span,
    ) -> Step<bool> {
        let whole_warps = active.mask.warps().all(|(_, lanes)| lanes == u32::MAX);
        if !whole_warps || op.sparse.is_some() || op.scales.is_some() || op.products != 1 {
            return Ok(false);
        }
        let [Some(a), Some(b), Some(c), Some(d)] =
            [op.product.a, op.product.b, op.product.c, op.product.d].map(|ty| element(op, ty))
        else {
            return Ok(false);
        };
        let (Some(slots), Some(tiles)) = (tile_slots(&op.d), &op.d.tiles) else { return Ok(false) };
        let mut source = |factor| self.source(factor, active);
        let (Some(a_source), Some(b_source), Some(c_source)) = (source(&op.a), source(&op.b), source(&op.c))
        else {
            return Ok(false);
        };
        // Each warp reads all that it needs before it writes its own lanes: they may be the same registers.
        let targets: Arrays<*mut u32> =
            slots.into_iter().map(|slot| self.registers.update(active.window, slot).cast()).collect();
        let mut matrices = self.matrices.take().unwrap_or_default();
        matrices.shared_b = None;
        let mut words: Arrays<*mut u32> = Arrays::new();
        let integers = op.product.d == Type::S32;
        let mut result = Ok(true);
        for (index, _) in active.mask.warps() {
            let warp = Warp { window: active.window, index, shared, span };
            let Matrices { a: a_values, b: b_values, .. } = &mut *matrices;
            a_values.resize(op.a.rows * op.a.columns, 0.0);
            b_values.resize(op.b.rows * op.b.columns, 0.0);
            let found = self
                .take_factor(op, &a_source, a, &warp, &mut matrices, Matrix::A)
                .and_then(|()| self.take_factor(op, &b_source, b, &warp, &mut matrices, Matrix::B));
            if let Err(fault) = found {
                result = Err(fault);
                break;
            }
            let Matrices { a: a_values, b: b_values, c: c_values, d: sums, .. } = &mut *matrices;
            if op.signs.is_some_and(|[a, b]| self.number(a, &warp) != self.number(b, &warp)) {
                a_values.iter_mut().for_each(|x| *x = -*x);
            }
            let accumulates = self.accumulates(op, &warp);
            // Integers are multiplied and summed up as binary32, which holds them; C, which may be larger, comes after.
            let first = if integers { &mut *c_values } else { &mut *sums };
            first.clear();
            first.resize(op.c.rows * op.c.columns, 0.0);
            if let (true, Source::Registers(fragment, arrays)) = (accumulates, &c_source) {
                self.gather(op, fragment, arrays, c, index, first);
            }
            let (m, n, k) = (op.a.rows, op.b.columns, op.a.columns);
            if integers {
                sums.clear();
                sums.resize(m * n, 0.0);
            }
            // SAFETY: the path is one that the machine has.
            unsafe { (op.helpers.multiply)(m, n, k, a_values, b_values, sums) }
            if integers {
                add_integers(sums, c_values, op.product.saturate);
            } else {
                for sum in sums.iter_mut() {
                    *sum = if sum.is_nan() { f32::from_bits(0x7fff_ffff) } else { *sum };
                }
            }
            let offset = index * WARP_LANES;
            words.clear();
            words.extend(targets.iter().map(|array| array.wrapping_add(offset)));
            // SAFETY: the arrays have the warp's words.
            unsafe { (op.helpers.spread)(sums, tiles, d, &words) }
        }
        self.matrices = Some(matrices);
        result
    }

    /// Where the elements of a factor are, if these are tiles or behind a descriptor.
    fn source<'a>(&mut self, factor: &'a MatrixFactor, active: &Active) -> Option<Source<'a>> {
        Some(match &factor.source {
            MatrixSource::Shared { .. } => Source::Shared(factor),
            MatrixSource::Registers(fragment) => {
                let slots = tile_slots(fragment)?;
                let arrays = slots.into_iter().map(|slot| self.registers.read(active.window, slot).cast());
                Source::Registers(fragment, arrays.collect())
            }
        })
    }

    /// Brings A or B of a warp into the order of its matrix.
    fn take_factor(
        &mut self,
        op: &Multiply,
        source: &Source,
        element: MatrixElement,
        warp: &Warp,
        matrices: &mut Matrices,
        matrix: Matrix,
    ) -> Step {
        let Matrices { a, b, units, numbers, shared_b, .. } = matrices;
        let to = if matrix == Matrix::A { a } else { b };
        match source {
            Source::Registers(fragment, arrays) => self.gather(op, fragment, arrays, element, warp.index, to),
            Source::Shared(factor) => {
                // B is the same for all warps with this descriptor.
                let key = self.shared_factor(factor, warp);
                if matrix == Matrix::B && *shared_b == key {
                    return Ok(());
                }
                let found = self.units(factor, warp.index, warp.window);
                units.clear();
                self.each_checked_unit(&found, warp, |_, bytes| units.extend_from_slice(&bytes))?;
                let in_unit = UNIT_BYTES / 4 * element.in_word();
                numbers.resize(found.len() * in_unit, 0.0);
                // SAFETY: so many words are there, and room for their elements, of which there are many times 16.
                unsafe {
                    let words = units.len() / 4;
                    (op.helpers.widen_words)(units.as_ptr().cast(), words, element, numbers.as_mut_ptr());
                }
                for (unit, numbers) in found.iter().zip(numbers.chunks_exact(in_unit)) {
                    let (start, step) = unit.places(factor, matrix);
                    match step {
                        1 => to[start..start + in_unit].copy_from_slice(numbers),
                        _ => to[start..].iter_mut().step_by(step).zip(numbers).for_each(|(to, &x)| *to = x),
                    }
                }
                if matrix == Matrix::B {
                    *shared_b = key;
                }
            }
        }
        Ok(())
    }

    fn gather(
        &self,
        op: &Multiply,
        fragment: &Fragment,
        arrays: &[*const u32],
        element: MatrixElement,
        warp: usize,
        to: &mut [f32],
    ) {
        let Some(tiles) = &fragment.tiles else { return };
        let registers: Arrays<*const u32> =
            arrays.iter().map(|array| array.wrapping_add(warp * WARP_LANES)).collect();
        // SAFETY: the arrays have the warp's words.
        unsafe { (op.helpers.gather)(&registers, tiles, element, to) }
    }
}

/// Adds integers in the words of `addends` to those that `sums` holds as binary32, and leaves words.
fn add_integers(sums: &mut [f32], addends: &[f32], saturate: bool) {
    for (sum, addend) in sums.iter_mut().zip(addends) {
        let (products, addend) = (*sum as i32, addend.to_bits() as i32);
        let result = if saturate { addend.saturating_add(products) } else { addend.wrapping_add(products) };
        *sum = f32::from_bits(result as u32);
    }
}
