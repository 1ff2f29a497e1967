//! The modifiers of an instruction as ptxas reads them: each by itself. Some are parts of names, and some have no
//! meaning.

use crate::{Form, Mod, Slot, Token};

/// A modifier as written in the source.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Token(Token),
    /// ptxas accepts it without a meaning.
    Ignored(Mod),
    /// ptxas knows it from instructions that the table does not contain.
    Foreign,
    Unknown,
}

impl Written {
    pub(crate) fn read_all(opcode: &str, modifiers: &[&str]) -> Vec<Written> {
        (0..modifiers.len()).map(|index| Written::read(opcode, modifiers, index)).collect()
    }

    fn read(opcode: &str, modifiers: &[&str], index: usize) -> Written {
        let name = modifiers[index];
        let Some(token) = Token::from_name(name) else {
            return if name == "g" { Written::Foreign } else { Written::Unknown };
        };
        if opcode == "fence" && name == "proxy" && index > 0 {
            return Written::Unknown;
        }
        let takes = |slot: &Slot| slot.choice(token).is_some();
        // A part of a name must be in its place, and the name must be complete.
        let is_named = |form: &Form| {
            let whole = if name == "proxy" { 1 } else { form.head };
            index < whole
                && form.head > 0
                && modifiers.len() >= whole
                && begins_with_name(form, whole.min(form.head), modifiers)
        };
        // Other instructions of the same opcode do not matter for what this one takes.
        let has_name = |form: &Form| form.has_name(modifiers);
        let is_in_place = index == 0 || index == 1 && matches!(modifiers[0], "cta" | "cluster");
        if matches!(opcode, "bar" | "barrier") && matches!(name, "arrive" | "red") && !is_in_place {
            return Written::Unknown;
        }
        let taken = || {
            let forms = crate::forms(opcode);
            forms
                .iter()
                .any(|form| is_named(form) || has_name(form) && form.slots[form.head..].iter().any(takes))
        };
        match token {
            Token::Mod(modifier) if is_read_anywhere(modifier) && !taken() => Written::Ignored(modifier),
            Token::Mod(modifier) if is_part_of_name(modifier) && !taken() => Written::Unknown,
            _ => Written::Token(token),
        }
    }

    pub(crate) fn modifier(self) -> Option<Mod> {
        match self {
            Written::Token(Token::Mod(modifier)) | Written::Ignored(modifier) => Some(modifier),
            _ => None,
        }
    }
}

/// Are the first `words` modifiers those of a row's name?
fn begins_with_name(form: &Form, words: usize, modifiers: &[&str]) -> bool {
    let mut name = form.slots[..words].iter().zip(modifiers);
    modifiers.len() >= words
        && name.all(|(slot, word)| slot.choices.iter().any(|choice| choice.token.name() == *word))
}

/// Modifiers that ptxas accepts on every instruction, without a meaning where they do not belong: operations of
/// `testp`, fields of `tensormap.replace`, formats and accumulator types of matrix instructions.
fn is_read_anywhere(modifier: Mod) -> bool {
    matches!(
        modifier,
        Mod::AccF16
            | Mod::AccF32
            | Mod::B4x16P64
            | Mod::B6x16P32
            | Mod::B8x16
            | Mod::BoxDim
            | Mod::ElementStride
            | Mod::Elemtype
            | Mod::FillMode
            | Mod::Finite
            | Mod::GlobalAddress
            | Mod::GlobalDim
            | Mod::GlobalStride
            | Mod::Infinite
            | Mod::InterleaveLayout
            | Mod::Normal
            | Mod::Notanumber
            | Mod::Number
            | Mod::Rank
            | Mod::Subnormal
            | Mod::SwizzleAtomicity
            | Mod::SwizzleMode
    )
}

/// Modifiers that ptxas knows only as parts of instruction names.
pub fn is_part_of_name(modifier: Mod) -> bool {
    matches!(
        modifier,
        Mod::AllocClassLarge
            | Mod::Arrive
            | Mod::ArriveDrop
            | Mod::Base
            | Mod::Bulk
            | Mod::C
            | Mod::CheckLayout
            | Mod::Commit
            | Mod::CommitGroup
            | Mod::CompleteTx
            | Mod::CpFenceproxy
            | Mod::Cvt
            | Mod::D
            | Mod::ExpectTx
            | Mod::Fence
            | Mod::FenceAfterThreadSync
            | Mod::FenceBeforeThreadSync
            | Mod::Fractional
            | Mod::Full
            | Mod::Grad
            | Mod::Init
            | Mod::Inval
            | Mod::L
            | Mod::LdReduce
            | Mod::Level
            | Mod::Load
            | Mod::Mask
            | Mod::MmaAsync
            | Mod::P
            | Mod::Pack
            | Mod::Parity
            | Mod::PendingCount
            | Mod::Prefetch
            | Mod::Proxy
            | Mod::Query
            | Mod::QueryCancel
            | Mod::Range
            | Mod::Red
            | Mod::Reduce
            | Mod::RelinquishAllocPermit
            | Mod::Replace
            | Mod::Spcompress
            | Mod::Store
            | Mod::Submit
            | Mod::Tensor
            | Mod::TestWait
            | Mod::To
            | Mod::TryCancel
            | Mod::TryGet
            | Mod::TryPullred
            | Mod::TryPut
            | Mod::TryRed
            | Mod::TryWait
            | Mod::WaitAll
            | Mod::WaitGroup
            | Mod::WaitLd
            | Mod::WaitSt
            | Mod::Warp
            | Mod::Wide
            | Mod::Ws
    )
}
