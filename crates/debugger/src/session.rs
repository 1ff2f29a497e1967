//! Where a debugged launch stops: breakpoints, watched expressions, steps, and the way back.
//!
//! A [`Front`] is the user's side: it is asked at each stop how the launch goes on. What it asks for becomes a *goal*,
//! which is met at some later turn, or, on the way back, at the last turn before now that would have met it. The launch
//! then runs again from a checkpoint: once to find that turn, and once to get there.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ptxvm::debug::{Debugger, Next, Span, Status, Stop};
use ptxvm::{Color, Error, Fault, Launch, LaunchReport, PlaceInSource};

use crate::expression::Expression;
use crate::program::Program;
use crate::value::{Lane, Scope, Value, WARP};

/// Turns after which a [`Front`] is asked again while the launch runs.
const TURNS_BETWEEN: u64 = 1024;

/// What a step advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The lane in focus, until its next instruction. Others of its warp may run before.
    Lane,
    /// Its warp, by one instruction of some of its lanes.
    Warp,
    /// Its block, by one instruction of each warp that can run.
    Block,
}

/// How far a launch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To a breakpoint, a change of a watched expression, or a fault.
    Continue,
    /// By one instruction.
    One(Unit),
    /// To another line of the original source, if it is known.
    Line,
    /// Like `Line`, without stopping in functions that are called.
    LineOver,
    /// By one instruction of the lane, without stopping in functions that it calls.
    Over,
    /// Until the lane's function has returned.
    Out,
}

/// How a launch goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// On.
    Forward(Step),
    /// The same the other way.
    Backward(Step),
    /// To the turn of this time.
    To(u64),
    /// To the end, without stopping again.
    Detach,
    /// It ends here.
    Quit,
}

/// Why a launch has stopped.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// It is about to begin.
    Begin,
    /// Breakpoints of these numbers.
    Breakpoints(Vec<u32>),
    /// A watched expression has changed: its number, and its values before and now.
    Watch(u32, Option<Value>, Option<Value>),
    /// A step is done, or the time has come.
    Step,
    /// The user asked for it.
    Pause,
    /// There is nothing before.
    Beginning,
    /// A thread has faulted, or none can run.
    Fault {
        /// What is wrong, in a few words.
        kind: String,
        /// The same as it would be reported.
        message: String,
    },
    /// All threads have ended.
    End,
}

/// The user's side of a debugger.
pub trait Front {
    /// The launch has stopped.
    fn stopped(&mut self, session: &mut Session, stop: &mut Stop<'_, '_>, why: &Why) -> Command;

    /// Is asked now and then while the launch runs.
    fn running(&mut self, _session: &mut Session, _stop: &mut Stop<'_, '_>) -> Option<Command> {
        None
    }
}

/// A place where launches stop.
#[derive(Clone, Debug)]
pub struct Breakpoint {
    /// Its number, which no watch has.
    pub id: u32,
    /// As the user wrote it.
    pub place: String,
    /// The instructions before which it stops.
    pub at: Vec<Span>,
    /// It stops only if this is true in a lane that is about to execute the instruction.
    pub condition: Option<(String, Expression)>,
    /// How often it has stopped, or would have.
    pub hits: u64,
    /// The error of its condition, if it had one.
    pub error: Option<String>,
}

/// An expression whose changes stop the launch.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Its number, which no breakpoint has.
    pub id: u32,
    /// As the user wrote it.
    pub text: String,
    expression: Expression,
    /// The lane in which it is evaluated.
    pub lane: Lane,
    /// How many calls of the lane were active when it was set: those that it makes later are left out.
    level: usize,
    /// The time of the last turn, and its value before that.
    last: Option<(u64, Option<Value>)>,
}

/// What has to be true where the launch stops next.
#[derive(Clone, Debug)]
struct Target {
    step: Step,
    /// The lane in focus when the user asked, how many calls of it were active, and where it was.
    lane: Lane,
    depth: usize,
    place: Option<PlaceInSource>,
}

