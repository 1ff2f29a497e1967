//! Operands of instructions and constant expressions.

use diag::Span;

use super::{Literal, Name};

/// An operand of an instruction, an argument of a directive, or a constant expression
/// (PTX ISA, "Instruction Operands", "Constant Expressions").
#[derive(Clone, Debug, PartialEq)]
pub enum Operand<'a> {
    /// A register, variable, label or function.
    Name(Name<'a>),
    /// The constant `WARP_SZ`.
    WarpSize(Name<'a>),
    /// `_`
    Sink(Name<'a>),
    /// A number.
    Literal(Literal<'a>),
    /// A string.
    String(Literal<'a>),
    /// `a[4]`, `a[%r1]`: an element of an array.
    Index(Box<Index<'a>>),
    /// `v.x`, `a.h0`, `a.b10`
    Element(Box<Element<'a>>),
    /// `-a`, `+a`, `~a`, `!a`. A negated predicate `!p` is one too.
    Unary(Box<Unary<'a>>),
    /// `a + b`: `reg+4`, `sym+4`, or part of a constant expression.
    Binary(Box<Binary<'a>>),
    /// `a ? b : c`
    Ternary(Box<Ternary<'a>>),
    /// `(.s64) a`
    Cast(Box<Cast<'a>>),
    /// `generic(sym)`, `0xFF(sym)` in initializers.
    Apply(Box<Apply<'a>>),
    /// `p|q`, `_|q`, `p|_`
    Pair(Box<Pair<'a>>),
    /// `{a, b, _}`
    Vector(Box<OperandList<'a>>),
    /// `(a, b)` of a call.
    List(Box<OperandList<'a>>),
    /// `[a]`, `[a+4]`, `[tex, {x, y}]`
    Address(Box<Address<'a>>),
}

nodes! {
    /// `base.component`: an element of a vector, or the selector of a video instruction.
    struct Element {
        /// The register.
        base: Name<'a>,
        /// `x`, `y`, `z`, `w`, `r`, `g`, `b`, `a`, `b0`, `h1`
        component: Name<'a>,
    }

    /// `base[index]`
    struct Index {
        /// The array.
        base: Name<'a>,
        /// A name, a name plus a constant, or a constant.
        index: Operand<'a>,
    }

    /// An operator in front of a value.
    struct Unary {
        /// The operator.
        op: UnaryOp,
        /// The value.
        value: Operand<'a>,
    }

    /// An operator between two values. In `name + constant`, the constant is all that follows the first `+`:
    /// `%r1+4+4` is `%r1` plus `4+4`.
    struct Binary {
        /// The operator.
        op: BinaryOp,
        /// The value before it.
        left: Operand<'a>,
        /// The value after it.
        right: Operand<'a>,
    }

    /// `condition ? yes : no`
    struct Ternary {
        /// The condition.
        condition: Operand<'a>,
        /// The value if the condition is not zero.
        yes: Operand<'a>,
        /// The value if it is.
        no: Operand<'a>,
    }

    /// `(.s64) value`, `(.u64) value`
    struct Cast {
        /// `s64` or `u64`.
        ty: Name<'a>,
        /// The value.
        value: Operand<'a>,
    }

    /// `generic(sym)` or `0xFF(sym)` (PTX ISA, "Initializers": generic addresses and masks).
    struct Apply {
        /// The name `generic`, or the mask.
        function: Operand<'a>,
        /// The value in parentheses.
        argument: Operand<'a>,
    }

    /// `first|second`: two destinations. One of them may be `_`.
    struct Pair {
        /// The destination before the bar.
        first: Operand<'a>,
        /// The destination after the bar.
        second: Operand<'a>,
    }

    /// Operands in braces or in parentheses.
    struct OperandList {
        /// The operands.
        operands: Box<[Operand<'a>]>,
    }

    /// `[location]`, `[location, coordinate, …]` (PTX ISA, "Addresses as Operands", "Texture Instructions").
    struct Address {
        /// The address: a name, a constant expression, or `name + constant` as a [`Binary`]. `[a+-4]` is the
        /// addition of a negation; `[a-4]` does not parse.
        location: Operand<'a>,
        /// The operands after a comma: a sampler, a vector of coordinates.
        coordinates: Box<[Operand<'a>]>,
    }
}

/// Operators in front of a value (PTX ISA, "Constant Expressions").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `!`
    Not,
    /// `~`
    Complement,
}

impl UnaryOp {
    /// The spelling.
    pub const fn name(self) -> &'static str {
        match self {
            UnaryOp::Plus => "+",
            UnaryOp::Minus => "-",
            UnaryOp::Not => "!",
            UnaryOp::Complement => "~",
        }
    }
}

macro_rules! binary_ops {
    ($($variant:ident $name:literal $level:literal;)*) => {
        /// Operators between two values (PTX ISA, "Constant Expressions", table of operators and precedence).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum BinaryOp {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl BinaryOp {
            /// The spelling.
            pub const fn name(self) -> &'static str {
                match self { $(BinaryOp::$variant => $name,)* }
            }

            /// Precedence: an operator of a higher level binds first; operators of one level associate to the left.
            pub const fn level(self) -> u8 {
                match self { $(BinaryOp::$variant => $level,)* }
            }
        }
    };
}

binary_ops! {
    Mul "*" 10;
    Div "/" 10;
    Rem "%" 10;
    Add "+" 9;
    Sub "-" 9;
    Shl "<<" 8;
    Shr ">>" 8;
    Lt "<" 7;
    Gt ">" 7;
    Le "<=" 7;
    Ge ">=" 7;
    Eq "==" 6;
    Ne "!=" 6;
    And "&" 5;
    Xor "^" 4;
    Or "|" 3;
    LogicalAnd "&&" 2;
    LogicalOr "||" 1;
}

impl Operand<'_> {
    /// The operand's span.
    pub fn span(&self) -> Span {
        match self {
            Operand::Name(name) | Operand::WarpSize(name) | Operand::Sink(name) => name.span,
            Operand::Index(node) => node.span,
            Operand::Literal(literal) | Operand::String(literal) => literal.span,
            Operand::Element(node) => node.span,
            Operand::Unary(node) => node.span,
            Operand::Binary(node) => node.span,
            Operand::Ternary(node) => node.span,
            Operand::Cast(node) => node.span,
            Operand::Apply(node) => node.span,
            Operand::Pair(node) => node.span,
            Operand::Vector(node) | Operand::List(node) => node.span,
            Operand::Address(node) => node.span,
        }
    }
}
