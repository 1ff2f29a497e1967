//! One block of a launch, recorded turn by turn: what each thread was doing, where it stood, what its registers held, and
//! where lanes of a warp went apart.

use ptxvm::debug::{Debugger, Function, Next, RegId, Status, Stop};
use ptxvm::{Fault, Module};
use serde_json::{Value, json};

use super::array::DType;

/// Turns of the block that are recorded.
const MOST_TURNS: usize = 20_000;
/// Changes of registers, places and states that are recorded.
const MOST_CHANGES: usize = 4_000_000;
/// Turns of other blocks before the block has begun.
const MOST_OTHER_TURNS: u64 = 2_000_000;

/// A turn: an instruction that lanes of a warp executed together.
#[derive(Clone, Debug)]
struct Recorded {
    line: u32,
    warp: usize,
    lanes: u32,
}

/// What a thread has from the end of a turn on.
#[derive(Clone, Copy, Debug)]
struct Change<T> {
    /// How many turns have been taken.
    time: u32,
    thread: u32,
    now: T,
}

/// Where lanes of a warp are apart from the end of a turn on.
#[derive(Debug)]
struct Apart {
    time: u32,
    warp: usize,
    /// The line of each branch, and the lanes of its ways.
    branches: Vec<(u32, Vec<u32>)>,
}

/// Records a block of a launch.
#[derive(Debug)]
pub struct Recording {
    module: Module,
    block: u64,
    threads: usize,
    /// By register of the kernel: its name and type.
    registers: Vec<(String, ptxvm::debug::Type)>,
    turns: Vec<Recorded>,
    states: Vec<Change<&'static str>>,
    places: Vec<Change<u32>>,
    apart: Vec<Apart>,
    /// By register.
    values: Vec<Vec<Change<u128>>>,
    changes: usize,
    /// What the threads had at the last stop.
    last: Last,
    /// Why the recording ends before the block does.
    cut: Option<String>,
}

#[derive(Debug, Default)]
struct Last {
    states: Vec<&'static str>,
    places: Vec<u32>,
    /// By thread, then by register.
    values: Vec<Vec<u128>>,
    apart: Vec<Vec<(u32, Vec<u32>)>>,
}

fn name(status: Option<Status>) -> &'static str {
    match status {
        Some(Status::Ready) => "ready",
        Some(Status::Barrier(_)) => "barrier",
        Some(Status::Cluster) => "cluster barrier",
        Some(Status::Grid) => "grid barrier",
        Some(Status::Warp) => "warp",
        Some(Status::Mbarrier) => "mbarrier",
        Some(Status::Ended) | None => "ended",
    }
}

impl Recording {
    /// Records this block, which has so many threads, of a launch of a kernel of the module.
    pub fn new(module: &Module, kernel: &Function, block: u64, threads: usize) -> Recording {
        let registers: Vec<_> = kernel.body.iter().flat_map(|body| &body.registers).collect();
        let warps = threads.div_ceil(32);
        Recording {
            module: module.clone(),
            block,
            threads,
            registers: registers.iter().map(|register| (register.name.clone(), register.ty)).collect(),
            turns: Vec::new(),
            states: Vec::new(),
            places: Vec::new(),
            apart: Vec::new(),
            values: vec![Vec::new(); registers.len()],
            changes: 0,
            last: Last {
                states: vec!["ready"; threads],
                places: vec![0; threads],
                values: vec![vec![0; registers.len()]; threads],
                apart: vec![Vec::new(); warps],
            },
            cut: None,
        }
    }

    fn line(&self, span: ptxvm::debug::Span) -> u32 {
        let (index, span) = self.module.locate(span);
        self.module.sources().nth(index).map_or(0, |source| source.position(span.start).line)
    }

    /// Notes what has changed since the last stop. New places and values have only the lanes of the last turn, and threads
    /// that it has woken: they may have got a result for which they had waited.
    fn note(&mut self, stop: &Stop<'_, '_>) {
        let time = self.turns.len() as u32;
        for thread in 0..self.threads {
            let now = name(stop.status(self.block, thread));
            if std::mem::replace(&mut self.last.states[thread], now) != now {
                self.states.push(Change { time, thread: thread as u32, now });
                self.changes += 1;
                self.note_thread(stop, time, thread);
            }
        }
        let Some(Recorded { warp, lanes, .. }) = self.turns.last().cloned() else {
            for thread in 0..self.threads {
                self.note_thread(stop, time, thread);
            }
            return;
        };
        for lane in (0..32).filter(|lane| lanes >> lane & 1 != 0) {
            self.note_thread(stop, time, 32 * warp + lane);
        }
        let branches = stop.divergences(self.block, warp).iter();
        let branches: Vec<_> = branches.map(|one| (self.line(one.span), one.ways.clone())).collect();
        if self.last.apart[warp] != branches {
            self.last.apart[warp] = branches.clone();
            self.apart.push(Apart { time, warp, branches });
        }
    }

    fn note_thread(&mut self, stop: &Stop<'_, '_>, time: u32, thread: usize) {
        if thread >= self.threads {
            return;
        }
        let Some(depth) = stop.depth(self.block, thread).checked_sub(1) else { return };
        let innermost = stop.call(self.block, thread, 0);
        let line = innermost.and_then(|call| call.instruction()).map_or(0, |next| self.line(next.span));
        if line != 0 && self.last.places[thread] != line {
            self.last.places[thread] = line;
            self.places.push(Change { time, thread: thread as u32, now: line });
            self.changes += 1;
        }
        // The outermost call is the kernel.
        let Some(kernel) = stop.call(self.block, thread, depth) else { return };
        for (register, last) in self.last.values[thread].iter_mut().enumerate() {
            let now = kernel.register(RegId(register as u32));
            if std::mem::replace(last, now) != now {
                self.values[register].push(Change { time, thread: thread as u32, now });
                self.changes += 1;
            }
        }
    }

