//! Pure: the workload clusters there are, and which of them new work is begun on.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::runtime::external::{Member, Members};
use crate::runtime::raw::Raw;

/// The pool: Secrets of one namespace of the provider workspace, by their metadata alone.
#[derive(Debug, Default)]
pub(super) struct Pool {
    members: Arc<Members>,
}

impl Pool {
    /// All members.
    pub(super) const fn members(&self) -> &Arc<Members> {
        &self.members
    }

    /// The names of all members.
    pub(super) fn names(&self) -> BTreeSet<Arc<str>> {
        self.members.keys().cloned().collect()
    }

    /// Takes a Secret as the stream shows it; whether anything changed.
    pub(super) fn upsert(&mut self, raw: &Raw) -> bool {
        let Some(member) = Member::read(raw) else { return self.remove(&raw.name.name) };
        if self.members.get(&member.name) == Some(&member) {
            return false;
        }
        Arc::make_mut(&mut self.members).insert(member.name.clone(), member);
        true
    }

    /// Takes a member away; whether it was there.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        self.members.contains_key(name) && Arc::make_mut(&mut self.members).remove(name).is_some()
    }

    /// Makes the pool hold exactly these; whether anything changed.
    pub(super) fn reset(&mut self, items: &[Raw]) -> bool {
        let next: Members = items.iter().filter_map(Member::read).map(|member| (member.name.clone(), member)).collect();
        let changed = next != *self.members;
        if changed {
            self.members = Arc::new(next);
        }
        changed
    }

    /// The member on which new work is begun: the open one of this purpose that has the least to do, by name where several do.
    pub(super) fn choose(&self, purpose: &str, load: impl Fn(&str) -> usize) -> Option<Arc<str>> {
        let open = self.members.values().filter(|member| !member.closed && *member.purpose == *purpose);
        open.min_by_key(|member| (load(&member.name), member.name.clone())).map(|member| member.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runtime::raw::Keep;

    fn secret(name: &str, purpose: &str, annotations: &serde_json::Value) -> Raw {
        let labels = json!({"runtime.edge-connect.eu/workload-purpose": purpose});
        let metadata =
            json!({"name": name, "namespace": "kcm-system", "resourceVersion": "1", "labels": labels, "annotations": annotations});
        Raw::read(&json!({"metadata": metadata}).to_string(), Keep::Tags).unwrap()
    }

    fn pool() -> Pool {
        let closed = json!({"runtime.edge-connect.eu/workload-closed": "true"});
        let open = json!({"runtime.edge-connect.eu/workload-closed": "false"});
        let mut pool = Pool::default();
        let items = [
            secret("b", "workload", &open),
            secret("a", "workload", &closed),
            secret("c", "workload", &json!({})),
            secret("d", "test", &json!({})),
        ];
        assert!(pool.reset(&items) && !pool.reset(&items));
        pool
    }

    #[test]
    fn new_work_goes_where_the_least_is_by_name_where_several_have_as_little_and_never_where_it_is_closed() {
        let chosen = |loads: &[(&str, usize)], purpose| {
            let load = |name: &str| loads.iter().find(|(of, _)| *of == name).map_or(0, |(_, load)| *load);
            pool().choose(purpose, load).map(|name| name.to_string())
        };
        assert_eq!(chosen(&[], "workload").as_deref(), Some("b"));
        assert_eq!(chosen(&[("b", 3), ("c", 2)], "workload").as_deref(), Some("c"));
        assert_eq!(chosen(&[("b", 2), ("c", 2)], "workload").as_deref(), Some("b"));
        assert_eq!(chosen(&[("d", 9)], "test").as_deref(), Some("d"));
        assert_eq!(chosen(&[], "other"), None);
    }

    #[test]
    fn a_secret_that_loses_its_label_is_no_member_any_more() {
        let mut pool = pool();
        let plain = Raw::read(r#"{"metadata":{"name":"b","resourceVersion":"2"}}"#, Keep::Tags).unwrap();
        assert!(pool.upsert(&plain) && !pool.upsert(&plain));
        assert_eq!(pool.names().iter().map(|name| &**name).collect::<Vec<_>>(), ["a", "c", "d"]);
        assert!(pool.remove("a") && !pool.remove("a"));
    }
}
