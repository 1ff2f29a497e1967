//! The opcodes of PTX 9.5: the table has rows for all of them.

/// All opcodes; some occur twice.
pub fn all() -> impl Iterator<Item = &'static str> {
    isa::FORMS.iter().map(|form| form.opcode.name())
}

/// The name of an instruction in ptxas's messages. Some modifiers are part of the name.
pub fn display_name(opcode: &str, modifiers: &[&str]) -> String {
    let head = |form: &isa::Form| if form.has_name(modifiers) { form.head } else { 0 };
    let mut longest = isa::forms(opcode).iter().map(head).max().unwrap_or(0);
    // ptxas treats these as names of their own, although their modifiers may be in any place.
    let also = matches!(
        (opcode, modifiers.first()),
        ("bar" | "barrier", Some(&("arrive" | "red")))
            | ("bar", Some(&("warp" | "cta")))
            | ("barrier", Some(&("cta" | "cluster")))
            | ("fence" | "membar", Some(&"proxy"))
            | ("dp2a", Some(&("lo" | "hi")))
    );
    if also {
        longest = longest.max(1);
    }
    if matches!((opcode, modifiers.first()), ("fence", Some(&"proxy"))) {
        longest = 1;
    }
    if let ("bar" | "barrier", ["cta", "arrive" | "red", ..]) = (opcode, modifiers) {
        longest = longest.max(2);
    }
    let mut name = opcode.to_owned();
    for modifier in &modifiers[..longest] {
        name.push('.');
        // ptxas names `tcgen05.wait::ld` by its first half.
        name.push_str(modifier.split_once("::").map_or(modifier, |(first, _)| first));
    }
    name
}

/// The longest instruction name with which the text of an instruction begins may end within a word. If so, this is
/// the index of the word and the rest of it.
pub(crate) fn ends_within<'w>(opcode: &str, modifiers: &[&'w str]) -> Option<(usize, &'w str)> {
    let mut longest: Option<(usize, usize)> = None;
    for form in isa::forms(opcode).iter().filter(|form| form.head > 0) {
        let (last, others) = form.slots[..form.head].split_last()?;
        let is_one_of = |slot: &isa::Slot, word: &str| slot.choices.iter().any(|c| c.token.name() == word);
        let Some(word) = modifiers.get(others.len()) else { continue };
        if !others.iter().zip(modifiers).all(|(slot, word)| is_one_of(slot, word)) {
            continue;
        }
        let names = last.choices.iter().map(|choice| choice.token.name());
        let Some(name) = names.filter(|name| word.starts_with(name)).max_by_key(|name| name.len()) else {
            continue;
        };
        longest = longest.max(Some((others.len(), name.len())));
    }
    let (index, length) = longest?;
    let rest = &modifiers[index][length..];
    let is_name = rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    is_name.then_some((index, rest))
}
