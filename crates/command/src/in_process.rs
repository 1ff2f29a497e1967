//! `ptxvm run` and `ptxvm eval` for a program that has no files and no terminal: the options are words, and the results
//! are data.

use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Parser;
use diag::SourceFile;
use ptxvm::{Error, Launch, Module, Output, Suppressions, short_name, short_param};
use serde_json::{Value, json};

use super::arguments::{Arguments, Place};
use super::array::HostArray;
use super::compile::kernel;
use super::options::{Cli, Command, RunOptions};
use super::recording::Recording;
use super::report::Failure;
use super::session::Session;
use super::spec;
use super::summary::Summary;
use super::{eval, picture};

/// What came of a launch.
#[derive(Debug)]
pub struct Ran {
    /// The object of `ptxvm run --format json`; null if the kernel did not end.
    pub summary: Value,
    /// Why it did not end: `message`, `text` for people, and the `diagnostics` and the `fault` of `--format json`.
    pub error: Option<Value>,
    /// What the tools found, for people.
    pub findings: Vec<String>,
    /// What the kernel printed.
    pub printed: String,
    /// Its arrays, as it left them.
    pub arrays: Vec<Argument>,
}

/// An array that was an argument.
#[derive(Debug)]
pub struct Argument {
    /// As `--print` has it: `2`, or `2.0` for the first array in a structure.
    pub place: String,
    /// The name of the parameter.
    pub name: String,
    /// Its elements.
    pub array: HostArray,
}

impl Argument {
    /// Elements as text, in C order: numbers, or their bits.
    pub fn elements(&self, range: Range<u64>, bits: bool) -> Vec<String> {
        let part = self.array.part(range);
        let show = |element: &[u8]| match bits {
            true => part.dtype.show_bits(element),
            false => part.dtype.show(element),
        };
        part.data.chunks_exact(part.dtype.bytes()).map(show).collect()
    }

    /// The file that `--out I=NAME.png` writes. An array of one dimension is read in rows of `width` elements; what is left
    /// at its end is not shown.
    ///
    /// # Errors
    /// When the array is no picture.
    pub fn picture(&self, width: Option<u64>) -> Result<Vec<u8>, String> {
        let mut file = Vec::new();
        let array = match (width, &self.array.shape[..]) {
            (Some(width @ 1..), &[elements]) => {
                let height = elements / width;
                HostArray { shape: vec![height, width], ..self.array.part(0..height * width) }
            }
            _ => self.array.clone(),
        };
        picture::write(&array, &mut file).map_err(|error| error.to_string())?;
        Ok(file)
    }
}

/// The options of the words behind `ptxvm run FILE`.
fn options(name: &str, words: &[String]) -> Result<RunOptions, Failure> {
    let words = ["ptxvm", "run", name].into_iter().map(str::to_owned).chain(words.iter().cloned());
    let cli = Cli::try_parse_from(words).map_err(|error| {
        let text = error.render().to_string();
        let message = text.split("\n\n").next().unwrap_or_default();
        Failure::usage(message.trim_start_matches("error: "))
    })?;
    let Command::Run(options) = cli.command else { return Err(Failure::usage("these are no options")) };
    let of_files = [
        ("--out", !options.out.is_empty()),
        ("--expect", !options.expect.is_empty()),
        ("--suppressions", options.suppressions.is_some()),
        ("--watch", !options.watch.is_empty()),
        ("--trace", options.trace.is_some()),
        ("--first-nan", options.first_nan),
        ("--counters", options.counters),
        ("a second file", options.files.len() > 1),
        ("--profile=FILE", matches!(options.profile, Some(Some(_)))),
    ];
    if let Some((option, _)) = of_files.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!("{option} is only for the command")));
    }
    options.check()?;
    Ok(*options)
}

/// Takes what a kernel prints.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

