//! initcheck: values that nobody wrote, from where they are born to where they matter.
//!
//! Each value that a register of a lane holds, and each byte of memory, is defined or not; what is not says where it comes
//! from. Copying it around is no error. It matters when it decides where a thread goes or what it accesses, and when it
//! leaves the launch in global memory.

mod flow;

use std::collections::{HashMap, HashSet};

use diag::Span;
use isa::Space;
use vm::{AccessEvent, AccessKind, BlockAccess, EnterEvent, LaneAccess, WarpEvent, WarpLane};

use crate::written::{Memory, bounds};
use flow::each_lane;

/// Lanes of a chunk.
const LANES: usize = 1024;

/// What of a value nobody wrote, and where that was born.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taint {
    /// Index in [`Values::origins`], plus one.
    origin: u32,
    /// Its bytes, a bit each.
    bytes: u8,
}

impl Taint {
    /// All of the value.
    fn whole(self) -> Taint {
        Taint { bytes: if self.bytes == 0 { 0 } else { 0xff }, ..self }
    }

    fn is_any(self) -> bool {
        self.bytes != 0
    }

    /// Some bytes of it, moved to lower places.
    fn part(self, first: u32, count: u32) -> Taint {
        let bytes = (u32::from(self.bytes) >> first.min(8) & ((1 << count.min(8)) - 1)) as u8;
        Taint { bytes, ..self }
    }

    fn or(self, other: Taint) -> Taint {
        let origin = if self.is_any() { self.origin } else { other.origin };
        Taint { origin, bytes: self.bytes | other.bytes }
    }
}

/// Where a value comes from that nobody wrote.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// A register.
    Register { name: String, function: Span },
    /// Memory that an instruction read.
    Memory { span: Span, space: Space },
    /// Tensor memory that an instruction read.
    Tensor { span: Span },
}

/// Where it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matter {
    /// A branch, a guard, a barrier, a mask.
    Decides,
    /// An address.
    Address,
    /// It is stored to global memory.
    Output,
    /// An atomic operation combines with it.
    Atomic,
}

/// A use that matters.
pub(crate) struct Use {
    pub origin: Origin,
    pub matter: Matter,
    pub span: Span,
    pub block: [u32; 3],
    pub thread: u32,
    /// Of memory that is read: where.
    pub address: Option<u64>,
}

/// A load from tensor memory, of what nobody wrote.
struct LoadedCells {
    span: Span,
    origin: u32,
    /// Threads, and which of their registers get it.
    undefined: HashSet<(u32, u32)>,
}

/// What nobody wrote, in a launch.
#[derive(Default)]
pub(crate) struct Values {
    origins: Vec<Origin>,
    known: HashMap<Origin, u32>,
    /// By chunk, window and register.
    registers: HashMap<(usize, u32, u32), Box<[Taint; LANES]>>,
    /// By block: those in flight.
    shared: Vec<([u32; 3], Memory)>,
    /// Bytes of it that the system has written, from its start on.
    pub reserved_shared: u64,
    local: HashMap<([u32; 3], u32), Memory>,
    /// Of allocations that hold nothing at first.
    global: Memory,
    /// Such allocations: address and size.
    undefined: Vec<(u64, u64)>,
    /// What the accesses of the instruction found that is told next, by lane of the event: thread, address, unwritten bytes.
    loaded: Vec<(LaneAccess, u64, Taint)>,
    /// The same of the sources of copies, in pieces of 64 bytes, and how far into the source each is.
    copied: Vec<(LaneAccess, u64, Taint, u64)>,
    stored: Vec<LaneAccess>,
    /// Of the load from tensor memory that is told next.
    cells: Option<LoadedCells>,
    /// Of the shuffle that is told next: block, thread, and the lane that it reads.
    sources: HashMap<([u32; 3], u32), u32>,
    pub found: Vec<Use>,
}

impl Values {
    /// Nobody has written an allocation.
    pub fn forget(&mut self, address: u64, bytes: u64) {
        self.undefined.push((address, bytes));
    }

    /// A block is over.
    pub fn end_block(&mut self, ctaid: [u32; 3]) {
        self.shared.retain(|(block, _)| *block != ctaid);
        self.local.retain(|(block, _), _| *block != ctaid);
    }

