//! Tensor memory (PTX ISA, "TensorCore 5th Generation Family Instructions"). [`sem::tensor_memory`] defines the
//! meaning of its cells and how an element of a product is computed. All operations are done at once.

use std::cell::RefMut;

use check::module::{Instruction, Operand};
use diag::Span;
use isa::matrix::Matrix;
use isa::{Effect, Mod, Space, Type};
use machine::{Fault, FaultKind, shared_base};
use sem::matrix::Descriptor;
use sem::tensor_memory::{
    Allocations, COLUMNS, Cell, Copy, Factor, Fragment, LANES, LANES_OF_WARP, Misuse, Multiplication, Part,
    Shift, reduce,
};

use crate::block::{Block, Cta};
use crate::effect::effect;
use crate::memory::{Address, number};
use crate::thread::Cpu;
use crate::warp::{Lanes, lanes};
use crate::{Step, WARP_LANES};

/// Bytes of shared memory that are contiguous in every layout.
const UNIT_BYTES: u64 = 16;

/// The tensor memory of a CTA.
#[derive(Default)]
pub(crate) struct TensorMemory {
    allocations: Allocations,
    /// The cells, lane by lane; empty before the first allocation.
    cells: Vec<u32>,
    /// The last allocation.
    span: Span,
}

impl TensorMemory {
    fn check(&self, at: Cell, lanes: usize, columns: usize) -> Result<(), Misuse> {
        if at.lane + lanes > LANES {
            return Err(Misuse::Outside);
        }
        self.allocations.check(at.columns(columns))
    }

    fn get(&self, at: Cell) -> u32 {
        at.index().and_then(|index| self.cells.get(index)).copied().unwrap_or(0)
    }

    fn set(&mut self, at: Cell, value: u32) {
        self.cells.resize(LANES * COLUMNS, 0);
        if let Some(cell) = at.index().and_then(|index| self.cells.get_mut(index)) {
            *cell = value;
        }
    }
}

impl Cta<'_> {
    /// Checks that all columns have been deallocated.
    pub fn check_tensor_memory(&self) -> Step {
        let memory = self.cluster.tensor_memory(self.rank);
        if memory.allocations.is_empty() {
            return Ok(());
        }
        Err(self.fault(FaultKind::TensorMemory, 0, memory.span, &Misuse::Leak.to_string()))
    }
}

impl Block<'_> {
    /// Executes a tensor memory operation of a warp; `false` if the warp must wait.
    pub fn tensor_memory(&mut self, i: &Instruction, warp: usize, here: u32) -> Step<bool> {
        let lane = here.trailing_zeros() as usize;
        let mut cpu = self.cpu(warp * WARP_LANES + lane);
        match effect(i) {
            Some(Effect::TensorLd) => self.load_cells(i, warp, here)?,
            Some(Effect::TensorSt) => self.store_cells(i, warp, here)?,
            _ if i.picks.has(Mod::Alloc) => return cpu.allocate(i),
            _ if i.picks.has(Mod::Dealloc) => {
                let [at, columns] = ["taddr", "columns"].map(|name| cpu.number(i, name));
                let released = cpu.own_memory().allocations.release(at, columns);
                released.map_err(|misuse| cpu.misuse(misuse))?;
                cpu.cta.changes += 1;
            }
            _ => cpu.own_memory().allocations.relinquish(),
        }
        Ok(true)
    }

    /// The fragment of an instruction with this many registers, and the cell at its address.
    fn fragment(
        &mut self,
        i: &Instruction,
        registers: usize,
        warp: usize,
        here: u32,
    ) -> Step<(Fragment, Cell)> {
        let cpu = self.cpu(warp * WARP_LANES + here.trailing_zeros() as usize);
        let fragment = Fragment::of(&i.picks, registers, cpu.number(i, "split"));
        let at = cpu.cell(i, "taddr").unwrap_or(Cell { lane: 0, column: 0 });
        let memory = cpu.own_memory();
        let checked = fragment.check(at, warp).and_then(|()| {
            let mut parts = fragment.columns();
            parts.try_for_each(|(start, count)| {
                memory.check(at.plus(Cell { lane: 0, column: start }), 1, count)
            })
        });
        checked.map(|()| (fragment, at)).map_err(|misuse| cpu.misuse(misuse))
    }

    /// `tcgen05.ld`
    fn load_cells(&mut self, i: &Instruction, warp: usize, here: u32) -> Step {
        let Some(Operand::Vector(registers)) = i.operands.first() else { return Ok(()) };
        let (fragment, at) = self.fragment(i, registers.len(), warp, here)?;
        let mut loaded = vec![Vec::new(); WARP_LANES];
        for (register, operand) in registers.iter().enumerate() {
            for lane in lanes(here) {
                let mut cpu = self.cpu(warp * WARP_LANES + lane);
                let value = {
                    let (memory, cell) = (cpu.own_memory(), at.plus(fragment.cell(lane, register)));
                    let next = memory.get(cell.plus(Cell { lane: 0, column: 1 }));
                    if fragment.packed { memory.get(cell) & 0xffff | next << 16 } else { memory.get(cell) }
                };
                cpu.set_operand(Some(operand), value.into(), Type::B32);
                loaded[lane].push(u64::from(value));
            }
        }
        if i.picks.has(Mod::Red) {
            for lane in lanes(here) {
                let reduced = reduce(&i.picks, loaded[lane].iter().copied());
                let mut cpu = self.cpu(warp * WARP_LANES + lane);
                cpu.set_operand(i.operands.get(1), reduced.into(), Type::B32);
            }
        }
        Ok(())
    }

    /// `tcgen05.st`
    fn store_cells(&mut self, i: &Instruction, warp: usize, here: u32) -> Step {
        let Some(Operand::Vector(registers)) = i.operands.last() else { return Ok(()) };
        let (fragment, at) = self.fragment(i, registers.len(), warp, here)?;
        for (register, operand) in registers.iter().enumerate() {
            // Lanes that have ended store zeros; PTX leaves that case open.
            let words: Lanes = self.values(operand, Type::B32, warp, here);
            let cpu = self.cpu(warp * WARP_LANES + here.trailing_zeros() as usize);
            let mut memory = cpu.own_memory();
            for (lane, &word) in words.iter().enumerate() {
                let cell = at.plus(fragment.cell(lane, register));
                if fragment.packed {
                    memory.set(cell, word as u32 & 0xffff);
                    memory.set(cell.plus(Cell { lane: 0, column: 1 }), (word >> 16) as u32 & 0xffff);
                } else {
                    memory.set(cell, word as u32);
                }
            }
        }
        Ok(())
    }
}

