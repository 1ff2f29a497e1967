//! Prints a tree as PTX. Parsing the output gives an equal tree; comments and layout of the source are lost.

use std::fmt::{self, Display, Formatter, Write};

use crate::tree::{
    Attribute, Block, Declarator, Directive, Function, FunctionKind, Initializer, Instruction, Item, Linkage,
    Loc, Operand, Parameter, Qualifiers, Section, SectionLine, Statement, Tree, Variable,
};

impl Display for Tree<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.items.iter().try_for_each(|item| item.fmt(f))
    }
}

impl Display for Item<'_> {
    /// Prints the item and a line feed.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Item::Directive(directive) => directive.fmt(f)?,
            Item::Variable(variable) => variable.fmt(f)?,
            Item::Function(function) => return print_function(f, function),
            Item::Alias(alias) => write!(f, ".alias {}, {};", alias.alias.text, alias.aliasee.text)?,
            Item::File(file) => {
                write!(f, ".file {} {}", file.index.text, file.name.text)?;
                for number in file.timestamp.iter().chain(&file.size) {
                    write!(f, ", {}", number.text)?;
                }
            }
            Item::Section(section) => print_section(f, section)?,
        }
        f.write_char('\n')
    }
}

impl Display for Directive<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name.text)?;
        if !self.arguments.is_empty() {
            f.write_char(' ')?;
            list(f, &self.arguments)?;
        }
        // Of the directives printed here, only `.pragma` ends with a `;`.
        if self.name.text == "pragma" { f.write_char(';') } else { Ok(()) }
    }
}

fn print_linkage(f: &mut Formatter<'_>, linkage: Option<&Linkage>) -> fmt::Result {
    linkage.map_or(Ok(()), |linkage| write!(f, ".{} ", linkage.kind.name()))
}

fn print_section(f: &mut Formatter<'_>, section: &Section) -> fmt::Result {
    writeln!(f, ".section .{}\n{{", section.name.text)?;
    for line in &section.lines {
        match line {
            SectionLine::Label(label) => writeln!(f, "{}:", label.text)?,
            SectionLine::Data(data) => {
                write!(f, "\t.{} ", data.width.text)?;
                list(f, &data.values)?;
                f.write_char('\n')?;
            }
        }
    }
    f.write_char('}')
}

/// Prints the head of a function, its body or `;`, and a line feed.
fn print_function(f: &mut Formatter<'_>, function: &Function) -> fmt::Result {
    print_head(f, function)?;
    match &function.body {
        Some(body) => {
            f.write_char('\n')?;
            print_block(f, body, 0)
        }
        None => f.write_str(";\n"),
    }
}

fn print_head(f: &mut Formatter<'_>, function: &Function) -> fmt::Result {
    print_linkage(f, function.linkage.as_ref())?;
    f.write_str(if function.kind == FunctionKind::Entry { ".entry " } else { ".func " })?;
    print_attributes(f, &function.attributes)?;
    if let Some(returns) = &function.returns {
        print_parameters(f, returns)?;
        f.write_char(' ')?;
    }
    f.write_str(function.name.text)?;
    if let Some(parameters) = &function.parameters {
        print_parameters(f, parameters)?;
    }
    function.directives.iter().try_for_each(|directive| write!(f, "\n{directive}"))
}

fn print_parameters(f: &mut Formatter<'_>, parameters: &[Parameter]) -> fmt::Result {
    f.write_char('(')?;
    for (i, parameter) in parameters.iter().enumerate() {
        f.write_str(if i > 0 { ",\n\t" } else { "\n\t" })?;
        parameter.fmt(f)?;
    }
    f.write_str(if parameters.is_empty() { ")" } else { "\n)" })
}

impl Display for Parameter<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(space) = self.space {
            write!(f, ".{} ", space.text)?;
        }
        self.qualifiers.fmt(f)?;
        if let Some(pointer) = &self.pointer {
            f.write_str(" .ptr")?;
            if let Some(space) = pointer.space {
                write!(f, " .{}", space.text)?;
            }
            if let Some(align) = &pointer.align {
                write!(f, " .align {align}")?;
            }
        }
        write!(f, " {}", self.name.text)?;
        print_dimensions(f, &self.dimensions)
    }
}

impl Display for Qualifiers<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        print_attributes(f, &self.attributes)?;
        if let Some(align) = &self.align {
            write!(f, ".align {align} ")?;
        }
        if let Some(vector) = self.vector {
            write!(f, ".{} ", vector.text)?;
        }
        write!(f, ".{}", self.ty.text)
    }
}

