//! The steps by our own networks.

use rlox_core::nn::adam::{Adam, Moments};
use rlox_core::nn::ppo::{ActorCritic, Network, Ppo, RolloutData, SampledActions};
use rlox_core::nn::sac::squashed;
use rlox_core::nn::{Activations, FlushDenormals, Mlp};

use crate::cases::{
    ACTOR, Activation, Arm, CLIP_RANGE, CRITIC, CRITIC_ROWS, ENT_COEF, EPS, LAYER, LAYER_ROWS, LR,
    Minibatch, Q_NET, SECOND, Step, VALUE_NET, VF_COEF, critic_inputs, draw_inputs, layer_inputs,
    params,
};

const ADAM: Adam = Adam {
    lr: LR,
    beta1: 0.9,
    beta2: 0.999,
    eps: EPS,
};

pub(crate) fn arm(step: Step) -> Box<dyn Arm> {
    match step {
        Step::Dqn => Box::new(Dqn {
            q: Learner::new(&Q_NET, Activation::Relu, 0),
            target: Learner::new(&Q_NET, Activation::Relu, SECOND),
            batch: Minibatch::new(),
            grad_q: Vec::new(),
        }),
        Step::Ppo => Box::new(PpoStep {
            actor: Learner::new(&Q_NET, Activation::Tanh, 0),
            critic: Learner::new(&VALUE_NET, Activation::Tanh, SECOND),
            batch: Minibatch::new(),
            order: (0..Minibatch::N as i64).collect(),
        }),
        Step::Actor => {
            let (obs, noise) = draw_inputs();
            Box::new(Draw {
                actor: Learner::new(&ACTOR, Activation::Relu, 0),
                obs,
                noise,
                drawn: [0.0; 2],
            })
        }
        Step::Critics => {
            let (x, y) = critic_inputs();
            Box::new(Critics {
                twins: [0, SECOND].map(|start| Learner::new(&CRITIC, Activation::Relu, start)),
                x,
                y,
                grad_q: Vec::new(),
            })
        }
        Step::Layer => Box::new(Layer {
            layer: Learner::new(&LAYER, Activation::Relu, 0),
            x: layer_inputs(),
        }),
    }
}

/// A network with its parameters, their moments and its room.
struct Learner {
    mlp: Mlp,
    params: Vec<f32>,
    exp_avg: Vec<f32>,
    exp_avg_sq: Vec<f32>,
    grad: Vec<f32>,
    acts: Activations,
    t: u64,
}

impl Learner {
    fn new(widths: &[usize], activation: Activation, start: usize) -> Self {
        let mlp = Mlp::new(widths, activation).unwrap();
        let n = mlp.n_params();
        Self {
            mlp,
            params: params(widths, start),
            exp_avg: vec![0.0; n],
            exp_avg_sq: vec![0.0; n],
            grad: vec![0.0; n],
            acts: Activations::default(),
            t: 0,
        }
    }

    fn forward(&mut self, x: &[f32], rows: usize) -> &[f32] {
        self.mlp.forward(&self.params, x, rows, &mut self.acts)
    }

    /// One step of Adam down the gradient `grad_out` of the outputs.
    fn descend(&mut self, x: &[f32], rows: usize, grad_out: &[f32]) {
        let (acts, grad) = (&mut self.acts, &mut self.grad);
        self.mlp
            .backward(&self.params, x, rows, acts, grad_out, grad);
        self.t += 1;
        let mut moments = Moments {
            params: &mut self.params,
            exp_avg: &mut self.exp_avg,
            exp_avg_sq: &mut self.exp_avg_sq,
        };
        ADAM.step(self.t, &mut moments, &self.grad, 1.0);
    }

    fn network(&mut self) -> Network<'_> {
        Network {
            mlp: &self.mlp,
            moments: Moments {
                params: &mut self.params,
                exp_avg: &mut self.exp_avg,
                exp_avg_sq: &mut self.exp_avg_sq,
            },
        }
    }
}

