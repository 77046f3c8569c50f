//! Base64 as Secrets are written in.
//!
//! Pure: bytes to text and back, through the byte string of the Kubernetes types.

use k8s_openapi::ByteString;

/// Standard alphabet, padded.
pub(crate) fn encode(bytes: &[u8]) -> String {
    match serde_json::to_value(ByteString(bytes.to_vec())) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

/// `None` for what is not base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    serde_json::from_value::<ByteString>(text.into()).ok().map(|bytes| bytes.0)
}
