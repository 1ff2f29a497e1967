//! The PTX memory consistency model: the outcomes of all executions of a test that satisfy its axioms (PTX ISA,
//! "Memory Consistency Model").
//!
//! An execution chooses the write that each read observes, the order of the writes to each location (*coherence
//! order*, partial where writes race), and the order of `fence.sc` operations. These choices determine all else. The
//! initial contents of a location are written before everything else.
//!
//! A vector is one access here. The model has an access for each element, but NVIDIA's GPUs access up to 16 bytes at
//! once, and NVIDIA's libraries rely on it.

use std::collections::BTreeSet;

use crate::program::{Fence, Instruction, Order, Program};
use crate::relation::Relation;

/// The values of all registers, then the final values of all locations.
pub type Outcome = Vec<u8>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Fence(Fence),
}

/// An access, or a fence. An `atom` is a read and a write.
struct Event {
    thread: usize,
    kind: Kind,
    place: Option<usize>,
    value: u8,
    register: Option<usize>,
    order: Order,
    /// The register from which the written value was computed.
    depends: Option<usize>,
    /// The index of the instruction in its thread.
    step: usize,
}

impl Event {
    fn is(&self, kind: Kind) -> bool {
        self.kind == kind
    }

    fn is_fence(&self) -> bool {
        matches!(self.kind, Kind::Fence(_))
    }
}

/// The relations that are the same in all executions of a test.
struct Events<'p> {
    program: &'p Program,
    all: Vec<Event>,
    /// Program order.
    po: Relation,
    /// Program order between accesses to the same location.
    po_place: Relation,
    /// Pairs that are morally strong.
    strong: Relation,
    /// The read and the write of an `atom`.
    rmw: Relation,
    /// From a read to the writes that depend on it.
    dependency: Relation,
    /// From a release to the writes of its release pattern.
    prefix: Relation,
    /// From the reads of an acquire pattern to its acquire.
    suffix: Relation,
}

/// The outcomes that the model permits.
pub fn permitted(program: &Program) -> BTreeSet<Outcome> {
    let events = Events::of(program);
    let mut outcomes = BTreeSet::new();
    let sequential: Vec<(usize, usize)> =
        events.pairs(|a, b| a < b && events.both_sequential(a, b) && events.strong.has(a, b)).collect();
    for sources in events.sources() {
        for coherence in events.coherence_orders() {
            let outcomes_of = events.outcomes(&sources, &coherence);
            if outcomes_of.iter().all(|outcome| outcomes.contains(outcome)) {
                continue;
            }
            let permits = (0..1u32 << sequential.len()).any(|turned| {
                let mut sc = Relation::default();
                for (i, &(a, b)) in sequential.iter().enumerate() {
                    if turned >> i & 1 == 0 { sc.add(a, b) } else { sc.add(b, a) }
                }
                sc.is_acyclic() && events.satisfies(&sources, &coherence, &sc)
            });
            if permits {
                outcomes.extend(outcomes_of);
            }
        }
    }
    outcomes
}

