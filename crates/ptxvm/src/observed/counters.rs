//! Counters of a launch: instructions, sectors and passes over shared memory, and how many of its blocks a GPU runs at a
//! time.
//!
//! Where Nsight Compute counts the same, a counter has its name. It counts machine instructions, which the counts of PTX
//! instructions here are not.

use std::collections::BTreeMap;
use std::fmt::Write;

use check::module::Body;
use diag::Span;
use isa::Space;
use machine::{AccessKind, KernelAttributes, Profile};
use serde_json::{Value, json};
use tools::{Counters, RequestCounts};

use super::{instruction, json_place};
use crate::{Chip, Module, Occupancy, OccupancyLimit, Places};

/// Opcodes of the instruction mix that are shown.
const SHOWN_OPCODES: usize = 12;

/// The counters of a launch.
#[derive(Debug)]
pub struct Report<'a> {
    module: &'a Module,
    places: Places,
    counters: &'a Counters,
    profile: &'a Profile,
    /// The GPU of the module's target, the estimated registers of a thread, and how many blocks it runs at a time.
    occupancy: Option<(Chip, u32, Occupancy)>,
}

/// The name of Nsight Compute for the operation, as `l1tex__t_requests_pipe_lsu_mem_global_op_ld` ends.
fn operation(opcode: &str, kind: AccessKind) -> Option<&'static str> {
    match kind {
        AccessKind::Load => Some("ld"),
        AccessKind::Store => Some("st"),
        AccessKind::Atomic if opcode == "red" => Some("red"),
        AccessKind::Atomic => Some("atom"),
        _ => None,
    }
}

