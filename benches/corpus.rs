//! How many instructions of threads the launches of tests/corpus execute in a second, on grids large enough to be worth it.
//!
//! `cargo bench -p ptxvm-command --bench corpus` prints a table, the slowest first; a word behind `--` picks kernels that have it in their name.
//! A launch is made as often as it takes for some 2^18 threads, by a higher grid: nearly all kernels do not look at `%ctaid.z`, and do the same
//! work again. What does look there, or counts blocks and tells them so by atomic operations, is launched as it is, and marked. Where a row of the grid
//! has few threads, blocks along z run side by side; what they do alike is then done once for all of them, so such launches are marked, too: blocks
//! that do look at `%ctaid.z` take longer. One host thread. A product of matrices counts as the multiply-adds that it is, as many for each of its
//! threads: `m * n * k` of its shape, divided by the threads that make it together.

// It runs the command as the tests do. Only a test or a bench of its package learns where cargo put it.
#[path = "../crates/command/tests/common/mod.rs"]
mod common;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Threads of a launch.
const THREADS: u64 = 1 << 18;
/// Launches of each, of which the median counts.
const REPEATS: &str = "5";
/// Thread-instructions a second that no launch should be below.
const WANTED: f64 = 5e8;

/// A launch that was measured.
struct Row {
    name: String,
    /// What a reader should know.
    mark: String,
    instructions: f64,
    /// Thread-instructions a second.
    rate: f64,
}

/// Rows of a grid with fewer threads do not fill a chunk.
const WIDE_ROW: u32 = 512;

/// A command that launches a case on this grid.
fn launch(case: &common::Case, kernel: &Path, grid: [u32; 3]) -> Command {
    let extents = |extents: [u32; 3]| extents.map(|extent| extent.to_string()).join(",");
    let mut command = common::ptxvm();
    command.current_dir(common::root().join("tests/corpus")).arg("run").arg(kernel);
    command.args([
        "--grid",
        &extents(grid),
        "--block",
        &extents(case.block),
        "--shared",
        &case.shared.to_string(),
    ]);
    command.args(["--threads", "1", "--format", "json"]);
    if case.lenient {
        command.arg("--lenient");
    }
    if let Some(entry) = &case.entry {
        command.args(["--entry", entry]);
    }
    for arg in &case.args {
        command.args(["--arg", arg]);
    }
    command
}

/// What a launch of this grid reports; `None` where it fails.
fn measure(case: &common::Case, number: usize, kernel: &Path, text: &str, grid: [u32; 3]) -> Option<Row> {
    let outcome = common::finish(launch(case, kernel, grid).args(["--repeat", REPEATS])).ok()?;
    let report: Value = serde_json::from_str(outcome.stdout.lines().next()?).ok()?;
    let number_of = |name: &str| report[name].as_f64();
    let instructions = number_of("thread_instructions")?;
    let rate = number_of("thread_instructions_per_second")?;
    let more = if text.contains("mma") { multiply_adds(case, kernel, text, grid)? } else { 0.0 };
    let marks = [
        (grid == case.grid, "as it is"),
        (grid != case.grid && grid[0] * case.block.iter().product::<u32>() < WIDE_ROW, "narrow rows"),
        (more > 0.0, "multiply-adds"),
    ];
    let marks: Vec<&str> = marks.into_iter().filter_map(|(holds, mark)| holds.then_some(mark)).collect();
    Some(Row {
        name: case.name(number),
        mark: marks.join(", "),
        instructions: instructions + more,
        rate: rate * (instructions + more) / instructions,
    })
}

/// By how much the multiply-adds of a launch's products are more than its products; `None` where the launch fails.
fn multiply_adds(case: &common::Case, kernel: &Path, text: &str, grid: [u32; 3]) -> Option<f64> {
    let profile = tempfile::NamedTempFile::with_suffix(".json").ok()?;
    let mut command = launch(case, kernel, grid);
    common::finish(command.arg(format!("--profile={}", profile.path().display()))).ok()?;
    let report: Value = serde_json::from_slice(&std::fs::read(profile.path()).ok()?).ok()?;
    let lines = report["lines"].as_array().or_else(|| report["profile"]["lines"].as_array())?;
    let more = lines.iter().filter_map(|line| {
        let each = multiply_adds_of_thread(line["text"].as_str()?, text)?;
        // Without those whose guard does not hold.
        let threads = line["executions"].as_f64()? * line["active_lanes"].as_f64()?;
        Some(threads * (each - 1.0))
    });
    Some(more.sum())
}

