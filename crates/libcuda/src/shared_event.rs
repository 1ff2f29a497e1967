//! What processes share of an event: how often it has been recorded, and up to which record the work is done.
//!
//! The numbers of all events that a process shares are in one page of shared memory, since a program may have a thousand of such events,
//! but not as many descriptors more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::lock;
use crate::share::{Kind, Name, Shared};
use crate::{INVALID, Status};

/// The most events that a process shares at a time.
const MOST: usize = 16_384;

/// The numbers of an event.
#[repr(C)]
struct Slot {
    /// Which event it is: the slot of a destroyed one is used again, with another number.
    event: AtomicU64,
    /// How often it has been recorded, by whatever process.
    recorded: AtomicU64,
    /// Up to which record the work is done.
    done: AtomicU64,
    /// The process that has recorded it last.
    recorder: AtomicU64,
}

/// The page of a process.
struct Page(Shared);

impl Page {
    fn slot(&self, index: usize) -> &Slot {
        assert!(index < MOST, "no slot {index}");
        // SAFETY: the memory has so many slots, which all processes access as atomics alone, and zeros are such numbers.
        unsafe { self.0.start().cast::<Slot>().add(index).as_ref() }
    }
}

/// The page of this process, and the slots that nobody uses.
static OWN: Mutex<Option<(Arc<Page>, Vec<usize>)>> = Mutex::new(None);

/// The pages of other processes, by the number of the file.
static OTHERS: LazyLock<Mutex<HashMap<u64, Weak<Page>>>> = LazyLock::new(Mutex::default);

/// An event that processes share.
pub struct SharedEvent {
    page: Arc<Page>,
    index: usize,
    event: u64,
    /// Whether it is of this process, which gives the slot back.
    is_own: bool,
}

/// A record of an event that processes share.
#[derive(Clone)]
pub struct SharedRecord {
    event: Arc<SharedEvent>,
    number: u64,
}

impl SharedEvent {
    /// A new event.
    ///
    /// # Errors
    /// If there are too many, or the host has no memory.
    pub fn new() -> Result<Arc<SharedEvent>, Status> {
        static EVENTS: AtomicU64 = AtomicU64::new(1);
        let mut own = lock(&OWN);
        if own.is_none() {
            let shared =
                Shared::new(MOST * size_of::<Slot>()).map_err(|_| Status::CUDA_ERROR_OUT_OF_MEMORY)?;
            *own = Some((Arc::new(Page(shared)), (0..MOST).rev().collect()));
        }
        let (page, free) = own.as_mut().ok_or(Status::CUDA_ERROR_UNKNOWN)?;
        let index = free.pop().ok_or(Status::CUDA_ERROR_OUT_OF_MEMORY)?;
        let event = EVENTS.fetch_add(1, Ordering::Relaxed);
        let slot = page.slot(index);
        for number in [&slot.recorded, &slot.done, &slot.recorder] {
            number.store(0, Ordering::Relaxed);
        }
        slot.event.store(event, Ordering::Release);
        Ok(Arc::new(SharedEvent { page: Arc::clone(page), index, event, is_own: true }))
    }

    /// An event of another process.
    ///
    /// # Errors
    /// If that process has ended, or has destroyed the event.
    pub fn open(name: Name) -> Result<Arc<SharedEvent>, Status> {
        let mut others = lock(&OTHERS);
        let page = match others.get(&name.file).and_then(Weak::upgrade) {
            Some(page) => page,
            None => {
                let shared = name.open().map_err(|_| Status::CUDA_ERROR_MAP_FAILED)?;
                if shared.bytes() != MOST * size_of::<Slot>() {
                    return Err(INVALID);
                }
                let page = Arc::new(Page(shared));
                others.retain(|_, page| page.strong_count() > 0);
                others.insert(name.file, Arc::downgrade(&page));
                page
            }
        };
        let [index, event] = name.numbers;
        let index = usize::try_from(index).ok().filter(|&index| index < MOST);
        let index = index.ok_or(INVALID)?;
        if page.slot(index).event.load(Ordering::Acquire) != event {
            return Err(Status::CUDA_ERROR_INVALID_HANDLE);
        }
        Ok(Arc::new(SharedEvent { page, index, event, is_own: false }))
    }

