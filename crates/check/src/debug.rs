//! Debugging directives: indices of files and the data of sections (PTX ISA, "Debugging Directives").

use diag::Code;
use isa::Type;
use syntax::Value as Number;
use syntax::tree::{File, Literal, Loc, Operand, Section, SectionData, SectionLine, UnaryOp};

use crate::checker::Checker;

impl<'a> Checker<'a> {
    /// `.file 1 "name"`: each index is unique.
    pub(crate) fn file(&mut self, node: &File<'a>) {
        if let Some(Number::Integer { value, .. }) = node.index.value()
            && !self.files.insert(value)
        {
            let message = format!("Duplicate file index #{value}");
            self.sink.error(Code::DuplicateDefinition, node.index.span, message);
        }
    }

    /// `.loc`: the position in `inlined_at` must be that of an earlier `.loc`.
    pub(crate) fn loc(&mut self, node: &Loc<'a>) {
        let place = |literals: [&Literal<'a>; 3]| literals.map(|literal| literal.text);
        if let Some(inlined) = &node.inlined {
            let at = place([&inlined.file, &inlined.line, &inlined.column]);
            if !self.locations.contains(&at) {
                let message = format!(
                    "Source location {} used in inlined_at directive must be used in a preceding .loc directive",
                    at.join(" ")
                );
                self.sink.error(Code::UnknownLocation, node.span, message);
            }
            self.inlined_functions.push(inlined.function_name);
        }
        self.locations.insert(place([&node.file, &node.line, &node.column]));
    }

    /// Checks the labels of inlined functions at the end of the file.
    pub(crate) fn inlined_functions(&mut self) {
        for name in std::mem::take(&mut self.inlined_functions) {
            if !self.section_labels.contains_key(name.text) {
                let message = format!("Unresolved label '{}' used in function_name attribute.", name.text);
                let help = "the names of inlined functions stand in a `.section .debug_str`";
                self.sink.last_error(Code::UnknownLocation, name.span, message).help(help);
            }
        }
    }

    /// `.section .debug_info { .b8 1, 2 }`
    pub(crate) fn section(&mut self, node: &Section<'a>) {
        self.debug = None;
        for line in &node.lines {
            match line {
                SectionLine::Data(data) => self.section_data(data),
                SectionLine::Label(name) => {
                    if let Some(previous) = self.section_labels.insert(name.text, name.span) {
                        self.duplicate("label", name.text, name.span, previous);
                    }
                }
            }
        }
    }

    fn section_data(&mut self, data: &SectionData<'a>) {
        let ty = match data.width.text {
            "b8" => Type::B8,
            "b16" => Type::B16,
            "b32" | "b64" => return,
            _ => {
                let help = "data of a section is .b8, .b16, .b32 or .b64";
                self.sink
                    .error(Code::NotADeclaredType, data.width.span, "Illegal type for dwarf data")
                    .help(help);
                return;
            }
        };
        for operand in &data.values {
            let Some(value) = number(operand) else {
                self.sink.error(Code::NotADeclaredType, operand.span(), "Illegal type for dwarf data");
                continue;
            };
            let bits = ty.bits();
            if !(-(1 << (bits - 1))..1 << bits).contains(&value) {
                let message = format!("Value out of range for type {ty} {value}");
                self.sink.error(Code::OutOfRange, operand.span(), message);
            }
        }
    }
}

/// An integer, with or without a minus.
fn number(operand: &Operand) -> Option<i128> {
    match operand {
        Operand::Literal(literal) => match literal.value()? {
            Number::Integer { value, .. } => Some(value.into()),
            _ => None,
        },
        Operand::Unary(node) if node.op == UnaryOp::Minus => number(&node.value).map(|value| -value),
        _ => None,
    }
}
