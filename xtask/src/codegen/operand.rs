//! The operand column: `p[|q], a:u32, {!}c{, cache-policy:b64}`. The notation is described in isa/README.md.

use super::emit::variant;
use super::table::Row;

/// One operand.
#[derive(Clone)]
pub struct Operand {
    pub name: String,
    pub access: &'static str,
    pub kind: &'static str,
    /// Rust text of the `OperandType`.
    pub ty: String,
    pub second: &'static str,
    /// Rust text of the `Elements`.
    pub elements: String,
    pub negatable: bool,
    /// Rust text of the `Presence`.
    pub presence: String,
    pub wider: bool,
    pub sink: bool,
    pub open: bool,
    pub range: Option<(i64, i64)>,
}

/// Reads the operand column of `row`, whose slots are known.
pub fn operands(text: &str, row: &Row) -> Result<Vec<Operand>, String> {
    let mut operands = Vec::new();
    let mut rest = text.trim();
    let mut presence = "Always".to_string();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("{,") {
            presence = "Optional".into();
            rest = after.trim_start();
            continue;
        }
        if let Some(after) = rest.strip_prefix(',') {
            rest = after.trim_start();
            continue;
        }
        if let Some(after) = rest.strip_prefix('}') {
            rest = after.trim_start();
            continue;
        }
        let length = length(rest);
        if length == 0 {
            return Err(format!("cannot read operand at `{rest}`"));
        }
        let (text, condition) = match rest[..length].split_once(" with ") {
            Some((text, modifier)) => (text, Some(modifier.trim().trim_start_matches('.'))),
            None => (&rest[..length], None),
        };
        let mut operand = operand(text.trim(), row)?;
        operand.presence = match condition {
            Some(modifier) => format!("With(Mod::{})", variant(modifier)),
            None => presence.clone(),
        };
        operands.push(operand);
        rest = rest[length..].trim_start();
    }
    Ok(operands)
}

/// Where the operand at the start of `text` ends.
fn length(text: &str) -> usize {
    let start = if text.starts_with("{!}") || text.starts_with("{-}") { 3 } else { 0 };
    text[start..].find([',', '{', '}']).map_or(text.len(), |end| start + end)
}

