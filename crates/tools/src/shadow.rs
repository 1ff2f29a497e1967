//! For each byte: the last weak write, and all accesses since then that a later access could race with.
//!
//! A cell of 32 bytes holds both. A strong write never replaces a weak one, whoever made it.
//!
//! Memory has a cell per 4-byte word while the bytes of the word are accessed together, and a cell per byte from then on. A 64-byte
//! row whose elements consecutive threads access has a single cell, even if several blocks read it. A row with one accessed word
//! has one cell; when a second word is accessed, it gets all 16.

mod query;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::clock::{Epoch, Stamp};
use crate::groups::{Group, List};

/// A recorded access: who made it, when, and by which instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub block: u32,
    /// The epoch of the thread, or the number of its group of asynchronous copies.
    pub epoch: Epoch,
    /// Index of the instruction's access; see [`Context::dominates`].
    pub place: u32,
    pub thread: u16,
    pub flags: u8,
    /// The bytes of the word that are accessed together. In a row, the number of bytes per thread.
    pub mask: u8,
}

/// The record has an access.
const PRESENT: u8 = 1;
/// The access is an asynchronous copy.
const COPY: u8 = 2;
/// There are several accesses: `epoch` is the index of their list.
const MANY: u8 = 4;
/// Each byte has its own cell: `epoch` is the index of the four.
const SPLIT: u8 = 8;

impl Record {
    pub fn new(stamp: Stamp, place: u32, copy: bool) -> Record {
        let flags = if copy { PRESENT | COPY } else { PRESENT };
        Record { block: stamp.block, epoch: stamp.epoch, place, thread: stamp.thread, flags, mask: 0 }
    }

    pub fn stamp(&self) -> Stamp {
        Stamp { block: self.block, thread: self.thread, epoch: self.epoch }
    }

    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether the record is in use: it has an access, or refers to others.
    fn is_any(&self) -> bool {
        self.flags != 0
    }

    /// Whether it is a copy; `epoch` is then its group.
    pub fn is_copy(&self) -> bool {
        self.is(COPY)
    }

    pub fn same(&self, other: &Record) -> bool {
        (self.block, self.epoch, self.place, self.thread)
            == (other.block, other.epoch, other.place, other.thread)
    }
}

#[derive(Clone, Copy, Default)]
struct Cell {
    /// The last weak write.
    write: Record,
    /// Reads and strong writes since.
    other: Record,
}

const PAGE_WORDS: usize = 1024;
/// Words of a row.
const ROW_WORDS: usize = 16;
/// Bytes of a row.
pub(crate) const ROW_BYTES: u64 = 64;

/// A part of memory: for each row, how its accesses are kept, and the index of its first cell in [`Shadow::cells`].
struct Page {
    kinds: [u8; PAGE_WORDS / ROW_WORDS],
    cells: [u32; PAGE_WORDS / ROW_WORDS],
}

/// No access to the row.
const UNTOUCHED: u8 = 0;
/// One cell, of the row's first element. Each further element belongs to the next thread.
const WHOLE: u8 = 1;
/// Each word has its own cell.
const APART: u8 = 2;
/// One cell, of the single accessed word: its index is added to this. Scattered accesses thus take one cell each.
const LONE: u8 = 16;

impl Default for Page {
    fn default() -> Page {
        Page { kinds: [UNTOUCHED; PAGE_WORDS / ROW_WORDS], cells: [0; PAGE_WORDS / ROW_WORDS] }
    }
}

/// Hashes page numbers.
#[derive(Default)]
pub(crate) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

impl Record {
    /// The record of the element at a byte, from the record of its row.
    fn at(&self, byte: u32, mask: u8) -> Record {
        match self.is(PRESENT) {
            true => {
                Record { thread: self.thread + (byte / u32::from(self.mask.max(1))) as u16, mask, ..*self }
            }
            false => *self,
        }
    }
}

