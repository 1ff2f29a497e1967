//! A walk through the combinations that optimisations join: every pure form, and every load and store by type and
//! vector length, with every source, every target, and every kind of surroundings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use isa::FormId;

use crate::catalog::{AccessForm, DIALECTS, Dialect};
use crate::generate::neighbours::{Around, Source, Subject, Target};
use crate::generate::walk_kernel;
use crate::program::Kernel;
use crate::random::Random;

/// Neighbourhoods in a kernel.
const A_KERNEL: usize = 12;

/// The kind of instruction in the middle of a neighbourhood: a row of the table; for a load or store, also type and
/// length.
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

    /// An instruction of this kind, if the dialect has one.
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
    /// The index of the dialect.
    pub dialect: usize,
    /// The instruction in the middle.
    pub middle: Middle,
    /// The instruction before it.
    pub source: Source,
    /// The instruction after it.
    pub target: Target,
}

/// All instructions for the middle, and the dialects that have them.
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

/// The steps of each kernel, for one kind of surroundings.
static STEPS: LazyLock<Vec<Vec<Step>>> = LazyLock::new(|| {
    // Grouped by dialect, since a kernel has only one.
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

/// The number of kernels in the walk.
pub fn len() -> u64 {
    (Around::ALL.len() * STEPS.len()) as u64
}

/// The surroundings and the steps of a kernel.
fn plan(index: u64) -> (Around, &'static [Step]) {
    let (all, index) = (STEPS.len(), (index % len()) as usize);
    (Around::ALL[index / all], &STEPS[index % all])
}

/// A kernel of the walk. After the last one, the walk begins again with other random choices.
pub fn kernel(index: u64) -> Kernel {
    let (around, steps) = plan(index);
    walk_kernel(&mut Random::seeded(!index), around, steps).0
}

/// Which combinations the walk has generated.
#[derive(Default)]
pub struct Coverage {
    /// The sources of each kind of instruction.
    pub sources: BTreeMap<Middle, BTreeSet<Source>>,
    /// The targets of each kind of instruction.
    pub targets: BTreeMap<Middle, BTreeSet<Target>>,
    /// The number of neighbourhoods.
    pub made: usize,
    /// Combinations that do not exist: an immediate has no source, and a value that is not in memory cannot be stored
    /// in its place.
    pub left_out: usize,
}

/// The coverage of every `every`-th kernel of the walk.
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
    /// The number of instructions that have had each source.
    pub fn by_source(&self) -> impl Iterator<Item = (Source, usize)> + '_ {
        let count = |source| self.sources.values().filter(|all| all.contains(&source)).count();
        Source::ALL.into_iter().map(move |source| (source, count(source)))
    }

    /// The number of instructions that have had each target.
    pub fn by_target(&self) -> impl Iterator<Item = (Target, usize)> + '_ {
        let count = |target| self.targets.values().filter(|all| all.contains(&target)).count();
        Target::ALL.into_iter().map(move |target| (target, count(target)))
    }
}
