//! PyTorch as users have it: its wheel from PyPI beside ours, no line of a program changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::{Outcome, Site, root, succeed};

/// A release, and how much of it must pass at least.
struct Release {
    name: &'static str,
    /// Pairs of operator and dtype.
    pairs: usize,
    /// Groups of our script.
    groups: usize,
    /// What projects build on it.
    projects: usize,
    /// What the last of these needs: a compiler for the CUDA version of this release.
    compiler: &'static [&'static str],
}

const RELEASES: [Release; 2] = [
    Release { name: "2.8.0", pairs: 3560, groups: 41, projects: 13, compiler: &[] },
    Release {
        name: "2.15.0",
        pairs: 3620,
        groups: 41,
        projects: 14,
        compiler: &[
            "nvidia-cuda-nvcc==13.2.*",
            "nvidia-nvvm==13.2.*",
            "nvidia-cuda-crt==13.2.*",
            "nvidia-cuda-cccl==13.2.*",
            "ninja",
        ],
    },
];
/// What all releases need beside themselves.
const PACKAGES: [&str; 6] =
    ["numpy", "expecttest", "scipy", "liger-kernel==0.8.5", "transformers==5.24.0", "setuptools"];
/// The groups that run without NVIDIA's libraries: what would call each of them on a GPU, and kernels.
const OF_STUBS: &str = "queries convolutions recurrent fused_attention fourier linear_algebra sparse compile_training triton_kernels";
/// So many processes go through the table of operators.
const PARTS: usize = 2;

/// Runs our script and PyTorch's own table of operators on each release, and measures. With words for the client, it runs
/// these groups of our script alone.
///
/// # Errors
/// When a release cannot be installed, or a script does not come to its end.
pub fn run(site: &Site) -> Result<Outcome, String> {
    let wheel = wheel()?;
    let mut outcome = Outcome::default();
    for Release { name: release, pairs, groups, projects, compiler } in RELEASES {
        let site = site.within(release)?;
        let torch = format!("torch=={release}");
        let python = site.python(&[&[&*torch], &PACKAGES[..], compiler].concat())?;
        let install = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps"];
        succeed(Command::new(&python).args(install).arg(&wheel))?;
        let script = |name: &str, text: &str| {
            let path = site.script(name, text)?;
            let mut command = Command::new(python.with_file_name("ptxvm"));
            command.args(["exec", "--quiet", "--device", &site.device, "--"]).arg(&python).arg(&path);
            command.current_dir(&site.scratch);
            for name in ["TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"] {
                command.env(name, site.scratch.join(name));
            }
            Ok::<Command, String>(command)
        };
        let mut command = script("groups.py", include_str!("scripts/torch_groups.py"))?;
        let of_groups = Outcome::of_script(&site.output(command.args(&site.words), "groups")?, groups)?;
        if !site.words.is_empty() {
            outcome.add(of_groups);
            continue;
        }
        // By themselves: among thousands of pairs all failed groups are less than one of a hundred.
        let held = |what: &str, outcome: Outcome| {
            println!("PyTorch {release}, {what}: {outcome}");
            outcome.hold()
        };
        held("groups", of_groups)?;
        let mut command = script("projects.py", include_str!("scripts/torch_projects.py"))?;
        held("projects", Outcome::of_script(&site.output(&mut command, "projects")?, projects)?)?;
        let words = OF_STUBS.split(' ');
        let mut command = script("groups.py", include_str!("scripts/torch_groups.py"))?;
        let text = without_libraries(&site, &python, || site.output(command.args(words.clone()), "stubs"))?;
        held("groups without NVIDIA's libraries", Outcome::of_script(&text, words.count())?)?;
        print!("{}", site.output(&mut script("speed.py", include_str!("scripts/torch_speed.py"))?, "speed")?);
        let operators = include_str!("scripts/torch_opinfo.py");
        let texts: Vec<_> = thread::scope(|scope| {
            let part = |part: usize| {
                let (site, script) = (&site, &script);
                scope.spawn(move || {
                    let mut command = script("operators.py", operators)?;
                    command.args([part.to_string(), PARTS.to_string()]);
                    site.output(&mut command, &format!("operators-{part}"))
                })
            };
            let parts: Vec<_> = (0..PARTS).map(part).collect();
            parts.into_iter().map(|part| part.join().expect("no panic")).collect()
        });
        for text in texts {
            outcome.add(Outcome { share: 99, ..Outcome::of_script(&text?, pairs / PARTS)? });
        }
    }
    Ok(outcome)
}

/// Runs `f` while stubs take the places of NVIDIA's libraries.
fn without_libraries<T>(
    site: &Site,
    python: &Path,
    f: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let theirs = site.packages().join("nvidia");
    let aside = theirs.with_extension("aside");
    let rename =
        |from: &Path, to: &Path| fs::rename(from, to).map_err(|error| format!("{}: {error}", from.display()));
    rename(&theirs, &aside)?;
    // They stay beside PyTorch's own libraries, whose search path comes there last.
    let result = succeed(Command::new(python.with_file_name("ptxvm")).arg("stubs")).and_then(|()| f());
    rename(&aside, &theirs)?;
    result
}

/// The wheel of our Python package, built now.
pub fn wheel() -> Result<PathBuf, String> {
    succeed(Command::new(root().join(".ci/python")).args(["--release", "--no-tests"]).current_dir(root()))?;
    let wheels = root().join("target/python/wheels");
    let files = fs::read_dir(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    files.flatten().map(|file| file.path()).next().ok_or_else(|| format!("no wheel in {}", wheels.display()))
}
