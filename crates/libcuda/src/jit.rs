//! Compiler options (`CUjit_option`) that have an effect: where messages go, and the register limit.

use std::ffi::{c_uint, c_void};

use crate::Status;
use crate::image::{Refusal, Source};
use crate::pointers::{Bytes, In, InOut, write_bytes};

const MAX_REGISTERS: u32 = 0;
const INFO_LOG: u32 = 3;
const INFO_LOG_BYTES: u32 = 4;
const ERROR_LOG: u32 = 5;
const ERROR_LOG_BYTES: u32 = 6;

/// The compiler options of a program.
#[derive(Default)]
pub struct Options<'a> {
    max_registers: Option<u32>,
    info: Log<'a>,
    error: Log<'a>,
}

/// A buffer of the program for messages, and the place where the program stores its size and reads the length of the message: an entry
/// of the option values.
#[derive(Default)]
struct Log<'a> {
    buffer: Option<Bytes<'a>>,
    bytes: usize,
    size: Option<(InOut<'a, *mut c_void>, usize)>,
}

impl<'a> Options<'a> {
    /// Reads the options that the program passes.
    ///
    /// # Errors
    /// If there are options without values.
    pub fn read(
        count: c_uint,
        options: In<c_uint>,
        values: InOut<'a, *mut c_void>,
    ) -> Result<Options<'a>, Status> {
        let mut result = Options::default();
        for (i, option) in options.read_all(count as usize)?.into_iter().enumerate() {
            let value = values.read_at(i)?;
            let log = if option <= INFO_LOG_BYTES { &mut result.info } else { &mut result.error };
            match option {
                MAX_REGISTERS => {
                    result.max_registers = u32::try_from(value.addr()).ok().filter(|&most| most > 0)
                }
                INFO_LOG | ERROR_LOG => {
                    // SAFETY: the value of this option is a buffer, whose size another option says.
                    log.buffer = Some(unsafe { Bytes::new(value.cast()) });
                }
                INFO_LOG_BYTES | ERROR_LOG_BYTES => {
                    // A number that is passed as a pointer.
                    log.bytes = value.addr() & u32::MAX as usize;
                    log.size = Some((values, i));
                }
                _ => {}
            }
        }
        Ok(result)
    }

    /// Applies the options to sources.
    pub fn apply(&self, mut sources: Vec<Source>) -> Vec<Source> {
        for source in &mut sources {
            source.max_registers = source.max_registers.min(self.max_registers.unwrap_or(u32::MAX));
        }
        sources
    }

    /// Writes the messages of a compilation to the program's buffers.
    ///
    /// # Errors
    /// The error of the compilation.
    pub fn report<T>(&self, result: Result<T, Refusal>) -> Result<T, Status> {
        self.info.write("");
        match result {
            Ok(value) => {
                self.error.write("");
                Ok(value)
            }
            Err(refusal) => {
                self.error.write(&refusal.message);
                Err(refusal.status)
            }
        }
    }
}

impl Log<'_> {
    fn write(&self, message: &str) {
        let Some(buffer) = self.buffer.filter(|buffer| !buffer.is_null() && self.bytes > 0) else { return };
        let count = message.len().min(self.bytes - 1);
        // Neither pointer is null.
        let _ = write_bytes(buffer, &message.as_bytes()[..count]).and_then(|()| buffer.write_at(count, 0));
        if let Some((values, i)) = self.size {
            let _ = values.write_at(i, std::ptr::without_provenance_mut(count));
        }
    }
}
