//! The live report of a process that ended without a final one (crates/libcuda/src/live.rs describes the file).

use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};
use std::path::Path;
use std::time::Duration;

use ptxvm::process_report::{CALLS, ERRORS, FIRST_KERNEL, PAIRS};
use serde_json::Value;

use super::report::{Kernel, OfProcess};

/// Reads such a file.
///
/// # Errors
/// When the file cannot be read, or the process ended before it described itself.
pub fn read(path: &Path) -> Result<OfProcess> {
    let mut file = BufReader::new(File::open(path)?);
    let mut pairs = vec![[0; 2]; PAIRS];
    for number in pairs.as_flattened_mut() {
        let mut bytes = [0; 8];
        file.read_exact(&mut bytes)?;
        *number = u64::from_ne_bytes(bytes);
    }
    let seconds = |nanoseconds| Duration::from_nanos(nanoseconds).as_secs_f64();
    let mut lines = file.split(b'\n').map(|line| Ok(serde_json::from_slice::<Value>(&line?)?));
    let first = lines.next().unwrap_or_else(|| Err(Error::from(ErrorKind::UnexpectedEof)))?;
    let mut process = OfProcess {
        calls: pairs[CALLS][0],
        call_seconds: seconds(pairs[CALLS][1]),
        errors: pairs[ERRORS][0],
        ..serde_json::from_value(first)?
    };
    // The last line may be truncated.
    for line in lines.map_while(Result::ok) {
        let text = |name: &str| line[name].as_str().map(str::to_owned);
        process.faults.extend(line.get("fault").cloned());
        process.findings.extend(line.get("finding").cloned());
        process.not_supported.extend(text("not_supported"));
        process.not_loaded.extend(text("not_loaded"));
        if let Some(name) = text("kernel") {
            let pair = pairs.get(FIRST_KERNEL + process.kernels.len()).copied().unwrap_or_default();
            process.kernels.push(Kernel { name, launches: pair[0], seconds: seconds(pair[1]) });
        }
    }
    Ok(process)
}
