//! Virtual memory management: reserved address ranges, physical memory, and mappings.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use cudarc::driver::sys::{CUdeviceptr, CUmemAllocationProp};

use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::handles::{Handles, handle_of};
use crate::lock;
use crate::memory::Kind;
use crate::peer::READ_AND_WRITE;
use crate::pointers::{In, Out, required};
use crate::pool::{Access, Location};
use crate::share::Shared;
use crate::{INVALID, Status};

/// Sizes and addresses are multiples of this: 2 MiB, as on GPUs.
const GRANULARITY: u64 = 2 << 20;
/// The distance between reserved ranges in bytes.
const GAP: u64 = 1 << 32;

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const DESCRIPTOR: c_uint = 1;
/// `CU_MEM_ALLOCATION_TYPE_PINNED` and `CU_MEM_LOCATION_TYPE_DEVICE`.
const PINNED: c_uint = 1;
const LOCATION_DEVICE: c_int = 1;

/// What memory is to be made (`CUmemAllocationProp`). Enumerations may have any value, so they are numbers.
#[repr(C)]
#[derive(Clone, Copy)]
struct Properties {
    kind: c_uint,
    /// The kinds of handles for other processes that a program has asked for.
    handle_types: c_uint,
    /// The kind of its location, and the number.
    location: [c_int; 2],
    metadata: *mut c_void,
    flags: [u8; 8],
}

const _: () = assert!(size_of::<Properties>() == size_of::<CUmemAllocationProp>());

impl Properties {
    /// The number of the device where the memory is; `current` for memory of the host.
    fn device(&self, current: u32) -> Result<u32, Status> {
        match self.location {
            [LOCATION_DEVICE, device] => driver()?.ordinal(device),
            _ => Ok(current),
        }
    }
}

/// Physical memory.
struct Physical {
    start: NonNull<u8>,
    bytes: usize,
    /// What other processes can map, if the program has asked for that. Otherwise it is this process's alone.
    shared: Option<Shared>,
    properties: Properties,
    /// Whether it has ever been mapped.
    is_used: AtomicBool,
}

// SAFETY: it is plain memory; whoever maps it synchronizes its users.
unsafe impl Send for Physical {}
// SAFETY: as above.
unsafe impl Sync for Physical {}

impl Physical {
    /// Memory that processes share. Others may have written it.
    fn shared(shared: Shared, properties: Properties) -> Physical {
        let (start, bytes) = (shared.start(), shared.bytes());
        Physical { start, bytes, shared: Some(shared), properties, is_used: AtomicBool::new(true) }
    }

    fn new(bytes: usize, properties: Properties) -> Option<Physical> {
        const PROTECTION: c_int = libc::PROT_READ | libc::PROT_WRITE;
        const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: it asks for new memory at any address.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, PROTECTION, FLAGS, -1, 0) };
        let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED)?;
        Some(Physical { start, bytes, shared: None, properties, is_used: AtomicBool::new(false) })
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        if self.shared.is_none() {
            // SAFETY: this is the mapping from `mmap`, and nothing uses it any more.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        }
    }
}

static PHYSICAL: Handles<Physical> = Handles::new();

/// The reserved ranges: by start, the size and the mappings by address.
static RANGES: Mutex<BTreeMap<u64, Range>> = Mutex::new(BTreeMap::new());

#[derive(Default)]
struct Range {
    bytes: u64,
    mapped: BTreeMap<u64, Mapping>,
}

struct Mapping {
    bytes: u64,
    physical: Arc<Physical>,
    /// What devices may do with it (`CUmemAccess_flags`), if that was set.
    access: BTreeMap<u32, c_uint>,
}

/// What a device may do with the memory that is mapped at this address, which is on the device `own`.
fn access_of(address: u64, device: u32, own: u32) -> c_uint {
    let ranges = ranges();
    let mapping = ranges.range(..=address).next_back().and_then(|(_, range)| range.mapped.get(&address));
    let set = mapping.and_then(|mapping| mapping.access.get(&device).copied());
    set.unwrap_or(if device == own { READ_AND_WRITE } else { 0 })
}

/// Whether the program lets a device reach the memory of another device that is mapped at this address.
pub fn is_open(address: u64, device: u32) -> bool {
    access_of(address, device, u32::MAX) != 0
}

fn ranges() -> MutexGuard<'static, BTreeMap<u64, Range>> {
    lock(&RANGES)
}

fn is_whole(bytes: u64) -> bool {
    bytes > 0 && bytes.is_multiple_of(GRANULARITY)
}

