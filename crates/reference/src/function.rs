//! Precomputed data of a function: indices of its labels, and offsets of its variables in local memory.

use std::collections::HashMap;

use check::module::{Body, Function, Module, Node, Param, VarId};
use isa::{Access, Action, Space, Type};
use sem::PureFn;

/// A pure instruction, looked up.
pub(crate) struct Pure {
    pub compute: PureFn,
    /// The access and the type of each operand.
    pub operands: Vec<(Access, Type)>,
}

/// A function with a body.
pub(crate) struct Code<'m> {
    pub function: &'m Function,
    pub body: &'m Body,
    /// For each label: its index in [`Body::code`].
    pub labels: Vec<usize>,
    /// Offset of each `.local` and `.param` variable in the function's frame of local memory.
    pub variables: HashMap<VarId, u64>,
    /// Offsets of parameters and of return parameters in the frame; unused for register parameters.
    pub params: Vec<u64>,
    pub returns: Vec<u64>,
    /// Bytes of the frame.
    pub bytes: u64,
    /// For each index in [`Body::code`]: the function that computes a pure instruction.
    pub pure: Vec<Option<Pure>>,
    pub align: u64,
}

impl<'m> Code<'m> {
    /// `None` for a declaration without a body.
    pub fn of(module: &'m Module, function: &'m Function) -> Option<Code<'m>> {
        let body = function.body.as_ref()?;
        let mut labels = vec![body.code.len(); body.labels.len()];
        for (index, node) in body.code.iter().enumerate() {
            if let Node::Label(label) = node {
                labels[label.index()] = index;
            }
        }
        let (mut bytes, mut frame_align) = (0u64, 16);
        let mut place = |size: u64, align: u64| {
            // On overflow the offset saturates, so no frame is large enough.
            let offset = bytes.checked_next_multiple_of(align.max(4)).unwrap_or(u64::MAX);
            bytes = offset.saturating_add(size);
            frame_align = frame_align.max(align);
            offset
        };
        let variables = module.variables.iter().enumerate();
        let variables = variables
            .filter(|(_, v)| v.function == Some(body.owner) && matches!(v.space, Space::Local | Space::Param))
            .map(|(index, v)| (VarId(index as u32), place(v.bytes, v.align)))
            .collect();
        // Parameters of a kernel are in parameter space.
        let mut of_params = |params: &[Param]| match function.is_entry {
            true => Vec::new(),
            false => params.iter().map(|param| place(param.bytes, param.align)).collect(),
        };
        let (params, returns) = (of_params(&function.params), of_params(&function.returns));
        let pure = body.code.iter().map(|node| match node {
            Node::Instruction(i) => {
                let Action::Pure(name) = i.form.action else { return None };
                let specs = i.form.operands_with(&i.picks);
                let operands = specs.map(|spec| (spec.access, spec.resolve(&i.picks).unwrap_or(Type::B32)));
                Some(Pure { compute: sem::lookup(name)?, operands: operands.collect() })
            }
            Node::Label(_) => None,
        });
        let pure = pure.collect();
        Some(Code { pure, function, body, labels, variables, params, returns, bytes, align: frame_align })
    }
}
