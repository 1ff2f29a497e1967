//! What native code does for a section.

use std::collections::BTreeSet;

use ir::{Slot, Width};

use super::section::Section;
use super::{Finder, LEAST_OPERATIONS, MOST_POINTERS, Pointer, Straight};
use crate::MOST_PREDICATES;
use crate::join::join_loads;
use crate::loops::{self, Body, End, Loop, Parts, space_of};
use crate::operation::{Access, Operation, Within};

impl Finder<'_> {
    /// What native code does for a section that ends before operation `at`.
    pub(super) fn plan(&self, section: &Section, at: usize) -> Option<Straight> {
        let mut pointers: Vec<Pointer> = Vec::new();
        let (mut accesses, mut places, mut checked) = (Vec::new(), Vec::new(), Vec::new());
        let mut guards = Vec::new();
        for (operation, op) in section.operations.iter().zip(&section.vector) {
            let Some(access) = operation.access() else { continue };
            let (space, write) = (space_of(&op.kind)?, operation.writes());
            let of_all = op.guard.filter(|_| operation.guard().is_none());
            guards.extend(of_all.filter(|guard| !guards.contains(guard)));
            let bytes = u64::from(access.bytes * access.count);
            let (offset, narrow) = (access.offset, self.width(access.base) == Width::W32);
            let align = access.align.into();
            accesses.push(loops::Access { space, bytes, align, write, offset, narrow, span: op.span });
            if access.checked {
                checked.push(places.len());
                places.push(None);
                continue;
            }
            let even = Within { base: access.base, low: 0, high: 0 };
            let Within { base, low, high } = access.within.unwrap_or(even);
            let (least, end) = (access.offset + low, access.offset + high + bytes as i64);
            let is_same =
                |other: &Pointer| other.base == base && other.space == space && other.write == write;
            let index = pointers.iter().position(is_same).unwrap_or_else(|| {
                let narrow = self.width(base) == Width::W32;
                let span = op.span;
                pointers.push(Pointer { base, space, write, align: bytes, least, end, narrow, span });
                pointers.len() - 1
            });
            let pointer = &mut pointers[index];
            pointer.align = pointer.align.max(bytes);
            (pointer.least, pointer.end) = (pointer.least.min(least), pointer.end.max(end));
            places.push(Some((index, i32::try_from(access.offset).ok()?)));
        }
        if pointers.len() > MOST_POINTERS {
            return None;
        }
        let (mut defined, mut live_in) = (BTreeSet::new(), BTreeSet::new());
        for operation in &section.operations {
            // The pointers have the addresses that step evenly. Their registers may become those of values.
            let is_pointer = |access: &Access| access.within.is_none() && !access.checked;
            let addresses = usize::from(operation.access().is_some_and(is_pointer));
            let uses = operation.uses().into_iter().skip(addresses);
            live_in.extend(uses.filter(|slot| !defined.contains(slot)));
            defined.extend(operation.defs());
        }
        let is_over = |slot: &Slot| section.renamed.contains_key(slot);
        let is_live = |slot: &&Slot| self.live.before(at, **slot);
        let own = section.renamed.keys().filter(is_live).filter_map(|slot| section.own(*slot));
        let of_slots = defined.iter().filter(|slot| is_live(slot) && !is_over(slot)).copied();
        let live_out: BTreeSet<Slot> = of_slots.chain(own).collect();
        let mut operations = section.operations.clone();
        if self.host.has_many_vectors() {
            join_loads(&mut operations, &mut accesses);
        }
        let spans = section.vector.iter().map(|op| op.span);
        let body = Body {
            spans: spans.chain(section.vector.last().map(|op| op.span)).collect(),
            operations,
            starts: Vec::new(),
            needed: live_out.clone(),
            end: End::Jump(1),
            cost: 0,
            weight: 1,
        };
        let (exits, calls) = (Vec::new(), Vec::new());
        let parts = Parts { blocks: 0..1, exits, bodies: vec![body], accesses, calls };
        let width = |slot| self.width(slot);
        let source = Loop::of_parts(
            self.function,
            self.kinds.anywhere(),
            width,
            parts,
            &live_in,
            &live_out,
            live_in.clone(),
        );
        (source.predicates.len() <= MOST_PREDICATES).then(|| Straight {
            operations: section.vector.clone(),
            calls: section.calls.clone(),
            pointers,
            guards,
            whole_warps: section.operations.iter().any(Operation::is_of_warp),
            is_small: section.operations.len() < LEAST_OPERATIONS,
            checked,
            places,
            source,
            varying: section.varying.clone(),
        })
    }
}
