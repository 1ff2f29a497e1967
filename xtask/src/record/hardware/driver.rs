//! Launches of kernels on the first GPU, through functions of the driver.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUlaunchAttribute, CUresult, CUtensorMap};

use super::Result;
use super::kernels::{Argument, Launch, Machine, Missing};

/// A launch that has not ended after this never does.
const LONGEST: Duration = Duration::from_secs(60);
/// Dynamic shared memory beyond this must be asked for.
const SHARED: u32 = 48 << 10;

/// So must clusters of more blocks than these.
const PORTABLE: u32 = 8;

/// The first GPU, whose context is that of this thread.
pub struct Driver(());

/// A result of the driver in words.
fn told(status: CUresult) -> std::result::Result<(), String> {
    status.result().map_err(|error| error.to_string())
}

/// Memory of the GPU.
struct Memory {
    address: u64,
    bytes: usize,
}

impl Memory {
    fn of(bytes: &[u8]) -> std::result::Result<Memory, String> {
        let mut memory = Memory { address: 0, bytes: bytes.len() };
        // SAFETY: the driver writes an address, and then reads these bytes.
        unsafe {
            told(sys::cuMemAlloc_v2(&mut memory.address, bytes.len().max(1)))?;
            told(sys::cuMemcpyHtoD_v2(memory.address, bytes.as_ptr().cast(), bytes.len()))?;
        }
        Ok(memory)
    }

    fn read(&self) -> std::result::Result<Vec<u8>, String> {
        let mut bytes = vec![0; self.bytes];
        // SAFETY: the driver writes as many bytes as there are.
        told(unsafe { sys::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), self.address, bytes.len()) })?;
        Ok(bytes)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: nobody has the address any more. In a context that a launch has broken it fails, and goes with that.
        let _ = unsafe { sys::cuMemFree_v2(self.address) };
    }
}

/// A loaded module.
struct Module(sys::CUmodule);

impl Module {
    fn load(text: &str) -> std::result::Result<Module, String> {
        let text = CString::new(text).map_err(|error| error.to_string())?;
        let mut module = null_mut();
        // SAFETY: the driver reads a text that ends with a zero, and writes a handle.
        told(unsafe { sys::cuModuleLoadData(&mut module, text.as_ptr().cast()) })?;
        Ok(Module(module))
    }

    /// Sets a whole variable.
    fn set(&self, name: &str, data: &[u8]) -> std::result::Result<(), String> {
        let symbol = CString::new(name).map_err(|error| error.to_string())?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the driver reads a name that ends with a zero, and writes an address and a size.
        told(unsafe { sys::cuModuleGetGlobal_v2(&mut address, &mut bytes, self.0, symbol.as_ptr()) })?;
        if bytes != data.len() {
            return Err(format!("`{name}` has {bytes} bytes, and its array {}", data.len()));
        }
        // SAFETY: the driver reads these bytes, and the variable has as many.
        told(unsafe { sys::cuMemcpyHtoD_v2(address, data.as_ptr().cast(), bytes) })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: nothing of the module runs any more.
        let _ = unsafe { sys::cuModuleUnload(self.0) };
    }
}

/// What a parameter is made of.
enum Parameter {
    Word(u64),
    Map(Box<CUtensorMap>),
}

impl Driver {
    /// # Errors
    /// There is no GPU.
    pub fn of_first_gpu() -> Result<Driver> {
        let (mut device, mut context) = (0, null_mut());
        // SAFETY: the driver writes a number and a handle.
        unsafe {
            sys::cuInit(0).result()?;
            sys::cuDeviceGet(&mut device, 0).result()?;
            sys::cuDevicePrimaryCtxRetain(&mut context, device).result()?;
            sys::cuCtxSetCurrent(context).result()?;
        }
        Ok(Driver(()))
    }

