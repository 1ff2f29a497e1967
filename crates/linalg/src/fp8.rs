//! Numbers of 8 bits: E4M3 and E5M2 (Micikevicius et al., "FP8 Formats for Deep Learning", 2022).

/// A format of 8 bits: its bits of fraction, and the largest finite number's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fp8 {
    fraction: u32,
    largest: u8,
}

impl Fp8 {
    /// 4 bits of exponent and 3 of fraction, no infinities, at most 448.
    pub const E4M3: Fp8 = Fp8 { fraction: 3, largest: 0x7e };
    /// 5 bits of exponent and 2 of fraction, at most 57344.
    pub const E5M2: Fp8 = Fp8 { fraction: 2, largest: 0x7b };

    /// The exponent of the least normal number.
    fn least(self) -> i32 {
        2 - (1 << (6 - self.fraction))
    }

    /// The number that bits mean.
    pub fn decode(self, bits: u8) -> f64 {
        let (exponent, fraction) =
            (i32::from(bits & 0x7f) >> self.fraction, bits & ((1 << self.fraction) - 1));
        let magnitude = match bits & 0x7f {
            magnitude if magnitude <= self.largest => {
                let implicit = if exponent == 0 { 0.0 } else { f64::from(1u32 << self.fraction) };
                let scale = self.least() + exponent.max(1) - 1 - self.fraction as i32;
                (implicit + f64::from(fraction)) * 2.0_f64.powi(scale)
            }
            0x7c if self == Fp8::E5M2 => f64::INFINITY,
            _ => f64::NAN,
        };
        if bits & 0x80 == 0 { magnitude } else { -magnitude }
    }

    /// The bits of a number, rounded to nearest even. What is too large becomes the largest finite number, as `cvt.satfinite` has it.
    pub fn encode(self, value: f64) -> u8 {
        if value.is_nan() {
            return 0x7f;
        }
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let magnitude = value.abs().min(self.decode(self.largest));
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(self.least());
        let steps = (magnitude * 2.0_f64.powi(self.fraction as i32 - exponent)).round_ties_even();
        // A carry of the fraction goes on into the exponent.
        let bits = ((exponent - self.least()) as u32) * (1 << self.fraction) + steps as u32;
        sign | (bits as u8).min(self.largest)
    }
}
