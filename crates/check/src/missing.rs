//! Messages of ptxas for missing modifiers: ptxas names a missing modifier by its purpose.

use isa::{Form, Mod, Opcode, Picks, Token, Type};

/// The message for a required slot that is not filled; `None` if ptxas names the slot as the table does.
pub(crate) fn message(
    slot: &str,
    form: &Form,
    name: &str,
    picks: &Picks,
    modifiers: &[&str],
) -> Option<Vec<String>> {
    let one = |message: String| Some(vec![message]);
    if let Some(message) = partner(slot, form, name, picks) {
        return one(message);
    }
    match (form.opcode, slot) {
        (Opcode::Div | Opcode::Sqrt | Opcode::Rcp, "approx" | "rnd")
            if picks.ty(0) == Type::F32 || form.opcode == Opcode::Rcp =>
        {
            one(format!("Rounding modifier or '.approx' modifier required for instruction '{name}'"))
        }
        (Opcode::Rcp | Opcode::Rsqrt, "ftz") => {
            let spelling: Vec<String> = modifiers.iter().map(|m| format!(".{m}")).collect();
            one(format!("'.ftz' modifier required for instruction '{name}{}'", spelling.concat()))
        }
        (Opcode::Add | Opcode::Sub | Opcode::Mul, "ftz" | "rz") => {
            let types: String = picks.types().iter().map(ToString::to_string).collect();
            let what = if slot == "ftz" { ".ftz" } else { "Rounding" };
            one(format!("{what} modifier required for instruction '{name}{types}'"))
        }
        (Opcode::Sin | Opcode::Cos, "ftz") => {
            one(format!(".ftz modifier required for instruction '{name}' with modifier '.2pi'"))
        }
        (Opcode::Ex2, "ftz") => {
            one(format!(".ftz modifier required for instruction '{name}{}'", picks.ty(0)))
        }
        (Opcode::Atom | Opcode::Red, "noftz") => {
            one(format!("'.noftz' modifier required for instruction '{name}' with type '{}'", picks.ty(0)))
        }
        (_, "approx") if matches!(picks.ty(0), Type::F32 | Type::F64 | Type::Bf16 | Type::Bf16x2) => None,
        (_, "approx") => {
            one(format!("Rounding modifier or '.approx' modifier required for instruction '{name}'"))
        }
        (Opcode::Redux, "op" | "bitwise") => {
            one(format!("Reduction operation is required for instruction '{name}'"))
        }
        (Opcode::Atom | Opcode::Red, "add" | "op" | "bitwise" | "minmax" | "step") => {
            one(format!("Illegal operation '' for instruction '{name}'"))
        }
        (Opcode::Match, "any") => one(format!("'.any' or '.all' modifier required for instruction '{name}'")),
        (Opcode::Tcgen05, "scale_vec_size") => one(format!(
            "Modifier '.kind::mxf4nvf4' requires modifier '.scale_vectorsize' for instruction '{name}'"
        )),
        (Opcode::Ld, "global") if picks.has(Mod::Nc) => {
            one("Modifier '.nc' requires .global space".to_owned())
        }
        (Opcode::Cvt, "satfinite") => one(format!(
            "'.satfinite' modifier required for instruction '{name}' with destination type '{}'",
            picks.ty(0)
        )),
        (Opcode::Cvt, "frnd2" | "frnd3" | "rna" | "rs") => {
            one(format!("Rounding modifier required for instruction '{name}'"))
        }
        (Opcode::Shfl, "mode") => one(format!("Shuffle modifier required for instruction '{name}'")),
        (Opcode::Vshl | Opcode::Vshr, "u32") => one("Operation requires .u32 type".to_owned()),
        (Opcode::Prefetch, "tensormap") => one(format!("State space incorrect for instruction '{name}'")),
        (Opcode::Membar, "level") => one(format!("Membar level required for instruction '{name}'")),
        (Opcode::Cvta, "space") => Some(vec![
            format!("State space modifier required for instruction '{name}'"),
            format!("State space incorrect for instruction '{name}'"),
        ]),
        (Opcode::Bar | Opcode::Barrier, "sync") if !modifiers.contains(&"warp") => {
            one(format!("Barrier modifier required for instruction '{name}'"))
        }
        (Opcode::Wgmma, "bitOp") if picks.has(Mod::Popc) => {
            one(format!("Illegal reduction operation for instruction '{name}{}{}'", picks.ty(0), picks.ty(1)))
        }
        (Opcode::Mma | Opcode::Wmma | Opcode::Wgmma, "bitOp" | "popc") => {
            let shape = modifiers.iter().find(|m| crate::required::is_shape(m))?;
            let name = crate::vector::group_name(form, picks).unwrap_or_else(|| name.to_owned());
            one(format!("Unexpected number of operations specified for {name} with shape '.{shape}'"))
        }
        (Opcode::Wgmma, "sp") => {
            let shape = modifiers.iter().find(|m| crate::required::is_shape(m))?;
            one(crate::vector::wrong_shape(shape, form, picks)?)
        }
        (Opcode::Dp2a, "mode") => one(format!("'.hi/.lo' modifier required for instruction '{name}'")),
        (Opcode::Movmatrix, "m8n8") => one(format!("Illegal matrix shape '' for instruction '{name}'")),
        (_, "shape") => one(format!("Shape modifier required for instruction '{name}'")),
        (Opcode::Cp, "level") => one(format!("'.ca or .cg' modifier required for instruction '{name}'")),
        (Opcode::Tex | Opcode::Tld4, "v2" | "v4") => {
            one(format!("Instruction '{name}{}' requires .{slot} type", picks.ty(0)))
        }
        (Opcode::Bar | Opcode::Barrier, "op" | "popc") => {
            let types: String = picks.types().iter().map(ToString::to_string).collect();
            one(format!("Illegal reduction operation for instruction '{name}{types}'"))
        }
        (Opcode::Bar | Opcode::Barrier, "red") => {
            match modifiers.iter().find(|m| matches!(**m, "and" | "or" | "popc")) {
                Some(operation) => one(format!("Illegal modifier '.{operation}' for instruction '{name}'")),
                None if picks.types().is_empty() => None,
                None => one(format!("Unexpected instruction types specified for '{name}'")),
            }
        }
        (Opcode::Sured, "op") => one(format!("Illegal operation '(null)' for instruction '{name}'")),
        (Opcode::Ldmatrix | Opcode::Tcgen05, "b8x16" | "padded") => {
            let is_square = modifiers.contains(&"m16n16") && !modifiers.iter().any(|m| is_format(m));
            one(match is_square {
                true => "Modifier 'format conversion' require for instruction ldmatrix with shape '.m16n16'",
                false => "Unexpected number of 'format conversion' modifiers specified",
            }
            .to_owned())
        }
        (Opcode::Ldmatrix | Opcode::Stmatrix, "trans") => {
            let shape = modifiers.iter().find(|m| crate::required::is_shape(m))?;
            one(format!("Modifier '.trans' require for instruction {name} with shape '.{shape}'"))
        }
        (Opcode::Tcgen05, "half" | "warpx4") => {
            let shape = modifiers.iter().find(|m| crate::required::is_shape(m))?;
            one(format!("Modifier '.warptype' require for instruction {name} with shape '.{shape}'"))
        }
        (Opcode::Tcgen05, "64x128b" | "32x128b") => {
            let shape = modifiers.iter().find(|m| crate::required::is_shape(m));
            let shape = shape.map_or(String::new(), |shape| format!(".{shape}"));
            one(format!("Modifier .warptype not allowed for instruction {name} with shape '{shape}'"))
        }
        (Opcode::Tcgen05, "kind") if picks.has(Mod::BlockScale) => {
            one("Modifier '' cannot be combined with modifier '.block_scale'".to_owned())
        }
        (Opcode::Mbarrier, "mbarrier_layout") => {
            one(format!(".layout modifier required for instruction '{name}'"))
        }
        (Opcode::Fence, "acquire" | "release") => {
            one(format!(".acquire/.release modifier required for instruction '{name}'"))
        }
        (Opcode::Fence, "alias" | "tensormap::generic" | "async::generic" | "async") => {
            one(format!(".proxykind modifier required for instruction '{name}'"))
        }
        (Opcode::Clusterlaunchcontrol, "is_canceled") => {
            one(format!("'.is_canceled' modifier required for instruction '{name}' with type '.pred'"))
        }
        (Opcode::Clusterlaunchcontrol, "coordinate" | "get_first_ctaid") => {
            one(format!("is_success or get_first_ctaid modifier required for instruction '{name}'"))
        }
        (Opcode::Cp, "target" | "global" | "shared::cta") if !picks.has(Mod::Prefetch) => {
            one(format!("State space incorrect for instruction '{name}'"))
        }
        (Opcode::Cp, "noftz") => one(format!(
            "Modifier '.noftz' required for instruction '{name}' with type '{}' and operation '.add'",
            picks.ty(0)
        )),
        (Opcode::Red, "bulk_mbarrier") => one(format!(
            "Modifier '.cluster' requires modifier '.completion_mechanism' for instruction '{name}'"
        )),
        (Opcode::Red, "relaxed") => one(format!("order modifier required for instruction '{name}'")),
        (_, "BoolOp" | "CmpOp") => None,
        _ => {
            let choices = form.slots.iter().find(|other| other.name == slot)?.choices;
            let called = choices.first().and_then(|choice| called(form, choice.token))?;
            one(format!("{called} required for instruction '{name}'"))
        }
    }
}

