//! The API server: what a request does to the two objects of a name, and whether a write of ours breaks a rule.

use super::line::Wrote;
use super::numbers::Numbers;
use super::objects::{Actor, Projected, Said, Size, Tenant};
use super::state::{Answer, Name, Request};

/// A rule that a single write can break.
pub(crate) const K1: &str = "K1: a pin that is set is never changed, and no projection moves";
pub(crate) const K2: &str = "K2: a projection is made only for an object that is held and pinned to its provider";
pub(crate) const K7: &str = "K7: a live pool keeps its type while its request is unchanged";
pub(crate) const K9: &str = "K9: the finalizer goes only when the server has no projection of the object, which goes too";
pub(crate) const K10: &str = "K10: the scheduler and the status reconciler write different things";
pub(crate) const K11: &str = "K11: an observedGeneration is never ahead, and never falls";
pub(crate) const K16: &str = "K16: a projection is never deleted by us while its object stays";

/// What is asked of the server beside the request: without these it is another server than Kubernetes has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preconditions {
    /// A PUT names the version that it has read.
    pub(crate) version_of_put: bool,
    /// A status names the incarnation that it speaks of.
    pub(crate) uid_of_status: bool,
}

impl Name {
    /// Serves one request of ours; the rule that it breaks.
    pub(crate) fn serve(&mut self, request: Request, asks: Preconditions) -> (Answer, Option<&'static str>) {
        match request {
            Request::GetTenant => (self.tenant.server.map_or(Answer::NotFound, Answer::Tenant), None),
            Request::GetProjection => (self.projection.server.map_or(Answer::NotFound, Answer::Projection), None),
            Request::Put(body) => self.put(body, asks),
            Request::Create(body) => self.create(body),
            Request::Replace(body) => self.replace(body),
            Request::Delete(uid) => self.delete(uid),
            Request::Status { .. } => self.apply_status(request, asks),
        }
    }

    fn put(&mut self, body: Tenant, asks: Preconditions) -> (Answer, Option<&'static str>) {
        let Some(before) = self.tenant.server else { return (Answer::NotFound, None) };
        if before.uid != body.uid || (asks.version_of_put && before.version != body.version) {
            return (Answer::Refused, None);
        }
        let mut after = Tenant { held: body.held, pin: body.pin, size: body.size, ..before };
        after.generation += u8::from((after.pin, after.size) != (before.pin, before.size));
        let ours = self.projection.server.is_some_and(|projection| projection.owner == before.uid);
        let released = before.held && !after.held;
        let broken = match before.pin {
            Some(pin) if after.pin != Some(pin) => Some(K1),
            _ if released && (ours || !before.deleting) => Some(K9),
            _ => None,
        };
        (self.store_tenant(after), broken)
    }

    /// What is being deleted and waits for nobody is gone; the answer shows it once more.
    fn store_tenant(&mut self, mut after: Tenant) -> Answer {
        after.version = self.next(Numbers::TenantVersions);
        let gone = after.deleting && !after.held;
        self.tenant.commit((!gone).then_some(after));
        Answer::Tenant(after)
    }

    fn create(&mut self, body: Projected) -> (Answer, Option<&'static str>) {
        if self.projection.server.is_some() {
            return (Answer::Refused, None);
        }
        let after = Projected { uid: self.next(Numbers::ProjectionUids), version: self.next(Numbers::ProjectionVersions), ..body };
        let wanted = (after.owner, Some(after.provider));
        let held = self.tenant.server.filter(|tenant| tenant.held).is_some_and(|tenant| (tenant.uid, tenant.pin) == wanted);
        // A tenant may take the finalizer away behind the scheduler's back.
        let was_held = self.stripped.is_some_and(|(uid, pin)| (uid, Some(pin)) == wanted);
        self.projection.commit(Some(after));
        (Answer::Projection(after), (!held && !was_held).then_some(K2))
    }

    fn replace(&mut self, body: Projected) -> (Answer, Option<&'static str>) {
        let Some(before) = self.projection.server else { return (Answer::NotFound, None) };
        if (before.uid, before.version) != (body.uid, body.version) {
            return (Answer::Refused, None);
        }
        let mut after = Projected { version: self.next(Numbers::ProjectionVersions), ..body };
        after.generation += u8::from((after.provider, after.type_) != (before.provider, before.type_));
        let broken = match () {
            () if after.provider != before.provider => Some(K1),
            () if after.type_ != before.type_ && after.asked == before.asked => Some(K7),
            () => None,
        };
        self.projection.commit(Some(after));
        (Answer::Projection(after), broken)
    }

