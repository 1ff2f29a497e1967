//! `lowering.tsv.zst`: the HSETP2 that ptxas makes of every `setp` on halves.
//!
//! Each compare stands in a kernel of its own. Its sources are loaded from `[x]` and `[x+4]`, and its results guard stores to
//! `[y]` and `[y+4]`, so that the listing tells which register holds what, and whether p is held inverted.

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

/// One compare and what becomes of its results.
struct Form {
    ptx: String,
    /// Type of a load of a source.
    load: &'static str,
}

fn forms(target: &str) -> Vec<Form> {
    let mut forms = Vec::new();
    for (ty, ftz) in
        [("f16", ""), ("f16", ".ftz"), ("f16x2", ""), ("f16x2", ".ftz"), ("bf16", ""), ("bf16x2", "")]
    {
        if ty.starts_with('b') && !["sm_90", "sm_100", "sm_120"].contains(&target) {
            continue;
        }
        let pair = ty.ends_with("x2");
        for cmp in COMPARISONS {
            for (bop, c) in OPERATORS {
                for destinations in if pair { &["p", "p|q"][..] } else { &["p"] } {
                    let ptx = format!("setp.{cmp}{bop}{ftz}.{ty} {destinations}, a, b{c}");
                    forms.push(Form { ptx, load: if pair { "b32" } else { "b16" } });
                }
            }
        }
    }
    forms
}

fn source(version: &str, target: &str, forms: &[Form]) -> String {
    let mut source = format!(".version {version}\n.target {target}\n.address_size 64\n");
    for (n, Form { ptx, load }) in forms.iter().enumerate() {
        let q = if ptx.contains("p|q") { "@q st.volatile.global.u32 [%y+4], 2;" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(
            source,
            ".visible .entry k{n}(.param .u64 x, .param .u64 y, .param .u32 z) {{
.reg .pred p, q, c; .reg .{load} a, b; .reg .u64 %x, %y; .reg .u32 %z;
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u32 %z, [z];
cvta.to.global.u64 %x, %x; cvta.to.global.u64 %y, %y;
setp.ne.u32 c, %z, 0;
ld.volatile.global.{load} a, [%x]; ld.volatile.global.{load} b, [%x+4];
{ptx};
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
            let output = Command::new(&nvdisasm).arg("-c").arg(cubin.path()).output()?;
            let listing = String::from_utf8(output.stdout)?;
            let kernels = kernels(&listing, forms.len());
            for (form, lines) in forms.iter().zip(kernels) {
                let found = read(&lines).ok_or_else(|| format!("{target} {}: {lines:?}", form.ptx))?;
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

/// The instructions of each kernel `k0`, `k1` and so on, blanks reduced to one.
fn kernels(listing: &str, count: usize) -> Vec<Vec<String>> {
    let mut kernels = vec![Vec::new(); count];
    let mut current = None;
    for line in listing.lines() {
        if let Some(name) = line.strip_prefix(".text.k").and_then(|rest| rest.strip_suffix(':')) {
            current = name.parse::<usize>().ok();
        }
        let code = line.trim_start().strip_prefix("/*").and_then(|rest| rest.split_once("*/"));
        if let (Some((_, code)), Some(kernel)) = (code, current.and_then(|n| kernels.get_mut(n))) {
            // Behind the code may stand its word, in another comment.
            let code = code.split("/*").next().unwrap_or_default();
            kernel.push(code.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    kernels
}

/// Where p, q, a, b and c are, and the instruction: `!P0 - R0 R5 - HSETP2...`, in columns; `-` for what is not there.
fn read(lines: &[String]) -> Option<String> {
    let [hsetp2] = lines.iter().filter(|line| line.contains("HSETP2")).collect::<Vec<_>>()[..] else {
        return None;
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
    let absent = || "-".to_owned();
    let (q, c) = (q.unwrap_or_else(absent), c.unwrap_or_else(absent));
    Some(format!("{p}\t{q}\t{}\t{}\t{c}\t{hsetp2}", loaded(false)?, loaded(true)?))
}
