//! The debugger for editors: the Debug Adapter Protocol.
//!
//! A *thread* of the protocol is a warp of a block that is running. The lane in focus stands for its warp; steps are
//! those of that lane, and any command of the terminal can be typed in the editor's debug console.
//!
//! An adapter answers while the launch is stopped, and every now and then while it runs. Types of the protocol are
//! written as JSON here: what crates offer for them has not been kept since 2023.

mod adapter;
mod variables;

use std::io::{self, Write};
use std::sync::mpsc::Receiver;

use serde_json::{Value, json};

pub use adapter::Adapter;

/// A request of an editor, or what is wrong with a message.
pub type Incoming = frames::Incoming<Value>;

/// An editor, to whom messages go.
#[derive(Debug)]
pub struct Editor<W> {
    /// Where they are written.
    pub output: W,
    /// The number of the last one.
    pub last: u64,
}

impl<W: Write> Editor<W> {
    /// Sends an event.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn event(&mut self, name: &str, body: Value) -> io::Result<()> {
        self.send(json!({"type": "event", "event": name, "body": body}))
    }

    /// Answers a request.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn answer(&mut self, request: &Value, answer: Result<Value, String>) -> io::Result<()> {
        let mut message = json!({
            "type": "response",
            "request_seq": request["seq"],
            "command": request["command"],
            "success": answer.is_ok(),
        });
        match answer {
            Ok(body) => message["body"] = body,
            Err(error) => {
                message["message"] = json!(error);
                message["body"] = json!({"error": {"id": 1, "format": error, "showUser": true}});
            }
        }
        self.send(message)
    }

    /// Sends a message, with the next number.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn send(&mut self, mut message: Value) -> io::Result<()> {
        self.last += 1;
        message["seq"] = json!(self.last);
        frames::write(&mut self.output, &message.to_string())
    }
    /// Answers requests until one asks for a program (`launch`, `attach`); returns that one, unanswered. `None` if the
    /// editor goes away before.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn until_launch(&mut self, requests: &Receiver<Incoming>) -> io::Result<Option<Value>> {
        while let Ok(request) = requests.recv() {
            let request = match request {
                Ok(request) => request,
                Err(error) => {
                    self.event("output", json!({"category": "stderr", "output": format!("{error}\n")}))?;
                    continue;
                }
            };
            match request["command"].as_str().unwrap_or_default() {
                "initialize" => self.answer(&request, Ok(capabilities()))?,
                "launch" | "attach" => return Ok(Some(request)),
                "disconnect" | "terminate" => {
                    self.answer(&request, Ok(Value::Null))?;
                    return Ok(None);
                }
                other => self.answer(&request, Err(format!("`{other}` before `launch`")))?,
            }
        }
        Ok(None)
    }
}

/// What the adapter can do.
fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsEvaluateForHovers": true,
        "supportsStepBack": true,
        "supportsDataBreakpoints": true,
        "supportsSteppingGranularity": true,
        "supportsTerminateRequest": true,
        "supportsReadMemoryRequest": true,
        "supportsExceptionInfoRequest": true,
    })
}
