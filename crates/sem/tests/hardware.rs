//! What NVIDIA GPUs compute, as `cargo xtask record hardware` wrote it down in `conformance/hardware`: one file for each
//! GPU that somebody recorded. Where there is none, nothing is compared, and the test says so.

use std::fs;
use std::path::Path;

use sem::convert;
use sem::format::{BF16, F16, F32, F64, Format};
use sem::round::Mode;
use test_utils::folds::check;

/// Instructions whose results the manual leaves open within a bound.
fn is_approximate(line: &str) -> bool {
    ["approx", "full"].iter().any(|modifier| line.split([' ', '.']).any(|word| word == *modifier))
}

/// The manual has `fma.bf16` to nearest alone. ptxas takes the other roundings, and makes code of them that computes in
/// `.f16`, or rounds to nearest: no meaning to compare with.
fn is_other_code(line: &str) -> bool {
    let mnemonic = line.split(' ').next().unwrap_or_default();
    ["fma.rm", "fma.rp", "fma.rz"].iter().any(|fma| mnemonic.starts_with(fma)) && mnemonic.contains("bf16")
}

/// Whether the recorded result of an approximate instruction is near that of `sem`. The bounds are wider than the
/// manual's: a record shows more than they say.
fn is_near(recorded: &str) -> Result<(), String> {
    let Err(message) = check(recorded) else { return Ok(()) };
    let bits = |text: &str| u64::from_str_radix(text.trim(), 16).ok();
    let expected = recorded.rsplit(" = ").next().and_then(bits);
    let (Some(theirs), Some(ours)) = (expected, message.rsplit("got ").next().and_then(bits)) else {
        return Err(message);
    };
    let mnemonic = recorded.split(' ').next().unwrap_or_default();
    let (format, lanes): (&Format, u32) = match mnemonic.rsplit('.').next() {
        Some("f16") => (&F16, 1),
        Some("f16x2") => (&F16, 2),
        Some("bf16") => (&BF16, 1),
        Some("bf16x2") => (&BF16, 2),
        Some("f64") => (&F64, 1),
        _ => (&F32, 1),
    };
    let error = match (format, mnemonic.starts_with("tanh")) {
        (&F16, _) => 2f64.powi(-9),
        (&BF16, _) => 2f64.powi(-6),
        (_, true) => 2f64.powi(-10),
        _ => 2f64.powi(-20),
    };
    let width = format.sign().trailing_zeros() + 1;
    let value = |bits: u64, lane: u32| {
        let lane = bits >> (lane * width) & (u64::MAX >> (64 - width));
        f64::from_bits(convert::convert_float(format, &F64, Mode::NEAREST, lane))
    };
    let near = (0..lanes).all(|lane| {
        let (x, y) = (value(theirs, lane), value(ours, lane));
        x == y || x.is_nan() && y.is_nan() || y.is_finite() && (x - y).abs() <= error * y.abs().max(1.0)
    });
    if near { Ok(()) } else { Err(message) }
}

#[test]
fn equal_to_what_gpus_compute() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/hardware");
    let shown = std::env::var("PTXVM_SHOW").map_or(40, |count| count.parse().expect("a number"));
    let Ok(files) = fs::read_dir(folder) else {
        println!("no GPU was recorded");
        return;
    };
    for file in files {
        let path = file.expect("a file").path();
        // Those of other instructions have other tests.
        if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("NVIDIA")) {
            continue;
        }
        let text = fs::File::open(&path).and_then(zstd::decode_all).expect("it is compressed");
        let text = String::from_utf8(text).expect("it is text");
        let mut failures = Vec::new();
        // The first line says how the record was made.
        for line in text.lines().skip(1).filter(|line| !is_other_code(line)) {
            failures.extend(if is_approximate(line) { is_near(line).err() } else { check(line).err() });
        }
        let count = text.lines().count() - 1;
        println!("{}: {count} vectors", path.display());
        assert!(count > 0, "{} has no vectors", path.display());
        assert!(
            failures.is_empty(),
            "{}: {} of {count} differ:\n{}",
            path.display(),
            failures.len(),
            failures[..failures.len().min(shown)].join("\n")
        );
    }
}

#[test]
fn approximate_results_may_differ_a_little() {
    for (line, near) in [
        ("ex2.approx.f32 3f800000 = 40000000", true),
        ("ex2.approx.f32 3f800000 = 40000001", true),
        ("ex2.approx.f32 3f800000 = 40000100", false),
        ("ex2.approx.f32 7f800000 = 7f800000", true),
        ("ex2.approx.f32 7f800000 = 7f7fffff", false),
        ("ex2.approx.f32 7fc00000 = 7fffffff", true),
        ("ex2.approx.f32 7fc00000 = 40000000", false),
        ("tanh.approx.f16x2 3c003c00 = 3a183a19", true),
        ("tanh.approx.f16x2 3c003c00 = 3a183b18", false),
    ] {
        assert_eq!(is_near(line).is_ok(), near, "{line}");
    }
    assert!(is_approximate("div.full.f32 0 0 = 0") && !is_approximate("div.rn.f32 0 0 = 0"));
}
