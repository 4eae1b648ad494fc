//! Denormal floats are treated as zero while a network is trained, since arithmetic on them is slow.
#![allow(
    unsafe_code,
    reason = "Rust has no function for this setting of the processor"
)]

use std::marker::PhantomData;

/// A guard: until it is dropped, this thread treats denormal floats as zero. Then the setting is again
/// what it was before.
///
/// Processors compute with denormals in microcode, a hundred times slower. What gradients and Adam's
/// moments lose by flushing is below 1.2e-38. The guard does nothing on other processors than x86-64,
/// and under Miri, which has no such setting.
///
/// Hold it around the arithmetic of networks alone. Never hold it while the thread waits for Rayon's
/// pool: Rayon may run other work on a waiting thread, which would then be flushed, too.
#[derive(Debug)]
pub struct FlushDenormals {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    before: u32,
    /// Keeps the guard in its thread, since the setting is the thread's: a pointer is not `Send`.
    _of_this_thread: PhantomData<*const ()>,
}

impl FlushDenormals {
    /// Begins to flush.
    #[expect(
        clippy::new_without_default,
        reason = "a default must not change a setting"
    )]
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

/// MXCSR, the control register of SSE arithmetic.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod control {
    use std::arch::asm;

    pub(crate) fn get() -> u32 {
        let mut word = 0u32;
        // SAFETY: the instruction writes four bytes, to `word`.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    pub(crate) fn set(word: u32) {
        // SAFETY: Rust assumes the default setting and promises nothing about floats under another one.
        // The compiler may therefore move arithmetic across this instruction, or do it at compile time.
        // Either changes a result by less than the smallest normal float, 1.2e-38, and no access to
        // memory depends on such a result.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack)) };
    }
}
