//! The tests: shapes from the literature, each with many orders, fences, scopes, placements, widths and spaces.

use ptxvm::HostPath;

use crate::program::{Fence, Instruction, Order, Placement, Program, Scope};
use crate::variant::{Pattern, Space, Variant, Width};

/// A test as text: threads separated by bars, one word for each instruction. `Wx1` stores 1 to x, `Ry` loads y, `Xz2`
/// exchanges z with 2, `F` is an optional fence. Lower-case letters are accesses to data that a flag protects; they
/// may be weak where the others are strong. `<` after a store makes its value depend on the register that its thread
/// loaded last.
pub struct Shape {
    /// Its name in the literature.
    pub name: &'static str,
    text: &'static str,
}

/// All shapes.
pub const SHAPES: [Shape; 25] = [
    // Coherence: a single location.
    Shape { name: "CoRR", text: "Wx1 | Rx Rx" },
    Shape { name: "CoRR2", text: "Wx1 | Wx2 | Rx Rx | Rx Rx" },
    Shape { name: "CoWW", text: "Wx1 Wx2 | Rx Rx" },
    Shape { name: "CoRW", text: "Rx Wx1 | Wx2" },
    Shape { name: "CoWR", text: "Wx1 Rx | Wx2" },
    // Two threads, two locations.
    Shape { name: "MP", text: "wx1 F Wy1 | Ry F rx" },
    Shape { name: "SB", text: "Wx1 F Ry | Wy1 F Rx" },
    Shape { name: "LB", text: "Rx F Wy1 | Ry F Wx1" },
    Shape { name: "LB+deps", text: "Rx Wy1< | Ry Wx1<" },
    Shape { name: "S", text: "wx2 F Wy1 | Ry F wx1" },
    Shape { name: "R", text: "Wx1 F Wy1 | Wy2 F Rx" },
    Shape { name: "2+2W", text: "Wx1 F Wy2 | Wy1 F Wx2" },
    // Cumulativity: values passed on by another thread.
    Shape { name: "WRC", text: "Wx1 | Rx F Wy1 | Ry F Rx" },
    Shape { name: "RWC", text: "Wx1 | Rx F Ry | Wy1 F Rx" },
    Shape { name: "WWC", text: "Wx2 | Rx F Wy1 | Ry F Wx1" },
    Shape { name: "ISA2", text: "wx1 F Wy1 | Ry F Wz1 | Rz F rx" },
    Shape { name: "W+RWC", text: "wx1 F Wy1 | Ry F Rz | Wz1 F Rx" },
    Shape { name: "Z6.3", text: "wx1 F Wy1 | Wy2 F Wz1 | Rz F rx" },
    Shape { name: "IRIW", text: "Wx1 | Wy1 | Rx F Ry | Ry F Rx" },
    // With `atom`.
    Shape { name: "MP+chain", text: "wx1 F Wy1 | Xy2 | Ry F rx" },
    Shape { name: "MP+atoms", text: "wx1 F Xy1 | Xy2 F rx" },
    Shape { name: "SB+atoms", text: "Xx1 F Ry | Xy1 F Rx" },
    Shape { name: "Atomicity", text: "Xx1 | Wx2" },
    Shape { name: "Two atoms", text: "Xx1 | Xx2" },
    Shape { name: "Three atoms", text: "Xx1 | Xx2 | Xx3" },
];

/// The memory orders of a test's accesses.
#[derive(Clone, Copy)]
pub struct Strength {
    /// Its name in reports.
    pub name: &'static str,
    store: Order,
    load: Order,
    exchange: Order,
    /// The order of accesses to data that a flag protects.
    data: Option<Order>,
}

/// All strengths; those after the first six are for shapes with data.
pub const STRENGTHS: [Strength; 9] = {
    use Order::{Acquire, AcquireRelease, Relaxed, Release, Volatile, Weak};
    const fn of(
        name: &'static str,
        store: Order,
        load: Order,
        exchange: Order,
        data: Option<Order>,
    ) -> Strength {
        Strength { name, store, load, exchange, data }
    }
    [
        of("weak", Weak, Weak, Relaxed, None),
        of("volatile", Volatile, Volatile, Relaxed, None),
        of("relaxed", Relaxed, Relaxed, Relaxed, None),
        of("release/acquire", Release, Acquire, AcquireRelease, None),
        of("relaxed/acquire", Relaxed, Acquire, Acquire, None),
        of("release/relaxed", Release, Relaxed, Release, None),
        of("relaxed flag", Relaxed, Relaxed, Relaxed, Some(Weak)),
        of("release/acquire flag", Release, Acquire, AcquireRelease, Some(Weak)),
        of("volatile flag", Volatile, Volatile, Relaxed, Some(Weak)),
    ]
};

/// The fences at an `F` of a shape.
pub const FENCES: [Option<Fence>; 3] = [None, Some(Fence::AcquireRelease), Some(Fence::Sequential)];

