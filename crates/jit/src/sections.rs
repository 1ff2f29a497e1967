//! All straight-line code of a function: the sections of its basic blocks, and traces through several of them.

use ir::{Base, Function, OpKind, Width};
use isa::{Form, Picks};

use crate::Host;
use crate::kinds::{Kinds, Loads, Starts, is_of_param};
use crate::straight::{Addresses, Finder, Item, Straight, Visited};
use crate::traces::{Trace, traces};

/// The basic blocks of a function with sections.
#[derive(Debug, Default)]
pub struct Sections {
    /// Their indices, and what they consist of.
    pub blocks: Vec<(u32, Vec<Item>)>,
    /// Basic blocks that native code may compute together.
    pub traces: Vec<Trace>,
}

/// All straight-line code of a function.
#[derive(Debug, Default)]
pub struct StraightCode {
    /// For the lanes of a gang.
    pub of_gang: Sections,
    /// For the threads of many blocks, if it is another: what all threads of a block load from one address may be another value in
    /// the next block, so that nothing is known of it before native code runs.
    pub of_blocks: Option<Sections>,
    /// The widths of slots behind those of the function, for values that are computed before their slot is free.
    pub temporaries: Vec<Width>,
}

/// Basic blocks of larger functions have no small sections: their threads seldom go through all of them without a gang.
const MOST_WITH_SMALL: usize = 4096;

/// The operations of a function that native code for a host computes together. `steps`: as for [`loops`](crate::loops).
pub fn straight(function: &Function, host: Host, steps: impl Fn(&Form, &Picks) -> bool) -> StraightCode {
    let mut temporaries = Vec::new();
    let kinds = Kinds::of(function, Loads::Alike, &steps);
    let starts = Starts::of(function, &kinds, Loads::Alike, &steps);
    let of_gang = sections(function, host, &starts, &Addresses::default(), &mut temporaries);
    let loads_alike = |op: &ir::Op| match &op.kind {
        OpKind::Load(load) if !is_of_param(load) => match load.address.base {
            Base::Slot(slot) => kinds.is_uniform(slot),
            _ => true,
        },
        _ => false,
    };
    let is_apart = function.ops.len() <= MOST_WITH_SMALL && function.ops.iter().any(loads_alike);
    let of_blocks = is_apart.then(|| {
        let addresses = Addresses::of(function, &mut temporaries);
        let kinds = Kinds::of(function, Loads::Vary, &steps);
        let starts = Starts::of(function, &kinds, Loads::Vary, &steps);
        sections(function, host, &starts, &addresses, &mut temporaries)
    });
    StraightCode { of_gang, of_blocks, temporaries }
}

fn sections(
    function: &Function,
    host: Host,
    starts: &Starts,
    addresses: &Addresses,
    temporaries: &mut Vec<Width>,
) -> Sections {
    let mut found = Sections::default();
    for index in 0..function.blocks.len() as u32 {
        let path = [Visited::by_all(index)];
        let items = Finder::new(function, host, &path, starts, addresses, temporaries).items();
        let is_worth = |section: &Straight| !section.is_small || function.ops.len() <= MOST_WITH_SMALL;
        if items.iter().filter_map(Item::section).any(is_worth) {
            found.blocks.push((index, items));
        }
    }
    found.traces = traces(function, host, starts, addresses, temporaries);
    found
}
