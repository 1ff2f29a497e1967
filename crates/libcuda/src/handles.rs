//! Handles: opaque pointers that the program holds instead of our objects. They are looked up and never dereferenced.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::Status;
use crate::pointers::Out;

/// The live objects of a kind, by handle.
pub struct Handles<T>(RwLock<Option<HashMap<usize, Arc<T>>>>);

impl<T> Handles<T> {
    /// An empty table.
    pub const fn new() -> Handles<T> {
        Handles(RwLock::new(None))
    }

    /// Adds an object and returns its handle. The handle is the object's address, so no other live object has it.
    pub fn insert<H>(&self, object: Arc<T>) -> *mut H {
        let handle = handle_of::<T, H>(&object);
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        objects.get_or_insert_default().insert(handle.addr(), object);
        handle
    }

    /// Adds an object, and gives its handle to the program.
    ///
    /// # Errors
    /// If the program has no place for it. Then it is not added.
    pub fn give<H>(&self, place: Out<*mut H>, object: Arc<T>) -> Result<(), Status> {
        place.write(handle_of(&object))?;
        self.insert::<H>(object);
        Ok(())
    }

    /// The object of a handle, if the handle is valid.
    pub fn get<H>(&self, handle: *mut H) -> Option<Arc<T>> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects.as_ref()?.get(&handle.addr()).cloned()
    }

    /// An object that satisfies a condition.
    pub fn find(&self, condition: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects.as_ref()?.values().find(|object| condition(object)).cloned()
    }

    /// Calls `work` with every object.
    pub fn for_each(&self, work: impl Fn(&T)) {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects.iter().flat_map(HashMap::values).for_each(|object| work(object));
    }

    /// All objects.
    pub fn all(&self) -> Vec<Arc<T>> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects.iter().flat_map(HashMap::values).cloned().collect()
    }

    /// Removes the object of a handle.
    pub fn remove<H>(&self, handle: *mut H) -> Option<Arc<T>> {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        objects.as_mut()?.remove(&handle.addr())
    }

    /// Removes the objects that satisfy a condition.
    pub fn remove_if(&self, condition: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(objects) = objects.as_mut() else { return Vec::new() };
        objects.extract_if(|_, object| condition(object)).map(|(_, object)| object).collect()
    }
}

/// The handle of an object that has one.
pub fn handle_of<T, H>(object: &Arc<T>) -> *mut H {
    Arc::as_ptr(object).cast_mut().cast()
}
