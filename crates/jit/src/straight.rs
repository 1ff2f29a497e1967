//! Which operations of a basic block native code computes together, without control flow.
//!
//! The interpreter takes all lanes through one operation, and then through the next. Where it knows that values are the same in
//! all lanes or step evenly, that is one number, and hard to beat. The other operations, which touch every lane, become native
//! code: it takes a strip of lanes through all of them, with the values in registers of the host. Between them may stand
//! operations of the first kind, if they can as well run before.
//!
//! Accesses to memory are among them if their addresses step evenly: the interpreter checks them for all lanes before the code
//! runs, so no lane leaves it. Accesses at the same register share one pointer. An access with a guard is one if the guard is the
//! same in all lanes: native code runs only where it holds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use diag::Span;
use ir::{Base, Block, Function, Guard, OpKind, SimpleOp, Slot, Terminator, Touch, Width};
use isa::{Form, Picks, Space};

use crate::kinds::{Flow, Here, Kind, Kinds, Starts};
use crate::loops::{Body, End, Loop, Parts};
use crate::operation::Operation;
use crate::{Host, MOST_ACCESSES, MOST_PREDICATES, Native};

/// The most registers with addresses.
pub const MOST_POINTERS: usize = 16;
/// Fewer operations are not worth a call, and more have more values than fit.
const LEAST_OPERATIONS: usize = 3;
const MOST_OPERATIONS: usize = 256;

/// Operations of a basic block that native code computes together.
#[derive(Debug)]
pub struct Straight {
    /// The operations.
    pub operations: Vec<ir::Op>,
    /// The indices of those that vector handlers compute.
    pub calls: Vec<usize>,
    /// What the accesses to memory have in common.
    pub pointers: Vec<Pointer>,
    /// The guards of accesses. Native code is for launches where all of them hold in all lanes.
    pub guards: Vec<Guard>,
    /// For each access its pointer, and the bytes that are added to it.
    pub(crate) places: Vec<(usize, i32)>,
    pub(crate) source: Loop,
    /// The slots whose values differ from lane to lane in any way.
    varying: BTreeSet<Slot>,
}

/// What a basic block consists of.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few sections, and they live on the heap")]
pub enum Item {
    /// An operation for the interpreter.
    Op(ir::Op),
    /// Operations that native code may compute together.
    Section(Straight),
}

impl Item {
    /// Operations that native code may compute together.
    pub fn section(&self) -> Option<&Straight> {
        match self {
            Item::Section(section) => Some(section),
            Item::Op(_) => None,
        }
    }
}

/// The basic blocks of a function with sections.
#[derive(Debug, Default)]
pub struct StraightBlocks {
    /// Their indices, and what they consist of.
    pub blocks: Vec<(u32, Vec<Item>)>,
    /// The widths of slots behind those of the function, for values that are computed before their slot is free.
    pub temporaries: Vec<Width>,
}

/// Accesses at the same register.
#[derive(Clone, Copy, Debug)]
pub struct Pointer {
    /// The register.
    pub base: Slot,
    /// The state space of the instructions.
    pub space: Space,
    /// They store.
    pub write: bool,
    /// Bytes of the largest access: addresses must be multiples of them.
    pub align: u64,
    /// The first byte that an access touches, from the address in the register on, and one past the last.
    pub least: i64,
    /// See [`Pointer::least`].
    pub end: i64,
    /// Addresses have 32 bits.
    pub narrow: bool,
    /// The first instruction.
    pub span: Span,
}

/// What the interpreter does with an operation.
enum Class {
    /// It takes native code through all lanes.
    Vector(Operation),
    /// It computes one number for all lanes.
    Even,
    Other,
}

/// The operations of a function that native code computes together. `steps`: as for [`loops`](crate::loops).
pub fn straight(function: &Function, steps: impl Fn(&Form, &Picks) -> bool) -> StraightBlocks {
    let kinds = Kinds::of(function, &steps);
    let mut found = StraightBlocks::default();
    let starts = Starts::of(function, &kinds, &steps);
    for index in 0..function.blocks.len() as u32 {
        let mut finder = Finder::new(function, index, &starts, &mut found.temporaries);
        finder.find();
        if finder.items.iter().any(|item| item.section().is_some()) {
            let items = finder.items;
            found.blocks.push((index, items));
        }
    }
    found
}

