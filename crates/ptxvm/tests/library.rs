//! The library: what its one page promises.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ptxvm::{Arg, Color, Device, Engine, Error, FaultKind, Module, Tools, bf16, f16};

const COPY: &str = "\
.version 7.8
.target sm_90
.address_size 64
.global .u32 launches;
.visible .entry copy(.param .u64 to, .param .u64 from, .param .u32 bytes)
{
    .reg .u64 %to, %from, %w;
    .reg .u32 %i, %n, %t;
    .reg .u16 %b;
    .reg .pred %p;
    mov.u32 %i, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %t, %tid.x;
    mad.lo.u32 %i, %i, %n, %t;
    setp.eq.u32 %p, %i, 0;
    @%p red.global.add.u32 [launches], 1;
    ld.param.u32 %n, [bytes];
    setp.ge.u32 %p, %i, %n;
    @%p ret;
    ld.param.u64 %to, [to];
    ld.param.u64 %from, [from];
    cvt.u64.u32 %w, %i;
    add.u64 %to, %to, %w;
    add.u64 %from, %from, %w;
    ld.global.u8 %b, [%from];
    st.global.u8 [%to], %b;
    ret;
}
";

#[test]
fn elements_of_every_type_go_to_the_device_and_come_back() {
    macro_rules! copied {
        ($($ty:ty: $values:expr;)*) => { $({
            let values: Vec<$ty> = $values.to_vec();
            let bytes = size_of_val(values.as_slice()) as u32;
            let device = Device::new();
            let module = device.load(&Module::from_ptx(COPY).unwrap()).unwrap();
            let from = device.array(&values).unwrap();
            let to = device.zeros::<$ty>(values.len()).unwrap();
            module.launch("copy").grid(2).block(32).arg(&to).arg(&from).arg(bytes).run().unwrap();
            assert_eq!(to.read().unwrap(), values);
        })* };
    }
    copied! {
        u8: [1, 255];
        i8: [-1, 127];
        u16: [1, 65535];
        i16: [-1, 32767];
        u32: [1, u32::MAX];
        i32: [-1, i32::MAX];
        u64: [1, u64::MAX];
        i64: [-1, i64::MAX];
        f16: [f16::ONE, f16::INFINITY];
        bf16: [bf16::ONE, bf16::MAX];
        f32: [1.5, -0.0];
        f64: [1.5, f64::MIN_POSITIVE];
    }
}

#[test]
fn use_after_free_is_a_fault_that_names_the_array() {
    let device = Device::new();
    let module = device.load(&Module::from_ptx(COPY).unwrap()).unwrap();
    let to = device.zeros::<u32>(4).unwrap();
    let from = device.array(&[1u32, 2, 3, 4]).unwrap();
    let address = from.address();
    drop(from);
    let error = module.launch("copy").block(16).arg(&to).arg(address).arg(16u32).run().unwrap_err();
    let Error::Fault { fault, .. } = &error else { panic!("{error}") };
    assert_eq!(fault.kind, FaultKind::UseAfterFree);
    assert_eq!(fault.kernel, "copy");
    assert_eq!((fault.block, fault.thread), ([0; 3], [0; 3]));
    let text = error.to_string();
    for part in [
        "use after free",
        "ld.global.u8 %b, [%from];",
        "^",
        "array of 4 u32",
        "block (0,0,0), thread (0,0,0)",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains('\u{1b}') && error.render(Color::Always).contains('\u{1b}'));
    // The device is fine.
    let from = device.array(&[5u32; 4]).unwrap();
    module.launch("copy").block(16).arg(&to).arg(&from).arg(16u32).run().unwrap();
    assert_eq!(to.read().unwrap(), [5; 4]);
}

