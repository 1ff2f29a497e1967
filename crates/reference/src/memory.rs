//! State spaces: what an address refers to, and its bytes (PTX ISA, "State Spaces", "Generic Addressing").

use check::module::{AddressBase, Operand, Symbol, VarId};
use isa::Space;
use machine::{Access, Fault, FaultKind, STACK_BASE, resolve, shared_base, shared_rank};

use crate::Step;
use crate::thread::Cpu;

/// An address in a state space.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub space: Space,
    pub at: u64,
}

impl Address {
    /// The address plus this many bytes.
    pub fn offset(self, bytes: u64) -> Address {
        Address { at: self.at.wrapping_add(bytes), ..self }
    }
}

impl Cpu<'_, '_> {
    /// The address of a variable in its state space. For a shared variable, the address in the thread's own CTA.
    fn variable_address(&self, id: VarId) -> u64 {
        let launch = self.cta.launch;
        let is_shared = launch.module().variables[id.index()].space == Space::Shared;
        launch.variable_address(id) + if is_shared { shared_base(self.cta.rank) } else { 0 }
    }

    /// The state space and address of a symbol.
    pub fn symbol(&self, symbol: Symbol) -> Address {
        let (code, base) = (self.code(), self.frame().base);
        let local = |offset: u64| Address { space: Space::Local, at: base + offset };
        match symbol {
            Symbol::Variable(id) => match code.variables.get(&id) {
                Some(&offset) => local(offset),
                None => Address {
                    space: self.cta.launch.module().variables[id.index()].space,
                    at: self.variable_address(id),
                },
            },
            Symbol::Function(id) => Address { space: Space::Generic, at: machine::function_address(id) },
            Symbol::Param(index) if code.function.is_entry => {
                Address { space: Space::Param, at: self.cta.launch.param_offset(index) }
            }
            Symbol::Param(index) => local(code.params[index as usize]),
            Symbol::Return(index) => local(code.returns[index as usize]),
        }
    }

    /// The address that an operand denotes in an access to `space`. A symbol has its own state space.
    pub fn address(&self, operand: &Operand, space: Space) -> Address {
        // Parameters of a function are in local memory.
        let is_entry = self.code().function.is_entry;
        let space = if space == Space::Param && !is_entry { Space::Local } else { space };
        let (start, offset) = match operand {
            Operand::Address(AddressBase::Symbol(symbol), offset) | Operand::Symbol(symbol, offset) => {
                (self.symbol(*symbol), *offset)
            }
            Operand::Address(AddressBase::Reg(register), offset) | Operand::RegPlus(register, offset) => {
                (Address { space, at: self.register(*register) as u64 }, *offset)
            }
            Operand::Address(AddressBase::Absolute(at), offset) => (Address { space, at: *at }, *offset),
            Operand::Reg(register) => (Address { space, at: self.register(*register) as u64 }, 0),
            Operand::Imm(at) => (Address { space, at: *at }, 0),
            _ => (Address { space, at: 0 }, 0),
        };
        let address = start.offset(offset as u64);
        // Addresses in 32-bit registers wrap at 32 bits.
        let wraps = match operand {
            Operand::Address(AddressBase::Reg(r), _) | Operand::RegPlus(r, _) => {
                self.register_type(*r).bits() <= 32
            }
            _ => false,
        };
        if wraps { Address { at: address.at & u64::from(u32::MAX), ..address } } else { address }
    }

    /// The state space and address that an address refers to; resolves generic addresses.
    pub fn resolve(address: Address) -> (Space, u64) {
        resolve(address.space, address.at)
    }

    /// Reads bytes. The address must be a multiple of their number.
    pub fn read_into(&self, address: Address, data: &mut [u8]) -> Step {
        if !address.at.is_multiple_of(data.len() as u64) {
            return Err(self.access_fault(FaultKind::Misaligned, address, data.len() as u64, false));
        }
        self.read_anywhere(address, data)
    }

    /// Reads bytes at any address.
    pub fn read_bytes(&self, address: Address, bytes: u64) -> Step<Vec<u8>> {
        let mut data = vec![0; bytes as usize];
        self.read_anywhere(address, &mut data)?;
        Ok(data)
    }

