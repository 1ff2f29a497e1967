//! Instructions: form, gates, operands, in the order in which ptxas finds fault with them.

use std::ops::RangeBounds;
use std::rc::Rc;

use diag::{Code, Diagnostic, Span};
use isa::{
    Consequence, Effect, Form, Gate, Mod, Opcode, OperandKind, Picks, Presence, SelectError, Space, Target,
    Token, Type,
};
use smallvec::SmallVec;
use syntax::tree::{Guard, Instruction as Tree, Operand as OperandTree};

use crate::body::BodyChecker;
use crate::matching::{Complaints, Verdict};
use crate::module::{Instruction, Node, Operand, RegId};
use crate::operand::{Lowered, Value};
use crate::order::Stage;

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
    /// What ptxas finds fault with of the modifiers, each with its stage.
    findings: Vec<Finding>,
    /// What ptxas says of a form that only lenient checking accepts.
    refused: Option<String>,
}

/// Something that is wrong with modifiers.
#[derive(Debug)]
struct Finding {
    stage: Stage,
    /// The modifier, where they are read one after the other.
    index: usize,
    fault: Fault,
}

#[derive(Debug)]
enum Fault {
    Select(SelectError),
    /// A gate that the module does not pass.
    Closed(Gate),
}

/// Operands in their places, and what is to be said about them.
struct Fitted {
    operands: Vec<Operand>,
    complaints: Complaints,
}

/// Whom an instruction concerns, for messages.
pub(crate) struct Context<'s> {
    pub(crate) name: &'s str,
    pub(crate) form: &'static Form,
    pub(crate) picks: &'s Picks,
}

