//! Instructions on textures and surfaces. `sem` defines their results lane by lane.
//!
//! Lanes with the same handle are handled together. Narrowest test: `ptxvm`: `texture`.

use diag::Span;
use ir::{AtomicOp, Width};
use isa::{Addition, Opaque, Opcode, Picks};
use machine::mask::Mask;
use machine::{Bound, HandleFault};
use machine::{Fault, FaultKind};
use sem::texture::{Fetch, Lookup, MOST_SOURCES, SurfaceAccess, SurfacePlace, TEXEL_BYTES};
use smallvec::SmallVec;

use super::transfer::{read, write};
use super::update::{Update, update_atomically};
use super::{Active, Gang, Step};
use crate::bytes::{load, store};
use crate::code::{Kind, Op, Texel, TexelWork};
use crate::registers::SlotRef;

/// The values for one lane's destination registers.
type Values = [u64; 4];

/// Lanes and the byte offsets of their accesses in the image.
type Places = Vec<(usize, u64)>;

/// A lane and its fault.
type LaneFault = (usize, HandleFault);

/// Lanes that use the same texture with the same sampler.
struct Group {
    handle: u64,
    sampler: Option<u64>,
    lanes: Mask,
}

/// The arrays of the source registers.
struct Sources(SmallVec<[(*const u8, Width); MOST_SOURCES]>);

impl Sources {
    fn get(&self, index: usize, lane: usize) -> u64 {
        let (array, width) = self.0[index];
        // SAFETY: the array has an element of this width for every lane.
        unsafe { load(array, width, lane) }
    }

    /// A lane's sources, truncated to 32 bits each.
    fn words(&self, lane: usize) -> [u32; MOST_SOURCES] {
        let mut words = [0; MOST_SOURCES];
        for (index, word) in words.iter_mut().enumerate().take(self.0.len()) {
            *word = self.get(index, lane) as u32;
        }
        words
    }
}

/// A fault: the handle does not fit the instruction.
fn unfit(note: String) -> HandleFault {
    HandleFault { kind: FaultKind::InvalidHandle, note }
}

/// Keeps the fault of the lowest lane.
fn first(fault: &mut Option<LaneFault>, lane: usize, new: HandleFault) {
    if fault.as_ref().is_none_or(|(other, _)| lane < *other) {
        *fault = Some((lane, new));
    }
}

