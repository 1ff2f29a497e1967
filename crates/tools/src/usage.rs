//! racecheck: whether what a thread has read can matter to anybody.
//!
//! A value matters if it may reach a store, an address, a branch, a guard, another lane, or whatever else is more than computing it. Where
//! it can go is read off the code of the kernel: from register to register, whatever the order of instructions. If it ends in nothing but
//! the operands of stores and atomic operations, it matters to those threads that execute one of these, whenever that is.
//!
//! Who executes which stores is kept by block, and looked up when a read has raced. A race whose thread may still store the value waits
//! until its block has ended.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use check::Module;
use check::module::{AddressBase, Instruction, Node, Operand};
use isa::{Access, Action, Effect};

use crate::block::{Threads, contains, join, range};
use crate::meeting::Race;

/// Stores and atomic operations of more blocks that have ended than have room here count as executed by all threads.
const MOST_ENDED: usize = 1 << 18;
/// More races are not kept until it is known whether they matter.
const MOST_OPEN: usize = 1 << 16;

/// What an instruction does with the registers that it reads.
enum Step {
    /// It computes others of them.
    Computes(Vec<u32>),
    /// It stores them, or accesses memory there: which of the stores it is.
    Stores(usize),
    /// Anything else.
    Uses,
}

/// Where values can go in a kernel.
#[derive(Default)]
struct Flow {
    kernel: String,
    steps: Vec<Step>,
    /// By register: the instructions that read it.
    readers: HashMap<u32, Vec<usize>>,
    /// By where loads begin: the registers that they write.
    loads: HashMap<u32, Vec<u32>>,
    /// By where stores begin: their numbers.
    stores: HashMap<u32, usize>,
}

/// What registers an operand reads and writes.
fn registers(operand: &Operand, access: Access, reads: &mut Vec<u32>, writes: &mut Vec<u32>) {
    let mut value = |register: u32| {
        if access != Access::Write {
            reads.push(register);
        }
        if access != Access::Read {
            writes.push(register);
        }
    };
    match operand {
        Operand::Reg(register) | Operand::NotReg(register) | Operand::RegPlus(register, _) => {
            value(register.0);
        }
        Operand::Pair(one, other) => {
            [one, other].into_iter().flatten().for_each(|register| value(register.0))
        }
        Operand::Address(AddressBase::Reg(register), _) => reads.push(register.0),
        Operand::Vector(all) | Operand::List(all) => {
            all.iter().for_each(|operand| registers(operand, access, reads, writes));
        }
        Operand::Resident(all, register) => {
            all.iter().for_each(|operand| registers(operand, access, reads, writes));
            writes.push(register.0);
        }
        Operand::Texels(texels) => {
            for base in [Some(texels.handle), texels.sampler].into_iter().flatten() {
                registers(&Operand::Address(base, 0), Access::Read, reads, writes);
            }
            texels.coordinates.iter().for_each(|operand| registers(operand, Access::Read, reads, writes));
        }
        Operand::Tensor(tensor) => {
            registers(&tensor.map, Access::Read, reads, writes);
            tensor.coordinates.iter().for_each(|operand| registers(operand, Access::Read, reads, writes));
        }
        Operand::Address(..)
        | Operand::Imm(_)
        | Operand::Special(_)
        | Operand::Symbol(..)
        | Operand::Sink
        | Operand::Label(_)
        | Operand::BranchTargets(_)
        | Operand::Function(_)
        | Operand::Prototype(_) => {}
    }
}

impl Flow {
    fn of(module: &Module, kernel: &str) -> Flow {
        let mut flow = Flow { kernel: kernel.to_owned(), ..Flow::default() };
        let function = module.functions.iter().find(|function| function.is_entry && function.name == kernel);
        let body = function.and_then(|function| function.body.as_ref());
        for node in body.iter().flat_map(|body| &body.code) {
            if let Node::Instruction(instruction) = node {
                flow.add(instruction);
            }
        }
        flow
    }

    fn add(&mut self, instruction: &Instruction) {
        let (form, start) = (instruction.form, instruction.span.start);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (operand, spec) in instruction.operands.iter().zip(form.operands_with(&instruction.picks)) {
            registers(operand, spec.access, &mut reads, &mut writes);
        }
        // What goes to parameters and local memory is found there again, by whoever that is.
        let is_own = ["param", "local"]
            .into_iter()
            .any(|space| instruction.picks.mods().iter().any(|modifier| modifier.name().starts_with(space)));
        let number = self.steps.len();
        let step = match form.action {
            Action::Effect(Effect::St | Effect::Atom | Effect::Red) if !is_own => {
                let next = self.stores.len();
                Step::Stores(*self.stores.entry(start).or_insert(next))
            }
            Action::Pure(_) if !form.carry.writes => Step::Computes(writes),
            Action::Effect(Effect::Mov | Effect::Cvta) => Step::Computes(writes),
            Action::Effect(Effect::Ld) => {
                self.loads.insert(start, writes);
                Step::Uses
            }
            _ => Step::Uses,
        };
        self.steps.push(step);
        reads.into_iter().for_each(|register| self.readers.entry(register).or_default().push(number));
        if let Some((guard, _)) = instruction.guard {
            // Who executes it depends on that.
            self.readers.entry(guard.0).or_default().push(self.steps.len());
            self.steps.push(Step::Uses);
        }
    }

