//! Functions and calls: with registers and with parameters in memory, indirect, and recursive.

use super::{Generator, Place};
use crate::program::{Function, Stmt};

impl Generator<'_, '_> {
    /// A function. Even-numbered ones take registers; odd-numbered ones take parameters in memory, one of them a
    /// structure.
    pub(super) fn function(&mut self, number: usize) -> Function {
        let name = format!("f{number}_");
        let (signature, start, end) = if number.is_multiple_of(2) {
            (
                format!(
                    ".func (.reg .b32 ra, .reg .b64 rb) {name}(.reg .b32 a, .reg .b64 b, .reg .b64 pin, .reg .b64 pown,\n    \
                     .reg .b64 pall, .reg .b32 mask, .reg .b32 depth)"
                ),
                "mov.u32 %fdepth, depth;\nmov.u32 %fmask, mask;\nmov.u64 %in, pin;\nmov.u64 %own, pown;\nmov.u64 %all, pall;",
                ["mov.b32 ra, %r1;", "mov.b64 rb, %d1;"],
            )
        } else {
            (
                format!(
                    ".func (.param .align 16 .b8 rs[16]) {name}(.param .b32 a, .param .b64 b, .param .b64 pin,\n    \
                     .param .b64 pown, .param .b64 pall, .param .b32 mask, .param .b32 depth, .param .align 16 .b8 st[32])"
                ),
                "ld.param.b32 %fdepth, [depth];\nld.param.b32 %fmask, [mask];\nld.param.b64 %in, [pin];\nld.param.b64 %own, [pown];\n\
                 ld.param.b64 %all, [pall];",
                ["st.param.v2.b64 [rs], {%d1, %d2};", "st.param.b32 [rs+4], %r1;"],
            )
        };
        let mut body = vec![Stmt::text(self.where_it_runs()), Stmt::text(start)];
        body.extend(self.initial_values("%fdepth"));
        let arguments = match number.is_multiple_of(2) {
            true => ["mov.b32 %r1, a;", "mov.b64 %d1, b;"],
            false => ["ld.param.b32 %r1, [a];", "ld.param.v2.b32 {%r2, %r3}, [st+8];"],
        };
        body.extend(arguments.map(Stmt::text));
        let kept = std::mem::replace(&mut self.budget, 6);
        let place = Place {
            whole_block: false,
            mask: Some("%fmask".to_owned()),
            depth: 1,
            in_loop: true,
            leave: None,
            function: name.clone(),
        };
        body.extend(self.statements(&place));
        if self.random.percent(50) {
            body.push(self.again(number));
        }
        body.extend(self.statements(&place));
        self.budget = kept;
        body.extend(end.map(Stmt::text));
        Function { name, signature, declarations: self.declarations(), body }
    }

    /// The function calls itself, to the depth that its argument gives.
    fn again(&mut self, number: usize) -> Stmt {
        let skip = self.label();
        let call = self.call_of(number, "%m7", "%td");
        Stmt::text(format!(
            "setp.gt.u32 %tp, %fdepth, 0;\nvote.sync.ballot.b32 %m7, %tp, %fmask;\n@!%tp bra {skip};\nsub.u32 %td, %fdepth, 1;\n\
             {call}\n{skip}:"
        ))
    }

    /// A call of the function with this number by the lanes of a mask.
    fn call_of(&mut self, number: usize, mask: &str, depth: &str) -> String {
        self.call_as(number, &format!("f{number}_"), mask, depth, "")
    }

    /// A call of `name` with the signature of the function with this number.
    fn call_as(&mut self, number: usize, name: &str, mask: &str, depth: &str, prototype: &str) -> String {
        let (a, b, ra, rb) = (self.word(), self.double(), self.word(), self.double());
        if number.is_multiple_of(2) {
            return format!(
                "call ({ra}, {rb}), {name}, ({a}, {b}, %in, %own, %all, {mask}, {depth}){prototype};"
            );
        }
        let (c, d) = (self.word(), self.double());
        // A 128-bit result returns as two registers.
        let results = self.registers(64, 2).join(", ");
        format!(
            "{{\n.param .b32 pa;\n.param .b64 pb, pi, po, pl;\n.param .b32 pm, pd;\n.param .align 16 .b8 ps[32], pq[16];\n\
             st.param.b32 [pa], {a};\nst.param.b64 [pb], {b};\nst.param.b64 [pi], %in;\nst.param.b64 [po], %own;\n\
             st.param.b64 [pl], %all;\nst.param.b32 [pm], {mask};\nst.param.b32 [pd], {depth};\nst.param.b64 [ps], {d};\n\
             st.param.v2.b32 [ps+8], {{{c}, {a}}};\nst.param.v2.b64 [ps+16], {{{b}, {d}}};\n\
             call (pq), {name}, (pa, pb, pi, po, pl, pm, pd, ps){prototype};\n\
             ld.param.b32 {ra}, [pq+4];\nld.param.v2.b64 {{{results}}}, [pq];\n}}"
        )
    }

    pub(super) fn call(&mut self, place: &Place) -> Option<Stmt> {
        let mask = place.mask.clone()?;
        // Only the kernel calls functions, apart from recursion.
        if !place.function.is_empty() || self.functions.is_empty() || self.exits {
            return None;
        }
        let count = self.functions.len();
        let number = self.random.below(count);
        let depth = self.random.below(3).to_string();
        Some(Stmt::text(match self.random.below(6) {
            // Lanes that call separately meet inside the function.
            0 => {
                let (other, end, p) = (self.label(), self.label(), self.predicate());
                let (first, second) =
                    (self.call_of(number, &mask, &depth), self.call_of(number, &mask, &depth));
                format!("@{p} bra {other};\n{first}\nbra {end};\n{other}:\n{second}\n{end}:")
            }
            1 if count > 2 || count == 2 && number == 0 => {
                // Each lane calls one of two functions with the same signature.
                let other = if number.is_multiple_of(2) { 0 } else { 1 };
                let (p, list) = (self.predicate(), self.label());
                let list = format!("P{list}");
                let call = self.call_as(number, "%tb", "%m6", &depth, &format!(", {list}"));
                let prototype = match number.is_multiple_of(2) {
                    true => {
                        "(.reg .b32 _, .reg .b64 _) _ (.reg .b32 _, .reg .b64 _, .reg .b64 _, .reg .b64 _, .reg .b64 _, .reg .b32 _, .reg .b32 _)"
                    }
                    false => {
                        "(.param .align 16 .b8 _[16]) _ (.param .b32 _, .param .b64 _, .param .b64 _, .param .b64 _, .param .b64 _, .param .b32 _, .param .b32 _, .param .align 16 .b8 _[32])"
                    }
                };
                format!(
                    "vote.sync.ballot.b32 %m6, {p}, {mask};\nvote.sync.ballot.b32 %n6, !{p}, {mask};\nselp.b32 %m6, %m6, %n6, {p};\n\
                     mov.u64 %ta, f{number}_;\nmov.u64 %tb, f{other}_;\nselp.b64 %tb, %ta, %tb, {p};\n\
                     {list}: .callprototype {prototype};\n{call}"
                )
            }
            _ => self.call_of(number, &mask, &depth),
        }))
    }
}
