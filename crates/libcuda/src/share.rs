//! Memory that several processes map: files without a name (`memfd_create`), which live as long as anybody has them.
//!
//! A process names such a file to others by its own number, the number of its descriptor, and the file's, which tells whether the
//! descriptor is still the same: they open it at `/proc/PID/fd`. The kernel allows that to processes of the same user. So nothing is left
//! behind by a process that was killed, and what it has shared can no longer be opened then; who has it open keeps it.

use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;

const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// What the files are called in `/proc/PID/fd`.
const NAME: &CStr = c"ptxvm-shared";
const LINK: &str = "/memfd:ptxvm-shared (deleted)";

/// Such a file, and where it is mapped here.
pub struct Shared {
    start: NonNull<u8>,
    bytes: usize,
    file: File,
}

// SAFETY: it is plain memory; whoever uses it synchronizes with the others.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// What another process needs to open a file: the bytes of `CUipcMemHandle` and `CUipcEventHandle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// What it is for: memory, an event or memory of a pool.
    pub kind: Kind,
    /// The process that has it.
    pub process: u32,
    /// The number of the descriptor there.
    descriptor: u32,
    /// The number of the file.
    pub file: u64,
    /// Two numbers for the purpose: bytes of memory, or which event.
    pub numbers: [u64; 2],
}

/// What a [`Name`] is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An allocation; the first number is its size in bytes.
    Memory = 1,
    /// An event; the numbers are those of `shared_event.rs`.
    Event = 2,
}

impl Name {
    const MARK: &[u8; 7] = b"ptxvm/1";

    /// As bytes.
    pub fn to_bytes(self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..7].copy_from_slice(Name::MARK);
        bytes[7] = self.kind as u8;
        bytes[8..12].copy_from_slice(&self.process.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.descriptor.to_le_bytes());
        for (place, number) in
            bytes[16..40].chunks_exact_mut(8).zip([self.file, self.numbers[0], self.numbers[1]])
        {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The name that bytes are, if they are one of this kind.
    pub fn of_bytes(bytes: &[u8; 64], kind: Kind) -> Option<Name> {
        if &bytes[..7] != Name::MARK || bytes[7] != kind as u8 {
            return None;
        }
        let half = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let number = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        let numbers = [number(24), number(32)];
        Some(Name { kind, process: half(8), descriptor: half(12), file: number(16), numbers })
    }

    /// Opens and maps the file.
    ///
    /// # Errors
    /// If the process has ended, has closed the file, or is another user's; or the host has no memory.
    pub fn open(self) -> Result<Shared> {
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        let file = File::options().read(true).write(true).open(path)?;
        if file.metadata()?.ino() != self.file {
            return Err(Error::from(std::io::ErrorKind::NotFound));
        }
        Shared::of_file(file)
    }
}

impl Shared {
    /// New memory of so many bytes, all of them zero.
    ///
    /// # Errors
    /// If the host has none.
    pub fn new(bytes: usize) -> Result<Shared> {
        // SAFETY: the name ends with a zero.
        let descriptor = unsafe { libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else's.
        let file = unsafe { File::from_raw_fd(descriptor) };
        file.set_len(bytes as u64)?;
        Shared::map(file, bytes)
    }

    /// The memory of a descriptor that the program has, which stays the program's.
    ///
    /// # Errors
    /// If it is no descriptor of such a file.
    pub fn of_descriptor(descriptor: RawFd) -> Result<Shared> {
        let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}"))?;
        if link.to_str() != Some(LINK) {
            return Err(Error::from(std::io::ErrorKind::InvalidInput));
        }
        // SAFETY: the call takes numbers alone.
        let own = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
        if own < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else's.
        Shared::of_file(unsafe { File::from_raw_fd(own) })
    }

    fn of_file(file: File) -> Result<Shared> {
        let bytes = usize::try_from(file.metadata()?.len())
            .map_err(|_| Error::from(std::io::ErrorKind::OutOfMemory))?;
        Shared::map(file, bytes)
    }

    fn map(file: File, bytes: usize) -> Result<Shared> {
        // SAFETY: it asks for new pages at any address.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, READ_WRITE, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        match NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Shared { start, bytes, file }),
            None => Err(Error::last_os_error()),
        }
    }

    /// The first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of the file.
    pub fn file(&self) -> Result<u64> {
        Ok(self.file.metadata()?.ino())
    }

    /// A descriptor of the file for the program, which closes it.
    ///
    /// # Errors
    /// If the process may have no more of them.
    pub fn descriptor(&self) -> Result<RawFd> {
        // SAFETY: the call takes numbers alone.
        let descriptor = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) };
        if descriptor < 0 { Err(Error::last_os_error()) } else { Ok(descriptor) }
    }

    /// The name by which other processes open it while this one keeps it.
    ///
    /// # Errors
    /// If the kernel knows the file no more.
    pub fn name(&self, kind: Kind, numbers: [u64; 2]) -> Result<Name> {
        let descriptor = self.file.as_raw_fd().cast_unsigned();
        Ok(Name { kind, process: std::process::id(), descriptor, file: self.file()?, numbers })
    }

    /// Maps bytes of the memory a second time, over pages that have been mapped by `mmap`: their addresses stay, and what was in them is
    /// lost.
    ///
    /// # Errors
    /// If the kernel refuses.
    ///
    /// # Safety
    /// From `pages` on, so many bytes must be whole pages, and nobody may use them meanwhile.
    pub unsafe fn map_over(&self, pages: NonNull<u8>, offset: usize, bytes: usize) -> Result<()> {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let place = pages.as_ptr().cast::<c_void>();
        let offset =
            libc::off_t::try_from(offset).map_err(|_| Error::from(std::io::ErrorKind::InvalidInput))?;
        // SAFETY: the caller's promise.
        let mapped = unsafe { libc::mmap(place, bytes, READ_WRITE, flags, self.file.as_raw_fd(), offset) };
        if mapped == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: this is the mapping from `map`, and nothing uses it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_has_one_content() {
        let first = Shared::new(8192).unwrap();
        let name = first.name(Kind::Memory, [8000, 0]).unwrap();
        assert_eq!(Name::of_bytes(&name.to_bytes(), Kind::Memory), Some(name));
        assert_eq!(Name::of_bytes(&name.to_bytes(), Kind::Event), None);
        assert_eq!(Name::of_bytes(&[0; 64], Kind::Memory), None);
        let second = name.open().unwrap();
        let descriptor = first.descriptor().unwrap();
        let third = Shared::of_descriptor(descriptor).unwrap();
        // SAFETY: all have these bytes, and no other thread uses them.
        unsafe {
            libc::close(descriptor);
            first.start().add(8191).write(7);
            assert_eq!((second.start().add(8191).read(), third.start().add(8191).read()), (7, 7));
        }
        assert_eq!((second.bytes(), third.file().unwrap()), (8192, first.file().unwrap()));
        drop(first);
        assert!(name.open().is_err());
        assert!(Shared::of_descriptor(0).is_err() && Shared::of_descriptor(-1).is_err());
    }
}