/// Memory order and scope require each other.
fn partner(slot: &str, form: &Form, name: &str, picks: &Picks) -> Option<String> {
    let choices = form.slots.iter().find(|other| other.name == slot)?.choices;
    let takes =
        |among: &[Mod]| choices.iter().any(|choice| among.iter().any(|&m| choice.token == Token::Mod(m)));
    let written = |among: &[Mod]| among.iter().find(|&&m| picks.has(m)).map(|m| m.name());
    if takes(ORDERS) && picks.has(Mod::Mmio) {
        let orders = if form.opcode == Opcode::Ld { ".relaxed or .acquire" } else { ".relaxed or .release" };
        return Some(format!("Modifier '.mmio' requires modifier '{orders}' for instruction '{name}'"));
    }
    if takes(SCOPES) && picks.has(Mod::Mmio) {
        return Some(format!("Modifier '.mmio' requires scope with '{name}' instruction"));
    }
    if form.opcode == Opcode::Fence && (takes(ORDERS) || !picks.has(Mod::Proxy)) {
        return None;
    }
    let memory = if matches!(form.opcode, Opcode::Ld | Opcode::St) { "memory " } else { "" };
    if takes(ORDERS) {
        let scope = written(SCOPES)?;
        return Some(format!("Modifier '.{scope}' requires {memory}order with '{name}' instruction"));
    }
    let order = written(ORDERS).filter(|_| takes(SCOPES))?;
    Some(format!("Modifier '.{order}' requires scope with '{name}' instruction"))
}

