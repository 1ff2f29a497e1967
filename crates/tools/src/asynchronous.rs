//! The instructions of a kernel that start asynchronous work, and those that order it, by start of their spans.

use std::collections::{HashMap, HashSet};

use check::Module;
use check::module::{Instruction, Node};
use isa::{Action, Effect, Mod};
use machine::OperationKind;

/// An instruction that writes registers asynchronously.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Issue {
    /// `wgmma.mma_async`
    Product,
    /// `tcgen05.ld`
    TensorLoad,
}

impl Issue {
    /// Whether an operation of the instruction writes the registers; other operations compute addresses.
    pub fn is_made_by(self, kind: OperationKind) -> bool {
        kind == match self {
            Issue::Product => OperationKind::Collective,
            Issue::TensorLoad => OperationKind::Defined,
        }
    }
}

/// The asynchronous instructions of a kernel.
#[derive(Default)]
pub(crate) struct Asynchronous {
    /// `fence.proxy.async`, including its one-directional forms.
    pub proxy_fences: HashSet<u32>,
    /// `tcgen05.commit`
    pub commits: HashSet<u32>,
    pub issues: HashMap<u32, Issue>,
    /// Instructions that signal an mbarrier object when their work is done: copies, and `tcgen05.commit`.
    pub signals: HashSet<u32>,
    /// Some instruction reads memory through the async proxy.
    pub reads: bool,
    /// `mbarrier.init`
    pub makes_objects: bool,
    /// `mbarrier.inval`
    pub ends_objects: bool,
    /// Operations on mbarrier objects with `.relaxed`: arrivals release nothing, tests acquire nothing.
    pub relaxed: HashSet<u32>,
}

/// The instructions that a launch of a kernel may execute: its own, and those of all functions.
pub(crate) fn instructions<'m>(module: &'m Module, kernel: &str) -> impl Iterator<Item = &'m Instruction> {
    let functions =
        module.functions.iter().filter(move |function| !function.is_entry || function.name == kernel);
    let code = functions.filter_map(|function| function.body.as_ref()).flat_map(|body| &body.code);
    code.filter_map(|node| match node {
        Node::Instruction(instruction) => Some(instruction),
        _ => None,
    })
}

impl Asynchronous {
    pub fn of(module: &Module, kernel: &str) -> Asynchronous {
        let mut all = Asynchronous::default();
        instructions(module, kernel).for_each(|instruction| all.add(instruction));
        all
    }

    fn add(&mut self, instruction: &Instruction) {
        let (start, picks) = (instruction.span.start, &instruction.picks);
        let Action::Effect(effect) = instruction.form.action else { return };
        self.reads |= matches!(
            effect,
            Effect::CpAsyncBulk | Effect::CopyTensor | Effect::Wgmma | Effect::TensorMma | Effect::TensorCp
        );
        if matches!(
            effect,
            Effect::CpAsyncBulk
                | Effect::CopyTensor
                | Effect::StoreAsync
                | Effect::TryCancel
                | Effect::TensorCommit
        ) {
            self.signals.insert(start);
        }
        match effect {
            Effect::Fence
                if picks.has(Mod::Proxy) && (picks.has(Mod::Async) || picks.has(Mod::AsyncGeneric)) =>
            {
                self.proxy_fences.insert(start);
            }
            Effect::TensorCommit => drop(self.commits.insert(start)),
            Effect::Wgmma => drop(self.issues.insert(start, Issue::Product)),
            Effect::Mbarrier if picks.has(Mod::Init) => self.makes_objects = true,
            Effect::Mbarrier if picks.has(Mod::Inval) => self.ends_objects = true,
            Effect::Mbarrier if picks.has(Mod::Relaxed) => drop(self.relaxed.insert(start)),
            Effect::TensorLd => drop(self.issues.insert(start, Issue::TensorLoad)),
            _ => {}
        }
    }
}
