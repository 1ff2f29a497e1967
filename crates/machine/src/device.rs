//! A device: memory, loaded modules, launches.

use std::ptr::NonNull;
use std::sync::Arc;

use check::module::Function;

use crate::block_memory::BlockMemory;
use crate::cluster_size;
use crate::cooperative::Workspaces;
use crate::error::{LaunchError, LoadError};
use crate::fault::FaultKind;
use crate::kernel::BLOCK_LIMIT;
use crate::launch::LaunchConfig;
use crate::loaded::{Image, Loaded};
use crate::memory::{AddressTaken, Arena, Heap, Held, HostMemoryError, Keeper, OutOfMemory};
use crate::prepared::Launch;
use crate::stopwatch::Stopwatch;
use crate::texture::{self, Object, ObjectError, Objects};
use sem::texture::{Image as Texels, Sampler};

/// The most shared memory of a block in bytes: the most that any GPU offers.
const SHARED_LIMIT: u64 = 227 * 1024;
/// Greatest extents of a block and of a grid.
const BLOCK_EXTENTS: [u32; 3] = [1024, 1024, 64];
const GRID_EXTENTS: [u32; 3] = [0x7fff_ffff, 65535, 65535];

/// A simulated GPU: global memory and loaded modules. Clones are cheap and denote the same device.
///
/// Any thread may allocate, free, copy, load and launch at any time. A launch uses the allocations and the `.const`
/// memory of the time when it was prepared, and keeps them alive until it has ended.
#[derive(Clone, Default)]
pub struct Device {
    arena: Arc<Arena>,
    heap: Arc<Heap>,
    workspaces: Arc<Workspaces>,
    objects: Arc<Objects>,
}

impl Device {
    /// A device with empty memory.
    pub fn new() -> Device {
        Device::default()
    }

    /// Reserves `bytes` zeroed bytes of global memory and returns their device address. `name` identifies the
    /// allocation in messages.
    ///
    /// # Errors
    /// When the host cannot provide that much memory.
    pub fn allocate(&self, bytes: u64, name: impl Into<String>) -> Result<u64, OutOfMemory> {
        self.arena.allocate(bytes, name)
    }

    /// Reserves `bytes` zeroed bytes at an address that [`Device::allocate`] returned earlier and [`Device::free`] has freed.
    ///
    /// # Errors
    /// When another allocation overlaps, or the host cannot provide that much memory.
    pub fn allocate_at(&self, address: u64, bytes: u64, name: impl Into<String>) -> Result<(), OutOfMemory> {
        self.arena.allocate_at(address, bytes, name)
    }

    /// Makes later allocations get 32-bit addresses while there is room for them, as modules of `.address_size 32`
    /// need. The gaps between these allocations are narrower.
    pub fn use_narrow_addresses(&self) {
        self.arena.use_narrow_addresses();
    }

    /// Gives `.global` variables of modules that are loaded later zeros behind them, up to a multiple of so many bytes, as GPUs
    /// do. Without it each ends where it ends.
    pub fn round_variables_up(&self, granule: u64) {
        self.arena.round_variables_up(granule);
    }

    /// Frees an allocation. Accesses by later launches fault as use after free.
    ///
    /// # Errors
    /// [`FaultKind::InvalidFree`] when `address` is not the start of a live allocation.
    pub fn free(&self, address: u64) -> Result<(), FaultKind> {
        self.arena.free(address)
    }

