//! Allocations, and the queries of programs about them.
//!
//! All devices share an address space. Device addresses are above those of the host ([`DEVICE_BASE`]), so an address shows whose it is;
//! managed and pinned memory has one address for both. Memory that `cuMemMap` maps is in a region of its own, piece by piece
//! (`virtual_memory.rs`). [`Allocations`] holds the live allocations; copies and fills are checked against it before they are queued.

use std::collections::BTreeMap;
use std::ffi::{c_uint, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use cudarc::driver::sys::{CUdeviceptr, CUpointer_attribute};

use crate::api::api;
use crate::context::Context;
use crate::driver::{Driver, driver};
use crate::host_pages::Pages;
use crate::pointers::{Bytes, In, Out, required, write_bytes};
use crate::{INVALID, Status};

/// Addresses from here on belong to the device alone; lower ones are host pointers.
pub const DEVICE_BASE: u64 = 1 << 48;

/// The kind of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Device memory.
    Device,
    /// Device memory of the driver itself: the `.const` memory of a module, the values of graphs. It is freed with its owner.
    Internal,
    /// Device memory from a pool, freed in stream order.
    Pool,
    /// Managed memory: host and device access it at one address.
    Managed,
    /// Pinned host memory, with its allocation flags.
    Host(c_uint),
    /// Host memory that the program registered.
    Registered(c_uint),
    /// A variable of a module.
    Variable,
    /// An array of texels.
    Array,
    /// A range of virtual addresses with memory mapped to it.
    Mapped,
    /// An allocation of another process, which counts it.
    Imported,
}

/// A live allocation.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    pub base: u64,
    pub bytes: u64,
    pub kind: Kind,
    /// The number of its device.
    pub device: u32,
    /// The number of its context.
    pub context: u64,
    /// A number that no other allocation has had.
    pub id: u64,
}

/// The live allocations, by address.
#[derive(Default)]
pub struct Allocations {
    live: RwLock<BTreeMap<u64, Allocation>>,
    /// Memory that graphs will have: address and size.
    promised: RwLock<BTreeMap<u64, u64>>,
    count: AtomicU64,
}

impl Kind {
    /// Whether it takes device memory.
    fn is_of_device(self) -> bool {
        !matches!(self, Kind::Host(_) | Kind::Registered(_))
    }

    /// Whether new memory of this kind has one address for host and device.
    fn is_at_host_address(self, driver: &Driver) -> bool {
        match self {
            Kind::Managed | Kind::Host(_) => true,
            Kind::Device | Kind::Pool => driver.config.host_access,
            _ => false,
        }
    }

    /// Whether it takes memory of the device for this process.
    fn is_counted(self) -> bool {
        self.is_of_device() && self != Kind::Imported
    }
}

impl Allocations {
    /// Adds an allocation.
    pub fn insert(&self, base: u64, bytes: u64, kind: Kind, context: &Context) {
        self.insert_on(context.device, base, bytes, kind, context);
    }

    /// Adds an allocation on a device that need not be that of the context to which it belongs.
    pub fn insert_on(&self, device: u32, base: u64, bytes: u64, kind: Kind, context: &Context) {
        let id = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let allocation = Allocation { base, bytes, kind, device, context: context.id, id };
        if kind.is_counted() {
            crate::in_use::allocated(device, bytes);
        }
        self.live.write().unwrap_or_else(PoisonError::into_inner).insert(base, allocation);
        crate::peer::changed();
        crate::initialized::allocated(base, bytes, kind);
    }

    /// Removes the allocation at `base`, if it is of a given kind.
    pub fn remove(&self, base: u64, kind: impl Fn(Kind) -> bool) -> Option<Allocation> {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        let allocation = *live.get(&base).filter(|allocation| kind(allocation.kind))?;
        live.remove(&base);
        crate::peer::changed();
        crate::initialized::freed(base);
        if allocation.kind.is_counted() {
            crate::in_use::freed(allocation.device, allocation.bytes);
        }
        Some(allocation)
    }

