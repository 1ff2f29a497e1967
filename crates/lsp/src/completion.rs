//! What may be written next.

use check::names::{Kind as NameKind, Symbol};
use isa::{SpecialRegister, Type};
use lsp_types::{CompletionItem, CompletionItemKind as Shown, CompletionTextEdit, TextEdit};
use syntax::lexer::Kind;
use syntax::{DIRECTIVES, Place};

use crate::cursor::Unfinished;
use crate::document::{Analysis, Document, module_of};
use crate::hover::summary;

/// The longest range of registers of which each is offered; of longer ones, those are that the file names.
const MOST_MEMBERS: u64 = 128;

/// The completions at an offset.
pub fn completion(
    document: &Document,
    analysis: &Analysis,
    offset: u32,
    options: &check::Options,
) -> Vec<CompletionItem> {
    let Some(unfinished) = Unfinished::at(document.text(), offset) else { return Vec::new() };
    let start = unfinished.word.map_or(offset, |word| word.span.start);
    let range = document.range(diag::Span::new(start, offset));
    let mut list = List { range, items: Vec::new() };
    let word = unfinished.word.map_or("", |word| unfinished.text(word));
    let joined = unfinished.joined().map(|token| unfinished.text(token));
    if unfinished.in_guard {
        list.names(document, analysis, offset, &|symbol| symbol.kind == NameKind::Register);
    } else if let Some((opcode, modifiers, operands)) = unfinished.instruction() {
        if word.starts_with('.') && operands.is_empty() && joined.is_some() {
            let (version, target) = module_of(&document.tree(), options);
            for next in isa::next_modifiers(opcode, &modifiers, version, target) {
                let detail = isa::prose::token(next.token).unwrap_or_default();
                list.add(
                    format!(".{}", next.token.name()),
                    Shown::ENUM_MEMBER,
                    detail,
                    Some(next.form.form().syntax),
                );
            }
        } else if word.starts_with('.') {
            for component in ["x", "y", "z", "w"] {
                let register =
                    SpecialRegister::from_name(&format!("{}.{component}", joined.unwrap_or_default()));
                if let Some(register) = register {
                    list.add(format!(".{component}"), Shown::FIELD, register.meaning().into(), None);
                }
            }
        } else {
            list.names(document, analysis, offset, &|_| true);
            list.special();
        }
    } else if unfinished.tokens.is_empty() {
        if word.starts_with('.') || !unfinished.in_body {
            let place = if unfinished.in_body { Place::Body } else { Place::Module };
            list.directives(|places| places.contains(&place));
        }
        if unfinished.in_body && !word.starts_with('.') {
            let mut opcodes: Vec<&str> = check::opcodes().collect();
            opcodes.dedup();
            for opcode in opcodes {
                list.add(
                    opcode.into(),
                    Shown::KEYWORD,
                    isa::prose::opcode(opcode).unwrap_or_default().into(),
                    None,
                );
            }
        }
    } else if word.starts_with('.') {
        // Within a declaration, or between a head and its body.
        let is_head = unfinished.tokens.last().is_some_and(|token| token.kind == Kind::RightParen);
        let place = if is_head { Place::Head } else { Place::Within };
        list.directives(|places| places.contains(&place));
        if !is_head {
            for ty in syntax::DECLARED_TYPES {
                let meaning = Type::from_name(ty).map(isa::prose::ty).unwrap_or_default();
                list.add(format!(".{ty}"), Shown::TYPE_PARAMETER, meaning, None);
            }
        }
    } else {
        // Initial values.
        list.names(document, analysis, offset, &|symbol| symbol.kind != NameKind::Register);
    }
    list.items
}

struct List {
    /// The word that a completion replaces.
    range: lsp_types::Range,
    items: Vec<CompletionItem>,
}

impl List {
    fn add(&mut self, label: String, kind: Shown, detail: String, form: Option<&str>) {
        let edit = TextEdit { range: self.range, new_text: label.clone() };
        self.items.push(CompletionItem {
            // What comes first here comes first in the editor.
            sort_text: Some(format!("{:05}", self.items.len())),
            filter_text: Some(label.clone()),
            kind: Some(kind),
            detail: Some(detail).filter(|detail| !detail.is_empty()),
            documentation: form.map(|form| lsp_types::Documentation::String(form.to_owned())),
            text_edit: Some(CompletionTextEdit::Edit(edit)),
            label,
            ..CompletionItem::default()
        });
    }

    fn directives(&mut self, fits: impl Fn(&[Place]) -> bool) {
        for directive in DIRECTIVES.iter().filter(|directive| fits(directive.places)) {
            let label = format!(".{}", directive.name);
            if !self.items.iter().any(|item| item.label == label) {
                self.add(label, Shown::KEYWORD, directive.meaning.into(), None);
            }
        }
    }

    fn special(&mut self) {
        for register in SpecialRegister::all() {
            self.add(register.name().into(), Shown::CONSTANT, register.meaning().into(), None);
        }
    }

    fn names(
        &mut self,
        document: &Document,
        analysis: &Analysis,
        offset: u32,
        fits: &dyn Fn(&Symbol) -> bool,
    ) {
        let names = &analysis.names;
        for symbol in names.visible(offset).into_iter().filter(|symbol| fits(symbol)) {
            let kind = match symbol.kind {
                NameKind::Register | NameKind::Parameter => Shown::VARIABLE,
                NameKind::Variable => Shown::STRUCT,
                NameKind::Kernel | NameKind::Function => Shown::FUNCTION,
                NameKind::Label | NameKind::Table => Shown::REFERENCE,
            };
            let detail = summary(document, symbol).lines().next().unwrap_or_default().to_owned();
            match symbol.count {
                None => self.add(symbol.name.clone(), kind, detail, None),
                Some(count) if count <= MOST_MEMBERS => {
                    for number in 0..count {
                        self.add(format!("{}{number}", symbol.name), kind, detail.clone(), None);
                    }
                }
                Some(_) => {
                    let of_this =
                        |one: &&check::names::Occurrence| std::ptr::eq(&names.symbols[one.symbol], symbol);
                    let mut used: Vec<u64> =
                        names.occurrences.iter().filter(of_this).filter_map(|one| one.member).collect();
                    used.sort_unstable();
                    used.dedup();
                    for number in used {
                        self.add(format!("{}{number}", symbol.name), kind, detail.clone(), None);
                    }
                }
            }
        }
    }
}