/// Rows of A or columns of B, element by element.
type Lines = Vec<Vec<u64>>;

impl Cpu<'_, '_> {
    fn misuse(&self, misuse: Misuse) -> Box<Fault> {
        self.fault(misuse.into(), &misuse.to_string())
    }

    fn own_memory(&self) -> RefMut<'_, TensorMemory> {
        self.cta.cluster.tensor_memory(self.cta.rank)
    }

    /// The value of the operand with this name, or 0 if there is none.
    fn number(&self, i: &Instruction, name: &str) -> u64 {
        self.named(i, name).map_or(0, |operand| self.value(operand, Type::B64) as u64)
    }

    /// The cell whose address an operand holds.
    fn cell(&self, i: &Instruction, name: &str) -> Option<Cell> {
        let address = self.address(self.named(i, name)?, Space::Generic);
        Some(Cell::at(address.at & u64::from(u32::MAX)))
    }

    /// The ranks of the CTAs that an instruction works on: the thread's own, or both of its pair.
    fn blocks(&self, pair: bool) -> Step<Vec<u32>> {
        let own = self.cta.rank;
        if !pair {
            return Ok(vec![own]);
        }
        let pair = [own & !1, own | 1];
        for rank in pair {
            if rank >= self.cta.launch.cluster_blocks() {
                return Err(self.misuse(Misuse::Pair));
            }
            if self.cta.cluster.has_ended(rank) {
                return Err(self.misuse(Misuse::PairEnded));
            }
        }
        Ok(pair.into())
    }

    /// `tcgen05.alloc`; `false` while there is no room.
    fn allocate(&mut self, i: &Instruction) -> Step<bool> {
        let columns = self.number(i, "columns");
        let Some(to) = self.named(i, "dst").map(|dst| self.address(dst, i.picks.space())) else {
            return Ok(true);
        };
        if Self::resolve(to).0 != Space::Shared {
            return Err(self.access_fault(FaultKind::OutOfBounds, to, 4, true));
        }
        let allocated = self.own_memory().allocations.allocate(columns);
        match allocated.map_err(|misuse| self.misuse(misuse))? {
            Some(at) => {
                self.own_memory().span = i.span;
                self.store(to, 4, at.into()).map(|()| true)
            }
            None => Ok(false),
        }
    }

    /// `tcgen05.cp`
    pub fn copy_to_cells(&mut self, i: &Instruction) -> Step {
        let copy = Copy::of(&i.picks);
        let Some(at) = self.cell(i, "taddr") else { return Ok(()) };
        copy.check(at).map_err(|misuse| self.misuse(misuse))?;
        let addresses = copy.addresses(self.number(i, "desc")).map_err(|misuse| self.misuse(misuse))?;
        for rank in self.blocks(copy.pair)? {
            let units: Vec<u128> =
                addresses.iter().map(|&inner| self.unit(rank, inner)).collect::<Result<_, _>>()?;
            let mut memory = self.cta.cluster.tensor_memory(rank);
            memory.check(at, 1, copy.units * 4).map_err(|misuse| self.misuse(misuse))?;
            for (number, &unit) in units.iter().enumerate() {
                for cell in copy.cells(number / copy.units, number % copy.units) {
                    for (column, word) in copy.words(unit).into_iter().enumerate() {
                        memory.set(at.plus(cell).plus(Cell { lane: 0, column }), word);
                    }
                }
            }
        }
        Ok(())
    }

    /// `tcgen05.shift`
    pub fn shift_cells(&mut self, i: &Instruction) -> Step {
        let Some(at) = self.cell(i, "taddr") else { return Ok(()) };
        Shift::check(at).map_err(|misuse| self.misuse(misuse))?;
        for rank in self.blocks(i.picks.has(Mod::CtaGroup2))? {
            let mut memory = self.cta.cluster.tensor_memory(rank);
            memory.check(at, LANES_OF_WARP, Shift::COLUMNS).map_err(|misuse| self.misuse(misuse))?;
            for (from, to) in Shift::moves() {
                let value = memory.get(at.plus(from));
                memory.set(at.plus(to), value);
            }
        }
        Ok(())
    }

    /// 16 bytes of a CTA's shared memory.
    fn unit(&self, rank: u32, inner: u64) -> Step<u128> {
        let at = shared_base(rank) + inner;
        Ok(number(&self.read_bytes(Address { space: Space::Shared, at }, UNIT_BYTES)?))
    }

    /// The first lines of a factor, `lines` of them with `count` elements each, in a CTA's shared memory.
    fn lines(&self, rank: u32, factor: Factor, at: Descriptor, lines: usize, count: usize) -> Step<Lines> {
        let element = |line, k| {
            let (address, index) = factor.place(at, line, k);
            Ok(factor.element(self.unit(rank, address)?, index))
        };
        (0..lines).map(|line| (0..count).map(|k| element(line, k)).collect()).collect()
    }

    /// `tcgen05.mma`
    pub fn tensor_multiply(&mut self, i: &Instruction) -> Step {
        let m =
            Multiplication::of(&i.picks, self.number(i, "idesc")).map_err(|misuse| self.misuse(misuse))?;
        let Some(d) = self.cell(i, "d-tmem") else { return Ok(()) };
        m.check(d).map_err(|misuse| self.misuse(misuse))?;
        let blocks = self.blocks(m.pair)?;
        let descriptor = |factor: Factor, name| factor.descriptor(self.number(i, name));
        let at = descriptor(m.b, "b-desc").map_err(|misuse| self.misuse(misuse))?;
        let mask = self.named(i, "zero-column-mask");
        let mask = mask.map(|_| m.column_mask(self.number(i, "zero-column-mask")));
        let mask = mask.transpose().map_err(|misuse| self.misuse(misuse))?;
        let shift = mask.as_ref().map_or(0, |mask| mask.shift);
        let mut columns = Vec::new();
        for &rank in &blocks {
            let mut all = self.lines(rank, m.b, at, m.n / blocks.len() + shift, m.k)?;
            columns.push(all.split_off(shift));
        }
        for (column, zero) in mask.into_iter().flat_map(|mask| mask.zero).enumerate() {
            let (owner, number) = m.column_of_b(column);
            if zero {
                columns[owner][number].fill(0);
            }
        }
        let in_shared = self.named(i, "a-desc").is_some();
        if !in_shared && m.a.transposed {
            return Err(self.misuse(Misuse::Modifiers));
        }
        let a_at = descriptor(m.a, if in_shared { "a-desc" } else { "b-desc" });
        let disabled: Vec<u32> = match self.named(i, "lanes") {
            Some(Operand::Vector(words)) => {
                words.iter().map(|word| self.value(word, Type::B32) as u32).collect()
            }
            _ => Vec::new(),
        };
        let accumulates =
            self.named(i, "enable-input-d").is_some_and(|enable| self.value(enable, Type::Pred) & 1 != 0);
        let scale = self.number(i, "scale-input-d");
        for (block, &rank) in blocks.iter().enumerate() {
            self.check_cells(i, &m, d, rank)?;
            let rows = match in_shared {
                true => {
                    let at = a_at.map_err(|misuse| self.misuse(misuse))?;
                    self.lines(rank, m.a, at, m.rows, m.stored())?
                }
                false => Vec::new(),
            };
            for part in m.parts() {
                let mut results = Vec::new();
                for (row, &lane) in part.lanes.iter().enumerate() {
                    let stored = match rows.get(row) {
                        Some(row) => row.clone(),
                        None => self.row_in_cells(i, &m, rank, lane),
                    };
                    let met: Vec<usize> =
                        (0..m.stored()).map(|index| self.met(i, &m, rank, lane, index)).collect();
                    let stored: Vec<u64> = stored.into_iter().map(|bits| m.signed(bits)).collect();
                    let of_row = self.scales(i, &m, rank, &part, Matrix::A, row);
                    for column in part.columns.clone() {
                        let (owner, number) = m.column_of_b(column);
                        let column_of_b: Vec<u64> = met.iter().map(|&k| columns[owner][number][k]).collect();
                        let cell =
                            Cell { lane: d.lane + lane, column: d.column + column - part.columns.start };
                        let c = match accumulates {
                            true => m.input(self.cta.cluster.tensor_memory(rank).get(cell), scale),
                            false => 0,
                        };
                        let of_column = self.scales(i, &m, rank, &part, Matrix::B, column);
                        let scales = of_row.as_deref().zip(of_column.as_deref());
                        results.push((cell, m.element(&stored, &column_of_b, scales, c) as u32));
                    }
                }
                let mut memory = self.cta.cluster.tensor_memory(rank);
                for (cell, value) in results {
                    let word = disabled.get(block * 4 + cell.lane / 32).copied().unwrap_or(0);
                    if word >> (cell.lane % 32) & 1 == 0 {
                        memory.set(cell, value);
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that all cells that a product uses are allocated.
    fn check_cells(&self, i: &Instruction, m: &Multiplication, d: Cell, rank: u32) -> Step {
        let memory = self.cta.cluster.tensor_memory(rank);
        let check = || {
            for part in m.parts() {
                let lanes = part.lanes.last().map_or(0, |lane| lane + 1);
                memory.check(d, lanes, part.columns.len())?;
                if let Some(a) = self.cell(i, "a") {
                    memory.check(a, lanes, m.a.columns(m.stored()))?;
                }
                if let Some(a) = self.cell(i, "scale-a") {
                    memory.check(a, 32, Multiplication::scale_columns(m.rows))?;
                }
                if let Some(b) = self.cell(i, "scale-b") {
                    memory.check(b, part.lanes[0] + 32, Multiplication::scale_columns(part.columns.len()))?;
                }
            }
            self.cell(i, "sparse-meta").map_or(Ok(()), |at| memory.check(at, LANES, m.metadata_columns()))
        };
        check().map_err(|misuse| self.misuse(misuse))
    }

    /// The row of A in a lane of tensor memory.
    fn row_in_cells(&self, i: &Instruction, m: &Multiplication, rank: u32, lane: usize) -> Vec<u64> {
        let (at, memory) = (self.cell(i, "a"), self.cta.cluster.tensor_memory(rank));
        let at = at.unwrap_or(Cell { lane: 0, column: 0 });
        let element = |k| {
            let (column, bit) = m.a.in_cell(k);
            let lane = m.lane_of_a(lane);
            m.a.from_cell(memory.get(at.plus(Cell { lane, column })), bit)
        };
        (0..m.stored()).map(element).collect()
    }

    /// The row of B that a stored element of A is multiplied with.
    fn met(&self, i: &Instruction, m: &Multiplication, rank: u32, lane: usize, index: usize) -> usize {
        let Some(at) = self.cell(i, "sparse-meta") else { return index };
        let (cell, bit) = m.metadata_cell(lane, index);
        m.row_of_b(index, self.cta.cluster.tensor_memory(rank).get(at.plus(cell)) >> bit)
    }

    /// The scales of a row of A or a column of B.
    fn scales(
        &self,
        i: &Instruction,
        m: &Multiplication,
        rank: u32,
        part: &Part,
        matrix: Matrix,
        line: usize,
    ) -> Option<Vec<u64>> {
        let at = self.cell(i, if matrix == Matrix::A { "scale-a" } else { "scale-b" })?;
        let cell = self.cta.cluster.tensor_memory(rank).get(at.plus(m.scale_cell(matrix, part, line)));
        Some((0..m.scale?.count).map(|index| m.scale_bits(matrix, cell, index)).collect())
    }
}
