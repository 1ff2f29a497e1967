//! What NVIDIA's library returns for generators on the host, which run without a GPU, and what this library returns.
//!
//! `PTXVM_CURAND=…/libcurand.so.10 cargo test -p ptxvm-curand --test vectors -- --ignored record` writes `conformance/curand.txt` with
//! NVIDIA's library (nvidia-curand-cu12 10.3.10.19 of PyPI). Of bits, uniform numbers and numbers of Poisson's distribution the file has a
//! hash of all; of normal numbers it has samples, which must agree within some units in the last place.

use std::ffi::c_void;
use std::fmt::Write;

// Its symbols are what is tested.
use ptxvm_curand as _;

type Handle = *mut c_void;

unsafe extern "C" {
    fn curandCreateGeneratorHost(a: *mut Handle, b: u32) -> u32;
    fn curandDestroyGenerator(a: Handle) -> u32;
    fn curandSetGeneratorOrdering(a: Handle, b: u32) -> u32;
    fn curandSetPseudoRandomGeneratorSeed(a: Handle, b: u64) -> u32;
    fn curandSetGeneratorOffset(a: Handle, b: u64) -> u32;
    fn curandSetQuasiRandomGeneratorDimensions(a: Handle, b: u32) -> u32;
    fn curandGenerate(a: Handle, b: *mut c_void, c: usize) -> u32;
    fn curandGenerateLongLong(a: Handle, b: *mut c_void, c: usize) -> u32;
    fn curandGenerateUniform(a: Handle, b: *mut c_void, c: usize) -> u32;
    fn curandGenerateUniformDouble(a: Handle, b: *mut c_void, c: usize) -> u32;
    fn curandGenerateNormal(a: Handle, b: *mut c_void, c: usize, d: f32, e: f32) -> u32;
    fn curandGenerateNormalDouble(a: Handle, b: *mut c_void, c: usize, d: f64, e: f64) -> u32;
    fn curandGenerateLogNormal(a: Handle, b: *mut c_void, c: usize, d: f32, e: f32) -> u32;
    fn curandGenerateLogNormalDouble(a: Handle, b: *mut c_void, c: usize, d: f64, e: f64) -> u32;
    fn curandGeneratePoisson(a: Handle, b: *mut c_void, c: usize, d: f64) -> u32;
}

/// The functions of a library.
struct Library {
    create: unsafe extern "C" fn(*mut Handle, u32) -> u32,
    destroy: unsafe extern "C" fn(Handle) -> u32,
    order: unsafe extern "C" fn(Handle, u32) -> u32,
    seed: unsafe extern "C" fn(Handle, u64) -> u32,
    offset: unsafe extern "C" fn(Handle, u64) -> u32,
    dimensions: unsafe extern "C" fn(Handle, u32) -> u32,
    bits: unsafe extern "C" fn(Handle, *mut c_void, usize) -> u32,
    long: unsafe extern "C" fn(Handle, *mut c_void, usize) -> u32,
    uniform: unsafe extern "C" fn(Handle, *mut c_void, usize) -> u32,
    uniform_double: unsafe extern "C" fn(Handle, *mut c_void, usize) -> u32,
    normal: unsafe extern "C" fn(Handle, *mut c_void, usize, f32, f32) -> u32,
    normal_double: unsafe extern "C" fn(Handle, *mut c_void, usize, f64, f64) -> u32,
    log_normal: unsafe extern "C" fn(Handle, *mut c_void, usize, f32, f32) -> u32,
    log_normal_double: unsafe extern "C" fn(Handle, *mut c_void, usize, f64, f64) -> u32,
    poisson: unsafe extern "C" fn(Handle, *mut c_void, usize, f64) -> u32,
}

impl Library {
    /// This library.
    fn ours() -> Library {
        Library {
            create: curandCreateGeneratorHost,
            destroy: curandDestroyGenerator,
            order: curandSetGeneratorOrdering,
            seed: curandSetPseudoRandomGeneratorSeed,
            offset: curandSetGeneratorOffset,
            dimensions: curandSetQuasiRandomGeneratorDimensions,
            bits: curandGenerate,
            long: curandGenerateLongLong,
            uniform: curandGenerateUniform,
            uniform_double: curandGenerateUniformDouble,
            normal: curandGenerateNormal,
            normal_double: curandGenerateNormalDouble,
            log_normal: curandGenerateLogNormal,
            log_normal_double: curandGenerateLogNormalDouble,
            poisson: curandGeneratePoisson,
        }
    }

