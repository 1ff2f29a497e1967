//! Statements of all threads of a block: barriers, exchange through memory between them, asynchronous copies.

use super::{Generator, INPUT_BYTES, Place};
use crate::program::Stmt;

impl Generator<'_, '_> {
    pub(super) fn block(&mut self, place: &Place) -> Option<Stmt> {
        if !place.whole_block || !place.function.is_empty() {
            return None;
        }
        if self.clusters && place.depth == 0 && self.random.percent(50) {
            return self.cluster_exchange(place);
        }
        match self.random.below(13) {
            8 => self.cluster_exchange(place),
            9 | 10 => self.counted(),
            11 => self.groups_of_warps(),
            12 => self.rings(),
            0..3 => Some(self.exchange()),
            6 => self.arrivals(),
            7 => self.bulk_copy(),
            3 => {
                let (operation, to) =
                    *self.random.pick(&[("popc.u32", "%r1"), ("and.pred", "%p1"), ("or.pred", "%p2")]);
                let not = if self.random.percent(30) { "!" } else { "" };
                let barrier = self.barrier();
                Some(Stmt::text(format!(
                    "barrier.red.{operation} {to}, {barrier}, {not}{};",
                    self.predicate()
                )))
            }
            4 => self.half_blocks(),
            _ => self.mbarrier(),
        }
    }

    /// The number of a barrier, as a literal or in a register.
    fn barrier(&mut self) -> String {
        self.random.below(16).to_string()
    }

    /// Every thread writes, a barrier, every thread reads what another one wrote, a barrier.
    fn exchange(&mut self) -> Stmt {
        let threads = self.threads;
        let (from, to, element) = (self.word(), self.word(), self.random.below(4));
        let (times, more) = (self.random.below(5), self.random.below(threads));
        let partner = format!("mad.lo.u32 %tc, %thread, {times}, {more};\nrem.u32 %tc, %tc, {threads};\n");
        let (first, second) = (self.barrier(), self.barrier());
        let meet = |number: &str, in_register: bool| match in_register {
            true => format!("mov.u32 %td, {number};\nbarrier.sync %td;\n"),
            false => format!("bar.sync {number};\n"),
        };
        let (first, second) = (meet(&first, self.random.percent(20)), meet(&second, self.random.percent(20)));
        Stmt::text(match self.random.below(3) {
            // Through global memory.
            0 => {
                let at = 12 * self.stride + 4 * self.stride * element;
                format!(
                    "mad.wide.u32 %ta, %global, 4, %all;\nst.global.b32 [%ta+{at}], {from};\n{first}{partner}\
                     mad.lo.u32 %tc, %block, {threads}, %tc;\nmad.wide.u32 %ta, %tc, 4, %all;\n\
                     ld.global.b32 {to}, [%ta+{at}];\n{second}"
                )
            }
            _ => {
                let at = 4 * threads * element;
                format!(
                    "st.shared.b32 [%sall+{at}], {from};\n{first}{partner}mov.u32 %td, s_all;\n\
                     mad.lo.u32 %tc, %tc, 4, %td;\nld.shared.b32 {to}, [%tc+{at}];\n{second}"
                )
            }
        })
    }

    /// Every thread writes to shared memory, a cluster barrier, every thread reads what a thread of another block
    /// wrote or what was written to its own block, a cluster barrier.
    fn cluster_exchange(&mut self, place: &Place) -> Option<Stmt> {
        // All blocks of the cluster reach a top-level statement, unless threads exit before it.
        if !self.dialect.sm(90) || self.exits || place.depth > 0 {
            return None;
        }
        let (from, to, next) = (self.word(), self.word(), 1 + self.random.below(3));
        let at = 4 * self.threads * self.random.below(4);
        let meet = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
        let other = format!(
            "mov.u32 %tc, %cluster_ctarank;\nadd.u32 %tc, %tc, {next};\nmov.u32 %td, %cluster_nctarank;\nrem.u32 %tc, %tc, %td;\n"
        );
        let map = "mapa.shared::cluster.u32 %tc, %sall, %tc;\n";
        let generic = "cvt.u64.u32 %ta, %sall;\ncvta.shared.u64 %ta, %ta;\nmapa.u64 %ta, %ta, %tc;\n";
        Some(Stmt::text(match self.random.below(4) {
            0 => format!(
                "{meet}{other}{map}st.shared::cluster.b32 [%tc+{at}], {from};\n{meet}ld.shared.b32 {to}, [%sall+{at}];\n{meet}"
            ),
            1 => format!(
                "st.shared.b32 [%sall+{at}], {from};\n{meet}{other}{generic}ld.b32 {to}, [%ta+{at}];\n{meet}"
            ),
            2 => format!(
                "st.shared.b32 [%sall+{at}], {from};\n{meet}{other}{map}atom.shared::cluster.xor.b32 {to}, [%tc+{at}], {from};\n\
                 {meet}ld.shared.b32 {from}, [%sall+{at}];\n{meet}"
            ),
            _ => format!(
                "st.shared.b32 [%sall+{at}], {from};\n{meet}{other}{map}ld.shared::cluster.b32 {to}, [%tc+{at}];\n{meet}"
            ),
        }))
    }

