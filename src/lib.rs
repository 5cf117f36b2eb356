//! nodewhy says why a node never became usable.

pub mod text;
