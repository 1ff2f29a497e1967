//! Every handler against `sem`, and every helper against a loop, on every path of this machine.

mod approx;
mod approx64;
mod chain;
mod constants;
mod fragment;
mod helpers;
mod matrix;
mod select;
mod values;
mod video;

use isa::enumerate::{Spelling, spellings};
use isa::{Action, Effect, FORMS, Form, FormId, LENIENT, Mod, Opcode, Picks, Type};
use lanes::{HostPath, HostPathError, LaneArgs, Signature, available_paths, choose_host_path, lookup};
use values::{Random, operand_sets};

/// Bytes aligned as registers are.
#[repr(C, align(64))]
#[derive(Clone)]
pub(crate) struct Register(pub(crate) [u8; 8 * MANY]);

/// Lanes that a handler takes at a time.
pub(crate) const BLOCK: usize = 16;

/// Lanes that tests of helpers use at most.
pub(crate) const LANES: usize = 256;

/// Lanes that handlers are tried on: more than those that some take at a time.
const MANY: usize = LANES + 2 * BLOCK;

impl Register {
    pub(crate) fn new() -> Register {
        Register([0xa5; 8 * MANY])
    }

    /// The bits of a lane of a type.
    fn get(&self, ty: Type, lane: usize) -> u64 {
        match ty.bits() {
            1 => u64::from(self.0[lane / 8] >> (lane % 8) & 1),
            2..=16 => u64::from(u16::from_le_bytes(std::array::from_fn(|i| self.0[2 * lane + i]))),
            32 => u64::from(u32::from_le_bytes(std::array::from_fn(|i| self.0[4 * lane + i]))),
            _ => u64::from_le_bytes(std::array::from_fn(|i| self.0[8 * lane + i])),
        }
    }

    fn set(&mut self, ty: Type, lane: usize, value: u64) {
        match ty.bits() {
            1 => {
                let bit = 1 << (lane % 8);
                let byte = &mut self.0[lane / 8];
                *byte = if value & 1 != 0 { *byte | bit } else { *byte & !bit };
            }
            2..=16 => self.0[2 * lane..][..2].copy_from_slice(&(value as u16).to_le_bytes()),
            32 => self.0[4 * lane..][..4].copy_from_slice(&(value as u32).to_le_bytes()),
            _ => self.0[8 * lane..][..8].copy_from_slice(&value.to_le_bytes()),
        }
    }
}

/// A value of a type as it lies in a register: 8 bits extended to 16.
fn in_register(ty: Type, bits: u64) -> u64 {
    match (ty.bits(), ty.is_signed()) {
        (1, _) => bits & 1,
        (8, true) => bits as i8 as u16 as u64,
        (8, false) => bits & 0xff,
        (16, _) => bits & 0xffff,
        (32, _) => bits & 0xffff_ffff,
        _ => bits,
    }
}

/// `sem` on lanes of the sources; `mov` has no function there and passes its source.
fn expected(form: &Form, picks: &Picks, sources: &[u64]) -> Option<[u64; 2]> {
    match form.action {
        Action::Pure(name) => Some(sem::lookup(name).expect("a function of sem")(picks, sources)),
        Action::Effect(Effect::Mov) => Some([sources[0], 0]),
        Action::Effect(_) => None,
    }
}

/// Every legal spelling of every form.
fn all_spellings() -> impl Iterator<Item = Spelling> {
    (0..FORMS.len() + LENIENT.len())
        .map(|id| FormId(id as u16))
        .filter(|id| matches!(id.form().action, Action::Pure(_) | Action::Effect(Effect::Mov)))
        .flat_map(|id| spellings(id).filter(Spelling::is_legal))
}

/// Where the operands of a run stand.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Overlap {
    None,
    /// The destination is this source.
    InPlace(usize),
    /// Groups of sources stand apart in memory, aligned to nothing.
    Apart,
    /// The first group of a source stands for all.
    Repeated,
}

