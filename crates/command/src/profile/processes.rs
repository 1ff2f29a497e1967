//! `ptxvm exec --profile`: the combined profile of the kernels of all processes.

use std::collections::BTreeMap;

use diag::SourceFile;
use ptxvm::{Accesses, Counts};
use serde::Deserialize;

use super::Report;

/// The modules of all processes. A module that was loaded several times, or by several processes, counts as one.
#[derive(Default)]
pub struct Modules {
    sources: Vec<SourceFile>,
    /// The counts of instructions, by source and offset.
    instructions: BTreeMap<(usize, u32), Counts>,
}

/// The driver's profile of a loaded module (crates/libcuda/src/profile.rs).
#[derive(Deserialize)]
pub struct OfModule {
    sources: Vec<OfSource>,
    instructions: Vec<OfInstruction>,
}

#[derive(Deserialize)]
struct OfSource {
    name: String,
    text: String,
}

#[derive(Deserialize)]
struct OfInstruction {
    /// Index of the source.
    source: usize,
    /// Offset in bytes.
    offset: u32,
    executions: u64,
    threads: u64,
    guarded_off: u64,
    diverged: u64,
    vector: u64,
    broadcast: u64,
    gather: u64,
    seconds: f64,
}

impl Modules {
    /// Adds the profile of a module.
    pub fn add(&mut self, module: OfModule) {
        let indices: Vec<usize> = module.sources.into_iter().map(|source| self.index(source)).collect();
        for instruction in module.instructions {
            let OfInstruction { executions, threads, guarded_off, diverged, seconds, .. } = instruction;
            let OfInstruction { vector, broadcast, gather, .. } = instruction;
            let accesses = Accesses { vector, broadcast, gather };
            let counts = Counts { executions, threads, guarded_off, diverged, accesses, seconds };
            if let Some(&index) = indices.get(instruction.source)
                && (instruction.offset as usize) < self.sources[index].text().len()
            {
                self.instructions.entry((index, instruction.offset)).or_default().add(&counts);
            }
        }
    }

    fn index(&mut self, of: OfSource) -> usize {
        let known =
            self.sources.iter().position(|source| source.name() == of.name && *source.text() == *of.text);
        known.unwrap_or_else(|| {
            self.sources.push(SourceFile::new(of.name, of.text));
            self.sources.len() - 1
        })
    }

    /// The profile of all modules, by lines.
    pub fn report(&self) -> Report<'_> {
        let instructions = self.instructions.iter().map(|(&place, counts)| (place, counts));
        Report::of_sources(self.sources.iter().collect(), instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, text: &str, executions: u64) -> OfModule {
        let instruction = |source, offset| {
            serde_json::json!({
                "source": source, "offset": offset, "executions": executions, "threads": 0, "guarded_off": 0, "diverged": 0,
                "vector": 0, "broadcast": 0, "gather": 0, "seconds": 1.0,
            })
        };
        let value = serde_json::json!({
            "sources": [{ "name": name, "text": text }],
            // Neither this source nor this offset exists.
            "instructions": [instruction(0, 2), instruction(1, 2), instruction(0, 1000)],
        });
        serde_json::from_value(value).expect("it has every key")
    }

    #[test]
    fn a_module_of_several_processes_is_one() {
        let mut modules = Modules::default();
        for (name, text, executions) in [("a", "a\nb\n", 1), ("b", "a\nb\n", 2), ("a", "a\nb\n", 4)] {
            modules.add(module(name, text, executions));
        }
        let report = modules.report();
        let lines: Vec<_> =
            report.lines.iter().map(|l| (l.file, l.line, l.counts.executions, l.share)).collect();
        assert_eq!(lines, [("a", 2, 5, 2.0 / 3.0), ("b", 2, 2, 1.0 / 3.0)]);
        assert!(report.html("all").contains(">b:2</a>"));
    }
}
