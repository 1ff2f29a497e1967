//! Launches in the style before CUDA 4: the program sets the block shape and each parameter, then launches a grid. Some programs still
//! set the block shape before every launch (PyCUDA).

use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use cudarc::driver::sys::{CUfunction, CUstream};

use crate::api::api;
use crate::context::Context;
use crate::function::{Function, function};
use crate::launch::{KernelLaunch, submit};
use crate::lock;
use crate::pointers::In;
use crate::stream::Default as DefaultStream;
use crate::{INVALID, Status};

/// The settings of a kernel.
#[derive(Clone, Default)]
struct Settings {
    block: [u32; 3],
    dynamic_shared: u32,
    params: Vec<u8>,
}

/// By kernel handle.
static SETTINGS: LazyLock<Mutex<HashMap<usize, Settings>>> = LazyLock::new(Mutex::default);

fn settings() -> MutexGuard<'static, HashMap<usize, Settings>> {
    lock(&SETTINGS)
}

fn known(handle: CUfunction) -> Result<Arc<Function>, Status> {
    Context::current()?;
    function(handle)
}

/// Sets some bytes of the parameters.
fn set(handle: CUfunction, offset: c_int, bytes: &[u8]) -> Result<(), Status> {
    let most = known(handle)?.attributes.param_bytes as usize;
    let start = usize::try_from(offset).map_err(|_| INVALID)?;
    let end = start.checked_add(bytes.len()).filter(|&end| end <= most).ok_or(INVALID)?;
    let mut settings = settings();
    let params = &mut settings.entry(handle.addr()).or_default().params;
    params.resize(most, 0);
    params[start..end].copy_from_slice(bytes);
    Ok(())
}

fn launch(handle: CUfunction, grid: [c_int; 2], stream: CUstream) -> Result<(), Status> {
    let function = known(handle)?;
    let set = settings().get(&handle.addr()).cloned().unwrap_or_default();
    let [x, y] = grid.map(|n| u32::try_from(n).unwrap_or(0));
    let mut params = set.params;
    params.resize(function.attributes.param_bytes as usize, 0);
    let (block, dynamic_shared) = (set.block, set.dynamic_shared);
    let launch = KernelLaunch {
        function,
        grid: [x, y, 1],
        block,
        dynamic_shared,
        cooperative: false,
        cluster: None,
        params,
    };
    submit(&*DefaultStream::Legacy.stream(stream)?, launch)
}

api! { API:
    /// Sets the block for `cuLaunch`.
    cuFuncSetBlockShape 2000 "cuFuncSetBlockShape" (handle: CUfunction, x: c_int, y: c_int, z: c_int) {
        known(handle)?;
        let block = [x, y, z].map(|n| u32::try_from(n).unwrap_or(0));
        if block.contains(&0) {
            return Err(INVALID);
        }
        settings().entry(handle.addr()).or_default().block = block;
        Ok(())
    }
    /// Sets the dynamic shared memory for `cuLaunch`.
    cuFuncSetSharedSize 2000 "cuFuncSetSharedSize" (handle: CUfunction, bytes: c_uint) {
        known(handle)?;
        settings().entry(handle.addr()).or_default().dynamic_shared = bytes;
        Ok(())
    }
    /// Says how many bytes of parameters `cuLaunch` will pass.
    cuParamSetSize 2000 "cuParamSetSize" (handle: CUfunction, bytes: c_uint) {
        if u64::from(bytes) > known(handle)?.attributes.param_bytes.next_multiple_of(16) { Err(INVALID) } else { Ok(()) }
    }
    /// Sets an integer parameter for `cuLaunch`.
    cuParamSeti 2000 "cuParamSeti" (handle: CUfunction, offset: c_int, value: c_uint) {
        set(handle, offset, &value.to_le_bytes())
    }
    /// Sets a float parameter for `cuLaunch`.
    cuParamSetf 2000 "cuParamSetf" (handle: CUfunction, offset: c_int, value: f32) {
        set(handle, offset, &value.to_le_bytes())
    }
    /// Sets parameters for `cuLaunch`.
    cuParamSetv 2000 "cuParamSetv" (handle: CUfunction, offset: c_int, data: In<u8>, bytes: c_uint) {
        set(handle, offset, &data.read_all(bytes as usize)?)
    }
    /// Launches one block.
    cuLaunch 2000 "cuLaunch" (handle: CUfunction) {
        launch(handle, [1, 1], std::ptr::null_mut())
    }
    /// Launches a grid.
    cuLaunchGrid 2000 "cuLaunchGrid" (handle: CUfunction, width: c_int, height: c_int) {
        launch(handle, [width, height], std::ptr::null_mut())
    }
    /// Launches a grid in a stream.
    cuLaunchGridAsync 2000 "cuLaunchGridAsync" (handle: CUfunction, width: c_int, height: c_int, of: CUstream) {
        launch(handle, [width, height], of)
    }
}