    /// Odd and even warps each have a barrier, whose number and count are in registers.
    fn half_blocks(&mut self) -> Option<Stmt> {
        let warps = self.threads / 32;
        if !self.full_warps() || !warps.is_multiple_of(2) {
            return None;
        }
        let (threads, half) = (self.threads, self.threads / 2);
        let (from, to) = (self.word(), self.word());
        let first = self.random.below(14);
        let meet = format!(
            "shr.u32 %tc, %thread, 5;\nand.b32 %tc, %tc, 1;\nadd.u32 %tc, %tc, {first};\nmov.u32 %td, {half};\n\
             barrier.sync %tc, %td;\n"
        );
        Some(Stmt::text(format!(
            "st.shared.b32 [%sall], {from};\n{meet}add.u32 %tc, %thread, 64;\nrem.u32 %tc, %tc, {threads};\nmov.u32 %td, s_all;\n\
             mad.lo.u32 %tc, %tc, 4, %td;\nld.shared.b32 {to}, [%tc];\n{meet}bar.sync 15;"
        )))
    }

    /// Even warps signal that they have written and continue; odd ones wait for them and read.
    fn arrivals(&mut self) -> Option<Stmt> {
        let (threads, from, to) = (self.threads, self.word(), self.word());
        if !self.full_warps() || !(threads / 32).is_multiple_of(2) {
            return None;
        }
        let barrier = self.random.below(15);
        Some(Stmt::text(format!(
            "st.shared.b32 [%sall], {from};\nshr.u32 %tc, %thread, 5;\nand.b32 %tc, %tc, 1;\nsetp.eq.u32 %tp, %tc, 0;\n\
             @%tp barrier.arrive {barrier}, {threads};\n@!%tp barrier.sync {barrier}, {threads};\n\
             add.u32 %tc, %thread, 32;\nrem.u32 %tc, %tc, {threads};\nmov.u32 %td, s_all;\nmad.lo.u32 %tc, %tc, 4, %td;\n\
             @!%tp ld.shared.b32 {to}, [%tc];\nbar.sync 15;"
        )))
    }

    /// A barrier that more threads reach than its count, which is a multiple of the warp size. It completes
    /// repeatedly, and which threads complete it together is unspecified, except for single warps. The lanes of a
    /// warp arrive together, because diverged lanes would count one by one.
    fn counted(&mut self) -> Option<Stmt> {
        if !self.full_warps() {
            return None;
        }
        let (barrier, warps) = (self.random.below(15), self.threads / 32);
        let (from, to) = (self.word(), self.word());
        let operation = *self.random.pick(&["popc.u32 %r1", "and.pred %p1", "or.pred %p2"]);
        let (operation, result) = operation.split_once(' ')?;
        let not = if self.random.percent(30) { "!" } else { "" };
        let sync = *self.random.pick(&["barrier.sync", "bar.sync"]);
        let red = if sync == "bar.sync" { "bar.red" } else { "barrier.red" };
        Some(Stmt::text(match self.random.below(3) {
            // Each warp alone: its own lanes' predicates and stores.
            0 => {
                format!(
                    "bar.sync 15;\n{red}.{operation} {result}, {barrier}, 32, {not}{};\nbar.sync 15;",
                    self.predicate()
                )
            }
            1 => {
                let times = 1 + 2 * self.random.below(16);
                format!(
                    "bar.sync 15;\nst.shared.b32 [%sall], {from};\n{sync} {barrier}, 32;\nmul.lo.u32 %tc, %thread, {times};\n\
                     and.b32 %tc, %tc, 31;\nand.b32 %td, %thread, 0xffffffe0;\nadd.u32 %tc, %tc, %td;\nmov.u32 %td, s_all;\n\
                     mad.lo.u32 %tc, %tc, 4, %td;\nld.shared.b32 {to}, [%tc];\n{sync} {barrier}, 32;\nbar.sync 15;"
                )
            }
            // Several warps, whose lanes all have the same predicate.
            _ => {
                let counts: Vec<usize> = (1..=warps).filter(|count| warps.is_multiple_of(*count)).collect();
                let (count, same) = (32 * *self.random.pick(&counts), 1 + self.random.below(3));
                // A barrier separates the two: a warp that runs ahead could otherwise arrive twice, and leave another
                // without a partner.
                let again = if self.random.percent(50) {
                    format!("{red}.{operation} {result}, {barrier}, {count}, {not}%tp;\nbar.sync 15;\n")
                } else {
                    String::new()
                };
                format!(
                    "bar.sync 15;\nand.b32 %tc, %block, {same};\nsetp.eq.u32 %tp, %tc, 0;\n{again}\
                     {red}.{operation} {result}, {barrier}, {count}, {not}%tp;\nbar.sync 15;"
                )
            }
        }))
    }

