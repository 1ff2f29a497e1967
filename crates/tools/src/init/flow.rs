//! initcheck: how operations on registers propagate undefined bits.

use std::collections::HashMap;

use isa::Space;
use machine::{LaneAccess, OperationEvent, OperationKind};

use super::trial::{depends, depends_on_lanes};
use super::{LANES, LoadedCells, Matter, Taint, Values, low};

type Lanes = Box<[Taint; LANES]>;

impl Values {
    /// Threads execute an operation.
    pub fn operation(&mut self, event: &OperationEvent) {
        if !self.are_any_undefined() {
            return;
        }
        let key = |slot: u32| (event.gang, event.window, slot);
        for slot in event.decides {
            let Some(lanes) = self.registers.get(&key(*slot)).cloned() else { continue };
            let matter = if event.kind == OperationKind::Decide { Matter::Decides } else { Matter::Address };
            each_lane(event.lanes.words(), |lane| {
                if lanes[lane].is_any() {
                    self.matters_to(lanes[lane], matter, event.span, event.lanes.who(lane), None);
                }
            });
        }
        let sources: Vec<Option<Lanes>> =
            event.uses.iter().map(|slot| self.registers.get(&key(*slot)).cloned()).collect();
        let tainted = sources.iter().any(Option::is_some);
        let of = |source: usize, lane: usize| sources[source].as_ref().map_or(Taint::default(), |t| t[lane]);
        match event.kind {
            OperationKind::CopyMemory => {}
            OperationKind::Store { bytes } if tainted => self.store(event, bytes, &of),
            OperationKind::StoreMatrix if tainted => self.store_rows(event, &of),
            OperationKind::StoreMatrix | OperationKind::Store { .. } => {}
            OperationKind::Defined
                if let Some(cells) = self.cells.take_if(|load| load.span == event.span) =>
            {
                let LoadedCells { origin, undefined, .. } = cells;
                self.define(event, |index, lane| {
                    let is_undefined = undefined.contains(&(event.lanes.who(lane).1, index as u32));
                    Taint { origin, padding: false, bits: if is_undefined { low(32) } else { 0 } }
                });
            }
            OperationKind::Atomic => {
                if tainted {
                    self.combine(event, &of);
                }
                self.define(event, |_, _| Taint::default());
            }
            OperationKind::Decide | OperationKind::Defined => self.define(event, |_, _| Taint::default()),
            OperationKind::Load { bytes } => self.load(event, bytes),
            OperationKind::LoadMatrix => {
                let loaded = std::mem::take(&mut self.loaded);
                self.define(event, |_, lane| {
                    let of_warp = loaded.iter().find(|(row, ..)| is_of_warp(row, event.lanes.who(lane)));
                    of_warp.map_or(Taint::default(), |(.., taint)| taint.whole())
                });
            }
            OperationKind::Shuffle => {
                let sources = std::mem::take(&mut self.sources);
                let absent = std::mem::take(&mut self.absent);
                self.define(event, |_, lane| {
                    let who = event.lanes.who(lane);
                    if let Some(&absent) = absent.get(&who) {
                        return absent;
                    }
                    let source = sources.get(&who).copied().unwrap_or(lane as u32 % 32);
                    if tainted { of(0, lane / 32 * 32 + source as usize) } else { Taint::default() }
                });
            }
            _ if !tainted => self.define(event, |_, _| Taint::default()),
            OperationKind::Copy { bits } => self.define(event, |_, lane| of(0, lane).part(0, bits)),
            OperationKind::Pack { bits } => {
                let uses = event.uses.len();
                self.define(event, |_, lane| {
                    let part = |i: usize| of(i, lane).part(0, bits).up(i as u32 * bits);
                    (0..uses).fold(Taint::default(), |all, i| all.or(part(i)))
                });
            }
            OperationKind::Unpack { bits } => {
                self.define(event, |index, lane| of(0, lane).part(index as u32 * bits, bits));
            }
            OperationKind::Collective => self.collective(event, &of),
            OperationKind::Compute => {
                let uses = event.uses.len();
                self.define(event, |index, lane| {
                    let all = (0..uses).fold(Taint::default(), |all, source| all.or(of(source, lane)));
                    if !all.is_any() {
                        return all;
                    }
                    let bits = depends(event, index, lane, |source| of(source, lane).bits);
                    Taint { bits, ..all.whole() }
                });
            }
        }
    }

