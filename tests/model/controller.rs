//! The controller around its calls: what wakes a reconciler, and what a call leaves behind. After `runtime::core`.

use super::decide;
use super::line::Wrote;
use super::objects::Actor;
use super::server::Preconditions;
use super::state::{Answer, Call, Input, Name, Request, Sight, State, Work};

/// A change of the shell. Most break a rule; of the last two no rule takes notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// The finalizer is released when the cache shows no projection.
    ReleaseOnCachedAbsence,
    /// The projection is created before the finalizer is written.
    CreateBeforeFinalizer,
    /// A PUT does not name the version it has read.
    PutWithoutVersion,
    /// A pinned cluster whose provider has lost its offering loses its pin.
    UnpinOnLostOffering,
    /// A status is applied to whatever bears the name.
    StatusByName,
    /// What happens while an object's call goes on wakes nobody.
    DeafWhileCalled,
    /// A change of the projection wakes nobody.
    DeafToTheProjection,
    /// A change of the offerings wakes nobody.
    DeafToTheCatalog,
    /// A write is waited for although its object was seen to go, when its call tells of it or ends after that.
    OwesWhatIsGone,
    /// No write of ours is waited for.
    NeverOwes,
    /// What was raised while the subscriptions were out of date is not made up for.
    DeafWhileUnseen,
}

pub(crate) const fn preconditions(mutation: Option<Mutation>) -> Preconditions {
    Preconditions {
        version_of_put: !matches!(mutation, Some(Mutation::PutWithoutVersion)),
        uid_of_status: !matches!(mutation, Some(Mutation::StatusByName)),
    }
}

impl State {
    /// A reconciler is handed the object, with the cache as it is now.
    pub(crate) fn start(&mut self, at: usize, actor: Actor, mutation: Option<Mutation>) {
        let [offerings, providers] = [Input::Offerings, Input::Providers].map(|input| self.feeds[input as usize].cached);
        let inputs = (self.readable.then_some(offerings), providers);
        let name = &mut self.names[at];
        let Some(tenant) = name.tenant.cached else { return };
        let child = name.projection.cached;
        let mut call = match actor {
            Actor::Scheduler => Call::of_the_scheduler(&tenant, child.as_ref(), inputs, mutation),
            Actor::Status => Call::of_the_status(&tenant, child.as_ref()),
        };
        let work = &mut name.works[actor as usize];
        work.queued = false;
        if call.request(actor).is_some() {
            work.call = Some(call);
        } else {
            name.end(actor, call, false, mutation);
        }
    }

    /// A call sends its next request, and the server serves it. Of what it has changed the call hears later: a stream may be faster.
    pub(crate) fn send(&mut self, at: usize, actor: Actor, mutation: Option<Mutation>) {
        let name = &mut self.names[at];
        let Some((mut call, request)) = name.take_call(actor) else { return };
        let (answer, broken) = name.serve(request, preconditions(mutation));
        self.broken = self.broken.or(broken);
        if Name::left(request, answer).is_some() {
            call.answer = Some(answer);
            name.works[actor as usize].call = Some(call);
        } else {
            name.go_on(actor, call, request, answer, mutation);
        }
    }

    /// A call gives its next request up, which arrives some time later.
    pub(crate) fn give_up(&mut self, at: usize, actor: Actor, mutation: Option<Mutation>) {
        let name = &mut self.names[at];
        let Some((call, request)) = name.take_call(actor) else { return };
        name.late = Some(request);
        name.end(actor, call, true, mutation);
    }

    /// A call hears what its request has done, or never does.
    pub(crate) fn hear(&mut self, at: usize, actor: Actor, is_lost: bool, mutation: Option<Mutation>) {
        let name = &mut self.names[at];
        let Some((mut call, request)) = name.take_call(actor) else { return };
        let Some(answer) = call.answer.take().filter(|_| !is_lost) else { return name.end(actor, call, true, mutation) };
        if let Some((which, wrote)) = Name::left(request, answer) {
            call.wrote[which] = Some(wrote);
            name.owe(which, wrote, mutation);
        }
        name.go_on(actor, call, request, answer, mutation);
    }

