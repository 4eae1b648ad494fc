//! Which twin stands at each seam. The only file that looks at an optimisation's feature.
//!
//! Every optimisation varies one seam and has two twins for it: the form before and the form after.
//! Both are always compiled. Callers reach the seam through the name made here, so that a twin can
//! be exchanged without touching them. One entry an optimisation makes that name, a constant for
//! the seams that lie outside this crate, and its place in [`OPTIMIZATIONS`].

/// An optimisation, as this build has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Optimization {
    /// Id of its card.
    pub id: &'static str,
    /// The cargo feature that turns it on.
    pub feature: &'static str,
    /// Whether that feature is on.
    pub active: bool,
}

/// A seam is `use` (a module of functions, with the twins `baseline` and `optimized`), `type`
/// (before `|` after), or `elsewhere`.
macro_rules! switchboard {
    ($($(#[$doc:meta])+ $id:ident $feature:literal { $($seam:tt)+ })+) => {
        /// Every optimisation there is, in the order of the plan.
        pub const OPTIMIZATIONS: &[Optimization] = &[$(Optimization {
            id: stringify!($id),
            feature: $feature,
            active: $id,
        }),+];
        $(
            $(#[$doc])+
            pub const $id: bool = cfg!(feature = $feature);
            switchboard!(@seam { $(#[$doc])+ } $feature $($seam)+);
        )+
    };
    (@seam $doc:tt $feature:literal elsewhere) => {};
    (@seam { $(#[$doc:meta])+ } $feature:literal use $name:ident from $($module:ident)::+) => {
        #[cfg(not(feature = $feature))]
        $(#[$doc])+
        pub use $($module)::+::baseline as $name;
        #[cfg(feature = $feature)]
        $(#[$doc])+
        pub use $($module)::+::optimized as $name;
    };
    (@seam { $(#[$doc:meta])+ } $feature:literal
        type $name:ident $(<$parameter:ident>)? = $before:ty | $after:ty) => {
        #[cfg(not(feature = $feature))]
        $(#[$doc])+
        pub type $name $(<$parameter>)? = $before;
        #[cfg(feature = $feature)]
        $(#[$doc])+
        pub type $name $(<$parameter>)? = $after;
    };
}

#[allow(unused_imports, reason = "a build uses one twin of each")]
use crate::{
    buffer::batch::{Fresh, Kept},
    buffer::min_priority::{MinTree, Scan},
    buffer::observations::{ByWidth, Twice},
    env::info::{MapInfo, OptionalInfo},
    env::lanes::Lanes,
    env::members::Member,
    env::obs_store::{FlatObs, PerEnvObs},
    llm::ops::{ByElements, ByRows},
};

switchboard! {
    /// P1: advantages of a step-major rollout.
    P1 "opt-p1" { use rollout_gae from crate::pipeline::rollout_gae }
    /// P2: where the observations of a step are put.
    P2 "opt-p2" { type ObsStore = PerEnvObs | FlatObs }
    /// P3: how a transition in somebody else's memory enters a buffer.
    P3 "opt-p3" { use intake from crate::buffer::intake }
    /// P4: where the memory of sampled batches comes from.
    P4 "opt-p4" { type Batches<O> = Fresh<O> | Kept<O> }
    /// P5: how the smallest priority is known.
    P5 "opt-p5" { type MinPriority = Scan | MinTree }
    /// P6: how the release profile generates code; a pair of cargo profiles.
    P6 "opt-p6" { elsewhere }
    /// P7: the inner loop of GAE.
    P7 "opt-p7" { use gae from crate::training::gae }
    /// P8: when the LLM operations use every core.
    P8 "opt-p8" { type Schedule = ByRows | ByElements }
    /// P9: the inner loop of V-trace.
    P9 "opt-p9" { use vtrace from crate::training::vtrace }
    /// P10: what a step without anything to report hands over.
    P10 "opt-p10" { type StepInfo = MapInfo | OptionalInfo }
    /// P11: whether other Python threads run while a batch is sampled; in the binding.
    P11 "opt-p11" { elsewhere }
    /// P12: whether an owned or a borrowed transition is the primary form of a push.
    P12 "opt-p12" { use push from crate::buffer::push }
    /// P13: the observations to act on.
    P13 "opt-p13" { use current_obs from crate::pipeline::current_obs }
    /// P14: how one sequence passes through GAE.
    P14 "opt-p14" { use gae_blocks from crate::training::gae::blocks }
    /// P15: how a step-major batch passes through GAE.
    P15 "opt-p15" { use gae_step_major from crate::training::gae::step_major }
    /// P16: how the tokens of a batch become the KL of its sequences.
    P16 "opt-p16" { use token_kl from crate::llm::token_kl }
    /// P17: how the rewards of a batch are normalised by groups.
    P17 "opt-p17" { use group_advantages from crate::llm::group_advantages }
    /// P18: how one sequence passes through V-trace.
    P18 "opt-p18" { use vtrace_blocks from crate::training::vtrace::blocks }
    /// P19: how environments are held, and what steps them.
    P19 "opt-p19" { type Stepping = Member<ObsStore, StepInfo> | Lanes }
    /// P20: how a sample gets into arrays; in the binding.
    P20 "opt-p20" { elsewhere }
    /// P21: how many transitions are stored at once.
    P21 "opt-p21" { use push_batch from crate::buffer::push_batch }
    /// P22: how the leaves of a sum tree are found.
    P22 "opt-p22" { use descent from crate::buffer::descent }
    /// P23: how arrays are held by a call that keeps the interpreter; in the binding.
    P23 "opt-p23" { elsewhere }
    /// P24: how the two observations of a transition are kept.
    P24 "opt-p24" { type Observations<O> = Twice<O> | ByWidth<O> }
    /// P25: whether results that nobody holds any more are used again; in the binding.
    P25 "opt-p25" { elsewhere }
}

const _: () = assert!(!P3 || P12, "opt-p3 stands on opt-p12");
const _: () = assert!(!P19 || P2 && P10, "opt-p19 stands on opt-p2 and opt-p10");
const _: () = assert!(!P24 || P21, "opt-p24 stands on opt-p21");
const _: () = assert!(!P25 || P20, "opt-p25 stands on opt-p20");

/// The environments, with the choices above.
pub type VecEnv = crate::env::parallel::VecEnv<Stepping>;
/// The uniform buffer, with the choices above.
pub type ReplayBuffer<O> = crate::buffer::ringbuf::RingBuffer<O, Batches<O>>;
/// The prioritised buffer, with the choices above.
pub type PrioritizedReplayBuffer<O> =
    crate::buffer::priority::PriorityBuffer<O, MinPriority, Batches<O>>;
/// The LLM operations, with the choice above.
pub type LlmOps = crate::llm::ops::Ops<Schedule>;

#[cfg(test)]
mod tests {
    use std::any::{type_name, type_name_of_val};

    use super::*;

    /// Said once more, without the macro: what each name must stand for in this build.
    #[test]
    fn every_name_is_the_twin_that_its_feature_asks_for() {
        let functions = [
            (P1, type_name_of_val(&rollout_gae::advantages_and_returns)),
            (
                P3,
                type_name_of_val(&intake::push::<f32, ReplayBuffer<f32>>),
            ),
            (P7, type_name_of_val(&gae::advantages::<f64>)),
            (P9, type_name_of_val(&vtrace::targets::<f64>)),
            (P12, type_name_of_val(&push::push_slices::<f32>)),
            (P13, type_name_of_val(&current_obs::refresh::<ObsStore>)),
            (
                P14,
                type_name_of_val(&gae_blocks::advantages_and_returns::<f64>),
            ),
            (
                P15,
                type_name_of_val(&gae_step_major::advantages_and_returns::<f64>),
            ),
            (P16, type_name_of_val(&token_kl::k3_sums::<Schedule, f64>)),
            (
                P17,
                type_name_of_val(&group_advantages::normalise::<Schedule, f64>),
            ),
            (P18, type_name_of_val(&vtrace_blocks::targets::<f64>)),
            (
                P21,
                type_name_of_val(&push_batch::push_batch::<f32, ReplayBuffer<f32>>),
            ),
            (P22, type_name_of_val(&descent::find_all)),
        ];
        for (active, path) in functions {
            let twin = if active {
                "::optimized::"
            } else {
                "::baseline::"
            };
            assert!(path.contains(twin), "{path} should be {twin}");
        }
        fn twin<Before, After>(active: bool) -> &'static str {
            if active {
                type_name::<After>()
            } else {
                type_name::<Before>()
            }
        }
        let stepping = twin::<Member<ObsStore, StepInfo>, Lanes>(P19);
        let obs = twin::<PerEnvObs, FlatObs>(P2);
        let info = twin::<MapInfo, OptionalInfo>(P10);
        let batches = twin::<Fresh<f32>, Kept<f32>>(P4);
        let min = twin::<Scan, MinTree>(P5);
        let schedule = twin::<ByRows, ByElements>(P8);
        let observations = twin::<Twice<f32>, ByWidth<f32>>(P24);
        for (found, seams) in [
            (type_name::<VecEnv>(), &[stepping][..]),
            (type_name::<Member<ObsStore, StepInfo>>(), &[obs, info]),
            (type_name::<ReplayBuffer<f32>>(), &[batches]),
            (type_name::<PrioritizedReplayBuffer<f32>>(), &[min, batches]),
            (type_name::<LlmOps>(), &[schedule]),
            (type_name::<Observations<f32>>(), &[observations]),
        ] {
            for seam in seams {
                assert!(found.contains(seam), "{found} should hold {seam}");
            }
        }
    }

    #[test]
    fn ids_and_features_are_in_step() {
        let mut last = 0;
        for optimization in OPTIMIZATIONS {
            let number: u32 = optimization.id.trim_start_matches('P').parse().unwrap_or(0);
            assert!(number > last, "{} comes too late", optimization.id);
            assert_eq!(optimization.feature, format!("opt-p{number}"));
            last = number;
        }
    }
}
