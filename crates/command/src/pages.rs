//! `ptxvm completions`, `ptxvm man`: the command's description for shells and `man`.

use clap::CommandFactory;

use super::options::{Cli, CompletionOptions, ManOptions};
use super::report::{Failure, print};

/// Prints the script that completes the command's words in a shell.
///
/// # Errors
/// When stdout cannot be written to.
pub fn completions(options: &CompletionOptions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "ptxvm", &mut script);
    print(String::from_utf8_lossy(&script).trim_end())
}

/// Prints the manual page of the command, or writes those of it and its subcommands into a folder.
///
/// # Errors
/// When they cannot be written.
pub fn man(options: &ManOptions) -> Result<(), Failure> {
    let command = Cli::command().disable_help_subcommand(true);
    let failed = |error: std::io::Error| Failure::usage(format!("cannot write the manual page: {error}"));
    if let Some(folder) = &options.folder {
        return std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(command, folder))
            .map_err(failed);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).map_err(failed)?;
    print(String::from_utf8_lossy(&page).trim_end())
}
