//! Selects the form of an instruction and finds the errors of its modifiers: picks and gates, each error with the
//! stage at which ptxas reports it. `modifiers.rs` reports them.

use isa::{Consequence, Form, Gate, Mod, Opcode, Picks, Property, SelectError, Target, Token, Type, Version};
use smallvec::SmallVec;
use syntax::tree::Instruction as Tree;

use crate::checker::Checker;
use crate::order::Stage;

/// The meaning of an opcode with its modifiers and number of operands.
#[derive(Debug)]
pub(crate) struct Selection {
    /// The form, or the nearest one if none fits.
    pub(crate) form: Option<&'static Form>,
    /// The picks in the form's slots.
    pub(crate) picks: Picks,
    /// The instruction's name in messages of ptxas.
    pub(crate) name: String,
    pub(crate) errors: Vec<SelectError>,
    /// The errors that ptxas reports on the modifiers, each with its stage.
    pub(crate) findings: Vec<Finding>,
    /// The message of ptxas for a form that only lenient checking accepts.
    pub(crate) refused: Option<String>,
}

/// An error in modifiers.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) stage: Stage,
    /// Index of the modifier, where ptxas reads modifiers one by one.
    pub(crate) index: usize,
    pub(crate) fault: Fault,
}

#[derive(Debug)]
pub(crate) enum Fault {
    Select(SelectError),
    /// More than two formats of a matrix conversion.
    Formats,
    /// A gate that rejects the module.
    Closed(Gate),
}

impl<'a> Checker<'a> {
    /// The form that an opcode and its modifiers mean, or the nearest one.
    pub(crate) fn select(&self, node: &Tree<'a>) -> Selection {
        let modifiers: SmallVec<[&str; 8]> = node.modifiers.iter().map(|m| m.text).collect();
        let mut refused = None;
        let (opcode, count) = (node.opcode.text, node.operands.len());
        let selected = isa::select(opcode, &modifiers, count).or_else(|errors| {
            let lenient = self.options.lenient.then(|| isa::select_lenient(opcode, &modifiers, count));
            let name = crate::opcodes::display_name(opcode, &modifiers);
            refused = errors.first().map(|error| error.message(&name, &modifiers));
            lenient.flatten().ok_or(errors)
        });
        let selected = match selected {
            Err(errors) if let Some(implied) = self.with_default(opcode, &modifiers, count, &errors) => {
                return implied;
            }
            other => other,
        };
        let (form, picks, errors) = match selected {
            Ok(selected) => (Some(selected.form()), selected.picks, Vec::new()),
            // ptxas reports the types, not the modifier, in two cases: for `set` that combines packed integers with a
            // predicate, and for arithmetic with `.satfinite` in formats that do not have it.
            Err(errors)
                if opcode == "set" && combines_packed_integers(&modifiers)
                    || !errors.iter().any(|error| matches!(error, SelectError::UnknownModifier { .. }))
                        && saturates_other_formats(opcode, &modifiers) =>
            {
                return self.refused(node, isa::forms(opcode).first(), vec![SelectError::Types]);
            }
            Err(errors) => {
                let form = errors.iter().find_map(|error| match *error {
                    SelectError::Arguments { form }
                    | SelectError::Illegal { form, .. }
                    | SelectError::Says { form, .. }
                    | SelectError::Comparison { form, .. }
                    | SelectError::Operation { form, .. }
                    | SelectError::Alternate { form }
                    | SelectError::Mixture { form }
                    | SelectError::Vector { form }
                    | SelectError::Fragment { form }
                    | SelectError::Geometries { form, .. }
                    | SelectError::Missing { form, .. } => Some(form.form()),
                    _ => None,
                });
                // With wrong types, or with unknown modifiers only, no form is nearest. The remaining checks can use
                // any form.
                let form = form.or_else(|| isa::forms(node.opcode.text).first());
                return self.refused(node, form, errors);
            }
        };
        let findings = self.findings(form, &picks, &errors, &modifiers);
        let picks = match form {
            Some(form) if self.target.number < 20 => implied_ftz(form, picks),
            _ => picks,
        };
        let name = crate::opcodes::display_name(opcode, &modifiers);
        Selection { form, picks, name, errors, findings, refused }
    }

