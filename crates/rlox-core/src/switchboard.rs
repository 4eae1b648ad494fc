//! The optimisations, and the wiring that this build's cargo features choose.
//!
//! Every optimisation varies one seam and has two twins for it, the baseline and the optimised form. Both
//! are always compiled. The extension and the benchmarks use [`Chosen`]. Code that needs another choice
//! uses another [wiring](mod@crate::wiring), whatever the features are. Nothing else in this crate depends
//! on a feature.

/// An optimisation, and whether this build uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Optimization {
    /// Id of its card.
    pub id: &'static str,
    /// The cargo feature that turns it on.
    pub feature: &'static str,
    /// Whether that feature is on.
    pub active: bool,
}

/// Declares the optimisations. An entry is an optimisation's id and feature. If the twins are types, their
/// common name follows, with the baseline `|` the optimised form.
macro_rules! switchboard {
    ($($(#[$doc:meta])+ $id:ident $feature:literal
        $(type $name:ident $(<$parameter:ident>)? = $before:ty | $after:ty)?;)+) => {
        /// Every optimisation there is, in the order of the plan.
        pub const OPTIMIZATIONS: &[Optimization] = &[$(Optimization {
            id: stringify!($id),
            feature: $feature,
            active: $id,
        }),+];
        $(
            $(#[$doc])+
            pub const $id: bool = cfg!(feature = $feature);
            $(
                #[cfg(not(feature = $feature))]
                #[allow(dead_code, reason = "one form may hold another seam's, and the other not")]
                type $name $(<$parameter>)? = $before;
                #[cfg(feature = $feature)]
                #[allow(dead_code, reason = "as above")]
                type $name $(<$parameter>)? = $after;
            )?
        )+
    };
}

#[allow(unused_imports, reason = "a build uses one twin of each")]
use crate::{
    buffer::batch::{Fresh, Reused},
    buffer::min_priority::{MinTree, Scan},
    buffer::observations::{ByWidth, Twice},
    env::info::{MapInfo, OptionalInfo},
    env::lanes::Lanes,
    env::members::Member,
    env::obs_store::{FlatObs, PerEnvObs},
    llm::ops::{ByElements, ByRows},
};

switchboard! {
    /// P1: how the advantages of a step-major rollout are computed.
    P1 "opt-p1";
    /// P2: how the latest observations of many environments are stored.
    P2 "opt-p2" type ObsStore = PerEnvObs | FlatObs;
    /// P3: how often a transition from the caller's memory is copied on its way into a buffer.
    P3 "opt-p3";
    /// P4: where the memory of sampled batches comes from.
    P4 "opt-p4" type Batches<O> = Fresh<O> | Reused<O>;
    /// P5: how the smallest priority is found.
    P5 "opt-p5" type MinPriority = Scan | MinTree;
    /// P6: how the release profile generates code; a pair of cargo profiles.
    P6 "opt-p6";
    /// P7: the inner loop of GAE.
    P7 "opt-p7";
    /// P8: when the LLM operations use every core.
    P8 "opt-p8" type Schedule = ByRows | ByElements;
    /// P9: the inner loop of V-trace.
    P9 "opt-p9";
    /// P10: how a step reports that there is nothing to report.
    P10 "opt-p10" type StepInfo = MapInfo | OptionalInfo;
    /// P11: whether other Python threads run while a batch is sampled; in the binding.
    P11 "opt-p11";
    /// P12: how often a single transition of a batch is copied, if P21's baseline stores the batch.
    P12 "opt-p12";
    /// P13: how the observations that the policy acts on are gathered.
    P13 "opt-p13";
    /// P14: how GAE is computed for one sequence.
    P14 "opt-p14";
    /// P15: how GAE is computed for a step-major batch.
    P15 "opt-p15";
    /// P16: how the tokens of a batch become the KL of its sequences.
    P16 "opt-p16";
    /// P17: how the rewards of a batch are normalised by groups.
    P17 "opt-p17";
    /// P18: how V-trace is computed for one sequence.
    P18 "opt-p18";
    /// P19: how many copies of an environment are stored and stepped.
    P19 "opt-p19" type Stepping = Member<ObsStore, StepInfo> | Lanes;
    /// P20: how a sample gets into arrays; in the binding.
    P20 "opt-p20";
    /// P21: how a batch of transitions is stored.
    P21 "opt-p21";
    /// P22: how the leaves of a sum tree are found.
    P22 "opt-p22";
    /// P23: how arrays are held by a call that keeps the interpreter; in the binding.
    P23 "opt-p23";
    /// P24: how the two observations of a transition are stored.
    P24 "opt-p24" type Observations<O> = Twice<O> | ByWidth<O>;
    /// P25: whether results that nobody holds any more are used again; in the binding.
    P25 "opt-p25";
    /// P26: in pages of which size the memory of a large column lies.
    P26 "opt-p26";
    /// P27: where a next observation is stored that nothing is expected to follow, in P24's optimised form.
    P27 "opt-p27";
    /// P28: when the infos of a step are made in which episodes ended; in the binding.
    P28 "opt-p28";
    /// P29: whether results of functions that nobody holds any more are used again; in the binding.
    P29 "opt-p29";
}

const _: () = assert!(!P3 || P12, "opt-p3 stands on opt-p12");
const _: () = assert!(!P19 || P2 && P10, "opt-p19 stands on opt-p2 and opt-p10");
const _: () = assert!(!P24 || P21, "opt-p24 stands on opt-p21");
const _: () = assert!(!P27 || P24, "opt-p27 stands on opt-p24");
const _: () = assert!(!P25 || P20, "opt-p25 stands on opt-p20");
const _: () = assert!(!P29 || P25, "opt-p29 stands on opt-p25");

crate::wiring! {
    /// The twins that this build's features choose.
    pub Chosen = crate::switchboard
}

/// The environments of [`Chosen`].
pub type VecEnv = crate::pipeline::EnvOf<Chosen>;
/// The uniform buffer of [`Chosen`].
pub type ReplayBuffer<O> = crate::buffer::ringbuf::RingBuffer<O, Chosen>;
/// The prioritised buffer of [`Chosen`].
pub type PrioritizedReplayBuffer<O> = crate::buffer::priority::PriorityBuffer<O, Chosen>;
/// The LLM operations of [`Chosen`].
pub type LlmOps = crate::llm::ops::Ops<Chosen>;

#[cfg(test)]
mod tests {
    use std::any::type_name;

    use super::*;
    use crate::wiring::{AllBefore, Shipped, Wiring};

    /// Whether `Found` is the optimised form. If it is not, it must be the baseline.
    fn is_after<Found, Before, After>() -> bool {
        let [found, before, after] =
            [type_name::<Found>, type_name::<Before>, type_name::<After>].map(|name| name());
        assert!(found == before || found == after, "{found} is no twin");
        found == after
    }

    /// The optimisations whose optimised form stands at its seam in a wiring. Seams outside this crate
    /// are left out.
    fn after<W: Wiring>() -> Vec<&'static str> {
        let lanes = type_name::<W::Stepping>() == type_name::<Lanes>();
        let member = type_name::<W::Stepping>();
        let holds = |part: &str| member.contains(part);
        assert!(lanes || holds("Member<"), "{member} is no twin");
        let named = [
            ("P1", W::P1),
            ("P2", lanes || holds(type_name::<FlatObs>())),
            ("P3", W::P3),
            ("P4", is_after::<W::Batches<f32>, Fresh<f32>, Reused<f32>>()),
            ("P5", is_after::<W::MinPriority, Scan, MinTree>()),
            ("P7", W::P7),
            ("P8", is_after::<W::Schedule, ByRows, ByElements>()),
            ("P9", W::P9),
            ("P10", lanes || holds(type_name::<OptionalInfo>())),
            ("P12", W::P12),
            ("P13", W::P13),
            ("P14", W::P14),
            ("P15", W::P15),
            ("P16", W::P16),
            ("P17", W::P17),
            ("P18", W::P18),
            ("P19", lanes),
            ("P21", W::P21),
            ("P22", W::P22),
            (
                "P24",
                is_after::<W::Observations<f32>, Twice<f32>, ByWidth<f32>>(),
            ),
            ("P26", W::P26),
            ("P27", W::P27),
        ];
        let named = named.into_iter().filter(|&(_, after)| after);
        named.map(|(id, _)| id).collect()
    }

    /// Those of `ids` whose seam lies in this crate.
    fn here<'a>(ids: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let elsewhere = ["P6", "P11", "P20", "P23", "P25", "P28", "P29"];
        ids.filter(|id| !elsewhere.contains(id)).collect()
    }

    #[test]
    fn chosen_is_what_the_features_ask_for() {
        let active = OPTIMIZATIONS.iter().filter(|of| of.active);
        assert_eq!(after::<Chosen>(), here(active.map(|of| of.id)));
    }

    #[test]
    fn all_before_is_before_and_shipped_is_what_the_manifest_accepts() {
        assert_eq!(after::<AllBefore>(), [""; 0]);
        let manifest = include_str!("../Cargo.toml");
        let accepted = manifest.split_once("\naccepted = [").map(|(_, list)| list);
        let features = accepted
            .and_then(|list| list.split_once(']'))
            .map(|(list, _)| list);
        let features = features.unwrap_or_default();
        let listed = |of: &&Optimization| features.contains(&format!("\"{}\"", of.feature));
        let accepted = OPTIMIZATIONS.iter().filter(listed);
        assert_eq!(after::<Shipped>(), here(accepted.map(|of| of.id)));
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
