//! `array[index]`: the address of an element, in brackets or not (PTX ISA, "Arrays as Operands").

use diag::{Code, Span};
use isa::Type;
use syntax::tree::Index;

use crate::body::BodyChecker;
use crate::literal::{fold_integer, is_constant};
use crate::module::{Operand, RegId};
use crate::value::{SymbolValue, Value};

impl<'a> BodyChecker<'_, 'a> {
    pub(crate) fn lower_index(&mut self, node: &Index<'a>) -> Value {
        let symbol = match self.lower_name(node.base) {
            Value::Symbol(symbol) if symbol.array => symbol,
            Value::Symbol(_) => {
                let help = "a variable is an array if it is declared with a length, as x[4]";
                self.sink().error(Code::NotAnArray, node.span, "Array indexing on non-array").help(help);
                return Value::Unknown;
            }
            other => {
                self.sink().error(Code::NotAnArray, node.span, "Array indexing on non-array");
                return if matches!(other, Value::Unknown) { Value::Unknown } else { Value::Reported };
            }
        };
        if is_constant(&node.index) {
            let Some(index) = fold_integer(&node.index, self.sink()) else { return Value::Reported };
            let offset = (index as i64).wrapping_mul(i64::from(symbol.ty.bytes()));
            return Value::Indexed(SymbolValue { offset, ..symbol });
        }
        let span = node.index.span();
        let (index, ty, more) = match self.lower_value(&node.index) {
            Value::Register(id, ty) => (Operand::Reg(id), ty, 0),
            Value::RegisterPlus(id, ty, more) => (Operand::Reg(id), ty, more),
            Value::Symbol(other) => (Operand::Symbol(other.symbol, other.offset), self.address_type(), 0),
            Value::Reported => return Value::Reported,
            _ => return Value::Unknown,
        };
        if ty.is_float() || ty == Type::Pred {
            let word = self.module.source.slice(span).to_owned();
            let message = format!(
                "Illegal to use symbol '{word}' of type {ty} as array index. Use integer or bit only."
            );
            self.sink().error(Code::IllegalExpression, span, message);
            return Value::Reported;
        }
        let element = self.element_address(&symbol, index, ty, more, span);
        Value::Indexed(SymbolValue { element: Some(element), ..symbol })
    }

    /// The type of an address of the module.
    fn address_type(&self) -> Type {
        let narrow = self.module.says_address_size && self.module.address_size == 32;
        if narrow { Type::U32 } else { Type::U64 }
    }

    /// A register with the address of the element `index + more`. Like the code of ptxas, it converts the index to 32
    /// bits, whatever the width of its register, and adds the byte offset as an unsigned number.
    fn element_address(
        &mut self,
        symbol: &SymbolValue,
        index: Operand,
        ty: Type,
        more: i64,
        span: Span,
    ) -> RegId {
        let bytes = symbol.ty.bytes();
        let address = self.address_type();
        let sign = if ty.is_signed() { 's' } else { 'u' };
        let narrow = format!("{sign}{}", ty.bits());
        let constant = |value: i64| Operand::Imm(u64::from(value as u32));
        let array = Operand::Symbol(symbol.symbol, symbol.offset);
        let index = self.compute("cvt", &["u32", &narrow], Type::U32, vec![index], span);
        let sources =
            vec![Operand::Reg(index), constant(bytes.into()), constant(more.wrapping_mul(bytes.into()))];
        let mut offset = self.compute("mad", &["lo", "u32"], Type::U32, sources, span);
        if address != Type::U32 {
            let sources = vec![Operand::Reg(offset)];
            offset = self.compute("cvt", &[address.name(), "u32"], address, sources, span);
        }
        let array = self.compute("mov", &[address.name()], address, vec![array], span);
        let sources = vec![Operand::Reg(array), Operand::Reg(offset)];
        self.compute("add", &[address.name()], address, sources, span)
    }
}