    /// Gives the results of a load the taints of the memory that it read.
    fn load(&mut self, event: &OperationEvent, bytes: u32) {
        let loaded = std::mem::take(&mut self.loaded);
        let found: HashMap<([u32; 3], u32), (u64, Taint)> =
            loaded.iter().map(|(l, missing, taint)| ((l.block, l.thread), (*missing, *taint))).collect();
        self.define(event, |index, lane| {
            if found.is_empty() {
                return Taint::default();
            }
            let Some(&(missing, taint)) = found.get(&event.lanes.who(lane)) else { return Taint::default() };
            let missing = missing.checked_shr(index as u32 * bytes).unwrap_or(0) & low(bytes);
            let bits =
                (0..8).filter(|byte| missing >> byte & 1 != 0).fold(0, |all, byte| all | 0xff << (8 * byte));
            Taint { bits, padding: taint.padding && missing != low(bytes), ..taint }
        });
    }

    /// Propagates taints through an operation on the lanes of a warp, such as a vote or a reduction.
    fn collective(&mut self, event: &OperationEvent, of: &impl Fn(usize, usize) -> Taint) {
        let (uses, words) = (event.uses.len(), event.lanes.words());
        let active = |lane: usize| words[lane / 64] >> (lane % 64) & 1 != 0;
        self.define(event, |_, lane| {
            let first = lane / 32 * 32;
            let lanes = (first..first + 32).filter(|&lane| active(lane));
            let all = lanes.flat_map(|lane| (0..uses).map(move |source| (source, lane)));
            let all = all.fold(Taint::default(), |sum, (source, lane)| sum.or(of(source, lane))).whole();
            if !all.is_any() || uses != 1 {
                return all;
            }
            let undefined =
                |of_warp: usize| if active(first + of_warp) { of(0, first + of_warp).bits } else { 0 };
            Taint { bits: depends_on_lanes(event, lane, undefined), ..all }
        });
    }

    /// Sets the taints of the results, by result index and lane.
    fn define(&mut self, event: &OperationEvent, taint: impl Fn(usize, usize) -> Taint) {
        let guards = event.guard.and_then(|guard| {
            let lanes = self.registers.get(&(event.gang, event.window, guard.slot))?;
            Some((guard.lanes, lanes.clone()))
        });
        for (index, slot) in event.defs.iter().enumerate() {
            let Some(slot) = slot else { continue };
            let key = (event.gang, event.window, *slot);
            let mut lanes = self.registers.get(&key).cloned();
            let before = guards.is_some().then(|| lanes.clone()).flatten();
            let is_predicate = event.predicates >> index.min(31) & 1 != 0;
            let mut set = |lane: usize, taint: Taint| {
                let bits = if is_predicate { taint.bits & 1 } else { taint.bits };
                if bits != 0 {
                    let lanes = lanes.get_or_insert_with(|| Box::new([Taint::default(); LANES]));
                    lanes[lane] = Taint { bits, ..taint };
                } else if let Some(lanes) = &mut lanes {
                    lanes[lane] = Taint::default();
                }
            };
            each_lane(event.lanes.words(), |lane| set(lane, taint(index, lane)));
            if let Some((all, guards)) = &guards {
                each_lane(all.words(), |lane| {
                    // The operation runs or not: bits that are the same either way are defined.
                    let guard = guards[lane];
                    if guard.is_any() {
                        let old = before.as_ref().map_or(Taint::default(), |before| before[lane]);
                        let differs = result(event, index, lane)
                            .map_or(u64::MAX, |new| new ^ event.previous(index, lane));
                        set(lane, Taint { bits: differs, ..guard }.or(taint(index, lane)).or(old));
                    }
                });
            }
            match lanes {
                Some(lanes) if lanes.iter().any(|taint| taint.is_any()) => {
                    self.registers.insert(key, lanes);
                }
                Some(_) => drop(self.registers.remove(&key)),
                None => {}
            }
        }
    }

