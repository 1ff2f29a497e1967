//! Reports of a bulk copy about the bytes that it copies (PTX ISA 9.4, "Report mechanisms for asynchronous copy
//! operations").

use crate::{Mod, Picks};

/// A pattern by which a producer marks elements that are not yet valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// `.per_16bytes`: the first element of 16 bytes is -0, in a format of this many bits.
    NegativeZero(u32),
    /// `.per_element::ff`: a byte is 0xff.
    AllOnes,
}

impl Validity {
    /// The pattern that an instruction tests; `None` also for `.mbarrier::report::disabled`.
    pub fn of(picks: &Picks) -> Option<Validity> {
        let patterns = [
            (Mod::MbarrierReportValidityPer16bytes80000000, Validity::NegativeZero(32)),
            (Mod::MbarrierReportValidityPer16bytes8000, Validity::NegativeZero(16)),
            (Mod::MbarrierReportValidityPer16bytes80, Validity::NegativeZero(8)),
            (Mod::MbarrierReportValidityPer16bytes8, Validity::NegativeZero(4)),
            (Mod::MbarrierReportValidityPerElementFf, Validity::AllOnes),
        ];
        patterns.into_iter().find_map(|(modifier, validity)| picks.has(modifier).then_some(validity))
    }
}
