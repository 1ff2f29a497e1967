//! The values of expressions in a lane.

use ptxvm::debug::{Call, Kind, Space, Stop, Symbol, Type};

use crate::expression::{Binary, Expression, Unary};
use crate::program::Program;

/// A thread of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    /// Linear index of its block in the grid.
    pub block: u64,
    /// Its linear index in the block.
    pub thread: usize,
}

/// Lanes of a warp.
pub const WARP: usize = 32;

impl Lane {
    /// Its warp in the block.
    pub fn warp(self) -> usize {
        self.thread / WARP
    }

    /// Its index in the warp.
    pub fn index(self) -> usize {
        self.thread % WARP
    }
}

/// A value, with the type that says how its bits are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Of a register, or of memory.
    Bits(Type, u128),
    /// What was computed.
    Integer(i128),
    /// The same.
    Float(f64),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Bits(ty, bits) => f.write_str(&ptxvm::observed::value::show(*ty, *bits)),
            Value::Integer(value) if value.unsigned_abs() < 1 << 20 => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value} ({value:#x})"),
            Value::Float(value) => write!(f, "{value:?}"),
        }
    }
}

impl Value {
    /// The value without its bits: `1.5`.
    pub fn short(&self) -> String {
        let text = self.to_string();
        text.split(" (0x").next().unwrap_or_default().to_owned()
    }

    /// Whether it is not zero.
    pub fn is_true(&self) -> bool {
        match self.number() {
            Number::Integer(value) => value != 0,
            Number::Float(value) => value != 0.0,
        }
    }

    fn number(&self) -> Number {
        match *self {
            Value::Integer(value) => Number::Integer(value),
            Value::Float(value) => Number::Float(value),
            Value::Bits(ty, bits) => match ty {
                Type::F32 | Type::Tf32 => Number::Float(f32::from_bits(bits as u32).into()),
                Type::F64 => Number::Float(f64::from_bits(bits as u64)),
                Type::F16 => Number::Float(ptxvm::f16::from_bits(bits as u16).into()),
                Type::Bf16 => Number::Float(ptxvm::bf16::from_bits(bits as u16).into()),
                _ if ty.kind() == Kind::Signed && ty.lanes() == 1 => {
                    let shift = 128 - ty.bits();
                    Number::Integer((bits << shift) as i128 >> shift)
                }
                _ => Number::Integer(bits as i128),
            },
        }
    }

    /// The bits, as a type of this width has them.
    fn bits(&self, ty: Type) -> u128 {
        let bits = match (*self, ty) {
            (Value::Bits(_, bits), _) => bits,
            (Value::Integer(value), _) => value as u128,
            (Value::Float(value), Type::F64) => value.to_bits().into(),
            (Value::Float(value), _) => (value as f32).to_bits().into(),
        };
        if ty.bits() >= 128 { bits } else { bits & ((1 << ty.bits()) - 1) }
    }
}

enum Number {
    Integer(i128),
    Float(f64),
}

/// What an expression is evaluated in: one call of one lane.
pub struct Scope<'s, 'a, 'l> {
    pub program: &'s Program,
    pub stop: &'s mut Stop<'a, 'l>,
    pub lane: Lane,
    /// Calls outwards from the innermost.
    pub depth: usize,
}

