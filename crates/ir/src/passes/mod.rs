//! The optional passes of the lowering: each a file here and a row of the table below.

mod copies;
mod pairs;
mod prologue;
mod unused;

use crate::function::Function;

/// A pass on a function that was lowered from this function of the module. Values do not share slots yet.
type Pass = fn(&mut Function, &check::module::Function, &Options);

macro_rules! passes {
    ($($(#[$doc:meta])* $name:ident: $run:expr;)*) => {
        /// Optional passes of the lowering. Without them, kernels compute the same results, but slower. Checkers and
        /// debuggers turn off the passes that change the slot of a PTX register.
        ///
        /// The layout order and the live-in slots are not optional: every engine relies on them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Options {
            $($(#[$doc])* pub $name: bool,)*
        }

        impl Options {
            /// Every pass.
            pub const ALL: Options = Options { $($name: true,)* };

            /// No pass.
            pub const NONE: Options = Options { $($name: false,)* };

            /// The names of the passes, as [`Options::without`] takes them.
            pub const PASSES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// All passes except this one; `None` if there is no pass of this name.
            pub fn without(pass: &str) -> Option<Options> {
                match pass {
                    $(stringify!($name) => Some(Options { $name: false, ..Options::ALL }),)*
                    _ => None,
                }
            }
        }

        /// Runs the passes that `options` selects.
        pub(crate) fn run(function: &mut Function, source: &check::module::Function, options: &Options) {
            $(if options.$name {
                let pass: Pass = $run;
                pass(function, source, options);
            })*
        }
    };
}

// In the order in which they run.
passes! {
    /// Copy propagation: uses of a copy's destination read its source.
    copies: |function, _, _| copies::propagate(function);
    /// Results that nothing reads are not computed.
    unused: |function, _, _| unused::drop(function);
    /// Halves that are selected separately and packed again become one selection of pairs.
    pairs: |function, _, options| {
        if pairs::join(function) && options.unused {
            unused::drop_operations(function);
        }
    };
    /// Values that are the same in every CTA of a launch are computed in the prologue.
    prologue: |function, source, _| {
        if source.is_entry {
            prologue::hoist(function, &source.params);
        }
    };
    /// Values that live within one basic block share a few slots. Without it each register has one slot, in all basic
    /// blocks. Whoever assigns the slots (`liveness.rs`) sees to it.
    shared_slots: |_, _, _| {};
}

impl Default for Options {
    /// Every pass.
    fn default() -> Options {
        Options::ALL
    }
}
