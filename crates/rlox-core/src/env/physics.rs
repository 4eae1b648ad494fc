//! What an environment is: its spaces, where its episodes start, and one step for eight of it.
//!
//! Everything else is made from that: [`super::lanes`] holds and steps any number of environments,
//! [`super::scalar`] one alone, and [`super::builtins`] finds an environment by its id.

use super::info::StepInfo;
use super::scalar::{OneLane, RLEnv};
use super::spaces::{LaneAction, Space};

/// Environments that are stepped together: as many as an AVX-512 register holds f64.
pub const LANES: usize = 8;

/// `(low, high)` of the uniform draw of one component of the initial state.
pub type Bounds = (f64, f64);

/// An environment whose state is a few real numbers. A type that implements it is a name, not a value.
///
/// The state is kept in f64, component by component: `state[c][l]` is component `c` of the environment
/// in lane `l`. Each lane depends on itself alone, and everything is `#[inline(always)]` arithmetic in
/// loops over the lanes, so that the compiler makes one instruction of eight operations. No operation
/// may depend on the instruction set (no `mul_add`): all of them give the same bits.
pub trait Physics: Sized + Send + 'static {
    /// Its id in Gymnasium.
    const ID: &'static str;
    /// Steps after which an episode is truncated.
    const MAX_EPISODE_STEPS: u32;
    /// Where the components of an initial state are drawn from, in the order of the draws. Components
    /// beyond these are not drawn: they start at zero.
    const INITIAL_BOUNDS: &'static [Bounds];

    /// `[[f64; LANES]; N]` for a state of `N` components.
    type State: Copy + Default + Send + AsRef<[[f64; LANES]]> + AsMut<[[f64; LANES]]>;
    /// The action of one environment: `i64` for an index, `[f32; N]` for `N` real numbers.
    type Action: LaneAction;
    /// `[[f32; N]; LANES]` for observations of `N` numbers.
    type Rows: Rows;

    /// Space of the observations.
    fn observation_space() -> Space;

    /// Space of the actions. Actions within a discrete space are all that is ever passed to `step`;
    /// those of a continuous one are finite, and may lie beyond its bounds.
    fn action_space() -> Space;

    /// A drawn component of the initial state, as the environment keeps it.
    #[inline(always)]
    fn kept(drawn: f64) -> f64 {
        drawn
    }

    /// One step from `state`, which comes by value so that it stays in registers. `elapsed` are the steps of
    /// each episode so far.
    fn step(
        state: Self::State,
        elapsed: &[u32; LANES],
        actions: &[Self::Action; LANES],
    ) -> Moved<Self::State>;

    /// The observations of a state.
    fn rows(state: &Self::State) -> Self::Rows;

    /// One such environment behind a box: the form before P2, P10 and P19.
    fn alone<I: StepInfo>() -> Box<dyn RLEnv<I>> {
        Box::new(OneLane::<Self>::default())
    }
}

/// Components of the state of `P`.
pub(crate) fn components<P: Physics>() -> usize {
    P::State::default().as_ref().len()
}

/// Eight environments in the same state, whose components `of` gives.
#[inline(always)]
pub(crate) fn alike<P: Physics>(of: impl Fn(usize) -> f64) -> P::State {
    let mut state = P::State::default();
    for (c, component) in state.as_mut().iter_mut().enumerate() {
        *component = [of(c); LANES];
    }
    state
}

/// What a step gives. The time limit is no part of it: whoever counts the steps truncates.
#[derive(Debug, Clone, Copy)]
pub struct Moved<S> {
    /// The state after it.
    pub state: S,
    /// Rewards of the step.
    pub rewards: [f64; LANES],
    /// Whether the step reached a terminal state.
    pub terminated: [bool; LANES],
}

/// Observations of eight environments.
pub trait Rows {
    /// Numbers of an observation.
    const WIDTH: usize;

    /// All of them, environment by environment `[LANES * WIDTH]`.
    fn flat(&self) -> &[f32];

    /// That of lane `l`.
    #[inline(always)]
    fn row(&self, l: usize) -> &[f32] {
        &self.flat()[l * Self::WIDTH..][..Self::WIDTH]
    }
}

impl<const N: usize> Rows for [[f32; N]; LANES] {
    const WIDTH: usize = N;

    #[inline(always)]
    fn flat(&self) -> &[f32] {
        self.as_flattened()
    }
}