    /// Groups of consecutive warps, each with its own barrier.
    fn groups_of_warps(&mut self) -> Option<Stmt> {
        let warps = self.threads / 32;
        if !self.full_warps() {
            return None;
        }
        let sizes: Vec<usize> = (1..=warps).filter(|n| warps.is_multiple_of(*n) && warps / n <= 14).collect();
        let size = *self.random.pick(&sizes);
        let (count, first) = (32 * size, self.random.below(15 - warps / size));
        let (from, to, p) = (self.word(), self.word(), self.predicate());
        let (shift, reduce) = (self.random.below(count), self.random.percent(50));
        let meet = match reduce {
            true => format!("barrier.red.popc.u32 {to}, %tc, %td, {p};\n"),
            false => "barrier.sync %tc, %td;\n".to_owned(),
        };
        let group =
            format!("div.u32 %tc, %thread, {count};\nadd.u32 %tc, %tc, {first};\nmov.u32 %td, {count};\n");
        Some(Stmt::text(format!(
            "st.shared.b32 [%sall], {from};\n{group}{meet}rem.u32 %tc, %thread, {count};\nsub.u32 %td, %thread, %tc;\n\
             add.u32 %tc, %tc, {shift};\nrem.u32 %tc, %tc, {count};\nadd.u32 %tc, %tc, %td;\nmov.u32 %td, s_all;\n\
             mad.lo.u32 %tc, %tc, 4, %td;\nld.shared.b32 {from}, [%tc];\n{group}{meet}bar.sync 15;"
        )))
    }

    /// Pairs of warps: the first signals that it has written, the second that it has read, in turns, with barriers
    /// for each pair.
    fn rings(&mut self) -> Option<Stmt> {
        let warps = self.threads / 32;
        if !self.full_warps() || !warps.is_multiple_of(2) || warps > 14 {
            return None;
        }
        let (from, to) = (self.word(), self.word());
        let mut text = "shr.u32 %tc, %thread, 5;\nand.b32 %td, %tc, 1;\nsetp.eq.u32 %tp, %td, 0;\n\
                        and.b32 %tc, %tc, 14;\nadd.u32 %td, %tc, 1;\n"
            .to_owned();
        for _ in 0..1 + self.random.below(3) {
            text += &format!(
                "@%tp st.shared.b32 [%sall], {from};\n@%tp barrier.arrive %tc, 64;\n@!%tp barrier.sync %tc, 64;\n\
                 @!%tp ld.shared.b32 {to}, [%sall+-128];\n@!%tp barrier.arrive %td, 64;\n@%tp barrier.sync %td, 64;\n\
                 add.u32 {from}, {from}, {to};\n"
            );
        }
        Some(Stmt::text(text + "bar.sync 15;"))
    }

    /// One thread copies a piece of the input into shared memory; all wait for its bytes.
    fn bulk_copy(&mut self) -> Option<Stmt> {
        if !self.dialect.sm(90) || self.exits {
            return None;
        }
        let (bytes, wait, to) = (16 * (1 + self.random.below(4)), self.label(), self.word());
        let (from, at) = (16 * self.random.below(INPUT_BYTES / 16 - 4), 4 * self.random.below(bytes / 4));
        Some(Stmt::text(format!(
            "setp.eq.u32 %tp, %thread, 0;\n@%tp mbarrier.init.shared.b64 [s_barrier], 1;\nbar.sync 0;\n\
             @%tp mbarrier.arrive.expect_tx.shared.b64 %tb, [s_barrier], {bytes};\n\
             @%tp cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s_bulk], [%in+{from}], {bytes}, [s_barrier];\n\
             {wait}:\nmbarrier.try_wait.parity.shared.b64 %tp, [s_barrier], 0;\n@!%tp bra {wait};\n\
             ld.shared.b32 {to}, [s_bulk+{at}];\nbar.sync 0;\n\
             setp.eq.u32 %tp, %thread, 0;\n@%tp mbarrier.inval.shared.b64 [s_barrier];\nbar.sync 0;"
        )))
    }

