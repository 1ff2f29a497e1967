//! Allocations and events that several processes use ("IPC" in the manual).
//!
//! An allocation moves to shared memory when a handle for it is first wanted; it keeps its address. Another process maps that memory at
//! an address of its own. Both execute on the memory of one host, so what one has written the other sees, when an event or the host has
//! put the one after the other. Neither sees what the tools of the other know: to initcheck, all of such memory is written.

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{CUdeviceptr, CUevent, CUipcEventHandle, CUipcMemHandle};

use crate::api::api;
use crate::context::{CONTEXTS, Context};
use crate::driver::driver;
use crate::event::{Event, event};
use crate::lock;
use crate::memory::{self, Allocation, DEVICE_BASE};
use crate::pointers::Out;
use crate::share::{self, Name, Shared};
use crate::shared_event::SharedEvent;
use crate::{INVALID, Status};

/// The allocations of this process that have moved to shared memory, by address.
static EXPORTED: Mutex<BTreeMap<u64, Arc<Shared>>> = Mutex::new(BTreeMap::new());

/// The allocations of other processes that this one has opened, by the address that they have here.
static IMPORTED: Mutex<BTreeMap<u64, Import>> = Mutex::new(BTreeMap::new());

/// An allocation of another process.
struct Import {
    /// The number of its file.
    file: u64,
    /// How often it has been opened more than closed.
    users: usize,
    /// Whether it is of a pool: then it is freed, instead of closed.
    is_of_pool: bool,
}

/// Moves an allocation to shared memory, unless it is there already. All work that has been submitted is done before.
///
/// # Errors
/// If it is memory of another kind than the manual allows, or the host has no more.
pub fn export(allocation: &Allocation) -> Result<Arc<Shared>, Status> {
    if !matches!(allocation.kind, memory::Kind::Device | memory::Kind::Pool) {
        return Err(INVALID);
    }
    let (base, bytes) = (allocation.base, allocation.bytes);
    if let Some(known) = lock(&EXPORTED).get(&base) {
        return Ok(Arc::clone(known));
    }
    CONTEXTS.all().iter().try_for_each(|context| context.synchronize())?;
    let out_of_memory = |_| Status::CUDA_ERROR_OUT_OF_MEMORY;
    let mut exported = lock(&EXPORTED);
    if let Some(known) = exported.get(&base) {
        return Ok(Arc::clone(known));
    }
    let shared = if base < DEVICE_BASE {
        // Where the host uses the address of the device, it has to stay.
        // SAFETY: no operation is in flight.
        Arc::new(unsafe { crate::host_pages::share(base) }.ok_or(INVALID)?.map_err(out_of_memory)?)
    } else {
        let shared = Arc::new(Shared::new(bytes as usize).map_err(out_of_memory)?);
        // SAFETY: the memory has these bytes, and stays while it is kept.
        let moved = unsafe { driver()?.machine.move_to(base, shared.start(), Arc::<Shared>::clone(&shared)) };
        moved.map_err(|_| INVALID)?;
        shared
    };
    crate::initialized::written(base, bytes);
    exported.insert(base, Arc::clone(&shared));
    Ok(shared)
}

/// The memory at an address has been freed: if it was shared, gives up this process's part of it.
pub fn forget(address: u64) {
    lock(&EXPORTED).remove(&address);
    if lock(&IMPORTED).remove(&address).is_some() {
        crate::virtual_memory::release(address);
    }
}

/// Maps an allocation of another process, or counts one user more if it is mapped; returns its address here.
///
/// # Errors
/// If the bytes are no handle, the process has ended, or the handle is this process's own, which it must not open.
pub fn import(handle: &[u8; 64], is_of_pool: bool) -> Result<u64, Status> {
    let context = Context::current()?;
    let name = Name::of_bytes(handle, share::Kind::Memory).ok_or(INVALID)?;
    if name.process == std::process::id() {
        return Err(Status::CUDA_ERROR_INVALID_CONTEXT);
    }
    let mut imported = lock(&IMPORTED);
    if let Some((&address, import)) =
        imported.iter_mut().find(|(_, import)| import.file == name.file && import.is_of_pool == is_of_pool)
    {
        import.users += 1;
        return Ok(address);
    }
    let shared = Arc::new(name.open().map_err(|_| Status::CUDA_ERROR_MAP_FAILED)?);
    let bytes = name.numbers[0];
    if bytes == 0 || bytes > shared.bytes() as u64 {
        return Err(INVALID);
    }
    let driver = driver()?;
    let address = if driver.config.host_access {
        shared.start().as_ptr().expose_provenance() as u64
    } else {
        crate::virtual_memory::reserve(bytes).ok_or(Status::CUDA_ERROR_OUT_OF_MEMORY)?
    };
    let text = format!("memory of process {} (cuIpcOpenMemHandle)", name.process);
    let start = shared.start();
    // SAFETY: the memory has these bytes, and stays while it is kept.
    let mapped = unsafe { driver.machine.map_kept(address, start, bytes, text, shared) };
    mapped.map_err(|_| Status::CUDA_ERROR_MAP_FAILED)?;
    imported.insert(address, Import { file: name.file, users: 1, is_of_pool });
    drop(imported);
    driver.allocations.insert(address, bytes, memory::Kind::Imported, &context);
    Ok(address)
}

