//! Runs a test many times and counts what comes out.

use std::collections::{BTreeMap, BTreeSet};

use ptxvm::{Buffer, Device, Error, Module};

use crate::kernel::{Layout, layout};
use crate::model::{Outcome, permitted};
use crate::program::{Order, Placement};
use crate::variant::Variant;

/// Bytes of memory that a launch has for its places.
const BYTES: usize = 1 << 21;
/// What a value is called that is no value that anybody stored: parts of several.
const TORN: u8 = 4;

/// How often each outcome was seen.
#[derive(Default)]
pub struct Tally {
    /// Registers, and then places at the end; 4 is a torn value.
    pub seen: BTreeMap<Outcome, u64>,
    /// Of them, those that the model forbids.
    pub forbidden: BTreeSet<Outcome>,
    /// Number of outcomes that the model permits.
    pub permitted: usize,
    /// Instances of the test.
    pub runs: u64,
}

/// Runs a test at least so many times.
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

/// One of the values that make an outcome.
#[derive(Clone, Copy)]
enum Value {
    Register(usize),
    Place(usize),
}

struct Counts<'v> {
    variant: &'v Variant,
    layout: &'v Layout,
    /// What makes an outcome, and whether it must be whole: all who access it do so strongly.
    values: Vec<(Value, bool)>,
    /// By outcome, as a number of as many digits.
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

    /// Counts what so many rounds left behind. Weak accesses may be made part by part, so parts are looked at one by one: elements of
    /// weak vectors, and of what is accessed strongly the 16 bytes that a part lies in.
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
