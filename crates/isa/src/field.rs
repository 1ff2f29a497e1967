//! The fields in which ptxas stores modifiers while it reads them: one modifier for each field, whatever the
//! instruction. ptxas rejects a second modifier of the same field at once.

use crate::Mod;

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// A field that ptxas names in its message.
    Kind(&'static str),
    /// Comparison operators.
    Comparison,
    /// The operation on the value in memory.
    Operation,
    /// Memory order.
    Order,
    /// The use of the buffer of matrix B.
    Buffer,
    /// One of these; ptxas names the second modifier.
    OneOf(&'static [&'static str]),
    /// This modifier only; ptxas names it.
    Own(Mod),
    /// This modifier only; ptxas calls the second one a duplicate.
    Twice(Mod),
}

impl Field {
    /// The field that a modifier fills. `None` if ptxas accepts the modifier twice.
    pub(crate) fn of(modifier: Mod) -> Option<Field> {
        if modifier.rounding().is_some() || modifier == Mod::Rs {
            return Some(Field::Kind("rounding"));
        }
        if modifier.cmp().is_some() {
            return Some(Field::Comparison);
        }
        let name = modifier.name();
        if is_matrix_shape(name) {
            return Some(Field::Kind("matrix shape"));
        }
        let kind = match name {
            "1d" | "2d" | "3d" | "4d" | "5d" => "dimension",
            "2dms" | "a1d" | "a2d" | "a2dms" | "acube" | "cube" => "texture",
            "ca" | "cg" | "cs" | "cv" | "lu" | "wb" | "wt" => "cache operation",
            "L1::32B" | "L2::128B" | "L2::256B" | "L2::64B" => "cache prefetching",
            "a" | "b" | "g" | "r" => "component",
            "acc::f16" | "acc::f32" => "accumulation precision",
            "addr_mode_0"
            | "addr_mode_1"
            | "addr_mode_2"
            | "array_size"
            | "channel_data_type"
            | "channel_order"
            | "depth"
            | "filter_mode"
            | "force_unnormalized_coords"
            | "height"
            | "memory_layout"
            | "normalized_coords"
            | "num_mipmap_levels"
            | "num_samples"
            | "width" => "query",
            "all" | "any" => ".any/.all",
            "b4e" | "ecl" | "ecr" | "f4e" | "rc16" | "rc8" => "permute",
            "ballot" => "vote",
            "bfly" | "idx" | "up" => "shuffle",
            "block16" | "block32" => ".scale_vectorsize",
            "clamp" | "trap" | "wrap" | "zero" => "clamp",
            "cluster" | "cta" | "gl" | "gpu" | "sys" => "scope",
            "finite" | "infinite" | "normal" | "notanumber" | "number" | "subnormal" => "testp operation",
            "im2col" | "im2col_no_offs" | "im2col::w" | "im2col::w::128" | "tile" | "tile::gather4"
            | "tile::scatter4" => ".load_mode",
            "shr15" | "shr7" => "shift-right",
            "valid_addr" => "valid_addr",
            "v2" | "v4" | "v8" => "vector",
            "x1" | "x128" | "x16" | "x2" | "x32" | "x4" | "x64" | "x8" => ".num",
            "dec" | "exch" | "inc" => return Some(Field::Operation),
            "acq_rel" | "acquire" | "relaxed" | "release" | "sc" | "volatile" | "weak" => {
                return Some(Field::Order);
            }
            "2pi" | "ftz" | "launch_dependents" | "nc" | "noftz" | "oob" | "wait" => {
                return Some(Field::Twice(modifier));
            }
            _ if name.starts_with("collector::a") => ".collector_usage",
            _ if name.starts_with("collector::b") => return Some(Field::Buffer),
            _ if name.starts_with("kind::") => ".kind",
            _ if name == "sp" || name.starts_with("sp::") => "sparsity",
            _ if name.starts_with("scale_vec::") => ".scale_vec_size",
            _ if OWN.contains(&name) => return Some(Field::Own(modifier)),
            _ => return GROUPS.iter().find(|group| group.contains(&name)).map(|group| Field::OneOf(group)),
        };
        Some(Field::Kind(kind))
    }

