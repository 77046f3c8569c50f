//! The protobuf messages that `kubectl create` and `kubectl auth` send: numbers, names and types of their fields.
//!
//! Pure: constants, from the `generated.proto` files of `k8s.io/api` and `k8s.io/apimachinery`.

/// The type of a field, and when JSON leaves it out.
#[derive(Clone, Copy)]
pub(super) enum Type {
    /// Text, left out when empty.
    Text,
    /// A number, left out when 0.
    Number,
    /// A number that is there when it was sent.
    MaybeNumber,
    /// A boolean that is there when it was sent.
    MaybeBool,
    /// Bytes, in base64.
    Bytes,
    /// Bytes that are JSON.
    Json,
    /// A moment in whole seconds, left out when it is none.
    Time,
    /// A moment in microseconds.
    MicroTime,
    /// A message that is its only field.
    Wrapped(&'static Type),
    /// A message.
    Message(Message),
    /// One of several values.
    Repeated(&'static Type),
    /// An entry of a map from text.
    Map(&'static Type),
}

use Type::{Bytes, Json, Map, MaybeBool, MaybeNumber, MicroTime, Number, Repeated, Text, Time, Wrapped};

/// A message: number, name in JSON, and type of each field.
pub(super) type Message = &'static [(u64, &'static str, Type)];

const TEXTS: Type = Repeated(&Text);
const NOTHING: Type = Type::Message(&[]);

const META: Type = Type::Message(&[
    (1, "name", Text),
    (2, "generateName", Text),
    (3, "namespace", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (7, "generation", Number),
    (8, "creationTimestamp", Time),
    (9, "deletionTimestamp", Time),
    (10, "deletionGracePeriodSeconds", MaybeNumber),
    (11, "labels", Map(&Text)),
    (12, "annotations", Map(&Text)),
    (13, "ownerReferences", Repeated(&OWNER)),
    (14, "finalizers", TEXTS),
    (17, "managedFields", Repeated(&MANAGED)),
]);
const OWNER: Type = Type::Message(&[
    (1, "kind", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "controller", MaybeBool),
    (7, "blockOwnerDeletion", MaybeBool),
]);
const MANAGED: Type = Type::Message(&[
    (1, "manager", Text),
    (2, "operation", Text),
    (3, "apiVersion", Text),
    (4, "time", Time),
    (6, "fieldsType", Text),
    (7, "fieldsV1", Wrapped(&Json)),
    (8, "subresource", Text),
]);
const OBJECT: Type = Type::Message(&[
    (1, "kind", Text),
    (2, "namespace", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "resourceVersion", Text),
    (7, "fieldPath", Text),
]);
const SELECTOR: Type = Type::Message(&[
    (1, "matchLabels", Map(&Text)),
    (2, "matchExpressions", Repeated(&Type::Message(&[(1, "key", Text), (2, "operator", Text), (3, "values", TEXTS)]))),
]);

const NAMESPACE: Message =
    &[(1, "metadata", META), (2, "spec", Type::Message(&[(1, "finalizers", TEXTS)])), (3, "status", Type::Message(&[(1, "phase", Text)]))];
const CONFIG_MAP: Message = &[(1, "metadata", META), (2, "data", Map(&Text)), (3, "binaryData", Map(&Bytes)), (4, "immutable", MaybeBool)];
const SECRET: Message =
    &[(1, "metadata", META), (2, "data", Map(&Bytes)), (3, "type", Text), (4, "stringData", Map(&Text)), (5, "immutable", MaybeBool)];
const SERVICE_ACCOUNT: Message = &[
    (1, "metadata", META),
    (2, "secrets", Repeated(&OBJECT)),
    (3, "imagePullSecrets", Repeated(&Type::Message(&[(1, "name", Text)]))),
    (4, "automountServiceAccountToken", MaybeBool),
];
const RESOURCE_QUOTA: Message = &[
    (1, "metadata", META),
    (2, "spec", Type::Message(&[(1, "hard", Map(&Wrapped(&Text))), (2, "scopes", TEXTS)])),
    (3, "status", NOTHING),
];
const EVENT: Message = &[
    (1, "metadata", META),
    (2, "involvedObject", OBJECT),
    (3, "reason", Text),
    (4, "message", Text),
    (5, "source", Type::Message(&[(1, "component", Text), (2, "host", Text)])),
    (6, "firstTimestamp", Time),
    (7, "lastTimestamp", Time),
    (8, "count", Number),
    (9, "type", Text),
    (10, "eventTime", MicroTime),
    (11, "series", Type::Message(&[(1, "count", Number), (2, "lastObservedTime", MicroTime)])),
    (12, "action", Text),
    (13, "related", OBJECT),
    (14, "reportingComponent", Text),
    (15, "reportingInstance", Text),
];
const LEASE: Message = &[
    (1, "metadata", META),
    (
        2,
        "spec",
        Type::Message(&[
            (1, "holderIdentity", Text),
            (2, "leaseDurationSeconds", MaybeNumber),
            (3, "acquireTime", MicroTime),
            (4, "renewTime", MicroTime),
            (5, "leaseTransitions", MaybeNumber),
        ]),
    ),
];

const RULES: Type = Repeated(&Type::Message(&[
    (1, "verbs", TEXTS),
    (2, "apiGroups", TEXTS),
    (3, "resources", TEXTS),
    (4, "resourceNames", TEXTS),
    (5, "nonResourceURLs", TEXTS),
]));
const ROLE: Message = &[
    (1, "metadata", META),
    (2, "rules", RULES),
    (3, "aggregationRule", Type::Message(&[(1, "clusterRoleSelectors", Repeated(&SELECTOR))])),
];
const SUBJECT: Type = Type::Message(&[(1, "kind", Text), (2, "apiGroup", Text), (3, "name", Text), (4, "namespace", Text)]);
const BINDING: Message = &[
    (1, "metadata", META),
    (2, "subjects", Repeated(&SUBJECT)),
    (3, "roleRef", Type::Message(&[(1, "apiGroup", Text), (2, "kind", Text), (3, "name", Text)])),
];

const BOUND_OBJECT: Type = Type::Message(&[(1, "kind", Text), (2, "apiVersion", Text), (3, "name", Text), (4, "uid", Text)]);
const TOKEN_REQUEST: Message = &[
    (1, "metadata", META),
    (2, "spec", Type::Message(&[(1, "audiences", TEXTS), (3, "boundObjectRef", BOUND_OBJECT), (4, "expirationSeconds", MaybeNumber)])),
    (3, "status", NOTHING),
];
const SELF_SUBJECT_REVIEW: Message = &[(1, "metadata", META), (2, "status", NOTHING)];
const RESOURCE: Type = Type::Message(&[
    (1, "namespace", Text),
    (2, "verb", Text),
    (3, "group", Text),
    (4, "version", Text),
    (5, "resource", Text),
    (6, "subresource", Text),
    (7, "name", Text),
]);
const NON_RESOURCE: Type = Type::Message(&[(1, "path", Text), (2, "verb", Text)]);
/// The fields after the second are those of a review of another's access.
const ACCESS_REVIEW: Message = &[
    (1, "metadata", META),
    (
        2,
        "spec",
        Type::Message(&[
            (1, "resourceAttributes", RESOURCE),
            (2, "nonResourceAttributes", NON_RESOURCE),
            (3, "user", Text),
            (4, "groups", TEXTS),
            (5, "extra", Map(&Wrapped(&TEXTS))),
            (6, "uid", Text),
        ]),
    ),
    (3, "status", NOTHING),
];
const RULES_REVIEW: Message = &[(1, "metadata", META), (2, "spec", Type::Message(&[(1, "namespace", Text)])), (3, "status", NOTHING)];

/// The message of a kind; `None` for those that nobody sends in protobuf.
pub(super) fn message(api_version: &str, kind: &str) -> Option<Message> {
    Some(match (api_version, kind) {
        ("v1", "Namespace") => NAMESPACE,
        ("v1", "ConfigMap") => CONFIG_MAP,
        ("v1", "Secret") => SECRET,
        ("v1", "ServiceAccount") => SERVICE_ACCOUNT,
        ("v1", "ResourceQuota") => RESOURCE_QUOTA,
        ("v1", "Event") => EVENT,
        ("coordination.k8s.io/v1", "Lease") => LEASE,
        ("rbac.authorization.k8s.io/v1", "Role" | "ClusterRole") => ROLE,
        ("rbac.authorization.k8s.io/v1", "RoleBinding" | "ClusterRoleBinding") => BINDING,
        ("authentication.k8s.io/v1", "TokenRequest") => TOKEN_REQUEST,
        ("authentication.k8s.io/v1", "SelfSubjectReview") => SELF_SUBJECT_REVIEW,
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview") => ACCESS_REVIEW,
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview") => RULES_REVIEW,
        _ => return None,
    })
}
