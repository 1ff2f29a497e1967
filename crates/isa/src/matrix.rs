//! Shapes of the matrix instructions, and the number of registers in which a thread holds its fragment of a matrix
//! (PTX ISA, "Matrix Fragments for WMMA", "Matrix Fragments for mma").

use crate::{Action, Effect, Form, Mod, Opcode, OperandSpec, Picks, Type};

/// `.m16n8k16`: D (m x n) = A (m x k) * B (k x n) + C (m x n).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows of A, C and D.
    pub m: usize,
    /// Columns of B, C and D.
    pub n: usize,
    /// Columns of A, rows of B; 0 in shapes of one matrix (`.m8n8`).
    pub k: usize,
}

impl Shape {
    /// The shape that a modifier names.
    fn from_name(name: &str) -> Option<Shape> {
        let (m, rest) = name.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k').unwrap_or((rest, "0"));
        Some(Shape { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
    }

    /// The shape among the picks.
    pub fn of(picks: &Picks) -> Option<Shape> {
        picks.mods().iter().find_map(|m| Shape::from_name(m.name()))
    }
}

/// Which matrix of `D = A * B + C` an operand holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Matrix {
    /// m x k; m x k/2 if half of it is known to be zero (`.sp`).
    A,
    /// k x n
    B,
    /// C and D: m x n
    Accumulator,
}

impl Matrix {
    /// The matrix that an operand of a row holds.
    pub fn of(form: &Form, picks: &Picks, spec: &OperandSpec) -> Matrix {
        match spec.name {
            "a" => Matrix::A,
            "b" => Matrix::B,
            // `wmma.load.a`
            _ if form.opcode == Opcode::Wmma && picks.has(Mod::Load) && picks.has(Mod::A) => Matrix::A,
            _ if form.opcode == Opcode::Wmma && picks.has(Mod::Load) && picks.has(Mod::B) => Matrix::B,
            _ => Matrix::Accumulator,
        }
    }

