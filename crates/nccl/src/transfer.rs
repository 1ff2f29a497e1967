//! Messages between ranks. A rank sends and receives all that it has to at a time, as far as the rings let it, so no order of ranks or
//! peers can make them wait for each other in a circle.

use std::time::{Duration, Instant};

use caller::log;

use crate::comm::Comm;
use crate::segment::State;

/// What a message says of the operation that it is part of. Both sides must mean the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Head {
    /// The operation.
    pub kind: u64,
    /// The type of its numbers.
    pub ty: u64,
    /// How many numbers the program's call says.
    pub count: u64,
    /// The reduction, if there is one.
    pub reduction: u64,
    /// The root, if there is one.
    pub root: u64,
    /// Bytes of this message.
    pub bytes: u64,
}

const HEAD: usize = size_of::<Head>();

/// Why an operation ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// This rank aborted the communicator.
    Aborted,
    /// Another rank failed or is gone, in words.
    Remote(String),
    /// The program's calls do not fit each other, in words.
    Mismatch(String),
    /// The driver has no such memory any more.
    Driver(mathlib::Error),
}

impl From<mathlib::Error> for Failure {
    fn from(error: mathlib::Error) -> Failure {
        Failure::Driver(error)
    }
}

/// A message to another rank.
pub struct Send {
    pub peer: usize,
    pub head: Head,
    /// The bytes to send, as many as the head says.
    pub from: *const u8,
}

/// A message from another rank.
pub struct Receive {
    pub peer: usize,
    /// What the message must say.
    pub head: Head,
    /// Where its bytes go.
    pub to: *mut u8,
}

/// How long to wait before a rank says that it does.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for other ranks, and notices when they will not come.
pub struct Idle<'c> {
    comm: &'c Comm,
    name: &'c str,
    turns: u32,
    since: Instant,
    looked: Instant,
    has_said: bool,
}

impl<'c> Idle<'c> {
    /// Begins to wait in a function.
    pub fn new(comm: &'c Comm, name: &'c str) -> Idle<'c> {
        let now = Instant::now();
        Idle { comm, name, turns: 0, since: now, looked: now, has_said: false }
    }

    /// Something has gone on.
    pub fn reset(&mut self) {
        if self.turns > 0 {
            (self.turns, self.since) = (0, Instant::now());
        }
    }

    /// Lets some time pass while nothing comes from these ranks.
    ///
    /// # Errors
    /// If it will not come: the communicator is aborted or broken, a rank is gone, or it takes too long.
    pub fn wait(&mut self, peers: impl Fn() -> Vec<usize>) -> Result<(), Failure> {
        if self.comm.is_aborted() {
            return Err(Failure::Aborted);
        }
        self.turns += 1;
        match self.turns {
            ..64 => std::thread::yield_now(),
            64..512 => std::thread::sleep(Duration::from_micros(50)),
            _ => std::thread::sleep(Duration::from_micros(500)),
        }
        if self.looked.elapsed() < Duration::from_millis(50) {
            return Ok(());
        }
        self.looked = Instant::now();
        let segment = &self.comm.segment;
        if segment.is_broken() {
            return Err(Failure::Remote("another rank has failed".to_owned()));
        }
        for peer in peers() {
            let gone = match segment.state(peer) {
                State::Left => "has destroyed its communicator",
                State::Aborted => "has aborted its communicator",
                State::Dead => "has ended, with its process",
                State::Present | State::Absent => continue,
            };
            // What it sent before is there.
            if self.turns > 1024 || self.since.elapsed() > Duration::from_millis(200) {
                return Err(Failure::Remote(format!("rank {peer} {gone}")));
            }
        }
        let (waited, most) = (self.since.elapsed(), crate::comm::timeout());
        let who = || peers().iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        if waited > most {
            let seconds = most.as_secs();
            return Err(Failure::Remote(format!("nothing has come from rank {} in {seconds} s", who())));
        }
        if waited > PATIENCE && !self.has_said {
            self.has_said = true;
            let rank = self.comm.rank;
            log!(error, "{}: rank {rank} has waited {} s for rank {}", self.name, PATIENCE.as_secs(), who());
        }
        Ok(())
    }
}

