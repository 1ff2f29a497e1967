//! `PTXVM_TOOL=racecheck`: finds streams that use memory of `cuMemAllocAsync` before its allocation or after its release (CUDA Driver
//! API, "Stream Ordered Memory Allocator"; compute-sanitizer's `--track-stream-ordered-races`).
//!
//! The order comes from the calls that order operations (streams, events, waits of the host), never from the time at which they ran.
//! Each stream has a vector clock. All threads of the program count as one. A stream that waits for a value in memory counts as
//! knowing everything, so that a program with its own synchronization gets no false findings.
//!
//! For kernels, the checker of the launch reports which allocations the launch has accessed (`tool.rs`).

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::ManuallyDrop;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock};

use ptxvm::{FindingKind, Tool};

use crate::lock;
use crate::log::log;
use crate::operation::Operation;
use crate::stream::Stream;

/// What happens before a position: for each stream id, a number of operations.
#[derive(Clone, Default)]
struct Clock {
    streams: BTreeMap<u64, u64>,
    /// Everything may happen before: the writer of a value that a stream waited for is unknown.
    all: bool,
}

impl Clock {
    fn knows(&self, stream: u64, number: u64) -> bool {
        self.all || self.streams.get(&stream).is_some_and(|&known| number <= known)
    }

    fn raise(&mut self, stream: u64, number: u64) {
        let known = self.streams.entry(stream).or_default();
        *known = number.max(*known);
    }

    fn join(&mut self, other: &Clock) {
        self.all |= other.all;
        other.streams.iter().for_each(|(&stream, &number)| self.raise(stream, number));
    }
}

/// A position in the operations of a stream.
#[derive(Clone)]
pub struct Position {
    stream: u64,
    is_legacy: bool,
    /// The number of operations up to here.
    number: u64,
    /// What happens before it in other streams.
    before: Arc<Clock>,
}

impl Position {
    /// Whether the other position happens before this one or is in the same stream.
    fn knows(&self, other: &Position) -> bool {
        self.stream == other.stream || self.before.knows(other.stream, other.number)
    }

    /// The name of its stream in messages.
    fn name(&self) -> String {
        if self.is_legacy { "the default stream".to_owned() } else { format!("stream {}", self.stream) }
    }
}

/// Memory that a stream allocated.
struct Allocation {
    bytes: u64,
    /// The call that allocated it.
    origin: String,
    allocated: Position,
    /// The last use by each stream.
    uses: HashMap<u64, (Position, Use)>,
    freed: Option<Position>,
}

/// A use of memory.
#[derive(Clone)]
pub struct Use {
    /// The user: `kernel `add``, `a copy`.
    pub who: String,
    /// The place in the kernel, and what it does.
    pub place: Option<String>,
}

impl Use {
    /// A use by an operation other than a kernel.
    pub fn by(who: &str) -> Use {
        Use { who: who.to_owned(), place: None }
    }
}

#[derive(Default)]
struct Order {
    /// By id.
    streams: HashMap<u64, Position>,
    /// What happens before the next call of the program.
    host: Clock,
    /// By address.
    allocations: BTreeMap<u64, Allocation>,
}

static ORDER: LazyLock<Mutex<Order>> = LazyLock::new(Mutex::default);

thread_local! {
    /// The position of the operation that this thread runs for a stream. Between operations there is none to drop.
    static CURRENT: ManuallyDrop<RefCell<Option<Position>>> = const { ManuallyDrop::new(RefCell::new(None)) };
}

/// The position of the operation that this thread runs.
fn current() -> Option<Position> {
    CURRENT.with(|current| current.borrow().clone())
}

fn order() -> MutexGuard<'static, Order> {
    lock(&ORDER)
}

/// Whether the environment enables racecheck.
pub fn is_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| crate::tool::tools().has(Tool::Racecheck))
}

