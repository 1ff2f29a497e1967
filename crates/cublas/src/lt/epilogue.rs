//! What is done to the result of a product: a bias, ReLU or GELU, their gradients, and the sums that are gradients of a bias.

use linalg::{Dense, Kind, Scalar, Vector, range};
use mathlib::{Error, Memory, Range};

use super::descriptor::MatmulDesc;
use crate::call::{Call, refuse};
use crate::declare::Ptr;
use crate::status::Status;

/// The function that is applied to each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activation {
    None,
    Relu,
    Gelu,
    /// Multiplies by the derivative of ReLU, whose mask is beside it.
    ReluGradient,
    /// Multiplies by the derivative of GELU where its argument was, which is beside it.
    GeluGradient,
}

/// What the bias is: added, or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bias {
    None,
    /// Added to each column.
    Added,
    /// The sums of the rows of the result.
    OfResult,
    /// The sums of the rows of A.
    OfA,
    /// The sums of the columns of B.
    OfB,
}

/// `cublasLtEpilogue_t`.
#[derive(Clone, Copy, Debug)]
pub struct Epilogue {
    activation: Activation,
    bias: Bias,
    /// Whether the mask or the argument is written or read.
    has_aux: bool,
}

impl Epilogue {
    /// The epilogue with this number.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(number: u16) -> Result<Epilogue, Status> {
        use Activation::{Gelu, GeluGradient, None, Relu, ReluGradient};
        let (activation, bias) = match number {
            1 => (None, Bias::None),
            2 | 130 => (Relu, Bias::None),
            4 => (None, Bias::Added),
            6 | 134 => (Relu, Bias::Added),
            136 => (ReluGradient, Bias::None),
            152 => (ReluGradient, Bias::OfResult),
            32 | 160 => (Gelu, Bias::None),
            36 | 164 => (Gelu, Bias::Added),
            192 => (GeluGradient, Bias::None),
            208 => (GeluGradient, Bias::OfResult),
            256 => (None, Bias::OfA),
            512 => (None, Bias::OfB),
            _ => return Err(Status::INVALID_VALUE),
        };
        Ok(Epilogue { activation, bias, has_aux: number & 128 != 0 })
    }

    /// Whether it changes nothing.
    pub fn is_none(self) -> bool {
        self.activation == Activation::None && self.bias == Bias::None
    }

    /// Whether there is a matrix beside the result.
    pub fn has_aux(self) -> bool {
        self.has_aux
    }

    /// Whether sums of A or B are wanted, so that these are read in any case.
    pub fn sums_factors(self) -> bool {
        matches!(self.bias, Bias::OfA | Bias::OfB)
    }

    /// The memory that it needs for one product of a batch.
    ///
    /// # Errors
    /// If that is not allocated.
    pub fn at(
        self,
        call: &Call,
        desc: &MatmulDesc,
        [m, n]: [usize; 2],
        kinds: [Kind; 2],
        index: usize,
    ) -> Result<Beside, Status> {
        let [bias_kind, aux_kind] = kinds;
        let moved = |address: u64, stride: i64, bits: i64| {
            let bytes = (index as i64).wrapping_mul(stride).wrapping_mul(bits) / 8;
            std::ptr::with_exposed_provenance_mut::<std::ffi::c_void>(
                address.wrapping_add_signed(bytes) as usize
            )
        };
        let bits = |kind: Kind| kind.bytes() as i64 * 8;
        let bias = match self.bias {
            Bias::None => None,
            _ => {
                let place = moved(desc.bias, desc.bias_stride, bits(bias_kind));
                let count = if self.bias == Bias::OfB { n } else { m };
                let vector = Vector::at("the bias", bias_kind, place, count, 1);
                Some(vector.map_err(|error| refuse(call.name, &error))?)
            }
        };
        let aux = match (self.has_aux, self.activation) {
            (false, _) => None,
            (true, Activation::Relu | Activation::ReluGradient) => {
                let ld = mask_ld(desc.aux_ld, m)?;
                let place = moved(desc.aux, desc.aux_stride, 1);
                Some(Aux::new(call, place, Kind::I8, [m.div_ceil(8), n], ld / 8)?)
            }
            (true, _) => {
                let ld = crate::call::leading(desc.aux_ld, m)?;
                let place = moved(desc.aux, desc.aux_stride, bits(aux_kind));
                Some(Aux::new(call, place, aux_kind, [m, n], ld)?)
            }
        };
        Ok(Beside { epilogue: self, bias, aux })
    }
}

