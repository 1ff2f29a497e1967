//! Textures, samplers and surfaces as operands, and the operands whose size depends on the geometry (PTX ISA,
//! "Texture Instructions" and "Surface Instructions").

use diag::{Code, Span};
use isa::texture::Geometry;
use isa::{
    Access, Elements, Form, Gate, Mod, Opaque, Picks, Second, Target, Type, Version, register_allowed,
};

use syntax::tree::Instruction as Tree;

use crate::body::BodyChecker;
use crate::literal::Const;
use crate::module::{AddressBase, Operand, RegId, Texels};
use crate::near_fit::{must_be_register, result_required};
use crate::place::{Complaints, Place, Verdict, complain};
use crate::scalar::fit_scalar;
use crate::selection::Selection;
use crate::value::{Base, Lowered, SymbolValue, Value, element_type};
use crate::vector::{check_alike, fit_vector};

/// The number of gradients of a geometry, if ptxas checks it.
fn gradients(geometry: Geometry) -> Option<usize> {
    match geometry {
        Geometry::Line | Geometry::LineArray => Some(1),
        Geometry::Plane | Geometry::PlaneArray => Some(2),
        Geometry::Volume => Some(4),
        _ => None,
    }
}

/// The position of the array index among the coordinates.
fn array_index(geometry: Geometry) -> Option<usize> {
    geometry.is_array().then_some(usize::from(geometry.is_multisample()))
}

/// The kind of handle that an operand of this name has.
fn handle_of(name: &str) -> Opaque {
    if matches!(name, "surface" | "surfref") { Opaque::Surface } else { Opaque::Texture }
}

/// Is the last operand an offset that can only be one integer? ptxas then skips the gates of offsets. A register of
/// bits could be a depth reference instead, and a vector can only be an offset.
pub(crate) fn has_plain_offset(form: &Form, picks: &Picks, operands: &[Lowered]) -> bool {
    let mut specs = form.operands_with(picks);
    let Some(at) = specs.position(|spec| spec.name == "e" && spec.elements == Elements::Geometry) else {
        return false;
    };
    let is_integer = match operands.get(at).map(|lowered| &lowered.value) {
        Some(Value::Register(_, ty)) => ty.kind() != isa::Kind::Bits,
        Some(Value::Const(_)) => true,
        _ => false,
    };
    specs.next().is_none() && is_integer
}

/// Is this a gate of the offset operand? The instructions on textures have no others that are checked with modifiers
/// and belong to no modifier.
pub(crate) fn is_of_offsets(gate: &Gate, form: &Form, picks: &Picks) -> bool {
    gate.stage == isa::Stage::Modifier && form.has_gate(gate, picks)
}