    /// NVIDIA's library.
    fn of(library: &libloading::Library) -> Library {
        // SAFETY: the functions have these types.
        unsafe {
            Library {
                create: *library.get(b"curandCreateGeneratorHost").expect("a function"),
                destroy: *library.get(b"curandDestroyGenerator").expect("a function"),
                order: *library.get(b"curandSetGeneratorOrdering").expect("a function"),
                seed: *library.get(b"curandSetPseudoRandomGeneratorSeed").expect("a function"),
                offset: *library.get(b"curandSetGeneratorOffset").expect("a function"),
                dimensions: *library.get(b"curandSetQuasiRandomGeneratorDimensions").expect("a function"),
                bits: *library.get(b"curandGenerate").expect("a function"),
                long: *library.get(b"curandGenerateLongLong").expect("a function"),
                uniform: *library.get(b"curandGenerateUniform").expect("a function"),
                uniform_double: *library.get(b"curandGenerateUniformDouble").expect("a function"),
                normal: *library.get(b"curandGenerateNormal").expect("a function"),
                normal_double: *library.get(b"curandGenerateNormalDouble").expect("a function"),
                log_normal: *library.get(b"curandGenerateLogNormal").expect("a function"),
                log_normal_double: *library.get(b"curandGenerateLogNormalDouble").expect("a function"),
                poisson: *library.get(b"curandGeneratePoisson").expect("a function"),
            }
        }
    }
}

/// A call that makes values.
#[derive(Clone, Copy, Debug)]
enum Call {
    Bits,
    Long,
    Uniform,
    UniformDouble,
    Normal,
    NormalDouble,
    LogNormal,
    LogNormalDouble,
    Poisson(f64),
}

/// What a call returned: the status, and the bits of the values.
enum Values {
    Singles(Vec<u32>),
    Doubles(Vec<u64>),
}

impl Library {
    /// Performs a call for some values.
    fn perform(&self, generator: Handle, call: Call, count: usize) -> (u32, Values) {
        let (mut singles, mut doubles) = (vec![0u32; count], vec![0u64; count]);
        let (single, double) = (singles.as_mut_ptr().cast(), doubles.as_mut_ptr().cast());
        // SAFETY: the places have `count` values.
        let status = unsafe {
            match call {
                Call::Bits => (self.bits)(generator, single, count),
                Call::Long => (self.long)(generator, double, count),
                Call::Uniform => (self.uniform)(generator, single, count),
                Call::UniformDouble => (self.uniform_double)(generator, double, count),
                Call::Normal => (self.normal)(generator, single, count, 0.25, 1.5),
                Call::NormalDouble => (self.normal_double)(generator, double, count, 0.25, 1.5),
                Call::LogNormal => (self.log_normal)(generator, single, count, 0.25, 1.5),
                Call::LogNormalDouble => (self.log_normal_double)(generator, double, count, 0.25, 1.5),
                Call::Poisson(mean) => (self.poisson)(generator, single, count, mean),
            }
        };
        let double =
            matches!(call, Call::Long | Call::UniformDouble | Call::NormalDouble | Call::LogNormalDouble);
        (status, if double { Values::Doubles(doubles) } else { Values::Singles(singles) })
    }
}

/// FNV-1a over the bytes of values.
fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Which values of a call are in the file.
fn samples(count: usize) -> impl Iterator<Item = usize> {
    (0..count.min(6)).chain((1..5).map(move |i| i * count / 5)).chain(count.checked_sub(1))
}

/// Whether all of the values must be the same.
fn is_exact(call: Call) -> bool {
    match call {
        Call::Normal | Call::NormalDouble | Call::LogNormal | Call::LogNormalDouble => false,
        // Large values come from normal numbers.
        Call::Poisson(mean) => mean < 8000.0,
        _ => true,
    }
}

/// The line for a call.
fn line(call: Call, count: usize, status: u32, values: &Values) -> String {
    let mut text = format!("  {call:?} {count}: status {status}");
    if status != 0 {
        return text;
    }
    let bits = |i: usize| match values {
        Values::Singles(values) => u64::from(values[i]),
        Values::Doubles(values) => values[i],
    };
    if is_exact(call) {
        let all = (0..count).flat_map(|i| bits(i).to_le_bytes());
        let _ = write!(text, " hash {:x}", hash(all));
    }
    text += " values";
    for i in samples(count) {
        let _ = write!(text, " {:x}", bits(i));
    }
    text
}

