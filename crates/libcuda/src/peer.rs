//! Which memory kernels reach if there are several devices (CUDA Driver API, "Peer Context Memory Access").
//!
//! All devices share one address space and one machine, so a launch is given what it may not reach: memory of other devices that the
//! program has not opened to its device. That takes `cuCtxEnablePeerAccess` for what contexts allocate, `cuMemPoolSetAccess` for memory
//! of pools, and `cuMemSetAccess` for what `cuMemMap` maps. Memory of the host and managed memory are open to all. Copies need nothing.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{CUcontext, CUdevice};
use machine::memory::Withheld;

use crate::api::api;
use crate::context::{CONTEXTS, Context, context};
use crate::driver::driver;
use crate::lock;
use crate::memory::{Allocation, Kind};
use crate::pointers::Out;
use crate::{INVALID, Status};

/// What a context reaches of other devices.
#[derive(Default)]
pub struct Peers {
    /// The contexts whose memory it reaches, by number.
    open: Mutex<BTreeSet<u64>>,
    /// What its kernels do not reach, and what [`CHANGES`] was then.
    withheld: Mutex<Option<(u64, List)>>,
}

/// First addresses, and why; `None` for an empty list.
type List = Option<Arc<Withheld>>;

/// How often allocations, or what opens them, have changed.
static CHANGES: AtomicU64 = AtomicU64::new(1);

/// Allocations, or what opens them, have changed.
pub fn changed() {
    CHANGES.fetch_add(1, Ordering::AcqRel);
}

/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`: what a device may do with its own memory.
pub const READ_AND_WRITE: c_uint = 3;

/// The function whose call would let kernels of a context reach an allocation of another device; `None` if they do.
fn missing(viewer: &Context, allocation: &Allocation) -> Option<&'static str> {
    let own = viewer.device;
    let (is_open, call) = match allocation.kind {
        Kind::Managed | Kind::Host(_) | Kind::Registered(_) => return None,
        Kind::Pool => (crate::pool::is_open(allocation.base, own), "cudaMemPoolSetAccess"),
        Kind::Mapped => (crate::virtual_memory::is_open(allocation.base, own), "cuMemSetAccess"),
        Kind::Device | Kind::Internal | Kind::Variable | Kind::Array | Kind::Imported => {
            (lock(&viewer.peers.open).contains(&allocation.context), "cudaDeviceEnablePeerAccess")
        }
    };
    (!is_open).then_some(call)
}

/// Why a device does not reach memory of another one, in words that follow the name of the allocation.
fn why(call: &str, own: u32, device: u32) -> String {
    format!("which is memory of device {device}: `{call}` has not let device {own} reach it")
}

/// What kernels of a context do not reach. With one device there is nothing.
pub fn withheld(context: u64) -> List {
    let driver = driver().ok().filter(|driver| driver.config.count() > 1)?;
    let viewer = CONTEXTS.find(|other| other.id == context)?;
    let now = CHANGES.load(Ordering::Acquire);
    let mut known = lock(&viewer.peers.withheld);
    if let Some((_, list)) = known.as_ref().filter(|(then, _)| *then == now) {
        return list.clone();
    }
    let mut reasons = HashMap::new();
    let others = driver.allocations.of_other_devices(viewer.device);
    let list = others.iter().filter_map(|allocation| {
        let call = missing(&viewer, allocation)?;
        let reason = reasons.entry((call, allocation.device));
        let why = reason.or_insert_with(|| Arc::<str>::from(why(call, viewer.device, allocation.device)));
        Some((allocation.base, Arc::clone(why)))
    });
    let list = Some(list.collect::<Arc<Withheld>>()).filter(|list| !list.is_empty());
    *known = Some((now, list.clone()));
    list
}

/// The number of a context's device, and how many devices there are.
pub fn place(context: u64) -> [u32; 2] {
    let device = CONTEXTS.find(|other| other.id == context).map_or(0, |context| context.device);
    [device, driver().map_or(1, |driver| driver.config.count())]
}

thread_local! {
    /// The number of the context whose stream has this thread do a library's work, or 0.
    static WORKS_FOR: Cell<u64> = const { Cell::new(0) };
}

/// Does work of a library for a stream of a context.
pub fn working_for<T>(context: &Context, work: impl FnOnce() -> T) -> T {
    let before = WORKS_FOR.replace(context.id);
    let result = work();
    WORKS_FOR.set(before);
    result
}

/// Checks that the work of a library which this thread does reaches memory at an address.
///
/// # Errors
/// If it is memory of another device that the program has not opened to the work's device; stderr says so.
pub fn check_work(address: u64, who: &str) -> Result<(), Status> {
    let driver = driver()?;
    if driver.config.count() < 2 {
        return Ok(());
    }
    let viewer = CONTEXTS.find(|other| other.id == WORKS_FOR.get());
    let (Some(viewer), Some(allocation)) = (viewer, driver.allocations.find(address)) else { return Ok(()) };
    match missing(&viewer, &allocation).filter(|_| allocation.device != viewer.device) {
        None => Ok(()),
        Some(call) => {
            let why = why(call, viewer.device, allocation.device);
            crate::log::log!(
                error,
                "{who}: the allocation at {:#x}, {} bytes, {why}",
                allocation.base,
                allocation.bytes
            );
            Err(Status::CUDA_ERROR_ILLEGAL_ADDRESS)
        }
    }
}

/// The current context, and another one of another device.
fn pair(peer: CUcontext) -> Result<(Arc<Context>, Arc<Context>), Status> {
    let (current, peer) = (Context::current()?, context(peer)?);
    if current.device == peer.device { Err(Status::CUDA_ERROR_INVALID_DEVICE) } else { Ok((current, peer)) }
}

api! { API:
    /// Whether a device can be let reach the memory of another one: all can.
    cuDeviceCanAccessPeer 4000 "cuDeviceCanAccessPeer" (result: Out<c_int>, device: CUdevice, peer: CUdevice) {
        let (device, peer) = (driver()?.ordinal(device)?, driver()?.ordinal(peer)?);
        result.write((device != peer).into())
    }
    /// What is known of the way between two devices.
    cuDeviceGetP2PAttribute 8000 "cuDeviceGetP2PAttribute" (result: Out<c_int>, attribute: c_uint, device: CUdevice, peer: CUdevice) {
        if driver()?.ordinal(device)? == driver()?.ordinal(peer)? {
            return Err(Status::CUDA_ERROR_INVALID_DEVICE);
        }
        match attribute {
            1 => result.write(0),
            2..=4 => result.write(1),
            _ => Err(INVALID),
        }
    }
    /// Lets kernels of this context reach what another one, of another device, has allocated and will allocate.
    cuCtxEnablePeerAccess 4000 "cuCtxEnablePeerAccess" (peer: CUcontext, flags: c_uint) {
        if flags != 0 {
            return Err(INVALID);
        }
        let (current, peer) = pair(peer)?;
        let is_new = lock(&current.peers.open).insert(peer.id);
        changed();
        if is_new { Ok(()) } else { Err(Status::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) }
    }
    /// Takes that back, for kernels that are launched later.
    cuCtxDisablePeerAccess 4000 "cuCtxDisablePeerAccess" (peer: CUcontext) {
        let (current, peer) = (Context::current()?, context(peer)?);
        let was_enabled = lock(&current.peers.open).remove(&peer.id);
        changed();
        if was_enabled { Ok(()) } else { Err(Status::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED) }
    }
}
