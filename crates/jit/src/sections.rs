//! All straight-line code of a function: the sections of its basic blocks, and traces through several of them.

use ir::{Function, Width};
use isa::{Form, Picks};

use crate::Host;
use crate::kinds::{Kinds, Starts};
use crate::straight::{Finder, Item, Straight, Visited};
use crate::traces::{Trace, traces};

/// The basic blocks of a function with sections.
#[derive(Debug, Default)]
pub struct StraightBlocks {
    /// Their indices, and what they consist of.
    pub blocks: Vec<(u32, Vec<Item>)>,
    /// Basic blocks that native code may compute together.
    pub traces: Vec<Trace>,
    /// The widths of slots behind those of the function, for values that are computed before their slot is free.
    pub temporaries: Vec<Width>,
}

/// Basic blocks of larger functions have no small sections: their threads seldom go through all of them without a gang.
const MOST_WITH_SMALL: usize = 4096;

/// The operations of a function that native code for a host computes together. `steps`: as for [`loops`](crate::loops).
pub fn straight(function: &Function, host: Host, steps: impl Fn(&Form, &Picks) -> bool) -> StraightBlocks {
    let kinds = Kinds::of(function, &steps);
    let mut found = StraightBlocks::default();
    let starts = Starts::of(function, &kinds, &steps);
    for index in 0..function.blocks.len() as u32 {
        let finder = Finder::new(function, host, &[Visited::by_all(index)], &starts, &mut found.temporaries);
        let items = finder.items();
        let is_worth = |section: &Straight| !section.is_small || function.ops.len() <= MOST_WITH_SMALL;
        if items.iter().filter_map(Item::section).any(is_worth) {
            found.blocks.push((index, items));
        }
    }
    found.traces = traces(function, host, &starts, &mut found.temporaries);
    found
}