impl<'a> BodyChecker<'_, 'a> {
    /// The selection for a `tex` whose handle and coordinates are not in brackets, if everything else fits.
    pub(crate) fn without_coordinates(&self, node: &Tree<'a>, operands: &[Lowered]) -> Option<Selection> {
        let [result, handle, coordinates, others @ ..] = operands else { return None };
        let base = match handle.value {
            Value::Register(id, ty) => Base::Register(id, ty),
            Value::Address(base @ Base::Register(..), 0) => base,
            Value::Address(Base::Absolute(_), _) | Value::Const(Const::Int { .. }) => Base::Reported,
            _ => return None,
        };
        if node.opcode.text != "tex" {
            return None;
        }
        let mut coordinates = Box::new(coordinates.clone());
        if matches!(coordinates.value, Value::Const(_)) {
            let value = Value::Vector(smallvec::smallvec![coordinates.clone()], None);
            coordinates = Box::new(Lowered { value, ..*coordinates });
        }
        let inner = smallvec::smallvec![coordinates];
        let value = Value::Tensor(base, 0, inner);
        let mut together = vec![result.clone(), Lowered { value, span: handle.span, negated: false }];
        together.extend(others.iter().cloned());
        self.module
            .candidates(node, together.len())
            .find(|selection| selection.form.is_some_and(|form| self.fits(&together, form, selection)))
    }

    /// Reports what an operand requires of `.target` and `.version`.
    fn need_for_texels(
        &self,
        feature: &str,
        target: u16,
        version: Version,
        span: Span,
        complaints: &mut Complaints,
    ) {
        let target = Target::sm(target);
        if self.module.knows_target() && !self.module.target.has(target) {
            let message = format!("Feature '{feature}' requires .target {target} or higher");
            complain(complaints, Code::RequiresTarget, span, message, None);
        }
        if self.module.version < version {
            let message = format!("Feature '{feature}' requires PTX ISA .version {version} or later");
            complain(complaints, Code::RequiresVersion, span, message, None);
        }
    }

    /// Reports what a handle in a register requires.
    fn need_for_handle(&self, kind: Opaque, span: Span, complaints: &mut Complaints) {
        let independent = self.module.independent_samplers;
        let (feature, version) = match kind {
            Opaque::Surface => ("indirect surface access", Version::new(3, 1)),
            _ if independent => ("indirect texture access with texmode_independent", Version::new(4, 3)),
            _ => ("indirect texture access", Version::new(3, 1)),
        };
        self.need_for_texels(feature, 0, version, span, complaints);
        let first = Target::sm(20);
        if self.module.knows_target() && !self.module.target.has(first) {
            let message = format!("Instruction '{feature}' requires .target {first} or higher");
            complain(complaints, Code::RequiresTarget, span, message, None);
        }
    }

    /// Reports what a handle requires if its address is used as a value.
    pub(crate) fn need_for_handle_address(&self, lowered: &Lowered, ty: Type, complaints: &mut Complaints) {
        let Value::Symbol(SymbolValue { opaque: Some(kind), .. }) = lowered.value else { return };
        self.need_for_handle(kind, lowered.span, complaints);
        if ty != Type::U64 {
            let object = match kind {
                Opaque::Texture => "texture",
                Opaque::Sampler => "sampler",
                Opaque::Surface => "surface",
            };
            let message = format!("Indirect access to {object} requires .u64 type");
            complain(complaints, Code::InstructionTypes, lowered.span, message, Some("write `mov.u64`"));
        }
    }

    /// `[a, {x, y}]`, `[a, b, {x, y}]`: a texture or surface, a sampler, coordinates.
    pub(crate) fn fit_texels(
        &self,
        lowered: &Lowered,
        place: &Place,
        complaints: &mut Complaints,
    ) -> Verdict {
        let kind = handle_of(place.spec.name);
        let Value::Tensor(base, _, inner) = &lowered.value else {
            return Verdict::Mismatch;
        };
        let (sampler, coordinates) = match &inner[..] {
            [coordinates] => (None, coordinates),
            [sampler, coordinates] if kind == Opaque::Texture => (Some(&**sampler), coordinates),
            _ => return Verdict::Mismatch,
        };
        let Some((handle, is_kind)) = handle(base, kind) else { return Verdict::Mismatch };
        let in_register = |lowered: &Lowered| matches!(lowered.value, Value::Register(..));
        if matches!(handle, AddressBase::Reg(_)) || sampler.is_some_and(in_register) {
            self.need_for_handle(kind, lowered.span, complaints);
        }
        if !is_kind {
            handle_expected(place.index, kind, lowered.span, place, complaints);
        }
        let sampler_base = match sampler.map(sampler_handle) {
            None => None,
            Some(None) => return Verdict::Mismatch,
            Some(found) => found,
        };
        let independent = self.module.independent_samplers;
        let has_sampler = sampler_base.is_some_and(|(_, is_sampler)| is_sampler);
        if kind == Opaque::Texture && independent && !has_sampler {
            let span = sampler.map_or(lowered.span, |s| s.span);
            handle_expected(place.index + 1, Opaque::Sampler, span, place, complaints);
        }
        let verdict = match sampler.is_some() && !independent {
            true => self.fit_unified_sampler(coordinates, lowered.span, place, complaints),
            false => fit_coordinates(coordinates, place, complaints),
        };
        match verdict {
            Verdict::Mismatch => Verdict::Mismatch,
            Verdict::Fits(Operand::Vector(coordinates)) => {
                let sampler = sampler_base.map(|(base, _)| base);
                Verdict::Fits(Operand::Texels(Box::new(Texels { handle, sampler, coordinates })))
            }
            Verdict::Fits(_) => Verdict::Fits(Operand::Sink),
        }
    }

    /// A sampler and coordinates with unified texture mode: ptxas counts operands from the sampler on, so that it
    /// takes the coordinates for offsets.
    fn fit_unified_sampler(
        &self,
        coordinates: &Lowered,
        whole: Span,
        place: &Place,
        complaints: &mut Complaints,
    ) -> Verdict {
        let mut unseen = Complaints::new();
        let verdict = fit_coordinates(coordinates, place, &mut unseen);
        unseen.retain(|(_, said)| matches!(said.code, Code::Sink | Code::UnlikeElements));
        complaints.append(&mut unseen);
        let picks = place.context.picks;
        let size = match &coordinates.value {
            Value::Vector(elements, _) => Some(elements.len()),
            Value::VectorRegister(ids, _) => Some(ids.len()),
            _ => None,
        };
        if let Some(size) = size.filter(|_| !picks.has(Mod::Level)) {
            check_size(size, picks.has(Mod::Grad), coordinates.span, place, complaints);
        }
        // It takes the operand after them for offsets of a cube, or for a depth reference.
        if let Some(geometry) = Geometry::of(picks)
            && (picks.has(Mod::Grad) && geometry.is_cube()
                || picks.has(Mod::Level) && geometry == Geometry::Volume)
        {
            illegal_geometry(geometry, whole, place, complaints);
        }
        self.need_for_texels("offset operand", 30, Version::new(1, 0), whole, complaints);
        self.need_for_texels("tex", 0, Version::new(4, 3), whole, complaints);
        verdict
    }

    /// `[a]`: a handle whose attributes are queried.
    pub(crate) fn fit_handle(
        &self,
        lowered: &Lowered,
        place: &Place,
        complaints: &mut Complaints,
    ) -> Verdict {
        let mods = place.context.picks.mods();
        let of_sampler = mods.iter().any(|&m| is_of_sampler(m));
        let kind = match handle_of(place.spec.name) {
            Opaque::Texture if of_sampler && self.module.independent_samplers => Opaque::Sampler,
            kind => kind,
        };
        let Value::Address(base, offset) = &lowered.value else { return Verdict::Mismatch };
        let Some((operand, is_kind)) = handle(base, kind) else { return Verdict::Mismatch };
        if matches!(base, Base::Symbol(symbol) if symbol.sum) {
            return Verdict::Mismatch;
        }
        let independent = kind != Opaque::Surface && self.module.independent_samplers;
        if !independent && matches!(operand, AddressBase::Reg(_)) {
            self.need_for_handle(kind, lowered.span, complaints);
        }
        // ptxas does not check the handle for this attribute if samplers are independent.
        let any = mods.contains(&Mod::MemoryLayout) && independent;
        if !any && (!is_kind || *offset != 0) {
            handle_expected(place.index, kind, lowered.span, place, complaints);
        }
        let is_sampler =
            handle(base, Opaque::Sampler).is_some_and(|(_, is_sampler)| is_sampler) && *offset == 0;
        if kind != Opaque::Surface && mods.contains(&Mod::ForceUnnormalizedCoords) && !is_sampler {
            let name = place.context.name;
            let message = format!("Argument {} of instruction '{name}': .samplerref expected", place.index);
            complain(complaints, Code::HandleExpected, lowered.span, message, None);
        }
        Verdict::Fits(Operand::Address(operand, 0))
    }

    /// The registers that hold texels. A destination may have a predicate that reports whether the texels are
    /// resident in memory.
    pub(crate) fn fit_texel_values(
        &self,
        lowered: &Lowered,
        place: &Place,
        count: usize,
        complaints: &mut Complaints,
    ) -> Verdict {
        let vector = match &lowered.value {
            Value::Pair(first, second) if place.spec.second == Second::Optional => {
                let verdict = fit_vector(first, place, count, complaints);
                if matches!(verdict, Verdict::Fits(_))
                    && !matches!(second.value, Value::Register(_, Type::Pred))
                {
                    let message =
                        format!("Predicate output expected for instruction '{}'", place.context.name);
                    complain(complaints, Code::PredicateOutput, second.span, message, None);
                }
                let feature = "Texture instruction with optional predicate result";
                self.need_for_texels(feature, 60, Version::new(7, 1), lowered.span, complaints);
                return match (verdict, &second.value) {
                    (Verdict::Fits(Operand::Vector(parts)), Value::Register(id, _)) => {
                        Verdict::Fits(Operand::Resident(parts, *id))
                    }
                    (verdict, _) => verdict,
                };
            }
            Value::Const(value)
                if place.spec.access == Access::Write
                    && place.ty.is_some_and(|ty| isa::literal_allowed(ty, value.form())) =>
            {
                return result_required(lowered.span, place, complaints);
            }
            Value::Vector(elements, _) => Some(elements.len()),
            Value::VectorRegister(ids, _) => Some(ids.len()),
            _ => None,
        };
        let is_surface = place.spec.elements == Elements::Vector;
        match vector {
            // Without `.v2` or `.v4`, a surface operand may have any length. With them, a stored operand may be a
            // single register.
            Some(own) if is_surface && count == 1 => fit_vector(lowered, place, own, complaints),
            None if is_surface && (count == 1 || place.spec.access == Access::Read) => {
                fit_scalar(lowered, place, complaints)
            }
            _ => fit_vector(lowered, place, count, complaints),
        }
    }
}

