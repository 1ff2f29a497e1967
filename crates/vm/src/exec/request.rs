//! An access of one lane: what is asked, and where its memory was found.

use diag::Span;
use ir::CheckAlignment;
use isa::Space;
use machine::FaultKind;

use super::addresses::address_of;
use super::{Active, Execute, Gang, Step};
use crate::code::Address;
use crate::shared::Shared;

/// What an access does, for checks and messages.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub space: Space,
    /// Bytes of one lane's access, all elements together.
    pub bytes: u64,
    pub write: bool,
    pub span: Span,
}

/// The memory of one lane's access.
#[derive(Clone, Copy)]
pub(super) enum Resolved {
    Host(*mut u8),
    /// An address in the lane's local memory.
    Local(u64),
}

impl Execute for CheckAlignment<Address> {
    fn execute(&self, gang: &mut Gang, active: &Active, _: &mut Shared, span: Span) -> Step {
        let addresses = gang.addresses(&self.address, active);
        let request = Request { space: self.address.space, bytes: u64::from(self.bytes), write: true, span };
        let all = active.mask.into_iter().map(|lane| (lane, address_of(&addresses, lane)));
        match all.into_iter().find(|(_, address)| !address.is_multiple_of(request.bytes)) {
            Some((lane, address)) => Err(gang.access_fault(FaultKind::Misaligned, &request, lane, address)),
            None => Ok(()),
        }
    }
}
