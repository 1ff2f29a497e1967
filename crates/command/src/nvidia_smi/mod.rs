//! `ptxvm as-nvidia-smi`: the devices that programs see under `ptxvm exec`, in the forms of NVIDIA's tool that scripts read. The
//! command does the same under the name `nvidia-smi`.

mod fields;
mod table;

use std::sync::Arc;

use devices::{Devices, Process};

use self::fields::{APPS, App, Field, GPU};
use super::report::{code, print, say};

/// A device and who uses it.
#[derive(Clone)]
pub struct Gpu {
    /// Its number.
    pub number: u32,
    /// What all devices have in common.
    pub devices: Arc<Devices>,
    /// The processes that have contexts on it, with their bytes of memory.
    pub processes: Vec<(u32, u64)>,
}

impl Gpu {
    /// Bytes of memory in use. Each process has its own limit, so that together they could use more than there is.
    pub fn used(&self) -> u64 {
        self.processes.iter().map(|(_, bytes)| bytes).sum::<u64>().min(self.devices.memory)
    }

    /// Its place on the bus, with eight digits for the domain.
    pub fn bus_id(&self) -> String {
        format!("0000{}", devices::bus_id(self.number))
    }

    /// Whether a word of `--id` means it.
    fn is_meant(&self, word: &str) -> bool {
        let (word, bus_id) = (word.trim(), self.bus_id());
        word.parse() == Ok(self.number)
            || word.eq_ignore_ascii_case(&devices::uuid_text(self.number))
            || word.eq_ignore_ascii_case(&bus_id)
            || word.eq_ignore_ascii_case(&bus_id[4..])
    }
}

/// The name of a process: the program's, as it was called.
pub fn name_of_process(id: u32) -> String {
    let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(line.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
enum What {
    #[default]
    Table,
    List,
    Details,
    Gpus(Vec<String>),
    Apps(Vec<String>),
    Help,
    Fields,
    Version,
}

/// The request of a command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    what: What,
    /// The devices that are meant; empty: all.
    ids: Vec<String>,
    /// The words of `--format`.
    format: Option<Vec<String>>,
}

/// The words of a list that stands in one word.
fn list(text: &str) -> Vec<String> {
    text.split(',').map(|word| word.trim().to_owned()).collect()
}

impl Request {
    /// Parses the words after the command's name.
    ///
    /// # Errors
    /// What is wrong with them.
    fn read(words: &[String]) -> Result<Request, String> {
        let mut request = Request::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, value) = word
                .split_once('=')
                .map_or((word.as_str(), None), |(name, value)| (name, Some(value.to_owned())));
            let mut value = || {
                value
                    .clone()
                    .or_else(|| words.next().cloned())
                    .ok_or_else(|| format!("`{name}` needs a value"))
            };
            match name {
                "-L" | "--list-gpus" => request.what = What::List,
                "-q" | "--query" => request.what = What::Details,
                "--query-gpu" => request.what = What::Gpus(list(&value()?)),
                "--query-compute-apps" | "--query-apps" => request.what = What::Apps(list(&value()?)),
                "--format" => request.format = Some(list(&value()?)),
                "-i" | "--id" => request.ids = list(&value()?),
                "-h" | "--help" => request.what = What::Help,
                "--help-query-gpu" | "--help-query-compute-apps" => request.what = What::Fields,
                "--version" => request.what = What::Version,
                _ => {
                    return Err(format!(
                        "`{word}` is no option of ptxvm's nvidia-smi: see `nvidia-smi --help`"
                    ));
                }
            }
        }
        if matches!(request.what, What::Gpus(_) | What::Apps(_)) {
            let Some(format) = &request.format else {
                return Err("a query needs `--format=csv`, with `,noheader` and `,nounits` behind it or not"
                    .to_owned());
            };
            if let Some(unknown) =
                format.iter().find(|word| !matches!(&***word, "csv" | "noheader" | "nounits"))
            {
                return Err(format!("`{unknown}` is no format: there are csv, noheader and nounits"));
            }
        }
        Ok(request)
    }

    fn has(&self, word: &str) -> bool {
        self.format.iter().flatten().any(|other| other == word)
    }
}

const HELP: &str = "\
Shows the devices that CUDA programs see under `ptxvm exec`, in the forms of NVIDIA's nvidia-smi that scripts read. There is no GPU:
nothing has a temperature or takes power ([N/A]), and how busy a device is, is not measured (0 %).

Usage: nvidia-smi [OPTIONS]        in `ptxvm exec`; otherwise `ptxvm as-nvidia-smi`, or this command under the name `nvidia-smi`

  (none)                               a table of devices and of the processes that use them
  -L, --list-gpus                      a line for each device
  -q, --query                          what is known of each device, field by field
  --query-gpu=FIELDS                   these fields of each device, with --format (--help-query-gpu lists the fields)
  --query-compute-apps=FIELDS          these fields of each process that uses a device, with --format
  --format=csv[,noheader][,nounits]    the form of a query
  -i, --id=DEVICES                     these devices only, by number, UUID or place on the bus
  --version, -h, --help

The devices are those that PTXVM_DEVICE, PTXVM_DEVICE_NAME, PTXVM_DEVICE_COUNT and PTXVM_DEVICE_MEMORY describe; the processes are those
of the same `ptxvm exec`.

Example:
  nvidia-smi --query-gpu=name,memory.total,compute_cap --format=csv,noheader

