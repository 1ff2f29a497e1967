//! `PTXVM_TOOL=racecheck,synccheck`: tools watch every launch of the process, and print each finding once on stderr.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};

use ptxvm::{Checker, Color, LaunchFilter, Located, Module, Suppressions, Tool, Tools, by_cause};

use crate::lock;
use crate::log::log;
use crate::stream_order::Use;

/// The tools that the environment enables.
pub fn tools() -> Tools {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    *TOOLS.get_or_init(|| {
        // Another kernel may free what one kernel allocates.
        Tools::from_environment().map(|tools| tools.without(Tool::Leakcheck)).unwrap_or_else(|message| {
            log!(error, "PTXVM_TOOL: {message}");
            Tools::default()
        })
    })
}

/// The checker of a launch.
pub struct Check {
    pub checker: Arc<Mutex<Checker>>,
    /// Stream-ordered memory that the launch may use: address and size.
    watched: Vec<(u64, u64)>,
    /// Whether its findings are reported.
    pub is_reported: bool,
}

/// Which launches the environment wants to be watched.
pub fn launch_filter() -> LaunchFilter {
    LaunchFilter::from_environment().unwrap_or_else(|message| {
        log!(error, "{message}");
        LaunchFilter::default()
    })
}

/// A checker for a launch, if the environment enables one.
pub fn check(kernel: &str) -> Option<Check> {
    static FILTER: OnceLock<LaunchFilter> = OnceLock::new();
    let tools = tools();
    if tools.is_empty() {
        return None;
    }
    let filter = FILTER.get_or_init(launch_filter);
    let is_reported = filter.admits(kernel);
    // initcheck also follows unchecked kernels, because checked ones may read what they write.
    let tools = match is_reported {
        true => tools,
        false if tools.has(Tool::Initcheck) => Tools::default().with(Tool::Initcheck),
        false => return None,
    };
    let mut checker = Checker::new(tools);
    checker.set_memory(crate::initialized::memory());
    let watched = crate::stream_order::allocations();
    checker.watch_memory(&watched);
    Some(Check { checker: Arc::new(Mutex::new(checker)), watched, is_reported })
}

/// The findings to suppress, from the file that `PTXVM_SUPPRESSIONS` names.
pub fn suppressions() -> &'static Suppressions {
    static SUPPRESSIONS: OnceLock<Suppressions> = OnceLock::new();
    SUPPRESSIONS.get_or_init(|| {
        let path = std::env::var_os("PTXVM_SUPPRESSIONS").filter(|path| !path.is_empty());
        let read = path.map(|path| Suppressions::read(path.as_ref()));
        read.unwrap_or_else(|| Ok(Suppressions::default())).unwrap_or_else(|message| {
            log!(error, "PTXVM_SUPPRESSIONS: {message}");
            Suppressions::default()
        })
    })
}

/// Records which stream-ordered memory a launch has used.
pub fn report_uses(kernel: &str, module: &Module, check: &Check) {
    let checker = lock(&check.checker);
    for (index, &(address, bytes)) in check.watched.iter().enumerate() {
        let Some((span, access)) = checker.watched_access(index) else { continue };
        crate::stream_order::uses(address, bytes, || {
            let (source, span) = module.locate(span);
            let place = module.sources().nth(source).map(|source| {
                let position = source.position(span.start);
                format!("it {access} at {}:{}:{}", source.name(), position.line, position.column)
            });
            Use { who: format!("kernel `{kernel}`"), place }
        });
    }
}

/// Findings with the same key are the same: kernel, kind, and places.
type Key = (String, &'static str, u32, Option<u32>);

/// Prints the findings that have not been printed before.
pub fn report(kernel: &str, mut findings: Vec<Located>) {
    static SAID: Mutex<Option<HashSet<Key>>> = Mutex::new(None);
    findings.retain(|found| !suppressions().has(found));
    for found in by_cause(findings) {
        let finding = &found.finding;
        let second = finding.second.map(|site| site.span.start);
        let key = (kernel.to_owned(), finding.kind.code(), finding.first.span.start, second);
        let mut said = lock(&SAID);
        if said.get_or_insert_default().insert(key) {
            let message = found.render(Color::Never);
            log!(error, "{}", message.trim_end());
            crate::report::found(&found);
        }
    }
}