/// A generator, and what is asked of it.
struct Case {
    name: String,
    kind: u32,
    order: u32,
    seed: Option<u64>,
    offset: Option<u64>,
    dimensions: Option<u32>,
    calls: Vec<(Call, usize)>,
}

/// All cases.
fn cases() -> Vec<Case> {
    use Call::{
        Bits, LogNormal, LogNormalDouble, Long, Normal, NormalDouble, Poisson, Uniform, UniformDouble,
    };
    let mut cases = Vec::new();
    let mut add = |name: &str, kind, order, seed, offset, dimensions, calls: &[(Call, usize)]| {
        let set = format!("{name} order {order} seed {seed:?} offset {offset:?} dimensions {dimensions:?}");
        cases.push(Case { name: set, kind, order, seed, offset, dimensions, calls: calls.to_vec() });
    };
    let mixed = [
        (Bits, 5),
        (UniformDouble, 5),
        (Normal, 10_002),
        (Uniform, 7),
        (NormalDouble, 5002),
        (Poisson(3.0), 4099),
        (LogNormal, 6),
        (LogNormalDouble, 6),
        (Poisson(2500.0), 10_001),
        (Poisson(77.5), 1001),
        (Uniform, 300_001),
        (Bits, 600_001),
        (Normal, 3),
    ];
    let double = [(UniformDouble, 300_001), (NormalDouble, 300_002), (Bits, 9)];
    let means = [1e-3, 0.5, 1.0, 9.99, 10.0, 31.9, 32.0, 100.0, 999.0, 1300.0, 2000.0, 7999.0, 8000.5, 4e5];
    let poisson = means.map(|mean| (Poisson(mean), 20_001));
    let pseudo = [("xorwow", 101), ("mrg32k3a", 121), ("mtgp32", 141), ("philox", 161)];
    for (name, kind) in pseudo {
        for order in [101, 103] {
            for seed in [None, Some(1), Some(0x0123_4567_89ab_cdef)] {
                add(name, kind, order, seed, None, None, &mixed);
            }
        }
        add(name, kind, 100, Some(u64::MAX), None, None, &double);
        add(name, kind, 101, Some(5), None, None, &poisson);
        if kind != 141 {
            for offset in [1, 4098, 100_003, (1 << 40) + 12_345] {
                add(name, kind, 101, Some(2), Some(offset), None, &mixed[..6]);
            }
        }
    }
    add("xorwow", 101, 102, Some(3), None, None, &mixed);
    add("xorwow", 101, 102, Some(u64::MAX - 5), None, None, &mixed[..3]);
    // The others of 65,536 are not NVIDIA's.
    let eight =
        [Bits, Uniform, UniformDouble, Normal, NormalDouble, Poisson(3.0), Poisson(2500.0), LogNormal]
            .map(|call| (call, 1));
    for (order, seed) in [(101, None), (103, Some(5489)), (101, Some(0x0123_4567_89ab_cdef))] {
        add("mt19937", 142, order, seed, None, None, &eight);
        add("mt19937", 142, order, seed, None, None, &[(Bits, 8)]);
    }
    for (name, kind, bits) in [("sobol32", 201, Bits), ("sobol64", 203, Long)] {
        for (dimensions, offset) in [(1, 0), (1, 1_000_003), (7, 0), (300, 77), (20_000, 3)] {
            let count = |least: usize| least.div_ceil(dimensions as usize) * dimensions as usize;
            let few = dimensions == 20_000;
            let calls = [
                (bits, if few { 20_000 } else { count(70_000) }),
                (Uniform, count(1000)),
                (UniformDouble, count(1000)),
                (Normal, count(1001)),
                (NormalDouble, count(1001)),
                (LogNormal, count(10)),
                (LogNormalDouble, count(10)),
                (Poisson(3.0), count(5000)),
                (bits, count(10) + usize::from(dimensions > 1)),
            ];
            add(name, kind, 201, None, Some(offset), Some(dimensions), &calls);
        }
        add(name, kind, 201, None, Some(9), None, &poisson);
    }
    cases
}

