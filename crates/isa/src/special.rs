//! Special registers (PTX ISA, "Special Registers").

use crate::{Gate, Requirement, Stage, Target, Type, Version};

/// A special register, its component included: `%laneid`, `%tid.x`. Small and cheap to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpecialRegister(u8);

/// What is known of one register.
struct Row {
    name: &'static str,
    ty: Type,
    gates: &'static [Gate],
}

/// One row of the list below: name, type, first version, first target, and the name in messages.
macro_rules! row {
    ($name:expr, $ty:ident) => {
        Row { name: $name, ty: Type::$ty, gates: &[] }
    };
    ($name:expr, $ty:ident, $feature:expr, ptx $major:literal . $minor:literal $(, sm $sm:literal)?) => {
        Row {
            name: $name,
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

/// The rows: registers of one element, registers of four, and numbered ones.
macro_rules! rows {
    (
        scalars { $($name:literal $ty:ident $(ptx $major:literal . $minor:literal $(sm $sm:literal)?)?;)* }
        vectors { $($vector:literal $(ptx $vmajor:literal . $vminor:literal $(sm $vsm:literal)?)?;)* }
    ) => {
        const ROWS: &[Row] = &[
            $(row!($name, $ty $(, $name, ptx $major . $minor $(, sm $sm)?)?),)*
            $(
                row!(concat!($vector, ".x"), U32 $(, $vector, ptx $vmajor . $vminor $(, sm $vsm)?)?),
                row!(concat!($vector, ".y"), U32 $(, $vector, ptx $vmajor . $vminor $(, sm $vsm)?)?),
                row!(concat!($vector, ".z"), U32 $(, $vector, ptx $vmajor . $vminor $(, sm $vsm)?)?),
                row!(concat!($vector, ".w"), U32 $(, $vector, ptx $vmajor . $vminor $(, sm $vsm)?)?),
            )*
        ];
    };
}

rows! {
    scalars {
        "%laneid" U32 ptx 1 . 3;
        "%warpid" U32 ptx 1 . 3;
        "%nwarpid" U32 ptx 2 . 0 sm 20;
        "%smid" U32 ptx 1 . 3;
        "%nsmid" U32 ptx 2 . 0 sm 20;
        "%gridid" U64;
        "%is_explicit_cluster" Pred ptx 7 . 8 sm 90;
        "%cluster_ctarank" U32 ptx 7 . 8 sm 90;
        "%cluster_nctarank" U32 ptx 7 . 8 sm 90;
        "%lanemask_eq" U32 ptx 2 . 0 sm 20;
        "%lanemask_le" U32 ptx 2 . 0 sm 20;
        "%lanemask_lt" U32 ptx 2 . 0 sm 20;
        "%lanemask_ge" U32 ptx 2 . 0 sm 20;
        "%lanemask_gt" U32 ptx 2 . 0 sm 20;
        "%clock" U32;
        "%clock_hi" U32 ptx 5 . 0 sm 20;
        "%clock64" U64 ptx 2 . 0 sm 20;
        "%pm0" U32 ptx 1 . 3;
        "%pm1" U32 ptx 1 . 3;
        "%pm2" U32 ptx 1 . 3;
        "%pm3" U32 ptx 1 . 3;
        "%pm4" U32 ptx 3 . 0 sm 20;
        "%pm5" U32 ptx 3 . 0 sm 20;
        "%pm6" U32 ptx 3 . 0 sm 20;
        "%pm7" U32 ptx 3 . 0 sm 20;
        "%pm0_64" U64 ptx 4 . 0 sm 50;
        "%pm1_64" U64 ptx 4 . 0 sm 50;
        "%pm2_64" U64 ptx 4 . 0 sm 50;
        "%pm3_64" U64 ptx 4 . 0 sm 50;
        "%pm4_64" U64 ptx 4 . 0 sm 50;
        "%pm5_64" U64 ptx 4 . 0 sm 50;
        "%pm6_64" U64 ptx 4 . 0 sm 50;
        "%pm7_64" U64 ptx 4 . 0 sm 50;
        "%envreg0" B32;
        "%envreg1" B32;
        "%envreg2" B32;
        "%envreg3" B32;
        "%envreg4" B32;
        "%envreg5" B32;
        "%envreg6" B32;
        "%envreg7" B32;
        "%envreg8" B32;
        "%envreg9" B32;
        "%envreg10" B32;
        "%envreg11" B32;
        "%envreg12" B32;
        "%envreg13" B32;
        "%envreg14" B32;
        "%envreg15" B32;
        "%envreg16" B32;
        "%envreg17" B32;
        "%envreg18" B32;
        "%envreg19" B32;
        "%envreg20" B32;
        "%envreg21" B32;
        "%envreg22" B32;
        "%envreg23" B32;
        "%envreg24" B32;
        "%envreg25" B32;
        "%envreg26" B32;
        "%envreg27" B32;
        "%envreg28" B32;
        "%envreg29" B32;
        "%envreg30" B32;
        "%envreg31" B32;
        "%globaltimer" U64 ptx 3 . 1 sm 30;
        "%globaltimer_lo" U32 ptx 3 . 1 sm 30;
        "%globaltimer_hi" U32 ptx 3 . 1 sm 30;
        "%reserved_smem_offset_begin" B32 ptx 7 . 6 sm 80;
        "%reserved_smem_offset_end" B32 ptx 7 . 6 sm 80;
        "%reserved_smem_offset_cap" B32 ptx 7 . 6 sm 80;
        "%reserved_smem_offset_0" B32 ptx 7 . 6 sm 80;
        "%reserved_smem_offset_1" B32 ptx 7 . 6 sm 80;
        "%total_smem_size" U32 ptx 4 . 1 sm 20;
        "%aggr_smem_size" U32 ptx 8 . 1 sm 90;
        "%dynamic_smem_size" U32 ptx 4 . 1 sm 20;
        "%current_graph_exec" U64 ptx 8 . 0 sm 50;
    }
    vectors {
        "%tid";
        "%ntid";
        "%ctaid";
        "%nctaid";
        "%clusterid" ptx 7 . 8 sm 90;
        "%nclusterid" ptx 7 . 8 sm 90;
        "%cluster_ctaid" ptx 7 . 8 sm 90;
        "%cluster_nctaid" ptx 7 . 8 sm 90;
    }
}

impl SpecialRegister {
    /// Every special register, each component on its own.
    pub fn all() -> impl Iterator<Item = SpecialRegister> {
        (0..ROWS.len() as u8).map(SpecialRegister)
    }

    /// The register with this name: `%laneid`, `%tid.x`.
    pub fn from_name(name: &str) -> Option<SpecialRegister> {
        SpecialRegister::all().find(|register| register.name() == name)
    }

    /// The element `.x`, `.y`, `.z` or `.w` (counted from 0) of a register of four elements: of `%tid`, element 0 is `%tid.x`.
    pub fn element(name: &str, index: usize) -> Option<SpecialRegister> {
        let component = *["x", "y", "z", "w"].get(index)?;
        SpecialRegister::all().find(|register| register.name().split_once('.') == Some((name, component)))
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

    /// May an instruction of this type read it? `%tid` and its kin were 16 bits wide in PTX 1.x and can still be read so.
    pub fn readable_as(self, ty: Type) -> bool {
        let narrow = self.name().starts_with("%gridid")
            || ["%tid.", "%ntid.", "%ctaid.", "%nctaid."]
                .iter()
                .any(|vector| self.name().starts_with(vector));
        if self.ty() == Type::Pred || ty == Type::Pred || ty.is_float() {
            return self.ty() == ty;
        }
        ty.bits() == self.ty().bits() || (narrow && (16..self.ty().bits()).contains(&ty.bits()))
    }

    /// What it needs of `.version` and `.target`.
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
