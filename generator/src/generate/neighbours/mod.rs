//! Combinations that optimisations join: an instruction with the ones just before and after it.
//!
//! A *neighbourhood* is one instruction of the table with a kind of sources ([`Source`]) and a kind of destinations
//! ([`Target`]). Values between these instructions have no other use. Memory belongs to the thread, or is not
//! written.

mod access;
mod places;
mod results;
mod values;

use isa::enumerate::Spelling;

use super::{Generator, Place};
use crate::catalog::{AccessForm, slots};
use crate::program::Stmt;
use crate::walk::Step;
use places::Cell;

/// Where an instruction's sources come from. For a load: how its address is computed, and what was done to its memory
/// just before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Registers written long before, and literals.
    Register,
    /// Loaded just before from memory that interleaves the elements of adjacent threads. For a load: stored just
    /// before.
    Loaded,
    /// Loaded just before; the elements are narrower than the registers.
    Narrow,
    /// Elements of vectors that were loaded just before.
    Vector,
    /// Loaded just before from the same address in all threads.
    Alike,
    /// Loaded just before from each thread's own memory, which is contiguous: a stride between threads.
    Strided,
    /// Loaded just before from other memory, and from addresses without a pattern.
    Elsewhere,
    /// Numbers with a constant step from thread to thread.
    Steps,
    /// The same number in all threads (uniform).
    Same,
    /// Copies of registers that are overwritten afterwards.
    Copied,
    /// Packed from halves, or unpacked halves.
    Packed,
}

impl Source {
    /// All sources.
    pub const ALL: [Source; 11] = [
        Source::Register,
        Source::Loaded,
        Source::Narrow,
        Source::Vector,
        Source::Alike,
        Source::Strided,
        Source::Elsewhere,
        Source::Steps,
        Source::Same,
        Source::Copied,
        Source::Packed,
    ];
}

/// Where an instruction's results go. For a store: where it stores, and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// Registers that remain live.
    Register,
    /// Stored just after to memory that interleaves the elements of adjacent threads.
    Stored,
    /// Stored just after to the memory that a source was loaded from: to the same bytes, or to some of them.
    InPlace,
    /// Stored, and read again.
    ReadAgain,
    /// Stored; the elements are narrower than the registers.
    Low,
    /// An element of a vector that is stored just after, to the memory of the sources if they were loaded.
    Vector,
    /// Stored to each thread's own memory.
    Strided,
    /// Stored to other memory, and to addresses without a pattern.
    Elsewhere,
    /// Not used.
    Unread,
    /// Copied.
    Copied,
    /// Used by the branch that follows.
    Branch,
}

impl Target {
    /// All targets.
    pub const ALL: [Target; 11] = [
        Target::Register,
        Target::Stored,
        Target::InPlace,
        Target::ReadAgain,
        Target::Low,
        Target::Vector,
        Target::Strided,
        Target::Elsewhere,
        Target::Unread,
        Target::Copied,
        Target::Branch,
    ];
}

/// The surroundings of neighbourhoods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Around {
    /// All threads execute them once.
    Straight,
    /// All threads execute them repeatedly.
    Loop,
    /// Some threads execute them, depending on their values.
    Branch,
    /// Few threads of many warps execute them.
    FewLanes,
    /// The instruction in the middle has a guard.
    Guard,
    /// All threads of some blocks execute them.
    Blocks,
}

impl Around {
    /// All surroundings.
    pub const ALL: [Around; 6] =
        [Around::Straight, Around::Loop, Around::Branch, Around::FewLanes, Around::Guard, Around::Blocks];
}

/// The instruction in the middle.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// A pure one.
    Pure(&'a Spelling),
    /// A load or a store.
    Access(&'a AccessForm),
}

/// A neighbourhood while it is generated.
struct Hood {
    source: Source,
    target: Target,
    /// The lines so far.
    text: String,
    /// The number of registers in use, by kind.
    taken: [usize; 8],
    /// The cells that sources were loaded from.
    cells: Vec<Cell>,
    /// Loads access parts of cells that have at least this number of bytes.
    least_cell: usize,
    /// The guard of the instruction in the middle.
    guard: String,
}

/// Registers of each kind that are reserved for neighbourhoods.
pub(super) const OWN_REGISTERS: usize = 64;
/// Their kinds: predicates, 8, 16, 32, 64 and 128 bits, addresses of 64 and 32 bits.
const KINDS: [&str; 8] = ["%np", "%nb", "%nh", "%nr", "%nd", "%nq", "%na", "%nc"];

impl Hood {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text += line.as_ref();
        self.text.push('\n');
    }

    fn take(&mut self, kind: usize) -> String {
        let number = self.taken[kind] % OWN_REGISTERS;
        self.taken[kind] += 1;
        format!("{}{number}", KINDS[kind])
    }

    /// A register of `bits` bits that nothing else in the neighbourhood uses.
    fn fresh(&mut self, bits: u32) -> String {
        self.take(match bits {
            1 => 0,
            2..=8 => 1,
            9..=16 => 2,
            17..=32 => 3,
            33..=64 => 4,
            _ => 5,
        })
    }

    /// A new register of `bits` bits for an address.
    fn address(&mut self, bits: u32) -> String {
        self.take(if bits == 64 { 6 } else { 7 })
    }
}

