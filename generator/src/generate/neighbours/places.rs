//! The memory of neighbourhoods.

use super::super::{CELL_PLACES, Generator, INPUT_BYTES, Place};
use super::Hood;

/// Bytes that a thread may read, and possibly write.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// `.global`; empty for generic addresses.
    pub space: &'static str,
    /// The address operand in brackets, and its constant offset.
    base: String,
    at: usize,
    pub bytes: usize,
    pub writable: bool,
}

impl Cell {
    /// The address of an offset in it.
    pub fn address(&self, offset: usize) -> String {
        match self.at + offset {
            0 => format!("[{}]", self.base),
            at => format!("[{}+{at}]", self.base),
        }
    }
}

impl Generator<'_, '_> {
    /// A cell of `bytes` bytes (1 to 32) in an array of contiguous cells, one for each thread.
    pub(super) fn dense(&mut self, hood: &mut Hood, bytes: usize) -> Cell {
        if bytes <= 8 && self.random.percent(25) {
            return self.dense_shared(hood, bytes);
        }
        let stride = self.stride;
        let (start, places) = match bytes {
            16 => (60, 2),
            32 => (92, 2),
            _ => (4 * (bytes - 1), CELL_PLACES),
        };
        self.wide_cells |= bytes > 8;
        let (at, address) = (start * stride + bytes * stride * self.random.below(places), hood.address(64));
        hood.line(format!("mad.wide.u32 {address}, %global, {bytes}, %all;"));
        let space = if self.random.percent(85) { ".global" } else { "" };
        Cell { space, base: address, at, bytes, writable: true }
    }

    /// The same in shared memory, with at most 8 bytes.
    pub(super) fn dense_shared(&mut self, hood: &mut Hood, bytes: usize) -> Cell {
        let (threads, address) = (self.threads, hood.address(32));
        let places = self.shared_places();
        let start = match bytes {
            8 => 0,
            4 => 8,
            2 => 12,
            _ => 14,
        };
        let at = threads * (start * places + bytes * self.random.below(places));
        hood.line(format!("mov.u32 {address}, s_cells;\nmad.lo.u32 {address}, %thread, {bytes}, {address};"));
        Cell { space: ".shared", base: address, at, bytes, writable: true }
    }

    /// Cells of each size in shared memory.
    pub(in super::super) fn shared_places(&self) -> usize {
        if self.threads <= 256 { 2 } else { 1 }
    }

    /// A cell in each thread's own memory, which is contiguous.
    pub(super) fn strided(&mut self, bytes: usize) -> Option<Cell> {
        let (space, base, all) = match self.random.below(5) {
            0 => ("", "%own", self.own_bytes),
            1 => (".shared", "%sown", self.shared_bytes),
            2 => (".local", "lo", 64),
            _ => (".global", "%own", self.own_bytes),
        };
        let fits = bytes <= all && (bytes <= 16 || all.is_multiple_of(32) && base == "%own");
        fits.then(|| {
            let at = self.random.below(all / bytes) * bytes;
            Cell { space, base: base.to_owned(), at, bytes, writable: true }
        })
    }

    /// One cell for all threads, which no thread writes.
    pub(super) fn alike(&mut self, hood: &mut Hood, bytes: usize, place: &Place) -> Cell {
        let (space, base, all) = match self.random.below(5) {
            0 if place.function.is_empty() => (".param", "s", 32),
            1 => (".const", "c_var", 256),
            2 if bytes <= 16 => (".shared", "s_same", 64),
            3 => (".global", "g_var", 256),
            _ => (".global", "%in", INPUT_BYTES),
        };
        let at = self.random.below(all / bytes) * bytes;
        let cell = Cell { space, base: base.to_owned(), at, bytes, writable: false };
        if base == "%in" && self.random.percent(30) {
            // With the address in its own register.
            let address = hood.address(64);
            hood.line(format!("add.s64 {address}, %in, {at};"));
            return Cell { base: address, at: 0, ..cell };
        }
        cell
    }

