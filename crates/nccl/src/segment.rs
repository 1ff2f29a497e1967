//! The memory that the ranks of a communicator share: a file, which all map and the last one to come removes.
//!
//! It begins with words for all, then has words for each rank, and a ring of bytes for each pair of ranks and direction. A ring has one
//! writer and one reader, who tell each other how far they are.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most ranks of a communicator.
pub const MOST_RANKS: usize = 64;

/// Bytes of a page, which has the words for all.
const PAGE: usize = 4096;
/// Bytes of the words of a rank.
const RANK: usize = 128;
/// Bytes of a ring's words, and of what it holds.
const RING_WORDS: usize = 128;
const RING: usize = 128 << 10;

/// Words for all, by number.
const COUNT: usize = 0;
const ATTACHED: usize = 1;
const BROKEN: usize = 2;
/// Words of a rank, by number.
const PROCESS: usize = 0;
const STATE: usize = 1;
const SPLIT_SAID: usize = 2;
const SPLIT_READ: usize = 3;
const COLOR: usize = 4;
const KEY: usize = 5;

/// What a rank is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not come yet.
    Absent,
    /// It takes part.
    Present,
    /// It has ended its part.
    Left,
    /// It has aborted its part.
    Aborted,
    /// Its process has ended.
    Dead,
}

/// The shared memory, mapped.
pub struct Segment {
    start: NonNull<u8>,
    bytes: usize,
    ranks: usize,
    path: PathBuf,
}

// SAFETY: the words are atomics, and who reads or writes the bytes of a ring is ordered by its words.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

/// The folder of the files: one whose files are in memory, if there is one.
fn folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// How large the memory for so many ranks is.
fn size_for(ranks: usize) -> usize {
    PAGE + ranks * RANK + ranks * ranks * (RING_WORDS + RING)
}

impl Segment {
    /// Maps the memory with a name, for so many ranks, and makes it if there is none.
    ///
    /// # Errors
    /// If the system does not let it, or if other ranks expect other numbers of ranks.
    pub fn open(name: &str, ranks: usize) -> Result<Segment, Error> {
        let path = folder().join(name);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        let bytes = size_for(ranks);
        if file.metadata()?.len() < bytes as u64 {
            file.set_len(bytes as u64)?;
        }
        let segment = Segment { start: map(&file, bytes)?, bytes, ranks, path };
        let count =
            segment.word(COUNT).compare_exchange(0, ranks as u64, Ordering::AcqRel, Ordering::Acquire);
        match count.err().filter(|&count| count != ranks as u64) {
            None => Ok(segment),
            Some(count) => {
                let what =
                    format!("this rank says that there are {ranks} ranks, and another one says {count}");
                Err(Error::new(ErrorKind::InvalidInput, what))
            }
        }
    }

