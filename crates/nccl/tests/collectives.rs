//! Operations of 2 to 4 ranks against plain loops: ranks as threads, as devices of one thread, and as two processes; mistakes of the
//! program, and ranks that go.

use std::process::{Command, Output};
use std::sync::OnceLock;

use fastrand::Rng;
use half::{bf16, f16};
// The tests need their shared objects.
use {ptxvm_libcuda as _, ptxvm_nccl as _};

type Function = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64) -> u32;

fn library(name: &str) -> &'static libloading::Library {
    static LIBRARIES: OnceLock<[libloading::Library; 2]> = OnceLock::new();
    let [driver, nccl] = LIBRARIES.get_or_init(|| {
        ["libptxvm_libcuda.so", "libptxvm_nccl.so"].map(|name| {
            let path = std::env::current_exe().expect("a path").with_file_name(name);
            // SAFETY: loading them has no effects that could harm this process.
            unsafe { libloading::Library::new(path) }.expect("the test built it")
        })
    });
    if name.starts_with("nccl") { nccl } else { driver }
}

/// Calls a function of the driver or of NCCL, whose arguments are integers and pointers.
fn call(name: &str, arguments: &[u64]) -> u32 {
    let mut all = [0; 8];
    all[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d, e, f, g, h] = all;
    // SAFETY: the function is of C, and the caller passes what it takes. More arguments do no harm.
    unsafe {
        let function = library(name).get::<Function>(name.as_bytes()).expect("a function");
        function(a, b, c, d, e, f, g, h)
    }
}

fn good(name: &str, arguments: &[u64]) {
    assert_eq!(call(name, arguments), 0, "{name}");
}

fn place<T>(place: &mut T) -> u64 {
    (&raw mut *place).expose_provenance() as u64
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Id([u8; 128]);

fn new_id() -> Id {
    let mut id = Id([0; 128]);
    good("ncclGetUniqueId", &[place(&mut id)]);
    id
}

/// `ncclCommInitRank`, which takes its id by value.
fn init(ranks: usize, id: Id, rank: usize) -> Result<u64, u32> {
    type Init = unsafe extern "C" fn(*mut u64, i32, Id, i32) -> u32;
    let mut comm = 0u64;
    // SAFETY: the function has this type.
    let status = unsafe {
        let init = library("nccl").get::<Init>(b"ncclCommInitRank").expect("a function");
        init(&raw mut comm, ranks as i32, id, rank as i32)
    };
    if status == 0 { Ok(comm) } else { Err(status) }
}

/// Makes the primary context of a device current.
fn select(device: usize) {
    let mut context = 0u64;
    good("cuInit", &[0]);
    good("cuDevicePrimaryCtxRetain", &[place(&mut context), device as u64]);
    good("cuCtxSetCurrent", &[context]);
}

fn stream() -> u64 {
    let mut stream = 0u64;
    good("cuStreamCreate", &[place(&mut stream), 1]);
    stream
}

/// Memory of the current device with these bytes.
fn memory(bytes: &[u8]) -> u64 {
    let mut address = 0u64;
    good("cuMemAlloc_v2", &[place(&mut address), bytes.len().max(1) as u64]);
    good("cuMemcpyHtoD_v2", &[address, bytes.as_ptr().expose_provenance() as u64, bytes.len() as u64]);
    address
}

fn read(address: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0u8; bytes];
    good("cuMemcpyDtoH_v2", &[data.as_mut_ptr().expose_provenance() as u64, address, bytes as u64]);
    data
}

/// Runs an ignored test of this file in another process, with so many devices.
fn command(test: &str, devices: usize, case: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).env("CASE", case);
    for variable in ["CUDA_VISIBLE_DEVICES", "PTXVM_DEVICE", "PTXVM_TOOL", "PTXVM_REPORT"] {
        command.env_remove(variable);
    }
    command.env("PTXVM_DEVICE_COUNT", devices.to_string());
    command
}

fn passed(output: &Output) -> String {
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{errors}");
    errors.into_owned()
}

