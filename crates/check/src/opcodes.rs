//! The words that are instructions in PTX 9.5: the table has rows for all of them.

/// All words that are instructions; some twice.
pub fn all() -> impl Iterator<Item = &'static str> {
    isa::FORMS.iter().map(|form| form.opcode.name())
}

/// How ptxas names an instruction in its messages: some modifiers make another instruction of it.
pub fn display_name(opcode: &str, modifiers: &[&str]) -> String {
    let head = |form: &isa::Form| {
        let fits = form.slots[..form.head]
            .iter()
            .zip(modifiers)
            .all(|(slot, modifier)| slot.choices.iter().any(|choice| choice.token.name() == *modifier));
        if fits && modifiers.len() >= form.head { form.head } else { 0 }
    };
    let mut longest = isa::forms(opcode).iter().map(head).max().unwrap_or(0);
    // These are names of their own for ptxas, though their modifiers may stand anywhere.
    let also = matches!(
        (opcode, modifiers.first()),
        ("bar" | "barrier", Some(&("arrive" | "red")))
            | ("bar", Some(&("warp" | "cta")))
            | ("barrier", Some(&("cta" | "cluster")))
            | ("fence" | "membar", Some(&"proxy"))
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
        // `tcgen05.wait::ld` goes by its first half.
        name.push_str(modifier.split_once("::").map_or(modifier, |(first, _)| first));
    }
    name
}
