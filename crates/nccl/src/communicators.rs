//! Functions of communicators, reductions and memory.

use std::ffi::{c_int, c_void};
use std::sync::PoisonError;

use caller::In;
use mathlib::{Range, api, driver};

use crate::comm::{Comm, Handle, Nccl, Place, PreMulSum, Scalar, UniqueId};
use crate::element::DataType;
use crate::group;
use crate::status::{Status, VERSION, wrong};

/// Makes a rank take part in a communicator.
fn init(
    name: &'static str,
    place: *mut Handle,
    ranks: c_int,
    id: &UniqueId,
    rank: c_int,
) -> Result<(), Status> {
    if place.is_null() {
        return group::noted(Err(Status::INVALID_ARGUMENT));
    }
    group::noted(Comm::attach(name, id, ranks, rank).and_then(|comm| group::complete(comm, name, place)))
}

/// The number of the first reduction that a program makes.
pub const FIRST_REDUCTION: u32 = 5;

api! { API: Status, name;
    /// The version of the library: 22703, which is 2.27.3.
    ncclGetVersion(version: Place<'_, c_int>) { version.write(VERSION) }

    /// A number for a new communicator, which the program gives to all ranks.
    ncclGetUniqueId(id: Place<'_, UniqueId>) { id.write(UniqueId::new()?) }

    /// Makes a rank take part, on the current device, and waits for the others.
    ncclCommInitRank(comm: *mut Handle, ranks: c_int, id: UniqueId, rank: c_int) {
        init(name, comm, ranks, &id, rank)
    }

    /// Makes a rank take part. The configuration changes nothing here: the call always waits.
    ncclCommInitRankConfig(comm: *mut Handle, ranks: c_int, id: UniqueId, rank: c_int, config: *const c_void) {
        let _ = config;
        init(name, comm, ranks, &id, rank)
    }

    /// Makes a rank take part. Of several numbers the first one counts.
    ncclCommInitRankScalable(comm: *mut Handle, ranks: c_int, rank: c_int, ids: c_int, id: In<'_, UniqueId, Nccl>, config: *const c_void) {
        let _ = config;
        if ids < 1 {
            return Err(Status::INVALID_ARGUMENT);
        }
        init(name, comm, ranks, &id.read()?, rank)
    }

    /// Makes a communicator of this process: a rank for each device of a list, or for the first devices.
    ncclCommInitAll(comms: Place<'_, Handle>, count: c_int, devices: In<'_, c_int, Nccl>) {
        let count = usize::try_from(count).ok().filter(|&count| count > 0).ok_or(Status::INVALID_ARGUMENT)?;
        if comms.is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        let id = UniqueId::new()?;
        let mut parts = Vec::new();
        let devices = match devices.pointer().is_null() {
            true => (0..count as c_int).collect(),
            false => devices.read_all(count)?,
        };
        for (rank, device) in devices.into_iter().enumerate() {
            driver::enter(None)?;
            let context = driver::primary(device).map_err(|_| {
                wrong(Status::INVALID_ARGUMENT, name, &format!("there is no device {device} (PTXVM_DEVICE_COUNT)"))
            })?;
            parts.push(driver::within(context, || Comm::attach(name, &id, count as c_int, rank as c_int))??);
        }
        for (rank, comm) in parts.into_iter().enumerate() {
            let handle = comm.complete(name)?;
            comms.write_at(rank, handle)?;
        }
        Ok(())
    }

    /// Makes communicators of the ranks that say the same color, in the order of their keys. A negative color makes none.
    ncclCommSplit(comm: Handle, color: c_int, key: c_int, place: *mut Handle, config: *const c_void) {
        let _ = config;
        let comm = Comm::of(comm)?;
        if place.is_null() || color < -1 {
            return group::noted(Err(Status::INVALID_ARGUMENT));
        }
        let number = comm.say_split(color, key);
        group::split(comm, name, number, place)
    }

    /// Ends what a communicator has to do. Its work goes on in its streams, and needs no help.
    ncclCommFinalize(comm: Handle) { Comm::of(comm).map(drop) }

    /// Ends a communicator; work that is queued goes on.
    ncclCommDestroy(comm: Handle) { Comm::destroy(comm) }

    /// Ends a communicator; work that is queued or waits does nothing more, and other ranks fail that need this one.
    ncclCommAbort(comm: Handle) { Comm::abort(comm) }

    /// The first error of a communicator's work.
    ncclCommGetAsyncError(comm: Handle, error: Place<'_, Status>) { error.write(Comm::of(comm)?.error()) }

    /// How many ranks there are.
    ncclCommCount(comm: Handle, count: Place<'_, c_int>) { count.write(Comm::of(comm)?.ranks as c_int) }

    /// The device of this rank.
    ncclCommCuDevice(comm: Handle, device: Place<'_, c_int>) { device.write(Comm::of(comm)?.device) }

    /// The number of this rank.
    ncclCommUserRank(comm: Handle, rank: Place<'_, c_int>) { rank.write(Comm::of(comm)?.rank as c_int) }

    /// Makes memory known for faster operations. It makes no difference here.
    ncclCommRegister(comm: Handle, memory: *mut c_void, bytes: usize, handle: Place<'_, *mut c_void>) {
        let _ = bytes;
        Comm::of(comm)?;
        handle.write(memory)
    }

    /// The opposite.
    ncclCommDeregister(comm: Handle, handle: *mut c_void) {
        let _ = handle;
        Comm::of(comm).map(drop)
    }

    /// Allocates memory of the current device.
    ncclMemAlloc(memory: Place<'_, *mut c_void>, bytes: usize) {
        driver::enter(None)?;
        let address = driver::allocate(bytes)?;
        memory.write(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// Gives it back.
    ncclMemFree(memory: *mut c_void) {
        driver::enter(None)?;
        Ok(driver::free(memory.expose_provenance() as u64)?)
    }

    /// Makes a reduction: a sum of numbers that each rank multiplies by a number of its own, in memory of host or device.
    ncclRedOpCreatePreMulSum(place: Place<'_, u32>, scalar: In<'_, u8, Nccl>, ty: u32, residence: u32, comm: Handle) {
        let comm = Comm::of(comm)?;
        let ty = DataType::of(ty).ok_or(Status::INVALID_ARGUMENT)?;
        if scalar.pointer().is_null() {
            return Err(Status::INVALID_ARGUMENT);
        }
        let scalar = match residence {
            0 => {
                let range = Range::of(scalar.pointer(), ty.bytes(), "the scalar", String::new);
                Scalar::Device(range.map_err(|error| wrong(Status::INVALID_ARGUMENT, name, &error.to_string()))?)
            }
            1 => {
                let mut bytes = [0; 8];
                bytes[..ty.bytes()].copy_from_slice(&scalar.read_all(ty.bytes())?);
                Scalar::Host(bytes)
            }
            _ => return Err(Status::INVALID_ARGUMENT),
        };
        let mut reductions = comm.reductions.lock().unwrap_or_else(PoisonError::into_inner);
        place.write(FIRST_REDUCTION + reductions.len() as u32)?;
        reductions.push(Some(PreMulSum { ty, scalar }));
        Ok(())
    }

    /// Ends a reduction; operations that are queued go on.
    ncclRedOpDestroy(reduction: u32, comm: Handle) {
        let comm = Comm::of(comm)?;
        let mut reductions = comm.reductions.lock().unwrap_or_else(PoisonError::into_inner);
        let number = reduction.checked_sub(FIRST_REDUCTION).ok_or(Status::INVALID_ARGUMENT)?;
        reductions.get_mut(number as usize).and_then(Option::take).map(drop).ok_or(Status::INVALID_ARGUMENT)
    }
}
