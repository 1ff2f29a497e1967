//! Lifetimes of shared memory in a cluster: it exists from the start to the end of its block (PTX ISA, "Cluster of Cooperative Thread
//! Arrays"). Synchronization must order every access from another block within that.
//!
//! A thread that accesses the shared memory of another block must have an entry of that block in its clock. When that block ends, one
//! of its threads must know of the access.

use std::collections::HashMap;

use isa::Space;
use machine::LaneAccess;

use crate::block::BlockOrder;
use crate::checker::Checker;
use crate::clock::{Epoch, Stamp};
use crate::finding::{FindingKind, Site, Tool};

/// An access to the shared memory of a block that may not have started, or may have ended.
pub(crate) struct Absent {
    kind: FindingKind,
    lane: LaneAccess,
    place: u32,
}

/// The place and the block and thread of an access from another block.
type Visitor = (u32, u32, u32);

/// Accesses to the shared memory of other blocks in the cluster.
#[derive(Default)]
pub(crate) struct Lifetimes {
    /// By owning block: the last access of each visitor.
    visitors: HashMap<u32, HashMap<Visitor, (Epoch, LaneAccess)>>,
    found: Vec<Absent>,
}

impl Lifetimes {
    /// Threads of a block access the shared memory of another block. `stays`: the access completes at once, so that later accesses are
    /// ordered after it.
    pub fn visit(&mut self, order: &BlockOrder, owner: u32, lanes: &[LaneAccess], place: u32, stays: bool) {
        for lane in lanes {
            if !order.knows_block(lane.thread, owner) {
                self.found.push(Absent { kind: FindingKind::ClusterStart, lane: *lane, place });
            }
            // If the owner has already ended, the launch fails anyway.
            if stays {
                let of_owner = self.visitors.entry(owner).or_default();
                of_owner.insert((place, order.index, lane.thread), (order.epoch(lane.thread), *lane));
            }
        }
    }

    /// A block has ended: it must know of all accesses of other blocks to its shared memory.
    pub fn end_block(&mut self, index: u32, order: &BlockOrder) {
        for ((place, block, thread), (epoch, lane)) in self.visitors.remove(&index).unwrap_or_default() {
            let stamp = Stamp { block, thread: thread as u16, epoch };
            if !order.is_known_to_any(stamp) {
                self.found.push(Absent { kind: FindingKind::ClusterExit, lane, place });
            }
        }
    }
}

impl Checker {
    /// Formulates the findings about blocks that may have ended or not started.
    pub(crate) fn take_absent(&mut self) {
        for Absent { kind, lane, place } in std::mem::take(&mut self.races.lifetimes.found) {
            if !self.tools.has(Tool::Racecheck) {
                continue;
            }
            let place = &self.races.places[place as usize];
            let site = Site::new(place.span, lane.block, lane.thread, place.access());
            let [x, y, z] = lane.owner;
            let (what, missing) = match kind {
                FindingKind::ClusterStart => ("not have started", "before it"),
                _ => ("have ended", "behind it, to which that block comes, too"),
            };
            let who = self.who(&site);
            let address = self.races.shared_address(Space::Shared, lane.owner, lane.address);
            self.findings.add(kind, &self.kernel, (site, None), |finding| {
                finding.message = format!(
                    "{who} accesses shared memory of block ({x},{y},{z}) of its cluster, which may {what}"
                );
                (finding.space, finding.address) = (Some(Space::Shared), Some(address));
                finding.missing = format!("a barrier of the cluster {missing}");
            });
        }
    }
}
