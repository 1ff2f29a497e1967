//! The fields of queries. What no device here has is known by name and has no value.

use std::time::{SystemTime, UNIX_EPOCH};

use devices::uuid_text;

use super::{Gpu, name_of_process};

/// A field of rows of type `T`.
pub struct Field<T: ?Sized> {
    /// Its names: all mean the same.
    pub names: &'static [&'static str],
    /// The unit of the value, or nothing.
    pub unit: &'static str,
    /// The value of a row; `None` is written `[N/A]`.
    pub value: fn(&T) -> Option<String>,
}

impl<T: ?Sized> Field<T> {
    /// The unit behind a value.
    pub fn unit_behind(&self) -> String {
        match self.unit {
            "" => String::new(),
            unit => format!(" {unit}"),
        }
    }
}

const fn field<T>(
    names: &'static [&'static str],
    unit: &'static str,
    value: fn(&T) -> Option<String>,
) -> Field<T> {
    Field { names, unit, value }
}

/// Nothing of this kind exists.
fn none<T>(_: &T) -> Option<String> {
    None
}

fn mebibytes(bytes: u64) -> Option<String> {
    Some((bytes >> 20).to_string())
}

fn some(text: impl ToString) -> Option<String> {
    Some(text.to_string())
}

/// A count of errors of memory, if that memory finds any.
fn errors(gpu: &Gpu) -> Option<String> {
    gpu.devices.chip.has_ecc().then(|| "0".to_owned())
}

fn ecc(gpu: &Gpu) -> Option<String> {
    gpu.devices.chip.has_ecc().then(|| "Enabled".to_owned())
}

/// Whether a device that could be split into parts is: none is.
pub fn mig(gpu: &Gpu) -> Option<String> {
    matches!(gpu.devices.chip.capability, 80 | 90 | 100 | 103).then(|| "Disabled".to_owned())
}

fn clock(gpu: &Gpu) -> Option<String> {
    some(gpu.devices.chip.clock)
}

fn memory_clock(gpu: &Gpu) -> Option<String> {
    some(gpu.devices.chip.memory_clock)
}

/// The present time, in UTC, as `2026/11/28 03:35:03.123`.
pub fn now() -> String {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, of_day) = (time.as_secs(), time.as_secs() % 86_400);
    // Days since 0000-03-01, in which leap days end years and years end eras of 400.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) =
        (era * 400 + year + u64::from(month >= 10), if month < 10 { month + 3 } else { month - 9 });
    format!(
        "{year:04}/{month:02}/{day:02} {:02}:{:02}:{:02}.{:03}",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
        time.subsec_millis()
    )
}

