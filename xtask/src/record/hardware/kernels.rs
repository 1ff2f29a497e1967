//! `cargo xtask record hardware --kernels`: what a GPU makes of the kernels of `tests/run`, launch by launch: clusters, tensor maps,
//! `wgmma`, tensor memory, atomics, and everything else that is more than one instruction. What must come out stands in their headers.

use std::fs;
use std::path::Path;

use super::Result;
use super::driver::Driver;
use super::gpu::Gpu;
use super::tensor_map::{self, Map};
use test_utils::date::today;
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
}

/// Why there is nothing to compare.
#[derive(Debug)]
pub enum Missing {
    /// It does not take the module: a target that it does not have, for one.
    Refused(String),
    /// The launch failed.
    Failed(String),
    /// The launch does not end, and nothing more can be launched.
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
    Ok(launches.into_iter().map(|header| case(text, header)).collect())
}

fn case(text: &str, header: header::Launch) -> Option<Case> {
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
            "--max-steps" | "--schedule" | "--threads" => {}
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
fn verdict(machine: &mut impl Machine, text: &str, case: &Case) -> std::result::Result<String, Missing> {
    let after = match machine.launch(text, &case.launch) {
        Ok(after) => after,
        Err(Missing::Refused(error)) => return Ok(format!("refused\t{error}")),
        Err(Missing::Failed(error)) => return Ok(format!("failed\t{error}")),
        Err(Missing::Stuck) => return Err(Missing::Stuck),
    };
    let compare = |(index, words): &(usize, Vec<String>)| {
        let got = after.get(*index).map_or(&[][..], Vec::as_slice);
        case.header.compare(*index, words, got)
    };
    Ok(match case.header.out.iter().try_for_each(compare) {
        Ok(()) => "as expected\t".to_owned(),
        Err(difference) => format!("different\t{}", difference.replace('\n', " ")),
    })
}

/// Launches all kernels of a folder whose names contain one of the words, and writes what came of each.
fn all(
    machine: &mut impl Machine,
    folder: &Path,
    words: &[String],
    mut write: impl FnMut(&str, usize, &str),
) -> Result<()> {
    let mut paths: Vec<_> = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "ptx")) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let text = fs::read_to_string(path)?;
        for (number, case) in cases(&text).map_err(|error| format!("{name}: {error}"))?.iter().enumerate() {
            let Some(case) = case else { continue };
            match verdict(machine, &text, case) {
                Ok(verdict) => write(&name, number + 1, &verdict),
                Err(_) => {
                    write(&name, number + 1, "stuck\t");
                    return Err(format!("launch {} of {name} does not end", number + 1).into());
                }
            }
        }
    }
    Ok(())
}

/// Records what the GPU of this machine makes of the kernels of `tests/run` under `to`.
///
/// # Errors
/// When there is no GPU, or a launch does not end; what came before is recorded.
pub fn record(root: &Path, to: &Path, words: &[String]) -> Result<()> {
    let gpu = Gpu::open()?;
    let (name, target) = (gpu.name()?, gpu.target()?);
    let mut text = format!(
        "# cargo xtask record hardware --kernels: {name}, {target}, driver {}, {}\n\
         # file of tests/run, number of its launch, verdict, what differs or why there is nothing to compare\n",
        gpu.driver()?,
        today(),
    );
    let mut counts = std::collections::BTreeMap::new();
    let ended = all(&mut Driver::of_first_gpu()?, &root.join("tests/run"), words, |file, number, verdict| {
        text += &format!("{file}\t{number}\t{verdict}\n");
        *counts.entry(verdict.split('\t').next().unwrap_or_default().to_owned()).or_insert(0) += 1;
        if !verdict.starts_with("as expected") {
            println!("{file} {number}: {}", verdict.replace('\t', ": "));
        }
    });
    fs::create_dir_all(to)?;
    let path = to.join(format!("{}-{target}.tsv", name.replace(' ', "-")));
    fs::write(&path, text)?;
    let counts: Vec<String> = counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    println!("{}: {}", path.display(), counts.join(", "));
    ended
}

#[cfg(test)]
mod tests;
