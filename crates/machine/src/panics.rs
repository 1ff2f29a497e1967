//! Containment of panics: a defect of ptxvm, or of a callback such as an observer, ends one launch or one call with an error.
//!
//! [`caught`] runs launches, pieces of a stream's work, and calls of the driver, the command and the Python package
//! (`libcudart` and `capi` catch panics themselves). No host thread waits for work that panicked, and partial results
//! of that work are never used. Narrowest tests: `ptxvm`: `panics`; `libcuda`: `planted.rs`.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

thread_local! {
    /// How many nested calls of [`caught`] this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The message and place of this thread's last panic, if [`report_briefly`] was called.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs some work and catches a panic.
///
/// # Errors
/// The message of the panic, and its place if it is known ([`report_briefly`]). The state that the work was changing
/// may be inconsistent.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    DEPTH.set(DEPTH.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    result.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        SAID.take().or(text).unwrap_or_else(|| "no message".to_owned())
    })
}

/// Makes the process print nothing for a panic that [`caught`] returns as an error; the receiver of the error reports
/// it in one line. For programs, not for libraries, since it wraps the current panic hook. With `RUST_BACKTRACE`,
/// Rust's message is printed as well.
pub fn report_briefly() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        let wants_all = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
        std::panic::set_hook(Box::new(move |info| {
            if DEPTH.get() > 0 {
                SAID.replace(Some(describe(info)));
            }
            if DEPTH.get() == 0 || wants_all {
                before(info);
            }
        }));
    });
}

/// `index out of bounds: the len is 3 but the index is 5, at crates/machine/src/mask.rs:12`
fn describe(info: &PanicHookInfo<'_>) -> String {
    let text = info.payload_as_str().unwrap_or("no message");
    match info.location() {
        Some(place) => format!("{text}, at {}:{}", place.file(), place.line()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_what_it_said() {
        assert_eq!(caught(|| 7), Ok(7));
        assert_eq!(
            caught(|| panic!("this is part of the test")),
            Err::<(), _>("this is part of the test".into())
        );
        let number = 3;
        let text = caught(|| panic!("{number} is part of the test"));
        assert_eq!(text, Err::<(), _>("3 is part of the test".to_owned()));
        assert_eq!(caught(|| std::panic::panic_any(5)), Err::<(), _>("no message".to_owned()));
    }
}
