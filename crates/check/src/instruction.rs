//! Instructions: form, gates, operands, in the order in which ptxas finds fault with them.

use std::rc::Rc;

use isa::{Consequence, Effect, Form, Gate, Mod, Picks, SelectError, Space, Stage, Token, Type};
use smallvec::SmallVec;
use syntax::tree::{Guard, Instruction as Tree, Operand as OperandTree};

use crate::body::BodyChecker;
use crate::matching::{Complaint, Verdict};
use crate::module::{Instruction, Node, Operand, RegId};
use crate::operand::{Lowered, Value};
use crate::rank::Rank;

/// What an opcode with its modifiers and number of operands means.
#[derive(Debug)]
pub(crate) struct Selection {
    /// The form, or the one that comes nearest.
    pub(crate) form: Option<&'static Form>,
    /// What was picked.
    pub(crate) picks: Picks,
    /// How ptxas calls it in messages.
    pub(crate) name: String,
    pub(crate) errors: Vec<SelectError>,
    /// Gates that the module does not pass.
    closed: Vec<Gate>,
    /// What ptxas says of a form that only lenient checking accepts.
    refused: Option<String>,
}

/// Operands in their places, and what is to be said about them.
struct Fitted {
    operands: Vec<Operand>,
    complaints: SmallVec<[Complaint; 2]>,
}

/// Whom an instruction concerns, for messages.
pub(crate) struct Context<'s> {
    pub(crate) name: &'s str,
    pub(crate) form: &'static Form,
    pub(crate) picks: &'s Picks,
}

