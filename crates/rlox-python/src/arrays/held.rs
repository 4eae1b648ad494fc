//! Arrays of calls that let go of the interpreter, so that others may ask for the same memory.
//!
//! Such a call enters the addresses that it reads and writes into a table; who wants to write to
//! memory that is read, or to read what is written, is refused. By addresses and not by arrays: two of
//! them may have come to one memory by ways that NumPy does not know. The table is looked at with the
//! interpreter held, and by calls that keep it only while somebody is in it.

use std::cell::RefCell;
use std::ops::Range;
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use numpy::{PyArrayMethods, ndarray::Dimension};
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;

use crate::errors::reserved;

use super::look::{Item, Number, is_writable, look};
use super::{being_written, flags, not_writable, overlap, parts, place_of, shared};

/// Memory that somebody works with.
struct Place {
    /// Which call's.
    of: usize,
    argument: &'static str,
    addresses: Range<usize>,
    written: bool,
}

static PLACES: Mutex<Vec<Place>> = Mutex::new(Vec::new());
/// Calls that may enter places; changed with the interpreter held.
static HOLDS: AtomicUsize = AtomicUsize::new(0);
/// Samples under way that write to kept arrays without having entered them.
static REFILLS: AtomicUsize = AtomicUsize::new(0);
/// Number of the next call.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The arrays of one call; it lets go of them in the end.
pub(crate) struct Hold<'py> {
    of: usize,
    /// With a weak reference to each: while there is one, NumPy does not resize an array.
    arrays: RefCell<Vec<(Bound<'py, PyAny>, Bound<'py, PyWeakrefReference>)>>,
}

impl<'py> Hold<'py> {
    /// None yet. Waits for samples that are being written to kept arrays: later ones enter these.
    pub(crate) fn new(py: Python<'py>) -> Self {
        HOLDS.fetch_add(1, Relaxed);
        let hold = Self {
            of: NEXT.fetch_add(1, Relaxed),
            arrays: RefCell::default(),
        };
        while REFILLS.load(Relaxed) > 0 {
            py.detach(|| thread::sleep(Duration::from_micros(20)));
        }
        hold
    }

    /// `object` as an array of `T` to be read, with the dimensions of `D` or of `shape`.
    pub(crate) fn read<T: Number, D: Dimension>(
        &self,
        argument: &'static str,
        object: &Bound<'py, PyAny>,
        shape: Option<&[usize]>,
    ) -> PyResult<&[T]> {
        let (data, len) = self.enter::<T, D>(argument, object, shape, false)?;
        // SAFETY: so many elements lie there. The array is kept, is not resized, and nobody who asks
        // the table writes to them until this call lets go of it.
        Ok(unsafe { slice::from_raw_parts(data, len) })
    }

    /// `object` as an array of `T` to be written to, likewise.
    #[allow(clippy::mut_from_ref, reason = "no two places of a call overlap")]
    pub(crate) fn write<T: Number, D: Dimension>(
        &self,
        argument: &'static str,
        object: &Bound<'py, PyAny>,
        shape: Option<&[usize]>,
    ) -> PyResult<&mut [T]> {
        let (data, len) = self.enter::<T, D>(argument, object, shape, true)?;
        // SAFETY: as in `read`; and nobody who asks the table reads them.
        Ok(unsafe { slice::from_raw_parts_mut(data, len) })
    }

    /// `object` as an array of bools to be read: a copy of it, since any bytes may come into that
    /// meanwhile.
    pub(crate) fn flags<D: Dimension>(
        &self,
        argument: &'static str,
        object: &Bound<'py, PyAny>,
        shape: Option<&[usize]>,
    ) -> PyResult<Vec<bool>> {
        let (data, len) = self.enter::<bool, D>(argument, object, shape, false)?;
        // SAFETY: as in `read`; any byte is a `u8`.
        let bytes = unsafe { slice::from_raw_parts(data.cast::<u8>(), len) };
        let mut copy = reserved(len)?;
        copy.extend_from_slice(flags(argument, bytes)?);
        Ok(copy)
    }

    /// Bytes that the call reads.
    pub(crate) fn bytes_read(&self) -> usize {
        let places = places();
        let read = places
            .iter()
            .filter(|place| place.of == self.of && !place.written);
        read.map(|place| place.addresses.len()).sum()
    }

    /// Enters an array into the table, and says where it lies.
    pub(crate) fn enter<T: Item, D: Dimension>(
        &self,
        argument: &'static str,
        object: &Bound<'py, PyAny>,
        shape: Option<&[usize]>,
        written: bool,
    ) -> PyResult<(*mut T, usize)> {
        let weak = PyWeakrefReference::new(object); // first: it may run anything
        let array = look::<T, D>(argument, object, shape)?;
        if written && !is_writable(array.as_untyped()) {
            return Err(not_writable(argument));
        }
        let addresses = place_of(array);
        let mut places = places();
        if let Some(other) = conflict(&places, &addresses, written) {
            return Err(if other.of == self.of {
                let (first, second) = match written {
                    true => (argument, other.argument),
                    false => (other.argument, argument),
                };
                shared(first, second)
            } else if written {
                not_writable(argument)
            } else {
                being_written(argument)
            });
        }
        places.push(Place {
            of: self.of,
            argument,
            addresses,
            written,
        });
        drop(places);
        self.arrays.borrow_mut().push((object.clone(), weak?));
        Ok(parts(array))
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        places().retain(|place| place.of != self.of);
        // A fork in the middle of a call has forgotten it.
        let _ = HOLDS.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1));
    }
}

/// Refuses what another call works with meanwhile, for a call that keeps the interpreter.
#[inline]
pub(super) fn check(argument: &str, addresses: Range<usize>, written: bool) -> PyResult<()> {
    if HOLDS.load(Relaxed) == 0 {
        return Ok(());
    }
    check_places(argument, &addresses, written)
}

#[cold]
fn check_places(argument: &str, addresses: &Range<usize>, written: bool) -> PyResult<()> {
    match conflict(&places(), addresses, written) {
        None => Ok(()),
        Some(_) if written => Err(not_writable(argument)),
        Some(_) => Err(being_written(argument)),
    }
}

/// Writes to kept arrays without entering them, if nobody is to be asked: until it is dropped.
pub(crate) struct Refill(());

impl Refill {
    /// None while a call is there that may have entered them, or will.
    pub(crate) fn new(_py: Python<'_>) -> Option<Self> {
        if HOLDS.load(Relaxed) > 0 {
            return None;
        }
        REFILLS.fetch_add(1, Relaxed);
        Some(Self(()))
    }
}

impl Drop for Refill {
    fn drop(&mut self) {
        let _ = REFILLS.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1));
    }
}

/// In a process that was forked off: the threads of those calls are not here.
pub(crate) fn forked() {
    places().clear();
    HOLDS.store(0, Relaxed);
    REFILLS.store(0, Relaxed);
}

fn conflict<'a>(places: &'a [Place], addresses: &Range<usize>, written: bool) -> Option<&'a Place> {
    places
        .iter()
        .find(|place| (written || place.written) && overlap(&place.addresses, addresses))
}

/// Nothing of Python's runs while they are locked.
fn places() -> MutexGuard<'static, Vec<Place>> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}
