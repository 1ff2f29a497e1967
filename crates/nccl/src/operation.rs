//! The operations: which rank sends what to whom, piece by piece.
//!
//! For a reduction, each rank gets a part of the numbers of all others, reduces it in the order of the ranks, and sends it to those who
//! want it. A piece is so large that what must be kept of all ranks stays small.

use std::sync::Arc;

use mathlib::{Memory, Range};

use crate::comm::{Comm, PreMulSum, Scalar};
use crate::element::DataType;
use crate::reduce::{Reduction, reduce, scale};
use crate::transfer::{Failure, Head, Receive, Send, exchange};

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All get the reduced numbers.
    AllReduce,
    /// All get the root's numbers.
    Broadcast,
    /// The root gets the reduced numbers.
    Reduce,
    /// All get the numbers of all, one behind the other.
    AllGather,
    /// Each gets its part of the reduced numbers.
    ReduceScatter,
    /// One sends to another.
    Send,
    /// One receives from another.
    Receive,
}

/// How numbers are reduced.
#[derive(Clone)]
pub enum Reducer {
    /// As the library knows it.
    Known(Reduction),
    /// As the program made it.
    PreMulSum(PreMulSum),
}

/// An operation of a rank, whose memory has been checked.
#[derive(Clone)]
pub struct Operation {
    pub function: &'static str,
    pub kind: Kind,
    pub ty: DataType,
    /// As the program's call says.
    pub count: usize,
    pub reducer: Option<Reducer>,
    /// The root, or the peer.
    pub root: usize,
    /// What is sent, if this rank sends.
    pub from: Option<Range>,
    /// Where the result goes, if this rank gets one.
    pub to: Option<Range>,
}

/// The functions of the kinds, in their order, for messages.
const FUNCTIONS: [&str; 6] = [
    "ncclAllReduce",
    "ncclBroadcast",
    "ncclReduce",
    "ncclAllGather",
    "ncclReduceScatter",
    "ncclSend or ncclRecv",
];
const REDUCTIONS: [&str; 7] = ["", " (sum)", " (prod)", " (max)", " (min)", " (avg)", " (a sum of products)"];

/// An operation in words, from what a message says of it.
pub fn describe(head: &Head) -> String {
    let function = FUNCTIONS.get(head.kind as usize).unwrap_or(&"?");
    let ty = DataType::of(head.ty as u32).map_or_else(String::new, |ty| format!("{ty:?}"));
    let reduction = REDUCTIONS.get(head.reduction as usize).unwrap_or(&"");
    let root = match head.kind {
        1 | 2 => format!(", root {}", head.root),
        _ => String::new(),
    };
    format!("{function} of {} {ty}{reduction}{root}", head.count)
}

/// Bytes of a piece of one rank.
const PIECE: usize = 4 << 20;

/// The memory of an operation while it runs.
struct Places {
    from: Option<Memory>,
    to: Option<Memory>,
}

impl Places {
    fn from(&self, offset: usize) -> *const u8 {
        self.from
            .as_ref()
            .map_or(std::ptr::null(), |memory| memory.pointer::<u8>().wrapping_add(offset).cast_const())
    }

    fn to(&self, offset: usize) -> *mut u8 {
        self.to.as_ref().map_or(std::ptr::null_mut(), |memory| memory.pointer::<u8>().wrapping_add(offset))
    }
}

impl Operation {
    /// What its messages say.
    fn head(&self, bytes: usize) -> Head {
        let reduction = match &self.reducer {
            None => 0,
            Some(Reducer::Known(reduction)) => *reduction as u64 + 1,
            Some(Reducer::PreMulSum(_)) => 6,
        };
        let (kind, root) = match self.kind {
            Kind::AllReduce => (0, 0),
            Kind::Broadcast => (1, self.root),
            Kind::Reduce => (2, self.root),
            Kind::AllGather => (3, 0),
            Kind::ReduceScatter => (4, 0),
            Kind::Send | Kind::Receive => (5, 0),
        };
        let (ty, count) = (self.ty as u64, self.count as u64);
        Head { kind, ty, count, reduction, root: root as u64, bytes: bytes as u64 }
    }

