//! The fuzz targets on a stable toolchain: random bytes, and files of the repository with bytes exchanged and pieces doubled.
//! `PTXVM_FUZZ=N` for more inputs than 20,000 of each (of kernels that are launched, 500).

use std::fs;
use std::path::Path;

/// Random bits (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Gives the target random bytes and changed seeds.
fn run(target: fn(&[u8]), seeds: &[Vec<u8>]) {
    run_times(target, seeds, 20_000);
}

/// The same, with so many inputs unless told otherwise.
fn run_times(target: fn(&[u8]), seeds: &[Vec<u8>], count: usize) {
    let count = std::env::var("PTXVM_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(count);
    let mut random = Random(11);
    for n in 0..count {
        let mut data = match (n % 4, seeds) {
            (0, _) | (_, []) => (0..random.below(80)).map(|_| random.next() as u8).collect(),
            _ => seeds[random.below(seeds.len())].clone(),
        };
        for _ in 0..random.below(6) {
            if data.is_empty() {
                break;
            }
            let at = random.below(data.len());
            let end = (at + random.below(12)).min(data.len());
            match random.below(4) {
                0 => data[at] = random.next() as u8,
                1 => drop(data.drain(at..end)),
                2 => {
                    let piece = data[at..end].to_vec();
                    let to = random.below(data.len());
                    data.splice(to..to, piece);
                }
                _ => data[at] ^= 1 << random.below(8),
            }
        }
        target(&data);
    }
}

/// Small files of a folder of the repository.
fn files(folder: &str, extension: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let wanted = paths.filter(|path| path.extension().is_some_and(|e| e == extension));
    let seeds: Vec<Vec<u8>> = wanted.map(|path| fs::read(path).unwrap()).filter(|f| f.len() < 4000).collect();
    assert!(!seeds.is_empty());
    seeds
}

#[test]
fn sass_text() {
    let texts = [
        "@!P3 HSETP2.LT.H_AND.FTZ.AND P0, P1, -|R1.F32|, R2.H0_H0, !P2 &req={5,0} &rd=1 &wr=2 ?trans4;",
        "HSETP2.GE.XOR P0, PT, R1.reuse.H1_H1, {-1.0}, {|-19.5|}, PT // comment",
        "HSETP2.BF16_V2.NEU.OR P0, PT, |R1|.H0_H0, -|c[0x3][-0x10].H1_H1|, P4;",
        "HSETP2.NUM P0, P1, RZ, cx[UR4][0x20] /* here */ ?WAIT3_END_GROUP ?BATCH_START",
        "HSETP2.T.AND PT, P4, R3, URZ, P0 ?PM1;",
    ];
    let seeds: Vec<Vec<u8>> =
        (0..16u8).flat_map(|arch| texts.map(|text| [&[arch], text.as_bytes()].concat())).collect();
    run(fuzz::sass_text, &seeds);
}

#[test]
fn sass_words() {
    let words: [u128; 4] = [
        0x5d23_b180_0027_0107,
        0x7e0c_443c_3007_0001,
        0x004f_ca00_03f1_d800_2000_0005_0000_7234,
        0x004f_ca00_03f1_d800_3c00_c000_0000_7434,
    ];
    let one = |arch: u8| [vec![arch], words.iter().flat_map(|word| word.to_le_bytes()).collect()].concat();
    let cubins = files("conformance/sass/cubins", "cubin");
    let mut seeds: Vec<Vec<u8>> = (0..16u8).map(one).collect();
    seeds.extend(cubins.into_iter().map(|cubin| [vec![5], cubin].concat()));
    run(fuzz::sass_words, &seeds);
}

#[test]
fn ptx_syntax() {
    run(fuzz::ptx_syntax, &files("tests/roundtrip", "ptx"));
}

#[test]
fn ptx_check() {
    run(fuzz::ptx_check, &[files("tests/fail", "ptx"), files("tests/run", "ptx")].concat());
}

#[test]
fn ptx_run() {
    run_times(fuzz::ptx_run, &files("tests/run", "ptx"), 500);
}

#[test]
fn kernels() {
    let mut random = Random(12);
    let seeds: Vec<Vec<u8>> = (0..50).map(|_| (0..2000).map(|_| random.next() as u8).collect()).collect();
    run_times(fuzz::kernels, &seeds, 500);
}
