//! An adapter: answers the requests of an editor about a launch.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use ptxvm::PlaceInSource;
use ptxvm::debug::Stop;
use serde_json::{Value, json};

use super::variables::{self, Handle};
use super::{Editor, Incoming};
use crate::expression::Expression;
use crate::program::is_file;
use crate::session::{Command, Front, Session, Step, Unit, Why};
use crate::value::{Lane, WARP};
use crate::{show, terminal};

/// The user's side of a debugger, as an editor has it.
#[derive(Debug)]
pub struct Adapter<W> {
    requests: Receiver<Incoming>,
    editor: Editor<W>,
    /// The editor has said `configurationDone`: the launch may begin.
    is_configured: bool,
    /// What variables and frames of the editor are, until the launch goes on: their numbers count from 1.
    handles: Vec<Handle>,
    /// Breakpoints of each source, and of functions, which the editor always gives all at once.
    of_source: HashMap<String, Vec<u32>>,
    fault: Option<(String, String)>,
    /// Whether the first launch stops before its first turn.
    stops_at_entry: bool,
}

/// What a request leads to.
enum Served {
    Answer(Value),
    /// The launch goes on.
    Go(Command),
}

impl<W: Write> Adapter<W> {
    /// An adapter for a program whose `launch` has been answered. `stops_at_entry`: its first launch stops before its
    /// first turn.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn new(
        requests: Receiver<Incoming>,
        mut editor: Editor<W>,
        stops_at_entry: bool,
    ) -> io::Result<Adapter<W>> {
        editor.event("initialized", json!({}))?;
        Ok(Adapter {
            requests,
            editor,
            is_configured: false,
            handles: Vec::new(),
            of_source: HashMap::new(),
            fault: None,
            stops_at_entry,
        })
    }

    /// Answers requests until one lets the launch go on.
    fn serve_until_go(&mut self, session: &mut Session, stop: &mut Stop<'_, '_>) -> io::Result<Command> {
        loop {
            let Ok(request) = self.requests.recv() else { return Ok(Command::Quit) };
            if let Some(command) = self.serve(session, stop, request)? {
                return Ok(command);
            }
        }
    }

    fn serve(
        &mut self,
        session: &mut Session,
        stop: &mut Stop<'_, '_>,
        request: Incoming,
    ) -> io::Result<Option<Command>> {
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                let body = json!({"category": "stderr", "output": format!("{error}\n")});
                return self.editor.event("output", body).map(|()| None);
            }
        };
        match self.respond(session, stop, &request) {
            Ok(Served::Answer(body)) => self.editor.answer(&request, Ok(body)).map(|()| None),
            Ok(Served::Go(command)) => {
                self.editor.answer(&request, Ok(json!({"allThreadsContinued": true})))?;
                Ok(Some(command))
            }
            Err(error) => self.editor.answer(&request, Err(error)).map(|()| None),
        }
    }

    fn respond(
        &mut self,
        session: &mut Session,
        stop: &mut Stop<'_, '_>,
        request: &Value,
    ) -> Result<Served, String> {
        let arguments = &request["arguments"];
        let number = |name: &str| arguments[name].as_u64();
        let go = |command| Ok(Served::Go(command));
        let body = match request["command"].as_str().unwrap_or_default() {
            "configurationDone" => {
                self.is_configured = true;
                return match self.stops_at_entry {
                    // `stopped` says so.
                    true => Ok(Served::Answer(Value::Null)),
                    false => go(Command::Forward(Step::Continue)),
                };
            }
            "setBreakpoints" => self.set_breakpoints(session, arguments),
            "setFunctionBreakpoints" => self.set_function_breakpoints(session, arguments),
            "setExceptionBreakpoints" => json!({"breakpoints": []}),
            "dataBreakpointInfo" => self.data_breakpoint(session, arguments),
            "setDataBreakpoints" => set_data_breakpoints(session, stop, arguments),
            "threads" => threads(session, stop),
            "stackTrace" => {
                let lane = warp_lane(session, stop, number("threadId").unwrap_or(1));
                self.stack(session, stop, lane)
            }
            "scopes" => self.scopes(number("frameId").unwrap_or(0)),
            "variables" => {
                let handle = self.handle(number("variablesReference").unwrap_or(0)).cloned();
                let handle = handle.ok_or("these variables are of an earlier stop")?;
                let all = variables::of(session, stop, &handle, &mut |handle| {
                    self.handles.push(handle);
                    self.handles.len() as u64
                });
                json!({"variables": all})
            }
            "evaluate" => return self.evaluate(session, stop, arguments),
            "readMemory" => variables::memory(session, stop, arguments)?,
            "source" => {
                let index = number("sourceReference").or(arguments["source"]["sourceReference"].as_u64());
                let source =
                    index.and_then(|index| session.program.module().sources().nth(index as usize - 1));
                json!({"content": source.ok_or("no such source")?.text(), "mimeType": "text/x-ptx"})
            }
            "exceptionInfo" => {
                let (kind, message) = self.fault.clone().ok_or("no fault has stopped the launch")?;
                json!({"exceptionId": kind, "description": message, "breakMode": "always"})
            }
            "continue" => return go(Command::Forward(Step::Continue)),
            "reverseContinue" => return go(Command::Backward(Step::Continue)),
            command @ ("next" | "stepIn" | "stepOut" | "stepBack") => {
                session.focus = warp_lane(session, stop, number("threadId").unwrap_or(1));
                let by_lines = session.by_original_lines && arguments["granularity"] != "instruction";
                return go(match command {
                    "next" => Command::Forward(if by_lines { Step::LineOver } else { Step::Over }),
                    "stepIn" => Command::Forward(if by_lines { Step::Line } else { Step::One(Unit::Lane) }),
                    "stepOut" => Command::Forward(Step::Out),
                    _ => Command::Backward(if by_lines { Step::LineOver } else { Step::Over }),
                });
            }
            "pause" => {
                session.pause();
                Value::Null
            }
            "disconnect" => {
                let ends = arguments["terminateDebuggee"].as_bool().unwrap_or(true);
                return go(if ends { Command::Quit } else { Command::Detach });
            }
            "terminate" => return go(Command::Quit),
            other => return Err(format!("`{other}` is not supported")),
        };
        Ok(Served::Answer(body))
    }

    fn handle(&self, number: u64) -> Option<&Handle> {
        self.handles.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// All breakpoints of a source: the editor says all that there are.
    fn set_breakpoints(&mut self, session: &mut Session, arguments: &Value) -> Value {
        let source = &arguments["source"];
        let index = source["sourceReference"].as_u64().and_then(|index| (index as usize).checked_sub(1));
        let name = match index.and_then(|index| session.program.module().sources().nth(index)) {
            Some(source) => source.name().to_owned(),
            None => source["path"].as_str().or(source["name"].as_str()).unwrap_or_default().to_owned(),
        };
        let place = |wanted: &Value| format!("{name}:{}", wanted["line"].as_u64().unwrap_or(0));
        self.replace(session, &name, &arguments["breakpoints"], &place)
    }

    fn set_function_breakpoints(&mut self, session: &mut Session, arguments: &Value) -> Value {
        let name = |wanted: &Value| wanted["name"].as_str().unwrap_or_default().to_owned();
        self.replace(session, "", &arguments["breakpoints"], &name)
    }

    /// Sets breakpoints in place of those of a source, or of all functions if that has no name.
    fn replace(
        &mut self,
        session: &mut Session,
        source: &str,
        wanted: &Value,
        place: &dyn Fn(&Value) -> String,
    ) -> Value {
        let (mut ids, mut shown) = (Vec::new(), Vec::new());
        for wanted in wanted.as_array().into_iter().flatten() {
            let condition = wanted["condition"].as_str().filter(|condition| !condition.trim().is_empty());
            let place = place(wanted);
            shown.push(match session.break_at(&place, condition) {
                Ok(id) => {
                    ids.push(id);
                    let set = session.breakpoints.iter().find(|breakpoint| breakpoint.id == id);
                    let at = set.and_then(|set| set.at.first()).map(|span| session.program.place(*span));
                    // A line of the PTX may be another one; one of an original source stays what it is.
                    let at = at.filter(|at| source.is_empty() || is_file(at.source.name(), source));
                    let line = at.map_or(wanted["line"].clone(), |at| at.position().line.into());
                    json!({"id": id, "verified": true, "line": line})
                }
                Err(error) => json!({"verified": false, "message": error}),
            });
        }
        for id in self.of_source.insert(source.to_owned(), ids).unwrap_or_default() {
            session.delete(id);
        }
        json!({"breakpoints": shown})
    }

    fn data_breakpoint(&self, session: &Session, arguments: &Value) -> Value {
        let name = arguments["name"].as_str().unwrap_or_default();
        let lane = match arguments["variablesReference"].as_u64().and_then(|number| self.handle(number)) {
            Some(Handle::Registers { lane, .. }) => *lane,
            _ => session.focus,
        };
        match Expression::parse(name) {
            Ok(_) => json!({
                "dataId": format!("{}/{}/{name}", lane.block, lane.thread),
                "description": format!("{name} of thread {} in block {}", lane.thread, lane.block),
                "accessTypes": ["write"],
            }),
            Err(error) => json!({"dataId": null, "description": error}),
        }
    }

    fn stack(&mut self, session: &Session, stop: &mut Stop<'_, '_>, lane: Lane) -> Value {
        let mut frames = Vec::new();
        for depth in 0..stop.depth(lane.block, lane.thread) {
            let Some(call) = stop.call(lane.block, lane.thread, depth) else { continue };
            let place = call.instruction().map(|instruction| session.program.place(instruction.span));
            let name = ptxvm::short_name(&call.function().name);
            self.handles.push(Handle::Frame { lane, depth });
            let mut frame = json!({
                "id": self.handles.len(),
                "name": format!("{name} (lane {})", lane.index()),
                "line": 0,
                "column": 0,
            });
            if let Some(place) = place {
                let (source, line, column) = shown_place(session, &place);
                (frame["source"], frame["line"], frame["column"]) = (source, json!(line), json!(column));
            }
            frames.push(frame);
        }
        json!({"totalFrames": frames.len(), "stackFrames": frames})
    }

    fn scopes(&mut self, frame: u64) -> Value {
        let Some(&Handle::Frame { lane, depth }) = self.handle(frame) else { return json!({"scopes": []}) };
        let scopes = [
            ("Registers", Handle::Registers { lane, depth }, "registers", false),
            ("All lanes", Handle::Grid { lane, depth }, "registers", true),
            ("Special registers", Handle::Special { lane }, "registers", true),
            ("Parameters", Handle::Parameters { lane, depth }, "arguments", false),
        ];
        let scopes = scopes.map(|(name, handle, hint, expensive)| {
            self.handles.push(handle);
            let name = if hint == "registers" && name != "All lanes" {
                format!("{name} of lane {}", lane.index())
            } else {
                name.to_owned()
            };
            json!({"name": name, "variablesReference": self.handles.len(), "expensive": expensive, "presentationHint": hint})
        });
        json!({"scopes": scopes})
    }

    fn evaluate(
        &mut self,
        session: &mut Session,
        stop: &mut Stop<'_, '_>,
        arguments: &Value,
    ) -> Result<Served, String> {
        let text = arguments["expression"].as_str().unwrap_or_default();
        let frame = arguments["frameId"].as_u64().and_then(|number| self.handle(number)).cloned();
        let (lane, depth) = match frame {
            Some(Handle::Frame { lane, depth }) => (lane, depth),
            _ => (session.focus, 0),
        };
        let value = Expression::parse(text).and_then(|parsed| session.evaluate(stop, lane, depth, &parsed));
        if let Ok(value) = value {
            let mut body = json!({"result": value.to_string(), "variablesReference": 0});
            if let crate::value::Value::Bits(ty, bits) = value
                && ty.bits() == 64
            {
                body["memoryReference"] = json!(format!("{bits:#x}"));
            }
            return Ok(Served::Answer(body));
        }
        if arguments["context"] != "repl" {
            return value.map(|_| Served::Answer(Value::Null));
        }
        // A command of the terminal.
        session.focus = lane;
        Ok(match terminal::answer(session, stop, text)? {
            Ok(text) => Served::Answer(json!({"result": text.trim_end(), "variablesReference": 0})),
            Err(command) => Served::Go(command),
        })
    }

    /// Says that the launch has stopped, and serves until it goes on.
    fn stop(&mut self, session: &mut Session, stop: &mut Stop<'_, '_>, why: &Why) -> io::Result<Command> {
        while !self.is_configured {
            let Ok(request) = self.requests.recv() else { return Ok(Command::Quit) };
            if let Some(command) = self.serve(session, stop, request)? {
                return Ok(command);
            }
        }
        for breakpoint in &mut session.breakpoints {
            if let Some(error) = breakpoint.error.take() {
                let output = format!("breakpoint {}: {error}\n", breakpoint.id);
                self.editor.event("output", json!({"category": "console", "output": output}))?;
            }
        }
        self.handles.clear();
        self.fault = None;
        let mut body = json!({
            "threadId": thread_id(stop, session.focus),
            "allThreadsStopped": true,
        });
        // An editor shows it beside the warp, where there is room for a few words. It asks for the text of a fault.
        let description = show::reason(session, stop, why);
        if !description.is_empty() && !matches!(why, Why::Fault { .. }) {
            body["description"] = json!(description);
        }
        body["reason"] = json!(match why {
            Why::Begin => "entry",
            Why::Breakpoints(_) => "breakpoint",
            Why::Watch(..) => "data breakpoint",
            Why::Step | Why::Beginning => "step",
            Why::Pause => "pause",
            Why::Fault { .. } => "exception",
            // The launch has ended: only the way back is left, and an editor that has not gone there goes on.
            Why::End if !session.was_backward() => return Ok(Command::Forward(Step::Continue)),
            Why::End => "step",
        });
        if let Why::Breakpoints(ids) = why {
            body["hitBreakpointIds"] = json!(ids);
        }
        if let Why::Fault { kind, message } = why {
            self.fault = Some((kind.clone(), message.clone()));
            body["text"] = json!(kind);
            self.editor.event("output", json!({"category": "stderr", "output": message}))?;
        }
        self.editor.event("stopped", body)?;
        self.serve_until_go(session, stop)
    }
}

