//! Two links hanging from a pivot, swung up by a torque at the joint between them: Sutton,
//! "Generalization in Reinforcement Learning" (1996). It follows Gymnasium's v1, which has the equations of
//! Sutton and Barto's book, integrated by the Runge-Kutta method of fourth order.
#![allow(
    clippy::needless_range_loop,
    reason = "loops over lanes are written to be vectorised"
)]

use std::f64::consts::{FRAC_PI_2, PI};

use crate::env::physics::{Bounds, Flags, LANES, Moved, Physics};
use crate::env::spaces::Space;
use crate::env::trig;

/// Angles in rad and velocities in rad/s of both links: `theta1, theta2, theta1_dot, theta2_dot`.
type State = [[f64; LANES]; 4];

// Masses, lengths and moments of inertia of both links are 1.
const GRAVITY: f64 = 9.8;
/// The distance from a link's upper end to its centre of mass.
const CENTRE: f64 = 0.5;
/// The duration of a step, in seconds.
const DT: f64 = 0.2;
const MAX_SPEED_1: f64 = 4.0 * PI;
const MAX_SPEED_2: f64 = 9.0 * PI;
const TURN: f64 = 2.0 * PI;
/// The angle from which on [`turn_by_turn`] divides. Smaller ones are reduced as Gymnasium does it, by
/// subtracting turn after turn, which would take too long for larger ones.
const FAR: f64 = 1e3;

/// `Acrobot-v1`. The state is `theta1, theta2, theta1_dot, theta2_dot` in rad and rad/s. `theta1` is the
/// angle of the upper link, 0 where it hangs down; `theta2` that of the lower link, 0 where it goes on in
/// the direction of the upper one.
#[derive(Debug)]
pub enum Acrobot {}

impl Physics for Acrobot {
    const ID: &'static str = "Acrobot-v1";
    const MAX_EPISODE_STEPS: u32 = 500;
    const INITIAL_BOUNDS: &'static [Bounds] = &[(-0.1, 0.1); 4];
    type State = State;
    type Action = i64;
    type Rows = [[f32; 6]; LANES];

    /// `cos theta1, sin theta1, cos theta2, sin theta2, theta1_dot, theta2_dot`.
    fn observation_space() -> Space {
        let (fastest_1, fastest_2) = (MAX_SPEED_1 as f32, MAX_SPEED_2 as f32);
        Space::symmetric(vec![1.0, 1.0, 1.0, 1.0, fastest_1, fastest_2])
    }

    /// The torque is the action minus 1: -1, 0 or 1 N m.
    fn action_space() -> Space {
        Space::Discrete(3)
    }

    /// Gymnasium rounds an initial state to float32, but not the states that follow.
    #[inline(always)]
    fn kept(drawn: f64) -> f64 {
        f64::from(drawn as f32)
    }

    #[inline(always)]
    fn step(state: State, _elapsed: &[u32; LANES], actions: &[i64; LANES]) -> Moved<State> {
        let torques = actions.map(|action| (action - 1) as f64);
        let k1 = derivatives(&state, &torques);
        let k2 = derivatives(&after(&state, &k1, DT / 2.0), &torques);
        let k3 = derivatives(&after(&state, &k2, DT / 2.0), &torques);
        let k4 = derivatives(&after(&state, &k3, DT), &torques);
        let mut mean = k1;
        for c in 0..4 {
            for l in 0..LANES {
                mean[c][l] = k1[c][l] + 2.0 * k2[c][l] + 2.0 * k3[c][l] + k4[c][l];
            }
        }
        let [theta1, theta2, mut speed1, mut speed2] = after(&state, &mean, DT / 6.0);
        let (theta1, theta2) = (within_half_a_turn(theta1), within_half_a_turn(theta2));
        let mut lower = theta2;
        for l in 0..LANES {
            speed1[l] = speed1[l].clamp(-MAX_SPEED_1, MAX_SPEED_1);
            speed2[l] = speed2[l].clamp(-MAX_SPEED_2, MAX_SPEED_2);
            lower[l] = theta2[l] + theta1[l];
        }
        let ((_, upper_cos), (_, lower_cos)) = (trig::sin_cos(&theta1), trig::sin_cos(&lower));
        let (mut rewards, mut terminated) = ([0.0; LANES], Flags::default());
        for l in 0..LANES {
            // The height of the free end above the pivot, in links.
            let high_up = -upper_cos[l] - lower_cos[l] > 1.0;
            terminated[l] = u64::from(high_up);
            rewards[l] = if high_up { 0.0 } else { -1.0 };
        }
        Moved {
            state: [theta1, theta2, speed1, speed2],
            rewards,
            terminated,
        }
    }