/// What a library returns.
fn report(library: &Library) -> String {
    let mut text = String::new();
    for case in cases() {
        let _ = writeln!(text, "{}", case.name);
        let mut generator = std::ptr::null_mut();
        // SAFETY: the arguments meet the manual's requirements.
        unsafe {
            assert_eq!((library.create)(&raw mut generator, case.kind), 0, "{}", case.name);
            assert_eq!((library.order)(generator, case.order), 0, "{}", case.name);
            let mut set = Vec::new();
            set.extend(case.seed.map(|seed| (library.seed)(generator, seed)));
            set.extend(case.offset.map(|offset| (library.offset)(generator, offset)));
            set.extend(case.dimensions.map(|dimensions| (library.dimensions)(generator, dimensions)));
            assert!(set.iter().all(|&status| status == 0), "{}", case.name);
        }
        for &(call, count) in &case.calls {
            let (status, values) = library.perform(generator, call, count);
            let _ = writeln!(text, "{}", line(call, count, status, &values));
        }
        // SAFETY: it is a generator.
        unsafe { (library.destroy)(generator) };
    }
    text
}

/// The recorded file.
fn path() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/curand.txt")
}

const HEAD: &str = "\
# What NVIDIA's cuRAND returns for generators on the host: nvidia-curand-cu12 10.3.10.19, version 10310.
# PTXVM_CURAND=…/libcurand.so.10 cargo test -p ptxvm-curand --test vectors -- --ignored record
";

#[test]
#[ignore = "it needs NVIDIA's library"]
fn record() {
    let library = std::env::var_os("PTXVM_CURAND").expect("PTXVM_CURAND names NVIDIA's libcurand.so.10");
    // SAFETY: loading the library has no effects.
    let library = unsafe { libloading::Library::new(library) }.expect("a library");
    let text = format!("{HEAD}{}", report(&Library::of(&library)));
    std::fs::write(path(), text).expect("it can be written");
}

/// How far two values may be from each other: some units in the last place, and 1 for numbers of Poisson's distribution. MTGP32 has the
/// precision of `f32`.
fn is_close(call: Call, name: &str, ours: &str, theirs: &str) -> bool {
    let bits = |text| u64::from_str_radix(text, 16).expect("a number");
    let (ours, theirs) = (bits(ours), bits(theirs));
    let (ours, theirs) = match call {
        Call::Poisson(_) => return ours.abs_diff(theirs) <= 1,
        Call::Normal | Call::LogNormal => {
            (f64::from(f32::from_bits(ours as u32)), f64::from(f32::from_bits(theirs as u32)))
        }
        _ => (f64::from_bits(ours), f64::from_bits(theirs)),
    };
    let single = matches!(call, Call::Normal | Call::LogNormal) || name.starts_with("mtgp32");
    let unit = if single { f64::from(f32::EPSILON) } else { f64::EPSILON };
    // An exponential has the error of its logarithm.
    let units = if matches!(call, Call::LogNormal | Call::LogNormalDouble) { 16.0 } else { 4.0 };
    let least = if matches!(call, Call::Normal | Call::NormalDouble) { 1.0 } else { 0.0 };
    (ours - theirs).abs() <= units * unit * ours.abs().max(least)
}

#[test]
fn results_are_nvidias() {
    let recorded = std::fs::read_to_string(path()).expect("the recorded file");
    let ours = report(&Library::ours());
    let recorded: Vec<_> = recorded.lines().filter(|line| !line.starts_with('#')).collect();
    let calls: Vec<_> = cases()
        .into_iter()
        .flat_map(|case| [None].into_iter().chain(case.calls.into_iter().map(Some)))
        .collect();
    assert_eq!((recorded.len(), ours.lines().count()), (calls.len(), calls.len()));
    let mut wrong = Vec::new();
    let mut name = "";
    for ((theirs, ours), call) in recorded.into_iter().zip(ours.lines()).zip(calls) {
        let Some((call, _)) = call else {
            assert_eq!(theirs, ours);
            name = theirs;
            continue;
        };
        let same = if is_exact(call) {
            theirs == ours
        } else {
            let (theirs, ours) = (theirs.split_once(" values "), ours.split_once(" values "));
            match (theirs, ours) {
                (Some((head, theirs)), Some((other, ours))) => {
                    head == other
                        && theirs.split(' ').zip(ours.split(' ')).all(|(a, b)| is_close(call, name, b, a))
                }
                (theirs, ours) => theirs == ours,
            }
        };
        if !same {
            wrong.push(format!("{name}\n- {theirs}\n+ {ours}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}
