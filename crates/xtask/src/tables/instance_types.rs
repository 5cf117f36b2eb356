//! The network of each instance type, as the controller of AWS's pod interfaces knows it.

/// Where Karpenter and EKS take the limits of instance types from. `tests/e2e/upstream` holds the table against it.
pub const MODULE: &str = "github.com/aws/amazon-vpc-resource-controller-k8s@v1.8.2";
pub const FILE: &str = "pkg/aws/vpc/limits.go";
/// What is made of it.
pub const TABLE: &str = "crates/engine/src/upstream/instance_types.tsv";

/// One row an instance type: its network interfaces on the card that the VPC CNI uses, the IPv4 addresses of each, and
/// how many branches a trunk interface has, none where the type can have no trunk.
/// `None` where the source is no longer shaped so. `module` is named at the top.
pub fn table(source: &str, module: &str) -> Option<String> {
    let date = source.lines().find_map(|line| line.split_once("generated at ")?.1.get(..10))?;
    let mut rows: Vec<String> = source.split("\n\t\"").skip(1).map(row).collect::<Option<_>>()?;
    rows.sort();
    let rows = (!rows.is_empty()).then(|| rows.concat())?;
    Some(format!("# {module} {FILE}, as of {date}\n# type\tinterfaces\taddresses of each\tbranches of a trunk\n{rows}"))
}

fn row(entry: &str) -> Option<String> {
    let (name, body) = entry.split_once('"')?;
    let numbers = |field: &str| {
        let lines = body.lines().filter_map(|line| line.trim().strip_prefix(field)?.strip_prefix(':'));
        lines.filter_map(|number| number.trim().trim_end_matches(',').parse::<usize>().ok()).collect::<Vec<_>>()
    };
    let card = *numbers("DefaultNetworkCardIndex").first()?;
    let interfaces = *numbers("MaximumNetworkInterfaces").get(card)?;
    let addresses = *numbers("IPv4PerInterface").first()?;
    let trunks = body.lines().find_map(|line| line.trim().strip_prefix("IsTrunkingCompatible:")).map(str::trim)?;
    let branches = if trunks == "true," { *numbers("BranchInterface").first()? } else { 0 };
    Some(format!("{name}\t{interfaces}\t{addresses}\t{branches}\n"))
}