#[derive(Clone, Debug)]
enum Goal {
    Forward(Target),
    /// The turn of a time, and why it stops there.
    Time(u64, Why, Option<Lane>),
    /// The last turn before a time that meets a target.
    Search {
        target: Target,
        before: u64,
        /// The first turn that was looked at.
        from: Option<u64>,
        found: Option<(u64, Why, Lane)>,
    },
    Detached,
}

/// The state of a debugger.
#[derive(Debug)]
pub struct Session {
    /// What is debugged.
    pub program: Program,
    /// Where it stops.
    pub breakpoints: Vec<Breakpoint>,
    /// What else stops it.
    pub watches: Vec<Watch>,
    /// The lane that the user looks at.
    pub focus: Lane,
    /// Whether steps go by lines of the original source, where the program names them.
    pub by_original_lines: bool,
    last_id: u32,
    /// Set from outside to stop the launch.
    pause: Arc<AtomicBool>,
    /// Breakpoints by the start of their instructions.
    at: HashMap<u32, Vec<usize>>,
    goal: Goal,
    was_backward: bool,
}

impl Session {
    /// A session that stops at the first turn.
    pub fn new(program: Program) -> Session {
        Session {
            program,
            breakpoints: Vec::new(),
            watches: Vec::new(),
            focus: Lane { block: 0, thread: 0 },
            by_original_lines: false,
            last_id: 0,
            pause: Arc::default(),
            at: HashMap::new(),
            goal: Goal::Time(0, Why::Begin, None),
            was_backward: false,
        }
    }

    /// Has the launch stop before its next turn.
    pub fn pause(&self) {
        self.pause.store(true, Ordering::Relaxed);
    }

    /// Has the launch stop when something else, like Ctrl-C, sets a flag.
    pub fn pause_when(&mut self, flag: Arc<AtomicBool>) {
        self.pause = flag;
    }

    /// Takes the session to another launch, which stops at breakpoints. Those are looked for again.
    pub fn turn_to(&mut self, program: Program) {
        self.program = program;
        self.watches.clear();
        self.focus = Lane { block: 0, thread: 0 };
        for breakpoint in &mut self.breakpoints {
            breakpoint.at = self.program.resolve(&breakpoint.place).unwrap_or_default();
        }
        self.index();
        self.was_backward = false;
        let target = Target { step: Step::Continue, lane: self.focus, depth: 0, place: None };
        self.goal = Goal::Forward(target);
    }

    /// Whether the user wants to hear no more.
    pub fn is_detached(&self) -> bool {
        matches!(self.goal, Goal::Detached)
    }

    /// Whether the launch has ever gone back.
    pub fn was_backward(&self) -> bool {
        self.was_backward
    }

    fn new_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    /// Sets a breakpoint at a place ([`Program::resolve`]); returns its number.
    ///
    /// # Errors
    /// If there is no such place, or the condition is no expression.
    pub fn break_at(&mut self, place: &str, condition: Option<&str>) -> Result<u32, String> {
        let at = self.program.resolve(place)?;
        self.break_at_instructions(place, at, condition)
    }

    /// Sets a breakpoint before these instructions.
    ///
    /// # Errors
    /// If the condition is no expression, or names what is not there.
    pub fn break_at_instructions(
        &mut self,
        place: &str,
        at: Vec<Span>,
        condition: Option<&str>,
    ) -> Result<u32, String> {
        let parsed = condition.map(Expression::parse).transpose()?;
        for (function, body) in at.iter().filter_map(|span| self.program.function_at(*span)) {
            parsed.iter().try_for_each(|parsed| self.program.has_names(function, body, parsed))?;
        }
        let condition = condition.map(str::to_owned).zip(parsed);
        let id = self.new_id();
        let place = place.to_owned();
        self.breakpoints.push(Breakpoint { id, place, at, condition, hits: 0, error: None });
        self.index();
        Ok(id)
    }

    /// Watches an expression in the function that a lane is in; returns its number.
    ///
    /// # Errors
    /// If it is no expression, or names what is not there.
    pub fn watch(&mut self, stop: &Stop<'_, '_>, lane: Lane, text: &str) -> Result<u32, String> {
        let expression = Expression::parse(text)?;
        let call = stop.call(lane.block, lane.thread, 0).ok_or("the thread is not running")?;
        self.program.has_names(call.function(), call.body(), &expression)?;
        let level = stop.depth(lane.block, lane.thread);
        let id = self.new_id();
        self.watches.push(Watch { id, text: text.to_owned(), expression, lane, level, last: None });
        Ok(id)
    }

