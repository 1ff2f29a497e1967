//! Textures and surfaces (PTX ISA, "Texture Instructions", "Surface Instructions"): `sem` computes which texels an
//! instruction accesses.

use check::module::{AddressBase, Instruction, Operand};
use isa::texture::{Geometry, elements};
use isa::{Access, Addition, Opaque, OperandKind, Type};
use machine::{FaultKind, HandleFault, missed};
use sem::texture::{Fetch, Lookup, SurfaceAccess, SurfacePlace, TEXEL_BYTES};

use crate::Step;
use crate::atomic::{combine, operation};
use crate::memory::number;
use crate::thread::Cpu;

impl Cpu<'_, '_> {
    fn handle_fault(&self, fault: &HandleFault) -> Box<machine::Fault> {
        self.fault(fault.kind, &fault.note)
    }

    /// The handle of a texture, sampler or surface: the number in a register, or the marked address of a variable or
    /// parameter.
    fn handle(&self, base: AddressBase) -> u64 {
        match base {
            AddressBase::Reg(register) => self.register(register) as u64,
            AddressBase::Symbol(symbol) => self.symbol(symbol).at.wrapping_add(self.mark(symbol)),
            AddressBase::Absolute(handle) => handle,
        }
    }

    /// The first `count` elements of a vector or scalar; missing ones are 0.
    fn first_elements(&self, operand: &Operand, count: usize, ty: Type) -> Vec<u64> {
        let parts = match operand {
            Operand::Vector(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let value = |index| parts.get(index).map_or(0, |part| self.value(part, ty) as u64);
        (0..count).map(value).collect()
    }

    /// The handles of an instruction, and the used elements of its sources, coordinates first.
    fn texel_sources(&self, i: &Instruction) -> (u64, Option<u64>, Vec<u64>) {
        let geometry = Geometry::of(&i.picks);
        let (mut handle, mut sampler, mut sources) = (0, None, Vec::new());
        for (spec, operand) in i.form.operands_with(&i.picks).zip(&i.operands) {
            match (spec.kind, operand) {
                (OperandKind::Texels, Operand::Texels(texels)) => {
                    handle = self.handle(texels.handle);
                    sampler = texels.sampler.map(|sampler| self.handle(sampler));
                    let coordinates = Operand::Vector(texels.coordinates.clone());
                    let count = geometry.map_or(0, Geometry::coordinates);
                    sources.extend(self.first_elements(&coordinates, count, Type::B32));
                }
                (OperandKind::Handle, Operand::Address(base, _)) => handle = self.handle(*base),
                _ if spec.access == Access::Write => {}
                _ => {
                    let count = geometry.map_or(1, |geometry| elements(spec, geometry, &i.picks));
                    let ty = spec.resolve(&i.picks).unwrap_or(Type::B32);
                    sources.extend(self.first_elements(operand, count, ty));
                }
            }
        }
        (handle, sampler, sources)
    }

    /// Writes the result of an instruction: elements of type `ty`, and the predicate that they were resident.
    fn set_texel(&mut self, i: &Instruction, values: &[u64], ty: Type) {
        let Some(destination) = i.operands.first() else { return };
        let (parts, resident) = match destination {
            Operand::Vector(parts) => (parts.as_slice(), None),
            Operand::Resident(parts, predicate) => (parts.as_slice(), Some(*predicate)),
            one => (std::slice::from_ref(one), None),
        };
        for (part, &value) in parts.iter().zip(values) {
            self.set_operand(Some(part), value.into(), ty);
        }
        if let Some(predicate) = resident {
            self.set(predicate, 1, Type::Pred);
        }
    }

    /// `tex` and `tld4`
    pub fn tex(&mut self, i: &Instruction) -> Step {
        let (handle, sampler, sources) = self.texel_sources(i);
        let Some(lookup) = Lookup::of(i.form, &i.picks) else { return Ok(()) };
        let launch = self.cta.launch;
        let texture = launch.bound(handle, Opaque::Texture).map_err(|fault| self.handle_fault(&fault))?;
        let sampler = match sampler {
            Some(handle) => {
                let sampler =
                    launch.bound(handle, Opaque::Sampler).map_err(|fault| self.handle_fault(&fault))?;
                sampler.sampler().for_texture_of(&texture.sampler())
            }
            None => texture.sampler(),
        };
        let Some(placed) = texture.placed() else { return Ok(()) };
        let fetch = Fetch::new(lookup, &placed.image, &sampler)
            .map_err(|mismatch| self.fault(FaultKind::InvalidHandle, &mismatch.to_string()))?;
        let bytes = placed.image.descriptor().format.bytes();
        let words: Vec<u32> = sources.iter().map(|&source| source as u32).collect();
        let mut failed = None;
        let values = fetch.lane(&words, |offset| {
            let mut texel = [0; TEXEL_BYTES];
            if let Err(kind) = launch.read_global(placed.address.wrapping_add(offset), &mut texel[..bytes]) {
                failed = Some(kind);
            }
            texel
        });
        if let Some(kind) = failed {
            return Err(self.fault(kind, "a texel lies outside of the image"));
        }
        // Raw bits; `.f16` uses the low 16.
        let ty = Type::of_bits(i.picks.ty(0).bits());
        self.set_texel(i, &values.map(u64::from), ty);
        Ok(())
    }

    /// `txq` and `suq`
    pub fn txq(&mut self, i: &Instruction) -> Step {
        let (handle, _, sources) = self.texel_sources(i);
        let level = sources.first().map_or(0, |&level| level as u32);
        let attribute = self.cta.launch.attribute(i.form.opcode, &i.picks, handle);
        let value = attribute.map_err(|fault| self.handle_fault(&fault))?(level);
        self.set_texel(i, &[value.into()], Type::B32);
        Ok(())
    }

    /// `suld`, `sust` and `sured`
    pub fn surface(&mut self, i: &Instruction) -> Step {
        let (handle, _, sources) = self.texel_sources(i);
        let Some(access) = SurfaceAccess::of(i.form, &i.picks) else { return Ok(()) };
        let launch = self.cta.launch;
        let surface = launch.surface(handle, access).map_err(|fault| self.handle_fault(&fault))?;
        let Some(placed) = surface.placed() else { return Ok(()) };
        let image = &placed.image;
        let words: Vec<u32> = sources.iter().map(|&source| source as u32).collect();
        let (coordinates, _) = words.split_at(access.geometry().coordinates());
        let operands = &sources[coordinates.len()..];
        let size = access.element_bytes();
        let mut data = vec![0; access.bytes(image) as usize];
        let reads = i.form.operands.first().is_some_and(|spec| spec.access == Access::Write);
        let place = match access.place(image, coordinates) {
            SurfacePlace::At(offset) => Some(placed.address.wrapping_add(offset)),
            SurfacePlace::Nowhere => None,
            place => return Err(self.handle_fault(&missed(place, image, coordinates))),
        };
        let failed = |kind| self.fault(kind, "a texel lies outside of the image");
        if reads {
            if let Some(at) = place {
                launch.read_global(at, &mut data).map_err(failed)?;
            }
            let values: Vec<u64> = data.chunks(size).map(|data| number(data) as u64).collect();
            self.set_texel(i, &values, i.picks.ty(0));
            return Ok(());
        }
        let Some(at) = place else { return Ok(()) };
        if let Some(operation) = operation(&i.picks) {
            let Some(ty) = access.reduced(image) else { return Ok(()) };
            launch.read_global(at, &mut data).map_err(failed)?;
            let new = combine(operation, ty, Addition::Global, number(&data), operands[0].into(), 0);
            data.copy_from_slice(&new.to_le_bytes()[..size]);
        } else if access.formatted {
            let words: Vec<u32> = operands.iter().map(|&operand| operand as u32).collect();
            data.copy_from_slice(
                &image.descriptor().format.encode(&words)[..image.descriptor().format.bytes()],
            );
        } else {
            for (data, operand) in data.chunks_mut(size).zip(operands) {
                data.copy_from_slice(&operand.to_le_bytes()[..size]);
            }
        }
        self.cta.write_global(at, &data).map_err(failed)?;
        self.cta.changes += 1;
        Ok(())
    }
}