/// The leading dimension of a mask, in bits.
fn mask_ld(ld: i64, rows: usize) -> Result<usize, Status> {
    let ld = crate::call::leading(ld, rows)?;
    if ld.is_multiple_of(128) { Ok(ld) } else { Err(Status::INVALID_VALUE) }
}

/// The matrix beside the result.
#[derive(Clone, Copy)]
struct Aux {
    range: Range,
    kind: Kind,
    ld: usize,
}

impl Aux {
    fn new(
        call: &Call,
        place: Ptr,
        kind: Kind,
        [rows, columns]: [usize; 2],
        ld: usize,
    ) -> Result<Aux, Status> {
        let count = match rows.min(columns) {
            0 => 0,
            _ => (columns - 1).saturating_mul(ld).saturating_add(rows),
        };
        let shape = || format!("{columns} columns of {rows} elements of {} bytes, ld {ld}", kind.bytes());
        let range = range(place, kind, count, "the epilogue's auxiliary matrix", &shape);
        Ok(Aux { range: range.map_err(|error| refuse(call.name, &error))?, kind, ld })
    }
}

/// An epilogue and its memory.
#[derive(Clone, Copy)]
pub struct Beside {
    epilogue: Epilogue,
    bias: Option<Vector>,
    aux: Option<Aux>,
}

impl Beside {
    /// Changes the result of a product. The values that are written beside it are scaled by `scale`; returns the largest of their
    /// magnitudes before that.
    ///
    /// # Errors
    /// If memory has gone.
    pub fn apply<T: Scalar>(
        &self,
        call: Call,
        result: &mut Dense<T>,
        columns: usize,
        scale: T,
    ) -> Result<f64, Error> {
        let rows = result.rows;
        let mut largest = 0.0;
        if let (Bias::Added, Some(bias)) = (self.epilogue.bias, &self.bias) {
            let bias: Vec<T> = bias.load(call.name)?;
            for column in result.values.chunks_exact_mut(rows.max(1)) {
                column.iter_mut().zip(&bias).for_each(|(value, &bias)| *value = *value + bias);
            }
        }
        let memory = self.aux.map(|aux| aux.range.reach(call.name)).transpose()?;
        if let (Some(aux), Some(memory)) = (self.aux, &memory) {
            match self.epilogue.activation {
                Activation::Relu => write_mask(aux, memory, result, columns),
                Activation::Gelu => largest = write_arguments(aux, memory, result, columns, scale),
                _ => {}
            }
        }
        if self.epilogue.activation != Activation::None {
            let start: *const u8 = memory.as_ref().map_or(std::ptr::null(), |memory| memory.pointer::<u8>());
            for (index, value) in result.values.iter_mut().enumerate() {
                let (i, j) = (index % rows, index / rows);
                *value = match (self.epilogue.activation, self.aux) {
                    (Activation::Relu, _) => relu(*value),
                    (Activation::Gelu, _) => T::of(gelu(value.wide()[0]), 0.0),
                    (Activation::ReluGradient, Some(aux)) => {
                        // SAFETY: the range has this byte.
                        let byte = unsafe { start.add(i / 8 + j * aux.ld).read() };
                        if byte >> (i % 8) & 1 == 1 { *value } else { T::default() }
                    }
                    (Activation::GeluGradient, Some(aux)) => {
                        // SAFETY: the range has this element.
                        let at: T = unsafe { linalg::read(aux.kind, start, (i + j * aux.ld) as isize) };
                        *value * T::of(gelu_derivative(at.wide()[0]), 0.0)
                    }
                    _ => *value,
                };
            }
        }
        if let (Bias::OfResult, Some(bias)) = (self.epilogue.bias, &self.bias) {
            bias.store(call.name, &sums(rows, columns, |i, j| result.at(i, j)))?;
        }
        Ok(largest)
    }