    fn delete(&mut self, uid: u8) -> (Answer, Option<&'static str>) {
        let Some(before) = self.projection.server else { return (Answer::NotFound, None) };
        if before.uid != uid {
            return (Answer::Refused, None);
        }
        let stays = self.tenant.server.is_some_and(|tenant| tenant.uid == before.owner && !tenant.deleting);
        (self.end_projection(before), stays.then_some(K16))
    }

    /// A deletion by whomever: the object goes at once, or waits for its provider.
    pub(crate) fn end_projection(&mut self, before: Projected) -> Answer {
        if !before.kept {
            self.projection.commit(None);
            return Answer::Gone;
        }
        if before.deleting {
            return Answer::Projection(before);
        }
        let version = self.next(Numbers::ProjectionVersions);
        let after = Projected { deleting: true, generation: before.generation + 1, version, ..before };
        self.projection.commit(Some(after));
        Answer::Projection(after)
    }

    fn apply_status(&mut self, request: Request, asks: Preconditions) -> (Answer, Option<&'static str>) {
        let Request::Status { actor, uid, version, generation, says, rolled } = request else { return (Answer::Refused, None) };
        let Some(before) = self.tenant.server else { return (Answer::NotFound, None) };
        if asks.uid_of_status && (before.uid, before.version) != (uid, version) {
            return (Answer::Refused, None);
        }
        let mut after = before;
        for (shown, says) in after.said.iter_mut().zip(says) {
            *shown = says.map(|spoken| Said { spoken, generation }).or(*shown);
        }
        after.rolled = rolled.or(before.rolled);
        let others = says.iter().enumerate().any(|(at, says)| says.is_some() && !actor.conditions().contains(&at));
        let spoken_of = |tenant: &Tenant| {
            let said = tenant.said.map(|said| said.map_or(0, |said| said.generation));
            [said[0], said[1], said[2], said[3], tenant.rolled.map_or(0, |(_, generation)| generation)]
        };
        let wrong = spoken_of(&before).iter().zip(spoken_of(&after)).any(|(before, said)| said > after.generation || said < *before);
        let broken = match () {
            () if others || (actor == Actor::Scheduler && rolled.is_some()) => Some(K10),
            () if wrong => Some(K11),
            () => None,
        };
        (self.store_tenant(after), broken)
    }

    /// What a write has left, and on which of the two objects.
    pub(crate) fn left(request: Request, answer: Answer) -> Option<(usize, Wrote)> {
        match (request, answer) {
            (Request::GetTenant | Request::GetProjection, _) => None,
            (_, Answer::Tenant(Tenant { uid, version, deleting, held, .. })) => {
                Some((0, Wrote { uid, version: (!deleting || held).then_some(version) }))
            }
            (_, Answer::Projection(Projected { uid, version, .. })) => Some((1, Wrote { uid, version: Some(version) })),
            (Request::Delete(uid), Answer::Gone) => Some((1, Wrote { uid, version: None })),
            _ => None,
        }
    }
}

/// What others do to the objects.
impl Name {
    pub(crate) fn order(&mut self) {
        let (uid, version) = (self.next(Numbers::TenantUids), self.next(Numbers::TenantVersions));
        let new = Tenant {
            uid,
            version,
            generation: 1,
            deleting: false,
            held: false,
            pin: None,
            size: Size::Small,
            said: [None; 4],
            rolled: None,
        };
        self.tenant.commit(Some(new));
    }

    /// A tenant's change of its object.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut Tenant)) {
        if let Some(mut tenant) = self.tenant.server {
            let before = tenant;
            change(&mut tenant);
            tenant.generation += u8::from((tenant.size, tenant.deleting) != (before.size, before.deleting));
            if before.held && !tenant.held {
                self.stripped = before.pin.map(|pin| (before.uid, pin));
            }
            self.store_tenant(tenant);
        }
    }

    /// Somebody else deletes the projection.
    pub(crate) fn lose_projection(&mut self) {
        if let Some(before) = self.projection.server {
            self.end_projection(before);
        }
    }

    /// A provider's change of its projection.
    pub(crate) fn report(&mut self, change: impl FnOnce(&mut Projected)) {
        if let Some(mut projection) = self.projection.server {
            change(&mut projection);
            projection.version = self.next(Numbers::ProjectionVersions);
            let gone = projection.deleting && !projection.kept;
            self.projection.commit((!gone).then_some(projection));
        }
    }
}
