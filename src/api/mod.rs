//! The kinds of the wire API and their values; nothing here talks to a server.

pub mod allowed;
pub mod catalog;
pub mod condition;
pub mod config;
pub mod kcp;
pub mod manifest;
pub mod meta;
pub mod names;
pub mod projection;
pub mod provider;
pub mod quantity;
pub mod reason;
pub mod tenant;
