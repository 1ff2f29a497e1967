//! Which bytes of global allocations have been written.
//!
//! This state outlives launches. A fully written page takes one bit; a fully written allocation takes nothing. Each host thread
//! works on a copy of what is unwritten; the copies are joined afterwards.

use std::collections::{BTreeMap, HashMap};

/// Bytes of a page.
const PAGE: u64 = 4096;
/// The bytes of a page, one bit each.
type Words = [u64; PAGE as usize / 64];

/// Which bytes of global allocations have been written, over all launches of a device. Memory outside of the allocations known here
/// counts as written.
#[derive(Clone, Default)]
pub struct GlobalMemory {
    allocations: BTreeMap<u64, Allocation>,
    /// The number of allocations with unwritten bytes.
    unwritten: usize,
}

#[derive(Clone)]
struct Allocation {
    bytes: u64,
    /// `None` if all of it is written.
    pages: Option<Pages>,
}

/// The written bytes of an allocation, by page index.
#[derive(Clone)]
struct Pages {
    /// The fully written pages, one bit each.
    full: Vec<u64>,
    /// Partly written pages.
    parts: HashMap<u64, Box<Words>>,
    /// The number of pages that are not full.
    left: u64,
}

/// The bits of a word for the bytes from `start` to `end`, exclusive, counted from the word's first byte.
fn bits(start: u64, end: u64) -> u64 {
    if start >= end { 0 } else { u64::MAX >> (64 - (end - start)) << start }
}

impl Pages {
    fn new(bytes: u64) -> Pages {
        let pages = bytes.div_ceil(PAGE);
        let mut new =
            Pages { full: vec![0; pages.div_ceil(64) as usize], parts: HashMap::new(), left: pages };
        // The bytes of the last page after the end count as written.
        if !bytes.is_multiple_of(PAGE) {
            new.set(pages - 1, bytes % PAGE, PAGE, true);
        }
        new
    }

    fn all_written(bytes: u64) -> Pages {
        let pages = bytes.div_ceil(PAGE);
        Pages { full: vec![u64::MAX; pages.div_ceil(64) as usize], parts: HashMap::new(), left: 0 }
    }

    fn is_full(&self, page: u64) -> bool {
        self.full.get(page as usize / 64).is_none_or(|word| word >> (page % 64) & 1 != 0)
    }

    /// Marks the bytes of a page from `start` to `end`, exclusive, as written or unwritten.
    fn set(&mut self, page: u64, start: u64, end: u64, written: bool) {
        let is_full = self.is_full(page);
        if written && is_full || !written && !is_full && !self.parts.contains_key(&page) {
            return;
        }
        let (word, bit) = (&mut self.full[page as usize / 64], 1 << (page % 64));
        if start == 0 && end == PAGE {
            if is_full != written {
                *word ^= bit;
                self.left = if written { self.left - 1 } else { self.left + 1 };
            }
            self.parts.remove(&page);
            return;
        }
        if is_full {
            *word ^= bit;
            self.left += 1;
        }
        let fill = if is_full { u64::MAX } else { 0 };
        let words = self.parts.entry(page).or_insert_with(|| Box::new([fill; PAGE as usize / 64]));
        for index in start / 64..end.div_ceil(64) {
            let base = 64 * index;
            let mask = bits(start.saturating_sub(base), (end - base).min(64));
            let word = &mut words[index as usize];
            *word = if written { *word | mask } else { *word & !mask };
        }
        if written && words.iter().all(|&word| word == u64::MAX) {
            self.parts.remove(&page);
            self.full[page as usize / 64] |= bit;
            self.left -= 1;
        }
    }

    /// Marks bytes of the allocation as written or unwritten.
    fn set_range(&mut self, start: u64, end: u64, written: bool) {
        let mut at = start;
        while at < end {
            let page = at / PAGE;
            let next = ((page + 1) * PAGE).min(end);
            self.set(page, at % PAGE, next - page * PAGE, written);
            at = next;
        }
    }

    /// The written bytes among the 64 at a multiple of 64.
    fn word(&self, index: u64) -> u64 {
        let page = index / (PAGE / 64);
        match self.parts.get(&page) {
            _ if self.is_full(page) => u64::MAX,
            Some(words) => words[(index % (PAGE / 64)) as usize],
            None => 0,
        }
    }

