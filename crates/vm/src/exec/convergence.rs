//! A warp-level operation waits for all lanes in its member mask, whatever paths they arrive on.
//!
//! Lanes in the same frame that reach the operation at different times wait for each other at its basic block, as
//! paths do elsewhere. Lanes that called the function separately have their registers in different windows. When all
//! lanes named by the masks wait at the instruction, their operands are copied to a separate window, and the
//! results are copied back to each lane's window. At `bar.warp.sync`, lanes may wait at different instructions.
//!
//! Narrowest tests (`tests/run`): `warp_meets_in_calls`, `warp_meets_by_mask`.

use machine::FaultKind;
use machine::mask::{GANG_LANES, Mask, WARP_LANES};
use smallvec::SmallVec;

use super::{Active, Gang, Observer, Path, Step, Wait};
use crate::code::{Block, Kind, Meeting, Op, WarpOp};
use crate::registers::{SlotRef, Window};
use crate::shared::Shared;

/// The member mask of each lane.
type MemberMasks = [u32; GANG_LANES];

/// Lanes that wait at a warp-level operation.
#[derive(Clone, Copy)]
struct Waiting<'c> {
    /// Index of their path.
    path: usize,
    mask: Mask,
    window: Window,
    members: SlotRef,
    function: u32,
    block: &'c Block,
    meeting: &'c Meeting,
}

/// If a basic block starts with a warp-level operation that has a member mask: the operation and the slot of the
/// mask.
fn operation(block: &Block) -> Option<(&Op, &WarpOp, SlotRef)> {
    let op = block.ops.first()?;
    match &op.kind {
        Kind::Warp { op: warp, members: Some(members), .. } => Some((op, warp, *members)),
        _ => None,
    }
}

