//! Cubes: the face that a direction meets, and the texel beyond a face's edge.
//!
//! CUDA C++ Programming Guide, "Cubemap Textures" (faces, s and t of each); OpenGL 4.6, 8.13 "Cube Map Texture Selection" and
//! 8.14 (seamless filtering).

/// The point where a direction meets its face.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Face {
    /// +x, -x, +y, -y, +z, -z
    pub number: u32,
    /// Position along a row, from 0 to 1.
    pub s: f64,
    /// Position from row to row, from 0 to 1.
    pub t: f64,
}

/// A component of a direction: its axis, and whether it is negated.
type Component = (usize, bool);

/// For each face: the major axis, and the components of s and t.
const AXES: [(usize, Component, Component); 6] = [
    (0, (2, true), (1, true)),
    (0, (2, false), (1, true)),
    (1, (0, false), (2, false)),
    (1, (0, false), (2, true)),
    (2, (0, false), (1, true)),
    (2, (0, true), (1, true)),
];

/// The index of the face that a direction meets. *Unverified*: of components with equal magnitudes, z precedes y and
/// y precedes x, as in Direct3D 11.
fn number(direction: [f64; 3]) -> usize {
    let [x, y, z] = direction.map(f64::abs);
    let axis = if z >= x && z >= y {
        2
    } else if y >= x {
        1
    } else {
        0
    };
    2 * axis + usize::from(direction[axis].is_sign_negative())
}

/// One of a direction's components, negated or not.
fn pick(direction: [f64; 3], (axis, negated): Component) -> f64 {
    if negated { -direction[axis] } else { direction[axis] }
}

/// The point where a direction meets the cube. The zero direction meets the middle of the z face of its sign, and NaN
/// counts as 0: *unverified*.
pub(super) fn project(direction: [f32; 3]) -> Face {
    let direction = direction.map(|x| if x.is_nan() { 0.0 } else { f64::from(x) });
    let face = number(direction);
    let (axis, s, t) = AXES[face];
    let length = direction[axis].abs();
    // 0 / 0 and infinity / infinity give the middle.
    let place = |component: f64| match component / length {
        quotient if quotient.is_nan() => 0.5,
        quotient => (quotient + 1.0) / 2.0,
    };
    Face { number: face as u32, s: place(pick(direction, s)), t: place(pick(direction, t)) }
}

/// The rate of change of s and t for a rate of change of the direction, by the quotient rule.
pub(super) fn derivative(direction: [f32; 3], change: [f32; 3]) -> [f64; 2] {
    let (direction, change) = (direction.map(f64::from), change.map(f64::from));
    let (axis, s, t) = AXES[number(direction)];
    let length = direction[axis].abs();
    let growth = if direction[axis].is_sign_negative() { -change[axis] } else { change[axis] };
    [s, t].map(|component| {
        let (at, change) = (pick(direction, component), pick(change, component));
        (change * length - at * growth) / (2.0 * length * length)
    })
}

/// The face and the texel at the position of a texel just beyond one edge of an `n` by `n` face.
pub(super) fn beyond(face: u32, [x, y]: [i64; 2], n: u32) -> (u32, [u32; 2]) {
    // In units of half a texel, the cube extends from -n to n. The position is the texel's centre, one unit beyond
    // the face.
    let n = i64::from(n);
    let (axis, s, t) = AXES[face as usize % 6];
    let mut direction = [0i64; 3];
    direction[axis] = if face % 2 == 1 { -n } else { n };
    for ((axis, negated), at) in [(s, x), (t, y)] {
        let place = 2 * at + 1 - n;
        direction[axis] = if negated { -place } else { place };
    }
    let next = number(direction.map(|place| place as f64));
    let (axis, s, t) = AXES[next];
    let length = direction[axis].abs();
    // Seen from the centre of the cube, that position projects onto the next face at component / length. This is
    // within the texel next to the edge, in the row or column of the original one.
    let texel = |(axis, negated): Component| {
        let component = if negated { -direction[axis] } else { direction[axis] };
        ((component + length) * n / (2 * length)).clamp(0, n - 1) as u32
    };
    (next as u32, [texel(s), texel(t)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_are_those_of_the_guide() {
        let face = |direction| project(direction);
        let middle = |number| Face { number, s: 0.5, t: 0.5 };
        for (number, direction) in [
            [1.0, 0.0, 0.0],
            [-1.0, 0.0, 0.0],
            [0.0, 1.0, 0.0],
            [0.0, -1.0, 0.0],
            [0.0, 0.0, 1.0],
            [0.0, 0.0, -1.0],
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(face(direction), middle(number as u32));
        }
        // s = -z and t = -y on +x, s = x and t = z on +y, s = -x and t = -y on -z.
        assert_eq!(face([2.0, 1.0, 1.0]), Face { number: 0, s: 0.25, t: 0.25 });
        assert_eq!(face([-2.0, 1.0, 1.0]), Face { number: 1, s: 0.75, t: 0.25 });
        assert_eq!(face([1.0, 2.0, -1.0]), Face { number: 2, s: 0.75, t: 0.25 });
        assert_eq!(face([1.0, -2.0, -1.0]), Face { number: 3, s: 0.75, t: 0.75 });
        assert_eq!(face([1.0, -1.0, 2.0]), Face { number: 4, s: 0.75, t: 0.75 });
        assert_eq!(face([1.0, -1.0, -2.0]), Face { number: 5, s: 0.25, t: 0.75 });
        assert_eq!(face([0.0; 3]), middle(4));
        assert_eq!(face([f32::INFINITY; 3]).s, 0.5);
    }

    /// Crossing an edge and back returns to the original texel.
    #[test]
    fn there_and_back_across_every_edge() {
        for n in [1u32, 2, 3, 8] {
            for number in 0..6 {
                for i in 0..i64::from(n) {
                    let end = i64::from(n);
                    for (out, inside) in [
                        ([-1, i], [0, i]),
                        ([end, i], [end - 1, i]),
                        ([i, -1], [i, 0]),
                        ([i, end], [i, end - 1]),
                    ] {
                        let (next, texel) = beyond(number, out, n);
                        assert_ne!(next / 2, number / 2, "{n} {number} {out:?}");
                        let back = [[-1, 0], [1, 0], [0, -1], [0, 1]].into_iter().any(|[dx, dy]| {
                            let place = [i64::from(texel[0]) + dx, i64::from(texel[1]) + dy];
                            let outside = place.iter().any(|c| !(0..end).contains(c));
                            outside && beyond(next, place, n) == (number, inside.map(|c| c as u32))
                        });
                        assert!(back, "{n} {number} {out:?}: {next} {texel:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn derivatives_are_those_of_the_projection() {
        let (direction, change) = ([2.0f32, 0.5, -1.0], [0.25f32, 0.5, 0.125]);
        let step = 1.0 / 1024.0;
        let moved = std::array::from_fn(|i| direction[i] + change[i] * step);
        let (from, to) = (project(direction), project(moved));
        let slope = [(to.s - from.s) / f64::from(step), (to.t - from.t) / f64::from(step)];
        let [s, t] = derivative(direction, change);
        assert!((slope[0] - s).abs() < 1e-3 && (slope[1] - t).abs() < 1e-3, "{slope:?} {s} {t}");
    }
}
