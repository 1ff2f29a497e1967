//! A launch in progress: host threads take blocks and run them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use machine::{Launch, LaunchError, LaunchReport, ObserverHandle, Stopwatch, caught, pool};

use crate::affine::LaneRows;
use crate::cluster::Cluster;
use crate::code::Code;
use crate::cta::{Progress, next_random};
use crate::cta_batch::{CtaBatch, CtaBatches};
use crate::deadlock::{Deadlock, Share};
use crate::exec::{Coarse, Observer, Recorder, Stopped, Watcher, most_lanes};
use crate::footprint::Footprint;
use crate::run::Run;

/// A launch of at least this many blocks begins on one host thread.
const MANY_BLOCKS: u64 = 64;
/// Time slices that a host thread still gives to blocks below one that has faulted.
const GRACE: u32 = 64;
/// How many time slices in a row a block may use up its whole budget before other blocks get a time slice. A loop that
/// seems to compute may wait for another block by weak loads.
const PATIENCE: u32 = 8;
/// How often a host thread first polls for the blocks of other host threads before it starts another block itself.
const POLLS: u32 = 64;
/// With a schedule, each window of this many consecutive CTA batches starts in a shuffled order. Fewer than a host
/// thread may keep in flight.
const WINDOW: u64 = 256;
/// With a schedule, a block may yield after any time slice while fewer blocks than this are in flight.
const MOST_SHUFFLED: usize = 32;
/// A checked launch (its observer forks, or wants one host thread) forms its CTA batches as if there were this many
/// host threads. Which blocks run side by side must not depend on the actual number.
const CHECKED_THREADS: usize = 8;
/// How long a launch runs on one host thread first: waking other threads takes about this long.
const WAKING_TIME: Duration = Duration::from_micros(40);

/// Runs all blocks of a prepared launch on the interpreter.
///
/// # Errors
/// When the machine lacks the host path that the launch asks for, a thread faults, or a limit of the configuration is
/// reached.
pub fn run(launch: &Launch) -> Result<LaunchReport, LaunchError> {
    Run::new(launch)?.run()
}

