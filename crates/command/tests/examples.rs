//! Every example of `examples/`, launched as its README says: every bit must be the expected one.

mod common;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let folder = common::root().join("examples");
    let mut trials = Vec::new();
    for (number, case) in common::cases(&folder).into_iter().enumerate() {
        let paths = common::host_paths();
        let on_reference = (case.clone(), folder.clone());
        trials.push(Trial::test(format!("{}::reference", case.name(number)), move || {
            let (case, folder) = on_reference;
            Ok(case.run(&folder.join(&case.kernel), &folder, &["--engine", "reference"], None)?)
        }));
        for host_path in std::iter::once(None).chain(paths.into_iter().map(Some)) {
            let (case, folder) = (case.clone(), folder.clone());
            let name = format!("{}::{}", case.name(number), host_path.unwrap_or("default"));
            trials.push(Trial::test(name, move || {
                Ok(case.run(&folder.join(&case.kernel), &folder, &[], host_path)?)
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
