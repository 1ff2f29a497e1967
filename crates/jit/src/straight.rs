//! Which operations of a basic block native code computes together, without control flow.
//!
//! The interpreter takes all lanes through one operation, and then through the next. Where it knows that values are the same in
//! all lanes or step evenly, that is one number, and hard to beat. The other operations, which touch every lane, become native
//! code: it takes a strip of lanes through all of them, with the values in registers of the host. Between them may stand
//! operations of the first kind, if they can as well run before.
//!
//! Accesses to memory are among them if their addresses step evenly: the interpreter checks them for all lanes before the code
//! runs, so no lane leaves it. Accesses at the same register share one pointer.

use std::collections::{BTreeMap, BTreeSet};

use diag::Span;
use ir::{Base, Function, OpKind, SimpleOp, Slot, Terminator, Touch, Width};
use isa::{Form, Picks, Space};

use crate::kinds::{Here, Kind, Kinds, Starts};
use crate::loops::{Body, End, Loop, Parts};
use crate::operation::Operation;
use crate::{Host, MOST_ACCESSES, MOST_PREDICATES, Native};

/// The most registers with addresses.
pub const MOST_POINTERS: usize = 16;
/// Fewer operations are not worth a call.
const LEAST_OPERATIONS: usize = 3;
/// How far a reader of a value is looked for.
const FAR: usize = 64;

/// Operations of a basic block that native code computes together.
#[derive(Debug)]
pub struct Straight {
    /// The operations.
    pub operations: Vec<ir::Op>,
    /// The indices of those that vector handlers compute.
    pub calls: Vec<usize>,
    /// What the accesses to memory have in common.
    pub pointers: Vec<Pointer>,
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
        if finder.items.iter().any(|item| matches!(item, Item::Section(_))) {
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
    /// The slots that are live behind each operation.
    live: Vec<BTreeSet<Slot>>,
    items: Vec<Item>,
    section: Section,
    temporaries: &'f mut Vec<Width>,
}

/// The operations of a section so far.
#[derive(Default)]
struct Section {
    /// All operations, as they are in the basic block.
    ops: Vec<ir::Op>,
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
        let next = block.terminator.successors().into_iter();
        let mut after: BTreeSet<Slot> =
            next.flat_map(|next| function.blocks[next.index()].live_in.iter().copied()).collect();
        if matches!(block.terminator, Terminator::Return) {
            after.extend(function.returns.iter().flatten());
        }
        for wanted in [Touch::Def, Touch::Use] {
            block.terminator.clone().visit(&mut |slot, touch| note(&mut after, *slot, touch, wanted));
        }
        let mut live = vec![BTreeSet::new(); ops.len()];
        for (op, live) in ops.iter().zip(&mut live).rev() {
            live.clone_from(&after);
            let guarded = op.guard.is_some();
            for wanted in
                [Touch::Def, Touch::Use].into_iter().filter(|touch| !guarded || *touch == Touch::Use)
            {
                op.clone().visit(&mut |slot, touch| note(&mut after, *slot, touch, wanted));
            }
        }
        let (items, section) = (Vec::new(), Section::default());
        let (first, kinds) = (block.ops.start, starts.at(index));
        Finder { function, first, ops, kinds, live, items, section, temporaries }
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
        let Some(operation) = Operation::of(op, |slot| self.width(slot), accesses, calls) else {
            return Class::Other;
        };
        let suits = match operation.access() {
            Some(access) => {
                // The interpreter keeps what is the same in all lanes as one number.
                let is_kept = alike && operation.defs().iter().any(|slot| self.is_kept(at, *slot));
                // It knows an address before the code runs.
                let is_known = !self.section.defs.contains(&access.base);
                is_known && !is_kept && !self.kinds.varies(access.base) && access.bytes_fit()
            }
            None => true,
        };
        // Which NaN of f64 arithmetic keeps is a question that only lanes that leave can answer.
        let doubles = operation.computes_double() || matches!(operation, Operation::Convert { .. });
        if suits && !doubles { Class::Vector(operation) } else { Class::Other }
    }

    /// An operation that native code does not compute reads what operation `at` gives this slot.
    fn is_kept(&self, at: usize, slot: Slot) -> bool {
        for op in self.ops.iter().skip(at + 1).take(FAR) {
            let (uses, defs) = touched(op);
            if uses.contains(&slot) {
                let operation = Operation::of(op, |slot| self.width(slot), 0, 0);
                let is_vector = operation.is_some_and(|operation| match operation.access() {
                    Some(access) => access.base != slot,
                    None => defs.iter().any(|slot| self.kinds.anywhere().varies(*slot)),
                });
                if !is_vector {
                    return true;
                }
            }
            if defs.contains(&slot) && op.guard.is_none() {
                return false;
            }
        }
        at + FAR < self.ops.len() || self.live.last().is_some_and(|live| live.contains(&slot))
    }

    fn find(&mut self) {
        for (at, op) in self.ops.iter().enumerate() {
            let mut class = self.class(at);
            let is_full = self.section.accesses == MOST_ACCESSES;
            let ends = match &class {
                Class::Vector(operation) => is_full && operation.access().is_some(),
                Class::Even => touched(op).0.iter().any(|slot| self.section.has_defined(*slot)),
                Class::Other => true,
            };
            if ends {
                self.end(at);
                class = self.class(at);
            }
            match class {
                Class::Vector(operation) => self.section.add(op, operation, &self.kinds),
                Class::Even => self.pass(op),
                Class::Other => self.items.push(Item::Op(op.clone())),
            }
            self.kinds.pass(self.first + at as u32);
        }
        self.end(self.ops.len());
    }

