//! The layout of shared memory.
//!
//! Gaps between variables belong to no variable, so that an access past the end of a variable faults. The sizes that a
//! kernel sees, and all limits, exclude the gaps.
//!
//! A gap is 128 bytes wide, or less if that leaves no room. In a kernel that reads `%reserved_smem_offset_*`, the first
//! 1 KiB belongs to the system: cooperative groups of more than a warp keep their barriers there. Narrowest tests
//! (`tests/run`): `shared_gaps`, `reserved_shared_memory`.

use check::module::{Module, VarId, Variable};
use isa::Space;

/// Bytes between variables. A layout uses the first of these with which all variables fit.
const GAPS: [u64; 5] = [128, 64, 32, 16, 0];
/// Matrix descriptors can encode addresses below this.
const MOST_SPAN: u64 = 256 * 1024;
/// Alignment of dynamic shared memory, unless a variable requires more.
const DYNAMIC_ALIGN: u64 = 16;

/// Bytes at the start of a block's shared memory that are reserved for the system (PTX ISA,
/// "%reserved_smem_offset_begin"). Cooperative groups of more than a warp keep their barriers there. Kernels that do
/// not read the offset have none.
pub const RESERVED_SHARED_BYTES: u64 = 1024;
/// Start of the reserved part for cooperative groups (`%reserved_smem_offset_1`), which use up to 288 bytes.
pub const RESERVED_FOR_GROUPS: u64 = 512;

/// GPUs allocate shared memory in multiples of this number of bytes, or of a larger one (CUDA Occupancy Calculator,
/// compute capability 8.0 and later).
const GRANULE: u64 = 128;

/// The owner of a part of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedOwner {
    /// A variable.
    Variable(VarId),
    /// Dynamic shared memory.
    Dynamic,
    /// The system: see [`RESERVED_SHARED_BYTES`].
    System,
}

/// A part of shared memory that has an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedExtent {
    /// First address in shared memory.
    pub base: u64,
    /// One past the last.
    pub end: u64,
    /// To whom it belongs.
    pub owner: SharedOwner,
}

/// A variable of shared memory that a kernel needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedVariable {
    id: VarId,
    bytes: u64,
    align: u64,
}

impl SharedVariable {
    /// The shared variables of a module and of the functions that a kernel can reach.
    pub fn used(module: &Module, reached: &[bool]) -> Vec<SharedVariable> {
        let used = |variable: &Variable| variable.function.is_none_or(|f| reached[f.index()]);
        let all = module.variables.iter().enumerate();
        all.filter(|(_, variable)| variable.space == Space::Shared && used(variable))
            .map(|(index, v)| SharedVariable { id: VarId(index as u32), bytes: v.bytes, align: v.align })
            .collect()
    }
}

/// The shared memory of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedLayout {
    /// All parts that have an owner, in ascending order.
    pub extents: Vec<SharedExtent>,
    /// Addresses of the variables.
    pub places: Vec<(VarId, u64)>,
    /// Size without gaps and without reserved bytes.
    pub bytes: u64,
    /// Size with gaps and reserved bytes.
    pub span: u64,
    /// Width of a gap. Together with the variables it determines the layout.
    pub gap: u64,
}

impl SharedLayout {
    /// Places variables after the reserved bytes. Unsized `.extern` variables start where dynamic shared memory does.
    pub(crate) fn new(variables: &[SharedVariable], dynamic: u64, reserved: u64) -> SharedLayout {
        let exact = SharedLayout::with_gaps(variables, dynamic, reserved, 0);
        if exact.extents.len() < 2 {
            return exact;
        }
        let mut all = GAPS.iter().map(|&gap| SharedLayout::with_gaps(variables, dynamic, reserved, gap));
        let bytes = exact.bytes;
        let fitting = all.find(|layout| layout.span <= MOST_SPAN);
        SharedLayout { bytes, ..fitting.unwrap_or(exact) }
    }

    fn with_gaps(variables: &[SharedVariable], dynamic: u64, reserved: u64, gap: u64) -> SharedLayout {
        let mut layout = SharedLayout { gap, ..SharedLayout::default() };
        if reserved > 0 {
            layout.append(SharedOwner::System, reserved, 1);
        }
        let (mut unsized_variables, mut dynamic_align) = (Vec::new(), DYNAMIC_ALIGN);
        for variable in variables {
            let id = variable.id;
            if variable.bytes == 0 {
                dynamic_align = dynamic_align.max(variable.align);
                unsized_variables.push(id);
            } else {
                let base = layout.append(SharedOwner::Variable(id), variable.bytes, variable.align);
                layout.places.push((id, base));
            }
        }
        let start = match dynamic {
            0 => layout.next(0, dynamic_align).0,
            _ => layout.append(SharedOwner::Dynamic, dynamic, dynamic_align),
        };
        layout.places.extend(unsized_variables.into_iter().map(|id| (id, start)));
        layout.bytes = layout.span - reserved;
        layout
    }