    /// A store of registers, some of which have undefined bits.
    fn store(&mut self, event: &OperationEvent, bytes: u32, of: &impl Fn(usize, usize) -> Taint) {
        let stored: HashMap<([u32; 3], u32), LaneAccess> =
            self.stored.iter().map(|lane| ((lane.block, lane.thread), *lane)).collect();
        each_lane(event.lanes.words(), |lane| {
            let who = event.lanes.who(lane);
            for element in 0..event.uses.len() {
                let taint = of(element, lane).part(0, 8 * bytes);
                if !taint.is_any() {
                    continue;
                }
                // If the checker does not follow memory, the value cannot be followed after the store.
                let Some(access) = stored.get(&who).filter(|_| self.follows_memory) else {
                    self.matters_to(taint, Matter::Output, event.span, who, None);
                    continue;
                };
                if access.space == Space::Global && !taint.padding {
                    self.matters(taint, Matter::Output, event.span, access);
                } else {
                    let address = access.address + u64::from(element as u32 * bytes);
                    self.taint(&LaneAccess { address, ..*access }, taint.bytes().into(), taint);
                }
            }
        });
    }

    /// A store of matrix rows from the lanes of a warp, some of which have undefined bits.
    fn store_rows(&mut self, event: &OperationEvent, of: &impl Fn(usize, usize) -> Taint) {
        let mut warps: Vec<(([u32; 3], u32), Taint)> = Vec::new();
        each_lane(event.lanes.words(), |lane| {
            let all = (0..event.uses.len()).fold(Taint::default(), |all, source| all.or(of(source, lane)));
            let (block, thread) = event.lanes.who(lane);
            let warp = (block, thread / 32);
            if all.is_any() && !warps.iter().any(|(known, _)| *known == warp) {
                warps.push((warp, all.whole()));
            }
        });
        for row in std::mem::take(&mut self.stored) {
            let Some((_, taint)) =
                warps.iter().find(|((block, warp), _)| is_of_warp(&row, (*block, warp * 32)))
            else {
                continue;
            };
            if row.space == Space::Global {
                self.matters(*taint, Matter::Output, event.span, &row);
                continue;
            }
            for offset in (0..row.bytes).step_by(64) {
                let (address, bytes) = (row.address + offset, (row.bytes - offset).min(64));
                self.taint(&LaneAccess { address, bytes, ..row }, low(bytes as u32), *taint);
            }
        }
    }

    /// An atomic operation whose operands have undefined bits.
    fn combine(&mut self, event: &OperationEvent, of: &impl Fn(usize, usize) -> Taint) {
        let combined: HashMap<([u32; 3], u32), LaneAccess> =
            self.stored.iter().map(|lane| ((lane.block, lane.thread), *lane)).collect();
        each_lane(event.lanes.words(), |lane| {
            let who = event.lanes.who(lane);
            let all = (0..event.uses.len()).fold(Taint::default(), |all, source| all.or(of(source, lane)));
            if all.is_any() {
                let address = combined.get(&who).map(|access| access.address);
                self.matters_to(all, Matter::Combined, event.span, who, address);
            }
        });
    }
}

/// Whether the row's address comes from a thread in the same warp as `thread` of `block`.
fn is_of_warp(row: &LaneAccess, (block, thread): ([u32; 3], u32)) -> bool {
    row.block == block && row.thread / 32 == thread / 32
}

/// The result of an operation, if the event can compute it.
fn result(event: &OperationEvent, index: usize, lane: usize) -> Option<u64> {
    match event.kind {
        OperationKind::Copy { bits } => Some(event.value(0, lane) & low(bits)),
        OperationKind::Compute => {
            let values: Vec<u64> = (0..event.uses.len()).map(|source| event.value(source, lane)).collect();
            event.compute(&values).map(|results| results[index.min(1)])
        }
        _ => None,
    }
}

pub(super) fn each_lane(words: &[u64], mut f: impl FnMut(usize)) {
    for (word, &bits) in words.iter().enumerate() {
        let mut bits = bits;
        while bits != 0 {
            f(word * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}
