//! Observers see every access with its addresses, order and scope, and every barrier; and they can stop a run.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use machine::{
    AccessEvent, AccessKind, AsyncEvent, BarrierArrival, BarrierRelease, BlockAccess, BlockAddresses, Device,
    FaultKind, FenceEvent, LaneAccess, LaunchConfig, LaunchError, LaunchObserver, ObserverHandle, Order,
    Scope, Semantics,
};

/// What was seen, in words that are easy to compare.
#[derive(Default)]
struct Notes {
    lines: Vec<String>,
    /// Accesses before one is stopped.
    patience: Option<usize>,
}

/// `Load weak Global 0:0+4 1:4+4`: kind, semantics, space, then of every lane the thread, the place in the array or in the
/// space, and the size.
fn line(access: &AccessEvent, array: u64) -> String {
    let mut text = format!("{:?} {:?} {:?}", access.kind, access.semantics, access.space);
    let place = |lane: &LaneAccess| match lane.address.checked_sub(array) {
        Some(offset) if lane.address >= machine::ARENA_BASE => offset,
        _ => lane.address,
    };
    for lane in access.lanes {
        text += &format!(" {}:{}+{}", lane.thread, place(lane), lane.bytes);
    }
    text
}

struct Recorder {
    notes: Arc<Mutex<Notes>>,
    array: u64,
}

impl LaunchObserver for Recorder {
    fn access(&mut self, access: &AccessEvent) -> ControlFlow<()> {
        let mut notes = self.notes.lock().unwrap();
        notes.lines.push(line(access, self.array));
        match &mut notes.patience {
            Some(0) => ControlFlow::Break(()),
            Some(left) => {
                *left -= 1;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Continue(()),
        }
    }

    fn barrier_arrive(&mut self, arrival: &BarrierArrival) -> ControlFlow<()> {
        let BarrierArrival { block, barrier, waits, threads, .. } = arrival;
        let (first, last) = (threads[0], threads[threads.len() - 1]);
        let line = format!("arrive {}: {barrier} {first}..={last} {waits}", block[0]);
        self.notes.lock().unwrap().lines.push(line);
        ControlFlow::Continue(())
    }

    fn async_step(&mut self, event: &AsyncEvent) {
        let line = format!("{:?} {:?}", event.step, event.threads);
        self.notes.lock().unwrap().lines.push(line);
    }

    fn fence(&mut self, fence: &FenceEvent) {
        let line = format!("fence {:?} {:?}", fence.semantics, fence.threads);
        self.notes.lock().unwrap().lines.push(line);
    }

    fn barrier_release(&mut self, release: &BarrierRelease) -> ControlFlow<()> {
        let line = format!("release {}: {}", release.block[0], release.barrier);
        self.notes.lock().unwrap().lines.push(line);
        ControlFlow::Continue(())
    }
}

/// Launches a kernel with one array of 256 bytes; `observer` is made for its address.
fn launch(
    body: &str,
    grid: u32,
    block: u32,
    observer: impl FnOnce(u64) -> ObserverHandle,
) -> Result<(), LaunchError> {
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 16 .b8 tile[512];\n.shared .b64 bar;\n\
         .visible .entry test(.param .u64 out) {{\n.reg .u64 %a, %b, %state; .reg .u32 %t, %r<8>; .reg .pred %p;\n\
         mov.u32 %t, %tid.x;\nld.param.u64 %a, [out];\n{body}\nret;\n}}\n"
    );
    let source = diag::SourceFile::new("test.ptx", text);
    let (tree, parsed) = syntax::parse(&source);
    let (module, diagnostics) = check::check(&source, &tree, parsed, &check::Options::default());
    let program = ir::lower(module.unwrap_or_else(|| panic!("{diagnostics:?}")), &ir::Options::ALL);
    let device = Device::new();
    let module = device.load(Arc::new(program)).expect("a module");
    let array = device.allocate(256, "out").expect("memory");
    let mut config = LaunchConfig::new([grid, 1, 1], [block, 1, 1]);
    config.threads = Some(1);
    config.observer = Some(observer(array));
    vm::run(&device.prepare(&module, "test", config, array.to_le_bytes().to_vec())?).map(|_| ())
}

