//! The cluster size of a launch: from the launch configuration and from the kernel's directives (PTX ISA, "Cluster
//! Dimension Directives").

use check::module::{Function, Module};
use isa::Target;

use crate::error::LaunchError;
use crate::launch::LaunchConfig;
use crate::memory::MOST_CLUSTER_BLOCKS;

/// What is wrong with a bulk copy between the shared memories of blocks in a launch that does not say how large its clusters
/// are. An H100 ends such a launch with an illegal instruction; one block as a cluster is enough for it.
pub const NEEDS_CLUSTER: &str = "a bulk copy from shared memory to shared memory needs a launch with clusters \
     (at least of one block: `--cluster 1`, cudaLaunchAttributeClusterDimension, or .reqnctapercluster 1)";

/// Sets [`LaunchConfig::cluster`], and the grid if the kernel counts it in clusters.
///
/// # Errors
/// When the cluster size is invalid, or the kernel requires another one.
pub fn settle(module: &Module, function: &Function, config: &mut LaunchConfig) -> Result<(), LaunchError> {
    let invalid = |what: String| Err(LaunchError::InvalidCluster(what));
    let show = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
    let (name, bounds) = (&function.name, &function.bounds);
    let extents = match (config.cluster, bounds.required_cluster) {
        (Some(given), Some(required)) if given != required => {
            return invalid(format!(
                "kernel `{name}` requires clusters of {} (.reqnctapercluster), the launch has {}",
                show(required),
                show(given)
            ));
        }
        (None, None) if bounds.explicit_cluster => {
            return invalid(format!(
                "kernel `{name}` must be told how large its clusters are (.explicitcluster)"
            ));
        }
        (None, None) => return Ok(()),
        (given, required) => given.or(required).unwrap_or([1; 3]),
    };
    let blocks = extents.iter().try_fold(1u32, |all, &extent| all.checked_mul(extent)).unwrap_or(u32::MAX);
    let most = bounds.max_cluster.unwrap_or(MOST_CLUSTER_BLOCKS).min(MOST_CLUSTER_BLOCKS);
    if blocks == 0 || blocks > most {
        let why = if most < MOST_CLUSTER_BLOCKS { " (.maxclusterrank)" } else { "" };
        return invalid(format!("cluster {}: it must have from 1 to {most} blocks{why}", show(extents)));
    }
    if !module.target.has(Target::sm(90)) {
        return invalid(format!("clusters need sm_90, kernel `{name}` is for {}", module.target));
    }
    if bounds.blocks_are_clusters {
        for (blocks, extent) in config.grid.iter_mut().zip(extents) {
            *blocks = blocks.saturating_mul(extent);
        }
    }
    if config.grid.iter().zip(extents).any(|(blocks, extent)| !blocks.is_multiple_of(extent)) {
        return invalid(format!(
            "a grid of {} is no multiple of clusters of {}",
            show(config.grid),
            show(extents)
        ));
    }
    if blocks > 1 && config.blocks.is_some() {
        return invalid("a part of the blocks cannot be launched in clusters".to_owned());
    }
    config.cluster = Some(extents);
    Ok(())
}
