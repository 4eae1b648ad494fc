//! A part of the environments, which one thread takes through all steps of a rollout.

use super::policy::MlpPolicy;
use super::{Episode, Running};
use crate::env::stepping::{Finals, Outcome, Share};
use crate::error::RloxError;
use crate::memory::{reserve_more, reserved, zeros};
use crate::nn::Hidden;
use crate::pipeline::rollout::{ActionBatch, Collect};

/// The environments `first..first + n` of all `n_envs`, where n is the length of `running`.
pub(super) struct Part<'a> {
    pub(super) policy: &'a MlpPolicy,
    pub(super) how: Collect,
    pub(super) envs: Box<dyn Share + 'a>,
    /// Their present observations, `[n, obs_dim]`.
    pub(super) obs: &'a [f32],
    pub(super) first: usize,
    pub(super) n_envs: usize,
    /// The noise of all environments, `[n_steps, n_envs, noise_per_action]`.
    pub(super) noise: &'a [f32],
    pub(super) running: Running<'a>,
}

/// The columns of [`super::FusedRollout`] for the environments of a part, without the advantages.
pub(super) struct Collected {
    pub(super) obs: Vec<f32>,
    pub(super) actions: ActionBatch,
    pub(super) log_probs: Vec<f32>,
    pub(super) values: Vec<f32>,
    pub(super) rewards: Vec<f32>,
    pub(super) dones: Vec<f32>,
    /// Values of the observations after the last step, `[n]`.
    pub(super) last_values: Vec<f32>,
    pub(super) episodes: Vec<Episode>,
}

impl Part<'_> {
    pub(super) fn run(self) -> Result<Collected, RloxError> {
        let Self {
            policy,
            how,
            mut envs,
            obs: start,
            first,
            n_envs,
            noise,
            running,
        } = self;
        let (actor, critic) = (&policy.actor, &policy.critic);
        let (n, width) = (running.rewards.len(), start.len());
        let (total, obs_dim) = (how.n_steps * n, actor.mlp().n_inputs());
        let (n_outputs, n_noise) = (actor.mlp().n_outputs(), policy.noise_per_action());
        let gamma = how.gamma as f32;

        let mut hidden = Hidden::of(&[actor.mlp(), critic.mlp()])?;
        let mut outputs = zeros(n.saturating_mul(n_outputs))?;
        let mut sampler = policy.sampler(total, n)?;
        let mut obs = zeros(width + total * obs_dim)?;
        obs[..width].copy_from_slice(start);
        let mut values = zeros(total)?;
        let (mut log_probs, mut rewards, mut dones) =
            (reserved(total)?, reserved(total)?, reserved(total)?);
        let mut episodes = Vec::new();
        let mut paid = zeros(n)?;
        let (mut terminated, mut truncated) = (zeros(n)?, zeros(n)?);
        let mut final_obs = Finals::new(n, obs_dim)?;
        for step in 0..how.n_steps {
            let (before, after) = obs.split_at_mut((step + 1) * width);
            let current = &before[step * width..];
            actor.forward(current, &mut hidden, &mut outputs);
            critic.forward(current, &mut hidden, &mut values[step * n..(step + 1) * n]);
            let noise = &noise[(step * n_envs + first) * n_noise..];
            for (outputs, noise) in outputs
                .chunks_exact(n_outputs)
                .zip(noise.chunks_exact(n_noise))
            {
                log_probs.push(sampler.act(outputs, noise)?);
            }
            let outcome = Outcome {
                rewards: &mut paid,
                terminated: &mut terminated,
                truncated: &mut truncated,
                final_obs: &mut final_obs,
            };
            envs.step(sampler.latest(n), &mut after[..width], outcome)?;
            sampler.stepped();

            for (e, &reward) in paid.iter().enumerate() {
                running.rewards[e] += reward;
                running.lengths[e] += 1;
                rewards.push(reward as f32);
                dones.push(f32::from(u8::from(terminated[e] | truncated[e])));
            }
            reserve_more(&mut episodes, final_obs.envs().len())?;
            for (e, last) in final_obs.iter() {
                episodes.push(Episode {
                    step,
                    reward: std::mem::take(&mut running.rewards[e]),
                    length: std::mem::take(&mut running.lengths[e]),
                });
                if !terminated[e] {
                    let mut value = [0.0];
                    critic.forward(last, &mut hidden, &mut value);
                    rewards[step * n + e] += gamma * value[0];
                }
            }
        }
        let mut last_values = zeros(n)?;
        critic.forward(&obs[total * obs_dim..], &mut hidden, &mut last_values);
        Ok(Collected {
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

impl Collected {
    /// Joins the parts, which are in the order of their environments, to the columns of all
    /// environments.
    pub(super) fn joined(
        parts: Vec<Result<Self, RloxError>>,
        n_steps: usize,
    ) -> Result<Self, RloxError> {
        let mut done = reserved(parts.len())?;
        for part in parts {
            done.push(part?);
        }
        let mut parts: Vec<Self> = done;
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return Ok(only);
        }
        let floats =
            |column: fn(&Self) -> &[f32], rows| interleaved(parts.iter().map(column), rows);
        let mut episodes = reserved(parts.iter().map(|part| part.episodes.len()).sum())?;
        episodes.extend(parts.iter().flat_map(|part| &part.episodes).copied());
        // A stable sort by step, without its allocation, which aborts where there is no memory: the
        // index decides between episodes of one step.
        let mut in_order: Vec<(usize, Episode)> = reserved(episodes.len())?;
        in_order.extend(episodes.drain(..).enumerate());
        in_order.sort_unstable_by_key(|(i, episode)| (episode.step, *i));
        episodes.extend(in_order.into_iter().map(|(_, episode)| episode));
        Ok(Self {
            obs: floats(|part| &part.obs, n_steps + 1)?,
            actions: joined_actions(&parts, n_steps)?,
            log_probs: floats(|part| &part.log_probs, n_steps)?,
            values: floats(|part| &part.values, n_steps)?,
            rewards: floats(|part| &part.rewards, n_steps)?,
            dones: floats(|part| &part.dones, n_steps)?,
            last_values: floats(|part| &part.last_values, 1)?,
            episodes,
        })
    }
}

fn joined_actions(parts: &[Collected], n_steps: usize) -> Result<ActionBatch, RloxError> {
    let indices = parts.iter().filter_map(|part| match &part.actions {
        ActionBatch::Discrete(actions) => Some(&actions[..]),
        ActionBatch::Continuous(_) => None,
    });
    let components = parts.iter().filter_map(|part| match &part.actions {
        ActionBatch::Continuous(actions) => Some(&actions[..]),
        ActionBatch::Discrete(_) => None,
    });
    Ok(if components.clone().next().is_none() {
        ActionBatch::Discrete(interleaved(indices, n_steps)?)
    } else {
        ActionBatch::Continuous(interleaved(components, n_steps)?)
    })
}

/// Joins a column of `rows` rows: each row is the parts' rows side by side.
fn interleaved<'a, T: Copy + 'a>(
    parts: impl Iterator<Item = &'a [T]> + Clone,
    rows: usize,
) -> Result<Vec<T>, RloxError> {
    let mut all = reserved(parts.clone().map(<[T]>::len).sum())?;
    for row in 0..rows {
        for part in parts.clone() {
            let width = part.len() / rows;
            all.extend_from_slice(&part[row * width..(row + 1) * width]);
        }
    }
    Ok(all)
}
