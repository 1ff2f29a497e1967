//! Every helper against the loop that it stands for, on every path.

use super::values::{Random, turns};
use super::{LANES, Register, available_paths};
use lanes::{Element, Extend, Helpers, LaneWidth, helpers};

mod common;

const WIDTHS: [LaneWidth; 3] = [LaneWidth::B2, LaneWidth::B4, LaneWidth::B8];
const COUNTS: [usize; 4] = [16, 48, 240, 256];

/// Runs a test on every path, a few times with other random numbers.
fn on_every_path(test: impl Fn(&Helpers, &mut Random)) {
    for path in available_paths() {
        let mut random = Random::new(7);
        for _ in 0..turns(20) {
            test(helpers(path), &mut random);
        }
    }
}

fn random_register(random: &mut Random) -> Register {
    let mut register = Register::new();
    for bytes in register.0.chunks_exact_mut(8) {
        bytes.copy_from_slice(&random.next().to_le_bytes());
    }
    register
}

/// No lane, all, a few, every other group, or any.
fn random_mask(random: &mut Random) -> [u64; 4] {
    let any: [u64; 4] = std::array::from_fn(|_| random.next());
    match random.below(5) {
        0 => [0; 4],
        1 => [!0; 4],
        2 => any.map(|word| word & (0xffff_0000 | 1 << (word >> 58))),
        3 => any.map(|word| if word & 1 == 0 { 0 } else { word | 0xffff }),
        _ => any,
    }
}

fn contains(mask: &[u64; 4], lane: usize) -> bool {
    mask[lane / 64] >> (lane % 64) & 1 != 0
}

fn get(register: &Register, width: LaneWidth, lane: usize) -> u64 {
    let mut bytes = [0; 8];
    let n = width.bytes(1);
    bytes[..n].copy_from_slice(&register.0[lane * n..][..n]);
    u64::from_le_bytes(bytes)
}

fn low_bytes(value: u64, bytes: usize) -> u64 {
    if bytes == 8 { value } else { value & ((1 << (8 * bytes)) - 1) }
}

/// Everything behind `lanes` lanes is as it was.
fn untouched(register: &Register, width: LaneWidth, lanes: usize) {
    assert!(register.0[width.bytes(lanes)..].iter().all(|&b| b == 0xa5));
}

#[test]
fn fill_and_ramp() {
    on_every_path(|helpers, random| {
        for (width, lanes) in WIDTHS.into_iter().flat_map(|w| COUNTS.map(|n| (w, n))) {
            let (base, stride) = (random.next(), random.next());
            let (mut filled, mut ramp) = (Register::new(), Register::new());
            // SAFETY: registers are large enough for all lanes of any width; likewise below.
            unsafe {
                (helpers.fill)(filled.0.as_mut_ptr(), width, base, lanes);
                (helpers.ramp)(ramp.0.as_mut_ptr(), width, base, stride, lanes);
            }
            for lane in 0..lanes {
                let expected = base.wrapping_add(stride.wrapping_mul(lane as u64));
                assert_eq!(get(&filled, width, lane), low_bytes(base, width.bytes(1)));
                assert_eq!(get(&ramp, width, lane), low_bytes(expected, width.bytes(1)));
            }
            untouched(&filled, width, lanes);
            untouched(&ramp, width, lanes);
        }
        for value in [0, 1, 2, 3] {
            let mut filled = Register::new();
            // SAFETY: as above.
            unsafe { (helpers.fill)(filled.0.as_mut_ptr(), LaneWidth::Bit, value, 48) };
            assert_eq!(filled.0[..6], [0u8.wrapping_sub(value as u8 & 1); 6]);
            untouched(&filled, LaneWidth::Bit, 48);
        }
    });
}

#[test]
fn merge_takes_the_lanes_of_the_mask() {
    on_every_path(|helpers, random| {
        for width in WIDTHS {
            let (mask, src, before) = (random_mask(random), random_register(random), random_register(random));
            let groups = random.below(16)..17 - random.below(3).min(16);
            let groups = groups.start.min(groups.end - 1)..groups.end.min(16);
            let mut dst = before.clone();
            // SAFETY: as above.
            unsafe { (helpers.merge)(dst.0.as_mut_ptr(), src.0.as_ptr(), width, &mask, groups.clone()) };
            for lane in 0..LANES {
                let from =
                    if groups.contains(&(lane / 16)) && contains(&mask, lane) { &src } else { &before };
                assert_eq!(
                    get(&dst, width, lane),
                    get(from, width, lane),
                    "{width:?} {groups:?} lane {lane}"
                );
            }
        }
        let (mask, src, before) = (random_mask(random), random_register(random), random_register(random));
        let mut dst = before.clone();
        // SAFETY: as above.
        unsafe { (helpers.merge)(dst.0.as_mut_ptr(), src.0.as_ptr(), LaneWidth::Bit, &mask, 1..15) };
        let word = |register: &Register, i: usize| get(register, LaneWidth::B8, i);
        let span = [!0xffff, !0, !0, !0 >> 16];
        for i in 0..4 {
            let mask = mask[i] & span[i];
            assert_eq!(word(&dst, i), word(&src, i) & mask | word(&before, i) & !mask);
        }
    });
}

