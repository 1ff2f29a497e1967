//! The contents of random kernels: classes of statements, and kernels that show them.

use crate::generate::generate;
use crate::program::Kernel;
use crate::random::Random;

/// A class of statements, recognised by words in a kernel's text.
pub struct Class {
    /// Name of the class and of its file.
    pub name: &'static str,
    /// A kernel has the class if its text contains any of these.
    pub signs: &'static [&'static str],
}

/// All classes.
pub const CLASSES: &[Class] = &[
    Class { name: "carry_chain", signs: &["addc", "subc", "madc"] },
    Class { name: "packed_halves", signs: &[".f16x2", ".bf16x2"] },
    Class { name: "video", signs: &["vadd", "vset", "vabsdiff", "vmad"] },
    Class { name: "sum_of_products", signs: &["ld.shared.f32 %x1"] },
    Class { name: "chosen_pair", signs: &["selp.b16 %h5"] },
    Class { name: "vector_access", signs: &[".v2.", ".v4.", ".v8."] },
    Class { name: "wide_access", signs: &[".b128"] },
    Class { name: "mixed_memory", signs: &["selp.b64 %ta, %own"] },
    Class { name: "local_memory", signs: &["st.local"] },
    Class { name: "parameters", signs: &["ld.param.u8", "ld.param.v2", "ld.param.b16", "[s+"] },
    Class { name: "counters", signs: &["8, %counters"] },
    Class { name: "atomics_with_result", signs: &["atom.shared", "atom.global"] },
    Class { name: "compare_and_swap", signs: &[".cas."] },
    Class { name: "shuffle", signs: &["shfl.sync.up", "shfl.sync.down", "shfl.sync.bfly"] },
    Class { name: "partial_masks", signs: &["vote.sync.ballot.b32 %m2"] },
    Class { name: "match_and_redux", signs: &["match.", "redux."] },
    Class { name: "matrix_product", signs: &["mma.sync"] },
    Class { name: "matrix_rows", signs: &["ldmatrix", "stmatrix", "movmatrix"] },
    Class { name: "barrier_by_register", signs: &["barrier.sync %tc, %td"] },
    Class { name: "barrier_reduction", signs: &["barrier.red"] },
    Class { name: "barrier_arrival", signs: &[" barrier.arrive"] },
    Class { name: "asynchronous_copy", signs: &["cp.async.c"] },
    Class { name: "bulk_copy", signs: &["cp.async.bulk"] },
    Class { name: "mbarrier", signs: &["mbarrier.arrive.shared"] },
    Class { name: "cluster", signs: &["mapa"] },
    Class { name: "stack", signs: &["alloca"] },
    Class { name: "loop", signs: &["sub.s32 %c1"] },
    Class { name: "nested_divergence", signs: &["sub.s32 %c3", "%m3"] },
    Class { name: "indexed_branch", signs: &["brx.idx"] },
    Class { name: "call_by_register", signs: &["), f0_, ("] },
    Class { name: "call_by_parameter", signs: &["call (pq)"] },
    Class { name: "indirect_call", signs: &[".callprototype"] },
    Class { name: "recursion", signs: &["sub.u32 %td, %fdepth"] },
    Class { name: "print", signs: &["vprintf, (pf"] },
    Class { name: "exit", signs: &[" exit;"] },
];

impl Class {
    /// Whether a kernel with this text has a statement of this class.
    pub fn is_in(&self, text: &str) -> bool {
        self.signs.iter().any(|sign| text.contains(sign))
    }
}

/// A class, the number of kernels with it, and the seed and text of the shortest one.
pub type Found = (&'static Class, usize, Option<(u64, Kernel)>);

/// Surveys the kernels of the seeds below `count`.
pub fn survey(count: u64) -> Vec<Found> {
    let mut found: Vec<Found> = CLASSES.iter().map(|class| (class, 0, None)).collect();
    for seed in 0..count {
        let kernel = generate(&mut Random::seeded(seed));
        let text = kernel.text();
        for (_, count, shortest) in found.iter_mut().filter(|(class, ..)| class.is_in(&text)) {
            *count += 1;
            if shortest.as_ref().is_none_or(|(_, other)| text.len() < other.text().len()) {
                *shortest = Some((seed, kernel.clone()));
            }
        }
    }
    found
}
