//! Constants and constant expressions (PTX ISA, "Constants", "Constant Expressions").

use diag::{Code, Span};
use isa::{LiteralForm, Type};
use syntax::Value as Number;
use syntax::tree::{Binary, BinaryOp, Operand as Tree, Ternary, Unary, UnaryOp};

use crate::sink::Sink;

/// Greatest nesting depth of expressions; the parser has the same limit.
const MAX_DEPTH: u32 = 256;

/// The value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Const {
    /// `.s64` or `.u64`
    Int {
        /// The 64 bits.
        value: u64,
        /// `.u64`
        unsigned: bool,
    },
    /// `0fXXXXXXXX`, as bits.
    F32(u32),
    /// `0dXXXXXXXXXXXXXXXX`, as bits.
    F64(u64),
    /// A decimal floating-point constant, or an expression of them.
    Decimal(f64),
}

impl Const {
    /// A signed integer.
    pub(crate) const fn signed(value: i64) -> Const {
        Const::Int { value: value as u64, unsigned: false }
    }

    /// The form in which it is written, which decides where a literal is allowed.
    pub(crate) fn form(self) -> LiteralForm {
        match self {
            Const::Int { .. } => LiteralForm::Integer,
            Const::F32(_) => LiteralForm::F32Bits,
            Const::F64(_) => LiteralForm::F64Bits,
            Const::Decimal(_) => LiteralForm::Decimal,
        }
    }

    fn is_float(self) -> bool {
        !matches!(self, Const::Int { .. })
    }

    /// Its bits in an operand or a variable of type `ty`.
    pub(crate) fn bits(self, ty: Type) -> u64 {
        match (self, ty) {
            (Const::Int { value, .. }, Type::Pred) => u64::from(value != 0),
            (Const::Int { value, .. }, _) => truncate(value, ty.bits()),
            // For an `.f64`, `0f` gives the raw bits, not the value.
            (Const::F32(bits), _) => truncate(u64::from(bits), ty.bits()),
            // A `.b32` variable takes a double-precision or decimal constant as if it were an `.f32`; narrower ones
            // take its low bits.
            (Const::F64(bits), Type::F32 | Type::B32) => u64::from((f64::from_bits(bits) as f32).to_bits()),
            (Const::Decimal(value), Type::F32 | Type::B32) => u64::from((value as f32).to_bits()),
            (Const::F64(bits), _) => truncate(bits, ty.bits()),
            (Const::Decimal(value), _) => truncate(value.to_bits(), ty.bits()),
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            Const::Int { value, unsigned: true } => value as f64,
            Const::Int { value, unsigned: false } => value as i64 as f64,
            Const::F32(bits) => f64::from(f32::from_bits(bits)),
            Const::F64(bits) => f64::from_bits(bits),
            Const::Decimal(value) => value,
        }
    }
}

