//! Asynchronous copies and mbarrier objects (PTX ISA, "Asynchronous copy", "mbarrier").
//!
//! A `cp.async` reads its source when it is issued, and writes its destination when its thread waits for it. A thread
//! that reads the destination too early finds the old contents. Bulk copies are done at once.

use check::module::{Instruction, Operand};
use isa::{Addition, Effect, Mod, OperandKind, Space, Type, Validity};
use machine::{FaultKind, NEEDS_CLUSTER, map_shared, rank_of_address, shared_object, shared_rank};

use crate::Step;
use crate::atomic::{combine, operation};
use crate::memory::{Address, number};
use crate::thread::{Cpu, Flow, PendingCopy, Wait};

/// The maximum arrival count of a phase, and the maximum of its pending bytes.
const MOST: i64 = (1 << 20) - 1;

/// The maximum arrival count of a phase of `.layout::v1`.
const MOST_OF_V1: i64 = (1 << 9) - 1;

/// An mbarrier object. In memory: 20 bits of expected arrivals, 20 of pending arrivals, 21 of pending bytes, 3 of the
/// phase. An object of `.layout::v1` has the highest bit of the pending arrivals set and that of the expected ones
/// clear, and has its reports in bits 9 to 11.
#[derive(Clone, Copy)]
struct Object {
    expected: i64,
    pending: i64,
    transactions: i64,
    phase: u64,
    /// For `.layout::v1`: whether there is a report in the current phase, whether there was one in the last phase,
    /// and the parity of the conditional phase.
    reports: Option<[bool; 3]>,
}

impl Object {
    fn unpack(word: u64) -> Object {
        let bit = |bit: u32| word >> bit & 1 != 0;
        let reports = (bit(39) && !bit(19)).then(|| [9, 10, 11].map(bit));
        let mask = if reports.is_some() { MOST_OF_V1 } else { MOST };
        Object {
            expected: word as i64 & mask,
            pending: (word >> 20) as i64 & mask,
            transactions: (word << 3) as i64 >> 43,
            phase: word >> 61,
            reports,
        }
    }

    fn pack(self) -> u64 {
        let reports = self.reports.map_or(0, |[current, last, conditional]| {
            1 << 39 | u64::from(current) << 9 | u64::from(last) << 10 | u64::from(conditional) << 11
        });
        reports
            | self.expected as u64
            | (self.pending as u64) << 20
            | (self.transactions as u64 & 0x1f_ffff) << 40
            | (self.phase & 7) << 61
    }

    fn expect(&mut self, bytes: i64) -> Result<(), &'static str> {
        self.transactions += bytes;
        match self.transactions > MOST {
            true => Err("the phase expects more than 1048575 bytes"),
            false => Ok(()),
        }
    }

    fn arrive(&mut self, count: i64, drop: bool) -> Result<(), &'static str> {
        if count == 0 || count > self.pending {
            return Err("more threads arrive than the phase waits for");
        }
        self.pending -= count;
        self.expected -= if drop { count } else { 0 };
        Ok(())
    }

    /// Ends the phase if no arrivals and no bytes are pending.
    fn advance(&mut self) {
        if self.pending == 0 && self.transactions == 0 {
            self.pending = self.expected;
            self.phase += 1;
            if let Some([current, last, conditional]) = &mut self.reports {
                // The conditional phase ends only if nothing was reported.
                *conditional ^= !*current;
                (*last, *current) = (*current, false);
            }
        }
    }
}

impl Address {
    /// The corresponding address in the shared memory of the CTA with this rank.
    pub(crate) fn in_block(self, rank: u32) -> Address {
        Address { at: map_shared(self.at, rank, self.space == Space::Generic), ..self }
    }

    /// The rank of the CTA whose shared memory contains it.
    pub(crate) fn rank(self) -> u32 {
        rank_of_address(self.at, self.space == Space::Generic)
    }
}

impl Cpu<'_, '_> {
    // Copies of one thread.

