//! Loads and stores in the middle of a neighbourhood.

use isa::enumerate::Spelling;
use isa::{Kind, Space};

use super::super::{Generator, Place};
use super::places::Cell;
use super::results::Value;
use super::{Hood, Source, Target};
use crate::catalog::AccessForm;

impl Generator<'_, '_> {
    /// The register widths that an access allows: at least the element's.
    fn widths(&self, form: &AccessForm) -> Vec<u32> {
        let all = [8, 16, 32, 64, 128].into_iter().filter(|&bits| bits >= form.ty.bits());
        all.filter(|&bits| bits < 128 || self.has_quads()).collect()
    }

    /// The width of one register, mostly the element's.
    fn width(&mut self, form: &AccessForm, wider: bool) -> u32 {
        let widths = self.widths(form);
        match self.random.below(10) {
            0..6 if !wider => widths[usize::from(widths[0] == 8 && widths.len() > 1)],
            9 => *self.random.pick(&widths),
            _ => *self.random.pick(&widths[..widths.len().min(4)]),
        }
    }

    /// The memory of an access in the middle.
    fn access_cell(
        &mut self,
        hood: &mut Hood,
        form: &AccessForm,
        spelling: &Spelling,
        place: &Place,
    ) -> Option<Cell> {
        let (space, bytes) = (spelling.picks.space(), form.bytes());
        if !form.writes && reads_only(spelling) {
            return Some(match self.random.percent(50) {
                true => self.input(hood, bytes),
                false => self.alike_in(hood, Space::Global, bytes, place)?,
            });
        }
        let alike = matches!(hood.source, Source::Alike | Source::Same) && !form.writes;
        if alike && space != Space::Local {
            return self.alike_in(hood, space, bytes, place);
        }
        let strided = match form.writes {
            true => hood.target == Target::Strided,
            false => hood.source == Source::Strided,
        };
        let elsewhere = match form.writes {
            true => hood.target == Target::Elsewhere,
            false => hood.source == Source::Elsewhere,
        };
        for _ in 0..30 {
            let cell = match () {
                _ if strided && self.random.percent(80) => self.strided(bytes),
                _ if elsewhere && self.random.percent(80) => self.elsewhere(hood, bytes, form.writes, place),
                _ => self.in_space(hood, space, bytes, form.writes, place),
            };
            if let Some(cell) = cell.filter(|cell| agrees(cell.space, space)) {
                return Some(cell);
            }
        }
        None
    }

    fn alike_in(&mut self, hood: &mut Hood, space: Space, bytes: usize, place: &Place) -> Option<Cell> {
        (0..40).map(|_| self.alike(hood, bytes, place)).find(|cell| agrees(cell.space, space))
    }

    /// `, policy` if the instruction has a cache hint.
    fn policy(&mut self, hood: &mut Hood, spelling: &Spelling) -> String {
        if !spelling.modifiers.contains(&"L2::cache_hint") {
            return String::new();
        }
        let policy = hood.fresh(64);
        hood.line(format!("createpolicy.fractional.L2::evict_last.b64 {policy}, 1.0;"));
        format!(", {policy}")
    }

    pub(super) fn around_load(&mut self, hood: &mut Hood, form: &AccessForm, place: &Place) -> Option<()> {
        let spelling = form.draw(self.dialect, self.random)?;
        let cell = self.access_cell(hood, form, &spelling, place)?;
        let bytes = form.ty.bits() as usize / 8;
        // Overwrites what was stored just before, at least in parts.
        if cell.writable && matches!(hood.source, Source::Loaded | Source::Vector) {
            self.store_into(hood, &cell);
        }
        let policy = self.policy(hood, &spelling);
        let wider = hood.source == Source::Narrow;
        let keeps = hood.target == Target::Register;
        let mut values: Vec<Value> = Vec::new();
        // All registers of a vector have one size.
        let bits = self.width(form, wider);
        for _ in 0..form.vector {
            let mut value = self.own_result(hood, bits);
            if keeps && bits != 8 {
                value.register = self.register(bits);
            }
            // A register occurs only once.
            while values.iter().any(|other| other.register == value.register) {
                value = self.own_result(hood, bits);
            }
            values.push(value);
        }
        let registers: Vec<&str> = values.iter().map(|value| &value.register[..]).collect();
        let registers = match registers[..] {
            [one] => one.to_owned(),
            _ => format!("{{{}}}", registers.join(", ")),
        };
        hood.line(format!("{}{} {registers}, {}{policy};", hood.guard, spelling.mnemonic(), cell.address(0)));
        hood.cells.push(cell.clone());
        // Stores all elements back to their memory, in another order.
        if hood.target == Target::InPlace && form.vector > 1 && cell.writable && self.random.percent(70) {
            let turn = 1 + self.random.below(form.vector - 1);
            let turned: Vec<&str> =
                (0..form.vector).map(|i| &values[(i + turn) % form.vector].register[..]).collect();
            let kind = format!(".v{}.b{}", form.vector, 8 * bytes);
            hood.line(format!("st{}{kind} {}, {{{}}};", cell.space, cell.address(0), turned.join(", ")));
            return Some(());
        }
        // Possibly with a pure instruction between.
        let mut value = self.random.pick(&values).clone();
        if matches!(value.bits, 16 | 32 | 64) && !keeps && self.random.percent(50) {
            let (other, result) = (self.register(value.bits), hood.fresh(value.bits));
            let operation = *self.random.pick(&["add.u", "max.s", "mul.lo.u", "sub.s"]);
            hood.line(format!("{operation}{} {result}, {}, {other};", value.bits, value.register));
            value.register = result;
        }
        if hood.target == Target::InPlace && !cell.writable {
            return None;
        }
        self.hand_on(hood, &value, place)
    }

