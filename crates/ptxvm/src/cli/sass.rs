//! `ptxvm sass`: HSETP2 between words, text and meaning.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use diag::Diagnostic;
use sass::binary::{self, Content};
use sass::{Arch, Field, Form, Instruction, Operands, Origin, Parsed, Source, Style, Thread};

use super::report::{Failure, code, print, say};

const EXAMPLES: &str = "\
Examples:
  ptxvm sass dis --arch sm_53 --hex 5d23b18000270107
  ptxvm sass dis --arch sm_70 kernel.cubin
  ptxvm sass asm --arch sm_53 'HSETP2.LT.AND P0, P1, R2, -|R3.F32|, PT;'
  ptxvm sass eval --arch sm_53 'HSETP2.LT.AND P0, P1, R0, R5, P2;' R0=0x3c003c00 R5=0x40003800 P2=1
  ptxvm sass lower --arch sm_53 'setp.lt.and.f16x2 p|q, a, b, c'";

/// `ptxvm sass`
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SassOptions {
    /// What to do.
    #[command(subcommand)]
    command: SassCommand,
}

#[derive(Debug, Subcommand)]
enum SassCommand {
    /// Disassemble words, or the HSETP2 of a cubin or of raw instruction memory
    Dis(DisOptions),
    /// Assemble text to words
    Asm(AsmOptions),
    /// Execute an instruction on given registers
    Eval(EvalOptions),
    /// Show the HSETP2 that a PTX setp on halves becomes
    Lower(LowerOptions),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Spelling {
    /// As nvdisasm 12.8 prints it
    Nvdisasm,
    /// Everything said: guard, swizzles, braces, control fields
    Full,
}

impl Spelling {
    fn style(self) -> Style {
        match self {
            Spelling::Nvdisasm => Style::Nvdisasm,
            Spelling::Full => Style::Full,
        }
    }
}

#[derive(Args, Debug)]
struct DisOptions {
    /// Target: sm_52 to sm_120
    #[arg(long, value_name = "sm_XX", value_parser = parse_arch)]
    arch: Arch,
    /// A word in hexadecimal, most significant digit first: 16 digits before sm_70, 32 from there on
    #[arg(long, value_name = "WORD")]
    hex: Vec<String>,
    /// Words from a file, one a line; `-` is standard input. Answers stay aligned: `error: ...` where one fails
    #[arg(long, value_name = "FILE")]
    batch: Option<PathBuf>,
    /// How to spell it
    #[arg(long, value_enum, default_value_t = Spelling::Nvdisasm)]
    style: Spelling,
    /// A cubin, or raw instruction memory
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct AsmOptions {
    /// Target: sm_52 to sm_120
    #[arg(long, value_name = "sm_XX", value_parser = parse_arch)]
    arch: Arch,
    /// Instructions
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
    /// Instructions from a file, one a line; `-` is standard input. Answers stay aligned
    #[arg(long, value_name = "FILE")]
    batch: Option<PathBuf>,
    /// Write the instructions given on the command line as raw instruction memory: with their control information,
    /// before sm_70 in groups of three behind a control word
    #[arg(long, value_name = "FILE", requires = "texts")]
    output: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct EvalOptions {
    /// Target: sm_52 to sm_120
    #[arg(long, value_name = "sm_XX", value_parser = parse_arch)]
    arch: Arch,
    /// The instruction
    #[arg(value_name = "TEXT")]
    text: String,
    /// What it reads: R0=0x3c003c00 UR4=7 P0=1 c[0x2][0x14]=0x3f800000 cx[UR4][0x14]=1
    #[arg(value_name = "NAME=VALUE")]
    values: Vec<String>,
}

#[derive(Args, Debug)]
struct LowerOptions {
    /// Target: sm_53 to sm_120
    #[arg(long, value_name = "sm_XX", value_parser = parse_arch)]
    arch: Arch,
    /// The PTX instruction. A source may also be a literal (0x3c00: what a mov left in the register), a parameter by its
    /// place (c[0x0][0x174]), and one of them may be `cvt.rz(b)`
    #[arg(value_name = "PTX")]
    text: String,
    /// Keep the comparison as written where ptxas inverts it
    #[arg(long)]
    as_written: bool,
}

fn parse_arch(name: &str) -> Result<Arch, String> {
    let known = || Arch::ALL.map(|arch| arch.to_string()).join(", ");
    Arch::parse(name).ok_or_else(|| format!("HSETP2 is known for {}", known()))
}

/// Does what the options say.
///
/// # Errors
/// When an input is bad. Bad lines of a batch are answered in place and are no failure of the command.
pub fn sass(options: &SassOptions) -> Result<(), Failure> {
    match &options.command {
        SassCommand::Dis(options) => dis(options),
        SassCommand::Asm(options) => asm(options),
        SassCommand::Eval(options) => eval(options),
        SassCommand::Lower(options) => lower(options),
    }
}

fn dis(options: &DisOptions) -> Result<(), Failure> {
    let (arch, style) = (options.arch, options.style.style());
    if options.hex.is_empty() && options.batch.is_none() && options.file.is_none() {
        return Err(Failure::usage("nothing to disassemble").help("give --hex WORD, --batch FILE or a file"));
    }
    let decode = |text: &str| -> Result<(u128, Instruction), String> {
        let word = parse_word(arch, text)?;
        Ok((word, Instruction::decode(arch, word).map_err(|illegal| illegal.to_string())?))
    };
    let mut bad = false;
    for text in &options.hex {
        match decode(text) {
            Ok((word, instruction)) => {
                print(instruction.text(style))?;
                let ignored = word & instruction.ignored_bits();
                if ignored != 0 {
                    say(format_args!("note: bits {ignored:#x} of {text} mean nothing and are set"));
                }
            }
            Err(message) => {
                bad = true;
                print(format_args!("error: {message}"))?;
            }
        }
    }
    if let Some(path) = &options.batch {
        batch(path, |line| decode(line).map(|(_, instruction)| instruction.text(style)))?;
    }
    if let Some(path) = &options.file {
        listing(arch, style, path)?;
    }
    if bad { Err(Failure::silent(code::BAD_INPUT)) } else { Ok(()) }
}

/// The words of a file with their addresses, HSETP2 as text.
fn listing(arch: Arch, style: Style, path: &Path) -> Result<(), Failure> {
    let bytes = read(path)?;
    let sections = if binary::is_elf(&bytes) {
        if let Some(target) = binary::target(&bytes).filter(|target| *target != u32::from(arch.number())) {
            say(format_args!("warning: `{}` says that it is for sm_{target}, not {arch}", path.display()));
        }
        let sections = binary::cubin(arch, &bytes);
        sections.map_err(|error| Failure::bad(format!("cannot read `{}`: {error}", path.display())))?
    } else {
        vec![binary::Section { name: String::new(), lines: binary::raw(arch, &bytes) }]
    };
    let digits = arch.word_bytes() * 2;
    let mut text = String::new();
    for section in &sections {
        if !section.name.is_empty() {
            let _ = writeln!(text, "{}:", section.name);
        }
        for line in &section.lines {
            let word = format_args!("/*{:04x}*/ 0x{:0digits$x}", line.address, line.word);
            let _ = match (line.text(style), line.content) {
                (Some(instruction), _) => writeln!(text, "/*{:04x}*/ {instruction}", line.address),
                (None, Content::Other(illegal)) if illegal != sass::Illegal::NotHsetp2 => {
                    writeln!(text, "{word} // {illegal}")
                }
                (None, _) => writeln!(text, "{word}"),
            };
        }
    }
    print(text.trim_end())
}

fn asm(options: &AsmOptions) -> Result<(), Failure> {
    if options.texts.is_empty() && options.batch.is_none() {
        return Err(Failure::usage("nothing to assemble").help("give an instruction, or --batch FILE"));
    }
    let arch = options.arch;
    let mut bad = false;
    let mut instructions = Vec::new();
    for text in &options.texts {
        match assemble(arch, text) {
            Ok((word, parsed)) => {
                print(word)?;
                for warning in &parsed.warnings {
                    say(format_args!("warning: {}", one_line(text, warning)));
                }
                instructions.push(parsed.instruction);
            }
            Err(message) => {
                bad = true;
                print(format_args!("error: {message}"))?;
            }
        }
    }
    if let Some(path) = options.output.as_ref().filter(|_| !bad) {
        let bytes = binary::assemble(arch, &instructions);
        let bytes = bytes.map_err(|(_, error)| Failure::bad(error.to_string()))?;
        std::fs::write(path, bytes)
            .map_err(|error| Failure::bad(format!("cannot write `{}`: {error}", path.display())))?;
    }
    if let Some(path) = &options.batch {
        batch(path, |line| assemble(arch, line).map(|(word, _)| word))?;
    }
    if bad { Err(Failure::silent(code::BAD_INPUT)) } else { Ok(()) }
}

fn assemble(arch: Arch, text: &str) -> Result<(String, Parsed), String> {
    let parsed = sass::parse(arch, text).map_err(|diagnostic| one_line(text, &diagnostic))?;
    let word = parsed.instruction.encode().map_err(|error| error.to_string())?;
    let digits = arch.word_bytes() * 2;
    Ok((format!("{word:0digits$x}"), parsed))
}

/// `column 8: unknown modifier `.LTE`; did you mean .LE?`
fn one_line(text: &str, diagnostic: &Diagnostic) -> String {
    let before = text.get(..diagnostic.span.start as usize).unwrap_or(text);
    let column = before.chars().count() + 1;
    let mut line = format!("column {column}: {}", diagnostic.message);
    if let Some(help) = &diagnostic.help {
        line += "; ";
        line += help;
    }
    line.replace(['\n', '\r'], " ")
}

/// The values given on the command line; what is missing reads as 0.
#[derive(Default)]
struct Values {
    registers: HashMap<String, u32>,
    constants: HashMap<(u16, u16), u32>,
    bound: HashMap<(u8, u16), u32>,
}

impl Values {
    fn named(&self, name: &str) -> u32 {
        self.registers.get(name).copied().unwrap_or_else(|| {
            say(format_args!("note: {name} is read and has no value: 0"));
            0
        })
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
        self.constants.get(&(bank, address)).copied().unwrap_or(0)
    }

    fn bound_constant(&self, uniform: u8, address: u16) -> u32 {
        self.bound.get(&(uniform, address)).copied().unwrap_or(0)
    }
}

/// A number of 32 bits, also in hexadecimal, also negative.
fn parse_number(text: &str) -> Option<u32> {
    let text = text.trim().to_ascii_lowercase();
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse::<u32>().ok().or_else(|| Some(text.parse::<i32>().ok()? as u32)),
    }
}

/// An address as it is printed: 16 bits with a sign.
fn parse_address(text: &str) -> Option<u16> {
    match text.strip_prefix('-') {
        Some(rest) => Some((parse_number(rest)?.wrapping_neg()) as u16),
        None => parse_number(text)?.try_into().ok(),
    }
}

fn eval(options: &EvalOptions) -> Result<(), Failure> {
    let parsed = sass::parse(options.arch, &options.text);
    let parsed = parsed.map_err(|diagnostic| Failure::bad(one_line(&options.text, &diagnostic)))?;
    let mut values = Values::default();
    for text in &options.values {
        let help = "write R0=0x3c003c00, UR4=1, P0=1, c[0x2][0x14]=0x3f800000";
        values.set(text).ok_or_else(|| Failure::usage(format!("cannot read `{text}`")).help(help))?;
    }
    let instruction = parsed.instruction;
    let outcome = sass::execute(&instruction, &values);
    let Some(outcome) = outcome.map_err(|meaningless| Failure::bad(meaningless.to_string()))? else {
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

fn lower(options: &LowerOptions) -> Result<(), Failure> {
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
    // Registers are handed out in the order in which they are named; ptxas chooses others.
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
    let lowered = sass::lower(options.arch, &selected.picks, &Operands { destinations, sources, c })
        .map_err(|error| Failure::bad(error.to_string()))?;
    let inverted = lowered.inverted && !options.as_written;
    let instruction = if options.as_written { lowered.as_written() } else { lowered.instruction };
    print(instruction)?;
    let used = [
        Some(instruction.get(Field::Ra)),
        (instruction.form() == Form::Register).then_some(instruction.get(Field::Rb)),
        (instruction.form() == Form::Uniform).then_some(instruction.get(Field::Ur)),
    ];
    for (n, name) in predicates.iter().enumerate() {
        let complement = n == usize::from(destinations.0) && inverted;
        say(format_args!("note: P{n} is {}{name}", if complement { "the complement of " } else { "" }));
    }
    for (n, name) in registers.iter().enumerate() {
        if used[..2].contains(&Some(n as u16)) {
            say(format_args!("note: R{n} is {name}"));
        } else if used[2] == Some(n as u16) {
            say(format_args!("note: UR{n} is {name}"));
        }
    }
    if let Some(bits) = lowered.constant {
        say(format_args!("note: c[0x2][0x0] is {bits:#010x}, a FP32 constant that ptxas makes"));
    }
    Ok(())
}

/// Whether it could be the name of a register.
fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '%' | '_' | '$'))
}

/// `a`, `0x3c00`, `c[0x0][0x174]`, and `cvt.rz(...)` of the first and last.
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

fn parse_word(arch: Arch, text: &str) -> Result<u128, String> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
    let wanted = arch.word_bytes() * 2;
    if digits.len() != wanted || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(format!("a word of {arch} is {wanted} hexadecimal digits"));
    }
    u128::from_str_radix(digits, 16).map_err(|error| error.to_string())
}

/// Answers each line of a file with one line.
fn batch(path: &Path, answer: impl Fn(&str) -> Result<String, String>) -> Result<(), Failure> {
    let bytes = read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut out = String::with_capacity(text.len() * 4);
    for line in text.lines() {
        match answer(line) {
            Ok(answer) => out += &answer,
            Err(message) => {
                out += "error: ";
                out += &message;
            }
        }
        out.push('\n');
    }
    if out.is_empty() { Ok(()) } else { print(&out[..out.len() - 1]) }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let result = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(path).map(|read| bytes = read)
    };
    match result {
        Ok(()) => Ok(bytes),
        Err(error) => Err(Failure::bad(format!("cannot read `{}`: {error}", path.display()))),
    }
}