impl Run<'_> {
    /// Runs all blocks.
    fn run(&self) -> Result<LaunchReport, LaunchError> {
        if self.config().profile.is_some() && self.config().observer.is_some() {
            let what = "a launch can have a profile or an observer, not both";
            return Err(LaunchError::Invalid(what.to_owned()));
        }
        let mut host_threads = self.config().host_threads();
        let mut fair_to = host_threads;
        if let Some(observer) = &self.config().observer {
            observer.notify(|observer| observer.begin(self));
            if host_threads > 1 && self.run_apart(observer, host_threads)? {
                observer.notify(|observer| observer.end(self));
                return Ok(self.report());
            }
            if observer.notify(|observer| observer.wants_one_thread()) {
                host_threads = 1;
                fair_to = CHECKED_THREADS;
            }
        }
        let (batches, code) = self.batches(fair_to);
        let work = Work::new(self, &code, batches, host_threads);
        let host_threads = work.host_threads(host_threads);
        match (&self.config().profile, &self.config().observer) {
            (None, None) => work.run(host_threads, || (), |()| ()),
            (_, Some(observer)) => {
                work.run(host_threads, || Watcher::new(observer.clone()), |_| ());
                observer.notify(|observer| observer.end(self));
            }
            (Some(profile), None) => work.run(
                host_threads,
                || Recorder::new(self, &code),
                |recorder| recorder.add_to(&mut profile.lock().unwrap_or_else(PoisonError::into_inner)),
            ),
        }
        let error = work.error.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let report = self.report();
        error.map_or(Ok(report), |(_, error)| Err(error))
    }

    /// The report of a launch that has ended.
    fn report(&self) -> LaunchReport {
        self.config().output.flush();
        let seconds = self.elapsed().as_secs_f64();
        LaunchReport::new(self.limits.steps(), seconds)
    }

    /// The CTA batches of the launch, and the code for their gangs.
    fn batches(&self, fair_to: usize) -> (CtaBatches, Arc<Code>) {
        let batches = CtaBatches::of(self, fair_to);
        let is_watched = self.config().observer.is_some() || self.config().profile.is_some();
        let sections = !is_watched && self.info.wants_sections(self.native_code, batches.count);
        (batches, self.info.code(self, batches.lanes, self.path, sections))
    }

    /// Runs all blocks on several host threads, each with a forked observer. Returns false, with all effects undone, if
    /// blocks may depend on each other, a block faulted, or a fork has a finding.
    ///
    /// # Errors
    /// When a host thread panicked. Its writes cannot be undone.
    fn run_apart(&self, observer: &ObserverHandle, host_threads: usize) -> Result<bool, LaunchError> {
        let host_threads =
            host_threads.min(usize::try_from(self.config().grid_blocks()).unwrap_or(usize::MAX));
        if host_threads < 2 || !self.may_be_undone() {
            return Ok(false);
        }
        let fork = || observer.notify(|observer| observer.fork(self));
        let Some(forks) = (0..host_threads).map(|_| fork()).collect::<Option<Vec<_>>>() else {
            return Ok(false);
        };
        let (batches, code) = self.batches(CHECKED_THREADS);
        let work = Work::new(self, &code, batches, host_threads);
        let host_threads = work.host_threads(host_threads);
        if host_threads < 2 {
            return Ok(false);
        }
        let (forks, watchers) = (Mutex::new(forks), Mutex::new(Vec::new()));
        let lock = |poisoned: PoisonError<_>| poisoned.into_inner();
        let watch = || {
            let fork = forks.lock().unwrap_or_else(PoisonError::into_inner).pop();
            Watcher::with_footprint(fork.unwrap_or_else(|| observer.clone()))
        };
        work.run(host_threads, watch, |watcher| watchers.lock().unwrap_or_else(lock).push(watcher));
        let watchers = watchers.into_inner().unwrap_or_else(PoisonError::into_inner);
        let error = work.error.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, error @ LaunchError::Panicked(_))) = error {
            return Err(error);
        }
        let (forks, footprints): (Vec<_>, Vec<_>) = watchers.into_iter().map(Watcher::into_parts).unzip();
        let footprints: Vec<Footprint> = footprints.into_iter().flatten().collect();
        let found = forks.iter().any(|fork| {
            fork.notify(|fork| {
                fork.end(self);
                fork.has_found()
            })
        });
        if error.is_none() && !found && !Footprint::any_depends(&footprints) {
            return Ok(true);
        }
        Footprint::undo(footprints, self);
        observer.notify(|observer| observer.undone());
        self.limits.restart();
        Ok(false)
    }
}

/// The blocks of a launch, shared by its host threads.
struct Work<'l> {
    launch: &'l Run<'l>,
    code: &'l Code,
    /// How the lanes of a gang form rows of one block or several.
    rows: LaneRows,
    batches: CtaBatches,
    next: AtomicU64,
    /// Host threads that run blocks.
    runners: AtomicU32,
    /// Blocks wait for one another, so host threads should be at neighbouring ones.
    entwined: AtomicBool,
    /// The number of CTA batches that a host thread takes at a time, and those that it takes to run them without gangs: its part, and
    /// the most.
    share: u64,
    coarse_share: u64,
    most_coarse: u64,
    /// Blocks from this index on need not run any more.
    end: AtomicU64,
    deadlock: Deadlock,
    /// The error of the lowest block, with its number.
    error: Mutex<Option<(u64, LaunchError)>>,
}

