//! Matrices that are distributed over a warp (PTX ISA, "Matrix Multiply-Accumulate Operation"). [`sem::matrix`]
//! defines which lane holds which element, and how an element of a product is computed.

use std::collections::HashMap;

use check::module::{Instruction, Operand};
use isa::matrix::{Matrix, Shape, element_bits, is_sparse};
use isa::{Effect, Elements, Mod, Picks, Space, Type};
use machine::FaultKind;
use sem::matrix::{BlockScale, Descriptor, Product, Sparsity, by_quad_pairs, place, quad_pair_place};

use crate::block::Block;
use crate::effect::effect;
use crate::memory::{Address, number};
use crate::warp::{Lanes, lanes};
use crate::{Step, WARP_LANES};

/// Bytes of the row at one lane's address.
const ROW_BYTES: u64 = 16;

/// Maps a lane and the index of one of its elements to product, row and column.
type Places<'a> = &'a dyn Fn(usize, usize) -> (usize, usize, usize);

/// Elements by product, row and column.
type Elems = HashMap<(usize, usize, usize), u64>;

/// An instruction that a warp executes, with the mask of its lanes.
struct Warp<'i> {
    i: &'i Instruction,
    warp: usize,
    here: u32,
}

/// The parts of an operand.
fn parts(operand: &Operand) -> &[Operand] {
    match operand {
        Operand::Vector(parts) => parts,
        one => std::slice::from_ref(one),
    }
}

/// The elements of a fragment, `bits` wide each, from the words of its registers.
fn gather(registers: &[Lanes], bits: u32, places: Places) -> Elems {
    let in_register = (32 / bits).max(1) as usize;
    let mut elements = Elems::new();
    for (register, words) in registers.iter().enumerate() {
        for (lane, word) in words.iter().enumerate() {
            for part in 0..in_register {
                let element = word >> (part as u32 * bits) & (u64::MAX >> (64 - bits));
                elements.insert(places(lane, register * in_register + part), element);
            }
        }
    }
    elements
}

/// The words of a fragment's registers.
fn spread(
    registers: usize,
    bits: u32,
    places: Places,
    element: impl Fn((usize, usize, usize)) -> u64,
) -> Vec<Lanes> {
    let in_register = (32 / bits).max(1) as usize;
    let word = |register: usize, lane: usize| {
        (0..in_register).fold(0, |word, part| {
            word | element(places(lane, register * in_register + part)) << (part as u32 * bits)
        })
    };
    (0..registers).map(|register| std::array::from_fn(|lane| word(register, lane))).collect()
}