impl<'l> Scope<'_, '_, 'l> {
    fn call(&self) -> Result<Call<'_, 'l>, String> {
        let Lane { block, thread } = self.lane;
        let call = self.stop.call(block, thread, self.depth);
        call.ok_or_else(|| "the thread is not running".to_owned())
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// Why it has none: an unknown name, memory that is not there.
    pub fn evaluate(&mut self, expression: &Expression) -> Result<Value, String> {
        let Lane { block, thread } = self.lane;
        Ok(match expression {
            Expression::Integer(value) => Value::Integer(*value),
            Expression::Float(value) => Value::Float(*value),
            Expression::Lane => Value::Integer(self.lane.index() as i128),
            Expression::Warp => Value::Integer(self.lane.warp() as i128),
            Expression::Time => Value::Integer(self.stop.time().into()),
            Expression::Special(special) => {
                let value = self.stop.special(block, thread, *special);
                Value::Bits(special.ty(), value.ok_or("the thread is not running")?.into())
            }
            Expression::Name(name) => self.named(name)?,
            Expression::Memory { space, address, ty } => {
                let (space, address) = self.memory(*space, address)?;
                let data = self.stop.read(block, thread, space, address, ty.bits().div_ceil(8) as usize)?;
                Value::Bits(*ty, data.iter().rev().fold(0, |bits, byte| bits << 8 | u128::from(*byte)))
            }
            Expression::Typed(inner, ty) => Value::Bits(*ty, self.evaluate(inner)?.bits(*ty)),
            Expression::Unary(operator, inner) => {
                let value = self.evaluate(inner)?;
                match (operator, value.number()) {
                    (Unary::Not, _) => Value::Integer((!value.is_true()).into()),
                    (Unary::Minus, Number::Integer(value)) => Value::Integer(value.wrapping_neg()),
                    (Unary::Minus, Number::Float(value)) => Value::Float(-value),
                    (Unary::Complement, Number::Integer(number)) => match value {
                        Value::Bits(ty, bits) => Value::Bits(ty, Value::Integer(!(bits as i128)).bits(ty)),
                        _ => Value::Integer(!number),
                    },
                    (Unary::Complement, Number::Float(_)) => return Err("`~` wants an integer".to_owned()),
                }
            }
            Expression::Binary(operator, left, right) => {
                let left = self.evaluate(left)?;
                // The right side may have no value where the left side decides.
                match operator {
                    Binary::And if !left.is_true() => return Ok(Value::Integer(0)),
                    Binary::Or if left.is_true() => return Ok(Value::Integer(1)),
                    _ => {}
                }
                let right = self.evaluate(right)?;
                binary(*operator, &left, &right)?
            }
        })
    }

    /// The state space and address of memory. A variable has its own state space, also with a number added.
    ///
    /// # Errors
    /// As [`Scope::evaluate`].
    pub fn memory(&mut self, space: Space, address: &Expression) -> Result<(Space, u64), String> {
        let first = match address {
            Expression::Binary(_, left, _) => left,
            other => other,
        };
        let own = match first {
            Expression::Name(name) if space == Space::Generic => self.symbol(name)?.map(|(space, _)| space),
            _ => None,
        };
        Ok((own.unwrap_or(space), self.evaluate(address)?.bits(Type::B64) as u64))
    }

    fn named(&mut self, name: &str) -> Result<Value, String> {
        let call = self.call()?;
        let registers = self.program.registers(call.function(), call.body());
        if let Some(register) = registers.find(name) {
            return Ok(Value::Bits(registers.ty(register), call.register(register)));
        }
        let is_register = name.starts_with('%');
        match self.symbol(name)? {
            Some((_, address)) => Ok(Value::Bits(Type::B64, address.into())),
            None if is_register => Err(format!("this function has no register `{name}`")),
            None => Err(format!("no register, variable or parameter is called `{name}` here")),
        }
    }

    /// The state space and address of a variable, parameter or function.
    fn symbol(&mut self, name: &str) -> Result<Option<(Space, u64)>, String> {
        let call = self.call()?;
        if self.program.registers(call.function(), call.body()).find(name).is_some() {
            return Ok(None);
        }
        let symbol: Option<Symbol> = self.program.symbol(call.function(), call.body(), name);
        let Lane { block, thread } = self.lane;
        Ok(symbol.and_then(|symbol| self.stop.address(block, thread, self.depth, symbol)))
    }
}

fn binary(operator: Binary, left: &Value, right: &Value) -> Result<Value, String> {
    let truth = |value: bool| Ok(Value::Integer(value.into()));
    let (x, y) = match (left.number(), right.number()) {
        (Number::Integer(x), Number::Integer(y)) => (x, y),
        (x, y) => {
            let [x, y] = [x, y].map(|number| match number {
                Number::Integer(value) => value as f64,
                Number::Float(value) => value,
            });
            return match operator {
                Binary::Equal => truth(x == y),
                Binary::NotEqual => truth(x != y),
                Binary::Less => truth(x < y),
                Binary::LessEqual => truth(x <= y),
                Binary::Greater => truth(x > y),
                Binary::GreaterEqual => truth(x >= y),
                Binary::And | Binary::Or => truth(y != 0.0),
                Binary::Add => Ok(Value::Float(x + y)),
                Binary::Subtract => Ok(Value::Float(x - y)),
                Binary::Multiply => Ok(Value::Float(x * y)),
                Binary::Divide => Ok(Value::Float(x / y)),
                Binary::Remainder => Ok(Value::Float(x % y)),
                _ => Err("bits of floating-point numbers: write `%f1:b32`".to_owned()),
            };
        }
    };
    let shift = u32::try_from(y).ok().filter(|&shift| shift < 127);
    let zero = || "division by zero".to_owned();
    Ok(Value::Integer(match operator {
        Binary::Equal => return truth(x == y),
        Binary::NotEqual => return truth(x != y),
        Binary::Less => return truth(x < y),
        Binary::LessEqual => return truth(x <= y),
        Binary::Greater => return truth(x > y),
        Binary::GreaterEqual => return truth(x >= y),
        Binary::And | Binary::Or => return truth(y != 0),
        Binary::BitOr => x | y,
        Binary::BitXor => x ^ y,
        Binary::BitAnd => x & y,
        Binary::ShiftLeft => shift.map_or(0, |shift| x.wrapping_shl(shift)),
        Binary::ShiftRight => shift.map_or(0, |shift| x.wrapping_shr(shift)),
        Binary::Add => x.wrapping_add(y),
        Binary::Subtract => x.wrapping_sub(y),
        Binary::Multiply => x.wrapping_mul(y),
        Binary::Divide => x.checked_div(y).ok_or_else(zero)?,
        Binary::Remainder => x.checked_rem(y).ok_or_else(zero)?,
    }))
}
