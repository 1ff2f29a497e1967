//! Queries on the accesses of a memory. They change nothing.

use super::{
    APART, Cell, Context, LONE, MANY, PAGE_WORDS, PRESENT, RECENT_PAGES, ROW_BYTES, ROW_WORDS, Record,
};
use super::{SPLIT, Shadow, UNTOUCHED, WHOLE};

impl Shadow {
    /// Whether an access would race with none of the recorded ones.
    pub fn is_free(&self, address: u64, bytes: u64, context: &impl Context) -> bool {
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end {
            let word = at / 4;
            let next = (word + 1).saturating_mul(4).min(end);
            let mask = ((1u32 << (next - word * 4)) - (1 << (at % 4))) as u8;
            if !self.is_word_free(word, mask, context) {
                return false;
            }
            at = next;
        }
        true
    }

    /// Whether no access has touched these bytes.
    pub fn is_untouched(&self, address: u64, bytes: u64) -> bool {
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end {
            // Row by row.
            let (word, next) = (at / 4, (at | (ROW_BYTES - 1)).saturating_add(1));
            let page = self.pages.get(&(word / PAGE_WORDS as u64)).map(|&page| &self.memory[page as usize]);
            if page.is_some_and(|page| page.kinds[word as usize % PAGE_WORDS / ROW_WORDS] != UNTOUCHED) {
                return false;
            }
            at = next;
        }
        true
    }

    /// The same for some bytes of a word.
    fn is_word_free(&self, word: u64, mask: u8, context: &impl Context) -> bool {
        let number = word / PAGE_WORDS as u64;
        let (known, recent) = self.recent[number as usize % RECENT_PAGES];
        let page = if known == number + 1 { Some(&recent) } else { self.pages.get(&number) };
        let Some(page) = page.map(|&page| &self.memory[page as usize]) else { return true };
        let (row, of_row) = (word as usize % PAGE_WORDS / ROW_WORDS, word as usize % ROW_WORDS);
        let cell = page.cells[row] as usize;
        match page.kinds[row] {
            UNTOUCHED => true,
            APART => self.is_cell_free(&self.cells[cell + of_row], mask, context),
            WHOLE => self.is_element_free(&self.cells[cell], 4 * of_row as u32, context),
            kind => kind != LONE + of_row as u8 || self.is_cell_free(&self.cells[cell], mask, context),
        }
    }

    /// The same for a word of a row, given its first byte in the row. Also false if the elements are narrower than a word.
    fn is_element_free(&self, row: &Cell, byte: u32, context: &impl Context) -> bool {
        let is_fine = |record: &Record| {
            let of_word = record.at(byte, 0xf);
            !record.is(PRESENT)
                || record.mask >= 4 && (context.compatible(&of_word) || context.ordered(&of_word))
        };
        is_fine(&row.write)
            && match row.other.is(MANY) {
                true => {
                    let groups = &self.many[row.other.epoch as usize].groups;
                    groups.iter().all(|group| group.blocks == 1 && is_fine(&group.record))
                }
                false => is_fine(&row.other),
            }
    }

    fn is_cell_free(&self, cell: &Cell, mask: u8, context: &impl Context) -> bool {
        if cell.write.is(SPLIT) {
            let bytes = self.split[cell.write.epoch as usize].iter().zip(0..);
            return bytes
                .filter(|(_, byte)| mask >> byte & 1 != 0)
                .all(|(cell, _)| self.is_cell_free(cell, 1, context));
        }
        let is_fine = |record: &Record| {
            !record.is(PRESENT)
                || record.mask & mask == 0
                || context.compatible(record)
                || context.ordered(record)
        };
        let is_many = cell.other.is(MANY) && cell.other.mask & mask != 0;
        is_fine(&cell.write)
            && (!is_many || self.many[cell.other.epoch as usize].is_free(context))
            && (cell.other.is(MANY) || is_fine(&cell.other))
    }

    /// One of the accesses to the first accessed row in this range.
    pub fn any_access(&self, address: u64, bytes: u64) -> Option<Record> {
        const PAGE_ROWS: u64 = (PAGE_WORDS / ROW_WORDS) as u64;
        let rows = address / ROW_BYTES..(address + bytes).div_ceil(ROW_BYTES);
        let pages = rows.start / PAGE_ROWS..rows.end.div_ceil(PAGE_ROWS);
        // In a large range, few pages may have been accessed.
        let pages: Vec<u64> = match pages.end - pages.start > self.pages.len() as u64 {
            true => {
                let mut known: Vec<u64> =
                    self.pages.keys().copied().filter(|number| pages.contains(number)).collect();
                known.sort_unstable();
                known
            }
            false => pages.filter(|number| self.pages.contains_key(number)).collect(),
        };
        pages.into_iter().find_map(|number| {
            let page = &self.memory[*self.pages.get(&number)? as usize];
            let is_within = |row: &usize| rows.contains(&(number * PAGE_ROWS + *row as u64));
            (0..PAGE_ROWS as usize).filter(is_within).find_map(|row| {
                let cells = match page.kinds[row] {
                    UNTOUCHED => 0,
                    APART => ROW_WORDS,
                    _ => 1,
                };
                self.cells[page.cells[row] as usize..][..cells].iter().find_map(|cell| self.any_of(cell))
            })
        })
    }

    /// One of the accesses of a cell.
    fn any_of(&self, cell: &Cell) -> Option<Record> {
        match (&cell.write, &cell.other) {
            (split, _) if split.is(SPLIT) => {
                self.split[split.epoch as usize].iter().find_map(|cell| self.any_of(cell))
            }
            (write, _) if write.is(PRESENT) => Some(*write),
            (_, many) if many.is(MANY) => {
                self.many[many.epoch as usize].groups.first().map(|group| group.record)
            }
            (_, other) => Some(*other).filter(|other| other.is(PRESENT)),
        }
    }
}
