//! mbarrier objects: barriers in shared memory (PTX ISA, "mbarrier").
//!
//! Waiting is trying again: `test_wait` and `try_wait` give the thread's turn away when the phase is not over.

use diag::Span;
use ir::MbarrierOp;
use isa::Space;
use smallvec::SmallVec;

use super::access::{Request, Resolved};
use super::addresses::address_of;
use super::copy::ranks;
use super::{Active, Chunk, Step};
use crate::code::Mbarrier;
use crate::cta::Shared;
use crate::fault::{Fault, FaultKind};
use crate::mask::{CHUNK_LANES, Mask, WARP_LANES};

/// Bytes of the object, and its alignment.
const BYTES: u64 = 8;
/// The greatest number of arrivals of a phase.
const MOST_ARRIVALS: u64 = (1 << 20) - 1;
/// The greatest number of bytes that a phase can wait for.
const MOST_TRANSACTIONS: i64 = (1 << 20) - 1;
/// How often every thread of a block tries in vain, while no mbarrier object changes, before the block counts as stuck.
const PATIENCE: u32 = 1 << 12;

/// The state of an object as it lies in memory: opaque to kernels, but for the count that `pending_count` takes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Arrivals that a phase waits for; 0 in what is no object.
    expected: u64,
    /// Arrivals that are missing.
    pending: u64,
    /// Bytes that are missing; negative while more have come than were expected.
    transactions: i64,
    /// Number of the phase, cut to 3 bits.
    phase: u64,
}

impl State {
    fn new(count: u64) -> State {
        State { expected: count, pending: count, transactions: 0, phase: 0 }
    }

    fn unpack(word: u64) -> State {
        State {
            expected: word & MOST_ARRIVALS,
            pending: word >> 20 & MOST_ARRIVALS,
            transactions: ((word << 3) as i64) >> 43,
            phase: word >> 61,
        }
    }

    fn pack(self) -> u64 {
        let transactions = self.transactions as u64 & 0x1f_ffff;
        self.expected | self.pending << 20 | transactions << 40 | self.phase << 61
    }

    /// The phase ends when nothing is missing any more.
    fn advance(&mut self) {
        if self.pending == 0 && self.transactions == 0 {
            self.pending = self.expected;
            self.phase = (self.phase + 1) & 7;
        }
    }
}

/// What an operation on an object will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foreseen {
    /// There is an object.
    pub exists: bool,
    /// Its phase ends.
    pub completes: bool,
    /// The phase that is looked at is over.
    pub over: bool,
    /// So many later ones are, too.
    pub later: u32,
}

/// Threads that wait at mbarrier objects in vain.
#[derive(Default)]
pub(crate) struct Waiting {
    /// By warp, the lanes that have tried in this round. A round is over when every thread has tried, or waits at a
    /// barrier.
    lanes: Vec<u32>,
    /// Rounds since any object changed.
    rounds: u32,
    /// The fault of a thread, if nobody helps the block: all its threads have tried for long.
    pub stuck: Option<Box<Fault>>,
}

impl Waiting {
    /// An object has changed, or a thread has gone on.
    pub fn reset(&mut self) {
        self.lanes.clear();
        self.rounds = 0;
        self.stuck = None;
    }
}