/// Launches a kernel with one array of 256 bytes; what was seen, and how it ended.
fn run(body: &str, grid: u32, block: u32, patience: Option<usize>) -> (Vec<String>, Result<(), LaunchError>) {
    let notes = Arc::new(Mutex::new(Notes { lines: Vec::new(), patience }));
    let recorder = |array| {
        let recorder = Recorder { notes: Arc::clone(&notes), array };
        ObserverHandle::new(Arc::new(Mutex::new(recorder)))
    };
    let result = launch(body, grid, block, recorder);
    let lines = std::mem::take(&mut notes.lock().unwrap().lines);
    (lines, result)
}

fn seen(body: &str, block: u32) -> Vec<String> {
    let (lines, result) = run(body, 1, block, None);
    result.unwrap_or_else(|error| panic!("{error}"));
    lines
}

#[test]
fn loads_stores_and_atomics_are_seen() {
    let lines = seen(
        "mad.wide.u32 %b, %t, 4, %a;\nld.global.u32 %r0, [%b];\nadd.u32 %r0, %r0, 1;\nst.global.u32 [%b], %r0;\n\
         setp.eq.u32 %p, %t, 1;\n@%p ld.acquire.gpu.u64 %b, [%a+8];\n@%p atom.global.add.u32 %r1, [%a+16], 1;\n\
         @%p st.shared.v2.u32 [tile+8], {%r0, %r1};\n@!%p st.volatile.global.u8 [%a+3], %r0;",
        2,
    );
    assert_eq!(
        lines,
        [
            "Load weak Global 0:0+4 1:4+4",
            "Store weak Global 0:0+4 1:4+4",
            "Load acquire.gpu Generic 1:8+8",
            "Atomic relaxed.gpu Global 1:16+4",
            "Store weak Shared 1:8+8",
            "Store volatile.sys Global 0:3+1",
        ]
    );
}