impl<'a> BodyChecker<'_, 'a> {
    pub(crate) fn instruction(&mut self, node: &Tree<'a>) {
        let errors_before = self.sink().errors();
        let guard = node.guard.as_ref().map(|guard| self.guard(guard));
        let selection = self.selection(node);
        self.sink().enter(Stage::Operand);
        self.modifiers(node, &selection, ..=Stage::EarlyModifier);
        let Some(form) = selection.form else {
            return self.no_form(node);
        };
        if form.action == isa::Action::Effect(Effect::Call) {
            self.call(node, guard.flatten(), form, &selection, errors_before);
            return self.report_vector_sizes();
        }
        let picks = &selection.picks;
        let lengths = form.operands_with(picks).map(|spec| spec.count(form, picks).0);
        self.longest_vector = lengths.max().unwrap_or(1);
        // Fragments that no vector holds.
        if form.opcode == Opcode::Wmma {
            self.longest_vector = self.longest_vector.min(8);
        }
        self.accesses_texels = crate::texture::is_texel_access(form);
        self.names_tensor = picks.has(isa::Mod::Tensor);
        let operands: SmallVec<[Lowered; 6]> = node.operands.iter().map(|tree| self.lower(tree)).collect();
        self.report_vector_sizes();
        let negation = self.negation(&operands, form, &selection.picks);
        for error in &selection.errors {
            match error {
                SelectError::UnknownInstruction | SelectError::Types => {
                    return self.report_last(node, &selection, error);
                }
                _ if crate::required::states_wrong_spaces(node).is_some() => {
                    let words = crate::required::states_wrong_spaces(node).unwrap_or_default();
                    let message = format!("{words} '{}'", selection.name);
                    self.sink().error_at(Stage::Count, Code::MemorySpace, head(node), message);
                    return;
                }
                SelectError::Missing { .. } | SelectError::Arguments { .. }
                    if crate::required::lacks_geometry(node) =>
                {
                    let message = format!("Geometry modifier required for instruction '{}'", selection.name);
                    self.sink().error_at(Stage::Count, Code::MissingModifier, head(node), message);
                    return;
                }
                SelectError::Arguments { .. } => {
                    self.cache_policy(node, &operands, form, &selection);
                    return self.report_last(node, &selection, error);
                }
                // The number of operands is wrong for what was meant: that is said before what else is.
                SelectError::Illegal { form: id, .. }
                | SelectError::Comparison { form: id, .. }
                | SelectError::Missing { form: id, .. }
                    if !takes(id.form(), &selection.picks, operands.len()) =>
                {
                    return self.report_last(node, &selection, &SelectError::Arguments { form: *id });
                }
                _ => {}
            }
        }
        let (mut form, mut selection) = (form, selection);
        let Fitted { operands: checked, complaints } = match self.fit_all(&operands, form, &selection) {
            Ok(fitted) => fitted,
            Err((lowered, spec)) => {
                let Some((other, fitted)) = self.fit_overload(node, &operands, form, &selection) else {
                    let context = Context { name: &selection.name, form, picks: &selection.picks };
                    let help = self.mismatch_help(lowered, spec, &context);
                    let message = format!("Arguments mismatch for instruction '{}'", selection.name);
                    let code = Code::ArgumentsMismatch;
                    self.sink().error_at(Stage::Mismatch, code, lowered.span, message).maybe_help(help);
                    return;
                };
                (form, selection) = (other.form.unwrap_or(form), Rc::new(other));
                fitted
            }
        };
        self.has_plain_offset = crate::texture::has_plain_offset(form, &selection.picks, &operands);
        let context = Context { name: &selection.name, form, picks: &selection.picks };
        if let Some(span) = crate::inner::wide_tensor_address(form, &operands) {
            self.modifiers(node, &selection, Stage::FormGate..=Stage::FormGate);
            let message = format!("Arguments mismatch for instruction '{}'", selection.name);
            let help = "an address in tensor memory is in a register of 32 bits";
            self.sink().error_at(Stage::FormGate, Code::ArgumentsMismatch, span, message).help(help);
            return;
        }
        if let Some(message) = crate::required::missing(node, &selection.name) {
            self.modifiers(node, &selection, Stage::FormGate..Stage::Other);
            self.sink().error_at(Stage::Other, Code::MissingModifier, head(node), message);
            return;
        }
        self.modifiers(node, &selection, Stage::FormGate..);
        for (stage, complaint) in complaints {
            self.sink().report(stage, 0, complaint);
        }
        if let Some(span) = negation {
            let message = format!("Operand negation not allowed for instruction '{}'", selection.name);
            self.sink()
                .error_at(Stage::Negation, Code::IllegalNegation, span, message)
                .help("compute the negative value with `neg` first");
        }
        let is_vector =
            |lowered: &Lowered| matches!(lowered.value, Value::Vector(..) | Value::VectorRegister(..));
        if form.operands.first().is_some_and(|spec| spec.kind == OperandKind::MovDestination)
            && operands.iter().all(is_vector)
        {
            let message = "Illegal vector-vector operands for vector-scalar or scalar-vector mov instruction";
            let help = "`mov.v2` and `mov.v4` move vectors element by element";
            self.sink().error_at(Stage::FitLast, Code::VectorOperand, node.span, message).help(help);
        }
        self.sink().enter(Stage::Range);
        if self.sink().errors() == errors_before {
            self.check_inside(&context, &operands);
        }
        if self.sink().errors() == errors_before {
            let target = self.module.target;
            crate::ranges::check(self.sink(), &context, target, &checked, &operands);
        }
        if self.sink().errors() == errors_before {
            self.check_combination(node, &context);
        }
        if self.sink().errors() == errors_before {
            if let Some(message) = &selection.refused {
                let help = "ptxas rejects this; lenient checking accepts it";
                self.sink().warning(Code::LenientForm, node.span, message.as_str()).help(help);
            }
            let guard = guard.flatten();
            if form.action == isa::Action::Effect(Effect::Ret) {
                self.pack_returns(node.span);
            }
            let mut picks = selection.picks;
            picks.parts = crate::video::parts(&operands);
            let instruction = Instruction { form, picks, guard, operands: checked, span: node.span };
            self.body.code.push(Node::Instruction(instruction));
        }
    }

    /// One operand too many where the others fit: ptxas takes it for a cache policy.
    fn cache_policy(
        &mut self,
        node: &Tree<'a>,
        operands: &[Lowered],
        form: &'static Form,
        selection: &Selection,
    ) {
        let Some((last, others)) = operands.split_last() else { return };
        let is_policy = match last.value {
            Value::Register(_, ty) => isa::register_allowed(Type::B64, ty, false),
            Value::Const(_) => true,
            _ => false,
        };
        if is_policy
            && matches!(form.opcode, Opcode::Ld | Opcode::St | Opcode::Atom | Opcode::Red)
            && !selection.picks.has(Mod::L2CacheHint)
            && !selection.picks.has(Mod::Cas)
            && takes(form, &selection.picks, others.len())
            && self.fit_all(others, form, selection).is_ok()
        {
            let (name, count) = (&selection.name, operands.len());
            let message =
                format!(".L2::cache_hint modifier required for instruction '{name}' with {count} arguments");
            self.sink().error_at(Stage::CachePolicy, Code::CacheHintMissing, node.span, message);
        }
    }

    /// What ptxas says of an instruction before it comes to the place that does not parse.
    pub(crate) fn unfinished(&mut self, node: &Tree<'a>) {
        if let Some(guard) = &node.guard {
            self.guard(guard);
        }
        let selection = self.selection(node);
        self.sink().enter(Stage::Operand);
        self.modifiers(node, &selection, ..=Stage::EarlyModifier);
        for tree in &node.operands {
            self.lower(tree);
        }
        self.illegal_vectors.clear();
    }

    /// Fits the operands into a form; where the first does not, that one and its place.
    fn fit_all<'l>(
        &self,
        operands: &'l [Lowered],
        form: &'static Form,
        selection: &Selection,
    ) -> Result<Fitted, (&'l Lowered, &'static isa::OperandSpec)> {
        let context = Context { name: &selection.name, form, picks: &selection.picks };
        let complaints = Complaints::default();
        let mut fitted = Fitted { operands: Vec::with_capacity(operands.len()), complaints };
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
            let gates = other.form().gates(&other.picks).into_iter();
            let findings = gates
                .filter(|gate| self.module.knows_target() && self.is_closed(gate))
                .map(|gate| Finding { stage: stage_of(&gate), index: 0, fault: Fault::Closed(gate) })
                .collect();
            let selection = Selection {
                form: Some(other.form()),
                picks: other.picks,
                name: selection.name.clone(),
                errors: Vec::new(),
                findings,
                refused: None,
            };
            if let Ok(fitted) = self.fit_all(operands, other.form(), &selection) {
                return Some((selection, fitted));
            }
        }
        None
    }

    /// Negated operands: the place of what is wrong with them, if ptxas says so later.
    ///
    /// It keeps the signs of sources a and b as one, for the products of the video instructions. Where both are negated
    /// no sign is left: it takes that, and its code has no negation either.
    fn negation(&mut self, operands: &[Lowered], form: &Form, picks: &Picks) -> Option<Span> {
        let first = operands.iter().find(|operand| operand.negated)?.span;
        let negated = |index: usize| operands.get(index).is_some_and(|operand| operand.negated);
        let (product, sum) = (negated(1) != negated(2), negated(3));
        let elsewhere = (0..operands.len()).any(|index| !(1..=3).contains(&index) && negated(index));
        if elsewhere || product && sum {
            let message = "Operand negation limited to either (source A xor source B) or source C";
            self.sink()
                .error_at(Stage::Signs, Code::IllegalNegation, first, message)
                .help("compute the negative value with `neg` first");
        }
        if form.opcode == Opcode::Vmad {
            if picks.has(Mod::Po) && product != sum {
                let message = "Conflicting use of '.po' modifier with operand negation";
                self.sink().error_at(Stage::Signs, Code::IllegalNegation, first, message);
            }
            return None;
        }
        (product != sum).then_some(first)
    }

    fn guard(&mut self, guard: &Guard<'a>) -> Option<(RegId, bool)> {
        let lowered = self.lower(&OperandTree::Name(guard.predicate));
        match lowered.value {
            Value::Register(id, Type::Pred) => return Some((id, guard.negated)),
            Value::Special(special) if special.ty() == Type::Pred => {
                return Some((self.in_register(special, lowered.span).0, guard.negated));
            }
            _ => {}
        }
        let help = "a guard is a register declared `.reg .pred`";
        self.sink().error(Code::PredicateExpected, lowered.span, "Predicate expression expected").help(help);
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
                    types.retain(|ty| !isa::is_alternate(*ty));
                }
                (form, Picks::new(&types, &mods), errors)
            }
        };
        let findings = self.findings(form, &picks, &errors, Opcode::from_name(opcode), &modifiers);
        let picks = match form {
            Some(form) if self.module.target.number < 20 && errors.is_empty() => implied_ftz(form, picks),
            _ => picks,
        };
        refused = refused.filter(|_| errors.is_empty());
        let name = crate::opcodes::display_name(opcode, &modifiers);
        Selection { form, picks, name, errors, findings, refused }
    }

    fn is_closed(&self, gate: &Gate) -> bool {
        !gate.permits(self.module.version, self.module.target)
    }

    /// What ptxas finds fault with of modifiers.
    fn findings(
        &self,
        form: Option<&'static Form>,
        picks: &Picks,
        errors: &[SelectError],
        opcode: Option<Opcode>,
        modifiers: &[&str],
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        // Which layouts there are is looked at later, unless they are too many.
        let too_many = modifiers.iter().filter(|m| crate::required::is_layout(m)).count() > 2;
        let is_late = |error: &SelectError| match *error {
            SelectError::Repeated { index } => {
                let is_layout = modifiers.get(index).is_some_and(|m| crate::required::is_layout(m));
                opcode == Some(Opcode::Wmma) && is_layout && !too_many && !modifiers.contains(&"mma")
            }
            _ => false,
        };
        for error in errors.iter().filter(|error| !hidden(error, errors, modifiers) && !is_late(error)) {
            let (stage, index) = Stage::of_modifiers(error, opcode, modifiers, picks.types());
            findings.push(Finding { stage, index, fault: Fault::Select(error.clone()) });
        }
        let Some(form) = form.filter(|_| self.module.knows_target()) else { return findings };
        let mut closed = form.gates(picks);
        let mut closed_words: Vec<Gate> = Vec::new();
        let tokens = modifiers.iter().enumerate().filter_map(|(i, m)| Some((i, Token::from_name(m)?)));
        for (index, token) in tokens {
            if !has_own_gates(token) && form.slots.iter().all(|slot| slot.choice(token).is_none()) {
                continue;
            }
            for gate in isa::token_gates(form, token) {
                closed.retain(|other| *other != gate);
                if self.is_closed(&gate) && !closed_words.contains(&gate) {
                    closed_words.push(gate);
                    let is_foreign = form.slots.iter().all(|slot| slot.choice(token).is_none());
                    let (stage, index) = match is_late_word(token) || is_foreign && is_restriction(token) {
                        true => {
                            let (stage, place) = crate::order::refusal(modifiers[index]);
                            (stage, place.saturating_sub(1))
                        }
                        false => (Stage::Word, index),
                    };
                    findings.push(Finding { stage, index, fault: Fault::Closed(gate) });
                }
            }
        }
        let has_types =
            !errors.iter().any(|e| matches!(e, SelectError::Types | SelectError::Alternate { .. }));
        for gate in closed.into_iter().filter(|gate| self.is_closed(gate)) {
            let stage = stage_of(&gate);
            if has_types || stage != Stage::Words {
                findings.push(Finding { stage, index: 0, fault: Fault::Closed(gate) });
            }
        }
        findings
    }

    /// The opcode has no row in the table.
    fn no_form(&mut self, node: &Tree<'a>) {
        let opcode = node.opcode.text;
        // No vector is longer than four but in instructions that have such.
        self.longest_vector = 0;
        for tree in &node.operands {
            self.lower(tree);
        }
        self.report_vector_sizes();
        let near = diag::nearest(opcode, crate::opcodes::all());
        let help = near.map(|near| format!("did you mean '{near}'?"));
        let message = format!("Not a name of any known instruction: '{opcode}'");
        let span = node.opcode.span;
        self.sink().error_at(Stage::Name, Code::UnknownInstruction, span, message).maybe_help(help);
    }

    /// Reports what is wrong with modifiers, of some stages.
    fn modifiers(&mut self, node: &Tree<'a>, selection: &Selection, stages: impl RangeBounds<Stage>) {
        for finding in selection.findings.iter().filter(|finding| stages.contains(&finding.stage)) {
            match &finding.fault {
                Fault::Select(error) => {
                    self.report_select(node, selection, error, finding.stage, finding.index)
                }
                Fault::Closed(gate) if self.has_plain_offset && crate::texture::is_of_offsets(gate) => {}
                Fault::Closed(gate) => {
                    self.report_closed(node, selection, gate, finding.stage, finding.index)
                }
            }
        }
    }

    /// Reports an error that ends the instruction.
    fn report_last(&mut self, node: &Tree<'a>, selection: &Selection, error: &SelectError) {
        let (stage, _) = Stage::of_modifiers(error, Opcode::from_name(node.opcode.text), &[], &[]);
        self.report_select(node, selection, error, stage, 0);
    }

    fn report_select(
        &mut self,
        node: &Tree<'a>,
        selection: &Selection,
        error: &SelectError,
        stage: Stage,
        place: usize,
    ) {
        let modifiers: SmallVec<[&str; 8]> = node.modifiers.iter().map(|m| m.text).collect();
        let head = head(node);
        let modifier = |index: usize| node.modifiers.get(index).map_or(head, |m| m.span);
        let (code, span) = match error {
            SelectError::UnknownInstruction => (Code::UnknownInstruction, node.opcode.span),
            SelectError::UnknownModifier { index } => (Code::UnknownModifier, modifier(*index)),
            SelectError::Repeated { index } => (Code::RepeatedModifier, modifier(*index)),
            SelectError::Types | SelectError::Alternate { .. } => (Code::InstructionTypes, head),
            SelectError::Arguments { .. } => (Code::ArgumentsMismatch, node.span),
            SelectError::Illegal { index, .. } => (Code::IllegalModifier, modifier(*index)),
            SelectError::Comparison { index, .. } => (Code::ComparisonMismatch, modifier(*index)),
            SelectError::Missing { .. } => (Code::MissingModifier, head),
            SelectError::Vector { .. } => (Code::VectorSize, head),
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
            let at = (self.module.version, self.module.target);
            crate::wording::special(error, form, &selection.name, &selection.picks, &modifiers, at)
        });
        let messages = special.unwrap_or_else(|| vec![error.message(&selection.name, &modifiers)]);
        for message in messages {
            self.sink().report(stage, place, Diagnostic::error(code, span, message)).maybe_help(help.clone());
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
        let span = node.opcode.span;
        self.sink().error_at(Stage::Types, Code::RequiresTarget, span, message).help(help);
        true
    }

    fn report_closed(
        &mut self,
        node: &Tree<'a>,
        selection: &Selection,
        gate: &Gate,
        stage: Stage,
        place: usize,
    ) {
        // Point at the modifier that the message names, if there is one.
        let named = node.modifiers.iter().find(|m| gate.modifier() == Some(m.text));
        let span = named.map_or(node.opcode.span, |m| m.span);
        let message = match stage {
            // It calls a rounding illegal of an instruction whose other roundings are older.
            Stage::RoundingGate => format!("Illegal rounding modifier for instruction '{}'", selection.name),
            _ => selection.gate_message(gate, self.module.target),
        };
        let (code, help) = match gate.requires {
            isa::Requirement::Version(_) => (Code::RequiresVersion, self.module.version_help()),
            _ => (Code::RequiresTarget, self.module.target_help()),
        };
        self.sink().report(stage, place, Diagnostic::error(code, span, message)).help(help);
    }
}

