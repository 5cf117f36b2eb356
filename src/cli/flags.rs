//! Flags that several commands have, and what they mean to the engine.

use super::duration::seconds;
use crate::kube_client::ClusterFlags;
use aws::Options;
use chrono::TimeDelta;
use clap::{Args, ValueEnum};
use engine::case::stage::Thresholds;
use engine::remediation::{Limits, Mode, breaker};
use http::Uri;

/// How long a machine may wait at a stage before it counts as stuck.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Thresholds")]
pub struct ThresholdFlags {
    /// Report a NodeClaim that has no EC2 instance after this time
    #[arg(long = "launch-threshold", env = "NODEWHY_LAUNCH_THRESHOLD", value_name = "DURATION", default_value = "2m", value_parser = seconds)]
    launch: u32,
    /// Report an instance that has no Node after this time (doubled for Windows)
    #[arg(long = "join-threshold", env = "NODEWHY_JOIN_THRESHOLD", value_name = "DURATION", default_value = "5m", value_parser = seconds)]
    join: u32,
    /// Report a Node that Karpenter has not registered after this time
    #[arg(long = "register-threshold", env = "NODEWHY_REGISTER_THRESHOLD", value_name = "DURATION", default_value = "2m", value_parser = seconds)]
    register: u32,
    /// Report a registered Node that Karpenter has not initialized after this time
    #[arg(long = "initialize-threshold", env = "NODEWHY_INITIALIZE_THRESHOLD", value_name = "DURATION", default_value = "5m", value_parser = seconds)]
    initialize: u32,
    /// Like --initialize-threshold, for Nodes that wait for device plugins or drivers
    #[arg(long = "devices-threshold", env = "NODEWHY_DEVICES_THRESHOLD", value_name = "DURATION", default_value = "10m", value_parser = seconds)]
    devices: u32,
    /// Report a Node that was Ready and has been NotReady or unusable for this time (doubled for pressure of disk,
    /// memory or PIDs, and for missing pod IPs)
    #[arg(long = "ready-threshold", env = "NODEWHY_READY_THRESHOLD", value_name = "DURATION", default_value = "5m", value_parser = seconds)]
    ready: u32,
    /// Report a NodeClaim or Node whose deletion has made no progress for this time
    #[arg(long = "terminate-threshold", env = "NODEWHY_TERMINATE_THRESHOLD", value_name = "DURATION", default_value = "1h", value_parser = seconds)]
    terminate: u32,
    /// Shortest wait at every stage. nodewhy reports a node after this time if its cause is proven, and otherwise after
    /// the threshold of its stage
    #[arg(long = "proven-threshold", env = "NODEWHY_PROVEN_THRESHOLD", value_name = "DURATION", default_value = "2m", value_parser = seconds)]
    proven: u32,
}

impl From<&ThresholdFlags> for Thresholds {
    fn from(flags: &ThresholdFlags) -> Self {
        let seconds = |n: u32| TimeDelta::seconds(i64::from(n));
        Self {
            launch: seconds(flags.launch),
            join: seconds(flags.join),
            register: seconds(flags.register),
            initialize: seconds(flags.initialize),
            devices: seconds(flags.devices),
            ready: seconds(flags.ready),
            terminate: seconds(flags.terminate),
            proven: seconds(flags.proven),
        }
    }
}

/// Which cluster a command reads, and how patient it is.
#[derive(Debug, Clone, Args)]
pub struct LiveFlags {
    #[command(flatten)]
    pub cluster: ClusterFlags,
    /// How long to wait for the API server to answer
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = seconds)]
    pub request_timeout: u32,
}

