//! What cannot be run is refused before it runs, or named when it faults: hostile sizes, missing definitions, the wrong
//! neighbour.

mod common;

use common::Folder;

/// A module for `sm_80` with these declarations, as a file of a folder.
fn module(folder: &Folder, name: &str, text: &str) {
    folder.write(name, format!(".version 8.0\n.target sm_80\n.address_size 64\n{text}"));
}

#[test]
fn sizes_whose_sum_no_number_holds_get_the_error_of_a_single_one() {
    let folder = Folder::new();
    let huge = ".align 16 .b8 c[18446744073709551615];";
    for (before, after) in [("", ""), (".const .b32 a[4];", ""), (".const .b32 a[4];", ".const .b32 d[4];")] {
        module(&folder, "k.ptx", &format!("{before}\n.const {huge}\n{after}\n.visible .entry k() {{ ret; }}\n"));
        folder.fails("run k.ptx", 1, &[".const variables take 18446744073709551615 bytes, the limit is 65536"]);
    }
    for variables in [
        ".shared .align 16 .b8 c[18446744073709551615];",
        ".shared .align 16 .b8 c[18446744073709551600]; .shared .b32 a[16];",
        ".shared .b32 a[16]; .shared .align 16 .b8 c[18446744073709551600];",
    ] {
        let body = "st.shared.b32 [c+4096], 9; ret;";
        module(&folder, "k.ptx", &format!(".visible .entry k() {{ {variables} {body} }}\n"));
        let message = "the block needs 18446744073709551615 bytes of shared memory, the limit is 232448";
        for dynamic in ["0", "1", "18446744073709551615"] {
            folder.fails(&format!("run k.ptx --shared {dynamic}"), 2, &[message]);
        }
    }
}