/// Finds the sections of a basic block.
struct Finder<'f> {
    function: &'f Function,
    /// The index of its first operation in the function, and its operations.
    first: u32,
    ops: &'f [ir::Op],
    /// The kinds of slots at the current operation.
    kinds: Here<'f>,
    live: Liveness,
    items: Vec<Item>,
    section: Section,
    temporaries: &'f mut Vec<Width>,
}

/// Where the operations of a basic block read and write slots.
#[derive(Default)]
struct Liveness {
    /// By slot, in ascending order: the index of the operation, and whether it reads the slot. One that reads and writes it reads it
    /// first.
    touches: HashMap<Slot, Vec<(usize, bool)>>,
    /// The slots that are live behind the last operation.
    out: HashSet<Slot>,
}

impl Liveness {
    /// `flows`: the operations, and whether they have a guard.
    fn of<'a>(
        function: &Function,
        block: &Block,
        flows: impl Iterator<Item = (usize, &'a Flow, bool)>,
    ) -> Liveness {
        let mut live = Liveness::default();
        let next = block.terminator.successors().into_iter();
        live.out.extend(next.flat_map(|next| function.blocks[next.index()].live_in.iter().copied()));
        if matches!(block.terminator, Terminator::Return) {
            live.out.extend(function.returns.iter().flatten());
        }
        for wanted in [Touch::Def, Touch::Use] {
            block.terminator.clone().visit(&mut |slot, touch| match touch {
                _ if touch != wanted => {}
                Touch::Def => drop(live.out.remove(slot)),
                Touch::Use => drop(live.out.insert(*slot)),
            });
        }
        for (at, flow, guarded) in flows {
            let mut note = |slot: &Slot, reads| live.touches.entry(*slot).or_default().push((at, reads));
            flow.uses.iter().for_each(|slot| note(slot, true));
            // Lanes for which the guard does not hold keep their values.
            if !guarded {
                flow.defs.iter().for_each(|slot| note(slot, false));
            }
        }
        live
    }

    /// The slot is live before operation `at`.
    fn before(&self, at: usize, slot: Slot) -> bool {
        let touches = self.touches.get(&slot).map_or(&[][..], |touches| touches);
        match touches.get(touches.partition_point(|&(other, _)| other < at)) {
            Some(&(_, reads)) => reads,
            None => self.out.contains(&slot),
        }
    }

    /// The operations that read what operation `at` gives a slot.
    fn readers(&self, at: usize, slot: Slot) -> impl Iterator<Item = usize> {
        let touches = self.touches.get(&slot).map_or(&[][..], |touches| touches);
        let behind = touches[touches.partition_point(|&(other, _)| other <= at)..].iter();
        behind.take_while(|(_, reads)| *reads).map(|&(reader, _)| reader)
    }

    /// Some lane may need what operation `at` gives a slot behind the basic block.
    fn leaves(&self, at: usize, slot: Slot) -> bool {
        let touches = self.touches.get(&slot).map_or(&[][..], |touches| touches);
        let written = touches.iter().any(|&(other, reads)| other > at && !reads);
        !written && self.out.contains(&slot)
    }
}

/// The operations of a section so far.
#[derive(Default)]
struct Section {
    /// The indices of all operations in the basic block.
    at: Vec<usize>,
    /// Those of the interpreter, which run before.
    before: Vec<ir::Op>,
    /// Those of native code, and what they are there.
    vector: Vec<ir::Op>,
    operations: Vec<Operation>,
    calls: Vec<usize>,
    accesses: usize,
    /// What native code reads and writes.
    uses: BTreeSet<Slot>,
    defs: BTreeSet<Slot>,
    /// The slots whose values other slots have, since native code still needs what was there before.
    renamed: BTreeMap<Slot, Slot>,
    /// Temporaries that have been taken.
    taken: usize,
    varying: BTreeSet<Slot>,
}