    /// An input is seen as it is now; whom the change concerns is woken.
    pub(crate) fn see(&mut self, input: Input, after: u8, mutation: Option<Mutation>) {
        let before = std::mem::replace(&mut self.feeds[input as usize].cached, after);
        if before == after {
            return;
        }
        for name in &mut self.names {
            let scheduler = &mut name.works[Actor::Scheduler as usize];
            if mutation != Some(Mutation::DeafWhileUnseen) {
                scheduler.unseen = scheduler.unseen.map(|_| true);
                scheduler.call.iter_mut().for_each(|call| call.raised = true);
            }
            let hears = mutation != Some(Mutation::DeafToTheCatalog);
            scheduler.queued |= hears && name.tenant.cached.is_some_and(|tenant| decide::concerns(&tenant, input, before, after));
        }
    }

    /// The catalog can be read again.
    pub(crate) fn recover(&mut self, mutation: Option<Mutation>) {
        self.readable = true;
        let offerings = &mut self.feeds[Input::Offerings as usize];
        offerings.news.clear();
        let after = offerings.server;
        self.see(Input::Offerings, after, mutation);
        for name in &mut self.names {
            let there = name.tenant.cached.is_some();
            let scheduler = &mut name.works[Actor::Scheduler as usize];
            scheduler.queued |= there && std::mem::take(&mut scheduler.starved);
            if let Some(call) = scheduler.call.as_mut().filter(|call| call.catalog == Sight::Missed) {
                call.catalog = Sight::Recovered;
            }
        }
    }

    /// The controller starts anew: nothing that it knew or did is left, and everything is looked at.
    pub(crate) fn restart(&mut self) {
        for input in Input::ALL {
            if !self.reads(input) {
                continue;
            }
            let feed = &mut self.feeds[input as usize];
            feed.news.clear();
            feed.cached = feed.server;
        }
        for name in &mut self.names {
            name.tenant.relist();
            name.projection.relist();
            let queued = name.tenant.cached.is_some();
            name.works = Actor::ALL.map(|_| Work { queued, ..Work::default() });
        }
    }
}

impl Name {
    fn take_call(&mut self, actor: Actor) -> Option<(Call, Request)> {
        let mut call = self.works[actor as usize].call.take()?;
        call.request(actor).map(|request| (call, request))
    }

    fn go_on(&mut self, actor: Actor, mut call: Call, request: Request, answer: Answer, mutation: Option<Mutation>) {
        match call.follow(request, answer) {
            Ok(true) if call.request(actor).is_some() => self.works[actor as usize].call = Some(call),
            followed => self.end(actor, call, followed.is_err(), mutation),
        }
    }

    /// Nobody is called for this name until the write was seen.
    fn owe(&mut self, which: usize, wrote: Wrote, mutation: Option<Mutation>) -> bool {
        let forgetful = mutation == Some(Mutation::OwesWhatIsGone);
        match which {
            _ if mutation == Some(Mutation::NeverOwes) => false,
            0 => self.tenant.owe(wrote, forgetful),
            _ => self.projection.owe(wrote, forgetful),
        }
    }

    const fn owes(&self, which: usize) -> bool {
        if which == 0 { self.tenant.debt.is_some() } else { self.projection.debt.is_some() }
    }

    pub(crate) const fn is_blocked(&self) -> bool {
        self.owes(0) || self.owes(1)
    }

    /// A call is over.
    fn end(&mut self, actor: Actor, call: Call, failed: bool, mutation: Option<Mutation>) {
        let mut owes = false;
        for (which, wrote) in call.wrote.into_iter().enumerate() {
            owes |= wrote.is_some_and(|wrote| self.owe(which, wrote, mutation));
        }
        let work = &mut self.works[actor as usize];
        if self.tenant.cached.is_none() {
            return;
        }
        work.starved = call.catalog == Sight::Missed;
        work.queued |= failed || call.backoff || call.catalog == Sight::Recovered;
        if owes {
            work.unseen = Some(call.raised);
        } else {
            work.queued |= call.raised && call.wrote != [None; 2];
        }
    }

    /// Something was seen: both reconcilers read both objects, and wait for what was written.
    pub(crate) fn seen(&mut self, changed: bool, paid: bool, mutation: Option<Mutation>) {
        let there = self.tenant.cached.is_some();
        let blocked = self.is_blocked();
        for work in &mut self.works {
            let deaf = work.call.is_some() && mutation == Some(Mutation::DeafWhileCalled);
            work.queued = there && (work.queued || (changed && !deaf));
            work.starved &= there;
            if paid && !blocked {
                work.queued |= work.unseen.take() == Some(true) && there;
            }
        }
    }
}
