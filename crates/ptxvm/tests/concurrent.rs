//! Several threads on one device, streams, and what launches keep.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ptxvm::{Device, Error, FaultKind, Launch, Module};

const KERNELS: &str = "\
.version 7.8
.target sm_90
.address_size 64
.global .u32 counter = 5;
.const .u32 factor = 3;
.visible .entry add(.param .u64 data, .param .u32 n)
{
    .reg .u64 %p, %o;  .reg .u32 %i, %b, %t, %v, %n;  .reg .pred %q;
    mov.u32 %b, %ctaid.x;  mov.u32 %t, %ntid.x;  mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %b, %t, %i;
    ld.param.u32 %n, [n];
    setp.ge.u32 %q, %i, %n;
    @%q ret;
    ld.param.u64 %p, [data];
    mul.wide.u32 %o, %i, 4;
    add.u64 %p, %p, %o;
    ld.global.u32 %v, [%p];
    add.u32 %v, %v, %i;
    st.global.u32 [%p], %v;
    ret;
}
.visible .entry sum(.param .u64 data, .param .u64 out, .param .u32 n)
{
    .reg .u64 %p, %o, %e;  .reg .u32 %i, %v, %n, %s;  .reg .pred %q;
    ld.param.u64 %p, [data];  ld.param.u64 %o, [out];  ld.param.u32 %n, [n];
    mov.u32 %i, %tid.x;  mov.u32 %s, 0;
LOOP:
    setp.ge.u32 %q, %i, %n;
    @%q bra DONE;
    mul.wide.u32 %e, %i, 4;
    add.u64 %e, %p, %e;
    ld.global.u32 %v, [%e];
    add.u32 %s, %s, %v;
    add.u32 %i, %i, 64;
    bra LOOP;
DONE:
    red.global.add.u32 [%o], %s;
    ret;
}
.visible .entry scale(.param .u64 out)
{
    .reg .u64 %p;  .reg .u32 %v;
    ld.param.u64 %p, [out];
    ld.const.u32 %v, [factor];
    st.global.u32 [%p], %v;
    red.global.add.u32 [counter], %v;
    ret;
}
.visible .entry poll(.param .u64 flag, .param .u64 out)
{
    .reg .u64 %p, %o;  .reg .u32 %v;  .reg .pred %q;
    ld.param.u64 %p, [flag];  ld.param.u64 %o, [out];
    st.volatile.global.u32 [%o], 1;
AGAIN:
    ld.volatile.global.u32 %v, [%p];
    setp.eq.u32 %q, %v, 0;
    @%q bra AGAIN;
    ld.const.u32 %v, [factor];
    st.volatile.global.u32 [%o], %v;
    ret;
}
.visible .entry fault(.param .u64 data)
{
    .reg .u64 %p;
    ld.param.u64 %p, [data];
    st.global.u32 [%p+4], 1;
    ret;
}
";

fn loaded(device: &Device) -> ptxvm::Loaded {
    device.load(&Module::from_ptx(KERNELS).unwrap()).unwrap()
}

