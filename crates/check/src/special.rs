//! Special registers as operands.

use diag::{Code, Help, Span};
use isa::{Action, Effect, Property, Requirement, SpecialRegister, SpecialValue};

use crate::body::BodyChecker;
use crate::checker::Checker;
use crate::context::Context;
use crate::value::{Lowered, Value};

/// The meaning of a special register's name.
pub(crate) enum Found {
    /// `%laneid`, `%tid.x`
    Scalar(SpecialRegister),
    /// `%tid` without a component, given by its first component. It means all components, which only `mov.v4` takes.
    Vector(SpecialRegister),
}

/// Finds a special register.
pub(crate) fn find(name: &str, component: Option<&str>) -> Option<Found> {
    if !name.starts_with('%') {
        return None;
    }
    match component {
        Some(component) => {
            let is_it = |names: &[&str; 4]| names.iter().position(|&name| name == component);
            let index = is_it(&["x", "y", "z", "w"]).or_else(|| is_it(&["r", "g", "b", "a"]))?;
            SpecialRegister::element(name, index).map(Found::Scalar)
        }
        None => match SpecialRegister::from_name(name) {
            Some(register) => Some(Found::Scalar(register)),
            None => SpecialRegister::element(name, 0).map(Found::Vector),
        },
    }
}

/// `tid` for `%tid`.
pub(crate) fn without_percent(name: &str) -> Option<Help> {
    let register = format!("%{name}");
    find(&register, None)?;
    let text = format!("special registers begin with a percent sign: '{register}'");
    Some(Help { text, instead: Some(register) })
}

/// The name of a special register (with or without its component) that is nearest to a name that begins with `%`.
pub(crate) fn nearest(name: &str) -> Option<Help> {
    let names = SpecialRegister::all().map(|register| register.name().split('.').next().unwrap_or_default());
    let near = diag::nearest(name, names).filter(|_| name.starts_with('%'))?;
    let text = format!("did you mean the special register '{near}'?");
    Some(Help { text, instead: Some(near.to_owned()) })
}

/// Reports what a special register requires of `.version` and `.target`.
pub(crate) fn check_gates(module: &mut Checker, register: SpecialRegister, span: Span) {
    if !module.knows_target() {
        return;
    }
    for gate in register.gates() {
        if gate.permits(module.version, module.target) {
            continue;
        }
        let message = gate.message(module.version, module.target);
        let fix = module.gate_fix(gate.requires);
        match gate.requires {
            Requirement::Version(_) => module.need_version(span, message, fix),
            _ => module.need_target(span, message, fix),
        }
    }
}

impl BodyChecker<'_, '_> {
    /// A kernel that reads the address or size of its CTA's memory must declare the size of that memory.
    pub(crate) fn check_block_memory(&mut self, operands: &[Lowered]) {
        let function = &self.module.functions[self.function.index()];
        if !function.is_entry || function.bounds.per_cta_memory > 0 {
            return;
        }
        let asks = |lowered: &&Lowered| {
            let Value::Special(register) = lowered.value else { return false };
            matches!(register.value(), SpecialValue::Perctamemorysize | SpecialValue::Perctamemoryoffset)
        };
        if let Some(lowered) = operands.iter().find(asks) {
            let message = ".minperctamemory directive required for 'using special register %perctamemoryoffset and %perctamemorysize'";
            let help = "write how many bytes each block needs behind the parameters: `.minperctamemory 1024`";
            self.sink().error(Code::MissingDirective, lowered.span, message).help(help);
        }
    }
}

/// Does this instruction read special registers? `mov` and `cvt` between integers do.
pub(crate) fn anywhere(context: &Context) -> bool {
    context.form.action == Action::Effect(Effect::Mov) || context.has(Property::SpecialRegisters)
}
