//! Warp-level instructions, by lanes that are known to execute together.

use super::{Generator, Place};
use crate::program::Stmt;

impl Generator<'_, '_> {
    pub(super) fn warp(&mut self, place: &Place) -> Option<Stmt> {
        let mask = place.mask.clone()?;
        let full = place.whole_block && self.full_warps() && mask.starts_with('0');
        let (to, a) = (self.word(), self.word());
        let text = match self.random.below(if full { 16 } else { 10 }) {
            0 => {
                let mode =
                    *self.random.pick(&["all.pred %p0", "any.pred %p1", "uni.pred %p2", "ballot.b32 %r0"]);
                let not = if self.random.percent(30) { "!" } else { "" };
                let (mode, to) = mode.split_once(' ')?;
                format!("vote.sync.{mode} {to}, {not}{}, {mask};", self.predicate())
            }
            1 if self.dialect.sm(80) => {
                let operation = *self
                    .random
                    .pick(&["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "max.s32"]);
                format!("redux.sync.{operation} {to}, {a}, {mask};")
            }
            2 if self.dialect.target.number == 100 => {
                let operation = *self.random.pick(&["min", "max.abs", "min.NaN", "max.abs.NaN", "max"]);
                format!("redux.sync.{operation}.f32 {to}, {a}, {mask};")
            }
            3 | 4 => {
                let (bits, value) =
                    if self.random.percent(60) { (32, self.word()) } else { (64, self.double()) };
                // Few different values.
                let few = if bits == 32 { "%x0" } else { "%y0" };
                let operation = match self.random.below(3) {
                    0 => format!("match.any.sync.b{bits} {to}, {few}, {mask};"),
                    1 => format!("match.all.sync.b{bits} {to}, {few}, {mask};"),
                    _ => format!("match.all.sync.b{bits} {to}|{}, {few}, {mask};", self.predicate()),
                };
                format!("and.b{bits} {few}, {value}, {};\n{operation}", self.random.below(4))
            }
            5 if self.dialect.sm(90) => format!("elect.sync {to}|{}, {mask};", self.predicate()),
            6 => format!("bar.warp.sync {mask};"),
            7 | 10 | 11 if full => return self.matrix(),
            _ if full => {
                let mode = *self.random.pick(&["up", "down", "bfly", "idx"]);
                let b = match self.random.below(3) {
                    0 => self.word(),
                    _ => self.random.below(32).to_string(),
                };
                let c = match (self.random.below(3), mode) {
                    (0, _) => self.word(),
                    (1, _) => format!("{:#x}", *self.random.pick(&[0x1c1f, 0x181f, 0x1003, 0x1c00])),
                    (_, "up") => "0".to_owned(),
                    _ => "0x1f".to_owned(),
                };
                let second =
                    if self.random.percent(50) { format!("|{}", self.predicate()) } else { String::new() };
                format!("shfl.sync.{mode}.b32 {to}{second}, {a}, {b}, {c}, {mask};")
            }
            // From the lowest active lane.
            _ => format!(
                "setp.eq.u32 %tp, 0, 0;\nvote.sync.ballot.b32 %tc, %tp, {mask};\nbrev.b32 %td, %tc;\nclz.b32 %td, %td;\n\
                 shfl.sync.idx.b32 {to}, {a}, %td, 0x1f, {mask};"
            ),
        };
        Some(Stmt::text(text))
    }

    /// A product of matrices, or rows of matrices in shared memory.
    fn matrix(&mut self) -> Option<Stmt> {
        if !self.dialect.sm(75) || self.dialect.matrix.is_empty() {
            return None;
        }
        if self.random.percent(60) {
            let dialect = self.dialect;
            let spelling = self.random.pick(&dialect.matrix);
            let operands = self.operands(spelling)?;
            return Some(Stmt::text(format!("{} {operands};", spelling.mnemonic())));
        }
        // Each lane's own 16 bytes are a row.
        if self.random.percent(30) {
            return Some(Stmt::text(format!(
                "movmatrix.sync.aligned.m8n8.trans.b16 {}, {};",
                self.word(),
                self.word()
            )));
        }
        let count = *self.random.pick(&[1, 2, 4]);
        let registers = format!("{{{}}}", self.registers(32, count).join(", "));
        let transposed = if self.random.percent(50) { ".trans" } else { "" };
        let store = self.dialect.sm(90) && self.random.percent(40);
        let values: Vec<String> = (0..4).map(|_| self.word()).collect();
        let fill = format!("st.shared.v4.b32 [%sown], {{{}}};\nbar.warp.sync 0xffffffff;", values.join(", "));
        let operation = match store {
            true => {
                format!("stmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16 [%sown], {registers};")
            }
            false => {
                format!("ldmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16 {registers}, [%sown];")
            }
        };
        Some(Stmt::text(format!("{fill}\n{operation}\nbar.warp.sync 0xffffffff;")))
    }
}
