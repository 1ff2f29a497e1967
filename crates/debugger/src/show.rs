//! What a stopped launch looks like, as text.

use std::fmt::Write;
use std::sync::Arc;

use ptxvm::PlaceInSource;
use ptxvm::debug::{RegId, Status, Stop};

use crate::expression::Expression;
use crate::session::{Session, Why};
use crate::value::{Lane, Value, WARP};

/// `thread (5,0,0) of block (0,0,0)`, with warp and lane where a block has more than one warp.
pub fn lane(stop: &Stop<'_, '_>, lane: Lane) -> String {
    let launch = stop.launch();
    let place = match stop.threads() > WARP {
        true => format!(", warp {} lane {}", lane.warp(), lane.index()),
        false => String::new(),
    };
    let block = launch.ctaid(lane.block);
    ptxvm::observed::who(block, lane.thread as u32, launch.config().block) + &place
}

/// The lanes of a mask: `0-7, 12`.
pub fn mask(mask: u32) -> String {
    let mut text = String::new();
    let mut lane = 0;
    while lane < 32 {
        if mask >> lane & 1 == 0 {
            lane += 1;
            continue;
        }
        let run = (mask >> lane).trailing_ones();
        let comma = if text.is_empty() { "" } else { ", " };
        let last = lane + run - 1;
        let _ = if run == 1 { write!(text, "{comma}{lane}") } else { write!(text, "{comma}{lane}-{last}") };
        lane += run;
    }
    text
}

/// `1 lane`, `5 lanes`
fn lanes_of(mask: u32) -> String {
    let count = mask.count_ones();
    if count == 1 { "1 lane".to_owned() } else { format!("{count} lanes") }
}

/// What a thread is doing, if it does not just run.
pub fn status(status: Option<Status>) -> Option<String> {
    Some(match status {
        Some(Status::Ready) => return None,
        Some(Status::Barrier(index)) => format!("waits at barrier {index}"),
        Some(Status::Cluster) => "waits at the barrier of its cluster".to_owned(),
        Some(Status::Grid) => "waits at the barrier of the grid".to_owned(),
        Some(Status::Warp) => "waits for other lanes of its warp".to_owned(),
        Some(Status::Mbarrier) => "waits at an mbarrier object".to_owned(),
        Some(Status::Ended) => "has ended".to_owned(),
        None => "is not running".to_owned(),
    })
}

/// Lines of a source around one, marked: `=>` the line, `*` a breakpoint.
pub fn listing(session: &Session, place: &PlaceInSource, around: u32) -> String {
    let mut text = String::new();
    let broken = |line| {
        let mut spans = session.breakpoints.iter().flat_map(|breakpoint| &breakpoint.at);
        spans.any(|span| {
            let other = session.program.place(*span);
            Arc::ptr_eq(&other.source, &place.source) && other.position().line == line
        })
    };
    let here = place.position().line;
    let last = here.saturating_add(around).min(place.source.line_count());
    for line in here.saturating_sub(around).max(1)..=last {
        let source = place.source.slice(place.source.line_span(line)).trim_end();
        let arrow = if line == here { "=>" } else { "  " };
        let mark = if broken(line) { '*' } else { ' ' };
        let _ = writeln!(text, "{arrow}{mark}{line:>5} | {source}");
    }
    text
}

/// Why the launch has stopped, who is where, and the line of the source.
pub fn stopped(session: &Session, stop: &mut Stop<'_, '_>, why: &Why) -> String {
    let mut text = reason(session, stop, why);
    if !text.is_empty() {
        text.push('\n');
    }
    if *why != Why::End {
        text += &here(session, stop);
    }
    text
}

/// Why the launch has stopped. A step and the beginning say nothing of themselves.
pub fn reason(session: &Session, stop: &Stop<'_, '_>, why: &Why) -> String {
    match why {
        Why::Begin | Why::Step => String::new(),
        Why::Breakpoints(ids) => {
            let ids: Vec<_> = ids.iter().map(u32::to_string).collect();
            format!("breakpoint {}", ids.join(", "))
        }
        Why::Watch(id, before, now) => {
            let watch = session.watches.iter().find(|watch| watch.id == *id);
            let value =
                |value: &Option<Value>| value.map_or("no value".to_owned(), |value| value.to_string());
            let name = watch.map_or("", |watch| &watch.text);
            let whose = watch.map_or(String::new(), |watch| lane(stop, watch.lane));
            format!("watch {id}: {name} of {whose}: {} -> {}", value(before), value(now))
        }
        Why::Pause => "paused".to_owned(),
        Why::Beginning => "the beginning of the launch".to_owned(),
        Why::Fault { message, .. } => message.trim_end().to_owned(),
        Why::End => {
            format!("the kernel has ended after {} turns: `back` goes back, `continue` ends", stop.time())
        }
    }
}

/// Where the lane in focus is, and who is with it.
pub fn here(session: &Session, stop: &mut Stop<'_, '_>) -> String {
    let focus = session.focus;
    let mut text = lane(stop, focus);
    let place = session.place(stop, focus);
    if let Some(place) = &place {
        let _ = write!(text, ", {}", place.short());
    }
    let state = status(stop.status(focus.block, focus.thread));
    let turn = stop.turn().filter(|(block, turn)| *block == focus.block && turn.warp == focus.warp());
    match (state, turn) {
        // After a fault nobody runs.
        _ if stop.turn().is_none() => {}
        (Some(state), _) => {
            let _ = write!(text, ": {state}");
        }
        (None, Some((_, turn))) if turn.lanes >> focus.index() & 1 != 0 => {
            let _ = write!(text, ", with {}: {}", lanes_of(turn.lanes), mask(turn.lanes));
        }
        (None, _) => text += ": ready, others run first",
    }
    text.push('\n');
    if let Some(place) = place {
        text += &listing(session, &place, 0);
    }
    text
}

