//! Texts as small numbers, so that a state that holds messages stays small and cheap to compare.

use std::collections::HashMap;
use std::fmt;
use std::sync::{LazyLock, RwLock};

/// A reason or a message. Equal texts are equal words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Word(u16);

#[derive(Default)]
struct Known {
    texts: Vec<&'static str>,
    numbers: HashMap<&'static str, u16>,
}

static KNOWN: LazyLock<RwLock<Known>> = LazyLock::new(RwLock::default);

impl Word {
    /// The word of a text.
    pub(crate) fn of(text: &str) -> Self {
        if let Some(number) = KNOWN.read().unwrap().numbers.get(text) {
            return Self(*number);
        }
        let mut known = KNOWN.write().unwrap();
        if let Some(number) = known.numbers.get(text) {
            return Self(*number);
        }
        let number = u16::try_from(known.texts.len()).expect("a model says few things");
        // Each text is kept once, for as long as the process lives.
        let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
        known.texts.push(text);
        known.numbers.insert(text, number);
        Self(number)
    }

    /// The text.
    pub(crate) fn text(self) -> &'static str {
        KNOWN.read().unwrap().texts[usize::from(self.0)]
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