    /// All threads arrive at an mbarrier object and wait for it.
    fn mbarrier(&mut self) -> Option<Stmt> {
        if !self.dialect.sm(80) || self.exits {
            return None;
        }
        let (threads, wait) = (self.threads, self.label());
        let (from, to) = (self.word(), self.word());
        let instruction = if self.dialect.sm(90) { "try_wait" } else { "test_wait" };
        let copies = match self.random.percent(40) {
            true => {
                "cp.async.ca.shared.global [%sown], [%in], 16;\ncp.async.mbarrier.arrive.noinc.shared.b64 [s_barrier];\n"
            }
            false => "",
        };
        let (count, read) = match copies.is_empty() {
            true => (threads, String::new()),
            false => (2 * threads, format!("ld.shared.b32 {}, [%sown+4];\n", self.word())),
        };
        Some(Stmt::text(format!(
            "setp.eq.u32 %tp, %thread, 0;\n@%tp mbarrier.init.shared.b64 [s_barrier], {count};\nbar.sync 0;\n\
             st.shared.b32 [%sall], {from};\n{copies}mbarrier.arrive.shared.b64 %tb, [s_barrier];\n{wait}:\n\
             mbarrier.{instruction}.shared.b64 %tp, [s_barrier], %tb;\n@!%tp bra {wait};\n{read}\
             sub.u32 %tc, {threads}, %thread;\nsub.u32 %tc, %tc, 1;\nmov.u32 %td, s_all;\nmad.lo.u32 %tc, %tc, 4, %td;\n\
             ld.shared.b32 {to}, [%tc];\nbar.sync 0;\n\
             setp.eq.u32 %tp, %thread, 0;\n@%tp mbarrier.inval.shared.b64 [s_barrier];\nbar.sync 0;"
        )))
    }

    /// Copies from global to shared memory that the thread waits for, or the stack of `alloca`.
    pub(super) fn asynchronous(&mut self, place: &Place) -> Option<Stmt> {
        if self.random.percent(40) {
            return self.stack();
        }
        if !self.dialect.sm(80) || !place.function.is_empty() {
            return None;
        }
        let from = self.random.below(INPUT_BYTES / 16) * 16;
        let to = self.word();
        let copy = match self.random.below(4) {
            0 => "cp.async.ca.shared.global [%sown], [%in+@], 4;".to_owned(),
            1 => format!(
                "and.b32 %tc, {}, 15;\ncp.async.ca.shared.global [%sown], [%in+@], 16, %tc;",
                self.word()
            ),
            2 => "cp.async.ca.shared.global [%sown], [%in+@], 8;".to_owned(),
            _ => "cp.async.cg.shared.global [%sown], [%in+@], 16;".to_owned(),
        };
        let copy = copy.replace('@', &from.to_string());
        let guard = self.guard(25);
        let wait = *self.random.pick(&[
            "cp.async.wait_all;",
            "cp.async.commit_group;\ncp.async.wait_group 0;",
            "cp.async.commit_group;\ncp.async.commit_group;\ncp.async.wait_group 1;",
        ]);
        let copy = copy.replace("cp.async.c", &format!("{guard}cp.async.c"));
        let at = 4 * self.random.below(4);
        Some(Stmt::text(format!("{copy}\n{wait}\nld.shared.b32 {to}, [%sown+{at}];")))
    }

    fn stack(&mut self) -> Option<Stmt> {
        if self.dialect.version < isa::Version::new(7, 3) || !self.dialect.sm(52) {
            return None;
        }
        let (value, to, more) = (self.word(), self.word(), self.word());
        let bytes = 16 * (1 + self.random.below(3));
        let (at, other) = (4 * self.random.below(bytes / 4), 4 * self.random.below(bytes / 4));
        Some(Stmt::text(format!(
            "stacksave.u64 %ta;\nalloca.u64 %tb, {bytes}, 16;\nst.local.b32 [%tb], {more};\nst.local.b32 [%tb+{other}], {more};\n\
             st.local.b32 [%tb+{at}], {value};\nld.local.b32 {to}, [%tb+{other}];\nstackrestore.u64 %ta;"
        )))
    }
}