/// How the access being recorded relates to earlier ones.
pub(crate) trait Context {
    /// Whether the earlier access happens before the current one.
    fn ordered(&self, earlier: &Record) -> bool;
    /// Whether the two accesses do not conflict: neither writes, or they are morally strong.
    fn compatible(&self, earlier: &Record) -> bool;
    /// The same of the access made by any thread of any block. May be false where it holds for all of them.
    fn compatible_by_all(&self, earlier: &Record) -> bool;
    /// Given that the earlier access happens before the current one: whether any later access that races with it also races with
    /// the current one.
    fn dominates(&self, earlier: &Record) -> bool;
    /// All accesses of the block before this epoch happen before the current one.
    fn floor(&self) -> Epoch;
    /// Whether the current access is a weak write.
    fn is_weak_write(&self) -> bool;
    /// Whether the current access is strong.
    fn is_strong(&self) -> bool;
    /// Whether the current access is a strong write that reads nothing.
    fn is_store(&self) -> bool;
    /// Whether the current access is a strong read whose value is used, and it observes this strong write if the write is the last one.
    fn observes(&self, write: &Record) -> bool;
    /// Whether the record is a strong write.
    fn is_observable(&self, record: &Record) -> bool;
    /// Whether what happened at the stamp happens before the current access, or is by the same thread.
    fn knows(&self, stamp: Stamp) -> bool;
    /// Reports that the current access races with an earlier one, at this address.
    fn race(&mut self, earlier: &Record, address: u64);
}

/// Size of the cache of pages.
const RECENT_PAGES: usize = 32;

/// The recorded accesses of a memory.
#[derive(Default)]
pub(crate) struct Shadow {
    pages: HashMap<u64, u32, BuildHasherDefault<PageHasher>>,
    memory: Vec<Page>,
    /// A direct-mapped cache of pages, indexed by the low bits of their numbers.
    recent: [(u64, u32); RECENT_PAGES],
    cells: Vec<Cell>,
    many: Vec<List>,
    split: Vec<[Cell; 4]>,
    /// Free indices in [`Shadow::many`].
    free: Vec<u32>,
    /// The number of groups by which lists exceed their normal length.
    spare: usize,
}

impl Shadow {
    fn page(&mut self, number: u64) -> usize {
        let recent = number as usize % RECENT_PAGES;
        // Page numbers are stored plus one, so that an empty entry matches none.
        if self.recent[recent].0 == number + 1 {
            return self.recent[recent].1 as usize;
        }
        let index = *self.pages.entry(number).or_insert_with(|| {
            self.memory.push(Page::default());
            self.memory.len() as u32 - 1
        });
        self.recent[recent] = (number + 1, index);
        index as usize
    }

    /// Forgets all accesses.
    pub fn clear(&mut self) {
        if !self.memory.is_empty() {
            *self = Shadow::default();
        }
    }

    /// Adds consecutive cells; returns the index of the first.
    fn add_cells(&mut self, count: usize) -> u32 {
        let first = self.cells.len();
        self.cells.resize(first + count, Cell::default());
        first as u32
    }

    /// The index of the cell of a word. Makes the cell if there is none.
    fn cell(&mut self, page: usize, word: usize) -> usize {
        let (row, of_row) = (word / ROW_WORDS, word % ROW_WORDS);
        let (kind, cell) = (self.memory[page].kinds[row], self.memory[page].cells[row] as usize);
        match kind {
            APART => cell + of_row,
            _ if kind == LONE + of_row as u8 => cell,
            UNTOUCHED => {
                let cell = self.add_cells(1);
                self.memory[page].kinds[row] = LONE + of_row as u8;
                self.memory[page].cells[row] = cell;
                cell as usize
            }
            _ => self.take_apart(page, row) + of_row,
        }
    }

