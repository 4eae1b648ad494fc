//! The operations of the data plane at the sizes of training, with what stands at every seam.
//!
//! Each benchmark checks its result once before it is timed.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rlox_core::buffer::{Experience, Replay};
use rlox_core::env::spaces::Actions;
use rlox_core::env::vec_env::Reset;
use rlox_core::switchboard::{Chosen, LlmOps, PrioritizedReplayBuffer, ReplayBuffer, VecEnv};
use rlox_core::training::gae::{Layout, compute_gae, compute_gae_batched};
use rlox_core::training::vtrace::compute_vtrace;

/// `n` numbers in [-1, 1), the same at every run.
fn numbers(n: usize) -> Vec<f64> {
    (0..n)
        .map(|i| (i as f64 * 0.618).fract() * 2.0 - 1.0)
        .collect()
}

/// One episode end in 200 steps.
fn dones(n: usize) -> Vec<f64> {
    (0..n)
        .map(|i| f64::from(u8::from(i % 200 == 199)))
        .collect()
}

fn gae(c: &mut Criterion) {
    let mut group = c.benchmark_group("gae");
    for n in [128, 2_048, 32_768] {
        let (rewards, values, dones) = (numbers(n), numbers(n), dones(n));
        let run = || compute_gae::<Chosen, _>(&rewards, &values, &dones, 0.5, 0.99, 0.95).unwrap();
        let (advantages, returns) = run();
        let delta = rewards[n - 1] + 0.99 * 0.5 * (1.0 - dones[n - 1]) - values[n - 1];
        assert!((advantages[n - 1] - delta).abs() < 1e-12);
        assert!((returns[0] - advantages[0] - values[0]).abs() < 1e-12);
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::from_parameter(n), |b| {
            b.iter(|| black_box(run()))
        });
    }
    group.finish();

    let mut group = c.benchmark_group("gae_batched");
    for (n_envs, n_steps) in [(8, 128), (64, 128), (256, 2_048)] {
        let n = n_envs * n_steps;
        let (rewards, values, dones, last) = (numbers(n), numbers(n), dones(n), numbers(n_envs));
        group.throughput(Throughput::Elements(n as u64));
        for (name, layout) in [
            ("step_major", Layout::StepMajor),
            ("env_major", Layout::EnvMajor),
        ] {
            let run = || {
                compute_gae_batched::<Chosen, _>(
                    &rewards, &values, &dones, &last, 0.99, 0.95, layout,
                )
                .unwrap()
            };
            let column = |x: &[f64]| match layout {
                Layout::EnvMajor => x[..n_steps].to_vec(),
                Layout::StepMajor => x.iter().step_by(n_envs).copied().collect(),
            };
            let (advantages, _) = run();
            let [rewards, values, dones] = [&rewards, &values, &dones].map(|x| column(x));
            let first =
                compute_gae::<Chosen, _>(&rewards, &values, &dones, last[0], 0.99, 0.95).unwrap();
            let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
            assert!(column(&advantages).iter().zip(&first.0).all(near));
            let id = BenchmarkId::new(name, format!("{n_envs}x{n_steps}"));
            group.bench_function(id, |b| b.iter(|| black_box(run())));
        }
    }
    group.finish();
}

fn vtrace(c: &mut Criterion) {
    let mut group = c.benchmark_group("vtrace");
    for n in [128, 10_000] {
        let (log_rhos, rewards, values, dones) = (numbers(n), numbers(n), numbers(n), dones(n));
        let run = |log_rhos: &[f64]| {
            compute_vtrace::<Chosen, _>(log_rhos, &rewards, &values, &dones, 0.5, 0.99, 1.0, 1.0)
                .unwrap()
        };
        let (on_policy, _) = run(&vec![0.0; n]);
        let (_, returns) =
            compute_gae::<Chosen, _>(&rewards, &values, &dones, 0.5, 0.99, 1.0).unwrap();
        assert!(
            on_policy
                .iter()
                .zip(&returns)
                .all(|(a, b)| (a - b).abs() < 1e-9)
        );
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::from_parameter(n), |b| {
            b.iter(|| black_box(run(&log_rhos)));
        });
    }
    group.finish();
}

fn llm(c: &mut Criterion) {
    let mut group = c.benchmark_group("token_kl");
    for (rows, n_tokens) in [(1, 128), (1, 2_048), (8, 512), (32, 64), (32, 2_048)] {
        let policy = numbers(rows * n_tokens);
        let reference: Vec<f64> = policy.iter().map(|p| p * 0.9).collect();
        let run = || LlmOps::compute_token_kl(&policy, &reference, None, rows).unwrap();
        let first: f64 = (0..n_tokens)
            .map(|i| reference[i] - policy[i])
            .map(|d| d.exp() - d - 1.0)
            .sum();
        assert!((run()[0] - first).abs() < 1e-9);
        group.throughput(Throughput::Elements((rows * n_tokens) as u64));
        let id = BenchmarkId::from_parameter(format!("{rows}x{n_tokens}"));
        group.bench_function(id, |b| b.iter(|| black_box(run())));
    }
    group.finish();

    let mut group = c.benchmark_group("group_advantages");
    for (groups, size) in [(16, 4), (256, 16), (1_024, 32)] {
        let rewards = numbers(groups * size);
        let run = || LlmOps::compute_group_advantages(&rewards, size, 1e-8).unwrap();
        assert!(run()[..size].iter().sum::<f64>().abs() < 1e-9);
        group.throughput(Throughput::Elements((groups * size) as u64));
        let id = BenchmarkId::from_parameter(format!("{groups}x{size}"));
        group.bench_function(id, |b| b.iter(|| black_box(run())));
    }
    group.finish();
}