/// Is this an attribute of samplers?
fn is_of_sampler(attribute: Mod) -> bool {
    matches!(
        attribute,
        Mod::ForceUnnormalizedCoords | Mod::FilterMode | Mod::AddrMode0 | Mod::AddrMode1 | Mod::AddrMode2
    )
}

fn handle_expected(index: usize, kind: Opaque, span: Span, place: &Place, complaints: &mut Complaints) {
    let (name, kind) = (place.context.name, kind.name());
    let message = format!("Argument {index} of instruction '{name}': .{kind} or .u64 register expected");
    complain(complaints, Code::HandleExpected, span, message, None);
}

/// The base of a handle, and whether it has this kind; `None` if its type is wrong.
fn handle(base: &Base, kind: Opaque) -> Option<(AddressBase, bool)> {
    match *base {
        Base::Register(id, ty) => {
            register_allowed(Type::U64, ty, false).then_some((AddressBase::Reg(id), true))
        }
        Base::Symbol(SymbolValue { symbol, opaque, ty, .. }) => (opaque.is_some()
            || register_allowed(Type::U64, ty, false))
        .then_some((AddressBase::Symbol(symbol), opaque == Some(kind))),
        Base::Reported => Some((AddressBase::Absolute(0), true)),
        _ => None,
    }
}

