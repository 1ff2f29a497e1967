//! Prints lowered code (`ptxvm check --emit ir`): one line for each block header, operation and terminator.

use std::fmt;

use crate::function::{Block, Function, Terminator};
use crate::op::{Op, OpKind, SlotInfo, SlotKind};
use crate::{Program, SimpleOp, Slot};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (function, lowered) in self.module.functions.iter().zip(&self.functions) {
            let kind = if function.is_entry { "kernel" } else { "function" };
            match lowered {
                Some(lowered) => writeln!(f, "{kind} {} {{\n{lowered}}}", function.name)?,
                None => writeln!(f, "declare {kind} {}", function.name)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, SlotInfo { width, kind }) in self.slots.iter().enumerate() {
            match kind {
                SlotKind::Constant(value) => writeln!(f, "  {}: {width:?} = {value:#x}", Slot(index as u32))?,
                SlotKind::Special(special) => {
                    writeln!(f, "  {}: {width:?} = {}", Slot(index as u32), special.name())?
                }
                kind => writeln!(f, "  {}: {width:?} {kind:?}", Slot(index as u32))?,
            }
        }
        if self.frame_bytes > 0 {
            writeln!(f, "  frame {} bytes", self.frame_bytes)?;
        }
        if !self.prologue.is_empty() {
            writeln!(f, "prologue:")?;
        }
        for op in &self.prologue {
            writeln!(f, "  {op}")?;
        }
        for (index, block) in self.blocks.iter().enumerate() {
            write_block(f, index, block, &self.ops[block.ops.start as usize..block.ops.end as usize])?;
        }
        Ok(())
    }
}

fn write_block(f: &mut fmt::Formatter<'_>, index: usize, block: &Block, ops: &[Op]) -> fmt::Result {
    write!(f, "b{index}:")?;
    if !block.live_in.is_empty() {
        write!(f, "  // live")?;
        for slot in &block.live_in {
            write!(f, " {slot}")?;
        }
    }
    writeln!(f, "{}", if block.may_spin || block.reduces { " (may spin)" } else { "" })?;
    for op in ops {
        writeln!(f, "  {op}")?;
    }
    match &block.terminator {
        Terminator::Jump(next) => writeln!(f, "  jump b{}", next.0),
        Terminator::Branch { pred, negated, taken, otherwise } => {
            writeln!(
                f,
                "  branch {}{pred} b{} else b{}",
                if *negated { "!" } else { "" },
                taken.0,
                otherwise.0
            )
        }
        other => writeln!(f, "  {}", fields(&format!("{other:?}"))),
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(guard) = &self.guard {
            write!(f, "@{}{} ", if guard.negated { "!" } else { "" }, guard.slot)?;
        }
        match &self.kind {
            OpKind::Pure { form, picks, dst, src, .. } => {
                write!(f, "{}{picks:?}", form.opcode)?;
                for slot in dst.iter().flatten() {
                    write!(f, " {slot}")?;
                }
                write!(f, " <-")?;
                for slot in src {
                    write!(f, " {slot}")?;
                }
                Ok(())
            }
            OpKind::Simple(SimpleOp::Copy { dst, src }) => write!(f, "copy {dst} <- {src}"),
            OpKind::Simple(op) => write!(f, "{op:?}"),
            OpKind::Texel(op) => {
                write!(f, "{}{:?}", op.form.opcode, op.picks)?;
                for slot in op.dst.iter().flatten() {
                    write!(f, " {slot}")?;
                }
                write!(f, " <- [{}", op.handle)?;
                if let Some(sampler) = op.sampler {
                    write!(f, ", {sampler}")?;
                }
                write!(f, "]")?;
                op.src.iter().try_for_each(|slot| write!(f, " {slot}"))
            }
            OpKind::Unsupported { form, picks } => write!(f, "unsupported {}", form.name(picks)),
            OpKind::Memory(op) => write!(f, "{}", fields(&format!("{op:?}"))),
            other => write!(f, "{}", fields(&format!("{other:?}"))),
        }
    }
}

/// `Name { .. }` of `Name(Name { .. })`: the name of the operation is enough.
fn fields(text: &str) -> &str {
    let inner = text.strip_suffix(')').and_then(|text| text.split_once('('));
    match inner {
        Some((name, fields)) if fields.split(' ').next() == Some(name) => fields,
        _ => text,
    }
}
