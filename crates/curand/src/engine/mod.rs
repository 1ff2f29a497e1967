//! Sequences of random numbers, and how they lie in memory: no memory of devices, no C.
//!
//! A sequence goes on from call to call. Its numbers do not depend on how many threads compute them, nor on how calls divide them.

mod columns;
mod mrg32k3a;
mod mt19937;
mod mtgp32;
mod philox;
pub mod sobol;
mod xorwow;

use rayon::prelude::*;

use crate::distribution::{
    Wanted, box_muller, box_muller_bits, join, normal, normal_double, normal_double64, uniform,
    uniform_double, uniform53,
};
use crate::kind::{Kind, Ordering};
use columns::{Columns, Mrg, Xor};

/// A value in memory, by its bits.
pub trait Cell: Copy + Default + Send + Sync + 'static {
    /// The value with these bits.
    fn of(bits: u64) -> Self;
}

impl Cell for u32 {
    fn of(bits: u64) -> u32 {
        bits as u32
    }
}

impl Cell for u64 {
    fn of(bits: u64) -> u64 {
        bits
    }
}

/// The bits of a value.
pub(crate) fn single(value: f32) -> u64 {
    u64::from(value.to_bits())
}

/// How many values are computed before they are given out.
const TILE: usize = 1 << 19;

/// What makes a sequence.
pub struct Settings {
    /// Which sequence.
    pub kind: Kind,
    /// How it lies in memory.
    pub ordering: Ordering,
    /// The seed.
    pub seed: u64,
    /// How many numbers are left out.
    pub offset: u64,
    /// Of quasi-random sequences, how many dimensions.
    pub dimensions: u32,
}

/// A sequence, and how far it has been used.
pub enum Engine {
    /// Many xorshift generators side by side.
    Xorwow(Columns<Xor>),
    /// The same with MRG32k3a.
    Mrg32k3a(Columns<Mrg>),
    /// Philox4x32-10.
    Philox(Box<Philox>),
    /// MT19937.
    Mt19937(mt19937::Mt19937, u64),
    /// MTGP32.
    Mtgp32(Vec<mtgp32::Mtgp32>, u64),
    /// Sobol sequences of 32 or 64 bits: the dimensions, and the number of the next point.
    Sobol(bool, u32, u64),
}

impl Engine {
    /// A sequence from its beginning.
    pub fn new(settings: &Settings) -> Engine {
        let Settings { kind, ordering, seed, offset, dimensions } = *settings;
        match kind {
            Kind::Xorwow => {
                let seeded = ordering == Ordering::Seeded;
                Engine::Xorwow(Columns::new(xorwow::Xorwow::columns(seed, 4096, seeded), offset))
            }
            Kind::Mrg32k3a => {
                let count = if ordering == Ordering::Legacy { 4096 } else { 81_920 };
                Engine::Mrg32k3a(Columns::new(mrg32k3a::Mrg32k3a::columns(seed, count), offset))
            }
            Kind::Philox => Engine::Philox(Box::new(Philox::new(seed, offset))),
            Kind::Mt19937 => Engine::Mt19937(mt19937::Mt19937::new(seed), 0),
            Kind::Mtgp32 => {
                let count = if ordering == Ordering::Legacy { 64 } else { 192 };
                let seed = seed as u32 ^ (seed >> 32) as u32;
                let generator = |i: u32| mtgp32::Mtgp32::new(i as usize, seed.wrapping_add(i + 1));
                Engine::Mtgp32((0..count).map(generator).collect(), 0)
            }
            Kind::Sobol32 | Kind::Sobol64 => Engine::Sobol(kind == Kind::Sobol64, dimensions, offset),
        }
    }