    fn places(&self) -> Result<Places, Failure> {
        let reach = |range: Option<Range>| range.map(|range| range.reach(self.function)).transpose();
        Ok(Places { from: reach(self.from)?, to: reach(self.to)? })
    }

    /// Whether it is between two ranks.
    fn is_for_two(&self) -> bool {
        matches!(self.kind, Kind::Send | Kind::Receive)
    }

    /// Performs it, with all other ranks.
    fn perform(&self, comm: &Comm) -> Result<(), Failure> {
        let places = self.places()?;
        match self.kind {
            Kind::Broadcast => self.broadcast(comm, &places)?,
            Kind::AllGather => self.all_gather(comm, &places)?,
            _ => self.reduce(comm, &places)?,
        }
        if let Some(to) = &places.to {
            to.wrote::<u8>(0, to.count::<u8>());
        }
        Ok(())
    }

    fn broadcast(&self, comm: &Comm, places: &Places) -> Result<(), Failure> {
        let bytes = self.count * self.ty.bytes();
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        if comm.rank == self.root {
            let others = (0..comm.ranks).filter(|&peer| peer != comm.rank);
            sends.extend(others.map(|peer| Send { peer, head: self.head(bytes), from: places.from(0) }));
            // SAFETY: both have these bytes; they may be the same.
            unsafe { std::ptr::copy(places.from(0), places.to(0), bytes) };
        } else {
            receives.push(Receive { peer: self.root, head: self.head(bytes), to: places.to(0) });
        }
        // SAFETY: the ranges were checked for the count, and the memory is held.
        unsafe { exchange(comm, self.function, &sends, &receives) }
    }

    fn all_gather(&self, comm: &Comm, places: &Places) -> Result<(), Failure> {
        let bytes = self.count * self.ty.bytes();
        let others = || (0..comm.ranks).filter(|&peer| peer != comm.rank);
        let sends: Vec<_> =
            others().map(|peer| Send { peer, head: self.head(bytes), from: places.from(0) }).collect();
        let to = |peer| Receive { peer, head: self.head(bytes), to: places.to(peer * bytes) };
        let receives: Vec<_> = others().map(to).collect();
        // SAFETY: the ranges were checked for the count, and the memory is held. The two may be the same, and else do not overlap with
        // what comes from others.
        unsafe {
            std::ptr::copy(places.from(0), places.to(comm.rank * bytes), bytes);
            exchange(comm, self.function, &sends, &receives)
        }
    }

    /// The numbers, multiplied as the program's reduction says, if they must be.
    fn scaled(&self, from: *const u8, bytes: usize) -> Result<Option<Vec<u8>>, Failure> {
        let Some(Reducer::PreMulSum(PreMulSum { scalar, .. })) = &self.reducer else { return Ok(None) };
        let mut numbers = vec![0; bytes];
        // SAFETY: the caller passes the place of so many bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, numbers.as_mut_ptr(), bytes) };
        match scalar {
            Scalar::Host(bytes) => scale(self.ty, bytes, &mut numbers),
            Scalar::Device(range) => scale(self.ty, &range.reach(self.function)?.read::<u8>(), &mut numbers),
        }
        Ok(Some(numbers))
    }

