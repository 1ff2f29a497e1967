//! A litmus test: a few threads that access a few locations.

/// The memory order of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `.weak`
    Weak,
    /// `.volatile`, which has system scope.
    Volatile,
    /// `.relaxed`
    Relaxed,
    /// `.acquire`
    Acquire,
    /// `.release`
    Release,
    /// `.acq_rel`, for `atom` only
    AcquireRelease,
}

impl Order {
    /// Whether a load with this order is an acquire, including the read of an `atom`.
    pub fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcquireRelease)
    }

    /// Whether a store with this order is a release, including the write of an `atom`.
    pub fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcquireRelease)
    }
}

/// The scope of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A block.
    Cta,
    /// A cluster.
    Cluster,
    /// A grid.
    Gpu,
    /// All threads, including the host's.
    Sys,
}

impl Scope {
    /// All scopes, the narrowest first.
    pub const ALL: [Scope; 4] = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];

    /// The modifier in PTX.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Cta => "cta",
            Scope::Cluster => "cluster",
            Scope::Gpu => "gpu",
            Scope::Sys => "sys",
        }
    }
}

/// The smallest unit that contains all threads of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// Lanes of a warp.
    Lanes,
    /// Warps of a block.
    Warps,
    /// Blocks of a cluster.
    Blocks,
    /// Clusters of a grid, which run on several host threads.
    Clusters,
}

impl Placement {
    /// All placements, the closest first.
    pub const ALL: [Placement; 4] =
        [Placement::Lanes, Placement::Warps, Placement::Blocks, Placement::Clusters];

    /// Whether the scope contains all threads of the test.
    pub fn within(self, scope: Scope) -> bool {
        match self {
            Placement::Lanes | Placement::Warps => true,
            Placement::Blocks => scope >= Scope::Cluster,
            Placement::Clusters => scope >= Scope::Gpu,
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Lanes => "lanes",
            Placement::Warps => "warps",
            Placement::Blocks => "blocks",
            Placement::Clusters => "clusters",
        }
    }
}

/// `fence`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// `.acq_rel`
    AcquireRelease,
    /// `.sc`
    Sequential,
}

impl Fence {
    /// The modifier in PTX.
    pub fn name(self) -> &'static str {
        match self {
            Fence::AcquireRelease => "acq_rel",
            Fence::Sequential => "sc",
        }
    }
}

/// An instruction of a thread. Locations and registers are numbers. A test writes each register only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Loads from a location.
    #[expect(missing_docs, reason = "their names say it")]
    Load { place: usize, register: usize, order: Order },
    /// Stores a value, which is computed with a register if it depends on one.
    #[expect(missing_docs, reason = "their names say it")]
    Store { place: usize, value: u8, order: Order, depends: Option<usize> },
    /// `atom.exch`: stores a value and returns the previous one.
    #[expect(missing_docs, reason = "their names say it")]
    Exchange { place: usize, value: u8, register: usize, order: Order },
    /// A fence with the test's scope.
    Fence(Fence),
}

/// The threads of a test, and their placement.
#[derive(Clone, Debug)]
pub struct Program {
    /// The instructions of each thread.
    pub threads: Vec<Vec<Instruction>>,
    /// The scope of all strong accesses and fences.
    pub scope: Scope,
    /// The placement of the threads.
    pub placement: Placement,
}

impl Program {
    fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.threads.iter().flatten()
    }

    /// Number of locations.
    pub fn places(&self) -> usize {
        self.instructions().filter_map(|i| i.place()).max().map_or(0, |last| last + 1)
    }

    /// Number of registers.
    pub fn registers(&self) -> usize {
        self.instructions().filter_map(|i| i.register()).max().map_or(0, |last| last + 1)
    }

    /// The location that a register was loaded from, and the order of the load.
    pub fn load_of(&self, register: usize) -> Option<(usize, Order)> {
        self.instructions()
            .find(|i| i.register() == Some(register))
            .and_then(|i| Some((i.place()?, i.order()?)))
    }

    /// Whether all stores to a location are strong.
    pub fn is_stored_strongly(&self, place: usize) -> bool {
        let mut stores = self
            .instructions()
            .filter(|i| i.place() == Some(place) && !matches!(i, Instruction::Load { .. }));
        stores.all(|store| store.order() != Some(Order::Weak))
    }

    /// Whether it has `atom`s.
    pub fn has_atomics(&self) -> bool {
        self.instructions().any(|i| matches!(i, Instruction::Exchange { .. }))
    }
}

impl Instruction {
    /// The location that it accesses.
    pub fn place(&self) -> Option<usize> {
        match *self {
            Instruction::Load { place, .. }
            | Instruction::Store { place, .. }
            | Instruction::Exchange { place, .. } => Some(place),
            Instruction::Fence(_) => None,
        }
    }

    /// The register that receives the loaded value.
    pub fn register(&self) -> Option<usize> {
        match *self {
            Instruction::Load { register, .. } | Instruction::Exchange { register, .. } => Some(register),
            Instruction::Store { .. } | Instruction::Fence(_) => None,
        }
    }

    /// The memory order of the access.
    pub fn order(&self) -> Option<Order> {
        match *self {
            Instruction::Load { order, .. }
            | Instruction::Store { order, .. }
            | Instruction::Exchange { order, .. } => Some(order),
            Instruction::Fence(_) => None,
        }
    }
}
