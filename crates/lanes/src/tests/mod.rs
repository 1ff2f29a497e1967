//! Every handler against `sem`, and every helper against a loop, on every path of this machine.

mod chain;
mod helpers;
mod matrix;
mod select;
mod values;
mod video;

use super::{HostPath, LaneArgs, Signature, available_paths, choose_host_path, lookup};
use super::{HostPathError, path::BLOCK};
use isa::enumerate::{Spelling, spellings};
use isa::{Action, Effect, FORMS, Form, FormId, LENIENT, Picks, Type};
use values::{Random, operand_sets};

/// Bytes aligned as registers are.
#[repr(C, align(64))]
#[derive(Clone)]
pub(super) struct Register(pub(super) [u8; 8 * LANES]);

/// Lanes that the tests use at most.
pub(super) const LANES: usize = 256;

impl Register {
    pub(super) fn new() -> Register {
        Register([0xa5; 8 * LANES])
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

/// Checks one spelling on every path; the number of lanes computed.
fn check_spelling(spelling: &Spelling, signature: &Signature) -> Result<usize, String> {
    let form = spelling.form.form();
    // The same operands whichever handlers there are.
    let seed = spelling
        .mnemonic()
        .bytes()
        .fold(1, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let sets = operand_sets(&signature.sources, &mut Random::new(seed));
    for (number, chunk) in sets.chunks(LANES).enumerate() {
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

/// What the kernels that are benched and most corpus files consist of must not fall back to `sem`.
#[test]
fn common_instructions_have_handlers() {
    let served: std::collections::HashSet<String> =
        served().into_iter().map(|(spelling, _)| spelling.mnemonic()).collect();
    let common = "add.f32 add.rn.f32 sub.f32 mul.f32 mul.rn.ftz.f32 fma.rn.f32 fma.rn.ftz.sat.f32 neg.f32 abs.f32 \
        min.f32 max.ftz.NaN.f32 div.rn.f32 div.full.f32 rcp.approx.ftz.f32 sqrt.approx.f32 rsqrt.approx.ftz.f32 \
        ex2.approx.ftz.f32 lg2.approx.f32 sin.approx.ftz.f32 cos.approx.f32 tanh.approx.f32 \
        add.f64 mul.f64 fma.rn.f64 setp.lt.f32 setp.neu.ftz.f32 setp.gt.f16x2 setp.lt.and.bf16x2 setp.ge.u64 \
        setp.eq.or.s32 setp.ne.b16 selp.f32 selp.b16 selp.u64 add.s32 add.s64 sub.u16 mul.lo.s32 mul.wide.s32 \
        mul.hi.u32 mad.lo.s32 mad.wide.u32 mad.lo.s64 and.b32 or.b16 xor.b64 not.b32 and.pred not.pred shl.b32 \
        shr.s64 shr.u32 min.s32 max.u64 neg.s32 abs.s32 mov.b32 mov.f64 mov.pred cvt.s64.s32 cvt.u32.u16 \
        cvt.rn.f32.s32 cvt.rzi.s32.f32 cvt.f32.f16 cvt.rn.f16.f32 cvt.f32.bf16 cvt.rn.bf16.f32 cvt.rn.f16x2.f32 \
        cvt.f64.f32 cvt.rn.f32.f64 bfe.u32 bfi.b32 shf.l.wrap.b32 prmt.b32 lop3.b32 popc.b32 clz.b64 brev.b32 \
        slct.f32.s32 set.lt.u32.f32 add.f16x2 sub.f16 mul.bf16 fma.rn.f16 fma.rn.bf16x2 fma.rn.relu.f16x2 min.f16 \
        max.NaN.bf16x2 neg.f16x2 abs.bf16 fma.rn.f32.f16 add.f32.bf16 \
        add.rp.f32.bf16 sub.rz.f32.f16 fma.rm.sat.f32.bf16";
    let missing: Vec<&str> = common.split_whitespace().filter(|name| !served.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
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
