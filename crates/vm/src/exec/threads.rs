//! Which threads the lanes of a gang are.
//!
//! What a gang is (its lanes, its place in a CTA) holds for all its CTA batches; [`Threads::start`] sets what differs.

use machine::mask::{GROUP_LANES, Mask};
use machine::shared_base;

use super::active::Everyone;
use crate::affine::LaneRows;
use crate::cta_batch::{CtaBatch, axis_along};
use crate::run::Run;

/// The threads of a gang: those of one CTA or a part of it, or all threads of several CTAs.
pub(crate) struct Threads {
    /// Number of lanes that vector operations cover: the threads, rounded up to whole groups.
    pub lanes: usize,
    /// The gang has all threads of its CTAs.
    pub whole_blocks: bool,
    /// Linear index of lane 0's thread in its CTA.
    pub first_thread: u32,
    /// Address in `.shared::cluster` where the CTA's shared memory begins.
    pub shared_base: u64,
    /// The lanes of each CTA.
    pub block_masks: Vec<Mask>,
    pub everyone: Everyone,
    /// The gang's CTAs, or the one CTA that it holds a part of.
    pub batch: CtaBatch,
    /// `%ctaid` of the first and of the last CTA.
    pub ctaids: [[u32; 3]; 2],
    /// The axis along which `%ctaid` steps by one from CTA to CTA; `None` if the batch continues past the end of a
    /// grid row.
    pub along: Option<usize>,
}

impl Threads {
    /// `threads` threads of CTAs with cluster rank `rank`.
    pub fn new(launch: &Run, rows: LaneRows, rank: u32, first_thread: u32, threads: usize) -> Threads {
        let lanes = threads.next_multiple_of(GROUP_LANES);
        Threads {
            lanes,
            whole_blocks: threads as u64 == launch.config().block_threads() * rows.blocks() as u64,
            first_thread,
            shared_base: shared_base(rank),
            block_masks: match rows.blocks() {
                1 => vec![Mask::ALL],
                blocks => {
                    let lanes = rows.block_lanes();
                    (0..blocks).map(|block| Mask::range(block * lanes, (block + 1) * lanes)).collect()
                }
            },
            everyone: Everyone::new(threads, lanes),
            batch: CtaBatch::default(),
            ctaids: [[0; 3]; 2],
            along: None,
        }
    }

    /// The threads of a CTA batch, or of this gang's part of one CTA. A batch may be smaller than the last one and
    /// leave lanes unused.
    pub fn start(&mut self, launch: &Run, rows: LaneRows, batch: CtaBatch) {
        self.batch = batch;
        let first = launch.ctaid(batch.first);
        self.along = axis_along(launch.config().grid, first, batch);
        self.ctaids = [first, self.ctaid_from(launch, first, batch.blocks - 1)];
        let threads = batch.blocks * rows.block_lanes();
        if rows.blocks() > 1 && self.everyone.threads != threads {
            self.everyone = Everyone::new(threads, self.lanes);
        }
    }

    /// `%ctaid` of CTA number `block`.
    #[inline]
    pub fn ctaid_of(&self, launch: &Run, block: usize) -> [u32; 3] {
        self.ctaid_from(launch, self.ctaids[0], block)
    }

    #[inline]
    fn ctaid_from(&self, launch: &Run, first: [u32; 3], block: usize) -> [u32; 3] {
        // `Launch::ctaid` divides, which is slow.
        let Some(along) = self.along else { return launch.ctaid(self.batch.block(block)) };
        // Not `ctaid[along] += block`: a load of the whole array would wait for this store.
        std::array::from_fn(|axis| first[axis] + if axis == along { block as u32 } else { 0 })
    }
}