#[test]
fn compress_and_expand() {
    on_every_path(|helpers, random| {
        for width in WIDTHS {
            let (mask, src, before) = (random_mask(random), random_register(random), random_register(random));
            let lanes: Vec<usize> = (0..LANES).filter(|&lane| contains(&mask, lane)).collect();
            let (mut together, mut apart) = (before.clone(), before.clone());
            // SAFETY: as above. Behind all lanes before those of the last group there are 16.
            unsafe {
                (helpers.compress)(together.0.as_mut_ptr(), src.0.as_ptr(), width, &mask);
                (helpers.expand)(apart.0.as_mut_ptr(), together.0.as_ptr(), width, &mask);
            }
            for (i, &lane) in lanes.iter().enumerate() {
                assert_eq!(get(&together, width, i), get(&src, width, lane), "{width:?} {i} of {lanes:?}");
            }
            for lane in lanes.len() + 15..LANES {
                assert_eq!(get(&together, width, lane), get(&before, width, lane), "{width:?} {lane}");
            }
            for lane in 0..LANES {
                let from = if lanes.contains(&lane) { &src } else { &before };
                assert_eq!(get(&apart, width, lane), get(from, width, lane), "{width:?} {lane} of {lanes:?}");
            }
        }
    });
}

#[test]
fn extend_and_truncate() {
    let kinds = [
        (Extend::U8, LaneWidth::B2, 8, false),
        (Extend::S8, LaneWidth::B2, 8, true),
        (Extend::U16, LaneWidth::B2, 16, false),
        (Extend::S16, LaneWidth::B2, 16, true),
        (Extend::U32, LaneWidth::B4, 32, false),
        (Extend::S32, LaneWidth::B4, 32, true),
    ];
    on_every_path(|helpers, random| {
        let src = random_register(random);
        for ((from, narrow, bits, signed), lanes) in kinds.into_iter().flat_map(|k| COUNTS.map(|n| (k, n))) {
            for width in WIDTHS {
                let mut dst = Register::new();
                // SAFETY: as above.
                unsafe { (helpers.extend)(dst.0.as_mut_ptr(), width, src.0.as_ptr(), from, lanes) };
                for lane in 0..lanes {
                    let value = get(&src, narrow, lane) << (64 - bits);
                    let extended =
                        if signed { (value as i64 >> (64 - bits)) as u64 } else { value >> (64 - bits) };
                    assert_eq!(
                        get(&dst, width, lane),
                        low_bytes(extended, width.bytes(1)),
                        "{from:?} {width:?}"
                    );
                }
                untouched(&dst, width, lanes);
            }
        }
        for (wide, narrow) in WIDTHS.into_iter().flat_map(|w| WIDTHS.map(|n| (w, n))) {
            if wide.bytes(1) >= narrow.bytes(1) {
                let mut dst = Register::new();
                // SAFETY: as above.
                unsafe { (helpers.truncate)(dst.0.as_mut_ptr(), narrow, src.0.as_ptr(), wide, LANES) };
                for lane in 0..LANES {
                    assert_eq!(get(&dst, narrow, lane), low_bytes(get(&src, wide, lane), narrow.bytes(1)));
                }
            }
        }
    });
}