impl Shape {
    /// The shape with this name.
    pub fn named(name: &str) -> Option<&'static Shape> {
        SHAPES.iter().find(|shape| shape.name == name)
    }

    fn has_data(&self) -> bool {
        self.text.contains(['w', 'r'])
    }

    fn has_fences(&self) -> bool {
        self.text.contains('F')
    }

    /// The test with these orders.
    pub fn program(
        &self,
        strength: &Strength,
        fence: Option<Fence>,
        scope: Scope,
        placement: Placement,
    ) -> Program {
        let mut registers = 0;
        let mut thread = |text: &str| {
            let mut last = None;
            let mut instruction = |word: &str| {
                let letters = word.as_bytes();
                let place = || usize::from(letters[1] - b'x');
                let value = || letters[2] - b'0';
                let data = strength.data.filter(|_| letters[0].is_ascii_lowercase());
                let mut register = || {
                    registers += 1;
                    last = Some(registers - 1);
                    registers - 1
                };
                Some(match letters[0].to_ascii_uppercase() {
                    b'W' => Instruction::Store {
                        place: place(),
                        value: value(),
                        order: data.unwrap_or(strength.store),
                        depends: last.filter(|_| word.ends_with('<')),
                    },
                    b'R' => Instruction::Load {
                        place: place(),
                        register: register(),
                        order: data.unwrap_or(strength.load),
                    },
                    b'X' => Instruction::Exchange {
                        place: place(),
                        value: value(),
                        register: register(),
                        order: strength.exchange,
                    },
                    _ => Instruction::Fence(fence?),
                })
            };
            text.split_whitespace().filter_map(&mut instruction).collect()
        };
        let threads = self.text.split('|').map(&mut thread).collect();
        Program { threads, scope, placement }
    }

    /// All orders and fences that are distinct for the shape.
    fn orders(&self) -> impl Iterator<Item = (&'static Strength, Option<Fence>)> {
        let strengths = if self.has_data() { &STRENGTHS[..] } else { &STRENGTHS[..6] };
        let fences = if self.has_fences() { &FENCES[..] } else { &FENCES[..1] };
        strengths.iter().flat_map(|strength| fences.iter().map(move |&fence| (strength, fence)))
    }
}

/// All tests. Each shape has all of its orders, fences and placements; a random number generator seeded with the
/// test's number makes the other choices. Some shapes also have all widths and spaces.
pub fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for shape in &SHAPES {
        for (strength, fence) in shape.orders() {
            for placement in Placement::ALL {
                let mut rng = fastrand::Rng::with_seed(all.len() as u64);
                let scope = Scope::ALL[rng.usize(..4)];
                let program = shape.program(strength, fence, scope, placement);
                let spaces = Space::of(placement);
                let space = spaces[rng.usize(..spaces.len())];
                let widths = Width::of(space, program.has_atomics());
                let width = widths[rng.usize(..widths.len())];
                all.push(variant(shape, strength, fence, program, space, width, &mut rng));
            }
        }
    }
    for (name, strength, fence) in [
        ("CoRR", "relaxed", None),
        ("MP", "release/acquire", None),
        ("MP", "relaxed", Some(Fence::AcquireRelease)),
        ("MP", "volatile", None),
        ("SB", "relaxed", Some(Fence::Sequential)),
        ("Three atoms", "relaxed", None),
    ] {
        let shape = SHAPES.iter().find(|shape| shape.name == name);
        let strength = STRENGTHS.iter().find(|one| one.name == strength);
        let Some((shape, strength)) = shape.zip(strength) else { continue };
        for placement in Placement::ALL {
            for &space in Space::of(placement) {
                let program = shape.program(strength, fence, Scope::Sys, placement);
                for &width in Width::of(space, program.has_atomics()) {
                    let mut rng = fastrand::Rng::with_seed(all.len() as u64);
                    all.push(variant(shape, strength, fence, program.clone(), space, width, &mut rng));
                }
            }
        }
    }
    all
}

fn variant(
    shape: &Shape,
    strength: &Strength,
    fence: Option<Fence>,
    program: Program,
    space: Space,
    width: Width,
    rng: &mut fastrand::Rng,
) -> Variant {
    let pattern = Pattern::ALL[rng.usize(..Pattern::ALL.len())];
    let paths: Vec<_> = HostPath::ALL.into_iter().filter(|path| path.is_available()).collect();
    let path = paths[rng.usize(..paths.len())];
    let fence = fence.map_or_else(String::new, |fence| format!(", fence.{}", fence.name()));
    let name = format!(
        "{}, {}{fence}, {}, {} in {}, {}, {}, {}",
        shape.name,
        strength.name,
        program.scope.name(),
        program.placement.name(),
        space.name(),
        width.name(),
        pattern.name(),
        path.name()
    );
    Variant { name, shape: shape.name, program, space, width, pattern, path }
}