#[test]
fn module_variables_belong_to_a_load() {
    let device = Device::new();
    let module = Module::from_ptx(COPY).unwrap();
    let (first, second) = (device.load(&module).unwrap(), device.load(&module).unwrap());
    let array = device.zeros::<u8>(1).unwrap();
    for _ in 0..3 {
        first.launch("copy").arg(&array).arg(&array).arg(1u32).run().unwrap();
    }
    let (address, bytes) = first.variable("launches").unwrap();
    assert_eq!(bytes, 4);
    assert_ne!(address, second.variable("launches").unwrap().0);
    // A kernel reads the count through the variable's address.
    let count = device.zeros::<u32>(1).unwrap();
    second.launch("copy").block(4).arg(&count).arg(address).arg(4u32).run().unwrap();
    assert_eq!(count.read().unwrap(), [3]);
    // Another lowering of the same load has the same variables, also when the first is gone.
    let again = first.for_tools(Tools::ALL);
    assert_eq!(again.variable("launches").unwrap().0, address);
    drop(first);
    again.launch("copy").arg(&array).arg(&array).arg(1u32).run().unwrap();
    let mut launches = [0; 4];
    again.read_variable("launches", 0, &mut launches).unwrap();
    assert_eq!(launches, 4u32.to_le_bytes());
    let error = again.variable("nothing").unwrap_err();
    assert_eq!(error.to_string(), "no variable named `nothing`: the module has `launches`");
}

#[test]
fn wrong_arguments_are_errors_before_anything_runs() {
    let device = Device::new();
    let module = device.load(&Module::from_ptx(COPY).unwrap()).unwrap();
    let array = device.zeros::<u8>(1).unwrap();
    let launch = || module.launch("copy").arg(&array).arg(&array);
    for (result, part) in [
        (launch().run(), "takes 3 arguments, but 2 were given"),
        (launch().arg(1u64).run(), "argument 2 is a .u64, but parameter `bytes` is .u32"),
        (launch().arg(1.0f32).run(), "argument 2 is a .f32, but parameter `bytes` is .u32"),
        (launch().arg(Arg::bytes([0; 3])).run(), "argument 2 is 3 bytes"),
        (launch().arg(&array).run(), "argument 2 is an array"),
        (launch().arg(1u32).block(2048).run(), "1024"),
        (launch().arg(1u32).grid((1, 70_000)).run(), "65535"),
    ] {
        let text = result.unwrap_err().to_string();
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let error = module.launch("paste").run().unwrap_err();
    assert_eq!(error.to_string(), "no kernel named `paste`: the module has `copy`");
}

#[test]
fn bad_ptx_shows_its_lines() {
    let error = Module::from_ptx(&COPY.replace("ld.global.u8 %b", "ld.global.u8 %c")).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("Unknown symbol '%c'") && text.contains("^"), "{text}");
    // As ptxas: the operand does not fit, and it is unknown.
    assert_eq!(error.diagnostics().len(), 2);
    assert!(matches!(Module::from_file("no/such/file.ptx"), Err(Error::Io { .. })));
}

#[test]
fn launches_can_be_limited_and_cancelled() {
    let device = Device::new();
    let endless = COPY.replace("    ret;\n}", "forever: bra forever;\n}");
    let module = device.load(&Module::from_ptx(&endless).unwrap()).unwrap();
    let array = device.array(&[7u8]).unwrap();
    let launch = || module.launch("copy").arg(&array).arg(&array).arg(1u32);
    let limited = launch().configure(|config| config.max_steps = Some(1000)).run();
    let Err(error @ Error::StepLimit { limit: 1000, at: Some(_) }) = limited else { panic!("{limited:?}") };
    let text = error.to_string();
    assert!(
        text.contains("forever: bra forever")
            && text.contains("in kernel `copy`, block (0,0,0), thread (0,0,0)"),
        "{text}"
    );
    let cancel = Arc::new(AtomicBool::new(true));
    let cancelled = launch().configure(|config| config.cancel = Some(cancel)).run();
    assert!(matches!(cancelled, Err(Error::Cancelled { at: Some(_) })));
}

#[test]
fn too_large_an_array_is_refused() {
    assert!(matches!(Device::new().allocate(u64::MAX, "huge"), Err(Error::OutOfMemory(_))));
    assert!(matches!(Device::new().zeros::<f64>(usize::MAX), Err(Error::OutOfMemory(_))));
}