    /// Records accesses to a row, in which each thread accesses its own element of `bytes` bytes; `record` is the first thread's. Returns
    /// false if it is not clear at once that nothing races: the caller then records the elements one by one.
    pub fn access_row(
        &mut self,
        address: u64,
        record: Record,
        bytes: u64,
        context: &mut impl Context,
    ) -> bool {
        let word = address / 4;
        let page = self.page(word / PAGE_WORDS as u64);
        let row = word as usize % PAGE_WORDS / ROW_WORDS;
        match self.memory[page].kinds[row] {
            WHOLE => {}
            UNTOUCHED => {
                self.memory[page].kinds[row] = WHOLE;
                self.memory[page].cells[row] = self.add_cells(1);
            }
            _ => return false,
        }
        let cell_index = self.memory[page].cells[row] as usize;
        let cell = &mut self.cells[cell_index];
        let new = Record { mask: bytes as u8, ..record };
        if !cell.write.is(PRESENT) && !cell.other.is(PRESENT) {
            *(if context.is_weak_write() { &mut cell.write } else { &mut cell.other }) = new;
            return true;
        }
        let is_same_row = |earlier: &Record| (earlier.thread, earlier.mask) == (new.thread, new.mask);
        let is_before = |earlier: &Record| {
            earlier.block == new.block && (is_same_row(earlier) || earlier.epoch < context.floor())
        };
        let fine =
            |earlier: &Record| !earlier.is(PRESENT) || is_before(earlier) || context.compatible(earlier);
        if !fine(&cell.write) {
            return false;
        }
        if cell.other.is(MANY) {
            let list = &mut self.many[cell.other.epoch as usize];
            let groups = &mut list.groups;
            let is_fine = |group: &Group| match group.blocks {
                1 => fine(&group.record),
                _ => context.compatible(&group.record),
            };
            if context.is_strong() || !groups.iter().all(is_fine) {
                return false;
            }
            if !context.is_weak_write() {
                let in_new = |group: &&Group| group.is_of(&new);
                if groups.iter().filter(in_new).any(|group| {
                    is_same_row(&group.record)
                        && (group.record.place == new.place || context.dominates(&group.record))
                }) {
                    return true;
                }
                // Accesses of one instruction belong to one group, which the record of a row cannot express.
                if groups.iter().filter(in_new).any(|group| group.record.place == new.place) {
                    return false;
                }
                groups.retain(|group| {
                    group.blocks > 1 || !(is_before(&group.record) && context.dominates(&group.record))
                });
                list.push(new, &mut self.spare);
                return true;
            }
            let list = cell.other;
            *cell = Cell { write: new, other: Record::default() };
            self.release(&list);
            return true;
        }
        if !fine(&cell.other) {
            return false;
        }
        let before = cell.other;
        if context.is_weak_write() {
            *cell = Cell { write: new, other: Record::default() };
        } else if !before.is(PRESENT)
            || context.dominates(&before) && (is_before(&before) || context.observes(&before))
        {
            cell.other = new;
        } else if before.same(&new) && is_same_row(&before) {
            // Already recorded.
        } else if context.is_strong()
            || before.place == new.place && (before.block, before.epoch) == (new.block, new.epoch)
        {
            return false;
        } else {
            let mut list = List::of(before, context);
            list.push(new, &mut self.spare);
            let list = self.list(list);
            self.cells[cell_index].other = Record { flags: PRESENT | MANY, epoch: list, ..Record::default() };
        }
        true
    }

    /// Gives each word of an accessed row its own cell. Returns the index of the first.
    fn take_apart(&mut self, page: usize, row: usize) -> usize {
        let (kind, before) = (self.memory[page].kinds[row], self.memory[page].cells[row] as usize);
        let first_cell = self.add_cells(ROW_WORDS) as usize;
        self.memory[page].kinds[row] = APART;
        self.memory[page].cells[row] = first_cell as u32;
        let Cell { write, other } = self.cells[before];
        if kind >= LONE {
            self.cells[first_cell + usize::from(kind - LONE)] = Cell { write, other };
            return first_cell;
        }
        let list = other.is(MANY).then(|| self.many[other.epoch as usize].clone());
        self.release(&other);
        let is_narrow = |record: &Record| record.is(PRESENT) && record.mask < 4;
        let narrow = is_narrow(&write)
            || match &list {
                Some(list) => list.groups.iter().any(|group| is_narrow(&group.record)),
                None => is_narrow(&other),
            };
        let others = (&other, list.as_ref());
        for word in 0..ROW_WORDS {
            let first = 4 * word as u32;
            let cell = match narrow {
                false => self.element(&write, others, first, 0xf),
                true => {
                    let cells = [0, 1, 2, 3].map(|byte| self.element(&write, others, first + byte, 1));
                    self.split.push(cells);
                    let epoch = self.split.len() as u32 - 1;
                    Cell {
                        write: Record { flags: SPLIT, epoch, ..Record::default() },
                        other: Record::default(),
                    }
                }
            };
            self.cells[first_cell + word] = cell;
        }
        first_cell
    }

    /// The cell of the element at a byte of a row.
    fn element(
        &mut self,
        write: &Record,
        (other, list): (&Record, Option<&List>),
        byte: u32,
        mask: u8,
    ) -> Cell {
        let other = match list {
            None => other.at(byte, mask),
            Some(list) => {
                let epoch = self.list(list.map(|record| record.at(byte, mask)));
                Record { flags: PRESENT | MANY, epoch, mask, ..Record::default() }
            }
        };
        Cell { write: write.at(byte, mask), other }
    }

