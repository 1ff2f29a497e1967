//! Builds [`Function`] from [`ir::Function`].

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use check::module::{Body, Prototype};
use ir::{MapOperands, ShufflePattern, SimpleOp};
use isa::{Opcode, Space};
use lanes::HostPath;
use machine::memory::{function_address, generic_offset};
use machine::{Launch, Special};
use sem::texture::{Lookup, SurfaceAccess};

use super::{
    Access, Address, Base, Block, Code, Function, Kind, Linear, Load, MAX_SOURCES, MatrixOp, MatrixOperands,
    Meeting, Op, Pure, Signature, Signatures, TensorMemory, Terminator, Texel, TexelWork, array_bytes,
    native_host,
};
use crate::limits::{REDUCTION_COST, SPIN_COST};
use crate::registers::SlotRef;

/// Builds the code of a launch's kernel for gangs of `lanes` lanes. Of the launch it uses where variables are. `sections`: basic
/// blocks that run once for each gang have native code, too.
pub(crate) fn build(launch: &Launch, lanes: usize, path: HostPath, sections: bool) -> Code {
    let (program, reached) = (launch.program(), &launch.kernel().reached);
    let counts = Counts::default();
    let all = program.functions.iter().zip(&program.module.functions).zip(reached);
    let functions = all
        .map(|((function, checked), reached)| {
            let (function, body) = function.as_ref().zip(checked.body.as_ref()).filter(|_| *reached)?;
            // A loop of the kernel may call a function.
            let sections = sections || !checked.is_entry;
            let context = Context { launch, path, sections };
            Some(Builder::new((function, &checked.name), body, context, lanes, &counts).function())
        })
        .collect();
    let mut signatures = counts.signatures.into_inner();
    let callable = program
        .module
        .functions
        .iter()
        .zip(reached)
        .map(|(f, reached)| {
            (*reached && !f.is_entry).then(|| signatures.number(Signature::new(&f.params, &f.returns)))
        })
        .collect();
    let (accesses, pure_operations) = (counts.accesses.get(), counts.pure_operations.get());
    let (chains, native_accesses) = (counts.chains.get(), counts.native_accesses.get());
    Code {
        functions,
        callable,
        signatures,
        lanes,
        accesses,
        pure_operations,
        chains,
        native_accesses,
        gangs: AtomicU32::new(0),
        coarsens: AtomicBool::new(false),
        short_range: AtomicU64::new(0),
        waits: AtomicBool::new(false),
        is_too_long: AtomicBool::new(false),
    }
}

/// [`ir::OpKind::SelectPair`] of one lane. The values are two pairs, and the predicates of the halves.
fn select_pair(_: &isa::Picks, values: &[u64]) -> [u64; 2] {
    let half = |pred: u64, mask: u64| values[usize::from(pred == 0)] & mask;
    [half(values[2], 0xffff) | half(values[3], 0xffff_0000), 0]
}

/// Whether threads on other host threads can observe the access. All threads of a block run on one host thread, and its
/// shared and local memory are private to it.
pub(super) fn is_strong(address: &ir::Address, semantics: ir::Semantics) -> bool {
    let reaches_others = match address.space {
        Space::Global | Space::Generic => true,
        Space::Shared | Space::Local | Space::Const | Space::Param => false,
        // No memory.
        Space::Reg | Space::SpecialRegister | Space::Tex => false,
    };
    semantics.is_strong() && reaches_others
}

/// Counters over all functions built so far.
#[derive(Default)]
pub(super) struct Counts {
    accesses: Cell<usize>,
    pure_operations: Cell<usize>,
    chains: Cell<usize>,
    pub(super) native_accesses: Cell<usize>,
    signatures: RefCell<Signatures>,
}

/// The next number.
fn next(counter: &Cell<usize>) -> usize {
    counter.replace(counter.get() + 1)
}

/// The parameters for which all functions of a kernel are built.
#[derive(Clone, Copy)]
struct Context<'a> {
    launch: &'a Launch,
    path: HostPath,
    /// See [`build`].
    sections: bool,
}

