//! The kernel of a test: all of its instances, in parallel and one after the other.
//!
//! A round has one instance for each thread of a role. Rounds form batches: between batches all threads wait for each
//! other, so that all roles begin at the same time. Each round has its own locations in global memory, which the host
//! reads at the end. All batches use the same locations in shared memory; each batch clears them first, and copies
//! them to global memory at the end.

use std::fmt::Write;

use crate::program::{Instruction, Order, Placement};
use crate::variant::{Pattern, Space, Variant, Width};

/// How a test is launched, and its memory layout.
pub struct Layout {
    /// The text of the kernel.
    pub text: String,
    /// Blocks of the grid. They form one cluster if the test is about blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Instances of a round.
    pub instances: usize,
    /// Rounds of a batch.
    pub batch: usize,
    /// Bytes from the location of one instance to that of the next.
    pub stride: usize,
}

/// The kernel of a variant, and its launch.
pub fn layout(variant: &Variant) -> Layout {
    let one = variant.pattern == Pattern::One;
    let roles = variant.program.threads.len() as u32;
    // CTAs of 1024 threads form no CTA batch: each runs on its own host thread.
    let lanes: u32 = match (variant.program.placement, one) {
        (Placement::Clusters, _) => 1024,
        (Placement::Lanes, true) => 1,
        (_, true) => 32,
        (_, false) => 256,
    };
    let (blocks, threads) = match variant.program.placement {
        Placement::Lanes => (1, lanes * roles.next_power_of_two()),
        Placement::Warps => (1, lanes * roles),
        Placement::Blocks | Placement::Clusters => (roles, lanes),
    };
    let spread = if variant.space.is_shared() { 32 } else { 64 };
    let stride = if variant.pattern == Pattern::Spread { spread } else { variant.width.all() };
    let (instances, batch) = if one { (1, 64) } else { (lanes as usize, 1) };
    let mut layout = Layout { text: String::new(), blocks, threads, instances, batch, stride };
    layout.text = Text { variant, layout: &layout, lanes, text: String::new() }.kernel().unwrap_or_default();
    layout
}

struct Text<'v> {
    variant: &'v Variant,
    layout: &'v Layout,
    /// Threads of a role.
    lanes: u32,
    text: String,
}

