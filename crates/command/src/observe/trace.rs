//! `ptxvm run --trace BLOCK,THREAD`: every instruction of a thread, with the values that it reads and writes.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use ptxvm::observe::{InstructionEvent, LaunchObserver};
use ptxvm::observed::trace;
use ptxvm::{Module, Places};
use serde_json::Value;

use crate::options::Format;
use crate::report::{Failure, print};

/// `0,3`, `(1,0,0),(3,0,0)`: a block and a thread in it, each by its linear index or its coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadPlace {
    block: Index,
    thread: Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Index {
    Linear(u64),
    Coordinates([u32; 3]),
}

impl std::str::FromStr for ThreadPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<ThreadPlace, String> {
        let wrong = || {
            format!("`{text}` is no thread: 0,3 for thread 3 of block 0, or by coordinates (1,0,0),(3,0,0)")
        };
        // The comma between block and thread is the one outside parentheses.
        let (block, thread) = match text.split_once("),") {
            Some((block, thread)) => (block.strip_prefix('(').ok_or_else(wrong)?, thread),
            None => text.split_once(',').ok_or_else(wrong)?,
        };
        let index = |part: &str| {
            let part = part.trim().trim_start_matches('(').trim_end_matches(')');
            let numbers: Option<Vec<u64>> =
                part.split(',').map(|number| number.trim().parse().ok()).collect();
            match numbers.as_deref() {
                Some(&[index]) => Ok(Index::Linear(index)),
                Some(&[x, y, z]) => {
                    let narrow = |n: u64| u32::try_from(n).map_err(|_| wrong());
                    Ok(Index::Coordinates([narrow(x)?, narrow(y)?, narrow(z)?]))
                }
                _ => Err(wrong()),
            }
        };
        Ok(ThreadPlace { block: index(block)?, thread: index(thread)? })
    }
}

impl Index {
    /// The coordinates within extents.
    fn resolve(self, extents: [u32; 3]) -> Option<[u32; 3]> {
        let [nx, ny, nz] = extents.map(u64::from);
        let coordinates = match self {
            Index::Linear(index) if index < nx * ny * nz => {
                [index % nx, index / nx % ny, index / (nx * ny)].map(|n| n as u32)
            }
            Index::Linear(_) => return None,
            Index::Coordinates(coordinates) => coordinates,
        };
        coordinates.iter().zip(extents).all(|(&at, extent)| at < extent).then_some(coordinates)
    }
}

impl ThreadPlace {
    /// The block's coordinates and the thread's linear index.
    ///
    /// # Errors
    /// When the launch has no such thread.
    pub fn resolve(self, grid: [u32; 3], block: [u32; 3]) -> Result<([u32; 3], u32), Failure> {
        let missing = |what: &str, extents: [u32; 3]| {
            let extents = extents.map(|extent| extent.to_string()).join("x");
            Failure::usage(format!("--trace: there is no such {what}: there are {extents}"))
        };
        let of_grid = self.block.resolve(grid).ok_or_else(|| missing("block", grid))?;
        let [x, y, z] = self.thread.resolve(block).ok_or_else(|| missing("thread", block))?;
        Ok((of_grid, x + block[0] * (y + block[1] * z)))
    }
}

/// Prints the instructions of a thread as it executes them, or collects them for programs.
pub struct Trace {
    places: Places,
    thread: ([u32; 3], u32),
    format: Format,
    steps: Vec<Value>,
}

impl Trace {
    pub fn shared(module: &Module, thread: ([u32; 3], u32), format: Format) -> Arc<Mutex<Trace>> {
        Arc::new(Mutex::new(Trace { places: module.places(), thread, format, steps: Vec::new() }))
    }

    /// The collected instructions.
    pub fn take(&mut self) -> Value {
        std::mem::take(&mut self.steps).into()
    }
}

impl LaunchObserver for Trace {
    fn wants_instructions(&self, block: [u32; 3], thread: u32) -> bool {
        (block, thread) == self.thread
    }

    fn instruction(&mut self, event: &InstructionEvent) -> ControlFlow<()> {
        if self.format == Format::Json {
            self.steps.push(trace::json(&self.places, event));
            return ControlFlow::Continue(());
        }
        match print(trace::text(&self.places, event)) {
            Ok(()) => ControlFlow::Continue(()),
            // Nobody reads the trace any more.
            Err(_) => ControlFlow::Break(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_read() {
        let thread = |text: &str| text.parse::<ThreadPlace>();
        let resolved = |text: &str| thread(text).unwrap().resolve([4, 2, 1], [8, 4, 2]).ok();
        assert_eq!(resolved("5,9"), Some(([1, 1, 0], 9)));
        assert_eq!(resolved("(1,1,0),(1,1,0)"), Some(([1, 1, 0], 9)));
        assert_eq!(resolved("(1,1,0), 63"), Some(([1, 1, 0], 63)));
        assert_eq!(resolved("7,(7,3,1)"), Some(([3, 1, 0], 63)));
        for missing in ["8,0", "0,64", "(4,0,0),0", "0,(0,4,0)"] {
            assert_eq!(resolved(missing), None, "{missing}");
        }
        for wrong in ["", "3", "a,b", "(1,0),3", "1,2,3", "(1,2,3)", "-1,0"] {
            assert!(thread(wrong).is_err(), "{wrong}");
        }
    }
}