    /// All live allocations.
    pub fn live(&self) -> Vec<Allocation> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).values().copied().collect()
    }

    /// The live allocations of all devices but one.
    pub fn of_other_devices(&self, device: u32) -> Vec<Allocation> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.values().filter(|allocation| allocation.device != device).copied().collect()
    }

    /// The allocation that contains an address.
    pub fn find(&self, address: u64) -> Option<Allocation> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        let (_, allocation) = live.range(..=address).next_back()?;
        (address - allocation.base < allocation.bytes.max(1)).then_some(*allocation)
    }

    /// Records that there will be memory at an address.
    pub fn promise(&self, base: u64, bytes: u64) {
        self.promised.write().unwrap_or_else(PoisonError::into_inner).insert(base, bytes);
    }

    /// Removes such a record.
    pub fn break_promise(&self, base: u64) {
        self.promised.write().unwrap_or_else(PoisonError::into_inner).remove(&base);
    }

    /// Whether there will be memory at this address, or is already.
    pub fn is_promised(&self, base: u64) -> bool {
        self.promised.read().unwrap_or_else(PoisonError::into_inner).contains_key(&base)
    }

    /// The number of bytes from an address on that a graph has or will have.
    fn promised(&self, address: u64) -> Option<u64> {
        let promised = self.promised.read().unwrap_or_else(PoisonError::into_inner);
        let (base, bytes) = promised.range(..=address).next_back()?;
        bytes.checked_sub(address - base).filter(|&rest| rest > 0)
    }

    /// Checks that these bytes are allocated, or will be when a graph is launched. They may span adjacent mapped pieces.
    ///
    /// # Errors
    /// If they are not.
    pub fn check(&self, address: u64, bytes: u64) -> Result<(), Status> {
        if self.promised(address).is_some_and(|rest| bytes <= rest) {
            return Ok(());
        }
        let mut address = address;
        let end = address.checked_add(bytes).ok_or(INVALID)?;
        loop {
            let allocation = self.find(address).ok_or(INVALID)?;
            match allocation.base + allocation.bytes {
                last if last >= end => return Ok(()),
                last if allocation.kind == Kind::Mapped => address = last,
                _ => return Err(INVALID),
            }
        }
    }

    /// The number of bytes from an address to the end of its allocation. Adjacent mapped pieces are not contiguous in the machine.
    pub fn rest(&self, address: u64) -> u64 {
        self.find(address).map_or(u64::MAX, |allocation| allocation.base + allocation.bytes - address)
    }

    /// Frees everything that belongs to a context.
    pub fn free_all(&self, driver: &Driver, context: u64) {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        live.retain(|_, allocation| {
            let goes = allocation.context == context && allocation.kind != Kind::Mapped;
            if goes {
                crate::initialized::freed(allocation.base);
                crate::pool::released(allocation.base, allocation.bytes);
                if allocation.kind.is_counted() {
                    crate::in_use::freed(allocation.device, allocation.bytes);
                }
                if !matches!(allocation.kind, Kind::Variable | Kind::Array) {
                    let _ = give_back(driver, allocation.base);
                }
            }
            !goes
        });
        crate::peer::changed();
    }
}

/// Allocates device memory.
///
/// # Errors
/// If there is not enough.
pub fn allocate(context: &Context, bytes: usize, kind: Kind, what: &str) -> Result<u64, Status> {
    allocate_on(context.device, context, bytes, kind, what)
}

/// Allocates memory of a device that need not be that of the context to which it will belong.
///
/// # Errors
/// If there is not enough.
pub fn allocate_on(
    device: u32,
    context: &Context,
    bytes: usize,
    kind: Kind,
    what: &str,
) -> Result<u64, Status> {
    let driver = driver()?;
    let bytes = bytes as u64;
    if bytes == 0 {
        return Err(INVALID);
    }
    let used = crate::in_use::bytes(device);
    if kind.is_of_device() && used.checked_add(bytes).is_none_or(|used| used > driver.config.memory) {
        return Err(Status::CUDA_ERROR_OUT_OF_MEMORY);
    }
    let number = driver.allocations.count.load(Ordering::Relaxed) + 1;
    let origin = match crate::origin::caller() {
        Some(caller) => format!("{what}, called by {caller}"),
        None => what.to_owned(),
    };
    let name = format!("allocation {number} ({origin})");
    let out_of_memory = |_| Status::CUDA_ERROR_OUT_OF_MEMORY;
    let known_as = name.clone();
    let base = match own_pages(driver, kind, bytes) {
        Some(pages) => {
            let (address, start) = (pages.address(), pages.start());
            // SAFETY: the pages stay mapped while they are kept.
            unsafe { driver.machine.map_kept(address, start, bytes, name, Arc::new(pages)) }
                .map_err(|_| Status::CUDA_ERROR_OUT_OF_MEMORY)?;
            address
        }
        None if kind.is_at_host_address(driver) => {
            let start = driver.machine.allocate_shared_with_host(bytes, name).map_err(out_of_memory)?;
            start.as_ptr().expose_provenance() as u64
        }
        None => driver.machine.allocate(bytes, name).map_err(out_of_memory)?,
    };
    driver.allocations.insert_on(device, base, bytes, kind, context);
    crate::leak::note(base, || origin);
    crate::initialized::named(base, &known_as);
    Ok(base)
}

