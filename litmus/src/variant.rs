//! What a test is run with: memory, width of its accesses, and which thread has which instance of it.

use crate::program::{Placement, Program};

/// A test that can be run.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What it is.
    pub name: String,
    /// The name of its shape.
    pub shape: &'static str,
    /// What its threads do.
    pub program: Program,
    /// Where its places are.
    pub space: Space,
    /// How wide its accesses are.
    pub width: Width,
    /// Which thread has which instance.
    pub pattern: Pattern,
    /// The host's instructions.
    pub path: ptxvm::HostPath,
}

/// Where the places of a test are, and how they are addressed.
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
    /// Those that the threads of a test share.
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

    /// As reports call it.
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

    /// What instructions name.
    pub fn suffix(self) -> &'static str {
        match self {
            Space::Global => ".global",
            Space::Shared => ".shared",
            Space::SharedCluster => ".shared::cluster",
            Space::GenericGlobal | Space::GenericShared | Space::GenericCluster => "",
        }
    }

    /// It is memory of a block.
    pub fn is_shared(self) -> bool {
        !matches!(self, Space::Global | Space::GenericGlobal)
    }
}

/// Elements of an access, and bytes of each.
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

    /// Those that accesses of a space have, or `atom.exch`.
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
            // 32 bytes: of global memory only, and two accesses.
            Width::new(8, 4),
            Width::new(4, 8),
        ];
        match (space, atomics) {
            (_, true) => ALL.split_at(2).1.split_at(3).0,
            (Space::Global, false) => &ALL,
            (_, false) => ALL.split_at(12).0,
        }
    }

    /// Bytes of the whole.
    pub fn all(self) -> usize {
        self.elements * self.bytes
    }

    /// `.v2.b64`
    pub fn name(self) -> String {
        let vector = if self.elements > 1 { format!(".v{}", self.elements) } else { String::new() };
        format!("{vector}.b{}", 8 * self.bytes)
    }
}

/// Which thread has which instance of a test. All threads of a block have the same role in one instance each, so that they run side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One after the other.
    Rows,
    /// Every second role has them from the last to the first.
    Turned,
    /// With gaps.
    Spread,
    /// In an order of its own for each role.
    Scattered,
    /// A single thread for each role.
    One,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Pattern; 5] =
        [Pattern::Rows, Pattern::Turned, Pattern::Spread, Pattern::Scattered, Pattern::One];

    /// As reports call it.
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
