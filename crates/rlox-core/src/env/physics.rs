//! What an environment is: its spaces, how its initial state is drawn, and one step of eight copies.
//!
//! The rest of `env` is generic over that: [`super::lanes`] steps any number of copies,
//! [`super::scalar`] a single one, and [`super::builtins`] finds an environment by its id.

use super::info::StepInfo;
use super::scalar::{OneLane, RLEnv};
use super::spaces::{LaneAction, Space};

/// How many copies of an environment are stepped at a time: as many as an AVX-512 register holds f64.
pub const LANES: usize = 8;

/// `(low, high)` of the uniform draw of one component of the initial state.
pub type Bounds = (f64, f64);

/// An environment whose state is a few real numbers. The types that implement this trait have no values:
/// each only names an environment.
///
/// Eight copies are stepped together. A lane is the place of one of them: `state[c][l]` is component `c`
/// of the copy in lane `l`, in f64. No lane depends on another, and `step` and `rows` are
/// `#[inline(always)]` arithmetic in loops over the lanes, so that the compiler can do the operation of
/// all eight lanes by one instruction. Every instruction set must give the same bits, so
/// [`Instructions::mul_add`](crate::simd::Instructions::mul_add), which some sets round once and others
/// twice, is not used.
pub trait Physics: Sized + Send + 'static {
    /// The environment's id in Gymnasium.
    const ID: &'static str;
    /// Steps after which an episode is truncated.
    const MAX_EPISODE_STEPS: u32;
    /// The bounds that the first components of an initial state are drawn within, in the order of the
    /// draws. The other components start at zero, and take no random number.
    const INITIAL_BOUNDS: &'static [Bounds];

    /// `[[f64; LANES]; N]` for a state of `N` components.
    type State: Copy + Default + Send + AsRef<[[f64; LANES]]> + AsMut<[[f64; LANES]]>;
    /// The action of one environment: `i64` for an index, `[f32; N]` for `N` real numbers.
    type Action: LaneAction;
    /// The observations of the eight copies: `[[f32; N]; LANES]` for observations of `N` numbers.
    type Rows: Rows;

    /// The space of the observations.
    fn observation_space() -> Space;

    /// The space of the actions. `step` gets only indices of a discrete space, and of a box only finite
    /// numbers, which may lie beyond its bounds.
    fn action_space() -> Space;

    /// The component of an initial state that follows from a drawn number: by default the number itself.
    /// Environments that Gymnasium starts in float32 round it.
    #[inline(always)]
    fn kept(drawn: f64) -> f64 {
        drawn
    }

    /// One step of all lanes from `state`, which is passed by value so that it stays in registers.
    /// `elapsed` has the number of steps that each lane's episode has had so far.
    fn step(
        state: Self::State,
        elapsed: &[u32; LANES],
        actions: &[Self::Action; LANES],
    ) -> Moved<Self::State>;

    /// The observations of all lanes in `state`.
    fn rows(state: &Self::State) -> Self::Rows;

    /// A single environment as a trait object. P19's baseline, with either form of P2 and P10, steps these.
    fn alone<I: StepInfo>() -> Box<dyn RLEnv<I>> {
        Box::new(OneLane::<Self>::default())
    }
}

/// The number of components that the state of `P` has.
pub(crate) fn components<P: Physics>() -> usize {
    P::State::default().as_ref().len()
}

/// The state of eight lanes with the same components: `of(c)` is component `c` of each.
#[inline(always)]
pub(crate) fn alike<P: Physics>(of: impl Fn(usize) -> f64) -> P::State {
    let mut state = P::State::default();
    for (c, component) in state.as_mut().iter_mut().enumerate() {
        *component = [of(c); LANES];
    }
    state
}

/// A yes or no of each lane, as 1 or 0. They are as wide as the numbers of the state, so that they stay in
/// the lanes of vectors: the compiler would take vectors apart for eight `bool`s.
pub type Flags = [u64; LANES];

/// The result of a step of eight lanes. It does not say whether an episode is truncated: that follows
/// from the number of its steps, which the caller counts.
#[derive(Debug, Clone, Copy)]
pub struct Moved<S> {
    /// The state after the step.
    pub state: S,
    /// The reward of each lane.
    pub rewards: [f64; LANES],
    /// Whether each lane reached a terminal state.
    pub terminated: Flags,
}

/// The observations of eight lanes.
pub trait Rows {
    /// How many numbers an observation has.
    const WIDTH: usize;

    /// All observations, lane after lane, `[LANES * WIDTH]`.
    fn flat(&self) -> &[f32];

    /// The observation of lane `l`.
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
