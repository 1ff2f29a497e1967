//! Checks instructions: form, gates and operands, in the order in which ptxas reports errors.

use std::rc::Rc;

use diag::{Code, Diagnostic, Span};
use isa::{
    Effect, Elements, Form, Mod, Opcode, OperandKind, OperandType, Picks, Presence, Property, SelectError,
    Token, Type,
};
use smallvec::SmallVec;
use syntax::tree::{Guard, Instruction as Tree, Operand as OperandTree};

use crate::body::BodyChecker;
use crate::context::Context;
use crate::module::{Instruction, Node, Operand, RegId};
use crate::order::Stage;
use crate::place::{Complaints, Verdict};
use crate::selection::Selection;
use crate::value::{Lowered, Value};

/// An instruction whose operands are lowered.
struct Read<'t, 'a> {
    node: &'t Tree<'a>,
    form: &'static Form,
    selection: Rc<Selection>,
    operands: SmallVec<[Lowered; 6]>,
}

impl Read<'_, '_> {
    fn context(&self) -> Context<'_> {
        Context { name: &self.selection.name, form: self.form, picks: &self.selection.picks }
    }

    /// Takes another form for the one that is meant.
    fn select(&mut self, other: Selection) {
        self.form = other.form.unwrap_or(self.form);
        self.selection = Rc::new(other);
    }
}

/// Operands that fit their places, and the errors in them.
struct Fitted {
    operands: Vec<Operand>,
    complaints: Complaints,
}

