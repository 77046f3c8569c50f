//! Sets `cfg(mutants)` for the build that tests the simulator: in that of this package alone, so that dependencies are not built anew for it.

fn main() {
    println!("cargo::rerun-if-env-changed=MUTANTS");
    if std::env::var_os("MUTANTS").is_some() {
        println!("cargo::rustc-cfg=mutants");
    }
}
