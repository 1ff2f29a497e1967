//! Relations between the events of a test.

/// The most events that a test can have.
const EVENTS: usize = 24;

/// A relation between events: for each, the set of those that it is related to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Relation([u32; EVENTS]);

impl Relation {
    /// Those pairs of `count` events that a predicate chooses.
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

    /// One event is related to another.
    pub fn has(&self, a: usize, b: usize) -> bool {
        self.0[a] >> b & 1 != 0
    }

    /// Related by either.
    pub fn or(&self, other: &Relation) -> Relation {
        Relation(std::array::from_fn(|a| self.0[a] | other.0[a]))
    }

    /// Related by both.
    pub fn and(&self, other: &Relation) -> Relation {
        Relation(std::array::from_fn(|a| self.0[a] & other.0[a]))
    }

    /// Related by one to what is related by the other.
    pub fn then(&self, other: &Relation) -> Relation {
        Relation(std::array::from_fn(|a| {
            (0..EVENTS).filter(|&b| self.has(a, b)).fold(0, |all, b| all | other.0[b])
        }))
    }

    /// Every event is related to itself, too.
    pub fn or_same(&self) -> Relation {
        Relation(std::array::from_fn(|a| self.0[a] | 1 << a))
    }

    /// The other way round.
    pub fn reversed(&self) -> Relation {
        Relation::of(EVENTS, |a, b| self.has(b, a))
    }

    /// Related over any number of steps.
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

    /// No event is related to itself.
    pub fn is_irreflexive(&self) -> bool {
        (0..EVENTS).all(|a| !self.has(a, a))
    }

    /// No event is related to itself over any number of steps.
    pub fn is_acyclic(&self) -> bool {
        self.closed().is_irreflexive()
    }

    /// Every pair of this one is one of the other.
    pub fn is_in(&self, other: &Relation) -> bool {
        self.and(other) == *self
    }
}