    /// Appends a part of `bytes` bytes and returns its address.
    fn append(&mut self, owner: SharedOwner, bytes: u64, align: u64) -> u64 {
        let base;
        (base, self.span) = self.next(bytes, align);
        self.extents.push(SharedExtent { base, end: self.span, owner });
        base
    }

    /// The begin and the end that an appended part would have.
    fn next(&self, bytes: u64, align: u64) -> (u64, u64) {
        let gap = if self.extents.is_empty() { 0 } else { self.gap };
        append(self.span.saturating_add(gap), bytes, align)
    }

    /// Address of a variable, if the kernel needs it.
    #[inline]
    pub fn address(&self, variable: VarId) -> Option<u64> {
        self.places.iter().find(|(id, _)| *id == variable).map(|&(_, address)| address)
    }

    /// The extent at or before an address: the one that contains it, if any does.
    #[inline]
    pub fn find(&self, address: u64) -> Option<&SharedExtent> {
        self.extents.iter().rev().find(|extent| extent.base <= address)
    }

    /// `%total_smem_size`: the size in whole granules, as an H100 tells it.
    #[inline]
    pub fn total(&self) -> u64 {
        self.bytes.next_multiple_of(GRANULE)
    }

    /// The bytes that a GPU allocates: whole granules.
    #[inline]
    pub fn allocated(&self) -> u64 {
        self.span.next_multiple_of(GRANULE)
    }

    /// Whether an access runs over the end of the last part but stays within the bytes that a GPU allocates.
    #[inline]
    pub fn is_overrun(&self, address: u64, bytes: u64) -> bool {
        let start = self.extents.last().map_or(0, |last| last.base);
        let end = address.saturating_add(bytes);
        address >= start && end > self.span && end <= self.allocated()
    }

    /// The extent nearest to an address.
    #[inline]
    pub fn nearest(&self, address: u64) -> Option<&SharedExtent> {
        self.extents.iter().min_by_key(|e| e.base.saturating_sub(address).max(address.saturating_sub(e.end)))
    }
}

/// The begin and the end of `bytes` bytes that are appended at `end`. Sums saturate; every limit refuses the greatest number.
pub(crate) fn append(end: u64, bytes: u64, align: u64) -> (u64, u64) {
    let start = end.checked_next_multiple_of(align.max(1)).unwrap_or(u64::MAX);
    (start, start.saturating_add(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout of variables of these sizes and alignments.
    fn layout(variables: &[(u64, u64)], dynamic: u64) -> SharedLayout {
        let declare = |(i, (bytes, align)): (usize, &(u64, u64))| {
            format!(".shared .align {align} .b8 v{i}[{bytes}];\n")
        };
        let variables: String = variables.iter().enumerate().map(declare).collect();
        let text = format!(".version 8.0\n.target sm_80\n.address_size 64\n{variables}");
        let source = diag::SourceFile::new("test.ptx", text);
        let (tree, parsed) = syntax::parse(&source);
        let (module, _) = check::check(&source, &tree, parsed, &check::Options::default());
        SharedLayout::new(&SharedVariable::used(&module.expect("a module"), &[]), dynamic, 0)
    }

    #[test]
    fn variables_lie_apart_if_there_is_room() {
        let both = layout(&[(16, 4), (16, 4)], 64);
        assert_eq!((both.bytes, both.span), (96, 16 + 128 + 16 + 128 + 64));
        assert_eq!(both.find(15).map(|e| (e.base, e.end)), Some((0, 16)));
        assert_eq!(both.find(16).map(|e| e.end), Some(16));
        assert_eq!(both.nearest(20).unwrap().owner, SharedOwner::Variable(VarId(0)));
        assert_eq!(both.nearest(140).unwrap().owner, SharedOwner::Variable(VarId(1)));
        assert_eq!(both.nearest(1 << 30).unwrap().owner, SharedOwner::Dynamic);
        // A single variable needs no gap. With this alignment there is no room for gaps.
        assert_eq!(layout(&[(100, 4)], 0).span, 100);
        let large = layout(&[(1024, 1024); 220], 0);
        assert_eq!((large.bytes, large.span), (225_280, 225_280));
    }

    #[test]
    fn many_variables_lie_closer() {
        let many = layout(&vec![(232, 4); 1000], 0);
        assert_eq!((many.bytes, many.span), (232_000, 232_000 + 999 * 16));
    }
}
