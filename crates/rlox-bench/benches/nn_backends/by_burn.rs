//! The steps in Burn, with its CPU backend Flex, its autodiff and its Adam.

use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::activation::{log_softmax, relu, tanh};
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::cases::{
    ACTOR, Activation, Arm, CLIP_RANGE, CRITIC, ENT_COEF, EPS, HALF_LOG_2PI, LAYER, LR, Minibatch,
    Q_NET, SECOND, Step, VALUE_NET, VF_COEF, critic_inputs, draw_inputs, layer_inputs, params,
};

pub(crate) fn arm(step: Step) -> Box<dyn Arm> {
    let device = Device::flex().autodiff();
    let batch = Minibatch::new();
    match step {
        Step::Dqn => {
            let loss = Dqn {
                // Or its passes would be recorded as well.
                target: Net::new(&Q_NET, SECOND, &device).no_grad(),
                obs: matrix(&batch.obs, 4, &device),
                next_obs: matrix(&batch.next_obs, 4, &device),
                actions: indices(&batch.actions, &device),
                rewards: matrix(&batch.rewards, 1, &device),
                discounts: matrix(&batch.discounts, 1, &device),
            };
            Box::new(Trained::new(vec![Net::new(&Q_NET, 0, &device)], loss))
        }
        Step::Ppo => {
            let loss = PpoLoss {
                obs: matrix(&batch.obs, 4, &device),
                actions: indices(&batch.actions, &device),
                log_probs: matrix(&batch.log_probs, 1, &device),
                advantages: matrix(&batch.advantages, 1, &device),
                returns: matrix(&batch.returns, 1, &device),
            };
            let actor = Net::new(&Q_NET, 0, &device);
            let critic = Net::new(&VALUE_NET, SECOND, &device);
            Box::new(Trained::new(vec![actor, critic], loss))
        }
        Step::Actor => {
            let (obs, noise) = draw_inputs();
            let device = Device::flex();
            Box::new(Draw {
                actor: Net::new(&ACTOR, 0, &device),
                obs: matrix(&obs, 3, &device),
                noise: matrix(&noise, 1, &device),
                drawn: Vec::new(),
            })
        }
        Step::Critics => {
            let (x, y) = critic_inputs();
            let loss = TdErrors {
                x: matrix(&x, 4, &device),
                y: matrix(&y, 1, &device),
            };
            let twins = [0, SECOND].map(|start| Net::new(&CRITIC, start, &device));
            Box::new(Trained::new(twins.into(), loss))
        }
        Step::Layer => {
            let device = Device::flex();
            Box::new(Layer {
                layer: Net::new(&LAYER, 0, &device),
                x: matrix(&layer_inputs(), LAYER[0], &device),
                y: None,
            })
        }
    }
}

/// One network: its layers.
#[derive(Module, Debug)]
struct Net {
    layers: Vec<Linear>,
}

/// One network or two.
#[derive(Module, Debug)]
struct Nets {
    nets: Vec<Net>,
}

impl Net {
    fn new(widths: &[usize], start: usize, device: &Device) -> Self {
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
            let bias = Tensor::from_data(TensorData::new(bias.to_vec(), [n_out]), device);
            let mut layer = LinearConfig::new(n_in, n_out).init(device);
            layer.weight = Param::from_tensor(matrix(&transposed, n_out, device));
            layer.bias = Some(Param::from_tensor(bias));
            layers.push(layer);
        }
        Self { layers }
    }

    fn forward(&self, x: Tensor<2>, activation: Activation) -> Tensor<2> {
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

    fn flat(&self) -> Vec<f32> {
        let numbers = |layer: &Linear| {
            let weight = list(layer.weight.val().transpose());
            let bias = layer.bias.as_ref().map(|bias| list(bias.val()));
            [weight, bias.unwrap_or_default()].concat()
        };
        self.layers.iter().flat_map(numbers).collect()
    }
}