    /// Writes the sums of a factor, if they are wanted: of the rows of A (m x k), or of the columns of B (k x n).
    ///
    /// # Errors
    /// If memory has gone.
    pub fn sum_factors<T: Scalar>(
        &self,
        call: Call,
        [m, n, k]: [usize; 3],
        a: impl Fn(usize, usize) -> T,
        b: impl Fn(usize, usize) -> T,
    ) -> Result<(), Error> {
        match (self.epilogue.bias, &self.bias) {
            (Bias::OfA, Some(bias)) => bias.store(call.name, &sums(m, k, a)),
            (Bias::OfB, Some(bias)) => bias.store(call.name, &sums(n, k, |j, l| b(l, j))),
            _ => Ok(()),
        }
    }
}

/// The sums of rows, in ascending order of columns.
fn sums<T: Scalar>(rows: usize, columns: usize, at: impl Fn(usize, usize) -> T) -> Vec<T> {
    (0..rows).map(|i| (0..columns).fold(T::default(), |sum, j| sum + at(i, j))).collect()
}

/// Writes where elements are positive: a bit each, by columns, the lowest bit of a byte first.
fn write_mask<T: Scalar>(aux: Aux, memory: &Memory, result: &Dense<T>, columns: usize) {
    let start: *mut u8 = memory.pointer();
    let bytes = result.rows.div_ceil(8);
    for j in 0..columns {
        for byte in 0..bytes {
            let bits = (byte * 8..result.rows.min(byte * 8 + 8))
                .filter(|&i| result.at(i, j).wide()[0] > 0.0)
                .fold(0, |bits, i| bits | 1 << (i % 8));
            // SAFETY: the range has this byte.
            unsafe { start.add(byte + j * aux.ld).write(bits) };
        }
        memory.wrote::<u8>(j * aux.ld, bytes);
    }
}

/// Writes the arguments of a function, scaled. Returns the largest magnitude.
fn write_arguments<T: Scalar>(aux: Aux, memory: &Memory, result: &Dense<T>, columns: usize, scale: T) -> f64 {
    let (start, bytes) = (memory.pointer::<u8>(), aux.kind.bytes());
    for j in 0..columns {
        for i in 0..result.rows {
            // SAFETY: the range has this element.
            unsafe { linalg::write(aux.kind, start, (i + j * aux.ld) as isize, result.at(i, j) * scale) };
        }
        memory.wrote::<u8>(j * aux.ld * bytes, result.rows * bytes);
    }
    largest(&result.values)
}

/// The largest magnitude; NaN counts for nothing.
pub fn largest<T: Scalar>(values: &[T]) -> f64 {
    values.iter().fold(0.0, |largest: f64, value| largest.max(value.wide()[0].abs()))
}

/// max(x, 0). NaN stays.
fn relu<T: Scalar>(value: T) -> T {
    if value.wide()[0] < 0.0 { T::default() } else { value }
}

/// sqrt(2 / pi).
const SLOPE: f64 = 0.797_884_560_802_865_4;
/// The weight of the cube.
const CUBE: f64 = 0.044_715;

/// GELU as cuBLASLt has it: Hendrycks and Gimpel's approximation by a hyperbolic tangent.
fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + libm::tanh(SLOPE * (x + CUBE * x * x * x)))
}

/// Its derivative.
fn gelu_derivative(x: f64) -> f64 {
    let tanh = libm::tanh(SLOPE * (x + CUBE * x * x * x));
    0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * SLOPE * (1.0 + 3.0 * CUBE * x * x)
}
