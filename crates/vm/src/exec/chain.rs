//! Chains of `fma`: see [`crate::code`].

use lanes::{Factor, Shape};

use super::{Active, Gang};
use crate::code::Link;
use crate::mask::GROUP_LANES;
use crate::registers::{SlotRef, is_memory, is_rows};

/// A chain under way.
#[derive(Default)]
pub(super) struct Chain {
    /// Where the first sum stands, and the first link that waits; if any does.
    begin: Option<(SlotRef, usize)>,
    /// By link.
    factors: Vec<[Factor; 2]>,
}

impl Chain {
    /// Notes where a factor of a link stands.
    #[inline]
    pub fn note(&mut self, link: usize, which: usize, factor: Factor) {
        if link >= self.factors.len() {
            self.factors.resize(link + 1, [Factor::NONE; 2]);
        }
        self.factors[link][which] = factor;
    }
}

impl Gang<'_> {
    /// Notes what a link multiplies, and computes the sum if nothing can wait any longer.
    #[inline(never)]
    pub(super) fn link(&mut self, link: &Link, active: &Active) {
        let (pure, index) = (&link.pure, link.index);
        let begins = self.chains[index.chain].begin.is_none();
        if !(active.alone && active.all_lanes) || begins && self.all_affine(pure, active) {
            // Which lanes run does not change within a block: no link waits.
            return self.pure(pure, active);
        }
        let mut keeps = !link.last;
        for which in 0..2 {
            let slot = pure.src[which];
            let forms = self.registers.forms(active.window, slot);
            // Of rows the load has taken note.
            if !is_rows(forms) {
                keeps &= is_memory(forms) || link.stable[which];
                let factor = self.registers.factor(active.window, slot);
                self.chains[index.chain].note(index.link, which, factor);
            }
        }
        if begins {
            self.chains[index.chain].begin = Some((pure.src[2], index.link));
            keeps &= link.stable[2];
        }
        if !keeps && let [Some(dst), _] = pure.dst {
            self.end_chain(link, dst, active);
        }
    }

    /// Computes the sum of the links that wait, up to this one.
    fn end_chain(&mut self, link: &Link, dst: SlotRef, active: &Active) {
        let chain = &mut self.chains[link.index.chain];
        let Some((slot, begin)) = chain.begin.take() else { return };
        let products = &mut chain.factors[begin..=link.index.link];
        let mut first = self.registers.factor(active.window, slot);
        // One group that stands for all would be lost with the first result.
        let mut group = [0u8; 4 * GROUP_LANES];
        let target = self.registers.array(active.window, dst);
        // SAFETY: the array has at least one group.
        unsafe { std::ptr::copy_nonoverlapping(target, group.as_mut_ptr(), group.len()) }
        self.registers.overwrite(active.window, dst);
        for factor in products.as_flattened_mut().iter_mut().chain([&mut first]) {
            if factor.array == target && factor.step == 0 {
                factor.array = group.as_ptr();
            }
        }
        let (groups, rows, blocks) = self.registers.rows().groups();
        let shape = Shape { groups, rows, blocks };
        // SAFETY: factors are registers that have not been written since, or memory that the load checked and nothing in this
        // block writes before the chain ends; both live as long as the gang. A register that is the target steps as it does.
        unsafe { (self.registers.helpers().fma_chain)(target, first, products, shape) }
    }
}
