//! Operations that access memory, other than those on matrices and textures.
//!
//! Each is a type with all that is to say about it: its operands in any representation (`map`), its accesses, and how it
//! follows from an instruction (`impl Lowering`).

mod access;
mod atomic;
mod copy;
mod load_store;
mod mbarrier;

use smallvec::SmallVec;

use crate::op::{Address, OpKind, Slot};
use crate::operands::MapOperands;

pub use access::*;
pub use atomic::*;
pub use copy::*;
pub use load_store::*;
pub use mbarrier::*;

/// The accesses of an operation, reads before writes.
pub type Accesses<S = Slot, A = Address> = SmallVec<[Access<S, A>; 3]>;

// `$dollar` is the `$` of the inner macro.
macro_rules! memory_operations {
    ($dollar:tt $($name:ident($operands:ident<$($of:ident),*>),)*) => {
        /// An operation on memory other than a load or store, with slots `S` and addresses `A`.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)] // the types of the operands are documented
        pub enum MemoryOp<S = Slot, A = Address> {
            $($name($operands<$($of),*>),)*
        }

        impl<S: Copy, A: Copy> MemoryOp<S, A> {
            /// The operation with other operands.
            pub fn map<M: MapOperands<S, A>>(&self, to: &mut M) -> MemoryOp<M::Slot, M::Address> {
                match self {
                    $(MemoryOp::$name(op) => MemoryOp::$name(op.map(to)),)*
                }
            }

            /// Its accesses, reads before writes.
            pub fn accesses(&self) -> Accesses<S, A> {
                match self {
                    $(MemoryOp::$name(op) => op.accesses(),)*
                }
            }
        }

        /// Evaluates an expression for a [`MemoryOp`], in which the operation has its own type.
        #[macro_export]
        macro_rules! with_memory_operation {
            ($dollar value:expr, |$dollar op:ident| $dollar then:expr) => {
                match $dollar value {
                    $($dollar crate::MemoryOp::$name($dollar op) => $dollar then,)*
                }
            };
        }

        $(impl From<$operands> for OpKind {
            fn from(op: $operands) -> OpKind {
                OpKind::Memory(Box::new(MemoryOp::$name(op)))
            }
        })*
    };
}

memory_operations! { $
    Atomic(Atomic<S, A>),
    AtomicWide(AtomicWide<S, A>),
    CheckAlignment(CheckAlignment<A>),
    CopyAsync(CopyAsync<S, A>),
    CopyBulk(CopyBulk<S, A>),
    CopyTensor(TensorOp<S, A>),
    TensorMapReplace(TensorMapReplace<S, A>),
    TensorMapCopy(TensorMapCopy<A>),
    TryCancel(TryCancel<A>),
    StoreBulk(StoreBulk<S, A>),
    StoreAsync(StoreAsync<S, A>),
    Mbarrier(Mbarrier<S, A>),
}
