//! `ptxvm sass lower`: the HSETP2 that a `setp` becomes.

use std::collections::BTreeMap;

use clap::Args;
use sass::{Arch, Field, Form, NotLowered, Operands, Origin, Source};
use serde_json::json;

use super::super::options::Format;
use super::super::report::{Failure, print, say};
use super::eval::parse_number;

/// `ptxvm sass lower`
#[derive(Args, Debug)]
pub struct LowerOptions {
    /// Target: sm_53 to sm_120
    #[arg(long, value_name = "sm_XX", value_parser = super::parse_arch)]
    arch: Arch,
    /// The PTX instruction. A source may also be a literal (0x3c00: what a mov left in the register), a parameter by its
    /// place (c[0x0][0x174]), and one of them may be `cvt.rz(b)`
    #[arg(value_name = "PTX")]
    text: String,
    /// Keep the comparison as written where ptxas inverts it
    #[arg(long)]
    as_written: bool,
}

/// Shows what the instruction becomes.
pub fn lower(options: &LowerOptions, format: Format) -> Result<(), Failure> {
    let bad = |message: String| Failure::bad(message).help("write: setp.lt.and.f16x2 p|q, a, b, c");
    let text = options.text.trim().trim_end_matches(';');
    let (mnemonic, operands) =
        text.split_once(char::is_whitespace).ok_or_else(|| bad("the operands are missing".to_owned()))?;
    let mut parts = mnemonic.split('.');
    let opcode = parts.next().unwrap_or_default();
    let modifiers: Vec<&str> = parts.collect();
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let selected = isa::select(opcode, &modifiers, operands.len()).map_err(|errors| {
        let message = errors.first().map(|error| error.message(opcode, &modifiers)).unwrap_or_default();
        bad(message)
    })?;
    if opcode != "setp" || !(3..=4).contains(&operands.len()) {
        return Err(bad(format!("`{opcode}` on halves does not become HSETP2")));
    }
    let (p, q) = match operands[0].split_once('|') {
        Some((p, q)) => (p.trim(), Some(q.trim())),
        None => (operands[0], None),
    };
    if q.is_some() && selected.picks.ty(0).lanes() == 1 {
        return Err(bad(format!("`{mnemonic}` has one destination")));
    }
    let c = operands.get(3).map(|c| (c.trim_start_matches('!').trim(), c.starts_with('!')));
    let names = [Some(p), q, c.map(|c| c.0)];
    if let Some(wrong) = names.into_iter().flatten().find(|name| !is_name(name)) {
        return Err(bad(format!("`{wrong}` is no register")));
    }
    // Registers are numbered in the order of their first use; ptxas numbers them differently.
    let mut predicates = Vec::new();
    let mut predicate = |name| match name {
        "_" => 7,
        name => number_of(&mut predicates, name),
    };
    let destinations = (predicate(p), q.map(&mut predicate));
    let c = c.map(|(name, not)| (predicate(name), not));
    let mut registers = Vec::new();
    let mut source = |written| {
        source(&mut registers, written).ok_or_else(|| bad(format!("`{written}` is no register"))).map_err(
            |failure| {
                failure
                    .help("also 0x3c00 for what a mov left in one, c[0x0][0x174] for a parameter, cvt.rz(b)")
            },
        )
    };
    let sources = (source(operands[1])?, source(operands[2])?);
    let wide = |source: Source| matches!(source.origin, Origin::Literal(bits) if bits > 0xffff);
    if selected.picks.ty(0).lanes() == 1 && (wide(sources.0) || wide(sources.1)) {
        return Err(bad("a literal of one half has 16 bits".to_owned()));
    }
    let lowered = sass::lower(options.arch, &selected.picks, &Operands { destinations, sources, c })
        .map_err(|error| match error {
            NotLowered::Target(arch) => Failure::bad(format!("{arch} has no HSETP2 for `{mnemonic}`")),
            other => Failure::bad(other.to_string()),
        })?;
    let inverted = lowered.inverted && !options.as_written;
    let instruction = if options.as_written { lowered.as_written() } else { lowered.instruction };
    let used = [
        Some(("R", instruction.get(Field::Ra))),
        (instruction.form() == Form::Register).then_some(("R", instruction.get(Field::Rb))),
        (instruction.form() == Form::Uniform).then_some(("UR", instruction.get(Field::Ur))),
    ];
    let mut names: Vec<(String, &str)> =
        predicates.iter().enumerate().map(|(n, name)| (format!("P{n}"), *name)).collect();
    for (n, name) in registers.iter().enumerate() {
        let letters = used.iter().flatten().find(|(_, used)| usize::from(*used) == n);
        names.extend(letters.map(|(letters, _)| (format!("{letters}{n}"), *name)));
    }
    if format == Format::Json {
        let word = instruction.encode().map_err(|error| Failure::bad(error.to_string()))?;
        let digits = options.arch.word_bytes() * 2;
        return print(json!({
            "text": instruction.to_string(),
            "word": format!("{word:0digits$x}"),
            "inverted": inverted,
            "constant": lowered.constant.map(|bits| format!("{bits:#010x}")),
            "registers": names.into_iter().collect::<BTreeMap<_, _>>(),
        }));
    }
    print(instruction)?;
    let complement = format!("P{}", destinations.0);
    for (register, name) in &names {
        let not = if inverted && *register == complement { "the complement of " } else { "" };
        say(format_args!("note: {register} is {not}{name}"));
    }
    if let Some(bits) = lowered.constant {
        say(format_args!("note: c[0x2][0x0] is {bits:#010x}, a FP32 constant that ptxas makes"));
    }
    Ok(())
}

/// Whether it is a valid name for a register.
fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '%' | '_' | '$'))
}

/// `a`, `0x3c00`, `c[0x0][0x174]`, and `cvt.rz(...)` of the first or last.
fn source<'n>(registers: &mut Vec<&'n str>, written: &'n str) -> Option<Source> {
    let inner = written.strip_prefix("cvt.rz(").and_then(|rest| rest.strip_suffix(')'));
    let place = inner.unwrap_or(written).trim();
    let origin = if let Some(rest) = place.strip_prefix("c[") {
        let (bank, address) = rest.strip_suffix(']')?.split_once(']')?;
        let bank = parse_number(bank)?.try_into().ok().filter(|bank| *bank < 32)?;
        let address = parse_number(address.trim().strip_prefix('[')?)?.try_into().ok();
        Origin::Parameter { bank, address: address.filter(|address: &u16| address.is_multiple_of(4))? }
    } else if place.starts_with(|c: char| c.is_ascii_digit()) {
        Origin::Literal(parse_number(place)?)
    } else {
        Some(Origin::Register).filter(|_| is_name(place))?
    };
    Some(Source { origin, register: number_of(registers, place), converted: inner.is_some() })
}

fn number_of<'n>(names: &mut Vec<&'n str>, name: &'n str) -> u8 {
    let at = names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    });
    at as u8
}
