//! initcheck: finds the undefined bits of a result by running the operation on several inputs.

use machine::OperationEvent;

/// The values that the undefined bits of a use take in turn: all zeros, all ones, the least and greatest signed numbers of 16, 32
/// and 64 bits, and bit patterns.
const PATTERNS: [u64; 10] = [
    0,
    u64::MAX,
    0x5555_5555_5555_5555,
    0xaaaa_aaaa_aaaa_aaaa,
    0x8000_0000_8000_0000,
    0x7fff_ffff_7fff_ffff,
    0x8000_8000_8000_8000,
    0x3333_cccc_0f0f_7fff,
    0x0123_4567_89ab_cdef,
    0xfedc_ba98_7654_3210,
];

/// No operation that the event can compute has more operands.
const MOST: usize = 8;

/// The bits of a result that differ between attempts.
#[derive(Default)]
struct Changes {
    first: Option<u64>,
    bits: u64,
}

impl Changes {
    fn note(&mut self, result: u64) {
        self.bits |= result ^ *self.first.get_or_insert(result);
    }
}

/// The bits of a result that change with the undefined bits of its uses; `undefined`: these bits, by use.
pub(super) fn depends(
    event: &OperationEvent,
    index: usize,
    lane: usize,
    undefined: impl Fn(usize) -> u64,
) -> u64 {
    let uses = event.uses.len();
    if uses > MOST {
        return u64::MAX;
    }
    let (mut masks, mut actual, mut same) = ([0; MOST], [0; MOST], [0; MOST]);
    for source in 0..uses {
        (masks[source], actual[source]) = (undefined(source), event.value(source, lane));
        // A register that is read twice has the same value in both uses.
        same[source] =
            event.uses[..source].iter().position(|slot| *slot == event.uses[source]).unwrap_or(source);
    }
    let sources = || (0..uses).filter(|&source| masks[source] != 0 && same[source] == source);
    let mut changes = Changes::default();
    // Each distinct register takes the given value in its undefined bits.
    let mut attempt = |given: &[u64; MOST]| {
        let values: [u64; MOST] = std::array::from_fn(|source| {
            let mask = masks[source];
            actual[source] & !mask | given[same[source]] & mask
        });
        event.compute(&values[..uses]).map(|results| changes.note(results[index.min(1)]))
    };
    if attempt(&actual).is_none() {
        return u64::MAX;
    }
    let several = sources().count() > 1;
    for (turn, pattern) in PATTERNS.into_iter().enumerate() {
        attempt(&[pattern; MOST]);
        if several {
            attempt(&std::array::from_fn(|source| PATTERNS[(turn + 3 * source) % PATTERNS.len()]));
        }
    }
    for source in sources() {
        let with = |value| std::array::from_fn(|other| if other == source { value } else { actual[other] });
        if several {
            for value in [0, u64::MAX] {
                attempt(&with(value));
            }
        }
        // Comparisons change their results near the values of the other uses.
        for other in (0..uses).filter(|&other| same[other] != source) {
            let value = actual[other];
            for value in [value, value.wrapping_add(1), value.wrapping_sub(1)] {
                attempt(&with(value));
            }
            // Makes both uses equal where their undefined bits allow it.
            let mut equal = with(value);
            equal[same[other]] = actual[source] & !masks[source] | value & masks[source];
            attempt(&equal);
        }
    }
    changes.bits
}

/// The same for a result that combines a value of each lane of a warp; `undefined`: undefined bits by lane of the warp.
pub(super) fn depends_on_lanes(event: &OperationEvent, lane: usize, undefined: impl Fn(usize) -> u64) -> u64 {
    let first = lane / 32 * 32;
    let masks: [u64; 32] = std::array::from_fn(undefined);
    let actual: [u64; 32] = std::array::from_fn(|of_warp| event.value(0, first + of_warp));
    let mut changes = Changes::default();
    let mut attempt = |given: &dyn Fn(usize) -> u64| {
        let values = std::array::from_fn(|i| actual[i] & !masks[i] | given(i) & masks[i]);
        event.combine(lane, &values).map(|result| changes.note(result))
    };
    if attempt(&|i| actual[i]).is_none() {
        return u64::MAX;
    }
    for pattern in PATTERNS {
        attempt(&|_| pattern);
        // Also one lane at a time, so that two lanes do not cancel each other out.
        attempt(&|i| if masks[..i].iter().any(|&mask| mask != 0) { actual[i] } else { pattern });
    }
    let rank = |i: usize| masks[..i].iter().filter(|&&mask| mask != 0).count() as u64;
    attempt(&|i| 0u64.wrapping_sub(rank(i) & 1));
    changes.bits
}
