//! `ptxvm debug --dap`: an editor's side of the debugger.
//!
//! The kernel runs in another process, which is `ptxvm debug` or `ptxvm exec` again: its output is text for the editor, and
//! its adapter talks through a socket. This process starts it when the editor says `launch`, hands messages on, and
//! says when it has ended.

use std::io::{self, BufRead, BufReader, Stdout};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use debugger::dap::Connection;
use debugger::remote::{Host, VARIABLE};
use serde_json::{Value, json};

use super::Call;
use super::report::Failure;

/// The editor, for threads that have something to say to it.
type Editor = Arc<Mutex<Connection<Stdout>>>;

fn lock(editor: &Editor) -> std::sync::MutexGuard<'_, Connection<Stdout>> {
    editor.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves an editor until it leaves.
///
/// # Errors
/// When the editor does not read, or the folder for the socket cannot be made.
pub fn serve(call: &Call) -> Result<(), Failure> {
    let written = |error: io::Error| Failure::usage(format!("cannot write to the editor: {error}"));
    let (sender, requests) = std::sync::mpsc::sync_channel(64);
    let read = frames::messages::<Value>(BufReader::new(io::stdin()));
    let mut connection = Connection { requests, output: io::stdout(), last: 0 };
    std::thread::spawn(move || read.into_iter().try_for_each(|request| sender.send(request)));
    let Some(request) = connection.until_launch().map_err(written)? else { return Ok(()) };
    let folder = tempfile::Builder::new().prefix("ptxvm-debug-").tempdir();
    let folder =
        folder.map_err(|error| Failure::usage(format!("cannot make a temporary folder: {error}")))?;
    let host = Host::new(folder.path());
    let host = host.map_err(|error| Failure::usage(format!("cannot make a socket: {error}")))?;
    let started =
        words(&request["arguments"]).and_then(|words| start(call, &words, &request["arguments"], &host));
    let mut program = match started {
        Ok(program) => program,
        Err(error) => {
            connection.answer(&request, Err(error)).map_err(written)?;
            return Ok(());
        }
    };
    connection.answer(&request, Ok(Value::Null)).map_err(written)?;
    let hello = json!({
        "front": "dap",
        "stop": request["arguments"]["stopOnEntry"],
        "original": request["arguments"]["original"],
    });
    let editor: Editor = Arc::new(Mutex::new(Connection {
        requests: std::sync::mpsc::channel().1,
        output: io::stdout(),
        last: connection.last,
    }));
    let outputs =
        [pump(program.stdout.take(), "stdout", &editor), pump(program.stderr.take(), "stderr", &editor)];
    // Processes that launch come one after the other, each with an adapter of its own.
    let adapters = Arc::clone(&editor);
    std::thread::spawn(move || hand_on(&host, &hello, &connection.requests, &adapters));
    let status = program.wait().map_err(|error| Failure::usage(error.to_string()))?;
    for output in outputs.into_iter().flatten() {
        let _ = output.join();
    }
    let mut editor = lock(&editor);
    editor.event("exited", json!({"exitCode": status.code().unwrap_or(-1)})).map_err(written)?;
    editor.event("terminated", json!({})).map_err(written)?;
    Ok(())
}

/// The words behind `ptxvm` that the editor's arguments ask for: `{"program": "k.ptx", "args": [...]}` debugs a kernel,
/// `{"exec": ["python", "x.py"], "args": [...]}` a program.
fn words(arguments: &Value) -> Result<Vec<String>, String> {
    let list = |name: &str| -> Result<Vec<String>, String> {
        let all = arguments[name].as_array().cloned().unwrap_or_default();
        let word = |word: &Value| match word {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            other => Err(format!("`{name}` is a list of words, and {other} is none")),
        };
        all.iter().map(word).collect()
    };
    let (args, program) = (list("args")?, list("exec")?);
    match arguments["program"].as_str() {
        Some(file) if program.is_empty() => Ok([vec!["debug".to_owned(), file.to_owned()], args].concat()),
        None if !program.is_empty() => {
            Ok([vec!["exec".to_owned(), "--quiet".to_owned()], args, vec!["--".to_owned()], program].concat())
        }
        _ => Err("give either `program`, a file with PTX, or `exec`, the words of a command".to_owned()),
    }
}

/// Starts this command again, with the variable that names the socket.
fn start(call: &Call, words: &[String], arguments: &Value, host: &Host) -> Result<Child, String> {
    let own = || std::env::current_exe().map(|path| vec![path.into_os_string()]);
    let again = call.again.clone().map_or_else(own, Ok).map_err(|error| error.to_string())?;
    let (name, first) = again.split_first().ok_or("this command has no name")?;
    let mut command = Command::new(name);
    command.args(first).args(words).env(VARIABLE, host.path());
    if let Some(folder) = arguments["cwd"].as_str() {
        command.current_dir(folder);
    }
    for (name, value) in arguments["env"].as_object().into_iter().flatten() {
        match value.as_str() {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|error| format!("cannot start `{}`: {error}", name.display()))
}

/// Hands the lines of an output to the editor.
fn pump(
    output: Option<impl io::Read + Send + 'static>,
    category: &'static str,
    editor: &Editor,
) -> Option<std::thread::JoinHandle<()>> {
    let (output, editor) = (output?, Arc::clone(editor));
    Some(std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            let text = String::from_utf8_lossy(&line).into_owned();
            if lock(&editor).event("output", json!({"category": category, "output": text})).is_err() {
                break;
            }
            line.clear();
        }
    }))
}

/// Hands messages on between the editor and the adapters of processes that connect.
fn hand_on(
    host: &Host,
    hello: &Value,
    requests: &std::sync::mpsc::Receiver<debugger::dap::Incoming>,
    editor: &Editor,
) {
    while let Ok(mut output) = host.accept(hello) {
        let Ok(input) = output.try_clone() else { return };
        let answers = Arc::clone(editor);
        let reader = std::thread::spawn(move || {
            let mut input = BufReader::new(input);
            while let Ok(Some(Ok(message))) = frames::read::<Value>(&mut input) {
                if lock(&answers).send(message).is_err() {
                    break;
                }
            }
        });
        while let Ok(request) = requests.recv() {
            let Ok(request) = request else { continue };
            if frames::write(&mut output, &request.to_string()).is_err() {
                break;
            }
        }
        let _ = reader.join();
    }
}
