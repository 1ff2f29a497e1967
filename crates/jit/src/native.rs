//! Machine code in memory, and how it is called.

use diag::Span;
use ir::Slot;

use crate::forms::Form;
use crate::loops::Value;
use crate::straight::MOST_POINTERS;
use crate::{MOST_ACCESSES, MOST_BLOCKS, MOST_EVENS, MOST_OPERANDS, MOST_PREDICATES, MOST_WORDS};

/// The most values of 64 bytes that a call leaves in [`Frame::spilled`].
pub const SPILLED: usize = 64;

/// A bit for each lane of all strips.
pub type Lanes = [u64; 16];

/// Memory that an access may touch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Its first address, a multiple of the access's bytes.
    pub start: u64,
    /// An access may begin at the first `room` of its bytes.
    pub room: u64,
    /// Where the host has it.
    pub host: *mut u8,
}

impl Region {
    /// A region without room.
    pub const NONE: Region = Region { start: 0, room: 0, host: std::ptr::null_mut() };
}

/// What values differ by from one strip to the next.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Steps {
    /// [`Frame::bases`].
    pub evens: [u64; MOST_EVENS],
    /// [`Frame::pointers`].
    pub pointers: [u64; MOST_POINTERS],
}

impl Default for Steps {
    fn default() -> Steps {
        Steps { evens: [0; MOST_EVENS], pointers: [0; MOST_POINTERS] }
    }
}

/// What a call of native code reads and writes. It takes *strips* of lanes through the code, one after the other: one or
/// two groups of 16 lanes ([`Native::parts`]).
///
/// Masks have a bit for each lane: those of one strip 32 bits, and those of all 1024. Straight-line code may have more lanes, for
/// which masks repeat.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Frame {
    /// The sources of an operation that the interpreter's functions compute, and behind them its results: for each group of 16
    /// lanes, elements of the slot's bytes.
    pub operands: [[u8; 256]; MOST_OPERANDS],
    /// For each of [`Native::words`] and each of two groups: 16 elements.
    pub words: [[*mut u8; 2]; MOST_WORDS],
    /// Bytes from a word's elements of one strip to those of the next.
    pub word_steps: [usize; MOST_WORDS],
    /// The lanes that the call takes through the loop. No other lane of a word changes.
    pub lanes: Lanes,
    /// For straight-line code: the lanes of each strip that has been skipped, since an access is not allowed. Others keep what was here.
    pub skipped: Lanes,
    /// The lanes that have come to each exit.
    pub exits: [Lanes; MOST_BLOCKS],
    /// Each of [`Loop::predicates`](crate::Loop::predicates).
    pub predicates: [Lanes; MOST_PREDICATES],
    /// The number of the strip, and of the one behind the last one.
    pub strip: u64,
    /// See [`Frame::strip`].
    pub end: u64,
    /// A *run* is so many strips between which bases advance alike. Behind it they jump.
    pub run: u64,
    /// The strips of the current run that are left.
    pub left_in_run: u64,
    /// For straight-line code: behind so many runs, bases leap and do not jump.
    pub runs: u64,
    /// The runs that are left until then, with the current one.
    pub left_runs: u64,
    /// How many backward branches the lanes may still take. At less than zero, the call has ended although lanes are
    /// left in the loop.
    pub fuel: i64,
    /// The fuel that each strip begins with, if the loop accesses memory. Otherwise all strips share the fuel.
    pub share: i64,
    /// Thread-instructions that have been executed.
    pub instructions: u64,
    /// Those at the start of the strip.
    pub(crate) instructions_before: u64,
    /// The value of the first lane for each of [`Native::evens`].
    pub bases: [u64; MOST_EVENS],
    /// Those at the start of the strip.
    pub entered: [u64; MOST_EVENS],
    /// What they differ by from one strip of a run to the next.
    pub advance: Steps,
    /// What they differ by from the last strip of a run to the first one of the next.
    pub jump: Steps,
    /// What they differ by from the last strip of [`Frame::runs`] to the next one.
    pub leap: Steps,
    /// For straight-line code: where the host has the first lane's address of each of [`Straight::pointers`](crate::Straight).
    pub pointers: [u64; MOST_POINTERS],
    /// Bytes from an address of each to what the host should fetch meanwhile, if lanes access consecutive elements.
    pub ahead: [i64; MOST_POINTERS],
    /// For each of [`Loop::accesses`](crate::Loop::accesses): where it may go.
    pub regions: [Region; MOST_ACCESSES],
    /// What is added to `host` of each region at the end of a run.
    pub strides: [usize; MOST_ACCESSES],
    /// The words of a row of local memory: one for each lane of the gang. Region hosts are its first row.
    pub local_lanes: u64,
    /// Finds a region for the lanes of [`Frame::asking`], and says whether it has. The number: of the access.
    pub find_region: extern "C" fn(*mut Frame, usize) -> bool,
    /// Computes one of [`Loop::calls`](crate::Loop::calls).
    pub call: extern "C" fn(*mut Frame, usize),
    /// For [`Frame::find_region`] and [`Frame::call`].
    pub context: *mut std::ffi::c_void,
    /// The lanes that an access is for.
    pub asking: u32,
    /// The lanes of the strip that are at the start of each basic block of the loop, and behind these at each exit.
    pub pending: [u32; MOST_BLOCKS],
    /// The lanes of the strip.
    pub(crate) current: u32,
    /// The predicates of the strip.
    pub(crate) passed: [u32; MOST_PREDICATES],
    pub(crate) scratch: [u32; 2],
    /// The offsets of an access and what it loads or stores, an element for each lane.
    pub(crate) offsets: [[u8; 64]; 4],
    pub(crate) elements: [[u8; 64]; 4],
    /// The lanes that have left before an operation, and the index of the [`Point`]. Then the call ends with this strip.
    pub left: u32,
    /// See [`Frame::left`].
    pub point: u32,
    /// The addresses of an access, as [`Native::addresses`] says.
    pub addresses: [u64; 32],
    /// Values of the lanes that have left, as the [`Point`] says.
    pub spilled: [[u8; 64]; SPILLED],
    /// Values of one basic block that have no register of the host: words and predicates.
    pub(crate) locals: [[u8; 64]; SPILLED],
    pub(crate) local_predicates: [u32; MOST_PREDICATES],
    /// The host's registers while a region is found.
    pub(crate) saved: [[u8; 64]; 32],
    pub(crate) saved_masks: [u64; 8],
    pub(crate) saved_words: [u64; 8],
    /// The lanes at the current basic block, for hosts without masks: all bits of a lane's element, or none.
    pub(crate) lane_masks: [u32; 32],
    /// `mxcsr` while another rounding is in it.
    pub(crate) control: u32,
    /// `mxcsr` as it was when the code began, while arithmetic flushes.
    pub(crate) usual_control: u32,
}