/// Prints `.attribute( … )` and a blank, if there are attributes.
fn print_attributes(f: &mut Formatter<'_>, attributes: &[Attribute]) -> fmt::Result {
    for (i, attribute) in attributes.iter().enumerate() {
        write!(f, "{}.{}", if i > 0 { ", " } else { ".attribute(" }, attribute.name.text)?;
        if !attribute.arguments.is_empty() {
            f.write_char('(')?;
            list(f, &attribute.arguments)?;
            f.write_char(')')?;
        }
    }
    f.write_str(if attributes.is_empty() { "" } else { ") " })
}

fn print_dimensions(f: &mut Formatter<'_>, dimensions: &[Option<Operand>]) -> fmt::Result {
    dimensions.iter().try_for_each(|dimension| match dimension {
        Some(length) => write!(f, "[{length}]"),
        None => f.write_str("[]"),
    })
}

impl Display for Variable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        print_linkage(f, self.linkage.as_ref())?;
        if let Some(space) = self.space {
            write!(f, ".{} ", space.text)?;
        }
        self.qualifiers.fmt(f)?;
        for (i, declarator) in self.declarators.iter().enumerate() {
            write!(f, "{}{declarator}", if i > 0 { ", " } else { " " })?;
        }
        f.write_char(';')
    }
}

impl Display for Declarator<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.text)?;
        if let Some(count) = &self.count {
            write!(f, "<{count}>")?;
        }
        print_dimensions(f, &self.dimensions)?;
        self.initializer.as_ref().map_or(Ok(()), |initializer| write!(f, " = {initializer}"))
    }
}

impl Display for Initializer<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Initializer::Value(value) => value.fmt(f),
            Initializer::Field(field) => write!(f, "{} = {}", field.name.text, field.value),
            Initializer::List(values) => {
                f.write_char('{')?;
                list(f, &values.values)?;
                f.write_char('}')
            }
        }
    }
}

/// Prints values, separated by commas.
fn list(f: &mut Formatter<'_>, values: &[impl Display]) -> fmt::Result {
    for (i, value) in values.iter().enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        value.fmt(f)?;
    }
    Ok(())
}

/// Prints a block on its own lines.
fn print_block(f: &mut Formatter<'_>, block: &Block, depth: usize) -> fmt::Result {
    indent(f, depth)?;
    f.write_str("{\n")?;
    for statement in &block.statements {
        print_statement(f, statement, depth + 1)?;
    }
    indent(f, depth)?;
    f.write_str("}\n")
}

fn indent(f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
    (0..depth).try_for_each(|_| f.write_char('\t'))
}

/// Prints a statement on its own lines.
fn print_statement(f: &mut Formatter<'_>, statement: &Statement, depth: usize) -> fmt::Result {
    match statement {
        Statement::Block(block) => return print_block(f, block, depth),
        Statement::Label(label) => return writeln!(f, "{}:", label.text),
        _ => indent(f, depth)?,
    }
    match statement {
        Statement::Label(_) | Statement::Block(_) => {}
        Statement::Instruction(instruction) => instruction.fmt(f)?,
        Statement::Unfinished(instruction) => instruction.fmt(f)?,
        Statement::Variable(variable) => variable.fmt(f)?,
        Statement::Loc(loc) => loc.fmt(f)?,
        Statement::Directive(directive) => directive.fmt(f)?,
        Statement::Function(function) => {
            print_head(f, function)?;
            f.write_char(';')?;
        }
        Statement::Alias(alias) => write!(f, ".alias {}, {};", alias.alias.text, alias.aliasee.text)?,
        Statement::Targets(targets) => {
            write!(f, "{}: .{} ", targets.label.text, targets.directive.text)?;
            for (i, target) in targets.targets.iter().enumerate() {
                write!(f, "{}{}", if i > 0 { ", " } else { "" }, target.text)?;
            }
            f.write_char(';')?;
        }
        Statement::CallPrototype(prototype) => {
            write!(f, "{}: .callprototype ", prototype.label.text)?;
            if let Some(returns) = &prototype.returns {
                print_parameters(f, returns)?;
                f.write_char(' ')?;
            }
            f.write_char('_')?;
            if let Some(parameters) = &prototype.parameters {
                print_parameters(f, parameters)?;
            }
            prototype.directives.iter().try_for_each(|directive| write!(f, " {directive}"))?;
            f.write_char(';')?;
        }
    }
    f.write_char('\n')
}

