//! Allocates windows of the register file for calls in progress.

use crate::registers::{REGISTER_LIMIT, Window};

/// The least size of a window in bytes, so that empty windows are counted, too.
const LEAST_BYTES: u32 = 64;
/// Holes are reused only if they take more bytes than this, and more than the windows themselves.
const WASTE: u64 = 1 << 20;

/// A window that is in use.
#[derive(Clone, Copy)]
struct Span {
    start: Window,
    end: Window,
}

/// The windows in use, in ascending order. A new window follows all others, because lanes of other paths have their
/// values in those. Calls nearly always end in reverse order, so this leaves few holes.
#[derive(Default)]
pub(super) struct Windows {
    spans: Vec<Span>,
    /// Bytes of all windows.
    bytes: u64,
}

impl Windows {
    pub fn clear(&mut self) {
        self.spans.clear();
        self.bytes = 0;
    }

    /// Opens a window for `slots` slots and `bytes` bytes; `None` if all windows together would take too much.
    pub fn open(&mut self, slots: u32, bytes: u64) -> Option<Window> {
        let bytes = u32::try_from(bytes).ok()?.max(LEAST_BYTES);
        let slots = slots.max(1);
        let behind = self.spans.last().map_or(Window::default(), |span| span.end);
        let wasted = u64::from(behind.offset) - self.bytes;
        let end_of = |start: Window| {
            let end = u64::from(start.offset) + u64::from(bytes);
            (end <= REGISTER_LIMIT)
                .then(|| Window { index: start.index + slots, offset: start.offset + bytes })
        };
        let hole = if wasted > self.bytes.max(WASTE) || end_of(behind).is_none() {
            self.spans.windows(2).position(|pair| {
                let (start, end) = (pair[0].end, pair[1].start);
                end.index - start.index >= slots && end.offset - start.offset >= bytes
            })
        } else {
            None
        };
        let (at, start) = match hole {
            Some(before) => (before + 1, self.spans[before].end),
            None => (self.spans.len(), behind),
        };
        self.spans.insert(at, Span { start, end: end_of(start)? });
        self.bytes += u64::from(bytes);
        Some(start)
    }

    /// Frees a window.
    pub fn close(&mut self, window: Window) {
        let at = match self.spans.last() {
            Some(last) if last.start == window => self.spans.len() - 1,
            _ => match self.spans.binary_search_by_key(&window.index, |span| span.start.index) {
                Ok(at) => at,
                Err(_) => return,
            },
        };
        let Span { start, end } = self.spans.remove(at);
        self.bytes -= u64::from(end.offset - start.offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_do_not_overlap_and_holes_are_used_again() {
        let mut windows = Windows::default();
        let kernel = windows.open(10, 4096).unwrap();
        assert_eq!(kernel, Window::default());
        // Two lanes call alternately: each call ends after the next one has begun.
        let mut last = windows.open(8, 65536).unwrap();
        for _ in 0..if cfg!(miri) { 100 } else { 100_000 } {
            let next = windows.open(8, 65536).unwrap();
            assert!(next.offset + 65536 <= last.offset || last.offset + 65536 <= next.offset);
            assert!(next.index + 8 <= last.index || last.index + 8 <= next.index);
            assert!(next.offset >= 4096 && next.index >= 10 && next.offset < 1 << 22);
            windows.close(last);
            last = next;
        }
        windows.close(last);
        assert_eq!(windows.open(1, 64), Some(Window { index: 10, offset: 4096 }));
    }

    #[test]
    fn what_takes_too_much_is_refused() {
        let mut windows = Windows::default();
        assert_eq!(windows.open(1, 1 << 40), None);
        assert!(windows.open(1, REGISTER_LIMIT - 64).is_some());
        let empty = windows.open(0, 0).unwrap();
        assert_eq!(windows.open(0, 0), None);
        windows.close(empty);
        assert_eq!(windows.open(0, 0), Some(empty));
    }
}
