//! A node of ordinary size whose kubelet reserves nearly all memory for itself and the system.

use crate::explain::commands;
use crate::objects::{Node, quantity};
use crate::rules::prelude::*;
use crate::upstream::overhead::MIB;

pub(super) struct OverReserved<'w> {
    node: &'w Node,
    type_: &'w str,
    /// The memory of the instance type, in MiB.
    memory: f64,
    allocatable: &'w str,
}

impl<'w> OverReserved<'w> {
    /// In MiB: the smallest types have no more than this, and leave little to pods whatever the kubelet reserves.
    const SMALLEST: f64 = 1024.0;

    /// `left` is what pods may use, in bytes.
    pub(super) fn of(node: &'w Node, allocatable: &'w str, left: f64) -> Option<Self> {
        let memory = quantity::parse(node.metadata.label("karpenter.k8s.aws/instance-memory")?)?;
        let type_ = node.metadata.label("node.kubernetes.io/instance-type")?;
        let is_ordinary = memory > Self::SMALLEST && left < memory * MIB / 2.0;
        is_ordinary.then_some(Self { node, type_, memory, allocatable })
    }

    pub(super) fn said(&self) -> String {
        let Self { type_, memory, allocatable, .. } = self;
        format!(
            "Instance type {type_} has {memory:.0}Mi of memory, but what the kubelet reserves leaves only \
             {allocatable} for all pods, including the node's own agents. "
        )
    }

    /// nodeadm reserves for as many pods as its own count says, even if the kubelet's maxPods is lower.
    /// Sources: awslabs/amazon-eks-ami@0137549 nodeadm/internal/kubelet/config.go `withDefaultReservedResources`;
    /// awslabs/amazon-eks-ami#2580 of its maxPodsExpression.
    pub(super) fn onto(&self, finding: Finding, case: &Case) -> Finding {
        const EXPRESSION: &str = "maxPodsExpression";
        let of_expression = case.user_data_naming(&[EXPRESSION]);
        let fix = match of_expression {
            Some(_) => {
                "Write a maxPodsExpression with a smaller result: nodeadm reserves 11Mi for each of that many pods, \
                 even if maxPods is lower. Or set kubeReserved.memory yourself. Only new nodes get it."
            }
            None => {
                "Set a smaller kubeReserved.memory (255Mi and 11Mi for each pod) and systemReserved.memory, in \
                 spec.kubelet of the node class or in its user data. Only new nodes get it."
            }
        };
        let own = || Blame::object("v1", "Node", self.node.name());
        let blame = of_expression.or_else(|| case.class_field("spec.kubelet")).unwrap_or_else(own);
        let finding = finding
            .with(Evidence::new(
                format!("Node/{}", self.node.name()),
                "status.allocatable.memory",
                self.allocatable.to_owned(),
                "the memory that the kubelet's reservations leave for pods",
            ))
            .blaming(blame)
            .fix(fix);
        match case.class() {
            Some(class) => finding.change("Reserve less memory", commands::edit(class)),
            None => finding,
        }
    }
}
