//! What optimisations join: an instruction with what stands just before it and just behind it.
//!
//! A *neighbourhood* is one instruction of the table whose sources come from somewhere ([`Source`]) and whose results go somewhere
//! ([`Target`]); what lies between is not read by anybody else. Memory is a thread's own, or not written.

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

/// Where the sources of an instruction come from. For a load: how its address is found, and what was done to its memory just before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Registers that have had their values for long, and literals.
    Register,
    /// Loaded just before, where the elements of neighbouring threads are neighbours. A load: stored just before.
    Loaded,
    /// Loaded just before from elements that are narrower than their registers.
    Narrow,
    /// Elements of vectors loaded just before.
    Vector,
    /// Loaded just before from one place for all threads.
    Alike,
    /// Loaded just before from each thread's own memory, one thread's behind the other's.
    Strided,
    /// Loaded just before from any other memory, and at addresses without a pattern.
    Elsewhere,
    /// Numbers that step from thread to thread.
    Steps,
    /// The same number in all threads.
    Same,
    /// Copies of registers that are written afterwards.
    Copied,
    /// Packed from halves, or halves of something.
    Packed,
}

impl Source {
    /// All of them.
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

/// Where the results of an instruction go. For a store: where it stores, and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// Registers that live on.
    Register,
    /// Stored just behind, where the elements of neighbouring threads are neighbours.
    Stored,
    /// Stored just behind into the memory that a source came from: the same bytes, or some of them.
    InPlace,
    /// Stored, and read afterwards.
    ReadAgain,
    /// Stored as elements that are narrower than their registers.
    Low,
    /// An element of a vector that is stored just behind, over what sources came from if they were loaded.
    Vector,
    /// Stored in each thread's own memory.
    Strided,
    /// Stored in any other memory, and at addresses without a pattern.
    Elsewhere,
    /// Read by nobody.
    Unread,
    /// Copied.
    Copied,
    /// Read by the branch that follows.
    Branch,
}

impl Target {
    /// All of them.
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

/// In what kind of place neighbourhoods stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Around {
    /// All threads come there once.
    Straight,
    /// All threads come there again and again.
    Loop,
    /// Some threads, by their values.
    Branch,
    /// Few threads of many warps.
    FewLanes,
    /// The instruction in the middle is guarded.
    Guard,
    /// All threads of some blocks.
    Blocks,
}

impl Around {
    /// All of them.
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

/// A neighbourhood under way.
struct Hood {
    source: Source,
    target: Target,
    /// The lines so far.
    text: String,
    /// Registers taken, by the name of their kind.
    taken: [usize; 8],
    /// Where sources were loaded from.
    cells: Vec<Cell>,
    /// Loads take parts of cells of at least so many bytes.
    least_cell: usize,
    /// The guard of the instruction in the middle.
    guard: String,
}

/// Registers of each kind that neighbourhoods have for themselves.
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

    /// A register of so many bits that nothing else in the neighbourhood has.
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

    /// The same for an address.
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

    /// The statements of steps of the walk, and those steps that there are.
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

    /// Statements in a place of some kind.
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

    /// Any instruction with any neighbours; several of them where few threads are, so that their registers are packed.
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

    /// An instruction with these neighbours; `None` if it has no such.
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
