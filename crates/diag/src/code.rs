//! The kinds of diagnostics, for programs.

use std::fmt;

/// Writes the enum and its table of names.
macro_rules! codes {
    ($($(#[doc = $doc:literal])* $variant:ident => $name:literal,)*) => {
        /// The kind of a diagnostic. Its name is stable: the JSON output has it, and the text output prints it after
        /// the severity.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// What it means, in a sentence or two.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Code::$variant => concat!($($doc),*),)*
                }
            }

            /// The name in kebab case: `unknown-symbol`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Code::$variant => $name,)*
                }
            }
        }
    };
}

codes! {
    // Text and grammar.
    /// The file cannot be read.
    UnreadableFile => "unreadable-file",
    /// The file, or something it declares, exceeds a limit.
    FileTooLarge => "file-too-large",
    /// A character that PTX does not have.
    NonAsciiCharacter => "non-ascii-character",
    /// A NUL byte.
    NulByte => "nul-byte",
    /// An unterminated comment.
    UnterminatedComment => "unterminated-comment",
    /// Text that does not parse.
    SyntaxError => "syntax-error",
    /// A construct that is not allowed here.
    Misplaced => "misplaced",
    /// A declaration with several state spaces.
    MultipleStateSpaces => "multiple-state-spaces",
    /// Brackets that nest too deeply.
    NestingTooDeep => "nesting-too-deep",
    /// There are so many syntax errors that the parser stopped.
    TooManyErrors => "too-many-errors",
    /// A directive with more arguments than it takes.
    TooManyArguments => "too-many-arguments",
    // The module.
    /// The file does not begin with `.version`.
    MissingVersion => "missing-version",
    /// `.target` names no architecture.
    MissingTarget => "missing-target",
    /// A `.version` that does not exist.
    UnsupportedVersion => "unsupported-version",
    /// A `.target` that does not exist.
    UnsupportedTarget => "unsupported-target",
    /// Options of `.target` that exclude each other.
    ConflictingTarget => "conflicting-target",
    /// A `.target` that is newer than the module's `.version`.
    TargetTooNew => "target-too-new",
    /// An `.address_size` that is neither 32 nor 64.
    IllegalAddressSize => "illegal-address-size",
    /// A construct that needs a newer `.version`.
    RequiresVersion => "requires-version",
    /// A construct that needs another `.target`.
    RequiresTarget => "requires-target",
    /// A construct that this `.version` no longer has.
    Deprecated => "deprecated",
    // Names.
    /// An undeclared name.
    UnknownSymbol => "unknown-symbol",
    /// A table of branch or call targets that is used before it is declared.
    ForwardReference => "forward-reference",
    /// A second definition of a name.
    DuplicateDefinition => "duplicate-definition",
    /// A second declaration, of another kind.
    InconsistentRedefinition => "inconsistent-redefinition",
    /// A second declaration, with other parameters.
    InconsistentPrototypes => "inconsistent-prototypes",
    /// An `.extern` function with a body.
    ExternDefinition => "extern-definition",
    /// An `.alias` for something that cannot have one.
    IllegalAlias => "illegal-alias",
    /// A linking directive that the declaration cannot have.
    IllegalLinkage => "illegal-linkage",
    /// A declaration in the wrong scope.
    IllegalScope => "illegal-scope",
    // Declarations.
    /// A type that only instructions have, not variables.
    NotADeclaredType => "not-a-declared-type",
    /// A predicate outside the `.reg` state space.
    PredicateVariable => "predicate-variable",
    /// A vector type of more than 128 bits.
    VectorTooLarge => "vector-too-large",
    /// An array of registers.
    RegisterArray => "register-array",
    /// An array without a length.
    IncompleteType => "incomplete-type",
    /// An alignment that is not allowed.
    IllegalAlignment => "illegal-alignment",
    /// A parameter whose state space, type or name parameters cannot have.
    IllegalParameter => "illegal-parameter",
    /// `.ptr` on a parameter of something that is not a kernel.
    MisplacedPtr => "misplaced-ptr",
    /// Several return parameters in `.param` space.
    MultipleReturns => "multiple-returns",
    /// Kernel parameters that are too large in all.
    TooMuchParameterSpace => "too-much-parameter-space",
    /// `.noreturn` on a function that returns a value.
    IllegalNoreturn => "illegal-noreturn",
    /// A zero where a positive number is required.
    NotPositive => "not-positive",
    /// Directives that exclude each other.
    ConflictingDirectives => "conflicting-directives",
    /// A directive that another construct needs is missing.
    MissingDirective => "missing-directive",
    /// A directive without effect.
    IgnoredDirective => "ignored-directive",
    // Initial values and constants.
    /// An initial value on a declaration that cannot have one.
    IllegalInitializer => "illegal-initializer",
    /// An initial value of another type.
    InitializerType => "initializer-type",
    /// An expression that cannot be an initial value.
    InitializerExpression => "initializer-expression",
    /// The address of a variable that has no address before the launch.
    InitializerSpace => "initializer-space",
    /// An initial value that lies too far into its variable.
    InitializerTooLarge => "initializer-too-large",
    /// A mask that does not select exactly one byte.
    IllegalMask => "illegal-mask",
    /// Too many or too few initial values.
    WrongElementCount => "wrong-element-count",
    /// A constant that is too large.
    ConstantOverflow => "constant-overflow",
    /// Integers and floating-point numbers in one operation.
    ConstantTypeMismatch => "constant-type-mismatch",
    /// A constant divided by zero.
    ConstantDivisionByZero => "constant-division-by-zero",
    /// An expression that is not an integer constant, where one is required.
    IntegerConstantExpected => "integer-constant-expected",
    /// A cast to a type that constants do not have.
    UnsupportedCast => "unsupported-cast",
    // Opcodes and modifiers.
    /// An opcode that does not exist.
    UnknownInstruction => "unknown-instruction",
    /// A modifier that does not exist.
    UnknownModifier => "unknown-modifier",
    /// A second modifier of one kind.
    RepeatedModifier => "repeated-modifier",
    /// A modifier that the instruction does not take.
    IllegalModifier => "illegal-modifier",
    /// A required modifier is missing.
    MissingModifier => "missing-modifier",
    /// A comparison operator that the type does not have.
    ComparisonMismatch => "comparison-mismatch",
    /// Types that the instruction does not have.
    InstructionTypes => "instruction-types",
    /// A vector of the wrong size.
    VectorSize => "vector-size",
    /// A cache policy without `.L2::cache_hint`.
    CacheHintMissing => "cache-hint-missing",
    /// A form that ptxas rejects and lenient checking accepts.
    LenientForm => "lenient-form",
    // Operands.
    /// Operands whose number or types the instruction does not take.
    ArgumentsMismatch => "arguments-mismatch",
    /// A guard that is not a predicate.
    PredicateExpected => "predicate-expected",
    /// A predicate destination that is missing, or that the instruction does not have.
    PredicateOutput => "predicate-output",
    /// An integer added to a predicate.
    PredicateSum => "predicate-sum",
    /// A sign on an operand that cannot be negated.
    IllegalNegation => "illegal-negation",
    /// An expression that cannot be an element of a vector.
    IllegalExpression => "illegal-expression",
    /// An operand that ptxvm does not support.
    UnsupportedOperand => "unsupported-operand",
    /// `.target ..., debug` in a file without debug information.
    MissingDebugInformation => "missing-debug-information",
    /// A `.loc` with an unknown file or function.
    UnknownLocation => "unknown-location",
    /// A 32-bit address in a module with 64-bit addresses.
    NarrowAddress => "narrow-address",
    /// More shared or constant memory than the target has.
    TooMuchMemory => "too-much-memory",
    /// A return parameter that is read where no call has written it.
    CallSequence => "call-sequence",
    /// A function or a variable without a definition.
    Unresolved => "unresolved",
    /// A pragma without its number, or with a number that it does not take.
    IllegalPragma => "illegal-pragma",
    /// An index on something that is not an array.
    NotAnArray => "not-an-array",
    /// A component of something that has no components.
    UnknownField => "unknown-field",
    /// A component or selector that does not exist.
    UnknownSelector => "unknown-selector",
    /// A component beyond the end of the vector.
    MissingElement => "missing-element",
    /// A vector of a size that no instruction takes.
    IllegalVectorSize => "illegal-vector-size",
    /// Vector elements of different sizes.
    IncompatibleElements => "incompatible-elements",
    /// A vector without a register, so that its type is unknown.
    UntypedVector => "untyped-vector",
    /// Vector elements of different types.
    UnlikeElements => "unlike-elements",
    /// A vector where a scalar is required.
    VectorOperand => "vector-operand",
    /// A scalar where a vector is required.
    VectorExpected => "vector-expected",
    /// An operand that is not a label, where one is required.
    LabelExpected => "label-expected",
    /// An operand that is not a register, where one is required.
    RegisterExpected => "register-expected",
    /// A destination that is not a register.
    ResultRegister => "result-register",
    /// A destination that is a function.
    FunctionAsResult => "function-as-result",
    /// `_` as the destination of a result that must be kept.
    DiscardedResult => "discarded-result",
    /// `_` as a source operand.
    Sink => "sink",
    /// A destination that must be `_` and is not.
    SinkExpected => "sink-expected",
    /// A special register that the instruction does not read.
    SpecialRegister => "special-register",
    /// A special register as a destination.
    ReadOnlyRegister => "read-only-register",
    /// A selector that the operand does not have.
    VideoSelector => "video-selector",
    /// An operand that is not a texture, sampler or surface.
    HandleExpected => "handle-expected",
    /// An array index of the wrong type among the coordinates of a texture.
    ArrayIndex => "array-index",
    /// An operand that cannot be an address.
    IllegalOperand => "illegal-operand",
    /// A register that cannot hold an address.
    IllegalAddress => "illegal-address",
    /// An immediate address.
    ImmediateAddress => "immediate-address",
    /// An address of another state space.
    SpaceMismatch => "space-mismatch",
    /// A store to an input parameter, or a load from a return parameter.
    ParameterAccess => "parameter-access",
    /// The address of a parameter that has no address.
    ParameterAddress => "parameter-address",
    /// A constant that is out of range.
    OutOfRange => "out-of-range",
    /// A thread count that a barrier does not take.
    ThreadCount => "thread-count",
    // Branches and calls.
    /// A branch target that is not a label.
    IllegalBranchTarget => "illegal-branch-target",
    /// A call target that is not a function.
    IllegalCallTarget => "illegal-call-target",
    /// A call target without a known signature.
    CallPrototypeRequired => "call-prototype-required",
    /// A call with too many or too few arguments.
    CallParameterCount => "call-parameter-count",
    /// An argument that cannot be passed.
    CallArgument => "call-argument",
    /// An argument whose type differs from the parameter's.
    CallArgumentType => "call-argument-type",
    /// An argument whose alignment differs from the parameter's.
    CallArgumentAlignment => "call-argument-alignment",
    // Linking.
    /// Modules with different address sizes.
    AddressSize => "address-size",
    /// A variable that modules declare in different state spaces.
    MemorySpace => "memory-space",
    /// A function that modules declare with different parameters.
    Prototype => "prototype",
    /// A name that several modules define.
    MultipleDefinition => "multiple-definition",
    /// A variable that modules declare with different sizes.
    Size => "size",
    /// A name that no module defines.
    UndefinedReference => "undefined-reference",
    // Machine code.
    /// Machine code that does not parse.
    SassSyntax => "sass-syntax",
    /// An instruction that cannot be encoded.
    Unencodable => "unencodable",
    /// A modifier without a meaning.
    InvalidModifier => "invalid-modifier",
    /// A constant that was rounded.
    Rounded => "rounded",
    /// Two results that have the same destination register.
    SameDestination => "same-destination",
    // Launches.
    /// An instruction that ptxvm does not execute.
    Unsupported => "unsupported",
    /// An observer stopped the launch.
    Stopped => "stopped",
    /// The launch reached its step limit.
    StepLimit => "step-limit",
    // What the tools find (`ptxvm run --tool`).
    /// One thread writes what another reads, and nothing orders the two accesses.
    RaceWriteRead => "race-write-read",
    /// Two threads write to the same memory, and nothing orders the two writes.
    RaceWriteWrite => "race-write-write",
    /// A write-read race whose read value is never used.
    RaceUnusedRead => "race-unused-read",
    /// A write-write race in which both threads write the same value.
    RaceSameValue => "race-same-value",
    /// A race of two strong accesses that are not morally strong, because of their scopes or sizes.
    RaceScope => "race-scope",
    /// A race of an atomic or strong access with a weak access.
    RaceAtomic => "race-atomic",
    /// A weak write and an asynchronous read of the same memory, without a fence between their proxies.
    RaceProxy => "race-proxy",
    /// An access to shared memory of another CTA of the cluster, which may not have started.
    ClusterStart => "cluster-start",
    /// An access to shared memory of another CTA of the cluster, which may have exited.
    ClusterExit => "cluster-exit",
    /// A stream uses memory of another stream's `cuMemAllocAsync`, and nothing orders the use after the allocation.
    StreamUseBeforeAlloc => "stream-use-before-alloc",
    /// A stream uses memory of another stream's `cuMemFreeAsync`, and nothing orders the use before the deallocation.
    StreamUseAfterFree => "stream-use-after-free",
    /// A thread uses the memory of its own asynchronous copy before it has waited for the copy.
    CopyNotAwaited => "copy-not-awaited",
    /// A thread reads registers that an asynchronous instruction writes, before it has waited for the instruction.
    ResultNotAwaited => "result-not-awaited",
    /// A thread changes registers that `wgmma` uses, and executes no `wgmma.fence` in between.
    ProductNotFenced => "product-not-fenced",
    /// `setmaxnreg` that not all warps of a warpgroup execute equally often.
    RegisterCounts => "register-counts",
    /// A barrier that needs whole warps, in divergent code.
    DivergentBarrier => "divergent-barrier",
    /// Threads that arrive at one barrier with different thread counts.
    BarrierCounts => "barrier-counts",
    /// A barrier's thread count that is not a multiple of the warp size.
    BarrierCountWarps => "barrier-count-warps",
    /// Threads exited before a barrier of their CTA.
    ExitBeforeBarrier => "exit-before-barrier",
    /// A shuffle that reads a lane which does not participate.
    InactiveLane => "inactive-lane",
    /// An instruction that needs whole warps, in divergent code.
    DivergentAligned => "divergent-aligned",
    /// `mbarrier.init` on an mbarrier object that is already initialized.
    MbarrierInitAgain => "mbarrier-init-again",
    /// A write of data over an mbarrier object.
    MbarrierOverwritten => "mbarrier-overwritten",
    /// An unwritten value decides control flow or an address.
    Uninitialized => "uninitialized",
    /// An unwritten value reaches an output.
    UninitializedOutput => "uninitialized-output",
    /// Unwritten memory is copied to the host.
    UninitializedMemcpy => "uninitialized-memcpy",
    /// Memory that is allocated and never written.
    UnusedMemory => "unused-memory",
    /// `malloc` in a kernel had no room.
    DeviceMallocFailed => "device-malloc-failed",
    /// Memory of `malloc` in a kernel that is never freed.
    DeviceLeak => "device-leak",
    /// Memory of the CUDA driver that a program never frees.
    DriverLeak => "driver-leak",
    /// The launch was cancelled.
    Cancelled => "cancelled",
    /// An access that is not within one allocation.
    OutOfBounds => "out-of-bounds",
    /// An access to an allocation that was freed.
    UseAfterFree => "use-after-free",
    /// An access to memory of another device, without peer access to it.
    PeerAccess => "peer-access",
    /// An access to shared memory of a CTA of the cluster that has exited.
    ClusterTarget => "cluster-target",
    /// An address that is not a multiple of the access size.
    Misaligned => "misaligned",
    /// A store to memory that kernels may not write.
    ReadOnly => "read-only",
    /// An address in a space that the instruction does not reach.
    AddressSpace => "address-space",
    /// `free` of an address that is not the start of a live allocation.
    InvalidFree => "invalid-free",
    /// `trap` was executed.
    Trap => "trap",
    /// A kernel's assertion failed.
    Assertion => "assertion",
    /// All remaining threads wait, and nothing can wake them.
    Deadlock => "deadlock",
    /// A barrier that does not exist.
    Barrier => "barrier",
    /// A warp-level instruction that a thread of its member mask does not execute.
    MissingWarpLanes => "missing-warp-lanes",
    /// A misuse of an mbarrier object.
    Mbarrier => "mbarrier",
    /// A warp-level instruction whose member mask leaves out the executing thread.
    NotInMemberMask => "not-in-member-mask",
    /// A call of a function without a body.
    UndefinedFunction => "undefined-function",
    /// A `printf` that asks for more text than one call may print.
    PrintfTooLong => "printf-too-long",
    /// An indirect call or branch to an invalid target.
    InvalidTarget => "invalid-target",
    /// Calls that nest too deeply.
    StackOverflow => "stack-overflow",
    /// A handle that is not that of a live texture, sampler or surface, or whose kind the instruction does not take.
    InvalidHandle => "invalid-handle",
    /// A tensor map that is invalid, or that does not fit the instruction.
    TensorMap => "tensor-map",
    /// An access to tensor memory that is not allocated, or a misuse of an instruction on tensor memory.
    TensorMemory => "tensor-memory",
}

impl Code {
    /// The code with this name.
    pub fn from_name(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Compares with a name, for programs that have read one.
impl PartialEq<str> for Code {
    fn eq(&self, name: &str) -> bool {
        self.name() == name
    }
}

/// Compares with a name, for programs that have read one.
impl PartialEq<&str> for Code {
    fn eq(&self, name: &&str) -> bool {
        self.name() == *name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case_and_no_two_are_the_same() {
        for (i, code) in Code::ALL.iter().enumerate() {
            assert!(code.name().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{code}");
            assert_eq!(Code::from_name(code.name()), Some(*code));
            assert!(Code::ALL[..i].iter().all(|other| other.name() != code.name()), "{code}");
        }
        assert!(Code::UnknownSymbol == "unknown-symbol");
    }
}
