//! A thread: its frames, its private memory, and how it executes one instruction after the other.

use check::module::{Instruction, LabelId, Node};
use diag::Span;
use vm::{Fault, FaultKind};

use crate::block::Cta;
use crate::function::Code;
use crate::{Step, WARP_LANES};

/// Bytes of local memory that a thread may have, and that `alloca` may take.
pub(crate) const LOCAL_LIMIT: u64 = 512 * 1024;
/// What a call takes at least.
const LEAST_FRAME: u64 = 16;

/// A function in progress.
pub(crate) struct Frame {
    /// Index of the function.
    pub function: usize,
    /// Index in the body's code of the instruction that is executed next, or that a call has not returned to.
    pub pc: usize,
    /// By `RegId`.
    pub registers: Vec<u128>,
    /// The condition code `CC.CF`.
    pub carry: bool,
    /// Where its variables start in local memory.
    pub base: u64,
    /// Bytes that `alloca` had taken when it was called.
    pub stack_bytes: usize,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Nothing,
    /// The end of a generation of a barrier of its block.
    Barrier {
        index: usize,
        generation: u64,
    },
    /// The end of a generation of the barrier of its cluster.
    Cluster {
        generation: u64,
    },
    /// That others get their turns, after an mbarrier object was asked in vain.
    Turn,
    /// The other threads of its warp, at the instruction where it stands.
    Warp,
    /// The end of a generation of the grid's barrier.
    Grid {
        generation: u64,
    },
    /// It has ended.
    Ended,
}

/// A copy (`cp.async`) that was issued and that nobody has waited for.
pub(crate) struct PendingCopy {
    /// The thread's commits before it.
    pub group: u32,
    pub address: u64,
    pub data: Vec<u8>,
}

pub(crate) struct Thread {
    /// Linear index in the block.
    pub index: usize,
    pub frames: Vec<Frame>,
    /// The frames' local memory.
    pub local: Vec<u8>,
    /// What `alloca` has taken.
    pub stack: Vec<u8>,
    pub wait: Wait,
    pub copies: Vec<PendingCopy>,
    pub commits: u32,
    /// Instructions executed.
    pub steps: u64,
    /// Nanoseconds that it slept.
    pub slept: u64,
}

/// What an instruction does to the course of its thread.
pub(crate) enum Flow {
    /// The next instruction.
    Next,
    /// The next instruction, after the others have had their turns.
    Yield,
    /// The thread waits where it stands; whoever wakes it lets it go on behind the instruction.
    Wait(Wait),
    Jump(LabelId),
    Return,
    Exit,
    /// It went on in another frame.
    Called,
}

impl Thread {
    /// A thread at the start of a kernel.
    pub fn new(index: usize, function: usize, code: &Code) -> Thread {
        let registers = vec![0; code.body.registers.len()];
        Thread {
            index,
            frames: vec![Frame { function, pc: 0, registers, carry: false, base: 0, stack_bytes: 0 }],
            local: vec![0; code.bytes as usize],
            stack: Vec::new(),
            wait: Wait::Nothing,
            copies: Vec::new(),
            commits: 0,
            steps: 0,
            slept: 0,
        }
    }

    /// Lane in its warp.
    pub fn lane(&self) -> usize {
        self.index % WARP_LANES
    }

    /// What it waited for is there: it goes on behind the instruction.
    pub fn wake(&mut self) {
        self.wait = Wait::Nothing;
        if let Some(frame) = self.frames.last_mut() {
            frame.pc += 1;
        }
    }
}

/// A thread that executes an instruction in its block.
pub(crate) struct Cpu<'a, 'l> {
    pub thread: &'a mut Thread,
    pub cta: &'a mut Cta<'l>,
}

impl<'l> Cpu<'_, 'l> {
    pub fn frame(&self) -> &Frame {
        self.thread.frames.last().expect("a thread that runs has a frame")
    }

    pub fn frame_mut(&mut self) -> &mut Frame {
        self.thread.frames.last_mut().expect("a thread that runs has a frame")
    }

    pub fn code(&self) -> &'l Code<'l> {
        self.cta.code(self.frame().function)
    }

    /// The instruction where the thread stands; `None` behind the last one.
    pub fn instruction(&self) -> Option<&'l Instruction> {
        match self.code().body.code.get(self.frame().pc)? {
            Node::Instruction(instruction) => Some(instruction),
            Node::Label(_) => None,
        }
    }

    /// The instruction that it executes next: where it stands, or behind the labels there.
    pub fn next_instruction(&self) -> Option<&'l Instruction> {
        self.code().body.code.get(self.frame().pc..)?.iter().find_map(|node| match node {
            Node::Instruction(instruction) => Some(instruction),
            Node::Label(_) => None,
        })
    }

    /// Runs until the thread waits, has ended, has given its turn away or has executed so many instructions.
    pub fn turn(&mut self, budget: u64) -> Step {
        let end = self.thread.steps + budget;
        while self.thread.wait == Wait::Nothing && self.thread.steps < end {
            let code = &self.code().body.code;
            let flow = match code.get(self.frame().pc) {
                Some(Node::Label(_)) => {
                    self.frame_mut().pc += 1;
                    continue;
                }
                Some(Node::Instruction(instruction)) => {
                    self.thread.steps += 1;
                    match self.guard(instruction) {
                        true => self.execute(instruction)?,
                        false => Flow::Next,
                    }
                }
                // Whoever runs off the end returns.
                None => Flow::Return,
            };
            match flow {
                Flow::Next => self.frame_mut().pc += 1,
                Flow::Yield => {
                    self.frame_mut().pc += 1;
                    return Ok(());
                }
                Flow::Wait(wait) => self.thread.wait = wait,
                Flow::Jump(label) => self.frame_mut().pc = self.code().labels[label.index()],
                Flow::Return => self.return_from_call()?,
                Flow::Exit => self.end(),
                Flow::Called => {}
            }
        }
        Ok(())
    }

    /// `@p`, `@!p`
    pub fn guard(&self, instruction: &Instruction) -> bool {
        instruction
            .guard
            .is_none_or(|(register, negated)| (self.frame().registers[register.index()] & 1 != 0) != negated)
    }

    /// Opens a frame at its first instruction. Its variables are zero.
    pub fn enter(&mut self, function: usize) -> Step {
        let code = self.cta.code(function);
        let base = (self.thread.local.len() as u64).next_multiple_of(code.align);
        let end = base.saturating_add(code.bytes.max(LEAST_FRAME));
        if end > LOCAL_LIMIT {
            let note = format!("a thread's local memory is {LOCAL_LIMIT} bytes, {end} are needed");
            return Err(self.fault(FaultKind::StackOverflow, &note));
        }
        self.thread.local.resize(end as usize, 0);
        let registers = vec![0; code.body.registers.len()];
        let stack_bytes = self.thread.stack.len();
        self.thread.frames.push(Frame { function, pc: 0, registers, carry: false, base, stack_bytes });
        Ok(())
    }

    /// The thread ends.
    pub fn end(&mut self) {
        self.finish_copies(0, true);
        self.thread.wait = Wait::Ended;
        self.cta.end(self.thread.index);
    }

    /// A fault of this thread at the instruction where it stands.
    pub fn fault(&self, kind: FaultKind, note: &str) -> Box<Fault> {
        let span = self.instruction().map_or(Span::default(), |instruction| instruction.span);
        self.cta.fault(kind, self.thread.index, span, note)
    }
}