    /// Gives the next `count` values in pieces, each with its place. Normal values of sequences that make two at a time must be even in
    /// number, and those of quasi-random sequences a multiple of their dimensions.
    ///
    /// # Errors
    /// The first of `give`.
    pub fn generate<T: Cell, E>(
        &mut self,
        wanted: &Wanted,
        count: usize,
        mut give: impl FnMut(usize, &[T]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut values = vec![T::default(); count.min(TILE)];
        if let Engine::Sobol(long, dimensions, next) = self {
            let each = count / (*dimensions as usize).max(1);
            for dimension in 0..*dimensions as usize {
                for from in (0..each).step_by(TILE) {
                    let values = &mut values[..TILE.min(each - from)];
                    let first = next.wrapping_add(from as u64);
                    points(*long, dimension, first, wanted, values);
                    give(dimension * each + from, values)?;
                }
            }
            *next = next.wrapping_add(each as u64);
            return Ok(());
        }
        for from in (0..count).step_by(TILE) {
            let values = &mut values[..TILE.min(count - from)];
            match self {
                Engine::Xorwow(columns) => columns.fill(wanted, values),
                Engine::Mrg32k3a(columns) => columns.fill(wanted, values),
                Engine::Philox(philox) => philox.fill(wanted, values),
                Engine::Mt19937(twister, next) => {
                    let mut bits = vec![0; values.len()];
                    twister.fill(*next, &mut bits);
                    *next += bits.len() as u64;
                    convert(&bits, values, |x| twisted(wanted, x));
                }
                Engine::Mtgp32(generators, next) => {
                    let bits = mtgp32::fill(generators, *next, values.len());
                    *next += bits.len() as u64;
                    convert(&bits, values, |x| graphic(wanted, x));
                }
                Engine::Sobol(..) => {}
            }
            give(from, values)?;
        }
        Ok(())
    }
}

/// Values from one number each.
fn convert<T: Cell>(bits: &[u32], values: &mut [T], value: impl Fn(u32) -> u64 + Sync) {
    values.par_iter_mut().with_min_len(1024).zip(bits).for_each(|(out, &x)| *out = T::of(value(x)));
}

/// What 32 bits become.
fn inverted(wanted: &Wanted, x: u32) -> u64 {
    match wanted {
        Wanted::Bits => u64::from(x),
        Wanted::Uniform => single(uniform(x)),
        Wanted::UniformDouble => uniform_double(x).to_bits(),
        Wanted::Normal(shape) => single(shape.of(normal(x))),
        Wanted::NormalDouble(shape) => shape.of(normal_double(x)).to_bits(),
        Wanted::Poisson(poisson) if poisson.is_normal() => u64::from(poisson.round(normal(x))),
        Wanted::Poisson(poisson) => u64::from(poisson.value(x)),
    }
}

/// What 32 bits of MT19937 become: uniform numbers are midpoints, rounded once.
fn twisted(wanted: &Wanted, x: u32) -> u64 {
    let midpoint = (f64::from(x) + 0.5) / 4_294_967_296.0;
    match wanted {
        Wanted::Uniform => single(midpoint as f32),
        Wanted::UniformDouble => midpoint.to_bits(),
        wanted => inverted(wanted, x),
    }
}

/// What 32 bits of MTGP32 become: normal numbers have the precision of `f32` in any case.
fn graphic(wanted: &Wanted, x: u32) -> u64 {
    match wanted {
        Wanted::NormalDouble(shape) => shape.of(f64::from(normal(x))).to_bits(),
        wanted => inverted(wanted, x),
    }
}

/// What points of a dimension become.
fn points<T: Cell>(long: bool, dimension: usize, first: u64, wanted: &Wanted, values: &mut [T]) {
    let value = |x: u64| {
        let upper = (x >> 32) as u32;
        match wanted {
            _ if !long => inverted(wanted, upper),
            Wanted::Bits => x,
            Wanted::UniformDouble => uniform53(x >> 11).to_bits(),
            Wanted::NormalDouble(shape) => shape.of(normal_double64(x)).to_bits(),
            Wanted::Poisson(poisson) if !poisson.is_normal() => u64::from(poisson.at(uniform53(x >> 11))),
            wanted => inverted(wanted, upper),
        }
    };
    let directions = &sobol::directions()[dimension];
    // Sequences of 32 bits begin again after 2^32 points.
    let number = |number: u64| if long { number } else { number & 0xffff_ffff };
    values.par_chunks_mut(4096).enumerate().for_each(|(chunk, out)| {
        let mut at = number(first.wrapping_add(4096 * chunk as u64));
        let mut point = sobol::point(dimension, at);
        for out in out {
            *out = T::of(value(point));
            let next = number(at.wrapping_add(1));
            point = if next == 0 { 0 } else { point ^ directions[at.trailing_ones() as usize] };
            at = next;
        }
    });
}

/// Threads of Philox side by side: each gives four values in turn, of one or two blocks of four numbers.
const THREADS: usize = 65_536;

/// Philox4x32-10: thread `t` has the numbers of subsequence `t`.
pub struct Philox {
    key: [u32; 2],
    /// Of each thread, how many blocks it has used up.
    blocks: Vec<u64>,
    /// The thread and the value of four that come next.
    next: usize,
}

impl Philox {
    fn new(seed: u64, offset: u64) -> Philox {
        let row = 4 * THREADS as u64;
        let (blocks, next) = (offset / row, (offset % row) as usize);
        let block = |thread| blocks + u64::from(thread < next / 4);
        Philox { key: [seed as u32, (seed >> 32) as u32], blocks: (0..THREADS).map(block).collect(), next }
    }

