//! What can go wrong, as words: each is one fault at one place, and a list of them is a plan that can be printed, read and played again.
//!
//! Pure: values.

use std::fmt;
use std::str::FromStr;

/// On which side of the commit a fault strikes: before the server has seen the request, or after it has done it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Nothing was done.
    Before,
    /// It was done, and nobody was told.
    After,
}

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// Every process of the provider dies here, and is started anew a second later.
    Crash(Side),
    /// The process stands still for a minute; then everything that was due meanwhile is late.
    Pause,
    /// The connection breaks.
    Reset(Side),
    /// No answer ever comes.
    Hang(Side),
    /// The request, or its answer, takes five seconds.
    Slow(Side),
    /// The answer breaks off in its middle.
    Torn,
    /// The answer's headers come, and its middle never does.
    Trickle,
    /// An error is answered: 401, 403, 404 (as for a kind that is not served), 409, 410, 429, 500, 502, 503 or 504.
    Code(u16, Side),
    /// Somebody else changes the object just before, and before the next two writes to it.
    Storm,
    /// A read is answered from three changes ago.
    Stale,
    /// The server cannot be reached for forty seconds.
    Down,
    /// Nobody is known for a minute: 401.
    Unauthorized,
    /// Nothing is allowed for a minute: 403.
    Forbidden,
    /// All watches end.
    CloseWatches,
    /// The server forgets its history: 410 for whoever looks back.
    Compact,
    /// An event of a watch comes twice.
    Twice,
    /// A watch shows nothing for five seconds, then everything.
    Late,
    /// A watch ends instead of showing an event.
    Lost,
    /// A watch ends with 410 in the stream instead of showing an event.
    Expired,
    /// A watch ends with 500 in the stream instead of showing an event.
    Broken,
    /// A watch stays open and shows nothing any more.
    Silent,
    /// A watch breaks off in the middle of an event.
    Cut,
    /// A watch ends instead of showing an event, and its kind cannot be listed or watched for forty seconds, while all else can.
    Blind,
    /// The reconciler panics, before or after its work.
    Panic(Side),
    /// The reconciler never comes back, without or with its work done.
    Stall(Side),
    /// One of the disturbances that the sweep was given, by its number.
    Disturb(u8),
}

use Fault::{
    Blind, Broken, CloseWatches, Code, Compact, Crash, Cut, Disturb, Down, Expired, Forbidden, Hang, Late, Lost, Panic, Pause, Reset,
    Silent, Slow, Stale, Stall, Storm, Torn, Trickle, Twice, Unauthorized,
};
use Side::{After, Before};

/// What is struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    /// A request, by its number since the world began.
    Request(u64),
    /// An event of the watch that this request opened, counted from 0.
    Line(u64, u64),
    /// A call of a reconciler, by its number since the world began.
    Call(u64),
}

/// What kind of thing is struck: not everything can go wrong everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A request that makes an object.
    Create,
    /// A request that changes an object or deletes it.
    Change,
    /// A read of one object.
    Get,
    /// A list.
    List,
    /// A watch that begins.
    Watch,
    /// An event of a watch.
    Line,
    /// A call of a reconciler.
    Call,
}

/// What can go wrong with any request.
const REQUEST: &[Fault] = &[
    Crash(Before),
    Pause,
    Reset(Before),
    Hang(Before),
    Slow(Before),
    Code(401, Before),
    Code(403, Before),
    Code(404, Before),
    Code(429, Before),
    Code(500, Before),
    Code(502, Before),
    Code(503, Before),
    Code(504, Before),
    Down,
    Unauthorized,
    Forbidden,
    CloseWatches,
    Compact,
];
/// What can go wrong besides with one that has an answer with an end.
const ANSWER: &[Fault] = &[Slow(After), Torn, Trickle];
/// What can go wrong besides with one that is done, or is not.
const WRITE: &[Fault] =
    &[Crash(After), Reset(After), Hang(After), Code(409, Before), Code(500, After), Code(502, After), Code(503, After), Code(504, After)];
const LINE: &[Fault] = &[Twice, Late, Lost, Expired, Broken, Silent, Cut, Blind];
const CALL: &[Fault] = &[Panic(Before), Panic(After), Stall(Before), Stall(After)];

/// Those of which pairs are made: every way in which something is done and not known, or known and not done, once.
const TELLING: &[Fault] = &[
    Crash(Before),
    Crash(After),
    Reset(Before),
    Reset(After),
    Hang(Before),
    Torn,
    Code(409, Before),
    Code(503, Before),
    Code(504, After),
    Down,
    Storm,
    Stale,
    Compact,
    Lost,
    Expired,
    Silent,
    Cut,
    Panic(After),
];

