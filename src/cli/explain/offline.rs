//! From documents to a world: what each is, whether a server would take it, and what is wrong with it if not.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::bounds;
use super::input::{BadInput, Document, Place, flatten};
use super::world::World;
use crate::api::catalog::{KubernetesClusterOffering, VirtualMachineType};
use crate::api::config::ProviderConfig;
use crate::api::manifest::{self, Definition};
use crate::api::meta::{Kind, KindRef};
use crate::api::names::ObjectName;
use crate::api::projection::Projection;
use crate::api::provider::Provider;
use crate::api::tenant::KubernetesCluster;

/// The namespace of an object whose file names none, as `kubectl` has it.
pub(super) const NAMESPACE: &str = "default";

/// A world made of documents, and what a server would take away from them without a word.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) world: World,
    pub(super) warnings: Vec<String>,
}

/// Makes a world of the documents, or says everything that is wrong with them.
pub(super) fn gather(documents: Vec<Document>) -> Result<Gathered, Vec<BadInput>> {
    let mut gathering = Gathering::default();
    let kinds = kinds();
    for document in documents {
        match flatten(document, |api_version, kind| is_list(&kinds, api_version, kind)) {
            Ok(objects) => objects.into_iter().for_each(|object| gathering.add(&kinds, object)),
            Err(problem) => gathering.problems.push(problem),
        }
    }
    if gathering.problems.is_empty() { Ok(gathering.finish()) } else { Err(gathering.problems) }
}

/// A kind, and the schema by which its objects are checked.
struct Known {
    kind: KindRef,
    has_status: bool,
    schema: Value,
}

fn kinds() -> Vec<Known> {
    let known = |definition: Definition| Known {
        kind: definition.kind,
        has_status: definition.has_status,
        schema: bounds::with_metadata(definition.schema(), definition.kind.namespaced),
    };
    manifest::exported().into_iter().chain(manifest::catalog()).map(known).collect()
}

fn is_list(kinds: &[Known], api_version: &str, kind: &str) -> bool {
    let typed = |known: &Known| known.kind.api_version() == api_version && kind.strip_suffix("List") == Some(known.kind.kind);
    (api_version == "v1" && kind == "List") || kinds.iter().any(typed)
}

#[derive(Default)]
struct Gathering {
    gathered: Gathered,
    /// Where each object stands first.
    places: BTreeMap<(KindRef, ObjectName), Place>,
    problems: Vec<BadInput>,
}

impl Gathering {
    fn add(&mut self, kinds: &[Known], document: Document) {
        let Document { place, mut value } = document;
        let known = match known(kinds, &value) {
            Ok(known) => known,
            Err((field, problem)) => return self.problems.push(place.bad(field, problem)),
        };
        if let Some(fields) = value.as_object_mut().filter(|_| known.has_status) {
            // A server ignores it where it takes the rest, and no decision looks at it.
            fields.remove("status");
        }
        for field in bounds::prune(&known.schema, &mut value) {
            self.gathered.warnings.push(format!("{place}: {}: unknown field; a server would drop it", place.field(&field)));
        }
        if let Some(fields) = value.as_object_mut() {
            // So that it is the name that is missing, as anybody would say.
            fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        }
        let problems = bounds::check(&known.schema, &value);
        if !problems.is_empty() {
            return self.problems.extend(problems.into_iter().map(|(field, problem)| place.bad(&field, problem)));
        }
        if let Err(problems) = self.decode(known.kind, &place, value) {
            self.problems.extend(problems);
        }
    }

