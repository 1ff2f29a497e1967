//! How cost grows: with threads, blocks, registers, divergent paths, and the size of a file.
//!
//! `cargo bench -p ptxvm --bench scaling` prints the tables of benches/RESULTS.md and draws docs/scaling.svg. A word
//! behind `--` picks tables by name: `-- file`.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use plotters::prelude::*;
use ptxvm::{Device, Engine, Module};

/// Where one table is drawn.
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
/// What makes a table.
type Make = fn() -> Table;

const HEAD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";
/// Of the lines of a picture.
const COLORS: [RGBColor; 4] =
    [RGBColor(31, 119, 180), RGBColor(214, 39, 40), RGBColor(44, 160, 44), RGBColor(148, 103, 189)];
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scaling.svg");

/// A kernel with its body; it has the 64-bit parameter `out` in `%o`, its linear index in `%i`, and `registers` registers
/// `%r0` ...
fn kernel(registers: usize, body: &str) -> String {
    format!(
        "{HEAD}.visible .entry kernel(.param .u64 out)\n{{\n.reg .pred %p<40>;\n.reg .u32 %i, %t, %b, %n;\n\
         .reg .u64 %o, %e;\n.reg .f32 %r<{registers}>;\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\n\
         mov.u32 %b, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmad.lo.u32 %i, %b, %n, %t;\n{body}\nret;\n}}\n"
    )
}

/// Loads an element of 64 Ki, adds, stores it.
const ELEMENT: &str = "and.b32 %i, %i, 0xffff;\nmad.wide.u32 %e, %i, 4, %o;\nld.global.f32 %r0, [%e];\n\
    add.f32 %r0, %r0, %r0;\nst.global.f32 [%e], %r0;";

