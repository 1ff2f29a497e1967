//! `lowering.tsv.zst`: the HSETP2 that ptxas makes of every `setp` on halves.
//!
//! Each compare stands in a kernel of its own. Its sources are loaded from `[x]` and `[x+4]`, and its results guard stores to
//! `[y]` and `[y+4]`, so that the listing tells which register holds what, and whether p is held inverted. ptxas takes no
//! literal as a source; where one is written here, a `mov` gives it to the register. `[v]` is a parameter, `cvt.rz(b)` what
//! `cvt.rz.f16.f32` makes of a loaded number, `cvt.rz([w])` of a parameter.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::super::Result;
use super::super::oracle::{Disassembler, Oracle, Release};

/// Who is asked about which targets.
const ASKED: [(Release, Disassembler, &str, &[&str]); 2] = [
    (
        Release::V12_9,
        Disassembler::V12_8,
        "8.8",
        &["sm_53", "sm_60", "sm_70", "sm_75", "sm_80", "sm_90", "sm_100", "sm_120"],
    ),
    (Release::V13_5, Disassembler::V13_5, "9.0", &["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]),
];

const COMPARISONS: [&str; 14] =
    ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];
/// The Boolean operator, and the predicate that it combines with.
const OPERATORS: [(&str, &str); 7] = [
    ("", ""),
    (".and", ", c"),
    (".or", ", c"),
    (".xor", ", c"),
    (".and", ", !c"),
    (".or", ", !c"),
    (".xor", ", !c"),
];

/// One compare.
struct Form {
    ptx: String,
    /// What gives its registers their values.
    before: String,
}

/// A kind of source: how it is written, and what gives the register `b` its value.
struct Source {
    written: String,
    before: String,
}

impl Source {
    fn register(load: &str) -> Source {
        Source { written: "b".into(), before: format!("ld.volatile.global.{load} b, [%x+4];") }
    }

    fn literal(load: &str, bits: u32) -> Source {
        Source { written: format!("{bits:#x}"), before: format!("mov.{load} b, {bits:#x};") }
    }

    fn parameter(load: &str) -> Source {
        Source { written: "[v]".into(), before: format!("ld.param.{load} b, [v];") }
    }

    fn converted() -> [Source; 2] {
        let source = |written: &str, load| Source {
            written: format!("cvt.rz({written})"),
            before: format!("{load}; cvt.rz.f16.f32 b, f;"),
        };
        [source("b", "ld.volatile.global.f32 f, [%x+4]"), source("[w]", "ld.param.f32 f, [w]")]
    }
}

/// Of FP16: literals of which Maxwell's immediates hold all bits, and not; zeros, denormals, the ends of the range.
const HALVES: [u32; 14] = [
    0x3c00, 0xbc00, 0x3c01, 0, 0x8000, 0x0001, 0x8001, 0x0200, 0x03ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
];
/// And of pairs, which differ or do not.
const PAIRS: [u32; 18] = [
    0x3c00_4000,
    0x3c00_3c00,
    0x3c01_3c01,
    0x3c01_3c02,
    0x3c00_3c01,
    0,
    0x8000_8000,
    0x8000_0000,
    0x0000_8000,
    0x3c00_8000,
    0x8000_3c00,
    0x0001_0001,
    0x8001_8001,
    0x0001_8001,
    0x3c00_0001,
    0x3c00_0000,
    0xfc00_7c00,
    0x0200_8200,
];

fn forms(target: &str) -> Vec<Form> {
    let mut forms = Vec::new();
    for (ty, ftz) in
        [("f16", ""), ("f16", ".ftz"), ("f16x2", ""), ("f16x2", ".ftz"), ("bf16", ""), ("bf16x2", "")]
    {
        if ty.starts_with('b') && !["sm_90", "sm_100", "sm_120"].contains(&target) {
            continue;
        }
        let pair = ty.ends_with("x2");
        let load = if pair { "b32" } else { "b16" };
        for destinations in if pair { &["p", "p|q"][..] } else { &["p"] } {
            let mut add = |cmp: &str, (bop, c): (&str, &str), b: &Source, first: bool| {
                let written = &b.written;
                let (one, two) = if first { (written.as_str(), "a") } else { ("a", written.as_str()) };
                let (x, y) = if first { ("b", "a") } else { ("a", "b") };
                let setp = format!("setp.{cmp}{bop}{ftz}.{ty} {destinations}");
                let before =
                    format!("ld.volatile.global.{load} a, [%x];\n{}\n{setp}, {x}, {y}{c};", b.before);
                forms.push(Form { ptx: format!("{setp}, {one}, {two}{c}"), before });
            };
            for cmp in COMPARISONS {
                for operator in OPERATORS {
                    add(cmp, operator, &Source::register(load), false);
                }
                let one = Source::literal(load, if pair { 0x3c00_4000 } else { 0x3c00 });
                for operator in [OPERATORS[0], OPERATORS[1], OPERATORS[5]] {
                    for first in [false, true] {
                        add(cmp, operator, &one, first);
                        add(cmp, operator, &Source::parameter(load), first);
                        for converted in Source::converted().iter().filter(|_| ty == "f16") {
                            add(cmp, operator, converted, first);
                        }
                    }
                }
            }
            for &bits in if pair { &PAIRS[1..] } else { &HALVES[1..] } {
                for first in [false, true] {
                    add("lt", OPERATORS[0], &Source::literal(load, bits), first);
                }
            }
        }
    }
    forms
}

fn source(version: &str, target: &str, forms: &[Form]) -> String {
    let mut source = format!(".version {version}\n.target {target}\n.address_size 64\n");
    for (n, Form { ptx, before }) in forms.iter().enumerate() {
        let (mnemonic, rest) = ptx.split_once(' ').unwrap_or_default();
        let load = if mnemonic.ends_with("x2") { "b32" } else { "b16" };
        let q = if rest.starts_with("p|q") { "@q st.volatile.global.u32 [%y+4], 2;" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(
            source,
            ".visible .entry k{n}(.param .u64 x, .param .u64 y, .param .u32 z, .param .b32 v, .param .f32 w) {{
.reg .pred p, q, c; .reg .{load} a, b; .reg .f32 f; .reg .u64 %x, %y; .reg .u32 %z;
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u32 %z, [z];
cvta.to.global.u64 %x, %x; cvta.to.global.u64 %y, %y;
setp.ne.u32 c, %z, 0;
{before}
@p st.volatile.global.u32 [%y], 1; {q} st.volatile.global.u32 [%y+8], 3;
ret; }}
"
        );
    }
    source
}