pub(super) struct Builder<'a> {
    pub(super) function: &'a ir::Function,
    pub(super) name: &'a str,
    body: &'a Body,
    context: Context<'a>,
    lanes: usize,
    pub(super) slots: Vec<SlotRef>,
    bytes: u64,
    pub(super) counts: &'a Counts,
}

impl<'a> Builder<'a> {
    fn new(
        (function, name): (&'a ir::Function, &'a str),
        body: &'a Body,
        context: Context<'a>,
        lanes: usize,
        counts: &'a Counts,
    ) -> Builder<'a> {
        let (slots, bytes) = (Vec::new(), 0);
        let mut builder = Builder { function, name, body, context, lanes, slots, bytes, counts };
        builder.add_slots(function.slots.iter().map(|info| info.width));
        builder
    }

    /// Adds slots of these widths to the window.
    pub(super) fn add_slots(&mut self, widths: impl IntoIterator<Item = ir::Width>) {
        for width in widths {
            // A window whose offsets do not fit into 32 bits is never opened.
            let offset = u32::try_from(self.bytes).unwrap_or(u32::MAX);
            self.slots.push(SlotRef::new(self.slots.len() as u32, offset, width));
            self.bytes += array_bytes(width, self.lanes) as u64;
        }
    }

    fn function(mut self) -> Function {
        let f = self.function;
        let (mut constants, mut specials, mut block_specials) = (Vec::new(), Vec::new(), Vec::new());
        for (info, &slot) in f.slots.iter().zip(&self.slots) {
            match info.kind {
                ir::SlotKind::Constant(value) => constants.push((slot, value)),
                ir::SlotKind::Special(special) => match Special::of(special) {
                    special if special.depends_on_block() => block_specials.push((slot, special)),
                    special => specials.push((slot, special)),
                },
                _ => {}
            }
        }
        let mut blocks: Vec<Block> = f.blocks.iter().map(|block| self.block(block)).collect();
        if let Some(host) = native_host(self.context.path) {
            for (first, native) in self.native_loops(host) {
                blocks[first as usize].native = Some(native);
            }
            if self.context.sections || has_other_loops(f, &blocks) {
                self.straight_code(host, &mut blocks);
            }
        }
        let reg_params =
            |params: &[Option<ir::Slot>]| params.iter().map(|p| p.map(|s| self.slot(s))).collect();
        Function {
            blocks,
            all: self.slots.clone(),
            temporaries: f.slots.len() as u32,
            slots: self.slots.len() as u32,
            bytes: self.bytes,
            constants,
            specials,
            block_specials,
            zeros: f.blocks[0].live_in.iter().map(|slot| slot.0).collect(),
            prologue: f.prologue.iter().map(|op| self.op(op)).collect(),
            frame_bytes: f.frame_bytes,
            frame_align: f.frame_align,
            params: reg_params(&f.params),
            returns: reg_params(&f.returns),
        }
    }

    pub(super) fn slot(&self, slot: ir::Slot) -> SlotRef {
        self.slots[slot.index()]
    }

    /// The value of a slot that holds a literal.
    fn literal(&self, slot: ir::Slot) -> Option<u64> {
        match self.function.slots.get(slot.index())?.kind {
            ir::SlotKind::Constant(value) => Some(value),
            _ => None,
        }
    }

    fn maybe(&self, slot: Option<ir::Slot>) -> Option<SlotRef> {
        slot.map(|s| self.slot(s))
    }

    fn block(&self, block: &ir::Block) -> Block {
        let ops = &self.function.ops[block.ops.start as usize..block.ops.end as usize];
        let mut live_in = vec![0u64; self.function.slots.len().div_ceil(64)];
        for slot in &block.live_in {
            live_in[slot.index() / 64] |= 1 << (slot.index() % 64);
        }
        let mut executable: Vec<Op> = ops.iter().map(|op| self.op(op)).collect();
        let of_made = |(made, op): (&Op, &ir::Op)| match made.kind {
            Kind::Param { .. } => Box::default(),
            _ if op.kind.computes() => Box::default(),
            _ => ir::accesses(&op.kind).iter().map(|access| access.map(&mut self.resolve(false))).collect(),
        };
        let mut accesses: Vec<Box<[Access]>> = executable.iter().zip(ops).map(of_made).collect();
        let chains = self.fuse(block, ops, &mut executable, &mut accesses);
        self.counts.chains.set(chains.max(self.counts.chains.get()));
        Block {
            cost: block.instructions.len() as u64,
            warp: matches!(ops.first(), Some(ir::Op { kind: ir::OpKind::Warp { .. }, .. })),
            meeting: self.meeting(ops, &block.terminator),
            ops: executable,
            accesses,
            terminator: self.terminator(&block.terminator),
            span: block.span,
            live_in,
            native: None,
            straight: None,
            trace: None,
            of_blocks: None,
            ways: [OnceLock::new(), OnceLock::new()],
            slice_cost: slice_cost(block),
        }
    }

    fn meeting(&self, ops: &[ir::Op], terminator: &ir::Terminator) -> Option<Box<Meeting>> {
        let ([op], ir::Terminator::Jump(next)) = (ops, terminator) else { return None };
        if !matches!(op.kind, ir::OpKind::Warp { members: Some(_), .. }) {
            return None;
        }
        let (mut uses, mut defs) = (Vec::new(), Vec::new());
        op.clone().visit(&mut |slot, touch| match touch {
            ir::Touch::Use => uses.push(self.slot(*slot)),
            ir::Touch::Def => defs.push(self.slot(*slot)),
        });
        Some(Box::new(Meeting { uses, defs, next: *next }))
    }

    fn base(&self, base: ir::Base, offset: i64) -> (Base, u64) {
        let offset = offset as u64;
        match base {
            ir::Base::Slot(slot) => (Base::Slot(self.slot(slot)), offset),
            ir::Base::Zero => (Base::Zero, offset),
            ir::Base::Variable(id) => {
                let variables = &self.context.launch.module().variables;
                let is_shared = variables[id.index()].space == Space::Shared;
                let start = if is_shared { Base::Shared } else { Base::Zero };
                (start, self.context.launch.variable_address(id).wrapping_add(offset))
            }
            ir::Base::KernelParam(i) => {
                (Base::Zero, self.context.launch.param_offset(i).wrapping_add(offset))
            }
            ir::Base::Function(id) => (Base::Zero, function_address(id).wrapping_add(offset)),
            ir::Base::Frame(at) => (Base::Frame, u64::from(at).wrapping_add(offset)),
            ir::Base::FrameParam(i) => (Base::FrameParam(i), offset),
            ir::Base::FrameReturn(i) => (Base::FrameReturn(i), offset),
        }
    }

    fn address(&self, address: &ir::Address) -> Address {
        self.resolve(true).address(*address)
    }

    fn resolve(&self, cached: bool) -> Resolve<'_> {
        Resolve { builder: self, cached }
    }

    pub(super) fn op(&self, op: &ir::Op) -> Op {
        let guard = op.guard.map(|guard| guard.map(|slot| self.slot(slot)));
        Op { guard, kind: self.kind(&op.kind), span: op.span }
    }

    fn kind(&self, kind: &ir::OpKind) -> Kind {
        match kind {
            ir::OpKind::Pure { form, picks, function, dst, src } => match sem::lookup(function) {
                Some(sem) if src.len() <= MAX_SOURCES => {
                    let dst = dst.map(|d| self.maybe(d));
                    let unused = SlotRef::new(0, 0, ir::Width::Pred);
                    let at = |i: usize| src.get(i).map_or(unused, |&s| self.slot(s));
                    let last = src.len().saturating_sub(1);
                    Kind::Pure(Box::new(Pure {
                        lanes: lanes::lookup(form, picks, self.context.path),
                        sem,
                        slow_sem: picks.types().iter().any(|ty| ty.is_float())
                            && !matches!(form.opcode, Opcode::Selp | Opcode::Slct),
                        picks: *picks,
                        dst,
                        src: std::array::from_fn(at),
                        sources: src.len(),
                        in_place: std::array::from_fn(|i| i <= last && dst.contains(&Some(at(i)))),
                        linear: Linear::of(form, picks),
                        linear_src: [at(0), at(1.min(last)), at(last)],
                        cached: next(&self.counts.pure_operations),
                    }))
                }
                _ => Kind::Unsupported { opcode: form.opcode },
            },
            ir::OpKind::Simple(op) => Kind::Simple(op.map(&mut self.resolve(true))),
            ir::OpKind::AddressOf { dst, base, offset } => {
                let (base, offset) = self.base(*base, *offset);
                Kind::AddressOf { dst: self.slot(*dst), base, offset }
            }
            ir::OpKind::SelectPair { dst, pairs, preds } => {
                let [a, b] = pairs.map(|slot| self.slot(slot));
                let [p, q] = preds.map(|slot| self.slot(slot));
                let dst = self.slot(*dst);
                Kind::Pure(Box::new(Pure {
                    lanes: Some(lanes::select_pair(self.context.path)),
                    sem: select_pair,
                    slow_sem: false,
                    picks: isa::Picks::new(&[], &[]),
                    dst: [Some(dst), None],
                    src: [a, b, p, q, a],
                    sources: 4,
                    in_place: [a, b, p, q, a].map(|slot| slot == dst),
                    linear: Linear::No,
                    linear_src: [a; 3],
                    cached: next(&self.counts.pure_operations),
                }))
            }
            ir::OpKind::Load(load)
                if let (ir::Base::KernelParam(index), [Some(slot)]) = (load.address.base, &load.dst[..])
                    && let Some(offset) = self.param(index, load.address.offset, load.bytes) =>
            {
                Kind::Param { dst: self.slot(*slot), offset, bytes: load.bytes, signed: load.signed }
            }
            ir::OpKind::Load(load) => {
                let kind =
                    if is_strong(&load.address, load.semantics) { Kind::LoadStrong } else { Kind::Load };
                kind(Box::new(Load { load: load.map(&mut self.resolve(true)), once: false, chained: None }))
            }
            ir::OpKind::Store(store) => {
                let kind =
                    if is_strong(&store.address, store.semantics) { Kind::StoreStrong } else { Kind::Store };
                kind(Box::new(store.map(&mut self.resolve(true))))
            }
            ir::OpKind::Cvta { dst, src, space, to_space } => {
                let (dst, src) = (self.slot(*dst), self.slot(*src));
                let offset = generic_offset(*space);
                let addend = if *to_space { offset.wrapping_neg() } else { offset } as i64;
                Kind::Simple(match offset {
                    0 => SimpleOp::Copy { dst, src },
                    _ => SimpleOp::Offset { dst, src, addend },
                })
            }
            ir::OpKind::Memory(op) => Kind::Memory(Box::new(op.map(&mut self.resolve(true)))),
            ir::OpKind::TensorMemory(op) => match self.tensor_memory(op) {
                Ok(op) => Kind::TensorMemory(op),
                Err(opcode) => Kind::Unsupported { opcode },
            },
            ir::OpKind::Warp { op, members } => {
                let resolved =
                    op.map(&mut self.resolve(true), |op| self.matrix(op), |op| self.tensor_memory(op));
                Kind::Warp {
                    op: Box::new(resolved),
                    members: self.maybe(*members),
                    pattern: self.pattern(op),
                }
            }
            ir::OpKind::Texel(op) => self.texel(op),
            ir::OpKind::Unsupported { form, .. } => Kind::Unsupported { opcode: form.opcode },
        }
    }

    /// The offset of an access to the parameters. `None` unless it is aligned and in bounds.
    fn param(&self, index: u32, offset: i64, bytes: u32) -> Option<u32> {
        let start = self.context.launch.param_offset(index).checked_add_signed(offset)?;
        let end = start.checked_add(bytes.into())?;
        let within = end <= self.context.launch.kernel().param_bytes && start.is_multiple_of(bytes.into());
        u32::try_from(start).ok().filter(|_| within)
    }

    fn texel(&self, op: &ir::TexelOp) -> Kind {
        let surface = || SurfaceAccess::of(op.form, &op.picks);
        let work = match op.kind {
            ir::TexelKind::Fetch => Lookup::of(op.form, &op.picks).map(TexelWork::Fetch),
            ir::TexelKind::Query => Some(TexelWork::Query { opcode: op.form.opcode, picks: op.picks }),
            ir::TexelKind::Load => surface().map(TexelWork::Load),
            ir::TexelKind::Store => surface().map(TexelWork::Store),
            ir::TexelKind::Reduce(reduction) => surface().map(|access| TexelWork::Reduce(reduction, access)),
        };
        let Some(work) = work else { return Kind::Unsupported { opcode: op.form.opcode } };
        Kind::Texel(Box::new(Texel {
            work,
            handle: self.slot(op.handle),
            sampler: self.maybe(op.sampler),
            dst: op.dst.iter().map(|&d| self.maybe(d)).collect(),
            src: op.src.iter().map(|&s| self.slot(s)).collect(),
        }))
    }

    fn tensor_memory(&self, op: &ir::TensorMemoryOp) -> Result<Box<TensorMemory>, Opcode> {
        let address = op.address.as_ref().map(|a| self.address(a));
        let helpers = lanes::MatrixHelpers::of(self.context.path);
        TensorMemory::new(op, address, helpers, |slot| self.slot(slot), |slot| self.literal(slot))
            .map(Box::new)
            .ok_or(op.form.opcode)
    }

    fn matrix(&self, op: &ir::MatrixOp) -> Result<MatrixOp, Opcode> {
        let operands = MatrixOperands {
            dst: op.dst.iter().map(|&d| self.maybe(d)).collect(),
            src: op.src.iter().map(|&s| self.slot(s)).collect(),
            address: op.address.as_ref().map(|a| self.address(a)),
            stride: self.maybe(op.stride),
        };
        let helpers = lanes::MatrixHelpers::of(self.context.path);
        MatrixOp::new(op, operands, helpers).ok_or(op.form.opcode)
    }

    /// The pattern of a shuffle whose `b` and `c` are literals.
    fn pattern(&self, op: &ir::WarpOp) -> Option<Box<ShufflePattern>> {
        let ir::WarpOp::Shuffle { mode, b, c, .. } = *op else { return None };
        let (b, c) = self.literal(b).zip(self.literal(c))?;
        Some(Box::new(ShufflePattern::new(mode, b as u32, c as u32)))
    }

    fn terminator(&self, terminator: &ir::Terminator) -> Terminator {
        terminator.map(&mut Resolve { builder: self, cached: true }, |prototype| {
            let Prototype { params, returns } = &self.body.prototypes[prototype.index()];
            self.counts.signatures.borrow_mut().number(Signature::new(params, returns))
        })
    }
}

