//! Calls of device functions that CUDA provides (see [`Builtin`]).

use check::module::{FuncId, Function};
use diag::Span;
use ir::{Argument, Callee};
use isa::Space;
use lanes::memory;
use machine::builtin::{Builtin, why_missing};
use machine::device_runtime::RuntimeCall;
use machine::mask::Mask;
use machine::{DeviceFunction, Fault, FaultKind, printf};

use super::request::{Request, Resolved};
use super::{Active, Gang, Path, Step, Wait};
use crate::code::{Call, Returned};
use crate::registers::Window;
use crate::shared::Shared;

/// The call that is executed.
#[derive(Clone, Copy)]
struct Site<'c> {
    call: &'c Call,
    callee: &'c Function,
    /// Local address of the caller's frame.
    base: u32,
    window: Window,
    span: Span,
}

impl Gang<'_> {
    /// Calls a function that has no body in the module. Returns what the threads must wait for, if anything.
    pub(super) fn call_builtin(
        &mut self,
        index: u32,
        call: &Call,
        path: &Path,
        mask: Mask,
        shared: &Shared,
        span: Span,
    ) -> Step<Wait> {
        let name = self.launch.function_name(index);
        let module = &self.launch.program().module;
        let callee = module.functions.get(index as usize);
        let address = u64::from(module.address_size / 8);
        let builtin = Builtin::of(name).zip(callee).filter(|(builtin, callee)| builtin.fits(callee, address));
        let Some((builtin, callee)) = builtin else {
            return Err(self.fault(FaultKind::UndefinedFunction, span, mask, None, &why_missing(name)));
        };
        let frame = &self.frames[path.frame];
        let site = Site { call, callee, base: frame.local_base, window: frame.window, span };
        match builtin {
            Builtin::Printf => self.print(&site, mask, shared)?,
            Builtin::Malloc => {
                for lane in mask {
                    let bytes = self.argument(&site, 0, lane);
                    let address = self.launch.heap().allocate(bytes).unwrap_or(0);
                    self.set_result(&site, lane, address);
                }
            }
            Builtin::Free => {
                for lane in mask {
                    let address = self.argument(&site, 0, lane);
                    if address != 0
                        && let Err(kind) = self.launch.heap().free(address)
                    {
                        let note = self.launch.describe(Space::Global, address, 1).unwrap_or_default();
                        let note = format!("{address:#x} is no live allocation of `malloc`: {note}");
                        return Err(self.fault(kind, span, Mask::single(lane), None, &note));
                    }
                }
            }
            Builtin::AssertFail => {
                let lane = mask.lowest().unwrap_or(0);
                return Err(self.assertion(&site, lane, shared)?);
            }
            Builtin::GroupHandle => {
                // 1 is the scope of the grid; no other group is supported.
                mask.into_iter().for_each(|lane| self.set_result(&site, lane, 1));
            }
            Builtin::GridSynchronize => {
                if !self.launch.grid_barrier.all_resident {
                    let note = "the grid has more blocks than can run at the same time: launch fewer";
                    return Err(self.fault(FaultKind::Deadlock, span, mask, None, note));
                }
                mask.into_iter().for_each(|lane| self.set_result(&site, lane, 0));
                return Ok(Wait::Grid { generation: self.launch.grid_barrier.arrive(mask.count()) });
            }
            Builtin::SetConditional => {
                for lane in mask {
                    let (handle, value) = (self.argument(&site, 0, lane), self.argument(&site, 1, lane));
                    let request = Request { space: Space::Global, bytes: 4, write: true, span };
                    match self.place(shared, &request, handle) {
                        // SAFETY: the place holds all bytes of the access.
                        Ok(Resolved::Host(at)) => unsafe { memory::write(at, (value as u32).to_le_bytes()) },
                        Ok(Resolved::Local(_)) => {
                            return Err(self.access_fault(FaultKind::OutOfBounds, &request, lane, handle));
                        }
                        Err(kind) => return Err(self.access_fault(kind, &request, lane, handle)),
                    }
                }
            }
            Builtin::Runtime(call) => {
                mask.into_iter().try_for_each(|lane| self.runtime_call(&site, call, lane, shared))?
            }
        }
        Ok(Wait::Ready)
    }

    /// Calls a function of the device runtime for one lane.
    fn runtime_call(&mut self, site: &Site, call: RuntimeCall, lane: usize, shared: &Shared) -> Step {
        let arguments: Vec<u128> =
            (0..site.callee.params.len()).map(|i| self.wide_argument(site, i, lane)).collect();
        let caller = (self.launch.block_index(self.block_of(lane)), self.thread_of(lane));
        let answer = self.launch.runtime_call(call, caller, &arguments);
        if let Some((value, bytes)) = answer.store.zip(call.stores()) {
            let address = arguments[0] as u64;
            let store = Request { space: Space::Generic, bytes: bytes.into(), write: true, span: site.span };
            match self.place_of(shared, &store, lane, address) {
                // SAFETY: the place holds all bytes of the access.
                Ok(Resolved::Host(at)) if bytes == 8 => unsafe { memory::write(at, value.to_le_bytes()) },
                // SAFETY: as above.
                Ok(Resolved::Host(at)) => unsafe { memory::write(at, (value as u32).to_le_bytes()) },
                Ok(Resolved::Local(at)) => self.local.write(lane, at, bytes, value),
                Err(kind) => return Err(self.access_fault(kind, &store, lane, address)),
            }
        }
        self.set_result(site, lane, answer.result);
        Ok(())
    }

    /// Calls `notify` for each lane with the CUDA function that it has just called and its result, if observers want
    /// that function.
    pub(super) fn called(&self, call: &Call, active: &Active, mut notify: impl FnMut(usize, DeviceFunction)) {
        let Callee::Direct(FuncId(index)) = call.callee else { return };
        let module = &self.launch.program().module;
        if self.function(index).is_some() {
            return;
        }
        let (Some(builtin), Some(callee)) =
            (Builtin::of(self.launch.function_name(index)), module.functions.get(index as usize))
        else {
            return;
        };
        let (window, base) = (active.window, self.frames[active.frame].local_base);
        let site = Site { call, callee, base, window, span: Span::default() };
        for lane in active.mask {
            let function = match builtin {
                Builtin::Malloc => {
                    let bytes = self.argument(&site, 0, lane);
                    DeviceFunction::Malloc { bytes, address: self.result(&site, lane) }
                }
                Builtin::Free => DeviceFunction::Free { address: self.argument(&site, 0, lane) },
                Builtin::GridSynchronize => DeviceFunction::GridSynchronize,
                // These functions only write memory of the library.
                Builtin::Printf | Builtin::AssertFail | Builtin::GroupHandle | Builtin::SetConditional => {
                    return;
                }
                Builtin::Runtime(call) => {
                    let Some(bytes) = call.stores().filter(|_| self.result(&site, lane) == 0) else { return };
                    let (space, address) = machine::memory::resolve_generic(self.argument(&site, 0, lane));
                    DeviceFunction::Stored { space, address, bytes: bytes.into() }
                }
            };
            notify(lane, function);
        }
    }

    fn result(&self, site: &Site, lane: usize) -> u64 {
        match site.call.returned.first() {
            Some(Returned::Frame(at)) => {
                let bytes = site.callee.returns[0].bytes as u32;
                self.local.read(lane, u64::from(site.base) + u64::from(*at), bytes)
            }
            Some(Returned::Slot(slot)) => self.registers.get(site.window, *slot, lane),
            Some(Returned::Ignored) | None => 0,
        }
    }

    /// The value of an argument in one lane.
    fn argument(&self, site: &Site, index: usize, lane: usize) -> u64 {
        let bytes = site.callee.params[index].bytes as u32;
        match site.call.arguments[index] {
            Argument::Frame(at) => self.local.read(lane, u64::from(site.base) + u64::from(at), bytes),
            Argument::Slot(slot) => self.registers.get(site.window, slot, lane),
        }
    }

    /// An argument of up to 16 bytes.
    fn wide_argument(&self, site: &Site, index: usize, lane: usize) -> u128 {
        let bytes = site.callee.params[index].bytes as u32;
        match site.call.arguments[index] {
            Argument::Frame(at) if bytes > 8 => {
                let at = u64::from(site.base) + u64::from(at);
                let (low, high) = (self.local.read(lane, at, 8), self.local.read(lane, at + 8, bytes - 8));
                u128::from(low) | u128::from(high) << 64
            }
            _ => self.argument(site, index, lane).into(),
        }
    }

    fn set_result(&mut self, site: &Site, lane: usize, value: u64) {
        match site.call.returned.first() {
            Some(Returned::Frame(at)) => {
                let bytes = site.callee.returns[0].bytes as u32;
                self.local.write(lane, u64::from(site.base) + u64::from(*at), bytes, value);
            }
            Some(Returned::Slot(slot)) => self.registers.set(site.window, *slot, lane, value),
            Some(Returned::Ignored) | None => {}
        }
    }

    fn print(&mut self, site: &Site, mask: Mask, shared: &Shared) -> Step {
        for block in 0..self.threads.block_masks.len() {
            let lanes = mask & self.threads.block_masks[block];
            if !lanes.is_empty() {
                self.print_of_block(site, block, lanes, shared)?;
            }
        }
        Ok(())
    }

    fn print_of_block(&mut self, site: &Site, block: usize, lanes: Mask, shared: &Shared) -> Step {
        let mut text = Vec::new();
        for lane in lanes {
            let (format, buffer) = (self.argument(site, 0, lane), self.argument(site, 1, lane));
            let taken = if format == 0 {
                -1
            } else {
                if text.len() > printf::MOST {
                    self.print_text(block, &std::mem::take(&mut text));
                }
                let mut values = Values { gang: self, shared, lane, at: buffer, span: site.span };
                let result = printf::Arguments::string(&mut values, format, usize::MAX)
                    .and_then(|format| printf::print(&format, &mut values, &mut text));
                if result.is_err() {
                    self.print_text(block, &text);
                }
                result? as i32
            };
            self.set_result(site, lane, u64::from(taken as u32));
        }
        self.print_text(block, &text);
        Ok(())
    }

    fn assertion(&self, site: &Site, lane: usize, shared: &Shared) -> Step<Box<Fault>> {
        let text = |index: usize| -> Step<String> {
            let address = self.argument(site, index, lane);
            if address == 0 {
                return Ok("?".to_owned());
            }
            let mut values = Values { gang: self, shared, lane, at: 0, span: site.span };
            let bytes = printf::Arguments::string(&mut values, address, 4096)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let (file, line, function) = (text(1)?, self.argument(site, 2, lane), text(3)?);
        let note = format!("`{}` does not hold: {file}:{line}, function `{function}`", text(0)?);
        Ok(self.fault(FaultKind::Assertion, site.span, Mask::single(lane), None, &note))
    }

    /// Reads from a generic address for one lane.
    fn read_generic(&self, shared: &Shared, lane: usize, address: u64, bytes: u32, span: Span) -> Step<u64> {
        let request = Request { space: Space::Generic, bytes: bytes.into(), write: false, span };
        match self.place_of(shared, &request, lane, address) {
            // SAFETY: the place holds all bytes of the access.
            Ok(Resolved::Host(at)) => Ok(unsafe { super::transfer::read(at, bytes, false) }),
            Ok(Resolved::Local(at)) => Ok(self.local.read(lane, at, bytes)),
            Err(kind) => Err(self.access_fault(kind, &request, lane, address)),
        }
    }
}

/// The argument buffer of one thread's `vprintf`.
struct Values<'a, 'l> {
    gang: &'a Gang<'l>,
    shared: &'a Shared,
    lane: usize,
    /// The address after the last value read.
    at: u64,
    span: Span,
}

impl printf::Arguments for Values<'_, '_> {
    type Error = Box<Fault>;

    fn next(&mut self, bytes: u32) -> Step<u64> {
        let at = self.at.checked_next_multiple_of(bytes.into()).unwrap_or(0);
        self.at = at.wrapping_add(bytes.into());
        self.gang.read_generic(self.shared, self.lane, at, bytes, self.span)
    }

    fn string(&mut self, address: u64, limit: usize) -> Step<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < limit {
            let at = address.wrapping_add(text.len() as u64);
            match self.gang.read_generic(self.shared, self.lane, at, 1, self.span)? {
                0 => break,
                byte => text.push(byte as u8),
            }
        }
        Ok(text)
    }

    fn too_long(&self, bytes: usize) -> Box<Fault> {
        let note = printf::why_too_long(bytes);
        self.gang.fault(FaultKind::PrintfTooLong, self.span, Mask::single(self.lane), None, &note)
    }
}
