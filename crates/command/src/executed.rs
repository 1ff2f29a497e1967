//! Which forms are executed: each is launched in a kernel on both engines.

use std::sync::{LazyLock, OnceLock};

use isa::enumerate::{
    ENTRY_DECLARATIONS, ENTRY_PARAMETER, MODULE_DECLARATIONS, Spelling, instruction, spellings,
};
use isa::{FormId, Target, Version};
use ptxvm::{Arg, Device, Engine, Error, FaultKind, Module};

use isa::since;

/// Spellings of a row that are tried until the checker accepts one.
const TRIED: usize = 64;
/// Step limit of a launch, in thread-instructions: some examples are loops.
const STEPS: u64 = 100_000;
/// Threads of a block: `wgmma` needs four warps.
const THREADS: u32 = 128;

/// Whether both engines execute the row.
pub fn is_executed(id: FormId) -> bool {
    // Pages ask for each row several times.
    static ANSWERS: LazyLock<Vec<OnceLock<bool>>> =
        LazyLock::new(|| isa::FORMS.iter().map(|_| OnceLock::new()).collect());
    let answer = || {
        let example = spellings(id).filter(Spelling::is_legal).take(TRIED).find_map(|s| example(&s).ok());
        example.is_some_and(|module| {
            [Engine::Interpreter, Engine::Reference].into_iter().all(|engine| executes(engine, &module))
        })
    };
    *ANSWERS[usize::from(id.0)].get_or_init(answer)
}

/// A module with the instruction, for the first version and target that have it.
pub fn example(spelling: &Spelling) -> Result<Module, String> {
    let form = spelling.form.form();
    let optional = form.operands.iter().filter(|o| o.presence == isa::Presence::Optional).count();
    let (version, target) = since(&form.gates(&spelling.picks)).ok_or("nothing has it")?;
    // Instructions that were removed later are legal only in old modules, which have no 128-bit registers.
    let old = (version.max(Version::new(5, 0)), target.max(Target::sm(50)));
    let new = (Version::MAX, target.max(Target::sm(90)));
    let module = |(version, target)| {
        let mut registers = ENTRY_DECLARATIONS.to_owned();
        if version < Version::new(8, 3) {
            registers = registers.replace(".reg .b128 %b128_<9>;", "");
        }
        Module::from_ptx(&format!(
            ".version {version}\n.target {target}\n.address_size 64\n\
             {MODULE_DECLARATIONS}.entry e({ENTRY_PARAMETER}) {{\n{registers}\
             targets: .branchtargets label;\nlabel:\n{}\nexit;\n}}\n",
            instruction(spelling, optional)
        ))
    };
    module(old).or_else(|_| module(new)).map_err(|error| error.to_string())
}

/// Whether an engine executes the module's kernel. The kernel may fault, because its registers are zero.
pub fn executes(engine: Engine, module: &Module) -> bool {
    let device = Device::for_module(module);
    let Ok(loaded) = device.load(module) else { return false };
    let launch = loaded.launch("e").block(THREADS).arg(Arg::bytes([0; 1024])).engine(engine);
    let launch = launch.configure(|config| {
        config.max_steps = Some(STEPS);
        config.deterministic = true;
    });
    match launch.run() {
        Err(Error::Fault { fault, .. }) => fault.kind != FaultKind::Unsupported,
        Err(Error::Unsupported { .. }) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::rows;

    /// Without an accepted example, `is_executed` would report the checker's verdict instead of the engines'.
    #[test]
    fn every_form_has_an_example() {
        for (id, form) in rows() {
            let all = spellings(id).filter(Spelling::is_legal).take(TRIED);
            let mut errors = Vec::new();
            let found = all.map(|spelling| example(&spelling)).find_map(|example| match example {
                Ok(module) => Some(module),
                Err(error) => {
                    errors.push(error);
                    None
                }
            });
            assert!(found.is_some(), "{}: {:?}", form.syntax, errors.first());
        }
    }

    #[test]
    fn engines_execute_the_same() {
        for (id, form) in rows() {
            // Spellings spread over the whole row.
            let legal: Vec<Spelling> = spellings(id).filter(Spelling::is_legal).take(4096).collect();
            let some = legal.iter().step_by(legal.len().div_ceil(8).max(1));
            for module in some.filter_map(|spelling| example(spelling).ok()) {
                for engine in [Engine::Interpreter, Engine::Reference] {
                    assert_eq!(executes(engine, &module), is_executed(id), "{engine:?}: {}", form.syntax);
                }
            }
        }
    }

    #[test]
    fn all_forms_are_executed_but_those_of_a_fabric_and_of_unknown_layout() {
        for (id, form) in rows() {
            let is_refused = form.syntax.starts_with("fabric.try_")
                || form.action == isa::Action::Effect(isa::Effect::SparseData)
                || form.opcode == isa::Opcode::Ldmatrix && form.syntax.contains(".dtype.atype");
            assert_eq!(is_executed(id), !is_refused, "{}", form.syntax);
        }
    }
}