    /// Copies bytes into global memory.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<(), FaultKind> {
        self.arena.write(address, data)
    }

    /// Copies bytes out of global memory.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), FaultKind> {
        self.arena.read(address, data)
    }

    /// Copies bytes within global memory. The ranges may overlap; the destination gets the old bytes of the source.
    ///
    /// # Errors
    /// When a range is not within one live allocation.
    pub fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), FaultKind> {
        self.arena.copy(from, to, bytes)
    }

    /// Fills a range of global memory with a repeated pattern.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn fill(&self, address: u64, pattern: &[u8], bytes: u64) -> Result<(), FaultKind> {
        self.arena.fill(address, pattern, bytes)
    }

    /// A range of global memory as memory of the host, which stays valid while the result lives.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn hold(&self, address: u64, bytes: u64) -> Result<Held, FaultKind> {
        self.arena.resolve(address, bytes)
    }

    /// Makes later allocations avoid every address that a pointer of this process could have, so that an address
    /// identifies its owner: host or device.
    pub fn keep_apart_from_host(&self) {
        self.arena.keep_apart_from_host();
    }

    /// Reserves `bytes` zeroed bytes that have the same address in this process and on the device, and returns that
    /// address. [`Device::free`] frees them.
    ///
    /// # Errors
    /// When the host cannot provide that much memory.
    pub fn allocate_shared_with_host(
        &self,
        bytes: u64,
        name: impl Into<String>,
    ) -> Result<NonNull<u8>, OutOfMemory> {
        self.arena.allocate_shared_with_host(bytes, name)
    }

    /// Maps memory of the host at a device address until [`Device::free`]. The device address is the host address
    /// itself or one from [`MAPPED_BASE`](crate::MAPPED_BASE) on, where mappings may follow each other without gaps.
    ///
    /// # Errors
    /// When another allocation overlaps.
    ///
    /// # Safety
    /// `start` must point to `bytes` bytes that stay readable and writable until the mapping is freed and all launches
    /// that were prepared before that have ended.
    pub unsafe fn map_at(
        &self,
        address: u64,
        start: NonNull<u8>,
        bytes: u64,
        name: impl Into<String>,
    ) -> Result<(), AddressTaken> {
        // SAFETY: the caller's promise.
        unsafe { self.arena.map_at(address, start, bytes, name) }
    }

    /// Like [`Device::map_at`], of memory that something keeps. That is dropped when the mapping has been freed, and all
    /// launches that were prepared before have ended.
    ///
    /// # Errors
    /// When another allocation overlaps.
    ///
    /// # Safety
    /// `start` must point to `bytes` bytes that stay readable and writable as long as `keeper` is kept.
    pub unsafe fn map_kept(
        &self,
        address: u64,
        start: NonNull<u8>,
        bytes: u64,
        name: impl Into<String>,
        keeper: Keeper,
    ) -> Result<(), AddressTaken> {
        // SAFETY: the caller's promise.
        unsafe { self.arena.map_kept(address, start, bytes, name, keeper) }
    }

    /// Moves an allocation to other memory of the host, bytes included, which something keeps. It keeps its address.
    /// Launches that were prepared before use the memory from before, so none should be in flight.
    ///
    /// # Errors
    /// When `address` is not the first byte of a live allocation.
    ///
    /// # Safety
    /// `start` must point to as many bytes as the allocation has, which stay readable and writable as long as `keeper`
    /// is kept.
    pub unsafe fn move_to(&self, address: u64, start: NonNull<u8>, keeper: Keeper) -> Result<(), FaultKind> {
        // SAFETY: the caller's promise.
        unsafe { self.arena.move_to(address, start, keeper) }
    }

    /// Copies bytes from a pointer of the host into global memory.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    ///
    /// # Safety
    /// `from` must point to `bytes` readable bytes.
    pub unsafe fn copy_in(&self, address: u64, from: *const u8, bytes: u64) -> Result<(), FaultKind> {
        // SAFETY: the caller's promise.
        unsafe { self.arena.copy_in(address, from, bytes) }
    }

    /// Copies bytes from global memory to a pointer of the host.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    ///
    /// # Safety
    /// `to` must point to `bytes` writable bytes.
    pub unsafe fn copy_out(&self, address: u64, to: *mut u8, bytes: u64) -> Result<(), FaultKind> {
        // SAFETY: the caller's promise.
        unsafe { self.arena.copy_out(address, to, bytes) }
    }

    /// Lets kernels use addresses of this process directly: pointers of the host become device addresses. Accesses
    /// through them are checked only for null pointers. Must be called while the device is empty.
    ///
    /// # Errors
    /// When there are allocations or modules already.
    ///
    /// # Safety
    /// Kernels may then read and write all memory of this process. The caller of a launch is responsible for every
    /// address that its kernel uses.
    pub unsafe fn open_host_memory(&self) -> Result<(), HostMemoryError> {
        // SAFETY: the caller's promise.
        unsafe { self.arena.open_host_memory() }
    }

    /// Sets how many bytes kernels may hold from `malloc` at a time. The default is 8 MiB, as in CUDA.
    pub fn set_heap_limit(&self, bytes: u64) {
        self.heap.set_limit(bytes);
    }

    /// Places a module's variables and fills in their initial values.
    ///
    /// # Errors
    /// When there is no room for them. An undefined symbol is no error here: only the launch of a kernel that needs it fails.
    pub fn load(&self, program: Arc<ir::Program>) -> Result<Loaded, LoadError> {
        Ok(Loaded(Arc::new(Image::new(&self.arena, program)?)))
    }

    /// Creates a texture from an image in global memory and a sampler. Returns its handle, which kernels take as 64
    /// bits. The caller keeps the memory: a kernel that uses the texture after the memory was freed faults.
    ///
    /// # Errors
    /// [`ObjectError`] when the memory is not within one live allocation.
    pub fn create_texture(&self, address: u64, image: Texels, sampler: Sampler) -> Result<u64, ObjectError> {
        let placed = texture::place(&self.arena, address, image)?;
        Ok(self.objects.add(Object::Texture(placed, sampler)))
    }

    /// Creates a sampler for modules of `texmode_independent`. Returns its handle.
    pub fn create_sampler(&self, sampler: Sampler) -> u64 {
        self.objects.add(Object::Sampler(sampler))
    }

    /// Creates a surface from an image of one level. Returns its handle. Otherwise like [`Device::create_texture`].
    ///
    /// # Errors
    /// [`ObjectError`]
    pub fn create_surface(&self, address: u64, image: Texels) -> Result<u64, ObjectError> {
        let descriptor = image.descriptor();
        if descriptor.levels > 1 || descriptor.samples > 1 {
            return Err(ObjectError::NotASurface);
        }
        if !address.is_multiple_of(texture::SURFACE_ALIGN) {
            return Err(ObjectError::Memory(FaultKind::Misaligned));
        }
        let placed = texture::place(&self.arena, address, image)?;
        Ok(self.objects.add(Object::Surface(placed)))
    }

    /// Destroys a texture, sampler or surface. Launches that were prepared before keep it.
    ///
    /// # Errors
    /// [`ObjectError::NoObject`]
    pub fn destroy_object(&self, handle: u64) -> Result<(), ObjectError> {
        self.objects.remove(handle)
    }

    /// Binds a `.texref`, `.samplerref` or `.surfref` variable of a module to an object, for launches that are prepared
    /// afterwards. The binding outlives the destruction of the object.
    ///
    /// # Errors
    /// [`ObjectError::NoObject`], [`ObjectError::NoVariable`] when the module has no variable of this name and of the object's kind.
    pub fn bind(&self, module: &Loaded, name: &str, handle: u64) -> Result<(), ObjectError> {
        module.0.bind(name, self.objects.get(handle).ok_or(ObjectError::NoObject)?)
    }

    /// Checks a launch and allocates what it needs, for any engine. `params` are the bytes of the kernel's parameters, laid
    /// out as [`param_layout`](crate::param_layout) says.
    ///
    /// # Errors
    /// When the launch is not possible.
    pub fn prepare(
        &self,
        module: &Loaded,
        kernel: &str,
        mut config: LaunchConfig,
        params: Vec<u8>,
    ) -> Result<Launch, LaunchError> {
        let image = Arc::clone(&module.0);
        let invalid = |what: String| Err(LaunchError::Invalid(what));
        let Some(known) = image.kernel(kernel).map(Arc::clone) else {
            return invalid(format!("there is no kernel `{kernel}`"));
        };
        if params.len() as u64 != known.param_bytes {
            return invalid(format!(
                "kernel `{kernel}` takes {} bytes of parameters, {} were given",
                known.param_bytes,
                params.len()
            ));
        }
        let function = &image.program.module.functions[known.entry.index()];
        cluster_size::settle(&image.program.module, function, &mut config)?;
        check_extents(function, &config)?;
        if let Some(error) = &known.refused {
            return Err(error.clone());
        }
        if known.waits_for_grid && config.blocks.is_some() {
            return invalid(format!(
                "kernel `{kernel}` waits for its whole grid: a part of the blocks never ends"
            ));
        }
        let shared = known.shared_layout(config.dynamic_shared);
        if shared.bytes > SHARED_LIMIT {
            return invalid(format!(
                "the block needs {} bytes of shared memory, the limit is {SHARED_LIMIT}",
                shared.bytes
            ));
        }
        let arena = match &config.withheld {
            None => self.arena.table(),
            Some(withheld) => self.arena.table_without(withheld),
        };
        let objects = self.objects.table();
        let cooperative = config.cooperative.then(|| self.workspaces.take(&self.heap, config.grid_blocks()));
        let least = function.bounds.per_cta_memory;
        let block_memory = BlockMemory::reserve(&self.heap, config.grid_blocks(), least)?;
        Ok(Launch {
            arena,
            heap: Arc::clone(&self.heap),
            constants: image.constants(),
            bindings: image.bindings(&config.bindings, &objects).map_err(LaunchError::Binding)?,
            objects,
            params,
            shared,
            workspace: cooperative.transpose()?,
            block_memory,
            start: Stopwatch::start(),
            runtime: Default::default(),
            kernel: known,
            image,
            config,
        })
    }
}

