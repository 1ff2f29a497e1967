//! Prints a module: one line for each item. Equal modules have equal output.

use std::fmt::{self, Display, Formatter};

use crate::module::{
    AddressBase, Body, Function, Instruction, Linkage, Module, Node, Operand, Param, RegId, Relocation,
    Symbol, Variable,
};

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "module version {} target {} address_size {}",
            self.version, self.target, self.address_size
        )?;
        for (i, variable) in self.variables.iter().enumerate() {
            writeln!(f, "variable {i}: {}", Item(self, variable))?;
        }
        for (i, function) in self.functions.iter().enumerate() {
            writeln!(f, "function {i}: {}", Item(self, function))?;
            if let Some(body) = &function.body {
                Printer { module: self, function, body }.body(f)?;
            }
        }
        Ok(())
    }
}

/// A value that needs its module to be printed.
struct Item<'m, T>(&'m Module, &'m T);

fn linkage(linkage: Linkage) -> &'static str {
    match linkage {
        Linkage::Internal => "",
        Linkage::Visible => "visible ",
        Linkage::Extern => "extern ",
        Linkage::Weak => "weak ",
        Linkage::Common => "common ",
    }
}

impl Display for Item<'_, Variable> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Item(module, variable) = self;
        let space = format!("{:?}", variable.space).to_lowercase();
        write!(
            f,
            "{}{space} {} {} bytes {}",
            linkage(variable.linkage),
            variable.ty,
            variable.name,
            variable.bytes
        )?;
        write!(f, " align {}", variable.align)?;
        if let Some(function) = variable.function {
            write!(f, " in {}", function.index())?;
        }
        if !variable.init.is_empty() {
            write!(f, " init ")?;
            for byte in &variable.init {
                write!(f, "{byte:02x}")?;
            }
        }
        for Relocation { offset, bytes, symbol, addend, generic, shift } in &variable.relocations {
            let name = match symbol {
                Symbol::Variable(id) => module.variables.get(id.index()).map_or("?", |v| &v.name),
                Symbol::Function(id) => module.functions.get(id.index()).map_or("?", |f| &f.name),
                Symbol::Param(_) | Symbol::Return(_) => "?",
            };
            let generic = if *generic { "generic " } else { "" };
            write!(f, " [{offset}..{}]={generic}{name}{addend:+}>>{shift}", offset + u64::from(*bytes))?;
        }
        Ok(())
    }
}

impl Display for Item<'_, Function> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Item(_, function) = self;
        let kind = if function.is_entry { "entry" } else { "func" };
        write!(f, "{}{kind} {}", linkage(function.linkage), function.name)?;
        for (word, params) in [("returns", &function.returns), ("params", &function.params)] {
            if !params.is_empty() {
                write!(f, " {word} (")?;
                for (i, param) in params.iter().enumerate() {
                    write!(f, "{}{}", if i > 0 { ", " } else { "" }, Printed(param))?;
                }
                write!(f, ")")?;
            }
        }
        if function.noreturn {
            write!(f, " noreturn")?;
        }
        if let Some(threads) = function.bounds.max_threads {
            write!(f, " max_threads {threads}")?;
        }
        if let Some([x, y, z]) = function.bounds.required {
            write!(f, " required {x},{y},{z}")?;
        }
        if let Some([x, y, z]) = function.bounds.required_cluster {
            write!(f, " required_cluster {x},{y},{z}")?;
        }
        if function.body.is_none() {
            write!(f, " declared")?;
        }
        Ok(())
    }
}

struct Printed<'p, T>(&'p T);

impl Display for Printed<'_, Param> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let param = self.0;
        let space = if param.in_register { "reg" } else { "param" };
        let name = if param.name.is_empty() { "_" } else { &param.name };
        write!(f, "{space} {} {name} bytes {} align {}", param.ty, param.bytes, param.align)?;
        if let Some((space, align)) = param.pointer {
            write!(f, " ptr {} align {align}", format!("{space:?}").to_lowercase())?;
        }
        Ok(())
    }
}

struct Printer<'m> {
    module: &'m Module,
    function: &'m Function,
    body: &'m Body,
}