impl<'f> Finder<'f> {
    fn new(
        function: &'f Function,
        index: u32,
        starts: &'f Starts<'f>,
        temporaries: &'f mut Vec<Width>,
    ) -> Finder<'f> {
        let block = &function.blocks[index as usize];
        let ops = &function.ops[block.ops.start as usize..block.ops.end as usize];
        let (first, kinds) = (block.ops.start, starts.at(index));
        let flows =
            ops.iter().enumerate().map(|(at, op)| (at, kinds.flow(first + at as u32), op.guard.is_some()));
        let live = Liveness::of(function, block, flows);
        let (items, section) = (Vec::new(), Section::default());
        Finder { function, first, ops, kinds, live, items, section, temporaries }
    }

    fn flow(&self, at: usize) -> &Flow {
        self.kinds.flow(self.first + at as u32)
    }

    fn width(&self, slot: Slot) -> Width {
        match self.function.slots.get(slot.index()) {
            Some(info) => info.width,
            None => self.temporaries[slot.index() - self.function.slots.len()],
        }
    }

    fn class(&self, at: usize) -> Class {
        let op = &self.ops[at];
        let alike = self.kinds.result(self.first + at as u32) != Kind::Varies;
        let of_param =
            matches!(&op.kind, OpKind::Load(load) if matches!(load.address.base, Base::KernelParam(_)));
        if op.guard.is_none() && (op.kind.computes() || of_param) && alike {
            return Class::Even;
        }
        let (accesses, calls) = (self.section.accesses, self.section.calls.len());
        let Some(operation) = Operation::of_kind(&op.kind, |slot| self.width(slot), accesses, calls) else {
            return Class::Other;
        };
        if op.guard.is_some_and(|guard| operation.access().is_none() || self.kinds.varies(guard.slot)) {
            return Class::Other;
        }
        let suits = match operation.access() {
            Some(access) => {
                // The interpreter keeps what is the same in all lanes as one number, addresses among them: it knows those before
                // the code runs.
                let is_kept = alike && operation.defs().iter().any(|slot| self.is_kept(at, *slot));
                !is_kept && !self.kinds.varies(access.base) && access.bytes_fit()
            }
            None => true,
        };
        // Which NaN of f64 arithmetic keeps is a question that only lanes that leave can answer.
        let doubles = operation.computes_double() || matches!(operation, Operation::Convert { .. });
        if suits && !doubles { Class::Vector(operation) } else { Class::Other }
    }

    /// An operation that native code does not compute reads what operation `at` gives this slot.
    fn is_kept(&self, at: usize, slot: Slot) -> bool {
        let is_vector = |reader: usize| {
            let operation = Operation::of(&self.ops[reader], |slot| self.width(slot), 0, 0);
            operation.is_some_and(|operation| match operation.access() {
                Some(access) => access.base != slot,
                None => self.flow(reader).defs.iter().any(|slot| self.kinds.anywhere().varies(*slot)),
            })
        };
        self.live.leaves(at, slot) || !self.live.readers(at, slot).all(is_vector)
    }

    fn find(&mut self) {
        for (at, op) in self.ops.iter().enumerate() {
            let mut class = self.class(at);
            let ends = match &class {
                Class::Vector(operation) => {
                    self.section.is_full(operation) || self.section.hinders(op, operation)
                }
                Class::Even => self.flow(at).uses.iter().any(|slot| self.section.has_defined(*slot)),
                Class::Other => true,
            };
            if ends {
                self.end(at);
                class = self.class(at);
            }
            match class {
                Class::Vector(operation) => self.section.add(at, op, operation, &self.kinds),
                Class::Even => self.pass(at, op),
                Class::Other => self.items.push(Item::Op(op.clone())),
            }
            self.kinds.pass(self.first + at as u32);
        }
        self.end(self.ops.len());
    }

    /// An operation whose results are alike in all lanes runs before those of native code. If they still need what it writes, it
    /// writes another slot.
    fn pass(&mut self, at: usize, op: &ir::Op) {
        self.section.at.push(at);
        let (mut op, first) = (op.clone(), self.function.slots.len());
        op.visit(&mut |slot, touch| {
            if touch == Touch::Use {
                *slot = self.section.now(*slot);
            }
        });
        let mut others = BTreeMap::new();
        for &slot in &self.kinds.flow(self.first + at as u32).defs {
            self.section.renamed.remove(&slot);
            if self.section.uses.contains(&slot) || self.section.defs.contains(&slot) {
                let width = self.function.slots[slot.index()].width;
                let free =
                    (self.section.taken..self.temporaries.len()).find(|&at| self.temporaries[at] == width);
                let index = free.unwrap_or_else(|| {
                    self.temporaries.push(width);
                    self.temporaries.len() - 1
                });
                self.section.taken = index + 1;
                others.insert(slot, Slot((first + index) as u32));
            }
        }
        op.visit(&mut |slot, touch| {
            if touch == Touch::Def
                && let Some(&other) = others.get(slot)
            {
                *slot = other;
            }
        });
        self.section.renamed.extend(others);
        self.section.before.push(op);
    }

    /// Ends the section before operation `at`.
    fn end(&mut self, at: usize) {
        let section = std::mem::take(&mut self.section);
        let of_block = |&index: &usize| Item::Op(self.ops[index].clone());
        if section.vector.len() < LEAST_OPERATIONS {
            return self.items.extend(section.at.iter().map(of_block));
        }
        let Some(plan) = self.plan(&section, at) else {
            return self.items.extend(section.at.iter().map(of_block));
        };
        let span = section.vector[section.vector.len() - 1].span;
        self.items.extend(section.before.into_iter().map(Item::Op));
        self.items.push(Item::Section(plan));
        for (dst, src) in section.renamed.into_iter().filter(|(to, _)| self.live.before(at, *to)) {
            let kind = OpKind::Simple(SimpleOp::Copy { dst, src });
            self.items.push(Item::Op(ir::Op { guard: None, kind, span }));
        }
    }

    /// What native code does for a section that ends before operation `at`.
    fn plan(&self, section: &Section, at: usize) -> Option<Straight> {
        let (mut pointers, mut places): (Vec<Pointer>, Vec<(usize, i32)>) = (Vec::new(), Vec::new());
        let mut guards = Vec::new();
        for (operation, op) in section.operations.iter().zip(&section.vector) {
            let Some(access) = operation.access() else { continue };
            let (space, write) = match &op.kind {
                OpKind::Load(load) => (load.address.space, false),
                OpKind::Store(store) => (store.address.space, true),
                _ => return None,
            };
            guards.extend(op.guard.filter(|guard| !guards.contains(guard)));
            let bytes = u64::from(access.bytes * access.count);
            let (least, end) = (access.offset, access.offset + bytes as i64);
            let is_same =
                |other: &Pointer| other.base == access.base && other.space == space && other.write == write;
            let index = pointers.iter().position(is_same).unwrap_or_else(|| {
                let narrow = self.width(access.base) == Width::W32;
                let (base, span) = (access.base, op.span);
                pointers.push(Pointer { base, space, write, align: bytes, least, end, narrow, span });
                pointers.len() - 1
            });
            let pointer = &mut pointers[index];
            pointer.align = pointer.align.max(bytes);
            (pointer.least, pointer.end) = (pointer.least.min(least), pointer.end.max(end));
            places.push((index, i32::try_from(access.offset).ok()?));
        }
        if pointers.len() > MOST_POINTERS {
            return None;
        }
        let (mut defined, mut live_in) = (BTreeSet::new(), BTreeSet::new());
        for operation in &section.operations {
            live_in.extend(operation.uses().into_iter().filter(|slot| !defined.contains(slot)));
            defined.extend(operation.defs());
        }
        let is_over = |slot: &Slot| section.renamed.contains_key(slot);
        let live_out: BTreeSet<Slot> =
            defined.iter().copied().filter(|slot| self.live.before(at, *slot) && !is_over(slot)).collect();
        let spans = section.vector.iter().map(|op| op.span);
        let body = Body {
            spans: spans.chain(section.vector.last().map(|op| op.span)).collect(),
            operations: section.operations.clone(),
            needed: live_out.clone(),
            end: End::Jump(1),
            cost: 0,
            weight: 1,
        };
        let (exits, accesses, calls) = (Vec::new(), Vec::new(), Vec::new());
        let parts = Parts { blocks: 0..1, exits, bodies: vec![body], accesses, calls };
        let width = |slot| self.width(slot);
        let source = Loop::of_parts(
            self.function,
            self.kinds.anywhere(),
            width,
            parts,
            &live_in,
            &live_out,
            live_in.clone(),
        );
        (source.predicates.len() <= MOST_PREDICATES).then(|| Straight {
            operations: section.vector.clone(),
            calls: section.calls.clone(),
            pointers,
            guards,
            places,
            source,
            varying: section.varying.clone(),
        })
    }
}

