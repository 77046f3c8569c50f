//! The runtime of a provider: what every reconciler on kcp needs and none should write again.

pub mod queue;
