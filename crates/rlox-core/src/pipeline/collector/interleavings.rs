//! Beliefs about the hand-over between a collector and its thread. Loom tries each in every interleaving of
//! the threads, except those in which threads that could go on are made to wait more than a few times.
//! A thread that would wait for ever is found, too.
//!
//! The collector is the one that ships. Its channels and threads are those of `sync::model`, which loom
//! controls.
#![allow(clippy::unwrap_used)]

use std::panic::resume_unwind;
use std::sync::PoisonError;
use std::time::Duration;

use loom::sync::Mutex;

use super::{AsyncCollector, Collect, CollectError, Policy, Rollout, closed};
use crate::env::spaces::Space;
use crate::pipeline::EnvOf;
use crate::pipeline::rollout::{ActionBatch, Decision};
use crate::sync::Arc;
use crate::sync::thread::yield_now;
use crate::wiring::Shipped;

const AT_ONCE: Duration = Duration::ZERO;
const SOON: Duration = Duration::from_secs(1);
const N_ENVS: usize = 1;

/// What the policy does when it is asked for the second time.
#[derive(Clone, Copy)]
enum Second {
    Acts,
    Fails,
    Panics,
}

/// Numbers its decisions from 1; the number is the log-probability.
struct Counts(f32, Second);

impl Policy for Counts {
    type Error = &'static str;

    fn act(&mut self, _obs: &[f32], n: usize) -> Result<Decision, Self::Error> {
        self.0 += 1.0;
        match self.1 {
            Second::Fails if self.0 == 2.0 => return Err("no idea"),
            Second::Panics if self.0 == 2.0 => resume_unwind(Box::new("wild")),
            _ => {}
        }
        Ok(Decision {
            actions: ActionBatch::Discrete(vec![1; n]),
            log_probs: vec![self.0; n],
            values: vec![0.0; n],
        })
    }

    fn values(&mut self, _obs: &[f32], n: usize) -> Result<Vec<f32>, Self::Error> {
        Ok(vec![0.0; n])
    }
}

/// How often a thread that could go on is made to wait, unless `LOOM_MAX_PREEMPTIONS` says otherwise.
/// Each time more takes some four times as long.
const PREEMPTIONS: usize = 3;

fn every(belief: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(PREEMPTIONS));
    model.check(belief);
}

type Collector = AsyncCollector<Shipped, &'static str>;
type Taken = Result<Option<Rollout>, CollectError<&'static str>>;

fn made(
    second: Second,
    n_steps: usize,
    within: impl FnOnce(&mut (dyn FnMut() + Send)) + Send + 'static,
) -> Collector {
    let env = EnvOf::<Shipped>::new("CartPole-v1", N_ENVS, 0).unwrap();
    assert!(matches!(env.action_space(), Space::Discrete(2)));
    let how = Collect {
        n_steps,
        gamma: 0.9,
        gae_lambda: 0.9,
    };
    let policy = Box::new(Counts(0.0, second));
    let made = AsyncCollector::new(env, policy, how, within);
    made.map_err(|refused| refused.1).unwrap()
}

fn collector(second: Second, n_steps: usize) -> Collector {
    made(second, n_steps, |work| work())
}

/// The numbers of the decisions in what was taken.
fn decisions(taken: Taken) -> Result<Vec<f32>, CollectError<&'static str>> {
    taken.map(|rollout| rollout.unwrap().log_probs)
}

/// Ends it, as the binding does, and says what is left: `Some(None)` if the thread panicked.
fn end(mut collector: Collector) -> Option<Option<usize>> {
    collector.stop();
    while !collector.wait_timeout(SOON) {}
    let left = collector.join();
    assert!(!collector.is_alive());
    assert!(collector.join().is_none(), "they come back once");
    left.map(|env| env.map(|env| env.n_envs()))
}

#[test]
fn each_rollout_that_is_started_is_taken_once_and_in_order() {
    every(|| {
        let mut collector = collector(Second::Acts, 2);
        for first in [1.0, 3.0, 5.0] {
            collector.start().unwrap();
            assert!(collector.start().is_err(), "one at a time");
            let taken = decisions(collector.take_timeout(SOON)).unwrap();
            assert_eq!(taken, [first, first + 1.0]);
            assert!(collector.take_timeout(AT_ONCE).is_err(), "none is started");
        }
        assert_eq!(end(collector), Some(Some(N_ENVS)));
    });
}