impl Section {
    /// There is no room for another operation.
    fn is_full(&self, operation: &Operation) -> bool {
        self.vector.len() == MOST_OPERATIONS || self.accesses == MOST_ACCESSES && operation.access().is_some()
    }

    /// An access with a guard cannot be added: its guard is not known before native code runs, or where it does not hold, a slot
    /// keeps what another slot has.
    fn hinders(&self, op: &ir::Op, operation: &Operation) -> bool {
        let is_renamed = |slot: &Slot| self.renamed.contains_key(slot);
        op.guard.is_some_and(|guard| self.has_defined(guard.slot) || operation.defs().iter().any(is_renamed))
    }

    /// The slot that has the value of a slot now.
    fn now(&self, slot: Slot) -> Slot {
        self.renamed.get(&slot).copied().unwrap_or(slot)
    }

    /// Native code computes the value that a slot has now.
    fn has_defined(&self, slot: Slot) -> bool {
        self.defs.contains(&slot) && !self.renamed.contains_key(&slot)
    }

    /// Adds operation `at` of a basic block to those of native code.
    fn add(&mut self, at: usize, op: &ir::Op, mut operation: Operation, kinds: &Here) {
        self.at.push(at);
        for slot in operation.uses().into_iter().filter(|slot| kinds.varies(*slot)) {
            self.varying.insert(self.now(slot));
        }
        let mut op = op.clone();
        op.visit(&mut |slot, touch| {
            if touch == Touch::Use {
                *slot = self.now(*slot);
            }
        });
        operation.rename_uses(|slot| self.now(slot));
        self.accesses += usize::from(operation.access().is_some());
        if matches!(operation, Operation::Call { .. }) {
            self.calls.push(self.vector.len());
        }
        self.uses.extend(operation.uses().into_iter().chain(op.guard.map(|guard| guard.slot)));
        for slot in operation.defs() {
            self.renamed.remove(&slot);
            self.defs.insert(slot);
        }
        self.vector.push(op);
        self.operations.push(operation);
    }
}

impl Straight {
    /// Machine code for a host, for launches where slots step as `form` says. `None` as for [`Loop::compile`], and if an address
    /// does not step evenly.
    pub fn compile(&self, host: Host, form: impl Fn(Slot) -> Option<crate::Form>) -> Option<Native> {
        let form = |slot: Slot| form(slot).filter(|_| !self.varying.contains(&slot));
        #[cfg(all(target_arch = "x86_64", unix))]
        {
            crate::emit::emit_straight(self, host, form)
        }
        #[cfg(not(all(target_arch = "x86_64", unix)))]
        {
            let _ = (host, form);
            None
        }
    }

    /// The predicates of a frame.
    pub fn predicates(&self) -> &[crate::Value] {
        &self.source.predicates
    }

    /// The slot is read before the code writes it.
    pub fn enters(&self, slot: Slot) -> bool {
        self.source.live_in.contains(&slot)
    }
}
