//! Memory of graphs. Its address is fixed when its node is created. The memory itself exists from a launch of that node until something
//! frees it: a node of this graph or of another one, or the program. The next launch allocates it again at the same address.

use std::sync::Arc;

use crate::context::Context;
use crate::driver::driver;
use crate::memory::Kind;
use crate::{INVALID, Status};

/// An address of graph memory.
pub struct GraphMemory {
    pub address: u64,
    pub bytes: usize,
    name: String,
    context: Arc<Context>,
}

impl GraphMemory {
    /// Reserves an address without memory.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn reserve(context: &Arc<Context>, bytes: usize, what: &str) -> Result<Arc<GraphMemory>, Status> {
        let driver = driver()?;
        let too_much = bytes as u64 > driver.config.memory;
        if bytes == 0 || too_much {
            let out_of_memory = Status::CUDA_ERROR_OUT_OF_MEMORY;
            return Err(if too_much { out_of_memory } else { INVALID });
        }
        let name = match crate::origin::caller() {
            Some(caller) => format!("memory of a graph ({what}, called by {caller})"),
            None => format!("memory of a graph ({what})"),
        };
        let address = driver.machine.allocate(bytes as u64, name.clone());
        let address = address.map_err(|_| Status::CUDA_ERROR_OUT_OF_MEMORY)?;
        // The machine keeps the address as a freed one, so that an access before the launch is reported.
        driver.machine.free(address).map_err(|_| Status::CUDA_ERROR_UNKNOWN)?;
        driver.allocations.promise(address, bytes as u64);
        Ok(Arc::new(GraphMemory { address, bytes, name, context: Arc::clone(context) }))
    }

    /// Allocates the memory, if there is none now. (NVIDIA's driver does not launch a graph whose memory still exists, unless the graph
    /// was instantiated with a flag that frees it. Here the memory is reused.)
    ///
    /// # Errors
    /// If there is not enough.
    pub fn allocate(&self) -> Result<(), Status> {
        let driver = driver()?;
        if driver.allocations.find(self.address).is_some() {
            return Ok(());
        }
        let bytes = self.bytes as u64;
        if crate::in_use::bytes(self.context.device).saturating_add(bytes) > driver.config.memory {
            return Err(Status::CUDA_ERROR_OUT_OF_MEMORY);
        }
        let allocated = driver.machine.allocate_at(self.address, bytes, self.name.as_str());
        allocated.map_err(|_| Status::CUDA_ERROR_OUT_OF_MEMORY)?;
        driver.allocations.insert(self.address, bytes, Kind::Pool, &self.context);
        crate::initialized::named(self.address, &self.name);
        crate::stream_order::allocated_by_graph(self.address, bytes, &self.name);
        crate::pool::used_by_graph(self.context.device, self.address, bytes);
        Ok(())
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        if let Ok(driver) = driver() {
            driver.allocations.break_promise(self.address);
        }
    }
}