impl Default for Frame {
    /// A frame without lanes, and without regions.
    fn default() -> Frame {
        extern "C" fn none(_: *mut Frame, _: usize) -> bool {
            false
        }
        extern "C" fn nothing(_: *mut Frame, _: usize) {}
        Frame {
            operands: [[0; 256]; MOST_OPERANDS],
            words: [[std::ptr::null_mut(); 2]; MOST_WORDS],
            word_steps: [0; MOST_WORDS],
            lanes: Lanes::default(),
            skipped: Lanes::default(),
            exits: [Lanes::default(); MOST_BLOCKS],
            predicates: [Lanes::default(); MOST_PREDICATES],
            strip: 0,
            end: 0,
            run: 0,
            left_in_run: 0,
            runs: 0,
            left_runs: 0,
            fuel: 0,
            share: 0,
            instructions: 0,
            instructions_before: 0,
            bases: [0; MOST_EVENS],
            entered: [0; MOST_EVENS],
            advance: Steps::default(),
            jump: Steps::default(),
            leap: Steps::default(),
            pointers: [0; MOST_POINTERS],
            ahead: [0; MOST_POINTERS],
            regions: [Region::NONE; MOST_ACCESSES],
            strides: [0; MOST_ACCESSES],
            local_lanes: 0,
            find_region: none,
            call: nothing,
            context: std::ptr::null_mut(),
            asking: 0,
            pending: [0; MOST_BLOCKS],
            current: 0,
            passed: [0; MOST_PREDICATES],
            scratch: [0; 2],
            offsets: [[0; 64]; 4],
            elements: [[0; 64]; 4],
            left: 0,
            point: 0,
            addresses: [0; 32],
            spilled: [[0; 64]; SPILLED],
            locals: [[0; 64]; SPILLED],
            local_predicates: [0; MOST_PREDICATES],
            saved: [[0; 64]; 32],
            saved_masks: [0; 8],
            saved_words: [0; 8],
            lane_masks: [0; 32],
            control: 0,
            usual_control: 0,
        }
    }
}