impl Block<'_> {
    /// Executes a matrix instruction for a warp.
    pub fn matrix(&mut self, i: &Instruction, warp: usize, here: u32) -> Step {
        let w = &Warp { i, warp, here };
        match effect(i) {
            Some(Effect::Mma) => self.mma(w),
            Some(Effect::Wgmma) => self.wgmma(w)?,
            Some(Effect::LdMatrix) => self.load_rows(w)?,
            Some(Effect::StMatrix) => self.store_rows(w)?,
            Some(Effect::MovMatrix) => self.transpose(w),
            Some(Effect::WmmaLoad) => self.wmma_load(w)?,
            Some(Effect::WmmaStore) => self.wmma_store(w)?,
            _ => return Err(self.warp_fault(FaultKind::Unsupported, warp, 0, i.span, i.form.opcode.name())),
        }
        Ok(())
    }

    /// The words in the registers of the operand with this name.
    fn words(&mut self, w: &Warp, name: &str) -> Option<Vec<Lanes>> {
        let i = w.i;
        let at = i.form.operands_with(&i.picks).position(|spec| spec.name == name)?;
        let operand = i.operands.get(at)?;
        Some(parts(operand).iter().map(|part| self.values(part, Type::B64, w.warp, w.here)).collect())
    }

    /// The value of an operand that is the same in all lanes.
    fn word(&mut self, w: &Warp, name: &str) -> Option<u64> {
        Some(self.words(w, name)?.first()?[w.here.trailing_zeros() as usize])
    }

    /// Writes the registers of an operand.
    fn put(&mut self, w: &Warp, operand: &Operand, words: &[Lanes]) {
        for (part, words) in parts(operand).iter().zip(words) {
            for lane in lanes(w.here) {
                self.cpu(w.warp * WARP_LANES + lane).set_operand(Some(part), words[lane].into(), Type::B64);
            }
        }
    }

    // Products.

    fn mma(&mut self, w: &Warp) {
        let picks = &w.i.picks;
        let Some(shape) = Shape::of(picks) else { return };
        let product = Product::of(picks);
        let by_pairs = by_quad_pairs(shape, &product);
        let sparse = is_sparse(picks);
        // `.alayout.blayout`; fragments of `wmma` have the layout that their load named.
        let mut layouts =
            picks.mods().iter().filter(|m| matches!(m, Mod::Row | Mod::Col)).map(|m| *m == Mod::Col);
        let columns = [layouts.next() == Some(true), layouts.next() == Some(true)];
        let places = |matrix: Matrix, bits: u32| {
            move |lane: usize, index: usize| match (by_pairs, matrix) {
                (true, Matrix::B) => quad_pair_place(matrix, columns[1], bits, lane, index),
                (true, _) => quad_pair_place(matrix, columns[0], bits, lane, index),
                (false, _) => {
                    let k = if sparse && matrix == Matrix::A { shape.k / 2 } else { shape.k };
                    let (row, column) = place(matrix, Shape { k, ..shape }, bits, lane, index);
                    (0, row, column)
                }
            }
        };
        let mut fragment = |name: &str, matrix: Matrix, ty: Type| {
            let bits = element_bits(ty, picks);
            let words = self.words(w, name).unwrap_or_default();
            gather(&words, bits, &places(matrix, bits))
        };
        let a = fragment("a", Matrix::A, product.a);
        let b = fragment("b", Matrix::B, product.b);
        let c = fragment("c", Matrix::Accumulator, product.c);
        let scale = BlockScale::of(picks).map(|scale| (scale, self.scales(w, "a"), self.scales(w, "b")));
        let terms = self.terms(w, shape, &product);
        let d = |(pair, row, column): (usize, usize, usize)| {
            let (rows, columns): (Vec<u64>, Vec<u64>) =
                (0..terms.k).map(|k| (a[&(pair, row, k)], b[&(pair, terms.column(row, k), column)])).unzip();
            let c = c[&(pair, row, column)];
            match &scale {
                None => product.element(&rows, &columns, c),
                Some((scale, of_a, of_b)) => {
                    let factors = |from: &Scales, matrix, line| -> Vec<u64> {
                        let bits =
                            |index| scale.bits(matrix, &from.data, from.byte, from.thread, line, index);
                        (0..scale.count).map(bits).collect()
                    };
                    let of_row = factors(of_a, Matrix::A, row);
                    let of_column = factors(of_b, Matrix::B, column);
                    product.scaled_element(*scale, (&rows, &of_row), (&columns, &of_column), c)
                }
            }
        };
        let bits = element_bits(product.d, picks);
        let dst = &w.i.operands[0];
        let words = spread(parts(dst).len(), bits, &places(Matrix::Accumulator, bits), d);
        self.put(w, dst, &words);
    }

    /// `wgmma.mma_async`: the part of one of the four warps, 16 rows of D. Executes at once.
    fn wgmma(&mut self, w: &Warp) -> Step {
        let picks = &w.i.picks;
        let Some(whole) = Shape::of(picks) else { return Ok(()) };
        let shape = Shape { m: 16, ..whole };
        let product = Product::of(picks);
        let stored = if is_sparse(picks) { shape.k / 2 } else { shape.k };
        let places = |matrix: Matrix, bits: u32| {
            move |lane: usize, index: usize| {
                let k = if matrix == Matrix::A { stored } else { shape.k };
                let (row, column) = place(matrix, Shape { k, ..shape }, bits, lane, index);
                (0, row, column)
            }
        };
        let bits = element_bits(product.a, picks);
        let first_row = w.warp % 4 * 16;
        let a = match self.words(w, "a") {
            Some(words) => gather(&words, bits, &places(Matrix::A, bits)),
            None => {
                let descriptor = Descriptor::new(self.word(w, "a-desc").unwrap_or(0));
                let transposed = self.word(w, "imm-trans-a").is_some_and(|value| value != 0);
                let mut elements = Elems::new();
                for (row, k) in (0..16).flat_map(|row| (0..stored).map(move |k| (row, k))) {
                    let element = self.described(w, descriptor, transposed, bits, first_row + row, k)?;
                    elements.insert((0, row, k), element);
                }
                elements
            }
        };
        let descriptor = Descriptor::new(self.word(w, "b-desc").unwrap_or(0));
        let transposed = self.word(w, "imm-trans-b").is_some_and(|value| value != 0);
        let mut b = Elems::new();
        for (k, column) in (0..shape.k).flat_map(|k| (0..shape.n).map(move |column| (k, column))) {
            b.insert((0, k, column), self.described(w, descriptor, transposed, bits, column, k)?);
        }
        let bits = product.d.bits();
        let accumulates = self.word(w, "scale-d").is_none_or(|value| value != 0);
        let words = self.words(w, "d").unwrap_or_default();
        let c = gather(&words, bits, &places(Matrix::Accumulator, bits));
        // Scale factors 1 or -1 of A and B.
        let negated = self.word(w, "imm-scale-a") != self.word(w, "imm-scale-b");
        let sign = if negated { 1 << (product.a.bits() - 1) } else { 0 };
        let terms = self.terms(w, whole, &product);
        let d = |(_, row, column): (usize, usize, usize)| {
            let (rows, columns): (Vec<u64>, Vec<u64>) =
                (0..terms.k).map(|k| (a[&(0, row, k)] ^ sign, b[&(0, terms.column(row, k), column)])).unzip();
            product.element(&rows, &columns, if accumulates { c[&(0, row, column)] } else { 0 })
        };
        let words = spread(words.len(), bits, &places(Matrix::Accumulator, bits), d);
        self.put(w, &w.i.operands[0], &words);
        Ok(())
    }

    /// An element of a matrix in shared memory given by a descriptor: of a row of A or a column of B.
    fn described(
        &mut self,
        w: &Warp,
        descriptor: Descriptor,
        transposed: bool,
        bits: u32,
        line: usize,
        k: usize,
    ) -> Step<u64> {
        let in_unit = (ROW_BYTES as u32 * 8 / bits) as usize;
        let (at, within) = match transposed {
            true => (descriptor.across_k(line / in_unit, k), line % in_unit),
            false => (descriptor.along_k(line, k / in_unit), k % in_unit),
        };
        let cpu = self.cpu(w.warp * WARP_LANES);
        // A descriptor has no field for the rank of the CTA that owns the memory.
        let at = at + machine::shared_base(cpu.cta.rank);
        let unit = number(&cpu.read_bytes(Address { space: Space::Shared, at }, ROW_BYTES)?);
        Ok((unit >> (within as u32 * bits)) as u64 & (u64::MAX >> (64 - bits)))
    }

    /// Which rows of B the elements of A are multiplied with.
    fn terms(&mut self, w: &Warp, shape: Shape, product: &Product) -> Terms {
        let picks = &w.i.picks;
        if !is_sparse(picks) {
            return Terms { k: shape.k, sparse: None };
        }
        let names =
            if effect(w.i) == Some(Effect::Wgmma) { ["sp-meta", "sp-sel"] } else { ["e", "selector"] };
        let [metadata, selector] = names.map(|name| self.first_words(w, name));
        let sparsity = Sparsity::of(shape, product.a, picks);
        Terms { k: shape.k / 2, sparse: Some((sparsity, metadata, selector[0] as usize)) }
    }

    /// The scales of A or B.
    fn scales(&mut self, w: &Warp, of: &str) -> Scales {
        let data = self.first_words(w, &format!("scale-{of}"));
        let lane = w.here.trailing_zeros() as usize;
        let ids = self.words(w, &format!("ids-{of}")).unwrap_or_default();
        let [byte, thread] = [0, 1].map(|id| ids.get(id).map_or(0, |words| words[lane] as usize));
        Scales { data, byte, thread }
    }

    /// The words of an operand of one register; zeros if the operand is absent.
    fn first_words(&mut self, w: &Warp, name: &str) -> Lanes {
        self.words(w, name).and_then(|words| words.first().copied()).unwrap_or([0; WARP_LANES])
    }

    // Rows at addresses that the lanes give.

    /// The thread that gives a row's address, and the address. If the lane is inactive, the result is undefined; this
    /// engine then uses the lowest lane.
    fn row_address(&mut self, w: &Warp, row: usize) -> (usize, Address) {
        let operand = w.i.form.operands_with(&w.i.picks).position(|s| s.kind == isa::OperandKind::Address);
        let lane = if w.here >> row & 1 != 0 { row } else { w.here.trailing_zeros() as usize };
        let thread = w.warp * WARP_LANES + lane;
        let space = if w.i.picks.space() == Space::Generic { Space::Generic } else { Space::Shared };
        let cpu = self.cpu(thread);
        (thread, operand.map_or(Address { space, at: 0 }, |at| cpu.address(&w.i.operands[at], space)))
    }

    /// `ldmatrix`
    fn load_rows(&mut self, w: &Warp) -> Step {
        let format = RowFormat::of(&w.i.picks);
        let dst = &w.i.operands[0];
        let count = parts(dst).len();
        let mut rows = Vec::new();
        for lane in 0..count * 8 {
            let (thread, address) = self.row_address(w, lane);
            rows.push(self.cpu(thread).load(address, ROW_BYTES)?);
        }
        let transposed = w.i.picks.has(Mod::Trans);
        let element = |row: usize, index: usize| -> u64 {
            let bits = format.bits;
            (rows[row] >> (index as u32 * bits)) as u64 & ((1 << bits) - 1)
        };
        let word = |register: usize, lane: usize| -> u64 {
            let (group, within) = (lane / 4, lane % 4);
            let parts = if format.bits == 16 { 2 } else { 4 };
            (0..parts).fold(0, |word, part| {
                let column = within * parts + part;
                let value = match (transposed, format.rows) {
                    (true, 16) => element(register / 2 * 16 + column, register % 2 * 8 + group),
                    (true, _) => element(register * 8 + column, group),
                    (false, _) => element(register * 8 + group, column),
                };
                // Narrow elements take a byte each.
                word | value << (part as u32 * format.bits.max(8).next_power_of_two())
            })
        };
        let words: Vec<Lanes> = (0..count).map(|r| std::array::from_fn(|lane| word(r, lane))).collect();
        self.put(w, dst, &words);
        Ok(())
    }

    /// `stmatrix`
    fn store_rows(&mut self, w: &Warp) -> Step {
        let format = RowFormat::of(&w.i.picks);
        let registers = w.i.operands.last().map_or(&[][..], parts);
        let words: Vec<Lanes> =
            registers.iter().map(|part| self.values(part, Type::B32, w.warp, w.here)).collect();
        let transposed = w.i.picks.has(Mod::Trans);
        for row in 0..words.len() * 8 {
            let (words, line) = (&words[row / 8], row % 8);
            // The lane, and the part of its word, that hold an element of a line.
            let element = |index: usize| {
                let in_word = 32 / format.bits as usize;
                let (lane, part) = match transposed {
                    false => (line * 4 + index / in_word, index % in_word),
                    true if format.bits == 16 => (index * 4 + line / 2, line % 2),
                    // `.m16n8`: a line in memory is a column of 16 bytes.
                    true => (index % 8 * 4 + line / 2, index / 8 * 2 + line % 2),
                };
                words[lane] >> (part as u32 * format.bits) & ((1 << format.bits) - 1)
            };
            let count = ROW_BYTES as u32 * 8 / format.bits;
            let value =
                (0..count).rev().fold(0u128, |all, i| all << format.bits | u128::from(element(i as usize)));
            let (thread, address) = self.row_address(w, row);
            self.cpu(thread).store(address, ROW_BYTES, value)?;
        }
        Ok(())
    }

    /// `movmatrix`
    fn transpose(&mut self, w: &Warp) {
        let words = self.values(&w.i.operands[1], Type::B32, w.warp, w.here);
        let element = |row: usize, column: usize| words[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff;
        let word = |lane: usize| {
            let (row, column) = (lane / 4, lane % 4 * 2);
            element(column, row) | element(column + 1, row) << 16
        };
        self.put(w, &w.i.operands[0], &[std::array::from_fn(word)]);
    }

    // Matrices in memory with a stride.

    fn wmma_load(&mut self, w: &Warp) -> Step {
        let Some(area) = self.area(w) else { return Ok(()) };
        let mut elements = Elems::new();
        for (row, column) in (0..area.rows).flat_map(|row| (0..area.columns).map(move |column| (row, column)))
        {
            let (address, shift) = area.element(row, column);
            let bytes = u64::from(area.bits.div_ceil(8));
            let lane = w.here.trailing_zeros() as usize;
            let value = self.cpu(w.warp * WARP_LANES + lane).load(address, bytes)? as u64;
            elements.insert((0, row, column), value >> shift & (u64::MAX >> (64 - area.bits)));
        }
        let dst = &w.i.operands[0];
        let words = spread(parts(dst).len(), area.bits, &area.places(), |at| elements[&at]);
        self.put(w, dst, &words);
        Ok(())
    }

    fn wmma_store(&mut self, w: &Warp) -> Step {
        let Some(area) = self.area(w) else { return Ok(()) };
        let words: Vec<Lanes> =
            parts(&w.i.operands[1]).iter().map(|part| self.values(part, Type::B64, w.warp, w.here)).collect();
        let lane = w.here.trailing_zeros() as usize;
        for ((_, row, column), value) in gather(&words, area.bits, &area.places()) {
            let (address, _) = area.element(row, column);
            let bytes = u64::from(area.bits.div_ceil(8));
            self.cpu(w.warp * WARP_LANES + lane).store(address, bytes, value.into())?;
        }
        Ok(())
    }

    /// The matrix in memory. Address and stride must be the same in all lanes; the lowest lane's are used.
    fn area(&mut self, w: &Warp) -> Option<Area> {
        let (i, picks) = (w.i, &w.i.picks);
        let spec = i.form.operands.iter().find(|spec| spec.elements == Elements::Fragment)?;
        let (shape, ty) = (Shape::of(picks)?, spec.element(picks)?);
        let matrix = Matrix::of(i.form, picks, spec);
        let (rows, columns) = matrix.size(shape, false);
        let by_column = picks.has(Mod::Col);
        let at = i.form.operands_with(picks).position(|spec| spec.kind == isa::OperandKind::Address)?;
        let lane = w.here.trailing_zeros() as usize;
        let base = self.cpu(w.warp * WARP_LANES + lane).address(&i.operands[at], picks.space());
        let stride = match self.words(w, "stride") {
            Some(words) => words[0][lane] & u64::from(u32::MAX),
            None => (if by_column { rows } else { columns }) as u64,
        };
        Some(Area { base, stride, rows, columns, bits: ty.bits(), by_column, matrix, shape })
    }
}

