//! Operations on matrices whose elements a warp holds in its registers: products, loads, stores, transposition. All
//! lanes of a warp are active.
//!
//! `code/matrix.rs` computes, once for the code of a kernel, where each element is in the lanes' registers
//! (`sem::matrix::place`). If the registers of a fragment are tiles of 8 rows or columns, the product works on the
//! registers in their own order (`code/tiled.rs`, `tiled.rs`, `lanes/product`). An element of A is the same for the
//! four lanes of a row, so A, C and D are read and written in place; only B is reordered. If D's registers overlap
//! registers that are still to be read, D is first written elsewhere. 16 bytes from each of eight lines in shared
//! memory are also a tile.
//!
//! All other products gather whole matrices, multiply them in `lanes::matrix` and spread the result. For a sparse A,
//! the metadata select the row of B for each element (`sem::matrix::Sparsity`). `wgmma` is four products, one for
//! each warp, whose factors may come from shared memory (`sem::matrix::Descriptor`).
//!
//! Narrowest tests: `tests/run`: `mma_*`, `mma_into_*`, `wmma_*`, `wgmma_*`, `ldmatrix*`; `lanes`: `tests/handlers/matrix.rs`.

mod product;
mod rows;
mod shared;
mod strided;
mod tensor_cells;
mod tensor_memory;
mod tensor_product;
mod tiled;

use diag::Span;
use machine::mask::WARP_LANES;

use super::{Active, Gang, Step};
use crate::bytes::{load, store};
use crate::code::{Fragment, MatrixOp, Multiply};
use crate::registers::{SlotRef, Window};
use crate::shared::Shared;

pub(super) use tiled::Matrices;

/// The words of one register in a warp; zero for lanes that do not exist.
type Words = [u64; WARP_LANES];

/// A warp, and what is needed to read the matrices of its product.
struct Warp<'a> {
    window: Window,
    index: usize,
    shared: &'a Shared,
    span: Span,
}

impl Gang<'_> {
    #[inline(never)]
    pub(super) fn matrix(&mut self, op: &MatrixOp, active: &Active, shared: &mut Shared, span: Span) -> Step {
        match op {
            MatrixOp::Multiply(multiply) => {
                if self.multiply_tiles(multiply, active, shared, span)? {
                    return Ok(());
                }
                let results = self.for_each_warp(active, multiply.d.registers.len(), |gang, warp, out| {
                    gang.multiply(multiply, &Warp { window: active.window, index: warp, shared, span }, out)
                })?;
                self.write_registers(&multiply.d.registers, active, &results);
            }
            MatrixOp::LoadRows(rows) => {
                if self.load_row_tiles(rows, active, shared, span) {
                    return Ok(());
                }
                let results = self.for_each_warp(active, rows.registers.len(), |gang, warp, out| {
                    let bytes = gang.load_rows(rows, active, warp, shared, span)?;
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
                self.for_each_warp(active, 0, |gang, warp, _| {
                    gang.store_rows(rows, active, warp, shared, span)
                })?;
            }
            MatrixOp::Transpose { dst, src } => {
                let results = self.for_each_warp(active, 1, |gang, warp, out| {
                    let words = gang.words(active.window, *src, warp);
                    out[0] = std::array::from_fn(|lane| {
                        // The elements of two rows in the lane's column.
                        let half = |row: usize| words[row * 4 + lane / 8] >> (lane / 4 % 2 * 16) & 0xffff;
                        half(lane % 4 * 2) | half(lane % 4 * 2 + 1) << 16
                    });
                    Ok(())
                })?;
                self.write_registers(&[*dst], active, &results);
            }
            MatrixOp::Load(strided) => {
                if self.move_tiles(strided, active, shared, span, false)? {
                    return Ok(());
                }
                let fragment = &strided.fragment;
                let results = self.for_each_warp(active, fragment.registers.len(), |gang, warp, out| {
                    let addresses = gang.addresses(&strided.address, active);
                    let area = gang.area(strided, &addresses, active, warp, shared, span, false)?;
                    fragment.spread(out, |place| area.read(place));
                    Ok(())
                })?;
                self.write_registers(&fragment.registers, active, &results);
            }
            MatrixOp::Store(strided) => {
                if self.move_tiles(strided, active, shared, span, true)? {
                    return Ok(());
                }
                self.for_each_warp(active, 0, |gang, warp, _| {
                    let addresses = gang.addresses(&strided.address, active);
                    let area = gang.area(strided, &addresses, active, warp, shared, span, true)?;
                    gang.each_element(&strided.fragment, active.window, warp, |place, bits| {
                        area.write(place, bits);
                    });
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Computes the product of one warp, element by element.
    fn multiply_warp(&mut self, op: &Multiply, active: &Active, warp: &Warp) -> Step {
        let mut out = vec![[0; WARP_LANES]; op.d.registers.len()];
        self.multiply(op, warp, &mut out)?;
        let first = warp.index * WARP_LANES;
        for (slot, words) in op.d.registers.iter().zip(out) {
            let Some(slot) = *slot else { continue };
            let array = self.registers.update(active.window, slot);
            for (lane, word) in words.into_iter().enumerate() {
                // SAFETY: the warp is whole, and the array has an element for every lane.
                unsafe { store(array, slot.width, first + lane, word) }
            }
        }
        Ok(())
    }

    /// Calls `f` for every active warp to fill the words of `registers` registers. Returns these words for all warps.
    fn for_each_warp(
        &mut self,
        active: &Active,
        registers: usize,
        mut f: impl FnMut(&mut Self, usize, &mut [Words]) -> Step,
    ) -> Step<Vec<Vec<Words>>> {
        let warps = self.threads.lanes.div_ceil(WARP_LANES);
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

    /// Writes the words that [`Gang::for_each_warp`] returned.
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
        for (lane, word) in words.iter_mut().enumerate().take(self.threads.lanes - first) {
            // SAFETY: the array has an element for every lane.
            *word = unsafe { load(array, slot.width, first + lane) };
        }
        words
    }

    /// Calls `f` with the index and the bits of every element of a matrix.
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
}

impl Fragment {
    /// Packs the elements of a matrix into the words of its registers.
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