/// Whether there are loops that are not native code as a whole.
fn has_other_loops(function: &ir::Function, blocks: &[Block]) -> bool {
    let natives: Vec<Range<u32>> =
        blocks.iter().filter_map(|block| Some(block.native.as_ref()?.plan.blocks.clone())).collect();
    (0..).zip(&function.blocks).any(|(from, block)| {
        let is_native = natives.iter().any(|native| native.contains(&from));
        !is_native && block.terminator.successors().iter().any(|to| to.0 <= from)
    })
}

/// See [`Block::slice_cost`].
pub(super) fn slice_cost(block: &ir::Block) -> i64 {
    match block {
        ir::Block { may_spin: true, .. } => SPIN_COST,
        ir::Block { reduces: true, .. } => REDUCTION_COST,
        _ => 0,
    }
}

/// Resolves operands. Those that observers look at have no inline cache.
struct Resolve<'b> {
    builder: &'b Builder<'b>,
    cached: bool,
}

impl MapOperands<ir::Slot, ir::Address> for Resolve<'_> {
    type Slot = SlotRef;
    type Address = Address;

    fn source(&mut self, slot: ir::Slot) -> SlotRef {
        self.builder.slot(slot)
    }

    fn result(&mut self, slot: ir::Slot) -> SlotRef {
        self.builder.slot(slot)
    }

    fn address(&mut self, ir::Address { space, base, offset }: ir::Address) -> Address {
        let (base, offset) = self.builder.base(base, offset);
        let place = if self.cached { next(&self.builder.counts.accesses) } else { usize::MAX };
        Address { space, base, offset, place }
    }
}