/// The base of the handle of a sampler, and whether it is one.
fn sampler_handle(sampler: &Lowered) -> Option<(AddressBase, bool)> {
    let base = match sampler.value {
        Value::Register(id, ty) => Base::Register(id, ty),
        Value::Symbol(symbol) => Base::Symbol(symbol),
        _ => return None,
    };
    handle(&base, Opaque::Sampler)
}

/// The coordinates: of type `.ctype` for textures, integers for surfaces.
fn fit_coordinates(lowered: &Lowered, place: &Place, complaints: &mut Complaints) -> Verdict {
    let picks = place.context.picks;
    let is_surface = handle_of(place.spec.name) == Opaque::Surface;
    let ty = if is_surface { Type::S32 } else { picks.types().last().copied().unwrap_or(Type::S32) };
    let fits = |found: Type, vector: bool| match ty {
        _ if is_surface => matches!(found, Type::S32 | Type::U32 | Type::B32),
        // An array index may be among floating-point coordinates.
        Type::F32 if vector && matches!(found, Type::S32 | Type::U32) => true,
        _ => register_allowed(ty, found, false),
    };
    let elements = match &lowered.value {
        Value::Register(id, found) if fits(*found, false) => {
            return Verdict::Fits(Operand::Vector(vec![Operand::Reg(*id)]));
        }
        Value::VectorRegister(ids, found) if fits(*found, true) => {
            check_geometry(ids.len(), lowered.span, place, complaints);
            return Verdict::Fits(registers(ids));
        }
        Value::Vector(elements, _) => elements,
        _ => return Verdict::Mismatch,
    };
    if vector_type(elements).is_some_and(|found| !fits(found, true)) {
        return Verdict::Mismatch;
    }
    let index = Geometry::of(picks).and_then(array_index).filter(|_| !is_surface);
    if let Some(element) = index.and_then(|index| elements.get(index))
        && !matches!(element_type(element), Some(Type::S32 | Type::U32 | Type::B32) | None)
    {
        let message = format!(
            "Array index in the '{}' instruction has unexpected type. Expecting type .u32",
            place.context.name
        );
        complain(complaints, Code::ArrayIndex, element.span, message, None);
    }
    let like = index.map_or(&elements[..], |index| elements.get(index + 1..).unwrap_or_default());
    check_alike(like, place, complaints);
    for element in elements.iter().filter(|element| matches!(element.value, Value::Sink)) {
        let message = "Sink '_' not allowed as a source operand".to_owned();
        complain(complaints, Code::Sink, element.span, message, None);
    }
    check_geometry(elements.len(), lowered.span, place, complaints);
    Verdict::Fits(sources(elements))
}

