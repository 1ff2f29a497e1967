//! Mistakes of the program, graphs, and what no shape shows.

use std::ffi::{CStr, c_char};

use fastrand::Rng;

use crate::rig::*;

/// The arguments of y = A x for doubles, with all scalars 1.
fn product(handle: &Handle, a: u64, x: &DenseVector, y: &DenseVector, one: &Scalar) -> Vec<u64> {
    vec![handle.0, 0, one.address(), a, x.descriptor, one.address(), y.descriptor, Ty::D as u64, 0, 0]
}

/// A small matrix with chosen arrays.
fn matrix(offsets: &Buffer, columns: &Buffer, values: &Buffer) -> u64 {
    let mut a = 0;
    let arrays = [offsets.address, columns.address, values.address];
    ok("cusparseCreateCsr", &[&[at(&mut a), 2, 3, 2][..], &arrays, &[2, 2, 0, Ty::D as u64]].concat());
    a
}

/// Runs this test again in a process of its own, in which `part` is what happens, and returns its exit code and stderr: a fault breaks
/// the context of the whole process.
fn elsewhere(test: &str, part: &str) -> String {
    let program = std::env::current_exe().expect("a path");
    let run = std::process::Command::new(program)
        .args([test, "--exact", "--nocapture"])
        .env("TEST_PART", part)
        .output();
    let run = run.expect("it starts");
    let text = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{part}: {text}");
    text
}

#[test]
fn wrong_indices_are_faults() {
    let cases: [(&str, [i64; 3], [i64; 2], &str); 5] = [
        ("column too large", [0, 1, 2], [0, 3], "A: index 1 is 3, and there are 3 columns from 0 on"),
        ("column below", [0, 1, 2], [-1, 0], "A: index 0 is -1, and there are 3 columns from 0 on"),
        ("offset too large", [0, 1, 9], [0, 1], "A: offset 2 is 9"),
        ("offsets descend", [0, 2, 1], [0, 1], "A: offset 2 is 1"),
        ("first offset", [1, 1, 2], [0, 1], "A: offset 0 is 1"),
    ];
    let Ok(part) = std::env::var("TEST_PART") else {
        for (part, .., words) in cases {
            let text = elsewhere("contract::wrong_indices_are_faults", part);
            assert!(text.contains("cusparseSpMV") && text.contains(words), "{part}: {text}");
        }
        return;
    };
    let (_, offsets, columns, _) = cases.iter().find(|case| case.0 == part).expect("a case");
    let handle = Handle::new(false);
    let (offsets, columns) = (Buffer::ints(offsets), Buffer::ints(columns));
    let values = Ty::D.buffer(&[[1.0, 0.0]; 2]);
    let a = matrix(&offsets, &columns, &values);
    let one = Scalar::new(&handle, Ty::D, [1.0, 0.0]);
    let (x, y) = (DenseVector::new(Ty::D, &[[1.0, 0.0]; 3]), DenseVector::new(Ty::D, &[[1.0, 0.0]; 2]));
    ok("cusparseSpMV", &product(&handle, a, &x, &y, &one));
    assert_eq!(call("cuCtxSynchronize", &[]), 700, "the work must fail");
}

#[test]
fn short_arrays_are_refused() {
    let handle = Handle::new(false);
    let one = Scalar::new(&handle, Ty::D, [1.0, 0.0]);
    let whole = [Buffer::ints(&[0, 1, 2]), Buffer::ints(&[0, 1]), Ty::D.buffer(&[[1.0, 0.0]; 2])];
    let short = [Buffer::ints(&[0, 1]), Buffer::ints(&[0]), Ty::D.buffer(&[[1.0, 0.0]])];
    let (x, y) = (DenseVector::new(Ty::D, &[[1.0, 0.0]; 3]), DenseVector::new(Ty::D, &[[1.0, 0.0]; 2]));
    for which in 0..3 {
        let pick = |at: usize| if at == which { &short[at] } else { &whole[at] };
        let a = matrix(pick(0), pick(1), pick(2));
        assert_eq!(call("cusparseSpMV", &product(&handle, a, &x, &y, &one)), 3, "array {which}");
    }
    let a = matrix(&whole[0], &whole[1], &whole[2]);
    let mut long = 0;
    ok("cusparseCreateDnVec", &[at(&mut long), 3, short[2].address, Ty::D as u64]);
    let mut arguments = product(&handle, a, &x, &y, &one);
    arguments[4] = long;
    assert_eq!(call("cusparseSpMV", &arguments), 3, "x");
    // What the manual's table does not have, and what is no argument at all.
    arguments[4] = y.descriptor;
    assert_eq!(call("cusparseSpMV", &arguments), 3, "x of another length");
    let mut arguments = product(&handle, a, &x, &y, &one);
    arguments[7] = Ty::S as u64;
    assert_eq!(call("cusparseSpMV", &arguments), 10, "another compute type");
    (arguments[7], arguments[1]) = (Ty::D as u64, 3);
    assert_eq!(call("cusparseSpMV", &arguments), 3, "no operation");
    (arguments[1], arguments[0]) = (0, 8);
    assert_eq!(call("cusparseSpMV", &arguments), 1, "no handle");
    (arguments[0], arguments[3]) = (handle.0, x.descriptor);
    assert_eq!(call("cusparseSpMV", &arguments), 3, "a vector for a matrix");
    (arguments[3], arguments[2]) = (a, 0);
    assert_eq!(call("cusparseSpMV", &arguments), 3, "no alpha");
    assert_eq!(call("cusparseSpMMOp", &[0, 0]), 10, "refused");
    y.check("unchanged", &[[1.0, 0.0]; 2], 0.0);
}

