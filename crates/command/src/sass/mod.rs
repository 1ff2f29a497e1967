//! `ptxvm sass`: converts HSETP2 between words and text, and executes it.

mod eval;
mod lower;

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use diag::Diagnostic;
use sass::binary::{self, Content};
use sass::{Arch, Instruction, Parsed, Style};

use serde_json::{Value, json};

use super::options::Format;
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
    /// Who reads the output
    #[arg(long, value_enum, default_value_t = Format::Human, global = true)]
    format: Format,
}

impl SassOptions {
    /// Who reads the output.
    pub fn format(&self) -> Format {
        self.format
    }
}

#[derive(Debug, Subcommand)]
enum SassCommand {
    /// Disassemble words, or the HSETP2 of a cubin or of raw instruction memory
    Dis(DisOptions),
    /// Assemble text to words
    Asm(AsmOptions),
    /// Execute an instruction on given registers
    Eval(eval::EvalOptions),
    /// Show the HSETP2 that a PTX setp on halves becomes
    Lower(lower::LowerOptions),
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
    /// A word in hexadecimal, most significant digit first: 16 digits before sm_70, 32 from there on; or the two halves that nvdisasm
    /// prints, the lower one first: '0x0000000502007234 0x004fe20003f01000'
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

fn parse_arch(name: &str) -> Result<Arch, String> {
    let known = || Arch::ALL.map(|arch| arch.to_string()).join(", ");
    Arch::parse(name).ok_or_else(|| format!("HSETP2 is known for {}", known()))
}

/// Executes the options.
///
/// # Errors
/// When an input is bad. Bad lines of a batch are reported in place, and are not a failure of the command.
pub fn sass(options: &SassOptions) -> Result<(), Failure> {
    let format = options.format;
    match &options.command {
        SassCommand::Dis(options) => dis(options, format),
        SassCommand::Asm(options) => asm(options, format),
        SassCommand::Eval(options) => eval::eval(options, format),
        SassCommand::Lower(options) => lower::lower(options, format),
    }
}

fn dis(options: &DisOptions, format: Format) -> Result<(), Failure> {
    let (arch, style) = (options.arch, options.style.style());
    if options.hex.is_empty() && options.batch.is_none() && options.file.is_none() {
        return Err(Failure::usage("nothing to disassemble").help("give --hex WORD, --batch FILE or a file"));
    }
    let decode = |text: &str| -> Result<Answer, String> {
        let word = parse_word(arch, text)?;
        let instruction = Instruction::decode(arch, word).map_err(|illegal| illegal.to_string())?;
        let ignored = word & instruction.ignored_bits();
        let text = instruction.text(style);
        Ok(Answer {
            json: json!({ "text": text, "ignored_bits": format!("{ignored:#x}") }),
            text,
            notes: match ignored {
                0 => Vec::new(),
                _ => vec![format!("note: bits {ignored:#x} of {word:#x} mean nothing and are set")],
            },
        })
    };
    let mut good = true;
    for text in &options.hex {
        good &= show(format, decode(text))?;
    }
    if let Some(path) = &options.batch {
        batch(path, format, decode)?;
    }
    if let Some(path) = &options.file {
        listing(arch, style, format, path)?;
    }
    if good { Ok(()) } else { Err(Failure::silent(code::BAD_INPUT)) }
}

/// The answer to a word or a text.
struct Answer {
    text: String,
    json: Value,
    /// Notes for people, printed on stderr.
    notes: Vec<String>,
}

/// The line with the answer, in either format.
fn line(format: Format, answer: &Result<Answer, String>) -> String {
    match (format, answer) {
        (Format::Human, Ok(answer)) => answer.text.clone(),
        (Format::Human, Err(message)) => format!("error: {message}"),
        (Format::Json, Ok(answer)) => answer.json.to_string(),
        (Format::Json, Err(message)) => json!({ "error": message }).to_string(),
    }
}

/// Prints an answer with its notes. Returns whether it is not an error.
fn show(format: Format, answer: Result<Answer, String>) -> Result<bool, Failure> {
    print(line(format, &answer))?;
    for note in answer.iter().flat_map(|answer| &answer.notes) {
        say(note);
    }
    Ok(answer.is_ok())
}

/// The words of a file with their addresses; HSETP2 as text.
fn listing(arch: Arch, style: Style, format: Format, path: &Path) -> Result<(), Failure> {
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
        if !section.name.is_empty() && format == Format::Human {
            let _ = writeln!(text, "{}:", section.name);
        }
        for line in &section.lines {
            if format == Format::Json {
                let word = format!("{:0digits$x}", line.word);
                let (section, address) = (&section.name, line.address);
                let line =
                    json!({ "section": section, "address": address, "word": word, "text": line.text(style) });
                let _ = writeln!(text, "{line}");
                continue;
            }
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

fn asm(options: &AsmOptions, format: Format) -> Result<(), Failure> {
    if options.texts.is_empty() && options.batch.is_none() {
        return Err(Failure::usage("nothing to assemble").help("give an instruction, or --batch FILE"));
    }
    let arch = options.arch;
    let mut good = true;
    let mut instructions = Vec::new();
    for text in &options.texts {
        let assembled = assemble(arch, text);
        let answer = assembled.map(|(word, parsed)| {
            instructions.push(parsed.instruction);
            let mut answer = assembled_answer(word, text, &parsed);
            if arch.word_bits() == 64 && options.output.is_none() && parsed.instruction.slot() != SILENT {
                let slot = parsed.instruction.slot();
                answer
                    .notes
                    .push(format!("note: its slot of the control word is {slot:#08x}; --output writes it"));
            }
            answer
        });
        good &= show(format, answer)?;
    }
    if let Some(path) = options.output.as_ref().filter(|_| good) {
        let bytes = binary::assemble(arch, &instructions);
        let bytes = bytes.map_err(|(_, error)| Failure::bad(error.to_string()))?;
        std::fs::write(path, bytes)
            .map_err(|error| Failure::usage(format!("cannot write `{}`: {error}", path.display())))?;
    }
    if let Some(path) = &options.batch {
        batch(path, format, |line| {
            assemble(arch, line).map(|(word, parsed)| assembled_answer(word, line, &parsed))
        })?;
    }
    if good { Ok(()) } else { Err(Failure::silent(code::BAD_INPUT)) }
}

/// A slot of Maxwell's control word without effect.
const SILENT: u32 = 0x7e0;

fn assembled_answer(word: String, text: &str, parsed: &Parsed) -> Answer {
    let warnings: Vec<String> = parsed.warnings.iter().map(|warning| one_line(text, warning)).collect();
    let notes = warnings.iter().map(|warning| format!("warning: {warning}")).collect();
    let slot =
        (parsed.instruction.arch().word_bits() == 64).then(|| format!("{:06x}", parsed.instruction.slot()));
    let json = json!({ "word": word, "control_slot": slot, "text": parsed.instruction.to_string(), "warnings": warnings });
    Answer { text: word, json, notes }
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

/// The word that a text denotes: its digits, or those of its lower and then its upper half, as nvdisasm prints words
/// from sm_70 on.
fn parse_word(arch: Arch, text: &str) -> Result<u128, String> {
    let halves = text
        .split_whitespace()
        .map(|part| part.strip_prefix("0x").or(part.strip_prefix("0X")).unwrap_or(part));
    let mut halves: Vec<&str> = halves.collect();
    halves.reverse();
    let digits = match halves[..] {
        [upper, lower] if (upper.len(), lower.len()) != (16, 16) => text.to_owned(),
        _ => halves.concat(),
    };
    let wanted = arch.word_bytes() * 2;
    if digits.len() != wanted || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(format!("a word of {arch} is {wanted} hexadecimal digits"));
    }
    u128::from_str_radix(&digits, 16).map_err(|error| error.to_string())
}

/// Answers each line of a file with one line.
fn batch(
    path: &Path,
    format: Format,
    answer: impl Fn(&str) -> Result<Answer, String>,
) -> Result<(), Failure> {
    let bytes = read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut out = String::with_capacity(text.len() * 4);
    for question in text.lines() {
        out += &line(format, &answer(question));
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
