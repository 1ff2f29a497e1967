//! `cargo xtask record hardware --kernels`: what a GPU makes of the kernels of `tests/run`, launch by launch: clusters, tensor maps,
//! `wgmma`, tensor memory, atomics, and everything else that is more than one instruction. What must come out stands in their headers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use rayon::prelude::*;

use super::driver::Driver;
use super::gpu::Gpu;
use super::tensor_map::{self, Map};
use super::{Result, Source};
use test_utils::header;

/// An argument of a launch.
pub enum Argument {
    /// By value, in as many bytes as the parameter has.
    Number(u64),
    /// The address of a new array with these bytes.
    Array(Vec<u8>),
    /// A tensor map of a new array.
    Map(Map, Vec<u8>),
}

/// One launch of a kernel.
pub struct Launch {
    /// The name of the kernel.
    pub entry: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster, if the launch says so.
    pub cluster: Option<[u32; 3]>,
    /// All blocks are there at once.
    pub cooperative: bool,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// In the order of the parameters.
    pub arguments: Vec<Argument>,
    /// Variables in global memory, and what they hold at first.
    pub variables: Vec<(String, Vec<u8>)>,
}

/// Why there is nothing to compare.
#[derive(Debug)]
pub enum Missing {
    /// It does not take the module: a target that it does not have, for one.
    Refused(String),
    /// The launch failed.
    Failed(String),
    /// The launch does not end.
    Stuck,
}

/// Something that launches kernels.
pub trait Machine {
    /// The bytes of the arrays of all arguments afterwards; of numbers none.
    fn launch(&mut self, text: &str, launch: &Launch) -> std::result::Result<Vec<Vec<u8>>, Missing>;
}

/// A launch that a header asks for, and what must come out.
struct Case {
    launch: Launch,
    header: header::Launch,
}

/// The launches of a file that a GPU can be asked about: those that end well and leave something in arrays that are no files.
fn cases(text: &str) -> std::result::Result<Vec<Option<Case>>, String> {
    let launches = header::parse(text)?;
    let case_of = |header: header::Launch| Ok(case(text, header.variables()?, header));
    launches.into_iter().map(case_of).collect()
}

fn case(text: &str, variables: Vec<(String, Vec<u8>)>, header: header::Launch) -> Option<Case> {
    if header.exit != 0 || header.out.is_empty() {
        return None;
    }
    // No GPU has addresses of 32 bits any more, and without `--block` ptxvm takes what the kernel requires.
    let has_block = header.words.iter().any(|word| word == "--block");
    if text.contains(".address_size 32") || text.contains(".reqntid") && !has_block {
        return None;
    }
    let mut launch = Launch {
        entry: only_entry(text).unwrap_or_default(),
        grid: [1; 3],
        block: [1; 3],
        cluster: None,
        cooperative: false,
        shared: 0,
        arguments: Vec::new(),
        variables,
    };
    let mut words = header.words.iter();
    while let Some(option) = words.next() {
        if option == "--cooperative" {
            launch.cooperative = true;
            continue;
        }
        // No GPU promises an order of blocks.
        if option == "--deterministic" {
            return None;
        }
        let value = words.next()?;
        match option.as_str() {
            "--grid" => launch.grid = extents(value)?,
            "--block" => launch.block = extents(value)?,
            "--cluster" => launch.cluster = Some(extents(value)?),
            "--shared" => launch.shared = value.parse().ok()?,
            "--entry" => launch.entry = value.clone(),
            "--arg" => launch.arguments.push(argument(value)?),
            "--max-steps" | "--schedule" | "--threads" | "--set" => {}
            _ => return None,
        }
    }
    (!launch.entry.is_empty()).then_some(Case { launch, header })
}

/// The only kernel of a text.
fn only_entry(text: &str) -> Option<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut names = code.filter_map(|line| line.split_once(".entry ").map(|(_, rest)| rest));
    let name = names.next()?.split(|c: char| !(c.is_alphanumeric() || "_$%".contains(c))).next()?;
    names.next().is_none().then(|| name.to_owned())
}

/// `8`, `8,2` or `8x2x1`.
fn extents(text: &str) -> Option<[u32; 3]> {
    let mut all = [1; 3];
    for (place, part) in all.iter_mut().zip(text.split([',', 'x'])) {
        *place = part.parse().ok()?;
    }
    Some(all)
}

fn argument(text: &str) -> Option<Argument> {
    if let Some(map) = text.strip_prefix("tensormap(") {
        let (array, options) = map.strip_suffix(')')?.split_once(',')?;
        let (ty, shape, bytes) = array_of(array)?;
        return Some(Argument::Map(tensor_map::parse(ty, &shape, options)?, bytes));
    }
    match text.parse() {
        Ok(number) => Some(Argument::Number(number)),
        Err(_) => array_of(text).map(|(_, _, bytes)| Argument::Array(bytes)),
    }
}

/// Type, extents and bytes of `u32[64]`, `u32[32x5]` or `u32[1]=7`.
fn array_of(text: &str) -> Option<(&str, Vec<u64>, Vec<u8>)> {
    let (array, value) = text.split_once('=').unwrap_or((text, "0"));
    let (ty, shape) = array.strip_suffix(']')?.split_once('[')?;
    let shape: Vec<u64> = shape.split('x').map(|extent| extent.parse().ok()).collect::<Option<_>>()?;
    let words = [format!("{value}*{}", shape.iter().product::<u64>())];
    Some((ty, shape, header::expand(&words, ty).ok()?.concat()))
}

