//! mbarrier objects: barriers in shared memory (PTX ISA, "mbarrier").
//!
//! A wait is a retry: if the phase is not complete, the thread yields after `test_wait` or `try_wait`.

use diag::Span;
use ir::MbarrierOp;
use isa::Space;
use machine::FaultKind;
use machine::mask::{GANG_LANES, Mask, WARP_LANES};
use smallvec::SmallVec;

use super::addresses::address_of;
use super::copy::ranks;
use super::request::{Request, Resolved};
use super::{Active, Execute, Gang, Step};
use crate::code::Address;
use crate::registers::SlotRef;
use crate::shared::Shared;

type Mbarrier = ir::Mbarrier<SlotRef, Address>;

/// Bytes of the object, and its alignment.
const BYTES: u64 = 8;
/// The greatest number of arrivals of a phase.
const MOST_ARRIVALS: u64 = (1 << 20) - 1;
/// The greatest number of arrivals of a phase of an object with reports.
const MOST_ARRIVALS_WITH_REPORTS: u64 = (1 << 9) - 1;
/// The greatest number of bytes that a phase can wait for.
const MOST_TRANSACTIONS: i64 = (1 << 20) - 1;
/// How often every thread of a CTA may test in vain, while no mbarrier object changes, before the CTA counts as
/// blocked.
const PATIENCE: u32 = 1 << 12;

/// The state of an object. Its representation in memory is opaque to kernels, except for the count that
/// `pending_count` extracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Arrivals that a phase waits for; 0 if the memory holds no object.
    expected: u64,
    /// Arrivals that are still missing.
    pending: u64,
    /// Bytes that are still missing; negative while more bytes have arrived than were expected.
    transactions: i64,
    /// Number of the phase, modulo 8.
    phase: u64,
    /// Reports of asynchronous operations; only objects of `.layout::v1` have them.
    reports: Option<Reports>,
}

/// Whether asynchronous operations have reported something to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reports {
    /// Something was reported in this phase.
    current: bool,
    /// Something was reported in the previous phase.
    last: bool,
    /// Parity of the conditional phase.
    conditional: u64,
}

impl State {
    fn new(count: u64, reports: bool) -> State {
        let reports = reports.then(Reports::default);
        State { expected: count, pending: count, transactions: 0, phase: 0, reports }
    }

    /// The representation in memory: 20 bits of expected arrivals, 20 of pending arrivals, 21 of pending bytes, 3 of
    /// the phase. In an object with reports, 9 bits hold each count of arrivals and other bits hold the reports. Its
    /// pending field looks greater than its expected field, which cannot happen otherwise and so identifies the
    /// layout.
    fn unpack(word: u64) -> State {
        let (expected, pending) = (word & MOST_ARRIVALS, word >> 20 & MOST_ARRIVALS);
        let reports = (pending >> 19 > expected >> 19).then_some(Reports {
            current: expected >> 9 & 1 != 0,
            last: expected >> 10 & 1 != 0,
            conditional: expected >> 11 & 1,
        });
        let mask = if reports.is_some() { MOST_ARRIVALS_WITH_REPORTS } else { MOST_ARRIVALS };
        State {
            expected: expected & mask,
            pending: pending & mask,
            transactions: ((word << 3) as i64) >> 43,
            phase: word >> 61,
            reports,
        }
    }

    fn pack(self) -> u64 {
        let transactions = self.transactions as u64 & 0x1f_ffff;
        let reports = self.reports.map_or(0, |Reports { current, last, conditional }| {
            u64::from(current) << 9 | u64::from(last) << 10 | conditional << 11 | 1 << 39
        });
        self.expected | self.pending << 20 | reports | transactions << 40 | self.phase << 61
    }

    /// Whether the memory holds an object.
    fn exists(&self) -> bool {
        self.expected != 0 || self.pending != 0
    }

    /// Completes the phase if no arrivals and no bytes are missing.
    fn advance(&mut self) {
        if self.pending == 0 && self.transactions == 0 {
            self.pending = self.expected;
            self.phase = (self.phase + 1) & 7;
            if let Some(Reports { current, last, conditional }) = &mut self.reports {
                *conditional ^= u64::from(!*current);
                *last = std::mem::take(current);
            }
        }
    }
}

/// The predicted effect of an operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foreseen {
    /// Whether the memory holds an object.
    pub exists: bool,
    /// The operation completes the phase.
    pub completes: bool,
    /// The tested phase is complete.
    pub over: bool,
    /// How many later phases are complete, too.
    pub later: u32,
}

