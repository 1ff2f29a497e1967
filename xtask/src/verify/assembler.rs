//! Asks an assembler about many instructions at once.

use isa::enumerate::{ENTRY_DECLARATIONS, ENTRY_PARAMETER, MODULE_DECLARATIONS};
use isa::{Suffix, Target, Version};
use std::path::Path;
use std::process::Command;

/// More fatal errors than this in one file, and the rest counts as unanswered.
const MAX_FATAL: usize = 400;

/// What the assembler says about each of `instructions` in a module of this version and target, each standing on a line of its own.
pub fn ask(
    assembler: &Path,
    instructions: &[String],
    version: Version,
    target: Target,
) -> Result<Vec<Vec<String>>, String> {
    let mut answers: Vec<Vec<String>> = vec![Vec::new(); instructions.len()];
    for _ in 0..MAX_FATAL {
        let mut text = format!(".version {version}\n.target {target}\n{MODULE_DECLARATIONS}");
        text += &format!(
            ".entry probe({ENTRY_PARAMETER}) {{\n{ENTRY_DECLARATIONS}targets: .branchtargets label;\nlabel:\n"
        );
        let first = text.lines().count() + 1;
        for (instruction, answer) in instructions.iter().zip(&answers) {
            // A line that ended the last run stays in its place, empty.
            let skip = answer.iter().any(|message| message.starts_with("Parsing error"));
            text += if skip { "" } else { instruction };
            text.push('\n');
        }
        text += "exit;\n}\n";
        for answer in &mut answers {
            answer.retain(|message| message.starts_with("Parsing error"));
        }
        let path = std::env::temp_dir().join(format!("isa-verify-{}.ptx", std::process::id()));
        std::fs::write(&path, text).map_err(|e| e.to_string())?;
        let architecture = match target.suffix {
            Suffix::None => "compute_121".to_string(),
            _ => target.to_string(),
        };
        let output = Command::new(assembler)
            .args(["-c", "-arch", &architecture, "-o", "/dev/null"])
            .arg(&path)
            .output()
            .map_err(|e| format!("{}: {e}", assembler.display()))?;
        let _ = std::fs::remove_file(&path);
        let mut fatal = false;
        for line in String::from_utf8_lossy(&output.stderr).lines() {
            let Some((number, message)) = message(line) else { continue };
            let Some(index) = number.checked_sub(first) else {
                if message.starts_with("Parsing error") {
                    return Err(format!("the declarations do not parse: {line}"));
                }
                continue;
            };
            if let Some(answer) = answers.get_mut(index) {
                fatal |= message.starts_with("Parsing error");
                answer.push(message.to_string());
            }
        }
        if !fatal {
            return Ok(answers);
        }
    }
    Err("too many lines do not parse".into())
}

/// The line number and text of one message: `ptxas f.ptx, line 12; error   : text`.
fn message(line: &str) -> Option<(usize, &str)> {
    let (before, text) = line.split_once(" : ")?;
    if !before.contains("error") && !before.contains("fatal") {
        return None;
    }
    let number = before.split_once(", line ")?.1.split(';').next()?.trim().parse().ok()?;
    Some((number, text.trim()))
}