impl<'l> Work<'l> {
    fn new(launch: &'l Run<'l>, code: &'l Code, batches: CtaBatches, host_threads: usize) -> Work<'l> {
        let most_coarse = (most_lanes(launch) / batches.lanes).max(1) as u64;
        Work {
            launch,
            code,
            rows: LaneRows::of(launch.config().block, batches.lanes, batches.blocks),
            batches,
            next: AtomicU64::new(0),
            runners: AtomicU32::new(0),
            entwined: AtomicBool::new(false),
            share: (batches.count / (64 * host_threads as u64)).clamp(1, 16),
            coarse_share: match host_threads {
                1 => batches.count,
                _ => batches.count / (4 * host_threads as u64),
            }
            .clamp(1, most_coarse),
            most_coarse,
            end: AtomicU64::new(u64::MAX),
            deadlock: Deadlock::default(),
            error: Mutex::new(None),
        }
    }

    /// The number of host threads, at most `most`, that have work.
    fn host_threads(&self, most: usize) -> usize {
        (most as u64).min(self.batches.count).max(1) as usize
    }

    /// Runs all blocks on `host_threads` host threads. Each thread has an observer from `observe`, and passes it to
    /// `end`.
    fn run<O: Observer>(&self, host_threads: usize, observe: impl Fn() -> O + Sync, end: impl Fn(O) + Sync) {
        let share = || {
            let mut runner = Runner::new(self, observe());
            runner.run(Until::Over);
            end(runner.observer);
        };
        self.end_if_panics(|| {
            let mut runner = Runner::new(self, observe());
            // Waking other threads takes longer than a small launch.
            let many = host_threads > 1 && self.launch.config().grid_blocks() >= MANY_BLOCKS;
            match host_threads {
                _ if many && runner.run(Until::Time(WAKING_TIME)) => {}
                1 => drop(runner.run(Until::Over)),
                _ if many && self.nearly_done() && runner.run(Until::Full) => {}
                n => {
                    let own = || {
                        runner.run(Until::Over);
                    };
                    pool::beside(n - 1, || self.end_if_panics(share), || self.end_if_panics(own));
                }
            }
            end(runner.observer);
        });
    }

    /// Runs the work of a host thread. A panic ends the launch, since the other threads would wait for its blocks.
    fn end_if_panics(&self, work: impl FnOnce()) {
        if let Err(message) = caught(work) {
            self.end(0, LaunchError::Panicked(message));
        }
    }

    /// At the current rate, the rest takes hardly longer than waking other threads.
    fn nearly_done(&self) -> bool {
        let begun = self.next.load(Ordering::Relaxed);
        self.batches.count.saturating_sub(begun) < 2 * begun
    }

    /// Ends the launch with an error. Blocks below one that faulted run for a while longer: if they fault as well, the
    /// launch reports the lowest of these blocks.
    fn end(&self, block: u64, error: LaunchError) {
        let end = if matches!(error, LaunchError::Fault(_)) { block } else { 0 };
        self.end.fetch_min(end, Ordering::Relaxed);
        let mut first = self.error.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let panicked = matches!(error, LaunchError::Panicked(_));
        if panicked || first.as_ref().is_none_or(|(other, _)| block < *other) {
            *first = Some((block, error));
        }
    }
}

/// How long a host thread runs blocks.
#[derive(Clone, Copy)]
enum Until {
    /// Until no block is left.
    Over,
    /// Until about this much time has passed.
    Time(Duration),
    /// Until it may start no more blocks. Those in flight may wait for blocks that have not started.
    Full,
}

/// A CTA batch in flight, or a cluster of several blocks in flight.
struct Flight<'l> {
    /// Its first block.
    block: u64,
    /// Number of its blocks.
    blocks: usize,
    cluster: Box<Cluster<'l>>,
    /// It may wait for other blocks.
    spinning: bool,
    /// Only other blocks can help it.
    blocked: bool,
    /// Time slices since it last yielded to others, and the time slices that it gets before it yields.
    slices: u32,
    patience: u32,
}

impl Flight<'_> {
    /// Counts a time slice and reports whether the block has used up its patience: its loops may wait for other blocks
    /// by weak loads. The patience is then halved.
    fn has_taken_long(&mut self) -> bool {
        self.slices += 1;
        if self.slices < self.patience {
            return false;
        }
        (self.slices, self.patience) = (0, (self.patience / 2).max(1));
        true
    }
}

