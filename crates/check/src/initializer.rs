//! Initial values of variables (PTX ISA, "Initializers"): bytes, and relocations.

use diag::{Code, Span};
use isa::{Kind, Opaque, Space, Type};
use syntax::tree::{BinaryOp, Initializer, Operand as Tree};

use crate::checker::Checker;
use crate::literal::{Const, fold, fold_integer, is_constant};
use crate::module::{Relocation, Symbol, VarId};
use crate::scope::{Entity, Scope};
use crate::variable::Shape;

/// Limit of the offset of an initial value. A larger initial value would not fit any device.
const MAX_BYTES: u64 = 1 << 30;

/// An initial value and its position in a variable.
struct Cell<'s, 'a> {
    id: VarId,
    ty: Type,
    offset: u64,
    scopes: &'s [Scope<'a>],
}

/// An address in an initial value.
struct AddressValue<'t, 'a> {
    name: syntax::tree::Name<'a>,
    addend: i64,
    generic: bool,
    mask: Option<(&'t Tree<'a>, u64)>,
}

/// The fields of handles that ptxas knows.
fn fields(kind: Opaque) -> &'static [&'static str] {
    match kind {
        Opaque::Texture => &[
            "width",
            "height",
            "depth",
            "channel_data_type",
            "channel_order",
            "normalized_coords",
            "filter_mode",
            "addr_mode_0",
            "addr_mode_1",
            "addr_mode_2",
            "array_size",
            "num_mipmap_levels",
            "num_samples",
        ],
        Opaque::Sampler => {
            &["force_unnormalized_coords", "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2"]
        }
        Opaque::Surface => {
            &["width", "height", "depth", "channel_data_type", "channel_order", "array_size", "memory_layout"]
        }
    }
}

/// The named values of fields; ptxas accepts each of them for every field.
const FIELD_VALUES: [&str; 7] =
    ["wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border", "nearest", "linear"];