impl<'a> BodyChecker<'_, 'a> {
    pub(crate) fn instruction(&mut self, node: &Tree<'a>) {
        let errors_before = self.sink().len();
        let guard = node.guard.as_ref().map(|guard| self.guard(guard));
        let selection = self.selection(node);
        let Some(form) = selection.form else {
            return self.no_form(node, &selection);
        };
        self.modifier_errors(node, &selection);
        if form.action == isa::Action::Effect(Effect::Call) {
            return self.call(node, guard.flatten(), form, &selection, errors_before);
        }
        let operands: SmallVec<[Lowered; 6]> = node.operands.iter().map(|tree| self.lower(tree)).collect();
        self.closed_gates(node, &selection, Stage::Token);
        for error in &selection.errors {
            match error {
                SelectError::UnknownInstruction | SelectError::Types => {
                    return self.report_select(node, &selection, error);
                }
                SelectError::Arguments { .. } => return self.report_select(node, &selection, error),
                _ => {}
            }
        }
        if let Some(Lowered { value: Value::Negated(_), span }) = operands.first() {
            let message = "Operand negation limited to either (source A xor source B) or source C";
            self.sink().error("illegal-negation", *span, message).help("negate with `neg`");
        }
        let (mut form, mut selection) = (form, selection);
        let Fitted { operands: checked, mut complaints } = match self.fit_all(&operands, form, &selection) {
            Ok(fitted) => fitted,
            Err((lowered, spec)) => {
                let Some((other, fitted)) = self.fit_overload(node, &operands, form, &selection) else {
                    let context = Context { name: &selection.name, form, picks: &selection.picks };
                    let help = self.mismatch_help(lowered, spec, &context);
                    let message = format!("Arguments mismatch for instruction '{}'", selection.name);
                    self.sink().error("arguments-mismatch", lowered.span, message).maybe_help(help);
                    return;
                };
                (form, selection) = (other.form.unwrap_or(form), Rc::new(other));
                fitted
            }
        };
        let context = Context { name: &selection.name, form, picks: &selection.picks };
        self.closed_gates(node, &selection, Stage::Form);
        self.closed_gates(node, &selection, Stage::Modifier);
        let compares = matches!(form.opcode, "set" | "setp");
        let modifiers: SmallVec<[&str; 8]> = node.modifiers.iter().map(|m| m.text).collect();
        let rank = |error: &SelectError| Rank::of(error, form.opcode, &modifiers, selection.picks.types());
        self.late_errors(node, &selection, |error| rank(error) == Rank::Operation);
        self.late_errors(node, &selection, |error| rank(error) == Rank::RoundingFirst);
        self.late_errors(node, &selection, |error| rank(error) == Rank::Modifier);
        self.late_errors(node, &selection, |error| rank(error) == Rank::Flush);
        self.late_errors(node, &selection, |error| rank(error) == Rank::Saturation);
        self.late_errors(node, &selection, |error| rank(error) == Rank::Rounding);
        self.late_errors(node, &selection, |error| rank(error) == Rank::Kind && !compares);
        complaints.sort_by_key(|complaint| match complaint.code {
            "illegal-negation" => 0,
            "special-register" => 1,
            _ => 2,
        });
        let (early, late): (SmallVec<[Complaint; 2]>, SmallVec<[Complaint; 2]>) =
            complaints.into_iter().partition(|complaint| complaint.before_rounding);
        let complain = |checker: &mut Self, complaints: SmallVec<[Complaint; 2]>| {
            for complaint in complaints {
                let Complaint { code, span, message, help, .. } = complaint;
                checker.sink().error(code, span, message).maybe_help(help);
            }
        };
        complain(self, early);
        self.late_errors(node, &selection, |error| rank(error) == Rank::Other);
        complain(self, late);
        self.late_errors(node, &selection, |error| rank(error) == Rank::Comparison);
        self.late_errors(node, &selection, |error| rank(error) == Rank::RoundingLast);
        self.late_errors(node, &selection, |error| rank(error) == Rank::Kind && compares);
        self.late_errors(node, &selection, |error| rank(error) == Rank::ModifierLast);
        self.closed_gates(node, &selection, Stage::Late);
        self.late_errors(node, &selection, |error| rank(error) == Rank::Combination);
        if self.sink().len() == errors_before {
            crate::ranges::check(self.sink(), &context, &checked, &operands);
        }
        if self.sink().len() == errors_before {
            if let Some(message) = &selection.refused {
                let help = "ptxas rejects this; lenient checking accepts it";
                self.sink().warning("lenient-form", node.span, message.as_str()).help(help);
            }
            let guard = guard.flatten();
            let picks = selection.picks;
            let instruction = Instruction { form, picks, guard, operands: checked, span: node.span };
            self.body.code.push(Node::Instruction(instruction));
        }
    }

    /// Fits the operands into a form; where the first does not, that one and its place.
    fn fit_all<'l>(
        &self,
        operands: &'l [Lowered],
        form: &'static Form,
        selection: &Selection,
    ) -> Result<Fitted, (&'l Lowered, &'static isa::OperandSpec)> {
        let context = Context { name: &selection.name, form, picks: &selection.picks };
        let mut fitted = Fitted { operands: Vec::with_capacity(operands.len()), complaints: SmallVec::new() };
        for (i, (lowered, spec)) in operands.iter().zip(form.operands_with(&selection.picks)).enumerate() {
            match self.fit(lowered, i, spec, &context, &mut fitted.complaints) {
                Verdict::Fits(operand) => fitted.operands.push(operand),
                Verdict::Mismatch => return Err((lowered, spec)),
            }
        }
        Ok(fitted)
    }

    /// Another form with the same modifiers, into which the operands fit.
    fn fit_overload(
        &self,
        node: &Tree<'a>,
        operands: &[Lowered],
        form: &'static Form,
        selection: &Selection,
    ) -> Option<(Selection, Fitted)> {
        let modifiers: SmallVec<[&str; 8]> = node.modifiers.iter().map(|m| m.text).collect();
        let mut id = selection.errors.is_empty().then(|| isa::form_id(form))??;
        while let Some(other) = isa::overload(id, &modifiers, operands.len()) {
            id = other.id;
            let mut closed = other.form().gates(&other.picks);
            closed.retain(|gate| !gate.permits(self.module.version, self.module.target));
            let selection = Selection {
                form: Some(other.form()),
                picks: other.picks,
                name: selection.name.clone(),
                errors: Vec::new(),
                closed,
                refused: None,
            };
            if let Ok(fitted) = self.fit_all(operands, other.form(), &selection) {
                return Some((selection, fitted));
            }
        }
        None
    }

    fn guard(&mut self, guard: &Guard<'a>) -> Option<(RegId, bool)> {
        let lowered = self.lower(&OperandTree::Name(guard.predicate));
        if let Value::Register(id, Type::Pred) = lowered.value {
            return Some((id, guard.negated));
        }
        let help = "a guard is a register declared `.reg .pred`";
        self.sink().error("predicate-expected", lowered.span, "Predicate expression expected").help(help);
        None
    }

    fn selection(&mut self, node: &Tree<'a>) -> Rc<Selection> {
        let last = node.modifiers.last().map_or(node.opcode.span, |modifier| modifier.span);
        let key = (self.module.source.slice(node.opcode.span.to(last)), node.operands.len());
        if let Some(found) = self.selections.get(&key) {
            return found.clone();
        }
        let selection = Rc::new(self.select(node));
        self.selections.insert(key, selection.clone());
        selection
    }

    fn select(&self, node: &Tree<'a>) -> Selection {
        let modifiers: SmallVec<[&str; 8]> = node.modifiers.iter().map(|m| m.text).collect();
        let mut refused = None;
        let (opcode, count) = (node.opcode.text, node.operands.len());
        let selected = isa::select(opcode, &modifiers, count).or_else(|errors| {
            let lenient = self.module.options.lenient.then(|| isa::select_lenient(opcode, &modifiers, count));
            let name = crate::opcodes::display_name(opcode, &modifiers);
            refused = errors.first().map(|error| error.message(&name, &modifiers));
            lenient.flatten().ok_or(errors)
        });
        let (form, picks, errors) = match selected {
            Ok(selected) => (Some(selected.form()), selected.picks, Vec::new()),
            Err(errors) => {
                let (mut types, mut mods) = (Vec::new(), Vec::new());
                for token in modifiers.iter().filter_map(|m| Token::from_name(m)) {
                    match token {
                        Token::Type(ty) => types.push(ty),
                        Token::Mod(modifier) => mods.push(modifier),
                    }
                }
                let alternates = errors.iter().any(|error| matches!(error, SelectError::Alternate { .. }));
                let form = errors.iter().find_map(|error| match *error {
                    SelectError::Arguments { form }
                    | SelectError::Illegal { form, .. }
                    | SelectError::Comparison { form, .. }
                    | SelectError::Alternate { form }
                    | SelectError::Vector { form }
                    | SelectError::Missing { form, .. } => Some(form.form()),
                    _ => None,
                });
                // With wrong types or only unknown modifiers no form is near; any will do for what is checked then.
                let form = form.or_else(|| isa::forms(node.opcode.text).first());
                types.retain(|ty| !form.is_some_and(|form| form.ignored.contains(ty)));
                if alternates {
                    types.retain(|ty| !matches!(ty, Type::Bf16 | Type::Bf16x2 | Type::Tf32));
                }
                (form, Picks::new(&types, &mods), errors)
            }
        };
        let mut closed = Vec::new();
        if let (Some(form), true) = (form, self.module.knows_target()) {
            closed = form.gates(&picks);
            if errors.iter().any(|e| matches!(e, SelectError::Types | SelectError::Alternate { .. })) {
                closed.retain(|gate| gate.stage != Stage::Token);
                let written = modifiers.iter().filter_map(|m| Type::from_name(m));
                closed.extend(written.flat_map(isa::type_gates));
            }
            closed.retain(|gate| !gate.permits(self.module.version, self.module.target));
        }
        let picks = match form {
            Some(form) if self.module.target.number < 20 && errors.is_empty() => implied_ftz(form, picks),
            _ => picks,
        };
        refused = refused.filter(|_| errors.is_empty());
        let name = crate::opcodes::display_name(opcode, &modifiers);
        Selection { form, picks, name, errors, closed, refused }
    }

    /// The opcode has no row in the table.
    fn no_form(&mut self, node: &Tree<'a>, selection: &Selection) {
        let opcode = node.opcode.text;
        if crate::opcodes::is_known(opcode) {
            let message = format!("Instruction '{opcode}' is not supported by ptxvm");
            let help = "it is legal PTX; run this kernel on a GPU, or ask for the instruction";
            self.sink().error("unsupported-instruction", node.opcode.span, message).help(help);
            return;
        }
        self.modifier_errors(node, selection);
        for tree in &node.operands {
            self.lower(tree);
        }
        let near = diag::nearest(opcode, crate::opcodes::all());
        let help = near.map(|near| format!("did you mean '{near}'?"));
        let message = format!("Not a name of any known instruction: '{opcode}'");
        self.sink().error("unknown-instruction", node.opcode.span, message).maybe_help(help);
    }

    /// What is wrong with modifiers whatever the types: unknown and repeated ones.
    fn modifier_errors(&mut self, node: &Tree<'a>, selection: &Selection) {
        let modifiers: SmallVec<[&str; 8]> = node.modifiers.iter().map(|m| m.text).collect();
        for error in &selection.errors {
            if error.comes_first(&modifiers) {
                self.report_select(node, selection, error);
            }
        }
    }

    fn late_errors(&mut self, node: &Tree<'a>, selection: &Selection, wanted: impl Fn(&SelectError) -> bool) {
        let modifiers: SmallVec<[&str; 8]> = node.modifiers.iter().map(|m| m.text).collect();
        for error in &selection.errors {
            let early = error.comes_first(&modifiers) || *error == SelectError::Types;
            if !early && wanted(error) && !hidden(error, &selection.errors, &modifiers) {
                self.report_select(node, selection, error);
            }
        }
    }

    fn report_select(&mut self, node: &Tree<'a>, selection: &Selection, error: &SelectError) {
        let modifiers: SmallVec<[&str; 8]> = node.modifiers.iter().map(|m| m.text).collect();
        let head = node.modifiers.last().map_or(node.opcode.span, |last| node.opcode.span.to(last.span));
        let modifier = |index: usize| node.modifiers.get(index).map_or(head, |m| m.span);
        let (code, span) = match error {
            SelectError::UnknownInstruction => ("unknown-instruction", node.opcode.span),
            SelectError::UnknownModifier { index } => ("unknown-modifier", modifier(*index)),
            SelectError::Repeated { index } => ("repeated-modifier", modifier(*index)),
            SelectError::Types | SelectError::Alternate { .. } => ("instruction-types", head),
            SelectError::Arguments { .. } => ("arguments-mismatch", node.span),
            SelectError::Illegal { index, .. } => ("illegal-modifier", modifier(*index)),
            SelectError::Comparison { index, .. } => ("comparison-mismatch", modifier(*index)),
            SelectError::Missing { .. } => ("missing-modifier", head),
            SelectError::Vector { .. } => ("vector-size", head),
        };
        let mut help = error.help(node.opcode.text);
        if let SelectError::UnknownModifier { index } = error
            && let Some(written) = modifiers.get(*index)
        {
            let names = isa::forms(node.opcode.text)
                .iter()
                .flat_map(|form| form.slots)
                .flat_map(|slot| slot.choices)
                .map(|choice| choice.token.name());
            if let Some(near) = diag::nearest(written, names) {
                help = Some(format!("did you mean '.{near}'?"));
            }
        }
        if *error == SelectError::Types && self.packed_set(node, selection) {
            return;
        }
        let special = selection.form.and_then(|form| {
            let target = self.module.target;
            crate::wording::special(error, form, &selection.name, &selection.picks, &modifiers, target)
        });
        let messages = special.unwrap_or_else(|| vec![error.message(&selection.name, &modifiers)]);
        for message in messages {
            self.sink().error(code, span, message).maybe_help(help.clone());
        }
    }

    /// `set.u16x2`, which ptxas has for one target and the manual for none. Was it that?
    fn packed_set(&mut self, node: &Tree<'a>, selection: &Selection) -> bool {
        let ("set", [ty @ (Type::U16x2 | Type::S16x2)]) = (node.opcode.text, selection.picks.types()) else {
            return false;
        };
        if node.modifiers.iter().any(|m| matches!(m.text, "and" | "or" | "xor")) {
            return false;
        }
        let target = self.module.target;
        let message = format!("Instruction 'set{ty}' not supported on .target '{target}'");
        let help = "the manual knows no such instruction";
        self.sink().error("requires-target", node.opcode.span, message).help(help);
        true
    }

    /// Reports the gates of one stage that the module does not pass.
    fn closed_gates(&mut self, node: &Tree<'a>, selection: &Selection, stage: Stage) {
        for gate in selection.closed.iter().filter(|gate| gate.stage == stage) {
            // Point at the modifier that the message names, if there is one.
            let named = node.modifiers.iter().find(|m| gate.subject.contains(&format!("'.{}'", m.text)));
            let span = named.map_or(node.opcode.span, |m| m.span);
            let mut message = gate.message(self.module.target);
            // ptxas names the space last: `atom.add.f16.global`.
            if gate.subject.starts_with("Instruction 'atom.")
                && let Some(space) = selection.picks.mods().iter().find(|m| m.space().is_some())
            {
                let subject = gate.subject.trim_end_matches('\'');
                message = message.replace(gate.subject, &format!("{subject}.{}'", space.name()));
            }
            match gate.requires {
                isa::Requirement::Version(_) => self.module.need_version(span, message),
                _ => self.module.need_target(span, message),
            }
        }
    }
}

