//! The kernels of `tests/run`, launched through the library in one process, where that can be: as `run`, in seconds.
//!
//! A kernel that crashes takes all others with it: `run` says which.

mod launch;

use libtest_mimic::{Arguments, Failed, Trial};
use ptxvm::debug::{Debugger, Next, Stop};
use ptxvm::{Fault, HostPath, LaunchConfig, LowerOptions, NativeCode};

/// A way to configure a launch.
type Way = (&'static str, fn(&mut LaunchConfig));

const WAYS: [Way; 5] = [
    ("default", |_| {}),
    ("portable", |config| config.host_path = Some(HostPath::Portable)),
    ("native", |config| config.native_code = Some(NativeCode::Always)),
    ("schedule_1", |config| config.schedule = Some(1)),
    ("threads_3", |config| config.threads = Some(3)),
];

fn main() {
    let arguments = Arguments::from_args();
    let folder = test_utils::root().join("tests/run");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut trials = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if path.extension().is_none_or(|extension| extension != "ptx") || !launch::can_run(&text) {
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let of_debugger = text.clone();
        trials.push(Trial::test(format!("{stem}::debugger"), move || {
            let run: launch::Engine = |launch| launch.debug(&mut Wandering::default());
            launch::run_on(&of_debugger, &LowerOptions::ALL, |_| {}, run).map_err(Failed::from)
        }));
        let mut add = |way: &str, passes: LowerOptions, configure: fn(&mut LaunchConfig)| {
            let text = text.clone();
            trials.push(Trial::test(format!("{stem}::{way}"), move || {
                launch::run(&text, &passes, configure).map_err(Failed::from)
            }));
        };
        for (way, configure) in WAYS {
            add(way, LowerOptions::ALL, configure);
        }
        // Without each pass of the lowering, and without any.
        for pass in LowerOptions::PASSES {
            let options = LowerOptions::without(pass).expect("a pass");
            add(&format!("without_{pass}"), options, |_| {});
        }
        add("without_passes", LowerOptions::NONE, |_| {});
    }
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&arguments, trials).exit();
}

/// Leads a launch back several times: when it has gone a while, and when it has ended.
#[derive(Default)]
struct Wandering {
    turns: u64,
    returns: u64,
    /// A number that changes with every turn.
    mixed: u64,
}

impl Wandering {
    fn next(&mut self, stop: &Stop<'_, '_>, is_end: bool) -> Next {
        // It goes on from what the last turn left, so that a launch that has gone back does not go back at the same moment again.
        self.mixed = (self.mixed ^ (stop.time() + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let wants = is_end || self.mixed >> 54 == 0;
        // Large kernels take their time.
        self.turns += 1;
        if !wants || self.returns == 6 || self.turns > 20_000 {
            return Next::Go;
        }
        self.returns += 1;
        Next::Back((self.mixed >> 32) % (stop.time() + 1))
    }
}

impl Debugger for Wandering {
    fn turn(&mut self, stop: &mut Stop<'_, '_>) -> Next {
        self.next(stop, false)
    }

    fn fault(&mut self, stop: &mut Stop<'_, '_>, _: &Fault) -> Next {
        self.next(stop, true)
    }

    fn end(&mut self, stop: &mut Stop<'_, '_>) -> Next {
        self.next(stop, true)
    }
}