    /// The stores that get what a load reads; `None` if it can go elsewhere.
    fn stores_of(&self, load: u32) -> Option<Vec<usize>> {
        let mut waiting = self.loads.get(&load)?.clone();
        let mut seen: HashSet<u32> = waiting.iter().copied().collect();
        let mut stores = Vec::new();
        while let Some(register) = waiting.pop() {
            for &reader in self.readers.get(&register).into_iter().flatten() {
                match &self.steps[reader] {
                    Step::Uses => return None,
                    Step::Stores(number) => stores.push(*number),
                    Step::Computes(writes) => {
                        waiting.extend(writes.iter().copied().filter(|&register| seen.insert(register)));
                    }
                }
            }
        }
        Some(stores)
    }
}

/// Who has executed which stores of a kernel, and the races whose reads may matter yet.
#[derive(Default)]
pub(crate) struct Usage {
    flow: Arc<Flow>,
    /// By load: as [`Flow::stores_of`].
    known: HashMap<u32, Option<Vec<usize>>>,
    /// By block that runs, and store.
    running: HashMap<u32, Vec<Threads>>,
    /// The same of blocks that have ended, unless all their threads have executed all stores.
    ended: HashMap<u32, Vec<Threads>>,
    /// Races of which that is not known yet, by the block that reads.
    open: Vec<(u32, Race)>,
    is_over: bool,
}

/// Whether what a thread has read matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matters {
    Yes,
    No,
    /// The thread may still come to a store that it does matter to.
    NotYet,
}

impl Usage {
    /// A launch begins; `before` is that of the launch before, or of the one that this is a part of.
    pub fn begin(before: &Usage, module: &Module, kernel: &str) -> Usage {
        let flow = match before.flow.kernel == kernel {
            true => Arc::clone(&before.flow),
            false => Arc::new(Flow::of(module, kernel)),
        };
        Usage { flow, ..Usage::default() }
    }

    /// The same code, and nothing of what has been done.
    pub fn of_same_code(&self) -> Usage {
        Usage { flow: Arc::clone(&self.flow), ..Usage::default() }
    }

    /// Threads of a block execute an instruction.
    pub fn execute(&mut self, block: u32, start: u32, threads: &Threads) {
        let Some(&number) = self.flow.stores.get(&start) else { return };
        let stores = self.flow.stores.len();
        let of_block = self.running.entry(block).or_insert_with(|| vec![[0; 16]; stores]);
        join(&mut of_block[number], threads);
    }

    /// Whether it matters what a thread of a block has read by an instruction.
    pub fn matters(&mut self, (block, is_running): (u32, bool), start: u32, thread: u32) -> Matters {
        let flow = &self.flow;
        let stores = self.known.entry(start).or_insert_with(|| flow.stores_of(start));
        // What code does nothing with was written for something: no compiler leaves it.
        let Some(stores) = stores.as_ref().filter(|stores| !stores.is_empty()) else { return Matters::Yes };
        let executes = |all: &Vec<Threads>| stores.iter().any(|&store| contains(&all[store], thread));
        let of_block = if is_running { self.running.get(&block) } else { self.ended.get(&block) };
        match of_block.map(executes) {
            Some(true) => Matters::Yes,
            _ if is_running && !self.is_over => Matters::NotYet,
            // It would have gone on.
            _ if is_running => Matters::Yes,
            Some(false) => Matters::No,
            None => Matters::Yes,
        }
    }

    /// A block of so many threads has ended. Returns the races of which it is known now.
    pub fn end_block(&mut self, block: u32, threads: u32) -> Vec<Race> {
        let stores = self.flow.stores.len();
        let executed = self.running.remove(&block).unwrap_or_else(|| vec![[0; 16]; stores]);
        let all = range(0, threads);
        if executed.iter().any(|threads| *threads != all) && self.ended.len() * stores < MOST_ENDED {
            self.ended.insert(block, executed);
        }
        let (known, open) = std::mem::take(&mut self.open).into_iter().partition(|(of, _)| *of == block);
        self.open = open;
        let known: Vec<(u32, Race)> = known;
        known.into_iter().map(|(_, race)| race).collect()
    }

    /// The launch has ended, with a fault if there are blocks that have not. Returns the races that are left.
    pub fn end(&mut self) -> Vec<Race> {
        self.is_over = true;
        std::mem::take(&mut self.open).into_iter().map(|(_, race)| race).collect()
    }

    /// Keeps a race until the block has ended that reads; gives it back if there is no room.
    pub fn keep(&mut self, block: u32, race: Race) -> Option<Race> {
        if self.open.len() >= MOST_OPEN {
            return Some(race);
        }
        self.open.push((block, race));
        None
    }

    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }
}