    /// `cp.async`
    pub fn copy_async(&mut self, i: &Instruction) -> Step {
        let [dst, src, Operand::Imm(bytes), ..] = &i.operands[..] else { return Ok(()) };
        let mut size = self.named(i, "src-size").map_or(*bytes, |size| self.value(size, Type::U32) as u64);
        size = size.min(*bytes);
        if self.named(i, "ignore-src").is_some_and(|ignore| self.value(ignore, Type::Pred) != 0) {
            size = 0;
        }
        let to = self.address(dst, i.picks.space_of(0));
        let from = self.address(src, i.picks.space_of(1));
        // The destination is checked at issue.
        let mut data = vec![0; *bytes as usize];
        self.read_into(to, &mut data).map_err(|mut fault| {
            fault.access.iter_mut().for_each(|access| access.write = true);
            fault
        })?;
        data.fill(0);
        if size > 0 {
            if !from.at.is_multiple_of(*bytes) {
                return Err(self.access_fault(FaultKind::Misaligned, from, *bytes, false));
            }
            data[..size as usize].copy_from_slice(&self.read_bytes(from, size)?);
        }
        let (_, address) = Self::resolve(to);
        self.thread.copies.push(PendingCopy { group: self.thread.commits, address, data });
        Ok(())
    }

    /// `cp.async.commit_group`, `.wait_group`, `.wait_all`
    pub fn copy_group(&mut self, i: &Instruction) {
        match i.operands.first() {
            // Bulk copies are done already.
            _ if i.picks.has(Mod::Bulk) => {}
            Some(Operand::Imm(pending)) => self.finish_copies(*pending as u32, false),
            _ if i.picks.has(Mod::WaitAll) => self.finish_copies(0, true),
            _ => self.thread.commits += 1,
        }
    }

    /// Writes the copies of all groups except the latest `keep`; with `open`, also copies that are not committed to a
    /// group.
    pub fn finish_copies(&mut self, keep: u32, open: bool) {
        let committed = self.thread.commits;
        for copy in std::mem::take(&mut self.thread.copies) {
            if open || copy.group < committed.saturating_sub(keep) {
                let (rank, at) = shared_rank(copy.address);
                // The address was checked at issue.
                self.cta.cluster.write(rank, at, &copy.data);
                self.cta.changes += 1;
            } else {
                self.thread.copies.push(copy);
            }
        }
    }

    // Bulk copies.

    /// `cp.async.bulk`, `cp.reduce.async.bulk`
    pub fn copy_bulk(&mut self, i: &Instruction) -> Step {
        let [dst, src, size, rest @ ..] = &i.operands[..] else { return Ok(()) };
        let to = self.address(dst, i.picks.space_of(0));
        let from = self.address(src, i.picks.space_of(1));
        let between_blocks = [to, from].iter().all(|address| Self::resolve(*address).0 == Space::Shared);
        if between_blocks && !self.cta.launch.is_explicit_cluster() {
            return Err(self.fault(FaultKind::AddressSpace, NEEDS_CLUSTER));
        }
        let size = self.value(size, Type::U32) as u64;
        let object = rest.iter().find(|operand| matches!(operand, Operand::Address(..)));
        let object = object.map(|operand| self.address(operand, i.picks.space_of(0)));
        let mask = self.mask(i);
        if i.picks.has(Mod::CpMask) {
            return self.copy_bulk_to(i, to, from, size, mask, object);
        }
        let Some(mask) = mask else { return self.copy_bulk_to(i, to, from, size, None, object) };
        for rank in (0..32).filter(|rank| mask >> rank & 1 != 0) {
            let object = object.map(|object| object.in_block(rank));
            self.copy_bulk_to(i, to.in_block(rank), from, size, None, object)?;
        }
        Ok(())
    }

    /// The mask of an instruction: a bit for each CTA's rank, or for each byte.
    pub(crate) fn mask(&self, i: &Instruction) -> Option<u64> {
        let ty = if i.picks.has(Mod::MulticastCluster32b) { Type::U32 } else { Type::U16 };
        self.named(i, "mask").map(|mask| self.value(mask, ty) as u64)
    }

