//! The background collector for Python: a policy of Python callables, rollouts as NumPy arrays.

mod policy;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rlox_core::pipeline::collector::AsyncCollector as CoreCollector;
use rlox_core::pipeline::rollout::{ActionBatch, Collect, CollectError, Rollout};
use rlox_core::pool;
use rlox_core::switchboard::{Chosen, VecEnv as CoreVecEnv};

use crate::arrays::{self, made};
use crate::crossing::{COLLECTOR_START, COLLECTOR_TAKE, Crossing};
use crate::env::VecEnv;
use crate::errors::to_py;
use crate::lock::{self, Busy, left_behind, process};
use policy::PyPolicy;

/// How long to wait at a time before Python may handle a signal.
const SLICE: Duration = Duration::from_millis(50);
/// How long the exit of the interpreter waits for a policy that does not return.
const EXIT_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Shared {
    collector: Mutex<CoreCollector<Chosen, PyErr>>,
    /// Whether the thread's work has ended while the thread itself was not yet waited for.
    ending: Arc<AtomicBool>,
}

/// Collectors whose threads may still call Python, also those that Python has dropped, and all that
/// somebody has: in a process that is forked off the last of each is here, and is never let go of.
static LIVE: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());

/// A thread that collects rollouts from native environments while the caller learns.
///
/// `start()` begins a rollout, `take()` waits for it and hands it over; in between the policy must
/// not change, so that the same seed gives the same rollouts. The environments belong to the
/// collector until `close()`, which the exit of a `with` block calls. One that is dropped without it
/// gives them back, too, at their next use, which waits for the step that its thread is in.
#[pyclass(module = "rlox._core", frozen)]
pub struct AsyncCollector {
    inner: Arc<Shared>,
    env: Py<VecEnv>,
    n_steps: usize,
    /// The process that it was made in: in one that was forked off, its thread does not exist.
    process: u64,
    closed: AtomicBool,
}

#[pymethods]
impl AsyncCollector {
    /// `act(obs) -> (actions, log_probs, values)` and `value(obs) -> values`, with `obs` float32
    /// `[n, obs_dim]`, `actions` as the environments take them, the others float32 `[n]`. Both are
    /// called in the collector's thread; `value` also with the last observations of truncated
    /// episodes, whose reward gets `gamma * value` before GAE.
    ///
    /// Raises ValueError for a range, or for more steps than there is memory for; RuntimeError if
    /// the environments are in use, or no thread can be started. They stay with the caller then.
    #[new]
    #[pyo3(signature = (env, act, value, n_steps, gamma=0.99, gae_lambda=0.95))]
    fn new(
        env: Bound<'_, VecEnv>,
        act: Py<PyAny>,
        value: Py<PyAny>,
        n_steps: usize,
        gamma: f64,
        gae_lambda: f64,
    ) -> PyResult<Self> {
        let how = Collect {
            n_steps,
            gamma,
            gae_lambda,
        };
        how.check().map_err(to_py)?;
        let policy = Box::new(PyPolicy {
            act,
            value,
            action_space: env.get().action_space.clone(),
        });
        let py = env.py();
        let envs = env.get().envs.lend(py)?;
        // One thread state for the whole life of the thread: thread-locals of Python code last. A
        // thread that starts takes a lock of Rust's, and to make its state one of Python's, without
        // the interpreter; a child that is forked off meanwhile has them locked for ever (Python's
        // before 3.12). So a fork waits until that is done.
        let (starts, started) = channel::<()>();
        let ending = Arc::new(AtomicBool::new(false));
        let ends = Ends(Arc::clone(&ending));
        let within = move |work: &mut (dyn FnMut() + Send)| {
            Python::try_attach(|py| {
                let _ends = ends;
                drop(starts);
                py.detach(work);
            });
        };
        let busy = Busy::new(py);
        let inner = match CoreCollector::new(envs, policy, how, within) {
            Ok(inner) => inner,
            Err(refused) => {
                let (envs, error) = *refused;
                env.get().envs.restore(py, Some(envs))?;
                return Err(to_py(error));
            }
        };
        let _nothing_is_sent = py.detach(move || started.recv());
        drop(busy);
        let inner = Arc::new(Shared {
            collector: Mutex::new(inner),
            ending,
        });
        let mut live = live();
        let (mut needed, ended): (Vec<_>, Vec<_>) = live.drain(..).partition(may_be_needed);
        needed.push(Arc::clone(&inner));
        *live = needed;
        drop(live); // first: to drop what Python gave may run anything of Python's
        py.detach(|| settle(&ended));
        drop(ended);
        Ok(Self {
            inner,
            env: env.unbind(),
            n_steps,
            process: process(),
            closed: AtomicBool::new(false),
        })
    }