/// Pages for an allocation that must have its own: where initcheck asks which pages the host has touched, and where memory
/// of the device is at an address of the host, to which it may move to shared memory.
fn own_pages(driver: &Driver, kind: Kind, bytes: u64) -> Option<Pages> {
    match kind {
        Kind::Managed | Kind::Host(_) if crate::initialized::is_wanted() => Pages::map(bytes, true),
        Kind::Device | Kind::Pool if driver.config.host_access => Pages::map(bytes, false),
        _ => None,
    }
}

/// The number of the context that an address belongs to.
///
/// # Errors
/// If the driver does not run.
pub fn owner(address: u64) -> Result<Option<u64>, Status> {
    Ok(driver()?.allocations.find(address).map(|allocation| allocation.context))
}

/// Frees memory that [`allocate`] returned.
///
/// # Errors
/// If [`allocate`] did not return it.
pub fn free(address: u64) -> Result<(), Status> {
    let driver = driver()?;
    let is_ours = |kind| matches!(kind, Kind::Device | Kind::Internal | Kind::Managed | Kind::Pool);
    let Some(freed) = driver.allocations.remove(address, is_ours) else {
        // Of other processes' memory, only that of pools is freed.
        return crate::ipc::close(address, true);
    };
    crate::pool::released(address, freed.bytes);
    give_back(driver, address)
}

/// Frees memory in the machine, and gives up what of it is shared with other processes.
///
/// # Errors
/// If the machine has no memory there.
pub fn give_back(driver: &Driver, address: u64) -> Result<(), Status> {
    let freed = driver.machine.free(address).map_err(|_| INVALID);
    crate::ipc::forget(address);
    freed
}

/// The rows of a pitched allocation are aligned to this.
const PITCH: usize = 512;

const HOST_FLAGS: c_uint = 7;
const READ_ONLY: c_uint = 8;

/// Allocates pinned memory.
fn allocate_host(result: Out<*mut c_void>, bytes: usize, flags: c_uint) -> Result<(), Status> {
    let context = Context::current()?;
    if result.is_null() || flags & !HOST_FLAGS != 0 {
        return Err(INVALID);
    }
    let address = allocate(&context, bytes, Kind::Host(flags), "cuMemHostAlloc")?;
    result.write(std::ptr::with_exposed_provenance_mut(address as usize))
}

/// The allocation of host memory that contains a pointer.
fn host_allocation(pointer: *mut c_void) -> Result<Allocation, Status> {
    Context::current()?;
    let found = driver()?.allocations.find(pointer.addr() as u64);
    let is_host = |allocation: &Allocation| {
        matches!(allocation.kind, Kind::Host(_) | Kind::Registered(_) | Kind::Managed)
    };
    found.filter(is_host).ok_or(INVALID)
}

/// Answers `cuPointerGetAttribute`, with a number of so many bytes as [`attribute_bytes`] says. For an unknown pointer it fails;
/// `cuPointerGetAttributes` returns zeros instead.
fn pointer_attribute(attribute: u32, address: u64) -> Result<u64, Status> {
    use CUpointer_attribute as A;
    let driver = driver()?;
    let allocation = driver.allocations.find(address);
    let known = allocation.ok_or(INVALID);
    let is = |wanted: A| attribute == wanted as u32;
    Ok(match attribute {
        _ if is(A::CU_POINTER_ATTRIBUTE_CONTEXT) => {
            driver.context_of(known?.context).map_or(0, |handle| handle.addr() as u64)
        }
        // 1 for the host, 2 for a device.
        _ if is(A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE) => 1 + u64::from(known?.kind.is_of_device()),
        _ if is(A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER) => known.map(|_| address)?,
        _ if is(A::CU_POINTER_ATTRIBUTE_HOST_POINTER) => match known? {
            _ if address < DEVICE_BASE => address,
            _ => return Err(INVALID),
        },
        _ if is(A::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) => known.map(|_| 0)?,
        _ if is(A::CU_POINTER_ATTRIBUTE_BUFFER_ID) => known?.id,
        _ if is(A::CU_POINTER_ATTRIBUTE_IS_MANAGED) => (known?.kind == Kind::Managed).into(),
        _ if is(A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) => known?.device.into(),
        _ if is(A::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) => (known?.kind == Kind::Device).into(),
        _ if is(A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) => known?.base,
        _ if is(A::CU_POINTER_ATTRIBUTE_RANGE_SIZE) => known?.bytes,
        _ if is(A::CU_POINTER_ATTRIBUTE_MAPPED) => allocation.is_some().into(),
        _ if is(A::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES) => 0,
        _ if is(A::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE) => 0,
        _ if is(A::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS) => known.map(|_| 3)?,
        _ if is(A::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) => 0,
        _ if is(A::CU_POINTER_ATTRIBUTE_MAPPING_SIZE) => known?.bytes,
        _ if is(A::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR) => known?.base,
        _ if is(A::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID) => known?.id,
        _ => return Err(INVALID),
    })
}

