//! Registers that `wgmma` and `tcgen05.ld` write asynchronously, and those that `wgmma` reads (PTX ISA 9.7.15.7 and 9.7.16.8).
//!
//! Registers are followed only in kernels that have such instructions.

use std::collections::HashMap;

use diag::Span;
use machine::{AsyncStep, OperationEvent};

use crate::asynchronous::Issue;

/// Lanes of a gang.
const LANES: usize = 1024;

/// A block and a thread of it.
type Thread = ([u32; 3], u32);

/// A misuse of such a register.
pub(crate) enum Misuse {
    /// A thread reads a register before it has waited for the instruction that writes it.
    NotAwaited { here: Span, issue: Issue, issued: Span },
    /// `wgmma` uses a register that the thread wrote, and no fence is between them.
    NotFenced { here: Span, written: Span },
}

/// What a thread has waited for.
#[derive(Clone, Copy, Default)]
struct Waits {
    /// The number of committed `wgmma` groups, and the number of groups that are known to be done.
    committed: u32,
    done: u32,
    /// How often the thread has waited for `tcgen05.ld`.
    loads: u32,
    /// When the thread last executed `wgmma.fence`; 0: never.
    fenced: u64,
}

/// Pending results of an instruction.
struct Pending {
    issue: Issue,
    issued: Span,
    /// By lane: the `wgmma` group, or the number of waits before `tcgen05.ld`; `u32::MAX` if nothing is pending.
    group: Box<[u32; LANES]>,
}

/// The last write of a register.
struct Written {
    span: Span,
    /// By lane: when; 0: never.
    when: Box<[u64; LANES]>,
}

/// A register: gang, window and slot.
type Register = (usize, u32, u32);

#[derive(Default)]
pub(crate) struct Results {
    pending: HashMap<Register, Pending>,
    written: HashMap<Register, Written>,
    waits: HashMap<Thread, Waits>,
    /// Counts events.
    now: u64,
    pub found: Vec<(Misuse, Thread)>,
}

impl Results {
    /// Threads wait, or fence.
    pub fn step(&mut self, block: [u32; 3], step: AsyncStep, threads: &[u32]) {
        self.now += 1;
        for &thread in threads {
            let waits = self.waits.entry((block, thread)).or_default();
            match step {
                AsyncStep::FenceProducts => waits.fenced = self.now,
                AsyncStep::CommitProducts => waits.committed += 1,
                AsyncStep::WaitProducts(pending) => {
                    waits.done = waits.done.max(waits.committed.saturating_sub(pending));
                }
                AsyncStep::WaitTensorLoads => waits.loads += 1,
                AsyncStep::CommitBulk
                | AsyncStep::WaitBulk { .. }
                | AsyncStep::WaitTensorStores
                | AsyncStep::FenceTensor { .. }
                | AsyncStep::SetRegisters { .. } => {}
            }
        }
    }

    /// A block has ended.
    pub fn end_block(&mut self, ctaid: [u32; 3]) {
        self.waits.retain(|(block, _), _| *block != ctaid);
    }

    /// A function starts with registers of its own.
    pub fn enter(&mut self, gang: usize, window: u32) {
        self.pending.retain(|register, _| (register.0, register.1) != (gang, window));
        self.written.retain(|register, _| (register.0, register.1) != (gang, window));
    }

    /// Threads execute an operation; `issue`: the kind of instruction whose results come later, if it is one.
    pub fn operation(&mut self, event: &OperationEvent, issue: Option<Issue>) {
        self.now += 1;
        let is_product = issue == Some(Issue::Product);
        // `wgmma` instructions of one shape may accumulate into the same registers without waiting.
        let is_accumulator = |slot: &u32| is_product && event.defs.contains(&Some(*slot));
        let read = event.uses.iter().chain(event.decides).filter(|slot| !is_accumulator(slot));
        read.for_each(|&slot| self.read(event, slot));
        if is_product {
            event.uses.iter().for_each(|&slot| self.check_fence(event, slot));
        }
        for &slot in event.defs.iter().flatten() {
            let register = (event.gang, event.window, slot);
            match issue {
                Some(issue) => self.issue(event, register, issue),
                None => self.write(event, register),
            }
        }
    }

    fn waits(&self, thread: Thread) -> Waits {
        self.waits.get(&thread).copied().unwrap_or_default()
    }

    fn read(&mut self, event: &OperationEvent, slot: u32) {
        let Some(pending) = self.pending.get(&(event.gang, event.window, slot)) else { return };
        let (issue, issued) = (pending.issue, pending.issued);
        let early =
            lanes(event).map(|lane| (pending.group[lane], event.lanes.who(lane))).find(|&(group, thread)| {
                let waits = self.waits(thread);
                let done = if issue == Issue::Product { waits.done } else { waits.loads };
                group != u32::MAX && group >= done
            });
        self.found.extend(
            early.map(|(_, thread)| (Misuse::NotAwaited { here: event.span, issue, issued }, thread)),
        );
    }

    /// `wgmma` reads a register.
    fn check_fence(&mut self, event: &OperationEvent, slot: u32) {
        let Some(written) = self.written.get(&(event.gang, event.window, slot)) else { return };
        let late = lanes(event)
            .map(|lane| (written.when[lane], event.lanes.who(lane)))
            .find(|&(when, thread)| when > self.waits(thread).fenced);
        let misuse = Misuse::NotFenced { here: event.span, written: written.span };
        self.found.extend(late.map(|(_, thread)| (misuse, thread)));
    }

    fn issue(&mut self, event: &OperationEvent, register: Register, issue: Issue) {
        let groups: Vec<(usize, u32)> = lanes(event)
            .map(|lane| {
                let waits = self.waits(event.lanes.who(lane));
                (lane, if issue == Issue::Product { waits.committed } else { waits.loads })
            })
            .collect();
        let pending = self.pending.entry(register).or_insert_with(|| Pending {
            issue,
            issued: event.span,
            group: Box::new([u32::MAX; LANES]),
        });
        (pending.issue, pending.issued) = (issue, event.span);
        groups.into_iter().for_each(|(lane, group)| pending.group[lane] = group);
        if let Some(written) = self.written.get_mut(&register) {
            lanes(event).for_each(|lane| written.when[lane] = 0);
        }
    }

    fn write(&mut self, event: &OperationEvent, register: Register) {
        if let Some(pending) = self.pending.get_mut(&register) {
            lanes(event).for_each(|lane| pending.group[lane] = u32::MAX);
        }
        let new = || Written { span: event.span, when: Box::new([0; LANES]) };
        let written = self.written.entry(register).or_insert_with(new);
        written.span = event.span;
        lanes(event).for_each(|lane| written.when[lane] = self.now);
    }
}

/// The lanes that execute an operation.
fn lanes<'e>(event: &'e OperationEvent) -> impl Iterator<Item = usize> + 'e {
    let words = event.lanes.words().iter().enumerate();
    words.flat_map(|(word, &bits)| {
        let mut bits = bits;
        std::iter::from_fn(move || {
            let bit = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some(word * 64 + bit as usize)
        })
    })
}
