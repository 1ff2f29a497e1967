//! Small kernels of `tests/run` launched through the library, in the process of the test: what sanitizers can watch
//! (`cargo xtask sanitize`).
//!
//! `alone` is one host thread on the portable path, which is what Miri can run; `together` is four host threads.

mod launch;

use ptxvm::{HostPath, LaunchConfig, LowerOptions};

/// The text of a kernel, in the test itself: not every machine that it runs on has files.
macro_rules! text {
    ($name:ident) => {
        include_str!(concat!("../../../tests/run/", stringify!($name), ".ptx"))
    };
}

/// A test for each kernel, in both ways. Miri leaves out those of the second list, each for the reason that it names.
macro_rules! kernels {
    (quick { $($name:ident)* } slow { $($slow:ident: $why:literal,)* }) => {
        mod alone {
            $(#[test] fn $name() { super::run(text!($name), super::alone); })*
            $(#[test] #[cfg_attr(miri, ignore = $why)] fn $slow() { super::run(text!($slow), super::alone); })*
        }
        mod together {
            $(#[test] fn $name() { super::run(text!($name), super::together); })*
            $(#[test] #[cfg_attr(miri, ignore = $why)] fn $slow() { super::run(text!($slow), super::together); })*
        }
    };
}

kernels! {
    quick {
        alias_locals
        atomics_old_value
        atomics_vector
        atomics_wide
        call_indirect
        call_param
        divergence_nested
        generic_addresses
        local_memory
        loop_divergent
        mbarrier_state
        narrow_memory
        predication
        select_pairs
        shared_reverse
        shfl
        vector_memory
        vote
    }
    slow {
        alloca: "one of its kernels fills half a megabyte of stack for each lane",
        atomics_b128: "Miri has no compare-and-swap of 128 bits",
        atomics_u32: "its threads wait for the first, by turns of many instructions",
        barrier_reduce: "320 threads",
        contended: "thousands of threads, which wait for one another",
        cp_async_groups: "thousands of bytes, one by one",
        device_heap: "allocations of many threads",
        fma_chain: "expected values of thousands of products",
        grid_barrier: "1200 threads, which wait for one another",
        mma_f16_k16: "tables of places and of halves",
        recursion: "thousands of calls",
        spin_lock: "a thousand threads that take turns",
        team_barriers: "thousands of threads",
        team_of_blocks: "thousands of threads",
        team_shared: "thousands of threads",
    }
}

fn alone(config: &mut LaunchConfig) {
    config.deterministic = true;
    config.host_path = Some(HostPath::Portable);
}

fn together(config: &mut LaunchConfig) {
    config.threads = Some(4);
}

#[track_caller]
fn run(text: &str, configure: fn(&mut LaunchConfig)) {
    launch::run(text, &LowerOptions::ALL, configure).unwrap_or_else(|error| panic!("{error}"));
}
