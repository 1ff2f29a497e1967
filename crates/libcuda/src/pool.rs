//! Stream-ordered memory, and the pools that provide it (CUDA Driver API, "Stream Ordered Memory Allocator").

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::{Arc, LazyLock, Mutex};

use cudarc::driver::sys::{
    CUdevice, CUdeviceptr, CUmemAccessDesc, CUmemPoolPtrExportData, CUmemoryPool, CUstream,
};

use crate::api::api;
use crate::context::Context;
use crate::driver::driver;
use crate::graph::{Body, GraphMemory};
use crate::handles::{Handles, handle_of};
use crate::lock;
use crate::memory::{Kind, allocate_on};
use crate::operation::Operation;
use crate::peer::READ_AND_WRITE;
use crate::pointers::{Bytes, In, Out, read, write_bytes};
use crate::share::Shared;
use crate::stream::Stream;
use crate::{INVALID, Status};

static POOLS: Handles<Pool> = Handles::new();

/// A pool. Freed memory that it keeps is only counted: the host gets it back at once.
#[derive(Default)]
pub struct Pool {
    /// The number of its device.
    device: u32,
    /// What stands for the pool in other processes, if it is to be shared: the descriptor of an empty page.
    shared: Option<Shared>,
    /// Whether it is a pool of another process, which alone allocates from it.
    is_imported: bool,
    /// Reuse policies, on by default.
    settings: Mutex<HashMap<u32, bool>>,
    /// What other devices may do with its memory (`CUmemAccess_flags`), if that was set.
    access: Mutex<HashMap<u32, c_uint>>,
    memory: Mutex<Memory>,
}

/// The unit by which NVIDIA's driver grows and shrinks a pool, in bytes.
const CHUNK: u64 = 32 << 20;

/// The memory of a pool now and at most, in bytes.
#[derive(Clone, Copy, Default)]
struct Memory {
    used: u64,
    most_used: u64,
    /// Device memory that it holds, in whole chunks.
    reserved: u64,
    most_reserved: u64,
    /// What it keeps at a synchronization even if unused.
    threshold: u64,
}

impl Memory {
    fn take(&mut self, bytes: u64) {
        self.used += bytes;
        self.reserved = self.reserved.max(in_chunks(self.used));
        self.most_used = self.most_used.max(self.used);
        self.most_reserved = self.most_reserved.max(self.reserved);
    }

    /// Releases unused memory down to `keep` bytes.
    fn trim(&mut self, keep: u64) {
        self.reserved = self.reserved.min(in_chunks(self.used.max(keep)));
    }
}

/// Rounds up to whole chunks.
fn in_chunks(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(CHUNK).unwrap_or(u64::MAX)
}

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const DESCRIPTOR: u32 = 1;

/// Attributes (`CUmemPool_attribute`).
const REUSE: std::ops::RangeInclusive<u32> = 1..=3;
const RELEASE_THRESHOLD: u32 = 4;
const RESERVED: u32 = 5;
const RESERVED_HIGH: u32 = 6;
const USED: u32 = 7;
const USED_HIGH: u32 = 8;

/// By device number: its default pool and its current pool.
static OF_DEVICES: LazyLock<Mutex<HashMap<u32, PoolsOfDevice>>> = LazyLock::new(Mutex::default);
type PoolsOfDevice = (Arc<Pool>, Arc<Pool>);

/// The pool of each allocation, by address.
static OWNERS: LazyLock<Mutex<HashMap<u64, Arc<Pool>>>> = LazyLock::new(Mutex::default);

impl Pool {
    fn new(device: u32) -> Arc<Pool> {
        Pool::insert(Pool { device, ..Pool::default() })
    }

    fn insert(pool: Pool) -> Arc<Pool> {
        let pool = Arc::new(pool);
        POOLS.insert::<()>(Arc::clone(&pool));
        pool
    }

    /// The default and current pool of a device.
    fn of_device(device: u32) -> (Arc<Pool>, Arc<Pool>) {
        let mut pools = lock(&OF_DEVICES);
        let (default, current) = pools.entry(device).or_insert_with(|| {
            let pool = Pool::new(device);
            (Arc::clone(&pool), pool)
        });
        (Arc::clone(default), Arc::clone(current))
    }

