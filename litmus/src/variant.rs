//! The parameters of a test run: memory, access width, and the assignment of instances to threads.

use crate::program::{Placement, Program};

/// A test that can be run.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The name of the test.
    pub name: String,
    /// The name of its shape.
    pub shape: &'static str,
    /// The instructions of its threads.
    pub program: Program,
    /// The memory of its locations.
    pub space: Space,
    /// The width of its accesses.
    pub width: Width,
    /// The assignment of instances to threads.
    pub pattern: Pattern,
    /// The host path.
    pub path: ptxvm::HostPath,
}

/// Where the locations of a test are, and how they are addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Global memory.
    Global,
    /// Global memory at a generic address.
    GenericGlobal,
    /// Shared memory of the block.
    Shared,
    /// Shared memory at a generic address.
    GenericShared,
    /// Shared memory of the first block of a cluster.
    SharedCluster,
    /// The same at a generic address.
    GenericCluster,
}

impl Space {
    /// The spaces that all threads of a test can access.
    pub fn of(placement: Placement) -> &'static [Space] {
        use Space::{GenericCluster, GenericGlobal, GenericShared, Global, Shared, SharedCluster};
        match placement {
            Placement::Lanes | Placement::Warps => {
                &[Global, GenericGlobal, Shared, GenericShared, SharedCluster, GenericCluster]
            }
            Placement::Blocks => &[Global, GenericGlobal, SharedCluster, GenericCluster],
            Placement::Clusters => &[Global, GenericGlobal],
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::GenericGlobal => "generic global",
            Space::Shared => "shared",
            Space::GenericShared => "generic shared",
            Space::SharedCluster => "shared::cluster",
            Space::GenericCluster => "generic shared::cluster",
        }
    }

    /// The state space suffix of instructions.
    pub fn suffix(self) -> &'static str {
        match self {
            Space::Global => ".global",
            Space::Shared => ".shared",
            Space::SharedCluster => ".shared::cluster",
            Space::GenericGlobal | Space::GenericShared | Space::GenericCluster => "",
        }
    }

    /// Whether it is shared memory.
    pub fn is_shared(self) -> bool {
        !matches!(self, Space::Global | Space::GenericGlobal)
    }
}

/// The elements of an access, and the bytes of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// 1 for scalars.
    pub elements: usize,
    /// 1 to 16.
    pub bytes: usize,
}

impl Width {
    const fn new(elements: usize, bytes: usize) -> Width {
        Width { elements, bytes }
    }

    /// The widths of accesses in a space, or of `atom.exch`.
    pub fn of(space: Space, atomics: bool) -> &'static [Width] {
        static ALL: [Width; 14] = [
            Width::new(1, 1),
            Width::new(1, 2),
            Width::new(1, 4),
            Width::new(1, 8),
            Width::new(1, 16),
            Width::new(2, 1),
            Width::new(4, 1),
            Width::new(2, 2),
            Width::new(4, 2),
            Width::new(2, 4),
            Width::new(4, 4),
            Width::new(2, 8),
            // 32 bytes: in global memory only, as two accesses.
            Width::new(8, 4),
            Width::new(4, 8),
        ];
        match (space, atomics) {
            (_, true) => ALL.split_at(2).1.split_at(3).0,
            (Space::Global, false) => &ALL,
            (_, false) => ALL.split_at(12).0,
        }
    }

    /// Bytes of the whole access.
    pub fn all(self) -> usize {
        self.elements * self.bytes
    }

    /// `.v2.b64`
    pub fn name(self) -> String {
        let vector = if self.elements > 1 { format!(".v{}", self.elements) } else { String::new() };
        format!("{vector}.b{}", 8 * self.bytes)
    }
}

/// Which thread has which instance of a test. All threads of a block have the same role, each in its own instance, so
/// that they run in the same gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// In order.
    Rows,
    /// Every second role has its instances in reverse order.
    Turned,
    /// In order, with gaps.
    Spread,
    /// In a different permutation for each role.
    Scattered,
    /// A single thread for each role.
    One,
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Pattern; 5] =
        [Pattern::Rows, Pattern::Turned, Pattern::Spread, Pattern::Scattered, Pattern::One];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Rows => "rows",
            Pattern::Turned => "turned",
            Pattern::Spread => "spread",
            Pattern::Scattered => "scattered",
            Pattern::One => "one",
        }
    }
}