#[test]
fn gather_and_scatter() {
    let elements = [
        (Element::U8, LaneWidth::B2, 1),
        (Element::S8, LaneWidth::B2, 1),
        (Element::B2, LaneWidth::B2, 2),
        (Element::B4, LaneWidth::B4, 4),
        (Element::B8, LaneWidth::B8, 8),
    ];
    on_every_path(|helpers, random| {
        for ((element, register, bytes), width) in
            elements.into_iter().flat_map(|e| [LaneWidth::B4, LaneWidth::B8].map(|w| (e, w)))
        {
            let mask = random_mask(random);
            let mut memory: Vec<u8> = (0..4096).map(|_| random.next() as u8).collect();
            // Inactive lanes have offsets that must not be followed. Those of 32 bits are addresses of a window at their end.
            let mut offsets = random_register(random);
            let n = width.bytes(1);
            let window: u64 = if width == LaneWidth::B4 { 0xfa00_0000 } else { 0 };
            for lane in (0..LANES).filter(|&lane| contains(&mask, lane)) {
                let offset = window + (random.below(4096 / bytes) * bytes) as u64;
                offsets.0[lane * n..][..n].copy_from_slice(&offset.to_le_bytes()[..n]);
            }
            let (src, before) = (random_register(random), random_register(random));
            let mut dst = before.clone();
            // SAFETY: active lanes have offsets within memory; otherwise as above.
            unsafe {
                (helpers.gather)(
                    dst.0.as_mut_ptr(),
                    element,
                    memory.as_ptr().wrapping_sub(window as usize),
                    offsets.0.as_ptr(),
                    width,
                    &mask,
                );
            }
            let mut expected = memory.clone();
            for lane in 0..LANES {
                let got = get(&dst, register, lane);
                if !contains(&mask, lane) {
                    assert_eq!(got, get(&before, register, lane));
                    continue;
                }
                let offset = (get(&offsets, width, lane) - window) as usize;
                let mut value = [0; 8];
                value[..bytes].copy_from_slice(&memory[offset..][..bytes]);
                let value = u64::from_le_bytes(value);
                let value = if element == Element::S8 { u64::from(value as i8 as u16) } else { value };
                assert_eq!(got, value, "{element:?} {width:?} lane {lane}");
                expected[offset..][..bytes]
                    .copy_from_slice(&get(&src, register, lane).to_le_bytes()[..bytes]);
            }
            // SAFETY: as for gather.
            unsafe {
                (helpers.scatter)(
                    src.0.as_ptr(),
                    element,
                    memory.as_mut_ptr().wrapping_sub(window as usize),
                    offsets.0.as_ptr(),
                    width,
                    &mask,
                );
            }
            assert!(memory == expected, "{element:?} {width:?}");
        }
    });
}

#[test]
fn bytes_and_vectors_of_memory() {
    on_every_path(|helpers, random| {
        for (lanes, odd) in COUNTS.into_iter().flat_map(|n| [(n, 0), (n, 1)]) {
            let memory = random_register(random);
            let bytes = &memory.0[odd..];
            for signed in [false, true] {
                let mut dst = Register::new();
                // SAFETY: as above.
                unsafe { (helpers.widen_bytes)(dst.0.as_mut_ptr(), bytes.as_ptr(), signed, lanes) };
                for (lane, &byte) in bytes[..lanes].iter().enumerate() {
                    let expected = if signed { byte as i8 as u16 } else { u16::from(byte) };
                    assert_eq!(get(&dst, LaneWidth::B2, lane), u64::from(expected));
                }
                untouched(&dst, LaneWidth::B2, lanes);
            }
            let mut dst = Register::new();
            // SAFETY: as above.
            unsafe { (helpers.narrow_bytes)(dst.0.as_mut_ptr(), memory.0.as_ptr(), lanes) };
            for lane in 0..lanes {
                assert_eq!(dst.0[lane], get(&memory, LaneWidth::B2, lane) as u8);
            }
            assert!(dst.0[lanes..].iter().all(|&b| b == 0xa5));
        }
        for (width, count) in WIDTHS.into_iter().flat_map(|w| [(w, 2), (w, 4)]) {
            let n = width.bytes(1);
            let size = count * n;
            let memory: Vec<u8> = (0..size * LANES).map(|_| random.next() as u8).collect();
            let mut registers = vec![Register::new(); count];
            let pointers: Vec<*mut u8> = registers.iter_mut().map(|r| r.0.as_mut_ptr()).collect();
            let mut back = vec![0; memory.len()];
            // SAFETY: memory holds all vectors of all lanes; otherwise as above.
            unsafe {
                (helpers.deinterleave)(&pointers, memory.as_ptr(), size, width, LANES);
                let sources: Vec<*const u8> = pointers.iter().map(|p| p.cast_const()).collect();
                (helpers.interleave)(back.as_mut_ptr(), &sources, width, LANES);
            }
            for (k, register) in registers.iter().enumerate() {
                for lane in 0..LANES {
                    assert_eq!(register.0[lane * n..][..n], memory[(lane * count + k) * n..][..n]);
                }
            }
            assert!(memory == back);
            // Steps that leave vectors out, share bytes of them, come back to the same one, or go down.
            let lanes = 48;
            for step in [2 * size as isize, 3 * size as isize + 1, n as isize, 0, -(size as isize)] {
                let start = if step < 0 { (lanes - 1) * size } else { 0 };
                let mut registers = vec![Register::new(); count];
                let pointers: Vec<*mut u8> = registers.iter_mut().map(|r| r.0.as_mut_ptr()).collect();
                // SAFETY: as above: `LANES` is more than four times the lanes.
                unsafe {
                    let src = memory.as_ptr().add(start);
                    (helpers.deinterleave)(&pointers, src, step as usize, width, lanes);
                }
                for (k, register) in registers.iter().enumerate() {
                    for lane in 0..lanes {
                        let from = start.wrapping_add_signed(lane as isize * step) + k * n;
                        assert_eq!(register.0[lane * n..][..n], memory[from..][..n], "{width:?} by {step}");
                    }
                    untouched(register, width, lanes);
                }
            }
        }
    });
}