    /// The meaning of an instruction that lacks a modifier which old modules may omit.
    fn with_default(
        &self,
        opcode: &str,
        modifiers: &[&str],
        operands: usize,
        errors: &[SelectError],
    ) -> Option<Selection> {
        if !errors.iter().any(|error| matches!(error, SelectError::Missing { .. })) {
            return None;
        }
        let defaults =
            isa::forms(opcode).iter().flat_map(|form| form.rules.iter().map(move |rule| (form, rule)));
        let (selected, default) = defaults.into_iter().find_map(|(form, rule)| {
            let Consequence::Default(default, gates) = rule.then else { return None };
            if gates.iter().any(|gate| self.is_closed(gate)) {
                return None;
            }
            let words: SmallVec<[&str; 8]> =
                std::iter::once(default.name()).chain(modifiers.iter().copied()).collect();
            let selected = isa::select(opcode, &words, operands).ok()?;
            std::ptr::eq(selected.form(), form).then_some((selected, default))
        })?;
        let form = selected.form();
        let mut findings = self.findings(Some(form), &selected.picks, &[], modifiers);
        // ptxas checks no gates of a modifier that is not written.
        let implied: Vec<Gate> = isa::token_gates(form, Token::Mod(default)).collect();
        findings.retain(|finding| {
            !matches!(&finding.fault, Fault::Closed(gate)
                if gate.stage == isa::Stage::Rounding || implied.contains(gate))
        });
        let picks = match self.target.number < 20 {
            true => implied_ftz(form, selected.picks),
            false => selected.picks,
        };
        let name = crate::opcodes::display_name(opcode, modifiers);
        Some(Selection { form: Some(form), picks, name, errors: Vec::new(), findings, refused: None })
    }

    /// A selection for an instruction whose modifiers do not fit this form.
    fn refused(&self, node: &Tree<'a>, form: Option<&'static Form>, errors: Vec<SelectError>) -> Selection {
        let modifiers: SmallVec<[&str; 8]> = node.modifiers.iter().map(|m| m.text).collect();
        let (mut types, mut mods) = (Vec::new(), Vec::new());
        for token in modifiers.iter().filter_map(|m| Token::from_name(m)) {
            match token {
                Token::Type(ty) => types.push(ty),
                Token::Mod(modifier) => mods.push(modifier),
            }
        }
        let mut others = 0;
        types.retain(|&ty| {
            let counts = !form.is_some_and(|form| form.ignores(ty, others));
            others += usize::from(counts);
            counts
        });
        if errors.iter().any(|error| matches!(error, SelectError::Alternate { .. })) {
            types.retain(|ty| !isa::is_alternate(*ty));
        }
        if errors.iter().any(|error| matches!(error, SelectError::Mixture { .. })) {
            types = form.and_then(|form| isa::mixture(form, &types)).unwrap_or(types);
        }
        let picks = Picks::new(&types, &mods);
        let opcode = node.opcode.text;
        let findings = self.findings(form, &picks, &errors, &modifiers);
        let name = crate::opcodes::display_name(opcode, &modifiers);
        Selection { form, picks, name, errors, findings, refused: None }
    }

    /// The forms that an instruction with wrong modifiers may mean, nearest first. ptxas searches for a form that
    /// fits the operands before it reports errors in modifiers.
    pub(crate) fn candidates(&self, node: &Tree<'a>, operands: usize) -> impl Iterator<Item = Selection> {
        let modifiers: SmallVec<[&str; 8]> = node.modifiers.iter().map(|m| m.text).collect();
        let candidates = isa::candidates(node.opcode.text, &modifiers, operands);
        candidates.into_iter().map(|(id, errors)| self.refused(node, Some(id.form()), errors))
    }

