//! initcheck: values that nobody wrote, from where they are born to where they matter.
//!
//! Each value that a register of a lane holds, and each byte of memory, is defined or not; what is not says where it comes
//! from. Copying it around is no error. It matters when it decides where a thread goes or what it accesses, and when it
//! leaves the launch in global memory.

use std::collections::HashMap;

use diag::Span;
use isa::Space;
use vm::{
    AccessEvent, AccessKind, BlockAccess, BlockAddresses, EnterEvent, LaneAccess, OperationEvent,
    OperationKind, WarpEvent, WarpLane,
};

use crate::block::members;

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

/// The bytes of a memory that somebody wrote, and those among them that hold what nobody wrote.
#[derive(Default)]
struct Memory {
    /// By 64 bytes, a bit each: of low addresses, and of others.
    low: Vec<u64>,
    high: HashMap<u64, u64>,
    /// Of low addresses the 64 bytes of which somebody wrote all, a bit each.
    full: Vec<u64>,
    /// Bytes that were written with values that nobody wrote.
    tainted: HashMap<u64, u32>,
}

/// Addresses of shared and local memory are below, in units of 64 bytes.
const LOW: u64 = 1 << 16;

impl Memory {
    fn word(&self, index: u64) -> u64 {
        match index {
            ..LOW => self.low.get(index as usize).copied().unwrap_or(0),
            _ => self.high.get(&index).copied().unwrap_or(0),
        }
    }

    fn word_mut(&mut self, index: u64) -> &mut u64 {
        if index >= LOW {
            return self.high.entry(index).or_default();
        }
        let index = index as usize;
        if self.low.len() <= index {
            self.low.resize(index + 1, 0);
        }
        &mut self.low[index]
    }

    fn write(&mut self, address: u64, bytes: u64) {
        let mut at = address;
        let end = address.saturating_add(bytes);
        while at < end {
            let next = ((at / 64 + 1) * 64).min(end);
            let mask = (u64::MAX >> (64 - (next - at))) << (at % 64);
            let word = self.word_mut(at / 64);
            *word |= mask;
            let is_full = *word == u64::MAX;
            if is_full && at / 64 < LOW {
                let index = at as usize / 64 / 64;
                if self.full.len() <= index {
                    self.full.resize(index + 1, 0);
                }
                self.full[index] |= 1 << (at / 64 % 64);
            }
            at = next;
        }
        if !self.tainted.is_empty() {
            self.tainted.retain(|byte, _| !(address..end).contains(byte));
        }
    }

    /// Surely somebody has written all from an address to another one.
    fn is_full(&self, start: u64, end: u64) -> bool {
        let (mut unit, end) = (start / 64, end.div_ceil(64));
        if end > LOW || unit >= end {
            return false;
        }
        while unit < end {
            let next = (unit | 63).saturating_add(1).min(end);
            let full = self.full.get(unit as usize / 64).copied().unwrap_or(0);
            if !full >> (unit % 64) & u64::MAX >> (64 - (next - unit)) != 0 {
                return false;
            }
            unit = next;
        }
        true
    }

    /// Somebody has written all of so many bytes.
    fn is_written(&self, address: u64, bytes: u64) -> bool {
        let mut at = address;
        let end = address.saturating_add(bytes);
        while at < end {
            let next = (at | 63).saturating_add(1).min(end);
            if !self.word(at / 64) >> (at % 64) & u64::MAX >> (64 - (next - at)) != 0 {
                return false;
            }
            at = next;
        }
        true
    }

