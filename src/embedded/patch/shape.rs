//! What the schema says of a place: which of scalar, list and object may stand there, and who owns what of it.
//!
//! Pure: from the schema tree to what `kube-openapi/pkg/schemaconv` makes of the same schema.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::fields::{Element, Scalar};
use crate::embedded::schema::node::{ListType, Node, Type};

/// A place of an object, as far as its schema knows it.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// The schema says something. `open`: an object around it keeps fields that are not in the schema, so this one does, too.
    Known {
        /// What it says.
        node: &'a Node,
        /// Whether fields outside of the schema have a place.
        open: bool,
        /// Whether it is a whole object, which has `apiVersion`, `kind` and `metadata`.
        resource: bool,
    },
    /// Nothing is said: objects are owned field by field, lists as a whole.
    Deduced,
    /// Nothing is said, inside of a list that is owned as a whole.
    Whole,
}

/// Which of the three may stand at a place, or does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Fields.
    Object,
    /// A string, number or boolean.
    Scalar,
    /// Entries.
    List,
}

/// Which scalars may stand at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integer or not.
    Numeric,
    /// Text.
    String,
    /// True or false.
    Boolean,
    /// Any of them.
    Untyped,
}

impl<'a> Place<'a> {
    /// The root of an object.
    pub fn root(node: &'a Node) -> Self {
        Self::Known { node, open: false, resource: true }
    }

    fn inner(self, node: &'a Node) -> Self {
        Self::Known { node, open: self.is_open(), resource: node.embedded }
    }

    fn is_open(self) -> bool {
        matches!(self, Self::Known { node, open, .. } if open || node.preserve_unknown)
    }

    fn type_(self) -> Type {
        if let Self::Known { node, .. } = self { node.type_ } else { Type::Any }
    }

    fn may_be_any(self) -> bool {
        matches!(self.type_(), Type::Any | Type::IntOrString)
    }

    /// Which scalars may stand here, if any may.
    pub fn scalar(self) -> Option<Kind> {
        match self.type_() {
            Type::Any | Type::IntOrString => Some(Kind::Untyped),
            Type::Integer | Type::Number => Some(Kind::Numeric),
            Type::String => Some(Kind::String),
            Type::Boolean => Some(Kind::Boolean),
            Type::Object | Type::Array => None,
        }
    }

    /// The form a value has here. What may not stand here is read as the first form that may; checking refuses it.
    pub fn form(self, value: Option<&Value>) -> Form {
        self.sure_form(value).unwrap_or(match self.type_() {
            Type::Any | Type::IntOrString | Type::Object => Form::Object,
            Type::Array => Form::List,
            _ => Form::Scalar,
        })
    }

