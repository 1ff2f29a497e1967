//! Finds where the first NaN, or the first infinity, of a launch comes from, and which instructions pass it on.
//!
//! It follows values: a register is *tainted* from the instruction that makes or loads the number until the register is
//! overwritten, and bytes of memory are from the store of a tainted register to the next store. So instructions on
//! `.b32` pass a NaN on, and an integer whose bits look like a NaN is none.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use diag::Span;
use isa::{Space, Type};
use machine::{InstructionEvent, LaunchObserver, OperandValue};
use sem::format::{Format, Specials};

/// The numbers that are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonFinite {
    /// NaNs of all formats.
    Nan,
    /// Infinities of both signs.
    Infinity,
}

/// Where such a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The instruction computes it from other numbers.
    Computed,
    /// The instruction reads it from memory where no instruction of the launch stored it.
    Memory,
    /// The instruction takes values of other lanes of the warp, too.
    Lanes,
    /// The instruction writes it as a constant, or by an operation on bits.
    Bits,
}

/// A value with the name of its register; the name of a literal is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedValue {
    /// As written.
    pub name: String,
    /// The type by which the instruction uses it.
    pub ty: Type,
    /// Zero-extended.
    pub bits: u128,
}

impl NamedValue {
    fn of(value: &OperandValue) -> NamedValue {
        NamedValue { name: value.name.to_owned(), ty: value.ty, bits: value.bits }
    }
}

/// The instruction from which a number comes, in the thread that executed it first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// How.
    pub source: Source,
    /// The instruction.
    pub span: Span,
    /// `%ctaid` of the thread's block.
    pub block: [u32; 3],
    /// Linear index of the thread in its block.
    pub thread: u32,
    /// The values that it read.
    pub reads: Vec<NamedValue>,
    /// The values that it wrote.
    pub writes: Vec<NamedValue>,
    /// The address of its memory operand.
    pub address: Option<(Space, u64)>,
}

/// An instruction that passed the number on, to a register or to memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Passage {
    /// The instruction.
    pub span: Span,
    /// How often a thread executed it with the number.
    pub count: u64,
    /// If it stores the number: the first address.
    pub stored: Option<(Space, u64)>,
}

/// The life of one number.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Flow {
    /// What it is.
    pub number: NonFinite,
    /// Where it comes from.
    pub origin: Origin,
    /// How often such numbers came from this instruction.
    pub count: u64,
    /// The instructions that passed it on, in the order in which they did so first.
    pub passages: Vec<Passage>,
    /// The other instructions from which such numbers come, and how often.
    pub others: Vec<(Span, u64)>,
}

/// An observer that looks for the first NaN and the first infinity. It needs the reference engine.
#[derive(Debug)]
pub struct FirstNonFinite {
    searches: [Search; 2],
    writers: Writers,
}

impl FirstNonFinite {
    /// Looks for both.
    pub fn shared() -> Arc<Mutex<FirstNonFinite>> {
        let searches = [NonFinite::Nan, NonFinite::Infinity].map(Search::new);
        Arc::new(Mutex::new(FirstNonFinite { searches, writers: Writers::default() }))
    }

    /// What was found, NaN first.
    pub fn flows(&self) -> Vec<Flow> {
        self.searches.iter().filter_map(Search::flow).collect()
    }
}

impl LaunchObserver for FirstNonFinite {
    fn wants_instructions(&self, _: [u32; 3], _: u32) -> bool {
        true
    }

    fn instruction(&mut self, event: &InstructionEvent) -> ControlFlow<()> {
        if event.executes {
            for search in &mut self.searches {
                search.see(event, &self.writers);
            }
            self.writers.see(event);
        }
        ControlFlow::Continue(())
    }
}

/// A thread: its block, and its index there.
type Thread = ([u32; 3], u32);

/// A register of a function. The engine gives the same string for each use, so its address identifies the register.
type Register = usize;

fn register(value: &OperandValue) -> Option<Register> {
    (!value.name.is_empty()).then_some(value.name.as_ptr() as Register)
}

/// Lanes of a warp.
const WARP_LANES: u32 = 32;

/// Where results of an instruction come from, if not from its thread's registers alone.
fn source(event: &InstructionEvent) -> Option<Source> {
    match event {
        InstructionEvent { reads_memory: true, .. } => Some(Source::Memory),
        InstructionEvent { reads_lanes: true, .. } => Some(Source::Lanes),
        _ => None,
    }
}