    fn read_anywhere(&self, address: Address, data: &mut [u8]) -> Step {
        let (space, at) = Self::resolve(address);
        let launch = self.cta.launch;
        let (memory, at) = match space {
            Space::Shared => {
                let ((rank, inner), bytes) = (shared_rank(at), data.len() as u64);
                // Gaps between variables belong to no variable.
                return match launch.is_shared(inner, bytes) && self.cta.cluster.read(rank, inner, data) {
                    true => Ok(()),
                    false => Err(self.access_fault(self.why_outside(rank), address, bytes, false)),
                };
            }
            Space::Const => (launch.constants(), at),
            Space::Param => (launch.params(), at),
            Space::Local if at >= STACK_BASE => (&self.thread.stack[..], at - STACK_BASE),
            Space::Local => (&self.thread.local[..], at),
            Space::Global => {
                let bytes = data.len() as u64;
                let read = self.cta.read_global(at, data);
                return read.map_err(|kind| self.access_fault(kind, address, bytes, false));
            }
            _ => (&[][..], at),
        };
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        match start.checked_add(data.len()).and_then(|end| memory.get(start..end)) {
            Some(bytes) => {
                data.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(self.access_fault(FaultKind::OutOfBounds, address, data.len() as u64, false)),
        }
    }

    /// Writes bytes. The address must be a multiple of their number.
    pub fn write(&mut self, address: Address, data: &[u8]) -> Step {
        if !address.at.is_multiple_of(data.len() as u64) {
            return Err(self.access_fault(FaultKind::Misaligned, address, data.len() as u64, true));
        }
        self.write_bytes(address, data)
    }

    /// Writes bytes at any address.
    pub fn write_bytes(&mut self, address: Address, data: &[u8]) -> Step {
        self.cta.changes += 1;
        let (space, at) = Self::resolve(address);
        let (memory, at) = match space {
            Space::Shared => {
                let ((rank, inner), bytes) = (shared_rank(at), data.len() as u64);
                let is_shared = self.cta.launch.is_shared(inner, bytes);
                return match is_shared && self.cta.cluster.write(rank, inner, data) {
                    true => Ok(()),
                    false => Err(self.access_fault(self.why_outside(rank), address, bytes, true)),
                };
            }
            Space::Local if at >= STACK_BASE => (&mut self.thread.stack, at - STACK_BASE),
            Space::Local => (&mut self.thread.local, at),
            Space::Global => {
                let written = self.cta.write_global(at, data);
                return written.map_err(|kind| self.access_fault(kind, address, data.len() as u64, true));
            }
            Space::Const | Space::Param => {
                return Err(self.access_fault(FaultKind::ReadOnly, address, data.len() as u64, true));
            }
            _ => return Err(self.access_fault(FaultKind::OutOfBounds, address, data.len() as u64, true)),
        };
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        match start.checked_add(data.len()).and_then(|end| memory.get_mut(start..end)) {
            Some(place) => {
                place.copy_from_slice(data);
                Ok(())
            }
            None => Err(self.access_fault(FaultKind::OutOfBounds, address, data.len() as u64, true)),
        }
    }

    /// The kind of fault of an access to shared memory that a CTA does not have.
    fn why_outside(&self, rank: u32) -> FaultKind {
        if self.cta.cluster.has_ended(rank) { FaultKind::ClusterTarget } else { FaultKind::OutOfBounds }
    }

    /// Reads a number of at most 16 bytes.
    pub fn load(&self, address: Address, bytes: u64) -> Step<u128> {
        let mut data = [0; 16];
        self.read_into(address, &mut data[..bytes as usize])?;
        Ok(u128::from_le_bytes(data))
    }

    /// Writes the low bytes of a number.
    pub fn store(&mut self, address: Address, bytes: u64, value: u128) -> Step {
        self.write(address, &value.to_le_bytes()[..bytes as usize])
    }

    pub fn access_fault(&self, kind: FaultKind, address: Address, bytes: u64, write: bool) -> Box<Fault> {
        let nearest = self.cta.launch.describe(address.space, address.at, bytes);
        let mut fault = self.fault(kind, "");
        fault.access = Some(Access { address: address.at, bytes, space: address.space, write, nearest });
        fault
    }
}

/// A little-endian number of at most 16 bytes.
pub(crate) fn number(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte))
}
