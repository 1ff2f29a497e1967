//! Chains of `fma`: see [`crate::code`].

use lanes::{Factor, Shape};
use machine::mask::GROUP_LANES;

use super::{Active, Gang};
use crate::code::Link;
use crate::registers::{SlotRef, is_memory, is_rows};

/// A chain in progress.
#[derive(Default)]
pub(super) struct Chain {
    /// The slot of the initial addend and the first deferred link, if there is one.
    begin: Option<(SlotRef, usize)>,
    /// Indexed by link.
    factors: Vec<[Factor; 2]>,
}

impl Chain {
    /// Notes where a factor of a link is.
    #[inline]
    pub fn note(&mut self, link: usize, which: usize, factor: Factor) {
        if link >= self.factors.len() {
            self.factors.resize(link + 1, [Factor::NONE; 2]);
        }
        self.factors[link][which] = factor;
    }
}

impl Gang<'_> {
    /// Notes the factors of a link. Computes the sum if some operand cannot stay unread any longer.
    #[inline(never)]
    pub(super) fn link(&mut self, link: &Link, active: &Active) {
        let (pure, index) = (&link.pure, link.index);
        let begins = self.caches.chains[index.chain].begin.is_none();
        if !(active.alone && active.all_lanes) || begins && self.all_affine(pure, active) {
            // The active lanes do not change within a basic block, so no earlier link is deferred.
            return self.pure(pure, active);
        }
        let mut keeps = !link.last;
        for which in 0..2 {
            let slot = pure.src[which];
            let forms = self.registers.forms(active.window, slot);
            // If the factor is in rows of memory, the load has already noted it.
            if !is_rows(forms) {
                keeps &= is_memory(forms) || link.stable[which];
                let factor = self.registers.factor(active.window, slot);
                self.caches.chains[index.chain].note(index.link, which, factor);
            }
        }
        if begins {
            self.caches.chains[index.chain].begin = Some((pure.src[2], index.link));
            keeps &= link.stable[2];
        }
        if !keeps && let [Some(dst), _] = pure.dst {
            self.end_chain(link, dst, active);
        }
    }

    /// Computes the sum of the deferred links, up to this one.
    fn end_chain(&mut self, link: &Link, dst: SlotRef, active: &Active) {
        let chain = &mut self.caches.chains[link.index.chain];
        let Some((slot, begin)) = chain.begin.take() else { return };
        let products = &mut chain.factors[begin..=link.index.link];
        let mut first = self.registers.factor(active.window, slot);
        // The first result would overwrite a group that stands for all: keep a copy.
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
        // SAFETY: factors are registers that have not been written since, or memory that the load checked and that
        // nothing in this basic block writes before the chain ends; both live as long as the gang. A register that is
        // also the target has the target's step.
        unsafe { (self.registers.helpers().fma_chain)(target, first, products, shape) }
    }
}
