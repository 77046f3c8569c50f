//! Runs every case file of this folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kcp_provider_runtime::kcm::explain::{Explanation, explain};
use kcp_provider_runtime::kcm::schedule::{Decision, Request, schedule};

use crate::format::{Case, Expectation, File};

#[test]
fn every_case_comes_out_as_its_file_says() {
    let mut failures = Vec::new();
    let mut names = BTreeSet::new();
    for path in case_files() {
        let text = fs::read_to_string(&path).unwrap();
        let file: File = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!file.why.trim().is_empty(), "{} does not say why", path.display());
        for case in &file.cases {
            assert!(names.insert(case.name.clone()), "two cases are named {}", case.name);
            assert!(!case.why.trim().is_empty(), "case {} does not say why", case.name);
            let wrong = run(&file, case);
            failures.extend(wrong.into_iter().map(|wrong| format!("{}: {}: {wrong}", path.display(), case.name)));
        }
    }
    assert!(failures.is_empty(), "{} wrong:\n{}", failures.len(), failures.join("\n"));
    assert!(names.len() >= 40, "only {} cases were found", names.len());
}

fn case_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scheduling");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")).collect();
    files.sort();
    files
}

fn run(file: &File, case: &Case) -> Vec<String> {
    let catalog = file.catalog(case);
    let cluster = case.cluster.object();
    let projection = case.projection.as_ref().map(|projection| projection.object(&cluster));
    let providers = case.providers.as_ref().unwrap_or(&file.providers);
    let request = Request { cluster: &cluster, catalog: &catalog, providers, projection: projection.as_ref() };
    let decision = schedule(request);
    let explanation = explain(request);
    let mut wrong = compare(&case.expect, &decision);
    if explanation.message != decision.message() || explanation.reason != decision.reason().as_str() {
        wrong.push(format!("explain says {}: {}", explanation.reason, explanation.message));
    }
    wrong.extend(compare_explanation(case, &explanation));
    wrong
}

fn compare(expected: &Expectation, decision: &Decision) -> Vec<String> {
    let Expectation { provider, offering, pools, reason, message, says, silent_on } = expected;
    let mut wrong = Vec::new();
    if (provider.is_some(), reason.is_some()) == (true, true) || (provider.is_none() && reason.is_none()) {
        wrong.push("expects neither or both of a provider and a reason".to_owned());
    }
    match decision {
        Decision::Scheduled { provider: got, offering: by, pools: types, .. } => {
            let types: BTreeMap<String, String> = types.iter().map(|pool| (pool.name.clone(), pool.type_.clone())).collect();
            if provider.as_ref() != Some(got) || offering.as_ref().is_some_and(|offering| offering != by) || *pools != types {
                wrong.push(format!("scheduled on {got} by {by}: {types:?}"));
            }
        }
        Decision::Unschedulable { reason: got, message: text } => {
            if reason.as_deref() != Some(got.as_str()) {
                wrong.push(format!("unschedulable, {got}: {text}"));
            }
        }
    }
    let text = decision.message();
    if message.as_ref().is_some_and(|message| *message != text) {
        wrong.push(format!("the message is: {text}"));
    }
    wrong.extend(says.iter().filter(|part| !text.contains(*part)).map(|part| format!("the message lacks {part:?}: {text}")));
    wrong.extend(silent_on.iter().filter(|part| text.contains(*part)).map(|part| format!("the message holds {part:?}: {text}")));
    wrong
}

fn compare_explanation(case: &Case, explanation: &Explanation) -> Vec<String> {
    let mut wrong = Vec::new();
    let verdicts: BTreeMap<&str, String> =
        explanation.candidates.iter().map(|candidate| (candidate.offering.as_str(), candidate.verdict.to_string())).collect();
    for (offering, verdict) in &case.verdicts {
        if verdicts.get(offering.as_str()) != Some(verdict) {
            wrong.push(format!("the verdict on {offering} is {:?}, not {verdict}", verdicts.get(offering.as_str())));
        }
    }
    let details: Vec<&str> = explanation.candidates.iter().map(|candidate| candidate.detail.as_str()).collect();
    let details = details.join("\n");
    wrong.extend(case.details.iter().filter(|part| !details.contains(*part)).map(|part| format!("the details lack {part:?}: {details}")));
    let advice = explanation.advice.join("\n");
    wrong.extend(case.advice.iter().filter(|part| !advice.contains(*part)).map(|part| format!("the advice lacks {part:?}: {advice}")));
    wrong.extend(case.no_advice.iter().filter(|part| advice.contains(*part)).map(|part| format!("the advice holds {part:?}: {advice}")));
    wrong
}