/// Asks both releases of ptxas and writes the file into `folder`.
pub fn record(oracles: &Path, folder: &Path) -> Result<()> {
    let mut text = String::from("# cargo xtask record sass; ptxas -arch TARGET, then nvdisasm -c\n");
    let mut count = 0;
    for (release, disassembler, version, targets) in ASKED {
        let oracle = Oracle::open(oracles, release)?;
        let nvdisasm = disassembler.open(oracles)?;
        writeln!(text, "# {}: {}, nvdisasm {}", release.name(), oracle.build()?, disassembler.name())?;
        for target in targets {
            let forms = forms(target);
            let cubin = assemble(&oracle, target, &source(version, target, &forms))?;
            let output = Command::new(&nvdisasm).arg(cubin.path()).output()?;
            let listing = String::from_utf8(output.stdout)?;
            for (form, kernel) in forms.iter().zip(kernels(&listing, forms.len())) {
                let found = read(&kernel).ok_or_else(|| format!("{target} {}: {kernel:?}", form.ptx))?;
                writeln!(text, "{}\t{target}\t{}\t{found}", release.name(), form.ptx)?;
                count += 1;
            }
        }
    }
    let path = folder.join("lowering.tsv.zst");
    let bytes = zstd::encode_all(text.as_bytes(), 19)?;
    println!("{}: {count} lowered compares, {} bytes", path.display(), bytes.len());
    Ok(fs::write(path, bytes)?)
}

