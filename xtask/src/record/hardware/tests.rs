//! The programs, run by ptxvm in place of a GPU: they must be legal, and bring the operands to the instruction.

use std::collections::HashSet;

use test_utils::folds::check;

use super::*;

struct Interpreter;

impl Machine for Interpreter {
    fn run(&mut self, program: &Program, text: &str, sources: &[u64]) -> Result<Vec<u64>> {
        let count = sources.len() / program.sources.len();
        let device = ptxvm::Device::new();
        let (from, to) = (device.array(sources)?, device.zeros::<u64>(2 * count)?);
        let module = device.load(&ptxvm::Module::from_ptx(text)?)?;
        let blocks = count.div_ceil(program::BLOCK) as u32;
        let launch = module.launch("k").grid(blocks).block(program::BLOCK as u32);
        launch.arg(&from).arg(&to).arg(count as u32).run()?;
        Ok(to.read()?)
    }
}

#[test]
fn every_program_runs_its_instruction() {
    let target = Target::new(100, isa::Suffix::Architecture);
    assert_eq!(newest_version(&mut Interpreter, target).expect("it runs"), Version::MAX);
    let mut opcodes = HashSet::new();
    let mut count = 0;
    let all = programs(|_| true, Version::MAX, target);
    for (i, program) in all.enumerate() {
        // A sample, and one of each opcode.
        if !opcodes.insert(program.mnemonic.split('.').next().map(str::to_owned)) && i % 7 != 0 {
            continue;
        }
        let lines = answers(&mut Interpreter, &program, (Version::MAX, target), 3);
        for line in lines.unwrap_or_else(|error| panic!("{}: {error}", program.mnemonic)) {
            check(&line).unwrap_or_else(|message| panic!("{message}"));
        }
        count += 1;
    }
    assert!(count > 500, "only {count} programs");
    assert!(opcodes.len() > 50, "only {} opcodes", opcodes.len());
}

#[test]
fn operands_are_as_wide_as_their_types() {
    let mut random = Rng::with_seed(2);
    for &ty in isa::Type::ALL.iter().filter(|ty| ty.bits() <= 64) {
        let values = vectors::sources(&[ty, ty], 500, &mut random);
        assert!(values.iter().all(|value| value.checked_shr(ty.bits()).unwrap_or(0) == 0), "{ty}");
        assert!(ty.bits() < 16 || values.iter().collect::<HashSet<_>>().len() > 100, "{ty}");
    }
}
