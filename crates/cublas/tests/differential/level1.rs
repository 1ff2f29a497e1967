//! Vectors.

use crate::rig;
use crate::rig::{Dense, NAN, Num, Scalar, Stored, Ty, exact, gamma, ok};
use crate::{bounds, cases, mode, named, pick, size, step};

#[test]
fn vectors() {
    cases(7, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let on_device = mode(random, handle);
        let n = if random.u8(..6) == 0 { random.usize(4000..9000) } else { size(random) };
        let (incx, incy) = (step(random), step(random));
        let (x, y) = (Dense::random(ty, n, 1, random), Dense::random(ty, n, 1, random));
        let (dx, dy) = (Stored::vector(ty, &x.values, incx), Stored::vector(ty, &y.values, incy));
        let of_x = |i: usize, _| Some(if incx < 0 { n - 1 - i } else { i } * incx.unsigned_abs() as usize);
        let of_y = |i: usize, _| Some(if incy < 0 { n - 1 - i } else { i } * incy.unsigned_abs() as usize);
        let n64 = n as u64;
        let (px, py) = (dx.buffer.address, dy.buffer.address);
        let alpha = ty.factor(random);
        let factor = Scalar::new(ty, alpha, on_device);
        let one = Dense::new(1, 1, |_, _| [1.0, 0.0]);
        let none = Dense::new(n, 1, |_, _| [0.0; 2]);
        match random.u8(..8) {
            0 => {
                let name = named(random, ty, "axpy_v2");
                ok(&name, &[handle.0, n64, factor.address(), px, incx as u64, py, incy as u64]);
                let (want, sizes) = exact(alpha, &x, &one, [1.0, 0.0], &y);
                dy.check(&name, of_y, &want, &bounds(&sizes, gamma(ty, 2)));
            }
            1 => {
                let name = named(random, ty, "scal_v2");
                ok(&name, &[handle.0, n64, factor.address(), px, incx as u64]);
                let (want, sizes) = if incx > 0 {
                    exact([1.0, 0.0], &x, &Dense::new(1, 1, |_, _| alpha), [0.0; 2], &none)
                } else {
                    (x.clone(), none.clone())
                };
                dx.check(&name, of_x, &want, &bounds(&sizes, gamma(ty, 1)));
            }
            2 => {
                let (name, swap) = if random.bool() { ("copy_v2", false) } else { ("swap_v2", true) };
                let name = named(random, ty, name);
                ok(&name, &[handle.0, n64, px, incx as u64, py, incy as u64]);
                dy.check(&name, of_y, &x, &none);
                dx.check(&name, of_x, if swap { &y } else { &x }, &none);
            }
            3 => {
                let conjugated = ty.is_complex() && random.bool();
                let rest = if !ty.is_complex() {
                    "dot_v2"
                } else if conjugated {
                    "dotc_v2"
                } else {
                    "dotu_v2"
                };
                let name = named(random, ty, rest);
                let result = Scalar::new(ty, NAN, on_device);
                ok(&name, &[handle.0, n64, px, incx as u64, py, incy as u64, result.address()]);
                let (want, sizes) = exact(
                    [1.0, 0.0],
                    &x.operated(if conjugated { 2 } else { 1 }),
                    &y,
                    [0.0; 2],
                    &Dense::new(1, 1, |_, _| [0.0; 2]),
                );
                let (got, most) = (result.read(ty), sizes.at(0, 0)[0] * gamma(ty, n));
                assert!(
                    (0..2).all(|part| (got[part] - want.at(0, 0)[part]).abs() <= most),
                    "{name}: {got:?} {:?}",
                    want.at(0, 0)
                );
            }
            4 | 5 => {
                let is_norm = random.bool();
                let letters = match ty {
                    Ty::C => "Sc",
                    Ty::Z => "Dz",
                    other => other.letter(),
                };
                let name = format!("cublas{letters}{}", if is_norm { "nrm2_v2" } else { "asum_v2" });
                let result = Scalar::new(ty.real(), NAN, on_device);
                ok(&name, &[handle.0, n64, px, incx as u64, result.address()]);
                let mut sum = rig::Exact::default();
                for number in x.values.iter().filter(|_| incx > 0).flatten() {
                    if is_norm { sum.add_product(*number, *number) } else { sum.add(number.abs()) }
                }
                let want = if is_norm { sum.value().sqrt() } else { sum.value() };
                let got = result.read(ty.real())[0];
                assert!((got - want).abs() <= want * gamma(ty, n), "{name}: {got} {want}");
            }
            6 => {
                let is_largest = random.bool();
                let name = format!(
                    "cublasI{}{}_v2",
                    ty.letter().to_lowercase(),
                    if is_largest { "amax" } else { "amin" }
                );
                let mut result = -1i32;
                ok("cublasSetPointerMode_v2", &[handle.0, 0]);
                ok(&name, &[handle.0, n64, px, incx as u64, rig::at(&mut result)]);
                let size = |number: &Num| match ty.is_single() {
                    true => f64::from(number[0].abs() as f32 + number[1].abs() as f32),
                    false => number[0].abs() + number[1].abs(),
                };
                let mut best = 0;
                for i in 1..if incx > 0 { n } else { 0 } {
                    let (old, new) = (size(&x.values[best]), size(&x.values[i]));
                    if if is_largest { new > old } else { new < old } {
                        best = i;
                    }
                }
                assert_eq!(result, if n > 0 && incx > 0 { best as i32 + 1 } else { 0 }, "{name}");
            }
            _ => {
                let name = named(random, ty, "rot_v2");
                let real = ty.real();
                let (c, s) = (real.random(random), ty.random(random));
                let (pc, ps) = (Scalar::new(real, c, on_device), Scalar::new(ty, s, on_device));
                ok(&name, &[handle.0, n64, px, incx as u64, py, incy as u64, pc.address(), ps.address()]);
                let minus = [-s[0], s[1]];
                let (first, sizes) = exact(s, &y, &one, c, &x);
                let (second, other) = exact(minus, &x, &one, c, &y);
                dx.check(&name, of_x, &first, &bounds(&sizes, gamma(ty, 2)));
                dy.check(&name, of_y, &second, &bounds(&other, gamma(ty, 2)));
            }
        }
    });
}

