//! Products whose fragments are tiles: whole registers of whole warps are brought into the order of the matrices by vector
//! instructions ([`lanes::Tiles`]). Everything else is moved element by element.

use isa::Type;
use isa::matrix::Matrix;
use lanes::{MatrixElement, ProductRoom, SmallFloat, TileProduct, TileSource, WarpProduct};
use sem::format::Format;
use smallvec::SmallVec;

use super::Warp;
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
    room: ProductRoom,
    /// What stood in shared memory, unit by unit.
    units: Vec<u8>,
    numbers: Vec<f32>,
    /// The descriptor of B, and whether it is transposed, if it was taken from shared memory for a warp before.
    shared_b: Option<(u64, u64)>,
}

/// All registers of a fragment, if it is one of tiles.
fn tile_slots(fragment: &Fragment) -> Option<SmallVec<[SlotRef; 8]>> {
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
        Type::U4 => MatrixElement::U4,
        Type::S4 => MatrixElement::S4,
        Type::E4m3 | Type::E5m2 | Type::E2m3 | Type::E3m2 => {
            MatrixElement::Small(SmallFloat::new(Format::of(ty)?, 0))
        }
        // In the middle of its byte.
        Type::E2m1 if !op.product.packed => MatrixElement::Small(SmallFloat::new(Format::of(ty)?, 2)),
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
        // A factor is in registers, or behind a descriptor.
        let mut source = |factor, element| self.tile_source(factor, element, active);
        let (Some(a_source), Some(b_source), Some(Some(c_source))) =
            (source(&op.a, a), source(&op.b, b), source(&op.c, c))
        else {
            return Ok(false);
        };
        let size = [op.a.rows, op.b.columns, op.a.columns];
        let product = TileProduct {
            size,
            a: a_source,
            b: b_source,
            c: c_source,
            d: tiles,
            d_element: d,
            // Each warp reads all that it needs before it writes its own lanes: they may be the same registers.
            targets: slots
                .into_iter()
                .map(|slot| self.registers.update(active.window, slot).cast())
                .collect(),
            integers: (op.product.d == Type::S32).then_some(op.product.saturate),
        };
        let mut matrices = self.matrices.take().unwrap_or_default();
        matrices.shared_b = None;
        matrices.room.resize(size);
        let result = active.mask.warps().try_for_each(|(index, _)| {
            let warp = Warp { window: active.window, index, shared, span };
            self.take_factor(&op.a, a, op, &warp, &mut matrices, Matrix::A)?;
            self.take_factor(&op.b, b, op, &warp, &mut matrices, Matrix::B)?;
            let negated = op.signs.is_some_and(|[a, b]| self.number(a, &warp) != self.number(b, &warp));
            let accumulates = self.accumulates(op, &warp);
            let of_warp = WarpProduct { first: index * WARP_LANES, accumulates, negated };
            // SAFETY: the path is one that the machine has; the arrays have the warp's words.
            unsafe { (op.helpers.multiply_tiles)(&product, of_warp, &mut matrices.room) }
            Ok(())
        });
        self.matrices = Some(matrices);
        result.map(|()| true)
    }

    /// Where a factor's elements are, if these are tiles: in registers, or (`Some(None)`) behind a descriptor.
    fn tile_source<'a>(
        &mut self,
        factor: &'a MatrixFactor,
        element: MatrixElement,
        active: &Active,
    ) -> Option<Option<TileSource<'a>>> {
        let MatrixSource::Registers(fragment) = &factor.source else { return Some(None) };
        let (tiles, slots) = (fragment.tiles.as_ref()?, tile_slots(fragment)?);
        let arrays = slots.into_iter().map(|slot| self.registers.read(active.window, slot).cast());
        Some(Some(TileSource { tiles, element, registers: arrays.collect() }))
    }

    /// Brings A or B of a warp from shared memory into the order of its matrix, if it is there.
    fn take_factor(
        &mut self,
        factor: &MatrixFactor,
        element: MatrixElement,
        op: &Multiply,
        warp: &Warp,
        matrices: &mut Matrices,
        matrix: Matrix,
    ) -> Step {
        // B is the same for all warps with this descriptor.
        let key = self.shared_factor(factor, warp);
        let Matrices { room, units, numbers, shared_b } = matrices;
        if key.is_none() || matrix == Matrix::B && *shared_b == key {
            return Ok(());
        }
        let to = if matrix == Matrix::A { &mut room.a } else { &mut room.b };
        let found = self.units(factor, warp.index, warp.window);
        units.clear();
        units.reserve(found.len() * UNIT_BYTES);
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
                // Halves, nearly always: eight of them.
                1 if in_unit == 8 => to[start..start + 8].copy_from_slice(&numbers[..8]),
                1 => to[start..start + in_unit].copy_from_slice(numbers),
                _ => to[start..].iter_mut().step_by(step).zip(numbers).for_each(|(to, &x)| *to = x),
            }
        }
        if matrix == Matrix::B {
            *shared_b = key;
        }
        Ok(())
    }
}
