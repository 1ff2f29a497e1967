//! `ptxvm debug --dap` as an editor sees it: a client that talks to the process.
#![cfg(unix)]

use std::io::{BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
    last: u64,
    events: Vec<Value>,
}

fn folder() -> std::path::PathBuf {
    test_utils::root().join("crates/command/tests/debug")
}

impl Client {
    fn start() -> Client {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ptxvm"))
            .args(["debug", "--dap"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the adapter starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut client = Client { child, input, output, asked: 0, last: 0, events: Vec::new() };
        let can = client.ask("initialize", json!({"adapterID": "ptxvm"}));
        assert_eq!(can["supportsStepBack"], true);
        client
    }

    /// An adapter that debugs a kernel, with these breakpoints of its file.
    fn debug(program: &str, args: &[&str], breakpoints: &Value, stops: bool) -> (Client, Value) {
        let mut client = Client::start();
        let arguments = json!({"program": program, "args": args, "cwd": folder(), "stopOnEntry": stops});
        client.ask("launch", arguments);
        client.event("initialized");
        let source = json!({"path": folder().join(program)});
        let set = client.ask("setBreakpoints", json!({"source": source, "breakpoints": breakpoints}));
        client.ask("setExceptionBreakpoints", json!({"filters": []}));
        client.ask("configurationDone", json!({}));
        (client, set["breakpoints"].clone())
    }

    fn message(&mut self) -> Value {
        let message =
            frames::read::<Value>(&mut self.output).expect("a frame").expect("the adapter is there");
        let message = message.expect("JSON");
        let number = message["seq"].as_u64().expect("a number");
        assert!(number > self.last, "messages are numbered: {message}");
        self.last = number;
        message
    }

    fn try_ask(&mut self, command: &str, arguments: Value) -> Value {
        self.asked += 1;
        let request =
            json!({"seq": self.asked, "type": "request", "command": command, "arguments": arguments});
        frames::write(self.input.as_mut().expect("its input"), &request.to_string()).expect("it reads");
        loop {
            let message = self.message();
            if message["type"] == "event" {
                self.events.push(message);
                continue;
            }
            assert_eq!(message["request_seq"], self.asked, "{message}");
            return message;
        }
    }

    fn ask(&mut self, command: &str, arguments: Value) -> Value {
        let answer = self.try_ask(command, arguments);
        assert_eq!(answer["success"], true, "{answer}");
        answer["body"].clone()
    }

    fn refused(&mut self, command: &str, arguments: Value) -> String {
        let answer = self.try_ask(command, arguments);
        assert_eq!(answer["success"], false, "{answer}");
        answer["message"].as_str().expect("why").to_owned()
    }

    /// The next event of this name.
    fn event(&mut self, name: &str) -> Value {
        loop {
            if let Some(at) = self.events.iter().position(|event| event["event"] == name) {
                return self.events.remove(at)["body"].clone();
            }
            let message = self.message();
            assert_eq!(message["type"], "event", "{message}");
            self.events.push(message);
        }
    }

    /// The next stop: its reason, and the top of the stack of the warp that it is about.
    fn stopped(&mut self) -> (String, Value) {
        let stopped = self.event("stopped");
        let reason = stopped["reason"].as_str().expect("a reason").to_owned();
        let stack = self.ask("stackTrace", json!({"threadId": stopped["threadId"]}));
        (reason, stack["stackFrames"][0].clone())
    }

    fn print(&mut self, frame: &Value, expression: &str) -> String {
        let arguments = json!({"expression": expression, "frameId": frame["id"], "context": "watch"});
        self.ask("evaluate", arguments)["result"].as_str().expect("a text").to_owned()
    }

    fn type_line(&mut self, line: &str) -> Value {
        self.ask("evaluate", json!({"expression": line, "context": "repl"}))
    }

    /// The variables of a scope of a frame, by name.
    fn scope(&mut self, frame: &Value, name: &str) -> Vec<Value> {
        let scopes = self.ask("scopes", json!({"frameId": frame["id"]}))["scopes"].clone();
        let all = scopes.as_array().expect("scopes");
        let scope = all.iter().find(|scope| scope["name"].as_str().is_some_and(|n| n.starts_with(name)));
        self.variables(&scope.unwrap_or_else(|| panic!("no {name} in {scopes}"))["variablesReference"])
    }

    fn variables(&mut self, reference: &Value) -> Vec<Value> {
        let all = self.ask("variables", json!({"variablesReference": reference}))["variables"].clone();
        all.as_array().expect("a list").clone()
    }

    /// Lets the kernel run to its end; returns what it has written, and its exit code.
    fn end(mut self) -> (String, Value) {
        let code = self.event("exited")["exitCode"].clone();
        self.event("terminated");
        let outputs = self.events.iter().filter(|event| event["event"] == "output");
        let text = outputs.map(|event| event["body"]["output"].as_str().expect("a text")).collect();
        drop(self.input.take());
        assert!(self.child.wait().expect("it ends").success());
        (text, code)
    }
}

fn value<'v>(all: &'v [Value], name: &str) -> &'v str {
    let found = all.iter().find(|variable| variable["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {all:?}"))["value"].as_str().expect("a text")
}

