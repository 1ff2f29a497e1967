//! Reports to an external observer: accesses of whole CTAs, operations on registers, function entries, and thread
//! exits.

use std::ops::ControlFlow;

use diag::Span;
use ir::{AccessKind, Extent, Start, Width};
use isa::Space;
use machine::mask::{Mask, WARP_LANES};
use machine::memory::resolve_generic;
use machine::{
    BlockAccess, BlockAddresses, Compute, EnterEvent, ExitEvent, Guard, LaneSet, LaunchObserver,
    OperationEvent,
};
use smallvec::SmallVec;

use super::watch::{Watcher, proceed};
use super::{Active, Gang, Step};
use crate::code::{Access, Flow, Op};
use crate::footprint::Touch;
use crate::registers::SlotRef;

/// The lanes from `first` on, shifted so that `first` becomes lane 0.
fn lanes_from(lanes: &Mask, first: usize) -> [u64; 16] {
    if first.is_multiple_of(64) {
        let words = &lanes.0[first / 64..];
        return std::array::from_fn(|word| words.get(word).copied().unwrap_or(0));
    }
    let pair = |lane: usize| [0, 32].map(|half| u64::from(lanes.lanes_from(lane + half)));
    std::array::from_fn(|word| {
        let [low, high] = pair(first + 64 * word);
        low | high << 32
    })
}

impl Watcher {
    /// Reports an access CTA by CTA. Returns the lanes of CTAs whose accesses must be reported lane by lane.
    pub(super) fn notify_blocks(
        &mut self,
        gang: &Gang,
        op: &Op,
        access: &Access,
        mask: Mask,
        active: &Active,
    ) -> Step<Mask> {
        let (Start::Address(address), Extent::Bytes(bytes), None) =
            (&access.start, &access.extent, access.multicast)
        else {
            return Ok(mask);
        };
        let is_plain = matches!(access.kind, AccessKind::Load | AccessKind::Store | AccessKind::Atomic);
        let rows = gang.registers.rows();
        let (block_lanes, blocks) = (rows.block_lanes(), rows.blocks());
        let are_warps = blocks == 1 || block_lanes.is_multiple_of(WARP_LANES);
        if !is_plain || gang.threads.first_thread != 0 || !are_warps || gang.launch.cluster_blocks() > 1 {
            return Ok(mask);
        }
        let bytes = u64::from(*bytes);
        let kind = access.kind;
        let is_generic = address.space == Space::Generic;
        let is_noted = self.footprint.is_some() && matches!(address.space, Space::Global | Space::Generic);
        let wants = |observer: &mut dyn LaunchObserver| observer.wants_block_access(kind, address.space);
        let is_wanted = self.accesses && (is_generic || self.observer.notify(wants));
        if !is_wanted && !is_noted {
            return Ok(Mask::EMPTY);
        }
        let even = gang.even(address, active);
        let mut each = Vec::new();
        let (space, offset) = match even {
            Ok(even) if is_generic => {
                let (space, inner) = resolve_generic(even.bounds.0);
                if resolve_generic(even.bounds.1.saturating_add(bytes)).0 != space {
                    return Ok(mask);
                }
                (space, even.bounds.0 - inner)
            }
            Ok(_) => (address.space, 0),
            Err(slot) => {
                each = std::mem::take(&mut self.addresses);
                each.resize(gang.threads.lanes, 0);
                gang.registers.peek(active.window, slot, &mut each);
                let bits = if slot.width == Width::W64 { u64::MAX } else { u32::MAX.into() };
                each.iter_mut().for_each(|at| *at = at.wrapping_add(address.offset) & bits);
                let mut space = address.space;
                if is_generic {
                    space = resolve_generic(each[mask.lowest().unwrap_or(0)]).0;
                    let mut same = true;
                    mask.for_each(|lane| {
                        let (of_lane, inner) = resolve_generic(each[lane]);
                        same &= of_lane == space;
                        each[lane] = inner;
                    });
                    if !same {
                        return Ok(mask);
                    }
                }
                (space, 0)
            }
        };
        let mut rest = Mask::EMPTY;
        let are_whole = blocks > 1 && mask.count() as usize == block_lanes * blocks;
        // The lanes of the CTA for which the observer requested a stop.
        let mut stopped = None;
        let mut footprint = self.footprint.take();
        let notify = |observer: &mut dyn LaunchObserver| {
            let is_wanted = is_wanted && (!is_generic || observer.wants_block_access(kind, space));
            if !is_wanted && (footprint.is_none() || space != Space::Global) {
                return;
            }
            for (block, &all) in gang.threads.block_masks.iter().enumerate() {
                let lanes = if are_whole { all } else { all & mask };
                if lanes.is_empty() {
                    continue;
                }
                let first = block * block_lanes;
                let threads = match block {
                    0 => lanes.0,
                    // All CTAs have the same number of threads.
                    _ if lanes == all => gang.threads.block_masks[0].0,
                    _ => lanes_from(&lanes, first),
                };
                let addresses = match &even {
                    Ok(even) => BlockAddresses::Even {
                        start: even.of_block(block).wrapping_sub(offset),
                        width: rows.width() as u32,
                        step: even.affine.step,
                        pitch: even.affine.pitch,
                    },
                    Err(_) => BlockAddresses::Each(&each[first..(first + block_lanes).min(each.len())]),
                };
                let event = BlockAccess {
                    kind,
                    semantics: access.semantics,
                    span: op.span,
                    block: gang.ctaid_of(block),
                    space,
                    bytes,
                    threads: &threads,
                    addresses,
                };
                if let Some(footprint) = footprint.as_mut().filter(|_| space == Space::Global) {
                    let touch = Touch::of(kind, access.semantics, bytes);
                    event.parts(|address, bytes| {
                        footprint.note(gang.launch, gang.threads.ctaids[0], touch, address, bytes);
                        true
                    });
                }
                if !is_wanted {
                    continue;
                }
                match observer.block_access(&event) {
                    ControlFlow::Break(()) => {
                        stopped = Some(lanes);
                        return;
                    }
                    ControlFlow::Continue(left) if left.iter().all(|&word| word == 0) => {}
                    ControlFlow::Continue(left) if left == threads => rest |= lanes,
                    ControlFlow::Continue(left) => Mask(left).for_each(|thread| {
                        if lanes.contains(first + thread) {
                            rest.insert(first + thread);
                        }
                    }),
                }
            }
        };
        self.notify_and_ask(notify);
        (self.footprint, self.noted) = (footprint, true);
        if even.is_err() {
            self.addresses = each;
        }
        if let Some(lanes) = stopped {
            proceed(ControlFlow::Break(()), gang, op.span, lanes)?;
        }
        Ok(rest)
    }

