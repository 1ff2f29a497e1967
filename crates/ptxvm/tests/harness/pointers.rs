//! Which parameters of a kernel are pointers: PTX mostly does not say, but what flows into an address is one.

use std::collections::{BTreeMap, BTreeSet};

use check::module::{AddressBase, Function, Instruction, Node, Operand, RegId, Symbol};
use isa::Opcode;

/// A parameter's number, and the byte offset in it of what was loaded.
type Place = (usize, usize);

/// The places in the parameters of a kernel whose value, or a sum with it, is used as an address.
pub fn find(kernel: &Function) -> BTreeSet<Place> {
    let body = kernel.body.as_ref();
    let code: Vec<&Instruction> = body
        .into_iter()
        .flat_map(|body| &body.code)
        .filter_map(|node| match node {
            Node::Instruction(instruction) => Some(instruction),
            Node::Label(_) => None,
        })
        .collect();
    let mut from: BTreeMap<RegId, BTreeSet<Place>> = BTreeMap::new();
    let mut pointers = BTreeSet::new();
    // Until nothing new flows anywhere: loops carry pointers backwards.
    loop {
        let before = from.values().map(BTreeSet::len).sum::<usize>();
        for instruction in &code {
            flow(instruction, &mut from, &mut pointers);
        }
        if from.values().map(BTreeSet::len).sum::<usize>() == before {
            return pointers;
        }
    }
}

fn flow(i: &Instruction, from: &mut BTreeMap<RegId, BTreeSet<Place>>, pointers: &mut BTreeSet<Place>) {
    let mut places = BTreeSet::new();
    for operand in &i.operands {
        if let Operand::Address(AddressBase::Reg(register), _) = operand {
            pointers.extend(from.get(register).into_iter().flatten());
        }
    }
    let sources = match (i.form.opcode, &i.operands[..]) {
        (Opcode::Ld, [destination, Operand::Address(AddressBase::Symbol(Symbol::Param(index)), offset)]) => {
            let registers: Vec<&Operand> = match destination {
                Operand::Vector(elements) => elements.iter().collect(),
                one => vec![one],
            };
            for (element, operand) in registers.into_iter().enumerate() {
                let bytes = i.picks.ty(0).bytes() as usize;
                if let (Operand::Reg(register), 8) = (operand, bytes) {
                    let place = (*index as usize, *offset as usize + 8 * element);
                    from.entry(*register).or_default().insert(place);
                }
            }
            return;
        }
        // A product is an offset, not a pointer; the sum with it is.
        (Opcode::Mad, [_, _, _, c]) => std::slice::from_ref(c),
        (
            Opcode::Add | Opcode::Sub | Opcode::Mov | Opcode::Cvta | Opcode::Selp | Opcode::And | Opcode::Or,
            [_, sources @ ..],
        ) => sources,
        _ => return,
    };
    for source in sources {
        if let Operand::Reg(register) | Operand::RegPlus(register, _) = source {
            places.extend(from.get(register).into_iter().flatten().copied());
        }
    }
    if let Some(Operand::Reg(destination)) = i.operands.first()
        && !places.is_empty()
    {
        from.entry(*destination).or_default().extend(places);
    }
}
