//! The functions of the benched kernels as native loops: what a programmer would write by hand, compiled for the
//! instruction set of the machine.

/// Defines a function that runs its body compiled for AVX-512 or AVX2 where the machine has them.
macro_rules! native {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $body:block) => {
        $(#[$doc])*
        pub fn $name($($arg: $ty),*) {
            #[inline(always)]
            fn body($($arg: $ty),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) { body($($arg),*) }
                #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512($($arg: $ty),*) { body($($arg),*) }
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    // SAFETY: the machine has the features.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the machine has the features.
                    return unsafe { avx2($($arg),*) };
                }
            }
            body($($arg),*)
        }
    };
}

native! {
    /// `y = a * x + y`
    fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = a.mul_add(*x, *y);
        }
    }
}

native! {
    /// Halves clamped to [low, high]; NaN passes through.
    fn clamp(low: u16, high: u16, x: &[u16], y: &mut [u16]) {
        // Halves in the order of their values, as integers.
        let key = |h: u16| (h ^ (((h as i16) >> 15) as u16 & 0x7fff)) as i16;
        let (low_key, high_key) = (key(low), key(high));
        for (y, &x) in y.iter_mut().zip(x) {
            let k = key(x);
            let number = x & 0x7fff <= 0x7c00;
            let x = if number & (k < low_key) { low } else { x };
            *y = if number & (k > high_key) { high } else { x };
        }
    }
}

const WIDE: usize = 32;

native! {
    /// Escape times, as in examples/mandelbrot: 32 pixels at a time until all have escaped.
    fn mandelbrot(counts: &mut [u32], width: usize, limit: u32, left: f32, top: f32, step: f32) {
        for (row, line) in counts.chunks_exact_mut(width).enumerate() {
            let im = top - row as f32 * step;
            for (chunk, out) in line.chunks_exact_mut(WIDE).enumerate() {
                let re: [f32; WIDE] = std::array::from_fn(|i| ((chunk * WIDE + i) as f32).mul_add(step, left));
                let (mut x, mut y) = ([0f32; WIDE], [0f32; WIDE]);
                let mut count = [0u32; WIDE];
                let mut running = [!0u32; WIDE];
                for _ in 0..limit {
                    let mut any = 0;
                    for i in 0..WIDE {
                        let (xx, yy) = (x[i] * x[i], y[i] * y[i]);
                        // Contracted to fma where nvcc did: see examples/mandelbrot/mandelbrot.ptx.
                        running[i] &= if xx + yy > 4.0 { 0 } else { !0 };
                        any |= running[i];
                        count[i] += running[i] & 1;
                        let two_x = x[i] + x[i];
                        y[i] = two_x.mul_add(y[i], im);
                        x[i] = re[i] + (xx - yy);
                    }
                    if any == 0 {
                        break;
                    }
                }
                out.copy_from_slice(&count);
            }
        }
    }
}

native! {
    /// The steps of Collatz sequences to 1, as in benches/loops.ptx: 32 numbers at a time until all have ended.
    fn collatz(steps: &mut [u32], first: u32, limit: u32) {
        for (chunk, out) in steps.chunks_exact_mut(WIDE).enumerate() {
            let mut n: [u32; WIDE] = std::array::from_fn(|i| first + (chunk * WIDE + i) as u32);
            let mut count = [0u32; WIDE];
            for _ in 0..limit {
                let mut any = 0;
                for i in 0..WIDE {
                    let runs = if n[i] == 1 { 0 } else { !0u32 };
                    let next = if n[i] & 1 == 0 { n[i] >> 1 } else { n[i].wrapping_mul(3).wrapping_add(1) };
                    n[i] = if runs == 0 { 1 } else { next };
                    count[i] += runs & 1;
                    any |= runs;
                }
                if any == 0 {
                    break;
                }
            }
            out.copy_from_slice(&count);
        }
    }
}

