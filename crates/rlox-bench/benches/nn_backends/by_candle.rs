//! The steps in Candle, with its autograd and its Adam (AdamW without decay).

use candle_core::{D, Device, Result, Tensor, Var};
use candle_nn::optim::{AdamW, Optimizer, ParamsAdamW};

use crate::cases::{
    ACTOR, Activation, Arm, CLIP_RANGE, CRITIC, CRITIC_ROWS, ENT_COEF, EPS, HALF_LOG_2PI, LAYER,
    LR, Minibatch, Q_NET, SECOND, Step, VALUE_NET, VF_COEF, critic_inputs, draw_inputs,
    layer_inputs, params,
};

pub(crate) fn arm(step: Step) -> Box<dyn Arm> {
    match step {
        Step::Dqn => Box::new(Dqn::new().unwrap()),
        Step::Ppo => Box::new(PpoStep::new().unwrap()),
        Step::Actor => Box::new(Draw::new().unwrap()),
        Step::Critics => Box::new(Critics::new().unwrap()),
        Step::Layer => Box::new(Layer::new().unwrap()),
    }
}

/// A network: weight `[out, in]` and bias of each layer.
struct Net {
    layers: Vec<(Var, Var)>,
    activation: Activation,
}

impl Net {
    fn new(widths: &[usize], activation: Activation, start: usize) -> Result<Self> {
        let all = params(widths, start);
        let mut rest = all.as_slice();
        let mut layers = Vec::new();
        for pair in widths.windows(2) {
            let (n_in, n_out) = (pair[0], pair[1]);
            let (weight, tail) = rest.split_at(n_in * n_out);
            let (bias, tail) = tail.split_at(n_out);
            rest = tail;
            layers.push((
                Var::from_slice(weight, (n_out, n_in), &Device::Cpu)?,
                Var::from_slice(bias, n_out, &Device::Cpu)?,
            ));
        }
        Ok(Self { layers, activation })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for (number, (weight, bias)) in self.layers.iter().enumerate() {
            x = x.matmul(&weight.t()?)?.broadcast_add(bias)?;
            if number + 1 < self.layers.len() {
                x = match self.activation {
                    Activation::Tanh => x.tanh()?,
                    Activation::Relu => x.relu()?,
                };
            }
        }
        Ok(x)
    }

    fn vars(&self) -> impl Iterator<Item = Var> {
        let both = |(weight, bias): &(Var, Var)| [weight.clone(), bias.clone()];
        self.layers.iter().flat_map(both)
    }
}

fn adam(nets: &[&Net]) -> Result<AdamW> {
    let params = ParamsAdamW {
        lr: LR,
        beta1: 0.9,
        beta2: 0.999,
        eps: EPS,
        weight_decay: 0.0,
    };
    AdamW::new(nets.iter().flat_map(|net| net.vars()).collect(), params)
}

fn flat(nets: &[&Net]) -> Vec<f32> {
    let vars = nets.iter().flat_map(|net| net.vars());
    let numbers = |var: Var| -> Result<Vec<f32>> { var.flatten_all()?.to_vec1() };
    vars.flat_map(|var| numbers(var).unwrap()).collect()
}

/// A column `[n, 1]`.
fn column(numbers: &[f32]) -> Result<Tensor> {
    Tensor::from_slice(numbers, (numbers.len(), 1), &Device::Cpu)
}

fn matrix(numbers: &[f32], width: usize) -> Result<Tensor> {
    Tensor::from_slice(numbers, (numbers.len() / width, width), &Device::Cpu)
}

fn indices(actions: &[i64]) -> Result<Tensor> {
    let actions: Vec<u32> = actions.iter().map(|&action| action as u32).collect();
    Tensor::from_vec(actions, (Minibatch::N, 1), &Device::Cpu)
}

struct Dqn {
    q: Net,
    target: Net,
    adam: AdamW,
    obs: Tensor,
    next_obs: Tensor,
    actions: Tensor,
    rewards: Tensor,
    discounts: Tensor,
}

impl Dqn {
    fn new() -> Result<Self> {
        let batch = Minibatch::new();
        let q = Net::new(&Q_NET, Activation::Relu, 0)?;
        Ok(Self {
            adam: adam(&[&q])?,
            q,
            target: Net::new(&Q_NET, Activation::Relu, SECOND)?,
            obs: matrix(&batch.obs, 4)?,
            next_obs: matrix(&batch.next_obs, 4)?,
            actions: indices(&batch.actions)?,
            rewards: column(&batch.rewards)?,
            discounts: column(&batch.discounts)?,
        })
    }

    fn learn(&mut self) -> Result<()> {
        let next_q = self.target.forward(&self.next_obs)?.max_keepdim(1)?;
        let y = (&self.rewards + (&self.discounts * next_q)?)?.detach();
        let q = self.q.forward(&self.obs)?.gather(&self.actions, 1)?;
        let loss = (q - y)?.sqr()?.mean_all()?;
        self.adam.backward_step(&loss)
    }
}

impl Arm for Dqn {
    fn step(&mut self) {
        self.learn().unwrap();
    }

    fn answer(&mut self) -> Vec<f32> {
        flat(&[&self.q])
    }
}

struct PpoStep {
    actor: Net,
    critic: Net,
    adam: AdamW,
    obs: Tensor,
    actions: Tensor,
    log_probs: Tensor,
    advantages: Tensor,
    returns: Tensor,
}

