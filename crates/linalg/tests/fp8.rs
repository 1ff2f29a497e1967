//! Conversions of numbers of 8 bits, as rustc_apfloat has them.

use linalg::Fp8;
use rustc_apfloat::ieee::{Double, Float8E4M3FN, Float8E5M2};
use rustc_apfloat::{Float, FloatConvert};

fn wanted<F: Float>(value: f64) -> (u8, bool)
where
    Double: FloatConvert<F>,
{
    let rounded: F = Double::from_bits(u128::from(value.to_bits())).convert(&mut false).value;
    (rounded.to_bits() as u8, rounded.is_finite() && value.is_finite())
}

#[test]
fn every_number_and_what_lies_between_rounds_as_apfloat_has_it() {
    for (format, largest) in [(Fp8::E4M3, 0x7e), (Fp8::E5M2, 0x7b)] {
        for bits in (0..=u8::MAX).filter(|bits| bits & 0x7f <= largest) {
            let value = format.decode(bits);
            let next = format.decode(bits + u8::from(bits & 0x7f < largest));
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
        assert_eq!(format.encode(1e9), largest);
        assert_eq!(format.encode(f64::NEG_INFINITY), largest | 0x80);
        assert!(format.decode(format.encode(f64::NAN)).is_nan());
    }
    assert_eq!(Fp8::E5M2.decode(0xfc), f64::NEG_INFINITY);
    assert!(Fp8::E4M3.decode(0x7f).is_nan() && Fp8::E5M2.decode(0x7d).is_nan());
}
