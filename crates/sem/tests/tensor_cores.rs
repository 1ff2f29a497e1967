//! How an H100's tensor cores sum, as `cargo xtask record hardware --mma` wrote it down: not as `sem` does, which is nearer to the
//! exact sums. The model below gives every recorded bit.

use sem::convert::convert_float;
use sem::format::{BF16, E4M3, E5M2, F16, F32, F64, Format, TF32};
use sem::round::Mode;
use test_utils::record::read;

/// Bits below the largest exponent of the terms that take part in a sum.
const KEPT: i32 = 25;

fn number(format: &Format, bits: u32) -> f64 {
    f64::from_bits(convert_float(format, &F64, Mode::NEAREST, bits.into()))
}

/// The exponent of a number that is not zero.
fn exponent(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

fn power(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// Products and one more term: each is cut toward zero [`KEPT`] bits below the largest exponent, where that of a product is the sum
/// of its factors' exponents. Returns the sum, exact, in units of the last of these bits.
fn aligned_sum(products: &[(f64, f64)], c: f64) -> (i64, f64) {
    let terms = products.iter().filter(|(x, y)| *x != 0.0 && *y != 0.0);
    let terms = terms.map(|&(x, y)| (x * y, exponent(x) + exponent(y)));
    let terms: Vec<(f64, i32)> = terms.chain((c != 0.0).then(|| (c, exponent(c)))).collect();
    let largest = terms.iter().map(|&(_, exponent)| exponent).max().unwrap_or(0);
    let unit = power(largest - KEPT);
    (terms.iter().map(|(value, _)| (value / unit) as i64).sum(), unit)
}

/// The sum in binary32, rounded toward zero.
fn single(products: &[(f64, f64)], c: f64) -> f64 {
    let (sum, unit) = aligned_sum(products, c);
    let extra = (64 - sum.unsigned_abs().leading_zeros()).saturating_sub(24);
    let cut = (sum.unsigned_abs() >> extra << extra) as f64 * unit;
    if sum < 0 { -cut } else { cut }
}

/// The sum in binary16, rounded to nearest even.
fn half(products: &[(f64, f64)], c: f64) -> f64 {
    let (sum, unit) = aligned_sum(products, c);
    number(&F16, convert_float(&F64, &F16, Mode::NEAREST, (sum as f64 * unit).to_bits()) as u32)
}

/// An element of d as an H100 computes it.
fn element(ty: &str, d: &Format, row: &[f64], column: &[f64], c: f64) -> f64 {
    let products: Vec<(f64, f64)> = row.iter().copied().zip(column.iter().copied()).collect();
    if !ty.starts_with("e") {
        return if *d == F16 { half(&products, c) } else { single(&products, c) };
    }
    // The code of ptxas for sm_90 makes halves of the lower two bytes of each register, then of the upper two, and adds c last, to
    // nearest.
    let part = |upper: bool| -> Vec<(f64, f64)> {
        let chosen = products.iter().enumerate().filter(|(k, _)| (k % 4 >= 2) == upper);
        chosen.map(|(_, &product)| product).collect()
    };
    let sum = single(&part(true), single(&part(false), 0.0));
    f64::from((c + sum) as f32)
}

/// Registers of all lanes, lane after lane.
fn registers(text: &str) -> Vec<Vec<u32>> {
    let words: Vec<u32> = (0..text.len() / 8)
        .map(|i| u32::from_str_radix(&text[8 * i..][..8], 16).expect("a number"))
        .collect();
    words.chunks(words.len() / 32).map(<[u32]>::to_vec).collect()
}

/// The element of a lane's registers with this number.
fn part(lane: &[u32], width: u32, index: usize) -> u32 {
    let each = (32 / width) as usize;
    lane[index / each] >> (width * (index % each) as u32) & (u32::MAX >> (32 - width))
}

/// The elements that a lane holds, in the order of its registers: rows (or columns) of 8, then columns (or rows) in groups of
/// 4 lanes with `each` neighbours.
fn places(count: usize, rows: usize, each: usize, lane: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).map(move |i| {
        let (group, neighbour) = (i / each, i % each);
        (lane / 4 + 8 * (group % rows), (lane % 4) * each + neighbour + 4 * each * (group / rows))
    })
}

/// Compares a line. Returns how many elements there are, and of how many `sem`'s sum, one product after the other to nearest,
/// has other bits.
fn compare(line: &str) -> (usize, usize) {
    let words: Vec<&str> = line.split(' ').collect();
    let name: Vec<&str> = words[0].split('.').collect();
    let (cd, ty) = (name[6], name[7]);
    let k: usize = name[3].rsplit('k').next().and_then(|k| k.parse().ok()).expect("a shape");
    let format = match ty {
        "f16" => &F16,
        "bf16" => &BF16,
        "tf32" => &TF32,
        "e4m3" => &E4M3,
        _ => &E5M2,
    };
    let width = format.bits();
    let (sums, sum_width) = if cd == "f16" { (&F16, 16) } else { (&F32, 32) };
    let (mut a, mut b) = (vec![vec![0.0; k]; 16], vec![vec![0.0; k]; 8]);
    let [of_a, of_b, of_c, of_d] = [1, 2, 3, 4].map(|i| registers(words[i]));
    let each = (32 / width) as usize;
    for lane in 0..32 {
        for (i, (row, column)) in places(16 * k / 32, 2, each, lane).enumerate() {
            a[row][column] = number(format, part(&of_a[lane], width, i));
        }
        for (i, (column, row)) in places(8 * k / 32, 1, each, lane).enumerate() {
            b[column][row] = number(format, part(&of_b[lane], width, i));
        }
    }
    let mut others = 0;
    for lane in 0..32 {
        for (i, (row, column)) in places(4, 2, 2, lane).enumerate() {
            let c = number(sums, part(&of_c[lane], sum_width, i));
            let recorded = part(&of_d[lane], sum_width, i);
            let model = element(ty, sums, &a[row], &b[column], c);
            assert_eq!(model, number(sums, recorded), "{} of lane {lane}, element {i}", words[0]);
            let ours = a[row].iter().zip(&b[column]).fold(c, |sum, (x, y)| f64::from((sum + x * y) as f32));
            let ours = convert_float(&F64, sums, Mode::NEAREST, ours.to_bits());
            others += usize::from(ours != u64::from(recorded));
        }
    }
    (128, others)
}

#[test]
fn an_h100_sums_like_the_model() {
    let text = read("hardware/mma-NVIDIA-H100-80GB-HBM3-sm_90a.txt.zst");
    let (mut elements, mut others) = (0, 0);
    for line in text.lines() {
        let (count, other) = compare(line);
        elements += count;
        others += other;
    }
    println!("{elements} elements; of {others} `sem`'s have other bits");
    assert!(elements >= 9 * 16 * 128);
}
