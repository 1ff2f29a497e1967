//! Where names are declared and used (`check::names`).

use check::names::{Kind, Names};
use diag::SourceFile;
use test_utils::{corpus, root};

const TEXT: &str = "\
.version 8.5
.target sm_90
.address_size 64
.func f(.reg .u32 a);
.global .u64 table[1] = {f};
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<4>; .reg .b32 x;
    bra Down;
    { .reg .b32 x; mov.b32 x, %r3; mov.b32 %r4, x; }
    mov.b32 x, %r1;
Down: ts: .branchtargets Down, After;
    brx.idx x, ts;
    call f, (x);
After: ret;
}
.func f(.reg .u32 a) { mov.u32 a, a; ret; }
";

fn names(text: &str) -> Names {
    Names::of(&syntax::parse(&SourceFile::new("n.ptx", text)).0)
}

#[test]
fn names_are_found_in_their_scope() {
    let names = names(TEXT);
    let count = |name: &str, kind: Kind| -> Vec<usize> {
        let of = |index: &usize| (names.symbols[*index].name == name) && names.symbols[*index].kind == kind;
        let symbols = (0..names.symbols.len()).filter(of);
        symbols.map(|index| names.occurrences.iter().filter(|one| one.symbol == index).count()).collect()
    };
    assert_eq!(count("x", Kind::Register), [4, 3], "the inner one hides the outer one");
    assert_eq!(count("%r", Kind::Register), [3], "%r4 is not of the range");
    assert_eq!(count("Down", Kind::Label), [3]);
    assert_eq!(count("After", Kind::Label), [2]);
    assert_eq!(count("ts", Kind::Table), [2]);
    assert_eq!(count("f", Kind::Function), [4]);
    assert_eq!(count("a", Kind::Register), [1, 3], "each declaration has parameters of its own");
    assert_eq!(count("k", Kind::Kernel), [1]);

    let at = |piece: &str| TEXT.find(piece).expect("it is there") as u32;
    let call = names.at(at("f, (x)")).expect("a name");
    let symbol = &names.symbols[call.symbol];
    assert_eq!(symbol.definition.start, at("f(.reg .u32 a) {"), "the one with the body");
    assert_eq!(names.at(at("%r3")).and_then(|one| one.member), Some(3));
    assert!(names.at(at("%r4")).is_none());
    let visible: Vec<&str> =
        names.visible(at("mov.b32 x, %r3")).iter().map(|one| one.name.as_str()).collect();
    assert!(
        ["x", "%r", "Down", "out", "table", "f"].iter().all(|name| visible.contains(name)),
        "{visible:?}"
    );
    assert!(!visible.contains(&"a"));
}

#[test]
fn every_place_has_the_name_of_its_symbol() {
    let files = corpus::ptx_files(&root().join("tests"));
    let mut places = 0;
    for path in files.into_iter().chain(corpus::ptx_files(&corpus::path())) {
        let bytes = std::fs::read(&path).expect("a readable file");
        let source = SourceFile::from_bytes("n.ptx", bytes);
        let names = Names::of(&syntax::parse(&source).0);
        assert!(names.occurrences.is_sorted_by_key(|one| one.span.start));
        for one in &names.occurrences {
            let symbol = &names.symbols[one.symbol];
            let number = one.member.map(|number| number.to_string()).unwrap_or_default();
            let text = source.slice(one.span);
            let digits = text
                .strip_prefix(symbol.name.as_str())
                .unwrap_or_else(|| panic!("{text} of {}", symbol.name));
            assert_eq!(digits.trim_start_matches('0'), number.trim_start_matches('0'), "{}", path.display());
        }
        places += names.occurrences.len();
    }
    assert!(places > 10_000, "{places}");
}