impl PpoStep {
    fn new() -> Result<Self> {
        let batch = Minibatch::new();
        let actor = Net::new(&Q_NET, Activation::Tanh, 0)?;
        let critic = Net::new(&VALUE_NET, Activation::Tanh, SECOND)?;
        Ok(Self {
            adam: adam(&[&actor, &critic])?,
            actor,
            critic,
            obs: matrix(&batch.obs, 4)?,
            actions: indices(&batch.actions)?,
            log_probs: column(&batch.log_probs)?,
            advantages: column(&batch.advantages)?,
            returns: column(&batch.returns)?,
        })
    }

    fn learn(&mut self) -> Result<()> {
        let centred = self
            .advantages
            .broadcast_sub(&self.advantages.mean_keepdim(0)?)?;
        let variance = (centred.sqr()?.sum_keepdim(0)? / (Minibatch::N as f64 - 1.0))?;
        let advantages = centred.broadcast_div(&(variance.sqrt()? + 1e-8)?)?;

        let all = candle_nn::ops::log_softmax(&self.actor.forward(&self.obs)?, D::Minus1)?;
        let log_probs = all.gather(&self.actions, 1)?;
        let ratio = (log_probs - &self.log_probs)?.exp()?;
        let bounded = ratio.clamp(1.0 - CLIP_RANGE, 1.0 + CLIP_RANGE)?;
        let surrogate = (&ratio * &advantages)?.minimum(&(bounded * &advantages)?)?;
        let entropy = (all.exp()? * &all)?.sum_keepdim(1)?.mean_all()?.neg()?;
        let values = self.critic.forward(&self.obs)?;
        let value_loss = (values - &self.returns)?.sqr()?.mean_all()?;
        let loss = (value_loss * f64::from(VF_COEF))?;
        let loss = (loss - surrogate.mean_all()?)?;
        let loss = (loss - (entropy * f64::from(ENT_COEF))?)?;
        self.adam.backward_step(&loss)
    }
}

impl Arm for PpoStep {
    fn step(&mut self) {
        self.learn().unwrap();
    }

    fn answer(&mut self) -> Vec<f32> {
        flat(&[&self.actor, &self.critic])
    }
}

struct Draw {
    actor: Net,
    obs: Tensor,
    noise: Tensor,
    drawn: Vec<f32>,
}

impl Draw {
    fn new() -> Result<Self> {
        let (obs, noise) = draw_inputs();
        Ok(Self {
            actor: Net::new(&ACTOR, Activation::Relu, 0)?,
            obs: matrix(&obs, 3)?,
            noise: matrix(&noise, 1)?,
            drawn: Vec::new(),
        })
    }

    fn draw(&self) -> Result<Vec<f32>> {
        let heads = self.actor.forward(&self.obs)?.detach();
        let mean = heads.narrow(1, 0, 1)?;
        let log_std = heads.narrow(1, 1, 1)?.clamp(-20f32, 2f32)?;
        let u = (mean + (log_std.exp()? * &self.noise)?)?;
        // log(1 - tanh² u) = 2 (ln 2 - u - softplus(-2u))
        let softplus = ((&u * -2.0)?.exp()? + 1.0)?.log()?;
        let squashing = ((&u + softplus)?.affine(-2.0, 2.0 * std::f64::consts::LN_2))?;
        let gaussian = (self.noise.sqr()? * -0.5)?;
        let log_prob = (((gaussian - log_std)? - f64::from(HALF_LOG_2PI))? - squashing)?;
        Tensor::cat(&[u.tanh()?, log_prob], 1)?
            .flatten_all()?
            .to_vec1()
    }
}

impl Arm for Draw {
    fn step(&mut self) {
        self.drawn = self.draw().unwrap();
    }

    fn answer(&mut self) -> Vec<f32> {
        self.drawn.clone()
    }
}

struct Critics {
    twins: [Net; 2],
    adam: AdamW,
    x: Tensor,
    y: Tensor,
}

impl Critics {
    fn new() -> Result<Self> {
        let (x, y) = critic_inputs();
        let twins = [
            Net::new(&CRITIC, Activation::Relu, 0)?,
            Net::new(&CRITIC, Activation::Relu, SECOND)?,
        ];
        Ok(Self {
            adam: adam(&[&twins[0], &twins[1]])?,
            twins,
            x: matrix(&x, x.len() / CRITIC_ROWS)?,
            y: column(&y)?,
        })
    }

    fn learn(&mut self) -> Result<()> {
        let error = |net: &Net| (net.forward(&self.x)? - &self.y)?.sqr()?.mean_all();
        let loss = ((error(&self.twins[0])? + error(&self.twins[1])?)? * 0.5)?;
        self.adam.backward_step(&loss)
    }
}

impl Arm for Critics {
    fn step(&mut self) {
        self.learn().unwrap();
    }

    fn answer(&mut self) -> Vec<f32> {
        flat(&[&self.twins[0], &self.twins[1]])
    }
}

struct Layer {
    layer: Net,
    x: Tensor,
    y: Option<Tensor>,
}

impl Layer {
    fn new() -> Result<Self> {
        Ok(Self {
            layer: Net::new(&LAYER, Activation::Relu, 0)?,
            x: matrix(&layer_inputs(), LAYER[0])?,
            y: None,
        })
    }
}

impl Arm for Layer {
    fn step(&mut self) {
        self.y = Some(self.layer.forward(&self.x).unwrap());
    }

    fn answer(&mut self) -> Vec<f32> {
        let y = self.y.as_ref().unwrap().flatten_all();
        y.unwrap().to_vec1().unwrap()
    }
}