impl Chunk<'_> {
    #[inline(never)]
    pub(super) fn mbarrier(
        &mut self,
        op: &Mbarrier,
        active: &Active,
        shared: &mut Shared,
        span: Span,
    ) -> Step {
        let mut results = [0; CHUNK_LANES];
        let Some(address) = &op.address else {
            for lane in active.mask {
                let state = op.value.map_or(0, |slot| self.registers.get(active.window, slot, lane));
                results[lane] = State::unpack(state).pending;
            }
            self.write_results(op, active, &results);
            return Ok(());
        };
        if let MbarrierOp::ArriveAfterCopies { counted } = op.op {
            self.copies.finish(active.mask);
            if counted {
                // The arrival is one more than the phase waits for, and makes up for itself at once.
                return Ok(());
            }
        }
        let test = matches!(op.op, MbarrierOp::Test { .. });
        let addresses = self.addresses(address, active);
        let mut all = [0; CHUNK_LANES];
        for lane in active.mask {
            all[lane] = address_of(&addresses, lane);
        }
        let mut in_vain = Mask::EMPTY;
        for lane in active.mask {
            let value = op.value.map_or(1, |slot| self.registers.get(active.window, slot, lane));
            let blocks = op.blocks.map(|slot| self.registers.get(active.window, slot, lane));
            for rank in ranks(blocks) {
                let at = self.in_block(all[lane], address.space, rank);
                results[lane] = self.apply_mbarrier(op.op, value, address.space, at, lane, shared, span)?;
            }
            if test && results[lane] == 0 {
                in_vain.insert(lane);
            }
        }
        self.write_results(op, active, &results);
        if !in_vain.is_empty() && self.waits_for_long(shared, in_vain) && shared.waiting.stuck.is_none() {
            let note = "every thread of the block waits, and no mbarrier object changes any more";
            shared.waiting.stuck = Some(self.fault(FaultKind::Deadlock, span, in_vain, None, note));
        }
        Ok(())
    }

    /// Does an operation on the object at an address; returns its result.
    #[allow(clippy::too_many_arguments)] // an operation, its operands, and who asks for it
    pub(super) fn apply_mbarrier(
        &self,
        op: MbarrierOp,
        value: u64,
        space: Space,
        address: u64,
        lane: usize,
        shared: &mut Shared,
        span: Span,
    ) -> Step<u64> {
        let test = matches!(op, MbarrierOp::Test { .. });
        let request = Request { space, bytes: BYTES, write: !test, span };
        let place = match self.place(shared, &request, address) {
            Ok(Resolved::Host(at)) if shared.has(at) => at.cast::<u64>(),
            Ok(_) => return Err(self.access_fault(FaultKind::OutOfBounds, &request, lane, address)),
            Err(kind) => return Err(self.access_fault(kind, &request, lane, address)),
        };
        // SAFETY: the place holds 8 bytes of shared memory of the cluster, which this host thread alone touches; no reference
        // points there.
        let word = unsafe { place.read_unaligned() };
        match apply(op, word, value) {
            Ok((new, result)) => {
                // SAFETY: as above.
                unsafe { place.write_unaligned(new) }
                if new != word {
                    shared.note_change();
                } else if test && result != 0 {
                    shared.waiting.reset();
                }
                Ok(result)
            }
            Err(note) => Err(self.fault(FaultKind::Mbarrier, span, Mask::single(lane), None, note)),
        }
    }

    /// What an operation would do to the object at an address of a lane's shared memory: nothing if it would fault.
    pub(super) fn foresee_mbarrier(
        &self,
        op: MbarrierOp,
        value: u64,
        space: Space,
        address: u64,
        shared: &Shared,
        words: &mut SmallVec<[(u64, u64); 4]>,
    ) -> Option<Foreseen> {
        let place = match words.iter().position(|(at, _)| *at == address) {
            Some(place) => place,
            None => {
                let request = Request { space, bytes: BYTES, write: false, span: Span::default() };
                let Ok(Resolved::Host(at)) = self.place(shared, &request, address) else { return None };
                // SAFETY: the place holds 8 bytes of memory, of the block or of a live allocation; no reference points there.
                words.push((address, unsafe { at.cast::<u64>().read_unaligned() }));
                words.len() - 1
            }
        };
        let before = State::unpack(words[place].1);
        let exists = before.expected != 0 || before.pending != 0;
        let Ok((word, result)) = apply(op, words[place].1, value) else {
            return Some(Foreseen { exists, completes: false, over: false, later: 0 });
        };
        words[place].1 = word;
        let after = State::unpack(word);
        let changes = !matches!(op, MbarrierOp::Init | MbarrierOp::Invalidate);
        let over = matches!(op, MbarrierOp::Test { .. }) && result != 0;
        // A state names its phase, a parity always the latest that is over.
        let later = match op {
            MbarrierOp::Test { parity: false } if over => {
                before.phase.wrapping_sub(value >> 61).wrapping_sub(1) & 7
            }
            _ => 0,
        };
        let completes = changes && after.phase != before.phase;
        Some(Foreseen { exists, completes, over, later: later as u32 })
    }

    fn write_results(&mut self, op: &Mbarrier, active: &Active, results: &[u64; CHUNK_LANES]) {
        if let Some(dst) = op.dst {
            self.write_lanes(dst, active, |_, lane| results[lane]);
        }
    }

    /// Notes that these lanes have tried in vain. Have all threads of the block, for long?
    pub(super) fn waits_for_long(&self, shared: &mut Shared, lanes: Mask) -> bool {
        let warps = shared.alive.len();
        let blocked: Vec<u32> = (0..warps).map(|warp| shared.at_barriers(warp)).collect();
        let Shared { waiting, alive, .. } = shared;
        waiting.lanes.resize(warps, 0);
        let first = self.first_thread as usize / WARP_LANES;
        for (warp, waiting) in waiting.lanes[first..].iter_mut().enumerate().take(CHUNK_LANES / WARP_LANES) {
            *waiting |= lanes.warp(warp);
        }
        let tried = |warp: usize| waiting.lanes[warp] | blocked[warp];
        if (0..warps).all(|warp| alive[warp] & !tried(warp) == 0) {
            waiting.lanes.fill(0);
            waiting.rounds += 1;
        }
        waiting.rounds > PATIENCE
    }
}