    fn take(self: &Arc<Pool>, context: &Context, bytes: usize) -> Result<u64, Status> {
        if self.is_imported {
            return Err(INVALID);
        }
        let address = allocate_on(self.device, context, bytes, Kind::Pool, "cuMemAllocAsync")?;
        self.count(address, bytes as u64);
        Ok(address)
    }

    /// What a device may do with its memory (`CUmemAccess_flags`).
    fn access_of(&self, device: u32) -> c_uint {
        let own = if device == self.device { READ_AND_WRITE } else { 0 };
        lock(&self.access).get(&device).copied().unwrap_or(own)
    }

    /// Counts an allocation as part of the pool.
    fn count(self: &Arc<Pool>, address: u64, bytes: u64) {
        lock(&self.memory).take(bytes);
        lock(&OWNERS).insert(address, Arc::clone(self));
        crate::peer::changed();
    }
}

/// A graph uses memory of a device again.
pub fn used_by_graph(device: u32, address: u64, bytes: u64) {
    Pool::of_device(device).0.count(address, bytes);
}

/// Whether the program lets a device reach memory of the pool of another device in which this allocation is.
pub fn is_open(address: u64, device: u32) -> bool {
    let pool = lock(&OWNERS).get(&address).cloned();
    pool.is_some_and(|pool| pool.access_of(device) != 0)
}

/// An allocation was freed.
pub fn released(address: u64, bytes: u64) {
    if let Some(pool) = lock(&OWNERS).remove(&address) {
        let mut memory = lock(&pool.memory);
        memory.used = memory.used.saturating_sub(bytes);
    }
}

/// Bytes of memory of a device that pools keep without using them.
pub fn kept(device: u32) -> u64 {
    let kept = Cell::new(0);
    POOLS.for_each(|pool| {
        if pool.device != device {
            return;
        }
        let memory = lock(&pool.memory);
        kept.set(kept.get() + memory.reserved.saturating_sub(memory.used));
    });
    kept.get()
}

/// A stream, an event or a context was waited for: pools release what exceeds their thresholds.
pub fn synchronized() {
    POOLS.for_each(|pool| {
        let mut memory = lock(&pool.memory);
        let keep = memory.threshold / CHUNK * CHUNK;
        memory.trim(keep);
    });
}

fn pool(handle: CUmemoryPool) -> Result<Arc<Pool>, Status> {
    driver()?;
    POOLS.get(handle).ok_or(INVALID)
}

/// A place of memory (`CUmemLocation`). Its kind may be any value, so it is a number.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Location {
    kind: c_uint,
    id: c_int,
}

/// How a pool is made: the beginning of `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Properties {
    _kind: c_uint,
    handle_types: c_uint,
    location: Location,
}

/// What a place may do with memory (`CUmemAccessDesc`).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Access {
    location: Location,
    /// `CUmemAccess_flags`: 0 nothing, 1 read, 3 read and write.
    pub flags: c_uint,
}

const _: () = assert!(size_of::<Access>() == size_of::<CUmemAccessDesc>());

impl Access {
    /// The number of the device.
    ///
    /// # Errors
    /// If it is none, or the flags are unknown.
    pub fn device(self) -> Result<u32, Status> {
        if matches!(self.flags, 0 | 1 | 3) { self.location.device() } else { Err(INVALID) }
    }
}

impl Location {
    /// The device number of the location.
    ///
    /// # Errors
    /// If it is no device.
    pub fn device(self) -> Result<u32, Status> {
        match self.kind {
            1 => driver()?.ordinal(self.id),
            _ => Err(INVALID),
        }
    }
}

/// With `PTXVM_PAD_VARIABLES=1`, memory of a stream's work ends at multiples of this. XLA asks for 12 bytes and reads
/// them as a vector of 16.
const ARRAY_GRANULE: usize = 16;

