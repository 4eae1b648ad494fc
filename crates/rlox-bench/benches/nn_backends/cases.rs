//! The steps, and the numbers they start from: a formula, so that any language makes the same.

pub(crate) use rlox_core::nn::Activation;

/// What is timed. Adam's step has lr 3e-4 and eps 1e-5 in all of them; gradients are not clipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// One TD step of a Q-network 4-64-64-2 (ReLU) on 64 transitions, with a target network.
    Dqn,
    /// One minibatch of 64: actor 4-64-64-2 and critic 4-64-64-1 (tanh), clipped surrogate, value
    /// loss and entropy, advantages normalised.
    Ppo,
    /// One draw of a squashed Gaussian by an actor 3-256-256-2 (ReLU), with its log-probability.
    Actor,
    /// One step of twin critics 4-256-256-1 (ReLU) towards given targets, on 256 transitions.
    Critics,
    /// The outputs of a linear layer 256-256 on 256 rows: one product, and a bias.
    Layer,
}

impl Step {
    pub(crate) const ALL: [Self; 5] = [
        Self::Dqn,
        Self::Ppo,
        Self::Actor,
        Self::Critics,
        Self::Layer,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dqn => "dqn_step",
            Self::Ppo => "ppo_step",
            Self::Actor => "sac_sample",
            Self::Critics => "critic_step",
            Self::Layer => "layer",
        }
    }
}

/// A backend at a step.
pub(crate) trait Arm {
    /// Does it once more.
    fn step(&mut self);
    /// What the last one left: parameters as `torch.nn.Sequential` has them, network after network;
    /// of a draw the action and its log-probability, of a layer its outputs.
    fn answer(&mut self) -> Vec<f32>;
}

pub(crate) const LR: f64 = 3e-4;
pub(crate) const EPS: f64 = 1e-5;
pub(crate) const GAMMA: f32 = 0.99;
pub(crate) const CLIP_RANGE: f32 = 0.2;
pub(crate) const VF_COEF: f32 = 0.5;
pub(crate) const ENT_COEF: f32 = 0.01;
pub(crate) const HALF_LOG_2PI: f32 = 0.918_938_5;

pub(crate) const Q_NET: [usize; 4] = [4, 64, 64, 2];
pub(crate) const VALUE_NET: [usize; 4] = [4, 64, 64, 1];
pub(crate) const ACTOR: [usize; 4] = [3, 256, 256, 2];
pub(crate) const CRITIC: [usize; 4] = [4, 256, 256, 1];
pub(crate) const LAYER: [usize; 2] = [256, 256];
/// Where the second network's numbers start.
pub(crate) const SECOND: usize = 1_000_000;

/// `n` numbers in [-1, 1): the fractions of the multiples of the golden ratio, from `start` on.
pub(crate) fn numbers(n: usize, start: usize) -> Vec<f64> {
    (start..start + n)
        .map(|i| (i as f64 * 0.618_033_988_749_894_9).fract() * 2.0 - 1.0)
        .collect()
}

pub(crate) fn narrow(numbers: &[f64]) -> Vec<f32> {
    numbers.iter().map(|&x| x as f32).collect()
}

/// Parameters of a network: layer after layer, weight `[out, in]`, then bias, over the root of the
/// inputs.
pub(crate) fn params(widths: &[usize], start: usize) -> Vec<f32> {
    let mut at = start;
    let mut all = Vec::new();
    for pair in widths.windows(2) {
        let n = (pair[0] + 1) * pair[1];
        let scale = 1.0 / (pair[0] as f64).sqrt();
        all.extend(numbers(n, at).iter().map(|x| (x * scale) as f32));
        at += n;
    }
    all
}

/// 64 transitions of a discrete environment, and what PPO knows of them.
pub(crate) struct Minibatch {
    /// `[64, 4]`
    pub(crate) obs: Vec<f32>,
    /// `[64, 4]`
    pub(crate) next_obs: Vec<f32>,
    /// `[64]`, 0 or 1
    pub(crate) actions: Vec<i64>,
    /// `[64]`
    pub(crate) rewards: Vec<f32>,
    /// `[64]`, gamma, or 0 where the episode has ended
    pub(crate) discounts: Vec<f32>,
    /// `[64]`
    pub(crate) log_probs: Vec<f32>,
    /// `[64]`
    pub(crate) advantages: Vec<f32>,
    /// `[64]`
    pub(crate) returns: Vec<f32>,
}

impl Minibatch {
    pub(crate) const N: usize = 64;

    pub(crate) fn new() -> Self {
        let n = Self::N;
        let log_prob = |x: &f64| (0.5f64.ln() + 0.1 * x) as f32;
        Self {
            obs: narrow(&numbers(4 * n, 100_000)),
            next_obs: narrow(&numbers(4 * n, 200_000)),
            actions: (0..n as i64).map(|i| i % 2).collect(),
            rewards: narrow(&numbers(n, 300_000)),
            discounts: (0..n)
                .map(|i| if i % 16 == 15 { 0.0 } else { GAMMA })
                .collect(),
            log_probs: numbers(n, 400_000).iter().map(log_prob).collect(),
            advantages: narrow(&numbers(n, 500_000)),
            returns: narrow(&numbers(n, 600_000)),
        }
    }
}

/// An observation `[3]` and noise `[1]` for a draw.
pub(crate) fn draw_inputs() -> (Vec<f32>, Vec<f32>) {
    (narrow(&numbers(3, 100_000)), narrow(&numbers(1, 200_000)))
}

/// A layer's inputs `[256, 256]`.
pub(crate) fn layer_inputs() -> Vec<f32> {
    narrow(&numbers(LAYER_ROWS * LAYER[0], 100_000))
}

pub(crate) const LAYER_ROWS: usize = 256;

/// Observations with actions `[256, 4]` and targets `[256]`.
pub(crate) fn critic_inputs() -> (Vec<f32>, Vec<f32>) {
    (
        narrow(&numbers(4 * CRITIC_ROWS, 100_000)),
        narrow(&numbers(CRITIC_ROWS, 200_000)),
    )
}

pub(crate) const CRITIC_ROWS: usize = 256;