const DIVERGE: [&str; 8] = ["--block", "40", "--arg", "u32[40]", "--arg", "12", "--print", "0[10:14]"];

#[test]
fn a_kernel_is_stepped_through_and_back() {
    let wanted = json!([{"line": 32, "condition": "%tid.x == 9"}, {"line": 34}, {"line": 999}]);
    let (mut client, set) = Client::debug("diverge.ptx", &DIVERGE, &wanted, true);
    assert_eq!((&set[0]["verified"], &set[0]["line"]), (&json!(true), &json!(32)));
    assert_eq!((&set[1]["verified"], &set[1]["line"]), (&json!(true), &json!(35)), "the next instruction");
    assert_eq!(set[2]["verified"], false);
    let (reason, frame) = client.stopped();
    assert_eq!((reason.as_str(), &frame["line"]), ("entry", &json!(21)));
    assert!(frame["source"]["path"].as_str().unwrap().ends_with("diverge.ptx"));
    let threads = client.ask("threads", json!({}))["threads"].clone();
    assert_eq!(threads.as_array().unwrap().len(), 2);
    assert_eq!(threads[1]["name"], "block (0,0,0) warp 1");

    client.ask("continue", json!({"threadId": 1}));
    let (reason, frame) = client.stopped();
    assert_eq!(
        (reason.as_str(), &frame["line"], &frame["name"]),
        ("breakpoint", &json!(32), &json!("k (lane 9)"))
    );
    assert_eq!(client.print(&frame, "%r1 * 10 + lane"), "99");
    let registers = client.scope(&frame, "Registers");
    assert_eq!((value(&registers, "%r1"), value(&registers, "%p")), ("9", "true"));
    let parameters = client.scope(&frame, "Parameters");
    assert_eq!(value(&parameters, "limit"), "12");
    let special = client.scope(&frame, "Special");
    assert_eq!((value(&special, "%tid.x"), value(&special, "%ntid.x")), ("9", "40"));
    let lanes = client.scope(&frame, "All lanes");
    assert_eq!(value(&lanes, "%r1"), "0, 1, 2, 3, ...");
    assert_eq!(value(&lanes, "%r2"), "12 in all lanes");
    let row = lanes.iter().find(|row| row["name"] == "%r1").unwrap()["variablesReference"].clone();
    assert_eq!(value(&client.variables(&row), "lane 31"), "31");
    let why = client.type_line("why")["result"].as_str().unwrap().to_owned();
    assert!(why.contains("`@%p bra Low;`") && why.contains("lanes 12-31: now at diverge.ptx:35"), "{why}");

    // Into the function, and out again; back over it.
    let source = json!({"path": folder().join("diverge.ptx")});
    client.ask("setBreakpoints", json!({"source": source, "breakpoints": [wanted[0]]}));
    client.ask("stepIn", json!({"threadId": 1}));
    let (reason, frame) = client.stopped();
    assert_eq!(
        (reason.as_str(), &frame["line"], &frame["name"]),
        ("step", &json!(9), &json!("twice (lane 9)"))
    );
    client.ask("stepOut", json!({"threadId": 1}));
    let (reason, frame) = client.stopped();
    assert_eq!((reason.as_str(), &frame["line"]), ("step", &json!(35)));
    assert_eq!(client.print(&frame, "%r3"), "18");
    client.ask("stepBack", json!({"threadId": 1}));
    let (_, frame) = client.stopped();
    assert_eq!((&frame["line"], client.print(&frame, "%r3").as_str()), (&json!(32), "0"));
    client.ask("reverseContinue", json!({"threadId": 1}));
    let (_, frame) = client.stopped();
    assert_eq!((client.print(&frame, "time").as_str(), &frame["line"]), ("0", &json!(21)));

    // Without breakpoints, to the end.
    client.ask("setBreakpoints", json!({"source": source, "breakpoints": []}));
    client.ask("continue", json!({"threadId": 1}));
    // The launch was led back: its end is a stop, too.
    let (reason, _) = client.stopped_at_the_end();
    assert_eq!(reason, "step");
    client.ask("continue", json!({"threadId": 1}));
    let (text, code) = client.end();
    assert!(text.contains("[20, 22, 36, 39]"), "{text}");
    assert_eq!(code, 0);
}

