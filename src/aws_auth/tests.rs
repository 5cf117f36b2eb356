use super::*;

const NODE: &str = "arn:aws:iam::111122223333:role/node";
const GOOD: &str = "\
- rolearn: arn:aws:iam::111122223333:role/node
  username: system:node:{{EC2PrivateDNSName}}
  groups:
    - system:bootstrappers
    - system:nodes
";

fn roles(text: &str) -> AwsAuth {
    read(Some(text), None, None)
}