    /// Launches it, and waits for its end.
    fn start(
        &self,
        function: sys::CUfunction,
        launch: &Launch,
        parameters: &mut [Parameter],
    ) -> std::result::Result<(), Missing> {
        let mut pointers: Vec<*mut c_void> = parameters
            .iter_mut()
            .map(|parameter| match parameter {
                Parameter::Word(word) => (&raw mut *word).cast(),
                Parameter::Map(map) => (&raw mut **map).cast(),
            })
            .collect();
        // SAFETY: all bits zero are values of every attribute.
        let attribute = || unsafe { std::mem::zeroed::<CUlaunchAttribute>() };
        let mut attributes = Vec::new();
        if let Some([x, y, z]) = launch.cluster {
            let mut cluster = attribute();
            cluster.id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            cluster.value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            attributes.push(cluster);
        }
        if launch.cooperative {
            let mut cooperative = attribute();
            cooperative.id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
            cooperative.value.cooperative = 1;
            attributes.push(cooperative);
        }
        let config = sys::CUlaunchConfig {
            gridDimX: launch.grid[0],
            gridDimY: launch.grid[1],
            gridDimZ: launch.grid[2],
            blockDimX: launch.block[0],
            blockDimY: launch.block[1],
            blockDimZ: launch.block[2],
            sharedMemBytes: launch.shared,
            hStream: null_mut(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        // SAFETY: there is a pointer for each parameter, to at least as many bytes as the header of the kernel says that it has.
        let status = unsafe {
            if launch.shared > SHARED {
                let limit = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                told(sys::cuFuncSetAttribute(function, limit, launch.shared as i32))
                    .map_err(Missing::Failed)?;
            }
            if launch.cluster.is_some_and(|cluster| cluster.iter().product::<u32>() > PORTABLE) {
                let allowed = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
                told(sys::cuFuncSetAttribute(function, allowed, 1)).map_err(Missing::Failed)?;
            }
            sys::cuLaunchKernelEx(&config, function, pointers.as_mut_ptr(), null_mut())
        };
        told(status).map_err(Missing::Failed)?;
        let start = Instant::now();
        loop {
            // SAFETY: the stream is the default one.
            match unsafe { sys::cuStreamQuery(null_mut()) } {
                CUresult::CUDA_ERROR_NOT_READY if start.elapsed() > LONGEST => return Err(Missing::Stuck),
                CUresult::CUDA_ERROR_NOT_READY => std::thread::sleep(Duration::from_micros(50)),
                status => return told(status).map_err(Missing::Failed),
            }
        }
    }

    fn try_launch(&self, text: &str, launch: &Launch) -> std::result::Result<Vec<Vec<u8>>, Missing> {
        let module = Module::load(text).map_err(Missing::Refused)?;
        let name =
            CString::new(launch.entry.as_str()).map_err(|error| Missing::Refused(error.to_string()))?;
        let mut function = null_mut();
        // SAFETY: the driver reads a name that ends with a zero, and writes a handle.
        told(unsafe { sys::cuModuleGetFunction(&mut function, module.0, name.as_ptr()) })
            .map_err(Missing::Refused)?;
        for (name, data) in &launch.variables {
            module.set(name, data).map_err(Missing::Failed)?;
        }
        let (mut arrays, mut parameters) = (Vec::new(), Vec::new());
        for argument in &launch.arguments {
            let array = match argument {
                Argument::Number(_) => None,
                Argument::Array(bytes) | Argument::Map(_, bytes) => {
                    Some(Memory::of(bytes).map_err(Missing::Failed)?)
                }
            };
            let address = array.as_ref().map_or(0, |array| array.address);
            parameters.push(match argument {
                Argument::Number(number) => Parameter::Word(*number),
                Argument::Array(_) => Parameter::Word(address),
                Argument::Map(map, _) => Parameter::Map(map.encode(address).map_err(Missing::Refused)?),
            });
            arrays.push(array);
        }
        self.start(function, launch, &mut parameters)?;
        let read = |array: &Option<Memory>| array.as_ref().map_or(Ok(Vec::new()), Memory::read);
        arrays.iter().map(read).collect::<std::result::Result<_, _>>().map_err(Missing::Failed)
    }
}

impl Machine for Driver {
    fn launch(&mut self, text: &str, launch: &Launch) -> std::result::Result<Vec<Vec<u8>>, Missing> {
        self.try_launch(text, launch)
    }
}
