//! The output of kernels. It goes to C's standard output, so that it is in order with the program's own output.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use machine::Output;

unsafe extern "C" {
    /// The C library's `stdout`.
    static mut stdout: *mut libc::FILE;
}

struct CStdout;

impl Write for CStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        PRINTED.store(true, Ordering::Relaxed);
        // SAFETY: the C library initialized it before this library was loaded, and locks it itself.
        let written = unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), stdout) };
        if written == 0 && !bytes.is_empty() { Err(io::Error::last_os_error()) } else { Ok(written) }
    }

    /// See [`flush`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The destination of `printf` in kernels.
pub fn output() -> Output {
    static OUTPUT: OnceLock<Output> = OnceLock::new();
    OUTPUT.get_or_init(|| Output::to(CStdout)).clone()
}

/// Whether something was printed since the last flush.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Flushes the output. Called where the program waits for kernels, so that a reader of its output sees what they printed.
pub fn flush() {
    if PRINTED.swap(false, Ordering::Relaxed) {
        // SAFETY: as for writing.
        unsafe { libc::fflush(stdout) };
    }
}
