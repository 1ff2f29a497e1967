//! The table that comes without options, in the columns of NVIDIA's.

use super::fields::mig;
use super::{Gpu, name_of_process};

const RULE: &str =
    "+-----------------------------------------+------------------------+----------------------+";
const WIDE: &str =
    "+-----------------------------------------------------------------------------------------+";

/// A text of exactly so many characters.
fn fit(text: &str, width: usize) -> String {
    let cut: String = text.chars().take(width).collect();
    format!("{cut:<width$}")
}

/// The table of these devices, and of who uses them.
pub fn table(gpus: &[Gpu]) -> String {
    let (driver, cuda) = (devices::DRIVER_VERSION, devices::CUDA_VERSION);
    let cuda = format!("{}.{}", cuda / 1000, cuda % 1000 / 10);
    let mut lines = vec![
        format!("{} UTC, by ptxvm: the devices are emulated on the CPU", super::fields::now()),
        WIDE.to_owned(),
        format!("| NVIDIA-SMI {driver:<22} Driver Version: {driver:<14} CUDA Version: {cuda:<8} |"),
        "|-----------------------------------------+------------------------+----------------------|"
            .to_owned(),
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |"
            .to_owned(),
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |"
            .to_owned(),
        "|                                         |                        |               MIG M. |"
            .to_owned(),
        "|=========================================+========================+======================|"
            .to_owned(),
    ];
    for gpu in gpus {
        let name = fit(&gpu.devices.name, 30);
        let ecc = if gpu.devices.chip.has_ecc() { "0" } else { "N/A" };
        let (used, all) = (gpu.used() >> 20, gpu.devices.memory >> 20);
        let memory = format!("{used}MiB / {all:>6}MiB");
        lines.extend([
            format!("| {:>3}  {name} Off | {:>18} Off | {ecc:>20} |", gpu.number, gpu.bus_id()),
            format!(
                "| N/A   N/A    P0              N/A /  N/A | {memory:>22} | {:>8} {:>11} |",
                "0%", "Default"
            ),
            format!("| {:39} | {:22} | {:>20} |", "", "", mig(gpu).as_deref().unwrap_or("N/A")),
            RULE.to_owned(),
        ]);
    }
    lines.extend([
        String::new(),
        WIDE.to_owned(),
        "| Processes:                                                                              |"
            .to_owned(),
        "|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |"
            .to_owned(),
        "|        ID   ID                                                               Usage      |"
            .to_owned(),
        "|=========================================================================================|"
            .to_owned(),
    ]);
    let of = |gpu: &Gpu| gpu.processes.iter().map(|process| (gpu.number, *process)).collect::<Vec<_>>();
    let processes: Vec<_> = gpus.iter().flat_map(of).collect();
    for (number, (id, bytes)) in &processes {
        let (name, memory) = (fit(&name_of_process(*id), 39), format!("{}MiB", bytes >> 20));
        lines.push(format!("|  {number:>3}   N/A  N/A {id:>10}      C   {name} {memory:>11} |"));
    }
    if processes.is_empty() {
        lines.push(format!("| {:<87} |", " No running processes found"));
    }
    lines.push(WIDE.to_owned());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_are_as_wide_as_the_rules() {
        let long = |name: &str| (name == "PTXVM_DEVICE_NAME").then(|| "Ä very long ".repeat(9));
        let devices = std::sync::Arc::new(devices::Devices::of(long));
        let gpu = |number, processes| Gpu { number, devices: std::sync::Arc::clone(&devices), processes };
        let text = table(&[gpu(0, vec![(std::process::id(), 5 << 20)]), gpu(1, vec![])]);
        let widths = text.lines().skip(1).filter(|line| !line.is_empty()).map(|line| line.chars().count());
        assert!(widths.clone().all(|width| width == WIDE.len()), "{text}");
        assert!(text.contains("5MiB / ") && text.contains("CUDA Version: 13.5"), "{text}");
    }
}