/// The fields of a device.
pub const GPU: &[Field<Gpu>] = &[
    field(&["timestamp"], "", |_| some(now())),
    field(&["driver_version"], "", |_| some(devices::DRIVER_VERSION)),
    field(&["count"], "", |gpu| some(gpu.devices.count)),
    field(&["index"], "", |gpu| some(gpu.number)),
    field(&["name", "gpu_name"], "", |gpu| some(&gpu.devices.name)),
    field(&["uuid", "gpu_uuid"], "", |gpu| some(uuid_text(gpu.number))),
    field(&["serial", "gpu_serial"], "", none),
    field(&["compute_cap"], "", |gpu| {
        some(format_args!("{}.{}", gpu.devices.chip.major(), gpu.devices.chip.minor()))
    }),
    field(&["pci.bus_id", "gpu_bus_id"], "", |gpu| some(gpu.bus_id())),
    field(&["pci.domain"], "", |_| some("0x0000")),
    field(&["pci.bus"], "", |gpu| some(format_args!("0x{:02X}", devices::bus(gpu.number)))),
    field(&["pci.device"], "", |_| some("0x00")),
    field(&["pci.device_id"], "", |_| some("0x000010DE")),
    field(&["pci.sub_device_id"], "", |_| some("0x00000000")),
    field(&["memory.total"], "MiB", |gpu| mebibytes(gpu.devices.memory)),
    field(&["memory.reserved"], "MiB", |_| some(0)),
    field(&["memory.used"], "MiB", |gpu| mebibytes(gpu.used())),
    field(&["memory.free"], "MiB", |gpu| mebibytes(gpu.devices.memory - gpu.used())),
    field(&["utilization.gpu"], "%", |_| some(0)),
    field(&["utilization.memory"], "%", |_| some(0)),
    field(&["utilization.encoder"], "%", |_| some(0)),
    field(&["utilization.decoder"], "%", |_| some(0)),
    field(&["utilization.jpeg"], "%", |_| some(0)),
    field(&["utilization.ofa"], "%", |_| some(0)),
    field(&["encoder.stats.sessionCount"], "", |_| some(0)),
    field(&["encoder.stats.averageFps"], "", |_| some(0)),
    field(&["encoder.stats.averageLatency"], "", |_| some(0)),
    field(&["display_mode", "display_attached"], "", |_| some("Disabled")),
    field(&["display_active"], "", |_| some("Disabled")),
    field(&["persistence_mode"], "", |_| some("Disabled")),
    field(&["compute_mode"], "", |_| some("Default")),
    field(&["mig.mode.current"], "", mig),
    field(&["mig.mode.pending"], "", mig),
    field(&["ecc.mode.current"], "", ecc),
    field(&["ecc.mode.pending"], "", ecc),
    field(&["ecc.errors.corrected.volatile.total"], "", errors),
    field(&["ecc.errors.corrected.aggregate.total"], "", errors),
    field(&["ecc.errors.uncorrected.volatile.total"], "", errors),
    field(&["ecc.errors.uncorrected.aggregate.total"], "", errors),
    field(&["pstate"], "", |_| some("P0")),
    field(&["clocks.current.graphics", "clocks.gr"], "MHz", clock),
    field(&["clocks.current.sm", "clocks.sm"], "MHz", clock),
    field(&["clocks.current.memory", "clocks.mem"], "MHz", memory_clock),
    field(&["clocks.current.video", "clocks.video"], "MHz", none),
    field(&["clocks.applications.graphics", "clocks.applications.gr"], "MHz", clock),
    field(&["clocks.applications.memory", "clocks.applications.mem"], "MHz", memory_clock),
    field(&["clocks.default_applications.graphics", "clocks.default_applications.gr"], "MHz", clock),
    field(&["clocks.default_applications.memory", "clocks.default_applications.mem"], "MHz", memory_clock),
    field(&["clocks.max.graphics", "clocks.max.gr"], "MHz", clock),
    field(&["clocks.max.sm"], "MHz", clock),
    field(&["clocks.max.memory", "clocks.max.mem"], "MHz", memory_clock),
    field(&["clocks_event_reasons.active", "clocks_throttle_reasons.active"], "", |_| {
        some("0x0000000000000000")
    }),
    field(&["clocks_event_reasons.supported", "clocks_throttle_reasons.supported"], "", |_| {
        some("0x0000000000000000")
    }),
    field(&["temperature.gpu"], "", none),
    field(&["temperature.memory"], "", none),
    field(&["fan.speed"], "%", none),
    field(&["power.draw"], "W", none),
    field(&["power.draw.average"], "W", none),
    field(&["power.draw.instant"], "W", none),
    field(&["power.limit"], "W", none),
    field(&["power.default_limit"], "W", none),
    field(&["power.min_limit"], "W", none),
    field(&["power.max_limit"], "W", none),
    field(&["enforced.power.limit"], "W", none),
    field(&["power.management"], "", none),
    field(&["pcie.link.gen.current", "pcie.link.gen.gpucurrent"], "", none),
    field(&["pcie.link.gen.max", "pcie.link.gen.gpumax"], "", none),
    field(&["pcie.link.gen.hostmax"], "", none),
    field(&["pcie.link.width.current"], "", none),
    field(&["pcie.link.width.max"], "", none),
    field(&["vbios_version"], "", none),
    field(&["inforom.img", "inforom.image"], "", none),
    field(&["inforom.oem"], "", none),
    field(&["inforom.ecc"], "", none),
    field(&["inforom.pwr", "inforom.power"], "", none),
    field(&["gom.current", "gpu_operation_mode.current"], "", none),
    field(&["gom.pending", "gpu_operation_mode.pending"], "", none),
    field(&["driver_model.current"], "", none),
    field(&["driver_model.pending"], "", none),
    field(&["accounting.mode"], "", none),
    field(&["accounting.buffer_size"], "", none),
    field(&["addressing_mode"], "", none),
    field(&["retired_pages.pending"], "", none),
    field(&["fabric.state"], "", none),
    field(&["fabric.status"], "", none),
];

/// A process on a device: its number, and its bytes of memory.
pub type App = (Gpu, (u32, u64));

/// The fields of a process.
pub const APPS: &[Field<App>] = &[
    field(&["timestamp"], "", |_| some(now())),
    field(&["pid"], "", |(_, (id, _))| some(id)),
    field(&["process_name", "name"], "", |(_, (id, _))| some(name_of_process(*id))),
    field(&["used_gpu_memory", "used_memory"], "MiB", |(_, (_, bytes))| mebibytes(*bytes)),
    field(&["gpu_name"], "", |(gpu, _)| some(&gpu.devices.name)),
    field(&["gpu_uuid"], "", |(gpu, _)| some(uuid_text(gpu.number))),
    field(&["gpu_bus_id"], "", |(gpu, _)| some(gpu.bus_id())),
    field(&["gpu_serial"], "", none),
];

/// The names of all fields.
pub fn help() -> String {
    fn names<T>(fields: &[Field<T>]) -> String {
        let names = fields.iter().map(|field| field.names.join(" or "));
        names.map(|names| format!("  {names}")).collect::<Vec<_>>().join("\n")
    }
    format!("Fields of --query-gpu:\n{}\n\nFields of --query-compute-apps:\n{}", names(GPU), names(APPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_taken_twice() {
        let mut names: Vec<_> = GPU.iter().flat_map(|field| field.names).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_time_is_one_of_a_calendar() {
        let time = now();
        let numbers: Vec<u32> = time.split(['/', ' ', ':', '.']).map(|part| part.parse().unwrap()).collect();
        assert_eq!(time.len(), "2026/11/28 03:35:03.123".len());
        assert!(
            numbers[0] > 2025 && (1..=12).contains(&numbers[1]) && (1..=31).contains(&numbers[2]),
            "{time}"
        );
    }
}
