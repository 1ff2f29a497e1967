//! What an H100 answered to `tensor.cu` (`conformance/hardware/tensor-*`), against both engines: which maps the driver takes, which
//! copies fault, what copies leave in memory, the bytes that the mbarrier object counts, and what `tensormap.replace` changes.

mod case;
mod maps;
mod memory;

use std::collections::{BTreeMap, HashMap};

use ptxvm::{Arg, Array, Device, Engine, Error, FaultKind, Loaded, Module, tensor_map::TensorMap};

use super::ENGINES;
use case::{Answer, Case, Op};
use memory::{SHARED, WRITTEN, content, words};

const RECORD: &str = "hardware/tensor-NVIDIA-H100-sm_90a.txt.zst";

/// Cases that are not compared: 878 maps that only newer chips know, and 5 words of mbarrier objects.
const LEFT_OUT: usize = 883;

/// Bytes of the tensor's memory for loads: as far as any case reads.
const MEMORY: usize = 2 << 20;

/// The kernel of `tensor.cu` for one kind of copy: its first thread copies the box between the tensor and `tile`, which comes from
/// `from` and goes to `out`, with a word behind it that says whether the phase of the mbarrier object is over.
fn kernel(case: &Case) -> String {
    let rank = case.rank;
    let coordinates = ["%c0", "%c1", "%c2", "%c3", "%c4"][..case.coordinates().len()].join(", ");
    let (tiled, offsets) = match case.is_im2col() {
        false => (".tile", String::new()),
        true => (".im2col_no_offs", format!(", {{{}}}", ["%o0", "%o1", "%o2"][..rank - 2].join(", "))),
    };
    let rank = if case.is_fewer { 2 } else { rank };
    let copy = match &case.op {
        Op::Load | Op::Multicast => {
            let (mode, cast, mask) = match (case.is_im2col(), case.op == Op::Multicast) {
                (true, _) => (".im2col", "", ""),
                (false, true) => ("", ".multicast::cluster", ", %mask"),
                (false, false) => ("", "", ""),
            };
            format!(
                "cp.async.bulk.tensor.{rank}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes{cast} \
                 [%at], [%map, {{{coordinates}}}], [bar]{offsets}{mask};"
            )
        }
        Op::Reduce(operation) => format!(
            "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}{tiled}.bulk_group \
             [%map, {{{coordinates}}}], [%at];"
        ),
        Op::Prefetch => {
            format!("cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [%map, {{{coordinates}}}];")
        }
        _ => format!(
            "cp.async.bulk.tensor.{rank}d.global.shared::cta{tiled}.bulk_group [%map, {{{coordinates}}}], [%at];"
        ),
    };
    let is_load = matches!(case.op, Op::Load | Op::Multicast);
    let copy = match is_load {
        true => format!(
            "@%expects mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], %bytes;\n\
             @%other bra copied;\n{copy}\n\
             copied: barrier.cluster.arrive;\nbarrier.cluster.wait;\n\
             mbarrier.arrive.shared::cta.b64 _, [bar];\n\
             mbarrier.test_wait.parity.shared::cta.b64 %p, [bar], 0;\nselp.u32 %v0, 1, 0, %p;\n"
        ),
        false => {
            format!("{copy}\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nmov.u32 %v0, 1;\n")
        }
    };
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n\
         .visible .entry test(.param .align 64 .b8 map[128], .param .u64 numbers, .param .u64 from, .param .u64 out)\n{{\n\
         .shared .align 1024 .b8 tile[{SHARED}];\n.shared .align 8 .b64 bar;\n\
         .reg .b64 %map, %n, %from, %out, %to;\n.reg .b32 %c<5>, %v<4>, %at, %bytes, %i, %s, %tile, %block;\n\
         .reg .b16 %o<3>, %mask;\n.reg .pred %p, %first, %other, %expects;\n\
         mov.b64 %map, map;\ncvta.param.u64 %map, %map;\nld.param.u64 %n, [numbers];\n\
         ld.param.u64 %from, [from];\nld.param.u64 %out, [out];\n\
         ld.global.b32 %c0, [%n];\nld.global.b32 %c1, [%n+4];\nld.global.b32 %c2, [%n+8];\n\
         ld.global.b32 %c3, [%n+12];\nld.global.b32 %c4, [%n+16];\n\
         ld.global.b16 %o0, [%n+20];\nld.global.b16 %o1, [%n+24];\nld.global.b16 %o2, [%n+28];\n\
         ld.global.b32 %at, [%n+32];\nld.global.b32 %bytes, [%n+36];\nld.global.b16 %mask, [%n+40];\n\
         mov.u32 %tile, tile;\nadd.u32 %at, %at, %tile;\nmov.u32 %block, %cluster_ctarank;\n\
         setp.ne.u32 %other, %block, 0;\ncvt.u32.u16 %v0, %mask;\nshr.u32 %v0, %v0, %block;\nand.b32 %v0, %v0, 1;\n\
         setp.ne.u32 %expects, %v0, 0;\nmad.wide.u32 %out, %block, {block}, %out;\n\
         mov.u32 %i, %tid.x;\nsetp.eq.u32 %first, %i, 0;\nshl.b32 %i, %i, 4;\n\
         fill: cvt.u64.u32 %to, %i;\nadd.u64 %to, %to, %from;\nld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%to];\n\
         add.u32 %s, %tile, %i;\nst.shared.v4.b32 [%s], {{%v0, %v1, %v2, %v3}};\n\
         add.u32 %i, %i, 512;\nsetp.lt.u32 %p, %i, {SHARED};\n@%p bra fill;\n\
         @%first mbarrier.init.shared::cta.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\n\
         fence.proxy.async;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n\
         @!%first bra {others};\n{copy}st.global.u32 [%out+{SHARED}], %v0;\nbra.uni done;\n\
         {waits}done: bar.sync 0;\nmov.u32 %i, %tid.x;\nshl.b32 %i, %i, 4;\n\
         dump: add.u32 %s, %tile, %i;\nld.shared.v4.b32 {{%v0, %v1, %v2, %v3}}, [%s];\n\
         cvt.u64.u32 %to, %i;\nadd.u64 %to, %to, %out;\nst.global.v4.b32 [%to], {{%v0, %v1, %v2, %v3}};\n\
         add.u32 %i, %i, 512;\nsetp.lt.u32 %p, %i, {SHARED};\n@%p bra dump;\nret;\n}}\n",
        block = SHARED + 16,
        others = if is_load { "wait" } else { "done" },
        waits = if is_load { "wait: barrier.cluster.arrive;\nbarrier.cluster.wait;\n" } else { "" },
    )
}