/// The registers of a vector register, as sources.
fn registers(ids: &[RegId]) -> Operand {
    Operand::Vector(ids.iter().map(|&id| Operand::Reg(id)).collect())
}

/// The elements of a vector, as 32-bit sources.
fn sources(elements: &[Box<Lowered>]) -> Operand {
    let source = |element: &Lowered| match element.value {
        Value::Register(id, _) => Operand::Reg(id),
        Value::RegisterPlus(id, _, addend) => Operand::RegPlus(id, addend),
        Value::Const(value @ Const::Int { .. }) => Operand::Imm(value.bits(Type::S32)),
        Value::Const(value) => Operand::Imm(value.bits(Type::F32)),
        Value::Special(register) => Operand::Special(register),
        // An element that cannot be a source was reported.
        _ => Operand::Sink,
    };
    Operand::Vector(elements.iter().map(|element| source(element)).collect())
}

fn check_geometry(count: usize, span: Span, place: &Place, complaints: &mut Complaints) {
    let Some(geometry) = Geometry::of(place.context.picks) else { return };
    if count < geometry.coordinates() {
        // ptxas reports this twice: for the coordinates and for the operand that contains them.
        for _ in 0..1 + usize::from(place.index > 0) {
            geometry_mismatch(geometry, geometry.coordinates(), span, place, complaints);
        }
    }
}

fn geometry_mismatch(
    geometry: Geometry,
    count: usize,
    span: Span,
    place: &Place,
    complaints: &mut Complaints,
) {
    let name = place.context.name;
    let message = format!("Operand vector size doesn't match geometry for instruction '{name}'");
    // Vectors have 2 or 4 elements.
    let help = format!("{} takes {} elements here", geometry.name(), count.next_power_of_two());
    complain(complaints, Code::VectorSize, span, message, Some(&help));
}