/// The multiply-adds of a product, divided by the threads that make it together (PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions",
/// "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions", "TensorCore 5th Generation"); `None` for everything else, and where
/// the shape is not known from the text. Of a sparse A half of the row counts.
fn multiply_adds_of_thread(line: &str, text: &str) -> Option<f64> {
    let line =
        line.split_once(' ').filter(|(guard, _)| guard.starts_with('@')).map_or(line, |(_, rest)| rest);
    let (opcode, operands) = line.trim().split_once(char::is_whitespace)?;
    let parts: Vec<&str> = opcode.split('.').collect();
    let is = |name: &str| parts.contains(&name);
    let halved = if is("sp") || is("sp::ordered_metadata") { 0.5 } else { 1.0 };
    if parts[0] == "tcgen05" && parts.get(1) == Some(&"mma") {
        // One thread has the product made. Its shape stands in a descriptor: N / 8 from bit 17 on, M / 16 from bit 24 on.
        let register = operands.split(',').nth(3)?.trim();
        let defined =
            text.lines().filter_map(|line| line.trim().strip_prefix("mov.b32")?.trim().strip_suffix(';'));
        let mut values =
            defined.filter_map(|rest| rest.split_once(',')).filter(|(to, _)| to.trim() == register);
        let descriptor: u32 = values.next()?.1.trim().parse().ok()?;
        let k = match () {
            () if is("kind::f16") => 16,
            () if is("kind::tf32") => 8,
            () if is("kind::i8") || is("kind::f8f6f4") => 32,
            () => return None,
        };
        let (n, m) = ((descriptor >> 17 & 0x3f) * 8, (descriptor >> 24 & 0x1f) * 16);
        return Some(halved * f64::from(m * n * k));
    }
    let threads = match parts[0] {
        "mma" => 32.0,
        "wmma" if parts.get(1) == Some(&"mma") => 32.0,
        "wgmma" if parts.get(1) == Some(&"mma_async") => 128.0,
        _ => return None,
    };
    let extents = |part: &str| -> Option<[f64; 3]> {
        let (m, rest) = part.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
    };
    let [m, n, k] = parts.iter().find_map(|part| extents(part))?;
    // Each quad pair of a warp makes a product of its own.
    let products = if (m, n, k) == (8.0, 8.0, 4.0) && parts[0] == "mma" && is("f16") { 4.0 } else { 1.0 };
    Some(halved * products * m * n * k / threads)
}

/// What a kernel's own instructions are, or all of its file if it calls functions.
fn own_text<'t>(case: &common::Case, text: &'t str) -> &'t str {
    let Some(entry) = &case.entry else { return text };
    let Some(start) = text.find(&format!(".entry {entry}(")) else { return text };
    let rest = &text[start..];
    let end = rest[1..].find(".entry ").map_or(rest.len(), |end| end + 1);
    if rest[..end].contains("call") { text } else { &rest[..end] }
}

/// More blocks in z would change what a kernel does, and not just do it again.
fn sees_height(text: &str) -> bool {
    let reads = |name: &str| text.contains(name);
    let counts_blocks =
        || ["\tatom.", "\tred.", " atom.", " red.", "membar.", "fence."].into_iter().any(reads);
    ["%ctaid.z", "%nctaid.z", "%cluster", "barrier.cluster"].into_iter().any(reads)
        || reads("%nctaid") && counts_blocks()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let Some(corpus) = common::corpus::found() else { return };
    let mut rows = Vec::new();
    let cases = common::cases(&common::root().join("tests/corpus")).into_iter();
    for (number, case) in cases.flat_map(common::Case::launches).enumerate() {
        let name = case.name(number);
        if !corpus.join(&case.kernel).is_file() {
            continue;
        }
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let threads: u64 = case.grid.iter().chain(&case.block).map(|&extent| u64::from(extent)).product();
        let times = (THREADS / threads).clamp(1, 65_535 / u64::from(case.grid[2])) as u32;
        let raised = [case.grid[0], case.grid[1], case.grid[2] * times];
        let text = std::fs::read_to_string(corpus.join(&case.kernel)).unwrap_or_default();
        let row = match sees_height(own_text(&case, &text)) {
            true => None,
            false => measure(&case, number, &corpus.join(&case.kernel), &text, raised),
        };
        match row.or_else(|| measure(&case, number, &corpus.join(&case.kernel), &text, case.grid)) {
            Some(row) => rows.push(row),
            None => println!("{name} fails"),
        }
    }
    rows.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    println!("| launch | | million thread-instructions | million a second |\n|---|---|---:|---:|");
    for row in &rows {
        let millions = |x: f64| x / 1e6;
        let (instructions, rate) = (millions(row.instructions), millions(row.rate));
        println!("| {} | {} | {instructions:.2} | {rate:.0} |", row.name, row.mark);
    }
    let slow = rows.iter().filter(|row| row.rate < WANTED).count();
    println!("\n{slow} of {} launches below {} million a second", rows.len(), WANTED / 1e6);
}
