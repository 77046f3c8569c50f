//! Patches: JSON merge patch, JSON patch, and server-side apply with its managed fields.