impl<W: Write> Front for Adapter<W> {
    fn stopped(&mut self, session: &mut Session, stop: &mut Stop<'_, '_>, why: &Why) -> Command {
        // An editor that is gone wants nothing more.
        self.stop(session, stop, why).unwrap_or(Command::Quit)
    }

    fn running(&mut self, session: &mut Session, stop: &mut Stop<'_, '_>) -> Option<Command> {
        match self.requests.try_recv() {
            Ok(request) => self.serve(session, stop, request).unwrap_or(Some(Command::Quit)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Command::Quit),
        }
    }
}

/// The number of the warp of a lane among the warps of the grid, from 1.
fn thread_id(stop: &Stop<'_, '_>, lane: Lane) -> u64 {
    let warps = stop.threads().div_ceil(WARP) as u64;
    lane.block * warps + lane.warp() as u64 + 1
}

/// The lane that stands for a warp: the one in focus, one whose turn it is, or the first that lives.
fn warp_lane(session: &Session, stop: &Stop<'_, '_>, id: u64) -> Lane {
    let warps = stop.threads().div_ceil(WARP) as u64;
    let (block, warp) = ((id.max(1) - 1) / warps, ((id.max(1) - 1) % warps) as usize);
    if session.focus.block == block && session.focus.warp() == warp {
        return session.focus;
    }
    if let Some((of, turn)) = stop.turn()
        && of == block
        && turn.warp == warp
    {
        return Lane { block, thread: warp * WARP + turn.lanes.trailing_zeros() as usize };
    }
    let mut threads = warp * WARP..stop.threads().min((warp + 1) * WARP);
    let thread = threads.find(|&thread| stop.depth(block, thread) > 0);
    Lane { block, thread: thread.unwrap_or(warp * WARP) }
}

