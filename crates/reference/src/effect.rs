//! What each effect of the table does: who executes it, and where its values come from and go to. The matches have no
//! default, so that a new effect has to be placed.

use check::module::{Instruction, Operand};
use isa::{Action, Effect, Mod, Space, Type};
use machine::{FaultKind, MAX_SLEEP};

use crate::Step;
use crate::memory::Address;
use crate::thread::{Cpu, Flow, Wait};

pub(crate) fn effect(i: &Instruction) -> Option<Effect> {
    match i.form.action {
        Action::Effect(effect) => Some(effect),
        Action::Pure(_) => None,
    }
}

impl Cpu<'_, '_> {
    /// Executes an instruction whose guard holds.
    pub fn execute(&mut self, i: &Instruction) -> Step<Flow> {
        let effect = match i.form.action {
            Action::Pure(function) => return self.pure(i, function),
            Action::Effect(effect) => effect,
        };
        match effect {
            Effect::Mov => self.mov(i),
            Effect::Cvta => self.cvta(i),
            Effect::IsSpaceP => {
                let address = Address { space: Space::Generic, at: self.address_value(&i.operands[1]) };
                let (space, at) = Self::resolve(address);
                // Without `::cluster`, only the CTA's own shared memory counts.
                let own = space != Space::Shared
                    || i.picks.has(Mod::SharedCluster)
                    || machine::shared_rank(at).0 == self.cta.rank;
                self.set_operand(i.operands.first(), (space == i.picks.space() && own).into(), Type::Pred);
            }
            Effect::Ld | Effect::St => {
                if effect == Effect::Ld { self.ld(i)? } else { self.st(i)? }
                // Code from before sm_70 expects the lanes of a warp to be in lockstep from one such access to the
                // next.
                if i.picks.has(Mod::Volatile) {
                    return Ok(Flow::Yield);
                }
            }
            // A multimem operation acts on a single GPU.
            Effect::MultimemLd => self.ld(i)?,
            Effect::MultimemSt => self.st(i)?,
            // A loop around this operation may wait for another thread.
            Effect::Atom | Effect::Red | Effect::MultimemRed => {
                self.atomic(i)?;
                return Ok(Flow::Yield);
            }
            Effect::Bra => {
                if let Some(Operand::Label(label)) = i.operands.first() {
                    return Ok(Flow::Jump(*label));
                }
            }
            Effect::BrxIdx => return self.brx_idx(i),
            Effect::Ret => return Ok(Flow::Return),
            Effect::Exit => return Ok(Flow::Exit),
            // A breakpoint without a debugger ends the kernel with an error, as a trap does.
            Effect::Trap | Effect::Brkpt => return Err(self.fault(FaultKind::Trap, "")),
            Effect::Call => return self.call(i),
            Effect::Barrier => return self.barrier(i),
            Effect::BarrierCluster => return Ok(self.cluster_barrier(i.picks.has(Mod::Arrive))),
            Effect::Tex => self.tex(i)?,
            Effect::Txq => self.txq(i)?,
            Effect::Suld | Effect::Sust => self.surface(i)?,
            // A loop around this operation may wait for another thread.
            Effect::Sured => {
                self.surface(i)?;
                return Ok(Flow::Yield);
            }
            Effect::Alloca | Effect::StackSave | Effect::StackRestore => self.stack(i, effect)?,
            Effect::CpAsync => self.copy_async(i)?,
            Effect::CpAsyncGroup => self.copy_group(i),
            Effect::CpAsyncBulk => self.copy_bulk(i)?,
            Effect::CopyTensor | Effect::PrefetchTensor => self.copy_tensor(i)?,
            Effect::TensorMapReplace => self.tensor_map_replace(i)?,
            Effect::TensorMapCopy => self.tensor_map_copy(i)?,
            Effect::TensorMma => self.tensor_multiply(i)?,
            Effect::TensorCp => self.copy_to_cells(i)?,
            Effect::TensorShift => self.shift_cells(i)?,
            Effect::TensorCommit => self.tensor_commit(i)?,
            Effect::TryCancel => self.try_cancel(i)?,
            Effect::QueryCancel => self.query_cancel(i),
            Effect::CpAsyncArrive | Effect::Mbarrier => return self.mbarrier(i),
            Effect::Mapa => {
                let rank = self.value(&i.operands[2], Type::U32) as u32;
                let address = self.value(&i.operands[1], i.picks.ty(0)) as u64;
                let mapped = machine::map_shared(address, rank, i.picks.space() == Space::Generic);
                self.set_operand(i.operands.first(), mapped.into(), i.picks.ty(0));
            }
            Effect::GetCtaRank => {
                let address = self.value(&i.operands[1], i.picks.ty(0)) as u64;
                let rank = machine::rank_of_address(address, i.picks.space() == Space::Generic);
                self.set_operand(i.operands.first(), rank.into(), Type::U32);
            }
            Effect::StoreBulk => self.store_bulk(i)?,
            Effect::StoreAsync => {
                self.store_async(i)?;
                return Ok(Flow::Yield);
            }
            Effect::CreatePolicy => self.set_operand(i.operands.first(), 0, Type::B64),
            // No tensor map is of the large allocation class.
            Effect::TensorMapQuery => self.set_operand(i.operands.first(), 0, Type::Pred),
            Effect::Nanosleep => {
                self.thread.slept += (self.value(&i.operands[0], Type::U32) as u64).min(MAX_SLEEP);
                return Ok(Flow::Yield);
            }
            Effect::Activemask
            | Effect::Shfl
            | Effect::Vote
            | Effect::MatchSync
            | Effect::Redux
            | Effect::Elect
            | Effect::BarWarpSync
            | Effect::Mma
            | Effect::Wgmma
            | Effect::LdMatrix
            | Effect::StMatrix
            | Effect::TensorAlloc
            | Effect::TensorLd
            | Effect::TensorSt
            | Effect::MovMatrix
            | Effect::WmmaLoad
            | Effect::WmmaStore => return Ok(Flow::Wait(Wait::Warp)),
            // One thread runs at a time, so memory is sequentially consistent.
            Effect::Fence
            // Hints, and fences of `wgmma` and `tcgen05`, whose work is done at once.
            | Effect::ApplyPriority
            | Effect::Discard
            | Effect::Fabric
            | Effect::GridDepControl
            | Effect::PmEvent
            | Effect::SparseData
            | Effect::TensorOrder
            | Effect::WgmmaGroup
            | Effect::Prefetch
            | Effect::SetMaxNReg => {}
        }
        Ok(Flow::Next)
    }
}

