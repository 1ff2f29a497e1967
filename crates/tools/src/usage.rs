//! racecheck: whether a value that a thread has read can matter.
//!
//! A value matters if it may reach a store, an address, a branch, a guard, another lane, or anything but further computation. The
//! kernel's code decides where it can go: from register to register, ignoring the order of instructions. If it reaches only operands
//! of stores and atomic operations, it matters for those threads that ever execute one of them.
//!
//! Each block records which threads execute which stores, and a race looks that up. If the reading thread may still execute the
//! store, the race waits until its block has ended.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use check::Module;
use check::module::{AddressBase, Instruction, Node, Operand};
use isa::{Access, Action, Effect};

use crate::block::{Threads, contains, join, range};
use crate::meeting::Race;

/// Ended blocks are recorded up to this many store sets. Beyond that, all threads count as having executed all stores.
const MOST_ENDED: usize = 1 << 18;
/// At most this many races wait until it is known whether they matter.
const MOST_OPEN: usize = 1 << 16;

/// What an instruction does with the registers that it reads.
enum Step {
    /// It computes these registers.
    Computes(Vec<u32>),
    /// It stores them, or uses them as the address of an access: the index of the store.
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
    /// By start of a load's span: the registers that it writes.
    loads: HashMap<u32, Vec<u32>>,
    /// By start of a store's span: its index.
    stores: HashMap<u32, usize>,
}

/// Collects the registers that an operand reads and writes.
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
        // Values stored to parameters and local memory can be read again.
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
            // The guard decides whether the instruction runs.
            self.readers.entry(guard.0).or_default().push(self.steps.len());
            self.steps.push(Step::Uses);
        }
    }

    /// The stores that a load's value can reach; `None` if it can reach anything else.
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

/// Which threads have executed which stores of a kernel, and the races that wait for this.
#[derive(Default)]
pub(crate) struct Usage {
    flow: Arc<Flow>,
    /// By load: the result of [`Flow::stores_of`].
    known: HashMap<u32, Option<Vec<usize>>>,
    /// By running block, and by store.
    running: HashMap<u32, Vec<Threads>>,
    /// The same for ended blocks, except those whose threads have all executed all stores.
    ended: HashMap<u32, Vec<Threads>>,
    /// Races that may still matter, by the block that reads.
    open: Vec<(u32, Race)>,
    is_over: bool,
}

/// Whether what a thread has read matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matters {
    Yes,
    No,
    /// The thread may still execute a store of the value.
    NotYet,
}

impl Usage {
    /// Starts a launch. `before` is the usage of the previous launch, or of the launch that this is a part of.
    pub fn begin(before: &Usage, module: &Module, kernel: &str) -> Usage {
        let flow = match before.flow.kernel == kernel {
            true => Arc::clone(&before.flow),
            false => Arc::new(Flow::of(module, kernel)),
        };
        Usage { flow, ..Usage::default() }
    }

    /// A new usage for the same code.
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

    /// Whether the value matters that a thread of a block has read by the instruction at `start`.
    pub fn matters(&mut self, (block, is_running): (u32, bool), start: u32, thread: u32) -> Matters {
        let flow = &self.flow;
        let stores = self.known.entry(start).or_insert_with(|| flow.stores_of(start));
        // A compiler removes loads without any use, so this one is intended.
        let Some(stores) = stores.as_ref().filter(|stores| !stores.is_empty()) else { return Matters::Yes };
        let executes = |all: &Vec<Threads>| stores.iter().any(|&store| contains(&all[store], thread));
        let of_block = if is_running { self.running.get(&block) } else { self.ended.get(&block) };
        match of_block.map(executes) {
            Some(true) => Matters::Yes,
            _ if is_running && !self.is_over => Matters::NotYet,
            // The thread would have continued.
            _ if is_running => Matters::Yes,
            Some(false) => Matters::No,
            None => Matters::Yes,
        }
    }

    /// A block of `threads` threads has ended. Returns the races that were waiting for it.
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

    /// The launch has ended; if blocks are left, by a fault. Returns the races that are left.
    pub fn end(&mut self) -> Vec<Race> {
        self.is_over = true;
        std::mem::take(&mut self.open).into_iter().map(|(_, race)| race).collect()
    }

    /// Keeps a race until the reading block has ended. Returns it if there is no room.
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