/// A modifier that is illegal hides that others are missing, except the operators of comparisons.
fn hidden(error: &SelectError, all: &[SelectError], modifiers: &[&str]) -> bool {
    matches!(error, SelectError::Missing { slot, .. } if !matches!(*slot, "CmpOp" | "BoolOp"))
        && all.iter().any(|error| match error {
            SelectError::Illegal { index, .. } => {
                !matches!(modifiers.get(*index), Some(&("ftz" | "sat")))
                    && Rank::of(error, "", modifiers, &[]) != Rank::ModifierLast
            }
            _ => false,
        })
}

/// On sm_1x, single-precision instructions flush subnormals without being told.
fn implied_ftz(form: &Form, picks: Picks) -> Picks {
    let takes_ftz = form.slots.iter().any(|slot| slot.choice(Token::Mod(Mod::Ftz)).is_some());
    if !takes_ftz || picks.has(Mod::Ftz) || !picks.types().contains(&Type::F32) {
        return picks;
    }
    let with = picks.with(Mod::Ftz);
    let legal = form.rules.iter().filter(|rule| rule.applies(&with)).all(|rule| match rule.then {
        Consequence::Needs(needs, _) => needs.iter().all(|condition| condition.holds(&with)),
        Consequence::Gates(_) => true,
    });
    if legal { with } else { picks }
}

/// May an address in `symbol` space be used by an instruction on `space`?
pub(crate) fn space_allows(space: Space, symbol: Space) -> bool {
    match space {
        Space::Generic => matches!(symbol, Space::Global | Space::Shared | Space::Local | Space::Generic),
        _ => space == symbol,
    }
}
