//! Groups: what a program asks for between `ncclGroupStart` and `ncclGroupEnd` happens at the end, all at a time, so that one thread can
//! speak for several ranks.

use std::cell::RefCell;
use std::sync::{Arc, PoisonError};

use mathlib::{Stream, api, driver, order, submit};

use crate::comm::{Comm, Handle};
use crate::operation::{Operation, perform};
use crate::status::Status;

/// What is to be done.
enum Job {
    /// Waits for the other ranks of a new communicator, and writes its handle to a place of the program.
    Complete(Box<Comm>, &'static str, usize),
    /// Makes a part of a communicator, by the number of the split.
    Split(Arc<Comm>, &'static str, u64, usize),
    /// Performs an operation.
    Operate(Arc<Comm>, Stream, Operation),
}

#[derive(Default)]
struct Group {
    depth: usize,
    jobs: Vec<Job>,
    /// The first error of a call in it.
    error: Option<Status>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

/// Does a job now, or at the end of the group.
fn add(job: Job) -> Result<(), Status> {
    let now = GROUP.with_borrow_mut(|group| match group.depth {
        0 => Some(job),
        _ => {
            group.jobs.push(job);
            None
        }
    });
    now.map_or(Ok(()), |job| run(vec![job]))
}

/// A communicator's other ranks are to be waited for; its handle goes to `place`.
pub fn complete(comm: Comm, function: &'static str, place: *mut Handle) -> Result<(), Status> {
    if place.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    add(Job::Complete(Box::new(comm), function, place.expose_provenance()))
}

/// A communicator is to be split; the handle of this rank's part goes to `place`.
pub fn split(comm: Arc<Comm>, function: &'static str, number: u64, place: *mut Handle) -> Result<(), Status> {
    add(Job::Split(comm, function, number, place.expose_provenance()))
}

/// An operation is to be performed in a stream.
pub fn operate(comm: Arc<Comm>, stream: Stream, operation: Operation) -> Result<(), Status> {
    add(Job::Operate(comm, stream, operation))
}

/// Remembers that a call in a group has failed: then nothing of the group happens.
pub fn noted<T>(result: Result<T, Status>) -> Result<T, Status> {
    result.inspect_err(|&status| {
        GROUP.with_borrow_mut(|group| {
            if group.depth > 0 {
                group.error.get_or_insert(status);
            }
        });
    })
}

fn write(place: usize, handle: Handle) {
    let place = std::ptr::with_exposed_provenance_mut::<Handle>(place);
    // SAFETY: the program passed a place for a handle, which must be good until the group ends.
    unsafe { place.write(handle) };
}

/// Does all jobs. The first error counts.
fn run(jobs: Vec<Job>) -> Result<(), Status> {
    let mut result = Ok(());
    let mut note = |status: Result<(), Status>| {
        if result.is_ok() {
            result = status;
        }
    };
    let (mut batches, mut incomplete): (Vec<Batch>, Vec<_>) = (Vec::new(), Vec::new());
    let mut splits = Vec::new();
    for job in jobs {
        match job {
            Job::Complete(comm, function, place) => incomplete.push((*comm, function, place)),
            Job::Split(comm, function, number, place) => {
                match comm.split(function, number) {
                    Ok(Some(part)) => incomplete.push((part, function, place)),
                    Ok(None) => write(place, std::ptr::null_mut()),
                    Err(status) => note(Err(status)),
                }
                splits.push((comm, function, number));
            }
            Job::Operate(comm, stream, operation) => {
                match batches.iter_mut().find(|batch| Arc::ptr_eq(&batch.comm, &comm)) {
                    Some(batch) => batch.add(stream, operation),
                    None => batches.push(Batch { comm, streams: vec![stream], operations: vec![operation] }),
                }
            }
        }
    }
    // All ranks of this thread take part by now.
    for (comm, function, place) in incomplete {
        note(comm.complete(function).map(|handle| write(place, handle)));
    }
    for (comm, function, number) in splits {
        note(comm.end_split(function, number));
    }
    for batch in batches {
        note(batch.submit());
    }
    result
}

/// The operations of a group for one communicator.
struct Batch {
    comm: Arc<Comm>,
    streams: Vec<Stream>,
    operations: Vec<Operation>,
}

impl Batch {
    fn add(&mut self, stream: Stream, operation: Operation) {
        if !self.streams.contains(&stream) {
            self.streams.push(stream);
        }
        self.operations.push(operation);
    }

    /// Queues the operations in the first stream, behind what all streams have to do, and before what they get to do later.
    fn submit(self) -> Result<(), Status> {
        let Batch { comm, streams, operations } = self;
        let context = comm.context;
        driver::within(context, || {
            let stream = streams[0];
            let mut last = comm.last.lock().unwrap_or_else(PoisonError::into_inner);
            // Operations of a communicator come one after the other, whatever their streams. A stream that captures a graph cannot
            // wait for one that does not.
            if let Some(before) = last.filter(|&before| before != stream) {
                let _ = order(before, stream);
            }
            for &other in &streams[1..] {
                order(other, stream)?;
            }
            let (of_work, name) = (Arc::clone(&comm), operations[0].function);
            submit(stream, name, move || {
                let _turn = of_work.turn.lock().unwrap_or_else(PoisonError::into_inner);
                if of_work.is_aborted() {
                    return Ok(());
                }
                perform(&of_work, &operations).or_else(|failure| {
                    of_work.failed(name, &failure);
                    if of_work.is_aborted() { Ok(()) } else { Err(mathlib::Error::LAUNCH_FAILED) }
                })
            })?;
            *last = Some(stream);
            for &other in &streams[1..] {
                order(stream, other)?;
            }
            Ok(())
        })?
    }
}

api! { API: Status, name;
    /// Begins a group: what is asked for happens at its end.
    ncclGroupStart() {
        GROUP.with_borrow_mut(|group| group.depth += 1);
        Ok(())
    }

    /// Ends a group: all that was asked for happens, operations in their streams.
    ncclGroupEnd() {
        let ended: Result<Option<Group>, Status> = GROUP.with_borrow_mut(|group| {
            group.depth = group.depth.checked_sub(1).ok_or(Status::INVALID_USAGE)?;
            Ok(if group.depth == 0 { Some(std::mem::take(group)) } else { None })
        });
        match ended? {
            None => Ok(()),
            Some(Group { error: Some(status), .. }) => Err(status),
            Some(group) => run(group.jobs),
        }
    }
}