/// Rotations turn what they are made for: the second number becomes zero, and the length stays.
#[test]
fn rotations() {
    cases(11, |random, handle| {
        let ty = pick(random, &Ty::ALL);
        let on_device = mode(random, handle);
        let l = ty.letter();
        let (a, b) = (ty.random(random), ty.random(random));
        let [pa, pb, pc, ps] = [(ty, a), (ty, b), (ty.real(), NAN), (ty, NAN)]
            .map(|(ty, value)| Scalar::new(ty, value, on_device));
        ok(&format!("cublas{l}rotg_v2"), &[handle.0, pa.address(), pb.address(), pc.address(), ps.address()]);
        let (r, c, s) = (pa.read(ty), pc.read(ty.real())[0], ps.read(ty));
        let most = 8.0 * ty.unit();
        let close =
            |got: f64, want: f64| assert!((got - want).abs() <= most, "{l} {a:?} {b:?}: {r:?} {c} {s:?}");
        // c a + s b = r, c b - conj(s) a = 0.
        close(c * a[0] + s[0] * b[0] - s[1] * b[1], r[0]);
        close(c * a[1] + s[0] * b[1] + s[1] * b[0], r[1]);
        close(c * b[0] - s[0] * a[0] - s[1] * a[1], 0.0);
        close(c * b[1] - s[0] * a[1] + s[1] * a[0], 0.0);
        close(c * c + s[0] * s[0] + s[1] * s[1], 1.0);
        if ty.is_complex() {
            return;
        }
        // The modified rotation: the same for sqrt(d1) x1 and sqrt(d2) y1.
        let scale = pick(random, &[1.0, 1e-10, 1e10]);
        let [d1, d2, x1, y1] = [random.f64() * scale, random.f64(), a[0], b[0]]
            .map(|value| if ty.is_single() { f64::from(value as f32) } else { value });
        let [p1, p2, px, py] = [d1, d2, x1, y1].map(|value| Scalar::new(ty, [value, 0.0], false));
        let mut param = ty.encode(&[[9.0, 0.0]; 5]);
        ok("cublasSetPointerMode_v2", &[handle.0, 0]);
        ok(
            &format!("cublas{l}rotmg_v2"),
            &[handle.0, p1.address(), p2.address(), px.address(), py.address(), rig::at(&mut param[..])],
        );
        let param: Vec<f64> = ty.decode(&param).into_iter().map(|number| number[0]).collect();
        let [flag, h11, h21, h12, h22] = param[..] else { panic!("5 parameters") };
        let h = match flag as i32 {
            -1 => [h11, h12, h21, h22],
            0 => [1.0, h12, h21, 1.0],
            1 => [h11, 1.0, -1.0, h22],
            _ => [1.0, 0.0, 0.0, 1.0],
        };
        let (n1, n2) = (p1.read(ty)[0], p2.read(ty)[0]);
        let (first, second) = (h[0] * x1 + h[1] * y1, h[2] * x1 + h[3] * y1);
        let length = d1 * x1 * x1 + d2 * y1 * y1;
        let most = 64.0 * ty.unit() * length;
        assert!(
            (n1 * first * first - length).abs() <= most,
            "{l}rotmg {d1} {d2} {x1} {y1}: {param:?} {n1} {n2}"
        );
        assert!(
            flag == -2.0 || n2 * second * second <= most,
            "{l}rotmg {d1} {d2} {x1} {y1}: {param:?} {n1} {n2}"
        );
        // rotm does what the parameters say.
        let (x, y) = (Dense::random(ty, 5, 1, random), Dense::random(ty, 5, 1, random));
        let (dx, dy) = (Stored::vector(ty, &x.values, 1), Stored::vector(ty, &y.values, 1));
        let mut param = ty.encode(&param.iter().map(|&value| [value, 0.0]).collect::<Vec<Num>>());
        ok(
            &format!("cublas{l}rotm_v2"),
            &[handle.0, 5, dx.buffer.address, 1, dy.buffer.address, 1, rig::at(&mut param[..])],
        );
        let row = |a: f64, b: f64| Dense::new(5, 1, |i, _| [a * x.at(i, 0)[0] + b * y.at(i, 0)[0], 0.0]);
        let bound = |a: f64, b: f64| Dense::new(5, 1, |_, _| [(a.abs() + b.abs()) * gamma(ty, 2); 2]);
        dx.check("rotm", |i, _| Some(i), &row(h[0], h[1]), &bound(h[0], h[1]));
        dy.check("rotm", |i, _| Some(i), &row(h[2], h[3]), &bound(h[2], h[3]));
    });
}
