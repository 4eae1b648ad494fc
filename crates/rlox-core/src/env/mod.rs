//! Environments: one interface, the built-in ones, and many of them stepped together.
//!
//! [`parallel`] steps a batch with same-step autoreset, [`seeding`] gives a seed the meaning it has
//! in Gymnasium. [`stepping`] is the seam of P19, with the forms [`members`] and [`lanes`];
//! [`obs_store`] and [`info`] are those of P2 and P10, within the first of them.

pub mod builtins;
pub mod info;
pub mod lanes;
pub mod members;
pub mod obs_store;
pub mod parallel;
pub mod seeding;
pub mod spaces;
pub mod stepping;
#[cfg(test)]
mod tests;
mod trig;

use rand_pcg::Pcg64;

use info::StepInfo;
use spaces::Space;

/// What may vary in how environments are stepped.
pub trait EnvWiring: std::fmt::Debug + Send + Sync + 'static {
    /// P19: how environments are held, and what steps them; P2 and P10 vary the form before.
    type Stepping: stepping::Stepping;
}

/// The action of one environment, valid for its action space.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action<'a> {
    /// Index into a discrete space.
    Discrete(usize),
    /// Components of a continuous one.
    Continuous(&'a [f32]),
}

/// What a step gives besides the observation. The time limit is not the environment's business:
/// whoever counts the steps truncates.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition<I> {
    /// Reward of the step.
    pub reward: f64,
    /// Whether the step reached a terminal state of the MDP.
    pub terminated: bool,
    /// Further facts about the step (P10's seam).
    pub info: I,
}

/// `(low, high)` of the uniform draw of one component of the initial state.
pub type Bounds = (f64, f64);

/// One environment with a state of real numbers, kept in f64 and observed in f32.
pub trait RLEnv<I: StepInfo>: Send {
    /// Space of the observations.
    fn observation_space(&self) -> Space;

    /// Space of the actions.
    fn action_space(&self) -> Space;

    /// Steps after which an episode is truncated.
    fn max_episode_steps(&self) -> u32;

    /// Where initial states are drawn from, one pair a component of the state.
    fn initial_bounds(&self) -> &'static [Bounds];

    /// The state, in the order of `initial_bounds`.
    fn state(&self) -> &[f64];

    /// The state, to be written to.
    fn state_mut(&mut self) -> &mut [f64];

    /// Draws a new initial state from `bounds`.
    fn reset(&mut self, rng: &mut Pcg64, bounds: &[Bounds]) {
        for (component, &(low, high)) in self.state_mut().iter_mut().zip(bounds) {
            *component = seeding::uniform(rng, low, high);
        }
    }

    /// Advances the state by one step.
    fn step(&mut self, action: Action<'_>) -> Transition<I>;

    /// The state as the agent sees it.
    fn obs(&self) -> Vec<f32>;

    /// The same, written to `out`, which has room for it and no more.
    fn write_obs(&self, out: &mut [f32]);
}
