//! What `cargo xtask codegen` makes of `isa/*.isa`.

mod forms;
mod mods;

pub use forms::{FORMS, LENIENT};
pub use mods::Mod;
