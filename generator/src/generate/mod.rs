//! Generates one kernel from random choices.

mod block;
mod call;
mod control;
mod memory;
pub mod neighbours;
mod pure;
mod text;
mod warp;

use std::fmt::Write;

use crate::catalog::{DIALECTS, Dialect};
use crate::program::{Function, Kernel, Stmt};
use crate::random::Random;
use crate::walk::Step;
use neighbours::Around;

/// Registers of each width that any statement may read and write.
const PREDICATES: usize = 8;
const HALVES: usize = 8;
const WORDS: usize = 12;
const DOUBLES: usize = 8;
/// Bytes of the input array. Its beginning holds small numbers only.
pub const INPUT_BYTES: usize = 4096;
/// Bytes of these small numbers, from 0 to 3 as `.u32`: operands of `brx.idx`.
pub const INDEX_BYTES: usize = 256;
/// Bytes of the counters that all threads update.
pub const COUNTER_BYTES: usize = 1024;
/// Cells of each size in the interleaved array.
const CELL_PLACES: usize = 4;
/// Bytes of the interleaved array for each thread; more with cells of 16 and 32 bytes.
const INTERLEAVED_BYTES: usize = 60;
const WIDE_INTERLEAVED_BYTES: usize = 156;
/// Maximum nesting depth of statements.
const DEPTH: usize = 3;

/// The surroundings of a statement.
#[derive(Clone)]
struct Place {
    /// All threads of the block that have not exited execute it, equally often.
    whole_block: bool,
    /// The register or literal with the mask of the lanes that execute it together, if it is known.
    mask: Option<String>,
    /// Nesting depth.
    depth: usize,
    /// It may execute more than once.
    in_loop: bool,
    /// The label after a loop that the statement may leave.
    leave: Option<String>,
    /// Name of the enclosing function; empty in the kernel.
    function: String,
}

impl Place {
    /// A top-level statement of the kernel.
    fn kernel() -> Place {
        let mask = Some("0xffffffff".to_owned());
        Place { whole_block: true, mask, depth: 0, in_loop: false, leave: None, function: String::new() }
    }
}

struct Generator<'r, 'b> {
    random: &'r mut Random<'b>,
    dialect: &'static Dialect,
    functions: Vec<Function>,
    labels: usize,
    /// Threads of a block.
    threads: usize,
    /// Clusters have several blocks.
    clusters: bool,
    /// Bytes of a thread's own global and shared memory.
    own_bytes: usize,
    shared_bytes: usize,
    /// Threads of the launch, rounded up: the stride of a thread's elements in the interleaved array.
    stride: usize,
    /// Some threads may have exited.
    exits: bool,
    /// Threads print.
    prints: bool,
    /// The interleaved array has cells of 16 and 32 bytes.
    wide_cells: bool,
    /// How many statements may still be generated.
    budget: usize,
}

/// Generates a kernel from the choices of `random`.
pub fn generate(random: &mut Random) -> Kernel {
    let dialect = &DIALECTS[if random.percent(60) { 0 } else { random.below(DIALECTS.len()) }];
    let (block, mut grid) = extents(random);
    let cluster = cluster(random, dialect, block);
    grid.iter_mut().zip(cluster).for_each(|(blocks, extent)| *blocks *= extent);
    let mut generator = Generator::new(random, dialect, [grid, cluster, block]);
    let kernel = generator.kernel();
    generator.finish(kernel, [grid, cluster, block])
}

/// A kernel of the walk, and those of its steps that exist.
pub fn walk_kernel(random: &mut Random, around: Around, steps: &[Step]) -> (Kernel, Vec<Step>) {
    let dialect = &DIALECTS[steps.first().map_or(0, |step| step.dialect)];
    let (block, grid) = extents(random);
    let mut generator = Generator::new(random, dialect, [grid, [1; 3], block]);
    let (kernel, made) = generator.walk(around, steps);
    (generator.finish(kernel, [grid, [1; 3], block]), made)
}

/// Extents of a cluster: several blocks if the target has clusters and blocks are small.
fn cluster(random: &mut Random, dialect: &Dialect, block: [u32; 3]) -> [u32; 3] {
    if !dialect.sm(90) || block.iter().product::<u32>() > 128 || !random.percent(20) {
        return [1; 3];
    }
    *random.pick(&[[2, 1, 1], [2, 1, 1], [1, 2, 1], [3, 1, 1], [2, 2, 1], [1, 1, 4]])
}

