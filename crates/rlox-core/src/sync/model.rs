//! Loom's threads and atomics under the names of the standard library, and channels, which loom lacks.
//! Each does what the standard library's documentation says, as far as the core uses it.

pub(crate) use loom::{
    hint,
    sync::{Arc, Mutex, MutexGuard, atomic},
};
pub(crate) use std::sync::PoisonError;

/// Threads. One that panics ends with an error, as in the standard library; a test can also make a thread
/// believe that it is panicking.
pub(crate) mod thread {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::{cell::Cell, io};

    pub(crate) use loom::thread::{Thread, current, park, yield_now};

    use super::Arc;
    use super::atomic::{AtomicBool, Ordering};

    loom::thread_local! {
        static UNWINDS: Cell<bool> = Cell::new(false);
    }

    /// Whether the test has said that this thread unwinds. The standard library counts by threads of
    /// the system, of which loom has but one.
    pub(crate) fn panicking() -> bool {
        UNWINDS.with(Cell::get)
    }

    /// From here on [`panicking`] says yes in this thread.
    #[cfg(test)]
    pub(crate) fn unwinds() {
        UNWINDS.with(|unwinds| unwinds.set(true));
    }

    /// What a thread is started with.
    pub(crate) struct Builder;

    impl Builder {
        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) fn name(self, _name: String) -> Self {
            self
        }

        pub(crate) fn spawn<T: Send + 'static>(
            self,
            work: impl FnOnce() -> T + Send + 'static,
        ) -> io::Result<JoinHandle<T>> {
            let finished = Arc::new(AtomicBool::new(false));
            let finishes = Arc::clone(&finished);
            let thread = loom::thread::spawn(move || {
                let result = catch_unwind(AssertUnwindSafe(work));
                finishes.store(true, Ordering::Release);
                result
            });
            Ok(JoinHandle { thread, finished })
        }
    }

    /// A thread that can be waited for.
    pub(crate) struct JoinHandle<T> {
        thread: loom::thread::JoinHandle<std::thread::Result<T>>,
        finished: Arc<AtomicBool>,
    }

    impl<T> JoinHandle<T> {
        pub(crate) fn join(self) -> std::thread::Result<T> {
            self.thread.join().and_then(|result| result)
        }

        pub(crate) fn is_finished(&self) -> bool {
            self.finished.load(Ordering::Acquire)
        }

        pub(crate) fn thread(&self) -> &Thread {
            self.thread.thread()
        }
    }
}

/// Channels that hold a limited number of values. Each end is told when the other one was dropped.
pub(crate) mod mpsc {
    use std::collections::VecDeque;
    use std::time::Duration;

    use loom::sync::Condvar;

    pub(crate) use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError};

    use super::{Arc, Mutex, MutexGuard, PoisonError};

    struct Queue<T> {
        values: VecDeque<T>,
        most: usize,
        is_sent_to: bool,
        is_received_from: bool,
    }

    struct Channel<T> {
        queue: Mutex<Queue<T>>,
        changed: Condvar,
    }

    impl<T> Channel<T> {
        fn queue(&self) -> MutexGuard<'_, Queue<T>> {
            self.queue.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn wait<'a>(&self, queue: MutexGuard<'a, Queue<T>>) -> MutexGuard<'a, Queue<T>> {
            (self.changed.wait(queue)).unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// A channel that holds `most` values, at least one.
    pub(crate) fn sync_channel<T>(most: usize) -> (SyncSender<T>, Receiver<T>) {
        assert!(most > 0, "a rendezvous is not modelled");
        let channel = Arc::new(Channel {
            queue: Mutex::new(Queue {
                values: VecDeque::new(),
                most,
                is_sent_to: true,
                is_received_from: true,
            }),
            changed: Condvar::new(),
        });
        (SyncSender(Arc::clone(&channel)), Receiver(channel))
    }

    /// The sending end, of which there is one.
    pub(crate) struct SyncSender<T>(Arc<Channel<T>>);

    impl<T> SyncSender<T> {
        pub(crate) fn send(&self, value: T) -> Result<(), SendError<T>> {
            let mut queue = self.0.queue();
            while queue.is_received_from && queue.values.len() == queue.most {
                queue = self.0.wait(queue);
            }
            if !queue.is_received_from {
                return Err(SendError(value));
            }
            queue.values.push_back(value);
            self.0.changed.notify_all();
            Ok(())
        }
    }

    impl<T> Drop for SyncSender<T> {
        fn drop(&mut self) {
            self.0.queue().is_sent_to = false;
            self.0.changed.notify_all();
        }
    }

    /// The receiving end.
    pub(crate) struct Receiver<T>(Arc<Channel<T>>);

    impl<T> Receiver<T> {
        pub(crate) fn recv(&self) -> Result<T, RecvError> {
            let mut queue = self.0.queue();
            loop {
                if let Some(value) = queue.values.pop_front() {
                    self.0.changed.notify_all();
                    return Ok(value);
                }
                if !queue.is_sent_to {
                    return Err(RecvError);
                }
                queue = self.0.wait(queue);
            }
        }

        /// Loom has no clock: with a patience of zero only what is already there is received, and with any
        /// other patience the wait lasts until a value comes or the sender is dropped.
        pub(crate) fn recv_timeout(&self, patience: Duration) -> Result<T, RecvTimeoutError> {
            if !patience.is_zero() {
                return self.recv().map_err(|_| RecvTimeoutError::Disconnected);
            }
            let mut queue = self.0.queue();
            match queue.values.pop_front() {
                Some(value) => {
                    self.0.changed.notify_all();
                    Ok(value)
                }
                None if queue.is_sent_to => Err(RecvTimeoutError::Timeout),
                None => Err(RecvTimeoutError::Disconnected),
            }
        }
    }

    impl<T> Drop for Receiver<T> {
        fn drop(&mut self) {
            let mut queue = self.0.queue();
            queue.is_received_from = false;
            let left = std::mem::take(&mut queue.values);
            drop(queue); // first: to drop a value may take other locks
            drop(left);
            self.0.changed.notify_all();
        }
    }
}
