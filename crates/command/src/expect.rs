//! `--expect I=FILE`: compares the results of a kernel with those that it should have.

use std::ops::Range;

use serde::Serialize;

use super::arguments::{Arguments, Place};
use super::array::{DType, HostArray};
use super::observe::Writer;
use super::report::Failure;
use super::session::Session;
use super::spec::{Spec, Value};

/// Differences that are shown.
const SHOWN: usize = 10;

/// `--expect I=FILE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The argument.
    place: Place,
    /// What its array should hold.
    spec: Spec,
    /// The same as written.
    text: String,
}

impl std::str::FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Expectation, String> {
        let (index, text) = text.split_once('=').ok_or("write it as I=FILE: 2=expected.npy")?;
        let is_file =
            [".npy", ".npz", ".bin"].iter().any(|ending| text.contains(ending)) && !text.starts_with('@');
        let spec = if is_file { format!("@{text}").parse()? } else { text.parse()? };
        match spec {
            Spec::File { .. } | Spec::New { .. } => {
                Ok(Expectation { place: index.parse()?, spec, text: text.to_owned() })
            }
            _ => Err(format!("`{text}` is no array: 2=expected.npy, 2=expected.bin:f16, 2=f32[64]=1")),
        }
    }
}

/// How far a result may be from the expected one: at most `absolute + relative * |expected|`, as for `numpy.allclose`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tolerance {
    /// `--rtol`
    pub relative: f64,
    /// `--atol`
    pub absolute: f64,
}

/// An array that a kernel should compute.
pub struct Expected {
    place: Place,
    text: String,
    array: HostArray,
}

impl Expectation {
    /// The argument.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Reads the expected array.
    ///
    /// # Errors
    /// When it cannot be read, the argument is no array, or has another number of elements.
    pub fn resolve(&self, values: &Arguments) -> Result<Expected, Failure> {
        let place = self.place;
        let fail = |failure: Failure| failure.context(format_args!("--expect {place}"));
        let value = values.param(place.index).and_then(|param| values.values[param].at(place.field));
        let Some((dtype, shape)) = value.and_then(Value::array) else {
            return Err(fail(Failure::usage(format!("argument {place} is no array"))));
        };
        let elements: u64 = shape.iter().product();
        let mut array = match self.spec.resolve_array().map_err(fail)? {
            Value::Array(array) => array,
            Value::Zeros { dtype, shape, .. } => {
                let bytes = shape.iter().product::<u64>() as usize * dtype.bytes();
                HostArray { dtype, shape, data: vec![0; bytes] }
            }
            _ => return Err(fail(Failure::usage("it is no array"))),
        };
        if array.elements() != elements {
            let (text, there) = (&self.text, array.elements());
            let message = format!("argument {place} has {elements} elements, and `{text}` has {there}");
            return Err(fail(Failure::bad(message)));
        }
        // numpy saves bf16 as uint16.
        if array.dtype.npy() == dtype.npy() {
            array.dtype = dtype;
        }
        array.shape = shape.to_vec();
        Ok(Expected { place, text: self.text.clone(), array })
    }
}

/// What a comparison found.
#[derive(Serialize)]
pub struct Comparison {
    /// The argument.
    argument: String,
    elements: u64,
    /// Elements that differ.
    different: u64,
    /// The largest difference; infinite (`null` in JSON) if a NaN or an infinity is on one side alone.
    largest_difference: f64,
    /// The first differences.
    first: Vec<Difference>,
    #[serde(skip)]
    expected_of: String,
    #[serde(skip)]
    place: Place,
    /// The instructions that wrote the first differences.
    #[serde(skip)]
    written_by: Vec<String>,
}

/// An element that differs.
#[derive(Serialize)]
struct Difference {
    index: Vec<u64>,
    got: String,
    got_bits: String,
    expected: String,
    expected_bits: String,
    /// Who wrote it last, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    written_by: Option<serde_json::Value>,
    #[serde(skip)]
    writer: Option<String>,
    /// Its index in C order.
    #[serde(skip)]
    element: u64,
}

impl Expected {
    /// The argument.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Compares what the kernel computed.
    pub fn compare(&self, got: &HostArray, tolerance: Tolerance) -> Comparison {
        let wanted = &self.array;
        let mut comparison = Comparison {
            argument: self.place.to_string(),
            elements: got.elements(),
            different: 0,
            largest_difference: 0.0,
            first: Vec::new(),
            expected_of: self.text.clone(),
            place: self.place,
            written_by: Vec::new(),
        };
        let elements = got.data.chunks(got.dtype.bytes()).zip(wanted.data.chunks(wanted.dtype.bytes()));
        for (index, (a, b)) in elements.enumerate() {
            let (x, y) = (got.dtype.to_f64(a), wanted.dtype.to_f64(b));
            if is_close(got.dtype, (a, x), wanted.dtype, (b, y), tolerance) {
                continue;
            }
            comparison.different += 1;
            let distance = if x.is_finite() && y.is_finite() { (x - y).abs() } else { f64::INFINITY };
            comparison.largest_difference = comparison.largest_difference.max(distance);
            if comparison.first.len() < SHOWN {
                comparison.first.push(Difference {
                    index: got.index(index as u64),
                    got: got.dtype.show(a),
                    got_bits: got.dtype.show_bits(a),
                    expected: wanted.dtype.show(b),
                    expected_bits: wanted.dtype.show_bits(b),
                    written_by: None,
                    writer: None,
                    element: index as u64,
                });
            }
        }
        comparison
    }
}

