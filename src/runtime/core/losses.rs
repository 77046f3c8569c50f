//! Pure: children that somebody takes away again and again, and how long their makers leave them away.
//!
//! A child that is gone is made anew at once. Where it goes again although its object stays, somebody wants it gone: another controller, or the
//! server's garbage collector, which may know of its object what no stream has shown yet. Whoever made it anew each time would do so as fast as
//! the server answers, and no backoff would count, for every call succeeds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::meta::KindRef;
use crate::api::names::ObjectKey;
use crate::mutants::{Mutant, mutated};
use crate::runtime::port::Written;
use crate::runtime::queue::Work;
use crate::runtime::raw::Raw;

/// How long the second loss is left as it is; each further one twice as long.
const FIRST: Duration = Duration::from_secs(1);
/// The longest: what a tenant changes in the middle of such a fight is done after it, too.
const LONGEST: Duration = Duration::from_secs(30);
/// What has not gone for so long is no fight any more.
const PEACE: Duration = Duration::from_mins(10);

#[derive(Clone, Debug)]
struct Loss {
    /// The incarnation of the object that stays.
    of: Box<str>,
    kind: KindRef,
    /// The child that went last, unless that turned out to be by us.
    child: Option<Box<str>>,
    count: u32,
    last: Duration,
    /// When its maker is called again.
    until: Duration,
}

/// The losses of all objects: one entry for an object and maker at most, so that the bound of the cache is its bound.
#[derive(Debug, Default)]
pub(super) struct Losses {
    makers: BTreeSet<(u8, KindRef)>,
    by_work: BTreeMap<Work, Loss>,
    /// The incarnations that we have deleted and that are still there: of what is in the cache.
    ours: BTreeMap<(ObjectKey, KindRef), Box<str>>,
}

impl Losses {
    /// Takes note of who writes which kind, and of what goes by our own hand; `there` says whether that child is still seen.
    pub(super) fn note(&mut self, actor: u8, key: &ObjectKey, written: &Written, there: bool) {
        if !written.deleted {
            self.makers.insert((actor, written.kind));
        } else if there {
            self.ours.insert((key.clone(), written.kind), written.uid.as_str().into());
        } else {
            // It was seen to go before the answer came, of which the call's end tells once more.
            let at = |(work, loss): &(&Work, &mut Loss)| work.key == *key && loss.kind == written.kind;
            for (_, loss) in self.by_work.iter_mut().filter(at) {
                if loss.child.take_if(|child| **child == *written.uid).is_some() {
                    (loss.count, loss.until) = (loss.count.saturating_sub(1), Duration::ZERO);
                }
            }
        }
    }

    /// Whether it is by us that this child went, which is not asked again.
    pub(super) fn is_ours(&mut self, kind: KindRef, key: &ObjectKey, child: &str) -> bool {
        self.ours.remove(&(key.clone(), kind)).is_some_and(|ours| *ours == *child)
    }

    /// Counts a child that went while its object stayed, if this work makes such children.
    pub(super) fn lost(&mut self, kind: KindRef, object: &Raw, work: &Work, child: &str, now: Duration) {
        if !self.makers.contains(&(work.actor, kind)) {
            return;
        }
        let known = self.by_work.get(work).filter(|loss| loss.of == object.uid && now.saturating_sub(loss.last) < PEACE);
        let count = known.map_or(0, |loss| loss.count).saturating_add(1);
        let rest = count.checked_sub(2).map_or(Duration::ZERO, |level| FIRST.saturating_mul(1 << level.min(10)).min(LONGEST));
        let loss = Loss { of: object.uid.clone(), kind, child: Some(child.into()), count, last: now, until: now + rest };
        self.by_work.insert(work.clone(), loss);
    }

    /// The child for whose sake work is left alone, and for how much longer; nothing once its object is to go.
    pub(super) fn rest(&self, work: &Work, object: &Raw, now: Duration) -> Option<(KindRef, Duration)> {
        let loss = self.by_work.get(work).filter(|loss| loss.of == object.uid)?;
        let rest = loss.until.checked_sub(now).filter(|rest| !rest.is_zero())?;
        let is_going = object.metadata().is_some_and(|metadata| metadata.is_deleting());
        (!is_going && !mutated(Mutant::FightOn)).then_some((loss.kind, rest))
    }

    /// How many losses count.
    #[cfg(test)]
    pub(super) fn count(&self, work: &Work) -> u32 {
        self.by_work.get(work).map_or(0, |loss| loss.count)
    }

    /// Forgets what an object had lost that is gone itself.
    pub(super) fn forget(&mut self, work: &Work) {
        self.by_work.remove(work);
    }
}
