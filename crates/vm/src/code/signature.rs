//! Signatures: the properties in which an indirect call and its target must agree.

use std::collections::HashMap;
use std::fmt;

use check::module::Param;
use ir::Width;

/// How parameters and results are passed: for each, whether in a register, and its size in bytes there or in `.param` space.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Signature {
    params: Vec<(bool, u64)>,
    returns: Vec<(bool, u64)>,
}

impl Signature {
    pub fn new(params: &[Param], returns: &[Param]) -> Signature {
        let list = |params: &[Param]| params.iter().map(place).collect();
        Signature { params: list(params), returns: list(returns) }
    }
}

fn place(param: &Param) -> (bool, u64) {
    // Narrow values take 16-bit registers.
    let register = param.in_register && param.ty.bits() <= 64;
    (param.in_register, if register { Width::of(param.ty).bytes() as u64 } else { param.bytes })
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, places: &[(bool, u64)]| {
            f.write_str("(")?;
            for (i, (register, bytes)) in places.iter().enumerate() {
                let comma = if i > 0 { ", " } else { "" };
                match (register, bytes) {
                    (true, 0) => write!(f, "{comma}.reg .pred")?,
                    (true, bytes) => write!(f, "{comma}.reg .b{}", 8 * bytes)?,
                    (false, bytes) => write!(f, "{comma}.param .b8[{bytes}]")?,
                }
            }
            f.write_str(")")
        };
        if !self.returns.is_empty() {
            list(f, &self.returns)?;
            f.write_str(" _ ")?;
        }
        list(f, &self.params)
    }
}

/// All signatures of a program. Equal signatures have the same number.
#[derive(Default)]
pub(crate) struct Signatures {
    numbers: HashMap<Signature, u32>,
    all: Vec<Signature>,
}

impl Signatures {
    /// The number of a signature.
    pub fn number(&mut self, signature: Signature) -> u32 {
        let next = self.all.len() as u32;
        *self.numbers.entry(signature).or_insert_with_key(|signature| {
            self.all.push(signature.clone());
            next
        })
    }

    /// The signature with this number.
    pub fn get(&self, number: u32) -> Option<&Signature> {
        self.all.get(number as usize)
    }
}
