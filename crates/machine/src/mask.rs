//! Sets of lanes of a gang.

use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, Not};

/// The most lanes of a gang.
pub const GANG_LANES: usize = lanes::MAX_LANES;
/// Words of a mask.
const WORDS: usize = GANG_LANES / 64;
/// Lanes of a group. A predicate is stored as one `u16` for each group.
pub const GROUP_LANES: usize = 16;
/// Lanes of a warp.
pub const WARP_LANES: usize = 32;

/// A set of lanes of a gang: bit `i` of the little-endian number is lane `i`.
///
/// A predicate register has this layout in the register file.
#[derive(Clone, Copy, Debug, Default, Eq)]
#[repr(C, align(64))]
pub struct Mask(pub [u64; WORDS]);

impl Mask {
    /// No lane.
    pub const EMPTY: Mask = Mask([0; WORDS]);
    /// All lanes that a gang can have.
    pub const ALL: Mask = Mask([!0; WORDS]);

    /// The first `n` lanes.
    #[inline]
    pub fn first(n: usize) -> Mask {
        let mut words = [0; WORDS];
        for (i, word) in words.iter_mut().enumerate() {
            let bits = n.saturating_sub(i * 64).min(64);
            *word = if bits == 64 { !0 } else { (1u64 << bits) - 1 };
        }
        Mask(words)
    }

    /// The words up to the last nonzero word.
    #[inline]
    pub fn words(&self) -> &[u64] {
        let end = self.0.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        &self.0[..end]
    }

    /// Lanes `first` to `end`, exclusive.
    #[inline]
    pub fn range(first: usize, end: usize) -> Mask {
        let mut mask = Mask::EMPTY;
        for (i, word) in mask.0[first / 64..end.div_ceil(64)].iter_mut().enumerate() {
            let start = (first / 64 + i) * 64;
            let (low, high) = (first.max(start) - start, end.min(start + 64) - start);
            *word = u64::MAX << low & u64::MAX >> (64 - high);
        }
        mask
    }

    /// Only lane `lane`.
    #[inline]
    pub fn single(lane: usize) -> Mask {
        let mut mask = Mask::EMPTY;
        mask.insert(lane);
        mask
    }

