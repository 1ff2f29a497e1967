//! The command's output: results on stdout, messages for people on stderr, and the exit code.

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};

use clap::builder::styling::{AnsiColor, Style};
use diag::Color;
use serde_json::json;

use super::options::Format;

/// Exit codes of the command.
pub mod code {
    /// Everything went well.
    pub const OK: u8 = 0;
    /// An input, PTX or array, is bad.
    pub const BAD_INPUT: u8 = 1;
    /// The command line is wrong, or an output cannot be written.
    pub const USAGE: u8 = 2;
    /// The kernel faulted, or reached `--max-steps`.
    pub const FAULT: u8 = 3;
    /// A defect of ptxvm itself.
    pub const DEFECT: u8 = 4;
    /// Ctrl-C.
    pub const INTERRUPTED: u8 = 130;
    /// The reader of the kernel's output has gone: the exit code of a command that SIGPIPE ends.
    pub const CLOSED: u8 = 141;
}

/// Why the command ends early: a message and an exit code.
#[derive(Debug)]
pub struct Failure {
    /// Exit code.
    pub code: u8,
    /// The message; empty if everything has been reported.
    pub message: String,
    help: Option<String>,
}

impl Failure {
    /// A message and the exit code.
    pub fn new(code: u8, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), help: None }
    }

    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(code::USAGE, message)
    }

    /// An input is bad.
    pub fn bad(message: impl Into<String>) -> Failure {
        Failure::new(code::BAD_INPUT, message)
    }

    /// Everything has been reported: ends with this code.
    pub fn silent(code: u8) -> Failure {
        Failure::new(code, "")
    }

    /// Adds what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    /// What to do about it, if that is known.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Adds more help, on lines of its own.
    pub fn more_help(mut self, help: impl Display) -> Failure {
        self.help = Some(match self.help {
            Some(before) => format!("{before}\n{help}"),
            None => format!("the kernel's parameters are\n{help}"),
        });
        self
    }

    /// The same with words before the message.
    pub fn context(mut self, context: impl Display) -> Failure {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// Shows it on stderr. With JSON, also prints an object on stdout:
    /// `{"error":{"code","exit_code","message","help"}}`.
    pub fn report(&self, format: Format) {
        if format == Format::Json {
            self.print_json();
        }
        self.show();
    }

    /// Prints only the JSON object.
    pub fn print_json(&self) {
        if !self.message.is_empty() {
            let code = match self.code {
                code::BAD_INPUT => "bad-input",
                code::FAULT => "fault",
                code::DEFECT => "defect",
                code::INTERRUPTED => "interrupted",
                _ => "usage",
            };
            let error = json!({
                "code": code, "exit_code": self.code, "message": self.message, "help": self.help,
            });
            // If stdout is closed, nobody can be informed.
            let _ = print(json!({ "error": error }));
        }
    }

    /// Shows it on stderr.
    pub fn show(&self) {
        if self.message.is_empty() {
            return;
        }
        let error = paint("error", AnsiColor::BrightRed);
        say(format_args!("{error}: {}", self.message));
        if let Some(help) = &self.help {
            say(format_args!("{}: {help}", paint("help", AnsiColor::BrightCyan)));
        }
    }
}

/// A word in bold colour, if stderr shows colours.
fn paint(word: &str, color: AnsiColor) -> String {
    let style = match stderr_color() {
        Color::Always => Style::new().bold().fg_color(Some(color.into())),
        Color::Never => Style::new(),
    };
    format!("{style}{word}{style:#}")
}

/// Whether stderr gets colour: if it is a terminal with colour, and `NO_COLOR` is not set.
pub fn stderr_color() -> Color {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && !is_dumb_terminal() && std::io::stderr().is_terminal() {
        Color::Always
    } else {
        Color::Never
    }
}

/// Whether the terminal has no escape sequences.
pub fn is_dumb_terminal() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// Prints a line for people on stderr. If nobody reads it, that is not an error.
pub fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Prints text for people, which already ends in a line feed, on stderr.
pub fn say_text(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Prints a line of results on stdout.
///
/// # Errors
/// When writing to stdout fails. A reader that has closed the pipe (`| head`) is not an error: the rest is dropped.
pub fn print(line: impl Display) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    written(writeln!(stdout, "{line}").and_then(|()| stdout.flush()))
}

/// The result of writing to stdout.
///
/// # Errors
/// Those of `print`.
pub fn written(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::usage(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