/// The bytes that are kept of what a kernel prints.
const MOST_PRINTED: usize = 1 << 20;

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST_PRINTED - kept.len();
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a kernel of a text, with the words that follow the file in `ptxvm run`. Options that concern files are refused.
///
/// # Errors
/// When the words are wrong, or the launch could not begin. What is wrong with the text or stops the kernel is in the
/// result.
pub fn run(source: SourceFile, words: &[String]) -> Result<Ran, Failure> {
    let options = options(source.name(), words)?;
    let check_options = check::Options { lenient: options.lenient, ..check::Options::default() };
    let module = match Module::compile(source, &check_options) {
        Ok(module) => module.for_tools(options.tool),
        Err(error) => return Ok(Ran::not_run(&error)),
    };
    let kernel = kernel(&module, options.entry.as_deref())?;
    let mut values = Arguments::resolve(kernel, &options.args)?;
    for binding in &options.bind {
        values.bound.push((binding.name.clone(), binding.object.resolve()?));
    }
    for assignment in &options.set {
        values.variables.push(assignment.resolve(&module)?);
    }
    let mut session = Session::new(&module, &values).map_err(|error| Failure::usage(error.to_string()))?;
    let printed = Printed::default();
    session.print_to(Output::to(printed.clone()));
    let result = session.launch(&module, kernel, &values, &options, &Arc::default(), &mut Launch::run);
    let found = session.findings(&module, &Suppressions::default());
    let profile = session.profile(&module, &options);
    let (reports, error) = match result {
        Ok(report) => (vec![report], None),
        Err(error) => (Vec::new(), Some(stopped(&error))),
    };
    let summary = Summary::new(kernel, &options, &reports, profile.as_ref(), &found, &[], None);
    let summary = serde_json::to_value(&summary).map_err(|error| Failure::usage(error.to_string()))?;
    let mut arrays = Vec::new();
    for (index, _) in options.args.iter().enumerate() {
        let Some(param) = values.param(index) else { continue };
        let fields: Vec<Option<usize>> = match &values.values[param] {
            spec::Value::Structure { arrays, .. } => (0..arrays.len()).map(Some).collect(),
            _ => vec![None],
        };
        for field in fields {
            let place = Place { index, field };
            if let Some(array) = session.array(&values, place)? {
                let name = short_param(&kernel.name, &kernel.params[param].name).to_owned();
                arrays.push(Argument { place: place.to_string(), name, array });
            }
        }
    }
    let printed = printed.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Ran {
        summary,
        error,
        findings: found.iter().map(|found| found.render(ptxvm::Color::Never)).collect(),
        printed: String::from_utf8_lossy(&printed).into_owned(),
        arrays,
    })
}

/// Records a block of the grid, by its linear index, of a launch with the words that follow the file in `ptxvm run`.
///
/// # Errors
/// When the text or the words are wrong, or the launch could not begin.
pub fn record(source: SourceFile, words: &[String], block: u64) -> Result<Recording, Failure> {
    let options = options(source.name(), words)?;
    options.check_for_debugger()?;
    let module =
        Module::compile(source, &check::Options { lenient: options.lenient, ..check::Options::default() })
            .map_err(|error| Failure::bad(error.to_string()))?;
    let kernel = kernel(&module, options.entry.as_deref())?;
    let values = Arguments::resolve(kernel, &options.args)?;
    let blocks: u64 = options.grid().iter().map(|&extent| u64::from(extent)).product();
    if block >= blocks {
        return Err(Failure::usage(format!("block is {block}, and must be 0 to {}", blocks - 1)));
    }
    let threads = options.block(kernel).iter().product::<u32>() as usize;
    let mut recording = Recording::new(&module, kernel, block, threads);
    let mut session = Session::new(&module, &values).map_err(|error| Failure::usage(error.to_string()))?;
    session.lead_again();
    let lead = &mut |launch: Launch| launch.debug(&mut recording);
    match session.launch(&module, kernel, &values, &options, &Arc::default(), lead) {
        // The recording says where it ends.
        Ok(_) | Err(Error::Cancelled { .. } | Error::Fault { .. } | Error::StepLimit { .. }) => Ok(recording),
        Err(error) => Err(Failure::usage(error.to_string())),
    }
}

impl Ran {
    fn not_run(error: &Error) -> Ran {
        Ran {
            summary: Value::Null,
            error: Some(stopped(error)),
            findings: Vec::new(),
            printed: String::new(),
            arrays: Vec::new(),
        }
    }
}

/// Why a kernel did not end, or did not begin.
fn stopped(error: &Error) -> Value {
    let (source, fault) = match error {
        Error::Fault { source, fault } => (Some(source), ptxvm::json::fault(source, fault)),
        Error::Bad { source, .. } | Error::Undefined { source, .. } | Error::Unsupported { source, .. } => {
            (Some(source), Value::Null)
        }
        Error::StepLimit { at: Some(at), .. } | Error::Cancelled { at: Some(at) } => (
            Some(&at.source),
            json!({ "kernel": at.kernel, "block": at.place.block, "thread": at.place.thread }),
        ),
        _ => (None, Value::Null),
    };
    let object = source.map(|source| diag::json_with_fault(source, &error.diagnostics(), &fault));
    let mut object: Value = object
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_else(|| json!({ "diagnostics": [] }));
    object["message"] = json!(error.to_string().lines().next());
    object["text"] = json!(error.render(ptxvm::Color::Never));
    object
}