#[test]
fn graphs_take_products() {
    let handle = Handle::new(true);
    let one = Scalar::new(&handle, Ty::D, [1.0, 0.0]);
    let arrays = [Buffer::ints(&[0, 1, 2]), Buffer::ints(&[0, 2]), Ty::D.buffer(&[[2.0, 0.0], [3.0, 0.0]])];
    let a = matrix(&arrays[0], &arrays[1], &arrays[2]);
    let (x, y) = (DenseVector::new(Ty::D, &[[1.0, 0.0]; 3]), DenseVector::new(Ty::D, &[[0.0; 2]; 2]));
    let [mut stream, mut graph, mut run] = [0u64; 3];
    ok("cuStreamCreate", &[at(&mut stream), 1]);
    ok("cusparseSetStream", &[handle.0, stream]);
    ok("cuStreamBeginCapture_v2", &[stream, 0]);
    ok("cusparseSpMV", &product(&handle, a, &x, &y, &one));
    ok("cuStreamEndCapture", &[stream, at(&mut graph)]);
    y.check("captured", &[[0.0; 2]; 2], 0.0);
    ok("cuGraphInstantiateWithFlags", &[at(&mut run), graph, 0]);
    for times in 1..4 {
        ok("cuGraphLaunch", &[run, stream]);
        ok("cuStreamSynchronize", &[stream]);
        y.check("launched", &[[2.0 * f64::from(times), 0.0], [3.0 * f64::from(times), 0.0]], 0.0);
    }
    ok("cusparseSetStream", &[handle.0, 0]);
}

#[test]
fn graphs_write_results_of_the_host() {
    let handle = Handle::new(false);
    let places = Buffer::ints(&[0, 2]);
    let (values, y) = (Ty::S.buffer(&[[2.0, 0.0], [3.0, 0.0]]), DenseVector::new(Ty::S, &[[5.0, 0.0]; 3]));
    let [mut stream, mut graph, mut run, mut x] = [0u64; 4];
    let mut result = [0u64; 1];
    ok("cusparseCreateSpVec", &[at(&mut x), 3, 2, places.address, values.address, 2, 0, 0]);
    ok("cuStreamCreate", &[at(&mut stream), 1]);
    ok("cusparseSetStream", &[handle.0, stream]);
    ok("cuStreamBeginCapture_v2", &[stream, 0]);
    ok("cusparseSpVV", &[handle.0, 0, x, y.descriptor, at(&mut result[0]), 0, 0]);
    ok("cuStreamEndCapture", &[stream, at(&mut graph)]);
    assert_eq!(result, [0], "captured");
    ok("cuGraphInstantiateWithFlags", &[at(&mut run), graph, 0]);
    ok("cuGraphLaunch", &[run, stream]);
    ok("cuStreamSynchronize", &[stream]);
    assert_eq!(f32::from_bits(result[0] as u32), 25.0);
    ok("cusparseDestroySpVec", &[x]);
    ok("cusparseSetStream", &[handle.0, 0]);
}

#[test]
fn sums_are_in_the_order_of_entries() {
    let handle = Handle::new(false);
    let rng = &mut Rng::with_seed(1);
    let n = 400;
    let values: Vec<Num> = (0..n * n).map(|_| [f64::from(rng.f32() - 0.5), 0.0]).collect();
    let x: Vec<Num> = (0..n).map(|_| [f64::from(rng.f32()), 0.0]).collect();
    let mut columns: Vec<i64> = (0..n as i64).collect();
    rng.shuffle(&mut columns);
    let arrays = [
        Buffer::ints(&(0..=n as i64).map(|row| row * n as i64).collect::<Vec<_>>()),
        Buffer::ints(&columns.repeat(n)),
        Ty::S.buffer(&values),
    ];
    let mut a = 0;
    let pointers = arrays.each_ref().map(|array| array.address);
    let sizes = [at(&mut a), n as u64, n as u64, (n * n) as u64];
    ok("cusparseCreateCsr", &[&sizes[..], &pointers, &[2, 2, 0, Ty::S as u64]].concat());
    let [one, none] = [1.0, 0.0].map(|value| Scalar::new(&handle, Ty::S, [value, 0.0]));
    let (vx, vy) = (DenseVector::new(Ty::S, &x), DenseVector::new(Ty::S, &vec![NAN; n]));
    ok(
        "cusparseSpMV",
        &[handle.0, 0, one.address(), a, vx.descriptor, none.address(), vy.descriptor, Ty::S as u64, 0, 0],
    );
    let sum = |row: usize| {
        let terms = (0..n).map(|at| values[row * n + at][0] as f32 * x[columns[at] as usize][0] as f32);
        [f64::from(terms.fold(0.0, |sum, term| sum + term)), 0.0]
    };
    vy.check("the order of a row", &(0..n).map(sum).collect::<Vec<_>>(), 0.0);
}

#[test]
fn statuses_have_names() {
    type Text = unsafe extern "C" fn(u32) -> *const c_char;
    for (function, wanted) in
        [("cusparseGetErrorName", "CUSPARSE_STATUS_ZERO_PIVOT"), ("cusparseGetErrorString", "an element")]
    {
        // SAFETY: the function returns a text that stays.
        let text = unsafe {
            let function = library(function).get::<Text>(function.as_bytes()).expect("a function");
            CStr::from_ptr(function(9)).to_string_lossy()
        };
        assert!(text.starts_with(wanted), "{text}");
    }
    let handle = Handle::new(false);
    let (mut version, mut part) = (0i32, 0i32);
    ok("cusparseGetVersion", &[handle.0, at(&mut version)]);
    ok("cusparseGetProperty", &[0, at(&mut part)]);
    assert_eq!((version, part), (12510, 12));
}
