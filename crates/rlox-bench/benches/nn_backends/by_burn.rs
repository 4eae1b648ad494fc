//! The steps in Burn, with its NdArray backend, its autodiff and its Adam.

use burn::backend::{Autodiff, NdArray};
use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::activation::{log_softmax, relu, tanh};
use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor, TensorData};

use crate::cases::{
    ACTOR, Activation, Arm, CLIP_RANGE, CRITIC, ENT_COEF, EPS, HALF_LOG_2PI, LR, Minibatch, Q_NET,
    SECOND, Step, VALUE_NET, VF_COEF, critic_inputs, draw_inputs, params,
};

type Plain = NdArray<f32>;
type Learning = Autodiff<Plain>;

pub(crate) fn arm(step: Step) -> Box<dyn Arm> {
    let optimizer = || AdamConfig::new().with_epsilon(EPS as f32);
    match step {
        Step::DqnStep => {
            let nets = Nets::new(&[(&Q_NET, 0)]);
            let batch = Minibatch::new();
            Box::new(Trained {
                nets: Some(nets),
                optimizer: optimizer().init::<Learning, Nets<Learning>>(),
                loss: Dqn {
                    target: Nets::new(&[(&Q_NET, SECOND)]),
                    obs: matrix(&batch.obs, 4),
                    next_obs: matrix(&batch.next_obs, 4),
                    actions: indices(&batch.actions),
                    rewards: matrix(&batch.rewards, 1),
                    discounts: matrix(&batch.discounts, 1),
                },
            })
        }
        Step::PpoStep => {
            let batch = Minibatch::new();
            Box::new(Trained {
                nets: Some(Nets::new(&[(&Q_NET, 0), (&VALUE_NET, SECOND)])),
                optimizer: optimizer().init::<Learning, Nets<Learning>>(),
                loss: PpoLoss {
                    obs: matrix(&batch.obs, 4),
                    actions: indices(&batch.actions),
                    log_probs: matrix(&batch.log_probs, 1),
                    advantages: matrix(&batch.advantages, 1),
                    returns: matrix(&batch.returns, 1),
                },
            })
        }
        Step::SacSample => {
            let (obs, noise) = draw_inputs();
            Box::new(Draw {
                actor: Nets::new(&[(&ACTOR, 0)]),
                obs: matrix(&obs, 3),
                noise: matrix(&noise, 1),
                drawn: Vec::new(),
            })
        }
        Step::CriticStep => {
            let (x, y) = critic_inputs();
            Box::new(Trained {
                nets: Some(Nets::new(&[(&CRITIC, 0), (&CRITIC, SECOND)])),
                optimizer: optimizer().init::<Learning, Nets<Learning>>(),
                loss: TdErrors {
                    x: matrix(&x, 4),
                    y: matrix(&y, 1),
                },
            })
        }
    }
}

/// One network: its layers.
#[derive(Module, Debug)]
struct Net<B: Backend> {
    layers: Vec<Linear<B>>,
}

/// One network or two.
#[derive(Module, Debug)]
struct Nets<B: Backend> {
    nets: Vec<Net<B>>,
}

impl<B: Backend> Net<B> {
    fn new(widths: &[usize], start: usize) -> Self {
        let all = params(widths, start);
        let mut rest = all.as_slice();
        let mut layers = Vec::new();
        for pair in widths.windows(2) {
            let (n_in, n_out) = (pair[0], pair[1]);
            let (weight, tail) = rest.split_at(n_in * n_out);
            let (bias, tail) = tail.split_at(n_out);
            rest = tail;
            // Burn's weights are [in, out].
            let transposed: Vec<f32> = (0..n_in * n_out)
                .map(|at| weight[at % n_out * n_in + at / n_out])
                .collect();
            let mut layer: Linear<B> = LinearConfig::new(n_in, n_out).init(&Default::default());
            layer.weight = Param::from_tensor(matrix(&transposed, n_out));
            let bias = TensorData::new(bias.to_vec(), [n_out]);
            layer.bias = Some(Param::from_tensor(Tensor::from_data(
                bias,
                &Default::default(),
            )));
            layers.push(layer);
        }
        Self { layers }
    }

    fn forward(&self, x: Tensor<B, 2>, activation: Activation) -> Tensor<B, 2> {
        let last = self.layers.len() - 1;
        let mut x = x;
        for (number, layer) in self.layers.iter().enumerate() {
            x = layer.forward(x);
            if number < last {
                x = match activation {
                    Activation::Tanh => tanh(x),
                    Activation::Relu => relu(x),
                };
            }
        }
        x
    }
}

impl<B: Backend> Nets<B> {
    fn new(of: &[(&[usize], usize)]) -> Self {
        let net = |&(widths, start): &(&[usize], usize)| Net::new(widths, start);
        Self {
            nets: of.iter().map(net).collect(),
        }
    }

    fn flat(&self) -> Vec<f32> {
        let layers = self.nets.iter().flat_map(|net| &net.layers);
        let numbers = |layer: &Linear<B>| {
            let weight = list(layer.weight.val().transpose());
            let bias = layer.bias.as_ref().map(|bias| list(bias.val()));
            [weight, bias.unwrap_or_default()].concat()
        };
        layers.flat_map(numbers).collect()
    }
}

