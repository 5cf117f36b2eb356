//! The ways in that end: a dump, logs, one look at a cluster; and the dump that `collect` writes.

pub mod collect;
pub mod diagnoses;
pub mod dump;
pub mod dump_time;
pub mod kustomization;
pub mod list;
pub mod logs;
pub mod pod_logs;
pub mod regular;
