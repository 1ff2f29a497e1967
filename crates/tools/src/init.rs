//! initcheck: follows unwritten values from where they first appear to where they matter.
//!
//! Each bit of a register of a lane, and each byte of memory, is either defined or undefined. An undefined one records its origin.
//! Copying undefined values is no error. They matter when they decide control flow or an address, and when they are left in global
//! memory after the launch, unless they are the padding of a structure that is copied.
//!
//! Only registers with undefined bits have a shadow. While no register has one, and no unwritten memory has been loaded, the checker
//! needs no operation events ([`machine::LaunchObserver::follows_operations`]). To find which bits of a result are undefined, `trial.rs`
//! runs the operation itself on several inputs. If a guarded operation only writes registers, its guard counts as one more operand
//! ([`OperationEvent::guard`](machine::OperationEvent::guard)).
//!
//! For initcheck, modules are lowered without the prologue and without copy propagation (`ptxvm::Module::for_tools`): a hoisted or
//! substituted value would exist even on paths that never write it.

mod flow;
mod global;
mod trial;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use diag::Span;
use isa::Space;
use machine::{AccessEvent, AccessKind, BlockAccess, EnterEvent, LaneAccess, WarpEvent, WarpLane};

use crate::written::{Memory, bounds};
use flow::each_lane;
pub use global::{GlobalMemory, is_padding};

/// Lanes of a gang.
const LANES: usize = 1024;

/// The undefined bits of a value, and their origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taint {
    /// Index in [`Values::origins`], plus one.
    origin: u32,
    /// The value was read beside written bytes of the same element and has only been moved since, so it may be padding of a structure.
    padding: bool,
    bits: u64,
}

/// A mask of the low `bits` bits.
fn low(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

impl Taint {
    /// The taint of a value computed from this one: all its bits are undefined.
    fn whole(self) -> Taint {
        Taint { bits: if self.bits == 0 { 0 } else { u64::MAX }, padding: false, ..self }
    }

    fn is_any(self) -> bool {
        self.bits != 0
    }

    /// The taint of `count` bits from `first` on, moved to bit 0.
    fn part(self, first: u32, count: u32) -> Taint {
        let bits = self.bits.checked_shr(first).unwrap_or(0) & low(count);
        Taint { bits, ..self }
    }

    /// The same taint, shifted left.
    fn up(self, bits: u32) -> Taint {
        Taint { bits: self.bits.checked_shl(bits).unwrap_or(0), ..self }
    }

    fn or(self, other: Taint) -> Taint {
        let (first, second) = if self.is_any() { (self, other) } else { (other, self) };
        let padding = first.padding && (second.padding || !second.is_any());
        Taint { origin: first.origin, padding, bits: first.bits | second.bits }
    }

    /// The bytes with an undefined bit, one bit per byte.
    fn bytes(self) -> u8 {
        (0..8).filter(|byte| self.bits >> (8 * byte) & 0xff != 0).fold(0, |all, byte| all | 1 << byte)
    }
}

/// Where an unwritten value first appeared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// A register.
    Register { name: String, function: Span },
    /// Memory that an instruction read.
    Memory { span: Span, space: Space },
    /// Tensor memory that an instruction read.
    Tensor { span: Span },
    /// A lane of the warp that did not participate in the shuffle that read it.
    Lane { span: Span, lane: u32 },
}

/// How an unwritten value matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matter {
    /// It decides a branch, a guard, a barrier or a mask.
    Decides,
    /// It is an address.
    Address,
    /// It is stored to global memory.
    Output,
    /// An atomic operation uses it as the old value in memory.
    Atomic,
    /// An atomic operation uses it as its operand.
    Combined,
}

/// A use of an unwritten value that matters.
pub(crate) struct Use {
    pub origin: Origin,
    pub matter: Matter,
    pub span: Span,
    pub block: [u32; 3],
    pub thread: u32,
    /// The address, if memory is accessed.
    pub address: Option<u64>,
    /// If the value comes from global memory, the first address that was read.
    pub read: Option<u64>,
}

