//! Few threads of each block that go a way of their own until all meet again: `if (threadIdx.x == 0)`.
//!
//! They are taken through their basic blocks one by one, the blocks of the grid in ascending order. So a thread that looks at what the
//! block before has published finds it there. Their operations run on plain numbers, through `sem`.
//!
//! Such a thread may wait for one that has not run yet, and its accesses may fault. Then it stops at the start of a basic block, and
//! all go on in gangs (`resume.rs`), where that basic block begins again (`code/way.rs`).
//!
//! Narrowest test: `ptxvm/tests/native`, `solo`.

use std::sync::atomic::{Ordering, fence};

use diag::Span;
use ir::{BlockId, SimpleOp};
use machine::mask::Mask;
use machine::memory::{HEAP_BASE, shared_base};
use smallvec::SmallVec;

use super::{Coarse, Part};
use crate::affine::{Affine, LaneRows};
use crate::bytes::load;
use crate::code::{
    Address, Base, Block, Guard, Kind, MAX_SOURCES, MemoryOp, Op, Pure, Store, Terminator, Way,
};
use crate::exec::moves::param;
use crate::exec::request::Request;
use crate::exec::strong::{
    Words, element, execute_fence, read_strong, read_words, side_by_side, write_strong, write_words,
};
use crate::exec::update::{Atomic, Update, update_atomically};
use crate::registers::SlotRef;

/// The most threads of a block that go alone. A gang takes more of them through an operation in less time.
const MOST_THREADS: u32 = 4;
/// The most of those that a gang would have, if they count in a loop.
const MOST_COUNTING: usize = 8;
/// How many basic blocks a thread may execute until it stops.
const FUEL: u32 = 1 << 14;
/// After so many of them it lets other host threads run.
const TURN: u32 = 1 << 8;

/// The values of a slot in all threads.
#[derive(Clone, Copy)]
pub(super) enum Known {
    Affine(Affine),
    /// For a predicate: the threads of each block for which it holds.
    Pattern(Mask),
    /// One element for each thread.
    Array(*const u8),
}

/// Few threads of each block on their way.
pub(super) struct Solo<'l> {
    pub way: &'l Way,
    /// Which threads of a block.
    pub threads: Mask,
    /// Their values when the threads begin: of [`Way::inputs`], and of [`Way::live`].
    pub inputs: Vec<(SlotRef, Known)>,
    pub live: Vec<(SlotRef, Known)>,
    /// The thread-instructions of a block until then.
    pub cost: u64,
}

/// A thread that does not go on alone: its block, its place there, its basic block, and the slots that it has written.
pub(super) struct Stuck {
    pub block: usize,
    pub thread: usize,
    pub at: u32,
    pub values: Vec<(SlotRef, u64)>,
}

impl<'l> Coarse<'l> {
    /// Where all threads go on behind a branch that few of them take, or that few do not take: these go a way of their own.
    pub(super) fn part(&mut self, block: &'l Block, lanes: Mask, to: [BlockId; 2], cost: u64) -> Option<u32> {
        if self.alive_count != self.rows.block_lanes() as u64 || self.code.lanes < self.rows.block_lanes() {
            return None;
        }
        let threads = [self.all & !lanes, self.all & lanes];
        let few = |taken: &usize| threads[*taken].count() <= MOST_THREADS;
        let way_of = |taken: usize| {
            let way = || Way::of(self.function, to[taken].0, to[1 - taken].0).map(Box::new);
            Some((taken, block.ways[taken].get_or_init(way).as_deref()?))
        };
        let (taken, way) = [0, 1].into_iter().filter(few).find_map(way_of)?;
        let known = |slot: &SlotRef| self.known(*slot).map(|known| (*slot, known));
        let all = |slots: &[SlotRef]| slots.iter().map(known).collect::<Option<Vec<_>>>();
        let (inputs, live) = (all(&way.inputs)?, all(&way.live)?);
        let threads = threads[taken];
        let of_gang = self.code.lanes / self.rows.block_lanes() * threads.count() as usize;
        if way.loops && !way.waits && of_gang > MOST_COUNTING {
            return None;
        }
        self.parts.push(Part::Solo(Solo { way, threads, inputs, live, cost }));
        way.defined.iter().for_each(|&slot| self.set(slot, None));
        if way.waits {
            self.code.waits.store(true, Ordering::Relaxed);
        }
        Some(way.join)
    }

    /// The values of a slot in all threads.
    pub(super) fn known(&self, slot: SlotRef) -> Option<Known> {
        let affine = self.value(slot).copied().map(Known::Affine);
        let pattern = || self.patterns.get(slot).map(Known::Pattern);
        affine.or_else(pattern).or_else(|| self.arrays.of(slot).map(Known::Array))
    }