pub(crate) fn check_extents(function: &Function, config: &LaunchConfig) -> Result<(), LaunchError> {
    let invalid = |what: String| Err(LaunchError::Invalid(what));
    let show = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
    for (what, extents, limits) in
        [("grid", config.grid, GRID_EXTENTS), ("block", config.block, BLOCK_EXTENTS)]
    {
        for ((extent, limit), axis) in extents.into_iter().zip(limits).zip(["x", "y", "z"]) {
            if extent == 0 || extent > limit {
                return invalid(format!("{what} {}: {axis} must be from 1 to {limit}", show(extents)));
            }
        }
    }
    let threads = config.block_threads();
    if threads > BLOCK_LIMIT {
        return invalid(format!(
            "block {} has {threads} threads, the limit is {BLOCK_LIMIT}",
            show(config.block)
        ));
    }
    if let Some(required) = function.bounds.required
        && required != config.block
    {
        return invalid(format!(
            "kernel `{}` requires blocks of {} (.reqntid), the launch has {}",
            function.name,
            show(required),
            show(config.block)
        ));
    }
    if let Some(blocks) = &config.blocks
        && (blocks.is_empty() || blocks.end > config.grid_blocks())
    {
        let (start, end, all) = (blocks.start, blocks.end, config.grid_blocks());
        return invalid(format!("blocks {start} to {end} are no part of a grid of {all}"));
    }
    if config.cooperative && config.blocks.is_some() {
        return invalid(
            "a part of the blocks cannot be launched cooperatively: they wait for all".to_owned(),
        );
    }
    match function.bounds.max_threads {
        Some(limit) if threads > limit => invalid(format!(
            "kernel `{}` allows blocks of at most {limit} threads (.maxntid), the launch has {threads}",
            function.name
        )),
        _ => Ok(()),
    }
}