/// A load of unwritten cells of tensor memory.
struct LoadedCells {
    span: Span,
    origin: u32,
    /// Each thread and the index of its register that receives an unwritten cell.
    undefined: HashSet<(u32, u32)>,
}

/// The unwritten values of a launch.
#[derive(Default)]
pub(crate) struct Values {
    /// Each origin with the first address that was read.
    origins: Vec<(Origin, Option<u64>)>,
    known: HashMap<Origin, u32>,
    /// By gang, window and slot.
    registers: HashMap<(usize, u32, u32), Box<[Taint; LANES]>>,
    /// By block, for the blocks in flight.
    shared: Vec<([u32; 3], Memory)>,
    /// The system writes this many bytes at the start of shared memory.
    pub reserved_shared: u64,
    local: HashMap<([u32; 3], u32), Memory>,
    /// Global memory, as this launch and all launches before left it.
    global: Arc<Mutex<GlobalMemory>>,
    /// Global memory may have unwritten bytes.
    unwritten_global: bool,
    /// The launch stored unwritten values to global memory.
    pub forgot: bool,
    /// The checker gets accesses to memory, so it knows what memory holds.
    follows_memory: bool,
    /// For the operation event that follows: the unwritten bytes that its accesses read, by lane of the access event.
    loaded: Vec<(LaneAccess, u64, Taint)>,
    /// The same for the sources of copies, in pieces of 64 bytes, each with its offset in the source.
    copied: Vec<(LaneAccess, u64, Taint, u64)>,
    stored: Vec<LaneAccess>,
    /// For the tensor memory load whose operation event follows.
    cells: Option<LoadedCells>,
    /// For the shuffle whose operation event follows: block, thread, and the lane that the thread reads.
    sources: HashMap<([u32; 3], u32), u32>,
    /// For the same shuffle: the threads that read a lane that does not participate.
    absent: HashMap<([u32; 3], u32), Taint>,
    pub found: Vec<Use>,
}

impl Values {
    /// The values of a launch that starts with this state of global memory.
    pub fn new(global: Arc<Mutex<GlobalMemory>>, follows_memory: bool) -> Values {
        let unwritten_global = follows_memory && with(&global, |global| global.has_unwritten());
        Values { global, unwritten_global, follows_memory, ..Values::default() }
    }

    /// A kernel allocates memory, which is unwritten.
    pub fn allocate(&mut self, address: u64, bytes: u64) {
        self.unwritten_global = true;
        with(&self.global, |global| global.allocate(address, bytes));
    }

    /// A kernel frees memory.
    pub fn free(&mut self, address: u64) {
        with(&self.global, |global| global.free(address));
    }

    /// A block has ended.
    pub fn end_block(&mut self, ctaid: [u32; 3]) {
        self.shared.retain(|(block, _)| *block != ctaid);
        self.local.retain(|(block, _), _| *block != ctaid);
    }

