//! What the golden runs are held to: the baselines, put together by hand.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rlox_core::buffer::storage::Storage;
use rlox_core::buffer::sum_tree::SumTree;
use rlox_core::buffer::{Experience, ExperienceBatch, SampledBatch};
use rlox_core::env::info::MapInfo;
use rlox_core::env::members::Member;
use rlox_core::env::obs_store::{ObsStore, PerEnvObs};
use rlox_core::env::spaces::Actions;
use rlox_core::env::vec_env::VecEnv;
use rlox_core::pipeline::rollout::{ActionBatch, Collect, Decision, Policy, Rollout};
use rlox_core::training::gae::baseline::advantages;
use rlox_core::wiring::AllBefore;

pub(crate) const ACT_DIM: usize = 2;

/// Acts by a weighted sum of the observation: balances every other pole for long, swings a pendulum.
pub(crate) struct Linear;

impl Policy for Linear {
    type Error = std::convert::Infallible;

    fn act(&mut self, obs: &[f32], n: usize) -> Result<Decision, Self::Error> {
        let rows = obs.chunks_exact(obs.len() / n);
        let scores: Vec<f32> = rows
            .enumerate()
            .map(|(e, row)| match *row {
                [x, x_dot, theta, theta_dot] if e % 2 == 0 => {
                    0.04 * x + 0.08 * x_dot + theta + 0.25 * theta_dot
                }
                [_, _, theta, _] => theta,
                _ => 2.0 * row[1] - 0.5 * row[2],
            })
            .collect();
        let discrete = obs.len() == 4 * n;
        Ok(Decision {
            log_probs: scores.iter().map(|score| -score.abs()).collect(),
            values: self.values(obs, n)?,
            actions: match discrete {
                true => ActionBatch::Discrete(scores.iter().map(|&s| (s > 0.0).into()).collect()),
                false => ActionBatch::Continuous(scores),
            },
        })
    }

    fn values(&mut self, obs: &[f32], n: usize) -> Result<Vec<f32>, Self::Error> {
        let rows = obs.chunks_exact(obs.len() / n);
        Ok(rows.map(|row| row.iter().sum::<f32>() / 3.0).collect())
    }
}

/// A rollout step by step, its advantages environment by environment.
pub(crate) fn rollout(env: &mut VecEnv<Member<PerEnvObs, MapInfo>>, how: Collect) -> Rollout {
    let (n_envs, mut policy) = (env.n_envs(), Linear);
    let mut kept = Rollout {
        obs: Vec::new(),
        actions: ActionBatch::Discrete(Vec::new()),
        log_probs: Vec::new(),
        values: Vec::new(),
        rewards: Vec::new(),
        terminated: Vec::new(),
        truncated: Vec::new(),
        advantages: vec![0.0; how.n_steps * n_envs],
        returns: vec![0.0; how.n_steps * n_envs],
    };
    let (mut discrete, mut continuous) = (Vec::new(), Vec::new());
    let mut rewards = Vec::new();
    for _ in 0..how.n_steps {
        let obs = env.obs().rows().collect::<Vec<_>>().concat();
        let decision = policy.act(&obs, n_envs).unwrap();
        let step = match &decision.actions {
            ActionBatch::Discrete(actions) => {
                discrete.extend_from_slice(actions);
                env.step(Actions::Discrete(actions)).unwrap()
            }
            ActionBatch::Continuous(actions) => {
                continuous.extend_from_slice(actions);
                env.step(Actions::Continuous(actions)).unwrap()
            }
        };
        for e in 0..n_envs {
            let mut reward = step.rewards[e];
            if step.truncated[e] && !step.terminated[e] {
                let last = step.final_obs.get(e).unwrap();
                reward += how.gamma * f64::from(policy.values(last, 1).unwrap()[0]);
            }
            rewards.push(reward);
        }
        kept.obs.extend(obs);
        kept.log_probs.extend(decision.log_probs);
        kept.values
            .extend(decision.values.iter().map(|&v| f64::from(v)));
        kept.rewards.extend_from_slice(&step.rewards);
        kept.terminated.extend_from_slice(&step.terminated);
        kept.truncated.extend_from_slice(&step.truncated);
    }
    if !continuous.is_empty() {
        kept.actions = ActionBatch::Continuous(continuous);
    } else {
        kept.actions = ActionBatch::Discrete(discrete);
    }

    let obs = env.obs().rows().collect::<Vec<_>>().concat();
    let last_values = policy.values(&obs, n_envs).unwrap();
    for (e, &last_value) in last_values.iter().enumerate() {
        let steps = || (0..how.n_steps).map(|t| t * n_envs + e);
        let rewards: Vec<f64> = steps().map(|i| rewards[i]).collect();
        let values: Vec<f64> = steps().map(|i| kept.values[i]).collect();
        let dones: Vec<f64> = steps()
            .map(|i| f64::from(u8::from(kept.terminated[i] || kept.truncated[i])))
            .collect();
        let mut column = vec![0.0; how.n_steps];
        let (gamma, gae_lambda) = (how.gamma, how.gae_lambda);
        advantages(
            &rewards,
            &values,
            &dones,
            last_value.into(),
            gamma,
            gae_lambda,
            &mut column,
        );
        for (t, i) in steps().enumerate() {
            kept.advantages[i] = column[t];
            kept.returns[i] = column[t] + values[t];
        }
    }
    kept
}

