//! Copies of boxes of tensors, and tensor maps (PTX ISA, "Tensors"). Copies are done at once.

use check::module::{Instruction, Operand};
use isa::{Mod, Space, Type, Validity};
use machine::FaultKind;
use sem::tensormap::{BYTES, Elements, Field, Place, TensorMap};

use crate::Step;
use crate::atomic::{combine, operation};
use crate::memory::{Address, number};
use crate::thread::Cpu;

impl Cpu<'_, '_> {
    /// The bytes of a tensor map, or of memory that will hold one.
    fn map_bytes(&self, at: Address, write: bool) -> Step<[u8; BYTES]> {
        if !at.at.is_multiple_of(64) {
            return Err(self.access_fault(FaultKind::Misaligned, at, BYTES as u64, write));
        }
        let read = self.read_bytes(at, BYTES as u64).map_err(|mut fault| {
            fault.access.iter_mut().for_each(|access| access.write = write);
            fault
        })?;
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(&read);
        Ok(bytes)
    }

    /// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`, `cp.async.bulk.prefetch.tensor`, which copies nothing
    pub fn copy_tensor(&mut self, i: &Instruction) -> Step {
        let tensor = i.operands.iter().find_map(|operand| match operand {
            Operand::Tensor(tensor) => Some(&**tensor),
            _ => None,
        });
        let Some(tensor) = tensor else { return Ok(()) };
        let at = self.address(&tensor.map, Space::Generic);
        if matches!(Self::resolve(at).0, Space::Shared | Space::Local) {
            return Err(self.access_fault(FaultKind::OutOfBounds, at, BYTES as u64, false));
        }
        let map = TensorMap::from_bytes(&self.map_bytes(at, false)?)
            .map_err(|_| self.fault(FaultKind::TensorMap, "there is no tensor map at this address"))?;
        let numbers = |parts: &[Operand], ty| -> Vec<u64> {
            parts.iter().map(|part| self.value(part, ty) as u64).collect()
        };
        let offsets = match self.named(i, "offsets") {
            Some(Operand::Vector(parts)) => numbers(parts, Type::U16),
            _ => Vec::new(),
        };
        let place = Place::of(&i.picks, &numbers(&tensor.coordinates, Type::B32), &offsets);
        let elements = map
            .fits_instruction(&i.picks, &place)
            .map_err(|misfit| self.fault(FaultKind::TensorMap, &misfit.to_string()))?;
        let is_load = !i.picks.has(Mod::BulkGroup);
        let space = i.picks.space_of(if is_load { 0 } else { 1 });
        let mut others = i.operands.iter().filter(|operand| matches!(operand, Operand::Address(..)));
        let Some(shared) = others.next().map(|operand| self.address(operand, space)) else { return Ok(()) };
        let Some(object) = others.next().map(|operand| self.address(operand, space)) else {
            return self.store_box(i, &map, &place, elements, shared);
        };
        let mask = self.mask(i);
        let receivers = match mask {
            None => vec![(shared, object)],
            Some(mask) => (0..32)
                .filter(|rank| mask >> rank & 1 != 0)
                .map(|rank| (shared.in_block(rank), object.in_block(rank)))
                .collect(),
        };
        for (to, own) in receivers {
            let is_reported = self.load_box(i, &map, &place, to)?;
            let report = |cpu: &mut Self, object| if is_reported { cpu.report(object) } else { Ok(()) };
            if i.picks.has(Mod::CtaGroup2) {
                // Of the pair of CTAs that receives the data, use the one that the object's address names.
                let object = object.in_block(to.rank() & !1 | object.rank() & 1);
                report(self, object)?;
                self.complete_copy(object, object, map.box_bytes(&place))?;
            } else {
                report(self, own)?;
                self.complete_copy(own, to, map.box_bytes(&place))?;
            }
        }
        Ok(())
    }

    /// Checks the alignment and bounds of a box in shared memory.
    fn check_box(&self, map: &TensorMap, place: &Place, at: Address, write: bool) -> Step {
        let bytes = map.shared_bytes(place);
        if !at.at.is_multiple_of(128) {
            return Err(self.access_fault(FaultKind::Misaligned, at, bytes, write));
        }
        self.read_bytes(at, bytes).map(|_| ()).map_err(|mut fault| {
            fault.access.iter_mut().for_each(|access| access.write = write);
            fault
        })
    }