/// The types, by number: bytes, and whether a number of `f64` is one of theirs, and its bytes.
fn encode(ty: u64, value: f64) -> Vec<u8> {
    match ty {
        0 => (value as i8).to_le_bytes().to_vec(),
        1 => (value as i64 as u8).to_le_bytes().to_vec(),
        2 => (value as i32).to_le_bytes().to_vec(),
        3 => (value as i64 as u32).to_le_bytes().to_vec(),
        4 => (value as i64).to_le_bytes().to_vec(),
        5 => (value as i64 as u64).to_le_bytes().to_vec(),
        6 => f16::from_f64(value).to_le_bytes().to_vec(),
        7 => (value as f32).to_le_bytes().to_vec(),
        8 => value.to_le_bytes().to_vec(),
        _ => bf16::from_f64(value).to_le_bytes().to_vec(),
    }
}

fn decode(ty: u64, bytes: &[u8]) -> f64 {
    let integer = bytes.iter().rev().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
    match ty {
        0 => f64::from(integer as i8),
        2 => f64::from(integer as i32),
        4 => integer as i64 as f64,
        6 => f16::from_bits(integer as u16).to_f64(),
        7 => f64::from(f32::from_bits(integer as u32)),
        8 => f64::from_bits(integer),
        9 => bf16::from_bits(integer as u16).to_f64(),
        _ => integer as f64,
    }
}

fn size(ty: u64) -> usize {
    encode(ty, 0.0).len()
}

/// What is to be done by all ranks: which operation, how many numbers, their type, how they are reduced, the root, and whether the result
/// goes where the numbers are.
#[derive(Clone, Copy, Debug)]
struct Case {
    operation: &'static str,
    count: usize,
    ty: u64,
    reduction: u64,
    root: usize,
    in_place: bool,
}

const OPERATIONS: [&str; 5] =
    ["ncclAllReduce", "ncclBroadcast", "ncclReduce", "ncclAllGather", "ncclReduceScatter"];

impl Case {
    fn random(rng: &mut Rng, ranks: usize) -> Case {
        let count = [0, 1, 3, 1000, 5000][rng.usize(..5)] + rng.usize(..4);
        let operation = OPERATIONS[rng.usize(..5)];
        let (ty, reduction, root) = (rng.u64(..10), rng.u64(..5), rng.usize(..ranks));
        Case { operation, count, ty, reduction, root, in_place: rng.bool() }
    }

    /// How many times the count is sent, and received.
    fn times(&self, ranks: usize) -> [usize; 2] {
        match self.operation {
            "ncclAllGather" => [1, ranks],
            "ncclReduceScatter" => [ranks, 1],
            _ => [1, 1],
        }
    }

    /// The numbers of a rank: small, so that sums and products of four are exact in every type.
    fn number(&self, rank: usize, i: usize) -> f64 {
        ((rank * 7 + i * 5 + i / 3) % 3 + 1) as f64
    }

    fn expected(&self, rank: usize, ranks: usize, i: usize) -> Option<f64> {
        let reduced = |i: usize| {
            let all = (0..ranks).map(|rank| self.number(rank, i));
            match self.reduction {
                0 => all.sum(),
                1 => all.product(),
                2 => all.fold(f64::MIN, f64::max),
                3 => all.fold(f64::MAX, f64::min),
                _ => all.sum::<f64>() / ranks as f64,
            }
        };
        Some(match self.operation {
            "ncclAllReduce" => reduced(i),
            "ncclBroadcast" => self.number(self.root, i),
            "ncclReduce" if rank == self.root => reduced(i),
            "ncclReduce" => return None,
            "ncclAllGather" => self.number(i / self.count, i % self.count),
            _ => reduced(rank * self.count + i),
        })
    }

    /// The rank's memory: what it sends, where the result goes.
    fn memory(&self, rank: usize, ranks: usize) -> [u64; 2] {
        let [sent, received] = self.times(ranks).map(|times| times * self.count);
        let numbers = (0..sent).flat_map(|i| encode(self.ty, self.number(rank, i))).collect::<Vec<_>>();
        let bytes = self.count * size(self.ty);
        match (self.in_place, self.operation) {
            (true, "ncclAllGather") => {
                let all = memory(&vec![0xaa; received * size(self.ty)]);
                let own = all + (rank * bytes) as u64;
                good("cuMemcpyHtoD_v2", &[own, numbers.as_ptr().expose_provenance() as u64, bytes as u64]);
                [own, all]
            }
            (true, "ncclReduceScatter") => {
                let all = memory(&numbers);
                [all, all + (rank * bytes) as u64]
            }
            (true, _) => [memory(&numbers); 2],
            _ => [memory(&numbers), memory(&vec![0xaa; received * size(self.ty)])],
        }
    }

