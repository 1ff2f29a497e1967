//! What observers saw of a launch, for people and for programs. The command and the Python package show the same.

pub mod counters;
pub mod nonfinite;
pub mod trace;
pub mod value;
pub mod watch;

use diag::Span;
use isa::Space;
pub use sem::bits;
use serde_json::{Value, json};

use crate::{PlaceInSource, Places};

/// An address in the space that it resolves to.
pub type Address = (Space, u64);

/// `thread (3,0,0) of block (1,0,0)`
pub fn who(block: [u32; 3], thread: u32, block_extents: [u32; 3]) -> String {
    let text = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    format!("thread {} of block {}", text(coordinates(thread, block_extents)), text(block))
}

/// `%tid` of a linear index in a block.
pub fn coordinates(index: u32, [nx, ny, _]: [u32; 3]) -> [u32; 3] {
    [index % nx, index / nx % ny, index / (nx * ny)]
}

/// `saxpy.ptx:14 (saxpy.cu:9)  ld.global.f32 %f2, [%rd6];`
fn instruction(place: &PlaceInSource) -> String {
    format!("{}  {}", place.short(), place.text())
}

/// `[global 0x1000000044]`
fn show_address((space, address): Address) -> String {
    format!("[{} {address:#x}]", crate::json::space(space))
}

/// An address for programs.
fn json_address((space, address): Address) -> Value {
    json!({ "space": crate::json::space(space), "address": address })
}

/// A place with the instruction there, for programs.
fn json_place(places: &Places, span: Span) -> Value {
    let place = places.at(span);
    let mut object = crate::json::place(&place);
    object["text"] = json!(place.text());
    object
}
