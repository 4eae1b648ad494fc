//! scratch
#![allow(missing_docs, clippy::unwrap_used)]
use rlox_core::nn::adam::Moments;
use rlox_core::nn::sac::*;
use rlox_core::nn::*;
use std::time::Instant;
fn main() {
    let two = std::env::args().any(|a| a == "2");
    let reps: usize = std::env::args()
        .filter_map(|a| a.parse().ok())
        .find(|&n| n > 2)
        .unwrap_or(300);
    let n = 256;
    let numbers = |len: usize, scale: f32| {
        (0..len)
            .map(|i| ((i as f32 * 0.618_034).fract() - 0.5) * scale)
            .collect::<Vec<f32>>()
    };
    let mlp = Mlp::new(&[256, 256], Activation::Relu).unwrap();
    let params = numbers(mlp.n_params(), 0.1);
    let x = numbers(n * 256, 1.0);
    let g = numbers(n * 256, 1.0);
    let (mut acts, mut grad, mut gx) = (
        Activations::default(),
        vec![0.0; mlp.n_params()],
        vec![0.0; n * 256],
    );
    let mut best = [f64::MAX; 4];
    let time = |best: &mut f64, f: &mut dyn FnMut()| {
        let t = Instant::now();
        f();
        *best = best.min(t.elapsed().as_secs_f64() * 1e6);
    };
    let mut packed = Packed::default();
    let actor = Mlp::new(&[3, 256, 256, 2], Activation::Relu).unwrap();
    let critic = Mlp::new(&[4, 256, 256, 1], Activation::Relu).unwrap();
    let sizes = [actor.n_params(), 2 * critic.n_params()];
    let mut sac = Sac::new(actor, [critic.clone(), critic]).unwrap();
    let (mut a, mut c, mut l) = (numbers(sizes[0], 0.1), numbers(sizes[1], 0.1), vec![0.0f32]);
    c[70] += 0.3;
    let mut m = [
        vec![0.0; sizes[0]],
        vec![0.0; sizes[0]],
        vec![0.0; sizes[1]],
        vec![0.0; sizes[1]],
        vec![0.0],
        vec![0.0],
    ];
    let mut targets = c.clone();
    let (obs, act, rew, noise) = (
        numbers(n * 3, 2.0),
        numbers(n, 2.0),
        numbers(n, 3.0),
        numbers(n, 3.0),
    );
    let adam = (
        adam::Adam {
            lr: 3e-4,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
        },
        100,
    );
    let settings = Settings {
        gamma: 0.99,
        tau: 0.005,
        target_entropy: -1.0,
        actor: adam,
        critic: adam,
        alpha: Some(adam),
    };
    let done = vec![false; n];
    let mut update = |two| {
        let [m1, m2, m3, m4, m5, m6] = &mut m;
        sac.update(
            Learners {
                actor: Moments {
                    params: &mut a,
                    exp_avg: m1,
                    exp_avg_sq: m2,
                },
                critics: Moments {
                    params: &mut c,
                    exp_avg: m3,
                    exp_avg_sq: m4,
                },
                targets: &mut targets,
                log_alpha: Moments {
                    params: &mut l,
                    exp_avg: m5,
                    exp_avg_sq: m6,
                },
            },
            &Batch {
                obs: &obs,
                action: &act,
                reward: &rew,
                next_obs: &obs,
                terminated: &done,
                weights: None,
                next_noise: &noise,
                noise: &noise,
            },
            &settings,
            two,
        )
        .unwrap();
    };
    for _ in 0..reps {
        time(&mut best[0], &mut || mlp.pack(&params, &mut packed));
        time(&mut best[1], &mut || {
            mlp.forward_packed(&packed, &x, n, &mut acts);
        });
        time(&mut best[2], &mut || {
            mlp.backward(&params, &x, n, &mut acts, &g, &mut grad, Some(&mut gx))
        });
        time(&mut best[3], &mut || update(two));
    }
    println!(
        "pack {:.1} us, forward 256^3 {:.1} us, backward (two 256^3) {:.1} us, update {:.1} us",
        best[0], best[1], best[2], best[3]
    );
}