fn list<const N: usize>(tensor: Tensor<N>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

fn matrix(numbers: &[f32], width: usize, device: &Device) -> Tensor<2> {
    let shape = [numbers.len() / width, width];
    Tensor::from_data(TensorData::new(numbers.to_vec(), shape), device)
}

fn indices(actions: &[i64], device: &Device) -> Tensor<2, Int> {
    let shape = [actions.len(), 1];
    Tensor::from_data(TensorData::new(actions.to_vec(), shape), device)
}

/// What is minimised.
trait Loss {
    fn of(&self, nets: &[Net]) -> Tensor<1>;
}

struct Trained<L> {
    /// None within a step, which takes the networks and gives them back.
    nets: Option<Nets>,
    optimizer: ModuleOptimizer,
    loss: L,
}

impl<L> Trained<L> {
    fn new(nets: Vec<Net>, loss: L) -> Self {
        Self {
            nets: Some(Nets { nets }),
            optimizer: AdamConfig::new().with_epsilon(EPS as f32).init(),
            loss,
        }
    }
}

impl<L: Loss> Arm for Trained<L> {
    fn step(&mut self) {
        let nets = self.nets.take().unwrap();
        let gradients = self.loss.of(&nets.nets).backward();
        let gradients = GradientsParams::from_grads(gradients, &nets);
        self.nets = Some(self.optimizer.step(LR, nets, gradients));
    }

    fn answer(&mut self) -> Vec<f32> {
        let nets = &self.nets.as_ref().unwrap().nets;
        nets.iter().flat_map(Net::flat).collect()
    }
}

struct Dqn {
    target: Net,
    obs: Tensor<2>,
    next_obs: Tensor<2>,
    actions: Tensor<2, Int>,
    rewards: Tensor<2>,
    discounts: Tensor<2>,
}

impl Loss for Dqn {
    fn of(&self, nets: &[Net]) -> Tensor<1> {
        let next_q = self
            .target
            .forward(self.next_obs.clone(), Activation::Relu)
            .max_dim(1);
        let y = (self.rewards.clone() + self.discounts.clone() * next_q).detach();
        let q = nets[0]
            .forward(self.obs.clone(), Activation::Relu)
            .gather(1, self.actions.clone());
        mean_square(q - y)
    }
}

struct PpoLoss {
    obs: Tensor<2>,
    actions: Tensor<2, Int>,
    log_probs: Tensor<2>,
    advantages: Tensor<2>,
    returns: Tensor<2>,
}

impl Loss for PpoLoss {
    fn of(&self, nets: &[Net]) -> Tensor<1> {
        let (variance, mean) = self.advantages.clone().var_mean(0);
        let advantages = (self.advantages.clone() - mean) / (variance.sqrt() + 1e-8);
        let logits = nets[0].forward(self.obs.clone(), Activation::Tanh);
        let all = log_softmax(logits, 1);
        let log_probs = all.clone().gather(1, self.actions.clone());
        let ratio = (log_probs - self.log_probs.clone()).exp();
        let bounded = ratio.clone().clamp(1.0 - CLIP_RANGE, 1.0 + CLIP_RANGE);
        let surrogate = (ratio * advantages.clone()).min_pair(bounded * advantages);
        let entropy = (all.clone().exp() * all).sum_dim(1).mean().neg();
        let values = nets[1].forward(self.obs.clone(), Activation::Tanh);
        let value_loss = mean_square(values - self.returns.clone());
        value_loss * VF_COEF - surrogate.mean() - entropy * ENT_COEF
    }
}

struct TdErrors {
    x: Tensor<2>,
    y: Tensor<2>,
}

impl Loss for TdErrors {
    fn of(&self, nets: &[Net]) -> Tensor<1> {
        let error = |net: &Net| {
            let q = net.forward(self.x.clone(), Activation::Relu);
            mean_square(q - self.y.clone())
        };
        (error(&nets[0]) + error(&nets[1])) * 0.5
    }
}

fn mean_square(x: Tensor<2>) -> Tensor<1> {
    (x.clone() * x).mean()
}

struct Draw {
    actor: Net,
    obs: Tensor<2>,
    noise: Tensor<2>,
    drawn: Vec<f32>,
}

impl Arm for Draw {
    fn step(&mut self) {
        let heads = self.actor.forward(self.obs.clone(), Activation::Relu);
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

struct Layer {
    layer: Net,
    x: Tensor<2>,
    y: Option<Tensor<2>>,
}

impl Arm for Layer {
    fn step(&mut self) {
        self.y = Some(self.layer.forward(self.x.clone(), Activation::Relu));
    }

    fn answer(&mut self) -> Vec<f32> {
        list(self.y.clone().unwrap())
    }
}