#[test]
fn an_array_of_another_device_is_no_argument() {
    let (here, there) = (Device::new(), Device::new());
    let module = here.load(&Module::from_ptx(COPY).unwrap()).unwrap();
    let (to, from) = (here.zeros::<u32>(4).unwrap(), here.array(&[1u32, 2, 3, 4]).unwrap());
    let (other, buffer) = (there.array(&[5u32; 4]).unwrap(), there.allocate(16, "buffer").unwrap());
    for arg in [Arg::from(&other), Arg::from(&buffer)] {
        let error = module.launch("copy").block(16).arg(&to).arg(arg).arg(16u32).run().unwrap_err();
        let Error::Arguments { message, .. } = &error else { panic!("{error}") };
        assert!(message.starts_with("argument 1 is an array of another device"), "{message}");
        assert!(matches!(error, Error::Arguments { kind: ptxvm::ArgumentError::OtherDevice(1), .. }));
    }
    assert_eq!(to.read().unwrap(), [0; 4]);
    // Clones are the same device.
    let module = here.clone().load(&Module::from_ptx(COPY).unwrap()).unwrap();
    module.launch("copy").block(16).arg(&to).arg(&from).arg(16u32).run().unwrap();
    assert_eq!(to.read().unwrap(), [1, 2, 3, 4]);
}

#[test]
fn variables_in_const_memory_are_found_read_and_written() {
    let text = "\
.version 7.8
.target sm_90
.address_size 64
.const .u16 first = 1;
.const .align 4 .u32 factors[2] = {3, 5};
.global .u32 sum = 7;
.visible .entry read(.param .u64 at, .param .u64 out)
{
    .reg .u64 %p, %out;
    .reg .u32 %a, %b;
    ld.param.u64 %p, [at];
    ld.param.u64 %out, [out];
    ld.u32 %a, [%p+4];
    ld.const.u32 %b, [factors];
    st.global.v2.u32 [%out], {%a, %b};
    ret;
}
";
    let device = Device::new();
    let module = Module::from_ptx(text).unwrap();
    let (loaded, other) = (device.load(&module).unwrap(), device.load(&module).unwrap());
    let (address, bytes) = loaded.variable("factors").unwrap();
    assert_eq!(bytes, 8);
    let read = |name: &str, offset: u64| {
        let mut word = [0; 4];
        loaded.read_variable(name, offset, &mut word).map(|()| u32::from_le_bytes(word))
    };
    assert_eq!((read("factors", 0).unwrap(), read("factors", 4).unwrap()), (3, 5));
    assert_eq!(read("sum", 0).unwrap(), 7);
    // A kernel reads them at the same address, after the host has changed them.
    loaded.write_variable("factors", 4, &9u32.to_le_bytes()).unwrap();
    loaded.write_variable("sum", 0, &8u32.to_le_bytes()).unwrap();
    let out = device.zeros::<u32>(2).unwrap();
    loaded.launch("read").arg(address).arg(&out).run().unwrap();
    assert_eq!(out.read().unwrap(), [9, 3]);
    assert_eq!(read("sum", 0).unwrap(), 8);
    // Each load has its own.
    other.launch("read").arg(address).arg(&out).run().unwrap();
    assert_eq!(out.read().unwrap(), [5, 3]);
    for (name, offset) in [("factors", 5), ("factors", u64::MAX), ("first", 0)] {
        assert!(matches!(read(name, offset), Err(Error::Memory(FaultKind::OutOfBounds))), "{name}+{offset}");
    }
    assert!(matches!(read("nobody", 0), Err(Error::NoSuchName { .. })));
    assert!(loaded.write_variable("first", 1, &[1, 2]).is_err());
}

#[test]
fn all_blocks_that_wait_for_one_another_run_however_late_other_host_threads_come() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/run/grid_synchronize.ptx");
    let module = Module::from_file(file).unwrap();
    let device = Device::new();
    let loaded = device.load(&module).unwrap();
    for _ in 0..10 {
        // More than one host thread keeps in flight, and fewer than two.
        let (out, x) = (device.zeros::<u32>(1500).unwrap(), device.zeros::<u32>(1500).unwrap());
        let launch = loaded.launch("test").grid(1500).block(1).arg(&out).arg(&x);
        launch.configure(|config| config.threads = Some(2)).run().unwrap();
        assert_eq!(out.read().unwrap(), (3..1503).rev().collect::<Vec<u32>>());
    }
}

