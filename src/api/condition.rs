//! Conditions as they stand in a status: `metav1.Condition`.
//!
//! Pure: values only; who stamps the time hands it in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One condition of an object's status (`metav1.Condition`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Condition {
    /// What it is about, for example `Ready`; unique in the list.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The `metadata.generation` that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// When `status` last changed, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
    /// One word from a closed list, for programs.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// A sentence for people.
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It was not evaluated.
    Unknown,
}

impl ConditionStatus {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// The condition of that type, if the list has it.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition is True and was reported for this very generation.
pub fn holds_for(conditions: &[Condition], type_: &str, generation: i64) -> bool {
    find(conditions, type_).is_some_and(|c| c.status == ConditionStatus::True && c.observed_generation == Some(generation))
}
