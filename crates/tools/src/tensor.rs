//! Tensor memory: unwritten cells, and stores that no thread has waited for (PTX ISA 9.7.16).
//!
//! `exec/matrix/tensor_cells.rs` in `vm` defines which cells an instruction accesses.

use std::collections::HashMap;

use diag::Span;
use machine::{TensorCells, TensorMemoryAccess, TensorMemoryEvent};

/// The number of lanes and columns of tensor memory.
const LANES: usize = 128;
const COLUMNS: usize = 512;

/// A block and a thread of it.
type Thread = ([u32; 3], u32);

/// A thread uses a cell that a thread has stored but not waited for.
pub(crate) struct NotAwaited {
    pub here: Span,
    pub thread: Thread,
    pub stored: Span,
    pub by: Thread,
}

/// A store that its thread may not have waited for.
#[derive(Clone, Copy)]
struct Stored {
    by: Thread,
    span: Span,
    /// How often the thread had waited before the store.
    waits: u32,
}

/// The tensor memory of a block.
struct Cells {
    /// The written cells, one bit each, lane by lane.
    written: Vec<u64>,
    stored: HashMap<usize, Stored>,
}

impl Default for Cells {
    fn default() -> Cells {
        Cells { written: vec![0; LANES * COLUMNS / 64], stored: HashMap::new() }
    }
}

impl Cells {
    fn is_written(&self, index: usize) -> bool {
        self.written[index / 64] >> (index % 64) & 1 != 0
    }

    fn set(&mut self, index: usize, written: bool) {
        let bit = 1 << (index % 64);
        match written {
            true => self.written[index / 64] |= bit,
            false => self.written[index / 64] &= !bit,
        }
    }
}

/// The indices of those cells that exist.
fn indices(cells: &TensorCells) -> impl Iterator<Item = usize> + use<> {
    let (lane, columns) = (cells.lane as usize, cells.columns.clone());
    columns.map(move |column| lane * COLUMNS + column as usize).filter(|&index| index < LANES * COLUMNS)
}

#[derive(Default)]
pub(crate) struct TensorMemories {
    blocks: HashMap<[u32; 3], Cells>,
    /// How often threads have waited for their stores.
    waits: HashMap<Thread, u32>,
    pub found: Vec<NotAwaited>,
}

impl TensorMemories {
    /// Threads have waited for their stores.
    pub fn wait(&mut self, block: [u32; 3], threads: &[u32]) {
        threads.iter().for_each(|&thread| *self.waits.entry((block, thread)).or_default() += 1);
    }

    /// A block has ended.
    pub fn end_block(&mut self, ctaid: [u32; 3]) {
        self.blocks.remove(&ctaid);
        self.waits.retain(|(block, _), _| *block != ctaid);
    }

    /// Threads access cells. Returns the threads and registers of a load that receive unwritten cells.
    pub fn access(&mut self, event: &TensorMemoryEvent) -> Vec<(u32, u32)> {
        let mut undefined = Vec::new();
        if event.access != TensorMemoryAccess::Store {
            self.look_for_stores(event);
        }
        let written = |all: &HashMap<[u32; 3], Cells>, cells: &TensorCells| {
            let memory = all.get(&cells.owner);
            memory.is_some_and(|memory| indices(cells).all(|index| memory.is_written(index)))
        };
        for (row, cells) in event.cells.iter().enumerate() {
            // The operands of a row of a product, or the source of a copied cell.
            let sources = event.sources.get(row).is_none_or(|source| written(&self.blocks, source));
            let by = (event.block, cells.thread);
            let waits = self.waits.get(&by).copied().unwrap_or(0);
            match event.access {
                TensorMemoryAccess::Load if !written(&self.blocks, cells) => {
                    undefined.push((cells.thread, cells.register));
                }
                TensorMemoryAccess::Load => {}
                TensorMemoryAccess::Accumulate if sources => {}
                access => {
                    let memory = self.blocks.entry(cells.owner).or_default();
                    for index in indices(cells) {
                        memory.set(index, sources);
                        match access {
                            TensorMemoryAccess::Store => {
                                let stored = Stored { by, span: event.span, waits };
                                memory.stored.insert(index, stored);
                            }
                            _ => drop(memory.stored.remove(&index)),
                        }
                    }
                }
            }
        }
        undefined
    }

    /// Finds the first cell that a thread has stored but not waited for.
    fn look_for_stores(&mut self, event: &TensorMemoryEvent) {
        for cells in event.cells.iter().chain(event.sources) {
            let Some(memory) = self.blocks.get(&cells.owner) else { continue };
            let early = indices(cells)
                .filter_map(|index| memory.stored.get(&index))
                .find(|stored| self.waits.get(&stored.by).copied().unwrap_or(0) == stored.waits);
            if let Some(stored) = early {
                let thread = (event.block, cells.thread);
                let found = NotAwaited { here: event.span, thread, stored: stored.span, by: stored.by };
                return self.found.push(found);
            }
        }
    }
}
