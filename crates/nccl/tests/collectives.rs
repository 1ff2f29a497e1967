//! Operations of 2 to 4 ranks against plain loops: ranks as threads, as devices of one thread, and as two processes.

mod ranks;

use fastrand::Rng;
use half::{bf16, f16};
use ranks::*;

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