const ORDERS: &[Mod] = &[Mod::Relaxed, Mod::Acquire, Mod::Release];
const SCOPES: &[Mod] = &[Mod::Cta, Mod::Cluster, Mod::Gpu, Mod::Sys];

/// The name that ptxas has for a choice of modifiers, if it differs from the name in the table.
fn called(form: &Form, one_of: Token) -> Option<&'static str> {
    let Token::Mod(modifier) = one_of else { return None };
    Some(match modifier.name() {
        "x1" => ".num modifier",
        "sp" | "sp::ordered_metadata" => ".sp modifier",
        "cta_group::1" | "cta_group::2" => ".cta_group modifier",
        "1d" | "2d" | "3d" | "4d" | "5d" if form.opcode == Opcode::Cp => ".dim modifier",
        "1d" | "2d" | "3d" | "a1d" | "a2d" | "cube" | "acube" | "2dms" | "a2dms" => "Geometry modifier",
        "clamp" | "trap" | "wrap" | "zero" => "Clamp modifier",
        "r" | "g" | "b" | "a" => "Component modifier",
        "b1024" => "Tensormap size modifier",
        "global_address" | "rank" | "box_dim" => "Tensormap field modifier",
        "L1" | "L2" if form.opcode == Opcode::Cp => ".level modifier",
        "L1" | "L2" if form.opcode != Opcode::Discard => "Cache level modifier",
        "L2::evict_normal" => "cache eviction priority modifier",
        "ballot" => ".mode modifier",
        "cta" | "gpu" => "Scope modifier",
        "v2" | "v4" | "v8" => "Vector modifier",
        "global" | "shared" | "shared::cta" | "const" | "local" => "State space modifier",
        "mbarrier::complete_tx::bytes" => ".mbarrier::complete_tx::bytes modifier",
        "add" | "min" | "and" => "Reduction operation is",
        _ if crate::messages::is_query(modifier) => "Query modifier",
        _ => return None,
    })
}

/// Is this the format of a matrix in memory, or the format that it is widened to?
pub(crate) fn is_format(word: &str) -> bool {
    matches!(word, "b8x16" | "b4x16_p64" | "b6x16_p32")
}