/// A transition and the memory it lies in.
pub(crate) struct Stored {
    obs_dim: usize,
    numbers: Vec<f32>,
    flags: [bool; 2],
}

impl Stored {
    /// One that mostly goes on where `before` ended, as the transitions of an episode do.
    pub(crate) fn draw(rng: &mut ChaCha8Rng, obs_dim: usize, before: Option<&Self>) -> Self {
        let numbers = (0..2 * obs_dim + ACT_DIM + 1).map(|_| (rng.next_u64() % 4096) as f32);
        let mut numbers: Vec<f32> = numbers.collect();
        if let Some(before) = before
            && !rng.next_u64().is_multiple_of(4)
        {
            numbers[..obs_dim].copy_from_slice(before.as_batch().next_obs);
        }
        Self {
            obs_dim,
            numbers,
            flags: [(); 2].map(|()| rng.next_u64().is_multiple_of(3)),
        }
    }

    pub(crate) fn as_batch(&self) -> ExperienceBatch<'_, f32> {
        let (obs, rest) = self.numbers.split_at(self.obs_dim);
        let (next_obs, rest) = rest.split_at(self.obs_dim);
        let (action, reward) = rest.split_at(ACT_DIM);
        ExperienceBatch {
            obs,
            next_obs,
            action,
            reward,
            terminated: &self.flags[..1],
            truncated: &self.flags[1..],
        }
    }

    pub(crate) fn view(&self) -> Experience<'_, f32> {
        let batch = self.as_batch();
        Experience {
            obs: batch.obs,
            next_obs: batch.next_obs,
            action: batch.action,
            reward: batch.reward[0],
            terminated: batch.terminated[0],
            truncated: batch.truncated[0],
        }
    }
}

fn append(storage: &Storage<f32, AllBefore>, row: usize, batch: &mut SampledBatch<f32>) {
    let row = storage.row(row);
    batch.obs.extend_from_slice(row.obs);
    batch.next_obs.extend_from_slice(row.next_obs);
    batch.action.extend_from_slice(row.action);
    batch.reward.push(row.reward);
    batch.terminated.push(row.terminated);
    batch.truncated.push(row.truncated);
}

/// A new stream where a seed is given, else `own`.
fn with<T>(own: &mut ChaCha8Rng, seed: Option<u64>, draw: impl FnOnce(&mut ChaCha8Rng) -> T) -> T {
    match seed {
        Some(seed) => draw(&mut ChaCha8Rng::seed_from_u64(seed)),
        None => draw(own),
    }
}

/// The uniform buffer.
pub(crate) struct Uniform {
    storage: Storage<f32, AllBefore>,
    rng: ChaCha8Rng,
}

impl Uniform {
    pub(crate) fn new(capacity: usize, obs_dim: usize, seed: u64) -> Self {
        Self {
            storage: Storage::new(capacity, obs_dim, ACT_DIM).unwrap(),
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    pub(crate) fn push(&mut self, transition: &Stored) {
        self.storage.append(&transition.as_batch()).unwrap();
    }

    pub(crate) fn sample(&mut self, batch_size: usize, seed: Option<u64>) -> SampledBatch<f32> {
        let (storage, mut batch) = (&self.storage, SampledBatch::default());
        with(&mut self.rng, seed, |rng| {
            for _ in 0..batch_size {
                let product = u128::from(rng.next_u64()) * storage.len() as u128;
                append(storage, (product >> 64) as usize, &mut batch);
            }
        });
        batch
    }
}

/// The prioritised buffer; the smallest priority by looking at all of them.
pub(crate) struct Prioritized {
    storage: Storage<f32, AllBefore>,
    tree: SumTree,
    alpha: f64,
    beta: f64,
    max_priority: f64,
    rng: ChaCha8Rng,
}

impl Prioritized {
    pub(crate) fn new(capacity: usize, obs_dim: usize, alpha: f64, beta: f64, seed: u64) -> Self {
        Self {
            storage: Storage::new(capacity, obs_dim, ACT_DIM).unwrap(),
            tree: SumTree::new::<AllBefore>(capacity).unwrap(),
            alpha,
            beta,
            max_priority: 1.0,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    pub(crate) fn push(&mut self, transition: &Stored) {
        let row = self.storage.append(&transition.as_batch()).unwrap().start;
        let row = row % self.storage.capacity();
        self.tree.set(row, self.max_priority.powf(self.alpha));
    }

    pub(crate) fn update(&mut self, indices: &[i64], priorities: &[f64]) {
        for (&index, &priority) in indices.iter().zip(priorities) {
            self.max_priority = self.max_priority.max(priority);
            self.tree.set(index as usize, priority.powf(self.alpha));
        }
    }

    pub(crate) fn sample(&mut self, batch_size: usize, seed: Option<u64>) -> SampledBatch<f32> {
        let (storage, tree, beta) = (&self.storage, &self.tree, self.beta);
        let leaves = (0..storage.len()).map(|row| tree.get(row));
        let min = leaves
            .filter(|&leaf| leaf > 0.0)
            .fold(f64::INFINITY, f64::min);
        let mut batch = SampledBatch::default();
        with(&mut self.rng, seed, |rng| {
            for i in 0..batch_size {
                let unit = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                let row = tree.find((i as f64 + unit) * (tree.total() / batch_size as f64));
                append(storage, row, &mut batch);
                batch.weights.push((min / tree.get(row)).powf(beta) as f32);
                batch.indices.push(row as i64);
            }
        });
        batch
    }
}
