//! Some environments, taken through all the steps of a rollout by one thread.

use super::policy::MlpPolicy;
use super::{Episode, Running};
use crate::env::obs_store::FlatObs;
use crate::env::parallel::Member;
use crate::error::RloxError;
use crate::nn::Hidden;
use crate::pipeline::rollout::{ActionBatch, Collect};
use crate::switchboard::StepInfo;

/// The environments `first..first + members.len()` of `n_envs`.
pub(super) struct Part<'a> {
    pub(super) policy: &'a MlpPolicy,
    pub(super) how: Collect,
    pub(super) members: &'a mut [Member<StepInfo>],
    pub(super) first: usize,
    pub(super) n_envs: usize,
    /// That of all environments.
    pub(super) noise: &'a [f32],
    pub(super) running: Running<'a>,
}

/// What the environments of a part have done, step-major.
pub(super) struct Columns {
    /// One step more than the others have.
    pub(super) obs: Vec<f32>,
    pub(super) actions: ActionBatch,
    pub(super) log_probs: Vec<f32>,
    pub(super) values: Vec<f32>,
    /// With the bootstrap of truncated episodes added.
    pub(super) rewards: Vec<f32>,
    /// 1 where the step ended an episode, else 0.
    pub(super) dones: Vec<f32>,
    pub(super) last_values: Vec<f32>,
    pub(super) episodes: Vec<Episode>,
}

impl Part<'_> {
    pub(super) fn run(self) -> Result<Columns, RloxError> {
        let Self {
            policy,
            how,
            members,
            first,
            n_envs,
            noise,
            running,
        } = self;
        let (actor, critic) = (&policy.actor, &policy.critic);
        let (n, obs_dim) = (members.len(), actor.mlp().n_inputs());
        let (total, width) = (how.n_steps * n, n * obs_dim);
        let (n_outputs, n_noise) = (actor.mlp().n_outputs(), policy.noise_per_action());
        let gamma = how.gamma as f32;

        let mut hidden = Hidden::default();
        let mut outputs = vec![0.0; n * n_outputs];
        let mut sampler = policy.sampler(total);
        let mut obs = vec![0.0; width + total * obs_dim];
        for (member, obs) in members.iter().zip(obs.chunks_exact_mut(obs_dim)) {
            member.observe::<FlatObs>(obs);
        }
        let mut values = vec![0.0; total];
        let mut log_probs = Vec::with_capacity(total);
        let mut rewards = Vec::with_capacity(total);
        let mut dones = Vec::with_capacity(total);
        let mut episodes = Vec::new();
        for step in 0..how.n_steps {
            let (before, after) = obs.split_at_mut((step + 1) * width);
            let current = &before[step * width..];
            actor.forward(current, &mut hidden, &mut outputs);
            critic.forward(current, &mut hidden, &mut values[step * n..(step + 1) * n]);
            let noise = &noise[(step * n_envs + first) * n_noise..];
            for (e, (member, next_obs)) in members
                .iter_mut()
                .zip(after.chunks_exact_mut(obs_dim))
                .enumerate()
            {
                let (action, log_prob) = sampler.act(
                    &outputs[e * n_outputs..(e + 1) * n_outputs],
                    &noise[e * n_noise..(e + 1) * n_noise],
                )?;
                let outcome = member.step::<FlatObs>(action, next_obs);
                log_probs.push(log_prob);
                running.rewards[e] += outcome.reward;
                running.lengths[e] += 1;
                let mut reward = outcome.reward as f32;
                if let Some(last) = &outcome.final_obs {
                    episodes.push(Episode {
                        step,
                        reward: std::mem::take(&mut running.rewards[e]),
                        length: std::mem::take(&mut running.lengths[e]),
                    });
                    if !outcome.terminated {
                        let mut value = [0.0];
                        critic.forward(last, &mut hidden, &mut value);
                        reward += gamma * value[0];
                    }
                }
                rewards.push(reward);
                dones.push(f32::from(u8::from(outcome.final_obs.is_some())));
            }
        }
        let mut last_values = vec![0.0; n];
        critic.forward(&obs[total * obs_dim..], &mut hidden, &mut last_values);
        Ok(Columns {
            obs,
            actions: sampler.into_actions(),
            log_probs,
            values,
            rewards,
            dones,
            last_values,
            episodes,
        })
    }
}

impl Columns {
    /// The columns of all environments, from those of each part in their order.
    pub(super) fn joined(mut parts: Vec<Self>, n_steps: usize) -> Self {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return only;
        }
        let floats = |column: fn(&Self) -> &[f32], rows| {
            interleaved(&parts.iter().map(column).collect::<Vec<_>>(), rows)
        };
        let mut episodes: Vec<_> = parts
            .iter()
            .flat_map(|part| &part.episodes)
            .copied()
            .collect();
        episodes.sort_by_key(|episode| episode.step); // stable: the environments stay in order
        Self {
            obs: floats(|part| &part.obs, n_steps + 1),
            actions: joined_actions(&parts, n_steps),
            log_probs: floats(|part| &part.log_probs, n_steps),
            values: floats(|part| &part.values, n_steps),
            rewards: floats(|part| &part.rewards, n_steps),
            dones: floats(|part| &part.dones, n_steps),
            last_values: floats(|part| &part.last_values, 1),
            episodes,
        }
    }
}

fn joined_actions(parts: &[Columns], n_steps: usize) -> ActionBatch {
    let (mut indices, mut components) = (Vec::new(), Vec::new());
    for part in parts {
        match &part.actions {
            ActionBatch::Discrete(actions) => indices.push(&actions[..]),
            ActionBatch::Continuous(actions) => components.push(&actions[..]),
        }
    }
    if components.is_empty() {
        ActionBatch::Discrete(interleaved(&indices, n_steps))
    } else {
        ActionBatch::Continuous(interleaved(&components, n_steps))
    }
}

/// Row by row, what the parts have of it.
fn interleaved<T: Copy>(parts: &[&[T]], rows: usize) -> Vec<T> {
    let mut all = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
    for row in 0..rows {
        for part in parts {
            let width = part.len() / rows;
            all.extend_from_slice(&part[row * width..(row + 1) * width]);
        }
    }
    all
}