/// A pair of positions that nothing orders.
struct Mistake {
    kind: FindingKind,
    message: String,
    /// Each combination of use and allocating call is reported once.
    key: (FindingKind, String, String),
}

impl Allocation {
    fn mistake(&self, address: u64, kind: FindingKind, by: &Position, of: &Use, with: &Position) -> Mistake {
        let (user, other) = (by.name(), with.name());
        let (does, behind) = match kind {
            FindingKind::StreamUseAfterFree => ("gives back", (&user, "use", &other)),
            _ => ("allocates", (&other, "allocation", &user)),
        };
        let place = of.place.as_ref().map_or_else(String::new, |place| format!(": {place}"));
        let (who, bytes, origin) = (&of.who, self.bytes, &self.origin);
        let message = format!(
            "error[{}]: {who} in {user} uses memory that {other} {does}, and nothing orders the two{place}\n  \
             = note: the memory is {bytes} bytes at {address:#x} ({origin})\n  \
             = help: missing: an event that {} records behind the {}, and for which {} waits (`cuEventRecord`, `cuStreamWaitEvent`)",
            kind.code(),
            behind.0,
            behind.1,
            behind.2,
        );
        Mistake { kind, message, key: (kind, who.clone(), origin.clone()) }
    }

    /// Records a use. Returns the mistake if it is not ordered.
    fn note(&mut self, address: u64, by: &Position, of: Use) -> Option<Mistake> {
        let allocated = &self.allocated;
        let mistake = match &self.freed {
            _ if !by.knows(allocated) => {
                Some(self.mistake(address, FindingKind::StreamUseBeforeAlloc, by, &of, allocated))
            }
            // A use that is ordered after the release faults by itself.
            Some(freed) if !freed.knows(by) && !by.knows(freed) => {
                Some(self.mistake(address, FindingKind::StreamUseAfterFree, by, &of, freed))
            }
            _ => None,
        };
        self.uses.insert(by.stream, (by.clone(), of));
        mistake
    }

    /// Records the release. Returns the uses that are not ordered before it.
    fn free(&mut self, address: u64, by: Position) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        if !by.knows(&self.allocated) {
            let free = Use::by("`cuMemFreeAsync`");
            let kind = FindingKind::StreamUseBeforeAlloc;
            mistakes.push(self.mistake(address, kind, &by, &free, &self.allocated));
        }
        for (user, of) in self.uses.values().filter(|(user, _)| !by.knows(user)) {
            mistakes.push(self.mistake(address, FindingKind::StreamUseAfterFree, user, of, &by));
        }
        self.freed = Some(by);
        mistakes
    }
}

/// Reports mistakes that have not been reported before.
fn report(mistakes: impl IntoIterator<Item = Mistake>) {
    static TOLD: Mutex<Option<HashSet<(FindingKind, String, String)>>> = Mutex::new(None);
    for Mistake { kind, message, key } in mistakes {
        let is_new = || lock(&TOLD).get_or_insert_default().insert(key);
        if !crate::tool::suppressions().has_kind(kind) && is_new() {
            log!(error, "{message}");
            crate::report::found_by_host(kind, &message);
        }
    }
}

impl Order {
    /// The current position of a stream, after all that the program has waited for.
    fn position(&mut self, stream: &Stream) -> &mut Position {
        let position = self.streams.entry(stream.id).or_insert_with(|| Position {
            stream: stream.id,
            is_legacy: stream.is_legacy(),
            number: 0,
            before: Arc::default(),
        });
        let host = &self.host;
        if host.all && !position.before.all
            || host.streams.iter().any(|(&stream, &number)| !position.before.knows(stream, number))
        {
            Arc::make_mut(&mut position.before).join(host);
        }
        position
    }

