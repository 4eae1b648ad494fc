//! In steady state nothing of the data plane that ships allocates: no step, episodes that end
//! included, no push, no sample into columns that are there.

#![allow(missing_docs, clippy::unwrap_used)]

use rlox_bench::counting::Counting;
use rlox_core::buffer::priority::PriorityBuffer;
use rlox_core::buffer::ringbuf::RingBuffer;
use rlox_core::buffer::{Experience, ExperienceBatch, Replay, SampledBatch};
use rlox_core::env::builtins::IDS;
use rlox_core::env::lanes::Lanes;
use rlox_core::env::spaces::{Actions, Space};
use rlox_core::env::vec_env::{Reset, VecEnv};
use rlox_core::wiring::Shipped;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const N: usize = 24;

/// Asserts that `work` does not allocate, after three calls that may.
fn assert_steady(name: &str, mut work: impl FnMut()) {
    (0..3).for_each(|_| work());
    let before = Counting::so_far();
    (0..2_000).for_each(|_| work());
    let allocations = Counting::so_far().0 - before.0;
    assert_eq!(allocations, 0, "{name}");
}

fn kept(weighted: usize) -> SampledBatch<f32> {
    SampledBatch {
        obs: vec![0.0; 4 * N],
        next_obs: vec![0.0; 4 * N],
        action: vec![0.0; N],
        reward: vec![0.0; N],
        terminated: vec![false; N],
        truncated: vec![false; N],
        weights: vec![0.0; weighted],
        indices: vec![0; weighted],
    }
}

fn pushes_and_samples(name: &str, mut buffer: impl Replay<f32>, weighted: usize) {
    let (obs, rewards, flags) = ([0.5; 4 * N], [1.0; N], [false; N]);
    let many = ExperienceBatch {
        obs: &obs,
        next_obs: &obs,
        action: &rewards,
        reward: &rewards,
        terminated: &flags,
        truncated: &flags,
    };
    let mut batch = kept(weighted);
    assert_steady(name, || {
        buffer.append(&many).unwrap();
        buffer.sample_into(None, &mut batch.columns()).unwrap();
    });
}

#[test]
fn steps_do_not_allocate() {
    for &env_id in IDS {
        let mut env = VecEnv::<Lanes>::new(env_id, N, 0).unwrap();
        env.reset(Reset::default()).unwrap();
        for i in 0..N {
            let (state, _) = env.state(i).unwrap();
            env.set_state(i, &state, env.max_episode_steps() - 5)
                .unwrap();
        }
        let (pushes, reals) = ([1; N], [0.5; N]);
        let space = env.action_space().clone();
        let mut ended = 0;
        assert_steady(env_id, || {
            let actions = match space {
                Space::Discrete(_) => Actions::Discrete(&pushes),
                Space::Box { .. } => Actions::Continuous(&reals),
            };
            ended += env.step(actions).unwrap().final_obs.envs().len();
        });
        assert!(ended > N, "the test wants episodes to end");
    }
}

#[test]
fn pushes_and_samples_do_not_allocate() {
    let ring = RingBuffer::<f32, Shipped>::new(100, 4, 1, 0).unwrap();
    pushes_and_samples("uniform", ring, 0);
    let tree = PriorityBuffer::<f32, Shipped>::new(100, 4, 1, 0.6, 0.4, 0).unwrap();
    pushes_and_samples("prioritised", tree, N);

    let mut ring = RingBuffer::<f32, Shipped>::new(100, 4, 1, 0).unwrap();
    let one = Experience {
        obs: &[0.5; 4],
        next_obs: &[0.5; 4],
        action: &[0.5],
        reward: 1.0,
        terminated: false,
        truncated: false,
    };
    assert_steady("push", || ring.append(&one.as_batch()).unwrap());
}

/// A test that counts wrongly would find nothing.
#[test]
fn allocations_are_counted() {
    let before = Counting::so_far();
    drop(std::hint::black_box(vec![0_u8; 100]));
    let after = Counting::so_far();
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 100));
}