#[test]
fn a_module_of_32_bit_addresses_needs_a_device_for_it() {
    let text = ".version 7.0\n.target sm_70\n.address_size 32\n.visible .entry k(.param .u32 a) {\n.reg .u32 %a;\n\
                ld.param.u32 %a, [a];\nst.global.u32 [%a], 5;\nret;\n}\n";
    let module = Module::from_ptx(text).unwrap();
    let device = Device::for_module(&module);
    let array = device.zeros::<u32>(1).unwrap();
    device.load(&module).unwrap().launch("k").arg(&array).run().unwrap();
    assert_eq!(array.read().unwrap(), [5]);
    let device = Device::new();
    let array = device.zeros::<u32>(1).unwrap();
    let error = device.load(&module).unwrap().launch("k").arg(&array).run().unwrap_err();
    assert!(
        matches!(&error, Error::Arguments { message, .. } if message.contains("Device::for_module")),
        "{error}"
    );
}

#[test]
fn parts_of_a_grid_do_together_what_the_whole_does() {
    let device = Device::new();
    let module = device.load(&Module::from_ptx(COPY).unwrap()).unwrap();
    let values: Vec<u8> = (0..=255).collect();
    let from = device.array(&values).unwrap();
    for (engine, block) in
        [Engine::Interpreter, Engine::Reference].into_iter().flat_map(|e| [(e, 32), (e, 5)])
    {
        let grid = 256u32.div_ceil(block);
        let to = device.zeros::<u8>(256).unwrap();
        let progress = Arc::new(AtomicU64::new(0));
        let launch = |blocks: Range<u64>| {
            let launch = module.launch("copy").grid(grid).block(block).arg(&to).arg(&from).arg(256u32);
            launch.engine(engine).configure(|config| {
                config.blocks = Some(blocks);
                config.progress = Some(Arc::clone(&progress));
            })
        };
        let (third, end) = (u64::from(grid) / 3, u64::from(grid));
        launch(third..end).run().unwrap();
        let first = third as usize * block as usize;
        let now = to.read().unwrap();
        assert!(now[..first].iter().all(|&byte| byte == 0), "{engine:?} {block}");
        assert_eq!(now[first..], values[first..]);
        assert_eq!(progress.load(Ordering::Relaxed), end - third, "{engine:?} {block}");
        launch(0..third).run().unwrap();
        assert_eq!(to.read().unwrap(), values);
        assert_eq!(progress.load(Ordering::Relaxed), end);
        for wrong in [0..end + 1, third..third, Range { start: 3, end: 2 }] {
            assert!(matches!(launch(wrong).run(), Err(Error::Launch(_))));
        }
        assert!(matches!(launch(0..1).cooperative().run(), Err(Error::Launch(_))));
    }
}

/// What an observer is told of accesses to the shared memory of other blocks: who makes them, whose memory it is, and where.
#[test]
fn clusters_are_watched_with_the_owners_of_shared_memory() {
    use std::ops::ControlFlow;
    use std::sync::Mutex;

    use ptxvm::observe::{AccessEvent, AccessKind, LaunchObserver};

    #[derive(Default)]
    struct Stores(Vec<([u32; 3], [u32; 3], u64)>);

    impl LaunchObserver for Stores {
        fn access(&mut self, access: &AccessEvent) -> ControlFlow<()> {
            if access.kind == AccessKind::Store {
                self.0.extend(access.lanes.iter().map(|lane| (lane.block, lane.owner, lane.address)));
            }
            ControlFlow::Continue(())
        }
    }

    let text = ".version 8.0 .target sm_90 .address_size 64
        .visible .entry k() {
            .reg .u32 %r<3>; .reg .u64 %a;
            .shared .align 4 .b8 x[8];
            mov.u32 %r0, %cluster_ctarank;
            xor.b32 %r1, %r0, 1;
            mapa.shared::cluster.u32 %r2, x, %r1;
            st.shared::cluster.u32 [%r2+4], %r0;
            cvta.shared.u64 %a, x;
            st.u32 [%a], %r0;
            barrier.cluster.arrive;
            barrier.cluster.wait;
            ret;
        }";
    let device = Device::new();
    let module = device.load(&Module::from_ptx(text).unwrap()).unwrap();
    let stores = Arc::new(Mutex::new(Stores::default()));
    module.launch("k").grid((1, 4)).cluster((1, 2)).observe(Arc::clone(&stores)).run().unwrap();
    let mut seen = std::mem::take(&mut stores.lock().unwrap().0);
    seen.sort_unstable();
    let expected: Vec<_> =
        (0..4u32).flat_map(|y| [([0, y, 0], [0, y, 0], 0), ([0, y, 0], [0, y ^ 1, 0], 4)]).collect();
    let mut expected = expected;
    expected.sort_unstable();
    assert_eq!(seen, expected);
    assert!(matches!(module.launch("k").grid(3).cluster(2).run(), Err(Error::Cluster(_))));
}

