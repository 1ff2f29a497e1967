//! Targets with HSETP2, and the generations that changed its encoding.

use std::fmt;

/// Targets that encode HSETP2 in the same way. Later generations compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// Maxwell and Pascal: groups of a control word and three 64-bit words.
    Maxwell,
    /// 128-bit words that contain their control information, as in all later generations.
    Volta,
    /// Adds uniform registers, and constant banks that they select. Ampere and Ada are the same.
    Turing,
    /// Adds `.BF16_V2`, loses `.F32`.
    Hopper,
    /// Loses constant operands, has 256 uniform registers.
    Blackwell,
}

/// A target: `sm_53`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch(u16);

impl Arch {
    /// Every target whose HSETP2 is supported, oldest first.
    pub const ALL: [Arch; 16] = [
        Arch(52),
        Arch(53),
        Arch(60),
        Arch(61),
        Arch(62),
        Arch(70),
        Arch(72),
        Arch(75),
        Arch(80),
        Arch(86),
        Arch(87),
        Arch(89),
        Arch(90),
        Arch(100),
        Arch(101),
        Arch(120),
    ];

    /// Parses `sm_53`, also written as `SM53`, and with a feature suffix (`sm_90a`).
    pub fn parse(name: &str) -> Option<Arch> {
        let digits = name.strip_prefix("sm_").or_else(|| name.strip_prefix("SM"))?;
        let number: u16 = digits.strip_suffix(['a', 'f']).unwrap_or(digits).parse().ok()?;
        Arch::ALL.into_iter().find(|arch| arch.0 == number)
    }

    /// The number of the target: 53 of `sm_53`.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The generation that determines the encoding.
    pub const fn generation(self) -> Generation {
        match self.0 {
            ..70 => Generation::Maxwell,
            70..75 => Generation::Volta,
            75..90 => Generation::Turing,
            90..100 => Generation::Hopper,
            _ => Generation::Blackwell,
        }
    }

    /// Bits of an instruction word: 64 or 128.
    pub const fn word_bits(self) -> u32 {
        if self.0 < 70 { 64 } else { 128 }
    }

    /// Bytes of an instruction word: 8 or 16.
    pub const fn word_bytes(self) -> usize {
        self.word_bits() as usize / 8
    }

    /// Whether text without a schedule means an instruction that waits. This is so where nvdisasm does not print
    /// schedules.
    pub(crate) const fn implies_schedule(self) -> bool {
        self.word_bits() == 128 && !self.prints_schedule()
    }

    /// Whether nvdisasm prints scheduling and barriers for it.
    pub(crate) const fn prints_schedule(self) -> bool {
        self.0 == 120
    }

    /// Whether barriers that HSETP2 does not use count as (hidden) text in nvdisasm's listing.
    pub(crate) const fn shows_barriers(self) -> bool {
        self.0 < 80
    }

    /// Whether bits 103:102 select a performance monitor.
    pub(crate) const fn has_monitors(self) -> bool {
        self.0 >= 86
    }

    /// Whether `.F32` flushes FP16 denormals that the conversion produces, as the SPA 5.3 text says.
    ///
    /// ptxas for sm_60, sm_62, sm_70 and sm_75 folds `cvt.rz.f16.f32`, which keeps denormals, into a `.F32` source.
    /// For sm_60 and sm_62 it turns a denormal literal into an FP32 constant. For sm_53 it does neither: it converts
    /// with F2F, and moves denormal literals (but no others) through a register. *Unverified* on hardware.
    pub(crate) const fn truncation_flushes(self) -> bool {
        self.0 < 60
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}
