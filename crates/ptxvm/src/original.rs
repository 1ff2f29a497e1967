//! The lines that instructions were compiled from, as `.loc` says (PTX ISA 11.5, "Debugging Directives").

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
    /// The column, from 1; 0 if the compiler knew none.
    pub column: u64,
}

impl OriginalPlace {
    /// `saxpy.cu:12`: the line, without the folder of the file.
    pub fn short(&self) -> String {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
        format!("{name}:{}", self.line)
    }

    /// Says of a line of the PTX that it comes from here.
    pub(crate) fn note(&self, line: u32) -> String {
        format!("line {line} was compiled from {self}")
    }
}

/// `saxpy.cu:12:5`
impl fmt::Display for OriginalPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            0 => write!(f, "{}:{}", self.file, self.line),
            column => write!(f, "{}:{}:{column}", self.file, self.line),
        }
    }
}

/// What all `.loc` of a text say.
#[derive(Default)]
pub struct OriginalPlaces {
    files: HashMap<u64, String>,
    /// In ascending order: where each holds from. None holds behind the end of a function.
    from: Vec<(u32, Option<Loc>)>,
}

/// What a `.loc` says.
#[derive(Clone, Copy)]
struct Loc {
    file: u64,
    line: u64,
    column: u64,
}

impl OriginalPlaces {
    /// Those of a source.
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
                    let place = [&loc.file, &loc.line, &loc.column].map(number);
                    if let [Some(file), Some(line), Some(column)] = place {
                        self.from.push((loc.span.start, Some(Loc { file, line, column })));
                    }
                }
                Statement::Block(block) => self.add(block),
                _ => {}
            }
        }
    }

    /// What the instruction at an offset of the text was compiled from; `None` where nothing says so, or line 0.
    pub fn at(&self, offset: u32) -> Option<OriginalPlace> {
        let behind = self.from.partition_point(|(start, _)| *start <= offset);
        let Loc { file, line, column } = self.from.get(behind.checked_sub(1)?)?.1?;
        let file = self.files.get(&file)?.clone();
        (line > 0).then_some(OriginalPlace { file, line, column })
    }

    /// `line 19 was compiled from saxpy.cu:12:5`
    pub(crate) fn note(&self, source: &SourceFile, span: Span) -> Option<String> {
        self.at(span.start).map(|original| original.note(source.position(span.start).line))
    }
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
    fn a_column_is_shown_if_there_is_one() {
        let place = OriginalPlace { file: "src/a.cu".to_owned(), line: 7, column: 3 };
        assert_eq!((place.to_string(), place.short()), ("src/a.cu:7:3".to_owned(), "a.cu:7".to_owned()));
    }
}