    fn decode(&mut self, kind: KindRef, place: &Place, mut value: Value) -> Result<(), Vec<BadInput>> {
        complete(&mut value, kind);
        let world = &mut self.gathered.world;
        let name = if kind == KubernetesCluster::REF {
            let cluster: KubernetesCluster = decoded(place, value)?;
            world.clusters.push(cluster);
            world.clusters.last().map(Kind::object_name)
        } else if kind == Projection::REF {
            let projection: Projection = decoded(place, value)?;
            let name = projection.object_name();
            world.projections.insert(name.clone(), projection);
            Some(name)
        } else if kind == KubernetesClusterOffering::REF {
            world.offerings.push(decoded(place, value)?);
            world.offerings.last().map(Kind::object_name)
        } else if kind == VirtualMachineType::REF {
            world.types.push(decoded(place, value)?);
            world.types.last().map(Kind::object_name)
        } else if kind == Provider::REF {
            let provider: Provider = decoded(place, value)?;
            world.providers.insert(provider.metadata.name.clone());
            Some(provider.object_name())
        } else {
            let config: ProviderConfig = decoded(place, value)?;
            let problems = config.problems();
            if !problems.is_empty() {
                return Err(problems.into_iter().map(|problem| place.bad(&problem.field, problem.problem)).collect());
            }
            if !config.spec.runtime.allowed_workspaces().is_empty() {
                let field = place.field("spec.kcp.allowedWorkspaces");
                self.gathered.warnings.push(format!("{place}: {field}: not looked at, since files do not say whose workspace it is"));
            }
            Some(config.object_name())
        };
        name.map_or(Ok(()), |name| self.first(kind, name, place))
    }

    /// Refuses an object that was there before.
    fn first(&mut self, kind: KindRef, name: ObjectName, place: &Place) -> Result<(), Vec<BadInput>> {
        if let Some(first) = self.places.get(&(kind, name.clone())) {
            return Err(vec![place.bad("metadata.name", format!("the {} {name} is already in {first}", kind.kind))]);
        }
        self.places.insert((kind, name), place.clone());
        Ok(())
    }

    fn finish(self) -> Gathered {
        let Gathered { world, mut warnings } = self.gathered;
        for name in world.projections.keys().filter(|name| !world.clusters.iter().any(|cluster| cluster.object_name() == **name)) {
            warnings.push(format!("the projection {name} has no cluster among the documents; it is not looked at"));
        }
        if world.clusters.is_empty() {
            warnings.push("there is no tenant's KubernetesCluster among the documents, so there is nothing to explain".to_owned());
        }
        Gathered { world, warnings }
    }
}

/// The kind of an object, or the field that does not say it, and why.
fn known<'a>(kinds: &'a [Known], value: &Value) -> Result<&'a Known, (&'static str, String)> {
    if !value.is_object() {
        return Err(("", "is not an object with apiVersion, kind and metadata".to_owned()));
    }
    let text = |key: &'static str| match &value[key] {
        Value::String(text) if !text.is_empty() => Ok(text.as_str()),
        Value::Null => Err((key, "is missing".to_owned())),
        _ => Err((key, "must be a string, and not empty".to_owned())),
    };
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let of_kind: Vec<&Known> = kinds.iter().filter(|known| known.kind.kind == kind).collect();
    if of_kind.is_empty() {
        let mut names: Vec<&str> = kinds.iter().map(|known| known.kind.kind).collect();
        names.sort_unstable();
        names.dedup();
        return Err(("kind", format!("{kind:?} is none of {}, List", names.join(", "))));
    }
    let found = of_kind.iter().find(|known| known.kind.api_version() == api_version);
    found.copied().ok_or_else(|| {
        let versions: Vec<String> = of_kind.iter().map(|known| known.kind.api_version()).collect();
        ("apiVersion", format!("{api_version:?} is not that of a {kind}, which is {}", versions.join(" or ")))
    })
}

/// Fills in what files leave out and the types ask for.
fn complete(value: &mut Value, kind: KindRef) {
    let Some(metadata) = value["metadata"].as_object_mut() else { return };
    if kind.namespaced {
        metadata.entry("namespace").or_insert_with(|| NAMESPACE.into());
    }
    let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten().filter_map(Value::as_object_mut) {
        owner.entry("uid").or_insert_with(|| "".into());
    }
}

fn decoded<K: Kind>(place: &Place, value: Value) -> Result<K, Vec<BadInput>> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        vec![place.bad(if path == "." { "" } else { &path }, error.into_inner().to_string())]
    })
}
