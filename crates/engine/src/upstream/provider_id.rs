//! What a providerID of another cloud than AWS says of its machine.

/// The host name of the machine, where the providerID ends with it: `gce://PROJECT/ZONE/NAME`,
/// `azure:///subscriptions/…/virtualMachines/NAME`. A machine of an Azure scale set has its number there.
/// Sources: kubernetes v1.26.15 staging/src/k8s.io/legacy-cloud-providers/gce/gce_util.go `getProviderID`,
/// azure/azure_instances.go `GetInstanceProviderID`.
pub fn host_elsewhere(provider_id: &str) -> Option<&str> {
    let (cloud, path) = provider_id.split_once("://")?;
    let (before, name) = path.rsplit_once('/')?;
    let is_host = match cloud {
        "gce" => true,
        "azure" => !before.to_ascii_lowercase().contains("/virtualmachinescalesets/"),
        _ => false,
    };
    (is_host && !name.is_empty()).then_some(name)
}

/// Whether the providerID is of another cloud than AWS.
pub fn is_elsewhere(provider_id: &str) -> bool {
    provider_id.split_once("://").is_some_and(|(cloud, _)| cloud != "aws")
}

#[cfg(test)]
mod tests {
    use super::{host_elsewhere, is_elsewhere};

    #[test]
    fn a_machine_of_another_cloud_is_called_by_the_end_of_its_provider_id() {
        assert_eq!(host_elsewhere("gce://shop/us-central1-a/karpenter-general-7xk2p"), Some("karpenter-general-7xk2p"));
        let azure = "azure:///subscriptions/1/resourceGroups/mc/providers/Microsoft.Compute";
        assert_eq!(host_elsewhere(&format!("{azure}/virtualMachines/aks-general-7xk2p")), Some("aks-general-7xk2p"));
        assert_eq!(host_elsewhere(&format!("{azure}/virtualMachineScaleSets/aks-a-vmss/virtualMachines/0")), None);
        assert_eq!(host_elsewhere("digitalocean://214321"), None);
        assert_eq!(host_elsewhere("aws:///eu-west-1a/i-0a0000000000000b1"), None);
        assert_eq!(host_elsewhere(""), None);
    }

    #[test]
    fn what_names_no_cloud_is_not_of_another() {
        assert!(is_elsewhere("gce://shop/us-central1-a/karpenter-general-7xk2p"));
        assert!(!is_elsewhere("aws:///eu-west-1a/i-0a0000000000000b1"));
        assert!(!is_elsewhere(""));
    }
}