/// An operand that depends on the geometry: offsets, gradients, or the depth reference.
pub(crate) fn fit_geometry(lowered: &Lowered, place: &Place, complaints: &mut Complaints) -> Verdict {
    let geometry = Geometry::of(place.context.picks);
    let Some(ty) = place.ty else { return Verdict::Mismatch };
    let is_gradient = place.spec.name.starts_with("dP");
    // Offsets are integers; an `.f16x2` register is not one.
    let fits = |found: Type| register_allowed(ty, found, false) && !(ty == Type::S32 && found == Type::F16x2);
    let (count, operand) = match &lowered.value {
        Value::Register(_, found) if ty == Type::S32 && !fits(*found) => return Verdict::Mismatch,
        Value::Function(..) => return Verdict::Mismatch,
        Value::Symbol(SymbolValue { sum: false, .. }) | Value::Indexed(_) | Value::UnknownSum
            if ty == Type::S32 =>
        {
            return Verdict::Mismatch;
        }
        Value::RegisterPlus(_, Type::F16x2, _) if ty == Type::S32 => return Verdict::Mismatch,
        // It could only be a depth reference.
        Value::Address(base, _) if ty == Type::S32 => {
            return match base {
                Base::Register(_, found) if register_allowed(Type::F32, *found, false) => {
                    must_be_register(lowered.span, place, complaints)
                }
                _ => Verdict::Mismatch,
            };
        }
        Value::VectorRegister(ids, found) if ty == Type::S32 || is_gradient => {
            if !fits(*found) {
                return Verdict::Mismatch;
            }
            (ids.len(), registers(ids))
        }
        Value::Vector(elements, _) if ty == Type::S32 || is_gradient => {
            if vector_type(elements).is_some_and(|found| !fits(found)) {
                return Verdict::Mismatch;
            }
            check_alike(elements, place, complaints);
            (elements.len(), sources(elements))
        }
        Value::Vector(..) | Value::VectorRegister(..) => return Verdict::Mismatch,
        _ => {
            // Bits could also be a depth reference.
            let is_untyped =
                matches!(lowered.value, Value::Register(_, found) if found.kind() == isa::Kind::Bits);
            let verdict = fit_scalar(lowered, place, complaints);
            if is_gradient && matches!(verdict, Verdict::Fits(_)) {
                let message = format!("Vector expected for argument {}", place.index + 1);
                complain(complaints, Code::VectorExpected, lowered.span, message, None);
            } else if let Some(geometry) = geometry.filter(|&geometry| geometry == Geometry::Volume)
                && (ty == Type::F32 || is_untyped)
            {
                illegal_geometry(geometry, lowered.span, place, complaints);
            }
            return verdict;
        }
    };
    check_size(count, is_gradient, lowered.span, place, complaints);
    Verdict::Fits(operand)
}

/// Checks the length of a vector of offsets or gradients.
fn check_size(count: usize, are_gradients: bool, span: Span, place: &Place, complaints: &mut Complaints) {
    let Some(geometry) = Geometry::of(place.context.picks) else { return };
    if are_gradients {
        if let Some(wanted) = gradients(geometry).filter(|&wanted| wanted != count) {
            geometry_mismatch(geometry, wanted, span, place, complaints);
        }
        return;
    }
    if geometry.is_cube() {
        illegal_geometry(geometry, span, place, complaints);
    }
    // Those of a cube are three to ptxas.
    if count < geometry.position() {
        geometry_mismatch(geometry, geometry.position(), span, place, complaints);
    }
}

fn illegal_geometry(geometry: Geometry, span: Span, place: &Place, complaints: &mut Complaints) {
    let message = format!("Illegal modifier '{}' for instruction '{}'", geometry.name(), place.context.name);
    complain(complaints, Code::IllegalModifier, span, message, None);
}

/// The type of a vector: that of its elements, or bits if their types differ.
fn vector_type(elements: &[Box<Lowered>]) -> Option<Type> {
    let mut types = elements.iter().filter_map(|element| element_type(element));
    let first = types.next()?;
    // A predicate in a mixed vector counts as 32 bits.
    Some(if types.all(|ty| ty == first) { first } else { Type::of_bits(first.bits().max(32)) })
}