    /// Records an access, and reports to `context` the accesses that it races with.
    pub fn access(&mut self, address: u64, bytes: u64, record: Record, context: &mut impl Context) {
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end {
            let word = at / 4;
            let next = (word + 1).saturating_mul(4).min(end);
            let (low, high) = (at % 4, next - word * 4);
            let mask = ((1u32 << high) - (1 << low)) as u8;
            let page = self.page(word / PAGE_WORDS as u64);
            let index = self.cell(page, word as usize % PAGE_WORDS);
            let mut cell = self.cells[index];
            let new = Record { mask, ..record };
            if !cell.write.is_any() && !cell.other.is(PRESENT) {
                // The first access.
                let is_write = context.is_weak_write();
                *(if is_write { &mut self.cells[index].write } else { &mut self.cells[index].other }) = new;
            } else if cell.write.same(&new) && !cell.other.is(PRESENT) && cell.write.mask == mask
                || cell.other.same(&new) && cell.other.flags == new.flags && cell.other.mask == mask
            {
                // The thread has made the same access in this epoch, and no write came since.
            } else if cell.write.is(SPLIT) {
                self.touch_bytes(cell.write.epoch, at, new, context);
            } else if self.fits(&cell, mask) {
                self.touch(&mut cell, at, new, context);
                self.cells[index] = cell;
            } else {
                let split = self.split_up(cell);
                let write = Record { flags: SPLIT, epoch: split, ..Record::default() };
                self.cells[index] = Cell { write, other: Record::default() };
                self.touch_bytes(split, at, new, context);
            }
            at = next;
        }
    }

    /// Whether all recorded accesses were to exactly these bytes of the word.
    fn fits(&self, cell: &Cell, mask: u8) -> bool {
        let of = |record: &Record| !record.is(PRESENT) || record.mask == mask;
        of(&cell.write) && of(&cell.other)
    }

    /// Splits a cell into one per byte.
    fn split_up(&mut self, cell: Cell) -> u32 {
        let part = |shadow: &mut Shadow, byte: u32| {
            let has = |record: &Record| record.is(PRESENT) && record.mask >> byte & 1 != 0;
            let write = if has(&cell.write) { Record { mask: 1, ..cell.write } } else { Record::default() };
            let mut other = Record::default();
            if has(&cell.other) {
                other = Record { mask: 1, ..cell.other };
                if other.is(MANY) {
                    let list = &shadow.many[cell.other.epoch as usize];
                    other.epoch = shadow.list(list.map(|record| Record { mask: 1, ..*record }));
                }
            }
            Cell { write, other }
        };
        let cells = [0, 1, 2, 3].map(|byte| part(self, byte));
        self.release(&cell.other);
        self.split.push(cells);
        self.split.len() as u32 - 1
    }

    fn touch_bytes(&mut self, split: u32, at: u64, new: Record, context: &mut impl Context) {
        for byte in (0..4).filter(|byte| new.mask >> byte & 1 != 0) {
            let mut cell = self.split[split as usize][byte as usize];
            self.touch(&mut cell, at / 4 * 4 + byte, Record { mask: 1, ..new }, context);
            self.split[split as usize][byte as usize] = cell;
        }
    }

    /// Stores a list; returns its index.
    fn list(&mut self, list: List) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.many[index as usize] = list;
                index
            }
            None => {
                self.many.push(list);
                self.many.len() as u32 - 1
            }
        }
    }

    fn release(&mut self, other: &Record) {
        if other.is(MANY) {
            let list = std::mem::take(&mut self.many[other.epoch as usize]);
            self.spare = self.spare.saturating_sub(list.spare());
            self.free.push(other.epoch);
        }
    }

    fn touch(&mut self, cell: &mut Cell, at: u64, new: Record, context: &mut impl Context) {
        if cell.write.is(PRESENT) && !context.compatible(&cell.write) && !context.ordered(&cell.write) {
            context.race(&cell.write, at);
        }
        if cell.other.is(MANY) {
            self.many[cell.other.epoch as usize].check(at, context);
        } else if cell.other.is(PRESENT) && !context.compatible(&cell.other) && !context.ordered(&cell.other)
        {
            context.race(&cell.other, at);
        }
        if context.is_weak_write() {
            self.release(&cell.other);
            *cell = Cell { write: new, other: Record::default() };
            return;
        }
        if !cell.other.is(PRESENT) {
            cell.other = new;
        } else if !cell.other.is(MANY) {
            let before = cell.other;
            if context.dominates(&before) && (context.ordered(&before) || context.observes(&before)) {
                cell.other = new;
            } else {
                let mut list = List::of(before, context);
                list.add(new, context, &mut self.spare);
                let list = self.list(list);
                cell.other =
                    Record { flags: PRESENT | MANY, epoch: list, mask: new.mask, ..Record::default() };
            }
        } else {
            self.many[cell.other.epoch as usize].add(new, context, &mut self.spare);
        }
    }
}
