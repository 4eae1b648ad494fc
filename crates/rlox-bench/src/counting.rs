//! An allocator that counts. A program that wants counts makes it its `#[global_allocator]`.
#![allow(unsafe_code, reason = "an allocator can only be written so")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with the allocations of each thread counted for it.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static SO_FAR: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

impl Counting {
    fn note(bytes: usize) {
        let (allocations, all) = SO_FAR.get();
        SO_FAR.set((allocations + 1, all + bytes as u64));
    }

    /// Allocations of this thread so far, and the bytes it asked for.
    pub fn so_far() -> (u64, u64) {
        SO_FAR.get()
    }
}

// SAFETY: each function calls the system allocator's with the same arguments, and so keeps its
// promises.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        // SAFETY: the caller keeps the conditions of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::note(layout.size());
        // SAFETY: the caller keeps the conditions of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Self::note(new_size);
        // SAFETY: the caller keeps the conditions of `realloc`.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the conditions of `dealloc`.
        unsafe { System.dealloc(ptr, layout) }
    }
}
