//! PyTorch as users have it: its wheel from PyPI beside ours, no line of a program changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::{Outcome, Site, root, succeed};

/// Releases, each with how many pairs of operator and dtype and how many groups must pass at least.
const RELEASES: [(&str, usize, usize); 2] = [("2.8.0", 3560, 41), ("2.15.0", 3620, 41)];
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
    for (release, pairs, groups) in RELEASES {
        let site = site.within(release)?;
        let python = site.python(&[&format!("torch=={release}"), "numpy", "expecttest", "scipy"])?;
        let install = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps"];
        succeed(Command::new(&python).args(install).arg(&wheel))?;
        let script = |name: &str, text: &str| {
            let path = site.scratch.join(name);
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
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
        println!("PyTorch {release}, groups: {of_groups}");
        of_groups.hold()?;
        let words = OF_STUBS.split(' ');
        let mut command = script("groups.py", include_str!("scripts/torch_groups.py"))?;
        let text = without_libraries(&site, &python, || site.output(command.args(words.clone()), "stubs"))?;
        let of_stubs = Outcome::of_script(&text, words.clone().count())?;
        println!("PyTorch {release}, groups without NVIDIA's libraries: {of_stubs}");
        of_stubs.hold()?;
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
fn wheel() -> Result<PathBuf, String> {
    succeed(Command::new(root().join(".ci/python")).args(["--release", "--no-tests"]).current_dir(root()))?;
    let wheels = root().join("target/python/wheels");
    let files = fs::read_dir(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    files.flatten().map(|file| file.path()).next().ok_or_else(|| format!("no wheel in {}", wheels.display()))
}