    /// The first written (or unwritten) byte from `start` to `end`, exclusive.
    fn find(&self, start: u64, end: u64, written: bool) -> Option<u64> {
        let mut at = start;
        while at < end {
            let page = at / PAGE;
            if !self.parts.contains_key(&page) {
                if self.is_full(page) == written {
                    return Some(at);
                }
                at = (page + 1) * PAGE;
                continue;
            }
            let word = self.word(at / 64);
            let found = (if written { word } else { !word }) >> (at % 64);
            if found != 0 {
                return Some(at + u64::from(found.trailing_zeros())).filter(|&at| at < end);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

impl GlobalMemory {
    /// Adds an unwritten allocation.
    pub fn allocate(&mut self, base: u64, bytes: u64) {
        self.free(base);
        let pages = (bytes > 0).then(|| Pages::new(bytes));
        self.unwritten += usize::from(pages.is_some());
        self.allocations.insert(base, Allocation { bytes, pages });
    }

    /// Adds an allocation that counts as written.
    pub fn allocate_written(&mut self, base: u64, bytes: u64) {
        self.free(base);
        self.allocations.insert(base, Allocation { bytes, pages: None });
    }

    /// Removes an allocation.
    pub fn free(&mut self, base: u64) {
        if let Some(allocation) = self.allocations.remove(&base) {
            self.unwritten -= usize::from(allocation.pages.is_some());
        }
    }

    /// The unwritten bytes of the allocation at `base`: their number, and the first. `None` if there are none.
    pub fn never_written(&self, base: u64) -> Option<(u64, u64)> {
        let end = base + self.allocations.get(&base)?.bytes;
        let (mut count, mut first, mut at) = (0, None, base);
        while let Some((start, next)) = self.next_unwritten(at, end) {
            count += next - start;
            first = first.or(Some(start));
            at = next;
        }
        Some((count, first?))
    }

    /// The bases of all allocations.
    pub fn bases(&self) -> impl Iterator<Item = u64> + '_ {
        self.allocations.keys().copied()
    }

    /// Whether some bytes are unwritten.
    pub fn has_unwritten(&self) -> bool {
        self.unwritten > 0
    }

    /// The allocation that contains an address, and its base.
    fn find(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (&base, allocation) = self.allocations.range(..=address).next_back()?;
        (address - base < allocation.bytes).then_some((base, allocation))
    }

    /// The parts of a range that are in allocations: base, start and end of each.
    fn parts(&self, address: u64, bytes: u64) -> Vec<(u64, u64, u64)> {
        let end = address.saturating_add(bytes);
        let first = self.find(address).map_or(address, |(base, _)| base);
        let part = |(&base, allocation): (&u64, &Allocation)| {
            (base, address.max(base), end.min(base.saturating_add(allocation.bytes)))
        };
        self.allocations.range(first..end).map(part).filter(|(_, start, end)| start < end).collect()
    }

    /// Marks bytes as written.
    pub fn write(&mut self, address: u64, bytes: u64) {
        if !self.has_unwritten() {
            return;
        }
        for (base, start, end) in self.parts(address, bytes) {
            let Some(allocation) = self.allocations.get_mut(&base) else { continue };
            if let Some(pages) = &mut allocation.pages {
                pages.set_range(start - base, end - base, true);
                if pages.left == 0 {
                    allocation.pages = None;
                    self.unwritten -= 1;
                }
            }
        }
    }

    /// Marks bytes as unwritten, because they now hold unwritten values.
    pub fn forget(&mut self, address: u64, bytes: u64) {
        for (base, start, end) in self.parts(address, bytes) {
            let Some(allocation) = self.allocations.get_mut(&base) else { continue };
            let bytes = allocation.bytes;
            self.unwritten += usize::from(allocation.pages.is_none());
            let pages = allocation.pages.get_or_insert_with(|| Pages::all_written(bytes));
            pages.set_range(start - base, end - base, false);
        }
    }

    /// Copies the state of some bytes to others.
    pub fn copy(&mut self, from: u64, to: u64, bytes: u64) {
        let mut at = from;
        let end = from.saturating_add(bytes);
        while at < end {
            let (start, next) = self.next_unwritten(at, end).unwrap_or((end, end));
            self.write(at - from + to, start - at);
            self.forget(start - from + to, next - start);
            at = next;
        }
    }

    /// Whether all of these bytes are written.
    pub fn is_written(&self, address: u64, bytes: u64) -> bool {
        !self.has_unwritten() || self.next_unwritten(address, address.saturating_add(bytes)).is_none()
    }

    /// The start and end of the first run of unwritten bytes from `address` to `end`, exclusive.
    pub fn next_unwritten(&self, address: u64, end: u64) -> Option<(u64, u64)> {
        if !self.has_unwritten() {
            return None;
        }
        // Usually the range is within one allocation.
        let within = self.find(address).filter(|(base, allocation)| end <= base + allocation.bytes);
        let parts = match within {
            Some((base, _)) => vec![(base, address, end)],
            None => self.parts(address, end.saturating_sub(address)),
        };
        parts.into_iter().find_map(|(base, start, end)| {
            let pages = self.allocations.get(&base)?.pages.as_ref()?;
            let first = pages.find(start - base, end - base, false)?;
            let last = pages.find(first, end - base, true).unwrap_or(end - base);
            Some((base + first, base + last))
        })
    }

    /// The unwritten bytes among up to 64, one bit each.
    pub fn unwritten(&self, address: u64, bytes: u64) -> u64 {
        let (mut missing, mut at, end) = (0, address, address.saturating_add(bytes.min(64)));
        while let Some((start, next)) = self.next_unwritten(at, end) {
            missing |= bits(start - address, next - address);
            at = next;
        }
        missing
    }

    /// Marks what is written in another copy as written here, too, in allocations that have unwritten bytes here.
    pub(crate) fn join(&mut self, other: &GlobalMemory) {
        for (&base, of_other) in &other.allocations {
            let Some(allocation) = self.allocations.get_mut(&base) else { continue };
            let (Some(pages), true) = (&mut allocation.pages, allocation.bytes == of_other.bytes) else {
                continue;
            };
            let Some(others) = &of_other.pages else {
                allocation.pages = None;
                self.unwritten -= 1;
                continue;
            };
            for (index, &word) in others.full.iter().enumerate() {
                let added = word & !pages.full[index];
                for page in (0..64).filter(|bit| added >> bit & 1 != 0).map(|bit| 64 * index as u64 + bit) {
                    if page < allocation.bytes.div_ceil(PAGE) {
                        pages.set(page, 0, PAGE, true);
                    }
                }
            }
            for (&page, words) in &others.parts {
                for (index, &word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
                    let (mut at, base) = (0, 64 * index as u64);
                    while let Some(start) = (at..64).find(|bit| word >> bit & 1 != 0) {
                        let end = (start..64).find(|bit| word >> bit & 1 == 0).unwrap_or(64);
                        pages.set(page, base + start, base + end, true);
                        at = end;
                    }
                }
            }
            if pages.left == 0 {
                allocation.pages = None;
                self.unwritten -= 1;
            }
        }
    }

    /// The state that a part of a launch needs: the allocations with unwritten bytes.
    pub(crate) fn only_unwritten(&self) -> GlobalMemory {
        let unwritten = self.allocations.iter().filter(|(_, allocation)| allocation.pages.is_some());
        let allocations = unwritten.map(|(&base, allocation)| (base, allocation.clone())).collect();
        GlobalMemory { allocations, unwritten: self.unwritten }
    }
}

/// Whether the unwritten bytes from `start` to `end` look like padding of a structure: there are few, they follow written ones, and
/// they end where an element of 2, 4 or 8 bytes can begin.
pub fn is_padding(start: u64, end: u64, follows_written: bool) -> bool {
    let align = match end - start {
        1 => 2,
        2..4 => 4,
        4..8 => 8,
        _ => return false,
    };
    follows_written && end.is_multiple_of(align)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random numbers below a bound.
    fn numbers() -> impl FnMut(u64) -> u64 {
        let mut state = 7u64;
        move |below| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        }
    }

    #[test]
    fn it_knows_of_each_byte() {
        let mut memory = GlobalMemory::default();
        let (first, second, third) = (1 << 40, (1 << 40) + 20_000, 1 << 41);
        let sizes = [(first, 20_000), (second, 9_000), (third, 3 * PAGE)];
        let mut model: BTreeMap<u64, bool> = BTreeMap::new();
        for (base, bytes) in sizes {
            memory.allocate(base, bytes);
            model.extend((base..base + bytes).map(|byte| (byte, false)));
        }
        let mut random = numbers();
        for step in 0..3000 {
            let address = [first, second, third][random(3) as usize] + random(22_000);
            let bytes = 1 + if random(4) == 0 { random(12_000) } else { random(200) };
            let to = third + random(3 * PAGE);
            match random(8) {
                0 => {
                    memory.forget(address, bytes);
                    model.range_mut(address..address + bytes).for_each(|(_, written)| *written = false);
                }
                1 if address + bytes <= to || to + bytes <= address => {
                    memory.copy(address, to, bytes);
                    let states: Vec<bool> = (address..address + bytes)
                        .map(|byte| model.get(&byte).copied().unwrap_or(true))
                        .collect();
                    for (byte, state) in (to..).zip(states) {
                        model.entry(byte).and_modify(|written| *written = state);
                    }
                }
                _ => {
                    memory.write(address, bytes);
                    model.range_mut(address..address + bytes).for_each(|(_, written)| *written = true);
                }
            }
            let is_written = |byte: u64| model.get(&byte).copied().unwrap_or(true);
            let (at, bytes) = (address + random(300), 1 + random(64));
            let missing = (0..bytes).filter(|&i| !is_written(at + i)).fold(0, |all, i| all | 1 << i);
            assert_eq!(memory.unwritten(at, bytes), missing, "step {step}");
            assert_eq!(memory.is_written(at, bytes), missing == 0);
            let any = model.values().any(|&written| !written);
            assert_eq!(memory.has_unwritten(), any, "step {step}");
        }
        sizes.into_iter().for_each(|(base, bytes)| memory.write(base, bytes));
        assert!(!memory.has_unwritten());
        memory.forget(third, 1);
        memory.free(third);
        assert!(!memory.has_unwritten() && memory.is_written(third, 1));
    }

    #[test]
    fn what_is_never_written_is_counted() {
        let (mut memory, base) = (GlobalMemory::default(), 1 << 40);
        memory.allocate(base, 10_000);
        assert_eq!(memory.never_written(base), Some((10_000, base)));
        memory.write(base, 4);
        memory.write(base + 5000, 1000);
        assert_eq!(memory.never_written(base), Some((10_000 - 1004, base + 4)));
        memory.write(base, 10_000);
        assert_eq!((memory.never_written(base), memory.never_written(base + 1)), (None, None));
    }

    #[test]
    fn what_parts_of_a_launch_write_is_joined() {
        let mut random = numbers();
        for _ in 0..50 {
            let (base, bytes) = (1 << 40, 5 * PAGE + 77);
            let mut all = GlobalMemory::default();
            all.allocate(base, bytes);
            all.write(base + 3, 100);
            let mut expected = all.clone();
            let mut forks = [all.only_unwritten(), all.only_unwritten()];
            for fork in &mut forks {
                for _ in 0..random(8) {
                    let (address, bytes) = (base + random(bytes), 1 + random(9000));
                    fork.write(address, bytes);
                    expected.write(address, bytes);
                }
            }
            forks.iter().for_each(|fork| all.join(fork));
            assert_eq!(all.has_unwritten(), expected.has_unwritten());
            for at in (base..base + bytes).step_by(64) {
                assert_eq!(all.unwritten(at, 64), expected.unwritten(at, 64));
            }
        }
    }

    #[test]
    fn padding_follows_what_is_written_and_ends_where_elements_begin() {
        let of = |start, end| is_padding(start, end, true);
        assert!(of(1, 2) && of(1, 4) && of(2, 4) && of(4, 8) && of(12, 16) && of(17, 24) && of(9, 12));
        assert!(!of(2, 3) && !of(1, 3) && !of(0, 8) && !of(8, 12) && !of(4, 12) && !is_padding(4, 8, false));
    }
}