/// Whether AWS is asked, and where.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "AWS")]
#[group(id = "aws")]
pub struct AwsFlags {
    /// Also query the AWS API for facts that no Kubernetes object has. All calls are read-only (IAM policy:
    /// docs/aws.md)
    #[arg(long = "aws", env = "NODEWHY_AWS")]
    ask: bool,
    /// AWS region [default: the region of the cluster's Nodes, then $AWS_REGION, $AWS_DEFAULT_REGION]
    #[arg(long = "aws-region", value_name = "REGION", requires = "ask")]
    region: Option<String>,
    /// Send all AWS requests to this address instead of the AWS endpoints
    #[arg(long = "aws-endpoint-url", env = "AWS_ENDPOINT_URL", value_name = "URL")]
    endpoint: Option<Uri>,
    /// Maximum number of AWS calls per minute
    #[arg(
        long = "aws-calls-per-minute",
        env = "NODEWHY_AWS_CALLS_PER_MINUTE",
        value_name = "COUNT",
        default_value_t = 60
    )]
    calls_per_minute: usize,
}

impl AwsFlags {
    /// How to ask AWS; `None` where it is not asked.
    pub fn options(&self) -> Option<Options> {
        let Self { ask, region, endpoint, calls_per_minute } = self.clone();
        ask.then_some(Options { region, endpoint, calls_per_minute })
    }
}

/// Whether taints are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeFlag {
    /// Do nothing
    Off,
    /// Run all safety checks and send the patch with dryRun=All. No Node changes
    DryRun,
    On,
}

impl From<ModeFlag> for Mode {
    fn from(flag: ModeFlag) -> Self {
        match flag {
            ModeFlag::Off => Self::Off,
            ModeFlag::DryRun => Self::DryRun,
            ModeFlag::On => Self::On,
        }
    }
}

/// The options of remediation.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Remediation")]
pub struct RemediationFlags {
    /// Remove the taint node.cloudprovider.kubernetes.io/uninitialized from Nodes that the cloud controller has already
    /// initialized
    #[arg(long = "remove-stale-taints", env = "NODEWHY_REMOVE_STALE_TAINTS", value_enum, default_value_t = ModeFlag::Off, value_name = "MODE")]
    stale: ModeFlag,
    /// Remove the taint node.cloudprovider.kubernetes.io/uninitialized from Nodes that the cloud controller never
    /// initialized, if Karpenter has registered them
    #[arg(
        long = "remove-uninitialized-taints",
        env = "NODEWHY_REMOVE_UNINITIALIZED_TAINTS",
        value_enum,
        default_value_t = ModeFlag::Off,
        value_name = "MODE"
    )]
    uninitialized: ModeFlag,
    /// How long a verdict must hold before nodewhy removes the taint
    #[arg(long = "remediation-wait", env = "NODEWHY_REMEDIATION_WAIT", value_name = "DURATION", default_value = "10m", value_parser = seconds)]
    wait: u32,
    /// Like --remediation-wait, for Nodes that the cloud controller never initialized. The default is longer, because
    /// the controller may still initialize them
    #[arg(
        long = "remediation-wait-uninitialized",
        env = "NODEWHY_REMEDIATION_WAIT_UNINITIALIZED",
        value_name = "DURATION",
        default_value = "30m",
        value_parser = seconds
    )]
    wait_uninitialized: u32,
    /// The time span for --remediation-budget and --remediation-share
    #[arg(long = "remediation-window", env = "NODEWHY_REMEDIATION_WINDOW", value_name = "DURATION", default_value = "1h", value_parser = seconds)]
    window: u32,
    /// Maximum taint removals per --remediation-window
    #[arg(
        long = "remediation-budget",
        env = "NODEWHY_REMEDIATION_BUDGET",
        value_name = "REMOVALS",
        default_value_t = 5
    )]
    budget: u16,
    /// Maximum taint removals per --remediation-window, as a percentage of all Nodes. One removal is always allowed
    #[arg(long = "remediation-share", env = "NODEWHY_REMEDIATION_SHARE", value_name = "PERCENT", default_value_t = 5)]
    share: u8,
    /// Remove nothing while more Nodes than this have the taint
    #[arg(long = "remediation-many", env = "NODEWHY_REMEDIATION_MANY", value_name = "NODES", default_value_t = 5)]
    many: u16,
}