    /// The message of ptxas for the second modifier.
    pub(crate) fn message(self, second: Mod) -> String {
        let second = second.name();
        match self {
            Field::Kind(kind) => format!("Multiple {kind} modifiers specified"),
            Field::Comparison => "Multiple comparisons set".into(),
            Field::Buffer => "Multiple .collector_usage modifiers specified".into(),
            Field::Operation => "Multiple instruction post-operation flags set".into(),
            Field::Own(_) if matches!(second, "L1" | "L2" | "tensormap") => {
                "Multiple cache operation modifiers specified".into()
            }
            Field::OneOf(_) | Field::Own(_) => format!("Multiple .{second} modifiers specified"),
            Field::Order | Field::Twice(_) => format!("Duplicate .{second} modifier"),
        }
    }
}

/// `.m16n8k16`, and the shapes of tensor memory: `.32x32b`.
pub(crate) fn is_matrix_shape(name: &str) -> bool {
    let digit_behind =
        |c: char| name.strip_prefix(c).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    digit_behind('m')
        || name.starts_with(|c: char| c.is_ascii_digit()) && name.contains('x') && name.contains('b')
}

/// Groups of modifiers. ptxas keeps one modifier of each group, and has no name for the group.
const GROUPS: &[&[&str]] = &[
    &["alias", "async"],
    &["alloc", "cp", "dealloc", "ld", "mma", "shift", "st"],
    &["async::generic", "fabric::generic", "generic::fabric", "tensormap::generic"],
    &[
        "box_dim",
        "element_stride",
        "elemtype",
        "fill_mode",
        "global_address",
        "global_dim",
        "global_stride",
        "interleave_layout",
        "rank",
        "swizzle_atomicity",
        "swizzle_mode",
    ],
    &[
        "bulk_group",
        "mbarrier",
        "mbarrier::arrive::one",
        "mbarrier::complete_tx::16B",
        "mbarrier::complete_tx::bytes",
    ],
    &["cta_group::1", "cta_group::2"],
    &["get_first_ctaid", "get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z", "is_canceled"],
    &["layout::v0", "layout::v1"],
    &[
        "mbarrier::report::disabled",
        "mbarrier::report::validity::per_16bytes::8",
        "mbarrier::report::validity::per_16bytes::80",
        "mbarrier::report::validity::per_16bytes::8000",
        "mbarrier::report::validity::per_16bytes::80000000",
        "mbarrier::report::validity::per_element::ff",
    ],
    &["multicast::cluster", "multicast::cluster::16b", "multicast::cluster::32b", "multicast::cluster::all"],
    &["pack::16b", "unpack::16b"],
    &["phase_type::conditional", "phase_type::primary"],
    &["scaled::n1::ue8m0", "scaled::n2::ue8m0"],
    &[
        "sync_restrict::read",
        "sync_restrict::reads",
        "sync_restrict::shared::cluster",
        "sync_restrict::shared::cta",
    ],
    &["warpx2::01_23", "warpx2::02_13", "warpx4"],
];

/// Modifiers that are the only ones of their field.
const OWN: &[&str] = &[
    "L1",
    "L2",
    "L2::cache_hint",
    "abs",
    "aligned",
    "ashift",
    "b1024",
    "block_scale",
    "counted::bytes",
    "cp_mask",
    "down",
    "exclusive",
    "ignore_oob",
    "mbarrier::report::fabric",
    "mbarrier_init",
    "mmio",
    "multimem",
    "noComplete",
    "no_membermask_overlap",
    "noinc",
    "op_restrict::fetching",
    "proxy::readonly",
    "pzo",
    "read",
    "tensormap",
    "trans",
    "xorsign",
];
