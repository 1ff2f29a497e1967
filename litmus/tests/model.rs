//! The model against verdicts for shapes of the literature that were derived by hand from the axioms of NVIDIA's manual and of its paper on
//! the model (Lustig, Sahasrabuddhe and Giroux, ASPLOS 2019). NVIDIA's own Alloy model was not run on them.

use litmus::catalog::{STRENGTHS, Shape};
use litmus::permitted;
use litmus::program::{Fence, Placement, Scope};

const NONE: Option<Fence> = None;
const ACQ_REL: Option<Fence> = Some(Fence::AcquireRelease);
const SC: Option<Fence> = Some(Fence::Sequential);

/// Shape, orders, fence, scope, where the threads are, the values of the first registers (or of all and the places), and whether they may be.
type Verdict = (&'static str, &'static str, Option<Fence>, Scope, Placement, &'static [u8], bool);

#[rustfmt::skip]
const VERDICTS: &[Verdict] = {
    use Placement::{Blocks, Clusters, Lanes, Warps};
    use Scope::{Cluster, Cta, Gpu, Sys};
    &[
        // Message passing: by release and acquire, or by fences, if the scope holds both threads.
        ("MP", "release/acquire", NONE, Gpu, Clusters, &[1, 0], false),
        ("MP", "release/acquire flag", NONE, Gpu, Clusters, &[1, 0], false),
        ("MP", "release/acquire flag", NONE, Sys, Warps, &[1, 0], false),
        ("MP", "release/acquire", NONE, Cta, Warps, &[1, 0], false),
        ("MP", "release/acquire", NONE, Cta, Blocks, &[1, 0], true),
        ("MP", "release/acquire", NONE, Cluster, Blocks, &[1, 0], false),
        ("MP", "release/acquire", NONE, Cluster, Clusters, &[1, 0], true),
        ("MP", "relaxed", NONE, Gpu, Clusters, &[1, 0], true),
        ("MP", "relaxed", ACQ_REL, Gpu, Clusters, &[1, 0], false),
        ("MP", "relaxed", SC, Gpu, Clusters, &[1, 0], false),
        ("MP", "relaxed", ACQ_REL, Cta, Clusters, &[1, 0], true),
        ("MP", "relaxed flag", ACQ_REL, Gpu, Clusters, &[1, 0], false),
        ("MP", "volatile", NONE, Gpu, Clusters, &[1, 0], true),
        ("MP", "volatile", ACQ_REL, Gpu, Clusters, &[1, 0], false),
        ("MP", "volatile flag", ACQ_REL, Gpu, Clusters, &[1, 0], false),
        ("MP", "weak", ACQ_REL, Gpu, Clusters, &[1, 0], true),
        ("MP", "relaxed/acquire", NONE, Gpu, Clusters, &[1, 0], true),
        ("MP", "release/relaxed", NONE, Gpu, Clusters, &[1, 0], true),
        // Store buffering needs fence.sc, and that orders weak accesses too.
        ("SB", "relaxed", SC, Gpu, Clusters, &[0, 0], false),
        ("SB", "weak", SC, Gpu, Clusters, &[0, 0], false),
        ("SB", "relaxed", SC, Cta, Clusters, &[0, 0], true),
        ("SB", "relaxed", ACQ_REL, Gpu, Clusters, &[0, 0], true),
        ("SB", "release/acquire", NONE, Gpu, Clusters, &[0, 0], true),
        ("SB", "relaxed", SC, Gpu, Clusters, &[0, 1], true),
        // Load buffering may be, but nothing comes out of thin air.
        ("LB", "relaxed", NONE, Gpu, Clusters, &[1, 1], true),
        ("LB", "release/acquire", NONE, Gpu, Clusters, &[1, 1], false),
        ("LB", "relaxed", ACQ_REL, Gpu, Clusters, &[1, 1], false),
        ("LB+deps", "relaxed", NONE, Gpu, Clusters, &[1, 1], false),
        ("LB+deps", "weak", NONE, Gpu, Clusters, &[1, 1], false),
        // Sequential consistency of a place, where accesses are morally strong.
        ("CoRR", "relaxed", NONE, Gpu, Clusters, &[1, 0], false),
        ("CoRR", "relaxed", NONE, Cta, Clusters, &[1, 0], true),
        ("CoRR", "weak", NONE, Gpu, Clusters, &[1, 0], true),
        ("CoRR2", "relaxed", NONE, Gpu, Clusters, &[1, 2, 2, 1], false),
        ("CoRR2", "weak", NONE, Gpu, Clusters, &[1, 2, 2, 1], true),
        ("CoWW", "volatile", NONE, Gpu, Clusters, &[2, 1], false),
        ("CoWW", "weak", NONE, Gpu, Lanes, &[0, 0, 1], false),
        ("CoRW", "weak", NONE, Gpu, Clusters, &[1], false),
        ("CoRW", "relaxed", NONE, Gpu, Clusters, &[2, 2], false),
        ("CoRW", "relaxed", NONE, Gpu, Clusters, &[2, 1], true),
        ("CoWR", "weak", NONE, Gpu, Clusters, &[0], false),
        ("CoWR", "relaxed", NONE, Gpu, Clusters, &[2, 1], false),
        // What is passed on.
        ("WRC", "release/acquire", NONE, Gpu, Clusters, &[1, 1, 0], false),
        ("WRC", "relaxed", ACQ_REL, Gpu, Clusters, &[1, 1, 0], false),
        ("WRC", "relaxed", NONE, Gpu, Clusters, &[1, 1, 0], true),
        ("WWC", "release/acquire", NONE, Gpu, Clusters, &[2, 1, 2], false),
        ("ISA2", "release/acquire flag", NONE, Gpu, Clusters, &[1, 1, 0], false),
        ("ISA2", "relaxed flag", NONE, Gpu, Clusters, &[1, 1, 0], true),
        ("RWC", "relaxed", SC, Gpu, Clusters, &[1, 0, 0], false),
        ("RWC", "release/acquire", ACQ_REL, Gpu, Clusters, &[1, 0, 0], true),
        ("S", "release/acquire flag", NONE, Gpu, Clusters, &[1, 2], false),
        ("R", "relaxed", SC, Gpu, Clusters, &[0, 1, 2], false),
        ("R", "relaxed", ACQ_REL, Gpu, Clusters, &[0, 1, 2], true),
        ("2+2W", "relaxed", NONE, Gpu, Clusters, &[1, 1], true),
        ("2+2W", "relaxed", SC, Gpu, Clusters, &[1, 1], false),
        ("2+2W", "release/acquire", NONE, Gpu, Clusters, &[1, 1], true),
        // Independent reads of independent writes.
        ("IRIW", "relaxed", NONE, Gpu, Clusters, &[1, 0, 1, 0], true),
        ("IRIW", "release/acquire", ACQ_REL, Gpu, Clusters, &[1, 0, 1, 0], true),
        ("IRIW", "relaxed", SC, Gpu, Clusters, &[1, 0, 1, 0], false),
        ("IRIW", "relaxed", SC, Gpu, Clusters, &[1, 1, 1, 0], true),
        // `atom` hands a release on, and nothing comes between its read and its write.
        ("MP+chain", "release/acquire flag", NONE, Gpu, Clusters, &[1, 2, 0], false),
        ("MP+chain", "relaxed flag", ACQ_REL, Gpu, Clusters, &[1, 2, 0], false),
        ("MP+chain", "relaxed flag", NONE, Gpu, Clusters, &[1, 2, 0], true),
        ("MP+atoms", "release/acquire flag", NONE, Gpu, Clusters, &[0, 1, 0], false),
        ("Two atoms", "relaxed", NONE, Gpu, Clusters, &[0, 0], false),
        ("Two atoms", "relaxed", NONE, Cta, Clusters, &[0, 0], true),
        ("Two atoms", "relaxed", NONE, Gpu, Clusters, &[2, 0], true),
        ("Atomicity", "relaxed", NONE, Gpu, Clusters, &[0, 1], false),
        ("Atomicity", "relaxed", NONE, Gpu, Clusters, &[0, 2], true),
        ("Atomicity", "relaxed", NONE, Gpu, Clusters, &[2, 2], false),
    ]
};

#[test]
fn verdicts_derived_by_hand() {
    for &(name, orders, fence, scope, placement, values, may_be) in VERDICTS {
        let shape = Shape::named(name).unwrap();
        let strength = STRENGTHS.iter().find(|strength| strength.name == orders).unwrap();
        let outcomes = permitted(&shape.program(strength, fence, scope, placement));
        let is_permitted = outcomes.iter().any(|outcome| outcome.starts_with(values));
        assert_eq!(is_permitted, may_be, "{name}, {orders}, {fence:?}, {scope:?}, {placement:?}: {values:?}");
    }
}