    /// Rows and columns of the stored part of the matrix.
    pub fn size(self, shape: Shape, sparse: bool) -> (usize, usize) {
        match self {
            Matrix::A => (shape.m, if sparse { shape.k / 2 } else { shape.k }),
            Matrix::B => (shape.k, shape.n),
            Matrix::Accumulator => (shape.m, shape.n),
        }
    }
}

/// Bits of an element in a register. Formats of 4 and 6 bits occupy bytes, except where `.kind` packs them.
pub fn element_bits(ty: Type, picks: &Picks) -> u32 {
    match ty {
        Type::E2m1 if picks.has(Mod::KindMxf4) || picks.has(Mod::KindMxf4nvf4) => 4,
        Type::E2m1 | Type::E2m3 | Type::E3m2 => 8,
        _ => ty.bits(),
    }
}

/// Number of scales for each row of A and each column of B (PTX ISA, "Block Scaling for mma.sync"). Without
/// `.scale_vec`, `.kind` determines it.
pub fn scale_vector(picks: &Picks) -> usize {
    match () {
        () if picks.has(Mod::ScaleVec4X) => 4,
        () if picks.has(Mod::ScaleVec2X) || picks.has(Mod::KindMxf4) => 2,
        () => 1,
    }
}

/// Does A omit its zeros?
pub fn is_sparse(picks: &Picks) -> bool {
    picks.has(Mod::Sp) || picks.has(Mod::SpOrderedMetadata)
}

/// Does ptxas accept this spelling without having code for it? This holds for shapes of `wmma` that doubles and some
/// accumulators do not have, for dense products of `.tf32` with the length of sparse ones, and for tensor multicasts
/// to `.shared::cta`.
pub fn is_without_code(form: &Form, picks: &Picks) -> bool {
    let is_k8 = picks.has(Mod::M16n16k8);
    let ty = picks.ty(0);
    match form.action {
        Action::Effect(Effect::WmmaLoad | Effect::WmmaStore) => {
            ty == Type::F64 && !picks.has(Mod::M8n8k4) || is_k8 && matches!(ty, Type::F16 | Type::S32)
        }
        Action::Effect(Effect::Mma) if form.opcode == Opcode::Wmma => {
            ty == Type::F64 && !is_k8 && !picks.has(Mod::M8n8k4)
        }
        Action::Effect(Effect::Mma) => {
            picks.has(Mod::M16n8k16) && picks.ty(1) == Type::Tf32 && !is_sparse(picks)
        }
        Action::Effect(Effect::CopyTensor) => {
            picks.has(Mod::MulticastCluster) && picks.has(Mod::SharedCta) && !picks.has(Mod::BulkGroup)
        }
        _ => false,
    }
}

/// Does each of the four quad pairs of a warp compute its own product, as `mma.m8n8k4` with `.f16` does?
pub fn is_by_quad_pairs(shape: Shape, a: Type) -> bool {
    shape == Shape { m: 8, n: 8, k: 4 } && a == Type::F16
}

/// The number of registers in the fragment of an operand.
pub fn fragment_registers(form: &Form, picks: &Picks, spec: &OperandSpec) -> usize {
    if matches!(form.action, Action::Effect(Effect::SparseData)) {
        return sparse_registers(form, picks, spec);
    }
    if form.opcode == Opcode::Tcgen05 {
        return tensor_memory_registers(picks);
    }
    let (Some(shape), Some(ty)) = (Shape::of(picks), spec.element(picks)) else { return 1 };
    let matrix = Matrix::of(form, picks, spec);
    if form.opcode == Opcode::Wmma && ty == Type::F16 && matrix != Matrix::Accumulator {
        return 8;
    }
    // `.m8n8k4` is the shape of the quad pairs, unless the matrices are doubles.
    let lanes = if is_by_quad_pairs(shape, ty) || is_by_quad_pairs(shape, Type::F16) && ty == Type::F32 {
        8
    } else if form.opcode == Opcode::Wgmma {
        128
    } else {
        32
    };
    let (rows, columns) = matrix.size(shape, is_sparse(picks));
    let bits = rows * columns * element_bits(ty, picks) as usize;
    (bits / lanes).div_ceil(ty.bits().max(32) as usize)
}

/// The registers of `tcgen05.ld` and `.st`: `.num` times those of the shape.
fn tensor_memory_registers(picks: &Picks) -> usize {
    let mods = || picks.mods().iter().map(|m| m.name());
    let times = mods().find_map(|name| name.strip_prefix('x')?.parse().ok()).unwrap_or(1);
    let of_shape = mods().find_map(|name| match name {
        "16x128b" => Some(2),
        "16x256b" => Some(4),
        _ => None,
    });
    times * of_shape.unwrap_or(1)
}

/// The registers of an operand of `spcompress`, `spdecompress` or `tcgen05.ld.spcompress`: its bits, packed.
fn sparse_registers(form: &Form, picks: &Picks, spec: &OperandSpec) -> usize {
    let mods = || picks.mods().iter().map(|m| m.name());
    let count = |digits: &str| digits.parse::<usize>().ok();
    let sparsity = mods().find_map(|name| name.strip_prefix("sp::")?.split_once(':'));
    let (Some(kept), Some(of)) = sparsity.map_or((None, None), |(kept, of)| (count(kept), count(of))) else {
        return 1;
    };
    let times = mods().find_map(|name| count(name.strip_prefix('x')?)).unwrap_or(1);
    let (element, index) = (picks.ty(0).bits() as usize, picks.ty(1).bits() as usize);
    // `.num` counts groups, registers of what is kept, or registers that are read.
    let groups = match form.opcode {
        Opcode::Spdecompress => times,
        Opcode::Spcompress => times * 32 / (kept * element),
        _ => times * 32 / (of * element),
    };
    let bits = match spec.name.trim_start_matches("out-") {
        "mdata" => kept * index,
        "cdata" => kept * element,
        _ => of * element,
    };
    (groups * bits).div_ceil(32)
}

/// The type of the registers that hold elements of this type.
pub(crate) fn register_type(element: Type) -> Type {
    match element {
        Type::F16 => Type::F16x2,
        Type::Bf16 => Type::Bf16x2,
        Type::Tf32 | Type::F32 | Type::S32 | Type::F64 => element,
        _ => Type::B32,
    }
}