/// The arrays and modules of one engine's cases.
struct Replay {
    device: Device,
    engine: Engine,
    kernels: HashMap<String, Loaded>,
    tensors: HashMap<u32, Array<u8>>,
    sources: HashMap<u32, Array<u8>>,
    out: Array<u8>,
}

impl Replay {
    fn new(engine: Engine) -> Replay {
        let device = Device::new();
        let out = device.array(&vec![0; 2 * (SHARED + 16)]).unwrap();
        let all = HashMap::new;
        Replay { device, engine, kernels: all(), tensors: HashMap::new(), sources: HashMap::new(), out }
    }

    /// What one case leaves, as the GPU wrote it down.
    fn run(&mut self, case: &Case, map: &TensorMap) -> Result<Vec<Answer>, Error> {
        let Replay { device, engine, kernels, tensors, sources, out } = self;
        let text = kernel(case);
        let loaded = kernels.entry(text).or_insert_with_key(|text| {
            let module = Module::from_ptx(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
            device.load(&module).expect("a kernel")
        });
        let is_load = matches!(case.op, Op::Load | Op::Multicast);
        let before = match case.op {
            Op::Reduce(_) => Some(words(case.pattern, 1, WRITTEN)),
            _ => None,
        };
        let written: Array<u8>;
        let tensor = match (is_load, &before) {
            (true, _) => &*tensors
                .entry(case.pattern)
                .or_insert_with(|| device.array(&words(case.pattern, 1, MEMORY)).unwrap()),
            (false, before) => {
                let begin = before.clone().unwrap_or_else(|| vec![memory::UNTOUCHED; WRITTEN]);
                written = device.array(&begin)?;
                &written
            }
        };
        let source = sources.entry(if is_load { u32::MAX } else { case.pattern }).or_insert_with(|| {
            let untouched = || vec![memory::UNTOUCHED; SHARED];
            device.array(&if is_load { untouched() } else { words(case.pattern, 2, SHARED) }).unwrap()
        });
        let mut numbers = case.numbers("coordinates").iter().map(|&at| at as u32).collect::<Vec<_>>();
        numbers.resize(5, 0);
        numbers.extend(case.offsets());
        numbers.extend([case.place, case.expected, if case.op == Op::Multicast { case.mask } else { 1 }]);
        let numbers = device.array(&numbers)?;
        let map = TensorMap { address: tensor.address() + map.address, ..*map };
        let blocks = if case.op == Op::Multicast { 2u32 } else { 1 };
        let launch = loaded.launch("test").grid(blocks).block(32u32).cluster(blocks).engine(*engine);
        launch.arg(Arg::bytes(map.to_bytes())).arg(&numbers).arg(&*source).arg(&*out).run()?;
        let address = case.address as usize;
        if case.op == Op::Prefetch {
            return Ok(Vec::new());
        }
        if !is_load {
            let bytes = tensor.read()?;
            let before = before.as_deref();
            let (length, digest) = content(&bytes[address..], before.map(|before| &before[address..]));
            return Ok(vec![Answer { done: None, length, digest }]);
        }
        let dump = out.read()?;
        let answers = dump.chunks(SHARED + 16).take(blocks as usize).map(|part| {
            let (length, digest) = content(&part[case.place as usize..SHARED], None);
            Answer { done: Some(u32::from(part[SHARED])), length, digest }
        });
        Ok(answers.collect())
    }
}

/// Whether a case says the same on an engine; else how it differs.
fn compare(replay: &mut Replay, case: &Case, map: &TensorMap) -> Result<(), String> {
    let found = match replay.run(case, map) {
        Ok(answers) => answers,
        Err(Error::Fault { fault, .. }) => {
            let status = match fault.kind {
                FaultKind::TensorMap => "cudaErrorIllegalInstruction",
                FaultKind::Misaligned => "cudaErrorMisalignedAddress",
                _ => "another fault",
            };
            return if case.status == status { Ok(()) } else { Err(format!("{:?}", fault.notes)) };
        }
        Err(error) => return Err(error.to_string()),
    };
    if case.status != "cudaSuccess" {
        return Err("no fault".to_owned());
    }
    if found == case.answers { Ok(()) } else { Err(format!("{found:?}")) }
}

#[test]
fn equal_to_what_an_h100_answers() {
    let record = test_utils::record::read(RECORD);
    let mut replays = ENGINES.map(Replay::new);
    let (mut counts, mut differences) = (BTreeMap::<String, usize>::new(), Vec::new());
    for line in record.lines() {
        let case = Case::parse(line);
        let map = maps::described(&case);
        let is_taken = map.is_some_and(|map| map.check().is_ok());
        let mut count = |what: &str| *counts.entry(format!("{} {what}", case.name())).or_default() += 1;
        if let Some(newer) = case.of_newer_chips() {
            assert!(!case.is_encoded, "{line}");
            count(&format!("not compared: {newer}"));
            continue;
        }
        if is_taken != case.is_encoded {
            differences.push(format!("map {:?}: {line}", map.map(|map| map.check())));
            continue;
        }
        let Some(map) = map.filter(|_| is_taken && case.op != Op::Encode) else {
            count("map");
            continue;
        };
        match case.op {
            Op::Calibrate => count("not compared: the bits of an mbarrier object are not public"),
            Op::Replace => match maps::compare(&case, &map) {
                Ok(()) => count("map"),
                Err(difference) => differences.push(format!("{difference}: {line}")),
            },
            _ => {
                for replay in &mut replays {
                    match compare(replay, &case, &map) {
                        Ok(()) => count(&format!("{} on the {:?}", case.status, replay.engine)),
                        Err(difference) => {
                            differences.push(format!("{:?}: {difference}: {line}", replay.engine));
                        }
                    }
                }
            }
        }
    }
    for (what, count) in &counts {
        println!("{count:5} {what}");
    }
    let left_out: usize =
        counts.iter().filter(|(what, _)| what.contains("not compared")).map(|(_, count)| count).sum();
    assert_eq!((record.lines().count(), left_out), (4439, LEFT_OUT));
    let shown = differences.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differ:\n{shown}", differences.len());
}
