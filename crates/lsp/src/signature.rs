//! The operands of the instruction under the cursor.

use isa::{Form, Picks, Second};
use lsp_types::{Documentation, ParameterInformation, ParameterLabel, SignatureHelp, SignatureInformation};
use syntax::lexer::Kind;

use crate::cursor::{Unfinished, mnemonic};

/// The most forms that are shown.
const MOST_FORMS: usize = 12;

/// The signatures at an offset.
pub fn signature(text: &str, offset: u32) -> Option<SignatureHelp> {
    let mut unfinished = Unfinished::at(text, offset)?;
    // Here it does not matter that the last word may go on.
    unfinished.tokens.extend(unfinished.word);
    let (opcode, modifiers, operands) = unfinished.instruction()?;
    let (mut depth, mut active) = (0u32, 0);
    for token in operands {
        match token.kind {
            Kind::LeftBrace | Kind::LeftBracket | Kind::LeftParen => depth += 1,
            Kind::RightBrace | Kind::RightBracket | Kind::RightParen => depth = depth.saturating_sub(1),
            Kind::Comma if depth == 0 => active += 1,
            _ => {}
        }
    }
    let mut forms: Vec<(&Form, Picks)> = Vec::new();
    for count in active as usize..=Picks::MAX_MODS {
        if let Ok(selected) = isa::select(opcode, &modifiers, count)
            && !forms.iter().any(|(form, _)| std::ptr::eq(*form, selected.form()))
        {
            forms.push((selected.form(), selected.picks));
        }
    }
    let name = mnemonic(opcode, &modifiers);
    let mut signatures: Vec<SignatureInformation> =
        forms.iter().take(MOST_FORMS).map(|(form, picks)| of_form(&name, form, Some(picks))).collect();
    if signatures.is_empty() {
        // Modifiers are missing: the forms that take those that are there.
        let takes = |form: &&Form| {
            let has = |word: &str| {
                form.slots.iter().any(|slot| slot.choices.iter().any(|choice| choice.token.name() == word))
            };
            modifiers.iter().all(|word| has(word))
        };
        let near = isa::forms(opcode).iter().filter(takes);
        signatures = near.take(MOST_FORMS).map(|form| of_form(&name, form, None)).collect();
    }
    let signature = Some(0).filter(|_| !signatures.is_empty())?;
    Some(SignatureHelp { signatures, active_signature: Some(signature), active_parameter: Some(active) })
}

fn of_form(name: &str, form: &Form, picks: Option<&Picks>) -> SignatureInformation {
    let mut label = format!("{name} ");
    let mut parameters = Vec::new();
    let all: Vec<_> = match picks {
        Some(picks) => form.operands_with(picks).collect(),
        None => form.operands.iter().collect(),
    };
    for (index, spec) in all.iter().enumerate() {
        label += if index > 0 { ", " } else { "" };
        // Names of operands are ASCII.
        let start = label.len() as u32;
        label += spec.name;
        label += match spec.second {
            Second::None => "",
            Second::Optional => "{|q}",
            Second::Required => "|q",
        };
        let ty = picks.and_then(|picks| spec.resolve(picks));
        let about = match (ty, spec.access) {
            (Some(ty), isa::Access::Read) => format!("{ty}, read"),
            (Some(ty), isa::Access::Write) => format!("{ty}, written"),
            (Some(ty), isa::Access::ReadWrite) => format!("{ty}, read and written"),
            (None, _) => String::new(),
        };
        let documentation = Some(about).filter(|about| !about.is_empty()).map(Documentation::String);
        let label = ParameterLabel::LabelOffsets([start, label.len() as u32]);
        parameters.push(ParameterInformation { label, documentation });
    }
    let documentation = format!("{}\nPTX manual {}", form.syntax, form.section);
    SignatureInformation {
        label: label.trim_end().to_owned(),
        documentation: Some(Documentation::String(documentation)),
        parameters: Some(parameters),
        active_parameter: None,
    }
}