/// Extents of a block and of the grid: any shape, rarely with many threads.
fn extents(random: &mut Random) -> ([u32; 3], [u32; 3]) {
    let threads = match random.below(300) {
        0..150 => *random.pick(&[32, 32, 32, 32, 64, 64, 96, 128]),
        150..190 => *random.pick(&[1, 2, 16, 31, 33, 48, 63, 96, 100]),
        190..295 => 1 + random.below(80) as u32,
        295..299 => 1 + random.below(300) as u32,
        _ => *random.pick(&[256, 512, 1000, 1023, 1024]),
    };
    let mut block = [threads, 1, 1];
    match random.below(4) {
        0 => {
            let y = 1 + random.below(threads.min(8) as usize) as u32;
            block = [threads / y, y, 1];
        }
        1 => {
            let z = 1 + random.below(threads.min(4) as usize) as u32;
            let y = 1 + random.below((threads / z).min(4) as usize) as u32;
            block = [threads / z / y, y, z];
        }
        _ => {}
    }
    let threads: u32 = block.iter().product();
    // Many small blocks, or few large ones.
    let most = match random.below(100) {
        0 => (1024 / threads).clamp(2, 100),
        1..50 => 1,
        _ => (80 / threads).clamp(1, 100),
    };
    let blocks = 1 + random.below(most as usize) as u32;
    // Many short rows of blocks: CTA batches then extend along another axis, or beyond the end of a row.
    let narrow = if threads <= 32 { blocks.max(4 + random.below(8) as u32) } else { blocks };
    let grid = match random.below(7) {
        0 => [1, blocks, 1],
        1 if blocks > 1 => [blocks.div_ceil(2), 2, 1],
        2 if blocks > 3 => [blocks.div_ceil(4), 2, 2],
        3 => [2, narrow.div_ceil(2), 1],
        4 => [1 + random.below(2) as u32, 2, narrow.div_ceil(4)],
        5 if narrow > 8 => [3, 2, narrow.div_ceil(6)],
        _ => [blocks, 1, 1],
    };
    (block, grid)
}

impl<'r, 'b> Generator<'r, 'b> {
    fn new(random: &'r mut Random<'b>, dialect: &'static Dialect, extents: [[u32; 3]; 3]) -> Self {
        let [grid, cluster, block] = extents;
        let threads = block.iter().product::<u32>() as usize;
        let blocks = grid.iter().product::<u32>() as usize;
        let own_bytes = *random.pick(&[16, 32, 48, 64, 80]);
        let shared_bytes = if threads <= 256 { *random.pick(&[16, 32, 48]) } else { 16 };
        let stride = (threads * blocks).next_multiple_of(16);
        let budget = 4 + random.below(30);
        let prints = random.percent(10);
        Generator {
            random,
            dialect,
            functions: Vec::new(),
            labels: 0,
            threads,
            clusters: cluster != [1; 3],
            own_bytes,
            shared_bytes,
            stride,
            exits: false,
            prints,
            wide_cells: false,
            budget,
        }
    }

    fn finish(mut self, kernel: Function, extents: [[u32; 3]; 3]) -> Kernel {
        let [grid, cluster, block] = extents;
        let module = self.module();
        let functions = std::mem::take(&mut self.functions);
        let data = self.random.bits();
        let all_bytes = if self.wide_cells { WIDE_INTERLEAVED_BYTES } else { INTERLEAVED_BYTES };
        let Generator { own_bytes, stride, .. } = self;
        Kernel { module, functions, kernel, grid, cluster, block, data, own_bytes, all_bytes, stride }
    }
}

