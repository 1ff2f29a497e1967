//! ptxvm for a web page. The page asks with JSON, and gets JSON ([`Engine::call`]). What it gets is what the libraries give
//! everybody: the language server (`lsp`), `ptxvm run`, `eval` and `explain` (`command`). This crate only carries it over.
//!
//! The page is in `page/`, and `build.sh` makes files of both that any file server can serve.
#![cfg_attr(not(target_family = "wasm"), forbid(unsafe_code))]

#[cfg(target_family = "wasm")]
mod exports;

use command::in_process::{self, Argument};
use command::{DType, Failure, Recording};
use ptxvm::{Module, SourceFile};
use serde::Deserialize;
use serde_json::{Value, json};

/// What the page asks.
#[derive(Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum Question {
    /// The version, and the types that elements of arrays have.
    About,
    /// Hands a message to the language server.
    Editor { message: Value },
    /// The kernels of a text.
    Kernels { text: String },
    /// A launch, with the words behind `ptxvm run FILE`.
    Run { text: String, words: Vec<String> },
    /// Elements of an array of the last launch.
    Elements { array: usize, from: u64, to: u64 },
    /// An array of the last launch as a picture, in rows of this width if it has none.
    Picture { array: usize, width: Option<u64> },
    /// A block of a launch, recorded.
    Record { text: String, words: Vec<String>, block: u64 },
    /// The recorded block when so many turns had been taken, with the values of a register.
    Moment { time: usize, register: Option<String>, ty: Option<String> },
    /// `ptxvm explain`
    Explain { name: String },
    /// `ptxvm eval`
    Eval { instruction: String, operands: Vec<String> },
}

/// The most elements of one answer.
const MOST_ELEMENTS: u64 = 4096;

/// What answers the page: a language server, the arrays of the last launch, and the last recording.
#[derive(Default)]
pub struct Engine {
    editor: lsp::Session,
    arrays: Vec<Argument>,
    recording: Option<Recording>,
}

impl Engine {
    /// Answers a question. The answer has `error` if there is none: a `message`, and `help` or null.
    pub fn call(&mut self, question: &str) -> String {
        let answer = match serde_json::from_str(question) {
            Ok(question) => self.answer(question).unwrap_or_else(
                |failure| json!({ "error": { "message": failure.message, "help": failure.advice() } }),
            ),
            Err(error) => json!({ "error": { "message": error.to_string(), "help": null } }),
        };
        answer.to_string()
    }

    fn answer(&mut self, question: Question) -> Result<Value, Failure> {
        Ok(match question {
            Question::About => {
                json!({ "version": env!("CARGO_PKG_VERSION"), "elements": DType::NAMES })
            }
            Question::Editor { message } => {
                let said = self.editor.message(&message.to_string());
                let said = said.iter().filter_map(|message| serde_json::from_str::<Value>(message).ok());
                json!({ "messages": said.collect::<Vec<_>>() })
            }
            Question::Kernels { text } => match Module::from_ptx(&text) {
                Ok(module) => json!({ "kernels": in_process::kernels(&module) }),
                // The language server says what is wrong with the text.
                Err(_) => json!({ "kernels": null }),
            },
            Question::Run { text, words } => {
                self.arrays.clear();
                let ran = in_process::run(SourceFile::new("kernel.ptx", text), &words)?;
                let arrays = ran.arrays.iter().map(|argument| {
                    json!({
                        "place": argument.place,
                        "name": argument.name,
                        "type": argument.array.dtype.name(),
                        "shape": argument.array.shape,
                        "elements": argument.array.elements(),
                    })
                });
                let arrays: Value = arrays.collect();
                self.arrays = ran.arrays;
                json!({
                    "summary": ran.summary, "stopped": ran.error, "findings": ran.findings,
                    "printed": ran.printed, "arrays": arrays,
                })
            }
            Question::Elements { array, from, to } => {
                let array = self.array(array)?;
                let range = from..to.min(from.saturating_add(MOST_ELEMENTS));
                json!({
                    "values": array.elements(range.clone(), false),
                    "bits": array.elements(range, true),
                })
            }
            Question::Picture { array, width } => {
                let png = self.array(array)?.picture(width).map_err(Failure::bad)?;
                json!({ "png": png })
            }
            Question::Record { text, words, block } => {
                self.recording = None;
                let recording = in_process::record(SourceFile::new("kernel.ptx", text), &words, block)?;
                self.recording.insert(recording).summary()
            }
            Question::Moment { time, register, ty } => match &self.recording {
                Some(recording) => recording.at(time, register.as_deref(), ty.as_deref()),
                None => return Err(Failure::usage("nothing is recorded")),
            },
            Question::Explain { name } => json!({ "page": command::page(name.trim())? }),
            Question::Eval { instruction, operands } => {
                json!({ "text": in_process::evaluate(&instruction, &operands)? })
            }
        })
    }

