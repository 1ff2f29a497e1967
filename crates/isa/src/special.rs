//! Special registers (PTX ISA, "Special Registers").

use crate::{Gate, Requirement, Stage, Target, Type, Version};

/// A special register, with its component: `%laneid`, `%tid.x`. It is small and cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpecialRegister(u8);

impl std::fmt::Debug for SpecialRegister {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The value of a special register, as an engine must provide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // most are the register of that name
pub enum SpecialValue {
    /// `%tid`, by axis. The same holds for the others that have an axis.
    Tid(usize),
    Ntid(usize),
    Ctaid(usize),
    Nctaid(usize),
    Clusterid(usize),
    Nclusterid(usize),
    ClusterCtaid(usize),
    ClusterNctaid(usize),
    /// The fourth component of any of these, which is zero.
    Fourth,
    ClusterCtarank,
    ClusterNctarank,
    IsExplicitCluster,
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    /// The cycle counter `%clock64`; `%clock` is its low half.
    Clock,
    /// The high half of the cycle counter.
    ClockHigh,
    /// `%globaltimer`; `%globaltimer_lo` is its low half.
    Nanoseconds,
    /// The high half of `%globaltimer`.
    NanosecondsHigh,
    /// A performance counter: `%pm0`, `%pm0_64`.
    Counter,
    /// `%envreg0` and the like, by number. The driver defines them.
    Envreg(u8),
    /// Start of the shared memory reserved for the system: `%reserved_smem_offset_begin`, `_0`.
    ReservedShared,
    /// Start of the program's part of the reserved shared memory: `%reserved_smem_offset_1`.
    ReservedSharedOfUser,
    /// End of the reserved shared memory: `%reserved_smem_offset_end`, `_cap`.
    ReservedSharedEnd,
    TotalSmemSize,
    AggrSmemSize,
    DynamicSmemSize,
    CurrentGraphExec,
    LocalityDomainId,
    LocalityDomainSupplementalSm,
    /// Size in bytes of the memory that each CTA has for itself (`.minperctamemory`).
    Perctamemorysize,
    /// Generic address of the memory that each CTA has for itself.
    Perctamemoryoffset,
}

impl SpecialValue {
    /// Whether it can differ from read to read.
    pub fn is_clock(self) -> bool {
        use SpecialValue::{Clock, ClockHigh, Nanoseconds, NanosecondsHigh};
        matches!(self, Clock | ClockHigh | Nanoseconds | NanosecondsHigh)
    }
}

/// The properties of one register.
struct Row {
    name: &'static str,
    value: SpecialValue,
    ty: Type,
    gates: &'static [Gate],
}

/// One row of the list below: name, value, type, first version, first target, and the name in messages.
macro_rules! row {
    ($name:expr, $value:expr, $ty:ident) => {
        Row { name: $name, value: $value, ty: Type::$ty, gates: &[] }
    };
    ($name:expr, $value:expr, $ty:ident, $feature:expr, ptx $major:literal . $minor:literal $(, sm $sm:literal)?) => {
        Row {
            name: $name,
            value: $value,
            ty: Type::$ty,
            gates: &[
                Gate {
                    subject: concat!("Feature '", $feature, "'"),
                    requires: Requirement::Version(Version::new($major, $minor)),
                    stage: Stage::Token,
                },
                $(Gate {
                    subject: concat!("Feature '", $feature, "'"),
                    requires: Requirement::Target(&[Target::sm($sm)]),
                    stage: Stage::Token,
                },)?
            ],
        }
    };
}

/// Concatenates rows: scalar registers, registers with four components, and numbered ones.
macro_rules! rows {
    (
        scalars { $($name:literal $value:ident $(($number:literal))? $ty:ident $(ptx $major:literal . $minor:literal $(sm $sm:literal)?)?;)* }
        vectors { $($vector:literal $element:ident $(ptx $vmajor:literal . $vminor:literal $(sm $vsm:literal)?)?;)* }
    ) => {
        const ROWS: &[Row] = &[
            $(row!($name, SpecialValue::$value $(($number))?, $ty $(, $name, ptx $major . $minor $(, sm $sm)?)?),)*
            $(
                row!(concat!($vector, ".x"), SpecialValue::$element(0), U32 $(, $vector, ptx $vmajor . $vminor $(, sm $vsm)?)?),
                row!(concat!($vector, ".y"), SpecialValue::$element(1), U32 $(, $vector, ptx $vmajor . $vminor $(, sm $vsm)?)?),
                row!(concat!($vector, ".z"), SpecialValue::$element(2), U32 $(, $vector, ptx $vmajor . $vminor $(, sm $vsm)?)?),
                row!(concat!($vector, ".w"), SpecialValue::Fourth, U32 $(, $vector, ptx $vmajor . $vminor $(, sm $vsm)?)?),
            )*
        ];
    };
}

rows! {
    scalars {
        "%laneid" Laneid U32 ptx 1 . 3;
        "%warpid" Warpid U32 ptx 1 . 3;
        "%nwarpid" Nwarpid U32 ptx 2 . 0 sm 20;
        "%smid" Smid U32 ptx 1 . 3;
        "%nsmid" Nsmid U32 ptx 2 . 0 sm 20;
        "%gridid" Gridid U64;
        "%is_explicit_cluster" IsExplicitCluster Pred ptx 7 . 8 sm 90;
        "%cluster_ctarank" ClusterCtarank U32 ptx 7 . 8 sm 90;
        "%cluster_nctarank" ClusterNctarank U32 ptx 7 . 8 sm 90;
        "%lanemask_eq" LanemaskEq U32 ptx 2 . 0 sm 20;
        "%lanemask_le" LanemaskLe U32 ptx 2 . 0 sm 20;
        "%lanemask_lt" LanemaskLt U32 ptx 2 . 0 sm 20;
        "%lanemask_ge" LanemaskGe U32 ptx 2 . 0 sm 20;
        "%lanemask_gt" LanemaskGt U32 ptx 2 . 0 sm 20;
        "%clock" Clock U32;
        "%clock_hi" ClockHigh U32 ptx 5 . 0 sm 20;
        "%clock64" Clock U64 ptx 2 . 0 sm 20;
        "%pm0" Counter U32 ptx 1 . 3;
        "%pm1" Counter U32 ptx 1 . 3;
        "%pm2" Counter U32 ptx 1 . 3;
        "%pm3" Counter U32 ptx 1 . 3;
        "%pm4" Counter U32 ptx 3 . 0 sm 20;
        "%pm5" Counter U32 ptx 3 . 0 sm 20;
        "%pm6" Counter U32 ptx 3 . 0 sm 20;
        "%pm7" Counter U32 ptx 3 . 0 sm 20;
        "%pm0_64" Counter U64 ptx 4 . 0 sm 50;
        "%pm1_64" Counter U64 ptx 4 . 0 sm 50;
        "%pm2_64" Counter U64 ptx 4 . 0 sm 50;
        "%pm3_64" Counter U64 ptx 4 . 0 sm 50;
        "%pm4_64" Counter U64 ptx 4 . 0 sm 50;
        "%pm5_64" Counter U64 ptx 4 . 0 sm 50;
        "%pm6_64" Counter U64 ptx 4 . 0 sm 50;
        "%pm7_64" Counter U64 ptx 4 . 0 sm 50;
        "%envreg0" Envreg(0) B32;
        "%envreg1" Envreg(1) B32;
        "%envreg2" Envreg(2) B32;
        "%envreg3" Envreg(3) B32;
        "%envreg4" Envreg(4) B32;
        "%envreg5" Envreg(5) B32;
        "%envreg6" Envreg(6) B32;
        "%envreg7" Envreg(7) B32;
        "%envreg8" Envreg(8) B32;
        "%envreg9" Envreg(9) B32;
        "%envreg10" Envreg(10) B32;
        "%envreg11" Envreg(11) B32;
        "%envreg12" Envreg(12) B32;
        "%envreg13" Envreg(13) B32;
        "%envreg14" Envreg(14) B32;
        "%envreg15" Envreg(15) B32;
        "%envreg16" Envreg(16) B32;
        "%envreg17" Envreg(17) B32;
        "%envreg18" Envreg(18) B32;
        "%envreg19" Envreg(19) B32;
        "%envreg20" Envreg(20) B32;
        "%envreg21" Envreg(21) B32;
        "%envreg22" Envreg(22) B32;
        "%envreg23" Envreg(23) B32;
        "%envreg24" Envreg(24) B32;
        "%envreg25" Envreg(25) B32;
        "%envreg26" Envreg(26) B32;
        "%envreg27" Envreg(27) B32;
        "%envreg28" Envreg(28) B32;
        "%envreg29" Envreg(29) B32;
        "%envreg30" Envreg(30) B32;
        "%envreg31" Envreg(31) B32;
        "%globaltimer" Nanoseconds U64 ptx 3 . 1 sm 30;
        "%globaltimer_lo" Nanoseconds U32 ptx 3 . 1 sm 30;
        "%globaltimer_hi" NanosecondsHigh U32 ptx 3 . 1 sm 30;
        "%reserved_smem_offset_begin" ReservedShared B32 ptx 7 . 6 sm 80;
        "%reserved_smem_offset_end" ReservedSharedEnd B32 ptx 7 . 6 sm 80;
        "%reserved_smem_offset_cap" ReservedSharedEnd B32 ptx 7 . 6 sm 80;
        "%reserved_smem_offset_0" ReservedShared B32 ptx 7 . 6 sm 80;
        "%reserved_smem_offset_1" ReservedSharedOfUser B32 ptx 7 . 6 sm 80;
        "%total_smem_size" TotalSmemSize U32 ptx 4 . 1 sm 20;
        "%aggr_smem_size" AggrSmemSize U32 ptx 8 . 1 sm 90;
        "%dynamic_smem_size" DynamicSmemSize U32 ptx 4 . 1 sm 20;
        "%current_graph_exec" CurrentGraphExec U64 ptx 8 . 0 sm 50;
        "%locality_domain_id" LocalityDomainId U32 ptx 9 . 5 sm 100;
        "%locality_domain_supplemental_sm" LocalityDomainSupplementalSm U32 ptx 9 . 5 sm 100;
        "%perctamemorysize" Perctamemorysize U32 ptx 9 . 4 sm 80;
        "%perctamemoryoffset" Perctamemoryoffset U64 ptx 9 . 4 sm 80;
    }
    vectors {
        "%tid" Tid;
        "%ntid" Ntid;
        "%ctaid" Ctaid;
        "%nctaid" Nctaid;
        "%clusterid" Clusterid ptx 7 . 8 sm 90;
        "%nclusterid" Nclusterid ptx 7 . 8 sm 90;
        "%cluster_ctaid" ClusterCtaid ptx 7 . 8 sm 90;
        "%cluster_nctaid" ClusterNctaid ptx 7 . 8 sm 90;
    }
}

impl SpecialRegister {
    /// Every special register, each component separately.
    pub fn all() -> impl Iterator<Item = SpecialRegister> {
        (0..ROWS.len() as u8).map(SpecialRegister)
    }

