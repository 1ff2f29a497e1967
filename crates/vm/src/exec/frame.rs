//! Frames (activation records) of kernels and of function calls in progress.
//!
//! A call costs the same at every depth. The window of its registers lies after those of all other calls in progress,
//! or in a hole if calls have ended out of order (`windows.rs`). A thread's local memory is a stack. Each call takes
//! at least 16 bytes of it; this memory is zero at the start of a CTA and of a call. An indirect call compares
//! signature numbers (`code/signature.rs`).
//!
//! Narrowest tests (`tests/run`): `call_depth`, `call_results`, `local_uninitialized`, `fault_prototype`.

use std::ops::{Index, IndexMut};

use diag::Span;
use machine::FaultKind;
use machine::mask::Mask;
use smallvec::SmallVec;

use super::inline_cache::PureCache;
use super::windows::Windows;
use super::{Active, Gang, Step};
use crate::affine::Affine;
use crate::code::{Function, Returned};
use crate::registers::{REGISTER_LIMIT, SlotRef, Window};
use crate::shared::Shared;

/// Local memory that a thread may have, in bytes: what GPUs allow.
pub(super) const LOCAL_LIMIT: u64 = 512 * 1024;
/// The least local memory of a call, and its least alignment.
const LEAST_FRAME: u64 = 16;

/// One call in progress. Lanes of several paths may be in it.
pub(crate) struct Frame {
    /// Index of the function.
    pub function: u32,
    /// The window of its registers.
    pub window: Window,
    /// Local address of its variables.
    pub local_base: u32,
    /// Local addresses of its parameters.
    pub params: SmallVec<[u32; 8]>,
    /// Local addresses of its return parameters.
    pub returns: SmallVec<[u32; 2]>,
    /// The caller's frame.
    pub parent: Option<u32>,
    /// The caller's basic block that follows the call.
    pub return_block: u32,
    /// The caller's slots for results that are returned in registers.
    pub return_slots: SmallVec<[Option<SlotRef>; 2]>,
    /// Number of callers up to the kernel.
    pub depth: u32,
    /// Number of paths and callees that refer to this frame.
    users: u32,
}

/// All calls in progress of a gang.
#[derive(Default)]
pub(crate) struct Frames {
    frames: Vec<Option<Frame>>,
    free: Vec<u32>,
    pub windows: Windows,
}

impl Frames {
    pub fn clear(&mut self) {
        self.frames.clear();
        self.free.clear();
        self.windows.clear();
    }

    fn insert(&mut self, frame: Frame) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.frames[id as usize] = Some(frame);
                id
            }
            None => {
                self.frames.push(Some(frame));
                self.frames.len() as u32 - 1
            }
        }
    }

    /// Counts one more path that refers to the frame.
    pub fn retain(&mut self, id: u32) {
        self[id].users += 1;
    }

    /// Counts one path fewer that refers to the frame. Frees it, and then possibly its callers, when no user is left.
    pub fn release(&mut self, id: u32) {
        let mut next = Some(id);
        while let Some(id) = next {
            let frame = &mut self[id];
            frame.users -= 1;
            if frame.users > 0 {
                break;
            }
            let window = frame.window;
            next = frame.parent;
            self.windows.close(window);
            self.frames[id as usize] = None;
            self.free.push(id);
        }
    }

    /// Whether only one path refers to the frame.
    pub fn is_own(&self, id: u32) -> bool {
        self[id].users == 1
    }
}

impl Index<u32> for Frames {
    type Output = Frame;
    fn index(&self, id: u32) -> &Frame {
        // Paths and frames only name frames that they retain.
        self.frames[id as usize].as_ref().expect("a retained frame")
    }
}

impl IndexMut<u32> for Frames {
    fn index_mut(&mut self, id: u32) -> &mut Frame {
        self.frames[id as usize].as_mut().expect("a retained frame")
    }
}

/// What a caller passes to [`Gang::enter`].
pub(crate) struct CallRecord<'c> {
    pub parent: u32,
    pub return_block: u32,
    pub params: SmallVec<[u32; 8]>,
    pub returned: &'c [Returned],
    pub span: Span,
}