native! {
    /// Rounds of the finalizer of MurmurHash3, as in benches/loops.ptx.
    fn hash(hashes: &mut [u32], rounds: u32) {
        for (chunk, out) in hashes.chunks_exact_mut(WIDE).enumerate() {
            let mut h: [u32; WIDE] = std::array::from_fn(|i| (chunk * WIDE + i) as u32);
            for round in 0..rounds {
                for h in &mut h {
                    *h ^= round;
                    *h ^= *h >> 16;
                    *h = h.wrapping_mul(0x85eb_ca6b);
                    *h ^= *h >> 13;
                    *h = h.wrapping_mul(0xc2b2_ae35);
                    *h ^= *h >> 16;
                }
            }
            out.copy_from_slice(&h);
        }
    }
}

native! {
    /// Accelerations of bodies (x, y, z, mass), as in benches/loops.ptx.
    fn nbody(accelerations: &mut [[f32; 4]], bodies: &[[f32; 4]]) {
        for (chunk, out) in accelerations.chunks_exact_mut(WIDE).enumerate() {
            let own: [[f32; WIDE]; 3] =
                std::array::from_fn(|axis| std::array::from_fn(|i| bodies[chunk * WIDE + i][axis]));
            let mut sums = [[0f32; WIDE]; 3];
            for body in bodies {
                for i in 0..WIDE {
                    let [x, y, z] = std::array::from_fn(|axis| body[axis] - own[axis][i]);
                    let square = z.mul_add(z, y.mul_add(y, x.mul_add(x, 0.01)));
                    let weight = body[3] / (square * square.sqrt());
                    for (sum, distance) in sums.iter_mut().zip([x, y, z]) {
                        sum[i] = distance.mul_add(weight, sum[i]);
                    }
                }
            }
            for (i, out) in out.iter_mut().enumerate() {
                *out = [sums[0][i], sums[1][i], sums[2][i], sums[2][i]];
            }
        }
    }
}

native! {
    /// The sum of each row, in the order of its elements.
    fn row_sums(sums: &mut [f32], matrix: &[f32], columns: usize) {
        for (chunk, out) in sums.chunks_exact_mut(16).enumerate() {
            let rows: [&[f32]; 16] = std::array::from_fn(|i| &matrix[(chunk * 16 + i) * columns..][..columns]);
            let mut sum = [0f32; 16];
            for column in 0..columns {
                for (sum, row) in sum.iter_mut().zip(&rows) {
                    *sum += row[column];
                }
            }
            out.copy_from_slice(&sum);
        }
    }
}

native! {
    /// Steps of the logistic map, as in benches/loops.ptx.
    fn logistic(values: &mut [f64], rounds: u32) {
        for (chunk, out) in values.chunks_exact_mut(WIDE).enumerate() {
            let mut x: [f64; WIDE] = std::array::from_fn(|i| (chunk * WIDE + i + 1) as f64 * (1.0 / 2_097_152.0));
            for _ in 0..rounds {
                for x in &mut x {
                    *x *= (1.0 - *x) * 3.9;
                }
            }
            out.copy_from_slice(&x);
        }
    }
}

native! {
    /// A quotient of two polynomials, as in benches/loops.ptx.
    fn rational(x: &[f64], y: &mut [f64]) {
        for (y, &x) in y.iter_mut().zip(x) {
            let above = x.mul_add(1.0 / 3.0, 0.5).mul_add(x, -1.0).mul_add(x, 2.0).mul_add(x, 1.0);
            let below = x.mul_add(0.125, 0.25).mul_add(x, 0.5).mul_add(x, 1.0);
            *y = above / below - x;
        }
    }
}

native! {
    /// Adds to each element what the row of four that its index names gives.
    fn gather(out: &mut [f32], index: &[u32], table: &[f32]) {
        for (out, &index) in out.iter_mut().zip(index) {
            let row = &table[4 * index as usize..][..4];
            let first = row[0].mul_add(row[1], row[2]);
            let second = first.mul_add(row[3], row[0]) * first;
            *out = second.mul_add(row[1], *out);
        }
    }
}