    fn atomic(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= self.bytes && offset.is_multiple_of(8));
        // SAFETY: the offset is aligned and within the mapped bytes, which all processes access there only as atomics.
        unsafe { self.start.add(offset).cast::<AtomicU64>().as_ref() }
    }

    fn word(&self, number: usize) -> &AtomicU64 {
        self.atomic(number * 8)
    }

    fn of_rank(&self, rank: usize, number: usize) -> &AtomicU64 {
        self.atomic(PAGE + rank * RANK + number * 8)
    }

    /// Makes a rank take part. The last one removes the name of the memory.
    ///
    /// # Errors
    /// If this rank takes part already.
    pub fn attach(&self, rank: usize) -> Result<(), Error> {
        self.of_rank(rank, PROCESS).store(std::process::id().into(), Ordering::Release);
        let state = self.of_rank(rank, STATE).compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire);
        state.map_err(|_| Error::new(ErrorKind::InvalidInput, format!("rank {rank} takes part already")))?;
        if self.word(ATTACHED).fetch_add(1, Ordering::AcqRel) + 1 == self.ranks as u64 {
            self.remove_name();
        }
        Ok(())
    }

    /// Whether all ranks have come.
    pub fn is_complete(&self) -> bool {
        self.word(ATTACHED).load(Ordering::Acquire) >= self.ranks as u64
    }

    /// Removes the name of the memory: nobody else will come.
    pub fn remove_name(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// What a rank is doing.
    pub fn state(&self, rank: usize) -> State {
        match self.of_rank(rank, STATE).load(Ordering::Acquire) {
            0 => State::Absent,
            2 => State::Left,
            3 => State::Aborted,
            _ if !is_running(self.of_rank(rank, PROCESS).load(Ordering::Acquire)) => State::Dead,
            _ => State::Present,
        }
    }

    /// Ends a rank's part.
    pub fn leave(&self, rank: usize, is_aborted: bool) {
        self.of_rank(rank, STATE).store(if is_aborted { 3 } else { 2 }, Ordering::Release);
    }

    /// Marks the communicator as broken, for all ranks.
    pub fn break_it(&self) {
        self.word(BROKEN).store(1, Ordering::Release);
    }

    /// Whether a rank has broken it.
    pub fn is_broken(&self) -> bool {
        self.word(BROKEN).load(Ordering::Acquire) != 0
    }

    /// Says color and key of this rank for the split with a number, from 1 on.
    pub fn say_split(&self, rank: usize, number: u64, [color, key]: [i32; 2]) {
        self.of_rank(rank, COLOR).store(u64::from(color.cast_unsigned()), Ordering::Relaxed);
        self.of_rank(rank, KEY).store(u64::from(key.cast_unsigned()), Ordering::Relaxed);
        self.of_rank(rank, SPLIT_SAID).store(number, Ordering::Release);
    }

    /// Color and key of a rank in the split with a number, once it has said them.
    pub fn split(&self, rank: usize, number: u64) -> Option<[i32; 2]> {
        let is_said = self.of_rank(rank, SPLIT_SAID).load(Ordering::Acquire) >= number;
        let value = |word| (self.of_rank(rank, word).load(Ordering::Relaxed) as u32).cast_signed();
        is_said.then(|| [value(COLOR), value(KEY)])
    }

    /// This rank has read what all said for a split.
    pub fn split_is_read(&self, rank: usize, number: u64) {
        self.of_rank(rank, SPLIT_READ).store(number, Ordering::Release);
    }

    /// Whether all ranks have read what was said for a split.
    pub fn all_have_read(&self, number: u64) -> bool {
        (0..self.ranks).all(|rank| self.of_rank(rank, SPLIT_READ).load(Ordering::Acquire) >= number)
    }

    /// The ring from a rank to another one.
    pub fn ring(&self, from: usize, to: usize) -> Ring<'_> {
        let offset = PAGE + self.ranks * RANK + (from * self.ranks + to) * (RING_WORDS + RING);
        Ring {
            written: self.atomic(offset),
            read: self.atomic(offset + 64),
            // SAFETY: the ring is within the mapped bytes.
            bytes: unsafe { self.start.add(offset + RING_WORDS) },
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: it was mapped for this, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

fn map(file: &File, bytes: usize) -> Result<NonNull<u8>, Error> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: it maps new pages of a file that nobody shortens.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if start == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(Error::last_os_error)
}

/// Whether a process runs: it is there, and no zombie.
fn is_running(process: u64) -> bool {
    if process == u64::from(std::process::id()) {
        return true;
    }
    let Ok(line) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    // Its name is in parentheses, and may have some.
    let state = line.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X' | 'x'))
}

/// A ring of bytes with one writer and one reader.
pub struct Ring<'s> {
    written: &'s AtomicU64,
    read: &'s AtomicU64,
    bytes: NonNull<u8>,
}

impl Ring<'_> {
    /// Writes as many of these bytes as there is room for, and returns how many.
    ///
    /// # Safety
    /// There must be `count` readable bytes at `from`, which are not part of the ring. Nobody else may write to the ring meanwhile.
    pub unsafe fn write(&self, from: *const u8, count: usize) -> usize {
        let (written, read) = (self.written.load(Ordering::Relaxed), self.read.load(Ordering::Acquire));
        let count = count.min(RING - (written - read) as usize);
        let at = written as usize % RING;
        let first = count.min(RING - at);
        // SAFETY: the caller's promise; the reader does not read these bytes of the ring before it is told below.
        unsafe {
            std::ptr::copy_nonoverlapping(from, self.bytes.add(at).as_ptr(), first);
            std::ptr::copy_nonoverlapping(from.add(first), self.bytes.as_ptr(), count - first);
        }
        self.written.store(written + count as u64, Ordering::Release);
        count
    }

    /// Reads as many bytes as there are, at most `count`, and returns how many.
    ///
    /// # Safety
    /// There must be `count` writable bytes at `to`, which are not part of the ring. Nobody else may read from the ring meanwhile.
    pub unsafe fn read(&self, to: *mut u8, count: usize) -> usize {
        let (written, read) = (self.written.load(Ordering::Acquire), self.read.load(Ordering::Relaxed));
        let count = count.min((written - read) as usize);
        let at = read as usize % RING;
        let first = count.min(RING - at);
        // SAFETY: the caller's promise; the writer does not write these bytes of the ring before it is told below.
        unsafe {
            std::ptr::copy_nonoverlapping(self.bytes.add(at).as_ptr(), to, first);
            std::ptr::copy_nonoverlapping(self.bytes.as_ptr(), to.add(first), count - first);
        }
        self.read.store(read + count as u64, Ordering::Release);
        count
    }
}