/// One run of a handler over the given lanes against what `sem` said; says where they differ first.
fn check(
    spelling: &Spelling,
    path: HostPath,
    signature: &Signature,
    batch: &Batch,
    overlap: Overlap,
) -> Result<(), String> {
    let form = spelling.form.form();
    let handler = lookup(form, &spelling.picks, path).expect("the same on every path");
    let mut sources = batch.sources.clone();
    let mut destinations = [Register::new(), Register::new()];
    let lanes = batch.lanes.next_multiple_of(BLOCK);
    let mut args = LaneArgs {
        dst: destinations.each_mut().map(|register| register.0.as_mut_ptr()),
        src: [std::ptr::null(); LaneArgs::SOURCES],
        step: [0; LaneArgs::SOURCES],
        lanes,
    };
    if !signature.second {
        args.dst[1] = std::ptr::null_mut();
    }
    for (i, (register, ty)) in sources.iter_mut().zip(&signature.sources).enumerate() {
        args.src[i] = register.0.as_mut_ptr();
        args.step[i] = if *ty == Type::Pred { 2 } else { ty.bits().max(16) as usize / 8 * BLOCK };
    }
    // Predicates are always arrays.
    let numbers = || (0..signature.sources.len()).filter(|&i| signature.sources[i] != Type::Pred);
    let mut memory = vec![Vec::new(); signature.sources.len()];
    match overlap {
        Overlap::Apart => numbers().for_each(|i| {
            for group in sources[i].0.chunks_exact(args.step[i]) {
                memory[i].extend_from_slice(&[0xa5; 3]);
                memory[i].extend_from_slice(group);
            }
            args.src[i] = memory[i][3..].as_ptr();
            args.step[i] += 3;
        }),
        Overlap::Repeated => numbers().for_each(|i| args.step[i] = 0),
        _ => {}
    }
    if let Overlap::InPlace(source) = overlap {
        args.dst[0] = args.src[source].cast_mut();
    }
    // SAFETY: the registers are aligned and large enough for any type; the path is one of this machine.
    unsafe { handler.call(&args) };
    let result = match overlap {
        Overlap::InPlace(source) => &sources[source],
        _ => &destinations[0],
    };
    // A predicate of a later group would go with the first group's numbers.
    let compared = match overlap {
        Overlap::Repeated if signature.sources.contains(&Type::Pred) => BLOCK,
        _ => batch.lanes,
    };
    for lane in 0..compared {
        let from = if overlap == Overlap::Repeated { lane % BLOCK } else { lane };
        let Some([d, q]) = batch.expected.get(from) else { continue };
        let operands = || -> Vec<String> {
            let lane = |(register, &ty): (&Register, _)| format!("{:#x}", register.get(ty, lane));
            batch.sources.iter().zip(&signature.sources).map(lane).collect()
        };
        let differs = |what: &str, got: u64, want: u64| {
            let (name, operands) = (spelling.mnemonic(), operands());
            Err(format!("{name} on {path:?}, {overlap:?}, of {operands:?}: {what} {got:#x}, not {want:#x}"))
        };
        let (got, want) = (result.get(signature.destination, lane), in_register(signature.destination, *d));
        if got != want {
            return differs("result", got, want);
        }
        let got = destinations[1].get(Type::Pred, lane);
        if signature.second && got != *q & 1 {
            return differs("second result", got, *q & 1);
        }
    }
    // Nothing behind the lanes is written.
    let bytes = match signature.destination.bits() {
        1 => lanes / 8,
        bits => lanes * bits.max(16) as usize / 8,
    };
    if overlap == Overlap::None && destinations[0].0[bytes..].iter().any(|&b| b != 0xa5) {
        return Err(format!("{} on {path:?} wrote behind its lanes", spelling.mnemonic()));
    }
    Ok(())
}

/// Sources of some lanes, and what comes of them.
struct Batch {
    sources: Vec<Register>,
    expected: Vec<[u64; 2]>,
    lanes: usize,
}

