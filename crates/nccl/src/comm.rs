//! Communicators: what a rank has of one, and how ranks find each other.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use caller::{Library, Out};
use mathlib::driver::{self, Context};
use mathlib::{Handles, Stream};

use crate::element::DataType;
use crate::segment::{MOST_RANKS, Segment};
use crate::status::{Status, wrong};
use crate::transfer::{Failure, Idle};

/// NCCL, as a library that the program calls.
pub struct Nccl;

impl Library for Nccl {
    type Error = Status;
    const NULL_POINTER: Status = Status::INVALID_ARGUMENT;
    const UNKNOWN_NAME: Status = Status::INVALID_ARGUMENT;
}

/// A place for a value.
pub type Place<'a, T> = Out<'a, T, Nccl>;

/// `ncclComm_t`.
pub type Handle = *mut std::ffi::c_void;

/// `ncclUniqueId`: a name of ours, 16 random bytes, and the number of this start of the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct UniqueId(pub [u8; 128]);

const NAME: &[u8; 16] = b"ptxvm-nccl-id-1\0";
const RANDOM: std::ops::Range<usize> = 16..32;
const MACHINE: std::ops::Range<usize> = 32..68;

/// The number of this start of the machine; zeros if the system does not say.
fn machine() -> [u8; 36] {
    let mut bytes = [0; 36];
    let _ = File::open("/proc/sys/kernel/random/boot_id").and_then(|mut file| file.read_exact(&mut bytes));
    bytes
}

impl UniqueId {
    /// A new one.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new() -> Result<UniqueId, Status> {
        let mut bytes = [0; 128];
        bytes[..16].copy_from_slice(NAME);
        let random = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes[RANDOM]));
        random.map_err(|error| wrong(Status::SYSTEM_ERROR, "ncclGetUniqueId", &error.to_string()))?;
        bytes[MACHINE].copy_from_slice(&machine());
        Ok(UniqueId(bytes))
    }

    /// The name of the shared memory of the ranks that have this number.
    fn name(&self, function: &str) -> Result<String, Status> {
        if self.0[..16] != *NAME {
            return Err(wrong(
                Status::INVALID_ARGUMENT,
                function,
                "the id is not from this library's ncclGetUniqueId",
            ));
        }
        if self.0[MACHINE] != machine() {
            let what =
                "the id is of another machine, and ptxvm's NCCL connects processes of one machine only";
            return Err(wrong(Status::INVALID_USAGE, function, what));
        }
        let random = self.0[RANDOM].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Ok(format!("ptxvm-nccl-{random}"))
    }
}

/// How long ranks wait for others: `PTXVM_NCCL_TIMEOUT` in seconds, or 1800.
pub fn timeout() -> Duration {
    static TIMEOUT: OnceLock<Duration> = OnceLock::new();
    *TIMEOUT.get_or_init(|| {
        let seconds = std::env::var("PTXVM_NCCL_TIMEOUT").ok().and_then(|text| text.parse().ok());
        Duration::from_secs(seconds.unwrap_or(1800))
    })
}

/// A reduction of the program: a sum of numbers that each rank multiplies by a number of its own.
#[derive(Clone)]
pub struct PreMulSum {
    pub ty: DataType,
    pub scalar: Scalar,
}

/// Where its number is.
#[derive(Clone)]
pub enum Scalar {
    /// The bytes of it.
    Host([u8; 8]),
    /// In memory of the device, which is read when the operation runs.
    Device(mathlib::Range),
}

/// What a rank has of a communicator.
pub struct Comm {
    pub rank: usize,
    pub ranks: usize,
    pub device: i32,
    pub context: Context,
    pub segment: Segment,
    /// The name of the shared memory, for those of its splits.
    name: String,
    is_aborted: AtomicBool,
    /// The first error of its work, or 0.
    error: AtomicU32,
    /// How often it was split.
    splits: AtomicU64,
    /// The stream of its last operation.
    pub last: Mutex<Option<Stream>>,
    /// Its work is done one after the other.
    pub turn: Mutex<()>,
    /// The reductions that the program made, by number behind those that there are anyway.
    pub reductions: Mutex<Vec<Option<PreMulSum>>>,
}

static COMMS: Handles<Comm> = Handles::new();

