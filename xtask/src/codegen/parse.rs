//! Reads one `.isa` file. The notation is described in isa/README.md.

use super::constant::{constants, unknown_operand};
use super::table::{Choice, Condition, Consequence, Fault, Gate, Requirement, Row, Rule, Slot, Table};
use super::{message, operand};
use isa::{Property, Stage, Target, Type, Version};
use std::collections::BTreeMap;

/// Slot definitions by name.
pub type Sets = BTreeMap<String, Vec<Choice>>;

/// A block: rows, and the indented lines that follow and hold for each of them.
#[derive(Default)]
struct Block {
    section: String,
    opcode: String,
    rows: Vec<(usize, String)>,
    attributes: Vec<(usize, String)>,
    /// The indented lines right behind the heading, which hold for all rows below it.
    shared: Vec<(usize, String)>,
    /// Rows have followed the heading.
    has_rows: bool,
}

/// Reads `text` into `table`.
pub fn file(text: &str, table: &mut Table) -> Result<(), (usize, String)> {
    let mut block = Block::default();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.split_once("//").map_or(line, |(before, _)| before).trim_end();
        if line.is_empty() {
            // A line that holds nothing at all, not even a comment, ends a block.
            if text.lines().nth(index).is_some_and(|whole| whole.trim().is_empty()) {
                finish(&mut block, table)?;
            }
            continue;
        }
        if let Some(header) = line.strip_prefix('@') {
            finish(&mut block, table)?;
            let (section, opcode) =
                header.trim().split_once(' ').ok_or((number, "`@ section opcode` expected".to_string()))?;
            block = Block { section: section.into(), opcode: opcode.trim().into(), ..Block::default() };
        } else if let Some(rest) = line.strip_prefix("gate ") {
            token_gates(rest, table).map_err(|e| (number, e))?;
        } else if let Some(rest) = line.strip_prefix("elsewhere ") {
            elsewhere(rest, table).map_err(|e| (number, e))?;
        } else if let Some(rest) = line.strip_prefix("stage ") {
            table.stages.push(message::stage(rest, &table.sets).map_err(|e| (number, e))?);
        } else if message::is_line(line) {
            table.messages.push(message::line(line, &table.sets).map_err(|e| (number, e))?);
        } else if line.starts_with('.') {
            define(line, &mut table.sets, &table.rows).map_err(|e| (number, e))?;
        } else if line.starts_with(' ') {
            match (block.rows.is_empty(), block.has_rows) {
                (false, _) => block.attributes.push((number, line.trim().into())),
                (true, false) => block.shared.push((number, line.trim().into())),
                (true, true) => return Err((number, "the line belongs to no row".into())),
            }
        } else {
            if !block.attributes.is_empty() {
                finish(&mut block, table)?;
            }
            block.rows.push((number, line.into()));
            block.has_rows = true;
        }
    }
    finish(&mut block, table)
}

/// Turns a block into rows and leaves its header for the next one.
fn finish(block: &mut Block, table: &mut Table) -> Result<(), (usize, String)> {
    let mut sets = table.sets.clone();
    let mut own: Sets = BTreeMap::new();
    let attributes = || block.shared.iter().chain(&block.attributes);
    for (number, line) in attributes().filter(|(_, line)| line.starts_with('.')) {
        // A block's own definition hides the shared one; its further lines extend it.
        let name = line[1..].split(['=', ' ']).next().unwrap_or_default().to_string();
        let mut scratch = sets.clone();
        scratch.remove(&name);
        if let Some(begun) = own.get(&name) {
            scratch.insert(name.clone(), begun.clone());
        }
        for (known, choices) in &sets {
            if *known != name {
                scratch.entry(known.clone()).or_insert_with(|| choices.clone());
            }
        }
        define(line, &mut scratch, &table.rows).map_err(|e| (*number, e))?;
        if let Some(choices) = scratch.remove(&name) {
            own.insert(name.clone(), choices.clone());
            sets.insert(name, choices);
        }
    }
    let first = table.rows.len();
    for (number, line) in &block.rows {
        let mut row = row(line, block, &sets, table).map_err(|e| (*number, e))?;
        for (number, line) in attributes().filter(|(_, line)| !line.starts_with('.')) {
            attribute(line, &mut row, &sets).map_err(|e| (*number, e))?;
        }
        table.rows.push(row);
    }
    for (number, line) in &block.attributes {
        if let Some(operand) = unknown_operand(line, &table.rows[first..]) {
            return Err((*number, format!("no row above has an operand `{operand}`")));
        }
    }
    block.rows.clear();
    block.attributes.clear();
    Ok(())
}

