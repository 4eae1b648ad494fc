//! What must hold of the buffers with every wiring.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::W;
use crate::buffer::min_priority::{MinPriority, MinTree};
use crate::buffer::sum_tree::SumTree;
use crate::buffer::*;

type ReplayBuffer<O> = ringbuf::RingBuffer<O, W>;
type PrioritizedReplayBuffer<O> = priority::PriorityBuffer<O, W>;

/// A transition from which its number can be read in every column.
fn numbered(i: usize) -> ExperienceRecord<f32> {
    let x = i as f32;
    ExperienceRecord {
        obs: vec![x, x + 0.5],
        next_obs: vec![x + 1.0, x + 1.5],
        action: vec![-x],
        reward: 2.0 * x,
        terminated: i.is_multiple_of(3),
        truncated: i.is_multiple_of(5),
    }
}

fn row(batch: &SampledBatch<f32>, i: usize) -> ExperienceRecord<f32> {
    ExperienceRecord {
        obs: batch.obs[2 * i..2 * i + 2].to_vec(),
        next_obs: batch.next_obs[2 * i..2 * i + 2].to_vec(),
        action: vec![batch.action[i]],
        reward: batch.reward[i],
        terminated: batch.terminated[i],
        truncated: batch.truncated[i],
    }
}

fn prioritised(capacity: usize, alpha: f64, beta: f64) -> PrioritizedReplayBuffer<f32> {
    PrioritizedReplayBuffer::new(capacity, 2, 1, alpha, beta, 0).unwrap()
}

/// A full prioritised buffer with these priorities.
fn with_priorities(priorities: &[f64], alpha: f64, beta: f64) -> PrioritizedReplayBuffer<f32> {
    let mut buffer = prioritised(priorities.len(), alpha, beta);
    for i in 0..priorities.len() {
        buffer.append(&numbered(i).as_batch()).unwrap();
    }
    let indices: Vec<i64> = (0..priorities.len() as i64).collect();
    buffer.update_priorities(&indices, priorities).unwrap();
    buffer
}