    /// An operation whose results are alike in all lanes runs before those of native code. If they still need what it writes, it
    /// writes another slot.
    fn pass(&mut self, op: &ir::Op) {
        self.section.ops.push(op.clone());
        let (mut op, first) = (op.clone(), self.function.slots.len());
        let (_, defs) = touched(&op);
        op.visit(&mut |slot, touch| {
            if touch == Touch::Use {
                *slot = self.section.now(*slot);
            }
        });
        let mut others = BTreeMap::new();
        for &slot in &defs {
            self.section.renamed.remove(&slot);
            if self.section.uses.contains(&slot) || self.section.defs.contains(&slot) {
                let width = self.width(slot);
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
        if section.vector.len() < LEAST_OPERATIONS {
            return self.items.extend(section.ops.into_iter().map(Item::Op));
        }
        let live = at.checked_sub(1).map(|last| &self.live[last]);
        let is_live = |slot: &Slot| live.is_some_and(|live| live.contains(slot));
        let (ops, before) = (section.ops.clone(), section.before.clone());
        let renamed: Vec<(Slot, Slot)> = section.renamed.iter().map(|(&to, &from)| (to, from)).collect();
        let span = section.vector.last().map(|op| op.span);
        match self.plan(section, is_live).zip(span) {
            Some((plan, span)) => {
                self.items.extend(before.into_iter().map(Item::Op));
                self.items.push(Item::Section(plan));
                for (dst, src) in renamed.into_iter().filter(|(to, _)| is_live(to)) {
                    let kind = OpKind::Simple(SimpleOp::Copy { dst, src });
                    self.items.push(Item::Op(ir::Op { guard: None, kind, span }));
                }
            }
            None => self.items.extend(ops.into_iter().map(Item::Op)),
        }
    }

    fn plan(&self, section: Section, is_live: impl Fn(&Slot) -> bool) -> Option<Straight> {
        let (mut pointers, mut places): (Vec<Pointer>, Vec<(usize, i32)>) = (Vec::new(), Vec::new());
        for (operation, op) in section.operations.iter().zip(&section.vector) {
            let Some(access) = operation.access() else { continue };
            let (space, write) = match &op.kind {
                OpKind::Load(load) => (load.address.space, false),
                OpKind::Store(store) => (store.address.space, true),
                _ => return None,
            };
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
            defined.iter().copied().filter(|slot| is_live(slot) && !is_over(slot)).collect();
        let spans = section.vector.iter().map(|op| op.span);
        let body = Body {
            spans: spans.chain(section.vector.last().map(|op| op.span)).collect(),
            operations: section.operations,
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
            operations: section.vector,
            calls: section.calls,
            pointers,
            places,
            source,
            varying: section.varying,
        })
    }
}

impl Section {
    /// The slot that has the value of a slot now.
    fn now(&self, slot: Slot) -> Slot {
        self.renamed.get(&slot).copied().unwrap_or(slot)
    }

    /// Native code computes the value that a slot has now.
    fn has_defined(&self, slot: Slot) -> bool {
        self.defs.contains(&slot) && !self.renamed.contains_key(&slot)
    }

    /// Adds an operation of native code.
    fn add(&mut self, op: &ir::Op, mut operation: Operation, kinds: &Here) {
        self.ops.push(op.clone());
        let mut op = op.clone();
        op.visit(&mut |slot, touch| {
            if touch == Touch::Use {
                *slot = self.now(*slot);
            }
        });
        let (old_uses, _) = touched(&self.ops[self.ops.len() - 1]);
        let renamed = self.renamed.clone();
        operation.rename_uses(|slot| renamed.get(&slot).copied().unwrap_or(slot));
        let varying = old_uses.iter().filter(|slot| kinds.varies(**slot)).map(|slot| self.now(*slot));
        let varying: Vec<Slot> = varying.collect();
        self.varying.extend(varying);
        self.accesses += usize::from(operation.access().is_some());
        if matches!(operation, Operation::Call { .. }) {
            self.calls.push(self.vector.len());
        }
        self.uses.extend(operation.uses());
        for slot in operation.defs() {
            self.renamed.remove(&slot);
            self.defs.insert(slot);
        }
        self.vector.push(op);
        self.operations.push(operation);
    }
}

fn note(live: &mut BTreeSet<Slot>, slot: Slot, touch: Touch, wanted: Touch) {
    match touch {
        _ if touch != wanted => {}
        Touch::Def => {
            live.remove(&slot);
        }
        Touch::Use => {
            live.insert(slot);
        }
    }
}

/// What an operation reads and writes.
fn touched(op: &ir::Op) -> (Vec<Slot>, Vec<Slot>) {
    let (mut uses, mut defs) = (Vec::new(), Vec::new());
    op.clone().visit(&mut |slot, touch| match touch {
        Touch::Use => uses.push(*slot),
        Touch::Def => defs.push(*slot),
    });
    (uses, defs)
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
