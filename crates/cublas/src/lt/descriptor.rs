//! The objects in which the program describes matrices, products and what it wants of an algorithm.
//!
//! They lie in memory of the library (`...Create`) or of the program (`...Init`), which copies them as it likes. So an object is a mark
//! that shows what it is, and its attributes, large ones first so that there are no gaps.

use std::ffi::c_void;

use caller::Out;
use mathlib::api;

use crate::declare::Ptr;
use crate::handle::Cublas;
use crate::status::Status;

/// An object of attributes. It begins with a mark.
pub trait Descriptor: Copy {
    /// The mark.
    const MARK: u32;

    /// Takes the value of an attribute from memory of the program.
    ///
    /// # Errors
    /// If there is no such attribute, or its size is another, or it cannot have this value.
    ///
    /// # Safety
    /// The memory must be of that size.
    unsafe fn set(&mut self, attribute: u32, value: *const c_void, bytes: usize) -> Result<(), Status>;

    /// Writes the value of an attribute to memory of the program, and how many bytes that are, where the pointers are not null.
    ///
    /// # Errors
    /// If there is no such attribute, or the memory does not suffice.
    ///
    /// # Safety
    /// The memory must be of that size.
    unsafe fn get(
        &self,
        attribute: u32,
        value: *mut c_void,
        bytes: usize,
        written: Out<usize, Cublas>,
    ) -> Result<(), Status>;
}

/// Declares an object: its attributes' numbers, names, types for the program and here, and what they are at first.
macro_rules! descriptor {
    ($(#[$doc:meta])* $name:ident, $mark:literal; $($number:literal $field:ident: $outside:ty, $inside:ty = $first:expr;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        pub struct $name {
            mark: u32,
            $(#[allow(missing_docs, reason = "the manual's names")] pub $field: $inside,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { mark: u32::from_le_bytes(*$mark), $($field: $first),* }
            }
        }

        impl $crate::lt::descriptor::Descriptor for $name {
            const MARK: u32 = u32::from_le_bytes(*$mark);

            unsafe fn set(
                &mut self,
                attribute: u32,
                value: *const std::ffi::c_void,
                bytes: usize,
            ) -> Result<(), $crate::status::Status> {
                let refused = $crate::status::Status::INVALID_VALUE;
                match attribute {
                    $($number => {
                        if bytes != size_of::<$outside>() || value.is_null() {
                            return Err(refused);
                        }
                        // SAFETY: the caller's promise.
                        let value = unsafe { value.cast::<$outside>().read_unaligned() };
                        self.$field = <$inside>::try_from(value).map_err(|_| refused)?;
                    })*
                    _ => return Err(refused),
                }
                Ok(())
            }

            unsafe fn get(
                &self,
                attribute: u32,
                value: *mut std::ffi::c_void,
                bytes: usize,
                written: caller::Out<usize, $crate::handle::Cublas>,
            ) -> Result<(), $crate::status::Status> {
                match attribute {
                    $($number => {
                        // SAFETY: the caller's promise.
                        unsafe { $crate::lt::descriptor::give(<$outside>::from(self.$field), value, bytes, written) }
                    })*
                    _ => Err($crate::status::Status::INVALID_VALUE),
                }
            }
        }
    };
}
pub(crate) use descriptor;

/// Writes a value to memory of the program. Without memory, it only says how much is needed.
///
/// # Errors
/// If the memory does not suffice.
///
/// # Safety
/// The memory must have so many bytes.
pub unsafe fn give<T>(
    value: T,
    to: *mut c_void,
    bytes: usize,
    written: Out<usize, Cublas>,
) -> Result<(), Status> {
    written.write_if_wanted(size_of::<T>());
    match bytes {
        0 if !written.is_null() => Ok(()),
        _ if to.is_null() || bytes < size_of::<T>() => Err(Status::INVALID_VALUE),
        _ => {
            // SAFETY: the caller's promise.
            unsafe { to.cast::<T>().write_unaligned(value) };
            Ok(())
        }
    }
}

descriptor! {
    /// How a matrix lies in memory (`cublasLtMatrixLayout_t`).
    Layout, b"LtMl";
    5 batch_count: i32, i32 = 1;
    2 rows: u64, u64 = 0;
    3 columns: u64, u64 = 0;
    4 ld: i64, i64 = 0;
    6 batch_stride: i64, i64 = 0;
    7 plane_offset: i64, i64 = 0;
    0 kind: u32, u8 = 0;
    1 order: u32, u8 = 0;
    8 batch_mode: u32, u8 = 0;
}

