//! Which passes the lowering runs.

/// Passes of the lowering, all of which may be left out: kernels compute the same without them, only slower. Checkers and
/// debuggers leave out what stands between a register of the source and the slot that holds it.
///
/// The order of blocks and what is live at their starts are no passes: every engine goes by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Who reads the destination of a copy reads its source.
    pub copies: bool,
    /// Results that nobody reads are not computed.
    pub unused: bool,
    /// Halves that are chosen one by one and put together again are one choice of pairs.
    pub pairs: bool,
    /// What is the same in every block of a launch is computed in the prologue.
    pub prologue: bool,
    /// Values that live within one block take turns in a few slots. Without it each register has one slot, in all blocks.
    pub shared_slots: bool,
}

impl Options {
    /// Every pass.
    pub const ALL: Options =
        Options { copies: true, unused: true, pairs: true, prologue: true, shared_slots: true };

    /// No pass.
    pub const NONE: Options =
        Options { copies: false, unused: false, pairs: false, prologue: false, shared_slots: false };

    /// The names of the passes, as [`Options::without`] takes them.
    pub const PASSES: [&'static str; 5] = ["copies", "unused", "pairs", "prologue", "shared_slots"];

    /// Every pass but the one of this name; `None` if there is none of this name.
    pub fn without(pass: &str) -> Option<Options> {
        let mut options = Options::ALL;
        let flag = match pass {
            "copies" => &mut options.copies,
            "unused" => &mut options.unused,
            "pairs" => &mut options.pairs,
            "prologue" => &mut options.prologue,
            "shared_slots" => &mut options.shared_slots,
            _ => return None,
        };
        *flag = false;
        Some(options)
    }
}

impl Default for Options {
    /// Every pass.
    fn default() -> Options {
        Options::ALL
    }
}