impl Execute for Mbarrier {
    #[inline(never)]
    fn execute(&self, gang: &mut Gang, active: &Active, shared: &mut Shared, span: Span) -> Step {
        let mut results = [0; GANG_LANES];
        let Some(address) = &self.address else {
            for lane in active.mask {
                let state = self.value.map_or(0, |slot| gang.registers.get(active.window, slot, lane));
                results[lane] = State::unpack(state).pending;
            }
            gang.write_results(self, active, &results);
            return Ok(());
        };
        if let MbarrierOp::ArriveAfterCopies { counted } = self.op {
            gang.copies.finish(active.mask);
            if counted {
                // Without `.noinc`, the instruction adds one pending arrival and then arrives: no net effect.
                return Ok(());
            }
        }
        let test = matches!(self.op, MbarrierOp::Test { .. });
        let mut reports = [0; GANG_LANES];
        let addresses = gang.addresses(address, active);
        let mut all = [0; GANG_LANES];
        for lane in active.mask {
            all[lane] = address_of(&addresses, lane);
        }
        let mut in_vain = Mask::EMPTY;
        for lane in active.mask {
            let value = self.value.map_or(1, |slot| gang.registers.get(active.window, slot, lane));
            let blocks = self.blocks.map(|slot| gang.registers.get(active.window, slot, lane));
            for rank in ranks(blocks) {
                let at = gang.in_block(all[lane], address.space, rank);
                results[lane] = gang.apply_mbarrier(self.op, value, address.space, at, lane, shared, span)?;
            }
            if test {
                (results[lane], reports[lane]) = (results[lane] & OVER, results[lane] >> 1);
                if results[lane] == 0 {
                    in_vain.insert(lane);
                }
            }
        }
        gang.write_results(self, active, &results);
        if let Some(report) = self.report {
            gang.write_lanes(report, active, |_, lane| reports[lane]);
        }
        if !in_vain.is_empty() && gang.waits_for_long(shared, in_vain) && shared.waiting.blocked.is_none() {
            let note = "every thread of the block waits, and no mbarrier object changes any more";
            shared.waiting.blocked = Some(gang.fault(FaultKind::Deadlock, span, in_vain, None, note));
        }
        Ok(())
    }
}