impl Printer<'_> {
    fn body(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for register in &self.body.registers {
            writeln!(f, "  register {} {}", register.ty, register.name)?;
        }
        for (i, prototype) in self.body.prototypes.iter().enumerate() {
            write!(f, "  prototype {i}:")?;
            for (word, params) in [("returns", &prototype.returns), ("params", &prototype.params)] {
                for param in params {
                    write!(f, " {word} {}", Printed(param))?;
                }
            }
            writeln!(f)?;
        }
        for (i, targets) in self.body.branch_targets.iter().enumerate() {
            let names: Vec<&str> = targets.iter().map(|&id| self.label(id)).collect();
            writeln!(f, "  branch_targets {i}: {}", names.join(", "))?;
        }
        for node in &self.body.code {
            match node {
                Node::Label(id) => writeln!(f, " {}:", self.label(*id))?,
                Node::Instruction(instruction) => self.instruction(f, instruction)?,
            }
        }
        Ok(())
    }

    fn label(&self, id: crate::module::LabelId) -> &str {
        self.body.labels.get(id.index()).map_or("?", |label| &label.name)
    }

    fn register(&self, id: RegId) -> &str {
        self.body.registers.get(id.index()).map_or("?", |register| &register.name)
    }

    fn instruction(&self, f: &mut Formatter<'_>, instruction: &Instruction) -> fmt::Result {
        write!(f, "  ")?;
        if let Some((id, negated)) = instruction.guard {
            write!(f, "@{}{} ", if negated { "!" } else { "" }, self.register(id))?;
        }
        write!(f, "{}{:?}", instruction.form.opcode, instruction.picks)?;
        for (i, operand) in instruction.operands.iter().enumerate() {
            let parts = &instruction.picks.parts;
            let sign = match i {
                1 if parts.negated_product => "-",
                3 if parts.negated_addend => "-",
                _ => "",
            };
            write!(f, "{}{sign}", if i > 0 { ", " } else { " " })?;
            self.operand(f, operand)?;
            if let Some(selector) = instruction.picks.selector(i) {
                write!(f, "{selector}")?;
            }
        }
        writeln!(f)
    }

    fn list(&self, f: &mut Formatter<'_>, [open, close]: [&str; 2], operands: &[Operand]) -> fmt::Result {
        write!(f, "{open}")?;
        for (i, operand) in operands.iter().enumerate() {
            write!(f, "{}", if i > 0 { ", " } else { "" })?;
            self.operand(f, operand)?;
        }
        write!(f, "{close}")
    }

    fn symbol(&self, symbol: Symbol) -> &str {
        let (module, function) = (self.module, self.function);
        match symbol {
            Symbol::Variable(id) => module.variables.get(id.index()).map_or("?", |v| &v.name),
            Symbol::Function(id) => module.functions.get(id.index()).map_or("?", |f| &f.name),
            Symbol::Param(i) => function.params.get(i as usize).map_or("?", |p| &p.name),
            Symbol::Return(i) => function.returns.get(i as usize).map_or("?", |p| &p.name),
        }
    }

    fn base(&self, base: AddressBase) -> String {
        match base {
            AddressBase::Reg(id) => self.register(id).to_owned(),
            AddressBase::Symbol(symbol) => format!("&{}", self.symbol(symbol)),
            AddressBase::Absolute(address) => format!("{address:#x}"),
        }
    }

    fn operand(&self, f: &mut Formatter<'_>, operand: &Operand) -> fmt::Result {
        match operand {
            Operand::Reg(id) => write!(f, "{}", self.register(*id)),
            Operand::NotReg(id) => write!(f, "!{}", self.register(*id)),
            Operand::RegPlus(id, offset) => write!(f, "{}{offset:+}", self.register(*id)),
            Operand::Imm(bits) => write!(f, "{bits:#x}"),
            Operand::Special(register) => write!(f, "{}", register.name()),
            Operand::Symbol(symbol, offset) => write!(f, "&{}{offset:+}", self.symbol(*symbol)),
            Operand::Address(base, offset) => write!(f, "[{}{offset:+}]", self.base(*base)),
            Operand::Vector(operands) => self.list(f, ["{", "}"], operands),
            Operand::List(operands) => self.list(f, ["(", ")"], operands),
            Operand::Pair(first, second) => {
                let name = |id: &Option<RegId>| id.map_or("_", |id| self.register(id));
                write!(f, "{}|{}", name(first), name(second))
            }
            Operand::Resident(parts, predicate) => {
                self.list(f, ["{", "}"], parts)?;
                write!(f, "|{}", self.register(*predicate))
            }
            Operand::Texels(texels) => {
                write!(f, "[{}", self.base(texels.handle))?;
                if let Some(sampler) = texels.sampler {
                    write!(f, ", {}", self.base(sampler))?;
                }
                self.list(f, [", {", "}]"], &texels.coordinates)
            }
            Operand::Tensor(tensor) => {
                write!(f, "[")?;
                self.operand(f, &tensor.map)?;
                self.list(f, [", {", "}]"], &tensor.coordinates)
            }
            Operand::Sink => write!(f, "_"),
            Operand::Label(id) => write!(f, "{}", self.label(*id)),
            Operand::BranchTargets(id) => write!(f, "targets {}", id.index()),
            Operand::Function(id) => {
                write!(f, "{}", self.module.functions.get(id.index()).map_or("?", |f| &f.name))
            }
            Operand::Prototype(id) => write!(f, "prototype {}", id.index()),
        }
    }
}
