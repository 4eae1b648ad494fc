//! Golden runs: what a wiring's choices do together, held to plain loops over the baselines. They run
//! for the wiring of all baselines, for what ships, and for what this build's features choose.
//!
//! Each run prints `golden <wiring>::<name> <digest>`, and the builds of one machine must print the
//! same (`rlox-opt test --builds`). No digest is a constant here: sine and exponential may differ in
//! their last bit between machines.

#![allow(clippy::unwrap_used)]

// What the pairs are held to, too; their crate depends on this one.
#[path = "../../rlox-bench/src/close.rs"]
mod close;
mod plain;

use std::any::type_name;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::AtomicBool;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rlox_core::buffer::observations::WIDE;
use rlox_core::buffer::priority::PriorityBuffer;
use rlox_core::buffer::ringbuf::RingBuffer;
use rlox_core::buffer::{Replay, intake};
use rlox_core::env::info::MapInfo;
use rlox_core::env::lanes::Lanes;
use rlox_core::env::members::Member;
use rlox_core::env::obs_store::PerEnvObs;
use rlox_core::env::vec_env::{PARALLEL_ENVS, Reset, VecEnv};
use rlox_core::llm::ops::{ByRows, Ops};
use rlox_core::llm::{group_advantages, token_kl};
use rlox_core::pipeline::EnvOf;
use rlox_core::pipeline::rollout::{Collect, collect};
use rlox_core::switchboard::Chosen;
use rlox_core::training::gae::{self, compute_gae};
use rlox_core::training::vtrace::{self, compute_vtrace};

use rlox_core::wiring::{AllBefore, Shipped, Wiring};

use plain::{ACT_DIM, Linear, Prioritized, Stored, Uniform};

/// Makes a test of every run for every wiring.
macro_rules! golden_runs {
    ($($name:ident)+) => {
        golden_runs! { @all_before AllBefore $($name)+ }
        golden_runs! { @shipped Shipped $($name)+ }
        golden_runs! { @chosen Chosen $($name)+ }
    };
    (@$wiring:ident $W:ident $($name:ident)+) => {
        mod $wiring {
            $(#[test]
            fn $name() {
                super::$name::<super::$W>(concat!(stringify!($wiring), "::", stringify!($name)));
            })+
        }
    };
}

golden_runs! {
    rollouts_of_cartpole
    rollouts_of_pendulum
    rollouts_of_many_environments
    uniform_samples
    uniform_samples_of_wide_observations
    prioritised_samples
    prioritised_samples_of_wide_observations
    llm_operations
    gae_of_one_sequence
    vtrace_of_one_sequence
}

/// Floats are written so that equal texts are equal to the bit, the sign of zero included.
fn golden(name: &str, found: &impl Debug, plain: &impl Debug) {
    let (found, plain) = (format!("{found:?}"), format!("{plain:?}"));
    assert!(found == plain, "{name} is not what the baselines give");
    let mut hasher = DefaultHasher::new();
    found.hash(&mut hasher);
    println!("golden {name} {:016x}", hasher.finish());
}

/// A run through a seam that rounds differently where one of `rounding` is on: then it is held to
/// `tolerance`, and prints no digest.
fn golden_within(
    tolerance: f64,
    rounding: &[bool],
    name: &str,
    found: &impl Debug,
    plain: &impl Debug,
) {
    if !rounding.contains(&true) {
        return golden(name, found, plain);
    }
    let (found, plain) = (format!("{found:?}"), format!("{plain:?}"));
    let near = close::close(&plain, &found, tolerance);
    assert!(near, "{name} is not near what the baselines give");
    println!("golden {name} close");
}

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(7)
}

/// `n` multiples of 1/1024 in [-2, 2).
fn numbers(rng: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
    (0..n)
        .map(|_| (rng.next_u64() % 4096) as f64 / 1024.0 - 2.0)
        .collect()
}

