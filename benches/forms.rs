//! Every pure spelling of the instruction table, in nanoseconds a lane on each path of the host.
//!
//! `cargo bench --bench forms` writes docs/forms-speed.md, and keeps what it says of paths that this machine lacks;
//! `cargo bench --bench forms -- --dry-run WORD...` prints the spellings that contain a word, and writes nothing.
//! What has no vector code is computed by `sem`, lane by lane, as the interpreter does, and named so.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use isa::enumerate::{Spelling, spellings};
use isa::{Action, Effect, FORMS, FormId, Kind, LENIENT, Opcode, Rounding, Type};
use lanes::{Handler, HostPath, LaneWidth, Operand, Signature, available_paths};
use sem::PureFn;
use sem::format::Format;

/// Lanes of an operand: few enough for those of all operands to stay in the first-level cache.
const LANES: usize = 512;

/// Shortest time of a sample: many times what reading the clock takes.
const SAMPLE: Duration = Duration::from_micros(4);

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/forms-speed.md");

/// The operands that a form is measured on.
const OPERANDS: [&str; 2] = ["ordinary", "any bits"];

/// Nanoseconds a lane that nothing should take more of: long divisions and roots, and binary64 rounded in a direction,
/// may take longer than the rest.
fn bar(spelling: &Spelling, path: HostPath) -> f64 {
    let (opcode, picks) = (spelling.form.form().opcode, &spelling.picks);
    let wide = picks.types().iter().any(|ty| ty.bits() == 64 && ty.lanes() == 1);
    let long = matches!(opcode, Opcode::Div | Opcode::Rem | Opcode::Sqrt | Opcode::Rcp | Opcode::Rsqrt);
    let directed = picks.rounding().is_some_and(|rounding| rounding != Rounding::NearestEven);
    match path {
        HostPath::Portable => 20.0,
        _ if wide && (long || picks.ty(0) == Type::F64 && directed) => 10.0,
        HostPath::Avx2 => 6.0,
        HostPath::Avx512 => 2.5,
    }
}

/// Every legal spelling of every pure form.
fn pure_spellings() -> impl Iterator<Item = Spelling> {
    (0..FORMS.len() + LENIENT.len())
        .map(|id| FormId(id as u16))
        .filter(|id| matches!(id.form().action, Action::Pure(_) | Action::Effect(Effect::Mov)))
        .flat_map(|id| spellings(id).filter(Spelling::is_legal))
}

/// xorshift64*
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// A number as programs have them: floating point within a few powers of two of 1, integers of any length.
fn ordinary(ty: Type, random: &mut Random) -> u64 {
    let element = ty.element();
    let one = |random: &mut Random| match (Format::of(element), element.kind()) {
        (Some(f), Kind::Float) => {
            let fraction = random.next() & ((1 << f.fraction_bits) - 1);
            let exponents = 1 << (f.exponent_bits - 1).min(4);
            let exponent = random.next() % exponents + (1 << (f.exponent_bits - 1)) - 1 - exponents / 2;
            let sign = random.next() & f.sign();
            sign | (exponent << f.fraction_bits | fraction) << f.padding
        }
        _ => {
            (random.next() >> (random.next() % u64::from(element.bits())))
                & (u64::MAX >> (64 - element.bits()))
        }
    };
    let width = ty.bits() / ty.lanes();
    (0..ty.lanes()).fold(0, |packed, _| packed << (width % 64) | one(random))
}

/// A value of 8 bits or less as it stands in a register.
fn in_register(ty: Type, bits: u64) -> u64 {
    match ty.bits() {
        8 if ty.is_signed() => bits as i8 as u64,
        width @ 1..64 => bits & ((1 << width) - 1),
        _ => bits,
    }
}

/// One instruction with its operands.
struct Instruction {
    spelling: Spelling,
    signature: Signature,
    sem: Option<PureFn>,
    /// By [`OPERANDS`].
    operands: [Vec<Operand>; 2],
}

