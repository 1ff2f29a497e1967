//! Matrices in shared memory that `wgmma` and `tcgen05` read: where each 16 bytes of them stand.
//!
//! PTX ISA, "Shared Memory Matrix Layout", "Matrix Descriptor Format", "Shared Memory Descriptor" (9.7.16.4.1). The strides' meaning under
//! each swizzle mode is that of CUTLASS (`make_gmma_desc`, `make_umma_desc`), where the manual has figures.

/// A matrix descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    start: u64,
    /// Leading-dimension and stride-dimension byte offsets.
    leading: u64,
    stride: u64,
    /// Rows of 128 bytes by which the repeating pattern starts too late.
    base_offset: u64,
    /// Units of 16 bytes in a row of the pattern: 1 (no swizzle), 2, 4 or 8.
    width: u64,
    /// Units that the swizzle moves together: 1, or 2 in 128 bytes.
    atom: u64,
}

impl Descriptor {
    /// What the 64 bits mean.
    pub fn new(bits: u64) -> Descriptor {
        let field = |at: u32| (bits >> at & 0x3fff) << 4;
        Descriptor {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base_offset: bits >> 49 & 7,
            width: [1, 8, 4, 2][(bits >> 62) as usize],
            atom: 1,
        }
    }

    /// What the 64 bits mean to `tcgen05`; `None` for swizzle modes that there are not. *Not here*: the leading dimension as an address.
    pub fn of_tensor_core(bits: u64) -> Option<Descriptor> {
        let (width, atom) = match bits >> 61 {
            0 => (1, 1),
            1 => (8, 2),
            2 => (8, 1),
            4 => (4, 1),
            6 => (2, 1),
            _ => return None,
        };
        Some(Descriptor { width, atom, ..Descriptor::new(bits) })
    }

    /// Swizzled by 32 bytes, which only matrices across k are.
    pub fn has_wide_atoms(self) -> bool {
        self.atom > 1
    }

    /// The address of unit `unit` along k of a line: a row of A or a column of B. Lines come in groups of 8.
    #[inline]
    pub fn along_k(self, line: usize, unit: usize) -> u64 {
        self.in_group(line / 8, line % 8, unit)
    }

    /// The same of all lines of a group.
    #[inline]
    pub fn group_along_k(self, group: usize, unit: usize) -> [u64; 8] {
        if self.width == 1 {
            // They stand together.
            let first = self.in_group(group, 0, unit);
            return std::array::from_fn(|line| first + line as u64 * 16);
        }
        std::array::from_fn(|line| self.in_group(group, line, unit))
    }

    #[inline]
    fn in_group(self, group: usize, line: usize, unit: usize) -> u64 {
        let (unit, row) = self.split(unit as u64);
        self.address(line as u64 * self.width + unit, group as u64 * self.stride + row * self.leading)
    }

    /// A number of units, as one within the width, and how many widths lie before it.
    #[inline]
    fn split(self, unit: u64) -> (u64, u64) {
        // It is a power of two.
        (unit & (self.width - 1), unit >> self.width.trailing_zeros())
    }

    /// The same of a transposed matrix: unit `unit` along a column of A or a row of B, which is number `k`. What is
    /// along k comes in groups of 8, of 4 where atoms are wide.
    #[inline]
    pub fn across_k(self, unit: usize, k: usize) -> u64 {
        // All are powers of two, and divisions take long.
        let (unit, k, group) = (unit as u64, k as u64, 3 - self.atom.trailing_zeros());
        let (unit, row) = self.split(unit);
        // Without a swizzle the offsets change places.
        let (along, across) =
            if self.width == 1 { (self.leading, self.stride) } else { (self.stride, self.leading) };
        let within = k & ((1 << group) - 1);
        self.address(within * self.width + unit, (k >> group) * along + row * across)
    }

    /// The swizzle exchanges units by the bits of the address above its 128 bytes.
    #[inline]
    fn address(self, units: u64, bytes: u64) -> u64 {
        let address = self.start + units * 16 + bytes;
        let row = (address >> 7).wrapping_sub(self.base_offset);
        let atom = self.atom.trailing_zeros();
        address ^ (row & ((self.width >> atom) - 1)) << (4 + atom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a group have the addresses that each has by itself, one after the other: whoever checks the first and the last has
    /// checked all.
    #[test]
    fn groups_are_sorted() {
        let mut bits = 1u64;
        for turn in 0..100_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (descriptor, group, unit) = (Descriptor::new(bits ^ bits >> 32), turn % 32, turn / 32 % 16);
            let along = descriptor.group_along_k(group, unit);
            assert!(along.is_sorted(), "{descriptor:?}");
            assert_eq!(along, std::array::from_fn(|line| descriptor.along_k(group * 8 + line, unit)));
            let across: [u64; 8] = std::array::from_fn(|k| descriptor.across_k(unit, group * 8 + k));
            assert!(across.is_sorted(), "{descriptor:?}");
        }
    }
}
