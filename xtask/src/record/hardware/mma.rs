//! `cargo xtask record hardware --mma`: what the tensor cores of the GPU make of random numbers, whose sums they round in
//! their own way. The replay is `crates/sem/tests/tensor_cores.rs`.
//!
//! A line is a spelling, then the registers of all 32 lanes: those of a, b, c and d, lane after lane.

use std::fmt::Write as _;
use std::path::Path;

use cudarc::nvrtc::Ptx;
use fastrand::Rng;
use isa::Version;

use super::gpu::Gpu;
use super::{Result, Source, newest_version, write};

/// Warps, with numbers of their own, for each spelling.
const WARPS: usize = 16;
const LANES: usize = 32;

/// Shape, type of a and b, type of c and d, and how many registers a lane has of a, b and c.
const PRODUCTS: [(&str, &str, &str, [usize; 3]); 9] = [
    ("m16n8k8", "f16", "f32", [2, 1, 4]),
    ("m16n8k16", "f16", "f32", [4, 2, 4]),
    ("m16n8k16", "f16", "f16", [4, 2, 2]),
    ("m16n8k8", "bf16", "f32", [2, 1, 4]),
    ("m16n8k16", "bf16", "f32", [4, 2, 4]),
    ("m16n8k4", "tf32", "f32", [2, 1, 4]),
    ("m16n8k8", "tf32", "f32", [4, 2, 4]),
    ("m16n8k32", "e4m3", "f32", [4, 2, 4]),
    ("m16n8k32", "e5m2", "f32", [4, 2, 4]),
];

/// The kernel: each lane of each block reads its registers of a, b and c, and writes those of d.
fn text(version: Version, target: &str, mnemonic: &str, [a, b, c]: [usize; 3]) -> String {
    let list = |name: &str, count: usize| -> String {
        let all: Vec<String> = (0..count).map(|i| format!("%{name}{i}")).collect();
        all.join(", ")
    };
    let mut body = String::new();
    let sources = [("a", a), ("b", b), ("c", c)];
    let registers = sources.iter().flat_map(|&(name, count)| (0..count).map(move |i| (name, i)));
    for (offset, (name, i)) in registers.enumerate() {
        let _ = writeln!(body, "    ld.global.b32 %{name}{i}, [%from+{}];", 4 * offset);
    }
    let _ = writeln!(
        body,
        "    {mnemonic} {{{}}}, {{{}}}, {{{}}}, {{{}}};",
        list("d", c),
        list("a", a),
        list("b", b),
        list("c", c)
    );
    for i in 0..c {
        let _ = writeln!(body, "    st.global.b32 [%to+{}], %d{i};", 4 * i);
    }
    let ty = if c == 4 { "f32" } else { "b32" };
    format!(
        "\
.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .b64 from, .param .b64 to)
{{
    .reg .b32 %i, %block, %a<4>, %b<4>; .reg .{ty} %c<4>, %d<4>; .reg .b64 %from, %to;
    mov.u32 %i, %tid.x; mov.u32 %block, %ctaid.x; mad.lo.u32 %i, %block, {LANES}, %i;
    ld.param.b64 %from, [from]; mad.wide.u32 %from, %i, {}, %from;
    ld.param.b64 %to, [to]; mad.wide.u32 %to, %i, {}, %to;
{body}    ret;
}}
",
        4 * (a + b + c),
        4 * c,
    )
}

/// A word of numbers of a type whose exponents lie within a few powers of two of each other.
fn word(ty: &str, random: &mut Rng) -> u32 {
    // Bits, bits of the fraction, and the exponent of 1.
    let (bits, fraction, one) = match ty {
        "f16" => (16, 10, 15),
        "bf16" => (16, 7, 127),
        "e4m3" => (8, 3, 7),
        "e5m2" => (8, 2, 15),
        _ => (32, 23, 127),
    };
    (0..32 / bits).fold(0, |word, i| {
        let exponent = random.u32(one - 4..one + 5);
        let number = random.u32(..2) << (bits - 1) | exponent << fraction | random.u32(..1 << fraction);
        word | number << (bits * i)
    })
}

/// Records products under `folder`.
///
/// # Errors
/// When there is no GPU, or it refuses one of them.
pub fn record(folder: &Path) -> Result<()> {
    let mut gpu = Gpu::open()?;
    let target = gpu.target()?;
    let version = newest_version(&mut gpu, target)?;
    let source = Source::new("cargo xtask record hardware --mma", &gpu)?;
    let mut lines = String::new();
    let mut random = Rng::with_seed(1);
    for (shape, ab, cd, counts @ [a, b, c]) in PRODUCTS {
        let mnemonic = format!("mma.sync.aligned.{shape}.row.col.{cd}.{ab}.{ab}.{cd}");
        let mut words = Vec::new();
        for lane in 0..WARPS * LANES {
            words.extend((0..a + b).map(|_| word(ab, &mut random)));
            // In every fourth warp the sums begin at 0.
            words.extend(
                (0..c).map(|_| if (lane / LANES).is_multiple_of(4) { 0 } else { word(cd, &mut random) }),
            );
        }
        let module = Ptx::from_src(text(version, &source.target, &mnemonic, counts));
        let results = gpu.run_blocks(module, &words, (WARPS, LANES), c * WARPS * LANES)?;
        for (words, results) in words.chunks(LANES * (a + b + c)).zip(results.chunks(LANES * c)) {
            let registers = |from: usize, count: usize| -> String {
                words.chunks(a + b + c).flat_map(|lane| &lane[from..][..count]).map(hex).collect()
            };
            let d: String = results.iter().map(hex).collect();
            let _ = writeln!(
                lines,
                "{mnemonic} {} {} {} {d}",
                registers(0, a),
                registers(a, b),
                registers(a + b, c)
            );
        }
    }
    let path = write(folder, &source.file("mma-", "txt.zst"), &source, &lines)?;
    println!("{}: {} spellings, {WARPS} warps each", path.display(), PRODUCTS.len());
    Ok(())
}

fn hex(word: &u32) -> String {
    format!("{word:08x}")
}