    /// Takes the threads through their way, block after block. Returns their thread-instructions, and the one that stopped.
    pub(super) fn run_solo(&mut self, solo: &Solo<'l>) -> (u64, Option<Stuck>) {
        let mut count = 0;
        let mut values = std::mem::take(&mut self.values_of_thread);
        values.clear();
        values.resize(self.function.slots as usize, 0);
        let blocks = self.rows.blocks();
        let mut stuck = None;
        'all: for block in 0..blocks {
            for thread in solo.threads {
                if self.launch.limits.look(0).is_some() {
                    stuck = Some(Stuck { block, thread, at: solo.way.head, values: Vec::new() });
                    break 'all;
                }
                for &(slot, known) in &solo.inputs {
                    values[slot.index as usize] = known.at(slot, block, thread, self.rows);
                }
                if let Err(at) = self.run_thread(solo.way, block, &mut values, &mut count) {
                    let defined = solo.way.defined.iter();
                    let values = defined.map(|&slot| (slot, values[slot.index as usize])).collect();
                    stuck = Some(Stuck { block, thread, at, values });
                    break 'all;
                }
            }
        }
        self.values_of_thread = values;
        (count, stuck)
    }

    /// Takes a thread of a block through its way. `Err`: it stops at the start of this basic block.
    fn run_thread(
        &mut self,
        way: &Way,
        block: usize,
        values: &mut [u64],
        count: &mut u64,
    ) -> Result<(), u32> {
        let mut at = way.head;
        for turn in 1..=FUEL {
            let code = &self.function.blocks[at as usize];
            let kept = &way.kept[&at];
            let before: SmallVec<[u64; 8]> = kept.iter().map(|slot| values[slot.index as usize]).collect();
            for op in &code.ops {
                if self.run_op(op, block, values).is_none() {
                    kept.iter().zip(before).for_each(|(slot, value)| values[slot.index as usize] = value);
                    return Err(at);
                }
            }
            *count += code.cost;
            let next = match code.terminator {
                Terminator::Jump(next) => next,
                Terminator::Branch { pred, negated, taken, otherwise } => {
                    if holds(Guard { slot: pred, negated }, values) { taken } else { otherwise }
                }
                _ => return Err(at),
            };
            at = next.0;
            if at == way.join {
                return Ok(());
            }
            if turn.is_multiple_of(TURN) {
                std::thread::yield_now();
            }
        }
        Err(at)
    }

    /// Executes an operation. `None`: it cannot be done here, and has done nothing.
    fn run_op(&mut self, op: &Op, block: usize, values: &mut [u64]) -> Option<()> {
        if op.guard.is_some_and(|guard| !holds(guard, values)) {
            return Some(());
        }
        match &op.kind {
            Kind::Pure(pure) => compute(pure, values),
            Kind::Link(link) => compute(&link.pure, values),
            &Kind::Param { dst, offset, bytes, signed } => {
                set(values, dst, param(self.launch, offset, bytes, signed))
            }
            &Kind::AddressOf { dst, base, offset } => {
                let start = if matches!(base, Base::Shared) { shared_base(0) } else { 0 };
                set(values, dst, offset.wrapping_add(start));
            }
            Kind::Simple(op) => match *op {
                SimpleOp::Copy { dst, src } => set(values, dst, values[src.index as usize]),
                SimpleOp::Not { dst, src } => set(values, dst, values[src.index as usize] ^ 1),
                SimpleOp::Resize { dst, src, bits, signed } => {
                    let (value, shift) = (values[src.index as usize], 64 - bits);
                    let extended = ((value << shift) as i64 >> shift) as u64;
                    set(values, dst, if signed { extended } else { value << shift >> shift });
                }
                SimpleOp::Offset { dst, src, addend } => {
                    set(values, dst, values[src.index as usize].wrapping_add(addend as u64));
                }
                SimpleOp::Fence { semantics } => execute_fence(semantics.order),
                _ => return None,
            },
            Kind::Load(load) | Kind::LoadStrong(load) => {
                let bytes = load.bytes * load.dst.len() as u32;
                let (at, _) = self.place(&load.address, bytes, (false, op.span), block, values)?;
                let strong = matches!(op.kind, Kind::LoadStrong(_));
                // SAFETY: the place has so many bytes.
                let words = unsafe { if strong { read_strong(at, bytes) } else { read_words(at, bytes) } };
                for (index, slot) in load.dst.iter().enumerate() {
                    let Some(slot) = *slot else { continue };
                    set(values, slot, element(&words, index, load.bytes, load.signed));
                }
                if strong && load.semantics.order.acquires() {
                    fence(Ordering::Acquire);
                }
            }
            Kind::PureStore(both) => {
                compute(&both.pure, values);
                self.store(&both.store, false, op.span, block, values)?;
            }
            Kind::Store(store) => self.store(store, false, op.span, block, values)?,
            Kind::StoreStrong(store) => self.store(store, true, op.span, block, values)?,
            Kind::Memory(memory) => match &**memory {
                MemoryOp::Atomic(atomic) => self.update(atomic, op.span, block, values)?,
                _ => return None,
            },
            _ => return None,
        }
        Some(())
    }

    fn store(&mut self, store: &Store, strong: bool, span: Span, block: usize, values: &[u64]) -> Option<()> {
        let bytes = store.bytes * store.src.len() as u32;
        let (at, _) = self.place(&store.address, bytes, (true, span), block, values)?;
        let words: Words =
            side_by_side(store.src.len(), store.bytes, |index| values[store.src[index].index as usize]);
        if strong && store.semantics.order.releases() {
            fence(Ordering::Release);
        }
        // SAFETY: the place has so many bytes.
        unsafe { if strong { write_strong(at, bytes, &words) } else { write_words(at, bytes, &words) } }
        Some(())
    }

    fn update(&mut self, atomic: &Atomic, span: Span, block: usize, values: &mut [u64]) -> Option<()> {
        let bytes = atomic.ty.bytes();
        let (at, own) = self.place(&atomic.address, bytes, (true, span), block, values)?;
        let (a, b) = (values[atomic.a.index as usize], atomic.b.map_or(0, |b| values[b.index as usize]));
        let update = Update::of(atomic, own);
        // SAFETY: the place has so many bytes, and is aligned to them.
        let old = unsafe { update_atomically(at, bytes, |old| update.apply(old, a, b)) };
        if let Some(dst) = atomic.dst {
            set(values, dst, old);
        }
        Some(())
    }

    /// Where the host has the bytes of an access, and whether they are in the block's shared memory.
    fn place(
        &mut self,
        address: &Address,
        bytes: u32,
        (write, span): (bool, Span),
        block: usize,
        values: &[u64],
    ) -> Option<(*mut u8, bool)> {
        let at = match address.base {
            Base::Slot(slot) => slot.width.truncate(values[slot.index as usize].wrapping_add(address.offset)),
            Base::Zero => address.offset,
            Base::Shared => address.offset.wrapping_add(shared_base(0)),
            _ => return None,
        };
        let bytes = u64::from(bytes);
        if !at.is_multiple_of(bytes) {
            return None;
        }
        let end = at.checked_add(bytes)?;
        if self.places.is_empty() {
            self.places.resize(self.code.accesses, None);
        }
        let known = self.places[address.place].and_then(|region| region.holding(at, end));
        let region = match known {
            Some(region) => region,
            None => {
                let region = self.region(&Request { space: address.space, bytes, write, span }, at, at)?;
                if region.base >= HEAP_BASE || region.passing {
                    return None;
                }
                self.places[address.place] = Some(region);
                region
            }
        };
        // SAFETY: the region was found for the address, and has a copy of it for each block.
        let place = unsafe { region.at(at) }.wrapping_add(block * region.stride);
        Some((place, region.stride != 0))
    }
}

