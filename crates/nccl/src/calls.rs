//! The functions of operations.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use mathlib::{Range, Stream, api};

use crate::comm::{Comm, Handle};
use crate::communicators::FIRST_REDUCTION;
use crate::element::DataType;
use crate::group;
use crate::operation::{Kind, Operation, Reducer};
use crate::reduce::Reduction;
use crate::status::{Status, wrong};

/// A call of the program.
struct Call {
    function: &'static str,
    kind: Kind,
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    ty: u32,
    /// The number of the reduction, if there is one.
    reduction: Option<u32>,
    /// The root or the peer, if there is one.
    root: Option<c_int>,
    comm: Handle,
    stream: *mut c_void,
}

impl Call {
    /// Checks the call, and performs it now or at the end of the group.
    fn go(self) -> Result<(), Status> {
        group::noted(
            self.checked()
                .and_then(|(comm, operation)| group::operate(comm, Stream::of(self.stream), operation)),
        )
    }

    fn checked(&self) -> Result<(Arc<Comm>, Operation), Status> {
        let invalid = |what: &str| wrong(Status::INVALID_ARGUMENT, self.function, what);
        let comm = Comm::of(self.comm).map_err(|_| invalid("there is no such communicator"))?;
        if comm.error() != Status::SUCCESS {
            return Err(comm.error());
        }
        let ty = DataType::of(self.ty).ok_or_else(|| invalid("there is no such type of numbers"))?;
        let root = usize::try_from(self.root.unwrap_or(0)).ok().filter(|&root| root < comm.ranks);
        let root = root.ok_or_else(|| invalid("there is no such rank"))?;
        let reducer = self.reduction.map(|number| match Reduction::of(number) {
            Some(reduction) => Ok(Reducer::Known(reduction)),
            None => {
                let made =
                    number.checked_sub(FIRST_REDUCTION).and_then(|number| comm.reduction(number as usize));
                let made = made.filter(|made| made.ty == ty);
                made.map(Reducer::PreMulSum)
                    .ok_or_else(|| invalid("there is no such reduction of these numbers"))
            }
        });
        let (is_root, all) = (root == comm.rank, comm.ranks);
        // How many numbers are sent and received, times the count.
        let (sent, received) = match self.kind {
            Kind::AllReduce => (1, 1),
            Kind::Broadcast => (usize::from(is_root), 1),
            Kind::Reduce => (1, usize::from(is_root)),
            Kind::AllGather => (1, all),
            Kind::ReduceScatter => (all, 1),
            Kind::Send => (1, 0),
            Kind::Receive => (0, 1),
        };
        let range = |pointer: *const c_void, times: usize, what| match times {
            0 => Ok(None),
            _ => {
                let bytes = self.count.checked_mul(times).and_then(|count| count.checked_mul(ty.bytes()));
                let bytes = bytes.ok_or_else(|| invalid("there are more numbers than addresses"))?;
                let shape = || format!("{} numbers {ty:?} for each of {times} ranks", self.count);
                let range = Range::of(pointer.cast::<u8>(), bytes, what, shape);
                range.map(Some).map_err(|error| invalid(&error.to_string()))
            }
        };
        let operation = Operation {
            function: self.function,
            kind: self.kind,
            ty,
            count: self.count,
            reducer: reducer.transpose()?,
            root,
            from: range(self.from, sent, "the send buffer")?,
            to: range(self.to.cast_const(), received, "the receive buffer")?,
        };
        Ok((comm, operation))
    }
}

api! { API: Status, name;
    /// Reduces the numbers of all ranks, for all.
    ncclAllReduce(from: *const c_void, to: *mut c_void, count: usize, ty: u32, reduction: u32, comm: Handle, stream: *mut c_void) {
        let kind = Kind::AllReduce;
        Call { function: name, kind, from, to, count, ty, reduction: Some(reduction), root: None, comm, stream }.go()
    }

    /// Gives the numbers of the root to all ranks.
    ncclBroadcast(from: *const c_void, to: *mut c_void, count: usize, ty: u32, root: c_int, comm: Handle, stream: *mut c_void) {
        let kind = Kind::Broadcast;
        Call { function: name, kind, from, to, count, ty, reduction: None, root: Some(root), comm, stream }.go()
    }

    /// Gives the numbers of the root to all ranks, in place.
    ncclBcast(memory: *mut c_void, count: usize, ty: u32, root: c_int, comm: Handle, stream: *mut c_void) {
        let (kind, from) = (Kind::Broadcast, memory.cast_const());
        Call { function: name, kind, from, to: memory, count, ty, reduction: None, root: Some(root), comm, stream }.go()
    }

    /// Reduces the numbers of all ranks, for the root.
    ncclReduce(from: *const c_void, to: *mut c_void, count: usize, ty: u32, reduction: u32, root: c_int, comm: Handle, stream: *mut c_void) {
        let (kind, reduction) = (Kind::Reduce, Some(reduction));
        Call { function: name, kind, from, to, count, ty, reduction, root: Some(root), comm, stream }.go()
    }

    /// Gives all ranks the numbers of all, in the order of the ranks.
    ncclAllGather(from: *const c_void, to: *mut c_void, count: usize, ty: u32, comm: Handle, stream: *mut c_void) {
        let kind = Kind::AllGather;
        Call { function: name, kind, from, to, count, ty, reduction: None, root: None, comm, stream }.go()
    }

    /// Reduces the numbers of all ranks, and gives each rank its part.
    ncclReduceScatter(from: *const c_void, to: *mut c_void, count: usize, ty: u32, reduction: u32, comm: Handle, stream: *mut c_void) {
        let kind = Kind::ReduceScatter;
        Call { function: name, kind, from, to, count, ty, reduction: Some(reduction), root: None, comm, stream }.go()
    }

    /// Sends numbers to another rank, which receives as many.
    ncclSend(from: *const c_void, count: usize, ty: u32, peer: c_int, comm: Handle, stream: *mut c_void) {
        let (kind, to) = (Kind::Send, std::ptr::null_mut());
        Call { function: name, kind, from, to, count, ty, reduction: None, root: Some(peer), comm, stream }.go()
    }

    /// Receives numbers from another rank.
    ncclRecv(to: *mut c_void, count: usize, ty: u32, peer: c_int, comm: Handle, stream: *mut c_void) {
        let (kind, from) = (Kind::Receive, std::ptr::null());
        Call { function: name, kind, from, to, count, ty, reduction: None, root: Some(peer), comm, stream }.go()
    }
}