/// Writes the value of a pointer attribute.
fn write_attribute(place: Bytes, attribute: u32, value: u64) -> Result<(), Status> {
    // The host is little-endian, so the first bytes are the number.
    write_bytes(place, &value.to_le_bytes()[..attribute_bytes(attribute)])
}

/// The size of a pointer attribute in bytes.
fn attribute_bytes(attribute: u32) -> usize {
    use CUpointer_attribute as A;
    let large = [
        A::CU_POINTER_ATTRIBUTE_CONTEXT,
        A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        A::CU_POINTER_ATTRIBUTE_HOST_POINTER,
        A::CU_POINTER_ATTRIBUTE_BUFFER_ID,
        A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        A::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        A::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
        A::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
        A::CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
        A::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
        A::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID,
    ];
    match attribute {
        _ if attribute == A::CU_POINTER_ATTRIBUTE_MAPPED as u32 => 1,
        _ if large.iter().any(|&other| other as u32 == attribute) => 8,
        _ => 4,
    }
}

api! { API:
    /// Allocates device memory.
    cuMemAlloc 3020 "cuMemAlloc_v2" (result: Out<CUdeviceptr>, bytes: usize) {
        let context = Context::current()?;
        required(result.pointer())?;
        result.write(allocate(&context, bytes, Kind::Device, "cuMemAlloc")?)
    }
    /// Allocates device memory for rows that begin at aligned addresses.
    cuMemAllocPitch 3020 "cuMemAllocPitch_v2" (result: Out<CUdeviceptr>, pitch: Out<usize>, width: usize, height: usize, element: c_uint) {
        let context = Context::current()?;
        if result.is_null() || pitch.is_null() || !matches!(element, 4 | 8 | 16) {
            return Err(INVALID);
        }
        let row = width.checked_next_multiple_of(PITCH).ok_or(INVALID)?;
        let bytes = row.checked_mul(height).ok_or(INVALID)?;
        result.write(allocate(&context, bytes, Kind::Device, "cuMemAllocPitch")?)?;
        pitch.write(row)
    }
    /// Allocates memory that host and device reach at one address.
    cuMemAllocManaged 6000 "cuMemAllocManaged" (result: Out<CUdeviceptr>, bytes: usize, flags: c_uint) {
        let context = Context::current()?;
        if result.is_null() || !matches!(flags, 1 | 2) {
            return Err(INVALID);
        }
        result.write(allocate(&context, bytes, Kind::Managed, "cuMemAllocManaged")?)
    }
    /// Gives device memory back when all work that may use it is done.
    cuMemFree 3020 "cuMemFree_v2" (address: CUdeviceptr) {
        let context = Context::current_or(owner(address)?)?;
        if address == 0 {
            return Ok(());
        }
        context.synchronize()?;
        free(address)
    }
    /// Allocates pinned memory of the host.
    cuMemAllocHost 3020 "cuMemAllocHost_v2" (result: Out<*mut c_void>, bytes: usize) {
        allocate_host(result, bytes, 0)
    }
    /// Allocates pinned memory of the host, with flags.
    cuMemHostAlloc 2020 "cuMemHostAlloc" (result: Out<*mut c_void>, bytes: usize, flags: c_uint) {
        allocate_host(result, bytes, flags)
    }
    /// Gives pinned memory back.
    cuMemFreeHost 2000 "cuMemFreeHost" (pointer: *mut c_void) {
        let context = Context::current_or(owner(pointer.addr() as u64)?)?;
        if pointer.is_null() {
            return Ok(());
        }
        context.synchronize()?;
        let driver = driver()?;
        let address = pointer.addr() as u64;
        let found = driver.allocations.remove(address, |kind| matches!(kind, Kind::Host(_)));
        found.ok_or(INVALID)?;
        give_back(driver, address)
    }
    /// Lets kernels reach memory of the program.
    cuMemHostRegister 6050 "cuMemHostRegister_v2" (pointer: *mut c_void, bytes: usize, flags: c_uint) {
        let context = Context::current()?;
        let start = NonNull::new(pointer.cast::<u8>()).filter(|_| bytes > 0 && flags & !(HOST_FLAGS | READ_ONLY) == 0);
        let start = start.ok_or(INVALID)?;
        let (driver, address) = (driver()?, pointer.expose_provenance() as u64);
        let taken = |_| Status::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        let name = "memory of the host (cuMemHostRegister)";
        // SAFETY: the program has these bytes until it unregisters them, which waits for what uses them.
        unsafe { driver.machine.map_at(address, start, bytes as u64, name) }.map_err(taken)?;
        driver.allocations.insert(address, bytes as u64, Kind::Registered(flags), &context);
        Ok(())
    }
    /// Takes memory of the program away from kernels.
    cuMemHostUnregister 4000 "cuMemHostUnregister" (pointer: *mut c_void) {
        let context = Context::current_or(owner(pointer.addr() as u64)?)?;
        required(pointer)?;
        context.synchronize()?;
        let (driver, address) = (driver()?, pointer.addr() as u64);
        let found = driver.allocations.remove(address, |kind| matches!(kind, Kind::Registered(_)));
        found.ok_or(Status::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)?;
        driver.machine.free(address).map_err(|_| INVALID)
    }
    /// The address that kernels use for pinned memory: the same.
    cuMemHostGetDevicePointer 3020 "cuMemHostGetDevicePointer_v2" (result: Out<CUdeviceptr>, pointer: *mut c_void, flags: c_uint) {
        if flags != 0 {
            return Err(INVALID);
        }
        host_allocation(pointer)?;
        result.write(pointer.addr() as u64)
    }
    /// The flags that pinned memory was made with.
    cuMemHostGetFlags 2030 "cuMemHostGetFlags" (flags: Out<c_uint>, pointer: *mut c_void) {
        match host_allocation(pointer)?.kind {
            Kind::Host(given) | Kind::Registered(given) => flags.write(given | 2),
            _ => Err(INVALID),
        }
    }
    /// Bytes of device memory that are free, and all of them.
    cuMemGetInfo 3020 "cuMemGetInfo_v2" (free: Out<usize>, total: Out<usize>) {
        let device = Context::current()?.device;
        let all = driver()?.config.memory;
        free.write(all.saturating_sub(crate::in_use::bytes(device) + crate::pool::kept(device)) as usize)?;
        total.write(all as usize)
    }
    /// Start and size of the allocation that an address lies in.
    cuMemGetAddressRange 3020 "cuMemGetAddressRange_v2" (base: Out<CUdeviceptr>, bytes: Out<usize>, address: CUdeviceptr) {
        Context::current()?;
        let allocation = driver()?.allocations.find(address).ok_or(Status::CUDA_ERROR_NOT_FOUND)?;
        base.write_if_wanted(allocation.base);
        bytes.write_if_wanted(allocation.bytes as usize);
        Ok(())
    }
    /// What is known of a pointer.
    cuPointerGetAttribute 4000 "cuPointerGetAttribute" (data: Bytes, attribute: c_uint, address: CUdeviceptr) {
        Context::current()?;
        write_attribute(data, attribute, pointer_attribute(attribute, address)?)
    }
    /// Several things that are known of a pointer; zeros for a pointer that is none of ours.
    cuPointerGetAttributes 7000 "cuPointerGetAttributes" (count: c_uint, attributes: In<c_uint>, data: In<Bytes>, address: CUdeviceptr) {
        Context::current()?;
        let (attributes, places) = (attributes.read_all(count as usize)?, data.read_all(count as usize)?);
        for (attribute, place) in attributes.into_iter().zip(places) {
            let is_ordinal = attribute == CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL as u32;
            let nothing = if is_ordinal { -2i64 as u64 } else { 0 };
            write_attribute(place, attribute, pointer_attribute(attribute, address).unwrap_or(nothing))?;
        }
        Ok(())
    }
    /// Sets what is known of a pointer: whether copies of its memory are synchronous.
    cuPointerSetAttribute 6000 "cuPointerSetAttribute" (value: *const c_void, attribute: c_uint, address: CUdeviceptr) {
        Context::current()?;
        let settable = attribute == CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS as u32;
        if value.is_null() || !settable || driver()?.allocations.find(address).is_none() {
            return Err(INVALID);
        }
        Ok(())
    }
}

impl Driver {
    /// The handle of the context with this number.
    fn context_of(&self, id: u64) -> Option<*mut c_void> {
        crate::context::CONTEXTS
            .find(|context| context.id == id)
            .map(|context| crate::handles::handle_of::<Context, c_void>(&context))
    }
}
