//! Mistakes of the program, and ranks that go.

mod ranks;

use ranks::*;

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
fn memory_of_another_device_must_be_open() {
    let errors = passed(&command("of_another_device", 2, "").output().unwrap());
    assert!(
        errors.contains("memory of device 1: `cudaDeviceEnablePeerAccess` has not let device 0 reach it"),
        "{errors}"
    );
}

#[test]
#[ignore = "it needs several devices"]
fn of_another_device() {
    select(1);
    let (mut other, numbers) = (0u64, memory(&[0; 16]));
    good("cuCtxGetCurrent", &[place(&mut other)]);
    select(0);
    let (comm, stream) = (init(1, new_id(), 0).unwrap(), stream());
    good("cuCtxEnablePeerAccess", &[other, 0]);
    good("ncclAllReduce", &[numbers, numbers, 4, 7, 0, comm, stream]);
    good("cuStreamSynchronize", &[stream]);
    good("cuCtxDisablePeerAccess", &[other]);
    good("ncclAllReduce", &[numbers, numbers, 4, 7, 0, comm, stream]);
    assert_eq!(call("cuStreamSynchronize", &[stream]), 719);
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