/// `.a .b : gates`: what these modifiers need wherever they stand.
fn token_gates(line: &str, table: &mut Table) -> Result<(), String> {
    let (names, text) = line.split_once(" : ").ok_or("` : ` expected")?;
    for name in names.split_whitespace() {
        let name = name.strip_prefix('.').ok_or_else(|| format!("`{name}` lacks its dot"))?;
        let more = gates_of(name, text)?;
        table.token_gates.entry(name.into()).or_default().extend(more);
    }
    Ok(())
}

/// `elsewhere [late] .a .b [: gates]`
fn elsewhere(line: &str, table: &mut Table) -> Result<(), String> {
    let (late, line) = line.strip_prefix("late ").map_or((false, line), |rest| (true, rest));
    let (names, text) = match line.split_once(" : ") {
        Some((names, text)) => (names, Some(text)),
        None => (line, None),
    };
    for name in names.split_whitespace() {
        let name = name.strip_prefix('.').ok_or_else(|| format!("`{name}` lacks its dot"))?;
        let gates = text.map_or(Ok(Vec::new()), |text| gates_of(name, text))?;
        if table.elsewhere.insert(name.into(), (late, gates)).is_some() {
            return Err(format!("`.{name}` stands twice"));
        }
    }
    Ok(())
}

/// `.name = .a .b $other [but .c] [: gates]`, extending an earlier definition of the name.
fn define(line: &str, sets: &mut Sets, rows: &[Row]) -> Result<(), String> {
    let (name, rest) = line.split_once('=').ok_or("`=` expected")?;
    let name = name.trim().trim_start_matches('.').to_string();
    let (names, gate_text) = match rest.split_once(" : ") {
        Some((names, gates)) => (names, Some(gates)),
        None => (rest, None),
    };
    let (names, but) = names.split_once(" but ").unwrap_or((names, ""));
    let mut choices = sets.remove(&name).unwrap_or_default();
    for choice in names.split_whitespace() {
        if let Some(other) = choice.strip_prefix('$') {
            let known = sets.get(other).cloned().or_else(|| said_elsewhere(other, rows));
            for choice in known.ok_or_else(|| format!("no set `{other}`"))? {
                if !choices.iter().any(|other| other.name == choice.name) {
                    choices.push(choice);
                }
            }
            continue;
        }
        let choice = choice.strip_prefix('.').ok_or_else(|| format!("`{choice}` lacks its dot"))?;
        let (is_free, gate_text) = match gate_text {
            Some("none") => (true, None),
            Some(text) => text.strip_prefix("only ").map_or((false, Some(text)), |text| (true, Some(text))),
            None => (false, None),
        };
        let gates = match gate_text {
            Some(text) => gates_of(choice, text)?,
            None => Vec::new(),
        };
        choices.push(Choice { name: choice.into(), gates, is_free });
    }
    for word in but.split_whitespace() {
        let excluded: Vec<String> = match word.split_once('$') {
            Some((_, other)) => said_elsewhere(other, rows).into_iter().flatten().map(|c| c.name).collect(),
            None => vec![word.trim_start_matches('.').into()],
        };
        if !choices.iter().any(|choice| excluded.contains(&choice.name)) {
            return Err(format!("`{word}` is not in the set"));
        }
        choices.retain(|choice| !excluded.contains(&choice.name));
    }
    sets.insert(name, choices);
    Ok(())
}

