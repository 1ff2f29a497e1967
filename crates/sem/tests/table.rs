//! Every pure row of the instruction table has its function here.

use isa::Action;

#[test]
fn every_pure_form_resolves() {
    let mut missing = vec![];
    for form in isa::FORMS.iter().chain(isa::LENIENT) {
        if let Action::Pure(name) = form.action
            && sem::lookup(name).is_none()
        {
            missing.push(name);
        }
    }
    missing.dedup();
    assert!(missing.is_empty(), "rows of isa/*.isa name functions that do not exist: {missing:?}");
}