/// Blocks whose last writers are remembered.
const MOST_BLOCKS: usize = 64;

/// For the registers of each thread: the instruction that wrote it last, as an origin.
#[derive(Debug, Default)]
struct Writers {
    last: HashMap<[u32; 3], HashMap<(u32, Register), Writer>>,
    /// Blocks in the order of their first instruction.
    blocks: VecDeque<[u32; 3]>,
}

#[derive(Clone, Copy, Debug)]
struct Writer {
    span: Span,
    address: Option<(Space, u64)>,
    /// Where its results come from, if it has no floating-point type.
    source: Source,
}

impl Writers {
    fn see(&mut self, event: &InstructionEvent) {
        if event.writes.is_empty() {
            return;
        }
        if !self.last.contains_key(&event.block) {
            self.blocks.push_back(event.block);
            if self.blocks.len() > MOST_BLOCKS
                && let Some(oldest) = self.blocks.pop_front()
            {
                self.last.remove(&oldest);
            }
        }
        let of_block = self.last.entry(event.block).or_default();
        for register in event.writes.iter().filter_map(register) {
            let (span, address) = (event.span, event.address);
            let writer = Writer { span, address, source: source(event).unwrap_or(Source::Bits) };
            of_block.insert((event.thread, register), writer);
        }
    }

    fn of(&self, (block, thread): Thread, register: Register) -> Option<Writer> {
        self.last.get(&block)?.get(&(thread, register)).copied()
    }
}

/// A place that can hold a number: a register of a thread, or an address. Shared memory is a block's, local memory a
/// thread's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Register(Thread, Register),
    Memory(Space, Option<[u32; 3]>, Option<u32>, u64),
}

impl Place {
    fn memory((block, thread): Thread, space: Space, address: u64) -> Place {
        let of_block = matches!(space, Space::Shared | Space::Local).then_some(block);
        let of_thread = (space == Space::Local).then_some(thread);
        Place::Memory(space, of_block, of_thread, address)
    }
}

/// The search for one kind of number.
#[derive(Debug)]
struct Search {
    number: NonFinite,
    first: Option<Origin>,
    /// How often such a number came from each instruction.
    origins: Vec<(Span, u64)>,
    passages: Vec<Passage>,
    /// The places that hold such a number, and whether it comes from the first origin.
    tainted: HashMap<Place, bool>,
}

impl Search {
    fn new(number: NonFinite) -> Search {
        Search { number, first: None, origins: Vec::new(), passages: Vec::new(), tainted: HashMap::new() }
    }

    fn flow(&self) -> Option<Flow> {
        let origin = self.first.clone()?;
        let (own, others) = self.origins.iter().partition::<Vec<_>, _>(|(span, _)| *span == origin.span);
        let count = own.first().map_or(1, |(_, count)| *count);
        Some(Flow { number: self.number, origin, count, passages: self.passages.clone(), others })
    }

    fn see(&mut self, event: &InstructionEvent, writers: &Writers) {
        let thread = (event.block, event.thread);
        let states: Vec<_> = event.reads.iter().map(|value| self.state(value, event, writers)).collect();
        let in_registers = states.iter().flatten().copied().chain(self.in_lanes(event)).reduce(|a, b| a | b);
        let mut passes = false;
        // Results of loads and atomics are what memory held.
        let mut at = event.address;
        for value in event.writes {
            let in_memory = at.map(|(space, address)| Place::memory(thread, space, address));
            at = at.map(|(space, address)| (space, address + u64::from(value.ty.bytes())));
            let state = in_memory.map_or(in_registers, |place| self.tainted.get(&place).copied());
            let holds = match value.ty {
                ty if ty.is_float() => self.holds(ty, value.bits),
                _ => state.is_some() && self.may_hold(value),
            };
            let Some(register) = register(value) else { continue };
            let place = Place::Register(thread, register);
            match state {
                _ if !holds => {
                    self.tainted.remove(&place);
                }
                Some(is_first) => {
                    self.tainted.insert(place, is_first);
                    passes |= is_first;
                }
                None => {
                    let source = source(event).unwrap_or(Source::Computed);
                    let InstructionEvent { span, address, reads, writes, .. } = *event;
                    let is_first = self.arises(source, thread, span, address, reads, writes);
                    // Who loads it from the same place later gets the same number.
                    let places = [Some(place), in_memory];
                    self.tainted.extend(places.into_iter().flatten().map(|place| (place, is_first)));
                }
            }
        }
        let mut stored = None;
        if let Some((space, mut address)) = event.address.filter(|_| event.writes_memory) {
            let data = event.reads.iter().zip(states).filter(|(value, _)| value.ty != Type::Pred);
            for (value, state) in data {
                let place = Place::memory(thread, space, address);
                match state {
                    Some(is_first) => {
                        self.tainted.insert(place, is_first);
                        if is_first && stored.is_none() {
                            stored = Some((space, address));
                        }
                    }
                    None if !event.reads_memory => {
                        self.tainted.remove(&place);
                    }
                    None => {}
                }
                address += u64::from(value.ty.bytes());
            }
        }
        if passes || stored.is_some() {
            match self.passages.iter_mut().find(|passage| passage.span == event.span) {
                Some(passage) => passage.count += 1,
                None => self.passages.push(Passage { span: event.span, count: 1, stored }),
            }
        }
    }

