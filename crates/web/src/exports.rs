//! The boundary to JavaScript: it makes room for a question (`room`), fills it, and has it answered (`answer`).

use std::cell::RefCell;

use crate::Engine;

thread_local! {
    static ENGINE: RefCell<(Engine, Vec<u8>)> = RefCell::default();
}

/// Makes room for a question of so many bytes, and returns its address.
// SAFETY: no other symbol of the page's program has this name.
#[unsafe(export_name = "room")]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    ENGINE.with_borrow_mut(|(_, text)| {
        text.clear();
        text.resize(bytes, 0);
        text.as_mut_ptr()
    })
}

/// Answers the question that was written where `room` said. The answer stands at the address that this returns, up to
/// the next call; `answer_bytes` returns its length.
// SAFETY: no other symbol of the page's program has this name.
#[unsafe(export_name = "answer")]
pub extern "C" fn answer() -> *const u8 {
    ENGINE.with_borrow_mut(|(engine, text)| {
        *text = engine.call(&String::from_utf8_lossy(text)).into_bytes();
        text.as_ptr()
    })
}

/// The length of the last answer, in bytes.
// SAFETY: no other symbol of the page's program has this name.
#[unsafe(export_name = "answer_bytes")]
pub extern "C" fn answer_bytes() -> usize {
    ENGINE.with_borrow(|(_, text)| text.len())
}