/// A host thread that runs blocks of a launch.
struct Runner<'w, 'l, O> {
    observer: O,
    work: &'w Work<'l>,
    /// Runs many CTA batches at once, if this is possible.
    coarse: Option<Coarse<'l>>,
    /// CTA batches that this host thread has taken and not started.
    taken: Range<u64>,
    #[expect(clippy::vec_box, reason = "they go to and fro")]
    idle: Vec<Box<Cluster<'l>>>,
    flight: VecDeque<Flight<'l>>,
    /// How many in flight are blocked.
    blocked: usize,
    share: Share,
    /// Start another block next. Blocks can wait for one another only while they spin; other blocks must then get a
    /// time slice.
    start_more: bool,
    /// Time slices of spinning blocks since the last block started or ended, and how many of each are waited for. Other host
    /// threads may run what the blocks wait for. More blocks would look back over each other in vain.
    polls: u32,
    most_polls: u32,
    /// Thread-instructions not yet reported to [`Run::limits`].
    steps: u64,
    /// For launches with a schedule: the state of the random numbers, and the shuffled CTA batches of the window that
    /// begins with the first number.
    random: u64,
    window: (u64, Vec<u64>),
}

impl<'w, 'l, O: Observer> Runner<'w, 'l, O> {
    fn new(work: &'w Work<'l>, observer: O) -> Runner<'w, 'l, O> {
        let (idle, flight) = (Vec::new(), VecDeque::new());
        work.deadlock.begin();
        work.runners.fetch_add(1, Ordering::Relaxed);
        let (share, window) = (Share::default(), (0, Vec::new()));
        let random = work.launch.config().schedule.unwrap_or(0);
        let coarse = if O::WATCHES { None } else { Coarse::new(work.launch, work.code) };
        Runner {
            observer,
            work,
            coarse,
            taken: 0..0,
            idle,
            flight,
            blocked: 0,
            share,
            start_more: true,
            polls: 0,
            most_polls: POLLS,
            steps: 0,
            random,
            window,
        }
    }

    /// Runs blocks. Returns false if some are left.
    fn run(&mut self, until: Until) -> bool {
        let start = Stopwatch::start();
        let mut grace = GRACE;
        loop {
            let end = self.work.end.load(Ordering::Relaxed);
            if end != u64::MAX {
                self.keep_below(end);
                if self.flight.is_empty() && self.taken.is_empty() || grace == 0 {
                    break;
                }
                grace -= 1;
            }
            match until {
                Until::Time(limit) if start.elapsed() > limit => return false,
                Until::Full if self.are_left() && !self.has_room() => return false,
                _ => {}
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => break,
                Err((block, error)) => self.work.end(block, error),
            }
        }
        self.work.deadlock.leave(&mut self.share);
        self.work.runners.fetch_sub(1, Ordering::Relaxed);
        self.work.launch.limits.report(self.steps);
        true
    }

    /// Drops the blocks from `end` on, and those that wait for others.
    #[cold]
    fn keep_below(&mut self, end: u64) {
        self.flight.retain(|flight| flight.block < end && !flight.spinning);
        self.blocked = 0;
        let batches = &self.work.batches;
        while self.taken.end > self.taken.start && batches.members(self.taken.end - 1).first >= end {
            self.taken.end -= 1;
        }
        self.start_more |= self.flight.is_empty();
    }

    /// Some CTA batches have not started.
    fn are_left(&self) -> bool {
        !self.taken.is_empty() || self.work.next.load(Ordering::Relaxed) < self.work.batches.count
    }

    /// Whether another CTA batch may start.
    #[inline]
    fn has_room(&self) -> bool {
        let blocks = self.flight.len();
        let launch = self.work.launch;
        blocks < launch.config().resident_blocks()
            || self.blocked == blocks && launch.grid_barrier.all_resident
    }