/// The kernels of a module with what a launch gives them: `name`, `short`, `block` if the kernel requires one, and `params`
/// with `name`, `type`, `bytes` and whether one is passed `by_value` or may be the `address` of an array.
pub fn kernels(module: &Module) -> Value {
    let kernels = module.kernels().map(|kernel| {
        let params = kernel.params.iter().map(|param| {
            json!({
                "name": short_param(&kernel.name, &param.name),
                "type": param.ty.name(),
                "bytes": param.bytes,
                "by_value": param.array,
                "address": spec::takes_address(param),
                "float": param.ty.is_float(),
            })
        });
        json!({
            "name": kernel.name,
            "short": short_name(&kernel.name),
            "block": kernel.bounds.required,
            "params": params.collect::<Vec<_>>(),
        })
    });
    kernels.collect()
}

/// What `ptxvm eval` shows of an instruction on operands.
///
/// # Errors
/// When the instruction or an operand is wrong.
pub fn evaluate(instruction: &str, operands: &[String]) -> Result<String, Failure> {
    eval::text(instruction, operands)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBLE: &str = ".version 7.0 .target sm_70 .address_size 64
        .visible .entry double(.param .u64 x) {
            .reg .b32 %i; .reg .b64 %p; .reg .f32 %f;
            ld.param.u64 %p, [x]; mov.u32 %i, %tid.x; mad.wide.u32 %p, %i, 4, %p;
            ld.global.f32 %f, [%p]; add.f32 %f, %f, %f; st.global.f32 [%p], %f; ret; }";

    fn run_with(words: &str) -> Result<Ran, Failure> {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        run(SourceFile::new("kernel.ptx", DOUBLE), &words)
    }

    #[test]
    fn a_launch_gives_numbers_and_a_profile() {
        let ran = run_with("--block 3 --arg f32[3]=1,2.5,-4 --profile").unwrap();
        assert!(ran.error.is_none(), "{:?}", ran.error);
        assert_eq!(ran.arrays[0].name, "x");
        assert_eq!(ran.arrays[0].elements(0..9, false), ["2", "5", "-8"]);
        assert_eq!(ran.arrays[0].elements(1..2, true), ["0x40a00000"]);
        assert_eq!(ran.summary["profile"]["lines"][0]["threads"], 9);
    }

    #[test]
    fn a_fault_is_a_result_with_its_place() {
        let ran = run_with("--block 4 --arg f32[3]").unwrap();
        let error = ran.error.unwrap();
        assert_eq!(error["fault"]["thread"], json!([3, 0, 0]));
        assert_eq!(error["diagnostics"][0]["line"], 5);
        assert_eq!(ran.arrays.len(), 1);
    }

    #[test]
    fn a_recording_has_values_places_and_states() {
        let words = ["--block", "3", "--arg", "f32[3]=1,2.5,-4"].map(str::to_owned);
        let recording = record(SourceFile::new("kernel.ptx", DOUBLE), &words, 0).unwrap();
        assert_eq!(recording.summary()["turns"], 7);
        let first = recording.at(0, Some("%f"), None);
        assert_eq!(first["turn"], json!({ "line": 4, "warp": 0, "lanes": 7 }));
        assert_eq!(first["values"], json!(["0", "0", "0"]));
        assert_eq!(recording.at(4, Some("%f"), None)["values"], json!(["1", "2.5", "-4"]));
        let late = recording.at(5, Some("%f"), None);
        assert_eq!(late["values"], json!(["2", "5", "-8"]));
        assert_eq!(late["shades"], json!([196, 255, 0]));
        assert_eq!(recording.at(5, Some("%f"), Some("u32"))["values"][0], "1073741824");
        assert_eq!(recording.at(7, None, None)["states"], json!(["ended", "ended", "ended"]));
        assert!(
            record(SourceFile::new("kernel.ptx", DOUBLE), &words, 1).unwrap_err().message.contains("0 to 0")
        );
    }

    #[test]
    fn wrong_words_are_refused() {
        assert!(run_with("--arg 1 --arg 2").unwrap_err().message.contains("takes 1 argument"));
        assert!(run_with("--out 0=x.npy").unwrap_err().message.contains("only for the command"));
        assert!(run_with("--block 0").unwrap_err().message.contains("must be 1 to 1024"));
    }

    #[test]
    fn a_barrier_gives_results_to_threads_that_waited() {
        let text = ".version 7.0\n.target sm_70\n.visible .entry count()\n{\n.reg .pred %p;\n.reg .u32 %n;\n\
            setp.eq.u32 %p, 0, 0;\nbar.red.popc.u32 %n, 0, %p;\nret;\n}\n";
        let words = ["--block", "64"].map(str::to_owned);
        let recording = record(SourceFile::new("kernel.ptx", text), &words, 0).unwrap();
        // Each of two warps takes two turns to the barrier; the second one completes it.
        assert_eq!(recording.at(3, Some("%n"), None)["values"][0], "0");
        assert_eq!(recording.at(4, Some("%n"), None)["values"][0], "64");
    }
}
