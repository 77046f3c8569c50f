//! The manifests as files: their paths and their YAML.
//!
//! Pure: the same texts are in the repository under `apiexports/` and `config/`; a test compares them.

use serde_json::{Map, Value};

use super::{api_resource_schema, binding, catalog, crd, door, export, exported, rbac, samples};

/// The path of the provider workspace in the examples; `kcm init` and `kcm bind` write the real one.
pub const EXAMPLE_PATH: &str = "root:provider";

/// Every file, by its path below the output folder, in the order of the paths' folders.
pub fn all() -> Vec<(String, String)> {
    let claims: Vec<Value> = export::claims().iter().map(export::Claim::to_value).collect();
    let mut files = vec![
        file("apiexports/apiexport-kubernetes.edge-connect.eu.yaml", &[export::export()]),
        file("apiexports/apibinding-sample.yaml", &[binding::binding(EXAMPLE_PATH, export::EXPORT, &claims)]),
        file("apiexports/workspacetype-edge-connect.yaml", &[binding::workspace_type(EXAMPLE_PATH, &[export::EXPORT])]),
    ];
    for definition in exported() {
        let resource = definition.kind.resource();
        files.push(file(&format!("apiexports/apiresourceschema-{resource}.yaml"), &[api_resource_schema(&definition)]));
        files.push(file(&format!("config/crds/onboarding/{resource}.yaml"), &[crd(&definition)]));
    }
    for definition in catalog() {
        files.push(file(&format!("config/crds/{}.yaml", definition.kind.resource()), &[crd(&definition)]));
    }
    files.extend([
        file("config/rbac/tenant-policy.yaml", &rbac::tenant_policy()),
        file("config/rbac/bind.yaml", &rbac::bind()),
        file("config/rbac/manager.yaml", &[rbac::manager_identity(), rbac::manager()].concat()),
        file("config/rbac/manager-exports.yaml", &rbac::manager_exports()),
        file("config/rbac/workload-clusters.yaml", &rbac::workloads(rbac::MANAGER_NAMESPACE, ("provider-otc", door::CONTROLLER))),
        file("config/rbac/secured-work.yaml", &rbac::secured(rbac::MANAGER_NAMESPACE, ("provider-otc", door::CONTROLLER))),
        file("config/samples/catalog.yaml", &samples::catalog()),
        file("config/samples/tenant.yaml", &samples::tenant()),
        file("config/samples/providerconfig.yaml", &[samples::provider_config()]),
    ]);
    files
}

fn file(path: &str, objects: &[Value]) -> (String, String) {
    let texts: Vec<String> = objects.iter().map(yaml).collect();
    (path.to_owned(), format!("# Generated from the Rust types in src/api.\n{}", texts.join("---\n")))
}

/// An object as YAML, `apiVersion`, `kind` and `metadata` first, ending in a newline.
///
/// # Panics
/// Never for JSON: every value has a YAML form.
pub fn yaml(object: &Value) -> String {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let render = |value: &Value| serde_saphyr::to_string_with_options(value, options.clone()).expect("every JSON value has a YAML form");
    let Value::Object(fields) = object else { return render(object) };
    // Fields are sorted by name, which puts `data` and `rules` in the wrong place for a reader: the head goes first.
    let (head, rest): (Map<_, _>, Map<_, _>) =
        fields.clone().into_iter().partition(|(name, _)| matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
    let parts = [head, rest].into_iter().filter(|part| !part.is_empty());
    parts.map(|part| render(&Value::Object(part))).collect()
}
