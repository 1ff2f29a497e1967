//! Expressions about one lane: `%r1`, `%tid.x == 5 && %f2 > 1e3`, `[%rd4 + 8]:f32`, `.shared[0]`, `sum`.
//!
//! Operators and their precedence are those of C. `:type` says how bits are read. A name is the address of a variable
//! or parameter; brackets read memory. `lane`, `warp` and `time` are numbers of the debugger.

use ptxvm::debug::{Space, SpecialRegister, Type};

/// An expression, parsed.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Integer(i128),
    Float(f64),
    Special(SpecialRegister),
    /// A register, variable or parameter.
    Name(String),
    /// The lane's index in its warp.
    Lane,
    /// The warp's index in its block.
    Warp,
    /// Turns since the launch began.
    Time,
    Memory {
        space: Space,
        address: Box<Expression>,
        ty: Type,
    },
    /// The bits of a value, read as another type.
    Typed(Box<Expression>, Type),
    Unary(Unary, Box<Expression>),
    Binary(Binary, Box<Expression>, Box<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Minus,
    Not,
    Complement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The operators with their binding powers. One that is a prefix of another stands behind it.
const BINARY: [(&str, Binary, u8); 18] = [
    ("||", Binary::Or, 1),
    ("&&", Binary::And, 2),
    ("<<", Binary::ShiftLeft, 8),
    (">>", Binary::ShiftRight, 8),
    ("==", Binary::Equal, 6),
    ("!=", Binary::NotEqual, 6),
    ("<=", Binary::LessEqual, 7),
    (">=", Binary::GreaterEqual, 7),
    ("|", Binary::BitOr, 3),
    ("^", Binary::BitXor, 4),
    ("&", Binary::BitAnd, 5),
    ("<", Binary::Less, 7),
    (">", Binary::Greater, 7),
    ("+", Binary::Add, 9),
    ("-", Binary::Subtract, 9),
    ("*", Binary::Multiply, 10),
    ("/", Binary::Divide, 10),
    ("%", Binary::Remainder, 10),
];

/// State spaces that can be read, as they are written.
const SPACES: [(&str, Space); 6] = [
    (".global", Space::Global),
    (".shared", Space::Shared),
    (".local", Space::Local),
    (".const", Space::Const),
    (".param", Space::Param),
    (".generic", Space::Generic),
];

/// The state space with this name: `.shared`.
pub fn space(name: &str) -> Option<Space> {
    SPACES.iter().find(|(other, _)| *other == name).map(|(_, space)| *space)
}

/// The most operators and brackets around a part of an expression.
const MOST_DEPTH: u32 = 100;

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// What was expected where.
    pub fn parse(text: &str) -> Result<Expression, String> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let expression = parser.expression(0)?;
        match parser.rest().is_empty() {
            true => Ok(expression),
            false => Err(parser.expected("an operator or the end")),
        }
    }

    /// The names in it: registers, variables and parameters.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Expression::Name(name) => vec![name],
            Expression::Memory { address: inner, .. }
            | Expression::Typed(inner, _)
            | Expression::Unary(_, inner) => inner.names(),
            Expression::Binary(_, left, right) => [left.names(), right.names()].concat(),
            _ => Vec::new(),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    /// In bytes.
    at: usize,
    depth: u32,
}