/// Whether a result is as expected: the same bits, or a number within the tolerance. Without a tolerance, elements of
/// the same type must have the same bits.
fn is_close(
    got: DType,
    (got_bytes, x): (&[u8], f64),
    wanted: DType,
    (wanted_bytes, y): (&[u8], f64),
    tolerance: Tolerance,
) -> bool {
    if got == wanted {
        let is_exact = tolerance.relative == 0.0 && tolerance.absolute == 0.0;
        if got_bytes == wanted_bytes || is_exact {
            return got_bytes == wanted_bytes;
        }
    }
    x == y || x.is_nan() && y.is_nan() || {
        let is_finite = x.is_finite() && y.is_finite();
        is_finite && (x - y).abs() <= tolerance.absolute + tolerance.relative * y.abs()
    }
}

impl Comparison {
    /// The addresses of the differences that are shown.
    pub fn addresses(&self, values: &Arguments, session: &Session) -> Vec<Range<u64>> {
        let Some((dtype, of)) = session.addresses(values, self.place) else { return Vec::new() };
        let bytes = dtype.bytes() as u64;
        let range = |start: u64| start..start + bytes;
        self.first.iter().map(|difference| range(of.start + difference.element * bytes)).collect()
    }

    /// Says who wrote the differences that are shown: one entry for each, with the number of writes and the last one.
    pub fn add_writers<'a>(&mut self, writers: impl Iterator<Item = &'a (u64, Vec<Writer>)>) {
        for (difference, (count, writes)) in self.first.iter_mut().zip(writers) {
            let Some(last) = writes.last() else {
                difference.writer = Some("nobody".to_owned());
                continue;
            };
            difference.writer = Some(match count {
                1 => last.who.clone(),
                count => format!("{}, the last of {count} writes", last.who),
            });
            difference.written_by = Some(last.json.clone());
            if !self.written_by.contains(&last.instruction) {
                self.written_by.push(last.instruction.clone());
            }
        }
    }

    /// Whether there are differences.
    pub fn differs(&self) -> bool {
        self.different > 0
    }

    /// What to say if there are differences.
    pub fn message(&self) -> Option<String> {
        if self.different == 0 {
            return None;
        }
        let Comparison { argument, elements, different, expected_of, .. } = self;
        let differ = if *different == 1 { "differs" } else { "differ" };
        let mut text = format!(
            "argument {argument} is not as expected: {different} of {elements} elements {differ} from {expected_of}"
        );
        if self.largest_difference.is_finite() {
            text += &format!(", by up to {:.2e}", self.largest_difference);
        }
        for Difference { index, got, got_bits, expected, expected_bits, writer, .. } in &self.first {
            let index: Vec<String> = index.iter().map(u64::to_string).collect();
            text += &format!(
                "\n    {argument}[{}] = {got} ({got_bits}), expected {expected} ({expected_bits})",
                index.join(",")
            );
            if let Some(writer) = writer {
                text += &format!(", by {writer}");
            }
        }
        if *different > self.first.len() as u64 {
            text += &format!("\n    and {} more", different - self.first.len() as u64);
        }
        for instruction in &self.written_by {
            text += &format!("\n    written by {instruction}");
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(got: &[f32], wanted: &[f32], tolerance: Tolerance) -> Comparison {
        let array = |values: &[f32]| HostArray {
            dtype: DType::F32,
            shape: vec![1, values.len() as u64],
            data: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        };
        let place = Place { index: 2, field: None };
        Expected { place, text: "e.npy".into(), array: array(wanted) }.compare(&array(got), tolerance)
    }

    #[test]
    fn without_tolerance_bits_count() {
        let none = Tolerance::default();
        assert!(compare(&[1.0, f32::NAN], &[1.0, f32::NAN], none).message().is_none());
        let message = compare(&[0.0, 1.0, 2.5], &[-0.0, 1.0, 2.0], none).message().unwrap();
        assert!(
            message.starts_with(
                "argument 2 is not as expected: 2 of 3 elements differ from e.npy, by up to 5.00e-1\n"
            ),
            "{message}"
        );
        assert!(message.contains("2[0,0] = 0 (0x00000000), expected -0 (0x80000000)\n"), "{message}");
        assert!(message.ends_with("2[0,2] = 2.5 (0x40200000), expected 2 (0x40000000)"), "{message}");
    }

    #[test]
    fn a_tolerance_is_that_of_numpy() {
        let within = |relative, absolute, got, wanted| {
            compare(&[got], &[wanted], Tolerance { relative, absolute }).different == 0
        };
        assert!(within(0.1, 0.0, 1.1, 1.0001) && !within(0.1, 0.0, 1.2, 1.0));
        assert!(within(0.0, 0.5, -0.25, 0.25) && !within(0.0, 0.5, -0.5, 0.25));
        assert!(within(0.1, 0.0, -f32::NAN, f32::NAN) && within(0.1, 0.0, f32::INFINITY, f32::INFINITY));
        assert!(!within(0.1, 0.0, f32::INFINITY, 1.0) && !within(1e9, 1e9, f32::NAN, 1.0));
        assert!(!within(1e9, 0.0, f32::NEG_INFINITY, f32::INFINITY));
    }

    #[test]
    fn many_differences_are_counted() {
        let message = compare(&[0.0; 20], &[f32::NAN; 20], Tolerance::default()).message().unwrap();
        assert!(message.ends_with("and 10 more") && !message.contains("by up to"), "{message}");
    }
}
