//! Rollouts collected by a thread in the background, while the learner learns.
//!
//! The hand-over is a protocol of two steps and no more, so that the same seed gives the same
//! rollouts however the threads are scheduled: [`AsyncCollector::start`] begins a rollout, with the
//! policy as it is at that moment; [`AsyncCollector::take_timeout`] hands it over. Between the two
//! the policy must not change, and the collector never runs ahead.

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

/// The thread that collects, and the two channels to it.
pub struct AsyncCollector<W: PipelineWiring, E> {
    /// Gone once the collector is to end.
    orders: Option<SyncSender<()>>,
    rollouts: Receiver<Result<Rollout, CollectError<E>>>,
    in_flight: bool,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<EnvOf<W>>>>,
    /// What a thread that is gone has left: the environments, none if it panicked.
    left: Option<Option<EnvOf<W>>>,
}

impl<W: PipelineWiring, E: Send + 'static> AsyncCollector<W, E> {
    /// A collector that waits for its first order, or the environments and why there is none.
    ///
    /// `within` is called once in the new thread with all of its work, to be run inside whatever the
    /// policy needs to live there.
    pub fn new(
        env: EnvOf<W>,
        mut policy: Box<dyn Policy<Error = E>>,
        how: Collect,
        within: impl FnOnce(&mut (dyn FnMut() + Send)) + Send + 'static,
    ) -> Result<Self, Box<(EnvOf<W>, RloxError)>> {
        if let Err(error) = how.check_in(&env) {
            return Err(Box::new((env, error)));
        }
        // They follow once there is a thread: what it is started with goes if it does not start.
        let (give, given) = sync_channel(1);
        let (orders, ordered) = sync_channel::<()>(1);
        let (hand_over, rollouts) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let work = move || {
            // Both ends close when the work ends, however it ends: the learner then wakes up.
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

    /// Asks the thread to end, after the step it is in; does not wait.
    pub fn stop(&mut self) {
        self.stop.store(true, Relaxed);
        self.orders = None;
        self.in_flight = false;
    }

    /// After [`stop`](Self::stop): waits up to `patience` for the thread's work to end.
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

    /// Whether this is the collector's own thread, which would wait for itself.
    pub fn is_this_thread(&self) -> bool {
        (self.thread.as_ref()).is_some_and(|other| other.thread().id() == thread::current().id())
    }

    /// After the work has ended: waits until the thread is gone.
    pub fn settle(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.left = Some(thread.join().ok().flatten());
        }
    }

    /// After the work has ended: the environments, once; `Some(None)` if the thread panicked.
    pub fn join(&mut self) -> Option<Option<EnvOf<W>>> {
        self.settle();
        self.left.take()
    }
}

impl<W: PipelineWiring, E> Drop for AsyncCollector<W, E> {
    /// Lets the thread end by itself: to wait here could wait for a policy that waits for us.
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

fn closed() -> RloxError {
    RloxError::InvalidState("the collector is closed".into())
}