    /// Removes a breakpoint or a watched expression. Returns whether there was one.
    pub fn delete(&mut self, id: u32) -> bool {
        let count = self.breakpoints.len() + self.watches.len();
        self.breakpoints.retain(|breakpoint| breakpoint.id != id);
        self.watches.retain(|watch| watch.id != id);
        self.index();
        count != self.breakpoints.len() + self.watches.len()
    }

    /// Removes the breakpoints that do not fit.
    pub fn keep(&mut self, fits: impl FnMut(&Breakpoint) -> bool) {
        self.breakpoints.retain(fits);
        self.index();
    }

    fn index(&mut self) {
        self.at.clear();
        for (index, breakpoint) in self.breakpoints.iter().enumerate() {
            for span in &breakpoint.at {
                self.at.entry(span.start).or_default().push(index);
            }
        }
    }

    /// The value of an expression in a call of a lane, counted outwards from the innermost.
    ///
    /// # Errors
    /// Why it has none.
    pub fn evaluate(
        &self,
        stop: &mut Stop<'_, '_>,
        lane: Lane,
        depth: usize,
        expression: &Expression,
    ) -> Result<Value, String> {
        Scope { program: &self.program, stop, lane, depth }.evaluate(expression)
    }

    /// Where a lane is, in the innermost call; `None` if it is not running, or behind the last instruction.
    pub fn place(&self, stop: &Stop<'_, '_>, lane: Lane) -> Option<PlaceInSource> {
        let instruction = stop.call(lane.block, lane.thread, 0)?.instruction()?;
        Some(self.program.place(instruction.span))
    }

    /// The goal that a command sets, and what the launch does for it.
    fn begin(&mut self, stop: &mut Stop<'_, '_>, command: Command) -> Next {
        let lane = self.focus;
        let target = |step| Target {
            step: if self.by_original_lines && step == Step::Over { Step::LineOver } else { step },
            lane,
            depth: stop.depth(lane.block, lane.thread),
            place: self.place(stop, lane),
        };
        let (goal, next) = match command {
            Command::Forward(step) => (Goal::Forward(target(step)), Next::Go),
            Command::Backward(step) => {
                let (before, target) = (stop.time(), target(step));
                let goal = Goal::Search { target, before, from: None, found: None };
                (goal, Next::Back(before.saturating_sub(1)))
            }
            Command::To(time) => {
                let next = if time < stop.time() { Next::Back(time) } else { Next::Go };
                (Goal::Time(time, Why::Step, None), next)
            }
            Command::Detach => (Goal::Detached, Next::Go),
            Command::Quit => (Goal::Detached, Next::Quit),
        };
        // A value of a time that is left says nothing of a change.
        if matches!(next, Next::Back(_)) {
            self.was_backward = true;
            self.watches.iter_mut().for_each(|watch| watch.last = None);
        }
        if let Goal::Forward(_) = goal {
            self.changed(stop);
        }
        self.goal = goal;
        next
    }