    fn fill<T: Cell>(&mut self, wanted: &Wanted, values: &mut [T]) {
        let double = matches!(wanted, Wanted::UniformDouble | Wanted::NormalDouble(_));
        let mut rest = values;
        while !rest.is_empty() {
            // As far as the last thread, so that no thread has more than one turn.
            let count = rest.len().min(4 * THREADS - self.next);
            let (now, later) = rest.split_at_mut(count);
            rest = later;
            let (first, skip) = (self.next / 4, self.next % 4);
            let head = (4 - skip).min(count);
            let (begun, whole) = now.split_at_mut(if skip > 0 { head } else { 0 });
            let turn = |thread: usize| self.turn(wanted, double, thread);
            if !begun.is_empty() {
                let four = turn(first);
                begun.iter_mut().zip(&four[skip..]).for_each(|(out, &bits)| *out = T::of(bits));
            }
            let first_whole = first + usize::from(skip > 0);
            whole.par_chunks_mut(4).with_min_len(256).enumerate().for_each(|(i, out)| {
                out.iter_mut().zip(turn(first_whole + i)).for_each(|(out, bits)| *out = T::of(bits));
            });
            self.next += count;
            let used = if double { 2 } else { 1 };
            self.blocks[first..self.next / 4].iter_mut().for_each(|blocks| *blocks += used);
            self.next %= 4 * THREADS;
        }
    }

    /// A block of a thread.
    fn block(&self, thread: usize, number: u64) -> [u32; 4] {
        philox::philox4x32_10([number as u32, (number >> 32) as u32, thread as u32, 0], self.key)
    }

    /// The four values of a thread's turn.
    fn turn(&self, wanted: &Wanted, double: bool, thread: usize) -> [u64; 4] {
        let blocks = self.blocks[thread];
        let [a, b, c, d] = self.block(thread, blocks);
        let [e, f, g, h] = if double { self.block(thread, blocks.wrapping_add(1)) } else { [0; 4] };
        let normals = || {
            let (first, second) = (box_muller(a, b), box_muller(c, d));
            [first.0, first.1, second.0, second.1]
        };
        match wanted {
            Wanted::Bits => [a, b, c, d].map(u64::from),
            Wanted::Uniform => [a, b, c, d].map(|x| single(uniform(x))),
            Wanted::UniformDouble => {
                [join(a, b), join(c, d), join(e, f), join(g, h)].map(|bits| uniform53(bits).to_bits())
            }
            Wanted::Normal(shape) => normals().map(|normal| single(shape.of(normal))),
            Wanted::NormalDouble(shape) => {
                let (first, second) = (box_muller_bits(a, b, c, d), box_muller_bits(e, f, g, h));
                [first.0, first.1, second.0, second.1].map(|normal| shape.of(normal).to_bits())
            }
            Wanted::Poisson(poisson) if poisson.is_normal() => {
                normals().map(|normal| u64::from(poisson.round(normal)))
            }
            Wanted::Poisson(poisson) => [a, b, c, d].map(|x| u64::from(poisson.value(x))),
        }
    }
}