impl Target {
    /// All that can go wrong here, in order.
    pub fn faults(self) -> impl Iterator<Item = Fault> {
        let parts: &[&[Fault]] = match self {
            Self::Create => &[REQUEST, ANSWER, WRITE],
            Self::Change => &[REQUEST, ANSWER, WRITE, &[Storm]],
            Self::Get => &[REQUEST, ANSWER, &[Stale]],
            Self::List => &[REQUEST, ANSWER, &[Stale, Code(410, Before)]],
            Self::Watch => &[REQUEST, &[Code(410, Before)]],
            Self::Line => &[LINE],
            Self::Call => &[CALL],
        };
        parts.iter().flat_map(|part| part.iter().copied())
    }
}

impl Fault {
    /// Whether it is among those of which pairs are made.
    pub fn is_telling(self) -> bool {
        TELLING.contains(&self)
    }

    /// Every fault that there is, without disturbances.
    pub fn all() -> Vec<Self> {
        let targets = [Target::Create, Target::Change, Target::Get, Target::List, Target::Watch, Target::Line, Target::Call];
        let all: std::collections::BTreeSet<Self> = targets.into_iter().flat_map(Target::faults).collect();
        all.into_iter().collect()
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Before { "before" } else { "after" })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Crash(side) => return write!(f, "crash-{side}"),
            Reset(side) => return write!(f, "reset-{side}"),
            Hang(side) => return write!(f, "hang-{side}"),
            Slow(side) => return write!(f, "slow-{side}"),
            Code(code, side) => return write!(f, "{code}-{side}"),
            Panic(side) => return write!(f, "panic-{side}"),
            Stall(side) => return write!(f, "stall-{side}"),
            Disturb(which) => return write!(f, "disturb-{which}"),
            Pause => "pause",
            Torn => "torn",
            Trickle => "trickle",
            Storm => "storm",
            Stale => "stale",
            Down => "down",
            Unauthorized => "unauthorized",
            Forbidden => "forbidden",
            CloseWatches => "close-watches",
            Compact => "compact",
            Twice => "twice",
            Late => "late",
            Lost => "lost",
            Expired => "expired",
            Broken => "broken",
            Silent => "silent",
            Cut => "cut",
            Blind => "blind",
        };
        f.write_str(word)
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(which) = text.strip_prefix("disturb-") {
            return which.parse().map(Disturb).map_err(|_| format!("{which:?} is no number of a disturbance"));
        }
        Self::all().into_iter().find(|fault| fault.to_string() == text).ok_or_else(|| format!("there is no fault {text:?}"))
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(at) => write!(f, "{at}"),
            Self::Line(at, line) => write!(f, "{at}.{line}"),
            Self::Call(at) => write!(f, "call{at}"),
        }
    }
}

impl FromStr for Site {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number"));
        match (text.strip_prefix("call"), text.split_once('.')) {
            (Some(at), _) => number(at).map(Self::Call),
            (None, Some((at, line))) => Ok(Self::Line(number(at)?, number(line)?)),
            (None, None) => number(text).map(Self::Request),
        }
    }
}

/// Faults at their places. As text `3:crash-after 7.0:lost call2:panic-before`; nothing is the empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Plan(pub Vec<(Site, Fault)>);

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (site, fault)) in self.0.iter().enumerate() {
            write!(f, "{}{site}:{fault}", if at == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = |word: &str| {
            let (site, fault) = word.split_once(':').ok_or_else(|| format!("{word:?} is not like 3:crash-after"))?;
            Ok((site.parse()?, fault.parse()?))
        };
        text.split_whitespace().map(one).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_as_it_is_printed() {
        let plan: Vec<_> = Fault::all().into_iter().zip(0..).map(|(fault, at)| (Site::Request(at), fault)).collect();
        let mut plan = Plan(plan);
        plan.0.extend([(Site::Line(3, 7), Lost), (Site::Call(2), Panic(After)), (Site::Request(9), Disturb(4))]);
        assert_eq!(plan.to_string().parse(), Ok(plan));
        assert_eq!("".parse(), Ok(Plan::default()));
        for wrong in ["3", "3:burn", "x:lost", "3.y:lost", "callz:stall-before", "1:disturb-x"] {
            assert!(wrong.parse::<Plan>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_fault_of_a_pair_can_be_made_somewhere() {
        let all = Fault::all();
        assert!(TELLING.iter().all(|fault| all.contains(fault)));
        assert!(all.len() > 40, "{}", all.len());
    }
}
