//! Rollouts collected by a thread in the background, while the learner learns.
//!
//! The learner calls two functions in turn: [`AsyncCollector::start`] begins a rollout with the present
//! policy, and [`AsyncCollector::take_timeout`] returns it. Between the two calls the policy must not
//! change, and the thread begins no rollout by itself. So the same seed gives the same rollouts, however
//! the threads are scheduled.

#[cfg(all(test, loom))]
mod interleavings;

use std::time::Duration;

use super::rollout::{Collect, CollectError, Policy, Rollout, collect};
use super::{EnvOf, PipelineWiring};
use crate::error::RloxError;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::sync::mpsc::{Receiver, RecvTimeoutError, SendError, SyncSender, sync_channel};
use crate::sync::thread::{self, Builder, JoinHandle};

/// A thread that collects rollouts, and the two channels to it: orders go there, rollouts come back.
pub struct AsyncCollector<W: PipelineWiring, E> {
    /// None once the collector is to end: the thread ends when it finds this channel closed.
    orders: Option<SyncSender<()>>,
    rollouts: Receiver<Result<Rollout, CollectError<E>>>,
    in_flight: bool,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<EnvOf<W>>>>,
    /// The environments, once the thread has been waited for; `Some(None)` if it panicked, which loses
    /// them.
    left: Option<Option<EnvOf<W>>>,
}

impl<W: PipelineWiring, E: Send + 'static> AsyncCollector<W, E> {
    /// A collector that waits for its first order. On an error the environments come back with the reason,
    /// so that the caller does not lose them.
    ///
    /// `within` is called once, in the new thread, with a function that does all of the thread's work. It
    /// must call that function, and may prepare what the policy needs first, such as Python's interpreter.
    pub fn new(
        env: EnvOf<W>,
        mut policy: Box<dyn Policy<Error = E>>,
        how: Collect,
        within: impl FnOnce(&mut (dyn FnMut() + Send)) + Send + 'static,
    ) -> Result<Self, Box<(EnvOf<W>, RloxError)>> {
        if let Err(error) = how.check_in(&env) {
            return Err(Box::new((env, error)));
        }
        // The environments are sent to the thread once it runs. If they were given to it before, they would
        // be dropped if it could not be started.
        let (give, given) = sync_channel(1);
        let (orders, ordered) = sync_channel::<()>(1);
        let (hand_over, rollouts) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let work = move || {
            // These ends of the channels are dropped when the work ends, also if it panics. A learner that
            // waits for a rollout then gets an error.
            let (mut ordered, hand_over) = (ordered, hand_over);
            let mut env = given.recv().ok()?;
            let (ordered, hand_over, envs) = (&mut ordered, &hand_over, &mut env);
            within(&mut move || {
                while ordered.recv().is_ok() {
                    let rollout = match collect::<W, _>(envs, &mut *policy, how, &stopped) {
                        Ok(None) => break,
                        Ok(Some(rollout)) => Ok(rollout),
                        Err(error) => Err(error),
                    };
                    if hand_over.send(rollout).is_err() {
                        break;
                    }
                }
            });
            Some(env)
        };
        let thread = match Builder::new().name("rlox-collector".into()).spawn(work) {
            Ok(thread) => thread,
            Err(error) => {
                let problem = format!("no thread to collect in: {error}");
                return Err(Box::new((env, RloxError::InvalidState(problem))));
            }
        };
        if let Err(SendError(env)) = give.send(env) {
            return Err(Box::new((env, closed())));
        }
        Ok(Self {
            orders: Some(orders),
            rollouts,
            in_flight: false,
            stop,
            thread: Some(thread),
            left: None,
        })
    }

    /// Begins the next rollout; the one before must have been taken.
    pub fn start(&mut self) -> Result<(), RloxError> {
        if self.in_flight {
            return Err(RloxError::InvalidState(
                "start while a rollout is under way; take() it first".into(),
            ));
        }
        match self.orders.as_ref().map(|orders| orders.send(())) {
            Some(Ok(())) => {
                self.in_flight = true;
                Ok(())
            }
            _ => Err(closed()),
        }
    }

    /// Waits up to `patience` for the rollout under way; `None` if it is not ready.
    ///
    /// After an error the collector is ready to start again.
    pub fn take_timeout(&mut self, patience: Duration) -> Result<Option<Rollout>, CollectError<E>> {
        if !self.in_flight {
            return Err(CollectError::Core(match self.orders {
                Some(_) => {
                    RloxError::InvalidState("take without a rollout under way; start() one".into())
                }
                None => closed(),
            }));
        }
        let result = match self.rollouts.recv_timeout(patience) {
            Ok(result) => result.map(Some),
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                self.orders = None;
                Err(closed().into())
            }
        };
        self.in_flight = false;
        result
    }

    /// Asks the thread to end after the step that it is in, and returns at once.
    pub fn stop(&mut self) {
        self.stop.store(true, Relaxed);
        self.orders = None;
        self.in_flight = false;
    }

    /// To be called after [`stop`](Self::stop): waits up to `patience` for the thread's work to end, and says
    /// whether it has.
    pub fn wait_timeout(&mut self, patience: Duration) -> bool {
        matches!(
            self.rollouts.recv_timeout(patience),
            Err(RecvTimeoutError::Disconnected)
        )
    }

    /// Whether there is a thread that has not ended yet.
    pub fn is_alive(&self) -> bool {
        (self.thread.as_ref()).is_some_and(|thread| !thread.is_finished())
    }

    /// Whether the caller is the collector's own thread, which must not wait: it would wait for itself.
    pub fn is_this_thread(&self) -> bool {
        (self.thread.as_ref()).is_some_and(|other| other.thread().id() == thread::current().id())
    }

    /// To be called after the thread's work has ended: waits until the system has no such thread any more.
    pub fn settle(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.left = Some(thread.join().ok().flatten());
        }
    }

    /// To be called after the thread's work has ended: the environments, or `Some(None)` if the thread
    /// panicked. None at a second call, since the first one has taken them.
    pub fn join(&mut self) -> Option<Option<EnvOf<W>>> {
        self.settle();
        self.left.take()
    }
}

impl<W: PipelineWiring, E> Drop for AsyncCollector<W, E> {
    /// Tells the thread to end, and does not wait for it: its policy may just then wait for what the caller
    /// holds, Python's interpreter for one, and neither would go on.
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

fn closed() -> RloxError {
    RloxError::InvalidState("the collector is closed".into())
}
