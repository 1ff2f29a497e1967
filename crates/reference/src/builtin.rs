//! Functions that CUDA provides and PTX only declares.

use isa::Space;
use machine::device_runtime::RuntimeCall;
use machine::{Fault, FaultKind, printf, why_missing};

use crate::Step;
use crate::memory::{Address, number};
use crate::thread::{Cpu, Flow, Wait};

impl Cpu<'_, '_> {
    /// Calls a function that the module only declares. Returns its result and where the thread continues.
    pub fn call_builtin(&mut self, index: usize, arguments: &[Vec<u8>]) -> Step<(Option<u64>, Flow)> {
        let name = &self.cta.launch.module().functions[index].name;
        let argument = |i: usize| arguments.get(i).map_or(0, |bytes| number(bytes) as u64);
        let result = match name.as_str() {
            "vprintf" => self.print(argument(0), argument(1))?,
            "malloc" => self.cta.allocate(argument(0)).unwrap_or(0),
            "free" => {
                if argument(0) != 0
                    && let Err(kind) = self.cta.free(argument(0))
                {
                    let note = format!("{:#x} is no live allocation of `malloc`", argument(0));
                    return Err(self.fault(kind, &note));
                }
                return Ok((None, Flow::Next));
            }
            "__assertfail" | "__assert_fail" => {
                let text = |i: usize| -> Step<String> {
                    Ok(match argument(i) {
                        0 => "?".to_owned(),
                        at => String::from_utf8_lossy(&self.text(at, 4096)?).into_owned(),
                    })
                };
                let (condition, file, function) = (text(0)?, text(1)?, text(3)?);
                let note =
                    format!("`{condition}` does not hold: {file}:{}, function `{function}`", argument(2));
                return Err(self.fault(FaultKind::Assertion, &note));
            }
            // A handle of the grid scope, the only group there is.
            "cudaCGGetIntrinsicHandle" => 1,
            "cudaCGSynchronize" => {
                if !self.cta.grid.all_resident {
                    let note = "the grid has more blocks than can run at the same time: launch fewer";
                    return Err(self.fault(FaultKind::Deadlock, note));
                }
                let generation = self.cta.grid.arrive();
                return Ok((Some(0), Flow::Wait(Wait::Grid { generation })));
            }
            "cudaGraphSetConditional" => {
                let handle = Address { space: Space::Global, at: argument(0) };
                self.store(handle, 4, argument(1).into())?;
                return Ok((None, Flow::Next));
            }
            name => match RuntimeCall::of(name) {
                Some(call) => self.runtime_call(call, arguments)?,
                None => return Err(self.fault(FaultKind::UndefinedFunction, &why_missing(name))),
            },
        };
        Ok((Some(result), Flow::Next))
    }

    /// Calls a function of the device runtime.
    fn runtime_call(&mut self, call: RuntimeCall, arguments: &[Vec<u8>]) -> Step<u64> {
        let arguments: Vec<u128> = arguments.iter().map(|bytes| number(bytes)).collect();
        let caller = (self.cta.index, self.thread.index);
        let answer = self.cta.launch.runtime_call(call, caller, &arguments);
        if let Some((value, bytes)) = answer.store.zip(call.stores()) {
            let at = Address { space: Space::Generic, at: arguments[0] as u64 };
            self.store(at, bytes.into(), value.into())?;
        }
        Ok(answer.result)
    }

    fn print(&mut self, format: u64, buffer: u64) -> Step<u64> {
        if format == 0 {
            return Ok(u64::from(u32::MAX));
        }
        let format = self.text(format, usize::MAX)?;
        let mut text = Vec::new();
        let taken = printf::print(&format, &mut Values { cpu: self, at: buffer }, &mut text);
        self.cta.print(&text);
        Ok(taken?.into())
    }

    /// The NUL-terminated text at a generic address, without the NUL.
    fn text(&self, address: u64, limit: usize) -> Step<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < limit {
            let at = Address { space: Space::Generic, at: address.wrapping_add(text.len() as u64) };
            match self.load(at, 1)? {
                0 => break,
                byte => text.push(byte as u8),
            }
        }
        Ok(text)
    }
}

/// The arguments of a format string.
struct Values<'a, 'b, 'l> {
    cpu: &'a Cpu<'b, 'l>,
    at: u64,
}

impl printf::Arguments for Values<'_, '_, '_> {
    type Error = Box<Fault>;

    fn next(&mut self, bytes: u32) -> Step<u64> {
        let at = self.at.checked_next_multiple_of(bytes.into()).unwrap_or(0);
        self.at = at.wrapping_add(bytes.into());
        Ok(self.cpu.load(Address { space: Space::Generic, at }, bytes.into())? as u64)
    }

    fn string(&mut self, address: u64, limit: usize) -> Step<Vec<u8>> {
        self.cpu.text(address, limit)
    }

    fn too_long(&self, bytes: usize) -> Box<Fault> {
        self.cpu.fault(FaultKind::PrintfTooLong, &printf::why_too_long(bytes))
    }
}