#[test]
fn instructions_are_counted_where_ways_part() {
    const WAYS: &str = ".version 8.0\n.target sm_80\n.address_size 64
.visible .entry ways()
{
    .reg .u32 %t, %w;
    mov.u32 %t, %tid.x;
    rem.u32 %w, %t, 3;
targets: .branchtargets A, B, C;
    brx.idx %w, targets;
A:
    bra AFTER;
B:
    bra AFTER;
C:
    rem.u32 %w, %t, 5;
AFTER:
    ret;
}
";
    let device = Device::new();
    let module = device.load(&Module::from_ptx(WAYS).unwrap()).unwrap();
    let report = module.launch("ways").grid(2).block(60).run().unwrap();
    // Five on every way.
    assert_eq!(report.thread_instructions, 2 * 60 * 5);
}

/// Each thread reads a word of dynamic shared memory of two words.
const OVERRUN: &str = "\
.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 4 .b8 words[];
.visible .entry k(.param .u64 out)
{
    .reg .u32 %v, %t, %a;
    .reg .u64 %out;
    .reg .pred %p;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %a, words;
    mad.lo.u32 %a, %t, 4, %a;
    setp.lt.u32 %p, %t, 2;
    @%p st.shared.u32 [%a], %t;
    bar.sync 0;
    ld.shared.u32 %v, [%a];
    selp.u32 %v, %v, 7, %p;
    mad.wide.u32 %out, %t, 4, %out;
    st.global.u32 [%out], %v;
    ret;
}
";

#[test]
fn overruns_of_shared_memory_fault_or_are_noted() {
    let device = Device::new();
    let module = device.load(&Module::from_ptx(OVERRUN).unwrap()).unwrap();
    let run = |threads: u32, blocks: u32, overruns: Option<&Arc<Mutex<Vec<_>>>>| {
        let out = device.zeros::<u32>(64).unwrap();
        let launch = module.launch("k").grid(blocks).block(threads).arg(&out);
        let launch = launch.configure(|config| {
            config.dynamic_shared = 8;
            config.overruns = overruns.cloned();
        });
        launch.run().map(|_| out.read().unwrap())
    };
    let kind = |error: Error| match error {
        Error::Fault { fault, .. } => fault.kind,
        other => panic!("{other}"),
    };
    assert_eq!(kind(run(3, 1, None).unwrap_err()), FaultKind::OutOfBounds);
    // One block, and several in a team.
    for blocks in [1, 40] {
        let overruns = Arc::default();
        assert_eq!(run(32, blocks, Some(&overruns)).unwrap()[..4], [0, 1, 7, 7]);
        let noted: Vec<ptxvm::Fault> = std::mem::take(&mut overruns.lock().unwrap());
        assert_eq!(
            noted.iter().map(|fault| (fault.kind, fault.thread)).collect::<Vec<_>>(),
            [(FaultKind::OutOfBounds, [2, 0, 0])]
        );
        // Behind the granule of 128 bytes they fault.
        assert_eq!(kind(run(33, blocks, Some(&overruns)).unwrap_err()), FaultKind::OutOfBounds);
    }
}

/// Threads have small stacks where no one chose them: 128 KiB with musl.
#[test]
fn nested_braces_need_little_stack() {
    let nested = |depth: usize, inner: &str| format!("{}{inner}{}", "{".repeat(depth), "}".repeat(depth));
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
        .global .u32 x{} = {};\n.entry f() {}\n",
        "[1]".repeat(256),
        nested(256, "1"),
        nested(256, ".reg .u32 %r; mov.u32 %r, 1;"),
    );
    let load = move || {
        let device = Device::new();
        device.load(&Module::from_ptx(&text).unwrap()).unwrap();
    };
    std::thread::Builder::new().stack_size(128 << 10).spawn(load).unwrap().join().unwrap();
}
