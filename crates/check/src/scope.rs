//! Names and their scopes (PTX ISA, "Identifiers", "Parameterized Variable Names").

use std::collections::{HashMap, HashSet};

use diag::Span;
use isa::Type;

use crate::module::{BranchTargetsId, FuncId, LabelId, PrototypeId, RegId, VarId};

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Entity {
    /// A scalar register; it gets an id when an instruction first names it.
    Register(Type, Option<RegId>),
    /// A vector register: type of the elements, their number, and their ids.
    VectorRegister(Type, u8, [Option<RegId>; 4]),
    Variable(VarId),
    /// A parameter of the current function in `.param` space.
    Param(u32),
    /// A return parameter of the current function in `.param` space.
    Return(u32),
    Function(FuncId),
    Label(LabelId),
    BranchTargets(BranchTargetsId),
    Prototype(PrototypeId),
    /// The label of a `.calltargets`: index into `BodyChecker::call_targets`.
    CallTargets(usize),
}

/// The meaning of a name and the span of its declaration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declared {
    pub(crate) entity: Entity,
    pub(crate) span: Span,
}

/// `name<count>`
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) count: u64,
    pub(crate) entity: Entity,
    pub(crate) span: Span,
}

/// Why a name cannot be declared.
pub(crate) struct Conflict {
    /// The name as ptxas reports it.
    pub(crate) name: String,
    /// The span of its first declaration.
    pub(crate) previous: Span,
}

fn conflict(name: impl Into<String>, previous: Span) -> Conflict {
    Conflict { name: name.into(), previous }
}

/// The names of one `{ }`, or of the module.
#[derive(Default)]
pub(crate) struct Scope<'a> {
    /// Names declared so far, and the members of ranges that were used.
    names: HashMap<&'a str, Declared>,
    /// Ranges by prefix. They are not expanded: `%r<4000000000>` is one entry.
    ranges: HashMap<&'a str, Range>,
    /// Single names by prefix, with their numbers. A later range may take them over.
    numbered: HashMap<&'a str, Vec<(u64, &'a str)>>,
    /// All labels of the block, including those further down.
    labels: HashMap<&'a str, LabelId>,
    /// Labels of `.branchtargets`, `.calltargets` and `.callprototype` anywhere in the block. They must be declared
    /// before use.
    tables: HashSet<&'a str>,
}

/// `%r12` as `%r` and 12. All trailing digits count, as in ptxas: `%r1<5>` declares nothing that could be named.
pub(crate) fn split_number(name: &str) -> Option<(&str, u64)> {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[base.len()..];
    if digits.is_empty() || base.is_empty() {
        return None;
    }
    Some((base, digits.parse().ok()?))
}

impl<'a> Scope<'a> {
    /// Declares one name.
    pub(crate) fn declare(&mut self, name: &'a str, entity: Entity, span: Span) -> Result<(), Conflict> {
        if let Some(previous) = self.names.get(name) {
            return Err(conflict(name, previous.span));
        }
        if let Some((base, number)) = split_number(name) {
            if let Some(range) = self.ranges.get(base)
                && number < range.count
            {
                return Err(conflict(name, range.span));
            }
            self.numbered.entry(base).or_default().push((number, name));
        }
        self.names.insert(name, Declared { entity, span });
        Ok(())
    }

    /// Declares `name0` to `name(count-1)`. As in ptxas, earlier declarations of such names no longer apply.
    pub(crate) fn declare_range(&mut self, name: &'a str, range: Range) -> Result<(), Conflict> {
        if let Some(previous) = self.ranges.get(name) {
            return Err(conflict(format!("{name}<"), previous.span));
        }
        for (_, member) in self.numbered.get(name).into_iter().flatten().filter(|one| one.0 < range.count) {
            self.names.remove(member);
        }
        self.ranges.insert(name, range);
        Ok(())
    }

    /// Declares a label of the block before its statement is reached.
    pub(crate) fn foresee_label(&mut self, name: &'a str, make: impl FnOnce() -> LabelId) {
        self.labels.entry(name).or_insert_with(make);
    }

    /// Records that the block contains a table with this label.
    pub(crate) fn foresee_table(&mut self, name: &'a str) {
        self.tables.insert(name);
    }

    /// Does the block contain a table with this label?
    pub(crate) fn foresees_table(&self, name: &str) -> bool {
        self.tables.contains(name)
    }

    /// The label of this name anywhere in the block.
    pub(crate) fn label(&self, name: &str) -> Option<LabelId> {
        self.labels.get(name).copied()
    }

    /// The meaning of a name in this scope, for modification.
    pub(crate) fn get_mut(&mut self, name: &'a str) -> Option<&mut Declared> {
        if !self.names.contains_key(name) {
            let (base, number) = split_number(name)?;
            let range = self.ranges.get(base).filter(|range| number < range.count)?;
            let member = Declared { entity: range.entity, span: range.span };
            self.names.insert(name, member);
        }
        self.names.get_mut(name)
    }

    /// The meaning of a name that is not a member of a range.
    pub(crate) fn get(&self, name: &str) -> Option<&Declared> {
        self.names.get(name)
    }

    /// The range with this prefix.
    pub(crate) fn range(&self, prefix: &str) -> Option<&Range> {
        self.ranges.get(prefix)
    }

    /// All names, for suggestions. They are in order: of names that are equally near, the first is suggested.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut names: Vec<&str> = self.names.keys().chain(self.labels.keys()).copied().collect();
        names.sort_unstable();
        names.into_iter()
    }
}