    /// The bytes that nobody wrote, of up to 64, a bit each.
    fn unwritten(&self, address: u64, bytes: u64) -> u64 {
        let mut missing = 0;
        let mut at = address;
        let end = address.saturating_add(bytes.min(64));
        while at < end {
            let next = ((at / 64 + 1) * 64).min(end);
            let word = self.word(at / 64);
            let mask = u64::MAX >> (64 - (next - at));
            missing |= (!(word >> (at % 64)) & mask) << (at - address);
            at = next;
        }
        missing
    }
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
            self.shared.push((owner, Memory::default()));
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
        self.has_undefined_registers() || !self.loaded.is_empty()
    }

    /// Lanes shuffle.
    pub fn shuffle(&mut self, event: &WarpEvent) {
        self.sources.clear();
        if !self.registers.is_empty() {
            let source = |lane: &WarpLane| Some(((event.block, lane.thread), lane.source? % 32));
            self.sources.extend(event.lanes.iter().filter_map(source));
        }
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

    pub fn operation(&mut self, event: &OperationEvent) {
        if self.registers.is_empty() && self.loaded.is_empty() {
            return;
        }
        let key = |slot: u32| (event.chunk, event.window, slot);
        for slot in event.decides {
            let Some(lanes) = self.registers.get(&key(*slot)).cloned() else { continue };
            let matter = if event.kind == OperationKind::Decide { Matter::Decides } else { Matter::Address };
            each_lane(event.lanes.words(), |lane| {
                let taint = lanes[lane];
                if taint.is_any()
                    && let Some(origin) = self.origins.get(taint.origin as usize - 1).cloned()
                {
                    let (block, thread) = event.lanes.who(lane);
                    self.found.push(Use { origin, matter, span: event.span, block, thread, address: None });
                }
            });
        }
        let sources: Vec<Option<Box<[Taint; LANES]>>> =
            event.uses.iter().map(|slot| self.registers.get(&key(*slot)).cloned()).collect();
        let tainted = sources.iter().any(Option::is_some);
        let of = |source: usize, lane: usize| sources[source].as_ref().map_or(Taint::default(), |t| t[lane]);
        match event.kind {
            OperationKind::CopyMemory => {}
            OperationKind::Store { bytes } if tainted => self.store(event, bytes, &of),
            OperationKind::StoreMatrix | OperationKind::Store { .. } => {}
            OperationKind::Decide | OperationKind::Defined | OperationKind::Atomic => {
                self.define(event, |_, _| Taint::default())
            }
            OperationKind::Load { bytes } => {
                let loaded = std::mem::take(&mut self.loaded);
                let who = |lane: usize| event.lanes.who(lane);
                let found: HashMap<([u32; 3], u32), (u64, Taint)> = loaded
                    .iter()
                    .map(|(l, missing, taint)| ((l.block, l.thread), (*missing, *taint)))
                    .collect();
                self.define(event, |index, lane| {
                    if found.is_empty() {
                        return Taint::default();
                    }
                    let Some(&(missing, taint)) = found.get(&who(lane)) else { return Taint::default() };
                    let part = missing >> (index as u32 * bytes).min(63);
                    Taint { bytes: (part & ((1 << bytes) - 1)) as u8, ..taint }
                });
            }
            OperationKind::LoadMatrix => {
                let any = self.loaded.first().map_or(Taint::default(), |(.., taint)| taint.whole());
                self.loaded.clear();
                self.define(event, |_, _| any);
            }
            _ if !tainted => self.define(event, |_, _| Taint::default()),
            OperationKind::Copy { bits } => {
                self.define(event, |_, lane| of(0, lane).part(0, bits.div_ceil(8)));
            }
            OperationKind::Pack { bits } => {
                let (uses, size) = (event.uses.len(), bits / 8);
                self.define(event, |_, lane| {
                    (0..uses).fold(Taint::default(), |all, i| {
                        let part = of(i, lane).part(0, size.max(1));
                        let bytes = (u32::from(part.bytes) << (i as u32 * size).min(8)) as u8;
                        all.or(Taint { bytes, ..part })
                    })
                });
            }
            OperationKind::Unpack { bits } => {
                self.define(event, |index, lane| of(0, lane).part(index as u32 * bits / 8, bits.div_ceil(8)));
            }
            OperationKind::Shuffle => {
                let sources = std::mem::take(&mut self.sources);
                self.define(event, |_, lane| {
                    let source = sources.get(&event.lanes.who(lane)).copied().unwrap_or(lane as u32 % 32);
                    of(0, lane / 32 * 32 + source as usize)
                });
            }
            OperationKind::Collective => {
                // Of the lanes of a warp, whoever has something that nobody wrote.
                let uses = event.uses.len();
                let words = event.lanes.words();
                let active = |lane: usize| words[lane / 64] >> (lane % 64) & 1 != 0;
                self.define(event, |_, lane| {
                    let first = lane / 32 * 32;
                    let lanes = (first..first + 32).filter(|&lane| active(lane));
                    let all = lanes.flat_map(|lane| (0..uses).map(move |source| (source, lane)));
                    all.fold(Taint::default(), |sum, (source, lane)| sum.or(of(source, lane))).whole()
                });
            }
            OperationKind::Compute => {
                let uses = event.uses.len();
                self.define(event, |index, lane| {
                    let all = (0..uses).fold(Taint::default(), |all, source| all.or(of(source, lane)));
                    if !all.is_any() || event.predicates >> index & 1 != 0 {
                        return all.whole();
                    }
                    let bytes = depends(event, index, lane, |source| of(source, lane).bytes);
                    Taint { bytes, ..all }
                });
            }
        }
    }

    /// Gives the results their taints, by index and lane.
    fn define(&mut self, event: &OperationEvent, taint: impl Fn(usize, usize) -> Taint) {
        for (index, slot) in event.defs.iter().enumerate() {
            let Some(slot) = slot else { continue };
            let key = (event.chunk, event.window, *slot);
            let mut lanes = self.registers.get(&key).cloned();
            each_lane(event.lanes.words(), |lane| {
                let taint = taint(index, lane);
                if taint.is_any() {
                    lanes.get_or_insert_with(|| Box::new([Taint::default(); LANES]))[lane] = taint;
                } else if let Some(lanes) = &mut lanes {
                    lanes[lane] = Taint::default();
                }
            });
            match lanes {
                Some(lanes) if lanes.iter().any(|taint| taint.is_any()) => {
                    self.registers.insert(key, lanes);
                }
                Some(_) => drop(self.registers.remove(&key)),
                None => {}
            }
        }
    }

    /// Values that nobody wrote go to memory.
    fn store(&mut self, event: &OperationEvent, bytes: u32, of: &impl Fn(usize, usize) -> Taint) {
        let stored: HashMap<([u32; 3], u32), LaneAccess> =
            self.stored.iter().map(|lane| ((lane.block, lane.thread), *lane)).collect();
        each_lane(event.lanes.words(), |lane| {
            let Some(access) = stored.get(&event.lanes.who(lane)) else { return };
            for element in 0..event.uses.len() {
                let taint = of(element, lane).part(0, bytes);
                if !taint.is_any() {
                    continue;
                }
                if access.space == Space::Global {
                    self.matters(taint, Matter::Output, event.span, access);
                } else if let Some(memory) = self.memory(access) {
                    let first = access.address + u64::from(element as u32 * bytes);
                    let bytes = (0..8u64).filter(|byte| taint.bytes >> byte & 1 != 0);
                    memory.tainted.extend(bytes.map(|byte| (first + byte, taint.origin)));
                }
            }
        });
    }
}

