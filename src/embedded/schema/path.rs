//! Where in an object something is, written only when somebody must be told.
//!
//! Pure: borrowed segments to text.

/// A place below the root, as a list from the leaf upwards.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'a> {
    /// The object itself.
    Root,
    /// A field that the schema names.
    Field(&'a Path<'a>, &'a str),
    /// A field of a map.
    Key(&'a Path<'a>, &'a str),
    /// An entry of a list.
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    /// Whether this is the object itself.
    pub(super) fn is_root(&self) -> bool {
        matches!(self, Path::Root)
    }

    /// As kube-openapi writes it: every key after a dot. Empty for the root, and a key of the root keeps its dot.
    pub(super) fn open_api(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Field(parent, name) if parent.is_root() => (*name).to_owned(),
            Path::Field(parent, name) | Path::Key(parent, name) => format!("{}.{name}", parent.open_api()),
            Path::Index(parent, index) => format!("{}[{index}]", parent.open_api()),
        }
    }

    /// As `field.Path` writes it: keys of maps in brackets. `<nil>` for the root.
    pub(super) fn field(&self) -> String {
        if self.is_root() { "<nil>".to_owned() } else { self.below_root() }
    }

    fn below_root(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Field(parent, name) if parent.is_root() => (*name).to_owned(),
            Path::Field(parent, name) => format!("{}.{name}", parent.below_root()),
            Path::Key(parent, name) => format!("{}[{name}]", parent.below_root()),
            Path::Index(parent, index) => format!("{}[{index}]", parent.below_root()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_maps_are_written_in_two_ways() {
        let spec = Path::Field(&Path::Root, "spec");
        let labels = Path::Field(&spec, "labels");
        let key = Path::Key(&labels, "a");
        let entry = Path::Index(&key, 2);
        assert_eq!(entry.open_api(), "spec.labels.a[2]");
        assert_eq!(entry.field(), "spec.labels[a][2]");
        assert_eq!((Path::Root.open_api(), Path::Root.field()), (String::new(), "<nil>".to_owned()));
    }
}
