//! Messages of ptxas about modifiers that differ for some instructions.

use isa::{Faulty, Form, Message, Mod, Opcode, Picks, SelectError, Target, Token, Type, Version, fill};

/// The messages for an error of selection, if they differ from the general message of `isa`.
pub(crate) fn special(
    error: &SelectError,
    form: &Form,
    name: &str,
    picks: &Picks,
    modifiers: &[&str],
    (version, target): (Version, Target),
) -> Option<Vec<String>> {
    let one = |message: String| Some(vec![message]);
    match *error {
        SelectError::Repeated { index }
            if matches!(
                form.opcode,
                Opcode::Mul | Opcode::Mad | Opcode::Mul24 | Opcode::Madc | Opcode::Mad24
            ) && matches!(modifiers.get(index), Some(&("hi" | "lo"))) =>
        {
            one(format!("Comparison qualifier is not allowed for instruction '{name}'"))
        }
        SelectError::Repeated { .. } if matches!(form.opcode, Opcode::Mma | Opcode::Wmma) => {
            let third = modifiers.iter().filter(|m| crate::required::is_layout(m)).nth(2)?;
            one(format!("Parsing error near '.{third}': too many layout specifiers"))
        }
        SelectError::Alternate { .. }
            if form.opcode == Opcode::Slct && picks.types().last() == Some(&Type::U32) =>
        {
            one(format!("Instruction '{name}' applies only to signed numeric types"))
        }
        SelectError::Alternate { .. }
            if form.opcode == Opcode::Tex && picks.types().last() == Some(&Type::U32) =>
        {
            one("Integer coordinates require .s32 instruction type".to_owned())
        }
        SelectError::Types => match form.opcode {
            Opcode::Abs | Opcode::Neg if picks.types().last().is_some_and(|ty| applies_to_signed(*ty)) => {
                one(format!("Instruction '{name}' applies only to signed numeric types"))
            }
            opcode @ (Opcode::Multimem | Opcode::Red | Opcode::Cp)
                if opcode == Opcode::Multimem || modifiers.contains(&"async") =>
            {
                let mut words = modifiers.iter().filter_map(|word| Mod::from_name(word));
                let operation = words.find(|word| operation_types(*word).is_some())?.name();
                let &[ty] = picks.types() else { return None };
                // Other instructions of the opcode do not matter for which types this one has.
                let slots = isa::forms(opcode.name())
                    .iter()
                    .filter(|row| row.has_name(modifiers))
                    .flat_map(Form::type_slots);
                let is_known = slots.into_iter().any(|slot| slot.choice(Token::Type(ty)).is_some());
                if !is_known {
                    return None;
                }
                one(format!("Incorrect type '{ty}' for operation '.{operation}' in instruction '{name}'"))
            }
            Opcode::Cvta if matches!(picks.types(), [Type::S32 | Type::S64]) => {
                one(format!("Instruction '{name}' requires .u32 or .u64 type"))
            }
            _ => None,
        },
        SelectError::Missing { .. } => by_table(error, form, name, picks, modifiers),
        SelectError::Repeated { index } if form.opcode == Opcode::Vote && votes_twice(modifiers, index) => {
            one("Multiple vote modifiers specified".to_owned())
        }
        SelectError::Repeated { index }
            if form.opcode == Opcode::Shfl
                && modifiers.get(index) == Some(&"down")
                && !modifiers[..index].contains(&"down") =>
        {
            one("Multiple shuffle modifiers specified".to_owned())
        }
        SelectError::Repeated { index }
            if modifiers.get(index).is_some_and(|word| word.contains("::evict")) =>
        {
            match form.opcode {
                Opcode::Applypriority | Opcode::Prefetch => {
                    one("Multiple cache eviction priority modifiers specified".to_owned())
                }
                Opcode::Ld | Opcode::St => {
                    let (level, _) = modifiers.get(index)?.split_once("::")?;
                    one(format!(
                        "Duplicate '.{level}::eviction_priority' modifier specified for instruction '{name}'"
                    ))
                }
                _ => None,
            }
        }
        SelectError::Illegal { index, .. }
            if crate::order::is_shape_of_matrices(Some(form.opcode), modifiers, index) =>
        {
            let shape = modifiers.get(index)?;
            let of_group = crate::vector::wrong_shape(shape, form, picks);
            one(of_group
                .unwrap_or_else(|| format!("Illegal matrix shape '.{shape}' for instruction '{name}'")))
        }
        SelectError::Illegal { index, .. } => {
            let written = Mod::from_name(modifiers.get(index)?)?;
            let hint = modifiers.contains(&"L2::cache_hint");
            if hint
                && written.space().is_some()
                && matches!(form.opcode, Opcode::Ld | Opcode::St | Opcode::Atom | Opcode::Red)
            {
                let space = written.name();
                return one(format!(
                    "Modifier '.L2::cache_hint' cannot be applied to '.{space}' space for instruction '{name}'"
                ));
            }
            if matches!(form.opcode, Opcode::Ld | Opcode::St)
                && let Some(message) = not_together(written, modifiers)
            {
                return one(message);
            }
            if hint && written == Mod::Volatile {
                return one(
                    "Modifier '.L2::cache_hint' cannot be combined with modifier '.volatile'".to_owned()
                );
            }
            if is_tensor_memory(written) && !has_tensor_memory(written, target) {
                let illegal = format!("{}, for arch '{target}'", error.message(name, modifiers));
                if version < FIRST_WITH_TENSOR_MEMORY {
                    let word = written.name();
                    let feature = format!(
                        "Feature '.{word}' requires PTX ISA .version {FIRST_WITH_TENSOR_MEMORY} or later"
                    );
                    return Some(vec![feature, illegal]);
                }
                return one(illegal);
            }
            if form.opcode == Opcode::Tcgen05 && written.name().starts_with("kind::mx") {
                let scale = modifiers
                    .iter()
                    .find(|m| m.starts_with("scale_vec") || matches!(**m, "block16" | "block32"))?;
                let kind = written.name();
                return one(format!("Modifier '.{kind}' cannot be combined with modifier '.{scale}'"));
            }
            if matches!(written, Mod::B4x16P64 | Mod::B6x16P32) && modifiers.contains(&"b8x16") {
                return one(format!("Illegal modifier '.{}.b8x16' for instruction '{name}'", written.name()));
            }
            if is_query(written) && !matches!(form.opcode, Opcode::Txq | Opcode::Suq) {
                return one(format!("Illegal query modifier for instruction '{name}'"));
            }
            if name.ends_with(".tensor")
                && let Some(messages) = load_mode(name, modifiers)
            {
                return Some(messages);
            }
            let rounds = |m: &&str| Mod::from_name(m).is_some_and(|m| m.rounding().is_some());
            match form.opcode {
                // Exactly one of the two is required.
                Opcode::Div | Opcode::Rcp | Opcode::Sqrt
                    if (written == Mod::Approx || written.rounding().is_some())
                        && modifiers.contains(&"approx")
                        && (form.opcode != Opcode::Div || picks.ty(0) == Type::F32)
                        && modifiers.iter().any(rounds) =>
                {
                    one(format!("Rounding modifier or '.approx' modifier required for instruction '{name}'"))
                }
                Opcode::Bar | Opcode::Barrier
                    if (written == Mod::Sync) == modifiers.contains(&"red")
                        && matches!(written, Mod::Sync | Mod::And | Mod::Or | Mod::Popc) =>
                {
                    None
                }
                Opcode::Bar | Opcode::Barrier if picks.types().is_empty() == modifiers.contains(&"red") => {
                    one(format!("Unexpected instruction types specified for '{name}'"))
                }
                Opcode::Cvt if written == Mod::Satfinite && picks.types().iter().any(|ty| ty.lanes() > 1) => {
                    one(format!("Unexpected instruction types specified for '{name}'"))
                }
                Opcode::Atom | Opcode::Red if operation_types(written).is_some() => {
                    let mut messages = Vec::new();
                    let mut types = operation_types(written)?;
                    if form.opcode == Opcode::Red && written == Mod::Exch {
                        messages.push(format!("Illegal operation '.exch' for instruction '{name}'"));
                        types = "";
                    }
                    let operation = written.name();
                    messages.push(format!(
                        "Operation .{operation} requires {types} type for instruction '{name}'"
                    ));
                    Some(messages)
                }
                Opcode::Mbarrier if written == Mod::SharedCluster => {
                    one(format!("Illegal modifier '::cluster' for instruction '{name}'"))
                }
                Opcode::Prefetch if written.name().starts_with("L2::evict") => {
                    let level = modifiers.iter().find(|m| matches!(**m, "L1" | "L2"))?;
                    one(format!(
                        "Illegal modifier '.{level}' for instruction '{name}' with '.level::eviction_priority'"
                    ))
                }
                Opcode::Prefetch if written == Mod::Tensormap && picks.has(Mod::Global) => one(format!(
                    "Modifier '.tensormap' cannot be applied to '.global' space for instruction '{name}'"
                )),
                // The check of proxies reports it.
                Opcode::Fence if crate::opcode_rules::refuses_space_of_proxy(modifiers, written) => {
                    Some(Vec::new())
                }
                Opcode::Prefetch | Opcode::Ld | Opcode::St | Opcode::Atom | Opcode::Red
                    if written.space().is_some() =>
                {
                    one(format!("State space incorrect for instruction '{name}'"))
                }
                Opcode::Txq | Opcode::Suq if is_query(written) => {
                    let message = format!("Illegal query modifier for instruction '{name}'");
                    let of_sampler = crate::texture::is_of_sampler(written);
                    Some(vec![message; 1 + usize::from(picks.has(Mod::Level) && of_sampler)])
                }
                Opcode::Tex if matches!(written.name(), "cube" | "acube") => {
                    one("Floating-point coordinates required".to_owned())
                }
                Opcode::Tex if matches!(written.name(), "2dms" | "a2dms") => {
                    let geometry =
                        format!("Illegal modifier 'Multi-sample geometry' for instruction '{name}'");
                    let mut messages = Vec::new();
                    if picks.types().last() != Some(&Type::S32) {
                        messages.push("Integer coordinates require .s32 instruction type".to_owned());
                    }
                    if picks.has(Mod::Level) || picks.has(Mod::Grad) {
                        messages.push(geometry);
                    }
                    Some(messages)
                }
                Opcode::Suld | Opcode::Sust | Opcode::Sured if matches!(written.name(), "2dms" | "a2dms") => {
                    one(format!("Illegal modifier 'Multi-sample geometry' for instruction '{name}'"))
                }
                Opcode::Sured if operation_types(written).is_some() => one(format!(
                    "Incorrect type '{}' for operation '.{}' in instruction '{name}'",
                    picks.ty(0),
                    written.name()
                )),
                Opcode::Cvt if written == Mod::Ftz => {
                    let types = picks.types();
                    let mut messages =
                        vec![format!("Modifier '.ftz' does not apply to this type of convert operation")];
                    if !types.iter().any(|ty| ty.is_float()) || types.iter().any(|ty| is_bf16_or_narrow(*ty))
                    {
                        messages.insert(0, format!("Illegal modifier '.ftz' for instruction '{name}'"));
                    }
                    Some(messages)
                }
                Opcode::Add | Opcode::Sub if written == Mod::Sat && is_integer_sum(picks) => {
                    one(format!("Modifier '.sat' does not apply to '{}' type", picks.ty(0)))
                }
                _ if form.section.starts_with(PACKED_VIDEO) => match written {
                    Mod::Sat => one("Illegal combination of .sat and .add modifiers".to_owned()),
                    Mod::Min | Mod::Max => {
                        one(format!("Illegal secondary operation for video instruction '{name}'"))
                    }
                    _ => None,
                },
                _ if matches!(written, Mod::Relu | Mod::Satfinite) && modifiers.contains(&"sat") => {
                    let written = written.name();
                    one(format!("Modifier '.{written}' cannot be combined with modifier '.sat'"))
                }
                Opcode::Fma if matches!(written, Mod::Relu | Mod::Satfinite) => {
                    one(format!("Unexpected instruction types specified for '{name}'"))
                }
                Opcode::Add | Opcode::Sub | Opcode::Fma
                    if written == Mod::Rs && matches!(picks.types(), [Type::F32, ..] | [Type::F16]) =>
                {
                    one(format!("Illegal modifier '.rs' for instruction '{name}'"))
                }
                Opcode::Add | Opcode::Sub if written == Mod::Satfinite => {
                    one(format!("Unexpected instruction types specified for '{name}'"))
                }
                _ if matches!(written, Mod::Inc | Mod::Dec | Mod::Exch) => {
                    let types: String = picks.types().iter().map(|ty| format!(".{}", ty.name())).collect();
                    one(format!("Illegal reduction operation for instruction '{name}{types}'"))
                }
                Opcode::Min | Opcode::Max if written == Mod::Relu => {
                    one(format!("Unexpected instruction types specified for '{name}'"))
                }
                Opcode::Mul | Opcode::Mad | Opcode::Mul24 | Opcode::Madc | Opcode::Mad24
                    if matches!(written, Mod::Hi | Mod::Lo) && index > 0 && name.contains('.') =>
                {
                    one(format!("Comparison qualifier is not allowed for instruction '{name}'"))
                }
                Opcode::Mul | Opcode::Mad if matches!(written, Mod::Hi | Mod::Lo) => {
                    one(format!("Unexpected instruction types specified for '{name}'"))
                }
                Opcode::Div
                    if matches!(modifiers.first(), Some(&"full"))
                        && (matches!(written, Mod::Approx | Mod::Full) || written.rounding().is_some()) =>
                {
                    one("Illegal rounding modifier for instruction 'div.full'".to_owned())
                }
                Opcode::Vote if written == Mod::Ballot => {
                    one(format!("Instruction '{name}' requires '.b32' type with '.ballot' modifier."))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The messages that the table has for an error, by the first line that applies.
fn by_table(
    error: &SelectError,
    form: &Form,
    name: &str,
    picks: &Picks,
    modifiers: &[&str],
) -> Option<Vec<String>> {
    let shape = || modifiers.iter().copied().find(|m| crate::required::is_shape(m));
    Message::about(error, Faulty { form, modifiers, types: picks.types() }).find_map(|message| {
        let value = |placeholder: &str| match placeholder {
            "op" => Some(name.to_owned()),
            "modifiers" => Some(modifiers.iter().map(|word| format!(".{word}")).collect()),
            "product" => crate::vector::group_name(form, picks).or_else(|| Some(name.to_owned())),
            "shape" => shape().map(|shape| format!(".{shape}")),
            "slot" => match error {
                SelectError::Missing { slot, .. } => Some((*slot).to_owned()),
                _ => None,
            },
            "type0" => Some(picks.ty(0).to_string()),
            "type1" => Some(picks.ty(1).to_string()),
            "types" => Some(picks.types().iter().map(ToString::to_string).collect()),
            "with" => message.with(modifiers).map(str::to_owned),
            "wrong shape" => crate::vector::wrong_shape(shape()?, form, picks),
            _ => None,
        };
        match message.texts {
            None => Some(None),
            Some(texts) => texts.iter().map(|text| fill(text, value)).collect::<Option<_>>().map(Some),
        }
    })?
}

/// Is this the second mode of a vote, different from the first? `.all` and `.any` together have another message.
pub(crate) fn votes_twice(modifiers: &[&str], index: usize) -> bool {
    let is_mode = |m: &&&str| matches!(**m, "all" | "any" | "ballot" | "uni");
    let is_other = |m: &str| matches!(m, "ballot" | "uni");
    let (Some(word), Some(before)) = (modifiers.get(index), modifiers[..index].iter().rfind(is_mode)) else {
        return false;
    };
    is_mode(&word) && word != before && (is_other(word) || is_other(before))
}

/// The message for a memory access whose order and cache modifiers do not fit together.
fn not_together(written: Mod, modifiers: &[&str]) -> Option<String> {
    let first = |among: &[&str]| modifiers.iter().copied().find(|word| among.contains(word));
    let together = |word: &str, other: &str| {
        Some(format!("Modifier '.{word}' cannot be combined with modifier '.{other}'"))
    };
    let word = written.name();
    let cache = ["ca", "cg", "cs", "cv", "lu", "wb", "wt"];
    let order = first(&["relaxed", "acquire", "release", "sc", "volatile"]);
    let priority = modifiers.iter().copied().find(|word| word.starts_with("L1::"));
    let priority = priority.map(|word| word.trim_start_matches("L1::"));
    match word {
        _ if cache.contains(&word) => together(order?, word),
        "nc" => together(order.or(first(&["weak"]))?, word),
        "volatile" => match priority {
            Some(priority) => together(priority, word),
            None => together(word, first(&cache)?),
        },
        "sc" => together(word, first(&cache)?),
        "cta" | "cluster" | "gpu" | "sys" => together(first(&["weak", "volatile"])?, word),
        "mmio" => match (priority, modifiers.iter().copied().find(|word| word.ends_with('B'))) {
            (Some(priority), _) => together(priority, word),
            (None, Some(prefetched)) => together(prefetched, word),
            _ => together(word, first(&["cta", "cluster", "gpu"])?),
        },
        _ if word.starts_with("L1::") => {
            together(word.trim_start_matches("L1::"), first(&cache).or(first(&["volatile", "mmio"]))?)
        }
        _ => None,
    }
}

const FIRST_WITH_TENSOR_MEMORY: Version = Version::new(8, 6);

/// The section of the manual on `vadd2`, `vadd4` and the like.
const PACKED_VIDEO: &str = "9.7.18.2.";

/// Is it an atomic operation?
pub(crate) fn is_operation(word: &str) -> bool {
    Mod::from_name(word).is_some_and(|m| m == Mod::Cas || operation_types(m).is_some())
}

/// The types of an atomic operation, as ptxas lists them.
fn operation_types(operation: Mod) -> Option<&'static str> {
    Some(match operation {
        Mod::Add => ".u32 or .s32 or .u64 or .f64 or .f16 or .f16x2 or .f32 or .bf16 or .bf16x2",
        Mod::And | Mod::Or | Mod::Xor => ".b32 or .b64",
        Mod::Min | Mod::Max => ".u32 or .s32 or .u64 or .s64 or .f16 or .f16x2 or .bf16 or .bf16x2",
        Mod::Inc | Mod::Dec => ".u32",
        Mod::Exch => ".b32 or .b64 or .b128",
        _ => return None,
    })
}

/// Unsigned types, for which ptxas reports that they are not signed instead of that they do not fit.
fn applies_to_signed(ty: Type) -> bool {
    matches!(ty, Type::U16 | Type::U32 | Type::U64)
}

/// Integers that `add` and `sub` take without `.sat`.
fn is_integer_sum(picks: &Picks) -> bool {
    matches!(picks.types(), [ty] if !ty.is_float())
}

/// Is it an attribute of textures, samplers or surfaces?
pub(crate) fn is_query(modifier: Mod) -> bool {
    let slots = ["txq", "suq"].into_iter().flat_map(isa::forms).flat_map(|form| form.slots);
    slots.filter(|slot| slot.name == "query").any(|slot| slot.choice(Token::Mod(modifier)).is_some())
}

/// Modifiers of tcgen05 instructions. On targets without tensor memory, ptxas has a message of its own for them on
/// other instructions.
fn is_tensor_memory(modifier: Mod) -> bool {
    matches!(
        modifier.name(),
        "alloc" | "cp" | "dealloc" | "ld" | "mma" | "pack::16b" | "shift" | "st" | "unpack::16b" | "warpx4"
    ) || modifier.name().starts_with("warpx2::")
}

fn has_tensor_memory(modifier: Mod, target: Target) -> bool {
    let has_family = matches!(target.number, 100..120) && target.suffix != isa::Suffix::None;
    has_family && (modifier.name() != "shift" || target.suffix == isa::Suffix::Architecture)
}

/// Is this `.bf16`, or a float of 8 bits or fewer?
fn is_bf16_or_narrow(ty: Type) -> bool {
    ty.element() == Type::Bf16 || ty.is_float() && ty.element().bits() <= 8
}

/// The messages for a tensor copy whose load mode belongs to the other direction, or to another number of dimensions.
fn load_mode(name: &str, modifiers: &[&str]) -> Option<Vec<String>> {
    let written = |is: fn(&str) -> bool| modifiers.iter().copied().find(|&m| is(m));
    let mode = written(|m| m.starts_with("im2col") || matches!(m, "tile::gather4" | "tile::scatter4"))?;
    let dimension = written(|m| matches!(m, "1d" | "2d" | "3d" | "4d" | "5d"))?;
    let space = |name: &str| modifiers.iter().position(|m| m.starts_with(name));
    // The spaces of a prefetch do not include shared memory.
    let stores = space("global") < space("shared");
    let mut messages = Vec::new();
    if stores != matches!(mode, "im2col_no_offs" | "tile::scatter4") {
        messages.push(format!("Illegal modifier '.{mode}' for instruction '{name}'"));
    }
    if mode.starts_with("tile") != (dimension == "2d") || dimension == "1d" {
        messages.push(format!("Modifier '.{dimension}' cannot be combined with modifier '.{mode}'"));
    }
    (!messages.is_empty()).then_some(messages)
}