impl<'a> BodyChecker<'_, 'a> {
    /// Checks an instruction: selects the form, lowers the operands, fits them, and reports the errors of what fits. The
    /// order of these stages is that of ptxas's errors, and each may be the last.
    pub(crate) fn instruction(&mut self, node: &Tree<'a>) {
        let errors_before = self.sink().errors();
        let guard = node.guard.as_ref().and_then(|guard| self.guard(guard));
        let Some((form, selection)) = self.select_form(node) else { return };
        if form.action == isa::Action::Effect(Effect::Call) {
            self.call(node, guard, form, &selection, errors_before);
            return self.report_vector_sizes();
        }
        let mut read = self.lower_operands(node, form, selection);
        let negation = self.negation(&read.operands, form, &read.selection.picks);
        if self.ends_before_fitting(&read) {
            return;
        }
        let Some(Fitted { operands, complaints }) = self.fit_form(&mut read) else { return };
        if self.ends_with_modifiers(&read) {
            return;
        }
        self.report_operands(&read, &operands, complaints, negation, errors_before);
        if self.sink().errors() == errors_before {
            self.check_inside(&read.context(), &read.operands);
        }
        if self.sink().errors() == errors_before {
            self.check_combination(node, &read.context());
            self.check_block_memory(&read.operands);
        }
        if self.sink().errors() == errors_before {
            self.accept(&read, guard, operands);
        }
    }

    /// The form that the modifiers select, or the nearest one, with the errors that ptxas finds while it reads
    /// modifiers. `None` if it reads no further.
    fn select_form(&mut self, node: &Tree<'a>) -> Option<(&'static Form, Rc<Selection>)> {
        // What is known did not end so when it came first.
        if !self.knows(node) && self.ends_within_word(node) {
            return None;
        }
        self.apart.clear();
        self.has_plain_offset = false;
        let selection = self.selection(node);
        self.sink().enter(Stage::Operand);
        self.modifiers(node, &selection, ..=Stage::Words);
        self.modifiers(node, &selection, Stage::EarlyModifier..=Stage::EarlyModifier);
        if selection.form.is_none() {
            self.no_form(node);
        }
        Some((selection.form?, selection))
    }

    /// What the operands mean by themselves.
    fn lower_operands<'t>(
        &mut self,
        node: &'t Tree<'a>,
        form: &'static Form,
        selection: Rc<Selection>,
    ) -> Read<'t, 'a> {
        self.expect_vectors(node, form, &selection);
        let operands: SmallVec<[Lowered; 6]> = node.operands.iter().map(|tree| self.lower(tree)).collect();
        self.report_vector_sizes();
        self.report_unlike_elements(&operands, &selection.name);
        Read { node, form, selection, operands }
    }

    /// Reports an error for which ptxas does not ask whether the operands fit. Is there one?
    fn ends_before_fitting(&mut self, read: &Read<'_, 'a>) -> bool {
        let Read { node, form, ref selection, ref operands } = *read;
        if let Some(message) = crate::required::saturates_twice(node, form.opcode) {
            self.sink().error_at(Stage::Count, Code::IllegalModifier, node.head(), message);
            return true;
        }
        let is_unknown =
            |error: &&SelectError| matches!(error, SelectError::UnknownInstruction | SelectError::Types);
        if let Some(error) = selection.errors.iter().find(is_unknown) {
            // For fields of tensor maps, ptxas checks the operands first.
            let form = isa::form_id(form).filter(|_| {
                *error == SelectError::Types
                    && selection.picks.types().is_empty()
                    && form.action == isa::Action::Effect(Effect::TensorMapReplace)
            });
            let error = form.map_or(error.clone(), |form| SelectError::Arguments { form });
            self.report_last(node, selection, &error);
            return true;
        }
        if let Some(index) = no_split(form, operands) {
            let message = format!("Argument {index} of instruction '{}': must be constant", selection.name);
            let span = operands[index].span;
            self.sink().error_at(Stage::Count, Code::IntegerConstantExpected, span, message);
            return true;
        }
        if let Some(found) = self.without_coordinates(node, operands) {
            self.lacks_coordinates(node, &found, &operands[1]);
            return true;
        }
        false
    }

    /// Fits the operands to the form, or to another one that they fit. `None` if there is none, which is reported.
    fn fit_form(&mut self, read: &mut Read<'_, 'a>) -> Option<Fitted> {
        self.choose_by_operands(read);
        if self.lacks_operands(read) {
            return None;
        }
        let Read { node, form, ref selection, ref operands } = *read;
        let mut fitted = match self.fit_all(operands, form, selection) {
            Ok(fitted) => fitted,
            Err((lowered, spec)) => {
                let Some((other, fitted)) = self.fit_overload(node, operands, form, selection) else {
                    let help = self.mismatch_help(lowered, spec, &read.context());
                    let message = format!("Arguments mismatch for instruction '{}'", selection.name);
                    let code = Code::ArgumentsMismatch;
                    self.sink().error_at(Stage::Mismatch, code, lowered.span, message).maybe_help(help);
                    return None;
                };
                read.select(other);
                fitted
            }
        };
        if read.form.action == isa::Action::Effect(Effect::Mov) {
            let ty = read.selection.picks.ty(0);
            self.need_for_handle_address(&read.operands[1], ty, &mut fitted.complaints);
        }
        Some(fitted)
    }

    /// With errors in modifiers, the first form that the operands fit is meant.
    fn choose_by_operands(&mut self, read: &mut Read<'_, 'a>) {
        let Read { node, form, ref selection, ref operands } = *read;
        if !selection.errors.is_empty()
            && !self.fits(operands, form, selection)
            && let Some(other) = self
                .module
                .candidates(node, operands.len())
                .find(|other| other.form.is_some_and(|form| self.fits(operands, form, other)))
        {
            read.select(other);
        }
    }

    /// Reports a wrong number of operands. Is it wrong?
    fn lacks_operands(&mut self, read: &Read<'_, 'a>) -> bool {
        let Read { node, form, ref selection, ref operands } = *read;
        let takes = takes(form, &selection.picks, operands.len());
        let Some(id) =
            isa::form_id(form).filter(|_| !takes || lacks_operand(form, selection, operands.len()))
        else {
            return false;
        };
        if takes && self.fit_all(operands, form, selection).is_ok() {
            self.modifiers(node, selection, Stage::Dimension..=Stage::FormGate);
            let message = format!("Arguments mismatch for instruction '{}'", selection.name);
            let diagnostic = Diagnostic::error(Code::ArgumentsMismatch, node.span, message);
            self.sink().report(Stage::FormGate, 3, diagnostic);
        } else {
            self.cache_policy(node, operands, form, selection);
            self.report_last(node, selection, &SelectError::Arguments { form: id });
        }
        true
    }

    /// Reports the errors in the modifiers of an instruction whose operands fit. Is one of them the last that ptxas
    /// reports?
    fn ends_with_modifiers(&mut self, read: &Read<'_, 'a>) -> bool {
        let Read { node, form, ref selection, ref operands } = *read;
        self.has_plain_offset = crate::texture::has_plain_offset(form, &selection.picks, operands);
        if let Some(span) = crate::expansion::wide_tensor_address(form, operands) {
            self.modifiers(node, selection, Stage::Dimension..=Stage::FormGate);
            let message = format!("Arguments mismatch for instruction '{}'", selection.name);
            let help = "an address in tensor memory is in a register of 32 bits";
            let diagnostic = Diagnostic::error(Code::ArgumentsMismatch, span, message).help(help);
            self.sink().report(Stage::FormGate, 2, diagnostic);
            return true;
        }
        let context = read.context();
        let is_complete = !selection.errors.iter().any(|error| matches!(error, SelectError::Missing { .. }));
        if is_complete
            && let Some((code, message)) =
                crate::combination::scaled_input(&context, self.module.target, operands.len())
        {
            self.sink().report(Stage::FormGate, 3, Diagnostic::error(code, node.span, message));
        }
        let (own, apart) = crate::opcode_rules::check(node, &context, operands);
        self.apart = apart;
        for finding in own {
            let diagnostic = Diagnostic::error(finding.code, finding.span, finding.message);
            self.sink().report(finding.stage, finding.place, diagnostic);
        }
        if let Some(message) = crate::required::missing(node, form.opcode, &selection.name) {
            self.modifiers(node, selection, Stage::Dimension..Stage::Other);
            let (stage, place) =
                if form.opcode == Opcode::Dp2a { (Stage::FormGate, 3) } else { (Stage::Other, 0) };
            let diagnostic = Diagnostic::error(Code::MissingModifier, node.head(), message);
            self.sink().report(stage, place, diagnostic);
            return true;
        }
        self.modifiers(node, selection, Stage::Dimension..);
        false
    }

    /// Reports the errors in operands that fit the form.
    fn report_operands(
        &mut self,
        read: &Read<'_, 'a>,
        checked: &[Operand],
        complaints: Complaints,
        negation: Option<Span>,
        errors_before: usize,
    ) {
        let Read { node, form, ref selection, ref operands } = *read;
        let is_right = self.sink().errors() == errors_before;
        let target = self.module.target;
        let (stage, place) = crate::ranges::stage(form);
        self.sink().enter_at(stage, place as u16);
        crate::ranges::check(self.sink(), &read.context(), target, checked, operands, is_right);
        for (stage, complaint) in complaints {
            let place = if stage == Stage::OpcodeRules { crate::order::WAY } else { 0 };
            self.sink().report(stage, place.into(), complaint);
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
        self.warn_of_idle_length(node, form, selection);
    }

    /// Says how the vectors among the operands are read.
    fn expect_vectors(&mut self, node: &Tree, form: &Form, selection: &Selection) {
        let picks = &selection.picks;
        // Most instructions have no vector, and their rows need not be asked.
        let has_vectors = self.module.source.slice(node.span).contains('{');
        let lengths = form.operands_with(picks).map(|spec| spec.count(form, picks).0);
        self.longest_vector = lengths.max().unwrap_or(1);
        if has_vectors && takes_any_length(form, picks) {
            self.longest_vector = usize::MAX;
        }
        if selection.errors.contains(&SelectError::UnknownInstruction) {
            // No vector is longer than four, except in instructions that take longer ones.
            self.longest_vector = 0;
        }
        self.becomes_call = form.has(Property::Calls, picks);
        // A fragment of a call may be longer than any vector; eight is the limit all the same.
        if self.becomes_call {
            self.longest_vector = self.longest_vector.min(8);
        }
        self.longest_vector = match self.longest_vector {
            1 | 2 | 4 if has_vectors && takes_vectors_of_eight(form, picks) => 8,
            8 if has_vectors && !takes_vectors_of_eight(form, picks) => 4,
            longest => longest,
        };
        self.accesses_texels = form.accesses_texels();
        self.names_tensor = picks.has(isa::Mod::Tensor);
    }

    /// Reports a texture without its coordinates.
    fn lacks_coordinates(&mut self, node: &Tree<'a>, found: &Selection, handle: &Lowered) {
        self.modifiers(node, found, Stage::Dimension..);
        let name = &found.name;
        let mut messages = vec![format!("Illegal Addressing Mode in instruction '{name}'")];
        if !matches!(handle.value, Value::Address(..)) {
            messages.push(format!("Address expected for argument 1 of instruction '{name}'"));
        }
        for message in messages {
            let help = "coordinates stand behind the handle: `[t, {x, y}]`";
            self.sink().error_at(Stage::Fit, Code::ArgumentsMismatch, handle.span, message).help(help);
        }
    }

    /// Takes an instruction without errors into the function.
    fn accept(&mut self, read: &Read<'_, 'a>, guard: Option<(RegId, bool)>, operands: Vec<Operand>) {
        let Read { node, form, ref selection, operands: ref lowered } = *read;
        if let Some(message) = &selection.refused {
            let help = "ptxas rejects this; lenient checking accepts it";
            self.sink().warning(Code::LenientForm, node.span, message.as_str()).help(help);
        }
        if form.action == isa::Action::Effect(Effect::Ret) {
            self.pack_returns(node.span);
        }
        let mut picks = selection.picks;
        picks.parts = crate::video::parts(lowered);
        let instruction = Instruction { form, picks, guard, operands, span: node.span };
        self.body.code.push(Node::Instruction(instruction));
    }

    /// Warns of a vector length that has no effect because fragments have their own.
    fn warn_of_idle_length(&mut self, node: &Tree<'a>, form: &Form, selection: &Selection) {
        let is_length = |word: &str| Mod::from_name(word).is_some_and(|m| m.vector_length().is_some());
        let length =
            node.modifiers.iter().find(|m| is_length(m.text)).filter(|_| form.ignores_vector_length());
        let is_too_large = selection.errors.iter().any(|error| matches!(error, SelectError::Vector { .. }));
        if let Some(length) = length.filter(|_| !is_too_large) {
            let message = "Vector Type not specified properly";
            self.sink()
                .warning(Code::VectorSize, length.span, message)
                .help("leave it out: the shape says it");
        }
    }

    /// ptxas matches the longest instruction name with which the text begins. If the name ends within a word, ptxas
    /// parses the rest of the word as an operand.
    fn ends_within_word(&mut self, node: &Tree<'a>) -> bool {
        let words: SmallVec<[&str; 8]> = node.modifiers.iter().map(|m| m.text).collect();
        let Some((index, rest)) = crate::opcodes::ends_within(node.opcode.text, &words) else { return false };
        let next = node.modifiers.get(index + 1);
        let (span, word) = match (rest.contains(':'), next) {
            (true, _) => (node.modifiers[index].span, ":".to_owned()),
            (false, Some(next)) => (next.span, format!(".{}", next.text)),
            _ => return false,
        };
        let is_word = match isa::Token::from_name(word.trim_start_matches('.')) {
            Some(isa::Token::Mod(modifier)) => word.len() > 2 && !isa::is_part_of_name(modifier),
            Some(isa::Token::Type(_)) => true,
            None => word == ":",
        };
        if is_word {
            let message = format!("Parsing error near '{word}': syntax error");
            self.sink().error(Code::SyntaxError, span, message);
        } else {
            self.sink().error(Code::UnknownField, span, format!("Unknown field '{word}'"));
        }
        true
    }

    /// Reports one operand too many if the others fit: ptxas takes it for a cache policy.
    fn cache_policy(
        &mut self,
        node: &Tree<'a>,
        operands: &[Lowered],
        form: &'static Form,
        selection: &Selection,
    ) {
        let Some((last, others)) = operands.split_last() else { return };
        let is_policy = match last.value {
            Value::Register(_, ty) => ty.bits() == 64 && !ty.is_float(),
            Value::Const(value) => matches!(value, crate::literal::Const::Int { .. }),
            _ => false,
        };
        if is_policy
            && form.has(Property::PolicyLast, &selection.picks)
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

    /// Reports the errors in an instruction that ptxas finds before the token that does not parse.
    pub(crate) fn unfinished(&mut self, node: &Tree<'a>) {
        if let Some(guard) = &node.guard {
            self.guard(guard);
        }
        if self.ends_within_word(node) {
            return;
        }
        self.apart.clear();
        self.has_plain_offset = false;
        let selection = self.selection(node);
        self.sink().enter(Stage::Operand);
        self.modifiers(node, &selection, ..=Stage::Words);
        for tree in &node.operands {
            self.lower(tree);
        }
        self.illegal_vectors.clear();
    }

    /// Do the operands fit a form?
    pub(crate) fn fits(&self, operands: &[Lowered], form: &'static Form, selection: &Selection) -> bool {
        takes(form, &selection.picks, operands.len())
            && !lacks_operand(form, selection, operands.len())
            && self.fit_all(operands, form, selection).is_ok()
    }

    /// Fits all operands to a form. The error is the first operand that does not fit, and its place.
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

    /// Another form with the same modifiers that the operands fit.
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
            let form = other.form();
            let findings = self.module.findings(Some(form), &other.picks, &[], &modifiers);
            let selection = Selection {
                form: Some(form),
                picks: other.picks,
                name: selection.name.clone(),
                errors: Vec::new(),
                findings,
                refused: None,
            };
            if let Ok(fitted) = self.fit_all(operands, form, &selection) {
                return Some((selection, fitted));
            }
        }
        None
    }

    /// Checks negated operands. Returns the first of them if ptxas reports it later.
    ///
    /// For the products of the video instructions, ptxas keeps the signs of sources a and b as one sign. If both are
    /// negated, no sign remains: ptxas accepts that, and its code does not negate either.
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
        // The table says which operands may be negative numbers; with `.po`, none may.
        let is_signed = |spec: &isa::OperandSpec| spec.negatable && spec.ty != OperandType::Fixed(Type::Pred);
        let adds_one = form.slots.iter().any(|slot| slot.choice(Token::Mod(Mod::Po)).is_some());
        if adds_one && picks.has(Mod::Po) && product != sum {
            let message = "Conflicting use of '.po' modifier with operand negation";
            self.sink().error_at(Stage::Signs, Code::IllegalNegation, first, message);
        }
        let is_allowed = adds_one || form.operands.iter().any(is_signed);
        (product != sum && !is_allowed).then_some(first)
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

    /// Reports an opcode without a row in the table.
    fn no_form(&mut self, node: &Tree<'a>) {
        let opcode = node.opcode.text;
        // No vector is longer than four, except in instructions that take longer ones.
        self.longest_vector = 0;
        for tree in &node.operands {
            self.lower(tree);
        }
        self.report_vector_sizes();
        let near = diag::nearest(opcode, crate::opcodes::all());
        let help = near.map(diag::Help::did_you_mean);
        let message = format!("Not a name of any known instruction: '{opcode}'");
        let span = node.opcode.span;
        self.sink().error_at(Stage::Name, Code::UnknownInstruction, span, message).maybe_help(help);
    }
}