/// What came of a launch, as the record has it.
fn verdict(machine: &mut impl Machine, text: &str, case: &Case) -> String {
    let after = match machine.launch(text, &case.launch) {
        Ok(after) => after,
        Err(Missing::Refused(error)) => return format!("refused\t{error}"),
        Err(Missing::Failed(error)) => return format!("failed\t{error}"),
        Err(Missing::Stuck) => return "stuck\t".to_owned(),
    };
    let compare = |(index, words): &(usize, Vec<String>)| {
        let got = after.get(*index).map_or(&[][..], Vec::as_slice);
        case.header.compare(*index, words, got)
    };
    match case.header.out.iter().try_for_each(compare) {
        Ok(()) => "as expected\t".to_owned(),
        Err(difference) => format!("different\t{}", difference.replace('\n', " ")),
    }
}

/// What a process prints before the verdict on its launch.
const VERDICT: &str = "verdict: ";

/// A launch of `tests/run`: the file, and which of its launches, from 1 on. Its text is `FILE:NUMBER`.
#[derive(Clone, Debug)]
pub struct Name {
    file: String,
    number: usize,
}

impl FromStr for Name {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Name, &'static str> {
        let (file, number) = text.split_once(':').ok_or("not FILE:NUMBER")?;
        Ok(Name { file: file.to_owned(), number: number.parse().map_err(|_| "not a number of a launch")? })
    }
}

/// The launches that a GPU can be asked about, of all kernels of a folder whose names contain one of the words.
fn names(folder: &Path, words: &[String]) -> Result<Vec<Name>> {
    let mut paths: Vec<_> = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut names = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "ptx")) {
        let file = path.file_stem().unwrap_or_default().to_string_lossy();
        if !words.is_empty() && !words.iter().any(|word| file.contains(word.as_str())) {
            continue;
        }
        let cases = cases(&fs::read_to_string(path)?).map_err(|error| format!("{file}: {error}"))?;
        let there = (1..).zip(cases).filter_map(|(number, case)| case.map(|_| number));
        names.extend(there.map(|number| Name { file: file.to_string(), number }));
    }
    Ok(names)
}

/// Makes one launch of a folder's kernels, and says what came of it.
fn one(machine: &mut impl Machine, folder: &Path, name: &Name) -> Result<String> {
    let text = fs::read_to_string(folder.join(&name.file).with_extension("ptx"))?;
    let case = cases(&text)?.into_iter().nth(name.number - 1).flatten().ok_or("no such launch")?;
    Ok(verdict(machine, &text, &case))
}

/// Makes one launch on the first GPU, and prints what came of it.
///
/// # Errors
/// When there is no GPU, or no such launch.
pub fn print_one(root: &Path, name: &Name) -> Result<()> {
    println!("{VERDICT}{}", one(&mut Driver::of_first_gpu()?, &root.join("tests/run"), name)?);
    Ok(())
}

/// Records what the GPU of this machine makes of the kernels of `tests/run` under `to`. Each launch has a process of its
/// own: after a fault the driver does nothing more for the one in which it was.
///
/// # Errors
/// When there is no GPU.
pub fn record(root: &Path, to: &Path, words: &[String]) -> Result<()> {
    let gpu = Gpu::open()?;
    let source = Source::new("cargo xtask record hardware --kernels", &gpu)?;
    let program = std::env::current_exe()?;
    let ask = |name: &Name| {
        let launch = format!("{}:{}", name.file, name.number);
        let output = Command::new(&program).args(["record", "hardware", "--launch", &launch]).output();
        let verdict = match output {
            // What the kernel itself prints stands before.
            Ok(output) if output.status.success() => {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                text.rsplit(VERDICT).next().unwrap_or_default().to_owned()
            }
            Ok(output) => format!("failed\t{}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => format!("failed\t{error}"),
        };
        (name.clone(), verdict.trim_end_matches('\n').replace('\n', " "))
    };
    let Source { recorded_by, gpu, target, driver, date } = &source;
    let mut text = format!(
        "# {recorded_by}: {gpu}, {target}, driver {driver}, {date}\n\
         # file of tests/run, number of its launch, verdict, what differs or why there is nothing to compare\n",
    );
    let mut counts = BTreeMap::new();
    let answered: Vec<_> = names(&root.join("tests/run"), words)?.par_iter().map(ask).collect();
    for (Name { file, number }, verdict) in answered {
        text += &format!("{file}\t{number}\t{verdict}\n");
        *counts.entry(verdict.split('\t').next().unwrap_or_default().to_owned()).or_insert(0) += 1;
        if !verdict.starts_with("as expected") {
            println!("{file} {number}: {}", verdict.replace('\t', ": "));
        }
    }
    fs::create_dir_all(to)?;
    let path = to.join(source.file("", "tsv"));
    fs::write(&path, text)?;
    let counts: Vec<String> = counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    println!("{}: {}", path.display(), counts.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests;
