//! Products: D = epilogue(alpha op(A) op(B) + beta C).

use std::sync::{Mutex, PoisonError};

use linalg::{C32, C64, Dense, Kind, Matrix, Operation, Scalar, Vector, product};
use mathlib::{Error, Range, api};

use super::algorithm::Algorithm;
use super::descriptor::{self, EmulationDesc, MatmulDesc};
use super::epilogue::{Beside, Epilogue, largest};
use super::operand::{Loaded, Operand, Order, Place, Seen};
use crate::call::{Call, Coefficient, refuse};
use crate::declare::Ptr;
use crate::gemm::with_type;
use crate::operand::{kind, operation};
use crate::status::Status;

/// The types of a product.
#[derive(Clone, Copy, Debug)]
pub struct Types {
    /// Of `alpha` and `beta`.
    scale: Kind,
    /// That it is computed in.
    works: Kind,
    /// Of the bias, unless the program says it.
    bias: Kind,
    /// Whether factors are rounded to TF32.
    tf32: bool,
}

impl Types {
    /// The types for `cublasComputeType_t`, `cudaDataType` of `alpha`, and the types of A, B, C and D.
    ///
    /// # Errors
    /// If the library has no product of such types.
    pub fn of(compute: u32, scale: u32, [a, b, c, d]: [Kind; 4]) -> Result<Types, Status> {
        use Kind::{B16, E4M3, E5M2, I8, I32, R16, R32, R64};
        let scale = kind(scale)?;
        let of = |works, bias| Ok(Types { scale, works, bias, tf32: compute == 77 });
        let is_fp8 = |kind| matches!(kind, E4M3 | E5M2);
        match (compute, scale, a, b, c, d) {
            (64 | 65, R16, R16, R16, R16, R16) => of(R32, R16),
            (72 | 73, I32, I8, I8, I32, I32) => of(R64, I32),
            (72 | 73, R32, I8, I8, I8, I8) => of(R64, R32),
            (70 | 71 | 79, R64, R64, R64, R64, R64) => of(R64, R64),
            (70 | 71 | 79, Kind::C64, Kind::C64, Kind::C64, Kind::C64, Kind::C64) => of(Kind::C64, Kind::C64),
            (68 | 69 | 74 | 75 | 77 | 78, Kind::C32, Kind::C32, Kind::C32, Kind::C32, Kind::C32) => {
                of(Kind::C32, Kind::C32)
            }
            (68 | 69 | 74 | 75 | 77 | 78, R32, R32, R32, R32, R32) => of(R32, R32),
            (68 | 69, R32, R16, R16, _, R16 | R32) | (68 | 69, R32, B16, B16, _, B16 | R32) if c == d => {
                of(R32, d)
            }
            (68 | 69, R32, I8, I8, R32, R32) => of(R32, R32),
            (68 | 69, R32, _, _, R16 | B16 | R32, _) if is_fp8(a) && is_fp8(b) => match (c, d) {
                _ if a == E5M2 && b == E5M2 => Err(Status::NOT_SUPPORTED),
                (R16 | B16, E4M3 | E5M2) => of(R32, c),
                (R32, R32) => of(R32, B16),
                _ if c == d => of(R32, c),
                _ => Err(Status::NOT_SUPPORTED),
            },
            _ => Err(Status::NOT_SUPPORTED),
        }
    }
}

/// A product that the program describes, as far as that can be checked without its matrices.
#[derive(Clone, Copy)]
pub struct Program {
    desc: MatmulDesc,
    types: Types,
    operations: [Operation; 2],
    epilogue: Epilogue,
    /// A, B, C, D.
    places: [Place; 4],
    /// m, n, k.
    shape: [usize; 3],
    /// The types of the bias and of the matrix beside the result.
    beside: [Kind; 2],
}

