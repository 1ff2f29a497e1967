//! What NVIDIA GPUs compute, as `cargo xtask record hardware` wrote it down in `conformance/hardware`: one file for each
//! GPU that somebody recorded.

use std::fs;

use sem::convert;
use sem::format::{BF16, F16, F32, F64, Format};
use sem::round::Mode;
use test_utils::folds::check;
use test_utils::record::{is_other_code, read};
use test_utils::root;

/// Instructions whose results the manual leaves open within a bound.
fn is_approximate(line: &str) -> bool {
    ["approx", "full"].iter().any(|modifier| line.split([' ', '.']).any(|word| word == *modifier))
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
    let folder = root().join("conformance/hardware");
    let shown = std::env::var("PTXVM_SHOW").map_or(40, |count| count.parse().expect("a number"));
    let mut records = 0;
    for file in fs::read_dir(folder).expect("there are records") {
        let name = file.expect("a file").file_name().into_string().expect("a name in UTF-8");
        // Those of other instructions have other tests.
        if !name.starts_with("NVIDIA") {
            continue;
        }
        records += 1;
        let text = read(&format!("hardware/{name}"));
        let mut failures = Vec::new();
        for line in text.lines().filter(|line| !is_other_code(line)) {
            failures.extend(if is_approximate(line) { is_near(line).err() } else { check(line).err() });
        }
        let count = text.lines().count();
        println!("{}: {count} vectors", name);
        assert!(count > 0, "{} has no vectors", name);
        assert!(
            failures.is_empty(),
            "{}: {} of {count} differ:\n{}",
            name,
            failures.len(),
            failures[..failures.len().min(shown)].join("\n")
        );
    }
    assert_ne!(records, 0, "no record");
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
