//! Matrices in shared memory that `wgmma` and `tcgen05` read: the address of each of their 16-byte units.
//!
//! PTX ISA, "Shared Memory Matrix Layout", "Matrix Descriptor Format", "Shared Memory Descriptor" (9.7.16.4.1). The
//! manual shows the strides' meaning in figures; the one for each swizzle mode here is that of CUTLASS
//! (`make_gmma_desc`, `make_umma_desc`).

/// A matrix descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    start: u64,
    /// Leading-dimension and stride-dimension byte offsets.
    leading: u64,
    stride: u64,
    /// The offset of the repeating pattern, in rows of 128 bytes.
    base_offset: u64,
    /// Units of 16 bytes in a row of the pattern: 1 (no swizzle), 2, 4 or 8.
    width: u64,
    /// Units that the swizzle moves together: 1, or 2 for the 128-byte swizzle with 32-byte atoms.
    atom: u64,
}

impl Descriptor {
    /// Decodes the 64 bits.
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

    /// Decodes the 64 bits as `tcgen05` does; `None` for invalid swizzle modes. *Not here*: the leading dimension as
    /// an address.
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

    /// The swizzle has 32-byte atoms, which only matrices across k may have.
    pub fn has_wide_atoms(self) -> bool {
        self.atom > 1
    }

    /// The address of unit `unit` along k of a line: a row of A or a column of B. Lines form groups of 8.
    #[inline]
    pub fn along_k(self, line: usize, unit: usize) -> u64 {
        self.in_group(line / 8, line % 8, unit)
    }

    /// The same for all lines of a group.
    #[inline]
    pub fn group_along_k(self, group: usize, unit: usize) -> [u64; 8] {
        if self.width == 1 {
            // The lines are contiguous.
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

    /// Splits a unit index into the index within the width, and the number of widths before it.
    #[inline]
    fn split(self, unit: u64) -> (u64, u64) {
        // The width is a power of two.
        (unit & (self.width - 1), unit >> self.width.trailing_zeros())
    }

    /// The same for a transposed matrix: unit `unit` along a column of A or a row of B, with index `k`. The indices
    /// along k form groups of 8, or of 4 with wide atoms.
    #[inline]
    pub fn across_k(self, unit: usize, k: usize) -> u64 {
        // All are powers of two: shifts avoid slow divisions.
        let (unit, k, group) = (unit as u64, k as u64, 3 - self.atom.trailing_zeros());
        let (unit, row) = self.split(unit);
        // Without a swizzle the two offsets swap roles.
        let (along, across) =
            if self.width == 1 { (self.leading, self.stride) } else { (self.stride, self.leading) };
        let within = k & ((1 << group) - 1);
        self.address(within * self.width + unit, (k >> group) * along + row * across)
    }

    /// The swizzle permutes units by the address bits above its 128 bytes.
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

    /// The lines of a group have ascending addresses, each equal to the line's own address. A check of the first and
    /// the last is therefore enough.
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
