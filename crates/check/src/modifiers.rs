//! Reports the errors in the modifiers of an instruction.

use std::ops::RangeBounds;
use std::rc::Rc;

use diag::{Code, Diagnostic, Fix, Help, Span};
use isa::{Gate, SelectError};
use smallvec::SmallVec;
use syntax::tree::Instruction as Tree;

use crate::body::BodyChecker;
use crate::order::Stage;
use crate::selection::{Fault, Selection};

/// The changes of modifiers that resolve an error: without the wrong one, or with one of those that are missing.
fn fixes(node: &Tree, error: &SelectError) -> Vec<Fix> {
    let remove = |index: usize| node.modifiers.get(index).map(|m| Fix { span: m.span, text: String::new() });
    match *error {
        SelectError::Repeated { index }
        | SelectError::Illegal { index, .. }
        | SelectError::Says { index, .. }
        | SelectError::Geometries { index, .. } => remove(index).into_iter().collect(),
        SelectError::Missing { slot, form } => {
            let Some(slot) = form.form().slots.iter().find(|s| s.name == slot) else { return Vec::new() };
            // Most modifiers stand before the types.
            let is_type = |word: &str| matches!(isa::Token::from_name(word), Some(isa::Token::Type(_)));
            let first = node.modifiers.iter().find(|m| is_type(m.text)).filter(|_| !slot.is_type());
            let span = Span::at(first.map_or(node.head().end, |first| first.span.start));
            slot.choices.iter().map(|c| Fix { span, text: format!(".{}", c.token.name()) }).collect()
        }
        _ => Vec::new(),
    }
}

impl<'a> BodyChecker<'_, 'a> {
    /// What an opcode with its modifiers means for this number of operands.
    pub(crate) fn selection(&mut self, node: &Tree<'a>) -> Rc<Selection> {
        let key = (self.module.source.slice(node.head()), node.operands.len());
        if let Some(found) = self.selections.get(&key) {
            return found.clone();
        }
        let selection = Rc::new(self.module.select(node));
        self.selections.insert(key, selection.clone());
        selection
    }

    /// Has an instruction with these modifiers and this number of operands come before?
    pub(crate) fn knows(&self, node: &Tree<'a>) -> bool {
        self.selections.contains_key(&(self.module.source.slice(node.head()), node.operands.len()))
    }

    /// Reports the errors in modifiers that belong to these stages.
    pub(crate) fn modifiers(
        &mut self,
        node: &Tree<'a>,
        selection: &Selection,
        stages: impl RangeBounds<Stage>,
    ) {
        for finding in selection.findings.iter().filter(|finding| stages.contains(&finding.stage)) {
            match &finding.fault {
                // An earlier message already names the modifier as one that does not fit.
                Fault::Select(SelectError::Illegal { index, .. })
                    if node
                        .modifiers
                        .get(*index)
                        .is_some_and(|modifier| self.apart.contains(&modifier.text)) => {}
                Fault::Select(error) => {
                    self.report_select(node, selection, error, finding.stage, finding.index)
                }
                Fault::Formats => {
                    let message = "Unexpected number of 'format conversion' modifiers specified".to_owned();
                    let diagnostic = Diagnostic::error(Code::RepeatedModifier, node.head(), message);
                    self.sink().report(finding.stage, finding.index, diagnostic);
                }
                Fault::Closed(gate)
                    if self.has_plain_offset
                        && selection.form.is_some_and(|form| {
                            crate::texture::is_of_offsets(gate, form, &selection.picks)
                        }) => {}
                Fault::Closed(gate) => {
                    self.report_closed(node, selection, gate, finding.stage, finding.index)
                }
            }
        }
    }

    /// Reports an error of a final stage.
    pub(crate) fn report_last(&mut self, node: &Tree<'a>, selection: &Selection, error: &SelectError) {
        let (stage, _) = Stage::of_modifiers(error, selection.form.map(|form| form.opcode), &[], &[]);
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
        let head = node.head();
        let modifier = |index: usize| node.modifiers.get(index).map_or(head, |m| m.span);
        let (code, span) = match error {
            SelectError::UnknownInstruction => (Code::UnknownInstruction, node.opcode.span),
            SelectError::UnknownModifier { index } => (Code::UnknownModifier, modifier(*index)),
            SelectError::Repeated { index } | SelectError::Geometries { index, .. } => {
                (Code::RepeatedModifier, modifier(*index))
            }
            SelectError::Types
            | SelectError::Alternate { .. }
            | SelectError::Mixture { .. }
            | SelectError::Operation { .. } => (Code::InstructionTypes, head),
            SelectError::Arguments { .. } => (Code::ArgumentsMismatch, node.span),
            SelectError::Illegal { index, .. } | SelectError::Says { index, .. } => {
                (Code::IllegalModifier, modifier(*index))
            }
            SelectError::Comparison { index, .. } => (Code::ComparisonMismatch, modifier(*index)),
            SelectError::Missing { .. } => (Code::MissingModifier, head),
            SelectError::Vector { .. } | SelectError::Fragment { .. } => (Code::VectorSize, head),
        };
        let mut help = error.help(node.opcode.text).map(Help::from);
        if let SelectError::UnknownModifier { index } = error
            && let Some(written) = modifiers.get(*index)
        {
            let names = isa::forms(node.opcode.text)
                .iter()
                .flat_map(|form| form.slots)
                .flat_map(|slot| slot.choices)
                .map(|choice| choice.token.name());
            if let Some(near) = diag::nearest(written, names) {
                help = Some(Help::did_you_mean(&format!(".{near}")));
            }
        }
        let special = selection.form.and_then(|form| {
            let at = (self.module.version, self.module.target);
            crate::messages::special(error, form, &selection.name, &selection.picks, &modifiers, at)
        });
        let messages = special.unwrap_or_else(|| vec![error.message(&selection.name, &modifiers)]);
        for message in messages {
            self.sink()
                .report(stage, place, Diagnostic::error(code, span, message))
                .maybe_help(help.clone())
                .fixes(fixes(node, error));
        }
    }

    fn report_closed(
        &mut self,
        node: &Tree<'a>,
        selection: &Selection,
        gate: &Gate,
        stage: Stage,
        place: usize,
    ) {
        // Point at the modifier that the message names, if any.
        let named = node.modifiers.iter().find(|m| gate.modifier() == Some(m.text));
        let span = named.map_or(node.opcode.span, |m| m.span);
        let message = match stage {
            // ptxas calls a rounding illegal if the instruction has other, older roundings.
            Stage::RoundingGate => format!("Illegal rounding modifier for instruction '{}'", selection.name),
            _ => selection.gate_message(gate, self.module.version, self.module.target),
        };
        let (code, help) = match gate.requires {
            isa::Requirement::Version(_) => (Code::RequiresVersion, self.module.version_help()),
            _ => (Code::RequiresTarget, self.module.target_help()),
        };
        let fix = self.module.gate_fix(gate.requires);
        self.sink().report(stage, place, Diagnostic::error(code, span, message)).help(help).fixes(fix);
    }
}