/// Allocates from a pool in stream order. No bytes are at address 0, which can be freed: the manual does not say so, but tests of
/// candle pass on GPUs.
fn allocate_in(
    result: Out<CUdeviceptr>,
    bytes: usize,
    pool: Option<Arc<Pool>>,
    stream: &Stream,
) -> Result<(), Status> {
    let context = stream.context()?;
    if result.is_null() {
        return Err(INVALID);
    }
    if bytes == 0 {
        return result.write(0);
    }
    let bytes = if driver()?.pads() { bytes.next_multiple_of(ARRAY_GRANULE) } else { bytes };
    if stream.is_capturing() {
        let memory = GraphMemory::reserve(&context, bytes, "cuMemAllocAsync")?;
        result.write(memory.address)?;
        return stream.capture_node(Body::Alloc(memory));
    }
    let pool = pool.unwrap_or_else(|| Pool::of_device(context.device).1);
    let address = pool.take(&context, bytes)?;
    crate::stream_order::allocated(stream, address, bytes as u64, "cuMemAllocAsync");
    result.write(address)
}

/// Makes a pool the current one of a device, if it is a pool of this device.
fn use_pool(device: u32, pool: Arc<Pool>) -> Result<(), Status> {
    if pool.device != device {
        return Err(INVALID);
    }
    let (default, _) = Pool::of_device(device);
    lock(&OF_DEVICES).insert(device, (default, pool));
    Ok(())
}

