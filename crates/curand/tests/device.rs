//! Generators of the device: they give what generators of the host give, in stream order and within bounds.

use std::ffi::c_void;
use std::sync::OnceLock;

// Its symbols are what is tested. The tests need the driver's shared object.
use ptxvm_curand as _;
use ptxvm_libcuda as _;

type Handle = *mut c_void;
type Function = unsafe extern "C" fn(u64, u64, u64) -> u32;

unsafe extern "C" {
    fn curandCreateGenerator(generator: *mut Handle, kind: u32) -> u32;
    fn curandCreateGeneratorHost(generator: *mut Handle, kind: u32) -> u32;
    fn curandDestroyGenerator(generator: Handle) -> u32;
    fn curandSetPseudoRandomGeneratorSeed(generator: Handle, seed: u64) -> u32;
    fn curandSetGeneratorOffset(generator: Handle, offset: u64) -> u32;
    fn curandSetGeneratorOrdering(generator: Handle, ordering: u32) -> u32;
    fn curandSetQuasiRandomGeneratorDimensions(generator: Handle, dimensions: u32) -> u32;
    fn curandGenerate(generator: Handle, out: *mut u32, count: usize) -> u32;
    fn curandGenerateUniform(generator: Handle, out: *mut f32, count: usize) -> u32;
    fn curandGenerateNormal(generator: Handle, out: *mut f32, count: usize, mean: f32, deviation: f32)
    -> u32;
    fn curandGeneratePoisson(generator: Handle, out: *mut u32, count: usize, mean: f64) -> u32;
    fn curandGetDirectionVectors32(vectors: *mut *const [u32; 32], set: u32) -> u32;
    fn curandGetVersion(version: *mut i32) -> u32;
}

/// Calls a function of the driver, whose arguments are integers and pointers.
fn driver(name: &str, arguments: [u64; 3]) {
    static DRIVER: OnceLock<libloading::Library> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| {
        let path = std::env::current_exe().expect("a path").with_file_name("libptxvm_libcuda.so");
        // SAFETY: the driver may be loaded.
        unsafe { libloading::Library::new(path) }.expect("the driver")
    });
    // SAFETY: the function is the driver's, and the caller passes what it takes.
    unsafe {
        let function: libloading::Symbol<'_, Function> = driver.get(name).expect("a function");
        assert_eq!(function(arguments[0], arguments[1], arguments[2]), 0, "{name}");
    }
}

/// Device memory for numbers.
fn memory(count: usize) -> *mut u32 {
    let mut address = 0u64;
    let mut created: Handle = std::ptr::null_mut();
    driver("cuInit", [0; 3]);
    // SAFETY: the places are valid. A generator makes the primary context current.
    unsafe {
        assert_eq!(curandCreateGenerator(&raw mut created, 101), 0);
        assert_eq!(curandDestroyGenerator(created), 0);
    }
    driver("cuMemAlloc_v2", [(&raw mut address).expose_provenance() as u64, 4 * count as u64, 0]);
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// A generator of the device or of the host.
fn generator(host: bool, kind: u32) -> Handle {
    let mut generator = std::ptr::null_mut();
    let create = if host { curandCreateGeneratorHost } else { curandCreateGenerator };
    // SAFETY: the place is valid.
    assert_eq!(unsafe { create(&raw mut generator, kind) }, 0);
    generator
}

#[test]
fn device_and_host_agree() {
    let count = 10_002;
    let device = memory(3 * count);
    for kind in [101, 121, 141, 161, 201] {
        driver("cuInit", [0; 3]);
        let (mut theirs, mut ours) = (vec![0u32; 3 * count], vec![0u32; 3 * count]);
        for (host, out) in [(true, theirs.as_mut_ptr()), (false, device)] {
            let generator = generator(host, kind);
            // SAFETY: there is memory for the numbers.
            unsafe {
                assert_eq!(curandGenerate(generator, out, count), 0);
                assert_eq!(curandGenerateUniform(generator, out.wrapping_add(count).cast(), count), 0);
                assert_eq!(
                    curandGenerateNormal(generator, out.wrapping_add(2 * count).cast(), count, 0.0, 1.0),
                    0
                );
                assert_eq!(curandDestroyGenerator(generator), 0);
            }
        }
        driver(
            "cuMemcpyDtoH_v2",
            [ours.as_mut_ptr().expose_provenance() as u64, device.addr() as u64, 12 * count as u64],
        );
        assert_eq!(ours, theirs, "{kind}");
    }
}

#[test]
fn mistakes_are_answered() {
    let device = memory(16);
    let (mut value, mut version, mut vectors) = (0u32, 0, std::ptr::null());
    // SAFETY: the places are valid where they are used.
    unsafe {
        let xorwow = generator(false, 100);
        assert_eq!(curandGenerate(xorwow, device, 17), 201, "beyond the allocation");
        assert_eq!(curandGenerate(xorwow, &raw mut value, 1), 201, "no device memory");
        assert_eq!(curandGenerate(xorwow, std::ptr::null_mut(), 0), 0);
        assert_eq!(curandGenerateNormal(xorwow, device.cast(), 3, 0.0, 1.0), 105);
        assert_eq!(curandGeneratePoisson(xorwow, device, 3, 0.0), 104);
        assert_eq!(curandGeneratePoisson(xorwow, device, 3, 400_001.0), 104);
        assert_eq!(curandSetGeneratorOrdering(xorwow, 104), 104, "dynamic");
        assert_eq!(curandSetQuasiRandomGeneratorDimensions(xorwow, 2), 103);
        assert_eq!(curandDestroyGenerator(xorwow), 0);
        assert_eq!(curandDestroyGenerator(xorwow), 101);
        let sobol = generator(true, 201);
        assert_eq!(curandSetPseudoRandomGeneratorSeed(sobol, 1), 103);
        assert_eq!(curandSetQuasiRandomGeneratorDimensions(sobol, 20_001), 104);
        assert_eq!(curandSetQuasiRandomGeneratorDimensions(sobol, 2), 0);
        assert_eq!(curandGenerate(sobol, &raw mut value, 1), 105);
        assert_eq!(curandSetGeneratorOffset(generator(true, 141), 1), 103);
        let mut scrambled = std::ptr::null_mut();
        assert_eq!(curandCreateGeneratorHost(&raw mut scrambled, 202), 103, "refused");
        assert_eq!(curandCreateGeneratorHost(&raw mut scrambled, 7), 103);
        assert_eq!((curandGetVersion(&raw mut version), version), (0, 10_310));
        assert_eq!(curandGetDirectionVectors32(&raw mut vectors, 101), 0);
        assert_eq!(
            vectors.add(2).read()[..5],
            [2_147_483_648, 3_221_225_472, 1_610_612_736, 2_415_919_104, 3_892_314_112]
        );
    }
}
