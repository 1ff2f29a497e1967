//! How strong an access is: the order and the scope that the instruction asks for (PTX ISA 8.4 and 8.5, "Operation
//! types" and "Scope").
//!
//! An instruction without them gets the manual's default. After lowering, every load, store, atomic operation, fence
//! and mbarrier operation has its [`Semantics`]. Narrowest test: `tests/semantics.rs`.

use std::fmt;

use isa::{Mod, Opcode, Picks};

/// The order of an access or a fence (`.sem` of the manual).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// No order with other threads; the order of an unqualified access.
    Weak,
    /// `.relaxed` at system scope, and the access is not optimized away (9.7.9.8).
    Volatile,
    /// Strong, but does not order other accesses.
    Relaxed,
    /// Later accesses stay after it.
    Acquire,
    /// Earlier accesses stay before it.
    Release,
    /// Acquire and release.
    AcquireRelease,
    /// Acquire and release, and all fences of this order (`.sc`) have a single total order for all threads.
    Sequential,
}

impl Order {
    /// Later accesses stay after it.
    pub fn acquires(self) -> bool {
        match self {
            Order::Acquire | Order::AcquireRelease | Order::Sequential => true,
            Order::Weak | Order::Volatile | Order::Relaxed | Order::Release => false,
        }
    }

    /// Earlier accesses stay before it.
    pub fn releases(self) -> bool {
        match self {
            Order::Release | Order::AcquireRelease | Order::Sequential => true,
            Order::Weak | Order::Volatile | Order::Relaxed | Order::Acquire => false,
        }
    }

    /// The manual's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Order::Weak => "weak",
            Order::Volatile => "volatile",
            Order::Relaxed => "relaxed",
            Order::Acquire => "acquire",
            Order::Release => "release",
            Order::AcquireRelease => "acq_rel",
            Order::Sequential => "sc",
        }
    }

    fn written(modifier: Mod) -> Option<Order> {
        Some(match modifier {
            Mod::Weak => Order::Weak,
            Mod::Volatile => Order::Volatile,
            Mod::Relaxed => Order::Relaxed,
            Mod::Acquire => Order::Acquire,
            Mod::Release => Order::Release,
            Mod::AcqRel => Order::AcquireRelease,
            Mod::Sc => Order::Sequential,
            _ => return None,
        })
    }
}

/// The threads among which an order holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The CTA's threads.
    Cta,
    /// The cluster's threads.
    Cluster,
    /// The GPU's threads.
    Gpu,
    /// All threads, including the host's and those of other GPUs.
    Sys,
}

impl Scope {
    /// The manual's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Cta => "cta",
            Scope::Cluster => "cluster",
            Scope::Gpu => "gpu",
            Scope::Sys => "sys",
        }
    }

    fn written(modifier: Mod) -> Option<Scope> {
        Some(match modifier {
            Mod::Cta => Scope::Cta,
            Mod::Cluster => Scope::Cluster,
            // `membar.gl`
            Mod::Gpu | Mod::Gl => Scope::Gpu,
            Mod::Sys => Scope::Sys,
            _ => return None,
        })
    }
}

/// Order and scope of an access or a fence.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Semantics {
    /// The order.
    pub order: Order,
    /// The scope. `None` for weak accesses, and for proxy fences that name no scope.
    pub scope: Option<Scope>,
}

impl Semantics {
    /// No order with other threads.
    pub const WEAK: Semantics = Semantics { order: Order::Weak, scope: None };

    /// This order among these threads.
    pub const fn new(order: Order, scope: Scope) -> Semantics {
        Semantics { order, scope: Some(scope) }
    }

    /// Whether it can synchronize or communicate with other threads without a data race.
    pub fn is_strong(self) -> bool {
        self.order != Order::Weak
    }

    /// Of `ld` and `st`: weak by default; `.volatile` has system scope (9.7.9.8, 9.7.9.11).
    pub(crate) fn of_access(picks: &Picks) -> Semantics {
        match written(picks) {
            (Some(Order::Volatile), _) => Semantics::new(Order::Volatile, Scope::Sys),
            (Some(order), scope) => Semantics { order, scope },
            (None, _) => Semantics::WEAK,
        }
    }

    /// Of `atom`, `red` and `multimem.red`: by default `.relaxed` and `.gpu`, or `.sys` for `multimem.red` (9.7.13.6,
    /// 9.7.13.7, 9.7.9.14).
    pub(crate) fn of_atomic(opcode: Opcode, picks: &Picks) -> Semantics {
        let (order, scope) = written(picks);
        let default = if opcode == Opcode::Multimem { Scope::Sys } else { Scope::Gpu };
        Semantics::new(order.unwrap_or(Order::Relaxed), scope.unwrap_or(default))
    }

    /// Of `fence`, which is `.acq_rel` by default, and of `membar`, which means `fence.sc` (9.7.13.4).
    pub(crate) fn of_fence(opcode: Opcode, picks: &Picks) -> Semantics {
        let (order, scope) = written(picks);
        let default = if opcode == Opcode::Membar { Order::Sequential } else { Order::AcquireRelease };
        Semantics { order: order.unwrap_or(default), scope }
    }

    /// Of an operation on an mbarrier object, with the given default order; the default scope is `.cta` (9.7.13.15).
    pub(crate) fn of_mbarrier(default: Order, picks: &Picks) -> Semantics {
        if default == Order::Weak {
            return Semantics::WEAK;
        }
        let (order, scope) = written(picks);
        Semantics::new(order.unwrap_or(default), scope.unwrap_or(Scope::Cta))
    }
}

/// The order and the scope that an instruction names.
fn written(picks: &Picks) -> (Option<Order>, Option<Scope>) {
    let mods = || picks.mods().iter().copied();
    (mods().find_map(Order::written), mods().find_map(Scope::written))
}

/// `weak`, `acquire.gpu`
impl fmt::Debug for Semantics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.order.name())?;
        self.scope.map_or(Ok(()), |scope| write!(f, ".{}", scope.name()))
    }
}
