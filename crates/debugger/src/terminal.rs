//! The debugger for people: a command a line, in the words of gdb.

use std::fmt::Write;

use ptxvm::debug::{Space, Stop, Type};

use crate::expression::{self, Expression};
use crate::session::{Command, Front, Session, Step, Unit, Why};
use crate::show;
use crate::value::{Lane, Scope, Value, WARP};

/// Where commands come from and answers go.
pub trait Console {
    /// The next line; `None` at the end of the input.
    fn read(&mut self, prompt: &str) -> Option<String>;

    /// Shows some text.
    fn write(&mut self, text: &str);
}

/// What a line asks for.
enum Answer {
    /// This text.
    Text(String),
    /// The launch goes on.
    Go(Command),
}

/// Commands, their other names, how they are used, and what they do.
const COMMANDS: [(&str, &[&str], &str, &str); 21] = [
    (
        "break",
        &["b"],
        "break PLACE [if CONDITION]",
        "stop before 19, saxpy.cu:12, a function or a label; if the condition holds in a lane",
    ),
    (
        "watch",
        &[],
        "watch EXPRESSION",
        "stop when its value in this lane changes: a register, or memory as [%rd1]:f32",
    ),
    ("delete", &["d"], "delete [N]", "remove a breakpoint or watch, or all"),
    ("info", &["i"], "info", "breakpoints and watches"),
    ("continue", &["c"], "continue", "run to the next stop"),
    (
        "step",
        &["s"],
        "step [lane|warp|block|line] [N]",
        "one instruction of the lane, its warp, or each warp of its block; or to another line of the original source",
    ),
    ("next", &["n"], "next [N]", "one instruction of the lane, not into functions that it calls"),
    ("finish", &["f"], "finish", "until the lane's function has returned"),
    (
        "back",
        &["rs"],
        "back [lane|warp|block|line|next|finish|continue] [N]",
        "the same the other way; `rc` is `back continue`",
    ),
    ("goto", &[], "goto TIME", "to a turn of the launch, before or after now"),
    (
        "print",
        &["p"],
        "print EXPRESSION",
        "a value in this lane: %r1, %tid.x, %r1:f32, [%rd1 + 4]:f32, .shared[tile]:u32",
    ),
    ("grid", &["g"], "grid EXPRESSION", "its values in all lanes of the block"),
    ("registers", &["r"], "registers [%PREFIX]", "all registers of this lane, or those that begin so"),
    (
        "memory",
        &["x"],
        "memory [SPACE] ADDRESS [COUNT] [TYPE]",
        "elements of memory: memory %rd1 16 f32, memory .shared 0 8",
    ),
    ("lanes", &["l"], "lanes", "what each lane of the block does, and where"),
    ("why", &[], "why", "where the lanes of the warp went different ways"),
    ("where", &["bt"], "where", "the functions that the lane is in"),
    ("list", &[], "list [LINES]", "the source around the lane"),
    (
        "focus",
        &["thread"],
        "focus [LANE] | X,Y,Z | X,Y,Z in X,Y,Z",
        "look at another lane of the warp, thread of the block, or thread in a block",
    ),
    ("detach", &[], "detach", "run to the end without stopping"),
    ("quit", &["q"], "quit", "end the launch here"),
];

/// The user's side as a command line.
pub struct Terminal<C> {
    console: C,
    /// The last command, which an empty line repeats.
    last: String,
    /// Steps that are left of the last command.
    again: Option<(Command, u64)>,
    is_first: bool,
}

impl<C: std::fmt::Debug> std::fmt::Debug for Terminal<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal").field("console", &self.console).finish_non_exhaustive()
    }
}

impl<C: Console> Terminal<C> {
    /// A command line at a console.
    pub fn new(console: C) -> Terminal<C> {
        Terminal { console, last: String::new(), again: None, is_first: true }
    }
}

