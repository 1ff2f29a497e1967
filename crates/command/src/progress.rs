//! What a terminal has of a kernel that runs: its progress, and Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::report::{code, is_dumb_terminal, say};

/// The first Ctrl-C stops the kernel; the second one ends the command at once.
pub fn stop_on_interrupt(cancel: &Arc<AtomicBool>) {
    let cancel = Arc::clone(cancel);
    let installed = ctrlc::set_handler(move || {
        if cancel.swap(true, Ordering::SeqCst) {
            std::process::exit(code::INTERRUPTED.into());
        }
    });
    // Without a handler, Ctrl-C ends the command at once, and the kernel's results are not shown.
    if let Err(error) = installed {
        say(format_args!("note: Ctrl-C will not keep results: {error}"));
    }
}

/// Progress on a terminal. indicatif draws nothing if stderr is not one.
pub struct Progress(ProgressBar);

impl Progress {
    /// So many launches of a kernel begin.
    pub fn new(launches: u32, kernel: &str) -> Progress {
        let (bar, template) = if launches > 1 {
            (ProgressBar::new(launches.into()), "{spinner} {msg} {wide_bar} {pos}/{len} launches {elapsed}")
        } else {
            (ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}")
        };
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        if is_dumb_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_message(format!("running {kernel}"));
        if !bar.is_hidden() {
            // This starts a thread. If the host cannot start one, the bar does not move.
            let _ = ptxvm::caught(|| bar.enable_steady_tick(Duration::from_millis(200)));
        }
        Progress(bar)
    }

    /// A launch has ended.
    pub fn step(&self) {
        self.0.inc(1);
    }

    /// Nothing runs any more.
    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}
