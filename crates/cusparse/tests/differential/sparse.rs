//! Sparse matrices in all formats.

use std::collections::BTreeMap;

use fastrand::Rng;

use crate::rig::*;

/// How matrices are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csr = 1,
    Csc = 2,
    Coo = 3,
    BlockedEll = 5,
    Bsr = 6,
    SlicedEll = 7,
}

/// The elements of a sparse matrix.
#[derive(Clone, Debug)]
pub struct Sample {
    pub size: [usize; 2],
    pub entries: BTreeMap<(usize, usize), Num>,
}

impl Sample {
    pub fn random(ty: Ty, size: [usize; 2], rng: &mut Rng) -> Sample {
        let density = rng.f64() * 0.6;
        let all = (0..size[0] * size[1]).filter(|_| rng.f64() < density).collect::<Vec<_>>();
        let entries = all.into_iter().map(|at| ((at / size[1], at % size[1]), ty.random(rng))).collect();
        Sample { size, entries }
    }

    pub fn dense(&self) -> Dense {
        Dense::new(self.size[0], self.size[1], |i, j| self.entries.get(&(i, j)).copied().unwrap_or_default())
    }

    pub fn row(&self, row: usize) -> Vec<(usize, Num)> {
        self.entries.range((row, 0)..(row + 1, 0)).map(|(&(_, column), &value)| (column, value)).collect()
    }

    pub fn offsets(&self) -> Vec<i64> {
        (0..=self.size[0]).map(|row| self.entries.range(..(row, 0)).count() as i64).collect()
    }

    pub fn columns(&self) -> Vec<i64> {
        self.entries.keys().map(|key| key.1 as i64).collect()
    }

    pub fn rows(&self) -> Vec<i64> {
        self.entries.keys().map(|key| key.0 as i64).collect()
    }

    pub fn values(&self) -> Vec<Num> {
        self.entries.values().copied().collect()
    }

    pub fn transposed(&self) -> Sample {
        let entries = self.entries.iter().map(|(&(i, j), &value)| ((j, i), value)).collect();
        Sample { size: [self.size[1], self.size[0]], entries }
    }
}

/// A sparse matrix in memory: the descriptor, offsets or rows, other indices, values.
pub struct SparseMatrix {
    pub descriptor: u64,
    pub arrays: [Buffer; 3],
    /// For each value its element, or none for padding.
    pub elements: Vec<Option<(usize, usize)>>,
}