impl Generator<'_, '_> {
    fn module(&mut self) -> String {
        let Dialect { version, target, .. } = self.dialect;
        let mut text = format!(".version {version}\n.target {target}\n.address_size 64\n\n");
        let mut bytes =
            || (0..64).map(|_| (self.random.bits() as u32).to_string()).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, ".global .align 16 .b32 g_var[64] = {{{}}};", bytes());
        let _ = writeln!(text, ".const .align 16 .b32 c_var[64] = {{{}}};", bytes());
        let (own, interleaved) = (self.threads * self.shared_bytes, self.threads * 16);
        let _ = writeln!(text, ".shared .align 16 .b8 s_own[{own}];");
        let _ = writeln!(text, ".shared .align 16 .b8 s_all[{interleaved}];");
        let _ = writeln!(text, ".shared .align 16 .b32 s_same[16];");
        let _ = writeln!(text, ".shared .align 16 .b8 s_bulk[64];");
        let _ = writeln!(text, ".shared .align 8 .b64 s_barrier;");
        let cells = 15 * self.threads * self.shared_places();
        let _ = writeln!(text, ".shared .align 16 .b8 s_cells[{cells}];");
        let _ = writeln!(text, ".shared .align 4 .b8 s_text[8];");
        let [global, constant] = text::TEXTS;
        let texts = [
            (".global .b8 g_text", text::NUMBERS),
            (".global .b8 g_format", text::STRING),
            (".const .b8 c_format", text::STRING),
            (".global .b8 g_string", global),
            (".const .b8 c_string", constant),
        ];
        for (variable, value) in texts {
            let _ = writeln!(text, "{variable}{};", text::initialiser(value));
        }
        let _ = writeln!(text, ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);");
        text
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    // Registers.

    fn predicate(&mut self) -> String {
        format!("%p{}", self.random.below(PREDICATES))
    }

    fn word(&mut self) -> String {
        format!("%r{}", self.random.below(WORDS))
    }

    fn double(&mut self) -> String {
        format!("%d{}", self.random.below(DOUBLES))
    }

    /// A register of `bits` bits.
    fn register(&mut self, bits: u32) -> String {
        match bits {
            1 => self.predicate(),
            2..=16 => format!("%h{}", self.random.below(HALVES)),
            17..=32 => self.word(),
            33..=64 => self.double(),
            _ => format!("%q{}", self.random.below(2)),
        }
    }

    /// Distinct registers of `bits` bits.
    fn registers(&mut self, bits: u32, count: usize) -> Vec<String> {
        let first = self.register(bits);
        let (kind, number) = first.split_at(2);
        let number: usize = number.parse().unwrap_or(0);
        let all = match kind {
            "%p" => PREDICATES,
            "%h" => HALVES,
            "%r" => WORDS,
            "%d" => DOUBLES,
            _ => 2,
        };
        (0..count.min(all)).map(|i| format!("{kind}{}", (number + i) % all)).collect()
    }

    /// `@p`, or nothing.
    fn guard(&mut self, percent: usize) -> String {
        if !self.random.percent(percent) {
            return String::new();
        }
        let not = if self.random.percent(50) { "!" } else { "" };
        format!("@{not}{} ", self.predicate())
    }

    /// Whether all warps are complete, and no thread has exited.
    fn full_warps(&self) -> bool {
        self.threads.is_multiple_of(32) && !self.exits
    }

    // The kernel.

    fn declarations(&self) -> String {
        let quads = if self.has_quads() { ".reg .b128 %q<2>;\n" } else { "" };
        format!(
            ".reg .pred %p<{PREDICATES}>;\n.reg .b16 %h<{HALVES}>;\n.reg .b32 %r<{WORDS}>;\n.reg .b64 %d<{DOUBLES}>;\n\
             {quads}.reg .b32 %x<4>;\n.reg .b64 %y<4>;\n.reg .pred %tp;\n.reg .b32 %tc;\n.reg .b32 %td;\n.reg .b64 %ta;\n\
             .reg .b64 %tb;\n.reg .b32 %m<8>;\n.reg .b32 %n<8>;\n.reg .b32 %c<8>;\n.reg .b32 %thread;\n.reg .b32 %block;\n\
             .reg .b32 %global;\n.reg .b64 %in;\n.reg .b64 %own;\n.reg .b64 %all;\n.reg .b64 %counters;\n.reg .b32 %sown;\n\
             .reg .b32 %sall;\n.reg .b32 %fmask;\n.reg .b32 %fdepth;\n.local .align 16 .b8 lo[64];\n"
        ) + &self.own_registers()
    }

    /// Whether the target has 128-bit registers.
    fn has_quads(&self) -> bool {
        self.dialect.version >= isa::Version::new(8, 3)
    }

