//! Loads of neighbouring elements become one load, with one check.
//!
//! Structures and rows of a table are read so: `ld.f32 %a, [%p]; ld.f32 %b, [%p+4];` and so on. To check an address of each lane takes
//! about as long as to load from it, and elements that lie side by side for all lanes are loaded as whole vectors. Where one of the
//! elements may not be loaded, the interpreter goes on before the first of them, and tells which.
//!
//! Narrowest test: `ptxvm/tests/native`, `neighbours`.

use std::collections::BTreeSet;

use ir::{MOST_BETWEEN, MOST_JOINED, Slot};
use isa::Space;

use crate::loops;
use crate::operation::Operation;

/// Joins loads of a basic block. Those that others do already have no elements any more, but still read their addresses: the interpreter
/// may go on between them.
pub(crate) fn join_loads(operations: &mut [Operation], accesses: &mut [loops::Access]) {
    for first in 0..operations.len() {
        while let Some(next) = neighbour(operations, first, accesses) {
            let Operation::Load { access: other, dst: others, .. } = &mut operations[next] else { continue };
            let (count, others) = (std::mem::take(&mut other.count), std::mem::take(others));
            let Operation::Load { access, dst, .. } = &mut operations[first] else { continue };
            access.count += count;
            dst.extend(others);
            accesses[access.index].bytes = u64::from(access.bytes * access.count);
        }
    }
}

/// A load behind this one that goes on where it ends, and may come before what stands between.
fn neighbour(operations: &[Operation], first: usize, accesses: &[loops::Access]) -> Option<usize> {
    let Operation::Load { access, signed, dst, guard } = &operations[first] else { return None };
    let mut between: BTreeSet<Slot> = dst.iter().flatten().copied().collect();
    // The elements of local memory do not follow each other.
    if access.count == 0 || between.contains(&access.base) || accesses[access.index].space == Space::Local {
        return None;
    }
    let end = access.offset + i64::from(access.bytes * access.count);
    let kind = |index: usize| (accesses[index].space, accesses[index].align);
    for (at, operation) in operations.iter().enumerate().skip(first + 1).take(MOST_BETWEEN) {
        if let Operation::Load { access: other, signed: as_signed, dst, guard: as_guarded } = operation
            && (other.base, other.offset, other.bytes) == (access.base, end, access.bytes)
            && (other.checked, as_signed, as_guarded) == (access.checked, signed, guard)
            && (kind(other.index), other.within) == (kind(access.index), access.within)
            && (1..=MOST_JOINED - access.count).contains(&other.count)
            && dst.iter().flatten().all(|slot| !between.contains(slot) && *slot != access.base)
        {
            return Some(at);
        }
        let changes = |slot: Slot| operation.defs().contains(&slot);
        if operation.writes() || changes(access.base) || guard.is_some_and(|guard| changes(guard.slot)) {
            return None;
        }
        between.extend(operation.uses());
        between.extend(operation.defs());
    }
    None
}