/// Takes back one opening of an allocation of another process; unmaps it after the last. All work that uses it is done.
///
/// # Errors
/// If no such allocation is at the address.
pub fn close(address: u64, is_of_pool: bool) -> Result<(), Status> {
    let driver = driver()?;
    {
        let mut imported = lock(&IMPORTED);
        let import = imported.get_mut(&address).filter(|import| import.is_of_pool == is_of_pool);
        let import = import.ok_or(INVALID)?;
        import.users -= 1;
        if import.users > 0 {
            return Ok(());
        }
        // From here on, another opening gets another address.
        imported.remove(&address);
    }
    driver.allocations.remove(address, |kind| kind == memory::Kind::Imported);
    let _ = driver.machine.free(address);
    crate::virtual_memory::release(address);
    Ok(())
}

/// The bytes of a handle for an allocation.
///
/// # Errors
/// As for [`export`].
pub fn handle_of(allocation: &Allocation) -> Result<[u8; 64], Status> {
    let shared = export(allocation)?;
    let name = shared.name(share::Kind::Memory, [allocation.bytes, 0]);
    Ok(name.map_err(|_| Status::CUDA_ERROR_OPERATING_SYSTEM)?.to_bytes())
}

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, the only flag.
const PEER_ACCESS: c_uint = 1;

api! { API:
    /// Makes a handle by which other processes open the allocation that an address lies in.
    cuIpcGetMemHandle 4010 "cuIpcGetMemHandle" (result: Out<CUipcMemHandle>, address: CUdeviceptr) {
        Context::current()?;
        let allocation = driver()?.allocations.find(address).ok_or(INVALID)?;
        if result.is_null() || allocation.kind != memory::Kind::Device {
            return Err(INVALID);
        }
        result.write(CUipcMemHandle { reserved: handle_of(&allocation)?.map(|byte| byte as _) })
    }
    /// Maps an allocation of another process.
    cuIpcOpenMemHandle 4010 "cuIpcOpenMemHandle", 11000 "cuIpcOpenMemHandle_v2" (result: Out<CUdeviceptr>, handle: CUipcMemHandle, flags: c_uint) {
        if result.is_null() || flags & !PEER_ACCESS != 0 {
            return Err(INVALID);
        }
        result.write(import(&handle.reserved.map(|byte| byte as u8), false)?)
    }
    /// Unmaps an allocation of another process, when it has been closed as often as opened.
    cuIpcCloseMemHandle 4010 "cuIpcCloseMemHandle" (address: CUdeviceptr) {
        Context::current_or(memory::owner(address)?)?.synchronize()?;
        close(address, false)
    }
    /// Makes a handle by which other processes open an event.
    cuIpcGetEventHandle 4010 "cuIpcGetEventHandle" (result: Out<CUipcEventHandle>, handle: CUevent) {
        let event = event(handle)?;
        let shared = event.shared.as_ref().ok_or(Status::CUDA_ERROR_INVALID_HANDLE)?;
        result.write(CUipcEventHandle { reserved: shared.name()?.to_bytes().map(|byte| byte as _) })
    }
    /// Opens an event of another process.
    cuIpcOpenEventHandle 4010 "cuIpcOpenEventHandle" (result: Out<CUevent>, handle: CUipcEventHandle) {
        let context = Context::current()?;
        let name = Name::of_bytes(&handle.reserved.map(|byte| byte as u8), share::Kind::Event).ok_or(INVALID)?;
        if name.process == std::process::id() {
            return Err(Status::CUDA_ERROR_INVALID_CONTEXT);
        }
        Event::insert(result, &context, false, Some(SharedEvent::open(name)?))
    }
}