    #[inline(always)]
    fn rows([theta1, theta2, speed1, speed2]: &State) -> Self::Rows {
        let ((sin1, cos1), (sin2, cos2)) = (trig::sin_cos(theta1), trig::sin_cos(theta2));
        let mut rows = [[0.0; 6]; LANES];
        for l in 0..LANES {
            rows[l] = [cos1[l], sin1[l], cos2[l], sin2[l], speed1[l], speed2[l]].map(|x| x as f32);
        }
        rows
    }
}

/// The time derivative of each component. The operations come in Gymnasium's order, so that they round in
/// the same way; multiplications by 1 are left out.
#[inline(always)]
fn derivatives([theta1, theta2, speed1, speed2]: &State, torques: &[f64; LANES]) -> State {
    let (mut from_side, mut lower_from_side) = (*theta1, *theta1);
    for l in 0..LANES {
        from_side[l] = theta1[l] - FRAC_PI_2;
        lower_from_side[l] = theta1[l] + theta2[l] - FRAC_PI_2;
    }
    let (sin2, cos2) = trig::sin_cos(theta2);
    let (_, upper_cos) = trig::sin_cos(&from_side);
    let (_, lower_cos) = trig::sin_cos(&lower_from_side);
    let (mut acceleration1, mut acceleration2) = ([0.0; LANES], [0.0; LANES]);
    for l in 0..LANES {
        let (speed1, speed2, sin) = (speed1[l], speed2[l], sin2[l]);
        let d1 = CENTRE * CENTRE + (1.0 + CENTRE * CENTRE + cos2[l]) + 1.0 + 1.0;
        let d2 = (CENTRE * CENTRE + CENTRE * cos2[l]) + 1.0;
        let phi2 = CENTRE * GRAVITY * lower_cos[l];
        let phi1 = -CENTRE * (speed2 * speed2) * sin - speed2 * speed1 * sin
            + (CENTRE + 1.0) * GRAVITY * upper_cos[l]
            + phi2;
        let push = torques[l] + d2 / d1 * phi1 - CENTRE * (speed1 * speed1) * sin - phi2;
        acceleration2[l] = push / (CENTRE * CENTRE + 1.0 - d2 * d2 / d1);
        acceleration1[l] = -(d2 * acceleration2[l] + phi1) / d1;
    }
    [*speed1, *speed2, acceleration1, acceleration2]
}

/// The state after `time` seconds in which each component changes by `change` a second.
#[inline(always)]
fn after(state: &State, change: &State, time: f64) -> State {
    let mut next = *state;
    for c in 0..4 {
        for l in 0..LANES {
            next[c][l] = state[c][l] + time * change[c][l];
        }
    }
    next
}

/// The same angles within [-pi, pi]. Turns are added or subtracted one at a time, as Gymnasium does it, so
/// that the rounding is the same. Two turns are enough for nearly every step.
#[inline(always)]
fn within_half_a_turn(mut angles: [f64; LANES]) -> [f64; LANES] {
    for _ in 0..2 {
        for l in 0..LANES {
            let less = if angles[l] > PI { TURN } else { 0.0 };
            let more = if angles[l] < -PI { TURN } else { 0.0 };
            angles[l] = angles[l] - less + more;
        }
    }
    if !angles.iter().all(|angle| angle.abs() <= PI) {
        angles = angles.map(turn_by_turn);
    }
    angles
}

/// One angle within [-pi, pi], for angles that are more than two turns off.
#[cold]
#[inline(never)]
fn turn_by_turn(mut angle: f64) -> f64 {
    if angle.abs() < FAR {
        while angle > PI {
            angle -= TURN;
        }
        while angle < -PI {
            angle += TURN;
        }
        return angle;
    }
    (angle + PI).rem_euclid(TURN) - PI
}
