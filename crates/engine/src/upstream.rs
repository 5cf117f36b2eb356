//! What Karpenter, the VPC CNI, the cloud controller and other agents say and do, and when: each with its file and
//! version upstream.

pub mod annotations;
pub mod cloud_controller;
pub mod credentials;
pub mod eks;
pub mod image_releases;
pub mod instance_types;
pub mod karpenter;
pub mod network_agents;
pub mod reckoning;
pub mod startup_taint;
pub mod termination_handler;
pub mod unplaced;
pub mod vpc_cni;
