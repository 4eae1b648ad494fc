//! Denormal floats count as zero while a network is trained.
#![allow(
    unsafe_code,
    reason = "the setting is the processor's, and Rust has no name for it"
)]

use std::marker::PhantomData;

/// While it lives, this thread's denormal floats count as zero; what was before comes back after.
///
/// Arithmetic on denormals is done in microcode, a hundred times slower, and what gradients and
/// Adam's moments lose by their flushing is below 1.2e-38. Does nothing off x86-64
/// and under Miri, which knows no such setting.
///
/// It is held around arithmetic of networks alone, and never while a thread waits for others of
/// Rayon's pool, which may give it other work to do meanwhile.
#[derive(Debug)]
pub struct FlushDenormals {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    before: u32,
    /// The setting is the thread's.
    _of_this_thread: PhantomData<*const ()>,
}

impl FlushDenormals {
    /// Flushes from here on.
    #[expect(clippy::new_without_default, reason = "it acts")]
    pub fn new() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            const FLUSH_TO_ZERO: u32 = 1 << 15;
            const DENORMALS_ARE_ZERO: u32 = 1 << 6;
            let before = control::get();
            control::set(before | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
            Self {
                before,
                _of_this_thread: PhantomData,
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        Self {
            _of_this_thread: PhantomData,
        }
    }
}

impl Drop for FlushDenormals {
    fn drop(&mut self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        control::set(self.before);
    }
}

/// The control word of SSE arithmetic.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod control {
    use std::arch::asm;

    pub(crate) fn get() -> u32 {
        let mut word = 0u32;
        // SAFETY: stores the control word in `word`.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    pub(crate) fn set(word: u32) {
        // SAFETY: Rust takes its own setting for granted and promises nothing under another one. What
        // the compiler makes of that is to move arithmetic across, and to do some beforehand: both
        // change results by less than the least normal float, and none decides about memory.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack)) };
    }
}