/// What each lane of a block is doing, and where.
pub fn lanes(session: &Session, stop: &mut Stop<'_, '_>, block: u64) -> String {
    let next = stop.turn().filter(|(of, _)| *of == block).map(|(_, turn)| turn);
    let mut text = format!("block {:?}, time {}\n", stop.launch().ctaid(block), stop.time());
    for warp in 0..stop.threads().div_ceil(WARP) {
        let threads =
            (warp * WARP..stop.threads().min((warp + 1) * WARP)).map(|thread| Lane { block, thread });
        // Lanes that are at one place, doing the same.
        let mut groups: Vec<(String, u32)> = Vec::new();
        let mut row = String::new();
        for lane in threads {
            let state = stop.status(block, lane.thread);
            let is_next = next.is_some_and(|turn| turn.warp == warp && turn.lanes >> lane.index() & 1 != 0);
            row.push(match state {
                Some(Status::Ready) if is_next => '>',
                Some(Status::Ready) => '.',
                Some(Status::Ended) | None => ' ',
                Some(_) => 'w',
            });
            let place = session.place(stop, lane);
            let place = place.map_or(String::new(), |place| place.short());
            let what = match (status(state), is_next) {
                (Some(state), _) => format!("{place} {state}"),
                (None, true) => format!("{place} next"),
                (None, false) => place,
            };
            match groups.iter_mut().find(|(other, _)| *other == what) {
                Some((_, mask)) => *mask |= 1 << lane.index(),
                None => groups.push((what, 1 << lane.index())),
            }
        }
        let _ = writeln!(text, "warp {warp:>2} |{row}|");
        for (what, lanes) in groups {
            let _ = writeln!(text, "        {}: {}", mask(lanes), what.trim());
        }
    }
    text
}

/// The values of an expression in all lanes of a block, eight a line.
pub fn grid(session: &Session, stop: &mut Stop<'_, '_>, block: u64, expression: &Expression) -> String {
    let values: Vec<_> = (0..stop.threads())
        .map(|thread| match session.evaluate(stop, Lane { block, thread }, 0, expression) {
            Ok(value) => value.short(),
            Err(_) => "-".to_owned(),
        })
        .collect();
    let width = values.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for (row, values) in values.chunks(8).enumerate() {
        let first = row * 8;
        let values: Vec<_> = values.iter().map(|value| format!("{value:>width$}")).collect();
        let _ = writeln!(text, "{first:>5}: {}", values.join("  "));
    }
    text
}

/// The registers of a call of a lane, in the order of their declaration, with their values.
pub fn registers(session: &Session, stop: &Stop<'_, '_>, lane: Lane, depth: usize) -> Vec<(String, Value)> {
    let Some(call) = stop.call(lane.block, lane.thread, depth) else { return Vec::new() };
    let known = session.program.registers(call.function(), call.body());
    let all = call.body().registers.iter().enumerate().map(|(index, register)| {
        let id = RegId(index as u32);
        (register.name.clone(), Value::Bits(known.ty(id), call.register(id)))
    });
    all.collect()
}

/// The active calls of a lane, the innermost first.
pub fn calls(session: &Session, stop: &Stop<'_, '_>, lane: Lane) -> String {
    let mut text = String::new();
    for depth in 0..stop.depth(lane.block, lane.thread) {
        let Some(call) = stop.call(lane.block, lane.thread, depth) else { continue };
        let place = call.instruction().map(|instruction| session.program.place(instruction.span));
        let place = place.map_or("the end".to_owned(), |place| place.short());
        let _ = writeln!(text, "#{depth} {} at {place}", ptxvm::short_name(&call.function().name));
    }
    text
}

/// Why lanes of a warp are apart.
pub fn divergence(session: &Session, stop: &mut Stop<'_, '_>, block: u64, warp: usize) -> String {
    let mut text = String::new();
    for divergence in stop.divergences(block, warp).to_vec() {
        let place = session.program.place(divergence.span);
        let instruction = place.text();
        let _ = writeln!(
            text,
            "{} `{instruction}`, turn {}: lanes went different ways and have not met again",
            place.short(),
            divergence.time
        );
        for way in &divergence.ways {
            let lowest = Lane { block, thread: warp * WARP + way.trailing_zeros() as usize };
            let now = match session.place(stop, lowest) {
                Some(place) => format!("now at {}", place.short()),
                None => "they have ended".to_owned(),
            };
            let state = status(stop.status(block, lowest.thread)).filter(|_| now.starts_with("now"));
            let state = state.map_or(String::new(), |state| format!(", {state}"));
            let _ = writeln!(text, "    lanes {}: {now}{state}", mask(*way));
        }
    }
    if text.is_empty() { format!("the lanes of warp {warp} are together\n") } else { text }
}

#[cfg(test)]
mod tests {
    #[test]
    fn masks_are_ranges() {
        for (mask, text) in
            [(0, ""), (1, "0"), (0xff, "0-7"), (u32::MAX, "0-31"), (0x8000_1003, "0-1, 12, 31")]
        {
            assert_eq!(super::mask(mask), text);
        }
    }
}
