//! [`multiversion!`]: one body compiled for every path of the host.

/// A pointer to the version of a function for a [`HostPath`](super::HostPath):
/// `multiversion!(path, [K: Kernel] (x: X) -> R, p => body)`.
///
/// `K` are the generic parameters that `body` uses. In `body`, `p` is the [`Path`](super::path::Path). Functions that
/// `body` calls must be `#[inline(always)]`, so that they are compiled with the instructions of the path. The caller
/// of the resulting function promises that the host has these instructions. For a path that this architecture lacks,
/// the macro gives the portable version.
macro_rules! multiversion {
    ($path:expr, [$($g:ident : $bound:path),*] ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)?, $p:ident => $body:expr) => {{
        unsafe fn portable<$($g: $bound),*>($($arg: $ty),*) $(-> $ret)? {
            let $p = $crate::path::Portable;
            $body
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn avx2<$($g: $bound),*>($($arg: $ty),*) $(-> $ret)? {
            let $p = $crate::x86::Avx2::new();
            $body
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
        unsafe fn avx512<$($g: $bound),*>($($arg: $ty),*) $(-> $ret)? {
            let $p = $crate::x86::Avx512::new();
            $body
        }

        match $path {
            $crate::HostPath::Portable => portable::<$($g),*>,
            #[cfg(target_arch = "x86_64")]
            $crate::HostPath::Avx2 => avx2::<$($g),*>,
            #[cfg(target_arch = "x86_64")]
            $crate::HostPath::Avx512 => avx512::<$($g),*>,
            #[cfg(not(target_arch = "x86_64"))]
            _ => portable::<$($g),*>,
        }
    }};
}
pub(super) use multiversion;

/// `flags!(f [T] (x, y); a, b)` is `f::<T, A, B>(x, y)`, where `A` and `B` are the run-time Booleans `a` and `b`.
macro_rules! flags {
    ($f:ident $([$($t:ty),+])? ($($arg:expr),*); $a:expr) => {
        if $a { flags!(@ $f [$($($t,)+)? true] ($($arg),*)) } else { flags!(@ $f [$($($t,)+)? false] ($($arg),*)) }
    };
    ($f:ident $([$($t:ty),+])? ($($arg:expr),*); $a:expr, $b:expr) => {
        match ($a, $b) {
            (false, false) => flags!(@ $f [$($($t,)+)? false, false] ($($arg),*)),
            (false, true) => flags!(@ $f [$($($t,)+)? false, true] ($($arg),*)),
            (true, false) => flags!(@ $f [$($($t,)+)? true, false] ($($arg),*)),
            (true, true) => flags!(@ $f [$($($t,)+)? true, true] ($($arg),*)),
        }
    };
    (@ $f:ident [$($g:tt)*] ($($arg:expr),*)) => { $f::<$($g)*>($($arg),*) };
}
pub(super) use flags;