#[test]
fn vectors_of_bytes_are_extended() {
    on_every_path(|helpers, random| {
        let memory = random_register(random);
        for (count, odd, lanes) in [(2, 0, 64), (2, 1, 256), (4, 0, 256), (4, 1, 48)] {
            let bytes = &memory.0[odd..];
            for signed in [false, true] {
                let mut registers = vec![Register::new(); count];
                let pointers: Vec<*mut u8> = registers.iter_mut().map(|r| r.0.as_mut_ptr()).collect();
                // SAFETY: the register that stands for memory has at least four bytes for each of 256 lanes, and more.
                unsafe { (helpers.split_bytes)(&pointers, bytes.as_ptr(), signed, lanes) }
                for (k, register) in registers.iter().enumerate() {
                    for lane in 0..lanes {
                        let byte = bytes[lane * count + k];
                        let expected = if signed { byte as i8 as u16 } else { u16::from(byte) };
                        assert_eq!(
                            get(register, LaneWidth::B2, lane),
                            u64::from(expected),
                            "byte {k} of {lane}"
                        );
                    }
                    untouched(register, LaneWidth::B2, lanes);
                }
            }
        }
    });
}

#[test]
fn elements_that_step_evenly() {
    on_every_path(|helpers, random| {
        for (width, lanes) in WIDTHS.into_iter().flat_map(|w| [(w, 16), (w, 48), (w, 256)]) {
            let bytes = width.bytes(1) as isize;
            for step in [1, 2, 3, 8, -1, -2].map(|elements| elements * bytes) {
                // Exactly as long as what is accessed, at any address.
                let odd = random.below(8);
                let length = (lanes as isize - 1) * step.abs() + bytes;
                let before: Vec<u8> = (0..odd + length as usize).map(|_| random.next() as u8).collect();
                let first = odd as isize + if step < 0 { length - bytes } else { 0 };
                let at = |lane: usize| (first + lane as isize * step) as usize;
                let mut dst = Register::new();
                let src = random_register(random);
                let (mut stored, mut expected) = (before.clone(), before.clone());
                // SAFETY: the elements lie in memory, and registers have all lanes.
                unsafe {
                    let from = before.as_ptr().add(first as usize);
                    (helpers.load_strided)(dst.0.as_mut_ptr(), width, from, step as usize, lanes);
                    let to = stored.as_mut_ptr().add(first as usize);
                    (helpers.store_strided)(src.0.as_ptr(), width, to, step as usize, lanes);
                }
                for lane in 0..lanes {
                    let mut value = [0; 8];
                    value[..bytes as usize].copy_from_slice(&before[at(lane)..][..bytes as usize]);
                    assert_eq!(get(&dst, width, lane), u64::from_le_bytes(value), "{width:?} by {step}");
                    let value = get(&src, width, lane).to_le_bytes();
                    expected[at(lane)..][..bytes as usize].copy_from_slice(&value[..bytes as usize]);
                }
                untouched(&dst, width, lanes);
                assert!(stored == expected, "{width:?} by {step}");
            }
        }
    });
}