fn flags(rng: &mut ChaCha8Rng, n: usize) -> Vec<bool> {
    (0..n).map(|_| rng.next_u64().is_multiple_of(5)).collect()
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

/// Several rollouts on end, so that episodes and memory go on from one to the next.
fn rollouts<W: Wiring>(name: &str, env_id: &str, n_envs: usize, n_steps: usize, n: usize) {
    let how = Collect {
        n_steps,
        gamma: 0.99,
        gae_lambda: 0.95,
    };
    let stop = AtomicBool::new(false);
    let mut env = EnvOf::<W>::new(env_id, n_envs, 5).unwrap();
    let found: Vec<_> = (0..n)
        .map(|_| {
            collect::<W, _>(&mut env, &mut Linear, how, &stop)
                .unwrap()
                .unwrap()
        })
        .collect();

    let mut env = VecEnv::<Member<PerEnvObs, MapInfo>>::new(env_id, n_envs, 5).unwrap();
    env.reset(Reset::default()).unwrap();
    let plain: Vec<_> = (0..n).map(|_| plain::rollout(&mut env, how)).collect();
    // Sine and cosine of P19 are not the library's; steps on end make that no more than this.
    let p19 = type_name::<W::Stepping>() == type_name::<Lanes>();
    let tolerance = if p19 { 1e-6 } else { 1e-12 };
    golden_within(tolerance, &[W::P14, p19], name, &found, &plain);
    let ended = |of: fn(&_) -> &Vec<bool>| found.iter().any(|rollout| of(rollout).contains(&true));
    assert!(ended(|rollout| &rollout.truncated) || n_steps * n < 500);
    assert!(ended(|rollout| &rollout.terminated) || env_id != "CartPole-v1");
}

fn rollouts_of_cartpole<W: Wiring>(name: &str) {
    rollouts::<W>(name, "CartPole-v1", 5, 128, 5);
}

fn rollouts_of_pendulum<W: Wiring>(name: &str) {
    rollouts::<W>(name, "Pendulum-v1", 3, 128, 5);
}

/// So many that a step, and the advantages, are shared among threads.
fn rollouts_of_many_environments<W: Wiring>(name: &str) {
    rollouts::<W>(name, "CartPole-v1", PARALLEL_ENVS + 8, 33, 2);
}

/// Stores a transition in one of the ways there are, over the end of the ring and beyond.
fn push<B: Replay<f32>>(buffer: &mut B, how: u64, transition: &Stored) {
    match how % 2 {
        0 => intake::push(buffer, transition.view()),
        _ => buffer.append(&transition.as_batch()),
    }
    .unwrap();
}

/// Draws, keeps a column and gives the rest back, as the binding does; every third time the batch
/// stays away.
fn sample<B: Replay<f32>>(buffer: &mut B, call: u64, written: &mut String) {
    let seed = call.is_multiple_of(5).then_some(call);
    let mut batch = buffer.sample(1 + (call % 40) as usize, seed).unwrap();
    written.push_str(&format!("{batch:?}"));
    drop(B::export(&mut batch.obs));
    if !call.is_multiple_of(3) {
        buffer.give_back(batch);
    }
}

fn uniform_samples<W: Wiring>(name: &str) {
    uniform::<W>(name, 3);
}

fn uniform_samples_of_wide_observations<W: Wiring>(name: &str) {
    uniform::<W>(name, WIDE / size_of::<f32>());
}

fn uniform<W: Wiring>(name: &str, obs_dim: usize) {
    let mut buffer = RingBuffer::<f32, W>::new(50, obs_dim, ACT_DIM, 3).unwrap();
    let (mut plain, mut rng) = (Uniform::new(50, obs_dim, 3), rng());
    let (mut found, mut expected) = (String::new(), String::new());
    let mut transition = None;
    for call in 0..300 {
        let next = Stored::draw(&mut rng, obs_dim, transition.as_ref());
        let transition = transition.insert(next);
        push(&mut buffer, rng.next_u64(), transition);
        plain.push(transition);
        sample(&mut buffer, call, &mut found);
        let batch = plain.sample(
            1 + (call % 40) as usize,
            call.is_multiple_of(5).then_some(call),
        );
        expected.push_str(&format!("{batch:?}"));
    }
    golden(name, &found, &expected);
}

fn prioritised_samples<W: Wiring>(name: &str) {
    prioritised::<W>(name, 3);
}

fn prioritised_samples_of_wide_observations<W: Wiring>(name: &str) {
    prioritised::<W>(name, WIDE / size_of::<f32>());
}

/// Priorities are set all the while, zeros among them, and overwritten by the ring's next turn.
fn prioritised<W: Wiring>(name: &str, obs_dim: usize) {
    let mut buffer = PriorityBuffer::<f32, W>::new(50, obs_dim, ACT_DIM, 0.6, 0.4, 3).unwrap();
    let (mut plain, mut rng) = (Prioritized::new(50, obs_dim, 0.6, 0.4, 3), rng());
    let (mut found, mut expected) = (String::new(), String::new());
    let mut transition = None;
    for call in 0..300 {
        let next = Stored::draw(&mut rng, obs_dim, transition.as_ref());
        let transition = transition.insert(next);
        push(&mut buffer, rng.next_u64(), transition);
        plain.push(transition);
        let rows = buffer.storage().len() as u64;
        let indices: Vec<i64> = (0..6).map(|_| (rng.next_u64() % rows) as i64).collect();
        // The smallest one has to rise as well, once the ring has overwritten it.
        let growth = 1.0 + call as f64 / 64.0;
        let priorities: Vec<f64> = (0..6)
            .map(|_| growth * [0.0, 0.125, 1.0, 2.5][(rng.next_u64() % 4) as usize])
            .collect();
        // The newest row keeps its priority above zero, so that there is something to draw.
        if indices.iter().all(|&index| index != call as i64 % 50) {
            buffer.update_priorities(&indices, &priorities).unwrap();
            plain.update(&indices, &priorities);
        }
        sample(&mut buffer, call, &mut found);
        let batch = plain.sample(
            1 + (call % 40) as usize,
            call.is_multiple_of(5).then_some(call),
        );
        expected.push_str(&format!("{batch:?}"));
    }
    golden(name, &found, &expected);
}

/// On either side of both thresholds: many short rows, few long ones.
fn llm_operations<W: Wiring>(name: &str) {
    let mut rng = rng();
    let (mut found, mut plain) = (Vec::new(), Vec::new());
    for (rows, length) in [(1, 7), (16, 16), (4, 2_048), (40, 256)] {
        let n = rows * length;
        let (policy, reference) = (numbers(&mut rng, n), numbers(&mut rng, n));
        let mask: Vec<u8> = flags(&mut rng, n).into_iter().map(u8::from).collect();
        for mask in [None, Some(&mask[..])] {
            found.push(Ops::<W>::compute_token_kl(&policy, &reference, mask, rows).unwrap());
            let mut sums = vec![0.0; rows];
            token_kl::baseline::k3_sums::<ByRows, f64>(&policy, &reference, mask, &mut sums);
            plain.push(sums);
        }
        found.push(Ops::<W>::compute_group_advantages(&policy, length, 1e-8).unwrap());
        let mut advantages = vec![0.0; n];
        group_advantages::baseline::normalise::<ByRows, f64>(
            &policy,
            length,
            1e-8,
            &mut advantages,
        );
        plain.push(advantages);
    }
    golden_within(1e-12, &[W::P16, W::P17], name, &found, &plain);
}

/// So many multiples of 1/1024 for rewards, values and logarithms of weights, and ends of episodes.
fn sequence(n: usize) -> [Vec<f32>; 4] {
    let mut rng = rng();
    let [rewards, values, log_rhos] = [(); 3].map(|()| narrow(&numbers(&mut rng, n)));
    let dones = flags(&mut rng, n).into_iter();
    let dones = dones.map(|done| f32::from(u8::from(done))).collect();
    [rewards, values, log_rhos, dones]
}

fn gae_of_one_sequence<W: Wiring>(name: &str) {
    let (n, [rewards, values, _, dones]) = (700, sequence(700));
    let found = compute_gae::<W, _>(&rewards, &values, &dones, 0.5, 0.99, 0.95).unwrap();
    let mut advantages = vec![0.0; n];
    gae::baseline::advantages(&rewards, &values, &dones, 0.5, 0.99, 0.95, &mut advantages);
    let returns: Vec<f32> = advantages.iter().zip(&values).map(|(a, v)| a + v).collect();
    golden_within(1e-4, &[W::P14], name, &found, &(advantages, returns));
}

fn vtrace_of_one_sequence<W: Wiring>(name: &str) {
    let (n, [rewards, values, log_rhos, dones]) = (700, sequence(700));
    let found =
        compute_vtrace::<W, _>(&log_rhos, &rewards, &values, &dones, 0.5, 0.99, 1.0, 0.75).unwrap();
    let (mut vs, mut advantages) = (vec![0.0; n], vec![0.0; n]);
    vtrace::baseline::targets(
        &log_rhos,
        &rewards,
        &values,
        &dones,
        0.5,
        0.99,
        1.0,
        0.75,
        &mut vs,
        &mut advantages,
    );
    golden_within(1e-4, &[W::P18], name, &found, &(vs, advantages));
}
