//! The destination of a kernel's `printf`.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Receives the text that the threads of a launch print, in the order in which they print. Clones are cheap and denote
/// the same output.
///
/// As on a GPU, a thread does not learn whether its text could be written.
#[derive(Clone, Default)]
pub struct Output(Arc<Sink>);

#[derive(Default)]
enum Sink {
    #[default]
    Stdout,
    Writer(Mutex<Box<dyn Write + Send>>),
    Buffer(Mutex<Vec<u8>>),
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The bytes of a writer that panicked are still valid.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Output {
    /// The standard output of this process.
    pub fn stdout() -> Output {
        Output::default()
    }

    /// Any writer of bytes.
    pub fn to(writer: impl Write + Send + 'static) -> Output {
        Output(Arc::new(Sink::Writer(Mutex::new(Box::new(writer)))))
    }

    /// A buffer; see [`Output::take`].
    pub fn buffer() -> Output {
        Output(Arc::new(Sink::Buffer(Mutex::default())))
    }

    /// The text printed into a [`buffer`](Output::buffer) since the last call. Empty for other kinds of output.
    pub fn take(&self) -> Vec<u8> {
        match &*self.0 {
            Sink::Buffer(bytes) => std::mem::take(&mut *lock(bytes)),
            _ => Vec::new(),
        }
    }

    /// Prints some text.
    pub fn write(&self, text: &[u8]) {
        let _ = match &*self.0 {
            Sink::Stdout => std::io::stdout().write_all(text),
            Sink::Writer(writer) => lock(writer).write_all(text),
            Sink::Buffer(bytes) => lock(bytes).write_all(text),
        };
    }

    /// Flushes the output.
    pub fn flush(&self) {
        let _ = match &*self.0 {
            Sink::Stdout => std::io::stdout().flush(),
            Sink::Writer(writer) => lock(writer).flush(),
            Sink::Buffer(_) => Ok(()),
        };
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.0 {
            Sink::Stdout => "Output::Stdout",
            Sink::Writer(_) => "Output::Writer",
            Sink::Buffer(_) => "Output::Buffer",
        })
    }
}
