//! `AsyncCollector`: collects rollouts in a thread of its own, while Python learns. The policy is two
//! Python callables, rollouts are NumPy arrays.
//!
//! The thread calls Python, so it must end before the interpreter does, and the object must cope with
//! forks and with being dropped while the thread is at work. Most of this file is about that.

mod policy;
mod python_rollout;

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
use crate::numbers::size;
use policy::PyPolicy;
pub use python_rollout::collect_python_rollout;

/// How long to wait at a time; then Python may handle signals, such as Ctrl-C.
const SLICE: Duration = Duration::from_millis(50);
/// How long the interpreter's exit waits for a policy that does not return.
const EXIT_PATIENCE: Duration = Duration::from_secs(5);

/// A collector as its Python object and [`LIVE`] share it.
pub(crate) struct Shared {
    collector: Mutex<CoreCollector<Chosen, PyErr>>,
    /// Whether the thread's work has ended, and nobody has waited yet for the thread itself to end.
    ending: Arc<AtomicBool>,
}

/// All collectors that Python still has, and those that it has dropped while their threads may still
/// call Python. A child of a fork keeps a reference to each for ever, so that it never drops a thread
/// that it does not have.
static LIVE: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());

/// A thread that collects rollouts from native environments while the caller learns.
///
/// `start()` begins a rollout; `take()` waits for its end and returns it. Between the two the policy
/// must not change: then the same seed gives the same rollouts. The environments belong to the
/// collector until `close()`, which the end of a `with` block calls. A collector that is dropped
/// without it gives them back at their next use, which waits until its thread has ended the step that
/// it is in.
#[pyclass(module = "rlox._core", frozen)]
pub struct AsyncCollector {
    inner: Arc<Shared>,
    env: Py<VecEnv>,
    n_steps: usize,
    /// The process that it was made in. A child of a fork does not have its thread.
    process: u64,
    closed: AtomicBool,
}

#[pymethods]
impl AsyncCollector {
    /// A collector of rollouts of `n_steps` in `env`.
    ///
    /// `act(obs)` returns `(actions, log_probs, values)` and `value(obs)` returns `values`. `obs` is
    /// float32 `[n, obs_dim]`, `actions` are as the environments take them, the others are float32
    /// `[n]`. Both are called in the collector's thread. `value` is also called with the last
    /// observations of truncated episodes: `gamma * value` is added to their last reward before GAE.
    ///
    /// Raises ValueError for a number out of range or for more steps than there is memory for,
    /// RuntimeError if the environments are in use or no thread can be started. The caller keeps the
    /// environments then.
    #[new]
    #[pyo3(signature = (env, act, value, n_steps, gamma=0.99, gae_lambda=0.95))]
    fn new(
        env: Bound<'_, VecEnv>,
        act: Py<PyAny>,
        value: Py<PyAny>,
        n_steps: i128,
        gamma: f64,
        gae_lambda: f64,
    ) -> PyResult<Self> {
        let n_steps = size("n_steps", n_steps)?;
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
        // The thread attaches to Python once, so that thread-local variables of Python code last as
        // long as it.
        //
        // While a thread starts it takes a lock of Rust's standard library and, to make its thread
        // state, one of Python's, both without the GIL. In a child that is forked meanwhile they would
        // stay locked for ever (Python's before 3.12). So forks wait (`busy`) until the thread has
        // attached and dropped `starts`.
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
        drop(live); // unlocked before `ended` is dropped, which may run Python
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

    /// Begins the next rollout, with the policy as it is now.
    ///
    /// Raises RuntimeError if one is under way, or the collector is closed.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let _crossing = COLLECTOR_START.enter(0);
        self.is_here()?;
        py.detach(|| lock(&self.inner).start()).map_err(to_py)
    }

    /// Waits for the end of the rollout under way, and returns it as a dictionary of arrays.
    ///
    /// `obs` is float32 `[n_steps, n_envs, obs_dim]`; `actions` int64 `[n_steps, n_envs]` or float32
    /// `[n_steps, n_envs, act_dim]`, not clipped. All others are `[n_steps, n_envs]`: `log_probs`
    /// float32; `values`, `rewards`, `advantages`, `returns` float64; `terminated`, `truncated` bool.
    /// `rewards` are the environments' own, without the bootstrap.
    ///
    /// An exception that the policy raised is raised here; `start()` may be called again then. Raises
    /// RuntimeError if no rollout is under way.
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

    /// Ends the thread, after the step that it is in, and gives the environments back. A second call
    /// does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_here().is_err() {
            return Ok(()); // a child of a fork does not have the thread
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
    /// RuntimeError in a child of a fork, which does not have the thread.
    fn is_here(&self) -> PyResult<()> {
        if self.process == process() {
            return Ok(());
        }
        Err(left_behind("the thread of this collector was at work"))
    }
}

/// RuntimeError for a call from the collector's own thread, that is from its policy: the thread would
/// wait for itself.
fn not_from_within(py: Python<'_>, collector: &Shared) -> PyResult<()> {
    if !py.detach(|| lock(collector).is_this_thread()) {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "the collector's policy cannot wait for the collector; call this from another thread",
    ))
}

/// Waits for the end of a collector that was dropped, and returns its environments, or None if its
/// thread panicked. RuntimeError if its policy does not return within [`EXIT_PATIENCE`].
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
    /// Tells the thread to end after the step that it is in. It does not wait, since the thread may
    /// need the GIL, which the caller holds.
    fn drop(&mut self) {
        if self.is_here().is_err() || self.closed.load(Relaxed) {
            return;
        }
        // No method holds the lock now, since a method keeps a reference to this object. Whatever else
        // may hold it waits for a thread that has ended its work or was told to.
        if let Ok(mut collector) = self.inner.collector.try_lock() {
            collector.stop();
        }
        Python::attach(|py| {
            let envs = &self.env.get().envs;
            envs.expect_from(py, Arc::clone(&self.inner));
        });
    }
}

/// Ends the threads of all collectors; called at the interpreter's exit. Waits [`EXIT_PATIENCE`] at
/// most, since a policy may never return.
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

/// Called before a fork. Waits for short work, and for the end of threads whose work has ended: a
/// thread that ends takes a lock of Rust's standard library, and in a child that is forked meanwhile
/// that would stay locked, so that none of the child's threads could end.
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

/// Called after a fork in the parent.
#[pyfunction]
pub(crate) fn after_fork() {
    lock::after_fork();
}

/// Called after a fork in the child, which has none of the parent's threads.
#[pyfunction]
pub(crate) fn forked(py: Python<'_>) {
    pool::forked();
    lock::forked();
    arrays::forked(py);
    // The collectors' threads are not here: waiting for one would never end. The collectors are not
    // dropped, either, since that detaches their threads by number, which a thread of this process may
    // have by now.
    std::mem::forget(std::mem::take(&mut *live()));
}

fn live() -> MutexGuard<'static, Vec<Arc<Shared>>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether Python still has the collector, or its thread is still at work.
fn may_be_needed(collector: &Arc<Shared>) -> bool {
    Arc::strong_count(collector) > 1 || lock(collector).is_alive()
}

/// Waits for the threads of collectors whose work has ended to end.
fn settle(ended: &[Arc<Shared>]) {
    for collector in ended {
        lock(collector).settle();
    }
}

/// When dropped, at the end of a thread's work, notes that the thread is about to end. It is dropped
/// with the GIL held, so that no other thread forks just then.
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