    fn origin(&mut self, origin: Origin) -> u32 {
        let next = self.origins.len() as u32 + 1;
        let number = *self.known.entry(origin.clone()).or_insert(next);
        if number == next {
            self.origins.push((origin, None));
        }
        number
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

    /// The shadow of shared or local memory that a thread accesses.
    fn memory(&mut self, lane: &LaneAccess) -> Option<&mut Memory> {
        match lane.space {
            Space::Shared => Some(self.shared_memory(lane.owner)),
            Space::Local => Some(self.local.entry((lane.block, lane.thread)).or_default()),
            _ => None,
        }
    }

    /// A thread writes memory.
    pub fn write(&mut self, lane: &LaneAccess) {
        if lane.space == Space::Global {
            if self.unwritten_global {
                with(&self.global, |global| global.write(lane.address, lane.bytes));
            }
        } else if let Some(memory) = self.memory(lane) {
            memory.write(lane.address, lane.bytes);
        }
    }

    /// A thread stores unwritten values. `missing` has one bit for each of up to 64 bytes.
    fn taint(&mut self, lane: &LaneAccess, missing: u64, taint: Taint) {
        if lane.space == Space::Global {
            (self.unwritten_global, self.forgot) = (true, true);
            with(&self.global, |global| {
                each_bit(missing, |bit| global.forget(lane.address + u64::from(bit), 1));
            });
        } else if let Some(memory) = self.memory(lane) {
            each_bit(missing, |bit| {
                memory.tainted.insert(lane.address + u64::from(bit), taint);
            });
        }
    }

    /// The unwritten bytes that a thread reads, one bit each, and the taint of their values.
    fn look(&mut self, lane: &LaneAccess, span: Span) -> (u64, Taint) {
        let space = lane.space;
        let mut taint = Taint { padding: true, ..Taint::default() };
        let mut missing = 0;
        if space == Space::Global {
            if self.unwritten_global {
                missing = with(&self.global, |global| global.unwritten(lane.address, lane.bytes));
            }
        } else if let Some(memory) = self.memory(lane) {
            missing = memory.unwritten(lane.address, lane.bytes);
            if !memory.tainted.is_empty() {
                for (bit, byte) in (lane.address..lane.address + lane.bytes.min(64)).enumerate() {
                    if let Some(&of_byte) = memory.tainted.get(&byte) {
                        missing |= 1 << bit;
                        taint = Taint { padding: taint.padding && of_byte.padding, ..of_byte };
                    }
                }
            }
        }
        if missing == 0 {
            return (0, Taint::default());
        }
        if taint.origin == 0 {
            taint.origin = self.origin(Origin::Memory { span, space });
            let first = &mut self.origins[taint.origin as usize - 1].1;
            // The instruction that reads memory of `malloc` identifies it; its address is not kept.
            if space == Space::Global && lane.address < machine::HEAP_BASE {
                first.get_or_insert(lane.address + u64::from(missing.trailing_zeros()));
            }
        }
        (missing, Taint { bits: 1, ..taint })
    }

    /// Threads access memory. `is_param`: the access reads parameters of functions, which the callers wrote.
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
        if matches!(event.kind, AccessKind::Store | AccessKind::Atomic | AccessKind::MatrixStore) {
            self.stored.clear();
            self.stored.extend_from_slice(event.lanes);
        }
        if event.kind.writes() && event.kind != AccessKind::Mbarrier {
            event.lanes.iter().for_each(|lane| self.write(lane));
        }
        if event.kind == AccessKind::CopyWrite {
            for (from, missing, taint, offset) in std::mem::take(&mut self.copied) {
                let to = event.lanes.iter().find(|to| (to.block, to.thread) == (from.block, from.thread));
                let Some(to) = to.filter(|to| offset < to.bytes) else { continue };
                let bytes = (to.bytes - offset).min(64);
                let missing = missing & low(bytes as u32);
                let at = LaneAccess { address: to.address + offset, bytes, ..*to };
                if to.space == Space::Global && has_more_than_padding(at.address, missing) {
                    self.matters(taint, Matter::Output, event.span, &at);
                } else {
                    self.taint(&at, missing, taint);
                }
            }
        }
    }

    /// Records which bytes of a copy's source are unwritten.
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

    /// Whether block accesses to a space may concern unwritten values, or may end what is recorded of earlier accesses.
    pub fn wants(&self, kind: AccessKind, space: Space) -> bool {
        let is_own = matches!(space, Space::Shared | Space::Local);
        let stores_any = kind == AccessKind::Store && !self.registers.is_empty();
        is_own || stores_any || self.unwritten_global || !self.loaded.is_empty() || !self.copied.is_empty()
    }

