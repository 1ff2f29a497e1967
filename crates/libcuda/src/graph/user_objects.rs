//! User objects: objects of the program that live as long as the graphs that retain them.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cudarc::driver::sys::{CUgraph, CUhostFn, CUuserObject};

use super::{Graph, graph, lock};
use crate::api::api;
use crate::driver::driver;
use crate::handles::{Handles, handle_of};
use crate::pointers::Out;
use crate::stream::HostFunction;
use crate::{INVALID, Status};

static OBJECTS: Handles<UserObject> = Handles::new();

/// An object of the program, and the function that destroys it.
pub struct UserObject {
    destroy: HostFunction,
    users: AtomicI64,
}

impl UserObject {
    /// Releases references. Releasing the last one destroys the object.
    fn release(self: &Arc<UserObject>, count: u32) {
        let before = self.users.fetch_sub(count.into(), Ordering::AcqRel);
        if before > 0 && before <= count.into() {
            OBJECTS.remove::<()>(handle_of(self));
            // A panic has been reported and counted, and there is no context that it could break.
            let _ = self.destroy.call();
        }
    }
}

fn object(handle: CUuserObject) -> Result<Arc<UserObject>, Status> {
    driver()?;
    OBJECTS.get(handle).ok_or(INVALID)
}

impl Graph {
    /// Releases references of this graph to one object, or to all.
    fn release_objects(&self, which: Option<&Arc<UserObject>>, count: u32) {
        let mut objects = lock(&self.objects);
        let mut left = count;
        objects.retain_mut(|(object, users)| {
            if which.is_some_and(|which| !Arc::ptr_eq(which, object)) {
                return true;
            }
            let released = left.min(*users);
            (left, *users) = (left - released, *users - released);
            object.release(released);
            *users > 0
        });
    }

    /// Releases all references of this graph.
    pub fn release_all_objects(&self) {
        self.release_objects(None, u32::MAX);
    }
}

api! { API:
    /// Makes an object that a function of the program destroys when it has no users any more.
    cuUserObjectCreate 11030 "cuUserObjectCreate" (result: Out<CUuserObject>, object: *mut c_void, destroy: CUhostFn, users: c_uint, flags: c_uint) {
        driver()?;
        if flags != 1 || users == 0 || users > i32::MAX as u32 {
            return Err(INVALID);
        }
        let object = UserObject { destroy: HostFunction::new(destroy, object)?, users: i64::from(users).into() };
        let object = Arc::new(object);
        OBJECTS.give(result, object)
    }
    /// So many users more.
    cuUserObjectRetain 11030 "cuUserObjectRetain" (handle: CUuserObject, count: c_uint) {
        if count == 0 || count > i32::MAX as u32 {
            return Err(INVALID);
        }
        object(handle)?.users.fetch_add(count.into(), Ordering::Relaxed);
        Ok(())
    }
    /// So many users less.
    cuUserObjectRelease 11030 "cuUserObjectRelease" (handle: CUuserObject, count: c_uint) {
        if count == 0 || count > i32::MAX as u32 {
            return Err(INVALID);
        }
        object(handle)?.release(count);
        Ok(())
    }
    /// Lets a graph use an object: as one user more, or instead of the caller.
    cuGraphRetainUserObject 11030 "cuGraphRetainUserObject" (of: CUgraph, handle: CUuserObject, count: c_uint, flags: c_uint) {
        let (graph, object) = (graph(of)?, object(handle)?);
        if count == 0 || count > i32::MAX as u32 || flags > 1 {
            return Err(INVALID);
        }
        if flags == 0 {
            object.users.fetch_add(count.into(), Ordering::Relaxed);
        }
        lock(&graph.objects).push((object, count));
        Ok(())
    }
    /// Takes users of an object away from a graph.
    cuGraphReleaseUserObject 11030 "cuGraphReleaseUserObject" (of: CUgraph, handle: CUuserObject, count: c_uint) {
        graph(of)?.release_objects(Some(&object(handle)?), count);
        Ok(())
    }
}