descriptor! {
    /// What a product does (`cublasLtMatmulDesc_t`). It has room in the smallest object of the headers of CUDA 12.
    MatmulDesc, b"LtMd";
    15 multiprocessors: i32, i32 = 0;
    8 bias: u64, u64 = 0;
    10 bias_stride: i64, i64 = 0;
    11 aux: u64, u64 = 0;
    12 aux_ld: i64, i64 = 0;
    13 aux_stride: i64, i64 = 0;
    14 alpha_vector_stride: i64, i64 = 0;
    17 a_scale: u64, u64 = 0;
    18 b_scale: u64, u64 = 0;
    19 c_scale: u64, u64 = 0;
    20 d_scale: u64, u64 = 0;
    21 amax_d: u64, u64 = 0;
    23 aux_scale: u64, u64 = 0;
    24 aux_amax: u64, u64 = 0;
    38 emulation: u64, u64 = 0;
    39 alpha_stride: i64, i64 = 0;
    40 beta_stride: i64, i64 = 0;
    7 epilogue: u32, u16 = 1;
    41 batch_invariance: u32, u16 = 32768;
    0 compute: u32, u8 = 68;
    1 scale: u32, u8 = 0;
    2 pointer_mode: u32, u8 = 0;
    3 transa: u32, u8 = 0;
    4 transb: u32, u8 = 0;
    5 transc: u32, u8 = 0;
    6 fill_mode: u32, u8 = 2;
    22 aux_kind: i32, i8 = -1;
    25 fast_accumulation: i8, i8 = 0;
    26 bias_kind: i32, i8 = -1;
    31 a_scale_mode: u32, u8 = 0;
    32 b_scale_mode: u32, u8 = 0;
    33 c_scale_mode: u32, u8 = 0;
    34 d_scale_mode: u32, u8 = 0;
    35 aux_scale_mode: u32, u8 = 0;
    37 d_out_scale_mode: u32, u8 = 0;
}

descriptor! {
    /// What a transformation does (`cublasLtMatrixTransformDesc_t`).
    TransformDesc, b"LtTd";
    0 scale: u32, u8 = 0;
    1 pointer_mode: u32, u8 = 0;
    2 transa: u32, u8 = 0;
    3 transb: u32, u8 = 0;
}

descriptor! {
    /// What the program wants of an algorithm (`cublasLtMatmulPreference_t`): remembered, since the one there is needs no workspace.
    Preference, b"LtMp";
    2 math_modes: u32, u32 = u32::MAX;
    1 workspace: u64, u64 = 0;
    12 implementations: u64, u64 = u64::MAX;
    3 reductions: u32, u32 = u32::MAX;
    4 gaussian_modes: u32, u32 = u32::MAX;
    5 alignment_a: u32, u32 = 256;
    6 alignment_b: u32, u32 = 256;
    7 alignment_c: u32, u32 = 256;
    8 alignment_d: u32, u32 = 256;
    9 waves: f32, f32 = 0.0;
    10 pointer_modes: u32, u32 = u32::MAX;
    11 epilogues: u32, u32 = u32::MAX;
    0 search: u32, u8 = 0;
}

descriptor! {
    /// What the program wants of an emulated product (`cublasLtEmulationDesc_t`): remembered, since none is emulated.
    EmulationDesc, b"LtEd";
    5 count: u64, u64 = 0;
    1 special_values: u32, u32 = 0xffff;
    3 most_bits: i32, i32 = 0;
    4 offset: i32, i32 = 0;
    0 strategy: u32, u8 = 0;
    2 control: u32, u8 = 0;
}

// What an object of the program has, in the headers of CUDA 12.0 (these have grown since).
const _: () = assert!(size_of::<Layout>() <= 64 && size_of::<TransformDesc>() <= 64);
const _: () = assert!(size_of::<MatmulDesc>() <= 184 && size_of::<Preference>() <= 80);
const _: () = assert!(size_of::<EmulationDesc>() <= 64);

