//! `ptxvm check`

use std::path::Path;

use diag::{Diagnostic, SourceFile, Span};

use super::input;
use super::options::{CheckOptions, Emit, Format};
use super::report::{Failure, code, print, say, say_text, stderr_color};

/// Reports every error of the files.
///
/// # Errors
/// When there are any.
pub fn check(options: &CheckOptions) -> Result<(), Failure> {
    let target = options.target.as_deref().map(parse_target).transpose()?;
    let assembly = if options.relocatable { check::Assembly::Relocatable } else { check::Assembly::Whole };
    let check_options = check::Options { assembly, target, lenient: options.lenient };
    let mut bad_files = 0;
    for path in &options.files {
        bad_files += usize::from(!check_file(path, options, &check_options)?);
    }
    if options.format == Format::Human && options.files.len() > 1 {
        say(format_args!("{} files checked, {bad_files} with errors", options.files.len()));
    }
    if bad_files == 0 { Ok(()) } else { Err(Failure::silent(code::BAD_INPUT)) }
}

/// The target that `--target` names.
pub fn parse_target(name: &str) -> Result<isa::Target, Failure> {
    isa::Target::parse(name).ok_or_else(|| {
        let known: Vec<String> = isa::Target::all().map(|target| target.to_string()).collect();
        Failure::usage(format!("`{name}` is no target")).help(format!("there are {}", known.join(", ")))
    })
}

/// Whether all PTX of one file is free of errors.
fn check_file(path: &Path, options: &CheckOptions, check_options: &check::Options) -> Result<bool, Failure> {
    let input = match input::read(path) {
        Ok(input) => input,
        Err(unreadable) => {
            unreadable.show(options.format);
            return Ok(false);
        }
    };
    let mut check_options = *check_options;
    if input.is_embedded {
        check_options.assembly = check::Assembly::Relocatable;
    }
    let mut is_good = true;
    for source in &input.sources {
        is_good &= check_source(source, options, &check_options)?;
    }
    Ok(is_good)
}

/// Whether PTX is free of errors.
fn check_source(
    source: &SourceFile,
    options: &CheckOptions,
    check_options: &check::Options,
) -> Result<bool, Failure> {
    let (tree, parsed) = syntax::parse(source);
    let (module, diagnostics) = check::check(source, &tree, parsed, check_options);
    let mut emitted = None;
    match options.emit {
        Some(Emit::Tree) => emitted = Some(tree.to_string()),
        Some(Emit::Module) => emitted = module.as_ref().map(ToString::to_string),
        _ => {}
    }
    if let Some(emit @ (Emit::Ir | Emit::Asm)) = options.emit
        && !diagnostics.iter().any(Diagnostic::is_error)
        && let Some(module) = module
    {
        let program = ir::lower(module, &ir::Options::ALL);
        emitted = Some(if emit == Emit::Ir { program.to_string() } else { native_code(source, &program)? });
    }
    report(source, &diagnostics, options.format)?;
    if let Some(text) = emitted {
        print(text.trim_end())?;
    }
    Ok(!diagnostics.iter().any(Diagnostic::is_error))
}

/// The native code of a program's loops, for the host path that launches here take.
fn native_code(source: &SourceFile, program: &ir::Program) -> Result<String, Failure> {
    let path = lanes::host_path().map_err(|error| Failure::usage(error.to_string()))?;
    let ptx = |span: Span| {
        let line = source.position(span.start).line;
        format!("{line}: {}", source.slice(source.line_span(line)).trim())
    };
    let text = vm::listing(program, path, ptx);
    Ok(if text.is_empty() { format!("no loop becomes native code for {}", path.name()) } else { text })
}

/// Shows the diagnostics of a file.
pub fn report(source: &SourceFile, diagnostics: &[Diagnostic], format: Format) -> Result<(), Failure> {
    if format == Format::Json {
        return print(diag::json(source, diagnostics));
    }
    let color = stderr_color();
    for diagnostic in diagnostics {
        say_text(&diag::render(source, diagnostic, color));
    }
    let name = source.name();
    match diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count() {
        0 => say(format_args!("{name}: no errors")),
        1 => say(format_args!("{name}: 1 error")),
        errors => say(format_args!("{name}: {errors} errors")),
    }
    Ok(())
}
