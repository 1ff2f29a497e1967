//! The operations of streams.

use std::sync::Arc;

use crate::Status;
use crate::context::Context;
use crate::copy::Copy;
use crate::event::Moment;
use crate::fill::Fill;
use crate::graph::{Choice, GraphMemory};
use crate::host_work::HostWork;
use crate::launch::KernelLaunch;
use crate::queue::Point;
use crate::shared_event::SharedRecord;
use crate::stream::{Callback, HostFunction, Stream};
use crate::stream_value::Value;

/// A unit of work of a stream.
#[derive(Clone)]
pub enum Operation {
    /// Runs a kernel.
    Kernel(Box<KernelLaunch>),
    /// Copies memory.
    Copy(Box<Copy>),
    /// Fills memory.
    Fill(Fill),
    /// Frees memory.
    Free(u64),
    /// Allocates memory of a graph.
    Allocate(Arc<GraphMemory>),
    /// Runs the graph that a value selects; kernels set the value.
    Choice(Box<Choice>),
    /// Calls a function of the program.
    Host(HostFunction),
    /// Has a library of ours compute on device memory.
    Work(Arc<HostWork>),
    /// Calls a function of the program, even if earlier operations failed.
    Callback(Callback),
    /// Waits for a value in memory.
    WaitValue(Value),
    /// Writes a value to memory.
    WriteValue(Value),
    /// Records the time, also for other processes.
    Stamp(Moment, Option<SharedRecord>),
    /// Waits for a record of an event that other processes may have recorded.
    Await(SharedRecord),
    /// Waits for another stream.
    Wait(Point),
    /// Keeps a stream alive until its work is done.
    Keep(#[expect(dead_code, reason = "it is only kept")] Arc<Stream>),
    /// Does nothing.
    Nothing,
}

impl Operation {
    /// Performs the operation, unless the context is broken. A failure breaks the context, and so does a panic.
    pub fn perform_in(self, context: &Context) {
        if let Err(message) = machine::caught(|| self.perform_unless_broken(context)) {
            context.fail(crate::status::of_panic("the work of a stream", &message));
        }
    }

    fn perform_unless_broken(self, context: &Context) {
        let before = context.check();
        match self {
            Operation::Callback(callback) => {
                if let Err(status) = callback.call(before.err().unwrap_or(Status::CUDA_SUCCESS)) {
                    context.fail(status);
                }
                crate::stream_order::told_host();
            }
            Operation::Wait(point) => point.wait(),
            Operation::Stamp(moment, shared) => {
                let _ = moment.set(std::time::Instant::now());
                shared.iter().for_each(SharedRecord::end);
            }
            Operation::Await(record) => record.wait(context),
            other if before.is_ok() => {
                if let Err(status) = other.perform(context) {
                    context.fail(status);
                }
            }
            _ => {}
        }
    }

    /// Performs the operation now.
    ///
    /// # Errors
    /// If it fails.
    pub fn perform(self, context: &Context) -> Result<(), Status> {
        #[cfg(test)]
        crate::planted::panic_below(&self, context);
        match self {
            Operation::Kernel(launch) => launch.run(),
            Operation::Copy(copy) => copy.perform(),
            Operation::Fill(fill) => fill.perform(),
            Operation::WaitValue(value) => value.wait(context),
            Operation::WriteValue(value) => value.write(),
            Operation::Free(address) => {
                crate::stream_order::freed(address);
                crate::memory::free(address)
            }
            Operation::Allocate(memory) => memory.allocate(),
            Operation::Choice(choice) => choice.perform(context),
            Operation::Work(work) => crate::peer::working_for(context, || work.perform()),
            Operation::Host(function) => {
                let called = function.call();
                crate::stream_order::told_host();
                called
            }
            Operation::Callback(_)
            | Operation::Wait(_)
            | Operation::Stamp(..)
            | Operation::Await(_)
            | Operation::Keep(_)
            | Operation::Nothing => Ok(()),
        }
    }
}