    /// Why the launch would stop before its next turn, and the lane that it is about.
    fn meets(&mut self, stop: &mut Stop<'_, '_>, target: &Target) -> Option<(Why, Lane)> {
        let (block, turn) = stop.turn()?;
        let lowest = Lane { block, thread: turn.warp * WARP + turn.lanes.trailing_zeros() as usize };
        let here = |lane: Lane| {
            lane.block == block && lane.warp() == turn.warp && turn.lanes >> lane.index() & 1 != 0
        };
        let near = if here(target.lane) { target.lane } else { lowest };
        if let Some(why) = self.changed(stop) {
            return Some((why, near));
        }
        if let Some(found) = self.broken(stop, near) {
            return Some(found);
        }
        let Lane { block: of, thread } = target.lane;
        let lives = |thread| stop.status(of, thread).is_some_and(|status| status != Status::Ended);
        let warp = target.lane.warp();
        let warp_lives = || (warp * WARP..(warp + 1) * WARP).any(lives);
        let steps = match target.step {
            Step::Continue => false,
            Step::One(Unit::Block) => {
                block != of && stop.status(of, 0).is_none() || block == of && turn.warp <= warp
            }
            Step::One(Unit::Warp) if warp_lives() => block == of && turn.warp == warp,
            _ if lives(thread) => {
                let depth = stop.depth(of, thread);
                here(target.lane)
                    && match target.step {
                        Step::Over => depth <= target.depth,
                        Step::Out => depth < target.depth,
                        Step::Line => self.is_new_line(stop, target),
                        Step::LineOver => depth <= target.depth && self.is_new_line(stop, target),
                        _ => true,
                    }
            }
            // The lane has ended: its warp goes on, or its block, or another.
            _ if warp_lives() => block == of && turn.warp == warp,
            _ => block == of || stop.status(of, 0).is_none(),
        };
        steps.then_some((Why::Step, near))
    }

    /// Whether the lane is at another line of the original source, or of the PTX where that is unknown.
    fn is_new_line(&self, stop: &Stop<'_, '_>, target: &Target) -> bool {
        let line = |place: &PlaceInSource| match &place.original {
            Some(original) => (Some(original.file.clone()), original.line),
            None => (None, place.position().line.into()),
        };
        let now = self.place(stop, target.lane);
        now.as_ref().map(line) != target.place.as_ref().map(line)
    }

    /// The breakpoints before the next turn whose conditions hold, and a lane for which they do.
    fn broken(&mut self, stop: &mut Stop<'_, '_>, near: Lane) -> Option<(Why, Lane)> {
        let start = stop.instruction()?.span.start;
        let here = self.at.get(&start)?.clone();
        let (block, turn) = stop.turn()?;
        let mut lanes: Vec<usize> = (0..WARP).filter(|lane| turn.lanes >> lane & 1 != 0).collect();
        // The lane in focus stays there if it can.
        lanes.sort_by_key(|&lane| (turn.warp, lane) != (near.warp(), near.index()));
        let (mut ids, mut found) = (Vec::new(), None);
        for index in here {
            let holds = match self.breakpoints[index].condition.clone() {
                None => lanes.first().copied(),
                Some((_, condition)) => lanes.iter().copied().find(|lane| {
                    let lane = Lane { block, thread: turn.warp * WARP + lane };
                    match self.evaluate(stop, lane, 0, &condition) {
                        Ok(value) => value.is_true(),
                        Err(error) => {
                            self.breakpoints[index].error = Some(error);
                            false
                        }
                    }
                }),
            };
            if let Some(lane) = holds {
                self.breakpoints[index].hits += 1;
                ids.push(self.breakpoints[index].id);
                found.get_or_insert(Lane { block, thread: turn.warp * WARP + lane });
            }
        }
        Some((Why::Breakpoints(ids), found?))
    }

    /// The first watched expression that has changed in the last turn.
    fn changed(&mut self, stop: &mut Stop<'_, '_>) -> Option<Why> {
        let mut why = None;
        let now = stop.time();
        for index in 0..self.watches.len() {
            let Watch { lane, level, last, .. } = self.watches[index];
            let depth = stop.depth(lane.block, lane.thread).checked_sub(level);
            let value = depth
                .and_then(|depth| self.evaluate(stop, lane, depth, &self.watches[index].expression).ok());
            self.watches[index].last = Some((now, value));
            let bits = |value: Option<Value>| value.map(|value| value.to_string());
            if let Some((time, before)) = last
                && time < now
                && bits(before) != bits(value)
            {
                why.get_or_insert(Why::Watch(self.watches[index].id, before, value));
            }
        }
        why
    }
}

/// A session and its user.
struct Leader<'s> {
    session: &'s mut Session,
    front: &'s mut dyn Front,
}

