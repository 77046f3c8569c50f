//! The objects of the model: only what a decision or a rule looks at, each in a few bytes.

use super::words::Word;

/// A provider, each with one offering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Provider {
    /// Offers both sizes, and comes first by name.
    Aws,
    /// Offers small machines only.
    Otc,
}

impl Provider {
    pub(crate) const ALL: [Self; 2] = [Self::Aws, Self::Otc];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Otc => "otc",
        }
    }

    /// The sizes of the machine types on offer, smallest first.
    pub(crate) const fn sizes(self) -> &'static [Size] {
        match self {
            Self::Aws => &[Size::Small, Size::Large],
            Self::Otc => &[Size::Small],
        }
    }

    /// Its place in a set.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// What a pool asks for, and what a machine type has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Size {
    Small,
    Large,
}

impl Size {
    pub(crate) const ALL: [Self; 2] = [Self::Small, Self::Large];

    /// The machine type of that size.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
        }
    }

    pub(crate) const fn cpu(self) -> &'static str {
        match self {
            Self::Small => "2",
            Self::Large => "8",
        }
    }
}

/// A reconciler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Actor {
    Scheduler,
    Status,
}

impl Actor {
    pub(crate) const ALL: [Self; 2] = [Self::Scheduler, Self::Status];

    /// Where its conditions stand among all.
    pub(crate) const fn conditions(self) -> [usize; 2] {
        match self {
            Self::Scheduler => [0, 1],
            Self::Status => [2, 3],
        }
    }
}

/// The condition types in the order in which a tenant object keeps them.
pub(crate) const CONDITIONS: [&str; 4] = ["Scheduled", "Projected", "ProviderClusterReady", "Ready"];

/// A condition as a reconciler says it. `holds` is `None` for Unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Spoken {
    pub(crate) holds: Option<bool>,
    pub(crate) reason: Word,
    pub(crate) message: Word,
}

/// What is said of each condition; nothing where it stays as it is.
pub(crate) type Says = [Option<Spoken>; 4];

/// A condition as it stands on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Said {
    pub(crate) spoken: Spoken,
    pub(crate) generation: u8,
}

/// `status.ready` and `status.observedGeneration`.
pub(crate) type RolledUp = (bool, u8);

/// A tenant's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tenant {
    pub(crate) uid: u8,
    pub(crate) version: u8,
    pub(crate) generation: u8,
    pub(crate) deleting: bool,
    /// Whether it carries the scheduler's finalizer.
    pub(crate) held: bool,
    pub(crate) pin: Option<Provider>,
    pub(crate) size: Size,
    pub(crate) said: [Option<Said>; 4],
    pub(crate) rolled: Option<RolledUp>,
}

/// A projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Projected {
    pub(crate) uid: u8,
    pub(crate) version: u8,
    pub(crate) generation: u8,
    pub(crate) deleting: bool,
    /// Whether it carries the provider's finalizer.
    pub(crate) kept: bool,
    /// The tenant object that controls it.
    pub(crate) owner: u8,
    pub(crate) provider: Provider,
    pub(crate) type_: Size,
    /// What the type was chosen for.
    pub(crate) asked: Size,
    /// The generation of which the provider has reported that it is ready.
    pub(crate) report: Option<u8>,
}

/// What both kinds have.
pub(crate) trait Object: Copy {
    fn uid(&self) -> u8;
    fn version(&self) -> u8;
}

impl Object for Tenant {
    fn uid(&self) -> u8 {
        self.uid
    }

    fn version(&self) -> u8 {
        self.version
    }
}

impl Object for Projected {
    fn uid(&self) -> u8 {
        self.uid
    }

    fn version(&self) -> u8 {
        self.version
    }
}
