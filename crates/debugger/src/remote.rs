//! A debugger whose user is in another process.
//!
//! The process of the user's side ([`Host`]) listens at a socket, and starts the program with its path in
//! [`VARIABLE`]. The process that launches connects with the first launch that is to be debugged ([`Remote`]). The
//! host says what the user's side is; from then on an editor's messages go through as they are, and a terminal gets
//! text and gives lines.

use std::io::{self, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use ptxvm::{Error, Launch, LaunchReport};
use serde_json::{Value, json};

use crate::dap::{Adapter, Editor};
use crate::program::Program;
use crate::session::{self, Front, Session};
use crate::terminal::{Console, Terminal};

/// The environment variable with the path of the host's socket.
pub const VARIABLE: &str = "PTXVM_DEBUG";

/// The number from which an adapter counts its messages; the host has said something before.
const FIRST_MESSAGE: u64 = 1000;

/// A connection to the user's side, from the process that launches.
pub struct Remote {
    session: Option<Session>,
    front: Box<dyn Front + Send>,
    by_original_lines: bool,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Remote {
    /// Connects to the host that listens at a path.
    ///
    /// # Errors
    /// When there is none.
    pub fn connect(path: &Path) -> io::Result<Remote> {
        let output = UnixStream::connect(path)?;
        let mut input = BufReader::new(output.try_clone()?);
        let hello = frames::read::<Value>(&mut input)?.and_then(Result::ok);
        let hello = hello.ok_or_else(|| io::Error::other("the debugger says nothing"))?;
        let front: Box<dyn Front + Send> = match hello["front"].as_str() {
            Some("dap") => {
                let editor = Editor { output, last: FIRST_MESSAGE };
                let stops = hello["stop"].as_bool().unwrap_or(false);
                Box::new(Adapter::new(frames::messages(input), editor, stops)?)
            }
            _ => Box::new(Terminal::new(Line { input, output })),
        };
        let by_original_lines = hello["original"].as_bool().unwrap_or(false);
        Ok(Remote { session: None, front, by_original_lines })
    }

    /// Runs a launch under this debugger, or without it once the user has left.
    ///
    /// # Errors
    /// As [`Launch::run`].
    pub fn run(&mut self, launch: Launch) -> Result<LaunchReport, Error> {
        let program = Program::new(launch.module().clone());
        let session = match &mut self.session {
            Some(session) if session.is_detached() => return launch.run(),
            Some(session) => {
                session.turn_to(program);
                session
            }
            none => {
                let mut session = Session::new(program);
                session.by_original_lines = self.by_original_lines;
                none.insert(session)
            }
        };
        session::run(launch, session, &mut *self.front)
    }
}

/// A terminal at the other end of a socket.
#[derive(Debug)]
struct Line {
    input: BufReader<UnixStream>,
    output: UnixStream,
}

impl Console for Line {
    fn read(&mut self, prompt: &str) -> Option<String> {
        frames::write(&mut self.output, &json!({"prompt": prompt}).to_string()).ok()?;
        let answer = frames::read::<Value>(&mut self.input).ok()??.ok()?;
        answer["line"].as_str().map(str::to_owned)
    }

    fn write(&mut self, text: &str) {
        // Whoever does not listen any more reads no more prompts either.
        let _ = frames::write(&mut self.output, &json!({"text": text}).to_string());
    }
}

/// Waits for processes that launch.
#[derive(Debug)]
pub struct Host {
    listener: UnixListener,
    path: PathBuf,
}

impl Host {
    /// Listens at a socket in a folder.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(folder: &Path) -> io::Result<Host> {
        let path = folder.join("debug.sock");
        Ok(Host { listener: UnixListener::bind(&path)?, path })
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next process that connects; it is told what the user's side is: `{"front": "dap"}`.
    ///
    /// # Errors
    /// When none can.
    pub fn accept(&self, hello: &Value) -> io::Result<UnixStream> {
        let (mut stream, _) = self.listener.accept()?;
        frames::write(&mut stream, &hello.to_string())?;
        Ok(stream)
    }

    /// Leads processes that connect by a console, one after the other, until the listener fails.
    pub fn lead(&self, console: &mut dyn Console, original: bool) {
        while let Ok(mut output) = self.accept(&json!({"front": "terminal", "original": original})) {
            let Ok(input) = output.try_clone() else { break };
            let mut input = BufReader::new(input);
            while let Ok(Some(Ok(message))) = frames::read::<Value>(&mut input) {
                if let Some(text) = message["text"].as_str() {
                    console.write(text);
                }
                if let Some(prompt) = message["prompt"].as_str() {
                    let answer = json!({"line": console.read(prompt)});
                    if frames::write(&mut output, &answer.to_string()).is_err() {
                        break;
                    }
                }
            }
        }
    }
}