#[test]
fn one_that_was_not_ready_is_not_lost() {
    every(|| {
        let mut collector = collector(Second::Acts, 1);
        for number in [1.0, 2.0] {
            collector.start().unwrap();
            let taken = loop {
                match collector.take_timeout(AT_ONCE) {
                    Ok(None) => yield_now(),
                    taken => break decisions(taken).unwrap(),
                }
            };
            assert_eq!(taken, [number]);
        }
        assert_eq!(end(collector), Some(Some(N_ENVS)));
    });
}

#[test]
fn stopped_at_any_moment_it_gives_the_environments_back() {
    for started in [false, true] {
        every(move || {
            let mut collector = collector(Second::Acts, 2);
            if started {
                collector.start().unwrap();
            }
            assert_eq!(end(collector), Some(Some(N_ENVS)));
        });
    }
}

#[test]
fn dropped_at_any_moment_its_thread_ends() {
    for started in [false, true] {
        every(move || {
            let mut collector = collector(Second::Acts, 2);
            if started {
                collector.start().unwrap();
            }
            drop(collector);
        });
    }
}

#[test]
fn an_error_is_taken_in_the_place_of_its_rollout_and_the_next_one_follows() {
    every(|| {
        let mut collector = collector(Second::Fails, 1);
        for expected in [
            Ok(vec![1.0]),
            Err(CollectError::Policy("no idea")),
            Ok(vec![3.0]),
        ] {
            collector.start().unwrap();
            assert_eq!(decisions(collector.take_timeout(SOON)), expected);
        }
        assert_eq!(end(collector), Some(Some(N_ENVS)));
    });
}

#[test]
fn a_thread_that_panics_wakes_who_waits_and_all_that_follows_is_refused() {
    every(|| {
        let mut collector = collector(Second::Panics, 1);
        collector.start().unwrap();
        assert_eq!(decisions(collector.take_timeout(SOON)), Ok(vec![1.0]));
        collector.start().unwrap();
        let refused = Err(CollectError::Core(closed()));
        assert_eq!(decisions(collector.take_timeout(SOON)), refused);
        assert_eq!(collector.start(), Err(closed()));
        assert_eq!(decisions(collector.take_timeout(SOON)), refused);
        assert_eq!(end(collector), Some(None), "the environments are lost");
    });
}

#[test]
fn a_thread_that_cannot_work_is_a_closed_collector_and_the_environments_come_back() {
    every(|| {
        let mut collector = made(Second::Acts, 1, |_work| {});
        // The thread may end before the order, or after it.
        let refused = match collector.start() {
            Ok(()) => decisions(collector.take_timeout(SOON)),
            Err(error) => Err(error.into()),
        };
        assert_eq!(refused, Err(CollectError::Core(closed())));
        assert_eq!(end(collector), Some(Some(N_ENVS)));
    });
}

#[test]
fn who_waits_for_a_rollout_is_told_when_another_thread_closes() {
    every(|| {
        let mut collector = collector(Second::Acts, 1);
        collector.start().unwrap();
        let shared = Arc::new(Mutex::new(collector));
        let lock = |shared: &Mutex<Collector>, f: &mut dyn FnMut(&mut Collector) -> bool| {
            f(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let takes = Arc::clone(&shared);
        let thread = loom::thread::spawn(move || {
            let mut told = None;
            while !lock(&takes, &mut |collector| {
                told = collector.take_timeout(AT_ONCE).transpose();
                told.is_some()
            }) {
                yield_now();
            }
            told.unwrap().map(|rollout| rollout.log_probs)
        });
        lock(&shared, &mut |collector| {
            collector.stop();
            true
        });
        while !lock(&shared, &mut |collector| collector.wait_timeout(AT_ONCE)) {
            yield_now();
        }
        let mut left = None;
        lock(&shared, &mut |collector| {
            left = collector.join().flatten();
            true
        });
        assert_eq!(left.unwrap().n_envs(), N_ENVS);
        let taken = thread.join().unwrap();
        assert!(taken == Ok(vec![1.0]) || taken == Err(CollectError::Core(closed())));
    });
}
