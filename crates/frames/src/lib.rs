//! Reads and writes the frames of the language server protocol and the debug adapter protocol: a header with the
//! length, and JSON.
//!
//! `lsp-server` has a transport, too. Its reader ends at the first message that is malformed, and with it the server;
//! this one tells what is wrong and goes on behind it.
#![forbid(unsafe_code)]

use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{Receiver, sync_channel};

use serde::de::DeserializeOwned;

/// The longest message that is read, in bytes.
const MOST_BYTES: usize = 1 << 28;

/// What comes from the client: a message, or what is wrong with one.
pub type Incoming<M> = Result<M, String>;

/// Reads messages on a thread of its own until the input ends.
pub fn messages<M: DeserializeOwned + Send + 'static>(
    mut input: impl BufRead + Send + 'static,
) -> Receiver<Incoming<M>> {
    let (sender, receiver) = sync_channel(64);
    std::thread::spawn(move || {
        while let Ok(Some(incoming)) = read(&mut input) {
            if sender.send(incoming).is_err() {
                break;
            }
        }
    });
    receiver
}

/// The next message; `None` at the end of the input.
///
/// # Errors
/// When the input cannot be read.
pub fn read<M: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<Incoming<M>>> {
    let mut length = None;
    let mut lines = 0;
    loop {
        let mut line = Vec::new();
        if input.by_ref().take(1 << 16).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        lines += 1;
        // Blank lines before a header are what is left of a broken frame.
        if line.is_empty() && lines == 1 {
            lines = 0;
            continue;
        }
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("Content-Length")
        {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let Some(length) = length else { return Ok(Some(Err("a header without `Content-Length`".into()))) };
    if length > MOST_BYTES {
        io::copy(&mut input.by_ref().take(length as u64), &mut io::sink())?;
        return Ok(Some(Err(format!("a message of more than {MOST_BYTES} bytes"))));
    }
    let mut body = vec![0; length];
    if let Err(error) = input.read_exact(&mut body) {
        return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
    }
    Ok(Some(serde_json::from_slice(&body).map_err(|error| format!("a malformed message: {error}"))))
}

/// Writes one frame.
///
/// # Errors
/// When the output cannot be written.
pub fn write(output: &mut impl Write, body: &str) -> io::Result<()> {
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn read_all(text: &str) -> Vec<Result<String, String>> {
        let mut input = text.as_bytes();
        let mut all = Vec::new();
        while let Ok(Some(incoming)) = read::<HashMap<String, serde_json::Value>>(&mut input) {
            all.push(incoming.map(|message| message["method"].as_str().unwrap_or_default().to_owned()));
        }
        all
    }

    #[test]
    fn what_is_broken_is_told_and_left_behind() {
        let good = |method: &str| {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
            format!("Content-Length: {}\r\n\r\n{body}", body.len())
        };
        let text = [
            good("a").as_str(),
            "Content-Length: 5\r\n\r\n{\"a\":",
            &good("b"),
            "Content-Length: many\r\n\r\n",
            &good("c"),
            "Content-Type: x\r\ncontent-length: 2\r\n\r\n[]",
            &good("d"),
            "Content-Length: 3\r\n\r\n\u{e9}}",
            &good("e"),
            "Content-Length: 99\r\n\r\ncut",
        ]
        .concat();
        let all = read_all(&text);
        let methods: Vec<&str> = all.iter().filter_map(|one| one.as_deref().ok()).collect();
        assert_eq!(methods, ["a", "b", "c", "d", "e"]);
        assert_eq!(all.len(), 9, "{all:?}");
    }
}
