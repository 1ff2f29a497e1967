//! A race: its two accesses, and whether they write the same value.

use isa::Space;
use machine::{AccessEvent, AccessKind, LaneAccess};

use crate::block::WARP;
use crate::now::Meeting;
use crate::place::Extents;
use crate::release::NearMiss;
use crate::shadow::Record;

/// Two conflicting accesses that nothing orders.
pub(crate) struct Race {
    pub earlier: Record,
    pub later: LaneAccess,
    pub later_place: u32,
    /// An address that both access.
    pub address: u64,
    pub space: Space,
    /// Both write the same value there.
    pub same_value: bool,
    /// Both are of one instruction of one warp; the hardware performs one of them.
    pub together: bool,
    /// They are ordered, but no proxy fence is between them.
    pub proxies: bool,
    pub miss: Option<NearMiss>,
}

/// A race of a thread's access with an earlier one, at an address.
pub(crate) fn found(
    (earlier, address, proxies): Meeting,
    lane: &LaneAccess,
    place: u32,
    misses: &[NearMiss],
    event: Option<(&AccessEvent, usize)>,
    extents: Extents,
) -> Race {
    let twin = event.and_then(|(event, at)| twin(event, at, &earlier, address, extents));
    Race {
        earlier,
        later: *lane,
        later_place: place,
        address,
        space: lane.space,
        same_value: event.is_some_and(|(event, at)| is_same_value(event, at, twin, address)),
        together: twin
            .is_some_and(|twin| twin.block == lane.block && twin.thread / WARP == lane.thread / WARP),
        proxies,
        miss: misses.iter().find(|miss| miss.clock.knows(earlier.stamp())).cloned(),
    }
}

/// The access in the event, before index `at`, that the earlier record belongs to, if there is one.
fn twin<'a>(
    event: &AccessEvent<'a>,
    at: usize,
    earlier: &Record,
    address: u64,
    extents: Extents,
) -> Option<&'a LaneAccess> {
    let key = |lane: &LaneAccess| (extents.index(lane.block), lane.thread);
    let of_earlier = (earlier.block, u32::from(earlier.thread));
    // The lanes stand in this order (`AccessEvent::lanes`), so that many conflicts of one event are looked up fast.
    let before = &event.lanes[..at];
    debug_assert!(before.is_sorted_by_key(key), "the lanes of an access in another order");
    let first = before.partition_point(|lane| key(lane) < of_earlier);
    let mut own = before[first..].iter().take_while(|lane| key(lane) == of_earlier);
    own.find(|other| other.address <= address && address < other.address + other.bytes)
}

/// Whether access `at` of the event and an earlier one are weak stores of the same value to the byte at `address`. The earlier one is
/// `twin`, or was made before the event.
fn is_same_value(event: &AccessEvent, at: usize, twin: Option<&LaneAccess>, address: u64) -> bool {
    if !matches!(event.kind, AccessKind::Store | AccessKind::MatrixStore) {
        return false;
    }
    let lane = &event.lanes[at];
    let word = address / 4 * 4;
    let word_of = |lane: &LaneAccess, value: u128| {
        let shift = word as i64 - lane.address as i64;
        let value = if shift >= 0 { value >> (8 * shift.min(15)) } else { value << (-8 * shift) };
        value as u32
    };
    let size = (lane.address + lane.bytes - word.max(lane.address)).min(4);
    let offset = lane.address.saturating_sub(word).min(3);
    let mask = ((u64::from(u32::MAX) >> (32 - 8 * size.min(4))) << (8 * offset)) as u32;
    let Some(new) = event.values.stored(lane) else { return false };
    let (old, from) = match twin {
        Some(other) => (event.values.stored(other), other),
        None => (event.values.memory(lane), lane),
    };
    old.is_some_and(|old| word_of(from, old) & mask == word_of(lane, new) & mask)
}
