//! A thread: its frames, its private memory, and the execution of its instructions.

use check::module::{Instruction, LabelId, Node};
use diag::Span;
use machine::{Fault, FaultKind};

use crate::Step;
use crate::block::Cta;
use crate::function::Code;
use crate::trace::Begun;

/// The most bytes of local memory of a thread, and the most that `alloca` may take.
pub(crate) const LOCAL_LIMIT: u64 = 512 * 1024;
/// The least bytes that a call takes.
const LEAST_FRAME: u64 = 16;

/// An active call of a function.
pub(crate) struct Frame {
    /// Index of the function.
    pub function: usize,
    /// Index in the body's code of the next instruction, or of a call that has not returned.
    pub pc: usize,
    /// By `RegId`.
    pub registers: Vec<u128>,
    /// The condition code `CC.CF`.
    pub carry: bool,
    /// Address of its variables in local memory.
    pub base: u64,
    /// Bytes taken by `alloca` before the call.
    pub stack_bytes: usize,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Nothing,
    /// The end of this generation of a barrier of its CTA.
    Barrier {
        index: usize,
        generation: u64,
    },
    /// The end of this generation of its cluster's barrier.
    Cluster {
        generation: u64,
    },
    /// The time slices of the other threads, after a test of an mbarrier object failed.
    Slice,
    /// The other threads of its warp, at its current instruction.
    Warp,
    /// The end of this generation of the grid's barrier.
    Grid {
        generation: u64,
    },
    /// It has ended.
    Ended,
}

/// A `cp.async` that was issued and that its thread has not waited for yet.
pub(crate) struct PendingCopy {
    /// The thread's commits before the copy.
    pub group: u32,
    pub address: u64,
    pub data: Vec<u8>,
}

pub(crate) struct Thread<'l> {
    /// Linear index in the CTA.
    pub index: usize,
    pub frames: Vec<Frame>,
    /// The frames' local memory.
    pub local: Vec<u8>,
    /// The memory taken by `alloca`.
    pub stack: Vec<u8>,
    pub wait: Wait,
    pub copies: Vec<PendingCopy>,
    pub commits: u32,
    /// Instructions executed.
    pub steps: u64,
    /// Nanoseconds that it slept.
    pub slept: u64,
    /// Whether an observer wants to hear of its instructions.
    pub is_traced: bool,
    /// The instruction that it is at, if it is traced.
    pub begun: Option<Box<Begun<'l>>>,
}

/// Where a thread continues after an instruction.
pub(crate) enum Flow {
    /// At the next instruction.
    Next,
    /// At the next instruction, after the time slices of the other threads.
    Yield,
    /// The thread waits at this instruction. Waking it moves it past the instruction.
    Wait(Wait),
    Jump(LabelId),
    Return,
    Exit,
    /// In the frame of the called function.
    Called,
}

impl Thread<'_> {
    /// A thread at the start of a kernel.
    pub fn new(index: usize, function: usize, code: &Code, is_traced: bool) -> Self {
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
            is_traced,
            begun: None,
        }
    }

    /// Ends the thread's wait: it continues after the instruction.
    pub fn wake(&mut self) {
        self.wait = Wait::Nothing;
        if let Some(frame) = self.frames.last_mut() {
            frame.pc += 1;
        }
    }
}

/// A thread together with its CTA, executing an instruction.
pub(crate) struct Cpu<'a, 'l> {
    pub thread: &'a mut Thread<'l>,
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

    /// The thread's current instruction; `None` after the last one.
    pub fn instruction(&self) -> Option<&'l Instruction> {
        match self.code().body.code.get(self.frame().pc)? {
            Node::Instruction(instruction) => Some(instruction),
            Node::Label(_) => None,
        }
    }

    /// The instruction that the thread executes next: the current one, or the first one after the labels here.
    pub fn next_instruction(&self) -> Option<&'l Instruction> {
        self.code().body.instructions_from(self.frame().pc).next()
    }

    /// Runs until the thread waits, ends or yields, or has executed `budget` instructions. Returns whether it yielded.
    pub fn run_slice(&mut self, budget: u64) -> Step<bool> {
        let end = self.thread.steps + budget;
        // It may have waited at this instruction.
        self.end_instruction()?;
        while self.thread.wait == Wait::Nothing && self.thread.steps < end {
            let code = &self.code().body.code;
            let flow = match code.get(self.frame().pc) {
                Some(Node::Label(_)) => {
                    self.frame_mut().pc += 1;
                    continue;
                }
                Some(Node::Instruction(instruction)) => {
                    self.thread.steps += 1;
                    let executes = self.guard(instruction);
                    if self.thread.is_traced {
                        self.begin_instruction(instruction, executes);
                    }
                    match executes {
                        true => self.execute(instruction)?,
                        false => Flow::Next,
                    }
                }
                // Control that falls off the end of the body returns.
                None => Flow::Return,
            };
            match flow {
                Flow::Next => self.frame_mut().pc += 1,
                Flow::Yield => {
                    self.frame_mut().pc += 1;
                    self.end_instruction()?;
                    return Ok(true);
                }
                Flow::Wait(wait) => {
                    self.thread.wait = wait;
                    return Ok(false);
                }
                Flow::Jump(label) => self.frame_mut().pc = self.code().labels[label.index()],
                Flow::Return => self.return_from_call()?,
                Flow::Exit => self.end(),
                Flow::Called => {}
            }
            self.end_instruction()?;
        }
        Ok(false)
    }

    /// `@p`, `@!p`
    pub fn guard(&self, instruction: &Instruction) -> bool {
        instruction
            .guard
            .is_none_or(|(register, negated)| (self.frame().registers[register.index()] & 1 != 0) != negated)
    }

    /// Opens a frame at the function's first instruction. Its variables are zero.
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

    /// Ends the thread.
    pub fn end(&mut self) {
        self.finish_copies(0, true);
        self.thread.wait = Wait::Ended;
        self.cta.end(self.thread.index);
    }

    /// A fault of this thread at its current instruction.
    pub fn fault(&self, kind: FaultKind, note: &str) -> Box<Fault> {
        let span = self.instruction().map_or(Span::default(), |instruction| instruction.span);
        self.cta.fault(kind, self.thread.index, span, note)
    }
}
