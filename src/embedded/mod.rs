//! The embedded control plane: a kcp in memory, for a newcomer's first minute, for provider teams' tests, and for simulation.

pub mod body;
pub mod errors;
pub mod front;
pub mod patch;
pub mod schema;
pub mod served;
