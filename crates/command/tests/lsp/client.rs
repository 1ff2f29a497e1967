//! A client of the language server, which keeps its own copy of each text.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    texts: HashMap<String, (String, i32)>,
    asked: i32,
    /// The last diagnostics of each file, with the version that they are of.
    diagnostics: HashMap<String, Value>,
}

/// The offset of a piece of text that is there.
pub fn at(text: &str, piece: &str) -> usize {
    text.find(piece).unwrap_or_else(|| panic!("no {piece:?}"))
}

/// Line and column of an offset, as the protocol counts.
pub fn position_of(text: &str, offset: usize) -> (usize, usize) {
    let (mut line, mut column) = (0, 0);
    let mut rest = text[..offset].chars().peekable();
    while let Some(c) = rest.next() {
        let joined = c == '\r'
            && text[..].as_bytes().get(offset - rest.clone().map(char::len_utf8).sum::<usize>())
                == Some(&b'\n');
        if c == '\n' || c == '\r' && !joined {
            (line, column) = (line + 1, 0);
        } else {
            column += c.len_utf16();
        }
    }
    (line, column)
}

impl Client {
    /// A server that is initialized.
    pub fn start() -> Client {
        Client::start_with(&Value::Null)
    }

    pub fn start_with(settings: &Value) -> Client {
        let mut client = Client::raw();
        let early = client.refused("textDocument/hover", &json!({}));
        assert!(early.contains("initialize"), "{early}");
        let answer =
            client.ask("initialize", &json!({ "capabilities": {}, "initializationOptions": settings }));
        assert_eq!(answer["capabilities"]["textDocumentSync"], 2);
        client.tell("initialized", &json!({}));
        client
    }

    /// A server that has heard nothing yet.
    pub fn raw() -> Client {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ptxvm"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Client { child, input, output, texts: HashMap::new(), asked: 0, diagnostics: HashMap::new() }
    }

    pub fn uri(&self, name: &str) -> String {
        format!("file:///files/{name}")
    }

    pub fn id(&self, name: &str) -> Value {
        json!({ "uri": self.uri(name) })
    }

    pub fn text(&self, name: &str) -> String {
        self.texts[name].0.clone()
    }

    pub fn position(&self, text: &str, offset: usize) -> Value {
        let (line, character) = position_of(text, offset);
        json!({ "line": line, "character": character })
    }

    /// A file and a place in it.
    pub fn params(&self, name: &str, offset: usize) -> Value {
        let text = self.texts.get(name).map_or("", |(text, _)| text.as_str());
        let offset = offset.min(text.len());
        json!({ "textDocument": self.id(name), "position": self.position(text, offset) })
    }

    pub fn write(&mut self, bytes: &str) {
        let input = self.input.as_mut().expect("an open input");
        input.write_all(bytes.as_bytes()).expect("the server reads");
        input.flush().expect("the server reads");
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.write(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    }

    pub fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// The next message of the server.
    fn message(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("a header") > 0, "the server is gone");
            match line.trim().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().expect("a length"),
                _ if line.trim().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// The next answer; diagnostics before it are kept.
    pub fn receive(&mut self) -> Value {
        loop {
            let message = self.message();
            if message["method"] == "textDocument/publishDiagnostics" {
                let uri = message["params"]["uri"].as_str().expect("a file").to_owned();
                self.diagnostics.insert(uri, message["params"].clone());
            } else {
                return message;
            }
        }
    }

    /// The answer to a request, an error or not.
    pub fn answer(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    pub fn at(&mut self, method: &str, name: &str, offset: usize) -> Value {
        let params = self.params(name, offset);
        self.ask(method, &params)
    }

    /// The message of an error.
    pub fn refused(&mut self, method: &str, params: &Value) -> String {
        let answer = self.answer(method, params);
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{method}: {answer}")).to_owned()
    }

    pub fn open(&mut self, name: &str, text: &str) {
        self.texts.insert(name.to_owned(), (text.to_owned(), 1));
        let file = json!({ "uri": self.uri(name), "languageId": "ptx", "version": 1, "text": text });
        self.tell("textDocument/didOpen", &json!({ "textDocument": file }));
    }

    /// Sends one change.
    fn change(&mut self, name: &str, text: String, changes: &Value) {
        let version = self.texts[name].1 + 1;
        self.texts.insert(name.to_owned(), (text, version));
        let file = json!({ "uri": self.uri(name), "version": version });
        self.tell("textDocument/didChange", &json!({ "textDocument": file, "contentChanges": changes }));
    }

    pub fn replace(&mut self, name: &str, text: &str) {
        self.change(name, text.to_owned(), &json!([{ "text": text }]));
    }

    /// Replaces some bytes.
    pub fn edit(&mut self, name: &str, start: usize, end: usize, new: &str) {
        let mut text = self.text(name);
        let range = json!({ "start": self.position(&text, start), "end": self.position(&text, end) });
        text.replace_range(start..end, new);
        self.change(name, text, &json!([{ "range": range, "text": new }]));
    }

    /// Makes edits that the server proposes, from the last to the first.
    pub fn apply(&mut self, name: &str, edits: &Value) {
        let mut edits: Vec<Value> = edits.as_array().expect("edits").clone();
        edits.sort_by_key(|edit| {
            let start = &edit["range"]["start"];
            std::cmp::Reverse((start["line"].as_u64(), start["character"].as_u64()))
        });
        for edit in &edits {
            let text = self.text(name);
            let offset = |place: &Value| {
                let wanted = (
                    place["line"].as_u64().expect("a line") as usize,
                    place["character"].as_u64().expect("a column") as usize,
                );
                (0..=text.len())
                    .filter(|&at| text.is_char_boundary(at))
                    .find(|&at| position_of(&text, at) == wanted)
                    .unwrap_or(text.len())
            };
            let (start, end) = (offset(&edit["range"]["start"]), offset(&edit["range"]["end"]));
            self.edit(name, start, end, edit["newText"].as_str().expect("a text"));
        }
    }

    /// The diagnostics of the newest text.
    pub fn diagnostics(&mut self, name: &str) -> Vec<Value> {
        let (uri, version) = (self.uri(name), self.texts[name].1);
        while self.diagnostics.get(&uri).is_none_or(|found| found["version"] != version) {
            let message = self.message();
            assert_eq!(message["method"], "textDocument/publishDiagnostics", "{message}");
            let uri = message["params"]["uri"].as_str().expect("a file").to_owned();
            self.diagnostics.insert(uri, message["params"].clone());
        }
        self.diagnostics[&uri]["diagnostics"].as_array().expect("a list").clone()
    }

    /// Ends the server as the protocol wants.
    pub fn end(mut self) {
        self.ask("shutdown", &Value::Null);
        self.tell("exit", &Value::Null);
        assert_eq!(self.wait(), Some(0));
    }

    /// Closes the server's input and returns its exit code.
    pub fn wait(mut self) -> Option<i32> {
        self.input = None;
        let mut rest = Vec::new();
        let _ = self.output.read_to_end(&mut rest);
        self.child.wait().expect("it ends").code()
    }
}
