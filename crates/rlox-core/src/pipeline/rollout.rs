//! Collects one rollout step by step: `n_steps` of a policy in all environments, with advantages. The
//! policy is any [`Policy`], such as Python's callables; `fused` is faster for a multilayer perceptron.

use super::rollout_gae::{self, Steps};
use super::{EnvOf, PipelineWiring, current_obs};
use crate::env::spaces::{Actions, Space};
use crate::env::stepping::{Finals, Stepping};
use crate::env::vec_env::{Reset, VecEnv};
use crate::error::{RloxError, check_len};
use crate::memory::{fits, reserve, reserved};
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Actions of many environments, owned.
#[derive(Debug, Clone, PartialEq)]
pub enum ActionBatch {
    /// Indices, `[n_envs]`.
    Discrete(Vec<i64>),
    /// Numbers, `[n_envs, act_dim]`.
    Continuous(Vec<f32>),
}

impl ActionBatch {
    fn view(&self) -> Actions<'_> {
        match self {
            Self::Discrete(actions) => Actions::Discrete(actions),
            Self::Continuous(actions) => Actions::Continuous(actions),
        }
    }

    /// The actions clipped to the bounds of `space`; `clipped` is memory for them.
    ///
    /// # Errors
    /// If they are not actions of `n_envs` environments, one is not finite, or there is no memory.
    fn within<'a>(
        &'a self,
        space: &Space,
        n_envs: usize,
        clipped: &'a mut Vec<f32>,
    ) -> Result<Actions<'a>, RloxError> {
        let (Self::Continuous(actions), Space::Box { low, high }) = (self, space) else {
            return Ok(self.view()); // the environments check the kind of actions
        };
        self.view().check(space, n_envs)?;
        clipped.clear();
        reserve(clipped, actions.len())?;
        for action in actions.chunks_exact(low.len()) {
            let bounded = action.iter().zip(low.iter().zip(high));
            clipped.extend(bounded.map(|(x, (&low, &high))| x.clamp(low, high)));
        }
        Ok(Actions::Continuous(clipped))
    }

    fn append(&mut self, more: &mut Self) {
        match (self, more) {
            (Self::Discrete(all), Self::Discrete(more)) => all.append(more),
            (Self::Continuous(all), Self::Continuous(more)) => all.append(more),
            // Never: the environments refuse a batch of the other kind before.
            _ => {}
        }
    }
}

/// What a policy returns for `n` observations.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Actions of `n` environments.
    pub actions: ActionBatch,
    /// Their log-probabilities `[n]`.
    pub log_probs: Vec<f32>,
    /// Values of the observations `[n]`.
    pub values: Vec<f32>,
}

/// A policy that acts in the environments.
pub trait Policy: Send {
    /// The error of a policy that fails.
    type Error: Send;

    /// Actions, log-probabilities and values for `obs`, `[n, obs_dim]`.
    fn act(&mut self, obs: &[f32], n: usize) -> Result<Decision, Self::Error>;

    /// The values, `[n]`, of `obs`, `[n, obs_dim]`.
    fn values(&mut self, obs: &[f32], n: usize) -> Result<Vec<f32>, Self::Error>;
}

/// The settings of a rollout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Collect {
    /// Steps of each environment in a rollout.
    pub n_steps: usize,
    /// The discount factor.
    pub gamma: f64,
    /// GAE's lambda, which trades bias for variance of the advantages.
    pub gae_lambda: f64,
}

impl Collect {
    /// Checks that the settings are in range.
    pub fn check(&self) -> Result<(), RloxError> {
        if self.n_steps == 0 || self.n_steps > u32::MAX as usize {
            let problem = format!("is {}, expected 1 to {}", self.n_steps, u32::MAX);
            return Err(RloxError::argument("n_steps", problem));
        }
        for (argument, value) in [("gamma", self.gamma), ("gae_lambda", self.gae_lambda)] {
            if !(0.0..=1.0).contains(&value) {
                let problem = format!("is {value}, expected a number in [0, 1]");
                return Err(RloxError::argument(argument, problem));
            }
        }
        Ok(())
    }

    /// [`Self::check`], and checks that there is memory for the transitions of `env`.
    pub fn check_in<S: Stepping>(&self, env: &VecEnv<S>) -> Result<(), RloxError> {
        self.check_rows(env.n_envs(), bytes_per_transition(env))
    }

    /// [`Self::check`], and checks that there is memory for transitions of so many bytes in `n_envs`
    /// environments.
    pub(super) fn check_rows(&self, n_envs: usize, bytes: usize) -> Result<(), RloxError> {
        self.check()?;
        let rows = self.n_steps.checked_mul(n_envs);
        if rows.is_some_and(|rows| fits::<u8>(rows, bytes)) {
            return Ok(());
        }
        let problem = format!(
            "is {}, and so many steps of {n_envs} environments do not fit into memory; choose a \
             smaller one",
            self.n_steps
        );
        Err(RloxError::argument("n_steps", problem))
    }
}

/// The bytes that a rollout holds for each transition, at least.
fn bytes_per_transition<S: Stepping>(env: &VecEnv<S>) -> usize {
    let action = match env.action_space() {
        Space::Discrete(_) => size_of::<i64>(),
        Space::Box { low, .. } => low.len() * size_of::<f32>(),
    };
    let columns = 4 * size_of::<f32>(); // log-probabilities, values, advantages, returns
    env.observation_space().dim() * size_of::<f32>() + action + columns
}

/// Why there is no rollout.
#[derive(Debug, Clone, PartialEq)]
pub enum CollectError<E> {
    /// The environments or the advantages refused what they were given.
    Core(RloxError),
    /// The policy failed.
    Policy(E),
}

