//! initcheck: how values that nobody wrote pass through operations on registers.

use std::collections::HashMap;

use isa::Space;
use vm::{LaneAccess, OperationEvent, OperationKind};

use super::{LANES, LoadedCells, Matter, Taint, Use, Values};

impl Values {
    /// Threads execute an operation.
    pub fn operation(&mut self, event: &OperationEvent) {
        if !self.are_any_undefined() {
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
            OperationKind::Defined
                if let Some(cells) = self.cells.take_if(|load| load.span == event.span) =>
            {
                let LoadedCells { origin, undefined, .. } = cells;
                self.define(event, |index, lane| {
                    let is_undefined = undefined.contains(&(event.lanes.who(lane).1, index as u32));
                    Taint { origin, bytes: if is_undefined { 0xf } else { 0 } }
                });
            }
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

pub(super) fn each_lane(words: &[u64], mut f: impl FnMut(usize)) {
    for (word, &bits) in words.iter().enumerate() {
        let mut bits = bits;
        while bits != 0 {
            f(word * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}