    /// The form a value has here, `None` when the value does not decide among several: it is null or absent.
    pub fn sure_form(self, value: Option<&Value>) -> Option<Form> {
        let of_type = match self.type_() {
            Type::Any | Type::IntOrString => None,
            Type::Object => Some(Form::Object),
            Type::Array => Some(Form::List),
            _ => Some(Form::Scalar),
        };
        of_type.or(match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(_)) => Some(Form::Object),
            Some(Value::Array(_)) => Some(Form::List),
            Some(_) => Some(Form::Scalar),
        })
    }

    /// Whether an object here is owned as a whole.
    pub fn atomic_object(self) -> bool {
        match self {
            Self::Known { node, .. } => node.atomic,
            Self::Deduced => false,
            Self::Whole => true,
        }
    }

    /// Whether all that is said of an object here is that nothing is said.
    pub fn is_deduced_object(self) -> bool {
        match self {
            Self::Known { node, resource, .. } => {
                node.properties.is_empty()
                    && !resource
                    && self.field("").is_some_and(|inner| !matches!(inner, Self::Whole) && inner.may_be_any())
            }
            Self::Deduced => true,
            Self::Whole => false,
        }
    }

    /// How a list here is owned.
    pub fn list(self) -> &'a ListType {
        match self {
            Self::Known { node, .. } => &node.list,
            Self::Deduced | Self::Whole => &ListType::Atomic,
        }
    }

    /// Where the entries of a list are.
    #[must_use]
    pub fn items(self) -> Self {
        match self {
            Self::Known { node: Node { items: Some(items), .. }, .. } => self.inner(items),
            _ => Self::Whole,
        }
    }

    /// Whether the schema has a field of that name.
    pub fn declares(self, name: &str) -> bool {
        self.declared(name).is_some()
    }

    fn declared(self, name: &str) -> Option<Self> {
        let Self::Known { node, resource, .. } = self else { return None };
        let shut = |node| Self::Known { node, open: false, resource: false };
        match name {
            "metadata" if resource => Some(shut(&METADATA)),
            "apiVersion" | "kind" if resource => Some(shut(&TEXT)),
            _ => node.properties.get(name).map(|node| self.inner(node)),
        }
    }

    /// Where a field is; `None` if the schema leaves no place for it.
    pub fn field(self, name: &str) -> Option<Self> {
        self.declared(name).or(match self {
            Self::Known { node: Node { additional: Some(additional), .. }, .. } => Some(self.inner(additional)),
            Self::Known { node, resource, .. } => {
                (self.is_open() || self.may_be_any() || (node.properties.is_empty() && !resource)).then_some(Self::Deduced)
            }
            other => Some(other),
        })
    }

    /// The step from a list to one of its entries.
    ///
    /// # Errors
    /// Why the entry has none, in upstream's words.
    pub fn element(self, entry: &Value) -> Result<Element, String> {
        let ListType::Map(keys) = self.list() else { return set_element(entry) };
        let fields = match entry {
            Value::Null => return Err("associative list with keys may not have a null element".into()),
            Value::Object(fields) => fields,
            _ => return Err("associative list with keys may not have non-map elements".into()),
        };
        let mut key = Vec::with_capacity(keys.len());
        for name in keys {
            let Some(value) = fields.get(name).or_else(|| self.default_of(name)) else {
                return Err(format!(
                    "associative list with keys has an element that omits key field {name:?} (and doesn't have default value)"
                ));
            };
            key.push((name.clone(), Scalar(value.clone())));
        }
        key.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Element::Key(key))
    }

    /// The default of a field of a list's entries.
    fn default_of(self, name: &str) -> Option<&'a Value> {
        match self.items().declared(name) {
            Some(Self::Known { node, .. }) => node.default.as_ref(),
            _ => None,
        }
    }
}

fn set_element(entry: &Value) -> Result<Element, String> {
    match entry {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
        scalar => Ok(Element::Value(Scalar(scalar.clone()))),
    }
}

static TEXT: LazyLock<Node> = LazyLock::new(|| of(Type::String));

/// `ObjectMeta`: labels and annotations by key, finalizers by value, owner references by uid and whole each.
static METADATA: LazyLock<Node> = LazyLock::new(|| {
    let texts = ["creationTimestamp", "deletionTimestamp", "generateName", "name", "namespace", "resourceVersion", "selfLink", "uid"];
    let mut fields: BTreeMap<String, Node> = texts.map(|name| (name.to_owned(), of(Type::String))).into();
    for name in ["deletionGracePeriodSeconds", "generation"] {
        fields.insert(name.into(), of(Type::Integer));
    }
    for name in ["annotations", "labels"] {
        fields.insert(name.into(), Node { additional: Some(Box::new(of(Type::String))), ..of(Type::Object) });
    }
    let list = |list, items| Node { list, items: Some(Box::new(items)), ..of(Type::Array) };
    fields.insert("finalizers".into(), list(ListType::Set, of(Type::String)));
    fields.insert("managedFields".into(), list(ListType::Atomic, of(Type::Any)));
    let mut owner: BTreeMap<String, Node> = ["apiVersion", "kind", "name", "uid"].map(|name| (name.to_owned(), of(Type::String))).into();
    for name in ["blockOwnerDeletion", "controller"] {
        owner.insert(name.into(), of(Type::Boolean));
    }
    let owner = Node { properties: owner, atomic: true, ..of(Type::Object) };
    fields.insert("ownerReferences".into(), list(ListType::Map(vec!["uid".into()]), owner));
    Node { properties: fields, ..of(Type::Object) }
});

fn of(type_: Type) -> Node {
    Node { type_, ..Node::default() }
}
