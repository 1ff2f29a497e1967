//! Output of threads: numbers, and strings from every state space.

use super::{Generator, Place};
use crate::program::Stmt;

/// The format for a thread's number and two registers.
pub(super) const NUMBERS: &str = "%u: %x %llx\n";
/// The format for a thread's number and a string, of two words.
pub(super) const STRING: &str = "%u: %s\n";
/// Strings in `.global` and `.const` memory.
pub(super) const TEXTS: [&str; 2] = ["some words", "others"];

/// The bytes of a string and its terminating zero, as an initialiser.
pub(super) fn initialiser(text: &str) -> String {
    let bytes: Vec<String> = text.bytes().chain([0]).map(|byte| byte.to_string()).collect();
    format!("[{}] = {{{}}}", bytes.len(), bytes.join(", "))
}

impl Generator<'_, '_> {
    /// Some threads print their numbers, and registers or a string.
    pub(super) fn print(&mut self, place: &Place) -> Stmt {
        if self.random.percent(60) {
            return self.print_string(place);
        }
        let (p, skip, a, b, r) = (self.predicate(), self.label(), self.word(), self.double(), self.word());
        Stmt::text(format!(
            "@{p} bra {skip};\n{{\n.local .align 8 .b8 pw[16];\n.param .b64 pf, pv;\n.param .b32 pr;\n\
             st.local.b32 [pw], %global;\nst.local.b32 [pw+4], {a};\nst.local.b64 [pw+8], {b};\n\
             mov.u64 %ta, g_text;\ncvta.global.u64 %ta, %ta;\nst.param.b64 [pf], %ta;\n\
             mov.u64 %ta, pw;\ncvta.local.u64 %ta, %ta;\nst.param.b64 [pv], %ta;\n\
             call (pr), vprintf, (pf, pv);\nld.param.b32 {r}, [pr];\n}}\n{skip}:"
        ))
    }

    /// A string in memory of the module, the thread, or the block.
    fn print_string(&mut self, place: &Place) -> Stmt {
        let (p, skip, r) = (self.predicate(), self.label(), self.word());
        // Four letters from a register.
        let letters = format!("and.b32 %x0, {}, 0x0f0f0f0f;\nor.b32 %x0, %x0, 0x40404040;\n", self.word());
        let own = |store: &str, base: &str, to_generic: &str| {
            format!("{letters}st.{store}.b32 [{base}], %x0;\nst.{store}.b32 [{base}+4], 0;\n{to_generic}")
        };
        let shared = "cvt.u64.u32 %ta, %sown;\ncvta.shared.u64 %ta, %ta;\n";
        let of_block = place.whole_block && place.function.is_empty() && !self.exits;
        let (mut before, mut after) = (String::new(), "");
        let string = match self.random.below(if of_block { 9 } else { 6 }) {
            0 => "mov.u64 %ta, g_string;\ncvta.global.u64 %ta, %ta;\n".to_owned(),
            1 => "mov.u64 %ta, c_string;\ncvta.const.u64 %ta, %ta;\n".to_owned(),
            2 => own("global", "%own", "mov.u64 %ta, %own;\n"),
            3 => own("local", "lo", "mov.u64 %ta, lo;\ncvta.local.u64 %ta, %ta;\n"),
            4 | 5 => own("shared", "%sown", shared),
            // A string that one thread writes for the whole block.
            _ => {
                before = "setp.eq.u32 %tp, %thread, 0;\nand.b32 %x0, %block, 15;\nmad.lo.u32 %x0, %x0, 0x01010101, 0x41424344;\n\
                          @%tp st.shared.b32 [s_text], %x0;\n@%tp st.shared.b32 [s_text+4], 0;\nbar.sync 0;\n"
                    .to_owned();
                after = "\nbar.sync 0;";
                "mov.u64 %ta, s_text;\ncvta.shared.u64 %ta, %ta;\n".to_owned()
            }
        };
        // The format and the arguments may also be anywhere.
        let word = |i: usize| {
            let mut bytes = STRING.bytes().chain([0]).skip(4 * i);
            u32::from_le_bytes(std::array::from_fn(|_| bytes.next().unwrap_or(0)))
        };
        let format = match self.random.below(4) {
            0 => "mov.u64 %tb, c_format;\ncvta.const.u64 %tb, %tb;\n".to_owned(),
            1 => format!(
                "st.shared.b32 [%sown+8], {};\nst.shared.b32 [%sown+12], {};\ncvt.u64.u32 %tb, %sown;\n\
                 cvta.shared.u64 %tb, %tb;\nadd.s64 %tb, %tb, 8;\n",
                word(0),
                word(1)
            ),
            _ => "mov.u64 %tb, g_format;\ncvta.global.u64 %tb, %tb;\n".to_owned(),
        };
        let values = match self.random.below(4) {
            0 if self.shared_bytes >= 32 => {
                "st.shared.b32 [%sown+16], %global;\nst.shared.b64 [%sown+24], %ta;\ncvt.u64.u32 %ta, %sown;\n\
                 cvta.shared.u64 %ta, %ta;\nadd.s64 %ta, %ta, 16;\n"
            }
            1 if self.own_bytes >= 32 => {
                "st.global.b32 [%own+16], %global;\nst.global.b64 [%own+24], %ta;\nadd.s64 %ta, %own, 16;\n"
            }
            _ => {
                "st.local.b32 [pw], %global;\nst.local.b64 [pw+8], %ta;\nmov.u64 %ta, pw;\ncvta.local.u64 %ta, %ta;\n"
            }
        };
        // Addresses are cleared afterwards: they are not results, since they depend on the placement of memory.
        let clean = match values.split_once("+24]") {
            Some((store, _)) if store.contains("%sown") => "st.shared.b64 [%sown+24], 0;\n",
            Some(_) => "st.global.b64 [%own+24], 0;\n",
            None => "",
        };
        Stmt::text(format!(
            "{before}@{p} bra {skip};\n{{\n.local .align 8 .b8 pw[16];\n.param .b64 pf, pv;\n.param .b32 pr;\n\
             {string}{format}st.param.b64 [pf], %tb;\n{values}st.param.b64 [pv], %ta;\n\
             call (pr), vprintf, (pf, pv);\nld.param.b32 {r}, [pr];\n{clean}}}\n{skip}:{after}"
        ))
    }
}
