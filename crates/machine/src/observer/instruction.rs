//! Events of single instructions.

use diag::Span;
use isa::{Space, Type};

event! {
    /// A thread has executed an instruction, or has skipped it because its guard does not hold.
    ///
    /// Of a `call`, the event comes before the function's first instruction and has no results: the function's `ret`
    /// writes them.
    #[derive(Clone, Debug)]
    pub struct InstructionEvent<'a> {
        /// The instruction, in the PTX source.
        pub span: Span,
        /// `%ctaid` of the thread's block.
        pub block: [u32; 3],
        /// Linear index of the thread in its block.
        pub thread: u32,
        /// Whether its guard holds, or it has none.
        pub executes: bool,
        /// The values that it read, in the order in which they are written: guard, then operands. They are without the
        /// register of the address in `address`.
        pub reads: &'a [OperandValue<'a>],
        /// The registers that it wrote.
        pub writes: &'a [OperandValue<'a>],
        /// The address of its memory operand, in the space that it resolves to, if it has exactly one.
        pub address: Option<(Space, u64)>,
        /// Whether its results come from memory.
        pub reads_memory: bool,
        /// Whether its results depend on registers of other lanes of the warp.
        pub reads_lanes: bool,
        /// Whether it writes to memory what it reads from registers.
        pub writes_memory: bool,
    }
}

event! {
    /// The value of a scalar operand, or of one element of a vector operand.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct OperandValue<'a> {
        /// The name of the register or special register as written; empty for a literal or the address of a symbol.
        pub name: &'a str,
        /// The type by which the instruction reads or writes it. If the instruction has none, or one of another width
        /// than the register, the register's declared type.
        pub ty: Type,
        /// The bits, zero-extended.
        pub bits: u128,
    }
}