/// A slot whose values step evenly: [`Frame::bases`] has the value of the first lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Even {
    /// The slot.
    pub slot: Slot,
    /// How it steps.
    pub form: Form,
    /// The call reads the base that the frame gives.
    pub enters: bool,
    /// The loop writes it.
    pub defined: bool,
}

/// Where a value is when lanes leave before an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// In [`Frame::spilled`], from this byte on: an element of 4 or 8 bytes for each lane, of 4 for a slot of 2.
    Vectors(usize),
    /// In the element of [`Frame::spilled`] with this index: all lanes' bits of a predicate.
    Mask(usize),
}

/// Where lanes can leave before an operation.
#[derive(Clone, Debug)]
pub struct Point {
    /// The basic block, counted from the first one of the loop.
    pub block: usize,
    /// The operation of the basic block.
    pub operation: usize,
    /// The values that the basic block has computed for later operations. Others are where they are when a call ends.
    pub values: Vec<(Slot, Held)>,
}

/// The machine code of a loop. Its memory can be read and executed, and is never writable at the same time.
#[derive(Debug)]
pub struct Native {
    pub(crate) parts: usize,
    pub(crate) layout: Layout,
    #[cfg(all(target_arch = "x86_64", unix))]
    code: memmap2::Mmap,
}

/// Where the code has the slots of a loop.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub words: Vec<Value>,
    pub evens: Vec<Even>,
    pub points: Vec<Point>,
    /// See [`Native::addresses`].
    pub addresses: Vec<Option<Form>>,
    /// What the code is for, in its order.
    pub marks: Vec<Mark>,
}

/// Where a part of the code begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// The byte, or the instruction while code is being written.
    pub offset: usize,
    pub part: Part,
}

/// A part of the code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// The beginning: values are loaded.
    Entry,
    /// The code of a basic block, for lanes that are there or for all lanes of the vectors.
    Block { index: usize, all: bool },
    /// The code of an instruction.
    Instruction(Span),
    /// The end: values are stored.
    Exit,
    /// Where lanes leave, and where accesses ask for another region.
    Behind,
    /// Constants.
    Constants,
}

impl Native {
    /// Copies machine code to memory that can be executed. `None` if the system gives none.
    #[cfg(all(target_arch = "x86_64", unix))]
    pub(crate) fn new(code: &[u8], parts: usize, layout: Layout) -> Option<Native> {
        let mut memory = memmap2::MmapMut::map_anon(code.len()).ok()?;
        memory.copy_from_slice(code);
        Some(Native { parts, layout, code: memory.make_exec().ok()? })
    }

    /// How many groups of 16 lanes a call takes through the loop: 1 or 2.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// The slots that a frame points to.
    pub fn words(&self) -> &[Value] {
        &self.layout.words
    }

    /// The slots whose values step evenly.
    pub fn evens(&self) -> &[Even] {
        &self.layout.evens
    }

    /// Where lanes can leave before an operation.
    pub fn points(&self) -> &[Point] {
        &self.layout.points
    }

    /// How the addresses of an access step: then [`Frame::addresses`] begins with the first lane's. `None`: it has one for
    /// each lane, of 8 bytes, or of 4 if the address is in a slot of 4 bytes.
    pub fn addresses(&self, access: usize) -> Option<Form> {
        self.layout.addresses.get(access).copied().flatten()
    }

    /// Takes lanes through the loop.
    ///
    /// # Safety
    /// The frame must be made for this code, the machine must be the [`Host`](crate::Host) that it was compiled for, and every
    /// word must point to 16 elements for each group. They are written if the loop defines the word. The host memory of each region must be there,
    /// and may be written if a store has the region.
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
