//! The 16-bit formats as IEEE 754 defines them: the real number of an encoding, and the order of these numbers.

/// A binary interchange format of 16 bits: a sign, an exponent, a fraction.
#[derive(Clone, Copy, Debug)]
pub struct Half {
    /// The PTX type.
    pub name: &'static str,
    fraction_bits: u32,
    bias: i32,
}

/// binary16.
pub const F16: Half = Half { name: "f16", fraction_bits: 10, bias: 15 };
/// bfloat16: binary32 without its low 16 bits.
pub const BF16: Half = Half { name: "bf16", fraction_bits: 7, bias: 127 };

/// The meaning of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Not a number.
    Nan,
    /// An infinity.
    Infinity {
        /// The sign.
        negative: bool,
    },
    /// The signed number `significand * 2^exponent`, zeros included.
    Number {
        /// The sign.
        negative: bool,
        /// Below 2^24.
        significand: u32,
        /// The exponent of the significand's lowest bit.
        exponent: i32,
    },
}

/// IEEE 754, 3.4: the meaning of an encoding whose fraction has `fraction_bits` bits below a biased exponent; the
/// sign is separate.
pub fn decode(magnitude: u32, negative: bool, fraction_bits: u32, bias: i32) -> Meaning {
    let biased = (magnitude >> fraction_bits) as i32;
    let fraction = magnitude & ((1 << fraction_bits) - 1);
    let number = |significand, biased: i32| Meaning::Number {
        negative,
        significand,
        exponent: biased - bias - fraction_bits as i32,
    };
    match (biased, fraction) {
        (0, _) => number(fraction, 1),
        (e, 0) if e > 2 * bias => Meaning::Infinity { negative },
        (e, _) if e > 2 * bias => Meaning::Nan,
        (e, _) => number(fraction | 1 << fraction_bits, e),
    }
}

impl Half {
    /// The meaning of an encoding.
    pub fn decode(&self, bits: u16) -> Meaning {
        decode(u32::from(bits & 0x7fff), bits >> 15 != 0, self.fraction_bits, self.bias)
    }

    /// The rank of every encoding in the order of the numbers; equal numbers have equal ranks. NaNs have `NAN_RANK`.
    /// With `ftz`, subnormal numbers are zero.
    pub fn ranks(&self, ftz: bool) -> Vec<i16> {
        let mut places: Vec<(Option<Place>, u16)> =
            (0..=u16::MAX).map(|bits| (self.place(bits, ftz), bits)).collect();
        places.sort();
        let mut ranks = vec![NAN_RANK; 1 << 16];
        // NaNs come first. The first number gets the smallest rank after that of NaNs.
        let (mut rank, mut last) = (NAN_RANK, None);
        for (place, bits) in places {
            if place.is_some() {
                rank += i16::from(place != last);
                ranks[usize::from(bits)] = rank;
            }
            last = place;
        }
        ranks
    }

    /// The number as a multiple of the format's smallest number; `None` for NaN.
    fn place(&self, bits: u16, ftz: bool) -> Option<Place> {
        let least = 1 - self.bias - self.fraction_bits as i32;
        let magnitude = match self.decode(bits) {
            Meaning::Nan => return None,
            Meaning::Infinity { .. } => [u64::MAX; LIMBS],
            Meaning::Number { significand, .. } if ftz && significand >> self.fraction_bits == 0 => {
                [0; LIMBS]
            }
            Meaning::Number { significand, exponent, .. } => shifted(significand, (exponent - least) as u32),
        };
        let negative = bits >> 15 != 0 && magnitude != [0; LIMBS];
        // The sign is separate, and a negative number's magnitude is inverted: the larger magnitude is the smaller
        // number.
        Some((!negative, if negative { magnitude.map(|limb| !limb) } else { magnitude }))
    }
}

/// The rank of NaNs; no number has it.
pub const NAN_RANK: i16 = i16::MIN;

/// bfloat16 spans 2^-133 to 2^128: 261 bits.
const LIMBS: usize = 5;

/// Whether it is not negative, then the limbs from the highest: ordered as the numbers are.
type Place = (bool, [u64; LIMBS]);

/// `significand << distance`.
fn shifted(significand: u32, distance: u32) -> [u64; LIMBS] {
    let mut limbs = [0; LIMBS];
    let wide = u128::from(significand) << (distance % 64);
    let low = LIMBS - 1 - (distance / 64) as usize;
    limbs[low] = wide as u64;
    if let Some(high) = low.checked_sub(1) {
        limbs[high] = (wide >> 64) as u64;
    }
    limbs
}