    fn start(&self, [from, to]: [u64; 2], comm: u64, stream: u64) {
        let (count, reduction, root) = (self.count as u64, self.reduction, self.root as u64);
        good(
            self.operation,
            &match self.operation {
                "ncclAllReduce" | "ncclReduceScatter" => {
                    vec![from, to, count, self.ty, reduction, comm, stream]
                }
                "ncclReduce" => vec![from, to, count, self.ty, reduction, root, comm, stream],
                "ncclBroadcast" => vec![from, to, count, self.ty, root, comm, stream],
                _ => vec![from, to, count, self.ty, comm, stream],
            },
        );
    }

    fn check(&self, rank: usize, ranks: usize, to: u64) {
        let bytes = size(self.ty);
        let result = read(to, self.times(ranks)[1] * self.count * bytes);
        for (i, number) in result.chunks_exact(bytes).enumerate() {
            let Some(expected) = self.expected(rank, ranks, i) else { return };
            // An integer is cut, a number of few bits rounded.
            let expected = if self.ty < 6 { expected.trunc() } else { expected };
            assert_eq!(
                decode(self.ty, number),
                decode(self.ty, &encode(self.ty, expected)),
                "{self:?} {rank} {i}"
            );
        }
    }
}

/// Every operation, type and reduction once, and some by chance.
fn cases(ranks: usize, seed: u64) -> Vec<Case> {
    let mut rng = Rng::with_seed(seed);
    let mut all: Vec<_> = (0..20).map(|_| Case::random(&mut rng, ranks)).collect();
    for i in 0..50u64 {
        let (operation, in_place) = (OPERATIONS[i as usize % 5], i % 2 == 0);
        all.push(Case { operation, count: 77, ty: i / 5, reduction: i % 4, root: 0, in_place });
    }
    // Several pieces, and parts that are not equally large.
    if ranks == 3 {
        let count = 1_300_001;
        all.push(Case { operation: "ncclAllReduce", count, ty: 7, reduction: 0, root: 0, in_place: true });
    }
    all
}

/// One rank does all cases, and sends to the next one and receives from the one before it.
fn as_rank(comm: u64, rank: usize, ranks: usize, seed: u64) {
    let stream = stream();
    for case in cases(ranks, seed) {
        let places = case.memory(rank, ranks);
        case.start(places, comm, stream);
        good("cuStreamSynchronize", &[stream]);
        case.check(rank, ranks, places[1]);
    }
    let numbers: Vec<u8> = (0..100_000u32).flat_map(|i| (i * (rank as u32 + 1)).to_le_bytes()).collect();
    let (from, to) = (memory(&numbers), memory(&vec![0; numbers.len()]));
    good("ncclGroupStart", &[]);
    good("ncclSend", &[from, 100_000, 3, ((rank + 1) % ranks) as u64, comm, stream]);
    good("ncclRecv", &[to, 100_000, 3, ((rank + ranks - 1) % ranks) as u64, comm, stream]);
    good("ncclGroupEnd", &[]);
    good("cuStreamSynchronize", &[stream]);
    let before = (rank + ranks - 1) % ranks;
    let expected: Vec<u8> = (0..100_000u32).flat_map(|i| (i * (before as u32 + 1)).to_le_bytes()).collect();
    assert!(read(to, numbers.len()) == expected);
}

#[test]
fn ranks_are_threads() {
    passed(&command("threads", 4, "").output().unwrap());
}

#[test]
#[ignore = "it needs several devices"]
fn threads() {
    for ranks in [2, 4] {
        let id = new_id();
        std::thread::scope(|scope| {
            for rank in 0..ranks {
                scope.spawn(move || {
                    select(rank);
                    let comm = init(ranks, id, rank).unwrap();
                    let (mut of, mut count, mut device) = (9u32, 9u32, 9u32);
                    good("ncclCommUserRank", &[comm, place(&mut of)]);
                    good("ncclCommCount", &[comm, place(&mut count)]);
                    good("ncclCommCuDevice", &[comm, place(&mut device)]);
                    assert_eq!([of, count, device], [rank, ranks, rank].map(|n| n as u32));
                    as_rank(comm, rank, ranks, ranks as u64);
                    good("ncclCommDestroy", &[comm]);
                    assert_eq!(call("ncclCommDestroy", &[comm]), 4);
                });
            }
        });
    }
}