    /// Begin the next rollout, with the policy as it is now.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let _crossing = COLLECTOR_START.enter(0);
        self.is_here()?;
        py.detach(|| lock(&self.inner).start()).map_err(to_py)
    }

    /// Wait for the rollout under way and return it, step-major.
    ///
    /// `obs` float32 `[n_steps, n_envs, obs_dim]`; `actions` int64 `[n_steps, n_envs]` or float32
    /// `[n_steps, n_envs, act_dim]`, not clipped; `log_probs` float32; `values`, `rewards`, `advantages`,
    /// `returns` float64; `terminated`, `truncated` bool (all `[n_steps, n_envs]`). `rewards` are
    /// the environments' own. An exception of the policy is raised here, and `start()` may follow.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut crossing = COLLECTOR_TAKE.enter(0);
        self.is_here()?;
        not_from_within(py, &self.inner)?;
        let rollout = loop {
            let taken = crossing.excluding(|| py.detach(|| lock(&self.inner).take_timeout(SLICE)));
            match taken {
                Ok(Some(rollout)) => break rollout,
                Ok(None) => py.check_signals()?,
                Err(CollectError::Policy(error)) => return Err(error),
                Err(CollectError::Core(error)) => return Err(to_py(error)),
            }
        };
        let shape = (self.n_steps, self.env.get().n_envs, self.env.get().obs_dim);
        to_dict(py, rollout, shape, &mut crossing)
    }

    /// End the thread and give the environments back; waits for the step it is in. Idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_here().is_err() {
            return Ok(()); // there is nothing to end
        }
        not_from_within(py, &self.inner)?;
        py.detach(|| lock(&self.inner).stop());
        while !py.detach(|| lock(&self.inner).wait_timeout(SLICE)) {
            py.check_signals()?;
        }
        if let Some(envs) = py.detach(|| lock(&self.inner).join()) {
            self.closed.store(true, Relaxed);
            self.env.get().envs.restore(py, envs)?;
        }
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}

impl AsyncCollector {
    /// An error in a process that was forked off.
    fn is_here(&self) -> PyResult<()> {
        if self.process == process() {
            return Ok(());
        }
        Err(left_behind("the thread of this collector was at work"))
    }
}

/// Refuses a call from the thread of `collector`, that is from its policy: that thread would wait for
/// itself.
fn not_from_within(py: Python<'_>, collector: &Shared) -> PyResult<()> {
    if !py.detach(|| lock(collector).is_this_thread()) {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "the collector's policy cannot wait for the collector; call this from another thread",
    ))
}

/// The environments of a collector that nobody has any more, when its thread has ended; None if it
/// panicked. Waits for the step that it is in, within limits.
pub(crate) fn ended(py: Python<'_>, collector: &Shared) -> PyResult<Option<CoreVecEnv>> {
    not_from_within(py, collector)?;
    let deadline = Instant::now() + EXIT_PATIENCE;
    while !py.detach(|| lock(collector).wait_timeout(SLICE)) {
        py.check_signals()?;
        if Instant::now() > deadline {
            return Err(PyRuntimeError::new_err(format!(
                "an AsyncCollector that was dropped has these environments, and its policy has not \
                 returned for {} seconds",
                EXIT_PATIENCE.as_secs()
            )));
        }
    }
    Ok(py.detach(|| lock(collector).join()).flatten())
}

impl Drop for AsyncCollector {
    /// Tells the thread to end after the step that it is in, and does not wait: the thread may be waiting
    /// for the interpreter, which the caller holds.
    fn drop(&mut self) {
        if self.is_here().is_err() || self.closed.load(Relaxed) {
            return;
        }
        // Nobody else has it: whoever waits for its thread keeps the collector.
        if let Ok(mut collector) = self.inner.collector.try_lock() {
            collector.stop();
        }
        Python::attach(|py| {
            let envs = &self.env.get().envs;
            envs.expect_from(py, Arc::clone(&self.inner));
        });
    }
}