    fn kernel(&mut self) -> Function {
        for number in 0..self.random.below(4) {
            let function = self.function(number);
            self.functions.push(function);
        }
        let mut body = self.beginning();
        body.extend(self.statements(&Place::kernel()));
        self.entry(body)
    }

    /// The kernel for steps of the walk, and those of the steps that exist.
    fn walk(&mut self, around: Around, steps: &[Step]) -> (Function, Vec<Step>) {
        let mut body = self.beginning();
        let (all, made) = self.steps(around, steps);
        body.extend(all);
        (self.entry(body), made)
    }

    /// Computes the addresses of a thread's memory, and initialises all registers.
    fn beginning(&mut self) -> Vec<Stmt> {
        let own = self.own_bytes;
        let start = format!(
            "{}\nld.param.u64 %in, [in];\nld.param.u64 %own, [own];\nmad.wide.u32 %own, %global, {own}, %own;\n\
             ld.param.u64 %all, [all];\nld.param.u64 %counters, [counters];\n\
             setp.lt.u32 %tp, %thread, 16;\nmad.wide.u32 %ta, %thread, 4, %in;\n@%tp ld.global.b32 %tc, [%ta+1024];\n\
             mov.u32 %td, s_same;\nmad.lo.u32 %td, %thread, 4, %td;\n@%tp st.shared.b32 [%td], %tc;\nbar.sync 0;",
            self.where_it_runs()
        );
        let mut body = vec![Stmt::text(start)];
        body.extend(self.initial_values("%global"));
        body
    }