impl<'t> Parser<'t> {
    /// What follows, without the spaces before it.
    fn rest(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn expected(&mut self, what: &str) -> String {
        match self.rest() {
            "" => format!("expected {what} at the end of `{}`", self.text),
            rest => format!("expected {what} before `{rest}`"),
        }
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    /// The characters that `fits` accepts.
    fn word(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn expression(&mut self, least: u8) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err("the expression is nested too deeply".to_owned());
        }
        let mut left = self.operand()?;
        loop {
            let rest = self.rest();
            let operator = BINARY.iter().find(|(token, ..)| rest.starts_with(token));
            let Some(&(token, operator, power)) = operator.filter(|(.., power)| *power > least) else {
                break;
            };
            self.at += token.len();
            let right = self.expression(power)?;
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Expression, String> {
        const PREFIX: [(&str, Unary); 3] = [("-", Unary::Minus), ("!", Unary::Not), ("~", Unary::Complement)];
        for (token, operator) in PREFIX {
            if self.take(token) {
                self.depth += 1;
                if self.depth > MOST_DEPTH {
                    return Err("the expression is nested too deeply".to_owned());
                }
                let operand = self.operand()?;
                self.depth -= 1;
                return Ok(Expression::Unary(operator, Box::new(operand)));
            }
        }
        let mut operand = self.primary()?;
        while self.take(":") {
            let ty = self.ty()?;
            operand = match operand {
                Expression::Memory { space, address, .. } => Expression::Memory { space, address, ty },
                other => Expression::Typed(Box::new(other), ty),
            };
        }
        Ok(operand)
    }

    fn ty(&mut self) -> Result<Type, String> {
        self.take(".");
        let name = self.word(|c| c.is_ascii_alphanumeric());
        let known = Type::from_name(name).filter(|ty| ty.bits() == 1 || ty.bits() >= 8);
        known.ok_or_else(|| format!("`{name}` is no type of PTX, as f32, s32 or b64"))
    }

    fn primary(&mut self) -> Result<Expression, String> {
        let rest = self.rest();
        if self.take("(") {
            let inner = self.expression(0)?;
            return if self.take(")") { Ok(inner) } else { Err(self.expected("`)`")) };
        }
        let space = SPACES.iter().find(|(name, _)| rest.starts_with(name));
        if let Some((name, _)) = space {
            self.at += name.len();
        }
        if self.take("[") {
            let address = Box::new(self.expression(0)?);
            if !self.take("]") {
                return Err(self.expected("`]`"));
            }
            let space = space.map_or(Space::Generic, |&(_, space)| space);
            return Ok(Expression::Memory { space, address, ty: Type::B32 });
        }
        if space.is_some() {
            return Err(self.expected("`[`"));
        }
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
        match self.word(is_name) {
            "" => Err(self.expected("a register, number, name or bracket")),
            "lane" => Ok(Expression::Lane),
            "warp" => Ok(Expression::Warp),
            "time" => Ok(Expression::Time),
            name => Ok(match SpecialRegister::from_name(name) {
                Some(special) => Expression::Special(special),
                None => Expression::Name(name.to_owned()),
            }),
        }
    }

    /// `7`, `0x1f`, `1.5`, `1e-3`, `0f3f800000`, `0d3ff0000000000000`
    fn number(&mut self) -> Result<Expression, String> {
        let start = self.at;
        let word = self.word(|c| c.is_ascii_alphanumeric() || c == '.');
        let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let (prefix, digits) = word.split_at(word.len().min(2));
        let special = match prefix {
            "0x" | "0X" => hexadecimal(digits).map(|value| Expression::Integer(value.into())),
            "0f" | "0F" if digits.len() == 8 => hexadecimal(digits)
                .map(|bits| Expression::Typed(Box::new(Expression::Integer(bits.into())), Type::F32)),
            "0d" | "0D" if digits.len() == 16 => {
                hexadecimal(digits).map(|bits| Expression::Float(f64::from_bits(bits)))
            }
            _ => None,
        };
        if let Some(number) = special {
            return Ok(number);
        }
        // The sign of an exponent.
        if word.ends_with(['e', 'E']) && self.text[self.at..].starts_with(['-', '+']) {
            self.at += 1;
            self.word(|c| c.is_ascii_digit());
        }
        let text = &self.text[start..self.at];
        let text = text.trim_end_matches(['u', 'U']);
        match text.parse::<u64>() {
            Ok(integer) => Ok(Expression::Integer(integer.into())),
            Err(_) => text.parse().map(Expression::Float).map_err(|_| format!("`{text}` is no number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(expression: &Expression) -> String {
        use Expression as E;
        match expression {
            E::Integer(value) => value.to_string(),
            E::Float(value) => format!("{value:?}"),
            E::Special(special) => special.name().to_owned(),
            E::Name(name) => name.clone(),
            E::Lane => "lane".to_owned(),
            E::Warp => "warp".to_owned(),
            E::Time => "time".to_owned(),
            E::Memory { space, address, ty } => format!("{space:?}[{}]:{}", text(address), ty.name()),
            E::Typed(inner, ty) => format!("{}:{}", text(inner), ty.name()),
            E::Unary(operator, inner) => format!("({operator:?} {})", text(inner)),
            E::Binary(operator, left, right) => format!("({} {operator:?} {})", text(left), text(right)),
        }
    }

    #[test]
    fn expressions_are_parsed_as_in_c() {
        for (source, parsed) in [
            ("%r1", "%r1"),
            ("%tid.x == 5 && %f2 > 1e-3", "((%tid.x Equal 5) And (%f2 Greater 0.001))"),
            ("1 + 2 * 3 - 4", "((1 Add (2 Multiply 3)) Subtract 4)"),
            ("(1 + 2) * -3", "((1 Add 2) Multiply (Minus 3))"),
            ("[%rd4+8]:f32", "Generic[(%rd4 Add 8)]:f32"),
            (".shared[tile + 4*lane]", "Shared[(tile Add (4 Multiply lane))]:b32"),
            ("%r1:f32 < 0f3F800000", "(%r1:f32 Less 1065353216:f32)"),
            ("0x10<<2|1", "((16 ShiftLeft 2) BitOr 1)"),
            ("a - -1", "(a Subtract (Minus 1))"),
            ("%r1%2", "%r1%2"),
            ("%r1 %2", "(%r1 Remainder 2)"),
            ("!%p1 || ~time >= warp", "((Not %p1) Or ((Complement time) GreaterEqual warp))"),
            ("0d3FF8000000000000", "1.5"),
            ("7U", "7"),
        ] {
            assert_eq!(Expression::parse(source).map(|e| text(&e)).as_deref(), Ok(parsed), "{source}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (source, message) in [
            ("", "expected a register, number, name or bracket at the end of ``"),
            ("1 +", "expected a register, number, name or bracket at the end of `1 +`"),
            ("(1", "expected `)` at the end of `(1`"),
            ("[1", "expected `]` at the end of `[1`"),
            ("1 2", "expected an operator or the end before `2`"),
            ("%r1:q", "`q` is no type of PTX, as f32, s32 or b64"),
            (".shared", "expected `[` at the end of `.shared`"),
            ("1x", "`1x` is no number"),
        ] {
            assert_eq!(Expression::parse(source), Err(message.to_owned()));
        }
        let deep = "(".repeat(100_000);
        assert_eq!(Expression::parse(&deep), Err("the expression is nested too deeply".to_owned()));
        let deep = "-".repeat(100_000);
        assert_eq!(Expression::parse(&deep), Err("the expression is nested too deeply".to_owned()));
    }
}