impl<'a> Checker<'a> {
    /// Checks an initial value and writes it into the variable.
    pub(crate) fn initial_value(
        &mut self,
        initializer: &Initializer<'a>,
        dimensions: &[Option<Tree<'a>>],
        shape: Shape,
        id: VarId,
        scopes: &[Scope<'a>],
    ) {
        if shape.ty == Type::F16 {
            let message = "No initial value is allowed for .f16 type";
            let help = "declare it .b16 and write the bits";
            self.sink.error(Code::IllegalInitializer, initializer.span(), message).help(help);
            return;
        }
        let mut lengths: Vec<Option<u64>> =
            dimensions.iter().map(|d| d.as_ref().map(|tree| self.length(tree))).collect();
        let vector_level = (shape.lanes > 1).then_some(lengths.len());
        if shape.lanes > 1 {
            lengths.push(Some(u64::from(shape.lanes)));
        }
        // An empty list of unknown length was reported as an incomplete type.
        let mut strides = vec![u64::from(shape.ty.bytes()); lengths.len() + 1];
        for level in (0..lengths.len()).rev() {
            strides[level] = strides[level + 1].saturating_mul(lengths[level].unwrap_or(1));
        }
        let nest = Nest { lengths, strides, vector_level };
        let cell = Cell { id, ty: shape.ty, offset: 0, scopes };
        self.initial_level(initializer, &nest, 0, &cell);
    }

    fn initial_level(
        &mut self,
        initializer: &Initializer<'a>,
        nest: &Nest,
        level: usize,
        cell: &Cell<'_, 'a>,
    ) {
        let Some(&length) = nest.lengths.get(level) else {
            return match initializer {
                Initializer::Value(tree) => self.initial_scalar(tree, cell),
                Initializer::List(list) => self.initial_mismatch(list.span),
                Initializer::Field(field) => self.initial_mismatch(field.span),
            };
        };
        let Initializer::List(list) = initializer else {
            return self.initial_mismatch(initializer.span());
        };
        let given = list.values.len() as u64;
        if nest.vector_level == Some(level) {
            if Some(given) != length {
                let message = "Incorrect number of elements in vector initializer";
                self.sink.error(Code::WrongElementCount, list.span, message);
                return;
            }
        } else if let Some(length) = length.filter(|&length| given > length) {
            let message = "Greater number of elements in array initializer";
            let help = match list.values.len() as u64 == given && nest.lengths.len() > level + 1 {
                true => format!("this dimension has {length} elements, each in braces of its own"),
                false => format!("the array has {length} elements, {given} are given"),
            };
            let extra = list.values.get(length as usize).map_or(list.span, Initializer::span);
            self.sink.error(Code::WrongElementCount, extra, message).help(help);
            return;
        } else if given == 0 && length.is_none() {
            return self.initial_mismatch(list.span);
        }
        let stride = nest.strides[level + 1];
        for (i, value) in list.values.iter().enumerate() {
            let offset = cell.offset.saturating_add(stride.saturating_mul(i as u64));
            self.initial_level(value, nest, level + 1, &Cell { offset, ..*cell });
        }
    }

    /// Checks the fields of a texture, sampler or surface. They are in `dimensions` pairs of braces, one for each
    /// dimension of an array (PTX ISA, "Texture, Sampler, and Surface Types").
    pub(crate) fn initial_fields(
        &mut self,
        initializer: &Initializer<'a>,
        dimensions: usize,
        kind: Opaque,
        id: VarId,
    ) {
        let Initializer::List(list) = initializer else { return self.initial_mismatch(initializer.span()) };
        for value in &list.values {
            if dimensions > 0 {
                self.initial_fields(value, dimensions - 1, kind, id);
                continue;
            }
            let Initializer::Field(field) = value else { return self.initial_mismatch(value.span()) };
            let name = field.name.text;
            if !fields(kind).contains(&name) {
                let message = format!("Unrecognized field name '{name}' in opaque struct initializer");
                let help = format!("a .{} has {}", kind.name(), fields(kind).join(", "));
                self.sink.error(Code::InitializerType, field.name.span, message).help(help);
                continue;
            }
            let text = match &field.value {
                Tree::Name(value) if FIELD_VALUES.contains(&value.text) => value.text.to_owned(),
                Tree::Name(value) => {
                    let message = format!("Unrecognized initial value symbol '{}'", value.text);
                    self.sink.error(Code::InitializerType, value.span, message);
                    continue;
                }
                tree => fold_integer(tree, &mut self.sink).unwrap_or(0).to_string(),
            };
            self.variables[id.index()].fields.push((name.to_owned(), text));
        }
    }

    fn initial_mismatch(&mut self, span: Span) {
        self.sink.error(Code::InitializerType, span, "Initial value type mismatch");
    }

    fn initial_scalar(&mut self, tree: &Tree<'a>, cell: &Cell<'_, 'a>) {
        if is_constant(tree) {
            let Some(value) = fold(tree, &mut self.sink) else { return };
            let fits = match (value, cell.ty.kind()) {
                (Const::Int { .. }, kind) => kind != Kind::Float,
                (_, Kind::Float) => cell.ty.lanes() == 1,
                (_, kind) => kind == Kind::Bits,
            };
            if !fits {
                let help = match (value, cell.ty) {
                    (Const::Int { .. }, Type::F32 | Type::F64) => "write a floating-point constant: 1.0",
                    _ => "write an integer",
                };
                let message = "Initial value type mismatch";
                self.sink.error(Code::InitializerType, tree.span(), message).help(help);
                return;
            }
            let bytes = cell.ty.bytes() as usize;
            let bits = value.bits(if bytes > 8 { Type::B64 } else { cell.ty });
            return self.write(cell, &bits.to_le_bytes()[..bytes.min(8)], tree.span());
        }
        match self.address_value(tree) {
            Some(address) => self.initial_address(tree, &address, cell),
            None => {
                let message = "Invalid initial value expression";
                let help = "an initial value is a constant, `symbol`, `symbol+4`, `generic(symbol)` or `0xFF(symbol)`";
                self.sink.error(Code::InitializerExpression, tree.span(), message).help(help);
            }
        }
    }

    /// Reads `sym`, `sym+4`, `generic(sym)`, `generic(sym)+4`, `0xFF(sym)`.
    fn address_value<'t>(&mut self, tree: &'t Tree<'a>) -> Option<AddressValue<'t, 'a>> {
        match tree {
            Tree::Name(name) => Some(AddressValue { name: *name, addend: 0, generic: false, mask: None }),
            Tree::Binary(node) if node.op == BinaryOp::Add && is_constant(&node.right) => {
                let value = crate::literal::fold_integer(&node.right, &mut self.sink)? as i64;
                let inner = self.address_value(&node.left)?;
                Some(AddressValue { addend: inner.addend.wrapping_add(value), ..inner })
            }
            Tree::Apply(node) => {
                let inner = self.address_value(&node.argument)?;
                match &node.function {
                    Tree::Name(name) if name.text == "generic" => {
                        Some(AddressValue { generic: true, ..inner })
                    }
                    Tree::Literal(_) => {
                        let mask = crate::literal::fold_integer(&node.function, &mut self.sink)?;
                        Some(AddressValue { mask: Some((&node.function, mask)), ..inner })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn initial_address(&mut self, tree: &Tree<'a>, address: &AddressValue<'_, 'a>, cell: &Cell<'_, 'a>) {
        let name = address.name;
        let entity = cell
            .scopes
            .iter()
            .rev()
            .chain(std::iter::once(&self.globals))
            .find_map(|scope| scope.get(name.text))
            .map(|declared| declared.entity);
        let symbol = match entity {
            Some(Entity::Variable(id))
                if matches!(self.variables[id.index()].space, Space::Global | Space::Const) =>
            {
                Symbol::Variable(id)
            }
            Some(Entity::Function(id)) => Symbol::Function(id),
            Some(_) => {
                let message = "Variable used as initial value not in .global or .const state space";
                self.sink.error(Code::InitializerSpace, name.span, message);
                return;
            }
            None if address.generic => {
                let help = self.suggest(name.text, cell.scopes);
                let message = "Invalid initial value expression";
                self.sink.error(Code::InitializerExpression, name.span, message).maybe_help(help);
                return;
            }
            None => {
                let help = self.suggest(name.text, cell.scopes);
                let message = format!("Invalid initial value symbol '{}'", name.text);
                self.sink.error(Code::UnknownSymbol, name.span, message).maybe_help(help);
                return;
            }
        };
        let (bytes, shift) = match address.mask {
            Some((mask_tree, mask)) if matches!(cell.ty, Type::U8 | Type::U32 | Type::U64) => {
                let shift = mask.trailing_zeros();
                if shift % 8 != 0 || mask.checked_shr(shift) != Some(0xff) {
                    let message = format!("Invalid mask value '{mask:#x}' used in initializer");
                    let help = "a mask takes one byte: 0xFF, 0xFF00, 0xFF0000, ...";
                    self.sink.error(Code::IllegalMask, mask_tree.span(), message).help(help);
                    return;
                }
                (1, shift)
            }
            None if matches!(cell.ty, Type::U32 | Type::U64) => (cell.ty.bytes(), 0),
            _ => {
                let message = "Initial value type mismatch";
                let help = "addresses are initial values of .u32 and .u64, and bytes of them of .u8";
                self.sink.error(Code::InitializerType, tree.span(), message).help(help);
                return;
            }
        };
        self.write(cell, &[0; 16][..cell.ty.bytes() as usize], tree.span());
        let (offset, addend, generic) = (cell.offset, address.addend, address.generic);
        let relocation = Relocation { offset, bytes, symbol, addend, generic, shift };
        self.variables[cell.id.index()].relocations.push(relocation);
    }

    /// Writes bytes. The gap between earlier values and these is zero.
    fn write(&mut self, cell: &Cell, bytes: &[u8], span: Span) {
        if cell.offset > MAX_BYTES {
            let message = "Initial value lies more than 1 GiB into its variable";
            self.sink.error(Code::InitializerTooLarge, span, message);
            return;
        }
        let start = cell.offset as usize;
        let init = &mut self.variables[cell.id.index()].init;
        if init.len() < start + bytes.len() {
            init.resize(start + bytes.len(), 0);
        }
        init[start..start + bytes.len()].copy_from_slice(bytes);
    }
}

/// The dimensions of a variable, including its vector: for each level, the length and the size of an element in
/// bytes.
struct Nest {
    lengths: Vec<Option<u64>>,
    /// `strides[level + 1]`: bytes of one element of that level.
    strides: Vec<u64>,
    vector_level: Option<usize>,
}
