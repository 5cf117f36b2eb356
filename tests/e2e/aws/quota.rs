//! What Service Quotas says of the vCPUs for which a launch was refused.

use super::{Run, policy_without, questions};
use serde_json::json;
use testkit::moto::moto;

/// A claim whose launch was refused for a quota, of instances that share one.
fn refused(reason: &str) -> String {
    format!(
        r#"
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{name: general-7xk2p, uid: c1, creationTimestamp: "2026-01-15T11:56:00Z", labels: {{karpenter.sh/nodepool: general}}}}
spec:
  nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
  requirements: [{{key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge, g6.xlarge]}}]
status:
  conditions:
  - {{type: Launched, status: Unknown, reason: {reason}, message: Instance launch failed, lastTransitionTime: "2026-01-15T11:56:00Z"}}
"#
    )
}

#[test]
fn the_quota_for_which_a_launch_was_refused_is_told_with_its_size() {
    for (reason, code, value) in [("VCPULimitExceeded", "L-DB2E81BA", 0.0), ("SpotQuotaExceeded", "L-3819A6DF", 64.0)] {
        let moto = moto();
        moto.tell("quota", &json!({"code": code, "value": value}));
        moto.tell("policy", &policy_without(&[]));
        let run = Run::of(&moto, &refused(reason));
        let status = run.assert("LaunchFailed", "Certain");
        let evidence = status["evidence"].to_string();
        assert!(evidence.contains(&format!("servicequotas:GetServiceQuota {code}")), "{status:#}");
        assert!(evidence.contains(&format!("\"{value} vCPUs")), "{status:#}");
        // A quota of 0 is not used up.
        let is_zero = status["summary"].to_string().contains(") is 0 (");
        assert_eq!(is_zero, reason == "VCPULimitExceeded", "{status:#}");
        assert!(!questions(&status).contains("get-service-quota"), "{status:#}");
        assert_eq!(run.calls(), ["servicequotas:GetServiceQuota"]);
    }
}

#[test]
fn a_quota_that_is_not_told_stays_a_question() {
    let moto = moto();
    let run = Run::of(&moto, &refused("VCPULimitExceeded"));
    let status = run.assert("LaunchFailed", "Certain");
    assert!(questions(&status).contains("get-service-quota --service-code ec2 --quota-code L-DB2E81BA"), "{status:#}");
    moto.tell("quota", &json!({"code": "L-DB2E81BA", "value": 8.0}));
    moto.tell("policy", &policy_without(&["servicequotas:GetServiceQuota"]));
    let status = run.assert("LaunchFailed", "Certain");
    assert!(questions(&status).contains("not permitted to call servicequotas:GetServiceQuota"), "{status:#}");
}

#[test]
fn instances_of_several_quotas_ask_for_none() {
    let moto = moto();
    let run = Run::of(&moto, &refused("VCPULimitExceeded").replace("g6.xlarge", "m5.large"));
    run.assert("LaunchFailed", "Certain");
    assert!(!run.calls().contains(&"servicequotas:GetServiceQuota".to_owned()));
}
