//! A device: memory, loaded modules, launches.

use std::ptr::NonNull;
use std::sync::Arc;

use check::module::Function;

use crate::block_memory::BlockMemory;
use crate::cluster_size;
use crate::cooperative::Workspaces;
use crate::fault::FaultKind;
use crate::grid::Launch;
use crate::grid_barrier::GridBarrier;
use crate::kernel::BLOCK_LIMIT;
use crate::launch::{LaunchConfig, LaunchError, LaunchReport, LoadError};
use crate::limits::Limits;
use crate::loaded::{Image, Loaded};
use crate::memory::{AddressTaken, Arena, Heap, HostMemoryError, OutOfMemory};
use crate::stopwatch::Stopwatch;
use crate::texture::{self, Object, ObjectError, Objects};
use lanes::host_path;
use sem::texture::{ImageDescriptor, Sampler};

/// Bytes of shared memory that a block may have: the most that any GPU offers.
const SHARED_LIMIT: u64 = 227 * 1024;
/// Greatest extents of a block and of a grid.
const BLOCK_EXTENTS: [u32; 3] = [1024, 1024, 64];
const GRID_EXTENTS: [u32; 3] = [0x7fff_ffff, 65535, 65535];

/// A simulated GPU: global memory, and what is loaded there. Cheap to clone; clones are the same device.
///
/// Any thread may allocate, free, copy, load and launch at any time. A launch has the allocations and the `.const` memory of the
/// time when it was prepared, and keeps them until it has ended.
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

    /// Reserves `bytes` zeroed bytes of global memory; `name` stands in messages. Returns their device address.
    ///
    /// # Errors
    /// When the host cannot provide that much memory.
    pub fn allocate(&self, bytes: u64, name: impl Into<String>) -> Result<u64, OutOfMemory> {
        self.arena.allocate(bytes, name)
    }

    /// Reserves `bytes` zeroed bytes at an address that [`Device::allocate`] returned and [`Device::free`] got back.
    ///
    /// # Errors
    /// When something lies there, or the host cannot provide that much memory.
    pub fn allocate_at(&self, address: u64, bytes: u64, name: impl Into<String>) -> Result<(), OutOfMemory> {
        self.arena.allocate_at(address, bytes, name)
    }

    /// From now on addresses of allocations fit in 32 bits as long as there is a place for that, as modules of
    /// `.address_size 32` need them. Gaps between arrays are narrower then.
    pub fn use_narrow_addresses(&self) {
        self.arena.use_narrow_addresses();
    }

    /// Gives an allocation back. Accesses of later launches fault as use after free.
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

    /// Copies bytes from one place of global memory to another. They may overlap, and arrive as they were before.
    ///
    /// # Errors
    /// When a range is not within one live allocation.
    pub fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), FaultKind> {
        self.arena.copy(from, to, bytes)
    }

    /// Sets a range of global memory to a pattern, over and over from its first byte on.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    pub fn fill(&self, address: u64, pattern: &[u8], bytes: u64) -> Result<(), FaultKind> {
        self.arena.fill(address, pattern, bytes)
    }

    /// From now on no allocation has an address that a pointer of this process could have: an address tells whose it is.
    pub fn keep_apart_from_host(&self) {
        self.arena.keep_apart_from_host();
    }

    /// Reserves `bytes` zeroed bytes that have the same address in this process and on the device, and returns it. [`Device::free`] gives them
    /// back.
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

    /// Lets an address of the device mean memory of the host, until [`Device::free`]. That is the address of the host itself, or one from
    /// [`MAPPED_BASE`](crate::MAPPED_BASE) on, where pieces may follow each other without gaps.
    ///
    /// # Errors
    /// When something lies there.
    ///
    /// # Safety
    /// `start` must point to `bytes` bytes that may be read and written until they are freed and all launches that were prepared
    /// before have ended.
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

    /// Copies bytes from a pointer of the host into global memory.
    ///
    /// # Errors
    /// When the range is not within one live allocation.
    ///
    /// # Safety
    /// `from` must point to so many bytes that may be read.
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
    /// `to` must point to so many bytes that may be written.
    pub unsafe fn copy_out(&self, address: u64, to: *mut u8, bytes: u64) -> Result<(), FaultKind> {
        // SAFETY: the caller's promise.
        unsafe { self.arena.copy_out(address, to, bytes) }
    }

    /// Lets kernels use addresses of this process as they are: pointers of the host become device addresses, and
    /// accesses through them are checked for nothing but null. To be called before anything is on the device.
    ///
    /// # Errors
    /// When there are allocations or modules already.
    ///
    /// # Safety
    /// Kernels may then read and write whatever this process can: whoever launches one answers for every address
    /// that it uses.
    pub unsafe fn open_host_memory(&self) -> Result<(), HostMemoryError> {
        // SAFETY: the caller's promise.
        unsafe { self.arena.open_host_memory() }
    }

    /// Changes how many bytes kernels may have from `malloc` at a time; 8 MiB unless told otherwise, as CUDA has it.
    pub fn set_heap_limit(&self, bytes: u64) {
        self.heap.set_limit(bytes);
    }

    /// Places a module's variables and fills in their initial values.
    ///
    /// # Errors
    /// When there is no room for them. What is declared and defined nowhere is no error of a module: only of the launch of
    /// a kernel that needs it.
    pub fn load(&self, program: Arc<ir::Program>) -> Result<Loaded, LoadError> {
        Ok(Loaded(Arc::new(Image::new(&self.arena, program)?)))
    }

    /// Makes a texture of an image in global memory, and how it is sampled; returns its handle, which kernels take as 64 bits. The memory
    /// stays the caller's: a kernel that uses the texture when it is gone faults.
    ///
    /// # Errors
    /// [`ObjectError`], when there is no such image, or its memory is not within one live allocation.
    pub fn create_texture(
        &self,
        address: u64,
        descriptor: ImageDescriptor,
        sampler: Sampler,
    ) -> Result<u64, ObjectError> {
        let placed = texture::place(&self.arena, address, descriptor)?;
        Ok(self.objects.add(Object::Texture(placed, sampler)))
    }

    /// Makes a sampler for modules of `texmode_independent`; returns its handle.
    pub fn create_sampler(&self, sampler: Sampler) -> u64 {
        self.objects.add(Object::Sampler(sampler))
    }

    /// Makes a surface of an image of one level; returns its handle. Otherwise as [`Device::create_texture`].
    ///
    /// # Errors
    /// [`ObjectError`]
    pub fn create_surface(&self, address: u64, descriptor: ImageDescriptor) -> Result<u64, ObjectError> {
        if descriptor.levels > 1 || descriptor.samples > 1 {
            return Err(ObjectError::NotASurface);
        }
        if !address.is_multiple_of(texture::SURFACE_ALIGN) {
            return Err(ObjectError::Memory(FaultKind::Misaligned));
        }
        let placed = texture::place(&self.arena, address, descriptor)?;
        Ok(self.objects.add(Object::Surface(placed)))
    }

    /// Ends the life of a texture, sampler or surface. Launches that were prepared before keep it.
    ///
    /// # Errors
    /// [`ObjectError::NoObject`]
    pub fn destroy_object(&self, handle: u64) -> Result<(), ObjectError> {
        self.objects.remove(handle)
    }

    /// Binds a `.texref`, `.samplerref` or `.surfref` variable of a module to an object, for launches that are prepared from now on.
    /// It stays bound when the object is destroyed.
    ///
    /// # Errors
    /// [`ObjectError::NoObject`], [`ObjectError::NoVariable`] when the module has no variable of this name and of the object's kind.
    pub fn bind(&self, module: &Loaded, name: &str, handle: u64) -> Result<(), ObjectError> {
        module.0.bind(name, self.objects.get(handle).ok_or(ObjectError::NoObject)?)
    }

    /// Runs a kernel. `params` are the bytes of its parameters, laid out as [`param_layout`](crate::param_layout) says.
    ///
    /// # Errors
    /// When the launch is not possible, a thread faults, or a limit of `config` is reached.
    pub fn launch(
        &self,
        module: &Loaded,
        kernel: &str,
        config: LaunchConfig,
        params: Vec<u8>,
    ) -> Result<LaunchReport, LaunchError> {
        self.prepare(module, kernel, config, params)?.run()
    }

    /// Checks a launch and places what it needs, for whichever engine runs it. `params` as of [`Device::launch`].
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
        let path = match config.host_path {
            Some(path) if path.is_available() => path,
            Some(path) => return invalid(format!("this machine has no {}", path.name())),
            None => host_path().map_err(|error| LaunchError::Invalid(error.to_string()))?,
        };
        let objects = self.objects.table();
        let cooperative = config.cooperative.then(|| self.workspaces.take(&self.heap, config.grid_blocks()));
        let least = function.bounds.per_cta_memory;
        let block_memory = BlockMemory::reserve(&self.heap, config.grid_blocks(), least)?;
        Ok(Launch {
            path,
            arena: self.arena.table(),
            heap: Arc::clone(&self.heap),
            constants: image.constants(),
            bindings: image.bindings(&config.bindings, &objects).map_err(LaunchError::Binding)?,
            objects,
            params,
            shared,
            shuffled: config.schedule.is_some(),
            grid_barrier: GridBarrier::of(known.waits_for_grid, &config),
            limits: Limits::of(&config),
            workspace: cooperative.transpose()?,
            block_memory,
            start: Stopwatch::start(),
            kernel: known,
            image,
            config,
        })
    }
}

fn check_extents(function: &Function, config: &LaunchConfig) -> Result<(), LaunchError> {
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