    /// Handles a load or store of a whole block if it surely accesses only defined values, and records the store. Returns false
    /// otherwise; the accesses must then come thread by thread.
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
                // A store keeps written bytes written.
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
            Space::Global if self.unwritten_global => with(&self.global, |global| {
                let is_store = access.kind == AccessKind::Store;
                access.parts(|from, bytes| {
                    if is_store {
                        global.write(from, bytes);
                    }
                    is_store || global.is_written(from, bytes)
                })
            }),
            _ => true,
        };
        if is_written && reads {
            self.loaded.clear();
            self.copied.clear();
        }
        is_written
    }

    /// Whether some register has undefined bits.
    pub fn has_undefined_registers(&self) -> bool {
        !self.registers.is_empty()
    }

    /// Whether operations may read undefined values.
    pub fn are_any_undefined(&self) -> bool {
        self.has_undefined_registers()
            || !self.loaded.is_empty()
            || self.cells.is_some()
            || !self.absent.is_empty()
    }

    /// In the shuffle whose operation event follows, a thread reads a lane that does not participate.
    pub fn read_absent(&mut self, block: [u32; 3], (span, thread): (Span, u32), lane: u32) {
        let origin = self.origin(Origin::Lane { span, lane: lane % 32 });
        self.absent.insert((block, thread), Taint { origin, padding: false, bits: u64::MAX });
    }

    /// Lanes execute a shuffle.
    pub fn shuffle(&mut self, event: &WarpEvent) {
        self.sources.clear();
        self.absent.clear();
        if !self.registers.is_empty() {
            let source = |lane: &WarpLane| Some(((event.block, lane.thread), lane.source? % 32));
            self.sources.extend(event.lanes.iter().filter_map(source));
        }
    }

    /// Threads load from tensor memory. `undefined` lists the registers that receive unwritten cells.
    pub fn load_cells(&mut self, span: Span, undefined: Vec<(u32, u32)>) {
        self.cells = (!undefined.is_empty()).then(|| {
            let origin = self.origin(Origin::Tensor { span });
            LoadedCells { span, origin, undefined: undefined.into_iter().collect() }
        });
    }

    fn matters(&mut self, taint: Taint, matter: Matter, span: Span, lane: &LaneAccess) {
        self.matters_to(taint, matter, span, (lane.block, lane.thread), Some(lane.address));
    }

    fn matters_to(
        &mut self,
        taint: Taint,
        matter: Matter,
        span: Span,
        (block, thread): ([u32; 3], u32),
        address: Option<u64>,
    ) {
        let known = (taint.origin as usize).checked_sub(1).and_then(|index| self.origins.get(index).cloned());
        if let Some((origin, read)) = known {
            self.found.push(Use { origin, matter, span, block, thread, address, read });
        }
    }

    /// A function starts. `event.unwritten` lists the registers that it may read before it writes them.
    pub fn enter(&mut self, event: &EnterEvent) {
        let key = (event.gang, event.window);
        if event.is_kernel {
            self.registers.retain(|(gang, ..), _| *gang != event.gang);
        } else {
            self.registers.retain(|(gang, window, _), _| (*gang, *window) != key);
        }
        let unwritten = if self.follows_memory { event.unwritten } else { &[] };
        for (slot, name) in unwritten {
            let origin = Origin::Register { name: (*name).to_owned(), function: event.span };
            let taint = Taint { origin: self.origin(origin), padding: false, bits: u64::MAX };
            let mut lanes = Box::new([Taint::default(); LANES]);
            each_lane(event.lanes.words(), |lane| lanes[lane] = taint);
            self.registers.insert((key.0, key.1, *slot), lanes);
        }
    }
}

fn with<T>(global: &Mutex<GlobalMemory>, f: impl FnOnce(&mut GlobalMemory) -> T) -> T {
    f(&mut global.lock().unwrap_or_else(PoisonError::into_inner))
}

fn each_bit(mut bits: u64, mut f: impl FnMut(u32)) {
    while bits != 0 {
        f(bits.trailing_zeros());
        bits &= bits - 1;
    }
}

/// Whether the unwritten bytes from an address on (one bit each) include more than padding of a structure.
fn has_more_than_padding(address: u64, missing: u64) -> bool {
    let mut at = 0;
    while let Some(start) = (at..64).find(|bit| missing >> bit & 1 != 0) {
        let end = (start..64).find(|bit| missing >> bit & 1 == 0).unwrap_or(64);
        if !is_padding(address + start, address + end, start > 0) {
            return true;
        }
        at = end;
    }
    false
}
