//! `ptxvm explain __hgt2`: what nvcc makes of an intrinsic function of CUDA.

use std::fmt::Write;

use crate::report::Failure;

/// `cargo xtask record intrinsics`: name, declaration, instructions.
const TABLE: &str = include_str!("intrinsics.tsv");

/// An overload of a function.
struct Overload {
    name: &'static str,
    declaration: &'static str,
    code: &'static str,
}

fn table() -> impl Iterator<Item = Overload> {
    TABLE.lines().skip(1).filter_map(|line| {
        let mut columns = line.split('\t');
        Some(Overload { name: columns.next()?, declaration: columns.next()?, code: columns.next()? })
    })
}

/// Whether a name is one of CUDA's, not of PTX.
pub fn is_intrinsic(name: &str) -> bool {
    name.starts_with("__") || name.starts_with("atomic")
}

/// The page of a function.
///
/// # Errors
/// When it is not known.
pub fn page(name: &str) -> Result<String, Failure> {
    let name = name.trim_end_matches("()");
    let overloads: Vec<Overload> = table().filter(|overload| overload.name == name).collect();
    if overloads.is_empty() {
        let failure = Failure::bad(format!("`{name}` is no intrinsic function that is known"));
        return Err(match diag::nearest(name, table().map(|overload| overload.name)) {
            Some(near) => failure.help(format!("the nearest name is `{near}`")),
            None => failure.help("what nvcc makes of a call: nvcc -ptx -arch=compute_100 file.cu"),
        });
    }
    let mut text = format!(
        "# {name}\n\nAn intrinsic function of CUDA. nvcc 13.5 makes this of a call, for `compute_100`:\n\n"
    );
    let mut instructions: Vec<&str> = Vec::new();
    for Overload { declaration, code, .. } in &overloads {
        let _ = writeln!(text, "```\n{declaration}");
        for instruction in code.split_inclusive("; ") {
            let _ = writeln!(text, "    {}", instruction.trim());
            let opcode = instruction.split(' ').find(|word| !word.starts_with('@'));
            let opcode = opcode.filter(|word| word.contains('.')).map(|word| word.trim_end_matches(';'));
            if let Some(opcode) = opcode.filter(|opcode| !instructions.contains(opcode)) {
                instructions.push(opcode);
            }
        }
        text += "```\n\n";
    }
    // What only moves values explains nothing.
    instructions
        .retain(|opcode| !["mov.", "ld.", "st.", "cvta."].iter().any(|start| opcode.starts_with(start)));
    if !instructions.is_empty() {
        text += "The instructions have pages of their own:\n\n";
        instructions.iter().for_each(|opcode| text += &format!("- `ptxvm explain {opcode}`\n"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_of_the_table_has_a_page() {
        for overload in table().filter(|overload| overload.code.contains(';')) {
            for instruction in overload.code.split_inclusive("; ") {
                let opcode = instruction.split(' ').find(|word| !word.starts_with('@')).unwrap();
                let opcode = opcode.trim_end_matches(';');
                // Calls, and labels of inline assembly.
                if opcode.contains('.') && !opcode.ends_with(':') && !opcode.starts_with("call") {
                    assert!(super::super::page(opcode).is_ok(), "{}: {opcode}", overload.name);
                }
            }
        }
    }
}
