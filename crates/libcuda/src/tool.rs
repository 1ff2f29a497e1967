//! `PTXVM_TOOL=racecheck,synccheck`: tools watch every launch of the process, and say on stderr what they find, each thing once.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ptxvm::{Checker, Color, Located, Tool, Tools};

use crate::log::log;

/// The tools that the environment asks for.
pub fn tools() -> Tools {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    *TOOLS.get_or_init(|| {
        // What one kernel allocates another one may free.
        Tools::from_environment().map(|tools| tools.without(Tool::Leakcheck)).unwrap_or_else(|message| {
            log!(error, "PTXVM_TOOL: {message}");
            Tools::default()
        })
    })
}

/// A checker for a launch, if the environment asks for one.
pub fn checker() -> Option<Arc<Mutex<Checker>>> {
    let tools = tools();
    (!tools.is_empty()).then(|| Checker::shared(tools))
}

/// What makes findings the same: the kernel, the kind, and the places.
type Key = (String, &'static str, u32, Option<u32>);

/// Says what was found, unless it was said before.
pub fn tell(kernel: &str, findings: &[Located]) {
    static SAID: Mutex<Option<HashSet<Key>>> = Mutex::new(None);
    for found in findings {
        let finding = &found.finding;
        let second = finding.second.map(|site| site.span.start);
        let key = (kernel.to_owned(), finding.kind.code(), finding.first.span.start, second);
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get_or_insert_default().insert(key) {
            let message = found.render(Color::Never);
            log!(error, "{}", message.trim_end());
            crate::report::failed(kernel, message.trim_end());
        }
    }
}