impl Comm {
    /// The communicator of a handle.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(handle: Handle) -> Result<Arc<Comm>, Status> {
        COMMS.get(handle).ok_or(Status::INVALID_ARGUMENT)
    }

    /// Makes the calling rank take part, on the device of the current context, and waits for nobody.
    ///
    /// # Errors
    /// If the number is not of this machine, there is no such rank, or it takes part already.
    pub fn attach(function: &str, id: &UniqueId, ranks: i32, rank: i32) -> Result<Comm, Status> {
        Comm::attach_as(function, id.name(function)?, ranks, rank)
    }

    fn attach_as(function: &str, name: String, ranks: i32, rank: i32) -> Result<Comm, Status> {
        let context = driver::enter(None)?;
        let device = driver::device()?;
        if ranks < 1 || !(0..ranks).contains(&rank) {
            let what = format!("there is no rank {rank} of {ranks}");
            return Err(wrong(Status::INVALID_ARGUMENT, function, &what));
        }
        if ranks as usize > MOST_RANKS {
            let what = format!("there are {ranks} ranks, and ptxvm's NCCL connects at most {MOST_RANKS}");
            return Err(wrong(Status::INVALID_USAGE, function, &what));
        }
        let (rank, ranks) = (rank as usize, ranks as usize);
        let attached = Segment::open(&name, ranks).and_then(|segment| segment.attach(rank).map(|()| segment));
        let segment = attached.map_err(|error| {
            let status = match error.kind() {
                std::io::ErrorKind::InvalidInput => Status::INVALID_USAGE,
                _ => Status::SYSTEM_ERROR,
            };
            wrong(status, function, &error.to_string())
        })?;
        Ok(Comm {
            rank,
            ranks,
            device,
            context,
            segment,
            name,
            is_aborted: AtomicBool::new(false),
            error: AtomicU32::new(0),
            splits: AtomicU64::new(0),
            last: Mutex::default(),
            turn: Mutex::default(),
            reductions: Mutex::default(),
        })
    }

    /// Waits for all other ranks, and returns the handle.
    ///
    /// # Errors
    /// If one does not come.
    pub fn complete(self, function: &str) -> Result<Handle, Status> {
        let mut idle = Idle::new(&self, function);
        let absent = || {
            (0..self.ranks)
                .filter(|&rank| self.segment.state(rank) == crate::segment::State::Absent)
                .collect()
        };
        while !self.segment.is_complete() {
            if let Err(failure) = idle.wait(absent) {
                self.segment.remove_name();
                return Err(self.failed(function, &failure));
            }
        }
        Ok(COMMS.insert(self))
    }

    /// Says this rank's color and key for its next split, and returns the number of the split. Waits for nobody.
    pub fn say_split(&self, color: i32, key: i32) -> u64 {
        let number = self.splits.fetch_add(1, Ordering::AcqRel) + 1;
        self.segment.say_split(self.rank, number, [color, key]);
        number
    }

    /// What the split with a number makes for this rank, once all have said their colors: ranks of one color get a communicator, in the
    /// order of their keys. A negative color gets none.
    ///
    /// # Errors
    /// If another rank is gone.
    pub fn split(&self, function: &str, number: u64) -> Result<Option<Comm>, Status> {
        let silent =
            || (0..self.ranks).filter(|&rank| self.segment.split(rank, number).is_none()).collect::<Vec<_>>();
        let mut idle = Idle::new(self, function);
        while !silent().is_empty() {
            idle.wait(silent).map_err(|failure| self.failed(function, &failure))?;
        }
        let said: Vec<_> =
            (0..self.ranks).map(|rank| self.segment.split(rank, number).unwrap_or_default()).collect();
        self.segment.split_is_read(self.rank, number);
        let color = said[self.rank][0];
        if color < 0 {
            return Ok(None);
        }
        let mut members: Vec<_> = (0..self.ranks).filter(|&rank| said[rank][0] == color).collect();
        members.sort_by_key(|&rank| (said[rank][1], rank));
        let rank = members.iter().position(|&rank| rank == self.rank).unwrap_or(0);
        let name = format!("{}-{number}-{color}", self.name);
        let attach = || Comm::attach_as(function, name, members.len() as i32, rank as i32);
        driver::within(self.context, attach)?.map(Some)
    }

    /// Waits until all ranks have read what was said for a split, so that the next one may say something else.
    ///
    /// # Errors
    /// If another rank is gone.
    pub fn end_split(&self, function: &str, number: u64) -> Result<(), Status> {
        let mut idle = Idle::new(self, function);
        while !self.segment.all_have_read(number) {
            idle.wait(Vec::new).map_err(|failure| self.failed(function, &failure))?;
        }
        Ok(())
    }

    /// Ends the handle. The rank's part ends when its work is done.
    ///
    /// # Errors
    /// If there is none.
    pub fn destroy(handle: Handle) -> Result<(), Status> {
        COMMS.remove(handle).map(drop).ok_or(Status::INVALID_ARGUMENT)
    }

    /// Ends the handle and the rank's part. Its work that has not ended does nothing more.
    ///
    /// # Errors
    /// If there is none.
    pub fn abort(handle: Handle) -> Result<(), Status> {
        let comm = COMMS.remove(handle).ok_or(Status::INVALID_ARGUMENT)?;
        comm.is_aborted.store(true, Ordering::Release);
        comm.segment.leave(comm.rank, true);
        Ok(())
    }

    /// Whether this rank has aborted it.
    pub fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::Acquire)
    }

    /// The first error of its work, or success.
    pub fn error(&self) -> Status {
        Status(self.error.load(Ordering::Acquire))
    }

    /// An operation has failed: breaks the communicator, says why, and returns the status.
    pub fn failed(&self, function: &str, failure: &Failure) -> Status {
        let (status, what) = match failure {
            Failure::Aborted => return Status::INVALID_USAGE,
            Failure::Remote(what) => (Status::REMOTE_ERROR, what.clone()),
            Failure::Mismatch(what) => (Status::INVALID_USAGE, what.clone()),
            Failure::Driver(error) => {
                (Status::UNHANDLED_CUDA_ERROR, format!("its memory is gone (error {})", error.0))
            }
        };
        let _ = self.error.compare_exchange(0, status.0, Ordering::AcqRel, Ordering::Acquire);
        self.segment.break_it();
        wrong(status, function, &what)
    }

    /// What the program's reduction with a number is.
    pub fn reduction(&self, number: usize) -> Option<PreMulSum> {
        self.reductions.lock().unwrap_or_else(PoisonError::into_inner).get(number)?.clone()
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        if !self.is_aborted() {
            self.segment.leave(self.rank, false);
        }
    }
}
