//! A state of the model: everything on the server, in the controller and in the air.

use super::line::{Line, Wrote};
use super::objects::{Actor, Projected, Provider, RolledUp, Says, Tenant};

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct State {
    /// Names in one workspace, in the order of what they hold: which is which makes no difference.
    pub(crate) names: Vec<Name>,
    /// By [`Input`].
    pub(crate) feeds: [Feed; 2],
    /// Whether the catalog can be read.
    pub(crate) readable: bool,
    /// What may still happen.
    pub(crate) left: Left,
    /// The first rule of writes that was broken.
    pub(crate) broken: Option<&'static str>,
}

impl State {
    /// Whether an input can be read; Providers always can.
    pub(crate) fn reads(&self, input: Input) -> bool {
        self.readable || input == Input::Providers
    }
}

/// How often something may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Left {
    /// A tenant creates a cluster.
    pub(crate) orders: u8,
    /// A tenant asks for a larger one.
    pub(crate) edits: u8,
    /// A tenant deletes one.
    pub(crate) deletions: u8,
    /// A tenant takes our finalizer away.
    pub(crate) strips: u8,
    /// Somebody else deletes a projection.
    pub(crate) meddling: u8,
    /// An offering comes or goes.
    pub(crate) offers: u8,
    /// A Provider comes or goes in the workspace.
    pub(crate) setups: u8,
    /// The catalog cannot be read for a while.
    pub(crate) outages: u8,
    /// The controller is killed and starts anew.
    pub(crate) crashes: u8,
    /// A write is committed and its answer is lost.
    pub(crate) losses: u8,
    /// A request is given up and arrives at some later time.
    pub(crate) delays: u8,
    /// A stream breaks and is listed anew.
    pub(crate) relists: u8,
    /// Our own write is not seen in time.
    pub(crate) patience: u8,
}

impl Left {
    pub(crate) const NOTHING: Self = Self {
        orders: 0,
        edits: 0,
        deletions: 0,
        strips: 0,
        meddling: 0,
        offers: 0,
        setups: 0,
        outages: 0,
        crashes: 0,
        losses: 0,
        delays: 0,
        relists: 0,
        patience: 0,
    };
}

/// A set of providers: those with an offering, or those that the workspace has configured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Feed {
    pub(crate) server: u8,
    /// What the stream shows next, oldest first.
    pub(crate) news: Vec<u8>,
    pub(crate) cached: u8,
}

/// Which of the two sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Input {
    Offerings,
    Providers,
}

impl Input {
    pub(crate) const ALL: [Self; 2] = [Self::Offerings, Self::Providers];
}

/// A name: its two objects, and the two reconcilers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name {
    pub(crate) tenant: Line<Tenant>,
    pub(crate) projection: Line<Projected>,
    pub(crate) works: [Work; 2],
    /// A request that its sender has given up.
    pub(crate) late: Option<Request>,
    /// The uid and pin of the last object that lost our finalizer by somebody else's hand.
    pub(crate) stripped: Option<(u8, Provider)>,
}

/// One reconciler of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Work {
    /// Whether it is to be called.
    pub(crate) queued: bool,
    /// Whether its last call wrote what is still unseen, and whether a change has concerned anybody since that call began.
    pub(crate) unseen: Option<bool>,
    /// Whether it found the catalog unreadable.
    pub(crate) starved: bool,
    pub(crate) call: Option<Call>,
}

/// A call under way, between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Call {
    /// The object as the call has it: from the cache, then from the answers.
    pub(crate) tenant: Tenant,
    pub(crate) step: Step,
    /// The pin that the first write sets.
    pub(crate) pin: Option<Provider>,
    /// What is done about the projection.
    pub(crate) act: Option<Request>,
    pub(crate) says: Says,
    pub(crate) rolled: Option<RolledUp>,
    /// Whether a change of the catalog has concerned anybody since it began.
    pub(crate) raised: bool,
    pub(crate) catalog: Sight,
    /// Whether it asks for another look.
    pub(crate) backoff: bool,
    /// What the server has done, and the call has yet to hear of.
    pub(crate) answer: Option<Answer>,
    /// Its last write to the tenant object and to the projection.
    pub(crate) wrote: [Option<Wrote>; 2],
}

/// How a call found the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Sight {
    Read,
    /// It could not be read, and still cannot.
    Missed,
    /// It could not be read, and can be by now.
    Recovered,
}

/// What a call is about to do; each that takes a request is one step of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Step {
    /// Reads the tenant object past the cache, before an orphan's end.
    Check,
    /// Writes finalizer and pin.
    Hold,
    /// Creates, replaces or deletes the projection.
    Act,
    /// Reads the projection past the cache.
    Look,
    /// Applies the status.
    Say,
    /// Drops the finalizer.
    Release,
}

impl Step {
    /// Whether what it sends changes something.
    pub(crate) const fn writes(self) -> bool {
        !matches!(self, Self::Check | Self::Look)
    }
}

/// A request, as it goes over the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Request {
    GetTenant,
    GetProjection,
    /// A PUT of the whole tenant object.
    Put(Tenant),
    Create(Projected),
    Replace(Projected),
    /// Under the uid.
    Delete(u8),
    /// An apply of the actor's conditions and fields under uid and version, with the generation it speaks of.
    Status {
        actor: Actor,
        uid: u8,
        version: u8,
        generation: u8,
        says: Says,
        rolled: Option<RolledUp>,
    },
}

/// What the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Answer {
    Tenant(Tenant),
    Projection(Projected),
    /// It was deleted.
    Gone,
    NotFound,
    /// A conflict, or the name is taken.
    Refused,
}

impl Name {
    /// A name that nobody has used.
    pub(crate) fn new() -> Self {
        Self { tenant: Line::empty(), projection: Line::empty(), works: Default::default(), late: None, stripped: None }
    }
}