    /// A cell in any memory, at a constant address or one from a register.
    pub(super) fn elsewhere(
        &mut self,
        hood: &mut Hood,
        bytes: usize,
        write: bool,
        place: &Place,
    ) -> Option<Cell> {
        for _ in 0..20 {
            let mut region = self.region(place);
            if bytes > region.bytes || write && !region.writable || bytes > 16 && !self.holds_wide(&region) {
                continue;
            }
            let address = match region.space {
                ".param" => format!("[{}+{}]", region.base, self.random.below(region.bytes / bytes) * bytes),
                _ => self.place_in(&mut region, bytes),
            };
            // In its own registers, because the address is used again.
            let own = [("%ta", hood.address(64)), ("%tb", hood.address(64)), ("%tc", hood.address(32))];
            let rename =
                |text: &str| own.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, new));
            hood.text += &rename(&region.before);
            let base = rename(address.trim_matches(['[', ']']));
            return Some(Cell { space: region.space, base, at: 0, bytes, writable: region.writable });
        }
        None
    }

    /// A cell in a given state space, or with a generic address. `alike`: one cell for all threads.
    pub(super) fn in_space(
        &mut self,
        hood: &mut Hood,
        space: isa::Space,
        bytes: usize,
        write: bool,
        place: &Place,
    ) -> Option<Cell> {
        use isa::Space;
        let fits = |all: usize| bytes <= all && (bytes <= 16 || all.is_multiple_of(32));
        let (name, base, all, writable) = match space {
            Space::Const if !write && self.random.percent(50) => (".const", "c_var", 256, false),
            Space::Const if !write => {
                let (base, index, mask) = (hood.address(64), hood.address(32), 256 / bytes - 1);
                hood.line(format!(
                    "and.b32 {index}, %thread, {mask};\nmov.u64 {base}, c_var;\n\
                     mad.wide.u32 {base}, {index}, {bytes}, {base};"
                ));
                return Some(Cell { space: ".const", base, at: 0, bytes, writable: false });
            }
            Space::Param if !write && place.function.is_empty() => (".param", "s", 32, false),
            Space::Param if !write && place.function.ends_with("1_") => (".param", "st", 32, false),
            Space::Local => (".local", "lo", 64, true),
            Space::Shared if bytes <= 8 && self.random.percent(60) => {
                return Some(self.dense_shared(hood, bytes));
            }
            Space::Shared => (".shared", "%sown", self.shared_bytes, true),
            Space::Global | Space::Generic if self.random.percent(60) => {
                // May also be in shared memory.
                let found = self.dense(hood, bytes);
                let name = if space == Space::Global { ".global" } else { "" };
                return (found.space == name).then_some(found);
            }
            Space::Global => (".global", "%own", self.own_bytes, true),
            Space::Generic if self.random.percent(50) => ("", "%own", self.own_bytes, true),
            Space::Generic => {
                return self.elsewhere(hood, bytes, write, place).filter(|cell| cell.space.is_empty());
            }
            _ => return None,
        };
        fits(all).then(|| {
            let at = self.random.below(all / bytes) * bytes;
            Cell { space: name, base: base.to_owned(), at, bytes, writable }
        })
    }

    /// A read-only cell of the input, which interleaves the elements of adjacent threads.
    pub(super) fn input(&mut self, hood: &mut Hood, bytes: usize) -> Cell {
        let (address, index) = (hood.address(64), hood.address(32));
        let mask = INPUT_BYTES / bytes / 2 - 1;
        let at = self.random.below(INPUT_BYTES / bytes / 2) * bytes;
        hood.line(format!(
            "and.b32 {index}, %thread, {mask};\nmad.wide.u32 {address}, {index}, {bytes}, %in;"
        ));
        Cell { space: ".global", base: address, at, bytes, writable: false }
    }
}
