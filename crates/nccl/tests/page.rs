//! docs/nccl.md says what the library has. `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-nccl --test page` writes it.

use std::fmt::Write;

use ptxvm_nccl::{Function, functions};

/// What holds for all functions.
const HEAD: &str = "# The functions of libnccl.so.2

From the declarations in crates/nccl, by `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-nccl --test page`. The functions are those of NCCL 2.27, of which the \
library gives its version.

`ptxvm exec` gives it to a program that links or opens NCCL, before NVIDIA's own. It needs ptxvm's [driver](libcuda.md): with another one, functions \
return `ncclUnhandledCudaError` and stderr says why.

- Ranks are threads, or [devices](devices.md) of one thread that uses groups or `ncclCommInitAll`, or processes of one machine. There are at most 64. Several \
may be on one device, which NCCL refuses.
- An id of another machine is refused by name (`ncclInvalidUsage`). Across machines a program's own backend does it, such as gloo or MPI.
- Operations run in the order of their streams, with kernels and copies. Those of one communicator come one after the other, also from several streams. A \
stream that captures a graph gets a node.
- Sends and receives of a group go on at a time, so their order does not matter. A message that fits its buffer (128 KiB) is sent before anybody receives it.
- Every call waits for what it needs; with `blocking = 0` in a configuration too.
- `ncclCommAbort` ends work that waits. Ranks that need one that has aborted, destroyed its communicator or ended with its process get \
`ncclRemoteError` from `ncclCommGetAsyncError`, the work fails as a kernel does (`CUDA_ERROR_LAUNCH_FAILED`), and stderr says which rank is missing. \
After 30 seconds without progress a rank says for whom it waits; after `PTXVM_NCCL_TIMEOUT` seconds it gives up.
- Ranks whose calls do not fit each other (operation, count, type, reduction, root) get `ncclInvalidUsage` in the same way, and stderr has both calls.
- A buffer that is longer than its memory is `ncclInvalidArgument`, and stderr says what it needs and what there is.

## Numbers

All types of `ncclDataType_t` are reduced, also those of 8 bits. All ranks get the same bits, in every run: numbers are reduced in the order of the ranks, \
`((x0 + x1) + x2) + ...`. Numbers of 8 and 16 bits are reduced as `float` and rounded once, at the end, to the nearest (of two equally near ones the even \
one); those of 8 bits that become too large become the largest finite number. NVIDIA's library rounds after each step, in an order that depends on the \
machine, so last bits differ. `ncclAvg` divides the sum by the number of ranks, of integers towards zero. `ncclMax` and `ncclMin` prefer a number to NaN. \
A product of `ncclRedOpCreatePreMulSum` is rounded to the type before it is sent.

Data goes through shared memory of the host, which the ranks map by a file in `/dev/shm` that is removed when all have come. If a rank is killed before, \
the file stays.

## Clients

Run on 2026-11-29: cudarc 0.19.10's four tests of NCCL, with one, two and four devices; and `torch.distributed` of PyTorch 2.3.1 with the backend `nccl`, two \
processes on two devices and on one: all_reduce (five types, maximum, average, asynchronous), broadcast, reduce, all_gather, reduce_scatter, all_to_all, \
send, recv, new_group.

## What they do

| functions | what they do |
|---|---|
";

/// The page, from the functions' declarations.
fn page() -> String {
    let mut text = HEAD.to_owned();
    for Function { symbol, summary, .. } in functions().filter(|function| function.supported) {
        let _ = writeln!(text, "| `{symbol}` | {} |", summary.trim());
    }
    text += "\n## What is refused\n\nThese return `ncclInvalidUsage`, and say so once on stderr: windows, one-sided access and communication by kernels, \
             communicators that grow, shrink or pause, simulation, and operations that are newer than 2.27.\n\n";
    let missing = functions().filter(|function| !function.supported);
    text += &test_utils::page::symbols(missing.map(|function| function.symbol));
    text.push('\n');
    text
}

#[test]
fn the_page_is_what_is_declared() {
    test_utils::page::holds("nccl.md", &page());
}

#[test]
fn every_function_is_declared_once() {
    let mut symbols: Vec<_> = functions().map(|function| function.symbol).collect();
    symbols.sort_unstable();
    symbols.dedup();
    assert_eq!(symbols.len(), functions().count());
    assert!(functions().all(|function| !function.supported || !function.summary.is_empty()));
}
