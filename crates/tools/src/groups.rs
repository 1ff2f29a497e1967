//! The accesses of several threads to one cell of a shadow memory, and which threads observed which strong write.

use crate::block::{Threads, contains, insert, members};
use crate::clock::{Epoch, OBJECTS, Stamp};
use crate::shadow::{Context, Record};

/// Accesses of several threads by one instruction, each in the same epoch.
#[derive(Clone)]
pub(crate) struct Group {
    /// The record of the thread with the lowest index.
    pub record: Record,
    /// All threads, if there are several.
    pub threads: Option<Box<Threads>>,
    /// The number of consecutive blocks in which the same threads have made the same access.
    pub blocks: u32,
    /// A strong write that a strong read would observe now: since then there were only atomic operations, no store.
    observable: bool,
}

/// All accesses recorded for a cell.
#[derive(Clone, Default)]
pub(crate) struct List {
    pub groups: Vec<Group>,
    /// The threads that have read the last strong write by a strong load. What such a thread does next, and what is ordered after it, is
    /// ordered after that write (PTX ISA 8.9.5, "Causality order": by observation).
    observers: Vec<Observers>,
}

/// Threads of a block in one epoch.
#[derive(Clone)]
struct Observers {
    block: u32,
    epoch: Epoch,
    threads: Threads,
}

/// The most observers of a write that are kept, counted by block and epoch.
const MOST_OBSERVERS: usize = 64;
/// At this many groups of a cell, groups of consecutive blocks are joined.
const MANY_GROUPS: usize = 48;
/// The most groups of a cell that are kept. Groups of other blocks than the latest are dropped first.
const MOST_GROUPS: usize = 10 * MANY_GROUPS;
/// The most groups beyond [`MANY_GROUPS`], summed over all cells of a memory.
const MOST_SPARE: usize = 1 << 18;

impl Group {
    pub fn new(record: Record) -> Group {
        Group { record, threads: None, blocks: 1, observable: false }
    }

    /// Whether the group is of the same block, epoch and kind of access, and of no other block.
    pub fn is_of(&self, new: &Record) -> bool {
        let record = &self.record;
        self.blocks == 1 && (record.block, record.epoch, record.flags) == (new.block, new.epoch, new.flags)
    }

    fn is_all_before(&self, context: &impl Context, block: u32) -> bool {
        let record = &self.record;
        self.blocks == 1
            && record.block == block
            && !record.is_copy()
            && record.thread < OBJECTS
            && record.epoch < context.floor()
    }

    /// The accesses of all threads and blocks.
    fn records(&self) -> impl Iterator<Item = Record> {
        let record = self.record;
        let blocks = (0..self.blocks).map(move |block| record.block + block);
        blocks.flat_map(move |block| {
            let one = self.threads.is_none().then_some(Record { block, ..record });
            let several = self.threads.iter().flat_map(|threads| members(threads));
            one.into_iter().chain(several.map(move |thread| Record {
                block,
                thread: thread as u16,
                ..record
            }))
        })
    }

    fn has(&self, thread: u16) -> bool {
        match &self.threads {
            None => self.record.thread == thread,
            Some(threads) => contains(threads, thread.into()),
        }
    }
}

impl List {
    /// The list of a cell that has had one access.
    pub fn of(record: Record, context: &impl Context) -> List {
        let observable = context.is_observable(&record);
        List { groups: vec![Group { observable, ..Group::new(record) }], observers: Vec::new() }
    }

    /// The same list with other records.
    pub fn map(&self, f: impl Fn(&Record) -> Record) -> List {
        let groups = self.groups.iter().map(|group| Group { record: f(&group.record), ..group.clone() });
        List { groups: groups.collect(), observers: self.observers.clone() }
    }

    /// Reports the accesses that race with the current one.
    pub fn check(&self, at: u64, context: &mut impl Context) {
        for group in &self.groups {
            if let Some(record) = self.first_racing(group, context) {
                context.race(&record, at);
            }
        }
    }

    /// Whether no access races with the current one.
    pub fn is_free(&self, context: &impl Context) -> bool {
        self.groups.iter().all(|group| self.first_racing(group, context).is_none())
    }

    /// The first access of a group that races with the current one.
    fn first_racing(&self, group: &Group, context: &impl Context) -> Option<Record> {
        // A group of many blocks has a record for each of their threads: look at these only if that can find something.
        if context.compatible_by_all(&group.record) || group.blocks == 1 && context.compatible(&group.record)
        {
            return None;
        }
        group.records().find(|record| {
            let observed = group.observable && self.are_observed(context);
            !(context.compatible(record) || context.ordered(record) || observed)
        })
    }

