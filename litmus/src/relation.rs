//! Relations between the events of a test.

/// The maximum number of events of a test.
const EVENTS: usize = 24;

/// A relation between events: for each event, the set of events that it is related to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Relation([u32; EVENTS]);

impl Relation {
    /// The pairs of `count` events for which `holds` is true.
    ///
    /// # Panics
    /// When there are more events than a test can have.
    pub fn of(count: usize, mut holds: impl FnMut(usize, usize) -> bool) -> Relation {
        assert!(count <= EVENTS, "a test of {count} events");
        let mut all = Relation::default();
        for a in 0..count {
            for b in 0..count {
                if holds(a, b) {
                    all.add(a, b);
                }
            }
        }
        all
    }

    /// Relates one event to another.
    pub fn add(&mut self, a: usize, b: usize) {
        self.0[a] |= 1 << b;
    }

    /// Whether one event is related to another.
    pub fn has(&self, a: usize, b: usize) -> bool {
        self.0[a] >> b & 1 != 0
    }

    /// The union of two relations.
    pub fn or(&self, other: &Relation) -> Relation {
        Relation(std::array::from_fn(|a| self.0[a] | other.0[a]))
    }

    /// The intersection of two relations.
    pub fn and(&self, other: &Relation) -> Relation {
        Relation(std::array::from_fn(|a| self.0[a] & other.0[a]))
    }

    /// The composition: this relation, then the other.
    pub fn then(&self, other: &Relation) -> Relation {
        Relation(std::array::from_fn(|a| {
            (0..EVENTS).filter(|&b| self.has(a, b)).fold(0, |all, b| all | other.0[b])
        }))
    }

    /// The reflexive closure.
    pub fn or_same(&self) -> Relation {
        Relation(std::array::from_fn(|a| self.0[a] | 1 << a))
    }

    /// The inverse relation.
    pub fn reversed(&self) -> Relation {
        Relation::of(EVENTS, |a, b| self.has(b, a))
    }

    /// The transitive closure.
    pub fn closed(&self) -> Relation {
        let mut all = *self;
        for between in 0..EVENTS {
            for a in 0..EVENTS {
                if all.has(a, between) {
                    all.0[a] |= all.0[between];
                }
            }
        }
        all
    }

    /// Whether no event is related to itself.
    pub fn is_irreflexive(&self) -> bool {
        (0..EVENTS).all(|a| !self.has(a, a))
    }

    /// Whether the transitive closure is irreflexive.
    pub fn is_acyclic(&self) -> bool {
        self.closed().is_irreflexive()
    }

    /// Whether this relation is a subset of the other.
    pub fn is_in(&self, other: &Relation) -> bool {
        self.and(other) == *self
    }
}
