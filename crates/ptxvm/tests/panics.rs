//! A panic below a launch or a stream is an error, on every door that somebody else's code comes in by, and ends nothing else.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use ptxvm::observe::{AccessEvent, BarrierArrival};
use ptxvm::{Array, Device, Engine, Error, Launch, LaunchObserver, Loaded, Module, ObserverHandle, Output};

/// `write` says which of the doors below it comes to; `wait` lets every block wait for the first one, whose thread prints before.
const KERNELS: &str = "\
.version 7.8
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
.global .align 1 .b8 text[5] = {116, 101, 120, 116, 0};
.global .u32 flag;
.visible .entry write(.param .u64 data)
{
    .reg .u64 %p;  .reg .u32 %i, %n, %t;
    ld.param.u64 %p, [data];
    mov.u32 %i, %ctaid.x;  mov.u32 %n, %ntid.x;  mov.u32 %t, %tid.x;
    mad.lo.u32 %i, %i, %n, %t;
    mad.wide.u32 %p, %i, 4, %p;
    bar.sync 0;
    st.global.u32 [%p], %i;
    ret;
}
.visible .entry wait()
{
    .reg .u64 %f;  .reg .u32 %b, %v;  .reg .pred %q;
    .param .b64 f;  .param .b64 v;  .param .b32 r;
    mov.u32 %b, %ctaid.x;
    setp.ne.u32 %q, %b, 0;
    @%q bra AGAIN;
    mov.u64 %f, text;
    cvta.global.u64 %f, %f;
    st.param.b64 [f], %f;
    st.param.b64 [v], %f;
    call (r), vprintf, (f, v);
    st.volatile.global.u32 [flag], 1;
AGAIN:
    ld.volatile.global.u32 %v, [flag];
    setp.eq.u32 %q, %v, 0;
    @%q bra AGAIN;
    ret;
}
";

/// Where the observer panics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Begin,
    Fork,
    Barrier,
    Access,
    /// In one of those that watch a host thread each.
    AccessOfFork,
    End,
    EndOfFork,
}

struct Panics {
    at: At,
    is_fork: bool,
}

impl Panics {
    fn come_to(&self, at: At) {
        assert!(self.at != at, "planted in {at:?}");
    }
}

impl LaunchObserver for Panics {
    fn begin(&mut self, _: &machine::Launch) {
        self.come_to(At::Begin);
    }

    fn fork(&self, _: &machine::Launch) -> Option<ObserverHandle> {
        self.come_to(At::Fork);
        let fork = Panics { at: self.at, is_fork: true };
        Some(ObserverHandle::new(Arc::new(Mutex::new(fork))))
    }

    fn barrier_arrive(&mut self, _: &BarrierArrival) -> ControlFlow<()> {
        self.come_to(At::Barrier);
        ControlFlow::Continue(())
    }

    fn access(&mut self, _: &AccessEvent) -> ControlFlow<()> {
        self.come_to(if self.is_fork { At::AccessOfFork } else { At::Access });
        ControlFlow::Continue(())
    }

    /// The forks have seen something: the launch runs once more, watched by the first.
    fn has_found(&self) -> bool {
        self.at == At::Access
    }

    fn end(&mut self, _: &machine::Launch) {
        self.come_to(if self.is_fork { At::EndOfFork } else { At::End });
    }
}

fn loaded(device: &Device) -> Loaded {
    device.load(&Module::from_ptx(KERNELS).unwrap()).unwrap()
}

/// A launch of enough blocks for all host threads.
fn write(loaded: &Loaded, data: &Array<u32>, threads: usize) -> Launch {
    let launch = loaded.launch("write").grid(1000).block(64).arg(data);
    launch.configure(|config| config.threads = Some(threads))
}

#[track_caller]
fn panicked<T: std::fmt::Debug>(result: Result<T, Error>, said: &str) {
    match result {
        Err(Error::Panicked(message)) if message.contains(said) => {}
        other => panic!("{other:?} is not about `{said}`"),
    }
}

#[test]
fn an_observer_that_panics_ends_its_launch() {
    let device = Device::new();
    let (loaded, data) = (loaded(&device), device.zeros::<u32>(64_000).unwrap());
    for threads in [1, 2, 3] {
        use At::{Access, AccessOfFork, Barrier, Begin, End, EndOfFork, Fork};
        for at in [Begin, Fork, Barrier, Access, AccessOfFork, End, EndOfFork] {
            // There is nobody to share it with.
            if threads == 1 && matches!(at, Fork | AccessOfFork | EndOfFork) {
                continue;
            }
            let observer = Arc::new(Mutex::new(Panics { at, is_fork: false }));
            panicked(write(&loaded, &data, threads).observe(observer).run(), &format!("planted in {at:?}"));
            // Others are none the worse.
            write(&loaded, &data, threads).run().unwrap();
            assert_eq!(data.read().unwrap(), (0..64_000).collect::<Vec<u32>>());
            data.fill(0).unwrap();
        }
    }
}

/// Where `printf` goes, and panics.
struct Broken;

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        panic!("planted in an output")
    }

    fn flush(&mut self) -> std::io::Result<()> {
        panic!("planted in an output")
    }
}

/// Blocks on other host threads wait for the one that panicked.
#[test]
fn an_output_that_panics_ends_its_launch_and_those_who_wait() {
    let device = Device::new();
    let loaded = loaded(&device);
    for engine in [Engine::Interpreter, Engine::Reference] {
        for threads in [1, 3] {
            let launch = loaded.launch("wait").grid(200).engine(engine).output(Output::to(Broken));
            let result = launch.configure(|config| config.threads = Some(threads)).run();
            panicked(result, "planted in an output");
        }
        loaded.launch("wait").grid(200).engine(engine).output(Output::buffer()).run().unwrap();
    }
}

#[test]
fn work_of_a_stream_that_panics_is_its_failure() {
    let device = Device::new();
    let (loaded, data) = (loaded(&device), device.zeros::<u32>(64_000).unwrap());
    let stream = device.stream();
    let said = "the work of the stream panicked: planted in a stream";
    let lost = stream.enqueue(|| -> Result<u32, Error> { panic!("planted in a stream") });
    let launch = stream.launch(write(&loaded, &data, 2));
    panicked(lost.wait(), said);
    let error = launch.wait().unwrap_err();
    assert!(matches!(&error, Error::NotRun { cause } if matches!(**cause, Error::Panicked(_))), "{error}");
    panicked(stream.synchronize(), said);
    // A copy, also if nobody waits for its result.
    let copied = data.clone();
    drop(stream.enqueue(move || {
        let elements = copied.read()?;
        assert_eq!(elements[0], 1, "planted in a stream");
        Ok(elements)
    }));
    panicked(stream.synchronize(), "planted in a stream");
    // A launch.
    let observer = Arc::new(Mutex::new(Panics { at: At::Access, is_fork: false }));
    let watched = stream.launch(write(&loaded, &data, 2).observe(observer));
    panicked(watched.wait(), "planted in Access");
    panicked(stream.synchronize(), "planted in Access");
    // It goes on.
    assert!(stream.launch(write(&loaded, &data, 2)).wait().is_ok());
    stream.synchronize().unwrap();
    assert_eq!(data.read().unwrap()[63_999], 63_999);
}