    /// Whether the current access is ordered after a strong load that has observed the observable writes.
    fn are_observed(&self, context: &impl Context) -> bool {
        self.observers.iter().any(|Observers { block, epoch, threads }| {
            members(threads)
                .any(|thread| context.knows(Stamp { block: *block, thread: thread as u16, epoch: *epoch }))
        })
    }

    /// Adds an access, and drops the accesses that it makes redundant.
    pub fn add(&mut self, new: Record, context: &impl Context, spare: &mut usize) {
        let is_write = context.is_observable(&new);
        let observes = |group: &Group| group.observable && context.observes(&group.record);
        if is_write {
            // An atomic operation replaces what it observes.
            self.groups.retain(|group| !(observes(group) && context.dominates(&group.record)));
            self.observers.clear();
        } else if self.groups.iter().any(observes) {
            self.observe(&new);
        }
        if context.is_store() {
            self.groups.iter_mut().for_each(|group| group.observable = false);
        }
        if self.has(&new, is_write, context) {
            return;
        }
        let is_needless = |group: &Group| {
            let before = group.is_all_before(context, new.block)
                || group.blocks == 1 && group.threads.is_none() && context.ordered(&group.record);
            before && context.dominates(&group.record)
        };
        self.groups.retain(|group| !is_needless(group));
        self.push(new, spare);
        if let Some(group) = self.groups.last_mut() {
            group.observable = is_write;
        }
    }

    fn observe(&mut self, new: &Record) {
        let known =
            self.observers.iter_mut().find(|known| (known.block, known.epoch) == (new.block, new.epoch));
        match known {
            Some(known) => insert(&mut known.threads, new.thread.into()),
            None => {
                if self.observers.len() == MOST_OBSERVERS {
                    self.observers.remove(0);
                }
                let mut threads = [0; 16];
                insert(&mut threads, new.thread.into());
                self.observers.push(Observers { block: new.block, epoch: new.epoch, threads });
            }
        }
    }

    /// Adds the access to an existing group, if it belongs to one.
    fn has(&mut self, new: &Record, is_write: bool, context: &impl Context) -> bool {
        for group in self.groups.iter_mut().filter(|group| group.is_of(new)) {
            let record = group.record;
            if group.has(new.thread) && (record.place == new.place || context.dominates(&record)) {
                group.observable |= is_write && record.place == new.place;
                return true;
            }
            if record.place == new.place && new.thread < OBJECTS {
                let threads = group.threads.get_or_insert_with(|| {
                    let mut threads = [0; 16];
                    insert(&mut threads, record.thread.into());
                    Box::new(threads)
                });
                insert(threads, new.thread.into());
                group.record.thread = record.thread.min(new.thread);
                group.observable |= is_write;
                return true;
            }
        }
        false
    }

    /// Adds an access of one thread or of a row as a new group. `spare`: the number of groups beyond [`MANY_GROUPS`] in all cells.
    pub fn push(&mut self, new: Record, spare: &mut usize) {
        let before = self.spare();
        if self.groups.len() >= MANY_GROUPS && self.groups.len().is_multiple_of(MANY_GROUPS) {
            self.join_blocks(new.block);
        }
        let most = if *spare < MOST_SPARE { MOST_GROUPS } else { MANY_GROUPS };
        if self.groups.len() >= most {
            let foreign = self.groups.iter().position(|group| group.record.block != new.block).unwrap_or(0);
            self.groups.remove(foreign);
        }
        self.groups.push(Group::new(new));
        *spare = (*spare + self.spare()).saturating_sub(before);
    }

    /// The number of groups beyond [`MANY_GROUPS`].
    pub fn spare(&self) -> usize {
        self.groups.len().saturating_sub(MANY_GROUPS)
    }

    /// Joins groups of consecutive blocks, except block `now`, whose threads have made the same access.
    fn join_blocks(&mut self, now: u32) {
        let key = |group: &Group| {
            let Record { place, epoch, flags, mask, thread, .. } = group.record;
            (place, epoch, flags, mask, thread, group.observable)
        };
        let mut groups = std::mem::take(&mut self.groups);
        groups
            .sort_by(|a, b| (key(a), &a.threads, a.record.block).cmp(&(key(b), &b.threads, b.record.block)));
        for group in groups {
            let block = group.record.block;
            match self.groups.last_mut() {
                Some(last)
                    if block <= last.record.block + last.blocks
                        && block != now
                        && last.record.block != now
                        && key(last) == key(&group)
                        && last.threads == group.threads =>
                {
                    last.blocks = last.blocks.max(block + group.blocks - last.record.block);
                }
                _ => self.groups.push(group),
            }
        }
    }
}