    fn origin(&mut self, origin: Origin) -> u32 {
        let next = self.origins.len() as u32 + 1;
        let number = *self.known.entry(origin.clone()).or_insert(next);
        if number == next {
            self.origins.push(origin);
        }
        number
    }

    fn is_undefined(&self, address: u64) -> bool {
        self.undefined.iter().any(|(base, bytes)| address.wrapping_sub(*base) < *bytes)
    }

    fn shared_memory(&mut self, owner: [u32; 3]) -> &mut Memory {
        let known = self.shared.iter().position(|(block, _)| *block == owner);
        let index = known.unwrap_or_else(|| {
            let mut memory = Memory::default();
            memory.write(0, self.reserved_shared);
            self.shared.push((owner, memory));
            self.shared.len() - 1
        });
        &mut self.shared[index].1
    }

    fn memory(&mut self, lane: &LaneAccess) -> Option<&mut Memory> {
        match lane.space {
            Space::Shared => Some(self.shared_memory(lane.owner)),
            Space::Local => Some(self.local.entry((lane.block, lane.thread)).or_default()),
            Space::Global if self.is_undefined(lane.address) => Some(&mut self.global),
            _ => None,
        }
    }

    /// What a thread reads that nobody wrote: bytes, and where what they hold was born.
    fn look(&mut self, lane: &LaneAccess, span: Span) -> (u64, Taint) {
        let space = lane.space;
        let Some(memory) = self.memory(lane) else { return (0, Taint::default()) };
        let mut missing = memory.unwritten(lane.address, lane.bytes);
        let mut taint = Taint::default();
        if !memory.tainted.is_empty() {
            for (bit, byte) in (lane.address..lane.address + lane.bytes.min(64)).enumerate() {
                if let Some(&origin) = memory.tainted.get(&byte) {
                    missing |= 1 << bit;
                    taint = Taint { origin, bytes: 1 };
                }
            }
        }
        if missing != 0 && !taint.is_any() {
            let origin = self.origin(Origin::Memory { span, space });
            taint = Taint { origin, bytes: 1 };
        }
        (missing, taint)
    }

    /// Threads access memory. `is_param`: parameters of functions, which their callers wrote.
    pub fn access(&mut self, event: &AccessEvent, is_param: bool) {
        match event.kind {
            AccessKind::Load | AccessKind::Atomic | AccessKind::MatrixLoad | AccessKind::CopyRead => {
                self.loaded.clear();
                self.copied.clear();
                if event.kind == AccessKind::CopyRead {
                    self.look_at_source(event);
                    return;
                }
                for lane in event.lanes.iter().filter(|_| !is_param) {
                    let (missing, taint) = self.look(lane, event.span);
                    if missing == 0 {
                        continue;
                    }
                    match event.kind {
                        AccessKind::Atomic => self.matters(taint, Matter::Atomic, event.span, lane),
                        _ => self.loaded.push((*lane, missing, taint)),
                    }
                }
            }
            _ => {}
        }
        if event.kind == AccessKind::Store {
            self.stored.clear();
            self.stored.extend_from_slice(event.lanes);
        }
        if event.kind.writes() && event.kind != AccessKind::Mbarrier {
            for lane in event.lanes {
                if let Some(memory) = self.memory(lane) {
                    memory.write(lane.address, lane.bytes);
                }
            }
        }
        if event.kind == AccessKind::CopyWrite {
            for (from, missing, taint, offset) in std::mem::take(&mut self.copied) {
                let to = event.lanes.iter().find(|to| (to.block, to.thread) == (from.block, from.thread));
                let Some(to) = to.filter(|to| offset < to.bytes) else { continue };
                let Some(memory) = self.memory(to) else {
                    if to.space == Space::Global {
                        let at = LaneAccess { address: to.address + offset, ..*to };
                        self.matters(taint, Matter::Output, event.span, &at);
                    }
                    continue;
                };
                let bytes = (0..(to.bytes - offset).min(64)).filter(|bit| missing >> bit & 1 != 0);
                memory.tainted.extend(bytes.map(|bit| (to.address + offset + bit, taint.origin)));
            }
        }
    }

