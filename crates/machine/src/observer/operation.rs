//! Events of operations on registers.

use std::fmt;

use diag::Span;

/// How the results of a step depend on its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// On all bits of all sources.
    Compute,
    /// The result is the source, bit for bit, in its lowest bits.
    Copy {
        /// The number of these bits.
        bits: u32,
    },
    /// The result is a concatenation of the sources, with the first source in the lowest bits.
    Pack {
        /// The bits of each source.
        bits: u32,
    },
    /// The results are consecutive parts of the source, with the first result from the lowest bits.
    Unpack {
        /// The bits of each result.
        bits: u32,
    },
    /// On nothing.
    Defined,
    /// The results are elements of memory: those of the preceding access event.
    Load {
        /// The bytes of each element.
        bytes: u32,
    },
    /// The sources are written to elements of memory.
    Store {
        /// The bytes of each element.
        bytes: u32,
    },
    /// Memory is read, modified and written.
    Atomic,
    /// Memory is copied as the preceding access events describe.
    CopyMemory,
    /// On the source in the lane that [`WarpLane::source`] names.
    Shuffle,
    /// On the sources in all lanes of the warp.
    Collective,
    /// On all rows of memory that the warp reads.
    LoadMatrix,
    /// The sources in all lanes of the warp are written to memory.
    StoreMatrix,
    /// A branch, a barrier or a call. Its results are always defined.
    Decide,
}

/// The lanes that execute together, and their threads.
#[derive(Clone, Copy)]
pub struct LaneSet<'a> {
    words: &'a [u64],
    who: &'a dyn Fn(usize) -> ([u32; 3], u32),
}

impl<'a> LaneSet<'a> {
    /// Lanes by [`LaneSet::words`], whose threads are found by [`LaneSet::who`].
    pub fn new(words: &'a [u64], who: &'a dyn Fn(usize) -> ([u32; 3], u32)) -> LaneSet<'a> {
        LaneSet { words, who }
    }

    /// One bit for each of up to 1024 lanes.
    pub fn words(&self) -> &[u64] {
        self.words
    }

    /// `%ctaid` of a lane's block, and the lane's index in that block.
    pub fn who(&self, lane: usize) -> ([u32; 3], u32) {
        (self.who)(lane)
    }
}

impl fmt::Debug for LaneSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x?}", self.words)
    }
}

event! {
    /// What a step of an operation does to registers.
    ///
    /// A window and a number in the window identify a register. Numbers also identify literals, special registers and
    /// intermediate results. [`EnterEvent`] lists the registers that a function may read before it writes them.
    #[derive(Clone, Copy)]
    pub struct OperationEvent<'a> {
        /// The instruction.
        pub span: Span,
        /// The gang. Lanes that can execute together have the same number.
        pub gang: usize,
        /// The register window of the call.
        pub window: u32,
        /// How the results depend on `uses`.
        pub kind: OperationKind,
        /// Registers that the results depend on, or that are stored.
        pub uses: &'a [u32],
        /// Registers that are written.
        pub defs: &'a [Option<u32>],
        /// One bit for each entry of `defs`: whether it is a predicate.
        pub predicates: u32,
        /// Registers that decide where or whether something happens: addresses, guards, branch conditions, masks.
        pub decides: &'a [u32],
        /// The lanes that execute it.
        pub lanes: LaneSet<'a>,
        /// The guard, if the operation only writes registers. For other operations the guard is reported as a separate step
        /// of kind [`OperationKind::Decide`].
        pub guard: Option<Guard<'a>>,
        values: &'a dyn Fn(usize, usize) -> u64,
        previous: &'a dyn Fn(usize, usize) -> u64,
        compute: Option<Compute<'a>>,
        combine: &'a dyn Fn(usize, &[u64; 32]) -> Option<u64>,
    }
}

/// The guard of an operation.
#[derive(Clone, Copy)]
pub struct Guard<'a> {
    /// The predicate register.
    pub slot: u32,
    /// The lanes that reach the operation, whether or not they execute it.
    pub lanes: LaneSet<'a>,
}

/// Computes the results of an operation from the values of its uses.
pub type Compute<'a> = &'a dyn Fn(&[u64]) -> [u64; 2];

impl OperationEvent<'_> {
    /// The value of use `index` in a lane. 0 if there is no such use.
    pub fn value(&self, index: usize, lane: usize) -> u64 {
        (self.values)(index, lane)
    }

    /// The old value of entry `index` of `defs` in a lane.
    pub fn previous(&self, index: usize, lane: usize) -> u64 {
        (self.previous)(index, lane)
    }

    /// The result of a vote or reduction in a lane if the lanes of its warp had these values. `None` for other operations.
    pub fn combine(&self, lane: usize, values: &[u64; 32]) -> Option<u64> {
        (self.combine)(lane, values)
    }

    /// The results for other values of the uses. `None` if the number of values differs or the operation cannot be evaluated.
    pub fn compute(&self, values: &[u64]) -> Option<[u64; 2]> {
        self.compute.filter(|_| values.len() == self.uses.len()).map(|compute| compute(values))
    }
}

event! {
    /// Lanes enter a function.
    #[derive(Clone, Copy)]
    pub struct EnterEvent<'a> {
        /// As in [`OperationEvent`].
        pub gang: usize,
        /// As in [`OperationEvent`].
        pub window: u32,
        /// Whether the function is the kernel: a block begins.
        pub is_kernel: bool,
        /// The function in the PTX source.
        pub span: Span,
        /// Registers that may be read before they are written, with their names. Parameters are not included.
        pub unwritten: &'a [(u32, &'a str)],
        /// The lanes that enter.
        pub lanes: LaneSet<'a>,
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("slot", &self.slot).field("lanes", &self.lanes).finish_non_exhaustive()
    }
}

impl fmt::Debug for OperationEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationEvent")
            .field("span", &self.span)
            .field("kind", &self.kind)
            .field("uses", &self.uses)
            .field("defs", &self.defs)
            .field("lanes", &self.lanes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for EnterEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterEvent")
            .field("span", &self.span)
            .field("is_kernel", &self.is_kernel)
            .field("lanes", &self.lanes)
            .finish_non_exhaustive()
    }
}