impl Gang<'_> {
    #[inline(never)]
    pub(super) fn texel(&mut self, op: &Texel, active: &Active, span: Span) -> Step {
        let groups = self.texel_groups(op, active);
        let arrays = op.src.iter().map(|&slot| (self.registers.read(active.window, slot), slot.width));
        let sources = Sources(arrays.collect());
        let mut values = vec![[0; 4]; if op.dst.is_empty() { 0 } else { self.threads.lanes }];
        let mut fault = None;
        match op.work {
            TexelWork::Fetch(lookup) => {
                for group in &groups {
                    if let Err(new) = self.fetch(lookup, group, &sources, &mut values) {
                        first(&mut fault, group.lanes.lowest().unwrap_or(0), new);
                    }
                }
            }
            TexelWork::Query { opcode, picks } => {
                for group in &groups {
                    if let Err(new) = self.query(opcode, &picks, group, &sources, &mut values) {
                        first(&mut fault, group.lanes.lowest().unwrap_or(0), new);
                    }
                }
            }
            TexelWork::Load(access) | TexelWork::Store(access) | TexelWork::Reduce(_, access) => {
                fault = self.surface(&op.work, access, &groups, &sources, &mut values);
            }
        }
        if let Some((lane, HandleFault { kind, note })) = fault {
            return Err(self.texel_fault(kind, span, lane, &note));
        }
        for (index, dst) in op.dst.iter().enumerate() {
            let Some(dst) = *dst else { continue };
            self.produce(dst, active, |_, target| {
                for lane in active.mask {
                    // SAFETY: the array has an element for every lane.
                    unsafe { store(target, dst.width, lane, values[lane][index]) }
                }
            });
        }
        Ok(())
    }

    fn texel_fault(&self, kind: FaultKind, span: Span, lane: usize, note: &str) -> Box<Fault> {
        self.fault(kind, span, Mask::single(lane), None, note)
    }

    fn texel_groups(&self, op: &Texel, active: &Active) -> SmallVec<[Group; 1]> {
        let handles = self.distinct(op.handle, active);
        let Some(sampler) = op.sampler else {
            let group = |(handle, lanes)| Group { handle, sampler: None, lanes };
            return handles.into_iter().map(group).collect();
        };
        let samplers = self.distinct(sampler, active);
        let both = |&(handle, lanes): &(u64, Mask)| {
            let with = move |&(sampler, others): &(u64, Mask)| Group {
                handle,
                sampler: Some(sampler),
                lanes: lanes & others,
            };
            samplers.iter().map(with).collect::<SmallVec<[Group; 4]>>()
        };
        handles.iter().flat_map(both).filter(|group| !group.lanes.is_empty()).collect()
    }

    /// The texture of a group, and the sampler that applies to it.
    fn texture(&self, group: &Group) -> Result<(Bound, sem::texture::Sampler), HandleFault> {
        let texture = self.launch.bound(group.handle, Opaque::Texture)?;
        let own = texture.sampler();
        let sampler = match group.sampler {
            Some(handle) => self.launch.bound(handle, Opaque::Sampler)?.sampler().for_texture_of(&own),
            None => own,
        };
        Ok((texture, sampler))
    }

    /// `tex` and `tld4`
    fn fetch(
        &self,
        lookup: Lookup,
        group: &Group,
        sources: &Sources,
        values: &mut [Values],
    ) -> Result<(), HandleFault> {
        let (bound, sampler) = self.texture(group)?;
        let (Some(placed), Some(start)) = (bound.placed(), bound.start()) else { return Ok(()) };
        let fetch =
            Fetch::new(lookup, &placed.image, &sampler).map_err(|mismatch| unfit(mismatch.to_string()))?;
        // SAFETY: the image has `bytes` bytes at `start`.
        unsafe {
            let bytes = placed.image.bytes();
            match placed.image.descriptor().format.bytes() {
                1 => fetch_lanes::<1>(&fetch, start, bytes, group.lanes, sources, values),
                2 => fetch_lanes::<2>(&fetch, start, bytes, group.lanes, sources, values),
                4 => fetch_lanes::<4>(&fetch, start, bytes, group.lanes, sources, values),
                8 => fetch_lanes::<8>(&fetch, start, bytes, group.lanes, sources, values),
                _ => fetch_lanes::<TEXEL_BYTES>(&fetch, start, bytes, group.lanes, sources, values),
            }
        }
        Ok(())
    }

    /// `txq` and `suq`
    fn query(
        &self,
        opcode: Opcode,
        picks: &Picks,
        group: &Group,
        sources: &Sources,
        values: &mut [Values],
    ) -> Result<(), HandleFault> {
        let attribute = self.launch.attribute(opcode, picks, group.handle)?;
        for lane in group.lanes {
            let level = if sources.0.is_empty() { 0 } else { sources.get(0, lane) as u32 };
            values[lane][0] = attribute(level).into();
        }
        Ok(())
    }

    /// `suld`, `sust` and `sured`. Nothing is written before the accesses of all lanes have been checked.
    fn surface(
        &self,
        work: &TexelWork,
        access: SurfaceAccess,
        groups: &[Group],
        sources: &Sources,
        values: &mut [Values],
    ) -> Option<LaneFault> {
        let mut fault = None;
        let mut ready: SmallVec<[(Bound, Places); 1]> = SmallVec::new();
        for group in groups {
            match self.surface_places(access, group, sources, &mut fault) {
                Ok(found) => ready.push(found),
                Err(new) => first(&mut fault, group.lanes.lowest().unwrap_or(0), new),
            }
        }
        if fault.is_some() {
            return fault;
        }
        for (bound, places) in &ready {
            let (Some(placed), Some(start)) = (bound.placed(), bound.start()) else { continue };
            let first_value = access.geometry().coordinates();
            let (size, image) = (access.element_bytes() as u32, &placed.image);
            for &(lane, offset) in places {
                // `place` has checked that the whole access lies within the image.
                let at = start.wrapping_add(offset as usize);
                let element = |index: usize| at.wrapping_add(index * size as usize);
                // SAFETY: as above; atomic accesses are aligned, because the image and the offset are.
                unsafe {
                    match *work {
                        TexelWork::Load(_) => {
                            let count = (access.bytes(image) / u64::from(size)) as usize;
                            for (index, value) in values[lane].iter_mut().enumerate().take(count) {
                                *value = read(element(index), size, false);
                            }
                        }
                        TexelWork::Store(_) if access.formatted => {
                            let count = sources.0.len() - first_value;
                            let words: SmallVec<[u32; 4]> =
                                (0..count).map(|i| sources.get(first_value + i, lane) as u32).collect();
                            let format = image.descriptor().format;
                            write_texel(at, &format.encode(&words)[..format.bytes()]);
                        }
                        TexelWork::Store(_) => {
                            for index in 0..sources.0.len() - first_value {
                                write(element(index), size, sources.get(first_value + index, lane));
                            }
                        }
                        TexelWork::Reduce(reduction, _) => {
                            self.reduce_texel(reduction, access, image, at, sources.get(first_value, lane));
                        }
                        TexelWork::Fetch(_) | TexelWork::Query { .. } => {}
                    }
                }
            }
        }
        None
    }

    /// The surface of a group, and the lanes' offsets in it. Lanes whose access is ignored have none.
    fn surface_places(
        &self,
        access: SurfaceAccess,
        group: &Group,
        sources: &Sources,
        fault: &mut Option<LaneFault>,
    ) -> Result<(Bound, Places), HandleFault> {
        let bound = self.launch.surface(group.handle, access)?;
        let mut places = Places::new();
        if let Some(placed) = bound.placed() {
            let count = access.geometry().coordinates();
            for lane in group.lanes {
                let coordinates = &sources.words(lane)[..count];
                match access.place(&placed.image, coordinates) {
                    SurfacePlace::At(offset) => places.push((lane, offset)),
                    SurfacePlace::Nowhere => {}
                    missed => first(fault, lane, machine::missed(missed, &placed.image, coordinates)),
                }
            }
        }
        Ok((bound, places))
    }

    /// # Safety
    /// `at` must be valid for an aligned element.
    unsafe fn reduce_texel(
        &self,
        op: AtomicOp,
        access: SurfaceAccess,
        image: &sem::texture::Image,
        at: *mut u8,
        operand: u64,
    ) {
        let Some(ty) = access.reduced(image) else { return };
        let update = Update::new(op, ty, Addition::Global);
        // SAFETY: the caller's promise.
        unsafe { update_atomically(at, ty.bytes(), |old| update.apply(old, operand, 0)) };
    }

    /// Calls `f` with lane, address and size for everything that an instruction reads or writes in an image. Changes
    /// no registers.
    pub(super) fn each_texel(
        &self,
        op: &Op,
        mask: Mask,
        active: &Active,
        mut f: impl FnMut(usize, u64, u64),
    ) {
        let Kind::Texel(op) = &op.kind else { return };
        let number = |slot: SlotRef, lane| self.registers.get(active.window, slot, lane);
        for lane in mask {
            let (handle, sampler) = (number(op.handle, lane), op.sampler.map(|slot| number(slot, lane)));
            let mut words = [0; MOST_SOURCES];
            words.iter_mut().zip(&op.src).for_each(|(word, &slot)| *word = number(slot, lane) as u32);
            let words = &words[..op.src.len().min(MOST_SOURCES)];
            // Faults are skipped: executing the instruction will report them.
            match op.work {
                TexelWork::Query { .. } => {}
                TexelWork::Fetch(lookup) => {
                    let group = Group { handle, sampler, lanes: Mask::single(lane) };
                    let Ok((bound, sampler)) = self.texture(&group) else { continue };
                    let Some(placed) = bound.placed() else { continue };
                    let bytes = placed.image.descriptor().format.bytes() as u64;
                    // The addresses of the texels do not depend on their contents.
                    if let Ok(fetch) = Fetch::new(lookup, &placed.image, &sampler) {
                        fetch.lane(words, |offset| {
                            f(lane, placed.address + offset, bytes);
                            [0; TEXEL_BYTES]
                        });
                    }
                }
                TexelWork::Load(access) | TexelWork::Store(access) | TexelWork::Reduce(_, access) => {
                    let Ok(bound) = self.launch.surface(handle, access) else { continue };
                    let Some(placed) = bound.placed() else { continue };
                    if let SurfacePlace::At(offset) = access.place(&placed.image, words) {
                        f(lane, placed.address + offset, access.bytes(&placed.image));
                    }
                }
            }
        }
    }
}

