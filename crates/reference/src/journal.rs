//! What a debugged launch has changed outside its blocks, so that it can run again from an earlier time.
//!
//! Blocks are made anew; global memory has to be put back. Before a page is written, its bytes are kept: once for the
//! beginning of the launch, and once for the last *checkpoint*, a time when no block had begun and not ended. What a
//! launch keeps is bounded by what it writes. A kernel's `free` takes effect when the launch has ended, and its
//! `printf` prints what it has not printed yet.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use machine::{FaultKind, Launch};

/// Bytes that are kept together.
const PAGE: u64 = 256;
/// Bytes by the address of the first.
type Pages = RefCell<BTreeMap<u64, Vec<u8>>>;

/// Where a launch can begin again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checkpoint {
    /// Turns before it.
    pub time: u64,
    /// Blocks that have started, all of which have ended; counted on from the first block that runs.
    pub started: u64,
    /// Instructions that threads have executed.
    pub steps: u64,
    /// State of the grid's barrier: threads that have arrived, and its generation.
    pub barrier: (u64, u64),
    /// Bytes that `printf` had printed.
    printed: u64,
    /// Calls of `malloc` and `free`.
    heap: (usize, usize),
    /// What the device runtime had queued.
    queued: usize,
}

#[derive(Default)]
pub(crate) struct Journal {
    /// Turns so far: a path of a warp executes one instruction in a turn.
    pub time: Cell<u64>,
    /// Bytes of global memory at the beginning, and at the checkpoint.
    first: Pages,
    recent: Pages,
    checkpoint: Cell<Option<Checkpoint>>,
    /// Bytes that `printf` has printed up to this time, and up to the latest time that was reached.
    printed: Cell<u64>,
    shown: Cell<u64>,
    /// What `malloc` returned, call by call; a launch that has gone back gets the same again. Calls up to this time.
    allocated: RefCell<Vec<Option<u64>>>,
    allocations: Cell<usize>,
    /// Addresses that `free` got up to this time.
    freed: RefCell<Vec<u64>>,
}

impl Journal {
    /// Keeps what a write is about to change.
    pub fn keep(&self, launch: &Launch, address: u64, bytes: u64) {
        let Some(extent) = launch.allocation(address) else { return };
        let end = (extent.base + extent.bytes).min(address.saturating_add(bytes));
        let mut page = address / PAGE * PAGE;
        while page < end {
            let start = page.max(extent.base);
            let here = (extent.base + extent.bytes).min(page + PAGE) - start;
            for pages in [&self.first, &self.recent] {
                pages.borrow_mut().entry(start).or_insert_with(|| {
                    let mut data = vec![0; here as usize];
                    // What cannot be read cannot be written either, and the write says so.
                    let _ = launch.read_global(start, &mut data);
                    data
                });
            }
            page += PAGE;
        }
    }

    /// Records a checkpoint: all blocks that have started have ended.
    pub fn check(&self, launch: &Launch, started: u64, steps: u64, barrier: (u64, u64)) {
        self.recent.borrow_mut().clear();
        let heap = (self.allocations.get(), self.freed.borrow().len());
        let (time, printed) = (self.time.get(), self.printed.get());
        let queued = launch.queued_work();
        self.checkpoint.set(Some(Checkpoint { time, started, steps, barrier, printed, heap, queued }));
    }

    /// Puts memory back to the last checkpoint at or before `time`, and returns it; `None` is the beginning.
    pub fn rewind(&self, launch: &Launch, time: u64) -> Option<Checkpoint> {
        let checkpoint = self.checkpoint.get().filter(|checkpoint| checkpoint.time <= time);
        // The pages of the beginning are older: they come last.
        let layers = if checkpoint.is_some() { &[&self.recent][..] } else { &[&self.recent, &self.first] };
        for pages in layers {
            for (&address, data) in &*pages.borrow() {
                // An allocation that was there when its bytes were kept is there now.
                let _ = launch.write_global(address, data);
            }
        }
        self.recent.borrow_mut().clear();
        if checkpoint.is_none() {
            self.first.borrow_mut().clear();
            self.checkpoint.set(None);
        }
        let to = checkpoint.unwrap_or_default();
        self.time.set(to.time);
        self.printed.set(to.printed);
        self.allocations.set(to.heap.0);
        self.freed.borrow_mut().truncate(to.heap.1);
        launch.forget_work(to.queued);
        checkpoint
    }

    /// Prints what has not been printed before the launch went back.
    pub fn print(&self, launch: &Launch, text: &[u8]) {
        let (start, shown) = (self.printed.get(), self.shown.get());
        let end = start + text.len() as u64;
        let new = (shown.clamp(start, end) - start) as usize;
        launch.config().output.write(&text[new..]);
        self.printed.set(end);
        self.shown.set(shown.max(end));
    }

    /// `malloc` of the device heap.
    pub fn allocate(&self, launch: &Launch, bytes: u64) -> Option<u64> {
        let mut allocated = self.allocated.borrow_mut();
        let call = self.allocations.replace(self.allocations.get() + 1);
        if call == allocated.len() {
            allocated.push(launch.heap_allocate(bytes));
        }
        allocated[call]
    }

    /// `free` of the device heap, which takes effect at the end.
    pub fn free(&self, address: u64) -> Result<(), FaultKind> {
        let is_live = self.allocated.borrow()[..self.allocations.get()].contains(&Some(address));
        if !is_live || self.freed.borrow().contains(&address) {
            return Err(FaultKind::InvalidFree);
        }
        self.freed.borrow_mut().push(address);
        Ok(())
    }

    /// Whether the kernel has given back the allocation that contains an address.
    pub fn is_freed(&self, launch: &Launch, address: u64) -> bool {
        let freed = self.freed.borrow();
        !freed.is_empty() && launch.allocation(address).is_some_and(|extent| freed.contains(&extent.base))
    }

    /// The launch has ended: gives back what the kernel has freed.
    pub fn end(&self, launch: &Launch) {
        for address in self.freed.borrow_mut().drain(..) {
            let _ = launch.heap_free(address);
        }
    }
}
