//! `cargo xtask verify`: holds the instruction table against an assembler, spelling by spelling.

mod spellings;

use std::collections::BTreeMap;
use std::path::Path;

use isa::enumerate::{ENTRY_DECLARATIONS, ENTRY_PARAMETER, MODULE_DECLARATIONS};
use isa::{SelectError, Target, Version, select};

use crate::record::lines::{Frame, ask};
use crate::record::oracle::{Oracle, Release};

/// Options of `cargo xtask verify`.
#[derive(clap::Args)]
pub struct Options {
    /// The release of ptxas to ask.
    #[arg(long, default_value = "13.5")]
    release: Release,
    /// Only these opcodes.
    #[arg(long)]
    opcode: Vec<String>,
    /// PTX ISA version of the modules asked about.
    #[arg(long, default_value = "9.5")]
    version: String,
    /// Target of the modules asked about.
    #[arg(long, default_value = "sm_121")]
    target: String,
    /// Compare the messages of what both reject, too.
    #[arg(long)]
    messages: bool,
    /// Only what the table accepts: no mutations.
    #[arg(long)]
    legal: bool,
    /// Differences to show for each opcode.
    #[arg(long, default_value_t = 20)]
    show: usize,
    /// Spellings of a row at most; beyond it, every n-th.
    #[arg(long, default_value_t = 4000)]
    limit: usize,
}

/// Runs the chore.
pub fn run(options: &Options) -> Result<(), String> {
    let version = Version::parse(&options.version).ok_or("no such version")?;
    let target = Target::parse(&options.target).ok_or("no such target")?;
    let mut opcodes: Vec<&str> = isa::FORMS.iter().map(|form| form.opcode.name()).collect();
    opcodes.dedup();
    opcodes.retain(|opcode| options.opcode.is_empty() || options.opcode.iter().any(|o| o == opcode));
    let oracles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.oracles");
    let oracle = Oracle::open(&oracles, options.release).map_err(|error| error.to_string())?;
    let frame = Frame {
        before: format!(
            ".version {version}\n.target {target}\n{MODULE_DECLARATIONS}.entry probe({ENTRY_PARAMETER}) {{\n\
             {ENTRY_DECLARATIONS}targets: .branchtargets label;\nlabel:\n"
        ),
        after: "exit;\n}\n".to_owned(),
    };
    let (mut asked, mut verdicts, mut wordings) = (0, 0, 0);
    for opcode in opcodes {
        let lines = spellings::of(opcode, options.limit, options.legal);
        let texts: Vec<String> = lines.iter().map(|line| line.text.clone()).collect();
        let answers = ask(&oracle, &frame, &texts).map_err(|error| error.to_string())?.lines;
        let mut differences: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let (mut accepted, mut wrong_verdicts, mut wrong_words) = (0, 0, 0);
        for (line, theirs) in lines.iter().zip(&answers) {
            let ours = judge(opcode, line, version, target);
            accepted += usize::from(theirs.is_empty());
            if ours.is_empty() != theirs.is_empty() {
                wrong_verdicts += 1;
            } else if ours != *theirs {
                wrong_words += 1;
                if !options.messages {
                    continue;
                }
            } else {
                continue;
            }
            differences.entry(format!("ours {ours:?}\n  theirs {theirs:?}")).or_default().push(&line.text);
        }
        println!(
            "{opcode}: {} asked, {accepted} accepted, {wrong_verdicts} verdicts differ, {wrong_words} wordings differ",
            lines.len()
        );
        for (difference, texts) in differences.iter().take(options.show) {
            println!("  {difference}\n    {} times, such as {}", texts.len(), texts[0]);
            if texts.len() > 1 {
                println!("    and {}", texts[texts.len() - 1]);
            }
        }
        asked += lines.len();
        verdicts += wrong_verdicts;
        wordings += wrong_words;
    }
    println!("in all: {asked} asked, {verdicts} verdicts differ, {wordings} wordings differ");
    if verdicts == 0 { Ok(()) } else { Err(format!("{verdicts} verdicts differ")) }
}

/// What the table says about a line, as messages.
fn judge(opcode: &str, line: &spellings::Line, version: Version, target: Target) -> Vec<String> {
    let modifiers: Vec<&str> = line.modifiers.iter().map(String::as_str).collect();
    match select(opcode, &modifiers, line.operands) {
        Ok(selected) => selected
            .form()
            .gates(&selected.picks)
            .iter()
            .filter(|gate| !gate.permits(version, target))
            .map(|gate| gate.message(version, target))
            .collect(),
        Err(errors) => errors.iter().map(|error: &SelectError| error.message(opcode, &modifiers)).collect(),
    }
}