/// A set that needs no definition: `ld.cop` is what slots `.cop` of rows above take in `ld`, `type.packed` a class of
/// types.
fn said_elsewhere(name: &str, rows: &[Row]) -> Option<Vec<Choice>> {
    let (opcode, slot) = name.split_once('.')?;
    let is_of_class = |ty: &Type| match slot {
        "any" => true,
        "float" => ty.is_float(),
        "narrow" => ty.is_float() && ty.element().bits() <= 8,
        "packed" => ty.lanes() > 1,
        _ => false,
    };
    let mut names: Vec<&str> = match opcode {
        "type" => Type::ALL.iter().filter(|ty| is_of_class(ty)).map(|ty| ty.name()).collect(),
        _ => {
            let slots = rows.iter().filter(|row| row.opcode == opcode).flat_map(|row| &row.slots);
            let choices = slots.filter(|other| other.name == slot).flat_map(|slot| &slot.choices);
            choices.map(|choice| choice.name.as_str()).collect()
        }
    };
    names.sort_unstable();
    names.dedup();
    let choice = |name: &str| Choice { name: name.into(), gates: Vec::new(), is_free: false };
    (!names.is_empty()).then(|| names.into_iter().map(choice).collect())
}

/// Gates in which `{word}` stands for the modifier that has them.
fn gates_of(word: &str, text: &str) -> Result<Vec<Gate>, String> {
    gates(&text.replace("{word}", word), &format!("Feature '.{word}'"), Stage::Token)
}

/// `[token|early|form|modifier|shape|result|rounding|late] [Feature|Instruction|Modifier 'text'] sm 53 ptx 4.2; ...`
fn gates(text: &str, default_subject: &str, default_stage: Stage) -> Result<Vec<Gate>, String> {
    let mut gates = Vec::new();
    for part in text.split(';') {
        let mut rest = part.trim();
        let mut stage = default_stage;
        let mut subject = default_subject.to_string();
        for (word, its_stage) in Stage::NAMES {
            if let Some(after) = rest.strip_prefix(word).and_then(|rest| rest.strip_prefix(' ')) {
                (stage, rest) = (its_stage, after.trim_start());
            }
        }
        if let Some(close) = rest.rfind('\'') {
            subject = rest[..=close].into();
            rest = &rest[close + 1..];
        }
        let words: Vec<&str> = rest.split_whitespace().collect();
        for pair in words.chunks(2) {
            let requires = match pair {
                ["ptx", version] => Requirement::Version(
                    Version::parse(version).ok_or_else(|| format!("`{version}` is no version"))?,
                ),
                ["sm", targets] => Requirement::Targets(
                    targets
                        .split('/')
                        .map(|t| {
                            Target::parse(&format!("sm_{t}")).ok_or_else(|| format!("`sm_{t}` is no target"))
                        })
                        .collect::<Result<_, _>>()?,
                ),
                ["until", both] => match both.split_once('/') {
                    Some((version, target)) => {
                        Version::parse(version).zip(Target::parse(&format!("sm_{target}")))
                    }
                    None => Version::parse(both).map(|version| (version, Target::sm(0))),
                }
                .map(|(version, target)| Requirement::Until(version, target))
                .ok_or_else(|| format!("cannot read `until {both}`"))?,
                ["since", all] => match all.split('/').collect::<Vec<_>>()[..] {
                    [version, new, old] => Version::parse(version)
                        .zip(Target::parse(&format!("sm_{new}")))
                        .zip(Target::parse(&format!("sm_{old}"))),
                    _ => None,
                }
                .map(|((version, new), old)| Requirement::Since(version, new, old))
                .ok_or_else(|| format!("cannot read `since {all}`"))?,
                other => return Err(format!("cannot read gate `{}`", other.join(" "))),
            };
            gates.push(Gate { subject: subject.clone(), requires, stage });
        }
    }
    Ok(gates)
}

