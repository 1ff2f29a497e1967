//! Handles: opaque pointers that the program holds instead of our objects. They are looked up and never dereferenced, and no number is
//! used twice, so a stale handle is always noticed.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The live objects of a kind, by handle.
pub struct Handles<T>(RwLock<Option<HashMap<usize, Arc<T>>>>);

/// The last handle. They look like pointers: not null, and aligned.
static LAST: AtomicUsize = AtomicUsize::new(1 << 20);

impl<T> Handles<T> {
    /// An empty table.
    #[allow(clippy::new_without_default, reason = "it is made for statics")]
    pub const fn new() -> Handles<T> {
        Handles(RwLock::new(None))
    }

    /// Adds an object and returns its handle.
    pub fn insert(&self, object: T) -> *mut c_void {
        let handle = LAST.fetch_add(16, Ordering::Relaxed) + 16;
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        objects.get_or_insert_default().insert(handle, Arc::new(object));
        std::ptr::without_provenance_mut(handle)
    }

    /// The object of a handle, if there is one.
    pub fn get(&self, handle: *mut c_void) -> Option<Arc<T>> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects.as_ref()?.get(&handle.addr()).cloned()
    }

    /// Removes the object of a handle, if there is one.
    pub fn remove(&self, handle: *mut c_void) -> Option<Arc<T>> {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        objects.as_mut()?.remove(&handle.addr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_handles_are_noticed() {
        let handles = Handles::new();
        let first = handles.insert(1);
        assert_eq!(handles.get(first).as_deref(), Some(&1));
        assert!(handles.remove(first).is_some() && handles.remove(first).is_none());
        let second = handles.insert(2);
        assert!(
            second != first && handles.get(first).is_none() && handles.get(std::ptr::null_mut()).is_none()
        );
    }
}
