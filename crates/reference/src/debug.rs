//! A launch that is debugged: a [`Debugger`] is asked before every turn, sees all that the threads have, and may go
//! back in time.
//!
//! The lanes of a warp run together ([`lockstep`](crate::lockstep)). The order of turns is the same every time: going
//! back puts memory back to a checkpoint and executes the turns from there again ([`journal`](crate::journal)).

use check::module::{Body, Function, Instruction, RegId, Symbol};
use isa::{Space, SpecialRegister};
use machine::{Fault, Launch, LaunchError, LaunchReport, Place};

use crate::WARP_LANES;
use crate::block::{Block, Progress};
use crate::grid::{Grid, Stepper, codes, observed, run_blocks};
use crate::journal::{Checkpoint, Journal};
use crate::lockstep::{self, Divergence, Gate, Turn};
use crate::memory::Address;
use crate::thread::{Frame, Wait};

/// What a launch does after its debugger was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It goes on: it takes the turn, or ends.
    Go,
    /// It goes back to the last checkpoint at or before this time, and takes its turns from there again.
    Back(u64),
    /// It ends as if it were cancelled.
    Quit,
}

/// Is asked how a launch goes on.
pub trait Debugger {
    /// Lanes of a warp are about to execute an instruction ([`Stop::turn`]).
    fn turn(&mut self, stop: &mut Stop<'_, '_>) -> Next;

    /// A thread has faulted, or none can run any more. The instruction at fault may have had part of its effect. `Go`
    /// ends the launch with the fault.
    fn fault(&mut self, stop: &mut Stop<'_, '_>, fault: &Fault) -> Next;

    /// All threads have ended.
    fn end(&mut self, stop: &mut Stop<'_, '_>) -> Next;
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It can take a turn.
    Ready,
    /// It waits at a barrier of its block.
    Barrier(usize),
    /// It waits at the barrier of its cluster.
    Cluster,
    /// It waits at the barrier of the grid.
    Grid,
    /// It waits for other lanes of its warp at a warp-level instruction.
    Warp,
    /// It has tested an mbarrier object without success.
    Mbarrier,
    /// It has ended.
    Ended,
}

/// A launch between two turns.
pub struct Stop<'a, 'l> {
    launch: &'l Launch,
    grid: &'a Grid,
    flight: &'a mut [Block<'l>],
    /// Index of the block in `flight` whose turn it is, and who takes the turn.
    next: Option<(usize, Turn)>,
}

impl std::fmt::Debug for Stop<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stop").field("time", &self.time()).field("next", &self.next).finish_non_exhaustive()
    }
}

/// One of the active calls of a thread.
#[derive(Clone, Copy)]
pub struct Call<'s, 'l> {
    frame: &'s Frame,
    function: &'l Function,
    body: &'l Body,
}

impl std::fmt::Debug for Call<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("function", &self.function.name).finish_non_exhaustive()
    }
}

impl<'l> Call<'_, 'l> {
    /// The function.
    pub fn function(&self) -> &'l Function {
        self.function
    }

    /// Its code.
    pub fn body(&self) -> &'l Body {
        self.body
    }

    /// The instruction that the thread is at: in the topmost call the next one, in others the call. `None` behind the
    /// last one.
    pub fn instruction(&self) -> Option<&'l Instruction> {
        self.body.instructions_from(self.frame.pc).next()
    }

    /// The bits of a register.
    pub fn register(&self, register: RegId) -> u128 {
        self.frame.registers[register.index()]
    }
}