impl<C: Console> Front for Terminal<C> {
    fn stopped(&mut self, session: &mut Session, stop: &mut Stop<'_, '_>, why: &Why) -> Command {
        if std::mem::replace(&mut self.is_first, false) {
            let config = stop.launch().config();
            let text = format!(
                "kernel `{}`, grid {:?}, block {:?}; `help` lists commands\n",
                ptxvm::short_name(stop.launch().kernel_name()),
                config.grid,
                config.block
            );
            self.console.write(&text);
        }
        match self.again.take() {
            Some((command, left)) if *why == Why::Step => {
                self.again = (left > 1).then_some((command, left - 1));
                return command;
            }
            _ => {}
        }
        for breakpoint in &mut session.breakpoints {
            if let Some(error) = breakpoint.error.take() {
                self.console.write(&format!("breakpoint {}: {error}\n", breakpoint.id));
            }
        }
        let text = show::stopped(session, stop, why);
        self.console.write(&text);
        loop {
            let Some(line) = self.console.read("(ptxvm) ") else { return Command::Quit };
            let line = if line.trim().is_empty() { self.last.clone() } else { line };
            self.last.clone_from(&line);
            match execute(session, stop, &line) {
                Ok((Answer::Text(text), _)) => self.console.write(&text),
                Ok((Answer::Go(command), count)) => {
                    self.again = (count > 1).then_some((command, count - 1));
                    return command;
                }
                Err(error) => self.console.write(&format!("{error}\n")),
            }
        }
    }
}

/// What a line shows, or how it lets the launch go on.
///
/// # Errors
/// What is wrong with the line.
pub(crate) fn answer(
    session: &mut Session,
    stop: &mut Stop<'_, '_>,
    line: &str,
) -> Result<Result<String, Command>, String> {
    Ok(match execute(session, stop, line)?.0 {
        Answer::Text(text) => Ok(text),
        Answer::Go(command) => Err(command),
    })
}