impl Gang<'_> {
    /// Performs an operation on the object at an address and returns its result.
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
        // SAFETY: the place holds 8 bytes of shared memory of the cluster, which only this host thread accesses; no
        // reference points there.
        let word = unsafe { place.read_unaligned() };
        match apply(op, word, value) {
            Ok((new, result)) => {
                // SAFETY: as above.
                unsafe { place.write_unaligned(new) }
                if new != word {
                    shared.note_change();
                } else if test && result & OVER != 0 {
                    shared.waiting.reset();
                }
                Ok(result)
            }
            Err(note) => Err(self.fault(FaultKind::Mbarrier, span, Mask::single(lane), None, note)),
        }
    }

    /// Predicts the effect of an operation on the object at an address, without changing it. `words` holds the state
    /// of each object after the operations predicted so far. `None` if the access would fault.
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
                // SAFETY: the place holds 8 bytes of the CTA's memory or of a live allocation; no reference points
                // there.
                words.push((address, unsafe { at.cast::<u64>().read_unaligned() }));
                words.len() - 1
            }
        };
        let before = State::unpack(words[place].1);
        let exists = before.exists();
        let Ok((word, result)) = apply(op, words[place].1, value) else {
            return Some(Foreseen { exists, completes: false, over: false, later: 0 });
        };
        words[place].1 = word;
        let after = State::unpack(word);
        let changes = !matches!(op, MbarrierOp::Init { .. } | MbarrierOp::Invalidate);
        let over = matches!(op, MbarrierOp::Test { .. }) && result & OVER != 0;
        // A state identifies its phase. A parity always refers to the latest complete phase.
        let later = match op {
            MbarrierOp::Test { parity: false, .. } if over => {
                before.phase.wrapping_sub(value >> 61).wrapping_sub(1) & 7
            }
            _ => 0,
        };
        let completes = changes && after.phase != before.phase;
        Some(Foreseen { exists, completes, over, later: later as u32 })
    }

    fn write_results(&mut self, op: &Mbarrier, active: &Active, results: &[u64; GANG_LANES]) {
        if let Some(dst) = op.dst {
            self.write_lanes(dst, active, |_, lane| results[lane]);
        }
    }

    /// Notes that these lanes have tested in vain. Returns whether all threads of the CTA have done so for long.
    pub(super) fn waits_for_long(&self, shared: &mut Shared, lanes: Mask) -> bool {
        let warps = shared.alive.len();
        let blocked: Vec<u32> = (0..warps).map(|warp| shared.at_barriers(warp)).collect();
        let Shared { waiting, alive, .. } = shared;
        waiting.lanes.resize(warps, 0);
        let first = self.threads.first_thread as usize / WARP_LANES;
        for (warp, waiting) in waiting.lanes[first..].iter_mut().enumerate().take(GANG_LANES / WARP_LANES) {
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

/// Bit of the result of a test: the phase is complete. The next higher bit: something was reported in the last
/// complete phase.
const OVER: u64 = 1;

/// Computes the new state of an object and the operation's result, or the reason for a fault.
fn apply(op: MbarrierOp, word: u64, value: u64) -> Result<(u64, u64), &'static str> {
    match op {
        MbarrierOp::Init { reports: false } if !(1..=MOST_ARRIVALS).contains(&value) => {
            return Err("the number of arrivals is not from 1 to 1048575");
        }
        MbarrierOp::Init { reports: true } if !(1..=MOST_ARRIVALS_WITH_REPORTS).contains(&value) => {
            return Err("the number of arrivals of `.layout::v1` is not from 1 to 511");
        }
        MbarrierOp::Init { reports } => return Ok((State::new(value, reports).pack(), 0)),
        _ => {}
    }
    let mut state = State::unpack(word);
    if !state.exists() {
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
        MbarrierOp::Test { parity, conditional } => {
            let phase =
                state.reports.filter(|_| conditional).map_or(state.phase, |reports| reports.conditional);
            let over = if parity { phase & 1 != value & 1 } else { state.phase != value >> 61 };
            let last = state.reports.is_some_and(|reports| reports.last);
            return Ok((word, (u64::from(over) * OVER) | (u64::from(last) << 1)));
        }
        MbarrierOp::Report => match &mut state.reports {
            Some(reports) => reports.current = true,
            None => return Err("a copy reports to an mbarrier object that is not of `.layout::v1`"),
        },
        MbarrierOp::CheckLayout { reports } => {
            return Ok((word, (state.reports.is_some() == reports).into()));
        }
        // These need no object and are handled elsewhere.
        MbarrierOp::Init { .. } | MbarrierOp::PendingCount => {}
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

    const INIT: MbarrierOp = MbarrierOp::Init { reports: false };
    const STATE: MbarrierOp = MbarrierOp::Test { parity: false, conditional: false };
    const PARITY: MbarrierOp = MbarrierOp::Test { parity: true, conditional: false };

    #[test]
    fn states_keep_their_fields() {
        for transactions in [0, 1, -1, MOST_TRANSACTIONS, -MOST_TRANSACTIONS] {
            let state = State { transactions, phase: 6, ..State::new(MOST_ARRIVALS, false) };
            for pending in [0, 5, MOST_ARRIVALS] {
                let state = State { pending, ..state };
                assert_eq!(State::unpack(state.pack()), state);
            }
            let reports = [(false, true, 0), (true, false, 1), (true, true, 1)];
            for (current, last, conditional) in reports {
                let reports = Some(Reports { current, last, conditional });
                let state = State { expected: 511, pending: 7, reports, ..state };
                assert_eq!(State::unpack(state.pack()), state);
            }
        }
    }

    #[test]
    fn a_phase_ends_when_all_have_arrived_and_all_bytes_have_come() {
        let arrive = MbarrierOp::Arrive { drop: false, no_complete: false };
        let (word, _) = apply(INIT, 0, 2).unwrap();
        let (word, _) = apply(MbarrierOp::ArriveExpecting { drop: false }, word, 16).unwrap();
        let (word, first) = apply(arrive, word, 1).unwrap();
        let over = |word, state| apply(STATE, word, state).unwrap().1;
        assert_eq!(over(word, first), 0);
        let (word, _) = apply(MbarrierOp::CompleteTransactions, word, 16).unwrap();
        assert_eq!(over(word, first), 1);
        assert_eq!(apply(PARITY, word, 0).unwrap().1, 1);
        assert_eq!(apply(PARITY, word, 1).unwrap().1, 0);
        assert_eq!(State::unpack(word).pending, 2);
    }

    #[test]
    fn whoever_drops_out_is_not_waited_for_again() {
        let (word, _) = apply(INIT, 0, 2).unwrap();
        let (word, _) = apply(MbarrierOp::Arrive { drop: true, no_complete: true }, word, 1).unwrap();
        let (word, _) = apply(MbarrierOp::Arrive { drop: false, no_complete: false }, word, 1).unwrap();
        assert_eq!(State::unpack(word), State { phase: 1, ..State::new(1, false) });
    }

    #[test]
    fn a_phase_is_over_for_eight_phases() {
        let arrive = MbarrierOp::Arrive { drop: false, no_complete: false };
        let (mut word, _) = apply(INIT, 0, 1).unwrap();
        let first = word;
        for phase in 0..8 {
            let (_, over) = apply(STATE, word, first).unwrap();
            assert_eq!(over, u64::from(phase > 0), "{phase}");
            word = apply(arrive, word, 1).unwrap().0;
        }
    }

    #[test]
    fn misuse_is_found() {
        let arrive = MbarrierOp::Arrive { drop: false, no_complete: false };
        assert!(apply(arrive, 0, 1).is_err());
        let (word, _) = apply(INIT, 0, 1).unwrap();
        assert!(apply(arrive, word, 2).is_err());
        assert!(apply(MbarrierOp::Arrive { drop: false, no_complete: true }, word, 1).is_err());
        assert!(apply(INIT, 0, 0).is_err());
    }
}