/// The cubin that ptxas makes of a source.
pub fn assemble(oracle: &Oracle, target: &str, source: &str) -> Result<tempfile::NamedTempFile> {
    let (ptx, cubin) = (tempfile::NamedTempFile::new()?, tempfile::NamedTempFile::new()?);
    fs::write(ptx.path(), source)?;
    let output = Command::new(oracle.ptxas())
        .args(["-arch", target, "-o"])
        .args([cubin.path(), ptx.path()])
        .output()?;
    match output.status.success() {
        true => Ok(cubin),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// What a listing says about a kernel.
#[derive(Clone, Debug, Default)]
struct Kernel {
    /// Its instructions, blanks reduced to one.
    lines: Vec<String>,
    /// The first 32 bits of constants that ptxas made for it.
    constant: Option<u32>,
}

/// The kernels `k0`, `k1` and so on.
fn kernels(listing: &str, count: usize) -> Vec<Kernel> {
    let mut kernels = vec![Kernel::default(); count];
    let mut current = None;
    for line in listing.lines() {
        if let Some(label) = line.strip_suffix(':').filter(|label| label.starts_with('.')) {
            let section =
                label.rsplit_once(".k").and_then(|(name, n)| Some((name.to_owned(), n.parse().ok()?)));
            current = if label.starts_with(".L") { current } else { section };
        }
        let Some((name, n)) = &current else { continue };
        let n: usize = *n;
        let Some(kernel) = kernels.get_mut(n) else { continue };
        let Some((_, code)) = line.trim_start().strip_prefix("/*").and_then(|rest| rest.split_once("*/"))
        else {
            continue;
        };
        if name == ".text" {
            // Behind the code may stand its word, in another comment.
            let code = code.split("/*").next().unwrap_or_default();
            kernel.lines.push(code.split_whitespace().collect::<Vec<_>>().join(" "));
        } else if let (".nv.constant2", Some(bytes)) = (name.as_str(), code.trim().strip_prefix(".byte")) {
            let byte = |text: &str| u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok();
            let bytes: Option<Vec<u32>> = bytes.split(',').take(4).map(byte).collect();
            let word = bytes.map(|bytes| bytes.iter().rev().fold(0, |word, byte| word << 8 | byte));
            kernel.constant = kernel.constant.or(word);
        }
    }
    kernels
}

/// Where p, q, a, b and c are, what ptxas made a constant of, and the instruction: `!P0 - R0 R5 - - HSETP2...`, in
/// columns; `-` for what is not there, and everywhere if no compare is left.
fn read(kernel: &Kernel) -> Option<String> {
    let lines = &kernel.lines;
    let hsetp2 = match lines.iter().filter(|line| line.contains("HSETP2")).collect::<Vec<_>>()[..] {
        [hsetp2] => hsetp2,
        [] if !lines.is_empty() => return Some(["-"; 7].join("\t")),
        _ => return None,
    };
    let memory = |name: &str, second: bool| {
        let with = |line: &&String| {
            let place = line.split_once('[').and_then(|(_, place)| place.rsplit_once(']'));
            let opcode =
                if line.starts_with('@') { line.split_once(' ').map_or("", |(_, rest)| rest) } else { line };
            opcode.starts_with(name) && place.is_some_and(|(place, _)| place.ends_with("+0x4") == second)
        };
        lines.iter().find(with)
    };
    let guard = |line: &String| Some(line.strip_prefix('@')?.split_once(' ')?.0.to_owned());
    let loaded = |second| {
        let line = memory("LDG", second)?;
        Some(line.split(' ').nth(1)?.trim_end_matches(',').to_owned())
    };
    let compare = lines.iter().find(|line| line.contains("ISETP"));
    let c = compare.and_then(|line| Some(line.split(' ').nth(1)?.trim_end_matches(',').to_owned()));
    let p = memory("STG", false).and_then(guard)?;
    let q = memory("STG", true).and_then(guard);
    let constant = kernel.constant.map(|bits| format!("{bits:#x}"));
    let columns = [Some(p), q, Some(loaded(false)?), loaded(true), c, constant, Some(hsetp2.clone())];
    Some(columns.map(|column| column.unwrap_or_else(|| "-".to_owned())).join("\t"))
}
