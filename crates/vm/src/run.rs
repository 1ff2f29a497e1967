//! A launch as the interpreter runs it: what all its host threads and blocks read.

use std::ops::Deref;
use std::sync::Arc;

use lanes::HostPath;
use machine::{Launch, LaunchError, NativeCode, host_path, native_code};

use crate::code::native_host;
use crate::grid_barrier::GridBarrier;
use crate::kernel::KernelInfo;
use crate::limits::Limits;
use crate::turns::Turns;

/// A launch that the interpreter runs: what its host threads share besides the launch itself.
pub(crate) struct Run<'l> {
    launch: &'l Launch,
    pub info: Arc<KernelInfo>,
    pub path: HostPath,
    /// `--schedule`: gangs of one warp in a shuffled order.
    pub shuffled: bool,
    pub native_code: NativeCode,
    pub grid_barrier: GridBarrier,
    /// For atomic operations.
    pub turns: Turns,
    pub limits: Limits,
}

impl Deref for Run<'_> {
    type Target = Launch;

    #[inline]
    fn deref(&self) -> &Launch {
        self.launch
    }
}

impl<'l> Run<'l> {
    /// # Errors
    /// When the machine lacks the host path that the launch asks for.
    pub fn new(launch: &'l Launch) -> Result<Run<'l>, LaunchError> {
        let config = launch.config();
        let path = match config.host_path {
            Some(path) if path.is_available() => path,
            Some(path) => {
                return Err(LaunchError::Invalid(format!("this machine has no {}", path.name())));
            }
            None => host_path().map_err(|error| LaunchError::Invalid(error.to_string()))?,
        };
        let native_code = match config.native_code {
            Some(native_code) => native_code,
            None => native_code().map_err(|error| LaunchError::Invalid(error.to_string()))?,
        };
        let limits = Limits::of(config);
        let sliced = config.schedule.is_some() || config.deterministic || limits.count_steps();
        Ok(Run {
            launch,
            info: launch.kernel().kept(|| KernelInfo::new(launch)),
            path,
            shuffled: config.schedule.is_some(),
            native_code: if sliced || native_host(path).is_none() { NativeCode::Never } else { native_code },
            grid_barrier: GridBarrier::of(launch.kernel().waits_for_grid, config),
            turns: Turns::default(),
            limits,
        })
    }
}
