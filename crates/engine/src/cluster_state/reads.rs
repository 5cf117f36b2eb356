//! Records which inputs a rule reads, so that a test can compare them with those that it declares.

use super::ClusterState;
use crate::objects::input::Input;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

/// Inputs, one bit each.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Inputs(u32);

impl Inputs {
    const fn of(input: Input) -> Self {
        Self(1 << input as u16)
    }
}

#[derive(Debug, Default)]
pub(super) struct Reads(AtomicU32);

impl Reads {
    pub(super) fn add(&self, Inputs(bits): Inputs) {
        // Nearly always it is known already, and a look costs next to nothing.
        if self.0.load(Ordering::Relaxed) & bits != bits {
            self.0.fetch_or(bits, Ordering::Relaxed);
        }
    }
}

impl ClusterState {
    /// Notes that this input is asked for. Every accessor does.
    pub(crate) fn asks(&self, input: Input) {
        self.reads.add(Inputs::of(input));
    }

    /// The result of `work`, and the inputs that it reads.
    pub(super) fn noting<T>(&self, work: impl FnOnce() -> T) -> (T, Inputs) {
        let before = Inputs(self.reads.0.swap(0, Ordering::Relaxed));
        let given = work();
        let asked = Inputs(self.reads.0.load(Ordering::Relaxed));
        self.reads.add(before);
        (given, asked)
    }

    /// The inputs that `work` reads. Reads of other threads on the same cluster are recorded too.
    pub fn inputs_asked_by(&self, work: impl FnOnce()) -> BTreeSet<Input> {
        let ((), Inputs(asked)) = self.noting(work);
        Input::ALL.into_iter().filter(|input| asked & Inputs::of(*input).0 != 0).collect()
    }
}