impl Leader<'_> {
    /// Stops, and does what the user wants.
    fn stop(&mut self, stop: &mut Stop<'_, '_>, why: &Why) -> Next {
        let command = self.front.stopped(self.session, stop, why);
        self.session.begin(stop, command)
    }

    /// A search has come to the time where it began: goes to what it found, or looks further back.
    fn end_search(&mut self) -> Next {
        let Goal::Search { target, before, from, found } = self.session.goal.clone() else { return Next::Go };
        self.session.watches.iter_mut().for_each(|watch| watch.last = None);
        let first = from.unwrap_or(before);
        let (goal, next) = match found {
            Some((time, why, lane)) => (Goal::Time(time, why, Some(lane)), Next::Back(time)),
            None if first > 0 => {
                let goal = Goal::Search { target, before: first, from: None, found: None };
                (goal, Next::Back(first - 1))
            }
            None => (Goal::Time(0, Why::Beginning, None), Next::Back(0)),
        };
        self.session.goal = goal;
        next
    }

    /// Whether the launch goes back or on without the user at a time when it has ended or faulted.
    fn before_the_end(&mut self) -> Option<Next> {
        match &self.session.goal {
            Goal::Detached => Some(Next::Go),
            Goal::Search { .. } => Some(self.end_search()),
            _ => None,
        }
    }
}

impl Debugger for Leader<'_> {
    fn turn(&mut self, stop: &mut Stop<'_, '_>) -> Next {
        let time = stop.time();
        if self.session.pause.swap(false, Ordering::Relaxed) && !matches!(self.session.goal, Goal::Detached) {
            if let Some((block, turn)) = stop.turn() {
                let lowest = turn.warp * WARP + turn.lanes.trailing_zeros() as usize;
                self.session.focus = Lane { block, thread: lowest };
            }
            return self.stop(stop, &Why::Pause);
        }
        if time.is_multiple_of(TURNS_BETWEEN)
            && let Some(command) = self.front.running(self.session, stop)
        {
            return self.session.begin(stop, command);
        }
        match &mut self.session.goal {
            Goal::Detached => Next::Go,
            Goal::Time(at, ..) if time < *at => Next::Go,
            Goal::Time(_, why, lane) => {
                let (why, lane) = (why.clone(), *lane);
                let own = stop.turn().map(|(block, turn)| Lane {
                    block,
                    thread: turn.warp * WARP + turn.lanes.trailing_zeros() as usize,
                });
                let focus = self.session.focus;
                let stays = lane.is_none() && stop.status(focus.block, focus.thread).is_some();
                self.session.focus = lane.or(own.filter(|_| !stays)).unwrap_or(focus);
                self.stop(stop, &why)
            }
            Goal::Forward(target) => {
                let target = target.clone();
                match self.session.meets(stop, &target) {
                    Some((why, lane)) => {
                        self.session.focus = lane;
                        self.stop(stop, &why)
                    }
                    None => Next::Go,
                }
            }
            Goal::Search { before, .. } if time >= *before => self.end_search(),
            Goal::Search { target, from, .. } => {
                from.get_or_insert(time);
                let target = target.clone();
                if let Some((why, lane)) = self.session.meets(stop, &target)
                    && let Goal::Search { found, .. } = &mut self.session.goal
                {
                    *found = Some((time, why, lane));
                }
                Next::Go
            }
        }
    }

    fn fault(&mut self, stop: &mut Stop<'_, '_>, fault: &Fault) -> Next {
        if let Some(next) = self.before_the_end() {
            return next;
        }
        let launch = stop.launch();
        self.session.focus =
            Lane { block: launch.block_index(fault.block), thread: launch.thread_index(fault.thread) };
        let error = self.session.program.module().located(Box::new(fault.clone()));
        let why = Why::Fault { kind: fault.kind.to_string(), message: error.render(Color::Never) };
        self.stop(stop, &why)
    }

    fn end(&mut self, stop: &mut Stop<'_, '_>) -> Next {
        match self.before_the_end() {
            Some(next) => next,
            None => self.stop(stop, &Why::End),
        }
    }
}

/// Runs a launch under a debugger.
///
/// # Errors
/// As [`Launch::debug`].
pub fn run(launch: Launch, session: &mut Session, front: &mut dyn Front) -> Result<LaunchReport, Error> {
    launch.debug(&mut Leader { session, front })
}