    /// What the page needs once: `threads`, `turns`, `registers` with `name` and `type`, and why the recording was `cut`.
    pub fn summary(&self) -> Value {
        let registers = self.registers.iter().map(|(name, ty)| json!({ "name": name, "type": ty.name() }));
        json!({
            "threads": self.threads,
            "turns": self.turns.len(),
            "registers": registers.collect::<Vec<_>>(),
            "cut": self.cut,
        })
    }

    /// The block when so many turns had been taken: the `turn` that came next (`line`, `warp`, `lanes`), the `states` and
    /// `lines` of its threads, where lanes of warps are `apart`, and the `values` of a register, as text and as shades
    /// from 0 (the least) to 255. `ty` is the type that its bits are read as, if not its own.
    pub fn at(&self, time: usize, register: Option<&str>, ty: Option<&str>) -> Value {
        let turn = self.turns.get(time);
        let until = time as u32;
        let states = latest(&self.states, until, "ready", self.threads);
        let lines = latest(&self.places, until, 0, self.threads);
        let mut apart = vec![&[][..]; self.threads.div_ceil(32)];
        for one in self.apart.iter().take_while(|one| one.time <= until) {
            apart[one.warp] = &one.branches;
        }
        let apart = apart.iter().enumerate().flat_map(|(warp, branches)| {
            branches.iter().map(move |(line, ways)| json!({ "warp": warp, "line": line, "ways": ways }))
        });
        let found = register.and_then(|name| self.registers.iter().position(|(known, _)| known == name));
        let values = found.map(|register| self.shown(register, until, ty));
        json!({
            "time": time,
            "turn": turn.map(|turn| json!({ "line": turn.line, "warp": turn.warp, "lanes": turn.lanes })),
            "states": states,
            "lines": lines,
            "apart": apart.collect::<Vec<_>>(),
            "values": values.as_ref().map(|(texts, _)| texts),
            "shades": values.as_ref().map(|(_, shades)| shades),
        })
    }

    /// The values of a register, as text and as shades.
    fn shown(&self, register: usize, until: u32, ty: Option<&str>) -> (Vec<String>, Vec<u8>) {
        let declared = self.registers[register].1;
        let bits = latest(&self.values[register], until, 0, self.threads);
        let dtype = DType::from_name(ty.unwrap_or(declared.name()))
            .filter(|dtype| 8 * dtype.bytes() as u32 <= declared.bits().max(8));
        let Some(dtype) = dtype else {
            let hex = |bits: &u128| match declared.name() {
                "pred" => (*bits != 0).to_string(),
                _ => format!("{bits:#x}"),
            };
            return (bits.iter().map(hex).collect(), shades(bits.iter().map(|&bits| bits as f64)));
        };
        let bytes = |bits: &u128| bits.to_le_bytes()[..dtype.bytes()].to_vec();
        let texts = bits.iter().map(|bits| dtype.show(&bytes(bits))).collect();
        (texts, shades(bits.iter().map(|bits| dtype.to_f64(&bytes(bits)))))
    }
}

/// What each thread had at a time.
fn latest<T: Copy>(changes: &[Change<T>], until: u32, first: T, threads: usize) -> Vec<T> {
    let mut now = vec![first; threads];
    for change in changes.iter().take_while(|change| change.time <= until) {
        now[change.thread as usize] = change.now;
    }
    now
}

/// Values between the least and the greatest as 0 to 255.
fn shades(values: impl Iterator<Item = f64> + Clone) -> Vec<u8> {
    let finite = || values.clone().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let scale = if high > low { 255.0 / (high - low) } else { 0.0 };
    values.map(|value| ((value - low) * scale).round() as u8).collect()
}

impl Debugger for Recording {
    fn turn(&mut self, stop: &mut Stop<'_, '_>) -> Next {
        let is_recorded = !self.turns.is_empty();
        if is_recorded && !stop.blocks().any(|block| block == self.block) {
            self.note(stop);
            return Next::Quit;
        }
        let Some((block, turn)) = stop.turn() else { return Next::Go };
        if block != self.block {
            if stop.time() > MOST_OTHER_TURNS {
                self.cut = Some("the block did not begin within the turns that others get".to_owned());
                return Next::Quit;
            }
            return Next::Go;
        }
        self.note(stop);
        if self.turns.len() >= MOST_TURNS || self.changes >= MOST_CHANGES {
            self.cut = Some(format!("only the first {} turns are recorded", self.turns.len()));
            return Next::Quit;
        }
        let line = stop.instruction().map(|next| self.line(next.span));
        self.turns.push(Recorded { line: line.unwrap_or(0), warp: turn.warp, lanes: turn.lanes });
        Next::Go
    }

    fn fault(&mut self, stop: &mut Stop<'_, '_>, fault: &Fault) -> Next {
        self.note(stop);
        self.cut = Some(format!("{}, in line {}", fault.kind, self.line(fault.span)));
        Next::Quit
    }

    fn end(&mut self, stop: &mut Stop<'_, '_>) -> Next {
        self.note(stop);
        Next::Go
    }
}
