//! The way of `kubectl` from client-side to server-side apply: what its annotation says it applied is its own.
//!
//! Pure: `lastappliedmanager.go`, `lastappliedupdater.go` of `apimachinery/pkg/util/managedfields/internal`.

use serde_json::{Map, Value};

use super::check::{Duplicates, check};
use super::fields::Set;
use super::merge::Difference;
use super::print::escaped;
use super::shape::Place;
use super::walk::set_of;

/// The one manager this is for.
pub const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Bytes that the keys and values of all annotations may have.
const MOST_BYTES: usize = 256 * 1024;

/// What may be taken although others own it: what was last applied client-side and is still so. Nothing if that cannot be told.
pub fn allowed(place: Place<'_>, live: &Value, api_version: &str) -> Set {
    let last = annotation(live).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let fits = |object: &Value| check(place, object, Duplicates::Refused).is_ok();
    match last {
        Some(last) if last.get("apiVersion").is_some_and(|version| version == api_version) && fits(live) && fits(&last) => {
            let changed = Difference::between(place, &last, live);
            set_of(place, &last).difference(&changed.modified).difference(&changed.added).difference(&changed.removed)
        }
        _ => Set::default(),
    }
}

/// Keeps the annotation, where there is one, at what is applied now; drops it when it would be too large.
pub fn follow(merged: &mut Value, config: &Value) {
    if annotation(merged).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = annotations(&mut config) {
        annotations.remove(ANNOTATION);
    }
    // Upstream's encoder ends what it writes with a line break.
    let text = format!("{}\n", escaped(&config));
    if let Some(annotations) = annotations(merged) {
        annotations.insert(ANNOTATION.into(), text.into());
        let bytes: usize = annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
        if bytes > MOST_BYTES {
            annotations.remove(ANNOTATION);
        }
    }
}

fn annotation(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}