/// Where values come from and go to, beside the registers of the thread.
#[derive(Clone, Copy, Default)]
pub(crate) struct DataFlow {
    /// Results come from memory.
    pub from_memory: bool,
    /// Results depend on registers of other lanes.
    pub from_lanes: bool,
    /// Values of registers are written to memory.
    pub to_memory: bool,
}

impl DataFlow {
    /// That of an instruction.
    pub fn of(i: &Instruction) -> DataFlow {
        let none = DataFlow::default();
        let Some(effect) = effect(i) else { return none };
        match effect {
            Effect::Ld
            | Effect::MultimemLd
            | Effect::Tex
            | Effect::Suld
            | Effect::LdMatrix
            | Effect::WmmaLoad
            | Effect::TensorLd
            | Effect::TensorMma => DataFlow { from_memory: true, ..none },
            Effect::St
            | Effect::MultimemSt
            | Effect::Sust
            | Effect::StMatrix
            | Effect::WmmaStore
            | Effect::StoreAsync
            | Effect::TensorSt => DataFlow { to_memory: true, ..none },
            Effect::Atom | Effect::Red | Effect::MultimemRed | Effect::Sured => {
                DataFlow { from_memory: true, to_memory: true, ..none }
            }
            Effect::Shfl | Effect::Redux | Effect::Mma | Effect::MovMatrix => {
                DataFlow { from_lanes: true, ..none }
            }
            Effect::Wgmma => DataFlow { from_memory: true, from_lanes: true, ..none },
            Effect::Mov
            | Effect::Cvta
            | Effect::IsSpaceP
            | Effect::Bra
            | Effect::BrxIdx
            | Effect::Ret
            | Effect::Exit
            | Effect::Trap
            | Effect::Brkpt
            | Effect::Call
            | Effect::Mapa
            | Effect::GetCtaRank
            | Effect::CreatePolicy
            | Effect::Txq
            | Effect::TensorMapQuery
            | Effect::Nanosleep
            | Effect::Alloca
            | Effect::StackSave
            | Effect::StackRestore => none,
            // Predicates and masks.
            Effect::Activemask | Effect::Vote | Effect::MatchSync | Effect::Elect => none,
            Effect::Barrier
            | Effect::BarrierCluster
            | Effect::BarWarpSync
            | Effect::Fence
            | Effect::Mbarrier
            | Effect::CpAsyncArrive
            | Effect::CpAsyncGroup
            | Effect::TensorAlloc
            | Effect::TensorCommit
            | Effect::TensorOrder
            | Effect::WgmmaGroup
            | Effect::TryCancel
            | Effect::QueryCancel
            | Effect::GridDepControl
            | Effect::SetMaxNReg => none,
            // Copies from memory to memory, and what is written is no register's value.
            Effect::CpAsync
            | Effect::CpAsyncBulk
            | Effect::CopyTensor
            | Effect::TensorCp
            | Effect::TensorShift
            | Effect::TensorMapCopy
            | Effect::TensorMapReplace
            | Effect::StoreBulk => none,
            Effect::ApplyPriority
            | Effect::Discard
            | Effect::Fabric
            | Effect::PmEvent
            | Effect::Prefetch
            | Effect::PrefetchTensor
            | Effect::SparseData => none,
        }
    }
}