fn row(line: &str, block: &Block, sets: &Sets, table: &Table) -> Result<Row, String> {
    let split = line.rfind(" sem ").or_else(|| line.rfind(" effect ")).ok_or("`sem` or `effect` expected")?;
    let (syntax, action) = (line[..split].trim(), line[split..].trim());
    let (kind, name) = action.split_once(' ').ok_or("name of the action expected")?;
    let (head, operand_text) = match syntax.split_once(char::is_whitespace) {
        Some((head, operands)) => (head, operands.trim()),
        None => (syntax, ""),
    };
    let opcode_end = head.find(['.', '{']).unwrap_or(head.len());
    let mut row = Row {
        opcode: head[..opcode_end].into(),
        // The manual's syntax does not show where `_` may stand, where braces mean nothing, nor what registers are open.
        syntax: ["|_", ".braced", "~"]
            .iter()
            .fold(format!("{head} {operand_text}").trim().into(), |text: String, word| {
                text.replace(word, "")
            }),
        section: block.section.clone(),
        slots: slots(&head[opcode_end..], sets)?,
        operands: Vec::new(),
        ignored: Vec::new(),
        ignored_mods: Vec::new(),
        head: 0,
        rules: Vec::new(),
        gates: Vec::new(),
        properties: Vec::new(),
        constants: Vec::new(),
        reads_carry: false,
        writes_carry: false,
        lenient: false,
        action: (kind.into(), name.trim().into()),
    };
    if row.opcode != block.opcode {
        return Err(format!("row of `{}` under the heading of `{}`", row.opcode, block.opcode));
    }
    row.operands = operand::operands(operand_text, &row)?;
    for choice in row.slots.iter_mut().flat_map(|slot| &mut slot.choices) {
        let elsewhere = table.token_gates.get(&choice.name).filter(|_| !choice.is_free);
        let mut all = elsewhere.cloned().unwrap_or_default();
        all.append(&mut choice.gates);
        for gate in &mut all {
            gate.subject = gate.subject.replace("{opcode}", &row.opcode);
        }
        choice.gates = all;
    }
    Ok(row)
}

/// `.CmpOp{.ftz}.type`
fn slots(text: &str, sets: &Sets) -> Result<Vec<Slot>, String> {
    let mut slots = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let optional = rest.starts_with('{');
        let from = if optional { 2 } else { 1 };
        let body = rest.get(from..).ok_or("a slot's name is missing")?;
        let end = body.find(['.', '{', '}']).unwrap_or(body.len());
        let name = &body[..end];
        if name.is_empty() {
            return Err(format!("cannot read slots at `{rest}`"));
        }
        rest = &body[end..];
        if optional {
            rest = rest.strip_prefix('}').ok_or("`}` expected")?;
        }
        let choices = match sets.get(name) {
            Some(choices) => choices.clone(),
            None => vec![Choice { name: name.into(), gates: Vec::new(), is_free: false }],
        };
        let types = choices.iter().filter(|choice| choice.ty().is_some()).count();
        if types != 0 && (types != choices.len() || optional) {
            return Err(format!("slot `.{name}` must hold types only, and types are never optional"));
        }
        slots.push(Slot { name: name.into(), optional, choices });
    }
    Ok(slots)
}