    /// Stores to a cell: to all of it, to a part, or to all of it as a vector.
    fn store_into(&mut self, hood: &mut Hood, cell: &Cell) {
        let bytes = *self.random.pick(&[1, 2, 4, 8].map(|bytes: usize| bytes.min(cell.bytes)));
        let bits = (8 * bytes as u32).max(16);
        let length = (cell.bytes / bytes).min(4).min(16 / bytes);
        if length > 1 && self.random.percent(50) {
            let values: Vec<String> = (0..length).map(|_| self.register(bits)).collect();
            let values = values.join(", ");
            hood.line(format!(
                "st{}.v{length}.b{} {}, {{{values}}};",
                cell.space,
                8 * bytes,
                cell.address(0)
            ));
        } else {
            let (offset, value) = (self.random.below(cell.bytes / bytes) * bytes, self.register(bits));
            hood.line(format!("st{}.b{} {}, {value};", cell.space, 8 * bytes, cell.address(offset)));
        }
    }

    pub(super) fn around_store(&mut self, hood: &mut Hood, form: &AccessForm, place: &Place) -> Option<()> {
        let spelling = form.draw(self.dialect, self.random)?;
        let space = spelling.picks.space();
        let in_place =
            hood.target == Target::InPlace || hood.target == Target::Vector && self.random.percent(70);
        if in_place {
            hood.least_cell = form.bytes();
        }
        let wider = matches!(hood.target, Target::Low) || hood.source == Source::Narrow;
        let mut values = Vec::new();
        let bits = self.width(form, wider);
        for _ in 0..form.vector {
            let integer = form.ty.kind() != Kind::Float && form.ty.bits() <= 64;
            if hood.source == Source::Register && integer && self.random.percent(10) {
                values.push(self.random.below(128).to_string());
                continue;
            }
            values.push(self.value(hood, form.ty.bits(), bits, place)?);
        }
        // A result computed just before.
        if self.random.percent(30) {
            let at = self.random.below(values.len());
            let bits = bits_of(&values[at]).filter(|bits| matches!(bits, 16 | 32 | 64));
            if let Some(bits) = bits {
                let (other, result) = (self.register(bits), hood.fresh(bits));
                let operation = *self.random.pick(&["add.u", "min.u", "mul.lo.u", "sub.s"]);
                hood.line(format!("{operation}{bits} {result}, {}, {other};", values[at]));
                values[at] = result;
            }
        }
        let source = match in_place {
            true => self.source_place(hood, form.bytes()).filter(|(cell, _)| agrees(cell.space, space)),
            false => None,
        };
        if in_place && source.is_none() && hood.target == Target::InPlace {
            return None;
        }
        let (cell, offset) = match source {
            Some(source) => source,
            None => (self.access_cell(hood, form, &spelling, place)?, 0),
        };
        let policy = self.policy(hood, &spelling);
        let text = match &values[..] {
            [one] => one.clone(),
            all => format!("{{{}}}", all.join(", ")),
        };
        let address = cell.address(offset);
        hood.line(format!("{}{} {address}, {text}{policy};", hood.guard, spelling.mnemonic()));
        self.after_store(hood, &cell, offset, form, &text);
        Some(())
    }

    /// The statements after a store.
    fn after_store(&mut self, hood: &mut Hood, cell: &Cell, offset: usize, form: &AccessForm, values: &str) {
        let bytes = form.bytes().min(8);
        let bits = (8 * bytes as u32).max(16);
        match hood.target {
            // Its memory is read again.
            Target::ReadAgain => {
                let (register, kind) = (self.register(bits), 8 * bytes);
                hood.line(format!("ld{}.b{kind} {register}, {};", cell.space, cell.address(offset)));
            }
            // One of its values remains live.
            Target::Register | Target::Copied => {
                let all: Vec<&str> = values.trim_matches(['{', '}']).split(", ").collect();
                let register = (*self.random.pick(&all)).to_owned();
                if let Some(bits) = bits_of(&register) {
                    self.keep(hood, &Value { register, bits });
                }
            }
            // The store ends the basic block.
            Target::Branch => {
                let (predicate, label, word) = (self.predicate(), self.label(), self.word());
                hood.line(format!("@{predicate} bra {label};\nadd.u32 {word}, {word}, 1;\n{label}:"));
            }
            _ => {}
        }
    }
}

/// The width of a register, by its name.
fn bits_of(register: &str) -> Option<u32> {
    Some(match register.trim_start_matches("%n").trim_start_matches('%').get(..1)? {
        "b" => 8,
        "h" => 16,
        "r" => 32,
        "d" => 64,
        "q" => 128,
        _ => return None,
    })
}

/// Whether it loads from read-only memory.
fn reads_only(spelling: &Spelling) -> bool {
    spelling.modifiers.contains(&"nc") || spelling.form.form().opcode == isa::Opcode::Ldu
}

/// Whether an access in `space` may access memory whose address is in the space `cell`.
fn agrees(cell: &str, space: Space) -> bool {
    match space {
        Space::Generic => cell.is_empty(),
        Space::Global => cell == ".global",
        Space::Shared => cell == ".shared",
        Space::Local => cell == ".local",
        Space::Const => cell == ".const",
        Space::Param => cell == ".param",
        _ => false,
    }
}