impl Drop for Client {
    fn drop(&mut self) {
        // The kernel goes with it.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

impl Client {
    fn stopped_at_the_end(&mut self) -> (String, Value) {
        let stopped = self.event("stopped");
        let threads = self.ask("threads", json!({}))["threads"].clone();
        assert_eq!(threads[0]["name"], "the kernel has ended");
        (stopped["reason"].as_str().expect("a reason").to_owned(), stopped)
    }
}

#[test]
fn functions_original_lines_and_data_have_breakpoints() {
    let (mut client, _) = Client::debug("diverge.ptx", &DIVERGE, &json!([]), true);
    client.stopped();
    let set =
        client.ask("setFunctionBreakpoints", json!({"breakpoints": [{"name": "twice"}, {"name": "thrice"}]}));
    assert_eq!(
        (&set["breakpoints"][0]["verified"], &set["breakpoints"][1]["verified"]),
        (&json!(true), &json!(false))
    );
    let original = json!({"source": {"path": "/src/k.cu", "name": "k.cu"}, "breakpoints": [{"line": 18}]});
    client.ask("setBreakpoints", original.clone());
    client.ask("continue", json!({"threadId": 1}));
    let (_, frame) = client.stopped();
    assert_eq!(frame["name"], "twice (lane 0)");
    client.ask("setFunctionBreakpoints", json!({"breakpoints": []}));
    let original = json!({"source": {"path": "k.cu"}, "breakpoints": [{"line": 18}]});
    assert_eq!(client.ask("setBreakpoints", original)["breakpoints"][0]["line"], 18);
    client.ask("continue", json!({"threadId": 1}));
    let (_, frame) = client.stopped();
    assert_eq!(frame["line"], 41);

    // What is stored to its element of the array.
    for path in ["k.cu", "/src/k.cu"] {
        client.ask("setBreakpoints", json!({"source": {"path": path}, "breakpoints": []}));
    }
    client.type_line("focus 5");
    client.ask("next", json!({"threadId": 2}));
    let (_, frame) = client.stopped();
    let address = client.print(&frame, "%rd1");
    let info = client.ask("dataBreakpointInfo", json!({"name": "[%rd1]:u32"}));
    let set = client.ask("setDataBreakpoints", json!({"breakpoints": [{"dataId": info["dataId"]}]}));
    assert_eq!(set["breakpoints"][0]["verified"], true);
    client.ask("continue", json!({"threadId": 1}));
    let (_, frame) = client.stopped();
    assert_ne!(frame["line"], 0);
    client.ask("setDataBreakpoints", json!({"breakpoints": []}));
    let memory = client.ask("readMemory", json!({"memoryReference": address, "count": 1000}));
    assert_eq!(memory["address"], address);
    // That of thread 37 of 40.
    assert_eq!((&memory["data"], &memory["unreadableBytes"]), (&json!("bwAAAHIAAAB1AAAA"), &json!(988)));
    client.ask("disconnect", json!({"terminateDebuggee": false}));
    let (text, code) = client.end();
    assert!(text.contains("[20, 22, 36, 39]"), "{text}");
    assert_eq!(code, 0);
}

#[test]
fn a_fault_is_an_exception_and_can_be_led_back() {
    let (mut client, _) =
        Client::debug("fault.ptx", &["--block", "40", "--arg", "u32[33]"], &json!([]), false);
    let (reason, frame) = client.stopped();
    assert_eq!((reason.as_str(), &frame["line"]), ("exception", &json!(13)));
    let info = client.ask("exceptionInfo", json!({"threadId": 2}));
    assert!(info["description"].as_str().unwrap().contains("just past the end of argument 0"), "{info}");
    client.ask("stepBack", json!({"threadId": 2}));
    let (_, frame) = client.stopped();
    assert_eq!(frame["line"], 13, "before the store has begun");
    client.ask("continue", json!({"threadId": 2}));
    assert_eq!(client.stopped().0, "exception");
    client.ask("continue", json!({"threadId": 2}));
    let (text, code) = client.end();
    assert!(text.contains("access out of bounds"), "{text}");
    assert_eq!(code, 3);
}

#[test]
fn a_kernel_without_end_is_paused() {
    let (mut client, _) = Client::debug("spin.ptx", &["--arg", "u32[1]"], &json!([]), false);
    // While it runs it answers, too.
    assert_eq!(client.ask("threads", json!({}))["threads"].as_array().unwrap().len(), 1);
    client.ask("pause", json!({"threadId": 1}));
    let (reason, frame) = client.stopped();
    assert_eq!(reason, "pause");
    assert_ne!(client.print(&frame, "%r1"), "0");
    client.ask("terminate", json!({}));
    assert_eq!(client.end().1, 0);
}

#[test]
fn mistakes_are_answered() {
    let mut client = Client::start();
    assert!(client.refused("stackTrace", json!({})).contains("before `launch`"));
    let mut bad = Client::start();
    assert!(bad.refused("launch", json!({})).contains("either `program`"));

    let mut client = Client::start();
    client.ask("launch", json!({"program": "none.ptx", "cwd": folder()}));
    let (text, code) = client.end();
    assert!(text.contains("none.ptx") && code == 1, "{text} {code}");

    let (mut client, _) = Client::debug("fault.ptx", &["--arg", "u32[1]"], &json!([]), true);
    let (_, frame) = client.stopped();
    assert!(client.refused("gotoTargets", json!({})).contains("not supported"));
    assert!(client.refused("variables", json!({"variablesReference": 99})).contains("earlier stop"));
    let wrong = json!({"expression": "%nothing", "frameId": frame["id"], "context": "hover"});
    assert!(client.refused("evaluate", wrong).contains("no register `%nothing`"));
    assert!(client.refused("readMemory", json!({"memoryReference": "x", "count": 4})).contains("no address"));
    assert!(
        client
            .refused("evaluate", json!({"expression": "stepp", "context": "repl"}))
            .contains("did you mean")
    );
    client.input.as_mut().unwrap().write_all(b"Content-Length: 3\r\n\r\n{]}").unwrap();
    assert_eq!(client.print(&frame, "1 + 1"), "2");
    client.type_line("step warp");
    let (reason, frame) = client.stopped();
    assert_eq!((reason.as_str(), &frame["line"]), ("step", &json!(10)));
    client.ask("continue", json!({}));
    assert_eq!(client.end().1, 0);
}
