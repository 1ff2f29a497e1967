//! The symbols of a file, and what can be folded.

use check::names::{Kind, Symbol};
use diag::Span;
use lsp_types::{DocumentSymbol, FoldingRange, FoldingRangeKind, SymbolKind};
use syntax::lexer::comments;
use syntax::tree::{Block, Item, Statement};

use crate::document::{Analysis, Document, tokens};
use crate::hover::summary;

/// Functions with their labels, variables and registers, and the variables of the module.
pub fn symbols(document: &Document, analysis: &Analysis) -> Vec<DocumentSymbol> {
    let tree = document.tree();
    let functions = tree.items.iter().filter_map(|item| match item {
        Item::Function(node) => Some(node.span),
        _ => None,
    });
    let functions: Vec<Span> = functions.collect();
    let mut found: Vec<DocumentSymbol> = Vec::new();
    let mut parents: Vec<(Span, usize)> = Vec::new();
    let mut all: Vec<&Symbol> = analysis.names.symbols.iter().collect();
    // A function comes before what it returns.
    all.sort_by_key(|symbol| {
        let is_function = matches!(symbol.kind, Kind::Kernel | Kind::Function);
        if is_function { symbol.head.start } else { symbol.definition.start }
    });
    for symbol in all {
        let is_function = matches!(symbol.kind, Kind::Kernel | Kind::Function);
        let function = functions
            .iter()
            .find(|span| span.start <= symbol.definition.start && symbol.definition.end <= span.end);
        let whole = if is_function { function.copied() } else { None };
        let entry = entry(document, symbol, whole.unwrap_or(symbol.declarator));
        let parent = parents.iter().find(|(span, _)| Some(span) == function);
        match parent {
            Some(&(_, parent)) if !is_function => found[parent].children.get_or_insert_default().push(entry),
            _ => {
                if let Some(span) = whole {
                    parents.push((span, found.len()));
                }
                found.push(entry);
            }
        }
    }
    found
}

fn entry(document: &Document, symbol: &Symbol, whole: Span) -> DocumentSymbol {
    let kind = match symbol.kind {
        Kind::Register => SymbolKind::VARIABLE,
        Kind::Variable => SymbolKind::STRUCT,
        Kind::Parameter => SymbolKind::FIELD,
        Kind::Kernel => SymbolKind::EVENT,
        Kind::Function => SymbolKind::FUNCTION,
        Kind::Label | Kind::Table => SymbolKind::KEY,
    };
    let name = match symbol.count {
        Some(count) => format!("{}<{count}>", symbol.name),
        None => symbol.name.clone(),
    };
    let detail = document.source().slice(symbol.head).lines().next().map(|head| head.trim().to_owned());
    #[allow(deprecated)] // the field has to be there
    DocumentSymbol {
        name,
        detail: detail.filter(|detail| !detail.is_empty()).or_else(|| Some(summary(document, symbol))),
        kind,
        tags: None,
        deprecated: None,
        range: document.range(whole.to(symbol.definition)),
        selection_range: document.range(symbol.definition),
        children: None,
    }
}

/// Bodies, blocks, sections, and comments of several lines.
pub fn folds(document: &Document) -> Vec<FoldingRange> {
    let mut spans: Vec<(Span, Option<FoldingRangeKind>)> = Vec::new();
    for item in &document.tree().items {
        match item {
            Item::Function(node) => {
                if let Some(body) = &node.body {
                    // The head stays to be seen.
                    let whole = Span::new(node.name.span.start, body.span.end);
                    spans.push((whole, None));
                    blocks(body, &mut spans);
                }
            }
            Item::Section(node) => spans.push((node.span, None)),
            _ => {}
        }
    }
    let text = document.text();
    let mut end = 0;
    let gaps = tokens(text).map(|token| (token.span.start as usize, token.span.end as usize));
    for (start, next) in gaps.chain([(text.len(), text.len())]) {
        let gap = &text[end..start];
        let mut found = comments(gap).map(|one| Span::new((end + one.start) as u32, (end + one.end) as u32));
        if let Some(first) = found.next() {
            let last = found.last().unwrap_or(first);
            spans.push((first.to(last), Some(FoldingRangeKind::Comment)));
        }
        end = next;
    }
    let fold = |(span, kind): (Span, Option<FoldingRangeKind>)| {
        let range = document.range(Span::new(span.start, span.end.max(span.start + 1) - 1));
        (range.end.line > range.start.line).then(|| FoldingRange {
            start_line: range.start.line,
            end_line: range.end.line,
            kind,
            ..FoldingRange::default()
        })
    };
    spans.into_iter().filter_map(fold).collect()
}

fn blocks(block: &Block, spans: &mut Vec<(Span, Option<FoldingRangeKind>)>) {
    for statement in &block.statements {
        if let Statement::Block(inner) = statement {
            spans.push((inner.span, None));
            blocks(inner, spans);
        }
    }
}