impl RemediationFlags {
    /// Why these values, with how long ended diagnoses are kept, would leave a guard without what it rests on.
    pub fn refusal(&self, retention: u32) -> Option<String> {
        if [self.stale, self.uninitialized] == [ModeFlag::Off; 2] {
            return None;
        }
        let seconds = |time: TimeDelta| u32::try_from(time.num_seconds()).unwrap_or(u32::MAX);
        let (young, hold) = (seconds(breaker::YOUNG), seconds(breaker::HOLD));
        let young_nodes = "the guard ManyNodes does not count younger Nodes";
        let least = [
            ("--remediation-wait", self.wait, young, young_nodes),
            ("--remediation-wait-uninitialized", self.wait_uninitialized, young, young_nodes),
            ("--remediation-window", self.window, LEAST_WINDOW, "over a shorter time the budget limits nothing"),
            ("--retention", retention, hold, "after a taint was re-added, nodewhy removes nothing for this long"),
        ];
        let too_short = least.into_iter().find(|(_, value, least, _)| value < least);
        let too_short = too_short.map(|(flag, _, least, why)| {
            format!("{flag} must be at least {} while taint removal is on: {why}", minutes(least))
        });
        too_short.or_else(|| {
            (self.window > hold).then(|| {
                format!(
                    "--remediation-window must be at most {}: nodewhy remembers removals for this long",
                    minutes(hold)
                )
            })
        })
    }
}

/// Two reports of an idle kubelet, as for the guard `NoHeartbeat`: who puts a taint back at a report has come by then.
const LEAST_WINDOW: u32 = 600;

fn minutes(seconds: u32) -> String {
    format!("{}m", seconds / 60)
}

impl From<&RemediationFlags> for Limits {
    fn from(flags: &RemediationFlags) -> Self {
        let RemediationFlags { stale, uninitialized, wait, wait_uninitialized, window, budget, share, many } = *flags;
        Self {
            stale: stale.into(),
            uninitialized: uninitialized.into(),
            wait,
            wait_uninitialized,
            window,
            budget,
            share,
            many,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        remediation: RemediationFlags,
    }

    #[derive(Parser)]
    struct Waits {
        #[command(flatten)]
        thresholds: ThresholdFlags,
    }

    #[test]
    fn lint_waits_as_long_as_the_flags_say_by_default() {
        let flags = Waits::try_parse_from(["nodewhy"]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Thresholds::from(&flags.thresholds), Thresholds::default());
    }

    #[test]
    fn values_below_what_a_guard_rests_on_are_refused_where_taints_are_removed() {
        const DAY: u32 = 24 * 60 * 60;
        let refusal = |arguments: &str, retention: u32| {
            let all = ["nodewhy", "--remediation-budget=5"].into_iter().chain(arguments.split_whitespace());
            Flags::try_parse_from(all).map_or_else(|e| panic!("{e}"), |flags| flags.remediation.refusal(retention))
        };
        for on in ["--remove-stale-taints=on", "--remove-uninitialized-taints=dry-run"] {
            assert_eq!(refusal(on, DAY), None);
            for (value, passes) in [
                ("--remediation-wait=119s", false),
                ("--remediation-wait=2m", true),
                ("--remediation-wait-uninitialized=0", false),
                ("--remediation-window=0", false),
                ("--remediation-window=10m", true),
                ("--remediation-window=25h", false),
            ] {
                let refused = refusal(&format!("{on} {value}"), DAY);
                let flag = value.split('=').next().unwrap();
                assert_eq!(refused.is_none(), passes, "{value}: {refused:?}");
                assert!(refused.is_none_or(|why| why.starts_with(flag)), "{value}");
            }
            assert!(refusal(on, DAY - 1).unwrap().starts_with("--retention must be at least 1440m"));
        }
        assert_eq!(refusal("--remediation-wait=0 --remediation-window=0", 0), None, "nothing rests on them");
    }
}