/// What a line asks for, and how often.
fn execute(session: &mut Session, stop: &mut Stop<'_, '_>, line: &str) -> Result<(Answer, u64), String> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let found = |(name, others, ..): &&(&str, &[&str], &str, &str)| *name == word || others.contains(&word);
    let name = COMMANDS.iter().find(found).map_or(word, |(name, ..)| name);
    let text = |text: String| Ok((Answer::Text(text), 1));
    let go = |command| Ok((Answer::Go(command), 1));
    let usage = || {
        let row = COMMANDS.iter().find(|(other, ..)| *other == name);
        row.map_or(String::new(), |(_, _, usage, meaning)| format!("{usage}: {meaning}"))
    };
    let focus = session.focus;
    match name {
        "" => text(String::new()),
        "help" | "h" => {
            let mut all = String::new();
            for (_, others, usage, meaning) in COMMANDS {
                let others =
                    if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
                let _ = writeln!(all, "{usage}{others}\n    {meaning}");
            }
            text(all + "An empty line repeats the last command.\n")
        }
        "break" => {
            if rest.is_empty() {
                return Err(usage());
            }
            let (place, condition) = match rest.split_once(" if ") {
                Some((place, condition)) => (place.trim(), Some(condition.trim())),
                None => (rest, None),
            };
            let id = session.break_at(place, condition)?;
            text(describe_breakpoint(session, id))
        }
        "watch" => {
            let id = session.watch(stop, focus, rest)?;
            text(format!("watch {id}: {rest} of {}\n", show::lane(stop, focus)))
        }
        "delete" if rest.is_empty() => {
            session.watches.clear();
            session.keep(|_| false);
            text("all breakpoints and watches are gone\n".to_owned())
        }
        "delete" => match rest.parse().is_ok_and(|id| session.delete(id)) {
            true => text(String::new()),
            false => Err(format!("there is no breakpoint or watch `{rest}`")),
        },
        "info" => {
            let ids: Vec<_> = session.breakpoints.iter().map(|breakpoint| breakpoint.id).collect();
            let mut all: String = ids.into_iter().map(|id| describe_breakpoint(session, id)).collect();
            for watch in &session.watches {
                let _ =
                    writeln!(all, "watch {}: {} of {}", watch.id, watch.text, show::lane(stop, watch.lane));
            }
            text(if all.is_empty() { "no breakpoints and no watches\n".to_owned() } else { all })
        }
        "continue" => go(Command::Forward(Step::Continue)),
        "step" => {
            let (step, count) = step(rest).filter(|(step, _)| *step != Step::Continue).ok_or_else(usage)?;
            Ok((Answer::Go(Command::Forward(step)), count))
        }
        "next" => Ok((Answer::Go(Command::Forward(Step::Over)), count(rest).ok_or_else(usage)?)),
        "finish" => go(Command::Forward(Step::Out)),
        "back" => {
            let (step, count) = step(rest).ok_or_else(usage)?;
            Ok((Answer::Go(Command::Backward(step)), count))
        }
        "rc" => go(Command::Backward(Step::Continue)),
        "goto" => go(Command::To(rest.parse().map_err(|_| usage())?)),
        "print" => {
            let expression = Expression::parse(rest)?;
            let value = session.evaluate(stop, focus, 0, &expression)?;
            text(format!("{rest} = {value}\n"))
        }
        "grid" => {
            let expression = Expression::parse(rest)?;
            text(show::grid(session, stop, focus.block, &expression))
        }
        "registers" => {
            let mut all = String::new();
            for (name, value) in show::registers(session, stop, focus, 0) {
                if name.starts_with(rest) {
                    let _ = writeln!(all, "{name:<8} {value}");
                }
            }
            text(if all.is_empty() { "no registers\n".to_owned() } else { all })
        }
        "memory" => text(memory(session, stop, rest)?),
        "lanes" => text(show::lanes(session, stop, focus.block)),
        "why" => text(show::divergence(session, stop, focus.block, focus.warp())),
        "where" => text(show::calls(session, stop, focus)),
        "list" => {
            let around = if rest.is_empty() { 5 } else { rest.parse().map_err(|_| usage())? };
            let place = session.place(stop, focus).ok_or("the lane is not running")?;
            text(show::listing(session, &place, around))
        }
        "focus" => {
            if !rest.is_empty() {
                let lane = find_lane(stop, focus, rest).ok_or_else(usage)?;
                if stop.status(lane.block, lane.thread).is_none() {
                    return Err(format!("block {:?} is not running", stop.launch().ctaid(lane.block)));
                }
                session.focus = lane;
            }
            text(show::here(session, stop))
        }
        "detach" => go(Command::Detach),
        "quit" => go(Command::Quit),
        _ => {
            let names = COMMANDS.iter().map(|(name, ..)| *name);
            let help = ptxvm::nearest(word, names)
                .map_or("`help` lists them".to_owned(), |near| format!("did you mean `{near}`?"));
            Err(format!("`{word}` is no command: {help}"))
        }
    }
}

/// `warp 3`: what a step advances, and how often.
fn step(text: &str) -> Option<(Step, u64)> {
    let mut words: Vec<_> = text.split_whitespace().collect();
    let count = match words.last().and_then(|word| word.parse().ok()) {
        Some(count) => {
            words.pop();
            count
        }
        None => 1,
    };
    let step = match words.as_slice() {
        [] | ["lane"] => Step::One(Unit::Lane),
        ["warp"] => Step::One(Unit::Warp),
        ["block"] => Step::One(Unit::Block),
        ["line"] => Step::Line,
        ["next"] => Step::Over,
        ["finish"] => Step::Out,
        ["continue"] => Step::Continue,
        _ => return None,
    };
    (count > 0).then_some((step, count))
}

fn count(text: &str) -> Option<u64> {
    if text.is_empty() { Some(1) } else { text.parse().ok().filter(|&count| count > 0) }
}

