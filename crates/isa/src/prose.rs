//! The meanings of opcodes and modifiers, in a few words each.

use crate::{Mod, Token, Type};

/// The meaning of an opcode.
pub fn opcode(opcode: &str) -> Option<&'static str> {
    find(OPCODES, opcode)
}

/// The meaning of a modifier. `None` for modifiers that have a meaning only after another one (`.l` of `shf`).
pub fn modifier(modifier: Mod) -> Option<&'static str> {
    find(MODIFIERS, modifier.name())
}

/// The meaning of a type.
pub fn ty(ty: Type) -> String {
    let element = ty.element();
    if ty.lanes() > 1 && element != ty {
        return format!(
            "{} elements of type {element} in {} bits, the first one lowest",
            ty.lanes(),
            ty.bits()
        );
    }
    let kind = match ty.kind() {
        crate::Kind::Predicate => return "a predicate: true or false".to_owned(),
        crate::Kind::Bits => "bits without an interpretation",
        crate::Kind::Unsigned => "unsigned integer",
        crate::Kind::Signed => "signed integer, in two's complement",
        crate::Kind::Float => "binary floating point",
    };
    format!("{kind}, {} bits", ty.bits())
}

/// The meaning of a modifier or type.
pub fn token(token: Token) -> Option<String> {
    match token {
        Token::Type(found) => Some(ty(found)),
        Token::Mod(found) => modifier(found).map(str::to_owned),
    }
}

fn find(table: &'static [(&str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == name).map(|(_, meaning)| *meaning)
}