#[test]
fn tiles_are_rows_or_columns_that_lanes_name() {
    on_every_path(|helpers, random| {
        let memory = random_register(random);
        for (count, transposed) in [1, 2, 4].into_iter().flat_map(|n| [(n, false), (n, true)]) {
            let window = random.next();
            let addresses: Vec<u64> =
                (0..LANES).map(|_| window.wrapping_add(random.below(1 << 10) as u64)).collect();
            let warps = random.below(256) as u32;
            let mut registers = vec![Register::new(); count];
            let pointers: Vec<*mut u8> = registers.iter_mut().map(|r| r.0.as_mut_ptr()).collect();
            // SAFETY: a row of 16 bytes lies in memory wherever it starts below 1024, and registers have all warps.
            unsafe {
                let base = memory.0.as_ptr().wrapping_sub(window as usize);
                (helpers.load_tiles)(&pointers, base, &addresses, warps, transposed);
            }
            for (tile, lane) in (0..count).flat_map(|tile| (0..LANES).map(move |lane| (tile, lane))) {
                let (warp, lane) = (lane / 32, lane % 32);
                let half = |row: usize, column: usize| {
                    let at = addresses[warp * 32 + 8 * tile + row].wrapping_sub(window) as usize + 2 * column;
                    u64::from(u16::from_le_bytes([memory.0[at], memory.0[at + 1]]))
                };
                let (row, column) = (lane / 4, lane % 4 * 2);
                let want = match transposed {
                    false => half(row, column) | half(row, column + 1) << 16,
                    true => half(column, row) | half(column + 1, row) << 16,
                };
                let want = if warps >> warp & 1 == 0 { 0xa5a5_a5a5 } else { want };
                let got = get(&registers[tile], LaneWidth::B4, warp * 32 + lane);
                assert_eq!(got, want, "lane {lane} of warp {warp}, matrix {tile}, {transposed}");
            }
        }
    });
}

#[test]
fn rows_are_copied_or_broadcast() {
    on_every_path(|helpers, random| {
        let memory = random_register(random);
        for width in WIDTHS {
            let bytes = width.bytes(1);
            for groups in [1, 2] {
                for broadcast in [false, true] {
                    let count = 1 + random.below(8 / groups);
                    let pitch = [0, bytes, 3 * bytes, 16 * bytes][random.below(4)];
                    let mut dst = Register::new();
                    let rows = lanes::MemoryRows { count, groups, pitch };
                    // SAFETY: a register holds `MANY` elements of 8 bytes, more than the rows reach.
                    unsafe {
                        (helpers.copy_rows)(dst.0.as_mut_ptr(), width, memory.0.as_ptr(), rows, broadcast);
                    }
                    for lane in 0..count * groups * 16 {
                        let (row, column) = (lane / (16 * groups), lane % (16 * groups));
                        let at = row * pitch + if broadcast { 0 } else { column * bytes };
                        let mut value = [0; 8];
                        value[..bytes].copy_from_slice(&memory.0[at..][..bytes]);
                        assert_eq!(get(&dst, width, lane), u64::from_le_bytes(value), "{width:?} {rows:?}");
                    }
                    untouched(&dst, width, count * groups * 16);
                }
            }
        }
    });
}

#[test]
fn bytes_that_overlap_are_copied_as_they_were() {
    on_every_path(|helpers, random| {
        let before = random_register(random).0;
        for bytes in (0..300).step_by(if cfg!(miri) { 37 } else { 1 }).chain([511, 512, 777]) {
            let distance = random.below(bytes + 2);
            for (from, to) in [(200, 200 + distance), (200 + distance, 200), (0, 1024)] {
                let (mut copied, mut expected) = (before, before);
                expected.copy_within(from..from + bytes, to);
                let memory = copied.as_mut_ptr();
                // SAFETY: a register has 2048 bytes, more than these end at.
                unsafe { (helpers.copy)(memory.add(to), memory.add(from), bytes) }
                assert!(copied == expected, "{bytes} bytes from {from} to {to} on {:?}", helpers.path);
            }
        }
    });
}

#[test]
fn warps_are_permuted() {
    on_every_path(|helpers, random| {
        let src = random_register(random);
        let from: [u32; 32] = std::array::from_fn(|_| random.below(32) as u32);
        for lanes in COUNTS {
            let mut dst = Register::new();
            // SAFETY: the registers have `MANY` elements.
            unsafe { (helpers.permute_warps)(dst.0.as_mut_ptr(), src.0.as_ptr(), &from, lanes) }
            for lane in 0..lanes {
                let other = lane / 32 * 32 + from[lane % 32] as usize;
                // A warp of 16 lanes has zeros for the others.
                let want = if other < lanes { get(&src, LaneWidth::B4, other) } else { 0 };
                assert_eq!(get(&dst, LaneWidth::B4, lane), want, "lane {lane} of {lanes}");
            }
            untouched(&dst, LaneWidth::B4, lanes);
        }
    });
}