/// Does the instruction have forms with vectors of eight or fragments, so that ptxas takes eight elements wherever a
/// vector may stand? Asynchronous ones do not count.
fn takes_vectors_of_eight(form: &Form, picks: &isa::Picks) -> bool {
    let of_eight = Token::Mod(Mod::V8);
    isa::forms(form.opcode.name()).iter().any(|row| {
        row.operands.iter().any(|spec| spec.elements == Elements::Fragment)
            || !picks.has(Mod::Async) && row.slots.iter().any(|slot| slot.choice(of_eight).is_some())
    })
}

/// Do instructions with this name take vectors of any length? The form may be any of this opcode, if none is nearest.
fn takes_any_length(form: &Form, picks: &Picks) -> bool {
    let is_written = |slot: &isa::Slot| picks.mods().iter().any(|&m| slot.choice(Token::Mod(m)).is_some());
    let mut rows = isa::forms(form.opcode.name()).iter().filter(|row| row.has(Property::AnyLength, picks));
    rows.any(|row| row.slots[..row.head].iter().all(is_written))
}

/// The operand of `tcgen05.ld` or `st` in the place of the immediate of `.16x32bx2`, if it is not a constant.
fn no_split(form: &Form, operands: &[Lowered]) -> Option<usize> {
    let reduces = form.slots.iter().any(|slot| slot.choice(Token::Mod(Mod::Red)).is_some());
    let index = match form.action {
        isa::Action::Effect(Effect::TensorLd) => 2 + usize::from(reduces),
        isa::Action::Effect(Effect::TensorSt) => 1,
        _ => return None,
    };
    let is_constant = operands.get(index).is_some_and(|lowered| matches!(lowered.value, Value::Const(_)));
    (operands.len() == 3 + usize::from(reduces) && !is_constant).then_some(index)
}

/// Does an instruction have one operand too many because a modifier is missing?
fn lacks_operand(form: &Form, selection: &Selection, operands: usize) -> bool {
    selection.errors.iter().any(|error| match error {
        // Offsets in a mode without offsets: a prefetch has no other operand in that place.
        SelectError::Missing { slot: "im2col::w" | "im2col::w::128", .. } => {
            selection.picks.has(Mod::Prefetch)
        }
        SelectError::Missing { slot, .. } => crate::required::brings_operand(form.opcode, slot, operands),
        _ => false,
    })
}

/// Does a form with these picks accept this number of operands?
fn takes(form: &Form, picks: &Picks, operands: usize) -> bool {
    let all = form.operands_with(picks).count();
    let optional = form.operands_with(picks).filter(|spec| spec.presence == Presence::Optional).count();
    (all - optional..=all).contains(&operands)
}