fn list<B: Backend, const N: usize>(tensor: Tensor<B, N>) -> Vec<f32> {
    tensor.into_data().to_vec().unwrap()
}

fn matrix<B: Backend>(numbers: &[f32], width: usize) -> Tensor<B, 2> {
    let shape = [numbers.len() / width, width];
    Tensor::from_data(
        TensorData::new(numbers.to_vec(), shape),
        &Default::default(),
    )
}

fn indices<B: Backend>(actions: &[i64]) -> Tensor<B, 2, Int> {
    let shape = [actions.len(), 1];
    Tensor::from_data(
        TensorData::new(actions.to_vec(), shape),
        &Default::default(),
    )
}

/// What is minimised.
trait Loss {
    fn of(&self, nets: &Nets<Learning>) -> Tensor<Learning, 1>;
}

struct Trained<L, O> {
    /// None within a step, which takes the networks and gives them back.
    nets: Option<Nets<Learning>>,
    optimizer: O,
    loss: L,
}

impl<L: Loss, O: Optimizer<Nets<Learning>, Learning>> Arm for Trained<L, O> {
    fn step(&mut self) {
        let nets = self.nets.take().unwrap();
        let gradients = self.loss.of(&nets).backward();
        let gradients = GradientsParams::from_grads(gradients, &nets);
        self.nets = Some(self.optimizer.step(LR, nets, gradients));
    }

    fn answer(&mut self) -> Vec<f32> {
        self.nets.as_ref().unwrap().flat()
    }
}

struct Dqn {
    target: Nets<Learning>,
    obs: Tensor<Learning, 2>,
    next_obs: Tensor<Learning, 2>,
    actions: Tensor<Learning, 2, Int>,
    rewards: Tensor<Learning, 2>,
    discounts: Tensor<Learning, 2>,
}

impl Loss for Dqn {
    fn of(&self, nets: &Nets<Learning>) -> Tensor<Learning, 1> {
        let next_q = self.target.nets[0]
            .forward(self.next_obs.clone(), Activation::Relu)
            .max_dim(1);
        let y = (self.rewards.clone() + self.discounts.clone() * next_q).detach();
        let q = nets.nets[0]
            .forward(self.obs.clone(), Activation::Relu)
            .gather(1, self.actions.clone());
        mean_square(q - y)
    }
}

struct PpoLoss {
    obs: Tensor<Learning, 2>,
    actions: Tensor<Learning, 2, Int>,
    log_probs: Tensor<Learning, 2>,
    advantages: Tensor<Learning, 2>,
    returns: Tensor<Learning, 2>,
}

impl Loss for PpoLoss {
    fn of(&self, nets: &Nets<Learning>) -> Tensor<Learning, 1> {
        let (variance, mean) = self.advantages.clone().var_mean(0);
        let advantages = (self.advantages.clone() - mean) / (variance.sqrt() + 1e-8);
        let logits = nets.nets[0].forward(self.obs.clone(), Activation::Tanh);
        let all = log_softmax(logits, 1);
        let log_probs = all.clone().gather(1, self.actions.clone());
        let ratio = (log_probs - self.log_probs.clone()).exp();
        let bounded = ratio.clone().clamp(1.0 - CLIP_RANGE, 1.0 + CLIP_RANGE);
        let surrogate = (ratio * advantages.clone()).min_pair(bounded * advantages);
        let entropy = (all.clone().exp() * all).sum_dim(1).mean().neg();
        let values = nets.nets[1].forward(self.obs.clone(), Activation::Tanh);
        mean_square(values - self.returns.clone()) * VF_COEF - surrogate.mean() - entropy * ENT_COEF
    }
}

struct TdErrors {
    x: Tensor<Learning, 2>,
    y: Tensor<Learning, 2>,
}

impl Loss for TdErrors {
    fn of(&self, nets: &Nets<Learning>) -> Tensor<Learning, 1> {
        let error = |net: &Net<Learning>| {
            let q = net.forward(self.x.clone(), Activation::Relu);
            mean_square(q - self.y.clone())
        };
        (error(&nets.nets[0]) + error(&nets.nets[1])) * 0.5
    }
}

fn mean_square(x: Tensor<Learning, 2>) -> Tensor<Learning, 1> {
    (x.clone() * x).mean()
}

struct Draw {
    actor: Nets<Plain>,
    obs: Tensor<Plain, 2>,
    noise: Tensor<Plain, 2>,
    drawn: Vec<f32>,
}

impl Arm for Draw {
    fn step(&mut self) {
        let heads = self.actor.nets[0].forward(self.obs.clone(), Activation::Relu);
        let mean = heads.clone().slice([0..1, 0..1]);
        let log_std = heads.slice([0..1, 1..2]).clamp(-20.0, 2.0);
        let u = mean + log_std.clone().exp() * self.noise.clone();
        // log(1 - tanh² u) = 2 (ln 2 - u - softplus(-2u))
        let softplus = (u.clone() * -2.0).exp().log1p();
        let squashing = (u.clone() + softplus) * -2.0 + 2.0 * std::f64::consts::LN_2;
        let gaussian = self.noise.clone() * self.noise.clone() * -0.5;
        let log_prob = gaussian - log_std - HALF_LOG_2PI - squashing;
        self.drawn = [list(u.tanh()), list(log_prob)].concat();
    }

    fn answer(&mut self) -> Vec<f32> {
        self.drawn.clone()
    }
}
