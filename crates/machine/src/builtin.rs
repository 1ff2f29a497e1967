//! Functions that CUDA provides and PTX only declares.
//!
//! A call of a function that the module only declares goes to CUDA's function with this name, if the parameters match
//! ([`Builtin::fits`]). `vm/src/exec/builtin.rs` executes it.

use check::module::Function;

use crate::runtime_call::RuntimeCall;

/// A function that this machine implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// `int vprintf(const char *format, void *arguments)`
    Printf,
    /// `void *malloc(size_t bytes)`
    Malloc,
    /// `void free(void *address)`
    Free,
    /// `void __assertfail(const char *message, const char *file, unsigned line, const char *function, size_t
    /// charSize)`, and glibc's `__assert_fail` without the last parameter.
    AssertFail,
    /// `unsigned long long cudaCGGetIntrinsicHandle(int scope)`
    GroupHandle,
    /// `cudaError_t cudaCGSynchronize(unsigned long long handle, unsigned flags)`
    GridSynchronize,
    /// `void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value)`: a store, as the handle is an
    /// address here.
    SetConditional,
    /// A function of the device runtime.
    Runtime(RuntimeCall),
}

impl Builtin {
    /// The function with this name.
    pub fn of(name: &str) -> Option<Builtin> {
        Some(match name {
            "vprintf" => Builtin::Printf,
            "malloc" => Builtin::Malloc,
            "free" => Builtin::Free,
            "__assertfail" | "__assert_fail" => Builtin::AssertFail,
            "cudaCGGetIntrinsicHandle" => Builtin::GroupHandle,
            "cudaCGSynchronize" => Builtin::GridSynchronize,
            "cudaGraphSetConditional" => Builtin::SetConditional,
            _ => Builtin::Runtime(RuntimeCall::of(name)?),
        })
    }

    /// Sizes in bytes of its parameters and of its result, for addresses of `address` bytes.
    pub fn signature(self, address: u64) -> (&'static [u64], Option<u64>) {
        let wide = address == 8;
        match self {
            Builtin::Printf => (if wide { &[8, 8] } else { &[4, 4] }, Some(4)),
            Builtin::Malloc => (if wide { &[8] } else { &[4] }, Some(address)),
            Builtin::Free => (if wide { &[8] } else { &[4] }, None),
            // The size of a character is ignored: it is always one byte.
            Builtin::AssertFail => (if wide { &[8, 8, 4, 8] } else { &[4, 4, 4, 4] }, None),
            Builtin::GroupHandle => (&[4], Some(8)),
            Builtin::GridSynchronize => (&[8, 4], Some(4)),
            Builtin::SetConditional => (&[8, 4], None),
            Builtin::Runtime(call) => call.signature(),
        }
    }

    /// Whether a declaration matches this function. It may leave out the result, as Taichi's of `vprintf` does.
    pub fn fits(self, callee: &Function, address: u64) -> bool {
        let (params, result) = self.signature(address);
        callee.params.len() >= params.len()
            && callee.params.iter().zip(params).all(|(param, &bytes)| param.bytes == bytes)
            && callee.returns.len() <= usize::from(result.is_some())
            && callee.returns.iter().all(|param| Some(param.bytes) == result)
    }
}

/// A function of `core::panicking`, by its mangled name: the target of failed bounds checks and `unwrap`.
pub(crate) fn is_rust_panic(name: &str) -> bool {
    name.starts_with("_R") && name.contains("4core9panicking") || name.starts_with("_ZN4core9panicking")
}

/// Why a declared function cannot be called, and how to fix it.
pub fn why_missing(name: &str) -> String {
    if Builtin::of(name).is_some() {
        return format!("`{name}` is declared with other parameters than CUDA's function of this name");
    }
    let why = if is_rust_panic(name) {
        ": a check of the Rust program, of an index or a value, does not hold"
    } else if name.starts_with("__nv_") {
        ", a function of libdevice: link libdevice.10.bc into the kernel before it becomes PTX, as nvcc, numba and \
         Triton do"
    } else if name.starts_with("cuda") {
        ", a function of CUDA's device runtime (libcudadevrt), which has only what launches kernels here: a kernel cannot wait \
         for others"
    } else {
        ", but no module has a body for it: give the file that defines it to the same run"
    };
    format!("`{name}` is declared{why}")
}