impl Known {
    /// The value in a thread of a block.
    pub fn at(self, slot: SlotRef, block: usize, thread: usize, rows: LaneRows) -> u64 {
        match self {
            Known::Affine(affine) => {
                let of_block = affine.block_stride.wrapping_mul(block as u64);
                slot.width.truncate(affine.at(thread, rows).wrapping_add(of_block))
            }
            Known::Pattern(lanes) => u64::from(!(lanes & Mask::single(thread)).is_empty()),
            // SAFETY: the array has an element for each thread.
            Known::Array(array) => unsafe { load(array, slot.width, block * rows.block_lanes() + thread) },
        }
    }
}

fn holds(guard: Guard, values: &[u64]) -> bool {
    (values[guard.slot.index as usize] != 0) != guard.negated
}

fn set(values: &mut [u64], slot: SlotRef, value: u64) {
    values[slot.index as usize] = slot.width.truncate(value);
}

fn compute(op: &Pure, values: &mut [u64]) {
    let mut sources = [0; MAX_SOURCES];
    for (source, slot) in sources.iter_mut().zip(op.src()) {
        *source = values[slot.index as usize];
    }
    let results = (op.sem)(&op.picks, &sources[..op.sources]);
    for (dst, result) in op.dst.iter().zip(results) {
        if let Some(dst) = dst {
            set(values, *dst, result);
        }
    }
}
