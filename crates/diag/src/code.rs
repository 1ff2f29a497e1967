//! The kinds of diagnostics, for programs.

use std::fmt;

/// Writes the enum and its table of names.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// What kind of message a diagnostic is. Its name is stable: it stands in the JSON output and behind the severity in the
        /// text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

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
    /// The file, or what it declares, is beyond the limits.
    FileTooLarge => "file-too-large",
    /// A character that PTX does not have.
    NonAsciiCharacter => "non-ascii-character",
    /// A byte of zero.
    NulByte => "nul-byte",
    /// A comment without an end.
    UnterminatedComment => "unterminated-comment",
    /// Something that does not parse.
    SyntaxError => "syntax-error",
    /// Something that has no place here.
    Misplaced => "misplaced",
    /// A declaration with several state spaces.
    MultipleStateSpaces => "multiple-state-spaces",
    /// Brackets within brackets, too many of them.
    NestingTooDeep => "nesting-too-deep",
    /// So much is wrong with the syntax that no more is said.
    TooManyErrors => "too-many-errors",
    /// A directive with more arguments than it takes.
    TooManyArguments => "too-many-arguments",
    // The module.
    /// The file does not begin with `.version`.
    MissingVersion => "missing-version",
    /// No architecture is named.
    MissingTarget => "missing-target",
    /// A `.version` that there is not.
    UnsupportedVersion => "unsupported-version",
    /// A `.target` that there is not.
    UnsupportedTarget => "unsupported-target",
    /// Options of `.target` that exclude each other.
    ConflictingTarget => "conflicting-target",
    /// A `.target` that the module's `.version` does not have.
    TargetTooNew => "target-too-new",
    /// An `.address_size` that is neither 32 nor 64.
    IllegalAddressSize => "illegal-address-size",
    /// Something needs a newer `.version`.
    RequiresVersion => "requires-version",
    /// Something needs another `.target`.
    RequiresTarget => "requires-target",
    /// Something that this `.version` no longer has.
    Deprecated => "deprecated",
    // Names.
    /// A name that nothing declares.
    UnknownSymbol => "unknown-symbol",
    /// A table of targets that stands behind its use.
    ForwardReference => "forward-reference",
    /// A second definition of a name.
    DuplicateDefinition => "duplicate-definition",
    /// A second declaration of another kind.
    InconsistentRedefinition => "inconsistent-redefinition",
    /// A second declaration with other parameters.
    InconsistentPrototypes => "inconsistent-prototypes",
    /// An `.extern` function with a body.
    ExternDefinition => "extern-definition",
    /// An `.alias` of what cannot have one.
    IllegalAlias => "illegal-alias",
    /// A linking directive that does not go with the declaration.
    IllegalLinkage => "illegal-linkage",
    /// A declaration that belongs elsewhere.
    IllegalScope => "illegal-scope",
    // Declarations.
    /// A type that instructions have and variables do not.
    NotADeclaredType => "not-a-declared-type",
    /// A predicate outside registers.
    PredicateVariable => "predicate-variable",
    /// A vector type of more than 128 bits.
    VectorTooLarge => "vector-too-large",
    /// An array of registers.
    RegisterArray => "register-array",
    /// An array without a length.
    IncompleteType => "incomplete-type",
    /// An alignment that there is not.
    IllegalAlignment => "illegal-alignment",
    /// A parameter that cannot be one.
    IllegalParameter => "illegal-parameter",
    /// `.ptr` outside kernels.
    MisplacedPtr => "misplaced-ptr",
    /// Several return parameters in `.param` space.
    MultipleReturns => "multiple-returns",
    /// Parameters of a kernel that are too large.
    TooMuchParameterSpace => "too-much-parameter-space",
    /// `.noreturn` on a function that returns something.
    IllegalNoreturn => "illegal-noreturn",
    /// A zero where a positive number belongs.
    NotPositive => "not-positive",
    /// Directives that exclude each other.
    ConflictingDirectives => "conflicting-directives",
    /// A directive that something needs is not there.
    MissingDirective => "missing-directive",
    /// A directive without effect.
    IgnoredDirective => "ignored-directive",
    // Initial values and constants.
    /// An initial value where there can be none.
    IllegalInitializer => "illegal-initializer",
    /// An initial value of another type.
    InitializerType => "initializer-type",
    /// No initial value at all.
    InitializerExpression => "initializer-expression",
    /// The address of something that has none before the launch.
    InitializerSpace => "initializer-space",
    /// An initial value too far into its variable.
    InitializerTooLarge => "initializer-too-large",
    /// A mask that does not take one byte.
    IllegalMask => "illegal-mask",
    /// Too many or too few initial values.
    WrongElementCount => "wrong-element-count",
    /// A constant that is too large.
    ConstantOverflow => "constant-overflow",
    /// Integers and floating-point numbers in one operation.
    ConstantTypeMismatch => "constant-type-mismatch",
    /// A constant divided by zero.
    ConstantDivisionByZero => "constant-division-by-zero",
    /// Something else where an integer belongs.
    IntegerConstantExpected => "integer-constant-expected",
    /// A cast to a type that constants do not have.
    UnsupportedCast => "unsupported-cast",
    // Opcodes and modifiers.
    /// An opcode that there is not.
    UnknownInstruction => "unknown-instruction",
    /// A modifier that there is not.
    UnknownModifier => "unknown-modifier",
    /// One modifier too many of its kind.
    RepeatedModifier => "repeated-modifier",
    /// A modifier that the instruction does not take.
    IllegalModifier => "illegal-modifier",
    /// A modifier that must be given is not.
    MissingModifier => "missing-modifier",
    /// A comparison that does not go with the type.
    ComparisonMismatch => "comparison-mismatch",
    /// Types that the instruction does not have.
    InstructionTypes => "instruction-types",
    /// A vector of the wrong size.
    VectorSize => "vector-size",
    /// A cache policy without `.L2::cache_hint`.
    CacheHintMissing => "cache-hint-missing",
    /// A form that ptxas refuses and lenient checking accepts.
    LenientForm => "lenient-form",
    // Operands.
    /// Operands whose number or types the instruction does not take.
    ArgumentsMismatch => "arguments-mismatch",
    /// A guard that is no predicate.
    PredicateExpected => "predicate-expected",
    /// A second destination that is missing or one too many.
    PredicateOutput => "predicate-output",
    /// A number added to a predicate.
    PredicateSum => "predicate-sum",
    /// A sign where there can be none.
    IllegalNegation => "illegal-negation",
    /// An element of a vector that cannot be one.
    IllegalExpression => "illegal-expression",
    /// An operand that ptxvm does not support.
    UnsupportedOperand => "unsupported-operand",
    /// `.target ..., debug` in a file without data for a debugger.
    MissingDebugInformation => "missing-debug-information",
    /// A place or a function in `.loc` that nothing names.
    UnknownLocation => "unknown-location",
    /// An address of 32 bits where those of the module have 64.
    NarrowAddress => "narrow-address",
    /// More shared memory or more constants than there are.
    TooMuchMemory => "too-much-memory",
    /// A parameter of a call that is read where no call has returned it.
    CallSequence => "call-sequence",
    /// A function or a variable that nobody defines.
    Unresolved => "unresolved",
    /// A pragma without its number, or with another one than it takes.
    IllegalPragma => "illegal-pragma",
    /// An index on something that is no array.
    NotAnArray => "not-an-array",
    /// A component of something that has none.
    UnknownField => "unknown-field",
    /// A component or selector that there is not.
    UnknownSelector => "unknown-selector",
    /// A component that the vector is too short for.
    MissingElement => "missing-element",
    /// A vector of a size that no instruction takes.
    IllegalVectorSize => "illegal-vector-size",
    /// Elements of different sizes.
    IncompatibleElements => "incompatible-elements",
    /// A vector without a register.
    UntypedVector => "untyped-vector",
    /// Elements of different types.
    UnlikeElements => "unlike-elements",
    /// A vector where a single value belongs.
    VectorOperand => "vector-operand",
    /// A single value where a vector belongs.
    VectorExpected => "vector-expected",
    /// Something else where a label belongs.
    LabelExpected => "label-expected",
    /// Something else where a register belongs.
    RegisterExpected => "register-expected",
    /// A result that goes into no register.
    ResultRegister => "result-register",
    /// A result that goes into a function.
    FunctionAsResult => "function-as-result",
    /// `_` for a result that must be kept.
    DiscardedResult => "discarded-result",
    /// `_` as a source.
    Sink => "sink",
    /// A result that must be discarded.
    SinkExpected => "sink-expected",
    /// A special register that the instruction does not read.
    SpecialRegister => "special-register",
    /// A special register as a destination.
    ReadOnlyRegister => "read-only-register",
    /// A selector that the operand does not have.
    VideoSelector => "video-selector",
    /// Something that is no texture, sampler or surface.
    HandleExpected => "handle-expected",
    /// An index into an array of textures of another type.
    ArrayIndex => "array-index",
    /// An operand that cannot be an address.
    IllegalOperand => "illegal-operand",
    /// A register that holds no address.
    IllegalAddress => "illegal-address",
    /// A number as an address.
    ImmediateAddress => "immediate-address",
    /// An address of another state space.
    SpaceMismatch => "space-mismatch",
    /// An access to a parameter that goes the wrong way.
    ParameterAccess => "parameter-access",
    /// The address of a parameter that has none.
    ParameterAddress => "parameter-address",
    /// A constant that is out of range.
    OutOfRange => "out-of-range",
    /// A number of threads that a barrier does not take.
    ThreadCount => "thread-count",
    // Branches and calls.
    /// A target that is no label.
    IllegalBranchTarget => "illegal-branch-target",
    /// A call of something that is no function.
    IllegalCallTarget => "illegal-call-target",
    /// A call of something that is not known.
    CallPrototypeRequired => "call-prototype-required",
    /// A call with too many or too few arguments.
    CallParameterCount => "call-parameter-count",
    /// An argument that cannot be one.
    CallArgument => "call-argument",
    /// An argument of another type.
    CallArgumentType => "call-argument-type",
    /// An argument of another alignment.
    CallArgumentAlignment => "call-argument-alignment",
    // Linking.
    /// Modules with addresses of different sizes.
    AddressSize => "address-size",
    /// A variable in different state spaces.
    MemorySpace => "memory-space",
    /// A function with different parameters.
    Prototype => "prototype",
    /// A name that several modules define.
    MultipleDefinition => "multiple-definition",
    /// A variable of different sizes.
    Size => "size",
    /// A name that no module defines.
    UndefinedReference => "undefined-reference",
    // Machine code.
    /// Machine code that does not parse.
    SassSyntax => "sass-syntax",
    /// An instruction that has no encoding.
    Unencodable => "unencodable",
    /// A modifier of no meaning.
    InvalidModifier => "invalid-modifier",
    /// A constant that was rounded.
    Rounded => "rounded",
    /// Both results in one register.
    SameDestination => "same-destination",
    // Launches.
    /// An instruction that ptxvm does not execute.
    Unsupported => "unsupported",
    /// An observer ended the run.
    Stopped => "stopped",
    /// The launch was stopped by its limit.
    StepLimit => "step-limit",
    // What the tools find (`ptxvm run --tool`).
    /// One thread writes what another reads, and nothing orders them.
    RaceWriteRead => "race-write-read",
    /// Two threads write, and nothing orders them.
    RaceWriteWrite => "race-write-write",
    /// One writes what the other reads, and what is read goes nowhere.
    RaceUnusedRead => "race-unused-read",
    /// Both write, and the same value.
    RaceSameValue => "race-same-value",
    /// Strong accesses whose scopes or sizes do not fit together.
    RaceScope => "race-scope",
    /// An atomic or strong access, and a plain one.
    RaceAtomic => "race-atomic",
    /// A plain write, and an asynchronous read of it without a fence between their proxies.
    RaceProxy => "race-proxy",
    /// Shared memory of another block of the cluster, which may not have started.
    ClusterStart => "cluster-start",
    /// Shared memory of another block of the cluster, which may have ended.
    ClusterExit => "cluster-exit",
    /// Memory of a stream's `cuMemAllocAsync`, which another stream uses and nothing orders behind it.
    StreamUseBeforeAlloc => "stream-use-before-alloc",
    /// Memory that a stream's `cuMemFreeAsync` gives back, which another stream uses and nothing orders before it.
    StreamUseAfterFree => "stream-use-after-free",
    /// An asynchronous copy that its own thread has not waited for.
    CopyNotAwaited => "copy-not-awaited",
    /// Registers that an asynchronous instruction writes, before it was waited for.
    ResultNotAwaited => "result-not-awaited",
    /// Registers that `wgmma` uses were changed, and no `wgmma.fence` is between.
    ProductNotFenced => "product-not-fenced",
    /// `setmaxnreg` by a part of a warpgroup, or for more registers than there are.
    RegisterCounts => "register-counts",
    /// A barrier for whole warps in divergent code.
    DivergentBarrier => "divergent-barrier",
    /// Different numbers of threads at one barrier.
    BarrierCounts => "barrier-counts",
    /// A number of threads that is no multiple of a warp.
    BarrierCountWarps => "barrier-count-warps",
    /// Threads ended before a barrier of their block.
    ExitBeforeBarrier => "exit-before-barrier",
    /// A shuffle from a lane that does not take part.
    InactiveLane => "inactive-lane",
    /// An instruction for whole warps in divergent code.
    DivergentAligned => "divergent-aligned",
    /// An mbarrier object is made where there is one.
    MbarrierInitAgain => "mbarrier-init-again",
    /// Data is written over an mbarrier object.
    MbarrierOverwritten => "mbarrier-overwritten",
    /// A value that nobody wrote decides something.
    Uninitialized => "uninitialized",
    /// A value that nobody wrote reaches an output.
    UninitializedOutput => "uninitialized-output",
    /// Memory that nobody wrote is copied to the host.
    UninitializedMemcpy => "uninitialized-memcpy",
    /// Memory that is allocated, and never written.
    UnusedMemory => "unused-memory",
    /// `malloc` of a kernel had no room.
    DeviceMallocFailed => "device-malloc-failed",
    /// Memory of `malloc` that is not freed.
    DeviceLeak => "device-leak",
    /// Memory of the CUDA driver that a program does not give back.
    DriverLeak => "driver-leak",
    /// The launch was cancelled.
    Cancelled => "cancelled",
    /// An access that is not within one allocation.
    OutOfBounds => "out-of-bounds",
    /// An access to an allocation that was given back.
    UseAfterFree => "use-after-free",
    /// An access to the shared memory of a block of the cluster that has ended.
    ClusterTarget => "cluster-target",
    /// An address that is not a multiple of the access size.
    Misaligned => "misaligned",
    /// A store to memory that kernels may not write.
    ReadOnly => "read-only",
    /// An address in a space that the instruction does not reach.
    AddressSpace => "address-space",
    /// `free` of something that is not the start of a live allocation.
    InvalidFree => "invalid-free",
    /// `trap` was executed.
    Trap => "trap",
    /// An assertion of the kernel does not hold.
    Assertion => "assertion",
    /// Threads wait, and nobody can wake them.
    Deadlock => "deadlock",
    /// A barrier that there is not.
    Barrier => "barrier",
    /// A warp-level instruction without a thread that its member mask names.
    MissingWarpLanes => "missing-warp-lanes",
    /// An mbarrier object that is used against its rules.
    Mbarrier => "mbarrier",
    /// A thread that is not in the member mask of its instruction.
    NotInMemberMask => "not-in-member-mask",
    /// A call of a function without a body.
    UndefinedFunction => "undefined-function",
    /// A `printf` that asks for more text than one call may print.
    PrintfTooLong => "printf-too-long",
    /// An indirect call or branch to something that is no target.
    InvalidTarget => "invalid-target",
    /// Calls that nest too deeply.
    StackOverflow => "stack-overflow",
    /// Something that is no live texture, sampler or surface, or not the right one.
    InvalidHandle => "invalid-handle",
    /// Something that is no tensor map, or not one that the instruction fits.
    TensorMap => "tensor-map",
    /// Tensor memory that is not allocated, or an instruction on it that is used against its rules.
    TensorMemory => "tensor-memory",
}

impl Code {
    /// The code of this name.
    pub fn from_name(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A code is equal to its name, for those who have read one.
impl PartialEq<str> for Code {
    fn eq(&self, name: &str) -> bool {
        self.name() == name
    }
}

/// A code is equal to its name, for those who have read one.
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
