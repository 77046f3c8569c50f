//! One object on its way from the server to the cache: what the server has, what the stream has yet to show, what the cache shows, and the
//! write of ours that it still owes.

use super::objects::Object;

/// What a write of ours left on the server; the version is `None` when the object is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Wrote {
    pub(crate) uid: u8,
    pub(crate) version: Option<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line<T> {
    pub(crate) server: Option<T>,
    /// What the stream shows next, oldest first.
    pub(crate) news: Vec<Option<T>>,
    pub(crate) cached: Option<T>,
    /// What the cache has to show before anybody who reads the object is called.
    pub(crate) debt: Option<Wrote>,
}

impl<T> Line<T> {
    pub(crate) const fn empty() -> Self {
        Self { server: None, news: Vec::new(), cached: None, debt: None }
    }
}

impl<T: Object> Line<T> {
    /// A change on the server; the stream will show it.
    pub(crate) fn commit(&mut self, after: Option<T>) {
        self.server = after;
        self.news.push(after);
    }

    /// Whether the server has nothing that the cache does not show.
    pub(crate) const fn is_still(&self) -> bool {
        self.news.is_empty() && self.debt.is_none()
    }

    /// The stream shows the next change; whether that pays a debt.
    pub(crate) fn show(&mut self) -> bool {
        self.cached = self.news.remove(0);
        let paid = self.debt.is_some_and(|debt| self.is_paid(debt));
        if paid {
            self.debt = None;
        }
        paid
    }

    /// A complete list: the cache is the server. What was written before is paid.
    pub(crate) fn relist(&mut self) {
        self.cached = self.server;
        self.news.clear();
        self.debt = None;
    }

    /// Remembers a write until the cache shows it; false when it does already. A write to what is gone again by now counts as shown, but not to one
    /// who is `forgetful`.
    pub(crate) fn owe(&mut self, wrote: Wrote, forgetful: bool) -> bool {
        let forgets = forgetful && self.cached.is_none() && wrote.version.is_some();
        if self.is_paid(wrote) && !forgets {
            return false;
        }
        let is_later = |known: Wrote| known.uid == wrote.uid && known.version.zip(wrote.version).is_some_and(|(known, new)| known > new);
        if !self.debt.is_some_and(is_later) {
            self.debt = Some(wrote);
        }
        true
    }

    fn is_paid(&self, debt: Wrote) -> bool {
        match (self.cached, debt.version) {
            (None, version) => self.news.iter().flatten().all(|shown| Some(shown.version()) != version),
            (Some(cached), None) => cached.uid() != debt.uid,
            (Some(cached), Some(wanted)) => cached.version() >= wanted,
        }
    }

    /// Whether the stream has yet to show what the debt waits for.
    pub(crate) fn can_be_paid(&self) -> bool {
        let mut ahead = self.clone();
        while ahead.debt.is_some() && !ahead.news.is_empty() {
            ahead.show();
        }
        ahead.debt.is_none()
    }
}