/// The least address of an access, and the end of what its threads access, if that is easily found.
fn bounds(access: &BlockAccess) -> Option<(u64, u64)> {
    let (least, greatest) = match access.addresses {
        BlockAddresses::Each(all) => members(access.threads)
            .map(|thread| all[thread as usize])
            .fold((u64::MAX, 0), |(least, greatest), at| (at.min(least), at.max(greatest))),
        BlockAddresses::Even { start, width, step, pitch } => {
            let last = access.threads.iter().rposition(|&word| word != 0)?;
            let last = 64 * last as u32 + access.threads[last].ilog2();
            let (columns, rows) = (u64::from(last.min(width - 1)), u64::from(last / width));
            let across = columns.checked_mul(step)?.checked_add(rows.checked_mul(pitch)?)?;
            (start, start.checked_add(across)?)
        }
    };
    Some((least, greatest.checked_add(access.bytes)?))
}

/// Which bytes of a result change if those bytes of the sources do that nobody wrote.
fn depends(event: &OperationEvent, index: usize, lane: usize, bytes: impl Fn(usize) -> u8) -> u8 {
    let spread =
        |bytes: u8| (0..8).filter(|bit| bytes >> bit & 1 != 0).fold(0, |all, bit| all | 0xff << (8 * bit));
    let mut changed = 0u64;
    let mut first = None;
    for other in [0, u64::MAX, 0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa] {
        let values: Vec<u64> = (0..event.uses.len())
            .map(|source| {
                let mask = spread(bytes(source));
                event.value(source, lane) & !mask | other & mask
            })
            .collect();
        let Some(results) = event.compute(&values) else { return 0xff };
        let result = results[index.min(1)];
        changed |= result ^ *first.get_or_insert(result);
    }
    (0..8).filter(|byte| changed >> (8 * byte) & 0xff != 0).fold(0, |all, byte| all | 1 << byte)
}

fn each_lane(words: &[u64], mut f: impl FnMut(usize)) {
    for (word, &bits) in words.iter().enumerate() {
        let mut bits = bits;
        while bits != 0 {
            f(word * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_full_is_written() {
        let mut memory = Memory::default();
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let mut full = 0;
        for _ in 0..2000 {
            memory.write(random(20_000), 1 + random(64));
            let (start, bytes) = (random(20_000), 1 + random(300));
            if memory.is_full(start, start + bytes) {
                full += 1;
                assert!(memory.is_written(start, bytes), "{start} {bytes}");
            }
        }
        assert!(full > 0);
        memory.write(0, 21_000);
        assert!(memory.is_full(0, 20_992) && !memory.is_full(0, 21_000) && !memory.is_full(0, u64::MAX));
    }
}
