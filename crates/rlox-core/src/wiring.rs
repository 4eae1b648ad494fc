//! Which form of the code stands at each seam. The two forms at a seam are called twins; a wiring is a type
//! that names one twin for each seam.
//!
//! A module with seams has a trait that lists them, such as [`BufferWiring`], and its code is generic over
//! a type that implements it. [`Wiring`] is all of these traits together. A wiring has no values: the
//! compiler makes separate code for each one that is used. So a program may use several wirings, and a
//! seam costs no time.
//!
//! [`wiring!`](crate::wiring!) makes a wiring from a module that names the choices, such as [`shipped`].

use crate::buffer::BufferWiring;
use crate::llm::LlmWiring;
use crate::pipeline::PipelineWiring;

/// A type that names a twin for every seam of this crate.
pub trait Wiring: BufferWiring + LlmWiring + PipelineWiring {}

impl<W: BufferWiring + LlmWiring + PipelineWiring> Wiring for W {}

/// Makes a wiring. `wiring!(pub Same = shipped)` takes its choices from the module `shipped`;
/// `wiring!(pub BeforeP5 = shipped but { type MinPriority = Scan; })` replaces one of them.
#[macro_export]
macro_rules! wiring {
    ($(#[$doc:meta])* $vis:vis $name:ident = $($base:ident)::+ $(but { $($choice:item)+ })?) => {
        $(#[$doc])*
        #[derive(Debug)]
        $vis struct $name;

        // The choices in braces win, since an item of a block hides one that is imported by `*`.
        const _: () = {
            use $($base)::+::*;
            $($($choice)+)?

            impl $crate::buffer::BufferWiring for $name {
                type Batches<O: $crate::buffer::ObsElement> = Batches<O>;
                type MinPriority = MinPriority;
                type Observations<O: $crate::buffer::ObsElement> = Observations<O>;
                const P3: bool = P3;
                const P12: bool = P12;
                const P21: bool = P21;
                const P22: bool = P22;
                const P26: bool = P26;
                const P27: bool = P27;
            }
            impl $crate::env::EnvWiring for $name {
                type Stepping = Stepping;
            }
            impl $crate::llm::LlmWiring for $name {
                type Schedule = Schedule;
                const P16: bool = P16;
                const P17: bool = P17;
            }
            impl $crate::pipeline::PipelineWiring for $name {
                const P1: bool = P1;
                const P13: bool = P13;
            }
            impl $crate::training::TrainingWiring for $name {
                const P7: bool = P7;
                const P9: bool = P9;
                const P14: bool = P14;
                const P15: bool = P15;
                const P18: bool = P18;
            }
        };
    };
}

/// The choices of [`AllBefore`].
#[allow(missing_docs, reason = "the traits say what each is")]
pub mod all_before {
    use crate::env::info::MapInfo;
    use crate::env::members::Member;
    use crate::env::obs_store::PerEnvObs;

    pub const P1: bool = false;
    pub const P3: bool = false;
    pub type Batches<O> = crate::buffer::batch::Fresh<O>;
    pub type MinPriority = crate::buffer::min_priority::Scan;
    pub const P7: bool = false;
    pub type Schedule = crate::llm::ops::ByRows;
    pub const P9: bool = false;
    pub const P12: bool = false;
    pub const P13: bool = false;
    pub const P14: bool = false;
    pub const P15: bool = false;
    pub const P16: bool = false;
    pub const P17: bool = false;
    pub const P18: bool = false;
    pub type Stepping = Member<PerEnvObs, MapInfo>;
    pub const P21: bool = false;
    pub const P22: bool = false;
    pub type Observations<O> = crate::buffer::observations::Twice<O>;
    pub const P26: bool = false;
    pub const P27: bool = false;
}

/// The choices of [`Shipped`].
#[allow(missing_docs, reason = "the traits say what each is")]
pub mod shipped {
    pub const P1: bool = false;
    pub const P3: bool = true;
    pub type Batches<O> = crate::buffer::batch::Fresh<O>;
    pub type MinPriority = crate::buffer::min_priority::MinTree;
    pub const P7: bool = false;
    pub type Schedule = crate::llm::ops::ByRows;
    pub const P9: bool = false;
    pub const P12: bool = true;
    pub const P13: bool = true;
    pub const P14: bool = true;
    pub const P15: bool = true;
    pub const P16: bool = true;
    pub const P17: bool = true;
    pub const P18: bool = true;
    pub type Stepping = crate::env::lanes::Lanes;
    pub const P21: bool = true;
    pub const P22: bool = true;
    pub type Observations<O> = crate::buffer::observations::ByWidth<O>;
    pub const P26: bool = true;
    pub const P27: bool = false;
}

wiring! {
    /// The baseline at every seam.
    pub AllBefore = all_before
}

wiring! {
    /// What ships: the optimised form of each optimisation that was accepted. The cargo feature `accepted`
    /// chooses the same ones.
    pub Shipped = shipped
}

/// Makes a module `tests` that has the tests of a file once for each wiring. In the file, `super::W` is the
/// wiring. The file's path is relative to the folder of the file that calls this macro.
#[cfg(test)]
macro_rules! tests_of_every_wiring {
    ($file:literal) => {
        #[path = "."]
        mod tests {
            $crate::wiring::tests_of_every_wiring! { all_before $crate::wiring::AllBefore, $file }
            $crate::wiring::tests_of_every_wiring! { shipped $crate::wiring::Shipped, $file }
            $crate::wiring::tests_of_every_wiring! { chosen $crate::switchboard::Chosen, $file }
        }
    };
    ($name:ident $wiring:path, $file:literal) => {
        #[path = "."]
        mod $name {
            type W = $wiring;
            #[path = $file]
            #[allow(clippy::duplicate_mod, reason = "it is other code with another wiring")]
            mod tests;
        }
    };
}
#[cfg(test)]
pub(crate) use tests_of_every_wiring;