    /// The same of the registers that the other lanes of a warp have for an instruction.
    fn in_lanes(&self, event: &InstructionEvent) -> Option<bool> {
        let registers = event.reads.iter().filter(|_| event.reads_lanes).filter_map(register);
        let first = event.thread / WARP_LANES * WARP_LANES;
        let places = registers.flat_map(|register| {
            (first..first + WARP_LANES).map(move |lane| Place::Register((event.block, lane), register))
        });
        places.filter_map(|place| self.tainted.get(&place)).copied().reduce(|a, b| a | b)
    }

    /// Whether a value that is read is such a number, and whether it comes from the first origin.
    fn state(&mut self, value: &OperandValue, event: &InstructionEvent, writers: &Writers) -> Option<bool> {
        let thread = (event.block, event.thread);
        let Some(register) = register(value) else {
            // A literal is no origin: programs write -inf on purpose.
            return self.holds(value.ty, value.bits).then_some(false);
        };
        let place = Place::Register(thread, register);
        if let Some(&is_first) = self.tainted.get(&place) {
            return Some(is_first);
        }
        if !self.holds(value.ty, value.bits) {
            return None;
        }
        // An instruction without a floating-point type wrote it.
        let writer = writers.of(thread, register);
        let source = writer.map_or(Source::Bits, |writer| writer.source);
        let is_first = match (source, self.number) {
            (Source::Bits, NonFinite::Infinity) => false,
            _ => {
                let (span, address) = writer.map_or((event.span, None), |w| (w.span, w.address));
                self.arises(source, thread, span, address, &[], std::slice::from_ref(value))
            }
        };
        self.tainted.insert(place, is_first);
        Some(is_first)
    }

    /// Such a number comes from this instruction. Returns whether it is the first origin.
    fn arises(
        &mut self,
        source: Source,
        (block, thread): Thread,
        span: Span,
        address: Option<(Space, u64)>,
        reads: &[OperandValue],
        writes: &[OperandValue],
    ) -> bool {
        match self.origins.iter_mut().find(|(of, _)| *of == span) {
            Some((_, count)) => *count += 1,
            None => self.origins.push((span, 1)),
        }
        let named = |values: &[OperandValue]| values.iter().map(NamedValue::of).collect();
        let (reads, writes) = (named(reads), named(writes));
        let origin = || Origin { source, span, block, thread, reads, writes, address };
        self.first.get_or_insert_with(origin).span == span
    }

    /// Whether a value of this type, or an element of it, is such a number.
    fn holds(&self, ty: Type, bits: u128) -> bool {
        let Some(format) = Format::of(ty.element()) else { return false };
        let width = ty.bits() / ty.lanes();
        (0..ty.lanes()).any(|lane| {
            let element = (bits >> (lane * width)) as u64 & (u64::MAX >> (64 - width));
            match self.number {
                NonFinite::Nan => format.is_nan(element),
                NonFinite::Infinity => {
                    format.specials == Specials::InfinityAndNan
                        && element & format.magnitude_mask() == format.infinity()
                }
            }
        })
    }

    /// Whether bits can be such a number in one of the formats that are as wide.
    fn may_hold(&self, value: &OperandValue) -> bool {
        let formats: &[Type] = match value.ty.bits() {
            16 => &[Type::F16, Type::Bf16],
            32 => &[Type::F32, Type::F16x2, Type::Bf16x2],
            64 => &[Type::F64, Type::F32x2],
            _ => &[],
        };
        value.ty != Type::Pred && formats.iter().any(|&ty| self.holds(ty, value.bits))
    }
}