    /// Takes some CTA batches, if none are left.
    fn take(&mut self) {
        if self.taken.is_empty() && self.work.end.load(Ordering::Relaxed) == u64::MAX {
            let Work { next, share, coarse_share, most_coarse, entwined, .. } = self.work;
            let count = &self.work.batches.count;
            let coarse = self.coarse.as_ref();
            let likely = coarse.and_then(|coarse| coarse.share(*coarse_share, *most_coarse));
            let share = match likely {
                // A host thread with blocks in flight may have no room for many more.
                _ if !self.flight.is_empty() => 1,
                Some(share) => share,
                None if entwined.load(Ordering::Relaxed) => 1,
                None => *share,
            };
            let first = next.fetch_add(share, Ordering::Relaxed).min(*count);
            self.taken = first..(first + share).min(*count);
        }
    }

    /// Runs some of the CTA batches that have been taken, if they can run without a gang.
    fn run_taken(&mut self) -> Result<bool, (u64, LaunchError)> {
        let Work { launch, ref batches, .. } = *self.work;
        let Some(coarse) = &mut self.coarse else { return Ok(false) };
        if !self.flight.is_empty() || launch.limits.look(0).is_some() {
            return Ok(false);
        }
        let first = self.taken.start;
        let start = (self.work.coarse_share < self.work.most_coarse).then(Stopwatch::start);
        let Some(done) = coarse.run(batches, &mut self.taken) else {
            if coarse.gives_up() {
                self.coarse = None;
            }
            return Ok(false);
        };
        self.steps += done.instructions;
        match done.stopped {
            Some(stopped) => self.resume(&stopped, first..self.taken.start)?,
            None => {
                if let Some(start) = start {
                    self.work.code.note_range(self.taken.start - first, start.elapsed());
                }
                launch.config().report_ended(done.blocks);
            }
        }
        Ok(true)
    }

    /// Goes on with the blocks of these CTA batches, which have stopped.
    fn resume(&mut self, stopped: &Stopped<'l>, batches: Range<u64>) -> Result<(), (u64, LaunchError)> {
        let mut before = 0;
        for batch in batches {
            let batch = self.work.batches.members(batch);
            let mut flight = self.start(batch)?;
            flight.cluster.resume(stopped, before);
            before += batch.blocks;
            self.flight.push_back(flight);
        }
        self.start_more = false;
        Ok(())
    }

