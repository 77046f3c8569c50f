//! One call: which request follows which, after `kcm::scheduler`, `kcm::readiness` and `runtime::seat`. What is decided, is decided by the
//! project itself.

use super::controller::Mutation;
use super::decide::{self, Planned};
use super::objects::{Actor, Projected, Said, Spoken, Tenant};
use super::state::{Answer, Call, Request, Sight, Step};
use super::words::Word;

fn deleting(projection: &Projected) -> Spoken {
    let message = format!("the projection waits for its provider: {}", projection.kept);
    Spoken { holds: Some(false), reason: Word::of("Deleting"), message: Word::of(&message) }
}

impl Call {
    fn new(tenant: &Tenant, step: Step) -> Self {
        let (says, pin, act, rolled) = ([None; 4], None, None, None);
        Self {
            tenant: *tenant,
            step,
            pin,
            act,
            says,
            rolled,
            raised: false,
            catalog: Sight::Read,
            backoff: false,
            answer: None,
            wrote: [None; 2],
        }
    }

    /// A call of the scheduler, up to its first request.
    pub(crate) fn of_the_scheduler(
        tenant: &Tenant,
        child: Option<&Projected>,
        inputs: (Option<u8>, u8),
        mutation: Option<Mutation>,
    ) -> Self {
        let ours = child.filter(|child| decide::is_ours(child, tenant));
        if tenant.deleting {
            let mut call = Self::new(tenant, Step::Release);
            match ours {
                _ if !tenant.held => {}
                None if mutation == Some(Mutation::ReleaseOnCachedAbsence) => {}
                None => call.step = Step::Look,
                Some(ours) => call.take_down(ours),
            }
            return call;
        }
        let (planned, says) = decide::plan(tenant, child, inputs);
        let catalog = if inputs.0.is_some() { Sight::Read } else { Sight::Missed };
        let mut call = Self { says, catalog, ..Self::new(tenant, Step::Hold) };
        match planned {
            Planned::Keep | Planned::Refuse => {
                call.backoff = inputs.0.is_none() && matches!(planned, Planned::Refuse);
                let lost = says[0].is_some_and(|said| said.reason == Word::of("OfferingNotFound"));
                if lost && tenant.pin.is_some() && mutation == Some(Mutation::UnpinOnLostOffering) {
                    (call.tenant.pin, call.tenant.held, call.says) = (None, false, [None; 4]);
                } else if ours.is_none() {
                    call.step = Step::Say;
                }
            }
            Planned::RemoveOrphan(uid) => (call.step, call.act) = (Step::Check, Some(Request::Delete(uid))),
            Planned::Place(provider, act) => {
                call.pin = tenant.pin.is_none().then_some(provider);
                call.act = act;
                if matches!(act, Some(Request::Create(_))) && mutation == Some(Mutation::CreateBeforeFinalizer) {
                    call.step = Step::Act;
                }
            }
        }
        call
    }

    /// A call of the status reconciler, up to its only request.
    pub(crate) fn of_the_status(tenant: &Tenant, child: Option<&Projected>) -> Self {
        let mut call = Self::new(tenant, Step::Say);
        if let Some((says, ready)) = decide::verdict(tenant, child) {
            (call.says, call.rolled) = (says, Some((ready, tenant.generation)));
        }
        call
    }

    /// Our own projection is to go, or goes already.
    fn take_down(&mut self, ours: &Projected) {
        self.says[1] = Some(deleting(ours));
        self.act = Some(Request::Delete(ours.uid));
        self.step = if ours.deleting { Step::Say } else { Step::Act };
    }

    /// The next request, past every step that takes none; `None` when the call is done.
    pub(crate) fn request(&mut self, actor: Actor) -> Option<Request> {
        if self.step == Step::Hold {
            if self.pin.is_some() || !self.tenant.held {
                return Some(Request::Put(Tenant { held: true, pin: self.pin.or(self.tenant.pin), ..self.tenant }));
            }
            self.step = Step::Act;
        }
        if self.step == Step::Act {
            if self.act.is_some() {
                return self.act;
            }
            self.step = Step::Say;
        }
        match self.step {
            Step::Check => Some(Request::GetTenant),
            Step::Look => Some(Request::GetProjection),
            Step::Release => self.tenant.held.then_some(Request::Put(Tenant { held: false, ..self.tenant })),
            _ => self.status(actor),
        }
    }

    /// The status write, or none where the object shows all of it already.
    fn status(&self, actor: Actor) -> Option<Request> {
        let Tenant { uid, version, generation, said, rolled, .. } = self.tenant;
        let changes =
            |(says, shown): (&Option<Spoken>, &Option<Said>)| says.is_some_and(|spoken| *shown != Some(Said { spoken, generation }));
        let differs = self.says.iter().zip(&said).any(changes) || (self.rolled.is_some() && self.rolled != rolled);
        differs.then_some(Request::Status { actor, uid, version, generation, says: self.says, rolled: self.rolled })
    }

    /// Goes on after an answer; `Err` when the call failed, `Ok(false)` when it is done.
    pub(crate) fn follow(&mut self, request: Request, answer: Answer) -> Result<bool, ()> {
        if let Answer::Tenant(tenant) = answer
            && !matches!(request, Request::GetTenant)
        {
            self.tenant = tenant;
        }
        match (self.step, request, answer) {
            (Step::Check, _, Answer::Tenant(live)) if live.uid == self.tenant.uid => self.step = Step::Act,
            (Step::Check, ..) => {
                self.backoff = true;
                return Ok(false);
            }
            (Step::Look, _, Answer::Projection(found)) if decide::is_ours(&found, &self.tenant) => self.take_down(&found),
            (Step::Look, _, Answer::NotFound | Answer::Projection(_)) => self.step = Step::Release,
            // The finalizer waited for this one; of an orphan's end nothing more comes than a word.
            (Step::Act, Request::Delete(_), Answer::Gone | Answer::NotFound) if self.tenant.deleting => self.step = Step::Release,
            (Step::Act, Request::Delete(_), Answer::Gone | Answer::NotFound | Answer::Projection(_)) => self.step = Step::Say,
            // Past the finalizer, which is there but where a mutation has turned the order around.
            (Step::Act, _, Answer::Projection(_)) => (self.act, self.step) = (None, Step::Hold),
            (Step::Hold, _, Answer::Tenant(_)) => (self.pin, self.step) = (None, Step::Act),
            (Step::Say | Step::Release, _, Answer::Tenant(_)) => return Ok(false),
            _ => return Err(()),
        }
        Ok(true)
    }
}