    /// A bulk copy to one destination; `mask` selects the bytes to copy in each 16 bytes.
    fn copy_bulk_to(
        &mut self,
        i: &Instruction,
        to: Address,
        from: Address,
        size: u64,
        mask: Option<u64>,
        object: Option<Address>,
    ) -> Step {
        for (address, write) in [(to, true), (from, false)] {
            if size > 0 && (!address.at.is_multiple_of(16) || !size.is_multiple_of(16)) {
                return Err(self.access_fault(FaultKind::Misaligned, address, size, write));
            }
        }
        if i.picks.has(Mod::IgnoreOob) {
            let [left, right] = ["left", "right"]
                .map(|name| self.named(i, name).map_or(0, |operand| self.value(operand, Type::U32) as u64));
            // The ignored bytes at both ends are not copied; they need not be accessible.
            let left = left.min(size);
            let bytes = (size - left).saturating_sub(right);
            self.read_bytes(to, size).map_err(|mut fault| {
                fault.access.iter_mut().for_each(|access| access.write = true);
                fault
            })?;
            if bytes > 0 {
                let data = self.read_bytes(Address { at: from.at + left, ..from }, bytes)?;
                self.write_bytes(Address { at: to.at + left, ..to }, &data)?;
            }
            return object.map_or(Ok(()), |object| self.complete_copy(object, to, size));
        }
        let mut data = self.read_bytes(from, size)?;
        if let Some(operation) = operation(&i.picks) {
            let ty = i.picks.ty(0);
            let old = self.read_bytes(to, size)?;
            for (new, old) in data.chunks_mut(ty.bytes() as usize).zip(old.chunks(ty.bytes() as usize)) {
                let addition = Self::addition(to, Addition::Bulk);
                let result = combine(operation, ty, addition, number(old), number(new), 0);
                new.copy_from_slice(&result.to_le_bytes()[..new.len()]);
            }
        } else if let Some(mask) = mask
            && size > 0
        {
            let old = self.read_bytes(to, size)?;
            for (at, byte) in data.iter_mut().enumerate().filter(|(at, _)| mask >> (at % 16) & 1 == 0) {
                *byte = old[at];
            }
        }
        if size > 0 {
            self.write_bytes(to, &data)?;
        }
        let Some(object) = object else { return Ok(()) };
        if Validity::of(&i.picks).is_some_and(|report| sem::validity::is_found(report, 0, &data)) {
            self.report(object)?;
        }
        self.complete_copy(object, to, size)
    }

    /// Records a report in an mbarrier object.
    pub(crate) fn report(&mut self, object: Address) -> Step {
        self.update_object(object, |object| match &mut object.reports {
            Some([current, ..]) => {
                *current = true;
                Ok(())
            }
            None => Err("a copy reports to an mbarrier object that is not of `.layout::v1`"),
        })?;
        Ok(())
    }

    /// Completes bytes on an mbarrier object, which must be in the shared memory of the CTA that received the bytes.
    pub(crate) fn complete_copy(&mut self, object: Address, to: Address, bytes: u64) -> Step {
        if object.rank() != to.rank() {
            let note = "the mbarrier object is not in the shared memory of the block that the data goes to";
            return Err(self.fault(FaultKind::Mbarrier, note));
        }
        self.update_object(object, |object| {
            object.transactions -= bytes as i64;
            match object.transactions < -MOST {
                true => Err("more bytes have come than an mbarrier object can count"),
                false => Ok(()),
            }
        })?;
        Ok(())
    }