    /// A CTA batch at the start of the kernel.
    fn start(&mut self, batch: CtaBatch) -> Result<Flight<'l>, (u64, LaunchError)> {
        let Work { launch, code, rows, .. } = *self.work;
        let (block, blocks) = (batch.first, batch.blocks);
        let mut cluster = self.idle.pop().unwrap_or_else(|| Box::new(Cluster::new(launch, code, rows)));
        cluster.start(batch).map_err(|fault| (block, LaunchError::Fault(fault)))?;
        let (spinning, blocked, slices, patience) = (false, false, 0, PATIENCE);
        Ok(Flight { block, blocks, cluster, spinning, blocked, slices, patience })
    }

    /// The next CTA batch to start.
    fn next_batch(&mut self) -> Option<u64> {
        let batch = self.taken.next()?;
        Some(if self.shuffles_blocks() { self.shuffle(batch) } else { batch })
    }

    /// Whether blocks start in a shuffled order and yield at any time. `--deterministic` promises another order.
    fn shuffles_blocks(&self) -> bool {
        let launch = self.work.launch;
        launch.shuffled && !launch.config().deterministic
    }

    /// The CTA batch that starts in the place of `batch`. A block may wait for lower blocks, so CTA batches change
    /// places only within a window, all of which may be in flight at once. All host threads use the same order.
    fn shuffle(&mut self, batch: u64) -> u64 {
        let first = batch / WINDOW * WINDOW;
        if self.window.0 != first || self.window.1.is_empty() {
            let end = (first + WINDOW).min(self.work.batches.count);
            let mut all: Vec<u64> = (first..end).collect();
            let mut state = self.work.launch.config().schedule.unwrap_or(0) ^ first;
            for i in (1..all.len()).rev() {
                all.swap(i, next_random(&mut state) as usize % (i + 1));
            }
            self.window = (first, all);
        }
        self.window.1.get((batch - first) as usize).copied().unwrap_or(batch)
    }

    fn next_random(&mut self) -> u64 {
        next_random(&mut self.random)
    }

    /// Faults the lowest block if no block on any host thread can make progress or start.
    #[inline]
    fn detect_deadlock(&mut self) -> Result<(), (u64, LaunchError)> {
        let deadlock = &self.work.deadlock;
        let blocks = self.flight.len();
        if self.blocked < blocks || self.has_room() && self.are_left() {
            deadlock.go_on(&mut self.share);
            return Ok(());
        }
        if !deadlock.is_complete(&mut self.share, blocks) {
            return Ok(());
        }
        let lowest = self.flight.iter_mut().min_by_key(|flight| flight.block);
        lowest
            .map_or(Ok(()), |flight| Err((flight.block, LaunchError::Fault(flight.cluster.deadlock_fault()))))
    }

    /// Counts a time slice in which a block spun. Returns whether to wait for what other host threads do, and to start no other block
    /// here. Each time this was not enough, it waits half as long.
    fn polls_others(&mut self) -> bool {
        if self.work.runners.load(Ordering::Relaxed) == 1 {
            return false;
        }
        self.work.entwined.store(true, Ordering::Relaxed);
        self.polls += 1;
        let waits = self.polls as usize <= self.most_polls as usize * self.flight.len();
        if waits {
            // They may have no core of their own.
            std::thread::yield_now();
        } else {
            (self.polls, self.most_polls) = (0, self.most_polls / 2);
        }
        waits
    }

    /// Gives one block a time slice. Returns false if there is none.
    fn step(&mut self) -> Result<bool, (u64, LaunchError)> {
        let launch = self.work.launch;
        if self.start_more && self.has_room() {
            self.take();
            if self.run_taken()? {
                return Ok(true);
            }
            if let Some(batch) = self.next_batch() {
                let flight = self.start(self.work.batches.members(batch))?;
                self.flight.push_front(flight);
            }
        }
        let Some(mut flight) = self.flight.pop_front() else { return Ok(false) };
        let Flight { block, blocks, ref mut cluster, blocked, .. } = flight;
        self.blocked -= usize::from(blocked);
        let progress = cluster.step(&mut self.observer);
        self.steps += cluster.take_instructions();
        if launch.limits.count_steps() {
            launch.limits.report(std::mem::take(&mut self.steps));
        }
        let stop = launch.limits.look(0).map(|stop| (block, stop.error(cluster.place())));
        match progress.map_err(|fault| (block, LaunchError::Fault(fault)))? {
            Progress::Stopped(stop, place) => return Err((block, stop.error(Some(place)))),
            Progress::Finished => {
                launch.config().report_ended(blocks as u64);
                self.idle.push(flight.cluster);
                self.start_more = self.flight.is_empty();
                (self.polls, self.most_polls) = (0, POLLS);
                self.work.deadlock.go_on(&mut self.share);
            }
            Progress::Running { spinning, blocked, .. } => {
                (flight.spinning, flight.blocked) = (spinning, blocked);
                self.blocked += usize::from(blocked);
                let gives_way = spinning
                    || flight.has_taken_long()
                    || self.shuffles_blocks()
                        && self.flight.len() < MOST_SHUFFLED
                        && self.next_random() & 1 != 0;
                if gives_way {
                    self.flight.push_back(flight);
                } else {
                    self.flight.push_front(flight);
                }
                self.start_more = gives_way && !(spinning && self.polls_others());
                self.detect_deadlock()?;
            }
        }
        // Checked even if all threads wait and execute nothing.
        stop.map_or(Ok(true), Err)
    }
}
