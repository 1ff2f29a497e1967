//! The original source lines of instructions, from `.loc` (PTX ISA 11.5, "Debugging Directives").

use std::collections::HashMap;
use std::fmt;

use diag::{SourceFile, Span};
use syntax::tree::{Block, Item, Literal, Statement};

/// A place in the source that a compiler made the PTX from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalPlace {
    /// The name of the file, as the compiler wrote it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1; 0 if the compiler recorded none.
    pub column: u64,
    /// The call site, if the place's function was inlined.
    pub inlined_at: Option<Box<OriginalPlace>>,
}

impl OriginalPlace {
    /// The place, its call site, the call site of that one's function, and so on.
    pub fn chain(&self) -> impl Iterator<Item = &OriginalPlace> {
        std::iter::successors(Some(self), |place| place.inlined_at.as_deref())
    }

    /// `saxpy.cu:12`: the line, without the folder of the file.
    pub fn short(&self) -> String {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
        format!("{name}:{}", self.line)
    }

    /// A note that a line of the PTX was compiled from this place.
    pub(crate) fn note(&self, line: u32) -> String {
        format!("line {line} was compiled from {self}")
    }
}

/// `saxpy.cu:12:5`, `limits.cuh:7, inlined at saxpy.cu:12:5`
impl fmt::Display for OriginalPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, place) in self.chain().enumerate() {
            let before = if i == 0 { "" } else { ", inlined at " };
            write!(f, "{before}{}:{}", place.file, place.line)?;
            if place.column > 0 {
                write!(f, ":{}", place.column)?;
            }
        }
        Ok(())
    }
}

/// All `.loc` of a text.
#[derive(Default)]
pub struct OriginalPlaces {
    files: HashMap<u64, String>,
    /// The `.loc` in effect from each offset on, ascending. `None` follows the end of a function.
    from: Vec<(u32, Option<Loc>)>,
}

/// A file, a line and a column of `.loc`.
type Numbers = [u64; 3];

/// The contents of a `.loc`.
#[derive(Clone, Copy)]
struct Loc {
    place: Numbers,
    inlined_at: Option<Numbers>,
}

impl OriginalPlaces {
    /// Collects the `.loc` of a source.
    pub fn of(source: &SourceFile) -> OriginalPlaces {
        let mut places = OriginalPlaces::default();
        let (tree, _) = syntax::parse(source);
        for item in &tree.items {
            match item {
                Item::File(file) => {
                    let name = file.name.text.trim_matches('"').to_owned();
                    places.files.extend(number(&file.index).map(|index| (index, name)));
                }
                Item::Function(function) => {
                    places.from.push((function.span.start, None));
                    function.body.iter().for_each(|body| places.add(body));
                    places.from.push((function.span.end, None));
                }
                _ => {}
            }
        }
        places
    }

    fn add(&mut self, block: &Block) {
        for statement in &block.statements {
            match statement {
                Statement::Loc(loc) => {
                    let inlined = loc.inlined.as_ref();
                    let outer = inlined.and_then(|at| numbers([&at.file, &at.line, &at.column]));
                    let place = numbers([&loc.file, &loc.line, &loc.column]);
                    self.from
                        .extend(place.map(|place| (loc.span.start, Some(Loc { place, inlined_at: outer }))));
                }
                Statement::Block(block) => self.add(block),
                _ => {}
            }
        }
    }

    /// The original place of the instruction at an offset of the text; `None` if no `.loc` applies, or its line is 0.
    pub fn at(&self, offset: u32) -> Option<OriginalPlace> {
        let behind = self.from.partition_point(|(start, _)| *start <= offset);
        self.place(behind.checked_sub(1)?)
    }

    /// The original place that the `.loc` at an index gives.
    fn place(&self, index: usize) -> Option<OriginalPlace> {
        let (mut chain, mut next) = (Vec::new(), Some((index, self.from[index].1?)));
        while let Some((index, Loc { place: [file, line, column], inlined_at })) = next {
            let Some(file) = self.files.get(&file).filter(|_| line > 0) else { break };
            chain.push(OriginalPlace { file: file.clone(), line, column, inlined_at: None });
            next = inlined_at.map(|outer| self.outer(index, outer));
        }
        chain
            .into_iter()
            .rev()
            .reduce(|outer, inner| OriginalPlace { inlined_at: Some(Box::new(outer)), ..inner })
    }

