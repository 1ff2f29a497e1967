//! Which operations of a basic block native code computes together, without control flow.
//!
//! The interpreter takes all lanes through one operation, and then through the next. Where it knows that values are the same in
//! all lanes or step evenly, that is one number, and hard to beat. The other operations, which touch every lane, become native
//! code: it takes a strip of lanes through all of them, with the values in registers of the host. Between them may stand
//! operations of the first kind, if they can as well run before.
//!
//! Accesses to memory are among them if their addresses step evenly, or are within bounds that the operations themselves show
//! (`ranges`): the interpreter checks them for all lanes before the code runs. Accesses at the same register
//! share one pointer. A load with a guard is one if the guard is the same in all lanes: native code runs only where it holds. Stores
//! and atomic operations may be those of some lanes.
//!
//! The code checks other addresses of global memory itself, before a strip of lanes has written anything that matters (`section`).
//! A strip that may not access them has done nothing, and is skipped: its lanes go another way.

use std::collections::{BTreeMap, BTreeSet};

use diag::Span;
use ir::{Block, Function, Guard, MemoryOp, OpKind, SimpleOp, Slot, SlotKind, Touch, Width};
use isa::Space;

use crate::kinds::{Flow, Here, Kind, Starts, is_of_param};
use crate::live::Liveness;
use crate::loops::{Loop, space_of};
use crate::operation::{Access, Operation};
use crate::ranges::Slots;
use crate::translate::is_heavy;
use crate::{Host, Native};

pub(crate) use addresses::Addresses;
use own::can_check;
use section::Section;

mod addresses;
mod own;
mod plan;
mod section;

/// The most registers with addresses.
pub const MOST_POINTERS: usize = 32;
/// Fewer operations are not worth a call in a gang, and more have more values than fit.
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
    /// The guards of accesses that are the same in all lanes. Native code is for launches where all of them hold.
    pub guards: Vec<Guard>,
    /// All lanes of each warp must be there, since they exchange values.
    pub whole_warps: bool,
    /// A gang interprets the few operations in less time. They are for the threads of many blocks at once.
    pub is_small: bool,
    /// The accesses that the code checks itself: indices of [`Straight::accesses`].
    pub checked: Vec<usize>,
    /// For each access its pointer, and the bytes that are added to it. `None`: the code checks it.
    pub(crate) places: Vec<Option<(usize, i32)>>,
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
pub(crate) enum Class {
    /// It takes native code through all lanes.
    Vector(Operation),
    /// It computes one number for all lanes.
    Even,
    Other,
}

/// A basic block of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Visited {
    /// Its index in the function.
    pub block: u32,
    /// The lanes that are there. `None`: all.
    pub lanes: Option<Guard>,
    /// Native code adds the instructions of these lanes to [`Frame::instructions`](crate::Frame::instructions), since it finds them itself.
    pub is_counted: bool,
}

impl Visited {
    /// A basic block that all lanes execute.
    pub(crate) fn by_all(block: u32) -> Visited {
        Visited { block, lanes: None, is_counted: false }
    }

    pub(crate) fn of(self, function: &Function) -> &Block {
        &function.blocks[self.block as usize]
    }
}

/// Finds the sections of a basic block, or what basic blocks one behind the other make together.
pub(crate) struct Finder<'f> {
    pub function: &'f Function,
    host: Host,
    /// The indices of the operations in the function, and the operations.
    indices: Vec<u32>,
    ops: Vec<&'f ir::Op>,
    /// The lanes that execute each of them.
    lanes: Vec<Option<Guard>>,
    /// The same, where others must not notice.
    some: Vec<Option<Guard>>,
    /// The kinds of slots at the current operation.
    kinds: Here<'f>,
    live: Liveness,
    items: Vec<Item>,
    section: Section,
    /// The section may turn out not to run when what is even has been computed: that is written to temporaries only.
    tentative: bool,
    /// Native code may check the accesses of operations before this one itself.
    checks_until: usize,
    addresses: &'f Addresses,
    temporaries: &'f mut Vec<Width>,
}