    /// `st.async`, `red.async`: executed at once.
    pub fn store_async(&mut self, i: &Instruction) -> Step {
        let [address, src, object] = &i.operands[..] else { return Ok(()) };
        let (to, object) = (self.address(address, i.picks.space()), self.address(object, i.picks.space()));
        let ty = i.picks.ty(0);
        let bytes = ty.bytes() as usize;
        let parts = match src {
            Operand::Vector(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut data = Vec::new();
        for part in parts {
            data.extend_from_slice(&self.value(part, ty).to_le_bytes()[..bytes]);
        }
        if Self::resolve(to).0 != Space::Shared {
            return Err(self.access_fault(FaultKind::OutOfBounds, to, data.len() as u64, true));
        }
        if let Some(operation) = operation(&i.picks) {
            let old = self.load(to, bytes as u64)?;
            let new = combine(operation, ty, Addition::Shared, old, number(&data), 0);
            data = new.to_le_bytes()[..bytes].to_vec();
        }
        self.write(to, &data)?;
        self.complete_copy(object, to, data.len() as u64)
    }

    /// `st.bulk`: writes zeros to the CTA's own shared memory.
    pub fn store_bulk(&mut self, i: &Instruction) -> Step {
        let [address, size, ..] = &i.operands[..] else { return Ok(()) };
        let to = self.address(address, i.picks.space());
        let bytes = self.value(size, i.form.operands[1].resolve(&i.picks).unwrap_or(Type::U64)) as u64;
        if bytes == 0 {
            return Ok(());
        }
        if !to.at.is_multiple_of(8) || !bytes.is_multiple_of(8) {
            return Err(self.access_fault(FaultKind::Misaligned, to, bytes, true));
        }
        let is_own = Self::resolve(to).0 == Space::Shared && to.rank() == self.cta.rank;
        // No shared memory is that large; fault before allocating so many zeros.
        if !is_own || bytes > 1 << 24 {
            return Err(self.access_fault(FaultKind::OutOfBounds, to, bytes, true));
        }
        self.write_bytes(to, &vec![0; bytes as usize])
    }

    // Cancelling clusters that have not started.

    /// `clusterlaunchcontrol.try_cancel`: always refused, because all clusters count as started.
    pub fn try_cancel(&mut self, i: &Instruction) -> Step {
        let [dst, object] = &i.operands[..] else { return Ok(()) };
        let (to, object) = (self.address(dst, i.picks.space()), self.address(object, i.picks.space()));
        let places: Vec<_> = match i.picks.has(Mod::MulticastClusterAll) {
            true => (0..self.cta.launch.cluster_blocks())
                .map(|rank| (to.in_block(rank), object.in_block(rank)))
                .collect(),
            false => vec![(to, object)],
        };
        for (to, object) in places {
            if !to.at.is_multiple_of(16) {
                return Err(self.access_fault(FaultKind::Misaligned, to, 16, true));
            }
            self.write_bytes(to, &[0; 16])?;
            self.complete_copy(object, to, 16)?;
        }
        Ok(())
    }

    /// `clusterlaunchcontrol.query_cancel`
    pub fn query_cancel(&mut self, i: &Instruction) {
        let (destinations, ty) = match i.operands.first() {
            Some(Operand::Vector(parts)) => (&parts[..], Type::B32),
            Some(one) if i.picks.has(Mod::IsCanceled) => (std::slice::from_ref(one), Type::Pred),
            one => (one.map_or(&[][..], std::slice::from_ref), Type::B32),
        };
        destinations.iter().for_each(|destination| self.set_operand(Some(destination), 0, ty));
    }

    // mbarrier objects.

    /// `tcgen05.commit`: the work that it waits for is already done, so it is just an arrival.
    pub fn tensor_commit(&mut self, i: &Instruction) -> Step {
        let Some(operand) = i.operands.first() else { return Ok(()) };
        let mut object = self.address(operand, i.picks.space());
        if object.space == Space::Generic {
            object.at = shared_object(object.at);
        }
        self.update_objects(object, self.mask(i), |object| object.arrive(1, false)).map(drop)
    }

    /// Changes the object at the address, or with a mask the object at this offset in each of its CTAs. This may
    /// complete phases. Returns the previous state of the last object.
    fn update_objects(
        &mut self,
        address: Address,
        mask: Option<u64>,
        change: impl Fn(&mut Object) -> Result<(), &'static str>,
    ) -> Step<u64> {
        let Some(mask) = mask else { return self.update_object(address, change) };
        let blocks = (0..32).filter(|rank| mask >> rank & 1 != 0);
        blocks.map(|rank| address.in_block(rank)).try_fold(0, |_, object| self.update_object(object, &change))
    }

    /// Changes an object, which may complete its phase; returns its previous state.
    fn update_object(
        &mut self,
        address: Address,
        change: impl FnOnce(&mut Object) -> Result<(), &'static str>,
    ) -> Step<u64> {
        let before = self.object(address)?;
        let mut object = Object::unpack(before);
        change(&mut object).map_err(|note| self.fault(FaultKind::Mbarrier, note))?;
        object.advance();
        self.store(address, 8, object.pack().into())?;
        Ok(before)
    }

    /// The word of an object; faults if there is no object.
    fn object(&self, address: Address) -> Step<u64> {
        let word = self.load(address, 8)? as u64;
        if Self::resolve(address).0 != Space::Shared {
            return Err(self.access_fault(FaultKind::OutOfBounds, address, 8, true));
        }
        let object = Object::unpack(word);
        if object.expected == 0 && object.pending == 0 {
            let note = "there is no mbarrier object here: nobody has called mbarrier.init";
            return Err(self.fault(FaultKind::Mbarrier, note));
        }
        Ok(word)
    }

    /// `mbarrier.*` and `cp.async.mbarrier.arrive`
    pub fn mbarrier(&mut self, i: &Instruction) -> Step<Flow> {
        let number =
            |cpu: &Self, name: &str, ty| cpu.named(i, name).map(|operand| cpu.value(operand, ty) as u64);
        let first = i.form.operands.first().map(|spec| spec.kind);
        let dst = if first == Some(OperandKind::Address) { None } else { i.operands.first() };
        let has = |m: Mod| i.picks.has(m);
        let is_arrive_of_copies = i.form.action == isa::Action::Effect(Effect::CpAsyncArrive);
        if has(Mod::PendingCount) && !is_arrive_of_copies {
            let state = number(self, "state", Type::B64).unwrap_or(0);
            self.set_operand(dst, Object::unpack(state).pending as u128, Type::U32);
            return Ok(Flow::Next);
        }
        let place = i.form.operands_with(&i.picks).zip(&i.operands);
        let Some((_, operand)) = place.clone().find(|(spec, _)| spec.kind == OperandKind::Address) else {
            return Ok(Flow::Next);
        };
        let address = self.address(operand, i.picks.space());
        if is_arrive_of_copies {
            self.finish_copies(0, true);
            // Without `.noinc`, the pending count is first incremented for this arrival, so the net effect is zero.
            if has(Mod::Noinc) {
                self.update_object(address, |object| object.arrive(1, false))?;
            }
            return Ok(Flow::Next);
        }
        let tx = number(self, "tx", Type::U32).unwrap_or(0) as i64;
        let mask = self.mask(i);
        let before = match i.picks.mods().first() {
            Some(Mod::Init) => {
                let count = number(self, "count", Type::U32).unwrap_or(0) as i64;
                let (most, note) = match has(Mod::LayoutV1) {
                    true => (MOST_OF_V1, "the number of arrivals of `.layout::v1` is not from 1 to 511"),
                    false => (MOST, "the number of arrivals is not from 1 to 1048575"),
                };
                if !(1..=most).contains(&count) {
                    return Err(self.fault(FaultKind::Mbarrier, note));
                }
                let reports = has(Mod::LayoutV1).then_some([false; 3]);
                let object = Object { expected: count, pending: count, transactions: 0, phase: 0, reports };
                self.store(address, 8, object.pack().into())?;
                0
            }
            Some(Mod::CheckLayout) => {
                let object = Object::unpack(self.object(address)?);
                let is_it = object.reports.is_some() == has(Mod::LayoutV1);
                self.set_operand(dst, is_it.into(), Type::Pred);
                return Ok(Flow::Next);
            }
            Some(Mod::Inval) => {
                self.object(address)?;
                self.store(address, 8, 0)?;
                0
            }
            Some(Mod::ExpectTx) => self.update_objects(address, mask, |object| object.expect(tx))?,
            Some(Mod::CompleteTx) => self.update_objects(address, mask, |object| {
                object.transactions -= tx;
                Ok(())
            })?,
            Some(m @ (Mod::Arrive | Mod::ArriveDrop)) => {
                let drop = *m == Mod::ArriveDrop;
                let count = number(self, "count", Type::U32).unwrap_or(1) as i64;
                self.update_objects(address, mask, |object| {
                    if has(Mod::ExpectTx) {
                        object.expect(tx)?;
                        return object.arrive(1, drop);
                    }
                    object.arrive(count, drop)?;
                    match has(Mod::NoComplete) && object.pending == 0 {
                        true => Err("mbarrier.arrive.noComplete completes the phase"),
                        false => Ok(()),
                    }
                })?
            }
            Some(Mod::TestWait | Mod::TryWait) => {
                let Object { phase, reports, .. } = Object::unpack(self.object(address)?);
                let conditional = reports.filter(|_| has(Mod::PhaseTypeConditional));
                let over = match number(self, "parity", Type::U32) {
                    Some(parity) => conditional.map_or(phase & 1, |[.., parity]| parity.into()) != parity & 1,
                    None => phase != number(self, "state", Type::B64).unwrap_or(0) >> 61,
                };
                let [_, reported, _] = reports.unwrap_or_default();
                self.set_operand(dst, over.into(), Type::Pred);
                self.set_second(dst, reported);
                self.set_operand(self.named(i, "report"), 0, Type::B8);
                return Ok(if over { Flow::Next } else { Flow::Wait(Wait::Slice) });
            }
            _ => 0,
        };
        self.set_operand(dst, before.into(), Type::B64);
        Ok(Flow::Next)
    }
}
