//! Compiler options (`CUjit_option`) that have an effect: where messages go, and the register limit.

use std::ffi::{c_char, c_uint, c_void};

use crate::Status;
use crate::image::{Refusal, Source};
use crate::pointers::In;

const MAX_REGISTERS: u32 = 0;
const INFO_LOG: u32 = 3;
const INFO_LOG_BYTES: u32 = 4;
const ERROR_LOG: u32 = 5;
const ERROR_LOG_BYTES: u32 = 6;

/// The compiler options of a program.
#[derive(Default)]
pub struct Options {
    max_registers: Option<u32>,
    info: Log,
    error: Log,
}

/// A buffer of the program for messages, and the place where the program stores its size and reads the length of the message.
#[derive(Default)]
struct Log {
    buffer: Option<*mut c_char>,
    bytes: usize,
    size: Option<*mut *mut c_void>,
}

impl Options {
    /// Reads the options that the program passes.
    ///
    /// # Errors
    /// If there are options without values.
    pub fn read(count: c_uint, options: In<c_uint>, values: In<*mut c_void>) -> Result<Options, Status> {
        let mut result = Options::default();
        let (options, all) = (options.read_all(count as usize)?, values.read_all(count as usize)?);
        for (i, (option, value)) in options.into_iter().zip(all).enumerate() {
            let log = if option <= INFO_LOG_BYTES { &mut result.info } else { &mut result.error };
            match option {
                MAX_REGISTERS => {
                    result.max_registers = u32::try_from(value.addr()).ok().filter(|&most| most > 0)
                }
                INFO_LOG | ERROR_LOG => log.buffer = Some(value.cast()),
                INFO_LOG_BYTES | ERROR_LOG_BYTES => {
                    // A number that is passed as a pointer.
                    log.bytes = value.addr() & u32::MAX as usize;
                    log.size = Some(values.pointer().cast_mut().wrapping_add(i));
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
    ///
    /// # Safety
    /// The options that were read must have values of the types that the manual names.
    pub unsafe fn report<T>(&self, result: Result<T, Refusal>) -> Result<T, Status> {
        // SAFETY: the caller's promise.
        unsafe {
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
}

impl Log {
    /// # Safety
    /// The buffer must be as large as the program said.
    unsafe fn write(&self, message: &str) {
        let Some(buffer) = self.buffer.filter(|buffer| !buffer.is_null() && self.bytes > 0) else { return };
        let count = message.len().min(self.bytes - 1);
        // SAFETY: the caller's promise.
        unsafe {
            std::ptr::copy_nonoverlapping(message.as_ptr(), buffer.cast(), count);
            buffer.add(count).write(0);
            if let Some(size) = self.size {
                size.write(std::ptr::without_provenance_mut(count));
            }
        }
    }
}