impl Selection {
    /// What ptxas says of a gate that is closed.
    fn gate_message(&self, gate: &Gate, target: Target) -> String {
        let space = self.picks.mods().iter().find(|m| m.space().is_some());
        match (self.form, space) {
            // It names the space last: `atom.add.f16.global`.
            (Some(form), Some(space)) if form.opcode == Opcode::Atom => {
                gate.message_with(space.name(), target)
            }
            _ => {
                let types: String = self.picks.types().iter().map(|ty| format!(".{}", ty.name())).collect();
                gate.message(target).replace("{types}", &types)
            }
        }
    }
}

/// The opcode and its modifiers.
fn head(node: &Tree) -> Span {
    node.modifiers.last().map_or(node.opcode.span, |last| node.opcode.span.to(last.span))
}

/// When ptxas says that a gate is closed.
fn stage_of(gate: &Gate) -> Stage {
    match gate.stage {
        isa::Stage::Token => Stage::Words,
        isa::Stage::Form => Stage::FormGate,
        isa::Stage::Modifier => Stage::ModifierGate,
        isa::Stage::Result => Stage::ResultGate,
        isa::Stage::Rounding => Stage::RoundingGate,
        isa::Stage::Late => Stage::LateGate,
    }
}

/// May a form with these picks have so many operands?
fn takes(form: &Form, picks: &Picks, operands: usize) -> bool {
    let all = form.operands_with(picks).count();
    let optional = form.operands_with(picks).filter(|spec| spec.presence == Presence::Optional).count();
    (all - optional..=all).contains(&operands)
}