proptest! {
    /// Also with a capacity of 1, and after the ring has started over: every row that is drawn is one of
    /// the last `capacity` transitions, with all its columns, and enough draws find each of them.
    #[test]
    fn a_ring_holds_the_last_transitions_whole(
        capacity in 1usize..9, pushes in 1usize..30, seed in any::<u64>(),
    ) {
        let mut ring = ReplayBuffer::new(capacity, 2, 1, seed).unwrap();
        let mut tree = PrioritizedReplayBuffer::new(capacity, 2, 1, 0.6, 0.4, seed).unwrap();
        let mut model = VecDeque::new();
        for i in 0..pushes {
            if model.len() == capacity {
                model.pop_front();
            }
            model.push_back(numbered(i));
            ring.append(&numbered(i).as_batch()).unwrap();
            tree.append(&numbered(i).as_batch()).unwrap();
        }
        prop_assert_eq!(ring.storage().len(), model.len());
        for batch in [ring.sample(400, None).unwrap(), tree.sample(400, None).unwrap()] {
            for i in 0..400 {
                prop_assert!(model.contains(&row(&batch, i)));
            }
            for record in &model {
                prop_assert!(batch.reward.contains(&record.reward));
            }
        }
    }

    #[test]
    fn push_batch_equals_pushing_in_turn(capacity in 1usize..9, n in 0usize..20, seed in any::<u64>()) {
        let records: Vec<_> = (0..n).map(numbered).collect();
        let mut in_turn = ReplayBuffer::new(capacity, 2, 1, seed).unwrap();
        let mut at_once = ReplayBuffer::new(capacity, 2, 1, seed).unwrap();
        for buffer in [&mut in_turn, &mut at_once] {
            buffer.append(&numbered(99).as_batch()).unwrap();
        }
        let column = |f: fn(&ExperienceRecord<f32>) -> &Vec<f32>| records.iter().flat_map(f).copied().collect::<Vec<_>>();
        at_once.append(&ExperienceBatch {
            obs: &column(|r| &r.obs),
            next_obs: &column(|r| &r.next_obs),
            action: &column(|r| &r.action),
            reward: &records.iter().map(|r| r.reward).collect::<Vec<_>>(),
            terminated: &records.iter().map(|r| r.terminated).collect::<Vec<_>>(),
            truncated: &records.iter().map(|r| r.truncated).collect::<Vec<_>>(),
        }).unwrap();
        for record in records {
            in_turn.append(&record.as_batch()).unwrap();
        }
        prop_assert_eq!(in_turn.storage().len(), at_once.storage().len());
        prop_assert_eq!(in_turn.sample(50, None).unwrap(), at_once.sample(50, None).unwrap());
    }

    /// The columns hold other numbers before. Observations are narrow and wide.
    #[test]
    fn a_sample_into_columns_is_the_sample(
        capacity in 1usize..9, obs_dim in 1usize..7, n in 1usize..40, pushes in 1usize..20, seed in any::<u64>(),
    ) {
        let mut ring = ReplayBuffer::<u8>::new(capacity, obs_dim, 1, 0).unwrap();
        let mut tree = PrioritizedReplayBuffer::<u8>::new(capacity, obs_dim, 1, 0.6, 0.4, 0).unwrap();
        for i in 0..pushes {
            let x = i as u8;
            let experience = Experience {
                obs: &vec![x; obs_dim], next_obs: &vec![x + 1; obs_dim], action: &[f32::from(x)],
                reward: f32::from(x), terminated: i.is_multiple_of(3), truncated: i.is_multiple_of(5),
            };
            ring.append(&experience.as_batch()).unwrap();
            tree.append(&experience.as_batch()).unwrap();
        }
        let expected = [ring.sample(n, Some(seed)).unwrap(), tree.sample(n, Some(seed)).unwrap()];
        let mut found = expected.clone();
        for batch in &mut found {
            batch.obs.fill(99);
            batch.next_obs.fill(99);
            batch.action.fill(99.0);
            batch.reward.fill(99.0);
            batch.terminated.fill(true);
            batch.truncated.fill(true);
            batch.weights.fill(99.0);
            batch.indices.fill(99);
        }
        ring.sample_into(Some(seed), &mut found[0].columns()).unwrap();
        tree.sample_into(Some(seed), &mut found[1].columns()).unwrap();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_sum_tree_agrees_with_a_plain_sum(
        capacity in 1usize..40, sets in vec((any::<prop::sample::Index>(), prop_oneof![Just(0.0), 0.0..10.0]), 1..60),
        at in 0.0..1.0f64,
    ) {
        let mut tree = SumTree::new::<W>(capacity).unwrap();
        let mut plain = vec![0.0; capacity];
        for (index, value) in sets {
            let index = index.index(capacity);
            tree.set(index, value);
            plain[index] = value;
        }
        let total: f64 = plain.iter().sum();
        prop_assert_eq!(tree.first(capacity), &plain[..]);
        prop_assert!((tree.total() - total).abs() <= 1e-9);
        if total > 0.0 {
            let prefix = at * tree.total();
            let found = tree.find(prefix);
            let before: f64 = plain[..found].iter().sum();
            prop_assert!(plain[found] > 0.0);
            prop_assert!(before - 1e-9 <= prefix && prefix <= before + plain[found] + 1e-9);
            prop_assert!(plain[tree.find(tree.total() * 1.5)] > 0.0);
        }
    }

    #[test]
    fn weights_are_the_papers_and_zero_priorities_are_never_drawn(
        priorities in vec(prop_oneof![Just(0.0), 1e-3..10.0], 1..30),
        alpha in 0.1..1.0, beta in 0.0..1.0, batch_size in 1usize..64,
    ) {
        prop_assume!(priorities.iter().any(|&p| p > 0.0));
        let mut buffer = with_priorities(&priorities, alpha, beta);
        let batch = buffer.sample(batch_size, None).unwrap();
        let n = priorities.len() as f64;
        let total: f64 = priorities.iter().map(|p| p.powf(alpha)).sum();
        let weight = |p: f64| (n * p.powf(alpha) / total).powf(-beta);
        let max = priorities.iter().filter(|&&p| p > 0.0).map(|&p| weight(p)).fold(0.0, f64::max);
        for (&index, &found) in batch.indices.iter().zip(&batch.weights) {
            let priority = priorities[index as usize];
            prop_assert!(priority > 0.0);
            prop_assert!((f64::from(found) - weight(priority) / max).abs() < 1e-6);
        }
    }

    /// One row is drawn from each stratum, so only the strata at the two ends of a row's interval may draw
    /// it or another. A row is drawn within two of its expected number of times.
    #[test]
    fn strata_bound_how_often_a_row_is_drawn(
        priorities in vec(0.1..10.0, 1..20), batch_size in 1usize..200, seed in any::<u64>(),
    ) {
        let mut buffer = with_priorities(&priorities, 1.0, 0.4);
        let batch = buffer.sample(batch_size, Some(seed)).unwrap();
        let total: f64 = priorities.iter().sum();
        for (i, priority) in priorities.iter().enumerate() {
            let drawn = batch.indices.iter().filter(|&&index| index == i as i64).count() as f64;
            let expected = batch_size as f64 * priority / total;
            prop_assert!((drawn - expected).abs() < 2.0, "{drawn} {expected}");
        }
    }
}

/// Pearson's statistic of counts against expectations.
fn chi_square(counts: &[f64], expected: &[f64]) -> f64 {
    counts
        .iter()
        .zip(expected)
        .map(|(n, e)| (n - e).powi(2) / e)
        .sum()
}

fn count(rewards: &[f32], n: usize) -> Vec<f64> {
    let mut counts = vec![0.0; n];
    for reward in rewards {
        counts[(reward / 2.0) as usize] += 1.0;
    }
    counts
}

#[test]
fn uniform_samples_are_uniform() {
    let mut ring = ReplayBuffer::new(20, 2, 1, 7).unwrap();
    (0..20).for_each(|i| ring.append(&numbered(i).as_batch()).unwrap());
    let batch = ring.sample(20_000, None).unwrap();
    // The 99.9 % quantile of chi-square with 19 degrees of freedom.
    assert!(chi_square(&count(&batch.reward, 20), &[1000.0; 20]) < 43.8);
}

#[test]
fn prioritised_samples_are_proportional() {
    let priorities: Vec<f64> = (1..=20).map(f64::from).collect();
    let mut buffer = with_priorities(&priorities, 0.6, 0.4);
    let total: f64 = priorities.iter().map(|p| p.powf(0.6)).sum();
    // One row is drawn at a time, without strata: with them counts vary less than Pearson's test assumes.
    let rewards: Vec<f32> = (0..20_000)
        .flat_map(|_| buffer.sample(1, None).unwrap().reward)
        .collect();
    let expected: Vec<f64> = priorities
        .iter()
        .map(|p| 20_000.0 * p.powf(0.6) / total)
        .collect();
    assert!(chi_square(&count(&rewards, 20), &expected) < 43.8);
}

#[test]
fn a_seed_means_the_same_everywhere() {
    let mut ring = ReplayBuffer::new(100, 2, 1, 42).unwrap();
    (0..100).for_each(|i| ring.append(&numbered(i).as_batch()).unwrap());
    let own = ring.sample(8, None).unwrap().reward;
    assert_eq!(own, ring.sample(8, Some(42)).unwrap().reward);
    assert_ne!(own, ring.sample(8, None).unwrap().reward);
    assert_ne!(own, ring.sample(8, Some(1)).unwrap().reward);
    // The numbers are written down, so that the test fails where another platform or version draws others.
    assert_eq!(own, [136.0, 190.0, 84.0, 124.0, 56.0, 28.0, 60.0, 160.0]);
}

#[test]
fn new_transitions_get_the_largest_priority() {
    let mut buffer = prioritised(3, 1.0, 1.0);
    buffer.append(&numbered(0).as_batch()).unwrap();
    buffer.update_priorities(&[0], &[8.0]).unwrap();
    buffer.append(&numbered(1).as_batch()).unwrap();
    buffer.update_priorities(&[0], &[2.0]).unwrap();
    let batch = buffer.sample(1000, None).unwrap();
    assert_eq!(batch.indices.iter().filter(|&&i| i == 1).count(), 800);
}

#[test]
fn bytes_come_back_as_bytes() {
    let mut ring = ReplayBuffer::<u8>::new(1, 3, 1, 0).unwrap();
    let experience = Experience {
        obs: &[0, 128, 255],
        next_obs: &[1, 2, 3],
        action: &[0.5],
        reward: 1.0,
        terminated: false,
        truncated: true,
    };
    ring.append(&experience.as_batch()).unwrap();
    let batch = ring.sample(2, None).unwrap();
    assert_eq!(batch.obs, [0, 128, 255, 0, 128, 255]);
    assert_eq!(batch.next_obs, [1, 2, 3, 1, 2, 3]);
}

#[test]
fn a_bad_batch_leaves_the_buffer_as_it_was() {
    let mut ring = ReplayBuffer::<f32>::new(4, 1, 1, 0).unwrap();
    let error = ring.append(&ExperienceBatch {
        obs: &[1.0, 2.0],
        next_obs: &[1.0, 2.0],
        action: &[1.0, 2.0],
        reward: &[1.0, f32::NAN],
        terminated: &[false; 2],
        truncated: &[false; 2],
    });
    assert_eq!(
        error.unwrap_err().to_string(),
        "reward: is NaN at index 1, expected finite numbers"
    );
    assert!(ring.storage().is_empty());
}

#[test]
fn mistakes_are_named() {
    let mut ring = ReplayBuffer::new(2, 2, 1, 0).unwrap();
    let starts = |error: crate::RloxError, text: &str| {
        let message = error.to_string();
        assert!(message.starts_with(text), "{message}");
    };
    starts(ring.sample(1, None).unwrap_err(), "the buffer is empty");
    type Spoil = fn(&mut ExperienceRecord<f32>);
    let bad: [(Spoil, _); 4] = [
        (|one| one.obs.clear(), "obs: "),
        (|one| one.next_obs.clear(), "next_obs: "),
        (|one| one.action.clear(), "action: "),
        (|one| one.reward = f32::NAN, "reward: "),
    ];
    for (spoil, text) in bad {
        let mut one = numbered(0);
        spoil(&mut one);
        starts(ring.append(&one.as_batch()).unwrap_err(), text);
    }
    ring.append(&numbered(0).as_batch()).unwrap();
    starts(ring.sample(0, None).unwrap_err(), "batch_size: ");
    starts(ring.sample(1 << 60, None).unwrap_err(), "batch_size: ");
    let mut columns = ring.sample(3, None).unwrap();
    columns.obs.pop();
    let short = ring.sample_into(None, &mut columns.columns());
    starts(short.unwrap_err(), "obs: has length 5, expected 6");
    starts(
        ReplayBuffer::<f32>::new(0, 1, 1, 0).unwrap_err(),
        "capacity: ",
    );
    starts(
        ReplayBuffer::<f32>::new(usize::MAX, 2, 1, 0).unwrap_err(),
        "capacity: ",
    );
    starts(
        ReplayBuffer::<f32>::new(1 << 60, 1, 1, 0).unwrap_err(),
        "capacity: ",
    );
    let told = "capacity: is 864691128455135233, ";
    starts(SumTree::new::<W>((3 << 58) + 1).unwrap_err(), told);
    starts(MinTree::new::<W>((3 << 58) + 1).unwrap_err(), told);
    starts(
        PrioritizedReplayBuffer::<u8>::new(1, 1, 1, -0.1, 0.4, 0).unwrap_err(),
        "alpha: ",
    );

    let mut buffer = with_priorities(&[1.0, 2.0], 2.0, 0.4);
    starts(buffer.set_beta(f64::NAN).unwrap_err(), "beta: ");
    starts(
        buffer.update_priorities(&[0], &[]).unwrap_err(),
        "priorities: ",
    );
    starts(
        buffer.update_priorities(&[-1], &[1.0]).unwrap_err(),
        "indices: ",
    );
    starts(
        buffer.update_priorities(&[2], &[1.0]).unwrap_err(),
        "indices: ",
    );
    for bad in [-1.0, f64::NAN, f64::INFINITY, 1e200] {
        starts(
            buffer.update_priorities(&[0], &[bad]).unwrap_err(),
            "priorities: ",
        );
    }
    buffer.update_priorities(&[0, 1], &[0.0, 0.0]).unwrap();
    starts(
        buffer.sample(1, None).unwrap_err(),
        "every priority is zero",
    );
}
