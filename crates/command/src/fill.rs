//! What a new array holds before the kernel runs: `f32[1024]=random`.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal, StandardUniform};

use super::array::DType;

/// The contents of a new array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Zeros.
    Zeros,
    /// `undef`: zeros that initcheck treats as unwritten.
    Undefined,
    /// The bytes of one element, in all elements.
    Element(Vec<u8>),
    /// `1,2,3`: the bytes of all elements.
    List(Vec<u8>),
    /// `iota`: each element is its index, as `numpy.arange` has it.
    Iota,
    /// `random(SEED)`: floats from 0 to 1, all bits of integers.
    Random(u64),
    /// `normal(SEED)`: floats with a mean of 0 and a standard deviation of 1.
    Normal(u64),
}

impl Fill {
    /// What stands behind `=` in the argument of an array of this type.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str, dtype: DType) -> Result<Fill, String> {
        let (word, seed) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((word, seed)) => (word, seed.trim().parse().ok()),
            None => (text, Some(0)),
        };
        let seed = || seed.ok_or_else(|| format!("`{text}` has no seed: write a number, {word}(1)"));
        match word {
            "undef" => Ok(Fill::Undefined),
            "iota" => Ok(Fill::Iota),
            "random" => Ok(Fill::Random(seed()?)),
            "normal" if dtype.is_float() => Ok(Fill::Normal(seed()?)),
            _ if text.contains(',') => {
                let elements = text.split(',').map(|element| dtype.parse(element.trim()));
                Ok(Fill::List(elements.collect::<Result<Vec<_>, _>>()?.concat()))
            }
            "normal" => Err(format!("normal is for floats, and {} is none: random", dtype.name())),
            _ => dtype.parse(text).map(Fill::Element).map_err(|error| {
                format!(
                    "{error}; an array may also hold a list 1,2,3, iota, random(SEED), normal(SEED), undef"
                )
            }),
        }
    }

    /// The bytes of an array with so many elements; `None` if they are zeros.
    pub fn bytes(&self, dtype: DType, elements: usize) -> Option<Vec<u8>> {
        let numbers = |numbers: &mut dyn Iterator<Item = f64>| {
            numbers.take(elements).flat_map(|number| dtype.round(number)).collect::<Vec<u8>>()
        };
        match self {
            Fill::Zeros | Fill::Undefined => None,
            Fill::List(list) => Some(list.clone()),
            Fill::Element(element) => Some(element.repeat(elements)),
            Fill::Iota if dtype.is_float() => Some(numbers(&mut (0u64..).map(|index| index as f64))),
            Fill::Iota => {
                let index = |index: u64| index.to_le_bytes().into_iter().take(dtype.bytes());
                Some((0..elements as u64).flat_map(index).collect())
            }
            Fill::Random(seed) if dtype.is_float() => {
                let uniform = ChaCha8Rng::seed_from_u64(*seed);
                Some(numbers(&mut StandardUniform.sample_iter(uniform)))
            }
            Fill::Random(seed) => {
                let mut bytes = vec![0; elements * dtype.bytes()];
                ChaCha8Rng::seed_from_u64(*seed).fill_bytes(&mut bytes);
                if dtype == DType::Bool {
                    bytes.iter_mut().for_each(|byte| *byte &= 1);
                }
                Some(bytes)
            }
            Fill::Normal(seed) => {
                let normal = ChaCha8Rng::seed_from_u64(*seed);
                Some(numbers(&mut StandardNormal.sample_iter(normal)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(dtype: DType, fill: &str, elements: usize) -> Vec<f64> {
        let bytes = Fill::parse(fill, dtype).unwrap().bytes(dtype, elements).unwrap();
        bytes.chunks(dtype.bytes()).map(|element| dtype.to_f64(element)).collect()
    }

    #[test]
    fn iota_is_the_index() {
        assert_eq!(values(DType::F16, "iota", 4), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(values(DType::U8, "iota", 257)[255..], [255.0, 0.0]);
    }

    #[test]
    fn random_numbers_depend_on_the_seed_alone() {
        let (first, second) = (values(DType::F32, "random(1)", 1000), values(DType::F32, "random(2)", 1000));
        assert_eq!(first, values(DType::F32, "random(1)", 1000));
        assert_ne!(first, second);
        assert!(first.iter().all(|number| (0.0..=1.0).contains(number)));
        assert!((first.iter().sum::<f64>() / 1000.0 - 0.5).abs() < 0.05);
        let normal = values(DType::Bf16, "normal", 1000);
        let square = normal.iter().map(|number| number * number).sum::<f64>() / 1000.0;
        assert!((square - 1.0).abs() < 0.2, "{square}");
        assert!(values(DType::Bool, "random", 64).iter().all(|value| [0.0, 1.0].contains(value)));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(Fill::parse("undef", DType::U8), Ok(Fill::Undefined));
        assert!(Fill::parse("normal", DType::U8).unwrap_err().contains("normal is for floats"));
        assert!(Fill::parse("random(x)", DType::F32).unwrap_err().contains("has no seed"));
        assert!(Fill::parse("1,x", DType::F32).is_err());
        assert!(Fill::parse("ones", DType::F32).unwrap_err().contains("iota, random(SEED)"));
    }
}