/// Which rows of B the elements of a row of A are multiplied with.
struct Terms {
    /// Stored elements of a row of A.
    k: usize,
    /// For a sparse A: the layout of the metadata, the metadata, and the selector.
    sparse: Option<(Sparsity, Lanes, usize)>,
}

impl Terms {
    fn column(&self, row: usize, k: usize) -> usize {
        match &self.sparse {
            None => k,
            Some((sparsity, metadata, selector)) => sparsity.column(metadata, *selector, row, k),
        }
    }
}

/// The scales of a factor and their selector: `scale, {byte-id, thread-id}`.
struct Scales {
    data: Lanes,
    byte: usize,
    thread: usize,
}

/// How a 16-byte row in memory is divided into elements.
struct RowFormat {
    bits: u32,
    /// Rows of a matrix.
    rows: usize,
}

impl RowFormat {
    fn of(picks: &Picks) -> RowFormat {
        let bits = match () {
            () if picks.has(Mod::B6x16P32) => 6,
            () if picks.has(Mod::B4x16P64) => 4,
            () if picks.types().contains(&Type::B16) => 16,
            () => 8,
        };
        RowFormat { bits, rows: if picks.has(Mod::M16n16) { 16 } else { 8 } }
    }
}

/// A matrix in memory with a stride.
struct Area {
    base: Address,
    /// Stride between rows (columns), in elements.
    stride: u64,
    rows: usize,
    columns: usize,
    bits: u32,
    by_column: bool,
    matrix: Matrix,
    shape: Shape,
}

impl Area {
    /// The address of an element, and its bit offset there.
    fn element(&self, row: usize, column: usize) -> (Address, u64) {
        let (line, within) = if self.by_column { (column, row) } else { (row, column) };
        let bit = (line as u64)
            .wrapping_mul(self.stride)
            .wrapping_add(within as u64)
            .wrapping_mul(self.bits.into());
        let shift = if self.bits < 8 { bit % 8 } else { 0 };
        (self.base.offset(bit / 8), shift)
    }

    fn places(&self) -> impl Fn(usize, usize) -> (usize, usize, usize) + '_ {
        move |lane, index| {
            let (row, column) = place(self.matrix, self.shape, self.bits, lane, index);
            (0, row, column)
        }
    }
}
