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

#[cfg(test)]
mod tests {
    use rustc_apfloat::ieee::{Double, Float8E4M3FN, Float8E5M2};
    use rustc_apfloat::{Float, FloatConvert};

    use super::*;

    fn wanted<F: Float>(value: f64) -> (u8, bool)
    where
        Double: FloatConvert<F>,
    {
        let rounded: F = Double::from_bits(u128::from(value.to_bits())).convert(&mut false).value;
        (rounded.to_bits() as u8, rounded.is_finite() && value.is_finite())
    }

    #[test]
    fn every_number_and_what_lies_between_rounds_as_apfloat_has_it() {
        for format in [Fp8::E4M3, Fp8::E5M2] {
            for bits in (0..=u8::MAX).filter(|bits| bits & 0x7f <= format.largest) {
                let value = format.decode(bits);
                let next = format.decode(bits + u8::from(bits & 0x7f < format.largest));
                for value in [0.0, 0.25, 0.5, 0.500001, 0.75, 1.0].map(|part| value + (next - value) * part) {
                    let (want, is_finite) = match format {
                        Fp8::E4M3 => wanted::<Float8E4M3FN>(value),
                        _ => wanted::<Float8E5M2>(value),
                    };
                    assert!(is_finite, "{value}");
                    let sign = if bits >= 0x80 && value == 0.0 { 0x80 } else { 0 };
                    assert_eq!(format.encode(value), want | sign, "{value:e}");
                }
            }
            assert_eq!(format.encode(1e9), format.largest);
            assert_eq!(format.encode(f64::NEG_INFINITY), format.largest | 0x80);
            assert!(format.decode(format.encode(f64::NAN)).is_nan());
        }
        assert_eq!(Fp8::E5M2.decode(0xfc), f64::NEG_INFINITY);
        assert!(Fp8::E4M3.decode(0x7f).is_nan() && Fp8::E5M2.decode(0x7d).is_nan());
    }
}
