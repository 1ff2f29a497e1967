//! `ptxvm debug`: runs a kernel under the debugger, by a terminal or by another process.

use std::io::{self, BufRead, IsTerminal, Write};

use debugger::terminal::{Console, Terminal};
use debugger::{Program, Session};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::Call;
use super::options::DebugOptions;
use super::report::Failure;
use super::run;

/// Runs a kernel under the debugger, then shows and saves what it computed.
///
/// # Errors
/// As `ptxvm run`.
pub fn debug(options: &DebugOptions, call: &Call) -> Result<(), Failure> {
    if options.dap {
        #[cfg(unix)]
        return super::dap::serve(call);
        #[cfg(not(unix))]
        let _ = call;
        #[cfg(not(unix))]
        return Err(Failure::usage("--dap needs Unix sockets, which this system has not"));
    }
    options.run.check_for_debugger()?;
    #[cfg(unix)]
    if let Some(path) = std::env::var_os(debugger::remote::VARIABLE) {
        let remote = debugger::remote::Remote::connect(path.as_ref());
        let mut remote = remote
            .map_err(|error| Failure::usage(format!("no debugger at `{}`: {error}", path.display())))?;
        return run::run_with(&options.run, &mut |launch| remote.run(launch));
    }
    let mut terminal = Terminal::new(Input::new());
    run::run_with(&options.run, &mut |launch| {
        let mut session = Session::new(Program::new(launch.module().clone()));
        session.by_original_lines = options.original;
        // Ctrl-C stops the kernel for good: here the user may go on.
        let launch = launch.configure(|config| {
            if let Some(cancel) = config.cancel.take() {
                session.pause_when(cancel);
            }
        });
        debugger::run(launch, &mut session, &mut terminal)
    })
}

/// Where the user's lines come from: an editor of lines on a terminal, else the standard input as it is.
pub enum Input {
    Terminal(Box<DefaultEditor>),
    Plain,
}

impl Input {
    pub fn new() -> Input {
        match DefaultEditor::new() {
            Ok(editor) if io::stdin().is_terminal() => Input::Terminal(Box::new(editor)),
            _ => Input::Plain,
        }
    }
}

impl Console for Input {
    fn read(&mut self, prompt: &str) -> Option<String> {
        match self {
            Input::Terminal(editor) => match editor.readline(prompt) {
                Ok(line) => {
                    let _ = editor.add_history_entry(&line);
                    Some(line)
                }
                Err(ReadlineError::Interrupted) => Some(" ".to_owned()),
                Err(_) => None,
            },
            Input::Plain => {
                // What is typed before the prompt is seen belongs to it, as in a script.
                print!("{prompt}");
                let _ = io::stdout().flush();
                let mut line = String::new();
                let read = io::stdin().lock().read_line(&mut line).ok().filter(|&bytes| bytes > 0);
                if !io::stdin().is_terminal() {
                    println!("{}", if read.is_some() { line.trim_end() } else { "" });
                }
                read.map(|_| line)
            }
        }
    }

    fn write(&mut self, text: &str) {
        print!("{text}");
        let _ = io::stdout().flush();
    }
}