#[test]
fn one_thread_speaks_for_all_ranks() {
    passed(&command("groups", 3, "").output().unwrap());
}

#[test]
#[ignore = "it needs several devices"]
fn groups() {
    const RANKS: usize = 3;
    select(0);
    let mut comms = [0u64; RANKS];
    good("ncclCommInitAll", &[place(&mut comms), RANKS as u64, 0]);
    let streams: [u64; RANKS] = std::array::from_fn(|device| {
        select(device);
        stream()
    });
    let all = |what: &dyn Fn(usize)| {
        good("ncclGroupStart", &[]);
        for rank in 0..RANKS {
            select(rank);
            what(rank);
        }
        good("ncclGroupEnd", &[]);
        streams.iter().for_each(|&stream| good("cuStreamSynchronize", &[stream]));
    };
    for case in cases(RANKS, 9) {
        let places: [_; RANKS] = std::array::from_fn(|rank| {
            select(rank);
            case.memory(rank, RANKS)
        });
        all(&|rank| case.start(places[rank], comms[rank], streams[rank]));
        (0..RANKS).for_each(|rank| case.check(rank, RANKS, places[rank][1]));
    }
    // All to all, itself too: more than a ring holds.
    let count = 50_000u64;
    let pairs: Vec<[u64; 2]> = (0..RANKS * RANKS)
        .map(|i| {
            select(i / RANKS);
            [memory(&vec![i as u8 + 1; count as usize]), memory(&vec![0; count as usize])]
        })
        .collect();
    all(&|rank| {
        for peer in 0..RANKS {
            let [from, to] = pairs[rank * RANKS + peer];
            good("ncclSend", &[from, count, 1, peer as u64, comms[rank], streams[rank]]);
            good("ncclRecv", &[to, count, 1, peer as u64, comms[rank], streams[rank]]);
        }
    });
    for (i, pair) in pairs.iter().enumerate() {
        let sender = i % RANKS * RANKS + i / RANKS;
        assert!(read(pair[1], count as usize).iter().all(|&byte| byte == sender as u8 + 1));
    }
    // The default streams, each of its device, whatever is current.
    let numbers: Vec<_> = (0..RANKS)
        .map(|rank| {
            select(rank);
            memory(&(rank as f32 + 1.0).to_le_bytes())
        })
        .collect();
    good("ncclGroupStart", &[]);
    (0..RANKS)
        .for_each(|rank| good("ncclAllReduce", &[numbers[rank], numbers[rank], 1, 7, 0, comms[rank], 0]));
    good("ncclGroupEnd", &[]);
    for (rank, &number) in numbers.iter().enumerate() {
        select(rank);
        good("cuCtxSynchronize", &[]);
        assert_eq!(read(number, 4), 6f32.to_le_bytes());
    }
    // Numbers are added in the order of the ranks, for all, so that all get the same bits.
    let mut rng = Rng::with_seed(3);
    let random: Vec<Vec<f32>> =
        (0..RANKS).map(|_| (0..3000).map(|_| rng.f32() * 10f32.powi(rng.i32(-4..4))).collect()).collect();
    let sums = (0..3000)
        .flat_map(|i| ((random[0][i] + random[1][i]) + random[2][i]).to_le_bytes())
        .collect::<Vec<_>>();
    let places: Vec<_> = (0..RANKS)
        .map(|rank| {
            select(rank);
            memory(&random[rank].iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>())
        })
        .collect();
    all(&|rank| good("ncclAllReduce", &[places[rank], places[rank], 3000, 7, 0, comms[rank], streams[rank]]));
    assert!(places.iter().all(|&place| read(place, sums.len()) == sums));
    // Each rank's numbers are multiplied by a number of its own.
    let mut reductions = [0u32; RANKS];
    for rank in 0..RANKS {
        let mut scalar = rank as f32 * 10.0;
        good(
            "ncclRedOpCreatePreMulSum",
            &[place(&mut reductions[rank]), place(&mut scalar), 7, 1, comms[rank]],
        );
    }
    all(&|rank| {
        let reduction = reductions[rank].into();
        good("ncclAllReduce", &[numbers[rank], numbers[rank], 1, 7, reduction, comms[rank], streams[rank]]);
    });
    assert_eq!(
        numbers.iter().map(|&number| read(number, 4)).collect::<Vec<_>>(),
        vec![180f32.to_le_bytes(); 3]
    );
    good("ncclRedOpDestroy", &[reductions[0].into(), comms[0]]);
    assert_eq!(call("ncclRedOpDestroy", &[reductions[0].into(), comms[0]]), 4);
    // Ranks 2 and 0 become ranks 0 and 1 of another communicator.
    let mut parts = [1u64; RANKS];
    good("ncclGroupStart", &[]);
    for rank in 0..RANKS {
        let color = if rank == 1 { u64::from(u32::MAX) } else { 5 };
        good("ncclCommSplit", &[comms[rank], color, (10 - rank) as u64, place(&mut parts[rank]), 0]);
    }
    good("ncclGroupEnd", &[]);
    let mut first = 9u32;
    good("ncclCommUserRank", &[parts[2], place(&mut first)]);
    assert_eq!((parts[1], first), (0, 0));
    good("ncclGroupStart", &[]);
    for rank in [0, 2] {
        good("ncclBcast", &[numbers[rank], 1, 7, 0, parts[rank], streams[rank]]);
    }
    good("ncclGroupEnd", &[]);
    streams.iter().for_each(|&stream| good("cuStreamSynchronize", &[stream]));
    // A graph has operations as nodes, and may be launched several times.
    for (rank, &stream) in streams.iter().enumerate() {
        select(rank);
        good("cuMemsetD32_v2", &[numbers[rank], 1, 1]);
        good("cuCtxSynchronize", &[]);
        good("cuStreamBeginCapture_v2", &[stream, 2]);
        good("ncclAllReduce", &[numbers[rank], numbers[rank], 1, 3, 0, comms[rank], stream]);
        let (mut graph, mut exec) = (0u64, 0u64);
        good("cuStreamEndCapture", &[stream, place(&mut graph)]);
        good("cuGraphInstantiateWithFlags", &[place(&mut exec), graph, 0]);
        good("cuGraphLaunch", &[exec, stream]);
        good("cuGraphLaunch", &[exec, stream]);
    }
    streams.iter().for_each(|&stream| good("cuStreamSynchronize", &[stream]));
    assert_eq!(read(numbers[1], 4), 9u32.to_le_bytes());
    comms.iter().for_each(|&comm| good("ncclCommFinalize", &[comm]));
    comms.iter().for_each(|&comm| good("ncclCommDestroy", &[comm]));
}

