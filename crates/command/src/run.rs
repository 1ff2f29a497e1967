//! `ptxvm run`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use check::module::Function;
use diag::SourceFile;
use isa::Space;
use ptxvm::{Error, Fault, FaultKind, Launch, LaunchReport, Located, Suppressions, signature};
use serde_json::json;

use super::arguments::Arguments;
use super::expect::Comparison;
use super::observe::{Observation, Observed, find_writers};
use super::options::{Format, Output, RunOptions};
use super::progress::{Progress, stop_on_interrupt};
use super::report::{Failure, code, print, say, say_text, stderr_color};
use super::session::Session;
use super::spec::Value;
use super::texture::Binding;
use super::{compile, summary, tool, variables};

/// A kernel with wrong results runs again, to see who wrote them, if it took less than this: watching takes longer.
const MOST_SECONDS: f64 = 10.0;

/// Runs a launch: [`Launch::run`], or a debugger.
pub type Runner<'r> = &'r mut dyn FnMut(Launch) -> Result<LaunchReport, Error>;

/// Runs a kernel, then shows and saves what it computed.
///
/// # Errors
/// Everything that has its own exit code.
pub fn run(options: &RunOptions) -> Result<(), Failure> {
    run_with(options, &mut Launch::run)
}

/// The same, with something else to run the launch.
///
/// # Errors
/// Everything that has its own exit code.
pub fn run_with(options: &RunOptions, runner: Runner<'_>) -> Result<(), Failure> {
    options.check()?;
    let known = options.suppressions.as_deref().map(Suppressions::read).transpose();
    let known =
        known.map_err(|error| Failure::usage(format!("--suppressions: {error}")))?.unwrap_or_default();
    let module = compile::compile(options)?.for_tools(options.tool);
    let kernel = compile::kernel(&module, options.entry.as_deref())?;
    let mut values = Arguments::resolve(kernel, &options.args)?;
    for Binding { name, object } in &options.bind {
        let object = object.resolve().map_err(|failure| failure.context(format_args!("--bind {name}")))?;
        values.bound.push((name.clone(), object));
    }
    for assignment in &options.set {
        values.variables.push(assignment.resolve(&module)?);
    }
    for query in &options.get {
        variables::find(&module, &query.name)
            .map_err(|failure| failure.context(format_args!("--get {}", query.name)))?;
    }
    check_outputs(kernel, &values, options)?;
    let expected = options.expect.iter().map(|expected| expected.resolve(&values));
    let expected = expected.collect::<Result<Vec<_>, _>>()?;

    let cancel = Arc::new(AtomicBool::new(false));
    stop_on_interrupt(&cancel);
    let progress = Progress::new(options.repeat, &kernel.name);
    let mut reports = Vec::new();
    let (mut last, mut observation) = (None, None);
    let observed = |observation: Option<&Observation>, session: Option<&Session>| {
        let seen = observation.zip(session);
        seen.map(|(observation, session)| {
            observation.finish(&module, kernel, &values, session, options, &cancel)
        })
        .transpose()
    };
    for _ in 0..options.repeat {
        // Each launch has new memory: it sees no earlier writes, not even in module variables.
        drop(last.take());
        let mut session = Session::new(&module, &values).map_err(|error| not_launched(&error))?;
        observation = Observation::new(options, &module, kernel, &values, &session)?;
        if let Some(observation) = &observation {
            session.observe(observation.handle());
        }
        let result = session.launch(&module, kernel, &values, options, &cancel, runner);
        last = Some(session);
        match result {
            Ok(report) => reports.push(report),
            // A debugger has quit.
            Err(Error::Cancelled { .. }) if !cancel.load(Ordering::SeqCst) => return Ok(()),
            Err(error) => {
                progress.end();
                if matches!(error, Error::Cancelled { .. }) && last.as_ref().is_some_and(Session::is_unread) {
                    return Err(Failure::silent(code::CLOSED));
                }
                let findings = last.as_ref().map_or(Vec::new(), |session| session.findings(&module, &known));
                tool::show(&findings);
                let seen = observed(observation.as_ref(), last.as_ref())?;
                let failure = stopped(&error, options, last.as_ref(), &values, &findings, seen.as_ref());
                if let Some(report) = last.and_then(|session| session.profile(&module, options))
                    && let Err(failure) = summary::print_profile(kernel, options, &report)
                {
                    failure.show();
                }
                return Err(failure);
            }
        }
        progress.step();
    }
    progress.end();
    let mut comparisons = Vec::new();
    if let Some(session) = &last {
        session.deliver(&values, options)?;
        comparisons = session.compare(&values, &expected, options.tolerance())?;
    }
    let seen = observed(observation.as_ref(), last.as_ref())?;
    let is_quick = reports.last().is_some_and(|report| report.seconds < MOST_SECONDS);
    if is_quick && comparisons.iter().any(Comparison::differs) {
        find_writers(&mut comparisons, &module, kernel, &values, options, &cancel);
    }
    let differences: Vec<_> = comparisons.iter().filter_map(Comparison::message).collect();
    for message in &differences {
        Failure::new(code::FAULT, message).show();
    }
    let findings = last.as_ref().map_or(Vec::new(), |session| session.findings(&module, &known));
    tool::show(&findings);
    let profile = last.and_then(|session| session.profile(&module, options));
    summary::print_summary(
        kernel,
        options,
        &reports,
        profile.as_ref(),
        &findings,
        &comparisons,
        seen.as_ref(),
    )?;
    match tool::has_errors(&findings) || !differences.is_empty() {
        true => Err(Failure::silent(options.error_exitcode.unwrap_or(code::FAULT))),
        false => Ok(()),
    }
}