fn describe_breakpoint(session: &Session, id: u32) -> String {
    let Some(breakpoint) = session.breakpoints.iter().find(|breakpoint| breakpoint.id == id) else {
        return String::new();
    };
    let at = breakpoint.at.iter().map(|span| session.program.place(*span).short());
    let at = at.collect::<Vec<_>>().join(", ");
    let condition = breakpoint.condition.as_ref();
    let condition = condition.map_or(String::new(), |(text, _)| format!(" if {text}"));
    let hits = match breakpoint.hits {
        0 => String::new(),
        hits => format!(", met {hits} times"),
    };
    format!("breakpoint {id} at {at}{condition}{hits}\n")
}

/// `[SPACE] ADDRESS [COUNT] [TYPE]`
fn memory(session: &Session, stop: &mut Stop<'_, '_>, text: &str) -> Result<String, String> {
    let mut words: Vec<_> = text.split_whitespace().collect();
    let ty = words.last().and_then(|word| Type::from_name(word.trim_start_matches('.')));
    let ty = ty.filter(|ty| ty.bits() >= 8);
    if ty.is_some() {
        words.pop();
    }
    let ty = ty.unwrap_or(Type::B32);
    let count = words.last().and_then(|word| word.parse().ok()).filter(|_| words.len() > 1);
    if count.is_some() {
        words.pop();
    }
    let count = count.unwrap_or(8).clamp(1, 4096usize);
    let space = words.first().and_then(|word| expression::space(word));
    if space.is_some() {
        words.remove(0);
    }
    let address = Expression::parse(&words.join(" "))?;
    let lane = session.focus;
    let mut scope = Scope { program: &session.program, stop, lane, depth: 0 };
    let (space, start) = scope.memory(space.unwrap_or(Space::Generic), &address)?;
    let bytes = ty.bits().div_ceil(8) as usize;
    let per_line = (32 / bytes).clamp(1, 8);
    let mut shown = String::new();
    for (row, first) in (0..count).step_by(per_line).enumerate() {
        let at = start + (row * per_line * bytes) as u64;
        let here = per_line.min(count - first);
        let data = match stop.read(lane.block, lane.thread, space, at, here * bytes) {
            Ok(data) => data,
            Err(error) if row == 0 => return Err(error),
            Err(error) => {
                let _ = writeln!(shown, "{at:#x}: {error}");
                break;
            }
        };
        let values = data.chunks(bytes).map(|data| {
            let bits = data.iter().rev().fold(0, |bits, byte| bits << 8 | u128::from(*byte));
            Value::Bits(ty, bits).short()
        });
        let _ = writeln!(shown, "{at:#x}: {}", values.collect::<Vec<_>>().join("  "));
    }
    Ok(shown)
}

/// `5`, `3,0,0`, `3,0,0 in 1,0,0`
fn find_lane(stop: &Stop<'_, '_>, focus: Lane, text: &str) -> Option<Lane> {
    let launch = stop.launch();
    let triple = |text: &str| {
        let text = text.trim().trim_start_matches('(').trim_end_matches(')');
        let mut all = [0u32; 3];
        for (place, part) in all.iter_mut().zip(text.split(',')) {
            *place = part.trim().parse().ok()?;
        }
        Some(all)
    };
    let within = |at: [u32; 3], extents: [u32; 3]| at.iter().zip(extents).all(|(&at, extent)| at < extent);
    let config = launch.config();
    let (thread, block) = match text.split_once(" in ") {
        Some((thread, block)) => {
            (thread, launch.block_index(triple(block).filter(|&block| within(block, config.grid))?))
        }
        None => (text, focus.block),
    };
    let thread = match thread.trim().parse::<usize>() {
        // A lane of the warp.
        Ok(lane) if lane < WARP => focus.thread / WARP * WARP + lane,
        Ok(_) => return None,
        Err(_) => launch.thread_index(triple(thread).filter(|&thread| within(thread, config.block))?),
    };
    (thread < stop.threads()).then_some(Lane { block, thread })
}
