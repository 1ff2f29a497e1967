//! `constant OPERANDS : LIMIT ; LIMIT says TEXT`: what constant operands must be, and what ptxas says of others. The
//! notation is described in isa/README.md.

use super::table::{Condition, Constant, Row};

/// Reads a line behind its first word. It holds for the operands that the row has: other rows of its block may have more.
pub fn constants(text: &str, when: Vec<Condition>, row: &Row) -> Result<Vec<Constant>, String> {
    let (text, help) = match text.split_once(" help ") {
        Some((text, help)) => (text, Some(help.to_owned())),
        None => (text, None),
    };
    let (operands, limits) = text.split_once(" : ").ok_or("`constant OPERANDS : LIMITS` expected")?;
    let mut constants = Vec::new();
    for operand in operands.split_whitespace() {
        let Some(known) = row.operands.iter().find(|known| known.name == operand) else { continue };
        let range = known.range.map(|(least, greatest)| format!("{least}..{greatest}"));
        let limits = limits.split(" ; ").filter_map(|text| match &range {
            Some(range) => Some(limit(&text.replace("{range}", range))),
            None => (!text.contains("{range}")).then(|| limit(text)),
        });
        let limits = limits.collect::<Result<_, _>>()?;
        constants.push(Constant { when: when.clone(), operand: operand.into(), limits, help: help.clone() });
    }
    Ok(constants)
}

/// The first operand of a `constant` line that none of these rows has. The line may be about only some of them.
pub fn unknown_operand<'l>(line: &'l str, rows: &[Row]) -> Option<&'l str> {
    let text = line.strip_prefix("constant ").or_else(|| Some(line.split_once(" : constant ")?.1))?;
    let has = |row: &Row, operand: &str| row.operands.iter().any(|known| known.name == operand);
    let mut operands = text.split_once(" : ")?.0.split_whitespace();
    operands.find(|operand| !rows.iter().any(|row| has(row, operand)))
}

/// `0..255`, `4 8 16`, `multiple of 16`, `power of 2 says TEXT`: Rust text of the `Limit`, and what ptxas says.
fn limit(text: &str) -> Result<(String, String), String> {
    let (limit, says) = text.split_once(" says ").map_or((text, None), |(limit, says)| (limit, Some(says)));
    let number = |text: &str| text.parse::<i64>().map_err(|_| format!("`{text}` is no number"));
    let expected = |what: &str| format!("unexpected value '{{value}}', expected to be {what}");
    let positive =
        "Argument {argument} of instruction '{op}' : value '{value}' expected to be a non-zero positive";
    let (limit, usual) = match limit {
        "not 0" => ("NotZero".to_owned(), positive.to_owned()),
        "positive" => ("Positive".to_owned(), positive.to_owned()),
        "not negative" => ("NotNegative".to_owned(), expected("non-negative integer")),
        "power of 2" => (
            "PowerOfTwo".to_owned(),
            "Argument {argument} of '{op}' instruction: value must be power of 2".to_owned(),
        ),
        _ if let Some(unit) = limit.strip_prefix("multiple of ") => {
            (format!("MultipleOf({})", number(unit)?), expected(limit))
        }
        _ if let Some((least, greatest)) = limit.split_once("..") => (
            format!("Range({}, {})", number(least)?, number(greatest)?),
            format!("value '{{value}}' out of range, expected to be in range [{limit}]"),
        ),
        _ => {
            let words: Vec<&str> = limit.split_whitespace().collect();
            let values: Vec<i64> = words.iter().map(|word| number(word)).collect::<Result<_, _>>()?;
            (format!("OneOf(&{values:?})"), expected(&words.join(" or ")))
        }
    };
    let usual = match usual.starts_with("Argument") {
        true => usual,
        false => format!("Argument {{argument}} of instruction '{{op}}': {usual}"),
    };
    Ok((limit, says.map_or(usual, str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::super::{parse, table::Table};

    #[test]
    fn an_operand_that_no_row_has_is_an_error() {
        let parsed = |line: &str| {
            let text = format!("@ 9.7.19.3 pmevent\npmevent  a<imm 0..15>:u32    effect PmEvent\n  {line}\n");
            parse::file(&text, &mut Table::default())
        };
        assert_eq!(parsed("constant a : 0..7"), Ok(()));
        assert_eq!(parsed("constant b : 0..7"), Err((3, "no row above has an operand `b`".into())));
    }
}
