//! Removes the parts of a kernel that a difference does not need.

use crate::compare::{Difference, compare};
use crate::program::{Kernel, Stmt};

/// The failure that a seed showed.
pub struct Failure {
    /// The kernel, reduced if the engines differ.
    pub kernel: Kernel,
    /// Their difference.
    pub difference: Difference,
}

/// Runs a kernel on all engines, and reduces it if they differ.
pub fn run(kernel: &Kernel) -> Option<Failure> {
    let difference = compare(kernel).err()?;
    // A kernel that no engine completes is a bug of the generator: it is shown unreduced.
    let (kernel, difference) = match difference.engines_differ() {
        true => shrink(kernel, &difference),
        false => (kernel.clone(), difference),
    };
    Some(Failure { kernel, difference })
}

impl Failure {
    /// A PTX file that says how to reproduce the difference; `name` is the kernel's seed, or its index in the walk.
    pub fn text(&self, name: &str) -> String {
        let Failure { kernel: Kernel { grid, cluster, block, .. }, difference: Difference { way, what, .. } } =
            self;
        let what = what.replace('\n', "\n// ");
        format!(
            "// {name}, grid {grid:?}, cluster {cluster:?}, block {block:?}, {way}\n// {what}\n{}",
            self.kernel.text()
        )
    }
}

/// The smallest kernel found that still shows a difference of the same kind, and that difference.
pub fn shrink(kernel: &Kernel, difference: &Difference) -> (Kernel, Difference) {
    let mut best = (kernel.clone(), difference.clone());
    loop {
        let before = best.0.clone();
        for grid in [[1, 1, 1], [2, 1, 1], before.cluster] {
            if grid.iter().product::<u32>() < best.0.grid.iter().product() {
                let smaller = Kernel { grid, ..best.0.clone() };
                attempt(&mut best, smaller);
            }
        }
        for body in 0..=before.functions.len() {
            shrink_list(&mut best, &mut |kernel| statements(kernel, body));
        }
        if best.0 == before {
            return best;
        }
    }
}

/// The statements of a function, or of the kernel if `body` is the index after the last function.
fn statements(kernel: &mut Kernel, body: usize) -> &mut Vec<Stmt> {
    match body < kernel.functions.len() {
        true => &mut kernel.functions[body].body,
        false => &mut kernel.kernel.body,
    }
}

/// Replaces `best` by the smaller kernel if that one still shows a difference of the same kind.
fn attempt(best: &mut (Kernel, Difference), smaller: Kernel) -> bool {
    match compare(&smaller) {
        Err(difference) if difference.engines_differ() && difference.kind() == best.1.kind() => {
            *best = (smaller, difference);
            true
        }
        _ => false,
    }
}

/// Removes statements from one list, in large groups first, then from the lists within.
fn shrink_list(best: &mut (Kernel, Difference), list: &mut dyn FnMut(&mut Kernel) -> &mut Vec<Stmt>) {
    let mut size = list(&mut best.0.clone()).len();
    while size > 0 {
        let mut at = 0;
        while at < list(&mut best.0.clone()).len() {
            let mut smaller = best.0.clone();
            let statements = list(&mut smaller);
            let end = (at + size).min(statements.len());
            statements.drain(at..end);
            if !attempt(best, smaller) {
                at += size;
            }
        }
        size /= 2;
    }
    for at in 0..list(&mut best.0.clone()).len() {
        let arms = match &list(&mut best.0.clone())[at] {
            Stmt::Nest { arms, .. } => arms.len(),
            Stmt::Text(_) => 0,
        };
        for arm in 0..arms {
            shrink_list(best, &mut |kernel| match &mut list(kernel)[at] {
                Stmt::Nest { arms, .. } => &mut arms[arm].0,
                Stmt::Text(_) => unreachable!("what is left out stands within it"),
            });
        }
    }
}