/// The low bits of a value.
fn truncate(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

/// Does this consist only of literals, operators and `WARP_SZ`?
pub(crate) fn is_constant(tree: &Tree) -> bool {
    match tree {
        Tree::Literal(_) => true,
        Tree::WarpSize(_) => true,
        Tree::Unary(node) => is_constant(&node.value),
        Tree::Binary(node) => is_constant(&node.left) && is_constant(&node.right),
        Tree::Ternary(node) => [&node.condition, &node.yes, &node.no].into_iter().all(is_constant),
        Tree::Cast(node) => is_constant(&node.value),
        _ => false,
    }
}

/// The value of a constant expression. If the expression has an error, reports it and returns some value, so that
/// checking can continue. `None` if it is not a constant expression.
pub(crate) fn fold(tree: &Tree, sink: &mut Sink) -> Option<Const> {
    fold_at(tree, sink, MAX_DEPTH)
}

/// Like [`fold`], where an integer is required.
pub(crate) fn fold_integer(tree: &Tree, sink: &mut Sink) -> Option<u64> {
    match fold(tree, sink)? {
        Const::Int { value, .. } => Some(value),
        _ => {
            integer_expected(tree.span(), sink);
            None
        }
    }
}

fn integer_expected(span: Span, sink: &mut Sink) {
    sink.error(Code::IntegerConstantExpected, span, "Integer constant expression expected");
}

fn fold_at(tree: &Tree, sink: &mut Sink, depth: u32) -> Option<Const> {
    let depth = depth.checked_sub(1)?;
    match tree {
        Tree::Literal(literal) => match literal.value()? {
            Number::Integer { value, unsigned, overflow } => {
                if overflow {
                    sink.error(Code::ConstantOverflow, literal.span, "Constant overflow")
                        .help("integer constants have at most 64 bits");
                }
                let value = if overflow { u64::MAX } else { value };
                // Without the suffix, a constant is signed unless it needs all 64 bits.
                Some(Const::Int { value, unsigned: unsigned || value > i64::MAX as u64 })
            }
            Number::F32(bits) => Some(Const::F32(bits)),
            Number::F64(bits) => Some(match literal.text.as_bytes() {
                [b'0', b'd' | b'D', ..] => Const::F64(bits),
                _ => {
                    let value = f64::from_bits(bits);
                    let is_zero = value == 0.0 && is_zero(literal.text);
                    if !value.is_normal() && !is_zero {
                        sink.error(Code::ConstantOverflow, literal.span, "Constant overflow")
                            .help("decimal constants are zero or normal double-precision numbers: write the bits, 0d..");
                    }
                    Const::Decimal(value)
                }
            }),
        },
        Tree::WarpSize(_) => Some(Const::signed(32)),
        Tree::Unary(node) => unary(node, sink, depth),
        Tree::Binary(node) => binary(node, sink, depth),
        Tree::Ternary(node) => ternary(node, sink, depth),
        Tree::Cast(node) => {
            let unsigned = match node.ty.text {
                "u64" => true,
                "s64" => false,
                _ => {
                    sink.error(Code::UnsupportedCast, node.ty.span, "Unsupported cast operation")
                        .help("constants are cast to .s64 or .u64");
                    return fold_at(&node.value, sink, depth);
                }
            };
            match fold_at(&node.value, sink, depth)? {
                Const::Int { value, .. } => Some(Const::Int { value, unsigned }),
                _ => {
                    integer_expected(node.value.span(), sink);
                    Some(Const::Int { value: 0, unsigned })
                }
            }
        }
        _ => None,
    }
}

/// Are all digits of a decimal number before its exponent zeros?
fn is_zero(text: &str) -> bool {
    text.bytes().take_while(|b| !matches!(b, b'e' | b'E')).all(|b| matches!(b, b'0' | b'.'))
}

fn unary(node: &Unary, sink: &mut Sink, depth: u32) -> Option<Const> {
    let inner = fold_at(&node.value, sink, depth)?;
    if let (Const::F32(_), Tree::Literal(literal)) = (inner, &node.value) {
        let message = format!("Parsing error near '{}': syntax error", literal.text);
        sink.error(Code::SyntaxError, literal.span, message)
            .help("set the sign bit in the constant instead of writing an operator before it");
        return Some(inner);
    }
    match (node.op, inner) {
        (UnaryOp::Plus, _) => Some(inner),
        (UnaryOp::Minus, Const::Int { value, unsigned }) => {
            Some(Const::Int { value: value.wrapping_neg(), unsigned })
        }
        (UnaryOp::Minus, Const::F64(bits)) => Some(Const::F64(bits ^ 1 << 63)),
        (UnaryOp::Minus, float) => Some(Const::Decimal(-float.as_f64())),
        (UnaryOp::Not, Const::Int { value, .. }) => Some(Const::signed(i64::from(value == 0))),
        (UnaryOp::Complement, Const::Int { value, .. }) => Some(Const::Int { value: !value, unsigned: true }),
        (UnaryOp::Not | UnaryOp::Complement, _) => {
            integer_expected(node.value.span(), sink);
            Some(Const::signed(0))
        }
    }
}

fn binary(node: &Binary, sink: &mut Sink, depth: u32) -> Option<Const> {
    let left = fold_at(&node.left, sink, depth)?;
    let right = fold_at(&node.right, sink, depth)?;
    if left.is_float() != right.is_float() {
        sink.error(Code::ConstantTypeMismatch, node.span, "Constant expression type mismatch")
            .help("both sides of an operator must be integers, or both floating-point numbers");
    }
    match (left, right) {
        (Const::Int { value: a, unsigned: ua }, Const::Int { value: b, unsigned: ub }) => {
            integer_binary(node, (a, ua), (b, ub), sink)
        }
        _ => float_binary(node, left, right, sink),
    }
}

fn division_by_zero(span: Span, sink: &mut Sink) {
    sink.error(Code::ConstantDivisionByZero, span, "Constant expression has division by zero");
}

fn integer_binary(
    node: &Binary,
    (a, ua): (u64, bool),
    (b, ub): (u64, bool),
    sink: &mut Sink,
) -> Option<Const> {
    let unsigned = ua || ub;
    let (sa, sb) = (a as i64, b as i64);
    let int = |value: u64| Some(Const::Int { value, unsigned });
    let bits = |value: u64| Some(Const::Int { value, unsigned: true });
    let truth = |value: bool| Some(Const::signed(i64::from(value)));
    let ordering = if unsigned { a.cmp(&b) } else { sa.cmp(&sb) };
    match node.op {
        BinaryOp::Mul => int(a.wrapping_mul(b)),
        BinaryOp::Add => int(a.wrapping_add(b)),
        BinaryOp::Sub => int(a.wrapping_sub(b)),
        BinaryOp::Div | BinaryOp::Rem if b == 0 => {
            division_by_zero(node.right.span(), sink);
            int(0)
        }
        BinaryOp::Div => int(if unsigned { a / b } else { sa.wrapping_div(sb) as u64 }),
        BinaryOp::Rem => int(if unsigned { a % b } else { sa.wrapping_rem(sb) as u64 }),
        // ptxas takes the count modulo 64: `1<<65` is 2.
        BinaryOp::Shl => Some(Const::Int { value: a.wrapping_shl(b as u32), unsigned: ua }),
        BinaryOp::Shr if ua => Some(Const::Int { value: a.wrapping_shr(b as u32), unsigned: ua }),
        BinaryOp::Shr => Some(Const::Int { value: sa.wrapping_shr(b as u32) as u64, unsigned: ua }),
        BinaryOp::Lt => truth(ordering.is_lt()),
        BinaryOp::Gt => truth(ordering.is_gt()),
        BinaryOp::Le => truth(ordering.is_le()),
        BinaryOp::Ge => truth(ordering.is_ge()),
        BinaryOp::Eq => truth(a == b),
        BinaryOp::Ne => truth(a != b),
        BinaryOp::And => bits(a & b),
        BinaryOp::Xor => bits(a ^ b),
        BinaryOp::Or => bits(a | b),
        BinaryOp::LogicalAnd => truth(a != 0 && b != 0),
        BinaryOp::LogicalOr => truth(a != 0 || b != 0),
    }
}

fn float_binary(node: &Binary, left: Const, right: Const, sink: &mut Sink) -> Option<Const> {
    let (a, b) = (left.as_f64(), right.as_f64());
    let truth = |value: bool| Some(Const::signed(i64::from(value)));
    match node.op {
        BinaryOp::Mul => Some(Const::Decimal(a * b)),
        BinaryOp::Add => Some(Const::Decimal(a + b)),
        BinaryOp::Sub => Some(Const::Decimal(a - b)),
        BinaryOp::Div if b == 0.0 => {
            division_by_zero(node.right.span(), sink);
            Some(Const::Decimal(0.0))
        }
        BinaryOp::Div => Some(Const::Decimal(a / b)),
        BinaryOp::Lt => truth(a < b),
        BinaryOp::Gt => truth(a > b),
        BinaryOp::Le => truth(a <= b),
        BinaryOp::Ge => truth(a >= b),
        BinaryOp::Eq => truth(a == b),
        BinaryOp::Ne => truth(a != b),
        _ => {
            integer_expected(node.span, sink);
            Some(Const::signed(0))
        }
    }
}

fn ternary(node: &Ternary, sink: &mut Sink, depth: u32) -> Option<Const> {
    let condition = fold_at(&node.condition, sink, depth)?;
    let yes = fold_at(&node.yes, sink, depth)?;
    let no = fold_at(&node.no, sink, depth)?;
    for (value, tree) in [(condition, &node.condition), (yes, &node.yes), (no, &node.no)] {
        if value.is_float() {
            integer_expected(tree.span(), sink);
        }
    }
    Some(if condition.as_f64() != 0.0 { yes } else { no })
}
