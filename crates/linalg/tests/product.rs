//! The sums of products are in the documented order (docs/cublas.md), for any number of threads.

use linalg::{Factor, Product, product};

/// The lengths of the blocks into which `k` is cut: at most 512, as alike as can be, the longer ones first.
fn blocks(k: usize) -> impl Iterator<Item = usize> {
    let count = k.div_ceil(512);
    (0..count).map(move |i| k / count + usize::from(i < k % count))
}

/// The documented sum.
fn sum(a: impl Fn(usize) -> f32, b: impl Fn(usize) -> f32, k: usize) -> f32 {
    let (mut total, mut start) = (0.0, 0);
    for (i, length) in blocks(k).enumerate() {
        let chain = (start..start + length).fold(0.0, |sum, l| f32::mul_add(a(l), b(l), sum));
        total = if i == 0 { chain } else { total + chain };
        start += length;
    }
    total
}

#[test]
fn sums_are_in_the_documented_order_for_any_number_of_threads() {
    let mut random = fastrand::Rng::with_seed(1);
    let has_fma = !cfg!(target_arch = "x86_64") || {
        #[cfg(target_arch = "x86_64")]
        let has = std::arch::is_x86_feature_detected!("fma");
        #[cfg(not(target_arch = "x86_64"))]
        let has = true;
        has
    };
    let pools = [1, 2, 3, 7].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build());
    let mut shapes =
        vec![[1, 1, 600], [5, 1, 513], [1, 300, 700], [16, 16, 1025], [70, 90, 1100], [200, 130, 512]];
    shapes.extend((0..60).map(|_| [random.usize(1..40), random.usize(1..40), random.usize(1..600)]));
    for [m, n, k] in shapes {
        // Both orders of both factors.
        for order in 0..4 {
            let a: Vec<f32> = (0..m * k).map(|_| random.f32() - 0.5).collect();
            let b: Vec<f32> = (0..k * n).map(|_| random.f32() - 0.5).collect();
            let [a_rows, a_columns] = if order & 1 == 0 { [1, m] } else { [k, 1] };
            let [b_rows, b_columns] = if order & 2 == 0 { [1, k] } else { [n, 1] };
            // SAFETY: the vectors have these elements.
            let (left, right) = unsafe {
                (
                    Factor::new(a.as_ptr(), false, a_rows as isize, a_columns as isize, false),
                    Factor::new(b.as_ptr(), false, b_rows as isize, b_columns as isize, false),
                )
            };
            let bits = |product: Product<f32>| product.re.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            let first = bits(product([m, n, k], left, right));
            for pool in pools.iter().flatten() {
                let (a, b) = (a.as_ptr().expose_provenance(), b.as_ptr().expose_provenance());
                let again = pool.install(|| {
                    let at = std::ptr::with_exposed_provenance::<f32>;
                    // SAFETY: as above.
                    let (left, right) = unsafe {
                        (
                            Factor::new(at(a), false, a_rows as isize, a_columns as isize, false),
                            Factor::new(at(b), false, b_rows as isize, b_columns as isize, false),
                        )
                    };
                    bits(product([m, n, k], left, right))
                });
                assert!(again == first, "{m} x {n} x {k}, order {order}");
            }
            if has_fma {
                for (j, i) in (0..n).flat_map(|j| (0..m).map(move |i| (j, i))) {
                    let wanted = sum(|l| a[i * a_rows + l * a_columns], |l| b[l * b_rows + j * b_columns], k);
                    assert_eq!(
                        first[i + j * m],
                        wanted.to_bits(),
                        "{m} x {n} x {k}, order {order}, {i}, {j}"
                    );
                }
            }
        }
    }
}