    /// Notes what of the source of a copy nobody wrote.
    fn look_at_source(&mut self, event: &AccessEvent) {
        for lane in event.lanes {
            for offset in (0..lane.bytes).step_by(64) {
                let (address, bytes) = (lane.address + offset, (lane.bytes - offset).min(64));
                let (missing, taint) = self.look(&LaneAccess { address, bytes, ..*lane }, event.span);
                if missing != 0 {
                    self.copied.push((*lane, missing, taint, offset));
                }
            }
        }
    }

    /// Accesses of whole blocks to a space may be of what nobody wrote, or matter to what is remembered of accesses before.
    pub fn wants(&self, kind: AccessKind, space: Space) -> bool {
        let is_own = matches!(space, Space::Shared | Space::Local);
        let stores_any = kind == AccessKind::Store && !self.registers.is_empty();
        is_own
            || stores_any
            || !self.undefined.is_empty()
            || !self.loaded.is_empty()
            || !self.copied.is_empty()
    }

    /// Threads of a block load or store what is defined, all of it; the store has been noted. False if something is not, or could not be.
    pub fn block_access(&mut self, access: &BlockAccess) -> bool {
        let reads = matches!(access.kind, AccessKind::Load | AccessKind::Atomic);
        if !self.registers.is_empty() && access.kind == AccessKind::Store {
            return false;
        }
        let is_written = match access.space {
            Space::Shared => {
                let memory = self.shared_memory(access.block);
                if !memory.tainted.is_empty() {
                    return false;
                }
                let written = !reads
                    || bounds(access).is_some_and(|(start, end)| memory.is_full(start, end))
                    || access.parts(|from, bytes| memory.is_written(from, bytes));
                // What was written stays so.
                if written && access.kind == AccessKind::Store {
                    access.parts(|from, bytes| {
                        memory.write(from, bytes);
                        true
                    })
                } else {
                    written
                }
            }
            Space::Local => false,
            _ => self.undefined.is_empty(),
        };
        if is_written && reads {
            self.loaded.clear();
            self.copied.clear();
        }
        is_written
    }

    /// Registers hold what nobody wrote.
    pub fn has_undefined_registers(&self) -> bool {
        !self.registers.is_empty()
    }

    /// Operations may deal with what nobody wrote.
    pub fn are_any_undefined(&self) -> bool {
        self.has_undefined_registers() || !self.loaded.is_empty() || self.cells.is_some()
    }

    /// Lanes shuffle.
    pub fn shuffle(&mut self, event: &WarpEvent) {
        self.sources.clear();
        if !self.registers.is_empty() {
            let source = |lane: &WarpLane| Some(((event.block, lane.thread), lane.source? % 32));
            self.sources.extend(event.lanes.iter().filter_map(source));
        }
    }

    /// Threads load from tensor memory; these registers get what nobody wrote.
    pub fn load_cells(&mut self, span: Span, undefined: Vec<(u32, u32)>) {
        self.cells = (!undefined.is_empty()).then(|| {
            let origin = self.origin(Origin::Tensor { span });
            LoadedCells { span, origin, undefined: undefined.into_iter().collect() }
        });
    }

    fn matters(&mut self, taint: Taint, matter: Matter, span: Span, lane: &LaneAccess) {
        let Some(origin) = self.origins.get(taint.origin as usize - 1).cloned() else { return };
        let (block, thread, address) = (lane.block, lane.thread, Some(lane.address));
        self.found.push(Use { origin, matter, span, block, thread, address });
    }

    /// A function begins: what it may read before it writes it.
    pub fn enter(&mut self, event: &EnterEvent) {
        let key = (event.chunk, event.window);
        if event.is_kernel {
            self.registers.retain(|(chunk, ..), _| *chunk != event.chunk);
        } else {
            self.registers.retain(|(chunk, window, _), _| (*chunk, *window) != key);
        }
        for (slot, name) in event.unwritten {
            let origin = Origin::Register { name: (*name).to_owned(), function: event.span };
            let taint = Taint { origin: self.origin(origin), bytes: 0xff };
            let mut lanes = Box::new([Taint::default(); LANES]);
            each_lane(event.lanes.words(), |lane| lanes[lane] = taint);
            self.registers.insert((key.0, key.1, *slot), lanes);
        }
    }
}
