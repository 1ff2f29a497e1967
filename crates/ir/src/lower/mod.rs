//! Lowers the checked module to [`Function`]s.

mod asynchronous;
mod call;
mod control;
mod instruction;
mod matrix;
mod tensor_memory;
mod texture;

use std::collections::{HashMap, HashSet};

use check::module::{
    AddressBase, Body, FuncId, Function as Checked, Instruction, LabelId, Module, Node, Operand, Param,
    RegId, Symbol, VarId,
};
use diag::Span;
use isa::{Space, Type};

use crate::function::{Block, Function, RegisterPlace, Terminator};
use crate::liveness;
use crate::op::{Address, Base, BlockId, Guard, Op, OpKind, Slot, SlotInfo, SlotKind, StackOp, Width};
use crate::order::weak_topological_order;
use crate::passes::{self, Options};
use crate::simple::SimpleOp;

/// Lowers one function; `None` for a declaration without a body.
pub(crate) fn function(module: &Module, id: FuncId, options: &Options) -> Option<Function> {
    let function = &module.functions[id.index()];
    let body = function.body.as_ref()?;
    let mut lowering = Lowering::new(module, function, body);
    for node in &body.code {
        match node {
            Node::Label(label) => lowering.place_label(*label),
            Node::Instruction(instruction) => lowering.instruction(instruction),
        }
    }
    Some(lowering.finish(options))
}

/// A basic block under construction. Basic blocks are numbered by creation until [`Lowering::finish`].
pub(crate) struct RawBlock {
    ops: Vec<Op>,
    terminator: Option<Terminator>,
    span: Span,
    falls_through: bool,
    pub may_spin: bool,
    pub reduces: bool,
}

/// A function that is being lowered. What becomes of an instruction is said in the files of this folder; of those that
/// access memory, next to their operations in `memory`.
pub(crate) struct Lowering<'m> {
    module: &'m Module,
    function: &'m Checked,
    body: &'m Body,
    blocks: Vec<RawBlock>,
    /// The basic block that operations are added to.
    current: BlockId,
    labels: Vec<Option<BlockId>>,
    /// Values before slots are shared: registers first, then constants, specials and temporaries in order of
    /// creation.
    values: Vec<SlotInfo>,
    registers: HashMap<(RegId, u8), Slot>,
    constants: HashMap<(Width, u64), Slot>,
    specials: HashMap<isa::SpecialRegister, Slot>,
    carry: Option<Slot>,
    /// The end of the stack on entry, in functions that allocate on it. They restore it when they return.
    stack_entry: Option<Slot>,
    /// Byte offset in the frame of each `.local` and `.param` variable of this function.
    frame: HashMap<VarId, u32>,
    frame_bytes: u32,
    frame_align: u32,
    /// Span of the instruction that is being lowered.
    span: Span,
}

