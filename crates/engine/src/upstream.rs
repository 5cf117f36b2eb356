//! What Karpenter, the VPC CNI, the cloud controller and other agents say and do, and when: each with its file and
//! version upstream.

pub mod annotations;
pub mod cloud_controller;
pub mod cordons;
pub mod credentials;
pub mod csi;
pub mod device_plugins;
pub mod eks;
pub mod former_words;
pub mod gpus;
pub mod image_releases;
pub mod instance_name;
pub mod instance_types;
pub mod karpenter;
pub mod network_agents;
pub mod node_events;
pub mod overhead;
pub mod provider_id;
pub mod schemas;
pub mod startup_taint;
pub mod termination_handler;
pub mod text_hash;
pub mod unplaced;
pub mod vpc_cni;