impl<'f> Finder<'f> {
    /// `path`: basic blocks of which each leads to the next one.
    pub fn new(
        function: &'f Function,
        host: Host,
        path: &[Visited],
        starts: &'f Starts<'f>,
        addresses: &'f Addresses,
        temporaries: &'f mut Vec<Width>,
    ) -> Finder<'f> {
        let mut kinds = starts.at(path[0].block);
        addresses.slots().for_each(|slot| kinds.add_uniform(slot));
        let (mut indices, mut lanes, mut some) = (Vec::new(), Vec::new(), Vec::new());
        for (at, visited) in path.iter().enumerate() {
            for index in visited.of(function).ops.clone() {
                let behind = path.get(at + 1).map_or(&[][..], |next| &next.of(function).live_in);
                let escapes = kinds.flow(index).defs.iter().any(|slot| behind.contains(slot));
                let writes = match &function.ops[index as usize].kind {
                    OpKind::Store(_) => true,
                    OpKind::Memory(op) => matches!(**op, MemoryOp::Atomic(_)),
                    _ => false,
                };
                indices.push(index);
                lanes.push(visited.lanes);
                some.push(visited.lanes.filter(|_| escapes || writes));
            }
        }
        let ops: Vec<_> = indices.iter().map(|&index| &function.ops[index as usize]).collect();
        let guarded = |at: usize| ops[at].guard.is_some() || some[at].is_some();
        let flows = indices.iter().enumerate().map(|(at, &index)| (at, (kinds.flow(index), guarded(at))));
        let live = Liveness::of(function, path[path.len() - 1].of(function), flows);
        let (items, mut section, tentative) = (Vec::new(), Section::default(), path.len() > 1);
        if tentative {
            // Lanes that are skipped begin again with the first basic block, and with what the interpreter computes of it.
            section.entering.extend(&path[0].of(function).live_in);
        }
        let may_check = |op: &&ir::Op| own::may_check(&kinds, &op.kind);
        let checks_until = ops.iter().rposition(may_check).map_or(0, |last| last + 1);
        Finder {
            function,
            host,
            indices,
            ops,
            lanes,
            some,
            kinds,
            live,
            items,
            section,
            tentative,
            checks_until,
            addresses,
            temporaries,
        }
    }

    fn flow(&self, at: usize) -> &Flow {
        self.kinds.flow(self.indices[at])
    }

    fn width(&self, slot: Slot) -> Width {
        match self.function.slots.get(slot.index()) {
            Some(info) => info.width,
            None => self.temporaries[slot.index() - self.function.slots.len()],
        }
    }

    pub fn class(&self, at: usize) -> Class {
        let op = &self.ops[at];
        let alike = self.kinds.result(self.indices[at]) != Kind::Varies;
        let of_param = matches!(&op.kind, OpKind::Load(load) if is_of_param(load));
        let some = self.some[at];
        if op.guard.or(some).is_none() && (op.kind.computes() || of_param) && alike {
            return Class::Even;
        }
        let (accesses, calls) = (self.section.accesses, self.section.calls.len());
        let made = self.made(&op.kind, accesses, calls);
        let of_warp =
            || Operation::of_warp(op, |slot| self.literal(slot), calls).filter(|made| self.gains(made));
        let Some(mut operation) = made.or_else(of_warp) else {
            return Class::Other;
        };
        let suits = match (op.guard, some) {
            (None, None) => true,
            (Some(lanes), None) if operation.access().is_some() => {
                let varies = self.kinds.varies(lanes.slot);
                match operation.guard_mut() {
                    Some(guard) if varies => {
                        *guard = Some(lanes);
                        true
                    }
                    _ => !varies,
                }
            }
            (Some(_), None) => self.selects(&operation) && !alike,
            (None, Some(lanes)) => match operation.guard_mut() {
                Some(guard) => {
                    *guard = Some(lanes);
                    true
                }
                None => !operation.writes() && self.selects(&operation),
            },
            (Some(_), Some(_)) => false,
        };
        if !suits {
            return Class::Other;
        }
        let suits = match operation.access() {
            Some(access) if !self.is_worth_native(&operation, access) => false,
            Some(_) if space_of(&op.kind) == Some(Space::Local) => false,
            Some(access) => {
                // The interpreter keeps what is the same in all lanes as one number, addresses among them: it knows those before
                // the code runs.
                let is_kept =
                    alike && some.is_none() && operation.defs().iter().any(|slot| self.is_kept(at, *slot));
                let fits = access.bytes_fit();
                let within = self.section.ranges.of_access(access);
                let varies = self.kinds.varies(access.base);
                let checked = varies && within.is_none();
                if let Some(access) = operation.access_mut() {
                    access.within = within.filter(|_| varies);
                    access.checked = checked;
                }
                if let Operation::Load { guard, .. } = &mut operation {
                    *guard = self.lanes[at].filter(|_| checked);
                }
                fits && !is_kept && (!checked || can_check(&op.kind))
            }
            None => true,
        };
        if suits { Class::Vector(operation) } else { Class::Other }
    }

    /// What native code makes of an operation. `accesses`, `calls`: as for [`Operation::of`].
    fn made(&self, kind: &OpKind, accesses: usize, calls: usize) -> Option<Operation> {
        let kind = &*self.addresses.resolved(kind);
        let shifts = Operation::of_shifts(kind, |slot| self.literal(slot));
        let made = shifts.or_else(|| Operation::of_kind(kind, |slot| self.width(slot), accesses, calls));
        made.filter(|made| !matches!(made, Operation::Call { .. }) || is_heavy(kind))
    }

    /// Where all lanes change one element, the interpreter has it in a register, unless one operation does what all of them do.
    fn is_worth_native(&self, operation: &Operation, access: &Access) -> bool {
        match operation {
            Operation::Atomic { op, dst, src, .. } if self.kinds.is_uniform(access.base) => {
                op.combines() && dst.is_none() && self.kinds.is_uniform(*src)
            }
            _ => true,
        }
    }

    /// The interpreter multiplies matrices in place, and a call of its function moves them.
    fn gains(&self, operation: &Operation) -> bool {
        match operation {
            Operation::Product { format, .. } => self.host == Host::Avx512 && format.is_some(),
            _ => true,
        }
    }

    fn literal(&self, slot: Slot) -> Option<u64> {
        match self.function.slots.get(slot.index())?.kind {
            SlotKind::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// An operation with a guard can become one without, and a selection. The interpreter, which would run both, has none of it.
    fn selects(&self, operation: &Operation) -> bool {
        let is_number = |slot: &Slot| self.width(*slot) != Width::Pred;
        self.tentative
            && operation.clone().rename_def(Slot(0)).is_some()
            && operation.defs().iter().all(is_number)
    }

    /// An operation that native code does not compute reads what operation `at` gives this slot.
    fn is_kept(&self, at: usize, slot: Slot) -> bool {
        let is_vector = |reader: usize| {
            let reader_op = self.ops[reader];
            let operation = self.made(&reader_op.kind, 0, 0).filter(|_| reader_op.guard.is_none());
            operation.is_some_and(|operation| match operation.access() {
                Some(access) => access.base != slot,
                None => self.flow(reader).defs.iter().any(|slot| self.kinds.anywhere().varies(*slot)),
            })
        };
        self.live.leaves(at, slot) || !self.live.readers(at, slot).all(is_vector)
    }

    /// What a basic block consists of.
    pub fn items(mut self) -> Vec<Item> {
        for at in 0..self.ops.len() {
            let mut class = self.class(at);
            let goes_on = match &class {
                Class::Vector(operation) => self.takes(at, operation),
                Class::Even => self.is_known(at),
                Class::Other => false,
            };
            if !goes_on {
                self.end(at);
                class = self.class(at);
            }
            match class {
                Class::Vector(operation) => self.add(at, operation),
                Class::Even => self.pass(at),
                Class::Other => self.items.push(Item::Op(self.ops[at].clone())),
            }
            self.go_on(at);
        }
        self.end(self.ops.len());
        self.items
    }

    /// The section has room for operation `at`, and nothing in it hinders.
    pub fn takes(&self, at: usize, operation: &Operation) -> bool {
        !self.section.is_full(operation) && !self.section.hinders(self.ops[at], operation, self.owns(at))
    }

    /// The lanes whose results a selection merges with what was there before.
    fn guard_of_selection(&self, at: usize, operation: &Operation) -> Option<Guard> {
        let of_some = self.some[at].filter(|_| !operation.writes());
        of_some.or(self.ops[at].guard.filter(|_| operation.access().is_none()))
    }

    /// What operation `at` reads is known before native code runs.
    pub fn is_known(&self, at: usize) -> bool {
        !self.flow(at).uses.iter().any(|slot| self.section.has_defined(*slot))
    }

    /// Goes on behind operation `at`.
    pub fn go_on(&mut self, at: usize) {
        match self.some[at] {
            Some(lanes) => self.kinds.pass_some(self.indices[at], lanes.slot),
            None => self.kinds.pass(self.indices[at]),
        }
    }

    /// The slot that has a predicate before native code runs.
    pub fn known(&self, pred: Slot) -> Option<Slot> {
        (!self.section.has_defined(pred)).then(|| self.section.now(pred))
    }

    /// The operations of native code so far.
    pub fn operations(&self) -> usize {
        self.section.vector.len()
    }

    /// All operations as one section: those before, native code, and those behind.
    pub fn whole(mut self) -> Option<(Vec<ir::Op>, Straight, Vec<ir::Op>)> {
        let section = std::mem::take(&mut self.section);
        let span = section.vector.last()?.span;
        let plan = self.plan(&section, self.ops.len())?;
        let copies = self.copies(&section, self.ops.len(), span);
        Some((section.before, plan, copies))
    }

    /// An operation whose results are alike in all lanes runs before those of native code. If they still need what it writes, it
    /// writes another slot.
    pub fn pass(&mut self, at: usize) {
        self.section.at.push(at);
        let mut op = self.ops[at].clone();
        op.visit(&mut |slot, touch| {
            if touch == Touch::Use {
                *slot = self.section.now(*slot);
            }
        });
        let mut others = BTreeMap::new();
        for slot in self.flow(at).defs.clone() {
            self.section.ranges.forget(slot);
            self.section.renamed.remove(&slot);
            if self.tentative || self.section.uses.contains(&slot) || self.section.defs.contains(&slot) {
                others.insert(slot, self.temporary(self.function.slots[slot.index()].width));
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

    /// A slot that the section does not use yet.
    fn temporary(&mut self, width: Width) -> Slot {
        let slot = |index: usize| Slot((self.function.slots.len() + index) as u32);
        let is_free = |&at: &usize| {
            self.temporaries[at] == width && self.addresses.slots().all(|address| address != slot(at))
        };
        let free = (self.section.taken..self.temporaries.len()).find(is_free);
        let index = free.unwrap_or(self.temporaries.len());
        self.section.taken = index + 1;
        let found = slot(index);
        if index == self.temporaries.len() {
            self.temporaries.push(width);
        }
        found
    }

    /// Adds operation `at` to those of native code.
    pub fn add(&mut self, at: usize, mut operation: Operation) {
        let Some(guard) = self.guard_of_selection(at, &operation) else {
            return self.add_operation(at, operation);
        };
        let [dst] = operation.defs()[..] else { return };
        let result = self.temporary(self.width(dst));
        operation.rename_def(result);
        self.add_operation(at, operation);
        let wide = self.width(dst) == Width::W64;
        let src = if guard.negated { [dst, result] } else { [result, dst] };
        self.add_operation(at, Operation::Select { wide, dst, src, pred: guard.slot });
    }

    /// Counts the instructions of the lanes that go on behind operation `at` to a basic block of so many.
    pub fn count(&mut self, at: usize, lanes: Guard, cost: u32) {
        self.add_operation(at, Operation::Count { lanes, cost });
    }

    fn add_operation(&mut self, at: usize, operation: Operation) {
        if let Some(access) = operation.access()
            && let Some(address) = self.addresses.operation(access.base, self.ops[at])
            && !self.section.before.iter().any(|op| op.kind == address.kind)
        {
            self.section.before.push(address);
        }
        let range = self.section.ranges.result(&operation, self);
        self.section.ranges.define(&operation.defs(), range);
        let owns = self.own_slots(at, &operation);
        self.section.at.push(at);
        self.section.add(self.ops[at], operation, &owns, &self.kinds);
    }

    /// Ends the section before operation `at`.
    fn end(&mut self, at: usize) {
        let section = std::mem::take(&mut self.section);
        let of_block = |&index: &usize| Item::Op(self.ops[index].clone());
        if section.vector.is_empty() {
            return self.items.extend(section.at.iter().map(of_block));
        }
        let Some(plan) = self.plan(&section, at) else {
            return self.items.extend(section.at.iter().map(of_block));
        };
        let span = section.vector[section.vector.len() - 1].span;
        let copies = self.copies(&section, at, span);
        self.items.extend(section.before.into_iter().map(Item::Op));
        self.items.push(Item::Section(plan));
        self.items.extend(copies.into_iter().map(Item::Op));
    }

    /// Gives slots what others have for them. The section ends before operation `at`.
    fn copies(&self, section: &Section, at: usize, span: Span) -> Vec<ir::Op> {
        let live = section.renamed.iter().filter(|(to, _)| self.live.before(at, **to));
        let copy = |(&dst, &src): (&Slot, &Slot)| {
            let kind = OpKind::Simple(SimpleOp::Copy { dst, src });
            ir::Op { guard: None, kind, span }
        };
        live.map(copy).collect()
    }
}

impl Slots for Finder<'_> {
    fn literal(&self, slot: Slot) -> Option<u64> {
        Finder::literal(self, slot)
    }

    fn width(&self, slot: Slot) -> Width {
        Finder::width(self, slot)
    }

    fn known(&self, slot: Slot) -> Option<Slot> {
        let is_known = slot.index() < self.function.slots.len() && self.kinds.is_uniform(slot);
        (is_known && !self.section.has_defined(slot)).then(|| self.section.now(slot))
    }
}

impl Straight {
    /// Machine code for a host, for launches where slots step as `form` says. `None` as for [`Loop::compile`], and if an address
    /// does not step evenly.
    pub fn compile(&self, host: Host, form: impl Fn(Slot) -> Option<crate::Form>) -> Option<Native> {
        let is_literal = |slot: &Slot| self.source.literals.contains_key(slot);
        let of_pointer = |pointer: &Pointer| match is_literal(&pointer.base) {
            true => Some(crate::Form::UNIFORM),
            false => form(pointer.base),
        };
        let pointers = self.pointers.iter().map(of_pointer).collect();
        let form = |slot: Slot| form(slot).filter(|_| !self.varying.contains(&slot));
        #[cfg(all(target_arch = "x86_64", unix))]
        {
            crate::emit::emit_straight(self, host, pointers, form)
        }
        #[cfg(not(all(target_arch = "x86_64", unix)))]
        {
            let _: (_, Vec<_>, _) = (host, pointers, form);
            None
        }
    }

    /// The accesses to memory, in the order of [`Frame::regions`](crate::Frame::regions).
    pub fn accesses(&self) -> &[crate::Access] {
        &self.source.accesses
    }

    /// The predicates of a frame.
    pub fn predicates(&self) -> &[crate::Value] {
        &self.source.predicates
    }

    /// The code counts instructions that a strip which it skips has not executed.
    pub(crate) fn counts(&self) -> bool {
        let mut operations = self.source.bodies.iter().flat_map(|body| &body.operations);
        !self.checked.is_empty() && operations.any(|operation| matches!(operation, Operation::Count { .. }))
    }

    /// The slot is read before the code writes it.
    pub fn enters(&self, slot: Slot) -> bool {
        self.source.live_in.contains(&slot)
    }
}