    /// Its name for other processes.
    ///
    /// # Errors
    /// If it is another process's.
    pub fn name(&self) -> Result<Name, Status> {
        if !self.is_own {
            return Err(Status::CUDA_ERROR_INVALID_HANDLE);
        }
        let name = self.page.0.name(Kind::Event, [self.index as u64, self.event]);
        name.map_err(|_| Status::CUDA_ERROR_OPERATING_SYSTEM)
    }

    fn slot(&self) -> &Slot {
        self.page.slot(self.index)
    }

    /// Begins a record, which [`SharedRecord::end`] ends.
    pub fn record(self: &Arc<SharedEvent>) -> SharedRecord {
        let slot = self.slot();
        slot.recorder.store(std::process::id().into(), Ordering::Relaxed);
        let number = slot.recorded.fetch_add(1, Ordering::AcqRel) + 1;
        SharedRecord { event: Arc::clone(self), number }
    }

    /// The last record, by whatever process.
    pub fn last(self: &Arc<SharedEvent>) -> SharedRecord {
        SharedRecord { event: Arc::clone(self), number: self.slot().recorded.load(Ordering::Acquire) }
    }
}

impl Drop for SharedEvent {
    fn drop(&mut self) {
        if self.is_own {
            self.slot().event.store(0, Ordering::Release);
            let mut own = lock(&OWN);
            if let Some((_, free)) = own.as_mut() {
                free.push(self.index);
            }
        }
    }
}

/// Between two looks at the numbers, at first and at most: nobody wakes those who wait in another process.
const PERIODS: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));
/// Between two looks whether the recorder still runs.
const PATIENCE: Duration = Duration::from_millis(100);

impl SharedRecord {
    /// The work before it is done.
    pub fn end(&self) {
        self.event.slot().done.fetch_max(self.number, Ordering::AcqRel);
    }

    /// Whether the work before it is done, or nobody will do it any more: the event is destroyed.
    pub fn is_past(&self) -> bool {
        let slot = self.event.slot();
        slot.done.load(Ordering::Acquire) >= self.number
            || slot.event.load(Ordering::Acquire) != self.event.event
    }

    /// Whether the process that recorded the event last has ended.
    fn is_abandoned(&self) -> bool {
        let recorder = self.event.slot().recorder.load(Ordering::Relaxed);
        !std::path::Path::new(&format!("/proc/{recorder}")).exists()
    }

    /// Waits until the work before it is done, nobody will do it any more, or the waiting context is broken.
    pub fn wait(&self, context: &Context) {
        let (mut period, mut looked) = (PERIODS.0, Instant::now());
        while !self.is_past() && context.check().is_ok() {
            std::thread::sleep(period);
            period = (period * 2).min(PERIODS.1);
            if looked.elapsed() > PATIENCE {
                looked = Instant::now();
                if self.is_abandoned() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_past_when_it_has_ended() {
        let event = SharedEvent::new().unwrap();
        assert!(event.last().is_past());
        let (first, second) = (event.record(), event.record());
        assert!(!event.last().is_past());
        first.end();
        assert!(first.is_past() && !second.is_past());
        let other = SharedEvent::open(event.name().unwrap()).unwrap();
        assert!(!other.last().is_past());
        second.end();
        assert!(other.last().is_past());
        // A record that never ends, of an event that is destroyed.
        event.record();
        let (last, name) = (other.last(), event.name().unwrap());
        assert!(!last.is_past());
        drop((event, first, second));
        assert!(last.is_past() && SharedEvent::open(name).is_err());
        assert!(other.name().is_err());
    }
}