impl Instruction {
    fn new(spelling: Spelling) -> Option<Instruction> {
        let form = spelling.form.form();
        let signature = Signature::new(form, &spelling.picks)?;
        LaneWidth::of(signature.destination)?;
        let sem = match form.action {
            Action::Pure(name) => Some(sem::lookup(name)?),
            _ => None,
        };
        let widths: Option<Vec<LaneWidth>> = signature.sources.iter().map(|&ty| LaneWidth::of(ty)).collect();
        let widths = widths?;
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let operands = [false, true].map(|any| {
            let operand = |(&ty, &width): (&Type, &LaneWidth)| {
                let mut operand = Operand::new(width, LANES);
                for lane in 0..LANES {
                    let value = if any { random.next() } else { ordinary(ty, &mut random) };
                    operand.set(lane, in_register(ty, value));
                }
                operand
            };
            signature.sources.iter().zip(&widths).map(operand).collect()
        });
        Some(Instruction { spelling, signature, sem, operands })
    }

    /// Nanoseconds a lane by [`OPERANDS`], and whether by vector code; `None` if there is nothing that computes it.
    fn measure(&self, path: HostPath, samples: usize) -> Option<([f64; 2], bool)> {
        let handler = Handler::new(self.spelling.form.form(), &self.spelling.picks, path);
        let mut destination = Operand::new(LaneWidth::of(self.signature.destination)?, LANES);
        let mut second = Operand::new(LaneWidth::Bit, LANES);
        let sem = self.sem;
        if handler.is_none() && sem.is_none() {
            return None;
        }
        let times = [0, 1].map(|kind| {
            let operands: Vec<&Operand> = self.operands[kind].iter().collect();
            let run = || match (&handler, sem) {
                (Some(handler), _) => {
                    handler.run(&mut destination, self.signature.second.then_some(&mut second), &operands);
                }
                (None, Some(sem)) => {
                    let mut values = [0; 5];
                    for lane in 0..LANES {
                        for (value, operand) in values.iter_mut().zip(&operands) {
                            *value = operand.get(lane);
                        }
                        let [d, q] = sem(&self.spelling.picks, &values[..operands.len()]);
                        destination.set(lane, d);
                        second.set(lane, q);
                    }
                }
                (None, None) => {}
            };
            nanoseconds(run, samples) / LANES as f64
        });
        Some((times, handler.is_some()))
    }
}

/// The least time of one run, of several samples.
fn nanoseconds(mut run: impl FnMut(), samples: usize) -> f64 {
    let mut time = |count: u32| {
        let start = Instant::now();
        (0..count).for_each(|_| run());
        start.elapsed()
    };
    time(1);
    let once = time(1).max(Duration::from_nanos(20));
    let count = (SAMPLE.as_nanos() / once.as_nanos()) as u32 + 1;
    let least = (0..samples).map(|_| time(count)).min().unwrap_or(once);
    least.as_nanos() as f64 / f64::from(count)
}

/// What was measured of one spelling.
struct Line {
    name: String,
    opcode: Opcode,
    times: [f64; 2],
    vector: bool,
    bar: f64,
}

impl Line {
    /// On the slower operands.
    fn slowest(&self) -> f64 {
        self.times[0].max(self.times[1])
    }

    fn how(&self) -> &'static str {
        if self.vector { "vector" } else { "`sem`" }
    }
}

fn measure(instructions: &[Instruction], path: HostPath) -> Vec<Line> {
    let mut lines: Vec<Line> = instructions
        .iter()
        .filter_map(|instruction| {
            let bar = bar(&instruction.spelling, path);
            let (mut times, vector) = instruction.measure(path, 5)?;
            // What seems slow may have been interrupted.
            if times[0].max(times[1]) > 0.8 * bar {
                let (again, _) = instruction.measure(path, 20)?;
                times = [0, 1].map(|i| times[i].min(again[i]));
            }
            let opcode = instruction.spelling.form.form().opcode;
            Some(Line { name: instruction.spelling.mnemonic(), opcode, times, vector, bar })
        })
        .collect();
    lines.sort_by(|a, b| b.slowest().total_cmp(&a.slowest()));
    lines
}