/// Reports all mistakes in `--out`, `--print` and `--expect` before the kernel runs.
fn check_outputs(kernel: &Function, values: &Arguments, options: &RunOptions) -> Result<(), Failure> {
    let outputs = options.out.iter().map(|output| ("--out", output.place));
    let expected = options.expect.iter().map(|expected| ("--expect", expected.place()));
    let printed = options.print.iter().map(|part| ("--print", part.place));
    for (option, place) in outputs.chain(printed).chain(expected) {
        let Some(param) = values.param(place.index) else {
            return Err(Failure::usage(format!(
                "{option} {place}: the kernel has no argument {}",
                place.index
            ))
            .help(format!("arguments count from 0\n{}", signature(kernel))));
        };
        match &values.values[param] {
            value if value.at(place.field).is_some() => {}
            Value::Structure { arrays, .. } => {
                let failure = Failure::usage(format!("{option} {place}: it is no array"));
                let arrays = (0..arrays.len()).map(|field| format!("{}.{field}", place.index));
                return Err(failure.help(match arrays.collect::<Vec<_>>().join(", ") {
                    none if none.is_empty() => "the structure has none".to_owned(),
                    arrays => format!("the arrays of the structure are {arrays}"),
                }));
            }
            _ => {
                return Err(Failure::usage(format!("{option} {place}: argument {place} is no array"))
                    .help("only arrays (@x.npy, f32[1024] ...) can be shown, saved and compared"));
            }
        }
    }
    for part in &options.print {
        let value =
            values.param(part.place.index).and_then(|param| values.values[param].at(part.place.field));
        let (Some(value), Some(range)) = (value, &part.elements) else { continue };
        let elements = value.array().map_or(0, |(_, shape)| shape.iter().product());
        let end = if range.end == u64::MAX { elements } else { range.end };
        if range.start > end || end > elements {
            let message = format!("--print {part}: argument {} has {elements} elements", part.place);
            return Err(Failure::usage(message));
        }
    }
    for Output { path, .. } in &options.out {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
            return Err(Failure::usage(format!("--out: there is no directory `{}`", directory.display())));
        }
    }
    Ok(())
}

/// The error for a launch that could not begin.
fn not_launched(error: &Error) -> Failure {
    match error {
        Error::Load(_) => Failure::bad(error.to_string()),
        _ => Failure::usage(error.to_string()),
    }
}

/// The missing option that typically causes such a fault.
fn forgotten(source: &SourceFile, fault: &Fault, options: &RunOptions) -> Option<&'static str> {
    let words = || source.text().split_ascii_whitespace();
    let is_of_shared = fault.access.as_ref().is_some_and(|access| access.space == Space::Shared);
    if is_of_shared
        && options.shared == 0
        && words().zip(words().skip(1)).any(|pair| pair == (".extern", ".shared"))
    {
        return Some("the size of `.extern .shared` variables comes with the launch: --shared BYTES");
    }
    // CUDA's grid.sync() reads the address of its barrier from these registers.
    let syncs = fault.kind == FaultKind::Trap && source.text().contains("%envreg");
    (syncs && !options.cooperative).then_some("blocks that wait for one another need --cooperative")
}

/// The kernel did not end by itself: reports why, and delivers what it has computed so far.
fn stopped(
    error: &Error,
    options: &RunOptions,
    session: Option<&Session>,
    values: &Arguments,
    findings: &[Located],
    observed: Option<&Observed>,
) -> Failure {
    let failure = match error {
        Error::Fault { source, fault } => {
            if options.format == Format::Json {
                let fault = ptxvm::json::fault(source, fault);
                let object = diag::json_with_fault(source, &error.diagnostics(), &fault);
                let _ = print(tool::add_to(object, options, findings, observed));
            }
            say_text(&error.render(stderr_color()));
            if let Some(help) = forgotten(source, fault, options) {
                say(format_args!("help: {help}"));
            }
            Failure::silent(options.error_exitcode.unwrap_or(code::FAULT))
        }
        Error::Unsupported { source, .. } | Error::Undefined { source, .. } => {
            if options.format == Format::Json {
                let _ = print(diag::json(source, &error.diagnostics()));
            }
            say_text(&error.render(stderr_color()));
            // Nothing has run, so there are no results.
            return Failure::silent(code::BAD_INPUT);
        }
        Error::StepLimit { at, .. } | Error::Cancelled { at } => {
            let (code, kind) = match error {
                Error::StepLimit { .. } => (code::FAULT, "step-limit"),
                _ => (code::INTERRUPTED, "interrupted"),
            };
            match at {
                Some(at) => {
                    if options.format == Format::Json {
                        let (block, thread) = (at.place.block, at.place.thread);
                        let at_place =
                            json!({ "kind": kind, "kernel": at.kernel, "block": block, "thread": thread });
                        let _ = print(diag::json_with_fault(&at.source, &error.diagnostics(), &at_place));
                    }
                    say_text(&error.render(stderr_color()));
                    Failure::silent(code)
                }
                None => Failure::new(code, error.to_string()),
            }
        }
        Error::Panicked(message) => Failure::new(code::DEFECT, message),
        other => return not_launched(other),
    };
    // The fault comes first: it explains what is in the arrays.
    failure.report(options.format);
    if let Some(session) = session
        && !(options.print.is_empty() && options.out.is_empty() && options.get.is_empty())
    {
        say("note: results are as the kernel left them when it stopped");
        if let Err(failure) = session.deliver(values, options) {
            failure.show();
        }
    }
    Failure::silent(failure.code)
}
