//! What `cargo xtask codegen` makes of `isa/*.isa`.

mod forms;
mod mods;

pub use forms::FORMS;
pub use mods::Mod;
