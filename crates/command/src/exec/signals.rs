//! Forwards signals that are sent to this process but are meant for the program. Signals from a terminal are not
//! forwarded: the program gets these itself.

use std::process::Child;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use nix::libc::{SI_KERNEL, siginfo_t};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::exfiltrator::raw::WithRawSiginfo;
use signal_hook::iterator::{Handle, SignalsInfo};

/// Signals that end a program by default, or that notify it.
const SIGNALS: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// The process that receives them; 0 if there is none.
static PROGRAM: AtomicI32 = AtomicI32::new(0);

/// Signals that are caught and queued. The program does not inherit the handlers: `exec` resets all but ignored
/// signals.
pub struct Forwarded {
    waiting: Option<SignalsInfo<WithRawSiginfo>>,
    handle: Option<Handle>,
}

impl Forwarded {
    /// Begins to catch signals. If this fails, they have their default effect on this process.
    pub fn begin() -> Forwarded {
        let waiting = SignalsInfo::new(SIGNALS).ok();
        Forwarded { handle: waiting.as_ref().map(SignalsInfo::handle), waiting }
    }

    /// Forwards signals to the program, including those caught before.
    pub fn to(&mut self, program: &Child) {
        PROGRAM.store(program.id().cast_signed(), Ordering::SeqCst);
        let Some(mut waiting) = self.waiting.take() else { return };
        let _ = thread::Builder::new().spawn(move || waiting.forever().for_each(forward));
    }

    /// Stops forwarding: the program has ended, and its process id may be reused.
    pub fn end(&self) {
        PROGRAM.store(0, Ordering::SeqCst);
        self.handle.iter().for_each(Handle::close);
    }
}

fn forward(came: siginfo_t) {
    let signal = Signal::try_from(came.si_signo);
    let program = PROGRAM.load(Ordering::SeqCst);
    // Signals with SI_KERNEL come from a terminal, which sends them to all processes there.
    if let Ok(signal) = signal
        && came.si_code != SI_KERNEL
        && program > 0
    {
        let _ = kill(Pid::from_raw(program), signal);
    }
}
