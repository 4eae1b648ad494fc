//! Instruction sets, chosen at run time. [`kernel!`] compiles a function three times from one body: for
//! AVX-512, for AVX2 with FMA, and for what the target guarantees. Its calls go to the best that the
//! processor has, so that one build is fast everywhere.
//!
//! A body is plain code over arrays, which the compiler vectorises, or uses the intrinsics of
//! [`Sixteen`].
#![allow(
    unsafe_code,
    reason = "code for an instruction set must be called only where the processor has it"
)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256, __m512, _MM_HINT_T0, _mm_prefetch, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps,
    _mm256_storeu_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_storeu_ps,
};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use num_traits::Float;

use crate::RloxError;

/// The instruction set that a kernel's body is compiled for.
pub trait Instructions {
    /// Whether a fused multiply-add is one instruction. Where it is not, `mul_add` of the standard
    /// library would call a function.
    const FMA: bool;
    /// Whether it is AVX-512, which has 32 registers of 16 floats; the others have 16 registers of 8 or
    /// 4.
    const WIDE: bool;

    /// `a * b + c`: fused, so rounded once, where that is one instruction; elsewhere rounded twice.
    #[inline(always)]
    fn mul_add<T: Float>(a: T, b: T, c: T) -> T {
        if Self::FMA {
            a.mul_add(b, c)
        } else {
            a * b + c
        }
    }
}

/// AVX-512 F, VL, BW and DQ, which nearly all processors with AVX-512 have.
pub(crate) struct Avx512;
/// AVX2 and FMA.
pub(crate) struct Avx2;
/// What the target guarantees: SSE2 on x86-64, NEON with FMA on AArch64.
pub(crate) struct Portable;

impl Instructions for Avx512 {
    const FMA: bool = true;
    const WIDE: bool = true;
}

impl Instructions for Avx2 {
    const FMA: bool = true;
    const WIDE: bool = false;
}

impl Instructions for Portable {
    const FMA: bool = cfg!(target_arch = "aarch64");
    const WIDE: bool = false;
}

/// Sixteen floats in registers, by intrinsics. It is for loops whose sums must stay in registers: the
/// compiler may put arrays of floats into memory.
///
/// # Safety
/// The processor must have these instructions, for every function. `read` and `write` need sixteen
/// floats at the pointer, which need not be aligned.
pub(crate) trait Sixteen: Instructions {
    /// One register or several.
    type Vector: Copy;

    /// A vector of sixteen times `value`.
    unsafe fn splat(value: f32) -> Self::Vector;

    /// Reads sixteen floats that lie side by side.
    unsafe fn read(from: *const f32) -> Self::Vector;

    /// Writes sixteen floats side by side.
    unsafe fn write(values: Self::Vector, to: *mut f32);

    /// `a * b + c` in each lane, rounded as [`Instructions::mul_add`] does.
    unsafe fn mul_adds(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
}

#[cfg(target_arch = "x86_64")]
impl Sixteen for Avx512 {
    type Vector = __m512;

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        // SAFETY: the caller has seen that the processor has AVX-512.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn read(from: *const f32) -> __m512 {
        // SAFETY: as above; the caller has sixteen floats there.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn write(values: __m512, to: *mut f32) {
        // SAFETY: as above; the caller has room for sixteen floats there.
        unsafe { _mm512_storeu_ps(to, values) }
    }