/// The object that the program names.
///
/// # Errors
/// If the pointer is null, or something else lies there.
pub fn read<D: Descriptor>(object: Ptr) -> Result<D, Status> {
    if object.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the program promises an object, and each begins with its mark.
    if unsafe { object.cast::<u32>().read_unaligned() } != D::MARK {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: it is one of this kind, all of whose values are numbers.
    Ok(unsafe { object.cast::<D>().read_unaligned() })
}

/// Replaces the object that the program names.
fn write<D: Descriptor>(object: Ptr, value: D) {
    // SAFETY: `read` has found one there.
    unsafe { object.cast::<D>().write_unaligned(value) }
}

/// Sets an attribute.
pub fn set<D: Descriptor>(object: Ptr, attribute: u32, value: Ptr, bytes: usize) -> Result<(), Status> {
    let mut found: D = read(object)?;
    // SAFETY: the program promises so many bytes.
    unsafe { found.set(attribute, value, bytes)? };
    write(object, found);
    Ok(())
}

/// Gives the value of an attribute.
pub fn get<D: Descriptor>(
    object: Ptr,
    attribute: u32,
    value: Ptr,
    bytes: usize,
    written: Out<usize, Cublas>,
) -> Result<(), Status> {
    // SAFETY: the program promises so many bytes.
    unsafe { read::<D>(object)?.get(attribute, value, bytes, written) }
}

/// Makes an object in memory of the library.
fn create<D: Descriptor>(place: Out<Ptr, Cublas>, value: D) -> Result<(), Status> {
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    place.write(Box::into_raw(Box::new(value)).cast())
}

/// Makes an object in memory of the program.
fn init<D: Descriptor>(object: Ptr, bytes: usize, value: D) -> Result<(), Status> {
    if object.is_null() || bytes < size_of::<D>() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the program promises so many bytes.
    unsafe { object.cast::<D>().write_unaligned(value) };
    Ok(())
}

/// Gives back an object in memory of the library.
fn destroy<D: Descriptor>(object: Ptr) -> Result<(), Status> {
    read::<D>(object)?;
    // SAFETY: `create` made it, and the program gives it back. Without its mark, it is noticed if that happens again before the memory
    // is used for something else.
    unsafe {
        object.cast::<u32>().write_volatile(0);
        drop(Box::from_raw(object.cast::<D>()));
    }
    Ok(())
}

/// A layout, by columns.
fn layout(kind: u32, rows: u64, columns: u64, ld: i64) -> Result<Layout, Status> {
    let kind = u8::try_from(kind).map_err(|_| Status::INVALID_VALUE)?;
    Ok(Layout { kind, rows, columns, ld, ..Layout::default() })
}

/// A product of such types.
fn product(compute: u32, scale: u32) -> Result<MatmulDesc, Status> {
    let small = |number| u8::try_from(number).map_err(|_| Status::INVALID_VALUE);
    Ok(MatmulDesc { compute: small(compute)?, scale: small(scale)?, ..MatmulDesc::default() })
}

/// A transformation with such factors.
fn transformation(scale: u32) -> Result<TransformDesc, Status> {
    let scale = u8::try_from(scale).map_err(|_| Status::INVALID_VALUE)?;
    Ok(TransformDesc { scale, ..TransformDesc::default() })
}

api! { API: Status, name;
    /// Describes how a matrix lies in memory: its type, rows, columns and leading dimension; then its order, and the batch.
    cublasLtMatrixLayoutCreate (result: Out<Ptr, Cublas>, kind: u32, rows: u64, columns: u64, ld: i64) {
        create(result, layout(kind, rows, columns, ld)?)
    }
    /// The same, in memory of the program.
    cublasLtMatrixLayoutInit_internal (object: Ptr, bytes: usize, kind: u32, rows: u64, columns: u64, ld: i64) {
        init(object, bytes, layout(kind, rows, columns, ld)?)
    }
    /// Gives a description back.
    cublasLtMatrixLayoutDestroy (object: Ptr) { destroy::<Layout>(object) }
    /// Changes an attribute.
    cublasLtMatrixLayoutSetAttribute (object: Ptr, attribute: u32, value: Ptr, bytes: usize) {
        set::<Layout>(object, attribute, value, bytes)
    }
    /// An attribute.
    cublasLtMatrixLayoutGetAttribute (object: Ptr, attribute: u32, value: Ptr, bytes: usize, written: Out<usize, Cublas>) {
        get::<Layout>(object, attribute, value, bytes, written)
    }
    /// Describes a product: in which type it is computed, and the type of `alpha` and `beta`; then all else.
    cublasLtMatmulDescCreate (result: Out<Ptr, Cublas>, compute: u32, scale: u32) {
        create(result, product(compute, scale)?)
    }
    /// The same, in memory of the program.
    cublasLtMatmulDescInit_internal (object: Ptr, bytes: usize, compute: u32, scale: u32) {
        init(object, bytes, product(compute, scale)?)
    }
    /// Gives a description back.
    cublasLtMatmulDescDestroy (object: Ptr) { destroy::<MatmulDesc>(object) }
    /// Changes an attribute.
    cublasLtMatmulDescSetAttribute (object: Ptr, attribute: u32, value: Ptr, bytes: usize) {
        set::<MatmulDesc>(object, attribute, value, bytes)
    }
    /// An attribute.
    cublasLtMatmulDescGetAttribute (object: Ptr, attribute: u32, value: Ptr, bytes: usize, written: Out<usize, Cublas>) {
        get::<MatmulDesc>(object, attribute, value, bytes, written)
    }
    /// Describes a transformation, by the type of `alpha` and `beta`.
    cublasLtMatrixTransformDescCreate (result: Out<Ptr, Cublas>, scale: u32) {
        create(result, transformation(scale)?)
    }
    /// The same, in memory of the program.
    cublasLtMatrixTransformDescInit_internal (object: Ptr, bytes: usize, scale: u32) {
        init(object, bytes, transformation(scale)?)
    }
    /// Gives a description back.
    cublasLtMatrixTransformDescDestroy (object: Ptr) { destroy::<TransformDesc>(object) }
    /// Changes an attribute.
    cublasLtMatrixTransformDescSetAttribute (object: Ptr, attribute: u32, value: Ptr, bytes: usize) {
        set::<TransformDesc>(object, attribute, value, bytes)
    }
    /// An attribute.
    cublasLtMatrixTransformDescGetAttribute (object: Ptr, attribute: u32, value: Ptr, bytes: usize, written: Out<usize, Cublas>) {
        get::<TransformDesc>(object, attribute, value, bytes, written)
    }
    /// Describes what the program wants of an algorithm.
    cublasLtMatmulPreferenceCreate (result: Out<Ptr, Cublas>) { create(result, Preference::default()) }
    /// The same, in memory of the program.
    cublasLtMatmulPreferenceInit_internal (object: Ptr, bytes: usize) { init(object, bytes, Preference::default()) }
    /// Gives a description back.
    cublasLtMatmulPreferenceDestroy (object: Ptr) { destroy::<Preference>(object) }
    /// Changes an attribute: remembered, without effect.
    cublasLtMatmulPreferenceSetAttribute (object: Ptr, attribute: u32, value: Ptr, bytes: usize) {
        set::<Preference>(object, attribute, value, bytes)
    }
    /// An attribute.
    cublasLtMatmulPreferenceGetAttribute (object: Ptr, attribute: u32, value: Ptr, bytes: usize, written: Out<usize, Cublas>) {
        get::<Preference>(object, attribute, value, bytes, written)
    }
    /// Describes what the program wants of emulated products.
    cublasLtEmulationDescCreate (result: Out<Ptr, Cublas>) { create(result, EmulationDesc::default()) }
    /// The same, in memory of the program.
    cublasLtEmulationDescInit_internal (object: Ptr, bytes: usize) { init(object, bytes, EmulationDesc::default()) }
    /// Gives a description back.
    cublasLtEmulationDescDestroy (object: Ptr) { destroy::<EmulationDesc>(object) }
    /// Changes an attribute: remembered, without effect. A product that is to report how many bits it kept is not supported.
    cublasLtEmulationDescSetAttribute (object: Ptr, attribute: u32, value: Ptr, bytes: usize) {
        set::<EmulationDesc>(object, attribute, value, bytes)
    }
    /// An attribute.
    cublasLtEmulationDescGetAttribute (object: Ptr, attribute: u32, value: Ptr, bytes: usize, written: Out<usize, Cublas>) {
        get::<EmulationDesc>(object, attribute, value, bytes, written)
    }
}
