//! Sets of modifiers that several rules ask for.

use isa::{Mod, Token};

/// `.row` or `.col`
pub(crate) fn is_layout(word: &str) -> bool {
    matches!(Mod::from_name(word), Some(Mod::Row | Mod::Col))
}

/// Is this the format of a matrix in memory, or the format that it is widened to?
pub(crate) fn is_format(word: &str) -> bool {
    matches!(Mod::from_name(word), Some(Mod::B8x16 | Mod::B4x16P64 | Mod::B6x16P32))
}

/// `.m16n8k16`, `.m8n8`, `.16x64b`. A shape need not be one of the table.
pub(crate) fn is_shape(word: &str) -> bool {
    let digit_at = |i: usize| word.as_bytes().get(i).is_some_and(u8::is_ascii_digit);
    let of_matrix = word.starts_with('m') && digit_at(1) && word.contains('n');
    of_matrix || digit_at(0) && word.contains('x') && word.contains('b')
}

/// Is it an atomic operation?
pub(crate) fn is_operation(word: &str) -> bool {
    let modifier = Mod::from_name(word);
    modifier.is_some_and(|modifier| modifier.bool_op().is_some())
        || matches!(
            modifier,
            Some(Mod::Add | Mod::Cas | Mod::Dec | Mod::Exch | Mod::Inc | Mod::Max | Mod::Min)
        )
}

/// Is it an attribute of textures, samplers or surfaces?
pub(crate) fn is_query(modifier: Mod) -> bool {
    let slots = ["txq", "suq"].into_iter().flat_map(isa::forms).flat_map(|form| form.slots);
    slots.filter(|slot| slot.name == "query").any(|slot| slot.choice(Token::Mod(modifier)).is_some())
}