/// A buffer with `n` transitions of `obs_dim` numbers, and the means to push one more.
fn fill(buffer: &mut impl Replay<f32>, n: usize, obs_dim: usize) -> Vec<f32> {
    let obs: Vec<f32> = numbers(obs_dim).into_iter().map(|x| x as f32).collect();
    for i in 0..n {
        buffer
            .append(&experience(&obs, i as f32).as_batch())
            .unwrap();
    }
    obs
}

fn experience(obs: &[f32], reward: f32) -> Experience<'_, f32> {
    Experience {
        obs,
        next_obs: obs,
        action: &[0.5],
        reward,
        terminated: false,
        truncated: false,
    }
}

fn buffers(c: &mut Criterion) {
    let mut group = c.benchmark_group("push");
    for (obs_dim, capacity) in [(4, 100_000), (28_224, 1_000)] {
        let mut ring = ReplayBuffer::new(capacity, obs_dim, 1, 0).unwrap();
        let obs = fill(&mut ring, capacity, obs_dim);
        assert_eq!(ring.sample(1, None).unwrap().obs, obs);
        group.throughput(Throughput::Bytes(8 * obs_dim as u64));
        group.bench_function(BenchmarkId::from_parameter(obs_dim), |b| {
            b.iter(|| {
                ring.append(&black_box(experience(&obs, 1.0)).as_batch())
                    .unwrap()
            });
        });
    }
    group.finish();

    let mut group = c.benchmark_group("sample");
    let cases: [(_, _, &[usize]); 2] =
        [(4, 100_000, &[32, 256, 1_024]), (28_224, 1_000, &[32, 256])];
    for (obs_dim, capacity, batch_sizes) in cases {
        let mut ring = ReplayBuffer::new(capacity, obs_dim, 1, 0).unwrap();
        fill(&mut ring, capacity, obs_dim);
        for &batch_size in batch_sizes {
            let batch = ring.sample(batch_size, None).unwrap();
            assert!(batch.reward.iter().all(|&r| (r as usize) < capacity));
            group.throughput(Throughput::Elements(batch_size as u64));
            let id = BenchmarkId::new(format!("obs_dim={obs_dim}"), batch_size);
            group.bench_function(id, |b| {
                b.iter(|| {
                    let batch = black_box(ring.sample(batch_size, None).unwrap());
                    ring.give_back(batch);
                });
            });
        }
    }
    group.finish();

    let mut group = c.benchmark_group("per");
    for capacity in [1_000, 100_000] {
        let mut buffer = PrioritizedReplayBuffer::new(capacity, 4, 1, 0.6, 0.4, 0).unwrap();
        fill(&mut buffer, capacity, 4);
        let batch = buffer.sample(256, None).unwrap();
        assert!(batch.weights.iter().all(|&weight| weight == 1.0));
        let priorities: Vec<f64> = numbers(256).iter().map(|x| x + 1.5).collect();
        group.bench_function(BenchmarkId::new("sample_256", capacity), |b| {
            b.iter(|| {
                let batch = black_box(buffer.sample(256, None).unwrap());
                buffer.give_back(batch);
            });
        });
        group.bench_function(BenchmarkId::new("update_256", capacity), |b| {
            b.iter(|| {
                buffer
                    .update_priorities(&batch.indices, &priorities)
                    .unwrap()
            });
        });
    }
    group.finish();
}

fn env_step(c: &mut Criterion) {
    let mut group = c.benchmark_group("env_step");
    for n_envs in [1, 8, 64, 1_024] {
        let mut env = VecEnv::new("CartPole-v1", n_envs, 0).unwrap();
        env.reset(Reset::default()).unwrap();
        let actions: Vec<i64> = (0..n_envs as i64).map(|i| i % 2).collect();
        let step = env.step(Actions::Discrete(&actions)).unwrap();
        assert!(step.rewards.iter().all(|&reward| reward == 1.0));
        group.throughput(Throughput::Elements(n_envs as u64));
        group.bench_function(BenchmarkId::new("CartPole-v1", n_envs), |b| {
            b.iter(|| {
                black_box(env.step(Actions::Discrete(&actions)).unwrap());
            });
        });
    }
    group.finish();
}

criterion_group!(benches, gae, vtrace, llm, buffers, env_step);
criterion_main!(benches);
