//! The module and the kernel that `ptxvm run` runs.

use std::path::Path;

use check::module::{Function, Linkage};
use ptxvm::{Error, Module, demangle, short_name};

use super::options::RunOptions;
use super::report::{Failure, code, say_text, stderr_color};
use super::{check as check_command, input};

/// Compiles and links the files; shows the diagnostics of all of them.
pub fn compile(options: &RunOptions) -> Result<Module, Failure> {
    let files: Vec<_> = options.files.iter().map(|file| compile_file(file, options)).collect();
    link(&files.into_iter().collect::<Result<Vec<_>, _>>()?, options)
}

fn link(modules: &[Module], options: &RunOptions) -> Result<Module, Failure> {
    match modules {
        [module] => Ok(module.clone()),
        [first, others @ ..] => first.link(others).map_err(|error| bad(&error, options)),
        [] => Err(Failure::usage("there is no file to run")),
    }
}

/// The module of a file. Of a program with several modules it is the one with the kernel. The others are linked to it
/// only if it needs them: most compilers make modules that stand alone, and use the same names in several.
fn compile_file(file: &Path, options: &RunOptions) -> Result<Module, Failure> {
    let input = input::read(file).map_err(|unreadable| {
        unreadable.show(options.format);
        Failure::silent(code::BAD_INPUT)
    })?;
    let check_options = check::Options { lenient: options.lenient, ..check::Options::default() };
    let mut modules = Vec::new();
    for source in input.sources {
        let module = Module::compile(source, &check_options).map_err(|error| bad(&error, options))?;
        for warning in module.warnings() {
            say_text(&diag::render(module.source(), warning, stderr_color()));
        }
        modules.push(module);
    }
    if modules.len() > 1 {
        let (index, _) = choose(&modules, options.entry.as_deref())?;
        modules.swap(0, index);
        if !needs(&modules[0], &modules[1..]) {
            modules.truncate(1);
        }
    }
    link(&modules, options)
}

/// Whether a module declares a function or variable that one of the others defines.
fn needs(module: &Module, others: &[Module]) -> bool {
    let module = &module.program().module;
    let functions = module.functions.iter().filter(|function| function.body.is_none());
    let functions = functions.map(|function| &function.name);
    let variables = module.variables.iter().filter(|variable| variable.linkage == Linkage::Extern);
    let mut declared = functions.chain(variables.map(|variable| &variable.name));
    declared.any(|name| others.iter().any(|other| defines(other, name)))
}

fn defines(module: &Module, name: &str) -> bool {
    let module = &module.program().module;
    let is_public = |linkage: Linkage| !matches!(linkage, Linkage::Internal | Linkage::Extern);
    let functions = module.functions.iter().filter(|function| function.body.is_some());
    let functions = functions.map(|function| (&function.name, function.linkage));
    let variables = module.variables.iter().map(|variable| (&variable.name, variable.linkage));
    functions.chain(variables).any(|(defined, linkage)| defined == name && is_public(linkage))
}

/// Shows what is wrong with a file.
fn bad(error: &Error, options: &RunOptions) -> Failure {
    match error {
        Error::Bad { source, diagnostics } => {
            match check_command::report(source, diagnostics, options.format) {
                Ok(()) => Failure::silent(code::BAD_INPUT),
                Err(failure) => failure,
            }
        }
        other => Failure::bad(other.to_string()),
    }
}

/// The kernel that `--entry` names, or the only one.
pub fn kernel<'a>(module: &'a Module, entry: Option<&str>) -> Result<&'a Function, Failure> {
    choose(std::slice::from_ref(module), entry).map(|(_, kernel)| kernel)
}

/// The kernel that `--entry` names, or the only one, and the index of its module. Of kernels with the same name,
/// which are instances of one template, it is the first.
fn choose<'a>(modules: &'a [Module], entry: Option<&str>) -> Result<(usize, &'a Function), Failure> {
    let mut kernels: Vec<(usize, &Function)> = Vec::new();
    for (index, module) in modules.iter().enumerate() {
        for kernel in module.kernels() {
            if kernels.iter().all(|(_, other)| other.name != kernel.name) {
                kernels.push((index, kernel));
            }
        }
    }
    let names = |kernels: &[(usize, &Function)]| {
        let show = |(_, kernel): &(usize, &Function)| match short_name(&kernel.name) {
            short if short == kernel.name => format!("\n    {short}"),
            short => format!("\n    {short}    {}", kernel.name),
        };
        kernels.iter().map(show).collect::<String>()
    };
    if kernels.is_empty() {
        return Err(Failure::bad(format!("`{}` has no kernel (.entry) to run", modules[0].source().name())));
    }
    let Some(name) = entry else {
        return match kernels[..] {
            [kernel] => Ok(kernel),
            _ => Err(Failure::usage("there are several kernels")
                .help(format!("choose one with --entry NAME:{}", names(&kernels)))),
        };
    };
    // Names of templates may contain blanks anywhere.
    let plain = |text: &str| text.replace(' ', "");
    let (demangled, wanted) = (|kernel: &Function| plain(&demangle(&kernel.name)), plain(name));
    let by = |test: &dyn Fn(&Function) -> bool| {
        kernels.iter().filter(|(_, kernel)| test(kernel)).copied().collect::<Vec<_>>()
    };
    if let [kernel] = by(&|kernel| kernel.name == name)[..] {
        return Ok(kernel);
    }
    if let [kernel] = by(&|kernel| demangled(kernel) == wanted)[..] {
        return Ok(kernel);
    }
    match by(&|kernel| kernel.name.contains(name) || demangled(kernel).contains(&wanted))[..] {
        [kernel] => Ok(kernel),
        [] => Err(Failure::usage(format!("there is no kernel `{name}`"))
            .help(format!("there are:{}", names(&kernels)))),
        ref several => Err(Failure::usage(format!("`{name}` is part of the names of several kernels"))
            .help(format!("write more of one:{}", names(several)))),
    }
}
