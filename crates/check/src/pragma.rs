//! Pragmas (PTX ISA, "Performance-Tuning Directives: .pragma", "Pragma Strings"). ptxas checks a few, and ignores all
//! others.

use diag::Code;
use isa::{Target, Version};
use syntax::tree::Directive;

use crate::checker::Checker;

/// A pragma for instructions, which is allowed only in a body.
struct Known {
    name: &'static str,
    version: Option<Version>,
    target: Target,
    /// The numbers that may follow it.
    value: Option<fn(i128) -> bool>,
}

const KNOWN: [Known; 3] = [
    Known {
        name: "enable_smem_spilling",
        version: Some(Version::new(8, 7)),
        target: Target::sm(75),
        value: None,
    },
    Known {
        name: "frequency",
        version: Some(Version::new(9, 0)),
        target: Target::sm(20),
        value: Some(|value| value > 0),
    },
    Known {
        name: "used_bytes_mask",
        version: Some(Version::new(8, 3)),
        target: Target::sm(50),
        value: Some(|_| true),
    },
];

impl<'a> Checker<'a> {
    /// Checks a `.pragma`, in a body or outside.
    pub(crate) fn pragma(&mut self, node: &Directive<'a>, in_body: bool) {
        self.need(node.name.span, ".pragma directive", Some(Version::new(2, 0)), None);
        for argument in &node.arguments {
            let span = argument.span();
            let text = self.source.slice(span).trim_matches('"');
            let (name, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            let Some(known) = KNOWN.iter().find(|known| known.name == name) else { continue };
            if !in_body {
                let message = format!("Pragma '{text}' is allowed only within function scope");
                self.sink.error(Code::Misplaced, span, message);
                continue;
            }
            self.need(span, name, known.version, Some(known.target));
            let Some(permits) = known.value else { continue };
            if value.is_empty() {
                let message = format!("Argument(s) to pragma '{name}' cannot be empty");
                self.sink.last_error(Code::IllegalPragma, span, message);
                // For `frequency`, ptxas reports both errors.
                if name != "frequency" {
                    continue;
                }
            }
            if !number(value).is_some_and(permits) {
                let message = format!("Invalid value '{value}' specified for .pragma '{text}'");
                self.sink.last_error(Code::IllegalPragma, span, message);
            }
        }
    }
}

/// A number in decimal or hexadecimal notation.
fn number(text: &str) -> Option<i128> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    value.ok().map(|value| if negative { -value } else { value })
}
