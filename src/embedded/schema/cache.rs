//! Schemas by their content, so that the same document is compiled once in a process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::super::errors::Cause;
use super::Schema;

/// How many schemas are kept.
const CAPACITY: usize = 1024;

type Hash = [u8; 32];

#[derive(Default)]
struct Cache {
    schemas: BTreeMap<Hash, Arc<Schema>>,
    /// Oldest first.
    order: VecDeque<Hash>,
}

/// The schema of a document, compiled now or before. Refused documents are not kept.
pub(super) fn compiled(open_api: &Value) -> Result<Arc<Schema>, Vec<Cause>> {
    static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);
    // Maps of JSON are sorted here, so equal documents have equal text.
    let hash: Hash = Sha256::digest(open_api.to_string()).into();
    if let Some(schema) = CACHE.lock().schemas.get(&hash) {
        return Ok(Arc::clone(schema));
    }
    // Compiling takes a while, and other schemas shall not wait for it; at worst one is compiled twice.
    let schema = Arc::new(Schema::compile(open_api)?);
    let mut cache = CACHE.lock();
    if cache.schemas.insert(hash, Arc::clone(&schema)).is_none() {
        cache.order.push_back(hash);
    }
    while cache.order.len() > CAPACITY {
        if let Some(oldest) = cache.order.pop_front() {
            cache.schemas.remove(&oldest);
        }
    }
    Ok(schema)
}