    fn array(&self, index: usize) -> Result<&Argument, Failure> {
        self.arrays.get(index).ok_or_else(|| Failure::usage("there is no such array"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILL: &str = ".version 7.0\n.target sm_70\n.address_size 64\n\
        .visible .entry fill(.param .u64 out) {\n.reg .b64 %p;\n.reg .b32 %i;\nld.param.u64 %p, [out];\n\
        mov.u32 %i, %tid.x;\nmad.wide.u32 %p, %i, 4, %p;\nst.global.u32 [%p], %i;\nret;\n}\n";

    fn ask(engine: &mut Engine, question: Value) -> Value {
        serde_json::from_str(&engine.call(&question.to_string())).unwrap()
    }

    fn editor(engine: &mut Engine, message: Value) -> Value {
        ask(engine, json!({ "ask": "editor", "message": message }))
    }

    #[test]
    fn a_launch_leaves_numbers_and_a_picture() {
        let mut engine = Engine::default();
        let kernels = ask(&mut engine, json!({ "ask": "kernels", "text": FILL }));
        assert_eq!(kernels["kernels"][0]["params"][0]["name"], "out");
        let words = ["--block", "6", "--arg", "u32[2x3]", "--profile"];
        let ran = ask(&mut engine, json!({ "ask": "run", "text": FILL, "words": words }));
        assert_eq!(ran["stopped"], Value::Null);
        assert_eq!(ran["arrays"][0]["shape"], json!([2, 3]));
        assert_eq!(ran["summary"]["profile"]["lines"][0]["line"], 7);
        let elements = ask(&mut engine, json!({ "ask": "elements", "array": 0, "from": 4, "to": 9 }));
        assert_eq!(elements["values"], json!(["4", "5"]));
        assert_eq!(elements["bits"][0], "0x00000004");
        let picture = ask(&mut engine, json!({ "ask": "picture", "array": 0 }));
        assert_eq!(picture["png"][1], u32::from(b'P'));
    }

    #[test]
    fn the_editor_gets_diagnostics_and_meanings() {
        let mut engine = Engine::default();
        let start =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } });
        assert!(editor(&mut engine, start)["messages"][0]["result"]["capabilities"].is_object());
        let text = FILL.replace("mov.u32", "mvo.u32");
        let document =
            json!({ "uri": "file:///kernel.ptx", "languageId": "ptx", "version": 1, "text": text });
        let open = json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": document } });
        let said = editor(&mut engine, open);
        let diagnostics = &said["messages"][0]["params"]["diagnostics"];
        assert_eq!(diagnostics[0]["range"]["start"]["line"], 7);
        let page = ask(&mut engine, json!({ "ask": "explain", "name": "mad.wide.u32" }));
        assert!(page["page"].as_str().unwrap().starts_with("# mad.wide.u32"));
        let sum =
            ask(&mut engine, json!({ "ask": "eval", "instruction": "add.u32", "operands": ["2", "3"] }));
        assert!(sum["text"].as_str().unwrap().contains("= 5"), "{sum}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut engine = Engine::default();
        assert!(ask(&mut engine, json!({ "ask": "dance" }))["error"]["message"].is_string());
        assert!(
            ask(&mut engine, json!({ "ask": "elements", "array": 0, "from": 0, "to": 1 }))["error"]
                .is_object()
        );
        let ran = ask(
            &mut engine,
            json!({ "ask": "run", "text": FILL, "words": ["--arg", "u32[1]", "--block", "2"] }),
        );
        assert_eq!(ran["stopped"]["diagnostics"][0]["line"], 10);
        let ran = ask(&mut engine, json!({ "ask": "run", "text": FILL, "words": ["--arg"] }));
        assert!(ran["error"]["message"].as_str().unwrap().contains("--arg"), "{ran}");
    }
}
