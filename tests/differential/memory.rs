//! What one side of a lane knows of its server: what the symbols of a plan stand for there.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha224};

/// All that one server called by names of its own, under the names that both sides share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// What is registered at the start, such as a logical cluster, as (raw, symbol); the longest first, since some contain others.
    known: Vec<(String, String)>,
    /// What was met in answers, such as a uid, by its raw form.
    met: BTreeMap<String, String>,
    counts: BTreeMap<&'static str, usize>,
    /// All resourceVersions of one object in the order they were first seen, by uid.
    versions: BTreeMap<String, Vec<String>>,
    /// The uids that the objects with a key such as `t1/Widget/default/a` had, one after the other.
    uids: BTreeMap<String, Vec<String>>,
    /// Tokens and resourceVersions of lists by the plan's names.
    remembered: BTreeMap<String, String>,
}

impl Memory {
    /// A name that this server gave and what the plan calls it.
    pub(crate) fn register(&mut self, raw: &str, symbol: &str) {
        if raw.is_empty() || self.known.iter().any(|(known, _)| known == raw) {
            return;
        }
        self.known.push((raw.to_owned(), symbol.to_owned()));
        self.known.sort_by_key(|(raw, _)| std::cmp::Reverse(raw.len()));
    }

    /// A logical cluster: it is in paths and annotations, and hashed with an export's name in labels.
    pub(crate) fn register_workspace(&mut self, symbol: &str, name: &str, cluster: &str) {
        self.register(cluster, &format!("<{symbol}>"));
        self.register(name, &format!("<name:{symbol}>"));
        for export in super::setup::EXPORTS {
            let hash = base_62(&Sha224::digest(format!("{cluster}:{export}")));
            self.register(&hash, &format!("<export:{symbol}:{export}>"));
        }
        self.remembered.insert(symbol.to_owned(), cluster.to_owned());
        self.remembered.insert(format!("path:{symbol}"), format!("root:{name}"));
        self.remembered.insert(format!("name:{symbol}"), name.to_owned());
    }

    /// Keeps a value under the plan's name for it.
    pub(crate) fn remember(&mut self, name: &str, value: &str) {
        self.remembered.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn recall(&self, name: &str) -> Option<&str> {
        self.remembered.get(name).map(String::as_str)
    }

    /// The symbol of a value of a sort (`uid`, `hash`) that servers choose: numbered by first appearance.
    pub(crate) fn symbol(&mut self, sort: &'static str, raw: &str) -> String {
        if let Some(symbol) = self.met.get(raw) {
            return symbol.clone();
        }
        let count = self.counts.entry(sort).or_default();
        *count += 1;
        let symbol = format!("<{sort}#{count}>");
        self.met.insert(raw.to_owned(), symbol.clone());
        symbol
    }

    /// Replaces all registered names in a text.
    pub(crate) fn replace_known(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (raw, symbol) in &self.known {
            if text.contains(raw) {
                text = text.replace(raw, symbol);
            }
        }
        text
    }

    /// Notes an object, and which of its versions this is: 0 for the first that was seen.
    pub(crate) fn version(&mut self, uid: &str, version: &str) -> usize {
        let versions = self.versions.entry(uid.to_owned()).or_default();
        versions.iter().position(|seen| seen == version).unwrap_or_else(|| {
            versions.push(version.to_owned());
            versions.len() - 1
        })
    }

    /// Forgets all versions of an object but this one: others may have written it meanwhile.
    pub(crate) fn restart(&mut self, uid: &str, version: &str) {
        self.versions.insert(uid.to_owned(), vec![version.to_owned()]);
    }

    /// Notes which object has a key now. Its uid's symbol is that key and how many had it before.
    pub(crate) fn name(&mut self, key: &str, uid: &str) {
        let uids = self.uids.entry(key.to_owned()).or_default();
        let position = uids.iter().position(|known| known == uid).unwrap_or(uids.len());
        if position == uids.len() {
            uids.push(uid.to_owned());
        }
        self.met.entry(uid.to_owned()).or_insert_with(|| format!("<uid {position} of {key}>"));
    }

    /// Numbers everything anew, after a difference: what one server alone has told must not make all later answers differ.
    pub(crate) fn start_anew(&mut self) {
        self.met.clear();
        self.counts.clear();
        for uids in self.uids.values_mut() {
            uids.drain(..uids.len().saturating_sub(1));
        }
        for versions in self.versions.values_mut() {
            versions.drain(..versions.len().saturating_sub(1));
        }
    }

    /// Replaces the symbols of a plan. What was never seen becomes something that no server has.
    pub(crate) fn resolve(&self, template: &str) -> String {
        let mut text = String::with_capacity(template.len());
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('⟦') {
            let (symbol, after) = after.split_once('⟧').unwrap_or((after, ""));
            text.push_str(before);
            text.push_str(&self.meaning(symbol));
            rest = after;
        }
        text.push_str(rest);
        text
    }

    fn meaning(&self, symbol: &str) -> String {
        let uid = |key: &str| self.uids.get(key).and_then(|all| all.last());
        let versions = |key: &str| uid(key).and_then(|uid| self.versions.get(uid));
        match symbol.split_once(':') {
            Some(("rv", key)) => versions(key).and_then(|all| all.last()).cloned().unwrap_or_else(|| "1".to_owned()),
            Some(("oldrv", key)) => {
                versions(key).and_then(|all| all.len().checked_sub(2).map(|index| all[index].clone())).unwrap_or_else(|| "1".to_owned())
            }
            Some(("uid", key)) => uid(key).cloned().unwrap_or_else(|| "00000000-0000-4000-8000-000000000000".to_owned()),
            _ => self.remembered.get(symbol).cloned().unwrap_or_else(|| "unknown".to_owned()),
        }
    }
}

/// Go's `big.Int.Text(62)`: how kcp writes hashes in labels.
fn base_62(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut number = bytes.to_vec();
    let mut text = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0_usize;
        for byte in &mut number {
            let value = rest * 256 + usize::from(*byte);
            *byte = u8::try_from(value / 62).expect("a digit of a quotient fits");
            rest = value % 62;
        }
        text.push(DIGITS[rest]);
    }
    text.reverse();
    String::from_utf8(text).expect("digits are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_an_export_is_the_one_in_the_labels_of_kcp() {
        // Seen on kcp v0.28.0: the export `lab` of the logical cluster `19ctilck6a6bn89n`.
        assert_eq!(base_62(&Sha224::digest("19ctilck6a6bn89n:lab")), "7RBQE7dgZPyOhhWgITiCNFQBYOLQeN98dxrnU7");
    }

    #[test]
    fn a_symbol_that_means_nothing_yet_becomes_what_no_server_has() {
        let mut memory = Memory::default();
        memory.remember("t1", "cluster-one");
        assert_eq!(
            memory.resolve("/clusters/⟦t1⟧/x?resourceVersion=⟦rv:t1/Widget/default/a⟧"),
            "/clusters/cluster-one/x?resourceVersion=1"
        );
        memory.name("t1/Widget/default/a", "uid-1");
        for version in ["5", "9"] {
            memory.version("uid-1", version);
        }
        assert_eq!(memory.resolve("⟦oldrv:t1/Widget/default/a⟧ ⟦rv:t1/Widget/default/a⟧ ⟦uid:t1/Widget/default/a⟧"), "5 9 uid-1");
    }
}
