//! `setmaxnreg`: all warps of a warpgroup execute it (PTX ISA 9.7.19.5).

use std::collections::BTreeMap;

use diag::Span;

use crate::block::WARP;

/// The number of warps of a warpgroup.
const WARPS: u32 = 4;

/// A warpgroup whose warps have executed an instruction a different number of times.
pub(crate) struct PartOfWarpgroup {
    /// The instruction, and a thread that executed it.
    pub here: (Span, u32),
    /// How often each warp has executed it.
    pub executed: [u32; WARPS as usize],
}

/// The uses of `setmaxnreg` in a block: by warpgroup and instruction, how often each warp has executed it.
#[derive(Default)]
pub(crate) struct Warpgroups {
    executed: BTreeMap<(u32, Span), [u32; WARPS as usize]>,
}

impl Warpgroups {
    /// Threads, in ascending order, execute it.
    pub fn execute(&mut self, span: Span, threads: &[u32]) {
        let mut last = None;
        for warp in threads.iter().map(|thread| thread / WARP) {
            if last.replace(warp) != Some(warp) {
                self.executed.entry((warp / WARPS, span)).or_default()[(warp % WARPS) as usize] += 1;
            }
        }
    }

    /// The block has ended: the warpgroups whose warps differ.
    pub fn finish(&self) -> impl Iterator<Item = PartOfWarpgroup> + '_ {
        let partial = self.executed.iter().filter(|(_, executed)| executed.iter().any(|n| *n != executed[0]));
        partial.map(|(&(group, span), &executed)| {
            let warp = executed.iter().position(|&count| count > 0).unwrap_or(0) as u32;
            PartOfWarpgroup { here: (span, (group * WARPS + warp) * WARP), executed }
        })
    }
}