impl Program {
    /// The product that objects describe, of A, B, C and D.
    ///
    /// # Errors
    /// If they don't fit together, or the library has no such product.
    pub fn read(object: Ptr, layouts: [Ptr; 4]) -> Result<Program, Status> {
        let desc: MatmulDesc = descriptor::read(object)?;
        let [a, b, c, d] = layouts.map(Place::read);
        let places = [a?, b?, c?, d?];
        let types = Types::of(desc.compute.into(), desc.scale.into(), places.map(|place| place.kind))?;
        let operations = [operation(desc.transa.into())?, operation(desc.transb.into())?];
        let shaped = |i: usize| match operations.get(i) {
            Some(operation) => operation.stored([places[i].rows, places[i].columns]),
            None => [places[i].rows, places[i].columns],
        };
        let ([m, k], [inner, n]) = (shaped(0), shaped(1));
        if inner != k || shaped(2) != [m, n] || shaped(3) != [m, n] {
            return Err(Status::INVALID_VALUE);
        }
        if places.iter().any(|place| place.count != places[3].count) || places[3].is_repeated() {
            return Err(Status::INVALID_VALUE);
        }
        let emulation: Ptr = std::ptr::with_exposed_provenance_mut(desc.emulation as usize);
        let reports_bits = !emulation.is_null() && descriptor::read::<EmulationDesc>(emulation)?.count != 0;
        let epilogue = Epilogue::of(desc.epilogue)?;
        let other = |number: i8, first| match u32::try_from(number) {
            Ok(number) => kind(number),
            Err(_) => Ok(first),
        };
        let beside = [other(desc.bias_kind, types.bias)?, other(desc.aux_kind, places[3].kind)?];
        let program = Program { desc, types, operations, epilogue, places, shape: [m, n, k], beside };
        if program.is_refused() || reports_bits { Err(Status::NOT_SUPPORTED) } else { Ok(program) }
    }

    /// Whether it asks for what the library does not have.
    fn is_refused(&self) -> bool {
        let desc = &self.desc;
        let is_complex = matches!(self.types.works, Kind::C32 | Kind::C64);
        let whole = [desc.c_scale_mode, desc.d_scale_mode, desc.aux_scale_mode, desc.d_out_scale_mode];
        desc.transc != 0
            || desc.fill_mode != 2
            || desc.pointer_mode > 4
            || [desc.alpha_stride, desc.beta_stride] != [0, 0]
            || whole != [0; 4]
            || [desc.a_scale_mode, desc.b_scale_mode].iter().any(|mode| !matches!(mode, 0 | 3))
            || (!self.epilogue.is_none() && (is_complex || self.types.scale == Kind::I32))
            || (self.epilogue.has_aux() && self.places[3].order != Order::Column)
    }
}

/// `alpha` or `beta`: the same for all elements, or one for each row.
#[derive(Clone)]
enum Factors<T> {
    Same(Coefficient<T>),
    Rows(Vec<Vector>),
}

impl<T: Scalar> Factors<T> {
    /// For each row of a product of the batch.
    fn rows(&self, call: Call, index: usize, rows: usize) -> Result<Vec<T>, Error> {
        match self {
            Factors::Same(scalar) => Ok(vec![scalar.get(call)?; rows]),
            Factors::Rows(vectors) => vectors[index].load(call.name),
        }
    }

    /// Whether it is known to be zero.
    fn is_zero(&self) -> bool {
        matches!(self, Factors::Same(Coefficient::Known(value)) if value.is_zero())
    }
}

/// `alpha` and `beta` of a product.
fn factors<T: Scalar>(call: &Call, program: &Program, pointers: [Ptr; 2]) -> Result<[Factors<T>; 2], Status> {
    let (desc, kind, rows) = (&program.desc, program.types.scale, program.shape[0]);
    let same = |on_device: bool, i: usize| {
        let call = Call { on_device, ..*call };
        call.scalar_of(["alpha", "beta"][i], pointers[i], kind).map(Factors::Same)
    };
    let by_rows = |i: usize| {
        let vector = |index: usize| {
            let step =
                (index as i64).wrapping_mul(desc.alpha_vector_stride).wrapping_mul(kind.bytes() as i64);
            let pointer = pointers[i].wrapping_byte_offset(step as isize);
            Vector::at(["alpha", "beta"][i], kind, pointer, rows, 1)
                .map_err(|error| refuse(call.name, &error))
        };
        (0..program.places[3].count).map(vector).collect::<Result<_, _>>().map(Factors::Rows)
    };
    Ok(match desc.pointer_mode {
        0 => [same(false, 0)?, same(false, 1)?],
        1 => [same(true, 0)?, same(true, 1)?],
        2 => [by_rows(0)?, by_rows(1)?],
        3 => [by_rows(0)?, Factors::Same(Coefficient::Known(T::default()))],
        _ => [by_rows(0)?, same(false, 1)?],
    })
}

