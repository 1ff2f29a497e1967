//! Who gets what the server says.

use std::io::{self, Write};

/// Takes the messages of a server.
pub trait Client {
    /// Takes a message, as JSON.
    fn send(&mut self, body: &str) -> io::Result<()>;
}

/// A client at the other end of this output. It gets frames.
pub struct Framed<W>(pub W);

impl<W: Write> Client for Framed<W> {
    fn send(&mut self, body: &str) -> io::Result<()> {
        frames::write(&mut self.0, body)
    }
}

/// A client in the same program. It takes the messages when it likes.
impl Client for Vec<String> {
    fn send(&mut self, body: &str) -> io::Result<()> {
        self.push(body.to_owned());
        Ok(())
    }
}
