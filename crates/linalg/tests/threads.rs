//! Factors and spectra have the same bits for any number of threads.

use linalg::{
    C64, Dense, Reflections, Scalar, Vectors, cholesky, eigen, eliminate, orthogonalize, singular_values,
};

/// The bits of all results for a matrix.
fn results<T: Scalar>(n: usize) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut value = || T::of(random.f64() - 0.5, random.f64() - 0.5);
    let a = Dense { values: (0..n * n).map(|_| value()).collect::<Vec<T>>(), rows: n };
    let copy = || Dense { values: a.values.clone(), rows: n };
    let even = Dense::new(n, n, |i, j| a.at(i, j) + a.at(j, i).conjugate());
    let mut bits = Vec::new();
    let mut add = |values: &[T]| bits.extend(values.iter().flat_map(|value| value.wide()).map(f64::to_bits));

    let mut factors = copy();
    eliminate(&mut factors, n, true);
    add(&factors.values);
    let mut factors = copy();
    let tau = orthogonalize(&mut factors, n);
    add(&factors.values);
    add(&Reflections::below(&factors, 0, tau).form(n).values);
    let heavy = |i: usize, j: usize| if i == j { T::of(n as f64, 0.0) } else { even.at(i, j) };
    let mut factors = Dense::new(n, n, heavy);
    assert_eq!(cholesky(&mut factors, n), 0);
    add(&factors.values);
    let spectrum = eigen(&mut Dense::new(n, n, |i, j| even.at(i, j)), n, true);
    add(&spectrum.vectors.expect("vectors").values);
    let singular = singular_values(copy(), n, Vectors::All, Vectors::All);
    add(&singular.left.expect("vectors").values);
    add(&singular.right.expect("vectors").values);
    bits.extend(spectrum.values.iter().chain(&singular.values).map(|value| value.to_bits()));
    bits
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let all = || [results::<f32>(230), results::<f64>(260), results::<C64>(190)];
    let pools = [1, 2, 3, 7].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build());
    let mut found = pools.into_iter().map(|pool| pool.expect("threads").install(all));
    let first = found.next();
    assert!(found.all(|other| Some(&other) == first.as_ref()));
}
