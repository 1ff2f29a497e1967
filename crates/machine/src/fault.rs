//! What can go wrong in a running kernel.

use std::fmt;

use diag::{Code, Span};
use isa::Space;

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// An access that is not within one allocation.
    OutOfBounds,
    /// An access to a freed allocation.
    UseAfterFree,
    /// An access to an allocation that is kept from the launch: memory of another device
    /// ([`LaunchConfig::withheld`](crate::LaunchConfig::withheld)).
    PeerAccess,
    /// An access to the shared memory of a block of the cluster that has ended.
    ClusterTarget,
    /// An address that is not a multiple of the access size.
    Misaligned,
    /// A store to memory that kernels may not write (`.const`, kernel parameters).
    ReadOnly,
    /// An address in a space that the instruction does not support: shared memory for `atom` and `red` on vectors.
    AddressSpace,
    /// `free` of something that is not the start of a live allocation.
    InvalidFree,
    /// The `trap` instruction.
    Trap,
    /// An `assert` of the kernel failed (`__assertfail`).
    Assertion,
    /// All remaining threads of a block wait, and no other block can wake them.
    Deadlock,
    /// A barrier number that does not exist.
    Barrier,
    /// A warp-level instruction without one of the threads that its member mask names.
    MissingWarpLanes,
    /// An mbarrier object that does not exist, or that is used against its rules.
    Mbarrier,
    /// The calling thread is not in the member mask of a warp-level instruction.
    NotInMemberMask,
    /// A call of a function without a body.
    UndefinedFunction,
    /// A `printf` that asks for more text than one call may print ([`printf::MOST`](crate::printf::MOST)).
    PrintfTooLong,
    /// An indirect call or branch to an invalid target.
    InvalidTarget,
    /// A handle that is not of a live texture, sampler or surface, or that does not fit the instruction.
    InvalidHandle,
    /// A tensor map that is invalid or does not fit the instruction.
    TensorMap,
    /// Tensor memory that is not allocated, or an instruction that is used against the rules of tensor memory.
    TensorMemory,
    /// Calls nest so deeply that a thread runs out of local memory.
    StackOverflow,
    /// The instruction is known and checked, but no engine executes it.
    Unsupported,
    /// [`LaunchConfig::observer`](crate::LaunchConfig::observer) ended the launch.
    Stopped,
}

impl FaultKind {
    /// Stable name for programs.
    pub fn code(self) -> &'static str {
        Code::from(self).name()
    }
}

/// The kind of fault for a misuse of tensor memory.
impl From<sem::tensor_memory::Misuse> for FaultKind {
    fn from(misuse: sem::tensor_memory::Misuse) -> FaultKind {
        match misuse {
            sem::tensor_memory::Misuse::Unsupported(_) => FaultKind::Unsupported,
            _ => FaultKind::TensorMemory,
        }
    }
}

/// The kind of diagnostic that reports the fault.
impl From<FaultKind> for Code {
    fn from(kind: FaultKind) -> Code {
        match kind {
            FaultKind::OutOfBounds => Code::OutOfBounds,
            FaultKind::UseAfterFree => Code::UseAfterFree,
            FaultKind::PeerAccess => Code::PeerAccess,
            FaultKind::ClusterTarget => Code::ClusterTarget,
            FaultKind::Misaligned => Code::Misaligned,
            FaultKind::ReadOnly => Code::ReadOnly,
            FaultKind::AddressSpace => Code::AddressSpace,
            FaultKind::InvalidFree => Code::InvalidFree,
            FaultKind::Trap => Code::Trap,
            FaultKind::Assertion => Code::Assertion,
            FaultKind::Deadlock => Code::Deadlock,
            FaultKind::Barrier => Code::Barrier,
            FaultKind::MissingWarpLanes => Code::MissingWarpLanes,
            FaultKind::Mbarrier => Code::Mbarrier,
            FaultKind::NotInMemberMask => Code::NotInMemberMask,
            FaultKind::UndefinedFunction => Code::UndefinedFunction,
            FaultKind::PrintfTooLong => Code::PrintfTooLong,
            FaultKind::InvalidTarget => Code::InvalidTarget,
            FaultKind::InvalidHandle => Code::InvalidHandle,
            FaultKind::TensorMap => Code::TensorMap,
            FaultKind::TensorMemory => Code::TensorMemory,
            FaultKind::StackOverflow => Code::StackOverflow,
            FaultKind::Unsupported => Code::Unsupported,
            FaultKind::Stopped => Code::Stopped,
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultKind::OutOfBounds => "access out of bounds",
            FaultKind::UseAfterFree => "use after free",
            FaultKind::PeerAccess => "access to memory of another device",
            FaultKind::ClusterTarget => "cluster target block not present",
            FaultKind::Misaligned => "misaligned access",
            FaultKind::ReadOnly => "store to read-only memory",
            FaultKind::AddressSpace => "address in a space that the instruction does not reach",
            FaultKind::InvalidFree => "invalid free",
            FaultKind::Trap => "trap instruction executed",
            FaultKind::Assertion => "assertion failed",
            FaultKind::Deadlock => "deadlock",
            FaultKind::Barrier => "barrier that does not exist",
            FaultKind::MissingWarpLanes => "warp-level instruction without all threads of its member mask",
            FaultKind::Mbarrier => "misuse of an mbarrier object",
            FaultKind::NotInMemberMask => {
                "thread executes a warp-level instruction whose member mask leaves it out"
            }
            FaultKind::UndefinedFunction => "call of a function without a body",
            FaultKind::PrintfTooLong => "printf of too much text",
            FaultKind::InvalidTarget => "invalid call or branch target",
            FaultKind::InvalidHandle => "invalid handle of a texture, sampler or surface",
            FaultKind::TensorMap => "invalid tensor map",
            FaultKind::TensorMemory => "misuse of tensor memory",
            FaultKind::StackOverflow => "stack overflow",
            FaultKind::Unsupported => "instruction not supported by this engine",
            FaultKind::Stopped => "stopped by an observer",
        })
    }
}

/// A memory access that faulted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Address as the instruction computed it.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Space of the access; [`Space::Generic`] for generic addresses.
    pub space: Space,
    /// Whether it writes (stores and atomics).
    pub write: bool,
    /// The nearest allocation or variable, in words: "8 bytes past the end of argument 2 (`out`), 4096 bytes at 0x1000000000".
    pub nearest: Option<String>,
}

/// A fault: its kind, place and thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// Name of the kernel that was launched.
    pub kernel: String,
    /// The instruction, in the PTX source.
    pub span: Span,
    /// `%ctaid` of the block.
    pub block: [u32; 3],
    /// `%tid` of the (lowest) thread.
    pub thread: [u32; 3],
    /// The access, if the fault is about one.
    pub access: Option<Access>,
    /// More facts: which threads wait where, which lanes are missing.
    pub notes: Vec<(String, Option<Span>)>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(
            f,
            "{} in kernel `{}`, block ({bx},{by},{bz}), thread ({tx},{ty},{tz})",
            self.kind, self.kernel
        )?;
        if let Some(access) = &self.access {
            let verb = if access.write { "write" } else { "read" };
            write!(f, ": {verb} of {} bytes at {:#x}", access.bytes, access.address)?;
            if let Some(nearest) = &access.nearest {
                write!(f, ", {nearest}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