struct Dqn {
    q: Learner,
    target: Learner,
    batch: Minibatch,
    grad_q: Vec<f32>,
}

impl Arm for Dqn {
    fn step(&mut self) {
        let _flush = FlushDenormals::new();
        let (n, batch) = (Minibatch::N, &self.batch);
        let next_q = self.target.forward(&batch.next_obs, n);
        let q = self.q.forward(&batch.obs, n);
        self.grad_q.clear();
        self.grad_q.resize(2 * n, 0.0);
        for row in 0..n {
            let next = next_q[2 * row].max(next_q[2 * row + 1]);
            let y = batch.rewards[row] + batch.discounts[row] * next;
            let at = 2 * row + batch.actions[row] as usize;
            self.grad_q[at] = 2.0 * (q[at] - y) / n as f32;
        }
        self.q.descend(&batch.obs, n, &self.grad_q);
    }

    fn answer(&mut self) -> Vec<f32> {
        self.q.params.clone()
    }
}

struct PpoStep {
    actor: Learner,
    critic: Learner,
    batch: Minibatch,
    order: Vec<i64>,
}

impl Arm for PpoStep {
    fn step(&mut self) {
        let ppo = Ppo {
            batch_size: Minibatch::N,
            clip_range: CLIP_RANGE,
            normalize_advantage: true,
            ent_coef: ENT_COEF,
            vf_coef: VF_COEF,
            clip_range_vf: None,
            target_kl: None,
            max_grad_norm: f64::MAX,
            adam: ADAM,
            by_columns: true,
        };
        let t = self.actor.t;
        let policy = ActorCritic {
            actor: self.actor.network(),
            critic: self.critic.network(),
            log_std: None,
        };
        let batch = &self.batch;
        let rollout = RolloutData {
            obs: &batch.obs,
            actions: SampledActions::Discrete(&batch.actions),
            log_probs: &batch.log_probs,
            advantages: &batch.advantages,
            returns: &batch.returns,
        };
        ppo.update(policy, &rollout, &self.order, t, 1).unwrap();
        self.actor.t += 1;
    }

    fn answer(&mut self) -> Vec<f32> {
        [self.actor.params.clone(), self.critic.params.clone()].concat()
    }
}

struct Draw {
    actor: Learner,
    obs: Vec<f32>,
    noise: Vec<f32>,
    /// The action and its log-probability.
    drawn: [f32; 2],
}

impl Arm for Draw {
    fn step(&mut self) {
        let heads = self.actor.forward(&self.obs, 1);
        let (action, log_prob) = self.drawn.split_at_mut(1);
        squashed::sample(heads, &self.noise, 1, action, 1, log_prob);
    }

    fn answer(&mut self) -> Vec<f32> {
        self.drawn.to_vec()
    }
}

struct Critics {
    twins: [Learner; 2],
    x: Vec<f32>,
    y: Vec<f32>,
    grad_q: Vec<f32>,
}

impl Arm for Critics {
    fn step(&mut self) {
        let _flush = FlushDenormals::new();
        for critic in &mut self.twins {
            let q = critic.forward(&self.x, CRITIC_ROWS);
            self.grad_q.clear();
            let rows = q.iter().zip(&self.y);
            self.grad_q
                .extend(rows.map(|(q, y)| (q - y) / CRITIC_ROWS as f32));
            critic.descend(&self.x, CRITIC_ROWS, &self.grad_q);
        }
    }

    fn answer(&mut self) -> Vec<f32> {
        let params = self.twins.each_ref().map(|critic| critic.params.clone());
        params.concat()
    }
}

struct Layer {
    layer: Learner,
    x: Vec<f32>,
}

impl Arm for Layer {
    fn step(&mut self) {
        self.layer.forward(&self.x, LAYER_ROWS);
    }

    fn answer(&mut self) -> Vec<f32> {
        self.layer.forward(&self.x, LAYER_ROWS).to_vec()
    }
}