    pub(crate) fn is_closed(&self, gate: &Gate) -> bool {
        !gate.permits(self.version, self.target)
    }

    /// The errors that ptxas reports on modifiers.
    pub(crate) fn findings(
        &self,
        form: Option<&'static Form>,
        picks: &Picks,
        errors: &[SelectError],
        modifiers: &[&str],
    ) -> Vec<Finding> {
        let opcode = form.map(|form| form.opcode);
        let is_late = |error: &SelectError| match *error {
            SelectError::Repeated { index } => is_late_layout(index, form, picks, modifiers),
            _ => false,
        };
        let reported = errors.iter().filter(|error| !hidden(error, errors, modifiers) && !is_late(error));
        let mut findings: Vec<Finding> = reported
            .map(|error| {
                let (stage, index) = Stage::of_modifiers(error, opcode, modifiers, picks.types());
                Finding { stage, index, fault: Fault::Select(error.clone()) }
            })
            .collect();
        let formats = modifiers.iter().enumerate().filter(|(_, word)| crate::words::is_format(word));
        if let Some((index, _)) = formats.into_iter().nth(2) {
            findings.push(Finding { stage: Stage::Word, index, fault: Fault::Formats });
        }
        let Some(form) = form.filter(|_| self.knows_target()) else { return findings };
        let mut gates = form.gates(picks);
        self.closed_words(form, modifiers, &mut gates, &mut findings);
        let has_types =
            !errors.iter().any(|e| matches!(e, SelectError::Types | SelectError::Alternate { .. }));
        for gate in gates.into_iter().filter(|gate| self.is_closed(gate)) {
            let (stage, index) = Stage::of_table(gate.stage);
            if has_types || stage != Stage::Words {
                findings.push(Finding { stage, index, fault: Fault::Closed(gate) });
            }
        }
        findings
    }

    /// Finds the gates of single modifiers that reject the module. They no longer count among those of the form.
    fn closed_words(
        &self,
        form: &'static Form,
        modifiers: &[&str],
        of_form: &mut Vec<Gate>,
        findings: &mut Vec<Finding>,
    ) {
        let mut closed: Vec<Gate> = Vec::new();
        let tokens = modifiers.iter().enumerate().filter_map(|(i, m)| Some((i, Token::from_name(m)?)));
        for (index, token) in tokens {
            if !isa::is_gated_elsewhere(token) && form.slots.iter().all(|slot| slot.choice(token).is_none()) {
                continue;
            }
            for gate in isa::token_gates(form, token) {
                of_form.retain(|other| *other != gate);
                if self.is_closed(&gate) && !closed.contains(&gate) {
                    closed.push(gate);
                    let (stage, index) = match token {
                        _ if is_restriction(token) && form.opcode == Opcode::Fence => (Stage::FormGate, 1),
                        _ if is_restriction(token) || isa::is_gated_late(token) => {
                            let (stage, place) = crate::order::refusal(modifiers[index]);
                            (stage, place.saturating_sub(1))
                        }
                        _ => (Stage::Word, index),
                    };
                    findings.push(Finding { stage, index, fault: Fault::Closed(gate) });
                }
            }
        }
    }
}

impl Selection {
    /// The message of ptxas for a gate that rejects the module.
    pub(crate) fn gate_message(&self, gate: &Gate, version: Version, target: Target) -> String {
        let types: String = self.picks.types().iter().map(ToString::to_string).collect();
        gate.message(version, target)
            .replace("{types}", &types)
            .replace("{atomic}", &self.atomic_name(&types))
            .replace("{op}", &self.name)
    }

