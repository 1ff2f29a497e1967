//! The host's clock.
//!
//! `wasm32-unknown-unknown` has no clock: there, each reading counts as one microsecond. It has no threads either, so a
//! launch stays on the calling thread ([`LaunchConfig`](crate::LaunchConfig)). `.ci/run` runs the tests of the vector
//! handlers and kernels there (with node), and on aarch64 (with qemu).

use std::time::Duration;

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use with_clock::Stopwatch;
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub use without_clock::Stopwatch;

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod with_clock {
    use super::Duration;
    use std::time::Instant;

    /// The time since the start.
    #[derive(Debug)]
    pub struct Stopwatch(Instant);

    impl Stopwatch {
        /// Starts now.
        pub fn start() -> Stopwatch {
            Stopwatch(Instant::now())
        }

        /// The time since the start.
        pub fn elapsed(&self) -> Duration {
            self.0.elapsed()
        }
    }
}

/// wasm32-unknown-unknown has no clock, and `Instant::now` panics there.
#[cfg_attr(not(all(target_family = "wasm", target_os = "unknown")), cfg(test))]
mod without_clock {
    use super::Duration;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Each reading is one microsecond after the previous one, so that a kernel that waits for a time terminates.
    #[derive(Debug)]
    pub struct Stopwatch(AtomicU64);

    impl Stopwatch {
        /// Starts now.
        pub fn start() -> Stopwatch {
            Stopwatch(AtomicU64::new(0))
        }

        /// The time since the start.
        pub fn elapsed(&self) -> Duration {
            Duration::from_micros(self.0.fetch_add(1, Ordering::Relaxed) + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_without_a_clock_too() {
        let looks = without_clock::Stopwatch::start();
        assert!(looks.elapsed() < looks.elapsed());
        let time = Stopwatch::start();
        assert!(time.elapsed() <= time.elapsed());
    }
}