/// Looks up texels for some lanes in an image whose texels have `N` bytes.
///
/// # Safety
/// `start` must be valid for reads of `bytes` bytes, at least one texel.
unsafe fn fetch_lanes<const N: usize>(
    fetch: &Fetch,
    start: *const u8,
    bytes: u64,
    lanes: Mask,
    sources: &Sources,
    values: &mut [Values],
) {
    let last = bytes - N as u64;
    for lane in lanes {
        let words = sources.words(lane);
        let texel = fetch.lane(&words[..sources.0.len()], |offset| {
            let mut texel = [0; TEXEL_BYTES];
            // `fetch` only yields offsets of texels in the image.
            let at = start.wrapping_add(offset.min(last) as usize);
            // SAFETY: the offset is limited to the last texel, and the caller promises the image's bytes.
            texel[..N].copy_from_slice(&unsafe { at.cast::<[u8; N]>().read() });
            texel
        });
        values[lane] = texel.map(u64::from);
    }
}

/// Writes a texel in parts, each of which other threads see as a whole.
///
/// # Safety
/// `at` must be valid for the bytes of the texel.
unsafe fn write_texel(at: *mut u8, texel: &[u8]) {
    for (index, part) in texel.chunks(8).enumerate() {
        let mut bytes = [0; 8];
        bytes[..part.len()].copy_from_slice(part);
        // SAFETY: the caller's promise. Texels have 1, 2, 4, 8 or 16 bytes.
        unsafe { write(at.wrapping_add(8 * index), part.len() as u32, u64::from_le_bytes(bytes)) }
    }
}
