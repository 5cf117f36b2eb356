//! The role of a machine, as EC2, IAM and its node class tell it.

use super::Case;

impl<'w> Case<'w> {
    /// The name of the role in the machine's own instance profile, else of that in its class.
    pub(crate) fn role_name(&self) -> Option<&'w str> {
        let own = || {
            let profile = self.cluster.aws().instance_profile(self.own_profile()?).known()?.0;
            profile.role_arn.as_deref()?.rsplit('/').next()
        };
        own().or_else(|| self.cluster.aws().role_of(self.class()?))
    }

    /// The name of the machine's instance profile, as EC2 says.
    pub(crate) fn own_profile(&self) -> Option<&'w str> {
        let (instance, _) = self.cluster.aws().instance(self.instance_id()?).known()?;
        instance.profile.as_deref()?.rsplit('/').next()
    }
}
