//! Where `.loc` says that code comes from.

use std::collections::HashMap;

use diag::SourceFile;
use syntax::tree::{Block, Item, Statement};

/// The `.loc` directives of a file.
pub struct Locations {
    /// From the byte offset on: index of a file, and the line in it. In order; none where a function starts.
    places: Vec<(u32, Option<(u64, u64)>)>,
    files: HashMap<u64, String>,
}

impl Locations {
    /// Those of a source.
    pub fn of(source: &SourceFile) -> Locations {
        let (tree, _) = syntax::parse(source);
        let mut locations = Locations { places: Vec::new(), files: HashMap::new() };
        for item in &tree.items {
            match item {
                Item::File(file) => {
                    if let Ok(index) = file.index.text.parse() {
                        locations.files.insert(index, file.name.text.trim_matches('"').to_owned());
                    }
                }
                Item::Function(function) => {
                    locations.places.push((function.span.start, None));
                    function.body.iter().for_each(|body| locations.block(body));
                }
                _ => {}
            }
        }
        locations
    }

    fn block(&mut self, block: &Block) {
        for statement in &block.statements {
            match statement {
                Statement::Loc(loc) => {
                    let place = loc.file.text.parse().ok().zip(loc.line.text.parse().ok());
                    self.places.push((loc.span.start, place));
                }
                Statement::Block(block) => self.block(block),
                _ => {}
            }
        }
    }

    /// `file:line` of the code at a byte offset, without the file's folder.
    pub fn at(&self, offset: u32) -> Option<String> {
        let next = self.places.partition_point(|&(start, _)| start <= offset);
        let (_, place) = self.places.get(next.checked_sub(1)?)?;
        let (file, line) = (*place)?;
        let name = self.files.get(&file).map_or("?", String::as_str);
        Some(format!("{}:{line}", name.rsplit(['/', '\\']).next().unwrap_or(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_hold_until_the_next_one_or_the_end_of_the_function() {
        let text = ".version 7.0 .target sm_70 .address_size 64\n.file 1 \"a/b.cu\"\n\
            .entry f() { membar.cta; .loc 1 7 3\n add; { .loc 1 9 1\n sub; } mul; }\n.entry g() { ret; }\n";
        let locations = Locations::of(&SourceFile::new("f", text));
        let at = |word: &str| locations.at(text.find(word).expect("it is there") as u32);
        assert_eq!(at("membar"), None);
        assert_eq!(at("add;").as_deref(), Some("b.cu:7"));
        assert_eq!(at("sub").as_deref(), Some("b.cu:9"));
        assert_eq!(at("mul").as_deref(), Some("b.cu:9"));
        assert_eq!(at("ret"), None);
    }
}
