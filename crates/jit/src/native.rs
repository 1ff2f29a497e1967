//! Machine code in memory, and how it is called.

use crate::{MOST_BLOCKS, MOST_PREDICATES, MOST_WORDS};

/// What a call of native code reads and writes: one or two groups of 16 lanes ([`Native::parts`]), one behind the other.
/// Masks have a bit for each lane.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    /// For each of [`Loop::words`](crate::Loop::words) and each of two groups: 16 elements of 4 bytes.
    pub words: [[*mut u8; 2]; MOST_WORDS],
    /// The lanes that the call takes through the loop. No other lane of a word changes.
    pub lanes: u32,
    /// The lanes that are at the start of each basic block of the loop, and behind these at each exit.
    pub pending: [u32; MOST_BLOCKS],
    /// Each of [`Loop::predicates`](crate::Loop::predicates).
    pub predicates: [u32; MOST_PREDICATES],
    pub(crate) scratch: [u32; 2],
    /// How many backward branches the lanes may still take. At less than zero, the call has ended although lanes are
    /// left in the loop.
    pub fuel: i64,
    /// Thread-instructions that have been executed.
    pub instructions: u64,
}

impl Frame {
    /// A frame without lanes.
    pub fn new(fuel: i64) -> Frame {
        Frame {
            words: [[std::ptr::null_mut(); 2]; MOST_WORDS],
            lanes: 0,
            pending: [0; MOST_BLOCKS],
            predicates: [0; MOST_PREDICATES],
            scratch: [0; 2],
            fuel,
            instructions: 0,
        }
    }
}

/// The machine code of a loop. Its memory can be read and executed, and is never writable at the same time.
#[derive(Debug)]
pub struct Native {
    parts: usize,
    #[cfg(all(target_arch = "x86_64", unix))]
    code: memmap2::Mmap,
}

impl Native {
    /// Copies machine code to memory that can be executed. `None` if the system gives none.
    #[cfg(all(target_arch = "x86_64", unix))]
    pub(crate) fn new(code: &[u8], parts: usize) -> Option<Native> {
        let mut memory = memmap2::MmapMut::map_anon(code.len()).ok()?;
        memory.copy_from_slice(code);
        Some(Native { parts, code: memory.make_exec().ok()? })
    }

    /// How many groups of 16 lanes a call takes through the loop: 1 or 2.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Takes lanes through the loop.
    ///
    /// # Safety
    /// The code must be that of the loop for which the frame was made, the host must have AVX-512 (F, BW, DQ, VL), and
    /// every word of the loop must point to 16 elements for each part. They are written if the loop defines the word.
    pub unsafe fn run(&self, frame: &mut Frame) {
        #[cfg(all(target_arch = "x86_64", unix))]
        {
            // SAFETY: the emitter made a function of this type.
            let function: extern "sysv64" fn(*mut Frame) = unsafe { std::mem::transmute(self.code.as_ptr()) };
            function(frame);
        }
        #[cfg(not(all(target_arch = "x86_64", unix)))]
        let _ = frame;
    }

    /// The machine code.
    pub fn code(&self) -> &[u8] {
        #[cfg(all(target_arch = "x86_64", unix))]
        return &self.code;
        #[cfg(not(all(target_arch = "x86_64", unix)))]
        return &[];
    }
}
