//! Opaque types: handles of textures, samplers and surfaces (PTX ISA, "Texture, Sampler, and Surface Types").

/// The kind of object that a 64-bit handle refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opaque {
    /// `.texref`
    Texture,
    /// `.samplerref`
    Sampler,
    /// `.surfref`
    Surface,
}

impl Opaque {
    /// The type with this name, without its dot.
    pub fn named(name: &str) -> Option<Opaque> {
        [Opaque::Texture, Opaque::Sampler, Opaque::Surface].into_iter().find(|opaque| opaque.name() == name)
    }

    /// Its type, without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Opaque::Texture => "texref",
            Opaque::Sampler => "samplerref",
            Opaque::Surface => "surfref",
        }
    }

    /// The bit that is set in handles of this kind. It is not documented, but ptxas's code for `istypep` tests it.
    pub const fn mark(self) -> u64 {
        match self {
            Opaque::Texture => 1 << 61,
            Opaque::Sampler => 1 << 62,
            Opaque::Surface => 1 << 63,
        }
    }
}