    #[inline(always)]
    unsafe fn mul_adds(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the caller has seen that the processor has AVX-512.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Sixteen for Avx2 {
    type Vector = (__m256, __m256);

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self::Vector {
        // SAFETY: the caller has seen that the processor has AVX2 and FMA.
        let eight = unsafe { _mm256_set1_ps(value) };
        (eight, eight)
    }

    #[inline(always)]
    unsafe fn read(from: *const f32) -> Self::Vector {
        // SAFETY: as above; the caller has sixteen floats there.
        unsafe { (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
    }

    #[inline(always)]
    unsafe fn write((low, high): Self::Vector, to: *mut f32) {
        // SAFETY: as above; the caller has room for sixteen floats there.
        unsafe {
            _mm256_storeu_ps(to, low);
            _mm256_storeu_ps(to.add(8), high);
        }
    }

    #[inline(always)]
    unsafe fn mul_adds(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        // SAFETY: the caller has seen that the processor has AVX2 and FMA.
        unsafe {
            (
                _mm256_fmadd_ps(a.0, b.0, c.0),
                _mm256_fmadd_ps(a.1, b.1, c.1),
            )
        }
    }
}

impl Sixteen for Portable {
    type Vector = [f32; 16];

    #[inline(always)]
    unsafe fn splat(value: f32) -> [f32; 16] {
        [value; 16]
    }

    #[inline(always)]
    unsafe fn read(from: *const f32) -> [f32; 16] {
        // SAFETY: the caller has sixteen floats there.
        unsafe { from.cast::<[f32; 16]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn write(values: [f32; 16], to: *mut f32) {
        // SAFETY: the caller has room for sixteen floats there.
        unsafe { to.cast::<[f32; 16]>().write_unaligned(values) }
    }

    #[inline(always)]
    unsafe fn mul_adds(a: [f32; 16], b: [f32; 16], mut c: [f32; 16]) -> [f32; 16] {
        for l in 0..16 {
            c[l] = Self::mul_add(a[l], b[l], c[l]);
        }
        c
    }
}

/// An instruction set, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The level's name in the environment variable [`CAP`].
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
        }
    }
}

/// The environment variable that caps the level, so that results of a lesser processor can be
/// reproduced.
const CAP: &str = "RLOX_INSTRUCTIONS";

/// The values that [`CAP`] may have, the lowest level first.
const NAMES: [&str; 3] = ["portable", "avx2", "avx512"];

/// The levels that this processor has, the lowest first.
pub(crate) static LEVELS: LazyLock<Vec<Level>> = LazyLock::new(|| {
    let mut levels = vec![Level::Portable];
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        levels.push(Level::Avx2);
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
        {
            levels.push(Level::Avx512);
        }
    }
    levels
});

#[cfg(test)]
thread_local! {
    /// The level that a test makes this thread use.
    pub(crate) static FORCED: std::cell::Cell<Option<Level>> = const { std::cell::Cell::new(None) };
}

/// Runs `check` once at each level that this processor has.
#[cfg(test)]
pub(crate) fn at_every_level<E>(mut check: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    for &level in LEVELS.iter() {
        FORCED.set(Some(level));
        let result = check();
        FORCED.set(None);
        result?;
    }
    Ok(())
}

/// The level that kernels use.
#[inline]
pub(crate) fn level() -> Level {
    #[cfg(test)]
    if let Some(level) = FORCED.get() {
        return level;
    }
    const PORTABLE: u8 = Level::Portable as u8;
    #[cfg(target_arch = "x86_64")]
    const AVX2: u8 = Level::Avx2 as u8;
    #[cfg(target_arch = "x86_64")]
    const AVX512: u8 = Level::Avx512 as u8;
    match KNOWN.load(Relaxed) {
        PORTABLE => Level::Portable,
        #[cfg(target_arch = "x86_64")]
        AVX2 => Level::Avx2,
        #[cfg(target_arch = "x86_64")]
        AVX512 => Level::Avx512,
        _ => find(),
    }
}

/// The result of [`best`] as a number, or `u8::MAX` before the first call. Every kernel asks for it, so
/// that must cost no more than a load.
static KNOWN: AtomicU8 = AtomicU8::new(u8::MAX);

#[cold]
#[inline(never)]
fn find() -> Level {
    let level = best().unwrap_or(Level::Portable);
    KNOWN.store(level as u8, Relaxed);
    level
}

/// The highest of [`LEVELS`] that [`CAP`] allows.
///
/// # Errors
/// If [`CAP`] is set and names no level.
pub(crate) fn best() -> Result<Level, RloxError> {
    let cap = std::env::var_os(CAP).unwrap_or_default();
    let allowed = match NAMES.iter().position(|&name| cap == name) {
        Some(at) => &NAMES[..=at],
        None if cap.is_empty() => &NAMES[..],
        None => {
            let names = NAMES.join(", ");
            let problem = format!("is {cap:?}, expected one of {names}; or unset it");
            return Err(RloxError::argument(CAP, problem));
        }
    };
    let best = LEVELS.iter().rfind(|level| allowed.contains(&level.name()));
    Ok(best.copied().unwrap_or(Level::Portable))
}

/// Asks the processor to bring the cache line at `at` into its first cache.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has SSE, and a prefetch is a hint, which reads nothing, at whatever address.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// The `N` elements of `from` that begin at `at`.
#[inline(always)]
pub(crate) fn load<T: Float, const N: usize>(from: &[T], at: usize) -> [T; N] {
    let mut lanes = [T::zero(); N];
    lanes.copy_from_slice(&from[at..at + N]);
    lanes
}

/// The sum of eight lanes, in three steps of halving, which vectorises.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "it reads lanes l and l + 4")]
pub(crate) fn total(lanes: [f64; 8]) -> f64 {
    let mut quarters = [0.0; 4];
    for l in 0..4 {
        quarters[l] = lanes[l] + lanes[l + 4];
    }
    (quarters[0] + quarters[2]) + (quarters[1] + quarters[3])
}

/// Defines the function `name`, which calls `body` compiled for the best of the [`Instructions`] that
/// the processor has.
///
/// The function may be generic over one type. The body is generic over the instructions, then over that
/// type, then over what is given: `body<Pole, 4>`. It may be an unsafe function, whose condition is
/// that the processor has the instructions.
///
/// `body` and all that it calls must be `#[inline(always)]`: only what is inlined into the function for
/// an instruction set is compiled for it.
macro_rules! kernel {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$T:ident: $bound:ident>)? ($($arg:ident: $type:ty),* $(,)?)
        $(-> $out:ty)? = $body:ident $(<$($of:tt),+>)?;) => {
        $(#[$meta])*
        #[allow(unsafe_code, reason = "an instruction set is used where the processor has it")]
        $vis fn $name $(<$T: $bound>)? ($($arg: $type),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            #[allow(clippy::too_many_arguments)]
            #[target_feature(enable = "avx2,fma,avx512f,avx512vl,avx512bw,avx512dq")]
            fn avx512 $(<$T: $bound>)? ($($arg: $type),*) $(-> $out)? {
                // SAFETY: this function is called only below, where the processor has the instructions.
                #[allow(unused_unsafe, reason = "most bodies are safe")]
                unsafe { $body::<$crate::simd::Avx512 $(, $T)? $($(, $of)+)?>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[allow(clippy::too_many_arguments)]
            #[target_feature(enable = "avx2,fma")]
            fn avx2 $(<$T: $bound>)? ($($arg: $type),*) $(-> $out)? {
                // SAFETY: the same.
                #[allow(unused_unsafe, reason = "most bodies are safe")]
                unsafe { $body::<$crate::simd::Avx2 $(, $T)? $($(, $of)+)?>($($arg),*) }
            }
            match $crate::simd::level() {
                // SAFETY: the target guarantees these instructions.
                #[allow(unused_unsafe, reason = "most bodies are safe")]
                $crate::simd::Level::Portable => unsafe {
                    $body::<$crate::simd::Portable $(, $T)? $($(, $of)+)?>($($arg),*)
                },
                // SAFETY: `level` returns only a level that the processor was found to have.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Level::Avx2 => unsafe { avx2($($arg),*) },
                // SAFETY: the same.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Level::Avx512 => unsafe { avx512($($arg),*) },
            }
        }
    };
}
pub(crate) use kernel;
