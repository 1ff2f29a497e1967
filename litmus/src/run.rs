//! Runs a test many times and counts its outcomes.

use std::collections::{BTreeMap, BTreeSet};

use ptxvm::{Buffer, Device, Error, Module};

use crate::kernel::{Layout, layout};
use crate::model::{Outcome, permitted};
use crate::program::{Order, Placement};
use crate::variant::Variant;

/// Bytes of memory that a launch has for its locations.
const BYTES: usize = 1 << 21;
/// The number for a torn value, with parts of several stores.
const TORN: u8 = 4;

/// The number of times that each outcome was seen.
#[derive(Default)]
pub struct Tally {
    /// Each outcome has the registers, then the final values of the locations; 4 is a torn value.
    pub seen: BTreeMap<Outcome, u64>,
    /// The outcomes that the model forbids.
    pub forbidden: BTreeSet<Outcome>,
    /// Number of outcomes that the model permits.
    pub permitted: usize,
    /// Number of instances of the test.
    pub runs: u64,
}

/// Runs a test at least `runs` times.
///
/// # Errors
/// When its kernel cannot be launched.
pub fn run(variant: &Variant, runs: u64) -> Result<Tally, Error> {
    let layout = layout(variant);
    let device = Device::new();
    let loaded = device.load(&Module::from_ptx(&layout.text)?)?;
    let (places, registers) = (variant.program.places(), variant.program.registers());
    let row = layout.instances * layout.stride * places;
    let batches = (BYTES / (row * layout.batch)).clamp(1, 32);
    let batches = batches.min((runs as usize).div_ceil(layout.instances * layout.batch)).max(1);
    let rounds = batches * layout.batch;
    let (data, out) = (
        device.allocate((rounds * row) as u64, "data")?,
        device
            .allocate((rounds * layout.instances * variant.width.all() * registers).max(16) as u64, "out")?,
    );
    let roles = variant.program.threads.len();
    let mut counts = Counts::new(variant, &layout);
    while counts.runs < runs {
        data.fill(0, &[0], data.bytes())?;
        let arrived = device.zeros::<u32>(1)?;
        let mut launch = loaded.launch("litmus").grid(layout.blocks).block(layout.threads);
        if variant.program.placement == Placement::Blocks {
            launch = launch.cluster(layout.blocks);
        }
        let threads = if variant.program.placement == Placement::Clusters { roles } else { 1 };
        launch = launch.arg(&data).arg(&out).arg(&arrived).arg(rounds as u32);
        let path = variant.path;
        launch.configure(|config| (config.threads, config.host_path) = (Some(threads), Some(path))).run()?;
        counts.add(&contents(&data)?, &contents(&out)?, rounds);
    }
    let permitted = permitted(&variant.program);
    let seen = counts.seen();
    let forbidden = seen.keys().filter(|outcome| !permitted.contains(*outcome)).cloned().collect();
    Ok(Tally { seen, forbidden, permitted: permitted.len(), runs: counts.runs })
}

fn contents(buffer: &Buffer) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; buffer.bytes() as usize];
    buffer.read(0, &mut bytes)?;
    Ok(bytes)
}

/// One of the values of an outcome.
#[derive(Clone, Copy)]
enum Value {
    Register(usize),
    Place(usize),
}

struct Counts<'v> {
    variant: &'v Variant,
    layout: &'v Layout,
    /// The values of an outcome, and whether each must be whole, because all accesses to it are strong.
    values: Vec<(Value, bool)>,
    /// The counts, by outcome as a number with a digit for each value.
    counts: Vec<u64>,
    runs: u64,
}

impl<'v> Counts<'v> {
    fn new(variant: &'v Variant, layout: &'v Layout) -> Counts<'v> {
        let program = &variant.program;
        let register = |register| {
            let (place, order) = program.load_of(register).unwrap_or((0, Order::Weak));
            (Value::Register(register), order != Order::Weak && program.is_stored_strongly(place))
        };
        let place = |place| (Value::Place(place), program.is_stored_strongly(place));
        let values: Vec<_> =
            (0..program.registers()).map(register).chain((0..program.places()).map(place)).collect();
        let counts = vec![0; usize::from(TORN + 1).pow(values.len() as u32)];
        Counts { variant, layout, values, counts, runs: 0 }
    }

    /// Counts the outcomes of `rounds` rounds. Weak accesses may tear, so their parts are examined one by one: the
    /// elements of weak vectors, and for strong accesses the 16-byte unit that contains a part.
    fn add(&mut self, data: &[u8], out: &[u8], rounds: usize) {
        let Layout { instances, stride, .. } = *self.layout;
        let (bytes, program) = (self.variant.width.all(), &self.variant.program);
        let whole = self.values.iter().all(|&(_, whole)| whole);
        let part = if whole { bytes.min(16) } else { self.variant.width.bytes.min(8) };
        for (round, instance) in (0..rounds).flat_map(|round| (0..instances).map(move |i| (round, i))) {
            for at in (0..bytes).step_by(part) {
                let mut outcome = 0;
                for &(value, whole) in &self.values {
                    let all = match value {
                        Value::Register(i) => {
                            &out[((round * program.registers() + i) * instances + instance) * bytes..]
                                [..bytes]
                        }
                        Value::Place(i) => {
                            &data[((round * program.places() + i) * instances + instance) * stride..][..bytes]
                        }
                    };
                    let looked_at = if whole {
                        &all[at / 16 * 16..(at / 16 * 16 + 16).min(bytes)]
                    } else {
                        &all[at..at + part]
                    };
                    let first = looked_at[0];
                    let is_whole = first < TORN && looked_at.iter().all(|&byte| byte == first);
                    outcome =
                        outcome * usize::from(TORN + 1) + usize::from(if is_whole { first } else { TORN });
                }
                self.counts[outcome] += 1;
            }
        }
        self.runs += (rounds * instances) as u64;
    }

    fn seen(&self) -> BTreeMap<Outcome, u64> {
        let digits = |mut number: usize| {
            let mut all: Outcome = Vec::new();
            for _ in &self.values {
                all.push((number % usize::from(TORN + 1)) as u8);
                number /= usize::from(TORN + 1);
            }
            all.reverse();
            all
        };
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(number, &count)| (digits(number), count)).collect()
    }
}