impl<E> From<RloxError> for CollectError<E> {
    fn from(error: RloxError) -> Self {
        Self::Core(error)
    }
}

/// A rollout of `n_steps` of `n_envs` environments, step-major: step t of environment e is element
/// `t * n_envs + e` of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Rollout {
    /// Observations acted on, `[n_steps, n_envs, obs_dim]`.
    pub obs: Vec<f32>,
    /// Actions, `[n_steps, n_envs]`, or `[n_steps, n_envs, act_dim]` before clipping.
    pub actions: ActionBatch,
    /// Log-probabilities of the actions.
    pub log_probs: Vec<f32>,
    /// Values of the observations.
    pub values: Vec<f64>,
    /// Rewards as the environments gave them.
    pub rewards: Vec<f64>,
    /// Whether the step ended in a terminal state.
    pub terminated: Vec<bool>,
    /// Whether the step reached the time limit.
    pub truncated: Vec<bool>,
    /// Advantages.
    pub advantages: Vec<f64>,
    /// Targets of the value function.
    pub returns: Vec<f64>,
}

impl Rollout {
    fn new<S: Stepping>(env: &VecEnv<S>, n_steps: usize) -> Result<Self, RloxError> {
        let total = n_steps * env.n_envs();
        Ok(Self {
            obs: reserved(total * env.observation_space().dim())?,
            actions: match env.action_space() {
                Space::Discrete(_) => ActionBatch::Discrete(reserved(total)?),
                Space::Box { low, .. } => ActionBatch::Continuous(reserved(total * low.len())?),
            },
            log_probs: reserved(total)?,
            values: reserved(total)?,
            rewards: reserved(total)?,
            terminated: reserved(total)?,
            truncated: reserved(total)?,
            advantages: Vec::new(),
            returns: Vec::new(),
        })
    }
}

/// Collects a rollout from the present states of the environments; the first time, they are reset.
/// Returns None once `stop` is set.
///
/// The environments get the actions clipped to their space. The rollout has them as the policy drew
/// them, which is what the log-probabilities belong to.
///
/// A time limit is not part of the task, so a truncated episode is bootstrapped: `gamma *
/// V(final_obs)`, the value of what would have followed, is added to the reward of its last step,
/// before GAE ends the episode there.
pub fn collect<W: PipelineWiring, P: Policy + ?Sized>(
    env: &mut EnvOf<W>,
    policy: &mut P,
    how: Collect,
    stop: &AtomicBool,
) -> Result<Option<Rollout>, CollectError<P::Error>> {
    how.check_in(env)?;
    let n_envs = env.n_envs();
    if !env.is_started() {
        env.reset(Reset::default())?;
    }
    let mut rollout = Rollout::new(env, how.n_steps)?;
    let mut rewards = reserved(how.n_steps * n_envs)?;
    let (space, mut clipped) = (env.action_space().clone(), Vec::new());
    let mut current = Vec::new();
    current_obs::refresh::<W, _>(&mut current, env.obs());

    for _ in 0..how.n_steps {
        if stop.load(Relaxed) {
            return Ok(None);
        }
        let mut decision = policy.act(&current, n_envs).map_err(CollectError::Policy)?;
        check_len("log_probs", decision.log_probs.len(), n_envs)?;
        check_len("values", decision.values.len(), n_envs)?;
        let actions = decision.actions.within(&space, n_envs, &mut clipped)?;
        let batch = env.step(actions)?;

        rollout.obs.extend_from_slice(&current);
        rollout.actions.append(&mut decision.actions);
        rollout.log_probs.append(&mut decision.log_probs);
        rollout
            .values
            .extend(decision.values.iter().map(|&v| f64::from(v)));
        rollout.rewards.extend_from_slice(&batch.rewards);
        rollout.terminated.extend_from_slice(&batch.terminated);
        rollout.truncated.extend_from_slice(&batch.truncated);

        let step_start = rewards.len();
        rewards.extend_from_slice(&batch.rewards);
        let (cut, last_obs) = cut_short(&batch.terminated, &batch.final_obs);
        current_obs::refresh::<W, _>(&mut current, &batch.obs);
        if !cut.is_empty() {
            for (e, value) in cut.iter().zip(values(policy, &last_obs, cut.len())?) {
                rewards[step_start + e] += how.gamma * value;
            }
        }
    }

    let mut dones = reserved(rewards.len())?;
    let ends = rollout.terminated.iter().zip(&rollout.truncated);
    dones.extend(ends.map(|(terminated, truncated)| f64::from(terminated | truncated)));
    let steps = Steps {
        rewards: &rewards,
        values: &rollout.values,
        dones: &dones,
        last_values: &values(policy, &current, n_envs)?,
    };
    (rollout.advantages, rollout.returns) =
        rollout_gae::advantages_and_returns::<W>(steps, how.gamma, how.gae_lambda)?;
    Ok(Some(rollout))
}

/// The environments whose episodes were truncated and not terminated, and their last observations.
fn cut_short(terminated: &[bool], final_obs: &Finals) -> (Vec<usize>, Vec<f32>) {
    let (mut envs, mut obs) = (Vec::new(), Vec::new());
    for (e, last) in final_obs.iter().filter(|&(e, _)| !terminated[e]) {
        envs.push(e);
        obs.extend_from_slice(last);
    }
    (envs, obs)
}

fn values<P: Policy + ?Sized>(
    policy: &mut P,
    obs: &[f32],
    n: usize,
) -> Result<Vec<f64>, CollectError<P::Error>> {
    let values = policy.values(obs, n).map_err(CollectError::Policy)?;
    check_len("values", values.len(), n)?;
    Ok(values.into_iter().map(f64::from).collect())
}