native! {
    /// `c = a * b` for square row-major matrices, each element summed in ascending order with `fma`.
    fn matmul(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
        const ROWS: usize = 4;
        const COLUMNS: usize = 16;
        for i in (0..n).step_by(ROWS) {
            for j in (0..n).step_by(COLUMNS) {
                let mut sum = [[0f32; COLUMNS]; ROWS];
                for k in 0..n {
                    let b = &b[k * n + j..][..COLUMNS];
                    for (r, sum) in sum.iter_mut().enumerate() {
                        let a = a[(i + r) * n + k];
                        for (sum, b) in sum.iter_mut().zip(b) {
                            *sum = a.mul_add(*b, *sum);
                        }
                    }
                }
                for (r, sum) in sum.iter().enumerate() {
                    c[(i + r) * n + j..][..COLUMNS].copy_from_slice(sum);
                }
            }
        }
    }
}

native! {
    /// Sums of blocks of 2048 elements.
    fn block_sum(x: &[f32], sums: &mut [f32]) {
        for (x, sum) in x.chunks_exact(2048).zip(sums) {
            let mut lanes = [0f32; 64];
            for x in x.chunks_exact(64) {
                for (lane, x) in lanes.iter_mut().zip(x) {
                    *lane += x;
                }
            }
            *sum = lanes.iter().sum();
        }
    }
}

native! {
    /// Softmax of rows of `width` elements, by powers of two as the kernel does; `exp2` is the C library's.
    fn softmax(x: &[f32], y: &mut [f32], width: usize) {
        for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
            let greatest = x.iter().fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a });
            let mut sum = 0.0;
            for (x, y) in x.iter().zip(&mut *y) {
                *y = ((x - greatest) * std::f32::consts::LOG2_E).exp2();
                sum += *y;
            }
            for y in y {
                *y /= sum;
            }
        }
    }
}

native! {
    /// 0.2 times the sum of an element and its neighbours. `x` has a row and a column more on each side.
    fn stencil(x: &[f32], y: &mut [f32], width: usize) {
        let pitch = width + 2;
        for (i, y) in y.chunks_exact_mut(width).enumerate() {
            let [above, here, below] = [0, 1, 2].map(|row| &x[(i + row) * pitch..][..pitch]);
            for (j, y) in y.iter_mut().enumerate() {
                *y = (above[j + 1] + here[j] + here[j + 1] + here[j + 2] + below[j + 1]) * 0.2;
            }
        }
    }
}

native! {
    /// Tile by tile.
    fn transpose(x: &[f32], y: &mut [f32], width: usize) {
        const TILE: usize = 16;
        for i in (0..width).step_by(TILE) {
            for j in (0..width).step_by(TILE) {
                let mut tile = [[0f32; TILE]; TILE];
                for row in 0..TILE {
                    let x = &x[(i + row) * width + j..][..TILE];
                    for column in 0..TILE {
                        tile[column][row] = x[column];
                    }
                }
                for (row, tile) in tile.iter().enumerate() {
                    y[(j + row) * width + i..][..TILE].copy_from_slice(tile);
                }
            }
        }
    }
}

/// Elements of a row of [`normalize`].
pub const NORMALIZED: usize = 128;

native! {
    /// Rows divided by their lengths. The sums are taken as a warp does, in whose lanes four elements are each.
    fn normalize(x: &[f32], y: &mut [f32]) {
        for (x, y) in x.as_chunks::<NORMALIZED>().0.iter().zip(y.as_chunks_mut::<NORMALIZED>().0) {
            let mut lanes = [0f32; NORMALIZED / 4];
            for (lane, &[a, b, c, d]) in lanes.iter_mut().zip(x.as_chunks().0) {
                *lane = d.mul_add(d, c.mul_add(c, b.mul_add(b, a * a)));
            }
            let mut half = lanes.len() / 2;
            while half > 0 {
                let (low, high) = lanes.split_at_mut(half);
                low.iter_mut().zip(high).for_each(|(low, high)| *low += *high);
                half /= 2;
            }
            let factor = 1.0 / lanes[0].sqrt();
            for (y, x) in y.iter_mut().zip(x) {
                *y = x * factor;
            }
        }
    }
}

native! {
    /// The sums of all elements up to each.
    fn scan(x: &[u32], y: &mut [u32]) {
        let mut sum = 0u32;
        for (y, x) in y.iter_mut().zip(x) {
            sum = sum.wrapping_add(*x);
            *y = sum;
        }
    }
}