/// The warps of the blocks that are running.
fn threads(session: &Session, stop: &mut Stop<'_, '_>) -> Value {
    let mut all = Vec::new();
    let warps = stop.threads().div_ceil(WARP);
    for block in stop.blocks().collect::<Vec<_>>() {
        for warp in 0..warps {
            let lane = Lane { block, thread: warp * WARP };
            let [x, y, z] = stop.launch().ctaid(block);
            all.push(
                json!({"id": thread_id(stop, lane), "name": format!("block ({x},{y},{z}) warp {warp}")}),
            );
        }
    }
    if all.is_empty() {
        // The protocol wants one.
        all.push(json!({"id": thread_id(stop, session.focus), "name": "the kernel has ended"}));
    }
    json!({"threads": all})
}

/// A place as the editor shows it: its source, line and column.
fn shown_place(session: &Session, place: &PlaceInSource) -> (Value, u64, u64) {
    if let Some(original) = place.original.as_ref().filter(|_| session.by_original_lines) {
        let name = original.file.rsplit(['/', '\\']).next().unwrap_or_default();
        return (json!({"name": name, "path": original.file}), original.line, original.column.max(1));
    }
    let (path, position) = (place.source.name(), place.position());
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let source = match std::path::absolute(path).ok().filter(|_| Path::new(path).is_file()) {
        Some(path) => json!({"name": name, "path": path}),
        // PTX that is in no file: the editor asks for its text.
        None => {
            let mut sources = session.program.module().sources();
            let index = sources.position(|source| Arc::ptr_eq(source, &place.source));
            json!({"name": name, "path": path, "sourceReference": index.map_or(0, |index| index + 1)})
        }
    };
    (source, position.line.into(), position.column.into())
}

fn set_data_breakpoints(session: &mut Session, stop: &Stop<'_, '_>, arguments: &Value) -> Value {
    session.watches.clear();
    let wanted = arguments["breakpoints"].as_array().cloned().unwrap_or_default();
    let set: Vec<_> = wanted
        .iter()
        .map(|wanted| {
            let mut parts = wanted["dataId"].as_str().unwrap_or_default().splitn(3, '/');
            let mut number = || parts.next()?.parse::<u64>().ok();
            let lane = match (number(), number()) {
                (Some(block), Some(thread)) => Lane { block, thread: thread as usize },
                _ => session.focus,
            };
            match session.watch(stop, lane, parts.next().unwrap_or_default()) {
                Ok(id) => json!({"id": id, "verified": true}),
                Err(error) => json!({"verified": false, "message": error}),
            }
        })
        .collect();
    json!({"breakpoints": set})
}
