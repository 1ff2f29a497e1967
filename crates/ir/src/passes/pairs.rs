//! Replaces two selections of halves that are packed again by one selection of pairs.
//!
//! Code that uses `setp.f16x2 p|q` unpacks both operands, selects each half by its predicate (`selp.b16`), and packs
//! the two results. [`OpKind::SelectPair`] does that on the pairs. The operations that it replaces are dropped if
//! nothing else reads their results.
//!
//! Narrowest tests (`tests/run`): `select_pairs`, `select_pairs_apart`.

use isa::Opcode;

use crate::function::Function;
use crate::op::{Op, OpKind, Slot, Width};
use crate::simple::SimpleOp;
use crate::visit::Touch;

/// The value that a slot had at a certain point.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Value {
    slot: Slot,
    /// How many times the slot had been written.
    version: u32,
}

/// What a 16-bit slot is known to hold.
#[derive(Clone, Copy)]
enum Half {
    /// A half of this pair: 0 is the low one.
    Of(Value, usize),
    /// This half of one of two pairs: of the first where the predicate holds.
    Chosen { pred: Value, pairs: [Value; 2], half: usize },
}

/// What is known after an operation has run.
enum Fact {
    /// Two slots hold the halves of a pair.
    Parts {
        pair: Slot,
        halves: [Option<Slot>; 2],
    },
    Is(Slot, Half),
}

/// What is known at a point of a basic block.
struct Knowledge {
    versions: Vec<u32>,
    /// For each slot: the basic block and the slot's version when the fact was recorded, and the fact. It is valid
    /// only while both match.
    halves: Vec<Option<(usize, u32, Half)>>,
    block: usize,
}

impl Knowledge {
    fn value(&self, slot: Slot) -> Value {
        Value { slot, version: self.versions[slot.index()] }
    }

    fn still(&self, value: Value) -> bool {
        self.versions[value.slot.index()] == value.version
    }

    fn half(&self, slot: Slot) -> Option<Half> {
        let (block, version, half) = self.halves[slot.index()]?;
        (block == self.block && version == self.versions[slot.index()]).then_some(half)
    }

    fn learn(&mut self, slot: Slot, half: Half) {
        self.halves[slot.index()] = Some((self.block, self.versions[slot.index()], half));
    }

    /// The pair and the half that a slot holds, if the pair still has the recorded value.
    fn part(&self, slot: Slot) -> Option<(Value, usize)> {
        match self.half(slot)? {
            Half::Of(pair, half) if self.still(pair) => Some((pair, half)),
            _ => None,
        }
    }

    /// The result of `selp` on these sources.
    fn chosen(&self, [a, b, pred]: [Slot; 3]) -> Option<Half> {
        let ((first, half), (second, other)) = (self.part(a)?, self.part(b)?);
        (half == other).then(|| Half::Chosen { pred: self.value(pred), pairs: [first, second], half })
    }

    /// The pairs and predicates of the selection that packing these halves amounts to.
    fn packed(&self, [low, high]: [Slot; 2]) -> Option<([Slot; 2], [Slot; 2])> {
        let (Half::Chosen { pred: p, pairs, half: 0 }, Half::Chosen { pred: q, pairs: same, half: 1 }) =
            (self.half(low)?, self.half(high)?)
        else {
            return None;
        };
        let fresh = [p, q, pairs[0], pairs[1]].into_iter().all(|value| self.still(value));
        (fresh && pairs == same).then(|| (pairs.map(|pair| pair.slot), [p.slot, q.slot]))
    }

    /// What will be known after `op`, which is about to run.
    fn fact(&self, op: &Op, width: impl Fn(Slot) -> Width) -> Option<Fact> {
        if op.guard.is_some() {
            return None;
        }
        match &op.kind {
            OpKind::Simple(SimpleOp::Unpack { dst, src, bits: 16 }) if width(*src) == Width::W32 => {
                match dst[..] {
                    [low, high] => Some(Fact::Parts { pair: *src, halves: [low, high] }),
                    _ => None,
                }
            }
            OpKind::Simple(SimpleOp::Pack { dst, src, bits: 16 }) if width(*dst) == Width::W32 => {
                match src[..] {
                    [low, high] => Some(Fact::Parts { pair: *dst, halves: [Some(low), Some(high)] }),
                    _ => None,
                }
            }
            OpKind::Pure { form, dst: [Some(dst), None], src, .. }
                if form.opcode == Opcode::Selp && width(*dst) == Width::W16 =>
            {
                let [a, b, pred] = src[..] else { return None };
                Some(Fact::Is(*dst, self.chosen([a, b, pred])?))
            }
            _ => None,
        }
    }
}

/// Replaces all such selections. Values must not share slots yet. Returns whether there were any.
pub(crate) fn join(function: &mut Function) -> bool {
    let count = function.slots.len();
    let mut known = Knowledge { versions: vec![0; count], halves: vec![None; count], block: 0 };
    let mut found = false;
    for block in 0..function.blocks.len() {
        known.block = block;
        let range = function.blocks[block].ops.clone();
        for op in &mut function.ops[range.start as usize..range.end as usize] {
            let fact = known.fact(op, |slot| function.slots[slot.index()].width);
            if let (
                OpKind::Simple(SimpleOp::Pack { dst, .. }),
                Some(Fact::Parts { halves: [Some(low), Some(high)], .. }),
            ) = (&op.kind, &fact)
                && let Some((pairs, preds)) = known.packed([*low, *high])
            {
                op.kind = OpKind::SelectPair { dst: *dst, pairs, preds };
                found = true;
            }
            op.visit(&mut |slot, touch| known.versions[slot.index()] += u32::from(touch == Touch::Def));
            match fact {
                Some(Fact::Is(slot, half)) => known.learn(slot, half),
                Some(Fact::Parts { pair, halves }) => {
                    let pair = known.value(pair);
                    for (half, slot) in halves.into_iter().enumerate() {
                        if let Some(slot) = slot {
                            known.learn(slot, Half::Of(pair, half));
                        }
                    }
                }
                None => {}
            }
        }
    }
    found
}
