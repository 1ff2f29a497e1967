//! Clocks and states. A device always has the clocks of the data sheet, and nothing slows it down.

use std::ffi::c_uint;

use crate::api::api;
use crate::pointers::{Out, write_list};
use crate::state::{Handle, device, same_for_all};
use crate::status::Status;

/// The clock of a domain in MHz: graphics and multiprocessors, memory.
///
/// # Errors
/// If the device has no such clock.
fn clock(of: Handle, domain: c_uint) -> Result<c_uint, Status> {
    let chip = &device(of)?.chip;
    match domain {
        0 | 1 => Ok(chip.clock),
        2 => Ok(chip.memory_clock),
        3 => Err(Status::NOT_SUPPORTED),
        _ => Err(Status::INVALID_ARGUMENT),
    }
}

/// P0, the state of most performance, and the entry for no state.
const FASTEST: c_uint = 0;
const NO_STATE: c_uint = 32;

api! { API:
    /// The clock of graphics, multiprocessors or memory in MHz: that of the data sheet.
    nvmlDeviceGetClockInfo nvmlDeviceGetMaxClockInfo nvmlDeviceGetApplicationsClock nvmlDeviceGetDefaultApplicationsClock nvmlDeviceGetMaxCustomerBoostClock (of: Handle, domain: c_uint, result: Out<c_uint>) {
        result.write(clock(of, domain)?)
    }
    /// The clock of graphics, multiprocessors or memory in MHz: now, as applications ask, by default and at most, they are the same.
    nvmlDeviceGetClock (of: Handle, domain: c_uint, which: c_uint, result: Out<c_uint>) {
        if which > 3 {
            return Err(Status::INVALID_ARGUMENT);
        }
        result.write(clock(of, domain)?)
    }
    /// The clocks that memory can have, in MHz.
    nvmlDeviceGetSupportedMemoryClocks (of: Handle, count: Out<c_uint>, clocks: Out<c_uint>) {
        write_list(count, clocks, vec![device(of)?.chip.memory_clock])
    }
    /// The clocks that multiprocessors can have with a clock of memory, in MHz.
    nvmlDeviceGetSupportedGraphicsClocks (of: Handle, memory: c_uint, count: Out<c_uint>, clocks: Out<c_uint>) {
        let chip = &device(of)?.chip;
        if memory != chip.memory_clock {
            return Err(Status::NOT_FOUND);
        }
        write_list(count, clocks, vec![chip.clock])
    }
    /// The state of performance: the highest.
    nvmlDeviceGetPerformanceState nvmlDeviceGetPowerState (of: Handle, state: Out<c_uint>) {
        same_for_all(of, state, FASTEST)
    }
    /// The states of performance that there are: the highest.
    nvmlDeviceGetSupportedPerformanceStates (of: Handle, states: Out<c_uint>, bytes: c_uint) {
        device(of)?;
        let room = bytes as usize / size_of::<c_uint>();
        if room == 0 {
            return Err(Status::INSUFFICIENT_SIZE);
        }
        // The array of a GPU has 16 places.
        (0..room.min(16)).try_for_each(|at| states.write_at(at, if at == 0 { FASTEST } else { NO_STATE }))
    }
    /// The range of a clock in a state of performance, in MHz.
    nvmlDeviceGetMinMaxClockOfPState (of: Handle, domain: c_uint, state: c_uint, least: Out<c_uint>, most: Out<c_uint>) {
        let clock = clock(of, domain)?;
        if state != FASTEST {
            return Err(Status::INVALID_ARGUMENT);
        }
        least.write(clock)?;
        most.write(clock)
    }
    /// Why clocks are lower than they could be: they are not.
    nvmlDeviceGetCurrentClocksThrottleReasons nvmlDeviceGetCurrentClocksEventReasons (of: Handle, reasons: Out<u64>) {
        same_for_all(of, reasons, 0)
    }
    /// The reasons for lower clocks that there can be: none.
    nvmlDeviceGetSupportedClocksThrottleReasons nvmlDeviceGetSupportedClocksEventReasons (of: Handle, reasons: Out<u64>) {
        same_for_all(of, reasons, 0)
    }
    /// How many fans there are: none.
    nvmlDeviceGetNumFans (of: Handle, count: Out<c_uint>) {
        same_for_all(of, count, 0)
    }
}