impl Text<'_> {
    fn kernel(mut self) -> Result<String, std::fmt::Error> {
        let (variant, layout) = (self.variant, self.layout);
        let roles = variant.program.threads.len();
        self.head()?;
        self.role()?;
        self.slot()?;
        writeln!(self.text, "ROUND:\n    and.b32 %inner, %round, {};", layout.batch - 1)?;
        writeln!(self.text, "    setp.ne.u32 %p, %inner, 0;\n    @%p bra BEGIN;")?;
        self.barrier("A")?;
        if variant.space.is_shared() {
            self.clear()?;
            self.barrier("B")?;
        }
        writeln!(self.text, "BEGIN:")?;
        if variant.program.placement == Placement::Clusters {
            // The order varies, so that no role is always the first.
            writeln!(
                self.text,
                "    mad.lo.u32 %v, %round, 1103515245, %role;\n    mul.lo.u32 %v, %v, 747796405;"
            )?;
            writeln!(self.text, "    shr.u32 %v, %v, 28;\nDELAY:\n    sub.u32 %v, %v, 1;")?;
            writeln!(self.text, "    setp.gt.s32 %p, %v, 0;\n    @%p bra DELAY;")?;
        }
        self.places()?;
        for role in 1..roles {
            writeln!(self.text, "    setp.eq.u32 %p, %role, {role};\n    @%p bra ROLE{role};")?;
        }
        for (role, instructions) in variant.program.threads.iter().enumerate() {
            writeln!(self.text, "ROLE{role}:")?;
            for instruction in instructions {
                self.instruction(instruction)?;
            }
            for register in instructions.iter().filter_map(Instruction::register) {
                self.report(register)?;
            }
            writeln!(self.text, "    bra END;")?;
        }
        writeln!(self.text, "END:")?;
        if variant.space.is_shared() {
            self.copy()?;
        }
        writeln!(self.text, "    add.u32 %round, %round, 1;\n    setp.lt.u32 %p, %round, %rounds;")?;
        writeln!(self.text, "    @%p bra ROUND;\n    ret;\n}}")?;
        Ok(self.text)
    }

    /// Parameters, registers, and the values to store.
    fn head(&mut self) -> std::fmt::Result {
        let (variant, layout) = (self.variant, self.layout);
        let (width, class) = (variant.width, class(variant.width));
        let places = variant.program.places();
        write!(
            self.text,
            "// {}\n.version 8.8\n.target sm_100\n.address_size 64\n\
             .visible .entry litmus(.param .u64 data, .param .u64 out, .param .u64 arrived, .param .u32 rounds)\n{{\n\
             \x20   .reg .pred %p;\n    .reg .b32 %role, %lane, %slot, %round, %rounds, %inner, %v, %target;\n\
             \x20   .reg .b64 %data, %out, %arrived, %base, %x, %y, %own;\n    .reg .b64 %place<{places}>;\n\
             \x20   .reg {class} %t, %zero, %one, %two, %three;\n    .reg {class} %r<{}>;\n",
            variant.name,
            variant.program.registers().max(1) * width.elements,
        )?;
        if variant.space.is_shared() {
            let bytes = layout.batch * places * layout.instances * layout.stride;
            writeln!(self.text, "    .shared .align 32 .b8 tile[{bytes}];")?;
        }
        for name in ["data", "out", "arrived"] {
            writeln!(self.text, "    ld.param.u64 %{name}, [{name}];")?;
        }
        writeln!(
            self.text,
            "    ld.param.u32 %rounds, [rounds];\n    mov.u32 %round, 0;\n    mov.u32 %target, 0;"
        )?;
        for (value, name) in ["zero", "one", "two", "three"].into_iter().enumerate() {
            let word = value as u64 * 0x0101_0101_0101_0101;
            match width.bytes {
                16 => writeln!(self.text, "    mov.b64 %x, {word:#x};\n    mov.b128 %{name}, {{%x, %x}};")?,
                8 => writeln!(self.text, "    mov.b64 %{name}, {word:#x};")?,
                4 => writeln!(self.text, "    mov.b32 %{name}, {:#x};", word as u32)?,
                _ => writeln!(self.text, "    mov.b16 %{name}, {:#x};", word as u16)?,
            }
        }
        let base = match variant.space {
            Space::Global | Space::GenericGlobal => "mov.u64 %base, %data;",
            Space::Shared => "mov.u64 %base, tile;",
            Space::GenericShared => "mov.u64 %base, tile;\n    cvta.shared.u64 %base, %base;",
            Space::SharedCluster => "mov.u64 %base, tile;\n    mapa.shared::cluster.u64 %base, %base, 0;",
            Space::GenericCluster => {
                "mov.u64 %base, tile;\n    cvta.shared.u64 %base, %base;\n    mapa.u64 %base, %base, 0;"
            }
        };
        writeln!(self.text, "    {base}")
    }

    /// Computes a thread's role, and its index in the role. Surplus threads exit at once.
    fn role(&mut self) -> std::fmt::Result {
        let lanes = self.lanes;
        let roles = self.variant.program.threads.len() as u32;
        match self.variant.program.placement {
            Placement::Lanes => {
                let all = roles.next_power_of_two();
                writeln!(self.text, "    mov.u32 %v, %tid.x;\n    and.b32 %role, %v, {};", all - 1)?;
                writeln!(self.text, "    shr.u32 %lane, %v, {};", all.ilog2())?;
                writeln!(self.text, "    setp.ge.u32 %p, %role, {roles};\n    @%p ret;")?;
            }
            Placement::Warps => {
                writeln!(self.text, "    mov.u32 %v, %tid.x;\n    and.b32 %lane, %v, {};", lanes - 1)?;
                writeln!(self.text, "    shr.u32 %role, %v, {};", lanes.ilog2())?;
            }
            Placement::Blocks | Placement::Clusters => {
                writeln!(self.text, "    mov.u32 %role, %ctaid.x;\n    mov.u32 %lane, %tid.x;")?;
            }
        }
        if self.variant.pattern == Pattern::One {
            writeln!(self.text, "    setp.ne.u32 %p, %lane, 0;\n    @%p ret;")?;
        }
        Ok(())
    }

    /// Computes a thread's instance in a round.
    fn slot(&mut self) -> std::fmt::Result {
        let last = self.layout.instances - 1;
        match self.variant.pattern {
            Pattern::Rows | Pattern::Spread | Pattern::One => {
                writeln!(self.text, "    mov.u32 %slot, %lane;")
            }
            Pattern::Turned => writeln!(
                self.text,
                "    and.b32 %v, %role, 1;\n    neg.s32 %v, %v;\n    and.b32 %v, %v, {last};\n    xor.b32 %slot, %lane, %v;"
            ),
            Pattern::Scattered => writeln!(
                self.text,
                "    shl.b32 %v, %role, 3;\n    or.b32 %v, %v, 37;\n    mad.lo.u32 %slot, %lane, %v, %role;\n    \
                 and.b32 %slot, %slot, {last};"
            ),
        }
    }

    /// All threads wait for each other.
    fn barrier(&mut self, name: &str) -> std::fmt::Result {
        let roles = self.variant.program.threads.len();
        match self.variant.program.placement {
            Placement::Lanes | Placement::Warps => writeln!(self.text, "    barrier.sync 0;"),
            Placement::Blocks => {
                writeln!(self.text, "    barrier.cluster.arrive;\n    barrier.cluster.wait;")
            }
            Placement::Clusters => write!(
                self.text,
                "    barrier.sync 0;\n    add.u32 %target, %target, {roles};\n    setp.ne.u32 %p, %lane, 0;\n    @%p bra JOIN{name};\n\
                 \x20   atom.add.release.gpu.global.u32 %v, [%arrived], 1;\nSPIN{name}:\n\
                 \x20   ld.acquire.gpu.global.u32 %v, [%arrived];\n    setp.lt.u32 %p, %v, %target;\n    @%p bra SPIN{name};\n\
                 JOIN{name}:\n    barrier.sync 0;\n"
            ),
        }
    }

    /// Computes the address of an instance's location in the `index`th row of locations from `base` on.
    fn address(&mut self, register: &str, base: &str, index: usize) -> std::fmt::Result {
        let Layout { instances, stride, .. } = *self.layout;
        writeln!(self.text, "    mad.wide.u32 {register}, %slot, {stride}, {base};")?;
        writeln!(self.text, "    add.u64 {register}, {register}, {};", index * instances * stride)
    }

    /// Clears a batch's locations in shared memory.
    fn clear(&mut self) -> std::fmt::Result {
        writeln!(self.text, "    setp.ne.u32 %p, %role, 0;\n    @%p bra CLEARED;")?;
        let (space, width) = (self.variant.space, self.variant.width);
        for index in 0..self.layout.batch * self.variant.program.places() {
            self.address("%x", "%base", index)?;
            writeln!(
                self.text,
                "    st{}{} [%x], {};",
                space.suffix(),
                width.name(),
                braces(width, |_| "%zero".into())
            )?;
        }
        writeln!(self.text, "CLEARED:")
    }

    /// Copies a batch's locations to global memory, after its last round.
    fn copy(&mut self) -> std::fmt::Result {
        let (space, width, places) = (self.variant.space, self.variant.width, self.variant.program.places());
        let Layout { batch, instances, stride, .. } = *self.layout;
        writeln!(self.text, "    setp.ne.u32 %p, %inner, {};\n    @%p bra COPIED;", batch - 1)?;
        self.barrier("C")?;
        writeln!(
            self.text,
            "    setp.ne.u32 %p, %role, 0;\n    @%p bra COPIED;\n    sub.u32 %v, %round, %inner;"
        )?;
        writeln!(self.text, "    mad.wide.u32 %own, %v, {}, %data;", places * instances * stride)?;
        for index in 0..batch * places {
            self.address("%x", "%base", index)?;
            self.address("%y", "%own", index)?;
            let value = braces(width, |element| format!("%r{element}"));
            writeln!(self.text, "    ld{}{} {value}, [%x];", space.suffix(), width.name())?;
            writeln!(self.text, "    st.global{} [%y], {value};", width.name())?;
        }
        writeln!(self.text, "COPIED:")
    }

    /// Computes the addresses of a round's locations.
    fn places(&mut self) -> std::fmt::Result {
        let places = self.variant.program.places();
        let Layout { instances, stride, .. } = *self.layout;
        let round = if self.variant.space.is_shared() { "%inner" } else { "%round" };
        writeln!(self.text, "    mad.wide.u32 %own, {round}, {}, %base;", places * instances * stride)?;
        (0..places).try_for_each(|place| self.address(&format!("%place{place}"), "%own", place))
    }

    fn instruction(&mut self, instruction: &Instruction) -> std::fmt::Result {
        let (width, space, scope) =
            (self.variant.width, self.variant.space, self.variant.program.scope.name());
        let order = |order: Order| match order {
            Order::Weak => String::new(),
            Order::Volatile => ".volatile".into(),
            Order::Relaxed => format!(".relaxed.{scope}"),
            Order::Acquire => format!(".acquire.{scope}"),
            Order::Release => format!(".release.{scope}"),
            Order::AcquireRelease => format!(".acq_rel.{scope}"),
        };
        let (suffix, name) = (space.suffix(), width.name());
        match *instruction {
            Instruction::Load { place, register, order: by } => {
                let to = braces(width, |element| format!("%r{}", register * width.elements + element));
                writeln!(self.text, "    ld{}{suffix}{name} {to}, [%place{place}];", order(by))
            }
            Instruction::Store { place, value, order: by, depends } => {
                let value = VALUES[usize::from(value)];
                let from = match depends {
                    None => value,
                    Some(register) => {
                        self.depend(register * width.elements, value)?;
                        "%t"
                    }
                };
                let from = braces(width, |_| from.into());
                writeln!(self.text, "    st{}{suffix}{name} [%place{place}], {from};", order(by))
            }
            Instruction::Exchange { place, value, register, order: by } => {
                let (value, by) = (VALUES[usize::from(value)], order(by));
                writeln!(self.text, "    atom{by}{suffix}.exch{name} %r{register}, [%place{place}], {value};")
            }
            Instruction::Fence(fence) => writeln!(self.text, "    fence.{}.{scope};", fence.name()),
        }
    }

    /// Computes a value that depends on a register.
    fn depend(&mut self, register: usize, value: &str) -> std::fmt::Result {
        if self.variant.width.bytes == 16 {
            return writeln!(
                self.text,
                "    mov.b128 {{%x, %y}}, %r{register};\n    xor.b64 %x, %x, %x;\n    mov.b128 {{%own, %y}}, {value};\n    \
                 or.b64 %x, %x, %y;\n    mov.b128 %t, {{%x, %y}};"
            );
        }
        let class = class(self.variant.width);
        writeln!(self.text, "    xor{class} %t, %r{register}, %r{register};\n    or{class} %t, %t, {value};")
    }

    /// Stores a register for the host.
    fn report(&mut self, register: usize) -> std::fmt::Result {
        let (width, registers) = (self.variant.width, self.variant.program.registers());
        let (instances, bytes) = (self.layout.instances, self.variant.width.all());
        writeln!(self.text, "    mad.wide.u32 %x, %round, {}, %out;", registers * instances * bytes)?;
        writeln!(self.text, "    mad.wide.u32 %x, %slot, {bytes}, %x;")?;
        let value = braces(width, |element| format!("%r{}", register * width.elements + element));
        writeln!(self.text, "    st.global{} [%x+{}], {value};", width.name(), register * instances * bytes)
    }
}

/// The registers with the values to store.
const VALUES: [&str; 4] = ["%zero", "%one", "%two", "%three"];

/// The class of registers for an element.
fn class(width: Width) -> &'static str {
    match width.bytes {
        1 | 2 => ".b16",
        4 => ".b32",
        8 => ".b64",
        _ => ".b128",
    }
}

/// The operand of an access: a register, or a vector of them.
fn braces(width: Width, element: impl Fn(usize) -> String) -> String {
    let all: Vec<String> = (0..width.elements).map(element).collect();
    if width.elements == 1 { all.concat() } else { format!("{{{}}}", all.join(", ")) }
}