/// Does a modifier or type have its gates even on instructions that do not take it?
fn has_own_gates(token: Token) -> bool {
    match token {
        Token::Type(ty) => isa::is_alternate(ty),
        Token::Mod(Mod::Abs | Mod::Satfinite | Mod::Mmio) => true,
        Token::Mod(Mod::Alias | Mod::Aligned | Mod::Async | Mod::LaunchDependents | Mod::Wait) => true,
        Token::Mod(Mod::MbarrierInit | Mod::SyncRestrictSharedCluster | Mod::SyncRestrictSharedCta) => true,
        Token::Mod(Mod::Oob | Mod::Read | Mod::Relu | Mod::SpOrderedMetadata | Mod::IsCanceled) => true,
        Token::Mod(Mod::GetFirstCtaid | Mod::GetFirstCtaidX | Mod::GetFirstCtaidY | Mod::GetFirstCtaidZ) => {
            true
        }
        Token::Mod(modifier) => is_late_word(token) || is_tensor_shape(modifier.name()),
    }
}

/// `.32x32b` and the like, `.m16n8`, `.m16n16`.
fn is_tensor_shape(name: &str) -> bool {
    matches!(name, "m16n16" | "m16n8")
        || name.contains('x') && name.contains('b') && name.starts_with(|c: char| c.is_ascii_digit())
}