    /// The `.loc` of a call site, given by the `inlined_at` of the one at `index`. An earlier `.loc` of the same
    /// function has that place, and tells where the call site itself was inlined. Several such `.loc` may disagree
    /// about that; then the result has no further call site.
    fn outer(&self, index: usize, place: Numbers) -> (usize, Loc) {
        let before =
            self.from[..index].iter().enumerate().rev().map_while(|(i, (_, loc))| Some((i, (*loc)?)));
        let mut calls = before.filter(|(_, loc)| loc.place == place);
        let last = calls.next().unwrap_or((0, Loc { place, inlined_at: None }));
        match calls.all(|(_, loc)| loc.inlined_at == last.1.inlined_at) {
            true => last,
            false => (last.0, Loc { place, inlined_at: None }),
        }
    }

    /// `line 19 was compiled from saxpy.cu:12:5`
    pub(crate) fn note(&self, source: &SourceFile, span: Span) -> Option<String> {
        self.at(span.start).map(|original| original.note(source.position(span.start).line))
    }
}

fn numbers(literals: [&Literal; 3]) -> Option<Numbers> {
    let [Some(file), Some(line), Some(column)] = literals.map(number) else { return None };
    Some([file, line, column])
}

fn number(literal: &Literal) -> Option<u64> {
    literal.text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_loc_of_the_function_holds() {
        let text = ".version 8.6\n.target sm_90\n.file 1 \"a.cu\"\n.file 2 \"b.h\"\n\
             .entry f() { ret; .loc 1 7 3\n { .loc 2 9 0\n bar.sync 0; } exit; .loc 1 0 0\n trap; }\n\
             .entry g() { brkpt; }";
        let places = OriginalPlaces::of(&SourceFile::new("k.ptx", text));
        let at = |word: &str| places.at(text.find(word).unwrap() as u32).map(|place| place.to_string());
        assert_eq!(at("ret"), None);
        assert_eq!(at("bar.sync").as_deref(), Some("b.h:9"));
        assert_eq!(at("exit").as_deref(), Some("b.h:9"));
        assert_eq!(at("trap"), None);
        assert_eq!(at("brkpt"), None);
    }

    #[test]
    fn what_was_inlined_says_where() {
        // As Triton emits it: `max` in `softmax` in the kernel. The function of line 9 was inlined at two places.
        let text = ".version 8.6\n.target sm_90\n.file 1 \"k.py\"\n.file 2 \"b.py\"\n.entry f() {\n.loc 1 24 17\n\
             .loc 2 216 16, function_name s, inlined_at 1 24 17\n bar.sync 0;\n\
             .loc 2 196 12, function_name s, inlined_at 2 216 16\n trap;\n\
             .loc 2 9 1, function_name s, inlined_at 2 196 12\n ret;\n\
             .loc 2 9 1, function_name s, inlined_at 1 24 17\n brkpt;\n\
             .loc 2 5 2, function_name s, inlined_at 2 9 1\n exit;\n}\n\
             .entry g() { .loc 2 216 16, function_name s, inlined_at 2 196 12\n nanosleep.u32 1; }\n\
             .section .debug_str { s: .b8 115, 0 }";
        let places = OriginalPlaces::of(&SourceFile::new("k.ptx", text));
        let at = |word: &str| places.at(text.find(word).unwrap() as u32).map(|place| place.to_string());
        let bar = "b.py:216:16, inlined at k.py:24:17";
        let trap = format!("b.py:196:12, inlined at {bar}");
        assert_eq!(at("bar.sync").as_deref(), Some(bar));
        assert_eq!(at("trap"), Some(trap.clone()));
        assert_eq!(at("ret"), Some(format!("b.py:9:1, inlined at {trap}")));
        assert_eq!(at("brkpt").as_deref(), Some("b.py:9:1, inlined at k.py:24:17"));
        assert_eq!(at("exit").as_deref(), Some("b.py:5:2, inlined at b.py:9:1"));
        // A `.loc` of another function does not count.
        assert_eq!(at("nanosleep").as_deref(), Some("b.py:216:16, inlined at b.py:196:12"));
    }

    #[test]
    fn a_column_is_shown_if_there_is_one() {
        let place = OriginalPlace { file: "src/a.cu".to_owned(), line: 7, column: 3, inlined_at: None };
        assert_eq!((place.to_string(), place.short()), ("src/a.cu:7:3".to_owned(), "a.cu:7".to_owned()));
    }
}
