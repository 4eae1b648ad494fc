//! A table of which call uses which memory. Scopes ask it before they read or write, so that no memory
//! is written by one and used by another.
//!
//! It goes by addresses, not by arrays, since two arrays may share memory in ways that NumPy does not
//! know. A scope notes its places (ranges of addresses) in its own [`Places`]. It publishes them in a
//! linked list while it has released the GIL, which is the only time that another call can begin. The
//! GIL guards the list. While no call is detached, that is while the list is empty, asking costs one
//! load.

use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::{being_written, not_writable, shared};

/// The most arrays that one call reads, and the most that it writes to. An update of SAC reads seven
/// and writes to ten.
const MOST: usize = 12;

/// What a call does with memory.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Use {
    Read,
    Write,
    /// It writes after its last read, so its own reads may overlap.
    WriteLater,
}

/// The addresses `start..end` of an array, and its name for errors.
struct Place {
    start: usize,
    end: usize,
    name: &'static str,
}

/// The places that a call reads, or those that it writes to.
struct PlaceList {
    len: Cell<usize>,
    /// The first `len` are initialised.
    all: [UnsafeCell<MaybeUninit<Place>>; MOST],
}

impl PlaceList {
    #[inline(always)]
    fn new() -> Self {
        Self {
            len: Cell::new(0),
            all: [const { UnsafeCell::new(MaybeUninit::uninit()) }; MOST],
        }
    }

    /// The name of the first place that overlaps with `place`.
    #[inline(always)]
    fn find(&self, place: &Place) -> Option<&'static str> {
        let mut set = self.all.iter().take(self.len.get());
        set.find_map(|other| {
            // SAFETY: the first `len` are initialised, and never change.
            let other = unsafe { (*other.get()).assume_init_ref() };
            (other.start < place.end && place.start < other.end).then_some(other.name)
        })
    }

    #[inline(always)]
    fn push(&self, place: Place) -> PyResult<()> {
        let len = self.len.get();
        let Some(free) = self.all.get(len) else {
            return Err(too_many());
        };
        // SAFETY: `find` looks at the first `len` alone, and this one is behind them, so nobody refers
        // to it.
        unsafe { (*free.get()).write(place) };
        self.len.set(len + 1);
        Ok(())
    }
}

#[cold]
fn too_many() -> PyErr {
    PyRuntimeError::new_err("a call has too many arrays")
}

/// The places of one call, in its scope.
pub(super) struct Places {
    read: PlaceList,
    written: PlaceList,
    /// The next call in the list of published places, or null.
    next: Cell<*const Places>,
}

impl Places {
    /// None yet.
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self {
            read: PlaceList::new(),
            written: PlaceList::new(),
            next: Cell::new(ptr::null()),
        }
    }
}

/// The head of the list of published places: those of the call that released the GIL last.
struct Last(Cell<*const Places>);

// SAFETY: only this file uses it, and only in functions that have `Python<'_>`, so with the GIL held.
unsafe impl Sync for Last {}

static LAST: Last = Last(Cell::new(ptr::null()));

/// Whether no call is detached, that is, has released the GIL with its places published.
#[inline]
fn none_detached(_py: Python<'_>) -> bool {
    LAST.0.get().is_null()
}

/// ValueError if a detached call uses `place` in a way that excludes `how`: reading excludes writing,
/// and writing excludes both.
#[cold]
fn ask_detached(_py: Python<'_>, argument: &str, place: &Place, how: Use) -> PyResult<()> {
    let mut at = LAST.0.get();
    // SAFETY: published places lie in the stack frame of a scope, which does not end before they are
    // removed. Their own thread does not change them while it is detached, and the list changes only
    // with the GIL held, which this thread has.
    while let Some(places) = unsafe { at.as_ref() } {
        if how == Use::Read && places.written.find(place).is_some() {
            return Err(being_written(argument));
        }
        if how != Use::Read && (places.written.find(place).or(places.read.find(place))).is_some() {
            return Err(not_writable(argument));
        }
        at = places.next.get();
    }
    Ok(())
}

/// ValueError if a detached call writes to `addresses`: for a call that reads them and keeps the GIL,
/// and so notes nothing.
#[inline]
pub(super) fn ask(py: Python<'_>, argument: &str, addresses: Range<usize>) -> PyResult<()> {
    if none_detached(py) {
        return Ok(());
    }
    let Range { start, end } = addresses;
    let name = "";
    ask_detached(py, argument, &Place { start, end, name }, Use::Read)
}

/// The places of a scope with the GIL's token, as long as the scope lasts.
pub(super) struct Entry<'s> {
    pub(super) py: Python<'s>,
    places: &'s Places,
}

impl<'s> Entry<'s> {
    /// `places` must be new ones.
    #[inline]
    pub(super) fn new(py: Python<'s>, places: &'s Places) -> Self {
        Self { py, places }
    }

    /// Notes that the call uses the array at `addresses`. ValueError if this call or a detached one
    /// uses the same memory in a way that excludes it. A conflict with a detached call is reported
    /// under the name `argument`, one within this call under `name`.
    ///
    /// It is inlined, since a call took 30 to 70 instructions for each array, most of them to pass the
    /// arguments.
    #[inline(always)]
    pub(super) fn note(
        &self,
        argument: &str,
        name: &'static str,
        addresses: Range<usize>,
        how: Use,
    ) -> PyResult<()> {
        let Range { start, end } = addresses;
        let place = Place { start, end, name };
        if !none_detached(self.py) {
            ask_detached(self.py, argument, &place, how)?;
        }
        let Places { read, written, .. } = self.places;
        let other = match how {
            Use::Write => written.find(&place).or_else(|| read.find(&place)),
            Use::WriteLater | Use::Read => written.find(&place),
        };
        match (other, how) {
            (None, Use::Read) => read.push(place),
            (None, Use::Write | Use::WriteLater) => written.push(place),
            (Some(other), Use::Read) => Err(shared(other, name)),
            (Some(other), Use::Write | Use::WriteLater) => Err(shared(name, other)),
        }
    }

    /// Runs `work` with the GIL released and the places published.
    #[inline]
    pub(super) fn detach<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let _published = Published::new(self.py, self.places);
        self.py.detach(work)
    }
}

/// A guard that publishes the places of a call. When dropped, with the GIL held again, it removes them
/// from the list.
struct Published<'a> {
    _held: Python<'a>,
    places: &'a Places,
}

impl<'a> Published<'a> {
    #[inline]
    fn new(py: Python<'a>, places: &'a Places) -> Self {
        places.next.set(LAST.0.replace(places));
        Self { _held: py, places }
    }
}

impl Drop for Published<'_> {
    #[inline]
    fn drop(&mut self) {
        let mut at = &LAST.0;
        // SAFETY: as in `ask_detached`.
        while let Some(places) = unsafe { at.get().as_ref() } {
            if ptr::eq(places, self.places) {
                at.set(places.next.get());
                return;
            }
            at = &places.next;
        }
    }
}

/// Called after a fork in the child, which has none of the threads whose calls are in the list.
pub(crate) fn forked(_py: Python<'_>) {
    LAST.0.set(ptr::null());
}
