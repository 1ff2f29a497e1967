//! Products of matrices of halves in the registers of a warp, with sums of f32: `mma.m16n8k8` and `mma.m16n8k16`.
//!
//! A slot of A has 8 rows of 8 elements, and one of C or D the even or the odd columns of 8 rows: four lanes, a *quad*, have a row.
//! So an element of A, which is the same for a quad, is multiplied with four elements of B, which are the same for all quads. A, C and
//! D stay as they are, and only B is put into another order. `lanes::product` computes in the same order: along k, one rounding each.

use std::mem::offset_of;

use iced_x86::code_asm::{AsmMemoryOperand, ptr, rdi};
use ir::Slot;

use super::{Emitter, HostVectors, Result, Vector};
use crate::native::Frame;
use crate::operation::Half;

/// Lanes of a quad.
const QUAD: usize = 4;

/// Where elements of B are: of row `8 * step + 2 * lane + upper`, those in even or odd columns.
fn place(step: usize, upper: usize, odd: usize, lane: usize) -> AsmMemoryOperand {
    let vector = 4 * step + 2 * upper + odd;
    ptr(rdi + (offset_of!(Frame, operands) + 64 * vector + 4 * QUAD * lane))
}

impl<H: HostVectors> Emitter<'_, H> {
    /// A product whose sources are A, B and C. A vector has the lanes of four quads.
    pub(super) fn product(&mut self, format: Half, dst: &[Slot], src: &[Slot]) -> Result {
        // A slot of B for each 8 rows, two of A, and four of C.
        let steps = (src.len() - dst.len()) / 3;
        let (a, rest) = src.split_at(2 * steps);
        let (b, c) = rest.split_at(steps);
        self.order_factor(format, b)?;
        self.drop_values(b, &[c, a].concat());
        let in_place = self.adds_in_place(dst, src, c);
        let mut sums = Vec::new();
        for &slot in c {
            let chunks = (0..self.parts).map(|part| self.sum(slot, part, in_place));
            sums.push(chunks.collect::<Result<Vec<_>>>()?);
        }
        self.drop_values(c, a);
        for step in 0..steps {
            let (these, later) = a[2 * step..].split_at(2);
            self.add_products(format, step, (these, later), &sums)?;
        }
        for (&slot, sums) in dst.iter().zip(sums) {
            for (part, sum) in sums.into_iter().enumerate() {
                if in_place {
                    self.asm.canonicalize(sum)?;
                    continue;
                }
                self.block.free_vectors.push(sum);
                self.define((slot, part), true, |asm, dst| asm.copy(dst, sum, false))?;
            }
        }
        Ok(())
    }

    /// Puts B into the order of [`place`].
    fn order_factor(&mut self, format: Half, b: &[Slot]) -> Result {
        for (step, &slot) in b.iter().enumerate() {
            for upper in 0..2 {
                let columns = (0..self.parts).map(|part| self.half_of(slot, part, upper == 1, format));
                let columns = columns.collect::<Result<Vec<_>>>()?;
                for odd in 0..2 {
                    // A slot has its columns one after the other.
                    let from = |i: usize| (QUAD * (2 * (i % QUAD) + odd) + i / QUAD) as u32;
                    let lanes: [u32; 16] = std::array::from_fn(from);
                    self.asm.permute(&columns, &lanes)?;
                    self.asm.store(place(step, upper, odd, 0), H::SCRATCH, false)?;
                }
                self.block.free_vectors.extend(columns);
            }
        }
        Ok(())
    }

    /// Frees the registers of sources that are read no more, but for those that are read `later` in this operation.
    fn drop_values(&mut self, slots: &[Slot], later: &[Slot]) {
        for slot in slots.iter().filter(|slot| !later.contains(slot)) {
            if self.block.last.get(slot) != Some(&self.block.at) {
                continue;
            }
            for chunk in 0..self.parts {
                let register = self.block.vectors.remove(&(*slot, chunk)).map(|(register, _)| register);
                self.block.free_vectors.extend(register);
                self.block.stored.remove(&(*slot, chunk));
            }
        }
    }

    /// One half of each element as f32, in a register of its own.
    fn half_of(&mut self, slot: Slot, part: usize, upper: bool, format: Half) -> Result<Vector> {
        let from = self.bits(slot, part)?;
        let to = self.temporary()?;
        self.asm.half_to_single(to, from, upper, format)?;
        // What this operation has computed is nowhere else, and its sources may go to memory.
        self.block.pinned.clear();
        Ok(to)
    }

    /// D may be computed in the registers of C: they are those of words, and nothing else is read from them.
    fn adds_in_place(&self, dst: &[Slot], src: &[Slot], c: &[Slot]) -> bool {
        let reads = |slot| src.iter().filter(|&other| other == slot).count();
        let is_there =
            |key: &(Slot, usize)| self.words.contains_key(key) && !self.block.vectors.contains_key(key);
        dst == c
            && dst
                .iter()
                .all(|slot| reads(slot) == 1 && is_there(&(*slot, 0)) && is_there(&(*slot, self.parts - 1)))
    }

    /// A register that begins as C.
    fn sum(&mut self, slot: Slot, part: usize, in_place: bool) -> Result<Vector> {
        let from = self.number(slot, part)?;
        if in_place {
            return Ok(from);
        }
        let to = self.temporary()?;
        self.asm.copy(to.into(), from, false)?;
        self.block.pinned.clear();
        Ok(to)
    }

    /// Adds the products of 8 columns of A, which two slots have, and 8 rows of B. `later`: the slots that are read behind them.
    fn add_products(
        &mut self,
        format: Half,
        step: usize,
        (a, later): (&[Slot], &[Slot]),
        sums: &[Vec<Vector>],
    ) -> Result {
        let mut rows = Vec::new();
        for &slot in a {
            for part in 0..self.parts {
                let halves = [false, true].map(|upper| self.half_of(slot, part, upper, format));
                let [lower, upper] = halves;
                rows.push([lower?, upper?]);
            }
        }
        self.drop_values(a, later);
        let factors = [self.temporary()?, self.temporary()?];
        for lane in 0..QUAD {
            for upper in 0..2 {
                for (odd, &factor) in factors.iter().enumerate() {
                    self.asm.load_quad(factor, place(step, upper, odd, lane))?;
                }
                for (index, halves) in rows.iter().enumerate() {
                    let (slot, part) = (index / self.parts, index % self.parts);
                    self.asm.repeat_lane(halves[upper], lane)?;
                    for (odd, &factor) in factors.iter().enumerate() {
                        self.asm.add_product(sums[2 * slot + odd][part], factor)?;
                    }
                }
            }
        }
        self.block.free_vectors.extend(rows.as_flattened().iter().chain(&factors));
        Ok(())
    }
}