/// `gate ...`, `default .rn until 3.2/20`, `carry reads writes`, `when CONDITIONS : gate ...`, `when CONDITIONS : needs CONDITIONS [else FAULT]`.
fn attribute(line: &str, row: &mut Row, sets: &Sets) -> Result<(), String> {
    let subject = format!("Feature '{}'", row.opcode);
    if let Some(text) = line.strip_prefix("gate ") {
        row.gates.extend(gates(text, &subject, Stage::Form)?);
    } else if line == "lenient" {
        row.lenient = true;
    } else if let Some(text) = line.strip_prefix("head ") {
        row.head = text.trim().parse().map_err(|_| "a number of slots expected")?;
    } else if let Some(text) = line.strip_prefix("ignore ") {
        for name in names(text, sets)? {
            match Type::from_name(&name) {
                Some(ty) => row.ignored.push(ty),
                None => row.ignored_mods.push(name),
            }
        }
    } else if let Some(text) = line.strip_prefix("has ") {
        row.properties.extend(properties(text, Vec::new())?);
    } else if let Some(text) = line.strip_prefix("constant ") {
        row.constants.extend(constants(text, Vec::new(), row)?);
    } else if let Some(text) = line.strip_prefix("carry ") {
        row.reads_carry = text.contains("reads");
        row.writes_carry = text.contains("writes");
    } else if let Some(text) = line.strip_prefix("default ") {
        let (name, until) =
            text.split_once(' ').ok_or("`default .MODIFIER until VERSION/TARGET` expected")?;
        let name = name.trim_start_matches('.');
        let slot = row.slots.iter().find(|slot| slot.choices.iter().any(|choice| choice.name == name));
        let slot = slot.ok_or_else(|| format!("no slot takes `.{name}`"))?;
        let when = vec![Condition::HasNot(slot.choices.iter().map(|choice| choice.name.clone()).collect())];
        let then = Consequence::Default(name.into(), gates(until, &subject, Stage::Form)?);
        row.rules.push(Rule { when, then });
    } else if let Some(text) = line.strip_prefix("when ") {
        let (when, then) = text.split_once(" : ").ok_or("` : ` expected")?;
        let when = conditions(when, row, sets)?;
        if let Some(text) = then.strip_prefix("has ") {
            row.properties.extend(properties(text, when)?);
            return Ok(());
        } else if let Some(text) = then.strip_prefix("constant ") {
            row.constants.extend(constants(text, when, row)?);
            return Ok(());
        }
        let then = if let Some(text) = then.strip_prefix("gate ") {
            Consequence::Gates(gates(text, &subject, Stage::Form)?)
        } else {
            let text = then.strip_prefix("needs ").ok_or("`gate` or `needs` expected")?;
            let (needs, fault) = match text.split_once(" else ") {
                Some((needs, fault)) => (needs, fault.trim()),
                None => (text, "illegal"),
            };
            let fault = match (fault, when.first()) {
                ("comparison", _) => Fault::Comparison,
                ("types", _) => Fault::Types,
                ("vector", _) => Fault::Vector,
                ("illegal", Some(Condition::Has(mods))) => Fault::Illegal(mods.clone()),
                (other, _) if let Some((m, text)) = other.split_once(" says ") => {
                    Fault::Says(m.trim_start_matches('.').into(), text.into())
                }
                (other, _) => match other.split_once(' ') {
                    Some(("missing", slot)) => Fault::Missing(slot.trim_start_matches('.').into()),
                    Some(("illegal", m)) => Fault::Illegal(vec![m.trim_start_matches('.').into()]),
                    _ => return Err(format!("unknown fault `{other}`")),
                },
            };
            Consequence::Needs(conditions(needs, row, sets)?, fault)
        };
        row.rules.push(Rule { when, then });
    } else {
        return Err(format!("cannot read `{line}`"));
    }
    Ok(())
}

/// `pasted cta-mask`
fn properties(text: &str, when: Vec<Condition>) -> Result<Vec<(Property, Vec<Condition>)>, String> {
    let property = |name| Property::from_name(name).ok_or_else(|| format!("no property `{name}`"));
    text.split_whitespace().map(|name| Ok((property(name)?, when.clone()))).collect()
}

/// `type = .f16 $ints, .ftz, no .sat`
fn conditions(text: &str, row: &Row, sets: &Sets) -> Result<Vec<Condition>, String> {
    text.split(',').map(|part| condition(part.trim(), row, sets)).collect()
}

fn condition(text: &str, row: &Row, sets: &Sets) -> Result<Condition, String> {
    if let Some((slot, types)) = text.split_once('=') {
        let slot = slot.trim().trim_start_matches('.');
        let index = row.type_slot(slot).ok_or_else(|| format!("no type slot `.{slot}`"))?;
        let types = names(types, sets)?
            .iter()
            .map(|name| Type::from_name(name).ok_or_else(|| format!("`.{name}` is no type")))
            .collect::<Result<_, _>>()?;
        return Ok(Condition::TypeIn(index, types));
    }
    match text.strip_prefix("no ") {
        Some(mods) => Ok(Condition::HasNot(names(mods, sets)?)),
        None => Ok(Condition::Has(names(text, sets)?)),
    }
}

pub fn names(text: &str, sets: &Sets) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for word in text.split_whitespace() {
        if let Some(set) = word.strip_prefix('$') {
            let set = sets.get(set).ok_or_else(|| format!("no set `{set}`"))?;
            all.extend(set.iter().map(|choice| choice.name.clone()));
        } else {
            all.push(word.strip_prefix('.').ok_or_else(|| format!("`{word}` lacks its dot"))?.into());
        }
    }
    Ok(all)
}