/// Of how many sets of operands one is taken: `PTXVM_SETS`, for hosts that are emulated.
fn sets_for_one() -> usize {
    let number = std::env::var("PTXVM_SETS").map_or(Ok(1), |text| text.parse());
    number.expect("PTXVM_SETS is a number").max(1)
}

/// Checks one spelling on every path; the number of lanes computed.
fn check_spelling(spelling: &Spelling, signature: &Signature) -> Result<usize, String> {
    let form = spelling.form.form();
    // The same operands whichever handlers there are.
    let seed = spelling
        .mnemonic()
        .bytes()
        .fold(1, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut sets = operand_sets(&signature.sources, &mut Random::new(seed));
    let taken = sets_for_one();
    // Spellings with the same operands take others of them.
    let mut number = seed as usize % taken;
    sets.retain(|_| {
        number += 1;
        number.is_multiple_of(taken)
    });
    for (number, chunk) in sets.chunks(MANY).enumerate() {
        let mut batch = Batch {
            sources: vec![Register::new(); signature.sources.len()],
            expected: Vec::new(),
            lanes: chunk.len(),
        };
        for (lane, values) in chunk.iter().enumerate() {
            for ((register, &ty), &value) in batch.sources.iter_mut().zip(&signature.sources).zip(values) {
                register.set(ty, lane, in_register(ty, value));
            }
            let plain: Vec<u64> = signature
                .sources
                .iter()
                .zip(values)
                .map(|(&ty, &value)| values::low_bits(ty, value))
                .collect();
            batch.expected.push(expected(form, &spelling.picks, &plain).expect("a pure form"));
        }
        for path in available_paths() {
            check(spelling, path, signature, &batch, Overlap::None)?;
            if number == 0 {
                check(spelling, path, signature, &batch, Overlap::Apart)?;
                check(spelling, path, signature, &batch, Overlap::Repeated)?;
            }
            for (i, ty) in signature.sources.iter().enumerate() {
                let width = |ty: Type| if ty == Type::Pred { 1 } else { ty.bits().max(16) };
                if number == 0 && width(*ty) == width(signature.destination) {
                    check(spelling, path, signature, &batch, Overlap::InPlace(i))?;
                }
            }
        }
    }
    Ok(sets.len())
}

/// The spellings that have a handler.
fn served() -> Vec<(Spelling, Signature)> {
    all_spellings()
        .filter_map(|spelling| {
            let form = spelling.form.form();
            lookup(form, &spelling.picks, HostPath::Portable)?;
            let signature = Signature::new(form, &spelling.picks);
            Some((spelling, signature.expect("handlers are for plain operands")))
        })
        .collect()
}

#[test]
fn handlers_compute_what_sem_computes() {
    let served = served();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let share = |worker: usize| -> Vec<Result<usize, String>> {
        let share = served.iter().skip(worker).step_by(threads);
        share.map(|(spelling, signature)| check_spelling(spelling, signature)).collect()
    };
    let results: Vec<Result<usize, String>> = std::thread::scope(|scope| {
        // The first is this thread: WebAssembly has no other.
        let workers: Vec<_> = (1..threads).map(|worker| scope.spawn(move || share(worker))).collect();
        let others = workers.into_iter().map(|worker| worker.join().expect("workers do not panic"));
        share(0).into_iter().chain(others.flatten()).collect()
    });
    let failures: Vec<&String> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert!(failures.is_empty(), "{} handlers differ from sem:\n{failures:#?}", failures.len());
    let lanes: usize = results.iter().flatten().sum();
    println!(
        "{} of {} spellings have handlers; {lanes} sets of operands, each on {:?}",
        served.len(),
        all_spellings().count(),
        available_paths()
    );
}

/// Every form of one source of up to 16 bits, on all values of it.
#[test]
fn all_values_of_short_sources() {
    use lanes::{Handler, LaneWidth, Operand};
    const VALUES: usize = 1 << 16;
    let mut spellings = 0;
    for (spelling, signature) in served() {
        let &[ty] = &signature.sources[..] else { continue };
        if ty.bits() > 16 || ty == Type::Pred || signature.second || cfg!(miri) {
            continue;
        }
        let form = spelling.form.form();
        let mut source = Operand::new(LaneWidth::B2, VALUES);
        let mut want = Vec::with_capacity(VALUES);
        for value in 0..VALUES as u64 {
            let value = in_register(ty, value);
            source.set(value as usize, value);
            let [d, _] =
                expected(form, &spelling.picks, &[values::low_bits(ty, value)]).expect("a pure form");
            want.push(in_register(signature.destination, d));
        }
        for path in available_paths() {
            let handler = Handler::new(form, &spelling.picks, path).expect("it is served");
            let mut result = Operand::new(handler.destination(), VALUES);
            handler.run(&mut result, None, &[&source]);
            for (value, &want) in want.iter().enumerate() {
                let at = in_register(ty, value as u64) as usize;
                assert_eq!(result.get(at), want, "{} of {value:#x} on {path:?}", spelling.mnemonic());
            }
        }
        spellings += 1;
    }
    assert!(cfg!(miri) || spellings > 200, "{spellings}");
    println!("{spellings} spellings");
}

/// No form falls back to `sem`; but moves of 128 bits and of vectors are several.
#[test]
fn every_form_has_a_handler() {
    let lacks =
        |spelling: &Spelling| lookup(spelling.form.form(), &spelling.picks, HostPath::Portable).is_none();
    let mut missing: Vec<String> =
        all_spellings().filter(lacks).map(|spelling| spelling.mnemonic()).collect();
    missing.retain(|mnemonic| !mnemonic.starts_with("mov.v"));
    assert_eq!(missing, ["mov.b128"]);
}

#[test]
fn every_path_serves_the_same_forms() {
    for spelling in all_spellings() {
        let found = HostPath::ALL.map(|path| lookup(spelling.form.form(), &spelling.picks, path).is_some());
        assert!(found == [true; 3] || found == [false; 3], "{}", spelling.mnemonic());
    }
}

#[test]
fn paths_are_chosen_by_name() {
    assert!(available_paths().contains(&HostPath::Portable));
    let fastest = available_paths().pop();
    assert_eq!(choose_host_path(None).ok(), fastest);
    for path in HostPath::ALL {
        let want = if path.is_available() { Ok(path) } else { Err(HostPathError::Unavailable(path)) };
        assert_eq!(choose_host_path(Some(path.name())), want);
    }
    let error = choose_host_path(Some("avx1024")).expect_err("there is none");
    assert_eq!(error.to_string(), "PTXVM_HOST_PATH=avx1024: not one of portable, avx2, avx512");
}

/// So does `rsqrt.approx.ftz.f64`, whose operand and result have 21 bits.
#[test]
fn inverse_roots_of_upper_words() {
    let mut near = 0;
    for word in 1023u64 << 20..1025 << 20 {
        let bits = word << 32;
        let root = 1.0 / f64::from_bits(bits).sqrt();
        if (root.to_bits() & 0xffff_ffff).abs_diff(0x8000_0000) <= 2 {
            let mode = sem::round::Mode { ftz: true, ..sem::round::Mode::NEAREST };
            let expected = sem::arith::rsqrt(&sem::format::F64_UPPER, mode, bits);
            let rounded = (root.to_bits() + 0x7fff_ffff + (root.to_bits() >> 32 & 1)) >> 32;
            assert_eq!(rounded << 32, expected, "{bits:#x}");
            near += 1;
        }
    }
    assert!(near < 1000, "{near}");
}

/// `rsqrt` rounds twice. Its binary64 result is within 2 units in the last place; where one is that close to the middle
/// between two binary32 numbers, `sem` must agree. Exponents but for their parity do not matter.
#[test]
fn inverse_roots_near_a_rounding_boundary() {
    let mut near = 0;
    for bits in 127u32 << 23..129 << 23 {
        let root = 1.0 / f64::from(f32::from_bits(bits)).sqrt();
        if (root.to_bits() & 0x1fff_ffff).abs_diff(0x1000_0000) <= 2 {
            let mode = sem::round::Mode::NEAREST;
            let expected = sem::arith::rsqrt(&sem::format::F32, mode, u64::from(bits));
            assert_eq!(u64::from((root as f32).to_bits()), expected, "{bits:#x}");
            near += 1;
        }
    }
    assert!((1..1000).contains(&near), "{near}");
}

/// With `.ftz` a result is rounded as if there were no least exponent: those that are only just normal, and those that only just are not.
#[test]
fn just_below_the_normal_numbers() {
    use lanes::{Handler, LaneWidth, Operand};
    const LANES: usize = 1 << 10;
    let least = f64::from(f32::MIN_POSITIVE);
    let mut random = values::Random::new(12);
    let mut spellings = 0;
    for (spelling, signature) in served() {
        let (form, picks) = (spelling.form.form(), &spelling.picks);
        let counts =
            matches!(form.opcode, Opcode::Mul | Opcode::Fma | Opcode::Mad | Opcode::Div | Opcode::Rcp);
        if !counts || picks.types() != [Type::F32] || !picks.has(Mod::Ftz) || picks.has(Mod::Approx) {
            continue;
        }
        let mut sources = vec![Operand::new(LaneWidth::B4, LANES); signature.sources.len()];
        let mut want = Vec::with_capacity(LANES);
        for lane in 0..LANES {
            let bits = random.next();
            let sign = if bits & 1 != 0 { -1.0 } else { 1.0 };
            let a = f32::from_bits((67 + (bits >> 8 & 63) as u32) << 23 | (bits >> 32) as u32 & 0x7f_ffff);
            let c = sign * [0.0, 0.0, 1.0, -3.0, 16.0][(bits >> 20) as usize % 5] * least;
            // A few units more or less.
            let near = |x: f64| {
                f32::from_bits((x as f32).to_bits().wrapping_add((bits >> 16) as u32 % 5).wrapping_sub(2))
            };
            let operands = match form.opcode {
                Opcode::Mul => vec![a, near(sign * least / f64::from(a))],
                Opcode::Div => vec![near(sign * least * f64::from(a)), a],
                Opcode::Rcp => vec![near(sign / least)],
                _ => vec![a, near((sign * least - c) / f64::from(a)), c as f32],
            };
            let operands: Vec<u64> = operands.into_iter().map(|x| x.to_bits().into()).collect();
            for (source, &operand) in sources.iter_mut().zip(&operands) {
                source.set(lane, operand);
            }
            want.push(expected(form, picks, &operands).expect("a pure form")[0]);
        }
        for path in available_paths() {
            let handler = Handler::new(form, picks, path).expect("it is served");
            let mut result = Operand::new(handler.destination(), LANES);
            handler.run(&mut result, None, &sources.iter().collect::<Vec<_>>());
            for (lane, &want) in want.iter().enumerate() {
                let operands: Vec<u64> = sources.iter().map(|source| source.get(lane)).collect();
                assert_eq!(
                    result.get(lane),
                    want,
                    "{} of {operands:x?} on {}",
                    spelling.mnemonic(),
                    path.name()
                );
            }
        }
        spellings += 1;
    }
    assert!(spellings > 10, "only {spellings}");
}

/// 185 * 2^-133 times 1417 * 2^-19 is 2^-134 + 2^-152: more than half of the least bfloat16 number, but not in binary32.
#[test]
fn products_of_two_formats_round_once() {
    let spelling = all_spellings().find(|spelling| spelling.mnemonic() == "mul.bf16x2.bf16x2.f16x2").unwrap();
    for path in available_paths() {
        let handler = lanes::Handler::new(spelling.form.form(), &spelling.picks, path).unwrap();
        let [mut a, mut b, mut d] = [(); 3].map(|()| lanes::Operand::new(handler.destination(), 16));
        a.set(3, 0x00b9_0000);
        b.set(3, 0x1989_0000);
        handler.run(&mut d, None, &[&a, &b]);
        assert_eq!(d.get(3), 0x0001_0000, "{path:?}");
    }
}