    /// Reports a step of an operation that the lanes of `mask` execute. If the operation has a guard, `active` has
    /// all lanes that reach it.
    pub(super) fn notify_operation(
        &mut self,
        gang: &Gang,
        span: Span,
        flow: &Flow,
        guard: Option<SlotRef>,
        mask: Mask,
        active: &Active,
    ) {
        let numbers = |slots: &[SlotRef]| slots.iter().map(|slot| slot.index).collect::<SmallVec<[u32; 8]>>();
        let (mut uses, decides) = (numbers(&flow.uses), numbers(&flow.decides));
        if let Some((slot, first)) = flow.optional
            && gang.registers.get(active.window, slot, mask.lowest().unwrap_or(0)) == 0
        {
            uses.truncate(first);
        }
        let defs: SmallVec<[Option<u32>; 8]> =
            flow.defs.iter().map(|slot| slot.map(|slot| slot.index)).collect();
        let is_predicate = |slot: &Option<SlotRef>| slot.is_some_and(|slot| slot.width == Width::Pred);
        let predicates = flow.defs.iter().take(32).zip(0..).filter(|(slot, _)| is_predicate(slot));
        let values = |index: usize, lane| match flow.uses.get(index) {
            Some(slot) if lane < gang.threads.lanes => gang.registers.get(active.window, *slot, lane),
            _ => 0,
        };
        let previous = |index: usize, lane| match flow.defs.get(index) {
            Some(Some(slot)) if lane < gang.threads.lanes => gang.registers.get(active.window, *slot, lane),
            _ => 0,
        };
        let compute = flow.pure.map(|pure| {
            move |values: &[u64]| {
                let of_width = |(value, slot): (&u64, &SlotRef)| slot.width.truncate(*value);
                let values: SmallVec<[u64; 6]> = values.iter().zip(&flow.uses).map(of_width).collect();
                let mut results = (pure.sem)(&pure.picks, &values);
                for (result, slot) in results.iter_mut().zip(&flow.defs) {
                    *result = slot.map_or(0, |slot| slot.width.truncate(*result));
                }
                results
            }
        });
        let combine = |lane: usize, values: &[u64; 32]| {
            let (op, members) = flow.warp?;
            gang.combine(op, members, active, lane, values)
        };
        let who = |lane| (gang.block_of(lane), gang.thread_of(lane) as u32);
        let event = OperationEvent::new(
            span,
            std::ptr::from_ref(gang) as usize,
            active.window.index,
            flow.kind,
            &uses,
            &defs,
            predicates.fold(0, |all, (_, index)| all | 1 << index),
            &decides,
            LaneSet::new(mask.words(), &who),
            guard.map(|slot| Guard { slot: slot.index, lanes: LaneSet::new(active.mask.words(), &who) }),
            &values,
            &previous,
            compute.as_ref().map(|compute| compute as Compute),
            &combine,
        );
        self.notify_and_ask(|observer| observer.operation(&event));
    }

    /// Reports that lanes enter a function.
    pub(super) fn notify_enter(&mut self, gang: &Gang, frame: u32, mask: Mask) {
        let frame = &gang.frames[frame];
        let program = gang.launch.program();
        let index = frame.function as usize;
        let (Some(Some(lowered)), Some(checked), Some(function)) = (
            program.functions.get(index),
            program.module.functions.get(index),
            gang.function(frame.function),
        ) else {
            return;
        };
        let registers = checked.body.as_ref().map_or(&[][..], |body| &body.registers);
        let unwritten: Vec<(u32, &str)> = function
            .zeros
            .iter()
            .filter(|&&slot| !function.params.iter().flatten().any(|param| param.index == slot))
            .filter_map(|&slot| match lowered.slots.get(slot as usize)?.kind {
                ir::SlotKind::Register(id) => Some((slot, registers.get(id.index())?.name.as_str())),
                _ => None,
            })
            .collect();
        let who = |lane| (gang.block_of(lane), gang.thread_of(lane) as u32);
        let event = EnterEvent::new(
            std::ptr::from_ref(gang) as usize,
            frame.window.index,
            frame.parent.is_none(),
            checked.span,
            &unwritten,
            LaneSet::new(mask.words(), &who),
        );
        self.notify_and_ask(|observer| observer.enter(&event));
    }

    pub(super) fn notify_exit(&mut self, gang: &Gang, span: Span, active: &Active) -> Step {
        self.each_block(gang, active.mask, |observer, block, threads| {
            observer.notify(|observer| observer.exit(&ExitEvent::new(block, span, threads)));
        });
        Ok(())
    }
}
