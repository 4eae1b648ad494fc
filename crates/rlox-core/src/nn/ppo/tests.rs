//! What must hold of an update. Tests in Python compare the gradients with autograd's.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::nn::Activation;
use crate::nn::tests::numbers;

/// An actor-critic with its moments, and a rollout.
struct Case {
    actor: Mlp,
    critic: Mlp,
    /// Parameters, means and mean squares of actor, critic and log_std.
    state: [[Vec<f32>; 3]; 3],
    obs: Vec<f32>,
    discrete: Vec<i64>,
    continuous: Vec<f32>,
    columns: [Vec<f32>; 3],
}

impl Case {
    fn new(n: usize, hidden: usize, n_out: usize) -> Self {
        let actor = Mlp::new(&[3, hidden, n_out], Activation::Tanh).unwrap();
        let critic = Mlp::new(&[3, hidden, hidden, 1], Activation::Relu).unwrap();
        let start = |n, salt| [numbers(n, 0.5, salt), vec![0.0; n], vec![0.0; n]];
        Self {
            state: [
                start(actor.n_params(), 1),
                start(critic.n_params(), 2),
                start(n_out, 3),
            ],
            actor,
            critic,
            obs: numbers(n * 3, 1.0, 4),
            discrete: (0..n).map(|i| (i * 7 % n_out) as i64).collect(),
            continuous: numbers(n * n_out, 1.0, 5),
            columns: [6, 7, 8].map(|salt| numbers(n, 1.0, salt)),
        }
    }

    fn update(
        &mut self,
        gaussian: bool,
        order: &[i64],
        threads: usize,
    ) -> Result<Figures, RloxError> {
        let (policy, rollout) = self.parts(gaussian);
        PPO.update(policy, &rollout, order, 0, threads)
    }

    fn parts(&mut self, gaussian: bool) -> (ActorCritic<'_>, RolloutData<'_>) {
        let [actor, critic, log_std] = &mut self.state;
        let policy = ActorCritic {
            actor: Network {
                mlp: &self.actor,
                moments: moments(actor),
            },
            critic: Network {
                mlp: &self.critic,
                moments: moments(critic),
            },
            log_std: gaussian.then(|| moments(log_std)),
        };
        let actions = if gaussian {
            SampledActions::Continuous(&self.continuous)
        } else {
            SampledActions::Discrete(&self.discrete)
        };
        let [log_probs, advantages, returns] = &self.columns;
        let rollout = RolloutData {
            obs: &self.obs,
            actions,
            log_probs,
            advantages,
            returns,
        };
        (policy, rollout)
    }
}

fn moments([params, exp_avg, exp_avg_sq]: &mut [Vec<f32>; 3]) -> Moments<'_> {
    Moments {
        params,
        exp_avg,
        exp_avg_sq,
    }
}

const PPO: Ppo = Ppo {
    batch_size: 50,
    clip_range: 0.2,
    normalize_advantage: true,
    ent_coef: 0.01,
    vf_coef: 0.5,
    clip_range_vf: None,
    target_kl: None,
    max_grad_norm: 0.5,
    adam: Adam {
        lr: 1e-2,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-5,
    },
    by_columns: true,
};

fn order(n: usize, epochs: usize) -> Vec<i64> {
    (0..epochs * n).map(|i| (i % n * 77 % n) as i64).collect()
}

#[test]
fn two_threads_do_to_the_bit_what_one_does() {
    for gaussian in [false, true] {
        let (n, hidden) = (997, 32);
        let mut cases = [1, 2].map(|threads| (threads, Case::new(n, hidden, 3)));
        let figures = cases.each_mut().map(|(threads, case)| {
            let work = 4 * n * (case.actor.n_params() + case.critic.n_params());
            assert!(work >= PARALLEL_WORK);
            case.update(gaussian, &order(n, 4), *threads).unwrap()
        });
        assert_eq!(figures[0], figures[1]);
        assert_eq!(cases[0].1.state, cases[1].1.state);
        assert!(figures[0].value_loss.is_finite() && figures[0].approx_kl != 0.0);
    }
}

#[test]
fn by_columns_the_loss_is_the_same_to_the_bit() {
    for (gaussian, n_out) in [
        (false, 1),
        (false, 2),
        (false, 3),
        (false, 18),
        (true, 2),
        (true, 3),
    ] {
        let [before, after] = [false, true].map(|by_columns| {
            let mut case = Case::new(130, 8, n_out);
            let (policy, rollout) = case.parts(gaussian);
            let ppo = Ppo { by_columns, ..PPO };
            let figures = ppo.update(policy, &rollout, &order(130, 2), 0, 1).unwrap();
            let numbers = case.state.as_flattened().concat().into_iter();
            (figures, numbers.map(f32::to_bits).collect::<Vec<_>>())
        });
        assert_eq!(before, after);
    }
}

#[test]
fn rows_of_any_width_are_gathered() {
    for width in 1..10 {
        let from = numbers(7 * width, 1.0, 1);
        for by_columns in [false, true] {
            let (batch, mut to) = ([6, 0, 3, 3], vec![1.0]);
            Ppo { by_columns, ..PPO }.gather(&from, width, &batch, &mut to);
            let rows = batch.map(|i| &from[i as usize * width..][..width]);
            assert_eq!(to, rows.concat());
        }
    }
}

/// The actor's side, which waits in each round until the helper has begun the critic's.
struct Waits<'a, A, C> {
    side: A,
    critic: &'a Offer<C>,
    helped: usize,
}