const OPCODES: &[(&str, &str)] = &[
    ("abs", "magnitude: a without its sign"),
    ("activemask", "one bit for each lane of the warp that executes this instruction now"),
    ("add", "a + b; of mixed precision a + c, where a is exactly converted to the type of c"),
    ("addc", "a + b + carry flag"),
    ("alloca", "takes bytes from the thread's stack, and returns their address"),
    ("and", "a and b, bit by bit"),
    ("applypriority", "sets the eviction priority of a cache line: a hint"),
    ("atom", "reads memory, combines it with b and writes it back, in one step; returns what was read"),
    ("bar", "waits at a barrier of the block, or arrives at it, or reduces a predicate over its threads"),
    ("barrier", "waits at a barrier of the block or of the cluster, or arrives at it"),
    ("bfe", "c bits of a from position b on, extended by the type's sign rule"),
    ("bfi", "b with `len` bits from position `pos` on replaced by the low bits of a"),
    (
        "bfind",
        "position of the highest bit that is not a copy of the sign (of the highest 1 if unsigned); 0xffffffff if none",
    ),
    ("bmsk", "mask of b ones from position a on"),
    ("bra", "continues at a label"),
    ("brev", "the bits of a in reverse order"),
    ("brkpt", "stops for a debugger"),
    ("brx", "continues at one of several labels, by index"),
    ("call", "calls a function"),
    ("clusterlaunchcontrol", "asks for the work of a cluster that has not started yet"),
    ("clmad", "c plus, without carries, one half of the product of a and b without carries"),
    ("clz", "number of zero bits above the highest 1"),
    ("cnot", "1 if a is zero, else 0"),
    ("copysign", "b with the sign of a"),
    ("cos", "cosine of a, in radians (`.2pi`: cycles), approximately"),
    ("cp", "copies memory while the thread goes on, groups such copies, and waits for them"),
    ("createpolicy", "makes a cache policy for `.L2::cache_hint`"),
    ("cvt", "a converted to another type"),
    ("cvta", "an address in a state space converted to a generic one, or back"),
    ("discard", "says that memory need not be written back: a hint"),
    ("div", "a / b; of integers the quotient towards zero"),
    ("dp2a", "c plus the sum of two products of 16-bit halves of a and bytes of b"),
    ("dp4a", "c plus the sum of four products of bytes of a and b"),
    ("elect", "chooses one lane of a mask"),
    ("ex2", "2 to the power a, approximately"),
    ("exit", "ends the thread"),
    ("fabric", "copies from and to memory of other devices by way of a fabric, and what waits for that"),
    ("fence", "orders memory accesses before it and after it"),
    ("fma", "a * b + c with one rounding; of mixed precision a and b are exactly converted to the type of c"),
    ("fns", "position of the n-th set bit of a mask, counted from a base"),
    ("getctarank", "rank in the cluster of the block that an address belongs to"),
    ("griddepcontrol", "lets dependent grids start, or waits for those it depends on"),
    ("istypep", "true if a is the handle of a texture, a sampler or a surface"),
    ("isspacep", "does a generic address lie in this state space?"),
    ("ld", "reads memory"),
    (
        "ldmatrix",
        "loads matrices of 8 x 8 halves (or 16 bytes) whose rows lie where the lanes say, into fragments",
    ),
    ("ldu", "reads memory that is the same for all threads and that nobody writes"),
    ("lg2", "logarithm of a to base 2, approximately"),
    ("lop3", "any function of three bits, at each bit position; immLut is its truth table"),
    ("mad", "a * b + c; of integers the upper or lower half of the product, or all of it"),
    ("mad24", "product of the low 24 bits of a and b, its upper or lower 32 bits, plus c"),
    ("madc", "half of a * b, plus c, plus carry flag"),
    ("mapa", "address in another block of the cluster that corresponds to this one"),
    ("match", "lanes of the warp whose values are equal to this one's, or whether all are"),
    ("max", "the larger of a and b; -0.0 is less than +0.0"),
    (
        "mbarrier",
        "a barrier in shared memory: makes it, arrives at it, counts bytes for it, asks whether its phase is over",
    ),
    ("membar", "orders memory accesses before it and after it"),
    ("min", "the smaller of a and b; -0.0 is less than +0.0"),
    ("mma", "product of two matrices plus a third, all held by the lanes of a warp"),
    ("mov", "copies a register, packs and unpacks vectors, reads special registers and addresses"),
    ("movmatrix", "transposes a matrix of 8 x 8 halves that a warp holds"),
    ("mul", "a * b; of integers the upper or lower half of the product, or all of it"),
    ("mul24", "product of the low 24 bits of a and b, its upper or lower 32 bits"),
    (
        "multimem",
        "loads, stores and reductions on the same place of the memories of a team of GPUs, which is a team of one here",
    ),
    ("nanosleep", "lets others run for about so many nanoseconds"),
    ("neg", "-a"),
    ("not", "a with every bit inverted"),
    ("or", "a or b, bit by bit"),
    ("pmevent", "triggers performance counters"),
    ("popc", "number of 1 bits"),
    ("prefetch", "brings memory into a cache: a hint"),
    ("prefetchu", "brings memory into the uniform cache: a hint"),
    ("prmt", "four bytes chosen from the eight of a and b, by the digits of c"),
    ("rcp", "1 / a"),
    ("red", "combines memory with b in one step; returns nothing"),
    ("redux", "reduces a value over the lanes of a mask"),
    ("rem", "remainder of a / b; it has the sign of a"),
    ("ret", "returns from a function, or ends the thread"),
    ("rsqrt", "1 / square root of a, approximately"),
    ("sad", "c + |a - b|"),
    ("selp", "a if predicate c is true, else b; the bits pass unchanged"),
    ("set", "compares a with b; the result as a number: all ones or 1.0 if true, else zero"),
    ("setmaxnreg", "changes the number of registers of a warp: no effect on results"),
    ("setp", "compares a with b; the results as predicates: p, and q of the complement or of the upper lane"),
    ("shf", "32 bits of the 64 of b and a, after a shift by c (a funnel shift)"),
    ("shfl", "the value of a register in another lane of the warp"),
    ("shl", "a shifted left by b; 0 if b is the width or more"),
    ("shr", "a shifted right by b; signed types fill with the sign; b is limited to the width"),
    ("sin", "sine of a, in radians (`.2pi`: cycles), approximately"),
    ("slct", "a if c >= 0, else b (NaN selects b, -0.0 selects a); the bits pass unchanged"),
    ("spcompress", "keeps two of each four elements of data, and says in mdata where they were"),
    ("spdecompress", "puts the elements of cdata where mdata says, among zeros"),
    ("sqrt", "square root of a"),
    ("st", "writes memory"),
    ("stackrestore", "puts the thread's stack pointer back"),
    ("stacksave", "returns the thread's stack pointer"),
    ("stmatrix", "stores matrices of 8 x 8 halves from fragments, row by row where the lanes say"),
    ("sub", "a - b; of mixed precision a - c, where a is exactly converted to the type of c"),
    ("subc", "a + ~b + carry flag: a - b where the flag is 1, one less where it is 0"),
    ("suld", "reads texels of a surface"),
    ("suq", "returns an attribute of a surface"),
    ("sured", "combines a texel of a surface with c in one step"),
    ("sust", "writes texels of a surface"),
    ("szext", "the low b bits of a, extended by the type's sign rule"),
    ("tanh", "hyperbolic tangent of a, approximately"),
    ("tcgen05", "matrix products in tensor memory, of fifth-generation tensor cores"),
    ("tensormap", "changes a field of a tensor map"),
    ("testp", "is a of this class of floating-point numbers?"),
    ("tex", "reads a texture, with its filters, at coordinates"),
    ("tld4", "reads one component of the four texels that a texture would be filtered from"),
    ("trap", "ends the kernel with a fault"),
    ("txq", "returns an attribute of a texture or a sampler"),
    (
        "vabsdiff",
        "|a - b| of words or of the parts that selectors name, then merged into c or combined with it",
    ),
    ("vabsdiff2", "|a - b| of two halves, merged into c or added to it"),
    ("vabsdiff4", "|a - b| of four bytes, merged into c or added to it"),
    ("vadd", "a + b of words or of the parts that selectors name, then merged into c or combined with it"),
    ("vadd2", "a + b of two halves, merged into c or added to it"),
    ("vadd4", "a + b of four bytes, merged into c or added to it"),
    ("vavrg2", "means of two halves, merged into c or added to it"),
    ("vavrg4", "means of four bytes, merged into c or added to it"),
    ("vmad", "a * b + c of words or of the parts that selectors name, then shifted right and saturated"),
    (
        "vmax",
        "the larger of words or of the parts that selectors name, then merged into c or combined with it",
    ),
    ("vmax2", "the larger of two halves each, merged into c or added to it"),
    ("vmax4", "the larger of four bytes each, merged into c or added to it"),
    (
        "vmin",
        "the smaller of words or of the parts that selectors name, then merged into c or combined with it",
    ),
    ("vmin2", "the smaller of two halves each, merged into c or added to it"),
    ("vmin4", "the smaller of four bytes each, merged into c or added to it"),
    ("vote", "all, any, uniform: a predicate over the lanes of the warp, or one bit for each"),
    ("vset", "1 if the comparison of words or parts holds, else 0; then merged into c or combined with it"),
    ("vset2", "1 or 0 for the comparison of each half, merged into c or added to it"),
    ("vset4", "1 or 0 for the comparison of each byte, merged into c or added to it"),
    (
        "vshl",
        "a shifted left by b, of words or of the parts that selectors name, then merged into c or combined with it",
    ),
    (
        "vshr",
        "a shifted right by b, of words or of the parts that selectors name, then merged into c or combined with it",
    ),
    ("vsub", "a - b of words or of the parts that selectors name, then merged into c or combined with it"),
    ("vsub2", "a - b of two halves, merged into c or added to it"),
    ("vsub4", "a - b of four bytes, merged into c or added to it"),
    ("wgmma", "product of matrices of four warps, partly in shared memory"),
    ("wmma", "loads, multiplies and stores matrices whose layout in registers is the machine's own"),
    ("xor", "a exclusive-or b, bit by bit"),
];

