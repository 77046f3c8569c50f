//! What the command line is made of: real servers as child processes, and a client for their administrator.

pub mod bind;
pub mod connect;
pub mod dev;
pub mod explain;
pub mod init;
pub mod kcp_admin;
pub mod kcp_server;
pub mod leash;
pub mod main;
pub mod manifests;
pub mod manuals;
pub mod run;
pub mod servers;