/// The part of the page on one path.
fn section(path: HostPath, lines: &[Line]) -> String {
    let mut text = String::new();
    let above: Vec<&Line> = lines.iter().filter(|line| line.slowest() > line.bar).collect();
    let sem = lines.iter().filter(|line| !line.vector).count();
    let median = lines.get(lines.len() / 2).map_or(0.0, Line::slowest);
    let _ = writeln!(text, "## {}\n", path.name());
    let _ = writeln!(
        text,
        "{}: {} spellings, {sem} of them by `sem`; median {median:.2} ns a lane; {} above the bar.\n",
        machine(),
        lines.len(),
        above.len(),
    );
    if !above.is_empty() {
        text += "Above the bar; a line has all spellings of an opcode that cost about the same.\n\n";
        let _ = writeln!(text, "| spelling | | how | {} | {} | bar |", OPERANDS[0], OPERANDS[1]);
        text += "|---|---:|---|---:|---:|---:|\n";
        let mut groups: BTreeMap<(i64, Opcode, bool), Vec<&Line>> = BTreeMap::new();
        for line in above {
            // Steps of a quarter.
            let step = -(line.slowest().ln() / 1.25f64.ln()) as i64;
            groups.entry((step, line.opcode, line.vector)).or_default().push(line);
        }
        for group in groups.values() {
            let line = group[0];
            let rest = if group.len() > 1 { format!("+{}", group.len() - 1) } else { String::new() };
            let ([a, b], how) = (line.times, line.how());
            let _ =
                writeln!(text, "| `{}` | {rest} | {how} | {a:.1} | {b:.1} | {:.1} |", line.name, line.bar);
        }
        text += "\n";
    }
    text += "| opcode | spellings | by `sem` | least | median | most | slowest spelling |\n|---|---:|---:|---:|---:|---:|---|\n";
    let mut opcodes: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        opcodes.entry(line.opcode.name()).or_default().push(line);
    }
    for (opcode, lines) in opcodes {
        let (most, least) = (lines[0], lines[lines.len() - 1]);
        let sem = lines.iter().filter(|line| !line.vector).count();
        let _ = writeln!(
            text,
            "| {opcode} | {} | {sem} | {:.2} | {:.2} | {:.2} | `{}` |",
            lines.len(),
            least.slowest(),
            lines[lines.len() / 2].slowest(),
            most.slowest(),
            most.name,
        );
    }
    text
}

/// The machine's processor, and the day.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let date = std::process::Command::new("date").arg("+%Y-%m-%d").output();
    let date =
        date.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    format!("{date}, {}", model.map_or("an unknown processor", |(_, model)| model))
}

const HEAD: &str = "\
# How fast every pure instruction is

Written by `cargo bench --bench forms`. Nanoseconds a lane of every legal spelling of every pure form of the instruction
table, on each path of the host: the vector handler alone, on operands in the first-level cache; an instruction of the
interpreter costs some 10 ns more, for all its lanes. *Ordinary* operands are floating-point numbers within a few powers of two of
1 and integers of all lengths, *any bits* are random ones: half of such numbers are huge or tiny, and some are NaNs. Summaries
count the slower of the two. The bar is 2.5 ns on avx512, 6 on avx2 and 20 on the portable path; 10 for 64-bit division and
remainder, binary64 division and roots, and binary64 rounded in a direction.

";

fn main() -> std::io::Result<()> {
    let mut words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let dry_run = words.iter().any(|word| word == "--dry-run");
    words.retain(|word| word != "--dry-run");
    if let Some(word) = words.iter().find(|word| word.starts_with('-')) {
        eprintln!("unknown option {word}: words of spellings, with --dry-run before them");
        std::process::exit(2);
    }
    if !words.is_empty() && !dry_run {
        eprintln!("the page has all spellings: --dry-run prints some of them");
        std::process::exit(2);
    }
    let wanted = |instruction: &Instruction| {
        let name = instruction.spelling.mnemonic();
        words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))
    };
    let instructions: Vec<Instruction> =
        pure_spellings().filter_map(Instruction::new).filter(wanted).collect();
    let old = std::fs::read_to_string(PAGE).unwrap_or_default();
    let mut page = HEAD.to_owned();
    for path in HostPath::ALL.into_iter().rev() {
        if available_paths().contains(&path) {
            let lines = measure(&instructions, path);
            if dry_run {
                println!("{}", path.name());
                for line in &lines {
                    println!("{:9.2} {:9.2} {:6} {}", line.times[0], line.times[1], line.how(), line.name);
                }
            }
            page += &section(path, &lines);
            page += "\n";
        } else if let Some(start) = old.find(&format!("## {}\n", path.name())) {
            let rest = &old[start..];
            page += rest.find("\n## ").map_or(rest, |end| &rest[..=end]);
        }
    }
    let page = format!("{}\n", page.trim_end());
    if dry_run { Ok(()) } else { std::fs::write(PAGE, page) }
}