/// Scales of 32 bits in device memory, or none: 1.
#[derive(Clone, Copy)]
struct Scale(Option<Range>);

impl Scale {
    fn at(call: &Call, what: &str, address: u64, count: usize) -> Result<Scale, Status> {
        if address == 0 {
            return Ok(Scale(None));
        }
        let pointer = std::ptr::with_exposed_provenance::<f32>(address as usize);
        let range = Range::of(pointer, count, what, || format!("{count} scales"));
        range.map(|range| Scale(Some(range))).map_err(|error| refuse(call.name, &error))
    }

    /// The scales of so many rows or columns.
    fn read<T: Scalar>(self, call: Call, count: usize) -> Result<Vec<T>, Error> {
        let Some(range) = self.0 else { return Ok(vec![T::ONE; count]) };
        let read: Vec<f32> = range.reach(call.name)?.read();
        Ok((0..count).map(|i| T::of(read[if read.len() == 1 { 0 } else { i }].into(), 0.0)).collect())
    }

    /// The one scale.
    fn one<T: Scalar>(self, call: Call) -> Result<T, Error> {
        Ok(self.read(call, 1)?[0])
    }

    /// Writes a magnitude.
    fn write(self, call: Call, value: f64) -> Result<(), Error> {
        match self.0 {
            Some(range) => {
                range.reach(call.name)?.write(0, value as f32);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// All that the work of a product needs.
struct Job<T> {
    call: Call,
    program: Program,
    factors: [Factors<T>; 2],
    /// A, B, C, D.
    operands: [Operand; 4],
    /// For each product of the batch.
    beside: Vec<Beside>,
    /// Of A, B, C, D and what lies beside the result.
    scales: [Scale; 5],
    /// Where the largest magnitudes of the result and of what lies beside it go.
    largest: [Scale; 2],
}

impl<T: Scalar> Job<T> {
    fn new(call: Call, program: Program, scalars: [Ptr; 2], pointers: [Ptr; 4]) -> Result<Job<T>, Status> {
        let (desc, [m, n, _]) = (&program.desc, program.shape);
        let factors = factors::<T>(&call, &program, scalars)?;
        let reads_factors = !factors[0].is_zero() || program.epilogue.sums_factors();
        let used = [reads_factors, reads_factors, !factors[1].is_zero(), true];
        let operand = |i: usize| program.places[i].at(&call, ["A", "B", "C", "D"][i], pointers[i], used[i]);
        let scale = |what, address, count| Scale::at(&call, what, address, count);
        let of = |mode: u8, count| if mode == 3 { count } else { 1 };
        let beside = |i| program.epilogue.at(&call, desc, [m, n], program.beside, i);
        Ok(Job {
            operands: [operand(0)?, operand(1)?, operand(2)?, operand(3)?],
            beside: (0..program.places[3].count).map(beside).collect::<Result<_, _>>()?,
            scales: [
                scale("the scale of A", desc.a_scale, of(desc.a_scale_mode, m))?,
                scale("the scale of B", desc.b_scale, of(desc.b_scale_mode, n))?,
                scale("the scale of C", desc.c_scale, 1)?,
                scale("the scale of D", desc.d_scale, 1)?,
                scale("the scale of the auxiliary matrix", desc.aux_scale, 1)?,
            ],
            largest: [
                scale("the largest magnitude of D", desc.amax_d, 1)?,
                scale("the largest magnitude of the auxiliary matrix", desc.aux_amax, 1)?,
            ],
            call,
            program,
            factors,
        })
    }

    /// All products of the batch.
    fn run(&self) -> Result<(), Error> {
        let count = self.program.places[3].count;
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| self.operands[i].matrices(self.call));
        let matrices = [a?, b?, c?, d?];
        let work = self.program.shape.iter().fold(count, |product, &size| product.saturating_mul(size));
        let failed = Mutex::new(None);
        let magnitudes = linalg::list(count, work, |i| {
            let done = self.one(i, [0, 1, 2, 3].map(|which| matrices[which][i]));
            done.unwrap_or_else(|error| {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                [0.0; 2]
            })
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        for (which, place) in self.largest.iter().enumerate() {
            let largest = magnitudes.iter().fold(0.0, |largest: f64, of| largest.max(of[which]));
            place.write(self.call, largest)?;
        }
        Ok(())
    }

    /// A product of the batch. Returns the largest magnitudes of the result and of what lies beside it, before they are scaled.
    fn one(&self, index: usize, [a, b, c, d]: [Matrix; 4]) -> Result<[f64; 2], Error> {
        let (call, program, beside) = (self.call, &self.program, &self.beside[index]);
        let [m, n, k] = program.shape;
        let alpha: Vec<T> = self.factors[0].rows(call, index, m)?;
        let beta: Vec<T> = self.factors[1].rows(call, index, m)?;
        let is_zero = |factors: &[T]| factors.iter().all(|factor| factor.is_zero());
        if program.epilogue.sums_factors() {
            let [left, right] = program.operations;
            let (a, b) = (Seen::new(call, program.places[0], a)?, Seen::new(call, program.places[1], b)?);
            let at = |seen: &Seen, operation: Operation, i: usize, j: usize| {
                operation.element::<T>(if operation.transposed { seen.read(j, i) } else { seen.read(i, j) })
            };
            beside.sum_factors(call, program.shape, |i, l| at(&a, left, i, l), |l, j| at(&b, right, l, j))?;
        }
        let sums = match is_zero(&alpha) || k == 0 {
            true => None,
            false => {
                let load = |place, matrix| Loaded::<T>::new(call, place, matrix, program.types.tf32);
                let (a, b) = (load(program.places[0], a)?, load(program.places[1], b)?);
                Some(product(program.shape, a.factor(program.operations[0]), b.factor(program.operations[1])))
            }
        };
        let rows: Vec<T> = self.scales[0].read(call, m)?;
        let columns: Vec<T> = self.scales[1].read(call, n)?;
        let c_scale: T = self.scales[2].one(call)?;
        let c = if is_zero(&beta) { None } else { Some(Seen::new(call, program.places[2], c)?) };
        let sum = |i, j| sums.as_ref().map_or(T::default(), |sums| sums.at::<T>(i, j));
        let mut result = Dense::new(m, n, |i, j| {
            let old = c.as_ref().filter(|_| !beta[i].is_zero()).map(|c| c.read::<T>(i, j));
            if program.types.scale == Kind::I32 {
                return integer(alpha[i], sum(i, j), beta[i], old.unwrap_or_default());
            }
            let new =
                if alpha[i].is_zero() { T::default() } else { alpha[i] * (rows[i] * columns[j]) * sum(i, j) };
            old.map_or(new, |old| new + beta[i] * c_scale * old)
        });
        let aux = beside.apply(call, &mut result, n, self.scales[4].one(call)?)?;
        let magnitude = if self.largest[0].0.is_some() { largest(&result.values) } else { 0.0 };
        if self.scales[3].0.is_some() {
            let scale: T = self.scales[3].one(call)?;
            result.values.iter_mut().for_each(|value| *value = *value * scale);
        }
        Seen::new(call, program.places[3], d)?.write(&result);
        Ok([magnitude, aux])
    }
}

/// alpha sum + beta old for integers, which wrap around.
fn integer<T: Scalar>(alpha: T, sum: T, beta: T, old: T) -> T {
    let [alpha, sum, beta, old] = [alpha, sum, beta, old].map(|number| number.wide()[0] as i64);
    let new = alpha.wrapping_mul(sum).wrapping_add(beta.wrapping_mul(old));
    T::of(f64::from(new as i32), 0.0)
}

api! { API: Status, name;
    /// D = epilogue(alpha op(A) op(B) + beta C), as objects describe it.
    cublasLtMatmul (handle: Ptr, product: Ptr, alpha: Ptr, a: Ptr, a_layout: Ptr, b: Ptr, b_layout: Ptr, beta: Ptr, c: Ptr, c_layout: Ptr, d: Ptr, d_layout: Ptr, algorithm: Ptr, _workspace: Ptr, _bytes: usize, stream: Ptr) {
        let call = Call::light(name, handle, stream, false)?;
        let program = Program::read(product, [a_layout, b_layout, c_layout, d_layout])?;
        if !algorithm.is_null() {
            descriptor::read::<Algorithm>(algorithm)?;
        }
        if program.shape[0] == 0 || program.shape[1] == 0 || program.places[3].count == 0 {
            return Ok(());
        }
        with_type!(program.types.works, W => {
            let job = Job::<W>::new(call, program, [alpha, beta], [a, b, c, d])?;
            call.submit(move || job.run())
        })
    }
}