impl Gang<'_> {
    /// Creates the kernel's frame, in which all threads start.
    pub(super) fn enter_kernel(&mut self, shared: &mut Shared) -> Step<u32> {
        let index = self.launch.entry().0;
        let span =
            self.launch.program().module.functions.get(index as usize).map_or(Span::default(), |f| f.span);
        let Some(function) = self.function(index) else {
            return Err(self.fault(FaultKind::UndefinedFunction, span, Mask::EMPTY, None, ""));
        };
        let window = match self.frames.windows.open(function.slots, function.bytes) {
            Some(window) => window,
            None => {
                let note = format!("the kernel's registers take more than {REGISTER_LIMIT} bytes");
                return Err(self.fault(FaultKind::StackOverflow, span, Mask::EMPTY, None, &note));
            }
        };
        if self.prepared {
            self.initialise_block(function, window);
        } else {
            self.registers.grow(function.slots as usize, function.bytes as usize);
            self.check_local(function.frame_bytes.into(), span, Mask::EMPTY)?;
            self.initialise(function, window);
        }
        let frame = self.frames.insert(Frame {
            function: index,
            window,
            local_base: 0,
            params: SmallVec::new(),
            returns: SmallVec::new(),
            parent: None,
            return_block: 0,
            return_slots: SmallVec::new(),
            depth: 0,
            users: 1,
        });
        if !self.prepared {
            self.prepared = true;
            let mut active = Active::new(window, frame);
            // All lanes, even if this CTA batch is smaller: later batches rely on the result.
            active.set_mask(Mask::first(self.threads.lanes), self.threads.lanes);
            active.alone = true;
            for op in &function.prologue {
                self.execute(op, &active, shared)?;
            }
        }
        Ok(frame)
    }

    /// Creates a frame for a call by the lanes of `mask`. The caller of this function moves its path into it.
    pub(super) fn enter(&mut self, index: u32, call: CallRecord, mask: Mask) -> Step<u32> {
        let Some(function) = self.function(index) else {
            let name = self.launch.function_name(index);
            let note = format!("`{name}` is declared, but the module has no body for it");
            return Err(self.fault(FaultKind::UndefinedFunction, call.span, mask, None, &note));
        };
        // The frame follows the caller's. Other threads may use the same local addresses: each thread has its own
        // memory.
        let parent = &self.frames[call.parent];
        let (parent_base, depth) = (parent.local_base, parent.depth + 1);
        let parent_bytes = self.function(parent.function).map_or(0, |f| f.frame_bytes);
        let local_base = (u64::from(parent_base) + u64::from(parent_bytes).max(LEAST_FRAME))
            .next_multiple_of(u64::from(function.frame_align).max(LEAST_FRAME));
        let local_end = local_base + u64::from(function.frame_bytes);
        self.check_local(local_end, call.span, mask)?;
        // Uninitialised values must be the same in every run.
        self.local.clear(&mask, local_base, local_end);
        let window = self.open_window(index, call.span, mask)?;
        self.initialise(function, window);
        let returns = call.returned.iter().map(|r| match r {
            Returned::Frame(at) => parent_base + at,
            _ => 0,
        });
        let return_slots = call.returned.iter().map(|r| match r {
            Returned::Slot(slot) => Some(*slot),
            _ => None,
        });
        Ok(self.frames.insert(Frame {
            function: index,
            window,
            local_base: local_base as u32,
            params: call.params,
            returns: returns.collect(),
            // The path's reference to its caller becomes this frame's reference.
            parent: Some(call.parent),
            return_block: call.return_block,
            return_slots: return_slots.collect(),
            depth,
            users: 1,
        }))
    }

    /// Opens an unused window for the registers of a function.
    pub(super) fn open_window(&mut self, index: u32, span: Span, mask: Mask) -> Step<Window> {
        let Some(function) = self.function(index) else { return Ok(Window::default()) };
        let Some(window) = self.frames.windows.open(function.slots, function.bytes) else {
            let note = format!(
                "the registers of all calls of a block's threads take more than {REGISTER_LIMIT} bytes"
            );
            return Err(self.fault(FaultKind::StackOverflow, span, mask, None, &note));
        };
        if self.registers.open(window, function.slots as usize, function.bytes as usize) {
            self.caches.pure.fill_with(|| PureCache::NONE);
        }
        Ok(window)
    }

    fn check_local(&mut self, bytes: u64, span: Span, mask: Mask) -> Step {
        if bytes > LOCAL_LIMIT {
            let note = format!("a thread's local memory is {LOCAL_LIMIT} bytes, {bytes} are needed");
            return Err(self.fault(FaultKind::StackOverflow, span, mask, None, &note));
        }
        self.local.grow(bytes);
        Ok(())
    }

    /// Sets the slots of a window that have a value on entry.
    fn initialise(&mut self, function: &Function, window: Window) {
        for &(slot, value) in &function.constants {
            self.registers.set_affine(window, slot, Affine::uniform(value));
        }
        for &(slot, special) in &function.specials {
            self.set_special(window, slot, special);
        }
        self.initialise_block(function, window);
    }

    /// Sets the slots whose values differ between CTAs, and clears those that are read before they are written.
    fn initialise_block(&mut self, function: &Function, window: Window) {
        for &(slot, special) in &function.block_specials {
            self.set_special(window, slot, special);
        }
        // Uninitialised values must be the same in every run.
        for &index in &function.zeros {
            self.registers.reset(window, index);
        }
    }
}
