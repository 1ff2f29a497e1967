//! Signals that are meant for the program, and come to this process. Those of a terminal go to the program, too, and are left to it.

#[cfg(target_os = "linux")]
pub use linux::Forwarded;
#[cfg(not(target_os = "linux"))]
pub use other::Forwarded;

#[cfg(target_os = "linux")]
mod linux {
    use std::process::Child;
    use std::sync::atomic::{AtomicI32, Ordering};
    use std::thread;

    use nix::libc::{SI_KERNEL, siginfo_t};
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    use signal_hook::iterator::exfiltrator::raw::WithRawSiginfo;
    use signal_hook::iterator::{Handle, SignalsInfo};

    /// What ends a program, unless it decides otherwise, and what it is told by.
    const SIGNALS: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

    /// The process that gets them; 0 if there is none.
    static PROGRAM: AtomicI32 = AtomicI32::new(0);

    /// Signals that are caught, and wait. A program that is started does not catch them: only handlers that are none outlive its start.
    pub struct Forwarded {
        waiting: Option<SignalsInfo<WithRawSiginfo>>,
        handle: Option<Handle>,
    }

    impl Forwarded {
        /// From now on. Where that cannot be, they do to this process what they always do.
        pub fn begin() -> Forwarded {
            let waiting = SignalsInfo::new(SIGNALS).ok();
            Forwarded { handle: waiting.as_ref().map(SignalsInfo::handle), waiting }
        }

        /// They go to the program, also those that came before.
        pub fn to(&mut self, program: &Child) {
            PROGRAM.store(program.id().cast_signed(), Ordering::SeqCst);
            let Some(mut waiting) = self.waiting.take() else { return };
            let _ = thread::Builder::new().spawn(move || waiting.forever().for_each(forward));
        }

        /// The program has ended: its number may be another's.
        pub fn end(&self) {
            PROGRAM.store(0, Ordering::SeqCst);
            self.handle.iter().for_each(Handle::close);
        }
    }

    fn forward(came: siginfo_t) {
        let signal = Signal::try_from(came.si_signo);
        let program = PROGRAM.load(Ordering::SeqCst);
        // The kernel sends the signals of a terminal, to all processes there.
        if let Ok(signal) = signal
            && came.si_code != SI_KERNEL
            && program > 0
        {
            let _ = kill(Pid::from_raw(program), signal);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::process::Child;

    /// Ctrl-C goes to the program as well, which decides.
    pub struct Forwarded;

    impl Forwarded {
        pub fn begin() -> Forwarded {
            let _ = ctrlc::set_handler(|| ());
            Forwarded
        }

        pub fn to(&mut self, _program: &Child) {}

        pub fn end(&self) {}
    }
}
