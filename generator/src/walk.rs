//! A walk through what optimisations join: every pure form, and every load and store by type and length of vector, with every
//! source, every target, and every kind of place where it may stand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use isa::FormId;

use crate::catalog::{AccessForm, DIALECTS, Dialect};
use crate::generate::neighbours::{Around, Source, Subject, Target};
use crate::generate::walk_kernel;
use crate::program::Kernel;
use crate::random::Random;

/// Neighbourhoods of a kernel.
const A_KERNEL: usize = 12;

/// What stands in the middle: a row of the table; a load or store also by its type and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Middle {
    /// A pure row.
    Pure(FormId),
    /// A load or a store.
    Access(AccessForm),
}

impl Middle {
    /// The row.
    pub fn form(&self) -> FormId {
        match self {
            Middle::Pure(id) => *id,
            Middle::Access(form) => form.id,
        }
    }

    /// Something to put in the middle, if the dialect has it.
    pub fn subject<'d>(&self, dialect: &'d Dialect, random: &mut Random) -> Option<Subject<'d>> {
        match self {
            Middle::Pure(id) => {
                let (opcode, range) = dialect.rows.get(id)?;
                Some(Subject::Pure(random.pick(&dialect.pure[opcode][range.clone()])))
            }
            Middle::Access(form) => dialect.accesses.iter().find(|other| *other == form).map(Subject::Access),
        }
    }
}

/// A step of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The dialect, by its number.
    pub dialect: usize,
    /// What stands in the middle.
    pub middle: Middle,
    /// What stands before it.
    pub source: Source,
    /// What stands behind it.
    pub target: Target,
}

/// All that can stand in the middle, and the dialects that have it.
pub static MIDDLES: LazyLock<Vec<(Middle, Vec<usize>)>> = LazyLock::new(|| {
    let mut found: BTreeMap<Middle, Vec<usize>> = BTreeMap::new();
    for (number, dialect) in DIALECTS.iter().enumerate() {
        let rows = dialect.rows.keys().copied().map(Middle::Pure);
        for middle in rows.chain(dialect.accesses.iter().copied().map(Middle::Access)) {
            found.entry(middle).or_default().push(number);
        }
    }
    found.into_iter().collect()
});

/// The steps of the kernels for one kind of place.
static STEPS: LazyLock<Vec<Vec<Step>>> = LazyLock::new(|| {
    // By dialect: a kernel has one.
    let mut steps: Vec<Vec<Step>> = vec![Vec::new(); DIALECTS.len()];
    for (i, (middle, dialects)) in MIDDLES.iter().enumerate() {
        let shapes =
            Source::ALL.iter().flat_map(|&source| Target::ALL.iter().map(move |&target| (source, target)));
        for (n, (source, target)) in shapes.enumerate() {
            let dialect = dialects[(i + n) % dialects.len()];
            steps[dialect].push(Step { dialect, middle: *middle, source, target });
        }
    }
    steps.iter().flat_map(|steps| steps.chunks(A_KERNEL)).map(<[Step]>::to_vec).collect()
});

/// Kernels of the walk.
pub fn len() -> u64 {
    (Around::ALL.len() * STEPS.len()) as u64
}

/// The place and the steps of a kernel of the walk.
fn plan(index: u64) -> (Around, &'static [Step]) {
    let (all, index) = (STEPS.len(), (index % len()) as usize);
    (Around::ALL[index / all], &STEPS[index % all])
}

/// A kernel of the walk; behind the last the walk begins again, with other choices of what it leaves open.
pub fn kernel(index: u64) -> Kernel {
    let (around, steps) = plan(index);
    walk_kernel(&mut Random::seeded(!index), around, steps).0
}

/// What has been made of what can stand in the middle.
#[derive(Default)]
pub struct Coverage {
    /// Sources that each has had.
    pub sources: BTreeMap<Middle, BTreeSet<Source>>,
    /// Targets that each has had.
    pub targets: BTreeMap<Middle, BTreeSet<Target>>,
    /// Neighbourhoods.
    pub made: usize,
    /// Those that there are not: an immediate comes from nowhere, and what is not in memory is not stored in its place.
    pub left_out: usize,
}

/// What every `every`-th kernel of the walk has.
pub fn coverage(every: usize) -> Coverage {
    let mut coverage = Coverage::default();
    for index in (0..len()).step_by(every) {
        let (around, steps) = plan(index);
        let (_, made) = walk_kernel(&mut Random::seeded(!index), around, steps);
        for step in &made {
            coverage.sources.entry(step.middle).or_default().insert(step.source);
            coverage.targets.entry(step.middle).or_default().insert(step.target);
        }
        coverage.made += made.len();
        coverage.left_out += steps.len() - made.len();
    }
    coverage
}

impl Coverage {
    /// How many have had each source.
    pub fn by_source(&self) -> impl Iterator<Item = (Source, usize)> + '_ {
        let count = |source| self.sources.values().filter(|all| all.contains(&source)).count();
        Source::ALL.into_iter().map(move |source| (source, count(source)))
    }

    /// How many have had each target.
    pub fn by_target(&self) -> impl Iterator<Item = (Target, usize)> + '_ {
        let count = |target| self.targets.values().filter(|all| all.contains(&target)).count();
        Target::ALL.into_iter().map(move |target| (target, count(target)))
    }
}
