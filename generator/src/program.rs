//! A kernel as a tree of statements, and its text.

use std::fmt::Write;

/// Statements that can only be removed together, or that contain others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stmt {
    /// Some lines.
    Text(String),
    /// `head`, then the arms: the statements of each, and the lines that end it.
    Nest {
        /// Lines before the first arm.
        head: String,
        /// The statements of each arm, and the lines that end them.
        arms: Vec<(Vec<Stmt>, String)>,
    },
}

impl Stmt {
    /// Lines.
    pub fn text(lines: impl Into<String>) -> Stmt {
        Stmt::Text(lines.into())
    }

    fn print(&self, depth: usize, out: &mut String) {
        let mut lines = |text: &str, depth: usize| {
            for line in text.lines() {
                let indent = if line.ends_with(':') { 0 } else { 4 * depth };
                let _ = writeln!(out, "{:indent$}{line}", "");
            }
        };
        match self {
            Stmt::Text(text) => lines(text, depth),
            Stmt::Nest { head, arms } => {
                lines(head, depth);
                for (statements, end) in arms {
                    statements.iter().for_each(|statement| statement.print(depth + 1, out));
                    let mut lines = String::new();
                    Stmt::text(end.clone()).print(depth, &mut lines);
                    out.push_str(&lines);
                }
            }
        }
    }
}

/// A function: its signature, its declarations, and its statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its signature: `.func (...) name (...)`.
    pub signature: String,
    /// Declarations of its body.
    pub declarations: String,
    /// Its statements.
    pub body: Vec<Stmt>,
}

impl Function {
    fn print(&self, out: &mut String) {
        let mut body = String::new();
        self.body.iter().for_each(|statement| statement.print(1, &mut body));
        let _ = writeln!(out, "{}\n{{", self.signature);
        // Unused declarations are left out.
        for line in self.declarations.lines().filter(|line| is_used(line, &body)) {
            let _ = writeln!(out, "    {line}");
        }
        let _ = writeln!(out, "{body}    ret;\n}}\n");
    }
}

/// Whether the text uses the names that a line declares.
fn is_used(line: &str, text: &str) -> bool {
    let Some(name) = line.split(['<', '[', ';']).next() else { return true };
    let name = name.rsplit(' ').next().unwrap_or(name);
    text.contains(name)
}

/// A kernel, its launch, and the functions that it calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Directives and variables of the module.
    pub module: String,
    /// Functions, each before its callers.
    pub functions: Vec<Function>,
    /// The kernel itself, called `k`.
    pub kernel: Function,
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Blocks of a cluster; they divide the grid.
    pub cluster: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Seed of the arrays' contents.
    pub data: u64,
    /// Bytes of each thread's own memory in argument 1.
    pub own_bytes: usize,
    /// Bytes of each thread's own memory in argument 2, which interleaves the elements of adjacent threads.
    pub all_bytes: usize,
    /// Threads of the launch as the text assumes: the stride of a thread's elements in interleaved arrays.
    pub stride: usize,
}

impl Kernel {
    /// Threads of the launch.
    pub fn threads(&self) -> u64 {
        self.grid.iter().chain(&self.block).map(|&n| u64::from(n)).product()
    }

    /// The PTX.
    pub fn text(&self) -> String {
        let mut kernel = String::new();
        self.kernel.print(&mut kernel);
        let mut functions: Vec<String> = Vec::new();
        for function in self.functions.iter().rev() {
            let called = |text: &String| text.contains(&function.name);
            if called(&kernel) || functions.iter().any(called) {
                let mut text = String::new();
                function.print(&mut text);
                functions.push(text);
            }
        }
        let body: String = functions.iter().rev().chain([&kernel]).map(String::as_str).collect();
        let declares = |line: &&str| match line.contains("vprintf") {
            true => body.contains("vprintf"),
            false => !line.contains('[') && !line.contains("s_barrier") || is_used(line, &body),
        };
        let module: String = self.module.lines().filter(declares).map(|line| format!("{line}\n")).collect();
        format!("{module}\n{body}")
    }
}