/// Median seconds of processor time that `f` takes on this thread, of at least three runs.
fn seconds(mut f: impl FnMut()) -> f64 {
    let (begin, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || times.len() < 51 && begin.elapsed() < Duration::from_millis(500) {
        let start = ThreadTime::now();
        f();
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Seconds of a launch on one host thread, and the thread-instructions that it executes.
fn launch(text: &str, grid: u32, block: u32) -> (f64, f64) {
    let module = Module::from_ptx(text).unwrap_or_else(|error| panic!("{error}"));
    let device = Device::new();
    let out = device.zeros::<f32>(1 << 16).expect("room");
    let loaded = device.load(&module).expect("room for its variables");
    let run = || {
        let launch = loaded.launch("kernel").grid(grid).block(block).arg(&out);
        launch.configure(|c| c.threads = Some(1)).run().expect("a launch that ends")
    };
    (seconds(|| _ = run()), run().thread_instructions as f64)
}

/// A table, and the lines of its picture.
struct Table {
    title: &'static str,
    /// Of the first column and of the picture's other axis.
    axes: [&'static str; 2],
    columns: &'static [&'static str],
    /// The first column, and the others.
    rows: Vec<(f64, Vec<f64>)>,
    /// The columns that the picture shows.
    shown: &'static [usize],
}

/// Launches of 1 to 10^8 threads, in blocks of 256.
fn threads() -> Table {
    let text = kernel(1, ELEMENT);
    let row = |threads: u32| {
        let (seconds, _) = launch(&text, threads.div_ceil(256), threads.min(256));
        (f64::from(threads), vec![seconds * 1e6, seconds * 1e9 / f64::from(threads)])
    };
    Table {
        title: "threads",
        axes: ["threads", "microseconds"],
        columns: &["microseconds", "nanoseconds a thread"],
        rows: (0..=8).map(|power| row(10u32.pow(power))).collect(),
        shown: &[0],
    }
}

/// A million threads in blocks of 1 to 1024.
fn blocks() -> Table {
    let text = kernel(1, ELEMENT);
    let row = |size: u32| {
        let blocks = (1 << 20) / size;
        let (seconds, _) = launch(&text, blocks, size);
        (f64::from(blocks), vec![f64::from(size), seconds * 1e6, seconds * 1e9 / f64::from(blocks)])
    };
    Table {
        title: "blocks of a million threads",
        axes: ["blocks", "microseconds"],
        columns: &["threads a block", "microseconds", "nanoseconds a block"],
        rows: (0..=10).rev().map(|power| row(1 << power)).collect(),
        shown: &[1],
    }
}

/// 4096 additions that read and write 2 to 4096 registers, all of them live to the end.
fn registers() -> Table {
    let row = |count: usize| {
        let mut body = String::new();
        for i in 0..count {
            let _ = writeln!(body, "cvt.rn.f32.u32 %r{i}, %t;");
        }
        for i in 0..4096 {
            let _ = writeln!(body, "add.f32 %r{}, %r{}, %r{};", i % count, i % count, (i + 1) % count);
        }
        for i in 1..count {
            let _ = writeln!(body, "add.f32 %r0, %r0, %r{i};");
        }
        let body = format!(
            "{body}{}",
            ELEMENT.replace("add.f32 %r0, %r0, %r0;", "").replace("ld.global.f32 %r0, [%e];", "")
        );
        let (seconds, instructions) = launch(&kernel(count, &body), 64, 256);
        (count as f64, vec![seconds * 1e6, seconds * 1e12 / instructions])
    };
    Table {
        title: "registers",
        axes: ["live registers", "picoseconds a thread-instruction"],
        columns: &["microseconds", "picoseconds a thread-instruction"],
        rows: (1..=12).map(|power| row(1 << power)).collect(),
        shown: &[1],
    }
}

/// Threads of a warp that take 1 to 32 different ways of 64 additions each.
fn divergence() -> Table {
    let row = |paths: usize| {
        let mut body = format!("mov.f32 %r0, 0f3F800000;\nrem.u32 %n, %t, {paths};\n");
        for path in 1..paths {
            let _ = writeln!(body, "setp.eq.u32 %p{path}, %n, {path};\n@%p{path} bra WAY{path};");
        }
        for path in 0..paths {
            let _ = write!(body, "WAY{path}:\n{}bra END;\n", "add.f32 %r0, %r0, %r0;\n".repeat(64));
        }
        body += "END:\nmad.wide.u32 %e, %t, 4, %o;\nst.global.f32 [%e], %r0;";
        let (seconds, instructions) = launch(&kernel(1, &body), 256, 256);
        (paths as f64, vec![seconds * 1e6, seconds * 1e12 / instructions])
    };
    Table {
        title: "divergent paths of a warp",
        axes: ["paths", "microseconds"],
        columns: &["microseconds", "picoseconds a thread-instruction"],
        rows: (0..=5).map(|power| row(1 << power)).collect(),
        shown: &[0],
    }
}

/// Launches of one small kernel, again and again, in modules of 1 to 1000 kernels: what a launch itself costs.
fn launches() -> Table {
    let row = |kernels: usize| {
        let names = |text: &str| -> String {
            let body = text.strip_prefix(HEAD).unwrap_or(text);
            let all = (0..kernels).map(|i| body.replace("kernel(", &format!("kernel{i}(")));
            format!("{HEAD}{}", all.collect::<String>())
        };
        let device = Device::new();
        let out = device.zeros::<f32>(1 << 16).expect("room");
        let microseconds = |body: &str, block: u32| {
            let module = Module::from_ptx(&names(&kernel(1, body))).unwrap_or_else(|error| panic!("{error}"));
            let (loaded, last) = (device.load(&module).expect("room"), format!("kernel{}", kernels - 1));
            // Many at a time: the clock takes as long as a launch.
            let many = || {
                for _ in 0..1000 {
                    loaded.launch(&last).block(block).arg(&out).run().expect("a launch that ends");
                }
            };
            seconds(many) * 1e3
        };
        (kernels as f64, vec![microseconds("", 1), microseconds(ELEMENT, 32), microseconds(ELEMENT, 256)])
    };
    Table {
        title: "launches of a small kernel",
        axes: ["kernels of the module", "microseconds"],
        columns: &["1 thread, 6 instructions", "32 threads, 12 instructions", "256 threads, 12 instructions"],
        rows: (0..=3).map(|power| row(10usize.pow(power))).collect(),
        shown: &[0, 1, 2],
    }
}

/// A kernel of `count` instructions as compilers write them: loads, arithmetic, compares, selects, and a branch every 64.
fn file(count: usize) -> String {
    let mut body = String::new();
    for i in 0..count {
        let (a, b, c) = (i % 60, i * 7 % 60, i * 13 % 60);
        let _ = match i % 8 {
            _ if i % 64 == 63 => writeln!(body, "setp.gt.f32 %p1, %r{a}, %r{b};\n@%p1 bra L{i};\nL{i}:"),
            0 => writeln!(body, "ld.global.f32 %r{a}, [%e+{}];", i % 1000 * 4),
            1 => writeln!(body, "setp.lt.f32 %p2, %r{a}, %r{b};"),
            2 => writeln!(body, "selp.f32 %r{a}, %r{b}, %r{c}, %p2;"),
            3 => writeln!(body, "st.global.f32 [%e+{}], %r{b};", i % 1000 * 4),
            4 => writeln!(body, "mad.lo.u32 %i, %i, {}, %t;", i % 17),
            _ => writeln!(body, "fma.rn.f32 %r{a}, %r{b}, %r{c}, %r{a};"),
        };
    }
    kernel(60, &format!("mov.u64 %e, %o;\n{body}"))
}

/// Median seconds of the first launch of a module's kernel, with one warp: almost all of it makes code.
fn first_launch(module: &Module, engine: Engine) -> f64 {
    let device = Device::new();
    let out = device.zeros::<f32>(1 << 16).expect("room");
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let loaded = device.load(module).expect("room for its variables");
            let start = ThreadTime::now();
            loaded.launch("kernel").block(32).arg(&out).engine(engine).run().expect("a launch that ends");
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// What becomes of kernels of 60 to 100,000 instructions before they run.
fn files() -> Table {
    let row = |count: usize| {
        let text = file(count);
        let module = Module::from_ptx(&text).unwrap_or_else(|error| panic!("{error}"));
        let [interpreted, native] = [Engine::Interpreter, Engine::Native].map(|e| first_launch(&module, e));
        let source = diag::SourceFile::new("file", text);
        let (tree, diagnostics) = syntax::parse(&source);
        assert!(diagnostics.is_empty());
        let checked =
            || check::check(&source, &tree, Vec::new(), &check::Options::default()).0.expect("it is legal");
        let parse = seconds(|| drop(syntax::parse(&source)));
        let check = seconds(|| drop(checked()));
        let modules: Vec<_> = (0..3).map(|_| checked()).collect();
        let mut modules = modules.into_iter().cycle();
        let lower = {
            let mut copies: Vec<_> = Vec::new();
            copies.extend(modules.by_ref().take(51));
            seconds(|| drop(ir::lower(copies.pop().expect("one for each run"), &ir::Options::ALL)))
        };
        let all = [parse, check, lower, parse + check + lower, interpreted, native];
        (count as f64, all.map(|s| s * 1e6).to_vec())
    };
    Table {
        title: "file size",
        axes: ["instructions", "microseconds"],
        columns: &[
            "parse",
            "check",
            "lower",
            "microseconds in all",
            "first launch: interpreter",
            "first launch: native code",
        ],
        rows: [60, 100, 1_000, 10_000, 100_000].into_iter().map(row).collect(),
        shown: &[0, 1, 2, 5],
    }
}

impl Table {
    fn markdown(&self) -> String {
        let mut text = format!(
            "| {} | {} |\n|{}\n",
            self.axes[0],
            self.columns.join(" | "),
            "---|".repeat(self.columns.len() + 1)
        );
        for (x, values) in &self.rows {
            let values: Vec<_> = values.iter().map(|&value| number(value)).collect();
            let _ = writeln!(text, "| {} | {} |", number(*x), values.join(" | "));
        }
        text
    }

    /// Both axes are logarithmic.
    fn draw(&self, area: &Area) -> Result<(), Box<dyn Error>> {
        let shown =
            || self.rows.iter().flat_map(|(_, values)| self.shown.iter().map(|&column| values[column]));
        let (low, high) = (shown().fold(f64::MAX, f64::min), shown().fold(0.0, f64::max));
        let first = self.rows.first().map_or(1.0, |row| row.0);
        let last = self.rows.last().map_or(1.0, |row| row.0);
        // Linear growth is a line of this slope everywhere: at least a decade, and nothing is stretched.
        let mut chart = ChartBuilder::on(area)
            .caption(self.title, ("sans-serif", 15))
            .margin(12)
            .x_label_area_size(34)
            .y_label_area_size(58)
            .build_cartesian_2d(
                (first..last * 1.1).log_scale(),
                (low.min(high / 10.0) * 0.8..high * 1.3).log_scale(),
            )?;
        let label = |value: &f64| short(*value);
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .x_desc(self.axes[0])
            .y_desc(self.axes[1])
            .x_label_formatter(&label)
            .y_label_formatter(&label)
            .draw()?;
        for (i, &column) in self.shown.iter().enumerate() {
            let color = COLORS[i % COLORS.len()];
            let points = || self.rows.iter().map(|(x, values)| (*x, values[column]));
            let line = chart.draw_series(LineSeries::new(points(), color.stroke_width(2)))?;
            if self.shown.len() > 1 {
                line.label(self.columns[column])
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
            }
            chart.draw_series(points().map(|point| Circle::new(point, 2, color.filled())))?;
        }
        if self.shown.len() > 1 {
            chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft).draw()?;
        }
        Ok(())
    }
}

/// Three digits at least, all of large numbers.
fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 || v.fract() == 0.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// `10k`
fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", number(v / 1e6)),
        v if v >= 1e3 => format!("{}k", number(v / 1e3)),
        v => number(v),
    }
}

fn draw(tables: &[Table]) -> Result<(), Box<dyn Error>> {
    let picture = SVGBackend::new(Path::new(PICTURE), (960, 620)).into_drawing_area();
    picture.fill(&WHITE)?;
    for (table, area) in tables.iter().zip(picture.split_evenly((2, 3))) {
        table.draw(&area)?;
    }
    picture.present()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let all: [(&str, Make); 6] = [
        ("threads", threads),
        ("blocks", blocks),
        ("registers", registers),
        ("divergence", divergence),
        ("file", files),
        ("launches", launches),
    ];
    let mut tables = Vec::new();
    for (name, make) in all {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            let table = make();
            println!("### {}\n\n{}", table.title, table.markdown());
            tables.push(table);
        }
    }
    if wanted.is_empty() {
        draw(&tables)?;
    }
    Ok(())
}
