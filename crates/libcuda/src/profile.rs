//! `PTXVM_PROFILE=1`: the report of the process (`report.rs`) includes a profile of each instruction of its kernels.
//! `ptxvm exec --profile` enables it.

use std::sync::{Arc, Mutex, OnceLock};

use ptxvm::{Counts, Module, Profile, SourceFile};
use serde_json::{Value, json};

use crate::lock;

/// The profile to which the launches of a loaded module add.
pub type Shared = Arc<Mutex<Profile>>;

/// Every loaded module: its profile outlives it.
static LOADED: Mutex<Vec<(Module, Shared)>> = Mutex::new(Vec::new());

/// A profile for a module that is being loaded, if the environment enables profiles.
pub fn begin(module: &Module) -> Option<Shared> {
    static WANTED: OnceLock<bool> = OnceLock::new();
    let wanted = *WANTED.get_or_init(|| std::env::var("PTXVM_PROFILE").is_ok_and(|value| value == "1"));
    wanted.then(|| {
        let shared = Shared::default();
        let mut loaded = lock(&LOADED);
        loaded.push((module.clone(), Arc::clone(&shared)));
        shared
    })
}

/// The profiles of all modules of which a kernel ran: sources, and counts by source and offset of the instruction.
pub fn render() -> Value {
    let loaded = lock(&LOADED);
    let modules = loaded.iter().filter_map(|(module, shared)| {
        let profile = lock(shared);
        of_module(module, &profile)
    });
    modules.collect()
}

fn of_module(module: &Module, profile: &Profile) -> Option<Value> {
    let instructions: Vec<Value> = profile
        .instructions
        .iter()
        .filter(|(_, counts)| counts.executions > 0)
        .map(|(&span, counts)| {
            let (source, span) = module.locate(span);
            let Counts { executions, threads, guarded_off, diverged, accesses, seconds } = *counts;
            json!({
                "source": source, "offset": span.start, "executions": executions, "threads": threads,
                "guarded_off": guarded_off, "diverged": diverged, "vector": accesses.vector,
                "broadcast": accesses.broadcast, "gather": accesses.gather, "seconds": seconds,
            })
        })
        .collect();
    let source = |source: &Arc<SourceFile>| json!({ "name": source.name(), "text": source.text() });
    (!instructions.is_empty()).then(|| {
        json!({ "sources": module.sources().map(source).collect::<Vec<_>>(), "instructions": instructions })
    })
}
