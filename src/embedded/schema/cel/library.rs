//! What rules may call and name besides their own values: the functions of Kubernetes, and the types.

use std::sync::{Arc, LazyLock};

use kube_cel::KubeCelExt as _;
use kube_cel::cel::objects::{KeyRef, Opaque, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, Program, Value as Cel};

use super::macros::{OPTIONAL_ENTRY, SAME_ENTRIES, STRING};

/// Names of types, which are values too.
pub(super) const TYPES: [&str; 13] = [
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "optional_type",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
];

/// What stands before the dot of a function's full name.
pub(super) const NAMESPACES: [&str; 10] = ["sets", "math", "optional", "format", "strings", "ip", "cidr", "base64", "jsonpatch", "google"];

/// The functions of Kubernetes 1.32, without their namespaces.
pub(super) const FUNCTIONS: [&str; 123] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "string",
    "bytes",
    "double",
    "int",
    "uint",
    "bool",
    "dyn",
    "type",
    "duration",
    "timestamp",
    "getFullYear",
    "getMonth",
    "getDayOfYear",
    "getDayOfMonth",
    "getDate",
    "getDayOfWeek",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
    "of",
    "ofNonZeroValue",
    "none",
    "value",
    "hasValue",
    "or",
    "orValue",
    "optMap",
    "optFlatMap",
    "charAt",
    "indexOf",
    "lastIndexOf",
    "lowerAscii",
    "upperAscii",
    "replace",
    "split",
    "substring",
    "trim",
    "join",
    "format",
    "quote",
    "isSorted",
    "sum",
    "min",
    "max",
    "slice",
    "sort",
    "flatten",
    "distinct",
    "sortBy",
    "find",
    "findAll",
    "url",
    "isURL",
    "getScheme",
    "getHost",
    "getHostname",
    "getPort",
    "getEscapedPath",
    "getQuery",
    "quantity",
    "isQuantity",
    "isInteger",
    "asInteger",
    "asApproximateFloat",
    "sign",
    "add",
    "sub",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "ip",
    "isIP",
    "isCanonical",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "cidr",
    "isCIDR",
    "containsIP",
    "containsCIDR",
    "prefixLength",
    "masked",
    "equivalent",
    "intersects",
    "named",
    "validate",
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
    "semver",
    "isSemver",
    "major",
    "minor",
    "patch",
    "encode",
    "decode",
    "escapeKey",
    "greatest",
    "least",
    "ceil",
    "floor",
    "round",
    "trunc",
    "abs",
];

/// A type as a value: equal to itself alone.
#[derive(Debug, PartialEq, Eq)]
struct TypeValue(&'static str);

impl Opaque for TypeValue {
    fn runtime_type_name(&self) -> &'static str {
        "type"
    }
}

/// All functions and types that rules may use.
pub(super) fn library() -> &'static Context<'static> {
    static LIBRARY: LazyLock<Context<'static>> = LazyLock::new(make);
    &LIBRARY
}

fn make() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("type", |value: Cel| -> Result<Cel, ExecutionError> { Ok(type_value(type_of(&value))) });
    context.add_function("dyn", |value: Cel| -> Result<Cel, ExecutionError> { Ok(value) });
    context.add_function("bool", to_bool);
    context.add_function(OPTIONAL_ENTRY, optional_entry);
    context.add_function(STRING, to_string);
    context.add_function(SAME_ENTRIES, same_entries);
    for name in TYPES {
        context.add_variable_from_value(name, type_value(name));
    }
    context
}

fn type_value(name: &'static str) -> Cel {
    Cel::Opaque(Arc::new(TypeValue(name)))
}

fn type_of(value: &Cel) -> &'static str {
    match value {
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::Bool(_) => "bool",
        Cel::Null => "null_type",
        Cel::Duration(_) => "google.protobuf.Duration",
        Cel::Timestamp(_) => "google.protobuf.Timestamp",
        Cel::Opaque(value) if value.runtime_type_name() == "optional_type" => "optional_type",
        Cel::Opaque(_) | Cel::Function(..) => "type",
    }
}

/// `string(value)` also of booleans, and of times and durations as cel-go writes them.
fn to_string(value: Cel) -> Result<Cel, ExecutionError> {
    static PLAIN: LazyLock<(Context<'static>, Option<Program>)> =
        LazyLock::new(|| (Context::default().with_all(), Program::compile("string(value)").ok()));
    let text = match &value {
        Cel::Bool(flag) => flag.to_string(),
        Cel::Timestamp(time) => {
            let text = time.to_rfc3339();
            text.strip_suffix("+00:00").map_or_else(|| text.clone(), |start| format!("{start}Z"))
        }
        Cel::Duration(duration) => format!("{}s", duration.as_seconds_f64()),
        _ => {
            let (context, program) = &*PLAIN;
            let mut scope = context.new_inner_scope();
            scope.add_variable_from_value("value", value);
            return program.as_ref().ok_or(ExecutionError::NoSuchOverload)?.execute(&scope);
        }
    };
    Ok(Cel::String(Arc::new(text)))
}

/// Whether two lists of type set or map have the same entries, in any order.
#[allow(clippy::needless_pass_by_value, clippy::unnecessary_wraps, reason = "the shape of the interpreter's functions")]
fn same_entries(left: Cel, right: Cel) -> Result<Cel, ExecutionError> {
    let same = match (&left, &right) {
        (Cel::List(left), Cel::List(right)) => left.len() == right.len() && left.iter().all(|entry| right.contains(entry)),
        (left, right) => left == right,
    };
    Ok(Cel::Bool(same))
}

#[allow(clippy::needless_pass_by_value, reason = "the shape of the interpreter's functions")]
fn optional_entry(container: Cel, key: Cel) -> Result<Cel, ExecutionError> {
    let container = match &container {
        Cel::Opaque(_) => match <&OptionalValue>::try_from(&container)?.value() {
            Some(value) => value.clone(),
            None => return Ok(Cel::Opaque(Arc::new(OptionalValue::none()))),
        },
        _ => container,
    };
    let found = match (&container, &key) {
        (Cel::Map(map), Cel::String(name)) => map.get(&KeyRef::String(name)).cloned(),
        (Cel::List(entries), Cel::Int(index)) => usize::try_from(*index).ok().and_then(|index| entries.get(index)).cloned(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(Cel::Opaque(Arc::new(found.map_or_else(OptionalValue::none, OptionalValue::of))))
}

fn to_bool(value: Cel) -> Result<Cel, ExecutionError> {
    match &value {
        Cel::Bool(_) => Ok(value),
        Cel::String(text) => match text.as_str() {
            "1" | "t" | "true" | "TRUE" | "True" => Ok(Cel::Bool(true)),
            "0" | "f" | "false" | "FALSE" | "False" => Ok(Cel::Bool(false)),
            _ => Err(ExecutionError::function_error("bool", "type conversion error from 'string' to 'bool'")),
        },
        _ => Err(ExecutionError::NoSuchOverload),
    }
}