impl<'p> Events<'p> {
    fn of(program: &'p Program) -> Events<'p> {
        let mut all = Vec::new();
        for (thread, instructions) in program.threads.iter().enumerate() {
            for (step, instruction) in instructions.iter().enumerate() {
                let event = Event {
                    thread,
                    kind: Kind::Read,
                    place: instruction.place(),
                    value: 0,
                    register: instruction.register(),
                    order: instruction.order().unwrap_or(Order::Relaxed),
                    depends: None,
                    step,
                };
                match *instruction {
                    Instruction::Load { .. } => all.push(event),
                    Instruction::Store { value, depends, .. } => {
                        all.push(Event { kind: Kind::Write, value, depends, ..event });
                    }
                    Instruction::Exchange { value, .. } => {
                        all.push(Event { ..event });
                        all.push(Event { kind: Kind::Write, value, register: None, ..event });
                    }
                    Instruction::Fence(fence) => all.push(Event { kind: Kind::Fence(fence), ..event }),
                }
            }
        }
        let count = all.len();
        let pairs = |holds: &dyn Fn(&Event, &Event) -> bool| {
            Relation::of(count, |a, b| a != b && holds(&all[a], &all[b]))
        };
        let po = Relation::of(count, |a, b| a < b && all[a].thread == all[b].thread);
        let one_place = pairs(&|a, b| a.place.is_some() && a.place == b.place);
        let po_place = po.and(&one_place);
        let in_scope = |e: &Event| match e.order {
            Order::Weak => false,
            Order::Volatile => true,
            _ => program.placement.within(program.scope),
        };
        let strong = pairs(&|a, b| a.thread == b.thread || in_scope(a) && in_scope(b));
        let rmw =
            pairs(&|a, b| (a.thread, a.step) == (b.thread, b.step) && a.is(Kind::Read) && b.is(Kind::Write));
        let dependency =
            pairs(&|a, b| a.is(Kind::Read) && a.register.is_some() && a.register == b.depends).or(&rmw);
        let (one, zero) = (Relation::default().or_same(), Relation::default());
        let at = |from: &Relation, holds: &dyn Fn(&Event, &Event) -> bool| {
            from.and(&Relation::of(count, |a, b| holds(&all[a], &all[b])))
        };
        let release =
            at(&po_place.or(&one), &|a, b| a.is(Kind::Write) && a.order.releases() && b.is(Kind::Write));
        let acquire =
            at(&po_place.or(&one), &|a, b| a.is(Kind::Read) && b.is(Kind::Read) && b.order.acquires());
        let (before, behind) = (
            at(&po, &|a, b| a.is_fence() && b.is(Kind::Write)),
            at(&po, &|a, b| a.is(Kind::Read) && b.is_fence()),
        );
        let (prefix, suffix) = (release.or(&before).or(&zero), acquire.or(&behind));
        Events { program, all, po, po_place, strong, rmw, dependency, prefix, suffix }
    }

    fn pairs(&self, holds: impl Fn(usize, usize) -> bool) -> impl Iterator<Item = (usize, usize)> {
        let count = self.all.len();
        (0..count).flat_map(move |a| (0..count).map(move |b| (a, b))).filter(move |&(a, b)| holds(a, b))
    }

    fn both_sequential(&self, a: usize, b: usize) -> bool {
        [a, b].iter().all(|&e| self.all[e].is(Kind::Fence(Fence::Sequential)))
    }

    fn events(&self, kind: Kind) -> impl Iterator<Item = usize> {
        (0..self.all.len()).filter(move |&e| self.all[e].is(kind))
    }

    fn writes(&self, place: usize) -> Vec<usize> {
        self.events(Kind::Write).filter(|&e| self.all[e].place == Some(place)).collect()
    }

    /// All choices of the write that each read observes; `None` is the initial value.
    fn sources(&self) -> Vec<Vec<(usize, Option<usize>)>> {
        let mut all = vec![Vec::new()];
        for read in self.events(Kind::Read) {
            let writes = self.all[read].place.map(|place| self.writes(place)).unwrap_or_default();
            let choices: Vec<Option<usize>> =
                [None].into_iter().chain(writes.into_iter().map(Some)).collect();
            all = all
                .into_iter()
                .flat_map(|before: Vec<_>| {
                    choices.iter().map(move |&source| [&before[..], &[(read, source)]].concat())
                })
                .collect();
        }
        all
    }

    /// All coherence orders: for each location, a partial order that relates all pairs of morally strong writes.
    fn coherence_orders(&self) -> Vec<Relation> {
        let mut all = vec![Relation::default()];
        for place in 0..self.program.places() {
            let orders = self.partial_orders(&self.writes(place));
            all = all.iter().flat_map(|before| orders.iter().map(|order| before.or(order))).collect();
        }
        all
    }

    fn partial_orders(&self, writes: &[usize]) -> Vec<Relation> {
        let pairs: Vec<(usize, usize)> =
            self.pairs(|a, b| a < b && writes.contains(&a) && writes.contains(&b)).collect();
        let choose = |number: usize| {
            let (mut order, mut rest) = (Relation::default(), number);
            for &(a, b) in &pairs {
                match rest % 3 {
                    0 => order.add(a, b),
                    1 => order.add(b, a),
                    _ if self.strong.has(a, b) => return None,
                    _ => {}
                }
                rest /= 3;
            }
            (order.is_acyclic() && order.closed() == order).then_some(order)
        };
        (0..3usize.pow(pairs.len() as u32)).filter_map(choose).collect()
    }

    /// The outcomes of an execution. The final value of a location may be any write that no other write follows.
    fn outcomes(&self, sources: &[(usize, Option<usize>)], coherence: &Relation) -> Vec<Outcome> {
        let mut registers = vec![0; self.program.registers()];
        for &(read, source) in sources {
            if let Some(register) = self.all[read].register {
                registers[register] = source.map_or(0, |write| self.all[write].value);
            }
        }
        let mut all = vec![registers];
        for place in 0..self.program.places() {
            let writes = self.writes(place);
            let is_last = |&&write: &&usize| writes.iter().all(|&other| !coherence.has(write, other));
            let mut last: Vec<u8> =
                writes.iter().filter(is_last).map(|&write| self.all[write].value).collect();
            if last.is_empty() {
                last.push(0);
            }
            all = all
                .iter()
                .flat_map(|before| last.iter().map(move |&value| [&before[..], &[value]].concat()))
                .collect();
        }
        all
    }

    /// Whether an execution satisfies the axioms.
    fn satisfies(&self, sources: &[(usize, Option<usize>)], co: &Relation, sc: &Relation) -> bool {
        let (mut rf, mut fr) = (Relation::default(), Relation::default());
        for &(read, source) in sources {
            match source {
                Some(write) => rf.add(write, read),
                None => self
                    .writes(self.all[read].place.unwrap_or_default())
                    .iter()
                    .for_each(|&w| fr.add(read, w)),
            }
        }
        fr = fr.or(&rf.reversed().then(co));
        // An `atom` does not read its own write.
        fr = Relation::of(self.all.len(), |a, b| a != b && fr.has(a, b));
        let communication = rf.or(co).or(&fr);
        let no_thin_air = rf.or(&self.dependency).is_acyclic();
        let sc_per_location = self.strong.and(&communication).or(&self.po_place).is_acyclic();
        if !no_thin_air || !sc_per_location {
            return false;
        }
        let between = self.strong.and(&fr).then(&self.strong.and(co));
        if self.rmw.and(&between) != Relation::default() {
            return false;
        }
        // Observation extends through `atom`s.
        let seen = self.strong.and(&rf);
        let observation = seen.or(&seen.then(&self.rmw).closed().then(&seen));
        let synchronizes = self.strong.and(&self.prefix.then(&observation).then(&self.suffix));
        let po = self.po.or_same();
        let base = po.then(&synchronizes.or(sc)).then(&po).closed();
        let causality = base.or(&observation.then(&self.po_place.or(&base)));
        let is_write = |e: usize| self.all[e].is(Kind::Write);
        let written_in_turn = Relation::of(self.all.len(), |a, b| {
            is_write(a) && is_write(b) && self.all[a].place == self.all[b].place && causality.has(a, b)
        });
        written_in_turn.is_in(co)
            && causality.is_irreflexive()
            && fr.or(&rf).then(&causality).is_irreflexive()
    }
}
