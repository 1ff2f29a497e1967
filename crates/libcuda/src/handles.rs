//! What the program holds instead of our objects: opaque pointers, which are looked up and never followed.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The live objects of a kind, by handle.
pub struct Handles<T>(RwLock<Option<HashMap<usize, Arc<T>>>>);

impl<T> Handles<T> {
    /// None at first.
    pub const fn new() -> Handles<T> {
        Handles(RwLock::new(None))
    }

    /// Makes a handle for an object. It is the object's address: no other live object has it.
    pub fn insert<H>(&self, object: Arc<T>) -> *mut H {
        let handle = handle_of::<T, H>(&object);
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        objects.get_or_insert_default().insert(handle.addr(), object);
        handle
    }

    /// The object behind a handle, if it is one.
    pub fn get<H>(&self, handle: *mut H) -> Option<Arc<T>> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects.as_ref()?.get(&handle.addr()).cloned()
    }

    /// An object that fulfils a condition.
    pub fn find(&self, condition: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects.as_ref()?.values().find(|object| condition(object)).cloned()
    }

    /// Does something with every object.
    pub fn for_each(&self, work: impl Fn(&T)) {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects.iter().flat_map(HashMap::values).for_each(|object| work(object));
    }

    /// Takes an object away from its handle.
    pub fn remove<H>(&self, handle: *mut H) -> Option<Arc<T>> {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        objects.as_mut()?.remove(&handle.addr())
    }

    /// Takes those away that fulfil a condition.
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
