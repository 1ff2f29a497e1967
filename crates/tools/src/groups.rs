//! Accesses of one cell of a shadow memory by several threads, and which strong write was observed by whom.

use crate::block::{Threads, contains, insert, members};
use crate::clock::{Epoch, OBJECTS, Stamp};
use crate::shadow::{Context, Record};

/// Accesses of several threads in one epoch of theirs, by one instruction.
#[derive(Clone)]
pub(crate) struct Group {
    /// Of the thread with the lowest index.
    pub record: Record,
    /// All of them, if there are more.
    pub threads: Option<Box<Threads>>,
    /// The same threads of so many blocks that follow each other have done the same.
    pub blocks: u32,
    /// Strong writes that a strong read now would observe: no store has come since, only atomic operations.
    observable: bool,
}

/// All that is kept of a cell.
#[derive(Clone, Default)]
pub(crate) struct List {
    pub groups: Vec<Group>,
    /// Who has read the last strong write by a strong load: whatever such a thread does next, and whoever learns of it, comes behind that
    /// write (PTX ISA 8.9.5, "Causality order": by observation).
    observers: Vec<Observers>,
}

/// Threads of a block, in one epoch of theirs.
#[derive(Clone)]
struct Observers {
    block: u32,
    epoch: Epoch,
    threads: Threads,
}

/// Observers of one write that are kept, by block and epoch.
const MOST_OBSERVERS: usize = 64;
/// Groups of one cell, from which on those of blocks that follow each other are looked for.
const MANY_GROUPS: usize = 48;
/// Groups of one cell that are kept, at most: those of other blocks than the latest give way.
const MOST_GROUPS: usize = 10 * MANY_GROUPS;
/// Groups beyond [`MANY_GROUPS`] of all cells of a memory.
const MOST_SPARE: usize = 1 << 18;

impl Group {
    pub fn new(record: Record) -> Group {
        Group { record, threads: None, blocks: 1, observable: false }
    }

    /// Of one block, in one epoch, by one kind of access.
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
    /// The accesses of a cell that has had only one.
    pub fn of(record: Record, context: &impl Context) -> List {
        let observable = context.is_observable(&record);
        List { groups: vec![Group { observable, ..Group::new(record) }], observers: Vec::new() }
    }

    /// The same with other records.
    pub fn map(&self, f: impl Fn(&Record) -> Record) -> List {
        let groups = self.groups.iter().map(|group| Group { record: f(&group.record), ..group.clone() });
        List { groups: groups.collect(), observers: self.observers.clone() }
    }

    /// Tells of what races with the access that is made now.
    pub fn check(&self, at: u64, context: &mut impl Context) {
        for group in &self.groups {
            if let Some(record) = self.first_racing(group, context) {
                context.race(&record, at);
            }
        }
    }

    /// None of them races with the access that is made now.
    pub fn is_free(&self, context: &impl Context) -> bool {
        self.groups.iter().all(|group| self.first_racing(group, context).is_none())
    }

    /// The first access of a group that races with the one that is made now.
    fn first_racing(&self, group: &Group, context: &impl Context) -> Option<Record> {
        if group.blocks == 1 && context.compatible(&group.record) {
            return None;
        }
        group.records().find(|record| {
            let observed = group.observable && self.are_observed(context);
            !(context.compatible(record) || context.ordered(record) || observed)
        })
    }

    /// A strong load has observed what can be observed, and what is done now comes behind it.
    fn are_observed(&self, context: &impl Context) -> bool {
        self.observers.iter().any(|Observers { block, epoch, threads }| {
            members(threads)
                .any(|thread| context.knows(Stamp { block: *block, thread: thread as u16, epoch: *epoch }))
        })
    }

    /// Adds an access to those that are kept, and drops those that it makes needless.
    pub fn add(&mut self, new: Record, context: &impl Context, spare: &mut usize) {
        let is_write = context.is_observable(&new);
        let observes = |group: &Group| group.observable && context.observes(&group.record);
        if is_write {
            // An atomic operation on what it observes.
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

    /// The access is one of a group, or becomes one.
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

    /// Adds an access of one thread, or a row. `spare`: groups beyond [`MANY_GROUPS`] of all cells.
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

    /// Groups beyond [`MANY_GROUPS`].
    pub fn spare(&self) -> usize {
        self.groups.len().saturating_sub(MANY_GROUPS)
    }

    /// Makes one group of those of blocks that follow each other, all but the one that accesses now, if their threads have done the same.
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
