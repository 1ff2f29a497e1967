//! `ptxvm run --trace`, `--watch`, `--first-nan`, `--counters`: what an observer of the launch saw, for people and for programs.

mod trace;
mod watch;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use check::module::Function;
use ptxvm::observe::{Counters, FirstNonFinite, ObserverHandle, WriteWatch};
use ptxvm::observed::watch::{Element, Writers};
use ptxvm::observed::{counters, nonfinite, watch as writes};
use ptxvm::{Launch, Module, Profile};
use serde_json::Value;

pub use ptxvm::observed::watch::Writer;
pub use trace::ThreadPlace;
pub use watch::Watched;

use crate::arguments::Arguments;
use crate::array::DType;
use crate::expect::Comparison;
use crate::options::{Format, RunOptions};
use crate::report::{Failure, print};
use crate::session::Session;

/// What an observer saw, for programs: the name of a field, and its value.
pub type Observed = (&'static str, Value);

/// The observer that a launch has for one of these options.
pub enum Observation {
    /// `--trace`
    Trace(Arc<Mutex<trace::Trace>>),
    /// `--watch`: the watched elements and their types, in the order of the observer's ranges.
    Watch(Vec<(Element, Option<DType>)>, Arc<Mutex<WriteWatch>>),
    /// `--first-nan`
    FirstNan(Arc<Mutex<FirstNonFinite>>),
    /// `--counters`
    Counters(Arc<Mutex<Counters>>),
}

/// Writes of a range that `--watch` shows.
const SHOWN_WRITES: usize = 100;

impl Observation {
    /// The observer for the options of a launch, if they ask for one.
    ///
    /// # Errors
    /// When there is no such thread or element.
    pub fn new(
        options: &RunOptions,
        module: &Module,
        kernel: &Function,
        values: &Arguments,
        session: &Session,
    ) -> Result<Option<Observation>, Failure> {
        if let Some(place) = options.trace {
            let thread = place.resolve(options.grid(), options.block(kernel))?;
            return Ok(Some(Observation::Trace(trace::Trace::shared(module, thread, options.format))));
        }
        if options.first_nan {
            return Ok(Some(Observation::FirstNan(FirstNonFinite::shared())));
        }
        if options.counters {
            return Ok(Some(Observation::Counters(Counters::shared())));
        }
        if options.watch.is_empty() {
            return Ok(None);
        }
        let elements = options.watch.iter().map(|watched| watched.elements(values, session));
        let elements = elements.collect::<Result<Vec<_>, _>>()?.concat();
        let ranges = elements.iter().map(|(element, _)| element.range.clone()).collect();
        Ok(Some(Observation::Watch(elements, WriteWatch::shared(ranges, SHOWN_WRITES))))
    }

    /// The observer.
    pub fn handle(&self) -> ObserverHandle {
        match self {
            Observation::Trace(trace) => ObserverHandle::new(Arc::clone(trace)),
            Observation::Watch(_, watch) => ObserverHandle::new(Arc::clone(watch)),
            Observation::FirstNan(search) => ObserverHandle::new(Arc::clone(search)),
            Observation::Counters(counters) => ObserverHandle::new(Arc::clone(counters)),
        }
    }

    /// Shows what the observer saw to people, and returns it for programs. The launch has ended, normally or not.
    ///
    /// # Errors
    /// When stdout cannot be written to.
    pub fn finish(
        &self,
        module: &Module,
        kernel: &Function,
        values: &Arguments,
        session: &Session,
        options: &RunOptions,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Observed, Failure> {
        let (places, block) = (module.places(), options.block(kernel));
        let show = |text: &str| match options.format {
            Format::Human => print(text),
            Format::Json => Ok(()),
        };
        Ok(match self {
            Observation::Trace(trace) => {
                ("trace", trace.lock().unwrap_or_else(PoisonError::into_inner).take())
            }
            Observation::Watch(elements, watch) => {
                let writers = Writers::of(watch, &places, block, |range| session.bytes(range));
                let of = || elements.iter().zip(&writers.of);
                let text = of().map(|((element, dtype), writes)| {
                    writes::text(element, writes, |bits| watch::show(bits, *dtype))
                });
                show(&text.collect::<Vec<_>>().join("\n"))?;
                ("watch", of().map(|((element, _), writes)| writes::json(element, writes)).collect())
            }
            Observation::FirstNan(search) => {
                let flows = search.lock().unwrap_or_else(PoisonError::into_inner).flows();
                let element = |address| session.element(values, address);
                let context = nonfinite::Context { places: &places, element: &element, block };
                show(&nonfinite::text(&flows, &context))?;
                ("first_nan", flows.iter().map(|flow| nonfinite::json(flow, &context)).collect())
            }
            Observation::Counters(counters) => {
                let counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
                let profile = profile_of(module, kernel, values, options, cancel)?;
                let attributes = session.attributes(kernel);
                let report = counters::Report::new(
                    module,
                    (&counters, &profile),
                    attributes.as_ref(),
                    block,
                    options.shared,
                );
                show(&report.text())?;
                ("counters", report.json())
            }
        })
    }
}

/// Runs a kernel again for its profile: a launch has a profile or an observer.
fn profile_of(
    module: &Module,
    kernel: &Function,
    values: &Arguments,
    options: &RunOptions,
    cancel: &Arc<AtomicBool>,
) -> Result<Profile, Failure> {
    let mut session = Session::new(module, values).map_err(|error| Failure::usage(error.to_string()))?;
    session.profile_again();
    // A launch that faults has a profile up to there.
    let _ = session.launch(module, kernel, values, options, cancel, &mut Launch::run);
    Ok(session.counted())
}

/// Runs a kernel again to see who wrote elements that are not as expected. Says nothing if that fails, for it worked
/// before.
pub fn find_writers(
    comparisons: &mut [Comparison],
    module: &Module,
    kernel: &Function,
    values: &Arguments,
    options: &RunOptions,
    cancel: &Arc<AtomicBool>,
) {
    let Ok(mut session) = Session::new(module, values) else { return };
    let addresses: Vec<_> =
        comparisons.iter().map(|comparison| comparison.addresses(values, &session)).collect();
    let watch = WriteWatch::shared(addresses.concat(), 1);
    session.observe_again(ObserverHandle::new(Arc::clone(&watch)));
    if session.launch(module, kernel, values, options, cancel, &mut Launch::run).is_ok() {
        let block = options.block(kernel);
        let writers = Writers::of(&watch, &module.places(), block, |range| session.bytes(range));
        let mut of = writers.of.iter();
        for (comparison, addresses) in comparisons.iter_mut().zip(addresses) {
            comparison.add_writers(of.by_ref().take(addresses.len()));
        }
    }
}