/// Elements of a row of [`attention`].
pub const HEAD: usize = 64;

native! {
    /// `softmax(q k^T scale) v` of heads of `length` rows, by blocks of 64 keys; `exp2` is the C library's.
    fn attention(qkv: &[Vec<f32>; 3], out: &mut [f32], length: usize, scale: f32) {
        const ROWS: usize = 4;
        let heads = qkv.each_ref().map(|values| values.chunks_exact(length * HEAD));
        let [q, k, v] = heads;
        let outs = out.chunks_exact_mut(length * HEAD);
        let mut transposed = vec![[0f32; HEAD]; length];
        for (((q, k), v), out) in q.zip(k).zip(v).zip(outs) {
            // Of each block of keys, the transpose.
            for (keys, transposed) in k.chunks_exact(HEAD * HEAD).zip(transposed.chunks_exact_mut(HEAD)) {
                for (n, key) in keys.chunks_exact(HEAD).enumerate() {
                    key.iter().zip(&mut *transposed).for_each(|(key, row)| row[n] = *key);
                }
            }
            for (q, out) in q.chunks_exact(ROWS * HEAD).zip(out.chunks_exact_mut(ROWS * HEAD)) {
                let (mut most, mut weight) = ([f32::NEG_INFINITY; ROWS], [0f32; ROWS]);
                let mut total = [[0f32; HEAD]; ROWS];
                for (keys, v) in transposed.chunks_exact(HEAD).zip(v.chunks_exact(HEAD * HEAD)) {
                    let mut scores = [[0f32; HEAD]; ROWS];
                    for (d, key) in keys.iter().enumerate() {
                        for (row, scores) in scores.iter_mut().enumerate() {
                            let q = q[row * HEAD + d];
                            scores.iter_mut().zip(key).for_each(|(score, k)| *score = q.mul_add(*k, *score));
                        }
                    }
                    for (row, scores) in scores.iter_mut().enumerate() {
                        scores.iter_mut().for_each(|score| *score *= scale * std::f32::consts::LOG2_E);
                        let new = scores.iter().fold(most[row], |a, &b| if b > a { b } else { a });
                        let shrink = (most[row] - new).exp2();
                        scores.iter_mut().for_each(|score| *score = (*score - new).exp2());
                        weight[row] = weight[row] * shrink + scores.iter().sum::<f32>();
                        total[row].iter_mut().for_each(|total| *total *= shrink);
                        most[row] = new;
                    }
                    for (n, v) in v.chunks_exact(HEAD).enumerate() {
                        for (row, total) in total.iter_mut().enumerate() {
                            let p = scores[row][n];
                            total.iter_mut().zip(v).for_each(|(total, v)| *total = p.mul_add(*v, *total));
                        }
                    }
                }
                for (row, out) in out.chunks_exact_mut(HEAD).enumerate() {
                    out.iter_mut().zip(&total[row]).for_each(|(out, total)| *out = total / weight[row]);
                }
            }
        }
    }
}

native! {
    /// How often each byte occurs, in four counters each, so that equal neighbours do not wait for one another.
    fn histogram(data: &[u8], bins: &mut [u32; 256]) {
        let mut counts = [[0u32; 256]; 4];
        for bytes in data.chunks_exact(4) {
            for (counts, &byte) in counts.iter_mut().zip(bytes) {
                counts[usize::from(byte)] += 1;
            }
        }
        for (bin, total) in bins.iter_mut().enumerate() {
            *total = counts.iter().map(|counts| counts[bin]).sum();
        }
    }
}

/// Sums that [`fma_peak`] keeps going: enough to hide the latency, few enough for the registers.
pub const FMA_LANES: usize = 16 * 12;

native! {
    /// Nothing but fused multiply-adds.
    fn fma_peak(sums: &mut [f32; FMA_LANES], turns: u32) {
        let mut own = *sums;
        for _ in 0..turns {
            for sum in &mut own {
                *sum = sum.mul_add(0.999, 0.5);
            }
        }
        *sums = own;
    }
}
