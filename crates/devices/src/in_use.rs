//! Which processes use the devices, and how much memory each has there.
//!
//! A process that `ptxvm exec` runs keeps these numbers in the file of its live report (crates/libcuda/src/live.rs), which it also keeps
//! locked, so that a process that was killed is told from one that runs. `PTXVM_REPORT` names the files, so the processes of one
//! `ptxvm exec` see each other, and no others.

use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::Path;

use ptxvm::process_report::{DEVICES, FIRST_DEVICE};

/// A process that uses devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// By number of the device: bytes of memory, and contexts.
    pub uses: Vec<(u64, u64)>,
}

impl Process {
    /// The bytes that it has on a device, if it has a context there.
    pub fn bytes_on(&self, device: u32) -> Option<u64> {
        self.uses.get(device as usize).filter(|(_, contexts)| *contexts > 0).map(|(bytes, _)| *bytes)
    }
}

/// The processes that have used the driver, run, and report to the same `ptxvm exec` as this one: none without it.
pub fn processes() -> Vec<Process> {
    let pattern = std::env::var("PTXVM_REPORT").unwrap_or_default();
    let mut found = with_reports(Path::new(&pattern));
    found.sort_by_key(|process| process.id);
    found
}

/// The processes whose live reports have a name after this pattern, in which `%p` stands for the number.
fn with_reports(pattern: &Path) -> Vec<Process> {
    let name = pattern.file_name().and_then(|name| name.to_str());
    let (Some((before, behind)), Some(folder)) =
        (name.and_then(|name| name.split_once("%p")), pattern.parent())
    else {
        return Vec::new();
    };
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let of = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_str()?.strip_prefix(before)?;
        let digits = name.find(|c: char| !c.is_ascii_digit())?;
        let (id, rest) = name.split_at(digits);
        // A child that has inherited the file keeps it locked.
        if !Path::new("/proc").join(id).exists() {
            return None;
        }
        rest.strip_prefix(behind)?.strip_suffix(".live")?;
        Some(Process { id: id.parse().ok()?, uses: uses(&entry.path())? })
    };
    entries.filter_map(|entry| of(entry.ok()?)).collect()
}

/// What the process uses that keeps this file; `None` if it has ended.
fn uses(path: &Path) -> Option<Vec<(u64, u64)>> {
    let mut file = File::open(path).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let mut bytes = vec![0; (FIRST_DEVICE + DEVICES) * 16];
    file.read_exact(&mut bytes).ok()?;
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    let pairs = bytes.chunks_exact(16).map(|pair| (number(&pair[..8]), number(&pair[8..])));
    Some(pairs.skip(FIRST_DEVICE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_is_found_by_its_locked_report() {
        let folder = tempfile::tempdir().unwrap();
        let mut pairs = vec![0u8; 16 * 4096];
        pairs[16 * FIRST_DEVICE..][..8].copy_from_slice(&7u64.to_ne_bytes());
        pairs[16 * FIRST_DEVICE + 8..][..8].copy_from_slice(&1u64.to_ne_bytes());
        // The first process, this one, and one whose number none has.
        let own = std::process::id();
        let [live, ended] = [format!("{own}.json.1.live"), format!("{}.json.0.live", u32::MAX)];
        for name in ["1.json.0.live", &live, "1.json", "x.json.0.live", "1.json.2.live", &ended] {
            std::fs::write(folder.path().join(name), &pairs).unwrap();
        }
        let open = |name| File::open(folder.path().join(name)).unwrap();
        let files = ["1.json.0.live", &live, &ended].map(open);
        files.iter().for_each(|file| file.lock().unwrap());
        let mut found = with_reports(&folder.path().join("%p.json"));
        found.sort_by_key(|process| process.id);
        assert_eq!(found.iter().map(|process| process.id).collect::<Vec<_>>(), [1, own]);
        assert_eq!(
            (found[0].bytes_on(0), found[0].bytes_on(1), found[0].bytes_on(99)),
            (Some(7), None, None)
        );
        assert_eq!(with_reports(&folder.path().join("all.json")), []);
    }
}
