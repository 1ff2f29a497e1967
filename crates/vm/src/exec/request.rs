//! An access of one lane: what is asked, and where its memory was found.

use diag::Span;
use isa::Space;

/// What an access does, for checks and messages.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub space: Space,
    /// Bytes of one lane's access, all elements together.
    pub bytes: u64,
    pub write: bool,
    pub span: Span,
}

/// The memory of one lane's access.
#[derive(Clone, Copy)]
pub(super) enum Resolved {
    Host(*mut u8),
    /// An address in the lane's local memory.
    Local(u64),
}