impl<'l> Stop<'_, 'l> {
    /// Turns that have been taken.
    pub fn time(&self) -> u64 {
        self.grid.journal.as_ref().map_or(0, |journal| journal.time.get())
    }

    /// The launch.
    pub fn launch(&self) -> &'l Launch {
        self.launch
    }

    /// Who takes the next turn, and the linear index of the block in the grid. `None` if the launch has ended or
    /// cannot go on.
    pub fn turn(&self) -> Option<(u64, Turn)> {
        self.next.map(|(index, turn)| (self.flight[index].cta.index, turn))
    }

    /// The blocks that have started and not ended, by their linear index in the grid.
    pub fn blocks(&self) -> impl Iterator<Item = u64> {
        self.flight.iter().map(|block| block.cta.index)
    }

    fn position(&self, block: u64) -> Option<usize> {
        self.flight.iter().position(|other| other.cta.index == block)
    }

    /// What a thread is doing, by its linear index in a block. `None` if there is no such thread, or its block has not
    /// started or has ended.
    pub fn status(&self, block: u64, thread: usize) -> Option<Status> {
        let thread = self.flight[self.position(block)?].threads.get(thread)?;
        Some(match thread.wait {
            Wait::Nothing => Status::Ready,
            Wait::Barrier { index, .. } => Status::Barrier(index),
            Wait::Cluster { .. } => Status::Cluster,
            Wait::Slice => Status::Mbarrier,
            Wait::Warp => Status::Warp,
            Wait::Grid { .. } => Status::Grid,
            Wait::Ended => Status::Ended,
        })
    }

    /// An active call of a thread, counted outwards from the innermost. A thread that has ended has none.
    pub fn call(&self, block: u64, thread: usize, depth: usize) -> Option<Call<'_, 'l>> {
        let block = &self.flight[self.position(block)?];
        let thread = block.threads.get(thread).filter(|thread| thread.wait != Wait::Ended)?;
        let frame = thread.frames.iter().nth_back(depth)?;
        let code = block.cta.code(frame.function);
        Some(Call { frame, function: code.function, body: code.body })
    }

    /// How many calls of a thread are active.
    pub fn depth(&self, block: u64, thread: usize) -> usize {
        let thread = self.position(block).and_then(|block| self.flight[block].threads.get(thread));
        thread.filter(|thread| thread.wait != Wait::Ended).map_or(0, |thread| thread.frames.len())
    }

    /// The threads of each block.
    pub fn threads(&self) -> usize {
        self.launch.config().block_threads() as usize
    }

    /// The instruction of the next turn.
    pub fn instruction(&self) -> Option<&'l Instruction> {
        let (block, turn) = self.turn()?;
        self.call(block, turn.warp * WARP_LANES + turn.lanes.trailing_zeros() as usize, 0)?.instruction()
    }

    /// Where the lanes of a warp went different ways and have not met again, the first first.
    pub fn divergences(&self, block: u64, warp: usize) -> &[Divergence] {
        let turns = self.position(block).and_then(|index| self.flight[index].turns.get(warp));
        turns.map_or(&[], |turns| &turns.divergences)
    }

    /// The value of a special register in a thread.
    pub fn special(&mut self, block: u64, thread: usize, register: SpecialRegister) -> Option<u64> {
        self.status(block, thread).filter(|&status| status != Status::Ended)?;
        let index = self.position(block)?;
        Some(self.flight[index].cpu(thread).special(register))
    }

    /// The state space and address of a variable, parameter or function, as a call of a thread sees it.
    pub fn address(
        &mut self,
        block: u64,
        thread: usize,
        depth: usize,
        symbol: Symbol,
    ) -> Option<(Space, u64)> {
        self.call(block, thread, depth)?;
        let index = self.position(block)?;
        let cpu = self.flight[index].cpu(thread);
        let inner = cpu.thread.frames.split_off(cpu.thread.frames.len() - depth);
        let Address { space, at } = cpu.symbol(symbol);
        cpu.thread.frames.extend(inner);
        Some((space, at))
    }

    /// Bytes of memory as a thread sees them. Global memory needs no thread.
    ///
    /// # Errors
    /// What a load of the thread would say: the kind of its fault, and the nearest allocation.
    pub fn read(
        &mut self,
        block: u64,
        thread: usize,
        space: Space,
        address: u64,
        bytes: usize,
    ) -> Result<Vec<u8>, String> {
        let mut data = vec![0; bytes];
        let lives = self.status(block, thread).is_some_and(|status| status != Status::Ended);
        if let Some(index) = self.position(block).filter(|_| lives) {
            let read =
                self.flight[index].cpu(thread).read_bytes(Address { space, at: address }, bytes as u64);
            return read.map_err(|fault| message(&fault));
        }
        let (space, at) = machine::resolve(space, address);
        match space {
            Space::Global => self.launch.read_global(at, &mut data).map(|()| data).map_err(|kind| {
                let nearest = self.launch.describe(space, at, bytes as u64).unwrap_or_default();
                format!("{kind}: {nearest}")
            }),
            _ => Err("that memory is a block's or a thread's, and the thread is not running".to_owned()),
        }
    }
}

