//! What memory pools keep.

mod driver;

use std::ffi::c_uint;
use std::ptr::null_mut;

use driver::*;

const RELEASE_THRESHOLD: c_uint = 4;
const RESERVED_HIGH: c_uint = 6;
const USED_HIGH: c_uint = 8;
const CHUNK: u64 = 32 << 20;

/// Reserved now and at most, used now and at most.
fn state(pool: Handle) -> [u64; 4] {
    std::array::from_fn(|i| {
        let mut value = 0;
        ok!(cuMemPoolGetAttribute(pool, 5 + i as c_uint, &raw mut value));
        value
    })
}

fn set(pool: Handle, attribute: c_uint, mut value: u64) {
    ok!(cuMemPoolSetAttribute(pool, attribute, &raw mut value));
}

fn free_memory() -> u64 {
    let (mut free, mut total) = (0, 0);
    ok!(cuMemGetInfo_v2(&raw mut free, &raw mut total));
    free as u64
}

#[test]
fn pools_keep_what_was_given_back_until_they_are_told_or_waited_for() {
    driver::start();
    let (mut pool, stream) = (null_mut(), stream(1));
    // Memory that stays on the device (`CU_MEM_ALLOCATION_TYPE_PINNED`), of device 0 (`CU_MEM_LOCATION_TYPE_DEVICE`).
    let mut properties = [0; 32];
    (properties[0], properties[2]) = (1, 1);
    ok!(cuMemPoolCreate(&raw mut pool, &raw const properties));
    let give_back = |address| {
        ok!(cuMemFreeAsync(address, stream));
        // To ask is not to wait.
        // SAFETY: it is a stream.
        while unsafe { cuStreamQuery(stream) } != 0 {}
    };
    let take = |bytes: u64| {
        let mut address = 0;
        ok!(cuMemAllocFromPoolAsync(&raw mut address, bytes as usize, pool, stream));
        address
    };
    let free = free_memory();
    assert_eq!(state(pool), [0; 4]);
    let first = take(1000);
    assert_eq!(state(pool), [CHUNK, CHUNK, 1000, 1000]);
    assert_eq!(free_memory(), free - CHUNK);
    let second = take(2 * CHUNK);
    assert_eq!(state(pool), [3 * CHUNK, 3 * CHUNK, 2 * CHUNK + 1000, 2 * CHUNK + 1000]);
    // It stays the pool's until somebody waits; then what is above the threshold, 0, goes.
    give_back(second);
    assert_eq!(state(pool)[..3], [3 * CHUNK, 3 * CHUNK, 1000]);
    ok!(cuStreamSynchronize(stream));
    assert_eq!(state(pool)[..3], [CHUNK, 3 * CHUNK, 1000]);
    set(pool, RESERVED_HIGH, 0);
    assert_eq!(state(pool), [CHUNK, CHUNK, 1000, 2 * CHUNK + 1000]);
    set(pool, USED_HIGH, 0);
    assert_eq!(state(pool), [CHUNK, CHUNK, 1000, 1000]);
    // A threshold keeps it, and what is trimmed leaves as much as one says.
    set(pool, RELEASE_THRESHOLD, u64::MAX);
    give_back(take(3 * CHUNK));
    give_back(first);
    ok!(cuCtxSynchronize());
    assert_eq!(state(pool), [4 * CHUNK, 4 * CHUNK, 0, 3 * CHUNK + 1000]);
    ok!(cuMemPoolTrimTo(pool, CHUNK as usize + 1));
    assert_eq!(state(pool)[0], 2 * CHUNK);
    set(pool, RELEASE_THRESHOLD, 2 * CHUNK - 1);
    ok!(cuStreamSynchronize(stream));
    assert_eq!(state(pool)[0], CHUNK);
    ok!(cuMemPoolTrimTo(pool, 0));
    assert_eq!((state(pool)[0], free_memory()), (0, free));
    ok!(cuMemPoolDestroy(pool));
}
