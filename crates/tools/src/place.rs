//! Places in the source that access memory, and the extents of the grid and its clusters.

use diag::Span;
use isa::Space;
use machine::{AccessKind, Scope, Semantics};

use crate::waits::Work;

/// An instruction's access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub span: Span,
    pub kind: AccessKind,
    pub semantics: Semantics,
    pub space: Space,
    pub bytes: u64,
    /// The asynchronous work that makes the access; `None` for the thread itself.
    pub work: Option<Work>,
    /// The instruction signals an mbarrier object when its asynchronous work is done.
    pub signal: bool,
    /// It is an atomic operation that returns nothing (`red`).
    pub reduction: bool,
}

impl Place {
    /// Whether the access is strong, so that it can synchronize with other threads.
    pub fn is_strong(&self) -> bool {
        self.semantics.is_strong()
    }

    /// Whether the two accesses are morally strong at this scope (PTX ISA 8.6): at the same time, neither is torn or lost.
    pub fn is_strong_with(&self, other: &Place, scope: Scope) -> bool {
        if (self.signal || other.signal) && self.is_of_object() && other.is_of_object() {
            // The hardware makes these accesses, whatever scope a waiting thread names.
            return self.is_strong() && other.is_strong();
        }
        let reaches = |place: &Place| scope == Scope::Cta || place.semantics.scope >= Some(scope);
        self.is_strong() && other.is_strong() && reaches(self) && reaches(other) && self.bytes == other.bytes
    }

    /// Whether it is an operation on an mbarrier object.
    pub fn is_of_object(&self) -> bool {
        matches!(self.kind, AccessKind::Mbarrier | AccessKind::MbarrierTest)
    }

    /// Whether it is `mbarrier.init` or `mbarrier.inval`.
    pub fn makes_or_ends_object(&self) -> bool {
        self.kind == AccessKind::Mbarrier && !self.is_strong()
    }

    /// Whether the thread itself writes, through the generic proxy.
    pub fn is_generic_write(&self) -> bool {
        matches!(self.kind, AccessKind::Store | AccessKind::Atomic | AccessKind::MatrixStore)
    }

    /// Whether it is a read through the async proxy.
    pub fn is_async_read(&self) -> bool {
        matches!(self.kind, AccessKind::CopyRead | AccessKind::MatrixLoad)
            && self.work.is_some_and(Work::is_of_async_proxy)
    }

    /// The access in words.
    pub fn access(&self) -> &'static str {
        match (self.kind, self.is_strong()) {
            (AccessKind::MatrixLoad, _) if self.work.is_some() => "reads a factor of a product",
            (AccessKind::Load, false) => "reads",
            (AccessKind::Load, true) => "reads (strong)",
            (AccessKind::Store, false) => "writes",
            (AccessKind::Store, true) => "writes (strong)",
            (AccessKind::Atomic | AccessKind::TexelAtomic, _) => "reads and writes atomically",
            (AccessKind::CopyRead, _) => "copies from here",
            (AccessKind::CopyWrite, _) => "copies to here",
            (AccessKind::CopyReduce, _) => "reduces into",
            (AccessKind::Mbarrier, false) => "makes or ends an mbarrier object",
            (AccessKind::Mbarrier | AccessKind::MbarrierTest, _) => "uses an mbarrier object",
            (AccessKind::MatrixLoad, _) => "reads rows of a matrix",
            (AccessKind::MatrixStore, _) => "writes rows of a matrix",
            (AccessKind::TexelLoad, _) => "reads texels",
            (AccessKind::TexelStore, _) => "writes texels",
        }
    }
}

/// The dimensions of the grid in blocks, and of a cluster in blocks.
#[derive(Clone, Copy)]
pub(crate) struct Extents {
    pub grid: [u32; 3],
    pub cluster: [u32; 3],
}

impl Default for Extents {
    fn default() -> Extents {
        Extents { grid: [1; 3], cluster: [1; 3] }
    }
}

impl Extents {
    /// The linear index of a block.
    pub fn index(&self, [x, y, z]: [u32; 3]) -> u32 {
        let [nx, ny, _] = self.grid.map(|n| n.max(1));
        x.wrapping_add(nx.wrapping_mul(y.wrapping_add(ny.wrapping_mul(z))))
    }

    /// `%ctaid` of a block.
    pub fn ctaid(&self, index: u32) -> [u32; 3] {
        let [nx, ny, _] = self.grid.map(|n| n.max(1));
        [index % nx, index / nx % ny, index / nx / ny]
    }

    /// The linear index of the first block of the cluster of a block.
    pub fn cluster_of(&self, ctaid: [u32; 3]) -> u32 {
        self.index(std::array::from_fn(|axis| ctaid[axis] - ctaid[axis] % self.cluster[axis].max(1)))
    }

    /// The smallest scope that includes the threads of both blocks.
    pub fn scope(&self, one: u32, other: u32) -> Scope {
        match () {
            () if one == other => Scope::Cta,
            () if self.cluster == [1; 3] => Scope::Gpu,
            () if self.cluster_of(self.ctaid(one)) == self.cluster_of(self.ctaid(other)) => Scope::Cluster,
            () => Scope::Gpu,
        }
    }
}
