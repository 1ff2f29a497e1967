//! Every kernel of `tests/run`, launched in every way: what comes out must be what its header says.

#[path = "common/mod.rs"]
mod common;

use std::path::Path;

use half::{bf16, f16};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let mut arguments = Arguments::from_args();
    // Each launch uses all cores by itself.
    arguments.test_threads.get_or_insert(2);
    let folder = common::root().join("tests/run");
    let mut trials = Vec::new();
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_none_or(|extension| extension != "ptx") {
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (way, options, host_path) in ways() {
            let path = path.clone();
            trials.push(Trial::test(format!("{stem}::{way}"), move || {
                run_file(&path, &options, host_path).map_err(Failed::from)
            }));
        }
    }
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&arguments, trials).exit();
}

/// The ways to launch: a name, options, and a host path to force.
fn ways() -> Vec<(String, Vec<&'static str>, Option<&'static str>)> {
    let mut ways = vec![
        ("default".to_owned(), vec![], None),
        ("deterministic".to_owned(), vec!["--deterministic"], None),
        ("schedule_1".to_owned(), vec!["--schedule", "1"], None),
        ("threads_2".to_owned(), vec!["--threads", "2"], None),
        ("reference".to_owned(), vec!["--engine", "reference"], None),
    ];
    ways.extend(common::host_paths().into_iter().map(|path| (path.to_owned(), vec![], Some(path))));
    ways
}

/// One launch that a header asks for.
#[derive(Debug, Default)]
struct Launch {
    words: Vec<String>,
    exit: i32,
    stdout: Vec<String>,
    stderr: Vec<String>,
    /// Argument and its expected elements.
    out: Vec<(usize, Vec<String>)>,
}

/// The launches of a file's header.
fn parse_header(text: &str) -> Result<Vec<Launch>, String> {
    let mut launches: Vec<Launch> = Vec::new();
    for line in text.lines().map_while(|line| line.strip_prefix("//")) {
        let Some((key, value)) = line.trim().split_once(':') else { continue };
        let value = value.trim();
        if key == "RUN" {
            let words = value.split_whitespace().map(str::to_owned).collect();
            launches.push(Launch { words, ..Launch::default() });
            continue;
        }
        let is_key = matches!(key, "EXIT" | "STDOUT" | "STDERR") || key.starts_with("OUT ");
        if !is_key {
            continue;
        }
        let launch = launches.last_mut().ok_or_else(|| format!("`{key}` stands before the first RUN"))?;
        match key {
            "EXIT" => launch.exit = value.parse().map_err(|_| format!("EXIT: {value}"))?,
            "STDOUT" => launch.stdout.push(value.to_owned()),
            "STDERR" => launch.stderr.push(value.to_owned()),
            _ => {
                let index = key["OUT ".len()..].parse().map_err(|_| format!("`{key}`"))?;
                let words = value.split_whitespace().map(str::to_owned);
                match launch.out.iter_mut().find(|(i, _)| *i == index) {
                    Some((_, list)) => list.extend(words),
                    None => launch.out.push((index, words.collect())),
                }
            }
        }
    }
    if launches.is_empty() { Err("the header has no RUN".to_owned()) } else { Ok(launches) }
}

fn run_file(path: &Path, options: &[&str], host_path: Option<&str>) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    for launch in parse_header(&text)? {
        launch
            .check(path, options, host_path)
            .map_err(|error| format!("RUN: {}\n{error}", launch.words.join(" ")))?;
    }
    Ok(())
}

