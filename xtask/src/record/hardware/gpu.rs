//! An NVIDIA GPU through the driver API. The driver's library is looked for at run time; a build needs none.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::Ptx;
use isa::{Suffix, Target};

use super::program::{BLOCK, Program};
use super::{Machine, Result};

/// The first GPU of the machine. Clones are for other threads.
#[derive(Clone)]
pub struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
}

impl Gpu {
    /// # Errors
    /// Says that there is no GPU, and what is missing.
    pub fn open() -> Result<Gpu> {
        // SAFETY: it loads NVIDIA's library, whose initialisers are trusted as any program's libraries are.
        if !unsafe { sys::is_culib_present() } {
            return Err(
                "no GPU found: this machine has no NVIDIA driver (libcuda.so); nothing was recorded".into()
            );
        }
        let context = CudaContext::new(0).map_err(|error| {
            format!("no GPU found: the NVIDIA driver is there, but {error}; nothing was recorded")
        })?;
        let stream = context.default_stream();
        Ok(Gpu { context, stream })
    }

    /// What NVIDIA calls it.
    pub fn name(&self) -> Result<String> {
        Ok(self.context.name()?)
    }

    /// The target with all that this GPU has.
    pub fn target(&self) -> Result<Target> {
        let (major, minor) = self.context.compute_capability()?;
        let number = u16::try_from(10 * major + minor)?;
        let suffix = if number >= 90 { Suffix::Architecture } else { Suffix::None };
        Ok(Target::new(number, suffix))
    }

    /// The driver's version: 12080 is CUDA 12.8.
    pub fn driver(&self) -> Result<i32> {
        let mut version = 0;
        // SAFETY: the driver writes one number, and was initialised with the context.
        unsafe { sys::cuDriverGetVersion(&mut version) }.result()?;
        Ok(version)
    }

    /// Runs the kernel `k` of a module with so many blocks of so many threads. Its parameters are the addresses of these
    /// words and of `results` words that it writes.
    pub fn run_blocks(
        &mut self,
        module: Ptx,
        words: &[u32],
        (blocks, threads): (usize, usize),
        results: usize,
    ) -> Result<Vec<u32>> {
        let kernel = self.context.load_module(module)?.load_function("k")?;
        let from = self.stream.clone_htod(words)?;
        let mut to = self.stream.alloc_zeros::<u32>(results)?;
        let shape = LaunchConfig {
            grid_dim: (u32::try_from(blocks)?, 1, 1),
            block_dim: (u32::try_from(threads)?, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = self.stream.launch_builder(&kernel);
        launch.arg(&from).arg(&mut to);
        // SAFETY: the kernel reads as many words and writes as many results as the arrays have.
        unsafe { launch.launch(shape) }?;
        Ok(self.stream.clone_dtoh(&to)?)
    }
}

impl Machine for Gpu {
    fn run(&mut self, program: &Program, text: &str, sources: &[u64]) -> Result<Vec<u64>> {
        self.context.bind_to_thread()?;
        let kernel = self.context.load_module(Ptx::from_src(text))?.load_function("k")?;
        let count = sources.len() / program.sources.len();
        let from = self.stream.clone_htod(sources)?;
        let mut to = self.stream.alloc_zeros::<u64>(2 * count)?;
        let vectors = u32::try_from(count)?;
        let shape = LaunchConfig {
            grid_dim: (vectors.div_ceil(BLOCK as u32), 1, 1),
            block_dim: (BLOCK as u32, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = self.stream.launch_builder(&kernel);
        launch.arg(&from).arg(&mut to).arg(&vectors);
        // SAFETY: the kernel reads as many operands and writes as many results as the arrays have.
        unsafe { launch.launch(shape) }?;
        Ok(self.stream.clone_dtoh(&to)?)
    }
}
