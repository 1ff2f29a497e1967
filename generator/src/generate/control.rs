//! Branches, loops, indexed jumps, and exits of threads.

use super::{Generator, Place};
use crate::program::Stmt;

impl Generator<'_, '_> {
    pub(super) fn nest(&mut self, place: &Place) -> Option<Stmt> {
        match self.random.below(10) {
            0..4 => Some(self.branch(place)),
            4..8 => Some(self.repeat(place)),
            8 => Some(self.choice(place)),
            _ => self.leave(place),
        }
    }

    /// `if`, on a value of the thread or on one that is uniform in the block.
    fn branch(&mut self, place: &Place) -> Stmt {
        let (other, end) = (self.label(), self.label());
        let depth = place.depth + 1;
        let same_in_block = self.random.percent(25);
        let predicate = if same_in_block { "%tp".to_owned() } else { self.predicate() };
        let mut head = String::new();
        if same_in_block {
            head += &match self.random.below(2) {
                0 => format!("and.b32 %tc, %block, {};\n", 1 + self.random.below(3)),
                _ => format!("ld.param.u32 %tc, [n];\nand.b32 %tc, %tc, {};\n", 1 + self.random.below(15)),
            };
            head += "setp.ne.u32 %tp, %tc, 0;\n";
            if !place.function.is_empty() {
                head = "setp.lt.u32 %tp, %fdepth, 2;\n".to_owned();
            }
        }
        let whole_block = place.whole_block && same_in_block && place.function.is_empty();
        let inner = |mask: Option<String>| Place { whole_block, mask, depth, ..place.clone() };
        let (mut then_mask, mut else_mask) = (None, None);
        if whole_block {
            (then_mask, else_mask) = (place.mask.clone(), place.mask.clone());
        } else if let Some(mask) = place.mask.as_ref().filter(|_| self.random.percent(60)) {
            head += &format!("vote.sync.ballot.b32 %m{depth}, {predicate}, {mask};\n");
            head += &format!("vote.sync.ballot.b32 %n{depth}, !{predicate}, {mask};\n");
            (then_mask, else_mask) = (Some(format!("%m{depth}")), Some(format!("%n{depth}")));
        }
        let uniform = if whole_block && self.random.percent(30) { ".uni" } else { "" };
        head += &format!("@!{predicate} bra{uniform} {other};");
        let then = self.statements(&inner(then_mask));
        if self.random.percent(50) {
            return Stmt::Nest { head, arms: vec![(then, format!("{other}:"))] };
        }
        let otherwise = self.statements(&inner(else_mask));
        let arms = vec![(then, format!("bra {end};\n{other}:")), (otherwise, format!("{end}:"))];
        Stmt::Nest { head, arms }
    }

    /// A loop of one to four iterations, with a uniform count or a count for each thread.
    fn repeat(&mut self, place: &Place) -> Stmt {
        let (start, end) = (self.label(), self.label());
        let depth = place.depth + 1;
        let same_in_block = self.random.percent(50);
        let breaks = self.random.percent(25);
        let count = match (same_in_block, self.random.below(3)) {
            (true, 0) if place.function.is_empty() => format!("and.b32 %c{depth}, %block, 3;\n"),
            (true, _) => format!("mov.u32 %c{depth}, {};\n", 1 + self.random.below(4)),
            (false, 0) => format!("and.b32 %c{depth}, %global, 3;\n"),
            (false, _) => format!("and.b32 %c{depth}, {}, 3;\n", self.word()),
        };
        let whole_block = place.whole_block && same_in_block && !breaks;
        let mut head = count;
        let mut mask = if whole_block { place.mask.clone() } else { None };
        let mut bottom = format!("sub.s32 %c{depth}, %c{depth}, 1;\nsetp.gt.s32 %tp, %c{depth}, 0;\n");
        if !whole_block
            && !breaks
            && let Some(outer) = place.mask.as_ref().filter(|_| self.random.percent(60))
        {
            head += &format!("mov.b32 %m{depth}, {outer};\n");
            bottom += &format!("vote.sync.ballot.b32 %m{depth}, %tp, %m{depth};\n");
            mask = Some(format!("%m{depth}"));
        }
        head += &format!("{start}:");
        let leave = breaks.then(|| end.clone());
        let body = self.statements(&Place {
            whole_block,
            mask,
            depth,
            in_loop: true,
            leave,
            function: place.function.clone(),
        });
        bottom += &format!("@%tp bra {start};\n{end}:");
        Stmt::Nest { head, arms: vec![(body, bottom)] }
    }

    /// `brx.idx`; some arms fall through to the next.
    fn choice(&mut self, place: &Place) -> Stmt {
        let count = 2 + self.random.below(3);
        let labels: Vec<String> = (0..count).map(|_| self.label()).collect();
        let (list, end) = (self.label(), self.label());
        let targets: Vec<String> = (0..4).map(|i| labels[i % count].clone()).collect();
        let mut head = self.small_number();
        // The index may be stored, or loaded from memory that is overwritten before the jump.
        match self.random.below(4) {
            0 => head += "st.global.b32 [%own], %x3;\n",
            1 => head += "xor.b32 %x3, %x3, 1;\nst.global.b32 [%own], %x3;\n",
            2 => {
                let other = self.word();
                head += &format!(
                    "st.global.b32 [%own], %x3;\nld.global.b32 %x3, [%own];\nst.global.b32 [%own], {other};\n"
                );
            }
            _ => {}
        }
        head +=
            &format!("{list}: .branchtargets {};\nbrx.idx %x3, {list};\n{}:", targets.join(", "), labels[0]);
        let inner = Place { whole_block: false, mask: None, depth: place.depth + 1, ..place.clone() };
        let mut arms = Vec::new();
        for i in 0..count {
            let body = self.statements(&inner);
            let out = if self.random.percent(60) { format!("bra {end};\n") } else { String::new() };
            let next = labels.get(i + 1).unwrap_or(&end);
            arms.push((body, format!("{out}{next}:")));
        }
        Stmt::Nest { head, arms }
    }

    /// Leaves a loop from inside.
    fn leave(&mut self, place: &Place) -> Option<Stmt> {
        let label = place.leave.clone()?;
        let not = if self.random.percent(50) { "!" } else { "" };
        Some(Stmt::text(format!("@{not}{} bra {label};", self.predicate())))
    }

    /// Some threads exit.
    pub(super) fn exit(&mut self, place: &Place) -> Option<Stmt> {
        // Functions are generated before the kernel and called while no thread has exited; so are warp-wide shuffles
        // in loops.
        if !place.function.is_empty() || place.in_loop {
            return None;
        }
        self.exits = true;
        let instruction = if self.random.percent(70) { "exit" } else { "ret" };
        Some(Stmt::text(format!("@{} {instruction};", self.predicate())))
    }
}