impl<'m> Lowering<'m> {
    fn new(module: &'m Module, function: &'m Checked, body: &'m Body) -> Lowering<'m> {
        let mut lowering = Lowering {
            module,
            function,
            body,
            blocks: Vec::new(),
            current: BlockId(0),
            labels: vec![None; body.labels.len()],
            values: Vec::new(),
            registers: HashMap::new(),
            constants: HashMap::new(),
            specials: HashMap::new(),
            carry: None,
            stack_entry: None,
            frame: HashMap::new(),
            frame_bytes: 0,
            frame_align: 4,
            span: function.span,
        };
        lowering.current = lowering.new_block();
        for (index, variable) in module.variables.iter().enumerate() {
            if variable.function == Some(body.owner) && matches!(variable.space, Space::Local | Space::Param)
            {
                let offset = lowering.reserve_frame(variable.bytes, variable.align);
                lowering.frame.insert(VarId(index as u32), offset);
            }
        }
        let takes_stack = |node: &Node| match node {
            Node::Instruction(i) => i.form.action == isa::Action::Effect(isa::Effect::Alloca),
            Node::Label(_) => false,
        };
        if !function.is_entry && body.code.iter().any(takes_stack) {
            let entry = lowering.value(Width::W64, SlotKind::StackEntry);
            lowering.stack_entry = Some(entry);
            lowering.push(None, SimpleOp::Stack { op: StackOp::Save, dst: Some(entry), value: None });
        }
        lowering
    }

    /// Reserves bytes in the frame of local memory and returns their offset.
    fn reserve_frame(&mut self, bytes: u64, align: u64) -> u32 {
        let offset = u64::from(self.frame_bytes).next_multiple_of(align.max(4));
        self.frame_align = self.frame_align.max(u32::try_from(align).unwrap_or(u32::MAX));
        // The checker keeps frames far below 4 GiB, and the launch rejects frames larger than a thread's local
        // memory.
        self.frame_bytes = u32::try_from(offset.saturating_add(bytes)).unwrap_or(u32::MAX);
        offset as u32
    }

    fn new_block(&mut self) -> BlockId {
        let span = self.span;
        self.blocks.push(RawBlock {
            ops: Vec::new(),
            terminator: None,
            span,
            falls_through: false,
            may_spin: false,
            reduces: false,
        });
        BlockId(self.blocks.len() as u32 - 1)
    }

    pub(crate) fn block(&mut self) -> &mut RawBlock {
        &mut self.blocks[self.current.index()]
    }

    /// Ends the current basic block and continues in `next`.
    fn end_block(&mut self, terminator: Terminator, next: BlockId) {
        let span = self.span;
        let block = self.block();
        if block.terminator.is_none() {
            block.terminator = Some(terminator);
            block.span = span;
        }
        self.current = next;
    }

    /// Ends the current basic block, if it has not ended, without a source instruction; continues in `next`.
    fn fall_into(&mut self, next: BlockId) {
        let block = self.block();
        block.falls_through |= block.terminator.is_none();
        self.end_block(Terminator::Jump(next), next);
    }

    /// Starts a new basic block that the current one falls into, unless the current one is still empty.
    fn start_block(&mut self) {
        if !self.block().ops.is_empty() || self.block().terminator.is_some() {
            let next = self.new_block();
            self.fall_into(next);
        }
    }

    fn place_label(&mut self, label: LabelId) {
        let block = self.label_block(label);
        self.fall_into(block);
    }

    /// The basic block of a label, which may not be placed yet.
    fn label_block(&mut self, label: LabelId) -> BlockId {
        match self.labels[label.index()] {
            Some(block) => block,
            None => {
                let block = self.new_block();
                self.labels[label.index()] = Some(block);
                block
            }
        }
    }

    pub(crate) fn push(&mut self, guard: Option<Guard>, kind: impl Into<OpKind>) {
        let (span, kind) = (self.span, kind.into());
        self.block().ops.push(Op { guard, span, kind });
    }

    // Values.

    fn value(&mut self, width: Width, kind: SlotKind) -> Slot {
        self.values.push(SlotInfo { width, kind });
        Slot(self.values.len() as u32 - 1)
    }

    pub(crate) fn temporary(&mut self, width: Width) -> Slot {
        self.value(width, SlotKind::Temporary)
    }

    pub(crate) fn register_type(&self, register: RegId) -> Type {
        self.body.registers[register.index()].ty
    }

    /// The slot of a register, or of the low half of a 128-bit register.
    pub(crate) fn register(&mut self, register: RegId) -> Slot {
        self.register_half(register, 0)
    }

    pub(crate) fn register_half(&mut self, register: RegId, half: u8) -> Slot {
        if let Some(slot) = self.registers.get(&(register, half)) {
            return *slot;
        }
        let ty = self.register_type(register);
        let kind = if ty.bits() > 64 { SlotKind::Half(register, half) } else { SlotKind::Register(register) };
        let slot = self.value(Width::of(ty), kind);
        self.registers.insert((register, half), slot);
        slot
    }

    pub(crate) fn constant(&mut self, width: Width, value: u64) -> Slot {
        let value = width.truncate(value);
        if let Some(slot) = self.constants.get(&(width, value)) {
            return *slot;
        }
        let slot = self.value(width, SlotKind::Constant(value));
        self.constants.insert((width, value), slot);
        slot
    }

    pub(crate) fn width(&self, slot: Slot) -> Width {
        self.values[slot.index()].width
    }

    fn address_width(&self) -> Width {
        if self.module.address_size == 32 { Width::W32 } else { Width::W64 }
    }

    pub(crate) fn guard(&mut self, instruction: &Instruction) -> Option<Guard> {
        instruction.guard.map(|(register, negated)| Guard { slot: self.register(register), negated })
    }

    // Addresses.

    /// The state space and base of a symbol.
    fn symbol_base(&self, symbol: Symbol) -> (Space, Base) {
        match symbol {
            Symbol::Variable(id) => match self.frame.get(&id) {
                // `.param` variables are in the frame, too: arguments are passed in the caller's local memory.
                Some(&offset) => (Space::Local, Base::Frame(offset)),
                None => (self.module.variables[id.index()].space, Base::Variable(id)),
            },
            Symbol::Function(id) => (Space::Generic, Base::Function(id)),
            Symbol::Param(index) if self.function.is_entry => (Space::Param, Base::KernelParam(index)),
            Symbol::Param(index) => (Space::Local, Base::FrameParam(index)),
            Symbol::Return(index) => (Space::Local, Base::FrameReturn(index)),
        }
    }

    /// The address that an operand denotes in an access to `space`.
    pub(crate) fn address(&mut self, operand: &Operand, space: Space) -> Address {
        match operand {
            Operand::Address(AddressBase::Symbol(symbol), offset) => {
                let (space, base) = self.symbol_base(*symbol);
                Address { space, base, offset: *offset }
            }
            Operand::Address(base, offset) => {
                // In a function, `.param` is the caller's local memory.
                let local = space == Space::Param && !self.function.is_entry;
                let space = if local { Space::Local } else { space };
                let (base, offset) = match base {
                    AddressBase::Reg(register) => (Base::Slot(self.register(*register)), *offset),
                    AddressBase::Absolute(address) => (Base::Zero, (*address as i64).wrapping_add(*offset)),
                    AddressBase::Symbol(_) => (Base::Zero, *offset), // handled above
                };
                Address { space, base, offset }
            }
            // `AddressValue` operands have no brackets.
            Operand::Symbol(symbol, offset) => {
                let (space, base) = self.symbol_base(*symbol);
                Address { space, base, offset: *offset }
            }
            Operand::Reg(register) => {
                Address { space, base: Base::Slot(self.register(*register)), offset: 0 }
            }
            Operand::RegPlus(register, offset) => {
                Address { space, base: Base::Slot(self.register(*register)), offset: *offset }
            }
            Operand::Imm(address) => Address { space, base: Base::Zero, offset: *address as i64 },
            _ => Address { space, base: Base::Zero, offset: 0 },
        }
    }

    // Finishing.

    fn finish(mut self, options: &Options) -> Function {
        // Control that falls off the end of the function returns.
        let end = self.span;
        self.block().span = end;
        for block in self.blocks.iter_mut().filter(|block| block.terminator.is_none()) {
            block.terminator = Some(Terminator::Return);
            block.falls_through = true;
        }
        if let Some(entry) = self.stack_entry {
            let returning = self.blocks.iter_mut().filter(|b| b.terminator == Some(Terminator::Return));
            for block in returning {
                let kind = SimpleOp::Stack { op: StackOp::Restore, dst: None, value: Some(entry) }.into();
                block.ops.push(Op { guard: None, span: block.span, kind });
            }
        }
        // A return register that is never written still needs a slot: it returns zero, like every unwritten register.
        for register in self.function.returns.iter().filter_map(|param| param.register) {
            self.register(register);
            if self.register_type(register).bits() > 64 {
                self.register_half(register, 1);
            }
        }
        let params = self.register_params(&self.function.params);
        let returns = self.register_params(&self.function.returns);
        let successors: Vec<Vec<u32>> = self
            .blocks
            .iter()
            .map(|b| b.terminator.iter().flat_map(Terminator::successors).map(|b| b.0).collect())
            .collect();
        let order = weak_topological_order(&successors);
        let mut place = vec![BlockId(0); self.blocks.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old as usize] = BlockId(new as u32);
        }
        let mut raw: Vec<Option<RawBlock>> = self.blocks.into_iter().map(Some).collect();
        let mut ops = Vec::new();
        let mut blocks = Vec::with_capacity(order.len());
        let mut counted = HashSet::new();
        for &old in &order {
            let Some(block) = raw[old as usize].take() else { continue };
            let RawBlock { ops: block_ops, terminator, span, falls_through, may_spin, reduces } = block;
            let mut terminator = terminator.unwrap_or(Terminator::Return);
            terminator.rename(|b| place[b.index()]);
            // One instruction may become several operations, and several basic blocks if it is guarded; count it
            // once.
            let ends = (!falls_through).then_some(span);
            let mut instructions: Vec<Span> = block_ops.iter().map(|op| op.span).chain(ends).collect();
            instructions.retain(|&span| counted.insert(span));
            let start = ops.len() as u32;
            ops.extend(block_ops);
            let ops = start..ops.len() as u32;
            blocks.push(Block {
                ops,
                terminator,
                span,
                instructions,
                live_in: Vec::new(),
                may_spin,
                reduces,
            });
        }
        let (slots, frame_bytes, frame_align) = (self.values, self.frame_bytes, self.frame_align);
        let places = self.registers.iter().map(|(&(register, half), &slot)| RegisterPlace {
            register,
            half,
            slot,
            block: None,
        });
        let mut function = Function {
            slots,
            blocks,
            ops,
            prologue: Vec::new(),
            frame_bytes,
            frame_align,
            params,
            returns,
            registers: places.collect(),
        };
        passes::run(&mut function, self.function, options);
        liveness::assign_slots(&mut function, options.shared_slots);
        function
    }

    fn register_params(&self, params: &[Param]) -> Vec<Option<Slot>> {
        let half = |param: &Param, half| param.register.and_then(|r| self.registers.get(&(r, half)).copied());
        let lower = params.iter().map(|param| half(param, 0));
        let upper = params.iter().filter(|param| call::is_wide(param)).map(|param| half(param, 1));
        lower.chain(upper).collect()
    }
}