/// Sends and receives messages, all at a time. Messages to one peer go, and those from one peer come, in this order.
///
/// # Errors
/// If another rank is gone or means another operation.
///
/// # Safety
/// The bytes of the messages must be there, readable and writable, and none may be part of two messages unless both are sent.
pub unsafe fn exchange(comm: &Comm, name: &str, sends: &[Send], receives: &[Receive]) -> Result<(), Failure> {
    let mut sent = vec![0usize; sends.len()];
    let mut received = vec![0usize; receives.len()];
    let mut heads = vec![[0u8; HEAD]; receives.len()];
    let whole = |head: &Head| HEAD + head.bytes as usize;
    let mut idle = Idle::new(comm, name);
    loop {
        let mut moved = false;
        for (i, send) in sends.iter().enumerate() {
            let is_next = !(0..i).any(|j| sends[j].peer == send.peer && sent[j] < whole(&sends[j].head));
            let ring = comm.segment.ring(comm.rank, send.peer);
            while is_next && sent[i] < whole(&send.head) {
                let at = sent[i];
                let (from, count) = match at.checked_sub(HEAD) {
                    None => ((&raw const send.head).cast::<u8>().wrapping_add(at), HEAD - at),
                    Some(at) => (send.from.wrapping_add(at), send.head.bytes as usize - at),
                };
                // SAFETY: the caller's promise, and a head has its bytes. This rank alone writes to its rings, one work at a time.
                let count = unsafe { ring.write(from, count) };
                if count == 0 {
                    break;
                }
                (sent[i], moved) = (at + count, true);
            }
        }
        for (i, receive) in receives.iter().enumerate() {
            let is_next =
                !(0..i).any(|j| receives[j].peer == receive.peer && received[j] < whole(&receives[j].head));
            let ring = comm.segment.ring(receive.peer, comm.rank);
            while is_next && received[i] < whole(&receive.head) {
                let at = received[i];
                let (to, count) = match at.checked_sub(HEAD) {
                    None => (heads[i][at..].as_mut_ptr(), HEAD - at),
                    Some(at) => (receive.to.wrapping_add(at), receive.head.bytes as usize - at),
                };
                // SAFETY: as above, for reading.
                let count = unsafe { ring.read(to, count) };
                if count == 0 {
                    break;
                }
                (received[i], moved) = (at + count, true);
                if at < HEAD && received[i] == HEAD {
                    check(comm, receive, &heads[i])?;
                }
            }
        }
        let left = |done: &[usize], all: &mut dyn Iterator<Item = (usize, usize)>| -> Vec<usize> {
            done.iter()
                .zip(all)
                .filter(|(done, (whole, _))| *done < whole)
                .map(|(_, (_, peer))| peer)
                .collect()
        };
        let peers = || {
            let mut peers = left(&sent, &mut sends.iter().map(|send| (whole(&send.head), send.peer)));
            peers.extend(left(
                &received,
                &mut receives.iter().map(|receive| (whole(&receive.head), receive.peer)),
            ));
            peers.sort_unstable();
            peers.dedup();
            peers
        };
        if moved {
            idle.reset();
        } else if peers().is_empty() {
            return Ok(());
        } else {
            idle.wait(peers)?;
        }
    }
}

/// Checks that a message is of the operation that this rank performs.
fn check(comm: &Comm, receive: &Receive, bytes: &[u8; HEAD]) -> Result<(), Failure> {
    let mut words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
    let mut next = || words.next().unwrap_or(0);
    let theirs =
        Head { kind: next(), ty: next(), count: next(), reduction: next(), root: next(), bytes: next() };
    if theirs == receive.head {
        return Ok(());
    }
    let (ours, rank, peer) = (receive.head, comm.rank, receive.peer);
    let [own, other] = [ours, theirs].map(|head| crate::operation::describe(&head));
    Err(Failure::Mismatch(format!("rank {rank} is at {own}, and rank {peer} at {other}")))
}