fn physical(handle: c_ulonglong) -> Result<Arc<Physical>, Status> {
    driver()?;
    PHYSICAL.get(std::ptr::without_provenance_mut::<()>(handle as usize)).ok_or(INVALID)
}

/// Reserves a range for memory of another process: at least so many bytes, at an aligned address.
pub fn reserve(bytes: u64) -> Option<u64> {
    let bytes = bytes.checked_next_multiple_of(GRANULARITY)?;
    place(&mut ranges(), bytes, GRANULARITY, 0)
}

/// Gives back a range from [`reserve`].
pub fn release(address: u64) {
    ranges().remove(&address);
}

/// Reserves a range at addresses of the host, none of which it can use yet.
fn place_on_host(ranges: &mut BTreeMap<u64, Range>, bytes: u64, align: u64) -> Option<u64> {
    let place = crate::host_pages::reserve(bytes, align)?;
    ranges.insert(place, Range { bytes, mapped: BTreeMap::new() });
    Some(place)
}

/// Reserves a range: at the wanted address if it is free, else behind all others.
fn place(ranges: &mut BTreeMap<u64, Range>, bytes: u64, align: u64, wanted: u64) -> Option<u64> {
    let is_free = |address: u64| {
        let end = address.checked_add(bytes).filter(|&end| end < machine::HEAP_BASE - GAP)?;
        let before = ranges.range(..end).next_back();
        let is_free = before.is_none_or(|(start, range)| start + range.bytes <= address);
        (address >= machine::MAPPED_BASE && is_free).then_some(address)
    };
    let last = ranges.last_key_value();
    let behind = last.map_or(machine::MAPPED_BASE, |(start, range)| start + range.bytes + GAP);
    let place = is_free(wanted).filter(|at| at.is_multiple_of(align));
    let place = place.or_else(|| is_free(behind.next_multiple_of(align)))?;
    ranges.insert(place, Range { bytes, mapped: BTreeMap::new() });
    Some(place)
}

/// Removes the mappings in a range of addresses. Operations that use them must be done.
fn unmap(address: u64, bytes: u64) -> Result<(), Status> {
    let mut ranges = ranges();
    let (_, range) = ranges.range_mut(..=address).next_back().ok_or(INVALID)?;
    let driver = driver()?;
    let end = address.checked_add(bytes).ok_or(INVALID)?;
    let inside: Vec<u64> = range.mapped.range(address..end).map(|(&at, _)| at).collect();
    if inside.is_empty() || inside.iter().any(|at| at + range.mapped[at].bytes > end) {
        return Err(INVALID);
    }
    for at in inside {
        driver.allocations.remove(at, |kind| kind == Kind::Mapped);
        let _ = driver.machine.free(at);
        let mapping = range.mapped.remove(&at);
        if driver.config.host_access
            && let Some(mapping) = mapping
        {
            // SAFETY: these pages are of a reserved range, and what uses them is done.
            unsafe { crate::host_pages::withdraw(at, mapping.bytes) };
        }
    }
    Ok(())
}

/// The device of the current context, or the first: physical memory needs no context.
fn current_device() -> Result<u32, Status> {
    Ok(Context::current_if_any()?.map_or(0, |context| context.device))
}