/// What a fault says, without its place.
fn message(fault: &Fault) -> String {
    let nearest = fault.access.as_ref().and_then(|access| access.nearest.clone());
    nearest.map_or(fault.kind.to_string(), |nearest| format!("{}: {nearest}", fault.kind))
}

/// Why a debugged launch ends or begins again.
enum Halt {
    Error(LaunchError),
    Back(u64),
}

impl From<LaunchError> for Halt {
    fn from(error: LaunchError) -> Halt {
        Halt::Error(error)
    }
}

/// Steps in which a debugger is asked before each turn.
struct Lockstep<'a> {
    launch: &'a Launch,
    grid: &'a Grid,
    debugger: &'a mut dyn Debugger,
}

impl<'a> Lockstep<'a> {
    /// What the debugger wants; the launch cannot go on without a turn.
    fn halt(&self, next: Next, flight: &mut [Block<'a>], error: Option<LaunchError>) -> Result<(), Halt> {
        match (next, error) {
            (Next::Go, None) => Ok(()),
            (Next::Go, Some(error)) => Err(Halt::Error(error)),
            (Next::Back(time), _) => Err(Halt::Back(time)),
            (Next::Quit, _) => {
                let place: Option<Place> = flight.iter_mut().find_map(Block::place);
                Err(Halt::Error(LaunchError::Cancelled { place }))
            }
        }
    }
}

impl<'l> Gate<'l> for Lockstep<'l> {
    fn turn(&mut self, flight: &mut [Block<'l>], index: usize, turn: Turn) -> Result<(), Halt> {
        let (launch, grid) = (self.launch, self.grid);
        let next = self.debugger.turn(&mut Stop { launch, grid, flight, next: Some((index, turn)) });
        self.halt(next, flight, None)
    }
}

impl<'l> Stepper<'l> for Lockstep<'l> {
    type Halt = Halt;

    fn step(&mut self, flight: &mut [Block<'l>], index: usize) -> Result<Progress, Halt> {
        lockstep::step(flight, index, self)
    }

    fn fault(&mut self, flight: &mut [Block<'l>], _: usize, fault: Box<Fault>) -> Halt {
        let (launch, grid) = (self.launch, self.grid);
        let next = self.debugger.fault(&mut Stop { launch, grid, flight, next: None }, &fault);
        match self.halt(next, flight, Some(LaunchError::Fault(fault))) {
            Err(halt) => halt,
            Ok(()) => unreachable!("an error is given"),
        }
    }
}

/// Runs a launch under a debugger.
///
/// # Errors
/// As [`run`](crate::run). [`LaunchError::Cancelled`] if the debugger quits.
pub fn debug(launch: &Launch, debugger: &mut dyn Debugger) -> Result<LaunchReport, LaunchError> {
    let grid = Grid::new(launch, Some(Journal::default()));
    let journal = grid.journal.as_ref().expect("it was given one");
    let codes = codes(launch);
    let result = observed(launch, || {
        let mut from = Checkpoint::default();
        loop {
            let mut steps = Lockstep { launch, grid: &grid, debugger };
            let time = match run_blocks(launch, &codes, &grid, from, &mut steps) {
                Err(Halt::Error(error)) => return Err(error),
                Err(Halt::Back(time)) => time,
                Ok(report) => {
                    let stop = &mut Stop { launch, grid: &grid, flight: &mut [], next: None };
                    match debugger.end(stop) {
                        Next::Back(time) => time,
                        Next::Go => return Ok(report),
                        Next::Quit => return Err(LaunchError::Cancelled { place: None }),
                    }
                }
            };
            from = journal.rewind(launch, time).unwrap_or_default();
        }
    });
    journal.end(launch);
    result
}