api! { API:
    /// Allocates memory for the work of a stream, from the current pool of its device.
    cuMemAllocAsync 11020 "cuMemAllocAsync" / 11020 "cuMemAllocAsync_ptsz" (result: Out<CUdeviceptr>, bytes: usize, of: CUstream) |default| {
        allocate_in(result, bytes, None, &*default.stream(of)?)
    }
    /// Allocates memory for the work of a stream, from a pool.
    cuMemAllocFromPoolAsync 11020 "cuMemAllocFromPoolAsync" / 11020 "cuMemAllocFromPoolAsync_ptsz" (result: Out<CUdeviceptr>, bytes: usize, from: CUmemoryPool, of: CUstream) |default| {
        allocate_in(result, bytes, Some(pool(from)?), &*default.stream(of)?)
    }
    /// Gives memory back when all work before is done.
    cuMemFreeAsync 11020 "cuMemFreeAsync" / 11020 "cuMemFreeAsync_ptsz" (address: CUdeviceptr, of: CUstream) |default| {
        let stream = default.stream(of)?;
        if address == 0 {
            return Ok(());
        }
        let allocations = &driver()?.allocations;
        let kind = allocations.find(address).filter(|allocation| allocation.base == address).map(|allocation| allocation.kind);
        if matches!(kind, Some(Kind::Pool | Kind::Device | Kind::Imported)) || allocations.is_promised(address) {
            stream.submit(Operation::Free(address))
        } else {
            Err(INVALID)
        }
    }
    /// Makes a pool.
    cuMemPoolCreate 11020 "cuMemPoolCreate" (result: Out<CUmemoryPool>, properties: In<Properties>) {
        driver()?;
        let properties = properties.read()?;
        let device = properties.location.device()?;
        let shared = match properties.handle_types {
            0 => None,
            DESCRIPTOR => Some(Shared::new(1).map_err(|_| Status::CUDA_ERROR_OUT_OF_MEMORY)?),
            _ => return Err(Status::CUDA_ERROR_NOT_SUPPORTED),
        };
        result.write(handle_of(&Pool::insert(Pool { device, shared, ..Pool::default() })))
    }
    /// Makes a descriptor of a pool, for other processes. The program closes it.
    cuMemPoolExportToShareableHandle 11020 "cuMemPoolExportToShareableHandle" (result: Out<c_int>, handle: CUmemoryPool, kind: c_uint, flags: c_ulonglong) {
        let pool = pool(handle)?;
        let shared = pool.shared.as_ref().filter(|_| !pool.is_imported && kind == DESCRIPTOR && flags == 0);
        let shared = shared.filter(|_| !result.is_null()).ok_or(INVALID)?;
        result.write(shared.descriptor().map_err(|_| Status::CUDA_ERROR_OPERATING_SYSTEM)?)
    }
    /// Opens a pool of another process by its descriptor, which stays the program's.
    cuMemPoolImportFromShareableHandle 11020 "cuMemPoolImportFromShareableHandle" (result: Out<CUmemoryPool>, handle: *mut c_void, kind: c_uint, flags: c_ulonglong) {
        let device = Context::current()?.device;
        let descriptor = c_int::try_from(handle.addr()).ok().filter(|_| kind == DESCRIPTOR && flags == 0);
        let descriptor = descriptor.filter(|_| !result.is_null()).ok_or(INVALID)?;
        let shared = Shared::of_descriptor(descriptor).map_err(|_| INVALID)?;
        result.write(handle_of(&Pool::insert(Pool { device, shared: Some(shared), is_imported: true, ..Pool::default() })))
    }
    /// Makes what another process needs to open an allocation of a pool that is shared.
    cuMemPoolExportPointer 11020 "cuMemPoolExportPointer" (result: Out<CUmemPoolPtrExportData>, address: CUdeviceptr) {
        Context::current()?;
        let allocation = driver()?.allocations.find(address).ok_or(INVALID)?;
        let is_shared = lock(&OWNERS).get(&allocation.base).is_some_and(|pool| pool.shared.is_some());
        if result.is_null() || !is_shared {
            return Err(INVALID);
        }
        result.write(CUmemPoolPtrExportData { reserved: crate::ipc::handle_of(&allocation)? })
    }
    /// Opens an allocation of a pool of another process. It is freed as those of pools are.
    cuMemPoolImportPointer 11020 "cuMemPoolImportPointer" (result: Out<CUdeviceptr>, handle: CUmemoryPool, data: In<CUmemPoolPtrExportData>) {
        if result.is_null() || !pool(handle)?.is_imported {
            return Err(INVALID);
        }
        result.write(crate::ipc::import(&data.read()?.reserved, true)?)
    }
    /// Destroys a pool; its allocations stay.
    cuMemPoolDestroy 11020 "cuMemPoolDestroy" (handle: CUmemoryPool) {
        let pool = pool(handle)?;
        let (default, current) = Pool::of_device(pool.device);
        if Arc::ptr_eq(&pool, &default) {
            return Err(INVALID);
        }
        if Arc::ptr_eq(&pool, &current) {
            lock(&OF_DEVICES).insert(pool.device, (Arc::clone(&default), default));
        }
        POOLS.remove(handle).map(drop).ok_or(INVALID)
    }
    /// An attribute of a pool.
    cuMemPoolGetAttribute 11020 "cuMemPoolGetAttribute" (handle: CUmemoryPool, attribute: c_uint, value: Bytes) {
        let pool = pool(handle)?;
        if REUSE.contains(&attribute) {
            let is_on = lock(&pool.settings).get(&attribute).copied().unwrap_or(true);
            return write_bytes(value, &c_int::from(is_on).to_ne_bytes());
        }
        let memory = *lock(&pool.memory);
        let number = match attribute {
            RELEASE_THRESHOLD => memory.threshold,
            RESERVED => memory.reserved,
            RESERVED_HIGH => memory.most_reserved,
            USED => memory.used,
            USED_HIGH => memory.most_used,
            _ => return Err(INVALID),
        };
        write_bytes(value, &number.to_ne_bytes())
    }
    /// Changes an attribute of a pool.
    cuMemPoolSetAttribute 11020 "cuMemPoolSetAttribute" (handle: CUmemoryPool, attribute: c_uint, value: Bytes) {
        let pool = pool(handle)?;
        match attribute {
            _ if REUSE.contains(&attribute) => {
                let value = c_int::from_ne_bytes(read(value)?);
                lock(&pool.settings).insert(attribute, value != 0);
            }
            RELEASE_THRESHOLD => {
                lock(&pool.memory).threshold = u64::from_ne_bytes(read(value)?);
            }
            RESERVED_HIGH | USED_HIGH if read(value)? == [0; 8] => {
                let mut memory = lock(&pool.memory);
                match attribute {
                    RESERVED_HIGH => memory.most_reserved = memory.reserved,
                    _ => memory.most_used = memory.used,
                }
            }
            _ => return Err(INVALID),
        }
        Ok(())
    }
    /// Gives back memory that a pool keeps and does not use, but for so many bytes.
    cuMemPoolTrimTo 11020 "cuMemPoolTrimTo" (handle: CUmemoryPool, bytes: usize) {
        lock(&pool(handle)?.memory).trim(bytes as u64);
        Ok(())
    }
    /// Lets devices reach the memory of a pool, or not any more. Its own device always does.
    cuMemPoolSetAccess 11020 "cuMemPoolSetAccess" (handle: CUmemoryPool, access: In<Access>, count: usize) {
        let pool = pool(handle)?;
        let wanted = access.read_all(count)?.into_iter().map(|access| Ok((access.device()?, access.flags)));
        let wanted = wanted.collect::<Result<Vec<_>, Status>>()?;
        if wanted.iter().any(|&(device, flags)| device == pool.device && flags != READ_AND_WRITE) {
            return Err(INVALID);
        }
        lock(&pool.access).extend(wanted);
        crate::peer::changed();
        Ok(())
    }
    /// Whether a device reads (1) or reads and writes (3) the memory of a pool.
    cuMemPoolGetAccess 11020 "cuMemPoolGetAccess" (flags: Out<c_uint>, handle: CUmemoryPool, location: In<Location>) {
        let pool = pool(handle)?;
        flags.write(pool.access_of(location.read()?.device()?))
    }
    /// The pool that a device begins with.
    cuDeviceGetDefaultMemPool 11020 "cuDeviceGetDefaultMemPool" (result: Out<CUmemoryPool>, device: CUdevice) {
        result.write(handle_of(&Pool::of_device(driver()?.ordinal(device)?).0))
    }
    /// The pool that a device uses.
    cuDeviceGetMemPool 11020 "cuDeviceGetMemPool" (result: Out<CUmemoryPool>, device: CUdevice) {
        result.write(handle_of(&Pool::of_device(driver()?.ordinal(device)?).1))
    }
    /// Lets a device use a pool of its own.
    cuDeviceSetMemPool 11020 "cuDeviceSetMemPool" (device: CUdevice, handle: CUmemoryPool) {
        use_pool(driver()?.ordinal(device)?, pool(handle)?)
    }
    /// What the memory of graphs takes: it is that of pools.
    cuDeviceGetGraphMemAttribute 11040 "cuDeviceGetGraphMemAttribute" (device: CUdevice, attribute: c_uint, value: Out<u64>) {
        let pool = Pool::of_device(driver()?.ordinal(device)?).0;
        let memory = *lock(&pool.memory);
        value.write(match attribute {
            0 => memory.used,
            1 => memory.most_used,
            2 => memory.reserved,
            3 => memory.most_reserved,
            _ => return Err(INVALID),
        })
    }
    /// Begins to look anew for the most that the memory of graphs took.
    cuDeviceSetGraphMemAttribute 11040 "cuDeviceSetGraphMemAttribute" (device: CUdevice, attribute: c_uint, value: In<u64>) {
        let pool = Pool::of_device(driver()?.ordinal(device)?).0;
        if !matches!(attribute, 1 | 3) || value.read()? != 0 {
            return Err(INVALID);
        }
        let mut memory = lock(&pool.memory);
        match attribute {
            1 => memory.most_used = memory.used,
            _ => memory.most_reserved = memory.reserved,
        }
        Ok(())
    }
    /// Gives memory back that graphs keep and do not use.
    cuDeviceGraphMemTrim 11040 "cuDeviceGraphMemTrim" (device: CUdevice) {
        lock(&Pool::of_device(driver()?.ordinal(device)?).0.memory).trim(0);
        Ok(())
    }
    /// The pool that a location begins with.
    cuMemGetDefaultMemPool 13000 "cuMemGetDefaultMemPool" (result: Out<CUmemoryPool>, location: In<Location>, _kind: c_uint) {
        result.write(handle_of(&Pool::of_device(location.read()?.device()?).0))
    }
    /// The pool that a location uses.
    cuMemGetMemPool 13000 "cuMemGetMemPool" (result: Out<CUmemoryPool>, location: In<Location>, _kind: c_uint) {
        result.write(handle_of(&Pool::of_device(location.read()?.device()?).1))
    }
    /// Lets a location use a pool.
    cuMemSetMemPool 13000 "cuMemSetMemPool" (location: In<Location>, _kind: c_uint, handle: CUmemoryPool) {
        use_pool(location.read()?.device()?, pool(handle)?)
    }
}
