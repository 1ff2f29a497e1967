//! `ptxvm sass eval`: one instruction on given registers.

use std::collections::HashMap;

use clap::Args;
use sass::{Arch, Field, Thread};
use serde_json::json;

use super::super::options::Format;
use super::super::report::{Failure, print, say};
use super::one_line;

/// `ptxvm sass eval`
#[derive(Args, Debug)]
pub struct EvalOptions {
    /// Target: sm_52 to sm_120
    #[arg(long, value_name = "sm_XX", value_parser = super::parse_arch)]
    arch: Arch,
    /// The instruction
    #[arg(value_name = "TEXT")]
    text: String,
    /// What it reads: R0=0x3c003c00 UR4=7 P0=1 c[0x2][0x14]=0x3f800000 cx[UR4][0x14]=1
    #[arg(value_name = "NAME=VALUE")]
    values: Vec<String>,
}

/// The values given on the command line; others read as 0.
#[derive(Default)]
struct Values {
    registers: HashMap<String, u32>,
    constants: HashMap<(u16, u16), u32>,
    bound: HashMap<(u8, u16), u32>,
}

impl Values {
    fn named(&self, name: &str) -> u32 {
        self.registers.get(name).copied().unwrap_or_else(|| missing(name))
    }

    /// `NAME=VALUE`
    fn set(&mut self, text: &str) -> Option<()> {
        let (name, value) = text.split_once('=')?;
        let value = parse_number(value)?;
        let name = name.trim().to_ascii_uppercase();
        if let Some(rest) = name.strip_prefix("CX[UR") {
            let (ur, address) = rest.trim_end_matches(']').split_once(']')?;
            let address = parse_address(address.trim_start().strip_prefix('[')?)?;
            self.bound.insert((ur.parse().ok()?, address), value);
        } else if let Some(rest) = name.strip_prefix("C[") {
            let (bank, address) = rest.trim_end_matches(']').split_once(']')?;
            let address = parse_address(address.trim_start().strip_prefix('[')?)?;
            self.constants.insert((parse_number(bank)?.try_into().ok()?, address), value);
        } else {
            let number = name.strip_prefix("UR").or(name.strip_prefix('R')).or(name.strip_prefix('P'))?;
            let limit = if name.starts_with('P') { 6 } else { 254 };
            number.parse::<u8>().ok().filter(|n| *n <= limit && n.to_string() == number)?;
            if name.starts_with('P') && value > 1 {
                return None;
            }
            self.registers.insert(name, value);
        }
        Some(())
    }
}

impl Thread for Values {
    fn register(&self, n: u8) -> u32 {
        self.named(&format!("R{n}"))
    }

    fn uniform(&self, n: u8) -> u32 {
        self.named(&format!("UR{n}"))
    }

    fn predicate(&self, n: u8) -> bool {
        self.named(&format!("P{n}")) != 0
    }

    fn constant(&self, bank: u16, address: u16) -> u32 {
        let name = || format!("c[{bank:#x}][{address:#x}]");
        self.constants.get(&(bank, address)).copied().unwrap_or_else(|| missing(&name()))
    }

    fn bound_constant(&self, uniform: u8, address: u16) -> u32 {
        let name = || format!("cx[UR{uniform}][{address:#x}]");
        self.bound.get(&(uniform, address)).copied().unwrap_or_else(|| missing(&name()))
    }
}

/// The value 0 of a missing name, with a note.
fn missing(name: &str) -> u32 {
    say(format_args!("note: {name} is read and has no value: 0"));
    0
}

/// A 32-bit number, possibly hexadecimal or negative.
pub fn parse_number(text: &str) -> Option<u32> {
    let text = text.trim().to_ascii_lowercase();
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse::<u32>().ok().or_else(|| Some(text.parse::<i32>().ok()? as u32)),
    }
}

/// An address as it is printed: 16 bits, signed.
fn parse_address(text: &str) -> Option<u16> {
    match text.strip_prefix('-') {
        Some(rest) => Some((parse_number(rest)?.wrapping_neg()) as u16),
        None => parse_number(text)?.try_into().ok(),
    }
}

/// Executes the instruction.
pub fn eval(options: &EvalOptions, format: Format) -> Result<(), Failure> {
    let parsed = sass::parse(options.arch, &options.text);
    let parsed = parsed.map_err(|diagnostic| Failure::bad(one_line(&options.text, &diagnostic)))?;
    let mut values = Values::default();
    for text in &options.values {
        let help = "write R0=0x3c003c00, UR4=1, P0=1, c[0x2][0x14]=0x3f800000";
        values.set(text).ok_or_else(|| Failure::usage(format!("cannot read `{text}`")).help(help))?;
    }
    let instruction = parsed.instruction;
    let outcome = sass::execute(&instruction, &values);
    let outcome = outcome.map_err(|meaningless| Failure::bad(meaningless.to_string()))?;
    if format == Format::Json {
        let (pu, pv) = (outcome.map(|outcome| outcome.pu), outcome.map(|outcome| outcome.pv));
        return print(json!({ "executed": outcome.is_some(), "pu": pu, "pv": pv }));
    }
    let Some(outcome) = outcome else {
        return print("not executed: the guard is false");
    };
    for (field, value) in [(Field::Pu, outcome.pu), (Field::Pv, outcome.pv)] {
        match instruction.get(field) {
            7 => say(format_args!("note: {} goes to PT and is lost", u8::from(value))),
            n => print(format_args!("P{n} = {}", u8::from(value)))?,
        }
    }
    Ok(())
}
