//! Which passes the lowering runs.

/// Optional passes of the lowering. Without them, kernels compute the same results, but slower. Checkers and
/// debuggers turn off the passes that change the slot of a PTX register.
///
/// The layout order and the live-in slots are not optional: every engine relies on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Copy propagation: uses of a copy's destination read its source.
    pub copies: bool,
    /// Results that nothing reads are not computed.
    pub unused: bool,
    /// Halves that are selected separately and packed again become one selection of pairs.
    pub pairs: bool,
    /// Values that are the same in every CTA of a launch are computed in the prologue.
    pub prologue: bool,
    /// Values that live within one basic block share a few slots. Without it each register has one slot, in all basic
    /// blocks.
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

    /// All passes except this one; `None` if there is no pass of this name.
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