fn operand(text: &str, row: &Row) -> Result<Operand, String> {
    let mut operand = Operand {
        name: String::new(),
        access: "Read",
        kind: "Source",
        ty: String::new(),
        second: "None",
        elements: "One".into(),
        negatable: false,
        presence: String::new(),
        wider: false,
        sink: false,
        open: false,
        range: None,
    };
    let mut text = text;
    if let Some(after) = text.strip_prefix("{!}") {
        operand.negatable = true;
        operand.ty = "Fixed(Type::Pred)".into();
        text = after;
    }
    if let Some(after) = text.strip_prefix("{-}") {
        operand.negatable = true;
        text = after;
    }
    if let Some(inner) = text.strip_prefix('[') {
        operand.name = inner.strip_suffix(']').ok_or_else(|| format!("`{text}` lacks `]`"))?.into();
        operand.kind = match operand.name.as_str() {
            "texture" | "surface" => "Texels",
            "texref" | "surfref" => "Handle",
            _ => "Address",
        };
        operand.ty = "None".into();
        return Ok(operand);
    }
    let (mut head, ty) = match text.split_once(':') {
        Some((head, ty)) => (head, Some(ty)),
        None => (text, None),
    };
    // `b:~u32`
    let ty = ty.map(|ty| ty.strip_prefix('~').inspect(|_| operand.open = true).unwrap_or(ty));
    if let Some(before) = head.strip_suffix('+') {
        operand.wider = true;
        head = before;
    }
    if let Some(before) = head.strip_suffix("|_") {
        operand.sink = true;
        head = before;
    }
    if let Some((before, kind)) = head.split_once('<') {
        let kind = kind.trim_end_matches('>');
        let (kind, values) = kind.split_once(' ').map_or((kind, None), |(kind, values)| (kind, Some(values)));
        if let Some(values) = values {
            let (least, greatest) = values.split_once("..").unwrap_or((values, values));
            let number = |text: &str| text.parse::<i64>().map_err(|_| format!("`{text}` is no number"));
            operand.range = Some((number(least)?, number(greatest)?));
        }
        operand.kind = match kind {
            "unpack" => "MovDestination",
            "pack" => "MovSource",
            "in" => "Source",
            "imm" => "Immediate",
            "reg" => "Register",
            "label" => "Label",
            "targets" => "BranchTargets",
            "call" => "Call",
            "address" => "AddressValue",
            other => return Err(format!("unknown operand kind `<{other}>`")),
        };
        head = before;
    }
    if let Some((before, count)) = head.split_once('.') {
        operand.elements = match count {
            "vec" => "Vector".into(),
            "frag" => "Fragment".into(),
            "braced" => "Braced".into(),
            "geom" => "Geometry".into(),
            "part" => "Selected(Selectable::Part)".into(),
            "halves" => "Selected(Selectable::Halves)".into(),
            "bytes" => "Selected(Selectable::Bytes)".into(),
            "halfmask" => "Selected(Selectable::HalfMask)".into(),
            "bytemask" => "Selected(Selectable::ByteMask)".into(),
            count => format!("Fixed({})", count.parse::<u8>().map_err(|_| format!("bad count in `{text}`"))?),
        };
        head = before;
    }
    if let Some((before, second)) = head.split_once("[|") {
        second.strip_suffix(']').ok_or_else(|| format!("`{text}` lacks `]`"))?;
        (operand.second, head) = ("Optional", before);
    } else if let Some((before, _)) = head.split_once('|') {
        (operand.second, head) = ("Required", before);
    }
    operand.name = head.trim().into();
    if !operand.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        || operand.name.is_empty()
    {
        return Err(format!("bad operand name `{head}`"));
    }
    let is_result =
        matches!(operand.name.as_str(), "d" | "p" | "redval" | "report") || operand.name.starts_with("out-");
    if is_result && !operand.negatable {
        operand.access = "Write";
        if operand.kind == "Source" {
            operand.kind = "Register";
        }
    }
    // The factors of a product are never constants.
    if operand.elements == "Fragment" && matches!(operand.name.as_str(), "a" | "b") {
        operand.kind = "Register";
    }
    if matches!(operand.kind, "Label" | "BranchTargets" | "Call") {
        operand.ty = "None".into();
    }
    if operand.ty.is_empty() {
        operand.ty = match ty {
            Some(ty) => explicit_type(ty.trim(), row)?,
            None if operand.name == "p" => "Fixed(Type::Pred)".into(),
            None => default_type(&operand.name, operand.access == "Write", row)?,
        };
    }
    Ok(operand)
}

fn explicit_type(text: &str, row: &Row) -> Result<String, String> {
    if text == "address" {
        return Ok("Address".into());
    }
    if let Some((function, name)) = text.split_once('(') {
        let name = name.trim_end_matches(')');
        let slot = row.type_slot(name).ok_or_else(|| format!("no type slot `.{name}`"))?;
        return match function {
            "wide" => Ok(format!("Wide({slot})")),
            "bits" => Ok(format!("Bits({slot})")),
            other => Err(format!("unknown type function `{other}`")),
        };
    }
    // `c:.s32` has the type that the row's modifier `.s32` says, `c:s32` is an integer whatever the row says.
    if let Some(name) = text.strip_prefix('.') {
        let slot = row.type_slot(name).ok_or_else(|| format!("no type slot `.{name}`"))?;
        return Ok(format!("Pick({slot})"));
    }
    if let Some(ty) = isa::Type::from_name(text) {
        return Ok(format!("Fixed(Type::{ty:?})"));
    }
    let slot = row.type_slot(text).ok_or_else(|| format!("`{text}` is neither a type slot nor a type"))?;
    Ok(format!("Pick({slot})"))
}

/// The manual's convention: `d` has `.dtype`, `a` has `.atype` or `.abtype`, a source has `.stype`; else the first type.
fn default_type(name: &str, write: bool, row: &Row) -> Result<String, String> {
    let own = row.type_slots().position(|slot| match slot.name.strip_suffix("type") {
        Some(letters) => {
            name.len() == 1
                && !letters.is_empty()
                && letters != "s"
                && letters.len() <= 3
                && letters.contains(name)
        }
        None => false,
    });
    let source = || if write { None } else { row.type_slot("stype") };
    match own.or_else(source) {
        Some(slot) => Ok(format!("Pick({slot})")),
        None if row.type_slots().next().is_some() => Ok("Pick(0)".into()),
        None => Err(format!("operand `{name}` needs a type: `{name}:u32`")),
    }
}