/// Ends every collector's thread, within limits: a policy may never return.
#[pyfunction]
pub(crate) fn close_all(py: Python<'_>) {
    let live = std::mem::take(&mut *live());
    let deadline = Instant::now() + EXIT_PATIENCE;
    py.detach(|| {
        for collector in &live {
            lock(collector).stop();
        }
        for collector in &live {
            while !lock(collector).wait_timeout(SLICE) && Instant::now() < deadline {}
        }
    });
}

/// Before a fork: also waits until threads that end are gone. They take a lock of Rust's, which a
/// child that is forked off meanwhile has locked for ever, so that none of its own threads ends.
#[pyfunction]
pub(crate) fn before_fork(py: Python<'_>) {
    lock::before_fork(py);
    loop {
        lock::wait_for_what_is_short(py);
        let ending: Vec<_> = live()
            .iter()
            .filter(|of| of.ending.swap(false, Relaxed))
            .cloned()
            .collect();
        if ending.is_empty() {
            return;
        }
        py.detach(|| settle(&ending));
    }
}

/// After it, in the process that forked.
#[pyfunction]
pub(crate) fn after_fork() {
    lock::after_fork();
}

/// In a process that was forked off: none of the threads of the one before came along.
#[pyfunction]
pub(crate) fn forked(py: Python<'_>) {
    pool::forked();
    lock::forked();
    arrays::forked(py);
    // Neither joined nor waited for; that would be for ever. Nor let go of: a thread of this process
    // may have the number of one of those.
    std::mem::forget(std::mem::take(&mut *live()));
}

fn live() -> MutexGuard<'static, Vec<Arc<Shared>>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether Python still has the collector, or its thread is at work.
fn may_be_needed(collector: &Arc<Shared>) -> bool {
    Arc::strong_count(collector) > 1 || lock(collector).is_alive()
}

/// Waits until the threads of collectors whose work has ended are gone.
fn settle(ended: &[Arc<Shared>]) {
    for collector in ended {
        lock(collector).settle();
    }
}

/// Notes that a thread ends. Dropped with the interpreter held, so that no fork is under way.
struct Ends(Arc<AtomicBool>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn lock(collector: &Shared) -> MutexGuard<'_, CoreCollector<Chosen, PyErr>> {
    collector
        .collector
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn to_dict<'py>(
    py: Python<'py>,
    rollout: Rollout,
    (n_steps, n_envs, obs_dim): (usize, usize, usize),
    crossing: &mut Crossing,
) -> PyResult<Bound<'py, PyDict>> {
    let mut bytes = 0;
    let dict = made::dict(py)?;
    let mut put = |name: &str, array: Bound<'py, PyAny>| {
        bytes += array.getattr("nbytes")?.extract::<usize>()?;
        dict.set_item(name, array)
    };
    let (steps, whole) = ([n_steps, n_envs], [n_steps, n_envs, obs_dim]);
    put("obs", made::owned(py, rollout.obs, whole)?)?;
    let actions = match rollout.actions {
        ActionBatch::Discrete(actions) => made::owned(py, actions, steps)?,
        ActionBatch::Continuous(actions) => {
            let act_dim = actions.len() / (n_steps * n_envs);
            made::owned(py, actions, [n_steps, n_envs, act_dim])?
        }
    };
    put("actions", actions)?;
    put("log_probs", made::owned(py, rollout.log_probs, steps)?)?;
    put("values", made::owned(py, rollout.values, steps)?)?;
    put("rewards", made::owned(py, rollout.rewards, steps)?)?;
    put("terminated", made::owned(py, rollout.terminated, steps)?)?;
    put("truncated", made::owned(py, rollout.truncated, steps)?)?;
    put("advantages", made::owned(py, rollout.advantages, steps)?)?;
    put("returns", made::owned(py, rollout.returns, steps)?)?;
    crossing.add_bytes(bytes);
    Ok(dict)
}