    /// Loads a box; returns whether the report that the instruction asks for applies to the data.
    fn load_box(&mut self, i: &Instruction, map: &TensorMap, place: &Place, to: Address) -> Step<bool> {
        self.check_box(map, place, to, true)?;
        let (validity, mut is_reported) = (Validity::of(&i.picks), false);
        for row in map.rows(place) {
            let mut line = vec![0; map.row_bytes()];
            map.fill(&mut line);
            if !row.inside.is_empty() {
                let from = Address { space: Space::Global, at: row.global };
                let mut read = self.read_bytes(from, row.inside.len() as u64)?;
                is_reported |=
                    validity.is_some_and(|validity| sem::validity::is_found(validity, row.global, &read));
                map.convert(&mut read);
                line[row.inside].copy_from_slice(&read);
            }
            let mut pieces = Vec::new();
            map.each_piece(to.at.wrapping_add(row.shared), |part, at| pieces.push((part, at)));
            for (part, at) in pieces {
                self.write_bytes(Address { at, ..to }, &line[part])?;
            }
        }
        Ok(is_reported)
    }

    fn store_box(
        &mut self,
        i: &Instruction,
        map: &TensorMap,
        place: &Place,
        elements: Option<Elements>,
        from: Address,
    ) -> Step {
        self.check_box(map, place, from, false)?;
        for row in map.rows(place).filter(|row| !row.inside.is_empty()) {
            let mut line = vec![0; map.row_bytes()];
            let mut pieces = Vec::new();
            map.each_piece(from.at.wrapping_add(row.shared), |part, at| pieces.push((part, at)));
            for (part, at) in pieces {
                line[part.clone()]
                    .copy_from_slice(&self.read_bytes(Address { at, ..from }, part.len() as u64)?);
            }
            let to = Address { space: Space::Global, at: row.global };
            // Whole units of 16 bytes, as far as the tensor's memory goes.
            let behind = Address { space: Space::Global, at: row.global + row.inside.len() as u64 };
            let size = map.element_bytes().max(1);
            let mut tails = (size..row.tail + 1).step_by(size).rev();
            let tail = tails.find(|&tail| self.read_bytes(behind, tail as u64).is_ok());
            let data = &mut line[row.inside.start..row.inside.end + tail.unwrap_or(0)];
            if let (Some(operation), Some(elements)) = (operation(&i.picks), elements) {
                let old = self.read_bytes(to, data.len() as u64).map_err(|mut fault| {
                    fault.access.iter_mut().for_each(|access| access.write = true);
                    fault
                })?;
                let size = elements.ty.bytes() as usize;
                for (new, old) in data.chunks_mut(size).zip(old.chunks(size)) {
                    let Elements { ty, addition } = elements;
                    let result = combine(operation, ty, addition, number(old), number(new), 0);
                    new.copy_from_slice(&result.to_le_bytes()[..size]);
                }
            }
            self.write_bytes(to, data)?;
        }
        Ok(())
    }

    /// `tensormap.replace`
    pub fn tensor_map_replace(&mut self, i: &Instruction) -> Step {
        let (Some(address), Some(value)) = (i.operands.first(), i.operands.last()) else { return Ok(()) };
        let ordinal = self.named(i, "ordinal").map_or(0, |ordinal| self.value(ordinal, Type::U32) as u64);
        let Some(field) = Field::of(&i.picks, ordinal) else { return Ok(()) };
        let (at, value) = (self.address(address, i.picks.space()), self.value(value, i.picks.ty(0)) as u64);
        let mut bytes = self.map_bytes(at, true)?;
        for part in field.replace(&mut bytes, value).into_iter().filter(|part| !part.is_empty()) {
            self.write_bytes(Address { at: at.at + part.start as u64, ..at }, &bytes[part])?;
        }
        Ok(())
    }

    /// `tensormap.cp_fenceproxy`: every thread of the warp makes the same copy.
    pub fn tensor_map_copy(&mut self, i: &Instruction) -> Step {
        let [dst, src, ..] = &i.operands[..] else { return Ok(()) };
        let (to, from) = (self.address(dst, i.picks.space_of(0)), self.address(src, i.picks.space_of(1)));
        self.map_bytes(to, true)?;
        let bytes = self.map_bytes(from, false)?;
        self.write_bytes(to, &bytes)
    }
}