Exit codes: 0; 2 the command line is wrong, or a variable; 6 there is no device.";

/// There is no device, or not the one that is meant: NVIDIA's exit code.
const NO_DEVICE: u8 = 6;

/// Executes these words.
pub fn nvidia_smi(words: &[String]) -> u8 {
    match show(words) {
        Ok(()) => code::OK,
        Err((message, code)) => {
            say(format_args!("nvidia-smi: {message}"));
            code
        }
    }
}

fn show(words: &[String]) -> Result<(), (String, u8)> {
    let wrong = |message: String| (message, code::USAGE);
    let request = Request::read(words).map_err(wrong)?;
    let devices = Arc::new(Devices::get());
    if !devices.faults.is_empty() {
        return Err(wrong(devices.faults.join("\nnvidia-smi: ")));
    }
    let processes = devices::processes();
    let on = |number| {
        let of = |process: &Process| Some((process.id, process.bytes_on(number)?));
        Gpu { number, devices: Arc::clone(&devices), processes: processes.iter().filter_map(of).collect() }
    };
    let mut gpus: Vec<Gpu> = (0..devices.count).map(on).collect();
    if let Some(id) = request.ids.iter().find(|id| !gpus.iter().any(|gpu| gpu.is_meant(id))) {
        return Err((format!("there is no device `{id}`"), NO_DEVICE));
    }
    if !request.ids.is_empty() {
        gpus.retain(|gpu| request.ids.iter().any(|id| gpu.is_meant(id)));
    }
    let is_of_devices = !matches!(request.what, What::Help | What::Fields | What::Version);
    if gpus.is_empty() && is_of_devices {
        return Err(("there are no devices (PTXVM_DEVICE_COUNT)".to_owned(), NO_DEVICE));
    }
    let text = match &request.what {
        What::Table => table::table(&gpus),
        What::List => gpus.iter().map(line).collect::<Vec<_>>().join("\n"),
        What::Details => gpus.iter().map(details).collect::<Vec<_>>().join("\n"),
        What::Gpus(names) => csv(&request, GPU, names, &gpus).map_err(wrong)?,
        What::Apps(names) => {
            let of =
                |gpu: &Gpu| gpu.processes.iter().map(|&process| (gpu.clone(), process)).collect::<Vec<App>>();
            csv(&request, APPS, names, &gpus.iter().flat_map(of).collect::<Vec<_>>()).map_err(wrong)?
        }
        What::Help => HELP.to_owned(),
        What::Fields => fields::help(),
        What::Version => format!(
            "NVIDIA-SMI version: {0} (of ptxvm {1})",
            devices::DRIVER_VERSION,
            env!("CARGO_PKG_VERSION")
        ),
    };
    if text.is_empty() {
        return Ok(());
    }
    print(text).map_err(|failure| (failure.message, failure.code))
}

/// The line of `-L`.
fn line(gpu: &Gpu) -> String {
    format!("GPU {}: {} (UUID: {})", gpu.number, gpu.devices.name, devices::uuid_text(gpu.number))
}

/// What `-q` says of a device: all fields that it has.
fn details(gpu: &Gpu) -> String {
    let mut text = format!("GPU {}\n", gpu.bus_id());
    for field in GPU {
        if let Some(value) = (field.value)(gpu) {
            text += &format!("    {:<40}: {value}{}\n", field.names[0], field.unit_behind());
        }
    }
    text
}

/// The rows of a query.
///
/// # Errors
/// If there is no such field.
fn csv<T>(request: &Request, known: &[Field<T>], names: &[String], rows: &[T]) -> Result<String, String> {
    let find = |name| {
        let found = known.iter().find(|field| field.names.contains(&String::as_str(name)));
        let found = found
            .ok_or_else(|| format!("`{name}` is no field of this query: see `nvidia-smi --help-query-gpu`"));
        found.map(|field| (name, field))
    };
    let fields = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let mut lines = Vec::new();
    if !request.has("noheader") {
        let title = |(name, field): &(&String, &Field<T>)| match field.unit {
            "" => (*name).clone(),
            unit => format!("{name} [{unit}]"),
        };
        lines.push(fields.iter().map(title).collect::<Vec<_>>().join(", "));
    }
    for row in rows {
        let value = |(_, field): &(&String, &Field<T>)| match (field.value)(row) {
            None => "[N/A]".to_owned(),
            Some(value) if request.has("nounits") => value,
            Some(value) => value + &field.unit_behind(),
        };
        lines.push(fields.iter().map(value).collect::<Vec<_>>().join(", "));
    }
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Request, String> {
        Request::read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_understood_with_and_without_an_equals_sign() {
        let wanted = read("--query-gpu=name,index --format=csv,noheader -i 0").unwrap();
        assert_eq!(read("--query-gpu name,index --format csv,noheader --id=0").unwrap(), wanted);
        assert!(wanted.has("noheader") && !wanted.has("nounits"));
        assert_eq!(read("").unwrap().what, What::Table);
        for (line, message) in [
            ("-pm 1", "`-pm` is no option"),
            ("--query-gpu=name", "needs `--format=csv`"),
            ("--query-gpu", "`--query-gpu` needs a value"),
            ("--query-gpu=name --format=xml", "`xml` is no format"),
        ] {
            assert!(read(line).unwrap_err().contains(message), "{line}");
        }
    }
}