    fn reduce(&self, comm: &Comm, places: &Places) -> Result<(), Failure> {
        let (size, ranks) = (self.ty.bytes(), comm.ranks);
        // Each rank reduces a part of each piece: its own part of the result, or an equal share, or the root all.
        let whole = self.count;
        let piece = (PIECE / size).max(1);
        let mut start = 0;
        while start < whole || (whole == 0 && start == 0) {
            let count = piece.min(whole - start);
            // Offset in the sent numbers, offset in the result, and count, of the part that a rank reduces.
            let part = |rank: usize| match self.kind {
                Kind::ReduceScatter => (rank * whole + start, start, count),
                Kind::Reduce => (start, start, if rank == self.root { count } else { 0 }),
                _ => {
                    let (first, end) = (count * rank / ranks, count * (rank + 1) / ranks);
                    (start + first, start + first, end - first)
                }
            };
            let others = || (0..ranks).filter(|&peer| peer != comm.rank);
            let (own_from, own_to, own_count) = part(comm.rank);
            let own_bytes = own_count * size;
            let mut parts = Vec::new();
            for rank in 0..ranks {
                let (from, _, count) = part(rank);
                let from = places.from(from * size);
                parts.push((self.scaled(from, count * size)?, from, count * size));
            }
            let sends: Vec<_> = others()
                .filter(|&peer| self.kind != Kind::Reduce || peer == self.root)
                .map(|peer| {
                    let (scaled, from, bytes) = &parts[peer];
                    let from = scaled.as_ref().map_or(*from, |scaled| scaled.as_ptr());
                    Send { peer, head: self.head(*bytes), from }
                })
                .collect();
            let mut come = vec![vec![0u8; own_bytes]; ranks];
            let is_reducing = self.kind != Kind::Reduce || comm.rank == self.root;
            let receives: Vec<_> = others()
                .filter(|_| is_reducing)
                .map(|peer| Receive { peer, head: self.head(own_bytes), to: come[peer].as_mut_ptr() })
                .collect();
            // SAFETY: the ranges were checked for the count, and the memory is held.
            unsafe { exchange(comm, self.function, &sends, &receives) }?;
            let mut result = vec![0u8; own_bytes];
            if is_reducing {
                let own = match &parts[comm.rank].0 {
                    Some(scaled) => scaled.clone(),
                    None => {
                        let mut own = vec![0; own_bytes];
                        // SAFETY: as above.
                        unsafe {
                            std::ptr::copy_nonoverlapping(
                                places.from(own_from * size),
                                own.as_mut_ptr(),
                                own_bytes,
                            );
                        }
                        own
                    }
                };
                come[comm.rank] = own;
                let numbers: Vec<&[u8]> = come.iter().map(Vec::as_slice).collect();
                let reduction = match &self.reducer {
                    Some(Reducer::Known(reduction)) => *reduction,
                    _ => Reduction::Sum,
                };
                reduce(self.ty, reduction, &numbers, &mut result);
            }
            if self.kind == Kind::AllReduce {
                let sends: Vec<_> = others()
                    .map(|peer| Send { peer, head: self.head(own_bytes), from: result.as_ptr() })
                    .collect();
                let receives: Vec<_> = others()
                    .map(|peer| {
                        let (_, to, count) = part(peer);
                        Receive { peer, head: self.head(count * size), to: places.to(to * size) }
                    })
                    .collect();
                // SAFETY: as above; nobody needs the numbers of this piece any more, which may be where the result goes.
                unsafe { exchange(comm, self.function, &sends, &receives) }?;
            }
            if is_reducing {
                // SAFETY: as above.
                unsafe {
                    std::ptr::copy_nonoverlapping(result.as_ptr(), places.to(own_to * size), own_bytes)
                };
            }
            start += piece;
        }
        Ok(())
    }
}

/// Performs the operations of one rank that a group has: those of all ranks one after the other, then those of two ranks at a time.
///
/// # Errors
/// If another rank is gone or does something else.
pub fn perform(comm: &Arc<Comm>, operations: &[Operation]) -> Result<(), Failure> {
    for operation in operations.iter().filter(|operation| !operation.is_for_two()) {
        operation.perform(comm)?;
    }
    let two: Vec<_> = operations.iter().filter(|operation| operation.is_for_two()).collect();
    let Some(first) = two.first() else { return Ok(()) };
    let places = two.iter().map(|operation| operation.places()).collect::<Result<Vec<_>, _>>()?;
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for (operation, places) in two.iter().zip(&places) {
        let (peer, head) = (operation.root, operation.head(operation.count * operation.ty.bytes()));
        match operation.kind {
            Kind::Send => sends.push(Send { peer, head, from: places.from(0) }),
            _ => receives.push(Receive { peer, head, to: places.to(0) }),
        }
    }
    // SAFETY: the ranges were checked for the counts, and the memory is held.
    unsafe { exchange(comm, first.function, &sends, &receives) }?;
    for to in places.iter().filter_map(|places| places.to.as_ref()) {
        to.wrote::<u8>(0, to.count::<u8>());
    }
    Ok(())
}
