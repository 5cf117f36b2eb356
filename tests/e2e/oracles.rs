//! Our readers of user data beside the programs that read it on a machine: bash, systemd, Karpenter, nodeadm and the
//! kubelet.
//!
//! Every comparison is made twice: with our reader, which must agree in every case it is sure of, and with one that is
//! wrong on purpose, which must be found out. `NODEWHY_SEED` picks other cases than the usual ones.

mod bash;
mod karpenter;
mod kubelet;
mod nodeadm;
mod secrets;
mod systemd;