    /// `atom.add.f16.global`, `red.and.b64 with generic state space`
    fn atomic_name(&self, types: &str) -> String {
        let mods = self.picks.mods();
        let operation = mods.iter().find(|m| crate::words::is_operation(m.name()));
        let space = mods.iter().find(|m| m.space().is_some()).map(|m| format!(".{}", m.name()));
        format!(
            "{}.{}{types}{}",
            self.name,
            operation.map_or("", |m| m.name()),
            space.as_deref().unwrap_or(" with generic state space")
        )
    }
}

/// Restrictions of fences.
fn is_restriction(token: Token) -> bool {
    let restrictions = [Mod::MbarrierInit, Mod::SyncRestrictSharedCluster, Mod::SyncRestrictSharedCta];
    matches!(token, Token::Mod(modifier) if restrictions.contains(&modifier))
}

/// Is the modifier of this index a layout that ptxas checks later? It does so unless there are more than two.
fn is_late_layout(index: usize, form: Option<&Form>, picks: &Picks, modifiers: &[&str]) -> bool {
    let is_layout = |word: &&&str| crate::words::is_layout(word);
    modifiers.get(index).filter(is_layout).is_some()
        && modifiers.iter().filter(is_layout).count() <= 2
        && form.is_some_and(|form| form.has(Property::Calls, picks))
        && !modifiers.contains(&"mma")
}

/// Is this error hidden? An illegal modifier hides missing ones, except missing comparison and Boolean operators.
fn hidden(error: &SelectError, all: &[SelectError], modifiers: &[&str]) -> bool {
    let (missing, _) = Stage::of_modifiers(error, None, modifiers, &[]);
    matches!(error, SelectError::Missing { slot, .. } if !matches!(*slot, "CmpOp" | "BoolOp"))
        && missing > Stage::Modifier
        && all.iter().any(|error| match error {
            SelectError::Illegal { index, .. } => {
                let written = modifiers.get(*index).copied().unwrap_or_default();
                let is_query = Mod::from_name(written).is_some_and(crate::words::is_query);
                let (stage, _) = Stage::of_modifiers(error, None, modifiers, &[]);
                let comes_later = stage > missing && stage != Stage::Reduction;
                !matches!(written, "ftz" | "sat") && (is_query || !comes_later)
            }
            _ => false,
        })
}

/// `add.satfinite.f32`
fn saturates_other_formats(opcode: &str, modifiers: &[&str]) -> bool {
    let mut types = modifiers.iter().filter_map(|word| Type::from_name(word));
    matches!(opcode, "add" | "sub" | "mul" | "fma")
        && modifiers.contains(&"satfinite")
        && !modifiers.contains(&"sat")
        && types.next().is_some_and(|ty| ty.lanes() < 4)
}

/// `set.lt.and.u8x4`
fn combines_packed_integers(modifiers: &[&str]) -> bool {
    let types = modifiers.iter().filter_map(|word| Type::from_name(word));
    let mut types = types.filter(|&ty| ty != Type::Pred);
    let is_packed = |ty| matches!(ty, Type::U8x4 | Type::S8x4 | Type::U16x2 | Type::S16x2);
    modifiers.iter().any(|word| matches!(*word, "and" | "or" | "xor"))
        && types.next().is_some_and(is_packed)
        && types.next().is_none()
}

/// On sm_1x, single-precision instructions flush subnormals even without `.ftz`.
fn implied_ftz(form: &Form, picks: Picks) -> Picks {
    let takes_ftz = form.slots.iter().any(|slot| slot.choice(Token::Mod(Mod::Ftz)).is_some());
    if !takes_ftz || picks.has(Mod::Ftz) || !picks.types().contains(&Type::F32) {
        return picks;
    }
    let with = picks.with(Mod::Ftz);
    let legal = form.rules.iter().filter(|rule| rule.applies(&with)).all(|rule| match rule.then {
        Consequence::Needs(needs, _) => needs.iter().all(|condition| condition.holds(&with)),
        Consequence::Gates(_) | Consequence::Default(..) => true,
    });
    if legal { with } else { picks }
}