/// Starts the two ranks of a test as processes, and waits for them.
fn two_processes(test: &str, cases: [&str; 2]) -> [Output; 2] {
    let id = new_id().0.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let start = |rank: usize| {
        let mut command = command(test, 1, cases[rank]);
        command.env("RANK", rank.to_string()).env("ID", &id).env("PTXVM_NCCL_TIMEOUT", "5");
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    [start(0), start(1)].map(|child| child.wait_with_output().unwrap())
}

/// The rank of this process, with its communicator.
fn of_environment() -> (u64, usize) {
    let (rank, text) = (std::env::var("RANK").unwrap().parse().unwrap(), std::env::var("ID").unwrap());
    let id = std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap());
    select(0);
    (init(2, Id(id), rank).unwrap(), rank)
}

#[test]
fn ranks_are_processes() {
    two_processes("process", ["", ""]).iter().for_each(|output| drop(passed(output)));
}

#[test]
#[ignore = "it is one of two processes"]
fn process() {
    let (comm, rank) = of_environment();
    as_rank(comm, rank, 2, 77);
    good("ncclCommDestroy", &[comm]);
}

#[test]
fn what_does_not_fit_is_said_and_who_goes_is_missed() {
    // What ranks 0 and 1 do, and what is said of it.
    for (cases, says) in [
        (
            ["1000", "1001"],
            "rank 0 is at ncclAllReduce of 1000 Float32 (sum), and rank 1 at ncclAllReduce of 1001 Float32",
        ),
        (["7", "send"], "rank 1 at ncclSend or ncclRecv of 10 Float32"),
        (["5", "dies"], "rank 1 has ended, with its process"),
        (["5", "leaves"], "rank 1 has destroyed its communicator"),
        (["5", "aborts"], "rank 1 has aborted its communicator"),
        (["aborts waiting", "sleeps"], ""),
    ] {
        let outputs = two_processes("mistaken", cases);
        let errors = outputs.iter().map(|output| String::from_utf8_lossy(&output.stderr)).collect::<String>();
        passed(&outputs[0]);
        assert!(errors.contains(says), "{cases:?}: {errors}");
    }
}