impl<'a> Report<'a> {
    /// The report of a launch, from its requests and the profile of the same launch. `block` are the extents of its
    /// blocks, and `dynamic` the bytes of their dynamic shared memory.
    pub fn new(
        module: &'a Module,
        (counters, profile): (&'a Counters, &'a Profile),
        attributes: Option<&KernelAttributes>,
        block: [u32; 3],
        dynamic: u64,
    ) -> Report<'a> {
        let chip = Chip::of_capability(module.program().module.target.number.into());
        let occupancy = chip.zip(attributes).map(|(chip, attributes)| {
            let (registers, shared) = (attributes.estimated_registers(), attributes.shared_bytes + dynamic);
            (chip, registers, chip.occupancy(block.iter().product(), registers, shared))
        });
        Report { module, places: module.places(), counters, profile, occupancy }
    }

    /// By span: the opcode.
    fn opcodes(&self) -> BTreeMap<Span, &'static str> {
        let functions = self.module.program().module.functions.iter();
        let bodies = functions.filter_map(|function| function.body.as_ref());
        bodies.flat_map(Body::instructions).map(|i| (i.span, i.form.opcode.name())).collect()
    }

    /// Opcodes with the executions by warps, the most frequent first, and the number of all.
    fn mix(&self) -> (Vec<(&'static str, u64)>, u64) {
        let opcodes = self.opcodes();
        let mut mix: BTreeMap<&str, u64> = BTreeMap::new();
        for (span, counts) in &self.profile.instructions {
            if let Some(opcode) = opcodes.get(span) {
                *mix.entry(opcode).or_default() += counts.executions;
            }
        }
        let mut mix: Vec<_> = mix.into_iter().filter(|(_, count)| *count > 0).collect();
        mix.sort_by_key(|&(opcode, count)| (std::cmp::Reverse(count), opcode));
        let all = mix.iter().map(|(_, count)| count).sum();
        (mix, all)
    }

    /// The sums by space and operation.
    fn sums(&self) -> BTreeMap<(&'static str, &'static str), RequestCounts> {
        let opcodes = self.opcodes();
        let mut sums: BTreeMap<_, RequestCounts> = BTreeMap::new();
        for (span, space, kind, counts) in self.counters.counts() {
            let opcode = opcodes.get(&span).copied().unwrap_or_default();
            if let (Some(space), Some(operation)) = (space_name(space), operation(opcode, kind)) {
                sums.entry((space, operation)).or_default().add(counts);
            }
        }
        sums
    }

    /// The metrics that Nsight Compute defines in the same way, with its names.
    fn metrics(&self) -> Vec<(String, f64)> {
        let mut metrics = Vec::new();
        for ((space, op), counts) in self.sums() {
            let name =
                |metric: &str, suffix: &str| format!("l1tex__{metric}_pipe_lsu_mem_{space}_op_{op}.{suffix}");
            match space {
                "global" => {
                    metrics.push((name("t_requests", "sum"), counts.requests as f64));
                    metrics.push((name("t_sectors", "sum"), counts.sectors as f64));
                    let ratio = counts.sectors as f64 / counts.requests.max(1) as f64;
                    metrics.push((name("average_t_sectors_per_request", "ratio"), ratio));
                }
                "shared" if matches!(op, "ld" | "st") => {
                    let wavefronts = format!("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum");
                    metrics.push((wavefronts, counts.wavefronts as f64));
                    metrics.push((name("data_bank_conflicts", "sum"), counts.conflicts as f64));
                }
                _ => {}
            }
        }
        metrics
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some((chip, registers, occupancy)) = &self.occupancy {
            let Occupancy { blocks, warps, most_warps, limit, .. } = occupancy;
            let limit = limit_name(*limit);
            let percent = 100.0 * f64::from(*warps) / f64::from(*most_warps);
            let _ = writeln!(
                text,
                "occupancy on {}: {blocks} blocks a multiprocessor, {warps} of {most_warps} warps ({percent:.0} %), bounded by \
                 {limit}; some {registers} registers a thread",
                chip.name
            );
        }
        let (mix, all) = self.mix();
        let share = |count: u64| format!("{:.1} %", 100.0 * count as f64 / all.max(1) as f64);
        let shown: Vec<_> = mix
            .iter()
            .take(SHOWN_OPCODES)
            .map(|&(opcode, count)| format!("{opcode} {}", share(count)))
            .collect();
        let _ = writeln!(text, "{} instructions by warps: {}", all, shown.join(", "));
        let threads: u64 =
            self.profile.instructions.values().map(|counts| counts.threads - counts.guarded_off).sum();
        let diverged: u64 = self.profile.instructions.values().map(|counts| counts.diverged).sum();
        let lanes = threads as f64 / all.max(1) as f64;
        let _ = writeln!(text, "{lanes:.2} of 32 lanes active on average, {} divergent branches", diverged);
        for ((space, op), counts) in self.sums() {
            let (bytes, requests) = (counts.bytes, counts.requests);
            let _ = writeln!(text, "{space} {op}: {bytes} bytes in {requests} requests of warps");
        }
        for (name, value) in self.metrics() {
            let value = if value.fract() == 0.0 { value.to_string() } else { format!("{value:.2}") };
            let _ = writeln!(text, "    {name:<72} {value:>12}");
        }
        self.lines(&mut text);
        text.trim_end().to_owned()
    }

    /// The lines whose accesses cost more than they must, the most expensive first.
    fn lines(&self, text: &mut String) {
        let mut lines: Vec<_> = self
            .counters
            .counts()
            .filter_map(|(span, space, _, counts)| {
                let excess = match space {
                    Space::Global => counts.sectors - counts.least_sectors.min(counts.sectors),
                    _ => counts.conflicts,
                };
                (excess > 0).then_some((excess, span, space, counts))
            })
            .collect();
        lines.sort_by_key(|&(excess, span, ..)| (std::cmp::Reverse(excess), span));
        if !lines.is_empty() {
            *text += "accesses that cost more than they must:\n";
        }
        for (_, span, space, counts) in lines.into_iter().take(SHOWN_OPCODES) {
            let place = self.places.at(span);
            let of_request = |count: u64| count as f64 / counts.requests as f64;
            let what = match space {
                Space::Global => format!(
                    "{:.1} sectors a request, {:.1} would do",
                    of_request(counts.sectors),
                    of_request(counts.least_sectors)
                ),
                _ => format!("{:.1} bank conflicts a request", of_request(counts.conflicts)),
            };
            let _ = writeln!(text, "    {}    {what}", instruction(&place));
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let opcodes = self.opcodes();
        let lines = self.counters.counts().map(|(span, space, kind, counts)| {
            let mut object = json_place(&self.places, span);
            let opcode = opcodes.get(&span).copied().unwrap_or_default();
            object["space"] = json!(crate::json::space(space));
            object["operation"] = json!(operation(opcode, kind).unwrap_or("copy"));
            object["requests"] = json!(counts.requests);
            object["threads"] = json!(counts.threads);
            object["bytes"] = json!(counts.bytes);
            if space == Space::Global {
                object["sectors"] = json!(counts.sectors);
                object["least_sectors"] = json!(counts.least_sectors);
            }
            if space == Space::Shared {
                object["wavefronts"] = json!(counts.wavefronts);
                object["bank_conflicts"] = json!(counts.conflicts);
            }
            object
        });
        let (mix, all) = self.mix();
        let occupancy = self.occupancy.as_ref().map(|(chip, registers, occupancy)| {
            json!({
                "gpu": chip.name,
                "registers": registers,
                "blocks": occupancy.blocks,
                "warps": occupancy.warps,
                "most_warps": occupancy.most_warps,
                "bounded_by": limit_name(occupancy.limit),
            })
        });
        json!({
            "instructions": all,
            "mix": mix.into_iter().collect::<BTreeMap<_, _>>(),
            "metrics": self.metrics().into_iter().collect::<BTreeMap<_, _>>(),
            "lines": lines.collect::<Vec<_>>(),
            "occupancy": occupancy,
        })
    }
}

fn space_name(space: Space) -> Option<&'static str> {
    match space {
        Space::Global => Some("global"),
        Space::Shared => Some("shared"),
        Space::Local => Some("local"),
        _ => None,
    }
}

fn limit_name(limit: OccupancyLimit) -> &'static str {
    match limit {
        OccupancyLimit::Threads => "threads",
        OccupancyLimit::SharedMemory => "shared memory",
        OccupancyLimit::Registers => "registers",
        OccupancyLimit::Blocks => "blocks",
    }
}