    /// The kernel with these statements, which then stores all registers.
    fn entry(&mut self, mut body: Vec<Stmt>) -> Function {
        body.extend(self.final_values());
        let signature = "\
.visible .entry k(
    .param .u64 in, .param .u64 own, .param .u64 all, .param .u64 counters, .param .u64 results, .param .u32 n,
    .param .align 16 .b8 s[32])"
            .to_owned();
        Function { name: "k".to_owned(), signature, declarations: self.declarations(), body }
    }

    /// Computes the thread's indices and the address of its shared memory.
    fn where_it_runs(&self) -> String {
        let threads = self.threads;
        format!(
            "mov.u32 %thread, %tid.z;\nmov.u32 %tc, %ntid.y;\nmov.u32 %td, %tid.y;\nmad.lo.u32 %thread, %thread, %tc, %td;\n\
             mov.u32 %tc, %ntid.x;\nmov.u32 %td, %tid.x;\nmad.lo.u32 %thread, %thread, %tc, %td;\n\
             mov.u32 %block, %ctaid.z;\nmov.u32 %tc, %nctaid.y;\nmov.u32 %td, %ctaid.y;\nmad.lo.u32 %block, %block, %tc, %td;\n\
             mov.u32 %tc, %nctaid.x;\nmov.u32 %td, %ctaid.x;\nmad.lo.u32 %block, %block, %tc, %td;\n\
             mad.lo.u32 %global, %block, {threads}, %thread;\n\
             mov.u32 %sown, s_own;\nmad.lo.u32 %sown, %thread, {}, %sown;\nmov.u32 %sall, s_all;\n\
             mad.lo.u32 %sall, %thread, 4, %sall;",
            self.shared_bytes
        )
    }

    /// Initialises all registers with inputs and special registers.
    fn initial_values(&mut self, index: &str) -> Vec<Stmt> {
        // Two input addresses, with a small, a large or no stride between threads.
        let mut place = |name: &str| {
            let step = *self.random.pick(&[0, 1, 4, 8, 12, 20]) * 8;
            let mask = (INPUT_BYTES / 2 - 1) & !7;
            Stmt::text(format!(
                "mul.lo.u32 %tc, {index}, {step};\nand.b32 %tc, %tc, {mask};\ncvt.u64.u32 {name}, %tc;\nadd.s64 {name}, {name}, %in;"
            ))
        };
        let mut all = vec![place("%ta"), place("%tb")];
        let mut load = |name: String, bytes: usize| {
            let from = if self.random.percent(50) { "%ta" } else { "%tb" };
            let at = self.random.below(INPUT_BYTES / 2) & !(bytes - 1);
            all.push(Stmt::text(format!("ld.global.b{} {name}, [{from}+{at}];", 8 * bytes)));
        };
        (0..HALVES).for_each(|i| load(format!("%h{i}"), 2));
        (0..WORDS).for_each(|i| load(format!("%r{i}"), 4));
        (0..DOUBLES).for_each(|i| load(format!("%d{i}"), 8));
        if self.has_quads() {
            all.extend((0..2).map(|i| Stmt::text(format!("mov.b128 %q{i}, {{%d{i}, %d{}}};", i + 1))));
        }
        for i in 0..PREDICATES {
            let (register, bit) = (self.word(), self.random.below(32));
            let compare = match self.random.below(4) {
                0 => format!("setp.lt.s32 %p{i}, {register}, {};", self.random.below(64)),
                1 => format!(
                    "and.b32 %tc, {index}, {};\nsetp.ne.u32 %p{i}, %tc, 0;",
                    1 + self.random.below(63)
                ),
                _ => format!("bfe.u32 %tc, {register}, {bit}, 1;\nsetp.ne.u32 %p{i}, %tc, 0;"),
            };
            all.push(Stmt::text(compare));
        }
        for _ in 0..self.random.below(4) {
            let special = *self.random.pick(&[
                "%tid.x",
                "%tid.y",
                "%tid.z",
                "%ntid.x",
                "%ctaid.x",
                "%ctaid.y",
                "%nctaid.x",
                "%laneid",
                "%warpid",
                "%lanemask_lt",
                "%lanemask_ge",
                "%lanemask_eq",
                "%lanemask_le",
                "%lanemask_gt",
                "%nwarpid",
            ]);
            all.push(Stmt::text(format!("mov.u32 {}, {special};", self.word())));
        }
        all
    }

    /// Stores all registers.
    fn final_values(&mut self) -> Vec<Stmt> {
        let stride = self.stride;
        let mut all = Vec::new();
        let mut offset = 0;
        all.push(Stmt::text("ld.param.u64 %ta, [results];\nmad.wide.u32 %ta, %global, 8, %ta;"));
        let mut store = |instruction: String| {
            all.push(Stmt::text(instruction.replace('@', &format!("[%ta+{offset}]"))));
            offset += 8 * stride;
        };
        (0..HALVES).for_each(|i| store(format!("st.global.b16 @, %h{i};")));
        (0..WORDS).for_each(|i| store(format!("st.global.b32 @, %r{i};")));
        (0..DOUBLES).for_each(|i| store(format!("st.global.b64 @, %d{i};")));
        (0..PREDICATES).for_each(|i| store(format!("selp.b32 %tc, 1, 0, %p{i};\nst.global.b32 @, %tc;")));
        if self.has_quads() {
            (0..2).for_each(|i| {
                store(format!("mov.b128 {{%y0, %y1}}, %q{i};\nxor.b64 %y0, %y0, %y1;\nst.global.b64 @, %y0;"))
            });
        }
        all
    }

    /// Bytes of results that [`Generator::final_values`] stores for each thread.
    pub const RESULT_BYTES: usize = 8 * (HALVES + WORDS + DOUBLES + PREDICATES + 2);

    // Statements.

    /// Some statements.
    fn statements(&mut self, place: &Place) -> Vec<Stmt> {
        let count = match place.depth {
            0 => self.budget,
            _ => 1 + self.random.below(5),
        };
        let mut all = Vec::new();
        for _ in 0..count {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            all.extend(self.statement(place));
        }
        all
    }

    fn statement(&mut self, place: &Place) -> Option<Stmt> {
        let can_nest = place.depth < DEPTH;
        for _ in 0..8 {
            let made = match self.random.below(100) {
                0..22 => self.pure(),
                22..30 => self.neighbours(place),
                30..36 => self.idiom(),
                36..52 => self.access(place),
                52..57 if self.prints && self.random.percent(50) => Some(self.print(place)),
                52..57 => self.interleaved(place),
                57..61 => self.atomic(place),
                61..68 => self.warp(place),
                68..73 => self.block(place),
                73..75 => self.asynchronous(place),
                75..88 if can_nest => self.nest(place),
                88..96 => self.call(place),
                96 => self.exit(place),
                97 => Some(self.question()),
                98..100 => self.pack(),
                _ => None,
            };
            if made.is_some() {
                return made;
            }
        }
        None
    }
}

/// Bytes of the result array for each thread of a launch; the number of threads is rounded up to a multiple of 16.
pub fn result_bytes() -> usize {
    Generator::RESULT_BYTES
}