impl Gang<'_> {
    /// Keeps the lanes of a path whose members have all arrived at the operation that starts `block`; the other lanes
    /// wait. Returns false if no lane is left. Faults if a lane is not in its own member mask.
    pub(super) fn gather_warps(
        &mut self,
        path: &mut Path,
        block: &Block,
        window: Window,
        shared: &mut Shared,
        observer: &mut impl Observer,
    ) -> Step<bool> {
        let Some((op, _, members)) = operation(block) else { return Ok(true) };
        let whole_warps = path.mask == self.alive || path.mask.is_whole_warps_of(self.alive);
        if whole_warps && self.registers.uniform(window, members) == Some(u32::MAX.into()) {
            return Ok(true);
        }
        let mut masks = [0; GANG_LANES];
        self.read_masks(path.mask, window, members, &mut masks);
        for lane in path.mask {
            let members = masks[lane];
            if members >> (lane % WARP_LANES) & 1 == 0 {
                let note = format!("its member mask is {members:#010x}, its lane {}", lane % WARP_LANES);
                return Err(self.fault(FaultKind::NotInMemberMask, op.span, Mask::single(lane), None, &note));
            }
        }
        let ready = self.complete(path.mask, &masks);
        if ready == path.mask {
            return Ok(true);
        }
        let waiting = Path { mask: path.mask.without(ready), wait: Wait::Warp, ..*path };
        if !ready.is_empty() {
            self.frames.retain(path.frame);
        }
        path.mask = ready;
        self.scheduler.paths.push(waiting);
        self.meet(&waiting, shared, observer)?;
        if !ready.is_empty() {
            self.scheduler.needed_changed = true;
        }
        Ok(!ready.is_empty())
    }

    /// Reads the member masks of some lanes.
    fn read_masks(&self, lanes: Mask, window: Window, members: SlotRef, masks: &mut MemberMasks) {
        lanes.for_each(|lane| masks[lane] = self.registers.get(window, members, lane) as u32);
    }

    /// The lanes of `together` whose members, except those that have ended, are all in `together` with the same
    /// member mask. Lanes at one instruction with different masks arrived by different paths, or in different
    /// iterations of a loop.
    fn complete(&self, together: Mask, masks: &MemberMasks) -> Mask {
        let mut complete = Mask::EMPTY;
        for (warp, lanes) in together.warps() {
            let first = warp * WARP_LANES;
            let (mut rest, mut ready) = (lanes, 0);
            while rest != 0 {
                let members = masks[first + rest.trailing_zeros() as usize];
                let alike = (0..WARP_LANES as u32).filter(|lane| rest >> lane & 1 != 0);
                let group = alike
                    .filter(|&lane| masks[first + lane as usize] == members)
                    .fold(0u32, |group, lane| group | 1 << lane);
                if members & self.alive.warp(warp) & !group == 0 {
                    ready |= group;
                }
                rest &= !group;
            }
            complete.set_warp(warp, ready);
        }
        complete
    }

    /// Called when a path has begun to wait. The lanes whose members have now all arrived execute the operation and
    /// continue after it.
    fn meet(&mut self, arrived: &Path, shared: &mut Shared, observer: &mut impl Observer) -> Step {
        let place = |gang: &Self, path: &Path| {
            let frame = &gang.frames[path.frame];
            Some((frame.function, frame.window, &gang.function(frame.function)?.blocks[path.block as usize]))
        };
        let Some((function, _, block)) = place(self, arrived) else { return Ok(()) };
        let Some((op, warp, _)) = operation(block) else { return Ok(()) };
        let is_sync = |warp: &WarpOp| matches!(warp, WarpOp::Sync);
        let mut here: SmallVec<[Waiting; 4]> = SmallVec::new();
        for (index, path) in
            self.scheduler.paths.iter().enumerate().filter(|(_, path)| path.wait == Wait::Warp)
        {
            if let Some((of, window, other)) = place(self, path)
                && let (Some((_, its, members)), Some(meeting)) = (operation(other), &other.meeting)
                && (std::ptr::eq(its, warp) && of == function || is_sync(its) && is_sync(warp))
            {
                let mask = path.mask;
                here.push(Waiting {
                    path: index,
                    mask,
                    window,
                    members,
                    function: of,
                    block: other,
                    meeting,
                });
            }
        }
        if here.len() < 2 {
            return Ok(());
        }
        let together = here.iter().fold(Mask::EMPTY, |all, waiting| all | waiting.mask);
        let mut masks = [0; GANG_LANES];
        for waiting in &here {
            self.read_masks(waiting.mask, waiting.window, waiting.members, &mut masks);
        }
        let complete = self.complete(together, &masks);
        here.iter_mut().for_each(|waiting| waiting.mask &= complete);
        here.retain(|waiting| !waiting.mask.is_empty());
        if here.is_empty() {
            return Ok(());
        }
        if is_sync(warp) {
            let mask = here.iter().fold(Mask::EMPTY, |all, waiting| all | waiting.mask);
            observer.warp_sync(self, op.span, mask, |lane| masks[lane]);
        } else {
            let mask = here.iter().fold(Mask::EMPTY, |all, waiting| all | waiting.mask);
            let window = self.open_window(function, op.span, mask)?;
            for waiting in &here {
                for &slot in &waiting.meeting.uses {
                    self.move_between(slot, window, slot, waiting.window, waiting.mask, false);
                }
            }
            let mut active = Active::new(window, arrived.frame);
            active.set_mask(mask, self.threads.lanes);
            active.alone = true;
            observer.enter(function, arrived.block, mask);
            observer.before(self, shared, block, 0, &active)?;
            self.execute(op, &active, shared).inspect_err(|_| observer.fault())?;
            observer.after();
            for waiting in &here {
                for &slot in &waiting.meeting.defs {
                    self.move_between(slot, waiting.window, slot, window, waiting.mask, false);
                }
            }
            self.frames.windows.close(window);
        }
        for Waiting { path, mask, function, block, meeting, .. } in here {
            if is_sync(warp) {
                observer.enter(function, self.scheduler.paths[path].block, mask);
            }
            self.steps.instructions += block.cost * u64::from(mask.count());
            let rest = self.scheduler.paths[path].mask.without(mask);
            let goes_on =
                Path { mask, block: meeting.next.0, wait: Wait::Ready, ..self.scheduler.paths[path] };
            if rest.is_empty() {
                self.scheduler.paths[path] = goes_on;
            } else {
                self.scheduler.paths[path].mask = rest;
                self.frames.retain(goes_on.frame);
                self.scheduler.paths.push(goes_on);
            }
        }
        Ok(())
    }
}