impl Generator<'_, '_> {
    /// Declarations of the registers that neighbourhoods use.
    pub(super) fn own_registers(&self) -> String {
        let mut text = String::new();
        for (kind, ty) in KINDS.iter().zip(["pred", "b8", "b16", "b32", "b64", "b128", "b64", "b32"]) {
            if ty != "b128" || self.has_quads() {
                text += &format!(".reg .{ty} {kind}<{OWN_REGISTERS}>;\n");
            }
        }
        text
    }

    /// The statements for steps of the walk, and those of the steps that exist.
    pub(super) fn steps(&mut self, around: Around, steps: &[Step]) -> (Vec<Stmt>, Vec<Step>) {
        let place = Place { whole_block: false, ..Place::kernel() };
        let (mut body, mut made) = (Vec::new(), Vec::new());
        for step in steps {
            for _ in 0..40 {
                let dialect = self.dialect;
                let guard = if around == Around::Guard { self.guard(100) } else { String::new() };
                let Some(subject) = step.middle.subject(dialect, self.random) else { break };
                if let Some(text) = self.neighbourhood(subject, step.source, step.target, guard, &place) {
                    body.push(Stmt::text(text));
                    made.push(*step);
                    break;
                }
            }
        }
        (self.around(around, body), made)
    }

    /// Puts statements into surroundings.
    fn around(&mut self, around: Around, body: Vec<Stmt>) -> Vec<Stmt> {
        let (start, end, p) = (self.label(), self.label(), self.predicate());
        let (head, bottom) = match around {
            Around::Straight | Around::Guard => return body,
            Around::Loop => (
                format!("mov.u32 %c1, {};\n{start}:", 2 + self.random.below(3)),
                format!("sub.s32 %c1, %c1, 1;\nsetp.gt.s32 %tp, %c1, 0;\n@%tp bra {start};"),
            ),
            Around::Branch => (format!("@{p} bra {end};"), format!("{end}:")),
            Around::FewLanes => {
                let (every, which) = (*self.random.pick(&[3, 5, 16, 17]), self.random.below(3));
                let head = format!(
                    "rem.u32 %tc, %thread, {every};\nsetp.ne.u32 %tp, %tc, {which};\n@%tp bra {end};"
                );
                (head, format!("{end}:"))
            }
            Around::Blocks => {
                let head = format!("and.b32 %tc, %block, 1;\nsetp.eq.u32 %tp, %tc, 1;\n@%tp bra.uni {end};");
                (head, format!("{end}:"))
            }
        };
        vec![Stmt::Nest { head, arms: vec![(body, bottom)] }]
    }

    /// Any instruction with any neighbours; several of them if few threads are active, so that their registers have
    /// compacted lanes.
    pub(super) fn neighbours(&mut self, place: &Place) -> Option<Stmt> {
        if place.depth < super::DEPTH && self.random.percent(8) {
            let body = (0..5).filter_map(|_| self.any_neighbourhood(place)).collect();
            return self.around(Around::FewLanes, body).pop();
        }
        self.any_neighbourhood(place)
    }

    fn any_neighbourhood(&mut self, place: &Place) -> Option<Stmt> {
        let dialect = self.dialect;
        let (source, target) = (*self.random.pick(&Source::ALL), *self.random.pick(&Target::ALL));
        let subject = match self.random.percent(60) || dialect.accesses.is_empty() {
            true => {
                let spellings = dialect.rows.values().nth(self.random.below(dialect.rows.len()))?;
                Subject::Pure(self.random.pick(&dialect.pure[spellings.0][spellings.1.clone()]))
            }
            false => Subject::Access(self.random.pick(&dialect.accesses)),
        };
        let guard = self.guard(20);
        self.neighbourhood(subject, source, target, guard, place).map(Stmt::text)
    }

    /// An instruction with these neighbours; `None` if it cannot have them.
    pub(super) fn neighbourhood(
        &mut self,
        subject: Subject,
        source: Source,
        target: Target,
        guard: String,
        place: &Place,
    ) -> Option<String> {
        let mut hood = Hood {
            source,
            target,
            text: String::new(),
            taken: [0; 8],
            cells: Vec::new(),
            least_cell: 1,
            guard,
        };
        match subject {
            Subject::Pure(spelling) => self.around_pure(&mut hood, spelling, place)?,
            Subject::Access(form) if form.writes => self.around_store(&mut hood, form, place)?,
            Subject::Access(form) => self.around_load(&mut hood, form, place)?,
        }
        Some(hood.text)
    }

    fn around_pure(&mut self, hood: &mut Hood, spelling: &Spelling, place: &Place) -> Option<()> {
        let no_literals = super::pure::takes_no_literals(spelling);
        let exact = super::pure::takes_no_wider(spelling);
        let slots = slots(spelling);
        if hood.target == Target::InPlace {
            let bits = slots.iter().filter(|slot| slot.writes).map(|slot| slot.ty.bits()).max()?;
            hood.least_cell = bits.max(32) as usize / 8;
        }
        let (mut operands, mut results) = (Vec::new(), Vec::new());
        for mut slot in slots {
            slot.literal &= !no_literals;
            slot.wider &= !exact;
            if slot.writes {
                let (text, result) = self.result_operand(hood, &slot)?;
                operands.push(text);
                results.extend(result);
            } else {
                operands.push(self.source_operand(hood, &slot, place)?);
            }
        }
        hood.line(format!("{}{} {};", hood.guard, spelling.mnemonic(), operands.join(", ")));
        let (first, others) = results.split_first()?;
        let (first, others) = (first.clone(), others.to_vec());
        self.hand_on(hood, &first, place)?;
        others.iter().try_for_each(|other| self.note_second(hood, other))
    }
}