impl<A: Side, C> Side for Waits<'_, A, C> {
    fn gradient(&mut self, rollout: &RolloutData<'_>, batch: &[i64]) -> Option<f64> {
        self.helped += usize::from(self.critic.is_taken());
        self.side.gradient(rollout, batch)
    }

    fn step(&mut self, t: u64, scale: f32) {
        self.side.step(t, scale);
    }
}

#[test]
fn who_does_the_critics_side_does_not_change_a_bit() {
    let n = 500;
    let order = order(n, 4);
    let mut alone = Case::new(n, 16, 3);
    let figures = alone.update(false, &order, 1).unwrap();
    // On a busy machine the helper is not asked for some time, so it is tried many times.
    let mut helped = 0;
    for _ in 0..10_000 {
        let mut case = Case::new(n, 16, 3);
        let (policy, rollout) = case.parts(false);
        let actor = Actor::new(&PPO, policy.actor, policy.log_std, PPO.batch_size).unwrap();
        let critic = Critic::new(&PPO, policy.critic, PPO.batch_size).unwrap();
        let critic = Offer::new(Round::new(critic));
        let mut actor = Waits {
            side: actor,
            critic: &critic,
            helped: 0,
        };
        std::thread::scope(|scope| {
            let helper = scope.spawn(|| {
                let _flush = FlushDenormals::new();
                critic.help(|round| round.run(&rollout));
            });
            let _closing = critic.closing(|| helper.thread().unpark());
            let minibatches = order
                .chunks(n)
                .flat_map(|epoch| epoch.chunks(PPO.batch_size));
            let helper = Some(helper.thread());
            let pace = Pace::new(2.0);
            PPO.learn(
                &mut actor,
                &critic,
                helper,
                pace,
                &rollout,
                minibatches.zip(1..),
            );
        });
        let Waits {
            side: actor,
            helped: again,
            ..
        } = actor;
        helped += again;
        let critic = critic.into_work().settled();
        assert_eq!(PPO.figures(&actor, &critic), figures);
        drop((actor, critic));
        assert_eq!(case.state, alone.state);
        if helped > 10 {
            return;
        }
    }
    panic!("no helper came");
}

#[test]
fn what_a_helper_leaves_when_it_panics_is_not_held_to_be_done() {
    let offer = Offer::new(0);
    std::thread::scope(|scope| {
        let helper = scope.spawn(|| {
            offer.help(|work| {
                *work += 1;
                panic!("as it must");
            });
        });
        offer.open(|| helper.thread().unpark());
        assert!(offer.is_taken());
        assert!(offer.finish(true, |_| ()) == Done::Half);
        drop(offer.closing(|| helper.thread().unpark()));
        assert!(helper.join().is_err());
    });
    assert_eq!(*offer.work(), 1);
}

#[test]
fn gradients_are_clipped_as_torch_clips_them() {
    assert_eq!(clip_scale(0.04, 0.5), 1.0);
    assert!((clip_scale(4.0, 0.5) - 0.25).abs() < 1e-6);
    assert_eq!(clip_scale(f64::INFINITY, 0.5), 0.0);
    assert!(clip_scale(f64::NAN, 0.5).is_nan());
}

#[test]
fn a_diverged_critic_shows_in_the_actor_too() {
    let mut case = Case::new(10, 8, 3);
    case.columns[2][4] = f32::NAN;
    assert!(case.update(false, &order(10, 1), 1).is_ok());
    assert!(case.state[0][0].iter().all(|param| param.is_nan()));
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut case = Case::new(10, 8, 3);
    assert!(case.update(false, &[], 1).is_err());
    assert!(case.update(false, &order(9, 1), 1).is_err());
    assert!(case.update(false, &[10; 10], 1).is_err());
    assert!(case.update(false, &[-1; 10], 1).is_err());
    case.discrete[3] = 3;
    assert!(case.update(false, &order(10, 1), 1).is_err());
    case.continuous.pop();
    assert!(case.update(true, &order(10, 1), 1).is_err());
}

proptest! {
    #[test]
    fn a_step_of_adam_follows_the_paper(
        n in 0usize..70,
        t in 1u64..1000,
        scale in 0.0f32..1.0,
        salt in any::<u64>(),
    ) {
        let adam = PPO.adam;
        let (mut params, mut m) = (numbers(n, 1.0, salt), numbers(n, 1.0, salt ^ 1));
        let mut v: Vec<f32> = numbers(n, 1.0, salt ^ 2).iter().map(|v| v * v).collect();
        let grad = numbers(n, 1.0, salt ^ 3);
        let expected: Vec<f64> = (0..n)
            .map(|i| {
                let g = f64::from(scale) * f64::from(grad[i]);
                let m = adam.beta1 * f64::from(m[i]) + (1.0 - adam.beta1) * g;
                let v = adam.beta2 * f64::from(v[i]) + (1.0 - adam.beta2) * g * g;
                let m_hat = m / (1.0 - adam.beta1.powf(t as f64));
                let v_hat = v / (1.0 - adam.beta2.powf(t as f64));
                f64::from(params[i]) - adam.lr * m_hat / (v_hat.sqrt() + adam.eps)
            })
            .collect();
        let mut moments = Moments { params: &mut params, exp_avg: &mut m, exp_avg_sq: &mut v };
        adam.step(t, &mut moments, &grad, scale);
        for (found, expected) in params.iter().zip(expected) {
            prop_assert!((f64::from(*found) - expected).abs() <= 1e-5 * (1.0 + expected.abs()));
        }
    }
}
