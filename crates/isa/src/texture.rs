//! Geometries of textures and surfaces: numbers of coordinates, offsets and gradients (PTX ISA, "Texture
//! Instructions", "Surface Instructions").

use crate::{Elements, Form, Mod, OperandKind, OperandSpec, Picks};

/// The geometry of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Geometry {
    /// `.1d`
    Line,
    /// `.2d`
    Plane,
    /// `.3d`
    Volume,
    /// `.a1d`: layers of one dimension.
    LineArray,
    /// `.a2d`: layers of two dimensions.
    PlaneArray,
    /// `.cube`: six square faces, in the order +x, -x, +y, -y, +z, -z.
    Cube,
    /// `.acube`
    CubeArray,
    /// `.2dms`: several samples for each texel.
    Multisample,
    /// `.a2dms`
    MultisampleArray,
}

impl Geometry {
    /// The geometry among the picks.
    pub fn of(picks: &Picks) -> Option<Geometry> {
        picks.mods().iter().find_map(|modifier| {
            Some(match modifier {
                Mod::N1d => Geometry::Line,
                Mod::N2d => Geometry::Plane,
                Mod::N3d => Geometry::Volume,
                Mod::A1d => Geometry::LineArray,
                Mod::A2d => Geometry::PlaneArray,
                Mod::Cube => Geometry::Cube,
                Mod::Acube => Geometry::CubeArray,
                Mod::N2dms => Geometry::Multisample,
                Mod::A2dms => Geometry::MultisampleArray,
                _ => return None,
            })
        })
    }

    /// Its modifier, with the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Geometry::Line => ".1d",
            Geometry::Plane => ".2d",
            Geometry::Volume => ".3d",
            Geometry::LineArray => ".a1d",
            Geometry::PlaneArray => ".a2d",
            Geometry::Cube => ".cube",
            Geometry::CubeArray => ".acube",
            Geometry::Multisample => ".2dms",
            Geometry::MultisampleArray => ".a2dms",
        }
    }

    /// Number of dimensions of a layer, and of offsets within it.
    pub const fn dimensions(self) -> usize {
        match self {
            Geometry::Line | Geometry::LineArray => 1,
            Geometry::Volume => 3,
            Geometry::Plane
            | Geometry::PlaneArray
            | Geometry::Cube
            | Geometry::CubeArray
            | Geometry::Multisample
            | Geometry::MultisampleArray => 2,
        }
    }

    /// Number of coordinates of a position in a layer; for a cube, of a direction.
    pub const fn position(self) -> usize {
        if self.is_cube() { 3 } else { self.dimensions() }
    }

    /// Number of coordinates that have a meaning: the sample index, then the layer index, then the position.
    pub const fn coordinates(self) -> usize {
        self.position() + self.is_array() as usize + self.is_multisample() as usize
    }

    /// Does an index select a layer (or a cube, which has six)?
    pub const fn is_array(self) -> bool {
        matches!(
            self,
            Geometry::LineArray | Geometry::PlaneArray | Geometry::CubeArray | Geometry::MultisampleArray
        )
    }

    /// Does it have six faces?
    pub const fn is_cube(self) -> bool {
        matches!(self, Geometry::Cube | Geometry::CubeArray)
    }

    /// Does each texel have several samples?
    pub const fn is_multisample(self) -> bool {
        matches!(self, Geometry::Multisample | Geometry::MultisampleArray)
    }
}

impl Form {
    /// Is this an instruction on textures or surfaces?
    pub fn accesses_texels(&self) -> bool {
        self.operands.iter().any(|spec| spec.kind == OperandKind::Texels)
    }
}

/// Number of elements of an operand that an instruction on textures or surfaces uses; it ignores further ones.
pub fn elements(spec: &OperandSpec, geometry: Geometry, picks: &Picks) -> usize {
    match (spec.name, spec.elements) {
        ("e", _) => geometry.dimensions(),
        ("dPdx" | "dPdy", _) => geometry.position(),
        (_, Elements::Vector) => picks.vector(),
        (_, Elements::Fixed(count)) => count.into(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_as_many_as_the_manual_lists() {
        let counts = [
            (Mod::N1d, 1),
            (Mod::N2d, 2),
            (Mod::N3d, 3),
            (Mod::A1d, 2),
            (Mod::A2d, 3),
            (Mod::Cube, 3),
            (Mod::Acube, 4),
            (Mod::N2dms, 3),
            (Mod::A2dms, 4),
        ];
        for (modifier, count) in counts {
            let geometry = Geometry::of(&Picks::new(&[], &[modifier])).unwrap();
            assert_eq!(geometry.coordinates(), count, "{}", geometry.name());
            assert_eq!(geometry.name(), format!(".{}", modifier.name()));
        }
    }
}
