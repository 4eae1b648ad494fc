//! Who works with which memory: what scopes ask before they read or write.
//!
//! By addresses and not by arrays: two of them may have come to one memory by ways that NumPy does
//! not know. A scope notes its own places, and hangs them up for others while it lets go of the
//! interpreter, which is the only time that another call can begin. What is hung up is reached with the
//! interpreter held, which is the lock that guards it; as long as nothing is, that costs one load.

use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::{being_written, not_writable, shared};

/// Arrays that one call reads, or writes to, at most: an update of SAC has seven and ten.
const MOST: usize = 12;

/// What a call does with memory.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Use {
    Read,
    Write,
    /// When it no longer reads anything.
    WriteLater,
}

struct Place {
    start: usize,
    end: usize,
    name: &'static str,
}

/// Places of one kind.
struct List {
    len: Cell<usize>,
    /// Of which the first so many are set.
    all: [UnsafeCell<MaybeUninit<Place>>; MOST],
}

impl List {
    #[inline(always)]
    fn new() -> Self {
        Self {
            len: Cell::new(0),
            all: [const { UnsafeCell::new(MaybeUninit::uninit()) }; MOST],
        }
    }

    /// The name of the first one that overlaps with `place`.
    #[inline(always)]
    fn find(&self, place: &Place) -> Option<&'static str> {
        let mut set = self.all.iter().take(self.len.get());
        set.find_map(|other| {
            // SAFETY: as many are set, and one that is set is never changed.
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
        // SAFETY: `find` looks at those alone that are counted, and this one is not yet.
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
    read: List,
    written: List,
    /// Those of another call that were hung up before.
    next: Cell<*const Places>,
}

impl Places {
    /// None yet.
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self {
            read: List::new(),
            written: List::new(),
            next: Cell::new(ptr::null()),
        }
    }
}

/// The last call that let go of the interpreter with its places hung up.
struct Last(Cell<*const Places>);

// SAFETY: it is reached by this file alone, always with the interpreter held (a token of it is asked for).
unsafe impl Sync for Last {}

static LAST: Last = Last(Cell::new(ptr::null()));

/// Whether anything is hung up.
#[inline]
fn nobody_is_away(_py: Python<'_>) -> bool {
    LAST.0.get().is_null()
}

/// Refuses what a call that is away works with.
#[cold]
fn ask_those_away(_py: Python<'_>, argument: &str, place: &Place, how: Use) -> PyResult<()> {
    let mut at = LAST.0.get();
    // SAFETY: places that are hung up lie in a scope that does not end before they are taken down; its
    // thread changes none of them meanwhile, nor what is hung up, which takes the interpreter.
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

/// Refuses what a call that is away writes to, for a call that reads and keeps the interpreter.
#[inline]
pub(super) fn ask(py: Python<'_>, argument: &str, addresses: Range<usize>) -> PyResult<()> {
    if nobody_is_away(py) {
        return Ok(());
    }
    let Range { start, end } = addresses;
    let name = "";
    ask_those_away(py, argument, &Place { start, end, name }, Use::Read)
}

/// What one call works with, from its looking at arrays to its end.
pub(super) struct Entry<'s> {
    pub(super) py: Python<'s>,
    places: &'s Places,
}

impl<'s> Entry<'s> {
    /// `places` are new ones, which stay where they are.
    #[inline]
    pub(super) fn new(py: Python<'s>, places: &'s Places) -> Self {
        Self { py, places }
    }

    /// Notes what the call does with an array; ValueError if this call, or one that is away, works with the
    /// same memory in a way that excludes it. `argument` is what this error names; later errors of this
    /// call know the array as `name`.
    ///
    /// Inlined: called, it took 30 to 70 instructions an array, most of them to pass its arguments.
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
        if !nobody_is_away(self.py) {
            ask_those_away(self.py, argument, &place, how)?;
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

    /// `work` with the interpreter let go of, and the places hung up for others.
    #[inline]
    pub(super) fn detach<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let _hung_up = HungUp::new(self.py, self.places);
        self.py.detach(work)
    }
}

/// Takes the places down again in the end, when the interpreter is held again.
struct HungUp<'a> {
    _held: Python<'a>,
    places: &'a Places,
}

impl<'a> HungUp<'a> {
    #[inline]
    fn new(py: Python<'a>, places: &'a Places) -> Self {
        places.next.set(LAST.0.replace(places));
        Self { _held: py, places }
    }
}

impl Drop for HungUp<'_> {
    #[inline]
    fn drop(&mut self) {
        let mut at = &LAST.0;
        // SAFETY: as in `ask_those_away`.
        while let Some(places) = unsafe { at.get().as_ref() } {
            if ptr::eq(places, self.places) {
                at.set(places.next.get());
                return;
            }
            at = &places.next;
        }
    }
}

/// In a process that was forked off: the threads of those calls are not here.
pub(crate) fn forked(_py: Python<'_>) {
    LAST.0.set(ptr::null());
}
