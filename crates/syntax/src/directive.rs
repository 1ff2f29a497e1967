//! The directives of PTX: where each may stand and what it says (PTX ISA, "Directives", "State Spaces").

use Place::{Body, Head, Module, Within};

/// Where a directive may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the start of an item outside functions.
    Module,
    /// Between the head of a function and its body.
    Head,
    /// At the start of a statement.
    Body,
    /// Within a declaration.
    Within,
}

/// A directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Its name without the dot.
    pub name: &'static str,
    /// Where it may stand.
    pub places: &'static [Place],
    /// What it says, in a few words.
    pub meaning: &'static str,
}

const fn row(name: &'static str, places: &'static [Place], meaning: &'static str) -> Directive {
    Directive { name, places, meaning }
}

/// Every directive, by name. State spaces are among them, and so are types that only declarations have.
pub const DIRECTIVES: &[Directive] = &[
    row("abi_preserve", &[Head, Within], "how many registers the function preserves"),
    row("abi_preserve_control", &[Head, Within], "how many control-flow registers the function preserves"),
    row("address_size", &[Module], "the size of addresses in bits: 32 or 64"),
    row("alias", &[Module], "another name of a function"),
    row("align", &[Within], "the alignment in bytes"),
    row("attribute", &[Within], "attributes of a variable or function"),
    row("blocksareclusters", &[Head], "the extents of the launch count clusters, not blocks"),
    row("branchtargets", &[Within], "the labels to which a `brx.idx` may go"),
    row("callprototype", &[Within], "the parameters of functions that are called by address"),
    row("calltargets", &[Within], "the functions that a call by address may call"),
    row("common", &[Module], "a variable that other modules may define, too"),
    row("const", &[Module, Body], "a variable in constant memory"),
    row("entry", &[Module], "a kernel"),
    row("explicitcluster", &[Head], "the kernel must be launched with clusters"),
    row("extern", &[Module], "what follows is defined in another module"),
    row("file", &[Module], "the number of a source file, for `.loc`"),
    row("func", &[Module], "a function"),
    row("global", &[Module, Body], "a variable in global memory"),
    row("loc", &[Body], "the place in the source from which the next instructions come"),
    row("local", &[Module, Body], "a variable of which each thread has its own"),
    row("local_maxnreg", &[Head], "the most registers of a thread of this function"),
    row("managed", &[Within], "a variable that the host may use, too"),
    row("maxclusterrank", &[Head], "the most blocks of a cluster"),
    row("maxnctapersm", &[Head], "the most blocks of a multiprocessor (old)"),
    row("maxnreg", &[Head], "the most registers of a thread"),
    row("maxntid", &[Head], "the most threads of a block"),
    row("minnctapersm", &[Head], "the least number of blocks of a multiprocessor"),
    row("minperctamemory", &[Head], "bytes of global memory that each block needs for itself"),
    row("noreturn", &[Head, Within], "the function does not return"),
    row("param", &[Within, Body], "a parameter"),
    row("pragma", &[Module, Head, Body], "a hint to the compiler"),
    row("ptr", &[Within], "the parameter is a pointer"),
    row("reg", &[Body, Within, Module], "registers"),
    row("reqnctapercluster", &[Head], "the extents of the clusters of every launch"),
    row("reqntid", &[Head], "the extents of the blocks of every launch"),
    row("samplerref", &[Within], "a sampler"),
    row("section", &[Module], "debug information"),
    row("shared", &[Module, Body], "a variable in shared memory"),
    row("sreg", &[], "special registers, which are not declared"),
    row("surfref", &[Within], "a surface"),
    row("target", &[Module], "the architecture that the module is for"),
    row("tex", &[Module], "a texture (old: `.global .texref`)"),
    row("texref", &[Within], "a texture"),
    row("unified", &[Within], "a variable with the same address everywhere"),
    row("version", &[Module], "the version of PTX"),
    row("visible", &[Module], "what follows can be used by other modules"),
    row("weak", &[Module], "a definition that another module's may replace"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_knows_no_other() {
        assert!(DIRECTIVES.is_sorted_by_key(|directive| directive.name));
        for space in ["reg", "param", "global", "const", "shared", "local", "tex"] {
            assert!(DIRECTIVES.iter().any(|directive| directive.name == space), "{space}");
        }
        // The parser's own list is a match; this finds what is missing here.
        let parser = include_str!("parser/mod.rs");
        let list = parser.split_once("fn is_directive").expect("it is there").1;
        let list = list.split_once("\n}").expect("it ends").0;
        for name in list.split('"').skip(1).step_by(2).filter(|name| *name != "language") {
            assert!(DIRECTIVES.iter().any(|directive| directive.name == name), "{name}");
        }
    }
}