impl Display for Statement<'_> {
    /// Prints the statement and a line feed.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        print_statement(f, self, 0)
    }
}

impl Display for Loc<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, ".loc {} {} {}", self.file.text, self.line.text, self.column.text)?;
        let Some(inlined) = &self.inlined else {
            return Ok(());
        };
        write!(f, ", function_name {}", inlined.function_name.text)?;
        if let Some(offset) = inlined.offset {
            write!(f, "+{}", offset.text)?;
        }
        write!(f, ", inlined_at {} {} {}", inlined.file.text, inlined.line.text, inlined.column.text)
    }
}

impl Display for Instruction<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(guard) = &self.guard {
            write!(f, "@{}{} ", if guard.negated { "!" } else { "" }, guard.predicate.text)?;
        }
        f.write_str(self.opcode.text)?;
        self.modifiers.iter().try_for_each(|modifier| write!(f, ".{}", modifier.text))?;
        if !self.operands.is_empty() {
            f.write_char(' ')?;
            list(f, &self.operands)?;
        }
        f.write_char(';')
    }
}

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        operand(f, self, level::WHOLE)
    }
}

/// Precedence of the parts of a constant expression. The levels of [`BinaryOp::level`](crate::tree::BinaryOp::level)
/// are between these.
mod level {
    /// No operand needs parentheses.
    pub const WHOLE: u8 = 0;
    /// The operand of a unary operator.
    pub const UNARY: u8 = 11;
}

/// Prints an operand, in parentheses if it binds less tightly than `level`. Prints no other parentheses, so that
/// expressions nested to the parser's limit can be parsed again.
fn operand(f: &mut Formatter<'_>, value: &Operand, level: u8) -> fmt::Result {
    match value {
        Operand::Name(name) | Operand::WarpSize(name) | Operand::Sink(name) => f.write_str(name.text),
        Operand::Literal(literal) | Operand::String(literal) => f.write_str(literal.text),
        Operand::Index(index) => write!(f, "{}[{}]", index.base.text, index.index),
        Operand::Element(element) => write!(f, "{}.{}", element.base.text, element.component.text),
        Operand::Unary(unary) => {
            f.write_str(unary.op.name())?;
            operand(f, &unary.value, level::UNARY)
        }
        Operand::Cast(cast) => {
            write!(f, "(.{}) ", cast.ty.text)?;
            operand(f, &cast.value, level::UNARY)
        }
        Operand::Binary(binary) if matches!(binary.left, Operand::Name(_) | Operand::Apply(_)) => {
            // A symbol: the rest is a whole constant expression or, in a section, another symbol.
            operand(f, &binary.left, level::WHOLE)?;
            f.write_str(binary.op.name())?;
            operand(f, &binary.right, level::WHOLE)
        }
        Operand::Binary(binary) => {
            let own = binary.op.level();
            parenthesized(f, own < level, |f| {
                operand(f, &binary.left, own)?;
                write!(f, " {} ", binary.op.name())?;
                operand(f, &binary.right, own + 1)
            })
        }
        Operand::Ternary(ternary) => parenthesized(f, level > level::WHOLE, |f| {
            operand(f, &ternary.condition, 1)?;
            write!(f, " ? {} : {}", ternary.yes, ternary.no)
        }),
        Operand::Apply(apply) => write!(f, "{}({})", apply.function, apply.argument),
        Operand::Pair(pair) => write!(f, "{}|{}", pair.first, pair.second),
        Operand::Vector(vector) => {
            f.write_char('{')?;
            list(f, &vector.operands)?;
            f.write_char('}')
        }
        Operand::List(arguments) => {
            f.write_char('(')?;
            list(f, &arguments.operands)?;
            f.write_char(')')
        }
        Operand::Address(address) => {
            write!(f, "[{}", address.location)?;
            address.coordinates.iter().try_for_each(|coordinate| write!(f, ", {coordinate}"))?;
            f.write_char(']')
        }
    }
}

fn parenthesized(
    f: &mut Formatter<'_>,
    parentheses: bool,
    inside: impl FnOnce(&mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    f.write_str(if parentheses { "(" } else { "" })?;
    inside(f)?;
    f.write_str(if parentheses { ")" } else { "" })
}