#[test]
#[ignore = "it is one of two processes"]
fn mistaken() {
    let (comm, rank) = of_environment();
    let (stream, numbers) = (stream(), memory(&[0; 8000]));
    let case = std::env::var("CASE").unwrap();
    match case.as_str() {
        "dies" => std::process::exit(0),
        "leaves" => return good("ncclCommDestroy", &[comm]),
        "aborts" => return good("ncclCommAbort", &[comm]),
        "sleeps" => return std::thread::sleep(std::time::Duration::from_millis(300)),
        "send" => {
            good("ncclSend", &[numbers, 10, 7, 0, comm, stream]);
            // It is on its way.
            return good("cuStreamSynchronize", &[stream]);
        }
        "aborts waiting" => {
            good("ncclAllReduce", &[numbers, numbers, 1, 7, 0, comm, stream]);
            good("ncclCommAbort", &[comm]);
            // The work ends, and the context is as it was.
            good("cuStreamSynchronize", &[stream]);
            return good("cuCtxSynchronize", &[]);
        }
        count => {
            let count = count.parse().unwrap();
            good("ncclAllReduce", &[numbers, numbers, count, 7, 0, comm, stream]);
        }
    }
    // The work fails as a kernel does, and the communicator knows.
    assert_eq!(call("cuStreamSynchronize", &[stream]), 719);
    let mut error = 0u32;
    good("ncclCommGetAsyncError", &[comm, place(&mut error)]);
    assert!(matches!(error, 5 | 6), "{rank}: {error}");
    assert_eq!(call("ncclAllReduce", &[numbers, numbers, 1, 7, 0, comm, stream]), error);
}

#[test]
fn bad_calls_are_refused() {
    select(0);
    let (mut value, id) = (0u32, new_id());
    good("ncclGetVersion", &[place(&mut value)]);
    assert_eq!(value, 22703);
    assert_eq!(call("ncclGetVersion", &[0]), 4);
    assert_eq!((init(0, id, 0), init(2, id, 2), init(1, Id([7; 128]), 0)), (Err(4), Err(4), Err(4)));
    let mut elsewhere = id;
    elsewhere.0[40] ^= 1;
    assert_eq!((init(1, elsewhere, 0), init(65, id, 0)), (Err(5), Err(5)));
    // A communicator of one rank.
    let comm = init(1, id, 0).unwrap();
    let (stream, numbers) = (stream(), memory(&[0; 16]));
    good("ncclAllReduce", &[numbers, numbers, 4, 7, 0, comm, stream]);
    // Too many numbers, an unknown type, reduction, root; no memory of a device.
    for bad in [[numbers, 5, 7, 0], [numbers, 4, 12, 0], [numbers, 4, 7, 6], [4096, 1, 7, 0]] {
        let [memory, count, ty, reduction] = bad;
        assert_eq!(
            call("ncclAllReduce", &[memory, memory, count, ty, reduction, comm, stream]),
            4,
            "{bad:?}"
        );
    }
    assert_eq!(call("ncclBcast", &[numbers, 4, 7, 1, comm, stream]), 4);
    assert_eq!(call("ncclGroupEnd", &[]), 5);
    // An error in a group is that of its end, too.
    good("ncclGroupStart", &[]);
    assert_eq!(call("ncclBcast", &[numbers, 4, 7, 1, comm, stream]), 4);
    assert_eq!(call("ncclGroupEnd", &[]), 4);
    let mut address = 0u64;
    good("ncclMemAlloc", &[place(&mut address), 64]);
    good("ncclMemFree", &[address]);
    good("ncclCommDestroy", &[comm]);
}