const MODIFIERS: &[(&str, &str)] = &[
    ("2pi", "the angle is in cycles"),
    ("L1::evict_first", "cache hint"),
    ("L1::evict_last", "cache hint"),
    ("L1::evict_normal", "cache hint"),
    ("L1::evict_unchanged", "cache hint"),
    ("L1::no_allocate", "cache hint"),
    ("L2::128B", "prefetch hint"),
    ("L2::256B", "prefetch hint"),
    ("L2::64B", "prefetch hint"),
    ("L2::cache_hint", "a cache policy follows as the last operand"),
    ("NaN", "the result is NaN if any operand is; without it a number wins over NaN"),
    ("abs", "magnitudes of the operands are compared"),
    ("acq_rel", "memory order: acquire and release"),
    ("acquire", "memory order: what follows is not moved before it"),
    ("aligned", "all threads of the warp execute this instruction together"),
    ("and", "and; in comparisons the result is combined with predicate c by it"),
    ("approx", "fast, not correctly rounded"),
    ("cc", "writes the carry flag; a subtraction clears it where it borrows"),
    ("clamp", "positions and amounts beyond the width are limited to it"),
    ("cluster", "scope or barrier: the cluster"),
    ("const", "state space of constants"),
    ("cta", "scope: the block"),
    ("eq", "true if a = b; false if either is NaN"),
    ("equ", "true if a = b or either is NaN"),
    ("exclusive", "columns that no other block uses"),
    ("finite", "is it neither infinite nor NaN?"),
    ("ftz", "subnormal inputs and results become zeros of the same sign"),
    ("full", "division that is nearly correctly rounded, over the whole range"),
    ("ge", "true if a >= b; false if either is NaN"),
    ("geu", "true if a >= b or either is NaN"),
    ("global", "state space of device memory"),
    ("gpu", "scope: the whole device"),
    ("gt", "true if a > b; false if either is NaN"),
    ("gtu", "true if a > b or either is NaN"),
    ("hi", "of an integer product the upper half; as a comparison of unsigned integers a > b"),
    ("hs", "unsigned a >= b (higher or same)"),
    ("infinite", "is it infinite?"),
    ("le", "true if a <= b; false if either is NaN"),
    ("leu", "true if a <= b or either is NaN"),
    ("lo", "of an integer product the lower half; as a comparison of unsigned integers a < b"),
    ("local", "state space of a thread's own memory"),
    ("ls", "unsigned a <= b (lower or same)"),
    ("lt", "true if a < b; false if either is NaN"),
    ("ltu", "true if a < b or either is NaN"),
    ("nan", "true if a or b is NaN"),
    ("nc", "the memory is read-only: the non-coherent cache may be used"),
    ("ne", "true if a and b differ; false if either is NaN"),
    ("neu", "true if a and b differ or either is NaN"),
    ("noftz", "subnormals are kept"),
    ("normal", "is it normal, neither zero nor subnormal?"),
    ("notanumber", "is it NaN?"),
    ("num", "true if neither a nor b is NaN"),
    ("number", "is it not NaN?"),
    ("oob", "an operand that is the out-of-bounds NaN makes the result zero"),
    ("or", "or; in comparisons the result is combined with predicate c by it"),
    ("param", "state space of parameters"),
    ("param::entry", "state space of a kernel's parameters"),
    ("param::func", "state space of a function's parameters"),
    ("po", "plus one: for averages"),
    ("proxy::readonly", "the memory is read-only while the kernel runs"),
    ("pzo", "results that are zero are +0"),
    ("relaxed", "memory order: atomic, without ordering other accesses"),
    ("release", "memory order: what stands before is not moved after it"),
    ("relu", "negative results become +0, NaN the canonical NaN"),
    ("rm", "rounds towards negative infinity"),
    ("rmi", "rounds to an integer, towards negative infinity"),
    ("rn", "rounds to nearest, ties to even"),
    ("rna", "rounds to nearest, ties away from zero"),
    ("rni", "rounds to an integer, to nearest, ties to even"),
    ("rp", "rounds towards positive infinity"),
    ("rpi", "rounds to an integer, towards positive infinity"),
    ("rs", "rounds stochastically, with the random bits of the last operand"),
    ("rz", "rounds towards zero"),
    ("rzi", "rounds to an integer, towards zero"),
    ("sat", "limits the result: of floats to 0.0 to 1.0 (NaN becomes +0.0), of integers to the type's range"),
    ("satfinite", "results too large become the largest finite number"),
    ("sc", "memory order: sequentially consistent"),
    ("scaled::n1::ue8m0", "all elements are divided by one power of two; subnormal sources count as zeros"),
    (
        "scaled::n2::ue8m0",
        "each of both elements has a power of two, by which halves are multiplied, and bytes divided",
    ),
    ("shared", "state space of a block's shared memory"),
    ("shared::cluster", "shared memory of any block of the cluster"),
    ("shared::cta", "shared memory of the own block"),
    ("shr15", "the sum is shifted right by 15 bits"),
    ("shr7", "the sum is shifted right by 7 bits"),
    ("shiftamt", "returns the shift that would bring the bit to the top"),
    ("subnormal", "is it subnormal?"),
    ("sync", "the lanes of the mask execute this instruction together"),
    ("sys", "scope: device and host"),
    ("uni", "all active threads of the warp take the same way"),
    ("v2", "two elements"),
    ("v4", "four elements"),
    ("v8", "eight elements"),
    ("volatile", "the access is made, and not merged with others"),
    ("warp", "of the warp"),
    ("weak", "no ordering with other threads"),
    ("wide", "the whole product, twice as wide as the operands"),
    ("wrap", "positions and amounts are taken modulo the width"),
    ("xor", "exclusive or; in comparisons the result is combined with predicate c by it"),
    ("xorsign", "the result's sign is the exclusive or of the operands' signs"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_of_the_table_has_a_meaning_and_no_other() {
        let missing: Vec<&str> = crate::FORMS
            .iter()
            .map(|form| form.opcode.name())
            .filter(|name| opcode(name).is_none())
            .collect();
        assert!(missing.is_empty(), "no meaning: {missing:?}");
        let extra: Vec<&str> =
            OPCODES.iter().map(|(name, _)| *name).filter(|name| crate::forms(name).is_empty()).collect();
        assert!(extra.is_empty(), "no rows: {extra:?}");
    }

    #[test]
    fn meanings_are_of_modifiers_that_exist() {
        let extra: Vec<&str> =
            MODIFIERS.iter().map(|(name, _)| *name).filter(|name| Mod::from_name(name).is_none()).collect();
        assert!(extra.is_empty(), "no modifiers: {extra:?}");
    }
}