api! { API:
    /// What sizes and addresses are multiples of.
    cuMemGetAllocationGranularity 10020 "cuMemGetAllocationGranularity" (result: Out<usize>, properties: In<Properties>, option: c_uint) {
        driver()?;
        if properties.pointer().is_null() || option > 1 {
            return Err(INVALID);
        }
        result.write(GRANULARITY as usize)
    }
    /// Makes physical memory.
    cuMemCreate 10020 "cuMemCreate" (result: Out<c_ulonglong>, bytes: usize, properties: In<Properties>, flags: c_ulonglong) {
        let current = current_device()?;
        if result.is_null() || properties.pointer().is_null() || flags != 0 || !is_whole(bytes as u64) {
            return Err(INVALID);
        }
        let properties = properties.read()?;
        let device = properties.device(current)?;
        if crate::in_use::bytes(device).saturating_add(bytes as u64) > driver()?.config.memory {
            return Err(Status::CUDA_ERROR_OUT_OF_MEMORY);
        }
        let physical = match properties.handle_types {
            // What the host reaches is mapped twice: for the machine, and at its own address.
            0 if !driver()?.config.host_access => Physical::new(bytes, properties),
            0 | DESCRIPTOR => Shared::new(bytes).ok().map(|shared| Physical::shared(shared, properties)),
            _ => return Err(Status::CUDA_ERROR_NOT_SUPPORTED),
        };
        let physical = physical.ok_or(Status::CUDA_ERROR_OUT_OF_MEMORY)?;
        let handle = PHYSICAL.insert::<()>(Arc::new(physical));
        result.write(handle.addr() as c_ulonglong)
    }
    /// Makes a descriptor of physical memory, for other processes. The program closes it.
    cuMemExportToShareableHandle 10020 "cuMemExportToShareableHandle" (result: Out<c_int>, handle: c_ulonglong, kind: c_uint, flags: c_ulonglong) {
        let physical = physical(handle)?;
        if result.is_null() || flags != 0 {
            return Err(INVALID);
        }
        if kind != DESCRIPTOR {
            return Err(Status::CUDA_ERROR_NOT_SUPPORTED);
        }
        // It has to be asked for when the memory is made.
        let shared = physical.shared.as_ref().filter(|_| physical.properties.handle_types == DESCRIPTOR);
        let shared = shared.ok_or(INVALID)?;
        result.write(shared.descriptor().map_err(|_| Status::CUDA_ERROR_OPERATING_SYSTEM)?)
    }
    /// Makes physical memory out of a descriptor of another process's. The descriptor stays the program's.
    cuMemImportFromShareableHandle 10020 "cuMemImportFromShareableHandle" (result: Out<c_ulonglong>, handle: *mut c_void, kind: c_uint) {
        let current = current_device()?;
        required(result.pointer())?;
        if kind != DESCRIPTOR {
            return Err(Status::CUDA_ERROR_NOT_SUPPORTED);
        }
        let descriptor = c_int::try_from(handle.addr()).map_err(|_| INVALID)?;
        let shared = Shared::of_descriptor(descriptor).ok().filter(|shared| is_whole(shared.bytes() as u64));
        let location = [LOCATION_DEVICE, current as c_int];
        let metadata = std::ptr::null_mut();
        let properties = Properties { kind: PINNED, handle_types: DESCRIPTOR, location, metadata, flags: [0; 8] };
        let physical = Physical::shared(shared.ok_or(INVALID)?, properties);
        result.write(PHYSICAL.insert::<()>(Arc::new(physical)).addr() as c_ulonglong)
    }
    /// Gives physical memory back when it is mapped nowhere.
    cuMemRelease 10020 "cuMemRelease" (handle: c_ulonglong) {
        physical(handle)?;
        PHYSICAL.remove(std::ptr::without_provenance_mut::<()>(handle as usize));
        Ok(())
    }
    /// Reserves a range of addresses.
    cuMemAddressReserve 10020 "cuMemAddressReserve" (result: Out<CUdeviceptr>, bytes: usize, alignment: usize, wanted: CUdeviceptr, flags: c_ulonglong) {
        driver()?;
        let align = (alignment as u64).max(GRANULARITY);
        if result.is_null() || flags != 0 || !is_whole(bytes as u64) || !align.is_power_of_two() {
            return Err(INVALID);
        }
        let place = match driver()?.config.host_access {
            true => place_on_host(&mut ranges(), bytes as u64, align),
            false => place(&mut ranges(), bytes as u64, align, wanted),
        };
        result.write(place.ok_or(Status::CUDA_ERROR_OUT_OF_MEMORY)?)
    }
    /// Gives a range of addresses back.
    cuMemAddressFree 10020 "cuMemAddressFree" (address: CUdeviceptr, bytes: usize) {
        driver()?;
        let mut ranges = ranges();
        let range = ranges.get(&address).filter(|range| range.bytes == bytes as u64 && range.mapped.is_empty());
        range.ok_or(INVALID)?;
        ranges.remove(&address);
        if driver()?.config.host_access {
            // SAFETY: the program reserved this range, on the host then, and nothing is mapped in it any more.
            unsafe { crate::host_pages::unreserve(address, bytes as u64) };
        }
        Ok(())
    }
    /// Maps physical memory at an address.
    cuMemMap 10020 "cuMemMap" (address: CUdeviceptr, bytes: usize, offset: usize, handle: c_ulonglong, flags: c_ulonglong) {
        let context = Context::current()?;
        let physical = physical(handle)?;
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= physical.bytes);
        if flags != 0 || !is_whole(bytes as u64) || !address.is_multiple_of(GRANULARITY) || !fits {
            return Err(INVALID);
        }
        let mut ranges = ranges();
        let (start, range) = ranges.range_mut(..=address).next_back().ok_or(INVALID)?;
        let end = address.checked_add(bytes as u64).filter(|&end| end <= start + range.bytes).ok_or(INVALID)?;
        let before = range.mapped.range(..end).next_back();
        if before.is_some_and(|(at, mapping)| at + mapping.bytes > address) {
            return Err(INVALID);
        }
        if driver()?.config.host_access {
            let shared = physical.shared.as_ref().ok_or(INVALID)?;
            let place = NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize)).ok_or(INVALID)?;
            // SAFETY: the program passes whole pages of a range that it reserved, on the host then, and nothing is mapped there.
            unsafe { shared.map_over(place, offset, bytes) }.map_err(|_| Status::CUDA_ERROR_OUT_OF_MEMORY)?;
        }
        let name = "mapped memory (cuMemMap)";
        let machine = &driver()?.machine;
        // SAFETY: these bytes are in the physical memory, which the mapping keeps until `unmap`. That comes when what uses it is done.
        unsafe { machine.map_at(address, physical.start.add(offset), bytes as u64, name) }.map_err(|_| INVALID)?;
        let device = physical.properties.device(context.device)?;
        driver()?.allocations.insert_on(device, address, bytes as u64, Kind::Mapped, &context);
        let is_used = physical.is_used.swap(true, Ordering::Relaxed);
        range.mapped.insert(address, Mapping { bytes: bytes as u64, physical: Arc::clone(&physical), access: BTreeMap::new() });
        if is_used {
            // initcheck does not follow a write through one address to the others, so all count as written.
            let mappings = ranges.values().flat_map(|range| &range.mapped);
            for (&at, mapping) in mappings.filter(|(_, mapping)| Arc::ptr_eq(&mapping.physical, &physical)) {
                crate::initialized::written(at, mapping.bytes);
            }
        }
        Ok(())
    }
    /// Takes what is mapped at addresses away.
    cuMemUnmap 10020 "cuMemUnmap" (address: CUdeviceptr, bytes: usize) {
        let owner = driver()?.allocations.find(address).map(|allocation| allocation.context);
        match Context::current_or(owner) {
            Ok(context) => context.synchronize()?,
            // The context in which it was mapped has gone, and all work with it.
            Err(Status::CUDA_ERROR_INVALID_CONTEXT) => {}
            Err(broken) => return Err(broken),
        }
        unmap(address, bytes as u64)
    }
    /// Lets devices reach what is mapped at addresses, or not any more. The memory's own device does from the beginning.
    cuMemSetAccess 10020 "cuMemSetAccess" (address: CUdeviceptr, bytes: usize, access: In<Access>, count: usize) {
        driver()?;
        if access.pointer().is_null() || count == 0 {
            return Err(INVALID);
        }
        let wanted = access.read_all(count)?.into_iter().filter_map(|access| match access.device() {
            Ok(device) => Some((device, access.flags)),
            // The host, or a part of it.
            Err(_) => None,
        });
        let wanted = wanted.collect::<Vec<_>>();
        driver()?.allocations.check(address, bytes as u64)?;
        let end = address.checked_add(bytes as u64).ok_or(INVALID)?;
        let mut ranges = ranges();
        let mappings = ranges.range_mut(..end).next_back().map(|(_, range)| range.mapped.range_mut(address..end));
        for (_, mapping) in mappings.into_iter().flatten() {
            mapping.access.extend(wanted.iter().copied());
        }
        crate::peer::changed();
        Ok(())
    }
    /// Whether a device reads (1) or reads and writes (3) what is mapped at an address.
    cuMemGetAccess 10020 "cuMemGetAccess" (flags: Out<c_ulonglong>, location: In<Location>, address: CUdeviceptr) {
        let found = driver()?.allocations.find(address).ok_or(INVALID)?;
        flags.write(match location.read()?.device() {
            Ok(device) => access_of(found.base, device, found.device).into(),
            // The host, or a part of it.
            Err(_) => READ_AND_WRITE.into(),
        })
    }
    /// What physical memory was made as.
    cuMemGetAllocationPropertiesFromHandle 10020 "cuMemGetAllocationPropertiesFromHandle" (result: Out<Properties>, handle: c_ulonglong) {
        result.write(physical(handle)?.properties)
    }
    /// The physical memory that is mapped at an address.
    cuMemRetainAllocationHandle 11000 "cuMemRetainAllocationHandle" (result: Out<c_ulonglong>, address: *mut c_void) {
        driver()?;
        let address = address.addr() as u64;
        let ranges = ranges();
        let (_, range) = ranges.range(..=address).next_back().ok_or(INVALID)?;
        let (at, mapping) = range.mapped.range(..=address).next_back().ok_or(INVALID)?;
        if address - at >= mapping.bytes {
            return Err(INVALID);
        }
        PHYSICAL.insert::<()>(Arc::clone(&mapping.physical));
        result.write(handle_of::<Physical, ()>(&mapping.physical).addr() as c_ulonglong)
    }
}
