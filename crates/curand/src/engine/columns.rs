//! XORWOW and MRG32k3a: many generators side by side, one behind the other in memory. Value `n` is from generator `n` modulo their number,
//! whatever that generator has given before. Normal numbers come in pairs, two values from one generator.

use rayon::prelude::*;

use super::mrg32k3a::Mrg32k3a;
use super::xorwow::Xorwow;
use super::{Cell, single};
use crate::distribution::{
    Wanted, box_muller, box_muller_bits, box_muller_double, box_muller_uniform, join, uniform, uniform53,
};

/// What a generator gives.
pub trait Source: Clone + Send + Sync {
    /// 32 bits.
    fn bits(&mut self) -> u32;
    /// A uniform number.
    fn uniform(&mut self) -> f32;
    /// The same as `f64`.
    fn uniform_double(&mut self) -> f64;
    /// Two normal numbers.
    fn normals(&mut self) -> (f32, f32);
    /// The same as `f64`.
    fn normals_double(&mut self) -> (f64, f64);
    /// Leaves out numbers of 32 bits.
    fn skip(&mut self, count: u64);
}

/// XORWOW.
pub type Xor = Xorwow;
/// MRG32k3a.
pub type Mrg = Mrg32k3a;

impl Source for Xorwow {
    fn bits(&mut self) -> u32 {
        self.next()
    }
    fn uniform(&mut self) -> f32 {
        uniform(self.next())
    }
    fn uniform_double(&mut self) -> f64 {
        let (x, y) = (self.next(), self.next());
        uniform53(join(x, y))
    }
    fn normals(&mut self) -> (f32, f32) {
        let (x, y) = (self.next(), self.next());
        box_muller(x, y)
    }
    fn normals_double(&mut self) -> (f64, f64) {
        let [x0, x1, y0, y1] = std::array::from_fn(|_| self.next());
        box_muller_bits(x0, x1, y0, y1)
    }
    fn skip(&mut self, count: u64) {
        Xorwow::skip(self, count);
    }
}

impl Source for Mrg32k3a {
    fn bits(&mut self) -> u32 {
        (f64::from(self.next()) * 1.000_000_048_662) as u32
    }
    fn uniform(&mut self) -> f32 {
        self.uniform_double() as f32
    }
    fn uniform_double(&mut self) -> f64 {
        f64::from(self.next()) * 2.328_306_549_837_829e-10
    }
    fn normals(&mut self) -> (f32, f32) {
        let (u, v) = (self.uniform(), self.uniform());
        box_muller_uniform(u, v)
    }
    fn normals_double(&mut self) -> (f64, f64) {
        let (u, v) = (self.uniform_double(), self.uniform_double());
        box_muller_double(u, 2.0 * v)
    }
    fn skip(&mut self, count: u64) {
        Mrg32k3a::skip(self, count);
    }
}

/// A generator, and the second of two normal numbers if only the first was wanted.
#[derive(Clone)]
struct Column<S> {
    source: S,
    kept: Option<f32>,
}

impl<S: Source> Column<S> {
    /// The next value, or the next two of normal numbers.
    fn item(&mut self, wanted: &Wanted) -> (u64, u64) {
        let source = &mut self.source;
        match wanted {
            Wanted::Bits => (u64::from(source.bits()), 0),
            Wanted::Uniform => (single(source.uniform()), 0),
            Wanted::UniformDouble => (source.uniform_double().to_bits(), 0),
            Wanted::Normal(shape) => {
                let (a, b) = source.normals();
                (single(shape.of(a)), single(shape.of(b)))
            }
            Wanted::NormalDouble(shape) => {
                let (a, b) = source.normals_double();
                (shape.of(a).to_bits(), shape.of(b).to_bits())
            }
            Wanted::Poisson(poisson) if poisson.is_normal() => {
                let normal = self.kept.take().unwrap_or_else(|| {
                    let (now, later) = source.normals();
                    self.kept = Some(later);
                    now
                });
                (u64::from(poisson.round(normal)), 0)
            }
            Wanted::Poisson(poisson) => (u64::from(poisson.value(source.bits())), 0),
        }
    }
}

/// The generators, and which one is next.
pub struct Columns<S> {
    columns: Vec<Column<S>>,
    next: usize,
}

/// How many generators a task has.
const TASK: usize = 128;

impl<S: Source> Columns<S> {
    /// Generators at their beginnings, `offset` values later.
    pub fn new(sources: Vec<S>, offset: u64) -> Columns<S> {
        let count = sources.len() as u64;
        let next = (offset % count) as usize;
        let column = |(index, mut source): (usize, S)| {
            source.skip(offset / count + u64::from(index < next));
            Column { source, kept: None }
        };
        Columns { columns: sources.into_par_iter().enumerate().map(column).collect(), next }
    }

    /// Fills in the next values.
    pub fn fill<T: Cell>(&mut self, wanted: &Wanted, values: &mut [T]) {
        let pairs = matches!(wanted, Wanted::Normal(_) | Wanted::NormalDouble(_));
        let size = if pairs { 2 } else { 1 };
        let (count, items, next) = (self.columns.len(), values.len() / size, self.next);
        // Generator `index` has the items from its first on, `count` apart.
        let first = |index: usize| (index + count - next) % count;
        let task = |(task, columns): (usize, &mut [Column<S>])| {
            let mut out: Vec<Vec<T>> = Vec::with_capacity(columns.len());
            for (i, column) in columns.iter_mut().enumerate() {
                let mut own = Vec::new();
                for _ in (first(TASK * task + i)..items).step_by(count) {
                    let (a, b) = column.item(wanted);
                    own.push(T::of(a));
                    if pairs {
                        own.push(T::of(b));
                    }
                }
                out.push(own);
            }
            out
        };
        let given: Vec<Vec<Vec<T>>> = self.columns.par_chunks_mut(TASK).enumerate().map(task).collect();
        values.par_chunks_mut(size * 1024).enumerate().for_each(|(chunk, out)| {
            for (i, out) in out.chunks_mut(size).enumerate() {
                let item = 1024 * chunk + i;
                let index = (next + item) % count;
                let turn = item / count;
                let own = &given[index / TASK][index % TASK];
                out.copy_from_slice(&own[size * turn..][..size]);
            }
        });
        self.next = (next + items) % count;
    }
}