    /// The register with this name: `%laneid`, `%tid.x`.
    pub fn from_name(name: &str) -> Option<SpecialRegister> {
        SpecialRegister::all().find(|register| register.name() == name)
    }

    /// Component `.x`, `.y`, `.z` or `.w` (counted from 0) of a register with four components: component 0 of `%tid`
    /// is `%tid.x`.
    pub fn element(name: &str, index: usize) -> Option<SpecialRegister> {
        let component = *["x", "y", "z", "w"].get(index)?;
        SpecialRegister::all().find(|register| register.name().split_once('.') == Some((name, component)))
    }

    /// Its value.
    pub fn value(self) -> SpecialValue {
        self.row().value
    }

    fn row(self) -> &'static Row {
        &ROWS[self.0 as usize]
    }

    /// The name with its component: `%tid.x`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The type of its value. `%gridid` is 64 bits wide, and can be read as 16 or 32 bits too.
    pub fn ty(self) -> Type {
        self.row().ty
    }

    /// May an instruction of this type read it? `%tid` and the like had 16 bits in PTX 1.x and can still be read so.
    pub fn readable_as(self, ty: Type) -> bool {
        let narrow = self.name() == "%gridid"
            || ["%tid.", "%ntid.", "%ctaid.", "%nctaid."]
                .iter()
                .any(|vector| self.name().starts_with(vector));
        if self.ty() == Type::Pred || ty == Type::Pred || ty.is_float() {
            return self.ty() == ty;
        }
        ty.bits() == self.ty().bits() || (narrow && (16..self.ty().bits()).contains(&ty.bits()))
    }