    fn allocate(&mut self, address: u64, bytes: u64, origin: String, allocated: Position) {
        // Once the program knows of a release, a later use faults.
        let host = &self.host;
        let is_over = |freed: &Position| host.knows(freed.stream, freed.number);
        self.allocations.retain(|_, allocation| !allocation.freed.as_ref().is_some_and(is_over));
        let allocation = Allocation { bytes, origin, allocated, uses: HashMap::new(), freed: None };
        self.allocations.insert(address, allocation);
    }
}

/// Submits an operation to a stream. Returns its position.
pub fn submitted(stream: &Stream, operation: &Operation) -> Option<Position> {
    if !is_wanted() {
        return None;
    }
    let mut order = order();
    let position = order.position(stream);
    position.number += 1;
    if matches!(operation, Operation::WaitValue(_)) {
        Arc::make_mut(&mut position.before).all = true;
    }
    Some(position.clone())
}

/// A stream allocates memory for the call named `what`.
pub fn allocated(stream: &Stream, address: u64, bytes: u64, what: &str) {
    if let Some(position) = submitted(stream, &Operation::Nothing) {
        let caller = crate::origin::caller();
        let origin = caller.map_or_else(|| what.to_owned(), |caller| format!("{what}, called by {caller}"));
        order().allocate(address, bytes, origin, position);
    }
}

/// The operation that this thread runs allocates memory of a graph.
pub fn allocated_by_graph(address: u64, bytes: u64, name: &str) {
    if let Some(position) = current() {
        order().allocate(address, bytes, name.to_owned(), position);
    }
}

/// The operation that this thread runs frees memory.
pub fn freed(address: u64) {
    let Some(position) = current() else { return };
    let mistakes = order().allocations.get_mut(&address).map(|allocation| allocation.free(address, position));
    report(mistakes.into_iter().flatten());
}

/// The current position of a stream.
pub fn position(stream: &Stream) -> Option<Position> {
    is_wanted().then(|| order().position(stream).clone())
}

/// Orders the next operations of a stream after a position in another one.
pub fn stream_waits(stream: &Stream, position: &Position) {
    let mut order = order();
    let before = Arc::make_mut(&mut order.position(stream).before);
    before.join(&position.before);
    before.raise(position.stream, position.number);
}

/// Orders the next calls of the program after these positions.
pub fn host_waits(positions: impl IntoIterator<Item = Position>) {
    let mut positions = positions.into_iter().peekable();
    if positions.peek().is_some() {
        let host = &mut order().host;
        for position in positions {
            host.join(&position.before);
            host.raise(position.stream, position.number);
        }
    }
}

/// The current positions of all streams, for a wait for all of them.
pub fn everything() -> Vec<Position> {
    if is_wanted() { order().streams.values().cloned().collect() } else { Vec::new() }
}

/// Runs the operation that brought its stream to a position.
pub fn perform<T>(position: Option<Position>, work: impl FnOnce() -> T) -> T {
    /// Restores the thread's previous position, even if the operation panics.
    struct Restore(Option<Position>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.with(|current| current.replace(self.0.take()));
        }
    }
    let _restore = Restore(CURRENT.with(|current| current.replace(position)));
    work()
}

/// A function of the program was called in a stream: the program may learn of all earlier operations.
pub fn told_host() {
    host_waits(current());
}

/// The memory that streams have allocated: address and size.
pub fn allocations() -> Vec<(u64, u64)> {
    if CURRENT.with(|current| current.borrow().is_none()) {
        return Vec::new();
    }
    order().allocations.iter().map(|(&address, allocation)| (address, allocation.bytes)).collect()
}

/// The operation that this thread runs uses memory.
pub fn uses(address: u64, bytes: u64, of: impl FnOnce() -> Use) {
    let Some(position) = current() else { return };
    let mut order = order();
    let before = order.allocations.range_mut(..address.saturating_add(bytes.max(1))).next_back();
    let found = before.filter(|(base, allocation)| address < **base + allocation.bytes);
    let mistake = found.and_then(|(&base, allocation)| allocation.note(base, &position, of()));
    drop(order);
    report(mistake);
}
