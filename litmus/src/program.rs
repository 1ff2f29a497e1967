//! A litmus test: a few threads that access a few places, and what they are asked afterwards.

/// How an access is ordered.
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
    /// `.acq_rel`, of `atom`
    AcquireRelease,
}

impl Order {
    /// A load is an acquire, the read of an `atom` too.
    pub fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcquireRelease)
    }

    /// A store is a release, the write of an `atom` too.
    pub fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcquireRelease)
    }
}

/// Among whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A block.
    Cta,
    /// A cluster.
    Cluster,
    /// A grid.
    Gpu,
    /// All threads, those of the host too.
    Sys,
}

impl Scope {
    /// All of them, the narrowest first.
    pub const ALL: [Scope; 4] = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Cta => "cta",
            Scope::Cluster => "cluster",
            Scope::Gpu => "gpu",
            Scope::Sys => "sys",
        }
    }
}

/// What the threads of a test have in common: the least that they all lie in.
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
    /// All of them, the closest first.
    pub const ALL: [Placement; 4] =
        [Placement::Lanes, Placement::Warps, Placement::Blocks, Placement::Clusters];

    /// A scope holds all the threads.
    pub fn within(self, scope: Scope) -> bool {
        match self {
            Placement::Lanes | Placement::Warps => true,
            Placement::Blocks => scope >= Scope::Cluster,
            Placement::Clusters => scope >= Scope::Gpu,
        }
    }

    /// As reports call it.
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
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Fence::AcquireRelease => "acq_rel",
            Fence::Sequential => "sc",
        }
    }
}

/// What a thread does. Places and registers are numbers; a register is written once in the whole test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Loads a place.
    #[expect(missing_docs, reason = "their names say it")]
    Load { place: usize, register: usize, order: Order },
    /// Stores a value, which is computed with a register if it depends on one.
    #[expect(missing_docs, reason = "their names say it")]
    Store { place: usize, value: u8, order: Order, depends: Option<usize> },
    /// `atom.exch`: stores a value and returns the one before.
    #[expect(missing_docs, reason = "their names say it")]
    Exchange { place: usize, value: u8, register: usize, order: Order },
    /// Of the scope of the test.
    Fence(Fence),
}

/// The threads of a test, and where they are.
#[derive(Clone, Debug)]
pub struct Program {
    /// What each thread does, one instruction after the other.
    pub threads: Vec<Vec<Instruction>>,
    /// The scope of all strong accesses and fences.
    pub scope: Scope,
    /// Where the threads are.
    pub placement: Placement,
}

impl Program {
    fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.threads.iter().flatten()
    }

    /// Number of places.
    pub fn places(&self) -> usize {
        self.instructions().filter_map(|i| i.place()).max().map_or(0, |last| last + 1)
    }

    /// Number of registers.
    pub fn registers(&self) -> usize {
        self.instructions().filter_map(|i| i.register()).max().map_or(0, |last| last + 1)
    }

    /// Which place a register was loaded from, and how.
    pub fn load_of(&self, register: usize) -> Option<(usize, Order)> {
        self.instructions()
            .find(|i| i.register() == Some(register))
            .and_then(|i| Some((i.place()?, i.order()?)))
    }

    /// All stores to a place are strong.
    pub fn is_stored_strongly(&self, place: usize) -> bool {
        let mut stores = self
            .instructions()
            .filter(|i| i.place() == Some(place) && !matches!(i, Instruction::Load { .. }));
        stores.all(|store| store.order() != Some(Order::Weak))
    }

    /// There are `atom`s in it.
    pub fn has_atomics(&self) -> bool {
        self.instructions().any(|i| matches!(i, Instruction::Exchange { .. }))
    }
}

impl Instruction {
    /// What it accesses.
    pub fn place(&self) -> Option<usize> {
        match *self {
            Instruction::Load { place, .. }
            | Instruction::Store { place, .. }
            | Instruction::Exchange { place, .. } => Some(place),
            Instruction::Fence(_) => None,
        }
    }

    /// Where the loaded value goes.
    pub fn register(&self) -> Option<usize> {
        match *self {
            Instruction::Load { register, .. } | Instruction::Exchange { register, .. } => Some(register),
            Instruction::Store { .. } | Instruction::Fence(_) => None,
        }
    }

    /// How the access is ordered.
    pub fn order(&self) -> Option<Order> {
        match *self {
            Instruction::Load { order, .. }
            | Instruction::Store { order, .. }
            | Instruction::Exchange { order, .. } => Some(order),
            Instruction::Fence(_) => None,
        }
    }
}
