//! `ptxvm eval`: what an instruction returns for given operands.

mod batch;
pub(crate) mod bits;
mod json;
mod why;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use batch::Batch;
use isa::{Target, Version};

use super::alone::{Alone, MAX_SOURCES};
use super::check::parse_target;
use super::options::{EvalOptions, Format};
use super::report::{Failure, print};

/// Evaluates one instruction, or a file of them.
///
/// # Errors
/// When the instruction or an operand is wrong, or a file cannot be read.
pub fn eval(options: &EvalOptions) -> Result<(), Failure> {
    let options = options.clone().split_operands().map_err(Failure::usage)?;
    let target = options.target.as_deref().map(parse_target).transpose()?;
    if let Some(path) = &options.batch {
        return evaluate_file(path, Batch::new(target, options.format));
    }
    let Some(instruction) = &options.instruction else {
        return Err(Failure::usage("an instruction or --batch FILE is needed"));
    };
    let (alone, values) = resolve(instruction, &options.operands, target)?;
    match options.format {
        Format::Human => print(show(&alone, instruction, &values).trim_end()),
        Format::Json => {
            let evaluation = json::Evaluation::new(&alone, instruction, &values);
            print(serde_json::to_string(&evaluation).map_err(|error| Failure::bad(error.to_string()))?)
        }
    }
}

/// What `ptxvm eval` shows of an instruction on these operands.
///
/// # Errors
/// When the instruction or an operand is wrong.
pub fn text(instruction: &str, operands: &[String]) -> Result<String, Failure> {
    let (alone, values) = resolve(instruction, operands, None)?;
    Ok(show(&alone, instruction, &values))
}

/// The instruction and the values of its operands.
fn resolve(
    instruction: &str,
    operands: &[String],
    target: Option<Target>,
) -> Result<(Alone, Vec<u64>), Failure> {
    let count = operands.len().min(MAX_SOURCES + 1);
    let alone = Alone::resolve(instruction, count, target).map_err(Failure::bad)?;
    let mut values = Vec::new();
    for (source, text) in alone.sources.iter().zip(operands) {
        let context = |what: String| {
            Failure::bad(format!("operand {}: {what}", source.name))
                .help(format!("an operand is {}", bits::LITERALS))
        };
        let value = bits::parse(text, source.ty).map_err(context)?;
        if let Some((least, greatest)) = source.range
            && !(least..=greatest).contains(&(value as i64))
        {
            return Err(Failure::bad(format!("operand {} must be {least} to {greatest}", source.name)));
        }
        values.push(value);
    }
    Ok((alone, values))
}

fn evaluate_file(path: &Path, mut batch: Batch) -> Result<(), Failure> {
    let name = path.display();
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(|error| Failure::bad(format!("cannot read `{name}`: {error}")))?)
    };
    match batch.run(input, std::io::stdout().lock()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::bad(format!("`{name}` was not evaluated to its end: {error}")))
        }
        _ => Ok(()),
    }
}

/// Operands, results and reasons, for people.
fn show(alone: &Alone, instruction: &str, values: &[u64]) -> String {
    let section = alone.form.section;
    let name = instruction.split('.').map(str::trim).collect::<Vec<_>>().join(".");
    let mut text =
        format!("{name}    PTX ISA {}, {}; manual section {section}\n", Version::MAX, alone.target);
    let results = alone.compute(values);
    let width = alone.sources.iter().map(|source| source.name.len()).max().unwrap_or(0).max(5);
    let mut row = |name: &str, ty: isa::Type, value: u64| {
        let mut line = format!("  {name:width$}  {}", bits::describe(ty, value));
        if ty.lanes() > 1 && ty.element() != ty {
            for (lane, element) in bits::lanes(ty, value).enumerate() {
                let separator = if lane == 0 { ": " } else { ", " };
                line += &format!("{separator}lane {lane} {}", bits::describe(ty.element(), element));
            }
        }
        text += &line;
        text.push('\n');
    };
    for (source, &value) in alone.sources.iter().zip(values) {
        row(&source.name, source.ty, value);
    }
    for ((name, ty), value) in alone.results.iter().zip(results) {
        row(&format!("{name} ="), *ty, value);
    }
    let reasons = why::why(alone, instruction, values);
    if !reasons.is_empty() {
        text += "why\n";
    }
    for reason in reasons {
        text += &format!("  {reason}\n");
    }
    text
}
