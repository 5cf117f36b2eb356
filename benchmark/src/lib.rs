//! A benchmark for whoever explains why nodes never become usable: cases from public reports, a scorer, and baselines.
//!
//! It knows of no program but by its answers: nothing here depends on nodewhy's code.

pub mod answers;
pub mod case;
pub mod difference;
pub mod documents;
pub mod report;
pub mod score;
pub mod yaml;
