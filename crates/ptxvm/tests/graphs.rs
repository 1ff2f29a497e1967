//! Graph codes with one mistake each, as the Indigo suite has them (Liu, Azami, Walters, Burtscher, ISPASS 2022): the tools find every one of them on
//! every graph on which threads meet, and nothing in codes without a mistake. `tests/graphs/kernels.cu` is what nvcc made the PTX of.

use std::collections::BTreeSet;
use std::path::Path;

use ptxvm::{Checker, Device, Error, FaultKind, Module, Tools};

/// The neighbours of vertex v are those from `first[v]` to `first[v + 1]`.
struct Graph {
    first: Vec<i32>,
    neighbours: Vec<i32>,
}

impl Graph {
    fn new(vertices: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Graph {
        let edges: BTreeSet<_> =
            edges.into_iter().filter(|(a, b)| a != b).flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        let before = |v: usize| edges.range(..(v, 0)).count() as i32;
        Graph {
            first: (0..=vertices).map(before).collect(),
            neighbours: edges.iter().map(|&(_, to)| to as i32).collect(),
        }
    }

    fn vertices(&self) -> usize {
        self.first.len() - 1
    }
}

const VERTICES: usize = 70;

/// Graphs in which neighbours of different vertices meet.
fn graphs() -> Vec<(&'static str, Graph)> {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 33) as usize % VERTICES
    };
    let pairs: Vec<_> = (0..300).map(|_| (random(), random())).collect();
    vec![
        ("ring", Graph::new(VERTICES, (0..VERTICES).map(|v| (v, (v + 1) % VERTICES)))),
        ("tree", Graph::new(VERTICES, (1..VERTICES).map(|v| (v, (v - 1) / 2)))),
        ("grid", Graph::new(64, (0..64).flat_map(|v| [(v, (v + 8) % 64), (v, v / 8 * 8 + (v + 1) % 8)]))),
        ("random", Graph::new(VERTICES, pairs)),
        ("clique", Graph::new(40, (0..1600).map(|i| (i / 40, i % 40)))),
    ]
}

/// Graphs in which most mistakes cannot show: hardly anything is shared.
fn lonely_graphs() -> Vec<(&'static str, Graph)> {
    vec![
        ("star", Graph::new(VERTICES, (1..VERTICES).map(|v| (0, v)))),
        ("pair", Graph::new(2, [(0, 1)])),
        ("points", Graph::new(5, [])),
    ]
}

const ALL: &[&str] = &[
    "vertices_by_thread",
    "vertices_by_few_threads",
    "vertices_by_warp",
    "vertices_by_block",
    "vertices_by_few_blocks",
    "edges_by_thread",
    "edges_by_warp",
    "edges_by_block",
    "push_by_thread",
    "push_by_warp",
    "push_by_block",
    "pull_by_thread",
    "pull_by_warp",
    "pull_by_block",
    "list_by_thread",
    "list_by_warp",
    "components_by_thread",
];

/// The kernels of a file that have its mistake.
fn mistaken(file: &str) -> Vec<&'static str> {
    let has = |name: &str| match file {
        "atomic" => !name.starts_with("pull"),
        "guard" => name.starts_with("push"),
        "race" => name.starts_with("pull") || name.starts_with("components"),
        "sync" => {
            name.ends_with("block") && (name.starts_with("vertices") || name.starts_with("pull"))
                || name == "vertices_by_few_blocks"
        }
        "bounds" => true,
        _ => false,
    };
    ALL.iter().copied().filter(|name| has(name)).collect()
}

fn module(file: &str) -> Module {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/graphs");
    let text = std::fs::read_to_string(folder.join(format!("{file}.ptx"))).expect("a file");
    Module::from_ptx(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The codes of what the tools find of a kernel on a graph.
fn findings(module: &Module, kernel: &str, graph: &Graph) -> Vec<&'static str> {
    let device = Device::for_module(module);
    let vertices = graph.vertices();
    let values: Vec<i32> = match kernel {
        "components_by_thread" => (0..vertices as i32).collect(),
        _ => (0..vertices as i32).map(|v| v * 11 % 17).collect(),
    };
    let neighbours = if graph.neighbours.is_empty() { &[0] } else { &graph.neighbours[..] };
    let (blocks, threads) = match kernel {
        "vertices_by_few_threads" => (2, 16),
        "vertices_by_few_blocks" => (3, 64),
        name if name.ends_with("block") => (vertices as u32 + 1, 64),
        name if name.ends_with("warp") => (vertices as u32 / 2 + 1, 64),
        _ => (vertices as u32 / 64 + 1, 64),
    };
    let checker = Checker::shared(Tools::ALL);
    let launch = || {
        let (first, neighbours) = (device.array(&graph.first)?, device.array(neighbours)?);
        let (result, value) = (device.zeros::<i32>(vertices)?, device.array(&values)?);
        let (list, length) = (device.zeros::<i32>(vertices)?, device.zeros::<i32>(1)?);
        let launch = device.load(module)?.launch(kernel).grid(blocks).block(threads);
        let launch = launch.arg(&first).arg(&neighbours).arg(vertices as i32);
        launch.arg(&result).arg(&value).arg(&list).arg(&length).check(&checker).run()
    };
    match launch() {
        Err(Error::Fault { fault, .. }) if fault.kind == FaultKind::OutOfBounds => vec!["out-of-bounds"],
        Err(error) => panic!("{kernel}: {error}"),
        Ok(_) => module.findings(&checker).iter().map(|found| found.finding.kind.code()).collect(),
    }
}

#[test]
fn nothing_is_found_without_a_mistake() {
    let module = module("clean");
    for (name, graph) in graphs().iter().chain(&lonely_graphs()) {
        for kernel in ALL {
            assert_eq!(findings(&module, kernel, graph), Vec::<&str>::new(), "{kernel} on {name}");
        }
    }
}

#[test]
fn every_mistake_is_found() {
    let mut count = 0;
    for file in ["atomic", "guard", "race", "sync", "bounds"] {
        let module = module(file);
        for kernel in mistaken(file) {
            for (name, graph) in &graphs() {
                let found = findings(&module, kernel, graph);
                let is_it = |code: &&str| match file {
                    "bounds" => *code == "out-of-bounds",
                    _ => code.starts_with("race-"),
                };
                assert!(found.iter().any(is_it), "{file}: {kernel} on {name}: {found:?}");
                count += 1;
            }
        }
    }
    assert_eq!(count, 205);
}
