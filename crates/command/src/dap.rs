//! `ptxvm debug --dap`: an editor's side of the debugger.
//!
//! The kernel runs in another process, which is `ptxvm debug` or `ptxvm exec` again: its output is text for the editor, and
//! its adapter talks through a socket. This process starts it when the editor says `launch`, hands messages on, and
//! says when it has ended.

use std::io::{self, BufRead, BufReader, Stdout};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use debugger::dap::Editor;
use debugger::remote::{Host, VARIABLE};
use serde_json::{Value, json};

use super::Call;
use super::report::Failure;

/// The editor, for threads that have something to say to it.
type Shared = Arc<Mutex<Editor<Stdout>>>;

/// The adapter of the process that is debugged, if one has connected.
type Adapter = Arc<Mutex<Option<UnixStream>>>;

/// How often the program is looked at.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// How long its last messages may take once it has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves an editor until it leaves.
///
/// # Errors
/// When the editor does not read, or the folder for the socket cannot be made.
pub fn serve(call: &Call) -> Result<(), Failure> {
    let written = |error: io::Error| Failure::usage(format!("cannot write to the editor: {error}"));
    let requests = frames::messages(BufReader::new(io::stdin()));
    let mut editor = Editor { output: io::stdout(), last: 0 };
    let Some(request) = editor.until_launch(&requests).map_err(written)? else { return Ok(()) };
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
            editor.answer(&request, Err(error)).map_err(written)?;
            return Ok(());
        }
    };
    editor.answer(&request, Ok(Value::Null)).map_err(written)?;
    let hello = json!({
        "front": "dap",
        "stop": request["arguments"]["stopOnEntry"],
        "original": request["arguments"]["original"],
    });
    let editor = Arc::new(Mutex::new(editor));
    let outputs =
        [pump(program.stdout.take(), "stdout", &editor), pump(program.stderr.take(), "stderr", &editor)];
    let adapter = Adapter::default();
    let (to, from) = (Arc::clone(&adapter), Arc::clone(&editor));
    std::thread::spawn(move || hand_answers_on(&host, &hello, &to, &from));
    let is_left = Arc::new(AtomicBool::new(false));
    let (to, from, leaves) = (Arc::clone(&adapter), Arc::clone(&editor), Arc::clone(&is_left));
    std::thread::spawn(move || {
        hand_requests_on(&requests, &to, &from);
        leaves.store(true, Ordering::SeqCst);
    });
    let failed = |error: io::Error| Failure::usage(error.to_string());
    let status = loop {
        if let Some(status) = program.try_wait().map_err(failed)? {
            break status;
        }
        if is_left.load(Ordering::SeqCst) {
            program.kill().map_err(failed)?;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    };
    for output in outputs.into_iter().flatten() {
        let _ = output.join();
    }
    // The adapter's last words may still be on their way. A process that the program has left behind may keep the socket.
    let start = Instant::now();
    while lock(&adapter).is_some() && start.elapsed() < LAST_WORDS {
        std::thread::sleep(BETWEEN_LOOKS);
    }
    let exited = json!({"exitCode": status.code().unwrap_or(-1)});
    lock(&editor).event("exited", exited).map_err(written)?;
    lock(&editor).event("terminated", json!({})).map_err(written)?;
    // An editor wants an answer to its farewell.
    while !is_left.load(Ordering::SeqCst) {
        std::thread::sleep(BETWEEN_LOOKS);
    }
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
    editor: &Shared,
) -> Option<JoinHandle<()>> {
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

/// Hands on what adapters of processes that connect say, one after the other.
fn hand_answers_on(host: &Host, hello: &Value, adapter: &Adapter, editor: &Shared) {
    while let Ok(socket) = host.accept(hello) {
        let Ok(input) = socket.try_clone() else { return };
        *lock(adapter) = Some(socket);
        let mut input = BufReader::new(input);
        while let Ok(Some(Ok(message))) = frames::read::<Value>(&mut input) {
            if lock(editor).send(message).is_err() {
                return;
            }
        }
        *lock(adapter) = None;
    }
}

/// Hands requests on to the adapter, until the editor goes away, or says so while there is none.
fn hand_requests_on(requests: &Receiver<debugger::dap::Incoming>, adapter: &Adapter, editor: &Shared) {
    while let Ok(request) = requests.recv() {
        // What is malformed has no answer.
        let Ok(request) = request else { continue };
        let mut adapter = lock(adapter);
        let is_heard =
            adapter.as_mut().is_some_and(|socket| frames::write(socket, &request.to_string()).is_ok());
        if is_heard {
            continue;
        }
        let leaves = matches!(request["command"].as_str(), Some("disconnect" | "terminate"));
        let answer = if leaves { Ok(Value::Null) } else { Err("no kernel is running".to_owned()) };
        if lock(editor).answer(&request, answer).is_err() || leaves {
            break;
        }
    }
    if let Some(socket) = &*lock(adapter) {
        // The launch ends as if the editor had said so.
        let _ = socket.shutdown(std::net::Shutdown::Both);
    }
}