/// What fences are restricted to.
fn is_restriction(token: Token) -> bool {
    let restrictions = [Mod::MbarrierInit, Mod::SyncRestrictSharedCluster, Mod::SyncRestrictSharedCta];
    matches!(token, Token::Mod(modifier) if restrictions.contains(&modifier))
}

/// Words of tcgen05 and of block scaling: what they need is said late, before they are refused.
fn is_late_word(token: Token) -> bool {
    let Token::Mod(modifier) = token else { return false };
    let name = modifier.name();
    ["collector::", "kind::", "scale_vec::"].iter().any(|prefix| name.starts_with(prefix))
        || matches!(name, "block16" | "block32" | "block_scale")
}

/// A modifier that is illegal hides that others are missing, except the operators of comparisons.
fn hidden(error: &SelectError, all: &[SelectError], modifiers: &[&str]) -> bool {
    matches!(error, SelectError::Missing { slot, .. } if !matches!(*slot, "CmpOp" | "BoolOp"))
        && all.iter().any(|error| match error {
            SelectError::Illegal { index, .. } => {
                let written = modifiers.get(*index).copied().unwrap_or_default();
                let is_query = Mod::from_name(written).is_some_and(crate::wording::is_query);
                !matches!(written, "ftz" | "sat")
                    && (is_query || Stage::of_modifiers(error, None, modifiers, &[]).0 != Stage::ModifierLast)
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