/// What an operation makes of an object, and its result; or what is wrong.
fn apply(op: MbarrierOp, word: u64, value: u64) -> Result<(u64, u64), &'static str> {
    if op == MbarrierOp::Init {
        if !(1..=MOST_ARRIVALS).contains(&value) {
            return Err("the number of arrivals is not from 1 to 1048575");
        }
        return Ok((State::new(value).pack(), 0));
    }
    let mut state = State::unpack(word);
    if state.expected == 0 && state.pending == 0 {
        return Err("there is no mbarrier object here: nobody has called mbarrier.init");
    }
    let before = word;
    match op {
        MbarrierOp::Invalidate => return Ok((0, 0)),
        MbarrierOp::ExpectTransactions => expect(&mut state, value)?,
        MbarrierOp::CompleteTransactions => {
            state.transactions -= value as i64;
            if state.transactions < -MOST_TRANSACTIONS {
                return Err("more bytes have come than an mbarrier object can count");
            }
            state.advance();
        }
        MbarrierOp::Arrive { drop, no_complete } => {
            arrive(&mut state, value, drop)?;
            if no_complete && state.pending == 0 {
                return Err("mbarrier.arrive.noComplete completes the phase");
            }
            state.advance();
        }
        MbarrierOp::ArriveExpecting { drop } => {
            expect(&mut state, value)?;
            arrive(&mut state, 1, drop)?;
            state.advance();
        }
        MbarrierOp::ArriveAfterCopies { .. } => {
            arrive(&mut state, 1, false)?;
            state.advance();
        }
        MbarrierOp::Test { parity } => {
            let over = if parity { state.phase & 1 != value & 1 } else { state.phase != value >> 61 };
            return Ok((word, over.into()));
        }
        // Neither needs an object.
        MbarrierOp::Init | MbarrierOp::PendingCount => {}
    }
    Ok((state.pack(), before))
}

fn expect(state: &mut State, bytes: u64) -> Result<(), &'static str> {
    state.transactions += bytes as i64;
    if state.transactions > MOST_TRANSACTIONS {
        return Err("the phase expects more than 1048575 bytes");
    }
    Ok(())
}

fn arrive(state: &mut State, count: u64, drop: bool) -> Result<(), &'static str> {
    if count == 0 || count > state.pending {
        return Err("more threads arrive than the phase waits for");
    }
    state.pending -= count;
    if drop {
        state.expected -= count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_keep_their_fields() {
        for transactions in [0, 1, -1, MOST_TRANSACTIONS, -MOST_TRANSACTIONS] {
            let state = State { expected: MOST_ARRIVALS, pending: 5, transactions, phase: 6 };
            assert_eq!(State::unpack(state.pack()), state);
        }
    }

    #[test]
    fn a_phase_ends_when_all_have_arrived_and_all_bytes_have_come() {
        let arrive = MbarrierOp::Arrive { drop: false, no_complete: false };
        let (word, _) = apply(MbarrierOp::Init, 0, 2).unwrap();
        let (word, _) = apply(MbarrierOp::ArriveExpecting { drop: false }, word, 16).unwrap();
        let (word, first) = apply(arrive, word, 1).unwrap();
        let over = |word, state| apply(MbarrierOp::Test { parity: false }, word, state).unwrap().1;
        assert_eq!(over(word, first), 0);
        let (word, _) = apply(MbarrierOp::CompleteTransactions, word, 16).unwrap();
        assert_eq!(over(word, first), 1);
        assert_eq!(apply(MbarrierOp::Test { parity: true }, word, 0).unwrap().1, 1);
        assert_eq!(apply(MbarrierOp::Test { parity: true }, word, 1).unwrap().1, 0);
        assert_eq!(State::unpack(word).pending, 2);
    }

    #[test]
    fn whoever_drops_out_is_not_waited_for_again() {
        let (word, _) = apply(MbarrierOp::Init, 0, 2).unwrap();
        let (word, _) = apply(MbarrierOp::Arrive { drop: true, no_complete: true }, word, 1).unwrap();
        let (word, _) = apply(MbarrierOp::Arrive { drop: false, no_complete: false }, word, 1).unwrap();
        assert_eq!(State::unpack(word), State { expected: 1, pending: 1, transactions: 0, phase: 1 });
    }

    #[test]
    fn a_phase_is_over_for_eight_phases() {
        let arrive = MbarrierOp::Arrive { drop: false, no_complete: false };
        let (mut word, _) = apply(MbarrierOp::Init, 0, 1).unwrap();
        let first = word;
        for phase in 0..8 {
            let (_, over) = apply(MbarrierOp::Test { parity: false }, word, first).unwrap();
            assert_eq!(over, u64::from(phase > 0), "{phase}");
            word = apply(arrive, word, 1).unwrap().0;
        }
    }

    #[test]
    fn misuse_is_found() {
        let arrive = MbarrierOp::Arrive { drop: false, no_complete: false };
        assert!(apply(arrive, 0, 1).is_err());
        let (word, _) = apply(MbarrierOp::Init, 0, 1).unwrap();
        assert!(apply(arrive, word, 2).is_err());
        assert!(apply(MbarrierOp::Arrive { drop: false, no_complete: true }, word, 1).is_err());
        assert!(apply(MbarrierOp::Init, 0, 0).is_err());
    }
}