#[test]
fn copies_and_mbarriers_are_seen() {
    let lines = seen(
        "setp.eq.u32 %p, %t, 0;\nmov.u32 %r0, 4;\n@%p cp.async.ca.shared.global [tile], [%a], 8, %r0;\n\
         cp.async.wait_all;\n@%p bra one;\nbra.uni end;\none:\nmbarrier.init.shared.b64 [bar], 1;\n\
         mbarrier.arrive.expect_tx.shared.b64 %state, [bar], 32;\n\
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+64], [%a+32], 32, [bar];\n\
         mbarrier.try_wait.shared.b64 %p, [bar], %state;\nend:",
        2,
    );
    // The object lies behind the tile and a gap.
    let bar = lines[2].split([':', '+']).nth(1).expect("an address").to_owned();
    let expected = [
        "CopyRead weak Global 0:0+4".to_owned(),
        "CopyWrite weak Shared 0:0+8".to_owned(),
        format!("Mbarrier weak Shared 0:{bar}+8"),
        format!("Mbarrier release.cta Shared 0:{bar}+8"),
        "CopyRead weak Global 0:32+32".to_owned(),
        "CopyWrite weak Shared 0:64+32".to_owned(),
        format!("Mbarrier release.cluster Shared 0:{bar}+8"),
        format!("MbarrierTest acquire.cta Shared 0:{bar}+8"),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn waits_and_fences_are_seen_of_those_who_execute_them() {
    let lines = seen(
        "setp.eq.u32 %p, %t, 1;\n@%p cp.async.bulk.commit_group;\n@%p cp.async.bulk.wait_group.read 2;\n\
         cp.async.bulk.wait_group 1;\n@!%p fence.acq_rel.cluster;\nwgmma.fence.sync.aligned;\n\
         wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 3;\nsetmaxnreg.dec.sync.aligned.u32 40;",
        2,
    );
    let expected = [
        "CommitBulk [1]",
        "WaitBulk { pending: 2, read: true } [1]",
        "WaitBulk { pending: 1, read: false } [0, 1]",
        "fence acq_rel.cluster [0]",
        "FenceProducts [0, 1]",
        "CommitProducts [0, 1]",
        "WaitProducts(3) [0, 1]",
        "SetRegisters { increase: false, count: 40 } [0, 1]",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn matrices_are_seen_row_by_row() {
    let lines = seen(
        "mov.u64 %b, tile;\nmul.wide.u32 %state, %t, 16;\nadd.u64 %b, %b, %state;\n\
         ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%b];\n\
         stmatrix.sync.aligned.m8n8.x2.shared.b16 [%b], {%r0, %r1};",
        32,
    );
    let rows = |count: usize| (0..count).map(|row| format!(" {row}:{}+16", 16 * row)).collect::<String>();
    assert_eq!(
        lines,
        [format!("MatrixLoad weak Shared{}", rows(8)), format!("MatrixStore weak Shared{}", rows(16))]
    );
    let lines = seen(
        ".reg .b32 %m<8>;\nmov.u64 %b, tile;\n\
         wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%m0, %m1, %m2, %m3, %m4, %m5, %m6, %m7}, [%b];",
        32,
    );
    let rows: String = (0..16).map(|row| format!(" 0:{}+32", 32 * row)).collect();
    assert_eq!(lines, [format!("MatrixLoad weak Shared{rows}")]);
}

#[test]
fn factors_behind_descriptors_are_seen() {
    // Neither is swizzled: 8 rows of 16 bytes stand together, the next 16 bytes of them 128 bytes further, the next rows 256.
    let lines = seen(
        ".shared .align 128 .b8 factors[2304];\n.reg .f32 %d<4>;\nmov.u64 %b, factors;\nshr.u64 %b, %b, 4;\n\
         or.b64 %b, %b, 0x1000080000;\nadd.u64 %state, %b, 128;\nsetp.eq.u32 %p, %t, %t;\n\
         wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %b, \
         %state, %p, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;",
        128,
    );
    let parts = |line: &str| -> Vec<(u32, u64)> {
        let parts = line.strip_prefix("MatrixLoad weak Shared ").expect("a load").split(' ');
        let part = |part: &str| {
            let (thread, rest) = part.split_once(':').expect("a thread");
            (thread.parse().unwrap(), rest.strip_suffix("+16").expect("16 bytes").parse().unwrap())
        };
        parts.map(part).collect()
    };
    let loads: Vec<&String> = lines.iter().filter(|line| line.starts_with("MatrixLoad")).collect();
    let [a, b] = loads[..] else { panic!("{lines:?}") };
    let (mut a, mut b) = (parts(a), parts(b));
    a.sort_unstable();
    b.sort_unstable();
    let start = a[0].1;
    // A warp has 16 rows of A, and all of B.
    let of_a: Vec<_> = (0..128).map(|i| (i / 32 * 32, start + 16 * u64::from(i))).collect();
    let of_b: Vec<_> = (0..64).map(|i| (i / 16 * 32, start + 2048 + 16 * u64::from(i % 16))).collect();
    assert_eq!(a, of_a);
    assert_eq!(b, of_b);
}

#[test]
fn barriers_are_seen_in_every_block() {
    let count = |lines: &[String], word: &str| lines.iter().filter(|line| line.starts_with(word)).count();
    // All at once, and after they have been apart.
    for body in [
        "bar.sync 3;",
        "setp.ge.u32 %p, %t, 32;\n@%p bra wait;\nst.shared.u32 [tile], %t;\nwait:\nbar.sync 3;",
    ] {
        let (lines, result) = run(body, 2, 64, None);
        result.expect("a launch");
        for block in 0..2 {
            assert!(lines.contains(&format!("release {block}: 3")), "{body}: {lines:?}");
        }
        assert!(count(&lines, "arrive") >= 2 && count(&lines, "release") == 2, "{lines:?}");
    }
    assert_eq!(seen("bar.sync 3;", 64), ["arrive 0: 3 0..=63 true", "release 0: 3"]);
    // One warp arrives, the other waits for it.
    let lines = seen("setp.ge.u32 %p, %t, 32;\n@%p bar.arrive 1, 64;\n@!%p bar.sync 1, 64;", 64);
    assert!(lines.contains(&"arrive 0: 1 32..=63 false".to_owned()), "{lines:?}");
    assert!(lines.contains(&"arrive 0: 1 0..=31 true".to_owned()), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("release 0: 1"));
}

#[test]
fn an_observer_stops_a_run_before_the_access() {
    let body = "again:\nmad.wide.u32 %b, %t, 4, %a;\nst.global.u32 [%b], %t;\nbra again;";
    let (lines, result) = run(body, 1, 2, Some(5));
    assert_eq!(lines.len(), 6);
    match result {
        Err(LaunchError::Fault(fault)) => {
            assert_eq!(fault.kind, FaultKind::Stopped);
            assert_eq!(
                fault.to_string(),
                "stopped by an observer in kernel `test`, block (0,0,0), thread (0,0,0)"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn events_tell_kinds_and_semantics_apart() {
    assert!(AccessKind::Atomic.reads() && AccessKind::Atomic.writes() && !AccessKind::CopyRead.writes());
    let semantics = Semantics { order: Order::Release, scope: Some(Scope::Sys) };
    assert!(semantics.order.releases() && !semantics.order.acquires() && semantics.is_strong());
}

/// Who accessed what: start of the instruction, `%ctaid.x`, thread, space, address and bytes.
type Accesses = std::collections::BTreeSet<(u32, u32, u32, String, u64, u64)>;

/// Takes accesses of blocks as a whole, of all threads or some.
#[derive(Default)]
struct Wholes {
    /// Bits of the threads that are left to be told of, in each word.
    left: u64,
    whole: Accesses,
    each: Accesses,
}

impl LaunchObserver for Wholes {
    fn block_access(&mut self, access: &BlockAccess) -> ControlFlow<(), [u64; 16]> {
        let taken =
            (0..1024u32).filter(|&t| (access.threads[t as usize / 64] & !self.left) >> (t % 64) & 1 != 0);
        for thread in taken {
            let address = match access.addresses {
                BlockAddresses::Even { start, width, step, pitch } => start
                    .wrapping_add(u64::from(thread % width).wrapping_mul(step))
                    .wrapping_add(u64::from(thread / width).wrapping_mul(pitch)),
                BlockAddresses::Each(all) => all[thread as usize],
            };
            let (start, space) = (access.span.start, format!("{:?}", access.space));
            self.whole.insert((start, access.block[0], thread, space, address, access.bytes));
        }
        ControlFlow::Continue(access.threads.map(|word| word & self.left))
    }

    fn access(&mut self, access: &AccessEvent) -> ControlFlow<()> {
        self.each.extend(access.lanes.iter().map(|lane| {
            let space = format!("{:?}", lane.space);
            (access.span.start, lane.block[0], lane.thread, space, lane.address, lane.bytes)
        }));
        ControlFlow::Continue(())
    }
}

#[test]
fn blocks_are_told_of_as_a_whole() {
    let body = "mad.wide.u32 %b, %t, 4, %a;\nand.b32 %r1, %t, 15;\nmad.wide.u32 %b, %r1, 4, %a;\nld.global.u32 %r0, [%b];\n\
                cvta.global.u64 %b, %b;\nst.u32 [%b], %r0;\nshl.b32 %r2, %t, 2;\nmov.u32 %r3, tile;\nadd.u32 %r2, %r2, %r3;\n\
                st.shared.u32 [%r2], %t;\nsetp.lt.u32 %p, %t, 40;\n@%p ld.shared.u32 %r4, [%r2];\n\
                mul.lo.u32 %r5, %t, %t;\nand.b32 %r5, %r5, 60;\nadd.u32 %r5, %r5, %r3;\n\
                @!%p atom.shared.add.u32 %r6, [%r5], 1;\nld.global.u8 %r7, [%a+3];\n\
                mov.u32 %r0, %ctaid.x;\nmad.wide.u32 %b, %r0, 16, %a;\nld.global.u32 %r0, [%b];";
    for (grid, block) in [(1, 64), (5, 64), (5, 96), (3, 48), (4, 32)] {
        let seen = |left| {
            let observer = Arc::new(Mutex::new(Wholes { left, ..Wholes::default() }));
            launch(body, grid, block, |_| ObserverHandle::new(Arc::clone(&observer))).expect("a launch");
            let mut observer = observer.lock().unwrap();
            (std::mem::take(&mut observer.whole), std::mem::take(&mut observer.each))
        };
        let (none, all) = seen(u64::MAX);
        assert_eq!(none, Accesses::new());
        assert!(all.len() > 4 * (grid * block) as usize, "{}", all.len());
        for left in [0, 1 << 7, 0xffff_0000_0000_ff00] {
            let (whole, each) = seen(left);
            assert!(whole.is_disjoint(&each));
            assert_eq!(each.is_empty(), left == 0);
            assert_eq!(whole.union(&each).cloned().collect::<Accesses>(), all, "{grid} {block} {left:x}");
        }
    }
}
