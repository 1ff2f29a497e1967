//! What kernels print. It goes to the standard output of C, so that it comes in order with what the program prints there.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use vm::Output;

unsafe extern "C" {
    /// `stdout` of the C library.
    static mut stdout: *mut libc::FILE;
}

struct CStdout;

impl Write for CStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        PRINTED.store(true, Ordering::Relaxed);
        // SAFETY: the C library initialised it before this one was loaded, and locks it itself.
        let written = unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), stdout) };
        if written == 0 && !bytes.is_empty() { Err(io::Error::last_os_error()) } else { Ok(written) }
    }

    /// See [`flush`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where `printf` of kernels goes.
pub fn output() -> Output {
    static OUTPUT: OnceLock<Output> = OnceLock::new();
    OUTPUT.get_or_init(|| Output::to(CStdout)).clone()
}

/// Something was printed since the last flush.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Called where the program waits for kernels: whoever reads its output sees what they printed.
pub fn flush() {
    if PRINTED.swap(false, Ordering::Relaxed) {
        // SAFETY: as for writing.
        unsafe { libc::fflush(stdout) };
    }
}