impl SparseMatrix {
    /// Stores a sample; a matrix of blocks has sizes that blocks of 2 x 3 (or 2 x 2) divide.
    pub fn new(ty: Ty, format: Format, sample: &Sample, rng: &mut Rng) -> SparseMatrix {
        let (width, base) = (rng.u64(2..4), i64::from(rng.bool()));
        let [rows, columns] = sample.size;
        let mut descriptor = 0;
        let place = at(&mut descriptor);
        let indices = |values: &[i64]| Buffer::indices(values, width, base);
        let build = |elements: Vec<Option<(usize, usize)>>| {
            let values: Vec<Num> = elements
                .iter()
                .map(|e| e.map_or(NAN, |e| sample.entries.get(&e).copied().unwrap_or_default()))
                .collect();
            (ty.buffer(&values), elements)
        };
        let all: Vec<_> = sample.entries.keys().copied().map(Some).collect();
        let (first, second, (values, elements), arguments) = match format {
            Format::Csr => {
                let (first, second) = (indices(&sample.offsets()), indices(&sample.columns()));
                let head = vec![rows as u64, columns as u64, all.len() as u64];
                (first, second, build(all), (head, vec![width, width]))
            }
            Format::Csc => {
                let turned = sample.transposed();
                let (first, second) = (indices(&turned.offsets()), indices(&turned.columns()));
                let all: Vec<_> = turned.entries.keys().map(|&(j, i)| Some((i, j))).collect();
                let head = vec![rows as u64, columns as u64, all.len() as u64];
                (first, second, build(all), (head, vec![width, width]))
            }
            Format::Coo => {
                let (first, second) = (indices(&sample.rows()), indices(&sample.columns()));
                let head = vec![rows as u64, columns as u64, all.len() as u64];
                (first, second, build(all), (head, vec![width]))
            }
            Format::Bsr => {
                let (down, across, by_rows) = (2, if columns % 3 == 0 { 3 } else { 2 }, rng.bool());
                let blocks: Sample = Sample {
                    size: [rows / down, columns / across],
                    entries: sample
                        .entries
                        .keys()
                        .map(|&(i, j)| ((i / down, j / across), [0.0; 2]))
                        .collect(),
                };
                let elements = blocks.entries.keys().flat_map(|&(i, j)| {
                    (0..down * across).map(move |at| {
                        let (r, c) =
                            if by_rows { (at / across, at % across) } else { (at % down, at / down) };
                        Some((i * down + r, j * across + c))
                    })
                });
                let head = vec![
                    (rows / down) as u64,
                    (columns / across) as u64,
                    blocks.entries.len() as u64,
                    down as u64,
                    across as u64,
                ];
                let (first, second) = (indices(&blocks.offsets()), indices(&blocks.columns()));
                (first, second, build(elements.collect()), (head, vec![width, width]))
            }
            Format::BlockedEll => {
                let block = 2;
                let lines: Vec<Vec<usize>> = (0..rows / block)
                    .map(|line| {
                        let keys = sample.entries.keys().filter(|key| key.0 / block == line);
                        let mut of: Vec<usize> = keys.map(|key| key.1 / block).collect();
                        of.sort_unstable();
                        of.dedup();
                        of
                    })
                    .collect();
                let most = lines.iter().map(Vec::len).max().unwrap_or(0);
                let of_line = |line: &Vec<usize>| {
                    let mut line: Vec<i64> = line.iter().map(|&column| column as i64).collect();
                    line.resize(most, -1 - base);
                    line
                };
                let ell: Vec<i64> = lines.iter().flat_map(of_line).collect();
                let mut elements = Vec::new();
                for row in 0..rows {
                    for at in 0..most * block {
                        let column = lines[row / block].get(at / block);
                        elements.push(column.map(|&column| (row, column * block + at % block)));
                    }
                }
                let head = vec![rows as u64, columns as u64, block as u64, (most * block) as u64];
                (Buffer::new(&[]), indices(&ell), build(elements), (head, vec![width]))
            }
            Format::SlicedEll => {
                let slice = rng.usize(1..4);
                let (mut offsets, mut ell, mut elements) = (vec![0], Vec::new(), Vec::new());
                for first in (0..rows).step_by(slice) {
                    let of: Vec<_> = (first..first + slice)
                        .map(|row| if row < rows { sample.row(row) } else { vec![] })
                        .collect();
                    let most = of.iter().map(Vec::len).max().unwrap_or(0);
                    for at in 0..most {
                        for (within, row) in of.iter().enumerate() {
                            let entry = row.get(at);
                            ell.push(entry.map_or(-1 - base, |entry| entry.0 as i64));
                            elements.push(entry.map(|entry| (first + within, entry.0)));
                        }
                    }
                    offsets.push(ell.len() as i64);
                }
                let head = vec![
                    rows as u64,
                    columns as u64,
                    sample.entries.len() as u64,
                    ell.len() as u64,
                    slice as u64,
                ];
                (indices(&offsets), indices(&ell), build(elements), (head, vec![width, width]))
            }
        };
        let name = format!("cusparseCreate{format:?}");
        let (head, widths) = arguments;
        let arrays = [first, second, values];
        let pointers =
            arrays.iter().map(|buffer| buffer.address).skip(usize::from(format == Format::BlockedEll));
        let mut all = vec![place];
        all.extend(head);
        all.extend(pointers);
        all.extend(widths);
        all.extend([base as u64, ty as u64]);
        if format == Format::Bsr {
            // The order of the blocks that were made above: element 1 of a block is in its first row if it lies by rows.
            let by_rows = elements.get(1).is_none_or(|&e| e.map(|e| e.0) == elements[0].map(|e| e.0));
            all.push(if by_rows { 2 } else { 1 });
        }
        ok(&name, &all);
        SparseMatrix { descriptor, arrays, elements }
    }
}

impl Drop for SparseMatrix {
    fn drop(&mut self) {
        call("cusparseDestroySpMat", &[self.descriptor]);
    }
}
