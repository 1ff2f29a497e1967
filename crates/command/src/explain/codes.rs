//! `ptxvm explain race-write-read`: the kind of an error, a warning, a fault or a finding.

use diag::Code;

use crate::report::Failure;

/// `cargo xtask docs`: name, line of PTX, message, help, from the files of `tests/fail`.
const EXAMPLES: &str = include_str!("codes.tsv");

/// The code with this name.
pub fn find(name: &str) -> Option<Code> {
    Code::ALL.iter().copied().find(|code| code.name() == name)
}

/// The error for a name that is no code.
pub fn unknown(name: &str) -> Failure {
    let failure = Failure::bad(format!("`{name}` is no code of an error"));
    match diag::nearest(name, Code::ALL.iter().map(|code| code.name())) {
        Some(near) => failure.help(format!("the nearest code is `{near}`")),
        None => failure.help("messages show their code in brackets: error[requires-target]"),
    }
}

/// The page of a code.
pub fn page(code: Code) -> String {
    let mut text = format!("# {}\n\n{}\n", code.name(), code.meaning().trim());
    for line in EXAMPLES.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        if let [name, ptx, message, help] = columns[..]
            && name == code.name()
        {
            text += &format!("\nFor example:\n\n```\n{ptx}\n```\n\n`{message}`\n");
            if !help.is_empty() {
                text += &format!("\nhelp: {help}\n");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_of_a_code() {
        assert!(EXAMPLES.lines().count() > 80);
        for line in EXAMPLES.lines() {
            let name = line.split('\t').next().unwrap();
            let page = page(find(name).unwrap_or_else(|| panic!("{name}")));
            assert!(page.contains("For example:"), "{page}");
        }
    }

    #[test]
    fn every_code_says_what_it_means() {
        for code in Code::ALL {
            let meaning = code.meaning().trim();
            assert!(meaning.ends_with('.') && meaning.len() > 10, "{code:?}: {meaning}");
        }
    }
}