impl Launch {
    fn check(&self, path: &Path, options: &[&str], host_path: Option<&str>) -> Result<(), String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let saved = |index: usize| directory.path().join(format!("{index}.bin"));
        let mut command = common::ptxvm();
        command.arg("run").arg(path).args(&self.words);
        // A header may ask for one of the ways itself, or for what excludes it.
        let asked = |option: &str| self.words.iter().any(|word| word == option);
        let excluded = |option: &str| match option {
            "--deterministic" => asked("--threads"),
            "--threads" => asked("--deterministic"),
            _ => false,
        };
        command.args(if options.iter().any(|o| asked(o) || excluded(o)) { &[] } else { options });
        command.current_dir(path.parent().unwrap_or(Path::new(".")));
        if let Some(host_path) = host_path {
            command.env("PTXVM_HOST_PATH", host_path);
        }
        for (index, _) in &self.out {
            command.arg("--out").arg(format!("{index}={}", saved(*index).display()));
        }
        let outcome = common::finish(&mut command)?;
        if outcome.code != Some(self.exit) {
            return Err(format!("expected exit code {}\n{}", self.exit, outcome.transcript()));
        }
        for (wanted, text, name) in
            [(&self.stdout, &outcome.stdout, "stdout"), (&self.stderr, &outcome.stderr, "stderr")]
        {
            if let Some(missing) = wanted.iter().find(|wanted| !text.contains(wanted.as_str())) {
                return Err(format!("{name} does not contain `{missing}`\n{}", outcome.transcript()));
            }
        }
        for (index, words) in &self.out {
            let got = std::fs::read(saved(*index)).map_err(|error| error.to_string())?;
            let ty = self.element_type(*index)?;
            let wanted = expand(words, &ty)?;
            let width = width(&ty);
            let got: Vec<u8> = got
                .chunks(width)
                .zip(wanted.iter().map(Some).chain(std::iter::repeat(None)))
                .flat_map(|(got, wanted)| match wanted {
                    // Any NaN is as good as another where `nan` is asked for.
                    Some(wanted) if wanted.is_empty() && is_nan(got, &ty) => Vec::new(),
                    _ => got.to_vec(),
                })
                .collect();
            let wanted: Vec<u8> = wanted.concat();
            common::compare(&got, &wanted, width).map_err(|error| format!("argument {index}: {error}"))?;
        }
        Ok(())
    }

    /// The element type that the specification of an argument names: `u32[64]=7`, `@x.npy:bf16`.
    fn element_type(&self, index: usize) -> Result<String, String> {
        let specs = self.words.iter().zip(self.words.iter().skip(1)).filter(|(option, _)| *option == "--arg");
        let spec =
            specs.map(|(_, spec)| spec).nth(index).ok_or_else(|| format!("there is no argument {index}"))?;
        let name = match spec.split_once('[') {
            Some((name, _)) => Some(name),
            None => spec.rsplit_once(':').map(|(_, name)| name),
        };
        name.map(str::to_owned).ok_or_else(|| format!("`{spec}` does not name an element type"))
    }
}

/// Size of an element.
fn width(ty: &str) -> usize {
    match ty {
        "bytes" | "bool" => 1,
        _ => ty.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().map_or(1, |bits| bits / 8),
    }
}

fn is_nan(bytes: &[u8], ty: &str) -> bool {
    let bits = bytes.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
    match ty {
        "f16" => f16::from_bits(bits as u16).is_nan(),
        "bf16" => bf16::from_bits(bits as u16).is_nan(),
        "f32" => f32::from_bits(bits as u32).is_nan(),
        "f64" => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// The bytes of each element of a list such as `1 2 .. 9 7*3`; none for `nan`.
fn expand(words: &[String], ty: &str) -> Result<Vec<Vec<u8>>, String> {
    let integer = |word: &str| word.parse::<i128>().map_err(|_| format!("`{word}` beside `..`"));
    let mut elements = Vec::new();
    let mut i = 0;
    while let Some(word) = words.get(i) {
        if word == ".." {
            let [.., first, second] = words.get(..i).unwrap_or_default() else {
                return Err("`..` needs two values before it".to_owned());
            };
            let last = integer(words.get(i + 1).ok_or("`..` needs a value after it")?)?;
            let (mut value, step) = (integer(second)?, integer(second)? - integer(first)?);
            if step == 0 || (last - value) % step != 0 || (last - value) / step < 1 {
                return Err(format!("`{first} {second} .. {last}` does not get there"));
            }
            while value != last {
                value += step;
                elements.push(encode(&value.to_string(), ty)?);
            }
            i += 2;
            continue;
        }
        match word.split_once('*') {
            Some((value, count)) => {
                let count: usize = count.parse().map_err(|_| format!("`{word}`"))?;
                let element = encode(value, ty)?;
                elements.extend(std::iter::repeat_n(element, count));
            }
            None => elements.push(encode(word, ty)?),
        }
        i += 1;
    }
    Ok(elements)
}

/// The bytes of one element.
fn encode(word: &str, ty: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("`{word}` is no {ty}");
    let bytes = width(ty);
    if let Some(hex) = word.strip_prefix("0x") {
        let bits = u64::from_str_radix(hex, 16).map_err(|_| wrong())?;
        return Ok(bits.to_le_bytes()[..bytes].to_vec());
    }
    if word == "nan" {
        return Ok(Vec::new());
    }
    Ok(match ty {
        "f16" => f16::from_f64(word.parse().map_err(|_| wrong())?).to_le_bytes().to_vec(),
        "bf16" => bf16::from_f64(word.parse().map_err(|_| wrong())?).to_le_bytes().to_vec(),
        "f32" => word.parse::<f32>().map_err(|_| wrong())?.to_le_bytes().to_vec(),
        "f64" => word.parse::<f64>().map_err(|_| wrong())?.to_le_bytes().to_vec(),
        _ => word.parse::<i128>().map_err(|_| wrong())?.to_le_bytes()[..bytes].to_vec(),
    })
}
