//! Errors that ptxas finds only when it generates code: 32-bit addresses, more memory than any GPU has, calls that
//! violate the ABI, undefined functions. Its front end (`ptxas -c -arch compute_…`) accepts all of this.

use std::collections::HashSet;

use diag::{Code, Diagnostic, Span};
use isa::{Action, Effect, Mod, Space, Target};

use crate::Assembly;
use crate::checker::Checker;
use crate::module::{
    AddressBase, Body, FuncId, Instruction, Linkage, Operand, RegId, Symbol, VarId, Variable,
};

/// Bytes of shared memory that a kernel may have without requesting more at its launch.
const STATIC_SHARED: u64 = 48 << 10;
/// Greatest size in bytes of the `.const` variables of a file.
const CONSTANTS: u64 = 64 << 10;
/// The functions that a program need not define, because the device runtime of CUDA does.
const PROVIDED: [&str; 4] = ["__assertfail", "free", "malloc", "vprintf"];

impl Checker<'_> {
    /// Checks a module that has no errors so far.
    pub(crate) fn assemble(&mut self) {
        let narrow = self.narrow_addresses();
        if !self.says_address_size && narrow.is_empty() {
            self.address_size = 64;
        }
        if self.options.assembly == Assembly::FrontEnd {
            return;
        }
        let mut said = Vec::new();
        self.address_width(&narrow, &mut said);
        self.constants(&mut said);
        for kernel in 0..self.functions.len() {
            self.shared_memory(FuncId(kernel as u32), &mut said);
        }
        for function in &self.functions {
            if let Some(body) = &function.body {
                self.call_sequences(body, &mut said);
            }
        }
        if self.options.assembly == Assembly::Whole {
            self.unresolved(&mut said);
        }
        for diagnostic in said {
            self.sink.last(diagnostic);
        }
    }

    /// The instructions with 32-bit addresses in global memory. A file without `.address_size` has 64-bit addresses
    /// unless it contains such an instruction.
    fn narrow_addresses(&self) -> Vec<Span> {
        let bodies = self.functions.iter().filter_map(|function| function.body.as_ref());
        let narrow = bodies.flat_map(|body| body.instructions().filter(|i| self.has_narrow_address(body, i)));
        narrow.map(|i| i.span).collect()
    }

    /// Reports 32-bit addresses. No current GPU has them, so that ptxas rejects them; ptxvm runs modules of 32-bit
    /// addresses.
    fn address_width(&self, narrow: &[Span], said: &mut Vec<Diagnostic>) {
        let message = match self.target.has(Target::sm(90)) {
            true => {
                "32-Bit ABI (--machine 32 or 32-Bit addressing) is not supported on sm_90 or higher architectures."
            }
            false => "32-Bit compilation is no longer supported",
        };
        if self.address_size == 32 {
            let help = "ptxvm runs it all the same; ptxas 13.5 makes no code of it";
            return said.push(Diagnostic::warning(Code::NarrowAddress, Span::at(0), message).help(help));
        }
        let Some(&first) = narrow.first() else { return };
        for &span in narrow {
            let line = self.source.position(span.start).line;
            let message = format!(
                "Program uses 32-bit address on line '{line}' which is conflicting with .address_size 64"
            );
            said.push(Diagnostic::warning(Code::NarrowAddress, span, message));
        }
        let help = "addresses in global memory, and generic ones, are in registers of 64 bits";
        said.push(Diagnostic::error(Code::NarrowAddress, first, message).help(help));
    }

    /// Does the instruction have a 32-bit address where addresses are as wide as the module's?
    fn has_narrow_address(&self, body: &Body, i: &Instruction) -> bool {
        // A special register that is used as an address counts as wide enough.
        let is_narrow = |id: RegId| {
            let register = &body.registers[id.index()];
            register.ty.bits() == 32 && crate::special::find(&register.name, None).is_none()
        };
        let Action::Effect(effect) = i.form.action else { return false };
        let has = |modifier| i.picks.has(modifier);
        match effect {
            _ if has(Mod::Async) || has(Mod::Tensormap) => false,
            Effect::Ld
            | Effect::St
            | Effect::Atom
            | Effect::Red
            | Effect::Prefetch
            | Effect::Discard
            | Effect::ApplyPriority
            | Effect::MultimemLd
            | Effect::MultimemSt
            | Effect::MultimemRed
            | Effect::Mbarrier => {
                let addresses = i.operands.iter().filter_map(|operand| match operand {
                    Operand::Address(base, _) => Some(base),
                    _ => None,
                });
                addresses.enumerate().any(|(index, base)| {
                    matches!(base, AddressBase::Reg(id) if is_narrow(*id))
                        && matches!(i.picks.space_of(index), Space::Generic | Space::Global)
                })
            }
            Effect::Cvta => i.picks.types().iter().all(|ty| ty.bits() == 32),
            Effect::Mov => match i.operands[..] {
                [Operand::Reg(id), Operand::Symbol(Symbol::Variable(variable), _)] => {
                    is_narrow(id) && self.variables[variable.index()].space == Space::Global
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn constants(&self, said: &mut Vec<Diagnostic>) {
        let constants: Vec<_> = self.variables.iter().filter(|v| v.space == Space::Const).collect();
        let bytes = bytes_together(constants.iter().copied());
        if let Some(last) = constants.last().filter(|_| bytes > CONSTANTS) {
            let message =
                format!("File uses too much global constant data ({bytes:#x} bytes, {CONSTANTS:#x} max)");
            let help = "keep large tables in .global memory";
            said.push(Diagnostic::error(Code::TooMuchMemory, last.span, message).help(help));
        }
    }

    /// Checks the size of the shared memory that a kernel and the functions that it calls name.
    fn shared_memory(&self, kernel: FuncId, said: &mut Vec<Diagnostic>) {
        let function = &self.functions[kernel.index()];
        if !function.is_entry || self.shared_bytes() <= STATIC_SHARED {
            return;
        }
        let (mut functions, mut variables) = (vec![kernel], HashSet::new());
        let mut known: HashSet<FuncId> = functions.iter().copied().collect();
        while let Some(id) = functions.pop() {
            let Some(body) = &self.functions[id.index()].body else { continue };
            let own = (0..self.variables.len()).filter(|&i| self.variables[i].function == Some(body.owner));
            variables.extend(own.map(|i| VarId(i as u32)));
            for i in body.instructions() {
                i.operands.iter().for_each(|operand| {
                    each_symbol(operand, &mut |symbol| match symbol {
                        Symbol::Variable(variable) => {
                            variables.insert(variable);
                        }
                        Symbol::Function(id) if known.insert(id) => functions.push(id),
                        _ => {}
                    });
                });
            }
        }
        let named = self.variables.iter().enumerate();
        let named = named.filter(|&(i, v)| v.space == Space::Shared && variables.contains(&VarId(i as u32)));
        let bytes = bytes_together(named.map(|(_, variable)| variable));
        if bytes > STATIC_SHARED {
            let message = format!(
                "Entry function '{}' uses too much shared data ({bytes:#x} bytes, {STATIC_SHARED:#x} max)",
                function.name
            );
            let help = "declare it `.extern .shared x[]`, and give its size at the launch";
            said.push(Diagnostic::error(Code::TooMuchMemory, function.span, message).help(help));
        }
    }

    /// Size of all shared variables in bytes.
    fn shared_bytes(&self) -> u64 {
        bytes_together(self.variables.iter().filter(|variable| variable.space == Space::Shared))
    }

    /// Reports a read of a return parameter that no call before it has written.
    fn call_sequences(&self, body: &Body, said: &mut Vec<Diagnostic>) {
        let mut returned = HashSet::new();
        let variable = |operand: &Operand| match operand {
            Operand::Symbol(Symbol::Variable(id), _)
            | Operand::Address(AddressBase::Symbol(Symbol::Variable(id)), _) => Some(*id),
            _ => None,
        };
        for i in body.instructions() {
            match i.form.action {
                Action::Effect(Effect::Call) => {
                    if let Some(Operand::List(returns)) = i.operands.first() {
                        returned.extend(returns.iter().filter_map(variable));
                    }
                }
                Action::Effect(Effect::Ld) => {
                    let Some(id) = i.operands.get(1).and_then(variable) else { continue };
                    let Variable { space, name, .. } = &self.variables[id.index()];
                    if *space == Space::Param && !returned.contains(&id) {
                        let message = format!(
                            "Function call sequence invalid: 'ld.param' of '{name}' without corresponding call"
                        );
                        let help = "a call that returns into it stands before";
                        said.push(Diagnostic::error(Code::CallSequence, i.span, message).help(help));
                    }
                }
                _ => {}
            }
        }
    }

    /// Reports functions and variables that the file declares and uses, but does not define.
    fn unresolved(&mut self, said: &mut Vec<Diagnostic>) {
        let mut used = HashSet::new();
        let bodies = self.functions.iter().filter_map(|function| function.body.as_ref());
        for i in bodies.flat_map(Body::instructions) {
            i.operands.iter().for_each(|operand| {
                each_symbol(operand, &mut |symbol| {
                    used.insert(symbol);
                })
            });
        }
        for (index, function) in self.functions.iter().enumerate() {
            let is_used = used.contains(&Symbol::Function(FuncId(index as u32)));
            let is_wanted = is_used || function.linkage != Linkage::Extern;
            if function.body.is_none() && is_wanted && !PROVIDED.contains(&function.name.as_str()) {
                let message = format!("Unresolved extern function '{}'", function.name);
                let help = "define it here, or link this file with the one that does";
                said.push(Diagnostic::error(Code::Unresolved, function.span, message).help(help));
            }
        }
        for variable in &self.variables {
            let is_dynamic = variable.space == Space::Shared && variable.bytes == 0;
            if variable.linkage == Linkage::Extern && !is_dynamic {
                let message = format!(
                    "Unresolved extern variable '{}' in whole program compilation, ignoring extern qualifier",
                    variable.name
                );
                said.push(Diagnostic::warning(Code::Unresolved, variable.span, message));
            }
        }
    }
}

/// Size in bytes of consecutive variables.
fn bytes_together<'v>(variables: impl Iterator<Item = &'v Variable>) -> u64 {
    variables.fold(0, |end: u64, variable| {
        let start = end.checked_next_multiple_of(variable.align.max(1)).unwrap_or(u64::MAX);
        start.saturating_add(variable.bytes)
    })
}

/// Visits the symbols in an operand.
fn each_symbol(operand: &Operand, each: &mut impl FnMut(Symbol)) {
    match operand {
        Operand::Symbol(symbol, _) | Operand::Address(AddressBase::Symbol(symbol), _) => each(*symbol),
        Operand::Function(id) => each(Symbol::Function(*id)),
        Operand::Vector(operands) | Operand::List(operands) | Operand::Resident(operands, _) => {
            operands.iter().for_each(|operand| each_symbol(operand, each));
        }
        Operand::Tensor(tensor) => each_symbol(&tensor.map, each),
        _ => {}
    }
}