    /// Its meaning, in a few words.
    pub fn meaning(self) -> &'static str {
        use SpecialValue as Value;
        match self.value() {
            Value::Tid(_) => "index of the thread in its block",
            Value::Ntid(_) => "extent of the block, in threads",
            Value::Ctaid(_) => "index of the block in the grid",
            Value::Nctaid(_) => "extent of the grid, in blocks",
            Value::Clusterid(_) => "index of the cluster in the grid",
            Value::Nclusterid(_) => "extent of the grid, in clusters",
            Value::ClusterCtaid(_) => "index of the block in its cluster",
            Value::ClusterNctaid(_) => "extent of the cluster, in blocks",
            Value::Fourth => "zero: there are three axes",
            Value::ClusterCtarank => "number of the block in its cluster",
            Value::ClusterNctarank => "number of blocks in the cluster",
            Value::IsExplicitCluster => "was the kernel launched with clusters?",
            Value::Laneid => "number of the thread in its warp, from 0 to 31",
            Value::Warpid => "number of the warp in its multiprocessor; it may change",
            Value::Nwarpid => "most warps of a multiprocessor",
            Value::Smid => "number of the multiprocessor; it may change",
            Value::Nsmid => "greatest number of a multiprocessor, plus one or more",
            Value::Gridid => "number of the launch",
            Value::LanemaskEq => "mask with the bit of this lane",
            Value::LanemaskLe => "mask of this lane and those below it",
            Value::LanemaskLt => "mask of the lanes below this one",
            Value::LanemaskGe => "mask of this lane and those above it",
            Value::LanemaskGt => "mask of the lanes above this one",
            Value::Clock => "counter of cycles, from its lowest bit on",
            Value::ClockHigh => "upper half of the counter of cycles",
            Value::Nanoseconds => {
                "nanoseconds of a clock that all multiprocessors share, from the lowest bit on"
            }
            Value::NanosecondsHigh => "upper half of that clock in nanoseconds",
            Value::Counter => "counter for measurements of performance, which a tool sets up",
            Value::Envreg(_) => "what the driver passes to the kernel",
            Value::ReservedShared => "start of the shared memory that is reserved for the system",
            Value::ReservedSharedOfUser => "start of the program's part of the reserved shared memory",
            Value::ReservedSharedEnd => "end of the reserved shared memory",
            Value::TotalSmemSize => "shared memory of a block in bytes, without what is reserved",
            Value::AggrSmemSize => "shared memory of a block in bytes, with what is reserved",
            Value::DynamicSmemSize => "shared memory in bytes that the launch gives to a block",
            Value::CurrentGraphExec => "the graph that launched the kernel on the device, or 0",
            Value::LocalityDomainId => "number of the locality domain of the multiprocessor",
            Value::LocalityDomainSupplementalSm => {
                "is the multiprocessor an additional one of its locality domain?"
            }
            Value::Perctamemorysize => "size in bytes of the memory that each block has for itself",
            Value::Perctamemoryoffset => "address of the memory that each block has for itself",
        }
    }

    /// Its requirements on `.version` and `.target`.
    pub fn gates(self) -> &'static [Gate] {
        self.row().gates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for register in SpecialRegister::all() {
            assert_eq!(SpecialRegister::from_name(register.name()), Some(register));
        }
        assert_eq!(SpecialRegister::element("%tid", 1).map(SpecialRegister::name), Some("%tid.y"));
        assert_eq!(SpecialRegister::element("%laneid", 0), None);
        assert_eq!(SpecialRegister::from_name("%tid"), None);
    }

    #[test]
    fn old_registers_read_as_16_bits() {
        let readable = |name, ty| SpecialRegister::from_name(name).is_some_and(|r| r.readable_as(ty));
        assert!(readable("%tid.x", Type::U16) && readable("%tid.x", Type::S32));
        assert!(!readable("%laneid", Type::U16) && !readable("%tid.x", Type::U64));
        assert!(readable("%gridid", Type::U32) && readable("%gridid", Type::U64));
        assert!(readable("%is_explicit_cluster", Type::Pred) && !readable("%clock", Type::F32));
    }
}