    /// No lane is in the set.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.iter().fold(0, |any, word| any | word) == 0
    }

    /// Number of lanes in the set.
    #[inline]
    pub fn count(self) -> u32 {
        #[inline(always)]
        fn count(words: &[u64; WORDS]) -> u32 {
            words.iter().map(|word| word.count_ones()).sum()
        }
        // Divergent code needs this for every path. Without the instruction, which some hosts lack, it takes ten times as long.
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("popcnt") {
            #[target_feature(enable = "popcnt")]
            fn with_instruction(words: &[u64; WORDS]) -> u32 {
                count(words)
            }
            // SAFETY: the host has the instruction.
            return unsafe { with_instruction(&self.0) };
        }
        count(&self.0)
    }

    /// Compresses the lanes by `all`: lane `i` of the result is set if the `i`-th lane of `all` is in the set.
    #[inline]
    pub fn compress(self, all: &Mask) -> Mask {
        #[inline(always)]
        fn compress(lanes: &Mask, all: &Mask, extract: impl Fn(u64, u64) -> u64) -> Mask {
            let mut compressed = Mask::EMPTY;
            let mut next = 0;
            for (&lanes, &all) in lanes.0.iter().zip(&all.0).filter(|(_, all)| **all != 0) {
                let bits = u128::from(extract(lanes, all)) << (next % 64);
                compressed.0[next / 64] |= bits as u64;
                if let Some(word) = compressed.0.get_mut(next / 64 + 1) {
                    *word |= (bits >> 64) as u64;
                }
                next += all.count_ones() as usize;
            }
            compressed
        }
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("bmi2") && std::is_x86_feature_detected!("popcnt") {
            #[target_feature(enable = "bmi2,popcnt")]
            fn with_instruction(lanes: &Mask, all: &Mask) -> Mask {
                compress(lanes, all, |lanes, all| std::arch::x86_64::_pext_u64(lanes, all))
            }
            // SAFETY: the host has the instructions.
            return unsafe { with_instruction(&self, all) };
        }
        compress(&self, all, extract)
    }

    /// The inverse of [`Mask::compress`]: the `i`-th lane of `all` is in the result if lane `i` is in the set.
    #[inline]
    pub fn expand(self, all: &Mask) -> Mask {
        #[inline(always)]
        fn expand(lanes: &Mask, all: &Mask, deposit: impl Fn(u64, u64) -> u64) -> Mask {
            let mut expanded = Mask::EMPTY;
            let mut next = 0;
            for (expanded, &all) in expanded.0.iter_mut().zip(&all.0).filter(|(_, all)| **all != 0) {
                let high = lanes.0.get(next / 64 + 1).copied().unwrap_or(0);
                let bits = u128::from(high) << 64 | u128::from(lanes.0[next / 64]);
                *expanded = deposit((bits >> (next % 64)) as u64, all);
                next += all.count_ones() as usize;
            }
            expanded
        }
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("bmi2") && std::is_x86_feature_detected!("popcnt") {
            #[target_feature(enable = "bmi2,popcnt")]
            fn with_instruction(lanes: &Mask, all: &Mask) -> Mask {
                expand(lanes, all, |bits, all| std::arch::x86_64::_pdep_u64(bits, all))
            }
            // SAFETY: the host has the instructions.
            return unsafe { with_instruction(&self, all) };
        }
        expand(&self, all, deposit)
    }

    /// Adds a lane to the set.
    #[inline]
    pub fn insert(&mut self, lane: usize) {
        self.0[lane / 64] |= 1 << (lane % 64);
    }

    /// Whether a lane is in the set.
    #[inline]
    pub fn contains(self, lane: usize) -> bool {
        self.0[lane / 64] >> (lane % 64) & 1 != 0
    }

    /// The lowest lane.
    #[inline]
    pub fn lowest(self) -> Option<usize> {
        (0..WORDS).find(|&i| self.0[i] != 0).map(|i| i * 64 + self.0[i].trailing_zeros() as usize)
    }

    /// The highest lane.
    #[inline]
    pub fn highest(self) -> Option<usize> {
        (0..WORDS).rfind(|&i| self.0[i] != 0).map(|i| i * 64 + self.0[i].ilog2() as usize)
    }

    /// Calls `f` for every lane, in ascending order.
    #[inline(always)]
    pub fn for_each(self, mut f: impl FnMut(usize)) {
        for (i, &word) in self.0.iter().enumerate() {
            if word == !0 {
                (i * 64..i * 64 + 64).for_each(&mut f);
                continue;
            }
            let mut rest = word;
            while rest != 0 {
                f(i * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }

    /// The 16 lanes of group `group`.
    #[inline]
    pub fn group(self, group: usize) -> u16 {
        (self.0[group / 4] >> (group % 4 * 16)) as u16
    }

    /// Adds lanes to group `group`, which must be empty.
    #[inline]
    pub fn set_group(&mut self, group: usize, lanes: u16) {
        self.0[group / 4] |= u64::from(lanes) << (group % 4 * GROUP_LANES);
    }

    /// The 32 lanes of warp `warp`.
    #[inline]
    pub fn warp(self, warp: usize) -> u32 {
        (self.0[warp / 2] >> (warp % 2 * 32)) as u32
    }

    /// The 32 lanes from `first` on. Lanes beyond the end of a mask are not in the set.
    #[inline]
    pub fn lanes_from(self, first: usize) -> u32 {
        let (word, shift) = (first / 64, first % 64);
        let low = self.0.get(word).map_or(0, |word| word >> shift);
        let high = self.0.get(word + 1).map_or(0, |word| word << 1 << (63 - shift));
        (low | high) as u32
    }

    /// The warps that have lanes in the set, with these lanes.
    #[inline]
    pub fn warps(self) -> impl Iterator<Item = (usize, u32)> {
        (0..GANG_LANES / WARP_LANES).map(move |warp| (warp, self.warp(warp))).filter(|&(_, lanes)| lanes != 0)
    }

    /// Whether the set contains, for each warp, either all lanes that `all` has or none.
    #[inline]
    pub fn is_whole_warps_of(self, all: Mask) -> bool {
        self.0.iter().zip(all.0).all(|(&mine, all)| {
            [0xffff_ffff, 0xffff_ffff << 32].iter().all(|warp| mine & warp == 0 || mine & warp == all & warp)
        })
    }

    /// Replaces the 32 lanes of warp `warp`.
    #[inline]
    pub fn set_warp(&mut self, warp: usize, lanes: u32) {
        let shift = warp % 2 * 32;
        let word = &mut self.0[warp / 2];
        *word = *word & !(0xffff_ffff << shift) | u64::from(lanes) << shift;
    }

    /// Lanes of `self` that are not in `other`.
    #[inline]
    pub fn without(self, other: Mask) -> Mask {
        Mask(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// If the `count` lanes of the set are consecutive: the first lane and one past the last. Otherwise `(0, 0)`.
    /// `groups` is [`Mask::group_span`].
    #[inline]
    pub fn range_of(self, groups: (usize, usize), count: usize) -> (usize, usize) {
        if count == 0 {
            return (0, 0);
        }
        let first = groups.0 * GROUP_LANES + self.group(groups.0).trailing_zeros() as usize;
        let end = groups.1 * GROUP_LANES - self.group(groups.1 - 1).leading_zeros() as usize;
        if end - first == count { (first, end) } else { (0, 0) }
    }

    /// The range of groups that hold any lane: first, and one past the last. `(0, 0)` when empty.
    #[inline]
    pub fn group_span(self) -> (usize, usize) {
        let Some(first) = self.0.iter().position(|&word| word != 0) else { return (0, 0) };
        let last = self.0.iter().rposition(|&word| word != 0).unwrap_or(first);
        let (low, high) = (self.0[first].trailing_zeros(), self.0[last].leading_zeros());
        (first * 4 + low as usize / GROUP_LANES, last * 4 + 4 - high as usize / GROUP_LANES)
    }
}

/// The bits of `word` at the set bits of `all`, packed into the lowest bits.
fn extract(word: u64, mut all: u64) -> u64 {
    let (mut bits, mut next) = (0, 0);
    while all != 0 {
        bits |= (word >> all.trailing_zeros() & 1) << next;
        (all, next) = (all & (all - 1), next + 1);
    }
    bits
}

/// The inverse of [`extract`]: spreads the lowest bits over the set bits of `all`.
fn deposit(mut bits: u64, mut all: u64) -> u64 {
    let mut word = 0;
    while all != 0 {
        word |= (bits & 1) << all.trailing_zeros();
        (all, bits) = (all & (all - 1), bits >> 1);
    }
    word
}

impl PartialEq for Mask {
    /// Avoids the call that comparing arrays would make.
    #[inline(always)]
    fn eq(&self, other: &Mask) -> bool {
        let differ = self.0.iter().zip(&other.0).fold(0, |differ, (a, b)| differ | (a ^ b));
        differ == 0
    }
}

impl BitAnd for Mask {
    type Output = Mask;
    #[inline]
    fn bitand(self, other: Mask) -> Mask {
        Mask(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }
}

impl BitOr for Mask {
    type Output = Mask;
    #[inline]
    fn bitor(self, other: Mask) -> Mask {
        Mask(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
}

impl BitAndAssign for Mask {
    fn bitand_assign(&mut self, other: Mask) {
        *self = *self & other;
    }
}

impl BitOrAssign for Mask {
    fn bitor_assign(&mut self, other: Mask) {
        *self = *self | other;
    }
}

impl Not for Mask {
    type Output = Mask;
    // `map` would not be inlined here.
    #[inline]
    fn not(self) -> Mask {
        Mask(std::array::from_fn(|i| !self.0[i]))
    }
}

/// Lanes in ascending order.
pub struct Lanes {
    mask: Mask,
    word: usize,
}

impl Iterator for Lanes {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        while self.word < WORDS {
            let bits = &mut self.mask.0[self.word];
            if *bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                return Some(self.word * 64 + bit);
            }
            self.word += 1;
        }
        None
    }
}

impl IntoIterator for Mask {
    type Item = usize;
    type IntoIter = Lanes;
    fn into_iter(self) -> Lanes {
        Lanes { mask: self, word: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_iteration_agree_with_membership() {
        for n in [0, 1, 15, 16, 17, 33, 64, 100, 255, 256, 900, GANG_LANES] {
            let mask = Mask::first(n);
            assert_eq!(mask.count() as usize, n);
            assert_eq!(mask.into_iter().collect::<Vec<_>>(), (0..n).collect::<Vec<_>>());
            assert_eq!(mask.group_span(), (0, n.div_ceil(16)));
            let mut lanes = Vec::new();
            (mask | Mask::single(950)).for_each(|lane| lanes.push(lane));
            assert_eq!(lanes, (mask | Mask::single(950)).into_iter().collect::<Vec<_>>());
        }
        for (first, end) in [(0, 64), (0, GANG_LANES), (32, 96), (100, 101), (64, 128), (5, 5), (960, 1024)] {
            assert_eq!(Mask::range(first, end), Mask::first(end).without(Mask::first(first)));
        }
        let mask = Mask::single(40) | Mask::single(130);
        assert_eq!(mask.group_span(), (2, 9));
        assert_eq!(mask.warp(1), 1 << 8);
        assert_eq!(mask.group(8), 1 << 2);
        assert_eq!(Mask::EMPTY.group_span(), (0, 0));
        assert_eq!(Mask::ALL.group_span(), (0, GANG_LANES / GROUP_LANES));
    }

    #[test]
    fn lanes_are_brought_together_and_apart() {
        let every = |step: usize| (0..GANG_LANES).step_by(step).fold(Mask::EMPTY, |m, i| m | Mask::single(i));
        let some = [Mask::EMPTY, Mask::ALL, Mask::first(128), Mask::range(130, 200), every(2), every(9)];
        for all in some.into_iter().chain([!every(7), Mask::single(1023)]) {
            for lanes in [Mask::EMPTY, Mask::ALL, Mask::range(3, 777), every(3), every(16)] {
                let each = all.into_iter().enumerate().filter(|&(_, lane)| lanes.contains(lane));
                let compressed = each.fold(Mask::EMPTY, |m, (i, _)| m | Mask::single(i));
                assert_eq!(lanes.compress(&all), compressed);
                assert_eq!(compressed.expand(&all), lanes & all);
                // Bits beyond the count of `all` are ignored.
                let more = Mask::ALL.without(Mask::first(all.count() as usize));
                assert_eq!((compressed | more).expand(&all), lanes & all);
            }
            for (&word, &all) in every(3).0.iter().zip(&all.0) {
                let bits = extract(word, all);
                let wanted = Mask([word; WORDS])
                    .compress(&Mask(std::array::from_fn(|i| if i == 0 { all } else { 0 })));
                assert_eq!((bits, deposit(bits, all)), (wanted.0[0], word & all));
            }
        }
    }

    #[test]
    fn whole_warps_are_recognised() {
        let all = Mask::first(70);
        assert!(all.is_whole_warps_of(all) && Mask::EMPTY.is_whole_warps_of(all));
        assert!(Mask::first(32).is_whole_warps_of(all) && Mask::first(64).is_whole_warps_of(all));
        assert!(!Mask::first(33).is_whole_warps_of(all) && !Mask::single(69).is_whole_warps_of(all));
    }

    #[test]
    fn warps_are_replaced_alone() {
        let mut mask = Mask::ALL;
        mask.set_warp(3, 0x0f);
        assert_eq!(mask.warp(2), !0);
        assert_eq!(mask.warp(3), 0x0f);
        assert_eq!(mask.count(), GANG_LANES as u32 - 28);
    }
}
