//! What `cargo xtask codegen` makes of `isa/*.isa`.

mod effects;
mod forms;
mod messages;
mod mods;
mod opcodes;

pub use effects::Effect;
pub use forms::{ELSEWHERE, FORMS, LENIENT};
pub use messages::{MESSAGES, STAGES};
pub use mods::Mod;
pub use opcodes::Opcode;
