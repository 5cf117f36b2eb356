//! What a denial of AWS names: the call, whose role makes it, and whether that is a machine's own.
//! Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html>.

use crate::fact::Reason;

/// What makes a line worth a look for the role that it names, whether a row knows the line or not.
pub(crate) const NEEDLE: &str = " is not authorized to perform";

/// What is denied, by the names that a fact has for it: `role`, `call`, and `session` where that is an instance's.
pub(crate) fn denied(message: &str, reason: Option<Reason>) -> impl Iterator<Item = (&'static str, String)> {
    let is_denied = matches!(
        reason,
        Some(Reason::AccessDenied | Reason::OrganizationPolicy | Reason::PermissionsBoundary | Reason::Forbidden)
    );
    let implied = || sdk_call(message).or_else(|| karpenters_call(message)).filter(|_| is_denied);
    let call = named_call(message).or_else(implied);
    let (role, session) = role(message).unzip();
    // A machine's credentials have its id for a session: aws-sdk-go-v2 credentials/ec2rolecreds.
    let session = session.filter(|session| session.starts_with("i-"));
    let named = [("role", role.map(str::to_owned)), ("session", session.map(str::to_owned)), ("call", call)];
    named.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// `User: arn:aws:sts::1:assumed-role/ROLE/SESSION is not authorized to perform …`: the role, and its session.
fn role(message: &str) -> Option<(&str, &str)> {
    let (who, _) = message.split_once(NEEDLE)?;
    let (_, role) = who.rsplit_once(":assumed-role/")?;
    role.split_once('/').or(Some((role, "")))
}

/// `… is not authorized to perform: ec2:TerminateInstances on resource: …`
fn named_call(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("is not authorized to perform: ")?;
    let call = rest.split([' ', ',', ';', '"']).next()?.trim_end_matches('.');
    call.contains(':').then(|| call.to_owned())
}

/// `operation error EC2: DescribeImages, https response error StatusCode: 403, …`
/// Source: smithy-go v1.24 errors.go `OperationError.Error`.
fn sdk_call(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("operation error ")?;
    let (service, call) = rest.split(',').next()?.split_once(": ")?;
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric());
    (is_word(service) && is_word(call)).then(|| format!("{}:{call}", service.to_ascii_lowercase()))
}

/// Before 0.38 the SDK did not name the call, and Karpenter's own words do.
/// Source: karpenter-provider-aws v0.32.1 pkg/providers/amifamily/ami.go.
fn karpenters_call(message: &str) -> Option<String> {
    message.contains("describing images [").then(|| "ec2:DescribeImages".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(message: &str) -> String {
        let named = denied(message, Some(Reason::AccessDenied)).map(|(name, value)| format!("{name}={value}"));
        named.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_denial_names_the_call_and_the_role() {
        let user = "User: arn:aws:sts::1:assumed-role/karpenter/17 is not authorized to perform:";
        assert_eq!(
            all(&format!("x: {user} iam:PassRole on resource: arn:aws:iam::1:role/n")),
            "role=karpenter call=iam:PassRole"
        );
        assert_eq!(all(&user.replace("/17", "/i-0abc")), "role=karpenter session=i-0abc");
        assert_eq!(
            all("operation error EC2: DescribeImages, https response error StatusCode: 403, api error"),
            "call=ec2:DescribeImages"
        );
        assert_eq!(
            all("getting launch templates, describing images [{}], UnauthorizedOperation"),
            "call=ec2:DescribeImages"
        );
        assert_eq!(all("UnauthorizedOperation: You are not authorized to perform this operation."), "");
        assert_eq!(denied("operation error EC2: DescribeImages, i/o timeout", Some(Reason::Timeout)).count(), 0);
    }
}