/// Waits until something holds.
fn until(holds: impl Fn() -> bool) {
    while !holds() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Two threads launch different kernels, a third copies, a fourth loads and allocates, all on one device.
#[test]
fn everybody_at_once() {
    const N: u32 = 5_000;
    let rounds = if cfg!(miri) { 2 } else { 60 };
    let device = Device::new();
    let module = loaded(&device);
    let running = AtomicBool::new(true);
    let shared = device.array(&(0..N).collect::<Vec<_>>()).unwrap();
    thread::scope(|scope| {
        let adds = scope.spawn(|| {
            let own = device.zeros::<u32>(N as usize).unwrap();
            for _ in 0..rounds {
                let launch = module.launch("add").grid(N.div_ceil(64)).block(64).arg(&own).arg(N);
                launch.configure(|config| config.threads = Some(2)).run().unwrap();
            }
            assert!(own.read().unwrap().iter().zip(0..).all(|(&v, i)| v == i * rounds));
        });
        let sums = scope.spawn(|| {
            let out = device.zeros::<u32>(1).unwrap();
            for _ in 0..rounds {
                module.launch("sum").block(64).arg(&shared).arg(&out).arg(N).run().unwrap();
            }
            assert_eq!(out.read().unwrap(), [(0..N).sum::<u32>() * rounds]);
        });
        scope.spawn(|| {
            let copy = device.zeros::<u32>(N as usize).unwrap();
            while running.load(Ordering::Relaxed) {
                copy.fill(7).unwrap();
                copy.copy_from(&shared).unwrap();
                assert!(copy.read().unwrap().iter().zip(0..).all(|(&v, i)| v == i));
            }
        });
        scope.spawn(|| {
            while running.load(Ordering::Relaxed) {
                let own = loaded(&device);
                let out = device.zeros::<u32>(1).unwrap();
                own.launch("scale").arg(&out).run().unwrap();
                assert_eq!(out.read().unwrap(), [3]);
                let mut counter = [0; 4];
                own.read_variable("counter", 0, &mut counter).unwrap();
                assert_eq!(u32::from_le_bytes(counter), 8);
            }
        });
        let results = [adds.join(), sums.join()];
        running.store(false, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.unwrap());
    });
}

/// The host writes what a running kernel waits for, and reads what it wrote.
#[test]
fn the_host_talks_to_a_running_kernel() {
    let device = Device::new();
    let module = loaded(&device);
    let (flag, out) = (device.zeros::<u32>(1).unwrap(), device.zeros::<u32>(1).unwrap());
    let stream = device.stream();
    let report = stream.launch(module.launch("poll").arg(&flag).arg(&out));
    until(|| out.read().unwrap() == [1]);
    assert!(!stream.is_idle());
    // A launch that has begun has `.const` memory as it was.
    module.write_variable("factor", 0, &7u32.to_le_bytes()).unwrap();
    flag.write(&[1]).unwrap();
    assert!(report.wait().unwrap().thread_instructions > 8);
    assert_eq!(out.read().unwrap(), [3]);
    module.launch("scale").arg(&out).run().unwrap();
    assert_eq!(out.read().unwrap(), [7]);
}

#[test]
fn a_launch_keeps_its_arrays_and_can_be_sent() {
    fn sendable<T: Send + 'static>(_: &T) {}
    let device = Device::new();
    let out = device.zeros::<u32>(4).unwrap();
    let launch: Launch = loaded(&device).launch("scale").arg(&out.slice(2..).unwrap());
    sendable(&launch);
    let address = out.address();
    drop(out);
    thread::spawn(move || {
        launch.run().unwrap();
    })
    .join()
    .unwrap();
    // The launch is over, and with it the array.
    let error = device.read_at(address, &mut [0; 4]).unwrap_err();
    assert!(matches!(error, Error::Memory(FaultKind::UseAfterFree)), "{error}");
}

#[test]
fn memory_freed_while_a_kernel_runs_lives_until_it_ends() {
    let device = Device::new();
    let module = loaded(&device);
    let (flag, out) = (device.zeros::<u32>(1).unwrap(), device.zeros::<u32>(1).unwrap());
    let stream = device.stream();
    // Only its address: nothing keeps it but the launch itself.
    let report = stream.launch(module.launch("poll").arg(flag.address()).arg(&out));
    until(|| out.read().unwrap() == [1]);
    flag.write(&[1]).unwrap();
    drop(flag);
    report.wait().unwrap();
}

#[test]
fn streams_keep_order_and_events_tell() {
    let device = Device::new();
    let module = loaded(&device);
    let (first, second) = (device.stream(), device.stream());
    let data = device.zeros::<u32>(1000).unwrap();
    let start = first.record();
    let launches: Vec<_> = (0..10)
        .map(|_| first.launch(module.launch("add").grid(16).block(64).arg(&data).arg(1000u32)))
        .collect();
    let added = first.record();
    let out = device.zeros::<u32>(1).unwrap();
    second.wait(&added);
    let sum = second.launch(module.launch("sum").block(64).arg(&data).arg(&out).arg(1000u32));
    let read = second.enqueue(move || out.read());
    assert_eq!(read.wait().unwrap(), [10 * 499_500]);
    assert!(sum.wait().is_ok() && added.has_happened());
    launches.into_iter().for_each(|launch| assert!(launch.wait().is_ok()));
    assert!(added.since(&start) > Some(Duration::ZERO));
    assert_eq!(start.since(&ptxvm::Event::default()), None);
    first.synchronize().unwrap();
    second.synchronize().unwrap();
    assert!(first.is_idle() && second.is_idle());
}

#[test]
fn what_comes_after_a_failure_is_not_done_until_it_was_told() {
    let device = Device::new();
    let module = loaded(&device);
    let (stream, other) = (device.stream(), device.stream());
    let out = device.zeros::<u32>(1).unwrap();
    let fault = stream.launch(module.launch("fault").arg(&out));
    let after = stream.launch(module.launch("scale").arg(&out));
    let event = stream.record();
    let error = fault.wait().unwrap_err();
    assert!(matches!(&error, Error::Fault { fault, .. } if fault.kind == FaultKind::OutOfBounds), "{error}");
    let error = after.wait().unwrap_err();
    assert!(matches!(&error, Error::NotRun { cause } if matches!(**cause, Error::Fault { .. })), "{error}");
    event.wait();
    assert_eq!(out.read().unwrap(), [0]);
    // Others are unharmed.
    other.launch(module.launch("scale").arg(&out)).wait().unwrap();
    assert_eq!(out.read().unwrap(), [3]);
    assert!(matches!(stream.synchronize(), Err(Error::Fault { .. })));
    stream.synchronize().unwrap();
    stream.launch(module.launch("scale").arg(&out)).wait().unwrap();
}

#[test]
fn a_panic_in_a_stream_reaches_who_waits() {
    let device = Device::new();
    let stream = device.stream();
    let pending = stream.enqueue(|| -> Result<(), Error> { panic!("on purpose") });
    assert!(matches!(pending.wait(), Err(Error::Panicked(_))));
    assert!(matches!(stream.synchronize(), Err(Error::Panicked(_))));
    assert_eq!(stream.enqueue(|| Ok(1)).wait().unwrap(), 1);
    // What is enqueued is done, also when the stream is dropped.
    let (sender, receiver) = mpsc::channel();
    let pending = stream.enqueue(move || {
        sender.send(2).unwrap();
        Ok(())
    });
    drop((stream, pending));
    assert_eq!(receiver.recv(), Ok(2));
}

#[test]
fn unloading_a_module_gives_its_memory_back() {
    let device = Device::new();
    let module = loaded(&device);
    let (address, _) = module.variable("counter").unwrap();
    let launch = module.launch("scale").arg(&device.zeros::<u32>(1).unwrap());
    drop(module);
    let mut bytes = [0; 4];
    device.read_at(address, &mut bytes).unwrap();
    assert_eq!(u32::from_le_bytes(bytes), 5);
    launch.run().unwrap();
    assert!(matches!(device.read_at(address, &mut bytes), Err(Error::Memory(FaultKind::UseAfterFree))));
}

#[test]
fn parts_of_arrays_are_copied_and_filled() {
    let device = Device::new();
    let array = device.array(&[1u16, 2, 3, 4, 5, 6]).unwrap();
    let part = array.slice(1..4).unwrap();
    assert_eq!((part.len(), part.address()), (3, array.address() + 2));
    array.slice(2..=4).unwrap().copy_from(&part).unwrap();
    assert_eq!(array.read().unwrap(), [1, 2, 2, 3, 4, 6]);
    array.slice(4..).unwrap().fill(9).unwrap();
    array.slice(..1).unwrap().write(&[8]).unwrap();
    assert_eq!(array.read().unwrap(), [8, 2, 2, 3, 9, 9]);
    device.copy_at(array.address() + 8, array.address(), 4).unwrap();
    device.fill_at(array.address() + 4, &[1, 2, 3], 5).unwrap();
    assert_eq!(
        array.read().unwrap(),
        [9, 9, 0x0201, 0x0103, 0x0902, 9].map(|v| if v == 0x0902 { 2 } else { v })
    );
    assert!(matches!(array.slice(3..8), Err(Error::Memory(FaultKind::OutOfBounds))));
    assert!(array.slice(7..).is_err() && array.slice(6..).unwrap().is_empty());
    assert!(matches!(part.write(&[0; 4]), Err(Error::Memory(FaultKind::OutOfBounds))));
    let elsewhere = Device::new().zeros::<u16>(3).unwrap();
    assert!(matches!(elsewhere.copy_from(&part), Err(Error::OtherDevice)));
}

#[test]
fn attributes_say_what_a_kernel_takes() {
    let module = Module::from_ptx(
        ".version 7.8 .target sm_90 .address_size 64
         .const .u64 c = 1;
         .visible .entry k(.param .u64 a, .param .u16 b) .maxntid 128 {
             .shared .align 8 .b8 s[24];  .local .align 4 .b8 l[12];
             .reg .u64 %p;  .reg .u32 %v;
             mov.u64 %p, l;  cvta.local.u64 %p, %p;  st.u32 [%p], 1;  ld.u32 %v, [%p+4];
             mov.u32 %v, s;  st.shared.u32 [%v], %v;  ret; }",
    )
    .unwrap();
    let loaded = Device::new().load(&module).unwrap();
    let k = loaded.attributes("k").unwrap();
    assert_eq!((k.shared_bytes, k.const_bytes, k.param_bytes, k.max_threads), (24, 8, 10, 128));
    assert!(k.local_bytes >= 12, "{k:?}");
    assert!(matches!(loaded.attributes("none"), Err(Error::NoSuchName { .. })));
}

/// Kernels of different streams that wait for one another both run.
#[test]
fn kernels_of_two_streams_run_at_the_same_time() {
    let device = Device::new();
    let module = loaded(&device);
    let (a, b) = (device.zeros::<u32>(1).unwrap(), device.zeros::<u32>(1).unwrap());
    let (first, second) = (device.stream(), device.stream());
    // Each waits for what the other one writes at first.
    let both = [
        first.launch(module.launch("poll").arg(&a).arg(&b)),
        second.launch(module.launch("poll").arg(&b).arg(&a)),
    ];
    both.into_iter().for_each(|pending| assert!(pending.wait().is_ok()));
}
